"""What clients ask for by znodes, and what a controller writes down of it.

That is reassignments in each of their formats, elections of preferred leaders, and tasks of
healing with the failures that they are made for.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reassure_spec.znodes.json_contents import (
    LARGEST_TIME_MS,
    BadZnode,
    PartitionKey,
    ReplicaList,
    check_version,
    load_object,
    read_flag,
    read_integer,
    read_partition_number,
    read_replicas,
    show_value,
    write_object,
)
from reassure_spec.znodes.topics import LIST, NATURAL, read_usual_list, show_list

MAX_ZNODE_BYTES: Final = 1_048_576
"""The largest request that is read; ZooKeeper's own default limit is one byte less (1 MiB - 1)."""
_REQUEST_BEGINS: Final = b'{"version":1,"assignments":{'
_AS_REQUEST: Final = re.compile(rb"%b[ !-\[\]-~]*" % re.escape(_REQUEST_BEGINS))
"""What begins like a request, and has plain characters and no backslash in it."""
_REASSIGNMENT: Final = re.compile(
    rf'{{"version":1,"top":({NATURAL}),"assignment":\[({LIST})\],"legacy":(true|false)}}'.encode()
)
"""A reassignment in flight as `encode_reassignment` writes it."""


@dataclass(frozen=True, slots=True)
class RequestZnode:
    """`/admin/reassignment_requests/request_N`: the target of each partition asked for."""

    assignments: Mapping[PartitionKey, ReplicaList]
    legacy: bool = False
    """Whether the request was made from `/admin/reassign_partitions`."""


@dataclass(frozen=True, slots=True)
class ReassignmentZnode:
    """`/admin/reassignments/T/P`: a reassignment in flight."""

    top: int
    """Length of the assignment when the first reassignment of the chain was created."""
    target: ReplicaList
    legacy: bool = False


@dataclass(frozen=True, slots=True)
class LegacyEntry:
    """One partition in `/admin/reassign_partitions`."""

    key: PartitionKey
    target: ReplicaList
    original: ReplicaList | None = None
    """Assigned replicas before the reassignment, for rollback; None where nobody wrote them."""


@dataclass(frozen=True, slots=True)
class TaskZnode:
    """`/admin/reassignment_tasks/task_N`: a task that waits for its turn or runs."""

    assignments: Mapping[PartitionKey, ReplicaList]
    automatic: bool
    """Whether the controller generated it."""


def _assignments(path: str, topics: Any) -> dict[PartitionKey, ReplicaList]:
    if not isinstance(topics, dict):
        raise BadZnode(path, "expected an object of topics under 'assignments'")
    assignments: dict[PartitionKey, ReplicaList] = {}
    for topic, partitions in topics.items():
        if not isinstance(partitions, dict):
            raise BadZnode(path, f"topic {show_value(topic)}: expected an object of partitions")
        for key, replicas in partitions.items():
            number = read_partition_number(path, key)
            assignments[topic, number] = read_replicas(path, replicas, f"{topic}-{key}")
    return assignments


def _by_topic(
    assignments: Mapping[PartitionKey, ReplicaList],
) -> dict[str, dict[str, list[int]]]:
    topics: dict[str, dict[str, list[int]]] = {}
    for (topic, partition), replicas in assignments.items():
        topics.setdefault(topic, {})[str(partition)] = list(replicas)
    return topics


def decode_request(path: str, data: bytes) -> RequestZnode:
    """Decode a reassignment request.

    Only the shape is checked: replica lists may be empty or name a broker twice. Raises BadZnode
    for anything else, a key that stands twice and content above `MAX_ZNODE_BYTES` included.
    """
    if len(data) > MAX_ZNODE_BYTES:
        raise BadZnode(path, f"{len(data)} bytes; at most {MAX_ZNODE_BYTES} are read")
    value = load_object(path, data, unique=True)
    check_version(path, value, (1,))
    unknown = sorted(set(value) - {"version", "assignments", "legacy"})
    if unknown:
        raise BadZnode(path, f"unknown keys: {', '.join(unknown)[:200]}")
    legacy = read_flag(path, value, "legacy")
    return RequestZnode(_assignments(path, value.get("assignments")), legacy)


def find_named_topics(data: bytes) -> frozenset[str] | None:
    """Return all topics that a reassignment request can be about, without reading the rest of it.

    None for one that is not written as it is nearly always: `decode_request` says what it is.

    >>> find_named_topics(encode_request(RequestZnode({("orders", 0): (1, 3)})))
    frozenset({'orders'})
    """
    if _AS_REQUEST.fullmatch(data) is None:
        return None
    # No character is spelled otherwise, so quotes stand around names alone, and what names a topic
    # has an object behind it.
    pieces = data[len(_REQUEST_BEGINS) :].split(b'"')
    named = zip(pieces[1::2], pieces[2::2], strict=False)
    return frozenset(name.decode() for name, behind in named if b"{" in behind)


def encode_request(request: RequestZnode) -> bytes:
    """Encode a reassignment request.

    >>> encode_request(RequestZnode({("orders", 0): (1, 3)}))
    b'{"version":1,"assignments":{"orders":{"0":[1,3]}}}'
    """
    value: dict[str, Any] = {"version": 1, "assignments": _by_topic(request.assignments)}
    if request.legacy:
        value["legacy"] = True
    return write_object(value)


