"""Replay transactions into the tree of nodes that the server had.

`Tree()` is the tree of a server that was never written to; `Tree.from_snapshot` one to go on from.
`apply` takes transactions in the order of their zxids and does to the tree what the server did:
after each, data, access control lists and every field of every stat are the server's own.

A tree begun empty is strict: a change that does not fit, such as a node created under a parent that
is not there, raises `ReplayError`, for then transactions are missing.  A snapshot may already show
changes newer than its name, so on a tree begun from one the same changes are passed over, as the
server passes over them, up to the transaction after the zxid that the snapshot was finished at, or
for good if the snapshot does not tell.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Self

from reassure_zookeeper.errors import ReplayError
from reassure_zookeeper.jute import OPEN_ACL, READ_ACL
from reassure_zookeeper.snapshot import Node, Snapshot
from reassure_zookeeper.transactions import (
    CREATE,
    CREATE_CONTAINER,
    CREATE_TTL,
    CloseSession,
    Create,
    CreateSession,
    Delete,
    Op,
    Reconfig,
    SetAcl,
    SetData,
    Transaction,
)

CONTAINER_OWNER: Final = -(1 << 63)
"""`ephemeral_owner` of a container node."""

TTL_OWNER: Final = -(1 << 56)
"""`ephemeral_owner` of a TTL node, with the milliseconds in the lowest 40 bits."""

_NEVER: Final = 1 << 63


class Tree:
    """All nodes by path, the open sessions with their timeouts, and whose the ephemerals are.

    `zxid` is that of the last transaction applied.
    """

    def __init__(self) -> None:
        """Begin with the nodes that every new server has."""
        self.zxid = 0
        self.nodes: dict[str, Node] = {
            "/": Node(b"", OPEN_ACL, children={"zookeeper"}),
            "/zookeeper": Node(b"", OPEN_ACL, children={"quota", "config"}),
            "/zookeeper/quota": Node(b"", OPEN_ACL),
            "/zookeeper/config": Node(b"", READ_ACL, aversion=-1),
        }
        self.sessions: dict[int, int] = {}
        self.ephemerals: dict[int, set[str]] = {}
        self._fuzzy_until = 0
        self._shown_until: int | None = None

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Self:
        """Begin with what a snapshot shows; the snapshot is used up by it."""
        tree = cls()
        tree.zxid = snapshot.zxid
        tree.nodes = snapshot.nodes
        tree.sessions = dict(snapshot.sessions)
        for path, node in snapshot.nodes.items():
            if _is_ephemeral(node.ephemeral_owner):
                tree.ephemerals.setdefault(node.ephemeral_owner, set()).add(path)
        tree._fuzzy_until = _NEVER if snapshot.last_zxid is None else snapshot.last_zxid
        tree._shown_until = snapshot.last_zxid
        return tree

    def apply_all(self, transactions: Iterable[Transaction]) -> Self:
        """Apply transactions in order and return the tree."""
        for transaction in transactions:
            self.apply(transaction)
        return self

    def apply(self, transaction: Transaction) -> None:
        """Do what one transaction did; raises `ReplayError` when it does not fit."""
        if self._shown_until is not None and transaction.zxid > self._shown_until:
            # The server counts a transaction once it is done; the next one may have been half done
            # when the snapshot was finished.
            self._fuzzy_until = transaction.zxid
            self._shown_until = None
        if transaction.error is None:
            for op in transaction.ops:
                self._apply_op(op, transaction)
        self.zxid = transaction.zxid

    def _apply_op(self, op: Op, transaction: Transaction) -> None:
        match op:
            case SetData() | Reconfig():
                self._set_data(op, transaction)
            case Create():
                self._create(op, transaction)
            case Delete():
                self._delete(op.path, transaction)
            case SetAcl():
                self._set_acl(op, transaction)
            case CreateSession():
                self.sessions[transaction.session_id] = op.timeout_ms
            case CloseSession():
                self._close_session(op, transaction)
            case _:
                pass  # a check that held changes nothing

    def _set_data(self, op: SetData | Reconfig, transaction: Transaction) -> None:
        node = self._get(op.path, transaction)
        if node is not None:
            node.data = op.data
            node.version = op.version
            node.mzxid = transaction.zxid
            node.mtime = transaction.time_ms

    def _set_acl(self, op: SetAcl, transaction: Transaction) -> None:
        node = self._get(op.path, transaction)
        if node is not None:
            node.acl = op.acl
            node.aversion = op.version

    def _create(self, op: Create, transaction: Transaction) -> None:
        parent_path, _, name = op.path.rpartition("/")
        parent = self._get(parent_path or "/", transaction)
        if parent is None:
            return
        exists = op.path in self.nodes
        if exists:
            self._misfit(op.path, "is created, but is there already", transaction)
            if op.variant != CREATE:
                return  # the server makes up the parent's counts for this one request code only
        # The counts only grow: a fuzzy snapshot may be ahead of the log.
        cversion = parent.cversion + 1 if op.parent_cversion == -1 else op.parent_cversion
        if cversion > parent.cversion:
            parent.cversion = cversion
            parent.pzxid = transaction.zxid
        if exists:
            return
        zxid, time_ms = transaction.zxid, transaction.time_ms
        owner = _owner_of(op, transaction.session_id)
        self.nodes[op.path] = Node(
            op.data, op.acl, zxid, zxid, time_ms, time_ms, ephemeral_owner=owner, pzxid=zxid
        )
        if parent.children is None:
            parent.children = set()
        parent.children.add(name)
        if op.ephemeral:
            self.ephemerals.setdefault(owner, set()).add(op.path)

    def _delete(self, path: str, transaction: Transaction) -> None:
        parent_path, _, name = path.rpartition("/")
        parent = self._get(parent_path or "/", transaction)
        node = self._get(path, transaction)
        if parent is not None:
            if parent.children is not None:
                parent.children.discard(name)
            parent.pzxid = max(parent.pzxid, transaction.zxid)
        if node is None:
            return
        if node.children:
            self._misfit(path, "is deleted, but has children", transaction)
        del self.nodes[path]
        if _is_ephemeral(node.ephemeral_owner):
            self.ephemerals.get(node.ephemeral_owner, set()).discard(path)

    def _close_session(self, op: CloseSession, transaction: Transaction) -> None:
        self.sessions.pop(transaction.session_id, None)
        own = self.ephemerals.pop(transaction.session_id, set())
        recorded = op.paths or ()
        for path in (*recorded, *sorted(own.difference(recorded))):
            self._delete(path, transaction)

    def _get(self, path: str, transaction: Transaction) -> Node | None:
        node = self.nodes.get(path)
        if node is None:
            self._misfit(path, "is not there", transaction)
        return node

    def _misfit(self, path: str, problem: str, transaction: Transaction) -> None:
        if transaction.zxid > self._fuzzy_until:
            raise ReplayError(
                f"zxid 0x{transaction.zxid:x} does not fit: {path} {problem} (the tree stands at "
                f"0x{self.zxid:x}); replay from the first log on, or from a snapshot"
            )


def _owner_of(op: Create, session_id: int) -> int:
    if op.variant == CREATE_CONTAINER:
        return CONTAINER_OWNER
    if op.variant == CREATE_TTL:
        return TTL_OWNER | op.ttl_ms
    return session_id if op.ephemeral else 0


def _is_ephemeral(owner: int) -> bool:
    """Whether an owner is a session, rather than none, a container's or a TTL's mark."""
    return owner != 0 and owner != CONTAINER_OWNER and owner & TTL_OWNER != TTL_OWNER
