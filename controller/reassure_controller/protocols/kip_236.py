"""Requests are recorded, and a change of a target takes replicas out again, by the drop rule.

Clients ask by sequential znodes, which are taken in the order of their numbers. For every partition
a record says what is in flight (`reassignment_steps`).

A reassignment that is changed again and again must not let the assignment grow for ever. The rule
ranks the assigned replicas (leader, then the in-sync ones, then the others), keeps as many as the
partition had when the chain of reassignments began (`top`), and drops the rest.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from kazoo.protocol.states import EventType

from reassure_controller.context import Context, PartitionContext
from reassure_controller.effects import (
    CreateReassignment,
    DeleteReassignment,
    DeleteRequest,
    HealingWrite,
    OpenRequest,
    Phase,
    Planned,
    RecheckOldZnode,
    RequestRead,
    Step,
    TranslateEntries,
    UpdateReassignment,
    Warn,
    WriteOldZnode,
    list_partitions,
)
from reassure_controller.plan import Plan, find_bad_target, warn_refused
from reassure_controller.planned_job import Job
from reassure_controller.reader import ClusterReader
from reassure_controller.reassignment_steps import expand_assigned, is_in_sync
from reassure_controller.rules import Planner, Rules
from reassure_controller.session import fetch, gather, list_children
from reassure_spec.readings import Readings
from reassure_spec.znodes import (
    NO_LEADER,
    REASSIGNMENT_REQUESTS,
    REASSIGNMENTS,
    BadZnode,
    PartitionKey,
    ReassignmentZnode,
    ReplicaList,
    RequestZnode,
    decode_reassignment,
    decode_request,
    parse_request_name,
    reassignment_path,
)

RECORDED_AT_ONCE: Final = 20
"""Of how many partitions a request is carried on with before a controller looks what has come."""


class RequestPlanner(Planner):
    """Takes requests, and records reassignments."""

    reassigns = True
    rebalances = True
    watched_below = (REASSIGNMENT_REQUESTS,)

    def read_all(self, reader: ClusterReader) -> None:
        """Read the reassignments in flight, and the names of the pending requests."""
        topics, requests = list_children(reader.client, [REASSIGNMENTS, REASSIGNMENT_REQUESTS])
        _read_children(reader, topics or ())
        _set_requests(reader.context, requests or ())

    def read_missed(self, reader: ClusterReader) -> None:
        """Read the names of the pending requests."""
        names = list_children(reader.client, [REASSIGNMENT_REQUESTS])[0]
        _set_requests(reader.context, names or ())

    def read_again(self, reader: ClusterReader, effects: Sequence[Planned]) -> None:
        """Read the records of partitions, or which requests there are."""
        reader.context.recording = None
        keys = list_partitions(effects)
        topics = sorted({topic for topic, _ in keys})
        reader.context.parents.difference_update(topics)
        found = fetch(reader.client, [f"{REASSIGNMENTS}/{topic}" for topic in topics])
        reader.context.parents.update(topic for topic, it in zip(topics, found, strict=True) if it)
        _refresh_children(reader, keys)
        make_requests = HealingWrite | TranslateEntries | WriteOldZnode | RecheckOldZnode
        if any(isinstance(effect, make_requests) for effect in effects):
            self.read_missed(reader)
        for effect in effects:
            if isinstance(effect, CreateReassignment | UpdateReassignment):
                _note_recorded(reader.context, effect)

    def note(self, reader: ClusterReader, kind: str, path: str) -> bool:
        """Note a request that has come or gone."""
        above, _, name = path.rpartition("/")
        if above == REASSIGNMENT_REQUESTS:
            reader.context.recording = None
            _note_request(reader.context, kind, name)
        return f"{path}/".startswith(f"{REASSIGNMENT_REQUESTS}/")

    def find_job(
        self, reader: ClusterReader, rules: Rules, clock_ms: Callable[[], int]
    ) -> Job | None:
        """Return the lowest request, where there is one."""
        if reader.context.queue_unread:
            self.read_missed(reader)
        if not reader.context.requests:
            return None
        name = reader.context.requests[0]
        return Job(f"request {name}", lambda: _plan_named_request(reader, name, rules))

    def resume(self, context: Context, rules: Rules) -> tuple[Step, ...]:
        """Return how far each reassignment has come."""
        plan = Plan(context, rules)
        for key in sorted(plan.context.partitions):
            _resume(plan, key)
        return tuple(plan.steps)

    def plan_drop(
        self, context: Context, key: PartitionKey, rules: Rules
    ) -> tuple[Step, ...] | None:
        """Return D1 to D4, None while there is no leader in sync."""
        plan = Plan(context, rules)
        waits = plan.readings.offline_drop != "as-written"
        if waits and _is_drop_held(plan.partition(key)):
            return None
        if plan.readings.drop_evaluated == "after-expansion":
            expand_assigned(plan, key)
        _drop(plan, key)
        return tuple(plan.steps)

    def list_dropped(self, content: PartitionContext, readings: Readings) -> ReplicaList:
        """Return what the drop rule names, while a change waits for it."""
        child, state = content.child, content.state
        if content.phase is not Phase.DROP or child is None or state is None:
            return ()
        return choose_drop(
            content.assigned, state.leader, state.isr, child.top, child.target, readings
        )

    def plan_end(self, context: Context, key: PartitionKey) -> tuple[Step, ...]:
        """Return the removal of the record."""
        version, alone = context.partitions[key].child_version, not context.has_other_children(key)
        point = "completion.child-deleted"
        return (DeleteReassignment(point=point, key=key, version=version, with_parent=alone),)


PLANNER = RequestPlanner()


# What is read -------------------------------------------------------------------------------------


def _note_request(context: Context, kind: str, name: str) -> None:
    requests = context.requests
    at = bisect_left(requests, _request_order(name), key=_request_order)
    known = requests[at : at + 1] == [name]
    if kind == EventType.CREATED and not known:
        requests.insert(at, name)
    elif kind == EventType.DELETED and known:
        del requests[at]


def _set_requests(context: Context, names: Iterable[str]) -> None:
    """Remember the pending requests: foreign names first, then by number."""
    context.queue_unread, context.recording = False, None
    context.requests = sorted(names, key=_request_order)


def _request_order(name: str) -> tuple[int, str]:
    """Order requests by number; ZooKeeper lists children in no particular order."""
    sequence = parse_request_name(name)
    return (-1 if sequence is None else sequence, name)


def _read_children(reader: ClusterReader, topics: Iterable[str]) -> None:
    """Read the reassignments in flight of these topics, foreign znodes included."""
    context, topics = reader.context, list(topics)
    context.parents = set(topics)
    context.crowded.clear()
    listed = list_children(reader.client, [f"{REASSIGNMENTS}/{topic}" for topic in topics])
    found: set[PartitionKey] = set()
    for topic, names in zip(topics, listed, strict=True):
        if topic not in context.numbers:
            reader.rubbish.append((f"{REASSIGNMENTS}/{topic}", "there is no such topic"))
            continue
        for name in names or ():
            key = reader.find_key(topic, name)
            if key is None:
                path = f"{REASSIGNMENTS}/{topic}/{name}"
                reader.rubbish.append((path, "there is no such partition"))
            else:
                found.add(key)
    stale = {key for key, content in context.partitions.items() if content.child is not None}
    _refresh_children(reader, sorted(found | stale))
    _take_empty_parents(reader)


def _take_empty_parents(reader: ClusterReader) -> None:
    """Note the znodes that are left without a reassignment once the foreign ones are gone."""
    context = reader.context
    flying = {key[0] for key, content in context.partitions.items() if content.child is not None}
    for topic in sorted((context.parents & context.numbers.keys()) - flying):
        context.parents.discard(topic)
        reader.rubbish.append((f"{REASSIGNMENTS}/{topic}", "no reassignment is in flight"))


def _refresh_children(reader: ClusterReader, keys: Iterable[PartitionKey]) -> None:
    """Read the reassignments in flight of these partitions."""
    keys = [key for key in keys if key in reader.context.partitions]
    found = fetch(reader.client, [reassignment_path(*key) for key in keys])
    for key, content in zip(keys, found, strict=True):
        _take_child(reader, key, content)


def _take_child(reader: ClusterReader, key: PartitionKey, content: Any) -> None:
    before = reader.context.partitions[key]
    after = replace(before, child=None, child_version=-1, phase=None)
    if content is not None:
        data, stat = content
        reader.context.parents.add(key[0])
        try:
            child = decode_reassignment(reassignment_path(*key), data)
        except BadZnode as bad:
            reader.rubbish.append((bad.path, bad.reason))
        else:
            # Another version is a change of ours of which we never learnt that it was carried out.
            known = before.phase if before.child_version == stat.version else Phase.DROP
            phase = Phase.EXPAND if before.child is None else known
            after = replace(before, child=child, child_version=stat.version, phase=phase)
    reader.context.put(key, after)


def _note_recorded(context: Context, effect: CreateReassignment | UpdateReassignment) -> None:
    """Find out whether a record was written of which we had no answer."""
    content = context.partitions.get(effect.key)
    before = effect.version if isinstance(effect, UpdateReassignment) else -1
    version, child = (-1, None) if content is None else (content.child_version, content.child)
    if version > before and child == effect.reassignment:
        context.note_taken(effect)


# Requests -----------------------------------------------------------------------------------------


def _plan_named_request(reader: ClusterReader, name: str, rules: Rules) -> tuple[Step, ...]:
    context, path = reader.context, f"{REASSIGNMENT_REQUESTS}/{name}"
    if parse_request_name(name) is None:
        what = "not the name of a request, which is request_ and ten digits"
        return plan_bad_request(RequestRead(path, -1), what)
    if context.recording is None or context.recording.read.path != path:
        found = gather([reader.client.get_async(path)])[0]
        if found is None:
            context.requests.remove(name)
            return ()
        read = RequestRead(path, found[1].version)
        try:
            request = decode_request(path, found[0])
        except BadZnode as bad:
            return plan_bad_request(read, bad.reason)
        reader.look_for_brokers(chain.from_iterable(request.assignments.values()))
        reader.catch_up(request.assignments)  # those that nobody knows are looked up once
        whole = rules.readings.request_conflict == "whole-request"
        context.recording = OpenRequest(read, request, [] if whole else sorted(request.assignments))
    return _plan_asked(reader, context.recording, rules)


def _plan_asked(reader: ClusterReader, asked: OpenRequest, rules: Rules) -> tuple[Step, ...]:
    """Return what records some partitions of a request more; all looked at, the end of it."""
    context, (read, request, left) = reader.context, asked
    while keys := left[:RECORDED_AT_ONCE]:
        some = replace(request, assignments={key: request.assignments[key] for key in keys})
        reader.catch_up(key for key in keys if key in context.partitions)
        steps = plan_request(context, read, some, rules)
        if not isinstance(steps[-1], DeleteRequest):
            reader.changed.update(keys)
            return steps
        del left[:RECORDED_AT_ONCE]
    reader.catch_up(request.assignments)
    reader.changed.update(request.assignments)
    return plan_request(context, read, request, rules)


def plan_request(
    context: Context, read: RequestRead, request: RequestZnode, rules: Rules
) -> tuple[Step, ...]:
    """Return the steps that record what a well-formed request asks for; all recorded, delete it.

    So it is planned twice: in between each partition is carried on with, by a plan of its own.

    Source: KIP-236, new znode protocol, step 3.
    """
    plan = Plan(context, rules)
    path = read.path
    delete = DeleteRequest(point="request.deleted", path=path, version=read.version)
    targets = request.assignments
    keys = [key for key in sorted(request.assignments) if context.taken.get(key) != read]
    reasons = {
        key: find_refusal(context, key, targets[key], rules.readings, legacy=request.legacy)
        for key in keys
    }
    whole = any(reasons.values()) and rules.readings.request_conflict == "whole-request"
    for key in keys:
        if whole or reasons[key] is not None:
            continue
        wanted = ReassignmentZnode(0, targets[key], request.legacy)
        _accept(plan, key, wanted, read)
    if plan.steps:
        return tuple(plan.steps)
    refused = {key: reason for key, reason in reasons.items() if reason is not None}
    plan.add(*warn_refused(path, refused, "the whole request is ignored" if whole else "ignored"))
    plan.add(delete)
    return tuple(plan.steps)


def plan_bad_request(read: RequestRead, reason: str) -> tuple[Step, ...]:
    """Return the steps that remove a request that makes no sense."""
    path = read.path
    return (
        Warn(path, f"{reason}; deleted"),
        DeleteRequest(point="request.deleted", path=path, version=read.version),
    )


def find_refusal(
    context: Context, key: PartitionKey, target: ReplicaList, readings: Readings, *, legacy: bool
) -> str | None:
    """Return why the partition's part of a request is refused, or None."""
    content = context.partitions.get(key)
    if content is None:
        return "there is no such topic or partition"
    if key[0] in context.deletions:
        return "the topic is to be deleted"
    reason = find_bad_target(context, target, readings)
    if reason is not None:
        return reason
    if content.child is not None and content.child.legacy != legacy:
        return "its legacy flag is not that of the reassignment in flight"
    minimum = context.get_settings(key[0]).min_insync
    if readings.target_size == "at-least-min-isr" and len(target) < minimum:
        return f"the target has {len(target)} replicas, min.insync.replicas is {minimum}"
    if content.child is not None or _asks_nothing(context, key, target, readings):
        return None
    if len(content.assigned) < minimum:
        return f"it has {len(content.assigned)} replicas, min.insync.replicas is {minimum}"
    return None


