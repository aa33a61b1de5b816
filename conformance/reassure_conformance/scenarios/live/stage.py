"""The stage of one live scenario: a chroot, its brokers and controllers, and what its log shows.

What is told here is what ZooKeeper says. The judge follows the transaction log; each write of a
controller becomes a `Done`, which says besides whether the model owed that write.
"""

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from kazoo.protocol.states import ZnodeStat

from reassure_conformance.adapter import Adapter, Reply
from reassure_conformance.adapter.driver import SETTLE_TIMEOUT_S, Driver, ServerGone
from reassure_judge.history import Observation
from reassure_judge.judge import Tracking
from reassure_judge.protocols import make_rules
from reassure_judge.protocols.kip_236 import find_write
from reassure_judge.verdicts import Violation
from reassure_model.kip_236.identity import Identity
from reassure_model.kip_236.obligations import next_write
from reassure_model.kip_236.rules import apply_failover
from reassure_model.kip_236.state import (
    Environment,
    Partition,
    Reassignment,
    Request,
    from_znode,
    to_znode,
)
from reassure_model.kip_236.writes import (
    ChangeIsr,
    CreateReassignment,
    CreateState,
    DeleteReassignment,
    DeleteRequest,
    UpdateReassignment,
    Write,
    WriteAssigned,
    WriteState,
)
from reassure_spec import znodes
from reassure_spec.readings import Readings
from reassure_spec.znodes import PartitionKey, ReplicaList, StateZnode

Answer = TypeVar("Answer")


