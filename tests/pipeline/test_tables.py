"""Tables that audits append to: what stands in them, and that each archive does once."""

import errno
import importlib
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from pipeline_steps import Server, plant, read_tables

from reassure_conformance.answers.auditing import audit_document
from reassure_lab.archives.sample import write_sample
from reassure_pipeline.audit.archive_audit import ArchiveAudit
from reassure_pipeline.audit.audit_report import AuditReport
from reassure_pipeline.audit.run_audit import Fleet, audit_paths
from reassure_pipeline.tables import fleet_tables
from reassure_pipeline.tables.columns import TABLES
from reassure_pipeline.tables.fleet_tables import FleetTables
from reassure_zookeeper.txnlog_writer import GrowingLog

PROFILE = "kip-236"
ROOT = Path(__file__).parents[2]
HOW = {"at_rest": True}
RUN = datetime(2026, 1, 31, tzinfo=UTC)


def audit(tables: Path, *paths: Path, **options: Any) -> Fleet:
    """Audit paths and append what they come to."""
    given = FleetTables(tables, "1", HOW, RUN)
    return audit_paths(paths, PROFILE, {}, tables=given, facts=True, at_rest=True, **options)


def test_rows_are_what_the_report_says(server: Server, tmp_path: Path) -> None:
    """Each archive has its row, judged or not, and every finding and reassignment is one."""
    history = plant()
    cut = server("cut", history[:200], history[230:])
    bad = server("bad", history)
    next((bad / "version-2").iterdir()).write_bytes(b"not a log" * 99)
    whole = server("whole", history)
    fleet = audit(tmp_path / "tables", whole, cut, bad, members="apart")
    rows = read_tables(tmp_path / "tables")
    assert {*rows, "transactions"} == {*TABLES}
    for name in rows:
        fields = DeltaTable(tmp_path / "tables" / name).to_pyarrow_table().schema
        assert fields.names == TABLES[name].make_schema().names
    assert fleet.report is not None
    by_name = {Path(row["archive"]).parent.name: row for row in rows["archives"]}
    unjudged = next(row for row in rows["archives"] if row["verdict"] == "not judged")
    assert unjudged["archive"] == str(bad)
    assert "begins with" in unjudged["reason"]
    for archive in fleet.report.archives:
        told, name = archive.as_dict(strict=False), Path(archive.archive.name).name
        row = by_name[name]
        for key in ("verdict", "profile", "first_zxid", "last_zxid", "transactions", "partitions"):
            assert row[key] == told[key], key
        assert (row["holes"], row["version"]) == (len(archive.holes), "1")
        assert row["day"] == row["last_time"].date()
        account = told["accounted"]
        assert (row["passed_over"], row["missing"]) == (
            sum(account["passed_over"].values()),
            account["missing"],
        )
        clusters = [each for each in rows["clusters"] if each["judged"] == row["judged"]]
        for key in ("chroot", "verdict", "profile", "partitions", "violations"):
            assert [each[key] for each in clusters] == [e[key] for e in told["by_cluster"]] != []
        mine = [each for each in rows["findings"] if each["archive"] == row["archive"]]
        for settled, expected in ((True, archive.settled), (False, archive.open)):
            found = Counter(each["clause"] for each in mine if each["settled"] is settled)
            assert found == expected.counts
        times = {(each["zxid"], each["clause"]): each["time"] for each in mine}
        for found_there in archive.violations:
            stamp = times[found_there.zxid, found_there.clause].timestamp()
            assert round(stamp * 1000) == found_there.time_ms
    check_incidents(rows, fleet.report)
    facts = fleet.report.as_json_dict()["facts"]["reassignments"]
    outcomes = Counter(row["outcome"].replace(" ", "_") for row in rows["reassignments"])
    assert outcomes == {name: facts[name] for name in outcomes}
    assert outcomes["completed"] > 20
    assert sum(row["moved"] for row in rows["reassignments"]) == facts["moved"]
    sums = Counter[str]()
    for row in rows["facts"]:
        sums[row["fact"]] += row["value"]
    assert {n: sums[f"reassignments.{n}"] for n in ("moved", "drops", "completed")} == {
        n: facts[n] for n in ("moved", "drops", "completed")
    }
    assert {row["level"] for row in rows["findings"]} >= {"MUST"}