def _asks_nothing(
    context: Context,
    key: PartitionKey,
    target: ReplicaList,
    readings: Readings,
    request: RequestRead | None = None,
) -> bool:
    """Whether the target, as an ordered list, is what is being done or has been done.

    Where asking again is a restart, it still is for the request that was recorded already.
    """
    content = context.partitions[key]
    if content.child is None:
        return target == content.assigned
    taken = context.taken.get(key)
    again = readings.request_same_target == "restart" and (taken is None or taken != request)
    return target == content.child.target and not again


def _accept(
    plan: Plan, key: PartitionKey, wanted: ReassignmentZnode, request: RequestRead | None
) -> None:
    """Add E1: the child znode that records the reassignment."""
    content = plan.partition(key)
    if _asks_nothing(plan.context, key, wanted.target, plan.readings, request):
        return
    if content.child is None:
        plan.add(
            CreateReassignment(
                point="request.child-written",
                key=key,
                reassignment=replace(wanted, top=len(content.assigned)),
                with_parent=key[0] not in plan.context.parents,
                request=request,
            )
        )
        if plan.readings.drop_evaluated == "after-expansion":
            # The text evaluates the drop at the first request too; before the expansion in vain.
            plan.enter(key, Phase.DROP)
        return
    each = plan.readings.top_recorded == "each-change"
    top = len(content.assigned) if each else content.child.top
    plan.add(
        UpdateReassignment(
            point="change.child-written",
            key=key,
            reassignment=replace(wanted, top=top),
            version=content.child_version,
            request=request,
        )
    )


