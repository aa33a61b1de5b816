"""A small cluster on a chroot of its own: brokers on one client, controllers on one each."""

import functools
import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient

from reassure_conformance.adapter.direct_client import DirectClient
from reassure_controller.broker import Broker
from reassure_controller.controller import Controller
from reassure_controller.crashing import OnPoint
from reassure_controller.replication.host import HostedPartition, IsrOutcome
from reassure_controller.session import connect, stop
from reassure_controller.transport import LocalTransport
from reassure_spec.readings import Readings
from reassure_spec.znodes import (
    REASSIGNMENT_REQUESTS,
    REASSIGNMENTS,
    PartitionKey,
    ReassignmentZnode,
    ReplicaList,
    RequestZnode,
    StateZnode,
    decode_reassignment,
    decode_state,
    decode_topic,
    encode_config,
    encode_request,
    encode_topic,
    reassignment_path,
    state_path,
    topic_config_path,
    topic_path,
)

_numbers = itertools.count()


def wait_for(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)


def settling(act: Callable[..., Any]) -> Callable[..., Any]:
    """Let an act be followed by all that a controller makes of it: the one named by `then`."""

    @functools.wraps(act)
    def act_and_settle(*arguments: Any, then: Controller | None = None, **options: Any) -> Any:
        result = act(*arguments, **options)
        if then is not None:
            then.drain()
        return result

    return act_and_settle


class Hands:
    """What an administrator does to a cluster, and sees of it, in ZooKeeper."""

    def __init__(self, hosts: str) -> None:
        self.hosts = hosts
        self.admin: KazooClient = connect(hosts, kind=DirectClient)

    def close(self) -> None:
        """End the session."""
        stop(self.admin)

    @settling
    def create_topic(
        self, topic: str, partitions: dict[int, tuple[int, ...]], **config: str
    ) -> None:
        """Create a topic; `min_insync_replicas="2"` and the like set its configuration."""
        if config:
            settings = {name.replace("_", "."): value for name, value in config.items()}
            self.admin.create(topic_config_path(topic), encode_config(settings))
        self.admin.create(topic_path(topic), encode_topic(partitions))

    @settling
    def request(
        self, assignments: dict[tuple[str, int], tuple[int, ...]], *, legacy: bool = False
    ) -> str:
        """Ask for a reassignment and return the request's path."""
        return self.request_raw(encode_request(RequestZnode(assignments, legacy)))

    @settling
    def request_raw(self, data: bytes) -> str:
        """Make a request of these bytes and return its path."""
        return str(self.admin.create(f"{REASSIGNMENT_REQUESTS}/request_", data, sequence=True))

    def assigned(self, topic: str, partition: int) -> tuple[int, ...]:
        """Return the assigned replicas."""
        return decode_topic("", self.admin.get(topic_path(topic))[0])[partition]

    def state(self, topic: str, partition: int) -> StateZnode:
        """Return leader and in-sync replicas."""
        return decode_state("", self.admin.get(state_path(topic, partition))[0])

    def child(self, topic: str, partition: int) -> ReassignmentZnode | None:
        """Return the reassignment in flight."""
        path = reassignment_path(topic, partition)
        if self.admin.exists(path) is None:
            return None
        return decode_reassignment(path, self.admin.get(path)[0])

    def requests(self) -> list[str]:
        """Return the names of the pending requests."""
        return sorted(self.admin.get_children(REASSIGNMENT_REQUESTS))

    def reassigning(self) -> list[str]:
        """Return the topics that have a znode under /admin/reassignments."""
        return sorted(self.admin.get_children(REASSIGNMENTS))

    def dump(self, path: str = "") -> dict[str, tuple[int, Any]]:
        """Return version and content of every znode at and below a path."""
        data, stat = self.admin.get(path or "/")
        found = {path or "/": (stat.version, json.loads(data) if data else None)}
        for child in self.admin.get_children(path or "/"):
            found |= self.dump(f"{path}/{child}")
        return found


