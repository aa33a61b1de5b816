"""Where partitions are, and what the model answers there, asked once of all that are alike.

The model compares the numbers of brokers and adds one to epochs, and nothing else. So a partition
is kept as a *form*, in which brokers are numbered as they are met, epochs are counted from the
partition's own and requests from its lowest, and beside it what these numbers stand for. A question
is put to the model of the form, and its answer holds for every partition that has the form: a long
history asks a few thousand times, not millions.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

from reassure_lab.protocols.kip_236.offers import Offer
from reassure_model.outcome import Rejected
from reassure_model.partition import (
    Environment,
    LeaderAndIsr,
    Partition,
    Reassignment,
    Request,
)
from reassure_model.protocols.kip_236 import apply_failover
from reassure_model.protocols.kip_236.rules import accept_write
from reassure_model.writes import (
    ChangeIsr,
    CreateReassignment,
    CreateState,
    DeleteReassignment,
    DeleteRequest,
    UpdateReassignment,
    Write,
    WriteAssigned,
    WriteState,
)
from reassure_spec.readings import Readings
from reassure_spec.znodes import ReplicaList, write_usual_state

_NOW: Final = 1 << 20
"""What the epochs of a form are: high enough that one below is no special one."""
_FAIL_OVER: Final = ("fail over",)
_MOST_ANSWERS: Final = 50_000
"""How many answers are remembered, some kilobyte each."""


class _Renaming(NamedTuple):
    """Puts numbers in the place of others, wherever they stand in the model's records."""

    broker: Callable[[int], int]
    sequence: Callable[[int], int]
    epoch: int
    """What is added to leader epochs."""
    term: int
    """What is added to controller epochs."""

    def brokers(self, replicas: ReplicaList) -> ReplicaList:
        return tuple(map(self.broker, replicas))

    def state(self, state: LeaderAndIsr) -> LeaderAndIsr:
        return LeaderAndIsr(
            # What is negative is nobody.
            state.leader if state.leader < 0 else self.broker(state.leader),
            state.leader_epoch + self.epoch,
            state.controller_epoch + self.term,
            self.brokers(state.isr),
        )

    def record(self, record: Reassignment) -> Reassignment:
        return Reassignment(self.brokers(record.target), record.top, record.legacy)

    def request(self, request: Request) -> Request:
        return Request(
            self.sequence(request.sequence), self.brokers(request.target), request.legacy
        )

    def partition(self, partition: Partition) -> Partition:
        assigned, state = partition.assigned, partition.state
        flight, taken = partition.reassignment, partition.taken
        return replace(
            partition,
            assigned=None if assigned is None else self.brokers(assigned),
            state=None if state is None else self.state(state),
            reassignment=None if flight is None else self.record(flight),
            requests=tuple(map(self.request, partition.requests)),
            taken=None if taken is None else self.record(taken),
        )

    def write(self, write: Write) -> Write:
        match write:
            case WriteState(state):
                return WriteState(self.state(state))
            case ChangeIsr(state, writer):
                return ChangeIsr(self.state(state), self.broker(writer))
            case WriteAssigned(assigned):
                return WriteAssigned(self.brokers(assigned))
            case CreateReassignment(record):
                return CreateReassignment(self.record(record))
            case UpdateReassignment(record):
                return UpdateReassignment(self.record(record))
            case DeleteReassignment():
                return write
            case DeleteRequest(sequence):
                return DeleteRequest(self.sequence(sequence))
            case CreateState(state):
                return CreateState(self.state(state))


class CanonicalPartition:
    """A partition whose numbers are counted, and what the model answered of it."""

    __slots__ = ("answers", "numbers", "partition")

    def __init__(self, partition: Partition, brokers: int) -> None:
        self.partition = partition
        self.numbers = tuple(range(brokers))
        """Those of its brokers."""
        self.answers: dict[tuple[Any, ...], Any] = {}
        """By what was asked, who is gone, and how much later than the partition's the term is."""


class PlacedPartition(NamedTuple):
    """A form, and what the numbers in it stand for. Equal places are equal partitions."""

    form: CanonicalPartition
    brokers: ReplicaList
    """What the brokers of the form are, in order."""
    sequences: tuple[int, ...]
    """What its requests are, in order."""
    epoch: int
    """What its leader epochs are counted from."""
    term: int
    """What its controller epochs are counted from."""

    def restore(self) -> Partition:
        """Return the partition."""
        return self._name().partition(self.form.partition)

    def spell(self, write: Write) -> Write:
        """Return what a write to the form is to the partition."""
        if isinstance(write, WriteAssigned):
            return WriteAssigned(tuple([self.brokers[number] for number in write.assigned]))
        return self._name().write(write)

    def encode(self, state: LeaderAndIsr) -> bytes:
        """Return how a state of the form is written, which is what is asked for most."""
        brokers, leader = self.brokers, state.leader
        return write_usual_state(
            leader if leader < 0 else brokers[leader],
            state.leader_epoch + self.epoch,
            state.controller_epoch + self.term,
            tuple([brokers[number] for number in state.isr]),
        )

    def follow(self, after: "PlacedPartition") -> "PlacedPartition":
        """Return where the partition is once its form has come to be at a place."""
        brokers, sequences = self.brokers, after.sequences
        if after.brokers != self.form.numbers:
            brokers = tuple([brokers[number] for number in after.brokers])
        if sequences:
            sequences = tuple([self.sequences[number] for number in sequences])
        return PlacedPartition(
            after.form, brokers, sequences, self.epoch + after.epoch, self.term + after.term
        )

    def _name(self) -> _Renaming:
        return _Renaming(
            self.brokers.__getitem__, self.sequences.__getitem__, self.epoch, self.term
        )


