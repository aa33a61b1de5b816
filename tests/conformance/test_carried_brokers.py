"""Mutants of what a leader concludes, carried into the bundled brokers: predictions come true.

The brokers conclude by the model's own functions, and so have whatever mutant is planted there.
"""

from dataclasses import astuple, replace
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any, Final

import pytest
from told_brokers import tell

from reassure_conformance.gate.replication.brokers_outcome import BrokersResult
from reassure_conformance.gate.story import BROKERS, format_story, make_story, shipped_stories
from reassure_controller.replication import followers, leading, serving
from reassure_controller.replication.leading import Leadership
from reassure_controller.replication.rules import ReplicationRules
from reassure_model.protocols import kafka_4485 as model
from reassure_mutation.kills import Reference
from reassure_mutation.linked import Mutant
from reassure_mutation.protocols.kafka_4485 import worlds
from reassure_mutation.table import Killable, load_table, make_reference
from reassure_spec.znodes import ReplicaList
from reassure_zookeeper.server import Server

CARRIED: Final = (
    model.start_leader,
    model.fetch,
    model.record_fetch,
    model.evaluate,
    model.estimate_lag,
    model.compute_pseudo_isr,
    model.compute_high_watermark,
)
"""The functions that brokers conclude by here."""
SEED: Final = 7
DRAWN: Final = 16
DIES, NEVER_RESTS = "dies", "never rests"


class Carried:
    """What a broker concludes while it leads, by functions of the model."""

    def __init__(self, reference: Reference) -> None:
        self._get: Any = reference.linked.get

    def begin(
        self,
        broker: int,
        replicas: ReplicaList,
        isr: ReplicaList,
        end: int,
        high_watermark: int,
        now_ms: int,
        rules: ReplicationRules,
    ) -> Leadership:
        """Begin with what the model notes of followers."""
        begun = leading.begin(broker, replicas, isr, end, high_watermark, now_ms, rules)
        order = put_first(broker, replicas)
        said = self._get(model.start_leader)(order, end, now_ms, isr, rules.readings)
        return note_all(begun, said)

    def note(
        self,
        leader: Leadership,
        follower: int,
        offset: int,
        end: int,
        now_ms: int,
        rules: ReplicationRules,
    ) -> Leadership:
        """Note a fetch as the model does."""
        noted = leading.note(leader, follower, offset, end, now_ms, rules)
        view = view_leader(leader, end)
        said = self._get(model.fetch)(view, follower, offset, now_ms, rules.readings)
        return note_all(noted, said)

    def evaluate(
        self, leader: Leadership, end: int, now_ms: int, rules: ReplicationRules
    ) -> Leadership:
        """Look as the model does; the mark waits for the stored set too, where it is read so."""
        view = view_leader(leader, end)
        close = self._get(model.evaluate)(view, now_ms, rules.lag_ms_max).pseudo_isr
        offsets = (end, *(each.offset for each in view.followers))
        waited = {*close}
        if rules.readings.hw_over_stored_isr == "yes":
            waited |= {*leader.isr, *leader.attempted}
        advance = self._get(model.compute_high_watermark)
        mark = advance(leader.high_watermark, view.replicas, offsets, tuple(waited))
        close = tuple(one for one in leader.replicas if one in close)
        return replace(leader, pseudo_isr=close, high_watermark=mark)


def put_first(leader: int, replicas: ReplicaList) -> ReplicaList:
    """Return the replicas as the model has them, the leader first."""
    return (leader, *(one for one in replicas if one != leader))


def view_leader(leader: Leadership, end: int) -> model.Leader:
    """Return a leader as the model has it."""
    order = put_first(leader.broker, leader.replicas)
    noted = tuple(model.Follower(*astuple(leader.followers[one])) for one in order[1:])
    return model.Leader(order, end, noted, leader.high_watermark, leader.pseudo_isr, leader.isr)


def note_all(leader: Leadership, said: model.Leader) -> Leadership:
    """Return a leader that has noted what the model has."""
    noted = zip(said.replicas[1:], said.followers, strict=True)
    known = {one: followers.Follower(*astuple(each)) for one, each in noted}
    return replace(leader, followers=MappingProxyType(known))


@pytest.fixture(scope="module")
def reference() -> Reference:
    """The functions of the model, of which mutants are planted."""
    return make_reference(worlds, worlds.PROFILE)


@pytest.fixture(scope="module")
def drawn(reference: Reference) -> list[tuple[Mutant, Killable]]:
    """Mutants that are drawn of those which can be killed, each with what was predicted."""
    table = load_table(worlds, worlds.PROFILE)
    assert table is not None
    mutants = {each.name: each for each in reference.list_mutants() if each.function in CARRIED}
    names = Random(SEED).sample(sorted(mutants.keys() & table.killable.keys()), DRAWN)
    return [(mutants[name], table.killable[name]) for name in names]


@pytest.fixture(autouse=True)
def carry(reference: Reference, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let brokers conclude by the model."""
    carried = Carried(reference)
    for name in ("begin", "note", "evaluate"):
        monkeypatch.setattr(serving, name, getattr(carried, name))


def find(result: BrokersResult) -> str:
    """Return what a run found: a clause, that a broker died or never rested, "" for nothing."""
    if result.failure is not None:
        return result.failure.violation.clause
    return DIES if result.died else NEVER_RESTS if result.unsettled else ""


@pytest.mark.slow
def test_right_functions_hold(tmp_path: Path, own_server: Server) -> None:
    """Without a mutant the brokers hold in every shipped tale."""
    shipped = (format_story(replace(tale, why=())) for tale in shipped_stories(BROKERS))
    assert find(tell(tmp_path, own_server, shipped)) == ""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("number", range(DRAWN))
def test_prediction_comes_true(
    number: int,
    reference: Reference,
    drawn: list[tuple[Mutant, Killable]],
    tmp_path: Path,
    own_server: Server,
) -> None:
    """Its own tale is violated by the clause that was predicted; who cannot go on shows by that."""
    mutant, predicted = drawn[number]
    with reference.linked.planted(mutant):
        result = tell(tmp_path, own_server, [format_story(make_story(predicted.steps))])
    assert find(result) in (predicted.clause, DIES, NEVER_RESTS), (mutant.name, predicted.clause)
