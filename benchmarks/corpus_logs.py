"""Make transaction logs of Apache Kafka for benchmarks/corpus.py: a cluster, and much that happens.

    python benchmarks/corpus_logs.py 3.9.1 1.1.1 --jars DIR --out DIR [--seed N] [--stories N]

`DIR/kVERSION/lib` holds the jars of a release. Of each a ZooKeeper and three brokers run for about
a minute on this machine, while stories from `STORIES` happen, by chance: shutdowns, deaths, moves
by the old znode and by calls, elections, deletions, growth, disks that fail, sessions that expire,
all that an operator may do and nothing that one may not. What is left is `OUT/VERSION-SEED/`, with
the log and a diary, and the log alone as `OUT/VERSION-SEED.log.gz`, as those of the tests are kept.
"""

import argparse
import contextlib
import gzip
import json
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError
from kio.index import load_request_schema

from reassure_lab.wire.connection import Connection
from reassure_lab.wire.entities import fill
from reassure_lab.wire.errors import NoAnswer
from reassure_lab.wire.messages import KioMessage
from reassure_zookeeper.launch import ServerSettings
from reassure_zookeeper.server import Server

BROKERS: Final = (1, 2, 3)
SESSION_MS: Final = 4000
WIDE: Final = 200
"""Partitions of a large topic."""
REASSIGN, ELECT, DELETE, GROW = 45, 43, 20, 37
"""Calls, by their number in Kafka's protocol."""
SETTINGS: Final = {
    "zookeeper.session.timeout.ms": SESSION_MS,
    "zookeeper.connection.timeout.ms": 60000,
    "replica.lag.time.max.ms": 2000,
    "replica.high.watermark.checkpoint.interval.ms": 500,
    "auto.leader.rebalance.enable": "false",
    "auto.create.topics.enable": "false",
    "delete.topic.enable": "true",
    "controlled.shutdown.enable": "true",
    "controlled.shutdown.max.retries": 2,
    "controlled.shutdown.retry.backoff.ms": 500,
    "log.cleaner.enable": "false",
    "log.index.size.max.bytes": 4096,
    "num.network.threads": 1,
    "num.io.threads": 2,
}
LOGGING: Final = """log4j.rootLogger=ERROR, A
log4j.appender.A=org.apache.log4j.ConsoleAppender
log4j.appender.A.layout=org.apache.log4j.PatternLayout
log4j.appender.A.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
JAVA: tuple[str, ...] = (
    "java",
    "-Xmx160m",
    "-Xss512k",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
)
JAVA += ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")


class Cluster:
    """Three brokers of one release and a ZooKeeper."""

    def __init__(self, version: str, jars: Path, root: Path, server: Server) -> None:
        self.version = tuple(map(int, version.split(".")))
        self._jars, self.root, self._server = jars, root, server
        self._brokers: dict[int, subprocess.Popen[bytes]] = {}
        self._topics = 0
        self.client = KazooClient(hosts=server.hosts)
        self.client.start()

    def say(self, *words: object) -> None:
        """Add a line to the diary."""
        line = f"{time.time():.3f} {' '.join(map(str, words))}"
        with (self.root / "diary.txt").open("a") as diary:
            diary.write(line + "\n")

    # Brokers --------------------------------------------------------------------------------------

    def start(self, broker: int) -> None:
        """Run a broker."""
        settings = {
            **SETTINGS,
            "broker.id": broker,
            "zookeeper.connect": self._server.hosts,
            "log.dirs": f"{self.root}/data-{broker}a,{self.root}/data-{broker}b",
        }
        if self.version < (0, 9):
            settings |= {"port": 20000 + random.SystemRandom().randrange(9000)}
            settings |= {"host.name": "127.0.0.1"}
        else:
            settings["listeners"] = "PLAINTEXT://127.0.0.1:0"
        file = self.root / f"{broker}.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        with (self.root / f"broker-{broker}.txt").open("ab") as out:
            command = (*JAVA, "-cp", f"{self.root}:{self._jars}/*", "kafka.Kafka", str(file))
            self._brokers[broker] = subprocess.Popen(command, stdout=out, stderr=out)

    def wait_for(self, broker: int) -> None:
        """Wait until a broker has registered."""
        there = self.wait(lambda: self.get(f"/brokers/ids/{broker}") is not None, 100)
        if not there:
            raise TimeoutError(f"broker {broker} does not register: see broker-{broker}.txt")

    def send(self, broker: int, number: signal.Signals) -> None:
        """Send a broker a signal, and wait for its end where that ends it."""
        self.say(number.name, broker, "controller", self.controller)
        self._brokers[broker].send_signal(number)
        if number == signal.SIGTERM:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._brokers[broker].wait(30)
        if number in (signal.SIGTERM, signal.SIGKILL):
            self._brokers[broker].kill()
            self._brokers[broker].wait()

    def bounce(self, broker: int, number: signal.Signals) -> None:
        """End a broker, and start it once it is gone."""
        self.send(broker, number)
        self.wait(lambda: self.get(f"/brokers/ids/{broker}") is None)
        self.start(broker)
        self.wait_for(broker)

    def stop(self) -> None:
        """End all."""
        for process in self._brokers.values():
            process.kill()
            process.wait()
        self.client.stop()

    # ZooKeeper ------------------------------------------------------------------------------------

    def get(self, path: str) -> Any:
        """Return what a znode says; None without one."""
        with contextlib.suppress(NoNodeError):
            return json.loads(self.client.get(path)[0] or b"null")
        return None

    def put(self, path: str, content: object) -> None:
        """Write a znode as Kafka's tools write it."""
        data = json.dumps(content, separators=(",", ":")).encode()
        try:
            self.client.create(path, data, makepath=True)
        except NodeExistsError:
            self.client.set(path, data)

    def wait(self, condition: Callable[[], object], seconds: float = 12) -> bool:
        """Wait until a condition holds; return whether it does."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    @property
    def controller(self) -> int:
        """The broker in office, 0 without one."""
        return int((self.get("/controller") or {"brokerid": 0})["brokerid"])

    def state(self, topic: str, number: int = 0) -> Any:
        """Return a partition's state."""
        return self.get(f"/brokers/topics/{topic}/partitions/{number}/state")

    # Topics ---------------------------------------------------------------------------------------

    def create(self, assigned: dict[int, list[int]], **settings: str) -> str:
        """Make a topic, by znodes as Kafka's own tools did, and return its name."""
        self._topics += 1
        topic = f"t{self._topics}"
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self.say("create", topic, assigned)
        self.put(f"/config/topics/{topic}", {"version": 1, "config": named})
        held = {str(number): replicas for number, replicas in assigned.items()}
        self.put(f"/brokers/topics/{topic}", {"version": 1, "partitions": held})
        self.wait(lambda: all(self.state(topic, number) for number in assigned), 40)
        return topic

    def set_config(self, topic: str, **settings: str) -> None:
        """Change a topic's settings and tell the brokers."""
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self.put(f"/config/topics/{topic}", {"version": 1, "config": named})
        if self.version < (0, 9):
            note: Any = topic
        else:
            note = {"version": 2, "entity_path": f"topics/{topic}"}
        self.client.create(
            "/config/changes/config_change_", json.dumps(note).encode(), sequence=True
        )

    def delete(self, topic: str) -> None:
        """Have a topic deleted, by a call where there is one."""
        self.say("delete", topic)
        if self.call(DELETE, topic_names=[topic]) is None:
            self.put(f"/admin/delete_topics/{topic}", None)

    def move(self, topic: str, targets: dict[int, list[int]], *, call: bool = False) -> None:
        """Ask for moves, by the old znode or by a call."""
        self.say("move", topic, targets, "call" if call else "znode")
        parts = [{"partition_index": n, "replicas": to} for n, to in targets.items()]
        if call and self.call(REASSIGN, topics=[{"name": topic, "partitions": parts}]):
            return
        moves = [{"topic": topic, "partition": n, "replicas": to} for n, to in targets.items()]
        self.wait(lambda: self.get("/admin/reassign_partitions") is None)
        with contextlib.suppress(NodeExistsError):
            content = json.dumps({"version": 1, "partitions": moves}).encode()
            self.client.create("/admin/reassign_partitions", content)

    def elect(self, topic: str, *numbers: int, kind: int = 0) -> None:
        """Ask for an election: the preferred leader's, or (kind 1) of one that is not in sync."""
        self.say("elect", topic, numbers, "unclean" if kind else "preferred")
        parts = [{"topic": topic, "partitions": list(numbers)}]
        answer = self.call(ELECT, election_type=kind, topic_partitions=parts)
        if answer is None and not kind:
            named = [{"topic": topic, "partition": number} for number in numbers]
            self.put("/admin/preferred_replica_election", {"version": 1, "partitions": named})

    def call(self, key: int, **content: Any) -> Any:
        """Ask the controller in the newest version that it knows of a request; None without one."""
        at = self.get(f"/brokers/ids/{self.controller}")
        if self.version < (0, 10, 1) or at is None:
            return None
        where = at["endpoints"][0].rpartition("//")[2].rpartition(":")
        connection = Connection(where[0], int(where[2]), "corpus", timeout_s=10)
        try:
            version = connection.find_version(key, KNOWN[key])
            if version is None:
                return None
            message = fill(load_request_schema(key, version), content)
            answer = connection.ask(KioMessage(message)).entity
            self.say("answer", answer)
            return answer
        except NoAnswer as error:
            self.say("no answer", error)
            return None
        finally:
            connection.close()

    def settle(self, topic: str, count: int = 1) -> None:
        """Wait until a topic's partitions are where they are to be, all in sync."""

        def is_settled() -> bool:
            held = self.get(f"/brokers/topics/{topic}")
            if held is None or self.get("/admin/reassign_partitions"):
                return held is None
            states = [(to, self.state(topic, int(n))) for n, to in held["partitions"].items()]
            moving = held.get("adding_replicas") or held.get("removing_replicas")
            return not moving and all(s and {*s["isr"]} == {*to} for to, s in states[:count])

        self.say("settled" if self.wait(is_settled) else "NOT settled", topic)


