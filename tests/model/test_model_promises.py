"""What a reader takes for granted is asked of any moment, and breaks only where there is one."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Final

import pytest

from reassure_model.partition import Environment, LeaderAndIsr, Partition, Reassignment
from reassure_model.protocols.kip_236.promises import PROMISES, Memory, Moment
from reassure_spec.readings import get_profile

PROFILES: Final = ("kip-236", "kip-236-amended")
ALIVE: Final = frozenset(range(1, 6))


def iterate_parts() -> Iterator[Partition]:
    """Yield partitions of which one part or several are missing, in every combination."""
    assigned = (None, (1, 2, 3, 4))
    states = (None, LeaderAndIsr(-1, 1, 1, (2,)), LeaderAndIsr(1, 1, 1, (1, 2)))
    flights = (None, Reassignment((4, 5), 2))
    for parts in product(assigned, states, flights, (False, True)):
        yield Partition(parts[0], parts[1], parts[2], drop_due=parts[3])


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("clause", PROMISES)
def test_promise_is_kept_where_there_is_nothing_to_break_it(clause: str, profile: str) -> None:
    """Of a partition that is not assigned, or that nothing is in flight for, none is broken."""
    around = Environment(ALIVE, ALIVE)
    for partition in iterate_parts():
        moment = Moment(partition, around, Memory((1, 2), (1, 2)), get_profile(profile))
        found = PROMISES[clause](moment)
        if partition.assigned is None or partition.reassignment is None:
            assert found is None, partition


def test_assignment_has_grown_only_at_rest_and_beyond_both_lists() -> None:
    """More replicas than original and target together are too many, as many are not."""
    find, readings = PROMISES["top.once-per-chain"], get_profile("kip-236")
    resting = Partition(
        assigned=(1, 2, 3, 4),
        state=LeaderAndIsr(1, 1, 1, (1,)),
        reassignment=Reassignment((3, 4), 2),
    )
    for original, broken in (((1, 2), False), ((1,), True)):
        moment = Moment(resting, Environment(ALIVE, ALIVE), Memory(original), readings)
        assert moment.owed is None
        assert (find(moment) is not None) == broken
        busy = replace(moment, partition=replace(resting, announce_due=True))
        assert busy.owed is not None
        assert find(busy) is None
