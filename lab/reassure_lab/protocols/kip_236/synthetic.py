"""Histories of any length, made by the model: one cluster at work, and faults planted in it.

Every write of the controller is one that the model owes (`next_write`), every write of a leader one
that it accepts; clients ask for reassignments and change them in flight, replicas lag and catch up,
brokers die and return, controllers follow one another. What the model makes of it is written as
ZooKeeper would log it. Nothing here asks the judge.

A planted fault is one write that the model rejects (`distortions`), at a quiet moment: a while
after the last broker came or went, so that nobody can have missed it.

Memory grows with the partitions, not with the transactions: those are handed on as they are made.
"""

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple, TypeVar

from reassure_lab.archives.sample import SampleCluster
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
from reassure_lab.protocols.kip_236.forms import Answers, Place, Step
from reassure_lab.protocols.kip_236.offers import Offer, offer_lag, offer_owed, offer_return
from reassure_lab.protocols.kip_236.ops import Topic, list_ops
from reassure_model.controllers import ACTING
from reassure_model.partition import Environment, Partition
from reassure_model.writes import (
    ChangeIsr,
    CreateReassignment,
    DeleteReassignment,
    DeleteRequest,
    UpdateReassignment,
    Write,
    WriteAssigned,
    WriteState,
)
from reassure_pipeline.audit.jobs import rare_collections
from reassure_spec import znodes
from reassure_spec.errors import BadUsage
from reassure_spec.profiles import DEFAULT_PROFILE
from reassure_spec.readings import get_profile
from reassure_spec.znodes import PartitionKey, ReplicaList, RequestZnode
from reassure_zookeeper.transactions import Op, Transaction
from reassure_zookeeper.txnlog_writer import LogWriter

TRUTH: Final = "truth.json"
PER_FILE: Final = 100_000
"""How many transactions ZooKeeper writes into one log file unless told otherwise."""

Picked = TypeVar("Picked")

_BROKERS: Final = 24
_REPLICAS: Final = 3
_PER_TOPIC: Final = 10
_MOST_FLIGHTS: Final = 64
_QUIET_MS: Final = 60_000
"""How long nothing has happened to a broker when a fault is planted."""
_PATIENCE: Final = 500
"""How many steps a fault waits for a chance to be of a kind that was planted least."""
_AT_ONCE: Final = 100
"""How many transactions are handed on together, about."""
_MOST_WAITING: Final = 3
_MOST_ASKED: Final = 3
_CHANGES: Final = 0.1
"""The share of the requests that change a reassignment in flight."""
_AHEAD: Final = 0.2
"""How often a replica that may catch up in a reassignment does so before the controller goes on."""
_LAGS: Final = 0.1
"""How often a replica lags where it might; rarely enough that most writes are of reassignments."""


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


