"""The scenarios of the spec, told to the bundled controller on a real ZooKeeper."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from reassure_conformance.adapter.bundled import find_unsupported
from reassure_conformance.cli import run_command
from reassure_conformance.mutants import load_mutants
from reassure_conformance.protocols.kafka_42 import live as kafka_42
from reassure_conformance.protocols.kafka_4485 import leader_terms
from reassure_conformance.protocols.kafka_4485 import live as kafka_4485
from reassure_conformance.scenarios.live import (
    LiveServer,
    find_reason_to_skip,
    run_live,
)
from reassure_conformance.scenarios.live.live_server import find_live_worlds
from reassure_conformance.scenarios.scenario import (
    Scenario,
    find_scenario,
    find_scenarios,
    parse_scenario,
    read_scenario,
)
from reassure_zookeeper.server import Server

EVERY: Final = tuple(read_scenario(path) for path in find_scenarios())
TOLD: Final = tuple(scenario for scenario in EVERY if not find_reason_to_skip(scenario))

ANOTHER_WAY: Final = "the controller goes another way, which the rules allow"
MIDDLE: Final = "a start that every controller takes for the middle of a change"
DEFINED: Final = "the in-sync set as it is defined, where a leader has it stored"
REFUSED: Final = "the leader refuses a change of the in-sync set that the rules allow"
MOVED: Final = "a partition that is moved, taken for where it was and not for where it goes"
ENDS_EARLY: Final = {
    # A broker dies in the middle of a plan, which the controller finishes before it looks.
    "counterexamples/story-one-drop-for-a-change": ANOTHER_WAY,
    "failover/one-more-dropped-after-an-election": ANOTHER_WAY,
    # More is assigned than a drop would have left, so the first controller drops it.
    "reassignment/target-in-sync-with-others": MIDDLE,
    # The leader was told its target, and a new controller does not tell it otherwise.
    "reassignment/stopped-replica-stays-out": REFUSED,
    # A plan is carried out to its end, whoever returns and whatever time it is by then.
    "counterexamples/story-queue-names-each-once": ANOTHER_WAY,
    "kip-46/back-while-tasks-are-generated": ANOTHER_WAY,
    # Where partitions are moved by requests they count as where they go, in the model as well.
    "kip-46/dead-target-stops-the-queue": MOVED,
    "kip-46/queue-grows-while-two-are-away": MOVED,
    # The document defines the in-sync set afresh each time; brokers store it.
    "counterexamples/empty-follower-is-not-waited-for": DEFINED,
    "kafka-4485/answer-waits-for-the-mark": DEFINED,
    "kafka-4485/guarantee-3": DEFINED,
    "kafka-4485/guarantee-4": DEFINED,
    "kafka-4485/leader-again": DEFINED,
    "kafka-4485/watermark-10": DEFINED,
    "kafka-4485/watermark-waits-for-close-follower": DEFINED,
    # The model's controller looks for the dead before each of its effects.
    "counterexamples/story-no-leader-stopped": kafka_42.PLAN_FIRST,
    "counterexamples/story-no-stopped-replica-elected": kafka_42.PLAN_FIRST,
    "counterexamples/story-not-given-up-half-way": kafka_42.PLAN_FIRST,
    "kafka-42/any-assigned-replica-leads": kafka_42.PLAN_FIRST,
    "kafka-42/failover-dead-target-not-in-sync": kafka_42.PLAN_FIRST,
    "kafka-42/failover-gives-up-half-way": kafka_42.PLAN_FIRST,
    "kafka-42/leader-change-unanswered": kafka_42.PLAN_FIRST,
    "kafka-42/leader-is-stopped": kafka_42.PLAN_FIRST,
    "kafka-42/one-in-sync-after-stop": kafka_42.PLAN_FIRST,
    "kafka-42/one-in-sync-after-stop-repaired": kafka_42.PLAN_FIRST,
    "kafka-42/stopped-replica-is-elected": kafka_42.PLAN_FIRST,
    # It takes all old replicas out of the in-sync set before it deletes the first of them.
    "counterexamples/story-target-in-sync-after-stop": ANOTHER_WAY,
    # The leader was told its target, and takes in nobody else.
    "counterexamples/story-cut-once": REFUSED,
    "kafka-42/cut-replica-joins-again": REFUSED,
    # Whom it has not heard in its term it does not take in.
    "counterexamples/story-entry-holds-committed": REFUSED,
    "kafka-4485/election-3": REFUSED,
    # What a leader knows of a follower comes by its fetches, and by the time since.
    "kafka-4485/clean-elections-only": leader_terms.AT_ONCE,
    "kafka-4485/close-follower-holds-the-mark": leader_terms.ALONE,
    "kafka-4485/entry-below-the-mark": leader_terms.ALONE,
    "kafka-4485/entry-in-second-term": leader_terms.ALONE,
    "kafka-4485/new-member-holds-the-mark": leader_terms.ALONE,
    # The model alone can say that nothing is reachable.
    "kafka-42/recheck-keeps-the-leader": kafka_42.NOTHING_FOUND,
}
"""Scenarios of which only a first part can be told, each with the reason."""

NOT_TOLD: Final = {
    "kip-46/quota-is-a-share": "world kip-46: a share of the bandwidth, which no controller is "
    "asked for",
    "kip-46/stale-task-is-skipped": "world kip-46: that nothing leads to a state, which only a "
    "search can say",
}
"""Scenarios of the old znode and of healing that are told to the model alone, with the reasons."""

CAUGHT_BY: Final = {
    "drop-slice-exclusive": ("batches/cancel-of-one", "drop.keep-top"),
    "drop-after-expansion": ("batches/identity-changed", "drop.before-expansion"),
    "drop-skipped": ("drop/top-stored-once", "drop.before-expansion"),
    "stop-before-in-sync": ("batches/broker-of-one-target-is-down", "complete.target-in-sync"),
    "leader-outside-target": ("batches/cancel-of-one", "complete.leader-in-target"),
    "delete-request-before-child": ("batches/cancel-of-one", "request.delete.child-first"),
    "requests-unsorted": ("batches/sequence-for-each-partition", "request.order.sequence"),
    "top-recomputed-on-failover": ("batches/identity-unchanged", "top.once-per-chain"),
    "no-epoch-check": ("batches/cancel-of-one", "controller.write.epoch-checked"),
    "unconditional-state-write": (
        "reassignment/set-changed-before-the-epoch-is-raised",
        "state.write-conditional",
    ),
    "child-recreated": ("batches/cancel-of-one", "child.update-in-place"),
    "unknown-partition-kept": ("failover/cancel-found-at-failover", "request.consumed"),
    "isr-keeps-removed": ("batches/cancel-of-one", "complete.isr-before-assigned"),
    "top-below-min-accepted": ("requests/too-few-replicas-for-the-minimum", "top.at-least-min-isr"),
    "duplicate-target-accepted": ("requests/replica-twice", "request.refuse.duplicate-replica"),
    "expand-skipped-order": ("batches/cancel-of-one", "complete.isr-before-assigned"),
    "completion-keeps-child": ("batches/cancel-of-one", "complete.carried-out"),
    "completion-unannounced": ("batches/shuffled-while-brokers-bounce", "complete.announced"),
    "election-any-assigned": ("leaders/offline-until-the-last-in-sync-returns", "election.clean"),
    "no-epoch-bump-on-election": ("batches/cancel-of-one", "leader-epoch.raised-by-one"),
    "resume-skipped": ("failover/target-is-assigned-already", "complete.carried-out"),
    "malformed-request-kept": ("requests/content-that-is-not-json", "request.consumed"),
    "dead-replica-kept": ("batches/shuffled-while-brokers-bounce", "isr.remove.dead"),
    "target-reordered": ("batches/cancel-of-what-is-left", "complete.target-order"),
    "update-resets-top": ("batches/cancel-of-one", "top.once-per-chain"),
    "old-znode-ignored": (
        "counterexamples/story-cancelled-by-either-route",
        "legacy.translate.request",
    ),
    "first-entry-translated": (
        "kip-236-legacy/entries-leave-one-by-one",
        "legacy.translate.request",
    ),
    "added-entries-ignored": ("kip-236-legacy/rewrite-is-taken-up", "legacy.translate.request"),
    "old-znode-read-once": ("kip-236-legacy/delete-and-create-again", "legacy.translate.request"),
    "translated-unmarked": (
        "counterexamples/story-cancelled-by-either-route",
        "legacy.translate.flag",
    ),
    "old-znode-before-queue": (
        "kip-236-legacy/failover-after-record",
        "legacy.failover.sources-in-order",
    ),
    "entry-removed-early": (
        "counterexamples/story-cancelled-by-either-route",
        "legacy.translate.request",
    ),
    "entry-kept-when-done": (
        "kip-236-legacy/entries-leave-one-by-one",
        "legacy.entry.before-child",
    ),
    "entry-removed-after-record": (
        "kip-236-legacy/entries-leave-one-by-one",
        "legacy.entry.before-child",
    ),
    "newer-entry-removed": ("kip-236-legacy/rewrite-is-ignored", "legacy.entry.matching-target"),
    "refused-entry-kept": ("kip-236-legacy/empty-znode", "legacy.znode.deleted-with-last"),
    "old-znode-left-empty": (
        "kip-236-legacy/delete-and-create-again",
        "legacy.znode.deleted-with-last",
    ),
    "old-znode-gone-cancels": ("kip-236-legacy/client-deletes-the-znode", "complete.child-last"),
    "malformed-old-znode-kept": ("kip-236-legacy/malformed-znode", "legacy.znode.malformed"),
    "entry-removed-before-target": ("kafka-42/case-1-leader-in-target", "move.path.others-kept"),
    "path-removed-whole": (
        "kafka-42/other-partitions-stay-under-the-path",
        "move.path.others-kept",
    ),
    "failure-not-recorded": (
        "counterexamples/story-one-meaning-of-redundancy",
        "heal.record.complete",
    ),
    "record-refreshed": ("counterexamples/story-tasks-made-once", "heal.record.first-failure"),
    "record-kept-on-return": ("kip-46/back-in-time", "heal.record.deleted-on-return"),
    "record-kept-when-scheduled": (
        "kip-46/a-broker-stays-away",
        "heal.record.deleted-when-scheduled",
    ),
    "record-deleted-first": ("kip-46/a-broker-stays-away", "heal.record.deleted-when-scheduled"),
    "task-unmarked": ("kip-46/a-broker-stays-away", "heal.generate.persisted"),
    "replacement-dead": ("kip-46/second-failure-not-due", "heal.target.live"),
    "replacement-twice": ("kip-46/nobody-can-take-over", "heal.target.no-duplicate"),
    "replacement-not-spread": ("kip-46/spread-evenly", "heal.target.even"),
    "newest-task-first": ("kip-46/one-task-at-a-time", "heal.task.in-order"),
    "tasks-together": ("kip-46/one-task-at-a-time", "heal.task.one-at-a-time"),
    "running-task-cancelled": (
        "kip-46/running-task-is-never-cancelled",
        "heal.cancel.never-running",
    ),
    "needless-task-started": ("kip-46/cancelled-when-back", "heal.cancel.enough-replicas"),
    "operator-task-cancelled": (
        "kip-46/operators-task-is-never-cancelled",
        "heal.cancel.automatic-only",
    ),
    "senseless-task-kept": ("kip-46/bad-tasks", "heal.task.refuse-duplicate"),
}
"""A scenario for each planted fault, and the clause that it breaks first there."""


MOVED_WRONGLY: Final = {
    "dead-replica-kept": "kafka-42/dead-old-replica-is-stopped",
    "dead-target-taken": "kafka-42/dead-target-is-refused",
    "entries-not-resumed": "kafka-42/case-6-done-up-to-step-3",
    "found-move-given-up": "kafka-42/failover-after-election-leader-dead",
    "in-sync-set-unwatched": "kafka-42/case-1-leader-in-target",
    "missing-entry-kept": "kafka-42/case-4-missing-partition",
    "start-not-sent": "kafka-42/case-1-leader-in-target",
    "stop-not-sent": "kafka-42/case-1-leader-in-target",
    "shutdown-keeps-leading": "kafka-42/controlled-shutdown",
    "stop-sent-to-all": "kafka-42/case-1-leader-in-target",
}
"""A scenario for planted faults in the seven steps, which no log shows by itself."""

CONCLUDED_WRONGLY: Final = {
    "credit-any-fetch": "kafka-4485/after-no-flapping",
    "credit-compares-itself": "kafka-4485/after-no-flapping",
    "credit-without-last-fetch": "kafka-4485/after-no-flapping",
    "entry-refused": "kafka-4485/after-no-flapping",
    "laggard-kept": "kafka-4485/after-no-flapping",
    "leader-not-counted": "kafka-4485/after-no-flapping",
    "limit-doubled": "kafka-4485/after-no-flapping",
    "mark-goes-back": "kafka-4485/guarantee-3",
    "mark-of-all-assigned": "kafka-4485/after-no-flapping",
    "mark-of-in-sync-only": "kafka-4485/answer-waits-for-the-mark",
    "isr-unconditional": "kafka-4485/write-conflict",
    "mark-not-of-stored": "kafka-4485/election-1-amended",
    "mark-of-any-follower": "kafka-4485/new-leader-commits-old-records",
    "served-at-once": "kafka-4485/new-leader-commits-old-records",
    "served-beyond-mark": "kafka-4485/a-record-is-committed",
    "stale-fetch-noted": "kafka-4485/stale-fetch-is-fenced",
    "truncates-to-end": "kafka-4485/election-5-amended",
    "truncates-to-mark": "kafka-4485/same-leader-elected-again-amended",
    "truncation-skipped": "kafka-4485/uncommitted-record-goes",
    "interval-not-awaited": "kip-46/not-before-the-interval",
    "task-of-any-size": "kip-46/tasks-are-small",
}
"""A scenario for planted faults that nothing but their lines shows: of brokers with logs, and of
settings that stand in no znode."""


def name_of(scenario: Scenario) -> str:
    """Area and name."""
    return f"{scenario.area}/{scenario.name}"


def read_named(name: str) -> Scenario:
    """The scenario of the spec with this area and name."""
    return read_scenario(find_scenario(name))


@pytest.fixture(autouse=True)
def _quiet_log() -> Iterator[None]:
    """Keep what the controller warns of out of the test report."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module")
