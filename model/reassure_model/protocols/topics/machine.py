"""Deletion and growth of a topic as a machine: what may happen and what must never be."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from reassure_model.environment import Controller, Die, Failover, Return
from reassure_model.fields import Domain, Flag, ListOf, SetOf
from reassure_model.machine import (
    CONTROLLER,
    DIE,
    FAILOVER,
    RETURN,
    Act,
    Goal,
    Machine,
    Property,
    Sets,
    always,
    reached,
    read_replicas,
)
from reassure_model.protocols.topics import (
    Answer,
    Ask,
    Complete,
    Grow,
    Reassign,
    Topic,
    find_deleted_while_moved,
    find_orphan_config,
    next_effect,
    step,
)
from reassure_model.protocols.topics.narration import VOCABULARY
from reassure_model.state_machines import ReplicaState
from reassure_spec.words import spell_replicas

FIELDS: Final[Mapping[str, Domain]] = {
    "partitions": ListOf("lists", "partitions"),
    "live": SetOf("brokers"),
    "states": ListOf("replica states", "replicas"),
    "reassigning": SetOf("partitions"),
    "is_asked": Flag(),
    "waits": Flag(),
    "has_config": Flag(),
    "is_finishing": Flag(),
    "may_delete": Flag(),
}

ACTS: Final = (
    Act("delete", Ask, counted="deletions"),
    Act("answer", Answer, "replicas", "broker", saying=lambda key: f"answer broker={key[1]}"),
    Act("grow", Grow, "lists", "assigned", read_replicas, spell_replicas, counted="growths"),
    Act("reassign", Reassign, "partitions", "partition", counted="reassignments"),
    Act("complete", Complete, "partitions", "partition"),
    DIE,
    replace(RETURN, counted=""),
    FAILOVER,
    CONTROLLER,
)

PROPERTIES: Final[tuple[Property[Topic], ...]] = (
    Property(
        "topic.delete.waits-for-reassignment",
        always(find_deleted_while_moved),
        "deleted-while-moved",
    ),
    Property("topic.delete.config-not-left", always(find_orphan_config), "orphan-config"),
)

GOALS: Final[tuple[Goal[Topic], ...]] = (
    Goal("the topic is gone", reached(lambda topic: not topic.partitions)),
)


def list_enabled(topic: Topic, _: Any, sets: Sets) -> Iterator[Any]:
    """Yield every action that is possible."""
    yield Ask()
    yield from (Reassign(partition) for partition in sets.get("partitions", ()))
    yield from (Grow(assigned) for assigned in sets.get("lists", ()))
    yield from (Die(broker) for broker in sorted(topic.live))
    yield from (Return(b) for b in sets.get("brokers", ()) if b not in topic.live)
    yield from (Complete(partition) for partition in sorted(topic.reassigning))
    yield Failover()
    if next_effect(topic) is not None:
        yield Controller()
    started = (key for key, s in topic.states if s is ReplicaState.DELETION_STARTED)
    yield from (Answer(key) for key in started)


def _step(topic: Topic, action: Any, _: Any) -> Any:
    return step(topic, action)


MACHINE: Final = Machine(
    name="topics",
    summary="deletion and growth of a topic, as far as they meet reassignments",
    state=Topic,
    fields=FIELDS,
    acts=ACTS,
    step=_step,
    next_effect=lambda topic, _: next_effect(topic),
    enabled=list_enabled,
    is_at_rest=lambda topic, _: next_effect(topic) is None,
    properties=PROPERTIES,
    goals=GOALS,
    vocabulary=VOCABULARY,
)
