"""What controllers and brokers do when somebody could not be told, or did not answer."""

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reassure_conformance.adapter.driver import Driver
from reassure_conformance.adapter.replicating import ReplicatingCluster
from reassure_conformance.gate.replication.alphabet import parse_step
from reassure_conformance.gate.replication.brokers import SHIPPED
from reassure_conformance.gate.replication.setting import TrialSetting
from reassure_conformance.gate.replication.trial import BROKERS, Trial
from reassure_controller.broker import Broker
from reassure_controller.messages import LeaderAndIsr
from reassure_controller.registration import IdTaken, take_id
from reassure_controller.replication import errors
from reassure_controller.replication.messages import Consume, Consumed
from reassure_controller.replication.rules import ReplicationRules
from reassure_controller.session import Indefinite, connect, stop
from reassure_lab.node.metadata import ClusterMetadata
from reassure_lab.node.node import BrokerNode
from reassure_lab.node.settings import NodeSettings
from reassure_lab.node.strays import Strays
from reassure_spec.readings import get_profile, override_readings
from reassure_spec.znodes import (
    StateZnode,
    broker_path,
    encode_broker,
    encode_state,
    encode_topic,
    state_path,
    topic_path,
)

from ..controller.conftest import wait_for

RULES = ReplicationRules(
    override_readings(get_profile("kafka-4485"), SHIPPED), lag_ms_max=1_000, min_insync_replicas=1
)
KEY = TrialSetting().keys[0]
Begin = Callable[..., Trial]


@pytest.fixture(scope="module")
def begin(zookeeper_server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Begin]:
    """Begin trials on the shared server."""
    server, numbers = zookeeper_server, itertools.count()
    with (
        Driver(server.hosts, server.log_dir, "/network-faults") as driver,
        ReplicatingCluster(server.hosts, BROKERS) as cluster,
    ):

        def make(*steps: str) -> Trial:
            cluster.end()
            folder = tmp_path_factory.mktemp("trial") / str(next(numbers))
            trial = Trial(driver, cluster, folder, TrialSetting(), RULES)
            for step in steps:
                assert trial.perform(parse_step(step)), step
            return trial

        yield make


def test_broker_that_an_order_did_not_reach_is_told_again(make_cluster: Any) -> None:
    """A broker that only its controller could not reach learns that it leads when it can."""
    cluster = make_cluster((1, 2))
    controller = cluster.begin({0: (1, 2)})
    cluster.transport.unregister(2)
    cluster.die(1, then=controller)
    assert cluster.state("t", 0).leader == 2
    assert not cluster.brokers[2].leads("t", 0)
    cluster.transport.register(2, cluster.brokers[2].handle)
    ending = threading.Event()
    thread = threading.Thread(target=controller.run_forever, args=(ending,))
    thread.start()
    try:
        wait_for(lambda: cluster.brokers[2].leads("t", 0))
    finally:
        ending.set()
        thread.join()


def test_controller_does_not_write_in_a_session_that_was_not_elected(make_cluster: Any) -> None:
    """A plan that is in hand when the session ends is given up, though nobody else was elected."""
    cluster = make_cluster((1, 2))
    controller = cluster.begin({0: (1,)})
    cluster.request({("t", 0): (2,)})
    assert controller.drain(max_effects=1).held
    before = cluster.dump("/admin"), cluster.dump("/brokers/topics")
    elected, controller.context.session = controller.context.session, 0
    controller.pump()
    assert (cluster.dump("/admin"), cluster.dump("/brokers/topics")) == before
    assert elected and not controller.is_active


def move_away(trial: Trial, *left: int) -> Any:
    """Assign the partition to these brokers behind everybody's back; return a client."""
    client = trial.stepped.machines[3].client
    client.set(topic_path(KEY[0]), encode_topic({KEY[1]: left}))
    return client


def sweep(trial: Trial, client: Any, broker: int = 3) -> bool:
    """Have a broker look for strays twice; return whether it keeps its replica."""
    running = trial.stepped.machines[broker].running
    assert running is not None
    strays = Strays(client, running, threading.RLock())
    strays.sweep()
    assert trial.stepped.replicas(broker).find(KEY) is not None
    strays.sweep()
    return trial.stepped.replicas(broker).find(KEY) is not None