def live(zookeeper_server: Server) -> Iterator[LiveServer]:
    """A place for all scenarios on the shared server."""
    with LiveServer(zookeeper_server, chroot_prefix="/live-scenarios") as server:
        yield server


@pytest.mark.sampled(6)
@pytest.mark.parametrize("scenario", TOLD, ids=name_of)
def test_controller_does_what_the_scenario_expects(scenario: Scenario, live: LiveServer) -> None:
    """Every line is as in the model, and the log breaks no clause; or it ends early as known."""
    outcome = run_live(scenario, live)
    assert not outcome.failed, f"{outcome.difference}\n{outcome.violations}"
    assert outcome.skipped == ENDS_EARLY.get(name_of(scenario), ""), outcome.detail
    # A leader with a clock is told to what brokers conclude with: it has no cluster.
    assert outcome.transactions > 0 or kafka_4485.LIMIT in scenario.blocks[0].arguments


def test_nearly_all_of_the_world_with_a_controller_is_told() -> None:
    """Of what the controller has the readings for, nine files in ten are told to the end."""
    own = {
        name_of(scenario)
        for scenario in EVERY
        if scenario.world == "kip-236" and not find_unsupported(scenario.readings)
    }
    told = {name_of(scenario) for scenario in TOLD}
    assert ENDS_EARLY.keys() <= told
    assert len((told & own) - ENDS_EARLY.keys()) * 10 >= len(own) * 9 > 0


