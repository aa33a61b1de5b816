"""The old znode beside KIP-236 as a machine: what may happen, and how it is told."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from reassure_model.environment import Controller, Die, Failover, Join, Leave, On, Return
from reassure_model.invariants import INVARIANTS
from reassure_model.machine import (
    CONTROLLER,
    DIE,
    FAILOVER,
    JOIN,
    LEAVE,
    RETURN,
    Act,
    AsBegun,
    Domain,
    EachOf,
    Goal,
    Held,
    ListOf,
    Machine,
    OrNone,
    Property,
    RecordOf,
    SetOf,
    Sets,
    Vocabulary,
)
from reassure_model.partition import Partition
from reassure_model.protocols.kip_236.batch import WriteOwed
from reassure_model.protocols.kip_236.machine import PARTITION, format_write, iterate_lines
from reassure_model.protocols.kip_236.machine import is_settled as is_partition_settled
from reassure_model.protocols.kip_236.system import enabled
from reassure_model.protocols.kip_236_legacy import (
    PROMISES,
    Ask,
    DeleteLegacy,
    Effect,
    Entries,
    Legacy,
    Translate,
    WriteLegacy,
    compute_rollback,
    make_legacy,
    next_effect,
    step,
)
from reassure_spec.readings import Readings
from reassure_spec.words import (
    Arguments,
    ScenarioError,
    check_arguments,
    format_replicas,
    parse_number,
    parse_replicas,
    spell_replicas,
)
from reassure_spec.znodes import (
    REASSIGN_PARTITIONS,
    BadZnode,
    LegacyEntry,
    PartitionKey,
    ReplicaList,
    decode_reassign_partitions,
    encode_reassign_partitions,
)

_ENTRIES: Final = OrNone(ListOf("entries", "entries"))

FIELDS: Final[Mapping[str, Domain]] = {
    "live": SetOf("brokers"),
    "partitions": EachOf("keys", RecordOf(Partition, PARTITION, always=True), paired=True),
    "entries": _ENTRIES,
    "seen": _ENTRIES,
    "known": AsBegun(),
    "min_insync_replicas": AsBegun(),
    "controller_epoch": Held(0),
    "next_sequence": Held(0),
}

Asked = tuple[tuple[PartitionKey, ReplicaList], ...]


def spell_key(key: PartitionKey) -> str:
    """Return the name of a partition."""
    return f"{key[0]}-{key[1]}"


def _say_entries(entries: Entries) -> str:
    words = (f"{spell_key(e.key)}:{spell_replicas(e.target)}" for e in entries)
    return f'write entries="{" ".join(words)}"'


def _say_asked(asked: Asked) -> str:
    words = (f"{spell_key(key)}:{spell_replicas(target)}" for key, target in asked)
    return f'ask entries="{" ".join(words)}"'


def _describe_entries(entries: Entries) -> str:
    words = (f"{spell_key(e.key)} to {list(e.target)}" for e in entries)
    return f"write {', '.join(words)}"


def _describe_asked(asked: Asked) -> str:
    words = (f"{list(target)}, {spell_key(key)}" for key, target in asked)
    return f"ask {', '.join(words)}"


def _on_one(act: Act) -> Act:
    """Return the act as one that happens to one of the partitions."""

    def say(parameter: tuple[PartitionKey, int]) -> str:
        key, replica = parameter
        return f"{act.name} partition={spell_key(key)} replica={replica}"

    def describe(parameter: tuple[PartitionKey, int]) -> str:
        key, replica = parameter
        return f"{act.name} {replica}, {spell_key(key)}"

    return replace(act, over="replicas", of_several=True, saying=say, brief=describe)


ACTS: Final = (
    Act(
        "write",
        WriteLegacy,
        "contents",
        saying=_say_entries,
        brief=_describe_entries,
        counted="writes",
    ),
    Act("delete", DeleteLegacy, counted="writes"),
    Act("ask", Ask, "asked", saying=_say_asked, brief=_describe_asked, counted="requests"),
    _on_one(JOIN),
    _on_one(LEAVE),
    DIE,
    RETURN,
    FAILOVER,
    CONTROLLER,
)
"""`replicas` are pairs, of a partition and a broker."""


def list_enabled(legacy: Legacy, readings: Readings, sets: Sets) -> Iterator[Any]:
    """Yield every action that is possible."""
    yield from (Ask(asked) for asked in sets.get("asked", ()))
    yield from (WriteLegacy(entries) for entries in sets.get("contents", ()))
    if legacy.entries is not None:
        yield DeleteLegacy()
    yield Failover()
    if next_effect(legacy, readings) is not None:
        yield Controller()
    for key, _ in legacy.partitions:
        inner = enabled(legacy.as_system(key), readings)
        yield from (On(key, action) for action in inner if isinstance(action, Join | Leave))
    yield from (Die(broker) for broker in sorted(legacy.live))
    yield from (Return(broker) for broker in sorted(legacy.known - legacy.live))


def is_at_rest(legacy: Legacy, readings: Readings) -> bool:
    """Whether the controller owes nothing."""
    return next_effect(legacy, readings) is None


# What must never be, and what must be reachable ---------------------------------------------------


def _find_in_any(find: Callable[[Partition], str | None]) -> Callable[[Legacy, Readings], Any]:
    def found(legacy: Legacy, readings: Readings) -> str | None:
        for at, (_, partition) in enumerate(legacy.partitions):
            reason = find(partition)
            if reason is not None:
                return reason if len(legacy.partitions) == 1 else f"partition {at}: {reason}"
        return None

    return found


def _is_any(test: Callable[[Partition], bool]) -> Callable[[Legacy, Readings], bool]:
    return lambda legacy, _: any(test(partition) for _, partition in legacy.partitions)


def _is_found(legacy: Legacy, readings: Readings) -> bool:
    there = legacy.entries is not None and legacy.seen is None
    return there and _is_any(lambda p: p.reassignment is not None)(legacy, readings)


PROPERTIES: Final[tuple[Property[Legacy], ...]] = (
    *(Property(e.clause, _find_in_any(e.find), at_rest=e.at_rest) for e in INVARIANTS),
    *(Property(clause, find) for clause, find in PROMISES.items()),
)

GOALS: Final[tuple[Goal[Legacy], ...]] = (
    Goal("the old znode is there", lambda s, _: s.entries is not None),
    Goal("a request was made of an entry", lambda s, _: s.seen is not None and len(s.seen) > 0),
    Goal(
        "a reassignment by the old route is in flight",
        _is_any(lambda p: p.reassignment is not None and p.reassignment.legacy),
    ),
    Goal(
        "a reassignment by the new route is in flight",
        _is_any(lambda p: p.reassignment is not None and not p.reassignment.legacy),
    ),
    Goal(
        "requests by both routes are pending",
        _is_any(lambda p: len({r.legacy for r in p.requests}) == 2),
    ),
    Goal("a new controller finds the old znode", _is_found),
)


def is_settled(legacy: Legacy) -> bool:
    """Whether no reassignment is in flight but those that wait for a dead broker."""
    return all(is_partition_settled(legacy.as_system(key)) for key, _ in legacy.partitions)


# Words ------------------------------------------------------------------------------------------


def parse_key(text: str) -> PartitionKey:
    """Return the partition in `topic-number`. Raises ScenarioError."""
    topic, dash, number = text.rpartition("-")
    if not dash:
        raise ScenarioError(f"{text!r} is no partition; write topic-number")
    return topic, parse_number("partition", number)


def parse_entries(text: str) -> Entries:
    """Return the entries in `t-0:2,3 t-1:1,3<1,2`. Raises ScenarioError.

    >>> parse_entries("t-0:2,3<1,2")
    (LegacyEntry(key=('t', 0), target=(2, 3), original=(1, 2)),)
    """
    entries = []
    for word in text.split():
        name, colon, lists = word.partition(":")
        if not colon:
            raise ScenarioError(f"{word!r}: write partition:target or partition:target<original")
        target, less, original = lists.partition("<")
        before = parse_replicas("original", original) if less else None
        entries.append(LegacyEntry(parse_key(name), parse_replicas("target", target), before))
    return tuple(entries)


def format_entries(entries: Entries) -> str:
    """Return entries as scenarios show them."""
    words = []
    for entry in entries:
        original = "" if entry.original is None else f" from {format_replicas(entry.original)}"
        words.append(f"{spell_key(entry.key)} to {format_replicas(entry.target)}{original}")
    return ", ".join(words) or "no entry"


def say_effect(effect: Effect, before: Legacy, _: Legacy) -> str:
    """Return an effect as scenarios show it."""
    match effect:
        case WriteOwed(key, owed):
            text = format_write(owed.write, before.get(key))
            return f"{spell_key(key)}: {text} ({owed.clause})"
        case Translate(entries):
            return f"request {before.next_sequence} made, legacy: {format_entries(entries)}"
    if effect.entries:
        return f"old znode: {format_entries(effect.entries)} ({effect.why})"
    return f"old znode deleted ({effect.why})"


def show(legacy: Legacy) -> str:
    """Return the partitions and the old znode, in lines."""
    lines = [
        f"{spell_key(key)}: {line}"
        for key, partition in legacy.partitions
        for line in iterate_lines(partition)
    ]
    entries = legacy.entries
    old = "no old znode" if entries is None else f"old znode: {format_entries(entries)}"
    return "\n".join([*lines, old])


def _open(arguments: Arguments) -> Legacy:
    check_arguments(arguments, ("brokers",), ("min.insync.replicas",))
    brokers = frozenset(parse_replicas("brokers", arguments["brokers"]))
    minimum = parse_number("min", arguments.get("min.insync.replicas", "1"))
    return make_legacy({}, brokers, min_insync_replicas=minimum)


def _say_opening(legacy: Legacy) -> tuple[str, ...]:
    return (
        f"world kip-236-legacy brokers={spell_replicas(sorted(legacy.live))}",
        *(
            f"partition name={spell_key(key)} assigned={spell_replicas(partition.assigned or ())}"
            for key, partition in legacy.partitions
        ),
    )


def _add_partition(legacy: Legacy, arguments: Arguments) -> Legacy:
    check_arguments(arguments, ("name", "assigned"))
    partition = Partition(parse_replicas("assigned", arguments["assigned"]))
    return legacy.having(parse_key(arguments["name"]), partition)


Legacies = Mapping[str, Legacy]


def _write(legacies: Legacies, arguments: Arguments) -> Iterator[tuple[str, Any]]:
    """Write the old znode: entries, or `content` as it stands in the znode."""
    check_arguments(arguments, (), ("entries", "content"))
    for name in legacies:
        if "content" not in arguments:
            yield name, WriteLegacy(parse_entries(arguments.get("entries", "")))
            continue
        content = arguments["content"].encode()
        try:
            yield name, WriteLegacy(decode_reassign_partitions(REASSIGN_PARTITIONS, content))
        except BadZnode as error:
            yield name, WriteLegacy(())
            yield name, f"warning by legacy.znode.malformed: {error.reason}"


def _ask(legacies: Legacies, arguments: Arguments) -> Iterator[tuple[str, Any]]:
    check_arguments(arguments, ("entries",), ("legacy",))
    wanted = tuple((e.key, e.target) for e in parse_entries(arguments["entries"]))
    for name in legacies:
        yield name, Ask(wanted, "legacy" in arguments)


def _change_isr(make: Callable[[int], Join | Leave]) -> Callable[..., Iterator[tuple[str, Any]]]:
    def change(legacies: Legacies, arguments: Arguments) -> Iterator[tuple[str, Any]]:
        check_arguments(arguments, ("partition", "replica"))
        key = parse_key(arguments["partition"])
        for name in legacies:
            for replica in parse_replicas("replica", arguments["replica"]):
                yield name, On(key, make(replica))

    return change


def _roll_back(legacy: Legacy, arguments: Arguments) -> str:
    """Say what a client has to write to go back, from what stands in the old znode."""
    check_arguments(arguments)
    back, without = compute_rollback(legacy.entries or ())
    lines = [encode_reassign_partitions(back).decode()] if back else []
    lines += [f"{spell_key(key)} has no original replicas" for key in without]
    return "\n".join(lines) or "the old znode has no entry"


VOCABULARY: Final = Vocabulary(
    opening=_open,
    say_opening=_say_opening,
    show=show,
    say_effect=say_effect,
    commands={
        "write": _write,
        "ask": _ask,
        "join": _change_isr(Join),
        "leave": _change_isr(Leave),
    },
    answers={"ask": lambda before, _: f"request {before.next_sequence} is pending"},
    questions={"rollback": _roll_back},
    changes={"partition": _add_partition},
    wakes=("partition",),
    closing=("show",),
)

MACHINE: Final = Machine(
    name="kip-236-legacy",
    summary="the old znode, translated into requests of KIP-236",
    state=Legacy,
    fields=FIELDS,
    acts=ACTS,
    step=step,
    next_effect=next_effect,
    enabled=list_enabled,
    is_at_rest=is_at_rest,
    properties=PROPERTIES,
    goals=GOALS,
    vocabulary=VOCABULARY,
    is_settled=is_settled,
)