DEAD = ("produce 1 with acks 1 to 1", "deliver all", "3 fetches and is answered", "3 crashes")


def test_log_that_has_moved_away_is_deleted(begin: Begin) -> None:
    """A broker that was dead when its replica was deleted deletes it when it is back."""
    trial = begin(*DEAD, "the controller works", "deliver all")
    client = move_away(trial, 1, 2)
    assert trial.perform(parse_step("3 starts"))
    assert not sweep(trial, client)


def test_leader_whose_partition_has_moved_away_deletes_its_log(begin: Begin) -> None:
    """A leader that was told nothing notices it when its write of the in-sync set is refused."""
    trial = begin("produce 1 with acks 1 to 1", "deliver all")
    client = move_away(trial, 2, 3)
    client.set(state_path(*KEY), encode_state(StateZnode(2, 9, 1, (2, 3))))
    assert sweep(trial, client, 1)
    assert trial.perform(parse_step("wait 1500 ms"))
    assert not sweep(trial, client, 1)


@pytest.mark.parametrize("made", [(), ("3 fetches and is answered",)], ids=["empty", "records"])
def test_log_of_a_topic_that_is_not_there_goes_if_it_is_empty(
    begin: Begin, made: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """A topic may be deleted while a broker is dead that its partition had moved away from."""
    produced = ("produce 1 with acks 1 to 1", "deliver all")
    trial = begin(*produced, *made, "3 crashes", "the controller works", "deliver all")
    client = trial.stepped.machines[3].client
    client.delete(topic_path(KEY[0]), recursive=True)
    assert trial.perform(parse_step("3 starts"))
    assert sweep(trial, client) is bool(made)
    assert ("there is no such topic; delete the log" in caplog.text) is bool(made)


def test_late_order_brings_no_stray_back(begin: Begin) -> None:
    """An order from before its replica moved away is an old one, when the broker has deleted it.

    Otherwise it would begin with an empty log in an epoch in which ZooKeeper had it in sync.
    """
    trial = begin(*DEAD, "the controller works", "deliver all")
    client = move_away(trial, 1, 2)
    assert trial.perform(parse_step("3 starts"))
    assert not sweep(trial, client)
    running, replicas = trial.stepped.machines[3].running, trial.stepped.replicas(3)
    assert running is not None
    in_sync = (1, 2, 3)
    late = LeaderAndIsr(100, 1, *KEY, 1, 0, in_sync, 1, 0, in_sync, False, replicas.broker_epoch)
    assert running.handle(late).result == "ignored"
    assert replicas.find(KEY) is None


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        pytest.param(("3 starts",), (1, 2), id="still in sync"),
        pytest.param(("the controller works", "deliver all", "3 starts"), (1, 2, 3), id="assigned"),
    ],
)
def test_log_that_may_be_needed_is_kept(
    begin: Begin, steps: tuple[str, ...], left: tuple[int, ...]
) -> None:
    """Who is assigned, or was in sync when last written down, keeps the log."""
    trial = begin(*DEAD, *steps)
    assert sweep(trial, move_away(trial, *left))


def test_broker_without_a_registration_writes_no_isr(begin: Begin) -> None:
    """A leader whose session has ended leaves the in-sync set alone until it is registered."""
    trial = begin("3 crashes")
    leader = trial.stepped.machines[1].running
    assert leader is not None
    session, leader._session = leader._session, 0
    before = trial.read()[KEY].state
    assert trial.perform(parse_step("wait 1500 ms"))
    assert trial.read()[KEY].state == before
    leader._session = session
    assert trial.perform(parse_step("wait 1500 ms"))
    assert trial.read()[KEY].state.isr == (1,)


