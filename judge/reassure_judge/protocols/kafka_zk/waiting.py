"""Partitions that wait for a leader though somebody may lead: an obligation with a time.

A controller elects as soon as it hears that a leader is gone, or that somebody who may lead is
back. When it hears of that no log says. So a partition is watched from the moment at which it could
have been elected for, or the acting controller won if that is later. `grace_ms` later, at a write
of that controller, nobody can say whether it had heard; once it has answered an event that happened
so much later as well (the birth of a partition, the loss of a broker), it had.

A replica whose disk may be dead, and the topic that is to be deleted, wait for nobody.
"""

from dataclasses import dataclass
from typing import Final, Protocol

from reassure_judge.doubt import ChangeTime
from reassure_judge.history import Forbidden
from reassure_model.partition import LeaderAndIsr
from reassure_model.protocols.kafka_zk import Assignment
from reassure_spec.clauses import clause
from reassure_spec.znodes import PartitionKey, ReplicaList

LATE: Final = "its controller had not come to this yet"


class Known(Protocol):
    """What is asked of a cluster."""

    states: dict[PartitionKey, LeaderAndIsr]
    lists: dict[str, dict[int, Assignment]]
    live: frozenset[int]
    deleting: set[str]
    controller: int | None
    won_ms: int


@dataclass(slots=True)
class Wait:
    """One partition that waits."""

    since: ChangeTime
    able: ReplicaList
    """Who may lead: in sync, assigned and alive."""
    ripe: int = 0
    """The first event so much later that whoever answers it has come to this; 0 for none yet."""
    open: bool = False
    """Whether it was told that nobody can say."""


class LeaderWaits:
    """The partitions of one cluster that wait for a leader."""

    def __init__(self) -> None:
        self.waits: dict[PartitionKey, Wait] = {}

    def note(
        self, cluster: Known, key: PartitionKey, now: ChangeTime, dead: frozenset[int]
    ) -> None:
        """Note how a partition stands; `dead` are the brokers that may have lost a disk of it."""
        state, lists = cluster.states.get(key), cluster.lists.get(key[0], {}).get(key[1])
        able: ReplicaList = ()
        if state is not None and lists is not None and state.leader not in cluster.live:
            fit = cluster.live.intersection(state.isr) - dead
            able = tuple(r for r in lists.replicas if r in fit)
        if not able:
            self.waits.pop(key, None)
        elif key not in self.waits or self.waits[key].able != able:
            self.waits[key] = Wait(now, able)

    def ripen(self, cluster: Known, now: ChangeTime, grace_ms: int) -> None:
        """Note an event that a controller answers."""
        for wait in self.waits.values():
            if not wait.ripe and now.time_ms - max(wait.since.time_ms, cluster.won_ms) > grace_ms:
                wait.ripe = now.zxid

    @clause("election.held")
    def find_overdue(
        self, cluster: Known, now: ChangeTime, grace_ms: int, answered: int
    ) -> list[tuple[PartitionKey, Forbidden]]:
        """Return what is to be told as the acting controller writes; `answered` is the event."""
        found = []
        for key, wait in list(self.waits.items()):
            if key not in cluster.states:
                del self.waits[key]
                continue
            if wait.since.time_ms == 0:  # it stood so in the snapshot
                wait.since = now
            if key[0] in cluster.deleting or cluster.controller is None:
                continue
            since = max(wait.since.time_ms, cluster.won_ms)
            reason = (
                f"nobody leads {key[0]}-{key[1]} since 0x{wait.since.zxid:x}, "
                f"{(now.time_ms - since) // 1000} s, and {list(wait.able)} may"
            )
            if wait.ripe and answered >= wait.ripe:
                del self.waits[key]
                found.append((key, Forbidden("election.held", reason)))
            elif not wait.open and now.time_ms - since > grace_ms:
                wait.open = True
                found.append((key, Forbidden("election.held", reason, (LATE,))))
        return found
