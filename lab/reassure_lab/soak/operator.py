"""Whoever moves partitions about while the cluster is troubled, with the lab's own tool.

What was asked for last of each partition is remembered, to be held against what came of it.
"""

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NodeExistsError
from kazoo.handlers.threading import KazooTimeoutError

from reassure_controller.session import Indefinite
from reassure_lab.admin import REQUESTS
from reassure_lab.admin.errors import ClusterNotFound, NotNow, NotThere, Unsettled
from reassure_lab.admin.move_files import FilePlace, PartitionMove
from reassure_lab.admin.verbs import cancel, execute, verify
from reassure_lab.soak.schedule import Operation
from reassure_lab.soak.seen_events import HistoryWriter
from reassure_spec.znodes import (
    BROKER_IDS,
    PartitionKey,
    ReplicaList,
    decode_topic,
    deleted_topic_path,
    encode_topic,
    state_path,
    topic_path,
)

Result = TypeVar("Result")
REPLICAS: Final = 3
FACTORS: Final = (2, 4)
RATE: Final = 2_000_000
"""Bytes a second, where a move is throttled."""
ON_ITS_WAY_S: Final = 0.2
"""How long a reassignment has before its target is changed, it is cancelled, or its topic goes."""
BRIEF_PARTITIONS: Final = 4
BRIEF_S: Final = 6.0
"""How long a topic that is to be deleted may take until it has leaders."""
REFUSED: Final = (NotNow, NotThere)
UNANSWERED: Final = (Unsettled, ClusterNotFound, Indefinite, KazooException, KazooTimeoutError)
_HERE: Final = FilePlace("soak", 1)

Wanted = dict[PartitionKey, set[ReplicaList]]
"""By partition: where it was asked to be last; several where it is not known which came last."""


@dataclass(slots=True)
class Operator:
    """Carries out one operation after the other."""

    client: KazooClient
    used: Sequence[PartitionKey]
    """Partitions that clients use."""
    wide: Sequence[PartitionKey]
    """The many that are moved in one request."""
    growing: str
    """A topic that gets more partitions."""
    draws: random.Random
    history: HistoryWriter
    wanted: Wanted = field(default_factory=dict)
    brief: list[str] = field(default_factory=list)
    """Topics that are to be deleted."""

    def carry_out(self, operation: Operation) -> bool:
        """Carry out one operation, and return whether it was; otherwise it is written down why."""
        kind, size = operation.kind, operation.size
        what = f"{kind} {size}" if kind == "move" else kind
        keys = self.draws.sample(list(self.used), min(size, len(self.used)))
        if size > len(self.used) or kind == "cancel":  # those are hardly ever on their way before
            keys = self.draws.sample(list(self.wide), min(size, len(self.wide)))
        acts: Mapping[str, Callable[[], object]] = {
            "move": lambda: self._move(keys),
            "factor": lambda: self._move(keys, self.draws.choice(FACTORS)),
            "throttle": lambda: self._move(keys, rate=RATE),
            "change": lambda: self._change(keys),
            "cancel": lambda: self._cancel(keys),
            "grow": self._grow,
            "delete": self._delete_in_flight,
        }
        try:
            acts[kind]()
        except REFUSED as refused:
            self.history.note("operator", "refused", f"{what}: {refused}")
        except UNANSWERED as error:
            self.history.note("operator", "unanswered", f"{what}: {type(error).__name__}: {error}")
        else:
            self.history.note("operator", "did", what)
            return True
        return False

    def finish(self) -> None:
        """See that what was to be deleted is, and take away throttles; when nothing moves."""
        for topic in self.brief:
            if self.client.exists(topic_path(topic)) is not None:
                self._delete(topic)
        moves = [PartitionMove(key, (), _HERE) for key in (*self.used, *self.wide)]
        verify(self.client, moves)

    def _move(
        self, keys: Iterable[PartitionKey], replicas: int | None = None, rate: int | None = None
    ) -> None:
        targets = {key: self._draw(replicas or self._count(key)) for key in keys}
        moves = [PartitionMove(key, target, _HERE) for key, target in targets.items()]
        try:
            execute(self.client, moves, REQUESTS, bytes_per_s=rate, additional=True)
        except UNANSWERED:
            for key, target in targets.items():
                self.wanted.setdefault(key, set()).add(target)
            raise
        self.wanted.update({key: {target} for key, target in targets.items()})

    def _draw(self, count: int) -> ReplicaList:
        """Return so many brokers that are alive. Raises NotNow."""
        alive = sorted(map(int, self.client.get_children(BROKER_IDS)))
        if len(alive) < count:
            raise NotNow(f"alive are {alive}")
        return tuple(self.draws.sample(alive, count))

    def _count(self, key: PartitionKey) -> int:
        return REPLICAS if key[0] != self.wide[0][0] else REPLICAS - 1

    def _change(self, keys: Sequence[PartitionKey]) -> None:
        self._move(keys)
        time.sleep(ON_ITS_WAY_S)
        self._move(keys)

    def _cancel(self, keys: Sequence[PartitionKey]) -> None:
        self._move(keys)
        time.sleep(ON_ITS_WAY_S)
        moves = [PartitionMove(key, (), _HERE) for key in keys]
        before = dict(self.wanted)
        try:
            found = cancel(self.client, moves, REQUESTS, clear=False)
        except UNANSWERED:
            for key in keys:  # it goes back to wherever it was, or does not
                self.wanted.pop(key, None)
            raise
        if not found.cancelled:
            raise NotNow("nothing was on its way any more")
        self.wanted = before | {key: {back} for key, back in found.cancelled.items()}

    def _grow(self) -> None:
        path = topic_path(self.growing)
        data, stat = self.client.get(path)
        assigned = decode_topic(path, data)
        new = self._draw(REPLICAS)
        grown = encode_topic({**assigned, len(assigned): new})
        self.client.set(path, grown, version=stat.version)

    def _delete_in_flight(self) -> None:
        topic = f"brief-{len(self.brief)}"
        keys = [(topic, number) for number in range(BRIEF_PARTITIONS)]
        assigned = {key[1]: self._draw(REPLICAS) for key in keys}
        self.brief.append(topic)
        self.client.create(topic_path(topic), encode_topic(assigned))
        deadline = time.monotonic() + BRIEF_S
        while not all(self.client.exists(state_path(*key)) for key in keys):
            if time.monotonic() > deadline:
                break  # it is deleted while it is being created
            time.sleep(ON_ITS_WAY_S)
        try:
            self._move(keys)
        finally:
            for key in keys:
                self.wanted.pop(key, None)
            self._delete(topic)

    def _delete(self, topic: str) -> None:
        with suppress(NodeExistsError):
            self.client.create(deleted_topic_path(topic), makepath=True)
