"""Healing on top of the request protocol: tasks are ordinary requests, carried out as such.

`reassure_model.protocols.kip_46` decides what is recorded, generated, started and removed. Here its
partitions are the ordinary ones. Starting a task is one request for those of its partitions that
are not there yet; from then on nothing is particular to healing: the same functions say which
write is owed, and put it to the same rules, as for a request of an operator's.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from reassure_model.environment import Controller, Die, Failover, NotPossible, On, Return
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Environment, Partition, Request, is_done, is_target_in_sync
from reassure_model.protocols.kip_46 import (
    Assignments,
    Cluster,
    Effect,
    Generation,
    HealingConfig,
    Hosted,
    RemoveTask,
    StartTask,
    Submit,
    Task,
    Tick,
    apply_effect,
    next_effect,
)
from reassure_model.protocols.kip_46.machine import submit
from reassure_model.protocols.kip_236 import Refusal, decide_request
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
from reassure_spec.clauses import clause
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


@clause("heal.task.as-reassignment")
def host(key: PartitionKey, partition: Partition) -> Hosted | None:
    """Return what healing looks at of an ordinary partition, None where it does not exist.

    It is being moved from the request on until all that is left is the record. Then what counts as
    assigned is what it is moved to: the list that is stored holds the old and the new meanwhile.
    """
    assigned, flight = partition.assigned, partition.reassignment
    if assigned is None:
        return None
    isr = () if partition.state is None else partition.state.isr
    wanted = [request.target for request in partition.requests[-1:]]
    # Whether a completion has begun is forgotten by the next controller, so that it does not count.
    there = is_done(partition) and is_target_in_sync(partition)
    if flight is not None and not wanted and not there:
        wanted = [flight.target]
    if not wanted:
        return Hosted(key, assigned, isr)
    return Hosted(key, wanted[0], isr, wanted[0])


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


def find_left(cluster: Cluster, task: Task) -> Assignments:
    """Return what of a task is not there yet."""
    there = {hosted.key: hosted.assigned for hosted in cluster.partitions}
    return tuple((key, to) for key, to in task.assignments if there.get(key, to) != to)


@clause("heal.task.as-reassignment")
def is_refused(
    asked: Assignments,
    partitions: Mapping[PartitionKey, Partition],
    get_around: Callable[[PartitionKey], Environment],
    readings: Readings,
) -> bool:
    """Whether each of these would be refused as a reassignment that an operator asks for."""
    for key, target in asked:
        request = Request(0, target)
        decision = decide_request(request, partitions[key], get_around(key), readings)
        if not isinstance(decision, Refusal):
            return False
    return len(asked) > 0


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
    left = find_left(cluster, task)

    def get_around(key: PartitionKey) -> Environment:
        return healed.as_system(key).around

    if is_refused(left, dict(healed.partitions), get_around, readings):
        return RemoveTask(task.number, "heal.task.as-reassignment", "refused")
    return effect


@clause("heal.task.as-reassignment", "heal.task.started")
def carry_out(
    healed: Healed, step: WriteOwed | Effect, readings: Readings
) -> Accepted[Healed] | Rejected:
    """Return the whole after a step of the controller."""
    if isinstance(step, WriteOwed):
        return make_write(healed, step, readings)
    cluster = as_cluster(healed)
    if isinstance(step, StartTask):
        left = find_left(cluster, cluster.tasks[0])
        return Accepted(add_request(healed, left, legacy=False))
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
