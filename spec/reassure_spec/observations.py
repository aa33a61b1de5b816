"""Observations: what brokers and controllers say of what is not in ZooKeeper, a line of JSON each.

Offsets, high watermarks and what a leader knows of its followers never reach ZooKeeper. Whoever
has them writes them down, one object a line, in the order in which they happen to it; every *run*
of a writer (one life of a process) counts its lines from 0. What the kinds of lines mean, who
writes each and when, is `KINDS`; `docs/observations.md` explains it with examples.

Decoding checks the shape of one line and raises `BadObservation`; what a line says of the protocol
is for the judge.
"""

import json
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from reassure_spec.errors import BadData
from reassure_spec.znodes import LARGEST_INT, NO_LEADER, ReplicaList

VERSION: Final = 1
"""Version of the format, which each line names."""
LARGEST_OFFSET: Final = 2**63 - 1
"""The largest offset, time, run and sequence number."""
NOBODY: Final = -1
"""The broker of a line that no replica says of itself."""

Spans = tuple[tuple[int, int], ...]
"""Leader epochs of a log: (epoch, offset of its first record), ascending in both."""


class BadObservation(BadData):
    """A line that is not of the documented format."""

    def __init__(self, file: str, line: int, reason: str, *, is_json_broken: bool = False) -> None:
        super().__init__(f"{file}, line {line}: {reason}")
        self.file = file
        self.line = line
        self.reason = reason
        self.is_json_broken = is_json_broken
        """Whether it is no JSON at all, as a line that was not finished."""


class Writer(NamedTuple):
    """A run begins (or goes on in a new file)."""

    tells: tuple[str, ...]
    """The kinds of which it writes a line every time; of others it may write some."""


class Restored(NamedTuple):
    """A replica as a broker has it when it takes it up: after a start, or new and empty."""

    log_end_offset: int
    high_watermark: int
    epochs: Spans | None = None


class Stopped(NamedTuple):
    """A replica was stopped by an order: it neither leads nor follows any more."""

    deleted: bool
    """Whether its log was deleted."""


class Replica(NamedTuple):
    """A replica now: when its log end or its mark has moved, or just looked at."""

    log_end_offset: int
    high_watermark: int
    time_ms: int | None = None
    """The writer's own clock; compared with its own times only."""


class Follow(NamedTuple):
    """A replica follows the leader of this epoch, and has truncated its log."""

    log_end_offset: int
    """After truncation."""
    high_watermark: int


class Lead(NamedTuple):
    """A replica leads in this epoch."""

    log_end_offset: int
    high_watermark: int
    replicas: ReplicaList
    """Assigned, itself among them."""
    isr: ReplicaList
    """Stored in-sync set, as read."""
    isr_version: int | None = None
    """Version of the stored state, as read; it grows by one with each write."""
    lag_ms_max: int | None = None
    """Its limit for replica lag."""
    time_ms: int | None = None
    epochs: Spans | None = None


class Fetch(NamedTuple):
    """A leader has noted a follower's fetch request."""

    follower: int
    offset: int
    """Begin offset of the request: where the follower's log ends."""
    follower_epoch: int | None = None
    """Leader epoch in the request."""
    log_end_offset: int | None = None
    """The leader's own end that it notes with it."""
    time_ms: int | None = None
    """The time that it notes with it."""
    caught_up_ms: int | None = None
    """When it counts the follower as caught up last, this request included."""


class Evaluate(NamedTuple):
    """A leader has evaluated who keeps up, and its high watermark."""

    pseudo_isr: ReplicaList
    high_watermark: int
    isr: ReplicaList | None = None
    """In-sync set by definition, where none is stored."""
    time_ms: int | None = None


class IsrWrite(NamedTuple):
    """A leader has tried to write the stored in-sync set."""

    isr: ReplicaList
    expected_version: int
    """The version that it wrote on top of."""
    isr_version: int | None
    """The version that came of it; None where the write was refused, or not answered."""


class IsrRead(NamedTuple):
    """A leader has read the stored in-sync set again."""

    isr: ReplicaList
    isr_version: int


