"""A controller that is a `Judgement`: its reference controller, or a mutant of it, on a ZooKeeper.

What is written to a partition is what `owed` says of it, one write after the other, each asked for
when it is due. Everything else is the bundled controller's: office, watches, reading, transactions,
messages, brokers, and what clients ask of topics and leaders. A write that is carried out is put to
`accept`, which says what the controller has in mind after it, whoever planned it; who takes office
begins with what `fail_over` says. A function that raises an exception writes nothing.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import fields
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

from carried_mind import Decisions, Mind, Pending, add_record, add_write, is_hurt, tell_anew

from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.adapter.world import REAL, VIRTUAL_WORLD, World
from reassure_conformance.gate.run_outcome import RunOutcome
from reassure_conformance.gate.run_settings import Settings
from reassure_conformance.gate.running import run
from reassure_controller import effects
from reassure_controller.agenda import Agenda
from reassure_controller.context import Context
from reassure_controller.controller import Controller, NotQuiet
from reassure_controller.effects import Effect, Order, RequestRead, Step
from reassure_controller.engine import PlanEngine, Uncertain
from reassure_controller.plan import Plan
from reassure_controller.planned_job import Job
from reassure_controller.protocols.kip_236 import RequestPlanner, plan_bad_request
from reassure_controller.reader import ClusterReader
from reassure_controller.repairs import elect_offline, list_kept, tell_state
from reassure_controller.rules import Rules
from reassure_controller.session import gather
from reassure_model.writes import (
    CreateReassignment,
    CreateState,
    DeleteRequest,
    UpdateReassignment,
    WriteState,
)
from reassure_spec.znodes import (
    REASSIGNMENT_REQUESTS,
    BadZnode,
    PartitionKey,
    decode_request,
    parse_request_name,
)

# What is to be done -------------------------------------------------------------------------------

MOST_AT_ONCE: Final = 10
"""How many writes are planned at once that give a partition a leader."""
MOST_IN_A_ROW: Final = 25
"""How many writes to one partition may follow each other while nothing else happens."""


class CarriedAgenda(Agenda):
    """An agenda of which a judgement says what is written to partitions."""

    def __init__(
        self,
        reader: ClusterReader,
        rules: Rules,
        clock_ms: Callable[[], int],
        judgement: Decisions,
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
        if path not in self.context.echoes:
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

    def _plan_telling(self, orders: Collection[Order]) -> tuple[Step, ...]:
        plan = Plan(self.context, self._rules)
        for key in list_kept(plan, self._catch_up({key for _, key in orders})):
            if not self._repair(plan, key):
                tell_state(plan, key, {broker for broker, of in orders if of == key})
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
            raise NotQuiet("{}-{} is written to for ever".format(*key))
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
        if not plan.steps and self.mind.is_one_stopped(key, seen):
            tell_anew(plan, key)
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
            mind.note_orders(effect)
            mind.unsure |= {key: (before, write) for key, before, write in writes}
            for key in mind.context.untold:
                mind.stopped.pop(key, None)  # all are told anew, who was stopped as well
            raise
        mind.note_orders(effect)
        for key, before, write in writes:
            mind.partitions[key] = mind.follow(key, before, write)


class CarriedController(Controller):
    """The bundled controller with a judgement's decisions."""

    _agenda: CarriedAgenda

    def __init__(self, judgement: Decisions, *arguments: Any, **more: Any) -> None:
        self._judgement = judgement
        super().__init__(*arguments, **more)

    def _make_agenda(self, context: Context) -> CarriedAgenda:
        reader = super()._make_agenda(context).reader
        return CarriedAgenda(reader, self.rules, self._clock_ms, self._judgement)

    def _make_engine(self, context: Context) -> CarriedEngine:
        common = (self._client, self.broker_id, context, self._transport, self._on_point)
        return CarriedEngine(*common, find_mind=lambda: self._agenda.mind)


def carry(judgement: Decisions, profile: str, readings: Any = None, world: World = REAL) -> Bundled:
    """Return the adapter of a controller that is this judgement."""
    controller = partial(CarriedController, judgement)
    return Bundled(profile=profile, readings=readings, make_controller=controller, world=world)


def run_with(judgement: Decisions, settings: Settings, directory: Path) -> RunOutcome:
    """Carry out a run of the gate, in the virtual world, against such a controller."""

    class Carrying(Settings):
        def open(self, world: World) -> Bundled:
            return carry(judgement, self.profile, self.readings, world)

    asked = {each.name: getattr(settings, each.name) for each in fields(settings)}
    return run(Carrying(**{**asked, "world": VIRTUAL_WORLD}), directory)