class NotLive(Exception):
    """A story that cannot be told any further on a real controller."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        """Why, in words that are the same for every story with that reason."""
        self.detail = detail


class LiveAdapter(Adapter, Protocol):
    """An adapter that can be put into the middle of a story."""

    def inform(self, topic: str, partition: int, replicas: ReplicaList, state: StateZnode) -> None:
        """Have the live replicas know a partition as if a controller had told them."""

    def deliver(self) -> None:
        """Carry out the messages that the controller sends before its next write."""

    def write_as(self, broker: int, path: str, content: bytes) -> Reply:
        """Write a znode in the session of a broker, REFUSED where it has none."""


@dataclass(frozen=True, slots=True)
class Done:
    """One write of a controller."""

    key: PartitionKey
    write: Write
    before: Partition
    """What it was made to."""
    clause: str
    """The clause by which exactly this write was owed, "" where it was not."""
    broken: str
    """The clause that the judge says it breaks, "" where it breaks none."""

    @property
    def is_spare_raise(self) -> bool:
        """Whether it only raises the leader epoch, and neither was owed nor breaks a clause."""
        old = self.before.state
        if self.clause or self.broken or old is None or not isinstance(self.write, WriteState):
            return False
        new = self.write.state
        return (new.leader, new.isr) == (old.leader, old.isr)


class Stage:
    """One cluster in a chroot of its own; made by `LiveServer`, ended by `end`."""

    def __init__(
        self,
        driver: Driver,
        adapter: LiveAdapter,
        readings: Readings,
    ) -> None:
        self.chroot = ""
        self.transactions = 0
        """How many the log shows of this cluster."""
        self.forged = False
        """Whether a write stands that nobody asked for, and that the controller did not make."""
        self.observed: list[Observation] = []
        """What the log shows, in order."""
        self.raises: Counter[str] = Counter()
        """How often a leader epoch was raised though nobody owed that, by partition."""
        self._readings = readings
        self._driver = driver
        self._adapter = adapter
        rules = make_rules("kip-236", readings)
        self._router = rules.make_router()
        self._tracking = Tracking(rules)
        self._epochs: dict[PartitionKey, int] = {}
        self._zxid = 0

    def begin(self, brokers: ReplicaList, known: Iterable[int]) -> None:
        """Make the persistent paths, register the brokers and elect a controller, which waits."""
        configs = [
            (znodes.broker_config_path(broker), znodes.encode_config({})) for broker in known
        ]
        self.chroot = self._driver.make_cluster(configs)
        self._driver.read_log()
        self.call(lambda adapter: adapter.start(self._driver.hosts, self.chroot, brokers))
        self._give((self.chroot + path, content) for path, content in configs)
        self.read()
        # Who is alive when the story begins is known to everybody: nothing is in doubt.
        self._router.settle(self.chroot)

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Stop brokers and controllers; the chroot is left behind, as nobody looks there again."""
        self.call(lambda adapter: adapter.stop())

    def call(self, do: Callable[[LiveAdapter], Answer]) -> Answer:
        """Have the adapter do something. Raises AdapterDied when it raises."""
        with self._driver.calling(self.chroot):
            return do(self._adapter)

    # -- what clients do

    def create_partition(
        self, key: PartitionKey, partition: Partition, min_insync: int, *, given: bool
    ) -> None:
        """Make a partition. Where it is given, it has been there before the story began.

        The judge takes what is given as it is, and the brokers have been told of it.
        """
        topic, number = key
        nodes: list[tuple[str, bytes]] = []
        stored = self._read(znodes.topic_path(topic))
        assigned = {} if stored is None else znodes.decode_topic(znodes.topic_path(topic), stored)
        assigned[number] = partition.assigned or ()
        nodes.append((znodes.topic_path(topic), znodes.encode_topic(assigned)))
        if min_insync != 1:
            nodes.append(self._config(topic, min_insync))
        if partition.state is not None:
            nodes.append((f"{znodes.topic_path(topic)}/partitions", b""))
            nodes.append((znodes.partition_path(topic, number), b""))
            content = znodes.encode_state(to_znode(partition.state))
            nodes.append((znodes.state_path(topic, number), content))
        if partition.reassignment is not None:
            nodes.append((f"{znodes.REASSIGNMENTS}/{topic}", b""))
            flight = partition.reassignment
            record = znodes.ReassignmentZnode(flight.top, flight.target, flight.legacy)
            nodes.append(
                (znodes.reassignment_path(topic, number), znodes.encode_reassignment(record))
            )
        self.put(nodes, given=given)
        if given and partition.state is not None and partition.assigned is not None:
            replicas, state = partition.assigned, to_znode(partition.state)
            self.call(lambda adapter: adapter.inform(topic, number, replicas, state))

    def _config(self, topic: str, min_insync: int) -> tuple[str, bytes]:
        content = znodes.encode_config({"min.insync.replicas": str(min_insync)})
        return znodes.topic_config_path(topic), content

    def set_min_insync(self, topics: Iterable[str], min_insync: int) -> None:
        """Write `min.insync.replicas` of these topics."""
        self.put([self._config(topic, min_insync) for topic in topics], given=False)

    def put(self, nodes: Iterable[tuple[str, bytes]], *, given: bool) -> None:
        """Write znodes in one transaction, making those that are not there."""
        self.read()
        nodes = tuple(nodes)
        self._driver.put(self.chroot, dict(nodes))
        if given:
            self._driver.read_log()
            self._give((self.chroot + path, content) for path, content in nodes)
        else:
            self.read()

    def keep(self, path: str, content: bytes | None) -> None:
        """Have a client see to it that a znode has this content, or is not there (None)."""
        if content is not None and not self.exists(path):
            self.put([(path, content)], given=False)
        elif content is None and self.exists(path):
            self._driver.client.delete(self.chroot + path)
            self.read()

    def _give(self, nodes: Iterable[tuple[str, bytes]]) -> None:
        """Have the judge take znodes as they are."""
        for seen in self._router.load((path, content, 0) for path, content in nodes):
            self._tracking.observe(seen)
            self._epochs[seen.topic, seen.partition] = seen.around.controller_epoch

    def submit(self, targets: dict[PartitionKey, ReplicaList], *, legacy: bool) -> None:
        """Make one request for these partitions."""
        self.create_request(znodes.encode_request(znodes.RequestZnode(targets, legacy)))

    def create_request(self, content: bytes) -> None:
        """Make a request with this content."""
        if self._driver.submit(self.chroot, [content]) is not Reply.OK:
            raise ServerGone(f"ZooKeeper did not take a request in {self.chroot}")
        self.read()

    def forge(self, key: PartitionKey, write: Write) -> Violation | None:
        """Make a write that nobody asked for, in the name of the controller or of a broker.

        The judge says of it what it says of any other in the log. One that breaks a clause is put
        back as it was, and forgotten. Raises NotLive for a broker that has no session.
        """
        self.read()
        paths = _list_paths(key, write)
        before = [(path, self._read(path)) for path in paths]
        if isinstance(write, ChangeIsr):
            content = znodes.encode_state(to_znode(write.state))
            reply = self.call(lambda a: a.write_as(write.writer, paths[-1], content))
            if reply is not Reply.OK:
                raise NotLive("a write of a broker that has no session", str(write.writer))
        else:
            self._write_fenced(key, write, paths)
        # Routing and tracking share what they count, so they are copied as one.
        kept = copy.deepcopy((self._router, self._tracking, self._epochs))
        found = len(self._tracking.violations)
        self.read(by_controller=not isinstance(write, ChangeIsr))
        broken = self._tracking.violations[found:]
        if not broken:
            self.forged = True
            return None
        self._router, self._tracking, self._epochs = kept
        self._put_back(before)
        self._driver.read_log()
        return broken[0]

    def _write_fenced(self, key: PartitionKey, write: Write, paths: Sequence[str]) -> None:
        """Make the write in a transaction that checks the controller epoch."""
        transaction = self._driver.client.transaction()
        epoch = self.chroot + znodes.CONTROLLER_EPOCH
        transaction.check(epoch, self._driver.client.exists(epoch).version)
        for path in paths[:-1]:
            if self._read(path) is None:
                transaction.create(self.chroot + path, b"")
        place, content = self.chroot + paths[-1], self._encode(key, write)
        if content is None:
            transaction.delete(place)
        elif self._read(paths[-1]) is None:
            transaction.create(place, content)
        else:
            transaction.set_data(place, content)
        self._driver.commit(transaction)

    def _encode(self, key: PartitionKey, write: Write) -> bytes | None:
        """Return the content that a write leaves, None where it deletes."""
        match write:
            case CreateState(state) | WriteState(state) | ChangeIsr(state, _):
                return znodes.encode_state(to_znode(state))
            case WriteAssigned(assigned):
                path = znodes.topic_path(key[0])
                lists = znodes.decode_topic(path, self._read(path) or b"")
                return znodes.encode_topic({**lists, key[1]: assigned})
            case CreateReassignment(flight) | UpdateReassignment(flight):
                record = znodes.ReassignmentZnode(flight.top, flight.target, flight.legacy)
                return znodes.encode_reassignment(record)
            case DeleteReassignment() | DeleteRequest():
                return None

    def _put_back(self, before: Iterable[tuple[str, bytes | None]]) -> None:
        transaction = self._driver.client.transaction()
        changed = [(path, old, self._read(path)) for path, old in before]
        for path, old, new in changed:
            if old is not None and new is None:
                transaction.create(self.chroot + path, old)
            elif old is not None and old != new:
                transaction.set_data(self.chroot + path, old)
        for path, old, new in reversed(changed):
            if old is None and new is not None:
                transaction.delete(self.chroot + path)
        self._driver.commit(transaction)

    # -- what the implementation does

    def change_isr(self, broker: int, key: PartitionKey, *, joins: bool) -> Reply:
        """Have the leader take a replica into the in-sync set, or out of it.

        Messages about the last write have arrived by then.
        """
        self.call(lambda adapter: adapter.deliver())
        reply = self.call(lambda adapter: adapter.change_isr(broker, *key, joins=joins))
        self.read()
        return reply

    def stop_broker(self, broker: int) -> Reply:
        """Let a broker die."""
        reply = self.call(lambda adapter: adapter.stop_broker(broker))
        self.read()
        return reply

    def start_broker(self, broker: int) -> Reply:
        """Bring a broker back."""
        reply = self.call(lambda adapter: adapter.start_broker(broker))
        self.read()
        return reply

    def fail_over(self) -> None:
        """Kill the controller wherever it stands and elect another one, which waits."""
        self.call(lambda adapter: adapter.kill_controller())
        self.call(lambda adapter: adapter.elect())
        self.read()

    def work(self, effects: int | None) -> tuple[list[Done], bool]:
        """Let the controller carry out so many effects, or all that it finds to do.

        Returns its writes, and whether nothing was left to do.
        """
        self.call(lambda adapter: adapter.resume())
        if effects is not None:
            self.call(lambda adapter: adapter.hold(effects))
        quiet = self.call(lambda adapter: adapter.settle(SETTLE_TIMEOUT_S))
        done = self.read()
        if quiet:
            self._rest()
        return done, quiet

    # -- what ZooKeeper says

    def read(self, *, by_controller: bool = False) -> list[Done]:
        """Judge what the log shows since the last look; return what controllers wrote.

        With `by_controller` it is taken for the acting controller's, whoever wrote it.
        """
        done: list[Done] = []
        winner = self._router.get_cluster(self.chroot).terms.winner
        for transaction in self._driver.read_log():
            if by_controller and winner is not None:
                transaction = replace(transaction, session_id=winner)
            seen = [one for one in self._router.feed(transaction) if one.chroot == self.chroot]
            self.transactions += bool(seen)
            for one in seen:
                self._zxid = one.zxid
                self.observed.append(one)
                found = self._judge(one)
                done += [] if found is None else [found]
        return done

    def _judge(self, seen: Observation) -> Done | None:
        """Judge one observation; say what was done where a controller did it."""
        key = (seen.topic, seen.partition)
        if seen.partition < 0:
            self._tracking.observe(seen)
            return None
        before = self.partition(key, seen.around.controller_epoch)
        self._epochs[key] = seen.around.controller_epoch
        found = len(self._tracking.violations)
        self._tracking.observe(seen)
        # No broker stops here but by a step of the story: there is nothing to wait for.
        self._tracking.partitions[(seen.chroot, *key)].suspicions.rest()
        write = find_write(before, seen.event)
        if write is None:
            return None
        owed = next_write(before, seen.around, self._readings)
        clause = owed.clause if owed is not None and owed.write == write else ""
        broken = [violation.clause for violation in self._tracking.violations[found:]]
        return Done(key, write, before, clause, broken[0] if broken else "")

    def _rest(self) -> None:
        self._router.settle(self.chroot)
        untouched = self._router.get_cluster(self.chroot).find_untouched()
        for key, tracker in self._tracking.partitions.items():
            tracker.rest(*key, self._zxid, self.environment(key[1]), untouched)
        for chroot, cluster in self._tracking.clusters.items():
            cluster.rest(chroot, self._zxid, self.environment(""), untouched)

    @property
    def violations(self) -> tuple[Violation, ...]:
        """What the judge found so far."""
        return tuple(self._tracking.violations)

    @property
    def controller_epoch(self) -> int:
        """The controller epoch in office."""
        epoch: int = self._router.get_cluster(self.chroot).epoch
        return epoch

    def partition(self, key: PartitionKey, epoch: int | None = None) -> Partition:
        """Return the partition as the log leaves it, with what follows from the order of writes.

        It is seen by the controller with this epoch, without one by the controller in office.
        """
        tracker = self._tracking.partitions.get((self.chroot, *key))
        if tracker is None:
            return Partition()
        epoch = self.controller_epoch if epoch is None else epoch
        if self._epochs.get(key, epoch) == epoch:
            found: Partition = tracker.partition
            return found
        return apply_failover(tracker.partition, self._readings)

    def environment(self, topic: str) -> Environment:
        """Return the environment as the log leaves it."""
        around: Environment = self._router.get_cluster(self.chroot).get_surroundings(topic)
        return around

    def _fetch(self, paths: Iterable[str]) -> list[tuple[bytes, ZnodeStat] | None]:
        return self._driver.fetch(self.chroot, paths)

    def _read(self, path: str) -> bytes | None:
        return self._driver.read(self.chroot, path)

    def exists(self, path: str) -> bool:
        """Whether there is a znode with this path."""
        return self._driver.client.exists(self.chroot + path) is not None

    def read_brokers(self) -> tuple[frozenset[int], frozenset[int]]:
        """Return the registered brokers, and these with those that have a configuration."""
        paths = (znodes.BROKER_IDS, znodes.BROKER_CONFIGS)
        pending = [self._driver.client.get_children_async(self.chroot + path) for path in paths]
        live, configured = (frozenset(map(int, names.get())) for names in pending)
        return live, live | configured

    def read_partition(self, key: PartitionKey) -> tuple[Partition, Identity | None]:
        """Return what the znodes hold of a partition, and the zxids of its record."""
        root = znodes.REASSIGNMENT_REQUESTS
        paths = (znodes.topic_path(key[0]), znodes.state_path(*key), znodes.reassignment_path(*key))
        names = self._driver.client.get_children_async(self.chroot + root)
        topic, state, record = self._fetch(paths)
        queue = [f"{root}/{name}" for name in sorted(names.get())]
        assigned = None if topic is None else znodes.decode_topic(paths[0], topic[0]).get(key[1])
        partition = Partition(
            assigned, requests=tuple(_find_requests(key, queue, self._fetch(queue)))
        )
        if state is not None:
            found = from_znode(znodes.decode_state(paths[1], state[0]))
            partition = replace(partition, state=found)
        if record is None:
            return partition, None
        flight = znodes.decode_reassignment(paths[2], record[0])
        in_flight = Reassignment(flight.target, flight.top, flight.legacy)
        identity = Identity(record[1].czxid, record[1].mzxid)
        return replace(partition, reassignment=in_flight), identity


