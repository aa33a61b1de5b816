"""Healing on ordinary partitions: its tasks are requests, and what follows is the ordinary way."""

from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reassure_model.environment import Controller, Die, Failover, Join, NotPossible, On, Return
from reassure_model.outcome import Accepted
from reassure_model.protocols.kip_46 import (
    HealingConfig,
    RemoveTask,
    StartTask,
    Submit,
    Task,
    Tick,
    apply_effect,
    get_hosted,
)
from reassure_model.protocols.kip_46.machine import (
    find_duplicate,
    find_factor_changed,
    find_two_running,
)
from reassure_model.protocols.kip_46.moves import (
    Action,
    Healed,
    as_cluster,
    make_healed,
    next_step,
    step,
)
from reassure_spec.readings import Readings, get_profile, override_readings

CONFIG: Final = HealingConfig()
WRITTEN: Final = get_profile("kip-46")
REPAIRED: Final = override_readings(
    WRITTEN,
    {"heal.regenerate": "from-plan", "heal.replaces": "all-due", "heal.stale-task": "skip"},
)
T0: Final = ("t", 0)
T1: Final = ("t", 1)
MOST_STEPS: Final = 200


def take(healed: Healed, *actions: object, readings: Readings = WRITTEN) -> Healed:
    """Take actions that must be accepted."""
    for action in actions:
        outcome = step(healed, action, CONFIG, readings)  # type: ignore[arg-type]
        assert isinstance(outcome, Accepted), outcome
        healed = outcome.state
    return healed


def run(healed: Healed, readings: Readings = WRITTEN) -> Healed:
    """Let the controller act until it waits."""
    for _ in range(MOST_STEPS):
        if next_step(healed, CONFIG, readings) is None:
            return healed
        healed = take(healed, Controller(), readings=readings)
    raise AssertionError("the controller never comes to rest")


def join_all(healed: Healed) -> Healed:
    """Let every live replica that is assigned catch up, where there is a leader."""
    for key, partition in healed.partitions:
        for replica in partition.assigned or ():
            try:
                outcome = step(healed, On(key, Join(replica)), CONFIG, WRITTEN)
            except NotPossible:
                continue
            if isinstance(outcome, Accepted):
                healed = outcome.state
    return healed


def settle(healed: Healed, readings: Readings = WRITTEN) -> Healed:
    """Let controller and followers act until nothing changes."""
    for _ in range(20):
        after = join_all(run(healed, readings))
        if after == healed:
            return healed
        healed = after
    raise AssertionError("it never comes to an end")


def small() -> Healed:
    """Return four brokers and two partitions, online."""
    return run(make_healed(dict.fromkeys((1, 2, 3, 4)), {T0: (1, 2), T1: (2, 3)}))


@pytest.mark.clause("heal.task.as-reassignment", "heal.task.started", "heal.task.one-at-a-time")
def test_tasks_are_carried_out_by_the_ordinary_rules() -> None:
    """A broker that stays away is replaced by requests, one task after the other."""
    healed = run(take(run(take(small(), Die(2))), Tick(1000)))
    assert [task.assignments for task in healed.tasks] == [((T0, (1, 4)),), ((T1, (1, 3)),)]
    assert healed.get(T0).reassignment is not None, "the first task runs"
    assert healed.get(T1).reassignment is None, "the second waits"
    healed = settle(healed)
    assert [healed.get(key).assigned for key in (T0, T1)] == [(1, 4), (1, 3)]
    assert (healed.tasks, healed.failed) == ((), ())


@pytest.mark.clause("heal.task.as-reassignment")
def test_tasks_leave_alone_what_is_there() -> None:
    """The request of a task names only those of its partitions that are not there yet."""
    healed = take(small(), Submit(((T0, (1, 2)), (T1, (2, 4)))), Controller())
    assert healed.get(T0).requests == ()
    assert [request.target for request in healed.get(T1).requests] == [(2, 4)]


@pytest.mark.clause("heal.task.as-reassignment")
def test_tasks_that_would_be_refused_are_refused() -> None:
    """What nobody could reassign is removed, and those behind it go on."""
    healed = take(small(), Submit(((T0, (1, 9)),)), Submit(((T1, (2, 4)),)))
    healed = take(healed, Controller())  # a record of the broker that is not there
    due = next_step(healed, CONFIG, WRITTEN)
    assert due == RemoveTask(0, "heal.task.as-reassignment", "refused")
    assert settle(healed).get(T1).assigned == (2, 4)


