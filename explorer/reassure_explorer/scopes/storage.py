"""How the values of a machine's fields are stored in fields of the explorer's states.

A `Storage` is made of each domain that a machine declares. It says which fields there are, what
stands in them in a state as the machine sees it, and what becomes of them by a value. Records are
seen as views (`engine.views`): objects that answer to the names of a record's parts and look each
up in the explorer's state when a rule first asks. What is held is not stored at all.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from operator import attrgetter
from types import FunctionType
from typing import Any

from reassure_explorer.engine import interface
from reassure_explorer.engine.interface import Choice, Rename, SequenceOf
from reassure_explorer.engine.views import FieldView, get_changes
from reassure_model import fields as declared
from reassure_model.machine import Sets
from reassure_spec.readings import Readings

Renames = Mapping[str, Callable[[Rename, Any], Any]]
"""How the members of named sets are renamed when things that are alike change places."""


class Storage(ABC):
    """Where a value is stored."""

    @abstractmethod
    def get(self, state: Any) -> Any:
        """Return the value in a state of the explorer."""

    @abstractmethod
    def put(self, value: Any) -> dict[str, Any]:
        """Return the explorer's fields for a value."""


@dataclass(frozen=True)
class _Constant(Storage):
    """What is the same in every state."""

    value: Any

    def get(self, state: Any) -> Any:
        return self.value

    def put(self, value: Any) -> dict[str, Any]:
        return {}


@dataclass(frozen=True)
class _Field(Storage):
    """A field of its own."""

    name: str

    def get(self, state: Any) -> Any:
        return getattr(state, self.name)

    def put(self, value: Any) -> dict[str, Any]:
        return {self.name: value}


@dataclass(frozen=True)
class _List(Storage):
    """Records with one part that is stored, or several that are stored together."""

    stored: _Field
    make: Callable[[int, Any], Any]
    """From the place in the list and what is stored to the record."""
    parts: tuple[str, ...]

    def get(self, state: Any) -> Any:
        return _Listed(self.stored.get(state), self.make)

    def put(self, value: Any) -> dict[str, Any]:
        return self.stored.put(tuple(_take(each, self.parts) for each in value))


class _Listed(Sequence[Any]):
    """A list of records, made when asked for."""

    def __init__(self, stored: Sequence[Any], make: Callable[[int, Any], Any]) -> None:
        self._stored, self._make = stored, make

    def __len__(self) -> int:
        return len(self._stored)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self)[index]
        return self._make(index, self._stored[index])

    def __iter__(self) -> Iterator[Any]:
        return (self._make(at, stored) for at, stored in enumerate(self._stored))


@dataclass(frozen=True)
class _Each(Storage):
    """A tuple with an entry for each member of a set."""

    members: tuple[Any, ...]
    """Empty where entries are no pairs."""
    entries: tuple[Storage, ...]

    def get(self, state: Any) -> Any:
        found = tuple(entry.get(state) for entry in self.entries)
        return tuple(zip(self.members, found, strict=True)) if self.members else found

    def put(self, value: Any) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        for entry, each in zip(self.entries, value, strict=True):
            changes |= entry.put(each[1] if self.members else each)
        return changes


@dataclass(frozen=True)
class _Record(Storage):
    """A record, seen as a view; where there is none the field `first` is None."""

    name: str
    view: type[FieldView]
    first: str
    """Empty where there always is one."""
    together: tuple[str, ...]
    """The parts that stand in `first`."""
    places: Mapping[str, Storage]
    """By part; of those that are stored together, by the first."""
    shared: Mapping[str, tuple[str, int]]
    """Parts that are stored together: by name the first of them, and the place among them."""
    absent: Mapping[str, Any]
    """What is stored where there is no record."""

    @cached_property
    def _known(self) -> Mapping[str, Any]:
        """What is known of the record without a look at the state."""
        constants = (
            (n, place.value) for n, place in self.places.items() if isinstance(place, _Constant)
        )
        return {"_origin": self.name, **dict(constants)}

    @cached_property
    def _finders(self) -> Mapping[str, Callable[[Any], Any]]:
        """From the name of a part to what finds it in a state."""
        found = {
            name: attrgetter(place.name) if isinstance(place, _Field) else place.get
            for name, place in self.places.items()
        }
        for name, (first, at) in self.shared.items():
            found[name] = partial(_find_among, found[first], at)
        return found

    def get(self, state: Any) -> Any:
        known = self._known
        if self.first:
            stored = getattr(state, self.first)
            if stored is None:
                return None
            values = stored if len(self.together) > 1 else (stored,)
            known = {**known, **dict(zip(self.together, values, strict=True))}
        return self.view(partial(self._look_up, state), known)

    def _look_up(self, state: Any, name: str) -> Any:
        return self._finders[name](state)

    def put(self, value: Any) -> dict[str, Any]:
        if value is None:
            return dict(self.absent)
        changed = get_changes(value, self.name)
        names = self.places if changed is None else changed
        changes: dict[str, Any] = {}
        for name in names:
            first = self.shared[name][0] if name in self.shared else name
            if first in self.shared:
                parts = tuple(part for part, (of, _) in self.shared.items() if of == first)
                changes |= self.places[first].put(_take(value, parts))
            else:
                changes |= self.places[first].put(getattr(value, name))
        return changes


