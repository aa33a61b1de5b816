"""KIP-46 as a machine: what may happen, what must never be, and how it is told."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from reassure_model.machine import (
    CONTROLLER,
    DIE,
    FAILOVER,
    RETURN,
    Act,
    AsBegun,
    Domain,
    EachOf,
    Goal,
    Held,
    Int,
    ListOf,
    Machine,
    Member,
    OneOf,
    OrNone,
    Place,
    Property,
    RecordOf,
    SetOf,
    Vocabulary,
    always,
    reached,
)
from reassure_model.outcome import Rejected
from reassure_model.protocols.kip_46 import (
    Assignments,
    CatchUp,
    Cluster,
    CreateTask,
    DeleteRecord,
    Effect,
    Finish,
    Generate,
    Generation,
    HealingConfig,
    Hosted,
    RecordFailure,
    RemoveTask,
    StartTask,
    Submit,
    Task,
    Tick,
    compute_quota,
    enabled,
    find_dead_named,
    find_due,
    find_duplicate,
    find_factor_changed,
    find_live_removed,
    find_made_twice,
    find_quota_exceeded,
    find_running,
    find_stopped_queue,
    find_two_meanings,
    find_two_running,
    make_cluster,
    next_effect,
    step,
)
from reassure_spec.readings import Readings
from reassure_spec.words import (
    Arguments,
    ScenarioError,
    check_arguments,
    format_replicas,
    parse_number,
    parse_replicas,
    spell_replicas,
)
from reassure_spec.znodes import (
    BadZnode,
    PartitionKey,
    TaskZnode,
    decode_task,
    encode_failed_broker,
    encode_task,
    failed_broker_path,
    task_path,
)

Clusters = Mapping[str, Cluster]
_REPLICAS: Final = ListOf("brokers", "places")


def list_fields(config: HealingConfig) -> Mapping[str, Domain]:
    """Return the domains of a cluster whose times say no more than whether an interval passed."""
    hosted: Mapping[Any, Domain] = {
        "key": Member(),
        "assigned": _REPLICAS,
        "isr": _REPLICAS,
        "target": OrNone(_REPLICAS),
    }
    task: Mapping[Any, Domain] = {
        "number": Place(),
        ("assignments", "automatic"): OneOf(of="tasks"),
    }
    return {
        "racks": AsBegun(),
        "live": SetOf("brokers"),
        "partitions": EachOf("keys", RecordOf(Hosted, hosted, always=True)),
        "now_ms": Held(config.failure_interval_ms),
        "failed": ListOf("failures", "brokers"),
        "tasks": ListOf(RecordOf(Task, task), "queue"),
        "next_number": Int(0, "queue"),
        "generation": RecordOf(
            Generation, {"broker": OneOf(of="brokers"), "pending": ListOf("moves", "keys")}
        ),
    }


def forget_times(cluster: Cluster, config: HealingConfig) -> Cluster:
    """Return the cluster in which times say whether an interval has passed, and nothing more.

    Tasks are numbered by their place: those that are gone are not counted.
    """
    due, interval_ms = find_due(cluster, config), config.failure_interval_ms
    failed = tuple((broker, 0 if broker in due else interval_ms) for broker, _ in cluster.failed)
    count = len(cluster.tasks)
    return replace(cluster, now_ms=interval_ms, failed=failed, next_number=count)


def _spell_key(key: PartitionKey) -> str:
    return f"{key[0]}-{key[1]}"


def _parse_key(text: str) -> PartitionKey:
    topic, dash, number = text.rpartition("-")
    if not dash:
        raise ScenarioError(f"{text!r} is no partition; write topic-number")
    return topic, parse_number("partition", number)


def _read_key(_: str, text: str) -> tuple[Any, ...]:
    return (_parse_key(text),)


def _say_task(assignments: Assignments) -> str:
    ((key, target),) = assignments
    return f"submit partition={_spell_key(key)} target={spell_replicas(target)}"


ACTS: Final = (
    CONTROLLER,
    Act("tick", Tick, "intervals", "ms", words="{} ms pass", counted="ticks"),
    Act(
        "finish",
        Finish,
        "keys",
        "partition",
        _read_key,
        _spell_key,
        words=lambda key: f"{_spell_key(key)} reaches its target",
    ),
    Act("catch-up", CatchUp, "keys", "partition", _read_key, _spell_key),
    DIE,
    RETURN,
    FAILOVER,
    Act("submit", Submit, "asked", saying=_say_task, counted="tasks"),
)

GOALS: Final[tuple[Goal[Cluster], ...]] = (
    Goal("a failure is recorded", reached(lambda c: len(c.failed) > 0)),
    Goal("a task is made", reached(lambda c: len(c.tasks) > 0)),
    Goal(
        "a partition is moved", reached(lambda c: any(h.target is not None for h in c.partitions))
    ),
)


def list_properties(config: HealingConfig) -> tuple[Property[Cluster], ...]:
    """Return what must never be, and what a reader takes for granted besides."""
    return (
        Property(
            "heal.task.no-live-replica-removed",
            lambda cluster, readings: find_live_removed(cluster, config, readings),
            "live-removed",
        ),
        Property("heal.task.one-at-a-time", always(find_two_running), "two-running"),
        Property("heal.target.no-duplicate", always(find_duplicate), "duplicate-replica"),
        Property("heal.generate.replaces-failed", always(find_factor_changed), "factor-changed"),
        Property(
            "heal.cancel.never-running",
            lambda cluster, readings: find_stopped_queue(cluster, config, readings),
        ),
        Property(
            "heal.target.live",
            lambda cluster, readings: find_dead_named(cluster, config, readings),
        ),
        Property("heal.failover.generated-again", always(find_made_twice)),
        Property("heal.cancel.enough-replicas", find_two_meanings),
    )


# Words ------------------------------------------------------------------------------------------


def _open(arguments: Arguments) -> Cluster:
    check_arguments(arguments, ("racks",), ("interval", "size", "quota"))
    racks: dict[int, str | None] = {}
    for entry in arguments["racks"].split(","):
        broker, colon, rack = entry.partition(":")
        racks[parse_number("racks", broker)] = rack if colon else None
    return make_cluster(racks, {})


def _say_opening(cluster: Cluster) -> tuple[str, ...]:
    racks = ",".join(f"{b}" if r is None else f"{b}:{r}" for b, r in cluster.racks)
    partitions = (
        f"partition name={_spell_key(h.key)} replicas={spell_replicas(h.assigned)}"
        for h in cluster.partitions
    )
    return (f"world kip-46 racks={racks}", *partitions)


def _add_partition(cluster: Cluster, arguments: Arguments) -> Cluster:
    check_arguments(arguments, ("name", "replicas"))
    replicas = parse_replicas("replicas", arguments["replicas"])
    if not set(replicas) <= cluster.live:
        raise ScenarioError(f"{format_replicas(replicas)}: not all of them are alive")
    added = make_cluster({}, {_parse_key(arguments["name"]): replicas}).partitions
    partitions = sorted((*cluster.partitions, *added), key=lambda hosted: hosted.key)
    return replace(cluster, partitions=tuple(partitions))


def _submit(clusters: Clusters, arguments: Arguments) -> Iterator[tuple[str, Any]]:
    """Persist an operator's task for one partition."""
    check_arguments(arguments, ("partition", "target"))
    target = parse_replicas("target", arguments["target"])
    for name in clusters:
        yield name, Submit(((_parse_key(arguments["partition"]), target),))


