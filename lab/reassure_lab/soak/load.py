"""Threads that use the cluster while it is troubled: they produce, consume and move partitions."""

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from reassure_lab.soak.operations import History
from reassure_lab.soak.traffic import NoLeader, RecordClient
from reassure_spec.znodes import (
    REASSIGNMENT_REQUESTS,
    REQUEST_PREFIX,
    PartitionKey,
    ReplicaList,
    RequestZnode,
    encode_request,
)

RECORDS: Final = 5
"""How many records a producer sends at a time."""
VALUE_BYTES: Final = 200
PAUSE_S: Final = 0.1
"""How long a producer rests between two requests."""
MOVE_S: Final = 1.5
"""How long there is between two requests for a reassignment."""
REPLICAS: Final = 3


Wanted = dict[PartitionKey, set[ReplicaList]]
"""By partition: where it was asked to be last; several where it is not known which came last."""


class LoadThread(threading.Thread):
    """One thread that goes on until it is told to end; what ended it otherwise is kept."""

    def __init__(
        self,
        name: str,
        ending: threading.Event,
        turn: Callable[[], None],
        close: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._close = close
        self._ending = ending
        self._turn = turn
        self.error: BaseException | None = None

    def run(self) -> None:
        """Take turns."""
        try:
            while not self._ending.is_set():
                self._turn()
        except BaseException as error:
            self.error = error
        finally:
            self._close()


@dataclass(slots=True)
class Producer:
    """Sends numbered records to all partitions, one request after the other."""

    name: str
    client: RecordClient
    keys: Sequence[PartitionKey]
    history: History
    ending: threading.Event
    _sent: int = 0

    def take_turn(self) -> None:
        """Send a few records to the next partition, and write down what came of it."""
        key = self.keys[self._sent % len(self.keys)]
        self._sent += 1
        names = [f"{self.name}/{self._sent}.{number}/" for number in range(RECORDS)]
        values = [name.encode().ljust(VALUE_BYTES, b".") for name in names]
        try:
            found = self.client.produce(key, values)
        except NoLeader:
            self.history.count("produce_without_leader")
            self.ending.wait(PAUSE_S)
            return
        self.history.count("produced", RECORDS)
        self.history.count(f"produced_{found.outcome}", RECORDS)
        if found.outcome == "acknowledged":
            self.history.acknowledge(self.name, key, found.base_offset, values)
        self.ending.wait(PAUSE_S)


@dataclass(slots=True)
class Consumer:
    """Reads all partitions from their beginning, each record once."""

    name: str
    client: RecordClient
    keys: Sequence[PartitionKey]
    history: History
    ending: threading.Event
    _positions: dict[PartitionKey, int] = field(default_factory=dict)

    def take_turn(self) -> None:
        """Read on in every partition, and write down what was shown."""
        for key in self.keys:
            position = self._positions.get(key, 0)
            try:
                seen = self.client.fetch(key, position)
            except NoLeader:
                self.history.count("consume_without_leader")
                continue
            self.history.count("fetches")
            self.history.see(self.name, key, seen.high_watermark, seen.records)
            if seen.records:
                self._positions[key] = seen.records[-1][0] + 1
        self.ending.wait(PAUSE_S)


@dataclass(slots=True)
class Mover:
    """Asks for reassignments by znodes, and remembers what was asked for last."""

    client: KazooClient
    keys: Sequence[PartitionKey]
    brokers: Sequence[int]
    draws: random.Random
    history: History
    ending: threading.Event
    wanted: Wanted = field(default_factory=dict)

    def take_turn(self) -> None:
        """Ask for another place for one partition; sometimes while it is on its way."""
        key = self.draws.choice(self.keys)
        target = tuple(self.draws.sample(self.brokers, REPLICAS))
        data = encode_request(RequestZnode({key: target}, legacy=False))
        prefix = f"{REASSIGNMENT_REQUESTS}/{REQUEST_PREFIX}"
        try:
            path = self.client.create(prefix, data, sequence=True)
        except (KazooException, KazooTimeoutError) as error:
            self.wanted.setdefault(key, set()).add(target)
            self.history.note("moves_unknown", target=target, error=type(error).__name__)
        else:
            self.wanted[key] = {target}
            self.history.note("moves_asked", path=path, target=target)
        self.ending.wait(MOVE_S * self.draws.uniform(0.3, 1.7))