KNOWN: Final = {
    REASSIGN: range(1),
    ELECT: range(1, 3),
    DELETE: range(4),
    GROW: range(2),
}
Story = Callable[[Cluster, random.Random], None]


def pick(chance: random.Random, count: int) -> list[int]:
    """Return some brokers in some order."""
    return chance.sample(BROKERS, count)


# What happens -------------------------------------------------------------------------------------


def roll(cluster: Cluster, chance: random.Random) -> None:
    """Restart every broker, one after the other, by controlled shutdowns."""
    topic = cluster.create({n: pick(chance, 1 + n % 3) for n in range(6)})
    for broker in pick(chance, 3):
        cluster.bounce(broker, signal.SIGTERM)
        cluster.settle(topic, 6)
    cluster.elect(topic, *range(6))


def shut_down(cluster: Cluster, chance: random.Random) -> None:
    """Shut a broker down while partitions move to it and from it."""
    topic = cluster.create({n: pick(chance, 2) for n in range(4)})
    cluster.move(topic, {n: pick(chance, 2) for n in range(4)}, call=chance.random() < 0.5)
    cluster.bounce(chance.choice(BROKERS), signal.SIGTERM)
    cluster.settle(topic, 4)


def kill_controller(cluster: Cluster, chance: random.Random) -> None:
    """Kill the controller while partitions move, one of them to a broker that stands still."""
    topic = cluster.create({n: pick(chance, 2) for n in range(3)})
    victim = cluster.controller or 1
    still = chance.choice([broker for broker in BROKERS if broker != victim])
    cluster.send(still, signal.SIGSTOP)
    other = next(broker for broker in BROKERS if broker not in (still, victim))
    cluster.move(topic, {0: [still], 1: [still, other]}, call=chance.random() < 0.5)
    time.sleep(chance.random() * 2)
    cluster.send(victim, signal.SIGKILL)
    time.sleep(0.5)
    cluster.send(still, signal.SIGCONT)
    cluster.start(victim)
    cluster.wait_for(victim)
    cluster.settle(topic, 3)