def check_incidents(rows: dict[str, list[dict[str, Any]]], report: AuditReport) -> None:
    """See that incidents are those of the report, and that findings say which they are of."""
    incidents = report.as_json_dict()["incidents"]
    same = ("clause", "topic", "partitions", "first_zxid", "last_zxid", "risk", "remedy", "besides")
    told = sorted(repr([each[name] for name in same]) for each in incidents)
    assert sorted(repr([row[name] for name in same]) for row in rows["incidents"]) == told
    assert len(told) > 10
    binding = [row for row in rows["findings"] if row["settled"] and row["level"] == "MUST"]
    begun = [row for row in binding if row["cause"] is None]
    assert len(begun) == sum(len(row["partitions"]) for row in rows["incidents"])
    followed = Counter((row["archive"], row["cause"]) for row in binding if row["cause"])
    assert followed == Counter(
        {(r["archive"], r["first_zxid"]): r["followed"] for r in rows["incidents"] if r["followed"]}
    )
    assert followed, "some are consequences"
    times = {row["first_zxid"]: row["first_time"].timestamp() for row in rows["incidents"]}
    assert {each["first_zxid"]: each["first_ms"] for each in incidents} == {
        zxid: round(1000 * time) for zxid, time in times.items()
    }


def test_what_other_rules_find_amid_a_wound_names_its_cause(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a finding says of no cause itself; the incident that it is a part of does."""
    take, amid = FleetTables.take, "legacy.entry.removed-when-done"
    causes = []

    def find_more(tables: FleetTables, outcome: Any, report: Any) -> None:
        last = max((one for one, settled in outcome.found if settled and one.cause))
        causes.append(last.cause)
        more = replace(last, clause=amid, cause=0)
        take(tables, outcome._replace(found=(*outcome.found, (more, True))), report)

    monkeypatch.setattr(FleetTables, "take", find_more)
    audit(tmp_path / "tables", server("one", plant()))
    rows = read_tables(tmp_path / "tables")
    assert [row["cause"] for row in rows["findings"] if row["clause"] == amid] == causes != []
    assert amid not in {row["clause"] for row in rows["incidents"]}


def test_what_is_there_is_not_appended_again(server: Server, tmp_path: Path) -> None:
    """The same audit adds nothing; one of logs that have grown adds what it came to."""
    history = plant()
    folder, tables = server("one", history[:300]), tmp_path / "tables"
    audit(tables, folder)
    before = read_tables(tables)
    audit(tables, folder)
    audit(tables, folder, jobs=2)
    assert read_tables(tables) == before
    later = server("later", history[300:]) / "version-2" / "log.12d"
    later.rename(folder / "version-2" / later.name)
    audit(tables, folder)
    after = read_tables(tables)
    assert sorted(row["transactions"] for row in after["archives"]) == [300, len(history)]
    assert all(row in after["findings"] for row in before["findings"])
    assert len(after["findings"]) > len(before["findings"])


def test_tables_of_an_earlier_version_get_the_columns_that_they_lack(
    server: Server, tmp_path: Path
) -> None:
    """What stands there stays, and is null where it says nothing."""
    earlier = TABLES["archives"].make_schema().empty_table().select(["day", "archive", "judged"])
    there = earlier.from_pylist([{"archive": "old", "judged": "once"}], schema=earlier.schema)
    write_deltalake(str(tmp_path / "tables" / "archives"), there, partition_by=["day"])
    audit(tmp_path / "tables", server("one", plant()))
    old, new = sorted(
        read_tables(tmp_path / "tables")["archives"], key=lambda row: row["archive"] != "old"
    )
    assert (old["judged"], old["missing"]) == ("once", None)
    assert new["missing"] == 0


def test_only_what_is_new_is_judged(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive that the tables have costs nothing, one that has grown what it grew by.

    What another version has put aside is not trusted.
    """
    judged: list[int] = []
    judge = ArchiveAudit._judge

    def counting(self: ArchiveAudit, batch: list[Any]) -> None:
        judged.append(len(batch))
        judge(self, batch)

    monkeypatch.setattr(ArchiveAudit, "_judge", counting)
    history, tables = plant(), tmp_path / "tables"
    folder = server("one", history[:500]) / "version-2"
    said: list[str] = []

    def count() -> int:
        judged.clear()
        audit(tables, folder, say=said.append)
        return sum(judged)

    assert (count(), count()) == (500, 0)
    GrowingLog(folder).append(*history[500:])
    assert (count(), count()) == (len(history) - 500, 0)
    assert said == []
    monkeypatch.setattr("reassure_pipeline.checkpoints.kept_files.digest_code", lambda: "other")
    assert count() == len(history)
    assert "another version of reassure" in said[0]
    audit(tmp_path / "whole", folder)
    rows, whole = read_tables(tables), read_tables(tmp_path / "whole")
    last = whole["archives"][0]["judged"]
    for name, there in whole.items():
        assert [row for row in rows[name] if row["judged"] == last] == there


KILLED = """
import os, signal, sys
from pathlib import Path
from reassure_pipeline.checkpoints import audits
from reassure_pipeline.tables import fleet_tables

module, name = {"append": (fleet_tables, "_append"), "keep": (audits, "keep")}[sys.argv[1]]
work, left = getattr(module, name), [int(sys.argv[2])]

def work_and_die(*given):
    work(*given)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)

setattr(module, name, work_and_die)
from test_tables import audit
audit(Path(sys.argv[3]), *map(Path, sys.argv[4:]))
"""


@pytest.mark.parametrize(("moment", "times"), [("append", 1), ("append", 3), ("keep", 1)])
def test_killed_between_commits_nothing_is_lost_or_twice(
    server: Server, tmp_path: Path, moment: str, times: int
) -> None:
    """However far writing has come, the next audit makes it whole, and each row stands once."""
    folders = [server("one", plant()), server("two", write_sample(topics=1))]
    audit(tmp_path / "whole", *folders)
    place = tmp_path / "killed"
    given = [moment, str(times), str(place), *map(str, folders)]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *given], cwd=Path(__file__).parent, check=False
    )
    assert done.returncode == -9
    assert len([*place.glob("*/_delta_log/*1.json")]) == (times if moment == "append" else 0)
    assert not (place / "archives").exists(), "an archive there has its rows elsewhere"
    audit(place, *folders)
    assert read_tables(place) == read_tables(tmp_path / "whole")


