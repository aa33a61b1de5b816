"""Who is elected, example by example."""

import pytest

from reassure_model.selectors import (
    Elected,
    select_new,
    select_offline,
    select_preferred,
    select_reassigned,
)

Replicas = tuple[int, ...]


@pytest.mark.clause("election.clean", "election.live", "election.assignment-order")
@pytest.mark.parametrize(
    ("assigned", "isr", "live", "expected"),
    [
        ((2, 4), (2, 4), {4}, Elected(4, (4,))),
        ((3, 2, 1), (1, 2, 3), {1, 2}, Elected(2, (1, 2))),
        ((1, 2), (1,), {2}, None),
        ((1, 2), (1, 2), set(), None),
        ((1, 2), (1,), {1, 2}, Elected(1, (1,))),
    ],
)
def test_offline_election_takes_first_live_in_sync(
    assigned: Replicas, isr: Replicas, live: set[int], expected: Elected | None
) -> None:
    """The first assigned replica that is live and in sync leads, and the dead leave the set."""
    assert select_offline(assigned, isr, frozenset(live)) == expected


def test_unclean_election_is_last_resort() -> None:
    """A replica out of sync is elected only on request and only where none in sync is alive."""
    assert select_offline((2, 4), (2,), frozenset({4})) is None
    assert select_offline((2, 4), (2,), frozenset({4}), unclean=True) == Elected(4, (4,))
    assert select_offline((2, 4), (4,), frozenset({2, 4}), unclean=True) == Elected(4, (4,))
    assert select_offline((2, 4), (2,), frozenset(), unclean=True) is None


@pytest.mark.clause("complete.leader-first-in-sync-target")
@pytest.mark.parametrize(
    ("target", "isr", "live", "expected"),
    [
        ((2, 4), (2, 4), {4}, Elected(4, (2, 4))),
        ((1, 2, 3), (0, 1, 2, 3), {0, 1, 2, 3}, Elected(1, (0, 1, 2, 3))),
        ((2, 4), (1,), {1, 2, 4}, None),
        ((2, 4), (2, 4), {1}, None),
    ],
)
def test_reassigned_election_stays_in_target(
    target: Replicas, isr: Replicas, live: set[int], expected: Elected | None
) -> None:
    """The first target replica that is live and in sync leads; the in-sync set is unchanged."""
    assert select_reassigned(target, isr, frozenset(live)) == expected


@pytest.mark.clause("election.preferred")
@pytest.mark.parametrize(
    ("isr", "live", "expected"),
    [
        ((2, 4), {2, 4}, Elected(2, (2, 4))),
        ((2, 4), {4}, None),
        ((4,), {2, 4}, None),
        ((4,), {4}, None),
    ],
)
def test_preferred_election_takes_head_or_nobody(
    isr: Replicas, live: set[int], expected: Elected | None
) -> None:
    """Only the head of the assignment qualifies, and only alive and in sync."""
    assert select_preferred((2, 4), isr, frozenset(live)) == expected


@pytest.mark.clause("partition.new.leader-first-live", "partition.new.isr-all-live")
def test_new_partition_starts_with_live_replicas() -> None:
    """The first live replica leads and all live ones are in sync, in assignment order."""
    assert select_new((3, 1, 2), frozenset({1, 2})) == Elected(1, (1, 2))
    assert select_new((3, 1, 2), frozenset({4})) is None
