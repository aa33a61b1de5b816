"""An exploration cut into slices answers as one in one process, whatever happens to its tasks."""

import contextlib
import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reassure_explorer.engine import slices
from reassure_explorer.engine.checkpoint import ForeignCheckpoint
from reassure_explorer.engine.derived import explore_derived
from reassure_explorer.engine.interface import Action, Goal, Int, Invariant, Model, RangeError
from reassure_explorer.engine.loading import Source
from reassure_explorer.engine.result import Budget, ExploreResult
from reassure_explorer.engine.sliced import explore_sliced
from reassure_explorer.engine.slices import (
    Expand,
    OtherModel,
    Task,
    carry_out,
    forget_slicer,
)
from reassure_explorer.scopes.catalogue import make_model

BITS = 70
"""So many that a state is two words."""


def count(state: Any, name: str) -> Any:
    """Count up one of the fields."""
    return state.replace(**{name: getattr(state, name) + 1})


def make_grid(limit: int = 9, *, wide: bool = False, stop: int = 99) -> Model:
    """Three counters that stop together; their sum must not be 7."""

    def within(state: Any) -> bool:
        return bool(state.a + state.b + state.c <= stop)

    def up(state: Any, name: str) -> Any:
        return None if state.a + state.b + state.c >= limit else count(state, name)

    names = ("a", "b", "c")
    fields = {name: Int(0, limit) for name in names}
    if wide:
        fields["idle"] = Int(0, (1 << BITS) - 1)
    return Model(
        "grid",
        fields,
        (dict.fromkeys(fields, 0),),
        (Action("up", up, names),),
        (Invariant("not seven", lambda s: "7" if s.a + 2 * s.b + 2 * s.c == 7 else None),),
        (Goal("far", lambda s: s.c == limit), Goal("never", lambda s: s.c > limit)),
        constraint=within if stop < limit else None,
    )


def grow(state: Any, name: str) -> Any:
    """Count up without end."""
    return count(state, name)


def make_endless() -> Model:
    """A counter that leaves its range."""
    return Model("endless", {"a": Int(0, 3)}, ({"a": 0},), (Action("grow", grow, ("a",)),))


def do_here(tasks: Sequence[Task]) -> list[Any]:
    """Carry out tasks one after the other, as if they came from elsewhere."""
    return [pickle.loads(pickle.dumps(carry_out(pickle.loads(pickle.dumps(t))))) for t in tasks]


def strip(result: ExploreResult) -> dict[str, Any]:
    """Return all that must not depend on slices."""
    return {
        "levels": result.levels,
        "generated": result.generated,
        "violations": result.violations,
        "goals": result.goals,
        "actions": result.actions,
        "notes": result.notes,
        "unfinished": result.unfinished,
        "values": result.details["values"],
        "verdict": result.verdict,
    }


def compare(
    make: Callable[[], Model],
    directory: Path,
    spread: Callable[[Sequence[Task]], list[Any]] = do_here,
    **options: Any,
) -> ExploreResult:
    """Explore both ways, and answer the sliced result."""
    whole = explore_derived(make(), **options)
    sliced = explore_sliced(Source(make), spread, directory, 3, alone_to=0, **options)
    assert strip(sliced) == strip(whole)
    return sliced


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files and pieces be so small that there are several of each."""
    for name, size in (("PIECE", 16), ("SPILLED_FROM", 20), ("PART", 16)):
        monkeypatch.setattr(slices, name, size)


@pytest.mark.parametrize(("keep_going", "symmetry"), [(False, False), (True, False), (True, True)])
def test_slices_answer_as_one_process_does(
    tmp_path: Path, keep_going: bool, symmetry: bool
) -> None:
    """Counts, verdicts and the very traces are the same, and what is not needed is removed."""
    make = partial(make_model, "logs", "kafka-4485", {})
    result = compare(make, tmp_path, keep_going=keep_going, symmetry=symmetry)
    assert result.violations
    assert result.details["steps_sent"] > len(result.levels)
    assert 0 < len(list(tmp_path.glob("level-*"))) <= 3 * len(result.levels)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    "make",
    [
        partial(make_grid, 12),
        partial(make_grid, 12, wide=True),
        partial(make_grid, 12, stop=5),
        partial(make_grid, 12, wide=True, stop=3),
    ],
    ids=["one word", "two words", "constraint", "both"],
)
def test_slices_answer_alike_for_other_models(tmp_path: Path, make: Callable[[], Model]) -> None:
    """So they do where a state is several words, and where a constraint leaves states outside."""
    compare(make, tmp_path, keep_going=True)


class Clumsy:
    """Carries out tasks as executors may that die: some half, some twice, some by a new process.

    It leaves off half of the expansions after the first file they write, and does them again with
    the same diagrams, as a process does that outlives its task.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch, self.done, self.left_off = monkeypatch, 0, 0

    def __call__(self, tasks: Sequence[Task]) -> list[Any]:
        """Carry out tasks."""
        return [self._do(task) for task in tasks]

    def _do(self, task: Task) -> Any:
        self.done += 1
        if self.done % 2 and isinstance(task, Expand):
            self._leave_off(task)
        if self.done % 3 == 0:
            carry_out(task)
        if self.done % 5 == 0:
            forget_slicer()
        return carry_out(task)

    def _leave_off(self, task: Task) -> None:
        def fail(slicer: Any, _: Any) -> Any:
            self.left_off += 1
            (slicer.work.directory / slicer.make_name("spill")).write_bytes(b"half")
            raise OSError("the machine is gone")

        with self.monkeypatch.context() as patch:
            patch.setattr(slices.Slicer, "deal", fail)
            with contextlib.suppress(OSError):
                carry_out(task)


