"""What stock clients can do with a cluster of ours: the table in docs/lab.md, tried.

Java's column is tried where KAFKA_JARS names a directory with the jars of Kafka's tools, which are
too large (56 MB) to be fetched for each run of the tests; docs/lab.md says how to get them.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import confluent_kafka as kafka
import pytest
from confluent_kafka import admin as parts
from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic

from reassure_lab.cluster.supervisor import ProcessCluster

TOPIC = "table"
ZERO = TopicPartition(TOPIC, 0)
LOG4J = Path(__file__).with_name("log4j.properties")
ROWS = {
    "create": "create a topic",
    "settings": "ask for its settings",
    "produce": "produce with default settings",
    "numbered": "produce idempotently, compressed",
    "consume": "consume assigned partitions",
    "times": "ask for offsets by time",
    "subscribe": "subscribe as a group",
    "commit": "commit offsets",
    "transaction": "begin transactions",
    "moves": "list reassignments of brokers",
    "delete": "delete the topic",
}
"""By what is tried, in order: what the table calls it."""
CODECS = ("gzip", "snappy", "lz4", "zstd")
"""What librdkafka and Java compress with; kafka-python has gzip alone without other libraries."""


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the brokers of a cluster listen."""
    cluster = ProcessCluster.start(tmp_path_factory.mktemp("stock") / "cluster", 3, 1, 1)
    yield ",".join(cluster.bootstrap)
    cluster.stop()


