"""What to do, as pure functions from the controller's memory to a tuple of steps.

Nothing here touches ZooKeeper. Every function works on a fork of the context: each step is added
and applied to the fork, so that a later write is made from what the earlier ones will have left.
All of them look at the state they find rather than at what happened before. So the answer to a
version conflict, to an indefinite outcome and to a failover is always the same: read again, plan
again, and the plan that comes out carries on where the old one stopped.

The order of effects for one partition of a request:

    new reassignment                      change in flight
    E1 create the child znode             E1 set the child's data, top as it was
                                          D1 stop the replicas that are dropped
                                          D2 raise the epoch, in sync without them, tell the rest
                                          D3 delete them, if the state is still as it was
                                          D4 take them out of the assignment
    E2 add the target to the assignment   E2
    E3 raise the leader epoch             E3
    E4 send leader and ISR to all         E4

and, once every replica of the target is in sync:

    C1 elect a leader inside the target, or raise the epoch of the one there is; tell the target
    C2 for each old replica: stop it, then take it out of the in-sync set
    C3 delete the old replicas
    C4 write the target as the assignment
    C5 delete the child znode

A change waits before D1 while the partition has no leader in sync, because the drop rule could then
name the last copy that is. A failover carries a drop out only where the last controller recorded a
change and cannot have come to its drop; otherwise it resumes at E2.

The child is written before anything else, because it alone records `top`; it is deleted last,
because it alone says that there is work left; the request is deleted once all its partitions have
come to E4. From E2 on each partition has plans of its own: a conflict in one plans nothing anew for
others. The sequence C1 to C5 may be cut and begun again at any point.
"""

from collections.abc import Iterable
from dataclasses import replace

from reassure_controller.context import Context, PartitionContext, apply_step
from reassure_controller.effects import (
    CreatePartitionState,
    CreateReassignment,
    DeleteReassignment,
    DeleteRequest,
    DeleteZnode,
    EnterPhase,
    Phase,
    Recheck,
    RecheckOldZnode,
    RequestRead,
    SendLeaderAndIsr,
    SendStopReplica,
    Step,
    UpdateReassignment,
    Warn,
    WriteAssigned,
    WriteState,
)
from reassure_controller.protocols.kafka_42 import (
    Listener,
    find_nearly_done,
    is_over,
    list_started,
    plan_end,
    plan_listener,
)
from reassure_controller.protocols.kip_46 import Healer, plan_healing
from reassure_controller.protocols.kip_236 import choose_drop
from reassure_controller.protocols.kip_236_legacy import plan_entries, plan_entry_done
from reassure_controller.rules import Rules
from reassure_spec.znodes import (
    NO_LEADER,
    PartitionKey,
    ReassignmentZnode,
    ReplicaList,
    RequestZnode,
    StateZnode,
)


