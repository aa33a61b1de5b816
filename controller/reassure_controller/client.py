"""A kazoo client with what kazoo lacks of ZooKeeper 3.6: reads in one request, and one watch below.

kazoo makes a selector for every wait, four or five of them for each operation, which is half of
what an operation costs; the handler here waits without.
"""

import select
import struct
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import EXCEPTIONS
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.serialization import (
    GetChildren,
    GetData,
    MultiHeader,
    int_struct,
    write_string,
)

from reassure_controller.tally import LabelCounts

Watch = Callable[[Any], None]

_ANY_WATCH: Final = 3
_RECURSIVE: Final = 1
_READ: Final = struct.Struct("!iBi")
_END: Final = _READ.pack(-1, True, -1)


class Read(NamedTuple):
    """One read of many in a request: of a znode's content, or of the names of its children."""

    path: str
    children: bool = False


@dataclass(frozen=True, slots=True)
class _MultiRead:
    """Many reads in one request (ZooKeeper's `multiRead`)."""

    reads: tuple[Read, ...]
    type: ClassVar[int] = 22

    def serialize(self) -> bytes:
        parts = []
        for path, children in self.reads:
            kind, no_watch = (GetChildren if children else GetData).type, b"\0"
            parts += [_READ.pack(kind, False, -1), write_string(path), no_watch]
        return b"".join((*parts, _END))

    def deserialize(self, buffer: bytes, offset: int) -> list[Any]:
        found: list[Any] = []
        for read in self.reads:
            header, offset = MultiHeader.deserialize(buffer, offset)
            if header.type == -1:
                found.append(EXCEPTIONS[int_struct.unpack_from(buffer, offset)[0]]())
                offset += int_struct.size
                continue
            kind = GetChildren if read.children else GetData
            answer, offset = _take(kind, buffer, offset)
            found.append(answer)
        return found


def _take(kind: Any, buffer: bytes, offset: int) -> tuple[Any, int]:
    """Return one answer and where it ends."""
    answer = kind.deserialize(buffer, offset)
    if kind is GetData:
        data = answer[0]
        return answer, offset + int_struct.size + len(data or b"") + _STAT_SIZE
    sizes = sum(int_struct.size + len(name.encode()) for name in answer)
    return answer, offset + int_struct.size + sizes


_STAT_SIZE: Final = struct.calcsize("!qqqqiiiqiiq")


@dataclass(frozen=True, slots=True)
class _AddWatch:
    """A watch on a path and everything below it, which stays when it has fired."""

    path: str
    type: ClassVar[int] = 106

    def serialize(self) -> bytes:
        return bytes(write_string(self.path) + int_struct.pack(_RECURSIVE))

    def deserialize(self, _buffer: bytes, _offset: int) -> None:
        return None


@dataclass(frozen=True, slots=True)
class _RemoveWatches:
    """The end of a watch."""

    path: str
    type: ClassVar[int] = 18

    def serialize(self) -> bytes:
        return bytes(write_string(self.path) + int_struct.pack(_ANY_WATCH))

    def deserialize(self, _buffer: bytes, _offset: int) -> None:
        return None


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """kazoo's own, but for how it waits."""

    def select(self, *sockets: Any, **options: Any) -> Any:
        try:
            return select.select(*sockets, **options)
        except ValueError:  # a descriptor beyond what select can take
            return super().select(*sockets, **options)


class _Watchers(defaultdict[str, set[Watch]]):
    """Watches by path, as kazoo keeps them, and with them those of everything below a path."""

    def __init__(self, client: "Client") -> None:
        super().__init__(set)
        self._client = client

    def pop(self, path: str, *default: Any) -> Any:
        """Return who is to be told of a path; those that watch all below one stay."""
        below = self._client.below
        return [
            *super().pop(path, *default),
            *(watch for root, watch in below.items() if f"{path}/".startswith(f"{root}/")),
        ]


class Client(KazooClient):  # type: ignore[misc]
    """A kazoo client. Paths are those in its chroot.

    Its process waits and tells the time by `sleep` and `monotonic`, in seconds.
    """

    sleep = staticmethod(time.sleep)
    monotonic = staticmethod(time.monotonic)

    def __init__(self, **options: Any) -> None:
        self.operations = LabelCounts()
        """How often what was asked of ZooKeeper, by Kazoo's name for it."""
        self.below: dict[str, Watch] = {}
        """By path outside of the chroot, who is told of all that happens at it and below it."""
        super().__init__(**{"handler": _Handler(), **options})

    def _call(self, request: Any, async_object: Any) -> Any:
        """Send a request, and count it."""
        self.count(request)
        return super()._call(request, async_object)

    def count(self, request: Any) -> None:
        """Count a request."""
        self.operations.add(type(request).__name__.lstrip("_"))

    def _reset_watchers(self) -> None:
        """Forget every watch, as the server does with the connection."""
        super()._reset_watchers()
        self.below = {}
        self._data_watchers = _Watchers(self)

    def read_async(self, reads: Sequence[Read]) -> Any:
        """Ask for many znodes in one request.

        Each answer is (content, stat), the names of the children, or the exception of that read.
        """
        result = self.handler.async_result()
        request = _MultiRead(tuple(Read(self.chroot + path, names) for path, names in reads))
        self._call(request, result)
        return result

    def watch_below_async(self, path: str, watch: Watch) -> Any:
        """Have `watch` told of every znode at and below a path that is made, changed or deleted.

        It stays until the connection is lost or `unwatch_below`, in this order: what happens after
        the request is told. The path needs not be there.
        """
        result = self.handler.async_result()
        full = self.chroot + path
        self.below = {**self.below, full: watch}
        self._call(_AddWatch(full), result)
        return result

    def unwatch_below(self) -> None:
        """End every watch on what is below a path, without waiting."""
        ended, self.below = self.below, {}
        for full in ended:
            self._call(_RemoveWatches(full), self.handler.async_result())
