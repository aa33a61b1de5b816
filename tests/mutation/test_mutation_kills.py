"""A mutant is killed where the judge refuses what it would do, in every state that is possible."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import pytest

from reassure_judge.moments import ACTS, RESTS, SUCCEEDS
from reassure_model.partition import Environment, LeaderAndIsr, Partition, Reassignment
from reassure_mutation.kills import (
    ALLOWED,
    SAME,
    UNREACHED,
    Reference,
    Situation,
    find_kills,
)
from reassure_mutation.linked import Mutant
from reassure_mutation.table import find_worlds, make_reference
from reassure_mutation.worlds import explore

PROFILE: Final = "kip-236"
FOUR: Final = frozenset({1, 2, 3, 4})
AROUND: Final = Environment(FOUR, FOUR)
DROPS: Final = Partition(
    (1, 2, 3), LeaderAndIsr(1, 0, 1, (3, 1)), Reassignment((3, 4), 1), drop_due=True
)
"""One replica is to be kept of three, and the leader came into the in-sync set last."""
LAST: Final = "kip_236.compute_existing: element: without leader"
IDLE: Final = "kip_236.next_write: condition: around.deleting -> True"
UNFINISHED: Final = "kip_236.apply_failover: operand: without is_change_unfinished(partition)"


@pytest.fixture(scope="module")
def reference() -> Reference:
    """Return the reference controller of one protocol."""
    return make_reference(find_worlds(PROFILE)[0], PROFILE)


def find_mutant(reference: Reference, name: str) -> Mutant:
    """Return the mutant that has this name."""
    return next(each for each in reference.list_mutants() if each.name == name)


@contextmanager
def planted(reference: Reference, name: str) -> Iterator[None]:
    """Plant the mutant that has this name."""
    with reference.linked.planted(find_mutant(reference, name)):
        yield


def situate(reference: Reference, kind: str, *partitions: Partition, **more: Any) -> Situation:
    """Return a moment in which these states are possible."""
    begin = reference.rules.begin()
    states = tuple(begin._replace(partition=each) for each in partitions)
    return Situation(kind, states, AROUND, **more)


def test_leader_that_is_not_ranked_first_is_killed_where_it_would_be_dropped(
    reference: Reference,
) -> None:
    """It is the drop that keeps the leader, and what this mutant drops is the leader."""
    moment = situate(reference, ACTS, DROPS)
    with planted(reference, LAST):
        assert reference.find_kill(moment) == "drop.leader-kept"
    assert reference.find_kill(moment) == SAME


def test_mutant_lives_where_right_and_wrong_look_alike(reference: Reference) -> None:
    """Where the leader comes first anyway the mutant does what is right."""
    state = DROPS.state
    assert state is not None
    alike = replace(DROPS, state=replace(state, isr=(1, 3)))
    with planted(reference, LAST):
        assert reference.find_kill(situate(reference, ACTS, alike)) == SAME


def test_mutant_is_killed_in_every_possible_state_or_not_at_all(reference: Reference) -> None:
    """Where another state is possible, in which nothing is to be dropped, nobody could tell."""
    other = replace(DROPS, drop_due=False)
    with planted(reference, LAST):
        for states in ((DROPS, other), (other, DROPS)):
            assert reference.find_kill(situate(reference, ACTS, *states)) in (SAME, ALLOWED)


def test_rest_kills_only_where_nothing_disturbed_it(reference: Reference) -> None:
    """A mutant that does nothing is killed at a rest, not where something else happened."""
    with planted(reference, IDLE):
        assert reference.find_kill(situate(reference, ACTS, DROPS)) == "drop.carried-out"
        assert reference.find_kill(situate(reference, ACTS, DROPS, writes=0)) == SAME
        assert reference.find_kill(situate(reference, ACTS, DROPS, writes=1)) == ALLOWED


def test_equivalent_mutant_survives_and_says_why(reference: Reference) -> None:
    """A target that is protected under other readings only changes nothing under these."""
    name = "kip_236.compute_drop: element: without *target"
    mutants = [find_mutant(reference, each) for each in (name, LAST)]
    moment = situate(reference, ACTS, DROPS)
    found = find_kills(reference, mutants, [moment, moment])
    assert found == {name: (SAME, None), LAST: ("drop.leader-kept", 0)}
    rests = situate(reference, RESTS, Partition((1, 2), LeaderAndIsr(1, 0, 1, (1, 2))))
    assert find_kills(reference, mutants, [rests])[LAST] == (UNREACHED, None)


def test_takeover_kills_who_does_not_see_what_another_left_unfinished(
    reference: Reference,
) -> None:
    """A controller that takes over sees that a drop is due; one that acts knows it."""
    with planted(reference, UNFINISHED):
        assert reference.find_kill(situate(reference, SUCCEEDS, DROPS)) == "drop.before-expansion"
        assert reference.find_kill(situate(reference, ACTS, DROPS)) == SAME


@pytest.mark.parametrize("profile", ["kip-46", "kafka-42"])
def test_reference_controller_itself_is_killed_nowhere(profile: str) -> None:
    """What it does is right by its own judge, in every state of a small world."""
    for module in find_worlds(profile):
        right = make_reference(module, profile)
        for world in module.WORLDS[1:2]:
            for found in explore(world, right, module.list_moves, calm=True):
                assert right.find_kill(found.situation) == SAME, found.list_steps()
