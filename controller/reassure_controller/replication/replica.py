"""One broker's replica of one partition: its log, its high watermark, and what it is told to be."""

import logging
from typing import TYPE_CHECKING, Final

from reassure_controller.replication.host import HostedPartition
from reassure_controller.storage.log import PartitionLog
from reassure_spec.observations import (
    Answer,
    Fetch,
    Produce,
    Restored,
    Serve,
    Spans,
    Stopped,
    What,
)
from reassure_spec.observations import Replica as ReplicaLine
from reassure_spec.znodes import PartitionKey

if TYPE_CHECKING:
    from reassure_controller.replication.hosting import Replicas

logger = logging.getLogger(__name__)

_NOT_BY_TIME: Final = (ReplicaLine, Fetch, Produce, Answer, Serve)
"""What a replica says whoever keeps up: what was to be written later need not stand before it."""


class Role:
    """What a replica does for its partition: it leads, or it follows."""

    leader_epoch: int
    is_refused = False
    """Whether the last that it asked for was refused: by its leader, or by what is stored."""

    def end(self) -> None:
        """End it."""


class Replica:
    """A replica. It leads, follows, or has not been told yet (`role` is None)."""

    def __init__(
        self, host: "Replicas", key: PartitionKey, log: PartitionLog, high_watermark: int
    ) -> None:
        """Take a replica up, with its mark as checkpointed: the log may have lost what was there.

        KAFKA-539.
        """
        self.host = host
        self.key = key
        self.log = log
        if high_watermark > log.end_offset:
            what = "%s-%d: %s: the log ends at %d, before its high watermark %d"
            logger.warning(what, *key, log.directory, log.end_offset, high_watermark)
        high_watermark = min(high_watermark, log.end_offset)
        self.high_watermark = max(high_watermark, log.start_offset)
        self.role: Role | None = None
        self._order = (0, max(0, log.epochs.latest))
        """Controller epoch and leader epoch of the order that it acts upon."""
        self._deferred: dict[int, What] = {}
        self.say(Restored(log.end_offset, self.high_watermark, self.list_epochs()))

    @property
    def hosted(self) -> HostedPartition:
        """What the broker was told of the partition, has read or written of it since."""
        hosted = self.host.states.hosted(*self.key)
        assert hosted is not None, f"{self.key}: a replica has a role only where it was told one"
        return hosted

    def say(self, what: What) -> None:
        """Write a line of history, under the order that the replica acts upon."""
        if not isinstance(what, _NOT_BY_TIME):
            self.say_deferred()
        self.host.say(self.key, *self._order, what)

    def say_later(self, broker: int, what: What) -> None:
        """Write a line before what is concluded from it, unless another one takes its place."""
        self._deferred[broker] = what

    def supersede(self, broker: int) -> None:
        """Leave out a line that was to be written later, as the next one says all of it."""
        self._deferred.pop(broker, None)

    def say_deferred(self, *brokers: int) -> None:
        """Write what was to be written later: of these, of all where none is named."""
        for broker in brokers or tuple(self._deferred):
            if broker in self._deferred:
                self.host.say(self.key, *self._order, self._deferred.pop(broker))

    def list_epochs(self) -> Spans:
        """Return the leader epochs that have records in the log, each with its first offset."""
        spans, end = self.log.epochs.spans, self.log.end_offset
        return tuple((epoch, first) for epoch, first in spans if first < end)

    def obey(self) -> None:
        """Act upon the order that the broker was given last; it has no role of it yet."""
        self.rest()
        self._order = self.hosted.controller_epoch, self.hosted.state.leader_epoch

    def stop(self, controller_epoch: int, leader_epoch: int, *, is_deleted: bool) -> None:
        """Neither lead nor follow any more, by an order of these epochs."""
        self.rest()
        self._order = controller_epoch, leader_epoch if leader_epoch >= 0 else self._order[1]
        self.say(Stopped(is_deleted))

    def rest(self) -> None:
        """Neither lead nor follow any more."""
        self.say_deferred()
        if self.role is not None:
            self.role.end()
        self.role = None
