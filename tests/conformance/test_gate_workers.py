"""One run in several processes: what each is asked, and one result of them all."""

import json
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from click import UsageError

from reassure_conformance.adapter.world import VIRTUAL_WORLD
from reassure_conformance.answers import workers
from reassure_conformance.answers.workers import (
    STOP,
    WorkerEnded,
    find_missing,
    merge,
    run_together,
    share,
    spell_run,
)
from reassure_conformance.cli.test import test as driving
from reassure_conformance.gate.base_runner import note_missing
from reassure_conformance.gate.controllers import ControllersResult
from reassure_conformance.gate.requirements import ALL_ABILITIES
from reassure_conformance.gate.run_settings import BUNDLED, COVERED, MISSING, Settings
from reassure_conformance.gate.running import run
from reassure_conformance.report.document import HOLDS, VACUOUS, VIOLATED, Document, read_result
from reassure_judge.verdicts import summarise
from reassure_spec.errors import BadUsage

SETTINGS = Settings(
    seed=7,
    connectable=BUNDLED,
    readings={"target.dead-replica": "refuse"},
    faults=("requests-unsorted",),
    examples=5,
    steps_min=9,
    require_all=True,
    hang_s=33.0,
    seconds_max=44.0,
    failures="kept",
    until=COVERED,
    strict=True,
)


def make_result(seed: int, exercised: dict[str, int], **counts: Any) -> dict[str, Any]:
    """Return the document of a worker whose clauses were put to the test so often."""
    result = ControllersResult(
        Settings(seed=seed),
        {"name": "some"},
        "kip-236",
        {},
        ALL_ABILITIES,
        clauses=summarise("kip-236", exercised, {}),
        directory=Path(f"worker-{seed}"),
        **counts,
    )
    return result.as_document().as_dict()


def test_workers_share_what_is_asked(tmp_path: Path) -> None:
    """Each has a seed of its own and its part of the examples; the first tells the stories."""
    first, second = share(SETTINGS, 2, tmp_path)
    assert first.seed == SETTINGS.seed != second.seed
    assert (first.examples, second.examples, first.steps_min) == (3, 3, 5)
    assert (first.with_stories, second.with_stories) == (True, False)
    assert {first.stop_at, second.stop_at} == {str(tmp_path / STOP)}


def test_command_line_of_a_worker_says_all_that_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the command line of a worker makes of it are the very settings it was spelled from."""
    (tmp_path / "kept").mkdir()
    monkeypatch.chdir(tmp_path)
    asked: list[Settings] = []

    def note(settings: Settings, *_: object) -> None:
        asked.append(settings)
        raise BadUsage("enough")

    monkeypatch.setattr("reassure_conformance.gate.running.run", note)
    told = share(SETTINGS, 2, tmp_path)[1]
    with pytest.raises(BadUsage):
        driving.main(spell_run(told, tmp_path / "out")[1:], standalone_mode=False)
    assert asked == [told]


def test_clause_counts_where_any_worker_put_it_to_the_test() -> None:
    """Coverage is merged: a clause is missing only where every worker lacks it; counts add up."""
    one = make_result(1, {"request.order.sequence": 2}, examples=3, steps=30)
    two = make_result(
        2, {"request.order.sequence": 1, "top.once-per-chain": 4}, examples=4, steps=40
    )
    merged = merge(Settings(seed=1), [one, two], 1.0).as_dict()
    count = {clause["id"]: clause["exercised"] for clause in merged["clauses"]}
    assert (count["request.order.sequence"], count["top.once-per-chain"]) == (3, 4)
    assert set(merged["not_exercised"]) == set(one["not_exercised"]) & set(two["not_exercised"])
    assert "top.once-per-chain" in one["not_exercised"]
    counts = merged["counts"]
    assert (counts["examples"], counts["steps"]) == (7, 70)
    assert counts["clauses_required"] - counts["clauses_exercised"] == len(merged["not_exercised"])
    assert [each["seed"] for each in merged["workers"]] == [1, 2]


@pytest.mark.slow
def test_what_one_worker_finds_is_the_result(tmp_path: Path) -> None:
    """A violation ends the others too; the result is its story, repeated from its directory."""
    settings = Settings(seed=1, faults=("requests-unsorted",), until="failed", seconds_max=500.0)
    document = run_together(settings, 2, tmp_path, lambda *_: None)
    document.write(tmp_path)
    result = read_result(tmp_path)
    assert isinstance(document, Document)
    assert result["verdict"] == VIOLATED
    assert result["story"]
    assert result["directory"] in {str(tmp_path / f"worker-{number}") for number in (1, 2)}
    assert (Path(result["directory"]) / "failure.txt").is_file()
    assert VIOLATED in {each["verdict"] for each in result["workers"]}


def test_missing_is_what_no_worker_has_covered(tmp_path: Path) -> None:
    """A worker that has told nothing yet counts for nothing."""
    places = [tmp_path / "worker-1", tmp_path / "worker-2"]
    for place in places:
        place.mkdir()
    assert find_missing(places) is None
    note_missing(places[0], ("a", "b"))
    assert find_missing(places) == ["a", "b"]
    note_missing(places[1], ("b", "c"))
    assert find_missing(places) == ["b"]
    note_missing(places[1], ("c",))
    assert find_missing(places) == []


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let workers be programs that say what they miss and wait for the file `stop`, or give up."""

    def make(first: tuple[str, ...], second: tuple[str, ...]) -> None:
        program = """
            import json, sys, time
            from pathlib import Path
            place, missing, stop = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
            place.mkdir()
            (place / "missing.json").write_text(missing)
            until = time.monotonic() + float(sys.argv[4])
            while not stop.exists() and time.monotonic() < until:
                time.sleep(0.01)
            sys.exit(0 if stop.exists() else 9)
        """
        left = iter((first, second))

        def spell(settings: Settings, directory: Path) -> list[str]:
            seconds = str(settings.seconds_max)
            return [str(directory), json.dumps(next(left)), settings.stop_at, seconds]

        code = textwrap.dedent(program)
        monkeypatch.setattr(workers, "PROGRAM", (*workers.PROGRAM[:-1], code))
        monkeypatch.setattr(workers, "spell_run", spell)

    return make


