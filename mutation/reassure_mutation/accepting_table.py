"""The table of the mutants of the accepting rules: by profile and mutant what kills it, or why not.

It is kept in `protocols/NAME/accepting.json`, beside the table of what can be killed. Where that
has worlds, what a right controller writes in them is asked too, and what each mutant of the
controller writes at the moment at which it is killed. Nothing is asked twice: profiles whose rules
are the same functions share a table, and a function that several tables could have is in the first.
"""

import ast
import hashlib
import inspect
import json
import multiprocessing
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from reassure_judge.protocols import find_protocols, make_rules
from reassure_judge.rules import LOGS
from reassure_model.outcome import Accepted
from reassure_mutation import accepting, operators
from reassure_mutation.accepting import (
    OPEN,
    SAME,
    UNASKED,
    WORDS,
    Accepting,
    Kill,
    Known,
    Question,
    make_strange,
)
from reassure_mutation.kills import Situation
from reassure_mutation.linked import Mutant, list_mutants, parse, spell
from reassure_mutation.operators import strip
from reassure_mutation.table import Killable, find_worlds, load_table, make_reference, save
from reassure_mutation.worlds import Found, explore
from reassure_spec.protocols import import_parts
from reassure_spec.readings import READINGS, get_profile

FILE: Final = "accepting.json"
RECORDED: Final = "test case"
RIGHT: Final = "right controller"
WRONG: Final = "mutant of the controller"
KILLERS: Final = (RECORDED, RIGHT, WRONG)
"""What pins an answer, in the order in which it is asked."""


@dataclass(frozen=True, slots=True)
class AcceptingTable:
    """What becomes of the mutants of the rules that judge under one profile."""

    digest: str
    counted: Mapping[str, int]
    """By clause how often the recorded test cases put it to the test."""
    killed: Mapping[str, Kill]
    """By the name of the mutant."""
    survivors: Mapping[str, str]
    """By the name of each other mutant why."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Rules that are the same functions, under however many profiles: they share one table."""

    rules: Accepting
    path: Path
    """The file of the table."""
    profiles: tuple[str, ...]
    """The table stands under the name of the first."""
    worlds: tuple[tuple[ModuleType, str], ...]
    """Where their questions come up: each module, with a profile for each set of readings."""

    @property
    def protocol(self) -> str:
        """The protocol whose rules they are, as the folder of the table says."""
        return self.path.parent.name.replace("_", "-")


@cache
def find_judged() -> tuple[str, ...]:
    """Return the profiles under which ZooKeeper's log is judged, write by write."""
    return tuple(name for name, rules in find_protocols().items() if rules.reads == LOGS)


@cache
def find_units() -> tuple[Unit, ...]:
    """Return every set of accepting rules once, those of most profiles first."""
    found: dict[tuple[Any, ...], Unit] = {}
    for profile in find_judged():
        judging = make_rules(profile, get_profile(profile))
        modules = find_worlds(profile)
        own = [each for each in modules if hasattr(each, "make_rules")]
        here = tuple((each, profile) for each in modules if each not in own)
        name = type(judging).__module__.split(".")[2]
        parts = [(judging.judgement, Path(__file__).parent / "protocols" / name, here)]
        for each in own:
            judgement = make_reference(each, profile).rules.judgement
            parts.append((judgement, Path(each.__file__ or "").parent, ((each, profile),)))
        for judgement, folder, worlds in parts:
            rules = Accepting.of(judgement, owing=not worlds)
            unit = Unit(rules, folder / FILE, (profile,), worlds)
            known = found.setdefault(unit.rules.begin, unit)
            if known is not unit:
                read = [get_profile(each) for each in known.profiles]
                worlds = () if get_profile(profile) in read else worlds
                profiles, worlds = (*known.profiles, profile), (*known.worlds, *worlds)
                found[unit.rules.begin] = replace(known, profiles=profiles, worlds=worlds)
    for name, module in import_parts("reassure_mutation", "histories").items():
        worlds = tuple((each, name) for each in find_worlds(name))
        unit = Unit(module.make_rules(), Path(module.__file__ or "").parent / FILE, (name,), worlds)
        found[unit.rules.begin] = unit
    return tuple(sorted(found.values(), key=lambda unit: -len(unit.profiles)))


