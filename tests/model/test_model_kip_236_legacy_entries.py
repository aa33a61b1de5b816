"""What a controller may do with the entries of the old znode."""

from dataclasses import replace
from typing import Final

import pytest

from reassure_model.outcome import Rejected
from reassure_model.partition import Environment, LeaderAndIsr, Partition, Reassignment, Request
from reassure_model.protocols.kip_236_legacy.entries import (
    NO,
    YES,
    Entry,
    find_broken_translation,
    find_entry_debt,
    judge_entry_change,
    judge_entry_removal,
)
from reassure_spec.readings import get_profile
from reassure_spec.znodes import LegacyEntry

KEY: Final = ("t", 0)
AROUND: Final = Environment(frozenset({1, 2, 3}), frozenset({1, 2, 3}))
READINGS: Final = get_profile("kip-236-legacy")
IDLE: Final = Partition((1, 2), LeaderAndIsr(1, 0, 1, (1, 2)))
MOVING: Final = Partition(
    (1, 2, 3), LeaderAndIsr(1, 1, 1, (1, 2)), Reassignment((2, 3), 2, legacy=True)
)
DONE: Final = Partition(
    (2, 3), LeaderAndIsr(2, 3, 1, (2, 3)), Reassignment((2, 3), 2, legacy=True), completing=True
)
ASKED: Final = replace(IDLE, requests=(Request(0, (2, 3), legacy=True),))
TRANSLATED: Final = Entry((2, 3), translated=YES)


@pytest.mark.parametrize(
    ("entry", "partition", "clause"),
    [
        (TRANSLATED, MOVING, "legacy.entry.removed-when-done"),
        (TRANSLATED, ASKED, "legacy.entry.removed-when-done"),
        (Entry((2, 3), translated=NO), IDLE, "legacy.translate.request"),
        (Entry((2, 3), translated=NO, created=False), IDLE, "legacy.entry.matching-target"),
    ],
)
def test_entry_is_removed_too_early(entry: Entry, partition: Partition, clause: str) -> None:
    """An entry stays while its move goes on, and until something was made of it."""
    found = judge_entry_removal(entry, partition, AROUND, READINGS)
    assert isinstance(found, Rejected)
    assert found.clause == clause


@pytest.mark.parametrize(
    ("entry", "partition", "clause"),
    [
        (TRANSLATED, DONE, "legacy.entry.removed-when-done"),
        (TRANSLATED, IDLE, "legacy.entry.refused-removed"),
        (
            Entry((2, 9), translated=YES),
            replace(IDLE, requests=(Request(0, (2, 9), legacy=True),)),
            "legacy.entry.refused-removed",
        ),
        (Entry((2, 3), translated=YES, begun=True), IDLE, "legacy.entry.removed-when-done"),
    ],
)
def test_entry_is_removed_in_time(entry: Entry, partition: Partition, clause: str) -> None:
    """An entry goes once its move is done, or was refused."""
    assert clause in judge_entry_removal(entry, partition, AROUND, READINGS)


@pytest.mark.parametrize(
    ("entry", "partition", "rewrite", "clause"),
    [
        (TRANSLATED, ASKED, "ignored", None),
        (TRANSLATED, MOVING, "ignored", None),
        (Entry((2, 3)), IDLE, "ignored", "legacy.translate.request"),
        (Entry((2, 3), created=False), IDLE, "ignored", None),
        (Entry((2, 3), created=False), IDLE, "taken-up", "legacy.translate.request"),
        (TRANSLATED, IDLE, "ignored", "legacy.entry.refused-removed"),
        (replace(TRANSLATED, begun=True), IDLE, "ignored", "legacy.entry.removed-when-done"),
    ],
)
def test_entry_at_rest_is_owed(
    entry: Entry, partition: Partition, rewrite: str, clause: str | None
) -> None:
    """Who rests owes a request, then the removal; one that came later may wait by the reading."""
    found = find_entry_debt(entry, partition, replace(READINGS, legacy_rewrite=rewrite))
    assert (None if found is None else found.clause) == clause


@pytest.mark.parametrize(
    ("before", "target", "original", "clause"),
    [
        (None, (2, 3), None, "legacy.entry.by-client"),
        (TRANSLATED, (3, 2), None, "legacy.entry.by-client"),
        (TRANSLATED, (2, 3), (3, 1), "legacy.original.recorded"),
        (Entry((2, 3), (1, 2)), (2, 3), (3, 1), "legacy.original.recorded"),
    ],
)
def test_entry_is_changed_by_the_controller(
    before: Entry | None, target: tuple[int, ...], original: tuple[int, ...] | None, clause: str
) -> None:
    """A controller adds the original replicas at most, and the right ones."""
    found = judge_entry_change(before, LegacyEntry(KEY, target, original), IDLE)
    assert isinstance(found, Rejected)
    assert found.clause == clause
    same = judge_entry_change(TRANSLATED, LegacyEntry(KEY, (2, 3)), IDLE)
    assert same == ("legacy.entry.by-client",)
    kept = judge_entry_change(TRANSLATED, LegacyEntry(KEY, (2, 3), (1, 2)), IDLE)
    assert kept == ("legacy.entry.by-client", "legacy.original.recorded")


def test_translation_names_entries_and_is_marked() -> None:
    """A request that a controller makes of the znode asks for entries of it, and says so."""
    offered = {KEY: [(2, 3), (3, 1)]}
    assert find_broken_translation({KEY: (3, 1)}, offered, marked=True) is None
    strange = find_broken_translation({KEY: (2, 1)}, offered, marked=True)
    unmarked = find_broken_translation({KEY: (2, 3)}, offered, marked=False)
    assert strange is not None
    assert unmarked is not None
    assert strange.clause == "legacy.translate.request"
    assert unmarked.clause == "legacy.translate.flag"
