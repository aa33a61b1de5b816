"""Symmetry: states that differ only in which broker, or which partition, is which.

A permutation renames the members of the model's symmetries everywhere at once: in values, between
the fields of a family, and in the parameters of actions. States that permutations turn into each
other form an orbit; an engine that is asked to looks at one state of each, its representative.
That is sound where every permutation keeps the model as it is: its actions lead from renamed states
to renamed states, and its checks answer alike. The first state need not be symmetric.

Two things may stand in the way, and they are treated differently. Where a range or a list of
parameters is not closed (clients ask for brokers 2 and 3, never for 1 and 3) the permutation is
left out, and the group is a smaller one: `Group.as_json_dict` says which members still play the
same part. Where a rule tells members apart (compares ids, takes the smallest) the model is refused.
How closely it is looked at: the plain engine holds every representative against its images under
the generators, the derived one the states that new paths were learned from and a sample of each
level.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import permutations, product
from math import factorial, prod
from typing import Any, Final

from reassure_explorer.engine.domains import Choice, Domain, Int, Option, OutOfRange
from reassure_explorer.engine.interface import Model, ModelError, Rename
from reassure_explorer.engine.map_domain import FrozenMap, MapOf
from reassure_explorer.engine.packing import Layout
from reassure_explorer.engine.result import Trace, TraceStep
from reassure_explorer.engine.sequence_domain import SequenceOf
from reassure_explorer.engine.set_domain import SetOf

MOST_PERMUTATIONS: Final = 5040


class NotSymmetric(ModelError):
    """A rule of the model tells apart what was declared to be alike."""


@dataclass(frozen=True, slots=True)
class Permutation:
    """Which member takes the place of which, for each symmetry of a model."""

    model: Model
    images: tuple[Mapping[Hashable, Hashable], ...]

    def rename_value(self, name: str, value: Any) -> Any:
        """Return the value of a field with the members in it renamed."""
        for symmetry, image in zip(self.model.symmetries, self.images, strict=True):
            how = symmetry.values.get(name)
            if how is not None:
                value = _rename_within(
                    self.model.fields[name], value, partial(how, _make_rename(image))
                )
        return value

    def find_place(self, name: str) -> str:
        """Return the field that takes the value of this one."""
        for symmetry, image in zip(self.model.symmetries, self.images, strict=True):
            for family in symmetry.families:
                if name in family:
                    member = symmetry.members[family.index(name)]
                    name = family[symmetry.members.index(image[member])]
                    break
        return name

    def apply(self, state: Any) -> Any:
        """Return the plain state with all members renamed."""
        return self.model.state_type(
            **{
                self.find_place(name): self.rename_value(name, getattr(state, name))
                for name in self.model.fields
            }
        )

    def rename_parameter(self, action: str, parameter: Any) -> Any:
        """Return the parameter of an action with the members in it renamed."""
        for symmetry, image in zip(self.model.symmetries, self.images, strict=True):
            how = symmetry.parameters.get(action)
            if how is not None:
                parameter = how(_make_rename(image), parameter)
        return parameter

    def __str__(self) -> str:
        moved = [
            f"{symmetry.name} {member} as {image[member]}"
            for symmetry, image in zip(self.model.symmetries, self.images, strict=True)
            for member in symmetry.members
            if image[member] != member
        ]
        return ", ".join(moved) or "nothing renamed"


def _make_rename(image: Mapping[Hashable, Hashable]) -> Rename:
    def rename(value: Any) -> Any:
        # True is 1 to a dictionary; a flag is no broker.
        return value if isinstance(value, bool) else image.get(value, value)

    return rename


def _rename_within(domain: Domain, value: Any, change: Callable[[Any], Any]) -> Any:
    """Rename a member of a set, an entry of a sequence, key and value of a map, or the value."""
    match domain:
        case Option():
            return None if value is None else _rename_within(domain.inner, value, change)
        case SetOf():
            return frozenset(change(member) for member in value)
        case SequenceOf():
            return tuple(_rename_within(domain.element, entry, change) for entry in value)
        case MapOf():
            entries = value.items()
            return FrozenMap(
                (change(k), _rename_within(domain.value, v, change)) for k, v in entries
            )
    return change(value)


def list_values(domain: Domain) -> Iterator[Any]:
    """Return values that show whether renaming keeps a range: each one, or each part by itself."""
    match domain:
        case Int():
            yield from range(domain.low, domain.high + 1)
        case Choice():
            yield from domain.values
        case SetOf():
            yield from (frozenset({member}) for member in domain.members)
        case SequenceOf():
            yield from ((entry,) for entry in list_values(domain.element))
        case Option():
            yield from list_values(domain.inner)
        case MapOf():
            for key, entry in product(domain.keys, list_values(domain.value)):
                rest = dict.fromkeys(domain.keys, next(list_values(domain.value)))
                yield FrozenMap({**rest, key: entry})


@dataclass(frozen=True)
class Group:
    """The permutations that keep a model's ranges and parameters; the first changes nothing."""

    model: Model
    permutations: tuple[Permutation, ...]

    @cached_property
    def generators(self) -> tuple[Permutation, ...]:
        """Few permutations that all others are made of, one after another."""
        made = {_key(self.permutations[0])}
        chosen: list[Permutation] = []
        for permutation in self.permutations:
            if _key(permutation) not in made:
                chosen.append(permutation)
                made = _close(chosen)
        return tuple(chosen)

    @cached_property
    def _layout(self) -> Layout:
        return Layout(self.model)

    def represent(self, state: Any) -> Any:
        """Return the representative of a plain state: the one that packs to the least words."""
        return min((p.apply(state) for p in self.permutations), key=self._layout.pack)

    def as_json_dict(self) -> dict[str, Any]:
        """Return the number of permutations, and what plays the same part: lists of members."""
        described: dict[str, Any] = {"permutations": len(self.permutations)}
        for at, symmetry in enumerate(self.model.symmetries):
            parts: dict[frozenset[Any], list[Any]] = {}
            for member in symmetry.members:
                alike = frozenset(p.images[at][member] for p in self.permutations)
                parts.setdefault(alike, []).append(member)
            described[symmetry.name] = list(parts.values())
        return described


