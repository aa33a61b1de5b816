"""How deletion, growth and preferred leaders are told."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from reassure_model.narration import Vocabulary, parse_set
from reassure_model.protocols import topics
from reassure_model.state_machines import ReplicaState
from reassure_spec.words import (
    Arguments,
    check_arguments,
    format_replicas,
    parse_replicas,
    spell_replicas,
)


def _open(arguments: Arguments) -> topics.Topic:
    check_arguments(arguments, ("partitions", "brokers"), ("off",))
    text, brokers = arguments["partitions"], parse_set(arguments, "brokers")
    lists = () if text == "none" else tuple(parse_replicas("", t) for t in text.split("/"))
    return replace(topics.make_topic(lists, brokers), may_delete="off" not in arguments)


def _say_opening(topic: topics.Topic) -> tuple[str, ...]:
    lists = "/".join(map(spell_replicas, topic.partitions)) or "none"
    return (f"world topics partitions={lists} brokers={spell_replicas(sorted(topic.live))}",)


def _spell(state: ReplicaState) -> str:
    return state.name.lower().replace("_", "-")


def say_effect(effect: topics.Effect, _: topics.Topic, __: topics.Topic) -> str:
    """Return an effect as scenarios show it."""
    match effect:
        case topics.RemoveAsked(why):
            return f"request for deletion removed: {why}"
        case topics.MoveReplica((partition, replica), state):
            return f"replica {replica} of {partition}: {_spell(state)}"
        case topics.RemoveTopic():
            return "topic removed"
        case topics.RemoveConfig():  # one way: there is no other effect
            return "configuration removed"


def show(topic: topics.Topic) -> str:
    """Return the partitions with the states of their replicas, a line each."""
    if not topic.partitions:
        return f"no topic; {topics.find_orphan_config(topic) or 'no configuration is left'}"
    lines = []
    for number, assigned in enumerate(topic.partitions):
        states = [f"{r} {_spell(s)}" for (p, r), s in topic.states if p == number]
        lines.append(f"{number} {format_replicas(assigned)}: {', '.join(states)}")
    return "\n".join(lines)


def _answer(states: Mapping[str, topics.Topic], arguments: Arguments) -> Iterator[tuple[str, Any]]:
    """Let every replica that deletes its log answer, or those of one broker."""
    check_arguments(arguments, (), ("broker",))
    for name, topic in states.items():
        for key, state in topic.states:
            mine = str(key[1]) == arguments.get("broker", str(key[1]))
            if mine and state is ReplicaState.DELETION_STARTED:
                yield name, topics.Answer(key)


def _say_why(topic: topics.Topic) -> str:
    return (topics.find_hindrance(topic) or "") if topic.is_asked else ""


VOCABULARY: Final = Vocabulary(
    opening=_open,
    say_opening=_say_opening,
    show=show,
    say_effect=say_effect,
    commands={"answer": _answer},
    shows=("answer",),
    waits=_say_why,
)