# Changes of a target ------------------------------------------------------------------------------


def choose_drop(
    assigned: Sequence[int],
    leader: int,
    isr: Sequence[int],
    top: int,
    target: Sequence[int],
    readings: Readings,
) -> ReplicaList:
    """Return the assigned replicas to drop, in assigned order.

    `assigned` is the list that the reading `drop.evaluated` asks for; the caller chooses it.
    Source: KIP-236, drop rule, step 2.

    >>> choose_drop((1, 2, 3, 4), 1, (1, 4), 2, (5,), Readings())
    (2, 3)
    """
    if readings.offline_drop == "skip" and (leader == NO_LEADER or leader not in isr):
        return ()
    # A dict keeps the first occurrence of each id and the order. A leader of -1 takes a place, as
    # the text has it; reading offline.drop=skip is the amendment that avoids it.
    ranked = list(dict.fromkeys((leader, *isr, *assigned)))
    keep = top if readings.drop_slice == "inclusive" else max(top - 1, 0)
    kept = set(ranked[:keep])
    if readings.drop_protects == "target":
        kept.update(target)
    return tuple(replica for replica in assigned if replica not in kept)


def _is_drop_held(content: PartitionContext) -> bool:
    """Whether the drop of a change waits, and the expansion with it, for a leader in sync.

    The drop rule keeps enough in-sync replicas only because the leader is one of them and comes
    first; without it the rule can name the last in-sync copy.
    """
    child, state = content.child, content.state
    if child is None or len(content.assigned) <= child.top:
        return False
    return state is None or state.leader not in state.isr


