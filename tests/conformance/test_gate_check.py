"""The gate joins what the run, the proofs and the exploration say."""

from types import SimpleNamespace
from typing import Any

import pytest

from reassure_conformance.answers.checking import CheckResult, Proofs, explore_gate_scope


def result(*, run: str = "holds", proofs: str = "holds", exploration: str = "holds") -> CheckResult:
    """Return a gate's result with these verdicts."""
    settings = SimpleNamespace(profile="kip-236", readings={})
    ran: Any = SimpleNamespace(verdict=lambda: run, clauses=(), settings=settings)
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
    found = explore_gate_scope(profile)
    assert (found["verdict"], found["unfinished"]) == ("holds", None)
    assert found["counts"]["goals_reached"] == found["counts"]["goals"] > 0
    assert found["counts"]["invariants"] > 0
    assert f"explore small ({profile}): holds" in found["text"]


def theorem(outcome: str, verdict: str, **more: Any) -> dict[str, Any]:
    """Return a theorem of a report, about one clause under kip-236."""
    plain = {"clause": "a.b", "finding": "", "profile": "kip-236", "profiles": ["kip-236"]}
    return {"outcome": outcome, "verdict": verdict, "readings": {}, **plain, **more}


PROVED = theorem("holds", "proved")
FOUND = theorem("finding", "refuted", finding="drop-1", profiles=[])
BROKEN = theorem("violated", "refuted")


@pytest.mark.parametrize(
    ("theorems", "said"),
    [
        ([PROVED, FOUND], {"a.b": "proved"}),
        ([PROVED, BROKEN], {"a.b": "violated"}),
        ([FOUND], {"a.b": "refuted without it (drop-1)"}),
        ([theorem("holds", "proved", profile="kip-236-amended", profiles=["kip-236-amended"])], {}),
        ([theorem("holds", "proved", readings={"drop.slice": "exclusive"})], {}),
    ],
)
def test_column_says_what_was_proved_under_the_profile(
    theorems: list[dict[str, Any]], said: dict[str, str]
) -> None:
    """A refutation is no proof, and what another profile's code does is not."""
    assert Proofs(theorems).by_clause("kip-236") == said


def test_proof_under_a_reading_counts_for_that_reading_alone() -> None:
    """Where the run changes a reading that the code looked at, the proof is not shown."""
    looked = theorem("holds", "proved", readings={"drop.slice": "inclusive"})
    assert Proofs([looked]).by_clause("kip-236") == {"a.b": "proved"}
    assert Proofs([looked]).by_clause("kip-236", {"drop.slice": "exclusive"}) == {}
