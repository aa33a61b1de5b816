"""The driver: a live cluster's ZooKeeper, as its clients, its brokers' log and its makers see it.

Whatever is done to a live cluster is done here: the gate's examples, live scenarios and replayed
counterexamples differ in what they ask for and in what they hold it against, not in how it is done.
Each cluster has a chroot of its own, made by `make_cluster`; paths are those below it.

The calls to the implementation go through `calling`, which tells its exceptions from everybody
else's. Where the time goes is counted in `clock`, by section.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kazoo.client import TransactionRequest
from kazoo.exceptions import (
    ConnectionLoss,
    KazooException,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import ZnodeStat

from reassure_conformance.adapter import Reply, calling
from reassure_controller.direct import DirectClient
from reassure_spec.errors import Unavailable
from reassure_spec.znodes import (
    DELETED_TOPICS,
    PERSISTENT_ROOTS,
    REASSIGNMENT_REQUESTS,
    REASSIGNMENT_TASKS,
    REQUEST_PREFIX,
    TASK_PREFIX,
)
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.txnlog import LogFollower

SETTLE_TIMEOUT_S: Final = 10.0


class ServerGone(Unavailable):
    """ZooKeeper does not answer: nothing can be said about the implementation."""


class Driver:
    """One server, its transaction log and a client. A context manager.

    `hosts` is "host:port", `log_dir` the directory of the server's transaction logs. The server is
    somebody else's and stays. Raises ServerGone when ZooKeeper does not answer.
    """

    def __init__(self, hosts: str, log_dir: Path, chroot_prefix: str) -> None:
        self.hosts: Final = hosts
        self.clock: Counter[str] = Counter()
        """Seconds by section: `controller`, `zookeeper`, `log`, `judge`."""
        self.made = 0
        """How many clusters were made."""
        self._prefix: Final = chroot_prefix
        self._follower = LogFollower(log_dir)
        self._follower.read_new()
        self.client = DirectClient(hosts=hosts, timeout=30.0)
        try:
            self.client.start(timeout=15)
        except KazooTimeoutError as error:
            raise ServerGone(f"ZooKeeper at {hosts} does not answer: {error}") from error

    def __enter__(self) -> "Driver":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the client; the server stays."""
        self.client.stop()
        self.client.close()

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        """Count the time that something takes."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.clock[name] += time.perf_counter() - start  # type: ignore[assignment]

    @contextmanager
    def calling(self, verb: str) -> Iterator[None]:
        """Count the adapter's time, and tell its exceptions from everybody else's."""
        with self.section("controller"), calling(verb):
            yield

    def read_log(self) -> list[Transaction]:
        """Return what the log shows since the last look, of every cluster."""
        with self.section("log"):
            return self._follower.read_new()

    # -- what clients do

    def make_cluster(self, nodes: Iterable[tuple[str, bytes]] = ()) -> str:
        """Return a fresh chroot with the persistent paths and these znodes, all in one write."""
        self.made += 1
        chroot = f"{self._prefix}-{self.made:05d}"
        transaction = self.client.transaction()
        for path in _list_cluster_paths(chroot):
            transaction.create(path, b"")
        for path, content in nodes:
            transaction.create(chroot + path, content)
        with self.section("zookeeper"):
            self.commit(transaction)
        return chroot

    def owns(self, path: str) -> bool:
        """Whether a path is in a cluster that was made here."""
        return path.startswith(f"{self._prefix}-")

    def commit(self, transaction: TransactionRequest) -> None:
        """Commit what has to succeed. Raises what the first refused operation raised."""
        try:
            results = transaction.commit()
        except (ConnectionLoss, SessionExpiredError, KazooTimeoutError) as error:
            raise ServerGone(f"ZooKeeper at {self.hosts} does not answer: {error!r}") from error
        for result in results:
            if isinstance(result, Exception):
                raise result

    def write(self, write: Callable[[], object]) -> Reply:
        """Make a client's write; an answer that never came is UNKNOWN, a refusal REFUSED."""
        try:
            with self.section("zookeeper"):
                write()
        except NodeExistsError:
            return Reply.REFUSED
        except (ConnectionLoss, SessionExpiredError, KazooTimeoutError) as error:
            if not self.client.connected:
                raise ServerGone(f"ZooKeeper at {self.hosts} is gone: {error!r}") from error
            return Reply.UNKNOWN
        except KazooException:
            return Reply.REFUSED
        return Reply.OK

    def put(self, chroot: str, nodes: Mapping[str, bytes]) -> None:
        """Write znodes in one transaction, making those that are not there, parents first."""
        transaction = self.client.transaction()
        there = self.fetch(chroot, nodes)
        for (path, content), found in zip(nodes.items(), there, strict=True):
            if found is None:
                transaction.create(chroot + path, content)
            else:
                transaction.set_data(chroot + path, content)
        self.commit(transaction)

    def submit(self, chroot: str, contents: Iterable[bytes]) -> Reply:
        """Put requests with these contents into the queue, in this order."""
        return self._append(f"{chroot}{REASSIGNMENT_REQUESTS}/{REQUEST_PREFIX}", contents)

    def submit_task(self, chroot: str, content: bytes) -> Reply:
        """Persist a task with this content."""
        return self._append(f"{chroot}{REASSIGNMENT_TASKS}/{TASK_PREFIX}", [content])

    def _append(self, path: str, contents: Iterable[bytes]) -> Reply:
        def make() -> None:
            pending = [self.client.create_async(path, c, sequence=True) for c in contents]
            for result in pending:
                result.get(timeout=SETTLE_TIMEOUT_S)

        return self.write(make)

    def fetch(self, chroot: str, paths: Iterable[str]) -> list[tuple[bytes, ZnodeStat] | None]:
        """Return content and stat of these znodes, None for each that is not there."""
        found: list[tuple[bytes, ZnodeStat] | None] = []
        for pending in [self.client.get_async(chroot + path) for path in paths]:
            try:
                found.append(pending.get())
            except NoNodeError:
                found.append(None)
        return found

    def read(self, chroot: str, path: str) -> bytes | None:
        """Return the content of a znode, None where it is not there."""
        found = self.fetch(chroot, [path])[0]
        return None if found is None else found[0]


def _list_cluster_paths(chroot: str) -> tuple[str, ...]:
    """Return the paths that a cluster in this chroot begins with, parents first."""
    paths = dict.fromkeys((chroot,))
    for root in (*PERSISTENT_ROOTS, DELETED_TOPICS):
        parts = root.split("/")[1:]
        paths |= {"/".join((chroot, *parts[:n])): None for n in range(1, len(parts) + 1)}
    return tuple(paths)
