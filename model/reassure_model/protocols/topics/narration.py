"""How deletion, growth and preferred leaders are told."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from reassure_model.narration import Vocabulary, parse_set
from reassure_model.protocols.topics import (
    Answer,
    Effect,
    MoveReplica,
    RemoveAsked,
    RemoveConfig,
    RemoveTopic,
    Topic,
    find_hindrance,
    find_orphan_config,
    make_topic,
)
from reassure_model.state_machines import ReplicaState
from reassure_spec.words import (
    Arguments,
    check_arguments,
    format_replicas,
    parse_replicas,
    spell_replicas,
)


def _open(arguments: Arguments) -> Topic:
    check_arguments(arguments, ("partitions", "brokers"), ("off",))
    text, brokers = arguments["partitions"], parse_set(arguments, "brokers")
    lists = () if text == "none" else tuple(parse_replicas("", t) for t in text.split("/"))
    return replace(make_topic(lists, brokers), may_delete="off" not in arguments)


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
