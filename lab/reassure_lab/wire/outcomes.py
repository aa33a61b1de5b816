"""Which errors a response tells of, whatever its kind: they stand in it at several depths."""

from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, get_args, get_origin

from kio.schema.errors import ErrorCode


def find_errors(response: object) -> set[ErrorCode]:
    """Return the errors of a response, as a whole and of what is in it; none where all is well."""
    codes, parts = _list_fields(type(response))  # type: ignore[arg-type]  # a class is hashable
    found = {getattr(response, name) for name in codes} - {ErrorCode.none}
    for name in parts:
        for part in getattr(response, name):
            found |= find_errors(part)
    return found


@cache
def _list_fields(kind: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the fields that are error codes, and those that have parts in which there may be."""
    codes = tuple(one.name for one in fields(kind) if one.type is ErrorCode)
    parts = tuple(
        one.name
        for one in fields(kind)
        if get_origin(one.type) is tuple and is_dataclass(get_args(one.type)[0])
    )
    return codes, parts