def list_own(unit: Unit) -> tuple[Mutant, ...]:
    """Return the mutants of the functions that are in no earlier unit, whose table has them."""
    units = find_units()
    earlier = {each for before in units[: units.index(unit)] for each in before.rules.functions}
    return list_mutants(each for each in unit.rules.functions if each not in earlier)


def make_digest(unit: Unit) -> str:
    """Return what tells whether a table is of the rules as they stand."""
    said = [f"{spell(each)} {ast.dump(strip(parse(each)))}" for each in unit.rules.functions]
    own = sys.modules[type(unit.rules).__module__]
    said += [inspect.getsource(each) for each in dict.fromkeys((accepting, operators, own))]
    said += [repr(get_profile(profile)) for profile in unit.profiles]
    return hashlib.sha256("\n".join(said).encode()).hexdigest()


@cache
def load_accepting(unit: Unit) -> AcceptingTable | None:
    """Return the table of a unit, None where there is none."""
    tables = json.loads(unit.path.read_text(encoding="utf-8")) if unit.path.is_file() else {}
    if unit.protocol not in tables:
        return None
    said = tables[unit.protocol]
    killed = {
        f"{function}: {mutation}": Kill(*kill)
        for function, kills in said["killed"].items()
        for mutation, kill in kills.items()
    }
    return AcceptingTable(said["digest"], said["counted"], killed, said["survivors"])


def save_accepting(table: AcceptingTable, unit: Unit) -> None:
    """Write a table beside those of the other profiles of a protocol."""
    killed: dict[str, dict[str, tuple[str, ...]]] = {}
    for name, kill in table.killed.items():
        function, _, mutation = name.partition(": ")
        killed.setdefault(function, {})[mutation] = astuple(kill)
    save(unit.path, unit.protocol, asdict(table) | {"killed": killed})


def load_judged(profile: str) -> tuple[dict[str, Kill], dict[str, str]] | None:
    """Return what becomes of all mutants of the rules of a profile: killed, and survivors.

    None where the table of some of them is missing.
    """
    units = find_units()
    tables = {each: load_accepting(each) for each in units}
    own = [unit for unit in units if profile in unit.profiles]
    if not own or None in (tables[unit] for unit in own):
        return None
    functions = {spell(each) for unit in own for each in unit.rules.functions}
    made = [table for table in tables.values() if table is not None]

    def select(entries: Mapping[str, Any]) -> dict[str, Any]:
        return {k: v for k, v in entries.items() if k.partition(":")[0] in functions}

    killed = {k: v for table in made for k, v in select(table.killed).items()}
    return killed, {k: v for table in made for k, v in select(table.survivors).items()}


def count(recorded: Mapping[Question, str]) -> Counter[str]:
    """Return by clause how often the questions put it to the test."""
    answers = (each.function(*each.arguments) for each in recorded)
    return Counter(
        clause for each in answers if isinstance(each, Accepted) for clause in each.clauses
    )


# Making it ----------------------------------------------------------------------------------------


def make_accepting_table(
    unit: Unit, recorded: Mapping[Question, str], processes: int = 2
) -> Iterator[str | AcceptingTable]:
    """Yield a line for each kind of question that was put, and the table at the end.

    `recorded` has the questions whose answers stand in test cases, with the name of the first.
    """
    rules, profile = unit.rules, unit.protocol
    mutants = {each.name: each for each in list_own(unit)}
    asked = [Known(each, RECORDED, name, worded=True) for each, name in recorded.items()]
    killed: dict[str, Kill] = {}
    survivors = dict.fromkeys(mutants, UNASKED)
    _look_at(rules, mutants, asked, killed, survivors, processes)
    yield f"{profile} {len(asked)} questions of {RECORDED}s: {len(killed)} of {len(mutants)} killed"
    seen = set(recorded)
    for module, under in unit.worlds:
        met = [each for each in _list_met(module, under, rules) if each.question not in seen]
        seen.update(each.question for each in met)
        _look_at(rules, mutants, met, killed, survivors, processes)
        yield f"{profile} {len(met)} questions in worlds of {under}: {len(killed)} killed"
        asked += met
    strange = list(_list_strange(rules, [mutants[name] for name in survivors], asked))
    holes: dict[str, Kill] = {}
    _look_at(rules, mutants, strange, holes, survivors, processes)
    survivors |= {name: f"{OPEN}: {hole.how}" for name, hole in holes.items()}
    yield f"{profile} {len(strange)} questions that nobody puts: {len(holes)} would be killed"
    yield AcceptingTable(
        make_digest(unit),
        dict(sorted(count(recorded).items())),
        dict(sorted(killed.items())),
        dict(sorted(survivors.items())),
    )


