"""Audits that end early, go on where they were, and begin amid a history."""

import gzip
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pipeline_steps import SIZE, flip, show

from reassure_judge.verdicts import BY_CONTENT
from reassure_pipeline.archives.archive import Since
from reassure_pipeline.audit import archive_audit as engine
from reassure_pipeline.audit.audit_report import AuditReport
from reassure_pipeline.audit.jobs import AuditBudget
from reassure_pipeline.audit.run_audit import audit_named
from reassure_pipeline.checkpoints import audits as resuming
from reassure_pipeline.checkpoints.kept_files import KeptElsewhere, own_directory
from reassure_spec.readings import get_profile
from reassure_zookeeper.txnlog import log_files, read_logs

PROFILE = "kip-236"
READINGS = get_profile(PROFILE)
Counted = Callable[[], int]


def _audit(*paths: Path, **options: Any) -> AuditReport:
    return audit_named(paths, PROFILE, READINGS, facts=True, **options)


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Count the transactions that are judged in this process since it was last asked."""
    count = [0]
    judge = engine.ArchiveAudit._judge

    def counting(audit: engine.ArchiveAudit, batch: list[Any]) -> None:
        count[0] += len(batch)
        judge(audit, batch)

    def ask() -> int:
        found, count[0] = count[0], 0
        return found

    monkeypatch.setattr(engine.ArchiveAudit, "_judge", counting)
    return ask


@pytest.mark.parametrize("jobs", [1, 2])
def test_budgets_add_up_to_the_whole(made: Path, tmp_path: Path, jobs: int) -> None:
    """Runs that each judge some transactions come to the report of one that judges all."""
    whole = _audit(made)
    assert len(whole.violations) == SIZE.faults
    budget = AuditBudget(transactions=1_150)
    shown: list[int] = []
    for _ in range(3):
        report = _audit(made, jobs=jobs, budget=budget, resume=tmp_path / "kept")
        (archive,) = report.archives
        shown.append(archive.transactions)
        assert report.verdict in ("unknown", "violated")
        assert any("where the budget was spent" in need for need in report.needs)
        found = {v.zxid for v in report.violations}
        assert archive.judged_to is not None
        assert found == {v.zxid for v in whole.violations if v.zxid <= archive.judged_to}
    assert shown == [1_150, 2_300, 3_450]
    last = _audit(made, jobs=jobs, budget=budget, resume=tmp_path / "kept")
    assert show(last) == show(whole)


def test_budget_that_is_spent_at_once_judges_nothing(made: Path) -> None:
    """Where time is up before the beginning, the verdict is unknown, not vacuous."""
    report = _audit(made, jobs=2, budget=AuditBudget(seconds=0))
    assert (report.archives[0].transactions, report.verdict) == (0, "unknown")
    show(report)


def test_interrupted_audit_goes_on(
    made: Path, tmp_path: Path, judged: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was judged before an interrupt is not judged again, and the report is the same."""
    whole = _audit(made)
    assert judged() == SIZE.transactions
    monkeypatch.setattr(resuming, "_REST_S", 0.0)
    monkeypatch.setattr(resuming, "_COST", 0)
    steps = 0

    def interrupt(what: str, done: int, total: int) -> None:
        nonlocal steps
        steps += 1
        if steps == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _audit(made, resume=tmp_path / "kept", progress=interrupt)
    assert judged() == 4 * 700
    assert show(_audit(made, resume=tmp_path / "kept")) == show(whole)
    assert judged() == SIZE.transactions - 3 * 700


def test_only_what_was_added_is_judged(made: Path, tmp_path: Path, judged: Counted) -> None:
    """A last file that has grown, new files, and packed ones cost what they add."""
    whole, _ = _audit(made), judged()
    files = log_files(made)
    later = {file: file.read_bytes() for file in files[3:]}
    for file in files[4:]:
        file.unlink()
    files[3].write_bytes(later[files[3]][:-70_000])
    first = _audit(made, resume=tmp_path / "kept").archives[0]
    assert first.torn_tail is not None
    assert judged() == first.transactions
    for file, content in later.items():
        file.write_bytes(content)
    files[0].with_name(files[0].name + ".gz").write_bytes(gzip.compress(files[0].read_bytes()))
    files[0].unlink()
    said: list[str] = []
    report = _audit(made, resume=tmp_path / "kept", say=said.append)
    assert (said, judged()) == ([], SIZE.transactions - first.transactions)
    assert show(report) == show(whole)
    assert show(_audit(made, resume=tmp_path / "kept")) == show(whole)
    assert judged() == 0


def test_other_number_of_processes_begins_anew(made: Path, tmp_path: Path) -> None:
    """What one process kept of all topics is of no use to two: it is said, and redone."""
    whole = _audit(made, resume=tmp_path / "kept")
    said: list[str] = []
    assert show(_audit(made, jobs=2, resume=tmp_path / "kept", say=said.append)) == show(whole)
    assert said == ["all is judged again: the checkpoint is of 1 processes, not of 2"]
    said.clear()
    assert show(_audit(made, jobs=None, resume=tmp_path / "kept", say=said.append)) == show(whole)
    assert said == []