def read_table() -> dict[str, dict[str, str]]:
    """Return the outcomes in the table, by client and row."""
    page = (Path(__file__).parents[2] / "docs/lab.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in row] for row in rows]
    [head] = [row for row in cells if row[1:2] == ["kafka-python"]]
    named = {row[0]: row[1:] for row in cells if len(row) == len(head)}
    return {
        client: {name: named[text][column] for name, text in ROWS.items()}
        for column, client in enumerate(head[1:])
    }


def try_all(tries: dict[str, Callable[[], Any]], name_error: Callable[[Exception], str]) -> Any:
    """Return what came of each: `works`, or what the refusal says."""
    found = {}
    for name in ROWS:
        if name not in tries:
            found[name] = "-"
            continue
        try:
            tries[name]()
        except Exception as error:
            found[name] = f"refused: {name_error(error)}"
        else:
            found[name] = "works"
    return found


def try_kafka_python(at: str) -> Any:
    """Try what kafka-python can do."""
    with closing(KafkaAdminClient(bootstrap_servers=at)) as admin:
        return try_with(admin, at)


def try_with(admin: Any, at: str) -> Any:
    """Try it, with an open client for administrators."""

    def produce(**settings: Any) -> None:
        producer = KafkaProducer(bootstrap_servers=at, **settings)
        sent = [producer.send(TOPIC, b"v", partition=0, timestamp_ms=n) for n in range(20)]
        offsets = [one.get(20).offset for one in sent]
        producer.close()
        assert offsets == list(range(offsets[0], offsets[0] + 20))

    def consume(ask: Callable[[KafkaConsumer], bool], **settings: Any) -> None:
        consumer = KafkaConsumer(
            bootstrap_servers=at, auto_offset_reset="earliest", consumer_timeout_ms=20_000,
            **settings,
        )  # fmt: skip
        try:
            consumer.assign([ZERO])
            assert ask(consumer)
        finally:
            consumer.close(autocommit=False)

    def subscribe() -> None:
        consumer = KafkaConsumer(TOPIC, bootstrap_servers=at, group_id="g")
        try:
            consumer.poll(20_000)
        finally:
            consumer.close(autocommit=False)

    def transact() -> None:
        producer = KafkaProducer(bootstrap_servers=at, transactional_id="x")
        try:
            producer.init_transactions()
        finally:
            producer.close(timeout=1)

    kept = {ZERO: OffsetAndMetadata(3, "", -1)}
    resource = ConfigResource(ConfigResourceType.TOPIC, TOPIC)
    return try_all(
        {
            "create": lambda: admin.create_topics([NewTopic(TOPIC, 2, 3)]),
            "settings": lambda: admin.describe_configs([resource]),
            "produce": produce,
            "numbered": lambda: produce(enable_idempotence=True, compression_type="gzip"),
            "consume": lambda: consume(lambda one: len([next(one) for _ in range(40)]) == 40),
            "times": lambda: consume(
                lambda one: one.offsets_for_times({ZERO: 5})[ZERO].offset == 5
            ),
            "subscribe": subscribe,
            "commit": lambda: consume(lambda one: one.commit(kept) is None, group_id="g"),
            "transaction": transact,
            "delete": lambda: admin.delete_topics([TOPIC]),
        },
        lambda error: name_code(int(re.findall(r"\[Error (\d+)\]", str(error))[0])),
    )


def name_code(code: int) -> str:
    """Return Kafka's name of an error that is in the table."""
    return {35: "UNSUPPORTED_VERSION", 50: "INVALID_TRANSACTION_TIMEOUT"}[code]


def try_librdkafka(at: str) -> Any:
    """Try what librdkafka can do."""
    admin, there = parts.AdminClient({"bootstrap.servers": at}), kafka.TopicPartition(TOPIC, 0, 0)

    def settle(futures: dict[Any, Any]) -> None:
        for future in futures.values():
            future.result(30)

    def produce(**settings: Any) -> None:
        producer, offsets = kafka.Producer({"bootstrap.servers": at, **settings}), []
        for number in range(20):
            producer.produce(
                TOPIC, b"v", partition=0, timestamp=number + 1,
                on_delivery=lambda _, sent: offsets.append(sent.offset()),
            )  # fmt: skip
        assert producer.flush(20) == 0
        assert sorted(offsets) == list(range(min(offsets), min(offsets) + 20))

    def consume(ask: Callable[[Any], Any]) -> Any:
        consumer = kafka.Consumer(
            {"bootstrap.servers": at, "group.id": "g", "enable.auto.commit": False}
        )
        try:
            return ask(consumer)
        finally:
            consumer.close()

    def read_assigned(consumer: Any) -> None:
        consumer.assign([there])
        for number in range(20 * (1 + len(CODECS))):
            assert consumer.poll(20).offset() == number

    def subscribe(consumer: Any) -> None:
        consumer.subscribe([TOPIC])
        found = consumer.poll(20)
        if found is not None and found.error():
            raise kafka.KafkaException(found.error())

    def transact() -> None:
        kafka.Producer({"bootstrap.servers": at, "transactional.id": "x"}).init_transactions(20)

    def produce_packed() -> None:
        for codec in CODECS:
            produce(**{"enable.idempotence": True, "compression.type": codec})

    resource = parts.ConfigResource("TOPIC", TOPIC)
    time = kafka.TopicPartition(TOPIC, 0, 5)
    return try_all(
        {
            "create": lambda: settle(admin.create_topics([parts.NewTopic(TOPIC, 2, 3)])),
            "settings": lambda: settle(admin.describe_configs([resource])),
            "produce": produce,
            "numbered": produce_packed,
            "consume": lambda: consume(read_assigned),
            "times": lambda: consume(lambda one: one.offsets_for_times([time], timeout=20)),
            "subscribe": lambda: consume(subscribe),
            "commit": lambda: consume(lambda one: one.commit(offsets=[there], asynchronous=False)),
            "transaction": transact,
            "delete": lambda: settle(admin.delete_topics([TOPIC])),
        },
        lambda error: str(error.args[0].name()),
    )


def try_java(at: str) -> Any:
    """Try what the tools of Kafka itself can do."""
    jars, java = os.environ.get("KAFKA_JARS"), shutil.which("java")
    if not jars or not java:
        pytest.skip("set KAFKA_JARS to the jars of Kafka's tools: docs/lab.md, Over the wire")
    servers, topic = ("--bootstrap-server", at), ("--topic", TOPIC)
    tools = "org.apache.kafka.tools"

    def run(tool: str, *arguments: str, given: str = "", has: str = "") -> None:
        logged = f"-Dlog4j.configuration={LOG4J.as_uri()}"
        command = [str(java), "-Xmx256m", logged, "-cp", f"{jars}/*", tool, *arguments]
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=90, check=False
        )
        said = done.stdout + done.stderr
        if done.returncode or "Exception: " in said or has not in said:
            raise RuntimeError(said)

    def name_error(error: Exception) -> str:
        is_late = "transaction timeout is larger than the maximum value" in str(error)
        return (
            name_code(50)
            if is_late
            else name_code(35)
            if "UnsupportedVersion" in str(error)
            else ""
        )

    topics, lines = f"{tools}.TopicCommand", "".join(f"{n}\n" for n in range(20))
    consumer = f"{tools}.consumer.ConsoleConsumer"
    produce = ("kafka.tools.ConsoleProducer", *servers, *topic)
    first = ("--partition", "0", "--offset", "earliest", "--max-messages", "100")
    transaction = ("--record-size", "9", "--throughput", "-1", "--transaction-duration-ms", "9")
    return try_all(
        {
            "create": lambda: run(topics, *servers, *topic, "--create", "--partitions", "1",
                                  "--replication-factor", "3"),
            "settings": lambda: run(topics, *servers, *topic, "--describe", has="Isr: "),
            "produce": lambda: run(*produce, given=lines),
            "numbered": lambda: [run(*produce, "--compression-codec", codec, given=lines)
                                 for codec in CODECS],
            "consume": lambda: run(consumer, *servers, *topic, *first, has="total of 100"),
            "times": lambda: run(f"{tools}.GetOffsetShell", *servers, *topic, "--time", "1",
                                 has=f"{TOPIC}:0:0"),
            "subscribe": lambda: run(consumer, *servers, *topic, "--timeout-ms", "60000"),
            "transaction": lambda: run(f"{tools}.ProducerPerformance", *topic, "--num-records", "9",
                                       *transaction, "--producer-props", f"bootstrap.servers={at}"),
            "moves": lambda: run(f"{tools}.reassign.ReassignPartitionsCommand", *servers, "--list"),
            "delete": lambda: run(topics, *servers, *topic, "--delete"),
        },
        name_error,
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # theirs: sockets
@pytest.mark.parametrize(
    ("client", "try_client"),
    [
        pytest.param("kafka-python", try_kafka_python, id="kafka-python"),
        pytest.param("librdkafka", try_librdkafka, id="librdkafka"),
        pytest.param("Java", try_java, id="java"),
    ],
)
def test_stock_clients_can_do_what_the_page_says(
    client: str, try_client: Callable[[str], Any], bootstrap: str
) -> None:
    """What works, works with each client's defaults; the rest is refused at once by its error."""
    assert try_client(bootstrap) == read_table()[client]
