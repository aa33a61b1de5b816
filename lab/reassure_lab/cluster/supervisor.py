"""Starts a cluster of processes, and kills, stops and revives its members.

A directory belongs to one cluster:

| in the directory | what it is |
|---|---|
| `cluster.json` | which members there are, and their processes (`state`) |
| `zookeeper-1`, … | configuration and data of a server |
| `broker-1`, … | logs of the partitions and history of a broker |
| `log/broker-1.log`, … | what a member logs; `log/broker-1.ready`: the line it began with |

Members are in sessions of their own, so they outlive whoever started them: who that was does not
matter afterwards, and nobody has to be running. A member is written down before it does anything:
until then it waits for a word on its standard input, and ends where none comes.
"""

import contextlib
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

from reassure_lab.cluster.ports import HOST, hold_port
from reassure_lab.cluster.processes import Process
from reassure_lab.cluster.state_file import (
    STATE,
    Address,
    ClusterState,
    DirectoryTaken,
    MemberState,
    NoCluster,
    Role,
    hold_lock,
    read_state,
    write_state,
)
from reassure_spec.errors import BadUsage, Unavailable
from reassure_spec.profiles import DEFAULT_PROFILE

FIRST_CONTROLLER: Final = 101
"""The id of the first controller; brokers begin with 1."""
READY_S: Final = 60.0
"""How long a member may take until it is ready."""
GRACE_S: Final = 10.0
"""How long a member may take to end in order before it is killed."""
SESSION_S: Final = 4.0
"""Session timeout of brokers and controllers."""
_POLL_S: Final = 0.02
_PROBE_S: Final = 1.0
_LAST_LINES: Final = 12

_GATE: Final = 'read -r word && [ "$word" = go ] && exec "$@" </dev/null'
"""Waits for the word, and becomes the member: the process stays the same."""


class NoMember(BadUsage):
    """There is no member of that name."""


class MemberFailed(Unavailable):
    """A member did not start."""


@dataclass(frozen=True, slots=True)
class ClusterMember:
    """A member as it is at a moment."""

    name: str
    role: Role
    number: int
    """The id of a broker or controller, the place of a server in its ensemble."""
    address: Address | None
    metrics: Address | None
    """Where it answers Prometheus."""
    pid: int | None
    """Of its process, None while there is none."""
    alive: bool
    stopped: bool
    """Whether it was paused and not resumed."""


