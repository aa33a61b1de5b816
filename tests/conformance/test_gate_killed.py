"""What a run keeps of the moments at which somebody decided something kills mutants afterwards."""

from collections.abc import Callable
from typing import Final

import pytest

from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.story import parse_story
from reassure_judge.moments import ACTS, RESTS, SUCCEEDS
from reassure_mutation.kills import find_kills
from reassure_mutation.score import select
from reassure_mutation.table import find_worlds, make_reference

PROFILE: Final = "kip-46"
TASK: Final = """world cluster brokers=1,2,3
create orders with 1,2 and 2,3
task orders-0 to 1,3 and orders-1 to 2,3
3 joins orders-0
kill controller
elect
"""
"""A task of two partitions, one of which is there already."""


HEALED: Final = """world cluster brokers=1,2,3,4
create orders with 1,2
broker 2 dies
1000 ms pass
"""
"""A broker is away for the failure interval, and two others could take its place."""


NAMED: Final = """world cluster brokers=1,2,3
create orders with 1 and 2
old znode orders-0 to 3 and orders-1 to 2
3 joins orders-0
"""
"""The old znode names a partition that is to move, and one that is there already."""


def find_killed(
    harness: Harness, text: str, name: str, profile: str = PROFILE
) -> tuple[str, list[tuple[str, int | None]]]:
    """Tell a story; return what kills a mutant of the profile's own there, and at which moments."""
    example = harness.tell(parse_story(text, "told.txt"))
    assert example.violations == []
    folder = profile.replace("-", "_")
    module = next(each for each in find_worlds(profile) if f".{folder}." in each.__name__)
    reference = make_reference(module, profile)
    own = select(reference, harness.recorder.take_situations())
    mutants = [each for each in reference.list_mutants() if each.name == name]
    moments = [(each.kind, each.writes) for each in own]
    return find_kills(reference, mutants, own)[name][0], moments


def test_task_half_done_kills_who_takes_a_part_for_the_whole(
    make_harness: Callable[..., Harness],
) -> None:
    """A controller that takes any partition of a task for all of them removes it unstarted."""
    name = "kip_46.is_satisfied: quantifier: all -> any"
    killed, moments = find_killed(make_harness(Bundled(profile=PROFILE)), TASK, name)
    assert killed == "heal.cancel.automatic-only"
    assert {kind for kind, _ in moments} == {ACTS, RESTS, SUCCEEDS}
    assert (ACTS, None) in moments


def test_generated_task_kills_who_chooses_the_last_for_the_first(
    make_harness: Callable[..., Harness],
) -> None:
    """Who generates shows by whom it replaces that the time has come, and could choose wrongly."""
    name = "kip_46.choose_replacement: quantifier: min -> max"
    killed, _ = find_killed(make_harness(Bundled(profile=PROFILE)), HEALED, name)
    assert killed == "heal.target.lowest-id"


@pytest.mark.parametrize(
    ("name", "clause"),
    [
        ("next_for_znode: statement: Translate(new) -> None", "translate.request"),
        ("next_for_znode: operand: without left != legacy.entries", "entry.refused-removed"),
        (
            "next_for_znode: operand: without _is_wanted(legacy, e)",
            "entry.removed-when-done",
        ),
        ("remove_completed: condition: left != entries -> False", "entry.before-child"),
    ],
    ids=["skipped", "kept", "early", "late"],
)
def test_old_znode_kills_who_makes_too_little_or_too_much_of_it(
    make_harness: Callable[..., Harness], name: str, clause: str
) -> None:
    """An entry that is passed over, stays for ever, goes too early, or goes after its record."""
    profile = "kip-236-legacy"
    harness = make_harness(Bundled(profile=profile))
    killed, moments = find_killed(harness, NAMED, f"kip_236_legacy.{name}", profile)
    assert killed == f"legacy.{clause}"
    assert (ACTS, None) in moments
