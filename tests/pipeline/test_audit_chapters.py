"""Behind a hole judging begins anew from a snapshot, and what comes then is certain again."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline_steps import Audit, Server, Snapshot, flip, show, synthesise

from reassure_judge.suspicion import SHUTDOWN_MS
from reassure_judge.verdicts import BY_CONTENT
from reassure_lab.archives.planted import NEW, OLD
from reassure_lab.archives.sample import SampleCluster
from reassure_pipeline.archives import beginnings as bases
from reassure_pipeline.archives.archive import Since, find_archives, read_archive
from reassure_pipeline.archives.beginnings import lies_behind
from reassure_pipeline.audit.audit_report import AuditReport
from reassure_pipeline.audit.jobs import AuditBudget
from reassure_pipeline.audit.run_audit import audit_named
from reassure_spec.readings import get_profile
from reassure_spec.znodes import state_path
from reassure_zookeeper.ensemble import Hole
from reassure_zookeeper.log_survey import list_records, survey_log
from reassure_zookeeper.transactions import Create, Transaction, committed
from reassure_zookeeper.txnlog import LogFile, log_files
from reassure_zookeeper.txnlog_writer import write_log

Place = tuple[int, str, str, int]


class Story(NamedTuple):
    """A history with a violation in each of three spans."""

    history: list[Transaction]
    gone: tuple[int, int]
    """The first and the last zxid that is going to be missing."""
    snapshot: int
    """The zxid of the snapshot behind."""
    before: int
    """A violation before what is missing."""
    amid: int
    """One behind it, before the snapshot."""
    behind: int
    """One behind the snapshot, when all news of before are old."""


def _tell_story() -> Story:
    cluster = SampleCluster()
    cluster.time_ms += 60_000
    for topic in ("calm", "moving", "other"):
        cluster.create_topic(topic, {0: OLD})
    cluster.begin_reassign("moving", {0: NEW})
    before = cluster.write_state("calm", 0, leader=2)
    first = cluster.zxid + 1
    cluster.join("moving", 0, NEW)
    cluster.complete("moving", 0, NEW)
    gone = first, cluster.zxid
    cluster.reassign("other", {0: NEW})
    amid = cluster.write_state("calm", 0, leader=3)
    cluster.begin_reassign("other", {0: OLD})
    snapshot = cluster.zxid
    cluster.time_ms += 60_000
    cluster.join("other", 0, OLD)
    cluster.complete("other", 0, OLD)
    behind = cluster.write_state("calm", 0, leader=1)
    cluster.reassign("moving", {0: OLD})
    return Story(cluster.transactions, gone, snapshot, before, amid, behind)


@pytest.fixture
def story() -> Story:
    """Return a history with a violation in each span."""
    return _tell_story()


@pytest.fixture
def holed(server: Server, snapshot: Snapshot, story: Story) -> Path:
    """Return its logs with a file missing, a stale snapshot, and one behind."""
    first, last = story.gone
    folder = server("one", story.history[: first - 1], story.history[last:])
    snapshot(folder, story.history[: first - 5], first - 5)
    snapshot(folder, story.history[: story.snapshot], story.snapshot)
    return folder


def _list(report: AuditReport) -> tuple[list[int], set[int]]:
    (archive,) = report.archives
    return [v.zxid for v in archive.violations], {v.zxid for v in archive.unsettled}


@pytest.mark.parametrize("jobs", [1, 3])
def test_certainty_comes_back_with_a_snapshot(
    holed: Path, audit: Audit, story: Story, jobs: int
) -> None:
    """Violations before the hole and behind the snapshot count; one in between is not settled."""
    report = audit(holed, jobs=jobs)
    settled, unsettled = _list(report)
    assert settled == [story.before, story.behind]
    assert story.amid in unsettled
    assert max(unsettled) <= story.snapshot
    (hole,) = report.as_json_dict()["archives"][0]["holes"]
    first, last = story.gone
    name = holed / "version-2" / f"snapshot.{story.snapshot:x}"
    assert hole == {
        "after": first - 1,
        "before": last + 1,
        "until": story.snapshot,
        "snapshot": str(name),
    }
    (need,) = report.needs
    span = f"from 0x{last + 1:x} up to 0x{story.snapshot:x} are uncertain"
    assert f"{span}, where judging restarts from {name.name}" in need
    assert report.archives[0].partitions == {"": 3}
    assert report.archives[0].transactions == len(story.history) - (last - first + 1)


def test_without_a_later_snapshot_nothing_is_certain_to_the_end(
    holed: Path, audit: Audit, story: Story
) -> None:
    """What lies behind the hole is not settled, as no snapshot shows what was there."""
    (holed / "version-2" / f"snapshot.{story.snapshot:x}").unlink()
    report = audit(holed)
    settled, unsettled = _list(report)
    assert settled == [story.before]
    assert {story.amid, story.behind} <= unsettled
    assert report.as_json_dict()["archives"][0]["holes"][0]["until"] == -1
    assert "violations after them are uncertain" in report.needs[0]


def test_what_is_missing_alone_makes_the_verdict_unknown(
    server: Server, snapshot: Snapshot, audit: Audit, story: Story
) -> None:
    """Where nothing is wrong in what is certain the verdict is unknown, for the span between."""
    first, last = story.gone
    history = [each for each in story.history if each.zxid not in (story.before, story.behind)]
    folder = server("one", history[: first - 2], history[last - 1 :])
    snapshot(folder, story.history[: story.snapshot], story.snapshot)
    report = audit(folder)
    assert (report.verdict, report.violations) == ("unknown", ())
    assert report.archives[0].beginnings[-1].zxid == story.snapshot


@pytest.mark.parametrize("late", [0, 1])
def test_snapshot_lies_behind_if_it_shows_all_that_is_missing(
    server: Server, snapshot: Snapshot, audit: Audit, story: Story, late: int
) -> None:
    """A snapshot of the last transaction that is missing is enough, one before it is not."""
    first, last = story.gone
    folder = server("one", story.history[: first - 1], story.history[last:])
    snapshot(folder, story.history[: last - late], last - late)
    beginnings = audit(folder).archives[0].beginnings
    assert [each.zxid for each in beginnings[1:]] == ([] if late else [last])
    assert lies_behind(Path(f"snapshot.{last:x}"), Hole(first - 1, last + 1))


def test_fuzzy_snapshot_begins_where_all_that_it_shows_is_known(
    holed: Path, snapshot: Snapshot, audit: Audit, story: Story
) -> None:
    """Judging begins behind the newest change that the snapshot may show, and accuses nobody."""
    snapshot(holed, story.history[: story.snapshot + 4], story.snapshot)
    report = audit(holed)
    assert report.archives[0].beginnings[-1].zxid == story.snapshot + 4
    assert _list(report)[0] == [story.before, story.behind]


def test_damaged_snapshot_is_passed_over(
    holed: Path, snapshot: Snapshot, audit: Audit, story: Story
) -> None:
    """Where the first snapshot behind is damaged the next one is taken; today's is no error."""
    later = story.snapshot + 2
    path = snapshot(holed, story.history[:later], later)
    (holed / "version-2" / f"snapshot.{story.snapshot:x}").write_bytes(path.read_bytes()[:-30])
    assert audit(holed).archives[0].beginnings[-1] == (path, later)