class Serve(NamedTuple):
    """A leader has answered a consumer."""

    high_watermark: int
    """The mark shown."""
    offset: int | None = None
    """End of the records handed out."""


class Produce(NamedTuple):
    """A producer waits for all in-sync replicas."""

    offset: int
    """End of its records."""


class Answer(NamedTuple):
    """A producer that waited for all in-sync replicas has its answer."""

    offset: int
    """End of its records."""
    error: str | None = None
    """Why it is none that promises anything."""


class Stored(NamedTuple):
    """The stored state of a partition, by whoever wrote it."""

    leader: int
    isr: ReplicaList
    isr_version: int


What = (
    Writer
    | Restored
    | Stopped
    | Replica
    | Follow
    | Lead
    | Fetch
    | Evaluate
    | IsrWrite
    | IsrRead
    | Serve
    | Produce
    | Answer
    | Stored
)
"""What a line says."""


class Observation(NamedTuple):
    """One line."""

    writer: str
    """Name of who wrote it."""
    run: int
    """Which life of the writer: larger at each start."""
    sequence: int
    """Which line of the run, counted from 0 over all partitions."""
    chroot: str
    """Chroot of the cluster, "" for none."""
    topic: str
    """Topic, "" where the line is about the writer."""
    partition: int
    """Partition, -1 where the line is about the writer."""
    broker: int
    """The replica that speaks, `NOBODY` where none does."""
    controller_epoch: int
    """Controller epoch of the order that the replica acts upon; of a stored state, its writer's."""
    leader_epoch: int
    """Leader epoch in which the line is true."""
    what: What


# Fields -----------------------------------------------------------------------------------------


class _Wrong(ValueError):
    """What was expected of a value."""


def _between(least: int, most: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if type(value) is int and least <= value <= most:
            return value
        raise _Wrong(f"an integer from {least} to {most}")

    return check


def _nullable(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def check_or_null(value: Any) -> Any:
        return None if value is None else check(value)

    return check_or_null


_number: Final = _between(0, LARGEST_INT)
_large: Final = _between(0, LARGEST_OFFSET)
_leader: Final = _between(NO_LEADER, LARGEST_INT)


def _ids(value: Any) -> ReplicaList:
    if type(value) is list and len(set(map(str, value))) == len(value):
        try:
            return tuple(map(_number, value))
        except _Wrong:
            pass
    raise _Wrong("a list of broker ids, each once")


def _spans(value: Any) -> Spans:
    try:
        spans = tuple((_number(epoch), _large(start)) for epoch, start in value)
    except (_Wrong, TypeError, ValueError):
        spans = ()
    apart = all(a < c and b < d for (a, b), (c, d) in pairwise(spans))
    if type(value) is list and len(spans) == len(value) and apart:
        return spans
    raise _Wrong("a list of [leader epoch, first offset], ascending in both")


def _of(kind: type, words: str, *, empty: bool = True) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if type(value) is kind and (empty or value):
            return value
        raise _Wrong(words)

    return check


_text: Final = _of(str, "a text that is not empty", empty=False)
_flag: Final = _of(bool, "true or false")
_chroot: Final = _of(str, "a text")


def _kinds(value: Any) -> tuple[str, ...]:
    if type(value) is list and all(type(kind) is str and kind in KINDS for kind in value):
        return tuple(value)
    raise _Wrong(f"a list of kinds: {', '.join(KINDS)}")


_CHECKS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("log_end_offset", "high_watermark", "offset"), _large),
    **dict.fromkeys(("time_ms", "caught_up_ms", "lag_ms_max"), _large),
    "epochs": _spans,
    **dict.fromkeys(("replicas", "isr", "pseudo_isr"), _ids),
    **dict.fromkeys(("isr_version", "expected_version"), _number),
    **dict.fromkeys(("follower", "follower_epoch"), _number),
    "leader": _leader,
    "error": _text,
    "deleted": _flag,
    "tells": _kinds,
}
"""By name of a field of a kind: what checks its value."""
_HEAD_CHECKS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "writer": _text,
    "run": _large,
    "sequence": _large,
    "chroot": _chroot,
    "topic": _text,
    **dict.fromkeys(("partition", "broker", "controller_epoch", "leader_epoch"), _number),
}
"""By name of a field of every line: what checks its value."""


