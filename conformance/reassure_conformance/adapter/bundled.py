"""The adapter over the bundled controller: with `replicating`, what runs it for this room.

Controllers and brokers are objects stepped in the caller's thread: nothing happens but in a call.
Messages travel through `LocalTransport`, at once. Every broker has a ZooKeeper client of its own
that is kept over the examples, since starting clients would cost more than the examples do; an
example's chroot is set on it and its registration is deleted at the end.

A *process* is a controller with its client. It acts or is a candidate; it is held when a budget of
effects was given to it; it sleeps when that budget is spent with an effect waiting.
"""

import contextlib
import logging
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Final

from reassure_conformance.adapter import (
    CAPABILITIES,
    DELETION,
    PREFERRED,
    SHUTDOWN,
    Description,
    Reply,
)
from reassure_conformance.adapter.losing import keep_writes, lose_write
from reassure_conformance.adapter.world import REAL, World
from reassure_conformance.mutants import check_faults, plants
from reassure_conformance.report.document import get_version
from reassure_controller.broker import Broker, Replication
from reassure_controller.client import Client
from reassure_controller.context import LiveBroker
from reassure_controller.controller import Controller, NotQuiet
from reassure_controller.elections import NOT_CONTROLLER, Shutdown
from reassure_controller.messages import LeaderAndIsr, Message, StatesMoved, StopReplica
from reassure_controller.rules import Rules, list_settable
from reassure_controller.session import connect
from reassure_controller.transport import Answered, LocalTransport
from reassure_judge.messages import OPTIONAL_FIELDS, Told, ToldStates
from reassure_spec.profiles import DEFAULT_PROFILE, has_protocol
from reassure_spec.rooms import choose_readings, controller_of
from reassure_spec.znodes import StateZnode
from reassure_zookeeper.errors import FaultError

log = logging.getLogger(__name__)

FIRST_CONTROLLER: Final = 1001
"""Id of the first controller process of an example; they are not brokers."""
SESSION_TIMEOUT_S: Final = 30.0
RECONNECT_S: Final = 5.0
FAILURE_INTERVAL_MS: Final = 1000
"""How long a broker is away before its replicas are placed elsewhere, where a profile does that."""
PARTITIONS_PER_TASK: Final = 2


def _read_settings(*words: str) -> tuple[object, ...]:
    """Return what an operator sets by these words of a command line, for whichever protocols."""
    parser = ArgumentParser()
    for module in list_settable():
        module.add_options(parser)
    arguments = parser.parse_args(words)
    return tuple(module.read_options(arguments) for module in list_settable())


SETTINGS: Final = _read_settings(
    *("--failure-interval", str(FAILURE_INTERVAL_MS)),
    *("--partitions-per-task", str(PARTITIONS_PER_TASK)),
)


def list_capabilities(profile: str) -> frozenset[str]:
    """Return what the bundled controller is driven to under a profile."""
    topics = frozenset() if has_protocol(profile, "topics") else {DELETION, PREFERRED, SHUTDOWN}
    return frozenset(CAPABILITIES) - topics


@dataclass(slots=True, eq=False)
class _Process:
    """One controller process."""

    controller: Controller
    client: Client
    budget: int | None = None
    """Effects that are left before it stops; None where it is not held."""
    asleep: bool = False
    """Whether it stopped there, its plan in memory."""
    expired: bool = False
    """Whether its session was ended while it slept."""
    cut: tuple[int, bytes] | None = None
    """The session whose connection was cut, None where none was."""


class _Wire:
    """What one controller sends by, which keeps in `received` what brokers received of it.

    Brokers carry out LeaderAndIsr and never answer it: whoever waits for that comes no further.
    """

    def __init__(
        self, client: Client, to: LocalTransport, received: list[Told | ToldStates]
    ) -> None:
        self._client = client
        self._to = to
        self._received = received

    def send(self, broker: LiveBroker, message: Message) -> "Answered | Future[Answered]":
        """Deliver the message and note it, unless nobody is there to receive it."""
        answer = self._to.send(broker, message)
        if answer is not None and isinstance(message, LeaderAndIsr | StopReplica):
            self._received.append(_read_message(broker.id, message, self._client.last_zxid))
            if isinstance(message, LeaderAndIsr):
                return Future()
        return answer

    def hear(self, moved: StatesMoved) -> None:
        """Note where the controller has taken a partition and its replicas."""
        self._received.append(ToldStates(**asdict(moved)))


