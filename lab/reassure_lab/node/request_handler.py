"""What a broker's process does with a request from the wire.

A request names many partitions, a replica is asked about one; answers are put together here, and
waited for as long as the request allows.
"""

import itertools
import logging
import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from kio.schema.errors import ErrorCode

from reassure_controller.broker import Broker
from reassure_controller.messages import LeaderAndIsr
from reassure_controller.replication import errors
from reassure_controller.replication import messages as inner
from reassure_controller.replication.hosting import Replicas
from reassure_controller.replication.replica import Replica
from reassure_controller.replication.serving import Leading
from reassure_controller.session import Indefinite
from reassure_controller.storage.errors import CorruptBatch, CorruptLog, DiskFailed
from reassure_controller.storage.records import Checked, check_produced, scan
from reassure_lab.node.admin_requests import AdminRequests
from reassure_lab.node.metadata import ClusterMetadata
from reassure_lab.node.orders import find_error, list_orders, to_response
from reassure_lab.node.times import find_offset
from reassure_lab.wire.listener import Unanswerable
from reassure_lab.wire.messages import (
    CONSUMER,
    EARLIEST,
    LATEST,
    EpochEndOffset,
    EpochEndTopic,
    EpochPartition,
    FetchedPartition,
    FetchedTopic,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    KioMessage,
    ListedPartition,
    ListedTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    ProducedPartition,
    ProducedTopic,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    Request,
    Response,
)

logger = logging.getLogger(__name__)

LOOK_S: Final = 0.01
"""How often one who waits for records looks whether there are any."""
ZSTD, ZSTD_PRODUCE, ZSTD_FETCH = 4, 7, 10
"""A codec, and from which versions on clients know it (KIP-110)."""
_FOLLOWER: Final = re.compile(r"broker-\d+-epoch-(\d+)")


def name_follower(broker: int, broker_epoch: int) -> str:
    """Return the client id of a broker's fetchers.

    It tells which life of the broker asks: Kafka's Fetch of 2.3 has no field for that.

    >>> name_follower(3, 77)
    'broker-3-epoch-77'
    """
    return f"broker-{broker}-epoch-{broker_epoch}"


