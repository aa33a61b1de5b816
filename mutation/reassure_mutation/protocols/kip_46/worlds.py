"""The worlds of KIP-46: a cluster with its records and tasks, whose partitions move by themselves.

A controller generates by its clock, which no history shows: it is held against nobody that rests.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from reassure_judge.moments import Kept
from reassure_model.environment import Die, Return
from reassure_model.outcome import Accepted
from reassure_model.partition import Environment, LeaderAndIsr, Partition
from reassure_model.protocols.kip_46 import (
    Assignments,
    CatchUp,
    Cluster,
    CreateTask,
    Finish,
    HealingConfig,
    Tick,
    make_cluster,
)
from reassure_model.protocols.kip_46.healing import Healing, follow
from reassure_model.protocols.kip_46.machine import enabled, step
from reassure_model.protocols.kip_46.writes import HEALING, next_write
from reassure_mutation.judged import Judged
from reassure_mutation.worlds import FAILOVER, TOPIC, Move, World, load_worlds, spell_target
from reassure_spec.readings import Readings
from reassure_spec.znodes import ReplicaList

CONFIG: Final = HealingConfig()


def make_rules(profile: str, readings: Readings) -> Judged:
    """Return what is asked of records and tasks."""
    return Judged(replace(HEALING, owed=next_write), readings, HEALING.owed)


def _begin(lists: tuple[ReplicaList, ...] | None, members: frozenset[int]) -> Healing:
    hosted = {(TOPIC, number): replicas for number, replicas in enumerate(lists or ())}
    return see(Healing(make_cluster(dict.fromkeys(members), hosted)))


def see(state: Healing, cluster: Cluster | None = None) -> Healing:
    """Return the state with partitions as their leaders and moves leave them."""
    cluster = cluster or state.cluster
    partitions = {
        hosted.key: Partition(hosted.assigned, LeaderAndIsr(hosted.isr[0], 0, 1, hosted.isr))
        for hosted in cluster.partitions
    }
    return replace(state, cluster=cluster, partitions=Kept(partitions), minimums=Kept({}))


WORLDS: Final = load_worlds(__package__, _begin)


def list_moves(
    state: Healing, around: Environment, world: World, readings: Readings
) -> Iterator[Move]:
    """Yield what may happen in a state."""
    cluster = state.cluster
    for target in world.targets:
        asked: Assignments = tuple(((TOPIC, number), to) for number, to in target)
        named = " and ".join(f"{TOPIC}-{number} to {spell_target(to)}" for number, to in target)
        after = follow(state, CreateTask(asked, automatic=False), readings)
        yield Move((f"task {named}",), after, around, "tasks")
    behind = [
        CatchUp(hosted.key)
        for hosted in cluster.partitions
        if hosted.target is None and not cluster.live.intersection(hosted.assigned) <= {*hosted.isr}
    ]
    for action in (*enabled(cluster, CONFIG, readings), *behind):
        lines, counted = _spell(action, cluster)
        outcome = None if lines is None else step(cluster, action, CONFIG, readings)
        if lines is not None and isinstance(outcome, Accepted):
            now = outcome.state
            yield Move(lines, see(state, now), replace(around, live=now.live), counted)
    yield Move(FAILOVER, HEALING.fail_over(state, readings), around, "failovers")


def _spell(action: Any, cluster: Cluster) -> tuple[tuple[str, ...] | None, str]:
    """Return the steps of a test case that an action is, and what it counts as.

    A move whose target is in sync ends by itself. None of what is no move of a partition or broker.
    """
    match action:
        case Finish(key) | CatchUp(key):
            (hosted,) = (each for each in cluster.partitions if each.key == key)
            wanted = hosted.target or hosted.assigned
            late = [r for r in wanted if r not in hosted.isr and r in cluster.live]
            return tuple(f"{replica} joins {key[0]}-{key[1]}" for replica in late), ""
        case Die(broker):
            return (f"broker {broker} dies",), "deaths"
        case Return(broker):
            return (f"broker {broker} returns",), ""
        case Tick(milliseconds):
            return (f"{milliseconds} ms pass",), "intervals"
    return None, ""
