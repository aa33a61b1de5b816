"""The virtual ZooKeeper against a real one: the same requests, and all that clients see of them."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from kazoo.exceptions import KazooException
from kazoo.protocol.states import ZnodeStat

from reassure_conformance.adapter.losing import lose_write
from reassure_conformance.adapter.world import REAL, VirtualWorld, World
from reassure_controller.client import Client, Read
from reassure_pipeline.watch.follower import LogFollower
from reassure_zookeeper.server import Server
from reassure_zookeeper.transactions import CLOSE_SESSION, Transaction

SESSIONS: Final = 3
SEEN_S: Final = 30.0
"""How long a client may take to notice what befell it, on a real server."""


class Ask(NamedTuple):
    """One request of a session: the method of `Side`, and its arguments."""

    what: str
    who: int
    arguments: tuple[Any, ...] = ()


class Side:
    """One ZooKeeper with its clients, and what each of these has seen, in order."""

    def __init__(self, world: World, hosts: str, log_dir: Path) -> None:
        self.world, self.hosts, self.log = world, hosts, LogFollower(log_dir)
        self.seen: list[list[Any]] = [[] for _ in range(SESSIONS)]
        self.sessions: dict[int, int] = {}
        """By id, the how manieth session of this side it is."""
        self.clients = [self._start(seen) for seen in self.seen]

    def _start(self, seen: list[Any]) -> Client:
        client = self.world.make_client(hosts=self.hosts, timeout=30.0)
        client.add_listener(lambda state: seen.append(("state", state)))
        client.start()
        self._note_session(client)
        return client

    def _note_session(self, client: Client) -> None:
        self.sessions.setdefault(client.client_id[0], len(self.sessions))

    def close(self) -> None:
        """End the clients."""
        for client in self.clients:
            client.stop()
            client.close()

    def begin(self, chroot: str) -> None:
        """Have all clients live in a fresh chroot."""
        for client, seen in zip(self.clients, self.seen, strict=True):
            client.chroot = ""
            client.ensure_path(chroot)
            client.unwatch_below()
            client.sync("/")
            client.chroot = chroot
            seen.clear()
        for path in THERE:
            self.clients[0].create(path)

    def do(self, ask: Ask) -> None:
        """Carry out a request, and note how it ended."""
        client, seen = self.clients[ask.who], self.seen[ask.who]
        act: Callable[..., Any] = getattr(self, ask.what)
        try:
            answer = act(client, seen.append, *ask.arguments)
        except KazooException as error:
            answer = type(error).__name__
        seen.append((ask.what, self.plain(answer)))

    def plain(self, answer: Any) -> Any:
        """Return an answer without what differs from server to server: times, session ids."""
        if isinstance(answer, ZnodeStat):
            owner = self.sessions.get(answer.ephemeralOwner, answer.ephemeralOwner)
            return answer._replace(ctime=0, mtime=0, ephemeralOwner=owner)
        if isinstance(answer, Exception):
            return type(answer).__name__
        if isinstance(answer, list | tuple):
            return [self.plain(each) for each in answer]
        return answer

    def finish(self) -> list[list[Any]]:
        """Return what all have seen, once what is on its way has come."""
        for client in self.clients:
            client.sync("/")
        return [list(map(self.plain, seen)) for seen in self.seen]

    def read_log(self) -> list[Any]:
        """Return what was logged since the last call, without times, with sessions by number."""
        return list(map(self._plain_transaction, self.log.read_all()))

    def _plain_transaction(self, one: Transaction) -> Transaction:
        # A session is expired by a request of another connection on the real side.
        cxid = 0 if one.type == CLOSE_SESSION else one.cxid
        session = self.sessions[one.session_id]
        return replace(one, time_ms=0, cxid=cxid, session_id=session, digest=b"")

    # -- what sessions do; `note` takes what comes of its own accord

    def _watcher(self, note: Callable[[Any], None], watch: bool) -> Any:
        return (lambda event: note((event.type, event.path))) if watch else None

    def create(self, client: Client, _: Any, path: str, data: bytes, how: int, more: bool) -> Any:
        """Create a znode; `how` are ZooKeeper's flags."""
        flags = {"ephemeral": bool(how & 1), "sequence": bool(how & 2)}
        return client.create(path, data, include_data=more, **flags)

    def delete(self, client: Client, _: Any, path: str, version: int) -> Any:
        """Delete a znode."""
        return client.delete(path, version)

    def write(self, client: Client, _: Any, path: str, data: bytes, version: int) -> Any:
        """Write a znode."""
        return client.set(path, data, version)

    def get(self, client: Client, note: Any, path: str, watch: bool) -> Any:
        """Read a znode."""
        return client.get(path, self._watcher(note, watch))

    def exists(self, client: Client, note: Any, path: str, watch: bool) -> Any:
        """Look whether a znode is there."""
        return client.exists(path, self._watcher(note, watch))

    def children(self, client: Client, note: Any, path: str, watch: bool, more: bool) -> Any:
        """List the children of a znode."""
        return client.get_children(path, self._watcher(note, watch), include_data=more)

    def multi(self, client: Client, _: Any, parts: list[tuple[Any, ...]]) -> Any:
        """Write many znodes or none."""
        transaction = client.transaction()
        for name, *arguments in parts:
            getattr(transaction, name)(*arguments)
        return transaction.commit_async().get()

    def read(self, client: Client, _: Any, reads: list[Read]) -> Any:
        """Read many znodes in one request."""
        return client.read_async(reads).get()

    def pipeline(self, client: Client, note: Any, paths: list[str]) -> None:
        """Ask for many things before any answer; each answer is noted when it comes."""

        def take(result: Any) -> None:
            note(self.plain(result.value if result.successful() else result.exception))

        pending = []
        for path in paths:
            pending += [client.create_async(path, b"p"), client.get_async(path)]
            pending += [client.exists_async(path, self._watcher(note, True))]
            pending += [client.delete_async(path)]
        for each in pending:
            each.rawlink(take)
        pending[-1].wait(SEEN_S)

    def watch_below(self, client: Client, note: Any, path: str) -> None:
        """Watch all below a path for good."""
        client.watch_below_async(path, self._watcher(note, True)).get()

    def unwatch_below(self, client: Client, _: Any) -> None:
        """End the watches on all below a path."""
        client.unwatch_below()
        client.sync("/")

    def cut(self, client: Client, _: Any) -> None:
        """Break the connection."""
        client.sync("/")  # events on their way may come or be lost
        self.world.cut_connection(client)
        self._await_return(client, "SUSPENDED")

    def expire(self, client: Client, _: Any) -> None:
        """End the session."""
        client.sync("/")
        self.world.expire_session(self.hosts, client.client_id)
        self._await_return(client, "LOST")
        self._note_session(client)

    def lose(self, client: Client, _: Any, parts: list[tuple[Any, ...]], done: bool) -> Any:
        """Ask for a multi whose answer is lost, carried out or not."""
        client.sync("/")
        lose_write(client, done=done, on_lost=lambda: self.world.cut_connection(client))
        try:
            return self.multi(client, None, parts)
        finally:
            self._await_return(client, "SUSPENDED")

    def too_large(self, client: Client, _: Any, path: str) -> Any:
        """Write more than a packet may hold, on which the server hangs up."""
        client.sync("/")
        try:
            return client.create(path, bytes(4 << 20))
        finally:
            self._await_return(client, "SUSPENDED")

    def _await_return(self, client: Client, lost: str) -> None:
        """Return once a client has noticed that it lost something, and is connected again."""
        seen = self.seen[self.clients.index(client)]
        until = time.monotonic() + SEEN_S
        while time.monotonic() < until:
            states = [each for kind, each in filter(is_state, seen) if kind == "state"]
            if lost in states and states[-1] == "CONNECTED":
                break
            client.sleep(0.002)
        # What it said on the way differs from run to run on a real server.
        seen[:] = [each for each in seen if not is_state(each)]
        seen.append(("came back", client.connected))


