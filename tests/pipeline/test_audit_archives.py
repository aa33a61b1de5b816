"""Where histories begin and end: files, snapshots, torn tails, damage and holes."""

from dataclasses import replace
from pathlib import Path

import pytest
from pipeline_steps import Audit, Server, Snapshot, flip

from reassure_lab.archives.planted import NEW, OLD, plant_all
from reassure_lab.archives.sample import SampleCluster, write_sample
from reassure_pipeline.archives.archive import find_archives
from reassure_spec.znodes import BROKER_IDS
from reassure_zookeeper.ensemble import Hole
from reassure_zookeeper.errors import DamagedLog, DamagedSnapshot, LogsMissing
from reassure_zookeeper.log_survey import list_records, survey_log
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.txnlog import FILE_HEADER, log_files


def _two_brokers_in_flight() -> SampleCluster:
    """Return a cluster a minute old, with one topic complete and one in flight."""
    cluster = SampleCluster()
    cluster.time_ms += 60_000
    cluster.create_topic("calm", {0: OLD})
    cluster.create_topic("moving", {0: OLD})
    cluster.begin_reassign("moving", {0: NEW})
    return cluster


def _cut(cluster: SampleCluster, at: int) -> tuple[list[Transaction], list[Transaction]]:
    """Split a history after the zxid `at`."""
    return cluster.transactions[:at], cluster.transactions[at:]


def test_log_files_of_one_folder_are_one_archive(server: Server, audit: Audit) -> None:
    """Naming every file of a folder is naming the folder, in whatever order they come."""
    history = write_sample(topics=1, partitions=2)
    folder = server("one", history[:50], history[50:])
    files = sorted((folder / "version-2").iterdir(), reverse=True)
    whole, one_by_one = audit(folder), audit(*files)
    assert len(one_by_one.archives) == 1
    assert one_by_one.archives[0].transactions == whole.archives[0].transactions == len(history)
    assert one_by_one.archives[0].partial is False


def test_same_folder_named_twice_is_judged_once(server: Server, audit: Audit) -> None:
    """A data directory and its version-2 are the same archive."""
    folder = server("one", write_sample(topics=1, partitions=2))
    assert len(find_archives([folder, folder])) == 1


