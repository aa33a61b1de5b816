"""What may happen to a cluster under KIP-46, the effects of the controller among it."""

from dataclasses import replace

from reassure_model.environment import Controller, Die, Failover, NotPossible, Return
from reassure_model.outcome import Accepted, Rejected
from reassure_model.protocols.kip_46 import (
    Action,
    Assignments,
    CatchUp,
    Cluster,
    Finish,
    HealingConfig,
    Hosted,
    Submit,
    Tick,
    add_task,
    apply_effect,
    get_hosted,
    next_effect,
)
from reassure_spec.clauses import checks
from reassure_spec.readings import Readings


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
                return Accepted(apply_effect(cluster, effect), effects=(effect,))
    raise NotPossible(f"{action} is not possible in {cluster}")


@checks
def submit(cluster: Cluster, assignments: Assignments) -> Accepted[Cluster] | Rejected:
    """Persist a task of an operator, unless it names a replica twice or none at all."""
    for key, target in assignments:
        if len(target) == 0 or len(set(target)) != len(target):
            return Rejected("heal.task.refuse-duplicate", f"{key[0]}-{key[1]}: {list(target)}")
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
