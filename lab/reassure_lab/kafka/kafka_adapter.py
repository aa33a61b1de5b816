"""`kafka:VERSION`: Apache Kafka itself, driven as any other implementation is.

A cluster cannot be stepped, and is started once for a run. It is taken to rest once its controller
has dealt with a *sentinel*, a request that asks for nothing and goes through the same queue as all
else, once every replica that can be in sync is, and nothing was written for a while.
"""

import base64
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl

from kazoo.exceptions import NodeExistsError, NoNodeError

from reassure_conformance.adapter import (
    ADMIN,
    BROKERS,
    OLD_ZNODE,
    RUN,
    BadConnectable,
    Description,
    Reply,
)
from reassure_conformance.supervise import note_alive
from reassure_controller.client import Client
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

FORM: Final = "kafka:VERSION?home=DIRECTORY&brokers=N"
_LISTS: Final = (2, 4)
"""From here on a topic's znode has lists, and there is a call for reassignments."""
_IDS: Final = (2, 8)
"""From here on a topic has an id."""
_FENCED: Final = (2, 1)
"""From here on each write of a controller checks its epoch."""
_IN_ORDER: Final = (0, 10, 2)
"""From here on the first replica in assignment order is elected, whatever for."""
_SENTINEL: Final = b'{"version":1,"partitions":[]}'
_UP_S: Final = 110.0
_QUIET_S: Final = 0.3
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
        self._brokers = KafkaBrokers(self._version, self._jars, Path(self._folder.name), {})
        self._connect = ""
        self._client: Client | None = None

    def describe(self) -> Description:
        """Say which version it is, by whose rules it is judged, and what can be done to it."""
        has_lists = self._version >= _LISTS
        return Description(
            name="Apache Kafka",
            version=self._name,
            language="Scala",
            profile="kafka-zk" if has_lists else "kafka-42",
            readings={**_list_readings(self._version), **self._readings},
            capabilities=frozenset({BROKERS}),
            settle_ms=_SETTLE_MS,
            lifetime=RUN,
            routes=frozenset({OLD_ZNODE, ADMIN} if has_lists else {OLD_ZNODE}),
        )

    # -- its life

    def start(self, hosts: str, chroot: str, brokers: tuple[int, ...]) -> None:
        """Start the brokers, and wait until all are registered and one is the controller."""
        self._connect = hosts + chroot
        self._client = Client(hosts=self._connect, timeout=30.0)
        self._client.start(timeout=15)
        for broker in brokers:
            self._brokers.start(broker, self._connect)
        for broker in brokers:
            self._wait_for(broker)
        self._wait(lambda: self._read(CONTROLLER), "no broker became the controller")

    def stop(self) -> None:
        """Kill the brokers."""
        self._brokers.close()

    def close(self) -> None:
        """Kill what still runs, and remove the files."""
        self._brokers.close()
        if self._client is not None:
            self._client.stop()
            self._client.close()
        self._folder.cleanup()

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
                    f"Kafka {self._name}: {what} within {seconds:g} s; expected it sooner; see the "
                    f"brokers' server.log below {self._folder.name}, and whether the machine is busy"
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
        while time.monotonic() < until:
            note_alive()
            is_still = not self._is_unrest() and self._pass_sentinel(until)
            if is_still and not self._is_unrest() and self._is_quiet(until):
                return True
            time.sleep(_LOOK_S)
        return False

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

    def _is_unrest(self) -> bool:
        """Whether something is under way that ends by itself: a start, a move, a join."""
        live = {int(name) for name in self._eyes.get_children(BROKER_IDS)}
        if live != self._brokers.up:
            return True
        for topic, lists in self._iterate_topics():
            for number, assignment in lists.items():
                content = self._read(state_path(topic, number))
                if content is None:
                    return bool(live.intersection(assignment.replicas))
                state = decode_state(state_path(topic, number), content)
                able = live.intersection(assignment.replicas)
                if state.leader in live and not able.issubset(state.isr):
                    return True
                moves = assignment.adding or assignment.removing
                if moves and state.leader in live and able == set(assignment.replicas):
                    return True
        return False

    def _iterate_topics(self) -> Iterator[tuple[str, Mapping[int, AssignmentZnode]]]:
        for topic in self._eyes.get_children(TOPICS):
            content = self._read(topic_path(topic))
            if content is not None:
                yield topic, decode_topic_lists(topic_path(topic), content)

    # -- steps

    def start_broker(self, broker: int) -> Reply:
        """Start a broker, and wait until it is registered."""
        self._brokers.start(broker, self._connect)
        self._wait_for(broker)
        return Reply.OK

    def stop_broker(self, broker: int) -> Reply:
        """Kill a broker, and wait until its session has ended."""
        self._brokers.kill(broker)
        path = broker_path(broker)
        self._wait(lambda: self._read(path) is None, f"the session of broker {broker} did not end")
        return Reply.OK

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
        broker = decode_controller(CONTROLLER, self._read(CONTROLLER) or b"")
        host, port = decode_broker(broker_path(broker), self._read(broker_path(broker)) or b"")
        return reassign_by_call(f"{host}:{port}", topic, partition, target)

    def _refuse(self, *args: object, **kwargs: object) -> Reply:
        return Reply.REFUSED

    change_isr = hold = resume = kill_controller = _refuse
    elect = expire_session = cut_connection = _refuse


def _list_readings(version: Version) -> dict[str, str]:
    """Return the readings by which a version is judged beyond its profile's."""
    if version >= _LISTS:
        return {}
    readings = {"move.cut-isr": "yes", "move.expand-first": "yes"}
    if version >= _FENCED:
        readings["controller.fenced"] = "yes"
    if version >= _IN_ORDER:
        readings["election.order"] = "assignment"
    return readings


def open_kafka(connectable: str, *, profile: str, readings: Mapping[str, str]) -> KafkaCluster:
    """Return the adapter that a connectable names."""
    return KafkaCluster(connectable, profile=profile, readings=readings)