def is_state(each: Any) -> bool:
    """Whether it tells what became of a connection."""
    return isinstance(each, tuple) and each[0] == "state"


THERE: Final = ["/a", "/a/x", "/a/p", "/a/x/z"]
"""What is there at first."""
NAMES: Final = [*THERE, "/b", "/b/x", "/a/y", "/a/é", "/a/\x01", "/a/\U0001f600"]
paths = st.sampled_from(NAMES[:3]) | st.sampled_from(NAMES[:6]) | st.sampled_from(NAMES)
contents = st.sampled_from([b"", b"one", b"\0" * 40])
versions = st.sampled_from([-1, -1, 0, 1, 2])
few = st.sampled_from(NAMES[2:5])
parts = st.lists(
    st.tuples(st.just("create"), few, contents)
    | st.tuples(st.just("delete"), few, versions)
    | st.tuples(st.just("set_data"), few, contents, versions)
    | st.tuples(st.just("check"), few, versions),
    max_size=6,
)
reads = st.lists(st.builds(Read, paths, st.booleans()), min_size=1, max_size=4)
HOW: Final[dict[str, tuple[st.SearchStrategy[Any], ...]]] = {
    "create": (paths, contents, st.integers(0, 3), st.booleans()),
    "delete": (paths, versions),
    "write": (paths, contents, versions),
    "get": (paths, st.booleans()),
    "exists": (paths, st.booleans()),
    "children": (paths | st.just("/"), st.booleans(), st.booleans()),
    "multi": (parts,),
    "read": (reads,),
    "pipeline": (st.lists(paths, min_size=1, max_size=3),),
    "watch_below": (paths | st.just("/"),),
    "unwatch_below": (),
    "cut": (),
    "expire": (),
    "lose": (parts, st.booleans()),
    "too_large": (paths,),
}
RARE: Final = ("cut", "expire", "lose", "too_large", "unwatch_below")
"""What takes long, or makes much of what was before forgotten."""


