"""What a request to write would do to a tree, or why it is refused, before anything is done.

The parts of a multi see what those before them would have done. A check stands in the order in
which ZooKeeper makes it, as that decides which error is told.
"""

import re
from dataclasses import dataclass
from typing import Final, Self

from reassure_world.packets import EPHEMERAL, SEQUENTIAL, Code, Refused, Request
from reassure_zookeeper.snapshot import Node
from reassure_zookeeper.transactions import (
    CHECK,
    CREATE,
    CREATE2,
    DELETE,
    SET_DATA,
    Check,
    Create,
    Delete,
    Op,
    SetData,
)
from reassure_zookeeper.tree import Tree

_SPECIAL: Final = frozenset({"/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"})
"""Nodes that nobody may delete."""
_BAD_PATH: Final = re.compile(
    r"(?!/)|.+/\Z|.*//|.*/\.\.?(?:/|\Z)"
    r"|.*[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\U0010ffff]",
    re.DOTALL,
)
ANY_VERSION: Final = -1


@dataclass(slots=True)
class _Drafted:
    """What a draft knows of a node."""

    version: int
    created: int
    """How many children were created in it."""
    children: int
    ephemeral: bool

    @classmethod
    def of(cls, node: Node) -> Self:
        """Return what is known of a node of the tree."""
        children = len(node.children or ())
        return cls(node.version, node.cversion, children, bool(node.ephemeral_owner))


class Draft:
    """A tree as one request would leave it."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._nodes: dict[str, _Drafted | None] = {}

    def prepare(self, request: Request) -> Op:
        """Return what the request, or part of one, comes to. Raises Refused."""
        if request.kind in (CREATE, CREATE2):
            return self._create(request)
        if request.kind == DELETE:
            return self._delete(request)
        if request.kind not in (SET_DATA, CHECK):
            raise Refused(Code.UNIMPLEMENTED)
        _check_path(request.path)
        node = self._find(request.path)
        version = _next_version(node, request.version)
        if request.kind == CHECK:
            return Check(request.path, version)
        node.version = version
        return SetData(request.path, request.data, version)

    def _create(self, request: Request) -> Op:
        if request.flags & ~(EPHEMERAL | SEQUENTIAL):
            raise Refused(Code.UNIMPLEMENTED)
        path = request.path
        above = path.rpartition("/")[0] or "/"
        parent = self._find(above)
        if request.flags & SEQUENTIAL:
            path += f"{parent.created:010d}"
        _check_path(path)
        if self._look_up(path) is not None:
            raise Refused(Code.NODE_EXISTS)
        if parent.ephemeral:
            raise Refused(Code.NO_CHILDREN_FOR_EPHEMERALS)
        parent.created += 1
        parent.children += 1
        is_ephemeral = bool(request.flags & EPHEMERAL)
        self._nodes[path] = _Drafted(0, 0, 0, is_ephemeral)
        return Create(path, request.data, request.acl, is_ephemeral, parent.created, request.kind)

    def _delete(self, request: Request) -> Op:
        path = request.path
        if path in _SPECIAL or "/" not in path:
            raise Refused(Code.BAD_ARGUMENTS)
        parent = self._find(path.rpartition("/")[0] or "/")
        node = self._find(path)
        _next_version(node, request.version)
        if node.children:
            raise Refused(Code.NOT_EMPTY)
        parent.children -= 1
        self._nodes[path] = None
        return Delete(path)

    def _find(self, path: str) -> _Drafted:
        node = self._look_up(path)
        if node is None:
            raise Refused(Code.NO_NODE)
        return node

    def _look_up(self, path: str) -> _Drafted | None:
        if path not in self._nodes:
            node = self._tree.nodes.get(path)
            self._nodes[path] = None if node is None else _Drafted.of(node)
        return self._nodes[path]


def _next_version(node: _Drafted, expected: int) -> int:
    """Return the version that a node has once it is written. Raises Refused for another one."""
    if expected not in (ANY_VERSION, node.version):
        raise Refused(Code.BAD_VERSION)
    return node.version + 1


def _check_path(path: str) -> None:
    if _BAD_PATH.match(path):
        raise Refused(Code.BAD_ARGUMENTS)
