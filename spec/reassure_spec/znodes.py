"""Znode paths and contents: Kafka's own formats, and those of the KIP-236 request protocol.

Paths are relative to a cluster's chroot. Contents are JSON whose key order means nothing, so
contents are compared as decoded records, never as bytes. Decoding checks the *shape* and raises
`BadZnode`; whether a well-formed request makes sense (does the partition exist, is a replica named
twice) is a rule, and rules are the model's and the controller's own business.
"""

import json
import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

PartitionKey = tuple[str, int]
"""(topic, partition)."""
ReplicaList = tuple[int, ...]
"""Broker ids in order."""

NO_LEADER: Final = -1
"""The leader id that says there is none."""
MAX_ZNODE_BYTES: Final = 1_048_576
"""The largest request that is read; ZooKeeper's own default limit is one byte less (1 MiB - 1)."""
LARGEST_INT: Final = 2**31 - 1
"""The largest id, epoch or partition number: Kafka's are integers of 32 bits."""
_SMALLEST_INT: Final = -LARGEST_INT
LARGEST_PORT: Final = 2**16 - 1
LARGEST_TIME_MS: Final = 2**63 - 1

CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
BROKER_IDS: Final = "/brokers/ids"
TOPICS: Final = "/brokers/topics"
CONFIGS: Final = "/config"
TOPIC_CONFIGS: Final = "/config/topics"
BROKER_CONFIGS: Final = "/config/brokers"
REASSIGNMENT_REQUESTS: Final = "/admin/reassignment_requests"
REASSIGNMENTS: Final = "/admin/reassignments"
REASSIGN_PARTITIONS: Final = "/admin/reassign_partitions"
FAILED_BROKERS: Final = "/admin/failed_brokers"
REASSIGNMENT_TASKS: Final = "/admin/reassignment_tasks"
PREFERRED_ELECTION: Final = "/admin/preferred_replica_election"
DELETED_TOPICS: Final = "/admin/delete_topics"
DEFAULT_BROKER_CONFIG: Final = "/config/brokers/<default>"
REQUEST_PREFIX: Final = "request_"
TASK_PREFIX: Final = "task_"
UNCLEAN: Final = "unclean.leader.election.enable"
MIN_ISR: Final = "min.insync.replicas"
MESSAGE_BYTES: Final = "message.max.bytes"
"""The setting of a broker; a topic has one of another name."""
TOPIC_MESSAGE_BYTES: Final = "max.message.bytes"
"""The setting of a topic that the protocol reads."""

PERSISTENT_ROOTS: Final = (
    BROKER_IDS,
    TOPICS,
    TOPIC_CONFIGS,
    BROKER_CONFIGS,
    REASSIGNMENT_REQUESTS,
    REASSIGNMENTS,
)
"""Paths that exist, without data, before a controller is elected."""

_TOPIC_KEYS: Final = frozenset({"version", "partitions", "adding_replicas", "removing_replicas"})
_NATURAL: Final = "(?:0|[1-9][0-9]{0,8})"
_LEADER: Final = f'"leader":(?P<leader>-1|{_NATURAL})'
_LEADER_EPOCH: Final = f'"leader_epoch":(?P<leader_epoch>{_NATURAL})'
_TERM: Final = f'"controller_epoch":(?P<controller_epoch>{_NATURAL})'
_STATE_AS_HERE: Final = re.compile(f'{{"version":1,{_LEADER},{_LEADER_EPOCH},{_TERM}'.encode())
_STATE_AS_KAFKAS: Final = re.compile(f'{{{_TERM},{_LEADER},"version":1,{_LEADER_EPOCH}'.encode())
"""How states begin nearly always, by `encode_state` and by Kafka."""
_STATE_PARTS: Final = ("leader", "leader_epoch", "controller_epoch")
_ISR: Final = b',"isr":['
_LIST: Final = f"(?:{_NATURAL}(?:,{_NATURAL})*)?"
_STATE_ENDS: Final = re.compile(rf"({_LIST})\]}}".encode())
"""How they end then, behind `_ISR`."""
_REASSIGNMENT: Final = re.compile(
    rf'{{"version":1,"top":({_NATURAL}),"assignment":\[({_LIST})\],"legacy":(true|false)}}'.encode()
)
"""A reassignment in flight as `encode_reassignment` writes it."""
_PARTITIONS: Final = b'"partitions":{'
_PARTITION: Final = re.compile(rf'"({_NATURAL})":\[({_LIST})'.encode())
"""How a partition is written nearly always in the znode of its topic, without the last bracket."""
_REMEMBERED: Final = 100_000
"""How many pieces of contents are remembered with what they say, some 300 bytes each. Few clusters
have as many: what is written differs from what was there in one place."""
_write_json: Final = json.JSONEncoder(separators=(",", ":")).encode
_read_value: Final = json.JSONDecoder().raw_decode
_REQUEST_NAME: Final = re.compile(r"request_([0-9]{10})")
_REQUEST_BEGINS: Final = b'{"version":1,"assignments":{'
_AS_REQUEST: Final = re.compile(rb"%b[ !-\[\]-~]*" % re.escape(_REQUEST_BEGINS))
"""What begins like a request, and has plain characters and no backslash in it."""
_TASK_NAME: Final = re.compile(r"task_([0-9]{10})")
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_FIRST_NUMBERS: Final = {str(number): number for number in range(1000)}
"""Nearly all that are met, so that these cost a look only."""


