"""Findings are derived: the solver's smallest counterexamples, told as scenarios and replayed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reassure_conformance.scenarios.scenario import (
    Scenario,
    find_area,
    find_scenario,
    format_found,
    parse_scenario,
    read_scenario,
    run_scenario,
)
from reassure_explorer.counterexamples import list_counterexamples
from reassure_model.partition import Partition
from reassure_proofs.engine.counterexamples import AREA, render_scenario, restore_arguments
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.runner import TheoremResult, prove_all
from reassure_proofs.engine.statement import Theorem

TOLD = [theorem for theorem in get_theorems() if theorem.scenario]
EACH = pytest.mark.parametrize("theorem", TOLD, ids=lambda theorem: theorem.name)


@pytest.fixture(scope="module")
def refuted() -> dict[str, TheoremResult]:
    """Every refutation that a scenario tells, derived in this process."""
    found = prove_all([theorem.name for theorem in TOLD], 3, processes=1)
    return {result.theorem.name: result for result in found}


def _path(theorem: Theorem) -> Path:
    return find_scenario(theorem.scenario)


def _found(theorem: Theorem, result: TheoremResult) -> Scenario:
    assert result.counterexample is not None
    told = render_scenario(theorem, result.counterexample["arguments"])
    return parse_scenario(told, str(_path(theorem)))


@EACH
def test_counterexample_is_its_scenario(
    theorem: Theorem, refuted: dict[str, TheoremResult], request: pytest.FixtureRequest
) -> None:
    """The scenario of a refutation is the counterexample that is found now, word for word."""
    assert refuted[theorem.name].verdict == "refuted"
    found = _found(theorem, refuted[theorem.name])
    if request.config.getoption("--rewrite-scenarios"):
        _path(theorem).write_text(format_found(found, run_scenario(found)), encoding="utf-8")
    stored = read_scenario(_path(theorem))
    assert [block.text for block in stored.blocks] == [block.text for block in found.blocks]
    assert (stored.clauses, stored.profile, stored.overrides) == (
        found.clauses,
        found.profile,
        found.overrides,
    )


def _list(replicas: Any) -> str:
    return f"[{','.join(map(str, replicas))}]"


def _expected_lines(theorem: Theorem, outcome: Any) -> Iterator[str]:
    """Yield what the world has to answer, given what the code under test returned."""
    partitions = outcome if isinstance(outcome, tuple) and outcome else (outcome,)
    if isinstance(partitions[-1], Partition):
        after = partitions[-1]
        assert after.state is not None
        state = f"leader {after.state.leader} isr {_list(after.state.isr)}"
        yield f"assigned {_list(after.assigned or ())} {state}"
    elif theorem.subject.name in ("drop-twice", "drop-by-lag"):
        yield from (f"drop {_list(drop)}" for drop in outcome)
    elif theorem.subject.name.startswith(("drop", "cancelled", "changed")):
        yield f"drop {_list(outcome)}"
    elif theorem.subject.name == "literal-lag":
        yield f"literally true of {', '.join(map(str, outcome)) or 'no lag at all'}"
    elif theorem.subject.name == "cancel-order":
        yield f"original {_list(outcome)}"
    elif theorem.subject.name == "older-item":
        yield f"estimated {outcome}"
    elif theorem.subject.name == "first-evaluation":
        yield f"pseudo {_list(outcome)}"
    elif theorem.subject.name == "select-unclean":
        yield f"leader {outcome.leader}"


SHOWN_ELSEWHERE = {
    "failover-leaves-target": "in flight to [3], top 1",
    "partitions-decided-alone": "p: refused by request.refuse.unknown-partition",
    "growth-to-the-minimum-is-taken": "request 0 removed (top.at-least-min-isr)",
    "cut-replica-stays-out": "accepted",
    "listener-takes-existing-partition": "the partition exists; path removed",
    "listener-takes-new-order": "the target is assigned already; path removed",
    "end-read-first-is-sound": "known 0 lag 1 estimated 0",
    "frequent-follower-enters-once": "ms 3 end 3 hw 3 pseudo [1,2] isr [1]",
    "isr-members-reach-hw-always": "ms 0 end 1 hw 1 pseudo [1,2] isr [1,2]",
    "silent-follower-leaves": "ms 1 end 1 hw 0 pseudo [1,2] isr [1,2]",
}
"""What the world shows where it has other words for it than the code under test."""


@EACH
def test_scenario_shows_what_was_derived(
    theorem: Theorem, refuted: dict[str, TheoremResult]
) -> None:
    """In its world the counterexample ends as the code under test says, and nothing is refused."""
    counterexample = refuted[theorem.name].counterexample
    assert counterexample is not None
    arguments = restore_arguments(theorem, counterexample["arguments"])
    outcome = theorem.subject.function(arguments)
    answers = "\n".join(
        line for block in run_scenario(_found(theorem, refuted[theorem.name])) for line in block
    )
    assert "not possible" not in answers
    expected = [SHOWN_ELSEWHERE[theorem.name]] if theorem.name in SHOWN_ELSEWHERE else []
    expected = expected or list(_expected_lines(theorem, outcome))
    assert expected
    assert [line for line in expected if line not in answers] == []


def test_no_scenario_is_left_over() -> None:
    """Each file in the area is the counterexample of a theorem, or the story of a tale."""
    files = {file.stem for file in find_area(AREA).glob("*.txt")}
    assert files == {theorem.name for theorem in TOLD} | {
        tale.name for tale in list_counterexamples()
    }


def test_telling_needs_a_world() -> None:
    """A theorem whose arguments no world can tell says so."""
    (theorem,) = (item for item in get_theorems() if item.name == "order-of-requests-is-free")
    with pytest.raises(ValueError, match="no world has the commands"):
        render_scenario(theorem, {})
