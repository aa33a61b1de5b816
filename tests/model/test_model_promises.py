"""What a reader takes for granted is asked of any moment, and breaks only where there is one."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Final

import pytest
from machine_steps import every_partition

from reassure_model.invariants import INVARIANTS
from reassure_model.partition import Environment, LeaderAndIsr, Partition, Reassignment
from reassure_model.protocols.kip_236.promises import PROMISES, Memory, Moment
from reassure_spec.readings import Readings, get_profile

ALIVE: Final = frozenset(range(1, 6))
READINGS: Final = (
    get_profile("kip-236"),
    get_profile("kip-236-amended"),
    Readings(drop_slice="exclusive"),
    Readings(drop_evaluated="after-expansion"),
)
MEMORIES: Final = (Memory((1, 2), (1, 2)), Memory((2,), (1, 2, 3), lost=True, again=True))


def iterate_moments() -> Iterator[Moment]:
    """Yield moments of every partition, and of some of which a part is missing."""
    bare = (Partition(), Partition((1, 2)), Partition((1, 2), reassignment=Reassignment((3,), 2)))
    for partition in (*bare, *(replace(p, requests=()) for p in every_partition())):
        for least, memory, readings in product((1, 2, 3), MEMORIES, READINGS):
            for live in (ALIVE, frozenset({1})):
                yield Moment(partition, Environment(live, ALIVE, least), memory, readings)


@pytest.mark.parametrize("clause", PROMISES)
def test_promise_is_broken_only_where_something_is_in_flight(clause: str) -> None:
    """Somewhere each is broken; never where nothing is assigned, or nothing is in flight."""
    broken = [moment.partition for moment in iterate_moments() if PROMISES[clause](moment)]
    assert broken
    if clause != "drop.carried-out":
        assert all(p.assigned is not None and p.reassignment is not None for p in broken)


def test_invariants_say_why_they_are_broken() -> None:
    """Each invariant has a reason for a partition that breaks it, and none for one at rest."""
    state = LeaderAndIsr(1, 0, 1, (1, 2))
    calm = Partition((1, 2), state)
    crowded = Partition((1, 2, 3, 4), state, Reassignment((1,), 2))
    broken = (
        replace(calm, state=replace(state, isr=(2,))),
        replace(calm, state=replace(state, isr=())),
        replace(calm, assigned=(2, 3)),
        replace(calm, assigned=(1, 3)),
        crowded,
    )
    for invariant, partition in zip(INVARIANTS, broken, strict=True):
        assert invariant.find(partition)
        assert invariant.find(calm) is None


def test_assignment_has_grown_only_at_rest_and_beyond_both_lists() -> None:
    """More replicas than original and target together are too many, as many are not."""
    find, readings = PROMISES["top.once-per-chain"], get_profile("kip-236")
    resting = Partition((1, 2, 3, 4), LeaderAndIsr(1, 1, 1, (1,)), Reassignment((3, 4), 2))
    for original, broken in (((1, 2), False), ((1,), True)):
        moment = Moment(resting, Environment(ALIVE, ALIVE), Memory(original), readings)
        assert moment.owed is None
        assert (find(moment) is not None) == broken
        assert find(replace(moment, partition=replace(resting, announce_due=True))) is None