def _write_task(clusters: Clusters, arguments: Arguments) -> Iterator[tuple[str, Any]]:
    """Persist what an operator wrote, as it stands in the znode."""
    check_arguments(arguments, ("content",))
    for name, cluster in clusters.items():
        try:
            task = decode_task(task_path(cluster.next_number), arguments["content"].encode())
        except BadZnode as error:
            yield name, Rejected("heal.generate.persisted", error.reason)
        else:
            yield name, Submit(tuple(task.assignments.items()))


def _spell_all(assignments: Assignments) -> str:
    return " ".join(f"{_spell_key(key)} {format_replicas(target)}" for key, target in assignments)


def say_effect(effect: Effect, before: Cluster, _: Cluster) -> str:
    """Return an effect as scenarios show it, records and tasks as ZooKeeper would hold them."""
    match effect:
        case RecordFailure(broker, since):
            return f"create {failed_broker_path(broker)} {encode_failed_broker(since).decode()}"
        case DeleteRecord(broker, why):
            return f"delete {failed_broker_path(broker)}: {why}"
        case Generate(broker, pending):
            return f"generated for {broker}: {'; '.join(_spell_all(part) for part in pending)}"
        case CreateTask(assignments):
            content = encode_task(TaskZnode(dict(assignments), automatic=True)).decode()
            return f"create {task_path(before.next_number)} {content}"
        case StartTask(number):
            return f"task {number} starts"
        case RemoveTask(number, clause, why):
            return f"task {number} removed, {why} ({clause})"


