"""KIP-46 as a machine: what may happen and what must never be."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

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
from reassure_model.protocols.kip_46 import (
    Assignments,
    CatchUp,
    Cluster,
    Effect,
    Finish,
    Generation,
    HealingConfig,
    Hosted,
    RemoveTask,
    StartTask,
    Submit,
    Task,
    Tick,
    find_due,
    next_effect,
)
from reassure_model.protocols.kip_46.narration import make_vocabulary, parse_key, spell_key
from reassure_model.protocols.kip_46.properties import (
    find_dead_named,
    find_duplicate,
    find_factor_changed,
    find_live_removed,
    find_made_twice,
    find_stopped_queue,
    find_two_meanings,
    find_two_running,
)
from reassure_model.protocols.kip_46.world import enabled, step
from reassure_spec.readings import Readings
from reassure_spec.words import (
    Arguments,
    parse_number,
    spell_replicas,
)

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
