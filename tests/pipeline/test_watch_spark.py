"""The watch on Spark: the same alerts as the plain one's, whatever the batches are."""

import pickle
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pipeline_steps import plant, synthesise, watch

from reassure_conformance.answers import watching
from reassure_judge.protocols import make_rules
from reassure_lab.archives.planted import plant_all
from reassure_lab.archives.sample import SampleCluster
from reassure_lab.protocols.kip_236.synthetic import Size, write_archive
from reassure_pipeline.audit.passes import Options
from reassure_pipeline.watch import on_spark as watch_spark
from reassure_pipeline.watch.alerts import Alert
from reassure_pipeline.watch.loop import ArchiveWatch, Status
from reassure_pipeline.watch.on_spark import Answer, ShareWork, judge_share
from reassure_pipeline.watch.watch_checkpoint import JOURNAL
from reassure_pipeline.watch.watched_archive import report_watch
from reassure_spec.readings import get_profile
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.txnlog_writer import GrowingLog

PROFILE = "kip-236"
FACTS = Options(facts=True)


def describe_status(status: Status) -> tuple[Any, ...]:
    """Return what a status says that does not depend on time, nor on where batches end."""
    archives = [each._replace(state="", behind_s=0.0, present=None) for each in status.archives]
    present = [each.present and each.present.as_dict() for each in status.archives]
    return archives, present, status.found, status.exercised


def list_ids(alerts: Iterable[Alert]) -> list[tuple[str, str]]:
    """Return what alerts are, in an order that is the same however they came."""
    return sorted((alert.kind, alert.id) for alert in alerts)


def write(folder: Path, history: list[Transaction]) -> Path:
    """Write a history with damage in it, file after file."""
    folder.mkdir()
    log = GrowingLog(folder)
    for start in range(0, len(history), 90):
        log.append(*history[start : start + 90])
        if start == 180:
            log.write(b"\1" * 50)
        log.rotate()
    return folder


@pytest.fixture
def places(tmp_path: Path, snapshot: Callable[..., Path]) -> list[Path]:
    """Return three archives: with damage, a cluster at work, and holes with snapshots behind."""
    history = plant()
    (tmp_path / "made").mkdir()
    write_archive(tmp_path / "made", Size(2_000, 20, 10, 1))
    holed, another = tmp_path / "holed", SampleCluster(time_ms=10**12 + 7)
    plant_all(another)
    holed.mkdir()
    write(holed / "version-2", another.transactions)
    for zxid in (91, 361):
        (holed / "version-2" / f"log.{zxid:x}").unlink()
    for zxid in (100, 200, 300, 450, 475):
        snapshot(holed, another.transactions[: zxid + 4], zxid)
    broken = write(tmp_path / "broken", history[:260] + history[262:])
    return [broken, tmp_path / "made", holed]


NAMES = ("verdict", "counts", "clauses", "violations", "unsettled", "needs", "archives", "facts")


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge shares one after the other in this process, everything as bytes between."""

    def judge_all(kept: Sequence[bytes], work: ShareWork) -> list[Answer]:
        sent = pickle.dumps(work)
        return [pickle.loads(pickle.dumps(judge_share(k, pickle.loads(sent)))) for k in kept]

    monkeypatch.setattr(watching, "open_spark", lambda *_: nullcontext())
    monkeypatch.setattr(watch_spark, "judge_shares", judge_all)


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("shares", [1, 3])
@pytest.mark.parametrize("most", [1, 300, 100_000])
def test_shares_and_batches_tell_what_one_process_does(
    places: list[Path], monkeypatch: pytest.MonkeyPatch, shares: int, most: int
) -> None:
    """However topics are cut and wherever a batch ends: the same alerts, sums and verdicts."""
    monkeypatch.setattr(watch_spark, "_MOST", most)
    shown: list[Status] = []
    plain, document = watch(*places, options=FACTS, show=shown.append)
    last = describe_status(shown[-1])
    told, there = watch(*places, options=FACTS, show=shown.append, spark=f"local[{shares}]")
    assert len(plain.alerts) > 20
    assert list_ids(told.alerts) == list_ids(plain.alerts)
    assert {name: there[name] for name in NAMES} == {name: document[name] for name in NAMES}
    assert describe_status(shown[-1]) == last
    assert shown[-1].exercised > 20 < sum(shown[-1].found.values())
    assert document["facts"]["reassignments"]["started"] > 50
    assert document["counts"]["holes"] == 3  # two between files, one inside a file of `broken`
    assert [hole["until"] for hole in document["archives"][2]["holes"]] == [204, 454]


@pytest.mark.usefixtures("without_spark")
def test_what_was_read_and_not_judged_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A watch that is broken off before a batch is judged goes on with that, and tells it once."""
    history, _ = synthesise(2_500, 20, 20, 2)
    (tmp_path / "made").mkdir()
    GrowingLog(tmp_path / "made").append(*history)
    plain, document = watch(tmp_path / "made", options=FACTS)
    rules = make_rules(PROFILE, get_profile(PROFILE))
    archive = ArchiveWatch(tmp_path / "made", rules, FACTS, 2)
    next(archive.judge())
    archive = pickle.loads(pickle.dumps(archive))
    told = [alert for some in archive.judge() for alert in some]
    found = archive.report()
    assert found is not None
    assert list_ids(told) == list_ids(plain.alerts)
    report = report_watch(PROFILE, [found], strict=False)
    assert [clause.as_dict() for clause in report.clauses] == document["clauses"]


@pytest.mark.slow
@pytest.mark.spark
def test_spark_tells_what_one_process_does(places: list[Path], tmp_path: Path) -> None:
    """On Spark too; and it goes on where it was, and tells nothing twice."""
    shown: list[Status] = []
    plain, document = watch(*places, options=FACTS, show=shown.append)
    last = describe_status(shown[-1])
    kept = tmp_path / "kept"
    asked: dict[str, Any] = {"spark": "local[2]", "checkpoint": kept, "options": FACTS}
    told, there = watch(*places, show=shown.append, **asked)
    assert list_ids(told.alerts) == list_ids(plain.alerts)
    assert describe_status(shown[-1]) == last
    assert {name: there[name] for name in NAMES} == {name: document[name] for name in NAMES}
    again, once_more = watch(*places, **asked)
    assert again.alerts == []
    assert {name: once_more[name] for name in NAMES} == {name: document[name] for name in NAMES}
    assert len((kept / JOURNAL).read_bytes().splitlines()) == len(plain.alerts)
