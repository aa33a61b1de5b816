"""Deletion and growth of a topic, as far as they meet reassignments (shipped controllers).

A client asks for a deletion by `/admin/delete_topics/T`. It waits while a broker that has a replica
is down; then every replica goes offline, is told to delete its log, and answers. When all have
answered the topic's znode goes, then its configuration, then what the client wrote. While a topic
is to be deleted it is neither reassigned nor grown; while a partition is being reassigned its topic
is not grown.

For a reassignment in flight a deletion is meant to wait, and does only where a controller finds
both as it takes office: one that is in office marks a topic as waiting that is not in its list of
deletions yet, which has no effect (finding zk-13).

Replica states (`reassure_model.state_machines`) are in the controller's memory: the next controller
begins again, which changes nothing for logs that are gone.
"""

from dataclasses import dataclass, replace
from typing import Final

from reassure_model.environment import Controller, Die, Failover, NotPossible, Return
from reassure_model.outcome import Accepted, Rejected
from reassure_model.state_machines import ReplicaState, move_replica
from reassure_spec.clauses import checks, clause
from reassure_spec.znodes import ReplicaList

Key = tuple[int, int]
"""Partition number and replica."""
R: Final = ReplicaState
_NONE: Final[frozenset[int]] = frozenset()


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic, its brokers, and what the acting controller remembers of it."""

    partitions: tuple[ReplicaList, ...]
    """Assigned replicas by partition number; empty where there is no such topic."""
    live: frozenset[int]
    states: tuple[tuple[Key, ReplicaState], ...]
    """Replica states, in order of partition and replica."""
    reassigning: frozenset[int] = frozenset()
    """Partitions that are being reassigned."""
    is_asked: bool = False
    """`/admin/delete_topics/T` is there."""
    waits: bool = False
    """The acting controller found the deletion together with a reassignment, which it waits for."""
    has_config: bool = True
    """`/config/topics/T` is there."""
    is_finishing: bool = False
    """The topic's znode is gone by a deletion, and the acting controller has more to remove."""
    may_delete: bool = True
    """`delete.topic.enable`."""


@dataclass(frozen=True, slots=True)
class RemoveAsked:
    """Remove `/admin/delete_topics/T`."""

    why: str


@dataclass(frozen=True, slots=True)
class MoveReplica:
    """Move a replica to another state; DeletionStarted tells it to delete its log."""

    key: Key
    state: ReplicaState


@dataclass(frozen=True, slots=True)
class RemoveTopic:
    """Remove `/brokers/topics/T` and what is below it."""


@dataclass(frozen=True, slots=True)
class RemoveConfig:
    """Remove `/config/topics/T`."""


Effect = RemoveAsked | MoveReplica | RemoveTopic | RemoveConfig


@dataclass(frozen=True, slots=True)
class Ask:
    """A client asks for the deletion."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A replica has deleted its log and says so."""

    key: Key


@dataclass(frozen=True, slots=True)
class Grow:
    """A client adds one partition."""

    assigned: ReplicaList


@dataclass(frozen=True, slots=True)
class Reassign:
    """A client asks for a partition to be reassigned."""

    partition: int


@dataclass(frozen=True, slots=True)
class Complete:
    """The reassignment of a partition is complete."""

    partition: int


Action = Ask | Answer | Grow | Reassign | Complete | Die | Return | Failover | Controller
Outcome = Accepted[Topic] | Rejected


def make_topic(partitions: tuple[ReplicaList, ...], brokers: frozenset[int]) -> Topic:
    """Return a healthy topic on live brokers."""
    return start_states(Topic(partitions, brokers, ()))


@clause("topic.delete.failover-begins-again")
def start_states(topic: Topic) -> Topic:
    """Return the topic with the states that a controller assumes when it takes office."""
    keys = [(p, r) for p, replicas in enumerate(topic.partitions) for r in sorted(replicas)]
    states = tuple((key, R.ONLINE if key[1] in topic.live else R.OFFLINE) for key in keys)
    return replace(topic, states=states)


@clause("topic.delete.failover-begins-again")
def take_office(topic: Topic) -> Topic:
    """Return the topic as the next controller finds it.

    No replica of a topic that is gone has to answer: its deletion is ended.
    """
    gone = topic.is_asked and topic.may_delete and not topic.partitions
    waits = topic.is_asked and bool(topic.reassigning)
    return start_states(replace(topic, is_finishing=gone, waits=waits))


def _set(topic: Topic, key: Key, state: ReplicaState) -> Topic:
    """Move one replica; raises NotPossible where the table has no such transition."""
    table = dict(topic.states)
    outcome = move_replica(table[key], state, "kafka-zk")
    if isinstance(outcome, Rejected):  # uncovered: who asks keeps to the table
        raise NotPossible(f"replica {key}: {outcome.reason}")
    return replace(topic, states=tuple(sorted({**table, key: state}.items(), key=lambda s: s[0])))


@clause("topic.delete.waits-for-reassignment", "topic.delete.waits-for-brokers")
def find_hindrance(topic: Topic) -> str | None:
    """Return why a deletion that was asked for does not begin, None where nothing hinders it."""
    if topic.waits and topic.reassigning:
        return f"partition {min(topic.reassigning)} is being reassigned"
    down = sorted({replica for (_, replica), _ in topic.states} - topic.live)
    return f"broker {down[0]} is down" if down else None


