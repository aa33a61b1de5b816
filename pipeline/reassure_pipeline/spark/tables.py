"""What an audit on Spark leaves to be queried: each of its stages as a table, written as Parquet.

`spark.columns` says what is in them. Transactions, changes and states come from the
logs by the data source and Spark's own expressions; reassignments, findings and coverage from the
tasks that judge (`Rows`). Nothing of either passes the driver. `archive` is the folder of the log
files. What stood in a znode before the logs begin is not known: there `before` is null.
"""

import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, NamedTuple

from reassure_judge.verdicts import Violation
from reassure_pipeline.archives.archive import Archive
from reassure_pipeline.audit.passes import Judged
from reassure_pipeline.fleet.totals import MoveRecord
from reassure_pipeline.spark.columns import TABLES

_CHANGES: Final = """
SELECT archives.archive AS archive, path, zxid, op, kind, session, time_ms,
       version, lag(data) OVER (PARTITION BY archives.archive, path ORDER BY zxid, op) AS before,
       data AS after
FROM transactions JOIN archives ON archives.folder = regexp_extract(file, '^(.*)/', 1)
WHERE kind IN ('create', 'set_data', 'delete') AND error IS NULL AND path IS NOT NULL
"""
_STATE: Final = "^(.*)/brokers/topics/([^/]+)/partitions/([0-9]+)/state$"
_PARTITIONS: Final = rf"""
SELECT archive, regexp_extract(path, '{_STATE}', 1) AS chroot,
       regexp_extract(path, '{_STATE}', 2) AS topic,
       try_cast(regexp_extract(path, '{_STATE}', 3) AS int) AS partition,
       zxid, kind, session, time_ms,
       try_cast(get_json_object(cast(after AS string), '$.leader') AS int) AS leader,
       try_cast(get_json_object(cast(after AS string), '$.leader_epoch') AS int) AS leader_epoch,
       try_cast(get_json_object(cast(after AS string), '$.controller_epoch') AS int)
           AS controller_epoch,
       from_json(get_json_object(cast(after AS string), '$.isr'), 'array<int>') AS isr,
       from_json(get_json_object(cast(before AS string), '$.isr'), 'array<int>') AS isr_before
FROM changes WHERE path RLIKE '{_STATE}'
"""
_COVERAGE: Final = """
SELECT archive, clause, sum(exercised) AS exercised, sum(undecided) AS undecided
FROM counted GROUP BY archive, clause
"""

Tell = Callable[[object], Iterator[tuple[object, ...]]]


class Rows(NamedTuple):
    """What a share tells the tables, and nobody else: all of it, however much."""

    found: tuple[tuple[Violation, bool], ...] = ()
    """Findings, and whether each is settled."""
    moves: tuple[MoveRecord, ...] = ()


def write_tables(context: Any, folder: Path, archives: Sequence[Archive], outcomes: Any) -> None:
    """Write all tables into a folder, in the place of earlier ones.

    `outcomes` is an RDD of what the shares came to: number of the archive, whether the driver takes
    it in, and what is told of it, pickled.
    """
    from pyspark.sql import SparkSession

    from reassure_pipeline.txnlog_source import NAME, TransactionLogSource

    session = SparkSession(context)
    places = [str(archive.files[0].absolute().parent) for archive in archives]

    def write(table: Any, name: str) -> None:
        place = str(folder.absolute() / name)
        table.write.mode("overwrite").parquet(place)
        session.read.parquet(place).createOrReplaceTempView(name)

    def list_rows(tell: Tell, name: str) -> Any:
        def work(told: tuple[int, bool, bytes]) -> Iterator[tuple[object, ...]]:
            index, _, packed = told
            return ((places[index], *each) for each in tell(pickle.loads(packed)))

        return session.createDataFrame(outcomes.flatMap(work), TABLES[name].ddl)

    session.dataSource.register(TransactionLogSource)
    pieces = [piece for archive in archives for piece in archive.pieces]
    read = [(str(piece.path.absolute()), piece.start, piece.stop) for piece in pieces]
    write(session.read.format(NAME).option("pieces", json.dumps(read)).load(), "transactions")
    folders = {
        (place, str(file.absolute().parent))
        for place, archive in zip(places, archives, strict=True)
        for file in archive.files
    }
    known = session.createDataFrame(sorted(folders), "archive string, folder string")
    known.createOrReplaceTempView("archives")
    write(session.sql(_CHANGES), "changes")
    write(session.sql(_PARTITIONS), "partitions")
    write(list_rows(_tell_moves, "reassignments"), "reassignments")
    write(list_rows(_tell_found, "violations"), "violations")
    list_rows(_tell_coverage, "coverage").createOrReplaceTempView("counted")
    write(session.sql(_COVERAGE), "coverage")


def _tell_found(what: object) -> Iterator[tuple[object, ...]]:
    for found, settled in what.found if isinstance(what, Rows) else ():
        named = {**asdict(found), "settled": settled}
        yield tuple(_show(named[column.name]) for column in TABLES["violations"].columns[1:])


def _tell_moves(what: object) -> Iterator[tuple[object, ...]]:
    for move in what.moves if isinstance(what, Rows) else ():
        named = move.as_dict()
        yield tuple(_show(named[column.name]) for column in TABLES["reassignments"].columns[1:])


def _tell_coverage(what: object) -> Iterator[tuple[object, ...]]:
    judged = what[1] if isinstance(what, tuple) and not isinstance(what, Rows) else None
    if isinstance(judged, Judged):
        exercised, undecided = judged.tally.exercised, judged.tally.undecided
        for clause_id in exercised.keys() | undecided.keys():
            yield clause_id, exercised[clause_id], undecided[clause_id]


def _show(value: object) -> object:
    """Return what Spark can hold: half a character becomes an escape."""
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value
