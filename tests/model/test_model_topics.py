"""Deletion and growth of topics.

What a single history shows is told by the scenarios.
"""

from functools import partial

import machine_steps as steps
import pytest

from reassure_model.environment import Controller, Die, Failover, NotPossible, Return
from reassure_model.outcome import Rejected
from reassure_model.protocols.topics import (
    Answer,
    Ask,
    Complete,
    Grow,
    Reassign,
    RemoveAsked,
    RemoveConfig,
    RemoveTopic,
    Topic,
    find_hindrance,
    find_orphan_config,
    make_topic,
    next_effect,
    step,
)
from reassure_model.protocols.topics.machine import MACHINE
from reassure_model.state_machines import ReplicaState
from reassure_spec.readings import Readings

BROKERS = frozenset({1, 2, 3})
take = partial(steps.take, MACHINE, readings=Readings())


def run(topic: Topic) -> Topic:
    """Let the controller act, and every replica answer, until nothing happens any more."""
    while True:
        answers = [Answer(k) for k, s in topic.states if s is ReplicaState.DELETION_STARTED]
        if next_effect(topic) is not None:
            topic = take(topic, Controller())
        elif answers:
            topic = take(topic, *answers)
        else:
            return topic


@pytest.mark.clause("topic.delete.all-successful-first", "topic.delete.asked-last")
def test_deletion_ends_with_what_the_client_wrote() -> None:
    """Replicas first, then topic, configuration and request, in this order."""
    topic = take(make_topic(((1, 2),), BROKERS), Ask())
    effects = []
    while (effect := next_effect(topic)) is not None or topic.partitions:
        if effect is None:
            started = [k for k, s in topic.states if s is ReplicaState.DELETION_STARTED]
            topic = take(topic, Answer(started[0]))
            continue
        effects.append(effect)
        topic = take(topic, Controller())
    assert effects[-3:] == [RemoveTopic(), RemoveConfig(), RemoveAsked("deleted")]
    assert not topic.is_asked
    assert find_orphan_config(topic) is None


@pytest.mark.clause("topic.delete.failover-begins-again", "topic.delete.unknown-removed")
@pytest.mark.parametrize("cut", range(9))
def test_failover_never_stops_a_deletion(cut: int) -> None:
    """After a crash behind any effect the topic goes, and its configuration with it."""
    topic = take(make_topic(((1, 2),), BROKERS), Ask())
    for _ in range(cut):
        started = [k for k, s in topic.states if s is ReplicaState.DELETION_STARTED]
        if next_effect(topic) is None and started:
            topic = take(topic, Answer(started[0]))
        elif next_effect(topic) is not None:
            topic = take(topic, Controller())
    topic = run(take(topic, Failover()))
    assert (topic.partitions, topic.is_asked, topic.has_config) == ((), False, False)


@pytest.mark.clause("topic.delete.waits-for-reassignment", "topic.delete.waits-for-brokers")
@pytest.mark.clause("shipped.delete.blocks-reassignment")
def test_deletion_waits_and_blocks() -> None:
    """It waits for a broker that is down, and a new controller for a move; no other move begins."""
    topic = take(make_topic(((1, 2), (2, 3)), BROKERS), Reassign(0), Ask(), Die(3))
    assert next_effect(topic) is None
    assert find_hindrance(topic) == "broker 3 is down"
    topic = take(topic, Failover())
    assert isinstance(step(topic, Reassign(1)), Rejected)
    assert find_hindrance(topic) == "partition 0 is being reassigned"
    topic = take(topic, Complete(0))
    assert find_hindrance(topic) == "broker 3 is down"
    assert run(take(topic, Return(3))).partitions == ()


@pytest.mark.clause("topic.growth.refused-while-reassigning", "topic.growth.refused-while-deleting")
def test_growth_is_refused_while_busy() -> None:
    """A topic grows at rest, not while a partition moves nor while it is to be deleted."""
    topic = make_topic(((1, 2),), BROKERS)
    assert take(topic, Grow((3,))).partitions == ((1, 2), (3,))
    for action in (Reassign(0), Ask()):
        assert isinstance(step(take(topic, action), Grow((3,))), Rejected)


def test_actions_on_nothing_are_not_possible() -> None:
    """A replica that deletes nothing does not answer, and nothing owed is nothing done."""
    topic = make_topic(((1,),), BROKERS)
    for action in (Answer((0, 1)), Controller(), Complete(0), Die(9)):
        with pytest.raises(NotPossible):
            step(topic, action)
