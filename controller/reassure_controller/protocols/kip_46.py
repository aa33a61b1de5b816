"""Self-healing: who is missed, what is to be placed elsewhere, and which task comes next.

The controller records when it first missed a broker that is to have a replica. Once the failure
interval has passed it persists tasks, each with a replacement for the broker in a few partitions,
and removes the record. Tasks are carried out one after another, each as an ordinary request. This
is decided from the controller's memory while nothing else is left to do, and a plan that is cut
anywhere is made again by the next controller, from what it finds.

Source: KIP-46; what the extract does not say is as the clauses `heal.*` have it.
"""

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from reassure_controller.client import Watch
from reassure_controller.context import Context, PartitionContext
from reassure_controller.effects import (
    CreateTask,
    DeleteRecord,
    HealingWrite,
    Planned,
    RecordFailure,
    RemoveTask,
    StartTask,
    Step,
    Warn,
)
from reassure_controller.planned_job import Job
from reassure_controller.protocols.kip_236 import find_refusal
from reassure_controller.reader import ClusterReader
from reassure_controller.rules import Planner, Rules
from reassure_spec.errors import BadConfiguration
from reassure_spec.readings import Readings
from reassure_spec.znodes import (
    FAILED_BROKERS,
    REASSIGNMENT_TASKS,
    BadZnode,
    PartitionKey,
    ReplicaList,
    TaskZnode,
    decode_failed_broker,
    decode_task,
    parse_number,
    parse_task_name,
    task_path,
)

Read = TypeVar("Read")

Targets = tuple[tuple[PartitionKey, ReplicaList], ...]
"""Replica lists by partition, in order of partition."""
Placed = dict[PartitionKey, ReplicaList]
"""What each partition is to be assigned, in order of partition."""


@dataclass(frozen=True, slots=True)
class HealingSettings:
    """What an operator sets; the document leaves the list empty, so the names are ours."""

    failure_interval_ms: int = 30 * 60 * 1000
    """How long a broker has to be away before its replicas are placed elsewhere."""
    partitions_per_task: int = 10
    """Most partitions that one task moves."""

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        if self.failure_interval_ms < 0 or self.partitions_per_task < 1:
            raise BadConfiguration(
                f"{self}: the failure interval is a number of milliseconds, not negative, and a "
                "task moves one partition or more"
            )


class HealingPlanner(Planner):
    """Looks after brokers that stay away."""

    comes_last = True
    paths = (FAILED_BROKERS, REASSIGNMENT_TASKS)

    def read_missed(self, reader: ClusterReader) -> None:
        """Read the records and the tasks."""
        read_records(reader)
        read_tasks(reader)

    def read_again(self, reader: ClusterReader, effects: Sequence[Planned]) -> None:
        """Read the records and the tasks where an effect was about them."""
        if any(isinstance(effect, HealingWrite) for effect in effects):
            read_records(reader)
            read_tasks(reader, arm=False)

    def take_event(self, reader: ClusterReader, path: str) -> None:
        """Read the tasks when there are others."""
        if path == REASSIGNMENT_TASKS:
            read_tasks(reader)

    def find_job(
        self, reader: ClusterReader, rules: Rules, clock_ms: Callable[[], int]
    ) -> Job | None:
        """Return what healing has to do."""
        if reader.context.tasks_unread:
            read_tasks(reader, arm=False)
        context = reader.context

        def make() -> tuple[Step, ...]:
            tasks = context.tasks
            first = tasks[min(tasks)].assignments if tasks else {}
            reader.look_for_brokers(chain.from_iterable(first.values()))
            reader.catch_up(first)
            if context.requests:
                return ()  # it may be of this very task: whether it was made, no answer said
            return plan_healing(context, clock_ms(), rules)

        return Job("healing", make) if plan_healing(context, clock_ms(), rules) else None


PLANNER = HealingPlanner()


def add_options(parser: ArgumentParser) -> None:
    """Add what an operator may set to the command line of a controller."""
    usual = HealingSettings()
    parser.add_argument(
        "--failure-interval",
        type=int,
        default=usual.failure_interval_ms,
        metavar="MS",
        help="how long a broker is away before it is replaced (profile kip-46)",
    )
    parser.add_argument(
        "--partitions-per-task",
        type=int,
        default=usual.partitions_per_task,
        metavar="N",
        help="most partitions that one task of healing moves (profile kip-46)",
    )


def read_options(arguments: Namespace) -> HealingSettings:
    """Return what an operator has set."""
    return HealingSettings(arguments.failure_interval, arguments.partitions_per_task)


# What is read -------------------------------------------------------------------------------------


