"""Paths that earlier runs learned: taken over where nothing changed, and not believed blindly."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reassure_explorer.engine import derived, learner
from reassure_explorer.engine.derived import explore_derived
from reassure_explorer.engine.interface import Action, Goal, Int, Invariant, Model
from reassure_explorer.engine.learner import Learner
from reassure_explorer.engine.packing import EngineError
from reassure_explorer.engine.result import Budget, ExploreResult
from reassure_explorer.scopes.catalogue import get_model
from reassure_spec import clauses


def step_by_one(state: Any, limit: int) -> Any:
    """Count up."""
    return state.replace(x=state.x + 1) if state.x < limit else None


def step_by_two(state: Any, limit: int) -> Any:
    """Count up, every second number left out."""
    return state.replace(x=state.x + 2) if state.x + 1 < limit else None


def make_counter(step: Any) -> Model:
    """Return a model that counts to nine with a step."""
    return Model(
        name="counter",
        fields={"x": Int(0, 9)},
        initial=({"x": 0},),
        actions=(Action("step", step, parameters=(9,)),),
        invariants=(Invariant("below nine", lambda s: "nine" if s.x == 9 else None),),
        goals=(Goal("five", lambda s: s.x == 5),),
    )


def strip(result: ExploreResult) -> ExploreResult:
    """Return a result without what is about the run: time, memory, and how much was learned."""
    details = {k: v for k, v in result.details.items() if k != "seconds_learning"}
    run = {"seconds": 0.0, "seconds_compiling": 0.0, "plain_runs": 0, "bytes_per_state": 0.0}
    return replace(result, **run, details=details)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scope", "profile"),
    [("logs", "kafka-4485"), ("small", "kip-236"), ("two-partitions", "kip-236")],
)
def test_a_second_run_learns_nothing_and_says_the_same(
    scope: str, profile: str, tmp_path: Path
) -> None:
    """All that is found is the same, stories included, and no function is asked for a path."""
    _, model = get_model(scope, profile)
    budget = Budget(depth=10)
    first = explore_derived(model, keep_going=True, memory=tmp_path, budget=budget)
    again = explore_derived(model, keep_going=True, memory=tmp_path, budget=budget, threads=2)
    fresh = explore_derived(model, keep_going=True, budget=budget)
    assert strip(again) == strip(first) == strip(fresh)
    assert first.plain_runs > 0
    assert again.plain_runs == 0


def test_what_a_run_cut_short_has_learned_is_added_to(tmp_path: Path) -> None:
    """A run that goes farther than the one before learns the rest alone."""
    model = make_counter(step_by_one)
    part = explore_derived(model, memory=tmp_path, budget=Budget(depth=4))
    rest = explore_derived(model, keep_going=True, memory=tmp_path)
    whole = explore_derived(model, keep_going=True)
    assert part.plain_runs + rest.plain_runs == whole.plain_runs
    assert strip(rest) == strip(whole)


def test_a_model_of_other_code_learns_anew(tmp_path: Path) -> None:
    """Two models that differ in the code of one action do not share what was learned."""
    explore_derived(make_counter(step_by_one), keep_going=True, memory=tmp_path)
    other = explore_derived(make_counter(step_by_two), keep_going=True, memory=tmp_path)
    assert (other.distinct, other.plain_runs > 0) == (5, True)


def test_wrong_paths_are_found_out_and_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a change went unnoticed the plain function contradicts what is remembered of it."""
    monkeypatch.setattr(learner, "compute_key", lambda *_: "the same for every model")
    # Neither the level's own comparison nor telling a trace must be what finds it.
    monkeypatch.setattr(derived.Engine, "_check_against_plain", lambda *_: None)
    one, other = (replace(make_counter(s), invariants=()) for s in (step_by_one, step_by_two))
    explore_derived(one, keep_going=True, memory=tmp_path)
    with pytest.raises(EngineError, match=r"step 9 in State.x=0.: plain says State.x=2."):
        explore_derived(other, keep_going=True, memory=tmp_path)
    assert explore_derived(other, keep_going=True, memory=tmp_path).distinct == 5


def test_a_file_that_cannot_be_read_is_written_anew(tmp_path: Path) -> None:
    """A file that was cut short counts for nothing."""
    model = make_counter(step_by_one)
    explore_derived(model, keep_going=True, memory=tmp_path)
    (place,) = tmp_path.iterdir()
    place.write_bytes(place.read_bytes()[:100])
    assert explore_derived(model, keep_going=True, memory=tmp_path).plain_runs > 0
    assert explore_derived(model, keep_going=True, memory=tmp_path).plain_runs == 0


def test_model_is_the_same_whatever_else_was_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other modules register is no part of a model that only names an attribute alike."""
    before = Learner(get_model("moves", "kafka-42")[1]).key
    monkeypatch.setitem(clauses._carried_out, "some.other", {"elsewhere"})
    assert Learner(get_model("moves", "kafka-42")[1]).key == before
