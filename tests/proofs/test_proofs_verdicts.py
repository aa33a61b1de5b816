"""Verdicts on the theorems of each protocol, that none is vacuous, and known counterexamples."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from claim_proofs import find_outcomes, prove_theorem
from planting import find_violations

from reassure_model.protocols.kip_46 import StartTask
from reassure_proofs.engine.cache import Cache
from reassure_proofs.engine.necessity import examine_hypotheses
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.results import ProofGoal
from reassure_proofs.engine.statement import Hypothesis, Subject
from reassure_proofs.protocols import kafka_42, kip_46, topics
from reassure_proofs.protocols.common import controllers
from reassure_proofs.protocols.kafka_4485 import lag, replication
from reassure_proofs.protocols.kip_46 import CHOICE, FAILOVER, QUEUE
from reassure_proofs.protocols.kip_236 import invariant, protocol
from reassure_proofs.protocols.kip_236 import partition_steps as steps

KEPT = Path(__file__).parents[2] / "build" / "proofs"
"""What was proved of the same code before."""
OFFICES = [
    each.name
    for each in get_theorems()
    if each.subject in (controllers.office, topics.deletion, kafka_42.MOVED_42)
]


def _names(theorems: Any, expected: str = "proved") -> list[str]:
    return [theorem.name for theorem in theorems if theorem.expected == expected]


@pytest.mark.parametrize(
    ("names", "factor", "outcome"),
    [
        (_names(kip_46.THEOREMS), 1, "holds"),
        (_names(kip_46.THEOREMS, "refuted"), 2, "finding"),
        (_names(replication.THEOREMS), 2, "holds"),
        (_names(replication.THEOREMS, "refuted"), 2, "finding"),
        (OFFICES, 1, "holds"),
    ],
    ids=["healing", "as-written", "replication", "reading", "offices"],
)
def test_theorems_come_out_as_expected(names: list[str], factor: int, outcome: str) -> None:
    """Every theorem has the outcome that the register expects, in small lists at least."""
    found = find_outcomes(names, factor, tier="full", cache=Cache(KEPT))
    assert found == dict.fromkeys(names, outcome)


@pytest.mark.slow
def test_protocol_is_proved_for_two_replicas() -> None:
    """Every theorem that is to hold does, with certificates, where lists have two elements."""
    names = _names(protocol.THEOREMS)
    found = find_outcomes(names, 2, tier="full", timeout_s=300.0, cache=Cache(KEPT))
    assert found == dict.fromkeys(names, "holds")


NEEDED = [
    (OFFICES, 1),
    pytest.param(
        ["heal-choice-has-fewest", "heal-task-names-nobody-twice"], 2, marks=pytest.mark.slow
    ),
    pytest.param(_names(replication.THEOREMS), 2, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("names", "factor"), NEEDED, ids=["offices", "healing", "replication"])
def test_every_hypothesis_is_needed(names: list[str], factor: int) -> None:
    """Each hypothesis is needed, and what bounds the paths is not."""
    results = examine_hypotheses(names, factor, processes=1)
    assert results != []
    assert [(r.theorem.name, r.hypothesis) for r in results if not r.as_expected] == []


# What is not vacuous ------------------------------------------------------------------------------


def _elects(values: Any, after: Any) -> bool:
    return after.state.leader not in (-1, values["leader"])


def _someone_leaves(values: Any, after: Any) -> Any:
    return after.assigned.count() < values["assigned"].count()


def _drops(values: Any, after: Any) -> Any:
    return _someone_leaves(values, after) & after.announce_due


def _completes(values: Any, after: Any) -> Any:
    return _someone_leaves(values, after) & after.completing


def _happens(*_: Any) -> bool:
    return True


def _accepted(happens: Callable[..., bool]) -> Callable[..., bool]:
    """Return whether a step that may be refused is not, and something happens in it."""
    return lambda values, after: after is not None and happens(values, after)


Case = tuple[Subject, dict[str, str], tuple[Hypothesis, ...], Callable[..., Any]]
STEPS: list[Case] = [
    *(
        (protocol.STEP, {"write": kind}, (invariant.INVARIANT,), _accepted(happens))
        for kind, happens in (
            *((kind, _happens) for kind in steps.WRITES),
            *(("write-state", _elects), ("write-assigned", _drops), ("write-assigned", _completes)),
        )
    ),
    *(
        (replication.STEP, {"verb": verb}, (replication.INVARIANT,), _accepted(_happens))
        for verb in replication.states.ACTIONS
    ),
    *(
        (
            topics.deletion,
            {"action": each},
            (topics.DEAD_NOT_DELETING,),
            lambda _, r: r[0] != r[1],
        )
        for each in ("answer", "die", "return", "controller")
    ),
    (controllers.office, {}, (), lambda _, found: found[0] is not None),
    (kafka_42.MOVED_42, {}, (), lambda _, found: found[0] != found[1]),
    (kafka_42.MOVED_42, {}, (), lambda _, found: len(found[2]) > 0),
    *(
        (QUEUE, {}, (), lambda _, found, word=word: found[0] == word)
        for word in (StartTask.__name__, "heal.task.satisfied-skipped", "heal.task.stale")
    ),
    (CHOICE, {}, (), lambda _, chosen: chosen is not None),
    (FAILOVER, {}, (), lambda _, found: len(found[0]) > 1),
]


@pytest.mark.parametrize(
    ("subject", "words", "hypotheses", "happens"),
    STEPS,
    ids=lambda each: each.name if isinstance(each, Subject) else "",
)
def test_claims_are_not_vacuous(
    subject: Subject,
    words: dict[str, str],
    hypotheses: tuple[Hypothesis, ...],
    happens: Callable[..., Any],
) -> None:
    """Every kind of step and answer there is comes up in some state that is assumed."""
    shapes = [
        shape
        for shape in subject.shapes(2)
        if all(shape[key].word == word for key, word in words.items())
    ]
    goals = [ProofGoal("never", lambda values, after: not happens(values, after))]
    assert any(
        find_violations(subject.function, shape, hypotheses, goals, hashable=subject.hashable)
        for shape in shapes
    )


# Known counterexamples ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        (
            "lag-estimate-within-less-than-gap",
            {"times_ms": (0,), "ends": (1,), "first_ms": 0, "second_ms": 0, "now_ms": 1},
        ),
        (
            "hw-stall-within-less-than-limit",
            {"times_ms": (0,), "ends": (1,), "follower_ends": (0,), "lag_ms_max": 1},
        ),
    ],
)
def test_constant_is_tight(name: str, arguments: dict[str, Any]) -> None:
    """With the constant less by one the smallest counterexample is the known one."""
    found = prove_theorem(name, 2).counterexample
    assert found is not None
    assert {key: found.arguments[key] for key in arguments} == arguments


def test_error_without_full_responses_has_no_bound() -> None:
    """A follower that stays behind is never credited: the estimate passes any constant."""
    found = prove_theorem("lag-estimate-bounded-without-full-responses", 2).counterexample
    assert found is not None
    result: Any = lag.fetch_twice.function(found.arguments)
    assert result[0] > result[1] + found.arguments["gap_ms"] + 10_000