class Plan:
    """Steps so far and the context as it will be after them."""

    def __init__(self, context: Context, rules: Rules) -> None:
        self.context = context.fork()
        self.readings = rules.readings
        self.rules = rules
        self.steps: list[Step] = []

    def add(self, *steps: Step) -> None:
        """Add steps, each on top of what the ones before will have left."""
        for step in steps:
            self.steps.append(step)
            apply_step(self.context, step)

    def partition(self, key: PartitionKey) -> PartitionContext:
        """Return what there is of a partition after the steps so far."""
        return self.context.partitions[key]

    def live(self, replicas: Iterable[int]) -> ReplicaList:
        """Return those that are registered, in their order."""
        return tuple(replica for replica in replicas if self.context.is_live(replica))

    def enter(self, key: PartitionKey, phase: Phase | None) -> None:
        """Note how far the partition has come, where that is news."""
        if self.partition(key).phase is not phase:
            self.add(EnterPhase(*key, phase))

    def write_state(
        self,
        key: PartitionKey,
        point: str,
        *,
        leader: int,
        isr: ReplicaList,
    ) -> None:
        """Add a state write; the leader epoch goes up with every one of them."""
        content = self.partition(key)
        assert content.state is not None
        leader_epoch = content.state.leader_epoch + 1
        state = StateZnode(
            leader=leader,
            leader_epoch=leader_epoch,
            controller_epoch=self.context.epoch,
            isr=isr,
        )
        version = content.state_version
        topic, partition = key
        self.add(
            WriteState(point=point, topic=topic, partition=partition, state=state, version=version)
        )

    def write_assigned(
        self, key: PartitionKey, point: str, assigned: ReplicaList, *, guard_state: bool = False
    ) -> None:
        """Add a write of the assignment; `guard_state` makes it conditional on the state too."""
        content = self.partition(key)
        guarded = guard_state and content.state is not None
        topic, partition = key
        self.add(
            WriteAssigned(
                point=point,
                topic=topic,
                partition=partition,
                assigned=assigned,
                version=self.context.topic_versions[topic],
                state_version=content.state_version if guarded else None,
            )
        )

    def recheck(self, key: PartitionKey) -> None:
        """Where the reading asks for it, look at leader and in-sync set again before a stop."""
        asked = self.readings.move_recheck_before_stop == "yes"
        state = self.partition(key).state
        if asked and state is not None:
            self.recheck_state(key, state.leader)

    def recheck_state(self, key: PartitionKey, leader: int | None = None) -> None:
        """Look at the in-sync set again, and at whether the leader is alive where one is named."""
        self.add(Recheck(*key, self.partition(key).state_version, leader))

    def send(
        self,
        key: PartitionKey,
        point: str,
        to: ReplicaList,
        *,
        replicas: ReplicaList | None = None,
        new: Iterable[int] = (),
    ) -> None:
        """Add LeaderAndIsr to the live ones of `to`, when the partition has a state to tell."""
        content = self.partition(key)
        to = self.live(to)
        if content.state is None or not to:
            return
        topic, partition = key
        told = content.hosts if replicas is None else replicas
        self.add(
            SendLeaderAndIsr(
                point=point,
                topic=topic,
                partition=partition,
                to=to,
                replicas=told,
                new=frozenset(new),
            )
        )

    def stop(self, key: PartitionKey, point: str, to: ReplicaList, *, delete: bool) -> None:
        """Add StopReplica to `to`; a broker that is down is told when it returns."""
        topic, partition = key
        self.add(
            SendStopReplica(point=point, topic=topic, partition=partition, to=to, delete=delete)
        )


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
    keys = [key for key in sorted(request.assignments) if context.taken.get(key) != read]
    reasons = {
        key: _find_refusal(plan, key, request.assignments[key], legacy=request.legacy)
        for key in keys
    }
    whole = any(reasons.values()) and rules.readings.request_conflict == "whole-request"
    warnings: list[Warn] = []
    for key in keys:
        target, reason = request.assignments[key], reasons[key]
        if reason is None and whole:
            reason = "another partition of the request is refused"
        if reason is not None:
            warnings.append(Warn(path, f"partition {key[0]}-{key[1]}: {reason}; ignored"))
            continue
        wanted = ReassignmentZnode(0, target, request.legacy)
        _accept(plan, key, wanted, read)
    if plan.steps:
        return tuple(plan.steps)
    plan.add(*warnings)
    plan.add(delete)
    return tuple(plan.steps)


def plan_old_znode(context: Context, rules: Rules) -> tuple[Step, ...]:
    """Return what there is to do about the old znode's entries, by the protocol of the profile."""
    if rules.keeps_records:
        return plan_entries(context, rules.readings)
    plan = Plan(context, rules)
    listener = Listener(rules.readings, lambda target: _find_bad_target(plan, target))
    return plan_listener(context, listener)


def plan_health(context: Context, now_ms: int, rules: Rules) -> tuple[Step, ...]:
    """Return what healing does next, none where nothing is due or it is left to operators."""
    if not rules.heals:
        return ()
    plan = Plan(context, rules)

    def is_refused(key: PartitionKey, target: ReplicaList) -> bool:
        return _find_refusal(plan, key, target, legacy=False) is not None

    healer = Healer(rules.healing, rules.readings, is_refused)
    return plan_healing(context, now_ms, healer)


def plan_bad_request(
    context: Context, read: RequestRead, reason: str, rules: Rules
) -> tuple[Step, ...]:
    """Return the steps that remove a request that makes no sense."""
    plan = Plan(context, rules)
    path = read.path
    plan.add(Warn(path, f"{reason}; deleted"))
    plan.add(DeleteRequest(point="request.deleted", path=path, version=read.version))
    return tuple(plan.steps)


def plan_rubbish(rubbish: Iterable[tuple[str, str]]) -> tuple[Step, ...]:
    """Return the steps that remove znodes which are not ours: (path, reason) each."""
    steps: list[Step] = []
    for path, reason in rubbish:
        steps.append(Warn(path, f"{reason}; deleted"))
        steps.append(DeleteZnode(point="admin.foreign-deleted", path=path))
    return tuple(steps)


