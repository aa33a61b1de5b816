"""Each conditional write without a condition of its: a shipped story tells it."""

from collections.abc import Callable
from typing import Final, get_args

import pytest

from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.story import shipped_stories
from reassure_conformance.mutants import load_mutants, write_mutants
from reassure_conformance.mutants.exchange import read_held
from reassure_controller import effects
from reassure_spec.profiles import DEFAULT_PROFILE

A_MOVE: Final = "a-move-of-everything"
STORIES: Final = {
    "UpdateReassignment": "answer-lost-at-change",
    "DeleteZnode": "foreign-record-beside-a-move",
    "TranslateEntries": "old-znode-a-move",
    "WriteOldZnode": "old-znode-a-move",
    "RemoveTopic": "topic-grows-before-it-goes",
    "EndDeletion": "topic-deleted",
    "RemoveSettings": "topic-deleted",
    "EndPreferred": "preferred-leaders",
    "DeleteRequest": "request-rewritten-before-it-goes",
    "WriteState.any-version": "all-in-sync-die-at-once",
    "WriteAssigned.any-version": "request-rewritten-under-a-conflict",
    **dict.fromkeys(
        ("RecordFailure", "DeleteRecord", "CreateTask", "StartTask", "RemoveTask"),
        "healing-a-broker",
    ),
}
"""By mutant, or by kind of write, the story that tells it, where that is not any move."""
NAMES = [name for name, *_ in write_mutants.derive()]


def test_every_kind_of_write_has_mutants() -> None:
    """Each kind is without its check of the epoch, and without its version or has a reason."""
    kinds = {kind.__name__: kind for kind in get_args(effects.Write)}
    assert {name.partition(".")[0] for name in NAMES} == set(kinds)
    versioned = {name for name, kind in kinds.items() if "version" in kind.__dataclass_fields__}
    told = {n.partition(".")[0] for n in NAMES if n.endswith(write_mutants.ANY_VERSION)}
    assert told | set(read_held("write_mutants")["untold"]) == versioned
    assert not told & set(read_held("write_mutants")["untold"])


@pytest.mark.parametrize("name", NAMES)
def test_missing_condition_is_told(name: str, make_harness: Callable[..., Harness]) -> None:
    """One story is red, and first with a clause that asks for the condition."""
    mutant = load_mutants()[name]
    told = STORIES.get(name, STORIES.get(name.partition(".")[0], A_MOVE))
    harness = make_harness(Bundled(profile=mutant.profile or DEFAULT_PROFILE, faults=(name,)))
    example = harness.tell(next(story for story in shipped_stories() if story.name == told))
    harness.close()
    assert example.violations, f"{name} survives {told}"
    assert example.violations[0].clause in mutant.clauses
