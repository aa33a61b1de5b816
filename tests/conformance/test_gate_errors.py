"""Every way out of a verb: its exit code, one document, and words that say what to do next."""

import errno
import json
import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reassure_conformance.cli import failing
from reassure_conformance.report.document import error_document, write_text
from reassure_judge.protocols import NoRules
from reassure_lab.archives.planted import plant_all
from reassure_lab.archives.sample import SampleCluster, write_sample
from reassure_pipeline.spark.gateway import SparkUnavailable
from reassure_zookeeper.errors import DamagedLog, LogsMissing
from reassure_zookeeper.transactions import Create, committed
from reassure_zookeeper.txnlog_writer import write_log

Say = Callable[..., dict[str, Any]]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A directory with the log of a correct history."""
    folder = tmp_path / "archive"
    folder.mkdir()
    write_log(folder, write_sample(topics=1, partitions=1))
    return folder


@pytest.mark.parametrize("profile", [(), ("--profile", "kip-236")])
@pytest.mark.parametrize(
    "spark",
    [(), pytest.param(("--spark", "local[1]"), marks=[pytest.mark.spark, pytest.mark.slow])],
)
def test_logs_of_another_protocol_need_a_profile(
    tmp_path: Path, say: Say, profile: list[str], spark: list[str]
) -> None:
    """Kafka's own log is held against KIP-236 only by whoever says so; else it is refused."""
    paths = ("/brokers", "/brokers/ids", "/brokers/topics", "/admin/reassign_partitions")
    write_log(tmp_path, [committed(Create(p), zxid=z) for z, p in enumerate(paths, start=1)])
    document = say("audit", tmp_path, *profile, *spark)
    assert document["exit_code"] == (3 if profile else 78)
    if not profile:
        assert document["error"]["class"] == "NoRules"
        assert "uses Apache Kafka's own protocol" in document["error"]["message"]


@pytest.mark.parametrize(
    ("arguments", "code", "name", "words"),
    [
        (["audit"], 64, "MissingParameter", "Missing argument"),
        (["audit", "{tmp}/absent"], 64, "BadParameter", "does not exist"),
        (["audit", "{archive}", "--nonsense"], 64, "NoSuchOption", "No such option"),
        (["no-such-verb"], 64, "NoSuchCommand", "No such command"),
        (["test", "--examples", "many"], 64, "BadParameter", "valid integer"),
        (["audit", "{archive}", "--reading", "x=y"], 64, "UsageError", "there is no reading"),
        (["audit", "{archive}", "--since", "yesterday"], 64, "BadParameter", "a time like 2026"),
        (["audit", "{archive}", "--budget", "90 s"], 64, "BadParameter", "a number like 500k"),
        (["audit", "{archive}", "--budget", "0"], 64, "BadParameter", "not a time like 90s"),
        (["audit", "{archive}", "--members", "two"], 64, "BadParameter", "'auto', 'one', 'apart'"),
        (["audit", "{archive}", "--resume", "{archive}/log.1"], 64, "BadParameter", "is a file"),
        (["audit", "{tmp}"], 65, "LogsMissing", "name a ZooKeeper data directory"),
        (["audit", "/dev/null"], 65, "LogsMissing", "is neither a file nor a directory"),
        (["test", "--profile", "kafka-zk"], 78, "BadConnectable", "no controller carries out"),
        (["test", "--fault", "drop-skiped"], 64, "UnknownFault", "did you mean drop-skipped"),
        (
            ["test", "--smoke", "--fault", "drop-skiped"],
            64,
            "UnknownFault",
            "did you mean drop-skipped",
        ),
        (["mutants", "drop-skiped"], 64, "UnknownFault", "did you mean drop-skipped"),
        (["test", "-i", "nothing", "--out", "{tmp}/run"], 78, "BadConnectable", "write direct:"),
        (["test", "--out", "{archive}/log.1/run"], 78, "NotADirectoryError", "log.1/run"),
        (["test", "--replay", "{tmp}"], 65, "BadRun", "run.json is missing"),
        (["spec", "coverage", "--seeds", "{tmp}/none"], 65, "BadCoverage", "no such folder"),
    ],
)
def test_error_is_one_document(
    arguments: list[str],
    code: int,
    name: str,
    words: str,
    archive: Path,
    say: Say,
) -> None:
    """Usage, bad data and bad configuration end in a document with class and message."""
    places = {"tmp": archive.parent, "archive": archive}
    document = say(*(text.format(**places) for text in arguments))
    assert (document["error"]["class"], document["verdict"]) == (name, "unknown")
    assert document["exit_code"] == code
    assert words in document["error"]["message"]


@pytest.mark.parametrize("planted", [True, False])
def test_verdict_is_one_document(planted: bool, tmp_path: Path, say: Say) -> None:
    """A verdict is a document like a refusal."""
    cluster = SampleCluster()
    if planted:
        plant_all(cluster)
    write_log(tmp_path, cluster.transactions)
    document = say("audit", tmp_path, "--profile", "kip-236")
    assert document["exit_code"] == (1 if planted else 0)
    assert "error" not in document


