"""Carries out the steps of a plan, one at a time.

Every write is one ZooKeeper transaction that begins with a check of the controller epoch's version:
a controller that was superseded cannot write anything. Memory changes only after ZooKeeper has
(KAFKA-9089). A step that was refused because a znode was not as planned raises `Conflict`, one
whose outcome is unknown raises `Uncertain`; in both cases the rest of the plan is worthless, and
the caller reads the partition again and plans again.

A plan can be *held* between any two effects by a budget. What is left stays in memory, so that the
same controller can go on later, or be killed there.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from typing import Any, assert_never

from kazoo.exceptions import NotEmptyError

from reassure_controller.client import Client
from reassure_controller.context import Context, LiveBroker, apply_step
from reassure_controller.crashing import OnPoint
from reassure_controller.effects import (
    LOGS_DELETED,
    CreatePartitionState,
    CreateReassignment,
    CreateTask,
    DeleteReassignment,
    DeleteRecord,
    DeleteRequest,
    DeleteZnode,
    DeletionWrite,
    Effect,
    EndDeletion,
    EndPreferred,
    EnterPhase,
    HealingWrite,
    Mark,
    OldZnodeWrite,
    PartitionEffect,
    Planned,
    Recheck,
    RecheckOldZnode,
    RecordFailure,
    RememberMove,
    RemoveSettings,
    RemoveTask,
    RemoveTopic,
    RequestRead,
    SendLeaderAndIsr,
    SendStopReplica,
    StartTask,
    Step,
    TranslateEntries,
    UpdateReassignment,
    Warn,
    Write,
    WriteAssigned,
    WriteOldZnode,
    WriteState,
    describe,
    list_keys,
)
from reassure_controller.log_lines import about
from reassure_controller.messages import EPOCH_DURING_DELETE, LeaderAndIsr, Reply, StopReplica
from reassure_controller.session import (
    Indefinite,
    Operation,
    Refused,
    SessionLost,
    fetch,
    gather,
    list_subtree,
    session_id,
    settle,
    submit,
)
from reassure_controller.transport import HearsStates, Transport
from reassure_spec.state_tables import ReplicaState
from reassure_spec.znodes import (
    CONTROLLER_EPOCH,
    PREFERRED_ELECTION,
    REASSIGN_PARTITIONS,
    REASSIGNMENT_REQUESTS,
    REASSIGNMENT_TASKS,
    REASSIGNMENTS,
    REQUEST_PREFIX,
    TASK_PREFIX,
    TOPICS,
    ReplicaList,
    RequestZnode,
    TaskZnode,
    broker_path,
    deleted_topic_path,
    encode_failed_broker,
    encode_reassign_partitions,
    encode_reassignment,
    encode_request,
    encode_state,
    encode_task,
    failed_broker_path,
    reassignment_path,
    state_path,
    task_path,
    topic_config_path,
    topic_path,
)

log = logging.getLogger("reassure_controller")


class ControllerMoved(Exception):
    """The controller epoch is not ours any more: somebody else is the controller."""


class Conflict(Exception):
    """A znode was not as planned, so nothing was written."""

    def __init__(self, effect: Planned, reason: str) -> None:
        super().__init__(f"{effect}: {reason}")
        self.effect = effect


class Uncertain(Indefinite):
    """It is not known whether a write was carried out."""

    def __init__(self, effect: Write, reason: str) -> None:
        super().__init__(f"{effect}: {reason}")
        self.effect = effect


class PlanEngine:
    """Carries out plans for one controller during one term."""

    def __init__(
        self,
        client: Client,
        broker_id: int,
        context: Context,
        transport: Transport,
        on_point: OnPoint = lambda _: None,
        later: Callable[[Callable[[], None]], None] = lambda act: act(),
    ) -> None:
        """Carry out plans; `later` has something done by the controller, from another thread."""
        self._client = client
        self._broker_id = broker_id
        self._later = later
        self._on_point = on_point
        self._context = context
        self._transport = transport
        self._plan: deque[Step] = deque()
        self.broken: list[Planned] = []
        """What did not get through: what it rests on has to be read again."""
        self.effects_run = 0
        """How many effects were carried out so far."""

    def load(self, plan: tuple[Step, ...]) -> None:
        """Replace whatever is left of the last plan."""
        self._plan = deque(plan)

    @property
    def next_effect(self) -> Effect | None:
        """The effect that comes next, or None when the plan is done."""
        for step in self._plan:
            if not isinstance(step, Mark):
                return step
        return None

    def run(self, budget: int | None) -> None:
        """Carry out at most `budget` effects (None: all), and the marks up to the next one.

        Raises ControllerMoved, Conflict, Uncertain or SessionLost; the effects before the one that
        failed have been carried out then, and `effects_run` counts them.
        """
        last = None if budget is None else self.effects_run + budget
        while self._plan:
            step = self._plan[0]
            spent = last is not None and self.effects_run >= last
            if spent and not isinstance(step, EnterPhase | RememberMove | Warn):
                break  # a recheck belongs to the effect behind it, so it waits as well
            try:
                self._run_step(step)
            except (Conflict, Uncertain) as broken:
                self.broken.append(broken.effect)
                raise
            self._plan.popleft()
        self._say_states()

    def _move(self, step: Step) -> None:
        if isinstance(step, PartitionEffect | RememberMove):
            self._context.states.settle(self._context, step.key)
            self._say_states()

    def _say_states(self) -> None:
        for moved in self._context.states.take_news(self._context.epoch):
            with about(topic=moved.topic, partition=moved.partition, point="states"):
                log.debug("states: %s", moved.moves)
            if isinstance(self._transport, HearsStates):
                self._transport.hear(moved)

    def _run_step(self, step: Step) -> None:
        with about(**list_keys(step)):
            self._move(step)
            if isinstance(step, Mark):
                self._mark(step)
            else:
                self._carry_out(step)
                self.effects_run += 1
            self._tell(step)

    def _tell(self, step: Step) -> None:
        self._move(step)
        if news := describe(step):
            log.info("%s", news)

    def _mark(self, step: Mark) -> None:
        if isinstance(step, Warn):
            log.warning("%s: %s", step.path, step.reason)
        elif isinstance(step, Recheck):
            for broken in self.find_broken([step]):
                raise broken
        elif isinstance(step, RecheckOldZnode):
            self._recheck_old_znode(step)
        apply_step(self._context, step)

    def find_broken(self, steps: list[Recheck]) -> Iterator[Conflict]:
        """Yield what is not as planned any more."""
        leaders = [step.leader for step in steps if step.leader is not None]
        states = (state_path(*step.key) for step in steps)
        found = fetch(self._client, [*states, *map(broker_path, leaders)])
        alive = {None} | {one for one, at in zip(leaders, found[len(steps) :], strict=True) if at}
        for step, state in zip(steps, found[: len(steps)], strict=True):
            if state is None or state[1].version != step.version:
                yield Conflict(step, "the state was changed")
            elif step.leader not in alive:
                yield Conflict(step, f"leader {step.leader} has died")

    def _recheck_old_znode(self, step: RecheckOldZnode) -> None:
        found, old = gather([self._client.exists_async(REASSIGN_PARTITIONS)])[0], self._context.old
        known = None if old is None else (old.created, old.version)
        if known != (None if found is None else (found.czxid, found.version)):
            raise Conflict(step, "the old znode was changed")

    def _carry_out(self, effect: Effect) -> None:
        log.debug("%s: %s", effect.point, effect)
        self._on_point(effect.point)
        if isinstance(effect, SendLeaderAndIsr):
            self._send_leader_and_isr(effect)
        elif isinstance(effect, SendStopReplica):
            epoch = self._find_stop_epoch(effect)
            apply_step(self._context, effect)
            self._context.states.stop(effect.key, effect.to, delete=effect.delete)
            self._say_states()
            if effect.delete and effect.point != LOGS_DELETED:  # a topic waits for who is down
                dead = {*effect.to} - self._context.brokers.keys()
                self._context.unreached |= {(one, effect.key) for one in dead}
            for broker in self._live(effect.to):
                message = StopReplica(
                    self._broker_id,
                    self._context.epoch,
                    effect.topic,
                    effect.partition,
                    effect.delete,
                    broker.epoch,
                    epoch,
                )
                self._context.note_told(effect, broker)
                self._send(broker, message, partial(self._note_stopped, effect, broker.id))
        else:
            apply_step(self._context, effect, self._write(effect))

    def _find_stop_epoch(self, effect: SendStopReplica) -> int:
        """Return the leader epoch that an order to stop is for."""
        known = self._context.partitions.get(effect.key)
        if not (known and known.state) or self._context.is_ending(effect.topic):
            return EPOCH_DURING_DELETE
        return known.state.leader_epoch

    def _live(self, to: ReplicaList) -> list[LiveBroker]:
        return [self._context.brokers[one] for one in to if one in self._context.brokers]

    def _send_leader_and_isr(self, effect: SendLeaderAndIsr) -> None:
        content = self._context.partitions[effect.key]
        state = content.state
        if state is None:
            return
        # What is on its way arrives in order: whatever comes next finds these told.
        brokers = self._live(effect.to)
        self._context.note_started(effect.key, {broker.id for broker in brokers})
        self._context.states.tell(effect.key, [broker.id for broker in brokers])
        self._move(effect)
        for broker in brokers:
            message = LeaderAndIsr(
                controller=self._broker_id,
                controller_epoch=self._context.epoch,
                topic=effect.topic,
                partition=effect.partition,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                isr=state.isr,
                state_controller_epoch=state.controller_epoch,
                state_version=content.state_version,
                replicas=effect.replicas,
                is_new=broker.id in effect.new,
                broker_epoch=broker.epoch,
            )
            self._send(broker, message, partial(self._note_started, effect, broker))

    def _note_started(
        self, effect: SendLeaderAndIsr, broker: LiveBroker, reply: Reply | None
    ) -> None:
        lives_on = self._context.brokers.get(broker.id) == broker
        if reply is None and broker.id in effect.new and lives_on:
            self._context.note_unstarted(effect.key, {broker.id})

    def _note_stopped(self, effect: SendStopReplica, broker: int, reply: Reply | None) -> None:
        if reply is not None and reply.result == "ok":
            self._context.note_deleted(effect, broker)
            if effect.delete:
                self._context.states.end(effect.key, broker, ReplicaState.DELETION_SUCCESSFUL)
        elif effect.topic in self._context.deletions:
            self._context.states.end(effect.key, broker, ReplicaState.DELETION_INELIGIBLE)

    def _send(
        self,
        broker: LiveBroker,
        message: LeaderAndIsr | StopReplica,
        note: Callable[[Reply | None], None],
    ) -> None:
        """Send a message; `note` is told the answer, now or when it has come."""

        def take(reply: Reply | None) -> None:
            is_refused = reply is not None and reply.result not in ("ok", "ignored")
            if is_refused:
                log.info("broker %d refuses %s: %s", broker.id, message, reply)
            if reply is None or (is_refused and isinstance(message, StopReplica)):
                self._context.unreached.add((broker.id, (message.topic, message.partition)))
            note(reply)

        reply = self._transport.send(broker, message)
        if isinstance(reply, Future):
            reply.add_done_callback(lambda done: self._later(lambda: take(done.result())))
        else:
            take(reply)

    def _write(self, effect: Write) -> int | None:
        """Write to ZooKeeper and return the new version of the znode written, where it has one."""
        deep = isinstance(effect, DeleteZnode)
        while True:
            operations = self._operations(effect)
            if deep and isinstance(effect, DeleteZnode | DeleteRequest):
                below = list_subtree(self._client, effect.path)[:-1]
                operations = [*(("delete", (path, -1)) for path in below), *operations]
            try:
                results = self._commit(effect, operations)
            except Conflict:
                if not isinstance(effect, DeleteZnode | DeleteRequest):
                    raise
                found = gather([self._client.exists_async(effect.path)])[0]
                if found is None:
                    return None
                if isinstance(effect, DeleteRequest) and effect.version not in (-1, found.version):
                    raise  # it was changed since it was read
                deep = True  # there is something below it: list and delete that as well
            else:
                return getattr(results[-1], "version", None) if results else None

    def _commit(self, effect: Write, operations: list[Operation]) -> list[Any]:
        return self._take_answer(effect, operations, self._submit(effect, operations))

    def _submit(self, effect: Write, operations: list[Operation]) -> Any:
        version = self._context.epoch_version
        operations = [("check", (CONTROLLER_EPOCH, version)), *operations]
        if session_id(self._client) != self._context.session:
            raise SessionLost("the session of this term has ended")
        return submit(self._client, operations)

    def _take_answer(self, effect: Write, operations: list[Operation], answer: Any) -> list[Any]:
        try:
            results = settle(answer)
        except Refused as refused:
            if refused.index == 0:
                raise ControllerMoved(str(refused)) from refused
            if isinstance(effect, DeleteReassignment) and isinstance(refused.error, NotEmptyError):
                self._context.note_crowded(effect.key)
            raise Conflict(effect, str(refused)) from refused
        except SessionLost:
            raise
        except Indefinite as indefinite:
            self._context.note_begun(effect)
            if isinstance(effect, CreatePartitionState | WriteState):
                self._context.untold.add(effect.key)
            raise Uncertain(effect, str(indefinite)) from indefinite
        self._context.echoes.update(
            path
            for name, (path, *_) in operations
            if name != "check" and path.startswith(f"{TOPICS}/")
        )
        return results

    def _operations(self, effect: Write, *more: WriteAssigned) -> list[Operation]:
        """Return what a write is, with more assignments of the same topic where it is one."""
        match effect:
            case CreateReassignment(topic=topic, partition=partition, reassignment=child):
                path = reassignment_path(topic, partition)
                create: Operation = ("create", (path, encode_reassignment(child)))
                parent: Operation = ("create", (f"{REASSIGNMENTS}/{topic}", b""))
                creates = [parent, create] if effect.with_parent else [create]
                return [*_standing(effect.request), *creates]
            case UpdateReassignment(topic=topic, partition=partition, reassignment=child):
                path = reassignment_path(topic, partition)
                data = encode_reassignment(child)
                return [*_standing(effect.request), ("set_data", (path, data, effect.version))]
            case DeleteReassignment(topic=topic, partition=partition):
                path = reassignment_path(topic, partition)
                delete: Operation = ("delete", (path, effect.version))
                parent = ("delete", (f"{REASSIGNMENTS}/{topic}", -1))
                return [delete, parent] if effect.with_parent else [delete]
            case WriteAssigned(topic=topic, version=version):
                content = self._context.topic_contents[topic]
                guards: list[Operation] = []
                for each in (effect, *more):
                    content = content.replace(each.partition, each.assigned)
                    if each.state_version is not None:
                        guards.append(("check", (state_path(*each.key), each.state_version)))
                data = content.encode()
                return [*guards, ("set_data", (topic_path(topic), data, version))]
            case WriteState(topic=topic, partition=partition, state=state, version=version):
                return [("set_data", (state_path(topic, partition), encode_state(state), version))]
            case CreatePartitionState(topic=topic, partition=partition, state=state):
                above: list[Operation] = [("create", (path, b"")) for path in effect.missing]
                path = state_path(topic, partition)
                return [*above, ("create", (path, encode_state(state)))]
            case TranslateEntries() | WriteOldZnode():
                return self._operate_on_entries(effect)
            case RecordFailure() | DeleteRecord() | CreateTask() | StartTask() | RemoveTask():
                return _heal(effect)
            case DeleteRequest(path=path, version=version):
                return [("delete", (path, version))]
            case DeleteZnode(path=path):
                return [("delete", (path, -1))]
            case RemoveTopic() | RemoveSettings() | EndDeletion():
                return self._operate_on_deletion(effect)
            case EndPreferred(version=version):
                return [("delete", (PREFERRED_ELECTION, version))]
            case _:
                assert_never(effect)

    def _operate_on_deletion(self, effect: DeletionWrite) -> list[Operation]:
        path = topic_path(effect.topic)
        asked = deleted_topic_path(effect.topic)
        match effect:
            case RemoveTopic(version=version):
                below = list_subtree(self._client, path)[:-1]
                operations: list[Operation] = [("delete", (each, -1)) for each in below]
                return [("check", (asked, -1)), *operations, ("delete", (path, version))]
            case RemoveSettings():
                return [("delete", (topic_config_path(effect.topic), -1))]
            case EndDeletion():
                return [("delete", (asked, -1))]

    def _operate_on_entries(self, effect: OldZnodeWrite) -> list[Operation]:
        match effect:
            case TranslateEntries(entries=entries, version=version):
                request = RequestZnode({e.key: e.target for e in entries}, legacy=True)
                path = f"{REASSIGNMENT_REQUESTS}/{REQUEST_PREFIX}"
                create = ("create", (path, encode_request(request), None, False, True))
                return [("check", (REASSIGN_PARTITIONS, version)), create]
            case WriteOldZnode(entries=entries, version=version):
                if not entries:
                    return [("delete", (REASSIGN_PARTITIONS, version))]
                data = encode_reassign_partitions(entries)
                return [("set_data", (REASSIGN_PARTITIONS, data, version))]


def _heal(effect: HealingWrite) -> list[Operation]:
    match effect:
        case RecordFailure(broker=broker, since_ms=since_ms):
            record = (failed_broker_path(broker), encode_failed_broker(since_ms))
            return [("create", record)]
        case DeleteRecord(broker=broker):
            return [("delete", (failed_broker_path(broker), -1))]
        case CreateTask(targets=targets, automatic=automatic):
            data = encode_task(TaskZnode(dict(targets), automatic))
            path = f"{REASSIGNMENT_TASKS}/{TASK_PREFIX}"
            return [("create", (path, data, None, False, True))]
        case StartTask(number=number, targets=targets):
            data = encode_request(RequestZnode(dict(targets)))
            path = f"{REASSIGNMENT_REQUESTS}/{REQUEST_PREFIX}"
            standing = ("check", (task_path(number), -1))
            return [standing, ("create", (path, data, None, False, True))]
        case RemoveTask(number=number):
            return [("delete", (task_path(number), -1))]


def _standing(request: RequestRead | None) -> list[Operation]:
    """Return the check that a request was neither withdrawn nor changed since it was read."""
    return [] if request is None else [("check", tuple(request))]
