"""Requests that no broker here carries out, and their refusals: groups and transactions.

They are understood as far as it takes to refuse each of their parts: a client that finds a
coordinator and then hears no waits for nothing, as it would if there were no coordinator.
"""

import dataclasses
from datetime import timedelta
from functools import cache
from typing import Any, Final, get_args, get_type_hints

from kio.index import load_response_schema
from kio.schema.errors import ErrorCode

from reassure_lab.wire.messages import KioMessage

REFUSED: Final = {
    8: range(2, 7),  # OffsetCommit
    9: range(1, 6),  # OffsetFetch
    11: range(5),  # JoinGroup
    12: range(3),  # Heartbeat
    13: range(3),  # LeaveGroup
    14: range(3),  # SyncGroup
}
"""By key: the versions of Kafka 2.3."""


load_response = cache(load_response_schema)


def refuse(request: KioMessage) -> KioMessage:
    """Return the response in which everything is refused."""
    asked = request.entity
    return KioMessage(_refuse(load_response(asked.__api_key__, asked.__version__), asked))


def _refuse(kind: Any, asked: Any) -> Any:
    """Return a part of a response: what a part of the request says as well is repeated."""
    hints = get_type_hints(kind)
    content: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        hint, there = hints[field.name], getattr(asked, field.name, None)
        inner = next((one for one in get_args(hint) if dataclasses.is_dataclass(one)), None)
        if hint is ErrorCode:
            content[field.name] = ErrorCode.unsupported_version
        elif field.name == "partition_index" and isinstance(asked, int):
            content[field.name] = asked
        elif inner is not None:
            parts: Any = there or getattr(asked, "partition_indexes", ())
            content[field.name] = tuple(_refuse(inner, one) for one in parts)
        elif there is not None:
            content[field.name] = there
        elif field.default is dataclasses.MISSING:
            content[field.name] = _make_nothing(field.metadata.get("kafka_type", ""), hint)
    return kind(**content)


def _make_nothing(kafka_type: str, hint: Any) -> Any:
    if kafka_type.startswith("timedelta"):
        return timedelta()
    if kafka_type.startswith("int"):
        return -1
    return {"string": "", "bytes": b"", "bool": False}.get(kafka_type, ())
