"""The alphabet: everything that can be done to a cluster under test, one frozen record a step.

A step has a one-line text form, so that a story is a text file that reads like one:

    create orders with 1,2 min isr 1
    hold after 2
    request orders-0 to 2,3
    kill controller

`format_step` and `parse_step` are each other's inverse. Steps say what is *asked for*; whether it
is possible at that moment is the harness's business (`reassure_conformance.gate.harness`).

Steps of a client (topics, requests, malformed and foreign znodes) are written to ZooKeeper by the
harness itself. The others need the implementation and its adapter; `NEEDS` says which capability.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from reassure_conformance.adapter import BROKERS, CUT, EXPIRE, HOLD, ISR, KILL, LOSE
from reassure_spec.errors import BadData
from reassure_spec.znodes import PartitionKey, ReplicaList

RAW_KINDS: Final[Mapping[str, bytes]] = MappingProxyType(
    {
        "not-json": b"{ this is not JSON",
        "not-an-object": b"[1,2,3]",
        "no-content": b"",
        "no-version": b'{"assignments":{}}',
        "wrong-version": b'{"version":7,"assignments":{}}',
        "unknown-key": b'{"version":1,"assignments":{},"original_replicas":[1]}',
        "duplicate-key": b'{"version":1,"assignments":{},"assignments":{}}',
        "no-assignments": b'{"version":1}',
        "replicas-not-a-list": b'{"version":1,"assignments":{"orders":{"0":"1,2"}}}',
        "replica-not-a-number": b'{"version":1,"assignments":{"orders":{"0":["one"]}}}',
        "partition-not-a-number": b'{"version":1,"assignments":{"orders":{"zero":[1]}}}',
        "nothing-asked": b'{"version":1,"assignments":{}}',
        "deep": b"[" * 5000,
    }
)
"""Malformed request contents by name. `too-large` is made when it is needed."""
TOO_LARGE: Final = "too-large"

FOREIGN_KINDS: Final[Mapping[str, tuple[str, bytes]]] = MappingProxyType(
    {
        "queue-name": ("/admin/reassignment_requests/notes", b"not ours"),
        "queue-short-number": (
            "/admin/reassignment_requests/request_12",
            b'{"version":1,"assignments":{}}',
        ),
        "child-of-no-topic": (
            "/admin/reassignments/ghost/0",
            b'{"version":1,"top":1,"assignment":[1],"legacy":false}',
        ),
        "child-of-no-partition": (
            "/admin/reassignments/orders/99",
            b'{"version":1,"top":1,"assignment":[1],"legacy":false}',
        ),
        "child-name": ("/admin/reassignments/orders/zero", b"not ours"),
        "child-leading-zero": (
            "/admin/reassignments/orders/00",
            b'{"version":1,"top":1,"assignment":[1],"legacy":false}',
        ),
        "child-unreadable": ("/admin/reassignments/orders/0", b"not ours"),
    }
)
"""Znodes in the admin paths that no controller and no tool would make: path and content."""


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """A client creates a topic; partition i gets `assignments[i]`."""

    topic: str
    assignments: tuple[ReplicaList, ...]
    min_isr: int = 1
    """`min.insync.replicas` of the topic; 1 is not written to the topic's configuration."""


@dataclass(frozen=True, slots=True)
class Request:
    """A client asks for the target of one or more partitions, in one request znode."""

    targets: tuple[tuple[PartitionKey, ReplicaList], ...]
    legacy: bool = False
    """Whether it says of itself that it came from the older znode."""


