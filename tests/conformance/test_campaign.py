"""Campaigns: many runs with seeds of their own, and one result that hides none of them."""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from reassure_conformance.answers import campaigning
from reassure_conformance.answers.campaigning import (
    Carried,
    carry_out,
    make_charges,
    run_campaign,
    spread_here,
    sum_up,
)
from reassure_conformance.answers.workers import WorkerEnded
from reassure_conformance.cli import cli
from reassure_conformance.gate.controllers import ControllersResult
from reassure_conformance.gate.requirements import ALL_ABILITIES
from reassure_conformance.gate.run_settings import Settings
from reassure_conformance.report.document import HOLDS, UNKNOWN, VIOLATED
from reassure_judge.verdicts import summarise

SETTINGS = Settings(seed=7, examples=2, with_stories=True)


def make_carried(seed: int, verdict: str, steps: int = 0) -> Carried:
    """Return what a run came to."""
    made = ControllersResult(
        Settings(seed=seed),
        {"name": "some"},
        "kip-236",
        {},
        ALL_ABILITIES,
        clauses=summarise("kip-236", {}, {}),
        directory=Path(f"run-{seed}"),
        steps=10,
    )
    result = made.as_document().as_dict() | {"verdict": verdict, "not_exercised": []}
    result["story"] = ["a step"] * steps
    return Carried(seed, result)


def test_shortest_failure_is_told_and_all_are_counted() -> None:
    """What is replayed is the shortest story of all; steps add up; seeds are listed in order."""
    carried = [
        make_carried(1, HOLDS),
        make_carried(2, VIOLATED, 5),
        make_carried(3, VIOLATED, 2),
    ]
    document = sum_up(SETTINGS, carried, 1.0).as_dict()
    assert (document["verdict"], document["directory"]) == (VIOLATED, "run-3")
    assert [each["seed"] for each in document["workers"]] == [1, 2, 3]
    counts = document["counts"]
    assert (counts["steps"], counts["runs"], counts["runs_left_out"]) == (30, 3, 0)


def test_fewer_runs_are_never_green() -> None:
    """A run without a result leaves the campaign unknown, is told, and hides no violation."""
    lost = Carried(2, None, "it was killed")
    document = sum_up(SETTINGS, [make_carried(1, HOLDS), lost], 1.0).as_dict()
    assert (document["verdict"], document["exit_code"]) == (UNKNOWN, 2)
    assert document["left_out"] == [{"seed": 2, "reason": "it was killed"}]
    assert sum_up(SETTINGS, [make_carried(1, VIOLATED, 1), lost], 1.0).verdict == VIOLATED
    assert sum_up(SETTINGS, [make_carried(1, HOLDS)], 1.0).verdict == HOLDS
    with pytest.raises(WorkerEnded, match="killed"):
        sum_up(SETTINGS, [lost], 1.0)


def test_runs_have_seeds_of_their_own_and_the_first_tells_the_stories(tmp_path: Path) -> None:
    """Nothing else differs between them."""
    charges = make_charges(SETTINGS, 3, tmp_path, 60.0)
    assert len({charge.settings.seed for charge in charges}) == 3
    assert [charge.settings.with_stories for charge in charges] == [True, False, False]
    assert {charge.settings.examples for charge in charges} == {2}


def test_a_run_begun_again_has_a_directory_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a dead executor left is not taken for a result; a run that ends without one is told."""
    program = "import sys, pathlib; p = pathlib.Path(sys.argv[sys.argv.index('--out') + 1]); "
    wrote = program + "p.mkdir(); (p / 'result.json').write_text('{}')"
    (charge,) = make_charges(SETTINGS, 1, tmp_path, 60.0)
    monkeypatch.setattr(campaigning, "PROGRAM", ("python", "-c", wrote))
    assert carry_out(charge).result == {} == carry_out(charge).result
    assert len([place for place in tmp_path.iterdir() if place.is_dir()]) == 2
    monkeypatch.setattr(
        campaigning, "PROGRAM", ("python", "-c", "print('no'); raise SystemExit(9)")
    )
    assert "ended with 9 and no result; it said:\nno" in carry_out(charge).reason
    late = replace(charge, ends=time.time() - 1)
    assert carry_out(late) == Carried(7, None, "not begun in time")


def test_a_run_ends_with_whoever_began_it(tmp_path: Path) -> None:
    """Nothing of a run is left where its process of Python is killed without warning."""
    begin = (
        "import sys; from pathlib import Path;"
        "from reassure_conformance.answers import campaigning;"
        "from reassure_conformance.gate.run_settings import Settings;"
        "charge, = campaigning.make_charges(Settings(seed=7), 1, Path(sys.argv[1]), 60.0);"
        "campaigning.carry_out(charge)"
    )
    owner = subprocess.Popen([sys.executable, "-c", begin, str(tmp_path)])
    try:
        until = time.monotonic() + 60.0
        while not any(tmp_path.glob("run-*/zookeeper/version-2/log.*")):
            assert time.monotonic() < until
            assert owner.poll() is None
            time.sleep(0.02)
        begun = psutil.Process(owner.pid).children(recursive=True)
        assert {"java", "sh"} <= {each.name() for each in begun}
    finally:
        owner.kill()
        owner.wait()
    assert psutil.wait_procs(begun, timeout=20.0)[1] == []


def test_campaign_that_is_too_late_says_so(tmp_path: Path) -> None:
    """No run is begun after the time that a campaign was given."""
    with spread_here(2) as spread, pytest.raises(WorkerEnded, match="not begun in time"):
        run_campaign(SETTINGS, 2, tmp_path, -1.0, spread)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--within", "5"], "--within is for a campaign"),
        (["--campaign", "2", "-i", "zk:127.0.0.1:1"], "need a controller each"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are refused before anything is begun."""
    monkeypatch.chdir(tmp_path)
    result = CliRunner(catch_exceptions=True).invoke(cli, ["test", *options])
    assert words in result.output + str(result.exception or "")
    assert result.exit_code != 0
