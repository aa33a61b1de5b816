"""The alphabet: everything that can be done to a cluster under test, one frozen record a step.

A step has a one-line text form, so that a story is a text file that reads like one:

    create orders with 1,2 min isr 1
    hold after 2
    request orders-0 to 2,3
    kill controller

The text of a step and `parse_step` are each other's inverse. Steps say what is *asked for*; whether
it is possible at that moment is the harness's business (`reassure_conformance.gate.harness`).

Steps of a client (topics, requests, malformed and foreign znodes) are written to ZooKeeper by the
harness itself. The others need the implementation and its adapter; `NEEDS` says which capability,
and so for what a client asks that not every implementation serves (`SERVED`).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Final

from reassure_conformance.adapter import (
    BROKERS,
    CLOCK,
    CUT,
    DELETION,
    EXPIRE,
    HOLD,
    ISR,
    KILL,
    LOSE,
    PREFERRED,
    SHUTDOWN,
)
from reassure_conformance.gate.malformed_znodes import (
    FOREIGN_KINDS,
    OLD_KINDS,
    RAW_KINDS,
    TOO_LARGE,
)
from reassure_conformance.gate.step_fields import (
    BadStep,
    Targets,
    format_entries,
    format_lists,
    format_partition,
    format_targets,
    parse_entries,
    parse_lists,
    parse_partition,
    parse_replicas,
    parse_targets,
)
from reassure_spec.words import spell_replicas
from reassure_spec.znodes import LegacyEntry, PartitionKey, ReplicaList


@dataclass(frozen=True, slots=True)
class ClusterStep:
    """Anything that is done to a cluster; as text it is a line that `parse_step` reads back.

    >>> str(Join(3, ("orders", 0)))
    '3 joins orders-0'
    """

    def __str__(self) -> str:
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        *_, form = (
            text
            for text, kind, fixed in _FORMS
            if kind is type(self) and fixed.items() <= {k: values[k] for k in fixed}.items()
        )
        written = {name: _FIELDS[name][2](v) for name, v in values.items() if name in _FIELDS}
        return form.format(**written)


@dataclass(frozen=True, slots=True)
class CreateTopic(ClusterStep):
    """A client creates a topic; partition i gets `assignments[i]`."""

    topic: str
    assignments: tuple[ReplicaList, ...]
    min_isr: int = 1
    """`min.insync.replicas` of the topic; 1 is not written to the topic's configuration."""


@dataclass(frozen=True, slots=True)
class Request(ClusterStep):
    """A client asks for the target of one or more partitions, in one request znode."""

    targets: Targets
    legacy: bool = False
    """Whether it says of itself that it came from the older znode."""


@dataclass(frozen=True, slots=True)
class Burst(ClusterStep):
    """A client makes several requests before the controller gets to look at any of them."""

    requests: tuple[Request, ...]


@dataclass(frozen=True, slots=True)
class Change(ClusterStep):
    """A client asks for another target while the partition's reassignment is in flight."""

    partition: PartitionKey
    target: ReplicaList


@dataclass(frozen=True, slots=True)
class Cancel(ClusterStep):
    """A client asks for the original replicas while the reassignment is in flight."""

    partition: PartitionKey


@dataclass(frozen=True, slots=True)
class Withdraw(ClusterStep):
    """A client takes back the newest request that waits: it deletes the request's znode."""


@dataclass(frozen=True, slots=True)
class Rewrite(ClusterStep):
    """A client changes the newest request that waits: it sets the data of the request's znode."""

    targets: Targets


@dataclass(frozen=True, slots=True)
class Grow(ClusterStep):
    """A client adds partitions to a topic, with these assignments."""

    topic: str
    assignments: tuple[ReplicaList, ...]


@dataclass(frozen=True, slots=True)
class SetMinIsr(ClusterStep):
    """An operator sets `min.insync.replicas` of a topic, or the brokers' default of it."""

    topic: str
    """Empty for the default, which counts for topics that do not say."""
    least: int


@dataclass(frozen=True, slots=True)
class SetUnclean(ClusterStep):
    """An operator sets `unclean.leader.election.enable` of a topic, or the brokers' default."""

    topic: str
    """Empty for the default, which counts for topics that do not say."""
    allowed: bool


@dataclass(frozen=True, slots=True)
class RawRequest(ClusterStep):
    """A client makes a request znode with malformed content, a kind of `RAW_KINDS`."""

    kind: str


@dataclass(frozen=True, slots=True)
class WriteOld(ClusterStep):
    """A client makes the old znode with these entries, or overwrites it."""

    entries: tuple[LegacyEntry, ...]


@dataclass(frozen=True, slots=True)
class RawOld(ClusterStep):
    """A client makes or overwrites the old znode with a kind of `OLD_KINDS`."""

    kind: str


@dataclass(frozen=True, slots=True)
class DeleteOld(ClusterStep):
    """A client deletes the old znode, which never stopped what is in flight."""


@dataclass(frozen=True, slots=True)
class SubmitTask(ClusterStep):
    """An operator persists a task for these partitions."""

    targets: Targets


