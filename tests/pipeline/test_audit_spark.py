"""The audit on Spark: its stages by themselves, and the whole in one session."""

import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reassure_judge.protocols import make_rules
from reassure_judge.verdicts import Violation
from reassure_pipeline.archive import Archive, find_archives
from reassure_pipeline.audit import audit_local, audit_spark
from reassure_pipeline.gateway import (
    SparkUnavailable,
    WorkerFailed,
    find_cause,
    hand_on,
    open_spark,
)
from reassure_pipeline.passes import Judged
from reassure_pipeline.planted import plant_all
from reassure_pipeline.sample import SampleCluster, write_sample
from reassure_pipeline.spark import (
    FileResult,
    FileTask,
    OrderedKey,
    collect_facts,
    decode_file,
    hash_partition,
    judge_partitions,
    route_archive,
)
from reassure_spec.readings import get_profile
from reassure_zookeeper.errors import DamagedLog, JavaError
from reassure_zookeeper.transactions import Create, Transaction

PROFILE = "kip-236"
READINGS = get_profile(PROFILE)
RULES = make_rules(PROFILE, READINGS)
Server = Callable[..., Path]
Snapshot = Callable[[Path, list[Transaction], int], Path]


def _routed(transactions: list[Transaction]) -> list[tuple[OrderedKey, object]]:
    rows = [((0, transaction.zxid), transaction) for transaction in transactions]
    return list(route_archive(0, "beginning", None, rows, rules=RULES, keep_keys=True))


def _judge(rows: list[tuple[OrderedKey, object]]) -> list[Violation]:
    sums = [row for _, row in judge_partitions(RULES, rows) if isinstance(row, Judged)]
    return sorted(found for judged in sums for found in judged.tally.violations)


def test_sorted_rows_of_a_correct_history_are_clean() -> None:
    """Rows sorted by key give the verdict of the history, however they were spread before."""
    rows = _routed(write_sample(topics=1, partitions=5))
    by_hash = sorted(rows, key=lambda row: (hash_partition(row[0]) % 2, row[0]))
    assert _judge(sorted(rows, key=lambda row: row[0])) == []
    assert _judge(by_hash) == []


def test_rows_out_of_order_inside_a_partition_are_noticed() -> None:
    """Were the order inside a partition lost, a correct history would look broken."""
    rows = sorted(_routed(write_sample(topics=1, partitions=1)), key=lambda row: row[0])
    rows[4], rows[-4] = rows[-4], rows[4]
    assert _judge(rows) != []


def test_rows_of_one_partition_go_to_one_place() -> None:
    """Where a row goes depends on archive, cluster and partition, and not on its place in time."""
    assert hash_partition((0, "", "events", 1, 7, 0)) == hash_partition((0, "", "events", 1, 9, 3))
    assert hash_partition((0, "", "events", 1, 7, 0)) != hash_partition((0, "", "events", 2, 7, 0))


def test_decoding_keeps_what_matters_and_counts_all(server: Server) -> None:
    """A transaction on foreign paths is counted and not handed on."""
    cluster = SampleCluster(brokers=1)
    foreign = cluster.append(Create("/locks"))
    cluster.create_topic("events", {0: (1,)})
    log = next((server("one", cluster.transactions) / "version-2").iterdir())
    *rows, (_, result) = decode_file(FileTask(0, 0, str(log), after=-1))
    assert foreign not in {key[1] for key, _ in rows}
    unjudged = Counter({"/locks": 1})
    assert result == FileResult(0, 0, 1, cluster.zxid, cluster.zxid, None, None, unjudged)


def test_decoding_hands_damage_on(server: Server) -> None:
    """Damage in a file is a row with its place, after the transactions before it."""
    log = next((server("one", write_sample(topics=1)) / "version-2").iterdir())
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 0xFF
    log.write_bytes(content)
    *rows, (_, result) = decode_file(FileTask(0, 0, str(log), after=-1))
    assert isinstance(result, FileResult)
    assert result.damage is not None
    assert 0 < result.damage[0] < len(content)
    assert rows


