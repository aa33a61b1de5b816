"""Histories that walks of the model leave: what would stand in a log had a cluster gone that way.

A walk keeps a state of the model. Each action is taken there first, so that the rules have their
say, and then written as whoever takes it would: a controller under its fence, a leader in its own
session, a client in its. The controller does what the model's own functions owe.

One request may name several partitions, and the model removes it from each by itself. Its znode
goes with the last of them, so a later one is not touched before.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, Generic, TypeVar

import healed
from healed import Healed, make_healed

from reassure_judge.judge import Judge
from reassure_judge.moments import Witness
from reassure_lab.archives.sample import SampleCluster
from reassure_lab.protocols.kip_236.ops import WrittenTopic, list_ops
from reassure_model.environment import Die, Failover, Join, Leave, NotPossible, On, Return
from reassure_model.outcome import Rejected
from reassure_model.partition import Partition
from reassure_model.protocols import kip_46, kip_236_legacy
from reassure_model.protocols.kip_46 import (
    Assignments,
    CreateTask,
    DeleteRecord,
    HealingConfig,
    RecordFailure,
    RemoveTask,
    StartTask,
    Submit,
    Tick,
)
from reassure_model.protocols.kip_236 import next_write
from reassure_model.protocols.kip_236.batch import Batch, WriteOwed
from reassure_model.protocols.kip_236_legacy import (
    Ask,
    DeleteLegacy,
    Legacy,
    RewriteZnode,
    Translate,
    WriteLegacy,
    make_legacy,
    next_for_znode,
    remove_completed,
)
from reassure_model.writes import (
    CreateReassignment,
    DeleteRequest,
    UpdateReassignment,
    Write,
    WriteState,
)
from reassure_spec import znodes
from reassure_spec.readings import Readings, get_profile
from reassure_spec.znodes import PartitionKey, ReplicaList, RequestZnode
from reassure_zookeeper.transactions import Create, Delete, Op, SetData, Transaction

_FIRST_CONTROLLER: Final = 900
"""Controllers write in sessions of their own, and outlive brokers."""
_LEADER_SESSION: Final = 0x2000

State = TypeVar("State", bound=Batch)


class Walk(ABC, Generic[State]):
    """A walk of one of the model's machines, and the transactions that it leaves."""

    def __init__(self, state: State, profile: str, readings: Readings | None = None) -> None:
        self.readings = get_profile(profile) if readings is None else readings
        self.cluster = SampleCluster(max(state.live))
        self.state = state
        self._open: dict[int, set[PartitionKey]] = {}
        """Requests that are there, and the partitions that have not done with them."""
        self._controllers = 0
        self._elect()
        self.state = replace(state, controller_epoch=self.cluster.epoch)
        for topic in sorted({key[0] for key, _ in state.partitions}):
            there = {key[1]: p for key, p in state.partitions if key[0] == topic}
            data = znodes.encode_topic(_list_assigned(there))
            self.cluster.append(self.cluster.create(znodes.topic_path(topic), data))

    @property
    def transactions(self) -> list[Transaction]:
        """All that was written so far."""
        return self.cluster.transactions

    # What anybody does ----------------------------------------------------------------------------

    def take(self, action: object) -> int:
        """Take an action and write it; answer its zxid, or that of the last write if it has none.

        Raises NotPossible for one that has nothing to act upon, or that the rules reject.
        """
        self._step(action)
        match action:
            case Die(broker):
                self.cluster.kill(broker)
            case Return(broker):
                self.cluster.register(broker)
            case Failover():
                self._elect()
            case On(key, Join() | Leave()):
                self._write_isr(key)
            case _:
                self._write_action(action)
        return self.cluster.zxid

    def run(self, limit: int = 300) -> int:
        """Let the controller do all that it owes; answer the last zxid."""
        for _ in range(limit):
            if not self.control():
                return self.cluster.zxid
        raise RuntimeError(f"after {limit} steps something is still owed: {self.find_step()}")

    def control(self) -> bool:
        """Let the controller take its next step; answer whether there was one."""
        step = self.find_step()
        if step is None:
            return False
        self._carry_out(step)
        if isinstance(step, WriteOwed):
            self._write_owed(step)
        else:
            self.write_effect(step)
        return True

    def join_all(self) -> None:
        """Let every live replica that is assigned catch up, where there is a leader."""
        for key, partition in self.state.partitions:
            for replica in partition.assigned or ():
                if partition.state is not None and replica not in partition.state.isr:
                    try:
                        self.take(On(key, Join(replica)))
                    except NotPossible:
                        continue

    def settle(self, limit: int = 30) -> int:
        """Let controller and followers act until nothing changes; answer the last zxid."""
        for _ in range(limit):
            zxid = self.run()
            self.join_all()
            if self.cluster.zxid == zxid:
                return zxid
        raise RuntimeError(f"it does not come to an end: {self.state}")

    @abstractmethod
    def find_step(self) -> object | None:
        """Return what the controller does next, None while it waits."""

    @abstractmethod
    def _step(self, action: object) -> None:
        """Take an action in the model. Raises NotPossible."""

    @abstractmethod
    def _carry_out(self, step: object) -> None:
        """Carry out a step of the controller in the model."""

    def _accept(self, what: object, outcome: Any) -> None:
        """Go on in what something comes to. Raises NotPossible where the rules reject it."""
        if isinstance(outcome, Rejected):
            raise NotPossible(f"{what}: {outcome}")
        self.state = outcome.state

    @abstractmethod
    def _write_action(self, action: object) -> None:
        """Write what an action of the protocol's own leaves."""

    @abstractmethod
    def write_effect(self, step: object) -> None:
        """Write what a step of the protocol's own leaves, whether or not it is owed."""

    def find_owed(self) -> WriteOwed | None:
        """Return the write that is owed to the first partition; requests are taken in order."""
        heads = [p.requests[0].sequence for _, p in self.state.partitions if p.requests]
        for key, partition in self.state.partitions:
            owed = next_write(partition, self.state.as_system(key).around, self.readings)
            if owed is None:
                continue
            on_queue = isinstance(
                owed.write, CreateReassignment | UpdateReassignment | DeleteRequest
            )
            if not on_queue or partition.requests[0].sequence == min(heads):
                return WriteOwed(key, owed)
        return None

    # Writing --------------------------------------------------------------------------------------

    def _elect(self) -> None:
        self.cluster.append(self.cluster.delete(znodes.CONTROLLER))
        self._controllers += 1
        self.cluster.elect(_FIRST_CONTROLLER + self._controllers)

    def _write_isr(self, key: PartitionKey) -> None:
        state = self.state.get(key).state
        assert state is not None
        ops = list_ops(self.cluster, key, WriteState(state), WrittenTopic({}))
        self.cluster.append(*ops, session=_LEADER_SESSION + state.leader)

    def submit(
        self, assignments: Mapping[PartitionKey, ReplicaList], *, legacy: bool = False
    ) -> Op:
        """Return the op that makes the request that was made last."""
        sequence = self.state.next_sequence - 1
        self._open[sequence] = set(assignments)
        data = znodes.encode_request(RequestZnode(assignments, legacy))
        return self.cluster.create(znodes.request_path(sequence), data)

    def _write_owed(self, due: WriteOwed) -> None:
        write, key = due.owed.write, due.key
        if isinstance(write, DeleteRequest):
            left = self._open[write.sequence]
            left.discard(key)
            if left:
                return
        self.cluster.control(*self.find_ops(key, write))

    def find_ops(self, key: PartitionKey, write: Write) -> tuple[Op, ...]:
        """Return the operations that a write to a partition is."""
        there = {each[1]: p for each, p in self.state.partitions if each[0] == key[0]}
        in_flight = {number for number, p in there.items() if p.reassignment is not None}
        return list_ops(self.cluster, key, write, WrittenTopic(_list_assigned(there), in_flight))


