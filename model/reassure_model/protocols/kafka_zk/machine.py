"""Shipped controllers as a machine: what may happen to a partition and what must never be."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from reassure_model.copies import (
    Append,
    can_join,
    find_deleted_in_sync,
    find_empty_leader,
    find_nothing_held,
    find_outside,
    find_running_unassigned,
    happen,
    is_in_sync,
    list_happenings,
)
from reassure_model.environment import Controller, Die, Failover, Join, NotPossible, Return
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
from reassure_model.outcome import Accepted, Rejected
from reassure_model.protocols.kafka_zk import (
    Action,
    Alter,
    AskDeletion,
    DeleteZnode,
    Outcome,
    Prefer,
    RemoveEntry,
    Shipped,
    ShutDown,
    WriteEntry,
    act,
    next_effect,
    plan_call,
    plan_for_deaths,
    plan_office,
    without,
    write_leader,
)
from reassure_model.protocols.kafka_zk.narration import VOCABULARY
from reassure_model.selectors import select_controlled_shutdown, select_offline, select_preferred
from reassure_spec.clauses import checks, clause
from reassure_spec.words import format_replicas, spell_replicas
from reassure_spec.znodes import NO_LEADER, ReplicaList


@clause("shipped.isr.told-may-join")
def can_join_told(shipped: Shipped, replica: int) -> bool:
    """Whether the leader was told of a replica that can be taken into the in-sync set."""
    return replica in shipped.told and can_join(shipped, replica)


def enabled(shipped: Shipped, targets: tuple[ReplicaList | None, ...] = ()) -> tuple[Action, ...]:
    """Return every action that is possible; `targets` are those that calls may ask for."""
    actions: list[Action] = [Controller()] if next_effect(shipped) is not None else []
    if not is_busy(shipped):
        calls = (Alter(target) for target in targets)
        actions += [c for c in calls if not isinstance(plan_call(shipped, c.target), Rejected)]
    joining = (r for r in sorted(shipped.running) if can_join_told(shipped, r))
    known = shipped.live | shipped.running | shipped.holding | frozenset(shipped.assigned)
    return (*actions, *list_happenings(shipped, joining, known), Failover())


@clause("shipped.call.one-event-at-a-time")
def is_busy(shipped: Shipped) -> bool:
    """Whether the controller is at an event, or one comes first, so that it takes no call.

    Before it takes a call it has heard of deaths, and has come to an end of taking office.
    """
    held = shipped.assignment.is_reassigning or shipped.entry is not None
    return bool(shipped.plan or plan_for_deaths(shipped)) or (shipped.resume and held)


@checks
def elect_preferred(shipped: Shipped) -> Outcome:
    """Elect the first of the list, which is the target's while one is in flight."""
    elected = select_preferred(shipped.assigned, shipped.isr, shipped.live)
    if elected is None:
        return Rejected("shipped.preferred.target-first", "it is not live and in sync")
    if elected.leader == shipped.leader:
        return Accepted(shipped)
    after = replace(shipped, overlooked=False)
    return Accepted(write_leader(after, elected.leader, elected.isr))


@checks
def shut_down(shipped: Shipped, broker: int, stopping: frozenset[int]) -> Outcome:
    """Take a broker out of the in-sync set, after another has taken over where it leads."""
    if broker not in shipped.isr:
        return Accepted(shipped)
    if broker != shipped.leader:
        return Accepted(write_leader(shipped, shipped.leader, without(shipped.isr, (broker,))))
    elected = select_controlled_shutdown(shipped.assigned, shipped.isr, shipped.live, stopping)
    if elected is None:
        return Rejected("shipped.shutdown.leader-moved", "nobody can take over; it keeps leading")
    return Accepted(write_leader(shipped, elected.leader, elected.isr))


def step(shipped: Shipped, action: Action) -> Outcome:
    """Take one action.

    Rejected is the answer to a call that is refused. Raises NotPossible for an action that has
    nothing to act upon, and for a call while the controller is at another event.
    """
    match action:
        case WriteEntry(target, created):
            heard = created and shipped.entry is None and not shipped.unwatched
            return Accepted(replace(shipped, entry=target, unread=shipped.unread or heard))
        case DeleteZnode(others) if others or shipped.entry is not None:
            deaf = shipped.unwatched or not shipped.unread
            return Accepted(replace(shipped, entry=None, unread=False, unwatched=deaf))
        case Alter(target) if not is_busy(shipped):
            plan = plan_call(shipped, target)
            if isinstance(plan, Rejected):
                return plan
            return Accepted(replace(shipped, plan=plan))
        case Prefer() if not is_busy(shipped):
            return elect_preferred(shipped)
        case ShutDown(broker, others) if not is_busy(shipped):
            return shut_down(shipped, broker, others | {broker})
        case AskDeletion():
            return Accepted(replace(shipped, deleting=True))
        case Controller():
            acted = act(shipped)
            if acted is not None:
                return Accepted(acted[1], effects=(acted[0],))
        case _:
            after = _happen(shipped, action)
            if after is not shipped:
                return Accepted(after)
    raise NotPossible(f"{action} is not possible in {shipped}")