@pytest.mark.clause("isr.lagging-leaves")
def test_unanswered_write_is_told(begin: Begin) -> None:
    """A leader that got no answer says that it has tried, so that nobody takes it for idle."""
    trial = begin("3 crashes")
    leader = trial.stepped.machines[1].running
    assert leader is not None
    leader.write_isr = lambda _key, _isr: "unknown"  # type: ignore[method-assign]
    assert trial.perform(parse_step("wait 1500 ms"))
    lines = Path(trial.stepped.machines[1].observations / "observations.ndjson").read_text("utf-8")
    tried = [line for line in map(json.loads, lines.splitlines()) if line["kind"] == "isr_write"]
    assert tried and tried[-1]["isr_version"] is None


def test_consumer_that_knows_more_is_not_served(begin: Begin) -> None:
    """A leader that has been deposed and does not know it shows nothing to who does (KIP-320)."""
    trial = begin()
    epoch = trial.read()[KEY].state.leader_epoch
    answers: list[Any] = []
    for known in (epoch, epoch + 1, -1):
        request = Consume(KEY, (0, 0), 0, 1 << 20, known)
        trial.stepped.replicas(1).serve(request, answers.append)
    assert all(isinstance(answer, Consumed) for answer in answers)
    found = [answer.error for answer in answers]
    assert found == [errors.NONE, errors.UNKNOWN_LEADER_EPOCH, errors.NONE]


def test_broker_waits_until_its_former_session_has_ended(make_cluster: Any, tmp_path: Path) -> None:
    """Whoever registers again may find its own session of before: no reason to end."""
    cluster = make_cluster(())
    client = connect(cluster.hosts)
    node = BrokerNode(client, 1, NodeSettings(tmp_path, RULES), patience_s=60)
    try:
        path = broker_path(1)
        cluster.admin.delete(path)
        cluster.admin.create(path, encode_broker("127.0.0.1", 9, 0), ephemeral=True)
        node._broker._session = None
        node._register_again()
        assert not node._broker.is_registered
        cluster.admin.delete(path)
        node._register_from_s = 0.0
        node._register_again()
        assert node._broker.is_registered
        cluster.admin.delete(path)
        cluster.admin.create(path, encode_broker("127.0.0.1", 9, 0), ephemeral=True)
        node._broker._session, node._register_from_s, node._patience_s = None, 0.0, -1.0
        with pytest.raises(IdTaken):
            node._register_again()
    finally:
        node.close()
        stop(client)


def test_broker_waits_for_its_former_life_as_long_as_that_is_registered(
    make_cluster: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody else can listen where it does, so it neither ends nor registers until it can."""
    cluster = make_cluster(())
    client, path = connect(cluster.hosts), broker_path(1)
    settings = NodeSettings(tmp_path, RULES, advertised=("127.0.0.1", 9))
    cluster.admin.ensure_path("/brokers/ids")
    cluster.admin.create(path, encode_broker("127.0.0.1", 9, 0), ephemeral=True)
    node = BrokerNode(client, 1, settings, patience_s=-1.0)
    try:
        node._register_again()
        node._register_from_s = 0.0
        node._register_again()
        assert not node._broker.is_registered
        assert "a former session of this broker has not timed out" in caplog.text
        cluster.admin.delete(path)
        node._register_from_s = 0.0
        node._register_again()
        assert node._broker.is_registered
    finally:
        node.close()
        stop(client)


def test_start_waits_for_zookeeper(make_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that starts while ZooKeeper does not answer tries again for a while."""
    cluster = make_cluster(())
    broker = Broker(connect(cluster.hosts), 1)
    failures = iter([Indefinite("not connected")])

    def fail_first(*arguments: Any) -> int | None:
        for failure in failures:
            raise failure
        return take_id(*arguments)

    monkeypatch.setattr("reassure_controller.broker.take_id", fail_first)
    broker.register(patience_s=20)
    assert broker.is_registered
    broker.stop()


def test_cluster_at_the_root_has_no_chroot() -> None:
    """What brokers observe is of the same cluster as what its transaction log tells."""
    client: Any = SimpleNamespace(chroot="")
    assert (ClusterMetadata(client).chroot, ClusterMetadata(client).id) == ("", "/")
