"""A watch that has caught up and an audit come to the same, whatever is damaged."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline_steps import Snapshot, flip, plant, watch

from reassure_pipeline.audit.run_audit import audit_named
from reassure_pipeline.watch.alerts import UNSETTLED, VIOLATION, Alert
from reassure_spec.readings import get_profile
from reassure_zookeeper.errors import DamagedLog, LogsMissing
from reassure_zookeeper.txnlog import log_files
from reassure_zookeeper.txnlog_writer import GrowingLog, frame

PROFILE = "kip-236"
FILES = 4
NAMES = {"violations": VIOLATION, "not_followed": "not_followed", "unsettled": UNSETTLED}
HEAD = ("kind", "id", "archive", "seen_at")
Damage = Callable[[list[Path], int, Random], None]


def swap(files: list[Path], number: int, _: Random) -> None:
    """Let two files have each other's name."""
    one, other = files[number], files[(number + 1) % FILES]
    one.rename(one.with_name("aside"))
    other.rename(one)
    one.with_name("aside").rename(other)


def copy(files: list[Path], number: int, random: Random) -> None:
    """Let a file be there twice."""
    files[number].with_name(f"log.{random.randrange(0x1000):x}").write_bytes(
        files[number].read_bytes()
    )


def rename(files: list[Path], number: int, random: Random) -> None:
    """Let a file be called by another zxid."""
    files[number].rename(files[number].with_name(f"log.{random.randrange(0x400):x}"))


def overlap(files: list[Path], number: int, random: Random) -> None:
    """Let a file begin with the last records of the one before it."""
    whole = files[number - 1].read_bytes()
    tail = whole[whole.index(frame(PLANTED[FIRSTS[number - 1] + random.randrange(40)])) :]
    content = files[number].read_bytes()
    files[number].write_bytes(content[:16] + tail.rstrip(b"\0") + content[16:])


def spoil_magic(files: list[Path], number: int, _: Random) -> None:
    """Let a file begin as none does."""
    flip(files[number], 1)


def spoil_record(files: list[Path], number: int, random: Random) -> None:
    """Flip the bits of one byte."""
    flip(files[number], random.randrange(16, files[number].stat().st_size))


def blank(files: list[Path], number: int, random: Random) -> None:
    """Write zeros over a record, as where a disk has forgotten a block."""
    record = frame(PLANTED[FIRSTS[number] + random.randrange(100)])
    content = files[number].read_bytes()
    files[number].write_bytes(content.replace(record, bytes(len(record))))


def spoil_all(files: list[Path], number: int, _: Random) -> None:
    """Leave nothing of a file that can be read."""
    files[number].write_bytes(b"nothing of the kind" * 99)


def cut(files: list[Path], number: int, random: Random) -> None:
    """Cut off the end of a file."""
    content = files[number].read_bytes()
    files[number].write_bytes(content[: random.randrange(len(content))])


def lose(files: list[Path], number: int, _: Random) -> None:
    """Let a file be gone."""
    files[number].unlink()


PLANTED = plant("/kafka")
FIRSTS = [n * len(PLANTED) // FILES for n in range(FILES)]
KINDS = (swap, copy, rename, overlap, spoil_magic, spoil_record, blank, spoil_all, cut, lose)


@pytest.fixture(scope="module", autouse=True)
def everything_is_listed() -> Iterator[None]:
    """Let an audit list all of its findings, as a watch tells all."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("reassure_pipeline.audit.listed_findings.LISTED_FINDINGS", 10_000)
        yield


def write(folder: Path, number: int) -> None:
    """Write one file of the history."""
    log = GrowingLog(folder, block=0)
    log.append(*PLANTED[FIRSTS[number] : (*FIRSTS, len(PLANTED))[number + 1]])


def show(records: list[Any], *without: str) -> list[str]:
    """Return findings in an order that does not depend on how they came."""
    return sorted(json.dumps({k: v for k, v in e.items() if k not in without}) for e in records)


def compare(folder: Path) -> None:
    """Check that a watch and an audit agree."""
    report = audit_named([folder], PROFILE, get_profile(PROFILE)).as_json_dict()
    told, document = watch(folder)
    check(report, document, told.alerts)


def check(report: dict[str, Any], document: dict[str, Any], told: list[Alert]) -> None:
    """Check that a watch has told and comes to what the document of an audit says."""
    for name, kind in NAMES.items():
        alerts = [alert.as_dict() for alert in told if alert.kind == kind]
        assert show(alerts, *HEAD) == show(report[name], "archive"), name
    assert document["verdict"] == report["verdict"]
    assert document["clauses"] == report["clauses"]
    assert document["needs"] == report["needs"]
    for name in ("transactions", "partitions", "damaged"):
        assert document["counts"][name] == report["counts"][name], name
    for name in ("holes", "damages", "begins", "first_zxid", "last_zxid", "clusters", "verdict"):
        assert document["archives"][0][name] == report["archives"][0][name], name


@pytest.mark.parametrize("number", range(FILES))
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_watch_agrees_with_an_audit_on_damage(
    tmp_path: Path, kind: Damage, number: int, snapshot: Snapshot
) -> None:
    """The same verdict, transactions, gaps and findings, whatever is damaged and where."""
    folder = tmp_path / "version-2"
    folder.mkdir()
    for each in range(FILES):
        write(folder, each)
    for zxid in (260, 300, 470) if number % 2 else ():
        snapshot(tmp_path, PLANTED[: zxid + 3], zxid)
    kind(log_files(folder), number, Random(number))
    compare(tmp_path)


@settings(max_examples=40, deadline=None)
@given(
    damages=st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, FILES - 1)), max_size=3),
    seed=st.integers(0, 1 << 20),
)
def test_so_on_any_damages_together(damages: list[tuple[Damage, int]], seed: int) -> None:
    """Several damages, each after the one before, in files as they are by then."""
    with TemporaryDirectory() as made:
        folder = Path(made)
        for each in range(FILES):
            write(folder, each)
        for kind, number in damages:
            files = log_files(folder)
            with suppress(IndexError, ValueError):  # that file is gone, or what is looked for in it
                kind(files, number, Random(seed))
        try:
            compare(folder)
        except (DamagedLog, LogsMissing):
            with pytest.raises((DamagedLog, LogsMissing)):
                watch(folder)


@pytest.mark.parametrize("number", range(1, FILES))
@pytest.mark.parametrize("kind", KINDS[3:], ids=lambda kind: kind.__name__)
def test_so_where_it_is_met_as_the_log_grows(tmp_path: Path, kind: Damage, number: int) -> None:
    """A watch that read what came before goes on around the damage, and comes to the same."""
    folder, told = tmp_path / "data", list[Alert]()
    folder.mkdir()
    for each in range(FILES):
        write(folder, each)
        if each == number:
            kind(log_files(folder), number, Random(number))
        some, document = watch(folder, checkpoint=tmp_path / "kept")
        assert not some.repeated
        told += some.alerts
    report = audit_named([folder], PROFILE, get_profile(PROFILE)).as_json_dict()
    check(report, document, told)
