"""Shipped controllers as a machine: what may happen and what must never be."""

from collections.abc import Mapping
from typing import Any, Final

from reassure_model.copies import Append, find_deleted_in_sync, find_empty_leader, is_in_sync
from reassure_model.fields import Domain, Flag, Held, ListOf, OneOf, SetOf
from reassure_model.machine import (
    CONTROLLER,
    DIE,
    FAILOVER,
    JOIN,
    ONLY,
    RETURN,
    Act,
    Goal,
    Machine,
    Property,
    always,
    reached,
)
from reassure_model.protocols.kafka_zk import (
    Alter,
    AskDeletion,
    DeleteZnode,
    Prefer,
    RemoveEntry,
    Shipped,
    ShutDown,
    WriteEntry,
    next_effect,
)
from reassure_model.protocols.kafka_zk.narration import VOCABULARY
from reassure_model.protocols.kafka_zk.properties import (
    find_bad_lists,
    find_emptied_assignment,
    find_entry_for_ever,
    find_leaderless,
    find_offline_for_good,
    find_outside_assigned,
    find_stray,
    is_at_rest,
)
from reassure_model.protocols.kafka_zk.world import enabled, step
from reassure_spec.words import (
    format_replicas,
    spell_replicas,
)
from reassure_spec.znodes import NO_LEADER, ReplicaList

LONGEST_PLAN: Final = 10

FIELDS: Final[Mapping[str, Domain]] = {
    "leader": OneOf((NO_LEADER,), "brokers"),
    "live": SetOf("brokers"),
    "isr": ListOf("brokers", "brokers"),
    "assigned": ListOf("brokers", "places"),
    "running": SetOf("brokers"),
    "holding": SetOf("brokers"),
    "leader_epoch": Held(0),
    "adding": ListOf("brokers", "brokers"),
    "removing": ListOf("brokers", "brokers"),
    "told": SetOf("brokers"),
    "entry": OneOf((None,), "entries"),
    "unread": Flag(),
    "unwatched": Flag(),
    "resume": Flag(),
    "overlooked": Flag(),
    "deleting": Held(False),
    "plan": ListOf("effects", LONGEST_PLAN),
}
"""`places` has as many members as replicas can be assigned, `effects` what a plan can hold."""


def _say_call(target: ReplicaList | None) -> str:
    return "cancel" if target is None else f"alter {ONLY}={spell_replicas(target)}"


def _tell_call(target: ReplicaList | None) -> str:
    return "call: cancel" if target is None else f"call: {format_replicas(target)}"


def _say_entry(target: ReplicaList | None) -> str:
    return "znode" if target is None else f"znode {ONLY}={spell_replicas(target)}"


ACTS: Final = (
    Act("alter", Alter, "targets", saying=_say_call, words=_tell_call, counted="calls"),
    Act("write", WriteEntry, "entries", command="znode", saying=_say_entry, counted="writes"),
    Act("delete-znode", DeleteZnode, saying=lambda _: "znode", counted="removals"),
    CONTROLLER,
    JOIN,
    Act("append", Append, shared=True),
    DIE,
    RETURN,
    FAILOVER,
    Act("prefer", Prefer, shared=True),
    Act("shut-down", ShutDown, "brokers", "broker"),
    Act("delete-topic", AskDeletion, shared=True, counted="deletions"),
)

PROPERTIES: Final[tuple[Property[Shipped], ...]] = (
    Property("shipped.isr.without-deleted", always(find_deleted_in_sync), "deleted-in-sync"),
    Property("shipped.leader.holds-committed", always(find_empty_leader), "empty-leader"),
    Property(
        "shipped.isr.within-assigned",
        always(find_outside_assigned),
        "outside-assigned",
        at_rest=True,
    ),
    Property(
        "shipped.assigned.holds-committed",
        always(find_emptied_assignment),
        "emptied-assignment",
        at_rest=True,
    ),
    Property("shipped.change.led", always(find_leaderless), "leaderless"),
    Property("shipped.isr.electable", always(find_offline_for_good), "offline-for-good"),
    Property("shipped.cancel.no-strays", always(find_stray), "stray", at_rest=True),
    Property(
        "shipped.entry.not-for-ever", always(find_entry_for_ever), "entry-for-ever", at_rest=True
    ),
    Property("shipped.assignment.original-derivable", always(find_bad_lists), "bad-lists"),
)

GOALS: Final[tuple[Goal[Shipped], ...]] = (
    Goal("added-replica-leads", reached(lambda s: s.leader in s.adding)),
    Goal(
        "nobody-leads-while-in-flight",
        reached(lambda s: s.leader == NO_LEADER and bool(s.adding)),
    ),
    Goal(
        "target-in-sync", reached(lambda s: bool(s.adding) and is_in_sync(s, s.assignment.target))
    ),
    Goal("assignment-written", reached(lambda s: s.plan == (RemoveEntry(s.assigned, "B7"),))),
)
"""What must be reachable, or the properties would hold for want of a story."""


def is_settled(shipped: Shipped) -> bool:
    """Whether nothing is in flight but what waits for a dead broker."""
    now = shipped.assignment
    return not now.is_reassigning or any(r not in shipped.live for r in now.target)


def _step(shipped: Shipped, action: Any, _: Any) -> Any:
    return step(shipped, action)


MACHINE: Final = Machine(
    name="kafka-zk",
    summary="what shipped controllers on ZooKeeper did from Kafka 2.4 to 3.9",
    state=Shipped,
    fields=FIELDS,
    acts=ACTS,
    step=_step,
    next_effect=lambda shipped, _: next_effect(shipped),
    enabled=lambda shipped, _, sets: enabled(shipped, sets.get("targets", ())),
    is_at_rest=lambda shipped, _: is_at_rest(shipped),
    properties=PROPERTIES,
    goals=GOALS,
    vocabulary=VOCABULARY,
    is_settled=is_settled,
)
