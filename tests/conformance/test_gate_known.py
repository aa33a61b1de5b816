"""Known failures: they do not count, and one that passes is stale."""

from pathlib import Path

import pytest

from reassure_conformance.cli import run_command
from reassure_conformance.gate.controllers import ControllersResult
from reassure_conformance.gate.known import BadKnown, KnownFailure, read_known
from reassure_conformance.gate.run_settings import COVERED, Settings
from reassure_conformance.gate.running import run
from reassure_conformance.report.terminal import render_run

FAULT = "no-epoch-bump-on-election"
CLAUSE = "leader-epoch.raised-by-one"


def _run(
    folder: Path, *known: KnownFailure, faults: tuple[str, ...] = (FAULT,)
) -> ControllersResult:
    settings = Settings(1, faults=faults, examples=2, steps_min=0, known=known)
    result = run(settings, folder)
    assert isinstance(result, ControllersResult)
    return result


def test_known_failure_does_not_count(tmp_path: Path) -> None:
    """A clause that is known to fail is shown as violated, with the reason, and nothing ends."""
    result = _run(tmp_path, KnownFailure(CLAUSE, "failing", "to be mended"))
    assert result.failure is None
    assert result.known[CLAUSE] > 0
    assert result.stale == ()
    assert next(c for c in result.clauses if c.id == CLAUSE).verdict == "violated"
    assert CLAUSE not in result.missing()
    shown = render_run(result.as_document().as_dict(), "pretty")
    assert f"except known failures: {CLAUSE} (to be mended)" in shown
    (aside,) = result.as_body()["asides"]
    assert aside["known"]
    assert aside["violation"]["clause"] == CLAUSE
    broken = {row["zxid"] for row in aside["timeline"]["rows"] if CLAUSE in row.get("broken", ())}
    assert broken == {aside["violation"]["zxid"]}
    assert [row["step"] for row in aside["timeline"]["rows"] if "step" in row] == aside["story"]


def test_other_failures_count(tmp_path: Path) -> None:
    """What is not known still ends the run."""
    result = _run(tmp_path, KnownFailure("drop.keep-top", "failing", "another one"))
    assert result.failure is not None
    assert result.failure.violation.clause == CLAUSE


def test_known_failure_that_passes_is_stale(tmp_path: Path) -> None:
    """What was to fail and did not is stale and ends with 3; what may fail need not."""
    known = (
        KnownFailure("a-move", "failing", "long ago"),
        KnownFailure("cancel", "flaky", "now and then"),
    )
    result = _run(tmp_path, *known, faults=())
    assert result.stale == ("a-move (known to fail)",)
    assert result.as_document().get_exit_code() == 3


@pytest.mark.slow
def test_known_failure_is_stale_once(tmp_path: Path) -> None:
    """A run that sums up again and again names what passed once, and not what failed since."""
    settings = Settings(
        1,
        faults=(FAULT,),
        until=COVERED,
        steps_min=0,
        seconds_max=8,
        with_stories=False,
        known=(
            KnownFailure("a-move", "failing", "long ago"),
            KnownFailure(CLAUSE, "failing", "to be mended"),
        ),
    )
    result = run(settings, tmp_path)
    assert isinstance(result, ControllersResult)
    assert result.known[CLAUSE] > 0
    assert result.stale == ("a-move (known to fail)",)


def test_file_is_read(tmp_path: Path) -> None:
    """A line has a kind, a clause or story, and a reason; the rest is comment."""
    file = tmp_path / "known.txt"
    file.write_text(f"# ours\n\nfailing {CLAUSE}  JIRA-1, soon\nflaky a-move slow watch\n")
    assert read_known(file) == (
        KnownFailure(CLAUSE, "failing", "JIRA-1, soon"),
        KnownFailure("a-move", "flaky", "slow watch"),
    )


def test_list_is_not_ignored(tmp_path: Path) -> None:
    """Where no list is kept to, naming one is refused."""
    file = tmp_path / "known.txt"
    file.touch()
    assert run_command(["test", "--profile", "kafka-4485", "--known", str(file)]) == 64


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("failing a-move", "and why"),
        ("broken a-move because", "write failing or flaky"),
        ("failing a-mov because", "did you mean a-move"),
        ("flaky a-move x\nfailing a-move y", "say it once"),
    ],
)
def test_line_that_says_nothing_is_refused(line: str, complaint: str, tmp_path: Path) -> None:
    """A line without a reason, of no kind, or of what there is not is bad data, with its place."""
    file = tmp_path / "known.txt"
    file.write_text(line)
    with pytest.raises(BadKnown, match=complaint):
        read_known(file)


DROPS = (
    *("world cluster brokers=1,2,3", "create orders with 1", "request orders-0 to 2"),
    *("broker 1 dies", "request orders-0 to 3"),
)
"""A drop while nobody leads: the exclusive slice drops the leader, and a drop as it is written
whoever is in sync, which the findings say."""


@pytest.mark.parametrize(
    ("readings", "clause", "finding"),
    [
        ({"drop.slice": "exclusive"}, "drop.leader-kept", "drop-1"),
        ({"offline.drop": "as-written"}, "drop.isr-first", "drop-11"),
        ({}, None, None),
    ],
)
def test_what_a_reading_breaks_is_known_as_its_finding(
    tmp_path: Path, readings: dict[str, str], clause: str | None, finding: str | None
) -> None:
    """A red run says under which reading the document itself breaks the clause, and counts."""
    saved = tmp_path / "saved"
    saved.mkdir()
    (saved / "drops.txt").write_text("\n".join(DROPS), encoding="utf-8")
    settings = Settings(
        1, readings=readings, examples=0, steps_min=0, with_stories=False, failures=str(saved)
    )
    result = run(settings, tmp_path)
    document = result.as_document()
    assert (document.verdict == "violated", document.body["clause"]) == (bool(clause), clause)
    found = [(each["id"], each["clause"]) for each in document.body["findings"]]
    assert found == ([(finding, clause)] if finding else [])
    shown = render_run(document.as_dict(), "pretty")
    assert (f"Known as finding {finding}: " in shown) == bool(finding)
    assert all(f"Under {name}={value} the" in shown for name, value in readings.items())


def test_fault_under_such_a_reading_is_nobody_elses(tmp_path: Path) -> None:
    """What another clause forbids is a fault of the implementation, whatever the reading."""
    settings = Settings(
        1, readings={"drop.slice": "exclusive"}, faults=(FAULT,), examples=0, steps_min=0
    )
    body = run(settings, tmp_path).as_document().body
    assert (body["clause"], body["findings"]) == (CLAUSE, [])
