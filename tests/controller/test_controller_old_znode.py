"""The old znode: what a controller makes of it, and what the readings change."""

from typing import Any

import pytest

from reassure_spec.readings import Readings
from reassure_spec.znodes import (
    REASSIGN_PARTITIONS,
    LegacyEntry,
    decode_reassign_partitions,
    encode_reassign_partitions,
)

KEY = ("t", 0)


def ask(cluster: Any, *entries: LegacyEntry) -> None:
    """Make the old znode, or overwrite it."""
    content = encode_reassign_partitions(entries)
    if cluster.admin.exists(REASSIGN_PARTITIONS):
        cluster.admin.set(REASSIGN_PARTITIONS, content)
    else:
        cluster.admin.create(REASSIGN_PARTITIONS, content)


def read(cluster: Any) -> tuple[LegacyEntry, ...] | None:
    """Return the entries of the old znode, None where it is not there."""
    if not cluster.admin.exists(REASSIGN_PARTITIONS):
        return None
    return decode_reassign_partitions("", cluster.admin.get(REASSIGN_PARTITIONS)[0])


@pytest.mark.parametrize(("who", "original"), [("client", None), ("controller", (1, 2))])
@pytest.mark.clause("legacy.original.recorded")
def test_originals_are_recorded_where_the_reading_says_so(
    who: str, original: tuple[int, ...] | None, cluster: Any
) -> None:
    """Under `legacy.original-replicas=controller` an entry gets what was assigned before."""
    controller = cluster.controller(
        readings=Readings(legacy_original_replicas=who), profile="kip-236-legacy"
    )
    cluster.create_topic("t", {0: (1, 2)}, then=controller)
    ask(cluster, LegacyEntry(KEY, (2, 3)))
    controller.drain()
    assert read(cluster) == (LegacyEntry(KEY, (2, 3), original),)
    assert cluster.child(*KEY).legacy
    cluster.join(*KEY, 3, then=controller)
    assert read(cluster) is None
    assert cluster.assigned(*KEY) == (2, 3)


@pytest.mark.parametrize(("rewrite", "target"), [("ignored", (2, 3)), ("taken-up", (2, 4))])
@pytest.mark.clause("legacy.rewrite.taken-up")
def test_entries_that_change_are_taken_up_where_the_reading_says_so(
    rewrite: str, target: tuple[int, ...], cluster: Any
) -> None:
    """Whether another target under the same znode changes what is in flight is a reading."""
    controller = cluster.controller(
        readings=Readings(legacy_rewrite=rewrite), profile="kip-236-legacy"
    )
    cluster.create_topic("t", {0: (1, 2)}, then=controller)
    ask(cluster, LegacyEntry(KEY, (2, 3)))
    controller.drain()
    ask(cluster, LegacyEntry(KEY, (2, 4)))
    controller.drain()
    assert cluster.child(*KEY).target == target
    assert read(cluster) == (LegacyEntry(KEY, (2, 4)),)


@pytest.mark.parametrize("effects", range(8))
@pytest.mark.clause("legacy.failover.half-done")
def test_successor_ends_where_the_first_would_have(effects: int, cluster: Any) -> None:
    """Wherever a controller dies with an entry half carried out, the next one completes it."""
    cluster.create_topic("t", {0: (1, 2)})
    first = cluster.controller(profile="kip-236-legacy")
    first.drain()
    ask(cluster, LegacyEntry(KEY, (2, 3)), LegacyEntry(("nowhere", 0), (1,)))
    first.drain(max_effects=effects)
    first.kill()
    second = cluster.controller(profile="kip-236-legacy")
    second.drain()
    assert read(cluster) == (LegacyEntry(KEY, (2, 3)),)
    cluster.join(*KEY, 3)
    second.drain(max_effects=effects)
    second.kill()
    third = cluster.controller(profile="kip-236-legacy")
    third.drain()
    assert (read(cluster), cluster.assigned(*KEY), cluster.child(*KEY)) == (None, (2, 3), None)
    assert cluster.requests() == []


def test_nobody_looks_at_the_old_znode_where_it_is_not_asked_for(cluster: Any) -> None:
    """Under a profile without the old znode it is left alone."""
    controller = cluster.begin({0: (1, 2)})
    ask(cluster, LegacyEntry(KEY, (2, 3)))
    controller.drain()
    assert read(cluster) == (LegacyEntry(KEY, (2, 3)),)
    assert cluster.child(*KEY) is None
