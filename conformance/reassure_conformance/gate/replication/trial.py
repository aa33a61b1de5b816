"""One trial: a partition on three brokers, what is done to it, and what is said of that.

Besides the brokers' own observations, which the judge of KAFKA-4485 holds against the model, there
is a client that writes down what it was answered. At the end the cluster is healed, the client
reads the whole log, and what was promised to it must be there.

What a disk may lose is bounded, as no protocol survives that all copies are lost: a broker loses
power only while another live broker is in sync, and the controller notices before anything else
happens. A process that is killed loses no record: the operating system has it.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from reassure_conformance.adapter.driver import Driver
from reassure_conformance.adapter.replicating import (
    OBSERVED,
    ReplicatingCluster,
    name_directory,
)
from reassure_conformance.gate.replication.alphabet import Step
from reassure_controller.messages import LeaderAndIsr, StopReplica
from reassure_controller.replication import errors
from reassure_controller.replication.messages import Consumed, Produced
from reassure_controller.replication.observing import list_files
from reassure_controller.replication.rules import ReplicationRules
from reassure_controller.replication.serving import Leading
from reassure_controller.replication.stepping import CLIENT, StepCluster, name_broker
from reassure_controller.storage.directory import LogDirectory
from reassure_controller.storage.records import decode, scan
from reassure_judge.observed.judge import ObservationJudge
from reassure_judge.verdicts import Tally, Violation
from reassure_pipeline.observed import States
from reassure_spec.observations import decode_observation
from reassure_spec.znodes import (
    PartitionKey,
    StateZnode,
    decode_state,
    encode_topic,
    state_path,
    topic_path,
)

KEY: Final[PartitionKey] = ("t", 0)
BROKERS: Final = (1, 2, 3)
IDLE_ROUNDS: Final = 20
"""So many times everybody fetches with nothing coming of it, before that is all that will."""


AMENDED: Final = "amended"
"""Every amendment: what brokers ship with."""
EARLY_CREDIT: Final = "early-credit"
"""The same, but a new leader takes every follower for caught up, as the document may be read."""
AS_WRITTEN: Final = "as-written"
"""The document without amendments, which holds for one leader only: nobody dies."""
RULES: Final = (AMENDED, EARLY_CREDIT, AS_WRITTEN)


@dataclass(frozen=True, slots=True)
class Setting:
    """What differs from trial to trial beside the steps."""

    rules: str = AMENDED
    """Which readings brokers go by."""
    min_insync_replicas: int = 1
    fetch_bytes: int = 1 << 20


@dataclass(slots=True)
class Client:
    """What one client was told."""

    sent: dict[int, tuple[bytes, ...]] = field(default_factory=dict)
    """By request: the values."""
    promised: dict[int, bytes] = field(default_factory=dict)
    """By offset: records of which all in-sync replicas were said to have a copy."""
    read: dict[int, bytes] = field(default_factory=dict)
    """By offset: records that were handed out."""
    shown: int = 0
    """The largest high watermark shown."""
    errors: dict[str, int] = field(default_factory=dict)

    def take(self, answer: Produced | Consumed) -> list[tuple[str, str]]:
        """Take an answer; return what it contradicts, as clause and reason."""
        if answer.error:
            self.errors[answer.error] = self.errors.get(answer.error, 0) + 1
            return []
        if isinstance(answer, Produced):
            values = self.sent.pop(answer.correlation[1], ())
            first = answer.end - len(values)
            self.promised |= {first + place: value for place, value in enumerate(values)}
            return []
        self.shown = max(self.shown, answer.high_watermark)
        return self.compare(
            {offset: record.value or b"" for offset, record in decode(answer.records)}
        )

    def compare(self, records: Mapping[int, bytes]) -> list[tuple[str, str]]:
        """Take records that were handed out; return those that were others before."""
        wrong = []
        for offset, value in records.items():
            before = self.read.setdefault(offset, value)
            if before != value:
                wrong.append(("log.committed-kept", f"offset {offset}: {before!r}, now {value!r}"))
        return wrong


@dataclass(slots=True)
class Told:
    """A trial that is over."""

    setting: Setting
    steps: tuple[Step, ...]
    """Those that were possible, as they were carried out."""
    tally: Tally
    violations: tuple[Violation, ...]
    lines: int
    records: int
    """How many the client read in the end."""
    promised: int
    """How many of them it had been promised."""
    directory: Path
    chroot: str
    unrest: str = ""
    """Why the healed cluster did not come to rest, "" where it did."""


class Trial:
    """One cluster, from its start to its verdict."""

    def __init__(
        self,
        driver: Driver,
        cluster: ReplicatingCluster,
        directory: Path,
        setting: Setting,
        rules: ReplicationRules,
    ) -> None:
        """Start the brokers, create the partition, and let everybody know."""
        self.setting = setting
        self.rules = rules
        self.client = Client()
        self.done: list[Step] = []
        self._wrong: list[tuple[str, str]] = []
        self._driver = driver
        self._cluster = cluster
        self._directory = directory
        self._chunk_ms = max(1, rules.evaluate_ms // 5)
        self.chroot = driver.make_cluster([(topic_path(KEY[0]), encode_topic({0: BROKERS}))])
        with driver.calling("start"):
            self.stepped: StepCluster = cluster.begin(self.chroot, directory, rules)
            cluster.work()
            self.stepped.network.deliver_all()

    # Looking

    def leader(self) -> int | None:
        """Return the live broker that leads in the latest epoch, as far as brokers know."""
        found = [(role.leader_epoch, one) for one, role in self._roles()]
        return max(found)[1] if found else None

    def _roles(self) -> list[tuple[int, Leading]]:
        roles = []
        for broker in self.stepped.live:
            replica = self.stepped.replicas(broker).find(KEY)
            if replica is not None and isinstance(replica.role, Leading):
                roles.append((broker, replica.role))
        return roles

    def state(self) -> StateZnode:
        """Return the stored state."""
        path = state_path(*KEY)
        content = self._driver.read(self.chroot, path)
        assert content is not None, f"{self.chroot}{path} is gone"
        return decode_state(path, content)

    # Doing

    def perform(self, step: Step) -> bool:
        """Carry out a step; return False where it is not possible now."""
        with self._driver.calling(step.verb):
            done = _ACTS[step.verb](self, *step.numbers)
        if done:
            self.done.append(step)
            self._hear()
        return done

    def _hear(self) -> None:
        while self.stepped.answers:
            self._wrong += self.client.take(self.stepped.answers.popleft())

    def _is_up(self, broker: int) -> bool:
        return broker in self.stepped.live

    def produce(self, count: int, acks: int, broker: int) -> bool:
        """Send records to a broker."""
        if not self._is_up(broker):
            return False
        number = len(self.done)
        values = tuple(f"{number}.{place}".encode() for place in range(count))
        chosen = self.stepped.produce(broker, KEY, values, acks)
        if acks == -1:
            self.client.sent[chosen] = values
        return True

    def consume(self, broker: int) -> bool:
        """Ask a broker for what comes after the records that were read."""
        if not self._is_up(broker):
            return False
        self.stepped.consume(broker, KEY, max(self.client.read, default=-1) + 1)
        return True

    def fetch(self, broker: int) -> bool:
        """Let a broker send what its followers would send now."""
        return self._is_up(broker) and self.stepped.fetch(broker) > 0

    def replicate(self, broker: int) -> bool:
        """Let a broker fetch, and everything arrive that comes of it."""
        if not self.fetch(broker):
            return False
        network, me = self.stepped.network, name_broker(broker)
        number = network.waiting[-1].number
        network.deliver(number)
        for packet in network.waiting:
            if packet.number > number and packet.target in (me, CLIENT):
                network.deliver(packet.number)
        return True

    def _at(self, place: int) -> int | None:
        waiting = self.stepped.network.waiting
        return waiting[place].number if place < len(waiting) else None

    def deliver(self, place: int) -> bool:
        """Deliver the message at this place."""
        number = self._at(place)
        if number is None:
            return False
        self.stepped.network.deliver(number)
        return True

    def repeat(self, place: int) -> bool:
        """Deliver the message at this place, so that it arrives once more."""
        number = self._at(place)
        if number is None:
            return False
        self.stepped.network.deliver(number, keep=True)
        return True

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

    def crash(self, broker: int) -> bool:
        """Kill a broker."""
        if not self._is_up(broker):
            return False
        self.stepped.crash(broker)
        return True

    def lose_power(self, broker: int, batches: int) -> bool:
        """Kill a broker whose disk loses so many batches of its log."""
        others = set(self.stepped.live) - {broker}
        if not self._is_up(broker) or not others & set(self.state().isr):
            return False

        def lose(disk: LogDirectory) -> None:
            log = disk.logs.get(KEY)
            if log is not None:
                raw = log.read(log.start_offset, 1 << 30)
                starts = [batch.base_offset for batch in scan(raw)]
                kept = starts[: max(0, len(starts) - batches)]
                log.truncate_to(starts[len(kept)] if len(kept) < len(starts) else log.end_offset)

        self.stepped.crash(broker, lost=lose)
        self._cluster.work()
        return True

    def stop(self, broker: int) -> bool:
        """Let a broker end in order."""
        if not self._is_up(broker):
            return False
        self.stepped.stop(broker)
        return True

    def start(self, broker: int) -> bool:
        """Start a broker that is down."""
        if self._is_up(broker) or broker not in self.stepped.machines:
            return False
        self.stepped.start(broker)
        return True

    def wait(self, ms: int) -> bool:
        """Let time pass, so slowly that timers do what is due when it is due."""
        for _ in range(max(1, ms // self._chunk_ms)):
            self.stepped.tick(self._chunk_ms)
        return True

    def set_back(self, broker: int, ms: int) -> bool:
        """Set a clock back."""
        self.stepped.machines[broker].clock.advance(-ms)
        return True

    def work(self) -> bool:
        """Let the controller deal with all that has been written."""
        self._cluster.work()
        return True

    # The end

    def finish(self) -> Told:
        """Heal the cluster, read everything, end it, and judge."""
        with self._driver.calling("heal"):
            unrest = self._heal()
            if not unrest:
                self._read_everything()
            self._cluster.end()
        return self._judge(unrest)

    def _heal(self) -> str:
        """Let everybody be there and hear everything, until all logs are the same.

        Return what keeps them from that, "" for nothing.
        """
        for broker in BROKERS:
            if not self._is_up(broker):
                self.stepped.start(broker)
        found, idle = "", 0
        while idle < IDLE_ROUNDS:
            self._cluster.work()
            self.stepped.network.deliver_all()
            self._hear()
            if self._is_at_rest():
                return ""
            before, found = found, self._describe()
            idle = idle + 1 if found == before else 0
            for broker in self.stepped.live:
                self.stepped.fetch(broker)
                self.stepped.network.deliver_all()
            self.stepped.tick(self._chunk_ms)
        return f"{self.chroot}: nothing changes any more: {found}"

    def _is_at_rest(self) -> bool:
        """Whether everybody is in sync, has everything, and knows so."""
        leader = self.leader()
        if leader is None or set(self.state().isr) != set(BROKERS):
            return False
        replicas = [self.stepped.replicas(one).find(KEY) for one in BROKERS]
        found = {
            (replica.log.end_offset, replica.high_watermark)
            for replica in replicas
            if replica is not None
        }
        return len(found) == 1 and all(end == mark for end, mark in found) and None not in replicas

    def _describe(self) -> str:
        words = [str(self.state())]
        for broker in BROKERS:
            replica = self.stepped.replicas(broker).find(KEY)
            if replica is not None:
                words.append(f"{broker}: {replica.log.end_offset} {replica.high_watermark}")
        return "; ".join(words)

    def _read_everything(self) -> None:
        leader = self.leader()
        assert leader is not None
        self.stepped.consume(leader, KEY, 0, 1 << 30)
        self.stepped.network.deliver_all()
        answer = self.stepped.answers.pop()
        assert isinstance(answer, Consumed) and answer.error == errors.NONE, answer
        if answer.high_watermark < self.client.shown:
            reason = f"{answer.high_watermark} shown to the client, and {self.client.shown} before"
            self._wrong.append(("hw.consumer.monotone", reason))
        log = {offset: record.value or b"" for offset, record in decode(answer.records)}
        self._wrong += self.client.compare(log)
        for offset, value in (*self.client.promised.items(), *self.client.read.items()):
            if log.get(offset) != value:
                reason = f"offset {offset}: {value!r} was promised, {log.get(offset)!r} is there"
                self._wrong.append(("log.committed-kept", reason))

    def _judge(self, unrest: str) -> Told:
        judge = ObservationJudge(self.rules.readings)
        for broker in BROKERS:
            for path in list_files(self._directory / name_directory(broker) / OBSERVED):
                for number, line in enumerate(path.read_bytes().splitlines(), start=1):
                    judge.feed(decode_observation(line, str(path), number), str(path), number)
        states, key = States(judge.partitions), (self.chroot, *KEY)
        for transaction in self._driver.read_log():
            states.read(transaction, "zookeeper")
        with self._driver.section("judge"):
            if key in judge.partitions:
                states.hand_on(judge)
            tally = judge.finish(is_over=True)
        said = tuple(self._make_violation(*wrong) for wrong in self._wrong)
        return Told(
            self.setting,
            tuple(self.done),
            tally,
            (*tally.violations, *said),
            judge.lines,
            len(self.client.read),
            len(self.client.promised),
            self._directory,
            self.chroot,
            unrest,
        )

    def _make_violation(self, clause: str, reason: str) -> Violation:
        """Return what the client found wrong."""
        return Violation(
            0, self.chroot, *KEY, clause, "", 0, "", "", reason, "what it was told", "the client"
        )

    def discard(self) -> None:
        """Delete the files of the trial."""
        shutil.rmtree(self._directory)


_ACTS: Final[Mapping[str, Callable[..., bool]]] = MappingProxyType(
    {
        "produce": Trial.produce,
        "consume": Trial.consume,
        "fetch": Trial.fetch,
        "replicate": Trial.replicate,
        "deliver": Trial.deliver,
        "repeat": Trial.repeat,
        "lose": Trial.lose,
        "deliver-all": Trial.deliver_all,
        "crash": Trial.crash,
        "power": Trial.lose_power,
        "stop": Trial.stop,
        "start": Trial.start,
        "wait": Trial.wait,
        "set-back": Trial.set_back,
        "work": Trial.work,
    }
)
"""By verb: what is done."""
