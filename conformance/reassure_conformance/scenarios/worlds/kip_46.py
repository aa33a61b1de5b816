"""World `kip-46`: brokers that stay away, failure records and tasks.

`world kip-46 racks=1:a,2:b,3` names the brokers, each with its rack where that is known;
`interval=`, `size=` and `quota=` are the settings. `partition name=t-0 replicas=1,2` adds a healthy
partition. `run` lets the controller carry out all it owes and `step` so many effects; anything else
(`die`, `return`, `tick`, `fail-over`, `finish`, `catch-up`, `submit`) can come between any two.
Failure records and tasks are shown as ZooKeeper would hold them. `shortest` searches for the
shortest story to a problem within a number of deaths and failovers.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import ClassVar, Final

from reassure_conformance.scenarios.worlds import dispatch, run_to_rest
from reassure_explorer.engine.search import find_shortest
from reassure_explorer.tales.kip_46 import LIMITED, follow
from reassure_model.environment import Controller, Die, Failover, NotPossible, Return
from reassure_model.kip_46 import (
    Action,
    Assignments,
    CatchUp,
    Cluster,
    CreateTask,
    DeleteRecord,
    Effect,
    Finish,
    Generate,
    HealingConfig,
    RecordFailure,
    RemoveTask,
    StartTask,
    Submit,
    Tick,
    compute_quota,
    find_duplicate,
    find_factor_changed,
    find_live_removed,
    find_quota_exceeded,
    find_running,
    find_two_running,
    make_cluster,
    next_effect,
    step,
)
from reassure_model.outcome import Rejected
from reassure_spec.readings import Readings
from reassure_spec.words import (
    Arguments,
    ScenarioError,
    check_arguments,
    format_replicas,
    parse_number,
    parse_replicas,
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

LIMIT: Final = 60
"""Effects after which `run` gives up."""

Problem = Callable[[Cluster, HealingConfig, Readings], str | None]

PROBLEMS: Final[Mapping[str, Problem]] = MappingProxyType(
    {
        "live-removed": find_live_removed,
        "two-running": lambda cluster, _, __: find_two_running(cluster),
        "duplicate-replica": lambda cluster, _, __: find_duplicate(cluster),
        "factor-changed": lambda cluster, _, __: find_factor_changed(cluster),
    }
)
"""What must never be, by name."""


def _spell(key: PartitionKey) -> str:
    return f"{key[0]}-{key[1]}"


def _spell_all(assignments: Assignments) -> str:
    return " ".join(f"{_spell(key)} {format_replicas(target)}" for key, target in assignments)


def _parse_key(text: str) -> PartitionKey:
    topic, dash, number = text.rpartition("-")
    if not dash:
        raise ScenarioError(f"{text!r} is no partition; write topic-number")
    return topic, parse_number("partition", number)


def format_effect(effect: Effect, cluster: Cluster) -> str:
    """Return an effect as scenarios show it; `cluster` is as it was before."""
    match effect:
        case RecordFailure(broker, since):
            return f"create {failed_broker_path(broker)} {encode_failed_broker(since).decode()}"
        case DeleteRecord(broker, why):
            return f"delete {failed_broker_path(broker)}: {why}"
        case Generate(broker, pending):
            return f"generated for {broker}: {'; '.join(_spell_all(part) for part in pending)}"
        case CreateTask(assignments):
            content = encode_task(TaskZnode(dict(assignments), automatic=True)).decode()
            return f"create {task_path(cluster.next_number)} {content}"
        case StartTask(number):
            return f"task {number} starts"
        case RemoveTask(number, clause, why):
            return f"task {number} removed, {why} ({clause})"


class HealingWorld:
    """A cluster that heals itself."""

    name: ClassVar[str] = "kip-46"

    def __init__(self, profile: str, readings: Readings, arguments: Arguments) -> None:
        check_arguments(arguments, ("racks",), ("interval", "size", "quota"))
        racks: dict[int, str | None] = {}
        for entry in arguments["racks"].split(","):
            broker, colon, rack = entry.partition(":")
            racks[parse_number("racks", broker)] = rack if colon else None
        self._cluster = make_cluster(racks, {})
        self._config: Final = HealingConfig(
            failure_interval_ms=parse_number("interval", arguments.get("interval", "1000")),
            partitions_per_task=parse_number("size", arguments.get("size", "1")),
            quota_percent=parse_number("quota", arguments.get("quota", "50")),
        )
        self._readings: Final = readings

    def run(self, command: str, arguments: Arguments) -> str:
        """Carry out one command. Raises ScenarioError."""
        handlers = {
            "partition": self._add_partition,
            "run": self._run,
            "step": self._step,
            "die": lambda a: self._each(a, Die),
            "return": lambda a: self._each(a, Return),
            "tick": self._tick,
            "fail-over": lambda a: self._take(a, Failover()),
            "finish": lambda a: self._on_partition(a, Finish),
            "catch-up": lambda a: self._on_partition(a, CatchUp),
            "submit": self._submit,
            "write-task": self._write_task,
            "show": self._show,
            "quota": self._quota,
            "problems": self._show_problems,
            "shortest": self._search,
        }
        try:
            return dispatch(handlers, command, arguments)
        except NotPossible as error:
            raise ScenarioError(str(error)) from error

    def _take(self, arguments: Arguments, action: Action) -> str:
        check_arguments(arguments)
        return self._go(action)

    def _go(self, action: Action) -> str:
        outcome = step(self._cluster, action, self._config, self._readings)
        if isinstance(outcome, Rejected):
            return f"rejected by {outcome.clause}: {outcome.reason}"
        self._cluster = outcome.state
        return ""

    def _add_partition(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("name", "replicas"))
        key = _parse_key(arguments["name"])
        replicas = parse_replicas("replicas", arguments["replicas"])
        if not set(replicas) <= self._cluster.live:
            raise ScenarioError(f"{format_replicas(replicas)}: not all of them are alive")
        added = make_cluster({}, {key: replicas}).partitions
        partitions = sorted((*self._cluster.partitions, *added), key=lambda hosted: hosted.key)
        self._cluster = replace(self._cluster, partitions=tuple(partitions))
        return ""

    def _each(self, arguments: Arguments, make: Callable[[int], Action]) -> str:
        check_arguments(arguments, ("broker",))
        for number in parse_replicas("broker", arguments["broker"]):
            self._go(make(number))
        return ""

    def _tick(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("ms",))
        self._go(Tick(parse_number("ms", arguments["ms"])))
        return f"{self._cluster.now_ms} ms"

    def _on_partition(self, arguments: Arguments, make: Callable[[PartitionKey], Action]) -> str:
        check_arguments(arguments, ("partition",))
        return self._go(make(_parse_key(arguments["partition"])))

    def _submit(self, arguments: Arguments) -> str:
        """Persist an operator's task for one partition."""
        check_arguments(arguments, ("partition", "target"))
        target = parse_replicas("target", arguments["target"])
        return self._go(Submit(((_parse_key(arguments["partition"]), target),)))

    def _write_task(self, arguments: Arguments) -> str:
        """Persist what an operator wrote, as it stands in the znode."""
        check_arguments(arguments, ("content",))
        try:
            task = decode_task(task_path(self._cluster.next_number), arguments["content"].encode())
        except BadZnode as error:
            return f"rejected by heal.generate.persisted: {error.reason}"
        return self._go(Submit(tuple(task.assignments.items())))

    def _effect(self) -> str | None:
        effect = next_effect(self._cluster, self._config, self._readings)
        if effect is None:
            return None
        line = format_effect(effect, self._cluster)
        self._go(Controller())
        return line

    def _step(self, arguments: Arguments) -> str:
        check_arguments(arguments, (), ("times",))
        times = parse_number("times", arguments.get("times", "1"))
        return "\n".join(self._effect() or "the controller waits" for _ in range(times))

    def _run(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        return "\n".join(run_to_rest(self._effect, LIMIT)) or "the controller waits"

    def _show(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        cluster = self._cluster
        lines = []
        for hosted in cluster.partitions:
            target = f" to {format_replicas(hosted.target)}" if hosted.target else ""
            isr = format_replicas(hosted.isr)
            lines.append(
                f"{_spell(hosted.key)} {format_replicas(hosted.assigned)} isr {isr}{target}"
            )
        lines += [f"failed {broker} since {since} ms" for broker, since in cluster.failed]
        running = find_running(cluster)
        for task in cluster.tasks:
            kind = "automatic" if task.automatic else "operator's"
            state = " running" if running is task else ""
            lines.append(f"task {task.number} {kind} {_spell_all(task.assignments)}{state}")
        alive = format_replicas(tuple(sorted(cluster.live)))
        return "\n".join([*lines, f"at {cluster.now_ms} ms alive {alive}"])

    def _quota(self, arguments: Arguments) -> str:
        """Say how fast each of so many movers may copy, or whether given rates are too much."""
        check_arguments(arguments, ("bandwidth",), ("movers", "rates"))
        bandwidth = parse_number("bandwidth", arguments["bandwidth"])
        if "rates" in arguments:
            rates = parse_replicas("rates", arguments["rates"])
            reason = find_quota_exceeded(rates, bandwidth, self._config)
            return f"rejected by heal.quota.hard-share: {reason}" if reason else "within the share"
        movers = parse_number("movers", arguments.get("movers", "1"))
        return f"{compute_quota(bandwidth, movers, self._config)} each"

    def _show_problems(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        lines = []
        for name, find in PROBLEMS.items():
            why = find(self._cluster, self._config, self._readings)
            lines += [f"{name}: {why}"] if why else []
        return "\n".join(lines) or "none"

    def _search(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("problem",), tuple(LIMITED))
        if arguments["problem"] not in PROBLEMS:
            raise ScenarioError(f"no such problem; there are: {', '.join(PROBLEMS)}")
        find = PROBLEMS[arguments["problem"]]
        often = {"deaths": "0", "returns": "0", "failovers": "0", "ticks": "2", **arguments}
        limits = {kind: parse_number(name, often[name]) for name, kind in LIMITED.items()}
        config, readings = self._config, self._readings
        story = find_shortest(
            self._cluster,
            partial(follow, readings=readings, config=config),
            lambda cluster: find(cluster, config, readings) is not None,
            limits,
        )
        if story is None:
            return "not reachable"
        cluster, lines = self._cluster, []
        for number, action in enumerate(story, start=1):
            effect = next_effect(cluster, config, readings)
            lines.append(f"{number}. {_format_action(action, effect, cluster)}")
            outcome = step(cluster, action, config, readings)
            assert not isinstance(outcome, Rejected)  # the search has taken the same step
            cluster = outcome.state
        return "\n".join([*lines, f"=> {find(cluster, config, readings)}"])


def _format_action(action: Action, effect: Effect | None, cluster: Cluster) -> str:
    match action:
        case Controller() if effect is not None:
            return format_effect(effect, cluster)
        case Die(broker):
            return f"broker {broker} dies"
        case Return(broker):
            return f"broker {broker} returns"
        case Tick(milliseconds):
            return f"{milliseconds} ms pass"
        case Failover():
            return "the controller fails over"
        case Finish(key):
            return f"{_spell(key)} reaches its target"
        case _:
            return f"{action}"