def test_tasks_done_twice_or_half_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a task wrote that was left off, or done by two, counts once, and is removed."""
    clumsy = Clumsy(monkeypatch)
    result = compare(partial(make_grid, 12), tmp_path, clumsy, keep_going=True)
    assert clumsy.left_off > 5 and result.distinct == 455
    assert not list(tmp_path.glob("spill-*"))


@pytest.mark.parametrize(
    "fault", ["recent", "hash"], ids=["what was written lately is kept", "slices by chance"]
)
def test_planted_fault_of_the_slices_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """A process that leaves out what a task lost has written, or deals amiss, differs."""
    if fault == "recent":
        kept: dict[int, Any] = {}
        make_recent = slices.Slicer._make_recent
        monkeypatch.setattr(
            slices.Slicer, "_make_recent", lambda s: kept.setdefault(id(s), make_recent(s))
        )
    else:
        deal = slices.kernels.deal
        turn = iter(range(10**6))

        def deal_amiss(states: Any, counts: Any, out: Any) -> None:
            deal(states, counts, out)
            counts[:] = [*counts[1:], counts[0]] if next(turn) % 2 else counts

        monkeypatch.setattr(slices.kernels, "deal", deal_amiss)
    with pytest.raises(AssertionError):
        compare(partial(make_grid, 12), tmp_path, Clumsy(monkeypatch), keep_going=True)


def test_stopped_exploration_goes_on(tmp_path: Path) -> None:
    """It goes on from its last complete level, with the slices that it was begun with."""
    make = partial(make_grid, 12)
    part = explore_sliced(
        Source(make), do_here, tmp_path, 5, keep_going=True, budget=Budget(states=100), alone_to=0
    )
    assert part.unfinished is not None and part.distinct < 455
    whole = compare(make, tmp_path, keep_going=True)
    assert whole.details["slices"] == 5
    (level,) = sorted(tmp_path.glob("level-*"), key=lambda place: -place.stat().st_size)[:1]
    level.write_bytes(b"")
    with pytest.raises(ForeignCheckpoint, match="shorter"):
        compare(make, tmp_path, keep_going=True)
    with pytest.raises(ForeignCheckpoint, match="another model"):
        compare(partial(make_grid, 11), tmp_path)


def test_paths_are_shared_and_remembered(tmp_path: Path) -> None:
    """A process asks for nothing that one before it knew; nor does a later exploration."""
    make, memory = partial(make_grid, 12), tmp_path / "memory"

    def do_anew(tasks: Sequence[Task]) -> list[Any]:
        answers = []
        for task in tasks:
            forget_slicer()
            answers += do_here([task])
        return answers

    alone = explore_derived(make(), keep_going=True)
    first = compare(make, tmp_path / "1", do_anew, keep_going=True)
    # A state of each slice and level is looked at plainly, and may need paths of its own.
    assert alone.plain_runs <= first.plain_runs < 1.2 * alone.plain_runs
    for number in (2, 3):
        result = compare(make, tmp_path / str(number), do_anew, keep_going=True, memory=memory)
    assert result.plain_runs == 0


def test_budgets_end_it(tmp_path: Path) -> None:
    """Budgets of depth and states end it where they end one process; one of bytes counts files."""
    make = partial(make_grid, 12)
    compare(make, tmp_path / "1", budget=Budget(depth=4), keep_going=True)
    compare(make, tmp_path / "2", budget=Budget(states=50), keep_going=True)
    late = explore_sliced(
        Source(make), do_here, tmp_path / "3", 2, budget=Budget(seconds=1e-9), keep_going=True
    )
    assert late.unfinished == "the budget of 1e-09 s is used up"
    full = explore_sliced(
        Source(partial(make_grid, 150)), do_here, tmp_path / "4", 2, budget=Budget(mebibytes=1)
    )
    assert full.unfinished is not None


def test_errors_of_a_task_are_raised_here(tmp_path: Path) -> None:
    """What is wrong with a model, or with a worker's, is told as ever."""
    with pytest.raises(RangeError, match="4 is not a whole number from 0 to 3"):
        explore_sliced(Source(make_endless), do_here, tmp_path / "1", 2, alone_to=0)

    def do_otherwise(tasks: Sequence[Task]) -> list[Any]:
        other = Source(partial(make_grid, 11))
        forget_slicer()
        return do_here([replace(task, work=replace(task.work, source=other)) for task in tasks])

    with pytest.raises(OtherModel, match="same installation"):
        explore_sliced(Source(make_grid), do_otherwise, tmp_path / "2", 2, alone_to=0)
