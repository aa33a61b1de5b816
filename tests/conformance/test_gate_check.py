"""The gate joins what the run, the proofs and the exploration say."""

from types import SimpleNamespace
from typing import Any

import pytest

from reassure_conformance.check import CheckResult, Proofs, explore_scope


def result(*, run: str = "holds", proofs: str = "holds", exploration: str = "holds") -> CheckResult:
    """Return a gate's result with these verdicts."""
    ran: Any = SimpleNamespace(verdict=lambda: run, clauses=())
    return CheckResult(ran, Proofs(verdict=proofs), {"verdict": exploration, "counts": {}}, 1.0)


@pytest.mark.parametrize("part", ["run", "proofs", "exploration"])
@pytest.mark.parametrize("verdict", ["violated", "unknown", "vacuous"])
def test_gate_is_no_better_than_its_worst_part(part: str, verdict: str) -> None:
    """Whichever part does not hold, the gate does not."""
    assert result().verdict() == "holds"
    assert result(**{part: verdict}).verdict() == verdict


@pytest.mark.parametrize("profile", ["kip-236", "kip-236-amended"])
def test_gate_explores_every_state_and_reaches_every_goal(profile: str) -> None:
    """The scope of the gate holds under both profiles of the bundled controller."""
    found = explore_scope(profile)
    assert (found["verdict"], found["unfinished"]) == ("holds", None)
    assert found["counts"]["goals_reached"] == found["counts"]["goals"] > 0
    assert found["counts"]["invariants"] > 0
    assert f"explore small ({profile}): holds" in found["text"]
