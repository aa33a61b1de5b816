"""Records of failed brokers and tasks of healing: which write may come next, and what is owed.

`HEALING` answers both. It is asked of a cluster as ZooKeeper holds it. What the acting controller
is in the middle of generating is judged when it is persisted, and where it is known (in the model)
it may be persisted as it was generated.

Neither the failure interval nor the size of a task stands in ZooKeeper, and the time in a record is
by the clock of the controller that wrote it. So whether a task comes too early or is too large is
not judged here; what has to follow once a task is there is.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from reassure_model.lives import Life
from reassure_model.machine import Judgement
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import (
    Environment,
    Partition,
    Request,
    is_done,
    is_target_in_sync,
    spell_key,
)
from reassure_model.protocols.kip_46 import (
    Cluster,
    CreateTask,
    DeleteRecord,
    Effect,
    Generation,
    HealingConfig,
    Hosted,
    RecordFailure,
    RemoveTask,
    StartTask,
    Task,
    choose_replacement,
    compute_plan,
    find_dead_target,
    find_due,
    find_left,
    find_running,
    find_stale,
    generate_tasks,
    get_hosted,
    is_redundant,
    is_satisfied,
    next_for_records,
    next_for_tasks,
    plan_of,
    rank_replacement,
)
from reassure_model.protocols.kip_46.healing import (
    Healing,
    fail_over,
    find_replaced,
    follow,
    list_bases,
)
from reassure_model.protocols.kip_236 import Refusal, decide_request
from reassure_spec.clauses import checks, clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import PartitionKey, ReplicaList

LIVES: Final[Mapping[str, Life]] = {
    "failed": Life(
        "/admin/failed_brokers/N",
        ("heal.record.first-failure", "heal.record.format"),
        ("heal.record.first-failure",),
        ("heal.record.deleted-when-scheduled",),
    ),
    "task": Life(
        "/admin/reassignment_tasks/task_N",
        (
            "heal.generate.persisted",
            "heal.generate.replaces-failed",
            "heal.target.no-duplicate",
            "heal.target.live",
        ),
        ("heal.task.started",),
        ("heal.cancel.never-running", "heal.cancel.automatic-only", "heal.task.started"),
    ),
}
"""What a controller may do to each znode; to change a task is to remove it and make another.
Operators make tasks and take back their own."""

Judged = tuple[str, ...] | Rejected
"""The clauses that a write put to the test, or what it breaks."""


@dataclass(frozen=True, slots=True)
class Owed:
    """An effect that is due."""

    write: Effect
    clause: str
    reason: str


# What a task moves is moved by ordinary requests --------------------------------------------------


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


@clause("heal.task.as-reassignment")
def is_refused(state: Healing, task: Task, around: Environment, readings: Readings) -> bool:
    """Whether all that is left of a task would be refused as what an operator asks for."""
    left = find_left(state.cluster, task)
    for key, target in left:
        least = state.minimums.get(key[0]) or state.minimums.get("") or around.min_insync_replicas
        partition = state.partitions.get(key)
        mine = replace(around, min_insync_replicas=least)
        if partition is None or not isinstance(
            decide_request(Request(0, target), partition, mine, readings), Refusal
        ):
            return False
    return len(left) > 0


# Records of failures ------------------------------------------------------------------------------


@checks
def judge_record(cluster: Cluster, effect: RecordFailure) -> Judged:
    """Judge a controller that writes the record of a failure."""
    before = dict(cluster.failed).get(effect.broker)
    if before is not None and before != effect.failure_timestamp:
        return Rejected("heal.record.first-failure", f"the time of the first was {before}")
    if effect.broker in cluster.live:
        return Rejected("heal.record.first-failure", f"broker {effect.broker} is registered")
    return ("heal.record.first-failure", "heal.record.format")


def find_unplaced(state: Healing, broker: int, readings: Readings) -> PartitionKey | None:
    """Return a partition that a broker could be replaced in, and no task does so."""
    cluster = state.cluster
    if cluster.generation == Generation(broker, ()):
        return None  # whoever generated its tasks has persisted them all
    base, plan = plan_of(cluster, readings), compute_plan(cluster)
    for key, replicas in base.items():
        waits = broker in replicas and broker in plan[key] and (broker, key) not in state.placed
        if waits and choose_replacement(cluster, replicas, broker, {}) is not None:
            return key
    return None


@checks
def judge_record_removal(state: Healing, broker: int, readings: Readings) -> Judged:
    """Judge a controller that removes the record of a failure: the broker is back, or replaced."""
    if broker in state.cluster.live:
        return ("heal.record.deleted-on-return",)
    left = find_unplaced(state, broker, readings)
    if left is not None:
        reason = f"no task replaces broker {broker} in {spell_key(left)}"
        return Rejected("heal.record.deleted-when-scheduled", reason)
    return ("heal.record.deleted-when-scheduled",)


@checks
def find_record_debt(state: Healing, readings: Readings) -> Owed | None:
    """Find what is owed to a record by a controller that rests."""
    effect = next_for_records(state.cluster)
    if isinstance(effect, DeleteRecord):
        return Owed(effect, "heal.record.deleted-on-return", f"broker {effect.broker} is back")
    if effect is not None:
        why = f"broker {effect.broker} is away and is to have a replica"
        return Owed(effect, "heal.record.complete", why)
    for broker, _ in state.cluster.failed:
        placed = any(each == broker for each, _ in state.placed)
        if placed and find_unplaced(state, broker, readings) is None:
            why = f"the tasks for broker {broker} are persisted"
            return Owed(DeleteRecord(broker), "heal.record.deleted-when-scheduled", why)
    return None


# Generated tasks ----------------------------------------------------------------------------------


@checks
def judge_creation(state: Healing, effect: CreateTask, readings: Readings) -> Judged:
    """Judge a controller that persists a task."""
    if not effect.automatic:
        return Rejected("heal.generate.persisted", "it does not say that it was generated")
    clauses: tuple[str, ...] = ("heal.generate.persisted",)
    generation = state.cluster.generation
    if generation is not None and generation.pending[:1] == (effect.assignments,):
        return clauses  # what it asks for was decided when it was generated
    for part in effect.assignments:
        judged = judge_generated(state, *part, readings)
        if isinstance(judged, Rejected):
            return judged
        clauses += judged
        state = follow(state, CreateTask((part,)), readings)
    return clauses


@checks
def judge_generated(
    state: Healing, key: PartitionKey, target: ReplicaList, readings: Readings
) -> Judged:
    """Judge what a generated task asks for one partition."""
    cluster = state.cluster
    name, failed = spell_key(key), {broker for broker, _ in cluster.failed}
    if len(set(target)) != len(target):
        return Rejected("heal.target.no-duplicate", f"{name} to {list(target)}")
    bases, gone = list_bases(state, key, readings), failed | state.unrecorded
    found = find_replaced(target, bases, gone)
    if found is None:
        shown = " or ".join(str(list(base)) for base in bases) or "nothing"
        reason = f"{name} to {list(target)}, from {shown}, failed are {sorted(gone)}"
        return Rejected("heal.generate.replaces-failed", reason)
    base, places = found
    for place in places:
        new = target[place]
        if new not in cluster.live:
            return Rejected("heal.target.live", f"{name}: broker {new} is not alive")
        if new in failed:
            return Rejected("heal.target.live", f"{name}: broker {new} has a record of a failure")
    clauses: tuple[str, ...] = (
        "heal.generate.replaces-failed",
        "heal.target.no-duplicate",
        "heal.target.live",
    )
    if readings.heal_replaces == "all-due":
        kept = _find_kept_due(cluster, base, target, places)
        if kept is not None:
            reason = f"{name} to {list(target)}: broker {kept} is away for as long"
            return Rejected("heal.generate.all-due", reason)
        clauses += ("heal.generate.all-due",)
    if readings.heal_regenerate == "from-plan":
        clauses += ("heal.generate.from-plan",)
    if any(base[place] in state.inherited for place in places):
        clauses += ("heal.failover.generated-again",)
    if not state.certain or len(places) > 1:
        return clauses
    judged = judge_choice(state, base, base[places[0]], target[places[0]])
    return judged if isinstance(judged, Rejected) else clauses + judged


def _find_kept_due(
    cluster: Cluster, base: ReplicaList, target: ReplicaList, places: tuple[int, ...]
) -> int | None:
    """Return a broker that stays, was recorded no later than one that goes, and could go."""
    since = dict(cluster.failed)
    replaced = [since[base[place]] for place in places if base[place] in since]
    for broker in target:
        late = [time for time in replaced if broker in since and since[broker] <= time]
        if late and choose_replacement(cluster, target, broker, {}) is not None:
            return broker
    return None


@checks
def judge_choice(state: Healing, replicas: ReplicaList, broker: int, chosen: int) -> Judged:
    """Judge who takes a failed broker's place among `replicas`.

    It has to be the best by one of the ways in which replicas may have been counted.
    """
    cluster = state.cluster
    assigned = _count(hosted.assigned for hosted in cluster.partitions)
    loads = (assigned + Counter(state.chosen), _count(compute_plan(cluster).values()))
    worse: Rejected | None = None
    for load in loads:
        best = choose_replacement(cluster, replicas, broker, load)
        if best is None or best == chosen:
            return ("heal.target.rack", "heal.target.even", "heal.target.lowest-id")
        mine, theirs = (
            rank_replacement(cluster, replicas, broker, load, b) for b in (chosen, best)
        )
        names = ("heal.target.rack", "heal.target.even", "heal.target.lowest-id")
        broken = next(n for n, m, t in zip(names, mine, theirs, strict=True) if m != t)
        worse = worse or Rejected(broken, f"broker {chosen} for {broker}; {best} comes first")
    return worse or ()


def _count(lists: Iterable[ReplicaList]) -> Counter[int]:
    """Return how many replicas each broker has."""
    return Counter(replica for replicas in lists for replica in replicas)


# Tasks --------------------------------------------------------------------------------------------


@checks
def find_senseless(task: Task) -> Rejected | None:
    """Find what nobody can carry out: a replica twice, or none."""
    for key, target in task.assignments:
        if len(target) == 0 or len(set(target)) != len(target):
            return Rejected("heal.task.refuse-duplicate", f"{spell_key(key)} to {list(target)}")
    if not task.assignments:
        return Rejected("heal.task.refuse-duplicate", "it names no partition")
    return None


@clause("heal.task.refuse-duplicate")
@checks
def judge_start(
    cluster: Cluster, asked: Mapping[PartitionKey, ReplicaList], readings: Readings
) -> Judged:
    """Judge the ordinary request by which a controller starts a task, or a part of it."""
    wanted = [task for task in cluster.tasks if asked.items() <= dict(task.assignments).items()]
    if not wanted:
        named = ", ".join(f"{spell_key(key)} to {list(target)}" for key, target in asked.items())
        return Rejected("heal.task.as-reassignment", f"no task asks for {named}")
    running, first = find_running(cluster), cluster.tasks[0]
    if first not in wanted:
        if running is not None:
            return Rejected("heal.task.one-at-a-time", f"task {running.number} is running")
        return Rejected("heal.task.in-order", f"task {first.number} comes first")
    senseless = find_senseless(first)
    if senseless is not None:
        return senseless
    for key, target in asked.items():
        hosted = get_hosted(cluster, key)
        if hosted is not None and hosted.target == target:
            reason = f"{spell_key(key)} waits for {list(target)}, or is being moved there"
            return Rejected("heal.task.started-once", reason)
    if is_satisfied(cluster, first):
        return Rejected("heal.task.satisfied-skipped", f"task {first.number} is done already")
    for key, target in asked.items():
        hosted = get_hosted(cluster, key)
        if hosted is not None and hosted.assigned == target:
            reason = f"{spell_key(key)} is at {list(target)} already"
            return Rejected("heal.task.as-reassignment", reason)
    clauses: tuple[str, ...] = (
        "heal.task.in-order",
        "heal.task.as-reassignment",
        "heal.task.started",
        "heal.task.started-once",
    )
    if running is not None:
        return clauses
    clauses = (*clauses, "heal.task.one-at-a-time")
    if not first.automatic:
        return clauses
    if is_redundant(cluster, first, readings):
        reason = f"the partitions of task {first.number} have enough replicas"
        return Rejected("heal.cancel.enough-replicas", reason)
    if readings.heal_stale_task == "skip":
        stale = find_stale(cluster, first)
        if stale is not None:
            return Rejected("heal.task.no-live-replica-removed", stale)
        clauses = (*clauses, "heal.task.no-live-replica-removed")
    return (*clauses, "heal.cancel.enough-replicas")


@checks
def judge_task_removal(
    state: Healing, number: int, around: Environment, readings: Readings
) -> Judged:
    """Judge a controller that removes a task."""
    cluster = state.cluster
    task = next(task for task in cluster.tasks if task.number == number)
    if find_senseless(task) is not None:
        return ("heal.task.refuse-duplicate",)
    if find_running(cluster) == task:
        return Rejected("heal.cancel.never-running", f"task {number} was removed as it ran")
    if is_satisfied(cluster, task):
        started = number in state.started
        return ("heal.cancel.never-running" if started else "heal.task.satisfied-skipped",)
    if is_refused(state, task, around, readings):
        return ("heal.task.as-reassignment",)
    if not task.automatic:
        return Rejected("heal.cancel.automatic-only", f"task {number} is an operator's")
    if is_redundant(cluster, task, readings):
        return ("heal.cancel.enough-replicas", "heal.cancel.automatic-only")
    if find_stale(cluster, task) is not None or find_dead_target(cluster, task) is not None:
        return ("heal.task.stale", "heal.cancel.automatic-only")
    return Rejected("heal.task.started", f"task {number} was removed and not carried out")


@clause("heal.task.satisfied-skipped", "heal.task.stale", "heal.task.refuse-duplicate")
@checks
def find_task_debt(state: Healing, around: Environment, readings: Readings) -> Owed | None:
    """Find what is owed to a task by a controller that rests."""
    cluster = state.cluster
    for task in cluster.tasks:
        senseless = find_senseless(task)
        if senseless is not None:
            return Owed(RemoveTask(task.number), senseless.clause, senseless.reason)
    effect = next_for_tasks(cluster, readings)
    if effect is None:
        return None
    task = cluster.tasks[0]
    if is_refused(state, task, around, readings):
        why = "its reassignments are refused"
        return Owed(RemoveTask(task.number), "heal.task.as-reassignment", why)
    if isinstance(effect, StartTask):
        return Owed(effect, "heal.task.started", f"task {task.number} is not started")
    clause_id = effect.clause
    if clause_id == "heal.cancel.automatic-only":
        clause_id = "heal.cancel.enough-replicas"
    return Owed(effect, clause_id, f"task {task.number} is still there: {effect.why}")


# One for all --------------------------------------------------------------------------------------


def accept(
    state: Healing, effect: Effect, around: Environment, readings: Readings
) -> Accepted[Healing] | Rejected:
    """Whether a controller may make an effect now, and the state that it leads to.

    Alive is who is registered `around` it. Raises StopIteration for a task that is not there.
    """
    state = replace(state, cluster=replace(state.cluster, live=around.live))
    judged: Judged = ()  # what is generated is in memory only until it is persisted
    match effect:
        case RecordFailure():
            judged = judge_record(state.cluster, effect)
        case DeleteRecord(broker):
            judged = judge_record_removal(state, broker, readings)
        case CreateTask():
            judged = judge_creation(state, effect, readings)
        case StartTask(asked):
            judged = judge_start(state.cluster, dict(asked), readings)
        case RemoveTask(number):
            judged = judge_task_removal(state, number, around, readings)
    if isinstance(judged, Rejected):
        return judged
    return Accepted(follow(state, effect, readings), judged, (effect,))


def find_owed(state: Healing, around: Environment, readings: Readings) -> Owed | None:
    """Return what a controller has to do next, whatever its clock says; None where it may rest."""
    state = replace(state, cluster=replace(state.cluster, live=around.live))
    return find_record_debt(state, readings) or find_task_debt(state, around, readings)


def next_write(state: Healing, around: Environment, readings: Readings) -> Owed | None:
    """Return what a controller writes next whose clock is the cluster's.

    No rest can be held against whoever generates nothing: nobody else knows its clock.
    """
    owed = find_owed(state, around, readings)
    return owed if owed is not None else next_generated(state, around, readings)


def next_generated(state: Healing, around: Environment, readings: Readings) -> Owed | None:
    """Return the next task for a broker whose interval has passed, of one partition."""
    cluster, config = replace(state.cluster, live=around.live), HealingConfig()
    for broker in find_due(cluster, config):
        for assignments in generate_tasks(cluster, broker, config, readings):
            if any((broker, key) not in state.placed for key, _ in assignments):
                return Owed(CreateTask(assignments), "heal.generate.persisted", "it is due")
    return None


HEALING: Final[Judgement[Healing, Effect]] = Judgement(
    Healing(Cluster((), frozenset(), ())), accept, fail_over, find_owed
)
