"""`kafka:VERSION`: Apache Kafka itself, driven as any other implementation is.

A cluster cannot be stepped, and is started once for a run. It is taken to rest once its controller
has dealt with a *sentinel*, a request that asks for nothing and goes through the same queue as all
else, once every replica that can be in sync is, and nothing was written for a while.
"""

import base64
import json
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl

from kazoo.exceptions import NodeExistsError, NoNodeError

from reassure_conformance.adapter import (
    ADMIN,
    BROKERS,
    CUT,
    DELETION,
    EXPIRE,
    HOLD,
    KILL,
    LOSE,
    OLD_ZNODE,
    PREFERRED,
    RUN,
    SHUTDOWN,
    BadConnectable,
    Description,
    Reply,
)
from reassure_conformance.supervise import note_alive
from reassure_controller.client import Client
from reassure_judge.recognise import find_sign
from reassure_judge.rules import Signs
from reassure_judge.trees import KAFKAS_OWN
from reassure_lab.kafka.frame_proxy import FrameProxy
from reassure_lab.kafka.kafka_admin import reassign_by_call
from reassure_lab.kafka.kafka_brokers import KafkaBrokers
from reassure_lab.kafka.kafka_jars import Version, find_jars, parse_version
from reassure_spec.errors import Unavailable
from reassure_spec.znodes import (
    BROKER_IDS,
    CONTROLLER,
    PREFERRED_ELECTION,
    TOPICS,
    AssignmentZnode,
    ReplicaList,
    StateZnode,
    broker_path,
    decode_broker,
    decode_controller,
    decode_state,
    decode_topic_lists,
    encode_config,
    encode_topic,
    encode_topic_lists,
    state_path,
    topic_config_path,
    topic_path,
)
from reassure_zookeeper.interruptions import expire_session

FORM: Final = "kafka:VERSION?home=DIRECTORY&brokers=N"
_LISTS: Final = (2, 4)
"""From here on a topic's znode has lists, and there is a call for reassignments."""
_IDS: Final = (2, 8)
"""From here on a topic has an id."""
_FENCED: Final = (2, 1)
"""From here on each write of a controller checks its epoch."""
_ALWAYS: Final = frozenset({BROKERS, KILL, EXPIRE, CUT, DELETION, PREFERRED, SHUTDOWN})
_OF_WRITES: Final = (HOLD, LOSE)
"""What takes a controller's writes to be known from others."""
_IN_ORDER: Final = (0, 10, 2)
"""From here on the first replica in assignment order is elected, whatever for."""
_REGISTERED: Final = 4
"""The version of brokers' registrations by then."""
_CHANGES: Final = "/config/changes/config_change_"
_SENTINEL: Final = b'{"version":1,"partitions":[]}'
_UP_S: Final = 110.0
_QUIET_S: Final = 0.3
_STUCK_S: Final = 15.0
"""How long nobody writes where something is under way that does not go on."""
_HELD_S: Final = 1.5
"""How long a controller that is to be held may take to come to its stop."""
_LOOK_S: Final = 0.05
_SETTLE_MS: Final = 60_000


class NotUp(Unavailable):
    """A cluster did not come up."""