def delete_moving(cluster: Cluster, chance: random.Random) -> None:
    """Delete topics: while one moves to a broker that stands still, and one with a dead broker."""
    moving, other = (cluster.create({0: [1, 2], 1: [2, 3]}) for _ in range(2))
    still = chance.choice([broker for broker in BROKERS if broker != cluster.controller])
    cluster.send(still, signal.SIGSTOP)
    cluster.move(moving, {0: [still], 1: [still, still % 3 + 1]}, call=chance.random() < 0.5)
    time.sleep(0.5)
    cluster.delete(moving)
    time.sleep(1)
    cluster.send(still, signal.SIGCONT)
    cluster.wait(lambda: cluster.get(f"/brokers/topics/{moving}") is None)
    cluster.send(still, signal.SIGKILL)
    cluster.delete(other)
    time.sleep(chance.random() * 3)
    cluster.start(still)
    cluster.wait_for(still)
    cluster.wait(lambda: cluster.get(f"/brokers/topics/{other}") is None)


def lose_disk(cluster: Cluster, chance: random.Random) -> None:
    """Take a log directory from a broker that can do without, and give it back by a restart."""
    if cluster.version < (1, 0):
        return
    broker = chance.choice(BROKERS)
    topic = cluster.create({n: pick(chance, 2 + n % 2) for n in range(6)})
    place = cluster.root / f"data-{broker}{chance.choice('ab')}"
    kept = place.with_name(place.name + "-kept")
    place.rename(kept)
    place.write_text("no directory")
    cluster.say("disk dies", place.name)
    time.sleep(5)
    if chance.random() < 0.5:
        cluster.move(topic, {n: pick(chance, 2) for n in range(3)})
        time.sleep(2)
    place.unlink()
    kept.rename(place)
    cluster.bounce(broker, chance.choice((signal.SIGTERM, signal.SIGKILL)))
    cluster.settle(topic, 6)


