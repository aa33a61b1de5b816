"""Replication across elections: verdicts, that no action is vacuous, and planted faults."""

import random
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reassure_model.outcome import Accepted
from reassure_model.protocols.kafka_4485 import replication
from reassure_model.protocols.kafka_4485.replication import (
    ACTIONS,
    LEADER_ALONE,
    Action,
    Replication,
)
from reassure_proofs.engine.cache import Cache
from reassure_proofs.engine.necessity import examine_hypotheses
from reassure_proofs.engine.prover import ProofFaultError, prove
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.runner import prove_all
from reassure_proofs.engine.statement import choose_readings
from reassure_proofs.protocols.kafka_4485 import logs
from reassure_proofs.protocols.kafka_4485 import replication as replicas
from reassure_proofs.protocols.kafka_4485.logs import SeenLog, load
from reassure_proofs.protocols.kafka_4485.replication import (
    INVARIANT,
    STEP,
    THEOREMS,
    holds_invariant,
    observe,
)
from reassure_spec.readings import get_profile

KEPT = Path(__file__).parents[2] / "build" / "proofs"
"""What was proved of the same code before."""
NAMES = [theorem.name for theorem in THEOREMS]
PROVED = [theorem.name for theorem in THEOREMS if theorem.expected == "proved"]
AMENDED = choose_readings("kafka-4485", replicas.AMENDMENTS)
MODEL = "reassure_model.protocols.kafka_4485.replication"


def _prove(name: str, verb: str) -> Any:
    """Return what comes of a theorem for two brokers and one kind of action."""
    (theorem,) = get_theorems([name])
    shapes = [item for item in theorem.shapes(2) if item["verb"].word == verb]
    return prove(theorem.subject.function, shapes, theorem.assumptions, theorem.claim)


def _walk(seed: int, brokers: int = 3, steps: int = 60) -> list[tuple[Replication, Action]]:
    """Return the states of a random run and what was done in each."""
    chance, state = random.Random(seed), replication.make_replication(brokers)
    walk = []
    for _ in range(steps):
        action = chance.choice(replication.enabled(state))
        walk.append((state, action))
        outcome = replication.step(state, action, AMENDED)
        state = outcome.state if isinstance(outcome, Accepted) else state
    return walk


def test_replication_is_as_expected_for_two_brokers() -> None:
    """Everything is proved with the amendments, and refuted without any one of them."""
    results = prove_all(NAMES, replication_factor=2, processes=1, cache=Cache(KEPT))
    assert {result.outcome for result in results} == {"holds", "finding"}
    assert [r.theorem.name for r in results if r.outcome == "holds"] == PROVED


@pytest.mark.slow
def test_every_hypothesis_about_replication_is_needed() -> None:
    """Without the invariant each claim fails."""
    results = examine_hypotheses(PROVED, replication_factor=2, processes=1)
    assert results != []
    assert [(r.theorem.name, r.hypothesis) for r in results if not r.as_expected] == []


@pytest.mark.parametrize("verb", ACTIONS)
def test_action_is_not_vacuous(verb: str) -> None:
    """Every kind of action is taken in some state of the invariant, and may change something."""
    shapes = [item for item in STEP.shapes(2) if item["verb"].word == verb]
    refused = prove(STEP.function, shapes, (INVARIANT,), lambda _, after: after is None)
    assert refused.verdict == "refuted"


def test_runs_stay_in_the_invariant() -> None:
    """The formula that is proved holds of states that plain runs of the model reach."""
    elections = 0
    for seed in range(30):
        for state, _ in _walk(seed):
            elections = max(elections, state.leader_epoch)
            assert holds_invariant(observe(state, (0, 1, 2)), (0, 1, 2))
    assert elections > 2


