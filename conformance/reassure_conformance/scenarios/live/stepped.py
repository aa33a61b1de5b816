"""Brokers with logs on a stage: their messages arrive, and time passes, when a story says so.

`Stepped` is what a `Stage` drives: the bundled controller, held between any two effects, and the
bundled brokers with their logs on disk, all in one process. An order of the controller is on its
way until somebody has it arrive.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Final

from reassure_conformance.adapter import Reply
from reassure_conformance.adapter.replicating import ReplicatingCluster
from reassure_controller.effects import Effect
from reassure_controller.messages import LeaderAndIsr, StopReplica
from reassure_controller.replication.network import Network, Packet
from reassure_controller.replication.replica import Replica
from reassure_controller.replication.rules import ReplicationRules
from reassure_controller.replication.serving import Leading
from reassure_controller.replication.stepping import (
    CLIENT,
    CONTROLLER,
    Anything,
    StepCluster,
    name_broker,
)
from reassure_controller.storage.records import decode
from reassure_spec.readings import Readings
from reassure_spec.znodes import PartitionKey, ReplicaList, StateZnode

ROUNDS_MAX: Final = 8
"""How often a follower fetches before it is taken for one that does not catch up."""


class Held(Leading):
    """A leader that concludes when somebody has it do so: no time passes, no timer is due."""

    def evaluate(self) -> None:
        """Do nothing: what is noted is looked at when it is time to conclude."""

    _concludes = False

    def conclude(self) -> None:
        """Do what a leader does with every fetch."""
        self._concludes = True
        super().evaluate()
        self._concludes = False

    def read_again(self) -> None:
        """Do nothing by itself: why a write was refused is found out when it is time to."""
        if self._concludes:
            super().read_again()

    def refresh(self) -> None:
        """Read the stored in-sync set."""
        super().read_again()


class Stepped:
    """An adapter for stages: a controller of a profile, and brokers that go by `rules`."""

    def __init__(
        self,
        cluster: ReplicatingCluster,
        profile: str,
        readings: Readings,
        rules: ReplicationRules,
    ) -> None:
        self._cluster = cluster
        self._profile = profile
        self._readings = readings
        self._rules = rules
        self._directory: Path | None = None
        self._stepped: StepCluster | None = None

    # -- what a stage asks for

    def start(self, _hosts: str, chroot: str, brokers: ReplicaList) -> None:
        """Register the brokers in the chroot and elect a controller."""
        self._directory = Path(tempfile.mkdtemp(prefix="reassure-live-"))
        self._stepped = self._cluster.begin(
            chroot, self._directory, self._rules, brokers, self._profile, self._readings, Held
        )

    def stop(self) -> None:
        """End brokers and controllers, and delete their files."""
        self._cluster.end()
        self._stepped = None
        if self._directory is not None:
            shutil.rmtree(self._directory)
            self._directory = None

    def close(self) -> None:
        """Do nothing: the clients are the cluster's."""

    def inform(self, topic: str, partition: int, replicas: ReplicaList, state: StateZnode) -> None:
        """Do nothing: a controller that takes office tells everybody what it finds."""

    def hold(self, _effects: int) -> Reply:
        """Do nothing: no effect is carried out that nobody asks for."""
        return Reply.OK

    def resume(self) -> Reply:
        """Do nothing, as above."""
        return Reply.OK

    def deliver(self) -> None:
        """Do nothing, as above."""

    def settle(self, _timeout_s: float) -> bool:
        """Let the controller work, and everything arrive, until nothing more comes of it."""
        while self._cluster.work() + self.network.deliver_all():
            pass
        return True

    def start_broker(self, broker: int) -> Reply:
        """Start a broker on the disk that it had."""
        self.brokers.start(broker)
        return Reply.OK

    def stop_broker(self, broker: int) -> Reply:
        """Kill a broker; what was on its way to it is lost."""
        self.brokers.crash(broker)
        for packet in self.find_packets(broker):
            self.network.lose(packet.number)
        return Reply.OK

    def shut_down(self, broker: int) -> bool:
        """Have a broker ask to stop; return whether it still leads once it is answered."""
        epoch = self.brokers.replicas(broker).broker_epoch
        asked = self._cluster.controller.shut_down(broker, epoch)
        self.settle(0)
        assert asked.answered.is_set() and not asked.error, asked
        return bool(asked.remaining)

    def kill_controller(self) -> Reply:
        """Lose what the acting controller has sent and has not arrived."""
        for packet in self.network.waiting:
            if packet.source == CONTROLLER:
                self.network.lose(packet.number)
        return Reply.OK

    def elect(self) -> Reply:
        """Elect another controller; the one before never finds out."""
        self._cluster.supersede()
        return Reply.OK

    def change_isr(self, broker: int, topic: str, partition: int, *, joins: bool) -> Reply:
        """Let a follower fetch until the leader has taken it into the in-sync set."""
        assert joins, "who lags is for the clock to say"
        key = (topic, partition)
        for _ in range(ROUNDS_MAX):
            leader = self.find_leader(key)
            if leader is not None and broker in leader.view.isr:
                return Reply.OK
            if leader is None or not self.replicate(broker, key):
                break
            leader.conclude()
        return Reply.REFUSED

    def write_as(self, broker: int, path: str, content: bytes) -> Reply:
        """Refuse: no story about brokers with logs has a write that they did not make."""
        return Reply.REFUSED

    # -- the controller

    def find_next(self) -> Effect | None:
        """Have the controller look at all that was written, and return the effect it comes to."""
        self._cluster.work(0)
        return self._cluster.controller.next_effect

    def take_next(self) -> Effect | None:
        """Have the controller carry out one effect; return it, None where it waits after all."""
        return self._cluster.last_effect if self._cluster.work(1) else None

    def work(self) -> None:
        """Have the controller do all that it finds to do; its orders are on their way then."""
        self._cluster.work()

    @property
    def has_plan(self) -> bool:
        """Whether the controller is in the middle of a plan; it looks at nothing else then."""
        return self._cluster.controller.next_effect is not None

    def find_target(self, key: PartitionKey) -> ReplicaList | None:
        """Return the target that the controller has in memory for a partition."""
        content = self._cluster.controller.context.partitions.get(key)
        child = None if content is None else content.child
        return None if child is None else child.target

    # -- brokers

    @property
    def brokers(self) -> StepCluster:
        """The brokers of the story that is told."""
        assert self._stepped is not None, "nothing has begun"
        return self._stepped

    @property
    def network(self) -> Network[Anything]:
        """What is on its way."""
        return self.brokers.network

    def find_packets(self, broker: int, source: str = "") -> list[Packet[Anything]]:
        """Return what is on its way to a broker, from `source` where one is named."""
        return [
            packet
            for packet in self.network.waiting
            if packet.target == name_broker(broker) and source in ("", packet.source)
        ]

    def deliver_orders(self, broker: int, key: PartitionKey) -> None:
        """Have the controller's orders about a partition arrive at a broker."""
        for packet in self.find_packets(broker, CONTROLLER):
            message = packet.message
            assert isinstance(message, LeaderAndIsr | StopReplica)
            if (message.topic, message.partition) == key:
                self.network.deliver(packet.number)

    def find_replica(self, broker: int, key: PartitionKey) -> Replica | None:
        """Return a broker's replica, None where it has none or is down."""
        if broker not in self.brokers.live:
            return None
        return self.brokers.replicas(broker).find(key)

    def find_leader(self, key: PartitionKey) -> Held | None:
        """Return who leads in the latest leader epoch, as far as brokers have heard."""
        found = [self.find_replica(broker, key) for broker in self.brokers.live]
        roles = [one.role for one in found if one is not None and isinstance(one.role, Held)]
        return max(roles, key=lambda role: role.leader_epoch, default=None)

    def replicate(self, broker: int, key: PartitionKey) -> bool:
        """Let a replica fetch once, and everything arrive that comes of it.

        Answer whether it had anything to ask.
        """
        if self.find_replica(broker, key) is None:
            return False
        for leader, request in self.brokers.replicas(broker).next_requests():
            if request.key != key:
                continue
            me, sent = name_broker(broker), {packet.number for packet in self.network.waiting}
            self.network.send(me, name_broker(leader), request)
            for wanted in ((name_broker(leader),), (me, CLIENT)):
                for packet in self.network.waiting:
                    if packet.number not in sent and packet.target in wanted:
                        self.network.deliver(packet.number)
            return True
        return False

    def append(self, leader: int, key: PartitionKey, value: bytes) -> None:
        """Have a producer write a record; whoever follows fetches until all know of it."""
        self.brokers.produce(leader, key, [value])
        self.deliver_from_client(leader)
        for _ in range(2):
            for broker in self.brokers.live:
                self.replicate(broker, key)
            led = self.find_leader(key)
            if led is not None:
                led.conclude()

    def deliver_from_client(self, broker: int) -> None:
        """Have what a client has sent to a broker arrive there, and the answers at the client."""
        for packet in self.find_packets(broker, CLIENT):
            self.network.deliver(packet.number)
        for packet in self.network.waiting:
            if packet.target == CLIENT:
                self.network.deliver(packet.number)

    def read_values(self, broker: int, key: PartitionKey) -> set[bytes]:
        """Return the values of the records that a live broker has."""
        replica = self.find_replica(broker, key)
        if replica is None:
            return set()
        raw = replica.log.read(replica.log.start_offset, 1 << 20)
        return {record.value or b"" for _, record in decode(raw)}
