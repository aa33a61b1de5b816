"""Histories of any length, made by the model: one cluster at work, and faults planted in it.

What a `WorkingCluster` does is written as ZooKeeper would log it. Nothing here asks the judge.

A planted fault is one write that the model rejects (`distortions`), at a quiet moment: a while
after the last broker came or went, so that nobody can have missed it.

Memory grows with the partitions, not with the transactions: those are handed on as they are made.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from reassure_lab.protocols.kip_236.distortions import (
    AUTHORSHIPS,
    DISTORTIONS,
    GARBAGE,
    JUMP,
    Distortion,
    find_wrong,
    go_on,
    is_forbidden,
)
from reassure_lab.protocols.kip_236.working_cluster import WorkingCluster
from reassure_model.controllers import ACTING
from reassure_model.writes import (
    DeleteRequest,
    Write,
)
from reassure_pipeline.audit.jobs import rare_collections
from reassure_spec import znodes
from reassure_spec.errors import BadUsage
from reassure_spec.profiles import DEFAULT_PROFILE
from reassure_spec.znodes import PartitionKey
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.txnlog_writer import LogWriter

TRUTH: Final = "truth.json"
PER_FILE: Final = 100_000
"""How many transactions ZooKeeper writes into one log file unless told otherwise."""


_PER_TOPIC: Final = 10
_QUIET_MS: Final = 60_000
"""How long nothing has happened to a broker when a fault is planted."""
_PATIENCE: Final = 500
"""How many steps a fault waits for a chance to be of a kind that was planted least."""
_AT_ONCE: Final = 100
"""How many transactions are handed on together, about."""


class Faulty(NamedTuple):
    """Where a fault was planted and which clause it breaks."""

    clause: str
    topic: str
    """Empty for a fault of the cluster, whose partition is -1."""
    partition: int
    zxid: int


class Unplanted(NamedTuple):
    """A fault that was asked for and not planted."""

    due_zxid: int
    """From where on there was to be one."""
    waited: int
    """For how many transactions a chance for it was looked for; 0 where those before it waited."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a history is to be. Raises BadUsage for one that cannot be."""

    transactions: int
    partitions: int
    faults: int
    seed: int = 0
    hot: float = 0.0
    """The share of what happens that happens to one partition, whose replicas come and go."""

    def __post_init__(self) -> None:
        if self.transactions < 1 or self.partitions < 1:
            raise BadUsage("a history has one transaction or more, and one partition or more")
        least = 500 + 6 * self.partitions + 50 * self.faults
        if self.transactions < least:
            raise BadUsage(
                f"{self.transactions} transactions are too few for {self.partitions} partitions "
                f"and {self.faults} faults: ask for {least} or more"
            )