def asks_of(names: list[str]) -> st.SearchStrategy[Ask]:
    """Return what draws requests of these kinds."""
    who = st.integers(0, SESSIONS - 1)
    return st.one_of([st.builds(Ask, st.just(name), who, st.tuples(*HOW[name])) for name in names])


usual = asks_of([name for name in HOW if name not in RARE])
rare = asks_of(list(RARE))
asks = st.integers(0, 19).flatmap(lambda n: usual if n else rare)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """A virtual and a real ZooKeeper, each with its clients."""
    with Server.start() as server:
        world = VirtualWorld(tmp_path_factory.mktemp("virtual"))
        made = Side(world, world.hosts, world.log_dir), Side(REAL, server.hosts, server.log_dir)
        try:
            yield made
        finally:
            for side in made:
                side.close()


_numbers = count()


def compare(sides: tuple[Side, Side], told: list[Ask]) -> None:
    """Do the same on both sides, and compare what was seen, and the logs."""
    chroot = f"/example-{next(_numbers)}"
    for side in sides:
        side.begin(chroot)
    for ask in told:
        for side in sides:
            side.do(ask)
    virtual, real = (side.finish() for side in sides)
    assert virtual == real
    assert sides[0].read_log() == sides[1].read_log()


@settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate, Phase.shrink),
)
@given(told=st.lists(asks, min_size=20, max_size=40))
def test_clients_see_the_same_of_a_virtual_and_a_real_zookeeper(
    sides: tuple[Side, Side], told: list[Ask]
) -> None:
    """Answers, errors, stats, events and their order, and the logs, are those of the real one."""
    compare(sides, told)