@dataclass(frozen=True, slots=True)
class Tick(ClusterStep):
    """Time passes on the controllers' clock."""

    milliseconds: int


@dataclass(frozen=True, slots=True)
class DeleteTopic(ClusterStep):
    """A client asks for a topic to be deleted, whether there is one or not."""

    topic: str


@dataclass(frozen=True, slots=True)
class Prefer(ClusterStep):
    """A client asks for the preferred leader of every partition that there is."""


@dataclass(frozen=True, slots=True)
class ShutDown(ClusterStep):
    """A broker stops in good order: it tells the controller, and ends once it has an answer."""

    broker: int


@dataclass(frozen=True, slots=True)
class Foreign(ClusterStep):
    """Somebody makes a znode in the admin paths that is not ours, a kind of `FOREIGN_KINDS`."""

    kind: str


@dataclass(frozen=True, slots=True)
class Join(ClusterStep):
    """A replica catches up: the leader adds it to the in-sync replicas."""

    broker: int
    partition: PartitionKey


@dataclass(frozen=True, slots=True)
class Intrude(ClusterStep):
    """A broker that is not assigned, or has died, has fetched: the leader has to leave it out."""

    broker: int
    partition: PartitionKey


@dataclass(frozen=True, slots=True)
class Leave(ClusterStep):
    """A replica falls behind: the leader removes it from the in-sync replicas."""

    broker: int
    partition: PartitionKey


@dataclass(frozen=True, slots=True)
class Die(ClusterStep):
    """A broker dies."""

    broker: int


@dataclass(frozen=True, slots=True)
class Return(ClusterStep):
    """A dead broker comes back."""

    broker: int


@dataclass(frozen=True, slots=True)
class Hold(ClusterStep):
    """The controller stops before its next effect but `effects`, its plan still in memory.

    Where none acts it is the next one that does.
    """

    effects: int


@dataclass(frozen=True, slots=True)
class Resume(ClusterStep):
    """Whatever was held goes on where it stood."""


@dataclass(frozen=True, slots=True)
class Kill(ClusterStep):
    """The controller's process dies; its memory is lost and its session closes."""


@dataclass(frozen=True, slots=True)
class Elect(ClusterStep):
    """Another controller process starts and contends for the election."""


@dataclass(frozen=True, slots=True)
class Depose(ClusterStep):
    """A client deletes `/controller`, as operators do who want another election.

    The session of who acted lives on; if it is held it sleeps through the loss of its term.
    """


@dataclass(frozen=True, slots=True)
class Expire(ClusterStep):
    """The controller's session expires; its process lives on and does not know it yet."""


@dataclass(frozen=True, slots=True)
class Cut(ClusterStep):
    """The controller's connection breaks; its session survives."""


@dataclass(frozen=True, slots=True)
class Lose(ClusterStep):
    """The connection breaks under the controller's next write but `writes`: no answer comes."""

    writes: int
    done: bool
    """Whether ZooKeeper carried the write out; else it was lost on its way."""


NEEDS: Final[Mapping[type, str]] = MappingProxyType(
    {
        **dict.fromkeys((Join, Intrude, Leave), ISR),
        **dict.fromkeys((Die, Return), BROKERS),
        ShutDown: SHUTDOWN,
        DeleteTopic: DELETION,
        Prefer: PREFERRED,
        **dict.fromkeys((Hold, Resume), HOLD),
        **dict.fromkeys((Kill, Elect, Depose), KILL),
        Expire: EXPIRE,
        Cut: CUT,
        Lose: LOSE,
        Tick: CLOCK,
    }
)
"""The capability that each step of the implementation needs; steps of a client need none, but for
`SERVED`."""
SERVED: Final = frozenset({DeleteTopic, Prefer, Depose})
"""Steps of a client that ask for what not every implementation serves, or has more of one for."""
QUEUED: Final = (Withdraw, Rewrite, RawRequest, Foreign, SubmitTask, Tick)
"""Steps that act on znodes of KIP-236 and KIP-46 themselves, by whatever route one may ask."""


def _format_requests(requests: tuple[Request, ...]) -> str:
    return " then ".join(format_targets(request.targets) for request in requests)


def _parse_requests(text: str) -> tuple[Request, ...]:
    return tuple(Request(parse_targets(part)) for part in text.split(" then "))


