"""Deletion of a topic: no replica comes to a state but by the tables.

States are few, so that they are chosen by a symbolic number each: every one of them, in every
combination, is one path. Brokers are any integers at all.
"""

# the docstring of a claim is what it claims

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, Final

from reassure_model.environment import Controller, Die, Return
from reassure_model.outcome import Accepted
from reassure_model.protocols import topics
from reassure_model.state_machines import REPLICA_TABLES, ReplicaState
from reassure_proofs.engine.formula import Truth, all_of, implies
from reassure_proofs.engine.statement import (
    TRUTH,
    Claims,
    Hypothesis,
    Parameter,
    Shape,
    Values,
    given,
    ids,
    subject,
    word,
)

_KEYS: Final = ((0, 1), (0, 2))
"""Partition and replica, of two replicas."""
GONE: Final = ReplicaState.NON_EXISTENT


def read_state(code: Any) -> ReplicaState:
    """Return the state of a code; what is no code stands for a replica that does not exist."""
    return next((state for state in ReplicaState if code == state.value), GONE)


def _make_topic(values: Values) -> topics.Topic:
    states = tuple(
        (key, read_state(code)) for key, code in zip(_KEYS, values["codes"], strict=False)
    )
    pairs = zip(states, values["alive"], strict=True)
    live = frozenset(key[1] for (key, _), alive in pairs if alive)
    replicas = tuple(key[1] for key, _ in states)
    return topics.Topic((replicas,), live, states, is_asked=bool(values["asked"]), may_delete=True)


_TOPIC_ACTIONS: Final[Mapping[str, topics.Action]] = {
    "answer": topics.Answer(_KEYS[0]),
    "die": Die(1),
    "return": Return(1),
    "controller": Controller(),
}


def _is_possible(topic: topics.Topic, action: topics.Action) -> bool:
    """Whether the action has something to act upon, be it that the table then refuses it."""
    match action:
        case topics.Answer(key):
            return dict(topic.states)[key] is ReplicaState.DELETION_STARTED
        case Die(broker) | Return(broker):
            return isinstance(action, Die) == (broker in topic.live)
        case _:
            return topics.next_effect(topic) is not None


def _topic_shapes(longest: int) -> Iterator[Shape]:
    for action, replicas in product(_TOPIC_ACTIONS, range(1, min(longest, 2) + 1)):
        yield {
            "action": word(action),
            "codes": ids(replicas),
            "alive": Parameter(replicas, kind="truth"),
            "asked": TRUTH,
        }


def is_legal(profile: str, before: ReplicaState, after: ReplicaState) -> bool:
    """Return whether the table of a profile lets a replica go from one state to another."""
    return before == after or before in REPLICA_TABLES[profile][after]


DEAD_NOT_DELETING: Final = Hypothesis(
    "dead-not-deleting",
    "no replica on a dead broker is being deleted, and none is new or gone",
    lambda v: all_of(
        (code != ReplicaState.NEW.value)
        & (code != GONE.value)
        & (code >= 1)
        & (code <= len(ReplicaState))
        & implies(code == ReplicaState.DELETION_STARTED.value, alive)
        for code, alive in zip(v["codes"], v["alive"], strict=True)
    ),
)
"""What deletion itself keeps: it begins only where all are alive, and who dies has failed."""


@subject(
    "deletion-step",
    "the action",
    _topic_shapes,
    bounded="one partition of 1 to {} replicas in all states",
    shown="this controller deletes no topics",
)
def deletion(values: Values) -> tuple[Any, Any, frozenset[int]]:
    """Return the states of the replicas before and after an action, and who is alive after it.

    The action is on a topic that is being deleted, or not.
    """
    topic = after = _make_topic(values)
    action = _TOPIC_ACTIONS[values["action"]]
    if _is_possible(topic, action):
        outcome = topics.step(topic, action)
        assert isinstance(outcome, Accepted)
        after = outcome.state
    return topic.states, after.states, after.live


THEOREMS: Final = Claims("kafka-zk", largest=2, tier="full")
"""Every theorem about deletion."""
about = THEOREMS.about


@about(deletion, "deletion-moves-by-table", "replica.transition.valid-previous")
@given(DEAD_NOT_DELETING)
def _moves_by_table(_: Values, result: Any) -> Truth:
    """Every action on a topic that is deleted moves its replicas by the table."""
    before, after, _ = result
    known = dict(after)
    return all(is_legal("kafka-zk", old, known.get(key, old)) for key, old in before)


@about(deletion, "deletion-keeps-dead-from-deleting", "replica.transition.valid-previous")
@given(DEAD_NOT_DELETING)
def _none_deleting_on_dead(_: Values, result: Any) -> Truth:
    """No action leaves a replica on a dead broker in the middle of being deleted."""
    _, after, live = result
    odd = (ReplicaState.NEW, GONE)
    return all(
        state not in odd and (state is not ReplicaState.DELETION_STARTED or key[1] in live)
        for key, state in after
    )
