"""A virtual ZooKeeper: one server, as its clients see it, without a process and without time.

A request is carried out when it is received, and what comes of it waits at the connections until
their clients take it: events before the answers that show what they tell of, each connection in its
own order. A session ends when it is closed or expired, never because a time has passed.

Whatever a real server would write into its transaction log is handed to `record`, refused writes
and sessions among it. Clients are all equal: there is one access control list, the open one.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from reassure_world import packets
from reassure_world.drafts import Draft
from reassure_world.java_sets import JavaSet
from reassure_world.packets import Code, Refused, Request, WatchEvent
from reassure_world.watches import Watches
from reassure_world.world_clock import Clock
from reassure_zookeeper.jute import INT, write_string
from reassure_zookeeper.transactions import (
    CREATE,
    CREATE2,
    DELETE,
    MULTI,
    RUNTIME_INCONSISTENCY,
    SET_DATA,
    CloseSession,
    Create,
    CreateSession,
    Delete,
    Error,
    Op,
    SetData,
    Transaction,
    committed,
    multi,
)
from reassure_zookeeper.tree import Tree

MOST_BYTES: Final = 4 << 20
"""How long a packet may be; a longer one ends its connection."""
TIMEOUTS_MS: Final = (400, 60_000)
"""The shortest and the longest timeout that a session gets."""
WORK_US: Final = 250
"""How long a request takes on the world's clock."""
_FIRST_SESSION: Final = 0x100000000000001
_NOBODY: Final = b"\0" * 16
_RECURSIVE: Final = 1


@dataclass(eq=False)
class Connection:
    """The server's end of a connection."""

    server: "VirtualZooKeeper"
    session: int = 0
    """The session that uses it, 0 before one does."""
    is_open: bool = True
    answers: deque[bytes] = field(default_factory=deque)
    """The packets that its client has not taken yet."""
    on_hang_up: Callable[[], None] = lambda: None
    """Told when it is broken, so that its client notices."""

    def receive(self, packet: bytes) -> None:
        """Carry out what a client asks for in one packet."""
        if self.is_open:
            self.server.receive(self, packet)

    def close(self) -> None:
        """Break it: what was not taken is lost, and so are its watches."""
        if self.is_open:
            self.is_open = False
            self.answers.clear()
            self.server.forget(self)
            self.on_hang_up()


