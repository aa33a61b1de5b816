"""Each mistake that is made for a soak is found by what clients saw, in one cluster of processes.

Every mistake is one broker's own, and meets the topic that has its name; what it takes for it to
show is done on purpose, and waited for. In a topic that no mistake meets nothing is found.
"""

import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from reassure_controller.session import connect, stop
from reassure_lab.cluster.supervisor import ProcessCluster
from reassure_lab.soak import proxies, workload
from reassure_lab.soak.checker import LATE_MS, LEARN_MS, check_history
from reassure_lab.soak.judging import merge_logs, tell_states
from reassure_lab.soak.members import MIN_INSYNC, Shape, end_cluster, start_cluster
from reassure_lab.soak.own_mistakes import load_faults
from reassure_lab.soak.proxies import ProxyNetwork
from reassure_lab.soak.replicas import compare_replicas
from reassure_lab.soak.seen_events import Event, HistoryWriter, now_ms, read_history
from reassure_lab.soak.workload import BURST, Consuming, Producing, read_all
from reassure_spec.znodes import (
    ReplicaList,
    StateZnode,
    decode_state,
    encode_topic,
    state_path,
    topic_path,
)

WAIT_S = 120.0
"""How long anything may take, however busy the machine is."""
FRESH_MS = 500
"""What was acknowledged so long ago a follower may have heard of: answers come a second late."""
SOUND = "sound"
MET: Mapping[str, tuple[int, ReplicaList]] = {
    "batch-doubled": (1, (1, 2)),
    "record-dropped": (2, (2, 1)),
    "read-past-mark": (3, (3, 1)),
    "minimum-ignored": (4, (4,)),
    "record-altered": (4, (5, 4)),
    "leader-cuts-to-mark": (5, (3, 5)),
}
"""By mistake: the broker that makes it, and the replicas of its topic, the leader first."""
TOPICS: Mapping[str, ReplicaList] = {
    **{name: replicas for name, (_, replicas) in MET.items()},
    SOUND: (4, 2),
}


@dataclass
class Trial:
    """The cluster, and what clients write down; one file a topic."""

    directory: Path
    cluster: ProcessCluster
    network: ProxyNetwork
    admin: KazooClient
    ending: threading.Event = field(default_factory=threading.Event)

    @property
    def servers(self) -> list[str]:
        """Where clients begin."""
        return self.cluster.bootstrap

    def open(self, topic: str) -> HistoryWriter:
        """Return where a client of a topic writes down what it sees."""
        return HistoryWriter.open(self.directory / f"{topic}.ndjson")

    def list_seen(self, topic: str, did: str) -> list[Event]:
        """Return what happened with a topic's records."""
        found = read_history([self.directory / f"{topic}.ndjson"])
        return [one for one in found if one.did == did]

    def count(self, topic: str, did: str) -> int:
        """Return with how many records of a topic something happened."""
        return sum(one.count for one in self.list_seen(topic, did))

    def read_state(self, topic: str) -> StateZnode:
        """Return what ZooKeeper says of a topic's partition."""
        path = state_path(topic, 0)
        return decode_state(path, self.admin.get(path)[0])

    def make_producer(self, topic: str, history: HistoryWriter, who: str = "all-1") -> Producing:
        """Return a stock producer that sends to a topic's partition."""
        return Producing(who, self.servers, [topic], 0, random.Random(1), history)

    def go_on(self, until: Callable[[], bool], *clients: Producing | Consuming) -> None:
        """Let clients work until a condition holds."""
        deadline = time.monotonic() + WAIT_S
        while not until():
            assert time.monotonic() < deadline, "it did not come about in time"
            for client in clients:
                client.take_turn(self.ending)
            self.ending.wait(0.02)

    def go_further(self, topic: str, did: str, *clients: Producing | Consuming) -> None:
        """Let clients work until something has happened with more records of a topic."""
        before = self.count(topic, did)
        self.go_on(lambda: self.count(topic, did) > before, *clients)

    def produce(self, topic: str, bursts: int = 1) -> None:
        """Send to a topic until so many bursts are acknowledged."""
        with self.open(topic) as history:
            producer = self.make_producer(topic, history)
            self.go_on(lambda: self.count(topic, "acked") >= bursts * BURST, producer)
            producer.close()


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trial]:
    """A cluster whose brokers make the mistakes of `MET`, with topics that have leaders."""
    monkeypatch.setattr(workload, "PAUSE_S", 0.0)
    monkeypatch.setattr(proxies, "DELAY_S", 2 * FRESH_MS / 1000)
    own: dict[str, list[str]] = defaultdict(list)
    for name, (broker, _) in MET.items():
        own[f"broker-{broker}"].append(name)
    shape = Shape(brokers=5, controllers=1, zookeepers=1, own_faults=own)
    with ProxyNetwork() as network:
        cluster = start_cluster(tmp_path / "cluster", shape, network)
        admin = connect(cluster.zookeeper, timeout_s=20)
        try:
            for topic, replicas in TOPICS.items():
                admin.create(topic_path(topic), encode_topic({0: replicas}), makepath=True)
            made = Trial(tmp_path, cluster, network, admin)
            made.go_on(lambda: all(admin.exists(state_path(topic, 0)) for topic in TOPICS))
            yield made
        finally:
            stop(admin)
            end_cluster(cluster)