class Cluster(Hands):
    """Brokers, the controllers started so far, and an administrator's hands."""

    def __init__(self, server: Any, brokers: Iterable[int] = (1, 2, 3, 4)) -> None:
        self.server = server
        super().__init__(f"{server.hosts}/controller-test-{next(_numbers)}")
        self.transport = LocalTransport()
        self.brokers = {one: self._broker(one) for one in brokers}
        self.controllers: list[Controller] = []

    def _broker(self, broker: int) -> Broker:
        agent = Broker(self.admin, broker, self.transport, owns_client=False)
        agent.register()
        return agent

    def controller(
        self,
        readings: Readings | None = None,
        client: KazooClient | None = None,
        *,
        profile: str = "kip-236",
        on_point: OnPoint = lambda _: None,
        at_once: int = 1,
    ) -> Controller:
        """Return a controller that has stood for election."""
        used = connect(self.hosts, kind=DirectClient) if client is None else client
        number = 100 + len(self.controllers)
        try:
            controller = Controller(
                used,
                number,
                self.transport,
                readings,
                profile=profile,
                on_point=on_point,
                at_once=at_once,
            )
        except BaseException:
            used.stop()
            used.close()
            raise
        self.controllers.append(controller)
        controller.contend()
        return controller

    def begin(
        self,
        partitions: dict[int, tuple[int, ...]],
        readings: Readings | None = None,
        *,
        topic: str = "t",
        **options: Any,
    ) -> Controller:
        """Return a controller that has brought the partitions of a topic online."""
        controller = self.controller(readings, **options)
        self.create_topic(topic, partitions, then=controller)
        return controller

    def close(self) -> None:
        """End everything."""
        for controller in self.controllers:
            controller.kill()
        super().close()

    @settling
    def die(self, broker: int) -> None:
        """End a broker."""
        self.brokers.pop(broker).stop()

    @settling
    def come(self, broker: int) -> None:
        """Start a broker."""
        self.brokers[broker] = self._broker(broker)

    @settling
    def join(self, topic: str, partition: int, *replicas: int) -> None:
        """Let the leader take replicas into the in-sync set."""
        leader = self.brokers[self.state(topic, partition).leader]
        for replica in replicas:
            assert leader.change_isr(topic, partition, add=replica) == "ok"

    @settling
    def leave(self, topic: str, partition: int, replica: int) -> None:
        """Let the leader take a replica out of the in-sync set."""
        leader = self.brokers[self.state(topic, partition).leader]
        assert leader.change_isr(topic, partition, remove=replica) == "ok"


class Told:
    """What a broker was told of a partition of brokers 1 and 2, where nothing more can be asked."""

    def __init__(self, leader: int, isr: ReplicaList = (1, 2)) -> None:
        self._state = StateZnode(leader, 3, 1, isr)

    def hosted(self, topic: str, partition: int) -> HostedPartition:
        """Return the state."""
        return HostedPartition((1, 2), self._state, 0, 1)

    def write_isr(self, key: PartitionKey, isr: ReplicaList) -> IsrOutcome:
        """Refuse."""
        return "refused"

    def refresh(self, key: PartitionKey) -> IsrOutcome:
        """Refuse."""
        return "refused"

    def find_broker_epoch(self, broker: int) -> int | None:
        """Say that nobody lives."""
        return None


MakeCluster = Callable[..., Cluster]


@pytest.fixture
def make_hands() -> Iterator[Callable[[str], Hands]]:
    """Reach into clusters by their ZooKeeper."""
    made: list[Hands] = []

    def make(hosts: str) -> Hands:
        made.append(Hands(hosts))
        return made[-1]

    yield make
    for hands in made:
        hands.close()


@pytest.fixture
def make_cluster(zookeeper_server: Any) -> Iterator[MakeCluster]:
    """Make clusters on the shared server, each on a chroot of its own."""
    made: list[Cluster] = []

    def make(brokers: Iterable[int] = (1, 2, 3, 4)) -> Cluster:
        made.append(Cluster(zookeeper_server, brokers))
        return made[-1]

    yield make
    for cluster in made:
        cluster.close()


@pytest.fixture
def cluster(make_cluster: MakeCluster) -> Cluster:
    """A cluster of brokers 1 to 4, without a controller yet."""
    return make_cluster()
