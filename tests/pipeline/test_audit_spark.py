"""Archives judged apart: shares, tasks carried elsewhere, and Spark, all come to one report."""

import json
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import adler32

import pytest
from pipeline_steps import Server, Snapshot, flip, plant, read_tables, show

from reassure_lab.archives.planted import plant_all
from reassure_lab.archives.sample import SampleCluster, write_sample
from reassure_lab.protocols.kip_236.synthetic import Size, write_archive
from reassure_pipeline.archives.archive import APART, RECOGNISED, Since
from reassure_pipeline.audit.archive_tasks import Chosen
from reassure_pipeline.audit.audit_report import AuditReport
from reassure_pipeline.audit.jobs import Progress
from reassure_pipeline.audit.listed_findings import LISTED_FINDINGS
from reassure_pipeline.audit.run_audit import audit_named, audit_paths, judge_logs
from reassure_pipeline.spark.gateway import SparkUnavailable, open_spark
from reassure_pipeline.tables.fleet_tables import FleetTables
from reassure_spec import znodes
from reassure_spec.readings import get_profile
from reassure_zookeeper.errors import JavaError
from reassure_zookeeper.transactions import Create, SetData, Transaction
from reassure_zookeeper.txnlog import FILE_HEADER, FRAME

PROFILE = "kip-236"
READINGS = get_profile(PROFILE)


