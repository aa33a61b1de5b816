"""Each watch left out: a shipped story tells it."""

from collections.abc import Callable
from typing import Final

import pytest

from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.story import shipped_stories
from reassure_conformance.mutants import load_mutants, watch_mutants
from reassure_conformance.mutants.exchange import exchanged, read_held
from reassure_spec.profiles import DEFAULT_PROFILE

STORIES: Final = {
    "CONFIGS": "minimum-of-the-default",
    "stand.exists_async": "deposed-and-elected-again",
    "holds_office.get_async": "deposed-after-a-broken-connection",
    "make_stale.watch_all": "connection-breaks",
    "read_all.get_children_async": "all-in-sync-die-at-once",
    "read_brokers.get_children_async": "all-in-sync-die-at-once",
    "read_deletions.get_children_async": "dropped-while-deleted",
    "read_perhaps.exists_async": "preferred-leaders",
    "read_below.get_children_async": "healing-by-an-operator",
}
"""By place, the story that tells it, where that is not any move."""
PLACES = {place: patch for place, _, patch in watch_mutants.list_places()}
UNTOLD = read_held("watch_mutants")["untold"]


def tell(place: str, make_harness: Callable[..., Harness], adapter: Bundled) -> list[str]:
    """Return the clauses that are violated when the story of a place is told."""
    told = STORIES.get(place, "a-move")
    harness = make_harness(adapter)
    example = harness.tell(next(story for story in shipped_stories() if story.name == told))
    harness.close()
    return [violation.clause for violation in example.violations]


@pytest.mark.parametrize("place", sorted(PLACES.keys() - UNTOLD.keys()))
def test_missing_watch_is_told(place: str, make_harness: Callable[..., Harness]) -> None:
    """One story is red, and first with a clause that says what was not seen."""
    mutant = load_mutants()[f"watch.{place}"]
    adapter = Bundled(profile=mutant.profile or DEFAULT_PROFILE, faults=(mutant.name,))
    found = tell(place, make_harness, adapter)
    assert found, f"{mutant.name} survives {STORIES.get(place)}"
    assert found[0] in mutant.clauses


@pytest.mark.parametrize("place", sorted(UNTOLD))
def test_what_nobody_can_tell_is_another_text(
    place: str, make_harness: Callable[..., Harness]
) -> None:
    """A place that is said to show nowhere is one of the controller's, and shows in no move."""
    with exchanged((PLACES[place],)):
        assert not tell(place, make_harness, Bundled())
