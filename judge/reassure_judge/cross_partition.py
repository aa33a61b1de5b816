"""What a protocol keeps beside its partitions, and how whoever writes it is judged.

A znode that is about many partitions at once (the old znode, a task of healing) cannot be judged
one partition at a time. For a profile that has such znodes the router tells the cluster of every
write to a partition as well (`Copied`), and a tracker follows them all: what ZooKeeper holds of
each partition, and what the protocol keeps beside.

It has a doubt of its own: what was in a znode until lately may be what its reader has in mind
(`Earlier`).
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Any, Generic, NamedTuple, TypeVar

from reassure_judge.history import AssignedWritten, Event, SeenWrite, StateWritten
from reassure_judge.moments import RESTS, SUCCEEDS, Witness
from reassure_judge.verdicts import Location, Tally, Violation
from reassure_model.outcome import Rejected
from reassure_model.partition import Environment, Partition, Reassignment, Request
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import PartitionKey, RequestZnode

NO_KEY: PartitionKey = ("", -1)
"""Stands for the cluster itself."""

Name = TypeVar("Name", bound=Hashable)
Value = TypeVar("Value")


class RecordCopied(NamedTuple):
    """The record of a reassignment was written, or deleted (None)."""

    record: Reassignment | None


class Copied(NamedTuple):
    """What happened to a partition, told to the cluster as well."""

    key: PartitionKey
    event: AssignedWritten | StateWritten | RecordCopied
    noticed_ms: float
    """What was changed up to this time has been noticed by whoever writes now."""


class QueueWritten(NamedTuple):
    """A request was made or changed, or is gone (None); told after what it was is gone."""

    sequence: int
    request: RequestZnode | None
    noticed_ms: float
    """What was changed up to this time has been noticed by whoever writes now."""


class Earlier(Generic[Name, Value]):
    """What there was until lately, by name."""

    def __init__(self) -> None:
        self._values: dict[Name, list[tuple[Value, int]]] = {}

    def note(self, name: Name, value: Value, time_ms: int) -> None:
        """Note that this is what there was up to now."""
        self._values.setdefault(name, []).append((value, time_ms))

    def get(self, name: Name, noticed_ms: float) -> list[Value]:
        """Return what somebody may have in mind who has noticed all up to a time."""
        kept = [each for each in self._values.get(name, ()) if each[1] >= noticed_ms]
        self._values[name] = kept
        return [value for value, _ in kept]

    def has_any(self, noticed_ms: float) -> bool:
        """Whether there was anything else until lately."""
        return any(self.get(name, noticed_ms) for name in self.names())

    def names(self) -> Iterable[Name]:
        """Return the names of all that there was."""
        return tuple(self._values)

    def settle(self) -> None:
        """Note that everything has been noticed."""
        self._values.clear()


class CrossPartitionTracker(ABC):
    """Follows one cluster as a whole."""

    def __init__(self, readings: Readings, tally: Tally) -> None:
        self.readings = readings
        self.tally = tally
        self.partitions: dict[PartitionKey, Partition] = {}
        """What ZooKeeper holds; nothing of what a controller has in mind."""
        self.requests: dict[int, tuple[PartitionKey, ...]] = {}
        """Requests that wait, and the partitions that each names."""
        self.seen: SeenWrite
        """What is judged at the moment."""
        self.shown = ("", "")
        """What it changed, before and after, in words."""
        self.witness: Witness | None = None
        """Who is told of the moments of the cluster (`list_states`)."""
        self.epoch: int | None = None
        self._reported: set[tuple[str, str]] = set()
        """Clause and subject of what was owed at the last rest, and was reported."""
        self._found: list[_Found] = []
        """What the write at hand breaks."""

    def feed(self, seen: SeenWrite) -> None:
        """Judge one observation of the cluster, and take it over."""
        self.seen, self.shown = seen, ("", "")
        self._note_term(seen.chroot, seen.around)
        event = seen.event
        if isinstance(event, Copied):
            before = self.get(event.key)
            after = _copy(before, event.event)
            self.follow(event.key, before, after)
            self.partitions[event.key] = after
        else:
            self.judge(event)
            if isinstance(event, QueueWritten):
                self.take_queue(event)
        self._tell()

    def _note_term(self, chroot: str, around: Environment) -> None:
        if around.controller_epoch != self.epoch is not None:
            self.note(SUCCEEDS, chroot, around)
            self.begin_term()
        self.epoch = around.controller_epoch

    def note(self, kind: str, chroot: str, around: Environment) -> None:
        """Tell the witness of a moment, if there is one and the protocol has any."""
        states = () if self.witness is None else self.list_states()
        if self.witness is not None and states:
            self.witness.note(kind, (chroot, *NO_KEY), states, around)

    def list_states(self) -> tuple[Any, ...]:
        """Return by which states a controller decides what it does beside the partitions."""
        return ()

    def take_queue(self, event: QueueWritten) -> None:
        """Take over what became of a request."""
        for key in self.requests.pop(event.sequence, ()):
            partition = self.get(key)
            left = tuple(r for r in partition.requests if r.sequence != event.sequence)
            self.partitions[key] = replace(partition, requests=left)
        if event.request is not None:
            self.requests[event.sequence] = tuple(event.request.assignments)
            for key, target in event.request.assignments.items():
                made = Request(event.sequence, target, event.request.legacy)
                queue = sorted((*self.get(key).requests, made), key=lambda r: r.sequence)
                self.partitions[key] = replace(self.get(key), requests=tuple(queue))

    def get(self, key: PartitionKey) -> Partition:
        """Return what ZooKeeper holds of a partition."""
        return self.partitions.get(key, Partition())

    @abstractmethod
    def judge(self, event: Event) -> None:
        """Judge a write to what the protocol keeps, or to the request queue, and take it over."""

    @abstractmethod
    def follow(self, key: PartitionKey, before: Partition, after: Partition) -> None:
        """Look at a write to a partition, which is taken over next."""

    def begin_term(self) -> None:  # noqa: B027 - not every tracker has anything in mind
        """Note that another controller acts, who remembers nothing."""

    @abstractmethod
    def find_debts(self, around: Environment) -> list[tuple[PartitionKey, str, Rejected]]:
        """Return what a controller owes that rests: to whom, at which path, and why."""

    def rest(self, chroot: str, zxid: int, around: Environment, time_ms: int) -> None:
        """Judge what must be when the controller has nothing left to do."""
        self._note_term(chroot, around)
        self.note(RESTS, chroot, around)
        debts = self.find_debts(around)
        self._tell()
        for (topic, number), path, owed in debts:
            if (owed.clause, path) not in self._reported:
                place = Location(zxid, chroot, topic, number, path)
                broken = Rejected(owed.clause, f"the controller rests: {owed.reason}")
                self.tally.violations.append(
                    Violation.unwritten(place, broken, "see the clause", time_ms=time_ms)
                )
        self._reported = {(owed.clause, path) for _, path, owed in debts}

    # Verdicts -------------------------------------------------------------------------------------

    def count(self, clauses: Iterable[str]) -> None:
        """Count what was put to the test, and kept."""
        self.tally.count(tuple(clauses))

    def leave_open(self, key: PartitionKey, clause_id: str) -> None:
        """Note that nobody can say whether a clause was kept."""
        self.tally.leave_open(
            (clause_id,), Location(self.seen.zxid, self.seen.chroot, *key, self.seen.path)
        )

    def settle(self, key: PartitionKey, views: Iterable[tuple[str, ...] | Rejected]) -> bool:
        """Take the verdicts on one write in the views that its author may have had.

        The first is how things are; the others are asked for where that does not allow it. What is
        broken in every view is a violation. Answers whether it was allowed as things are.
        """
        others = iter(views)
        first = next(others)
        if not isinstance(first, Rejected):
            self.count(first)
            return True
        if any(not isinstance(view, Rejected) for view in others):
            self.leave_open(key, first.clause)
        else:
            self.violate(key, first)
        return False

    @clause("controller.write.by-controller", "controller.write.epoch-checked")
    def blame(self, key: PartitionKey) -> None:
        """Judge a controller's write by who made it."""
        author = self.seen.author
        self.count(author.tested)
        for clause_id in author.undecided:
            self.leave_open(key, clause_id)
        self._found += [_Found(self.seen, key, b, self.shown, blamed=True) for b in author.broken]

    def violate(self, key: PartitionKey, broken: Rejected) -> None:
        """Note what a write breaks."""
        self._found.append(_Found(self.seen, key, broken, self.shown, blamed=False))

    def _tell(self) -> None:
        """Report what was broken: one violation for each partition, the worst first.

        What somebody writes who may not write at all is one, whatever else is wrong with it.
        """
        while self._found:
            first = next((each for each in self._found if each.blamed), self._found[0])
            mine = [
                each
                for each in self._found
                if each.seen.zxid == first.seen.zxid and (first.blamed or each.key == first.key)
            ]
            self._found = [each for each in self._found if each not in mine]
            besides = dict.fromkeys(each.broken.clause for each in mine)
            besides.pop(first.broken.clause)
            self.tally.violations.append(first.as_violation(tuple(besides)))


class _Found(NamedTuple):
    """One thing that a write breaks."""

    seen: SeenWrite
    key: PartitionKey
    broken: Rejected
    shown: tuple[str, str]
    """What there was before and after."""
    blamed: bool
    """Whether it is broken by who wrote."""

    def as_violation(self, besides: tuple[str, ...]) -> Violation:
        """Return what is reported; `besides` are the clauses that the same write broke as well."""
        topic, partition = self.key
        seen = self.seen._replace(topic=topic, partition=partition)
        return seen.violate(self.broken, *self.shown, besides=besides)


def _copy(partition: Partition, event: AssignedWritten | StateWritten | RecordCopied) -> Partition:
    match event:
        case AssignedWritten(None):
            return Partition(requests=partition.requests)
        case AssignedWritten(assigned):
            return replace(partition, assigned=assigned)
        case StateWritten(state, _):
            return replace(partition, state=state)
        case RecordCopied(record):  # one way: nothing else is copied
            return replace(partition, reassignment=record)
