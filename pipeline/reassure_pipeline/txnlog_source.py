"""ZooKeeper's transaction log as a data source of Spark, to be queried like any table.

    spark.dataSource.register(TransactionLogSource)
    spark.read.format("zookeeper-txnlog").load("/var/lib/zookeeper")
    spark.readStream.format("zookeeper-txnlog").load("/var/lib/zookeeper")

A path is a data directory, its `version-2`, or one log file; several may be named. A task reads one
file. There is a row for each operation, those of a multi under one zxid (`tables.columns`); where a
part of the file is damaged one row says so in `damage`, and what can be read behind it is. The torn
last record of a server that was killed is told in the same way.

As a stream it follows a server that writes: a row comes once its record is whole, and where reading
has come to in each file is Spark's own checkpoint. There damage ends the query.
"""

import json
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from reassure_pipeline.tables.columns import TABLES
from reassure_zookeeper.errors import DamagedLog, LogsMissing
from reassure_zookeeper.log_survey import Damage, survey_log
from reassure_zookeeper.transactions import (
    CHECK,
    CLOSE_SESSION,
    CREATE,
    CREATE_SESSION,
    DELETE,
    ERROR,
    RECONFIG,
    SET_ACL,
    SET_DATA,
    Op,
    Transaction,
)
from reassure_zookeeper.txnlog import FRAME, LogFile, log_files

if TYPE_CHECKING:
    from pyarrow import RecordBatch

NAME: Final = "zookeeper-txnlog"
SCHEMA: Final = TABLES["transactions"].ddl
_ARROW: Final = TABLES["transactions"].make_schema()
_KINDS: Final = {
    CREATE: "create",
    DELETE: "delete",
    SET_DATA: "set_data",
    SET_ACL: "set_acl",
    CHECK: "check",
    RECONFIG: "reconfig",
    CREATE_SESSION: "create_session",
    CLOSE_SESSION: "close_session",
    ERROR: "error",
}
_AROUND: Final = FRAME.size + 1
"""What a record takes beside its own bytes."""


class FilePart(InputPartition):
    """A part of one log file: from a byte at which a record begins to another, or to its end."""

    def __init__(self, path: str, start: int = 0, stop: int | None = None) -> None:
        self.path = path
        self.start = start
        self.stop = stop


class TransactionLogSource(DataSource):
    """The format `zookeeper-txnlog`."""

    @classmethod
    def name(cls) -> str:
        """Return what the format is called."""
        return NAME

    def schema(self) -> str:
        """Return the columns."""
        return SCHEMA

    def reader(self, schema: Any) -> "TransactionLogReader":
        """Return what reads all there is."""
        files = _list_files(_get_paths(self.options))
        return TransactionLogReader([FilePart(str(file)) for file in files])

    def streamReader(self, schema: Any) -> "TransactionLogFollower":  # noqa: N802  (Spark's name)
        """Return what follows a server that writes."""
        return TransactionLogFollower(_get_paths(self.options))


def _get_paths(options: Any) -> list[str]:
    several = options.get("paths")
    paths = json.loads(several) if several else [options.get("path")]
    if not all(paths):
        raise LogsMissing("no path was given; name a ZooKeeper data directory, or log files")
    return [str(path) for path in paths]


def _list_files(paths: list[str]) -> list[Path]:
    return [file.absolute() for path in paths for file in log_files(path)]


class TransactionLogReader(DataSourceReader):
    """Reads files, or parts of files, side by side."""

    def __init__(self, parts: list[FilePart]) -> None:
        self._parts = parts

    def partitions(self) -> list[FilePart]:
        """Return what each task reads."""
        return self._parts

    def read(self, partition: InputPartition) -> Iterator["RecordBatch"]:
        """Yield the rows of one file, and what is damaged in it."""
        assert isinstance(partition, FilePart)
        file = LogFile(partition.path, offset=partition.start, stop=partition.stop)
        try:
            yield from _read_rows(file, partition.stop)
        except DamagedLog as problem:
            yield from _read_on(file, problem)
        if file.tail is not None:
            yield _make_damage(file, file.tail.offset, f"torn: {file.tail.reason}")


