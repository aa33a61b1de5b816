"""The explorer's stories as scenario files: what was found, in the words of the scenarios.

A story of a standard scope becomes a text that the scenario runner reads (`scenarios`), one command
for each step, with what the model answers as the expected output. That it is the same story is
checked: at the end the world of the scenario, which was made anew from the commands alone, has to
show what the explorer's last state says. So every scenario that `tell` returns was replayed on the
plain model.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from textwrap import wrap
from typing import Any, Final

from reassure_conformance.scenarios.scenario import (
    Scenario,
    format_found,
    parse_scenario,
    run_scenario,
)
from reassure_explorer.counterexamples import SmallWorld
from reassure_explorer.engine.result import Trace, TraceStep, Violation
from reassure_explorer.scopes.catalogue import COUNTEREXAMPLES, Source, get_scope
from reassure_explorer.scopes.machine import MachineScope
from reassure_spec.errors import ReassureError
from reassure_spec.readings import PROFILES, Readings, get_profile

_COUNTED: Final = re.compile(
    r" epoch \d+|request \d+ waits: | version \d+( \(leader knows \d+\))?"
    r"|\btask \d+|( since|^at) \d+ ms",
    re.MULTILINE,
)
"""What only counts: the explorer's states stand for all that differ in these alone."""


class NotTheSame(ReassureError):
    """A scenario that does not end where the explorer's story does: a mistake of ours."""


@dataclass(frozen=True, slots=True)
class SourceTeller:
    """How the stories of one kind of source are told."""

    opening: Callable[[Any], tuple[str, ...]]
    """Commands that make the world of a source."""
    say: Callable[[Any, TraceStep], str]
    """A step of a story as a command."""
    closing: Callable[[Any], tuple[str, ...]]
    """Commands that show how it ended."""
    describe: Callable[[Any, Any], Iterable[str]]
    """Lines, without what only counts, that have to stand in the last outputs."""


def _join(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers)) or "none"


# What a machine says itself -------------------------------------------------------------------


def _name_partition(source: MachineScope, at: int) -> str:
    return f" partition=p{at}" if source.is_one_of_several else ""


def _open_machine(source: MachineScope) -> tuple[str, ...]:
    world, *_ = source.machine.vocabulary.say_opening(source.bounds.start)
    lines = [world]
    for at, start in enumerate(source.starts):
        _, *added = source.machine.vocabulary.say_opening(start)
        lines += [line + _name_partition(source, at) for line in added]
    return tuple(lines)


def _say_machine(source: MachineScope, step: TraceStep) -> str:
    act = next(act for act in source.machine.acts if act.name == step.action)
    if act.shared or not source.is_one_of_several:
        return act.say(step.parameter)
    at, parameter = step.parameter
    return act.say(parameter) + _name_partition(source, at)


def _close_machine(source: MachineScope) -> tuple[str, ...]:
    *asked, show = source.machine.vocabulary.closing
    names = [_name_partition(source, at) for at in range(len(source.starts))]
    return (*(f"{each}{name}" for each in asked for name in names), show)


def _describe_machine(source: MachineScope, state: Any) -> Iterator[str]:
    for at in range(len(source.starts)):
        for line in source.machine.vocabulary.show(source.view(state, at)).splitlines():
            yield f"p{at}: {line}" if source.is_one_of_several else line


TELLERS: Final[Mapping[type, SourceTeller]] = {
    MachineScope: SourceTeller(_open_machine, _say_machine, _close_machine, _describe_machine),
    SmallWorld: SourceTeller(
        lambda world: world.opening,
        lambda _, step: step.words,
        lambda world: world.closing,
        lambda _, __: (),
    ),
}


# Scenarios --------------------------------------------------------------------------------------


