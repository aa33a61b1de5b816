"""Replication across elections: runs of the model, and faults in symbolic logs."""

import random
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from claim_proofs import prove_theorem

from reassure_model.outcome import Accepted
from reassure_model.protocols.kafka_4485 import replication
from reassure_model.protocols.kafka_4485.replication import LEADER_ALONE, Action, Replication
from reassure_proofs.engine.prover import ProofFaultError
from reassure_proofs.engine.statement import choose_readings
from reassure_proofs.engine.symex import GaveUp
from reassure_proofs.protocols.kafka_4485 import logs
from reassure_proofs.protocols.kafka_4485 import replication_state as states
from reassure_proofs.protocols.kafka_4485.logs import SeenLog, load
from reassure_proofs.protocols.kafka_4485.replication import holds_invariant, observe
from reassure_spec.readings import get_profile

AMENDED = choose_readings("kafka-4485", states.AMENDMENTS)
MODEL = "reassure_model.protocols.kafka_4485.replication"


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


def test_fault_in_symbolic_logs_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs that are cut wrongly give a result that the plain code does not give."""
    monkeypatch.setattr(SeenLog, "_place", lambda self, _: self.end)
    with pytest.raises(ProofFaultError):
        prove_theorem("replication-mark-within-end", 2, verb="advance")


def test_fault_in_counting_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A count that does not look at records gives a result that the plain code does not give."""
    monkeypatch.setattr(load(MODEL), "count_common", _count_ends)
    with pytest.raises(ProofFaultError):
        prove_theorem("replication-mark-within-end", 2, verb="follow")


def _count_ends(log: Any, other: Any) -> Any:
    if isinstance(log, SeenLog):
        return min(log.end, other.end)
    return logs.count_plain(log, other)


def test_pieces_are_joined_only_where_they_were_cut() -> None:
    """A chain of pieces that leaves a gap is refused, as its records would lose their places."""
    log = SeenLog((0, 4), (7, 8), 6)
    assert logs.join_pieces((*log[:3], *log[3:])).end == 6
    with pytest.raises(GaveUp, match="joins logs elsewhere"):
        logs.join_pieces((*log[:2], *log[3:]))


def test_amended_profile_keeps_the_invariant() -> None:
    """The profile with every amendment differs in who is close at first, and keeps it too."""
    function = partial(states.take, readings=get_profile("kip-236-amended"))
    name = "replication-step-keeps-invariant"
    assert prove_theorem(name, 2, function).verdict == "proved"
