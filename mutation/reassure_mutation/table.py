"""The table of what can be killed: by profile and mutant the clause, and the shortest test case.

It is made by exploring the worlds of a protocol (`python -m reassure_mutation`), which takes
minutes, and kept in `protocols/NAME/killable.json`. A digest of all that it was made from says
whether it is of the rules as they stand.
"""

import ast
import hashlib
import inspect
import json
import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from reassure_judge.protocols import get_rules, make_rules
from reassure_judge.rules import ObservationRules
from reassure_mutation import kills, operators, worlds
from reassure_mutation.kills import Reference, Situation, find_kills
from reassure_mutation.linked import Mutant, parse, spell
from reassure_mutation.operators import strip
from reassure_mutation.worlds import Found, Meeting, World, explore, find_meetings
from reassure_spec.profiles import PROTOCOLS, has_protocol
from reassure_spec.protocols import import_parts
from reassure_spec.readings import get_profile

FILE: Final = "killable.json"


@dataclass(frozen=True, slots=True)
class Killable:
    """A mutant that some state kills."""

    clause: str
    steps: tuple[str, ...]
    """The test case that leads an implementation into the first such state."""
    interrupts: bool
    """Whether something happens in it between two writes of the controller."""


@dataclass(frozen=True, slots=True)
class Table:
    """What can be killed under one profile."""

    digest: str
    killable: Mapping[str, Killable]
    """By the name of the mutant."""
    survivors: Mapping[str, str]
    """By the name of each other mutant why no state kills it, one of `SURVIVES`."""
    meetings: tuple[Meeting, ...]


@cache
def find_worlds(profile: str) -> tuple[ModuleType, ...]:
    """Return what is explored under a profile: a module for each kind of state that is decided by.

    It has the `WORLDS` and `list_moves`, what may happen in them. Where its states are not the
    partitions that the profile's rules are about it has `make_rules` as well; where no log shows
    them it says that it is `LIVE`. What says something rather than write has its own `explore` and
    `make_reference`, and names its `PROFILE`. Under a profile that no implementation is driven
    under there is nothing to explore, nor where nobody has written down how the first of its
    protocols decides.
    """
    rules = get_rules(profile)
    found = import_parts("reassure_mutation", "worlds")
    is_driven = profile in rules.driven or issubclass(rules, ObservationRules)
    if not is_driven or PROTOCOLS[profile][0] not in found:
        return ()
    return tuple(
        module
        for name, module in found.items()
        if has_protocol(profile, name) and getattr(module, "PROFILE", profile) == profile
    )


def make_reference(module: ModuleType, profile: str) -> Reference:
    """Return the reference controller that decides by the states of a module's worlds."""
    if hasattr(module, "make_reference"):
        said: Reference = module.make_reference(profile)
        return said
    make = getattr(module, "make_rules", make_rules)
    return Reference(make(profile, get_profile(profile)))


def make_digest(module: ModuleType, profile: str) -> str:
    """Return what tells whether a table is of the rules as they stand."""
    reference = make_reference(module, profile)
    functions = (
        f"{spell(each)} {ast.dump(strip(parse(each)))}" for each in reference.linked.functions
    )
    made_from = (kills, operators, worlds, module, *getattr(module, "MADE_FROM", ()))
    texts = map(inspect.getsource, made_from)
    data = repr((module.WORLDS, get_profile(profile)))
    said = "\n".join((*functions, *texts, data))
    return hashlib.sha256(said.encode()).hexdigest()


def load_table(module: ModuleType, profile: str) -> Table | None:
    """Return the table of a profile's worlds, None where there is none."""
    file = files(module.__package__ or "") / FILE
    tables = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    if profile not in tables:
        return None
    said = tables[profile]
    killable = {
        name: Killable(each["clause"], tuple(each["steps"]), each["interrupts"])
        for name, each in said["killable"].items()
    }
    meetings = (
        Meeting(each["effect"], each["event"], tuple(each["steps"]))
        for each in said.get("meetings", ())
    )
    return Table(said["digest"], killable, said["survivors"], tuple(meetings))