class TransactionLogFollower(DataSourceStreamReader):
    """Reads what is added to files, and the files that are added."""

    def __init__(self, paths: list[str]) -> None:
        self._paths = paths

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Return where reading begins: at the first byte of whatever there is."""
        return {}

    def latestOffset(self, start: dict[str, int], limit: Any = None) -> dict[str, int]:  # noqa: N802
        """Return up to which byte each file is whole."""
        found = {}
        for path in _list_files(self._paths):
            file = LogFile(path, offset=start.get(str(path), 0))
            for _ in file.batches(growing=True):
                pass
            found[str(path)] = file.offset
        return found

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[FilePart]:
        """Return the parts between two offsets."""
        return [
            FilePart(path, start.get(path, 0), stop)
            for path, stop in sorted(end.items())
            if stop > start.get(path, 0)
        ]

    def read(self, partition: InputPartition) -> Iterator["RecordBatch"]:
        """Yield the rows of one part."""
        assert isinstance(partition, FilePart)
        yield from _read_rows(LogFile(partition.path, offset=partition.start), partition.stop)

    def commit(self, end: dict[str, int]) -> None:
        """Note that all up to here has been dealt with; nothing is kept that could go."""


def _read_on(file: LogFile, problem: DamagedLog) -> Iterator["RecordBatch"]:
    """Yield what is damaged in a file from some damage on, and the rows of what is whole."""
    survey = survey_log(file.path, decodes=True)
    damages = [damage for damage in survey.damages if damage.offset >= problem.offset]
    for damage in damages or [Damage(file.path, problem.offset, None, problem.reason)]:
        yield _make_damage(file, damage.offset, damage.reason)
    for span in survey.ranges:
        if span.start >= problem.offset:
            whole = LogFile(file.path, offset=span.start, stop=span.stop)
            yield from _read_rows(whole, span.stop)
    file.tail = survey.tail


def _read_rows(file: LogFile, stop: int | None) -> Iterator["RecordBatch"]:
    """Yield the rows of a file from where it stands on, and up to a byte where one is named."""
    records = file.records = []
    for batch in file.batches(growing=stop is not None):
        sizes = [len(record) + _AROUND for record in records]
        records.clear()
        offsets = accumulate(sizes, initial=file.offset - sum(sizes))
        rows = [
            row
            for offset, transaction in zip(offsets, batch, strict=False)
            if stop is None or offset < stop
            for row in _make_rows(str(file.path), offset, transaction)
        ]
        yield _make_batch(rows)
        if stop is not None and file.offset >= stop:
            return


def _make_rows(file: str, offset: int, seen: Transaction) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each operation, or one for none; a refused multi tells what it asked for."""
    head = file, offset, seen.zxid, seen.session_id, seen.cxid, seen.time_ms, seen.type, seen.error
    if not seen.ops:
        yield (*head, *(None,) * (len(_ARROW) - len(head)))
    for number, op in enumerate(seen.attempted or seen.ops):
        yield (*head, number, _KINDS[op.kind], *_describe(op), None)
        if isinstance(paths := getattr(op, "paths", None), tuple):
            # What goes with a session is not deleted by itself.
            for path in paths:
                yield (*head, number, "delete", _show(path), None, None, None, None)


def _describe(op: Op) -> tuple[str | None, bytes | None, int | None, bool | None]:
    path: str | None = getattr(op, "path", None)
    return (
        None if path is None else _show(path),
        getattr(op, "data", None),
        getattr(op, "version", None),
        getattr(op, "ephemeral", None),
    )


def _show(path: str) -> str:
    """Return a path as text that Spark can hold: half a character becomes an escape."""
    return path.encode(errors="backslashreplace").decode()


def _make_damage(file: LogFile, offset: int, reason: str) -> "RecordBatch":
    row = dict.fromkeys(_ARROW.names) | {"file": str(file.path), "offset": offset, "damage": reason}
    return _make_batch([tuple(row.values())])


def _make_batch(rows: list[tuple[Any, ...]]) -> "RecordBatch":
    columns = zip(*rows, strict=True) if rows else ((),) * len(_ARROW)
    arrays = [pyarrow.array(c, kind) for c, kind in zip(columns, _ARROW.types, strict=True)]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=_ARROW)