@pytest.mark.parametrize("place", ["tables", "resume"])
def test_a_full_disk_silences_no_violation(
    server: Server, tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was found is in the document, and beside it that it could not be written."""

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    target = {
        "tables": "reassure_pipeline.tables.fleet_tables._append",
        "resume": "reassure_pipeline.checkpoints.audits.keep",
    }[place]
    monkeypatch.setattr(target, fail)
    said: list[str] = []
    given: dict[str, Any] = {place: tmp_path / "full", "say": said.append}
    document = audit_document([server("one", plant())], PROFILE, {}, None, **given)
    assert document.verdict == "violated"
    assert document.body["violations"]
    told = [*said, *document.body["needs"]]
    assert any("full" in each and "No space left on device" in each for each in told)


def test_commits_hold_some_archives_each(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fleet is written as it is judged, and comes to the same rows."""
    folders = [server(name, write_sample(topics=1, partitions=1)) for name in "abc"]
    audit(tmp_path / "whole", *folders, members="apart")
    monkeypatch.setattr(fleet_tables, "_ARCHIVES", 1)
    audit(tmp_path / "each", *folders, members="apart")
    assert DeltaTable(tmp_path / "each" / "archives").version() == 3
    assert read_tables(tmp_path / "each") == read_tables(tmp_path / "whole")


def test_answers_of_the_page_are_true(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page has what DuckDB answers, and its way to open tables works."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    answers = importlib.import_module("answers")
    page = answers.PAGE.read_text("utf-8")
    assert answers.answer(page) == page, "run python docs/answers.py"
    assert page.count("## ") == 10
    audit(tmp_path / "tables", server("one", plant()))
    (python,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    said: dict[str, Any] = {}
    exec(python.replace('f"tables', f'f"{tmp_path}/tables'), said)
    assert said["duckdb"].sql("SELECT * FROM findings").fetchall()
