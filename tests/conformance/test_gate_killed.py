"""What a run keeps of the moments at which somebody decided something kills mutants afterwards."""

from collections.abc import Callable
from typing import Final

from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.story import parse_story
from reassure_judge.moments import ACTS, RESTS, SUCCEEDS
from reassure_mutation.kills import find_kills
from reassure_mutation.table import find_worlds, make_reference

TASK: Final = """world cluster brokers=1,2,3
create orders with 1,2 and 2,3
task orders-0 to 1,3 and orders-1 to 2,3
3 joins orders-0
kill controller
elect
"""
"""A task of two partitions, one of which is there already."""


def test_task_half_done_kills_who_takes_a_part_for_the_whole(
    make_harness: Callable[..., Harness],
) -> None:
    """A controller that takes any partition of a task for all of them removes it unstarted."""
    profile = "kip-46"
    harness = make_harness(Bundled(profile=profile))
    example = harness.tell(parse_story(TASK, "task.txt"))
    assert example.violations == []
    healing = make_reference(find_worlds(profile)[-1], profile)
    kind = type(healing.judgement.begin)
    seen = harness.recorder.list_situations()
    own = [each for each in seen if type(each.states[0].partition) is kind]
    assert {each.kind for each in own} == {ACTS, RESTS, SUCCEEDS}
    assert any(each.kind == ACTS and each.writes is None for each in own)
    name = "kip_46.is_satisfied: quantifier: all -> any"
    mutants = [each for each in healing.list_mutants() if each.name == name]
    assert find_kills(healing, mutants, own)[name][0] == "heal.cancel.automatic-only"
