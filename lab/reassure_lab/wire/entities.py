"""Our values as kio's entities, of any version, and back.

An entity has the fields of its version, with kio's types for times. A value has the fields of all
versions: what a version lacks is dropped on the way there, and has its default on the way back.
"""

import dataclasses
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar, get_args, get_type_hints

_MS: Final = timedelta(milliseconds=1)
_TIMES: Final = ("timedelta_i32", "timedelta_i64")

Made = TypeVar("Made")


class _FieldPair(NamedTuple):
    """A field that both have: its names, and what is done to its content."""

    ours: str
    theirs: str
    there: Callable[[Any], Any]
    back: Callable[[Any], Any]


class _Plan(NamedTuple):
    """How a type of values and a type of entities are made of each other."""

    fields: tuple[_FieldPair, ...]
    blanks: dict[str, Any]
    """What an entity needs and a value does not have."""


def to_entity(entity_type: type[Made], value: Any) -> Made:
    """Return the entity that says what the value says."""
    fields, blanks = _plan(entity_type, type(value))
    content = {one.theirs: one.there(getattr(value, one.ours)) for one in fields}
    return entity_type(**blanks, **content)


def from_entity(value_type: type[Made], entity: Any) -> Made:
    """Return the value that says what the entity says."""
    fields, _ = _plan(type(entity), value_type)
    return value_type(**{one.ours: one.back(getattr(entity, one.theirs)) for one in fields})


def fill(kind: Any, content: Mapping[str, Any]) -> Any:
    """Return the entity that says what of the content its version has, by kio's names.

    What the version has besides is empty, or has kio's default.
    """
    return kind(
        **{
            part.name: blank
            if part.name not in content
            else content[part.name]
            if part.kind is None
            else tuple(fill(part.kind, one) for one in content[part.name])
            for part, blank in _list_parts(kind)
        }
    )


class _Part(NamedTuple):
    """A field of an entity."""

    name: str
    kind: type | None
    """What its content is made of, None where that is no entity."""


@cache
def _list_parts(kind: Any) -> tuple[tuple[_Part, Any], ...]:
    """Return the fields of entities, each with what stands there where nothing is to be said."""
    hints = get_type_hints(kind)
    return tuple(
        (_Part(field.name, _find_dataclass(hints[field.name])), _find_blank(field))
        for field in dataclasses.fields(kind)
    )


def _find_blank(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    told = field.metadata.get("kafka_type") or ""
    if told in _TIMES:
        return 0 * _MS
    return 0 if told.startswith("int") else None if told == "uuid" else ()


_plans: Final[dict[tuple[type, type], _Plan]] = {}


def _plan(entity_type: type, value_type: type) -> _Plan:
    key = (entity_type, value_type)
    if key not in _plans:
        _plans[key] = _make_plan(*key)
    return _plans[key]


def _make_plan(entity_type: Any, value_type: Any) -> _Plan:
    entity_hints, value_hints = get_type_hints(entity_type), get_type_hints(value_type)
    found, blanks = [], {}
    for field in dataclasses.fields(entity_type):
        is_time = field.metadata.get("kafka_type") in _TIMES
        ours = f"{field.name}_ms" if is_time else field.name
        if ours in value_hints:
            inner = _find_dataclass(entity_hints[field.name]), _find_dataclass(value_hints[ours])
            there, back = _times() if is_time else _nested(*inner)
            found.append(_FieldPair(ours, field.name, there, back))
        elif field.default is dataclasses.MISSING:
            blanks[field.name] = 0 * _MS if is_time else ()
    return _Plan(tuple(found), blanks)


def _find_dataclass(hint: Any) -> type | None:
    """Return the dataclass in a type such as `tuple[X, ...] | None`."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return hint
    inner = (_find_dataclass(argument) for argument in get_args(hint))
    return next((one for one in inner if one is not None), None)


def _times() -> tuple[Callable[[int], timedelta], Callable[[timedelta], int]]:
    return (lambda value: value * _MS), (lambda entity: entity // _MS)


def _nested(
    entity_type: type | None, value_type: type | None
) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    if entity_type is None or value_type is None:
        return _same, _same
    return (
        lambda values: values and tuple(to_entity(entity_type, one) for one in values),
        lambda entities: entities and tuple(from_entity(value_type, one) for one in entities),
    )


def _same(content: Any) -> Any:
    return content
