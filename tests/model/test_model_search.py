"""Every short story of one partition: a breadth-first search over the system's actions.

Epochs and sequence numbers only grow and are only compared with their neighbours, so states are
compared with both counted from the start; that makes the search finite.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial

import machine_steps as taking
import pytest

from reassure_model.environment import Controller, Die, Failover, Join, Leave, NotPossible, Return
from reassure_model.invariants import GOALS, INVARIANTS
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Environment, Partition, is_leader_live
from reassure_model.protocols.kip_236 import apply_failover, next_write
from reassure_model.protocols.kip_236.machine import MACHINE
from reassure_model.protocols.kip_236.rules import accept_write
from reassure_model.protocols.kip_236.system import (
    Action,
    Submit,
    System,
    compute_plan,
    enabled,
    make_system,
    step,
)
from reassure_model.writes import ChangeIsr
from reassure_spec.readings import Readings, get_profile

WRITTEN = get_profile("kip-236")
take = partial(taking.take, MACHINE, readings=WRITTEN)


@dataclass(frozen=True, slots=True)
class Scope:
    """How far the search goes."""

    name: str
    assigned: tuple[int, ...]
    targets: tuple[tuple[int, ...], ...]
    depth: int
    most_dead: int = 1
    most_pending: int = 1
    brokers: tuple[int, ...] = (1, 2, 3)
    min_insync_replicas: int = 1


SCOPES = (
    Scope("one replica", (1,), ((2,), (3,), (1,), (2, 3)), 11, most_dead=2),
    Scope("two replicas", (1, 2), ((2, 3), (3, 1), (3,)), 11),
    Scope("two in sync", (1, 2), ((2, 3), (2, 1), (3,)), 10, 2, min_insync_replicas=2),
    Scope("two requests", (1, 2), ((3, 2), (1, 3)), 9, most_pending=2),
    Scope("four brokers", (1, 2), ((3, 4), (1, 4), (1, 2)), 9, brokers=(1, 2, 3, 4)),
)
PROFILES = ("kip-236", "kip-236-amended")
EACH = pytest.mark.parametrize(
    ("scope", "profile"),
    [
        pytest.param(scope, profile, id=f"{scope.name}-{profile}")
        for scope in SCOPES
        for profile in PROFILES
    ],
)


def actions_within(system: System, scope: Scope, readings: Readings) -> Iterator[Action]:
    """Yield the actions that the scope leaves possible."""
    pending = len(system.partition.requests)
    targets = scope.targets if pending < scope.most_pending else ()
    for action in enabled(system, readings, tuple(map(Submit, targets))):
        dead = len(system.known - system.live)
        if not isinstance(action, Die) or dead < scope.most_dead:
            yield action


@cache
def search(scope: Scope, profile: str) -> frozenset[System]:
    """Return every state within the scope; whatever is owed or honest is accepted on the way."""
    readings = get_profile(profile)
    level = [
        make_system(scope.assigned, scope.brokers, min_insync_replicas=scope.min_insync_replicas)
    ]
    found = set(level)
    for _ in range(scope.depth):
        following = []
        for system in level:
            for action in actions_within(system, scope, readings):
                outcome = step(system, action, readings)
                assert isinstance(outcome, Accepted), f"{outcome} for {action} in {system}"
                after = MACHINE.normalise(outcome.state)
                if after not in found:
                    found.add(after)
                    following.append(after)
        level = following
    return frozenset(found)


@pytest.mark.clause("leader.in-isr", "isr.never-empty", "leader.assigned")
@pytest.mark.clause("isr.within-assigned", "top.bounds-assigned")
@EACH
def test_invariants_hold_in_every_state(scope: Scope, profile: str) -> None:
    """Each invariant holds in every reachable state, those for rest in every state at rest.

    The rules accept whatever the controller owes and whatever an honest leader writes.
    """
    readings = get_profile(profile)
    found = search(scope, profile)
    assert len(found) > 300
    for system in found:
        rests = next_write(system.partition, system.around, readings) is None
        for invariant in INVARIANTS:
            if rests or not invariant.at_rest:
                assert invariant.find(system.partition) is None, (invariant.clause, system)


@pytest.mark.parametrize("profile", PROFILES)
def test_every_goal_reached(profile: str) -> None:
    """The states that make the invariants worth stating are all reachable."""
    systems = [system for scope in SCOPES for system in search(scope, profile)]
    reached = {name for name, find in GOALS.items() if any(find(s.partition) for s in systems)}
    assert reached == set(GOALS)


def outcome_of(partition: Partition) -> tuple[object, ...]:
    """Return what matters of where a partition came to rest."""
    state = partition.state
    shown = None if state is None else (state.leader, frozenset(state.isr))
    return (frozenset(partition.assigned or ()), shown, partition.reassignment, partition.requests)


def crashed_at_each_write(
    system: System, readings: Readings
) -> Iterator[tuple[Partition, Partition]]:
    """Yield where the plan ends, uninterrupted and resumed by another controller, for each cut."""
    plan, final = compute_plan(system.partition, system.around, readings)
    successor: Environment = replace(system.around, controller_epoch=2)
    partition = system.partition
    for owed in plan:
        _, resumed = compute_plan(apply_failover(partition, readings), successor, readings)
        yield final, resumed
        outcome = accept_write(partition, owed.write, system.around, readings)
        assert isinstance(outcome, Accepted)
        partition = outcome.state


@pytest.mark.clause("drop.carried-out")
@EACH
def test_crash_between_writes_changes_nothing_in_the_end(scope: Scope, profile: str) -> None:
    """A plan cut anywhere and resumed by another controller ends where it would have ended.

    With one exception: the drop of a change whose whole target is assigned already leaves no
    trace. Lost in a crash, it is made up for at completion, so that until then replicas more than
    necessary may be assigned, though never more than top and the target allow.
    """
    readings = get_profile(profile)
    cuts = 0
    for system in search(scope, profile):
        for final, resumed in crashed_at_each_write(system, readings):
            cuts += 1
            if outcome_of(final) == outcome_of(resumed):
                continue
            flight = final.reassignment
            assert flight is not None, system
            assert resumed.requests == final.requests, system
            if resumed.reassignment is None:
                # As written the drop can take target replicas in sync: the crash has saved them.
                assert profile == "kip-236", system
                assert resumed.assigned == flight.target
            else:
                assert resumed.reassignment == flight, system
                assert set(resumed.assigned or ()) > set(final.assigned or ())
    assert cuts > 300


def settle(system: System, readings: Readings) -> System:
    """Return the system at rest after every broker came back and every replica caught up."""
    everybody = replace(system, live=system.known)
    for _ in range(4):
        partition = compute_plan(everybody.partition, everybody.around, readings)[1]
        everybody = replace(everybody, partition=partition)
        while joins := [a for a in enabled(everybody, readings) if isinstance(a, Join)]:
            everybody = take(everybody, joins[0], readings=readings)
    return everybody


def count_longest(system: System, readings: Readings, known: dict[System, int]) -> int:
    """Return how many writes and joins can follow at most; -1 in `known` marks the way here."""
    if system not in known:
        known[system] = -1
        steps = [0]
        for action in enabled(system, readings):
            if isinstance(action, Controller | Join):
                outcome = step(system, action, readings)
                if not isinstance(outcome, Rejected):
                    steps.append(
                        1 + count_longest(MACHINE.normalise(outcome.state), readings, known)
                    )
        known[system] = max(steps)
    assert known[system] >= 0, f"a replica joins and is taken out again without end: {system}"
    return known[system]


@pytest.mark.clause("isr.change.stopped-stays-out")
@EACH
def test_nobody_joins_and_is_taken_out_without_end(scope: Scope, profile: str) -> None:
    """Writes of one controller and replicas catching up come to an end, whatever their order."""
    readings = get_profile(profile)
    known: dict[System, int] = {}
    for system in search(scope, profile):
        assert count_longest(system, readings, known) < 40


@EACH
def test_joins_are_put_to_the_rules_before_the_stop(scope: Scope, profile: str) -> None:
    """A join that the rules reject is rejected by their clause, of a stopped replica as well."""
    readings = get_profile(profile)
    for system in search(scope, profile):
        state = system.partition.state
        if state is None or not is_leader_live(state, system.around):
            continue
        for replica in system.known:
            write = ChangeIsr(replace(state, isr=(*state.isr, replica)), state.leader)
            judged = accept_write(system.partition, write, system.around, readings)
            if isinstance(judged, Rejected):
                assert step(system, Join(replica), readings) == judged


@pytest.mark.parametrize("profile", PROFILES)
def test_replica_that_was_told_to_stop_does_not_join(profile: str) -> None:
    """Between the cut of a completion and its assignment the old replica stays out; not after."""
    readings = get_profile(profile)
    actions: tuple[Action, ...] = (Controller(), Submit((2, 3)), *[Controller()] * 4, Join(3))
    system = take(make_system((1, 2), (1, 2, 3)), *actions, readings=readings)
    while system.partition.state is not None and 1 in system.partition.state.isr:
        system = take(system, Controller(), readings=readings)
    assert system.partition.assigned == (1, 2, 3)
    assert Join(1) not in enabled(system, readings)
    outcome = step(system, Join(1), readings)
    assert isinstance(outcome, Rejected)
    assert outcome.clause == "isr.change.stopped-stays-out"
    assert Join(1) in enabled(take(system, Failover(), readings=readings), readings)


@pytest.mark.clause("complete.carried-out", "request.consumed")
@EACH
def test_healed_system_completes_everything(scope: Scope, profile: str) -> None:
    """Once brokers return and replicas catch up, every request and reassignment comes to an end."""
    readings = get_profile(profile)
    for system in search(scope, profile):
        healed = settle(system, readings).partition
        assert healed.reassignment is None, system
        assert healed.requests == ()
        assert healed.state is not None
        assert set(healed.state.isr) == set(healed.assigned or ())


def test_actions_that_are_not_possible_raise() -> None:
    """An action with nothing to act upon is refused as a mistake of the caller, not of a rule."""
    readings = get_profile("kip-236")
    born = make_system((1, 2), (1, 2, 3))
    for action in (Join(2), Leave(2), Return(3), Die(4)):
        with pytest.raises(NotPossible, match=type(action).__name__):
            step(born, action, readings)
    with pytest.raises(NotPossible, match="owes nothing"):
        take(born, Controller(), Controller())


def test_steps_do_what_they_say() -> None:
    """Submit numbers requests, a failover raises the epoch, brokers come and go."""
    actions = (Submit((2, 3)), Submit((2, 1)), Failover(), Die(1), Return(3), Return(1))
    system = take(make_system((1, 2), (1, 2), min_insync_replicas=2), *actions)
    assert [request.sequence for request in system.partition.requests] == [0, 1]
    assert system.controller_epoch == 2
    assert system.live == system.known == frozenset({1, 2, 3})
    assert system.around.min_insync_replicas == 2
