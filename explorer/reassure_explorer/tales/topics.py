"""What readers take for granted of the deletion of topics, and the stories that break it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from reassure_explorer.tales import Meeting, SmallWorld, Tale, say
from reassure_model import topics
from reassure_model.environment import Controller, Die, Failover, Return
from reassure_model.outcome import Accepted
from reassure_model.state_machines import ReplicaState
from reassure_model.topics import Answer, Ask, Complete, Grow, Reassign, Topic
from reassure_spec.readings import Readings
from reassure_spec.words import spell_replicas


def _nothing_else(_: Topic) -> Iterable[Any]:
    return ()


def follow(
    topic: Topic, list_others: Callable[[Topic], Iterable[Any]] = _nothing_else
) -> Iterator[tuple[Any, Topic]]:
    """Yield what may happen: a deletion is asked for and carried out, and what else there is."""
    started = (key for key, state in topic.states if state is ReplicaState.DELETION_STARTED)
    due = [Controller()] if topics.next_effect(topic) is not None else []
    for action in (Ask(), *list_others(topic), Failover(), *due, *map(Answer, started)):
        outcome = topics.step(topic, action)
        if isinstance(outcome, Accepted):
            yield action, outcome.state


def _say(action: Any) -> str:
    match action:
        case Grow(assigned):
            return f"grow assigned={spell_replicas(assigned)}"
        case Reassign(partition):
            return f"reassign partition={partition}"
        case Complete(partition):
            return f"complete completed={partition}"
        case Die(broker):
            return f"die dead={broker}"
        case Return(broker):
            return f"return back={broker}"
    return {Ask: "delete", Answer: "answer"}.get(type(action)) or say(action)


def _make(_: Readings, called: str) -> SmallWorld:
    return SmallWorld(
        replace(topics.make_topic((), frozenset({1})), is_asked=True),
        follow,
        {called: topics.find_orphan_config},
        {Ask: 1, Failover: 1},
        _say,
        ("world topics partitions=none brokers=1", "delete"),
    )


TALES: Final = (
    Tale(
        "story-configuration-goes-with-topic",
        "topic.delete.config-not-left",
        "Who deletes a name deletes its configuration, whether there is a topic or not.",
        "zk-8",
        1,
        "kafka-zk",
        _make,
    ),
)


# A deletion while partitions are moved ----------------------------------------------------------


def _list_others(topic: Topic) -> Iterator[Any]:
    yield Reassign(0)
    yield Grow((2,))
    yield from map(Die, sorted(topic.live))
    yield from map(Return, sorted({1, 2} - topic.live))
    yield from map(Complete, sorted(topic.reassigning))


def _find_deleted_while_moved(topic: Topic) -> str | None:
    """Say so when a replica deletes its log, or the topic is gone, while a partition is moved."""
    if not topic.reassigning:
        return None
    started = [key for key, state in topic.states if state is ReplicaState.DELETION_STARTED]
    if started or not topic.partitions:
        return f"partition {min(topic.reassigning)} is being reassigned while the topic is deleted"
    return None


def _meet(_: Readings) -> SmallWorld:
    return SmallWorld(
        topics.make_topic(((1,),), frozenset({1, 2})),
        partial(follow, list_others=_list_others),
        {
            "topic.delete.waits-for-reassignment": _find_deleted_while_moved,
            "topic.delete.config-not-left": topics.find_orphan_config,
        },
        {Ask: 1, Reassign: 1, Grow: 1, Die: 1, Failover: 1},
        _say,
        ("world topics partitions=1 brokers=1,2",),
    )


MEETINGS: Final = (
    Meeting(
        "meeting-of-deletion",
        "deletion, reassignment and growth of a topic on one of two brokers; each asked for once, "
        "one death, one failover",
        "kafka-zk",
        _meet,
    ),
)
