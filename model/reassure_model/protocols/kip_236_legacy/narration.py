"""How KIP-236's legacy route is told."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from reassure_model.environment import Join, Leave, On
from reassure_model.narration import Vocabulary, parse_key, parse_set, to_each
from reassure_model.partition import Partition, spell_key
from reassure_model.protocols.kip_236.batch import WriteOwed
from reassure_model.protocols.kip_236.narration import format_write, iterate_lines
from reassure_model.protocols.kip_236_legacy import (
    Ask,
    Effect,
    Entries,
    Legacy,
    Translate,
    WriteLegacy,
    compute_rollback,
    make_legacy,
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
from reassure_spec.znodes import (
    REASSIGN_PARTITIONS,
    BadZnode,
    LegacyEntry,
    decode_reassign_partitions,
    encode_reassign_partitions,
)


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
    minimum = parse_number("min", arguments.get("min.insync.replicas", "1"))
    return make_legacy({}, parse_set(arguments, "brokers"), min_insync_replicas=minimum)


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


def _read_asked(arguments: Arguments) -> Ask:
    check_arguments(arguments, ("entries",), ("legacy",))
    wanted = tuple((e.key, e.target) for e in parse_entries(arguments["entries"]))
    return Ask(wanted, "legacy" in arguments)


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
        "ask": to_each(_read_asked),
        "join": _change_isr(Join),
        "leave": _change_isr(Leave),
    },
    answers={"ask": lambda before, _: f"request {before.next_sequence} is pending"},
    questions={"rollback": _roll_back},
    changes={"partition": _add_partition},
    wakes=("partition",),
    closing=("show",),
)