def _happen(shipped: Shipped, action: Action) -> Shipped:
    """Return the partition after something that nobody decides, itself where it cannot be."""
    if isinstance(action, Join) and not can_join_told(shipped, action.replica):
        return shipped
    after = happen(shipped, action)
    match action:
        case Die(broker) if after is not shipped:
            # Who was down is told anew what to run when it is back. Whoever dies, the controller
            # looks for partitions without a leader.
            return replace(after, running=after.running - {broker}, overlooked=False)
        case Return(broker) if after is not shipped:
            again = shipped.assignment.is_reassigning and broker in shipped.assignment.target
            return replace(after, resume=shipped.resume or again)
        case Failover():
            unread = shipped.entry is not None
            after = replace(after, plan=(), unread=unread, unwatched=False, overlooked=False)
            return replace(after, plan=plan_office(after), resume=True)
    return after


def is_at_rest(shipped: Shipped) -> bool:
    """Whether the controller waits and nothing is in flight."""
    return next_effect(shipped) is None and not shipped.assignment.is_reassigning


@clause("shipped.change.led")
def find_leaderless(shipped: Shipped) -> str | None:
    """Say so when nobody leads, somebody could, and the controller waits (finding zk-6)."""
    if shipped.leader != NO_LEADER or next_effect(shipped) is not None:
        return None
    elected = select_offline(shipped.assigned, shipped.isr, shipped.live)
    return None if elected is None else f"nobody leads, {elected.leader} could"


@clause("shipped.isr.electable")
def find_offline_for_good(shipped: Shipped) -> str | None:
    """Say so when nobody leads and nobody ever can, and the controller waits (finding zk-11).

    Whoever comes back is elected only where it is both assigned and in sync.
    """
    if next_effect(shipped) is not None:
        return None
    return find_unelectable(shipped.leader, shipped.isr, shipped.assigned)


def find_unelectable(leader: int, isr: ReplicaList, assigned: ReplicaList) -> str | None:
    """Say so when nobody leads a partition and, of those in sync, nobody is assigned."""
    if leader != NO_LEADER or not assigned or any(replica in assigned for replica in isr):
        return None
    return f"nobody leads, and of those in sync nobody is assigned: {list(isr)}"


@clause("shipped.entry.not-for-ever")
def find_entry_for_ever(shipped: Shipped) -> str | None:
    """Say so when an entry is left that nobody will look at; at rest (finding zk-4)."""
    if shipped.entry is None:
        return None
    return f"the old znode asks for {list(shipped.entry)} and nothing is in flight"


@clause("shipped.assignment.original-derivable")
def find_bad_lists(shipped: Shipped) -> str | None:
    """Say so when the three lists contradict each other."""
    now = shipped.assignment
    if len(set(now.replicas)) < len(now.replicas):
        return f"a replica stands twice in {list(now.replicas)}"
    if not set(now.adding) | set(now.removing) <= set(now.replicas):
        return "a replica is added or removed that is not assigned"
    both = sorted(set(now.adding) & set(now.removing))
    return f"added and removed at once: {both}" if both else None


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
    Property("shipped.isr.within-assigned", always(find_outside), "outside-assigned", at_rest=True),
    Property(
        "shipped.assigned.holds-committed",
        always(find_nothing_held),
        "emptied-assignment",
        at_rest=True,
    ),
    Property("shipped.change.led", always(find_leaderless), "leaderless"),
    Property("shipped.isr.electable", always(find_offline_for_good), "offline-for-good"),
    Property("shipped.cancel.no-strays", always(find_running_unassigned), "stray", at_rest=True),
    Property(
        "shipped.entry.not-for-ever", always(find_entry_for_ever), "entry-for-ever", at_rest=True
    ),
    Property("shipped.assignment.original-derivable", always(find_bad_lists), "bad-lists"),
)

GOALS: Final[tuple[Goal[Shipped], ...]] = (
    Goal("added-replica-leads", reached(lambda s: s.leader in s.adding)),
    Goal(
        "nobody-leads-while-in-flight", reached(lambda s: s.leader == NO_LEADER and bool(s.adding))
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
