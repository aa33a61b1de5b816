"""How the fields of steps are written, and read back: partitions, replica lists, targets."""

from reassure_spec.errors import BadData
from reassure_spec.words import spell_replicas
from reassure_spec.znodes import LegacyEntry, PartitionKey, ReplicaList

Targets = tuple[tuple[PartitionKey, ReplicaList], ...]


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
    """Return the text of several replica lists."""
    return " and ".join(map(spell_replicas, lists))


def parse_lists(text: str) -> tuple[ReplicaList, ...]:
    """Return the replica lists of this text. Raises BadStep."""
    return tuple(parse_replicas(part.strip()) for part in text.split(" and "))


def format_targets(targets: Targets) -> str:
    """Return the text of partitions, each with its target."""
    return " and ".join(f"{format_partition(key)} to {spell_replicas(to)}" for key, to in targets)


def parse_targets(text: str) -> Targets:
    """Return the partitions and targets of this text. Raises BadStep."""
    targets = []
    for part in text.split(" and "):
        partition, found, target = part.partition(" to ")
        if not found:
            raise BadStep(f"{part!r} is not a target; write it as orders-0 to 1,2")
        targets.append((parse_partition(partition.strip()), parse_replicas(target.strip())))
    return tuple(targets)


def format_entries(entries: tuple[LegacyEntry, ...]) -> str:
    """Return entries of the old znode, each with the original replicas where it names them."""
    shown = []
    for entry in entries:
        original = "" if entry.original is None else f" from {spell_replicas(entry.original)}"
        shown.append(format_targets(((entry.key, entry.target),)) + original)
    return " and ".join(shown)


def parse_entries(text: str) -> tuple[LegacyEntry, ...]:
    """Return the entries of this text. Raises BadStep."""
    entries = []
    for part in text.split(" and "):
        asked, found, original = part.partition(" from ")
        ((key, target),) = parse_targets(asked)
        entries.append(LegacyEntry(key, target, parse_replicas(original) if found else None))
    return tuple(entries)