class Carried:
    """Does each task as if elsewhere: nothing but bytes goes there and comes back."""

    progress: Progress | None = None
    is_elsewhere = True

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.tasks = 0

    def run(self, work: Any, tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Do the tasks, the last one first."""
        self.tasks += len(tasks)
        for number in reversed(range(len(tasks))):
            result = work(pickle.loads(pickle.dumps(tasks[number])), None)
            yield number, pickle.loads(pickle.dumps(result))


def _check_same(
    folders: Sequence[Path], shares: int, profile: str = PROFILE, **options: Any
) -> AuditReport:
    """Hold tasks carried elsewhere, and several processes, against one; return what that reports.

    A single archive is cut into so many shares.
    """
    local = audit_named(folders, profile, get_profile(profile), facts=True, **options)
    chosen = (Chosen(profile, get_profile(profile)),)
    fleet = judge_logs(folders, Carried(shares), profile, chosen=chosen, facts=True, **options)
    jobs = audit_named(folders, profile, get_profile(profile), facts=True, jobs=2, **options)
    for other in (fleet.get_report(), jobs):
        assert show(other) == show(local)
    return local


@pytest.mark.parametrize("profile", ["kip-236", "kip-236-legacy", "kip-46", "kafka-zk"])
@pytest.mark.parametrize(
    ("workers", "members"),
    [(1, APART), pytest.param(9, APART, marks=pytest.mark.slow), (9, RECOGNISED)],
)
def test_archives_judged_apart_come_to_the_report_of_one_process(
    tmp_path: Path, server: Server, snapshot: Snapshot, profile: str, workers: int, members: str
) -> None:
    """Cut or whole, in whatever order they are done, the reports are equal."""
    write_archive(tmp_path / "made", Size(3_000, 40, 10, 1), per_file=700)
    cluster = SampleCluster(chroot="/kafka")
    for path in ("/hbase", "/hbase/rs", "/kafka/admin/delete_topics", "/consumers"):
        cluster.append(Create(path))
    cut = cluster.zxid
    plant_all(cluster)
    cluster.kill(3)
    cluster.append(Create("/locks"))
    history = cluster.transactions
    folders = [
        tmp_path / "made",
        server("whole", history[:200], history[200:]),
        server("late", history[cut:]),
        server("middle", history[300:]),
    ]
    snapshot(folders[2], history[:cut], cut)
    local = _check_same(folders, workers, profile, at_rest=True, members=members)
    assert len(local.violations) > 20
    assert len(local.archives) == (4 if members == APART else 2)


@pytest.mark.parametrize("numbers_grow", [True, False])
def test_requests_are_judged_by_whom_they_concern(
    server: Server, draw_requests: Callable[..., list[Transaction]], numbers_grow: bool
) -> None:
    """However requests are written, changed, cut off or lost, all whom they name learn of it."""
    found = 0
    for seed in range(3):
        history = draw_requests(seed, numbers_grow=numbers_grow)
        kinds = {"whole": history, "late": history[60:], "holed": history[:90] + history[150:]}
        for name, kind in kinds.items():
            folder = server(f"{seed}-{name}", kind)
            found += len(_check_same([folder], 5, at_rest=True).violations)
    assert found > 5


def test_requests_before_any_sign_of_a_cluster_are_counted(server: Server) -> None:
    """Whoever counts what was not judged is told of what looks like requests and is none."""
    data = [znodes.encode_request(znodes.RequestZnode({(topic, 0): (1,)})) for topic in "abcdef"]
    paths = [f"/none{znodes.request_path(sequence)}" for sequence in range(len(data))]
    cluster = SampleCluster()
    for path, content in zip(paths, data, strict=True):
        cluster.append(Create(path, content))
    _check_same([server("one", cluster.transactions)], 3)


def test_how_long_requests_have_waited_is_known_at_rest(server: Server) -> None:
    """That something was taken from the queue later tells of a request that it was seen."""
    cluster = SampleCluster()
    for topic in "abcdef":
        cluster.create_topic(topic, {0: (1, 2)})
    for topic in "abcdef":
        cluster.submit(topic, {0: (1, 3)})
    for sequence in (1, 3, 5):
        cluster.remove_request(sequence)
    folder = server("one", cluster.transactions)
    for shares in (2, 5):
        _check_same([folder], shares, at_rest=True)


def _garble(content: bytearray) -> None:
    """Give a write amid a log a length of data that it does not have, with the right checksum."""
    at, records = FILE_HEADER.size, []
    while at < len(content):
        _, length = FRAME.unpack_from(content, at)
        records.append((at, at + FRAME.size + length))
        at += FRAME.size + length + 1
    at, stop = records[len(records) // 2]
    data = content.find(b'{"', at, stop)
    assert data > 0
    content[data - 4 : data] = (1 << 20).to_bytes(4, "big")
    content[at : at + 8] = adler32(content[at + FRAME.size : stop]).to_bytes(8, "big")


@pytest.mark.parametrize("fault", ["flipped", "torn", "backwards", "nonsense"])
def test_damage_is_contained_as_by_one_process(server: Server, fault: str) -> None:
    """What one share cannot read all of them judge around, though others pass over it."""
    history = write_sample(topics=1, partitions=5)
    folder = server(
        "one", history[:50], history[50:80], history[60 if fault == "backwards" else 80 :]
    )
    log = folder / "version-2" / "log.33"
    content = bytearray(log.read_bytes())
    if fault == "flipped":
        content[len(content) // 2] ^= 0xFF
    if fault == "nonsense":
        _garble(content)
    log.write_bytes(content[:-5] if fault == "torn" else content)
    if fault == "backwards":
        (folder / "version-2" / "log.3d").rename(folder / "version-2" / "log.99")
    body = _check_same([folder], 3, at_rest=True).as_json_dict()
    assert body["counts"]["damaged"] == (0 if fault == "backwards" else 1)


def test_damage_in_one_archive_costs_the_others_nothing(server: Server) -> None:
    """Only the shares of the archive that is damaged are judged twice."""
    history = write_sample(topics=1, partitions=5)
    sound, damaged = server("sound", history), server("damaged", plant())
    flip(next((damaged / "version-2").iterdir()))
    place = Carried(4)
    fleet = judge_logs([sound, damaged], place, PROFILE, chosen=(Chosen(PROFILE, READINGS),))
    report = fleet.get_report()
    assert [len(each.archive.damages) for each in report.archives] == [0, 1]
    assert place.tasks > 3
    assert show(report) == show(audit_named([sound, damaged], PROFILE, READINGS))


@pytest.mark.parametrize("has_snapshot", [True, False])
@pytest.mark.parametrize("zxid", [30, 320])
def test_later_start_is_judged_as_locally(
    server: Server, snapshot: Snapshot, zxid: int, has_snapshot: bool
) -> None:
    """What stands there by then is the same, with a hole before it, amid and behind a snapshot."""
    history = plant()
    folder = server("one", history[:150], history[155:300], history[300:])
    snapshot(folder, history[:200], 200 if has_snapshot else 1)
    folders, since = [folder, server("two", history[20:])], Since(zxid=zxid)
    local = _check_same(folders, 3, at_rest=True, members=APART, since=since)
    assert {a.archive.begins for a in local.archives} == {"snapshot", "middle"}


@pytest.mark.parametrize("profile", ["kip-236", "kip-236-legacy", "kafka-zk"])
@pytest.mark.parametrize("damaged", [True, False])
def test_chapters_are_judged_as_locally(
    server: Server, snapshot: Snapshot, profile: str, damaged: bool
) -> None:
    """Behind holes, known before or met, judging begins anew from the same snapshots."""
    history = plant()
    cuts = [0, 60, 130, 200, 300, len(history)]
    files = [history[one + 7 * (one > 0) : two] for one, two in pairwise(cuts)]
    folder = server("holed", *files)
    for zxid in (40, 90, 131, 206, 290, 400, 520):
        snapshot(folder, history[: zxid + 3], zxid)
    if damaged:
        log = folder / "version-2" / "log.8a"
        flip(log, log.stat().st_size // 3)
    local = _check_same([folder], 3, profile, at_rest=True)
    assert len(local.archives[0].beginnings) == 4


def test_java_that_spark_cannot_use_is_a_clear_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A JAVA_HOME without Java is told before anything is started."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaError, match="point JAVA_HOME at a Java 17"), open_spark("local[1]"):
        pass


def test_java_that_does_not_start_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Java that ends at once is told with its own words."""
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", "nonsense")
    with pytest.raises(SparkUnavailable, match="-Xmxnonsense"), open_spark("local[1]"):
        pass


@pytest.mark.spark
def test_spark_answers_what_one_process_does(
    server: Server, snapshot: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several archives, one that cannot be judged: the reports are equal bytes, the rows equal."""
    cluster = SampleCluster(chroot="/a")
    for path in ("/hbase", "/hbase/rs", "/a/admin/delete_topics", "/consumers"):
        cluster.append(Create(path))
    cut = cluster.zxid
    planted = plant_all(cluster)
    often = SampleCluster()
    often.create_topic("orders", {0: (1, 2)})
    for _ in range(LISTED_FINDINGS + 5):
        often.write_state("orders", 0, fenced=False)
    state = znodes.state_path("orders", 0)
    often.append(SetData(state, b'{"leader":"nobody","isr":7}', 9))
    often.append(Create(state.replace("/0/", "/99999999999/"), b"\xff"))
    folders = [
        server("whole", cluster.transactions[:200], cluster.transactions[200:]),
        server("late", cluster.transactions[cut:]),
        server("middle", cluster.transactions[300:]),
        server("clean", write_sample(topics=2)),
        server("often", often.transactions),
        server("holed", cluster.transactions[:150], cluster.transactions[160:]),
    ]
    snapshot(folders[5], cluster.transactions[:300], 300)
    snapshot(folders[1], cluster.transactions[:cut], cut)
    torn = next((folders[3] / "version-2").iterdir())
    torn.write_bytes(torn.read_bytes()[:-5])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad").mkdir()
    before = sorted(tmp_path.iterdir()), dict(os.environ)
    options: dict[str, Any] = {"at_rest": True, "facts": True}
    paths = [*folders, Path("bad")]
    rows = []
    run = datetime(2026, 1, 31, tzinfo=UTC)
    for name, master in (("one", None), ("spark", "local[2]")):
        tables = FleetTables(tmp_path / f"tables-{name}", "1", options, run)
        fleet = audit_paths(paths, PROFILE, {}, master, tables=tables, **options)
        assert fleet.report is not None
        told = show(fleet.report), [each.as_dict() for each in fleet.not_judged]
        rows.append((told, read_tables(tmp_path / f"tables-{name}")))
    assert rows[0] == rows[1]
    ((said, unfit), _) = rows[0]
    document = json.loads(said)
    assert [each["error"] for each in unfit] == ["LogsMissing"]
    assert document["not_listed"]["violations"]["controller.write.epoch-checked"] >= 5
    assert sorted(set(tmp_path.iterdir()) - set(before[0])) == [
        tmp_path / "tables-one",
        tmp_path / "tables-spark",
    ]
    assert dict(os.environ) == before[1]
    found = {(v["clause"], v["topic"], v["partition"], v["zxid"]) for v in document["violations"]}
    assert found.issuperset(planted)


@pytest.mark.slow
@pytest.mark.spark
def test_master_that_is_none_is_a_clear_error() -> None:
    """What Spark cannot start with is told in its words."""
    with pytest.raises(SparkUnavailable, match="Master must"), open_spark("nonsense"):
        pass


def test_file_that_vanishes_is_told_of_its_archive(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever befalls one archive amid the work, the others are judged, and it says what."""
    history = write_sample(topics=1, partitions=5)
    folder, other = server("one", history[:50], history[50:]), server("other", plant())

    def vanish(archive: Any) -> None:
        if archive.name == str(folder):
            archive.files[1].unlink()

    monkeypatch.setattr("reassure_pipeline.audit.archive_audit.load_base", vanish)
    fleet = judge_logs([folder, other], Carried(1), PROFILE, chosen=(Chosen(PROFILE, READINGS),))
    ((path, error),) = fleet.not_judged
    assert isinstance(error, FileNotFoundError)
    assert (path, error.filename) == (folder, str(folder / "version-2" / "log.33"))
    assert fleet.report is not None
    assert [each.archive.name for each in fleet.report.archives] == [str(other)]