_NUMBER: Final = (r"\d+", int, str)
_WORD: Final = (r"\S+", str, str)
_FIELDS: Final[Mapping[str, tuple[str, Callable[[str], Any], Callable[[Any], str]]]] = {
    "allowed": (r"true|false", lambda text: text == "true", lambda allowed: str(allowed).lower()),
    "assignments": (r".+", parse_lists, format_lists),
    "broker": _NUMBER,
    "effects": _NUMBER,
    "entries": (r".+", parse_entries, format_entries),
    "kind": _WORD,
    "least": _NUMBER,
    "milliseconds": _NUMBER,
    "min_isr": _NUMBER,
    "partition": (r"\S+", parse_partition, format_partition),
    "requests": (r".+", _parse_requests, _format_requests),
    "target": (r"\S+", parse_replicas, spell_replicas),
    "targets": (r".+", parse_targets, format_targets),
    "topic": _WORD,
    "writes": _NUMBER,
}
"""By the name of a step's field: what it looks like, how it is read, and how it is written."""
_FORMS: Final[tuple[tuple[str, type[ClusterStep], Mapping[str, Any]], ...]] = (
    ("create {topic} with {assignments} min isr {min_isr}", CreateTopic, {}),
    ("create {topic} with {assignments}", CreateTopic, {"min_isr": 1}),
    ("request {targets}", Request, {"legacy": False}),
    ("legacy request {targets}", Request, {"legacy": True}),
    ("burst {requests}", Burst, {}),
    ("change {partition} to {target}", Change, {}),
    ("cancel {partition}", Cancel, {}),
    ("withdraw request", Withdraw, {}),
    ("rewrite request as {targets}", Rewrite, {}),
    ("grow {topic} with {assignments}", Grow, {}),
    ("set min isr of {topic} to {least}", SetMinIsr, {}),
    ("set default min isr to {least}", SetMinIsr, {"topic": ""}),
    ("set unclean of {topic} to {allowed}", SetUnclean, {}),
    ("set default unclean to {allowed}", SetUnclean, {"topic": ""}),
    ("send {kind} request", RawRequest, {}),
    ("old znode {entries}", WriteOld, {}),
    ("write {kind} old znode", RawOld, {}),
    ("delete old znode", DeleteOld, {}),
    ("task {targets}", SubmitTask, {}),
    ("delete topic {topic}", DeleteTopic, {}),
    ("ask for preferred leaders", Prefer, {}),
    ("broker {broker} shuts down", ShutDown, {}),
    ("plant foreign {kind}", Foreign, {}),
    ("{broker} joins {partition}", Join, {}),
    ("{broker} tries to join {partition}", Intrude, {}),
    ("{broker} leaves {partition}", Leave, {}),
    ("broker {broker} dies", Die, {}),
    ("broker {broker} returns", Return, {}),
    ("hold after {effects}", Hold, {}),
    ("resume", Resume, {}),
    ("kill controller", Kill, {}),
    ("elect", Elect, {}),
    ("depose controller", Depose, {}),
    ("expire session", Expire, {}),
    ("cut connection", Cut, {}),
    ("lose answer after {writes}", Lose, {"done": True}),
    ("lose write after {writes}", Lose, {"done": False}),
    ("{milliseconds} ms pass", Tick, {}),
)
"""How each step is written, and what it is then besides; the last form that fits is taken."""
_PATTERNS: Final = tuple(
    re.compile(re.sub(r"\{(\w+)\}", lambda m: f"(?P<{m[1]}>{_FIELDS[m[1]][0]})", text))
    for text, _, _ in _FORMS
)
_KINDS: Final[Mapping[type, tuple[str, tuple[str, ...]]]] = {
    RawRequest: ("malformed request", (*RAW_KINDS, TOO_LARGE)),
    RawOld: ("malformed old znode", tuple(OLD_KINDS)),
    Foreign: ("foreign znode", tuple(FOREIGN_KINDS)),
}


def parse_step(text: str) -> ClusterStep:
    """Return the step of this line. Raises BadStep, which says what is wrong with it.

    >>> parse_step("hold after 2")
    Hold(effects=2)
    """
    line = " ".join(text.split())
    for pattern, (_, kind, fixed) in zip(_PATTERNS, _FORMS, strict=True):
        match = pattern.fullmatch(line)
        if match is not None:
            read = {name: _FIELDS[name][1](found) for name, found in match.groupdict().items()}
            what, known = _KINDS.get(kind, ("", ()))
            if known and read["kind"] not in known:
                raise BadStep(f"no {what} {read['kind']!r}; there are: {', '.join(known)}")
            return kind(**read, **fixed)
    raise BadStep(f"{line!r} is not a step; docs/stories.md lists the steps")


def rename_topics(step: ClusterStep, rename: Callable[[str], str]) -> ClusterStep:
    """Return the step with every topic that it names under another name; "" stays.

    >>> str(rename_topics(Join(3, ("orders", 0)), str.upper))
    '3 joins ORDERS-0'
    """

    def move(key: PartitionKey) -> PartitionKey:
        return (rename(key[0]), key[1])

    changed: dict[str, Any] = {}
    for item in fields(step):
        value = getattr(step, item.name)
        match item.name:
            case "topic":
                changed["topic"] = rename(value) if value else value
            case "partition":
                changed["partition"] = move(value)
            case "targets":
                changed["targets"] = tuple((move(key), target) for key, target in value)
            case "entries":
                changed["entries"] = tuple(replace(each, key=move(each.key)) for each in value)
            case "requests":
                changed["requests"] = tuple(rename_topics(each, rename) for each in value)
    return replace(step, **changed)