def read_records(reader: ClusterReader) -> None:
    """Read who is missed since when."""
    reader.context.failed = _read_numbered(
        reader, FAILED_BROKERS, parse_number, decode_failed_broker, "the id of a broker"
    )


def read_tasks(reader: ClusterReader, *, arm: bool = True) -> None:
    """Read the persisted tasks, where there are any; `arm` puts a watch on their number."""
    watch = reader.watch if arm else None
    reader.context.tasks_unread = False
    reader.context.tasks = _read_numbered(
        reader, REASSIGNMENT_TASKS, parse_task_name, decode_task, "the name of a task", watch
    )


def _read_numbered(
    reader: ClusterReader,
    root: str,
    parse: Callable[[str], int | None],
    decode: Callable[[str, bytes], Read],
    what: str,
    watch: Watch | None = None,
) -> dict[int, Read]:
    """Return what stands below a path, by number; what is not of the format is rubbish."""
    found: dict[int, Read] = {}
    for name, data in reader.read_below(root, watch=watch).items():
        path, number = f"{root}/{name}", parse(name)
        try:
            content = decode(path, data)
        except BadZnode as bad:
            reader.rubbish.append((path, bad.reason))
        else:
            if number is None:
                reader.rubbish.append((path, f"not {what}"))
            else:
                found[number] = content
    return found


def plan_healing(context: Context, now_ms: int, rules: Rules) -> tuple[Step, ...]:
    """Return the steps that are due, none where nothing is; to be asked when no request waits."""
    plan = _compute_plan(context, context.tasks)
    return (
        _plan_records(context, plan, now_ms, rules)
        or _plan_generation(context, plan, now_ms, rules)
        or _plan_tasks(context, rules)
    )


# What there is, and what is planned ---------------------------------------------------------------


def _get_place(content: PartitionContext) -> ReplicaList:
    """Return what a partition is assigned, or is being moved to."""
    return content.assigned if content.child is None else content.child.target


def _compute_plan(context: Context, tasks: Mapping[int, TaskZnode]) -> Placed:
    """Return the assignment of every partition once these tasks are carried out."""
    plan = {key: _get_place(content) for key, content in sorted(context.partitions.items())}
    for _, task in sorted(tasks.items()):
        plan |= {key: to for key, to in task.assignments.items() if key in plan}
    return plan


def _find_left(context: Context, task: TaskZnode) -> Targets:
    """Return what of a task is not there yet, partitions that are gone left out."""
    there = {
        key: _get_place(context.partitions[key])
        for key in task.assignments
        if key in context.partitions
    }
    return tuple(
        (key, task.assignments[key]) for key, now in there.items() if now != task.assignments[key]
    )


# Records ------------------------------------------------------------------------------------------


def _plan_records(context: Context, plan: Placed, now_ms: int, rules: Rules) -> tuple[Step, ...]:
    """Remove the records of those who are back, and write those that lack."""
    back = [broker for broker in sorted(context.failed) if context.is_live(broker)]
    if back:
        return tuple(DeleteRecord(point="failure.forgotten", broker=broker) for broker in back)
    wanted = {replica for replicas in plan.values() for replica in replicas}
    missed = sorted(wanted - context.brokers.keys() - context.failed.keys())
    return tuple(
        RecordFailure(point="failure.recorded", broker=broker, since_ms=now_ms) for broker in missed
    )


# Tasks are generated ------------------------------------------------------------------------------


def _plan_generation(context: Context, plan: Placed, now_ms: int, rules: Rules) -> tuple[Step, ...]:
    """Persist the tasks of the first broker whose interval has passed, then remove its record.

    A partition for which nobody can take over is left out; while any is, the record stays.
    """
    due = _find_due(context, now_ms, rules)
    for broker in due:
        planned = any(broker in replicas for replicas in plan.values())
        targets = _choose_targets(context, plan, broker, due, rules)
        tasks = _divide(targets, rules)
        forget: tuple[Step, ...] = (DeleteRecord(point="failure.scheduled", broker=broker),)
        create: tuple[Step, ...] = tuple(
            CreateTask(
                point="task.persisted",
                targets=each,
                automatic=True,
            )
            for each in tasks
        )
        if create:
            return (*create, *forget)
        if not planned:
            return forget
    return ()


def _find_due(context: Context, now_ms: int, rules: Rules) -> tuple[int, ...]:
    """Return the brokers that have been away for the interval, by the time in their records."""
    interval = rules.find_settings(HealingSettings).failure_interval_ms
    return tuple(b for b, since in sorted(context.failed.items()) if now_ms - since >= interval)


