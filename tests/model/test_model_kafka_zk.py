"""What shipped controllers did: the three lists, the plans, the epochs, and what goes wrong.

What a single history shows is told by the scenarios.
"""

from functools import partial
from itertools import permutations, product

import machine_steps as steps
import pytest

from reassure_explorer.scopes.machine import search
from reassure_model.environment import Controller, Die, Failover, Join, NotPossible, Return
from reassure_model.machine import Goal, find_machines
from reassure_model.protocols.kafka_zk import (
    Alter,
    Assignment,
    DeleteZnode,
    RemoveEntry,
    Shipped,
    WriteEntry,
    make_shipped,
    next_effect,
    reassign_to,
)
from reassure_model.protocols.kafka_zk.machine import (
    find_bad_lists,
    find_leaderless,
    find_offline_for_good,
    is_at_rest,
    step,
)
from reassure_spec.readings import get_profile
from reassure_spec.znodes import ReplicaList

MACHINE = find_machines()["kafka-zk"]
READINGS = get_profile("kafka-zk")
take = partial(steps.take, MACHINE, readings=READINGS)
BROKERS = frozenset({1, 2, 3, 4})
LISTS = [c for n in (1, 2, 3) for c in permutations((1, 2, 3, 4), n)]


def run(shipped: Shipped) -> Shipped:
    """Let the controller act until it waits."""
    end: Shipped = steps.run(MACHINE, shipped, READINGS)[0]
    return end


def move(assigned: ReplicaList, target: ReplicaList, *, dead: int = 0) -> Shipped:
    """Begin a move by the old znode and let the controller act until it waits."""
    return run(take(make_shipped(assigned, BROKERS - {dead}), WriteEntry(target)))


@pytest.mark.clause("shipped.assignment.target-first", "shipped.assignment.original-derivable")
def test_lists_keep_target_and_original() -> None:
    """For each start and two targets in a row: lists agree, target first, original derivable."""
    for start, first, second in product(LISTS[4:9], LISTS, LISTS):
        last = reassign_to(reassign_to(Assignment(start), first), second)
        assert set(last.original) == set(start)
        assert last.target == second
        assert last.replicas[: len(second)] == second
        assert set(last.replicas) == set(start) | set(second)
        assert reassign_to(last, second) == last
        assert set(reassign_to(last, last.original).replicas) == set(start)


@pytest.mark.parametrize(
    ("assigned", "target", "epochs"),
    [
        ((1,), (2,), 3),
        ((1, 2), (2, 1), 1),
        ((1, 2, 3), (1, 2), 2),
        ((1, 2), (3, 4), 4),
        ((1, 2), (1, 2, 3), 2),
    ],
)
def test_epochs_of_a_move(assigned: ReplicaList, target: ReplicaList, epochs: int) -> None:
    """One to start, one for the leader, one for each in-sync replica that goes."""
    shipped = move(assigned, target)
    shipped = run(take(shipped, *(Join(r) for r in target if r not in assigned)))
    assert is_at_rest(shipped)
    assert (shipped.assigned, shipped.leader_epoch, shipped.entry) == (target, epochs, None)


@pytest.mark.clause("shipped.change.recorded-first", "shipped.complete.assignment-after-stop")
@pytest.mark.clause("shipped.complete.entry-last", "shipped.failover.entry-first")
@pytest.mark.parametrize("cut", range(14))
def test_crash_between_any_two_effects_changes_nothing_but_epochs(cut: int) -> None:
    """Whatever effect is the last one of a controller, the next ends where it would have ended."""
    shipped = take(make_shipped((1, 2), BROKERS), WriteEntry((2, 3)))
    done = 0
    for _ in range(2):
        while next_effect(shipped) is not None:
            shipped = take(shipped, *([Failover()] if done == cut else []), Controller())
            done += 1
        if 3 not in shipped.isr and 3 in shipped.running:
            shipped = take(shipped, Join(3))
    assert (shipped.assigned, shipped.leader, shipped.isr) == ((2, 3), 2, (2, 3))
    assert shipped.entry is None
    assert shipped.running == shipped.holding == {2, 3}


