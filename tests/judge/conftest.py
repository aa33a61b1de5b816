"""A simulated cluster whose reference controller leaves transactions for the judge."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from history_steps import make_transaction, to_op, win

from reassure_judge.judge import Judge
from reassure_judge.live import LiveCluster
from reassure_judge.live_events import Event, Looked, Received, Rested, Wrote
from reassure_judge.messages import Told
from reassure_judge.verdicts import ClauseVerdict
from reassure_model.partition import LeaderAndIsr
from reassure_model.protocols.kip_236 import next_write
from reassure_model.writes import DeleteRequest, Write, WriteState
from reassure_spec import znodes
from reassure_spec.readings import get_profile
from reassure_spec.znodes import StateZnode
from reassure_zookeeper.transactions import CloseSession, Create, Delete, Op, Transaction

CONTROLLER_SESSION = 900
MOST_STEPS = 200
"""More writes than the reference controller needs to come to rest in any test."""


class Simulation:
    """One topic on four brokers; a judge sees every transaction as it is made."""

    def __init__(self, profile: str = "kip-236", chroot: str = "") -> None:
        self.judge = Judge(profile, get_profile(profile))
        self.chroot = chroot
        self.zxids = count(1)
        self.requests = count(0)
        self.epoch = 0
        self.history: list[Transaction] = []

    def write(self, *ops: Op, session: int, fenced: bool = False) -> int:
        """Commit ops as one transaction, under an epoch check if fenced; return its zxid."""
        zxid, fence = next(self.zxids), self.epoch + 1 if fenced else None
        where = {"session": session, "time_ms": zxid * 100_000, "chroot": self.chroot}
        transaction = make_transaction(*ops, zxid=zxid, fence=fence, **where)
        self.history.append(transaction)
        self.judge.feed(transaction)
        return zxid

    def path(self, path: str) -> str:
        """Return the path under this cluster's chroot."""
        return self.chroot + path

    def start(self, brokers: int = 4, assigned: tuple[int, ...] = (1, 2)) -> None:
        """Register brokers 1 to n, elect a controller and bring orders-0 online."""
        for broker in range(1, brokers + 1):
            self.register(broker)
        epoch_path = self.path(znodes.CONTROLLER_EPOCH)
        self.write(Create(epoch_path, b"0"), session=CONTROLLER_SESSION)
        self.elect()
        topic = znodes.encode_topic({0: assigned})
        self.write(Create(self.path(znodes.topic_path("orders")), topic), session=1)
        self.run()

    def register(self, broker: int) -> None:
        """Register a broker; its session has its own number."""
        config = self.path(znodes.broker_config_path(broker))
        self.write(Create(config, znodes.encode_config({})), session=broker)
        registration = znodes.encode_broker("127.0.0.1", 9092, 0)
        path = self.path(znodes.broker_path(broker))
        self.write(Create(path, registration, ephemeral=True), session=broker)

    def come_back(self, broker: int) -> int:
        """Register a broker in a new session."""
        data = znodes.encode_broker("127.0.0.1", 9092, 0)
        again = Create(self.path(znodes.broker_path(broker)), data, ephemeral=True)
        return self.write(again, session=broker + 40)

    def die(self, broker: int) -> None:
        """End a broker's session."""
        path = self.path(znodes.broker_path(broker))
        self.write(CloseSession((path,)), session=broker)

    def elect(self, session: int = CONTROLLER_SESSION, *, ephemeral: bool = True) -> int:
        """Elect a controller; the one before is forgotten."""
        if self.epoch:
            self.write(Delete(self.path(znodes.CONTROLLER)), session=CONTROLLER_SESSION)
        self.epoch += 1
        office, epoch = win(1, self.epoch, chroot=self.chroot)
        return self.write(replace(office, ephemeral=ephemeral), epoch, session=session)

    def submit(self, *target: int, partition: int = 0, topic: str = "orders") -> int:
        """Submit a request; return its sequence number."""
        sequence = next(self.requests)
        data = znodes.encode_request(znodes.RequestZnode({(topic, partition): target}))
        self.write(Create(self.path(znodes.request_path(sequence)), data), session=50)
        return sequence

    @property
    def partition(self) -> object:
        """The partition as the judge sees it."""
        return self.judge.view(self.chroot).partitions["orders", 0]

    @property
    def state(self) -> LeaderAndIsr:
        """Leader and in-sync replicas as the judge sees them."""
        state = self.judge.view(self.chroot).partitions["orders", 0].state
        assert state is not None
        return state

    def change_isr(self, *isr: int, session: int | None = None) -> int:
        """Write another in-sync set as the leader does."""
        state = replace(self.state, isr=isr)
        session = state.leader if session is None else session
        return self.write(self.state_op(state), session=session)

    def raised(self, **changes: Any) -> WriteState:
        """Return a controller's write of the state with the next epoch and these changes."""
        state = self.state
        return WriteState(replace(state, leader_epoch=state.leader_epoch + 1, **changes))

    def perform_raised(self, **changes: Any) -> int:
        """Write the state as the controller, with the next epoch and these changes."""
        return self.perform(self.raised(**changes))

    def in_flight(self, *target: int, until: type = DeleteRequest) -> None:
        """Submit a request and let the controller work until it would write such a thing."""
        self.submit(*target)
        for write in self.steps():
            if isinstance(write, until):
                return
            self.perform(write)

    def verdict(self, clause: str) -> ClauseVerdict:
        """Return the verdict on a clause."""
        return next(verdict for verdict in self.judge.report().verdicts if verdict.id == clause)

    def state_op(self, state: LeaderAndIsr) -> Op:
        """Return the write of a partition state."""
        return self.find_op(WriteState(state))

    def perform(self, write: Write, *, fenced: bool = True) -> int:
        """Carry out a write of the model as the controller does; return its zxid."""
        return self.write(self.find_op(write), session=CONTROLLER_SESSION, fenced=fenced)

    def find_op(self, write: Write) -> Op:
        """Return the operation that a write of the model is."""
        return to_op(write, "orders", self.chroot)

    def steps(self) -> Iterator[Write]:
        """Yield what the reference controller owes, one write at a time; the caller performs it."""
        for _ in range(MOST_STEPS):
            history = self.judge.router.get_cluster(self.chroot)
            around = history.get_surroundings("orders")
            partition = self.judge.view(self.chroot).partitions["orders", 0]
            owed = next_write(partition, around, self.judge.readings)
            if owed is None:
                return
            yield owed.write
        raise AssertionError(f"after {MOST_STEPS} writes this is still owed: {owed}")

    def run(self) -> None:
        """Let the reference controller do all that it owes, and rest."""
        for write in self.steps():
            self.perform(write)
        self.judge.quiesce(self.chroot)

    def broken(self) -> list[tuple[str, int]]:
        """Return clause and zxid of every violation, where nobody there is about to stop."""
        for tracker in self.judge.tracking.partitions.values():
            tracker.suspicions.rest()
        return [(violation.clause, violation.zxid) for violation in self.judge.violations]