def list_numbers(event: Event) -> range:
    """Return the numbers of the records of an event."""
    return range(event.n, event.n + event.count)


def show_early(trial: Trial) -> None:
    """Have a consumer see records that no follower can get, and let it get them later."""
    topic = "read-past-mark"

    def is_shown_early() -> bool:
        reads, acked = (
            {n: one.at_ms for one in trial.list_seen(topic, did) for n in list_numbers(one)}
            for did in ("read", "acked")
        )
        return any(at_ms - reads.get(n, at_ms) > LATE_MS for n, at_ms in acked.items())

    with trial.open(topic) as history:
        producer = trial.make_producer(topic, history, "lone-1")
        consumer = Consuming("consumer-1", trial.servers, [topic], history)
        while not is_shown_early():  # where it takes the consumer too long, they are refused
            trial.network.spoil("broker-1", "broker-3", "cut")
            trial.go_further(topic, "read", producer, consumer)
            trial.ending.wait(1.5 * LATE_MS / 1000)
            trial.network.heal("broker-1", "broker-3")
            trial.go_further(topic, "acked", producer, consumer)
        producer.close()
        consumer.close()


def lead_without_the_mark(trial: Trial) -> None:
    """Have a leader die when its follower has records, and has not heard that all have them."""
    topic = "leader-cuts-to-mark"

    def is_fresh() -> bool:
        acked = trial.list_seen(topic, "acked")
        return bool(acked) and now_ms() - acked[-1].at_ms < FRESH_MS

    trial.network.spoil("broker-5", "broker-3", "slow")
    with trial.open(topic) as history:
        producer = trial.make_producer(topic, history)
        trial.go_on(is_fresh, producer)
        trial.network.spoil("broker-5", "broker-3", "cut")
        trial.cluster.kill("broker-3")
        producer.close()
    trial.go_on(lambda: trial.read_state(topic).leader == 5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # theirs: sockets
def test_each_planted_mistake_is_found(trial: Trial) -> None:
    """What clients saw breaks the guarantee that a mistake is made for, in its topic alone."""
    faults = load_faults()
    assert {*MET} == {*faults}
    trial.produce("record-altered")
    trial.produce("batch-doubled", 60)
    trial.produce("record-dropped", 30)
    trial.produce(SOUND)
    show_early(trial)
    created_ms = trial.admin.exists(state_path("minimum-ignored", 0)).ctime
    trial.go_on(lambda: now_ms() > created_ms + LEARN_MS)
    trial.produce("minimum-ignored")
    lead_without_the_mark(trial)
    with trial.open("read") as history:
        read_all(trial.servers, [*TOPICS], history)
    server = trial.directory / "cluster" / "zookeeper-1"
    merge_logs([server], trial.directory / "merged")
    events = read_history(trial.directory.glob("*.ndjson"))
    events = sorted([*events, *tell_states(trial.directory / "merged")], key=lambda one: one.at_ms)
    findings = check_history(events, MIN_INSYNC)
    marks = {one.key: one.offset for one in events if one.did == "end"}
    altered = {("record-altered", 0): TOPICS["record-altered"]}
    logs = {one: trial.directory / "cluster" / f"broker-{one}" / "logs" for one in (4, 5)}
    compare_replicas(logs, altered, marks, findings)
    found = {
        name: {one.guarantee for one in findings.breaches if one.what.startswith(f"{name}-0:")}
        for name in TOPICS
    }
    assert {name: faults[name]["guarantee"] in found[name] for name in MET} == dict.fromkeys(
        MET, True
    )
    assert (found[SOUND], findings.unknown) == (set(), [])
