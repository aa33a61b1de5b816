"""Mutants of the bundled controller and brokers: mistakes, each by name, as changes of their text.

The controller knows nothing of them. A mutant is a few patches: a module of `reassure_controller`,
a text that stands there exactly once, and what stands there instead; or definitions that the module
gets in addition. The catalogue, the TOML files beside this one, has the sentence of each, and the
clauses that are made for it; those of messages, watches and conditions of writes are derived
(`message_mutants`, `watch_mutants`, `write_mutants`).

`planted` has mutants in this process for a while; `python -m reassure_conformance.mutants` starts a
program that has them from its beginning.
"""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache, wraps
from importlib import resources
from types import MappingProxyType
from typing import Any, Final, TypeVar

from reassure_conformance.mutants import message_mutants, watch_mutants, write_mutants
from reassure_conformance.mutants.exchange import Patch, exchanged
from reassure_spec.errors import BadUsage
from reassure_spec.protocols import list_folders

Kind = TypeVar("Kind", bound=type[Any])
OF_BROKERS: Final = next(
    each.name for each in list_folders() if "broker" in each.manifest.get("rooms", {})
)
"""The profile of brokers with logs: that of the protocol whose readings they ask for."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake."""

    name: str
    sentence: str
    """What goes wrong."""
    clauses: tuple[str, ...]
    """Those that are made for it: one of them has to be violated first."""
    profile: str = ""
    """Where it breaks something only there; "" where the profile does not matter."""
    readings: Mapping[str, str] = field(default_factory=dict)
    """Those under which alone it breaks something."""
    patches: tuple[Patch, ...] = ()

    @property
    def of_brokers(self) -> bool:
        """Whether brokers with logs have it, rather than controllers."""
        return self.profile == OF_BROKERS


class UnknownFault(BadUsage):
    """A name that the catalogue does not have."""


def _read(name: str, entry: Mapping[str, Any]) -> Mutant:
    patches = tuple(Patch(**each) for each in entry["patches"])
    clauses, readings = tuple(entry["clauses"]), entry.get("readings", {})
    return Mutant(name, entry["sentence"], clauses, entry.get("profile", ""), readings, patches)


@cache
def load_mutants() -> Mapping[str, Mutant]:
    """Return the catalogue by name, and what is derived.

    Raises ValueError for a name that stands there twice.
    """
    derived = (
        *message_mutants.derive(),
        *watch_mutants.derive(),
        *write_mutants.derive(),
    )
    found = {
        name: Mutant(name, sentence, clauses, profile, patches=patches)
        for name, sentence, profile, clauses, patches in derived
    }
    folder = resources.files(__name__) / "catalogue"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if not file.name.endswith(".toml"):
            continue
        entries = tomllib.loads(file.read_text(encoding="utf-8"))
        twice = found.keys() & entries.keys()
        if twice:
            raise ValueError(f"{file.name}: {', '.join(sorted(twice))}: named in another file too")
        found |= {name: _read(name, entry) for name, entry in entries.items()}
    return MappingProxyType(found)


def _describe_unknown(name: str) -> str:
    known = load_mutants()
    near = get_close_matches(name, known, n=3) or [each for each in known if name in each]
    advice = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known)}"
    return f"no such fault: {name}; {advice}"


def check_faults(names: Iterable[str]) -> frozenset[str]:
    """Return the names as a set. Raises UnknownFault for one that the catalogue does not have."""
    chosen = frozenset(names)
    unknown = sorted(chosen - load_mutants().keys()) if chosen else ()
    if unknown:
        raise UnknownFault("; ".join(map(_describe_unknown, unknown)))
    return chosen


@contextmanager
def planted(names: Iterable[str]) -> Iterator[None]:
    """Have mutants in this process for a while; without names nothing is done.

    Raises UnknownFault, StalePatch, PatchesOverlap, and AlreadyPlanted inside of another one.
    """
    chosen = sorted(check_faults(names))
    with exchanged(tuple(each for name in chosen for each in load_mutants()[name].patches)):
        yield


def plants(find_names: Callable[[Any], Iterable[str]]) -> Callable[[Kind], Kind]:
    """Return a decorator: every public method of a class runs with an object's mutants planted.

    So an object with mutants can be used beside another one that has others, or none.
    """
    inside: set[int] = set()

    def wrap(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(self: Any, *arguments: Any, **options: Any) -> Any:
            names = find_names(self)
            if not names or id(self) in inside:
                return method(self, *arguments, **options)
            inside.add(id(self))
            try:
                with planted(names):
                    return method(self, *arguments, **options)
            finally:
                inside.discard(id(self))

        return call

    def decorate(kind: Kind) -> Kind:
        for name, method in list(vars(kind).items()):
            if callable(method) and not name.startswith("_"):
                setattr(kind, name, wrap(method))
        return kind

    return decorate


def start_with(names: Sequence[str], command: Sequence[str]) -> tuple[str, ...]:
    """Return a command `python ... -m MODULE ...` so that its process has these mutants."""
    if not names:
        return tuple(command)
    place = command.index("-m") + 1
    return (*command[:place], __name__, *names, "--", *command[place:])
