"""KIP-46: replicas of a broker that stays away are placed elsewhere without an operator.

The controller records when it first missed a broker. Once the failure interval has passed it
generates tasks: small sets of partitions, each with a replacement for the broker that failed. Tasks
are persisted and executed one after another; one is skipped when it has become pointless, never
when an operator wrote it, never while it runs. The record of the failure goes when the broker comes
back or when its tasks are persisted.

In the order of the document, after what is kept and what can happen. `next_effect` is the whole
controller, one persistent effect at a time; a crash can fall between any two. Only the tasks it is
in the middle of generating are in its memory (`Generation`). That nothing is balanced that did not
fail is a property (`machine.find_live_removed`); the configs are those of `HealingConfig`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from reassure_model.environment import Controller, Die, Failover, Return
from reassure_model.partition import spell_key
from reassure_spec.clauses import checks, clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import PartitionKey, ReplicaList

Assignments = tuple[tuple[PartitionKey, ReplicaList], ...]
"""Replicas by partition, in order of partition."""


@clause("heal.config.settings")
@dataclass(frozen=True, slots=True)
class HealingConfig:
    """What an operator sets. The document leaves the list of settings empty; the names are ours."""

    failure_interval_ms: int = 1000
    """How long a broker has to be away before its replicas are placed elsewhere."""
    partitions_per_task: int = 1
    """Most partitions that one task moves."""
    quota_percent: int = 50
    """Share of the replication bandwidth that all automatic tasks together may take."""


@dataclass(frozen=True, slots=True)
class Hosted:
    """A partition as far as healing looks at it."""

    key: PartitionKey
    assigned: ReplicaList
    isr: ReplicaList
    target: ReplicaList | None = None
    """What it is being moved to, None while it is not."""


@dataclass(frozen=True, slots=True)
class Task:
    """A persisted task."""

    number: int
    assignments: Assignments
    automatic: bool = True


@dataclass(frozen=True, slots=True)
class Generation:
    """What the acting controller is in the middle of generating for one failed broker."""

    broker: int
    pending: tuple[Assignments, ...]
    """The tasks that are not persisted yet, in order."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Brokers, partitions, failure records and tasks."""

    racks: tuple[tuple[int, str | None], ...]
    """Every broker with its rack, None where that is unknown, in order of broker."""
    live: frozenset[int]
    partitions: tuple[Hosted, ...]
    now_ms: int = 0
    """The clock of the acting controller."""
    failed: tuple[tuple[int, int], ...] = ()
    """Failed brokers with the time of their first failure in ms, in order of broker."""
    tasks: tuple[Task, ...] = ()
    """Persisted tasks, lowest number first."""
    next_number: int = 0
    generation: Generation | None = None


def make_cluster(
    racks: Mapping[int, str | None], assignments: Mapping[PartitionKey, ReplicaList]
) -> Cluster:
    """Return a healthy cluster at time 0."""
    hosted = tuple(Hosted(key, replicas, replicas) for key, replicas in sorted(assignments.items()))
    return Cluster(tuple(sorted(racks.items())), frozenset(racks), hosted)


def get_hosted(cluster: Cluster, key: PartitionKey) -> Hosted | None:
    """Return the partition with this key, None where it does not exist."""
    return next((hosted for hosted in cluster.partitions if hosted.key == key), None)


# Effects of the controller ------------------------------------------------------------------------


@clause("heal.record.format")
@dataclass(frozen=True, slots=True)
class RecordFailure:
    """Write the record of a broker that is missed for the first time."""

    broker: int
    failure_timestamp: int


@dataclass(frozen=True, slots=True)
class DeleteRecord:
    """Delete the record of a failure."""

    broker: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class Generate:
    """Take the tasks for a failed broker into memory."""

    broker: int
    pending: tuple[Assignments, ...]


@dataclass(frozen=True, slots=True)
class CreateTask:
    """Persist a task under the next number."""

    assignments: Assignments
    automatic: bool = True
    """Whether it says that it was generated, as every one of a controller's has to."""


@dataclass(frozen=True, slots=True)
class StartTask:
    """Start the first task by an ordinary request."""

    asked: Assignments
    """What the request asks for: what of the task is not there yet."""