def save_table(table: Table, module: ModuleType, profile: str) -> None:
    """Write a table beside those of the other profiles of a protocol."""
    save(Path(module.__file__ or "").parent / FILE, profile, asdict(table))


def save(path: Path, profile: str, table: Mapping[str, Any]) -> None:
    """Write a profile's table into a file of tables, each entry on a line of its own."""
    tables = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    tables[profile] = table
    path.write_text(f"{_format(dict(sorted(tables.items())), 3)}\n", encoding="utf-8")


def _format(value: Any, levels: int) -> str:
    if not levels or not isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        name = (f"{json.dumps(k, ensure_ascii=False)}: " for k in value)
        inner = [k + _format(v, levels - 1) for k, v in zip(name, value.values(), strict=True)]
        return "{\n" + ",\n".join(inner) + "\n}"
    return "[\n" + ",\n".join(_format(each, levels - 1) for each in value) + "\n]"


# Making it ----------------------------------------------------------------------------------------


def make_table(module: ModuleType, profile: str, processes: int = 2) -> Iterator[str | Table]:
    """Yield a line for each world that was looked at, and the table at the end."""
    reference = make_reference(module, profile)
    mutants = reference.list_mutants()
    killable: dict[str, Killable] = {}
    survivors = {each.name: kills.UNREACHED for each in mutants}
    for calm in (True, False):
        for world in module.WORLDS:
            if not calm and world.calm:
                continue
            found = _list_found(world, module, reference, calm=calm)
            left = [each for each in mutants if each.name in survivors]
            situations = tuple(each.situation for each in found)
            answers = _find_kills(reference, left, situations, processes)
            for name, (said, number) in answers.items():
                if number is None:
                    survivors[name] = max(survivors[name], said, key=kills.SURVIVES.index)
                    continue
                del survivors[name]
                state = found[number]
                killable[name] = Killable(said, state.list_steps(), state.interrupts)
            yield f"{profile} {world.name}{' calm' if calm else ''}: {len(killable)} killed"
    names = sorted(killable), sorted(survivors)
    yield Table(
        make_digest(module, profile),
        {name: killable[name] for name in names[0]},
        {name: survivors[name] for name in names[1]},
        _list_meetings(module, reference),
    )


def _list_meetings(module: ModuleType, reference: Reference) -> tuple[Meeting, ...]:
    known: dict[tuple[str, str], Meeting] = {}
    # A run counts what meets writes to partitions.
    partitions = hasattr(module, "list_moves") and not hasattr(module, "make_rules")
    for world in module.WORLDS if partitions else ():
        if not world.calm:
            find_meetings(world, reference, module.list_moves, known)
    return tuple(known.values())


def _list_found(
    world: World, module: ModuleType, reference: Reference, *, calm: bool
) -> list[Found]:
    found: dict[Situation, Found] = {}
    look: Callable[..., Iterator[Found]] = getattr(module, "explore", explore)
    moves = getattr(module, "list_moves", None)
    for each in look(world, reference, moves, calm=calm):
        found.setdefault(each.situation, each)
    return list(found.values())


_Answers = dict[str, tuple[str, int | None]]
_SHARED: list[Any] = []
"""What the processes inherit: the reference controller, its mutants and the situations."""


def _find_kills(
    reference: Reference,
    mutants: Sequence[Mutant],
    situations: tuple[Situation, ...],
    processes: int,
) -> _Answers:
    """Look at the mutants in several processes."""
    _SHARED[:] = [reference, mutants, situations]
    shares = [range(n, len(mutants), processes) for n in range(processes)]
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        answers: list[_Answers] = pool.map(_look, shares)
    return {name: answer for each in answers for name, answer in each.items()}


def _look(numbers: Sequence[int]) -> _Answers:
    reference, mutants, situations = _SHARED
    return find_kills(reference, [mutants[n] for n in numbers], situations)
