"""The gate of brokers with logs: tales hold, and each planted mistake breaks one of them."""

import json
from pathlib import Path

import pytest
import told_brokers

from reassure_conformance.answers.replaying import replay
from reassure_conformance.gate.replication.brokers import BrokersRunner
from reassure_conformance.gate.replication.brokers_outcome import BrokersResult
from reassure_conformance.gate.replication.drawing import LAYOUTS
from reassure_conformance.gate.replication.situations import SITUATIONS
from reassure_conformance.gate.run_settings import REPLICATION, Settings
from reassure_conformance.gate.story import BROKERS, format_story, parse_story, shipped_stories
from reassure_conformance.mutants import load_mutants
from reassure_zookeeper.server import Server

TABLE = """
a-record-is-committed: leader-not-counted acks-all-early follow-untold
as-written-nobody-fetches: limit-doubled evaluates-only-fetches mark-of-all-assigned laggard-kept
    answers-forgotten
back-but-not-in-sync-yet: mark-of-in-sync-only
in-sync-set-changed-meanwhile: isr-unconditional
late-while-others-keep-up: credit-without-last-fetch credit-compares-itself credit-any-fetch
    mark-not-of-stored mark-of-any-follower served-beyond-mark
leader-loses-what-it-wrote-last: served-at-once
leaders-die-with-records-of-their-own: mark-goes-back entry-below-mark entry-refused
    truncation-skipped
mark-restored-from-before-the-loss: checkpoint-uncapped
nobody-fetches: end-read-early
old-leader-back-at-an-old-mark: entry-before-start
one-batch-at-a-time: follower-mark-uncapped
order-for-an-earlier-life: truncates-to-mark
order-outlived-by-the-log: dead-order-obeyed
order-of-an-earlier-epoch: stale-order-obeyed
request-of-an-earlier-epoch: stale-fetch-noted
request-of-an-earlier-life: dead-life-noted
deleted-while-it-leads: answered-when-deleted
made-anew: deleted-kept
marks-of-two-partitions: mark-of-another
orders-from-before-a-deletion: late-stop-obeyed stop-forgotten
session-ends: expiry-unnoticed waiting-left-at-end
stopped-while-it-leads: stopped-leads-on
stops-with-records-above-its-mark: checkpoint-of-the-end
two-partitions-part: epochs-shared
written-and-not-answered: unanswered-taken-for-made
two-leaders-die-with-one-record-each: truncates-to-end
"""
"""By shipped tale, the faults that it catches. `reassure mutants` draws trials against each."""
MADE_FOR = {
    "fetch-of-an-earlier-life": "dead-life-noted",
    "order-of-an-earlier-epoch": "stale-order-obeyed",
    "order-for-an-earlier-life": "dead-order-obeyed",
    "stop-of-an-earlier-epoch": "late-stop-obeyed",
    "order-after-a-stop": "stop-forgotten",
    "stopped-while-it-leads": "stopped-leads-on",
    "marks-apart": "mark-of-another",
    "mark-beyond-the-log": "checkpoint-uncapped",
}
"""By situation, the fault that shows there."""
SHARED = LAYOUTS[2]
"""Two partitions with a follower that they share."""
ROWS = (row.partition(": ") for row in TABLE.replace("\n    ", " ").strip().splitlines())
CASES = [(fault, name) for name, _, faults in ROWS for fault in faults.split()]


def tell(tmp_path: Path, server: Server, fault: str = "", name: str = "") -> BrokersResult:
    """Tell one of the shipped tales, or all, to brokers with this fault, or with none."""
    tales = (tale for tale in shipped_stories(BROKERS) if name in ("", tale.name))
    faults = (fault,) if fault else ()
    return told_brokers.tell(
        tmp_path, server, map(format_story, tales), faults=faults, strict=True, shrink_s=0
    )


def test_every_fault_has_a_tale() -> None:
    """Each mistake that can be planted in brokers is caught in exactly one tale of the table."""
    assert sorted(fault for fault, _ in CASES) == sorted(
        name for name, mutant in load_mutants().items() if mutant.of_brokers
    )