def _garble(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-40] + bytes(40))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("change", "options"),
    [
        (lambda made: _garble(log_files(made)[1]), {}),
        (lambda made: log_files(made)[0].unlink(), {}),
        (lambda made: None, {"grace_ms": 0}),
        (lambda made: [*map(_garble, (made.parent / "kept").glob("*.state"))], {}),
    ],
    ids=["changed file", "lost file", "other option", "garbled state"],
)
def test_what_is_not_the_same_is_judged_anew(
    made: Path, tmp_path: Path, change: Callable[[Path], object], options: dict[str, Any]
) -> None:
    """Where anything differs that the kept judging is of, it says so and comes to what is true."""
    _audit(made, resume=tmp_path / "kept")
    change(made)
    said: list[str] = []
    report = _audit(made, resume=tmp_path / "kept", say=said.append, **options)
    assert said
    assert f"{made} is judged again: " in said[0]
    assert show(report) == show(_audit(made, **options))


def test_damage_that_comes_later_is_contained(made: Path, tmp_path: Path, judged: Counted) -> None:
    """Damage in a new file makes one audit begin anew; the next one goes on around it."""
    files = log_files(made)
    content = files[-1].read_bytes()
    files[-1].unlink()
    _audit(made, resume=tmp_path / "kept")
    files[-1].write_bytes(content)
    flip(files[-1])
    report = _audit(made, resume=tmp_path / "kept")
    assert len(report.archives[0].archive.damages) == 1
    judged()
    assert show(_audit(made, resume=tmp_path / "kept")) == show(report)
    assert judged() == 0
    assert show(_audit(made)) == show(report)


def test_directory_of_others_is_refused(tmp_path: Path, made: Path) -> None:
    """What others may write is not read, and what another process uses is not shared."""
    kept = tmp_path / "kept"
    kept.mkdir()
    kept.chmod(0o777)
    with pytest.raises(KeptElsewhere, match="chmod go-w"):
        _audit(made, resume=kept)
    kept.chmod(0o700)
    with own_directory(kept), pytest.raises(KeptElsewhere, match="used by another process"):
        _audit(made, resume=kept)


def _begin(whole: AuditReport, zxid: int) -> set[tuple[str, int]]:
    return {(v.clause, v.zxid) for v in whole.violations if v.zxid >= zxid}


def test_audit_since_a_zxid_judges_what_comes_then(made: Path, judged: Counted) -> None:
    """What stood before is taken from earlier files, which are not judged; later findings stay."""
    whole, _ = _audit(made), judged()
    zxid = 2_345
    report = _audit(made, since=Since(zxid=zxid))
    assert judged() == SIZE.transactions - zxid + 1
    (archive,) = report.archives
    assert (archive.archive.begins, archive.archive.since) == ("snapshot", zxid)
    assert (archive.partial, archive.holes) == (False, ())
    settled = {(v.clause, v.zxid) for v in archive.violations}
    # What was under way at the start may be taken for wrong, but never for certain.
    unsettled = {(v.clause, v.zxid) for v in archive.unsettled}
    assert settled
    assert settled <= _begin(whole, zxid) <= settled | unsettled


def test_audit_since_a_time_begins_with_its_first_transaction(made: Path) -> None:
    """A time is that of the server's clock; one after the end leaves nothing to judge."""
    at = next(each for each in read_logs(made) if each.zxid == 2_345)
    (archive,) = _audit(made, since=Since(time_ms=at.time_ms)).archives
    first = next(each.zxid for each in read_logs(made) if each.time_ms >= at.time_ms)
    assert archive.archive.since == first
    late = round(datetime(2300, 1, 1, tzinfo=UTC).timestamp() * 1000)
    report = _audit(made, since=Since(time_ms=late))
    assert (report.verdict, report.archives[0].transactions) == ("vacuous", 0)


def test_what_is_missing_before_leaves_doubt(made: Path) -> None:
    """Where the beginning is gone a later start is amid the history, and settles content alone."""
    log_files(made)[0].unlink()
    (archive,) = _audit(made, since=Since(zxid=2_345)).archives
    assert (archive.archive.begins, archive.partial) == ("middle", True)
    assert archive.transactions == SIZE.transactions - 2_344
    assert archive.unsettled
    assert {violation.clause for violation in archive.violations} <= BY_CONTENT


def test_hole_before_a_later_start_settles_nothing(made: Path) -> None:
    """What was there is then not certain, and what does not fit is no error."""
    log_files(made)[1].unlink()
    report = _audit(made, since=Since(zxid=2_345))
    (archive,) = report.archives
    assert [(hole.after, hole.before) for hole in archive.holes] == [(700, 1_401)]
    assert (archive.archive.begins, archive.violations) == ("snapshot", ())
    assert (report.verdict, archive.partial) == ("unknown", True)
