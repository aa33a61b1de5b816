"""Transaction logs while a server writes them."""

from __future__ import annotations

from pathlib import Path

from reassure_zookeeper.errors import DamagedLog
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.txnlog import (
    AnyPath,
    LogFile,
    TornTail,
    check_nothing_missing,
    from_zxid,
    log_files,
)


class LogFollower:
    """Reads what a running server adds to its logs, call by call.

    `log_dir` may still be empty or not exist.  `last_zxid` is that of the newest transaction seen,
    `tails` the torn tails of files that the server has left behind.
    """

    def __init__(self, log_dir: AnyPath, after_zxid: int = 0) -> None:
        self.log_dir = Path(log_dir)
        self.last_zxid = after_zxid
        self.tails: list[TornTail] = []
        self._after_zxid = after_zxid
        self._file: LogFile | None = None
        self._torn: TornTail | None = None

    def read_new(self) -> list[Transaction]:
        """Return the transactions added since the last call, oldest first.

        An unfinished record at the very end is left for the next call.  Raises `DamagedLog`.
        """
        # Listed before reading: a file that has a successor in this list is complete.
        files = log_files(self.log_dir) if self.log_dir.is_dir() else []
        if self._file is None:
            files = from_zxid(files, self._after_zxid)
        else:
            files = files[files.index(self._file.path) :] if self._file.path in files else files
        added: list[Transaction] = []
        for path in files:
            if self._file is None:
                self._file = LogFile(path)
            elif self._file.path != path:
                self._leave_behind(self._file)
                self._file = LogFile(path, self._file.last_zxid)
            self._read_rest(self._file, added, growing=path == files[-1])
        return added

    def _leave_behind(self, file: LogFile) -> None:
        if file.tail is not None:
            self._torn = self._torn or file.tail
            self.tails.append(file.tail)

    def _read_rest(self, file: LogFile, added: list[Transaction], *, growing: bool) -> None:
        last_zxid = file.last_zxid
        new: list[Transaction] = []
        try:
            for batch in file.batches(growing=growing):
                new += batch
        except DamagedLog:
            # The record may have been half written when it was read, and others complete after it
            # when those were looked at; by now it is complete, or truly damaged.
            for batch in file.batches(growing=growing):
                new += batch
        if not new:
            return
        if self._torn is not None:
            check_nothing_missing(self._torn, last_zxid, new[0].zxid)
            self._torn = None
        self.last_zxid = max(self.last_zxid, new[-1].zxid)
        added += [each for each in new if each.zxid > self._after_zxid]