@pytest.mark.clause("shipped.entry.matching-target", "shipped.entry.supplants")
@pytest.mark.clause("shipped.call.supplants-entry", "shipped.entry.created-only")
def test_last_target_counts_and_takes_its_entry() -> None:
    """The znode overrides a call, a call removes the entry, and a rewrite is left alone."""
    called = run(take(make_shipped((1,), BROKERS), Alter((2,))))
    assert run(take(called, WriteEntry((3,)))).assignment.target == (3,)
    named = move((1,), (2,))
    altered = take(named, Alter((3,)))
    assert altered.plan[0] == RemoveEntry(None, "a call counts")
    assert run(altered).entry is None
    rewritten = run(take(named, WriteEntry((4,), created=False), Join(2)))
    assert (rewritten.assigned, rewritten.entry) == ((2,), (4,))


def test_controller_at_an_event_takes_no_call() -> None:
    """Between two effects of a plan a call has to wait."""
    shipped = take(make_shipped((1,), BROKERS), Alter((2,)), Controller())
    with pytest.raises(NotPossible):
        step(shipped, Alter((3,)))


@pytest.mark.clause("shipped.isr.last-kept", "shipped.leader.none-when-stopped")
def test_last_in_sync_replica_outlives_its_broker() -> None:
    """Both die at once: who is cut last stays in sync, and leads again when it is back."""
    shipped = run(take(make_shipped((1, 2), BROKERS), Die(1), Die(2)))
    assert (shipped.leader, shipped.isr) == (-1, (2,))
    assert run(take(shipped, Return(1))).leader == -1
    assert run(take(shipped, Return(2))).leader == 2


@pytest.mark.clause("shipped.isr.told-may-join", "shipped.isr.electable")
def test_leader_takes_in_whom_it_was_told_of() -> None:
    """A dropped replica joins until the next leader epoch; a removed one not after step B3."""
    dropped = take(move((1,), (2,)), Alter(None), Controller(), Controller(), Failover())
    assert dropped.assigned == (1,)
    strange = run(take(dropped, Join(2)))
    assert strange.isr == (1, 2)
    assert find_offline_for_good(run(take(strange, Die(1), Controller(), Return(1)))) is not None
    moved = run(take(move((1, 2), (3,)), Join(3)))
    assert moved.told == {3}
    with pytest.raises(NotPossible):
        take(moved, Join(1))


def test_whoever_dies_a_leader_is_looked_for() -> None:
    """What a change overlooked (zk-6) is mended once any broker dies."""
    shipped = run(take(move((1, 2), (3, 4)), Join(3), Die(1)))
    shipped = run(take(shipped, Alter((2, 4))))
    assert find_leaderless(shipped) is not None
    assert run(take(shipped, Die(3))).leader == 2


def test_znode_that_was_not_read_yet_is_heard_of_again() -> None:
    """Deleted before the controller has looked, it watches still; there must be one to delete."""
    shipped = take(make_shipped((1,), BROKERS), WriteEntry((2,)), DeleteZnode(), WriteEntry((3,)))
    assert run(shipped).assignment.target == (3,)
    with pytest.raises(NotPossible):
        take(make_shipped((1,), BROKERS), DeleteZnode())


@pytest.mark.clause("shipped.leader.holds-committed", "shipped.isr.last-kept")
@pytest.mark.parametrize("problem", ["empty-leader", "bad-lists"])
def test_what_holds_is_not_reachable(problem: str) -> None:
    """With a death, a failover and a change no leader lacks records and no lists contradict."""
    story = search(
        MACHINE,
        take(make_shipped((1, 2), BROKERS), Alter((2, 3))),
        READINGS,
        lambda s: MACHINE.find_broken(MACHINE.by_name[problem], s, READINGS) is not None,
        {"calls": 1, "deaths": 1, "failovers": 1},
        {"targets": (None, (1, 4))},
    )
    assert story is None


@pytest.mark.parametrize("goal", MACHINE.goals, ids=lambda goal: goal.name)
def test_goal_is_reachable(goal: Goal[Shipped]) -> None:
    """What the problems are about does happen."""
    start = take(make_shipped((1, 2), BROKERS), Alter((3, 4)))
    story = search(
        MACHINE,
        start,
        READINGS,
        lambda s: goal.reached(s, READINGS),
        {"calls": 1, "deaths": 1},
        {"targets": ((2, 4),)},
    )
    assert story is not None


def test_contradicting_lists_are_noticed() -> None:
    """A replica twice, an added one that is not assigned, one both added and removed."""
    healthy = make_shipped((1, 2), BROKERS)
    for lists in (((1, 1), (), ()), ((1,), (2,), ()), ((1, 2), (2,), (2,))):
        broken = Shipped(lists[0], 1, (1,), BROKERS, *(healthy.running,) * 2, 0, *lists[1:])
        assert find_bad_lists(broken) is not None
    assert find_bad_lists(healthy) is None
