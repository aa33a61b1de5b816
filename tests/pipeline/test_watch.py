"""Watching logs that grow: each violation is told, once, as an audit of the same logs finds it."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pipeline_steps import Told, flip, plant, synthesise, watch

from reassure_conformance.answers.watching import WatchRequest, watch_document
from reassure_judge.protocols import make_rules
from reassure_lab.archives.sample import SampleCluster
from reassure_pipeline.audit.passes import Options
from reassure_pipeline.audit.run_audit import audit_named
from reassure_pipeline.checkpoints.kept_files import KeptElsewhere, own_directory
from reassure_pipeline.watch.alerts import DAMAGE, HOLE, UNSETTLED, VIOLATION, Alert
from reassure_pipeline.watch.follower import TakenBack
from reassure_pipeline.watch.loop import ArchiveWatch, Ending, LogWatch
from reassure_pipeline.watch.same_history import SameHistory
from reassure_pipeline.watch.watch_checkpoint import (
    JOURNAL,
    BadCheckpoint,
    CheckpointRefused,
    Journal,
)
from reassure_spec.readings import get_profile
from reassure_zookeeper.errors import LogsMissing
from reassure_zookeeper.txnlog import log_files
from reassure_zookeeper.txnlog_writer import GrowingLog, frame

PROFILE = "kip-236"
LIMIT_S = 30.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return where a server keeps its logs."""
    path = tmp_path / "data" / "version-2"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def follow(folder: Path) -> Callable[[], list[Alert]]:
    """Return what judges what was added to the folder, and answers what there is to tell."""
    rules = make_rules(PROFILE, get_profile(PROFILE))
    archive = ArchiveWatch(folder.parent, rules, Options())

    def look() -> list[Alert]:
        return [alert for told in archive.judge() for alert in told]

    look.archive = archive  # type: ignore[attr-defined]
    return look


def list_zxids(alerts: list[Alert], kind: str = VIOLATION) -> list[int]:
    """Return where the alerts of one kind are."""
    return [alert.body["zxid"] for alert in alerts if alert.kind == kind]


@contextmanager
def watching(path: Path, **asked: Any) -> Iterator[Told]:
    """Watch a path meanwhile, and tell who is told."""
    told, stop = Told(), threading.Event()
    ending = Ending(stop, time.monotonic() + LIMIT_S)
    given = WatchRequest((path,), ending, PROFILE, **asked), told.outlet
    thread = threading.Thread(target=watch_document, args=given)
    thread.start()
    try:
        yield told
    finally:
        stop.set()
        thread.join()


def await_broken(told: Told, number: int) -> None:
    """Wait until so many violations were told."""
    until = time.monotonic() + LIMIT_S
    while len(told.list_broken()) < number and time.monotonic() < until:
        time.sleep(0.01)
    assert len(told.list_broken()) == number


# What is told ---------------------------------------------------------------------------------


def test_planted_faults_are_told_while_the_log_grows(folder: Path) -> None:
    """Whoever is told knows of each planted fault before the server writes the next one."""
    history, planted = synthesise(1_500, 20, 8, 5)
    log, written = GrowingLog(folder), 0
    with watching(folder.parent) as told:
        for number, fault in enumerate(planted):
            end = next(n for n, each in enumerate(history) if each.zxid == fault.zxid) + 1
            log.append(*history[written:end])
            written = end
            await_broken(told, number + 1)
    assert told.list_broken() == sorted(tuple(fault) for fault in planted)


def test_facts_are_those_of_an_audit(folder: Path, tmp_path: Path) -> None:
    """However often a watch ended and went on; and nobody has facts who did not ask for them."""
    history, _ = synthesise(1_500, 20, 8, 5)
    log, third = GrowingLog(folder), len(history) // 3
    for start in range(0, len(history), third):
        log.append(*history[start : start + third])
        log.rotate()
        options = Options(facts=True)
        _, document = watch(folder.parent, options=options, checkpoint=tmp_path / "kept")
    report = audit_named([folder.parent], PROFILE, get_profile(PROFILE), facts=True)
    facts = document["facts"]
    assert facts == report.as_json_dict()["facts"]
    assert facts["reassignments"]["under_way"] > 0
    assert facts["at_end"]["partitions"]
    assert sum(sum(each.values()) for each in facts["series"]["violations"].values()) == 8
    assert "facts" not in watch(folder.parent)[1]


