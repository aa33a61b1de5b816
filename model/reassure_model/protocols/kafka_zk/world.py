"""What may happen to a partition under Kafka's own controllers, their effects among it."""

from dataclasses import replace

from reassure_model.copies import (
    can_join,
    happen,
    list_happenings,
)
from reassure_model.environment import Controller, Die, Failover, Join, NotPossible, Return
from reassure_model.outcome import Accepted, Rejected
from reassure_model.protocols.kafka_zk import (
    Action,
    Alter,
    AskDeletion,
    DeleteZnode,
    Outcome,
    Prefer,
    Shipped,
    ShutDown,
    WriteEntry,
    act,
    next_effect,
    plan_call,
    plan_for_deaths,
    plan_office,
    without,
    write_leader,
)
from reassure_model.selectors import (
    select_controlled_shutdown,
    select_preferred,
)
from reassure_spec.clauses import checks, clause
from reassure_spec.znodes import ReplicaList


@clause("shipped.isr.told-may-join")
def can_join_told(shipped: Shipped, replica: int) -> bool:
    """Whether the leader was told of a replica that can be taken into the in-sync set."""
    return replica in shipped.told and can_join(shipped, replica)


def enabled(shipped: Shipped, targets: tuple[ReplicaList | None, ...] = ()) -> tuple[Action, ...]:
    """Return every action that is possible; `targets` are those that calls may ask for."""
    actions: list[Action] = [Controller()] if next_effect(shipped) is not None else []
    if not is_busy(shipped):
        calls = (Alter(target) for target in targets)
        actions += [c for c in calls if not isinstance(plan_call(shipped, c.target), Rejected)]
    joining = (r for r in sorted(shipped.running) if can_join_told(shipped, r))
    known = shipped.live | shipped.running | shipped.holding | frozenset(shipped.assigned)
    return (*actions, *list_happenings(shipped, joining, known), Failover())


@clause("shipped.call.one-event-at-a-time")
def is_busy(shipped: Shipped) -> bool:
    """Whether the controller is at an event, or one comes first, so that it takes no call.

    Before it takes a call it has heard of deaths, and has come to an end of taking office.
    """
    held = shipped.assignment.is_reassigning or shipped.entry is not None
    return bool(shipped.plan or plan_for_deaths(shipped)) or (shipped.resume and held)


@checks
def elect_preferred(shipped: Shipped) -> Outcome:
    """Elect the first of the list, which is the target's while one is in flight."""
    elected = select_preferred(shipped.assigned, shipped.isr, shipped.live)
    if elected is None:
        return Rejected("shipped.preferred.target-first", "it is not live and in sync")
    if elected.leader == shipped.leader:
        return Accepted(shipped)
    after = replace(shipped, overlooked=False)
    return Accepted(write_leader(after, elected.leader, elected.isr))


@checks
def shut_down(shipped: Shipped, broker: int, stopping: frozenset[int]) -> Outcome:
    """Take a broker out of the in-sync set, after another has taken over where it leads."""
    if broker not in shipped.isr:
        return Accepted(shipped)
    if broker != shipped.leader:
        return Accepted(write_leader(shipped, shipped.leader, without(shipped.isr, (broker,))))
    elected = select_controlled_shutdown(shipped.assigned, shipped.isr, shipped.live, stopping)
    if elected is None:
        return Rejected("shipped.shutdown.leader-moved", "nobody can take over; it keeps leading")
    return Accepted(write_leader(shipped, elected.leader, elected.isr))


def step(shipped: Shipped, action: Action) -> Outcome:
    """Take one action.

    Rejected is the answer to a call that is refused. Raises NotPossible for an action that has
    nothing to act upon, and for a call while the controller is at another event.
    """
    match action:
        case WriteEntry(target, created):
            heard = created and shipped.entry is None and not shipped.unwatched
            return Accepted(replace(shipped, entry=target, unread=shipped.unread or heard))
        case DeleteZnode(others) if others or shipped.entry is not None:
            deaf = shipped.unwatched or not shipped.unread
            return Accepted(replace(shipped, entry=None, unread=False, unwatched=deaf))
        case Alter(target) if not is_busy(shipped):
            plan = plan_call(shipped, target)
            if isinstance(plan, Rejected):
                return plan
            return Accepted(replace(shipped, plan=plan))
        case Prefer() if not is_busy(shipped):
            return elect_preferred(shipped)
        case ShutDown(broker, others) if not is_busy(shipped):
            return shut_down(shipped, broker, others | {broker})
        case AskDeletion():
            return Accepted(replace(shipped, deleting=True))
        case Controller():
            acted = act(shipped)
            if acted is not None:
                return Accepted(acted[1], effects=(acted[0],))
        case _:
            after = _happen(shipped, action)
            if after is not shipped:
                return Accepted(after)
    raise NotPossible(f"{action} is not possible in {shipped}")


def _happen(shipped: Shipped, action: Action) -> Shipped:
    """Return the partition after something that nobody decides, itself where it cannot be."""
    if isinstance(action, Join) and not can_join_told(shipped, action.replica):
        return shipped
    after = happen(shipped, action)
    match action:
        case Die(broker) if after is not shipped:
            # Who was down is told anew what to run when it is back. Whoever dies, the controller
            # looks for partitions without a leader.
            return replace(after, running=after.running - {broker}, overlooked=False)
        case Return(broker) if after is not shipped:
            again = shipped.assignment.is_reassigning and broker in shipped.assignment.target
            return replace(after, resume=shipped.resume or again)
        case Failover():
            unread = shipped.entry is not None
            after = replace(after, plan=(), unread=unread, unwatched=False, overlooked=False)
            return replace(after, plan=plan_office(after), resume=True)
    return after
