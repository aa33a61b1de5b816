"""The standard scopes: how much of the world is looked at, by name.

A scope is small enough to be explored to its end. What it leaves out was not looked at: a scope
that holds is no proof for a larger one. How much each looks at stands in
`protocols/NAME/scopes.toml`, its counts under each profile in `counts.toml` beside it; tests pin
those that take seconds only.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from reassure_explorer.counterexamples import list_counterexamples
from reassure_explorer.engine.explore import Exploration, explore
from reassure_explorer.engine.interface import Model
from reassure_explorer.engine.search import Sketch
from reassure_explorer.scopes.machine import MachineScope
from reassure_model.machine import find_machines
from reassure_spec.errors import BadUsage
from reassure_spec.profiles import DEFAULT_PROFILE
from reassure_spec.protocols import import_parts, read_parts
from reassure_spec.readings import Readings
from reassure_spec.rooms import choose_readings, explorer_of

Source = MachineScope | Sketch
"""What a scope's model is made from: a model of `reassure_model` within a world."""


class UnknownScope(BadUsage):
    """A scope name that there is not."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A named scope."""

    name: str
    summary: str
    """What it holds, in one sentence."""
    make_source: Callable[[Readings], Source]
    profile: str
    """The version of the rules that it is about; any other can be asked for."""
    is_whole: bool = False
    """Whether it takes the model as it stands, so that no reading is refused."""

    @property
    def room(self) -> str:
        """The room that says which readings are carried out here."""
        return "model" if self.is_whole else explorer_of(self.profile)

    def make_model(self, readings: Readings) -> Model:
        """Return the model within this scope, under these readings."""
        return self.make_source(readings).make_model(self.name)


def _freeze(value: Any) -> Any:
    """Return a value of a table with tuples for its lists."""
    return tuple(map(_freeze, value)) if isinstance(value, list) else value


def _find_scopes() -> Iterator[Scope]:
    """Yield the standard scopes of every protocol, from its `scopes.toml` and `scopes.py`."""
    modules = import_parts("reassure_explorer", "scopes")
    for protocol, tables in read_parts("reassure_explorer", "scopes.toml"):
        for name, said in tables.items():
            bounds = modules[protocol].bound(
                **{word: _freeze(value) for word, value in said.items() if word != "summary"}
            )
            make = partial(MachineScope, find_machines()[protocol], bounds)
            yield Scope(name, said["summary"], make, protocol)


def _find_meetings() -> Iterator[Scope]:
    """Yield the meetings of every protocol that meets others."""
    modules = import_parts("reassure_explorer", "counterexamples")
    for protocol, tables in read_parts("reassure_explorer", "counterexamples.toml"):
        for name, said in tables.items():
            if "summary" in said:
                make, profile = modules[protocol].MEETINGS[name], said.get("profile", protocol)
                yield Scope(name, said["summary"], make, profile, is_whole=True)


SCOPES: Final[Mapping[str, Scope]] = {each.name: each for each in _find_scopes()}
"""The standard scopes by name."""


MEETINGS: Final[Mapping[str, Scope]] = {each.name: each for each in _find_meetings()}
"""Small worlds in which protocols meet, by name."""
COUNTEREXAMPLES: Final[Mapping[str, Scope]] = {
    each.name: Scope(each.name, each.promise, each.make_source, each.profile, is_whole=True)
    for each in list_counterexamples()
}
"""Small worlds in which one promise is broken, by name."""


COUNTS: Final[Mapping[tuple[str, str], tuple[int, int, int]]] = {
    (name, profile): (distinct, generated, depth)
    for _, tables in read_parts("reassure_explorer", "counts.toml")
    for profile, scopes in tables.items()
    for name, (distinct, generated, depth) in scopes.items()
}
"""Golden numbers by scope and profile: distinct states, steps and depth, to the end. A changed
number is a changed model; `benchmarks/explorer_counts.py` explores all of them."""


def get_scope(name: str) -> Scope:
    """Return a scope, a standard one or a small world.

    Raises UnknownScope; the message lists those there are.
    """
    found = SCOPES.get(name) or MEETINGS.get(name) or COUNTEREXAMPLES.get(name)
    if found is None:
        known = ", ".join((*SCOPES, *MEETINGS))
        raise UnknownScope(
            f"there is no scope {name!r}; the scopes are: {known}, and a small one for each of "
            "the findings (`reassure spec findings`)"
        )
    return found


def get_model(
    scope: str, profile: str, readings: Mapping[str, str] | None = None
) -> tuple[Readings, Model]:
    """Return the readings chosen and the model of a standard scope under them.

    `readings` overrides readings of the profile, by dotted name. Raises UnknownScope,
    UnknownReading and RefusedReading.
    """
    found = get_scope(scope)
    chosen = choose_readings(found.room, profile, readings or {})
    return chosen, found.make_model(chosen)


def explore_scope(
    scope: str = "small",
    profile: str = DEFAULT_PROFILE,
    readings: Mapping[str, str] | None = None,
    **options: Any,
) -> Exploration:
    """Explore a standard scope; the options are those of `explore`.

    Raises what `get_model` and `explore` do.
    """
    chosen, model = get_model(scope, profile, readings)
    found = explore(model, profile=profile, readings=chosen.as_dict(), **options)
    return pin(found)


def pin(found: Exploration) -> Exploration:
    """Return an exploration with the counts that are pinned for it, where there are any.

    Those are counts of whole explorations, state by state, under the readings of a profile.
    """
    profile = found.profile
    counts = None if profile is None else COUNTS.get((found.scope, profile))
    whole = found.result.unfinished is None and "symmetry" not in found.result.details
    if counts is None or profile is None or not whole:
        return found
    usual, _ = get_model(found.scope, profile)
    return replace(found, pinned=counts) if usual.as_dict() == found.readings else found