def _conflicts(plan: Plan, key: PartitionKey, legacy: bool) -> bool:
    content = plan.context.partitions.get(key)
    return content is not None and content.child is not None and content.child.legacy != legacy


def _find_refusal(
    plan: Plan, key: PartitionKey, target: ReplicaList, *, legacy: bool
) -> str | None:
    """Return why the partition's part of a request is refused, or None."""
    content = plan.context.partitions.get(key)
    if content is None:
        return "there is no such topic or partition"
    if key[0] in plan.context.deletions:
        return "the topic is to be deleted"
    reason = _find_bad_target(plan, target)
    if reason is not None:
        return reason
    if _conflicts(plan, key, legacy):
        return "its legacy flag is not that of the reassignment in flight"
    minimum = plan.context.get_settings(key[0]).min_insync
    if plan.readings.target_size == "at-least-min-isr" and len(target) < minimum:
        return f"the target has {len(target)} replicas, min.insync.replicas is {minimum}"
    if content.child is not None or _asks_nothing(plan, key, target):
        return None
    if len(content.assigned) < minimum:
        return f"it has {len(content.assigned)} replicas, min.insync.replicas is {minimum}"
    return None


def _find_bad_target(plan: Plan, target: ReplicaList) -> str | None:
    """Return what is wrong with the target by itself, or None."""
    if not target:
        return "the target is empty"
    if len(set(target)) < len(target):
        return f"the target {list(target)} names a broker twice"
    if target and min(target) < 0:
        return f"the target {list(target)} has a negative broker id"
    unknown = [broker for broker in target if broker not in plan.context.known_brokers]
    if unknown and plan.readings.target_unknown_broker == "refuse":
        return f"broker {unknown[0]} was never registered"
    dead = [broker for broker in target if not plan.context.is_live(broker)]
    refuses = plan.readings.target_dead_replica == "refuse"
    if dead and refuses:
        return f"broker {dead[0]} is down"
    return None


def _asks_nothing(
    plan: Plan, key: PartitionKey, target: ReplicaList, request: RequestRead | None = None
) -> bool:
    """Whether the target, as an ordered list, is what is being done or has been done.

    Where asking again is a restart, it still is for the request that was recorded already.
    """
    content = plan.partition(key)
    if content.child is None:
        return target == content.assigned
    restarts = plan.readings.request_same_target == "restart"
    taken = plan.context.taken.get(key)
    again = restarts and (taken is None or taken != request)
    return target == content.child.target and not again


def _accept(
    plan: Plan, key: PartitionKey, wanted: ReassignmentZnode, request: RequestRead | None
) -> None:
    """Add E1: the child znode that records the reassignment."""
    content = plan.partition(key)
    if _asks_nothing(plan, key, wanted.target, request):
        return
    topic, partition = key
    if content.child is None:
        plan.add(
            CreateReassignment(
                point="request.child-written",
                topic=topic,
                partition=partition,
                reassignment=replace(wanted, top=len(content.assigned)),
                with_parent=topic not in plan.context.parents,
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
            topic=topic,
            partition=partition,
            reassignment=replace(wanted, top=top),
            version=content.child_version,
            request=request,
        )
    )


def plan_change(context: Context, key: PartitionKey, rules: Rules) -> tuple[Step, ...]:
    """Return the steps that carry a reassignment on, from the phase it is in."""
    plan = Plan(context, rules)
    _advance(plan, key)
    return tuple(plan.steps)


def _is_drop_held(content: PartitionContext) -> bool:
    """Whether the drop of a change waits, and the expansion with it, for a leader in sync.

    The drop rule keeps enough in-sync replicas only because the leader is one of them and comes
    first; without it the rule can name the last in-sync copy.
    """
    child, state = content.child, content.state
    if child is None or len(content.assigned) <= child.top:
        return False
    return state is None or state.leader not in state.isr


