"""The world of a machine: its acts are the commands, and its vocabulary says what they answer.

    world NAME assigned=1,2 brokers=1,2,3          the opening, as the vocabulary reads it

Each act is a command with its parameter as an argument; several brokers at once are an action each.
`step` lets the controller carry out effects one by one and `run` all it can. `show` shows the
state, `problems` names what must never be and is, and `shortest` searches for the shortest story to
a problem or a goal within numbers of what is counted, such as `deaths=1`. Where the protocol is
about one partition a world may have several (`adds`): what is shared happens to all of them, the
rest to the one that `partition` names.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from reassure_conformance.scenarios.worlds import Handler, dispatch, run_to_rest
from reassure_explorer.scopes.machine import search
from reassure_model.environment import Controller, Die, Failover, NotPossible
from reassure_model.machine import ONLY, Act, Machine, Property
from reassure_model.outcome import Rejected
from reassure_spec.readings import Readings
from reassure_spec.words import (
    Arguments,
    ScenarioError,
    check_arguments,
    parse_number,
    parse_replicas,
)

LIMIT: Final = 60
"""Effects after which `run` gives up: no plan is that long."""


class MachineWorld:
    """The partitions of a machine, by name."""

    def __init__(
        self, machine: Machine[Any], profile: str, readings: Readings, arguments: Arguments
    ) -> None:
        if machine.settle is not None:
            machine = machine.settle(arguments, readings)
        self._machine: Final = machine
        self._words: Final = machine.vocabulary
        self._readings: Final = readings
        self._blank = self._words.opening(arguments)
        self._states: dict[str, Any] = {} if self._words.adds else {ONLY: self._blank}
        remember = self._words.remember
        self._memory = None if remember is None else remember(self._blank)
        self._handlers: Final = self._list_handlers()

    def run(self, command: str, arguments: Arguments) -> str:
        """Carry out one command. Raises ScenarioError."""
        try:
            return dispatch(self._handlers, command, arguments)
        except NotPossible as error:
            raise ScenarioError(str(error)) from error

    def _list_handlers(self) -> Mapping[str, Handler]:
        words = self._words
        acts = (act for act in self._machine.acts if act.kind is not Controller)
        takers: dict[str, Callable[[Arguments], Iterable[tuple[str, Any]]]] = {
            act.verb: partial(self._read, act) for act in acts
        }
        for name, command in words.commands.items():
            takers[name] = partial(self._ask, command)
        handlers: dict[str, Handler] = {
            "step": self._step,
            "run": self._run,
            "show": self._show,
            "problems": self._show_problems,
            "shortest": self._search,
        }
        handlers |= {name: partial(self._take, name, take) for name, take in takers.items()}
        handlers |= {name: partial(self._add, make) for name, make in words.adds.items()}
        handlers |= {n: partial(self._change, n, make) for n, make in words.changes.items()}
        handlers |= {name: partial(self._answer, ask) for name, ask in words.questions.items()}
        if words.recall is not None:
            handlers["replicas"] = self._show_memory
        return handlers

    # -- partitions

    def _get(self, arguments: Arguments) -> str:
        name = arguments.get("partition", ONLY) if self._words.adds else ONLY
        if name not in self._states:
            raise ScenarioError(f"no partition {name!r}; there are: {', '.join(self._states)}")
        return name

    def _mark(self, name: str, line: str) -> str:
        return f"{name}: {line}" if len(self._states) > 1 else line

    def _optional(self) -> tuple[str, ...]:
        return ("partition",) if self._words.adds else ()

    def _add(self, make: Callable[[Any, str, str], Any], arguments: Arguments) -> str:
        for name, text in arguments.items():
            self._states[name] = make(self._blank, name, text)
        return self._show({})

    def _change(
        self, command: str, make: Callable[[Any, Arguments], Any], arguments: Arguments
    ) -> str:
        name = self._get({})
        self._states[name] = make(self._states[name], arguments)
        return (self._effect(name) or "") if command in self._words.wakes else ""

    def _answer(self, ask: Callable[[Any, Arguments], str], arguments: Arguments) -> str:
        return ask(self._states.get(ONLY, self._blank), arguments)

    # -- what happens

    def _read(self, act: Act, arguments: Arguments) -> Iterable[tuple[str, Any]]:
        """Return the actions that a command of an act asks for, each with its partition."""
        taken = (act.argument,) if act.over else ()
        check_arguments(arguments, taken, () if act.shared else self._optional())
        parameters = act.read(act.argument, arguments[act.argument]) if act.over else (None,)
        names = tuple(self._states) if act.shared else (self._get(arguments),)
        return [(name, act.make(parameter)) for parameter in parameters for name in names]

    def _ask(self, command: Any, arguments: Arguments) -> Iterable[tuple[str, Any]]:
        return [*command(self._states, arguments)]

    def _take(
        self,
        verb: str,
        read: Callable[[Arguments], Iterable[tuple[str, Any]]],
        arguments: Arguments,
    ) -> str:
        answer = self._words.answers.get(verb)
        told: dict[tuple[str, Any], str] = {}
        for name, action in read(arguments):
            before = self._states[name]
            try:
                said = self._go(name, action)
            except NotPossible:
                if not self._words.tells_changes:
                    raise
                said = "not possible"
            after = self._states[name]
            # Of what several actions answer the last says it all.
            if said:
                told[name, action] = said
            elif self._words.tells_changes:
                told[name, None] = self._tell_changes(before, after)
            elif answer is not None:
                told[name, None] = answer(before, after)
        lines = [self._mark(name, line) for (name, _), line in told.items() if line]
        return "\n".join([*lines, *([self._show({})] if verb in self._words.shows else [])])

    def _go(self, name: str, action: Any) -> str:
        """Take an action; return what is said of it, or why it is rejected."""
        if isinstance(action, str):
            return action
        if isinstance(action, Rejected):
            return f"rejected by {action.clause}: {action.reason}"
        outcome = self._machine.step(self._states[name], action, self._readings)
        if isinstance(outcome, Rejected):
            return f"rejected by {outcome.clause}: {outcome.reason}"
        self._states[name] = outcome.state
        if isinstance(action, Failover) and self._words.remember is not None:
            self._memory = self._words.remember(outcome.state)
        if isinstance(action, Die):
            self._follow(action)
        return ""

    def _follow(self, done: Any) -> tuple[str, ...]:
        if self._words.follow is None:
            return ()
        self._memory, lines = self._words.follow(self._memory, done, self._readings)
        return lines

    # -- the controller

    def _effect(self, name: str) -> str | None:
        before = self._states[name]
        effect = self._machine.next_effect(before, self._readings)
        if effect is None:
            return None
        refused = self._go(name, Controller())
        if refused:
            return self._mark(name, refused)
        line = self._words.say_effect(effect, before, self._states[name])
        return "\n".join([self._mark(name, line), *self._follow(effect)])

    def _step(self, arguments: Arguments) -> str:
        check_arguments(arguments, (), ("times", *self._optional()))
        name = self._get(arguments)
        lines = [self._effect(name) for _ in range(parse_number("", arguments.get("times", "1")))]
        return "\n".join(line or "the controller waits" for line in lines)

    def _run(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        lines = self._list_effects()
        if not lines:
            waits = self._words.waits
            why = waits(self._states[self._get({})]) if waits is not None else ""
            lines = ["the controller waits" + (f": {why}" if why else "")]
        return "\n".join([*lines, *([self._show({})] if "run" in self._words.shows else [])])

    def _list_effects(self) -> list[str]:
        """Let the controller carry out all it can; return a line of each effect."""
        return [
            line
            for name in self._states
            for line in run_to_rest(partial(self._effect, name), LIMIT)
        ]

    # -- what is to be seen

    def _show(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        shown = ((name, self._look(state)) for name, state in self._states.items())
        return "\n".join(self._mark(name, "\n".join(lines)) for name, lines in shown)

    def _look(self, state: Any) -> list[str]:
        """Return a state as it is shown, with what is broken where that is told of it."""
        lines = self._words.show(state).splitlines()
        if self._words.tells_changes:
            for each in self._machine.properties:
                if why := self._machine.find_broken(each, state, self._readings):
                    verb = "broken" if each.promised(self._readings) else "not promised"
                    lines.append(f"{verb} {each.clause}: {why}")
        return lines

    def _tell_changes(self, before: Any, after: Any) -> str:
        known = self._words.show(before).splitlines()
        return "\n".join(line for line in self._look(after) if line not in known) or (
            "nothing changed"
        )

    def _show_memory(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        assert self._words.recall is not None
        return self._words.recall(self._memory)

    def _show_problems(self, arguments: Arguments) -> str:
        check_arguments(arguments, (), self._optional())
        state = self._states[self._get(arguments)]
        found = (
            (name, self._machine.find_broken(each, state, self._readings))
            for name, each in self._machine.by_name.items()
        )
        return "\n".join(f"{name}: {why}" for name, why in found if why) or "none"

    def _search(self, arguments: Arguments) -> str:
        """Search for the shortest story to a problem or a goal; its lines are numbered."""
        machine, readings = self._machine, self._readings
        counted = tuple(act.counted for act in machine.acts if act.counted)
        check_arguments(arguments, (), ("problem", "goal", "targets", *counted))
        find = self._parse_found(arguments)
        times = {name: parse_number(name, arguments[name]) for name in counted if name in arguments}
        texts = [text for text in arguments.get("targets", "").split("/") if text]
        sets = {"targets": tuple(None if t == "cancel" else parse_replicas("", t) for t in texts)}
        state = self._states[self._get({})]
        story = search(machine, state, readings, lambda each: bool(find(each)), times, sets)
        if story is None:
            return "not reachable"
        lines = [f"{number}. {told}" for number, told in enumerate(map(self._act, story), start=1)]
        found = find(self._states[self._get({})])
        self._states = {**self._states, self._get({}): state}
        return "\n".join([*lines, f"=> {found}"])

    def _act(self, action: Any) -> str:
        """Take one action of a story that was found; return it in words."""
        name = self._get({})
        before = self._states[name]
        outcome = self._machine.step(before, action, self._readings)
        assert not isinstance(outcome, Rejected)  # the search has taken the same step
        self._states[name] = outcome.state
        return self._machine.tell(action, before, outcome.state, self._readings)

    def _parse_found(self, arguments: Arguments) -> Callable[[Any], str | None]:
        """Return what a search looks for. Raises ScenarioError."""
        machine, readings = self._machine, self._readings
        goals = {goal.name: goal for goal in machine.goals}
        if arguments.get("problem") in machine.by_name:
            wanted: Property[Any] = machine.by_name[arguments["problem"]]
            return lambda state: machine.find_broken(wanted, state, readings)
        if arguments.get("goal") in goals:
            goal = goals[arguments["goal"]]
            return lambda state: goal.name if goal.reached(state, readings) else None
        known = ", ".join(machine.by_name)
        raise ScenarioError(f"problems: {known}; goals: {', '.join(goals)}")
