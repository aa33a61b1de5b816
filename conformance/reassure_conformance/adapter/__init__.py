"""The `direct:` adapter interface, version 2: how the gate drives an implementation.

An adapter is a Python object that runs the controllers and brokers of one implementation against a
chroot that the gate gives it. The gate itself plays the client (topics, requests) and reads what
happened from ZooKeeper's transaction log; an adapter is never asked what happened.

Replies are `OK`, `REFUSED` (definitely not done) or `UNKNOWN` (may have been done: a lost
connection is always this). An adapter raises only when it cannot go on; that ends the run as
`adapter-died`, which is neither a violation nor a pass. docs/adapter.md has an example.
"""

import importlib
import reprlib
import traceback
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeVar, cast, runtime_checkable
from urllib.parse import parse_qsl

from reassure_conformance.supervise import HANG_S, note_call
from reassure_judge.messages import Told, ToldStates
from reassure_spec.errors import BadConfiguration, Unavailable
from reassure_spec.readings import UnknownReading, get_profile, override_readings
from reassure_spec.znodes import ReplicaList

Value = TypeVar("Value")

ADAPTER_VERSION: Final = 2
SPOKEN: Final = (1, ADAPTER_VERSION)
"""The versions of the interface that are understood."""

ISR = "isr"
BROKERS = "brokers"
HOLD = "hold"
KILL = "kill"
EXPIRE = "expire"
CUT = "cut"
LOSE = "lose"
MESSAGES = "messages"
CLOCK = "clock"
DELETION = "deletion"
PREFERRED = "preferred"
SHUTDOWN = "shutdown"
CAPABILITIES: Final = (
    *(ISR, BROKERS, HOLD, KILL, EXPIRE, CUT, LOSE, MESSAGES, CLOCK),
    *(DELETION, PREFERRED, SHUTDOWN),
)
"""What an adapter may be able to do, beyond running controllers and brokers."""

REQUESTS: Final = "requests"
OLD_ZNODE: Final = "old-znode"
ADMIN: Final = "admin"
ROUTES: Final = (REQUESTS, OLD_ZNODE, ADMIN)
"""Ways of asking for a reassignment: request znodes, the old znode, a call of the adapter's own."""

LOG: Final = "log"
"""What somebody who gives no transaction log does not let be judged."""
WATCHES: Final = "watches"
"""What a server that does not say what is watched does not let be judged."""

EXAMPLE: Final = "example"
RUN: Final = "run"
LIFETIMES: Final = (EXAMPLE, RUN)
"""How long brokers and controllers live: one example, or the whole run, where topics are fresh."""
OF_EXAMPLES: Final = frozenset({MESSAGES, CLOCK})
"""Capabilities that are judged from a cluster's beginning, so not where one lives for a run."""


ADDED: Final = "reassure.implementations"
"""The group of entry points that open connectables of a scheme."""


class Reply(Enum):
    """What an adapter says to a step."""

    OK = "ok"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Description:
    """What an implementation says of itself."""

    name: str
    version: str
    language: str
    profile: str
    """A profile of the spec, by name."""
    readings: Mapping[str, str] = field(default_factory=dict)
    """Readings that differ from the profile's, by dotted name."""
    capabilities: frozenset[str] = frozenset()
    """Those of `CAPABILITIES` that it has."""
    failure_interval_ms: int = 0
    """How long a broker has to be away before its replicas are placed elsewhere."""
    partitions_per_task: int = 0
    """Most partitions that a task of healing moves; 0 for any number."""
    settle_ms: int = 0
    """How long `settle` may take; 0 for as long as it is given to everybody."""
    adapter_version: int = ADAPTER_VERSION
    lifetime: str = EXAMPLE
    """One of `LIFETIMES`."""
    routes: frozenset[str] = frozenset({REQUESTS, OLD_ZNODE})
    """Those of `ROUTES` that it takes; who knows no request or old znode by its profile has none
    written."""

    def as_dict(self) -> dict[str, object]:
        """Return the record that reports print."""
        return {
            "name": self.name,
            "version": self.version,
            "language": self.language,
            "capabilities": sorted(self.capabilities),
        }

    @property
    def abilities(self) -> frozenset[str]:
        """All that a clause may need: capabilities, routes and a lifetime."""
        return self.capabilities | self.routes | {self.lifetime}

    def advise(self) -> str:
        """Return what to change where it speaks an older version, "" where it does not."""
        if self.adapter_version == ADAPTER_VERSION:
            return ""
        return (
            f"it speaks version {self.adapter_version} of the interface, which still works; to "
            f"update it, answer describe with adapter_version {ADAPTER_VERSION}, and with lifetime "
            "and routes if they are not one example and both znodes (docs/adapter.md)"
        )


