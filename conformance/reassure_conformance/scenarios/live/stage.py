"""The stage of one live scenario: a chroot, its brokers and controllers, and what its log shows.

What is told here is what ZooKeeper says. The judge follows the transaction log; each write of a
controller becomes a `Done`, which says besides whether the model owed that write.
"""

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

from reassure_conformance.adapter import Reply
from reassure_conformance.adapter.driver import SETTLE_TIMEOUT_S, Driver, ServerGone
from reassure_conformance.adapter.replicating import ReplicatingCluster
from reassure_controller.effects import Step
from reassure_judge.history import SeenWrite
from reassure_judge.judge import Tracking
from reassure_judge.protocols import make_rules
from reassure_judge.verdicts import Location, Violation
from reassure_model.environment import Die, Failover, Return
from reassure_model.partition import Environment, LeaderAndIsr, to_znode
from reassure_model.writes import WriteState
from reassure_spec import znodes
from reassure_spec.readings import Readings
from reassure_spec.znodes import PartitionKey, ReplicaList, StateZnode
from reassure_zookeeper.transactions import Create

Answer = TypeVar("Answer")
ANOTHER_WAY: Final = "the controller goes another way, which the rules allow"
REFUSED: Final = "the leader refuses a change of the in-sync set that the rules allow"
"""Why a story ends where a controller does what is allowed, and is not what the model would do."""


class NotLive(Exception):
    """A story that cannot be told any further on a real controller."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        """Why, in words that are the same for every story with that reason."""
        self.detail = detail


class LiveAdapter(Protocol):
    """An adapter, as far as stories need it, that can be put into the middle of one."""

    def start(self, hosts: str, chroot: str, brokers: tuple[int, ...], /) -> None:
        """Register the brokers in the chroot and elect a controller."""

    def stop(self) -> None:
        """End what was started."""

    def close(self) -> None:
        """End for good."""

    def settle(self, timeout_s: float, /) -> bool:
        """Let the controller work until nothing is left to do; answer whether that came about."""

    def hold(self, effects: int, /) -> Reply:
        """Let the controller carry out so many effects, and no more."""

    def resume(self) -> Reply:
        """Let it carry out whatever it finds to do."""

    def start_broker(self, broker: int) -> Reply:
        """Bring a broker back."""

    def stop_broker(self, broker: int) -> Reply:
        """Let a broker die."""

    def change_isr(self, broker: int, topic: str, partition: int, *, joins: bool) -> Reply:
        """Have a replica come into the in-sync set, or leave it."""

    def kill_controller(self) -> Reply:
        """End the acting controller."""

    def elect(self) -> Reply:
        """Let another one stand for election."""

    def inform(self, topic: str, partition: int, replicas: ReplicaList, state: StateZnode) -> None:
        """Have the live replicas know a partition as if a controller had told them."""

    def deliver(self) -> None:
        """Carry out the messages that the controller sends before its next write."""

    def write_as(self, broker: int, path: str, content: bytes) -> Reply:
        """Write a znode in the session of a broker, REFUSED where it has none."""


@runtime_checkable
class PlanningAdapter(LiveAdapter, Protocol):
    """One whose controllers have a clock of their own, and show what they are about to do."""

    @property
    def now_ms(self) -> int:
        """The controllers' clock."""

    def advance(self, milliseconds: int) -> Reply:
        """Let time pass on the controllers' clock."""

    def go_on_to(self, kinds: tuple[type, ...], timeout_s: float) -> tuple[Step, ...]:
        """Let the controller work until an effect of these kinds comes next; return its plan."""


@dataclass(frozen=True, slots=True)
class Done:
    """One write of a controller."""

    key: PartitionKey
    write: Any
    before: Any
    """The partition that it was made to, in the model's words."""
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


Hear = Callable[[SeenWrite, Done | None, str], None]
"""Takes an observation, what a controller did by that to a partition, and a clause that it breaks.

It may look at the stage, and does not raise."""