def _list_assigned(partitions: Mapping[int, Partition]) -> dict[int, ReplicaList]:
    """Return what the znode of a topic holds."""
    listed = {number: partition.assigned for number, partition in partitions.items()}
    return {n: a for n, a in listed.items() if a is not None}


class LegacyWalk(Walk[Legacy]):
    """A walk of the request protocol with the old znode."""

    def __init__(
        self,
        assignments: Mapping[PartitionKey, ReplicaList],
        brokers: int,
        readings: Readings | None = None,
    ) -> None:
        members = frozenset(range(1, brokers + 1))
        super().__init__(make_legacy(assignments, members), "kip-236-legacy", readings)

    def find_step(self) -> WriteOwed | kip_236_legacy.Effect | None:
        """Return what the controller does next."""
        due = self.find_owed()
        if due is None:
            return next_for_znode(self.state, self.readings)
        return remove_completed(self.state, due.key, due.owed) or due

    def _step(self, action: object) -> None:
        given: Any = action
        self._accept(action, kip_236_legacy.step(self.state, given, self.readings))

    def _carry_out(self, step: object) -> None:
        given: Any = step
        self._accept(step, kip_236_legacy.apply_effect(self.state, given, self.readings))

    def _write_action(self, action: object) -> None:
        path, cluster = znodes.REASSIGN_PARTITIONS, self.cluster
        match action:
            case WriteLegacy(entries):
                data = znodes.encode_reassign_partitions(entries)
                make = cluster.put if cluster.knows(path) else cluster.create
                cluster.append(make(path, data))
            case DeleteLegacy():
                cluster.append(cluster.delete(path))
            case Ask(assignments, legacy):
                cluster.append(self.submit(dict(assignments), legacy=legacy))

    def write_effect(self, step: object) -> None:
        """Write a translation, or what is left of the old znode."""
        path, cluster = znodes.REASSIGN_PARTITIONS, self.cluster
        match step:
            case Translate(entries):
                asked = {entry.key: entry.target for entry in entries}
                cluster.control(self.submit(asked, legacy=True))
            case RewriteZnode(()):
                cluster.control(cluster.delete(path))
            case RewriteZnode(entries):
                cluster.control(cluster.put(path, znodes.encode_reassign_partitions(entries)))


