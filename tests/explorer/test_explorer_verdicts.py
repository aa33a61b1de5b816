"""What a verdict takes: deadlock is looked for, invariants are typed, and holding is earned."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from toys import summarise

from reassure_conformance.answers.exploring import write_stories
from reassure_explorer.engine.derived import explore_derived
from reassure_explorer.engine.explore import explore
from reassure_explorer.engine.interface import Action, Goal, Int, Invariant, Model, ModelError
from reassure_explorer.engine.liveness import check_liveness
from reassure_explorer.engine.plain import explore_plain
from reassure_explorer.engine.result import Budget, Verdict
from reassure_explorer.engine.temporal import always_eventually, eventually
from reassure_explorer.scopes.catalogue import explore_scope, get_model, pin

ENGINES = (explore_derived, explore_plain)


def count_up(state: Any, _: Any) -> Any:
    """Count, up to three."""
    return state.replace(x=state.x + 1) if state.x < 3 else None


def never(state: Any, _: Any) -> Any:
    """Stay impossible for ever."""
    return state.replace(x=0) if state.x > 5 else None


def make_counter(**changes: Any) -> Model:
    """Count to three, and stop."""
    options: dict[str, Any] = {
        "name": "counter",
        "fields": {"x": Int(0, 9)},
        "initial": ({"x": 0},),
        "actions": (Action("count", count_up),),
        "invariants": (Invariant("small", lambda s: None if s.x < 8 else "large"),),
    }
    return Model(**{**options, **changes})


@pytest.mark.parametrize("run", ENGINES)
def test_deadlock_is_a_violation_with_a_shortest_trace(run: Any) -> None:
    """A state in which nothing can happen is reported with the way that leads to it."""
    result = run(make_counter())
    assert result.verdict is Verdict.VIOLATED
    (found,) = result.violations
    assert found.invariant == "deadlock"
    assert [step.action for step in found.trace.steps] == ["count"] * 3
    assert found.trace.last.x == 3
    stay = Action("stay", lambda s, _: s)
    assert run(make_counter(actions=(Action("count", count_up), stay))).verdict is Verdict.HOLDS


@pytest.mark.parametrize("run", ENGINES)
def test_terminal_says_which_ends_are_meant(run: Any) -> None:
    """An end that the author declares is no deadlock, and any other one stays one."""
    assert run(make_counter(terminal=lambda s: s.x == 3)).verdict is Verdict.HOLDS
    assert run(make_counter(terminal=lambda s: s.x == 2)).verdict is Verdict.VIOLATED


def test_state_outside_the_constraint_is_no_deadlock() -> None:
    """What is not expanded is not said to be stuck."""
    model = make_counter(constraint=lambda s: s.x < 2)
    assert [run(model).verdict for run in ENGINES] == [Verdict.HOLDS] * 2


@pytest.mark.parametrize("keep_going", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_engines_agree_on_deadlocks(
    monkeypatch: pytest.MonkeyPatch, threads: int, keep_going: bool
) -> None:
    """Derived and plain engine stop at the same place, with threads as without."""
    monkeypatch.setattr("reassure_explorer.engine.derived.PARALLEL_FROM", 4)

    def grow(state: Any, name: str) -> Any:
        value = getattr(state, name)
        if value == 6 or (state.a == 4 and (state.b + state.c) % 3 == 2):
            return None
        return state.replace(**{name: value + 1})

    model = Model(
        "grid",
        dict.fromkeys("abc", Int(0, 6)),
        (dict.fromkeys("abc", 0),),
        (Action("grow", grow, tuple("abc")),),
        terminal=lambda s: s.a != 4,
    )
    derived = explore_derived(model, keep_going=keep_going, threads=threads)
    plain = explore_plain(model, keep_going=keep_going)
    assert summarise(derived) == summarise(plain)
    assert derived.verdict is Verdict.VIOLATED


def test_fair_runs_may_end_where_they_are_settled() -> None:
    """Liveness asks what is settled, and nothing of deadlock."""
    model = make_counter(
        actions=(Action("count", count_up, fair=True),),
        temporal=(always_eventually("far", lambda s: s.x > 2),),
    )
    assert check_liveness(model).verdict is Verdict.HOLDS


def test_action_that_never_happens_is_named_and_counted() -> None:
    """A rule that is never possible is a warning, in words, in the counts and in the body."""
    model = make_counter(
        actions=(Action("count", count_up), Action("never", never)), terminal=lambda s: s.x == 3
    )
    found = explore(model)
    assert found.verdict is Verdict.HOLDS
    assert found.result.never_happened == ("never",)
    assert found.counts["actions_never_happened"] == 1
    assert found.make_body()["never_happened"] == ["never"]
    assert "warning: action never was never possible" in found.render()


def test_what_was_not_looked_at_to_the_end_does_not_say_never() -> None:
    """An exploration that was cut short warns of no action."""
    model = make_counter(actions=(Action("count", count_up), Action("never", never)))
    result = explore_plain(model)
    assert result.unfinished is not None
    assert result.never_happened == ()


@pytest.mark.parametrize("run", ENGINES)
def test_nothing_that_happens_is_vacuous(run: Any) -> None:
    """A model whose actions never happen earns no verdict."""
    result = run(make_counter(actions=(Action("never", never),), terminal=lambda s: True))
    assert result.verdict is Verdict.VACUOUS
    assert result.list_gaps() == ["no action was ever possible, so that nothing happened"]


def test_nothing_that_is_asked_is_vacuous() -> None:
    """Without an invariant and a goal nothing holds; a goal, or liveness, is enough."""
    model = make_counter(invariants=(), terminal=lambda s: s.x == 3)
    assert explore(model).exit_code == 3
    assert "give it an invariant or a goal" in explore(model).render()
    goal = replace(model, goals=(Goal("three", lambda s: s.x == 3),))
    assert explore(goal).verdict is Verdict.HOLDS
    fair = (Action("count", count_up, fair=True),)
    live = replace(model, actions=fair, temporal=(eventually("three", lambda s: s.x == 3),))
    assert explore(live, liveness=True).verdict is Verdict.HOLDS


@pytest.mark.parametrize("run", ENGINES)
@pytest.mark.parametrize(
    ("find", "reason"),
    [
        (lambda s: s.x < 2, "it is not true"),
        (lambda s: "" if s.x < 2 else "two", "two"),
        (lambda s: None if s.x < 2 else "two", "two"),
    ],
)
def test_invariants_answer_a_reason_or_a_truth(run: Any, find: Any, reason: str) -> None:
    """A text says why it is broken, True says that it holds, False that it does not."""
    (found,) = run(make_counter(invariants=(Invariant("low", find),))).violations
    assert (found.invariant, found.reason) == ("low", reason)
    assert len(found.trace.steps) == 2


@pytest.mark.parametrize("run", ENGINES)
def test_invariant_that_answers_anything_else_is_refused(run: Any) -> None:
    """A number is neither a reason nor a truth, and the message says what to write."""
    model = make_counter(invariants=(Invariant("low", lambda s: s.x),))
    with pytest.raises(ModelError, match="invariant low answered 0; it must answer True or False"):
        run(model)


def test_functions_with_the_wrong_parameters_are_named_with_their_place() -> None:
    """An action with one parameter is refused when the model is made, at its line."""

    def lonely(state: Any) -> Any:
        return state

    line = lonely.__code__.co_firstlineno
    with pytest.raises(ModelError, match=rf"action count.*test_explorer_verdicts.py:{line}") as e:
        Action("count", lonely)
    assert "def lonely(state, parameter)" in str(e.value)
    with pytest.raises(ModelError, match=r"invariant low: .* is called with \(state\)"):
        Invariant("low", lambda: None)
    with pytest.raises(ModelError, match="terminal"):
        make_counter(terminal=lambda a, b: True)
    with pytest.raises(ModelError, match="goal g: True is no function"):
        Goal("g", True)  # type: ignore[arg-type]


def test_counts_that_are_not_those_pinned_are_a_violation() -> None:
    """A model that lost an action holds, and fails: fewer states are reached than are pinned."""
    kept = explore_scope("moves", profile="kip-236-amended")
    assert kept.pinned == (kept.result.distinct, kept.result.generated, kept.result.depth)
    assert kept.verdict is Verdict.HOLDS
    _, model = get_model("moves", "kip-236-amended")
    less = replace(model, actions=tuple(a for a in model.actions if a.name != "die"))
    found = pin(explore(less, profile="kip-236-amended", readings=kept.readings))
    assert not found.result.violations
    assert found.exit_code == 1
    assert found.make_body()["differs_from_pinned"]
    assert "counted otherwise: 1,582 states, 5,190 steps, depth 18 are pinned" in found.render()


def test_counts_of_other_questions_are_not_pinned() -> None:
    """With symmetry, cut short or under another reading there is nothing to compare with."""
    assert explore_scope("restless-requests", symmetry=True).pinned is None
    cut = explore_scope("moves", profile="kip-236-amended", budget=Budget(states=10))
    assert cut.pinned is None
    found = explore_scope("moves", profile="kip-236-amended")
    assert pin(replace(found, pinned=None, readings={})).pinned is None


def test_deadlock_of_a_scope_is_no_scenario(tmp_path: Path) -> None:
    """A deadlock is written as text and picture; a scenario tells of clauses only."""
    found = explore_scope("shipped-change", profile="kafka-zk", keep_going=True)
    assert "deadlock" in {violation.invariant for violation in found.result.violations}
    write_stories(found, tmp_path)
    assert (tmp_path / "deadlock.txt").is_file()
    assert not (tmp_path / "counterexamples" / "deadlock.txt").exists()
