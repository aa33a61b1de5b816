"""What a broker's process answers on the wire, and for whom it lets wait."""

import os
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cramjam import zstd
from crc32c import crc32c
from kafka.record.default_records import DefaultRecordBatchBuilder
from kazoo.client import KazooClient
from kio.schema.errors import ErrorCode

from reassure_conformance.adapter.stepping import VirtualClock
from reassure_controller.broker import Broker
from reassure_controller.messages import LeaderAndIsr, Reply, StopReplica
from reassure_controller.replication.hosting import Replicas
from reassure_controller.replication.observing import Observer
from reassure_controller.replication.rules import ReplicationRules
from reassure_controller.replication.serving import Leading
from reassure_controller.session import Indefinite, ensure_roots
from reassure_controller.storage.directory import LogDirectory
from reassure_controller.storage.records import Checked, Record, check_produced, decode, encode
from reassure_lab.node.admin_requests import AdminRequests
from reassure_lab.node.metadata import ClusterMetadata, is_topic
from reassure_lab.node.orders import (
    batch_orders,
    find_error,
    list_orders,
    to_replies,
    to_request,
    to_response,
)
from reassure_lab.node.request_handler import RequestHandler, name_follower
from reassure_lab.wire.listener import Unanswerable
from reassure_lab.wire.messages import (
    CONSUMER,
    EARLIEST,
    LATEST,
    EpochPartition,
    EpochTopic,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    KioMessage,
    ListedPartition,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    MetadataRequest,
    MetadataRequestTopic,
    OffsetForLeaderEpochRequest,
    ProducedPartition,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
)
from reassure_spec.znodes import broker_path, encode_broker, encode_state

LEAD = LeaderAndIsr(100, 1, "t", 0, 1, 0, (1, 2), 1, 0, (1, 2), True)
STOP = StopReplica(100, 1, "t", 0, True)
RAW = encode([Record(None, b"a"), Record(None, b"b")], 0, 0, 1)


class Served:
    """Broker 1, which leads t-0 with 2 in sync; its disk, and its door."""

    def __init__(self, cluster: Any, path: Path, **rules: int) -> None:
        self.admin = cluster.admin
        ensure_roots(self.admin)
        self.create_topic = cluster.create_topic
        self.create_topic("t", {0: (1, 2)})
        self.admin.ensure_path("/brokers/topics/t/partitions/0")
        self.admin.create(broker_path(2), encode_broker("127.0.0.1", 9, 1), ephemeral=True)
        self.path, self.rules = path, ReplicationRules(**rules)  # type: ignore[arg-type]
        self.lock = threading.RLock()
        self.clock = VirtualClock(10**6)
        self.sync: Callable[[int], None] = os.fsync
        self.broker = Broker(
            self.admin, 1, address=("127.0.0.1", 7), owns_client=False, replication=self.replicate
        )
        self.cluster = ClusterMetadata(self.admin)
        requests = AdminRequests(self.admin, 1, self.rules)
        self.door = RequestHandler(self.broker, self.cluster, requests, self.lock)
        self.broker.register()
        epoch = self.admin.exists(broker_path(2)).czxid
        self.follower = name_follower(2, epoch)
        self.handle(request_of(LEAD))
        state = self.broker.hosted("t", 0)
        assert state is not None
        self.admin.create("/brokers/topics/t/partitions/0/state", encode_state(state.state))

    def replicate(self, broker: Broker, epoch: int) -> Replicas:
        """Make its replicas."""
        disk = LogDirectory(self.path, 1, "c", flush_records=1, sync=lambda one: self.sync(one))
        observer = Observer(self.path / "said", 1, epoch)
        return Replicas(1, epoch, broker, disk, self.clock, observer, self.rules)

    @property
    def end(self) -> int:
        """Where its log ends."""
        replica = self.broker.replicas and self.broker.replicas.find(("t", 0))
        assert replica is not None
        return replica.log.end_offset

    def count_said(self, kind: str) -> int:
        """Return how many lines of a kind it has written by now."""
        said = (self.path / "said" / "observations.ndjson").read_text("utf-8")
        return said.count(f'"kind":"{kind}"')

    def handle(self, request: Any, client: str | None = None, version: int = 11) -> Any:
        """Ask."""
        return self.door.handle(request, client, version)

    def lead_another(self) -> None:
        """Have it lead u-0 as well, with 2 in sync."""
        make_topic, path = self.create_topic, "/brokers/topics/u/partitions/0"
        make_topic("u", {0: (1, 2)})
        self.admin.ensure_path(path)
        self.handle(request_of(replace(LEAD, topic="u")))
        state = self.broker.hosted("u", 0)
        assert state is not None
        self.admin.create(f"{path}/state", encode_state(state.state))

    def produce(
        self,
        acks: int = 1,
        raw: bytes = RAW,
        *,
        topic: str = "t",
        timeout_ms: int = 20_000,
        version: int = 7,
    ) -> ProducedPartition:
        """Produce to partition 0 and return what came of it."""
        data = (ProduceTopic(topic, (ProducePartition(0, raw),)),)
        response = self.handle(ProduceRequest(acks, timeout_ms, data), version=version)
        [produced] = response.responses[0].partition_responses
        return produced  # type: ignore[no-any-return]

    def fetch(
        self,
        offset: int,
        *,
        replica: int = CONSUMER,
        wait_ms: int = 0,
        epoch: int = 0,
        by: str = "",
        topic: str = "t",
        version: int = 11,
    ) -> FetchedPartition:
        """Fetch from partition 0 and return what was found."""
        asked = FetchPartition(0, offset, 10_000, epoch)
        request = FetchRequest(replica, wait_ms, 1, (FetchTopic(topic, (asked,)),))
        response: FetchResponse = self.handle(request, by or self.follower, version)
        return response.responses[0].partitions[0]

    def list(self, timestamp: int, topic: str = "t") -> ListedPartition:
        """Ask for the offset of a time."""
        asked = (ListOffsetsTopic(topic, (ListOffsetsPartition(0, timestamp),)),)
        found: ListedPartition = self.handle(ListOffsetsRequest(-1, asked)).topics[0].partitions[0]
        return found