@dataclass(frozen=True, slots=True)
class Burst:
    """A client makes several requests before the controller gets to look at any of them."""

    requests: tuple[Request, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A client asks for another target while the partition's reassignment is in flight."""

    partition: PartitionKey
    target: ReplicaList


@dataclass(frozen=True, slots=True)
class Cancel:
    """A client asks for the original replicas while the reassignment is in flight."""

    partition: PartitionKey


@dataclass(frozen=True, slots=True)
class Withdraw:
    """A client takes back the newest request that waits: it deletes the request's znode."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A client changes the newest request that waits: it sets the data of the request's znode."""

    targets: tuple[tuple[PartitionKey, ReplicaList], ...]


@dataclass(frozen=True, slots=True)
class Grow:
    """A client adds partitions to a topic, with these assignments."""

    topic: str
    assignments: tuple[ReplicaList, ...]


@dataclass(frozen=True, slots=True)
class SetMinIsr:
    """An operator sets `min.insync.replicas` of a topic, or the brokers' default of it."""

    topic: str
    """Empty for the default, which counts for topics that do not say."""
    least: int


@dataclass(frozen=True, slots=True)
class RawRequest:
    """A client makes a request znode with malformed content, a kind of `RAW_KINDS`."""

    kind: str


@dataclass(frozen=True, slots=True)
class Foreign:
    """Somebody makes a znode in the admin paths that is not ours, a kind of `FOREIGN_KINDS`."""

    kind: str


@dataclass(frozen=True, slots=True)
class Join:
    """A replica catches up: the leader adds it to the in-sync replicas."""

    broker: int
    partition: PartitionKey


@dataclass(frozen=True, slots=True)
class Intrude:
    """A broker that is not assigned, or has died, has fetched: the leader has to leave it out."""

    broker: int
    partition: PartitionKey


@dataclass(frozen=True, slots=True)
class Leave:
    """A replica falls behind: the leader removes it from the in-sync replicas."""

    broker: int
    partition: PartitionKey


@dataclass(frozen=True, slots=True)
class Die:
    """A broker dies."""

    broker: int


@dataclass(frozen=True, slots=True)
class Return:
    """A dead broker comes back."""

    broker: int


@dataclass(frozen=True, slots=True)
class Hold:
    """The controller stops before its next effect but `effects`, its plan still in memory.

    Where none acts it is the next one that does.
    """

    effects: int


@dataclass(frozen=True, slots=True)
class Resume:
    """Whatever was held goes on where it stood."""


@dataclass(frozen=True, slots=True)
class Kill:
    """The controller's process dies; its memory is lost and its session closes."""


@dataclass(frozen=True, slots=True)
class Elect:
    """Another controller process starts and contends for the election."""


@dataclass(frozen=True, slots=True)
class Expire:
    """The controller's session expires; its process lives on and does not know it yet."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The controller's connection breaks; its session survives."""


@dataclass(frozen=True, slots=True)
class Lose:
    """The connection breaks under the controller's next write but `writes`: no answer comes."""

    writes: int
    done: bool
    """Whether ZooKeeper carried the write out; else it was lost on its way."""


Step = (
    CreateTopic
    | Request
    | Burst
    | Change
    | Cancel
    | Withdraw
    | Rewrite
    | Grow
    | SetMinIsr
    | RawRequest
    | Foreign
    | Join
    | Intrude
    | Leave
    | Die
    | Return
    | Hold
    | Resume
    | Kill
    | Elect
    | Expire
    | Cut
    | Lose
)

NEEDS: Final[Mapping[type, str]] = MappingProxyType(
    {
        Join: ISR,
        Intrude: ISR,
        Leave: ISR,
        Die: BROKERS,
        Return: BROKERS,
        Hold: HOLD,
        Resume: HOLD,
        Kill: KILL,
        Elect: KILL,
        Expire: EXPIRE,
        Cut: CUT,
        Lose: LOSE,
    }
)
"""The capability that each step of the implementation needs; steps of a client need none."""


class BadStep(BadData):
    """A line that is no step."""


def format_replicas(replicas: ReplicaList) -> str:
    """Return the text of a replica list; an empty one is `none`.

    >>> format_replicas((1, 2)), format_replicas(())
    ('1,2', 'none')
    """
    return ",".join(map(str, replicas)) or "none"


def parse_replicas(text: str) -> ReplicaList:
    """Return the replica list of this text. Raises BadStep."""
    if text == "none":
        return ()
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise BadStep(f"{text!r} is not a replica list; write it as 1,2,3 or none") from None


def format_partition(partition: PartitionKey) -> str:
    """Return the text of a partition.

    >>> format_partition(("orders", 0))
    'orders-0'
    """
    return f"{partition[0]}-{partition[1]}"


def parse_partition(text: str) -> PartitionKey:
    """Return the partition of this text. Raises BadStep."""
    topic, dash, number = text.rpartition("-")
    if not dash or not topic or not number.isdigit():
        raise BadStep(f"{text!r} is not a partition; write it as orders-0")
    return topic, int(number)


def _format_lists(lists: tuple[ReplicaList, ...]) -> str:
    return " and ".join(map(format_replicas, lists))


def _parse_lists(text: str) -> tuple[ReplicaList, ...]:
    return tuple(parse_replicas(part.strip()) for part in text.split(" and "))


def _format_targets(request: Request | Rewrite) -> str:
    return " and ".join(
        f"{format_partition(partition)} to {format_replicas(target)}"
        for partition, target in request.targets
    )


def _parse_targets(text: str) -> Request:
    targets = []
    for part in text.split(" and "):
        partition, found, target = part.partition(" to ")
        if not found:
            raise BadStep(f"{part!r} is not a target; write it as orders-0 to 1,2")
        targets.append((parse_partition(partition.strip()), parse_replicas(target.strip())))
    return Request(tuple(targets))


def format_step(step: Step) -> str:
    """Return the one-line text of a step; `parse_step` reads it back.

    >>> format_step(Join(3, ("orders", 0)))
    '3 joins orders-0'
    """
    match step:
        case CreateTopic(topic, assignments, min_isr):
            least = f" min isr {min_isr}" if min_isr != 1 else ""
            return f"create {topic} with {_format_lists(assignments)}{least}"
        case Request():
            return ("legacy " if step.legacy else "") + f"request {_format_targets(step)}"
        case Burst(requests):
            return "burst " + " then ".join(map(_format_targets, requests))
        case Change(partition, target):
            return f"change {format_partition(partition)} to {format_replicas(target)}"
        case Cancel(partition):
            return f"cancel {format_partition(partition)}"
        case Rewrite():
            return f"rewrite request as {_format_targets(step)}"
        case Grow(topic, assignments):
            return f"grow {topic} with {_format_lists(assignments)}"
        case SetMinIsr(topic, least):
            whose = f"min isr of {topic}" if topic else "default min isr"
            return f"set {whose} to {least}"
        case RawRequest(kind):
            return f"send {kind} request"
        case Foreign(kind):
            return f"plant foreign {kind}"
        case Join(broker, partition):
            return f"{broker} joins {format_partition(partition)}"
        case Intrude(broker, partition):
            return f"{broker} tries to join {format_partition(partition)}"
        case Leave(broker, partition):
            return f"{broker} leaves {format_partition(partition)}"
        case Die(broker):
            return f"broker {broker} dies"
        case Return(broker):
            return f"broker {broker} returns"
        case Hold(effects):
            return f"hold after {effects}"
        case Lose(writes, done):
            return f"lose {'answer' if done else 'write'} after {writes}"
        case _:
            return _PLAIN[type(step)]


_PLAIN: Final[Mapping[type, str]] = MappingProxyType(
    {
        Resume: "resume",
        Kill: "kill controller",
        Elect: "elect",
        Expire: "expire session",
        Cut: "cut connection",
        Withdraw: "withdraw request",
    }
)
_PLAIN_STEPS: Final[Mapping[str, Step]] = MappingProxyType(
    {text: kind() for kind, text in _PLAIN.items()}
)


def _parse_create(match: re.Match[str]) -> Step:
    return CreateTopic(match[1], _parse_lists(match[2]), int(match[3] or 1))


def _parse_raw(match: re.Match[str]) -> Step:
    if match[1] not in RAW_KINDS and match[1] != TOO_LARGE:
        raise BadStep(f"no malformed request {match[1]!r}; there are: {', '.join(RAW_KINDS)}")
    return RawRequest(match[1])


def _parse_foreign(match: re.Match[str]) -> Step:
    if match[1] not in FOREIGN_KINDS:
        raise BadStep(f"no foreign znode {match[1]!r}; there are: {', '.join(FOREIGN_KINDS)}")
    return Foreign(match[1])


_GRAMMAR: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Step]], ...]] = tuple(
    (re.compile(pattern), build)
    for pattern, build in (
        (r"create (\S+) with (.+?)(?: min isr (\d+))?", _parse_create),
        (r"request (.+)", lambda m: _parse_targets(m[1])),
        (r"legacy request (.+)", lambda m: replace(_parse_targets(m[1]), legacy=True)),
        (r"burst (.+)", lambda m: Burst(tuple(map(_parse_targets, m[1].split(" then "))))),
        (r"rewrite request as (.+)", lambda m: Rewrite(_parse_targets(m[1]).targets)),
        (r"change (\S+) to (\S+)", lambda m: Change(parse_partition(m[1]), parse_replicas(m[2]))),
        (r"cancel (\S+)", lambda m: Cancel(parse_partition(m[1]))),
        (r"grow (\S+) with (.+)", lambda m: Grow(m[1], _parse_lists(m[2]))),
        (r"set min isr of (\S+) to (\d+)", lambda m: SetMinIsr(m[1], int(m[2]))),
        (r"set default min isr to (\d+)", lambda m: SetMinIsr("", int(m[1]))),
        (r"send (\S+) request", _parse_raw),
        (r"plant foreign (\S+)", _parse_foreign),
        (r"(\d+) joins (\S+)", lambda m: Join(int(m[1]), parse_partition(m[2]))),
        (r"(\d+) tries to join (\S+)", lambda m: Intrude(int(m[1]), parse_partition(m[2]))),
        (r"(\d+) leaves (\S+)", lambda m: Leave(int(m[1]), parse_partition(m[2]))),
        (r"broker (\d+) dies", lambda m: Die(int(m[1]))),
        (r"broker (\d+) returns", lambda m: Return(int(m[1]))),
        (r"hold after (\d+)", lambda m: Hold(int(m[1]))),
        (r"lose (answer|write) after (\d+)", lambda m: Lose(int(m[2]), m[1] == "answer")),
    )
)


def parse_step(text: str) -> Step:
    """Return the step of this line. Raises BadStep, which says what is wrong with it.

    >>> parse_step("hold after 2")
    Hold(effects=2)
    """
    line = " ".join(text.split())
    if line in _PLAIN_STEPS:
        return _PLAIN_STEPS[line]
    for pattern, build in _GRAMMAR:
        match = pattern.fullmatch(line)
        if match is not None:
            return build(match)
    raise BadStep(f"{line!r} is not a step; docs/stories.md lists the steps")


def partitions_of(step: Step) -> tuple[PartitionKey, ...]:
    """Return the partitions that a step names."""
    match step:
        case Request(targets, _) | Rewrite(targets):
            return tuple(partition for partition, _ in targets)
        case Burst(requests):
            return tuple(partition for r in requests for partition, _ in r.targets)
        case Change(partition, _) | Cancel(partition):
            return (partition,)
        case Join(_, partition) | Intrude(_, partition) | Leave(_, partition):
            return (partition,)
        case _:
            return ()