@runtime_checkable
class Adapter(Protocol):
    """One implementation under test. Calls come from one thread, one at a time."""

    def describe(self) -> Description:
        """Say what the implementation is and what it can do; called once, first."""

    def start(self, hosts: str, chroot: str, brokers: tuple[int, ...]) -> None:
        """Bring up these brokers and one controller in a chroot that has the persistent paths.

        `hosts` is "host:port". Called once for each example; `stop` comes before the next.
        """

    def settle(self, timeout_s: float) -> bool:
        """Let everything that is not held go on until nothing is left to do.

        Returns whether the cluster is quiescent: a controller acts, it is not held, nobody who was
        held sleeps, and all that had been written before the call has been dealt with.
        """

    def stop(self) -> None:
        """End the brokers and controllers of this example."""

    def close(self) -> None:
        """End for good and give everything back; called once, last, whatever happened."""

    def start_broker(self, broker: int) -> Reply:
        """Start a broker that is down (capability `brokers`)."""

    def stop_broker(self, broker: int) -> Reply:
        """Let a broker die: its registration goes at once (capability `brokers`)."""

    def change_isr(self, broker: int, topic: str, partition: int, *, joins: bool) -> Reply:
        """Have the leader add or remove an in-sync replica (capability `isr`)."""

    def hold(self, effects: int) -> Reply:
        """Stop the controller before its next effect but `effects` (capability `hold`)."""

    def resume(self) -> Reply:
        """Let everything held go on where it stood (capability `hold`)."""

    def kill_controller(self) -> Reply:
        """End the acting controller's process; its memory is lost (capability `kill`)."""

    def elect(self) -> Reply:
        """Start one more controller process, which contends (capability `kill`)."""

    def expire_session(self) -> Reply:
        """Expire the acting controller's session; the process lives on (capability `expire`)."""

    def cut_connection(self) -> Reply:
        """Break the acting controller's connection, keeping its session (capability `cut`)."""


@runtime_checkable
class LosesWrites(Protocol):
    """What an adapter with capability `lose` has besides."""

    def lose_write(self, writes: int, *, done: bool) -> Reply:
        """Break the acting controller's connection under its next write but `writes`.

        No answer reaches the controller; `done` says whether ZooKeeper carries the write out.
        `resume` takes back what has not happened yet.
        """


@runtime_checkable
class KeepsMessages(Protocol):
    """What an adapter with capability `messages` has besides."""

    def take_messages(self) -> Sequence[Told | ToldStates]:
        """Return what brokers have received since the last call, in order.

        Between them stands where a controller takes partitions and replicas, if it says so.
        """


@runtime_checkable
class KeepsTime(Protocol):
    """What an adapter with capability `clock` has besides."""

    def advance(self, milliseconds: int) -> Reply:
        """Let so much time pass on the controllers' clock, which stands still otherwise."""


@runtime_checkable
class Listens(Protocol):
    """What an adapter has besides that nobody tells when a cluster rests: it can but wait."""

    def settle_soon(self, timeout_s: float) -> bool:
        """Wait like `settle`, for a moment: that is enough where nothing is owed any more."""


@runtime_checkable
class StopsBrokers(Protocol):
    """What an adapter with capability `shutdown` has besides."""

    def shut_down_broker(self, broker: int) -> Reply:
        """Have a broker tell the controller that it wants to stop, and end once it was answered.

        Where no controller answers it waits, registered, and asks the next one.
        """


@runtime_checkable
class TakesRequests(Protocol):
    """What an adapter with route `admin` has besides."""

    def reassign(self, topic: str, partition: int, target: tuple[int, ...]) -> Reply:
        """Ask the implementation, in its own way, to move a partition to this target."""


@runtime_checkable
class MakesTopics(Protocol):
    """What an adapter has besides whose implementation wants topics made in a way of its own."""

    def create_topic(
        self, topic: str, assignments: tuple[ReplicaList, ...], settings: Mapping[str, str]
    ) -> Reply:
        """Create a topic; partition i gets `assignments[i]`."""


class BadConnectable(BadConfiguration):
    """A connectable that names no adapter."""


