"""Plain and derived engine side by side, and what a model must be."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import summarise

from reassure_explorer.engine import runs, sorting
from reassure_explorer.engine.derived import Engine, explore_derived
from reassure_explorer.engine.diagrams import NotDeterministic
from reassure_explorer.engine.interface import (
    Action,
    Flag,
    Goal,
    Int,
    Invariant,
    Model,
    ModelError,
    RangeError,
    SequenceOf,
    SetOf,
)
from reassure_explorer.engine.packing import EngineError
from reassure_explorer.engine.plain import explore_plain
from reassure_explorer.engine.result import Budget, ExploreResult, Verdict


def make_counter(limit: int = 5, **changes: Any) -> Model:
    """Two counters that go up to a limit."""

    def count(state: Any, name: str) -> Any:
        value = getattr(state, name)
        return None if value == limit else state.replace(**{name: value + 1})

    options: dict[str, Any] = {
        "name": "counters",
        "fields": {"left": Int(0, limit), "right": Int(0, limit)},
        "initial": ({"left": 0, "right": 0},),
        "actions": (Action("count", count, ("left", "right")),),
        "invariants": (Invariant("limit", lambda s: max(s.left, s.right) <= limit),),
        "terminal": lambda s: s.left == s.right == limit,
    }
    return Model(**{**options, **changes})


def test_counters_have_the_counts_of_arithmetic() -> None:
    """Two counters up to 5 have 36 states, 60 steps and depth 10."""
    for result in (explore_plain(make_counter()), explore_derived(make_counter())):
        assert (result.distinct, result.generated, result.depth) == (36, 60, 10)
        assert result.levels == (1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1)
        assert result.verdict is Verdict.HOLDS


def test_values_of_fields_are_counted() -> None:
    """For each field the number of different values among the states reached is told."""

    def lengthen(state: Any, entry: int) -> Any:
        return state.replace(queue=(*state.queue, entry)) if len(state.queue) < 3 else None

    model = Model(
        "values",
        {"unused": Int(0, 9), "queue": SequenceOf(Int(0, 2), 3), "fixed": Int(4, 4)},
        ({"unused": 0, "queue": (), "fixed": 4},),
        (Action("lengthen", lengthen, (0, 1, 2)),),
    )
    values = explore_derived(model).details["values"]
    assert values == {"unused": 1, "queue": 1 + 3 + 9 + 27, "fixed": 1}


def test_frozen_diagrams_are_not_changed_by_learning() -> None:
    """What a kernel walks stays as it is, and complete in itself, while paths are learned."""
    engine = Engine(make_counter())
    layout, model = engine.layout, engine.model
    engine.find_leaf(0, layout.pack(model.initial_states[0]))
    frozen = engine.diagrams.freeze()
    before = [frozen.roots.tolist(), frozen.children.tolist()]
    for left in range(6):
        words = layout.pack(model.state_type(left=left, right=5 - left))
        engine.find_leaf(0, words)
        engine.find_leaf(1, words)
    assert [frozen.roots.tolist(), frozen.children.tolist()] == before
    assert engine.diagrams.children[: len(frozen.children)].tolist() != before[1]


@pytest.mark.parametrize("explore", [explore_plain, explore_derived])
def test_overflow_names_field_value_and_state(explore: Callable[[Model], ExploreResult]) -> None:
    """A value beyond its range is an error that says where; it never wraps around."""
    model = make_counter(actions=(Action("leap", lambda s, p: s.replace(left=s.left + 4)),))
    with pytest.raises(RangeError, match=r"field left: 8 is not.* 0 to 5; in leap:.*right=0"):
        explore(model)


@pytest.mark.parametrize("explore", [explore_plain, explore_derived])
def test_stranger_in_a_set_is_out_of_range(explore: Callable[[Model], ExploreResult]) -> None:
    """A member that a set cannot have is an error; taking away what is not there is none."""
    fields = {"members": SetOf((1, 2))}
    away = Action("away", lambda s, p: s.replace(members=s.members - {p}), (1, 9))
    model = Model("set", fields, ({"members": frozenset({1})},), (away,))
    assert explore(model).distinct == 2
    join = Action("join", lambda s, p: s.replace(members=s.members | {p}), (2, 9))
    with pytest.raises(RangeError, match="field members: 9 is none of"):
        explore(Model("set", fields, ({"members": frozenset()},), (join,)))


def test_action_that_changes_nothing_is_a_step() -> None:
    """A step back to the same state is counted as a step, whatever the action is called."""
    model = make_counter(actions=(Action("check nothing", lambda s, p: s, (0, 1)),))
    for result in (explore_plain(model), explore_derived(model)):
        assert (result.distinct, result.actions) == (1, {"check nothing": 2})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"initial": ()}, "no initial state"),
        ({"initial": ({"left": 0, "right": 9},)}, "field right: 9"),
        ({"invariants": (Invariant("deadlock", lambda s: True),)}, "'deadlock' is looked for"),
        ({"initial": ({"left": 0},)}, r"lack or invent fields: \['right'\]"),
        ({"fields": {"not a name": Flag()}}, "cannot name a field"),
        ({"actions": (Action("a", max), Action("a", max))}, "name of two things"),
    ],
)
def test_senseless_model_is_refused(changes: dict[str, Any], message: str) -> None:
    """A model without sense is refused with the reason."""
    with pytest.raises(ModelError, match=message):
        make_counter(**changes)


def test_model_that_depends_on_chance_is_refused() -> None:
    """An action that depends on more than the state is refused by the derived engine."""
    chance = random.Random(7)

    def jump(state: Any, _: None) -> Any:
        return state.replace(left=(state.left + 1) % 6, right=chance.randrange(6))

    with pytest.raises((NotDeterministic, EngineError), match="depends on more"):
        explore_derived(make_counter(actions=(Action("jump", jump),)))


def test_budget_ends_in_unknown() -> None:
    """An exploration that its budget cuts short says so and claims nothing."""
    for explore in (explore_plain, explore_derived):
        result = explore(make_counter(), budget=Budget(states=10))
        assert result.verdict is Verdict.UNKNOWN
        assert result.distinct == 10
        assert "10 states" in str(result.unfinished)


def test_goal_never_reached_is_vacuous() -> None:
    """A goal that no state reaches makes the verdict vacuous, exit code 3."""
    model = make_counter(goals=(Goal("six", lambda s: s.left == 6),))
    result = explore_derived(model)
    assert (result.verdict, result.verdict.exit_code) == (Verdict.VACUOUS, 3)


def test_story_is_shortest_and_ends_in_the_violation() -> None:
    """A counterexample starts at an initial state, takes possible steps and is shortest."""
    model = make_counter(
        invariants=(Invariant("7", lambda s: "7" if s.left + s.right > 6 else None),)
    )
    (violation,) = explore_derived(model).violations
    assert violation.reason == "7"
    assert len(violation.trace.steps) == 7
    assert violation.trace.last.left + violation.trace.last.right == 7


_STATES = st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 40), max_size=200)


def _make_run(values: list[int], words: int) -> runs.Run:
    """Return a sorted run; a state of two words is (value // 8, value)."""
    if words == 1:
        return runs.sort_unique(np.array(values, dtype=np.uint64))
    rows = np.array([(v // 8, v) for v in values], dtype=np.uint64).reshape(-1, 2)
    return runs.sort_unique(rows)


def _as_list(run: runs.Run) -> list[int]:
    return (run if run.ndim == 1 else run[:, 1]).tolist()


@pytest.mark.parametrize("words", [1, 2])
@settings(max_examples=60, deadline=None)
@given(left=_STATES, right=_STATES)
def test_runs_are_sets(words: int, left: list[int], right: list[int]) -> None:
    """Sorting, joining and taking away runs do what the same does to sets."""
    a, b = _make_run(left, words), _make_run(right, words)
    assert _as_list(a) == sorted(set(left))
    assert _as_list(runs.merge(a, b)) == sorted(set(left) | set(right))
    assert _as_list(runs.subtract(a.copy(), b)) == sorted(set(left) - set(right))
    assert _as_list(runs.store_level(a).restore()) == sorted(set(left))


@pytest.mark.parametrize("words", [1, 2])
def test_few_states_are_taken_from_many(words: int) -> None:
    """A run much shorter than what it is compared with loses exactly what is known."""
    known = _make_run(list(range(0, 20_000, 3)), words)
    run = _make_run([0, 1, 2, 3, 2999, 3000, 19_997, 19_998, 19_999, 30_000], words)
    assert _as_list(runs.subtract(run, known)) == [1, 2, 2999, 19_997, 19_999, 30_000]


# Planted faults: each must be noticed by comparing the engines --------------------------------


def _lose_one(run: runs.Run) -> int:
    return max(len(run) - 1, min(1, len(run)))


def _keep_all(run: runs.Run, known: runs.Run) -> runs.Run:
    return run


def _forget_recent(right: Callable[..., Any]) -> Callable[..., Any]:
    """Return what goes to the next level without what was written lately, which hides much."""

    def next_level(search: Any, frontier: runs.Run) -> runs.Run:
        search.recent = search._make_recent()
        return right(search, frontier)

    return next_level


def _lose_long(run: runs.Run, known: runs.Run) -> runs.Run:
    kept = sorting.subtract_word(run, known)
    return run[: kept - (kept > 3)]


@pytest.mark.parametrize(
    ("place", "fault"),
    [
        ("reassure_explorer.engine.sorting.unique_word", _lose_one),
        ("reassure_explorer.engine.runs.subtract", _keep_all),
        ("reassure_explorer.engine.runs.subtract", _lose_long),
    ],
)
def test_planted_fault_of_the_runs_is_noticed(
    monkeypatch: pytest.MonkeyPatch, place: str, fault: Callable[..., Any]
) -> None:
    """An engine that loses states, or visits them twice, differs from the plain one."""
    actions = make_counter().actions
    back = Action("back", lambda s, p: s.replace(left=0) if s.right == 2 else None)
    model = make_counter(actions=(*actions, back))
    expected = summarise(explore_plain(model))
    monkeypatch.setattr(place, fault)
    monkeypatch.setattr(Engine, "_next_level", _forget_recent(Engine._next_level))
    assert summarise(explore_derived(model, budget=Budget(states=500))) != expected


def test_planted_fault_of_the_diagrams_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leaf that writes the wrong bits contradicts the plain model and is an engine error."""
    from reassure_explorer.engine.diagrams import Diagrams

    def wrong(self: Diagrams, leaf: int, words: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(word ^ 1 for word in right(self, leaf, words))

    right = Diagrams.apply
    monkeypatch.setattr(Diagrams, "apply", wrong)
    with pytest.raises(EngineError, match="plain says"):
        explore_derived(make_counter())