class KafkaCluster:
    """Brokers of one version. An adapter; its files are in a directory that goes with it.

    Raises BadConnectable for a place that is none, NoJars where the version cannot be had.
    """

    def __init__(self, connectable: str, *, profile: str, readings: Mapping[str, str]) -> None:
        name, _, query = connectable.removeprefix("kafka:").partition("?")
        options = dict(parse_qsl(query, keep_blank_values=True))
        self._version: Final[Version] = parse_version(name)
        self._name: Final = name
        home = options.pop("home", "")
        if options:
            raise BadConnectable(f"{connectable!r}: no option {min(options)}; write {FORM}")
        self._jars: Final = find_jars(name, home)
        self._readings: Final = dict(readings)
        self._folder: Final = tempfile.TemporaryDirectory(prefix="reassure-kafka-")
        self._brokers = KafkaBrokers(self._version, self._jars, Path(self._folder.name))
        self._hosts = self._chroot = ""
        self._proxies: dict[int, FrameProxy] = {}
        self._held: FrameProxy | None = None
        self._announced: dict[str, int] = {}
        self._stuck: set[str] = set()
        """Where something was under way that nobody ended."""
        self._client: Client | None = None

    def describe(self) -> Description:
        """Say which version it is, by whose rules it is judged, and what can be done to it."""
        has_lists = self._version >= _LISTS
        profile, readings = _find_rules(self._version)
        return Description(
            name="Apache Kafka",
            version=self._name,
            language="Scala",
            profile=profile,
            readings={**readings, **self._readings},
            capabilities=frozenset(_ALWAYS if self._version < _FENCED else {*_ALWAYS, *_OF_WRITES}),
            settle_ms=_SETTLE_MS,
            lifetime=RUN,
            routes=frozenset({OLD_ZNODE, ADMIN} if has_lists else {OLD_ZNODE}),
        )

    # -- its life

    def start(self, hosts: str, chroot: str, brokers: tuple[int, ...]) -> None:
        """Start the brokers, and wait until all are registered and one is the controller."""
        self._hosts, self._chroot = hosts, chroot
        self._client = Client(hosts=hosts + chroot, timeout=30.0)
        self._client.start(timeout=15)
        host, _, port = hosts.partition(":")
        for broker in brokers:
            self._proxies[broker] = FrameProxy((host, int(port)))
            self._launch(broker)
        for broker in brokers:
            self._wait_for(broker)
        self._wait(lambda: self._read(CONTROLLER), "no broker became the controller")

    def stop(self) -> None:
        """Kill the brokers."""
        self._brokers.close()

    def close(self) -> None:
        """Kill what still runs, and remove the files."""
        self._brokers.close()
        for proxy in self._proxies.values():
            proxy.close()
        if self._client is not None:
            self._client.stop()
            self._client.close()
        self._folder.cleanup()

    def _launch(self, broker: int) -> None:
        self._brokers.start(broker, f"127.0.0.1:{self._proxies[broker].port}{self._chroot}")

    def _wait_for(self, broker: int) -> None:
        def is_there() -> bool:
            self._brokers.check(broker)
            return self._read(broker_path(broker)) is not None

        self._wait(is_there, f"broker {broker} did not register")

    def _wait(self, condition: Callable[[], object], what: str, seconds: float = _UP_S) -> None:
        """Wait until a condition holds. Raises NotUp."""
        until = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until:
                raise NotUp(
                    f"Kafka {self._name}: {what} within {seconds:g} s; expected it sooner; see "
                    f"server.log of the brokers below {self._folder.name}, and whether the "
                    "machine is busy"
                )
            note_alive()
            time.sleep(_LOOK_S)

    @property
    def _eyes(self) -> Client:
        assert self._client is not None  # the gate starts it first
        return self._client

    def _read(self, path: str) -> bytes | None:
        with suppress(NoNodeError):
            return bytes(self._eyes.get(path)[0])
        return None

    # -- rest

    def settle(self, timeout_s: float) -> bool:
        """Wait until the controller has dealt with all, and whoever can is in sync."""
        until = time.monotonic() + timeout_s
        self._announce_settings()
        if self._held is not None:
            # Whoever is held gets nothing through its queue.
            self._held.is_standing.wait(_HELD_S)
            self._is_quiet(until)
            return False
        seen, since = self._ask(), time.monotonic()
        while time.monotonic() < until:
            note_alive()
            if not self._find_unrest() and self._pass_sentinel(until):
                if not self._find_unrest() and self._is_quiet(until):
                    return True
                since = time.monotonic()
            time.sleep(_LOOK_S)
            if (now := self._ask()) != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() > since + _STUCK_S:
                # Nobody does anything about it: what that means is for the judge to say.
                self._stuck |= self._find_unrest()
        return False

    def _announce_settings(self) -> None:
        """Tell brokers which settings have been changed, as the tools do that write them."""
        for kind in ("brokers", "topics"):
            for name in self._eyes.get_children(f"/config/{kind}"):
                path = f"{kind}/{name}"
                stat = self._eyes.exists(f"/config/{path}")
                if stat is not None and stat.mzxid > self._announced.get(path, stat.czxid):
                    self._announced[path] = stat.mzxid
                    content = {"version": 2, "entity_path": path}
                    told = json.dumps(content).encode()
                    self._eyes.create(_CHANGES, told, sequence=True, makepath=True)

    def _pass_sentinel(self, until: float) -> bool:
        """Whether a request that asks for nothing has come through the controller's queue."""
        with suppress(NodeExistsError):
            self._eyes.create(PREFERRED_ELECTION, _SENTINEL)
        while self._eyes.exists(PREFERRED_ELECTION) is not None:
            if time.monotonic() > until:
                return False
            time.sleep(_LOOK_S / 5)
        return True

    def _is_quiet(self, until: float) -> bool:
        """Whether nobody writes for a while."""
        seen, since = self._ask(), time.monotonic()
        while (now := time.monotonic()) < min(until, since + _QUIET_S):
            time.sleep(_LOOK_S)
            if self._ask() != seen:
                return False
        return now < until

    def _ask(self) -> int:
        self._eyes.exists(CONTROLLER)
        return int(self._eyes.last_zxid)

    def _find_unrest(self) -> set[str]:
        """Return where something is under way that ends by itself: a start, a move, a join."""
        live = {int(name) for name in self._eyes.get_children(BROKER_IDS)}
        if live != self._brokers.up:
            return {BROKER_IDS}
        names = self._eyes.get_children(TOPICS)
        topics = zip(names, self._read_all(map(topic_path, names)), strict=True)
        replicas = [
            (state_path(topic, number), assignment)
            for topic, content in topics
            if content is not None
            for number, assignment in decode_topic_lists(topic_path(topic), content).items()
        ]
        states = self._read_all(path for path, _ in replicas)
        found = {
            path
            for (path, assignment), content in zip(replicas, states, strict=True)
            if _is_under_way(
                assignment, None if content is None else decode_state(path, content), live
            )
        }
        return found - self._stuck

    def _read_all(self, paths: Iterable[str]) -> list[bytes | None]:
        """Return what stands at these paths, None for each that is not there."""
        found: list[bytes | None] = []
        for pending in [self._eyes.get_async(path) for path in paths]:
            try:
                found.append(bytes(pending.get()[0]))
            except NoNodeError:
                found.append(None)
        return found

    # -- steps

    def start_broker(self, broker: int) -> Reply:
        """Start a broker, and wait until it is registered."""
        self._launch(broker)
        self._wait_for(broker)
        return Reply.OK

    def stop_broker(self, broker: int) -> Reply:
        """Kill a broker, and end its session at once."""
        proxy = self._proxies[broker]
        self._brokers.kill(broker)
        if self._held is proxy:
            self._held = None
        proxy.resume()
        proxy.cut()
        if proxy.session is not None:
            expire_session(self._hosts, proxy.session)
        path = broker_path(broker)
        self._wait(lambda: self._read(path) is None, f"the session of broker {broker} did not end")
        return Reply.OK

    def shut_down_broker(self, broker: int) -> Reply:
        """Have a broker stop in good order, and wait for its end."""
        self._brokers.stop(broker)
        return Reply.OK

    def kill_controller(self) -> Reply:
        """Kill the broker that is the controller, and start it again: another one is elected."""
        broker = self._find_controller()
        if broker is None:
            return Reply.REFUSED
        self.stop_broker(broker)
        return self.start_broker(broker)

    def elect(self) -> Reply:
        """Have a controller: every broker contends by itself."""
        return Reply.OK

    def expire_session(self) -> Reply:
        """End the session of the controller, unless it is held: it comes back in another one."""
        proxy = self._find_proxy()
        if proxy is None or proxy.session is None or self._held is not None:
            return Reply.REFUSED
        expire_session(self._hosts, proxy.session)
        return Reply.OK

    def cut_connection(self) -> Reply:
        """Break the controller's connection."""
        proxy = self._find_proxy()
        if proxy is None or self._held is not None:
            return Reply.REFUSED
        proxy.cut()
        return Reply.OK

    def hold(self, effects: int) -> Reply:
        """Hold the controller before its next write but so many; brokers' own are none of them."""
        proxy = self._held or self._find_proxy()
        if proxy is None:
            return Reply.REFUSED
        self._held = proxy
        proxy.hold(effects)
        return Reply.OK

    def resume(self) -> Reply:
        """Let everything go on."""
        for proxy in self._proxies.values():
            proxy.resume()
        self._held = None
        return Reply.OK

    def lose_write(self, writes: int, *, done: bool) -> Reply:
        """Break the controller's connection under its next write but so many."""
        proxy = self._find_proxy()
        if proxy is None or self._held is not None:
            return Reply.REFUSED
        proxy.lose(writes, done=done)
        return Reply.OK

    def change_isr(self, broker: int, topic: str, partition: int, *, joins: bool) -> Reply:
        """Do nothing: who is in sync is for the brokers themselves to say."""
        return Reply.REFUSED

    def _find_controller(self) -> int | None:
        content = self._read(CONTROLLER)
        return None if content is None else decode_controller(CONTROLLER, content)

    def _find_proxy(self) -> FrameProxy | None:
        return self._proxies.get(self._find_controller() or 0)

    def create_topic(
        self, topic: str, assignments: tuple[ReplicaList, ...], settings: Mapping[str, str]
    ) -> Reply:
        """Create a topic as the tools of the version do that write to ZooKeeper."""
        multi = self._eyes.transaction()
        multi.create(topic_config_path(topic), encode_config(settings))
        multi.create(topic_path(topic), self._encode_topic(dict(enumerate(assignments))))
        return Reply.REFUSED if any(isinstance(e, Exception) for e in multi.commit()) else Reply.OK

    def _encode_topic(self, assigned: Mapping[int, ReplicaList]) -> bytes:
        if self._version < _LISTS:
            return encode_topic(assigned)
        if self._version < _IDS:
            return encode_topic_lists({n: AssignmentZnode(each) for n, each in assigned.items()})
        topic_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        return encode_topic(assigned, topic_id)

    def reassign(self, topic: str, partition: int, target: tuple[int, ...]) -> Reply:
        """Ask the controller by the call that stock clients make; no target cancels."""
        broker = self._find_controller()
        content = None if broker is None else self._read(broker_path(broker))
        if broker is None or content is None:
            return Reply.REFUSED
        host, port = decode_broker(broker_path(broker), content)
        return reassign_by_call(f"{host}:{port}", topic, partition, target)