Key = tuple[tuple[Hashable, ...], ...]


def _key(permutation: Permutation) -> Key:
    pairs = zip(permutation.model.symmetries, permutation.images, strict=True)
    return tuple(tuple(image[m] for m in symmetry.members) for symmetry, image in pairs)


def _close(generators: list[Permutation]) -> set[Key]:
    """Return all that the generators make."""
    symmetries = generators[0].model.symmetries
    made = {tuple(symmetry.members for symmetry in symmetries)}
    fresh = list(made)
    while fresh:
        key = fresh.pop()
        for generator in generators:
            after = tuple(
                tuple(image[member] for member in part)
                for image, part in zip(generator.images, key, strict=True)
            )
            if after not in made:
                made.add(after)
                fresh.append(after)
    return made


def make_group(model: Model) -> Group:
    """Return the permutations that keep the model's ranges and lists of parameters.

    Raises ModelError for a model that declares no symmetry, and where there are too many.
    """
    if not model.symmetries:
        raise ModelError(f"model {model.name} declares no symmetry; explore it without")
    size = prod(factorial(len(symmetry.members)) for symmetry in model.symmetries)
    if size > MOST_PERMUTATIONS:
        raise ModelError(
            f"model {model.name}: {size:,} permutations are more than {MOST_PERMUTATIONS:,}; "
            "declare fewer members to be alike"
        )
    choices = product(
        *(
            [dict(zip(each.members, places, strict=True)) for places in permutations(each.members)]
            for each in model.symmetries
        )
    )
    candidates = (Permutation(model, images) for images in choices)
    return Group(model, tuple(p for p in candidates if _is_allowed(p)))


