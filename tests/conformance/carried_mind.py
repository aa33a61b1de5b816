"""What a controller that is a `Judgement` has in mind, and the steps that its writes are."""

from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from reassure_controller import effects
from reassure_controller.context import Context
from reassure_controller.effects import Effect, PartitionEffect, RequestRead
from reassure_controller.plan import Plan
from reassure_model.machine import Judgement
from reassure_model.outcome import Accepted
from reassure_model.partition import (
    Environment,
    LeaderAndIsr,
    Partition,
    Reassignment,
    Request,
    from_znode,
    is_leader_live,
    is_target_in_sync,
    to_znode,
)
from reassure_model.writes import (
    CreateReassignment,
    CreateState,
    DeleteReassignment,
    DeleteRequest,
    Obligation,
    UpdateReassignment,
    Write,
    WriteAssigned,
    WriteState,
    adopt,
)
from reassure_spec.readings import Readings
from reassure_spec.znodes import (
    PartitionKey,
    ReassignmentZnode,
    ReplicaList,
    RequestZnode,
)

Decisions = Judgement[Partition, Write]


class Pending(NamedTuple):
    """A request of the queue, as it was read."""

    read: RequestRead
    sequence: int
    asked: RequestZnode


@dataclass(slots=True)
class Mind:
    """What the acting controller remembers of its partitions and did not write."""

    judgement: Decisions
    readings: Readings
    context: Context
    partitions: dict[PartitionKey, Partition] = field(default_factory=dict)
    """As they were after the last write that it knows of."""
    queue: list[Pending] = field(default_factory=list)
    """The requests that make sense, lowest first."""
    unsure: dict[PartitionKey, tuple[Partition, Write]] = field(default_factory=dict)
    """The writes of which it is not known whether they were carried out, and what they were for."""
    lost: set[PartitionKey] = field(default_factory=set)
    """Those that it failed to take over."""
    added: dict[PartitionKey, set[int]] = field(default_factory=dict)
    """Replicas that were assigned and not started yet."""
    stopped: dict[PartitionKey, set[int]] = field(default_factory=dict)
    """Replicas that were stopped, and not started since."""
    told: dict[PartitionKey, ReplicaList] = field(default_factory=dict)
    """What leaders were told for the assigned replicas in the leader epoch that there is."""

    def look_around(self, key: PartitionKey) -> Environment:
        """Return what the rules for a partition may know of the cluster."""
        context = self.context
        settings, asked = context.get_settings(key[0]), context.preferred
        return Environment(
            frozenset(context.brokers),
            frozenset(context.known_brokers),
            settings.min_insync,
            context.epoch,
            frozenset(context.stopping),
            asked is not None and key in asked.partitions,
            settings.unclean,
            key[0] in context.deletions,
        )

    def see(
        self, key: PartitionKey, context: Context | None = None, known: Partition | None = None
    ) -> Partition:
        """Return a partition as it was read, or as a plan leaves it, with what is in mind of it."""
        known = known or self.partitions.get(key, Partition())
        content = (context or self.context).partitions.get(key)
        if content is None:
            return Partition(requests=self._list_requests(key))
        child = content.child
        flight = None if child is None else Reassignment(child.target, child.top, child.legacy)
        seen = replace(
            known,
            assigned=content.assigned,
            state=None if content.state is None else from_znode(content.state),
            reassignment=flight,
            requests=self._list_requests(key),
        )
        if context is None and key in self.unsure:
            before, write = self.unsure.pop(key)
            if is_there(seen, write):
                self.partitions[key] = self.follow(key, before, write)
                return self.see(key)
        # A record that somebody else has written is none of a change.
        return seen if flight == known.reassignment else replace(seen, drop_due=False)

    def _list_requests(self, key: PartitionKey) -> tuple[Request, ...]:
        named = (each for each in self.queue if key in each.asked.assignments)
        return tuple(
            Request(each.sequence, each.asked.assignments[key], each.asked.legacy) for each in named
        )

    def fail_over(self, key: PartitionKey) -> None:
        """Begin with a partition: nobody knows whether what was added to it was announced."""
        self.partitions.pop(key, None)
        found = self.see(key)
        flight, assigned = found.reassignment, found.assigned or ()
        if flight is not None:
            # One in sync was started, which takes an epoch of its own.
            started = is_target_in_sync(found) and set(flight.target) <= set(assigned)
            found = replace(found, announce_due=not started)
        try:
            self.partitions[key] = self.judgement.fail_over(found, self.readings)
        except Exception:
            self.lost.add(key)

    def follow(self, key: PartitionKey, before: Partition, write: Write) -> Partition:
        """Return a partition after a write that was carried out."""
        try:
            outcome = self.judgement.accept(before, write, self.look_around(key), self.readings)
        except Exception:
            return adopt(before, write)
        return outcome.state if isinstance(outcome, Accepted) else adopt(before, write)

    def find_owed(self, key: PartitionKey, seen: Partition) -> Obligation | None:
        """Return the write that is owed; what is in flight ends before a topic is deleted."""
        if key in self.lost:
            return None
        around = self.look_around(key)
        if around.deleting and seen.reassignment is not None:
            around, seen = replace(around, deleting=False), replace(seen, requests=())
        try:
            owed = self.judgement.owed(seen, around, self.readings)
        except Exception:
            return None
        return owed if isinstance(owed, Obligation) and is_possible(owed.write) else None

    def is_one_stopped(self, key: PartitionKey, seen: Partition) -> bool:
        """Whether a reassignment that was changed stopped somebody who is to run on."""
        stopped = self.stopped.get(key, set()) - self.added.get(key, set())
        waits = seen.reassignment is not None and not seen.completing
        # Who is not there is told when it is back.
        return waits and not stopped.isdisjoint(
            one for one in seen.assigned or () if self.context.is_live(one)
        )

    def list_writes(self, effect: Effect) -> list[tuple[PartitionKey, Partition, Write]]:
        """Return what an effect writes of partitions, and each as it is before."""
        if isinstance(effect, effects.DeleteRequest):
            return [
                (key, self.see(key), DeleteRequest(each.sequence))
                for each in self.queue
                if each.read.path == effect.path
                for key in each.asked.assignments
            ]
        write = find_write(effect)
        if write is None or not isinstance(effect, PartitionEffect):
            return []
        return [(effect.key, self.see(effect.key), write)]

    def note_orders(self, effect: Effect) -> None:
        """Note who was added, started or stopped."""
        match effect:
            case effects.WriteAssigned(key=key, assigned=assigned):
                known = self.partitions.get(key, Partition())
                self.added.setdefault(key, set()).update({*assigned} - {*(known.assigned or ())})
            case effects.WriteState(key=key) | effects.CreatePartitionState(key=key):
                self.told[key] = ()
            case effects.SendLeaderAndIsr(key=key, to=to):
                if self.told.get(key) == ():
                    self.told[key] = effect.replicas
                self.added.get(key, set()).difference_update(to)
                self.stopped.get(key, set()).difference_update(to)
            case effects.SendStopReplica(key=key, to=to):
                self.stopped.setdefault(key, set()).update(to)