def _is_under_way(assignment: AssignmentZnode, state: StateZnode | None, live: set[int]) -> bool:
    """Whether a partition is about to be led, joined or moved by those who are alive."""
    able = live.intersection(assignment.replicas)
    if state is None:
        return bool(able)
    if state.leader not in live:
        return False
    # Whom a new controller found dead is left to the leader to remove, up to 2.3.
    if not live.issuperset(state.isr):
        return True
    moves = assignment.adding or assignment.removing
    return not able.issubset(state.isr) or bool(moves and able == set(assignment.replicas))


def _find_rules(version: Version) -> tuple[str, Mapping[str, str]]:
    """Return profile and readings by which a log of this release is judged."""
    signs = Signs(
        shown=True,
        trees={next(iter(KAFKAS_OWN))},
        with_lists=version >= _LISTS,
        without_lists=version < _LISTS,
        brokers={_REGISTERED if version >= _IN_ORDER else 1},
        fenced=version >= _FENCED,
    )
    found = find_sign(signs)
    assert found is not None  # a tree of Kafka's own tells
    return found[0], found[1].readings


def open_kafka(connectable: str, *, profile: str, readings: Mapping[str, str]) -> KafkaCluster:
    """Return the adapter that a connectable names."""
    return KafkaCluster(connectable, profile=profile, readings=readings)
