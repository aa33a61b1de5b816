"""A cluster at work, made by the model: everybody does what the rules allow, in random order.

Every write of the controller is one that the model owes (`next_write`), every write of a leader one
that it accepts; clients ask for reassignments and change them in flight, replicas lag and catch up,
brokers die and return, controllers follow one another.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Final, TypeVar

from reassure_lab.archives.sample import SampleCluster
from reassure_lab.protocols.kip_236.canonical import Answers, OfferedWrite, PlacedPartition
from reassure_lab.protocols.kip_236.offers import Offer, offer_lag, offer_owed, offer_return
from reassure_lab.protocols.kip_236.ops import WrittenTopic, list_ops
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
from reassure_spec import znodes
from reassure_spec.profiles import DEFAULT_PROFILE
from reassure_spec.readings import get_profile
from reassure_spec.znodes import PartitionKey, ReplicaList, RequestZnode
from reassure_zookeeper.transactions import Op

Picked = TypeVar("Picked")

_BROKERS: Final = 24
_REPLICAS: Final = 3
_MOST_FLIGHTS: Final = 64
_MOST_WAITING: Final = 3
_MOST_ASKED: Final = 3
_CHANGES: Final = 0.1
"""The share of the requests that change a reassignment in flight."""
_AHEAD: Final = 0.2
"""How often a replica that may catch up in a reassignment does so before the controller goes on."""
_LAGS: Final = 0.1
"""How often a replica lags where it might; rarely enough that most writes are of reassignments."""


class WorkingCluster:
    """A cluster that goes its way, a step at a time."""

    def __init__(self, partitions: int, seed: int, hot: float) -> None:
        """Begin with brokers alone; `hot` is the share of steps on the first partition."""
        self._hot = hot
        self._random = Random(seed)
        self._readings = get_profile(DEFAULT_PROFILE)
        self._cluster = SampleCluster(_BROKERS)
        members = frozenset(range(1, _BROKERS + 1))
        around = Environment(members, members, controller_epoch=self._cluster.epoch)
        self._answers = Answers(self._readings, around)
        self._nowhere = self._answers.place(Partition())
        """Of a partition that is spoilt: nothing is done with it any more."""
        self._topics: dict[str, WrittenTopic] = {}
        self._places: dict[PartitionKey, PlacedPartition] = {}
        self._keys: list[PartitionKey] = []
        self._spoilt: set[PartitionKey] = set()
        self._shaken: deque[PartitionKey] = deque()
        """What the controller has to look at: a broker came or went, or a partition is new."""
        self._behind: deque[PartitionKey] = deque()
        """Where a replica may have to catch up, and no reassignment is in flight."""
        self._flights: list[PartitionKey] = []
        self._waiting: deque[tuple[int, tuple[PartitionKey, ...]]] = deque()
        """Requests in order, and what each names."""
        self._sequence = 0
        self._dead = 0
        acts: tuple[Callable[[], bool], ...] = (
            self._serve_request,
            self._carry_flight,
            self._catch_up,
            self._submit,
            self._lag,
        )
        self._turns = [(*acts[first:], *acts[:first]) for first in range(len(acts))]
        self._next_event = self._event_pause = max(500, 8 * partitions)

    def _create_topic(self, topic: str, partitions: int) -> None:
        assigned = {number: self._choose_replicas() for number in range(partitions)}
        self._topics[topic] = WrittenTopic(assigned)
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
        if self._hot and self._random.random() < self._hot and self._shake_hot():
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

    def _find_owed(self, key: PartitionKey) -> OfferedWrite | None:
        return self._choose(key, offer_owed)

    def _choose(self, key: PartitionKey, offer: Offer) -> OfferedWrite | None:
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

    def _take(self, key: PartitionKey, step: OfferedWrite) -> None:
        """Make a write that the rules allow."""
        place, write = self._follow(key, step), step.write
        if isinstance(write, ChangeIsr):
            self._cluster.act(place.brokers[write.writer], self._put_state(key, place, write))
        elif isinstance(write, WriteState):
            self._cluster.control(self._put_state(key, place, write))
        else:
            self._log(key, place.spell(write))

    def _put_state(
        self, key: PartitionKey, place: PlacedPartition, write: ChangeIsr | WriteState
    ) -> Op:
        return self._cluster.put(znodes.state_path(*key), place.encode(write.state))

    def _follow(self, key: PartitionKey, step: OfferedWrite) -> PlacedPartition:
        """Let a partition be where a step leads; answer where it was."""
        place, after = self._places[key], step.after
        assert isinstance(after, PlacedPartition), (
            f"the model contradicts itself: {step} at {place}"
        )
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