def test_shipped_tales_hold(tmp_path: Path, own_server: Server) -> None:
    """No clause is broken in a tale by brokers without a fault, and every situation comes up."""
    result = tell(tmp_path, own_server)
    assert [name for name, count in result.reached.items() if count == 0] == []
    assert result.failure is None, result.failure
    assert not result.died, result.trace
    assert result.unsettled == 0


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("fault", "name"), CASES)
def test_tale_catches_fault(fault: str, name: str, tmp_path: Path, own_server: Server) -> None:
    """The tale breaks a clause that is made for the fault, and breaks it first."""
    failure = tell(tmp_path, own_server, fault, name).failure
    assert failure is not None, f"{fault} survives {name}"
    assert failure.violation.clause in load_mutants()[fault].clauses


def test_situation_is_reached_by_its_case(tmp_path: Path, own_server: Server) -> None:
    """The case of a situation reaches it, and catches the fault that shows there."""
    made_for = dict(CASES)
    settings = Settings(next(told_brokers.SEEDS), profile=REPLICATION)
    runner = BrokersRunner(settings, tmp_path, server=own_server)
    cases = {story.name: story for story in runner.list_shipped()}
    with runner.open():
        for goal in SITUATIONS:
            before = runner.reached[goal.name]
            runner.tell(cases[goal.case])
            assert runner.reached[goal.name] > before, goal.name
            assert made_for[MADE_FOR[goal.name]] == goal.case


def test_leader_that_its_own_log_has_overtaken_refuses_records(
    tmp_path: Path, own_server: Server
) -> None:
    """Whoever was led astray by an old order answers producers that it does not lead."""
    text = """world brokers

move to 1,3
the controller works
deliver 6
deliver all
produce 1 with acks 1 to 1
deliver all
"""
    settings = Settings(
        next(told_brokers.SEEDS), profile=REPLICATION, faults=("stale-order-obeyed",), strict=True
    )
    runner = BrokersRunner(settings, tmp_path, server=own_server)
    runner.replay(parse_story(text, "a.txt"))
    assert (runner.result.died, runner.result.failure is not None) == ("", True)


def test_superseded_controller_is_not_obeyed_by_who_has_just_started(
    tmp_path: Path, own_server: Server
) -> None:
    """A seed of the gate once had a broker follow what it was moved away from while it was dead."""
    text = """world brokers

3 crashes
another controller is elected
move to 1
the controller works
3 starts
"""
    settings = Settings(next(told_brokers.SEEDS), profile=REPLICATION)
    runner = BrokersRunner(settings, tmp_path, server=own_server)
    runner.replay(parse_story(text, "a.txt"))
    assert (runner.result.died, runner.result.failure) == ("", None)


def test_clause_counts_only_where_its_situations_came_up(
    tmp_path: Path, own_server: Server
) -> None:
    """A run in which nothing came late has not put to the test what late orders do."""
    result = tell(tmp_path, own_server, name="a-record-is-committed")
    (found,) = (one for one in result.clauses if one.id == "epoch.replica.never-back")
    assert not found.exercised


def test_failed_run_of_brokers_names_files_that_are_there(
    tmp_path: Path, own_server: Server
) -> None:
    """The line that shows a violation is one of a file that the run has kept."""
    failure = tell(
        tmp_path, own_server, "late-stop-obeyed", "orders-from-before-a-deletion"
    ).failure
    kept = json.loads((tmp_path / "failure.json").read_text())["violations"]
    files = {violation["file"] for violation in kept if "file" in violation}
    assert failure is not None and failure.violation.file in {"", *files}
    assert files
    assert [file for file in files if not Path(file).is_file()] == []


def test_failed_run_of_brokers_is_repeated_as_it_says(tmp_path: Path, own_server: Server) -> None:
    """The tale that a run has kept breaks the same clause again, and none without the mistake."""
    assert (
        tell(tmp_path, own_server, "late-stop-obeyed", "orders-from-before-a-deletion").failure
        is not None
    )
    document, lines = replay(tmp_path)
    assert document.verdict == "violated"
    assert lines[0] == "same violation: epoch.replica.never-back"
    run = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps({**run, "faults": []}))
    assert replay(tmp_path)[0].verdict == "vacuous"
