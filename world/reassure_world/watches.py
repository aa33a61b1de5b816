"""Who is told of what happens at which path, once or for good, as ZooKeeper 3.9 does it."""

from collections.abc import Iterator
from typing import Generic, TypeVar

from reassure_world.packets import WatchEvent

Watcher = TypeVar("Watcher")
_Table = dict[str, dict[Watcher, None]]


class Watches(Generic[Watcher]):
    """Watches on contents, on children and on all below a path. A watcher is told once of one."""

    def __init__(self) -> None:
        self._data: _Table[Watcher] = {}
        self._children: _Table[Watcher] = {}
        self._below: _Table[Watcher] = {}

    def add_data(self, path: str, watcher: Watcher) -> None:
        """Have a watcher told when the node is created, changed or deleted."""
        self._data.setdefault(path, {})[watcher] = None

    def add_children(self, path: str, watcher: Watcher) -> None:
        """Have a watcher told when a child comes or goes, or the node is deleted."""
        self._children.setdefault(path, {})[watcher] = None

    def add_below(self, path: str, watcher: Watcher) -> None:
        """Have a watcher told, again and again, of all at and below a path."""
        self._below.setdefault(path, {})[watcher] = None

    def remove(self, path: str, watcher: Watcher) -> bool:
        """End a watcher's watches on a path, of every kind; return whether there were any."""
        found = [table[path] for table in self._tables() if watcher in table.get(path, {})]
        for watchers in found:
            del watchers[watcher]
        return bool(found)

    def forget(self, watcher: Watcher) -> None:
        """End all watches of a watcher."""
        for table in self._tables():
            for watchers in table.values():
                watchers.pop(watcher, None)

    def list_data(self) -> list[str]:
        """Return the paths that somebody watches, but for who watches children alone."""
        tables = (self._data, self._below)
        return list(dict.fromkeys(path for table in tables for path in table if table[path]))

    def trigger(self, event: WatchEvent, path: str) -> Iterator[tuple[Watcher, WatchEvent, str]]:
        """Yield who is to be told what about which path when a node was written; their watches end.

        The event is that of the node: its parent's children have changed where it came or went.
        """
        told = dict.fromkeys(self._data.pop(path, ()))
        told |= dict.fromkeys(self._list_from_above(path))
        if event is WatchEvent.DELETED:
            told |= dict.fromkeys(self._children.pop(path, ()))
        yield from ((watcher, event, path) for watcher in told)
        if event is not WatchEvent.CHANGED:
            parent = path.rpartition("/")[0] or "/"
            for watcher in self._children.pop(parent, ()):
                yield watcher, WatchEvent.CHILDREN, parent

    def _list_from_above(self, path: str) -> Iterator[Watcher]:
        while self._below:
            yield from self._below.get(path, ())
            if path == "/":
                return
            path = path.rpartition("/")[0] or "/"

    def _tables(self) -> tuple[_Table[Watcher], ...]:
        return self._data, self._children, self._below
