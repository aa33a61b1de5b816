"""Records of failed brokers and tasks of healing: which write may come next, and what is owed.

Everything is asked of a `Cluster` as ZooKeeper holds it: what the acting controller has in memory
(the tasks that it is in the middle of generating) is not among it, and nothing here needs it.

Neither the failure interval nor the size of a task stands in ZooKeeper, and the time in a record is
by the clock of the controller that wrote it. So whether a task comes too early or is too large is
not judged here; what has to follow once a task is there is.
"""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import replace
from typing import Final

from reassure_model.lives import Life
from reassure_model.outcome import Rejected
from reassure_model.partition import (
    Environment,
    Partition,
    Request,
    is_done,
    is_target_in_sync,
    spell_key,
)
from reassure_model.protocols.kip_46 import (
    Assignments,
    Cluster,
    DeleteRecord,
    Hosted,
    StartTask,
    Task,
    choose_replacement,
    compute_plan,
    find_dead_target,
    find_running,
    find_stale,
    get_hosted,
    is_redundant,
    is_satisfied,
    next_for_records,
    next_for_tasks,
    plan_of,
    rank_replacement,
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


# Records of failures ------------------------------------------------------------------------------


@checks
def judge_record(broker: int, before: int | None, after: int, live: Set[int]) -> Judged:
    """Judge a controller that writes the record of a failure; times are in ms."""
    if before is not None and before != after:
        return Rejected("heal.record.first-failure", f"the time of the first was {before}")
    if broker in live:
        return Rejected("heal.record.first-failure", f"broker {broker} is registered")
    return ("heal.record.first-failure", "heal.record.format")


def find_unplaced(
    cluster: Cluster, broker: int, placed: Collection[PartitionKey], readings: Readings
) -> PartitionKey | None:
    """Return a partition that a broker could be replaced in, and no task does so.

    `placed` are those for which a task was made.
    """
    base, plan = plan_of(cluster, readings), compute_plan(cluster)
    for key, replicas in base.items():
        waits = broker in replicas and broker in plan[key] and key not in placed
        if waits and choose_replacement(cluster, replicas, broker, {}) is not None:
            return key
    return None


@checks
def judge_record_removal(
    cluster: Cluster, broker: int, placed: Collection[PartitionKey], readings: Readings
) -> Judged:
    """Judge a controller that removes the record of a failure: the broker is back, or replaced."""
    if broker in cluster.live:
        return ("heal.record.deleted-on-return",)
    left = find_unplaced(cluster, broker, placed, readings)
    if left is not None:
        reason = f"no task replaces broker {broker} in {spell_key(left)}"
        return Rejected("heal.record.deleted-when-scheduled", reason)
    return ("heal.record.deleted-when-scheduled",)


@checks
def find_record_debts(
    cluster: Cluster, placed: Mapping[int, Collection[PartitionKey]], readings: Readings
) -> tuple[tuple[int, Rejected], ...]:
    """Find what is owed to records by a controller that rests, by broker.

    `placed` are the partitions for which a task was made since a broker was recorded.
    """
    found: list[tuple[int, Rejected]] = []
    while (effect := next_for_records(cluster)) is not None:
        broker = effect.broker
        if isinstance(effect, DeleteRecord):
            why = f"broker {broker} is back"
            found.append((broker, Rejected("heal.record.deleted-on-return", why)))
            left = tuple(each for each in cluster.failed if each[0] != broker)
        else:
            why = f"broker {broker} is away and is to have a replica"
            found.append((broker, Rejected("heal.record.complete", why)))
            left = (*cluster.failed, (broker, 0))
        cluster = replace(cluster, failed=left)
    told = {broker for broker, _ in found}
    for broker, _ in cluster.failed:
        keys = placed.get(broker)
        if broker not in told and keys and find_unplaced(cluster, broker, keys, readings) is None:
            why = f"the tasks for broker {broker} are persisted"
            found.append((broker, Rejected("heal.record.deleted-when-scheduled", why)))
    return tuple(found)


# Generated tasks ----------------------------------------------------------------------------------


def find_replaced(
    target: ReplicaList, bases: Sequence[ReplicaList], failed: Set[int]
) -> tuple[ReplicaList, tuple[int, ...]] | None:
    """Return what a task was made from, and where it differs; None where nothing fits.

    Only failed brokers are replaced, each in its own place. Of the `bases` that fit the one is
    meant that differs least.
    """
    found = None
    for base in bases:
        if len(base) != len(target):
            continue
        places = tuple(place for place, old in enumerate(base) if old != target[place])
        fits = places and all(base[place] in failed for place in places)
        if fits and (found is None or len(places) < len(found[1])):
            found = (base, places)
    return found


@checks
def judge_generated(
    cluster: Cluster,
    key: PartitionKey,
    target: ReplicaList,
    bases: Sequence[ReplicaList],
    gone: Set[int],
    readings: Readings,
) -> Judged:
    """Judge what a generated task asks for one partition.

    `bases` are the lists that it may have been made from, and `gone` the brokers that may be taken
    for failed.
    """
    name, failed = spell_key(key), {broker for broker, _ in cluster.failed}
    if len(set(target)) != len(target):
        return Rejected("heal.target.no-duplicate", f"{name} to {list(target)}")
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
        clauses = (*clauses, "heal.generate.all-due")
    if readings.heal_regenerate == "from-plan":
        clauses = (*clauses, "heal.generate.from-plan")
    return clauses


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
def judge_choice(
    cluster: Cluster,
    replicas: ReplicaList,
    broker: int,
    chosen: int,
    loads: Sequence[Mapping[int, int]],
) -> Judged:
    """Judge who takes a failed broker's place among `replicas`.

    `loads` are the ways in which replicas may have been counted; it has to be the best by one.
    """
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
    cluster: Cluster,
    task: Task,
    readings: Readings,
    *,
    refused: bool = False,
    started: bool = False,
) -> Judged:
    """Judge a controller that removes a task.

    `refused` says that an operator who asked for what is left of it would be refused, `started`
    that it was started before.
    """
    if find_senseless(task) is not None:
        return ("heal.task.refuse-duplicate",)
    if find_running(cluster) == task:
        return Rejected("heal.cancel.never-running", f"task {task.number} was removed as it ran")
    if is_satisfied(cluster, task):
        return ("heal.cancel.never-running" if started else "heal.task.satisfied-skipped",)
    if refused:
        return ("heal.task.as-reassignment",)
    if not task.automatic:
        return Rejected("heal.cancel.automatic-only", f"task {task.number} is an operator's")
    if is_redundant(cluster, task, readings):
        return ("heal.cancel.enough-replicas", "heal.cancel.automatic-only")
    if find_stale(cluster, task) is not None or find_dead_target(cluster, task) is not None:
        return ("heal.task.stale", "heal.cancel.automatic-only")
    return Rejected("heal.task.started", f"task {task.number} was removed and not carried out")


@clause("heal.task.satisfied-skipped", "heal.task.stale", "heal.task.refuse-duplicate")
@checks
def find_task_debt(cluster: Cluster, readings: Readings) -> tuple[Task, Rejected] | None:
    """Find what is owed to the first task by a controller that rests."""
    for task in cluster.tasks:
        senseless = find_senseless(task)
        if senseless is not None:
            return task, senseless
    effect = next_for_tasks(cluster, readings)
    if effect is None:
        return None
    task = cluster.tasks[0]
    if isinstance(effect, StartTask):
        return task, Rejected("heal.task.started", f"task {task.number} is not started")
    clause_id = effect.clause
    if clause_id == "heal.cancel.automatic-only":
        clause_id = "heal.cancel.enough-replicas"
    return task, Rejected(clause_id, f"task {task.number} is still there: {effect.why}")