def _find_requests(
    key: PartitionKey, paths: Iterable[str], found: Iterable[tuple[bytes, ZnodeStat] | None]
) -> Iterator[Request]:
    """Yield what the requests ask of a partition."""
    for path, content in zip(paths, found, strict=True):
        sequence = znodes.parse_request_name(path.rpartition("/")[2])
        if sequence is None or content is None:
            continue
        request = znodes.decode_request(path, content[0])
        if key in request.assignments:
            yield Request(sequence, request.assignments[key], request.legacy)


def _list_paths(key: PartitionKey, write: Write) -> tuple[str, ...]:
    """Return the znode that a write is made to, after those above it that may be missing."""
    topic, number = key
    match write:
        case CreateState() | WriteState() | ChangeIsr():
            above = (f"{znodes.topic_path(topic)}/partitions", znodes.partition_path(topic, number))
            return (*above, znodes.state_path(topic, number))
        case WriteAssigned():
            return (znodes.topic_path(topic),)
        case CreateReassignment() | UpdateReassignment() | DeleteReassignment():
            return (f"{znodes.REASSIGNMENTS}/{topic}", znodes.reassignment_path(topic, number))
        case DeleteRequest(sequence):
            return (znodes.request_path(sequence),)


@dataclass(frozen=True, slots=True)
class MakeStage:
    """Begins another cluster, of controllers and brokers with these faults."""

    begin: Callable[[], Stage]
    faults: frozenset[str]

    def __call__(self) -> Stage:
        """Begin it."""
        return self.begin()
