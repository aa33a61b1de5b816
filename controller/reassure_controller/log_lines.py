"""What a process logs, as text for people or as JSON lines.

Modules log with the standard library, in words. Who is about something says so around it (`about`),
and every line from within has it as keys: `topic`, `partition`, `point`. Lines of a process have
`role`, `broker` and `controller_epoch` besides. As text, the words say it.
"""

import logging
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from structlog.typing import Processor

Form = Literal["text", "json"]
_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_KEYS: Final[ContextVar[Mapping[str, object]]] = ContextVar("keys of lines", default={})  # noqa: B039


class _About:
    """Adds keys to those that lines carry, while it is entered."""

    __slots__ = ("_before", "_keys")
    _before: Token[Mapping[str, object]]

    def __init__(self, keys: Mapping[str, object]) -> None:
        self._keys = keys

    def __enter__(self) -> None:
        self._before = _KEYS.set({**_KEYS.get(), **self._keys})

    def __exit__(self, *_: object) -> None:
        _KEYS.reset(self._before)


def about(**keys: object) -> AbstractContextManager[None]:
    """Have every line that this thread logs while it is entered carry the keys."""
    return _About(keys)


def _add_keys(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Add to a line what it is about."""
    for name, value in _KEYS.get().items():
        event.setdefault(name, value)
    return event


class Speaker:
    """Who logs: a process by its role and id, and the controller epoch that it knows."""

    def __init__(self, role: str, broker: int) -> None:
        self._role = role
        self._broker = broker
        self.find_epoch: Callable[[], int] = lambda: 0

    def __call__(
        self, _logger: object, _method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Add the keys to a line."""
        own = {
            "role": self._role,
            "broker": self._broker,
            "controller_epoch": self.find_epoch(),
        }
        for name, value in own.items():
            event.setdefault(name, value)
        return event


def set_up(form: Form, level: str, speaker: Speaker) -> None:
    """Log to standard error from now on, unless somebody else looks after that already."""
    formatter = logging.Formatter(_TEXT) if form == "text" else _make_json_formatter(speaker)
    handler = logging.StreamHandler()
    handler.setFormatter(formatter)
    logging.basicConfig(level=level, handlers=[handler])
    logging.getLogger("kazoo").setLevel(logging.ERROR)


def _make_json_formatter(speaker: Speaker) -> logging.Formatter:
    import structlog  # takes longer to load than all of this room

    added: list[Processor] = [
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_keys,
        speaker,
    ]
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=added,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
    )
