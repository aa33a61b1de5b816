"""Views: records of the model whose fields are looked up in an explorer's state when asked for."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final


class View:
    """Stands for a record of the model and answers to its field names.

    `look_up` answers for the fields that were not changed, `known` for those it was asked before.
    The rules make new records with `dataclasses.replace`, which would copy, and so read, every
    field. Of a view it finds no fields to copy, and then calls what `__class__` answers with the
    changes. Where the record has methods or properties, a subclass takes them over by name.
    """

    __dataclass_fields__: Final[dict[str, Any]] = {}

    def __init__(
        self,
        look_up: Callable[[str], Any],
        known: dict[str, Any] | None = None,
        changes: Mapping[str, Any] | None = None,
    ) -> None:
        self._look_up, self._changes = look_up, changes or {}
        self._known: dict[str, Any] = {} if known is None else known
        # What stands here is found without `__getattr__`, which costs a call each time.
        self.__dict__.update(self._changes)

    def __getattr__(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = self._look_up(name)
        value = self.__dict__[name] = self._known[name]
        return value

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return partial(_change, self)

    def __repr__(self) -> str:
        # Rules put states into messages that nobody reads here; that must not read fields.
        return "<view>"


def _change(view: View, **changes: Any) -> View:
    return type(view)(view._look_up, view._known, {**view._changes, **changes})  # noqa: SLF001


def get_changes(record: Any) -> Mapping[str, Any] | None:
    """Return the fields that a view changes, None for a record that is new altogether."""
    return record._changes if isinstance(record, View) else None  # noqa: SLF001
