"""What is asked of a controller beside reassignments, state by state.

The monitor follows a history. Here stands what it asks of one state, and what a right controller
does there: it deletes a topic, elects a preferred leader, hands over what a broker leads that
stops. So it can be said of other controllers as well what they would have done wrong.
"""

from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from reassure_model.machine import Judgement
from reassure_model.outcome import Accepted, Checks, Rejected, judge
from reassure_model.partition import Environment, LeaderAndIsr, Partition
from reassure_model.protocols.topics import (
    Effect,
    MoveReplica,
    RemoveAsked,
    RemoveConfig,
    RemoveTopic,
    Topic,
    apply_effect,
    next_effect,
    take_office,
)
from reassure_model.selectors import Elected, select_controlled_shutdown, select_preferred
from reassure_model.state_machines import ReplicaState
from reassure_spec.readings import Readings

WAITS_FOR_MOVES: Final = "topic.delete.waits-for-reassignment"
WAITS_FOR_BROKERS: Final = "topic.delete.waits-for-brokers"
ANSWERED: Final = "topic.delete.all-successful-first"
LAST: Final = "topic.delete.asked-last"
NO_SETTINGS_LEFT: Final = "topic.delete.config-not-left"
UNKNOWN: Final = "topic.delete.unknown-removed"
DELETED: Final = "act.deletion-carried-out"
PREFERRED_HELD: Final = "act.preferred-election-held"
HANDED_OVER: Final = "act.shutdown-handed-over"


@dataclass(frozen=True, slots=True)
class Served:
    """A topic that may have to be deleted, or a partition that may have to be led otherwise."""

    topic: Topic | None = None
    there: frozenset[int] = frozenset()
    """The brokers that were registered at some time since somebody asked for the deletion."""
    hears: bool = True
    """Whether what brokers receive is judged."""
    partition: Partition | None = None


class DueAct(NamedTuple):
    """What a controller has to do next."""

    write: Effect | Elected
    clause: str = ""
    """The clause that it breaks by a rest instead, "" where nobody said so yet."""


# What a right controller does ---------------------------------------------------------------------


def find_due(served: Served, around: Environment, readings: Readings) -> DueAct | None:
    """Return what a right controller does next, None where it is through or waits."""
    if served.topic is not None:
        effect = next_effect(served.topic)
        return None if effect is None else DueAct(effect)
    assert served.partition is not None
    elected = find_elected(served.partition, around)
    return None if elected is None else DueAct(elected)


def find_elected(partition: Partition, around: Environment) -> Elected | None:
    """Return who is to lead a partition from here on, and who is in sync by then."""
    state, assigned = partition.state, partition.assigned
    assert state is not None and assigned is not None
    if around.stopping.intersection(state.isr):
        if state.leader in around.stopping:
            return select_controlled_shutdown(assigned, state.isr, around.live, around.stopping)
        return Elected(state.leader, tuple(r for r in state.isr if r not in around.stopping))
    if not around.preferred_asked:
        return None
    elected = select_preferred(assigned, state.isr, around.live)
    return None if elected is None or elected.leader == state.leader else elected


def take_over(served: Served, readings: Readings) -> Served:
    """Return what the next controller finds."""
    return served if served.topic is None else replace(served, topic=take_office(served.topic))


# What is judged -----------------------------------------------------------------------------------


def is_to_lead(partition: Partition, live: frozenset[int]) -> bool:
    """Whether the preferred leader of a partition does not lead and could."""
    if partition.state is None or partition.completing:
        return False
    elected = select_preferred(partition.assigned or (), partition.state.isr, live)
    return elected is not None and elected.leader != partition.state.leader


