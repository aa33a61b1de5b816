"""How Kafka's own controllers are told."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from reassure_model.machine import ONLY
from reassure_model.narration import Vocabulary, parse_set, spell_leader, to_each
from reassure_model.protocols import kafka_zk
from reassure_spec.words import (
    Arguments,
    ScenarioError,
    check_arguments,
    format_replicas,
    parse_number,
    parse_replicas,
    spell_replicas,
)
from reassure_spec.znodes import NO_LEADER

Shippeds = Mapping[str, kafka_zk.Shipped]
"""Partitions by name."""


def _open(arguments: Arguments) -> kafka_zk.Shipped:
    check_arguments(arguments, ("brokers",), ("dead",))
    live = parse_set(arguments, "brokers") - parse_set(arguments, "dead")
    return kafka_zk.Shipped((), NO_LEADER, (), live, frozenset(), frozenset())


def _add(blank: kafka_zk.Shipped, name: str, text: str) -> kafka_zk.Shipped:
    if text == "missing":
        return blank
    return kafka_zk.make_shipped(parse_replicas(name, text), blank.live)


def _say_opening(shipped: kafka_zk.Shipped) -> tuple[str, ...]:
    brokers = spell_replicas(sorted(shipped.live))
    return f"world kafka-zk brokers={brokers}", f"topic {ONLY}={spell_replicas(shipped.assigned)}"


def _alter(_: Shippeds, arguments: Arguments) -> Iterator[tuple[str, Any]]:
    for name, text in arguments.items():
        yield name, kafka_zk.Alter(parse_replicas(name, text))


def _cancel(_: Shippeds, arguments: Arguments) -> Iterator[tuple[str, Any]]:
    check_arguments(arguments, (), ("partition",))
    yield arguments.get("partition", ONLY), kafka_zk.Alter(None)


def _write_znode(partitions: Shippeds, arguments: Arguments) -> Iterator[tuple[str, Any]]:
    """Write the whole znode, or delete it: who is not named is not in it any more."""
    created = all(each.entry is None for each in partitions.values())
    if not arguments:
        if created:
            raise ScenarioError("znode: there is none to delete; name a partition to create it")
        yield from ((name, kafka_zk.DeleteZnode(others=True)) for name in partitions)
        return
    for name in partitions:
        text = arguments.get(name)
        target = None if text is None else parse_replicas(name, text)
        yield name, kafka_zk.WriteEntry(target, created and target is not None)


def _read_shutdown(arguments: Arguments) -> kafka_zk.ShutDown:
    check_arguments(arguments, ("broker",), ("others",))
    return kafka_zk.ShutDown(
        parse_number("broker", arguments["broker"]), parse_set(arguments, "others")
    )


def format_assignment(assignment: kafka_zk.Assignment) -> str:
    """Return the three lists, the last two only where they are not empty."""
    text = f"assigned {format_replicas(assignment.replicas)}"
    if assignment.adding:
        text += f" adding {format_replicas(assignment.adding)}"
    if assignment.removing:
        text += f" removing {format_replicas(assignment.removing)}"
    return text


def _format_leader(shipped: kafka_zk.Shipped) -> str:
    who = spell_leader(shipped.leader)
    return f"leader {who} isr {format_replicas(shipped.isr)} epoch {shipped.leader_epoch}"


def show(shipped: kafka_zk.Shipped) -> str:
    """Return the lists, who leads and what the old znode asks for, in a line."""
    if not shipped.assigned:
        return "assigned []"
    entry = "" if shipped.entry is None else f" entry {format_replicas(shipped.entry)}"
    return f"{format_assignment(shipped.assignment)}; {_format_leader(shipped)}{entry}"


def say_effect(effect: kafka_zk.Effect, before: kafka_zk.Shipped, after: kafka_zk.Shipped) -> str:
    """Return an effect as scenarios show it."""
    changed = before.leader_epoch != after.leader_epoch
    outcome = _format_leader(after) if changed else "nothing to write"
    match effect:
        case kafka_zk.Record(assignment, at):
            return f"{at}: {format_assignment(assignment)}"
        case kafka_zk.CutIsr(replica, at):
            return f"{at}: {replica} out of the in-sync set: {outcome}"
        case kafka_zk.DeleteLog(replica, at):
            return f"{at}: {replica} deletes its log"
        case kafka_zk.Look():
            return "the in-sync set is read"
        case kafka_zk.Announce(at):
            return f"{at}: {outcome}"
        case kafka_zk.StartReplica(replica):
            there = "" if replica in before.live else ", which is down"
            return f"A2: start {replica}{there}"
        case kafka_zk.Elect(target):
            at = "death" if target is None else "B3"
            return f"{at}: {outcome if changed else 'nobody can be elected'}"
        case kafka_zk.RemoveEntry(target, why):  # one way: there is no other effect
            gone = before.entry is not None and after.entry is None
            if gone or before.entry is None:
                return f"{why}: entry {'removed' if gone else 'is not there'}"
            kept, done = format_replicas(before.entry), format_replicas(target or ())
            return f"{why}: entry {kept} stays, {done} was reached"


def _assign(_: kafka_zk.Shipped, arguments: Arguments) -> str:
    """Show what becomes of a list that is sent to one target after another, with no copying."""
    check_arguments(arguments, ("start", "targets"))
    assignment = kafka_zk.Assignment(parse_replicas("start", arguments["start"]))
    lines = []
    for text in arguments["targets"].split("/"):
        assignment = kafka_zk.reassign_to(assignment, parse_replicas("targets", text))
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
        "shut-down": to_each(_read_shutdown),
    },
    answers={"join": lambda _, after: _format_leader(after)},
    shows=("die", "return", "prefer", "shut-down", "run"),
    questions={"assign": _assign},
)
