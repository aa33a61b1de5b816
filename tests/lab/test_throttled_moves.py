"""Throttles in ZooKeeper: what brokers make of them, in virtual time and as processes."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from reassure_conformance.adapter.stepping import FIRST_MS, BrokerMachine, StepCluster, VirtualClock
from reassure_conformance.gate.replication.brokers import SHIPPED
from reassure_controller.controller import Controller
from reassure_controller.replication.quota import Quotas
from reassure_controller.replication.rules import ReplicationRules
from reassure_controller.session import connect, stop
from reassure_controller.storage.directory import LogDirectory
from reassure_lab.admin.move_files import FilePlace, PartitionMove
from reassure_lab.admin.verbs import execute, verify
from reassure_lab.node.throttling import KEPT_MS, Throttling
from reassure_lab.throttles import (
    CONFIG_CHANGES,
    EVERY_REPLICA,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    encode_change,
)
from reassure_spec.readings import get_profile, override_readings
from reassure_spec.znodes import broker_config_path, encode_config, topic_config_path
from reassure_zookeeper.interruptions import expire_session

KEY = ("t", 0)
MOVE = (PartitionMove(KEY, (1, 3), FilePlace("moves.json", 1)),)
STEP_MS = 50
RULES = ReplicationRules(override_readings(get_profile("kafka-4485"), SHIPPED), lag_ms_max=1_000)
RATE = 5_000
VALUES = [bytes(1_000)] * 20


class World:
    """Stepped brokers that go by throttles, a controller, and a topic with records on 1 and 2."""

    def __init__(self, cluster: Any, folder: Path, ends: ExitStack) -> None:
        self.cluster = cluster

        def make(broker: int) -> BrokerMachine:
            client = connect(cluster.hosts)
            ends.callback(stop, client)
            own, quotas = folder / str(broker), Quotas()
            Throttling(client, broker, quotas)
            return BrokerMachine(
                broker,
                client,
                lambda: LogDirectory(own / "logs", broker, "/", sync=lambda _: None),
                own / "observations",
                VirtualClock(FIRST_MS),
                quotas,
            )

        self.brokers = StepCluster(map(make, (1, 2, 3)), RULES, "/")
        ends.callback(self.brokers.close)
        for broker in (1, 2, 3):
            self.brokers.start(broker)
        client = connect(cluster.hosts)
        self.controller = Controller(client, 100, self.brokers.transport)
        ends.callback(self.controller.kill)
        self.controller.contend()
        cluster.create_topic("t", {0: (1, 2)})
        self.step()
        for value in VALUES:
            self.brokers.produce(1, KEY, [value])
        self.step()
        self.step()

    def step(self) -> None:
        """Let everybody do what is due, and a little time pass."""
        self.controller.drain()
        self.brokers.network.deliver_all()
        for broker in (1, 2, 3):
            self.brokers.fetch(broker)
        self.brokers.network.deliver_all()
        self.brokers.tick(STEP_MS)

    def end_of(self, broker: int) -> int:
        """Return where a broker's log ends."""
        replica = self.brokers.replicas(broker).find(KEY)
        return 0 if replica is None else replica.log.end_offset

    def bytes_of(self, broker: int) -> int:
        """Return how long a broker's log is."""
        replica = self.brokers.replicas(broker).find(KEY)
        return 0 if replica is None else len(replica.log.read(0, 1 << 30))

    def move(self, bytes_per_s: int | None = None) -> None:
        """Ask for a move of the partition from 2 to 3."""
        execute(self.cluster.admin, MOVE, "kip-236", bytes_per_s=bytes_per_s)

    def take_ms(self, until: Callable[[], bool], at_most_ms: int = 20_000) -> int:
        """Return how much time passes until the condition holds."""
        for passed_ms in range(0, at_most_ms, STEP_MS):
            if until():
                return passed_ms
            self.step()
        raise AssertionError(f"not within {at_most_ms} ms")

    def is_done(self) -> bool:
        """Whether nothing is being reassigned."""
        return not verify(self.cluster.admin, MOVE, clear=False).is_any_active


@pytest.fixture
def world(make_cluster: Any, tmp_path: Path) -> Iterator[World]:
    """A world that ends with the test."""
    with ExitStack() as ends:
        yield World(make_cluster(()), tmp_path, ends)


def test_unthrottled_move_takes_no_time(world: World) -> None:
    """Without a throttle all is fetched at once."""
    world.move()
    assert world.take_ms(world.is_done) <= 5 * STEP_MS
    assert world.end_of(3) == len(VALUES)


