"""The old znode, entry by entry: which write may come next, and what is owed there at rest.

Clients make, change and delete `/admin/reassign_partitions` as they like. What the controller may
do with it follows from two things: what ZooKeeper holds of the partition that an entry names, and
what the acting controller has made of the entry so far, which is in its memory only (`Entry`). A
controller that takes office has made nothing of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reassure_model.lives import Life
from reassure_model.outcome import Rejected
from reassure_model.partition import Environment, Partition, is_done
from reassure_model.protocols.kip_236 import Change as ChangeDecided
from reassure_model.protocols.kip_236 import New, decide_request
from reassure_spec.clauses import checks, clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import LegacyEntry, PartitionKey, ReplicaList

NO: Final = "no"
MAYBE: Final = "maybe"
"""Nobody can say: it was there before the history begins, or the request that waits was made by the
controller before, or of an entry that a client took back."""
YES: Final = "yes"


LIVES: Final[Mapping[str, Life]] = {
    "old_znode": Life(
        "/admin/reassign_partitions",
        ("legacy.entry.by-client",),
        (
            "legacy.entry.by-client",
            "legacy.original.recorded",
            "legacy.entry.removed-when-done",
            "legacy.entry.matching-target",
            "legacy.znode.deleted-with-last",
        ),
        (
            "legacy.entry.removed-when-done",
            "legacy.entry.matching-target",
            "legacy.translate.request",
        ),
    )
}
"""What a controller may do to the znode; clients do as they like."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the old znode, and what was made of it."""

    target: ReplicaList
    original: ReplicaList | None = None
    translated: str = NO
    """Whether the acting controller has made a request of it: `NO`, `MAYBE` or `YES`."""
    created: bool = True
    """Whether it came with the znode, or stood there when the acting controller took office. One
    that came later may wait (reading `legacy.rewrite`)."""
    begun: bool = False
    """Whether a reassignment to its target was in flight, by the same route, while it stood."""


def is_carried_by(entry: Entry, partition: Partition) -> bool:
    """Whether the reassignment in flight is what the entry asks for, by the same route."""
    flight = partition.reassignment
    return flight is not None and flight.legacy and flight.target == entry.target


@checks
def find_broken_translation(
    asked: Mapping[PartitionKey, ReplicaList],
    offered: Mapping[PartitionKey, Sequence[ReplicaList]],
    *,
    marked: bool,
) -> Rejected | None:
    """Find what a request that a controller makes breaks.

    `asked` is what it asks for; `offered` are the targets that the old znode names of each
    partition, or did when the controller may have looked; `marked` says that it is legacy.
    """
    for (topic, number), target in asked.items():
        if target not in offered.get((topic, number), ()):
            reason = f"no entry asks for {topic}-{number} to go to {list(target)}"
            return Rejected("legacy.translate.request", reason)
    if not marked:
        reason = "what the old znode asks for is requested without the legacy key"
        return Rejected("legacy.translate.flag", reason)
    return None


@checks
def judge_translation(entry: Entry) -> tuple[str, ...] | Rejected:
    """Judge a controller that makes a request of an entry, by what it has made of it before."""
    if entry.translated == YES:
        reason = f"a request to go to {list(entry.target)} was made of it before"
        return Rejected("legacy.translate.once", reason)
    return ("legacy.translate.once",)


@checks
def judge_entry_removal(
    entry: Entry, partition: Partition, around: Environment, readings: Readings
) -> tuple[str, ...] | Rejected:
    """Judge a controller that takes an entry out; answer the clauses that this put to the test.

    It may go once what it asks for is done, or was refused, or asks for nothing.
    """
    target = list(entry.target)
    if is_carried_by(entry, partition):
        if is_done(partition):
            return ("legacy.entry.removed-when-done", "legacy.entry.matching-target")
        reason = f"the reassignment to {target} is not complete"
        return Rejected("legacy.entry.removed-when-done", reason)
    if entry.translated == NO and not entry.begun:
        if entry.created:
            return Rejected("legacy.translate.request", f"nothing was made of the one to {target}")
        return Rejected("legacy.entry.matching-target", f"a client asks for {target} now")
    pending = [r for r in partition.requests if r.legacy and r.target == entry.target]
    if pending:
        decision = decide_request(pending[0], partition, around, readings)
        if isinstance(decision, New | ChangeDecided):
            reason = f"the request to go to {target} is pending"
            return Rejected("legacy.entry.removed-when-done", reason)
    if entry.begun:
        return ("legacy.entry.removed-when-done",)
    return ("legacy.entry.refused-removed",)


@checks
def judge_entry_change(
    before: Entry | None, after: LegacyEntry, partition: Partition
) -> tuple[str, ...] | Rejected:
    """Judge a controller that writes an entry; answer the clauses that this put to the test.

    It may add the original replicas, and nothing else.
    """
    name = f"{after.key[0]}-{after.key[1]}"
    if before is None or before.target != after.target:
        reason = f"no client has asked for {name} to go to {list(after.target)}"
        return Rejected("legacy.entry.by-client", reason)
    if before.original == after.original:
        return ("legacy.entry.by-client",)
    if before.original is not None or after.original != partition.assigned:
        found = "nobody" if after.original is None else list(after.original)
        reason = f"{found} as original replicas of {name}"
        return Rejected("legacy.original.recorded", reason)
    return ("legacy.entry.by-client", "legacy.original.recorded")


@clause("legacy.entry.before-child")
def is_entry_left(entry: Entry | None, partition: Partition) -> bool:
    """Whether the record of a reassignment would go before its entry."""
    return entry is not None and is_carried_by(entry, partition)


@clause("legacy.rewrite.taken-up")
@checks
def find_entry_debt(entry: Entry, partition: Partition, readings: Readings) -> Rejected | None:
    """Find what a controller owes that rests while this entry stands.

    What it owes to the partition itself is for the rules on partitions to say.
    """
    target = list(entry.target)
    if entry.translated == NO and not is_carried_by(entry, partition):
        if entry.created or readings.legacy_rewrite == "taken-up":
            return Rejected("legacy.translate.request", f"nothing is made of the one to {target}")
        return None
    pending = any(request.legacy for request in partition.requests)
    if pending or is_carried_by(entry, partition):
        return None
    if entry.begun:
        return Rejected("legacy.entry.removed-when-done", f"the move to {target} has ended")
    return Rejected("legacy.entry.refused-removed", f"nothing is in flight to {target}")
