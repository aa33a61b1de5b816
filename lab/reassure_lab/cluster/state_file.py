"""The file by which a cluster is found again, whoever started it and whatever became of that one.

It stands in the directory of the cluster and says which members there are, how each is started and
which process each is. It is replaced as a whole, while the directory is locked.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, Self

from reassure_controller.storage.files import write_atomically
from reassure_lab.cluster.processes import Process
from reassure_spec.errors import BadConfiguration, BadData

STATE: Final = "cluster.json"
_FORMAT: Final = 1

Role = Literal["zookeeper", "broker", "controller"]
Address = tuple[str, int]


class NoCluster(BadConfiguration):
    """There is no cluster in a directory."""


class DirectoryTaken(BadConfiguration):
    """A directory cannot be had for a cluster: it has one, or something else."""


class BadState(BadData):
    """The file that says which processes a cluster has cannot be read."""

    def __init__(self, path: Path, problem: object) -> None:
        super().__init__(
            f"{path}: not the state of a cluster ({problem}); end the processes that have "
            f"{path.parent} on their command line and delete the directory"
        )
        self.path = path


@dataclass(frozen=True, slots=True)
class MemberState:
    """What is kept of a member."""

    name: str
    role: Role
    number: int
    address: Address | None
    """Where it listens for clients, None of one that does not."""
    command: tuple[str, ...]
    metrics: Address | None = None
    """Where it answers Prometheus."""
    process: Process | None = None
    """The last one that was started, None before the first."""


@dataclass(frozen=True, slots=True)
class ClusterState:
    """What is kept of a cluster."""

    owns_directory: bool
    """Whether the directory was made for the cluster."""
    members: tuple[MemberState, ...]

    def find(self, name: str) -> MemberState | None:
        """Return a member."""
        return next((one for one in self.members if one.name == name), None)

    def replace(self, member: MemberState) -> Self:
        """Return the state with a member of that name as given."""
        members = tuple(member if one.name == member.name else one for one in self.members)
        return replace(self, members=members)


def read_state(directory: Path) -> ClusterState:
    """Read the state. Raises NoCluster, BadState."""
    path = directory / STATE
    try:
        content = json.loads(path.read_text("utf-8"))
        if content["format"] != _FORMAT:
            raise BadState(path, f"format {content['format']}, expected {_FORMAT}")
        return ClusterState(
            content["owns_directory"],
            tuple(_read_member(member) for member in content["members"]),
        )
    except (FileNotFoundError, NotADirectoryError):
        raise _say_absent(directory) from None
    except (ValueError, KeyError, TypeError) as problem:
        raise BadState(path, problem) from None


def _read_member(content: dict[str, Any]) -> MemberState:
    process = content["process"]
    return MemberState(
        content["name"],
        content["role"],
        content["number"],
        _read_address(content["address"]),
        tuple(content["command"]),
        _read_address(content["metrics"]),
        None if process is None else Process(**process),
    )


def _read_address(content: list[Any] | None) -> Address | None:
    return None if content is None else (content[0], content[1])


def write_state(directory: Path, state: ClusterState) -> None:
    """Replace the state. What it is for is a crash of a process, not of the machine."""
    content = {"format": _FORMAT, **asdict(state)}
    write_atomically(directory / STATE, json.dumps(content, indent=2) + "\n", lambda _: None)


@contextmanager
def hold_lock(directory: Path) -> Iterator[None]:
    """Let nobody else change the cluster meanwhile; waits for one who does. Raises NoCluster."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
        raise _say_absent(directory) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _say_absent(directory: Path) -> NoCluster:
    return NoCluster(
        f"{directory}: no cluster is there; `reassure lab cluster up` starts one, and --directory "
        "names another place"
    )
