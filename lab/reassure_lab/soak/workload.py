"""The clients of a soak, as a program of its own: stock ones, which write down what they see.

    python -m reassure_lab.soak.workload produce --bootstrap HOST:PORT,... --history FILE ...

`produce` and `consume` end when their standard input does, so that they outlive nobody; `read`
reads everything once, and ends. Nothing of the lab's own speaks to the brokers here, so what they
say is understood by somebody else's code.
"""

import argparse
import logging
import random
import sys
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

from reassure_lab.soak.seen_events import (
    READER,
    Event,
    HistoryWriter,
    make_value,
    now_ms,
    parse_value,
)
from reassure_spec.znodes import PartitionKey

PRODUCERS: Final = {
    "none-1": 0, "one-1": 1, "all-1": -1, "all-2": -1, "lone-1": -1, "lone-2": -1, "once-1": -1,
    "once-2": -1,
}  # fmt: skip
"""By name: how many replicas a producer waits for. `once` are idempotent; `lone` send to one
partition only, so that nobody else's records hold up what they are answered; `all-2` sends to the
topic that is moved as a whole."""
CONSUMERS: Final = ("consumer-1", "consumer-2")
BURST: Final = 50
"""How many records are sent to one partition at a time."""
PAUSE_S: Final = 0.1
MOST_OPEN: Final = 2_000
"""How many records of one producer may be unanswered."""
REQUEST_MS: Final = 5_000
DELIVERY_MS: Final = 8_000
PROBE_S: Final = 15.0
READ_S: Final = 90.0
"""How long the last reading may take."""
QUICK: Final = {"reconnect_backoff_max_ms": 500, "metadata_max_age_ms": 2_000}
Client = Any
"""A client of kafka-python, which has no types."""


def is_idempotent(who: str) -> bool:
    """Whether the library of this producer sends again by itself, and the broker sorts that out."""
    return who.startswith("once")


def make_producer(servers: list[str], who: str) -> Client:
    """Return a producer. One that is not idempotent sends nothing again by itself.

    It has one request in flight, as Kafka asks of who wants order without idempotence.
    """
    idempotent = is_idempotent(who)
    alone = {} if idempotent else {"retries": 0, "max_in_flight_requests_per_connection": 1}
    return KafkaProducer(
        bootstrap_servers=servers, client_id=who, acks=PRODUCERS[who],
        enable_idempotence=idempotent, linger_ms=5, request_timeout_ms=REQUEST_MS,
        delivery_timeout_ms=DELIVERY_MS, max_block_ms=2_000, metrics_enabled=False,
        **alone, **QUICK,
    )  # fmt: skip


