"""Healing on ordinary partitions: whole histories of it, in which its tasks are requests."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from reassure_model.environment import Controller, Die, Failover, NotPossible, On, Return
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Partition
from reassure_model.protocols.kip_46 import (
    Cluster,
    Effect,
    Generation,
    HealingConfig,
    RemoveTask,
    StartTask,
    Submit,
    Task,
    Tick,
    apply_effect,
    next_effect,
)
from reassure_model.protocols.kip_46.healing import Healing
from reassure_model.protocols.kip_46.machine import submit
from reassure_model.protocols.kip_46.writes import host, is_refused
from reassure_model.protocols.kip_236.batch import (
    Batch,
    WriteOwed,
    act_on,
    add_request,
    forget_controller,
    lose_broker,
    make_write,
    next_owed,
    regain_broker,
)
from reassure_spec.readings import Readings
from reassure_spec.znodes import PartitionKey, ReplicaList


@dataclass(frozen=True, slots=True)
class Healed(Batch):
    """Ordinary partitions, and what healing keeps beside them (see `Cluster`)."""

    racks: tuple[tuple[int, str | None], ...] = ()
    now_ms: int = 0
    failed: tuple[tuple[int, int], ...] = ()
    tasks: tuple[Task, ...] = ()
    next_number: int = 0
    generation: Generation | None = None


Action = Tick | Submit | On | Die | Return | Failover | Controller


def make_healed(
    racks: Mapping[int, str | None], assignments: Mapping[PartitionKey, ReplicaList]
) -> Healed:
    """Return live brokers and partitions that are not yet online, at time 0."""
    brokers = frozenset(racks)
    partitions = sorted((key, Partition(assigned)) for key, assigned in assignments.items())
    return Healed(tuple(partitions), brokers, brokers, racks=tuple(sorted(racks.items())))


def as_cluster(healed: Healed) -> Cluster:
    """Return the whole as healing sees it."""
    hosted = (host(key, partition) for key, partition in healed.partitions)
    return Cluster(
        healed.racks,
        healed.live,
        tuple(each for each in hosted if each is not None),
        healed.now_ms,
        healed.failed,
        healed.tasks,
        healed.next_number,
        healed.generation,
    )


def _take_back(healed: Healed, cluster: Cluster) -> Healed:
    """Return the whole with what healing keeps as it is in the cluster."""
    return replace(
        healed,
        now_ms=cluster.now_ms,
        failed=cluster.failed,
        tasks=cluster.tasks,
        next_number=cluster.next_number,
        generation=cluster.generation,
    )


def next_step(
    healed: Healed, config: HealingConfig, readings: Readings
) -> WriteOwed | Effect | None:
    """Return what the controller does next: what it owes to partitions, then what healing asks."""
    owed = next_owed(healed, readings)
    if owed is not None:
        return owed
    cluster = as_cluster(healed)
    effect = next_effect(cluster, config, readings)
    if not isinstance(effect, StartTask):
        return effect
    task = cluster.tasks[0]
    around = healed.as_system(task.assignments[0][0]).around
    if is_refused(Healing(cluster, dict(healed.partitions)), task, around, readings):
        return RemoveTask(task.number, "heal.task.as-reassignment", "refused")
    return effect


def carry_out(
    healed: Healed, step: WriteOwed | Effect, readings: Readings
) -> Accepted[Healed] | Rejected:
    """Return the whole after a step of the controller."""
    if isinstance(step, WriteOwed):
        return make_write(healed, step, readings)
    cluster = as_cluster(healed)
    if isinstance(step, StartTask):
        return Accepted(add_request(healed, step.asked, legacy=False))
    return Accepted(_take_back(healed, apply_effect(cluster, step)))


def step(
    healed: Healed, action: Action, config: HealingConfig, readings: Readings
) -> Accepted[Healed] | Rejected:
    """Take one action. Raises NotPossible for one that has nothing to act upon."""
    match action:
        case Tick(milliseconds):
            return Accepted(replace(healed, now_ms=healed.now_ms + milliseconds))
        case Submit(assignments):
            outcome = submit(as_cluster(healed), assignments)
            if isinstance(outcome, Rejected):
                return outcome
            return Accepted(_take_back(healed, outcome.state))
        case On():
            return act_on(healed, action, readings)
        case Die(broker):
            return Accepted(lose_broker(healed, broker))
        case Return(broker):
            return Accepted(regain_broker(healed, broker))
        case Failover():
            return Accepted(replace(forget_controller(healed, readings), generation=None))
        case Controller():
            due = next_step(healed, config, readings)
            if due is not None:
                return carry_out(healed, due, readings)
    raise NotPossible(f"{action} is not possible in {healed}")
