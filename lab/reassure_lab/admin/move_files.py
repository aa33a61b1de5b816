"""The files of Kafka's reassignment tool: which topics to move, and which replicas go where.

Both are JSON with a `version`, which is 1 where it is left out. As with Kafka, keys that are not
known mean nothing. What is wrong is told with the line that it stands on.
"""

import json
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from reassure_lab.admin.errors import BadFile
from reassure_spec.znodes import LARGEST_INT, PartitionKey, ReplicaList

VERSION: Final = 1
ANY_DIRECTORY: Final = "any"
"""The only log directory that can be asked for: others are the brokers' own matter."""


@dataclass(frozen=True, slots=True)
class FilePlace:
    """Where something was read."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class PartitionMove:
    """One partition of a file, and the replicas that it is to have."""

    key: PartitionKey
    target: ReplicaList
    source: FilePlace


@dataclass(frozen=True, slots=True)
class NamedTopic:
    """One topic of a file."""

    name: str
    source: FilePlace


class _Object(dict[str, Any]):
    """A JSON object that knows on which line it begins."""

    line = 1


class _Decoder(json.JSONDecoder):
    """Decodes JSON with the line of each object, and no key twice in one."""

    parse_object: Callable[..., tuple[Any, int]]

    def __init__(self) -> None:
        super().__init__()
        self._parse_plain = self.parse_object
        self.parse_object = self._parse_with_line
        # The scanner in C does not ask for `parse_object`.
        self.scan_once = json.scanner.py_make_scanner(self)  # type: ignore[attr-defined]

    def _parse_with_line(
        self, begin: tuple[str, int], strict: bool, scan_once: Any, *_: Any
    ) -> tuple[_Object, int]:
        text, start = begin
        pairs, end = self._parse_plain(begin, strict, scan_once, None, list, {})
        found = _Object(pairs)
        found.line = 1 + text.count("\n", 0, start)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise json.JSONDecodeError(f"key {twice!r} stands twice", text, start)
        return found, end


def _read(path: Path) -> _Object:
    file = str(path)
    try:
        value = _Decoder().decode(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise BadFile(file, error.lineno, f"not JSON: {error.msg}") from error
    except UnicodeDecodeError as error:
        raise BadFile(file, 1, f"not UTF-8: {error.reason} at byte {error.start}") from error
    except RecursionError as error:
        raise BadFile(file, 1, "not a reassignment: brackets within brackets") from error
    if not isinstance(value, _Object):
        raise BadFile(file, 1, f"expected a JSON object, found {reprlib.repr(value)}")
    version = value.get("version", VERSION)
    if version != VERSION or type(version) is not int:
        found = f"Not supported version field value {reprlib.repr(version)}"
        raise BadFile(file, value.line, f"{found}; expected {VERSION}")
    return value


def _list_entries(path: Path, name: str, empty: str) -> list[_Object]:
    value = _read(path)
    entries = value.get(name, [])
    if not isinstance(entries, list):
        found = reprlib.repr(entries)
        raise BadFile(str(path), value.line, f"{name}: expected a list, found {found}")
    if not entries:
        raise BadFile(str(path), value.line, f"{empty}: nothing stands under {name!r}")
    for entry in entries:
        if not isinstance(entry, _Object):
            found = reprlib.repr(entry)
            raise BadFile(str(path), value.line, f"{name}: expected objects, found {found}")
    return entries


def read_topics(path: Path) -> tuple[NamedTopic, ...]:
    """Read a file of topics to move. Raises BadFile, OSError."""
    topics: dict[str, NamedTopic] = {}
    for entry in _list_entries(path, "topics", "List of topics to reassign cannot be empty"):
        name = _take_topic(path, entry)
        if name in topics:
            reason = f"List of topics to reassign contains duplicate entries: {name}"
            raise BadFile(str(path), entry.line, reason)
        topics[name] = NamedTopic(name, FilePlace(str(path), entry.line))
    return tuple(topics.values())


def read_moves(path: Path) -> tuple[PartitionMove, ...]:
    """Read a file of replicas by partition. Raises BadFile, OSError."""
    moves: dict[PartitionKey, PartitionMove] = {}
    empty = "Partition reassignment list cannot be empty"
    for entry in _list_entries(path, "partitions", empty):
        key = _take_topic(path, entry), _take_number(path, entry, "partition")
        if key in moves:
            name = f"{key[0]}-{key[1]}"
            reason = f"Partition reassignment contains duplicate topic partitions: {name}"
            raise BadFile(str(path), entry.line, reason)
        moves[key] = PartitionMove(
            key, _take_replicas(path, entry), FilePlace(str(path), entry.line)
        )
    return tuple(moves.values())


def _take_topic(path: Path, entry: _Object) -> str:
    topic = entry.get("topic")
    if not isinstance(topic, str) or not topic:
        found = reprlib.repr(topic)
        raise BadFile(str(path), entry.line, f"topic: expected a name, found {found}")
    return topic


def _take_number(path: Path, entry: _Object, name: str) -> int:
    number = entry.get(name)
    if type(number) is not int or not 0 <= number <= LARGEST_INT:
        found = reprlib.repr(number)
        raise BadFile(str(path), entry.line, f"{name}: expected a number, found {found}")
    return number


def _take_replicas(path: Path, entry: _Object) -> ReplicaList:
    replicas, directories = entry.get("replicas"), entry.get("log_dirs")
    where = f"{entry['topic']}-{entry['partition']}"
    reason = ""
    if not isinstance(replicas, list) or not all(_is_id(replica) for replica in replicas):
        reason = f"{where}: replicas: expected broker ids, found {reprlib.repr(replicas)}"
    elif not replicas:
        reason = f"{where}: Partition replica list cannot be empty"
    elif len(set(replicas)) < len(replicas):
        twice = ",".join(dict.fromkeys(str(r) for r in replicas if replicas.count(r) > 1))
        reason = "Partition replica lists may not contain duplicate entries: "
        reason += f"{where} contains multiple entries for {twice}"
    elif directories is not None and directories != [ANY_DIRECTORY] * len(replicas):
        reason = f"{where}: log_dirs: expected {ANY_DIRECTORY!r} for each replica, found "
        reason += f"{reprlib.repr(directories)}; directories cannot be chosen through ZooKeeper"
    if reason:
        raise BadFile(str(path), entry.line, reason)
    assert isinstance(replicas, list)
    return tuple(replicas)


def _is_id(value: object) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_INT


def list_moves(assignment: Mapping[PartitionKey, ReplicaList]) -> dict[str, Any]:
    """Return an assignment as a file of Kafka's has it, in order."""
    return {
        "version": VERSION,
        "partitions": [
            {
                "topic": topic,
                "partition": partition,
                "replicas": list(replicas),
                "log_dirs": [ANY_DIRECTORY] * len(replicas),
            }
            for (topic, partition), replicas in sorted(assignment.items())
        ],
    }


def format_moves(assignment: Mapping[PartitionKey, ReplicaList]) -> str:
    """Return an assignment as Kafka's tool prints it.

    >>> format_moves({("t", 0): (1,)})
    '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1],"log_dirs":["any"]}]}'
    """
    return json.dumps(list_moves(assignment), separators=(",", ":"))