class ProcessCluster:
    """The cluster in a directory, from `Cluster.start`, or `Cluster.open` where one runs already.

    What it says is read when it is asked, so several may be used on one cluster, in several
    processes. A context manager: `stop` at the end.
    """

    def __init__(self, directory: Path) -> None:
        """Take the cluster in the directory; `start` and `open` are the ways in."""
        self.directory = directory.absolute()
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    @classmethod
    def start(
        cls,
        directory: Path,
        brokers: int = 3,
        controllers: int = 2,
        zookeepers: int = 1,
        *,
        profile: str = DEFAULT_PROFILE,
        session_timeout_s: float = SESSION_S,
        broker_options: Sequence[str] = (),
        controller_options: Sequence[str] = (),
        arrange: Callable[[Sequence[MemberState]], Iterable[MemberState]] = lambda members: members,
    ) -> Self:
        """Start a cluster in a directory that is not there or empty; return once all are ready.

        The options are handed to brokers and controllers, behind those that are set here; `arrange`
        may change how members are started, now that it is known where each of them is. Where a
        member does not start, nothing is left of the others either. Raises BadUsage,
        DirectoryTaken, MemberFailed.
        """
        for what, count in (
            ("brokers", brokers), ("controllers", controllers), ("zookeepers", zookeepers),
        ):  # fmt: skip
            if count < 1:
                raise BadUsage(f"{count} {what}: a cluster has at least one")
        cluster = cls(directory)
        with contextlib.ExitStack() as held:
            cluster._claim()  # from here on there is something to take back
            try:
                members = [
                    *_plan_servers(cluster.directory, zookeepers, held),
                    *_plan_nodes(cluster.directory, "broker", brokers, held),
                    *_plan_nodes(cluster.directory, "controller", controllers, held),
                ]
                more = {
                    "broker": broker_options,
                    "controller": ("--profile", profile, *controller_options),
                    "zookeeper": (),
                }
                hosts = _join_addresses(members, "zookeeper")
                session = ("--session-timeout", f"{session_timeout_s:g}")
                common = ("--zookeeper", hosts, *session)
                members = [
                    replace(
                        one,
                        command=(
                            *one.command,
                            *(() if one.role == "zookeeper" else common),
                            *more[one.role],
                        ),
                    )
                    for one in members
                ]
                cluster._write_members(arrange(members))
                cluster._start_all(("zookeeper",))
                cluster._start_all(("broker", "controller"))
            except BaseException:
                cluster.stop()
                raise
        return cluster

    @classmethod
    def open(cls, directory: Path) -> Self:
        """Return the cluster that was started in a directory. Raises NoCluster, BadState."""
        cluster = cls(directory)
        read_state(cluster.directory)
        return cluster

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # What there is

    def members(self) -> tuple[ClusterMember, ...]:
        """Return every member as it is now. Raises NoCluster, BadState."""
        self._reap()
        return tuple(_look(member) for member in read_state(self.directory).members)

    def member(self, name: str) -> ClusterMember:
        """Return a member as it is now. Raises NoMember, NoCluster, BadState."""
        self._reap()
        return _look(self._find(name)[1])

    def is_ready(self, name: str) -> bool:
        """Whether a member has come up. Raises NoMember, NoCluster, BadState."""
        return self._is_ready(self._find(name)[1])

    @property
    def zookeeper(self) -> str:
        """Where a client of ZooKeeper connects: every server, divided by commas."""
        return _join_addresses(read_state(self.directory).members, "zookeeper")

    @property
    def bootstrap(self) -> list[str]:
        """Where a client of Kafka begins: every broker."""
        return _join_addresses(read_state(self.directory).members, "broker").split(",")

    def get_log(self, name: str) -> Path:
        """Return the file that a member logs to."""
        return self.directory / "log" / f"{name}.log"

    # What can be done to a member

    def kill(self, name: str) -> None:
        """End a member at once (SIGKILL) and return when it is gone."""
        self._end([self._find(name)[1]], signal.SIGKILL)

    def pause(self, name: str) -> None:
        """Let a member stand still (SIGSTOP) and return when it does."""
        process = self._running(name)
        process.send(signal.SIGSTOP)
        while process.is_alive and not process.is_stopped:
            time.sleep(_POLL_S)

    def resume(self, name: str) -> None:
        """Let a member go on (SIGCONT)."""
        self._running(name).send(signal.SIGCONT)

    def restart(self, name: str, *, wait_s: float = READY_S, options: Sequence[str] = ()) -> None:
        """Start a member again, ending it in order first where it runs; wait until it is ready.

        With `wait_s` 0 nobody waits: a server of an ensemble is not ready before a majority is. The
        options are for this life only.
        Raises NoMember, MemberFailed.
        """
        self._end([self._find(name)[1]], signal.SIGTERM)
        with hold_lock(self.directory):
            self._launch(name, options)
        if wait_s > 0:
            self._wait_ready([name], wait_s)

    def stop(self, *, keep: bool = False) -> None:
        """End every member, and remove all that was made for the cluster.

        With `keep` brokers and controllers end in order, and the data and logs of all members
        stay. Where there is no cluster any more nothing is done.
        """
        try:
            with hold_lock(self.directory):
                state = read_state(self.directory)
                nodes = [one for one in state.members if one.role != "zookeeper"]
                self._end(nodes, signal.SIGTERM if keep else signal.SIGKILL)
                self._end(state.members, signal.SIGKILL)
                if not keep:
                    for name in ("log", *(one.name for one in state.members)):
                        shutil.rmtree(self.directory / name, ignore_errors=True)
                (self.directory / STATE).unlink()
        except NoCluster:
            return
        if state.owns_directory and not any(self.directory.iterdir()):
            self.directory.rmdir()

    def leave(self) -> None:
        """Let the members run; they are nobody's children from now on."""
        for child in self._children.values():
            child.returncode = 0  # nobody waits for it here, and Python need not warn
        self._children.clear()

    # How it is done

    def _claim(self) -> None:
        """Take the directory, or raise DirectoryTaken."""
        owns = not self.directory.exists()
        self.directory.mkdir(parents=True, exist_ok=True)
        with hold_lock(self.directory):
            found = sorted(path.name for path in self.directory.iterdir())
            if STATE in found:
                alive = [_look(one).name for one in read_state(self.directory).members]
                raise DirectoryTaken(
                    f"{self.directory}: a cluster is there ({', '.join(alive)}); "
                    f"`reassure lab cluster down --directory {self.directory}` ends it and removes "
                    "what is left of it, or name another directory"
                )
            if found:
                raise DirectoryTaken(
                    f"{self.directory}: not empty (it has {found[0]}); name a directory that is "
                    "empty or not there yet"
                )
            (self.directory / "log").mkdir()
            write_state(self.directory, ClusterState(owns, ()))

    def _write_members(self, members: Iterable[MemberState]) -> None:
        with hold_lock(self.directory):
            state = read_state(self.directory)
            write_state(self.directory, replace(state, members=tuple(members)))

    def _find(self, name: str) -> tuple[ClusterState, MemberState]:
        state = read_state(self.directory)
        found = state.find(name)
        if found is None:
            names = ", ".join(one.name for one in state.members)
            raise NoMember(f"{self.directory}: no member {name}; there are {names}")
        return state, found

    def _running(self, name: str) -> Process:
        process = self._find(name)[1].process
        if process is None or not process.is_alive:
            raise NoMember(f"{name} is not running; restart it first")
        return process

    def _start_all(self, roles: Iterable[Role]) -> None:
        names = [one.name for one in read_state(self.directory).members if one.role in roles]
        with hold_lock(self.directory):
            for name in names:
                self._launch(name)
        self._wait_ready(names, READY_S)

    def _launch(self, name: str, options: Sequence[str] = ()) -> None:
        """Start a member and write down which process it is; the lock is held."""
        state, member = self._find(name)
        ready = self._ready_file(name)
        with self.get_log(name).open("ab") as log, ready.open("wb") as said:
            child = subprocess.Popen(
                ["/bin/sh", "-c", _GATE, name, *member.command, *options],
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=log,
                cwd=self.directory,
                start_new_session=True,
            )
        self._children[child.pid] = child
        process = Process.find(child.pid)
        write_state(self.directory, state.replace(replace(member, process=process)))
        assert child.stdin is not None
        with child.stdin as gate:
            gate.write(b"go\n")

    def _ready_file(self, name: str) -> Path:
        return self.directory / "log" / f"{name}.ready"

    def _wait_ready(self, names: Iterable[str], wait_s: float) -> None:
        """Return once the members are ready. Raises MemberFailed."""
        deadline = time.monotonic() + wait_s
        waiting = [self._find(name)[1] for name in names]
        while waiting:
            # Whether it is alive is asked first: one that ends meanwhile may have been ready.
            ended = [one for one in waiting if not _look(one).alive]
            waiting = [one for one in waiting if not self._is_ready(one)]
            for one in ended:
                if one in waiting:
                    raise MemberFailed(self._explain(one.name, "ended while it was starting"))
            if waiting and time.monotonic() > deadline:
                what = f"was not ready within {wait_s:g} s"
                raise MemberFailed(self._explain(waiting[0].name, what))
            if waiting:
                time.sleep(_POLL_S)

    def _is_ready(self, member: MemberState) -> bool:
        if member.role == "zookeeper":
            assert member.address is not None
            return "Mode:" in _ask_server(member.address)
        return self._ready_file(member.name).read_text("utf-8").startswith("ready ")

    def _explain(self, name: str, what: str) -> str:
        log = self.get_log(name)
        text = log.read_text("utf-8", "replace")
        lines = [line for line in text.splitlines() if not line.startswith("SLF4J")]
        said = "\n  ".join(lines[-_LAST_LINES:]) or "(nothing)"
        return f"{name} {what}; it said:\n  {said}"

    def _end(self, members: Iterable[MemberState], number: signal.Signals) -> None:
        """Send the members a signal that ends them, and kill those that it did not end in time."""
        processes = [one.process for one in members if one.process is not None]
        for process in processes:
            process.send(number)
            process.send(signal.SIGCONT)  # one that is paused would not notice
        deadline = time.monotonic() + GRACE_S
        for process in processes:
            if not process.wait(max(0.0, deadline - time.monotonic())):
                process.send(signal.SIGKILL)
                if not process.wait(GRACE_S):
                    raise MemberFailed(f"process {process.pid} does not end: look at its state")
        self._reap()

    def _reap(self) -> None:
        """Collect children that have ended."""
        for pid, child in tuple(self._children.items()):
            if child.poll() is not None:
                self._children.pop(pid, None)  # whoever else looks may have been first