class BadZnode(ValueError):
    """A znode whose name or content is not of the documented format."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class StateZnode:
    """`/brokers/topics/T/partitions/P/state`: leader and in-sync replicas."""

    leader: int
    """Broker id of the leader, or `NO_LEADER`."""
    leader_epoch: int
    controller_epoch: int
    """Epoch of the controller that wrote the leader last."""
    isr: ReplicaList
    """In-sync replicas, in stored order (which means nothing)."""
    recovering: bool | None = None
    """Whether Kafka marks the leader as elected without being in sync; None before 3.2, which says
    nothing of it."""


@dataclass(frozen=True, slots=True)
class AssignmentZnode:
    """One partition in `/brokers/topics/T`, version 2 and later."""

    replicas: ReplicaList
    adding: ReplicaList = ()
    removing: ReplicaList = ()


@dataclass(frozen=True, slots=True)
class RequestZnode:
    """`/admin/reassignment_requests/request_N`: the target of each partition asked for."""

    assignments: Mapping[PartitionKey, ReplicaList]
    legacy: bool = False
    """Whether the request was made from `/admin/reassign_partitions`."""


@dataclass(frozen=True, slots=True)
class TaskZnode:
    """`/admin/reassignment_tasks/task_N`: a task that waits for its turn or runs."""

    assignments: Mapping[PartitionKey, ReplicaList]
    automatic: bool
    """Whether the controller generated it."""


@dataclass(frozen=True, slots=True)
class LegacyEntry:
    """One partition in `/admin/reassign_partitions`."""

    key: PartitionKey
    target: ReplicaList
    original: ReplicaList | None = None
    """Assigned replicas before the reassignment, for rollback; None where nobody wrote them."""


@dataclass(frozen=True, slots=True)
class ReassignmentZnode:
    """`/admin/reassignments/T/P`: a reassignment in flight."""

    top: int
    """Length of the assignment when the first reassignment of the chain was created."""
    target: ReplicaList
    legacy: bool = False


def topic_path(topic: str) -> str:
    """Return the path of the znode that holds a topic's assignment."""
    return f"{TOPICS}/{topic}"


def partition_path(topic: str, partition: int) -> str:
    """Return the path of a partition's own znode, the parent of its state."""
    return f"{TOPICS}/{topic}/partitions/{partition}"


def state_path(topic: str, partition: int) -> str:
    """Return the path of a partition's leader and in-sync replicas."""
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def reassignment_path(topic: str, partition: int) -> str:
    """Return the path of a partition's reassignment in flight."""
    return f"{REASSIGNMENTS}/{topic}/{partition}"


def request_path(sequence: int) -> str:
    """Return the path of the request with this sequence number.

    >>> request_path(7)
    '/admin/reassignment_requests/request_0000000007'
    """
    return f"{REASSIGNMENT_REQUESTS}/{REQUEST_PREFIX}{sequence:010d}"


def failed_broker_path(broker: int) -> str:
    """Return the path of the record of a broker's failure."""
    return f"{FAILED_BROKERS}/{broker}"


def task_path(number: int) -> str:
    """Return the path of the task with this number.

    >>> task_path(7)
    '/admin/reassignment_tasks/task_0000000007'
    """
    return f"{REASSIGNMENT_TASKS}/{TASK_PREFIX}{number:010d}"