def test_snapshot_with_another_hole_behind_it_is_passed_over(
    server: Server, snapshot: Snapshot, audit: Audit, story: Story
) -> None:
    """A hole in what leads from a snapshot to where it is known leaves the next one to begin from.

    And a hole behind a beginning has a beginning of its own behind it.
    """
    history, (first, last) = story.history, story.gone
    cut = last + 10
    folder = server("one", history[: first - 1], history[last:cut], history[cut + 1 :])
    snapshot(folder, history[: cut + 4], cut - 2)
    snapshot(folder, history[: story.snapshot], story.snapshot)
    report = audit(folder)
    assert [each.zxid for each in report.archives[0].beginnings] == [-1, story.snapshot]
    assert _list(report)[0] == [story.before, story.behind]
    snapshot(folder, history[: cut - 2], cut - 2)
    beginnings = audit(folder).archives[0].beginnings
    assert [each.zxid for each in beginnings] == [-1, cut - 2, story.snapshot]


def test_damage_is_a_hole_that_a_snapshot_lies_behind(
    server: Server, snapshot: Snapshot, audit: Audit, story: Story
) -> None:
    """Around damage, too, what is behind the next snapshot is certain."""
    folder = server("one", story.history)
    snapshot(folder, story.history[: story.snapshot], story.snapshot)
    (log,) = log_files(folder)
    records = (r for s in survey_log(log).ranges for r in list_records(s))
    damaged = next(record for record in records if record.zxid == story.gone[0])
    flip(log, damaged.stop - 2)
    settled, unsettled = _list(audit(folder))
    assert settled == [story.before, story.behind]
    assert story.amid in unsettled