def request_of(order: LeaderAndIsr | StopReplica) -> Any:
    """Return the request that carries an order, in the version that brokers here know."""
    return as_known((order,))


def as_known(batch: Sequence[Any]) -> KioMessage:
    """Return the request that carries one batch, in the version that brokers here know."""
    return to_request(batch, 3 if isinstance(batch[0], StopReplica) else 2)


@pytest.fixture
def serve(make_cluster: Any, tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Start a broker that is ended with the test."""
    started: list[Served] = []

    def start(**options: int) -> Served:
        started.append(Served(make_cluster(()), tmp_path / str(len(started)), **options))
        return started[-1]

    yield start
    for one in started:
        with one.lock:
            one.broker.stop()


@pytest.fixture
def served(serve: Callable[..., Served]) -> Served:
    """A broker that goes by the usual rules."""
    return serve()


def in_background(ask: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Ask from another thread; return it, and where the answer will be."""
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(ask()))
    thread.start()
    return thread, answers


def test_producer_waits_for_those_in_sync(served: Served) -> None:
    """With acks -1 the answer comes once the follower has fetched beyond, and not before."""
    thread, answers = in_background(lambda: served.produce(-1))
    while served.fetch(0, replica=2).records == b"":
        time.sleep(0.01)
    assert answers == []
    asked = served.fetch(2, replica=2)
    assert asked == FetchedPartition(0, ErrorCode.none, 2, b"", log_start_offset=0)
    thread.join()
    assert answers == [ProducedPartition(0, ErrorCode.none, 0, 0)]
    assert served.produce(1) == ProducedPartition(0, ErrorCode.none, 2, 0)
    assert served.handle(ProduceRequest(0, 1, ())) is None


def test_producer_is_told_why_not(serve: Callable[..., Served]) -> None:
    """Time that ran out, rubbish, a stranger's partition and too few in sync have their errors."""
    served = serve()
    assert served.produce(-1, timeout_ms=30).error_code == ErrorCode.request_timed_out
    assert served.produce(1, b"rubbish").error_code == ErrorCode.corrupt_message
    assert served.produce(1, topic="u").error_code == ErrorCode.not_leader_or_follower
    few = serve(min_insync_replicas=3)
    assert few.produce(-1) == ProducedPartition(0, ErrorCode.not_enough_replicas, -1)


VALUE = b"v" * 100


