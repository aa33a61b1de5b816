"""Tells a witness in which states something was asked of a controller beside reassignments."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from reassure_judge.live_events import ClusterView
from reassure_judge.moments import ACTS, DISTURBED, RESTS, SUCCEEDS
from reassure_judge.monitors import Driven
from reassure_judge.protocols.topics.serving import SERVING, Served
from reassure_judge.rules import Possible
from reassure_model.outcome import Accepted
from reassure_model.partition import Environment, Partition
from reassure_model.protocols.topics import Topic, start_states
from reassure_spec.znodes import PartitionKey


class Seen(NamedTuple):
    """How something stood, and the cluster around it."""

    served: Served
    around: Environment


def see_topic(
    partitions: Iterable[Partition],
    view: ClusterView,
    there: frozenset[int],
    *,
    has_config: bool,
    hears: bool,
    is_finishing: bool,
) -> Seen:
    """Return a topic that is to be deleted, as it stands before anything is done about it."""
    found = tuple(partitions)
    topic = Topic(
        tuple(each.assigned or () for each in found),
        view.live,
        (),
        frozenset(n for n, each in enumerate(found) if each.reassignment is not None),
        is_asked=True,
        waits=True,
        has_config=has_config,
        is_finishing=is_finishing,
    )
    return Seen(Served(start_states(topic), there, hears), Environment(view.live, view.known))


class Notes:
    """What the monitor of one cluster saw, for the witness of its judge, if there is one."""

    def __init__(self, driven: Driven) -> None:
        self._driven: Final = driven
        self._last: Final[dict[str, Seen]] = {}
        """By topic that is to be deleted how it stood when its controller did not act yet."""
        self._led: Final[set[PartitionKey]] = set()
        """The partitions that were to be led otherwise."""

    def look(self, topic: str, seen: Seen, *, begun: bool) -> None:
        """Take note of a topic to be deleted; once its deletion has begun only of its end."""
        last = self._last.get(topic)
        topic_is_gone = seen.served.topic is not None and not seen.served.topic.partitions
        if seen == last or (last is not None and topic_is_gone):
            return
        if begun:
            if self._last.pop(topic, None) is not None:
                self._note(DISTURBED, topic, seen)
            return
        self._last[topic] = seen
        self._note_due(topic, seen)

    def rest(self, topic: str, seen: Seen, *, begun: bool) -> None:
        """Take note that a controller waits that has not begun a deletion."""
        if not begun:
            self._note(RESTS, topic, seen)

    def succeed(self, topic: str, seen: Seen) -> None:
        """Take note that another controller finds a deletion."""
        self._last.pop(topic, None)
        self._note(SUCCEEDS, topic, seen)

    def end(self, topic: str, around: Environment) -> None:
        """Take note that a deletion is through; nothing came between its steps."""
        seen = self._last.pop(topic, None)
        if seen is None:
            return
        for each in _iterate_path(seen, self._driven):
            self._note_due(topic, each)
            seen = each
        self._note(RESTS, topic, Seen(seen.served, around))

    def ask(self, keys: Iterable[PartitionKey], view: ClusterView, around: Environment) -> None:
        """Take note of partitions that are to be led otherwise, those that move left out."""
        for key in keys:
            partition = view.partitions.get(key)
            if partition is not None and _is_still(partition):
                self._led.add(key)
                self._note_due(f"{key[0]}-{key[1]}", Seen(_see(partition), around))

    def answer(self, view: ClusterView, around: Environment) -> None:
        """Take note that whoever asked has an answer."""
        for key in sorted(self._led):
            partition = view.partitions.get(key)
            if partition is not None and _is_still(partition):
                self._note(RESTS, f"{key[0]}-{key[1]}", Seen(_see(partition), around))
        self._led.clear()

    def _note_due(self, name: str, seen: Seen) -> None:
        if SERVING.owed(*seen, self._driven.readings) is not None:
            self._note(ACTS, name, seen)

    def _note(self, kind: str, name: str, seen: Seen) -> None:
        if self._driven.witness is not None:
            place = (self._driven.chroot, f"{name}/served", 0)
            self._driven.witness.note(kind, place, (Possible(seen.served),), seen.around)


def _iterate_path(seen: Seen, driven: Driven) -> Iterator[Seen]:
    """Yield what a right controller makes of a state, step by step."""
    served, around = seen
    while (due := SERVING.owed(served, around, driven.readings)) is not None:
        outcome = SERVING.accept(served, due.write, around, driven.readings)
        assert isinstance(outcome, Accepted)  # it keeps to its own rules
        served = outcome.state
        yield Seen(served, around)


def _is_still(partition: Partition) -> bool:
    there = partition.assigned is not None and partition.state is not None
    return there and partition.reassignment is None


def _see(partition: Partition) -> Served:
    """Return a partition with all epochs alike, as nobody asks for them."""
    assert partition.state is not None
    state = replace(partition.state, leader_epoch=0, controller_epoch=0)
    return Served(partition=Partition(partition.assigned, state))
