"""What contents of znodes are read and written with: their types, and JSON that is checked."""

import json
import re
import reprlib
from collections.abc import Mapping
from typing import Any, Final

PartitionKey = tuple[str, int]
"""(topic, partition)."""
ReplicaList = tuple[int, ...]
"""Broker ids in order."""
NO_LEADER: Final = -1
"""The leader id that says there is none."""
LARGEST_INT: Final = 2**31 - 1
"""The largest id, epoch or partition number: Kafka's are integers of 32 bits."""
_SMALLEST_INT: Final = -LARGEST_INT
LARGEST_PORT: Final = 2**16 - 1
LARGEST_TIME_MS: Final = 2**63 - 1
write_json: Final = json.JSONEncoder(separators=(",", ":")).encode
_read_value: Final = json.JSONDecoder().raw_decode
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,9}")
FIRST_NUMBERS: Final = {str(number): number for number in range(1000)}
"""Nearly all that are met, so that these cost a look only."""


class BadZnode(ValueError):
    """A znode whose name or content is not of the documented format."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


def parse_number(text: str) -> int | None:
    """Return the id, epoch or partition number that a text is, or None when it is not one.

    Only the digits that Kafka writes count: no sign, no space, no zero in front, no digit of
    another script, nothing above 32 bits.

    >>> parse_number("12"), parse_number("012"), parse_number("²"), parse_number("9" * 5000)
    (12, None, None, None)
    """
    number = FIRST_NUMBERS.get(text)
    if number is not None:
        return number
    if not _NUMBER.fullmatch(text):
        return None
    number = int(text)
    return number if number <= LARGEST_INT else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:  # one way: there are fewer keys than pairs
            if key in seen:
                raise ValueError(f"key {show_value(key)} stands twice")
            seen.add(key)
    return value


def show_value(value: Any) -> str:
    """Return a value that is not what was expected, short enough for an error."""
    return reprlib.repr(value)


def _read_json(data: bytes) -> Any:
    """Do what `json.loads` does, in half the time where nothing unusual is in the way."""
    try:
        text = data.decode()
        value, end = _read_value(text)
        if end == len(text):
            return value
    except ValueError:
        pass  # told by what follows
    return json.loads(data)


def load_object(path: str, data: bytes, *, unique: bool = False) -> dict[str, Any]:
    """Return a content that is a JSON object; `unique` refuses keys that stand twice."""
    try:
        value = json.loads(data, object_pairs_hook=_unique) if unique else _read_json(data)
    except (ValueError, RecursionError) as error:
        raise BadZnode(path, f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadZnode(path, f"expected a JSON object, found {type(value).__name__}")
    return value


def check_version(path: str, value: dict[str, Any], versions: tuple[int, ...]) -> None:
    """Refuse a content of another version."""
    version = value.get("version")
    if type(version) is not int or version not in versions:
        expected = " or ".join(map(str, versions))
        raise BadZnode(path, f"expected version {expected}, found {show_value(version)}")


def read_integer(path: str, value: Any, what: str, largest: int = LARGEST_INT) -> int:
    """Return an integer of a content; `what` names it in errors."""
    if type(value) is not int:
        raise BadZnode(path, f"{what}: expected an integer, found {show_value(value)}")
    if not -largest <= value <= largest:
        raise BadZnode(path, f"{what}: expected at most {largest}, found {show_value(value)}")
    return value


def read_replicas(path: str, value: Any, what: str, number: int | None = None) -> ReplicaList:
    """Return a list of broker ids; `what`, with its number, names it in errors."""
    # What it is is put into words only where something is wrong with it.
    if type(value) is not list:
        found = f"expected a list of broker ids, found {show_value(value)}"
        raise BadZnode(path, f"{_name(what, number)}: {found}")
    for entry in value:
        if type(entry) is not int or not _SMALLEST_INT <= entry <= LARGEST_INT:
            read_integer(path, entry, _name(what, number))
    return tuple(value)


def _name(what: str, number: int | None) -> str:
    return what if number is None else f"{what} {number}"


def read_partition_number(path: str, key: str) -> int:
    """Return the partition number that a key is."""
    number = parse_number(key)
    if number is None:
        raise BadZnode(path, f"expected a partition number, found {show_value(key)}")
    return number


def read_flag(path: str, value: Mapping[str, Any], name: str) -> bool:
    """Return a truth of a content, False where it does not say."""
    flag = value.get(name, False)
    if not isinstance(flag, bool):
        raise BadZnode(path, f"{name}: expected true or false, found {show_value(flag)}")
    return flag


def write_object(value: Mapping[str, Any]) -> bytes:
    """Return a content as compact JSON."""
    return write_json(value).encode()
