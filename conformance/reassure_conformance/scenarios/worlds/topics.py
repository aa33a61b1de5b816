"""World `topics`: one topic that is deleted, grown and reassigned, effect by effect.

`world topics partitions=1,2/2,3 brokers=1,2,3 [off]` makes a healthy topic; `off` switches
deletion off and `partitions=none` makes none. `delete` asks for the deletion, `answer` lets
replicas answer (all, or those of one broker), `grow` adds a partition, `reassign` and `complete`
begin and end the reassignment of one. `step` and `run` let the controller act.
"""

from collections.abc import Callable
from typing import ClassVar

from reassure_conformance.scenarios.worlds import dispatch
from reassure_model.environment import Controller, Die, Failover, NotPossible, Return
from reassure_model.outcome import Rejected
from reassure_model.state_machines import ReplicaState
from reassure_model.topics import (
    Action,
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
    find_hindrance,
    find_orphan_config,
    make_topic,
    next_effect,
    step,
)
from reassure_spec.readings import Readings
from reassure_spec.words import (
    Arguments,
    ScenarioError,
    check_arguments,
    format_replicas,
    parse_number,
    parse_replicas,
)


def _spell(state: ReplicaState) -> str:
    return state.name.lower().replace("_", "-")


def format_effect(effect: Effect) -> str:
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


class DeletionWorld:
    """One topic."""

    name: ClassVar[str] = "topics"

    def __init__(self, profile: str, readings: Readings, arguments: Arguments) -> None:
        check_arguments(arguments, ("partitions", "brokers"), ("off",))
        text, brokers = arguments["partitions"], parse_replicas("", arguments["brokers"])
        lists = () if text == "none" else tuple(parse_replicas("", t) for t in text.split("/"))
        topic = make_topic(lists, frozenset(brokers))
        self._topic: Topic = Topic(
            topic.partitions, topic.live, topic.states, may_delete="off" not in arguments
        )

    def run(self, command: str, arguments: Arguments) -> str:
        """Carry out one command. Raises ScenarioError."""
        handlers = {
            "delete": lambda a: self._take(a, Ask()),
            "answer": self._answer,
            "grow": lambda a: self._take_with(a, "assigned"),
            "reassign": lambda a: self._take_with(a, "partition"),
            "complete": lambda a: self._take_with(a, "completed"),
            "die": lambda a: self._take_with(a, "dead"),
            "return": lambda a: self._take_with(a, "back"),
            "fail-over": lambda a: self._take(a, Failover()),
            "step": self._step,
            "run": self._run,
            "show": self._show,
        }
        try:
            return dispatch(handlers, command, arguments)
        except NotPossible as error:
            raise ScenarioError(str(error)) from error

    def _go(self, action: Action) -> str:
        outcome = step(self._topic, action)
        if isinstance(outcome, Rejected):
            return f"rejected by {outcome.clause}: {outcome.reason}"
        self._topic = outcome.state
        return ""

    def _take(self, arguments: Arguments, action: Action) -> str:
        check_arguments(arguments)
        return self._go(action)

    def _take_with(self, arguments: Arguments, what: str) -> str:
        names = {"assigned": "assigned", "partition": "partition", "completed": "partition"}
        name = names.get(what, "broker")
        check_arguments(arguments, (name,))
        if what == "assigned":
            return self._go(Grow(parse_replicas(name, arguments[name])))
        number = parse_number(name, arguments[name])
        makers: dict[str, Callable[[int], Action]] = {
            "partition": Reassign,
            "completed": Complete,
            "dead": Die,
            "back": Return,
        }
        return self._go(makers[what](number))

    def _answer(self, arguments: Arguments) -> str:
        """Let every replica that deletes its log answer, or those of one broker."""
        check_arguments(arguments, (), ("broker",))
        for key, state in self._topic.states:
            mine = str(key[1]) == arguments.get("broker", str(key[1]))
            if mine and state is ReplicaState.DELETION_STARTED:
                self._go(Answer(key))
        return self._show({})

    def _effect(self) -> str | None:
        effect = next_effect(self._topic)
        if effect is None:
            return None
        self._go(Controller())
        return format_effect(effect)

    def _step(self, arguments: Arguments) -> str:
        check_arguments(arguments, (), ("times",))
        lines = [self._effect() for _ in range(parse_number("", arguments.get("times", "1")))]
        return "\n".join(line or "the controller waits" for line in lines)

    def _run(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        lines: list[str] = []
        while (line := self._effect()) is not None:
            lines.append(line)
        if lines:
            return "\n".join(lines)
        hindrance = find_hindrance(self._topic) if self._topic.is_asked else None
        return "the controller waits" + (f": {hindrance}" if hindrance else "")

    def _show(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        if not self._topic.partitions:
            return f"no topic; {find_orphan_config(self._topic) or 'no configuration is left'}"
        lines = []
        for number, assigned in enumerate(self._topic.partitions):
            states = [f"{r} {_spell(s)}" for (p, r), s in self._topic.states if p == number]
            lines.append(f"{number} {format_replicas(assigned)}: {', '.join(states)}")
        return "\n".join(lines)