def test_numbers_of_brokers_make_no_difference() -> None:
    """The model takes the same steps whatever brokers are called, as the shapes suppose."""
    seats = (2, 0, 1)
    for seed in range(20):
        for state, action in _walk(seed):
            seat = seats[action.broker]
            alone = isinstance(action, LEADER_ALONE) and action.broker == state.leader
            assert alone or not isinstance(action, LEADER_ALONE)
            outcome = replication.step(state, action, AMENDED)
            other = replication.step(_renumber(state, seats), type(action)(seat), AMENDED)
            assert isinstance(outcome, Accepted) == isinstance(other, Accepted)
            if isinstance(outcome, Accepted) and isinstance(other, Accepted):
                assert _renumber(outcome.state, seats) == other.state


def _renumber(state: Replication, seats: tuple[int, ...]) -> Replication:
    order = sorted(range(len(seats)), key=lambda broker: seats[broker])
    term = replace(
        state.term,
        isr=frozenset(seats[broker] for broker in state.term.isr),
        pseudo_isr=frozenset(seats[broker] for broker in state.term.pseudo_isr),
        offsets=tuple(state.term.offsets[broker] for broker in order),
    )
    return replace(
        state,
        replicas=tuple(state.replicas[broker] for broker in order),
        leader=seats[state.leader],
        isr=frozenset(seats[broker] for broker in state.isr),
        term=term,
    )


def _let_everyone_in(state: Any, broker: int, _: object) -> Any:
    isr, version = state.term.isr | {broker}, state.version + 1
    term = replace(state.term, isr=isr, version=version)
    return Accepted(replace(state, isr=isr, version=version, term=term))


def _forget_to_cut(state: Any, broker: int, _: object) -> Any:
    replica = replace(state.replicas[broker], leader_epoch=state.leader_epoch, request=None)
    both = (*state.replicas[:broker], replica, *state.replicas[broker + 1 :])
    return Accepted(replace(state, replicas=both))


def _elect_anybody(state: Any, broker: int, readings: Any) -> Any:
    everyone = replicas.Members((True,) * len(state.replicas))
    return load(MODEL)._elect(replace(state, isr=everyone), broker, readings)


@pytest.mark.parametrize(
    ("verb", "fault"),
    [
        ("join", _let_everyone_in),
        ("follow", _forget_to_cut),
        ("elect", _elect_anybody),
    ],
)
def test_fault_in_the_model_is_caught(
    monkeypatch: pytest.MonkeyPatch, verb: str, fault: object
) -> None:
    """A step that lets in, keeps or elects what it must not leads out of the invariant."""
    module = load(MODEL)
    assert _prove("replication-step-keeps-invariant", verb).verdict == "proved"
    monkeypatch.setitem(module.STEPS, module.ACTIONS[verb], fault)
    assert _prove("replication-step-keeps-invariant", verb).verdict == "refuted"


def test_fault_in_symbolic_logs_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs that are cut wrongly give a result that the plain code does not give."""
    monkeypatch.setattr(SeenLog, "_place", lambda self, _: self.end)
    with pytest.raises(ProofFaultError):
        _prove("replication-mark-within-end", "advance")


def test_fault_in_counting_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A count that does not look at records gives a result that the plain code does not give."""
    monkeypatch.setattr(load(MODEL), "count_common", _count_ends)
    with pytest.raises(ProofFaultError):
        _prove("replication-mark-within-end", "follow")


def _count_ends(log: Any, other: Any) -> Any:
    if isinstance(log, SeenLog):
        return min(log.end, other.end)
    return logs.count_plain(log, other)


def test_pieces_are_joined_only_where_they_were_cut() -> None:
    """A chain of pieces that leaves a gap is refused, as its records would lose their places."""
    from reassure_proofs.engine.symex import GaveUp

    log = SeenLog((0, 4), (7, 8), 6)
    assert logs.join_pieces((*log[:3], *log[3:])).end == 6
    with pytest.raises(GaveUp, match="joins logs elsewhere"):
        logs.join_pieces((*log[:2], *log[3:]))


def test_amended_profile_keeps_the_invariant() -> None:
    """The profile with every amendment differs in who is close at first, and keeps it too."""
    function = partial(replicas.take, readings=get_profile("kip-236-amended"))
    (theorem,) = get_theorems(["replication-step-keeps-invariant"])
    shapes = theorem.shapes(2)
    assert prove(function, shapes, theorem.assumptions, theorem.claim).verdict == "proved"
