"""What the fields of a protocol's state may hold, as data: the explorer counts and packs by it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reassure_spec.readings import Readings


@dataclass(frozen=True, slots=True)
class Int:
    """A whole number, both ends included."""

    low: int
    high: int | str
    """A number, or a named set that has as many members."""


@dataclass(frozen=True, slots=True)
class Flag:
    """Yes or no."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of these values, or of the members of a named set."""

    values: tuple[Any, ...] = ()
    of: str = ""


@dataclass(frozen=True, slots=True)
class SetOf:
    """A set of members of a named set."""

    of: str


@dataclass(frozen=True, slots=True)
class ListOf:
    """Members of a named set, or records with one part that is stored, in order."""

    of: "str | RecordOf"
    longest: int | str
    """How many at most: a number, or a named set that has as many."""


@dataclass(frozen=True, slots=True)
class OrNone:
    """A value, or None."""

    of: ListOf


@dataclass(frozen=True, slots=True)
class EachOf:
    """A tuple with an entry for each member of a named set, in order."""

    of: str
    what: "Domain"
    paired: bool = False
    """Whether an entry is a pair, of the member and the value."""


@dataclass(frozen=True, slots=True)
class RecordOf:
    """A record, or None. What is stored first is never None in a record."""

    make: Callable[..., Any]
    fields: Mapping[Any, "Domain"]
    """By name, in the order in which they are stored; parts that are chosen together stand
    together."""
    called: Mapping[str, str] = field(default_factory=dict)
    """What a part is called where that is not the record's name and its own, by (first) part."""
    always: bool = False
    """Whether it is never None; its parts are called by their own names."""

    def iterate_parts(self) -> "Iterator[tuple[tuple[str, ...], Domain]]":
        """Yield the parts that are chosen together, with the domain that they have."""
        for key, domain in self.fields.items():
            yield (key if isinstance(key, tuple) else (key,)), domain


@dataclass(frozen=True, slots=True)
class Held:
    """What no rule looks at, or what none of the actions looked at changes."""

    value: Any


@dataclass(frozen=True, slots=True)
class AsBegun:
    """What stays as it was at the start."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a record in its list, counted from 0."""


@dataclass(frozen=True, slots=True)
class Member:
    """The member of the set that an entry of an `EachOf` is for."""


@dataclass(frozen=True, slots=True)
class Under:
    """A domain under some readings; under the others the value is always the same."""

    readings: Callable[[Readings], bool]
    domain: "Domain"
    otherwise: Any = None


Stored = Int | Flag | OneOf | SetOf


Domain = Stored | ListOf | OrNone | EachOf | RecordOf | Held | AsBegun | Place | Member | Under


def normalise(domain: Domain, value: Any, place: Any = None) -> Any:
    """Return a value with what only counts as it was at the start."""
    match domain:
        case Held(held):
            return held
        case Place():
            return place
        case Under(_, within):
            return normalise(within, value)
        case ListOf(RecordOf() as record):
            return tuple(normalise(record, each, at) for at, each in enumerate(value))
        case EachOf(_, record, paired):
            if paired:
                return tuple((member, normalise(record, each)) for member, each in value)
            return tuple(normalise(record, each) for each in value)
        case RecordOf() if value is not None:
            parts = ((names[0], each) for names, each in domain.iterate_parts())
            settled = {
                name: normalise(each, getattr(value, name), place)
                for name, each in parts
                if not isinstance(each, Stored)
            }
            return replace(value, **settled)
    return value