def is_possible(write: Write) -> bool:
    """Whether a write holds numbers and lists of numbers where these belong."""
    numbers: tuple[object, ...] = ()
    lists: tuple[object, ...] = ()
    match write:
        case CreateState(state) | WriteState(state):
            numbers, lists = (
                (state.leader, state.leader_epoch, state.controller_epoch),
                (state.isr,),
            )
        case CreateReassignment(record) | UpdateReassignment(record):
            numbers, lists = (record.top,), (record.target,)
        case WriteAssigned(assigned):
            lists = (assigned,)
    inside = (one for each in lists if isinstance(each, tuple) for one in each)
    return all(isinstance(each, tuple) for each in lists) and all(
        isinstance(each, int) for each in chain(numbers, inside)
    )


def is_there(seen: Partition, write: Write) -> bool:
    """Whether a write was carried out, as far as can be seen; a leader may have written since."""
    if isinstance(write, CreateState | WriteState):
        now, wrote = seen.state, write.state
        wrote_last = now is not None and now.controller_epoch == wrote.controller_epoch
        return wrote_last and now is not None and now.leader_epoch >= wrote.leader_epoch
    return adopt(seen, write) == seen


def find_write(effect: Effect) -> Write | None:
    """Return the write of the model that an effect is, None for what is none of a partition."""
    match effect:
        case effects.CreatePartitionState(state=state):
            return CreateState(from_znode(state))
        case effects.WriteState(state=state):
            return WriteState(from_znode(state))
        case effects.WriteAssigned(assigned=assigned):
            return WriteAssigned(assigned)
        case effects.CreateReassignment(reassignment=child):
            return CreateReassignment(Reassignment(child.target, child.top, child.legacy))
        case effects.UpdateReassignment(reassignment=child):
            return UpdateReassignment(Reassignment(child.target, child.top, child.legacy))
        case effects.DeleteReassignment():
            return DeleteReassignment()
    return None


