"""What one broker owns on disk: whose it is, its logs and its checkpoints."""

import subprocess
import sys
from pathlib import Path

import pytest

from reassure_controller.storage.checkpoints import read_offsets
from reassure_controller.storage.directory import LogDirectory
from reassure_controller.storage.errors import (
    CorruptCheckpoint,
    CorruptLog,
    LogOffline,
    WrongDirectory,
)
from reassure_controller.storage.records import Record, decode

RECORD = Record(b"k", b"v", 1)


def fill(directory: LogDirectory, topic: str, partition: int, count: int) -> None:
    """Append so many records, one at a time."""
    log = directory.log(topic, partition)
    for _ in range(count):
        log.append([RECORD], 0, 0)


def test_directory_finds_again_what_it_kept(tmp_path: Path) -> None:
    """Logs, high watermarks and recovery points are there again, in files that Kafka reads."""
    with LogDirectory(tmp_path / "b1", 1, "c") as directory:
        fill(directory, "with-dash", 7, 3)
        fill(directory, "t", 0, 1)
        directory.log("empty", 0)
        directory.save_high_watermarks({("with-dash", 7): 2, ("t", 0): 0})
    path = tmp_path / "b1"
    assert (path / "meta.properties").read_text() == "#\nversion=0\ncluster.id=c\nbroker.id=1\n"
    marks = (path / "replication-offset-checkpoint").read_text()
    assert marks == "0\n2\nt 0 0\nwith-dash 7 2\n"
    points = (path / "recovery-point-offset-checkpoint").read_text()
    assert points == "0\n3\nempty 0 0\nt 0 1\nwith-dash 7 3\n"
    with LogDirectory(path, 1, "c") as directory:
        ends = {key: log.end_offset for key, log in directory.logs.items()}
        assert ends == {("with-dash", 7): 3, ("t", 0): 1, ("empty", 0): 0}
        assert directory.high_watermarks == {("with-dash", 7): 2, ("t", 0): 0}
        assert len(decode(directory.log("with-dash", 7).read(0, 1000))) == 3


def test_directory_is_refused_to_all_but_its_broker(tmp_path: Path) -> None:
    """Neither a second broker, nor one with another id, nor one of another cluster gets it."""
    with (
        LogDirectory(tmp_path, 1, "c"),
        pytest.raises(WrongDirectory, match=r"\.lock: another broker has this directory; end it"),
    ):
        LogDirectory(tmp_path, 1, "c")
    with pytest.raises(WrongDirectory, match=r"expected broker\.id=2, found 1; give the broker"):
        LogDirectory(tmp_path, 2, "c")
    with pytest.raises(WrongDirectory, match=r"expected cluster\.id=d, found c"):
        LogDirectory(tmp_path, 1, "d")
    meta = tmp_path / "meta.properties"
    meta.write_text(meta.read_text().replace("version=0", "version=9"))
    with pytest.raises(WrongDirectory, match="expected version=0, found 9"):
        LogDirectory(tmp_path, 1, "c")


def test_lock_ends_with_its_process(tmp_path: Path) -> None:
    """A lock keeps other processes out, and is free once a process that was killed is gone."""
    code = (
        "import sys, pathlib, reassure_controller.storage.directory as d\n"
        "held = d.LogDirectory(pathlib.Path(sys.argv[1]), 1, 'c')\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "held\n"
            with pytest.raises(WrongDirectory, match="another broker has this directory"):
                LogDirectory(tmp_path, 1, "c")
        finally:
            process.kill()
    LogDirectory(tmp_path, 1, "c").close()


@pytest.mark.parametrize("name", ["replication", "recovery-point"])
@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("", "line 1: expected version 0, found []"),
        ("1\n0\n", "line 1: expected version 0, found ['1']"),
        ("0\nmany\n", "line 2: expected a number, found 'many'"),
        ("0\n2\nt 0 5\n", "line 2: expected 2 lines after this, found 1"),
        ("0\n1\nt 0\n", "line 3: expected 'topic partition offset', found 't 0'"),
        ("0\n1\nt 0 -5\n", "line 3: expected a number, found '-5'"),
        ("0\n2\nt 0 5\nt 0 6\n", "line 4: t-0 stands there twice"),
    ],
)
def test_damaged_checkpoint_is_refused(tmp_path: Path, name: str, content: str, place: str) -> None:
    """The file, the line, what was expected and what helps are said, and nothing is changed."""
    with LogDirectory(tmp_path, 1, "c") as directory:
        fill(directory, "t", 0, 5)
    file = tmp_path / f"{name}-offset-checkpoint"
    file.write_text(content)
    with pytest.raises(CorruptCheckpoint) as caught:
        LogDirectory(tmp_path, 1, "c")
    assert str(caught.value).startswith(f"{file}: {place}; delete the file, and ")
    assert file.read_text() == content
    file.unlink()
    with LogDirectory(tmp_path, 1, "c") as directory:
        assert directory.log("t", 0).end_offset == 5


