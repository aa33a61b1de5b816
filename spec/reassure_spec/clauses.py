"""The clauses: one normative sentence each, with a stable dotted id.

Clauses are written in Markdown (`protocols/*/clauses/*.md`), one idea each:

    r[drop.leader-kept]
    A drop MUST keep the leader among the assigned replicas.
    Level: MUST
    Source: KIP-236, drop rule, note 1
    Profiles: NAME, NAME
    Why: dropping the leader would need an election in the middle of a change.

`Level` is the word of the sentence. A clause of level UNTESTABLE says MUST, and has a line `Unseen:
REASON` that says why nothing that ZooKeeper records shows it. `Untold: REASON` may follow where no
scenario can tell a clause; without it one has to. Clauses are parsed once. Code that carries out or
checks a clause registers its id with `clause`, which only records: the function that is decorated
stays exactly the function that was written.
"""

import dis
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import FunctionType, MappingProxyType
from typing import Any, Final, TypeVar

from reassure_spec.blocks import BadBlock, Block, read_blocks
from reassure_spec.protocols import list_folders
from reassure_spec.readings import BUILT_ON

LEVELS: Final = ("MUST", "SHOULD", "MAY", "UNTESTABLE")
"""How binding a clause is. UNTESTABLE: nothing that ZooKeeper records can show it either way."""
ADVICE: Final = frozenset({"SHOULD", "MAY"})
"""The levels that do not bind: who does not follow such a clause breaks nothing."""

_DOTTED: Final = re.compile(r"^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)+$")
_REQUIRED: Final = ("Level", "Source", "Profiles", "Why")
"""The fields that every clause has."""

Function = TypeVar("Function", bound=Callable[..., object] | type)


@dataclass(frozen=True, slots=True)
class Clause:
    """One normative sentence."""

    id: str
    """Stable dotted id, never reused and never renumbered."""
    sentence: str
    """The sentence, in our own words."""
    level: str
    """One of `LEVELS`."""
    source: str
    """The document and section it comes from."""
    profiles: tuple[str, ...]
    """The profiles it belongs to."""
    why: str
    """Why it is so."""
    chapter: str
    """The heading under which it stands."""
    unseen: str = ""
    """Why nothing that ZooKeeper records shows it, "" where something does."""
    untold: str = ""
    """Why no scenario tells it, "" where one has to."""


def _check(block: Block, origin: str) -> Clause:
    told = block.fields
    missing = [name for name in _REQUIRED if name not in told]
    if missing or not block.text:
        raise BadBlock(f"{origin}: clause {block.id} lacks {', '.join(missing) or 'a sentence'}")
    if told["Level"] not in LEVELS:
        raise BadBlock(f"{origin}: clause {block.id} has level {told['Level']!r}, not of {LEVELS}")
    if bool(told.get("Unseen")) != (told["Level"] == "UNTESTABLE"):
        raise BadBlock(f"{origin}: clause {block.id}: `Unseen` goes with level UNTESTABLE")
    return Clause(
        id=block.id,
        sentence=block.text,
        level=told["Level"],
        source=told["Source"],
        profiles=tuple(name.strip() for name in told["Profiles"].split(",")),
        why=told["Why"],
        chapter=block.chapter,
        unseen=told.get("Unseen", ""),
        untold=told.get("Untold", ""),
    )


def parse_clauses(text: str, origin: str) -> tuple[Clause, ...]:
    """Parse the clauses of one Markdown file; `origin` names it in error messages.

    Raises BadBlock when a block does not keep the format or an id stands twice.
    """
    names = (*_REQUIRED, "Unseen", "Untold")
    clauses = [_check(block, origin) for block in read_blocks(text, names, origin)]
    ids = [clause.id for clause in clauses]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise BadBlock(f"{origin}: clause ids stand twice: {', '.join(twice)}")
    return tuple(clauses)


@cache
def load_clauses() -> Mapping[str, Clause]:
    """Return every clause of the spec by id, in the order of the files and of the text.

    Raises BadBlock when a file does not keep the format or an id stands in two files.
    """
    clauses: dict[str, Clause] = {}
    for folder in list_folders():
        for name, text in folder.list_texts("clauses"):
            for clause in parse_clauses(text, name):
                if clause.id in clauses:
                    raise BadBlock(f"{name}: clause {clause.id} already stands in another file")
                clauses[clause.id] = clause
    return MappingProxyType(clauses)


def clauses_of_profile(profile: str) -> tuple[Clause, ...]:
    """Return the clauses that belong to the named profile, in the order of the text.

    Those of the profile that it stands on belong to it as well.
    """
    names = {profile, BUILT_ON.get(profile, profile)}
    return tuple(each for each in load_clauses().values() if names & set(each.profiles))


_carried_out: dict[str, set[str]] = {}


def clause(*clause_ids: str) -> Callable[[Function], Function]:
    """Register that the decorated function or class carries out or checks these clauses.

    Only registers, never wraps. Whether each id exists is checked by a test of the repository, so
    that importing the model does not read files.
    """

    def register(function: Function) -> Function:
        place = f"{function.__module__}.{function.__qualname__}"
        for clause_id in clause_ids:
            _carried_out.setdefault(clause_id, set()).add(place)
        return function

    return register


_checking: set[object] = set()


def checks(function: Function) -> Function:
    """Register that the decorated function carries out or checks what its own text names.

    Whatever constant of it has the form of a clause id is one, as is what the names of such
    constants stand for.
    """
    _checking.add(function)
    found = (each for each in _list_named(function) if isinstance(each, str))
    return clause(*found)(function)


def list_clauses(function: object) -> tuple[str, ...]:
    """Return the clauses that a function checks, those of the checks that it uses in their place.

    They stand in the order of the text, each once.
    """
    found: list[str] = []
    for each in _list_named(function):
        found += (each,) if isinstance(each, str) else list_clauses(each)
    return tuple(dict.fromkeys(found))


def _list_named(function: Any) -> Iterator[Any]:
    """Yield the clause ids and the functions of checks that a text names, in its order."""
    for step in dis.get_instructions(function.__code__):
        named = step.argval if step.opname == "LOAD_CONST" else None
        if step.opname == "LOAD_GLOBAL":
            named = function.__globals__.get(step.argval)
        for each in named if isinstance(named, tuple) else (named,):
            is_id = isinstance(each, str) and _DOTTED.match(each)
            if is_id or (isinstance(each, FunctionType) and each in _checking):
                yield each


def list_carried(carrier: object) -> tuple[str, ...]:
    """Return the clauses that a function or class carries out or checks.

    First those that its text names, in that order, then those that it is registered for besides.
    """
    named = list_clauses(carrier) if isinstance(carrier, FunctionType) else ()
    place = f"{getattr(carrier, '__module__', '')}.{getattr(carrier, '__qualname__', '')}"
    registered = (name for name, places in _carried_out.items() if place in places)
    return tuple(dict.fromkeys((*named, *registered)))


def get_places() -> Mapping[str, frozenset[str]]:
    """Return where each clause id was registered, among the modules imported so far."""
    return MappingProxyType({name: frozenset(places) for name, places in _carried_out.items()})
