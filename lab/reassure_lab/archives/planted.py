"""A history in which faults are planted one by one, each in a topic of its own.

What an audit finds in it is known beforehand, zxid by zxid, so it shows whether an audit finds all
there is and nothing else.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from reassure_judge.suspicion import SHUTDOWN_MS
from reassure_lab.archives.sample import SampleCluster
from reassure_spec import znodes

OLD: Final = (1, 2, 3)
NEW: Final = (4, 5, 6)
OTHER: Final = (4, 7, 8)


class Planted(NamedTuple):
    """Where a fault was planted and which clause it breaks."""

    clause: str
    topic: str
    """Empty for a fault of the cluster, whose partition is -1."""
    partition: int
    zxid: int


Plant = Callable[[SampleCluster, str], int]


def _begun(cluster: SampleCluster, topic: str) -> None:
    cluster.begin_reassign(topic, {0: NEW})


def _unfenced(cluster: SampleCluster, topic: str) -> int:
    sequence = cluster.submit(topic, {0: NEW})
    cluster.record(topic, 0, NEW)
    cluster.remove_request(sequence)
    return cluster.write_assigned(topic, 0, OLD + NEW, fenced=False)


def _isr_by_follower(cluster: SampleCluster, topic: str) -> int:
    _begun(cluster, topic)
    return cluster.write_isr(topic, 0, (*OLD, 4), writer=2)


def _isr_of_stranger(cluster: SampleCluster, topic: str) -> int:
    return cluster.write_isr(topic, 0, (*OLD, 8))


def _epoch_raised_by_two(cluster: SampleCluster, topic: str) -> int:
    sequence = cluster.submit(topic, {0: NEW})
    cluster.record(topic, 0, NEW)
    cluster.remove_request(sequence)
    cluster.write_assigned(topic, 0, OLD + NEW)
    return cluster.write_state(topic, 0, raised=2)


def _completed_too_early(cluster: SampleCluster, topic: str) -> int:
    _begun(cluster, topic)
    cluster.join(topic, 0, (4, 5))
    return cluster.write_assigned(topic, 0, NEW)


def _wrong_top(cluster: SampleCluster, topic: str) -> int:
    cluster.submit(topic, {0: NEW})
    return cluster.record(topic, 0, NEW, top=6)


def _top_recomputed(cluster: SampleCluster, topic: str) -> int:
    _begun(cluster, topic)
    cluster.submit(topic, {0: OTHER})
    return cluster.record(topic, 0, OTHER, top=6)


def _request_removed_first(cluster: SampleCluster, topic: str) -> int:
    return cluster.remove_request(cluster.submit(topic, {0: NEW}))


def _record_removed_early(cluster: SampleCluster, topic: str) -> int:
    _begun(cluster, topic)
    return cluster.remove_record(topic, 0)


def _leader_out_of_sync(cluster: SampleCluster, topic: str) -> int:
    _begun(cluster, topic)
    return cluster.write_state(topic, 0, leader=4, isr=OLD)


def _nothing_dropped(cluster: SampleCluster, topic: str) -> int:
    _begun(cluster, topic)
    sequence = cluster.submit(topic, {0: OTHER})
    cluster.record(topic, 0, OTHER)
    cluster.remove_request(sequence)
    return cluster.write_assigned(topic, 0, (*OLD, *NEW, 7, 8))


def _effects_before_record(cluster: SampleCluster, topic: str) -> int:
    cluster.submit(topic, {0: NEW})
    return cluster.write_assigned(topic, 0, OLD + NEW)


def _live_replica_removed(cluster: SampleCluster, topic: str) -> int:
    zxid = cluster.write_state(topic, 0, isr=(1, 2))
    # Its broker is still there when no controlled shutdown would take so long.
    cluster.time_ms += SHUTDOWN_MS
    cluster.join(topic, 0, (3,))
    return zxid


def _garbage(cluster: SampleCluster, topic: str) -> int:
    return cluster.control(cluster.put(znodes.state_path(topic, 0), b"{"))


FAULTS: Final[tuple[tuple[str, Plant], ...]] = (
    ("controller.write.epoch-checked", _unfenced),
    ("isr.change.by-leader", _isr_by_follower),
    ("isr.change.assigned-only", _isr_of_stranger),
    ("leader-epoch.raised-by-one", _epoch_raised_by_two),
    ("complete.target-in-sync", _completed_too_early),
    ("top.original-length", _wrong_top),
    ("top.once-per-chain", _top_recomputed),
    ("request.delete.child-first", _request_removed_first),
    ("complete.child-last", _record_removed_early),
    ("election.clean", _leader_out_of_sync),
    ("drop.before-expansion", _nothing_dropped),
    ("child.before-effects", _effects_before_record),
    ("isr.remove.only-when-due", _live_replica_removed),
    ("znode.well-formed", _garbage),
)


def plant_all(cluster: SampleCluster) -> list[Planted]:
    """Plant every fault, with clean reassignments between them; answer what is to be found."""
    # A minute later nobody can say that he has not noticed yet which brokers are there.
    cluster.time_ms += 60_000
    planted = []
    for number, (clause, plant) in enumerate(FAULTS):
        topic, clean = f"faulty-{number:02d}", f"clean-{number:02d}"
        cluster.create_topic(topic, {0: OLD})
        cluster.create_topic(clean, {0: OLD, 1: OLD})
        cluster.begin_reassign(clean, {0: NEW, 1: NEW})
        planted.append(Planted(clause, topic, 0, plant(cluster, topic)))
        for partition in (0, 1):
            cluster.join(clean, partition, NEW)
            cluster.complete(clean, partition, NEW)
    zxid = cluster.elect(2, raised=2)
    planted.append(Planted("controller.epoch.raised-by-one", "", -1, zxid))
    return planted