def is_hurt(partition: Partition, around: Environment) -> bool:
    """Whether a partition has no leader, or somebody in sync who is not alive."""
    state = partition.state
    if partition.assigned is None:
        return False
    return state is None or not is_leader_live(state, around) or not around.live >= {*state.isr}


# From writes to steps of a plan -------------------------------------------------------------------


def add_write(
    plan: Plan, mind: Mind, key: PartitionKey, before: Partition, owed: Obligation
) -> None:
    """Add a write to a partition that is there, and the orders that go with it.

    Requests are left aside: what they ask for is recorded for all partitions that one names.
    """
    write, point, content = owed.write, owed.clause, plan.partition(key)
    match write:
        case CreateState(state) | WriteState(state) if content.state is None:
            missing = plan.context.missing_directories(key)
            said = to_znode(state)
            plan.add(
                effects.CreatePartitionState(point=point, key=key, state=said, missing=missing)
            )
            live = plan.live(content.assigned)
            plan.send(key, "state-sent", live, new=live)
        case CreateState(state) | WriteState(state):
            _add_state(plan, mind, key, before, state, point)
        case WriteAssigned(assigned):
            _add_assigned(plan, mind, key, before, assigned, point)
        case DeleteReassignment() if content.child is not None:
            if mind.told.get(key) != content.assigned:
                tell_anew(plan, key)
            plan.recheck_state(key)  # that one of the target fell behind is no conflict of a record
            for planner in reversed(plan.rules.planners):
                plan.add(*planner.plan_end(plan.context, key))


def tell_anew(plan: Plan, key: PartitionKey) -> None:
    """Raise the epoch for who has to learn which replicas are assigned, though no rule owes it.

    Brokers take an order of the epoch that they know for one that they have obeyed.
    """
    content = plan.partition(key)
    if content.state is not None:
        plan.write_state(key, "brokers-told", leader=content.state.leader, isr=content.state.isr)
        plan.send(key, "state-sent", content.assigned)


def _add_state(
    plan: Plan, mind: Mind, key: PartitionKey, before: Partition, new: LeaderAndIsr, point: str
) -> None:
    old, flight = before.state, before.reassignment
    assert old is not None
    left = plan.live(one for one in old.isr if one not in new.isr)
    if left and flight is not None:
        plan.recheck_state(key)
        _add_stop(plan, mind, key, left)
    version = plan.partition(key).state_version
    plan.add(effects.WriteState(point=point, key=key, state=to_znode(new), version=version))
    to = tuple(one for one in before.assigned or () if one not in left)
    hurt = is_hurt(before, mind.look_around(key))
    if flight is not None and is_target_in_sync(before) and not (before.drop_due or hurt):
        to = flight.target
    plan.send(key, "state-sent", to, replicas=to, new=mind.added.get(key, set()) & {*to})


def _add_assigned(
    plan: Plan, mind: Mind, key: PartitionKey, before: Partition, assigned: ReplicaList, point: str
) -> None:
    isr = () if before.state is None else before.state.isr
    present = dict.fromkeys((*(before.assigned or ()), *isr))
    gone = tuple(one for one in present if one not in assigned)
    if gone:
        plan.recheck_state(key)
        _add_stop(plan, mind, key, gone)
        plan.recheck_state(key)
        plan.stop(key, "replicas-deleted", gone, delete=True)
    plan.write_assigned(key, point, assigned, guard_state=bool(gone))


def _add_stop(plan: Plan, mind: Mind, key: PartitionKey, replicas: ReplicaList) -> None:
    to = tuple(one for one in replicas if one not in mind.stopped.get(key, ()))
    if to:
        plan.stop(key, "replicas-stopped", to, delete=False)


def add_record(plan: Plan, key: PartitionKey, record: Reassignment, read: RequestRead) -> None:
    """Add the record of what a request asks for."""
    child, content = (
        ReassignmentZnode(record.top, record.target, record.legacy),
        plan.partition(key),
    )
    if content.child is None:
        plan.add(
            effects.CreateReassignment(
                point="request.child-written",
                key=key,
                reassignment=child,
                with_parent=key[0] not in plan.context.parents,
                request=read,
            )
        )
        return
    plan.add(
        effects.UpdateReassignment(
            point="change.child-written",
            key=key,
            reassignment=child,
            version=content.child_version,
            request=read,
        )
    )