@pytest.mark.parametrize("profile", ["kip-236", "kip-236-legacy", "kip-46", "kafka-42"])
@pytest.mark.parametrize("whole", [True, False], ids=["from the beginning", "amid"])
@pytest.mark.parametrize("holed", [True, False], ids=["holed", "gapless"])
def test_a_watch_comes_to_what_an_audit_does(
    folder: Path, profile: str, whole: bool, holed: bool, snapshot: Callable[..., Path]
) -> None:
    """Whatever the protocol and wherever the logs begin: same findings, counts and verdict.

    So where files are missing, and snapshots lie behind.
    """
    made = plant("/kafka")
    history = made[0 if whole else 60 :]
    log = GrowingLog(folder)
    for start in range(0, len(history), 100):
        log.append(*history[start : start + 100])
        log.rotate()
    if holed:
        for number in (3, 1):
            log_files(folder)[number].unlink()
        for zxid in (260, 300, 470) if whole else (50, 310, 510):
            snapshot(folder.parent, made[: zxid + 3], zxid)
    report = audit_named([folder.parent], profile, get_profile(profile)).as_json_dict()
    told, document = watch(folder.parent, profile=profile)
    names = {"violations": VIOLATION, "not_followed": "not_followed", "unsettled": UNSETTLED}
    for name, kind in names.items():
        found = [alert.as_dict() for alert in told.alerts if alert.kind == kind]
        key = json.dumps
        listed = [{k: v for k, v in each.items() if k not in HEAD} for each in found]
        there = [{k: v for k, v in each.items() if k != "archive"} for each in report[name]]
        assert sorted(map(key, listed)) == sorted(map(key, there)), name
    assert len(told.alerts) > 5
    assert document["clauses"] == report["clauses"]
    assert document["verdict"] == report["verdict"]
    assert document["counts"]["transactions"] == report["counts"]["transactions"]
    assert document["archives"][0]["holes"] == report["archives"][0]["holes"]
    assert len(document["archives"][0]["holes"]) == (2 if holed else 0)
    assert document["needs"][-1:] == report["needs"][-1:]


