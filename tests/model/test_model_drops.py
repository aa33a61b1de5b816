"""All drop sets that the open order allows, against every order there is."""

from itertools import permutations, product

import pytest

from reassure_model.partition import LeaderAndIsr, Partition, Reassignment
from reassure_model.protocols.kip_236 import compute_drop
from reassure_model.protocols.kip_236.assignment_rules import compute_drops
from reassure_spec.readings import Readings, get_profile, override_readings

CHOICES = {
    "written": get_profile("kip-236"),
    "amended": get_profile("kip-236-amended"),
    "exclusive": override_readings(get_profile("kip-236"), {"drop.slice": "exclusive"}),
}


def every_order(partition: Partition, readings: Readings) -> set[frozenset[int]]:
    """Evaluate the rule for every order of both groups."""
    state, flight, assigned = partition.state, partition.reassignment, partition.assigned
    assert state is not None and flight is not None and assigned is not None
    others = [r for r in assigned if r not in state.isr]
    return {
        frozenset(
            compute_drop(
                assigned, state.leader, isr, flight.top, flight.target, readings, tuple(rest)
            )
        )
        for isr, rest in product(permutations(state.isr), permutations(others))
    }


@pytest.mark.parametrize("readings", CHOICES.values(), ids=CHOICES)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_allowed_drops_are_those_of_every_order(size: int, readings: Readings) -> None:
    """Enumerating who comes first in each group finds the drop sets of all orders, and no other."""
    assigned = tuple(range(1, size + 1))
    for in_sync, top in product(range(1, size + 1), range(1, size + 2)):
        for leader in (1, in_sync):
            state = LeaderAndIsr(leader, 0, 1, assigned[:in_sync])
            partition = Partition(assigned, state, Reassignment((size, 9), top), drop_due=True)
            assert compute_drops(partition, readings) == every_order(partition, readings)
