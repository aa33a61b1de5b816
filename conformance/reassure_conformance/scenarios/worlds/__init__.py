"""Worlds: what the commands of a scenario act upon.

A world is a class in the module of this package that is called like it (`kip-46` in
`kip_46.py`). It is made afresh for each scenario and answers each command with a few lines of text.
What every world needs for that (reading arguments, refusing what it does not know) is here.
"""

import importlib
import importlib.util
from collections.abc import Callable, Collection, Mapping
from pkgutil import iter_modules
from typing import ClassVar, Protocol, runtime_checkable

from reassure_conformance.script import ScenarioError
from reassure_spec.readings import Readings
from reassure_spec.znodes import ReplicaList

__all__ = [
    "Arguments",
    "Handler",
    "ScenarioError",
    "World",
    "check_arguments",
    "dispatch",
    "format_replicas",
    "get_world",
    "list_worlds",
    "parse_number",
    "parse_replicas",
    "run_to_rest",
]

Arguments = Mapping[str, str]
"""The arguments of one command by name; a bare word is an argument whose value is `yes`."""
Handler = Callable[[Arguments], str]


@runtime_checkable
class World(Protocol):
    """What commands act upon."""

    name: ClassVar[str]
    """As in the `world` line of a scenario."""

    def __init__(self, profile: str, readings: Readings, arguments: Arguments) -> None:
        """Make the world of one scenario. Raises ScenarioError for arguments it cannot use."""
        ...

    def run(self, command: str, arguments: Arguments) -> str:
        """Carry out one command and return its output; no output counts as `ok`.

        Raises ScenarioError for a command or an argument that it does not know.
        """
        ...


def list_worlds() -> tuple[str, ...]:
    """Return the names of the worlds, in order."""
    return tuple(sorted(module.name.replace("_", "-") for module in iter_modules(__path__)))


def get_world(name: str) -> type[World]:
    """Return the world class with this name.

    Raises ScenarioError when no module is called like it or the module has no such class.
    """
    module_name = name.replace("-", "_")
    origin = f"{__name__}.{module_name}"
    if not module_name.isidentifier() or importlib.util.find_spec(origin) is None:
        raise ScenarioError(f"there is no world {name!r}; there are: {', '.join(list_worlds())}")
    module = importlib.import_module(origin)
    for entry in vars(module).values():
        here = isinstance(entry, type) and entry.__module__ == origin
        if here and getattr(entry, "name", None) == name:
            return entry  # type: ignore[no-any-return]
    raise ScenarioError(f"{origin} has no class whose `name` is {name!r}")


def dispatch(handlers: Mapping[str, Handler], command: str, arguments: Arguments) -> str:
    """Hand a command to its handler. Raises ScenarioError for one that no handler takes."""
    if command not in handlers:
        raise ScenarioError(f"no command {command!r}; there are: {', '.join(sorted(handlers))}")
    return handlers[command](arguments)


def check_arguments(
    arguments: Arguments, required: Collection[str] = (), optional: Collection[str] = ()
) -> None:
    """Refuse missing and unknown arguments. Raises ScenarioError, which lists what is taken."""
    known = [*required, *(f"[{name}]" for name in optional)]
    takes = f"it takes: {', '.join(known)}" if known else "it takes none"
    for name in required:
        if name not in arguments:
            raise ScenarioError(f"argument {name!r} is missing; {takes}")
    for name in arguments:
        if name not in required and name not in optional:
            raise ScenarioError(f"no argument {name!r}; {takes}")


def run_to_rest(effect: Callable[[], str | None], limit: int) -> list[str]:
    """Return what a controller did until it waits, one line for each effect.

    `effect` carries out the next one and answers its line, None where the controller waits. Raises
    ScenarioError when there are more than `limit`.
    """
    lines: list[str] = []
    while (line := effect()) is not None:
        lines.append(line)
        if len(lines) > limit:
            raise ScenarioError(f"the controller does not come to rest in {limit} effects")
    return lines


def parse_number(name: str, text: str) -> int:
    """Return the number in an argument; `none` is -1, the leader id that says there is none.

    >>> parse_number("top", "2")
    2
    """
    if text == "none":
        return -1
    try:
        return int(text)
    except ValueError:
        raise ScenarioError(f"{name}={text}: expected a whole number") from None


def parse_replicas(name: str, text: str) -> ReplicaList:
    """Return the broker ids in an argument such as `1,2,3`; `none` is the empty list.

    >>> parse_replicas("target", "2,3")
    (2, 3)
    """
    if text in ("", "none"):
        return ()
    return tuple(parse_number(name, part) for part in text.split(","))


def format_replicas(replicas: ReplicaList) -> str:
    """Return replicas as scenarios show them.

    >>> format_replicas((2, 3))
    '[2,3]'
    """
    return f"[{','.join(map(str, replicas))}]"