class SyntheticHistory(WorkingCluster):
    """One cluster that goes its way; `steps` hands on what is written."""

    def __init__(self, size: Size) -> None:
        super().__init__(size.partitions, size.seed, size.hot)
        self.size = size
        self.planted: list[Faulty] = []
        self._kinds = dict.fromkeys(
            [d.clause for d in DISTORTIONS] + [a[0] for a in AUTHORSHIPS] + [GARBAGE, JUMP], 0
        )
        """How often each clause was broken."""
        self._due_since = -1
        """The zxid since which a fault is due, -1 while none is."""
        self._begun = self._pause = 0
        """The zxid from which on faults are planted, and how far they are apart."""
        self._patience = _PATIENCE

    def steps(self) -> Iterator[list[Transaction]]:
        """Yield the transactions, some at a time; as many as were asked for in all."""
        made = self._cluster.transactions
        left = self.size.transactions
        for _ in self._run():
            left -= len(made)
            if left <= 0:
                yield made[: len(made) + left]
                return
            yield made
            made.clear()

    def list_unplanted(self) -> list[Unplanted]:
        """Return the faults that were asked for and are not there, once the history is made."""
        numbers = range(len(self.planted) + 1, self.size.faults + 1)
        due = [self._begun + self._pause * number for number in numbers]
        end = self.size.transactions
        begun = end if self._due_since < 0 else self._due_since
        return [Unplanted(zxid, 0 if place else end - begun) for place, zxid in enumerate(due)]

    def _run(self) -> Iterator[None]:
        numbers = range(self.size.partitions)
        for first in numbers[::_PER_TOPIC]:
            self._create_topic(
                f"topic-{first // _PER_TOPIC:05d}", len(numbers[first:][:_PER_TOPIC])
            )
            yield
        self._begun = begun = self._cluster.zxid + 2 * self.size.partitions
        # The last part is left to what comes of the last fault.
        pause = (self.size.transactions * 9 // 10 - begun) // (self.size.faults + 1)
        self._pause = pause
        self._patience = min(_PATIENCE, pause // 2)
        while True:
            zxid = self._cluster.zxid
            due = len(self.planted) < self.size.faults
            if due and zxid >= begun + pause * (len(self.planted) + 1) and not self._shaken:
                self._plant()
            elif zxid >= self._next_event and not self._shaken:
                self._upset()
            self._go_on()
            if len(self._cluster.transactions) >= _AT_ONCE:
                yield

    # What goes wrong ------------------------------------------------------------------------------

    def _plant(self) -> None:
        """Plant the next fault, if there is a chance of the kinds that are wanted."""
        zxid = self._cluster.zxid
        if self._due_since < 0:
            self._due_since = zxid
            self._cluster.time_ms += _QUIET_MS
        self._next_event = max(self._next_event, zxid + 1)
        kinds = self._find_kinds()
        self._random.shuffle(kinds)
        keys = [*self._flights, *(key for _, asked in self._waiting for key in asked)]
        keys += [self._pick(self._keys) for _ in range(8)]
        keys = [key for key in dict.fromkeys(keys) if key not in self._spoilt]
        for clause in kinds:
            found = self._try(clause, keys)
            if found is not None:
                self.planted.append(found)
                self._kinds[clause] += 1
                self._due_since = -1
                self._next_event = self._cluster.zxid + self._event_pause
                return

    def _find_kinds(self) -> list[str]:
        """Return the clauses of which one is to be broken now, with patience those broken least."""
        least = min(self._kinds.values())
        patient = self._cluster.zxid - self._due_since < self._patience
        return [c for c, times in self._kinds.items() if times == least or not patient]

    def _try(self, clause: str, keys: list[PartitionKey]) -> Faulty | None:
        """Break this clause if one of these partitions gives the chance."""
        if clause == JUMP:
            self._cluster.append(self._cluster.delete(znodes.CONTROLLER))
            return Faulty(clause, "", -1, self._elect(raised=2))
        for key in keys:
            zxid = -1
            if clause == GARBAGE:
                zxid = self._write_garbage(key)
            for each, office, fenced in AUTHORSHIPS:
                if each == clause and is_forbidden(clause, office, fenced=fenced):
                    zxid = self._misattribute(key, office, fenced=fenced)
            for distortion in DISTORTIONS:
                if distortion.clause == clause:
                    zxid = self._distort(key, distortion)
            if zxid >= 0:
                return Faulty(clause, *key, zxid)
        return None

    def _write_garbage(self, key: PartitionKey) -> int:
        if self._places[key].form.partition.state is None:
            return -1
        return self._cluster.control(self._cluster.put(znodes.state_path(*key), b"{"))

    def _misattribute(self, key: PartitionKey, office: str, *, fenced: bool) -> int:
        """Let a write that is owed be made by another, or without a look at the epoch."""
        owed = self._spell_owed(key)
        if owed is None or isinstance(owed, DeleteRequest):
            return -1
        writer = None
        if office != ACTING:
            # One that was controller once breaks the same clause.
            writer = self._pick(sorted(self._around.live - {self._cluster.controller}))
        self._go_on_from(key, owed)
        return self._log(key, owed, fenced=fenced, writer=writer)

    def _spell_owed(self, key: PartitionKey) -> Write | None:
        owed = self._find_owed(key)
        return None if owed is None else self._places[key].spell(owed.write)

    def _may_spoil(self, key: PartitionKey) -> bool:
        shared = any(key in asked for _, asked in self._waiting)
        hot = self.size.hot and key == self._keys[0]
        return not (shared or hot or 2 * len(self._spoilt) + 2 > len(self._keys))

    def _go_on_from(self, key: PartitionKey, write: Write) -> None:
        """Let a partition be where a write leads that may be wrong."""
        partition = self._places[key].restore()
        after = go_on(partition, write, self._around, self._readings)
        self._places[key] = self._answers.place(after)

    def _distort(self, key: PartitionKey, distortion: Distortion) -> int:
        if distortion.spoils and not self._may_spoil(key):
            return -1
        partition, owed = self._places[key].restore(), self._spell_owed(key)
        write = find_wrong(distortion, partition, self._around, owed, self._readings)
        if write is None:
            return -1
        if isinstance(write, DeleteRequest):
            # A request is removed for all that it names, and the others must be done with it.
            if self._waiting[0] != (write.sequence, (key,)):
                return -1
            self._waiting.popleft()
            self._go_on_from(key, write)
            return self._remove_request(write.sequence)
        self._go_on_from(key, write)
        zxid = self._log(key, write)
        if distortion.spoils:
            self._spoilt.add(key)
            self._places[key] = self._nowhere
            if key in self._flights:
                self._flights.remove(key)
        return zxid


def write_archive(folder: Path, size: Size, per_file: int = PER_FILE) -> dict[str, Any]:
    """Write a history as the logs of a ZooKeeper server, and what is wrong in it beside them.

    Answers what `truth.json` says. Raises BadUsage where there is something already.
    """
    logs = folder / "version-2"
    if folder.exists() and any(folder.iterdir()):
        raise BadUsage(f"{folder} is not empty; name a directory that is, or that does not exist")
    logs.mkdir(parents=True)
    history = SyntheticHistory(size)
    with ExitStack() as files, rare_collections():
        left = 0
        for batch in history.steps():
            while batch:
                if not left:
                    files.close()
                    path = logs / f"log.{batch[0].zxid:x}"
                    writer, left = files.enter_context(LogWriter(path)), per_file
                writer.append(*batch[:left])
                batch, left = batch[left:], max(0, left - len(batch))
    truth = {
        "profile": DEFAULT_PROFILE,
        **asdict(size),
        "planted": [fault._asdict() for fault in history.planted],
        "unplanted": [fault._asdict() for fault in history.list_unplanted()],
    }
    (folder / TRUTH).write_text(json.dumps(truth, indent=2) + "\n")
    return truth
