"""What must never be under KIP-46, and what a reader takes for granted."""

from reassure_model.protocols.kip_46 import (
    Cluster,
    Generate,
    HealingConfig,
    StartTask,
    find_dead_target,
    find_running,
    find_stale,
    get_hosted,
    is_redundant,
    next_effect,
)
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings, override_readings


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
                return f"{key[0]}-{key[1]} from {list(hosted.assigned)} to {list(target)}"
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