def _advance(plan: Plan, key: PartitionKey) -> None:
    if plan.partition(key).phase is Phase.DROP:
        waits = plan.readings.offline_drop != "as-written"
        if waits and _is_drop_held(plan.partition(key)):
            return
        if plan.readings.drop_evaluated == "after-expansion":
            _expand_assigned(plan, key)
        _drop(plan, key)
        # A late drop takes out again whatever of the target was not in sync: it is added once more.
        plan.enter(key, Phase.EXPAND)
    unassigned = plan.readings.move_expand_first == "no"
    if unassigned and plan.partition(key).state is None:
        return  # who is not assigned is told nothing when the partition gets its first leader
    if plan.partition(key).phase is Phase.EXPAND:
        added = _expand_assigned(plan, key)
        _start_replicas(plan, key, new=added)
        state = plan.partition(key).state
        # Who stayed in sync without being assigned (`move.cut-isr=no`) may lead from here on.
        if (
            state is not None
            and not plan.context.is_live(state.leader)
            and set(added) & {*state.isr}
        ):
            # They were started one line above, and no assignment names them.
            hosts = (*plan.partition(key).assigned, *added)
            _elect_offline(plan, key, tuple(dict.fromkeys(hosts)))
        plan.enter(key, Phase.WAIT)
    if plan.partition(key).phase is Phase.WAIT:
        _complete(plan, key)


def _drop(plan: Plan, key: PartitionKey) -> None:
    """Add D1 to D4."""
    content = plan.partition(key)
    child, state = content.child, content.state
    assert child is not None
    readings = plan.readings
    if state is None:
        return
    if state.leader not in state.isr and readings.offline_drop != "as-written":
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


def _expand_assigned(plan: Plan, key: PartitionKey) -> ReplicaList:
    """Add E2 and return the replicas it adds."""
    content = plan.partition(key)
    assert content.child is not None
    added = tuple(replica for replica in content.child.target if replica not in content.assigned)
    if added and plan.readings.move_expand_first == "yes":
        plan.write_assigned(key, "request.assigned-expanded", content.assigned + added)
    return added


def _start_replicas(plan: Plan, key: PartitionKey, new: ReplicaList) -> None:
    """Add E3 and E4; a partition that was never online has no epoch to raise, and may be now."""
    content = plan.partition(key)
    if content.state is None:
        _bring_online(plan, key)
        return
    state = content.state
    plan.write_state(key, "request.epoch-raised", leader=state.leader, isr=state.isr)
    hosts = tuple(dict.fromkeys((*content.assigned, *new)))
    plan.send(key, "request.replicas-started", hosts, replicas=hosts, new=new)


def _is_in_sync(content: PartitionContext) -> bool:
    """Whether every replica of the target is in sync."""
    if content.state is None or content.child is None:
        return False
    return set(content.child.target) <= set(content.state.isr)


def _complete(plan: Plan, key: PartitionKey) -> None:
    content = plan.partition(key)
    state, child = content.state, content.child
    if state is None or child is None:
        return
    if not plan.rules.keeps_records and is_over(plan.context, key, child.target):
        plan.add(*plan_end(plan.context, key))
        return
    if not _is_in_sync(content):
        return
    leader = _choose_leader(plan, state, child.target)
    if leader is None:
        return
    _move_leader(plan, key, child.target, leader)
    _stop_old(plan, key, content, child.target)
    _write_target(plan, key, child.target)
    _finish(plan, key)


def _choose_leader(plan: Plan, state: StateZnode, target: ReplicaList) -> int | None:
    """Return the leader inside the target for C1, or None when there is no candidate."""
    if state.leader in target and plan.context.is_live(state.leader):
        return state.leader
    return next((one for one in plan.live(target) if one in state.isr), None)


def _move_leader(plan: Plan, key: PartitionKey, target: ReplicaList, leader: int) -> None:
    """Add C1. The epoch goes up even where the leader stays, so that it learns the assignment."""
    state = plan.partition(key).state
    assert state is not None
    moved = leader != state.leader
    point = "completion.leader-moved" if moved else "completion.epoch-raised"
    plan.write_state(key, point, leader=leader, isr=state.isr)
    plan.send(key, "completion.leader-sent", target, replicas=target)


def _stop_old(
    plan: Plan, key: PartitionKey, content: PartitionContext, target: ReplicaList
) -> None:
    """Add C2 and C3 for every replica that is assigned or in sync but not of the target."""
    assert content.state is not None
    # A replica that a leader took into the ISR while it was being dropped is in no assignment;
    # it would stay in the ISR for ever if only assigned replicas were looked at.
    present = dict.fromkeys((*content.assigned, *content.state.isr))
    old = tuple(replica for replica in present if replica not in target)
    for replica in old:
        plan.recheck(key)
        plan.stop(key, "completion.replica-stopped", (replica,), delete=False)
        state = plan.partition(key).state
        assert state is not None
        if replica not in state.isr or plan.readings.move_cut_isr == "no":
            continue
        shrink(plan, key, replica, "completion.isr-shrunk")
        plan.send(key, "completion.isr-sent", target, replicas=target)
    if old:
        plan.recheck(key)
        plan.stop(key, "completion.replicas-deleted", old, delete=True)


