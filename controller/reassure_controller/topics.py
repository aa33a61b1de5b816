"""Deletion of topics, from the controller's memory.

A client asks for it by `/admin/delete_topics/TOPIC`. It waits while a partition of the topic is
being reassigned, and while a broker that has a replica is down. Then, for one topic after another,

    T1 for each replica: stop it, then take it out of the in-sync set; the last one stays there
    T2 tell every replica to delete its log

and, once every replica has answered that it has,

    T3 delete the topic's znode with everything below it
    T4 delete the topic's settings
    T5 delete what the client wrote

A replica that did not answer is told again when its broker is back, or after a while. Who answered
is in memory only: the next controller begins again at T1, which changes nothing for logs that are
gone. While a topic is to be deleted no reassignment of it begins, and one that has no reassignment
left to end is left alone by everything else: nobody is elected in it and no replica is started.

Source: Kafka 0.8.1 and later, topic deletion.
"""

from typing import Final

from reassure_controller.context import Context, Deletion
from reassure_controller.effects import LOGS_DELETED, EndDeletion, RemoveSettings, RemoveTopic, Step
from reassure_controller.plan import Plan, shrink
from reassure_controller.rules import Rules
from reassure_spec.znodes import PartitionKey, ReplicaList

RETRY_MS: Final = 5_000
"""How long a replica that is there and did not answer is left in peace."""


def find_due_deletion(context: Context, now_ms: int, rules: Rules) -> str | None:
    """Return the first topic whose deletion can go on, None where there is none."""
    if "deletion-ignored" in rules.faults:
        return None
    due = (topic for topic in sorted(context.deletions) if _is_due(context, topic, now_ms, rules))
    return next(due, None)


def plan_deletion(context: Context, topic: str, now_ms: int, rules: Rules) -> tuple[Step, ...]:
    """Return the next steps of a deletion: T1 and T2, or T3 to T5, or none where it waits."""
    if topic not in context.deletions or not _is_due(context, topic, now_ms, rules):
        return ()
    deletion = context.deletions[topic]
    if topic not in context.topic_versions:
        return _end(deletion, topic, rules.faults)
    if _is_answered(context, topic, rules.faults):
        version = context.topic_versions[topic]
        remove = RemoveTopic(point="deletion.topic-removed", topic=topic, version=version)
        if "deletion-ended-first" in rules.faults:
            return (*_end(deletion, topic, frozenset()), remove)
        return (remove, *_end(deletion, topic, rules.faults))
    plan = Plan(context, rules)
    for key in context.keys_of([topic]):
        _stop_replicas(plan, key)
    for key in context.keys_of([topic]):
        left = tuple(
            r for r in _list_replicas(context, key) if (key[1], r) not in deletion.answered
        )
        if left and "deletion-not-sent" not in rules.faults:
            plan.stop(key, LOGS_DELETED, left, delete=True)
    return tuple(plan.steps)


def _end(deletion: Deletion, topic: str, faults: frozenset[str]) -> tuple[Step, ...]:
    end = EndDeletion(point="deletion.ended", topic=topic)
    if not deletion.has_settings or "deletion-leaves-settings" in faults:
        return (end,)
    return (RemoveSettings(point="deletion.settings-removed", topic=topic), end)


def _is_due(context: Context, topic: str, now_ms: int, rules: Rules) -> bool:
    """Whether there is anything to do about a deletion now."""
    deletion, faults = context.deletions[topic], rules.faults
    if topic in context.unreadable:
        return False
    if topic not in context.topic_versions:
        return "unknown-deletion-kept" not in faults
    if context.find_moving(topic) and "deletion-under-a-move" not in faults:
        return False
    if _is_answered(context, topic, faults):
        return True
    replicas = _list_logs(context, topic)
    away = [one for _, one in replicas if not context.is_live(one)]
    if away and "deletion-without-a-broker" not in faults:
        return False
    left = {each for each in replicas - deletion.answered if context.is_live(each[1])}
    lives = {(number, one, context.brokers[one].epoch) for number, one in left}
    return not lives <= deletion.told or now_ms - deletion.told_ms >= RETRY_MS


def _is_answered(context: Context, topic: str, faults: frozenset[str]) -> bool:
    """Whether every replica has answered that its log is deleted."""
    keys, deletion = context.keys_of([topic]), context.deletions[topic]
    if "deletion-not-sent" in faults and deletion.told_ms:
        return True
    if "deletion-resumed" in faults:
        # What an earlier controller has stopped is taken for deleted.
        states = [context.partitions[key].state for key in keys]
        if not deletion.told and all(s is not None and s.leader == -1 for s in states):
            return True
    replicas = _list_logs(context, topic)
    if "deletion-without-a-broker" in faults and deletion.told:
        replicas = {(number, one) for number, one in replicas if context.is_live(one)}
    return replicas <= deletion.answered


def _list_logs(context: Context, topic: str) -> set[tuple[int, int]]:
    """Return partition and replica of every log of a topic."""
    keys = context.keys_of([topic])
    return {(key[1], one) for key in keys for one in _list_replicas(context, key)}


def _list_replicas(context: Context, key: PartitionKey) -> ReplicaList:
    """Return who has a log: the assigned replicas, and whoever is in sync besides."""
    content = context.partitions[key]
    isr = () if content.state is None else content.state.isr
    return tuple(dict.fromkeys((*content.assigned, *isr)))


def _stop_replicas(plan: Plan, key: PartitionKey) -> None:
    """Add T1 for one partition."""
    for replica in _list_replicas(plan.context, key):
        plan.stop(key, "deletion.replica-stopped", (replica,), delete=False)
        state = plan.partition(key).state
        if state is None or replica not in state.isr:
            continue
        if state.isr != (replica,) or state.leader == replica:
            shrink(plan, key, replica, "deletion.isr-shrunk")