def broker_path(broker: int) -> str:
    """Return the path of a broker's registration."""
    return f"{BROKER_IDS}/{broker}"


def broker_config_path(broker: int) -> str:
    """Return the path of a broker's configuration, which outlives its registration."""
    return f"{BROKER_CONFIGS}/{broker}"


def topic_config_path(topic: str) -> str:
    """Return the path of a topic's configuration."""
    return f"{TOPIC_CONFIGS}/{topic}"


def parse_request_name(name: str) -> int | None:
    """Return the sequence number in the name of a request znode, or None when it is not one.

    >>> parse_request_name("request_0000000012"), parse_request_name("request_12")
    (12, None)
    """
    match = _REQUEST_NAME.fullmatch(name)
    return int(match[1]) if match else None


def parse_task_name(name: str) -> int | None:
    """Return the number in the name of a task, or None when it is not one.

    >>> parse_task_name("task_0000000012"), parse_task_name("task_12")
    (12, None)
    """
    match = _TASK_NAME.fullmatch(name)
    return int(match[1]) if match else None


def parse_number(text: str) -> int | None:
    """Return the id, epoch or partition number that a text is, or None when it is not one.

    Only the digits that Kafka writes count: no sign, no space, no zero in front, no digit of
    another script, nothing above 32 bits.

    >>> parse_number("12"), parse_number("012"), parse_number("²"), parse_number("9" * 5000)
    (12, None, None, None)
    """
    number = _FIRST_NUMBERS.get(text)
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
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"key {_show(key)} stands twice")
            seen.add(key)
    return value


def _show(value: Any) -> str:
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