class SyntheticHistory:
    """One cluster that goes its way; `steps` hands on what is written."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self.planted: list[Faulty] = []
        self._random = Random(size.seed)
        self._readings = get_profile(DEFAULT_PROFILE)
        self._cluster = SampleCluster(_BROKERS)
        members = frozenset(range(1, _BROKERS + 1))
        around = Environment(members, members, controller_epoch=self._cluster.epoch)
        self._answers = Answers(self._readings, around)
        self._nowhere = self._answers.place(Partition())
        """Of a partition that is spoilt: nothing is done with it any more."""
        self._topics: dict[str, Topic] = {}
        self._places: dict[PartitionKey, Place] = {}
        self._keys: list[PartitionKey] = []
        self._shaken: deque[PartitionKey] = deque()
        """What the controller has to look at: a broker came or went, or a partition is new."""
        self._behind: deque[PartitionKey] = deque()
        """Where a replica may have to catch up, and no reassignment is in flight."""
        self._flights: list[PartitionKey] = []
        self._waiting: deque[tuple[int, tuple[PartitionKey, ...]]] = deque()
        """Requests in order, and what each names."""
        self._sequence = 0
        self._spoilt: set[PartitionKey] = set()
        self._kinds = dict.fromkeys(
            [d.clause for d in DISTORTIONS] + [a[0] for a in AUTHORSHIPS] + [GARBAGE, JUMP], 0
        )
        """How often each clause was broken."""
        self._due_since = -1
        """The zxid since which a fault is due, -1 while none is."""
        self._begun = self._pause = 0
        """The zxid from which on faults are planted, and how far they are apart."""
        self._patience = _PATIENCE
        self._dead = 0
        acts: tuple[Callable[[], bool], ...] = (
            self._serve_request,
            self._carry_flight,
            self._catch_up,
            self._submit,
            self._lag,
        )
        self._turns = [(*acts[first:], *acts[:first]) for first in range(len(acts))]
        self._next_event = self._event_pause = max(500, 8 * size.partitions)

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

    # What goes right ------------------------------------------------------------------------------

    def _create_topic(self, topic: str, partitions: int) -> None:
        assigned = {number: self._choose_replicas() for number in range(partitions)}
        self._topics[topic] = Topic(assigned)
        data = znodes.encode_topic(assigned)
        self._cluster.append(self._cluster.create(znodes.topic_path(topic), data))
        keys = [(topic, number) for number in assigned]
        for key in keys:
            self._places[key] = self._answers.place(Partition(assigned[key[1]]))
        self._keys += keys
        self._shaken.extend(keys)

    @property
    def _around(self) -> Environment:
        return self._answers.around

    def _pick(self, some: Sequence[Picked]) -> Picked:
        """Return one of these; twice as fast as `Random.choice`, which is what counts here."""
        return some[int(self._random.random() * len(some))]

    def _choose_replicas(self) -> ReplicaList:
        return tuple(self._random.sample(sorted(self._around.live), _REPLICAS))

    def _go_on(self) -> None:
        """Let somebody do something, whoever is in the turn and has something to do."""
        if self._shaken and self._random.random() < 0.9:
            self._calm()
            return
        if self.size.hot and self._random.random() < self.size.hot and self._shake_hot():
            return
        for act in self._pick(self._turns):
            if act():
                return
        if self._dead:
            # Everybody waits for the broker that is gone.
            self._upset()

    def _calm(self) -> None:
        """Let the controller see to a partition that a birth or a death has to do with."""
        key = self._shaken[0]
        owed = self._find_owed(key)
        if owed is None or isinstance(owed.write, DeleteRequest | CreateReassignment):
            self._shaken.popleft()
            self._behind.append(key)
        else:
            self._take(key, owed)

    def _find_owed(self, key: PartitionKey) -> Step | None:
        return self._choose(key, offer_owed)

    def _choose(self, key: PartitionKey, offer: Offer) -> Step | None:
        """Return one of the steps that are offered, if any are."""
        steps = self._answers.ask(self._places[key], offer)
        return self._pick(steps) if len(steps) > 1 else steps[0] if steps else None

    def _serve_request(self) -> bool:
        """Let the controller take the next step with the lowest request."""
        if not self._waiting:
            return False
        _, keys = self._waiting[0]
        for key in keys:
            owed = self._find_owed(key)
            if owed is not None and not isinstance(owed.write, DeleteRequest):
                self._take(key, owed)
                return True
        sequence, keys = self._waiting.popleft()
        for key in keys:
            owed = self._find_owed(key)
            assert owed is not None and isinstance(owed.write, DeleteRequest)
            self._follow(key, owed)
        self._remove_request(sequence)
        return True

    def _pick_flight(self) -> PartitionKey | None:
        return self._pick(self._flights) if self._flights else None

    def _carry_flight(self) -> bool:
        """Let the controller take the next step of a reassignment, or a replica catch up."""
        key = self._pick_flight()
        if key is None:
            return False
        if self._random.random() < _AHEAD and self._act(key, offer_return):
            return True
        owed = self._find_owed(key)
        if owed is None or isinstance(owed.write, DeleteRequest | UpdateReassignment):
            return self._act(key, offer_return)
        self._take(key, owed)
        return True

    def _catch_up(self) -> bool:
        """Let a leader take back a replica, wherever one is behind."""
        while self._behind:
            if self._act(self._behind[0], offer_return):
                return True
            self._behind.popleft()
        return False

    def _act(self, key: PartitionKey, offer: Offer) -> bool:
        """Let a leader take a step, if one is offered."""
        step = self._choose(key, offer)
        if step is not None:
            self._take(key, step)
        return step is not None

    def _lag(self) -> bool:
        """Let a leader take out a replica that lags."""
        if self._random.random() > _LAGS:
            return False
        key = self._pick(self._keys)
        if not self._act(key, offer_lag):
            return False
        self._behind.append(key)
        return True

    def _shake_hot(self) -> bool:
        """Let a replica of the partition that is hot catch up, or else lag."""
        return self._act(self._keys[0], offer_return) or self._act(self._keys[0], offer_lag)

    def _submit(self) -> bool:
        """Let a client ask for a reassignment, or for a change of one."""
        if len(self._flights) >= _MOST_FLIGHTS or len(self._waiting) >= _MOST_WAITING:
            return False
        key = self._pick_flight() if self._random.random() < _CHANGES else None
        topic, number = key or self._pick(self._keys)
        size = 1 if key is not None else self._random.randint(1, _MOST_ASKED)
        there = self._topics[topic].assigned
        numbers = [n for n in range(number, number + size) if n in there]
        keys = tuple((topic, n) for n in numbers if (topic, n) not in self._spoilt)
        if not keys:
            return False
        asked = {each: self._choose_replicas() for each in keys}
        for each, target in asked.items():
            place = self._answers.request(self._places[each], self._sequence, target)
            self._places[each] = place
        data = znodes.encode_request(RequestZnode(asked))
        self._cluster.append(self._cluster.create(znodes.request_path(self._sequence), data))
        self._waiting.append((self._sequence, keys))
        self._sequence += 1
        return True

    def _remove_request(self, sequence: int) -> int:
        path = znodes.request_path(sequence)
        return self._cluster.control(self._cluster.delete(path))

    def _take(self, key: PartitionKey, step: Step) -> None:
        """Make a write that the rules allow."""
        place, write = self._follow(key, step), step.write
        if isinstance(write, ChangeIsr):
            self._cluster.act(place.brokers[write.writer], self._put_state(key, place, write))
        elif isinstance(write, WriteState):
            self._cluster.control(self._put_state(key, place, write))
        else:
            self._log(key, place.spell(write))

    def _put_state(self, key: PartitionKey, place: Place, write: ChangeIsr | WriteState) -> Op:
        return self._cluster.put(znodes.state_path(*key), place.encode(write.state))

    def _follow(self, key: PartitionKey, step: Step) -> Place:
        """Let a partition be where a step leads; answer where it was."""
        place, after = self._places[key], step.after
        assert isinstance(after, Place), f"the model contradicts itself: {step} at {place}"
        self._places[key] = place.follow(after)
        return place

    def _log(
        self, key: PartitionKey, write: Write, *, fenced: bool = True, writer: int | None = None
    ) -> int:
        """Write to a partition, which is already where that leads; answer the zxid."""
        topic, number = self._topics[key[0]], key[1]
        match write:
            case WriteAssigned(assigned):
                topic.assigned[number] = assigned
            case CreateReassignment():
                self._flights.append(key)
                topic.in_flight.add(number)
            case DeleteReassignment():
                self._flights.remove(key)
                topic.in_flight.remove(number)
                self._behind.append(key)
        ops = list_ops(self._cluster, key, write, topic)
        if isinstance(write, ChangeIsr):
            return self._cluster.act(write.writer, *ops)
        return self._cluster.control(*ops, fenced=fenced, writer=writer)

    # What happens to brokers ----------------------------------------------------------------------

    def _upset(self) -> None:
        """Let a broker die or return, or the controller lose its office."""
        self._next_event = self._cluster.zxid + self._event_pause
        live = self._around.live
        if self._dead:
            self._cluster.register(self._dead)
            self._see_live(live | {self._dead})
            self._dead = 0
        elif self._random.random() < 0.3:
            self._cluster.append(self._cluster.delete(znodes.CONTROLLER))
            self._elect()
        else:
            self._dead = self._pick(sorted(live))
            was_controller = self._dead == self._cluster.controller
            self._cluster.kill(self._dead)
            self._see_live(live - {self._dead})
            if was_controller:
                self._elect()

    def _see_live(self, live: frozenset[int]) -> None:
        changed = live ^ self._around.live
        self._answers.see(replace(self._around, live=live))
        for key in self._keys:
            if not changed.isdisjoint(self._topics[key[0]].assigned[key[1]]):
                self._shaken.append(key)

    def _elect(self, *, raised: int = 1) -> int:
        others = sorted(self._around.live - {self._cluster.controller})
        zxid = self._cluster.elect(self._pick(others), raised=raised)
        self._answers.see(replace(self._around, controller_epoch=self._cluster.epoch))
        for key in self._flights:
            self._places[key] = self._answers.fail_over(self._places[key])
        return zxid

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
