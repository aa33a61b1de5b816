"""How the fields of steps are written, and read back: partitions, replica lists, targets."""

import re
from itertools import groupby
from typing import Final

from reassure_spec.errors import BadData
from reassure_spec.words import spell_replicas
from reassure_spec.znodes import LegacyEntry, PartitionKey, ReplicaList

Targets = tuple[tuple[PartitionKey, ReplicaList], ...]


MANY: Final = 4
"""So many equal ones in a row are written together."""
PARTITIONS_MAX: Final = 10_000
"""So many partitions a step names at most."""


class BadStep(BadData):
    """A line that is no step."""


def parse_replicas(text: str) -> ReplicaList:
    """Return the replica list of this text. Raises BadStep."""
    if text == "none":
        return ()
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise BadStep(f"{text!r} is not a replica list; write it as 1,2,3 or none") from None


def format_partition(partition: PartitionKey) -> str:
    """Return the text of a partition.

    >>> format_partition(("orders", 0))
    'orders-0'
    """
    return f"{partition[0]}-{partition[1]}"


def parse_partition(text: str) -> PartitionKey:
    """Return the partition of this text. Raises BadStep."""
    topic, dash, number = text.rpartition("-")
    if not dash or not topic or not number.isdigit():
        raise BadStep(f"{text!r} is not a partition; write it as orders-0")
    return topic, int(number)


def format_lists(lists: tuple[ReplicaList, ...]) -> str:
    """Return the text of several replica lists.

    >>> format_lists(((1, 2), *[(3, 1)] * 120))
    '1,2 and 120 times 3,1'
    """
    shown: list[str] = []
    for text, equal in groupby(map(spell_replicas, lists)):
        count = len(list(equal))
        shown += [text] * count if count < MANY else [f"{count} times {text}"]
    return " and ".join(shown)


def parse_lists(text: str) -> tuple[ReplicaList, ...]:
    """Return the replica lists of this text. Raises BadStep."""
    lists: list[ReplicaList] = []
    for part in text.split(" and "):
        count, found, replicas = part.rpartition(" times ")
        if found and not count.strip().isdecimal():
            raise BadStep(f"{part!r} is not so many replica lists; write it as 120 times 1,2")
        lists += [parse_replicas(replicas.strip())] * (_limit(int(count)) if found else 1)
    return tuple(lists)


def _limit(count: int) -> int:
    if count > PARTITIONS_MAX:
        raise BadStep(f"{count} partitions are too many; name {PARTITIONS_MAX} at most")
    return count


def format_targets(targets: Targets) -> str:
    """Return the text of partitions, each with its target.

    >>> format_targets(tuple((("orders", n), (3,)) for n in range(120)))
    'orders-0..119 to 3'
    """
    shown: list[str] = []
    numbered = enumerate(targets)
    for _, run in groupby(numbered, lambda one: (one[1][0][0], one[1][1], one[1][0][1] - one[0])):
        (key, target), *more = [each for _, each in run]
        keys = [key, *(other for other, _ in more)]
        names = [format_partition(each) for each in keys]
        if len(keys) >= MANY:
            names = [f"{names[0]}..{keys[-1][1]}"]
        shown += [f"{name} to {spell_replicas(target)}" for name in names]
    return " and ".join(shown)


def parse_targets(text: str) -> Targets:
    """Return the partitions and targets of this text. Raises BadStep."""
    targets: list[tuple[PartitionKey, ReplicaList]] = []
    for part in text.split(" and "):
        partition, found, target = part.partition(" to ")
        if not found:
            raise BadStep(f"{part!r} is not a target; write it as orders-0 to 1,2")
        replicas = parse_replicas(target.strip())
        targets += [(key, replicas) for key in _parse_partitions(partition.strip())]
    return tuple(targets)


def _parse_partitions(text: str) -> list[PartitionKey]:
    """Return the partitions of this text, which is one or as orders-0..119. Raises BadStep."""
    first, found, last = text.partition("..")
    topic, number = parse_partition(first)
    if not found:
        return [(topic, number)]
    if not re.fullmatch(r"\d+", last) or int(last) < number:
        raise BadStep(f"{text!r} are not partitions; write them as orders-0..119")
    _limit(int(last) - number + 1)
    return [(topic, each) for each in range(number, int(last) + 1)]


def format_entries(entries: tuple[LegacyEntry, ...]) -> str:
    """Return entries of the old znode, each with the original replicas where it names them."""
    plain = [(entry.key, entry.target) for entry in entries]
    if all(entry.original is None for entry in entries):
        return format_targets(tuple(plain))
    shown = []
    for each, entry in zip(plain, entries, strict=True):
        original = "" if entry.original is None else f" from {spell_replicas(entry.original)}"
        shown.append(format_targets((each,)) + original)
    return " and ".join(shown)


def parse_entries(text: str) -> tuple[LegacyEntry, ...]:
    """Return the entries of this text. Raises BadStep."""
    entries: list[LegacyEntry] = []
    for part in text.split(" and "):
        asked, found, original = part.partition(" from ")
        before = parse_replicas(original) if found else None
        entries += [LegacyEntry(key, target, before) for key, target in parse_targets(asked)]
    return tuple(entries)
