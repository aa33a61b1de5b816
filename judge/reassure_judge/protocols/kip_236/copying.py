"""KIP-236's router where many partitions are followed at once: it copies to the cluster.

Whoever derives from it adds the znodes of the protocol that stands on top (`kinds`, `_handlers`).
"""

from math import inf
from typing import ClassVar

from reassure_judge.cross_partition import Copied, QueueWritten, RecordCopied
from reassure_judge.history import AssignedWritten, Event, StateWritten
from reassure_judge.protocols.kip_236.router import (
    ReassignmentWritten,
    RequestHistory,
    RequestRouter,
)
from reassure_judge.transaction_reader import CREATE
from reassure_spec.znodes import RequestZnode


class CopyingRouter(RequestRouter):
    """Tells the cluster of every write to a partition, and of requests as a whole."""

    apart: ClassVar[frozenset[str]] = frozenset()

    def get_noticed(self, cluster: RequestHistory) -> float:
        """Return up to when what was changed has been noticed by whoever writes now."""
        return -inf if cluster.changes.is_settled else self._now[1] - self.grace_ms

    def is_created(self, data: bytes | None) -> bool:
        """Whether the write at hand is seen to create its znode."""
        return data is not None and not self._given and self._op.kind == CREATE

    def _emit(
        self, cluster: RequestHistory, topic: str, partition: int, path: str, event: Event
    ) -> None:
        super()._emit(cluster, topic, partition, path, event)
        copy = RecordCopied(event.reassignment) if isinstance(event, ReassignmentWritten) else event
        if topic and isinstance(copy, AssignedWritten | StateWritten | RecordCopied):
            told = Copied((topic, partition), copy, self.get_noticed(cluster))
            super()._emit(cluster, "", -1, path, told)

    def _tell_queue(
        self, cluster: RequestHistory, path: str, sequence: int, request: RequestZnode | None
    ) -> None:
        told = QueueWritten(sequence, request, self.get_noticed(cluster))
        self._emit(cluster, "", -1, path, told)