def _is_allowed(permutation: Permutation) -> bool:
    model = permutation.model
    for name, domain in model.fields.items():
        target = model.fields[permutation.find_place(name)]
        for value in list_values(domain):
            try:
                target.normalise(permutation.rename_value(name, value))
            except OutOfRange:
                return False
    return all(
        permutation.rename_parameter(action.name, parameter) in action.parameters
        for action, parameter in model.instances
    )


# Checking, on plain states -----------------------------------------------------------------------


def check_symmetric(group: Group, state: Any) -> None:
    """Compare a state with its images under the generators: steps and checks must be alike.

    Raises NotSymmetric, which names the action or check, the state and the field.
    """
    for permutation in group.generators:
        image = permutation.apply(state)
        for action, parameter in group.model.instances:
            renamed = permutation.rename_parameter(action.name, parameter)
            here = group.model.take(state, action, parameter)
            there = Counter(after for after, _ in group.model.take(image, action, renamed))
            expected = Counter(permutation.apply(after) for after, _ in here)
            if expected != there:
                words = f"{action.describe(parameter)} in {state}", action.describe(renamed)
                lacking, beyond = (
                    next(iter(some), None) for some in (expected - there, there - expected)
                )
                raise make_error(permutation, *words, lacking, beyond)
        for invariant in group.model.invariants:
            if (invariant.explain(state) is None) != (invariant.explain(image) is None):
                raise make_check_error(permutation, invariant.name, state)
        for goal in group.model.goals:
            if bool(goal.reached(state)) != bool(goal.reached(image)):
                raise make_check_error(permutation, goal.name, state)
        if group.model.is_terminal(state) != group.model.is_terminal(image):
            raise make_check_error(permutation, "`terminal`", state)
        if group.model.is_within(state) != group.model.is_within(image):
            raise make_check_error(permutation, "the constraint", state)


def make_error(
    permutation: Permutation, here: str, there: str, expected: Any, found: Any
) -> NotSymmetric:
    """Return the error for a step that is another one when its state is renamed."""
    if expected is None or found is None:
        what = "is possible there only" if expected is None else "is not possible there"
    else:
        name = next(n for n in expected._fields if getattr(expected, n) != getattr(found, n))
        what = f"leaves field {name} at {getattr(found, name)!r}, not {getattr(expected, name)!r}"
    return NotSymmetric(
        f"model {permutation.model.name} is not symmetric: {here}; with {permutation} it becomes "
        f"{there}, which {what}. A rule compares members by their order, or a field that holds "
        "members is not declared. Declare what is alike, or explore without symmetry"
    )


def make_check_error(permutation: Permutation, name: str, state: Any) -> NotSymmetric:
    """Return the error for a check that answers otherwise when its state is renamed."""
    return NotSymmetric(
        f"model {permutation.model.name} is not symmetric: {name} does not answer alike for "
        f"{state} and for the same with {permutation}. Declare what is alike, or explore without "
        "symmetry"
    )


# Telling -----------------------------------------------------------------------------------------


def undo_permutations(group: Group, representatives: list[Any]) -> Trace:
    """Return a trace of the model itself that goes through these orbits, one step for each.

    Any state stands for its orbit: engines that pack states differently choose different ones.
    Raises NotSymmetric where a step cannot be found.
    """
    representatives = [group.represent(state) for state in representatives]
    firsts = group.model.initial_states
    state = initial = next(s for s in firsts if group.represent(s) == representatives[0])
    steps: list[TraceStep] = []
    for representative in representatives[1:]:
        for action, parameter in group.model.instances:
            ways = group.model.take(state, action, parameter)
            after = next((s for s, _ in ways if group.represent(s) == representative), None)
            if after is not None:
                break
        else:
            raise NotSymmetric(
                f"model {group.model.name} is not symmetric: no step leads from {state} to a "
                f"state like {representative}; explore without symmetry"
            )
        state = after
        steps.append(TraceStep(action.name, parameter, action.describe(parameter), state))
    return Trace(initial, tuple(steps))
