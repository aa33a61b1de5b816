"""The protocol by induction: verdicts, that no step is vacuous, and planted faults."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reassure_model.outcome import Accepted
from reassure_model.protocols.kip_236 import apply_failover
from reassure_model.protocols.kip_236.rules import accept_write
from reassure_model.writes import UpdateReassignment, WriteAssigned, WriteState
from reassure_proofs.engine.cache import Cache
from reassure_proofs.engine.prover import prove
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.runner import prove_all
from reassure_proofs.engine.tasks import Task, run_task
from reassure_proofs.protocols.kip_236 import protocol
from reassure_proofs.protocols.kip_236.protocol import (
    DROP_FOLLOWED,
    INVARIANT,
    STEP,
    THEOREMS,
    WRITES,
    crash_and_resume,
    holds_invariant,
    make_partition,
    take,
)
from reassure_spec.readings import get_profile

KEPT = Path(__file__).parents[2] / "build" / "proofs"
"""What was proved of the same code before."""
NAMES = [theorem.name for theorem in THEOREMS if theorem.expected == "proved"]


def _prove(name: str, size: int, kind: str = "") -> str:
    """Return the verdict on a theorem up to a size, for one kind of step if it is named."""
    (theorem,) = get_theorems([name])
    shapes = [
        shape for shape in theorem.subject.shapes(size) if not kind or shape["write"].word == kind
    ]
    return prove(
        theorem.subject.function, shapes, theorem.assumptions, theorem.claim, hashable=True
    ).verdict


def test_protocol_is_proved_for_single_replicas() -> None:
    """Every theorem that is to hold does where each list has one element."""
    results = prove_all(NAMES, replication_factor=1, processes=1, cache=Cache(KEPT))
    assert {result.theorem.name: result.verdict for result in results} == dict.fromkeys(
        NAMES, "proved"
    )


@pytest.mark.slow
def test_protocol_is_proved_for_two_replicas() -> None:
    """Every theorem that is to hold does, with certificates, where lists have two elements."""
    results = prove_all(
        NAMES, replication_factor=2, processes=2, timeout_s=300.0, cache=Cache(KEPT)
    )
    assert [(r.theorem.name, r.reason) for r in results if r.verdict != "proved"] == []


@pytest.mark.parametrize("kind", WRITES)
def test_step_is_not_vacuous(kind: str) -> None:
    """The rules accept a step of every kind in some state of the invariant."""
    shapes = [shape for shape in STEP.shapes(2) if shape["write"].word == kind]
    result = prove(take, shapes, (INVARIANT,), lambda _, after: after is None, hashable=True)
    assert result.verdict == "refuted"
    assert result.counterexample is not None
    arguments = result.counterexample.arguments
    assert holds_invariant(make_partition(arguments), arguments)


def _elects(values: Any, after: Any) -> bool:
    return after is not None and after.state.leader not in (-1, values["leader"])


def _drops(values: Any, after: Any) -> bool:
    return (
        after is not None and len(after.assigned) < len(values["assigned"]) and after.announce_due
    )


def _completes(values: Any, after: Any) -> bool:
    return after is not None and len(after.assigned) < len(values["assigned"]) and after.completing


@pytest.mark.parametrize(
    ("kind", "happens"),
    [("write-state", _elects), ("write-assigned", _drops), ("write-assigned", _completes)],
)
def test_election_drop_and_completion_do_happen(
    kind: str, happens: Callable[[Any, Any], bool]
) -> None:
    """Elections, drops and completions are among the steps that the induction covers."""
    shapes = [shape for shape in STEP.shapes(2) if shape["write"].word == kind]

    def function(values: Any) -> bool:
        return happens(values, take(values))

    result = prove(function, shapes, (INVARIANT,), lambda _, found: not found, hashable=True)
    assert result.verdict == "refuted"


# Planted faults: rules that accept too much or forget something.


def _anything_goes(partition: Any, write: Any, around: Any, readings: Any) -> Any:
    if isinstance(write, WriteState):
        return Accepted(replace(partition, state=write.state))
    return accept_write(partition, write, around, readings)


def _change_without_drop(partition: Any, write: Any, around: Any, readings: Any) -> Any:
    outcome = accept_write(partition, write, around, readings)
    if isinstance(outcome, Accepted) and isinstance(write, UpdateReassignment):
        return Accepted(replace(outcome.state, drop_due=False))
    return outcome


def _top_grows(partition: Any, write: Any, around: Any, readings: Any) -> Any:
    outcome = accept_write(partition, write, around, readings)
    if isinstance(outcome, Accepted) and isinstance(write, WriteAssigned):
        flight = outcome.state.reassignment
        grown = replace(flight, top=flight.top + 1) if flight is not None else None
        return Accepted(replace(outcome.state, reassignment=grown))
    return outcome


def _as_written(partition: Any, write: Any, around: Any, readings: Any) -> Any:
    return accept_write(partition, write, around, get_profile("kip-236"))


@pytest.mark.parametrize(
    ("mutant", "name", "kind"),
    [
        (_anything_goes, "step-keeps-leader-in-isr", "write-state"),
        (_anything_goes, "step-raises-leader-epoch", "write-state"),
        (_anything_goes, "step-elects-live-in-sync", "write-state"),
        (_anything_goes, "step-gives-up-only-without-candidate", "write-state"),
        (_change_without_drop, "step-keeps-invariant", "update-reassignment"),
        (_top_grows, "step-keeps-top", "write-assigned"),
        (_as_written, "step-keeps-target", "write-assigned"),
        (_as_written, "step-records-sufficient-target", "update-reassignment"),
    ],
)
def test_mutant_of_the_rules_is_refuted(
    mutant: Any, name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules with a planted fault are refuted by the theorem that speaks of it."""
    monkeypatch.setattr(protocol, "accept_write", mutant)
    assert _prove(name, 2, kind) == "refuted"


