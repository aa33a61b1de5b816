"""What audits came to, appended to tables in Delta Lake's format, whichever engine judged.

Delta Lake, as a table that is a folder of Parquet files and a log of commits needs no server, many
programs read it, and a commit can say what it is of. What is appended of an archive
carries a digest of what was judged, and so does the commit: what is there already is not appended
again, whenever and wherever an audit was ended. The table `archives` is appended to last: an
archive that has a row there has all its rows elsewhere.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256
from operator import getitem
from pathlib import Path
from typing import Any, Final

from reassure_judge.incidents import Incident
from reassure_pipeline.archives.archive import find_times
from reassure_pipeline.archives.remote_logs import locate
from reassure_pipeline.audit.archive_report import ArchiveReport
from reassure_pipeline.audit.archive_tasks import ArchiveOutcome, NotJudged
from reassure_pipeline.checkpoints.kept_files import digest_code
from reassure_pipeline.fleet.totals import Sums
from reassure_pipeline.tables.columns import TABLES
from reassure_spec.clauses import load_clauses
from reassure_spec.errors import BadUsage

NOT_JUDGED: Final = "not judged"
_WRITTEN: Final = (
    *("clusters", "findings", "incidents", "reassignments", "coverage", "facts"),
    "archives",
)
_UNNAMED: Final = frozenset(r"[\]^|")
"""What delta-rs cannot have in a path: it ends with an error that nobody can catch by its name."""
_ROWS: Final = 100_000
_ARCHIVES: Final = 500
"""How many wait at most to be written together: a commit takes some hundredths of a second."""


class FleetTables:
    """The tables in one folder."""

    def __init__(self, folder: Path, version: str, how: Mapping[str, Any], run: datetime) -> None:
        """Begin; `how` are the options on which findings depend, by name, as JSON has them.

        `run` is when the audit began. Raises BadUsage for a path that the library cannot name.
        """
        if found := sorted({*str(folder.absolute())} & _UNNAMED):
            raise BadUsage(
                f"{folder}: tables cannot be in a folder with {' '.join(found)} in its path; name "
                "another one"
            )
        self.folder = folder
        self.problem: Exception | None = None
        """Why nothing more is written; what was written is whole."""
        self._about = {"version": version, "run": run}
        self._how = dict(how)
        self._there: Any = None
        """The table `archives` as it was before."""
        self._waiting: dict[str, list[Any]] = {name: [] for name in _WRITTEN}
        """Arrow's tables, of some archives each."""
        self._judged: list[str] = []
        """What these are of."""

    def take(self, outcome: ArchiveOutcome, report: ArchiveReport) -> None:
        """Take what an archive came to, unless the tables have it."""
        judged = self._digest(outcome, report)
        if self._has(judged):
            return
        times = find_times(outcome.total.files)
        first, last = (None, None) if times is None else map(_find_time, times)
        head = {
            "day": None if last is None else last.date(),
            "archive": locate(report.archive.files[0].parent),
            "judged": judged,
        }
        told = report.as_dict(strict=False)
        accounted, clusters = told["accounted"], told["by_cluster"]
        row = {column.name: told.get(column.name) for column in TABLES["archives"].columns}
        row |= {
            **head,
            "reason": "; ".join(report.find_needs()) or None,
            "recognised": None if report.recognised is None else report.recognised.why,
            "readings": json.dumps(dict(report.readings)),
            **self._about,
            "passed_over": sum(accounted["passed_over"].values()),
            "missing": accounted["missing"],
            "first_time": first,
            "last_time": last,
            "holes": len(report.holes),
            "damaged": len(report.archive.damages),
        }
        clauses = load_clauses()
        known = [found for found, settled in outcome.found if settled]
        incidents = report.list_incidents(strict=False, found=known)
        causes = {each: one.cause.zxid for one in incidents for each in one.consequences}
        findings = [
            {
                **asdict(found),
                "settled": settled,
                "time": _find_time(found.time_ms),
                "level": clauses[found.clause].level,
                "cause": causes.get(found, found.cause) or None,
            }
            for found, settled in outcome.found
        ]
        facts = () if report.facts is None else _list_facts(report.facts)
        self._add("clusters", head, [{**each, "release": each["version"]} for each in clusters])
        self._add("findings", head, findings)
        self._add("incidents", head, list(map(_describe, incidents)))
        self._add("reassignments", head, outcome.moves, getattr)
        self._add("coverage", head, list(_count(outcome)))
        self._add("facts", head, [{"fact": fact, "value": value} for fact, value in facts])
        self._add("archives", head, [row])

    def leave_out(self, each: NotJudged) -> None:
        """Take that a path was not judged."""
        row = {**dict.fromkeys(column.name for column in TABLES["archives"].columns)}
        told = [locate(each.path), *each.as_dict().values(), digest_code()]
        head = {
            "day": None,
            "archive": told[0],
            "judged": sha256(json.dumps(told).encode()).hexdigest(),
        }
        about = {"verdict": NOT_JUDGED, "reason": str(each.error), **self._about}
        self._add("archives", head, [row | about])

    def _has(self, judged: str) -> bool:
        """Whether all rows of what was judged are there: those of `archives` come last."""
        from deltalake import DeltaTable

        if self._there is None and DeltaTable.is_deltatable(str(self.folder / "archives")):
            self._there = DeltaTable(str(self.folder / "archives"))
        return self._there is not None and self._there.transaction_version(judged) is not None

    def _digest(self, outcome: ArchiveOutcome, report: ArchiveReport) -> str:
        """Return a digest of what was judged and how: where it is the same, so are the rows."""
        archive, chosen = report.archive, outcome.chosen
        pieces = []
        for piece in (*archive.earlier, *archive.pieces):
            status = piece.path.stat()
            place = locate(piece.path), piece.start, piece.stop
            pieces.append([*place, status.st_size, status.st_mtime_ns])
        told = [
            pieces,
            archive.since,
            report.judged_to,
            chosen.profile,
            chosen.readings.as_dict(),
            chosen.chroots,
            self._how,
            digest_code(),
        ]
        return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()

    def _add(
        self,
        table: str,
        head: Mapping[str, Any],
        rows: Sequence[Any],
        get: Callable[[Any, str], Any] = getitem,
    ) -> None:
        from pyarrow import Table

        columns = {
            name: [head[name]] * len(rows)
            if name in head
            else [_show(get(row, name)) if kind == "string" else get(row, name) for row in rows]
            for name, kind, _ in TABLES[table].columns
        }
        self._waiting[table].append(Table.from_pydict(columns, TABLES[table].make_schema()))
        if table == "archives":
            self._judged.append(head["judged"])
            found = sum(len(some) for some in self._waiting["findings"])
            if len(self._judged) >= _ARCHIVES or found >= _ROWS:
                self.flush()

    def flush(self) -> None:
        """Append what waits, each archive exactly once.

        Where that fails it is left to be told beside what was judged (`problem`).
        """
        from deltalake.exceptions import DeltaError
        from pyarrow import concat_tables

        judged, self._judged = dict.fromkeys(self._judged), []
        for name in _WRITTEN:
            waiting, self._waiting[name] = self._waiting[name], []
            if judged and self.problem is None:
                empty = TABLES[name].make_schema().empty_table()
                try:
                    _append(self.folder / name, concat_tables([empty, *waiting]), [*judged])
                except (OSError, DeltaError) as problem:
                    self.problem = problem


