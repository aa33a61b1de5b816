"""The kill matrix: every planted fault is caught by the clause that is made for it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.cli import run_command
from reassure_conformance.gate.faultmatrix import GONE, KILLED
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.story import shipped_stories
from reassure_conformance.mutants import (
    Mutant,
    load_mutants,
    message_mutants,
    watch_mutants,
    write_mutants,
)
from reassure_conformance.mutants.exchange import Patch
from reassure_conformance.report.document import read_result

TABLE = """
answer-lost: drop-slice-exclusive drop-after-expansion drop-skipped child-recreated
    update-resets-top unknown-repeated-blindly queue-watch-lost drop-takes-leader
    drop-takes-target
write-lost: unknown-taken-for-done
answer-lost-at-the-first-state: unknown-untold
change-with-min-isr: settings-removed
a-move-of-everything: stop-before-in-sync leader-outside-target delete-request-before-child
    no-epoch-check isr-keeps-removed expand-skipped-order completion-keeps-child
    no-epoch-bump-on-election target-reordered move-by-isr-order isr-keeps-only-removed
    removal-takes-all no-epoch-bump-on-removal epoch-raised-by-two old-epoch-stamped
    new-led-by-last new-isr-leader-only new-epoch-one expansion-skipped expansion-partial
    expansion-unannounced completion-needs-equality child-deleted-first parent-left-empty
    topic-id-lost topic-id-changed elected-in-two-steps elected-without-znode
    controller-znode-stays writes-as-a-client writes-as-a-broker start-not-sent
    start-sent-elsewhere start-with-old-assignment completion-not-sent
    election-not-sent told-before-written stop-not-sent stop-sent-to-all
    deaf-to-stop registration-stays stranger-taken-in deletion-not-begun deleted-while-online
    online-unmade
requests-in-order: requests-unsorted rest-of-queue-dropped
earlier-controller-again: top-recomputed-on-failover resume-skipped elected-epoch-skips
    fence-of-any-version memory-kept-over-terms
all-in-sync-die-at-once: unconditional-state-write completion-unannounced election-any-assigned
    dead-replica-kept dead-leader-left isr-emptied leaderless-isr-cut state-made-anew
    returned-not-told
bad-targets: unknown-partition-kept duplicate-target-accepted empty-target-accepted
    negative-target-accepted unknown-broker-accepted
topic-deleted: deletion-ignored deletion-not-sent deletion-ended-first deletion-leaves-settings
    unknown-deletion-kept
topic-deleted-while-moving: deletion-under-a-move deletion-begun-under-a-move deleted-topic-moved
topic-deleted-with-a-broker-down: deletion-without-a-broker deletion-begun-without-a-broker
topic-deletion-taken-over: deletion-resumed
topic-deletion-under-deaths: deleted-topic-led
preferred-leaders: preferred-ignored preferred-kept preferred-out-of-sync
brokers-stop: shutdown-keeps-leading shutdown-stays-in-sync shutdown-by-isr-order
minimum-of-the-default: default-minimum-ignored minimum-read-once
minimum-of-the-topic: own-minimum-ignored
unclean-of-the-topic: own-unclean-ignored
led-by-the-last: follower-leads
strangers-stay-out: dead-taken-in
too-few-replicas: top-below-min-accepted
malformed-requests: malformed-request-kept
elected-in-assigned-order: election-by-isr-order
leader-not-told: needless-epochs-at-failover failover-tells-nobody
failover-finds-the-dead: dead-at-failover-kept
leader-moves-under-a-change: conflict-forced-at-election
dead-replica-leaves-under-a-change: conflict-forced-at-removal
dropped-before-its-leader-is-told: untold-epoch-taken
dropped-replica-catches-up: drop-not-looked-at
drop-under-a-change: conflict-forced-at-drop
leader-last-in-sync-at-a-drop: drop-ranks-by-isr
request-changed: changed-request-dropped
request-withdrawn: withdrawn-stops-queue
change-keeps-the-leader: dead-target-refused
same-target-again: no-op-started same-target-written
legacy-and-new: route-conflict-ignored legacy-mark-lost
grow-shrink-reorder: top-of-target records-counted-up-only
foreign-record-beside-a-move: foreign-takes-all unreadable-kept unreadable-ends-reading
foreign-znodes: foreign-kept
cancel: drop-assigned-first dropped-not-stopped
target-falls-behind-while-completing: recheck-skipped
topic-grows-under-a-move: growth-ignored growth-overwritten
failover-with-two-moves: one-move-resumed
failovers-in-a-row: older-moves-not-resumed
broker-bounces-unseen: bounce-unseen
old-znode-a-move: old-znode-read-once entry-kept-when-done
old-znode-entries-of-all-kinds: old-znode-ignored first-entry-translated translated-unmarked
    entry-removed-early entry-removed-after-record refused-entry-kept old-znode-left-empty
    malformed-old-znode-kept