@pytest.mark.parametrize(
    ("second", "until", "seconds", "ended"),
    [
        (("c",), COVERED, 60.0, 0),
        (("b", "c"), COVERED, 1.0, 9),
        (("c",), "failed", 1.0, 9),
    ],
)
def test_workers_end_as_soon_as_they_have_covered_all_together(
    pretend: Callable[..., None],
    tmp_path: Path,
    second: tuple[str, ...],
    until: str,
    seconds: float,
    ended: int,
) -> None:
    """Neither of them alone has: each lacks what the other one has. Then somebody ends them."""
    pretend(("a", "b"), second)
    settings = Settings(seed=1, until=until, seconds_max=seconds)
    with pytest.raises(WorkerEnded, match=f"ended with exit code {ended} "):
        run_together(settings, 2, tmp_path, lambda *_: None)


@pytest.mark.slow
def test_drawing_alone_covers_everything(tmp_path: Path) -> None:
    """Without a story, what is drawn gets everywhere; then the run ends, though it has time."""
    settings = Settings(
        seed=7, until=COVERED, with_stories=False, seconds_max=400.0, world=VIRTUAL_WORLD
    )
    result = run(settings, tmp_path)
    assert (result.verdict(), result.missing(), result.died) == (HOLDS, (), "")
    assert json.loads((tmp_path / MISSING).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("profile", ["kip-236", "kafka-4485"])
def test_time_that_is_up_before_everything_is_covered_is_no_pass(
    tmp_path: Path, profile: str
) -> None:
    """Then the run is vacuous and says what is missing."""
    settings = Settings(seed=7, profile=profile, until=COVERED, with_stories=False, seconds_max=1.0)
    result = run(settings, tmp_path)
    assert result.verdict() == VACUOUS
    assert set(result.as_document().body["not_exercised"]) == set(result.missing()) != set()


def test_workers_end_with_whoever_began_them(tmp_path: Path) -> None:
    """Nothing of a run is left where the process that began its workers is killed."""
    begin = (
        "import sys; from pathlib import Path;"
        "from reassure_conformance.answers.workers import run_together;"
        "from reassure_conformance.gate.running import Settings;"
        "run_together(Settings(seed=7), 1, Path(sys.argv[1]), lambda *_: None)"
    )
    owner = subprocess.Popen([sys.executable, "-c", begin, str(tmp_path)])
    try:
        until = time.monotonic() + 60.0
        while not any(tmp_path.glob("worker-*/zookeeper/version-2/log.*")):
            assert time.monotonic() < until
            assert owner.poll() is None
            time.sleep(0.02)
        begun = psutil.Process(owner.pid).children(recursive=True)
        assert {"java", "sh"} <= {each.name() for each in begun}
    finally:
        owner.kill()
        owner.wait()
    assert psutil.wait_procs(begun, timeout=20.0)[1] == []


def test_workers_share_no_controller_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused before anything is begun."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="zk: names a running one"):
        driving.main(["--workers", "2", "-i", "zk:127.0.0.1:1"], standalone_mode=False)
