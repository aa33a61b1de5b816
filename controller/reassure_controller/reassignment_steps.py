"""How a reassignment is carried out, from the write that begins it to its end.

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

What records a reassignment, takes replicas out again and ends it is said by planners (`rules`).
"""

from collections.abc import Iterable

from reassure_controller.context import Context, PartitionContext
from reassure_controller.effects import Phase, Step
from reassure_controller.plan import Plan, shrink
from reassure_controller.repairs import bring_online, elect_offline, list_kept, repair
from reassure_controller.rules import Rules
from reassure_spec.znodes import PartitionKey, ReplicaList, StateZnode


def plan_changes(context: Context, keys: Iterable[PartitionKey], rules: Rules) -> tuple[Step, ...]:
    """Return the steps that carry reassignments on, each from the phase it is in."""
    plan = Plan(context, rules)
    for key in keys:
        _advance(plan, key)
    return tuple(plan.steps)


def _advance(plan: Plan, key: PartitionKey) -> None:
    if plan.partition(key).phase is Phase.DROP:
        for planner in plan.rules.planners:
            drop = planner.plan_drop(plan.context, key, plan.rules)
            if drop is None:
                return
            plan.add(*drop)
        # A late drop takes out again whatever of the target was not in sync: it is added once more.
        plan.enter(key, Phase.EXPAND)
    unassigned = plan.readings.move_expand_first == "no"
    if unassigned and plan.partition(key).state is None:
        return  # who is not assigned is told nothing when the partition gets its first leader
    if plan.partition(key).phase is Phase.EXPAND:
        added = expand_assigned(plan, key)
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
            elect_offline(plan, key, tuple(dict.fromkeys(hosts)))
        plan.enter(key, Phase.WAIT)
    if plan.partition(key).phase is Phase.WAIT:
        _complete(plan, key)


def expand_assigned(plan: Plan, key: PartitionKey) -> ReplicaList:
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
        bring_online(plan, key)
        return
    state = content.state
    plan.write_state(key, "request.epoch-raised", leader=state.leader, isr=state.isr)
    hosts = tuple(dict.fromkeys((*content.assigned, *new)))
    # One that is not assigned may have got in sync already, under an earlier controller.
    started = tuple(one for one in new if one not in state.isr)
    plan.send(key, "request.replicas-started", hosts, replicas=hosts, new=started)


def is_in_sync(content: PartitionContext, target: ReplicaList) -> bool:
    """Whether every replica of a target is in sync."""
    return content.state is not None and set(target) <= set(content.state.isr)


def _complete(plan: Plan, key: PartitionKey) -> None:
    content = plan.partition(key)
    state, child = content.state, content.child
    if state is None or child is None:
        return
    if any(each.is_over(plan.context, key, child.target) for each in plan.rules.planners):
        _finish(plan, key)
        return
    if not is_in_sync(content, child.target):
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


def _write_target(plan: Plan, key: PartitionKey, target: ReplicaList) -> None:
    """Add C4 unless the assignment already is the target."""
    if plan.partition(key).assigned != target:
        again = plan.readings.move_recheck_before_stop == "yes"
        plan.write_assigned(key, "completion.target-assigned", target, guard_state=again)


def _finish(plan: Plan, key: PartitionKey) -> None:
    """Add C5: what asked for a reassignment goes before what records it."""
    for planner in reversed(plan.rules.planners):
        plan.add(*planner.plan_end(plan.context, key))


def plan_failover(context: Context, rules: Rules) -> tuple[Step, ...]:
    """Return the steps of a controller that was just elected, before it looks at requests.

    Partitions are repaired first, so that a reassignment is resumed with a leader. Brokers are told
    the state of every partition, because the last controller may have died before it told them.
    """
    plan = Plan(context, rules)
    for move in (step for each in rules.planners for step in each.take_up(plan.context, rules)):
        plan.add(move)
        plan.enter(move.key, Phase.WAIT)
        _complete(plan, move.key)
    for key in list_kept(plan, plan.context.partitions):
        if not repair(plan, key):
            plan.send(key, "failover.state-sent", plan.partition(key).hosts)
    for planner in rules.planners:
        plan.add(*planner.resume(plan.context, rules))
    return tuple(plan.steps)
