"""Audits on Spark that go on where they were: shares that were judged are not judged again."""

import json
import pickle
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pipeline_steps import flip, show

from reassure_conformance.cli.audit import audit as verb
from reassure_judge.protocols import make_rules
from reassure_judge.verdicts import UNKNOWN
from reassure_lab.protocols.kip_236.synthetic import Size, write_archive
from reassure_pipeline.archives.archive import find_archives
from reassure_pipeline.archives.beginnings import load_base
from reassure_pipeline.audit.archive_report import VACUOUS, ArchiveReport
from reassure_pipeline.audit.audit_report import AuditReport
from reassure_pipeline.audit.jobs import AuditBudget
from reassure_pipeline.audit.listed_findings import Findings
from reassure_pipeline.audit.local import audit_local
from reassure_pipeline.audit.passes import DEFAULTS
from reassure_pipeline.checkpoints.kept_files import KeptElsewhere, own_directory
from reassure_pipeline.checkpoints.shares import SHARES_PER_CORE, Kept, KeptShares
from reassure_pipeline.spark.spark_audit import audit_spark, is_for_good, list_tasks, sum_up
from reassure_pipeline.spark.spark_tasks import PartResult, SparkPlan, judge_share, read_part
from reassure_spec.readings import get_profile

PROFILE = "kip-236"
READINGS = get_profile(PROFILE)
CORES = 2
ANEW = "all is judged again"


class Interrupted:
    """Follows the progress of an audit, and interrupts it where so many shares were judged."""

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.judged: list[int] = []
        """How many shares there were, whenever more were begun."""

    def __call__(self, what: str, done: int, total: int) -> None:
        """Take note."""
        if what == "judging, shares":
            self.judged.append(done)
            assert total == CORES * SHARES_PER_CORE
            if done == self.at:
                raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.spark
def test_shares_that_were_judged_are_not_judged_again(made: Path, tmp_path: Path) -> None:
    """After an interrupt the others are, after the end none is, and after a change all are."""
    whole = show(audit_local([made], PROFILE, READINGS, facts=True))
    said: list[str] = []
    kept = tmp_path / "kept"

    def audit(progress: Interrupted) -> str:
        options: dict[str, Any] = {"facts": True, "resume": kept, "say": said.append}
        master = f"local[{CORES}]"
        return show(audit_spark([made], PROFILE, READINGS, master, progress=progress, **options))

    first = Interrupted(2 * CORES)
    with pytest.raises(KeyboardInterrupt):
        audit(first)
    assert first.judged == [0, CORES, 2 * CORES]
    there = {path: path.stat().st_mtime_ns for path in kept.glob("*.share")}
    assert len(there) == 2 * CORES

    rest = Interrupted()
    assert audit(rest) == whole
    assert rest.judged == [2 * CORES, 3 * CORES]
    assert {path: path.stat().st_mtime_ns for path in there} == there
    again = Interrupted()
    assert audit(again) == whole
    assert (again.judged, said) == ([], [])

    *_, last = sorted((made / "version-2").iterdir())
    last.unlink()
    changed = Interrupted()
    assert audit(changed) == show(audit_local([made], PROFILE, READINGS, facts=True))
    assert changed.judged == [0, CORES, 2 * CORES, 3 * CORES]
    assert [line[: len(ANEW)] for line in said] == [ANEW]
    assert not there.keys() & set(kept.glob("*.share"))


@pytest.mark.slow
@pytest.mark.spark
def test_a_budget_ends_between_shares_and_is_gone_on_from(made: Path, tmp_path: Path) -> None:
    """When time is up the shares that were judged are reported, and the rest is unknown."""
    whole = audit_local([made], PROFILE, READINGS)
    kept, master = tmp_path / "kept", f"local[{CORES}]"

    def audit(progress: Interrupted, **options: Any) -> AuditReport:
        return audit_spark([made], PROFILE, READINGS, master, progress=progress, **options)

    found = set[tuple[str, int]]()
    for judged in (CORES, 2 * CORES):
        part = audit(turn := Interrupted(), budget=AuditBudget(seconds=0), resume=kept)
        assert (turn.judged, part.judged) == ([judged - CORES], (judged, SHARES_PER_CORE * CORES))
        assert part.needs[0].startswith(f"{judged} of 8 shares of the topics were judged")
        assert part.archives[0].transactions == whole.archives[0].transactions
        assert found <= {(v.clause, v.zxid) for v in part.violations}
        found = {(v.clause, v.zxid) for v in part.violations}
    assert found < {(v.clause, v.zxid) for v in whole.violations}
    rest = audit(turn := Interrupted(), budget=AuditBudget(seconds=3600), resume=kept)
    assert (show(rest), turn.judged) == (show(whole), [2 * CORES, 3 * CORES])
    alone = audit(Interrupted(), budget=AuditBudget(seconds=3600))
    assert show(alone) == show(whole)


