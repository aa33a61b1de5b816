"""The errors of this package, in one small tree.

Every error names the file, znode or address it is about, what was expected there and what to do
next.  Callers that only want to say "ZooKeeper's side failed" catch `ZooKeeperError`.
"""

from __future__ import annotations

from pathlib import Path

from reassure_spec.errors import BadData, Unavailable


class JavaError(Unavailable):
    """No usable Java, or the one that was asked for cannot be used."""


class JarsError(Unavailable):
    """The jars that make up a ZooKeeper server are not where they should be."""


class ServerError(Unavailable):
    """An embedded server cannot start, restart or answer."""


class FaultError(Unavailable):
    """A fault could not be brought about, so nothing may be concluded from it."""


class LogsMissing(BadData):
    """A path that should lead to transaction logs leads to none."""


class DamagedFile(BadData):
    """A file of ZooKeeper's is damaged at a place where damage is not normal.

    `file` is its path, `offset` the byte where the damaged piece begins, `reason` what is wrong.
    """

    what = "file"

    def __init__(self, file: Path, offset: int, reason: str) -> None:
        super().__init__(file, offset, reason)
        self.file = file
        self.offset = offset
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"{self.file}: damaged {self.what} at byte {self.offset}: {self.reason}; "
            "restore this file from a copy, or leave it and the newer ones out"
        )


class DamagedLog(DamagedFile):
    """A transaction log is damaged somewhere else than at its very end."""

    what = "transaction log"


class DamagedSnapshot(DamagedFile):
    """A snapshot is incomplete or does not match its checksum."""

    what = "snapshot"


class ReplayError(BadData):
    """A transaction does not fit the tree it is replayed into."""
