"""Findings about steps, each with the shortest trace that shows it.

`INSTANCES` says for each finding (`reassure_spec.findings`) in which scope, profile and readings
it comes out, which invariant it breaks there and in how many steps; `derive` finds the trace anew.
Most have a small world of their own (`protocols/NAME/counterexamples.toml`), the others a standard
scope (`instances.toml` there).

`sweep` goes the other way: it settles every reading of a scope otherwise, one at a time, and says
what is broken then and is not broken otherwise.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from reassure_explorer.counterexamples import list_counterexamples
from reassure_explorer.engine.explore import explore
from reassure_explorer.engine.interface import Model
from reassure_explorer.engine.result import Trace
from reassure_explorer.scopes.catalogue import get_model, get_scope
from reassure_spec.findings import findings_of_reading
from reassure_spec.protocols import read_parts
from reassure_spec.readings import READINGS, get_profile
from reassure_spec.rooms import get_room

LIVENESS: Final = "liveness"
"""Stands for an invariant where the trace is a lasso; its steps are those of stem and cycle."""


@dataclass(frozen=True, slots=True)
class Instance:
    """Where a finding comes out as a shortest trace."""

    finding: str
    scope: str
    invariant: str
    """The clause that is broken, or `LIVENESS`."""
    steps: int
    readings: Mapping[str, str] = field(default_factory=dict)
    """Readings that differ from those of the profile."""
    profile: str = ""
    """The profile that is looked at."""


INSTANCES: Final = (
    *(
        Instance(**{"profile": get_scope(each["scope"]).profile} | each)
        for _, tables in read_parts("reassure_explorer", "instances.toml")
        for each in tables["instances"]
    ),
    *(
        Instance(each.finding, each.name, each.clause, each.steps, each.readings, each.profile)
        for each in list_counterexamples()
    ),
)
"""Every finding that an exploration shows, with the length of the shortest trace."""


def narrow(model: Model, invariant: str) -> Model:
    """Return the model with one invariant and no goal, so that the search ends with its trace."""
    wanted = tuple(check for check in model.invariants if check.name == invariant)
    if not wanted:
        raise KeyError(f"model {model.name} has no invariant {invariant!r}")
    return replace(model, invariants=wanted, goals=())


def derive(instance: Instance) -> Trace | None:
    """Return the shortest trace of an instance, stem and cycle of a lasso in one; None if none."""
    _, model = get_model(instance.scope, instance.profile, instance.readings)
    if instance.invariant == LIVENESS:
        from reassure_explorer.engine.liveness import check_liveness

        lasso = check_liveness(model).lasso
        if lasso is None:
            return None
        return Trace(lasso.stem.initial, (*lasso.stem.steps, *lasso.cycle))
    found = explore(narrow(model, instance.invariant)).result.violations
    return found[0].trace if found else None


@dataclass(frozen=True, slots=True)
class Difference:
    """What settling one reading otherwise breaks, or mends, in a scope."""

    scope: str
    reading: str
    value: str
    broken: Mapping[str, int]
    """Invariants that hold otherwise, with the steps of the shortest trace."""
    mended: tuple[str, ...]
    """Invariants that are broken otherwise."""
    findings: tuple[str, ...]
    """Findings of the register that speak of the reading; what is broken without one is news."""


def sweep(
    scope: str, profile: str = "", names: Sequence[str] | None = None
) -> Iterator[Difference]:
    """Settle each reading otherwise, one after the other, and yield what differs in a scope.

    `names` are the readings that are looked at, without it all. A value that changes nothing is
    left out, and so is one that is not carried out here. Raises UnknownScope, UnknownReading.
    """
    found_scope = get_scope(scope)
    chosen, room = profile or found_scope.profile, get_room(found_scope.room)
    usual = get_profile(chosen).as_dict()
    base = _find_broken(scope, chosen, {})
    for reading in READINGS:
        if names is not None and reading.name not in names:
            continue
        for value in reading.values:
            if value == usual[reading.name] or room.find_refusal(reading.name, value):
                continue
            found = _find_broken(scope, chosen, {reading.name: value})
            broken = {name: steps for name, steps in found.items() if name not in base}
            mended = tuple(name for name in base if name not in found)
            if broken or mended:
                known = tuple(finding.id for finding in findings_of_reading(reading.name))
                yield Difference(scope, reading.name, value, broken, mended, known)


def _find_broken(scope: str, profile: str, readings: Mapping[str, str]) -> dict[str, int]:
    _, model = get_model(scope, profile, readings)
    result = explore(model, keep_going=True).result
    return {violation.invariant: len(violation.trace.steps) for violation in result.violations}
