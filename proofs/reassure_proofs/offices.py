"""Controllers and state machines: no epoch is used twice, no state is reached but by the tables.

States are few, so that they are chosen by a symbolic number each: every one of them, in every
combination, is one path. Epochs and brokers are any integers at all.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any, Final

from reassure_model import kafka_42, topics
from reassure_model.controllers import Controllership, accept_election
from reassure_model.environment import Controller, Die, Return
from reassure_model.outcome import Accepted
from reassure_model.state_machines import (
    REPLICA_TABLES,
    ReplicaState,
)
from reassure_proofs.formula import Truth, all_of, implies
from reassure_proofs.statement import (
    Hypothesis,
    Parameter,
    Shape,
    Subject,
    Theorem,
    Values,
    make_subject,
)
from reassure_spec.readings import Readings

_TRUTH: Final = Parameter(kind="truth")
_KEYS: Final = ((0, 1), (0, 2))
"""Partition and replica, of two replicas."""
_GONE: Final = ReplicaState.NON_EXISTENT


def _word(word: str) -> Parameter:
    return Parameter(kind="word", word=word)


# Elections of controllers -----------------------------------------------------------------------


def elect(values: Values) -> tuple[Any, Any]:
    """Return who holds the office after a transaction in what epoch; the same if it is refused."""
    before = Controllership(None, values["epoch"])
    broker = values.get("broker")
    outcome = accept_election(before, broker, values["new_epoch"])
    after = outcome.state if isinstance(outcome, Accepted) else before
    return after.broker, after.epoch


def _office_shapes(_: int) -> Iterator[Shape]:
    epochs = {name: Parameter() for name in ("epoch", "new_epoch", "used")}
    yield epochs
    yield {"broker": Parameter(floor=1), **epochs}


OFFICE: Final = Subject(
    "office", elect, "the election", _office_shapes, bounded="any number of elections"
)
"""One transaction that would make a broker the controller, or change the epoch, or both."""

USED_BEFORE: Final = Hypothesis(
    "used-before",
    "the epoch of an earlier controller is not beyond the last",
    lambda v: v["used"] <= v["epoch"],
)


def _is_new_epoch(values: Values, after: Any) -> Truth:
    """Say that an elected controller has an epoch that nobody had, and that this goes on."""
    broker, epoch = after
    new = True if broker is None else (epoch != values["used"]) & (epoch == values["epoch"] + 1)
    return new & (values["used"] <= epoch) & (values["epoch"] <= epoch)


def _is_election(values: Values, after: Any) -> Truth:
    broker, epoch = after
    if broker is None:
        return epoch == values["epoch"]
    return (epoch == values["epoch"] + 1) & (epoch == values["new_epoch"])


# The actions that move replicas -----------------------------------------------------------------


def _state(code: Any) -> ReplicaState:
    """Return the state of a code; what is no code stands for a replica that does not exist."""
    return next((state for state in ReplicaState if code == state.value), _GONE)


def _make_topic(values: Values) -> topics.Topic:
    states = tuple((key, _state(code)) for key, code in zip(_KEYS, values["codes"], strict=False))
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


def delete(values: Values) -> tuple[Any, Any, frozenset[int]]:
    """Return the states of the replicas before and after an action, and who is alive after it."""
    topic = after = _make_topic(values)
    action = _TOPIC_ACTIONS[values["action"]]
    if _is_possible(topic, action):
        outcome = topics.step(topic, action)
        assert isinstance(outcome, Accepted)
        after = outcome.state
    return topic.states, after.states, after.live


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
            "action": _word(action),
            "codes": Parameter(replicas, floor=1),
            "alive": Parameter(replicas, kind="truth"),
            "asked": _TRUTH,
        }


def move_42(
    values: Values, readings: Readings
) -> tuple[ReplicaState, ReplicaState, tuple[str, ...]]:
    """Return the state of a replica before and after an effect, and what the table refused."""
    before = _state(values["code"])
    effects: Mapping[str, Any] = {
        "start": kafka_42.StartReplica(1),
        "online": kafka_42.MarkOnline((1,)),
        "stop": kafka_42.StopReplica(1),
        "die": Die(1),
    }
    known = ((1, before),) if before is not _GONE else ()
    after, refused = kafka_42.move_replica_states(known, effects[values["effect"]], readings)
    return before, dict(after).get(1, _GONE), refused


def _move_shapes(_: int) -> Iterator[Shape]:
    for effect in ("start", "online", "stop", "die"):
        yield {"effect": _word(effect), "code": Parameter(floor=1)}


def _is_legal(profile: str, before: ReplicaState, after: ReplicaState) -> bool:
    return before == after or before in REPLICA_TABLES[profile][after]


def _moves_by_table(_: Values, result: Any) -> Truth:
    before, after, _ = result
    known = dict(after)
    return all(_is_legal("kafka-zk", old, known.get(key, old)) for key, old in before)


def _none_deleting_on_dead(_: Values, result: Any) -> Truth:
    _, after, live = result
    odd = (ReplicaState.NEW, _GONE)
    return all(
        state not in odd and (state is not ReplicaState.DELETION_STARTED or key[1] in live)
        for key, state in after
    )


def _moves_or_refuses(_: Values, result: Any) -> Truth:
    """Say that a replica moves by the table, through Offline where it stops, or it is said why."""
    before, after, refused = result
    offline = ReplicaState.OFFLINE
    by_offline = _is_legal("kafka-42", before, offline) and _is_legal("kafka-42", offline, after)
    return _is_legal("kafka-42", before, after) or by_offline or len(refused) > 0


DEAD_NOT_DELETING: Final = Hypothesis(
    "dead-not-deleting",
    "no replica on a dead broker is being deleted, and none is new or gone",
    lambda v: all_of(
        (code != ReplicaState.NEW.value)
        & (code != _GONE.value)
        & (code >= 1)
        & (code <= len(ReplicaState))
        & implies(code == ReplicaState.DELETION_STARTED.value, alive)
        for code, alive in zip(v["codes"], v["alive"], strict=True)
    ),
)
"""What deletion itself keeps: it begins only where all are alive, and who dies has failed."""

# Theorems ---------------------------------------------------------------------------------------

DELETED: Final = Subject(
    "deletion-step",
    delete,
    "the action",
    _topic_shapes,
    bounded="one partition of 1 to {} replicas in all states",
)
"""An action on a topic that is being deleted, or not."""
MOVED_42: Final = make_subject(
    "move-replica-states",
    lambda readings: partial(move_42, readings=readings),
    "the effect on the replica's state",
    _move_shapes,
    "kafka-42",
    bounded="one replica in every state",
)
"""An effect of the original reassignment, or a death."""


def _theorem(
    name: str, clause: str, statement: str, subject: Subject, claim: Any, **more: Any
) -> Theorem:
    more = {"hypotheses": (), "profile": "kip-236-amended", "largest": 2, **more}
    return Theorem(
        name=name,
        clause=clause,
        statement=statement,
        subject=subject,
        claim=claim,
        tier="full",
        **more,
    )


OFFICE_THEOREMS: Final[tuple[Theorem, ...]] = (
    _theorem(
        "controller-epoch-is-new",
        "controller.epoch.raised-by-one",
        "Whoever is elected controller has the epoch after the last, which no controller had "
        "before: at most one acts in each.",
        OFFICE,
        _is_new_epoch,
        hypotheses=(USED_BEFORE,),
    ),
    _theorem(
        "controller-epoch-only-with-election",
        "controller.election.atomic",
        "The controller epoch changes with an election only, and then by one.",
        OFFICE,
        _is_election,
    ),
    _theorem(
        "deletion-moves-by-table",
        "replica.transition.valid-previous",
        "Every action on a topic that is deleted moves its replicas by the table.",
        DELETED,
        _moves_by_table,
        hypotheses=(DEAD_NOT_DELETING,),
        profile="kafka-zk",
    ),
    _theorem(
        "deletion-keeps-dead-from-deleting",
        "replica.transition.valid-previous",
        "No action leaves a replica on a dead broker in the middle of being deleted.",
        DELETED,
        _none_deleting_on_dead,
        hypotheses=(DEAD_NOT_DELETING,),
        profile="kafka-zk",
    ),
    _theorem(
        "move-moves-or-refuses",
        "move.replica.states",
        "The effects of the original reassignment move a replica by the table, or the table's "
        "refusal is told.",
        MOVED_42,
        _moves_or_refuses,
        profile="kafka-42",
    ),
)
"""Every theorem about controllers and state machines."""