class Kind(NamedTuple):
    """One kind of line."""

    make: Callable[..., What]
    head: tuple[str, ...]
    """Names of the fields that stand in every line of this kind."""
    fields: tuple[tuple[str, Callable[[Any], Any], bool], ...]
    """Name, check, and whether it must be there, of its own fields."""
    known: frozenset[str]
    """Names of all fields that it may have."""
    nullable: frozenset[str]


_OF_WRITER: Final = ("version", "kind", "writer", "run", "sequence")
_OF_PARTITION: Final = (*_OF_WRITER, "topic", "partition", "controller_epoch", "leader_epoch")
_OF_REPLICA: Final = (*_OF_PARTITION, "broker")
_ABBREVIATED: Final = (
    ("version", "writer", "run"),
    ("chroot", "topic", "partition", "controller_epoch", "leader_epoch", "broker"),
)
"""What a line leaves out together where all of it is as in the line before."""


def _make_kind(
    make: Any, head: tuple[str, ...] = _OF_REPLICA, *, nullable: Sequence[str] = ()
) -> Kind:
    names, defaults = make._fields, make._field_defaults
    fields = tuple(
        (n, _nullable(_CHECKS[n]) if n in nullable else _CHECKS[n], n not in defaults)
        for n in names
    )
    optional = () if head is _OF_WRITER else ("chroot",)
    return Kind(make, head, fields, frozenset((*head, *names, *optional)), frozenset(nullable))


KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "writer": _make_kind(Writer, _OF_WRITER),
        "restored": _make_kind(Restored),
        "stopped": _make_kind(Stopped),
        "replica": _make_kind(Replica),
        "follow": _make_kind(Follow),
        "lead": _make_kind(Lead),
        "fetch": _make_kind(Fetch),
        "evaluate": _make_kind(Evaluate),
        "isr_write": _make_kind(IsrWrite, nullable=("isr_version",)),
        "isr_read": _make_kind(IsrRead),
        "serve": _make_kind(Serve),
        "produce": _make_kind(Produce),
        "answer": _make_kind(Answer),
        "stored": _make_kind(Stored, _OF_PARTITION),
    }
)
"""Every kind of line by name."""

_NAMES: Final = {kind.make: name for name, kind in KINDS.items()}


def name_kind(what: What) -> str:
    """Return the name of the kind of a line.

    >>> name_kind(Produce(7))
    'produce'
    """
    return _NAMES[type(what)]


# Lines ------------------------------------------------------------------------------------------


def decode_observation(
    data: bytes | str, file: str = "", line: int = 0, before: Observation | None = None
) -> Observation:
    """Decode one line; `file` and `line` are where it stands. Raises BadObservation.

    What it leaves out of its head is as in the line `before` it in the file.
    """
    try:
        value = json.loads(data.decode() if isinstance(data, bytes) else data)
    except (ValueError, RecursionError) as error:
        raise BadObservation(file, line, f"not JSON: {error}", is_json_broken=True) from None
    if type(value) is not dict:
        raise BadObservation(file, line, f"expected a JSON object, found {reprlib.repr(value)}")
    try:
        return _decode(_complete(value, before))
    except _Wrong as wrong:
        raise BadObservation(file, line, str(wrong)) from None


def decode_lines(lines: Iterable[bytes], file: str = "") -> Iterator[Observation]:
    """Yield the lines of a file, none of them empty or torn. Raises BadObservation."""
    before = None
    for number, line in enumerate(lines, 1):
        yield (before := decode_observation(line, file, number, before))


