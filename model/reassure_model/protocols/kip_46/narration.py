"""How KIP-46 is told."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from reassure_model.narration import Vocabulary, parse_key, to_each
from reassure_model.outcome import Rejected
from reassure_model.partition import spell_key
from reassure_model.protocols import kip_46
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
    TaskZnode,
    decode_task,
    encode_failed_broker,
    encode_task,
    failed_broker_path,
    task_path,
)

Clusters = Mapping[str, kip_46.Cluster]


def _open(arguments: Arguments) -> kip_46.Cluster:
    check_arguments(arguments, ("racks",), ("interval", "size", "quota"))
    racks: dict[int, str | None] = {}
    for entry in arguments["racks"].split(","):
        broker, colon, rack = entry.partition(":")
        racks[parse_number("racks", broker)] = rack if colon else None
    return kip_46.make_cluster(racks, {})


def _say_opening(cluster: kip_46.Cluster) -> tuple[str, ...]:
    racks = ",".join(f"{b}" if r is None else f"{b}:{r}" for b, r in cluster.racks)
    partitions = (
        f"partition name={spell_key(h.key)} replicas={spell_replicas(h.assigned)}"
        for h in cluster.partitions
    )
    return (f"world kip-46 racks={racks}", *partitions)


def _add_partition(cluster: kip_46.Cluster, arguments: Arguments) -> kip_46.Cluster:
    check_arguments(arguments, ("name", "replicas"))
    replicas = parse_replicas("replicas", arguments["replicas"])
    if not set(replicas) <= cluster.live:
        raise ScenarioError(f"{format_replicas(replicas)}: not all of them are alive")
    added = kip_46.make_cluster({}, {parse_key(arguments["name"]): replicas}).partitions
    partitions = sorted((*cluster.partitions, *added), key=lambda hosted: hosted.key)
    return replace(cluster, partitions=tuple(partitions))


def _read_task(arguments: Arguments) -> kip_46.Submit:
    """Read an operator's task for one partition."""
    check_arguments(arguments, ("partition", "target"))
    target = parse_replicas("target", arguments["target"])
    return kip_46.Submit(((parse_key(arguments["partition"]), target),))


def _write_task(clusters: Clusters, arguments: Arguments) -> Iterator[tuple[str, Any]]:
    """Persist what an operator wrote, as it stands in the znode."""
    check_arguments(arguments, ("content",))
    for name, cluster in clusters.items():
        try:
            task = decode_task(task_path(cluster.next_number), arguments["content"].encode())
        except BadZnode as error:
            yield name, Rejected("heal.generate.persisted", error.reason)
        else:
            yield name, kip_46.Submit(tuple(task.assignments.items()))


def _spell_all(assignments: kip_46.Assignments) -> str:
    return " ".join(f"{spell_key(key)} {format_replicas(target)}" for key, target in assignments)


def say_effect(effect: kip_46.Effect, before: kip_46.Cluster, _: kip_46.Cluster) -> str:
    """Return an effect as scenarios show it, records and tasks as ZooKeeper would hold them."""
    match effect:
        case kip_46.RecordFailure(broker, since):
            return f"create {failed_broker_path(broker)} {encode_failed_broker(since).decode()}"
        case kip_46.DeleteRecord(broker, why):
            return f"delete {failed_broker_path(broker)}: {why}"
        case kip_46.Generate(broker, pending):
            return f"generated for {broker}: {'; '.join(_spell_all(part) for part in pending)}"
        case kip_46.CreateTask(assignments):
            content = encode_task(TaskZnode(dict(assignments), automatic=True)).decode()
            return f"create {task_path(before.next_number)} {content}"
        case kip_46.StartTask():
            return f"task {before.tasks[0].number} starts"
        case kip_46.RemoveTask(number, clause, why):  # one way: there is no other effect
            return f"task {number} removed, {why} ({clause})"


def show(cluster: kip_46.Cluster) -> str:
    """Return partitions, failures and tasks, a line each."""
    lines = []
    for hosted in cluster.partitions:
        target = f" to {format_replicas(hosted.target)}" if hosted.target else ""
        isr = format_replicas(hosted.isr)
        assigned = format_replicas(hosted.assigned)
        lines.append(f"{spell_key(hosted.key)} {assigned} isr {isr}{target}")
    lines += [f"failed {broker} since {since} ms" for broker, since in cluster.failed]
    running = kip_46.find_running(cluster)
    for task in cluster.tasks:
        kind = "automatic" if task.automatic else "operator's"
        state = " running" if running == task else ""
        lines.append(f"task {task.number} {kind} {_spell_all(task.assignments)}{state}")
    alive = format_replicas(sorted(cluster.live))
    return "\n".join([*lines, f"at {cluster.now_ms} ms alive {alive}"])


def _say_quota(arguments: Arguments, config: kip_46.HealingConfig) -> str:
    """Say how fast each of so many movers may copy, or whether given rates are too much."""
    check_arguments(arguments, ("bandwidth",), ("movers", "rates"))
    bandwidth = parse_number("bandwidth", arguments["bandwidth"])
    if "rates" in arguments:
        rates = parse_replicas("rates", arguments["rates"])
        reason = kip_46.find_quota_exceeded(rates, bandwidth, config)
        return f"rejected by heal.quota.hard-share: {reason}" if reason else "within the share"
    movers = parse_number("movers", arguments.get("movers", "1"))
    return f"{kip_46.compute_quota(bandwidth, movers, config)} each"


def make_vocabulary(config: kip_46.HealingConfig) -> Vocabulary[kip_46.Cluster]:
    """Return the words under an operator's settings."""
    return Vocabulary(
        opening=_open,
        say_opening=_say_opening,
        show=show,
        say_effect=say_effect,
        commands={"submit": to_each(_read_task), "write-task": _write_task},
        answers={"tick": lambda _, after: f"{after.now_ms} ms"},
        questions={"quota": lambda _, arguments: _say_quota(arguments, config)},
        changes={"partition": _add_partition},
    )