@dataclass(frozen=True, slots=True)
class RemoveTask:
    """Delete a task: complete, satisfied already, or cancelled."""

    number: int
    clause: str = ""
    why: str = ""


Effect = RecordFailure | DeleteRecord | Generate | CreateTask | StartTask | RemoveTask


# What else can happen -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passes on the controller's clock; a negative time is a clock set back."""

    milliseconds: int


@dataclass(frozen=True, slots=True)
class Submit:
    """An operator writes a task."""

    assignments: Assignments


@dataclass(frozen=True, slots=True)
class Finish:
    """A partition that is being moved has reached its target."""

    key: PartitionKey


@dataclass(frozen=True, slots=True)
class CatchUp:
    """Every live replica of a partition is in sync again."""

    key: PartitionKey


Action = Tick | Submit | Finish | CatchUp | Die | Return | Failover | Controller


# Motivation: what operators do is automatic -------------------------------------------------------


def next_effect(cluster: Cluster, config: HealingConfig, readings: Readings) -> Effect | None:
    """Return the effect that the controller owes next, None while it waits."""
    return (
        next_for_records(cluster)
        or next_for_generation(cluster, config, readings)
        or next_for_tasks(cluster, readings)
    )


# Changes: from failures to tasks (beyond the extract) ---------------------------------------------


@clause("heal.interval")
def find_due(cluster: Cluster, config: HealingConfig) -> tuple[int, ...]:
    """Return the failed brokers whose interval has passed since their first failure."""
    now, interval = cluster.now_ms, config.failure_interval_ms
    return tuple(broker for broker, since in cluster.failed if now - since >= interval)


@clause("heal.generate.replaces-failed", "heal.generate.small-tasks")
@clause("heal.failover.generated-again", "heal.generate.all-due")
def generate_tasks(
    cluster: Cluster, broker: int, config: HealingConfig, readings: Readings
) -> tuple[Assignments, ...]:
    """Return the tasks that place the failed broker's replicas elsewhere, in order.

    A partition for which nobody can take over is left out.
    """
    plan = plan_of(cluster, readings)
    due = (broker,) if readings.heal_replaces == "one-broker" else find_due(cluster, config)
    load: dict[int, int] = {}
    for replicas in plan.values():
        for replica in replicas:
            load[replica] = load.get(replica, 0) + 1
    targets: list[tuple[PartitionKey, ReplicaList]] = []
    for key, before in sorted(plan.items()):
        replicas = before if broker in before else ()
        for failed in due:
            chosen = None
            if failed in replicas:
                chosen = choose_replacement(cluster, replicas, failed, load)
            if chosen is not None:
                load[chosen] = load.get(chosen, 0) + 1
                replicas = tuple(chosen if r == failed else r for r in replicas)
        if replicas not in ((), before):
            targets.append((key, replicas))
    size = config.partitions_per_task
    return tuple(tuple(targets[at : at + size]) for at in range(0, len(targets), size))


@clause("heal.target.live", "heal.target.no-duplicate", "heal.target.rack", "heal.target.even")
@clause("heal.target.lowest-id")
def choose_replacement(
    cluster: Cluster, replicas: ReplicaList, broker: int, load: Mapping[int, int]
) -> int | None:
    """Choose who takes the failed broker's place among `replicas`, None where nobody can.

    A candidate is alive, has no record of a failure and is not a replica yet. Where all racks are
    known, those in a rack of their own come first; then the one with the fewest replicas (`load`),
    then the lowest id.
    """
    failed = {number for number, _ in cluster.failed}
    candidates = [b for b in sorted(cluster.live) if b not in replicas and b not in failed]

    def rank(candidate: int) -> tuple[bool, int, int]:
        return rank_replacement(cluster, replicas, broker, load, candidate)

    return min(candidates, key=rank, default=None)


def rank_replacement(
    cluster: Cluster, replicas: ReplicaList, broker: int, load: Mapping[int, int], candidate: int
) -> tuple[bool, int, int]:
    """Return how good a candidate is by rack, load and id, each smaller the better."""
    racks = dict(cluster.racks)
    others = [racks.get(replica) for replica in replicas if replica != broker]
    aware = all(rack is not None for rack in racks.values())
    return (aware and racks[candidate] in others, load.get(candidate, 0), candidate)


