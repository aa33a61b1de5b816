"""The drop rule in each reading: the documents' examples and the instances of the findings."""

from dataclasses import dataclass
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassure_model.partition import LeaderAndIsr, Partition, Reassignment
from reassure_model.protocols.kip_236 import compute_drop, compute_existing, compute_kept
from reassure_model.protocols.kip_236.assignment_rules import compute_drops
from reassure_spec.readings import Readings, get_profile, override_readings

WRITTEN = Readings()
EXCLUSIVE = Readings(drop_slice="exclusive")
PROTECTING = Readings(drop_protects="target")
SKIPPING = Readings(offline_drop="skip")


@dataclass(frozen=True, slots=True)
class Case:
    """One call of the rule and what it drops."""

    name: str
    assigned: tuple[int, ...]
    leader: int
    isr: tuple[int, ...]
    top: int
    target: tuple[int, ...]
    drop: tuple[int, ...]
    readings: Readings = WRITTEN


CASES = (
    Case("nothing at the first request", (1, 2), 1, (1, 2), 2, (1, 3), ()),
    Case("out of sync goes first", (1, 2, 3), 1, (1, 2), 2, (2, 4), (3,)),
    Case("newest leader is kept", (1, 2, 3), 3, (3, 1, 2), 2, (2, 4), (2,)),
    Case("drop-1: the only replica", (1,), 1, (1,), 1, (1,), (1,), EXCLUSIVE),
    Case("drop-1: below the minimum", (1, 2), 1, (1, 2), 2, (1, 2), (2,), EXCLUSIVE),
    Case("drop-3: after the union", (1, 2, 3), 1, (1, 2), 2, (1, 3), (3,)),
    Case("drop-4: in-sync target replica", (1, 2, 3), 1, (1, 2, 3), 2, (4, 3), (3,)),
    Case("drop-4: protected", (1, 2, 3), 1, (1, 2, 3), 2, (4, 3), (), PROTECTING),
    Case("drop-6: a cancel keeps the new one", (1, 2, 3), 1, (1, 3), 2, (1, 2), (2,)),
    Case("drop-8: the factor grew", (1, 2, 3, 4), 1, (1, 2, 3), 1, (5,), (2, 3, 4)),
    Case("drop-11: last copy without a leader", (1, 2), -1, (2,), 1, (3,), (1, 2)),
    Case("drop-11: skipped", (1, 2), -1, (2,), 1, (3,), (), SKIPPING),
    Case("skipped where the leader is out of sync", (1, 2), 1, (2,), 1, (3,), (), SKIPPING),
    Case("top of nothing", (1, 2, 3), 1, (1,), 0, (4,), (1, 2, 3)),
    Case(
        "top of nothing, and with the exclusive slice", (1, 2, 3), 1, (1,), 0, (4,), (3,), EXCLUSIVE
    ),
    Case("drop-15: order 1,3,2", (1, 2, 3), 1, (1, 3, 2), 2, (4,), (2,)),
    Case("drop-15: order 1,2,3", (1, 2, 3), 1, (1, 2, 3), 2, (4,), (3,)),
    Case("in sync and not assigned", (1, 2, 3), 1, (1, 5, 2), 2, (4,), (2, 3)),
)


@pytest.mark.clause("drop.rank.leader-isr-rest", "drop.keep-top", "drop.slice.inclusive")
@pytest.mark.clause("drop.protect-target")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_drop_matches_instance(case: Case) -> None:
    """The rule drops what the document's sentence says in this reading, right or wrong."""
    found = compute_drop(case.assigned, case.leader, case.isr, case.top, case.target, case.readings)
    assert found == case.drop


def test_others_are_ranked_as_told() -> None:
    """Replicas out of sync are kept in the order that is given, as a lag would give it."""
    drop = compute_drop((3, 1, 2), 3, (3,), 2, (4,), WRITTEN, others=(2, 1))
    assert drop == (1,)
    assert compute_drop((3, 1, 2), 3, (3,), 2, (4,), WRITTEN) == (2,)


def test_ranking_keeps_first_place_of_each() -> None:
    """A replica stands once in the ranking, at its best place."""
    assert compute_existing((1, 2, 3), 2, (1, 2)) == (2, 1, 3)


def test_nothing_is_dropped_where_nothing_is_in_flight() -> None:
    """Without a reassignment in flight the only drop is none."""
    assert compute_drops(Partition((1, 2)), WRITTEN) == {frozenset()}


def test_slices_differ_by_one() -> None:
    """The exclusive slice keeps one replica fewer than the inclusive one."""
    assert compute_kept((1, 2, 3), 2, WRITTEN) == (1, 2)
    assert compute_kept((1, 2, 3), 2, EXCLUSIVE) == (1,)


replica_lists = st.lists(st.integers(0, 5), min_size=1, max_size=5, unique=True).map(tuple)


@pytest.mark.clause("drop.leader-kept", "drop.isr-at-least-min")
@given(data=st.data(), assigned=replica_lists, target=replica_lists)
def test_notes_hold_with_leader_in_sync(
    data: st.DataObject, assigned: tuple[int, ...], target: tuple[int, ...]
) -> None:
    """With a leader in sync the rule keeps the leader and as many in sync as top asks for."""
    isr = data.draw(st.permutations(assigned).flatmap(_prefixes))
    leader = data.draw(st.sampled_from(isr))
    top = data.draw(st.integers(1, len(assigned) + 1))
    drop = compute_drop(assigned, leader, isr, top, target, WRITTEN)
    assert leader not in drop
    assert len([r for r in isr if r not in drop]) >= min(top, len(isr))
    assert len(assigned) - len(drop) == min(top, len(assigned))


def _prefixes(replicas: list[int]) -> st.SearchStrategy[tuple[int, ...]]:
    return st.integers(1, len(replicas)).map(lambda n: tuple(replicas[:n]))


# All drop sets that the open order allows --------------------------------------------------------

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
