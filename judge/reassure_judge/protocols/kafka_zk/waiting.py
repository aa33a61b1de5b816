"""What waits though it could go on: obligations with a time.

* A partition that nobody leads though a replica in sync is alive.
* A reassignment that is not completed though its target is in sync: as a topic's znode records it,
  or before 2.4 the old znode.
* An entry of the old znode for a partition that does not exist.

A controller acts as soon as it hears of that. When it hears no log says. So a partition is watched
from the moment at which it could have gone on, or the acting controller won if that is later.
`grace_ms` later, at a write of that controller, nobody can say whether it had heard; once it has
answered an event that happened so much later as well (the birth of a partition, the loss of a
broker), it had.

Nothing waits in a topic that is to be deleted, nor for a replica whose disk may be dead.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from reassure_judge.doubt import ChangeTime
from reassure_judge.history import Forbidden
from reassure_model.partition import LeaderAndIsr
from reassure_model.protocols.kafka_zk import Assignment
from reassure_spec.clauses import clause
from reassure_spec.znodes import PartitionKey, ReplicaList

LATE: Final = "its controller had not come to this yet"


class KnownCluster(Protocol):
    """What is asked of a cluster."""

    states: dict[PartitionKey, LeaderAndIsr]
    lists: dict[str, dict[int, Assignment]]
    live: frozenset[int]
    deleting: set[str]
    controller: int | None
    won_ms: int
    entries: dict[PartitionKey, ReplicaList]


class OpenDuty(NamedTuple):
    """What is to be done."""

    clause: str
    words: str


@dataclass(slots=True)
class PartitionWait:
    """One partition that waits."""

    since: ChangeTime
    duty: OpenDuty
    ripe: int = 0
    """The first event so much later that whoever answers it has come to this; 0 for none yet."""
    open: bool = False
    """Whether it was told that nobody can say."""


@clause(
    "election.held",
    "shipped.complete.carried-out",
    "move.step.remove-path",
    "shipped.entry.not-for-ever",
)
def find_duty(
    cluster: KnownCluster, key: PartitionKey, dead: frozenset[int], completed: str | None
) -> OpenDuty | None:
    """Return what could be done for a partition now; `dead`: who may have lost a disk of it.

    `completed` is the clause by which an entry is carried out, None where the lists tell of moves.
    """
    state, lists = cluster.states.get(key), cluster.lists.get(key[0], {}).get(key[1])
    entry = cluster.entries.get(key)
    if lists is None and entry is not None:
        words = f"the old znode names it, target {list(entry)}, and it is not there"
        return OpenDuty("shipped.entry.not-for-ever", words)
    if state is None or lists is None:
        return None
    fit = cluster.live.intersection(state.isr) - dead
    if state.leader not in cluster.live:
        able = [replica for replica in lists.replicas if replica in fit]
        return OpenDuty("election.held", f"nobody leads, and {able} may") if able else None
    if lists.is_reassigning and fit.issuperset(lists.target):
        words = f"the target {list(lists.target)} is in sync, and the move is not completed"
        return OpenDuty("shipped.complete.carried-out", words)
    if completed and entry and fit.issuperset(entry) and len(entry) == len(set(entry)):
        words = f"the target {list(entry)} is in sync, and the old znode names it still"
        return OpenDuty(completed, words)
    return None


class PartitionWaits:
    """The partitions of one cluster that wait."""

    def __init__(self) -> None:
        self.waits: dict[PartitionKey, PartitionWait] = {}

    def note(
        self,
        cluster: KnownCluster,
        key: PartitionKey,
        now: ChangeTime,
        dead: frozenset[int],
        completed: str | None,
    ) -> None:
        """Note how a partition stands."""
        duty = find_duty(cluster, key, dead, completed)
        if duty is None:
            self.waits.pop(key, None)
        elif key not in self.waits or self.waits[key].duty != duty:
            self.waits[key] = PartitionWait(now, duty)

    def ripen(self, cluster: KnownCluster, now: ChangeTime, grace_ms: int) -> None:
        """Note an event that a controller answers."""
        for wait in self.waits.values():
            if not wait.ripe and now.time_ms - max(wait.since.time_ms, cluster.won_ms) > grace_ms:
                wait.ripe = now.zxid

    def find_overdue(
        self, cluster: KnownCluster, now: ChangeTime, grace_ms: int, answered: int
    ) -> list[tuple[PartitionKey, Forbidden]]:
        """Return what is to be told as the acting controller writes; `answered` is the event."""
        found = []
        for key, wait in list(self.waits.items()):
            if key not in cluster.states and key not in cluster.entries:
                del self.waits[key]
                continue
            if wait.since.time_ms == 0:  # it stood so in the snapshot
                wait.since = now
            if key[0] in cluster.deleting or cluster.controller is None:
                continue
            long = now.time_ms - max(wait.since.time_ms, cluster.won_ms)
            since = f"since 0x{wait.since.zxid:x}, {long / 1000:.1f} s"
            reason = f"{key[0]}-{key[1]}: {wait.duty.words}, {since}"
            if wait.ripe and answered >= wait.ripe:
                del self.waits[key]
                found.append((key, Forbidden(wait.duty.clause, reason)))
            elif not wait.open and long > grace_ms:
                wait.open = True
                found.append((key, Forbidden(wait.duty.clause, reason, (LATE,))))
        return found
