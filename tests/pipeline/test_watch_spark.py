"""The watch on Spark: the same alerts as the plain one's, whatever the batches are."""

import gzip
import json
import pickle
import threading
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reassure_conformance.answers.watching import Outlet, WatchRequest, watch_document
from reassure_judge.protocols import make_rules
from reassure_judge.verdicts import BY_CONTENT
from reassure_lab.archives.planted import plant_all
from reassure_lab.archives.sample import SampleCluster
from reassure_lab.protocols.kip_236.synthetic import Size, SyntheticHistory, write_archive
from reassure_pipeline import watch_source
from reassure_pipeline.alerts import Alert
from reassure_pipeline.same_history import SameHistory
from reassure_pipeline.watch_loop import Ending, Rate, Status, Teller
from reassure_pipeline.watch_source import WatchReader
from reassure_pipeline.watch_spark import (
    Standing,
    begin_plan,
    begin_standing,
    find_status,
    judge_rows,
    list_outcomes,
    report_stream,
    sum_up,
    take_answers,
)
from reassure_pipeline.watch_state import JOURNAL, Journal
from reassure_pipeline.watched import Options, Watched, report_watch
from reassure_spec.readings import get_profile
from reassure_zookeeper.ensemble import Hole
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.txnlog_writer import GrowingLog

PROFILE = "kip-236"
FACTS = Options(facts=True)


class Batches:
    """What Spark does, without Spark: batch after batch, everything kept as bytes between them."""

    def __init__(self, places: list[Path], shares: int, journal: Path) -> None:
        rules = make_rules(PROFILE, get_profile(PROFILE))
        plan = begin_plan(places, rules, FACTS, f"local[{shares}]")
        assert plan is not None
        self.plan = plan
        self.told: list[Alert] = []
        self._journal = Journal(journal)
        self._teller = Teller(self._journal, lambda alert, repeated: self.told.append(alert))
        self.end = journal.with_name("end")
        self._reader = WatchReader(plan, self.end)
        self._offset: dict[str, Any] = self._reader.initialOffset()
        self._kept = [pickle.dumps({}) for _ in range(shares)]
        self.standing: Standing = begin_standing(plan)

    def run(self, amid: Callable[[], object] = lambda: None) -> int:
        """Do batches until there is nothing left; return how many.

        `amid` is done where a batch is planned and nothing of it is read.
        """
        for number in range(10_000):
            end = json.loads(json.dumps(self._reader.latestOffset(self._offset)))
            if end == self._offset:
                return number
            amid()
            rows = [
                tuple(row.values())
                for part in self._reader.partitions(self._offset, end)
                for batch in self._reader.read(part)
                for row in batch.to_pylist()
            ]
            answers = []
            for share in range(self.plan.shares):
                kept: dict[int, Watched] = pickle.loads(self._kept[share])
                mine: Any = [row for row in rows if row[0] == share]
                answers += pickle.loads(pickle.dumps(judge_rows(self.plan, share, kept, mine)))
                self._kept[share] = pickle.dumps(kept)
                answers += pickle.loads(pickle.dumps(sum_up(share, kept)))
            self.standing = take_answers(answers, self.standing, self._teller)
            self._offset = end
        raise AssertionError("it never ends")

    def close(self) -> None:
        """Let go of the journal."""
        self._journal.close()


def watch(
    *paths: Path, show: Callable[[Status], None] | None = None, **asked: Any
) -> tuple[list[Alert], dict[str, Any]]:
    """Watch paths until all is judged; return what was told, and the document."""
    told: list[Alert] = []

    def tell(alert: Alert, again: bool) -> None:
        if not again:
            told.append(alert)

    outlet = Outlet(tell, lambda _: None, show)
    ending = Ending(threading.Event(), when_caught_up=True)
    return told, watch_document(WatchRequest(paths, ending, PROFILE, **asked), outlet).as_dict()


def describe_status(status: Status) -> tuple[Any, ...]:
    """Return what a status says that does not depend on time, nor on where batches end."""
    archives = [each._replace(state="", behind_s=0.0, present=None) for each in status.archives]
    present = [each.present and each.present.as_dict() for each in status.archives]
    return archives, present, status.found, status.exercised