def test_stories_of_the_old_znode_and_of_healing_are_told_but_for_known_reasons() -> None:
    """Of those two worlds no file is skipped but those that are listed, each for its reason."""
    own = [scenario for scenario in EVERY if scenario.world in ("kip-236-legacy", "kip-46")]
    reasons = {name_of(scenario): find_reason_to_skip(scenario) for scenario in own}
    assert {name: reason for name, reason in reasons.items() if reason} == NOT_TOLD


def test_worlds_without_a_controller_are_not_told() -> None:
    """Files of a world that nobody tells live are skipped; of each that somebody tells some are."""
    worlds = find_live_worlds()
    for scenario in EVERY:
        if scenario.world not in worlds:
            reason = f"world {scenario.world}: it is told to the model alone"
            assert find_reason_to_skip(scenario) == reason
    assert {scenario.world for scenario in TOLD} == worlds.keys()


def test_wrong_expectation_is_shown_as_a_diff(live: LiveServer) -> None:
    """A file that expects what the controller does not do fails, and the line is shown."""
    right = read_named("reassignment/a-move")
    text = "\n".join(right.script.lines).replace(
        "leader 2 isr [2,3] epoch 3", "leader 3 isr [2,3] epoch 3"
    )
    outcome = run_live(parse_scenario(text, "reassignment/wrong.txt"), live)
    assert outcome.failed
    assert not outcome.violations
    assert "-leader 3 isr [2,3] epoch 3 (complete.carried-out)" in outcome.difference.splitlines()
    assert "+leader 2 isr [2,3] epoch 3 (complete.carried-out)" in outcome.difference.splitlines()


