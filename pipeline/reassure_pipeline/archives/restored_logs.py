"""Logs that were decoded before and are kept as Parquet: written back as logs, to be judged again.

What the data source `zookeeper-txnlog` reads holds all that the judge needs of a log: every
operation with its place, session, path and content. Access control lists, timeouts and the server's
digests are not in it. Of each folder of logs in such a table a folder of logs is made, which lasts
as long as the process. There a file ends where one did, and where a zxid is missing, so that this
shows as in the logs.
"""

import atexit
import heapq
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Final, NamedTuple

from reassure_spec.errors import BadData
from reassure_zookeeper.errors import LogsMissing
from reassure_zookeeper.jute import OPEN_ACL
from reassure_zookeeper.transactions import (
    Check,
    CloseSession,
    Create,
    CreateSession,
    Delete,
    Error,
    Op,
    Reconfig,
    SetAcl,
    SetData,
    Transaction,
    committed,
)
from reassure_zookeeper.txnlog import is_next, log_files
from reassure_zookeeper.txnlog_writer import LogWriter

_TABLE: Final = "transactions"
_SUFFIX: Final = ".parquet"
_BATCH: Final = 2_000
"""How many rows of a file are held at a time."""


class BadTable(BadData):
    """A Parquet file is no table of transactions, or not in order."""


class RestoredLogs(NamedTuple):
    """Logs that were made of a table."""

    name: str
    """The folder that the logs were decoded from."""
    folder: Path
    """Where they are now."""


class _Row(NamedTuple):
    """One operation, as the table has it."""

    file: str
    offset: int
    zxid: int
    session: int
    cxid: int
    time_ms: int
    type: int
    error: int | None
    op: int | None
    """None where there was none in the transaction."""
    kind: str
    path: str | None
    data: bytes | None
    version: int | None
    ephemeral: bool | None
    damage: str | None


def is_decoding(path: Path) -> bool:
    """Whether a path is a Parquet file, or a folder without logs that holds some."""
    return bool(_find_tables(path)) and not (path.is_dir() and log_files(path))


def list_logs(path: Path) -> list[Path]:
    """List the log files of a path, restored ones too; raises what `log_files` and `restore` do."""
    if not is_decoding(path):
        return log_files(path)
    return [file for restored in restore(path.resolve()) for file in log_files(restored.folder)]


@cache
def restore(path: Path) -> tuple[RestoredLogs, ...]:
    """Write the logs that a table was decoded from, in a folder of their own, once.

    Raises `BadTable`, and `LogsMissing` where it has no transaction.
    """
    place = Path(mkdtemp(prefix="reassure-logs-"))
    atexit.register(rmtree, place, ignore_errors=True)
    writers: dict[str, _Writer] = {}
    try:
        for _, rows in groupby(_merge(_find_tables(path)), lambda row: (row.file, row.zxid)):
            first, *more = rows
            name = str(Path(first.file).parent)
            if name not in writers:
                writers[name] = _Writer(place / str(len(writers)))
            writers[name].write([first, *more])
    finally:
        for writer in writers.values():
            writer.close()
    if not writers:
        raise LogsMissing(f"{path} has no transaction; name another table, or the logs")
    return tuple(RestoredLogs(name, writer.folder) for name, writer in writers.items())


def _find_tables(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.suffix == _SUFFIX else []
    for folder in (path, path / _TABLE):
        found = sorted(folder.glob(f"*{_SUFFIX}"))
        if found:
            return found
    return []


def _merge(tables: Iterable[Path]) -> Iterator[_Row]:
    """Yield the rows of all tables in the order of their zxids."""
    return heapq.merge(*map(_read_rows, tables), key=lambda row: (row.zxid, row.file, row.op or 0))


def _read_rows(table: Path) -> Iterator[_Row]:
    """Yield the rows of one file, but those that tell of damage."""
    from pyarrow import ArrowInvalid
    from pyarrow.parquet import ParquetFile

    try:
        file = ParquetFile(table)
    except ArrowInvalid as problem:
        raise BadTable(
            f"{table} is not a Parquet file ({problem}); name another, or the logs"
        ) from None
    with file:
        missing = [name for name in _Row._fields if name not in file.schema_arrow.names]
        if missing:
            raise BadTable(
                f"{table} has no column {', '.join(missing)}; a table of transactions has it, as "
                "Spark's data source zookeeper-txnlog reads it"
            )
        last = -1
        for batch in file.iter_batches(batch_size=_BATCH, columns=list(_Row._fields)):
            for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                row = _Row(*values)
                if row.damage is not None:
                    continue
                if row.zxid < last:
                    raise BadTable(
                        f"{table}: zxid 0x{row.zxid:x} comes after 0x{last:x}; "
                        "sort each file of the table by zxid and op"
                    )
                last = row.zxid
                yield row


class _Writer:
    """Writes the logs of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._file = ""
        self._zxid = 0
        self._log: LogWriter | None = None

    def write(self, rows: list[_Row]) -> None:
        """Write one transaction."""
        first = rows[0]
        is_joined = first.file == self._file and is_next(self._zxid, first.zxid)
        if self._log is None or not is_joined:
            self.close()
            self._file = first.file
            self._log = LogWriter(self.folder / f"log.{first.zxid:x}")
        self._zxid = first.zxid
        self._log.append(_make_transaction(rows))

    def close(self) -> None:
        """Finish the file that is written."""
        if self._log is not None:
            self._log.close()
            self._log = None


def _make_transaction(rows: list[_Row]) -> Transaction:
    first = rows[0]
    ops: Iterable[Op]
    if first.error is not None:
        ops = (Error(first.error),)
    else:
        written = (row for row in rows if row.op is not None)
        ops = (_make_op(*several) for _, several in groupby(written, lambda row: row.op))
    head = {"session_id": first.session, "cxid": first.cxid, "time_ms": first.time_ms}
    return committed(*ops, zxid=first.zxid, **head)


def _make_op(row: _Row, *gone: _Row) -> Op:
    """Return an operation; the nodes that go with a session stand in rows behind its end."""
    if row.kind == "close_session":
        # Without any, nothing that the judge knows of the session is left out by asking it.
        return CloseSession(tuple(each.path or "" for each in gone) or None)
    make = _MAKERS.get(row.kind)
    if make is None:
        raise BadTable(f"{row.file}: 0x{row.zxid:x} holds an unknown operation, {row.kind!r}")
    return make(row)


_MAKERS: Final[dict[str, Callable[[Any], Op]]] = {
    "create": lambda row: Create(row.path, row.data or b"", OPEN_ACL, bool(row.ephemeral)),
    "delete": lambda row: Delete(row.path),
    "set_data": lambda row: SetData(row.path, row.data or b"", row.version),
    "check": lambda row: Check(row.path, row.version),
    "set_acl": lambda row: SetAcl(row.path, OPEN_ACL, row.version),
    "reconfig": lambda row: Reconfig(row.path, row.data or b"", row.version),
    "create_session": lambda row: CreateSession(0),
    "error": lambda row: Error(0),
}