def test_client_that_is_older_than_a_codec_is_told_so(served: Served) -> None:
    """Batches of zstd are neither taken from, nor given to, whoever asks in an earlier version."""
    raw = bytearray(encode([Record(None, VALUE)], 0, 0, 0))
    raw[61:] = bytes(zstd.compress(bytes(raw[61:])))
    struct.pack_into(">i", raw, 8, len(raw) - 12)
    struct.pack_into(">h", raw, 21, 4)
    struct.pack_into(">I", raw, 17, crc32c(bytes(raw[21:])))
    old = ErrorCode.unsupported_compression_type
    assert served.produce(1, bytes(raw), version=6).error_code == old
    assert served.end == 0
    assert served.produce(1, bytes(raw), version=7).error_code == ErrorCode.none
    served.fetch(1, replica=2)
    assert served.fetch(0, version=9).error_code == old
    assert [one.value for _, one in decode(served.fetch(0, version=10).records or b"")] == [VALUE]


@pytest.mark.parametrize(
    ("attributes", "error"),
    [
        (0x20, ErrorCode.corrupt_message),
        (0x10, ErrorCode.invalid_txn_state),
        (0x07, ErrorCode.unsupported_compression_type),
    ],
    ids=["control", "transactional", "codec 7"],
)
def test_batch_that_nobody_takes_has_its_own_error(
    served: Served, attributes: int, error: ErrorCode
) -> None:
    """Control batches, those of transactions and unknown codecs are refused for what they are."""
    raw = bytearray(encode([Record(None, VALUE)], 0, 0, 0))
    struct.pack_into(">h", raw, 21, attributes)
    struct.pack_into(">I", raw, 17, crc32c(bytes(raw[21:])))
    assert served.produce(1, bytes(raw)).error_code == error
    assert served.end == 0


def number(sequence: int, epoch: int = 0) -> bytes:
    """Return a batch of two records as an idempotent producer numbers it."""
    builder = DefaultRecordBatchBuilder(2, 0, False, 7, epoch, sequence, 2**20)
    for delta in range(2):
        builder.append(delta, 1, None, b"v", [])
    return bytes(builder.build())


def test_duplicate_waits_for_those_in_sync_as_the_first(served: Served) -> None:
    """It is answered as the first is, and when that is; gaps and old epochs have Kafka's errors."""
    asked = [in_background(lambda: served.produce(-1, number(0))) for _ in range(2)]
    while served.fetch(0, replica=2).records == b"":
        time.sleep(0.01)
    while served.count_said("produce") < 2:  # both wait
        time.sleep(0.01)
    assert [answers for _, answers in asked] == [[], []]
    served.fetch(2, replica=2)
    for thread, answers in asked:
        thread.join()
        assert answers == [ProducedPartition(0, ErrorCode.none, 0, 0)]
    for acks in (-1, 1):
        assert served.produce(acks, number(0)) == ProducedPartition(0, ErrorCode.none, 0, 0)
    assert served.produce(1, number(6)).error_code == ErrorCode.out_of_order_sequence_number
    assert served.end == 2
    assert (served.count_said("replica"), served.count_said("produce")) == (1, 2)
    assert served.produce(1, number(0, epoch=1)) == ProducedPartition(0, ErrorCode.none, 2, 0)
    assert served.produce(1, number(2)).error_code == ErrorCode.invalid_producer_epoch


class Slow:
    """Stands in for what is slow: whoever comes to it waits until it is let go."""

    def __init__(self) -> None:
        self.reached, self.over = threading.Event(), threading.Event()

    def wait(self) -> None:
        """Wait."""
        self.reached.set()
        assert self.over.wait(60)


def sync_slowly(served: Served, slow: Slow) -> None:
    """Have the disk be slow with the records of t-0."""

    def sync(descriptor: int) -> None:
        if "/t-0/" in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            slow.wait()
        os.fsync(descriptor)

    served.sync = sync


def write_slowly(served: Served, slow: Slow) -> None:
    """Have ZooKeeper be slow with the in-sync set of t-0, which has to be written next."""
    make = served.admin.transaction

    def begin() -> Any:
        transaction = make()
        send = transaction.commit_async

        def commit() -> Any:
            if any("/t/" in one.path for one in transaction.operations):
                slow.wait()
            return send()

        transaction.commit_async = commit
        return transaction

    served.admin.transaction = begin
    served.clock.advance(10**6)


