"""The first reassignment: its steps, its failure cases, and which repairs it needs.

What a single history shows is told by the scenarios.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

import machine_steps as steps
import pytest

from reassure_explorer.scopes.machine import search
from reassure_model.copies import Append
from reassure_model.environment import Controller, Die, Failover, Join, NotPossible, Return
from reassure_model.machine import find_machines
from reassure_model.outcome import Accepted
from reassure_model.protocols.kafka_42 import (
    Command,
    Interrupt,
    Listen,
    Move,
    Observe,
    StopReplica,
    Task,
    WriteLeader,
    apply_effect,
    find_refusal,
    is_complete,
    make_move,
    move_replica_states,
    next_effect,
)
from reassure_model.protocols.kafka_42.machine import (
    find_started_unassigned,
    find_stop_too_early,
    is_at_rest,
    step,
)
from reassure_model.state_machines import ReplicaState
from reassure_spec.readings import Readings, get_profile, override_readings

WRITTEN: Final = get_profile("kafka-42")
REPAIRS: Final = {
    "move.expand-first": "yes",
    "move.cut-isr": "yes",
    "move.recheck-before-stop": "yes",
    "election.unclean": "no",
}
REPAIRED: Final = override_readings(WRITTEN, REPAIRS)
MOVES: Final = (((1,), (2,)), ((1, 2), (2, 3)), ((1, 2), (3, 4)), ((1,), (1, 2)))
MACHINE: Final = find_machines()["kafka-42"]
FAULTS: Final = ({"deaths": 1, "failovers": 1}, {"interrupts": 1, "failovers": 1})
take = partial(steps.take, MACHINE, readings=WRITTEN)
run = partial(steps.run, MACHINE, readings=WRITTEN)


def begin(assigned: tuple[int, ...], target: tuple[int, ...]) -> Move:
    """Return a healthy partition on brokers 1 to 4 at most, with a command for the target."""
    move = make_move(assigned, frozenset(assigned) | frozenset(target))
    outcome = step(move, Command(target), WRITTEN)
    assert isinstance(outcome, Accepted)
    return outcome.state


def find_problem(
    start: Move, readings: Readings, problems: tuple[str, ...], times: dict[str, int]
) -> tuple[object, ...] | None:
    """Return a shortest story to one of the problems."""
    wanted = [MACHINE.by_name[name] for name in problems]
    return search(
        MACHINE,
        start,
        readings,
        lambda move: any(MACHINE.find_broken(each, move, readings) for each in wanted),
        times,
        {},
    )


@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize(("assigned", "target"), MOVES)
def test_problems_repaired_are_unreachable(
    assigned: tuple[int, ...], target: tuple[int, ...], faults: dict[str, int]
) -> None:
    """With all four repairs no problem is reachable with one fault of each of two kinds."""
    every = tuple(MACHINE.by_name)
    assert find_problem(begin(assigned, target), REPAIRED, every, faults) is None


@pytest.mark.parametrize("left_out", REPAIRS)
def test_problem_without_one_repair_is_reachable(left_out: str) -> None:
    """Each of the four repairs is needed: without it some problem is reachable."""
    others = {name: value for name, value in REPAIRS.items() if name != left_out}
    readings = override_readings(WRITTEN, others)
    found = [
        name
        for name in MACHINE.by_name
        for faults in FAULTS
        if find_problem(begin((1,), (2,)), readings, (name,), faults) is not None
    ]
    assert found


@pytest.mark.parametrize("readings", [WRITTEN, REPAIRED], ids=["written", "repaired"])
@pytest.mark.parametrize(("assigned", "target"), MOVES)
def test_move_without_faults_completes(
    assigned: tuple[int, ...], target: tuple[int, ...], readings: object
) -> None:
    """Goal: every move completes with nobody dying, so the problems are not ruled out by rest."""
    story = search(
        MACHINE,
        begin(assigned, target),
        readings,  # type: ignore[arg-type]
        lambda move: is_at_rest(move) and is_complete(move),
        {},
        {},
    )
    assert story is not None


def cut_anywhere(
    assigned: tuple[int, ...], target: tuple[int, ...], readings: Readings, *deaths: int
) -> Iterator[Move]:
    """Yield where a move ends that was cut behind each effect once the target was in sync.

    With each cut one of these brokers dies, if any, and the next controller acts until it waits.
    """
    waiting, _ = run(begin(assigned, target), readings=readings)
    joins = [Join(replica) for replica in target if replica not in assigned]
    synced = take(waiting, *joins, readings=readings)
    _, effects = run(synced, readings=readings)
    for cut in range(len(effects) + 1):
        move = synced
        for effect in effects[:cut]:
            move = apply_effect(move, effect)
        for dead in deaths or (None,):
            died = () if dead is None else (Die(dead),)
            yield run(take(move, *died, Failover(), readings=readings), readings=readings)[0]


@pytest.mark.parametrize("readings", [WRITTEN, REPAIRED], ids=["written", "repaired"])
@pytest.mark.parametrize(("assigned", "target"), MOVES)
def test_move_cut_anywhere_completes(
    assigned: tuple[int, ...], target: tuple[int, ...], readings: Readings
) -> None:
    """A controller that fails after any effect is followed by one that ends in the same place."""
    ends = [(m.assigned, m.leader, m.isr, m.path) for m in cut_anywhere(assigned, target, readings)]
    assert set(ends) == {ends[-1]}
    assert ends[-1][0::3] == (target, None)


@pytest.mark.clause("move.failover.re-elects")
@pytest.mark.parametrize(("assigned", "target"), [move for move in MOVES if len(move[1]) > 1])
def test_death_at_a_failover_gives_nothing_up(
    assigned: tuple[int, ...], target: tuple[int, ...]
) -> None:
    """Whoever of a target in sync dies at a failover, the move ends, led by a live one of it.

    Read by the listener's condition the same deaths give up every move that has not ended.
    """
    ends = list(cut_anywhere(assigned, target, WRITTEN, *target))
    for end in ends:
        assert (end.assigned, end.path) == (target, None)
        assert end.leader in set(target) & end.live & end.holding
    assert len(ends) >= 8
    refusing = override_readings(WRITTEN, {"move.dead-at-failover": "refuse"})
    ends = list(cut_anywhere(assigned, target, refusing, *target))
    assert sum(end.assigned != target for end in ends) >= 4
    assert all(end.path is None for end in ends)


def test_refusals_in_order() -> None:
    """The listener refuses what is missing, the same, or dead; by the letter, what there is."""
    move = make_move((1, 2), frozenset({1, 2, 3}))
    assert find_refusal(move, (2, 3), WRITTEN) is None
    for target, moved, clause in (
        ((1, 2), move, "move.listener.refuse-same"),
        ((2, 4), move, "move.listener.refuse-dead"),
        ((1,), make_move((), frozenset({1})), "move.listener.refuse-missing"),
    ):
        refusal = find_refusal(moved, target, WRITTEN)
        assert refusal is not None
        assert refusal.clause == clause
    literal = override_readings(WRITTEN, {"move.refuses-partition": "existing"})
    assert find_refusal(move, (2, 3), literal) is not None
    assert find_refusal(make_move((), frozenset({1, 2})), (2,), literal) is None


def test_command_compares_in_order() -> None:
    """A target that is assigned in another order is no success."""
    move = take(make_move((2, 1), frozenset({1, 2})), Command((1, 2)))
    assert not is_complete(move)


def test_what_is_too_early_says_for_whom_it_is() -> None:
    """A stop before the target is in sync, and a start before it is assigned, name the replicas."""
    both = frozenset({1, 2})
    move = Move((1,), 1, (1,), both, both, both, path=(2,), task=Task((2,), 5))
    assert find_stop_too_early(move, WRITTEN) == "1 is to be stopped, not in sync: [2]"
    assert find_started_unassigned(move) == "started and not assigned: [2]"


def test_who_joins_is_as_good_as_the_leader() -> None:
    """A leader without the committed records makes whoever joins lack them too."""
    both = frozenset({1, 2})
    assert take(Move((1, 2), 1, (1,), both, both, frozenset({2})), Join(2)).holding == frozenset()


def test_impossible_actions_are_refused() -> None:
    """An action that has nothing to act upon is not possible rather than ignored."""
    move = make_move((1,), frozenset({1, 2}))
    for action in (Join(2), Observe(), Interrupt(), Controller(), Die(3), Return(1)):
        with pytest.raises(NotPossible):
            step(move, action, WRITTEN)
    dead = take(move, Die(1))
    with pytest.raises(NotPossible):
        step(dead, Append(), WRITTEN)


def test_replica_stopped_on_a_dead_broker_is_illegal() -> None:
    """Offline again from offline is not in the four-state table."""
    states, _ = move_replica_states(((1, ReplicaState.ONLINE),), Die(1), WRITTEN)
    states, refused = move_replica_states(states, StopReplica(1), WRITTEN)
    assert len(refused) == 1
    assert states == ()


@pytest.mark.parametrize("dead", [1, 2])
@pytest.mark.parametrize("target", [(2, 1), (2,), (1,)])
def test_only_who_took_office_since_finds_the_path(target: tuple[int, ...], dead: int) -> None:
    """A command is news to the controller in office, which sees to deaths first; not to the next.

    The next one finds the path with the target in sync, and begins with that.
    """
    move = take(make_move((1, 2), frozenset({1, 2})), Die(dead), Command(target))
    assert isinstance(next_effect(move, WRITTEN), WriteLeader)
    assert next_effect(take(move, Failover()), WRITTEN) == Listen(target)
