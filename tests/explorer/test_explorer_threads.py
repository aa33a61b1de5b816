"""Several threads answer as one does."""

from itertools import pairwise
from typing import Any

import pytest
from toys import summarise

from reassure_explorer.engine import runs
from reassure_explorer.engine.derived import explore_derived
from reassure_explorer.engine.expander import Expander
from reassure_explorer.engine.interface import Action, Int, Model, RangeError
from reassure_explorer.scopes.catalogue import get_model


@pytest.mark.parametrize("symmetry", [False, True])
def test_threads_answer_as_one_does(monkeypatch: pytest.MonkeyPatch, symmetry: bool) -> None:
    """Where levels are split between threads the states are the same."""
    monkeypatch.setattr("reassure_explorer.engine.derived.PARALLEL_FROM", 16)
    _, model = get_model("logs", "kafka-4485")
    one = explore_derived(model, keep_going=True, symmetry=symmetry)
    two = explore_derived(model, keep_going=True, threads=2, symmetry=symmetry)
    assert summarise(one) == summarise(two)


def make_grid(limit: int) -> Model:
    """Three counters, one of which leaves its range in the end."""

    def count(state: Any, name: str) -> Any:
        return state.replace(**{name: getattr(state, name) + 1})

    names = ("a", "b", "c")
    fields = dict.fromkeys(names, Int(0, limit))
    return Model("grid", fields, (dict.fromkeys(names, 0),), (Action("count", count, names),))


def test_error_in_a_thread_is_raised_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value out of range that a thread comes upon is told as ever."""
    monkeypatch.setattr("reassure_explorer.engine.derived.PARALLEL_FROM", 2)
    with pytest.raises(RangeError, match=r"field [abc]: 4 is not a whole number from 0 to 3"):
        explore_derived(make_grid(3), threads=2)


@pytest.mark.parametrize("words", [1, 2])
def test_runs_cut_at_the_same_states_lose_nothing(words: int) -> None:
    """Parts hold every state once, and no part reaches into the next."""
    numbers = [range(0, 400, 3), range(0, 400, 7), range(5, 9)]
    made = []
    for values in numbers:
        run = runs.make_run(words, len(values))
        rows = runs.as_rows(run)
        for k in range(words):
            rows[:, k] = list(values) if k == words - 1 else [v // 50 for v in values]
        made.append(run)
    parts = runs.cut_runs(made, 5)
    for at, values in enumerate(numbers):
        pieces = [runs.as_rows(part[at])[:, -1].tolist() for part in parts]
        assert [v for piece in pieces for v in piece] == list(values)
    ends = [[v for run in part for v in runs.as_rows(run)[:, -1].tolist()] for part in parts]
    assert all(max(a) < min(b) for a, b in pairwise(ends))


def test_steps_are_counted_right_whoever_ends_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of a thread are not lost where another one adds to them at the same time."""
    monkeypatch.setattr("reassure_explorer.engine.derived.PARALLEL_FROM", 8)
    unguarded = []

    def count(self: Expander, taken: int, hits: Any) -> None:
        if not self._lock.locked():
            unguarded.append(taken)
        add(self, taken, hits)

    add = Expander._count_steps
    monkeypatch.setattr(Expander, "_count_steps", count)
    _, model = get_model("logs", "kafka-4485")
    one = explore_derived(model, keep_going=True)
    many = explore_derived(model, keep_going=True, threads=4)
    assert not unguarded
    assert summarise(one) == summarise(many)