class RequestHandler:
    """Serves requests on a broker; many threads may stand in it.

    Orders come one at a time, under `lock`. Whoever is served waits for the partitions that it asks
    about, and for nobody else.
    """

    def __init__(
        self,
        broker: Broker,
        cluster: ClusterMetadata,
        admin: AdminRequests,
        lock: threading.RLock,
        learn: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Serve; `learn` is told of each topic that the broker gets an order about, beforehand."""
        self._broker = broker
        self._learn = learn
        self._cluster = cluster
        self._admin = admin
        self._lock = lock
        self._news = threading.Condition()
        """Notified when there may be something to say to somebody who waits. Whoever has it asks
        for no partition, as those who deal with one notify it."""
        self._numbers = itertools.count(1)
        self._closing = False

    def close(self) -> None:
        """Let nobody wait any longer."""
        self._closing = True
        self._admin.close()
        self.look_again()

    def look_again(self) -> None:
        """Have those who wait look whether what they wait for has come about."""
        with self._news:
            self._news.notify_all()

    def handle(self, request: Request, client_id: str | None, version: int) -> Response | None:
        """Answer a request; None where the producer does not listen. Raises Unanswerable."""
        match request:
            case ProduceRequest():
                return self._produce(request, version)
            case FetchRequest(replica_id=replica) if replica == CONSUMER:
                return self._consume(request, version)
            case FetchRequest():
                return self._serve_follower(request, client_id or "")
            case ListOffsetsRequest():
                return self._list_offsets(request)
            case OffsetForLeaderEpochRequest():
                return self._tell_epoch_ends(request)
            case KioMessage():
                return self._obey(request)
            case _:
                try:
                    if isinstance(request, MetadataRequest):
                        return self._cluster.tell(request)
                    return self._admin.handle(request)
                except Indefinite as indefinite:
                    raise Unanswerable(f"ZooKeeper was not asked: {indefinite}") from indefinite

    # Orders

    def _obey(self, request: KioMessage) -> KioMessage:
        found = {}
        for order in list_orders(request):
            if isinstance(order, LeaderAndIsr):
                self._learn(order.topic)
            with self._lock:
                whole, error = find_error(self._broker.handle(order))
            if whole != ErrorCode.none:
                return to_response(request, whole, {})
            found[order.topic, order.partition] = error
        self.look_again()
        return to_response(request, ErrorCode.none, found)

    # Producers

    def _produce(self, request: ProduceRequest, version: int) -> ProduceResponse | None:
        """Append, and wait until those who are to have the records have them."""
        answers: dict[int, inner.Response] = {}
        asked = [
            inner.Produce(
                (topic.name, data.index),
                (0, next(self._numbers)),
                request.acks,
                _check(topic.name, data, version),
            )
            for topic in request.topic_data
            for data in topic.partition_data
        ]
        for one in asked:
            self._serve(one, answers)
        self.look_again()
        if request.acks == 0:
            return None
        self._wait(lambda: len(answers) == len(asked), request.timeout_ms)
        for one in asked:
            if one.correlation[1] not in answers:
                self._replicas.give_up(one.key, one.correlation)
        topics: dict[str, list[ProducedPartition]] = {}
        for one in asked:
            produced = _tell_produced(one, answers[one.correlation[1]])
            topics.setdefault(one.key[0], []).append(produced)
        return ProduceResponse(
            tuple(ProducedTopic(name, tuple(found)) for name, found in topics.items())
        )

    # Those who fetch

    def _consume(self, request: FetchRequest, version: int) -> FetchResponse:
        """Hand out records below the mark; wait for some where there are none."""
        self._wait(lambda: self._may_answer(request), request.max_wait_ms, LOOK_S)
        left = request.max_bytes

        def read(topic: str, asked: FetchPartition) -> FetchedPartition:
            nonlocal left
            key, number = (topic, asked.partition), next(self._numbers)
            most = _share(left, asked.partition_max_bytes)
            epoch = asked.current_leader_epoch
            answer = self._ask(inner.Consume(key, (0, number), asked.fetch_offset, most, epoch))
            assert isinstance(answer, inner.Consumed)
            records, error = answer.records, answer.error
            if version < ZSTD_FETCH and _has_zstd(records):
                records, error = b"", errors.UNSUPPORTED_COMPRESSION_TYPE
            left -= len(records)
            mark = answer.high_watermark
            return FetchedPartition(asked.partition, _code(error), mark, records, mark)

        return _fetched(request, read)

    def _may_answer(self, request: FetchRequest) -> bool:
        """Whether there is something to say to a consumer: records, or an error."""
        for topic in request.topics:
            for asked in topic.partitions:
                replica = self._find(topic.topic, asked.partition)
                if replica is None or asked.fetch_offset != replica.high_watermark:
                    return True
        return False

    def _serve_follower(self, request: FetchRequest, client_id: str) -> FetchResponse:
        """Note a follower's fetch at once, and answer when there is something to say.

        That is records, a mark that has moved, or an error: as with Kafka's delayed fetches, what
        is noted is when the request came.
        """
        life = _FOLLOWER.fullmatch(client_id)
        epoch = int(life[1]) if life else -1
        noted: list[tuple[inner.Fetch, inner.Fetched]] = []
        left, has_moved = request.max_bytes, False

        def note(topic: str, asked: FetchPartition) -> FetchedPartition:
            nonlocal left, has_moved
            replica = self._find(topic, asked.partition)
            mark = None if replica is None else replica.high_watermark
            fetch = inner.Fetch(
                (topic, asked.partition),
                (epoch, next(self._numbers)),
                request.replica_id,
                epoch,
                asked.current_leader_epoch,
                asked.fetch_offset,
                _share(left, asked.partition_max_bytes),
            )
            answer = self._ask(fetch)
            assert isinstance(answer, inner.Fetched)
            left -= len(answer.records)
            has_moved |= replica is not None and replica.high_watermark != mark
            noted.append((fetch, answer))
            return _tell_fetched(answer)

        response = _fetched(request, note)
        if has_moved:
            self.look_again()  # other followers wait for the mark
        if any(answer.error or answer.records for _, answer in noted):
            return response
        self._wait(lambda: any(self._has_moved(*one) for one in noted), request.max_wait_ms)
        fetches = iter([fetch for fetch, _ in noted])

        def answer_again(_topic: str, _asked: FetchPartition) -> FetchedPartition:
            nonlocal left
            fetch = next(fetches)
            most = _share(left, fetch.max_bytes)
            answer = self._replicas.answer_again(replace(fetch, max_bytes=most))
            left -= len(answer.records)
            return _tell_fetched(answer)

        return _fetched(request, answer_again)

    def _has_moved(self, fetch: inner.Fetch, answer: inner.Fetched) -> bool:
        """Whether a follower would be told something else than it was."""
        replica = self._replicas.find(fetch.key)
        if replica is None or not isinstance(replica.role, Leading):
            return True
        if replica.high_watermark != answer.high_watermark:
            return True
        return replica.log.end_offset > fetch.offset and not replica.role.is_held_up(fetch)

    def _tell_epoch_ends(
        self, request: OffsetForLeaderEpochRequest
    ) -> OffsetForLeaderEpochResponse:
        """Say where epochs end."""

        def tell(topic: str, asked: EpochPartition) -> EpochEndOffset:
            answer = self._ask(
                inner.AskEpochEnd(
                    (topic, asked.partition),
                    (0, next(self._numbers)),
                    request.replica_id,
                    asked.current_leader_epoch,
                    asked.leader_epoch,
                )
            )
            assert isinstance(answer, inner.EpochEndTold)
            error = _code(answer.error)
            return EpochEndOffset(error, asked.partition, answer.epoch, answer.end_offset)

        return OffsetForLeaderEpochResponse(
            tuple(
                EpochEndTopic(one.topic, tuple(tell(one.topic, asked) for asked in one.partitions))
                for one in request.topics
            )
        )

    # Offsets

    def _list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        """Say where a log begins, up to where it is shown, or where its times are."""
        return ListOffsetsResponse(
            tuple(
                ListedTopic(one.name, tuple(self._list_offset(one.name, p) for p in one.partitions))
                for one in request.topics
            )
        )

    def _list_offset(self, topic: str, asked: ListOffsetsPartition) -> ListedPartition:
        number, replica = asked.partition_index, self._find(topic, asked.partition_index)
        if replica is None:
            return ListedPartition(number, ErrorCode.not_leader_or_follower)
        end = replica.log.end_offset
        correlation, epoch = (0, next(self._numbers)), asked.current_leader_epoch
        answer = self._ask(inner.Consume(replica.key, correlation, end, 0, epoch))
        assert isinstance(answer, inner.Consumed)
        error, log = _code(answer.error), replica.log
        if error != ErrorCode.none:
            return ListedPartition(number, error)
        found: tuple[int, int] | None = (answer.high_watermark, -1)
        if asked.timestamp == EARLIEST:
            found = (log.start_offset, -1)
        elif asked.timestamp != LATEST:
            try:
                with self._replicas.guard(replica.key):
                    found = find_offset(log, asked.timestamp, answer.high_watermark)
            except (DiskFailed, CorruptLog, CorruptBatch) as failed:
                logger.warning("%s-%d: no time is found: %s", *replica.key, failed)
                return ListedPartition(number, ErrorCode.kafka_storage_error)
        return ListedPartition(number, error, *found or (-1, -1), leader_epoch=log.epochs.latest)

    # Replicas

    @property
    def _replicas(self) -> Replicas:
        replicas = self._broker.replicas
        if replicas is None:
            raise Unanswerable(f"broker {self._broker.broker_id} is not registered yet")
        return replicas

    def _find(self, topic: str, partition: int) -> Replica | None:
        return self._replicas.find((topic, partition))

    def _serve(self, request: inner.Request, answers: dict[int, inner.Response]) -> None:
        def take(answer: inner.Response) -> None:
            answers[answer.correlation[1]] = answer
            self.look_again()

        self._replicas.serve(request, take)

    def _ask(self, request: inner.Request) -> inner.Response:
        """Return an answer that does not let wait."""
        answers: list[inner.Response] = []
        self._replicas.serve(request, answers.append)
        return answers[0]

    def _wait(
        self, condition: Callable[[], bool], for_ms: int, look_s: float | None = None
    ) -> None:
        """Wait until the condition holds, the time is over, or the broker ends."""
        end_s = time.monotonic() + for_ms / 1000
        with self._news:
            while not condition() and not self._closing:
                left_s = end_s - time.monotonic()
                if left_s <= 0:
                    return
                self._news.wait(left_s if look_s is None else min(left_s, look_s))


def _share(left: int, wanted: int) -> int:
    """Return how much of a partition goes into an answer that may still grow by `left` bytes.

    0 is nothing at all; more is at least one batch, however large, or who asks would never get on.
    """
    return min(left, max(1, wanted)) if left > 0 else 0


def _code(error: str) -> ErrorCode:
    return ErrorCode[error.lower()] if error else ErrorCode.none


def _check(topic: str, data: ProducePartition, version: int) -> Checked | str:
    """Return the batches of a producer, or why they are none that it may send."""
    raw = data.records or b""
    try:
        if version < ZSTD_PRODUCE and _has_zstd(raw):
            return errors.UNSUPPORTED_COMPRESSION_TYPE
        return check_produced(raw)
    except CorruptBatch as corrupt:
        logger.warning("%s-%d: a producer sent %s", topic, data.index, corrupt)
        return corrupt.error


def _has_zstd(raw: bytes) -> bool:
    """Whether a batch is compressed with zstd. Raises CorruptBatch."""
    return any(batch.codec == ZSTD for batch in scan(raw))


def _tell_produced(asked: inner.Produce, answer: inner.Response) -> ProducedPartition:
    assert isinstance(answer, inner.Produced)
    if isinstance(asked.records, str) or answer.error != errors.NONE:
        return ProducedPartition(asked.key[1], _code(answer.error), -1)
    return ProducedPartition(asked.key[1], ErrorCode.none, answer.end - asked.records.count, 0)


def _tell_fetched(answer: inner.Fetched) -> FetchedPartition:
    mark, records, error = answer.high_watermark, answer.records, _code(answer.error)
    return FetchedPartition(answer.key[1], error, mark, records, log_start_offset=answer.start)


def _fetched(
    request: FetchRequest, read: Callable[[str, FetchPartition], FetchedPartition]
) -> FetchResponse:
    return FetchResponse(
        tuple(
            FetchedTopic(topic.topic, tuple(read(topic.topic, asked) for asked in topic.partitions))
            for topic in request.topics
        )
    )