# Cancelling: enough replicas before the start -----------------------------------------------------


@clause("heal.cancel.enough-replicas")
def is_redundant(cluster: Cluster, task: Task, readings: Readings) -> bool:
    """Whether every partition of the task has the number of replicas it should have."""
    for key, _ in task.assignments:
        hosted = get_hosted(cluster, key)
        if hosted is None:
            continue
        if any(replica not in cluster.live for replica in hosted.assigned):
            return False
        caught_up = set(hosted.assigned) <= set(hosted.isr)
        if readings.heal_redundancy == "isr-full" and not caught_up:
            return False
    return True


# Deletion of the record: the broker is back, or its tasks are persisted ---------------------------


@clause("heal.record.first-failure", "heal.record.deleted-on-return", "heal.record.complete")
def next_for_records(cluster: Cluster) -> RecordFailure | DeleteRecord | None:
    """Keep the failure records: delete those of brokers that are back, write those that lack.

    A broker is missed when it is not alive and a partition is to have a replica on it after all
    persisted tasks: after its tasks are persisted its record can go for good.
    """
    recorded = {broker for broker, _ in cluster.failed}
    for broker, _ in cluster.failed:
        if broker in cluster.live:
            return DeleteRecord(broker, "it is back")
    wanted = {replica for replicas in compute_plan(cluster).values() for replica in replicas}
    for broker in sorted(wanted - cluster.live - recorded):
        return RecordFailure(broker, cluster.now_ms)
    return None


@clause("heal.interval", "heal.record.deleted-when-scheduled", "heal.generate.persisted")
def next_for_generation(
    cluster: Cluster, config: HealingConfig, readings: Readings
) -> Effect | None:
    """Generate the tasks of a broker that was away for the interval, then delete its record."""
    generation = cluster.generation
    if generation is not None:
        if generation.pending:
            return CreateTask(generation.pending[0])
        return DeleteRecord(generation.broker, "its tasks are persisted")
    for broker in find_due(cluster, config):
        pending = generate_tasks(cluster, broker, config, readings)
        if pending:
            return Generate(broker, pending)
        if all(broker not in replicas for replicas in compute_plan(cluster).values()):
            return DeleteRecord(broker, "its tasks are persisted")
    return None


# Controller failure, 1: failures are compared with the assignments --------------------------------


@clause("heal.generate.from-plan")
def compute_plan(cluster: Cluster) -> dict[PartitionKey, ReplicaList]:
    """Return the assignment of every partition once all persisted tasks are executed."""
    plan = {hosted.key: hosted.assigned for hosted in cluster.partitions}
    for task in cluster.tasks:
        plan.update({key: target for key, target in task.assignments if key in plan})
    return plan


def plan_of(cluster: Cluster, readings: Readings) -> dict[PartitionKey, ReplicaList]:
    """Return what tasks are generated from, by partition."""
    if readings.heal_regenerate == "from-plan":
        return compute_plan(cluster)
    return {hosted.key: hosted.assigned for hosted in cluster.partitions}


# Controller failure, 2: tasks one after another, skipped where satisfied --------------------------


@clause(
    "heal.task.one-at-a-time",
    "heal.task.in-order",
    "heal.cancel.never-running",
    "heal.task.started",
    "heal.task.started-once",
)
@checks
def next_for_tasks(cluster: Cluster, readings: Readings) -> StartTask | RemoveTask | None:
    """Execute the first task, or remove it when it is complete, satisfied or pointless."""
    if not cluster.tasks or find_running(cluster) is not None:
        return None
    task = cluster.tasks[0]
    if is_satisfied(cluster, task):
        return RemoveTask(task.number, "heal.task.satisfied-skipped", "satisfied")
    if task.automatic and is_redundant(cluster, task, readings):
        return RemoveTask(task.number, "heal.cancel.automatic-only", "enough replicas")
    stale = find_stale(cluster, task) or find_dead_target(cluster, task)
    if task.automatic and readings.heal_stale_task == "skip" and stale is not None:
        return RemoveTask(task.number, "heal.task.stale", stale)
    return StartTask(find_left(cluster, task))