def list_ids(alerts: list[Alert]) -> list[tuple[str, str]]:
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
def places(tmp_path: Path, snapshots: Callable[..., Path]) -> list[Path]:
    """Return three archives: with damage, a cluster at work, and holes with snapshots behind."""
    cluster = SampleCluster()
    plant_all(cluster)
    history = cluster.transactions
    (tmp_path / "made").mkdir()
    write_archive(tmp_path / "made", Size(2_000, 20, 10, 1))
    holed, another = tmp_path / "holed", SampleCluster(time_ms=10**12 + 7)
    plant_all(another)
    holed.mkdir()
    write(holed / "version-2", another.transactions)
    for zxid in (91, 361):
        (holed / "version-2" / f"log.{zxid:x}").unlink()
    for zxid in (100, 200, 300, 450, 475):
        snapshots(holed, another.transactions[: zxid + 4], zxid)
    broken = write(tmp_path / "broken", history[:260] + history[262:])
    return [broken, tmp_path / "made", holed]


def test_nothing_more_begins_once_it_is_to_end(places: list[Path], tmp_path: Path) -> None:
    """Where the file is there that says so, what was added is for another time."""
    batches = Batches(places, 1, tmp_path / "alerts")
    batches.end.touch()
    assert batches.run() == 0
    batches.end.unlink()
    assert batches.run() > 0
    batches.close()


@pytest.mark.parametrize("shares", [1, 3])
@pytest.mark.parametrize("most", [1, 100_000])
def test_shares_and_batches_tell_what_one_process_does(
    places: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shares: int, most: int
) -> None:
    """However topics are cut and wherever a batch ends: the same alerts, sums and verdicts."""
    monkeypatch.setattr(watch_source, "_MOST", most)
    shown: list[Status] = []
    told, document = watch(*places, options=FACTS, show=shown.append)
    batches = Batches(places, shares, tmp_path / "alerts")
    first = find_status(batches.plan, batches.standing, 1.0, Rate())
    assert [archive.transactions for archive in first.archives] == [0, 0, 0]
    assert (batches.run() > 3) == (most == 1)
    batches.close()
    assert len(told) > 20
    assert list_ids(batches.told) == list_ids(told)
    plan, standing = batches.plan, batches.standing
    report = report_watch(PROFILE, report_stream(plan, standing), strict=False)
    assert [clause.as_dict() for clause in report.clauses] == document["clauses"]
    status = find_status(plan, standing, 1.0, Rate())
    assert describe_status(status) == describe_status(shown[-1])
    states = [archive.state for archive in status.archives]
    assert most == 1 or states == [archive.state for archive in shown[-1].archives]
    assert status.exercised > 20 < sum(status.found.values())
    facts = report.sum_up_facts()
    assert facts is not None
    assert facts.as_dict() == document["facts"]
    assert facts.moves["started"] > 50
    assert [archive.transactions for archive in report.archives] == [
        record["transactions"] for record in document["archives"]
    ]
    assert sum(each.holes for each in list_outcomes(plan, standing)) == document["counts"]["holes"]
    assert document["counts"]["holes"] == 3  # two between files, one inside a file of `broken`
    assert [each["holes"] for each in document["archives"]] == [
        each.as_dict(strict=False)["holes"] for each in report.archives
    ]
    assert [hole["until"] for hole in document["archives"][2]["holes"]] == [204, 454]