def _look(member: MemberState) -> ClusterMember:
    process = member.process
    alive = process is not None and process.is_alive
    stopped = process is not None and process.is_stopped
    pid = process.pid if process is not None and alive else None
    return ClusterMember(
        member.name,
        member.role,
        member.number,
        member.address,
        member.metrics,
        pid,
        alive,
        stopped,
    )


def _join_addresses(members: Iterable[MemberState], role: Role) -> str:
    found = [one.address for one in members if one.role == role and one.address is not None]
    return ",".join(f"{host}:{port}" for host, port in found)


def _take_port(held: contextlib.ExitStack) -> int:
    return int(held.enter_context(hold_port()).getsockname()[1])


def _python(module: str) -> tuple[str, ...]:
    return (sys.executable, "-P", "-m", module)


def _plan_servers(directory: Path, count: int, held: contextlib.ExitStack) -> Iterator[MemberState]:
    numbers = range(1, count + 1)
    pairs = {one: (_take_port(held), _take_port(held)) for one in numbers if count > 1}
    peers = [f"--server={one}:{follow}:{elect}" for one, (follow, elect) in pairs.items()]
    for one in numbers:
        name, port = f"zookeeper-{one}", _take_port(held)
        command = (
            *_python("reassure_zookeeper"),
            *("--data", str(directory / name), "--port", str(port)),
            *(("--own", str(one), *peers) if peers else ()),
        )
        yield MemberState(name, "zookeeper", one, (HOST, port), command)


def _plan_nodes(
    directory: Path, role: Role, count: int, held: contextlib.ExitStack
) -> Iterator[MemberState]:
    first = 1 if role == "broker" else FIRST_CONTROLLER
    for number in range(first, first + count):
        name, metrics = f"{role}-{number}", _take_port(held)
        command = (
            *(*_python("reassure_lab"), role, "--id", str(number)),
            *("--metrics-port", str(metrics)),
            *("--log-file", str(directory / "log" / f"{name}.log")),
        )
        scraped = (HOST, metrics)
        if role == "controller":
            yield MemberState(name, role, number, None, tuple(command), scraped)
            continue
        port = _take_port(held)
        own = ("--data", str(directory / name), "--port", str(port))
        yield MemberState(name, role, number, (HOST, port), (*command, *own), scraped)


def _ask_server(address: Address) -> str:
    """Return what a server says of itself; nothing where it does not answer."""
    try:
        with socket.create_connection(address, _PROBE_S) as connection:
            connection.sendall(b"srvr")
            return b"".join(iter(lambda: connection.recv(4096), b"")).decode("ascii", "replace")
    except OSError:
        return ""