def _drop(plan: Plan, key: PartitionKey) -> None:
    """Add D1 to D4."""
    content = plan.partition(key)
    child, state = content.child, content.state
    assert child is not None
    readings = plan.readings
    as_written = readings.offline_drop == "as-written"
    if state is None or (state.leader not in state.isr and not as_written):
        return
    leader, isr = state.leader, state.isr
    drop = choose_drop(content.assigned, leader, isr, child.top, child.target, readings)
    if not drop:
        # What was not to be dropped when this was planned may be by the time of the record.
        plan.recheck_state(key)
        return
    rest = tuple(replica for replica in content.assigned if replica not in drop)
    plan.stop(key, "change.replicas-stopped", drop, delete=False)
    # With the exclusive slice the rule can drop every replica; the set is never written empty.
    kept = tuple(replica for replica in isr if replica not in drop) or isr
    # Also where nobody in sync goes: one that had caught up before it was stopped may be in
    # sync by now, and the leader may not take it in when its log is gone.
    plan.write_state(key, "change.isr-shrunk", leader=leader, isr=kept)
    plan.send(key, "change.isr-sent", rest, replicas=rest)
    plan.stop(key, "change.replicas-deleted", drop, delete=True)
    plan.write_assigned(key, "change.replicas-dropped", rest, guard_state=True)


def _resume(plan: Plan, key: PartitionKey) -> None:
    """Note how far a reassignment found at failover has come."""
    content = plan.partition(key)
    child = content.child
    if child is None or content.phase is None:
        return
    again = plan.readings.drop_reevaluated_on_failover == "yes"
    if again or _is_change_unfinished(content):
        plan.enter(key, Phase.DROP)
    elif is_in_sync(content, child.target) and set(child.target) <= set(content.assigned):
        # Everything up to E4 was done before: the target could not be in sync otherwise.
        plan.enter(key, Phase.WAIT)


def _is_change_unfinished(content: PartitionContext) -> bool:
    """Whether the last controller recorded a change and did not come to its drop.

    The drop comes before the expansion. It is also due where more replicas are assigned than any
    drop that was carried out would have left.
    """
    child = content.child
    if child is None or len(content.assigned) <= child.top:
        return False
    missing = not set(child.target) <= set(content.assigned)
    return missing or len(content.assigned) > child.top + len(child.target)
