"""Worlds: what the commands of a scenario act upon.

Most worlds are those of a protocol: its machine has the commands, and one class acts upon any
(`machine`). Whatever has to be told otherwise is a class in the module of this package that is
called like it (`tables` in `tables.py`), or in `protocols/NAME/world.py`. A world is made afresh
for each scenario and answers each command with a few lines of text.
"""

import importlib
from collections.abc import Callable, Mapping
from functools import cache, partial
from pkgutil import iter_modules
from types import ModuleType
from typing import Final, Protocol

from reassure_model.machine import find_machines
from reassure_spec.protocols import import_parts
from reassure_spec.readings import Readings
from reassure_spec.words import Arguments, ScenarioError

Handler = Callable[[Arguments], str]
_OF_MACHINES: Final = "machine"
"""The module whose class is the world of any machine."""


class World(Protocol):
    """What commands act upon."""

    def run(self, command: str, arguments: Arguments) -> str:
        """Carry out one command and return its output; no output counts as `ok`.

        Raises ScenarioError for a command or an argument that it does not know.
        """
        ...


MakeWorld = Callable[[str, Readings, Arguments], World]
"""Makes the world of one scenario, of its profile, readings and the arguments of `world`.

Raises ScenarioError for arguments it cannot use."""


@cache
def _find_own() -> Mapping[str, ModuleType]:
    """Return the modules of the worlds that have a class of their own, by the worlds' names."""
    common = {
        each.name.replace("_", "-"): importlib.import_module(f"{__name__}.{each.name}")
        for each in iter_modules(__path__)
        if each.name != _OF_MACHINES
    }
    return {**common, **import_parts("reassure_conformance", "world")}


def list_worlds() -> tuple[str, ...]:
    """Return the names of the worlds, in order."""
    return tuple(sorted({*_find_own(), *find_machines()}))


def get_world(name: str) -> MakeWorld:
    """Return what makes the world with this name. Raises ScenarioError where there is none."""
    if name in _find_own():
        module = _find_own()[name]
        for entry in vars(module).values():
            here = isinstance(entry, type) and entry.__module__ == module.__name__
            if here and getattr(entry, "name", None) == name:
                own: MakeWorld = entry
                return own
        raise ScenarioError(f"{module.__name__} has no class whose `name` is {name!r}")
    machine = find_machines().get(name)
    if machine is None:
        raise ScenarioError(f"there is no world {name!r}; there are: {', '.join(list_worlds())}")
    module = importlib.import_module(f"{__name__}.{_OF_MACHINES}")
    make: MakeWorld = partial(module.MachineWorld, machine)
    return make


def dispatch(handlers: Mapping[str, Handler], command: str, arguments: Arguments) -> str:
    """Hand a command to its handler. Raises ScenarioError for one that no handler takes."""
    if command not in handlers:
        raise ScenarioError(f"no command {command!r}; there are: {', '.join(sorted(handlers))}")
    return handlers[command](arguments)


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