def test_failover_that_forgets_the_drop_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were a drop that is due forgotten at a failover, the bound on the assignment would break."""

    def forget(partition: Any, readings: Any) -> Any:
        return replace(apply_failover(partition, readings), drop_due=False)

    monkeypatch.setattr(protocol, "apply_failover", forget)
    assert _prove("step-keeps-invariant", 2, "failover") == "refuted"


def test_controller_that_keeps_the_epoch_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller that owes a write which the rules refuse contradicts the model."""
    whole = protocol.next_write

    def stale(partition: Any, around: Any, readings: Any) -> Any:
        owed = whole(partition, around, readings)
        if owed is not None and isinstance(owed.write, WriteState):
            state = replace(owed.write.state, leader_epoch=partition.state.leader_epoch)
            return replace(owed, write=WriteState(state))
        return owed

    monkeypatch.setattr(protocol, "next_write", stale)
    assert _prove("owed-is-accepted", 1) == "refuted"


def test_failover_after_a_drop_can_drop_again() -> None:
    """Between a drop and its expansion an election and a failover drop a replica more.

    The smallest instance, on the plain model: the old leader was kept by the drop, another one
    leads now, and the next controller ranks anew.
    """
    values = {
        "assigned": (1, 2),
        "isr": (1, 2),
        "leader": 1,
        "leader_epoch": 0,
        "controller_epoch": 0,
        "target": (1, 3),
        "top": 1,
        "live": frozenset({1, 2, 3}),
        "known": frozenset({1, 2, 3}),
        "minimum": 1,
        "acting_epoch": 0,
        "drop_due": False,
    }
    assert holds_invariant(make_partition(values), values)
    assert not DROP_FOLLOWED.holds(values)
    final, resumed = crash_and_resume(values)
    assert final.assigned == (1, 2, 3)
    assert resumed[0].assigned == (1, 3)


def test_plan_ends_alike_once_the_drop_protects_the_target() -> None:
    """A failover that ends otherwise as written does not so once a drop spares the target."""
    name = "as-written-failover-ends-alike"
    (result,) = prove_all([name], processes=1)
    assert (result.verdict, result.outcome) == ("refuted", "finding")
    (record,) = run_task(Task((name,), (0,), 2, 60.0, readings=("drop.protects=target",)))
    assert (record["counterexamples"], record["certificate"]["gap"]) == ({}, "unsat")


@pytest.mark.slow
def test_invariant_is_needed_where_it_is_a_hypothesis() -> None:
    """Each theorem that rests on the invariant fails in some state outside of it."""
    for theorem in THEOREMS:
        rests = INVARIANT in theorem.hypotheses and theorem.name != "step-keeps-isr-distinct"
        if rests and theorem.subject.name in ("step", "owed", "caught-up"):
            others = [item for item in theorem.assumptions if item is not INVARIANT]
            function, shapes = theorem.subject.function, theorem.shapes(1)
            result = prove(function, shapes, others, theorem.claim, hashable=True)
            assert result.verdict == "refuted", theorem.name