def decode_reassignment(path: str, data: bytes) -> ReassignmentZnode:
    """Decode a reassignment in flight. Raises BadZnode when the content is not of the format."""
    usual = _REASSIGNMENT.fullmatch(data)
    if usual is not None:
        return ReassignmentZnode(int(usual[1]), read_usual_list(usual[2]), usual[3] == b"true")
    value = load_object(path, data)
    check_version(path, value, (1,))
    legacy = read_flag(path, value, "legacy")
    return ReassignmentZnode(
        top=read_integer(path, value.get("top"), "top"),
        target=read_replicas(path, value.get("assignment"), "assignment"),
        legacy=legacy,
    )


def encode_reassignment(reassignment: ReassignmentZnode) -> bytes:
    """Encode a reassignment in flight.

    >>> encode_reassignment(ReassignmentZnode(3, (1, 4)))
    b'{"version":1,"top":3,"assignment":[1,4],"legacy":false}'
    """
    target, legacy = show_list(reassignment.target), "true" if reassignment.legacy else "false"
    return (
        f'{{"version":1,"top":{reassignment.top},"assignment":{target},"legacy":{legacy}}}'.encode()
    )


def _load_partitions(path: str, data: bytes) -> list[Any]:
    """Return what stands under `partitions` in the requests of Kafka's own tools."""
    value = load_object(path, data)
    check_version(path, value, (1,))
    partitions = value.get("partitions")
    if not isinstance(partitions, list):
        raise BadZnode(path, "expected a list under 'partitions'")
    return partitions


def decode_reassign_partitions(path: str, data: bytes) -> tuple[LegacyEntry, ...]:
    """Decode `/admin/reassign_partitions`: one entry for each partition, in the client's order.

    Only the shape is checked, as for a request. Raises BadZnode for anything else, a partition that
    stands twice included.
    """
    entries: list[LegacyEntry] = []
    seen: set[PartitionKey] = set()
    for item in _load_partitions(path, data):
        if not isinstance(item, dict) or not isinstance(item.get("topic"), str):
            raise BadZnode(path, f"expected an object that names a topic, found {show_value(item)}")
        key = (item["topic"], read_integer(path, item.get("partition"), "partition"))
        what = f"{key[0]}-{key[1]}"
        if key in seen:
            raise BadZnode(path, f"{what} stands twice")
        seen.add(key)
        original = item.get("original_replicas")
        entries.append(
            LegacyEntry(
                key,
                read_replicas(path, item.get("replicas"), what),
                None if original is None else read_replicas(path, original, f"{what}, original"),
            )
        )
    return tuple(entries)


def encode_reassign_partitions(entries: Sequence[LegacyEntry]) -> bytes:
    """Encode `/admin/reassign_partitions`.

    >>> encode_reassign_partitions([LegacyEntry(("t", 0), (2, 3), (1, 2))])[13:]
    b'"partitions":[{"topic":"t","partition":0,"replicas":[2,3],"original_replicas":[1,2]}]}'
    """
    partitions: list[dict[str, Any]] = []
    for entry in entries:
        item: dict[str, Any] = {
            "topic": entry.key[0],
            "partition": entry.key[1],
            "replicas": list(entry.target),
        }
        if entry.original is not None:
            item["original_replicas"] = list(entry.original)
        partitions.append(item)
    return write_object({"version": 1, "partitions": partitions})


def encode_preferred_election(partitions: Iterable[PartitionKey]) -> bytes:
    """Encode `/admin/preferred_replica_election`.

    >>> encode_preferred_election([("foo", 0)])
    b'{"version":1,"partitions":[{"topic":"foo","partition":0}]}'
    """
    asked = [{"topic": topic, "partition": number} for topic, number in partitions]
    return write_object({"version": 1, "partitions": asked})


def decode_preferred_election(path: str, data: bytes) -> frozenset[PartitionKey]:
    """Decode `/admin/preferred_replica_election`: the partitions that are to be led as preferred.

    Raises BadZnode when the content is not of the format.
    """
    asked: set[PartitionKey] = set()
    for entry in _load_partitions(path, data):
        topic = entry.get("topic") if isinstance(entry, dict) else None
        if not isinstance(topic, str):
            raise BadZnode(path, f"expected a topic and a partition, found {show_value(entry)}")
        asked.add((topic, read_integer(path, entry.get("partition"), "partition")))
    return frozenset(asked)


def decode_failed_broker(path: str, data: bytes) -> int:
    """Decode the record of a broker's failure: the time it was missed first, in ms.

    Raises BadZnode when the content is not of the format.
    """
    value = load_object(path, data)
    return read_integer(path, value.get("failure_timestamp"), "failure_timestamp", LARGEST_TIME_MS)


def encode_failed_broker(failure_timestamp: int) -> bytes:
    """Encode the record of a broker's failure.

    >>> encode_failed_broker(1700000000000)
    b'{"failure_timestamp":1700000000000}'
    """
    return write_object({"failure_timestamp": failure_timestamp})


def decode_task(path: str, data: bytes) -> TaskZnode:
    """Decode a task. A task that does not say who made it is an operator's, and never cancelled.

    Raises BadZnode when the content is not of the format.
    """
    value = load_object(path, data, unique=True)
    check_version(path, value, (1,))
    automatic = read_flag(path, value, "isAutoGenerated")
    return TaskZnode(_assignments(path, value.get("assignments")), automatic)


def encode_task(task: TaskZnode) -> bytes:
    """Encode a task.

    >>> encode_task(TaskZnode({("t", 0): (1, 2)}, automatic=True))
    b'{"version":1,"isAutoGenerated":true,"assignments":{"t":{"0":[1,2]}}}'
    """
    return write_object(
        {
            "version": 1,
            "isAutoGenerated": task.automatic,
            "assignments": _by_topic(task.assignments),
        }
    )
