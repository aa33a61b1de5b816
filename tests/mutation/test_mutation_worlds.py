"""Worlds are explored breadth first, and each state comes with a test case that leads there."""

from typing import Final

import pytest

from reassure_judge.moments import ACTS, RESTS, SUCCEEDS
from reassure_model.partition import Environment, Partition
from reassure_mutation.kills import Reference, find_kills
from reassure_mutation.protocols.kip_236 import worlds
from reassure_mutation.table import find_worlds, make_reference
from reassure_mutation.worlds import Found, World, explore

PROFILE: Final = "kip-236"
MEMBERS: Final = frozenset({1, 2})
TINY: Final = World(
    "tiny",
    ("create orders with 1",),
    Partition((1,)),
    Environment(MEMBERS, MEMBERS),
    {"requests": 1, "failovers": 1},
    ((2,),),
)


@pytest.fixture(scope="module")
def reference() -> Reference:
    """Return the reference controller of one protocol."""
    return make_reference(worlds, PROFILE)


def look(reference: Reference, world: World, *, calm: bool) -> list[Found]:
    """Return every moment of a world."""
    return list(explore(world, reference, worlds.list_moves, calm=calm))


LAST: Final = (
    "drop.leader-kept",
    "create orders with 1",
    "request orders-0 to 2,3,4",
    "3 joins orders-0",
    "2 joins orders-0",
    "broker 1 dies",
    "request orders-0 to 3,4",
)
"""A leader that is ranked last takes a death to tell: the one before it led until then."""
PART: Final = (
    "heal.cancel.automatic-only",
    "create orders with 1,2 and 2,3",
    "task orders-0 to 1,2 and orders-1 to 2,1",
)
"""Whoever takes a part of a task for the whole removes it where one partition is there already."""
SHORTEST: Final = (
    ("kip-236", "one replica", "kip_236.compute_existing: element: without leader", LAST),
    ("kip-46", "two partitions", "kip_46.is_satisfied: quantifier: all -> any", PART),
)


@pytest.mark.parametrize(("profile", "world", "name", "said"), SHORTEST)
def test_shortest_test_case_of_a_mutant(
    profile: str, world: str, name: str, said: tuple[str, ...]
) -> None:
    """The first state that kills a mutant comes with the fewest steps that lead there."""
    ((module, begin),) = (
        (module, each)
        for module in find_worlds(profile)
        for each in module.WORLDS
        if each.name == world
    )
    right = make_reference(module, profile)
    found = list(explore(begin, right, module.list_moves, calm=True))
    (mutant,) = (each for each in right.list_mutants() if each.name == name)
    clause, number = find_kills(right, [mutant], [f.situation for f in found])[name]
    assert number is not None
    assert (clause, *found[number].list_steps()) == said


def test_calm_world_waits_for_the_controller(reference: Reference) -> None:
    """Nothing happens between two writes there, and all of it happens in the other as well."""
    calm, other = look(reference, TINY, calm=True), look(reference, TINY, calm=False)
    assert not any(each.interrupts for each in calm)
    assert any(each.interrupts for each in other)
    assert {each.situation for each in calm} < {each.situation for each in other}
    assert {each.situation.kind for each in calm} == {ACTS, RESTS, SUCCEEDS}


def test_what_is_limited_happens_so_often_and_what_is_not_named_never(
    reference: Reference,
) -> None:
    """No test case asks twice, and nobody dies where no death is named."""
    said = [each.list_steps() for each in look(reference, TINY, calm=False)]
    lines = [[line for line in steps if line.startswith("request")] for steps in said]
    assert max(map(len, lines)) == 1
    assert not any("dies" in line for steps in said for line in steps)


def test_test_case_holds_where_something_happens_between_two_writes(reference: Reference) -> None:
    """What happens next happens to a controller that is held, with its plan in memory."""
    held = [each.list_steps() for each in look(reference, TINY, calm=False) if each.interrupts]
    first = min(held, key=len)
    assert first[:1] == ("hold after 0",) or first[1].startswith("hold after")
    taken_over = [
        each.list_steps()
        for each in look(reference, TINY, calm=True)
        if each.situation.kind == SUCCEEDS and each.ways[-1].lines == ()
    ]
    assert taken_over[0] == ("hold after 1", "create orders with 1", "kill controller", "elect")


@pytest.mark.parametrize(
    "profile", ["kip-236", "kip-236-amended", "kip-236-legacy", "kip-46", "kafka-42"]
)
def test_every_profile_that_is_driven_has_worlds(profile: str) -> None:
    """Who shares the partitions of a protocol shares its worlds, and each begins as it says."""
    modules = find_worlds(profile)
    assert modules
    for module in modules:
        assert len({world.name for world in module.WORLDS}) == len(module.WORLDS) > 1
        for world in module.WORLDS:
            assert world.targets or world.begin
