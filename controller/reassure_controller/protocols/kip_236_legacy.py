"""The old znode in front of the queue: what to do with its entries, from the controller's memory.

Clients that know only `/admin/reassign_partitions` write there what they want. The controller makes
one request of it, marked as legacy, and from then on a request is a request. What is left to do is
here: an entry goes when what it asks for is done, refused or nothing, and the znode goes with its
last entry, for until then no client can make the next one.

That an entry was translated is in memory only. A new controller translates again, which changes
nothing: the target is in flight, or it is assigned.

Source: KIP-236, legacy znode protocol, and what it says of a partition that catches up (step 1.1).
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from reassure_controller.context import Context, OldZnode
from reassure_controller.effects import (
    Planned,
    RecheckOldZnode,
    Step,
    TranslateEntries,
    Warn,
)
from reassure_controller.old_znode import OldZnodePlanner, plan_write
from reassure_controller.planned_job import Job
from reassure_controller.reader import ClusterReader
from reassure_controller.rules import Rules
from reassure_spec.readings import Readings
from reassure_spec.znodes import (
    REASSIGN_PARTITIONS,
    REASSIGNMENT_REQUESTS,
    BadZnode,
    LegacyEntry,
    PartitionKey,
    ReplicaList,
    decode_request,
)

Entries = tuple[LegacyEntry, ...]


class EntriesPlanner(OldZnodePlanner):
    """Makes requests of the entries of the old znode, and removes them when these are done."""

    def read_again(self, reader: ClusterReader, effects: Sequence[Planned]) -> None:
        """Read it, and whether the request was made of which there was no answer."""
        before = reader.context.old
        super().read_again(reader, effects)
        old = reader.context.old
        if old is None or before is None or old.created != before.created:
            return
        translations = (each for each in effects if isinstance(each, TranslateEntries))
        entries = {(entry.key, entry.target) for each in translations for entry in each.entries}
        done = entries and entries & _read_asked(reader)
        if done:
            done |= old.translated or frozenset()
            reader.context.old = replace(old, translated=frozenset(done))

    def find_job(
        self, reader: ClusterReader, rules: Rules, clock_ms: Callable[[], int]
    ) -> Job | None:
        """Return what is to be done about the entries."""

        def make() -> tuple[Step, ...]:
            if reader.context.requests:
                return ()  # it may be of these very entries: whether it was made, no answer said
            return plan_entries(reader.context, rules.readings)

        return Job("the old znode", make) if make() else None

    def plan_end(self, context: Context, key: PartitionKey) -> tuple[Step, ...]:
        """Take the entry of a complete reassignment out of the old znode, before its record."""
        child = context.partitions[key].child
        if child is None or not child.legacy:
            return ()
        return (*plan_entry_done(context, key, child.target), RecheckOldZnode())


PLANNER = EntriesPlanner()


def _read_asked(reader: ClusterReader) -> set[tuple[PartitionKey, ReplicaList]]:
    """Return what the waiting requests ask for that were made of entries."""
    asked: set[tuple[PartitionKey, ReplicaList]] = set()
    for name, data in reader.read_below(REASSIGNMENT_REQUESTS, watch=None).items():
        with suppress(BadZnode):
            request = decode_request(f"{REASSIGNMENT_REQUESTS}/{name}", data)
            asked |= request.assignments.items() if request.legacy else set()
    return asked


def plan_entries(context: Context, readings: Readings) -> tuple[Step, ...]:
    """Return the steps that translate what is new, or else remove what nothing is in flight for.

    To be asked when no request waits: whatever was translated has been carried out by then.
    """
    old = context.old
    if old is None:
        return ()
    if old.bad:
        warning = Warn(REASSIGN_PARTITIONS, f"{old.bad}; deleted")
        return (warning, *plan_write("deleted", old, ()))
    new = _find_new(old, readings)
    if new:
        return _translate(context, old, new, readings)
    left = tuple(e for e in old.entries if not _is_translated(old, e) or _is_wanted(context, e))
    if left == old.entries and left:
        return ()
    return plan_write("entries-removed", old, left)


def plan_entry_done(context: Context, key: PartitionKey, target: ReplicaList) -> tuple[Step, ...]:
    """Return the step that takes out the entry of a reassignment which is complete, if any.

    An entry that names another target stays: a client has written it meanwhile (KAFKA-9089).
    """
    old = context.old
    if old is None:
        return ()
    left = tuple(e for e in old.entries if e.key != key or e.target != target)
    return () if left == old.entries else plan_write("entry-removed", old, left)


def _find_new(old: OldZnode, readings: Readings) -> Entries:
    """Return the entries to make a request of.

    The protocol begins with the creation of the znode: what a client adds later is looked at where
    the reading `legacy.rewrite` says so, and by the next controller.
    """
    again = readings.legacy_rewrite == "taken-up"
    if not (again or old.translated is None):
        return ()
    return tuple(entry for entry in old.entries if not _is_translated(old, entry))


def _translate(
    context: Context, old: OldZnode, new: Entries, readings: Readings
) -> tuple[Step, ...]:
    steps: tuple[Step, ...] = ()
    if readings.legacy_original_replicas == "controller":
        filled = tuple(_fill(context, entry) for entry in old.entries)
        if filled != old.entries:
            steps = plan_write("originals-recorded", old, filled)
            old = old.holding(filled, old.version + 1)
    return (
        *steps,
        RecheckOldZnode(),
        TranslateEntries(point="old-znode.translated", entries=new, version=old.version),
    )


def _fill(context: Context, entry: LegacyEntry) -> LegacyEntry:
    """Return the entry with the assigned replicas as the original ones, where that is known.

    While a partition is being reassigned nobody knows what it began with.
    """
    content = context.partitions.get(entry.key)
    if entry.original is not None or content is None or content.child is not None:
        return entry
    return replace(entry, original=content.assigned)


def _is_translated(old: OldZnode, entry: LegacyEntry) -> bool:
    return (entry.key, entry.target) in (old.translated or ())


def _is_wanted(context: Context, entry: LegacyEntry) -> bool:
    """Whether what the entry asks for is in flight, by this route."""
    content = context.partitions.get(entry.key)
    child = None if content is None else content.child
    return child is not None and child.legacy and child.target == entry.target