def _list_strange(
    rules: Accepting, left: Sequence[Mutant], asked: Sequence[Known]
) -> Iterator[Known]:
    """Yield questions that nobody puts, like those that come to a function with a survivor."""
    values = {each.name.replace(".", "_").replace("-", "_"): each.values for each in READINGS}
    pools: dict[str, list[Question]] = {f"<{spell(each.function)}>": [] for each in left}
    for each in asked:
        for name in rules.find_called(each.question) & pools.keys():
            pools[name].append(each.question)
    found = dict.fromkeys(
        question
        for pool in pools.values()
        for question in make_strange(pool, values, rules.strange)
    )
    yield from (Known(each, OPEN, "") for each in found)


def _look_at(
    rules: Accepting,
    mutants: Mapping[str, Mutant],
    asked: Sequence[Known],
    killed: dict[str, Kill],
    survivors: dict[str, str],
    processes: int,
) -> None:
    """Ask the mutants that survive; move those that are killed by it."""
    left = [mutants[name] for name in survivors]
    order = (UNASKED, SAME, WORDS)
    for name, answer in _find_kills(rules, left, asked, processes).items():
        if isinstance(answer, Kill):
            killed[name] = answer
            del survivors[name]
        else:
            survivors[name] = max(survivors[name], answer, key=order.index)


def _list_met(module: ModuleType, profile: str, rules: Accepting) -> Iterator[Known]:
    """Yield the questions that are put in the worlds of a module while all wait for a controller.

    First those of a right controller, then those of each mutant where it is killed.
    """
    reference, table = make_reference(module, profile), load_table(module, profile)
    mutants = {each.name: each for each in reference.list_mutants()}
    left: dict[str, Killable] = {} if table is None else dict(table.killable)
    seen: set[Question] = set()
    for world in module.WORLDS:
        found: dict[Question, None] = {}
        with rules.recorded(found):
            look: Any = getattr(module, "explore", explore)
            moves = getattr(module, "list_moves", None)
            states = list(look(world, reference, moves, calm=True))
        right = dict.fromkeys((*found, *_list_invariants(rules, found)))
        wrong: dict[Question, None] = {}
        for name, situations in _find_moments(states, left).items():
            mutant = mutants[name]
            with reference.linked.planted(mutant), rules.recorded(wrong):
                for each in situations:
                    reference.find_kill(each)
            del left[name]
        for by, questions in ((RIGHT, right), (WRONG, wrong)):
            yield from (Known(each, by, world.name) for each in questions if each not in seen)
            seen.update(questions)


def _list_invariants(rules: Accepting, found: Mapping[Question, None]) -> Iterator[Question]:
    accept, *finds = rules.begin
    for each in found:
        if each.function is accept:
            yield from (Question(find, each.arguments[:1]) for find in finds)


def _find_moments(
    states: Sequence[Found], left: Mapping[str, Killable]
) -> dict[str, list[Situation]]:
    """Return by mutant of the controller the situations at the end of the test case it has."""
    ends: dict[tuple[str, ...], list[Situation]] = {}
    wanted = {each.steps for each in left.values()}
    for state in states:
        steps = state.list_steps()
        if steps in wanted:
            ends.setdefault(steps, []).append(state.situation)
    return {name: ends[each.steps] for name, each in left.items() if each.steps in ends}


_Answers = dict[str, Kill | str]
_SHARED: list[Any] = []
"""What the processes inherit: the rules, the mutants and the questions."""


def _find_kills(
    rules: Accepting, mutants: Sequence[Mutant], asked: Sequence[Known], processes: int
) -> _Answers:
    """Look at the mutants in several processes."""
    _SHARED[:] = [rules, mutants, asked, rules.prepare(asked)]
    shares = [range(n, len(mutants), processes) for n in range(processes)]
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        answers: list[_Answers] = pool.map(_look, shares)
    return {name: answer for each in answers for name, answer in each.items()}


def _look(numbers: Sequence[int]) -> _Answers:
    rules, mutants, asked, prepared = _SHARED
    found: _Answers = rules.find_kills([mutants[n] for n in numbers], asked, prepared)
    return found