def test_step_that_cannot_be_taken_is_shown_as_a_diff(live: LiveServer) -> None:
    """What the cluster cannot do is said in the output, and does not end the run."""
    text = "\n".join(read_named("reassignment/a-move").script.lines)
    text = text.replace("join replica=3", "die broker=9")
    outcome = run_live(parse_scenario(text, "reassignment/wrong.txt"), live)
    assert "+cannot: " in outcome.difference


def test_raise_that_nobody_owed_is_counted_and_not_shown(live: LiveServer) -> None:
    """A completion announces itself by an epoch although the cut of the set does so anyway."""
    outcome = run_live(read_named("drop/a-failover-is-no-change"), live)
    assert outcome.passed
    assert outcome.raises == {"p-0": 1}


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("fault", "name", "clause"), [(f, *by) for f, by in CAUGHT_BY.items()])
def test_planted_fault_is_caught(
    fault: str, name: str, clause: str, zookeeper_server: Server
) -> None:
    """Of a controller with a mistake in it the judge names first the clause made for that."""
    with LiveServer(zookeeper_server, (fault,), chroot_prefix=f"/live-{fault}") as faulty:
        outcome = run_live(read_named(name), faulty)
    assert outcome.failed
    assert clause in load_mutants()[fault].clauses
    assert [violation.clause for violation in outcome.violations][:1] == [clause]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("fault", "name"), (MOVED_WRONGLY | CONCLUDED_WRONGLY).items())