class HealingWalk(Walk[Healed]):
    """A walk of healing on top of the request protocol."""

    def __init__(
        self,
        assignments: Mapping[PartitionKey, ReplicaList],
        brokers: int,
        readings: Readings | None = None,
        config: HealingConfig | None = None,
    ) -> None:
        self.config = HealingConfig() if config is None else config
        racks = dict.fromkeys(range(1, brokers + 1))
        super().__init__(make_healed(racks, assignments), "kip-46", readings)
        cluster = self.cluster
        for path in (znodes.FAILED_BROKERS, znodes.REASSIGNMENT_TASKS):
            cluster.append(cluster.create(path))

    def find_step(self) -> WriteOwed | kip_46.Effect | None:
        """Return what the controller does next."""
        due = self.find_owed()
        return due or healed.next_step(self.state, self.config, self.readings)

    def _step(self, action: object) -> None:
        given: Any = action
        self._accept(action, healed.step(self.state, given, self.config, self.readings))

    def _carry_out(self, step: object) -> None:
        given: Any = step
        before = self.state
        self._accept(step, healed.carry_out(before, given, self.readings))

    def _write_action(self, action: object) -> None:
        match action:
            case Tick(milliseconds):
                self.cluster.time_ms += milliseconds
            case Submit(assignments):
                self.cluster.append(self.make_task(assignments, automatic=False))

    def make_task(self, assignments: Assignments, *, automatic: bool) -> Op:
        """Return the op that makes the task that was numbered last."""
        data = znodes.encode_task(znodes.TaskZnode(dict(assignments), automatic))
        return self.cluster.create(znodes.task_path(self.state.next_number - 1), data)

    def write_effect(self, step: object) -> None:
        """Write a record, a task, or the request that starts one."""
        cluster = self.cluster
        match step:
            case RecordFailure(broker, since):
                data = znodes.encode_failed_broker(since)
                cluster.control(cluster.create(znodes.failed_broker_path(broker), data))
            case DeleteRecord(broker):
                cluster.control(cluster.delete(znodes.failed_broker_path(broker)))
            case CreateTask(assignments):
                cluster.control(self.make_task(assignments, automatic=True))
            case StartTask(asked):
                cluster.control(self.submit(dict(asked)))
            case RemoveTask(number):
                cluster.control(cluster.delete(znodes.task_path(number)))


