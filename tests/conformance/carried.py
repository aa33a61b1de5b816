"""A controller that is a `Judgement`: its reference controller, or a mutant of it, on a ZooKeeper.

What is written to a partition is what `owed` says of it, one write after the other, each asked for
when it is due. Everything else is the bundled controller's: office, watches, reading, transactions,
messages, brokers, and what clients ask of topics and leaders. A write that is carried out is put to
`accept`, which says what the controller has in mind after it, whoever planned it; who takes office
begins with what `fail_over` says. A function that raises an exception writes nothing.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.gate.run_outcome import RunOutcome
from reassure_conformance.gate.run_settings import Settings
from reassure_conformance.gate.running import run
from reassure_controller import effects
from reassure_controller.agenda import Agenda
from reassure_controller.context import Context
from reassure_controller.controller import Controller
from reassure_controller.effects import Effect, PartitionEffect, RequestRead, Step
from reassure_controller.engine import PlanEngine, Uncertain
from reassure_controller.plan import Plan
from reassure_controller.planned_job import Job, StuckError
from reassure_controller.protocols.kip_236 import RequestPlanner, plan_bad_request
from reassure_controller.reader import ClusterReader
from reassure_controller.repairs import elect_offline, list_kept
from reassure_controller.rules import Rules
from reassure_controller.session import gather
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
    REASSIGNMENT_REQUESTS,
    BadZnode,
    PartitionKey,
    ReassignmentZnode,
    ReplicaList,
    RequestZnode,
    decode_request,
    parse_request_name,
)
from reassure_zookeeper.server import Server

Reference = Judgement[Partition, Write]
MOST_AT_ONCE: Final = 10
"""How many writes are planned at once that give a partition a leader."""
MOST_IN_A_ROW: Final = 100
"""How many writes to one partition may follow each other while nothing else happens."""


class Pending(NamedTuple):
    """A request of the queue, as it was read."""

    read: RequestRead
    sequence: int
    asked: RequestZnode


@dataclass(slots=True)
class Mind:
    """What the acting controller remembers of its partitions and did not write."""

    judgement: Reference
    readings: Readings
    context: Context
    partitions: dict[PartitionKey, Partition] = field(default_factory=dict)
    """As they were after the last write that it knows of."""
    queue: list[Pending] = field(default_factory=list)
    """The requests that make sense, lowest first."""
    unsure: dict[PartitionKey, tuple[Partition, Write]] = field(default_factory=dict)
    """The writes of which it is not known whether they were carried out, and what they were for."""
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
            self.partitions[key] = found

    def follow(self, key: PartitionKey, before: Partition, write: Write) -> Partition:
        """Return a partition after a write that was carried out."""
        try:
            outcome = self.judgement.accept(before, write, self.look_around(key), self.readings)
        except Exception:
            return adopt(before, write)
        return outcome.state if isinstance(outcome, Accepted) else adopt(before, write)

    def find_owed(self, key: PartitionKey, seen: Partition) -> Obligation | None:
        """Return the write that is owed; what is in flight ends before a topic is deleted."""
        around = self.look_around(key)
        if around.deleting and seen.reassignment is not None:
            around, seen = replace(around, deleting=False), replace(seen, requests=())
        try:
            owed = self.judgement.owed(seen, around, self.readings)
        except Exception:
            return None
        assert owed is None or isinstance(owed, Obligation)
        return owed

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
            now = before.state
            if now is not None and mind.told.get(key) != content.assigned:
                # Nobody owes it by the rules, but a leader learns of the assignment no other way.
                plan.write_state(key, "leader-told", leader=now.leader, isr=now.isr)
                plan.send(key, "state-sent", content.assigned)
            for planner in reversed(plan.rules.planners):
                plan.add(*planner.plan_end(plan.context, key))


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


# What is to be done -------------------------------------------------------------------------------


class CarriedAgenda(Agenda):
    """An agenda of which a judgement says what is written to partitions."""

    def __init__(
        self,
        reader: ClusterReader,
        rules: Rules,
        clock_ms: Callable[[], int],
        judgement: Reference,
    ) -> None:
        super().__init__(reader, rules, clock_ms)
        self.mind = Mind(judgement, rules.readings, reader.context)
        self._bad: dict[str, tuple[RequestRead, str]] = {}
        """By name of a request that makes no sense, how it was read and why."""
        self._in_a_row: dict[PartitionKey, int] = {}

    def take_event(self, path: str) -> None:
        """Read what a watch was about."""
        self._in_a_row.clear()
        super().take_event(path)

    def note(self, kind: str, path: str) -> bool:
        """Note at once that something is stale."""
        self._in_a_row.clear()
        return super().note(kind, path)

    # Leaders

    def plan_failover(self) -> tuple[Step, ...]:
        """Return what a term begins with: leaders, and what everybody is told."""
        self.reader.catch_up(self.context.partitions)
        for key in self.context.partitions:
            self.mind.fail_over(key)
        plan = Plan(self.context, self._rules)
        for key in list_kept(plan, plan.context.partitions):
            if not self._repair(plan, key):
                plan.send(key, "failover.state-sent", plan.partition(key).hosts)
        return tuple(plan.steps)

    def _plan_repair(self, keys: Iterable[PartitionKey]) -> tuple[Step, ...]:
        plan = Plan(self.context, self._rules)
        for key in list_kept(plan, keys):
            self._repair(plan, key)
        return tuple(plan.steps)

    def _plan_telling(self, brokers: set[int], keys: Iterable[PartitionKey]) -> tuple[Step, ...]:
        plan = Plan(self.context, self._rules)
        for key in list_kept(plan, keys):
            if not self._repair(plan, key):
                to = tuple(one for one in plan.partition(key).hosts if one in brokers)
                plan.send(key, "broker.state-sent", to)
        return tuple(plan.steps)

    def _repair(self, plan: Plan, key: PartitionKey) -> bool:
        """Add what is owed while a partition lacks a leader; return whether that was anything."""
        begun, known = len(plan.steps), self.mind.partitions.get(key)
        around = self.mind.look_around(key)
        for _ in range(MOST_AT_ONCE):
            seen = self.mind.see(key, plan.context, known)
            if not is_hurt(seen, around):
                break
            if self._is_unclean(plan, key):
                elect_offline(plan, key)
                break
            owed = self.mind.find_owed(key, seen)
            if owed is None or not isinstance(owed.write, CreateState | WriteState):
                break
            add_write(plan, self.mind, key, seen, owed)
            known = self.mind.follow(key, seen, owed.write)
        return len(plan.steps) > begun

    def _is_unclean(self, plan: Plan, key: PartitionKey) -> bool:
        """Whether only a replica out of sync is left, and may be elected: nobody owes that."""
        allowed = plan.readings.election_unclean == "last-resort"
        allowed = allowed or self.context.get_settings(key[0]).unclean
        left = plan.live(plan.partition(key).assigned)
        return allowed and self.context.is_offline(key) and bool(left)

    # Reassignments

    def _find_advance(self) -> Job | None:
        """Return the next write that is owed to a partition, its requests left aside."""
        self._read_queue()
        self.reader.catch_up(self.context.partitions)
        for key in sorted(self.context.partitions):
            if self._plan_write(key):
                return Job("write to {}-{}".format(*key), partial(self._plan_counted, key))
        return None

    def _plan_counted(self, key: PartitionKey) -> tuple[Step, ...]:
        self._in_a_row[key] = self._in_a_row.get(key, 0) + 1
        if self._in_a_row[key] > MOST_IN_A_ROW:
            raise StuckError("{}-{} is written to for ever".format(*key))
        return self._plan_write(key)

    def _plan_write(self, key: PartitionKey) -> tuple[Step, ...]:
        if key not in self.context.partitions:
            return ()
        plan = Plan(self.context, self._rules)
        if self._repair(plan, key):
            return tuple(plan.steps)
        seen = self.mind.see(key)
        owed = self.mind.find_owed(key, seen)
        if owed is not None:
            add_write(plan, self.mind, key, seen, owed)
        return tuple(plan.steps)

    # Requests

    def _find_of_planners(self, *, last: bool) -> Job | None:
        for planner in self._rules.planners:
            if planner.comes_last is not last:
                continue
            if isinstance(planner, RequestPlanner):
                job = self._find_request()
            else:
                job = planner.find_job(self.reader, self._rules, self._clock_ms)
            if job is not None:
                return job
        return None

    def _find_request(self) -> Job | None:
        self._read_queue()
        for name in self.context.requests[:1]:
            if self._plan_request(name):
                return Job(f"request {name}", partial(self._plan_request_again, name))
        return None

    def _plan_request_again(self, name: str) -> tuple[Step, ...]:
        self._read_queue()
        return self._plan_request(name)

    def _plan_request(self, name: str) -> tuple[Step, ...]:
        """Return what records the lowest request, or else removes it."""
        if name in self._bad:
            return plan_bad_request(*self._bad[name])
        head = next((one for one in self.mind.queue if one.read.path.endswith(name)), None)
        if head is None:
            return ()
        plan = Plan(self.context, self._rules)
        agreed = True
        for key in sorted(head.asked.assignments):
            if key[0] in self.context.deletions:
                continue
            owed = self.mind.find_owed(key, self.mind.see(key))
            write = None if owed is None else owed.write
            exists = key in self.context.partitions
            if exists and isinstance(write, CreateReassignment | UpdateReassignment):
                add_record(plan, key, write.reassignment, head.read)
            agreed = agreed and write == DeleteRequest(head.sequence)
        if agreed:
            path, version = head.read
            plan.add(effects.DeleteRequest(point="request.deleted", path=path, version=version))
        return tuple(plan.steps)

    def _read_queue(self) -> None:
        """Read every request that waits."""
        context = self.context
        if context.queue_unread:
            for planner in self._rules.planners:
                if isinstance(planner, RequestPlanner):
                    planner.read_missed(self.reader)
        self._bad, self.mind.queue = {}, []
        paths = [f"{REASSIGNMENT_REQUESTS}/{name}" for name in context.requests]
        answers = gather([self.reader.client.get_async(path) for path in paths])
        for path, found in zip(paths, answers, strict=True):
            name = path.rpartition("/")[2]
            if found is None:
                context.requests.remove(name)
                continue
            read, sequence = RequestRead(path, found[1].version), parse_request_name(name)
            if sequence is None:
                self._bad[name] = RequestRead(path, -1), "not the name of a request"
                continue
            try:
                self.mind.queue.append(Pending(read, sequence, decode_request(path, found[0])))
            except BadZnode as bad:
                self._bad[name] = read, bad.reason
        asked = [each.asked.assignments for each in self.mind.queue]
        self.reader.look_for_brokers(chain.from_iterable(t for a in asked for t in a.values()))
        self.reader.catch_up(chain.from_iterable(asked))


# The controller -----------------------------------------------------------------------------------


class CarriedEngine(PlanEngine):
    """An engine that has every write taken note of."""

    def __init__(self, *arguments: Any, find_mind: Callable[[], Mind]) -> None:
        super().__init__(*arguments)
        self._find_mind = find_mind

    def _carry_out(self, effect: Effect) -> None:
        mind = self._find_mind()
        writes = mind.list_writes(effect)
        try:
            super()._carry_out(effect)
        except Uncertain:
            mind.unsure |= {key: (before, write) for key, before, write in writes}
            raise
        mind.note_orders(effect)
        for key, before, write in writes:
            mind.partitions[key] = mind.follow(key, before, write)


class CarriedController(Controller):
    """The bundled controller with a judgement's decisions."""

    _agenda: CarriedAgenda

    def __init__(self, judgement: Reference, *arguments: Any, **more: Any) -> None:
        self._judgement = judgement
        super().__init__(*arguments, **more)

    def _make_agenda(self, context: Context) -> CarriedAgenda:
        reader = super()._make_agenda(context).reader
        return CarriedAgenda(reader, self.rules, self._clock_ms, self._judgement)

    def _make_engine(self, context: Context) -> CarriedEngine:
        common = (self._client, self.broker_id, context, self._transport, self._on_point)
        return CarriedEngine(*common, find_mind=lambda: self._agenda.mind)


def carry(judgement: Reference, profile: str, readings: Any = None) -> Bundled:
    """Return the adapter of a controller that is this judgement."""
    controller = partial(CarriedController, judgement)
    return Bundled(profile=profile, readings=readings, make_controller=controller)


def run_with(
    judgement: Reference,
    profile: str,
    settings: Settings,
    directory: Path,
    server: Server | None = None,
) -> RunOutcome:
    """Carry out a run of the gate against a controller that is this judgement."""

    class Carrying(Settings):
        def open(self) -> Bundled:
            return carry(judgement, self.profile, self.readings)

    asked = {each.name: getattr(settings, each.name) for each in fields(settings)}
    return run(Carrying(**{**asked, "profile": profile}), directory, server=server)