def test_what_only_lines_show_differs(fault: str, name: str, zookeeper_server: Server) -> None:
    """Whoever has such a mistake in it shows other lines than the file has."""
    with LiveServer(zookeeper_server, (fault,), chroot_prefix=f"/lines-{fault}") as faulty:
        assert run_live(read_named(name), faulty).difference


def test_verb_tells_the_controller(capsys: pytest.CaptureFixture[str]) -> None:
    """The verb counts what was told and what was not, each reason with its scenarios."""
    code = run_command(["scenarios", "batches", "--live", "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    area = [scenario for scenario in EVERY if scenario.area == "batches"]
    told = [scenario for scenario in area if scenario in TOLD]
    counts = document["counts"]
    assert code == document["exit_code"] == 0
    assert document["verdict"] == "holds"
    assert (counts["scenarios"], counts["passed"], counts["failed"]) == (len(area), len(told), 0)
    assert counts["skipped"] == sum(entry["count"] for entry in document["skipped"])
    assert {name for entry in document["skipped"] for name in entry["scenarios"]} == {
        name_of(scenario) for scenario in area if scenario not in TOLD
    }


def test_verb_that_told_nothing_is_vacuous(capsys: pytest.CaptureFixture[str]) -> None:
    """Where every scenario is skipped nothing was shown."""
    assert run_command(["scenarios", "kip-46/quota-is-a-share", "--live"]) == 3
    assert "VACUOUS" in capsys.readouterr().out


def test_verb_shows_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of one's own is told to the model; what differs is violated, with its diff."""
    text = "\n".join(read_named("reassignment/a-move").script.lines)
    path = tmp_path / "wrong.txt"
    path.write_text(text.replace("top 2", "top 7"), encoding="utf-8")
    assert run_command(["scenarios", str(path), "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["told_to"] == "model"
    assert "-in flight to [2,3], top 7" in document["failures"][0]["difference"].splitlines()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nowhere"], 65, "name an area"),
        (["drop", "--fault", "drop-skipped"], 64, "give --live as well"),
        (["drop", "--live", "--fault", "nothing"], 64, "no such fault"),
    ],
)
def test_verb_refuses_what_it_does_not_know(
    arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names and faults that there are not end with the code and the words of such errors."""
    assert run_command(["scenarios", *arguments]) == code
    assert words in capsys.readouterr().err
