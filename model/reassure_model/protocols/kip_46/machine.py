"""KIP-46 as a machine: what may happen to a cluster and what must never be."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from reassure_model.environment import Controller, Die, Failover, NotPossible, Return
from reassure_model.fields import (
    AsBegun,
    Domain,
    EachOf,
    Held,
    Int,
    ListOf,
    Member,
    OneOf,
    OrNone,
    Place,
    RecordOf,
    SetOf,
)
from reassure_model.machine import (
    CONTROLLER,
    DIE,
    FAILOVER,
    RETURN,
    Act,
    Goal,
    Machine,
    Property,
    always,
    reached,
)
from reassure_model.narration import parse_key
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Environment, spell_key
from reassure_model.protocols.kip_46 import (
    Action,
    Assignments,
    CatchUp,
    Cluster,
    Effect,
    Finish,
    Generate,
    Generation,
    HealingConfig,
    Hosted,
    RemoveTask,
    StartTask,
    Submit,
    Task,
    Tick,
    add_task,
    find_dead_target,
    find_due,
    find_running,
    find_stale,
    get_hosted,
    is_redundant,
    next_effect,
)
from reassure_model.protocols.kip_46.healing import Healing
from reassure_model.protocols.kip_46.narration import make_vocabulary
from reassure_model.protocols.kip_46.writes import HEALING
from reassure_spec.clauses import checks, clause
from reassure_spec.readings import Readings, override_readings
from reassure_spec.words import Arguments, parse_number, spell_replicas


def step(
    cluster: Cluster, action: Action, config: HealingConfig, readings: Readings
) -> Accepted[Cluster] | Rejected:
    """Take one action. Raises NotPossible for one that has nothing to act upon."""
    match action:
        case Tick(milliseconds):
            return Accepted(replace(cluster, now_ms=cluster.now_ms + milliseconds))
        case Submit(assignments):
            return submit(cluster, assignments)
        case Finish(key):
            hosted = get_hosted(cluster, key)
            if hosted is not None and hosted.target is not None:
                target = hosted.target
                if all(replica in cluster.live for replica in target):
                    return Accepted(_set(cluster, Hosted(key, target, target)))
        case CatchUp(key):
            hosted = get_hosted(cluster, key)
            if hosted is not None:
                isr = tuple(r for r in hosted.assigned if r in cluster.live)
                return Accepted(_set(cluster, replace(hosted, isr=isr or hosted.isr)))
        case Die(broker) if broker in cluster.live:
            after = replace(cluster, live=cluster.live - {broker})
            for hosted in after.partitions:
                isr = tuple(replica for replica in hosted.isr if replica != broker)
                after = _set(after, replace(hosted, isr=isr or hosted.isr))
            return Accepted(after)
        case Return(broker) if broker not in cluster.live and broker in dict(cluster.racks):
            return Accepted(replace(cluster, live=cluster.live | {broker}))
        case Failover():
            return Accepted(replace(cluster, generation=None))
        case Controller():
            effect = next_effect(cluster, config, readings)
            if effect is not None:
                return carry_out(cluster, effect, readings)
    raise NotPossible(f"{action} is not possible in {cluster}")


def carry_out(cluster: Cluster, effect: Effect, readings: Readings) -> Accepted[Cluster] | Rejected:
    """Return the cluster after an effect, unless the rules on writes reject it."""
    around = Environment(cluster.live, cluster.live)
    outcome = HEALING.accept(Healing(cluster), effect, around, readings)
    if isinstance(outcome, Rejected):
        return outcome
    return Accepted(outcome.state.cluster, outcome.clauses, outcome.effects)


@checks
def submit(cluster: Cluster, assignments: Assignments) -> Accepted[Cluster] | Rejected:
    """Persist a task of an operator, unless it names a replica twice or none at all."""
    for key, target in assignments:
        if len(target) == 0 or len(set(target)) != len(target):
            return Rejected("heal.task.refuse-duplicate", f"{spell_key(key)}: {list(target)}")
    return Accepted(add_task(cluster, assignments, automatic=False))


def _set(cluster: Cluster, changed: Hosted) -> Cluster:
    partitions = tuple(changed if h.key == changed.key else h for h in cluster.partitions)
    return replace(cluster, partitions=partitions)


def enabled(cluster: Cluster, config: HealingConfig, readings: Readings) -> tuple[Action, ...]:
    """Return every action that is possible; time passes by the failure interval."""
    actions: list[Action] = []
    if next_effect(cluster, config, readings) is not None:
        actions.append(Controller())
    moving = ((h.key, h.target) for h in cluster.partitions if h.target is not None)
    actions += [Finish(key) for key, target in moving if set(target) <= cluster.live]
    actions += [Die(broker) for broker in sorted(cluster.live)]
    known = frozenset(broker for broker, _ in cluster.racks)
    actions += [Return(broker) for broker in sorted(known - cluster.live)]
    return (*actions, Tick(config.failure_interval_ms), Failover())


@clause("heal.task.one-at-a-time")
def find_two_running(cluster: Cluster) -> str | None:
    """Say so when a partition is moved that the first task does not name."""
    named = {key for task in cluster.tasks[:1] for key, _ in task.assignments}
    strays = [h.key for h in cluster.partitions if h.target is not None and h.key not in named]
    return f"moved out of turn: {strays}" if strays else None


@clause("heal.task.no-live-replica-removed")
def find_live_removed(cluster: Cluster, config: HealingConfig, readings: Readings) -> str | None:
    """Say so when an automatic task that is due to start removes a live replica.

    Only its start counts: who returns while it runs is removed all the same, says the text.
    """
    effect = next_effect(cluster, config, readings)
    task = cluster.tasks[0] if isinstance(effect, StartTask) else None
    return find_stale(cluster, task) if task is not None and task.automatic else None


@clause("heal.target.no-duplicate")
def find_duplicate(cluster: Cluster) -> str | None:
    """Say so when a partition has, or is to have, a replica twice."""
    lists = [h.assigned for h in cluster.partitions]
    lists += [target for task in cluster.tasks for _, target in task.assignments]
    twice = [replicas for replicas in lists if len(set(replicas)) != len(replicas)]
    return f"named twice: {list(twice[0])}" if twice else None


@clause("heal.generate.replaces-failed")
def find_factor_changed(cluster: Cluster) -> str | None:
    """Say so when an automatic task changes the number of replicas."""
    for task in cluster.tasks:
        for key, target in task.assignments:
            hosted = get_hosted(cluster, key)
            if task.automatic and hosted is not None and len(hosted.assigned) != len(target):
                return f"{spell_key(key)} from {list(hosted.assigned)} to {list(target)}"
    return None


@clause("heal.cancel.never-running", "heal.task.one-at-a-time")
def find_stopped_queue(cluster: Cluster, config: HealingConfig, readings: Readings) -> str | None:
    """Say so when a running task waits for a dead broker and others wait behind it (heal-2)."""
    running = find_running(cluster)
    if running is None or next_effect(cluster, config, readings) is not None:
        return None
    dead = find_dead_target(cluster, running)
    return f"{dead}, and a task waits behind it" if dead and cluster.tasks[1:] else None


@clause("heal.target.live", "heal.generate.replaces-failed")
def find_dead_named(cluster: Cluster, config: HealingConfig, readings: Readings) -> str | None:
    """Say so when the controller makes a task that keeps a broker it knows has failed (heal-3)."""
    due = next_effect(cluster, config, readings)
    if not isinstance(due, Generate):
        return None
    failed = [broker for broker, _ in cluster.failed]
    for assignments in due.pending:
        for (topic, number), target in assignments:
            named = [replica for replica in target if replica in failed]
            if named:
                return f"{topic}-{number} is to go to {list(target)}, and {named[0]} has failed"
    return None


@clause("heal.failover.generated-again")
def find_made_twice(cluster: Cluster) -> str | None:
    """Say so when the same task stands twice (heal-6)."""
    made = [task.assignments for task in cluster.tasks if task.automatic]
    twice = [one for one in made if made.count(one) > 1]
    return f"a task stands twice: {list(twice[0][0][1])}" if twice else None


@clause("heal.cancel.enough-replicas")
def find_two_meanings(cluster: Cluster, readings: Readings) -> str | None:
    """Say so when a task is pointless by the number of live replicas, and one still copies.

    Finding heal-5: what the desired number of replicas counts is not defined. It can be asked only
    where the readings count live ones.
    """
    strict = override_readings(readings, {"heal.redundancy": "isr-full"})
    for task in cluster.tasks[:1]:
        loose = task.automatic and is_redundant(cluster, task, readings)
        if loose and not is_redundant(cluster, task, strict):
            behind = [get_hosted(cluster, key) for key, _ in task.assignments]
            sets = [(list(h.assigned), list(h.isr)) for h in behind if h is not None]
            return f"the task is dropped with assigned {sets[0][0]} and in sync {sets[0][1]}"
    return None


Find = Callable[[Cluster, Readings], str | None]
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


def _read_key(_: str, text: str) -> tuple[Any, ...]:
    return (parse_key(text),)


def _say_task(assignments: Assignments) -> str:
    ((key, target),) = assignments
    return f"submit partition={spell_key(key)} target={spell_replicas(target)}"


ACTS: Final = (
    CONTROLLER,
    Act("tick", Tick, "intervals", "ms", words="{} ms pass", counted="ticks"),
    Act(
        "finish",
        Finish,
        "keys",
        "partition",
        _read_key,
        spell_key,
        words=lambda key: f"{spell_key(key)} reaches its target",
    ),
    Act("catch-up", CatchUp, "keys", "partition", _read_key, spell_key),
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

    def under(find: Callable[[Cluster, HealingConfig, Readings], str | None]) -> Find:
        return lambda cluster, readings: find(cluster, config, readings)

    return (
        Property("heal.task.no-live-replica-removed", under(find_live_removed), "live-removed"),
        Property("heal.task.one-at-a-time", always(find_two_running), "two-running"),
        Property("heal.target.no-duplicate", always(find_duplicate), "duplicate-replica"),
        Property("heal.generate.replaces-failed", always(find_factor_changed), "factor-changed"),
        Property("heal.cancel.never-running", under(find_stopped_queue)),
        Property("heal.target.live", under(find_dead_named)),
        Property("heal.failover.generated-again", always(find_made_twice)),
        Property("heal.cancel.enough-replicas", find_two_meanings),
    )


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
        vocabulary=make_vocabulary(config),
        settle=_settle,
        forget=lambda cluster: forget_times(cluster, config),
    )


MACHINE: Final = make_machine(HealingConfig())