@dataclass(slots=True)
class Producing:
    """One producer, for one thread."""

    who: str
    servers: list[str]
    topics: list[str]
    only: int | None
    """The partition that it sends to, None where to all."""
    draws: random.Random
    history: HistoryWriter
    _client: Client = None
    _next: Counter[PartitionKey] = field(default_factory=Counter)
    _answers: deque[Event] = field(default_factory=deque)
    """What came, not written down yet."""
    _again: deque[tuple[PartitionKey, int]] = field(default_factory=deque)
    """Records that failed, to be sent once more."""
    _open: int = 0

    def take_turn(self, ending: threading.Event) -> None:
        """Send a burst to one partition, and write down what came meanwhile."""
        self._write_answers()
        ending.wait(PAUSE_S)
        if self._open > MOST_OPEN:
            return
        try:
            if self._client is None:
                self._client = make_producer(self.servers, self.who)
                self.history.note(self.who, "began")
            topic = self.draws.choice(self.topics)
            there = self._client.partitions_for(topic)
            key = (topic, self.draws.choice(sorted(there)) if self.only is None else self.only)
        except KafkaError:
            return
        if self._again:
            self._send(*self._again.popleft(), 1)
        self._send(key, self._next[key], BURST)
        self._next[key] += BURST

    def close(self) -> None:
        """Wait for what is on its way, and write down what came."""
        if self._client is not None:
            with suppress(KafkaError):  # what is not answered by then has no answer
                self._client.close(timeout=DELIVERY_MS / 1000)
        self._write_answers()

    def _send(self, key: PartitionKey, first: int, count: int) -> None:
        self.history.write([Event(now_ms(), self.who, "sent", *key, n=first, count=count)])
        self._open += count
        for n in range(first, first + count):
            try:
                sent = self._client.send(key[0], make_value(self.who, key, n), partition=key[1])
            except KafkaError as error:
                self._fail(key, n, error)
            else:
                sent.add_callback(partial(self._take, key, n))
                sent.add_errback(partial(self._fail, key, n))

    def _take(self, key: PartitionKey, n: int, told: Any) -> None:
        self._answers.append(Event(now_ms(), self.who, "acked", *key, n, 1, told.offset))

    def _fail(self, key: PartitionKey, n: int, error: BaseException) -> None:
        what = type(error).__name__
        self._answers.append(Event(now_ms(), self.who, "failed", *key, n, 1, what=what))

    def _write_answers(self) -> None:
        found = [self._answers.popleft() for _ in range(len(self._answers))]
        self._open = max(0, self._open - len(found))
        self.history.write(found)
        failed = [(one.key, one.n) for one in found if one.did == "failed"]
        if not is_idempotent(self.who):
            self._again += self.draws.sample(failed, len(failed) // 10)
        elif failed and self._client is not None:
            # The library gives its id up then, gets no other one, and answers nothing any more.
            with suppress(Exception):  # nor does it always manage to end
                self._client.close(timeout=0)
            self._client, self._open = None, 0


def probe_idempotence(servers: list[str], topic: str, history: HistoryWriter) -> str:
    """Return why idempotent producers cannot be used here, "" where they can."""
    key: PartitionKey = (topic, 0)
    try:
        client = make_producer(servers, "once-1")
        try:
            history.write([Event(now_ms(), "probe-1", "sent", *key, count=1)])
            client.send(topic, make_value("probe-1", key, 0), partition=0).get(timeout=PROBE_S)
        finally:
            client.close(timeout=0)
    except Exception as error:  # whatever the library makes of a broker that knows no such request
        return f"{type(error).__name__}: {error}"
    return ""


def make_consumer(servers: list[str], who: str) -> Client:
    """Return a consumer that is in no group."""
    return KafkaConsumer(
        bootstrap_servers=servers, client_id=who, group_id=None, enable_auto_commit=False,
        auto_offset_reset="earliest", max_poll_records=2_000, fetch_max_wait_ms=200,
        metrics_enabled=False, request_timeout_ms=REQUEST_MS, **QUICK,
    )  # fmt: skip


def list_partitions(client: Client, topics: list[str]) -> list[TopicPartition]:
    """Return the partitions of topics as the brokers tell them."""
    return [
        TopicPartition(topic, number)
        for topic in topics
        for number in sorted(client.partitions_for_topic(topic) or ())
    ]


def tell_read(who: str, found: dict[TopicPartition, list[Any]]) -> Iterator[Event]:
    """Yield what was read, a record at a time."""
    at_ms = now_ms()
    for place, records in found.items():
        key = (place.topic, place.partition)
        for record in records:
            known = parse_value(key, record.value)
            if known is None:
                what = repr(record.value[:40])
                yield Event(at_ms, who, "altered", *key, offset=record.offset, what=what)
            else:
                of, n = known
                yield Event(at_ms, who, "read", *key, n, 1, record.offset, of)


@dataclass(slots=True)
class Consuming:
    """One consumer, for one thread."""

    who: str
    servers: list[str]
    topics: list[str]
    history: HistoryWriter
    _client: Client = None
    _assigned: list[TopicPartition] = field(default_factory=list)

    def take_turn(self, ending: threading.Event) -> None:
        """Read on in all partitions, new ones included, and write down what was read."""
        try:
            if self._client is None:
                self._client = make_consumer(self.servers, self.who)
            there = list_partitions(self._client, self.topics)
            if len(there) > len(self._assigned):
                self._assigned = there
                self._client.assign(there)
            self.history.write(tell_read(self.who, self._client.poll(timeout_ms=200)))
        except KafkaError:
            pass
        if not self._assigned:
            ending.wait(PAUSE_S)

    def close(self) -> None:
        """End its connections."""
        if self._client is not None:
            self._client.close()


def read_all(servers: list[str], topics: list[str], history: HistoryWriter) -> None:
    """Read every partition from its beginning to its end."""
    client = make_consumer(servers, READER)
    places, deadline = list_partitions(client, topics), time.monotonic() + READ_S
    client.assign(places)
    ends = client.end_offsets(places)
    behind = set(places)
    while behind and time.monotonic() < deadline:
        history.write(tell_read(READER, client.poll(timeout_ms=200)))
        behind = {one for one in behind if client.position(one) < ends[one]}
    for one in places:
        what = f"it was read up to {client.position(one)} only" if one in behind else ""
        key = (one.topic, one.partition)
        history.write([Event(now_ms(), READER, "end", *key, offset=ends[one], what=what)])
    client.close()


def _work(
    one: Producing | Consuming, ending: threading.Event, history: HistoryWriter
) -> Callable[[], None]:
    def work() -> None:
        try:
            while not ending.is_set():
                one.take_turn(ending)
            one.close()
        except Exception:  # it is said in the verdict that a client has ended
            history.note(one.who, "broke", traceback.format_exc())

    return work


def _list_clients(
    role: str, servers: list[str], topics: list[str], seed: int, history: HistoryWriter
) -> Iterator[Producing | Consuming]:
    if role == "consume":
        yield from (Consuming(who, servers, topics, history) for who in CONSUMERS)
        return
    refused = probe_idempotence(servers, topics[0], history)
    if refused:
        history.note("once", "skipped", refused)
    for who in PRODUCERS:
        if refused and is_idempotent(who):
            continue
        only = int(who[-1]) if who.startswith("lone-") else None
        own = topics[-1:] if who == "all-2" else topics[: -1 if only is None else 1]
        yield Producing(who, servers, own, only, random.Random(f"{seed} {who}"), history)


def main() -> None:
    """Run one role."""
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=("produce", "consume", "read"))
    for name in ("--bootstrap", "--history", "--topics"):
        parser.add_argument(name, required=True)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # lost connections are what it is about
    servers, topics = asked.bootstrap.split(","), asked.topics.split(",")
    with HistoryWriter.open(Path(asked.history)) as history:
        if asked.role == "read":
            read_all(servers, topics, history)
            return
        ending = threading.Event()
        clients = list(_list_clients(asked.role, servers, topics, asked.seed, history))
        threads = [threading.Thread(target=_work(one, ending, history)) for one in clients]
        for thread in threads:
            thread.start()
        sys.stdin.read()
        ending.set()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main()