def show(cluster: Cluster) -> str:
    """Return partitions, failures and tasks, a line each."""
    lines = []
    for hosted in cluster.partitions:
        target = f" to {format_replicas(hosted.target)}" if hosted.target else ""
        isr = format_replicas(hosted.isr)
        assigned = format_replicas(hosted.assigned)
        lines.append(f"{_spell_key(hosted.key)} {assigned} isr {isr}{target}")
    lines += [f"failed {broker} since {since} ms" for broker, since in cluster.failed]
    running = find_running(cluster)
    for task in cluster.tasks:
        kind = "automatic" if task.automatic else "operator's"
        state = " running" if running == task else ""
        lines.append(f"task {task.number} {kind} {_spell_all(task.assignments)}{state}")
    alive = format_replicas(sorted(cluster.live))
    return "\n".join([*lines, f"at {cluster.now_ms} ms alive {alive}"])


def _say_quota(arguments: Arguments, config: HealingConfig) -> str:
    """Say how fast each of so many movers may copy, or whether given rates are too much."""
    check_arguments(arguments, ("bandwidth",), ("movers", "rates"))
    bandwidth = parse_number("bandwidth", arguments["bandwidth"])
    if "rates" in arguments:
        rates = parse_replicas("rates", arguments["rates"])
        reason = find_quota_exceeded(rates, bandwidth, config)
        return f"rejected by heal.quota.hard-share: {reason}" if reason else "within the share"
    movers = parse_number("movers", arguments.get("movers", "1"))
    return f"{compute_quota(bandwidth, movers, config)} each"


def _settle(arguments: Arguments, _: Readings) -> Machine[Cluster]:
    return make_machine(
        HealingConfig(
            failure_interval_ms=parse_number("interval", arguments.get("interval", "1000")),
            partitions_per_task=parse_number("size", arguments.get("size", "1")),
            quota_percent=parse_number("quota", arguments.get("quota", "50")),
        )
    )


def make_machine(config: HealingConfig) -> Machine[Cluster]:
    """Return the machine under an operator's settings."""

    def _next(cluster: Cluster, readings: Readings) -> Effect | None:
        return next_effect(cluster, config, readings)

    def starts(cluster: Cluster, readings: Readings) -> bool:
        return isinstance(_next(cluster, readings), StartTask)

    def ends(cluster: Cluster, readings: Readings) -> bool:
        effect = _next(cluster, readings)
        return isinstance(effect, RemoveTask) and effect.clause == "heal.task.satisfied-skipped"

    return Machine(
        name="kip-46",
        summary="replicas of a broker that stays away are placed elsewhere without an operator",
        state=Cluster,
        fields=list_fields(config),
        acts=ACTS,
        step=lambda cluster, action, readings: step(cluster, action, config, readings),
        next_effect=_next,
        enabled=lambda cluster, readings, _: enabled(cluster, config, readings),
        is_at_rest=lambda cluster, readings: _next(cluster, readings) is None,
        properties=list_properties(config),
        goals=(*GOALS, Goal("a task is due to start", starts), Goal("a task is done", ends)),
        vocabulary=Vocabulary(
            opening=_open,
            say_opening=_say_opening,
            show=show,
            say_effect=say_effect,
            commands={"submit": _submit, "write-task": _write_task},
            answers={"tick": lambda _, after: f"{after.now_ms} ms"},
            questions={"quota": lambda _, arguments: _say_quota(arguments, config)},
            changes={"partition": _add_partition},
        ),
        settle=_settle,
        forget=lambda cluster: forget_times(cluster, config),
    )


MACHINE: Final = make_machine(HealingConfig())