class OfferedWrite(NamedTuple):
    """A write that somebody may make, in the numbers of the form."""

    write: Write
    after: PlacedPartition | Rejected
    """Where it leads by the rules."""


class Answers:
    """What the model answers, under some readings and in some surroundings."""

    def __init__(self, readings: Readings, around: Environment) -> None:
        self.readings = readings
        self.around = around
        self._gone = around.known - around.live
        self._forms: dict[Partition, CanonicalPartition] = {}
        self._taught: list[CanonicalPartition] = []
        """The forms of which something was answered."""
        self._learned = 0

    def see(self, around: Environment) -> None:
        """Take note of other brokers that live, or of another term; all else has to stay."""
        self.around = around
        self._gone = around.known - around.live

    def place(self, partition: Partition) -> PlacedPartition:
        """Return where a partition is."""
        return self._place(partition, self.around.controller_epoch)

    def _place(self, partition: Partition, term: int = _NOW) -> PlacedPartition:
        """Return where a partition is, or to where a form has come; `term` is the one that acts."""
        brokers: dict[int, int] = {}
        sequences = tuple(request.sequence for request in partition.requests)
        epoch, state = 0, partition.state
        if state is not None:
            epoch, term = state.leader_epoch - _NOW, state.controller_epoch
        counted = _Renaming(
            lambda broker: brokers.setdefault(broker, len(brokers)),
            sequences.index,
            -epoch,
            _NOW - term,
        ).partition(partition)
        form = self._forms.get(counted)
        if form is None:
            form = self._forms[counted] = CanonicalPartition(counted, len(brokers))
        return PlacedPartition(form, tuple(brokers), sequences, epoch, term - _NOW)

    def ask(self, place: PlacedPartition, offer: Offer) -> tuple[OfferedWrite, ...]:
        """Return which steps are offered at a place."""
        form, brokers, _, _, term = place
        gone: tuple[int, ...] = ()
        if self._gone and not self._gone.isdisjoint(brokers):
            gone = tuple([n for n, broker in enumerate(brokers) if broker in self._gone])
        now = self.around.controller_epoch - term
        key = offer, gone, now
        steps: tuple[OfferedWrite, ...] | None = form.answers.get(key)
        if steps is None:
            numbers = frozenset(form.numbers)
            around = replace(
                self.around, live=numbers.difference(gone), known=numbers, controller_epoch=now
            )
            writes = offer(form.partition, around, self.readings)
            steps = tuple([self._step(form, write, around) for write in writes])
            self._learn(form, key, steps)
        return steps

    def _step(self, form: CanonicalPartition, write: Write, around: Environment) -> OfferedWrite:
        outcome = accept_write(form.partition, write, around, self.readings)
        after = outcome if isinstance(outcome, Rejected) else self._place(outcome.state)
        return OfferedWrite(write, after)

    def request(
        self, place: PlacedPartition, sequence: int, target: ReplicaList
    ) -> PlacedPartition:
        """Return where a partition is for which a client has asked for a target."""
        form = place.form
        brokers = place.brokers + tuple([r for r in target if r not in place.brokers])
        key = tuple(map(brokers.index, target))
        after: PlacedPartition | None = form.answers.get(key)
        if after is None:
            request = Request(len(place.sequences), key)
            requests = (*form.partition.requests, request)
            after = self._place(replace(form.partition, requests=requests))
            self._learn(form, key, after)
        sequences = (*place.sequences, sequence)
        return PlacedPartition(form, brokers, sequences, place.epoch, place.term).follow(after)

    def fail_over(self, place: PlacedPartition) -> PlacedPartition:
        """Return where the next controller finds a partition."""
        form = place.form
        after: PlacedPartition | None = form.answers.get(_FAIL_OVER)
        if after is None:
            after = self._place(apply_failover(form.partition, self.readings))
            self._learn(form, _FAIL_OVER, after)
        return place.follow(after)

    def _learn(self, form: CanonicalPartition, key: tuple[Any, ...], answer: Any) -> None:
        if self._learned >= _MOST_ANSWERS:
            # Begin anew, so that no history however long needs more memory.
            for each in self._taught:
                each.answers.clear()
            self._taught.clear()
            self._forms.clear()
            self._learned = 0
        if not form.answers:
            self._taught.append(form)
        form.answers[key] = answer
        self._learned += 1