def test_files_that_contradict_each_other_begin_nothing(
    server: Server, snapshot: Snapshot, audit: Audit, story: Story
) -> None:
    """Nobody knows of which of two histories a snapshot is."""
    cut = story.snapshot - 20
    other = [replace(each, time_ms=each.time_ms + 1) for each in story.history[cut:]]
    folder = server("one", story.history[: cut + 5], other)
    snapshot(folder, story.history[: story.snapshot], story.snapshot)
    report = audit(folder)
    assert report.archives[0].archive.damages
    assert len(report.archives[0].beginnings) == 1


def test_what_stands_in_a_snapshot_is_not_told_again(
    server: Server, snapshot: Snapshot, audit: Audit
) -> None:
    """Garbage that was written before the hole, and stands behind it, is one violation."""
    cluster = SampleCluster()
    for topic in ("calm", "other"):
        cluster.create_topic(topic, {0: OLD})
    path = state_path("calm", 0)
    written = cluster.control(cluster.put(path, b"{"))
    for _ in range(5):
        cluster.write_state("other", 0)
    history = cluster.transactions
    folder = server("one", history[:written], history[written + 1 :])
    snapshot(folder, history[: written + 2], written + 2)
    report = audit(folder)
    assert len(report.archives[0].beginnings) == 2
    assert [v.zxid for v in report.violations if v.path == path] == [written]


def test_what_is_missing_is_no_proof(server: Server, audit: Audit) -> None:
    """A write before a hole that what is in the hole would clear is not settled behind it."""
    cluster = SampleCluster()
    cluster.create_topic("orders", {0: OLD})
    cluster.time_ms += 60_000
    suspected = cluster.write_state("orders", 0, isr=(1, 2))
    cluster.kill(3)
    cleared = cluster.zxid
    cluster.time_ms += SHUTDOWN_MS + 1
    cluster.begin_reassign("orders", {0: (1, 2, 4)})
    history = cluster.transactions
    assert audit(server("whole", history)).violations == ()
    report = audit(server("holed", history[:suspected], history[cleared:]))
    settled, unsettled = _list(report)
    assert (settled, suspected in unsettled) == ([], True)
    stays = [
        committed(Create("/elsewhere"), zxid=cleared) if each.zxid == cleared else each
        for each in history
    ]
    assert [v.zxid for v in audit(server("stays", stays)).violations] == [suspected]


# Faults of the audit itself -----------------------------------------------------------------------


