"""Every finding about steps comes out as a shortest story, and as a scenario that says the same."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reassure_conformance.answers.exploring import write_stories
from reassure_conformance.scenarios.scenario import (
    compare,
    find_scenario,
    parse_scenario,
    run_scenario,
)
from reassure_conformance.scenarios.telling import NotTheSame, get_text, tell
from reassure_explorer.counterexamples import Counterexample, list_counterexamples
from reassure_explorer.engine.derived import explore_derived
from reassure_explorer.engine.explore import explore
from reassure_explorer.engine.interface import ModelError
from reassure_explorer.engine.result import Verdict, Violation
from reassure_explorer.scopes.catalogue import COUNTS, MEETINGS, SCOPES, explore_scope, get_model
from reassure_explorer.scopes.sweep import (
    INSTANCES,
    LIVENESS,
    Instance,
    derive,
    narrow,
    sweep,
)
from reassure_spec.findings import FINDINGS
from reassure_spec.readings import get_profile


def _name(instance: Instance) -> str:
    return f"{instance.finding} {instance.profile} {instance.scope}"


@pytest.mark.sampled(5)
@pytest.mark.parametrize("instance", INSTANCES, ids=_name)
def test_finding_comes_out_as_shortest_story(instance: Instance) -> None:
    """The finding breaks its invariant, in exactly as many steps as the table says."""
    story = derive(instance)
    assert story is not None
    assert len(story.steps) == instance.steps


MENDED = (
    ("drop-4", "promises-one", "drop.protect-target", "kip-236-amended", {}),
    ("drop-6", "promises", "drop.keep-top", "kip-236-amended", {}),
    ("drop-10", "promises-min-two", "target.at-least-min-isr", "kip-236-amended", {}),
    ("move-1", "moves", "move.isr.without-deleted", "kip-236-amended", {}),
    (
        "heal-1",
        "healing-promises",
        "heal.task.no-live-replica-removed",
        "kip-46",
        {"heal.stale-task": "skip"},
    ),
    (
        "legacy-3",
        "old-znode-promises",
        "legacy.rewrite.taken-up",
        "kip-236-legacy",
        {"legacy.rewrite": "taken-up"},
    ),
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("finding", "scope", "invariant", "profile", "cure"), MENDED)
def test_amendment_leaves_no_story(
    finding: str, scope: str, invariant: str, profile: str, cure: dict[str, str]
) -> None:
    """Where the finding is mended the same invariant holds in every state of the same scope."""
    assert finding in {instance.finding for instance in INSTANCES}
    _, model = get_model(scope, profile, cure)
    assert explore_derived(narrow(model, invariant)).verdict is Verdict.HOLDS


TOLD = (
    ("promises", "drop.carried-out", {}),
    ("promises", "child.before-effects", {"request.persist": "effects-first"}),
    ("moves", "move.isr.within-assigned", {}),
    ("shipped-change", "shipped.isr.without-deleted", {}),
    ("healing-promises", "heal.target.live", {}),
    ("old-znode-promises", "legacy.entry.refused-removed", {}),
    ("logs", "log.committed-kept", {}),
)


@pytest.mark.parametrize(("scope", "invariant", "changes"), TOLD)
def test_story_is_a_scenario_that_shows_the_same(
    scope: str, invariant: str, changes: dict[str, str]
) -> None:
    """A story of each protocol, told as a scenario, runs as it stands, and ends the same."""
    profile = SCOPES[scope].profile
    readings, model = get_model(scope, profile, changes)
    (violation,) = explore_derived(narrow(model, invariant)).violations
    scenario = tell(scope, profile, readings, violation)
    again = parse_scenario(get_text(scenario), "counterexamples/again.txt")
    assert compare(again, run_scenario(again)) == ""
    assert again.readings == readings
    assert invariant in again.clauses


# Small worlds -----------------------------------------------------------------------------------

SHOWN_ELSEWHERE = {
    "story-legal-transitions": "is no valid previous state",
    "story-found-in-sync-is-finished": "is not alive; path removed",
    "story-path-goes-with-its-command": "path left to the controller",
    "story-online-replica-is-elected": "replica 2: a new one may only follow",
    "story-new-replica-follows": "replica 2: a new one may only follow",
    "story-started-only-if-assigned": "running [1,2]",
    "story-target-in-sync-after-stop": "isr [4]",
    "story-cut-once": "leader 2 epoch 2 isr [2,1]",
    "story-stored-set-as-defined": "isr [0,1] version 0 pseudo [0]",
    "story-refused-entry-goes": "old znode: t-0 to [3]",
    "story-cancelled-by-either-route": "request 1 waits: [1]",
    "story-rewrite-is-seen": "old znode: t-0 to [3]",
    "story-task-removes-no-live-replica": "task 0 automatic t-0 [3,2]",
    "story-queue-goes-on": "task 0 automatic t-0 [3,2] running",
    "story-targets-are-live": "failed 2",
    "story-one-meaning-of-redundancy": "task 0 automatic",
    "story-tasks-made-once": "task 1 automatic",
    "story-queue-names-each-once": "task 2 automatic t-0 [3,2]",
}
"""What the world of a scenario shows where it has other words for it than the problem."""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("found", list_counterexamples(), ids=lambda found: found.name)
def test_counterexample_is_its_scenario(
    found: Counterexample, request: pytest.FixtureRequest
) -> None:
    """The scenario is the shortest trace that is found now, word for word, and shows its end."""
    readings, model = get_model(found.name, found.profile, found.readings)
    (violation,) = explore(model).result.violations
    told = tell(found.name, found.profile, readings, violation)
    path = find_scenario(f"counterexamples/{found.name}")
    if request.config.getoption("--rewrite-scenarios"):
        path.write_text(get_text(told), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == get_text(told)
    answers = "\n".join(line for block in told.blocks for line in block.expected)
    assert "not possible" not in answers
    assert SHOWN_ELSEWHERE.get(found.name, violation.reason) in answers


REPAIRED = {
    "move.expand-first": "yes",
    "move.cut-isr": "yes",
    "move.recheck-before-stop": "yes",
    "election.unclean": "no",
}


@pytest.mark.parametrize(
    "name",
    [
        "story-no-stopped-replica-in-sync",
        "story-no-stopped-replica-elected",
        "story-no-leader-stopped",
        "story-not-given-up-half-way",
    ],
)
def test_repaired_move_has_no_story(name: str) -> None:
    """With every repair that the findings ask for, exploration ends and finds nothing broken."""
    _, model = get_model(name, "kafka-42", REPAIRED)
    assert explore(model).verdict is Verdict.HOLDS


def test_small_world_is_left_to_the_plain_engine() -> None:
    """A small world has no bounds: it is explored plainly, and whatever else needs them refuses."""
    _, model = get_model("story-queue-goes-on", "kip-46")
    assert explore(model, engine="derived").result.engine == "plain"
    with pytest.raises(ModelError, match="plain engine"):
        explore_derived(model)


@pytest.mark.parametrize("meeting", ["meeting-of-deletion", "meeting-of-calls"])
def test_meeting_breaks_only_what_the_register_knows(meeting: str) -> None:
    """Where protocols meet, whatever is broken is the matter of a finding."""
    scope = MEETINGS[meeting]
    broken = explore(scope.make_model(get_profile(scope.profile)), keep_going=True).result
    assert broken.unfinished is None
    known = {clause for f in FINDINGS if scope.profile in f.profiles for clause in f.clauses}
    assert broken.violations
    assert {violation.invariant for violation in broken.violations} <= known


def test_both_documents_together_lose_nothing_that_was_shown() -> None:
    """A move and the move back, of replicas with logs: to the end, and with the pinned counts."""
    found = explore_scope("meeting-of-logs", "kip-236-amended")
    assert found.verdict is Verdict.HOLDS and found.pinned is not None


@pytest.mark.parametrize(
    ("scope", "readings", "clause", "steps"),
    [
        # Who left, and came again in the same leader epoch, is taken for who it was.
        ("meeting-of-logs-and-strangers", {}, "isr.stored.holds-committed", 23),
        ("meeting-of-logs-and-lost-disks", {}, "isr.stored.holds-committed", 5),
        ("meeting-of-logs", {"hw.served-from": "at-once"}, "hw.consumer.monotone", 13),
        ("meeting-of-logs", {"isr.entry": "high-watermark"}, "isr.stored.holds-committed", 24),
    ],
)
def test_both_documents_together_need_what_they_say(
    scope: str, readings: Any, clause: str, steps: int, tmp_path: Path
) -> None:
    """With a switch, or an amendment less, a record that was shown is lost, by the shortest way."""
    found = explore_scope(scope, "kip-236-amended", readings)
    broken = {each.invariant: len(each.trace.steps) for each in found.result.violations}
    assert broken[clause] == steps
    write_stories(found, tmp_path)  # no scenario can tell of two models
    assert not (tmp_path / "counterexamples").exists()


def test_scenario_that_ends_otherwise_is_noticed() -> None:
    """A story whose last state is not what its steps lead to is no scenario."""
    readings, model = get_model("moves", "kafka-42")
    (violation,) = explore_derived(narrow(model, "move.isr.within-assigned")).violations
    *before, last = violation.trace.steps
    wrong = replace(last, state=last.state.replace(leader=3))
    story = replace(violation.trace, steps=(*before, wrong))
    with pytest.raises(NotTheSame, match="leader 3"):
        tell("moves", "kafka-42", readings, Violation(violation.invariant, "", story))


def test_sweep_says_what_each_reading_mends_and_breaks() -> None:
    """Of KAFKA-42's readings each repair mends what its finding says, and others nothing."""
    names = ("move.expand-first", "move.cut-isr", "move.recheck-before-stop", "drop.slice")
    found = list(sweep("moves", names=names))
    assert all(difference.findings for difference in found)
    mended = {(d.reading, d.value): set(d.mended) for d in found}
    assert "move.start.expand-first" in mended["move.expand-first", "yes"]
    assert "move.isr.without-deleted" in mended["move.cut-isr", "yes"]
    assert "move.step.stop-old" in mended["move.recheck-before-stop", "yes"]
    assert ("drop.slice", "exclusive") not in mended


def test_lasso_ends_where_its_cycle_begins() -> None:
    """The story of a livelock comes back to a state that it has been in."""
    instance = next(i for i in INSTANCES if i.finding == "drop-5" and i.scope != "restless")
    assert instance.invariant == LIVENESS
    story = derive(instance)
    assert story is not None
    assert story.last in [step.state for step in story.steps[:-1]]


def test_every_scope_has_its_counts() -> None:
    """The counts of every scope under its own profile are written down."""
    assert {(scope.name, scope.profile) for scope in SCOPES.values()} <= set(COUNTS)


def test_shipped_leader_may_have_no_log() -> None:
    """A controller gone before it has deleted the last of an empty entry: an empty replica leads.

    The same comes about without the old znode (finding zk-10).
    """
    story = derive(Instance("", "shipped", "shipped.leader.holds-committed", 8, profile="kafka-zk"))
    assert story is not None
    assert len(story.steps) == 8
    assert [step.action for step in story.steps].count("failover") == 1