def _find_among(find: Callable[[Any], Any], at: int, state: Any) -> Any:
    return find(state)[at]


def _take(value: Any, parts: tuple[str, ...]) -> Any:
    """Return what is stored of a record: a part, or several together."""
    return tuple(getattr(value, p) for p in parts) if len(parts) > 1 else getattr(value, parts[0])


# Made from domains -------------------------------------------------------------------------------


@dataclass
class Storing:
    """Places for what a machine declares, and the fields that they need."""

    sets: Sets
    readings: Readings
    fields: dict[str, interface.Domain] = field(default_factory=dict)
    """The explorer's fields, in order."""
    renames: dict[str, Callable[[Rename, Any], Any]] = field(default_factory=dict)
    """How to rename what stands in a field that holds members of a set in `alike`."""
    alike: Renames = field(default_factory=dict)
    families: list[tuple[str, ...]] = field(default_factory=list)
    """Fields that change places with the members of a set in `alike`: one for each member."""

    def make_record(
        self,
        name: str,
        record: declared.RecordOf,
        begun: Any,
        mark: str = "",
        member: Any = None,
        plain: tuple[str, ...] = (),
    ) -> _Record:
        """Return the place of a record whose value is `begun` at the start.

        `mark` is put behind the names of fields, but for the parts that are `plain`; `member` is
        whom the record is for.
        """
        places: dict[str, Storage] = {}
        shared: dict[str, tuple[str, int]] = {}
        first = ""
        together: tuple[str, ...] = ()
        absent: dict[str, Any] = {}
        for parts, domain in record.iterate_parts():
            called = parts[0] if record.always else f"{name}_{parts[0]}"
            called = record.called.get(parts[0], called)
            known = len(self.fields)
            leads = not record.always and not absent
            value = None if begun is None else _take(begun, parts)
            marked = "" if parts[0] in plain else mark
            places[parts[0]] = self._make(called, domain, value, marked, member, leads=leads)
            if len(parts) > 1:
                shared |= {part: (parts[0], at) for at, part in enumerate(parts)}
            added = list(self.fields)[known:]
            if leads and added:
                first, together = added[0], parts
            absent |= {each: _find_least(self.fields[each]) for each in added}
        return _Record(
            name + mark, _make_view_type(record), first, together, places, shared, absent
        )

    def _make(
        self,
        name: str,
        domain: declared.Domain,
        begun: Any,
        mark: str,
        member: Any,
        *,
        leads: bool = False,
    ) -> Storage:
        """Return the place of a value; one that `leads` is None where there is no record."""
        absent = (None,) if leads else ()
        match domain:
            case declared.Held(value):
                return _Constant(value)
            case declared.AsBegun():
                return _Constant(begun)
            case declared.Member():
                return _Constant(member)
            case declared.Under(when, within, otherwise):
                if not when(self.readings):
                    return _Constant(otherwise)
                return self._make(name, within, begun, mark, member, leads=leads)
            case declared.RecordOf():
                return self.make_record(name, domain, begun, mark, member)
            case declared.EachOf(of, what, paired):
                members = self.sets[of]
                begins = [each[1] if paired else each for each in begun]
                marks = [f"{mark}_{at}" if len(members) > 1 else mark for at in range(len(members))]
                made, added = [], []
                for start, marked, member in zip(begins, marks, members, strict=True):
                    known = len(self.fields)
                    made.append(self._make(name, what, start, marked, member))
                    added.append(tuple(self.fields)[known:])
                if of in self.alike:
                    self.families += zip(*added, strict=True)
                return _Each(members if paired else (), tuple(made))
            case declared.ListOf(of, longest):
                return self._make_list(name + mark, of, self._count(longest))
            case declared.OrNone(listed):
                place = self._make(name, listed, begun, mark, member)
                self.fields[name + mark] = interface.Option(self.fields[name + mark])
                return place
            case declared.OneOf(values, of):
                self._add(
                    name + mark, Choice((*absent, *values, *(self.sets[of] if of else ()))), of
                )
                return _Field(name + mark)
            case declared.SetOf(of) if not absent:
                self._add(name + mark, interface.SetOf(self.sets[of]), of)
                return _Field(name + mark)
            case declared.Int(low, high) if not absent:
                return self._add(name + mark, interface.Int(low, self._count(high)))
            case declared.Flag() if not absent:
                return self._add(name + mark, interface.Flag())
        raise TypeError(f"{domain} cannot be where {name} is")

    def _make_list(self, name: str, of: str | declared.RecordOf, longest: int) -> Storage:
        if isinstance(of, str):
            self._add(name, SequenceOf(_choose(self.sets[of]), longest), of)
            return _Field(name)
        (stored,) = ((p, d) for p, d in of.iterate_parts() if isinstance(d, declared.OneOf))
        others = {p[0]: d for p, d in of.iterate_parts() if not isinstance(d, declared.OneOf)}
        parts, domain = stored
        chosen = Choice((*domain.values, *(self.sets[domain.of] if domain.of else ())))
        self._add(name, SequenceOf(chosen, longest), domain.of)
        make = partial(_make_listed, of.make, parts, tuple(others.items()))
        return _List(_Field(name), make, parts)

    def _add(self, name: str, domain: interface.Domain, of: str = "") -> Storage:
        self.fields[name] = domain
        if of in self.alike:
            self.renames[name] = partial(_rename_member, self.alike[of])
        return _Field(name)

    def _count(self, many: int | str) -> int:
        return many if isinstance(many, int) else len(self.sets[many])