def elect_unclean(cluster: Cluster, chance: random.Random) -> None:
    """Have brokers die after each other until nobody in sync is left, and another one lead."""
    first, last = pick(chance, 2)
    topic = cluster.create({0: [first, last], 1: [last, first]})
    cluster.send(first, signal.SIGKILL)
    cluster.wait(lambda: cluster.state(topic)["isr"] == [last])
    cluster.send(last, signal.SIGKILL)
    cluster.wait(lambda: cluster.get(f"/brokers/ids/{last}") is None)
    cluster.start(first)
    cluster.wait_for(first)
    time.sleep(1)
    if cluster.version >= (2, 4) and chance.random() < 0.5:
        cluster.elect(topic, 0, 1, kind=1)
    else:
        cluster.set_config(topic, unclean_leader_election_enable="true")
    time.sleep(1)
    cluster.start(last)
    cluster.wait_for(last)
    cluster.settle(topic, 2)


def expire(cluster: Cluster, chance: random.Random) -> None:
    """Let the controller's session expire while it moves partitions, and let it come back."""
    topic = cluster.create({n: pick(chance, 2) for n in range(4)})
    victim = cluster.controller or 1
    cluster.move(topic, {n: pick(chance, 2) for n in range(4)}, call=chance.random() < 0.5)
    time.sleep(chance.random() / 2)
    cluster.send(victim, signal.SIGSTOP)
    cluster.wait(lambda: cluster.controller not in (0, victim))
    time.sleep(chance.random() * 2)
    cluster.send(victim, signal.SIGCONT)
    cluster.wait(lambda: cluster.get(f"/brokers/ids/{victim}") is not None)
    cluster.settle(topic, 4)


def lag(cluster: Cluster, chance: random.Random) -> None:
    """Let a broker stand still until it is out of sync, and keep its session."""
    topic = cluster.create({n: pick(chance, 3) for n in range(3)})
    broker = chance.choice(BROKERS)
    cluster.send(broker, signal.SIGSTOP)
    time.sleep(SESSION_MS * 0.7 / 1000)
    cluster.send(broker, signal.SIGCONT)
    cluster.settle(topic, 3)
    cluster.elect(topic, 0, 1, 2)


def ask_both_ways(cluster: Cluster, chance: random.Random) -> None:
    """Ask for a partition by the old znode and by calls at once, and take calls back."""
    topic = cluster.create({n: pick(chance, 2) for n in range(3)})
    still = chance.choice([broker for broker in BROKERS if broker != cluster.controller])
    cluster.send(still, signal.SIGSTOP)
    other = next(broker for broker in BROKERS if broker != still)
    cluster.move(topic, {0: [still], 1: [still, other]})
    time.sleep(0.3)
    if cluster.version >= (2, 4):
        cluster.move(topic, {0: pick(chance, 2), 2: pick(chance, 3)}, call=True)
        time.sleep(0.3)
        cluster.move(topic, {2: pick(chance, 1)}, call=True)
    time.sleep(0.3)
    cluster.send(still, signal.SIGCONT)
    cluster.settle(topic, 3)


