"""Deletion and growth of a topic as a machine: what may happen, and how it is told."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from reassure_model.environment import Controller, Die, Failover, Return
from reassure_model.machine import (
    CONTROLLER,
    DIE,
    FAILOVER,
    RETURN,
    Act,
    Domain,
    Flag,
    Goal,
    ListOf,
    Machine,
    Property,
    SetOf,
    Sets,
    Vocabulary,
    always,
    reached,
    read_replicas,
)
from reassure_model.protocols.topics import (
    Answer,
    Ask,
    Complete,
    Effect,
    Grow,
    MoveReplica,
    Reassign,
    RemoveAsked,
    RemoveConfig,
    RemoveTopic,
    Topic,
    find_deleted_while_moved,
    find_hindrance,
    find_orphan_config,
    make_topic,
    next_effect,
    step,
)
from reassure_model.state_machines import ReplicaState
from reassure_spec.words import (
    Arguments,
    check_arguments,
    format_replicas,
    parse_replicas,
    spell_replicas,
)

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
    Act(
        "grow",
        Grow,
        "lists",
        "assigned",
        read_replicas,
        spell_replicas,
        counted="growths",
    ),
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
    Property(
        "topic.delete.config-not-left",
        always(find_orphan_config),
        "orphan-config",
    ),
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


# Words ------------------------------------------------------------------------------------------


def _open(arguments: Arguments) -> Topic:
    check_arguments(arguments, ("partitions", "brokers"), ("off",))
    text, brokers = arguments["partitions"], parse_replicas("brokers", arguments["brokers"])
    lists = () if text == "none" else tuple(parse_replicas("", t) for t in text.split("/"))
    return replace(make_topic(lists, frozenset(brokers)), may_delete="off" not in arguments)


def _say_opening(topic: Topic) -> tuple[str, ...]:
    lists = "/".join(map(spell_replicas, topic.partitions)) or "none"
    return (f"world topics partitions={lists} brokers={spell_replicas(sorted(topic.live))}",)


def _spell(state: ReplicaState) -> str:
    return state.name.lower().replace("_", "-")


def say_effect(effect: Effect, _: Topic, __: Topic) -> str:
    """Return an effect as scenarios show it."""
    match effect:
        case RemoveAsked(why):
            return f"request for deletion removed: {why}"
        case MoveReplica((partition, replica), state):
            return f"replica {replica} of {partition}: {_spell(state)}"
        case RemoveTopic():
            return "topic removed"
        case RemoveConfig():
            return "configuration removed"


def show(topic: Topic) -> str:
    """Return the partitions with the states of their replicas, a line each."""
    if not topic.partitions:
        return f"no topic; {find_orphan_config(topic) or 'no configuration is left'}"
    lines = []
    for number, assigned in enumerate(topic.partitions):
        states = [f"{r} {_spell(s)}" for (p, r), s in topic.states if p == number]
        lines.append(f"{number} {format_replicas(assigned)}: {', '.join(states)}")
    return "\n".join(lines)


def _answer(topics: Mapping[str, Topic], arguments: Arguments) -> Iterator[tuple[str, Any]]:
    """Let every replica that deletes its log answer, or those of one broker."""
    check_arguments(arguments, (), ("broker",))
    for name, topic in topics.items():
        for key, state in topic.states:
            mine = str(key[1]) == arguments.get("broker", str(key[1]))
            if mine and state is ReplicaState.DELETION_STARTED:
                yield name, Answer(key)


def _say_why(topic: Topic) -> str:
    return (find_hindrance(topic) or "") if topic.is_asked else ""


VOCABULARY: Final = Vocabulary(
    opening=_open,
    say_opening=_say_opening,
    show=show,
    say_effect=say_effect,
    commands={"answer": _answer},
    shows=("answer",),
    waits=_say_why,
)


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
