"""Healing: what it never does, that it ends, and what crashes cannot change.

What a single history shows is told by the scenarios.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

import machine_steps as steps
import pytest

from reassure_explorer.scopes.machine import search as search_machine
from reassure_model.environment import Controller, Die, Failover, NotPossible
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Environment, Partition
from reassure_model.protocols.kip_46 import (
    Assignments,
    CatchUp,
    Cluster,
    CreateTask,
    DeleteRecord,
    Finish,
    Generate,
    HealingConfig,
    RecordFailure,
    RemoveTask,
    StartTask,
    Submit,
    Task,
    Tick,
    apply_effect,
    choose_replacement,
    compute_quota,
    find_quota_exceeded,
    find_running,
    is_redundant,
    make_cluster,
    next_effect,
)
from reassure_model.protocols.kip_46.healing import Healing
from reassure_model.protocols.kip_46.machine import MACHINE, carry_out
from reassure_model.protocols.kip_46.writes import find_owed, host
from reassure_spec.readings import Readings, get_profile, override_readings
from reassure_spec.znodes import (
    BadZnode,
    decode_failed_broker,
    decode_task,
)

CONFIG: Final = HealingConfig()
WRITTEN: Final = get_profile("kip-46")
REPAIRED: Final = override_readings(
    WRITTEN, {"heal.regenerate": "from-plan", "heal.replaces": "all-due", "heal.stale-task": "skip"}
)
T0: Final = ("t", 0)
T1: Final = ("t", 1)
take = partial(steps.take, MACHINE, readings=WRITTEN)
run = partial(steps.run, MACHINE, readings=WRITTEN)


def small() -> Cluster:
    """Return three brokers and a partition on two of them."""
    return make_cluster({1: None, 2: None, 3: None}, {T0: (1, 2)})


def away() -> Cluster:
    """Return a cluster in which broker 2 was recorded and is away for the interval."""
    brokers = dict.fromkeys((1, 2, 3, 4))
    cluster = make_cluster(brokers, {T0: (1, 2), T1: (2, 3)})
    return take(take(cluster, Die(2), Controller()), Tick(1000))


def look_for(
    cluster: Cluster, found: Callable[[Cluster], bool], readings: Readings, **times: int
) -> tuple[object, ...] | None:
    """Return a shortest story to what is looked for, with so many deaths, returns and so on."""
    return search_machine(MACHINE, cluster, readings, found, {"ticks": 2, **times}, {})


def search(cluster: Cluster, problem: str, readings: Readings, **times: int) -> int | None:
    """Return the length of a shortest story to a problem, None where it is not reachable."""
    find = MACHINE.by_name[problem].find
    story = look_for(cluster, lambda c: bool(find(c, readings)), readings, **times)
    return None if story is None else len(story)


@pytest.mark.parametrize("readings", [WRITTEN, REPAIRED], ids=["written", "repaired"])
def test_invariants_hold_everywhere(readings: Readings) -> None:
    """No story with two deaths, a return and a failover breaks an invariant."""
    names = ("two-running", "duplicate-replica", "factor-changed")
    finds = [MACHINE.by_name[name].find for name in names]
    story = look_for(
        small(),
        lambda cluster: any(find(cluster, readings) for find in finds),
        readings,
        deaths=2,
        returns=1,
        failovers=1,
    )
    assert story is None


@pytest.mark.parametrize("readings", [WRITTEN, REPAIRED], ids=["written", "repaired"])
def test_rules_accept_what_the_controller_does(readings: Readings) -> None:
    """Within the same bounds the rules on writes reject no effect that is due."""

    def is_rejected(cluster: Cluster) -> bool:
        effect = next_effect(cluster, CONFIG, readings)
        return effect is not None and isinstance(carry_out(cluster, effect, readings), Rejected)

    assert look_for(small(), is_rejected, readings, deaths=2, returns=1, failovers=1) is None


def test_live_replica_with_stale_tasks_skipped_stays() -> None:
    """With stale tasks skipped no story within the same bounds takes a live replica out."""
    assert search(small(), "live-removed", REPAIRED, deaths=2, returns=1, failovers=1) is None


@pytest.mark.parametrize(
    "effect", [RecordFailure, DeleteRecord, Generate, CreateTask, StartTask, RemoveTask]
)
def test_goal_every_effect_is_reachable(effect: type) -> None:
    """Goal: the controller comes to owe each kind of effect, so the invariants are not vacuous."""
    story = look_for(
        small(),
        lambda cluster: isinstance(next_effect(cluster, CONFIG, WRITTEN), effect),
        WRITTEN,
        deaths=1,
        returns=1,
    )
    assert story is not None


@pytest.mark.parametrize("readings", [WRITTEN, REPAIRED], ids=["written", "repaired"])
def test_crash_anywhere_heals_the_same(readings: Readings) -> None:
    """A controller that fails after any effect is followed by one that ends in the same place."""

    def heal(cluster: Cluster) -> Cluster:
        cluster, _ = run(cluster, readings=readings)
        while (task := find_running(cluster)) is not None:
            for key, _ in task.assignments:
                cluster = take(cluster, Finish(key), readings=readings)
            cluster, _ = run(cluster, readings=readings)
        return cluster

    start = away()
    end = heal(start)
    assert (end.tasks, end.failed) == ((), ())
    assert all(2 not in hosted.assigned for hosted in end.partitions)
    _, effects = run(start, readings=readings)
    for cut in range(len(effects) + 1):
        cluster = start
        for effect in effects[:cut]:
            cluster = apply_effect(cluster, effect)
        after = heal(take(cluster, Failover(), readings=readings))
        assert (after.partitions, after.tasks, after.failed) == (end.partitions, (), ()), cut


def test_record_goes_only_after_every_task_is_persisted() -> None:
    """No prefix of the plan has deleted the record while a task is still to be persisted."""
    _, effects = run(away())
    kinds = [type(effect) for effect in effects]
    assert kinds.index(DeleteRecord) > max(i for i, k in enumerate(kinds) if k is CreateTask)


def test_target_avoids_replicas_and_failed_brokers() -> None:
    """Neither a replica of the partition nor a dead or recorded broker takes over."""
    cluster = make_cluster(dict.fromkeys((1, 2, 3, 4)), {T0: (1, 2)})
    cluster = take(cluster, Die(2), Die(3), Controller())
    assert choose_replacement(cluster, (1, 2), 2, {}) == 4
    assert choose_replacement(take(cluster, Die(4)), (1, 2), 2, {}) is None
    recorded = replace(cluster, failed=((3, 0),), live=cluster.live | {3})
    assert choose_replacement(recorded, (1, 2), 2, {4: 9}) == 4


def test_partition_that_is_gone_needs_no_replicas() -> None:
    """A task whose partition does not exist any more is as good as done."""
    assert is_redundant(small(), Task(0, ((T1, (1, 2)),)), WRITTEN)


def test_partition_that_is_not_there_is_not_hosted() -> None:
    """Healing looks at nothing of a partition of which there are requests alone."""
    assert host(T0, Partition()) is None


def test_broker_with_a_record_takes_nobodys_place() -> None:
    """Who is back counts as failed as long as its record stands."""
    cluster = replace(small(), failed=((2, 0), (3, 0)))
    found = carry_out(cluster, CreateTask(((T0, (1, 3)),)), WRITTEN)
    assert isinstance(found, Rejected)
    assert found.clause == "heal.target.live"


@pytest.mark.parametrize("assignments", [(), ((T0, ()),), ((T0, (1, 1)),)])
def test_task_that_nobody_can_carry_out_is_only_removed(assignments: Assignments) -> None:
    """A task for no partition, or to nobody, or to somebody twice, may go and may not start."""
    task = Task(0, assignments)
    cluster = replace(small(), tasks=(task,))
    found = carry_out(cluster, StartTask(assignments), WRITTEN)
    assert isinstance(found, Rejected)
    due = find_owed(Healing(cluster), Environment(cluster.live, cluster.live), WRITTEN)
    assert due is not None
    removed = carry_out(cluster, due.write, WRITTEN)
    assert isinstance(removed, Accepted)
    assert [found.clause, due.clause, *removed.clauses] == ["heal.task.refuse-duplicate"] * 3


def test_rest_of_a_task_may_be_started_while_it_runs() -> None:
    """A task may be asked for in parts, and none of the rules on its start is asked twice."""
    task = Task(0, ((T0, (1, 3)), (T1, (2, 1))))
    cluster = replace(small(), tasks=(task,))
    first, *others = cluster.partitions
    running = replace(cluster, partitions=(replace(first, target=(1, 3)), *others))
    judged = carry_out(running, StartTask(((T1, (2, 1)),)), WRITTEN)
    assert isinstance(judged, Accepted)
    assert judged.clauses == (
        "heal.task.in-order",
        "heal.task.as-reassignment",
        "heal.task.started",
        "heal.task.started-once",
    )
    again = carry_out(running, StartTask(((T0, (1, 3)), (T1, (2, 1)))), WRITTEN)
    assert isinstance(again, Rejected)
    assert again.clause == "heal.task.started-once"


@pytest.mark.parametrize("action", [Finish(T0), Finish(T1), CatchUp(T1)])
def test_what_is_not_moved_or_not_there_cannot_be_reached(action: object) -> None:
    """Nothing reaches its target that has none, and nobody catches up with what does not exist."""
    with pytest.raises(NotPossible):
        take(small(), action)


def test_move_to_a_dead_broker_does_not_finish() -> None:
    """A partition waits for every replica of its target."""
    (hosted,) = small().partitions
    moving = replace(small(), partitions=(replace(hosted, target=(1, 3)),))
    assert take(moving, Finish(T0)).partitions[0].assigned == (1, 3)
    with pytest.raises(NotPossible):
        take(moving, Die(3), Finish(T0))


@pytest.mark.parametrize(
    ("target", "isr", "clause", "reason"),
    [
        ((1,), (1, 2), "heal.generate.replaces-failed", "t-0 from [1, 2] to [1]"),
        (
            (1, 3),
            (1,),
            "heal.cancel.enough-replicas",
            "the task is dropped with assigned [1, 2] and in sync [1]",
        ),
    ],
)
def test_what_a_reader_takes_for_granted_is_found_broken(
    target: tuple[int, ...], isr: tuple[int, ...], clause: str, reason: str
) -> None:
    """A task with fewer replicas, and one that is pointless by one meaning alone, are told."""
    (hosted,) = small().partitions
    tasks = (Task(0, ((T0, target),)),)
    cluster = replace(small(), partitions=(replace(hosted, isr=isr),), tasks=tasks)
    found = {each.clause: each.find(cluster, WRITTEN) for each in MACHINE.properties}
    assert found[clause] == reason


def test_operators_task_is_told_as_a_command() -> None:
    """The story of a search can be read as a scenario."""
    act = MACHINE.find_act(Submit(((T0, (1, 3)),)))
    assert act.say(((T0, (1, 3)),)) == "submit partition=t-0 target=1,3"


@pytest.mark.parametrize("movers", [1, 3, 50])
def test_quota_is_the_same_for_any_number_of_movers(movers: int) -> None:
    """All movers together stay within the share, and one unit more is too much."""
    rate = compute_quota(1000, movers, CONFIG)
    assert find_quota_exceeded((rate,) * movers, 1000, CONFIG) is None
    assert find_quota_exceeded((501,), 1000, CONFIG) is not None


@pytest.mark.parametrize(
    ("decode", "content"),
    [
        *((decode_task, content) for content in (b"", b"[]", b'{"version":1}')),
        (decode_task, b'{"version":1,"assignments":{"t":{"x":[1]}}}'),
        *((decode_failed_broker, data) for data in (b"{}", b'{"failure_timestamp":"1"}', b"7")),
    ],
)
def test_malformed_tasks_and_records_are_refused(
    decode: Callable[[str, bytes], object], content: bytes
) -> None:
    """Content that is no task, or no record of a failure, is refused with its path."""
    with pytest.raises(BadZnode, match="p: "):
        decode("p", content)