def is_to_leave(
    partition: Partition, broker: int, live: frozenset[int], stopping: frozenset[int]
) -> bool:
    """Whether a broker that stops still has to hand a partition over, or to leave it."""
    if partition.state is None:
        return False
    state, assigned = partition.state, partition.assigned or ()
    if broker not in state.isr or broker not in assigned or len(assigned) < 2:
        return False
    if state.leader != broker:
        return state.isr != (broker,)
    return select_controlled_shutdown(assigned, state.isr, live, stopping) is not None


def accept(
    served: Served, write: Effect | Elected, around: Environment, readings: Readings
) -> Accepted[Served] | Rejected:
    """Judge a step of a deletion; of an election only what it leads to is said here."""
    if isinstance(write, Elected):
        assert served.partition is not None and served.partition.state is not None
        state = LeaderAndIsr(write.leader, 0, 0, write.isr)
        return Accepted(replace(served, partition=replace(served.partition, state=state)))
    assert served.topic is not None
    judged = judge(_check(served, served.topic, write))
    if isinstance(judged, Rejected):
        return judged
    return Accepted(replace(served, topic=_follow(served.topic, write)), judged)


def _check(served: Served, topic: Topic, effect: Effect) -> Checks:
    match effect:
        case MoveReplica() if served.hears and not has_begun(topic):
            yield from _check_waits(served, topic)
        case RemoveTopic():
            yield "topic.removed-when-asked", topic.is_asked or "nobody asked for it"
            yield from _check_waits(served, topic)
            told = all(state is ReplicaState.DELETION_SUCCESSFUL for _, state in topic.states)
            yield ANSWERED, not served.hears or told or "not all were told to delete their logs"
        case RemoveConfig():
            yield "topic.settings-kept", not topic.partitions or "the topic is there still"
        case RemoveAsked():
            yield LAST, not topic.partitions or "the topic is there still"
            yield NO_SETTINGS_LEFT, not topic.has_config or "its settings are there still"


def _check_waits(served: Served, topic: Topic) -> Checks:
    yield WAITS_FOR_MOVES, not topic.reassigning or "a partition was being reassigned"
    away = {replica for (_, replica), _ in topic.states} - served.there
    yield WAITS_FOR_BROKERS, not away or f"brokers {sorted(away)} were down"


def has_begun(topic: Topic) -> bool:
    """Whether the acting controller has told a replica that runs to stop."""
    return any(
        state is ReplicaState.DELETION_SUCCESSFUL
        or (state is ReplicaState.OFFLINE and replica in topic.live)
        for (_, replica), state in topic.states
    )


def _follow(topic: Topic, effect: Effect) -> Topic:
    """Return the topic after a step of its deletion; whoever is there answers at once."""
    if not isinstance(effect, MoveReplica):
        return apply_effect(topic, effect)
    state = effect.state
    if state is ReplicaState.DELETION_STARTED:
        there = effect.key[1] in topic.live
        state = ReplicaState.DELETION_SUCCESSFUL if there else ReplicaState.DELETION_INELIGIBLE
    return replace(topic, states=tuple(sorted({**dict(topic.states), effect.key: state}.items())))


def find_debt(served: Served, around: Environment, readings: Readings) -> DueAct | None:
    """Return what is held against a controller that rests."""
    clause_id = ""
    topic, partition = served.topic, served.partition
    if topic is not None and topic.is_asked:
        if not topic.partitions:
            clause_id = DELETED if topic.is_finishing else UNKNOWN
        elif not topic.reassigning and {r for (_, r), _ in topic.states} <= around.live:
            clause_id = DELETED
    if partition is not None:
        stopping = around.stopping
        if any(is_to_leave(partition, each, around.live, stopping) for each in stopping):
            clause_id = HANDED_OVER
        elif around.preferred_asked and is_to_lead(partition, around.live):
            clause_id = PREFERRED_HELD
    due = find_due(served, around, readings) if clause_id else None
    return None if due is None else DueAct(due.write, clause_id)


SERVING: Final[Judgement[Served, Any]] = Judgement(
    Served(), accept, take_over, find_due, mind=("topic",)
)
