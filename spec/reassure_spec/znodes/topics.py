"""What stands in the znodes of topics and partitions: who is assigned, who leads and is in sync.

They are written and read most, so what is written as it is nearly always is read by hand.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from reassure_spec.znodes.json_contents import (
    FIRST_NUMBERS,
    BadZnode,
    ReplicaList,
    check_version,
    load_object,
    read_integer,
    read_partition_number,
    read_replicas,
    write_json,
    write_object,
)

_CHANGES: Final = ("adding_replicas", "removing_replicas")
_TOPIC_KEYS: Final = frozenset({"version", "partitions", *_CHANGES})
NATURAL: Final = "(?:0|[1-9][0-9]{0,8})"
_LEADER: Final = f'"leader":(?P<leader>-1|{NATURAL})'
_LEADER_EPOCH: Final = f'"leader_epoch":(?P<leader_epoch>{NATURAL})'
_TERM: Final = f'"controller_epoch":(?P<controller_epoch>{NATURAL})'
_STATE_AS_HERE: Final = re.compile(f'{{"version":1,{_LEADER},{_LEADER_EPOCH},{_TERM}'.encode())
_STATE_AS_KAFKAS: Final = re.compile(f'{{{_TERM},{_LEADER},"version":1,{_LEADER_EPOCH}'.encode())
"""How states begin nearly always, by `encode_state` and by Kafka."""
_STATE_PARTS: Final = ("leader", "leader_epoch", "controller_epoch")
_ISR: Final = b',"isr":['
LIST: Final = f"(?:{NATURAL}(?:,{NATURAL})*)?"
_STATE_ENDS: Final = re.compile(rf"({LIST})\]}}".encode())
"""How they end then, behind `_ISR`."""
_PARTITIONS: Final = b'"partitions":{'
_PARTITION: Final = re.compile(rf'"({NATURAL})":\[({LIST})'.encode())
"""How a partition is written nearly always in the znode of its topic, without the last bracket."""
_REMEMBERED: Final = 100_000
"""How many pieces of contents are remembered with what they say, some 300 bytes each. Few clusters
have as many: what is written differs from what was there in one place."""


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
    value = load_object(path, data)
    check_version(path, value, (1, 2, 3))
    partitions = value.get("partitions")
    if not isinstance(partitions, dict):
        raise BadZnode(path, "expected an object under 'partitions'")
    assigned = {}
    for key, replicas in partitions.items():
        number = FIRST_NUMBERS.get(key)
        if number is None:
            number = read_partition_number(path, key)
        assigned[number] = read_replicas(path, replicas, "partition", number)
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
        found = self[text] = (int(usual[1]), read_usual_list(usual[2]))
        return found


_read_partition: Final = _Partitions().__getitem__


@lru_cache(maxsize=10_000)
def _read_beside(begins: bytes, ends: bytes) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Read what stands before and behind the partitions of a topic, None if not as usual."""
    data = begins + _PARTITIONS + b"}" + ends
    try:
        value = load_object("", data)
        check_version("", value, (1, 2, 3))
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
    return write_object({"version": 3, "partitions": content, **extras})


@dataclass(frozen=True, slots=True)
class TopicContent:
    """The content of `/brokers/topics/T`, of any version, in pieces.

    One assignment is replaced without the others being read or written anew, which counts where a
    topic has thousands.
    """

    assigned: Mapping[int, ReplicaList]
    """The assigned replicas by partition."""
    beside: Mapping[str, Any]
    """All that stands there by name, in its order; what it has under `partitions` is not used."""
    pieces: Mapping[int, str]
    """By partition how it is written."""

    def replace(self, partition: int, assigned: ReplicaList) -> "TopicContent":
        """Return the content with one assignment replaced.

        What else stands there (other partitions, a topic id) is kept as it is. What was being added
        to the partition or removed from it goes: it spoke of the assignment that is replaced.
        """
        number, beside = str(partition), self.beside
        for name in _CHANGES:
            changes = beside.get(name)
            if isinstance(changes, dict) and number in changes:
                left = {other: replicas for other, replicas in changes.items() if other != number}
                beside = {**beside, name: left}
        piece = _show_partition(partition, assigned)
        return TopicContent(
            {**self.assigned, partition: assigned}, beside, {**self.pieces, partition: piece}
        )

    def encode(self) -> bytes:
        """Return the content as it is written."""
        beside = {name: write_json(value) for name, value in self.beside.items()}
        beside["partitions"] = f"{{{','.join(self.pieces.values())}}}"
        pieces = (f"{write_json(name)}:{text}" for name, text in beside.items())
        return f"{{{','.join(pieces)}}}".encode()


def decode_topic_content(path: str, data: bytes) -> TopicContent:
    """Decode `/brokers/topics/T` (versions 1 to 3) so that assignments can be replaced.

    Raises BadZnode when the content is not of the format.

    >>> content = decode_topic_content("/t", b'{"version":1,"partitions":{"0":[1],"1":[2]}}')
    >>> content.replace(1, (3,)).encode()
    b'{"version":1,"partitions":{"0":[1],"1":[3]}}'
    """
    assigned, beside, _ = _read_topic(path, data)
    pieces = {number: _show_partition(number, replicas) for number, replicas in assigned.items()}
    return TopicContent(assigned, beside, pieces)


def decode_topic_lists(path: str, data: bytes) -> dict[int, AssignmentZnode]:
    """Decode `/brokers/topics/T` (versions 1 to 3) with what is being added and removed.

    Version 1 has no such lists; a topic id (version 3) is left out. Raises BadZnode when the
    content is not of the format, names a partition that is not there, or adds or removes a replica
    that is not assigned.
    """
    assigned, value, _ = _read_topic(path, data)
    lists: dict[str, dict[int, ReplicaList]] = {}
    for name in _CHANGES:
        by_partition = value.get(name, {})
        if not isinstance(by_partition, dict):
            raise BadZnode(path, f"expected an object under {name!r}")
        lists[name] = {
            read_partition_number(path, key): read_replicas(
                path, replicas, f"{name}, partition {key}"
            )
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
    return write_object(
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
    value = load_object(path, data)
    check_version(path, value, (1,))
    recovery = value.get("leader_recovery_state")
    return StateZnode(
        leader=read_integer(path, value.get("leader"), "leader"),
        leader_epoch=read_integer(path, value.get("leader_epoch"), "leader_epoch"),
        controller_epoch=read_integer(path, value.get("controller_epoch"), "controller_epoch"),
        isr=read_replicas(path, value.get("isr"), "isr"),
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
    return None if usual is None else read_usual_list(usual[1])


def read_usual_list(text: bytes) -> ReplicaList:
    """Return the broker ids between the brackets of a list as it is written nearly always."""
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
    return f'{{"version":1,"leader":{leader},{epochs},"isr":{show_list(isr)}}}'.encode()


@lru_cache(maxsize=_REMEMBERED)
def _show_partition(number: int, replicas: ReplicaList) -> str:
    return f'"{number}":{show_list(replicas)}'


@lru_cache(maxsize=_REMEMBERED)
def show_list(replicas: ReplicaList) -> str:
    """Return a list of broker ids as JSON."""
    return f"[{','.join(map(str, replicas))}]"