def _make_listed(
    make: Callable[..., Any],
    parts: tuple[str, ...],
    others: tuple[tuple[str, declared.Domain], ...],
    at: int,
    stored: Any,
) -> Any:
    """Return the record at a place in a list."""
    values = dict(zip(parts, stored if len(parts) > 1 else (stored,), strict=True))
    for name, domain in others:
        values[name] = domain.value if isinstance(domain, declared.Held) else at
    return make(**values)


def _rename_member(renamed: Callable[[Rename, Any], Any], rename: Rename, value: Any) -> Any:
    return None if value is None else renamed(rename, value)


def _find_least(domain: interface.Domain) -> Any:
    """Return what stands in a field of a record that is not there."""
    if isinstance(domain, Choice):
        return domain.values[0]
    if isinstance(domain, interface.Int):
        return domain.low
    return frozenset() if isinstance(domain, interface.SetOf) else ()


class RecordView(FieldView):
    """A view of a record; two are equal whose parts are, compared in the order of its domain."""

    _parts: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if other is None:
            return False
        return all(getattr(self, part) == getattr(other, part) for part in self._parts)

    __hash__ = None  # type: ignore[assignment]


def _make_view_type(record: declared.RecordOf) -> type[FieldView]:
    """Return a view that has the methods and properties of a record."""
    taken: dict[str, Any] = {}
    kind = record.make
    for each in reversed(kind.__mro__[:-1]) if isinstance(kind, type) else ():
        taken |= {
            name: value
            for name, value in vars(each).items()
            if isinstance(value, property | FunctionType) and not name.startswith("_")
        }
    parts = tuple(part for names, _ in record.iterate_parts() for part in names)
    return type("MachineView", (RecordView,), {**taken, "_parts": parts})


def _choose(members: tuple[Any, ...]) -> interface.Domain:
    """Return a domain of these members, as a range where they are one."""
    numbers = all(isinstance(member, int) for member in members)
    if numbers and list(members) == list(range(members[0], members[-1] + 1)):
        return interface.Int(members[0], members[-1])
    return Choice(members)