def test_certainty_comes_back_once_a_snapshot_is_whole(
    folder: Path,
    follow: Callable[[], list[Alert]],
    snapshot: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A watch is certain again from where it stands when a snapshot is finished, not before."""
    monkeypatch.setattr("reassure_pipeline.watch.follower._AGAIN_S", 0.0)
    monkeypatch.setattr("reassure_pipeline.watch.follower._COST", 0)
    cluster = SampleCluster()
    cluster.create_topic("orders", {0: (1, 2), 1: (2, 3)})
    log = GrowingLog(folder)
    log.append(*cluster.transactions)
    log.rotate()
    cluster.write_state("orders", 0)
    missing = cluster.zxid

    def break_rule() -> tuple[int, list[int], list[int]]:
        cluster.time_ms += 60_000
        at = cluster.zxid
        cluster.join("orders", 1, (2,))
        zxid = cluster.write_state("orders", 0, fenced=False)
        log.append(*cluster.transactions[at:])
        told = follow()
        return zxid, list_zxids(told), list_zxids(told, UNSETTLED)

    follow()
    zxid, settled, unsettled = break_rule()
    assert (settled, zxid in unsettled) == ([], True)
    path = snapshot(folder.parent, cluster.transactions, missing + 1)
    content = path.read_bytes()
    path.write_bytes(content[:-9])
    zxid, settled, unsettled = break_rule()
    assert (settled, zxid in unsettled) == ([], True)
    path.write_bytes(content)
    standing = cluster.zxid
    settled = []
    for _ in range(3):  # news of before the snapshot must be old
        zxid, settled, unsettled = break_rule()
    assert (zxid in settled, unsettled) == (True, [])
    beginnings = follow.archive.watched.passes.beginnings  # type: ignore[attr-defined]
    assert [each.zxid for each in beginnings] == [-1, standing]


@pytest.mark.parametrize(
    ("begun", "end"),
    [(0, 150), (90, 150), (0, 50), (100, 150)],
    ids=["all", "the end", "the beginning", "nothing"],
)
def test_members_of_one_ensemble_are_refused(tmp_path: Path, begun: int, end: int) -> None:
    """Whatever two logs have in common when they begin, before anything is told twice."""
    history, _ = synthesise(1_500, 20, 8, 5)
    ends, logs = [100, end], [GrowingLog(make_folder(tmp_path / name)) for name in ("one", "two")]
    logs[0].append(*history[:100])
    logs[1].append(*history[begun:end])
    rules = make_rules(PROFILE, get_profile(PROFILE))
    paths = tmp_path / "one", tmp_path / "two"
    archives = [ArchiveWatch(path, rules, Options()) for path in paths]
    journal = Journal(tmp_path / "alerts")
    watching = LogWatch(archives, journal, ending=Ending(threading.Event()))

    def follow() -> None:
        while max(ends) < len(history):
            watching._look()
            for number, log in enumerate(logs):
                log.append(*history[ends[number] : ends[number] + 40])
                ends[number] += 40

    with closing(journal), pytest.raises(SameHistory, match="name only one of them") as refused:
        follow()
    assert all(str(path) in str(refused.value) for path in paths)
    # At the first look, or at the second, when one of them reads what the other one began with.
    assert ends == ([100, end] if begun < 100 else [140, 190])
    assert archives[0].extent.last_zxid == history[99].zxid


def test_clusters_beside_each_other_are_watched_apart(tmp_path: Path) -> None:
    """Where the zxids are the same and the transactions are not."""
    archives = [make_folder(tmp_path / name) for name in ("one", "two")]
    for seed, archive in enumerate(archives, 1):
        GrowingLog(archive).append(*synthesise(1_500, 20, 4, seed)[0])
    assert len(watch(*archives)[0].list_broken()) == 8


def make_folder(path: Path) -> Path:
    """Return a new folder."""
    path.mkdir()
    return path


def test_what_was_of_an_earlier_version_is_known_later(folder: Path) -> None:
    """What an audit calls unsettled for what came after was told as a violation before."""
    GrowingLog(folder).append(*plant())
    report = audit_named([folder.parent], "kafka-zk", get_profile("kafka-zk")).as_json_dict()
    told, document = watch(folder.parent, profile="kafka-zk")
    listed = [*report["violations"], *report["unsettled"]]
    assert sorted(alert.body["zxid"] for alert in told.alerts) == sorted(v["zxid"] for v in listed)
    assert document["needs"] == report["needs"]
    assert document["counts"]["violations"] > report["counts"]["violations"]


HEAD = ("kind", "id", "archive", "seen_at")


def test_strict_lets_advice_bind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With it what is not followed is told as a violation, as an audit counts it."""
    monkeypatch.setattr(
        "reassure_pipeline.watch.watched_archive.binds", lambda name: "isr" not in name
    )
    GrowingLog(folder).append(*plant())
    lax, strict = (
        watch(folder.parent, options=Options(strict=strict))[1]["counts"]
        for strict in (False, True)
    )
    assert lax["violations"] > 0 < lax["not_followed"]
    assert strict["violations"] == lax["violations"] + lax["not_followed"]
    assert strict["not_followed"] == 0


# How a log grows ------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [0, 1 << 16])
def test_a_record_half_written_is_not_damage(
    folder: Path, follow: Callable[[], list[Alert]], block: int
) -> None:
    """At the end of the newest file it is looked at again until it is whole, wherever it is cut."""
    history, planted = synthesise(1_500, 20, 1, 5)
    log, (fault,) = GrowingLog(folder, block=block), planted
    at = next(n for n, each in enumerate(history) if each.zxid == fault.zxid)
    log.append(*history[:at])
    assert list_zxids(follow()) == []
    record = frame(history[at])
    for cut in range(0, len(record), 7):
        log.write(record[cut : cut + 7])
        told = follow()
        assert [alert.kind for alert in told] == ([VIOLATION] if cut + 7 >= len(record) else [])
    log.append(*history[at + 1 :])
    assert follow() == []


def test_rotation_loses_nothing(folder: Path, follow: Callable[[], list[Alert]]) -> None:
    """The end of a file is judged before what the next begins with, and then it may go."""
    history, planted = synthesise(1_500, 20, 8, 5)
    log, told = GrowingLog(folder), []
    for start in range(0, len(history), 70):
        log.append(*history[start : start + 70])
        if start % 3 == 0:
            log.rotate()
        if start % 2 == 0:
            told += follow()
            for old in log_files(folder)[:-1]:
                old.unlink()
    told += follow()
    assert list_zxids(told) == [fault.zxid for fault in planted]
    assert {alert.kind for alert in told} == {VIOLATION}


def test_a_torn_record_of_a_killed_server_is_nothing(
    folder: Path, follow: Callable[[], list[Alert]]
) -> None:
    """It never counted where the next file goes on in its place; else transactions are missing."""
    history, _ = synthesise(1_500, 20, 0, 5)
    log = GrowingLog(folder)
    log.append(*history[:200])
    log.write(frame(history[200])[:-9])
    follow()
    log.rotate()
    log.append(*history[200:400])
    assert follow() == []
    log.write(frame(history[400])[:-9])
    log.rotate()
    log.append(*history[402:])
    missing = [alert.kind for alert in follow() if "clause" not in alert.body]
    assert missing == [DAMAGE, HOLE]


def test_a_torn_end_is_not_searched_again_and_again(
    folder: Path, follow: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zeros in advance may be many, so they are read once while nothing is written."""
    monkeypatch.setattr("reassure_pipeline.watch.follower._STILL_S", -1.0)
    history, _ = synthesise(1_500, 20, 0, 5)
    log = GrowingLog(folder)
    log.append(*history[:200])
    log.write(frame(history[200])[:-9])
    follow()
    file = follow.archive.follower._file
    reads = []
    monkeypatch.setattr(file, "_judge_end", lambda *_: reads.append(1))
    follow()
    assert reads == []
    log.write(b"\1")
    follow()
    assert reads == [1]


def test_damage_is_told_and_what_follows_is_judged(
    folder: Path, follow: Callable[[], list[Alert]]
) -> None:
    """What cannot be read is passed over; after the hole only what stands there is certain."""
    history, planted = synthesise(1_500, 20, 8, 5)
    third = len(history) // 3
    log = GrowingLog(folder, block=0)
    for start in (0, third, 2 * third):
        log.append(*history[start : start + third])
        log.rotate()
    second = log_files(folder)[1]
    flip(second)
    told = follow()
    assert [alert.kind for alert in told if "clause" not in alert.body] == [DAMAGE, HOLE]
    hole = next(alert for alert in told if alert.kind == HOLE)
    before = [fault.zxid for fault in planted if fault.zxid <= hole.body["after"]]
    after = {fault.zxid for fault in planted if fault.zxid >= hole.body["before"]}
    assert before
    assert [zxid for zxid in list_zxids(told) if zxid <= hole.body["after"]] == before
    assert after <= set(list_zxids(told, UNSETTLED)) | set(list_zxids(told))
    _, document = watch(folder.parent)
    assert document["counts"]["damaged"] == 1
    assert any("missing" in need for need in document["needs"])


def test_a_history_taken_back_is_not_followed(folder: Path, follow: Any) -> None:
    """A log cut back under its reader, or one that begins anew, is another history."""
    history, _ = synthesise(1_500, 20, 0, 5)
    log = GrowingLog(folder, block=1 << 16)
    log.append(*history[:200])
    follow()
    (path,) = log_files(folder)
    content = path.read_bytes()
    cut = content.rindex(frame(history[190])[:12])
    path.write_bytes(content[:cut] + bytes(len(content) - cut))
    (told,) = follow()
    assert told.kind == DAMAGE
    assert isinstance(follow.archive.lost, TakenBack)
    assert follow() == []


def test_a_directory_may_come_later(tmp_path: Path) -> None:
    """What is not there yet is waited for, and said; so is the sign of a protocol."""
    history, planted = synthesise(1_500, 20, 8, 5)
    data = tmp_path / "later"
    with watching(data, named=False) as told:
        time.sleep(0.1)
        (data / "version-2").mkdir(parents=True)
        time.sleep(0.1)
        GrowingLog(data / "version-2").append(*history)
        await_broken(told, len(planted))
    assert told.list_broken() == sorted(tuple(fault) for fault in planted)
    assert told.said[0].startswith(f"waiting for {data} to appear")
    assert told.said[1].startswith("profile kip-236: ")


def test_nothing_to_catch_up_with_is_an_error(tmp_path: Path) -> None:
    """Whoever asks for all that is there is told that there is nothing."""
    with pytest.raises(LogsMissing, match="does not exist"):
        watch(tmp_path / "absent")


def test_packed_files_are_read_on(folder: Path, follow: Callable[[], list[Alert]]) -> None:
    """A file that was packed after a part of it was read goes on where it was."""
    import gzip

    history, planted = synthesise(1_500, 20, 8, 5)
    log = GrowingLog(folder, block=0)
    log.append(*history[:700])
    told = follow()
    log.append(*history[700:1000])
    log.rotate()
    (path,) = log_files(folder)
    Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    log.append(*history[1000:])
    told += follow()
    assert list_zxids(told) == [fault.zxid for fault in planted]


# What survives --------------------------------------------------------------------------------


def test_a_watch_goes_on_where_it_was(folder: Path, tmp_path: Path) -> None:
    """After an end in order nothing is told again, and the verdict is on the whole."""
    history, planted = synthesise(1_500, 20, 8, 5)
    log, told = GrowingLog(folder), []
    for part in (history[:500], history[500:1100], history[1100:]):
        log.append(*part)
        some, document = watch(folder.parent, checkpoint=tmp_path / "kept")
        assert some.repeated == []
        told += some.list_broken()
        log.rotate()
        for old in log_files(folder):
            old.unlink()
    assert sorted(told) == sorted(tuple(fault) for fault in planted)
    assert document["counts"]["violations"] == len(planted)
    assert document["counts"]["transactions"] == len(history)
    lines = (tmp_path / "kept" / JOURNAL).read_text(encoding="utf-8").splitlines()
    assert sorted(json.loads(line)["zxid"] for line in lines) == [f.zxid for f in planted]


def test_what_was_told_after_the_state_was_kept_is_said_to_be(folder: Path, tmp_path: Path) -> None:
    """A watch that was killed finds it again; the journal has it once."""
    history, planted = synthesise(1_500, 20, 8, 5)
    log, kept = GrowingLog(folder), tmp_path / "kept"
    log.append(*history[:100])
    watch(folder.parent, checkpoint=kept)
    state = (kept / "state").read_bytes()
    log.append(*history[100:])
    watch(folder.parent, checkpoint=kept)
    whole = (kept / JOURNAL).read_bytes()
    lines = whole.splitlines(keepends=True)
    (kept / "state").write_bytes(state)
    (kept / JOURNAL).write_bytes(b"".join(lines[:3]) + lines[3][:20])
    told, _ = watch(folder.parent, checkpoint=kept)
    assert len(told.repeated) == 3
    assert len(told.alerts) == len(planted) - 3
    assert (kept / JOURNAL).read_bytes() == whole


@pytest.fixture
def kept(folder: Path, tmp_path: Path) -> Iterator[Path]:
    """Return the checkpoint of a watch over the folder."""
    GrowingLog(folder).append(*synthesise(1_500, 20, 1, 5)[0])
    watch(folder.parent, checkpoint=tmp_path / "kept")
    return tmp_path / "kept"


def test_alert_that_could_not_be_written_is_told_by_the_next_watch(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was judged and is in no journal is judged again: a watch is not kept where it broke."""
    history, planted = synthesise(1_500, 20, 8, 5)
    GrowingLog(folder).append(*history)
    kept = tmp_path / "kept"

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Journal, "append", fail)
    told = Told()
    ending = Ending(threading.Event(), when_caught_up=True)
    asked = WatchRequest((folder.parent,), ending, PROFILE, checkpoint=kept)
    with pytest.raises(OSError, match="Input/output"):
        watch_document(asked, told.outlet)
    assert told.list_broken(), "it is told first, then the error"
    monkeypatch.undo()
    watch(folder.parent, checkpoint=kept)
    lines = [json.loads(line) for line in (kept / JOURNAL).read_bytes().splitlines()]
    broken = sorted(line["clause"] for line in lines if line["kind"] == VIOLATION)
    assert broken == sorted(fault.clause for fault in planted)


def test_a_checkpoint_of_something_else_is_refused(
    folder: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another profile, reading, option, path or version is named, with what to do about it."""
    for asked, words in (
        ({"profile": "kip-46"}, "profile 'kip-236' instead of 'kip-46'"),
        ({"readings": {"drop.slice": "exclusive"}}, "readings"),
        ({"options": Options(strict=True)}, "strict False instead of True"),
    ):
        with pytest.raises(CheckpointRefused, match=words):
            watch(folder.parent, checkpoint=kept, **asked)
    with pytest.raises(CheckpointRefused, match="paths"):
        watch(folder, checkpoint=kept)
    monkeypatch.setattr("reassure_pipeline.checkpoints.kept_files.digest_code", lambda: "other")
    with pytest.raises(CheckpointRefused, match="another version of reassure"):
        watch(folder.parent, checkpoint=kept)


def test_a_damaged_checkpoint_is_refused(folder: Path, kept: Path) -> None:
    """A state is taken up as it was written or not at all."""
    state = kept / "state"
    content = state.read_bytes()
    state.write_bytes(content[:-3] + b"xyz")
    with pytest.raises(BadCheckpoint, match="damaged"):
        watch(folder.parent, checkpoint=kept)
    state.write_bytes(b"nonsense\n")
    with pytest.raises(BadCheckpoint, match="not a checkpoint"):
        watch(folder.parent, checkpoint=kept)
    state.unlink()
    with pytest.raises(CheckpointRefused, match="no state to resume from"):
        watch(folder.parent, checkpoint=kept)


def test_a_checkpoint_is_of_one_watch_and_its_owner(folder: Path, kept: Path) -> None:
    """Two would tell everything twice, and what is read from it can do anything."""
    with own_directory(kept), pytest.raises(KeptElsewhere, match="used by another process"):
        watch(folder.parent, checkpoint=kept)
    kept.chmod(0o777)
    with pytest.raises(KeptElsewhere, match="others"):
        watch(folder.parent, checkpoint=kept)


def test_the_profile_that_was_recognised_stays(folder: Path, tmp_path: Path) -> None:
    """A watch that goes on asks the logs no more what they are of."""
    history, _ = synthesise(1_500, 20, 0, 5)
    log = GrowingLog(folder)
    log.append(*history[:1000])
    _, first = watch(folder.parent, checkpoint=tmp_path / "kept", named=False)
    assert first["recognised"]["profile"] == "kip-236"
    log.append(*history[1000:])
    _, second = watch(folder.parent, checkpoint=tmp_path / "kept", named=False)
    assert (second["profile"], second["readings"]) == (first["profile"], first["readings"])


def test_a_torn_line_of_the_journal_is_cut_off(tmp_path: Path) -> None:
    """Nobody was told what was not written to its end."""
    path = tmp_path / "alerts"
    whole = b'{"id": "1"}\n' * 3
    for torn in (b"", b'{"id": "2', b"x" * 200_000):
        path.write_bytes(whole + torn)
        Journal(path).close()
        assert path.read_bytes() == whole
    path.write_bytes(b"torn")
    Journal(path).close()
    assert path.read_bytes() == b""