def find_running(cluster: Cluster) -> Task | None:
    """Return the task that runs: the first, while one of its partitions is being moved.

    Nothing else says so, and nothing else is needed: a failover does not change it.
    """
    for task in cluster.tasks[:1]:
        for key, _ in task.assignments:
            hosted = get_hosted(cluster, key)
            if hosted is not None and hosted.target is not None:
                return task
    return None


def is_satisfied(cluster: Cluster, task: Task) -> bool:
    """Whether every partition of the task that still exists has the assignment it asks for."""
    there = ((get_hosted(cluster, key), target) for key, target in task.assignments)
    return all(hosted is None or hosted.assigned == target for hosted, target in there)


def find_left(cluster: Cluster, task: Task) -> Assignments:
    """Return what of a task is not there yet."""
    there = {hosted.key: hosted.assigned for hosted in cluster.partitions}
    return tuple((key, to) for key, to in task.assignments if there.get(key, to) != to)


@clause("heal.task.stale")
def find_stale(cluster: Cluster, task: Task) -> str | None:
    """Say which live replica the task would remove, None where it removes only dead ones."""
    for key, target in task.assignments:
        hosted = get_hosted(cluster, key)
        for replica in hosted.assigned if hosted is not None else ():
            if replica in cluster.live and replica not in target:
                return f"{spell_key(key)} would lose {replica}, which is alive"
    return None


@clause("heal.task.stale")
def find_dead_target(cluster: Cluster, task: Task) -> str | None:
    """Say which dead broker the task would wait for, None where its targets are alive."""
    for key, target in task.assignments:
        for replica in target:
            if replica not in cluster.live:
                return f"{spell_key(key)} would wait for {replica}, which is dead"
    return None


# Quotas -------------------------------------------------------------------------------------------


@clause("heal.quota.hard-share")
def compute_quota(bandwidth: int, movers: int, config: HealingConfig) -> int:
    """Return the rate that each of `movers` replicas may copy at, in the unit of `bandwidth`.

    The share is the same for one failed broker or ten: all movers together stay within it.
    """
    return bandwidth * config.quota_percent // 100 // max(movers, 1)


@clause("heal.quota.hard-share")
def find_quota_exceeded(
    rates: tuple[int, ...], bandwidth: int, config: HealingConfig
) -> str | None:
    """Say so when the rates of all movers together exceed the share."""
    share = bandwidth * config.quota_percent // 100
    return f"{sum(rates)} of at most {share}" if sum(rates) > share else None


# What an effect does ------------------------------------------------------------------------------


@clause("heal.task.as-reassignment")
def apply_effect(cluster: Cluster, effect: Effect) -> Cluster:
    """Return the cluster after an effect of the controller."""
    match effect:
        case RecordFailure(broker, since):
            return replace(cluster, failed=tuple(sorted((*cluster.failed, (broker, since)))))
        case DeleteRecord(broker):
            generation = cluster.generation
            if generation is not None and generation.broker == broker:
                generation = None
            failed = tuple(entry for entry in cluster.failed if entry[0] != broker)
            return replace(cluster, failed=failed, generation=generation)
        case Generate(broker, pending):
            return replace(cluster, generation=Generation(broker, pending))
        case CreateTask(assignments, automatic):
            after, generation = add_task(cluster, assignments, automatic=automatic), None
            if after.generation is not None:
                generation = replace(after.generation, pending=after.generation.pending[1:])
            return replace(after, generation=generation)
        case StartTask(asked):
            wanted = dict(asked)
            moved = (
                replace(h, target=wanted[h.key]) if h.key in wanted else h
                for h in cluster.partitions
            )
            return replace(cluster, partitions=tuple(moved))
        case RemoveTask(number):  # one way: there is no other effect
            left = tuple(task for task in cluster.tasks if task.number != number)
            return replace(cluster, tasks=left)


def add_task(cluster: Cluster, assignments: Assignments, *, automatic: bool) -> Cluster:
    """Return the cluster with one more task, of the next number."""
    number = cluster.next_number
    tasks = (*cluster.tasks, Task(number, assignments, automatic))
    return replace(cluster, tasks=tasks, next_number=number + 1)
