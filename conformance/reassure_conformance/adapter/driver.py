"""The driver: a live cluster's ZooKeeper, as its clients, its brokers' log and its makers see it.

Whatever is done to a live cluster is done here. Each cluster has a chroot of its own, made by
`make_cluster`; paths are those below it.

The calls to the implementation go through `calling`, which tells its exceptions from everybody
else's. Where the time goes is counted in `clock`, by section.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from kazoo.client import KazooClient, TransactionRequest
from kazoo.exceptions import (
    ConnectionLoss,
    KazooException,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import ZnodeStat

from reassure_conformance.adapter import LOG, WATCHES, Reply, calling
from reassure_conformance.adapter.world import REAL, World
from reassure_judge.live_events import ClusterView, Rested
from reassure_judge.transaction_reader import written_paths
from reassure_pipeline.watch.follower import LogFollower
from reassure_spec.errors import Unavailable
from reassure_spec.profiles import DEFAULT_PROFILE, reads
from reassure_spec.znodes import (
    DELETED_TOPICS,
    PERSISTENT_ROOTS,
    REASSIGNMENT_REQUESTS,
    REASSIGNMENT_TASKS,
    REASSIGNMENTS,
    REQUEST_PREFIX,
    TASK_PREFIX,
)
from reassure_zookeeper.transactions import Transaction

SETTLE_TIMEOUT_S: Final = 10.0
_OF_REQUESTS: Final = (REASSIGNMENT_REQUESTS, REASSIGNMENTS)


class ServerGone(Unavailable):
    """ZooKeeper does not answer: nothing can be said about the implementation."""


class Driver:
    """One server, its transaction log and a client. A context manager.

    `hosts` is "host:port", `log_dir` the directory of the server's transaction logs, None where
    nobody may read them. The server is somebody else's and stays. With `home` there is one cluster,
    in that chroot, which somebody else has made. Raises ServerGone when ZooKeeper does not answer.
    """

    def __init__(
        self,
        hosts: str,
        log_dir: Path | None,
        chroot_prefix: str,
        home: str | None = None,
        world: World = REAL,
    ) -> None:
        self.hosts: Final = hosts
        self.clock: Counter[str] = Counter()
        """Seconds by section: `controller`, `zookeeper`, `log`, `judge`."""
        self.monotonic: Final = world.monotonic
        self._world: Final = world
        self.made = 0
        """How many clusters were made."""
        self._prefix: Final = chroot_prefix
        self._home: Final = home
        self._follower = None if log_dir is None else LogFollower(log_dir)
        past = self.read_log()
        self.past: Final = past if home is not None else []
        """What the log showed of the home before."""
        told = {LOG: log_dir is not None, WATCHES: self._list_watched("") is not None}
        self.abilities: Final = {name for name, is_told in told.items() if is_told}
        """What the server lets be judged."""
        self.client = world.make_client(hosts=hosts, timeout=30.0)
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
        start = self.monotonic()
        try:
            yield
        finally:
            self.clock[name] += self.monotonic() - start  # type: ignore[assignment]

    @contextmanager
    def calling(self, verb: str) -> Iterator[None]:
        """Count the adapter's time, and tell its exceptions from everybody else's."""
        with self.section("controller"), calling(verb):
            yield

    def read_log(self) -> list[Transaction]:
        """Return what the log shows since the last look, of every cluster."""
        with self.section("log"):
            found = [] if self._follower is None else self._follower.read_all()
        if self._home is None:
            return found
        # Who ends a session names no path, and may be of this cluster.
        written = ((one, list(written_paths(one))) for one in found)
        return [one for one, paths in written if not paths or any(map(self.owns, paths))]

    # -- what clients do

    def make_cluster(
        self, nodes: Iterable[tuple[str, bytes]] = (), profile: str = DEFAULT_PROFILE
    ) -> str:
        """Return a fresh chroot with the persistent paths and these znodes, all in one write.

        Those of requests are left out where no controller of the profile reads them.
        """
        self.made += 1
        if self._home is not None:
            return self._home
        chroot = f"{self._prefix}-{self.made:05d}"
        transaction = self.client.transaction()
        unread = () if reads(profile, REASSIGNMENT_REQUESTS) else _OF_REQUESTS
        for path in _list_cluster_paths(chroot):
            if path.removeprefix(chroot) in unread:
                continue
            transaction.create(path, b"")
        for path, content in nodes:
            transaction.create(chroot + path, content)
        with self.section("zookeeper"):
            self.commit(transaction)
        return chroot

    def owns(self, path: str) -> bool:
        """Whether a path is in a cluster that was made here."""
        return path.startswith(f"{self._prefix}-" if self._home is None else f"{self._home}/")

    def read_tree(self, chroot: str) -> list[tuple[str, bytes, int]]:
        """Return every znode of a cluster: path, content, and the session that keeps it."""
        with self.section("zookeeper"):
            found = walk(self.client, chroot)
            return [(path, content, stat.ephemeralOwner) for path, content, stat in found]

    def make_rest(self, chroot: str, view: ClusterView) -> Rested:
        """Return that a cluster rests, with what is watched then, if that may depend on moves."""
        several = len(view.list_moving()) > 1
        return Rested(view, self._list_watched(chroot) if several else None)

    def _list_watched(self, chroot: str) -> frozenset[str] | None:
        """Return the znodes of a cluster that somebody watches, None where the server is mute."""
        with self.section("zookeeper"):
            watched = self._world.list_watched(self.hosts)
        if watched is None:
            return None
        inside = (path for path in watched if path.startswith(f"{chroot}/"))
        return frozenset(path.removeprefix(chroot) for path in inside)

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

    def remove(self, chroot: str, paths: Iterable[str]) -> None:
        """Remove those of these znodes that are there."""
        for path in paths:
            with suppress(NoNodeError):
                self.client.delete(chroot + path)

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


def walk(client: KazooClient, path: str = "") -> Iterator[tuple[str, bytes, ZnodeStat]]:
    """Yield every znode below a path: path, content and stat."""
    level = [path]
    while level:
        names = [(each, client.get_children_async(each or "/")) for each in level]
        below = []
        for parent, pending in names:
            with suppress(NoNodeError):
                found = [name for name in pending.get() if parent or name != "zookeeper"]
                below += [f"{parent}/{name}" for name in found]
        reads = [(each, client.get_async(each)) for each in below]
        for each, pending in reads:
            with suppress(NoNodeError):
                yield each, *pending.get()
        level = below
