"""The old znode `/admin/reassign_partitions` in front of the new request protocol.

A client writes one znode that lists partitions and targets. The controller makes one request out of
it, marked as legacy, and from then on the rules for requests and reassignments hold as they stand
(`kip_236`, `kip_236.rules`). What is left to say is here: when the znode is translated,
when an entry leaves it, and what a new controller makes of a znode, requests and
reassignments that it finds half done.

`next_effect` is the whole controller: for each partition the write that is owed to it, then the
znode. What it has translated so far (`seen`) is in its memory only, so that a new controller
translates again; asking for the target in flight changes nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from reassure_model.environment import Controller, Die, Failover, NotPossible, On, Return
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Partition
from reassure_model.protocols.kip_236 import Refusal, decide_request
from reassure_model.protocols.kip_236.batch import (
    Batch,
    WriteOwed,
    act_on,
    add_request,
    forget_controller,
    lose_broker,
    make_write,
    next_owed,
    regain_broker,
)
from reassure_model.writes import DeleteReassignment, Obligation
from reassure_spec.clauses import checks, clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import LegacyEntry, PartitionKey, ReplicaList

Entries = tuple[LegacyEntry, ...]


@dataclass(frozen=True, slots=True)
class Legacy(Batch):
    """Several partitions, the old znode, and what the acting controller remembers of it."""

    entries: Entries | None = None
    """Content of the znode, None where it does not exist."""
    seen: Entries | None = None
    """The entries that the acting controller has made requests of, None before it has looked."""


# Effects of the controller ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Translate:
    """Create one request, marked as legacy, for these entries."""

    entries: Entries


@dataclass(frozen=True, slots=True)
class RewriteZnode:
    """Write the entries that are left, or delete the znode where none is."""

    entries: Entries
    why: str


Effect = WriteOwed | Translate | RewriteZnode


# Actions that are not the controller's ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WriteLegacy:
    """A client creates the znode or overwrites it; content that makes no sense has no entries."""

    entries: Entries


@dataclass(frozen=True, slots=True)
class DeleteLegacy:
    """A client deletes the znode."""


@clause("client.request.unmarked")
@dataclass(frozen=True, slots=True)
class Ask:
    """A client creates one request for several partitions."""

    assignments: tuple[tuple[PartitionKey, ReplicaList], ...]
    legacy: bool = False


Action = WriteLegacy | DeleteLegacy | Ask | On | Die | Return | Failover | Controller
Outcome = Accepted[Legacy] | Rejected


def make_legacy(
    assignments: Mapping[PartitionKey, ReplicaList],
    brokers: frozenset[int],
    *,
    min_insync_replicas: int = 1,
) -> Legacy:
    """Return live brokers and partitions that are not yet online."""
    partitions = sorted((key, Partition(assigned)) for key, assigned in assignments.items())
    return Legacy(tuple(partitions), brokers, brokers, min_insync_replicas)


# The controller ---------------------------------------------------------------------------------


@clause("legacy.failover.sources-in-order")
def next_effect(legacy: Legacy, readings: Readings) -> Effect | None:
    """Return the effect that the controller owes next, None while it waits.

    What is in flight comes before pending requests, and both before the old znode.
    """
    due = next_owed(legacy, readings)
    if due is None:
        return next_for_znode(legacy, readings)
    return remove_completed(legacy, due.key, due.owed) or due


@clause("legacy.entry.removed-when-done", "legacy.entry.before-child")
@clause("legacy.entry.matching-target")
def remove_completed(legacy: Legacy, key: PartitionKey, owed: Obligation) -> Effect | None:
    """Take the entry of a reassignment that is complete out of the znode before its record goes."""
    flight = legacy.get(key).reassignment
    if not isinstance(owed.write, DeleteReassignment) or flight is None or not flight.legacy:
        return None
    entries = legacy.entries or ()
    # A client may have written another target meanwhile; that entry is not what is complete.
    left = tuple(e for e in entries if (e.key, e.target) != (key, flight.target))
    return RewriteZnode(left, "complete") if left != entries else None


@clause("legacy.translate.request", "legacy.rewrite.taken-up", "legacy.original.recorded")
@clause("legacy.entry.refused-removed", "legacy.znode.malformed", "legacy.translate.once")
def next_for_znode(legacy: Legacy, readings: Readings) -> Effect | None:
    """Translate what is new in the znode, then remove entries that nothing is in flight for."""
    if legacy.entries is None:
        return None
    fresh = legacy.seen is None or readings.legacy_rewrite == "taken-up"
    new = tuple(e for e in legacy.entries if not _is_seen(legacy, e)) if fresh else ()
    if new and readings.legacy_original_replicas == "controller":
        filled = fill_originals(legacy)
        if filled != legacy.entries:
            return RewriteZnode(filled, "original replicas recorded")
    if new:
        return Translate(new)
    left = tuple(e for e in legacy.entries if not _is_seen(legacy, e) or _is_wanted(legacy, e))
    if left != legacy.entries or not left:
        return RewriteZnode(left, "nothing to wait for")
    return None


def _is_seen(legacy: Legacy, entry: LegacyEntry) -> bool:
    return any((e.key, e.target) == (entry.key, entry.target) for e in legacy.seen or ())


def _is_wanted(legacy: Legacy, entry: LegacyEntry) -> bool:
    """Whether a legacy request or reassignment for the partition is still there."""
    partition = legacy.get(entry.key)
    flight = partition.reassignment
    pending = any(request.legacy for request in partition.requests)
    return pending or (flight is not None and flight.legacy and flight.target == entry.target)


@clause("legacy.original.recorded")
def fill_originals(legacy: Legacy) -> Entries:
    """Return the entries with the assigned replicas as original ones where nobody wrote them.

    While a partition is being reassigned what it began with is not known, and the entry stays.
    """
    filled = []
    for entry in legacy.entries or ():
        partition = legacy.get(entry.key)
        known = partition.reassignment is None and not partition.requests
        if entry.original is None and known and partition.assigned is not None:
            entry = replace(entry, original=partition.assigned)
        filled.append(entry)
    return tuple(filled)


@clause("legacy.original.rollback")
def compute_rollback(entries: Entries) -> tuple[Entries, tuple[PartitionKey, ...]]:
    """Return the entries that lead back to the original replicas, and the partitions without any.

    Without original replicas nobody can say what to go back to: a controller does not remember it.
    """
    back = tuple(
        LegacyEntry(entry.key, entry.original, entry.original)
        for entry in entries
        if entry.original is not None
    )
    return back, tuple(entry.key for entry in entries if entry.original is None)


@clause("legacy.translate.flag")
@checks
def apply_effect(legacy: Legacy, effect: Effect, readings: Readings) -> Outcome:
    """Return the state after an effect of the controller; every write is put to the rules."""
    match effect:
        case WriteOwed():
            return make_write(legacy, effect, readings)
        case Translate(entries):
            asked = tuple((entry.key, entry.target) for entry in entries)
            after = add_request(legacy, asked, legacy=True)
            seen = (*(legacy.seen or ()), *entries)
            return Accepted(replace(after, seen=seen), ("legacy.translate.request",))
        case RewriteZnode(entries):  # one way: there is no other effect
            if entries:
                return Accepted(_with_entries(legacy, entries))
            # The next znode is a new one, even if a client creates it at once.
            return Accepted(
                replace(legacy, entries=None, seen=None), ("legacy.znode.deleted-with-last",)
            )


def _with_entries(legacy: Legacy, entries: Entries) -> Legacy:
    """Return the state with other content in the znode; what has left it is not seen any more."""
    if legacy.seen is None:
        return replace(legacy, entries=entries)
    there = {(entry.key, entry.target) for entry in entries}
    seen = tuple(entry for entry in legacy.seen if (entry.key, entry.target) in there)
    return replace(legacy, entries=entries, seen=seen)


# The world around it ----------------------------------------------------------------------------


@clause("legacy.znode.delete-does-not-cancel", "legacy.failover.translated-again")
@clause("legacy.failover.same-flag", "legacy.failover.top-from-child")
@clause("legacy.failover.half-done", "legacy.conflict.both-ways")
def step(legacy: Legacy, action: Action, readings: Readings) -> Outcome:
    """Take one action.

    Rejected is the answer to a write that the rules do not allow. Raises NotPossible for an action
    that has nothing to act upon.
    """
    match action:
        case WriteLegacy(entries):
            return Accepted(_with_entries(legacy, entries))
        case DeleteLegacy() if legacy.entries is not None:
            # Reassignments in flight have records of their own and go on.
            return Accepted(replace(legacy, entries=None, seen=None))
        case Ask(assignments, flag):
            return Accepted(add_request(legacy, assignments, legacy=flag))
        case On():
            return act_on(legacy, action, readings)
        case Die(broker):
            return Accepted(lose_broker(legacy, broker))
        case Return(broker):
            return Accepted(regain_broker(legacy, broker))
        case Failover():
            return Accepted(replace(forget_controller(legacy, readings), seen=None))
        case Controller():
            effect = next_effect(legacy, readings)
            if effect is not None:
                return apply_effect(legacy, effect, readings)
    raise NotPossible(f"{action} is not possible in {legacy}")


# What a client of the old znode takes for granted -------------------------------------------------


@clause("legacy.entry.refused-removed")
def find_refused_entry(legacy: Legacy, readings: Readings) -> str | None:
    """Say so when an entry was refused, so that only cleaning up removes it (finding legacy-1)."""
    due = next_effect(legacy, readings)
    if not isinstance(due, RewriteZnode) or due.why != "nothing to wait for":
        return None
    for entry in legacy.entries or ():
        flight = legacy.get(entry.key).reassignment
        if entry not in due.entries and flight is not None and not flight.legacy:
            return f"the entry for {list(entry.target)} was refused and is there still"
    return None


@clause("legacy.conflict.both-ways")
def find_refused_route(legacy: Legacy, readings: Readings) -> str | None:
    """Say so when a request is refused for the route of the move in flight (finding legacy-2)."""
    for key, partition in legacy.partitions:
        if partition.reassignment is None or not partition.requests:
            continue
        around = legacy.as_system(key).around
        decision = decide_request(partition.requests[0], partition, around, readings)
        if isinstance(decision, Refusal) and decision.clause == "request.conflict.legacy-flag":
            return f"{list(partition.requests[0].target)} is refused: {decision.reason}"
    return None


@clause("legacy.rewrite.taken-up")
def find_unseen_entry(legacy: Legacy, readings: Readings) -> str | None:
    """Say so when the controller waits and has never looked at an entry (finding legacy-3)."""
    if legacy.entries is None or next_effect(legacy, readings) is not None:
        return None
    seen = [(entry.key, entry.target) for entry in legacy.seen or ()]
    for entry in legacy.entries:
        if (entry.key, entry.target) not in seen:
            return f"the controller waits and has not seen the entry for {list(entry.target)}"
    return None


PROMISES: Final[Mapping[str, Callable[[Legacy, Readings], str | None]]] = {
    "legacy.entry.refused-removed": find_refused_entry,
    "legacy.conflict.both-ways": find_refused_route,
    "legacy.rewrite.taken-up": find_unseen_entry,
}
"""By clause. As written each is broken."""