def test_throttled_move_takes_its_time(world: World) -> None:
    """With a throttle a move takes as long as its bytes at that rate, less a second's worth.

    Two quotas hold for it, the sender's and the receiver's, and it is held up once.
    """
    size = world.bytes_of(1)
    world.move(RATE)
    took_ms = world.take_ms(world.is_done)
    least_ms = (size - RATE) * 1000 // RATE
    batch_ms = (size // len(VALUES)) * 1000 // RATE
    assert least_ms - batch_ms <= took_ms <= least_ms + batch_ms + 5 * STEP_MS


@pytest.mark.parametrize("side", ["as_leader", "as_follower"])
def test_either_side_is_enough(world: World, side: str) -> None:
    """The sender's quota alone holds a move up, and so does the receiver's."""
    world.move(RATE)
    for machine in world.brokers.machines.values():
        machine.quotas.catch_up()
        getattr(machine.quotas, side).throttled.clear()
    assert world.take_ms(world.is_done) >= (world.bytes_of(1) - 2 * RATE) * 1000 // RATE


def test_in_sync_replica_is_not_held_up(world: World) -> None:
    """While a move waits, what is in sync gets all at once, though every replica is named."""
    world.move(1)
    path = topic_config_path("t")
    everyone = {LEADER_REPLICAS: EVERY_REPLICA, FOLLOWER_REPLICAS: EVERY_REPLICA}
    world.cluster.admin.set(path, encode_config(everyone))
    note(world, path)
    for machine in world.brokers.machines.values():  # nothing is left of what may pass at once
        machine.quotas.as_follower.limit(1)
        machine.quotas.as_follower.throttled["t"] = None
        machine.quotas.as_follower.note(KEY, 1_000, machine.clock.now_ms())
    world.step()
    world.step()
    before = world.end_of(3)
    world.brokers.answers.clear()
    for value in VALUES:
        world.brokers.produce(1, KEY, [value])
    world.take_ms(lambda: len(world.brokers.answers) == len(VALUES), 5 * STEP_MS)
    assert {answer.error for answer in world.brokers.answers} == {""}
    assert world.end_of(2) == 2 * len(VALUES)
    assert world.end_of(3) == before < len(VALUES)


def test_changes_are_taken_up_while_it_moves(world: World) -> None:
    """Another rate holds from then on, and a throttle that is taken away holds nothing up."""
    world.move(1)
    world.take_ms(lambda: world.end_of(3) > 0)
    held = world.end_of(3)
    with pytest.raises(AssertionError):
        world.take_ms(lambda: world.end_of(3) > held, 4_000)
    execute(world.cluster.admin, MOVE, "kip-236", bytes_per_s=RATE, additional=True)
    world.take_ms(lambda: world.end_of(3) > held, 200)
    path = broker_config_path(1)
    for broker in (1, 2, 3):
        path = broker_config_path(broker)
        world.cluster.admin.set(path, encode_config({}))
        note(world, path)
    assert world.take_ms(world.is_done) <= 5 * STEP_MS


def note(world: World, path: str) -> None:
    """Leave a note that a configuration has changed."""
    world.cluster.admin.create(
        f"{CONFIG_CHANGES}/config_change_", encode_change(path), sequence=True
    )


def limit(world: World, broker: int) -> int:
    """Return how much a throttled replica may have at once of a broker that leads."""
    machine = world.brokers.machines[broker]
    return machine.quotas.as_leader.allow(KEY, 1 << 20, machine.clock.now_ms() + 60_000)


def set_throttle(world: World, replicas: str, rate: str) -> None:
    """Write settings of the topic and of broker 1."""
    admin = world.cluster.admin
    topic, own = topic_config_path("t"), broker_config_path(1)
    admin.ensure_path(topic)
    admin.set(topic, encode_config({LEADER_REPLICAS: replicas, FOLLOWER_REPLICAS: ""}))
    admin.set(own, encode_config({LEADER_RATE: rate}))


@pytest.mark.parametrize(
    ("replicas", "rate", "allowed"),
    [
        ("*", "70", 70),
        ("0:1", "70", 70),
        (" 3:2 , 0:1", " 70 ", 70),
        ("0:2,1:1", "70", 1 << 20),
        ("", "70", 1 << 20),
        ("0:1", "much", 1 << 20),
        ("0;1", "70", 1 << 20),
    ],
)
def test_settings_are_kafkas(
    replicas: str, rate: str, allowed: int, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Replicas are named as Kafka names them; what makes no sense is told, and changes nothing."""
    set_throttle(world, replicas, rate)
    note(world, broker_config_path(1))
    note(world, topic_config_path("t"))
    world.step()
    assert limit(world, 1) == allowed
    assert ("expected" in caplog.text) == (rate == "much" or ";" in replicas)


def test_settings_are_read_at_the_start_and_after_a_loss(world: World) -> None:
    """Without any note settings are read by a broker that begins, or was cut off."""
    set_throttle(world, "0:1", "70")
    world.step()
    assert limit(world, 1) == 1 << 20
    machine = world.brokers.machines[1]
    other = Throttling(machine.client, 1, Quotas())
    other.refresh()
    assert other.quotas.as_leader.allow(KEY, 1 << 20, FIRST_MS) == 70
    expire_session(world.cluster.hosts, machine.client.client_id)
    deadline = time.monotonic() + 20  # the connection comes back in its own time
    while limit(world, 1) != 70 and time.monotonic() < deadline:
        time.sleep(0.01)
        world.step()
    assert limit(world, 1) == 70


def test_notes_of_others_are_passed_over(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Notes about clients, and notes that nobody understands, change nothing and stop nothing."""
    admin, prefix = world.cluster.admin, f"{CONFIG_CHANGES}/config_change_"
    world.step()
    set_throttle(world, "0:1", "70")
    for content in (b"?", b'{"version":2,"entity_path":"clients/c"}', b'{"version":3}', b"[1]"):
        admin.create(prefix, content, sequence=True)
    admin.create(f"{CONFIG_CHANGES}/other", b"")
    for path in (broker_config_path(1), topic_config_path("t")):
        note(world, path)
    world.step()
    assert limit(world, 1) == 70
    assert "not JSON" in caplog.text


def test_old_notes_are_removed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A note goes when a newer one is so much younger, whoever reads it first."""
    note(world, broker_config_path(1))
    world.step()
    assert len(world.cluster.admin.get_children(CONFIG_CHANGES)) == 1
    monkeypatch.setattr("reassure_lab.node.throttling.KEPT_MS", -1)
    note(world, broker_config_path(2))
    world.step()
    assert world.cluster.admin.get_children(CONFIG_CHANGES) == []
    assert KEPT_MS == 15 * 60 * 1000
