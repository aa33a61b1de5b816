"""Leaders for partitions: the first one, another one when brokers die, and who is told of them.

Every function returns what the state that it finds asks for, and not what happened before.
"""

from collections import defaultdict
from collections.abc import Iterable

from reassure_controller.context import Context
from reassure_controller.effects import CreatePartitionState, Order, SendLeaderAndIsr, Step
from reassure_controller.plan import Plan, shrink
from reassure_controller.rules import Rules
from reassure_spec.znodes import NO_LEADER, PartitionKey, ReplicaList, StateZnode


def tell_untold(context: Context, steps: tuple[Step, ...], rules: Rules) -> tuple[Step, ...]:
    """Return the steps, and before them what tells brokers of a write that nobody answered.

    It may have been carried out: then the steps find nothing left to write, and tell nobody.
    """
    if not context.untold:
        return steps
    plan = Plan(context, rules)
    told = {(one.key, to) for one in steps if isinstance(one, SendLeaderAndIsr) for to in one.to}
    for key in list_kept(plan, context.untold & context.partitions.keys()):
        hosts = plan.partition(key).hosts
        plan.send(key, "partition.state-sent", tuple(r for r in hosts if (key, r) not in told))
    return (*plan.steps, *steps)


def list_kept(plan: Plan, keys: Iterable[PartitionKey]) -> list[PartitionKey]:
    """Return those of a topic that stays; of one that is to be deleted nobody starts a replica."""
    return [key for key in sorted(keys) if not plan.context.is_ending(key[0])]


def plan_repair(context: Context, keys: Iterable[PartitionKey], rules: Rules) -> tuple[Step, ...]:
    """Return the steps that give partitions leaders, and take dead replicas out of in-sync sets.

    `keys` are those that had replicas where brokers died, that are new, or that are offline and may
    have a leader now that settings have changed. The context no longer has the dead brokers.
    """
    plan = Plan(context, rules)
    for key in list_kept(plan, keys):
        repair(plan, key)
    return tuple(plan.steps)


def plan_telling(context: Context, orders: Iterable[Order], rules: Rules) -> tuple[Step, ...]:
    """Return the steps that tell brokers what they are to know of partitions by now."""
    plan = Plan(context, rules)
    brokers: defaultdict[PartitionKey, set[int]] = defaultdict(set)
    for broker, key in orders:
        brokers[key].add(broker)
    for key in list_kept(plan, brokers):
        if not repair(plan, key):
            tell_state(plan, key, brokers[key])
        tell_gone(plan, key, brokers[key])
    return tuple(plan.steps)


def tell_state(plan: Plan, key: PartitionKey, brokers: set[int]) -> None:
    """Tell those of the brokers that have a replica."""
    to = tuple(one for one in plan.partition(key).hosts if one in brokers)
    plan.send(key, "broker.state-sent", to)


def tell_gone(plan: Plan, key: PartitionKey, brokers: set[int]) -> None:
    """Have those of the brokers delete their replica who are to have none."""
    content = plan.partition(key)
    isr = () if content.state is None else content.state.isr
    started = {one for each in plan.rules.planners for one in each.list_started(plan.context, key)}
    gone = brokers - started - {*content.hosts, *isr}
    if gone:
        plan.stop(key, "broker.replica-deleted", tuple(sorted(gone)), delete=True)


def repair(plan: Plan, key: PartitionKey) -> bool:
    """Add what the partition needs for its dead replicas; return whether anything was added."""
    before = len(plan.steps)
    content = plan.partition(key)
    if content.state is None:
        bring_online(plan, key)
    elif not plan.context.is_live(content.state.leader):
        elect_offline(plan, key)
    else:
        _remove_dead(plan, key)
    return len(plan.steps) > before


def bring_online(plan: Plan, key: PartitionKey) -> None:
    """Give a partition its first leader, where one of its replicas lives."""
    live = plan.live(plan.partition(key).assigned)
    if not live:
        return
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
            key=key,
            state=state,
            missing=plan.context.missing_directories(key),
        )
    )
    plan.send(key, "partition.state-sent", live)


def elect_offline(plan: Plan, key: PartitionKey, hosts: ReplicaList | None = None) -> None:
    """Elect the first assigned replica that lives and is in sync, or note that there is none.

    `hosts` are told, without it those that the partition says were started.

    Where there is none the in-sync set stays as it is stored: it names the replicas that may lead.
    Kafka's own controllers take the leader that is lost out of it, unless it is the last one there.
    """
    content = plan.partition(key)
    state = content.state
    assert state is not None
    live_isr = plan.live(state.isr)
    started = {one for each in plan.rules.planners for one in each.list_started(plan.context, key)}
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
        if any(planner.cuts_lost_leader for planner in plan.rules.planners):
            isr = tuple(one for one in isr if one != state.leader) or isr
        plan.write_state(key, "partition.leader-lost", leader=NO_LEADER, isr=isr)
    else:
        return
    hosts = content.hosts if hosts is None else hosts
    told = tuple(dict.fromkeys((*hosts, *candidates[:1])))  # who leads may be in no assignment
    plan.send(key, "partition.state-sent", told, replicas=told)


def _remove_dead(plan: Plan, key: PartitionKey) -> None:
    """Take the dead replicas out of the ISR of a partition whose leader lives, one write each."""
    content = plan.partition(key)
    assert content.state is not None
    dead = tuple(one for one in content.state.isr if not plan.context.is_live(one))
    for replica in dead:
        shrink(plan, key, replica, "partition.isr-shrunk")
    if dead:
        plan.send(key, "partition.state-sent", content.hosts)