MOVES: Final = st.tuples(st.integers(0, 9), st.integers(1, 5))


def move(healed: Healed, what: int, broker: int, readings: Readings) -> Healed:
    """Take one step by two numbers; one that is not possible changes nothing."""
    choices = {
        4: Die(broker),
        5: Return(broker),
        6: Tick(1000),
        7: Failover(),
        8: On((T0, T1)[broker % 2], Join(broker)),
        9: Submit((((T0, T1)[broker % 2], (broker, 1 + broker % 5)),)),
    }
    action = choices.get(what, Controller())
    if isinstance(action, Submit) and len(healed.tasks) > 3:
        return healed
    try:
        outcome = step(healed, action, CONFIG, readings)
    except NotPossible:
        return healed
    if not isinstance(outcome, Accepted):
        assert isinstance(action, On), f"the rules reject {action}: {outcome}"
        return healed
    return outcome.state


@pytest.mark.parametrize("readings", [WRITTEN, REPAIRED], ids=["written", "repaired"])
@settings(max_examples=60, deadline=None)
@given(moves=st.lists(MOVES, max_size=60))
def test_healing_sees_what_happens_to_its_partitions(
    readings: Readings, moves: list[tuple[int, int]]
) -> None:
    """Whatever happens, what healing takes a start for is what becomes of the partitions."""
    healed = run(make_healed(dict.fromkeys(range(1, 6)), {T0: (1, 2), T1: (2, 3)}), readings)
    for what, broker in moves:
        due = next_step(healed, CONFIG, readings) if what <= 3 else None
        before, healed = healed, move(healed, what, broker, readings)
        cluster = as_cluster(healed)
        checks = (find_two_running, find_duplicate)
        assert [find(cluster) for find in checks] == [None, None]
        if isinstance(due, StartTask):
            wanted = apply_effect(as_cluster(before), due)
            for hosted in wanted.partitions:
                after = get_hosted(cluster, hosted.key)
                assert after is not None
                assert after.target == hosted.target


def test_generated_tasks_keep_the_number_of_replicas() -> None:
    """A task that is generated while another runs changes the number of nobody's replicas."""
    healed = run(take(run(take(small(), Die(2))), Tick(1000)))
    healed = run(take(run(take(healed, Die(3))), Tick(1000)))
    assert find_factor_changed(as_cluster(healed)) is None
    assert all(isinstance(task, Task) for task in healed.tasks)


FAULTS: Final = {Die: 2, Return: 1, Failover: 1, Tick: 1}
"""How often each of them happens at most, in any order and between any two steps."""


@pytest.mark.parametrize("readings", [WRITTEN, REPAIRED], ids=["written", "repaired"])
@pytest.mark.clause("heal.task.as-reassignment", "heal.task.one-at-a-time")
def test_no_interleaving_needs_another_way_to_move_a_partition(readings: Readings) -> None:
    """Between any two steps a broker may die or return, time pass, another controller come."""
    first = run(make_healed(dict.fromkeys((1, 2, 3)), {T0: (1, 2)}), readings)
    start = (first, tuple(FAULTS.values()))
    seen, waiting, replaced = {start}, [start], 0
    while waiting:
        healed, left = waiting.pop()
        cluster = as_cluster(healed)
        assert find_two_running(cluster) is None
        assert find_duplicate(cluster) is None
        replaced += healed.get(T0).assigned == (1, 3) and not healed.tasks
        for action in iterate_actions(healed, dict(zip(FAULTS, left, strict=True))):
            try:
                outcome = step(healed, action, CONFIG, readings)
            except NotPossible:
                continue
            if isinstance(action, On) and not isinstance(outcome, Accepted):
                continue  # who is in sync already, or dead, does not join
            assert isinstance(outcome, Accepted), f"{action}: {outcome}"
            fewer = tuple(
                number - isinstance(action, kind) for kind, number in zip(FAULTS, left, strict=True)
            )
            after = (outcome.state, fewer)
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    assert replaced > 0, "somewhere the broker was replaced and all was done"


def iterate_actions(healed: Healed, left: dict[type, int]) -> Iterator[Action]:
    """Yield what may happen next."""
    yield Controller()
    yield from (On(T0, Join(broker)) for broker in (1, 2, 3))
    if left[Die]:
        yield from (Die(broker) for broker in sorted(healed.live))
    if left[Return]:
        yield from (Return(broker) for broker in sorted(healed.known - healed.live))
    if left[Failover]:
        yield Failover()
    if left[Tick]:
        yield Tick(1000)