def _read_message(broker: int, message: LeaderAndIsr | StopReplica, zxid: int) -> Told:
    said = {name: getattr(message, name) for name in OPTIONAL_FIELDS if hasattr(message, name)}
    where = (broker, message.topic, message.partition, message.controller_epoch)
    if isinstance(message, StopReplica):
        return Told(*where, None, delete=message.delete, zxid=zxid, **said)
    del said["leader_epoch"]
    state = StateZnode(
        leader=message.leader,
        leader_epoch=message.leader_epoch,
        controller_epoch=message.state_controller_epoch,
        isr=message.isr,
    )
    return Told(*where, state, message.replicas, zxid=zxid, answered=False, **said)


@plants(attrgetter("_faults"))
class Bundled:
    """Adapter of the bundled controller, with every capability.

    `faults` are names of planted faults, which are there while the adapter is called; one
    comma-separated text is accepted, so that they can stand in a connectable. `make_controller` is
    called like the class, for one that decides otherwise; clients and time are those of `world`.
    Raises UnknownFault, UnknownReading, RefusedReading.
    """

    def __init__(
        self,
        *,
        profile: str = DEFAULT_PROFILE,
        readings: Mapping[str, str] | None = None,
        faults: tuple[str, ...] | str = (),
        make_controller: Callable[..., Controller] = Controller,
        world: World = REAL,
    ) -> None:
        if isinstance(faults, str):
            faults = tuple(filter(None, faults.split(",")))
        self._faults = check_faults(faults)
        self._make_controller = make_controller
        self._world = world
        self._profile = profile
        self._changes = dict(readings or {})
        self._readings = choose_readings(controller_of(profile), profile, self._changes)
        Rules(self._readings, profile)  # or nobody carries the profile out
        self._hosts = ""
        self._chroot = ""
        self._transport = LocalTransport()
        self._received: list[Told | ToldStates] = []
        self._broker_clients: dict[int, Client] = {}
        self._spare: list[Client] = []
        self._brokers: dict[int, Broker] = {}
        self._stopping: dict[int, Shutdown | None] = {}
        """By broker that wants to stop, what will have the answer; None where nobody was asked."""
        self._processes: list[_Process] = []
        self._next_id = FIRST_CONTROLLER
        self._next_budget: int | None = None
        self._now_ms = 0

    def describe(self) -> Description:
        """Say what the bundled controller is; planted faults are part of its name."""
        name = "reassure-controller"
        if self._faults:
            name += " with " + ", ".join(sorted(self._faults))
        return Description(
            name=name,
            version=get_version(),
            language="Python",
            profile=self._profile,
            readings=self._changes,
            capabilities=list_capabilities(self._profile),
            failure_interval_ms=FAILURE_INTERVAL_MS,
            partitions_per_task=PARTITIONS_PER_TASK,
        )

    # -- examples

    def start(self, hosts: str, chroot: str, brokers: tuple[int, ...]) -> None:
        """Register the brokers in the chroot and elect a controller."""
        self._hosts, self._chroot = hosts, chroot
        self._transport = LocalTransport()
        self._received.clear()
        self._brokers = {}
        self._stopping = {}
        self._processes = []
        self._next_id = FIRST_CONTROLLER
        self._next_budget = None
        self._now_ms = self._world.now_ms()
        for broker in brokers:
            self.start_broker(broker)
        self.elect()

    def stop(self) -> None:
        """Give up the term; keep the clients for the next example.

        The brokers stay registered in the chroot that is left behind: nobody looks there again, and
        deleting them would cost a round trip each.
        """
        self._brokers = {}
        self._keep_writes()
        for process in self._processes:
            if process.expired or process.asleep:
                self._end(process)
                continue
            process.controller.resign()
            process.client.state_listeners.clear()
            self._spare.append(process.client)
        self._processes = []

    def close(self) -> None:
        """End every client."""
        with contextlib.suppress(Exception):
            self.stop()
        for client in (*self._broker_clients.values(), *self._spare):
            client.stop()
            client.close()
        self._broker_clients, self._spare = {}, []

    def settle(self, timeout_s: float) -> bool:
        """Let every process that is awake work until none of them finds anything to do."""
        deadline = self._world.monotonic() + timeout_s
        awake = [process for process in self._processes if not process.asleep]
        worked = True
        while worked and awake:
            worked = False
            self._ask_to_stop()
            for process in awake:
                try:
                    left = max(0.05, deadline - self._world.monotonic())
                    result = process.controller.drain(left, process.budget)
                except NotQuiet as busy:
                    log.warning("%s", busy)
                    return False
                if process.budget is not None:
                    process.budget -= result.effects_done
                    process.asleep = result.held
                # One that works alone has drained all there is; two can make work for each other.
                worked = worked or (result.effects_done > 0 and len(awake) > 1)
            worked = self._stop_answered() or worked
            awake = [process for process in awake if not process.asleep]
        return self._acting() is not None and all(not p.asleep for p in self._processes)

    def _acting(self) -> _Process | None:
        """Return the process that acts as controller, the latest elected where several think so."""
        acting = [p for p in self._processes if p.controller.is_active and not p.expired]
        return max(acting, key=lambda p: p.controller.epoch, default=None)

    # -- brokers

    _replicate: Replication | None = None
    """Makes the logs of a broker, None where brokers keep none."""

    def start_broker(self, broker: int) -> Reply:
        """Register a broker on its own client."""
        client = self._broker_clients.get(broker)
        if client is None:
            client = self._broker_clients[broker] = self._connect()
        client.chroot = self._chroot
        agent = Broker(
            client,
            broker,
            self._transport,
            owns_client=False,
            clock_ms=self._world.now_ms,
            replication=self._replicate,
        )
        agent.register()
        self._brokers[broker] = agent
        return Reply.OK

    def stop_broker(self, broker: int) -> Reply:
        """Delete a broker's registration; its memory is gone."""
        agent = self._brokers.pop(broker, None)
        self._stopping.pop(broker, None)
        if agent is None:
            return Reply.REFUSED
        agent.stop()
        return Reply.OK

    def shut_down_broker(self, broker: int) -> Reply:
        """Have a broker ask to stop; it ends in `settle`, when it has an answer."""
        if broker not in self._brokers:
            return Reply.REFUSED
        self._stopping.setdefault(broker, None)
        return Reply.OK

    def _ask_to_stop(self) -> None:
        """Tell the acting controller of those who were not heard yet."""
        process = self._acting()
        for broker in [b for b, asked in self._stopping.items() if asked is None]:
            epoch = self._brokers[broker].find_broker_epoch(broker)
            if process is not None and epoch is not None:
                self._stopping[broker] = process.controller.ask(Shutdown(broker, epoch))

    def _stop_answered(self) -> bool:
        """End the brokers that have an answer; return whether there is anything to do by that."""
        answers = [(b, a) for b, a in self._stopping.items() if a is not None]
        answered = [(b, a) for b, a in answers if a.answered.is_set()]
        for broker, asked in answered:
            if asked.error == NOT_CONTROLLER:
                self._stopping[broker] = None
            else:
                self.stop_broker(broker)
        return bool(answered)

    def change_isr(self, broker: int, topic: str, partition: int, *, joins: bool) -> Reply:
        """Have whoever takes itself for the leader change the in-sync set."""
        change = {"add": broker} if joins else {"remove": broker}
        for agent in self._brokers.values():
            if agent.leads(topic, partition):
                return Reply(agent.change_isr(topic, partition, **change))
        return Reply.REFUSED

    def take_messages(self) -> list[Told | ToldStates]:
        """Return what brokers received since the last call."""
        received = list(self._received)
        self._received.clear()
        return received

    # -- controllers

    def hold(self, effects: int) -> Reply:
        """Give the acting controller a budget of effects, or the next one where none acts.

        One that is asleep goes on with it.
        """
        process = self._acting()
        if process is None:
            self._next_budget = effects
        else:
            process.budget, process.asleep = effects, False
        return Reply.OK

    def resume(self) -> Reply:
        """Lift every budget, and lose no write that was not lost yet."""
        self._next_budget = None
        self._keep_writes()
        for process in self._processes:
            process.budget = None
            process.asleep = process.expired = False
        return Reply.OK

    def advance(self, milliseconds: int) -> Reply:
        """Let time pass on the controllers' clock."""
        self._now_ms += milliseconds
        return Reply.OK

    def kill_controller(self) -> Reply:
        """Close the acting controller's session; its process is gone."""
        process = self._acting()
        if process is None:
            return Reply.REFUSED
        self._end(process)
        self._processes.remove(process)
        return Reply.OK

    def elect(self) -> Reply:
        """Let one that stands by, or else a new process, stand for election.

        One that stands by has acted before, and has lost its term since.
        """
        process = next((p for p in self._processes if self._stands_by(p)), None)
        if process is None:
            process = self._start_process()
        process.budget, self._next_budget = self._next_budget, None
        return Reply.OK if process.controller.contend() else Reply.REFUSED

    def _stands_by(self, process: _Process) -> bool:
        free = not (process.asleep or process.expired or process.controller.is_active)
        return free and bool(process.client.connected)

    def _start_process(self) -> _Process:
        client = self._spare.pop() if self._spare else self._connect()
        client.chroot = self._chroot
        controller = self._make_controller(
            client,
            self._next_id,
            _Wire(client, self._transport, self._received),
            self._readings,
            lambda: self._now_ms,
            profile=self._profile,
            settings=SETTINGS,
        )
        self._next_id += 1
        process = _Process(controller, client)
        self._processes.append(process)
        return process

    def expire_session(self) -> Reply:
        """End the acting controller's session; where it is held it sleeps through the loss.

        A sleeper's client is given time to come back with another session, as it is then that a
        process that wakes up can do harm.
        """
        process = self._acting()
        if process is None:
            return Reply.REFUSED
        lost = self._await_session(process.client)
        if lost is None:
            return Reply.REFUSED
        try:
            self._world.expire_session(self._hosts, lost)
        except FaultError:
            return Reply.UNKNOWN
        self._await_session(process.client, lost[0])
        if process.budget is not None:
            process.asleep = process.expired = True
        return Reply.OK

    def cut_connection(self) -> Reply:
        """Break the acting controller's connection; `settle` waits until it is back."""
        process = self._acting()
        if process is None:
            return Reply.REFUSED
        session: tuple[int, bytes] | None = process.client.client_id
        try:
            self._world.cut_connection(process.client)
        except FaultError:
            return Reply.REFUSED
        process.cut = session
        return Reply.OK

    def lose_write(self, writes: int, *, done: bool) -> Reply:
        """Break the acting controller's connection under its next transaction but `writes`."""
        process = self._acting()
        if process is None:
            return Reply.REFUSED
        client = process.client

        def break_connection() -> None:
            process.cut = client.client_id
            with contextlib.suppress(FaultError):
                self._world.cut_connection(client)

        lose_write(client, writes, done=done, on_lost=break_connection)
        return Reply.OK

    def _keep_writes(self) -> None:
        for process in self._processes:
            keep_writes(process.client)

    def _end(self, process: _Process) -> None:
        """Kill a process; its session ends at once, also where no connection is left to end it."""
        process.controller.kill()
        if process.cut is not None:
            with contextlib.suppress(FaultError):
                self._world.expire_session(self._hosts, process.cut)

    def _connect(self) -> Client:
        return connect(self._hosts, timeout_s=SESSION_TIMEOUT_S, kind=self._world.make_client)

    def _await_session(self, client: Client, lost: int = 0) -> tuple[int, bytes] | None:
        """Return the client's session once it has one other than `lost`; None if it gets none."""
        deadline = client.monotonic() + RECONNECT_S
        while client.monotonic() < deadline:
            found: tuple[int, bytes] | None = client.client_id  # None while it has no connection
            if found is not None and found[0] not in (0, lost):
                return found
            client.sleep(0.002)
        return None
