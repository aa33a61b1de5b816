"""Worlds are explored breadth first, and each state comes with a test case that leads there."""

from typing import Final

import pytest

from reassure_judge.moments import ACTS, RESTS, SUCCEEDS
from reassure_model.partition import Environment, Partition
from reassure_mutation.kills import Mutant, Reference, find_kills
from reassure_mutation.linked import parse
from reassure_mutation.operators import iterate_mutations
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


def test_shortest_test_case_of_a_mutant(reference: Reference) -> None:
    """A leader that is ranked last takes a death to tell: the one before it led until then."""
    (world,) = (each for each in worlds.WORLDS if each.name == "one replica")
    found = look(reference, world, calm=True)
    (function,) = (f for f in reference.functions if f.__name__ == "compute_existing")
    mutations = iterate_mutations(parse(function))
    (last,) = (Mutant(function, m) for m in mutations if m.name == "element: without leader")
    ((clause, number),) = find_kills(reference, [last], [f.situation for f in found]).values()
    assert clause == "drop.leader-kept"
    assert number is not None
    assert found[number].list_steps() == (
        "create orders with 1",
        "request orders-0 to 2,3,4",
        "3 joins orders-0",
        "2 joins orders-0",
        "broker 1 dies",
        "request orders-0 to 3,4",
    )


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