@clause("act.deletion-carried-out")
def next_effect(topic: Topic) -> Effect | None:
    """Return the effect that the controller owes the topic, None while it waits."""
    if not topic.is_asked:
        return None
    return next_for_there(topic) if topic.partitions else next_for_gone(topic)


@clause("topic.delete.unknown-removed", "topic.delete.asked-last")
def next_for_gone(topic: Topic) -> Effect:
    """Return what is owed where there is no such topic, any more or at all."""
    if topic.is_finishing and topic.has_config:
        return RemoveConfig()
    return RemoveAsked("deleted" if topic.is_finishing else "no such topic")


@clause("topic.delete.disabled", "topic.delete.all-successful-first")
@clause("topic.delete.failed-retried-later")
def next_for_there(topic: Topic) -> Effect | None:
    """Return what is owed to a topic that is there, None while it waits."""
    if not topic.may_delete:
        return RemoveAsked("deletion is switched off")
    states = [state for _, state in topic.states]
    if all(state is R.DELETION_SUCCESSFUL for state in states):
        return RemoveTopic()
    offline = next((key for key, s in topic.states if s in (R.ONLINE, R.DELETION_INELIGIBLE)), None)
    # One that failed waits until the others have answered.
    if find_hindrance(topic) or (R.DELETION_STARTED in states and R.DELETION_INELIGIBLE in states):
        return None
    if offline is not None:
        return MoveReplica(offline, R.OFFLINE)
    due = next((key for key, state in topic.states if state is R.OFFLINE), None)
    return None if due is None else MoveReplica(due, R.DELETION_STARTED)


def apply_effect(topic: Topic, effect: Effect) -> Topic:
    """Return the topic after an effect of the controller."""
    match effect:
        case RemoveAsked():
            return replace(topic, is_asked=False, is_finishing=False)
        case MoveReplica(key, state):
            return _set(topic, key, state)
        case RemoveTopic():
            return replace(topic, partitions=(), states=(), reassigning=_NONE, is_finishing=True)
        case RemoveConfig():  # one way: there is no other effect
            return replace(topic, has_config=False)


@checks
def grow(topic: Topic, assigned: ReplicaList) -> Outcome:
    """Add a partition, or say why not."""
    if topic.is_asked:
        return Rejected("topic.growth.refused-while-deleting", "the topic is to be deleted")
    if topic.reassigning:
        return Rejected("topic.growth.refused-while-reassigning", "REASSIGNMENT_IN_PROGRESS")
    added = tuple(((len(topic.partitions), r), R.ONLINE) for r in sorted(assigned))
    partitions = (*topic.partitions, assigned)
    return Accepted(replace(topic, partitions=partitions, states=(*topic.states, *added)))


@checks
def reassign(topic: Topic, partition: int) -> Outcome:
    """Begin to reassign a partition, or say why not."""
    if topic.is_asked or partition >= len(topic.partitions):
        return Rejected("shipped.delete.blocks-reassignment", "UNKNOWN_TOPIC_OR_PARTITION")
    return Accepted(replace(topic, reassigning=topic.reassigning | {partition}))


def _change_broker(topic: Topic, action: Die | Return) -> Topic:
    """Return the topic after a death or a start; a deletion under way on the broker has failed."""
    died = isinstance(action, Die)
    after = replace(
        topic, live=topic.live - {action.broker} if died else topic.live | {action.broker}
    )
    for key, state in topic.states:
        if key[1] != action.broker or state is R.DELETION_SUCCESSFUL:
            continue
        failed = died and state is R.DELETION_STARTED
        down = R.DELETION_INELIGIBLE if failed else R.OFFLINE
        after = _set(after, key, down if died else R.ONLINE)
    return after


def step(topic: Topic, action: Action) -> Outcome:
    """Take one action.

    Rejected is the answer to a client. Raises NotPossible for an action that has nothing to act
    upon.
    """
    match action:
        case Ask():
            return Accepted(replace(topic, is_asked=True))
        case Answer(key) if dict(topic.states).get(key) is R.DELETION_STARTED:
            return Accepted(_set(topic, key, R.DELETION_SUCCESSFUL))
        case Grow(assigned):
            return grow(topic, assigned)
        case Reassign(partition):
            return reassign(topic, partition)
        case Complete(partition) if partition in topic.reassigning:
            left = topic.reassigning - {partition}
            return Accepted(replace(topic, reassigning=left, waits=False))
        case Die(broker) | Return(broker) if isinstance(action, Die) == (broker in topic.live):
            return Accepted(_change_broker(topic, action))
        case Failover():
            return Accepted(take_office(topic))
        case Controller():
            effect = next_effect(topic)
            if effect is not None:
                return Accepted(apply_effect(topic, effect), effects=(effect,))
    raise NotPossible(f"{action} is not possible in {topic}")


@clause("topic.delete.waits-for-reassignment")
def find_deleted_while_moved(topic: Topic) -> str | None:
    """Say so when a replica deletes its log while a partition is moved (finding zk-13)."""
    if not topic.reassigning or all(state is not R.DELETION_STARTED for _, state in topic.states):
        return None
    return f"partition {min(topic.reassigning)} is being reassigned while the topic is deleted"


@clause("topic.delete.config-not-left")
def find_orphan_config(topic: Topic) -> str | None:
    """Say so when the configuration outlives its topic and nobody will remove it (finding zk-8)."""
    left = topic.has_config and not topic.partitions and not topic.is_asked
    return "the configuration of a topic that is gone" if left else None