def _append(place: Path, rows: Any, judged: list[str]) -> None:
    from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
    from pyarrow import array
    from pyarrow.compute import is_in

    if not DeltaTable.is_deltatable(str(place)):
        place.mkdir(parents=True, exist_ok=True)
        write_deltalake(str(place), rows.slice(0, 0), partition_by=["day"])
    there = DeltaTable(str(place))
    fresh = [each for each in judged if there.transaction_version(each) is None]
    data = rows.filter(is_in(rows["judged"], array(fresh, rows["judged"].type)))
    if len(data):
        said = CommitProperties(app_transactions=[Transaction(each, 0) for each in fresh])
        # Those of an earlier version may have fewer columns.
        write_deltalake(there, data, mode="append", schema_mode="merge", commit_properties=said)


def _describe(incident: Incident) -> dict[str, Any]:
    told, followed = incident.as_dict(), incident.consequences
    return told | {
        "path": incident.cause.path,
        "first_time": _find_time(told["first_ms"]),
        "last_time": _find_time(told["last_ms"]),
        "consequences": list(dict.fromkeys(each.clause for each in followed)),
        "followed": len(followed),
        "bugs": [each["id"] for each in told["bugs"]],
    }


def _count(outcome: ArchiveOutcome) -> Iterator[dict[str, Any]]:
    tally = outcome.total.judged.tally
    for clause in sorted(tally.exercised.keys() | tally.undecided.keys()):
        counts = {"exercised": tally.exercised[clause], "undecided": tally.undecided[clause]}
        yield {"clause": clause, **counts}


def _list_facts(facts: Sums) -> Iterator[tuple[str, int]]:
    for group, told in facts.as_dict().items():
        for name, value in told.items() if isinstance(told, dict) else ():
            if isinstance(value, int):
                yield f"{group}.{name}", value


def _find_time(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, UTC)


def _show(value: object) -> object:
    """Return what Parquet can hold: half a character becomes an escape."""
    if not isinstance(value, str) or value.isascii():
        return value
    return value.encode(errors="backslashreplace").decode()