def test_cut_below_the_recovery_point_is_no_damage(tmp_path: Path) -> None:
    """A log that was cut where it was safe opens again, also when the process was killed then."""
    directory = LogDirectory(tmp_path, 1, "c")
    fill(directory, "t", 0, 5)
    directory.flush()
    directory.log("t", 0).truncate_to(2)
    points = (tmp_path / "recovery-point-offset-checkpoint").read_text()
    assert points == "0\n1\nt 0 2\n"
    directory.abandon()
    with LogDirectory(tmp_path, 1, "c") as again:
        assert again.log("t", 0).end_offset == 2


def test_missing_log_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    """Where a log with safe records is gone, making it anew is refused, however often asked."""
    with LogDirectory(tmp_path, 1, "c") as directory:
        fill(directory, "t", 0, 5)
    (tmp_path / "t-0").rename(tmp_path.with_name(f"{tmp_path.name}-elsewhere"))
    for _ in range(2):
        with LogDirectory(tmp_path, 1, "c") as directory:
            fill(directory, "u", 0, 1)
            directory.flush()
            with pytest.raises(CorruptLog, match=r"t-0.*expected records before offset 5, found 0"):
                directory.log("t", 0)


def test_deleted_log_leaves_nothing(tmp_path: Path) -> None:
    """After a deletion neither files nor offsets remain, and the partition can be made anew."""
    with LogDirectory(tmp_path, 1, "c") as directory:
        fill(directory, "t", 0, 5)
        fill(directory, "u", 0, 1)
        directory.save_high_watermarks({("t", 0): 5, ("u", 0): 1})
    directory = LogDirectory(tmp_path, 1, "c")
    deleted = directory.log("t", 0)
    directory.delete("t", 0)
    directory.delete("t", 0)
    assert [[*path.iterdir()] for path in tmp_path.glob("*-delete")] == [[]]
    directory.end_deletions()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["u-0"]
    assert directory.high_watermarks == {("u", 0): 1}
    with pytest.raises(LogOffline, match="the log is closed"):
        deleted.append([RECORD], 0, 0)
    assert directory.log("t", 0).end_offset == 0
    directory.delete("t", 0)
    directory.abandon()
    with LogDirectory(tmp_path, 1, "c") as again:
        assert again.log("t", 0).end_offset == 0


def test_many_deletions_write_offsets_of_all_partitions_once(tmp_path: Path) -> None:
    """Each of them would take longer the more partitions there are."""
    directory = LogDirectory(tmp_path, 1, "c")
    for partition in range(5):
        fill(directory, "t", partition, 1)
    directory.flush()
    offsets = tmp_path / "recovery-point-offset-checkpoint"
    before = offsets.stat().st_ino
    for partition in range(4):
        directory.delete("t", partition)
    assert offsets.stat().st_ino == before
    directory.end_deletions()
    assert read_offsets(offsets) == {("t", 4): 1}
    directory.abandon()


def test_deletion_that_was_cut_short_is_ended(tmp_path: Path) -> None:
    """What a crash left of a deletion goes when the directory is opened."""
    with LogDirectory(tmp_path, 1, "c") as directory:
        fill(directory, "t", 0, 1)
        directory.save_high_watermarks({("t", 0): 1})
    (tmp_path / "t-0").rename(tmp_path / "t-0.abc-delete")
    with LogDirectory(tmp_path, 1, "c") as directory:
        assert (directory.logs, directory.high_watermarks) == ({}, {})
        assert directory.log("t", 0).end_offset == 0
    assert not list(tmp_path.glob("*-delete"))


def test_directory_is_free_after_it_was_refused(tmp_path: Path) -> None:
    """An opening that fails closes what it had opened, the lock included."""
    with LogDirectory(tmp_path, 1, "c") as directory:
        fill(directory, "t", 0, 2)
    segment = tmp_path / "t-0" / "00000000000000000000.log"
    content = segment.read_bytes()
    segment.write_bytes(content[:-1])
    for _ in range(2):
        with pytest.raises(CorruptLog, match="expected a size of"):
            LogDirectory(tmp_path, 1, "c")
    segment.write_bytes(content)
    LogDirectory(tmp_path, 1, "c").close()