@pytest.mark.parametrize("make_slow", [sync_slowly, write_slowly])
def test_one_partition_lets_no_other_wait(
    make_slow: Callable[[Served, Slow], None], serve: Callable[..., Served]
) -> None:
    """While the disk or ZooKeeper is waited for on account of one, others are written and read."""
    served, slow = serve(), Slow()
    served.lead_another()
    make_slow(served, slow)
    busy, _ = in_background(lambda: served.produce(1))
    assert slow.reached.wait(60)

    def use_the_other() -> list[int]:
        served.produce(1, topic="u")
        served.fetch(2, replica=2, topic="u")
        return [served.list(LATEST, "u").offset, len(served.fetch(0, topic="u").records)]

    other, found = in_background(use_the_other)
    other.join(30)
    in_time = tuple(found)
    slow.over.set()
    busy.join()
    other.join()
    assert in_time == ([2, len(RAW)],)


def test_records_are_looked_through_while_the_broker_is_busy(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To look through what a producer sends nobody has to wait for the broker, nor the broker."""
    served, looked = serve(), threading.Event()

    def look(raw: bytes) -> Checked:
        looked.set()
        return check_produced(raw)

    monkeypatch.setattr("reassure_lab.node.request_handler.check_produced", look)
    assert served.broker.replicas is not None
    with served.broker.replicas.guard(("t", 0)):
        thread, answers = in_background(lambda: served.produce(1))
        assert looked.wait(60)
    thread.join()
    assert answers == [ProducedPartition(0, ErrorCode.none, 0, 0)]


def test_batch_beyond_the_limit_is_refused(serve: Callable[..., Served]) -> None:
    """One byte too many is too many, and nothing of the request is appended."""
    assert serve(batch_bytes_max=len(RAW)).produce(1).error_code == ErrorCode.none
    small = serve(batch_bytes_max=len(RAW) - 1)
    assert small.produce(1).error_code == ErrorCode.message_too_large
    assert small.end == 0


@pytest.mark.parametrize("replica", [CONSUMER, 2])
def test_batch_larger_than_an_answer_is_sent_alone(served: Served, replica: int) -> None:
    """Who asks for less than a batch gets on all the same, by one batch of the first partition.

    What is asked for beyond that gets nothing: an answer is too large by one batch at most.
    """
    for _ in range(3):
        served.produce(1)
    served.fetch(6, replica=2)
    asked = FetchPartition(0, 0, 0, 0)
    topics = (FetchTopic("t", (asked,)), FetchTopic("t", (asked,)))
    request = FetchRequest(replica, 0, 1, topics, max_bytes=1)
    found = served.handle(request, served.follower).responses
    assert [len(one.partitions[0].records) for one in found] == [len(RAW), 0]


def test_consumer_waits_for_the_mark(served: Served) -> None:
    """A consumer gets nothing that the follower lacks, and is answered when it has it."""
    served.produce(1)
    assert served.fetch(0, wait_ms=30).records == b""
    thread, answers = in_background(lambda: served.fetch(0, wait_ms=20_000))
    served.fetch(0, replica=2)
    served.fetch(2, replica=2)
    thread.join()
    [found] = answers
    assert [record.value for _, record in decode(found.records)] == [b"a", b"b"]
    assert (found.high_watermark, served.list(LATEST).offset) == (2, 2)
    assert served.list(EARLIEST).offset == 0
    assert served.list(1) == ListedPartition(0, ErrorCode.none, 0, 1, leader_epoch=0)
    assert served.list(2) == ListedPartition(0, ErrorCode.none, -1, -1, leader_epoch=0)
    assert served.list(LATEST, "u").error_code == ErrorCode.not_leader_or_follower
    assert served.fetch(99).error_code == ErrorCode.offset_out_of_range


def test_follower_is_answered_when_there_is_more(served: Served) -> None:
    """A fetch that finds nothing is held until a record comes, or the mark moves."""
    thread, answers = in_background(lambda: served.fetch(0, replica=2, wait_ms=20_000))
    thread.join(0.05)
    assert answers == []
    served.produce(1)
    thread.join()
    assert (answers[0].records[-4:], answers[0].high_watermark) == (RAW[-4:], 0)
    first = served.fetch(2, replica=2)
    assert (first.records, first.high_watermark) == (b"", 2)
    thread, answers = in_background(lambda: served.fetch(2, replica=2, wait_ms=20_000))
    served.handle(as_known((replace(LEAD, leader=2, leader_epoch=1),)))
    thread.join()
    assert answers[0].error_code == ErrorCode.not_leader_or_follower


def test_follower_that_is_held_up_waits(served: Served) -> None:
    """A fetch that a quota lets have nothing is held, and answered when it may have something."""
    served.produce(1)
    served.fetch(2, replica=2)  # the mark goes up, so that who is behind it is out of sync
    served.handle(as_known((replace(LEAD, leader_epoch=1, isr=(1,)),)))
    assert served.broker.replicas is not None
    quota = served.broker.replicas.quotas.as_leader
    quota.throttled["t"] = None
    quota.limit(1)
    quota.note(("t", 0), 100, 10**6)
    ask = partial(served.fetch, 0, replica=2, epoch=1, wait_ms=20_000)
    thread, answers = in_background(ask)
    thread.join(0.05)
    assert answers == []
    quota.limit(None)
    served.door.look_again()
    thread.join()
    assert (answers[0].error_code, answers[0].records[-4:]) == (ErrorCode.none, RAW[-4:])


def test_closed_door_lets_nobody_wait(served: Served) -> None:
    """Who waits when the broker ends is answered then."""
    thread, answers = in_background(lambda: served.produce(-1, timeout_ms=60_000))
    while served.end == 0:
        time.sleep(0.01)
    served.door.close()
    thread.join(20)
    assert answers == [ProducedPartition(0, ErrorCode.request_timed_out, -1)]


def test_follower_is_fenced(served: Served) -> None:
    """A fetch of another epoch, or of a life of the follower that has ended, is refused."""
    served.produce(1)
    assert served.fetch(0, replica=2, epoch=1).error_code == ErrorCode.unknown_leader_epoch
    served.fetch(0, replica=2)
    stale = served.fetch(0, replica=2, by=name_follower(2, 1))
    assert stale.error_code == ErrorCode.stale_broker_epoch
    asked = EpochTopic("t", (EpochPartition(0, 0, 0),))
    [told] = served.handle(OffsetForLeaderEpochRequest((asked,), 2)).topics
    assert (told.partitions[0].leader_epoch, told.partitions[0].end_offset) == (0, 2)


def test_orders_come_as_they_were_given(served: Served) -> None:
    """What a controller says arrives whole, and what a broker replies to it comes back."""
    for order in (LEAD, STOP):
        assert list(list_orders(as_known((order,)))) == [order]
    assert to_replies(served.handle(as_known((LEAD,))), (LEAD,)) == [
        Reply("STALE_CONTROLLER_EPOCH")
    ]
    old, other = replace(LEAD, controller_epoch=0), replace(LEAD, broker_epoch=5)
    for order, error in ((old, "STALE_CONTROLLER_EPOCH"), (other, "STALE_BROKER_EPOCH")):
        answer = served.handle(as_known((order,)))
        assert answer.entity.error_code.name.upper() == error
        assert to_replies(answer, (order,)) == [Reply(error)]
    assert to_replies(served.handle(as_known((STOP,))), (STOP,)) == [Reply("ok")]
    assert served.produce(1).error_code == ErrorCode.not_leader_or_follower
    assert find_error(Reply("not-a-replica"))[1] == ErrorCode.unknown_topic_or_partition
    unnamed = to_response(as_known((STOP,)), ErrorCode.none, {})
    assert to_replies(unnamed, (STOP,)) == [Reply("ok")]


def test_request_carries_orders_of_one_kind_epoch_and_each_partition_once() -> None:
    """What is due to a broker goes together as far as its order cannot matter."""
    other, later = replace(LEAD, partition=LEAD.partition + 1), replace(LEAD, leader_epoch=9)
    newer = replace(other, controller_epoch=LEAD.controller_epoch + 1)
    orders = (LEAD, other, later, STOP, other, newer)
    batches = list(batch_orders(orders))
    assert batches == [(LEAD, other), (later,), (STOP,), (other,), (newer,)]
    assert [one for each in batches for one in list_orders(as_known(each))] == list(orders)


def test_metadata_is_what_zookeeper_says(served: Served) -> None:
    """Brokers, leaders and replicas are those of now; a topic that is not there is said so."""
    told = served.handle(MetadataRequest(None))
    assert [(one.node_id, one.host, one.port) for one in told.brokers] == [
        (1, "127.0.0.1", 7),
        (2, "127.0.0.1", 9),
    ]
    [topic] = told.topics
    [partition] = topic.partitions
    assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (
        1,
        (1, 2),
        (1, 2),
    )
    asked = (MetadataRequestTopic("absent"), MetadataRequestTopic("../ids"))
    found = served.handle(MetadataRequest(asked)).topics
    assert {one.error_code for one in found} == {ErrorCode.unknown_topic_or_partition}
    served.admin.delete(broker_path(1))
    [topic] = served.handle(MetadataRequest((MetadataRequestTopic("t"),))).topics
    assert topic.partitions[0].error_code == ErrorCode.leader_not_available
    assert topic.partitions[0].offline_replicas == (1,)
    served.broker.register()
    assert served.cluster.find_address(3) is None


def test_producer_that_gave_up_is_forgotten(served: Served) -> None:
    """Of a producer whose time ran out nothing is kept, however many they are."""
    for _ in range(20):
        assert served.produce(-1, timeout_ms=1).error_code == ErrorCode.request_timed_out
    replica = served.broker.replicas and served.broker.replicas.find(("t", 0))
    assert replica is not None
    assert isinstance(replica.role, Leading)
    assert not replica.role._waiting


def test_producer_may_not_ask_for_some_replicas(served: Served) -> None:
    """A number of copies that is neither none, one nor all is refused, and nothing is appended."""
    assert served.produce(2).error_code == ErrorCode.invalid_required_acks
    assert served.end == 0


UNREADABLE = [b'{"version":99}', b"?", b""]


@pytest.mark.parametrize("content", UNREADABLE)
def test_znodes_of_another_make_hide_only_themselves(
    content: bytes, served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """Clients are told of all that can be read; each znode that cannot is named in the log."""
    paths = [
        "/brokers/topics/odd",
        "/brokers/ids/7",
        "/controller",
        "/brokers/topics/t/partitions/0/state",
    ]
    for path in paths:
        served.admin.ensure_path(path)
        served.admin.set(path, content)
    told = served.handle(MetadataRequest(None))
    assert [broker.node_id for broker in told.brokers] == [1, 2]
    assert told.controller_id == 1
    found = {topic.name: (topic.error_code, topic.partitions) for topic in told.topics}
    assert found["odd"] == (ErrorCode.unknown_server_error, ())
    [partition] = found["t"][1]
    assert (partition.error_code, partition.leader_id) == (ErrorCode.leader_not_available, -1)
    assert all(f"{path}: " in caplog.text for path in paths)


def test_broker_without_zookeeper_lets_nobody_wait(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the connection is lost nothing is sent that would be waited for under the lock."""
    asked: list[str] = []
    with monkeypatch.context() as patched:
        patched.setattr(KazooClient, "connected", property(lambda _: False))
        for name in ("get_async", "exists_async", "transaction"):
            patched.setattr(KazooClient, name, lambda *_, name=name: asked.append(name))
        assert served.produce(1).error_code == ErrorCode.none
        fetched = served.fetch(2, replica=2, by=name_follower(2, 5))
        assert fetched.error_code == ErrorCode.none
        states = served.broker
        assert (states.write_isr(("t", 0), (1,)), states.refresh(("t", 0))) == ("unknown",) * 2
        with pytest.raises(Indefinite, match="the connection to ZooKeeper is lost"):
            states.find_broker_epoch(2)
    assert asked == []


def test_broker_that_cannot_answer_says_why(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks for what only ZooKeeper knows, or before the registration, is told to ask again."""

    def fail(*_: Any) -> Any:
        raise Indefinite("ConnectionLoss")

    with monkeypatch.context() as patched:
        patched.setattr(ClusterMetadata, "tell", fail)
        with pytest.raises(Unanswerable, match="ZooKeeper was not asked: ConnectionLoss"):
            served.handle(MetadataRequest(None))
    with monkeypatch.context() as patched:
        patched.setattr(served.broker, "replicas", None)
        with pytest.raises(Unanswerable, match="broker 1 is not registered yet"):
            served.produce()


def test_names_of_topics_are_kafkas() -> None:
    """Letters, digits, dots, underscores and dashes; not a path."""
    assert all(map(is_topic, ("a", "A.b_c-9")))
    assert not any(map(is_topic, ("", ".", "..", "a/b", "ä", "a" * 250)))
