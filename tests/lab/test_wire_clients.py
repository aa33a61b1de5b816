"""Stock clients list, produce, consume and ask for offsets over our wire and our log."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kio.schema.errors import ErrorCode

from reassure_controller.storage.log import PartitionLog
from reassure_controller.storage.records import check_produced, decode
from reassure_lab.wire.listener import WireServer
from reassure_lab.wire.messages import (
    EARLIEST,
    FetchedPartition,
    FetchedTopic,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    ListedPartition,
    ListedTopic,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataBroker,
    MetadataPartition,
    MetadataRequest,
    MetadataResponse,
    MetadataTopic,
    ProducedPartition,
    ProducedTopic,
    ProduceRequest,
    ProduceResponse,
    Request,
    Response,
)

TOPIC = "orders"
OTHER = ErrorCode.unknown_topic_or_partition
KCAT = shutil.which("kcat")
PARTITION = TopicPartition(TOPIC, 0)


class OnePartition:
    """Handles what clients ask; `port` is to be set before they do."""

    def __init__(self, directory: Path) -> None:
        self.log = PartitionLog(directory / f"{TOPIC}-0", segment_bytes=4096)
        self.port = 0

    def handle(self, request: Request, client_id: str | None, version: int) -> Response | None:
        """Answer, or say nothing to a producer that does not listen."""
        match request:
            case MetadataRequest():
                return self.tell(request)
            case ProduceRequest():
                return self.produce(request)
            case FetchRequest():
                return self.fetch(request)
            case ListOffsetsRequest():
                return self.list_offsets(request)
            case _:
                raise NotImplementedError(f"{client_id}: {request}")

    def tell(self, request: MetadataRequest) -> MetadataResponse:
        """Say who leads."""
        asked = [TOPIC] if request.topics is None else [topic.name for topic in request.topics]
        partition = MetadataPartition(ErrorCode.none, 0, 1, (1,), (1,), leader_epoch=0)
        topics = tuple(
            MetadataTopic(ErrorCode.none, name, (partition,))
            if name == TOPIC
            else MetadataTopic(OTHER, name, ())
            for name in asked
        )
        return MetadataResponse((MetadataBroker(1, "127.0.0.1", self.port),), "c", 1, topics)

    def produce(self, request: ProduceRequest) -> ProduceResponse | None:
        """Append."""
        topics = []
        for topic in request.topic_data:
            found = []
            for data in topic.partition_data:
                if (topic.name, data.index) == (TOPIC, 0):
                    offsets = self.log.append_produced(check_produced(data.records or b""), 0, 0)
                    found.append(ProducedPartition(0, ErrorCode.none, offsets[0], 0))
                else:
                    found.append(ProducedPartition(data.index, OTHER, -1))
            topics.append(ProducedTopic(topic.name, tuple(found)))
        return ProduceResponse(tuple(topics)) if request.acks else None

    def fetch(self, request: FetchRequest) -> FetchResponse:
        """Read what there is, without waiting for more."""
        return FetchResponse(
            tuple(
                FetchedTopic(
                    topic.topic, tuple(self.read(topic.topic, p) for p in topic.partitions)
                )
                for topic in request.topics
            )
        )

    def read(self, topic: str, asked: FetchPartition) -> FetchedPartition:
        """Read one partition."""
        end = self.log.end_offset
        if (topic, asked.partition) != (TOPIC, 0):
            return FetchedPartition(asked.partition, OTHER, -1, None)
        if not 0 <= asked.fetch_offset <= end:
            return FetchedPartition(0, ErrorCode.offset_out_of_range, -1, None)
        records = self.log.read(asked.fetch_offset, asked.partition_max_bytes)
        return FetchedPartition(0, ErrorCode.none, end, records, end, 0)

    def list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        """Say where the log begins or ends."""
        return ListOffsetsResponse(
            tuple(
                ListedTopic(
                    topic.name,
                    tuple(
                        ListedPartition(
                            asked.partition_index,
                            ErrorCode.none,
                            0 if asked.timestamp == EARLIEST else self.log.end_offset,
                            leader_epoch=0,
                        )
                        for asked in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OnePartition]:
    """A broker of one partition that listens."""
    broker = OnePartition(tmp_path)
    with WireServer(broker) as server:
        broker.port = server.address[1]
        yield broker
    broker.log.close()


def produce(broker: OnePartition, count: int, **options: object) -> list[int]:
    """Produce so many records with a stock producer and return their offsets."""
    settings = {"acks": 1, "enable_idempotence": False, "linger_ms": 5, **options}
    producer = KafkaProducer(bootstrap_servers=f"127.0.0.1:{broker.port}", **settings)
    sent = [
        producer.send(TOPIC, b"v%d" % n, b"k", headers=[("h", b"x")], partition=0, timestamp_ms=n)
        for n in range(count)
    ]
    offsets = [one.get(timeout=20).offset for one in sent]
    producer.close()
    return offsets


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_stock_client_lists_produces_and_consumes(
    broker: OnePartition, compression: str | None
) -> None:
    """A Python client sees the topic, gets offsets, reads back what it wrote, and both ends."""
    assert produce(broker, 40, compression_type=compression) == list(range(40))
    assert produce(broker, 40, batch_size=100) == list(range(40, 80))
    consumer = KafkaConsumer(
        bootstrap_servers=f"127.0.0.1:{broker.port}", auto_offset_reset="earliest",
        consumer_timeout_ms=10_000, max_partition_fetch_bytes=500,
    )  # fmt: skip
    assert consumer.topics() == {TOPIC}
    assert consumer.partitions_for_topic(TOPIC) == {0}
    consumer.assign([PARTITION])
    assert consumer.beginning_offsets([PARTITION]) == {PARTITION: 0}
    assert consumer.end_offsets([PARTITION]) == {PARTITION: 80}
    consumer.seek_to_beginning(PARTITION)
    found = [next(consumer) for _ in range(80)]
    assert [one.offset for one in found] == list(range(80))
    assert [one.value for one in found] == [b"v%d" % (n % 40) for n in range(80)]
    assert {(one.key, tuple(one.headers)) for one in found} == {(b"k", (("h", b"x"),))}
    assert [one.timestamp for one in found] == [n % 40 for n in range(80)]
    consumer.close()


def test_producer_that_does_not_listen_is_not_answered(broker: OnePartition) -> None:
    """With acks=0 records arrive, and nothing that the next answer could be taken for."""
    produce(broker, 10, acks=0)
    while broker.log.end_offset < 10:  # nobody says when they are there
        time.sleep(0.01)
    assert produce(broker, 1) == [10]
    assert [record.value for _, record in read_all(broker.log)][9:] == [b"v9", b"v0"]


def read_all(log: PartitionLog) -> list[tuple[int, object]]:
    """Return every record with its offset."""
    found: list[tuple[int, object]] = []
    while raw := log.read(len(found), 10**6):
        found += decode(raw)
    return found


@pytest.mark.skipif(KCAT is None, reason="kcat is not installed (Debian's package kcat)")
def test_kcat_lists_produces_and_consumes(broker: OnePartition) -> None:
    """The C client does so too, and reads the latest offset."""

    def kcat(*arguments: str, given: str = "") -> str:
        command = [str(KCAT), "-b", f"127.0.0.1:{broker.port}", "-m", "20", *arguments]
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=60, check=True
        )
        return done.stdout

    listed = kcat("-L")
    assert 'topic "orders" with 1 partitions' in listed
    assert "partition 0, leader 1, replicas: 1, isrs: 1" in listed
    kcat("-P", "-t", TOPIC, "-p", "0", "-K", ":", given="a:1\nb:2\nc:3\n")
    assert kcat("-C", "-t", TOPIC, "-p", "0", "-o", "beginning", "-e", "-q",
                "-f", "%o %k %s\n") == "0 a 1\n1 b 2\n2 c 3\n"  # fmt: skip
    assert kcat("-Q", "-t", f"{TOPIC}:0:-1").split()[-1] == "3"
