"""Kafka 0.8.0 to 2.3: only the old znode says where a partition is going."""

from dataclasses import replace
from typing import Final

from reassure_judge.history import ElectionSeen
from reassure_judge.protocols.kafka_42.owed import find_owed
from reassure_judge.protocols.kafka_zk.partition import (
    ENTRIES,
    DropEntry,
    Logged,
    Outcome,
    WriteLists,
    Written,
)
from reassure_judge.protocols.kafka_zk.router import EntryWritten, KafkaHistory, KafkaRouter
from reassure_judge.protocols.kafka_zk.rules import KafkaRules, make_invariants
from reassure_judge.protocols.kafka_zk.writes import (
    accept_common,
    accept_path_gone,
    accept_replicas,
)
from reassure_judge.protocols.kafka_zk.writes import fail_over as fail_over_with_lists
from reassure_judge.rules import Sign, Signs
from reassure_judge.trees import KAFKAS_OWN
from reassure_model.controllers import Controllership
from reassure_model.machine import Judgement
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Environment
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import ReplicaList


def accept(hosted: Logged, write: Written, around: Environment, readings: Readings) -> Outcome:
    """Judge any write to a partition."""
    if isinstance(write, WriteLists):
        return accept_replicas(hosted, write, cut=readings.move_cut_isr == "yes")
    if isinstance(write, DropEntry):
        as_set = readings.move_same_replicas == "as-set"
        if as_set and set(hosted.assigned or ()) == set(hosted.entry or ()):
            hosted = replace(hosted, entry=hosted.assigned)
        return accept_path_gone(hosted, around, readings)
    if readings.move_expand_first == "no":
        # As written nobody assigns the new replicas before their leader is told to let them in.
        started = (replica for target in hosted.asked for replica in target)
        hosted = replace(hosted, told=tuple(dict.fromkeys((*hosted.told, *started))))
    return accept_common(hosted, write, around, readings, ENTRIES)


def fail_over(hosted: Logged, readings: Readings) -> Logged:
    """Return the partition as the next controller finds it.

    It tells each leader what is assigned, in the leader epoch that the leader has: who was told of
    a target that no znode names any more goes by that, until it leads in another epoch.
    """
    after = fail_over_with_lists(hosted, readings)
    if readings.move_expand_first == "yes":
        return replace(after, halfway=hosted.entry if hosted.begun else hosted.halfway)
    started = (replica for target in hosted.asked for replica in target)
    return replace(after, told=tuple(dict.fromkeys((*after.told, *hosted.told, *started))))


_LATE_REGISTRATION: Final = 4
"""The version of a broker's registration from Kafka 0.10.2 on."""


class EntriesRouter(KafkaRouter):
    """Reads settings as these versions do."""

    def _read_settings(
        self, cluster: KafkaHistory, path: str, data: bytes | None
    ) -> tuple[int | None, bool | None] | None:
        """Read settings without any content as none."""
        return super()._read_settings(cluster, path, data or None)


class EntriesRules(KafkaRules):
    """Kafka without lists."""

    router = EntriesRouter
    profiles = driven = ("kafka-42",)
    flights = (EntryWritten,)

    @classmethod
    def find_sign(cls, signs: Signs) -> Sign | None:
        """Return the tree of Kafka's own that was written though topics' znodes have no lists."""
        tree = next((tree for tree in KAFKAS_OWN if tree in signs.trees), None)
        if tree is None or not signs.without_lists:
            return None
        # Kafka itself takes replicas out of the in-sync set before it writes the assignment, and
        # from 0.8.1 adds the target to it before it starts a replica.
        readings = {"move.cut-isr": "yes", "move.expand-first": "yes"}
        if signs.fenced:
            readings["controller.fenced"] = "yes"
        if signs.brokers and min(signs.brokers) >= _LATE_REGISTRATION:
            readings["election.order"] = "assignment"
        words = f"there is {tree}, and no adding_replicas in topics' znodes"
        return Sign(0, words, readings)

    judgement = Judgement(
        Logged(),
        accept,
        fail_over,
        find_owed,
        make_invariants("move.isr.within-assigned"),
        ("begun", "done", "completing"),
    )

    def take_entry(self, before: Logged, target: ReplicaList) -> Logged:
        """Return the partition with one target more that a controller may have read."""
        others = tuple(each for each in before.asked if each != target)
        return replace(before, entry=target, asked=(*others, target))

    def tells_flight(self, event: object) -> bool | None:
        """Return None: entries say what is asked for, and not how far it has come."""
        return None

    def find_target(self, event: object) -> ReplicaList | None:
        """Return the target that the old znode names."""
        return event.target if isinstance(event, EntryWritten) else None

    def find_route(self, event: object) -> str:
        """Return that it is an entry of the old znode."""
        return "entry"

    @clause("controller.epoch.raised-by-one", "controller.registered-ephemeral")
    def accept_election(
        self, before: Controllership, election: ElectionSeen
    ) -> Accepted[Controllership] | Rejected:
        """Judge an election, which takes two transactions before 2.1: `/controller`, the epoch."""
        broker, epoch, ephemeral = election
        if broker is not None and epoch == before.epoch:
            if not ephemeral:
                return Rejected(
                    "controller.registered-ephemeral", "/controller outlives its session"
                )
            return Accepted(Controllership(broker, epoch), ("controller.registered-ephemeral",))
        if broker is None and before.broker is not None and epoch == before.epoch + 1:
            after = Controllership(None, epoch)
            return Accepted(after, ("controller.epoch.raised-by-one",))
        outcome = super().accept_election(before, election)
        if isinstance(outcome, Rejected) and outcome.clause == "controller.election.atomic":
            # In one transaction or two: nobody was elected, and the epoch is another one.
            return Rejected("controller.epoch.raised-by-one", outcome.reason)
        return outcome


RULES: Final = EntriesRules