def test_a_span_that_never_ends_is_noticed(
    holed: Path, audit: Audit, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were the holes of before still counted, the violation behind the snapshot would be lost."""
    monkeypatch.setattr("reassure_pipeline.audit.passes.find_open", lambda holes, _: tuple(holes))
    assert _list(audit(holed))[0] == [story.before]


def test_a_span_that_ends_too_early_is_noticed(
    holed: Path, audit: Audit, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were a snapshot of before the hole taken for one behind it, the innocent would be accused."""
    monkeypatch.setattr(bases, "lies_behind", lambda *_: True)
    monkeypatch.setattr("reassure_pipeline.audit.archive_report.lies_behind", lambda *_: True)
    assert _list(audit(holed))[0] != [story.before, story.behind]


# A part of it, and the rest later -----------------------------------------------------------------


def test_an_audit_goes_on_in_whatever_chapter_it_was(
    holed: Path, audit: Audit, tmp_path: Path
) -> None:
    """Ended by its budget anywhere, and gone on with, it comes to what one audit does."""
    whole = show(audit(holed, facts=True, jobs=2))
    for number, budget in enumerate((30, 70, 90)):
        kept = tmp_path / f"kept-{number}"
        options: dict[str, Any] = {"facts": True, "jobs": 2, "resume": kept}
        for _ in range(9):
            report = audit(holed, **options, budget=AuditBudget(transactions=budget))
            if report.archives[0].judged_to is None:
                break
        assert show(report) == whole


def test_snapshot_that_came_later_is_begun_from(
    holed: Path, audit: Audit, story: Story, tmp_path: Path
) -> None:
    """What was kept before a snapshot was there is judged anew, as one audit would."""
    late = holed / "version-2" / f"snapshot.{story.snapshot:x}"
    content = late.read_bytes()
    late.unlink()
    said: list[str] = []
    assert _list(audit(holed, resume=tmp_path / "kept"))[0] == [story.before]
    late.write_bytes(content)
    report = audit(holed, resume=tmp_path / "kept", say=said.append)
    assert show(report) == show(audit(holed))
    assert "snapshots from which judging may restart" in said[0]
    assert show(audit(holed, resume=tmp_path / "kept", say=said.append)) == show(report)
    assert len(said) == 1


def test_hole_before_a_later_start_ends_with_a_snapshot(
    holed: Path, audit: Audit, story: Story
) -> None:
    """What stood at a start is not certain after a hole; behind the next snapshot it is."""
    report = audit(holed, since=Since(zxid=story.gone[1] + 2))
    assert _list(report)[0] == [story.behind]
    assert story.amid in _list(report)[1]
    assert audit(holed, since=Since(zxid=story.snapshot + 3)).verdict == "violated"


def test_snapshot_of_what_nobody_took_over_is_left_out(
    server: Server, snapshot: Snapshot, story: Story
) -> None:
    """What a member alone had logged when it took a snapshot is no beginning for the others."""
    history, epoch = story.history, 1 << 32
    cut = story.snapshot
    onward = [replace(each, zxid=epoch + n) for n, each in enumerate(history[cut:], start=1)]
    stale = server("stale", history[: cut + 3])
    members = [stale, server("two", history[:cut], onward), server("three", history[:cut], onward)]
    dirty = snapshot(stale, history[: cut + 3], cut + 3)
    clean = snapshot(stale, history[:cut], cut)
    (archive,) = find_archives(members)
    assert archive.divergences
    assert (clean in archive.snapshots, dirty in archive.snapshots) == (True, False)


# Anything may be missing --------------------------------------------------------------------------


@lru_cache
def _make_history() -> list[Transaction]:
    """Return a history with faults in it, in which brokers die and topics move."""
    return synthesise(950, 4, 8, 3)[0]


@lru_cache
def _find_all(profile: str) -> frozenset[Place]:
    """Return the violations of the whole history."""
    with TemporaryDirectory() as folder:
        write_log(folder, _make_history())
        return _list_found(audit_named([Path(folder)], profile, get_profile(profile)))


@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_what_is_cut_out_accuses_nobody(
    tmp_path_factory: pytest.TempPathFactory, snapshot: Snapshot, data: st.DataObject
) -> None:
    """Whatever files are missing, and wherever snapshots lie, no violation is found that is none.

    What is wrong with the content of a znode may be seen later than it was written. And those
    behind the last beginning are found, settled or not.
    """
    folder = tmp_path_factory.mktemp("cut") / "version-2"
    folder.mkdir()
    history, profile = _make_history(), data.draw(st.sampled_from(("kip-236", "kip-236-legacy")))
    size = len(history) // data.draw(st.integers(3, 7)) + 1
    for start in range(0, len(history), size):
        write_log(folder, history[start : start + size])
    places = st.integers(40, len(history) - 6)
    for at in data.draw(st.lists(places, min_size=1, max_size=5, unique=True)):
        shown = at + data.draw(st.integers(0, 5))
        snapshot(folder.parent, history[:shown], history[at - 1].zxid)
    files = log_files(folder)
    gone = st.lists(st.sampled_from(files), min_size=1, max_size=2, unique=True)
    for file in data.draw(gone):
        file.unlink()
    report = audit_named([folder], profile, get_profile(profile))
    whole, found = _find_all(profile), _list_found(report)
    standing = {each[1:] for each in whole if each[1] in BY_CONTENT}
    assert all(each in whole or each[1:] in standing for each in found)
    (archive,) = report.archives
    last = archive.beginnings[-1].zxid
    if report.verdict == "holds":  # it begins with a snapshot behind all that is missing
        end = max((each.zxid for file in log_files(folder) for each in LogFile(file)), default=0)
        assert not archive.holes and not [zxid for zxid, *_ in whole if last < zxid <= end]
    else:
        assert report.verdict in ("unknown", "violated")
    if len(archive.beginnings) > 1 and all(map(archive.find_certain, archive.holes)):
        open_ = {(v.zxid, v.clause, v.topic, v.partition) for v in archive.unsettled}
        there = {each.zxid for each in read_archive(archive.archive) if each.zxid > last}
        assert {place for place in whole if place[0] in there} <= found | open_


def _list_found(report: AuditReport) -> frozenset[Place]:
    found = (v for archive in report.archives for v in archive.violations)
    return frozenset((v.zxid, v.clause, v.topic, v.partition) for v in found)