def shrink(plan: Plan, key: PartitionKey, replica: int, point: str) -> None:
    """Add the write that takes one replica out of the ISR; the last one stays (KAFKA-5083)."""
    state = plan.partition(key).state
    assert state is not None
    isr = tuple(other for other in state.isr if other != replica) or state.isr
    leader = NO_LEADER if state.leader == replica else state.leader
    plan.write_state(key, point, leader=leader, isr=isr)


def _write_target(plan: Plan, key: PartitionKey, target: ReplicaList) -> None:
    """Add C4 unless the assignment already is the target."""
    if plan.partition(key).assigned != target:
        again = plan.readings.move_recheck_before_stop == "yes"
        plan.write_assigned(key, "completion.target-assigned", target, guard_state=again)


def _finish(plan: Plan, key: PartitionKey) -> None:
    """Add C5, or what stands for it where nothing records a reassignment."""
    if not plan.rules.keeps_records:
        plan.add(*plan_end(plan.context, key))
        return
    topic, partition = key
    _remove_entry(plan, key)
    plan.add(
        DeleteReassignment(
            point="completion.child-deleted",
            topic=topic,
            partition=partition,
            version=plan.partition(key).child_version,
            with_parent=not plan.context.has_other_children(key),
        )
    )


def _remove_entry(plan: Plan, key: PartitionKey) -> None:
    """Take the entry of a complete reassignment out of the old znode, before its record."""
    child = plan.partition(key).child
    if not plan.rules.reads_old_znode or child is None or not child.legacy:
        return
    entry_done = plan_entry_done(plan.context, key, child.target)
    # One that a client has deleted and made anew may have the version that was read.
    plan.add(RecheckOldZnode(), *entry_done, RecheckOldZnode())


def tell_untold(context: Context, steps: tuple[Step, ...], rules: Rules) -> tuple[Step, ...]:
    """Return the steps, and before them what tells brokers of a write that nobody answered.

    It may have been carried out: then the steps find nothing left to write, and tell nobody.
    """
    if not context.untold:
        return steps
    plan = Plan(context, rules)
    told = {(one.key, to) for one in steps if isinstance(one, SendLeaderAndIsr) for to in one.to}
    for key in _list_kept(plan, context.untold & context.partitions.keys()):
        hosts = plan.partition(key).hosts
        plan.send(key, "partition.state-sent", tuple(r for r in hosts if (key, r) not in told))
    return (*plan.steps, *steps)


def plan_new_partitions(
    context: Context, keys: Iterable[PartitionKey], rules: Rules
) -> tuple[Step, ...]:
    """Return the steps that bring partitions without a state online, where a replica lives."""
    plan = Plan(context, rules)
    for key in _list_kept(plan, keys):
        repair(plan, key)
    return tuple(plan.steps)


def _list_kept(plan: Plan, keys: Iterable[PartitionKey]) -> list[PartitionKey]:
    """Return those of a topic that stays; of one that is to be deleted nobody starts a replica."""
    return [key for key in sorted(keys) if not plan.context.is_ending(key[0])]


def plan_broker_failure(
    context: Context, keys: Iterable[PartitionKey], rules: Rules
) -> tuple[Step, ...]:
    """Return the steps after brokers died; `keys` are the partitions that had replicas there.

    Or are offline, and may have a leader now that settings have changed. The context no longer has
    the dead brokers.
    """
    plan = Plan(context, rules)
    for key in _list_kept(plan, keys):
        repair(plan, key)
    return tuple(plan.steps)


def plan_broker_start(
    context: Context, brokers: Iterable[int], keys: Iterable[PartitionKey], rules: Rules
) -> tuple[Step, ...]:
    """Return the steps after brokers returned; `keys` are the partitions with replicas there."""
    plan = Plan(context, rules)
    returned = set(brokers)
    for key in _list_kept(plan, keys):
        if not repair(plan, key):
            to = tuple(one for one in plan.partition(key).hosts if one in returned)
            plan.send(key, "broker.state-sent", to)
    return tuple(plan.steps)