def grow(cluster: Cluster, chance: random.Random) -> None:
    """Add partitions to a topic while it moves."""
    topic = cluster.create({n: pick(chance, 2) for n in range(2)})
    cluster.move(topic, {0: pick(chance, 2)})
    if chance.random() < 0.5 or cluster.version < (1, 0):  # no call that is refused in a move
        cluster.settle(topic, 2)
    places = [{"broker_ids": pick(chance, 2)} for _ in range(2)]
    wanted = [{"name": topic, "count": 4, "assignments": places}]
    if cluster.call(GROW, topics=wanted) is None:
        held = cluster.get(f"/brokers/topics/{topic}")
        held["partitions"] |= {"2": pick(chance, 2), "3": pick(chance, 1)}
        cluster.put(f"/brokers/topics/{topic}", held)
    cluster.settle(topic, 4)


def go_wide(cluster: Cluster, chance: random.Random) -> None:
    """Move a topic of many partitions while a broker is bounced, and delete it."""
    topic = cluster.create({n: pick(chance, 2) for n in range(WIDE)})
    targets = {n: pick(chance, 2) for n in range(0, WIDE, 5)}
    cluster.move(topic, targets, call=chance.random() < 0.5)
    cluster.bounce(chance.choice(BROKERS), chance.choice((signal.SIGTERM, signal.SIGKILL)))
    cluster.settle(topic, WIDE)
    cluster.delete(topic)
    cluster.wait(lambda: cluster.get(f"/brokers/topics/{topic}") is None)


STORIES: Final[tuple[Story, ...]] = (
    roll, shut_down, kill_controller, delete_moving, lose_disk, elect_unclean,
    expire, lag, ask_both_ways, grow, go_wide,
)  # fmt: skip


@contextlib.contextmanager
def run_cluster(version: str, jars: Path, root: Path) -> Iterator[Cluster]:
    """Run a cluster of a release while entered."""
    settings = ServerSettings(tick_time_ms=500, pre_alloc_kib=256)
    with Server.start(root / "zookeeper", settings=settings) as server:
        cluster = Cluster(version, jars, root, server)
        try:
            for broker in BROKERS:
                cluster.start(broker)
            for broker in BROKERS:
                cluster.wait_for(broker)
            yield cluster
        finally:
            cluster.stop()


def make_log(version: str, jars: Path, out: Path, seed: int, count: int) -> None:
    """Let stories happen in a cluster, and keep its log and diary."""
    chance = random.Random(seed)
    out.mkdir(parents=True)
    (out / "log4j.properties").write_text(LOGGING)
    with run_cluster(version, jars, out) as cluster:
        for story in chance.sample(STORIES, count):
            cluster.say("story", story.__name__)
            try:
                story(cluster, chance)
            except (KazooException, TypeError, OSError) as error:
                cluster.say("story ended by", repr(error))
        time.sleep(2)
    log = out / "zookeeper" / "version-2" / "log.1"
    out.with_name(out.name + ".log.gz").write_bytes(gzip.compress(log.read_bytes(), mtime=0))
    for place in out.glob("data-*"):
        shutil.rmtree(place, ignore_errors=True)


def main() -> None:
    """Make logs of the releases that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="+", help="releases, as 2.4.1")
    parser.add_argument("--jars", type=Path, required=True, help="holds kVERSION/lib of each")
    parser.add_argument("--out", type=Path, required=True, help="gets VERSION-SEED/ of each")
    parser.add_argument("--seed", type=int, default=1, help="what happens, and in which order")
    parser.add_argument("--stories", type=int, default=4, help="how many happen (4)")
    asked = parser.parse_args()
    for version in asked.versions:
        out = asked.out / f"{version}-{asked.seed}"
        make_log(version, asked.jars / f"k{version}" / "lib", out, asked.seed, asked.stories)


if __name__ == "__main__":
    main()
