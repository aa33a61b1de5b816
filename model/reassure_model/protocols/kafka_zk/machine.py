"""Shipped controllers as a machine: what may happen, what must never be, and how it is told."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from reassure_model.copies import Append, find_deleted_in_sync, find_empty_leader, is_in_sync
from reassure_model.machine import (
    CONTROLLER,
    DIE,
    FAILOVER,
    JOIN,
    ONLY,
    RETURN,
    Act,
    Domain,
    Flag,
    Goal,
    Held,
    ListOf,
    Machine,
    OneOf,
    Property,
    SetOf,
    Vocabulary,
    always,
    reached,
)
from reassure_model.protocols.kafka_zk import (
    Alter,
    Announce,
    AskDeletion,
    Assignment,
    CutIsr,
    DeleteLog,
    DeleteZnode,
    Effect,
    Elect,
    Look,
    Prefer,
    Record,
    RemoveEntry,
    Shipped,
    ShutDown,
    StartReplica,
    WriteEntry,
    enabled,
    find_bad_lists,
    find_emptied_assignment,
    find_entry_for_ever,
    find_leaderless,
    find_offline_for_good,
    find_outside_assigned,
    find_stray,
    is_at_rest,
    make_shipped,
    next_effect,
    reassign_to,
    step,
)
from reassure_spec.words import (
    Arguments,
    ScenarioError,
    check_arguments,
    format_replicas,
    parse_number,
    parse_replicas,
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


# Words ------------------------------------------------------------------------------------------

Shippeds = Mapping[str, Shipped]
"""Partitions by name."""


def _open(arguments: Arguments) -> Shipped:
    check_arguments(arguments, ("brokers",), ("dead",))
    dead = frozenset(parse_replicas("dead", arguments.get("dead", "none")))
    live = frozenset(parse_replicas("brokers", arguments["brokers"])) - dead
    return Shipped((), NO_LEADER, (), live, frozenset(), frozenset())


def _add(blank: Shipped, name: str, text: str) -> Shipped:
    return blank if text == "missing" else make_shipped(parse_replicas(name, text), blank.live)


def _say_opening(shipped: Shipped) -> tuple[str, ...]:
    brokers = spell_replicas(sorted(shipped.live))
    return f"world kafka-zk brokers={brokers}", f"topic {ONLY}={spell_replicas(shipped.assigned)}"


def _alter(_: Shippeds, arguments: Arguments) -> Iterator[tuple[str, Any]]:
    for name, text in arguments.items():
        yield name, Alter(parse_replicas(name, text))


def _cancel(_: Shippeds, arguments: Arguments) -> Iterator[tuple[str, Any]]:
    check_arguments(arguments, (), ("partition",))
    yield arguments.get("partition", ONLY), Alter(None)


def _write_znode(partitions: Shippeds, arguments: Arguments) -> Iterator[tuple[str, Any]]:
    """Write the whole znode, or delete it: who is not named is not in it any more."""
    created = all(each.entry is None for each in partitions.values())
    if not arguments:
        if created:
            raise ScenarioError("znode: there is none to delete; name a partition to create it")
        yield from ((name, DeleteZnode(others=True)) for name in partitions)
        return
    for name in partitions:
        text = arguments.get(name)
        target = None if text is None else parse_replicas(name, text)
        yield name, WriteEntry(target, created and target is not None)


def _shut_down(partitions: Shippeds, arguments: Arguments) -> Iterator[tuple[str, Any]]:
    check_arguments(arguments, ("broker",), ("others",))
    others = frozenset(parse_replicas("others", arguments.get("others", "none")))
    for name in partitions:
        yield name, ShutDown(parse_number("broker", arguments["broker"]), others)


def format_assignment(assignment: Assignment) -> str:
    """Return the three lists, the last two only where they are not empty."""
    text = f"assigned {format_replicas(assignment.replicas)}"
    if assignment.adding:
        text += f" adding {format_replicas(assignment.adding)}"
    if assignment.removing:
        text += f" removing {format_replicas(assignment.removing)}"
    return text


def _format_leader(shipped: Shipped) -> str:
    who = "nobody" if shipped.leader == NO_LEADER else f"{shipped.leader}"
    return f"leader {who} isr {format_replicas(shipped.isr)} epoch {shipped.leader_epoch}"


def show(shipped: Shipped) -> str:
    """Return the lists, who leads and what the old znode asks for, in a line."""
    if not shipped.assigned:
        return "assigned []"
    entry = "" if shipped.entry is None else f" entry {format_replicas(shipped.entry)}"
    return f"{format_assignment(shipped.assignment)}; {_format_leader(shipped)}{entry}"


def say_effect(effect: Effect, before: Shipped, after: Shipped) -> str:
    """Return an effect as scenarios show it."""
    changed = before.leader_epoch != after.leader_epoch
    outcome = _format_leader(after) if changed else "nothing to write"
    match effect:
        case Record(assignment, at):
            return f"{at}: {format_assignment(assignment)}"
        case CutIsr(replica, at):
            return f"{at}: {replica} out of the in-sync set: {outcome}"
        case DeleteLog(replica, at):
            return f"{at}: {replica} deletes its log"
        case Look():
            return "the in-sync set is read"
        case Announce(at):
            return f"{at}: {outcome}"
        case StartReplica(replica):
            there = "" if replica in before.live else ", which is down"
            return f"A2: start {replica}{there}"
        case Elect(target):
            at = "death" if target is None else "B3"
            return f"{at}: {outcome if changed else 'nobody can be elected'}"
        case RemoveEntry(target, why):
            gone = before.entry is not None and after.entry is None
            if gone or before.entry is None:
                return f"{why}: entry {'removed' if gone else 'is not there'}"
            kept, done = format_replicas(before.entry), format_replicas(target or ())
            return f"{why}: entry {kept} stays, {done} was reached"


def _assign(_: Shipped, arguments: Arguments) -> str:
    """Show what becomes of a list that is sent to one target after another, with no copying."""
    check_arguments(arguments, ("start", "targets"))
    assignment = Assignment(parse_replicas("start", arguments["start"]))
    lines = []
    for text in arguments["targets"].split("/"):
        assignment = reassign_to(assignment, parse_replicas("targets", text))
        lines.append(format_assignment(assignment))
    return "\n".join([*lines, f"original {format_replicas(assignment.original)}"])


VOCABULARY: Final = Vocabulary(
    opening=_open,
    say_opening=_say_opening,
    show=show,
    say_effect=say_effect,
    adds={"topic": _add},
    commands={
        "alter": _alter,
        "cancel": _cancel,
        "znode": _write_znode,
        "shut-down": _shut_down,
    },
    answers={"join": lambda _, after: _format_leader(after)},
    shows=("die", "return", "prefer", "shut-down", "run"),
    questions={"assign": _assign},
)


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