def test_paths_lead_from_where_they_were_named(
    places: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark works in another directory: the logs are found from there, and alerts are the same."""
    monkeypatch.chdir(tmp_path)
    named = [place.relative_to(tmp_path) for place in places]
    told, _ = watch(*named)
    batches = Batches(named, 2, tmp_path / "alerts")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    batches.run()
    batches.close()
    assert len(told) > 20
    assert list_ids(batches.told) == list_ids(told)


@pytest.mark.parametrize("begun", [0, 100], ids=["all", "nothing"])
def test_members_are_refused_there_too(tmp_path: Path, begun: int) -> None:
    """Whether it shows when the logs begin, or once both have been read on."""
    history = [each for some in SyntheticHistory(Size(1_500, 20, 8, 5)).steps() for each in some]
    logs, paths = [], [tmp_path / "one", tmp_path / "two"]
    for path, start, end in zip(paths, (0, begun), (100, 150), strict=True):
        path.mkdir()
        logs.append(GrowingLog(path))
        logs[-1].append(*history[start:end])
    batches = Batches(paths, 2, tmp_path / "alerts")
    if begun:
        batches.run()
        logs[0].append(*history[100:140])
    with closing(batches), pytest.raises(SameHistory, match="name only one of them"):
        batches.run()


@pytest.fixture
def growing(tmp_path: Path) -> tuple[Path, list[Path], Callable[[], None]]:
    """Return a folder with four files of a history with violations, these, and what writes on."""
    folder = tmp_path / "growing"
    folder.mkdir()
    history = [each for some in SyntheticHistory(Size(2_500, 20, 20, 2)).steps() for each in some]
    log = GrowingLog(folder)
    for start in range(0, 2_000, 500):
        log.append(*history[start : start + 500])
        log.rotate()
    files = sorted(folder.iterdir(), key=lambda file: int(file.suffix[1:], 16))
    return folder, files, lambda: log.append(*history[2_000:])


@pytest.mark.parametrize("suffix", [".gz", ".zip"])
def test_files_may_be_packed_before_a_batch_is_done_again(
    growing: tuple[Path, list[Path], Callable[[], None]], tmp_path: Path, suffix: str
) -> None:
    """What was planned is found in the packed file."""
    folder, files, _ = growing
    told, _ = watch(folder)

    def pack() -> None:
        for file in files:
            content, packed = file.read_bytes(), file.with_name(file.name + suffix)
            if suffix == ".gz":
                packed.write_bytes(gzip.compress(content))
            else:
                with zipfile.ZipFile(packed, "w") as archive:
                    archive.writestr(file.name, content)
            file.unlink()

    with closing(Batches([folder], 2, tmp_path / "alerts")) as batches:
        batches.run(pack)
    assert len(told) > 10
    assert list_ids(batches.told) == list_ids(told)


@pytest.mark.parametrize("shares", [1, 3])
def test_what_is_deleted_before_a_batch_is_done_again_is_missing(
    growing: tuple[Path, list[Path], Callable[[], None]], tmp_path: Path, shares: int
) -> None:
    """It is told once; what comes before it is certain, what comes after it is not, ever after."""
    folder, files, write_on = growing
    third = files[2]
    told, document = watch(folder)
    before, behind = (int(files[number].suffix[1:], 16) for number in (2, 3))
    with closing(Batches([folder], shares, tmp_path / "alerts")) as batches:
        batches.run(lambda: third.unlink(missing_ok=True))
        count = len(batches.told)
        write_on()
        batches.run()
        assert len(batches.told) > count + 1
    (damage,) = [alert for alert in batches.told if alert.kind == "damage"]
    assert damage.body["file"] == str(third)
    sure = [alert for alert in told if alert.seen_at < before]
    assert [a for a in batches.told if a.seen_at < before and a is not damage] == sure
    later = [alert for alert in batches.told if alert.seen_at >= behind]
    assert {alert.kind for alert in sure} == {"violation"}
    assert len(sure) > 3 < len(later)
    assert {a.kind for a in later if a.body["clause"] not in BY_CONTENT} == {"unsettled"}
    ((report, _),) = report_stream(batches.plan, batches.standing)
    assert report.holes == (Hole(before - 1, behind),)
    assert report.transactions == document["archives"][0]["transactions"]
    (outcome,) = list_outcomes(batches.plan, batches.standing)
    assert (outcome.holes, outcome.damaged) == (1, 1)


@pytest.mark.spark
def test_spark_tells_what_one_process_does(places: list[Path], tmp_path: Path) -> None:
    """On Spark too; and it goes on where it was, and tells nothing twice."""
    shown: list[Status] = []
    plain, document = watch(*places, options=FACTS, show=shown.append)
    last = describe_status(shown[-1])
    kept = tmp_path / "kept"
    asked: dict[str, Any] = {"spark": "local[2]", "checkpoint": kept, "options": FACTS}
    told, there = watch(*places, show=shown.append, **asked)
    assert list_ids(told) == list_ids(plain)
    assert describe_status(shown[-1]) == last
    names = ("verdict", "counts", "clauses", "violations", "unsettled", "facts")
    assert {name: there[name] for name in names} == {name: document[name] for name in names}
    again, once_more = watch(*places, **asked)
    assert again == []
    assert {name: once_more[name] for name in names} == {name: document[name] for name in names}
    assert len((kept / JOURNAL).read_bytes().splitlines()) == len(plain)
