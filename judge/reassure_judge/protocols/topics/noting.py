"""Tells a witness in which states something was asked of a controller beside reassignments."""

from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from reassure_judge.live_events import ClusterView
from reassure_judge.moments import ACTS, DISTURBED, RESTS, SUCCEEDS
from reassure_judge.monitors import Driven
from reassure_judge.protocols.topics.asked_for import SERVING, Served
from reassure_judge.rules import Possible
from reassure_model.outcome import Accepted
from reassure_model.partition import Environment, Partition
from reassure_model.protocols.topics import Topic, start_states
from reassure_model.state_machines import ReplicaState as R
from reassure_spec.znodes import PartitionKey


class SeenAsked(NamedTuple):
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
    is_finishing: bool = False,
    is_asked: bool = True,
) -> SeenAsked:
    """Return a topic, as it stands before anything is done about its deletion."""
    found = tuple(partitions)
    topic = Topic(
        tuple(each.assigned or () for each in found),
        view.live,
        (),
        frozenset(n for n, each in enumerate(found) if each.reassignment is not None),
        is_asked=is_asked,
        waits=is_asked,
        has_config=has_config,
        is_finishing=is_finishing,
    )
    return SeenAsked(Served(start_states(topic), there, hears), Environment(view.live, view.known))


class Notes:
    """What the monitor of one cluster saw, for the witness of its judge, if there is one."""

    def __init__(self, driven: Driven) -> None:
        self._driven: Final = driven
        self._last: Final[dict[str, SeenAsked]] = {}
        """By topic that is to be deleted how it stood when its controller did not act yet."""
        self._led: Final[dict[PartitionKey, Environment]] = {}
        """By partition that was to be led otherwise the cluster around it, with who asked."""

    def look(self, topic: str, seen: SeenAsked, *, begun: bool) -> None:
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

    def rest(self, topic: str, seen: SeenAsked, *, begun: bool) -> None:
        """Take note that a controller waits that has not begun a deletion."""
        if not begun:
            self._note(RESTS, topic, seen)

    def succeed(self, topic: str, seen: SeenAsked, epoch: int) -> None:
        """Take note that another controller finds a deletion, as the one of that epoch left it."""
        self._last.pop(topic, None)
        assert seen.served.topic is not None
        states = dict(seen.served.topic.states)
        for number, broker in states:
            for told in self._driven.heard.list_told((topic, number), broker):
                if told.state is None and told.controller_epoch == epoch:
                    states[number, broker] = R.DELETION_SUCCESSFUL if told.delete else R.OFFLINE
        left = replace(seen.served.topic, states=tuple(states.items()))
        self._note(SUCCEEDS, topic, seen._replace(served=replace(seen.served, topic=left)))

    def end(self, topic: str, around: Environment) -> None:
        """Take note that a deletion is through; nothing came between its steps."""
        seen = self._last.pop(topic, None)
        if seen is None:
            return
        for each in _iterate_path(seen, self._driven):
            self._note_due(topic, each)
            seen = each
        self._note(RESTS, topic, SeenAsked(seen.served, around))

    def ask(self, keys: Iterable[PartitionKey], view: ClusterView, around: Environment) -> None:
        """Take note of partitions that are to be led otherwise, those that move left out."""
        for key in keys:
            partition = view.partitions.get(key)
            if partition is not None and _is_still(partition):
                self._led[key] = around
                self._note_due(f"{key[0]}-{key[1]}", SeenAsked(_see(partition), around))

    def answer(self, view: ClusterView) -> None:
        """Take note that whoever asked has an answer."""
        self._note_led(RESTS, view)
        self._led.clear()

    def succeed_led(self, view: ClusterView) -> None:
        """Take note that another controller finds what is asked for, or is asked again."""
        self._note_led(SUCCEEDS, view)
        for key, around in tuple(self._led.items()):
            self.ask((key,), view, around)

    def _note_led(self, kind: str, view: ClusterView) -> None:
        for key, around in self._led.items():
            partition = view.partitions.get(key)
            if partition is not None and _is_still(partition):
                seen = SeenAsked(_see(partition), replace(around, live=view.live))
                self._note(kind, f"{key[0]}-{key[1]}", seen)

    def idle(self, view: ClusterView, busy: Container[str]) -> None:
        """Take note that a controller rests where nobody asks for anything, of the topics left."""
        around = Environment(view.live, view.known)
        topics: dict[str, list[Partition]] = {}
        for key, partition in sorted(view.partitions.items()):
            if partition.assigned is not None and key[0] not in busy:
                topics.setdefault(key[0], []).append(partition)
                if key not in self._led and _is_still(partition):
                    self._note(RESTS, f"{key[0]}-{key[1]}", SeenAsked(_see(partition), around))
        for topic, partitions in topics.items():
            seen = see_topic(
                partitions, view, view.live, has_config=False, hears=True, is_asked=False
            )
            self._note(RESTS, topic, seen)

    def _note_due(self, name: str, seen: SeenAsked) -> None:
        if SERVING.owed(*seen, self._driven.readings) is not None:
            self._note(ACTS, name, seen)

    def _note(self, kind: str, name: str, seen: SeenAsked) -> None:
        if self._driven.witness is not None:
            place = (self._driven.chroot, f"{name}/served", 0)
            self._driven.witness.note(kind, place, (Possible(seen.served),), seen.around)


def _iterate_path(seen: SeenAsked, driven: Driven) -> Iterator[SeenAsked]:
    """Yield what a right controller makes of a state, step by step."""
    served, around = seen
    while (due := SERVING.owed(served, around, driven.readings)) is not None:
        outcome = SERVING.accept(served, due.write, around, driven.readings)
        assert isinstance(outcome, Accepted)  # it keeps to its own rules
        served = outcome.state
        yield SeenAsked(served, around)


def _is_still(partition: Partition) -> bool:
    there = partition.assigned is not None and partition.state is not None
    return there and partition.reassignment is None


def _see(partition: Partition) -> Served:
    """Return a partition with all epochs alike, as nobody asks for them."""
    assert partition.state is not None
    state = replace(partition.state, leader_epoch=0, controller_epoch=0)
    return Served(partition=Partition(partition.assigned, state))
