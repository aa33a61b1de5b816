"""One trial: a few partitions on a few brokers, what is done to them, and what is said of that.

Besides the brokers' own observations, which the judge of KAFKA-4485 holds against the model, each
partition has a client that writes down what it was answered. At the end the cluster is healed, the
clients read the whole logs, and what was promised to them must be there. Every broker must then act
upon what is stored.

Partitions are moved by requests, which the bundled controller carries out while brokers replicate;
it can be stopped between any two effects, and superseded there.

What a disk may lose is bounded, as no protocol survives that all copies are lost: a broker loses
power only while another live broker is in sync, and registered, and the controller notices before
anything else happens. A process that is killed loses no record: the operating system has it.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from reassure_conformance.adapter.driver import Driver
from reassure_conformance.adapter.replicating import (
    OBSERVED,
    ReplicatingCluster,
    name_directory,
)
from reassure_conformance.adapter.stepped_network import Packet
from reassure_conformance.adapter.stepping import (
    CLIENT,
    Anything,
    StepCluster,
    name_broker,
)
from reassure_conformance.gate.replication.alphabet import FORMS, OF_ONE_PARTITION, BrokerStep
from reassure_conformance.gate.replication.arrivals import Arrived, Died, Event
from reassure_conformance.gate.replication.setting import (
    StoredPartition,
    TrialOutcome,
    TrialSetting,
)
from reassure_conformance.gate.step_fields import format_partition, parse_partition
from reassure_conformance.gate.steps import ClusterStep
from reassure_controller.messages import LeaderAndIsr, StopReplica
from reassure_controller.replication import errors
from reassure_controller.replication.messages import Consumed
from reassure_controller.replication.observing import list_files
from reassure_controller.replication.rules import ReplicationRules
from reassure_controller.replication.serving import Leading
from reassure_controller.storage.directory import LogDirectory
from reassure_controller.storage.records import Record, decode, encode, scan
from reassure_judge.observed.witness import Witness
from reassure_judge.protocols import get_observing
from reassure_pipeline.audit.observed import States
from reassure_spec.observations import Observation, decode_lines
from reassure_spec.znodes import (
    NO_LEADER,
    PartitionKey,
    RequestZnode,
    broker_path,
    decode_state,
    decode_topic,
    encode_request,
    reassignment_path,
    state_path,
    topic_path,
)

BROKERS: Final = (1, 2, 3, 4)
"""The brokers that trials have at most."""
IDLE_ROUNDS: Final = 20
"""So many times everybody fetches with nothing coming of it, before that is all that will."""


def _read_records(answer: Consumed) -> dict[int, bytes]:
    return {offset: record.value or b"" for offset, record in decode(answer.records)}


class Trial:
    """One cluster, from its start to its verdict."""

    def __init__(
        self,
        driver: Driver,
        cluster: ReplicatingCluster,
        directory: Path,
        setting: TrialSetting,
        rules: ReplicationRules,
        note: Callable[[Event], None] = lambda _: None,
    ) -> None:
        """Start the brokers, create the partitions, and let everybody know.

        From then on `note` is told of what happens as soon as it does.
        """
        self.setting = setting
        self.rules = rules
        self._asked = defaultdict[int, list[tuple[int, Observation]]](list)
        """By broker: what it was asked, and how many lines it had written by then."""
        self._sent: dict[tuple[PartitionKey, int], tuple[bytes, ...]] = {}
        """By partition and request: the values of which all in-sync replicas are to have a copy."""
        self.done: list[BrokerStep] = []
        self._driver = driver
        self._cluster = cluster
        self._directory = directory
        self._chunk_ms = max(1, rules.evaluate_ms // 5)
        self.chroot = driver.make_cluster(setting.encode_topics().items())
        self.witness = Witness(self.chroot)
        self.errors = Counter[str]()
        """How often clients were refused, by the error's name."""
        with driver.calling("start"):
            self.stepped: StepCluster = cluster.begin(
                self.chroot, directory, rules, setting.brokers
            )
            cluster.work()
            self.stepped.network.deliver_all()
        self._note_event = note
        self.stepped.network.on_arrival = self._note_arrival

    def _note_arrival(self, packet: Packet[Anything]) -> None:
        if packet.target != CLIENT:
            broker = next(b for b in self.stepped.live if name_broker(b) == packet.target)
            arrived = Arrived(self.stepped, broker, packet.message)
            self._note_event(arrived)
            if (asked := arrived.asked) is not None:
                files = list_files(self._directory / name_directory(broker) / OBSERVED)
                lines = sum(path.read_bytes().count(b"\n") for path in files)
                self._asked[broker].append((lines, asked._replace(chroot=self.chroot)))

    # Looking

    def find_key(self, of: str) -> PartitionKey:
        """Return the partition of this name, the first one for none."""
        return parse_partition(of) if of else self.setting.keys[0]

    def leader(self, of: str = "") -> int | None:
        """Return the live broker that leads in the latest epoch, as far as brokers know."""
        key = self.find_key(of)
        found = [
            (replica.role.leader_epoch, one)
            for one in self.stepped.live
            if (replica := self.stepped.replicas(one).find(key)) is not None
            and isinstance(replica.role, Leading)
        ]
        return max(found)[1] if found else None

    def hosts(self, of: str = "") -> list[int]:
        """Return the live brokers that have a replica."""
        key = self.find_key(of)
        return [one for one in self.stepped.live if self.stepped.replicas(one).find(key)]

    def read(self) -> dict[PartitionKey, StoredPartition]:
        """Return what is stored of each partition."""
        keys = self.setting.keys
        paths = [
            path
            for key in keys
            for path in (topic_path(key[0]), state_path(*key), reassignment_path(*key))
        ]
        found = self._driver.fetch(self.chroot, paths)
        stored = {}
        for place, key in enumerate(keys):
            topic, state, child = found[3 * place : 3 * place + 3]
            assert topic is not None and state is not None, f"{self.chroot}: {key} is gone"
            stored[key] = StoredPartition(
                decode_topic(paths[3 * place], topic[0])[key[1]],
                decode_state(paths[3 * place + 1], state[0]),
                child is not None,
            )
        return stored

    # Doing

    def perform(self, step: ClusterStep) -> bool:
        """Carry out a step of brokers; return False where it is not possible now."""
        assert isinstance(step, BrokerStep), step
        about: tuple[PartitionKey, ...] = ()
        if step.verb in OF_ONE_PARTITION:
            about = (self.find_key(step.of),)
        if not set(self.setting.keys) >= set(about):
            return False
        if step.verb in _OF_A_LIFE:
            self._cluster.keep_writes(*step.numbers[:1])
        if step.verb in _OF_A_LIVE_BROKER and not self._is_up(step.numbers[0]):
            return False
        with self._driver.calling(step.verb):
            done = _ACTS[step.verb](self, *about, *step.numbers) is not False
        if done:
            self.done.append(step)
            self._hear()
        return done

    def _hear(self) -> None:
        while self.stepped.answers:
            answer = self.stepped.answers.popleft()
            if answer.error:
                self.errors[answer.error] += 1
                continue
            if isinstance(answer, Consumed):
                self.witness.read(answer.key, _read_records(answer), answer.high_watermark)
                continue
            values = self._sent.pop((answer.key, answer.correlation[1]), ())
            first = answer.end - len(values)
            self.witness.promise(answer.key, dict(enumerate(values, start=first)))

    def _is_up(self, broker: int) -> bool:
        return broker in self.stepped.live

    def produce(self, key: PartitionKey, count: int, acks: int, broker: int) -> bool:
        """Send records to a broker."""
        if not self._is_up(broker):
            return False
        number = len(self.done)
        values = tuple(f"{number}.{place}".encode() for place in range(count))
        chosen = self.stepped.produce(broker, key, values, acks)
        if acks == -1:
            self._sent[key, chosen] = values
        return True

    def consume(self, key: PartitionKey, broker: int) -> None:
        """Ask a broker for what comes after the records that were read."""
        self.stepped.consume(broker, key, max(self.witness.clients[key].read, default=-1) + 1)

    def move(self, key: PartitionKey, *target: int) -> bool:
        """Ask for a reassignment."""
        if not target or not set(target) <= set(self.setting.brokers):
            return False
        self._driver.submit(self.chroot, [encode_request(RequestZnode({key: target}))])
        return True

    def fetch(self, broker: int) -> bool:
        """Let a broker send what its followers would send now."""
        return self.stepped.fetch(broker) > 0

    def replicate(self, broker: int) -> bool:
        """Let a broker fetch, and everything arrive that comes of it."""
        network, me = self.stepped.network, name_broker(broker)
        before = {packet.number for packet in network.waiting}
        if not self.fetch(broker):
            return False
        for packet in network.waiting:
            if packet.number not in before:
                network.deliver(packet.number)
        for packet in network.waiting:
            if packet.number not in before and packet.target in (me, CLIENT):
                network.deliver(packet.number)
        return True

    def deliver(self, place: int, *, keep: bool = False) -> bool:
        """Deliver the message at this place."""
        waiting = self.stepped.network.waiting
        if place >= len(waiting):
            return False
        self.stepped.network.deliver(waiting[place].number, keep=keep)
        return True

    def repeat(self, place: int) -> bool:
        """Deliver the message at this place, so that it arrives once more."""
        return self.deliver(place, keep=True)

    def lose(self, place: int) -> bool:
        """Lose a message; a controller sends its orders again until they arrive."""
        waiting = self.stepped.network.waiting
        if place >= len(waiting) or isinstance(waiting[place].message, LeaderAndIsr | StopReplica):
            return False
        self.stepped.network.lose(waiting[place].number)
        return True

    def deliver_all(self) -> bool:
        """Deliver until nothing is on its way."""
        return self.stepped.network.deliver_all() > 0

    def crash(self, broker: int) -> None:
        """Kill a broker."""
        self.stepped.crash(broker)

    def tear(self, broker: int) -> None:
        """Kill a broker in the middle of a write, whose first half is on disk."""

        def write_half(disk: LogDirectory) -> None:
            for log in disk.logs.values():
                batch = encode([Record(None, b"torn")], log.end_offset, 0, 0)
                first = log.directory / f"{log.end_offset:020d}.log"
                files = sorted(log.directory.glob("*.log")) or [first]
                with files[-1].open("ab") as file:
                    file.write(batch[: len(batch) // 2])

        self.stepped.crash(broker, lost=write_half)

    def power(self, broker: int, batches: int) -> bool:
        """Kill a broker whose disk loses so many batches of its logs."""
        paths = [broker_path(one) for one in self.stepped.live]
        found = self._driver.fetch(self.chroot, paths)
        others = {one for one, it in zip(self.stepped.live, found, strict=True) if it} - {broker}
        if not all(others & set(stored.state.isr) for stored in self.read().values()):
            return False

        def lose(disk: LogDirectory) -> None:
            for log in disk.logs.values():
                raw = log.read(log.start_offset, 1 << 30)
                starts = [batch.base_offset for batch in scan(raw)]
                kept = max(0, len(starts) - batches)
                log.truncate_to(starts[kept] if kept < len(starts) else log.end_offset)
            self._note_event(Died(disk))

        self.stepped.crash(broker, lost=lose)
        self._cluster.work()
        return True

    def stop(self, broker: int) -> None:
        """Let a broker end in order."""
        self.stepped.stop(broker)

    def start(self, broker: int) -> bool:
        """Start a broker that is down."""
        if self._is_up(broker) or broker not in self.stepped.machines:
            return False
        self.stepped.start(broker)
        return True

    def expire(self, broker: int) -> bool:
        """End the session of a broker that goes on and does not know."""
        return self.stepped.expire(broker)

    def register(self, broker: int) -> bool:
        """Let a broker whose session has ended register again."""
        if self._driver.read(self.chroot, broker_path(broker)):
            return False
        self.stepped.register(broker)
        return True

    def lose_write(self, broker: int) -> None:
        """Have the next in-sync set that a broker writes not arrive; the broker cannot know."""
        self._cluster.lose_write(broker, done=False)

    def lose_answer(self, broker: int) -> None:
        """Have the next in-sync set that a broker writes stored, and the answer lost."""
        self._cluster.lose_write(broker, done=True)

    def wait(self, ms: int) -> None:
        """Let time pass, so slowly that timers do what is due when it is due."""
        for _ in range(max(1, ms // self._chunk_ms)):
            self.stepped.tick(self._chunk_ms)

    def set_back(self, broker: int, ms: int) -> bool:
        """Set a clock back."""
        if broker not in self.stepped.machines:
            return False
        self.stepped.machines[broker].clock.advance(-ms)
        return True

    def work(self) -> None:
        """Let the controller deal with all that has been written."""
        self._cluster.work()

    def work_some(self, effects: int) -> bool:
        """Let the controller do so many effects, and stop before the next one."""
        return self._cluster.work(effects) > 0

    def supersede(self) -> None:
        """Elect another controller, wherever the one before has stopped."""
        self._cluster.supersede()

    def wake(self) -> bool:
        """Let the controller go on that was superseded."""
        return self._cluster.wake()

    # The end

    def finish(self) -> TrialOutcome:
        """Heal the cluster, read everything, end it, and judge."""
        with self._driver.calling("heal"):
            unrest = self._heal()
            self._check_obeyed()
            if not unrest:
                for key in self.setting.keys:
                    self._read_everything(key)
            self._cluster.end()
        return self._judge(unrest)

    def _heal(self) -> str:
        """Let everybody be there and hear everything, until all logs are the same.

        Return what keeps them from that, "" for nothing.
        """
        self.wake()
        for broker in self.setting.brokers:
            self._cluster.keep_writes(broker)
            if not self.start(broker):
                self.register(broker)
        found, idle = "", 0
        while idle < IDLE_ROUNDS:
            self._cluster.work()
            self.stepped.network.deliver_all()
            self._hear()
            stored = self.read()
            if all(self._is_at_rest(key, each) for key, each in stored.items()):
                return ""
            before, found = found, self._describe(stored)
            idle = idle + 1 if found == before else 0
            for broker in self.stepped.live:
                self.stepped.fetch(broker)
                self.stepped.network.deliver_all()
            self.stepped.tick(self._chunk_ms)
        return f"{self.chroot}: nothing changes any more: {found}"

    def _is_at_rest(self, key: PartitionKey, stored: StoredPartition) -> bool:
        """Whether everybody assigned is in sync, has everything, and knows so."""
        is_led = stored.state.leader in self.stepped.live
        if stored.moves or not is_led or set(stored.state.isr) != set(stored.assigned):
            return False
        replicas = [self.stepped.replicas(one).find(key) for one in stored.assigned]
        found = {
            (replica.log.end_offset, replica.high_watermark)
            for replica in replicas
            if replica is not None
        }
        return len(found) == 1 and all(end == mark for end, mark in found) and None not in replicas

    def _describe(self, stored: Mapping[PartitionKey, StoredPartition]) -> str:
        words = []
        for key, each in stored.items():
            words.append(f"{format_partition(key)}: {each}")
            for broker in self.stepped.live:
                replica = self.stepped.replicas(broker).find(key)
                if replica is not None:
                    words.append(f"{broker}: {replica.log.end_offset} {replica.high_watermark}")
        return "; ".join(words)

    def _check_obeyed(self) -> None:
        """Hand over what brokers act upon, now that they were told what is stored."""
        for key, stored in self.read().items():
            for broker in self.stepped.live:
                replica = self.stepped.replicas(broker).find(key)
                role = None if replica is None else replica.role
                is_told = broker in stored.assigned and stored.state.leader != NO_LEADER
                wanted = stored.state.leader_epoch if is_told else None
                found = None if role is None else role.leader_epoch
                self.witness.judge_obedience(key, broker, wanted, found)

    def _read_everything(self, key: PartitionKey) -> None:
        leader = self.leader(format_partition(key))
        assert leader is not None
        self.stepped.consume(leader, key, 0, 1 << 30)
        self.stepped.network.deliver_all()
        answer = self.stepped.answers.pop()
        assert isinstance(answer, Consumed) and answer.error == errors.NONE, answer
        self.witness.read_whole(key, _read_records(answer), answer.high_watermark)

    def _judge(self, unrest: str) -> TrialOutcome:
        judge = get_observing().make_judge(self.rules.readings)
        observed = []
        for broker in self.setting.brokers:
            said = []
            for path in list_files(self._directory / name_directory(broker) / OBSERVED):
                lines = decode_lines(path.read_bytes().splitlines(), str(path))
                for number, line in enumerate(lines, start=1):
                    said.append(line)
                    judge.feed(line, str(path), number)
            for place, asked in reversed(self._asked[broker]):
                said.insert(place, asked)
            observed.append(tuple(said))
        states = States(judge.partitions)
        for transaction in self._driver.read_log():
            states.read(transaction, "zookeeper")
        with self._driver.section("judge"):
            states.hand_on(judge)
            tally = judge.finish(is_over=True)
        self.witness.count(tally)
        clients = self.witness.clients.values()
        return TrialOutcome(
            self.setting,
            tuple(self.done),
            tally,
            (*tally.violations, *self.witness.violations),
            tuple(observed),
            sum(len(client.read) for client in clients),
            sum(len(client.promised) for client in clients),
            self._directory,
            self.chroot,
            unrest,
        )


_OF_A_LIFE: Final = frozenset({"crash", "tear", "power", "stop", "start", "expire", "register"})
"""The verbs of steps that begin or end what a broker does: what it was to write is forgotten."""
_OF_A_LIVE_BROKER: Final = frozenset(
    {"consume", "fetch", "replicate", "crash", "tear", "power", "stop", "expire", "register"}
    | {"lose-write", "lose-answer"}
)
"""The verbs of what only a broker that is up can do; they name it first."""
_ACTS: Final[Mapping[str, Callable[..., bool | None]]] = MappingProxyType(
    {verb: vars(Trial)[verb.replace("-", "_")] for verb in FORMS}
)
"""By verb: what is done; it answers False where that is not possible now."""