def test_damage_is_told_with_file_and_offset(archive: Path, say: Say) -> None:
    """A damaged log is judged around the damage; one of which nothing is left is an error.

    Both have the file and the byte as fields of their own.
    """
    log = archive / "log.1"
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 0xFF
    log.write_bytes(content)
    document = say("audit", archive)
    (damage,) = document["archives"][0]["damages"]
    assert (document["exit_code"], document["counts"]["damaged"]) == (2, 1)
    assert damage["file"] == str(log)
    assert 0 < damage["offset"] < len(content)
    log.write_bytes(b"ZKLX" + bytes(range(200)))
    document = say("audit", archive)
    error = document["error"]
    assert (document["exit_code"], error["class"]) == (65, "DamagedLog")
    assert (error["file"], error["offset"]) == (str(log), 0)


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (ModuleNotFoundError("No module named 'z3'", name="z3"), 69, "reassure[prove]"),
        (ModuleNotFoundError("No module named 'reassure_x'", name="reassure_x"), 70, ""),
        (
            OSError(errno.ENOSPC, "No space left on device", "/run/report.json"),
            69,
            "free some space",
        ),
        (OSError(errno.EROFS, "Read-only file system", "/run"), 78, "use another directory"),
        (PermissionError(errno.EACCES, "Permission denied", "/run"), 78, "change the permissions"),
        (FileNotFoundError(errno.ENOENT, "No such file", "/run/log.1"), 65, "/run/log.1"),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "/run"), 65, "/run"),
        (OSError(errno.EMFILE, "Too many open files"), 69, "Too many open files"),
        (MemoryError(), 69, "not enough memory"),
        (SystemExit(0), 69, "sys.exit(0)"),
        (DamagedLog(Path("/log.1"), 7, "torn"), 65, "byte 7"),
        (LogsMissing("/x is empty"), 65, "/x is empty"),
        (SparkUnavailable("no Spark"), 69, "no Spark"),
        (NoRules("no rules"), 78, "no rules"),
        (UnicodeDecodeError("utf-8", b"x", 0, 1, "why"), 65, "why"),
        (RecursionError("too deep"), 70, "too deep"),
        (KeyError("x"), 70, "x"),
        (GeneratorExit("x"), 70, "x"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_class_of_an_error_is_its_exit_code(
    error: BaseException,
    code: int,
    words: str,
    archive: Path,
    say: Say,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is raised inside a verb ends in the code of its class, and in one document."""

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("reassure_pipeline.audit.run_audit.judge_logs", fail)
    document = say("audit", archive)
    name = "Abort" if code == 130 else type(error).__name__
    assert (document["exit_code"], document["error"]["class"]) == (code, name)
    assert words in document["error"]["message"]
    assert ("traceback" in document["error"]) is (code == 70)


def test_write_that_fails_names_its_file(tmp_path: Path) -> None:
    """An error of writing, not only of opening, says which file was written."""
    with pytest.raises(OSError, match="No space left") as caught:
        write_text(Path("/dev/full"), "text")
    assert caught.value.filename == "/dev/full"
    with pytest.raises(FileNotFoundError):
        write_text(tmp_path / "absent" / "x", "text")


def _limit_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


Start = Callable[..., subprocess.CompletedProcess[str]]


def test_full_disk_is_no_mistake_of_ours(tmp_path: Path, start_process: Start) -> None:
    """Where a file cannot grow the verb ends with 69, names the file and says what to do."""
    done = start_process(
        *("scenarios", "--export", "--out", tmp_path / "out", "--format", "json"),
        env={"PYTHONDONTWRITEBYTECODE": "1"},  # nor may it leave compiled modules behind
        preexec_fn=_limit_files,
    )
    error = json.loads(done.stdout)["error"]
    assert done.returncode == 69
    assert str(tmp_path / "out") in error["message"]
    assert "free some space" in error["message"]


def test_standard_output_that_is_full_is_told(start_process: Start) -> None:
    """Where the result cannot be written the exit code is no verdict's."""
    with Path("/dev/full").open("w") as full:
        done = start_process("spec", "readings", stdout=full)
    assert done.returncode == 69
    assert "standard output: No space left" in done.stderr


def test_reader_that_has_gone_is_no_verdict(start_process: Start) -> None:
    """Where nobody takes the result the exit code is that of a broken pipe, without a traceback."""
    reading, writing = os.pipe()
    os.close(reading)
    done = start_process("spec", "readings", stdout=writing)
    os.close(writing)
    assert done.returncode == failing.NOBODY_READS
    assert "Traceback" not in done.stderr


def test_error_document_says_unknown() -> None:
    """A verb without a verdict answers unknown, never holds, with the code that it is given."""
    document = error_document("audit", 65, {"class": "X"}).as_dict()
    assert (document["verdict"], document["exit_code"]) == ("unknown", 65)
