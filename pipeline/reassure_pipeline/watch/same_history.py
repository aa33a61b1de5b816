"""Refuses to follow two archives apart that log the same: members of one ensemble.

Whatever one of them shows the other shows too, so that everything would be told twice. What the
files of two archives begin with is compared once both have begun. They may have nothing in common
by then, for a member that comes new begins where the others are. So, pair by pair, one transaction
of whoever is ahead, the first that the other one lacks, is looked for in what that one reads, again
and again: members are found before the first transaction is judged twice.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from reassure_pipeline.archives.servers import is_same, share_history
from reassure_spec.errors import BadUsage
from reassure_zookeeper.errors import LogsMissing
from reassure_zookeeper.transactions import Transaction


class SameHistory(BadUsage):
    """Two of the paths that are to be watched have logged the same."""


class SameHistories:
    """Knows what the archives at some paths read, and notices two that read the same."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._last: dict[int, Transaction] = {}
        """What each archive has read last."""
        self._marks: dict[tuple[int, int], tuple[int, Transaction]] = {}
        """By pair: who is behind, and what it will read if it is of the same history."""

    def note(self, number: int, batch: Sequence[Transaction]) -> None:
        """Take note of what an archive reads next, of which there is some. Raises SameHistory."""
        has_begun = number in self._last
        self._last[number] = batch[-1]
        for other, last in self._last.items():
            if other == number:
                continue
            if not has_begun:
                self._compare(other, number)
            pair = min(number, other), max(number, other)
            behind, wanted = self._marks.get(pair, (number, last))
            if behind == number:
                if any(is_same(each, wanted) for each in batch):
                    self._refuse(other, number)
                self._marks[pair] = number, wanted
                if batch[-1].zxid >= wanted.zxid:
                    del self._marks[pair]
                    following = next((each for each in batch if each.zxid > last.zxid), None)
                    if following is not None:
                        self._marks[pair] = other, following

    def _compare(self, one: int, other: int) -> None:
        """Compare what stands in the files, of which some may be gone by now."""
        with suppress(OSError, LogsMissing):
            if share_history(self._paths[one], self._paths[other]):
                self._refuse(one, other)

    def _refuse(self, one: int, other: int) -> None:
        raise SameHistory(
            f"{self._paths[one]} and {self._paths[other]} have logged the same, as members of one "
            "ensemble do, so each violation would be reported twice; name only one of them, best "
            "the most available one"
        )
