"""Explorations on disk: stopped and resumed they answer as if they had never stopped."""

from pathlib import Path

import pytest

from reassure_explorer.engine.checkpoint import ForeignCheckpoint
from reassure_explorer.engine.result import Budget, Verdict
from reassure_explorer.scopes.catalogue import explore_scope


@pytest.mark.parametrize(
    ("scope", "profile"), [("logs", "kafka-4485"), ("two-partitions", "kip-236-amended")]
)
def test_resumed_exploration_answers_as_one_in_memory(
    tmp_path: Path, scope: str, profile: str
) -> None:
    """Stopped twice and resumed, on disk, every count and story length is the same."""
    for most in (1000, 5000):
        part = explore_scope(
            scope, profile=profile, keep_going=True, budget=Budget(states=most), directory=tmp_path
        )
        assert part.result.unfinished is not None
    last = Budget(states=20_000)
    resumed = explore_scope(
        scope, profile=profile, keep_going=True, budget=last, directory=tmp_path
    ).result
    whole = explore_scope(scope, profile=profile, keep_going=True, budget=last).result
    assert (resumed.levels, resumed.generated) == (whole.levels, whole.generated)
    assert (resumed.actions, resumed.notes) == (whole.actions, whole.notes)
    assert resumed.goals == whole.goals
    assert resumed.unfinished == whole.unfinished
    for one, other in zip(resumed.violations, whole.violations, strict=True):
        assert (one.invariant, len(one.trace.steps)) == (other.invariant, len(other.trace.steps))


def test_finished_exploration_is_read_back(tmp_path: Path) -> None:
    """Asked again, a finished exploration has the same answer."""
    first = explore_scope("small", directory=tmp_path)
    again = explore_scope("small", directory=tmp_path)
    assert again.counts == first.counts
    assert again.verdict is Verdict.HOLDS


def test_other_exploration_is_refused(tmp_path: Path) -> None:
    """A directory of other readings is refused, and so is one that is damaged."""
    explore_scope("small", directory=tmp_path, budget=Budget(states=100))
    with pytest.raises(ForeignCheckpoint, match="another model, scope or choice of readings"):
        explore_scope("small", profile="kip-236-amended", directory=tmp_path)
    (tmp_path / "level-0001").unlink()
    with pytest.raises(ForeignCheckpoint, match="level-0001 cannot be read"):
        explore_scope("small", directory=tmp_path)
    (tmp_path / "progress.json").write_text("{", encoding="utf-8")
    with pytest.raises(ForeignCheckpoint, match="start afresh"):
        explore_scope("small", directory=tmp_path)


def test_other_rules_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """States kept under rules whose code has changed since are not gone on from."""
    explore_scope("small", directory=tmp_path, budget=Budget(states=100))

    monkeypatch.setattr("reassure_model.protocols.kip_236.find_drop", lambda *_: ())
    with pytest.raises(ForeignCheckpoint, match="before its code or data changed"):
        explore_scope("small", directory=tmp_path)


@pytest.mark.parametrize("kept", [0, 1, 7])
def test_checkpoint_that_was_cut_short_is_refused(tmp_path: Path, kept: int) -> None:
    """A level whose file lacks its end is named, and nothing is read beyond it."""
    amended = "kip-236-amended"
    explore_scope("logs", profile=amended, budget=Budget(states=1000), directory=tmp_path)
    level = tmp_path / "level-0004"
    level.write_bytes(level.read_bytes()[:kept])
    with pytest.raises(ForeignCheckpoint, match=r"level-0004 .*start afresh"):
        explore_scope("logs", profile=amended, directory=tmp_path)