class Stage:
    """One cluster in a chroot of its own; made by `LiveServer`, ended by `end`."""

    def __init__(
        self,
        driver: Driver,
        adapter: LiveAdapter,
        profile: str,
        readings: Readings,
    ) -> None:
        self.driver: Final = driver
        self.chroot = ""
        self.transactions = 0
        """How many the log shows of this cluster."""
        self.forged = False
        """Whether a write stands that nobody asked for, and that the controller did not make."""
        self.observed: list[SeenWrite] = []
        """What the log shows, in order."""
        self.hear: Hear = lambda *_: None
        """Told of each observation when it was judged."""
        self.raises: Counter[str] = Counter()
        """How often a leader epoch was raised though nobody owed that, by partition."""
        self._adapter = adapter
        self._rules = make_rules(profile, readings)
        self._router = self._rules.make_router()
        self._tracking = Tracking(self._rules)
        self._epochs: dict[PartitionKey, int] = {}
        self._zxid = 0

    def begin(self, brokers: ReplicaList, known: Iterable[int]) -> None:
        """Make the persistent paths, register the brokers and elect a controller, which waits."""
        configs = [
            (znodes.broker_config_path(broker), znodes.encode_config({})) for broker in known
        ]
        self.chroot = self.driver.make_cluster(configs)
        self.driver.read_log()
        self.call(lambda adapter: adapter.start(self.driver.hosts, self.chroot, brokers))
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
        with self.driver.calling(self.chroot):
            return do(self._adapter)

    # -- what clients do

    def create_partition(
        self,
        key: PartitionKey,
        assigned: ReplicaList,
        state: LeaderAndIsr | None,
        min_insync: int = 1,
        more: Iterable[tuple[str, bytes]] = (),
        *,
        given: bool,
    ) -> None:
        """Make a partition, and `more` znodes. Where it is given, it was there before the story.

        The judge takes what is given as it is, and the brokers have been told of it.
        """
        topic, number = key
        path = znodes.topic_path(topic)
        stored = self.fetch(path)
        lists = {} if stored is None else znodes.decode_topic(path, stored)
        nodes = [(path, znodes.encode_topic({**lists, number: assigned}))]
        if min_insync != 1:
            nodes.append(self._config(topic, min_insync))
        if state is not None:
            nodes.append((f"{path}/partitions", b""))
            nodes.append((znodes.partition_path(topic, number), b""))
            nodes.append((znodes.state_path(topic, number), znodes.encode_state(to_znode(state))))
        self.put([*nodes, *more], given=given)
        if given and state is not None:
            told = to_znode(state)
            self.call(lambda adapter: adapter.inform(topic, number, assigned, told))

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
        self.driver.put(self.chroot, dict(nodes))
        if given:
            self.driver.read_log()
            self._give((self.chroot + path, content) for path, content in nodes)
        else:
            self.read()

    def keep(self, path: str, content: bytes | None) -> None:
        """Have a client see to it that a znode has this content, or is not there (None)."""
        if content is not None and not self.exists(path):
            self.put([(path, content)], given=False)
        elif content is None and self.exists(path):
            self.driver.client.delete(self.chroot + path)
            self.read()

    def _give(self, nodes: Iterable[tuple[str, bytes]]) -> None:
        """Have the judge take znodes as they are."""
        for seen in self._router.load((path, content, 0) for path, content in nodes):
            self._tracking.observe(seen)
            self._epochs[seen.topic, seen.partition] = seen.around.controller_epoch
            self.hear(seen, None, "")

    def create(self, create: Callable[[Driver], Reply], *, given: bool = False) -> None:
        """Have a client make a znode whose name ZooKeeper completes.

        Where it is given the judge takes it as it is, and asks nobody for it.
        """
        self.read()
        if create(self.driver) is not Reply.OK:
            raise ServerGone(f"ZooKeeper did not make a znode in {self.chroot}")
        if given:
            made = (op for transaction in self.driver.read_log() for op in transaction.ops)
            self._give((op.path, op.data) for op in made if isinstance(op, Create))
        else:
            self.read()

    def forge(self, paths: Sequence[str], content: bytes | None) -> Violation | None:
        """Write the last of these znodes (None: delete it) in the name of the controller.

        Those before it are made where they are missing. See `_try`.
        """
        return self._try(paths, lambda: self._write_fenced(paths, content), by_controller=True)

    def forge_as(self, broker: int, path: str, content: bytes) -> Violation | None:
        """Write a znode in a broker's name. Raises NotLive where that has no session."""

        def write() -> None:
            if self.call(lambda a: a.write_as(broker, path, content)) is not Reply.OK:
                raise NotLive("a write of a broker that has no session", str(broker))

        return self._try((path,), write, by_controller=False)

    def _try(
        self, paths: Iterable[str], write: Callable[[], None], *, by_controller: bool
    ) -> Violation | None:
        """Make a write that nobody asked for, and return what the judge says of it.

        One that breaks a clause is put back as it was, and forgotten.
        """
        self.read()
        before = [(path, self.fetch(path)) for path in paths]
        write()
        # Routing and tracking share what they count, so they are copied as one.
        kept = copy.deepcopy((self._router, self._tracking, self._epochs))
        found = len(self._tracking.violations)
        self.read(by_controller=by_controller)
        broken = self._tracking.violations[found:]
        if not broken:
            self.forged = True
            return None
        self._router, self._tracking, self._epochs = kept
        self._put_back(before)
        self.driver.read_log()
        return broken[0]

    def _write_fenced(self, paths: Sequence[str], content: bytes | None) -> None:
        """Write in a transaction that checks the controller epoch."""
        transaction = self.driver.client.transaction()
        epoch = self.chroot + znodes.CONTROLLER_EPOCH
        transaction.check(epoch, self.driver.client.exists(epoch).version)
        for path in paths[:-1]:
            if self.fetch(path) is None:
                transaction.create(self.chroot + path, b"")
        place = self.chroot + paths[-1]
        if content is None:
            transaction.delete(place)
        elif self.fetch(paths[-1]) is None:
            transaction.create(place, content)
        else:
            transaction.set_data(place, content)
        self.driver.commit(transaction)

    def _put_back(self, before: Iterable[tuple[str, bytes | None]]) -> None:
        transaction = self.driver.client.transaction()
        changed = [(path, old, self.fetch(path)) for path, old in before]
        for path, old, new in changed:
            if old is not None and new is None:
                transaction.create(self.chroot + path, old)
            elif old is not None and old != new:
                transaction.set_data(self.chroot + path, old)
        for path, old, new in reversed(changed):
            if old is None and new is not None:
                transaction.delete(self.chroot + path)
        self.driver.commit(transaction)

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

    def act(self, action: object) -> Reply:
        """Have a broker die or return, or the controller be another one."""
        match action:
            case Die(broker):
                return self.stop_broker(broker)
            case Return(broker):
                return self.start_broker(broker)
            case Failover():
                self.fail_over()
                return Reply.OK
            case _:
                raise AssertionError(action)

    def go_on_to(self, kinds: tuple[type, ...]) -> tuple[Step, ...]:
        """Let the controller work until an effect of these kinds comes next.

        Returns what is left of its plan then, () where it found nothing more to do.
        """
        self.call(lambda adapter: adapter.resume())
        planning = self._planning
        plan = self.call(lambda _: planning.go_on_to(kinds, SETTLE_TIMEOUT_S))
        self.read()
        if not plan:
            self._rest()
        return plan

    def advance(self, milliseconds: int) -> None:
        """Let time pass on the controllers' clock."""
        planning = self._planning
        self.call(lambda _: planning.advance(milliseconds))

    @property
    def now_ms(self) -> int:
        """The controllers' clock."""
        return self._planning.now_ms

    @property
    def _planning(self) -> PlanningAdapter:
        assert isinstance(self._adapter, PlanningAdapter)
        return self._adapter

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
        for transaction in self.driver.read_log():
            if by_controller and winner is not None:
                transaction = replace(transaction, session_id=winner)
            seen = [one for one in self._router.feed(transaction) if one.chroot == self.chroot]
            self.transactions += bool(seen)
            for one in seen:
                self._zxid = one.zxid
                self.observed.append(one)
                before = len(self._tracking.violations)
                found = self._judge(one)
                done += [] if found is None else [found]
                broken = [violation.clause for violation in self._tracking.violations[before:]]
                self.hear(one, found, broken[0] if broken else "")
        return done

    def _judge(self, seen: SeenWrite) -> Done | None:
        """Judge one observation; say what was done where a controller did it."""
        key = (seen.topic, seen.partition)
        if seen.partition < 0:
            self._tracking.observe(seen)
            return None
        before = self._find_state(key, seen.around.controller_epoch)
        write = None if seen.given else self._rules.find_write(before, seen)
        self._epochs[key] = seen.around.controller_epoch
        found = len(self._tracking.violations)
        self._tracking.observe(seen)
        # No broker stops here but by a step of the story: there is nothing to wait for.
        self._tracking.partitions[(seen.chroot, *key)].suspicions.rest()
        if write is None or isinstance(write, self._rules.leaders):
            return None
        owed = self._rules.find_owed(before.partition, seen.around)
        clause = owed.clause if owed is not None and owed.write == write else ""
        broken = [violation.clause for violation in self._tracking.violations[found:]]
        return Done(key, write, before.partition, clause, broken[0] if broken else "")

    def _rest(self) -> None:
        self._router.settle(self.chroot)
        untouched = self._router.get_cluster(self.chroot).find_untouched()
        for key, tracker in self._tracking.partitions.items():
            place = Location(self._zxid, *key, "")
            tracker.rest(place, self.environment(key[1]), untouched)
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

    def partition(self, key: PartitionKey) -> Any:
        """Return the partition as the log leaves it, with what follows from the order of writes.

        It is seen by the controller in office.
        """
        return self._find_state(key, self.controller_epoch).partition

    def _find_state(self, key: PartitionKey, epoch: int) -> Any:
        """Return the likeliest state of a partition, as the controller with this epoch sees it."""
        tracker = self._tracking.partitions.get((self.chroot, *key))
        if tracker is None:
            return self._rules.begin()
        state = tracker.states[0]
        return state if self._epochs.get(key, epoch) == epoch else self._rules.fail_over(state)

    def environment(self, topic: str) -> Environment:
        """Return the environment as the log leaves it."""
        around: Environment = self._router.get_cluster(self.chroot).get_surroundings(topic)
        return around

    def fetch(self, path: str) -> bytes | None:
        """Return the content of a znode, None where it is not there."""
        return self.driver.read(self.chroot, path)

    def exists(self, path: str) -> bool:
        """Whether there is a znode with this path."""
        return self.driver.client.exists(self.chroot + path) is not None

    def read_brokers(self) -> tuple[frozenset[int], frozenset[int]]:
        """Return the registered brokers, and these with those that have a configuration."""
        paths = (znodes.BROKER_IDS, znodes.BROKER_CONFIGS)
        pending = [self.driver.client.get_children_async(self.chroot + path) for path in paths]
        live, configured = (frozenset(map(int, names.get())) for names in pending)
        return live, live | configured


@dataclass(frozen=True, slots=True)
class MakeStage:
    """Begins another cluster."""

    begin: Callable[[LiveAdapter | None, str, Mapping[str, Any]], Stage]
    find_cluster: Callable[[], ReplicatingCluster]
    """Returns what makes brokers with logs."""

    def __call__(
        self, adapter: LiveAdapter | None = None, judged_by: str = "", **settings: Any
    ) -> Stage:
        """Begin it, on the bundled controller and brokers without logs where none is given.

        Its log is judged by the scenario's profile where none is named. `settings` are what an
        operator sets, as the bundled adapter takes them.
        """
        return self.begin(adapter, judged_by, settings)
