"""Views: records of the model whose fields are looked up in an explorer's state when asked for."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final


class FieldView:
    """Stands for a record of the model and answers to its field names.

    `look_up` answers for a field when it is first asked for, but for those that are `known`. The
    rules make new records with `dataclasses.replace`, which would copy, and so read, every field.
    Of a view it finds no fields to copy, and then calls what `__class__` answers with the changes.
    Where the record has methods or properties, a subclass takes them over by name.
    """

    __dataclass_fields__: Final[dict[str, Any]] = {}
    _look_up: Callable[[str], Any]
    _changes: Mapping[str, Any]
    _origin = ""
    """Where it was looked up; given among what is known."""

    def __init__(
        self, look_up: Callable[[str], Any], known: Mapping[str, Any] | None = None
    ) -> None:
        # Fields stand among the attributes, where they are found without a call.
        own = self.__dict__
        if known is not None:
            own.update(known)
        own["_look_up"], own["_changes"] = look_up, {}

    def __getattr__(self, name: str) -> Any:
        value = self.__dict__[name] = self._look_up(name)
        return value

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return partial(_change, self)

    def __repr__(self) -> str:
        # Rules put states into messages that nobody reads here; that must not read fields.
        return "<view>"


def _change(view: FieldView, **changes: Any) -> FieldView:
    """Return a view with other values in some fields; what was looked up before stays known."""
    made = object.__new__(type(view))
    own, before = made.__dict__, view.__dict__
    own.update(before)
    own.update(changes)
    own["_changes"] = {**before["_changes"], **changes}
    return made


def get_changes(record: Any, origin: str = "") -> Mapping[str, Any] | None:
    """Return the fields that a view changes, None for a record that is new altogether.

    So is a view that was looked up elsewhere than in `origin`, where that is given.
    """
    if not isinstance(record, FieldView) or record._origin != origin:  # noqa: SLF001
        return None
    return record._changes  # noqa: SLF001