class AdapterDied(Unavailable):
    """An adapter raised, or answered what it may not: its own class of result, no violation.

    It is no RuntimeError: of one that comes of a StopIteration `contextlib` lets only that through.
    """

    def __init__(self, message: str, call: str = "", trace: str = "") -> None:
        super().__init__(message)
        self.call = call
        """The call that it died in."""
        self.trace = trace
        """The traceback of what it raised, from the implementation's own lines on."""


class ProgramFault(Unavailable):
    """A program cannot go on, has ended, or answers what it may not."""

    def __init__(self, message: str, said: str) -> None:
        super().__init__(message)
        self.said = said
        """The last that it wrote to standard error."""


@contextmanager
def calling(call: str) -> Iterator[None]:
    """Tell whatever is raised in here from everybody else's errors, as AdapterDied.

    An interrupt is nobody's error and passes.
    """
    note_call(call)
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _bury(call, error) from error


def _bury(call: str, error: BaseException) -> AdapterDied:
    frames = traceback.extract_tb(error.__traceback__)
    while len(frames) > 1 and _is_ours(Path(frames[0].filename)):
        del frames[0]
    said = "".join(traceback.format_exception_only(error)).strip()
    if isinstance(error, ProgramFault):
        said = error.said or "(nothing)\n"
        trace = f"The last lines that the program wrote to standard error:\n{said}"
        return AdapterDied(f"the adapter died in {call}: {error}", call, trace)
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    if isinstance(error, SystemExit):
        said = f"it called sys.exit({error.code!r})"
    trace = f"Traceback of the implementation:\n{''.join(traceback.format_list(frames))}{said}\n"
    return AdapterDied(f"the adapter died in {call}: {said}{where}", call, trace)


def expect(kind: type[Value], answer: object) -> Value:
    """Return an answer of an adapter. Raises TypeError where it is of another kind."""
    if not isinstance(answer, kind):
        raise TypeError(f"it answered {reprlib.repr(answer)}; expected a {kind.__name__}")
    return answer


def expect_record(answer: object) -> Told | ToldStates:
    """Return one of the records of messages, as `expect` does."""
    return answer if isinstance(answer, ToldStates) else expect(Told, answer)


def _is_ours(file: Path) -> bool:
    """Whether the lines of a file say nothing about an implementation."""
    return file.is_relative_to(_ROOM) and file != _BUNDLED


_ROOM: Final = Path(__file__).parents[1]
_BUNDLED: Final = Path(__file__).with_name("bundled.py")


def open_adapter(
    connectable: str,
    *,
    profile: str,
    readings: Mapping[str, str],
    faults: tuple[str, ...] = (),
    answer_s: float = HANG_S,
    **more: object,
) -> Adapter:
    """Return the adapter that a connectable names.

    `zk:host:port/chroot` is a controller that runs already (`adapter.remote`). Other packages add
    schemes by entry points of the group `ADDED`.
    `exec:command line` starts a program (`reassure_conformance.adapter.program`), which may take
    `answer_s` for each answer. The class of
    `direct:package.module:Class?key=value` is called with keyword arguments `profile` and
    `readings`, those of the query and `more`, and `faults` where any are asked for. Raises
    BadConnectable, AdapterDied.
    """
    scheme, colon, rest = connectable.partition(":")
    if scheme == "exec":
        from reassure_conformance.adapter.program import open_program

        if faults:
            raise BadConnectable(
                f"{connectable!r}: --fault is for the bundled controller; use flags of the program"
            )
        return open_program(rest, profile=profile, readings=readings, answer_s=answer_s)
    if scheme == "zk":
        from reassure_conformance.adapter.remote import Remote, RemotePlace

        if faults:
            raise BadConnectable(
                f"{connectable!r}: --fault is for the bundled controller; use flags of yours"
            )
        return Remote(RemotePlace(connectable), profile=profile, readings=readings)
    for found in entry_points(group=ADDED, name=scheme) if colon else ():
        if faults:
            raise BadConnectable(f"{connectable!r}: --fault is for the bundled controller")
        adapter: Adapter = found.load()(connectable, profile=profile, readings=readings)
        return adapter
    return _make_adapter(connectable, profile, readings, faults, more)