old-znode-and-requests: records-watched
old-znode-answer-lost: translated-twice
old-znode-overwritten: added-entries-ignored newer-entry-removed
old-znode-found: old-znode-before-queue
old-znode-deleted: old-znode-gone-cancels
healing-a-broker: failure-not-recorded record-kept-when-scheduled record-deleted-first
    interval-not-awaited task-unmarked task-of-any-size replacement-not-spread newest-task-first
    tasks-together running-task-cancelled
healing-back-in-time: record-kept-on-return
healing-back-while-tasks-wait: needless-task-started
healing-by-an-operator: operator-task-cancelled senseless-task-kept
healing-by-the-next: record-refreshed
healing-operator-answer-lost: task-started-twice
healing-half-done-by-an-operator: task-cancelled-for-one
healing-nobody-left: replacement-twice
healing-partly-needless: needless-rest-started
healing-partly-refused: task-refused-for-one task-runs-while-all-move
healing-two-at-once: replacement-dead
first-a-move: answer-waited-for in-sync-set-unwatched entry-removed-before-target
    path-removed-whole started-online new-for-ever new-told-to-lead
first-leader-dies: found-move-given-up
first-leader-stays: entries-not-resumed
first-overwritten: entry-in-flight-begun
first-refusals: dead-target-taken missing-entry-kept
"""
"""By shipped story, the faults that it catches: one story for each, so that this stays short.

`reassure mutants` runs all stories and generation against each.
"""
ROWS = (row.partition(": ") for row in TABLE.replace("\n    ", " ").strip().splitlines())
CASES = [(fault, name) for name, _, faults in ROWS for fault in faults.split()]


def test_every_fault_has_a_story() -> None:
    """Each planted fault is caught in exactly one story of the table, and there are at least 60.

    Those of brokers with logs have a table of their own, and what is derived has tests of its own.
    """
    mutants = load_mutants().items()
    derived = {
        name
        for each in (message_mutants, watch_mutants, write_mutants)
        for name, *_ in each.derive()
    }
    here = [name for name, one in mutants if not one.of_brokers and name not in derived]
    assert sorted(fault for fault, _ in CASES) == sorted(here)
    assert len(load_mutants()) >= 60


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("fault", "name"), CASES)
def test_story_catches_fault(fault: str, name: str, make_harness: Callable[..., Harness]) -> None:
    """The story breaks a clause that is made for the fault, and breaks it first."""
    mutant = load_mutants()[fault]
    profile = mutant.profile or "kip-236"
    bundled = Bundled(profile=profile, readings=mutant.readings, faults=(fault,))
    harness = make_harness(bundled, strict=True)
    story = next(story for story in shipped_stories() if story.name == name)
    example = harness.tell(story)
    harness.close()
    assert example.violations, f"{fault} survives {name}"
    assert example.violations[0].clause in mutant.clauses


def test_fault_that_no_longer_applies_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fault whose text has gone ends with 78 and says what to do, whatever is killed."""
    patch = Patch("plan", "nothing in the code reads like this", "")
    forgotten = Mutant("forgotten", "Its text has gone.", ("top.once-per-chain",), patches=(patch,))
    more = {**load_mutants(), "forgotten": forgotten}
    monkeypatch.setattr("reassure_conformance.mutants.load_mutants", lambda: more)
    monkeypatch.setattr("reassure_conformance.gate.faultmatrix.load_mutants", lambda: more)
    out = tmp_path / "run"
    plain = ["--examples", "1", "--no-stories", "--seed", "1", "--out", str(out)]
    code = run_command(["mutants", "forgotten", "registration-stays", *plain])
    said = capsys.readouterr().out
    document = read_result(out)
    outcomes = {kill["fault"]: kill["outcome"] for kill in document["matrix"]}
    assert (code, document["exit_code"], document["verdict"]) == (78, 78, "unknown")
    assert outcomes == {"forgotten": GONE, "registration-stays": KILLED}
    assert (document["counts"]["gone"], document["counts"]["killed"]) == (1, 1)
    assert "ERROR forgotten: reassure_controller.plan has 0 times and not once: 'nothing" in said
