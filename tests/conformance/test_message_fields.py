"""Each field of each message: wrong in each simple way it is told by the clause about it."""

from collections.abc import Callable
from dataclasses import fields

import pytest

from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.story import shipped_stories
from reassure_conformance.mutants import load_mutants, message_mutants
from reassure_controller.messages import LeaderAndIsr, StopReplica

STORY = "a-move-of-everything"
"""A story in which every message is sent."""
NAMES = [name for name, *_ in message_mutants.derive()]


def test_every_field_has_mutants() -> None:
    """No field of a message is without a mutant that can be told."""
    places = {name.rpartition(".")[0] for name in NAMES}
    every = {
        f"{kind.__name__}.{f.name}" for kind in (LeaderAndIsr, StopReplica) for f in fields(kind)
    }
    assert places == every


@pytest.mark.parametrize("name", NAMES)
def test_wrong_field_is_told(name: str, make_harness: Callable[..., Harness]) -> None:
    """One short story is red with a clause that is about the field, and with that first."""
    harness = make_harness(Bundled(faults=(name,)))
    example = harness.tell(next(story for story in shipped_stories() if story.name == STORY))
    harness.close()
    assert example.violations, f"{name} survives"
    assert example.violations[0].clause in load_mutants()[name].clauses