def _make_adapter(
    connectable: str,
    profile: str,
    readings: Mapping[str, str],
    faults: tuple[str, ...],
    more: Mapping[str, object],
) -> Adapter:
    """Return an instance of the class that a connectable names."""
    scheme, _, rest = connectable.partition(":")
    place, _, query = rest.partition("?")
    module_name, colon, class_name = place.partition(":")
    if scheme != "direct" or not colon or not class_name:
        raise BadConnectable(
            f"{connectable!r} is not an implementation; write direct:package.module:Class, "
            "exec: and a command line, zk:host:port/chroot, or kafka:VERSION with the lab installed"
        )
    why: Exception | None = None
    with calling(f"the import of {module_name}"):
        try:
            factory = getattr(importlib.import_module(module_name), class_name)
        except (ImportError, AttributeError) as error:
            why = error
    if why is not None:
        raise BadConnectable(f"{connectable!r} cannot be loaded: {why}") from why
    options: dict[str, object] = {**dict(parse_qsl(query, keep_blank_values=True)), **more}
    if faults:
        options["faults"] = faults
    with calling(f"{class_name}(...)"):
        try:
            adapter = factory(profile=profile, readings=dict(readings), **options)
        except (TypeError, ValueError, BadConfiguration) as error:
            why = error
        else:
            missing = [name for name in _METHODS if not callable(getattr(adapter, name, None))]
    if why is not None:
        raise BadConnectable(f"{connectable!r} does not accept its settings: {why}") from why
    if missing:
        raise BadConnectable(f"{connectable!r} is not an adapter: add {', '.join(missing)}")
    return cast("Adapter", adapter)


_METHODS: Final = tuple(name for name in vars(Adapter) if not name.startswith("_"))


OPTIONAL: Final[Mapping[str, type]] = MappingProxyType(
    {
        LOSE: LosesWrites,
        MESSAGES: KeepsMessages,
        CLOCK: KeepsTime,
        SHUTDOWN: StopsBrokers,
        ADMIN: TakesRequests,
    }
)
"""What an adapter that declares such a capability or route has to have."""


def check_description(adapter: Adapter, description: Description) -> None:
    """Raise BadConnectable when a description does not fit the adapter or this interface."""
    if description.adapter_version not in SPOKEN:
        raise BadConnectable(
            f"{description.name} speaks adapter version {description.adapter_version}; "
            f"answer describe with one of {', '.join(map(str, SPOKEN))}"
        )
    kinds: dict[str, type[Any]] = {"name": str, "version": str, "language": str, "profile": str}
    kinds |= {"readings": Mapping, "capabilities": Set, "lifetime": str, "routes": Set}
    for name, kind in kinds.items():
        value = getattr(description, name)
        if not isinstance(value, kind):
            raise BadConnectable(
                f"{description.name!r} describes {name} as {reprlib.repr(value)}; expected a "
                f"{kind.__name__}"
            )
    try:
        override_readings(get_profile(description.profile), description.readings)
    except UnknownReading as error:
        raise BadConnectable(
            f"{description.name} answers describe with a mistake: {error}; expected a profile and "
            "readings that `reassure spec` lists; correct the answer to describe"
        ) from error
    if description.settle_ms < 0:
        raise BadConnectable(
            f"{description.name} declares settle_ms {description.settle_ms}; expected "
            "milliseconds, or 0 for the default; correct the answer to describe"
        )
    _check_words(description, "capabilities", description.capabilities, CAPABILITIES)
    _check_words(description, "routes", description.routes, ROUTES)
    _check_words(description, "lifetime", {description.lifetime}, LIFETIMES)
    if not description.routes:
        raise BadConnectable(
            f"{description.name} declares no routes; expected at least one of "
            f"{', '.join(ROUTES)}, to request reassignments; correct the answer to describe"
        )
    early = description.capabilities & OF_EXAMPLES
    if description.lifetime == RUN and early:
        raise BadConnectable(
            f"{description.name} declares lifetime {RUN} and {', '.join(sorted(early))}, which are "
            "judged from the start of a cluster and need a lifetime of one example; declare one "
            "or the other"
        )
    for ability in sorted(description.abilities & OPTIONAL.keys()):
        if not isinstance(adapter, OPTIONAL[ability]):
            methods = [n for n in vars(OPTIONAL[ability]) if not n.startswith("_")]
            raise BadConnectable(
                f"{description.name} declares {ability} and lacks the method {', '.join(methods)}"
            )


def _check_words(description: Description, name: str, said: Set[str], known: Sequence[str]) -> None:
    """Raise BadConnectable where a description names what there is not."""
    unknown = sorted(said - set(known))
    if unknown:
        raise BadConnectable(
            f"{description.name} declares unknown {name} {', '.join(unknown)}; "
            f"there are: {', '.join(known)}"
        )