def test_a_part_is_no_verdict_on_the_whole(made: Path) -> None:
    """Where a budget ended an audit before all topics were judged nothing holds, nor is vacuous."""
    whole = audit_local([made], PROFILE, READINGS)
    sound = replace(whole, archives=tuple(_clear(each) for each in whole.archives), clauses=())
    assert sound.verdict == VACUOUS
    assert replace(sound, judged=(2, 8)).verdict == UNKNOWN


def _clear(archive: ArchiveReport) -> ArchiveReport:
    return replace(archive, settled=Findings(), open=Findings())


INTERRUPTED = """
import os, signal, sys, threading
from reassure_conformance.cli import run_command
from reassure_pipeline.checkpoints.shares import KeptShares

keep = KeptShares.keep

def keep_and_interrupt(self, share, kept):
    keep(self, share, kept)
    if share == 1:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()

KeptShares.keep = keep_and_interrupt
sys.exit(run_command(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.spark
def test_an_interrupt_leaves_what_was_done_and_no_noise(tmp_path: Path) -> None:
    """Amid a question to Java too: it says that it was interrupted, and nothing else."""
    write_archive(tmp_path / "made", Size(60_000, 400, 5, 1))
    command = [sys.executable, "-c", INTERRUPTED, "audit", str(tmp_path / "made")]
    command += ["--spark", "local[2]", "--resume", str(tmp_path / "kept"), "--profile", PROFILE]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.split() == ["interrupted"]
    assert CORES <= len(list((tmp_path / "kept").glob("*.share"))) < CORES * SHARES_PER_CORE


def _make_plan(folder: Path, shares: int, done: Sequence[int] = ()) -> SparkPlan:
    archives = find_archives([folder])
    bases = [load_base(archive) for archive in archives]
    rules = make_rules(PROFILE, READINGS)
    return SparkPlan(rules, archives, bases, shares, DEFAULTS, done=frozenset(done))


def _address(plan: SparkPlan) -> dict[int, list[Any]]:
    """Return what comes to each share."""
    blocks: dict[int, list[Any]] = {}
    for task in list_tasks(plan):
        for (share, *_), block in read_part(task, plan):
            blocks.setdefault(share, []).append(block)
    return blocks


def test_nothing_is_addressed_to_shares_that_were_judged(made: Path) -> None:
    """The others get all that they would get, in as many blocks."""
    everything = _address(_make_plan(made, 4))
    left = _address(_make_plan(made, 4, done=[0, 2]))
    assert everything.keys() == {0, 1, 2, 3}
    assert left == {share: everything[share] for share in (1, 3)}


def test_another_history_is_another_audit(made: Path) -> None:
    """What was kept is of these files, as they are, cut as they are, and judged as they are."""
    plan = _make_plan(made, 4)
    told = json.dumps(plan.describe(frozenset()))
    assert json.dumps(_make_plan(made, 4).describe(frozenset())) == told
    others = [
        plan.describe(frozenset({(0, 1)})),
        plan._replace(requests_to_all=True).describe(frozenset()),
    ]
    first, *_ = sorted((made / "version-2").iterdir())
    first.write_bytes(first.read_bytes())
    others.append(_make_plan(made, 4).describe(frozenset()))
    renamed = made.with_name("named")
    renamed.symlink_to(made)
    others.append(_make_plan(renamed, 4).describe(frozenset()))
    first.unlink()
    others.append(_make_plan(made, 4).describe(frozenset()))
    assert len({told, *map(json.dumps, others)}) == 6


def test_a_part_that_a_share_was_not_given_is_told(made: Path) -> None:
    """Whoever judges the share, and whether or not the first share was given all of it."""
    plan = _make_plan(made, 2)
    blocks = [each for task in list_tasks(plan) for each in read_part(task, plan)]
    shares = [
        sorted((each for each in blocks if each[0][0] == number), key=itemgetter(0))
        for number in (0, 1)
    ]
    whole = [_judge(each, plan) for each in shares]
    assert [*map(is_for_good, whole)] == [True, True]
    report = audit_local([made], PROFILE, READINGS)
    assert show(sum_up(PROFILE, plan, _list_outcomes(whole))) == show(report)

    lost: Any = OSError("no answer from the server")
    for each in shares:
        ((place, result), *_) = (block for block in each if isinstance(block[1], PartResult))
        at = each.index((place, result))
        each[at] = place, result._replace(error=lost)
    failed = [_judge(each, plan) for each in shares]
    assert [*map(is_for_good, failed)] == [False, False]
    for both in (failed, (whole[0], failed[1]), (failed[0], whole[1])):
        with pytest.raises(OSError, match="no answer"):
            sum_up(PROFILE, plan, _list_outcomes(both))


def _judge(blocks: Sequence[Any], plan: SparkPlan) -> Kept:
    return [(archive, packed) for archive, _, packed in judge_share(blocks, plan)]


def _list_outcomes(shares: Sequence[Kept]) -> list[Any]:
    return [(archive, pickle.loads(packed)) for told in shares for archive, packed in told]


@pytest.mark.slow
@pytest.mark.spark
def test_damage_is_surveyed_once(made: Path, tmp_path: Path) -> None:
    """Logs that are damaged are surveyed at once when the audit goes on, and shares are kept."""
    file = sorted((made / "version-2").iterdir())[2]
    flip(file, 2_000)
    whole = show(audit_local([made], PROFILE, READINGS))
    judged: list[list[int]] = []
    for _ in range(2):
        progress = Interrupted()
        kept: Any = {"progress": progress, "resume": tmp_path / "kept"}
        assert show(audit_spark([made], PROFILE, READINGS, f"local[{CORES}]", **kept)) == whole
        judged.append(progress.judged)
    every = [0, CORES, 2 * CORES, 3 * CORES]
    assert judged == [every + every, []]


def test_what_is_kept_is_found_by_the_same_audit_alone(tmp_path: Path) -> None:
    """Others begin anew, which is said; what is damaged is judged anew; the last one clears up."""
    said: list[str] = []

    def begin(profile: str = PROFILE) -> KeptShares:
        return KeptShares(tmp_path, {"profile": profile}, said.append)

    first = begin()
    assert first.choose_shares(1) == SHARES_PER_CORE
    assert begin().choose_shares(7) == SHARES_PER_CORE
    assert first.load(["a"], 3) == {}
    first.keep(0, [(0, b"zero")])
    first.keep(2, [(0, b"two"), (1, b"more")])
    assert begin().load(["a"], 3) == {0: [(0, b"zero")], 2: [(0, b"two"), (1, b"more")]}
    assert said == []

    for other, what, shares in ((begin(), ["b"], 3), (begin("kafka-zk"), ["a"], 3)):
        assert other.load(what, shares) == {}
        assert said.pop().startswith(ANEW)
        assert said == []

    for share in (2, 0):
        path = next(tmp_path.glob(f"*-{share}.share"))
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + b"?")
    assert begin().load(["a"], 3) == {}
    assert said.pop() == f"2 of 3 shares are judged again: {path} is damaged"
    path.write_bytes(whole)
    path = next(tmp_path.glob("*-2.share"))
    last = begin()
    assert last.load(["a"], 3) == {0: [(0, b"zero")]}
    assert said == [f"1 of 3 shares are judged again: {path} is damaged"]
    last.load(["b"], 1)
    last.keep(0, [])
    last.clear_others()
    assert len(list(tmp_path.glob("*.share"))) == 3  # of both rounds of it
    begin().clear_others()
    assert list(tmp_path.glob("*.share")) == []


def test_a_directory_is_one_audits(made: Path, tmp_path: Path) -> None:
    """Nobody else may keep anything there at the same time, which is told before Spark starts."""
    with own_directory(tmp_path / "kept"), pytest.raises(KeptElsewhere):
        audit_spark([made], PROFILE, READINGS, "spark://127.0.0.1:1", resume=tmp_path / "kept")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--spark", "local[2]", "--resume", "kept", "--parquet", "tables"], "leave out --resume"),
        (["--spark", "local[2]", "--budget", "5s", "--parquet", "tables"], "leave out --budget"),
        (["--spark", "local[2]", "--budget", "5k"], "give it a time, like 15min"),
    ],
)
def test_what_does_not_go_together_is_refused(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], word: str
) -> None:
    """An option that would not be followed is told, with what to do."""
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(verb, [*options, str(made)])
    assert (result.exit_code, word in result.output) == (2, True)
    with suppress(FileNotFoundError):
        assert not list((tmp_path / "kept").iterdir())