def _complete(value: dict[str, Any], before: Observation | None) -> dict[str, Any]:
    """Return a line with what it leaves out."""
    kind = KINDS.get(str(value.get("kind")))
    if before is None or kind is None or value.get("sequence") != before.sequence + 1:
        return value
    head = {name: said for name, said in _tell_head(before).items() if name in kind.known}
    for names in _ABBREVIATED:
        if value.keys().isdisjoint(names):
            value |= {name: head[name] for name in names if name in head}
    return value


def _tell_head(said: Observation) -> dict[str, Any]:
    """Return the fields that a line has beside its own, of which all may be there."""
    head = {"version": VERSION, "kind": name_kind(said.what), **said._asdict()}
    wanted = KINDS[head["kind"]].head
    return {n: v for n, v in head.items() if n in wanted or (n == "chroot" and v)}


def _decode(value: dict[str, Any]) -> Observation:
    version, name = value.get("version"), value.get("kind")
    if type(version) is not int or version != VERSION:
        raise _Wrong(f"expected version {VERSION}, found {reprlib.repr(version)}")
    kind = KINDS.get(name) if type(name) is str else None
    if kind is None:
        known = ", ".join(KINDS)
        raise _Wrong(f"there is no kind {reprlib.repr(name)}; the kinds are: {known}")
    if not value.keys() <= kind.known:
        strange = min(value.keys() - kind.known)
        known = ", ".join(sorted(kind.known))
        raise _Wrong(f"{name}: there is no field {reprlib.repr(strange)}; the fields are: {known}")
    try:
        return _build(value, kind)
    except (_Wrong, KeyError):
        raise _Wrong(f"{name}: {_find_fault(value, kind)}") from None


def _build(value: dict[str, Any], kind: Kind) -> Observation:
    """Return the line; raises KeyError or _Wrong, and does not say for which field."""
    what = kind.make(
        *[
            check(value[name]) if name in value or is_needed else None
            for name, check, is_needed in kind.fields
        ]
    )
    writer, run, sequence = _text(value["writer"]), _large(value["run"]), _large(value["sequence"])
    if kind.head is _OF_WRITER:
        return Observation(writer, run, sequence, "", "", -1, NOBODY, 0, 0, what)
    return Observation(
        writer,
        run,
        sequence,
        _chroot(value.get("chroot", "")),
        _text(value["topic"]),
        _number(value["partition"]),
        _number(value["broker"]) if kind.head is _OF_REPLICA else NOBODY,
        _number(value["controller_epoch"]),
        _number(value["leader_epoch"]),
        what,
    )


def _find_fault(value: dict[str, Any], kind: Kind) -> str:
    """Say which field of a line is missing or not as it should be, and what was expected."""
    own = {name: check for name, check, _ in kind.fields}
    needed = (*kind.head[2:], *(name for name, _, is_needed in kind.fields if is_needed))
    for name in needed:
        if name not in value:
            return f"expected a field {name!r}, and there is none"
    for name, check in {**_HEAD_CHECKS, **own}.items():
        if name in value:
            try:
                check(value[name])
            except _Wrong as wrong:
                return f"{name}: expected {wrong}, found {reprlib.repr(value[name])}"
    raise AssertionError(f"nothing is wrong with {value}")  # uncovered: `_build` has refused it


def encode_observation(observation: Observation, before: Observation | None = None) -> bytes:
    r"""Encode one line, its end included; `before` is the line that it follows in the file, if any.

    >>> head = Observation("broker-1", 5, 0, "", "", -1, NOBODY, 0, 0, Writer(("lead",)))
    >>> encode_observation(head)
    b'{"version":1,"kind":"writer","writer":"broker-1","run":5,"sequence":0,"tells":["lead"]}\n'
    """
    value = _tell_head(observation)
    if before is not None and observation.sequence == before.sequence + 1:
        is_same = observation[:2] == before[:2], observation[3:-1] == before[3:-1]
        gone = [n for names, same in zip(_ABBREVIATED, is_same, strict=True) if same for n in names]
        value = {name: said for name, said in value.items() if name not in gone}
    own, kind = observation.what._asdict(), KINDS[name_kind(observation.what)]
    value |= {n: own[n] for n in own if own[n] is not None or n in kind.nullable}
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