def _load(path: str, data: bytes, *, unique: bool = False) -> dict[str, Any]:
    try:
        value = json.loads(data, object_pairs_hook=_unique) if unique else _read_json(data)
    except (ValueError, RecursionError) as error:
        raise BadZnode(path, f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadZnode(path, f"expected a JSON object, found {type(value).__name__}")
    return value


def _check_version(path: str, value: dict[str, Any], versions: tuple[int, ...]) -> None:
    version = value.get("version")
    if type(version) is not int or version not in versions:
        expected = " or ".join(map(str, versions))
        raise BadZnode(path, f"expected version {expected}, found {_show(version)}")


def _integer(path: str, value: Any, what: str, largest: int = LARGEST_INT) -> int:
    if type(value) is not int:
        raise BadZnode(path, f"{what}: expected an integer, found {_show(value)}")
    if not -largest <= value <= largest:
        raise BadZnode(path, f"{what}: expected at most {largest}, found {_show(value)}")
    return value


def _replicas(path: str, value: Any, what: str, number: int | None = None) -> ReplicaList:
    # What it is is put into words only where something is wrong with it.
    if type(value) is not list:
        found = f"expected a list of broker ids, found {_show(value)}"
        raise BadZnode(path, f"{_name(what, number)}: {found}")
    for entry in value:
        if type(entry) is not int or not _SMALLEST_INT <= entry <= LARGEST_INT:
            _integer(path, entry, _name(what, number))
    return tuple(value)


def _name(what: str, number: int | None) -> str:
    return what if number is None else f"{what} {number}"


def _partition_number(path: str, key: str) -> int:
    number = parse_number(key)
    if number is None:
        raise BadZnode(path, f"expected a partition number, found {_show(key)}")
    return number


def _assignments(path: str, topics: Any) -> dict[PartitionKey, ReplicaList]:
    if not isinstance(topics, dict):
        raise BadZnode(path, "expected an object of topics under 'assignments'")
    assignments: dict[PartitionKey, ReplicaList] = {}
    for topic, partitions in topics.items():
        if not isinstance(partitions, dict):
            raise BadZnode(path, f"topic {_show(topic)}: expected an object of partitions")
        for key, replicas in partitions.items():
            number = _partition_number(path, key)
            assignments[topic, number] = _replicas(path, replicas, f"{topic}-{key}")
    return assignments


def _by_topic(
    assignments: Mapping[PartitionKey, ReplicaList],
) -> dict[str, dict[str, list[int]]]:
    topics: dict[str, dict[str, list[int]]] = {}
    for (topic, partition), replicas in assignments.items():
        topics.setdefault(topic, {})[str(partition)] = list(replicas)
    return topics


def _dump(value: Mapping[str, Any]) -> bytes:
    return _write_json(value).encode()


def decode_topic(path: str, data: bytes) -> dict[int, ReplicaList]:
    """Decode `/brokers/topics/T` (versions 1 to 3): assigned replicas by partition.

    Raises BadZnode when the content is not of the format.
    """
    return decode_topic_and_extras(path, data)[0]


def decode_topic_and_extras(
    path: str, data: bytes
) -> tuple[dict[int, ReplicaList], dict[str, Any]]:
    """Do what `decode_topic` does, and return what stands beside assignments, as a topic id.

    >>> decode_topic_and_extras("/t", b'{"version":3,"topic_id":"x","partitions":{"0":[1]}}')
    ({0: (1,)}, {'topic_id': 'x'})
    """
    assigned, _, extras = _read_topic(path, data)
    return assigned, extras


_Topic = tuple[dict[int, ReplicaList], dict[str, Any], dict[str, Any]]
"""Replicas by partition, all that stands beside them, and what of that is no list of replicas. The
latter two are shared, and never changed."""


def _read_topic(path: str, data: bytes) -> _Topic:
    usual = _read_usual_topic(data)
    if usual is not None:
        return usual
    value = _load(path, data)
    _check_version(path, value, (1, 2, 3))
    partitions = value.get("partitions")
    if not isinstance(partitions, dict):
        raise BadZnode(path, "expected an object under 'partitions'")
    assigned = {}
    for key, replicas in partitions.items():
        number = _FIRST_NUMBERS.get(key)
        if number is None:
            number = _partition_number(path, key)
        assigned[number] = _replicas(path, replicas, "partition", number)
    return assigned, value, _leave_lists_out(value)


def _leave_lists_out(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: what for name, what in value.items() if name not in _TOPIC_KEYS}


def _read_usual_topic(data: bytes) -> _Topic | None:
    """Read a topic's znode piece by piece, for nearly all pieces stood there before.

    None for what is not written as it is nearly always.
    """
    begins, _, rest = data.partition(_PARTITIONS)
    partitions, _, ends = rest.partition(b"]}")
    beside = None if not ends else _read_beside(begins, ends)
    if beside is None:
        return None
    try:
        return dict(map(_read_partition, partitions.split(b"],"))), *beside
    except BadZnode:
        return None


class _Partitions(dict[bytes, tuple[int, ReplicaList]]):
    """What partitions of topics' znodes say, by how they are written. Raises BadZnode."""

    def __missing__(self, text: bytes) -> tuple[int, ReplicaList]:
        usual = _PARTITION.fullmatch(text)
        if usual is None:
            raise BadZnode("", "written as partitions rarely are")
        if len(self) >= _REMEMBERED:
            self.clear()
        found = self[text] = (int(usual[1]), _read_list(usual[2]))
        return found


_read_partition: Final = _Partitions().__getitem__


@lru_cache(maxsize=10_000)
def _read_beside(begins: bytes, ends: bytes) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Read what stands before and behind the partitions of a topic, None if not as usual."""
    data = begins + _PARTITIONS + b"}" + ends
    try:
        value = _load("", data)
        _check_version("", value, (1, 2, 3))
    except BadZnode:
        return None
    # Where the name stands elsewhere as well, or may by another spelling, it may be that one.
    is_usual = value.get("partitions") == {} and data.count(b'"partitions"') == 1
    return (value, _leave_lists_out(value)) if is_usual and b"\\" not in data else None


def encode_topic(partitions: Mapping[int, ReplicaList], topic_id: str = "") -> bytes:
    """Encode `/brokers/topics/T`: version 1, or with a topic id version 3.

    >>> encode_topic({0: (1, 2)})
    b'{"version":1,"partitions":{"0":[1,2]}}'
    """
    if not topic_id:
        parts = [_show_partition(n, partitions[n]) for n in sorted(partitions)]
        return f'{{"version":1,"partitions":{{{",".join(parts)}}}}}'.encode()
    content = {str(number): list(replicas) for number, replicas in sorted(partitions.items())}
    lists: dict[str, list[int]] = {}
    extras = {"topic_id": topic_id, "adding_replicas": lists, "removing_replicas": lists}
    return _dump({"version": 3, "partitions": content, **extras})


def replace_assigned(data: bytes, partition: int, assigned: ReplicaList) -> bytes:
    """Return the content of `/brokers/topics/T`, of any version, with one assignment replaced.

    What else stands there (other partitions, a topic id) is kept as it is. What was being added to
    or removed from the partition itself goes, as it spoke of the assignment that is replaced.

    >>> replace_assigned(b'{"version":1,"partitions":{"0":[1],"1":[2]}}', 1, (3,))
    b'{"version":1,"partitions":{"0":[1],"1":[3]}}'
    """
    value = json.loads(data)
    value["partitions"][str(partition)] = list(assigned)
    for name in ("adding_replicas", "removing_replicas"):
        if isinstance(value.get(name), dict):
            value[name].pop(str(partition), None)
    return _dump(value)


def decode_topic_lists(path: str, data: bytes) -> dict[int, AssignmentZnode]:
    """Decode `/brokers/topics/T` (versions 1 to 3) with what is being added and removed.

    Version 1 has no such lists; a topic id (version 3) is left out. Raises BadZnode when the
    content is not of the format, names a partition that is not there, or adds or removes a replica
    that is not assigned.
    """
    assigned, value, _ = _read_topic(path, data)
    lists: dict[str, dict[int, ReplicaList]] = {}
    for name in ("adding_replicas", "removing_replicas"):
        by_partition = value.get(name, {})
        if not isinstance(by_partition, dict):
            raise BadZnode(path, f"expected an object under {name!r}")
        lists[name] = {
            _partition_number(path, key): _replicas(path, replicas, f"{name}, partition {key}")
            for key, replicas in by_partition.items()
        }
        for number, replicas in lists[name].items():
            strangers = [r for r in replicas if r not in assigned.get(number, ())]
            if strangers:
                raise BadZnode(path, f"{name}: {strangers} are not assigned to {number}")
    adding, removing = lists["adding_replicas"], lists["removing_replicas"]
    return {
        number: AssignmentZnode(replicas, adding.get(number, ()), removing.get(number, ()))
        for number, replicas in assigned.items()
    }


def encode_topic_lists(partitions: Mapping[int, AssignmentZnode]) -> bytes:
    """Encode `/brokers/topics/T` (version 2).

    >>> encode_topic_lists({0: AssignmentZnode((2, 1), (2,), (1,))})[:49]
    b'{"version":2,"partitions":{"0":[2,1]},"adding_rep'
    """
    ordered = sorted(partitions.items())
    return _dump(
        {
            "version": 2,
            "partitions": {str(n): list(a.replicas) for n, a in ordered},
            "adding_replicas": {str(n): list(a.adding) for n, a in ordered if a.adding},
            "removing_replicas": {str(n): list(a.removing) for n, a in ordered if a.removing},
        }
    )


def decode_state(path: str, data: bytes) -> StateZnode:
    """Decode a partition's `/state`. Raises BadZnode when the content is not of the format."""
    usual = read_usual_state(data)
    if usual is not None:
        return StateZnode(*usual)
    value = _load(path, data)
    _check_version(path, value, (1,))
    recovery = value.get("leader_recovery_state")
    return StateZnode(
        leader=_integer(path, value.get("leader"), "leader"),
        leader_epoch=_integer(path, value.get("leader_epoch"), "leader_epoch"),
        controller_epoch=_integer(path, value.get("controller_epoch"), "controller_epoch"),
        isr=_replicas(path, value.get("isr"), "isr"),
        recovering=None if recovery is None else recovery == 1,
    )


def read_usual_state(data: bytes) -> tuple[int, int, int, ReplicaList] | None:
    """Return leader, leader epoch, controller epoch and in-sync set, in the order of `StateZnode`.

    None for content that is not written as it is nearly always: `decode_state` says what it is.

    >>> read_usual_state(encode_state(StateZnode(1, 2, 3, (1, 4))))
    (1, 2, 3, (1, 4))
    """
    begins, _, ends = data.partition(_ISR)
    numbers, isr = _read_state_beginning(begins), _read_state_end(ends)
    if numbers is None or isr is None:
        return None
    leader, leader_epoch, controller_epoch = numbers
    return leader, leader_epoch, controller_epoch, isr


@lru_cache(maxsize=_REMEMBERED)
def _read_state_beginning(text: bytes) -> tuple[int, int, int] | None:
    usual = (_STATE_AS_HERE if text[:3] == b'{"v' else _STATE_AS_KAFKAS).fullmatch(text)
    if usual is None:
        return None
    leader, leader_epoch, controller_epoch = usual.group(*_STATE_PARTS)
    return int(leader), int(leader_epoch), int(controller_epoch)


@lru_cache(maxsize=_REMEMBERED)
def _read_state_end(text: bytes) -> ReplicaList | None:
    usual = _STATE_ENDS.fullmatch(text)
    return None if usual is None else _read_list(usual[1])


def _read_list(text: bytes) -> ReplicaList:
    return tuple(map(int, text.split(b","))) if text else ()


def encode_state(state: StateZnode) -> bytes:
    """Encode a partition's `/state`.

    >>> encode_state(StateZnode(1, 2, 3, (1, 4)))
    b'{"version":1,"leader":1,"leader_epoch":2,"controller_epoch":3,"isr":[1,4]}'
    """
    numbers = state.leader, state.leader_epoch, state.controller_epoch
    return write_usual_state(*numbers, state.isr)


def write_usual_state(
    leader: int, leader_epoch: int, controller_epoch: int, isr: ReplicaList
) -> bytes:
    """Return what `read_usual_state` reads."""
    # By hand, as are the other two that are written most: it takes a fifth of the time.
    epochs = f'"leader_epoch":{leader_epoch},"controller_epoch":{controller_epoch}'
    return f'{{"version":1,"leader":{leader},{epochs},"isr":{_show_list(isr)}}}'.encode()


@lru_cache(maxsize=_REMEMBERED)
def _show_partition(number: int, replicas: ReplicaList) -> str:
    return f'"{number}":{_show_list(replicas)}'


@lru_cache(maxsize=_REMEMBERED)
def _show_list(replicas: ReplicaList) -> str:
    return f"[{','.join(map(str, replicas))}]"


def decode_request(path: str, data: bytes) -> RequestZnode:
    """Decode a reassignment request.

    Only the shape is checked: replica lists may be empty or name a broker twice. Raises BadZnode
    for anything else, a key that stands twice and content above `MAX_ZNODE_BYTES` included.
    """
    if len(data) > MAX_ZNODE_BYTES:
        raise BadZnode(path, f"{len(data)} bytes; at most {MAX_ZNODE_BYTES} are read")
    value = _load(path, data, unique=True)
    _check_version(path, value, (1,))
    unknown = sorted(set(value) - {"version", "assignments", "legacy"})
    if unknown:
        raise BadZnode(path, f"unknown keys: {', '.join(unknown)[:200]}")
    legacy = value.get("legacy", False)
    if not isinstance(legacy, bool):
        raise BadZnode(path, f"legacy: expected true or false, found {_show(legacy)}")
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
    return _dump(value)


def decode_reassignment(path: str, data: bytes) -> ReassignmentZnode:
    """Decode a reassignment in flight. Raises BadZnode when the content is not of the format."""
    usual = _REASSIGNMENT.fullmatch(data)
    if usual is not None:
        return ReassignmentZnode(int(usual[1]), _read_list(usual[2]), usual[3] == b"true")
    value = _load(path, data)
    _check_version(path, value, (1,))
    legacy = value.get("legacy", False)
    if not isinstance(legacy, bool):
        raise BadZnode(path, f"legacy: expected true or false, found {_show(legacy)}")
    return ReassignmentZnode(
        top=_integer(path, value.get("top"), "top"),
        target=_replicas(path, value.get("assignment"), "assignment"),
        legacy=legacy,
    )


def encode_reassignment(reassignment: ReassignmentZnode) -> bytes:
    """Encode a reassignment in flight.

    >>> encode_reassignment(ReassignmentZnode(3, (1, 4)))
    b'{"version":1,"top":3,"assignment":[1,4],"legacy":false}'
    """
    target, legacy = _show_list(reassignment.target), "true" if reassignment.legacy else "false"
    return (
        f'{{"version":1,"top":{reassignment.top},"assignment":{target},"legacy":{legacy}}}'.encode()
    )


def decode_failed_broker(path: str, data: bytes) -> int:
    """Decode the record of a broker's failure: the time it was missed first, in ms.

    Raises BadZnode when the content is not of the format.
    """
    value = _load(path, data)
    return _integer(path, value.get("failure_timestamp"), "failure_timestamp", LARGEST_TIME_MS)


def encode_failed_broker(failure_timestamp: int) -> bytes:
    """Encode the record of a broker's failure.

    >>> encode_failed_broker(1700000000000)
    b'{"failure_timestamp":1700000000000}'
    """
    return _dump({"failure_timestamp": failure_timestamp})


def decode_task(path: str, data: bytes) -> TaskZnode:
    """Decode a task. A task that does not say who made it is an operator's, and never cancelled.

    Raises BadZnode when the content is not of the format.
    """
    value = _load(path, data, unique=True)
    _check_version(path, value, (1,))
    automatic = value.get("isAutoGenerated", False)
    if not isinstance(automatic, bool):
        raise BadZnode(path, f"isAutoGenerated: expected true or false, found {_show(automatic)}")
    return TaskZnode(_assignments(path, value.get("assignments")), automatic)


def encode_task(task: TaskZnode) -> bytes:
    """Encode a task.

    >>> encode_task(TaskZnode({("t", 0): (1, 2)}, automatic=True))
    b'{"version":1,"isAutoGenerated":true,"assignments":{"t":{"0":[1,2]}}}'
    """
    return _dump(
        {
            "version": 1,
            "isAutoGenerated": task.automatic,
            "assignments": _by_topic(task.assignments),
        }
    )


def decode_reassign_partitions(path: str, data: bytes) -> tuple[LegacyEntry, ...]:
    """Decode `/admin/reassign_partitions`: one entry for each partition, in the client's order.

    Only the shape is checked, as for a request. Raises BadZnode for anything else, a partition that
    stands twice included.
    """
    value = _load(path, data)
    _check_version(path, value, (1,))
    partitions = value.get("partitions")
    if not isinstance(partitions, list):
        raise BadZnode(path, "expected a list under 'partitions'")
    entries: list[LegacyEntry] = []
    seen: set[PartitionKey] = set()
    for item in partitions:
        if not isinstance(item, dict) or not isinstance(item.get("topic"), str):
            raise BadZnode(path, f"expected an object that names a topic, found {_show(item)}")
        key = (item["topic"], _integer(path, item.get("partition"), "partition"))
        what = f"{key[0]}-{key[1]}"
        if key in seen:
            raise BadZnode(path, f"{what} stands twice")
        seen.add(key)
        original = item.get("original_replicas")
        entries.append(
            LegacyEntry(
                key,
                _replicas(path, item.get("replicas"), what),
                None if original is None else _replicas(path, original, f"{what}, original"),
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
    return _dump({"version": 1, "partitions": partitions})


def decode_controller(path: str, data: bytes) -> int:
    """Decode `/controller` (versions 1 and 2) to the broker id of the controller."""
    value = _load(path, data)
    _check_version(path, value, (1, 2))
    return _integer(path, value.get("brokerid"), "brokerid")


def decode_controller_address(path: str, data: bytes) -> tuple[str, int] | None:
    """Decode where the controller listens, None where `/controller` does not say.

    Kafka's controllers are brokers, which say it in their registration.
    """
    value = _load(path, data)
    host = value.get("host")
    return (host, _integer(path, value.get("port"), "port")) if isinstance(host, str) else None


def decode_controller_protocols(path: str, data: bytes) -> frozenset[str] | None:
    """Decode which protocols the controller serves, None where `/controller` does not say.

    Those of Kafka never say.
    """
    names = _load(path, data).get("protocols")
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadZnode(path, f"protocols: expected a list of names, found {_show(names)}")
    return frozenset(names)


def encode_controller(
    broker: int,
    timestamp_ms: int,
    address: tuple[str, int] | None = None,
    protocols: Iterable[str] = (),
) -> bytes:
    """Encode `/controller` (version 1), with where the controller listens, and what it serves.

    >>> encode_controller(100, 5, ("127.0.0.1", 9))
    b'{"version":1,"brokerid":100,"timestamp":"5","host":"127.0.0.1","port":9}'
    >>> encode_controller(100, 5, protocols=("topics",))
    b'{"version":1,"brokerid":100,"timestamp":"5","protocols":["topics"]}'
    """
    value: dict[str, Any] = {"version": 1, "brokerid": broker, "timestamp": str(timestamp_ms)}
    if address is not None:
        value |= {"host": address[0], "port": address[1]}
    if named := list(protocols):
        value["protocols"] = named
    return _dump(value)


def decode_controller_epoch(path: str, data: bytes) -> int:
    """Decode `/controller_epoch`, which is plain text."""
    epoch = parse_number(data[:40].decode("ascii", "replace"))
    if epoch is None:
        raise BadZnode(path, f"expected an epoch in digits, found {data[:40]!r}")
    return epoch


def encode_controller_epoch(epoch: int) -> bytes:
    """Encode `/controller_epoch`."""
    return str(epoch).encode()


def encode_broker(host: str, port: int, timestamp_ms: int, rack: str | None = None) -> bytes:
    """Encode a broker's registration (version 4), with its rack where it has one."""
    content = {
        "version": 4,
        "host": host,
        "port": port,
        "jmx_port": -1,
        "timestamp": str(timestamp_ms),
        "endpoints": [f"PLAINTEXT://{host}:{port}"],
        "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
    }
    return _dump(content if rack is None else {**content, "rack": rack})


def decode_broker(path: str, data: bytes) -> tuple[str, int]:
    """Decode a broker's registration (versions 1 to 5) to its host and port."""
    value = _load(path, data)
    _check_version(path, value, (1, 2, 3, 4, 5))
    host = value.get("host")
    if not isinstance(host, str):
        raise BadZnode(path, f"host: expected text, found {_show(host)}")
    return host, _integer(path, value.get("port"), "port", LARGEST_PORT)


def decode_rack(path: str, data: bytes) -> str | None:
    """Decode a broker's registration (versions 1 to 5) to its rack, None where it names none."""
    value = _load(path, data)
    _check_version(path, value, (1, 2, 3, 4, 5))
    rack = value.get("rack")
    if rack is not None and not isinstance(rack, str):
        raise BadZnode(path, f"rack: expected text, found {_show(rack)}")
    return rack


def decode_config(path: str, data: bytes) -> dict[str, str]:
    """Decode `/config/topics/T` or `/config/brokers/ID`: settings by name, all of them text."""
    value = _load(path, data)
    _check_version(path, value, (1,))
    config = value.get("config")
    if not isinstance(config, dict) or not all(isinstance(v, str) for v in config.values()):
        raise BadZnode(path, "expected an object of texts under 'config'")
    return config


def parse_limit(path: str, config: Mapping[str, str], name: str) -> int | None:
    """Return a setting that is a whole number, None where the settings do not say.

    Raises BadZnode where it is no number, with the path of the znode that they were read from.
    """
    text = config.get(name)
    if text is None:
        return None
    limit = parse_number(text.strip())
    if limit is None:
        raise BadZnode(path, f"{name}: expected a number, found {_show(text)}")
    return limit


def parse_unclean(path: str, config: Mapping[str, str]) -> bool | None:
    """Return `unclean.leader.election.enable` of settings, None where they do not say.

    Raises BadZnode where it is neither true nor false.
    """
    text = config.get(UNCLEAN)
    if text is None:
        return None
    if text.strip().lower() not in ("true", "false"):
        raise BadZnode(path, f"{UNCLEAN}: expected true or false, found {_show(text)}")
    return text.strip().lower() == "true"


def deleted_topic_path(topic: str) -> str:
    """Return the path by which a client asks for a topic to be deleted.

    >>> deleted_topic_path("orders")
    '/admin/delete_topics/orders'
    """
    return f"{DELETED_TOPICS}/{topic}"


def encode_preferred_election(partitions: Iterable[PartitionKey]) -> bytes:
    """Encode `/admin/preferred_replica_election`.

    >>> encode_preferred_election([("foo", 0)])
    b'{"version":1,"partitions":[{"topic":"foo","partition":0}]}'
    """
    asked = [{"topic": topic, "partition": number} for topic, number in partitions]
    return _dump({"version": 1, "partitions": asked})


def decode_preferred_election(path: str, data: bytes) -> frozenset[PartitionKey]:
    """Decode `/admin/preferred_replica_election`: the partitions that are to be led as preferred.

    Raises BadZnode when the content is not of the format.
    """
    value = _load(path, data)
    _check_version(path, value, (1,))
    partitions = value.get("partitions")
    if not isinstance(partitions, list):
        raise BadZnode(path, "expected a list under 'partitions'")
    asked: set[PartitionKey] = set()
    for entry in partitions:
        topic = entry.get("topic") if isinstance(entry, dict) else None
        if not isinstance(topic, str):
            raise BadZnode(path, f"expected a topic and a partition, found {_show(entry)}")
        asked.add((topic, _integer(path, entry.get("partition"), "partition")))
    return frozenset(asked)


def encode_config(config: Mapping[str, str]) -> bytes:
    """Encode `/config/topics/T` or `/config/brokers/ID`."""
    return _dump({"version": 1, "config": dict(config)})