def plan_failover(context: Context, rules: Rules) -> tuple[Step, ...]:
    """Return the steps of a controller that was just elected, before it looks at requests.

    Partitions are repaired first, so that a reassignment is resumed with a leader. Brokers are told
    the state of every partition, because the last controller may have died before it told them.
    """
    plan = Plan(context, rules)
    if not rules.keeps_records:
        for move in find_nearly_done(plan.context, rules.readings):
            key = (move.topic, move.partition)
            plan.add(move)
            plan.enter(key, Phase.WAIT)
            _complete(plan, key)
    for key in _list_kept(plan, plan.context.partitions):
        if not repair(plan, key):
            plan.send(key, "failover.state-sent", plan.partition(key).hosts)
    for key in sorted(plan.context.partitions):
        _resume(plan, key)
    return tuple(plan.steps)


def _resume(plan: Plan, key: PartitionKey) -> None:
    """Note how far a reassignment found at failover has come."""
    content = plan.partition(key)
    child = content.child
    if child is None or content.phase is None:
        return
    again = plan.readings.drop_reevaluated_on_failover == "yes"
    if again or _is_change_unfinished(content):
        plan.enter(key, Phase.DROP)
    elif _is_in_sync(content) and set(child.target) <= set(content.assigned):
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


def repair(plan: Plan, key: PartitionKey) -> bool:
    """Add what the partition needs for its dead replicas; return whether anything was added."""
    before = len(plan.steps)
    content = plan.partition(key)
    if content.state is None:
        _bring_online(plan, key)
    elif not plan.context.is_live(content.state.leader):
        _elect_offline(plan, key)
    else:
        _remove_dead(plan, key)
    return len(plan.steps) > before


def _bring_online(plan: Plan, key: PartitionKey) -> None:
    live = plan.live(plan.partition(key).assigned)
    if not live:
        return
    topic, partition = key
    leader = live[0]
    state = StateZnode(
        leader=leader,
        leader_epoch=0,
        controller_epoch=plan.context.epoch,
        isr=live,
    )
    plan.add(
        CreatePartitionState(
            point="partition.online",
            topic=topic,
            partition=partition,
            state=state,
            missing=plan.context.missing_directories(key),
        )
    )
    plan.send(key, "partition.state-sent", live, new=live)


def _elect_offline(plan: Plan, key: PartitionKey, hosts: ReplicaList | None = None) -> None:
    """Elect the first assigned replica that lives and is in sync, or note that there is none.

    `hosts` are told, without it those that the partition says were started.

    Where there is none the in-sync set stays as it is stored: it names the replicas that may lead.
    Kafka's own controllers take the leader that is lost out of it, unless it is the last one there.
    """
    content = plan.partition(key)
    state = content.state
    assert state is not None
    live_isr = plan.live(state.isr)
    started = () if plan.rules.keeps_records else list_started(plan.context, key)
    outside = (one for one in state.isr if one in started)  # in no assignment that could order them
    candidates = plan.live((*content.assigned, *outside))
    candidates = tuple(one for one in candidates if one in state.isr)
    unclean = plan.readings.election_unclean == "last-resort"
    if not candidates and (unclean or plan.context.get_settings(key[0]).unclean):
        candidates = live_isr = plan.live(content.assigned)[:1]
    if candidates:
        live_isr = live_isr or candidates[:1]
        plan.write_state(key, "partition.leader-elected", leader=candidates[0], isr=live_isr)
    elif state.leader != NO_LEADER:
        isr = state.isr
        if not plan.rules.keeps_records:
            isr = tuple(one for one in isr if one != state.leader) or isr
        plan.write_state(key, "partition.leader-lost", leader=NO_LEADER, isr=isr)
    else:
        return
    hosts = content.hosts if hosts is None else hosts
    plan.send(key, "partition.state-sent", hosts, replicas=hosts)


def _remove_dead(plan: Plan, key: PartitionKey) -> None:
    """Take the dead replicas out of the ISR of a partition whose leader lives, one write each."""
    content = plan.partition(key)
    assert content.state is not None
    dead = tuple(one for one in content.state.isr if not plan.context.is_live(one))
    for replica in dead:
        shrink(plan, key, replica, "partition.isr-shrunk")
    if dead:
        plan.send(key, "partition.state-sent", content.hosts)