class DrivenSimulation(Simulation):
    """A simulated cluster of which everything is handed over."""

    def __init__(self, profile: str, **known: Any) -> None:
        super().__init__(profile)
        self.live = LiveCluster(self.judge, self.chroot, **known)
        self.found: list[str] = []

    def hand_over(self, event: Event) -> None:
        """Hand an event over and keep the clauses that were broken."""
        self.found += [each.clause for batch in self.live.take(event) for each in batch]

    def write(self, *ops: Op, session: int, fenced: bool = False) -> int:
        """Commit ops as one transaction, and hand it over."""
        before = self.judge.view()
        zxid = super().write(*ops, session=session, fenced=fenced)
        self.hand_over(Wrote(self.history[-1], before, self.judge.view()))
        return zxid

    def tell(
        self, broker: int, *, zxid: int, replicas: tuple[int, ...] | None = None, **said: Any
    ) -> None:
        """Tell a broker the state as it is stored, or without replicas to delete its own.

        What is `said` besides are fields of `Told`.
        """
        state = None
        if replicas is not None:
            now = self.state
            state = StateZnode(now.leader, now.leader_epoch, now.controller_epoch, now.isr)
        delete = replicas is None
        told = Told(
            broker, "orders", 0, self.epoch, state, replicas or (), delete=delete, zxid=zxid
        )
        self.hand_over(Received(replace(told, **said)))

    def look(self, *, rests: bool = True) -> None:
        """Hand over that all has been handed over."""
        view = self.judge.view()
        if rests:
            self.hand_over(Rested(view))
        self.hand_over(Looked(view, view.live, rests))

    def counted(self, clause_id: str) -> int:
        """Return how often a clause was put to the test."""
        return self.judge.exercised[clause_id]


@pytest.fixture
def simulation() -> Simulation:
    """A started cluster with orders-0 on brokers 1 and 2, profile kip-236."""
    cluster = Simulation()
    cluster.start()
    return cluster


@pytest.fixture
def make_simulation() -> type[Simulation]:
    """The class, for clusters that begin otherwise."""
    return Simulation


@pytest.fixture
def drive() -> Callable[..., DrivenSimulation]:
    """Start a driven cluster of four brokers with orders-0 on brokers 1 and 2."""

    def start(profile: str, **known: Any) -> DrivenSimulation:
        cluster = DrivenSimulation(profile, **known)
        cluster.start()
        return cluster

    return start