def _choose_targets(
    context: Context, plan: Placed, broker: int, due: tuple[int, ...], rules: Rules
) -> Targets:
    """Return where the partitions go that have a replica on a broker which is due."""
    from_plan = rules.readings.heal_regenerate == "from-plan"
    base = plan if from_plan else _compute_plan(context, {})
    replaced = due if rules.readings.heal_replaces == "all-due" else (broker,)
    load = Counter(replica for replicas in base.values() for replica in replicas)
    targets: list[tuple[PartitionKey, ReplicaList]] = []
    for key, before in base.items():
        replicas = before
        for failed in replaced if broker in before else ():
            if failed not in replicas:
                continue
            chosen = _choose_replacement(context, replicas, failed, load)
            if chosen is not None:
                load[chosen] += 1
                replicas = tuple(chosen if one == failed else one for one in replicas)
        if replicas != before:
            targets.append((key, replicas))
    return tuple(targets)


def _choose_replacement(
    context: Context,
    replicas: ReplicaList,
    broker: int,
    load: Mapping[int, int],
) -> int | None:
    """Return who takes the failed broker's place, None where nobody can.

    Where all racks are known those in a rack of their own come first; then the one with the fewest
    replicas, then the lowest id.
    """
    racks = context.racks
    others = {racks.get(one) for one in replicas if one != broker}
    aware = all(racks.get(one) is not None for one in {*context.known_brokers, *replicas})
    candidates = sorted(context.brokers.keys() - context.failed.keys() - {*replicas})
    return min(
        candidates,
        key=lambda one: (aware and racks.get(one) in others, load.get(one, 0), one),
        default=None,
    )


def _divide(targets: Targets, rules: Rules) -> tuple[Targets, ...]:
    size = rules.find_settings(HealingSettings).partitions_per_task
    return tuple(targets[at : at + size] for at in range(0, len(targets), size))


# Tasks are carried out ----------------------------------------------------------------------------


def _plan_tasks(context: Context, rules: Rules) -> tuple[Step, ...]:
    """Start the first task, or remove it where it is done, pointless or refused.

    A task runs while one of its partitions is being moved; nothing else says so, and a failover
    does not change it.
    """
    for number, task in sorted(context.tasks.items()):
        senseless = _find_senseless(task)
        if senseless is not None:
            return (Warn(task_path(number), f"{senseless}; removed"), *_remove(number, "refused"))
    for number in sorted(context.tasks):
        task = context.tasks[number]
        running = any(
            key in context.partitions and context.partitions[key].child is not None
            for key in task.assignments
        )
        if running:
            return ()
        left = _find_left(context, task)
        if not left:
            return _remove(number, "satisfied")
        if task.automatic and _is_pointless(context, task, rules):
            return _remove(number, "cancelled")
        if all(
            find_refusal(context, key, target, rules.readings, legacy=False) for key, target in left
        ):
            reason = "each of its reassignments is refused"
            return (Warn(task_path(number), f"{reason}; removed"), *_remove(number, "refused"))
        return (StartTask(point="task.started", number=number, targets=left),)
    return ()


def _remove(number: int, why: str) -> tuple[Step, ...]:
    return (RemoveTask(point=f"task.{why}", number=number),)


def _find_senseless(task: TaskZnode) -> str | None:
    """Return what nobody can carry out."""
    for (topic, partition), target in task.assignments.items():
        if not target or len(set(target)) < len(target):
            return f"the target {list(target)} of {topic}-{partition} names a broker twice, or none"
    return None if task.assignments else "it names no partition"


def _is_pointless(context: Context, task: TaskZnode, rules: Rules) -> bool:
    """Whether a generated task is to be cancelled before it starts."""
    contents = [context.partitions[key] for key in task.assignments if key in context.partitions]
    if all(_is_redundant(context, content, rules.readings) for content in contents):
        return True
    return rules.readings.heal_stale_task == "skip" and _is_stale(context, task)


def _is_redundant(context: Context, content: PartitionContext, readings: Readings) -> bool:
    """Whether a partition has the number of replicas that it should have."""
    if not all(context.is_live(replica) for replica in content.assigned):
        return False
    isr = () if content.state is None else content.state.isr
    return readings.heal_redundancy != "isr-full" or set(content.assigned) <= set(isr)


def _is_stale(context: Context, task: TaskZnode) -> bool:
    """Whether the task would remove a live replica, or wait for a dead one."""
    dead = any(not context.is_live(one) for to in task.assignments.values() for one in to)
    return dead or any(
        context.is_live(replica) and replica not in target
        for key, target in task.assignments.items()
        if key in context.partitions
        for replica in context.partitions[key].assigned
    )
