"""Healing: what it never does, that it ends, and what crashes cannot change."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

import pytest
import steps

from reassure_explorer.scopes.machine import search as search_machine
from reassure_model.environment import Controller, Die, Failover, NotPossible, Return
from reassure_model.outcome import Rejected
from reassure_model.protocols.kip_46 import (
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
    Tick,
    apply_effect,
    choose_replacement,
    compute_quota,
    find_quota_exceeded,
    find_running,
    generate_tasks,
    make_cluster,
    next_effect,
)
from reassure_model.protocols.kip_46.machine import MACHINE, step
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


@pytest.mark.parametrize("why", ["satisfied", "enough replicas"])
def test_goal_both_ends_of_a_task_are_reachable(why: str) -> None:
    """Goal: a task can end because it is done and because it is cancelled."""

    def ends(cluster: Cluster) -> bool:
        effect = next_effect(cluster, CONFIG, WRITTEN)
        return isinstance(effect, RemoveTask) and effect.why == why

    assert look_for(small(), ends, WRITTEN, deaths=1, returns=1) is not None


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


@pytest.mark.parametrize(("milliseconds", "generates"), [(999, False), (1000, True)])
def test_interval_is_a_lower_bound(milliseconds: int, *, generates: bool) -> None:
    """Tasks are generated at the interval and not a millisecond before."""
    recorded = take(small(), Die(2), Controller())
    _, effects = run(take(recorded, Tick(milliseconds)))
    assert any(isinstance(effect, Generate) for effect in effects) == generates


def test_record_keeps_its_first_timestamp() -> None:
    """A broker that flaps unseen is not recorded anew."""
    cluster = take(small(), Die(2), Controller(), Tick(400), Return(2), Die(2))
    assert run(cluster)[0].failed == ((2, 0),)


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


def test_target_prefers_a_rack_of_its_own() -> None:
    """The rack decides before the load where all racks are known, and not where one is not."""
    racks: dict[int, str | None] = {1: "a", 2: "b", 3: "a", 4: "b"}
    known = make_cluster(racks, {T0: (1, 2)})
    assert choose_replacement(known, (1, 2), 2, {4: 9}) == 4
    unknown = make_cluster({**racks, 3: None}, {T0: (1, 2)})
    assert choose_replacement(unknown, (1, 2), 2, {4: 9}) == 3


def test_targets_are_spread_evenly() -> None:
    """Six replicas of one broker go to three others, two each."""
    keys = {("t", number): (1, 2) for number in range(6)}
    cluster = take(make_cluster(dict.fromkeys((1, 2, 3, 4, 5)), keys), Die(2))
    tasks = generate_tasks(cluster, 2, CONFIG, WRITTEN)
    chosen = [target[1] for task in tasks for _, target in task]
    assert sorted(chosen) == [3, 3, 4, 4, 5, 5]


def test_operators_task_is_executed_though_redundant() -> None:
    """Only generated tasks are cancelled; an operator's is executed."""
    cluster = take(small(), Submit(((T0, (1, 3)),)))
    assert next_effect(cluster, CONFIG, WRITTEN) == StartTask(0)


def test_task_with_a_replica_twice_is_rejected() -> None:
    """A task that can never be carried out is not persisted."""
    assert isinstance(step(small(), Submit(((T0, (1, 1)),)), CONFIG, WRITTEN), Rejected)
    assert isinstance(step(small(), Submit(((T0, ()),)), CONFIG, WRITTEN), Rejected)


def test_running_task_with_a_dead_target_stops_the_queue() -> None:
    """A task that runs is not cancelled, so a dead target keeps the next one from starting."""
    cluster, _ = run(away())
    running = find_running(cluster)
    assert running is not None
    cluster, _ = run(take(cluster, Die(running.assignments[0][1][1]), Tick(5000)))
    assert find_running(cluster) == running
    with pytest.raises(NotPossible):
        step(cluster, Finish(running.assignments[0][0]), CONFIG, WRITTEN)


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