class JudgedWalk:
    """A walk that a judge follows; wherever the controller has nothing to do the cluster rests."""

    def __init__(
        self, walk: LegacyWalk | HealingWalk, profile: str, witness: Witness | None = None
    ) -> None:
        self.walk: Any = walk
        self.judge = Judge(profile, walk.readings, witness=witness)
        self._fed = 0
        self.rest()

    def feed(self) -> None:
        """Let the judge read what was written since."""
        for transaction in self.walk.transactions[self._fed :]:
            self.judge.feed(transaction)
        self._fed = len(self.walk.transactions)

    def rest(self) -> None:
        """Let the controller do all that it owes, and rest."""
        self.walk.run()
        self.look_at_rest()

    def look_at_rest(self) -> None:
        """Tell the judge that the cluster rests."""
        self.feed()
        self.judge.quiesce()

    def take(self, *actions: object) -> None:
        """Take actions; at "rest" the cluster rests, at a kind a step of it is about to come."""
        for action in actions:
            if action == "rest":
                self.rest()
            elif isinstance(action, type):
                self.until(action)
            else:
                self.walk.take(action)
        self.feed()

    def play(self, moves: Iterable[tuple[int, Callable[[], object]]]) -> None:
        """Take so many steps of the controller, then an action; none where it is not possible."""
        for steps, make in moves:
            for _ in range(steps):
                self.walk.control()
            try:
                self.take(*() if steps else (make(),))
            except NotPossible:
                continue

    def finish(self) -> None:
        """Let everybody act until nothing changes, resting in between."""
        for _ in range(40):
            self.rest()
            zxid = self.walk.cluster.zxid
            self.walk.join_all()
            if self.walk.cluster.zxid == zxid:
                return

    def fail_over_at(self, place: int, rounds: int, *each: object) -> None:
        """Let the controller act for some rounds, and another one follow it after so many steps."""
        steps = 0
        for _ in range(rounds):
            while steps != place and self.walk.control():
                steps += 1
            if steps == place:
                self.take(Failover())
                steps += 1
            self.take(*each)
            self.walk.join_all()
        self.finish()

    def until(self, kind: type) -> object:
        """Let everybody act until the controller is about to take a step of a kind; return it."""
        for _ in range(100):
            step = self.walk.find_step()
            if isinstance(step, kind):
                self.feed()
                return step
            if step is None:
                self.look_at_rest()
                self.walk.join_all()
            else:
                self.walk.control()
        raise AssertionError(f"no {kind.__name__} comes")

    def broken(self) -> list[tuple[str, int]]:
        """Return clause and zxid of each violation."""
        self.feed()
        for tracker in self.judge.tracking.partitions.values():
            tracker.suspicions.rest()
        return [(each.clause, each.zxid) for each in self.judge.violations]

    def exercised(self) -> set[str]:
        """Return the clauses that were put to the test."""
        self.feed()
        return {name for name, times in self.judge.exercised.items() if times}

    def verdict(self, clause_id: str) -> str:
        """Return the verdict on a clause."""
        verdicts = {each.id: each.verdict for each in self.judge.report().verdicts}
        return verdicts[clause_id]

    def judge_anew(self, profile: str) -> Judge:
        """Return another judge that has read it all, and was never told that the cluster rests."""
        judge = Judge(profile, get_profile(profile))
        for transaction in self.walk.transactions:
            judge.feed(transaction)
        return judge

    def control(self, *ops: Op, fenced: bool = True) -> int:
        """Write as the controller what the model does not owe."""
        zxid: int = self.walk.cluster.control(*ops, fenced=fenced)
        self.feed()
        return zxid

    def client(self, *ops: Op, session: int = 0) -> int:
        """Write as a client, or in some other session."""
        zxid: int = self.walk.cluster.append(*ops, **({"session": session} if session else {}))
        self.feed()
        return zxid


def on(make: Callable[[], Any], write: Callable[[Any], int]) -> Callable[[], tuple[Any, int]]:
    """Return the mistake that is made by a write in a situation."""

    def plant() -> tuple[Any, int]:
        judged = make()
        return judged, write(judged)

    return plant


def find_unplanted(
    lives: Mapping[str, Any], planted: Iterable[tuple[str, Callable[[], tuple[Any, int]]]]
) -> set[tuple[str, str, str]]:
    """Return the rules about each kind of znode, and each way to write it, that nothing breaks."""
    acts, found = {Create: "create", SetData: "change", Delete: "remove"}, set()
    for clause, plant in planted:
        judged, zxid = plant()
        for op in next(t.ops for t in judged.walk.transactions if t.zxid == zxid):
            kind = judged.judge.router.locate(getattr(op, "path", ""))[0]
            found.add((kind, acts.get(type(op)), clause))
    return {
        (kind, act, clause)
        for kind, life in lives.items()
        for act in acts.values()
        for clause in getattr(life, act)
    } - found
