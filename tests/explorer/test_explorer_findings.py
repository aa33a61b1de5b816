"""Every finding about steps comes out as a shortest story, and as a scenario that says the same."""

from dataclasses import replace

import pytest

from reassure_conformance.answers.exploring import render_outcomes, run_on_controller
from reassure_conformance.scenarios.scenario import compare, parse_scenario, run_scenario
from reassure_conformance.scenarios.telling import NotTheSame, get_text, tell
from reassure_explorer.engine.derived import explore_derived
from reassure_explorer.engine.plain import explore_plain
from reassure_explorer.engine.result import Verdict, Violation
from reassure_explorer.scopes.catalogue import SCOPES, get_model
from reassure_explorer.scopes.counts import COUNTS
from reassure_explorer.scopes.sweep import (
    INSTANCES,
    LIVENESS,
    Instance,
    derive,
    narrow,
    sweep,
)
from reassure_spec.readings import get_profile


def _name(instance: Instance) -> str:
    return f"{instance.finding} {instance.chosen_profile} {instance.scope}"


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
    ("heal-1", "healing-promises", "heal.task.no-live-replica-removed", "kip-46", "stale"),
    ("legacy-3", "old-znode-promises", "legacy.rewrite.taken-up", "kip-236-legacy", "rewrite"),
)
_CURES = {
    "stale": {"heal.stale-task": "skip"},
    "rewrite": {"legacy.rewrite": "taken-up"},
}


@pytest.mark.parametrize(("finding", "scope", "invariant", "profile", "cure"), MENDED)
def test_amendment_leaves_no_story(
    finding: str, scope: str, invariant: str, profile: str, cure: object
) -> None:
    """Where the finding is mended the same invariant holds in every state of the same scope."""
    assert finding in {instance.finding for instance in INSTANCES}
    readings = _CURES[cure] if isinstance(cure, str) else {}
    _, model = get_model(scope, profile, readings)
    assert explore_derived(narrow(model, invariant)).verdict is Verdict.HOLDS


@pytest.mark.parametrize(
    "finding", ["drop-16", "protocol-1", "move-5", "zk-9", "heal-3", "legacy-1", "election-1"]
)
def test_story_is_a_scenario_that_shows_the_same(finding: str) -> None:
    """A story of each world, told as a scenario, runs as it stands, and ends the same."""
    instance = next(i for i in INSTANCES if i.finding == finding)
    profile = instance.chosen_profile
    readings, model = get_model(instance.scope, profile, instance.readings)
    (violation,) = explore_derived(narrow(model, instance.invariant)).violations
    scenario = tell(instance.scope, profile, readings, violation)
    again = parse_scenario(get_text(scenario), "counterexamples/again.txt")
    assert compare(again, run_scenario(again)) == ""
    assert again.readings == readings
    assert instance.invariant in again.clauses


def test_scenario_that_ends_otherwise_is_noticed() -> None:
    """A story whose last state is not what its steps lead to is no scenario."""
    readings, model = get_model("moves", "kafka-42")
    (violation,) = explore_derived(narrow(model, "move.isr.within-assigned")).violations
    *before, last = violation.story.steps
    wrong = replace(last, state=last.state.replace(leader=3))
    story = replace(violation.story, steps=(*before, wrong))
    with pytest.raises(NotTheSame, match="leader 3"):
        tell("moves", "kafka-42", readings, Violation(violation.invariant, "", story))


SMALL = ("moves", "healing-promises", "old-znode-promises", "shipped-change")


@pytest.mark.parametrize("scope", SMALL)
def test_engines_agree_on_the_other_models(scope: str) -> None:
    """Plain and derived engine agree on every count of a scope of the other profiles."""
    model = SCOPES[scope].make_model(get_profile(SCOPES[scope].profile))
    plain, derived = explore_plain(model, keep_going=True), explore_derived(model, keep_going=True)
    for part in ("distinct", "generated", "levels", "goals", "actions", "notes"):
        assert getattr(plain, part) == getattr(derived, part), part
    assert {v.invariant: len(v.story.steps) for v in plain.violations} == {
        v.invariant: len(v.story.steps) for v in derived.violations
    }


def test_sweep_says_what_each_reading_mends_and_breaks() -> None:
    """Of KAFKA-42's readings each repair mends what its finding says, and others nothing."""
    names = ("move.expand-first", "move.cut-isr", "move.recheck-before-stop", "drop.slice")
    mended = {(d.reading, d.value): set(d.mended) for d in sweep("moves", names=names)}
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


def test_calm_story_is_the_same_on_the_controller() -> None:
    """The real controller follows a calm story line by line; another kind is not told to it."""
    calm = next(i for i in INSTANCES if i.scope == "promises-calm")
    scenarios = {}
    for instance in (calm, next(i for i in INSTANCES if i.finding == "move-5")):
        profile = instance.chosen_profile
        readings, model = get_model(instance.scope, profile, instance.readings)
        (violation,) = explore_derived(narrow(model, instance.invariant)).violations
        scenarios[instance.finding] = tell(instance.scope, profile, readings, violation)
    outcomes = run_on_controller(scenarios, lambda *_: None)
    assert outcomes[calm.finding].found[-1][0].startswith("assigned [1]")
    assert outcomes[calm.finding].difference == ""
    assert outcomes["move-5"].skipped.startswith("world kafka-42")
    words = render_outcomes(outcomes)
    assert f"{calm.finding}: does the same, line by line" in words
    assert "move-5: not told, world kafka-42" in words


def test_shipped_leader_may_have_no_log() -> None:
    """A controller gone before it has deleted the last of an empty entry: an empty replica leads.

    The same comes about without the old znode (finding zk-10).
    """
    story = derive(Instance("", "shipped", "shipped.leader.holds-committed", 8))
    assert story is not None
    assert len(story.steps) == 8
    assert [step.action for step in story.steps].count("failover") == 1