def tell(
    scope: str, profile: str, readings: Readings, violation: Violation, name: str | None = None
) -> Scenario:
    """Return a violation's story as a scenario with its outputs filled in.

    Raises NotTheSame where the scenario, told to a fresh world, does not end as the story does.
    """
    source = get_scope(scope).make_source(readings)
    return tell_source(source, scope, profile, readings, violation, name)


def tell_source(
    source: Source,
    scope: str,
    profile: str,
    readings: Readings,
    violation: Violation,
    name: str | None = None,
) -> Scenario:
    """Do as `tell` does, for a source that need be no standard scope."""
    teller = TELLERS[type(source)]
    why = f"Found by exploring scope {scope}: {violation.reason}."
    if scope in COUNTEREXAMPLES:
        why, name = f"Exploration {scope}. Broken: {COUNTEREXAMPLES[scope].summary}", scope
    commands = list_commands(source, violation.trace)
    text = "\n".join(
        [
            *(f"# {line}" for line in wrap(why, 98)),
            f"# clauses: {_find_clause(violation)}",
            f"# profile: {profile}{_spell_readings(profile, readings)}",
            *(f"{command}\n----\n" for command in commands),
        ]
    )
    origin = f"counterexamples/{name or violation.invariant}.txt"
    scenario = parse_scenario(text, origin)
    found = run_scenario(scenario)
    _check_same(teller, source, violation.trace, found)
    return parse_scenario(format_found(scenario, found), origin)


def list_commands(source: Source, story: Trace) -> tuple[str, ...]:
    """Return the commands that tell a story, from the world to how it ended."""
    teller = TELLERS[type(source)]
    told = [teller.say(source, step) for step in story.steps]
    if isinstance(source, MachineScope) and source.bounds.calm:
        # Whatever is owed is written before anything else happens, the last of it included.
        runs = source.machine.vocabulary.runs
        told = [
            runs if here == "step" else here
            for here, after in pairwise((*told, "step"))
            if (here, after) != ("step", "step")
        ] + [runs]
    return (*teller.opening(source), *told, *teller.closing(source))


def _check_same(
    teller: SourceTeller, source: Source, story: Trace, found: tuple[tuple[str, ...], ...]
) -> None:
    if isinstance(source, MachineScope) and source.bounds.calm:
        story = _go_on(source, story)
    closing = len(teller.closing(source))
    last = "\n".join(line for output in found[-closing - 1 :] for line in output)
    shown = _COUNTED.sub("", last)
    for line in teller.describe(source, story.last):
        if _COUNTED.sub("", line) not in shown:
            raise NotTheSame(f"the story ends with {line!r}; the scenario shows:\n{last}")


def _go_on(source: MachineScope, story: Trace) -> Trace:
    """Let the controller carry out what it owes at the end of a story."""
    controller = next(a for a in source.make_model("").actions if a.name == "controller")
    state, steps = story.last, story.steps
    while not source.is_quiet(state):
        parameter = next(p for p in controller.parameters if controller.step(state, p) is not None)
        state = controller.step(state, parameter).state
        words = controller.describe(parameter)
        steps = (*steps, TraceStep(controller.name, parameter, words, state))
    return Trace(story.initial, steps)


def _find_clause(violation: Violation) -> str:
    """Return the clause of an invariant; one without asks that what is owed is allowed."""
    from reassure_spec.clauses import load_clauses

    if violation.invariant in load_clauses():
        return violation.invariant
    named = re.findall(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+", violation.reason)
    return ", ".join(dict.fromkeys(name for name in named if name in load_clauses()))


def _spell_readings(profile: str, readings: Readings) -> str:
    usual = (get_profile(profile) if profile in PROFILES else Readings()).as_dict()
    other = {name: value for name, value in readings.as_dict().items() if value != usual[name]}
    spelt = ", ".join(f"{name}={value}" for name, value in other.items())
    return f"     readings: {spelt}" if spelt else ""


def get_text(scenario: Scenario) -> str:
    """Return the text of a scenario file."""
    return "\n".join(scenario.script.lines).rstrip("\n") + "\n"
