"""What an audit on Spark leaves to be queried: each of its stages as a table, written as Parquet.

| table | a row for each | columns |
|---|---|---|
| `transactions` | operation in the logs | those of the data source (`txnlog_source.SCHEMA`) |
| `changes` | change of a znode | `archive`, place and author, `before` and `after` |
| `partitions` | state of a partition | the same, and what the state says |
| `reassignments` | record of a reassignment | from when to when, how often changed, targets |
| `violations` | finding, settled or not | those of `Violation` |
| `coverage` | clause, by archive | how often it was put to the test, and undecided |

`archive` is the folder of the log files, that of the first member where there are several. What
stood in a znode before the logs begin is not known: there `before` is null.
"""

import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from reassure_pipeline.archive import Archive
from reassure_pipeline.passes import Judged

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
       cast(regexp_extract(path, '{_STATE}', 3) AS int) AS partition,
       zxid, kind, session, time_ms,
       cast(get_json_object(cast(after AS string), '$.leader') AS int) AS leader,
       cast(get_json_object(cast(after AS string), '$.leader_epoch') AS int) AS leader_epoch,
       cast(get_json_object(cast(after AS string), '$.controller_epoch') AS int)
           AS controller_epoch,
       from_json(get_json_object(cast(after AS string), '$.isr'), 'array<int>') AS isr,
       from_json(get_json_object(cast(before AS string), '$.isr'), 'array<int>') AS isr_before
FROM changes WHERE path RLIKE '{_STATE}'
"""
_RECORD: Final = "^(.*)/admin/reassignments/([^/]+)/([0-9]+)$"
_REASSIGNMENTS: Final = rf"""
SELECT archive, regexp_extract(path, '{_RECORD}', 1) AS chroot,
       regexp_extract(path, '{_RECORD}', 2) AS topic,
       cast(regexp_extract(path, '{_RECORD}', 3) AS int) AS partition,
       min(zxid) AS first_zxid, max(zxid) AS last_zxid,
       min(time_ms) FILTER (WHERE kind = 'create') AS started_ms,
       max(time_ms) FILTER (WHERE kind = 'delete') AS ended_ms,
       max(time_ms) FILTER (WHERE kind = 'delete')
           - min(time_ms) FILTER (WHERE kind = 'create') AS duration_ms,
       count(*) FILTER (WHERE kind = 'set_data') AS changes,
       min_by(target, zxid) FILTER (WHERE target IS NOT NULL) AS first_target,
       max_by(target, zxid) FILTER (WHERE target IS NOT NULL) AS last_target
FROM (
    SELECT *, sum(if(kind = 'create', 1, 0)) OVER (PARTITION BY archive, path ORDER BY zxid, op)
                  AS number,
           from_json(get_json_object(cast(after AS string), '$.assignment'), 'array<int>') AS target
    FROM changes WHERE path RLIKE '{_RECORD}'
)
GROUP BY archive, path, number
"""
_FOUND: Final = (
    "archive string, zxid bigint, chroot string, topic string, partition int, clause string, "
    "path string, session bigint, before string, after string, reason string, expected string, "
    "author string, time_ms bigint, besides array<string>"
)
_COUNTED: Final = "archive string, clause string, exercised bigint, undecided bigint"
_COVERAGE: Final = """
SELECT archive, clause, sum(exercised) AS exercised, sum(undecided) AS undecided
FROM counted GROUP BY archive, clause
"""

Tell = Callable[[Judged], Iterator[tuple[object, ...]]]


def write_tables(context: Any, folder: Path, archives: Sequence[Archive], outcomes: Any) -> None:
    """Write all tables into a folder, in the place of earlier ones.

    `outcomes` is an RDD of what the shares came to: number of the archive, and what is told of it,
    pickled.
    """
    from pyspark.sql import SparkSession

    from reassure_pipeline.txnlog_source import NAME, TransactionLogSource

    session = SparkSession(context)
    places = [str(archive.files[0].absolute().parent) for archive in archives]

    def write(table: Any, name: str) -> None:
        place = str(folder.absolute() / name)
        table.write.mode("overwrite").parquet(place)
        session.read.parquet(place).createOrReplaceTempView(name)

    def list_rows(tell: Tell, columns: str) -> Any:
        def work(outcome: tuple[int, bytes]) -> Iterator[tuple[object, ...]]:
            index, packed = outcome
            _, what = pickle.loads(packed)
            told = tell(what) if isinstance(what, Judged) else ()
            return ((places[index], *each) for each in told)

        return session.createDataFrame(outcomes.flatMap(work), columns)

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
    write(session.sql(_REASSIGNMENTS), "reassignments")
    write(list_rows(_tell_violations, _FOUND), "violations")
    list_rows(_tell_coverage, _COUNTED).createOrReplaceTempView("counted")
    write(session.sql(_COVERAGE), "coverage")


def _tell_violations(judged: Judged) -> Iterator[tuple[object, ...]]:
    names = [column.split(" ")[0] for column in _FOUND.split(", ")][1:]
    for found in judged.tally.violations:
        yield tuple(map(_show, (getattr(found, name) for name in names)))


def _tell_coverage(judged: Judged) -> Iterator[tuple[object, ...]]:
    exercised, undecided = judged.tally.exercised, judged.tally.undecided
    for clause_id in exercised.keys() | undecided.keys():
        yield clause_id, exercised[clause_id], undecided[clause_id]


def _show(value: object) -> object:
    """Return what Spark can hold: half a character becomes an escape."""
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value