class VirtualZooKeeper:
    """A server on which nothing was ever written."""

    def __init__(self, clock: Clock, record: Callable[[Transaction], None]) -> None:
        self.tree: Final = Tree()
        for node in self.tree.nodes.values():
            node.children = JavaSet.of_children(node.children or ())
        self._clock: Final = clock
        self._record: Final = record
        self._next_session = count(_FIRST_SESSION)
        self._connections: dict[int, Connection] = {}
        """By session, the connection that uses it."""
        self._watches: Watches[Connection] = Watches()

    def connect(self) -> Connection:
        """Return a new connection, on which its client has to introduce itself."""
        return Connection(self)

    def expire(self, session: int) -> bool:
        """End a session as its timeout would; return whether there was one."""
        if session not in self.tree.sessions:
            return False
        self._end(session, 0)
        connection = self._connections.get(session)
        if connection is not None:
            connection.close()
        return True

    def list_watched(self) -> list[str]:
        """Return what `wchp` would list: the znodes that somebody watches, children apart."""
        return self._watches.list_data()

    def forget(self, connection: Connection) -> None:
        """Take note that a connection is gone; its session stays."""
        self._watches.forget(connection)
        if self._connections.get(connection.session) is connection:
            del self._connections[connection.session]

    def receive(self, connection: Connection, packet: bytes) -> None:
        """Carry out a packet that has come in on a connection."""
        self._clock.tick(WORK_US)
        if len(packet) > MOST_BYTES:
            connection.close()
        elif connection.session:
            self._serve(connection, packet)
        else:
            self._welcome(connection, packets.read_hello(packet))

    # -- sessions

    def _welcome(self, connection: Connection, hello: packets.Hello) -> None:
        session = hello.session
        if not session:
            session = next(self._next_session)
            timeout_ms = sorted((*TIMEOUTS_MS, hello.timeout_ms))[1]
            self._apply(session, 0, CreateSession(timeout_ms))
            self.tree.ephemerals[session] = JavaSet.of_ephemerals()
        elif session not in self.tree.sessions or hello.password != _password_of(session):
            connection.answers.append(packets.write_hello(0, 0, _NOBODY))
            connection.is_open = False
            return
        connection.session = session
        self._connections[session] = connection
        timeout_ms = self.tree.sessions[session]
        connection.answers.append(packets.write_hello(timeout_ms, session, _password_of(session)))

    def _end(self, session: int, cxid: int) -> None:
        own = self.tree.ephemerals[session]
        assert isinstance(own, JavaSet)
        paths = tuple(own.clone().in_order())
        self._apply(session, cxid, CloseSession(paths))
        for path in paths:
            self._tell(WatchEvent.DELETED, path)

    # -- requests

    def _serve(self, connection: Connection, packet: bytes) -> None:
        xid, kind = packets.HEADER.unpack_from(packet)
        body, code = b"", 0
        try:
            body = self._carry_out(connection, xid, kind, packet)
        except Refused as refused:
            code = refused.code
        connection.answers.append(packets.write_answer(xid, self.tree.zxid, body, code))
        if kind == packets.CLOSE:
            self.forget(connection)
            connection.is_open = False

    def _carry_out(self, connection: Connection, xid: int, kind: int, packet: bytes) -> bytes:
        """Return the body of the answer. Raises Refused."""
        at = packets.HEADER.size
        if kind == packets.PING:
            return b""
        if kind == packets.CLOSE:
            self._end(connection.session, xid)
            return b""
        if kind == MULTI:
            return self._write_all(connection.session, xid, packets.read_parts(packet, at))
        if kind == packets.MULTI_READ:
            return packets.join_parts(map(self._read_part, packets.read_parts(packet, at)))
        request, _ = packets.read_request(kind, packet, at)
        if kind in (CREATE, CREATE2, DELETE, SET_DATA):
            return self._write(connection.session, xid, request)
        return self._read(request, connection)

    def _read_part(self, request: Request) -> bytes:
        if request.kind not in (packets.GET_DATA, packets.GET_CHILDREN):
            raise Refused(Code.UNIMPLEMENTED)
        try:
            return packets.write_part(request.kind, self._read(request))
        except Refused as refused:
            return packets.write_failed_part(refused.code)

    def _read(self, request: Request, watcher: Connection | None = None) -> bytes:
        kind, path = request.kind, request.path
        if kind == packets.SYNC:
            return write_string(path)
        if kind in (packets.ADD_WATCH, packets.REMOVE_WATCHES):
            assert watcher is not None
            return self._watch(request, watcher)
        node = self.tree.nodes.get(path)
        if request.flags and watcher is not None:
            if kind == packets.EXISTS or (kind == packets.GET_DATA and node is not None):
                self._watches.add_data(path, watcher)
            elif node is not None:
                self._watches.add_children(path, watcher)
        if node is None:
            raise Refused(Code.NO_NODE)
        if kind == packets.EXISTS:
            return packets.write_stat(node)
        if kind == packets.GET_DATA:
            return packets.write_content(node)
        stat = packets.write_stat(node) if kind == packets.GET_CHILDREN2 else b""
        return packets.write_children(node) + stat

    def _watch(self, request: Request, watcher: Connection) -> bytes:
        if request.kind == packets.REMOVE_WATCHES:
            if not self._watches.remove(request.path, watcher):
                raise Refused(Code.NO_WATCHER)
            return b""
        if request.flags != _RECURSIVE:
            raise Refused(Code.UNIMPLEMENTED)
        self._watches.add_below(request.path, watcher)
        return INT.pack(0)

    # -- writes

    def _write(self, session: int, cxid: int, request: Request) -> bytes:
        try:
            op = Draft(self.tree).prepare(request)
        except Refused as refused:
            self._apply(session, cxid, Error(refused.code))
            raise
        self._apply(session, cxid, op)
        self._tell_of(op)
        return self._describe(op)

    def _write_all(self, session: int, cxid: int, parts: Sequence[Request]) -> bytes:
        """Write all parts of a multi or none; return the result of each."""
        draft, ops = Draft(self.tree), list[Op]()
        for part in parts:
            try:
                ops.append(draft.prepare(part))
            except Refused as refused:
                left = len(parts) - len(ops) - 1
                ops.append(Error(refused.code))
                ops += [Error(RUNTIME_INCONSISTENCY)] * left
                break
        zxid, time_ms = self.tree.zxid + 1, self._clock.now_ms()
        whole = multi(*ops, zxid=zxid, session_id=session, cxid=cxid, time_ms=time_ms)
        self._record(whole)
        if whole.error is not None:
            self.tree.apply(whole)
            failed = (op.code for op in whole.ops if isinstance(op, Error))
            return packets.join_parts(map(packets.write_failed_part, failed))
        self.tree.zxid = zxid
        results = []
        for op in ops:  # one by one, for each result is what stands there before the next
            self._do(committed(op, zxid=zxid, session_id=session, time_ms=time_ms))
            self._tell_of(op)
            results.append(packets.write_part(op.variant, self._describe(op)))
        return packets.join_parts(results)

    def _apply(self, session: int, cxid: int, op: Op) -> None:
        transaction = committed(
            op,
            zxid=self.tree.zxid + 1,
            session_id=session,
            cxid=cxid,
            time_ms=self._clock.now_ms(),
        )
        self._record(transaction)
        self._do(transaction)

    def _do(self, transaction: Transaction) -> None:
        """Have the tree changed by one op; a node's children are kept as Java keeps them."""
        self.tree.apply(transaction)
        for op in transaction.ops:
            if isinstance(op, Create):
                self.tree.nodes[op.path].children = JavaSet.of_children()

    def _describe(self, op: Op) -> bytes:
        """Write what the one who asked for it is told of a change."""
        match op:
            case Create():
                stat = (
                    packets.write_stat(self.tree.nodes[op.path]) if op.variant == CREATE2 else b""
                )
                return write_string(op.path) + stat
            case SetData():
                return packets.write_stat(self.tree.nodes[op.path])
            case _:
                return b""

    def _tell_of(self, op: Op) -> None:
        match op:
            case Create():
                self._tell(WatchEvent.CREATED, op.path)
            case SetData():
                self._tell(WatchEvent.CHANGED, op.path)
            case Delete():
                self._tell(WatchEvent.DELETED, op.path)
            case _:
                pass

    def _tell(self, event: WatchEvent, path: str) -> None:
        for watcher, told, where in self._watches.trigger(event, path):
            watcher.answers.append(packets.write_event(told, where, self.tree.zxid))


def _password_of(session: int) -> bytes:
    return session.to_bytes(16, "big")
