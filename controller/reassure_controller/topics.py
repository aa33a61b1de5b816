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


def find_due_deletion(context: Context, now_ms: int) -> str | None:
    """Return the first topic whose deletion can go on, None where there is none."""
    due = (topic for topic in sorted(context.deletions) if _is_due(context, topic, now_ms))
    return next(due, None)


def plan_deletion(context: Context, topic: str, now_ms: int, rules: Rules) -> tuple[Step, ...]:
    """Return the next steps of a deletion: T1 and T2, or T3 to T5, or none where it waits."""
    if topic not in context.deletions or not _is_due(context, topic, now_ms):
        return ()
    deletion = context.deletions[topic]
    if topic not in context.topic_versions:
        return _end(deletion, topic)
    if _is_answered(context, topic):
        version = context.topic_versions[topic]
        remove = RemoveTopic(point="deletion.topic-removed", topic=topic, version=version)
        return (remove, *_end(deletion, topic))
    plan = Plan(context, rules)
    for key in context.keys_of([topic]):
        _stop_replicas(plan, key)
    for key in context.keys_of([topic]):
        left = tuple(
            r for r in _list_replicas(context, key) if (key[1], r) not in deletion.answered
        )
        if left:
            plan.stop(key, LOGS_DELETED, left, delete=True)
    return tuple(plan.steps)


def _end(deletion: Deletion, topic: str) -> tuple[Step, ...]:
    end = EndDeletion(point="deletion.ended", topic=topic)
    if not deletion.has_settings:
        return (end,)
    return (RemoveSettings(point="deletion.settings-removed", topic=topic), end)


def _is_due(context: Context, topic: str, now_ms: int) -> bool:
    """Whether there is anything to do about a deletion now."""
    deletion = context.deletions[topic]
    if topic in context.unreadable:
        return False
    if topic not in context.topic_versions:
        return True
    if context.find_moving(topic):
        return False
    if _is_answered(context, topic):
        return True
    replicas = _list_logs(context, topic)
    away = [one for _, one in replicas if not context.is_live(one)]
    if away:
        return False
    left = {each for each in replicas - deletion.answered if context.is_live(each[1])}
    lives = {(number, one, context.brokers[one].epoch) for number, one in left}
    return not lives <= deletion.told or now_ms - deletion.told_ms >= RETRY_MS


def _is_answered(context: Context, topic: str) -> bool:
    """Whether every replica has answered that its log is deleted."""
    deletion = context.deletions[topic]
    replicas = _list_logs(context, topic)
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
