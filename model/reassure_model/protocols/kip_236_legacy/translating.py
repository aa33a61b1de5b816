"""The old znode as a whole: what may be made of it next, and what a right controller makes of it.

What ZooKeeper holds and what was made of each entry (`entries.Entry`) is all that the controller
decides by: it has seen the entries that it has made requests of.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from reassure_model.machine import Judgement
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Environment, Partition, Request, is_done
from reassure_model.protocols.kip_236_legacy import (
    Effect,
    Legacy,
    RewriteZnode,
    Translate,
    next_for_znode,
    remove_completed,
)
from reassure_model.protocols.kip_236_legacy.entries import (
    NO,
    YES,
    Entry,
    find_broken_translation,
    find_entry_debt,
    is_entry_left,
    judge_entry_change,
    judge_entry_removal,
    judge_translation,
)
from reassure_model.writes import DeleteReassignment, Obligation
from reassure_spec.readings import Readings
from reassure_spec.znodes import LegacyEntry, PartitionKey

WITH_LAST: Final = "legacy.znode.deleted-with-last"


@dataclass(frozen=True, slots=True)
class Translating:
    """The partitions of a cluster, and the old znode in front of them."""

    partitions: Mapping[PartitionKey, Partition] = field(default_factory=dict)
    entries: tuple[tuple[PartitionKey, Entry], ...] | None = None
    """By partition; None where there is no znode, none where it says nothing."""


class DueZnode(NamedTuple):
    """What a controller has to do with the znode, and the clause that it breaks by a rest."""

    write: Effect
    clause: str = ""


def find_due(state: Translating, around: Environment, readings: Readings) -> DueZnode | None:
    """Return what a right controller does with the znode next, None where it waits.

    Entries of what is complete go first, before the records.
    """
    legacy = _see(state, around)
    for key, partition in legacy.partitions:
        if is_done(partition):
            ends = Obligation(DeleteReassignment(), "complete.child-last")
            removal = remove_completed(legacy, key, ends)
            if removal is not None:
                return DueZnode(removal)
    effect = next_for_znode(legacy, readings)
    return None if effect is None else DueZnode(effect)


def _see(state: Translating, around: Environment) -> Legacy:
    """Return what the acting controller has before it.

    It has looked at the znode already where all that it made nothing of came later.
    """
    there = state.entries or ()
    entries = tuple(LegacyEntry(key, each.target, each.original) for key, each in there)
    translated = {key for key, each in there if each.translated == YES}
    seen = tuple(each for each in entries if each.key in translated)
    partitions = tuple(sorted(state.partitions.items(), key=lambda pair: pair[0]))
    looked = seen if seen or not any(each.created for _, each in there) else None
    found = None if state.entries is None else entries
    return Legacy(partitions, around.live, around.known, entries=found, seen=looked)


def fail_over(state: Translating, _: Readings) -> Translating:
    """Return what the next controller finds, who has made nothing of any entry."""
    if state.entries is None:
        return state
    found = ((key, replace(each, translated=NO, created=True)) for key, each in state.entries)
    return replace(state, entries=tuple(found))


def accept(
    state: Translating, write: Effect, around: Environment, readings: Readings
) -> Accepted[Translating] | Rejected:
    """Whether a controller may make a request of these entries now, or leave these in the znode."""
    if isinstance(write, Translate):
        return accept_translation(state, write)
    assert isinstance(write, RewriteZnode)
    return accept_rewrite(state, write, around, readings)


def accept_translation(state: Translating, write: Translate) -> Accepted[Translating] | Rejected:
    """Judge a request that is made of entries."""
    there = dict(state.entries or ())
    asked = {each.key: each.target for each in write.entries}
    offered = {key: (entry.target,) for key, entry in there.items()}
    broken = find_broken_translation(asked, offered, marked=True)
    if broken is not None:
        return broken
    clauses: tuple[str, ...] = ("legacy.translate.request",)
    partitions = dict(state.partitions)
    for key, target in asked.items():
        judged = judge_translation(there[key])
        if isinstance(judged, Rejected):
            return judged
        clauses += judged
        there[key] = replace(there[key], translated=YES)
        before = partitions.get(key, Partition())
        made = Request(len(before.requests), target, legacy=True)
        partitions[key] = replace(before, requests=(*before.requests, made))
    kept = type(state.partitions)(partitions)  # type: ignore[call-arg]
    return Accepted(Translating(kept, tuple(there.items())), clauses)


def accept_rewrite(
    state: Translating, write: RewriteZnode, around: Environment, readings: Readings
) -> Accepted[Translating] | Rejected:
    """Judge another content of the znode, or its removal where no entry is left."""
    there, left = dict(state.entries or ()), {each.key: each for each in write.entries}
    clauses: tuple[str, ...] = () if left else (WITH_LAST,)
    after = []
    for key, entry in there.items():
        if key not in left:
            partition = state.partitions.get(key, Partition())
            judged = judge_entry_removal(entry, partition, around, readings)
            if isinstance(judged, Rejected):
                return judged
            clauses += judged
    for key, new in left.items():
        changed = judge_entry_change(there.get(key), new, state.partitions.get(key, Partition()))
        if isinstance(changed, Rejected):
            return changed
        clauses += changed
        after.append((key, replace(there[key], original=new.original)))
    return Accepted(replace(state, entries=tuple(after) if left else None), clauses)


def find_debt(state: Translating, around: Environment, readings: Readings) -> DueZnode | None:
    """Return what is held against a controller that does no more with the znode, or rests."""
    due = find_due(state, around, readings)
    write = Translate(()) if due is None else due.write
    for key, entry in state.entries or ():
        partition = state.partitions.get(key, Partition())
        if is_entry_left(entry, partition) and is_done(partition):
            return DueZnode(write, "legacy.entry.before-child")
        owed = find_entry_debt(entry, partition, readings)
        if owed is not None:
            return DueZnode(write, owed.clause)
    return DueZnode(write, WITH_LAST) if state.entries == () else None


TRANSLATING: Final[Judgement[Translating, Effect]] = Judgement(
    Translating(), accept, fail_over, find_due
)