@pytest.mark.parametrize("fault", ["flipped", "torn", "backwards"])
def test_damage_is_the_same_error_as_locally(server: Server, fault: str) -> None:
    """Damage found by tasks apart raises what reading in order raises: same file, same offset."""
    history = write_sample(topics=1, partitions=5)
    folder = server(
        "one", history[:50], history[50:80], history[60 if fault == "backwards" else 80 :]
    )
    log = folder / "version-2" / "log.33"
    content = bytearray(log.read_bytes())
    if fault == "flipped":
        content[len(content) // 2] ^= 0xFF
    log.write_bytes(content[:-5] if fault == "torn" else content)
    if fault == "backwards":
        (folder / "version-2" / "log.3d").rename(folder / "version-2" / "log.99")
    (archive,) = find_archives([folder])
    tasks = [FileTask(0, number, str(file), -1) for number, file in enumerate(archive.files)]
    results = [list(decode_file(task))[-1][1] for task in tasks]
    with pytest.raises(DamagedLog) as local:
        audit_local([folder], PROFILE, READINGS)
    with pytest.raises(DamagedLog) as spread:
        collect_facts(reversed([r for r in results if isinstance(r, FileResult)]), [archive])
    assert str(spread.value) == str(local.value)


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
def test_spark_answers_what_the_local_engine_does(
    server: Server, snapshot: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several archives, planted faults, a snapshot and a torn tail: the reports are equal bytes."""
    cluster = SampleCluster(chroot="/a")
    for path in ("/hbase", "/hbase/rs", "/a/admin/delete_topics", "/consumers"):
        cluster.append(Create(path))
    cut = cluster.zxid
    planted = plant_all(cluster)
    folders = [
        server("whole", cluster.transactions[:200], cluster.transactions[200:]),
        server("late", cluster.transactions[cut:]),
        server("middle", cluster.transactions[300:]),
        server("clean", write_sample(topics=2)),
    ]
    snapshot(folders[1], cluster.transactions[:cut], cut)
    torn = next((folders[3] / "version-2").iterdir())
    torn.write_bytes(torn.read_bytes()[:-5])
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir()), dict(os.environ)
    local = audit_local(folders, PROFILE, READINGS, at_rest=True)
    spark = audit_spark(folders, PROFILE, READINGS, "local[2]", at_rest=True)
    assert json.dumps(spark.as_json_dict()) == json.dumps(local.as_json_dict())
    found = {(v.clause, v.topic, v.partition, v.zxid) for v in spark.archives[0].violations}
    assert found.issuperset(planted)
    assert (sorted(tmp_path.iterdir()), dict(os.environ)) == before


class _Unpicklable(Exception):
    """An error that cannot be handed on as it is."""

    def __init__(self) -> None:
        super().__init__("a lock cannot travel")
        self.lock = threading.Lock()


@pytest.mark.parametrize(
    "error",
    [
        ZeroDivisionError("division by zero"),
        FileNotFoundError(2, "No such file or directory", "/archive/log.1"),
        DamagedLog(Path("/archive/log.1"), 7, "a record does not match its checksum"),
    ],
)
def test_error_on_a_worker_comes_back_as_itself(error: Exception) -> None:
    """What is raised on a worker is raised where the audit was asked for, place and all."""

    @hand_on
    def work() -> Iterator[int]:
        yield 1
        raise error

    with pytest.raises(WorkerFailed) as caught:
        list(work())
    java = (
        f"An error occurred.\n: org.apache.spark.SparkException: Job aborted\n{caught.value}\n at"
    )
    found = find_cause(RuntimeError(java))
    assert (type(found), str(found)) == (type(error), str(error))


def test_error_that_cannot_travel_is_told_in_words() -> None:
    """An error that cannot be packed is told by its class and words; so is Spark's own."""

    @hand_on
    def work() -> Iterator[int]:
        raise _Unpicklable
        yield 1

    with pytest.raises(WorkerFailed) as caught:
        list(work())
    found = find_cause(RuntimeError(f"trace\nreassure.WorkerFailed: {caught.value}"))
    assert isinstance(found, WorkerFailed)
    assert str(found) == "_Unpicklable: a lock cannot travel"
    lost = find_cause(RuntimeError("An error.\n: java.lang.OutOfMemoryException: heap\n at x"))
    assert isinstance(lost, SparkUnavailable)
    assert "java.lang.OutOfMemoryException: heap" in str(lost)


@pytest.mark.spark
def test_failure_on_spark_is_the_failure_of_the_local_engine(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that vanishes while it is looked at, and a master that is none, are clear errors."""
    history = write_sample(topics=1, partitions=5)
    folder = server("one", history[:50], history[50:])

    def vanish(archive: Archive) -> None:
        archive.files[1].unlink()

    monkeypatch.setattr("reassure_pipeline.spark.load_base", vanish)
    with pytest.raises(FileNotFoundError) as caught:
        audit_spark([folder], PROFILE, READINGS, "local[1]")
    assert caught.value.filename == str(folder / "version-2" / "log.33")
    with pytest.raises(SparkUnavailable, match="Master must"), open_spark("nonsense"):
        pass