def test_folder_without_logs_is_refused(tmp_path: Path, audit: Audit) -> None:
    """A directory without logs is an error that names it and says what to name instead."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(LogsMissing, match=r"empty has no transaction; name a ZooKeeper data"):
        audit(tmp_path / "empty")


def test_torn_tail_is_reported_not_judged(server: Server, audit: Audit) -> None:
    """A last record cut short is told with its file and place, and costs only itself."""
    history = write_sample(topics=1, partitions=2)
    folder = server("one", history)
    log = next((folder / "version-2").iterdir())
    size = log.stat().st_size
    log.write_bytes(log.read_bytes()[:-5])
    report = audit(folder)
    assert report.verdict == "holds"
    assert report.archives[0].transactions == len(history) - 1
    tail = report.as_json_dict()["archives"][0]["torn_tail"]
    assert tail["file"] == str(log)
    assert 0 < tail["offset"] < size
    assert report.as_json_dict()["counts"]["damaged"] == 0


def test_damage_is_contained(server: Server, audit: Audit) -> None:
    """What stands before a flipped byte is judged, what stands behind it is, and is not certain."""
    cluster = _two_brokers_in_flight()
    before = cluster.write_state("calm", 0, leader=2)
    lost = cluster.join("moving", 0, NEW)
    cluster.complete("moving", 0, NEW)
    behind = cluster.write_state("calm", 0, leader=3)
    folder = server("one", cluster.transactions)
    (log,) = log_files(folder)
    (damaged,) = (r for s in survey_log(log).ranges for r in list_records(s) if r.zxid == lost)
    flip(log, damaged.stop - 2)
    report = audit(folder)
    body = report.as_json_dict()
    assert [v.zxid for v in report.violations] == [before]
    assert behind in {v.zxid for v in report.archives[0].unsettled}
    assert (body["verdict"], body["counts"]["damaged"]) == ("violated", 1)
    assert body["archives"][0]["damages"] == [
        {
            "file": str(log),
            "offset": damaged.start,
            "stop": damaged.stop,
            "reason": "a record does not match its checksum",
            "after": lost - 1,
            "before": lost + 1,
        }
    ]
    assert body["archives"][0]["holes"] == [
        {"after": lost - 1, "before": lost + 1, "until": -1, "snapshot": None}
    ]
    assert report.archives[0].transactions == len(cluster.transactions) - 1


def test_damage_alone_makes_the_verdict_unknown(server: Server, audit: Audit) -> None:
    """Nothing is found wrong with what can be read, and the verdict is unknown all the same."""
    folder = server("one", write_sample(topics=1, partitions=2))
    (log,) = log_files(folder)
    assert audit(folder).verdict == "holds"
    flip(log)
    report = audit(folder)
    assert (report.verdict, report.violations) == ("unknown", ())
    (need,) = report.needs
    assert "and violations after them are uncertain: add the log file that holds" in need
    assert "holds them, whole, or" in need


def test_log_of_which_nothing_can_be_read_is_an_error(server: Server, audit: Audit) -> None:
    """Where all there is cannot be read there is nothing to judge; beside others it is damage."""
    history = write_sample(topics=1, partitions=2)
    folder = server("one", history)
    (log,) = log_files(folder)
    log.write_bytes(b"not a log" * 1000)
    with pytest.raises(DamagedLog, match="begins with b'not '") as caught:
        audit(folder)
    assert (caught.value.file, caught.value.offset) == (log, 0)
    folder = server("two", history[:50], history[50:])
    (_, log) = log_files(folder)
    log.write_bytes(b"not a log" * 1000)
    report = audit(folder)
    (damage,) = report.archives[0].archive.damages
    assert (damage.file, damage.offset, damage.stop, damage.after) == (log, 0, None, 50)
    assert report.verdict == "unknown"


def test_zeros_before_all_records_are_damage(server: Server, audit: Audit) -> None:
    """What stands behind zeros is read, though the file seems to be empty at first."""
    history = write_sample(topics=1, partitions=2)
    (log,) = log_files(server("one", history))
    content = log.read_bytes()
    log.write_bytes(content[: FILE_HEADER.size] + bytes(64) + content[FILE_HEADER.size :])
    report = audit(log.parent)
    assert report.archives[0].transactions == len(history)
    assert len(report.archives[0].archive.damages) == 1


def test_torn_record_amid_the_files_is_damage(server: Server, audit: Audit) -> None:
    """A record cut short that another file does not make good for is damage, and a hole."""
    history = write_sample(topics=1, partitions=2)
    folder = server("one", history[:50], history[50:])
    first = folder / "version-2" / "log.1"
    first.write_bytes(first.read_bytes()[:-5])
    (archive,) = audit(folder).archives
    assert archive.holes == (Hole(49, 51),)
    (damage,) = archive.archive.damages
    assert "where zxid 0x32 should be, and the next file goes on with 0x33" in damage.reason
    assert archive.transactions == len(history) - 1


def test_files_that_overlap_are_read_once(server: Server, audit: Audit) -> None:
    """What a file has that an earlier one has too is judged once; nothing is missing."""
    history = write_sample(topics=1, partitions=2)
    folder = server("one", history[:50], history[40:])
    (folder / "version-2" / "log.29").rename(folder / "version-2" / "log.99")
    report = audit(folder)
    assert report.verdict == "holds"
    assert report.archives[0].transactions == len(history)


def test_files_that_contradict_each_other_are_damage(server: Server, audit: Audit) -> None:
    """Where two files of a server have other content under a zxid, what follows is uncertain."""
    history = write_sample(topics=1, partitions=2)
    other = [replace(each, time_ms=each.time_ms + 1) for each in history[40:]]
    folder = server("one", history[:50], other)
    report = audit(folder)
    assert report.verdict == "unknown"
    assert Hole(40, 41) in report.archives[0].holes
    assert "zxid 0x29 comes after 0x32" in report.archives[0].archive.damages[0].reason


def test_history_from_a_snapshot_is_judged_as_if_whole(
    server: Server, audit: Audit, snapshot: Snapshot
) -> None:
    """What comes after the snapshot is judged with the same result as in the whole history."""
    cluster = SampleCluster()
    cluster.create_topic("before", {0: OLD})
    cut = cluster.zxid
    planted = plant_all(cluster)
    before, after = _cut(cluster, cut)
    folder = server("late", after)
    snapshot(folder, before, cut)
    whole, late = audit(server("whole", cluster.transactions)), audit(folder)
    assert late.archives[0].archive.begins == "snapshot"
    assert late.archives[0].partial is False
    assert late.violations == whole.violations
    assert len(late.violations) == len(planted)
    assert late.archives[0].transactions == len(after)


def test_fuzzy_snapshot_accuses_nobody(server: Server, audit: Audit, snapshot: Snapshot) -> None:
    """A snapshot that shows more than its name says is brought up to date, not judged against."""
    cluster = _two_brokers_in_flight()
    named = cluster.zxid - 4
    shown = list(cluster.transactions)
    cluster.time_ms += 60_000
    cluster.join("moving", 0, NEW)
    cluster.complete("moving", 0, NEW)
    cluster.reassign("calm", {0: NEW})
    zxid = cluster.write_state("calm", 0, leader=NEW[1])
    folder = server("fuzzy", cluster.transactions[named:])
    snapshot(folder, shown, named)
    report = audit(folder)
    assert report.archives[0].transactions == cluster.zxid - len(shown)
    assert [v.zxid for v in report.violations] == [zxid]
    assert report.archives[0].unsettled == ()


def test_change_that_a_fuzzy_snapshot_missed_is_replayed(
    server: Server, audit: Audit, snapshot: Snapshot
) -> None:
    """A snapshot that shows a later change and not an earlier one is completed from the log."""
    cluster = _two_brokers_in_flight()
    named = cluster.zxid
    cluster.time_ms += 60_000
    missed = cluster.join("moving", 0, (4,))
    cluster.join("moving", 0, (5, 6))
    cluster.submit("calm", {0: NEW})
    late = cluster.zxid
    cluster.record("calm", 0, NEW)
    cluster.complete("moving", 0, NEW)
    shown = [t for t in cluster.transactions[:late] if not missed <= t.zxid < late]
    folder = server("fuzzy", cluster.transactions[named:])
    snapshot(folder, shown, named)
    report = audit(folder)
    assert report.archives[0].transactions == cluster.zxid - late
    assert report.verdict == "holds"


def test_news_from_just_before_a_snapshot_makes_findings_unsettled(
    server: Server, audit: Audit, snapshot: Snapshot
) -> None:
    """A controller may act for a while on what happened before the snapshot; later it may not."""
    cluster = _two_brokers_in_flight()
    cluster.kill(1)
    cluster.register(1)
    cut = cluster.zxid
    unsettled = cluster.write_state("calm", 0, leader=2)
    cluster.time_ms += 60_000
    settled = cluster.write_state("calm", 0, leader=3)
    before, after = _cut(cluster, cut)
    folder = server("late", after)
    snapshot(folder, before, cut)
    report = audit(folder)
    assert [v.zxid for v in report.archives[0].unsettled] == [unsettled]
    assert [v.zxid for v in report.violations] == [settled]
    assert [v.zxid for v in audit(server("whole", cluster.transactions)).violations] == [settled]


def test_oldest_snapshot_that_the_logs_follow_is_taken(
    server: Server, audit: Audit, snapshot: Snapshot
) -> None:
    """Of several snapshots the oldest without a hole behind it leaves most to judge."""
    cluster = _two_brokers_in_flight()
    end = cluster.zxid
    folder = server("one", cluster.transactions[end - 10 :])
    for zxid in (end - 20, end - 10, end - 5):
        snapshot(folder, cluster.transactions[:zxid], zxid)
    report = audit(folder)
    taken = report.archives[0].archive.snapshot
    assert taken is not None
    assert taken.name == f"snapshot.{end - 10:x}"
    assert report.archives[0].transactions == 10


def test_reassignment_under_way_at_a_snapshot_is_unsettled(
    server: Server, audit: Audit, snapshot: Snapshot
) -> None:
    """Until a reassignment that a snapshot shows has ended, a finding on it is not certain."""
    cluster = _two_brokers_in_flight()
    cut = cluster.zxid
    cluster.time_ms += 60_000
    unsettled = cluster.write_assigned("moving", 0, NEW)
    settled = cluster.write_state("calm", 0, leader=2)
    before, after = _cut(cluster, cut)
    folder = server("late", after)
    snapshot(folder, before, cut)
    report = audit(folder)
    assert [v.zxid for v in report.archives[0].unsettled] == [unsettled]
    assert [v.zxid for v in report.violations] == [settled]


def test_broken_snapshot_is_an_error(server: Server, audit: Audit, snapshot: Snapshot) -> None:
    """A snapshot that does not match its checksum is told, not passed over."""
    cluster = _two_brokers_in_flight()
    before, after = _cut(cluster, cluster.zxid - 5)
    folder = server("late", after)
    path = snapshot(folder, before, cluster.zxid - 5)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(DamagedSnapshot):
        audit(folder)


def test_history_from_the_middle_is_partial_and_unsettled(server: Server, audit: Audit) -> None:
    """Without a beginning the same finding makes a clause unknown, not violated."""
    cluster = _two_brokers_in_flight()
    cut = cluster.zxid
    cluster.change_target("moving", 0, (4, 7, 8), dropped=NEW)
    cluster.remove_record("moving", 0)
    body = audit(server("late", _cut(cluster, cut)[1])).as_json_dict()
    assert body["verdict"] == "unknown"
    assert body["violations"] == []
    assert body["unsettled"] != []
    assert body["archives"][0]["begins"] == "middle"
    assert body["archives"][0]["partial"] is True
    found = {row["clause"] for row in body["unsettled"]}
    verdicts = {row["id"]: row["verdict"] for row in body["clauses"]}
    assert {verdicts[clause] for clause in found} == {"unknown"}


def test_cluster_born_in_the_middle_is_judged_fully(server: Server, audit: Audit) -> None:
    """A cluster whose birth a log shows is fully known, whatever came before in the log."""
    cluster = SampleCluster(chroot="/young", first_zxid=5000)
    cluster.time_ms += 60_000
    cluster.create_topic("events", {0: OLD})
    zxid = cluster.write_state("events", 0, leader=2)
    report = audit(server("late", cluster.transactions))
    assert [v.zxid for v in report.violations] == [zxid]
    assert report.archives[0].archive.begins == "middle"
    assert report.archives[0].partial is False


def test_cluster_born_anew_settles_nothing_of_before(server: Server, audit: Audit) -> None:
    """What a log from the middle shows before a cluster is made anew stays unknown."""
    cluster = SampleCluster()
    cluster.create_topic("events", {0: OLD})
    cut = cluster.zxid
    cluster.write_assigned("events", 0, OLD)
    removed = cluster.control(cluster.delete("/brokers/topics/events"))
    cluster.append(cluster.delete(BROKER_IDS))
    cluster.append(cluster.create(BROKER_IDS))
    report = audit(server("late", _cut(cluster, cut)[1]))
    assert report.violations == ()
    assert removed in {v.zxid for v in report.archives[0].unsettled}
    assert report.archives[0].partial is True


def test_findings_after_a_hole_are_unsettled(server: Server, audit: Audit) -> None:
    """A file that is missing amid the others is told, and what follows it is not certain."""
    cluster = _two_brokers_in_flight()
    settled = cluster.write_state("calm", 0, leader=2)
    gap = cluster.zxid
    cluster.join("moving", 0, NEW)
    cluster.complete("moving", 0, NEW)
    resumed = cluster.zxid
    cluster.reassign("moving", {0: OLD})
    folder = server("one", cluster.transactions[:gap], cluster.transactions[resumed:])
    report = audit(folder)
    assert report.archives[0].holes == (Hole(gap, resumed + 1),)
    assert report.archives[0].partial is True
    assert [v.zxid for v in report.violations] == [settled]
    assert report.archives[0].unsettled != ()
