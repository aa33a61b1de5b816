"""Sets of texts that give what they hold in the order of Java's `HashSet`, which clients see."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, Self

_OF_CHILDREN: Final = 8
_OF_EPHEMERALS: Final = 16
"""How many buckets ZooKeeper's sets begin with."""


class JavaSet(set[str]):
    """A set that doubles its buckets when it has more than three texts for four of them."""

    def __init__(self, buckets: int) -> None:
        super().__init__()
        self._buckets = buckets
        self._came: dict[str, None] = {}
        """The texts, whichever came first before the others."""

    @classmethod
    def of_children(cls, names: Iterable[str] = ()) -> Self:
        """Return what the names of a node's children are kept in."""
        made = cls(_OF_CHILDREN)
        for name in names:
            made.add(name)
        return made

    @classmethod
    def of_ephemerals(cls) -> Self:
        """Return what the paths of a session's nodes are kept in."""
        return cls(_OF_EPHEMERALS)

    def add(self, text: str) -> None:
        """Take a text in."""
        super().add(text)
        self._came.setdefault(text)
        while len(self) > self._buckets * 3 // 4:
            self._buckets *= 2

    def discard(self, text: object) -> None:
        """Leave a text out; the buckets stay."""
        super().discard(text)
        self._came.pop(str(text), None)

    def in_order(self) -> list[str]:
        """Return the texts bucket by bucket, and in one whichever came first."""
        return sorted(self._came, key=lambda text: _spread(text) & (self._buckets - 1))

    def clone(self) -> "JavaSet":
        """Return a copy, which has no more buckets than it needs."""
        buckets = 1
        while buckets < int(len(self) / 0.75 + 1):
            buckets *= 2
        copied = JavaSet(buckets)
        for text in self.in_order():
            copied.add(text)
        return copied


@lru_cache(maxsize=10_000)
def _spread(text: str) -> int:
    """Return what Java's map makes of the hash of a text."""
    units = text.encode("utf-16-be")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    return value ^ value >> 16
