"""One soak, from the first process to the verdict."""

import random
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from reassure_conformance.gate.replication.brokers import SHIPPED
from reassure_conformance.report.document import HOLDS, UNKNOWN, VACUOUS, VIOLATED, write_text
from reassure_controller.session import connect, stop
from reassure_lab.cluster.supervisor import ProcessCluster
from reassure_lab.soak import leftovers, workload
from reassure_lab.soak.checker import check_history
from reassure_lab.soak.faulting import CRASH, Faults
from reassure_lab.soak.guarantees import GUARANTEES, Breach, SoakFindings, shorten
from reassure_lab.soak.judging import find_healed, judge_histories, merge_logs, tell_states
from reassure_lab.soak.members import (
    MIN_INSYNC,
    Shape,
    addresses_of,
    end_cluster,
    start_cluster,
)
from reassure_lab.soak.operator import REPLICAS, UNANSWERED, Operator
from reassure_lab.soak.proxies import ProxyNetwork
from reassure_lab.soak.quiescence import Quiescence, find_misplaced
from reassure_lab.soak.replicas import compare_replicas
from reassure_lab.soak.schedule import Operation, draw
from reassure_lab.soak.seen_events import Event, HistoryWriter, read_history
from reassure_spec.errors import Unavailable
from reassure_spec.znodes import PartitionKey, ReplicaList, encode_topic, topic_path

USED: Final = ("orders", "payments")
"""Topics that clients use; the second one grows."""
WIDE: Final = "wide"
"""A topic of many partitions with two replicas each."""
PARTITIONS: Final = 15
"""Of each topic that is used."""
START_S: Final = 90.0
"""How long the cluster may take until all replicas are in sync for the first time."""
SETTLE_S: Final = 90.0
"""How long it may take to come to rest when all is healed."""
SETTLES: Final = 4
"""How often, as long as less is left each time."""
LOOK_S: Final = 0.1
SAMPLE_S: Final = 2.0
"""How often memory is looked at."""

ENDS_S: Final = 30.0
"""How long clients may take to end."""
COUNTED: Final = (
    "reassignments-end", "nothing-left", "ended-as-asked", "faults-happened", "full-disk-survived",
)  # fmt: skip
"""Guarantees that are put to the test by what was done."""
Progress = Callable[[str, int, int], None]


class NotStarted(Unavailable):
    """The cluster did not come to work before anything was done to it."""


@dataclass(frozen=True, slots=True)
class SoakSettings:
    """What is asked for."""

    seed: int
    seconds: float
    kills: int
    full_disks: bool = False
    shape: Shape = field(default_factory=Shape)


@dataclass(slots=True)
class SoakOutcome:
    """What came of a soak."""

    seconds: float
    counts: dict[str, int]
    findings: SoakFindings
    left_open: list[str]
    """What the judge leaves open, as it depends on what the writer had noticed."""

    @property
    def untested(self) -> dict[str, list[str]]:
        """By guarantee: what never happened that puts it to the test."""
        found = {name: self.findings.find_untested(name) for name in GUARANTEES}
        return {name: missing for name, missing in found.items() if missing}

    @property
    def verdict(self) -> str:
        """Violated, unknown, vacuous or holds, in this order."""
        if self.findings.breaches:
            return VIOLATED
        if self.findings.unknown:
            return UNKNOWN
        return VACUOUS if self.untested else HOLDS


class Soak:
    """One soak, in a directory of its own."""

    def __init__(self, settings: SoakSettings, directory: Path, progress: Progress) -> None:
        """Draw the schedule and write it down. Raises NoRoom."""
        self.directory = directory
        self.schedule = draw(
            settings.seed,
            settings.seconds,
            settings.kills,
            settings.shape.list_targets(),
            full_disks=settings.full_disks,
        )
        write_text(directory / "plan.txt", "\n".join(map(str, self.schedule.faults)) + "\n")
        operations = "\n".join(map(str, self.schedule.operations))
        write_text(directory / "operations.txt", operations + "\n")
        self._settings = settings
        self._progress = progress
        self._place = directory / "cluster"
        self._brokers = list(range(1, settings.shape.brokers + 1))
        counts = {**dict.fromkeys(USED, PARTITIONS), WIDE: settings.shape.wide}
        self._keys = {
            topic: [(topic, number) for number in range(count)] for topic, count in counts.items()
        }
        self._memory = leftovers.MemorySamples()
        self._breaches: list[Breach] = []
        self._logs = {one: self._place / f"broker-{one}" / "logs" for one in self._brokers}

    def run(self) -> SoakOutcome:
        """Carry it out. Raises NotStarted, or as `Cluster.start` does, where it could not begin."""
        begun = time.monotonic()
        with ExitStack() as stack:
            done = self.directory / "done.ndjson"
            history = stack.enter_context(HistoryWriter.open(done))
            network = stack.enter_context(ProxyNetwork())
            self._progress("starting the cluster", 0, 0)
            cluster = start_cluster(self._place, self._settings.shape, network)
            stack.callback(end_cluster, cluster)
            client = connect(cluster.zookeeper, timeout_s=20)
            stack.callback(stop, client)
            rest = Quiescence(client, tuple(self._keys), self._keys[USED[0]], self._logs)
            _wait(lambda: not any(rest.find_unfinished()), START_S)
            rest.remember_roots()
            self._create_topics(rest)
            faults = Faults(cluster, network, history, self.schedule, rest.find_leader)
            operator = self._trouble(faults, rest, history)
            assigned = self._come_to_rest(faults, rest, operator)
            epoch = rest.get_epoch()
        self._breaches += [*faults.breaches, *self._memory.check(), *self._find_processes()]
        self._progress("judging the histories", 0, 0)
        merged = self.directory / "zookeeper"
        names = self._settings.shape.list_members("zookeeper")
        merge_logs([self._place / name for name in names], merged)
        events = read_history(self.directory.glob("*.ndjson"))
        events = sorted([*events, *tell_states(merged)], key=lambda event: event.at_ms)
        findings = check_history(events, MIN_INSYNC)
        healed = find_healed(merged, findings)
        self._breaches += find_misplaced(assigned, operator.wanted, healed)
        marks = {one.key: one.offset for one in events if one.did == "end"}
        compare_replicas(self._logs, assigned, marks, findings)
        left_open = judge_histories(
            merged,
            [self._place / f"broker-{one}" / "observations" for one in self._brokers],
            self._settings.shape.profile,
            SHIPPED,
            MIN_INSYNC,
            findings,
            with_observations=not self._settings.full_disks,
        )
        findings.breaches = shorten([*findings.breaches, *self._breaches])
        counts = self._count(events, findings, len(assigned))
        counts["controller_elections"] = epoch
        seconds = time.monotonic() - begun
        return SoakOutcome(seconds, counts, findings, left_open)

    # The beginning

    def _create_topics(self, rest: Quiescence) -> None:
        for topic, keys in self._keys.items():
            count = REPLICAS - 1 if topic == WIDE else REPLICAS
            assigned: dict[int, ReplicaList] = {}
            for _, number in keys:
                place = number % len(self._brokers)
                turned = self._brokers[place:] + self._brokers[:place]
                assigned[number] = tuple(turned[:count])
            rest.client.create(topic_path(topic), encode_topic(assigned), makepath=True)
        if not _wait(lambda: not any(rest.find_out_of_sync()), START_S):
            raise NotStarted(
                f"the partitions had no full in-sync sets within {START_S:g} s; see the logs of "
                f"the members in {self._place / 'log'}"
            )

    # The load and the faults

    def _trouble(self, faults: Faults, rest: Quiescence, history: HistoryWriter) -> Operator:
        """Let clients and an operator work and the faults happen, then heal everything."""
        operator = Operator(
            rest.client,
            [key for topic in USED for key in self._keys[topic]],
            self._keys[WIDE],
            USED[-1],
            random.Random(self._settings.seed),
            history,
        )
        with ExitStack() as stack:
            for role in ("consume", "produce"):
                stack.enter_context(self._clients(faults.cluster, role))
            begun, sampled_s = time.monotonic(), -SAMPLE_S
            ending = threading.Event()
            moving = threading.Thread(target=self._operate, args=(operator, begun, ending))
            moving.start()
            stack.callback(moving.join)
            stack.callback(ending.set)
            while (now_s := time.monotonic() - begun) < self.schedule.seconds:
                faults.go_on(now_s)
                if now_s - sampled_s >= SAMPLE_S:
                    sampled_s = now_s
                    self._take_samples(faults.cluster, now_s)
                    self._progress("seconds", int(now_s), int(self.schedule.seconds))
                time.sleep(LOOK_S)
            faults.end()
        return operator

    def _operate(self, operator: Operator, begun: float, ending: threading.Event) -> None:
        again: deque[Operation] = deque()
        """What was not done, and is no move like all the others."""
        for operation in self.schedule.operations:
            if ending.wait(max(0.0, begun + operation.at_s - time.monotonic())):
                return
            due = [operation, *([again.popleft()] if again else [])]
            for one in due:
                if not operator.carry_out(one) and (one.kind, one.size) != ("move", 1):
                    again.append(one)

    @contextmanager
    def _clients(self, cluster: ProcessCluster, role: str) -> Iterator[None]:
        """Have stock clients work meanwhile, as a program that ends with this one."""
        servers = ",".join(f"{host}:{port}" for host, port in addresses_of(cluster))
        topics = USED if role == "consume" else tuple(self._keys)
        words = [sys.executable, "-P", "-m", workload.__name__, role]
        words += ["--bootstrap", servers, "--topics", ",".join(topics)]
        words += ["--history", str(self.directory / f"{role}.ndjson")]
        words += ["--seed", str(self._settings.seed)]
        with (
            (self.directory / f"{role}.log").open("wb") as log,
            subprocess.Popen(words, stdin=subprocess.PIPE, stderr=log, stdout=log) as program,
        ):
            try:
                yield
                program.communicate(timeout=workload.READ_S + ENDS_S)
            finally:
                program.kill()
        if program.returncode:
            what = f"{role}.log: the clients ended with {program.returncode}"
            self._breaches.append(Breach("ended-as-asked", what))

    def _take_samples(self, cluster: ProcessCluster, now_s: float) -> None:
        for member in cluster.members():
            if member.pid is not None:
                self._memory.take(member.name, member.pid, now_s)

    # The end

    def _come_to_rest(
        self, faults: Faults, rest: Quiescence, operator: Operator
    ) -> dict[PartitionKey, ReplicaList]:
        """Wait until there is nothing to do any more; read all logs; look what is left.

        Return the replicas that there are.
        """
        begun = time.monotonic()

        def wait(find: Callable[[], Iterable[Breach]], for_s: float) -> Iterator[Breach]:
            """Wait until nothing is found. A controller may still end where it was told to."""

            def look() -> bool:
                faults.go_on(time.monotonic() - begun)
                return not any(True for _ in find())

            return iter(()) if _wait(look, for_s) else iter(list(find()))

        self._progress("waiting for rest", 0, 0)
        for _ in range(SETTLES):  # a controller that gets on with what has piled up may go on
            count = sum(1 for _ in rest.find_unfinished())
            left = list(wait(rest.find_unfinished, SETTLE_S))
            if not left or len(left) >= count:
                break
        self._breaches += left
        _wait(lambda: _is_answered(operator.finish), SETTLE_S / 3)
        self._breaches += wait(rest.find_unfinished, SETTLE_S / 3)
        if self._settings.shape.heals:
            self._let_heal(faults, rest)
            self._breaches += wait(rest.find_unfinished, SETTLE_S)
        self._breaches += wait(rest.find_out_of_sync, SETTLE_S / 3)
        self._progress("reading the logs again", 0, 0)
        with self._clients(faults.cluster, "read"):
            pass
        self._breaches += wait(rest.find_left, SETTLE_S / 3)
        self._take_samples(faults.cluster, self.schedule.seconds + time.monotonic() - begun)
        return rest.read_assigned()

    def _let_heal(self, faults: Faults, rest: Quiescence) -> None:
        """Have a broker stay away until it is replaced, while nothing else is left to do.

        That is when a controller looks after it, so under the load it hardly ever comes to that.
        """
        gone = self._brokers[-1]
        name = f"broker-{gone}"
        faults.keep_away(name)

        def find_kept() -> list[PartitionKey]:
            return [key for key, replicas in rest.read_assigned().items() if gone in replicas]

        if not _wait(lambda: not find_kept(), SETTLE_S):
            what = f"{name} has stayed away, and {len(find_kept())} partitions are on it still"
            self._breaches.append(Breach("failures-healed", what))
        faults.bring_back(name)

    def _find_processes(self) -> Iterator[Breach]:
        for pid, line in leftovers.find_processes([str(self._place.absolute())]).items():
            yield Breach("nothing-left", f"process {pid} has stayed: {line[:200]}")

    def _count(
        self, events: Iterable[Event], findings: SoakFindings, partitions: int
    ) -> dict[str, int]:
        """Count what happened, and tell the guarantees that are put to the test by it."""
        done: Counter[str] = Counter()
        records: Counter[str] = Counter()
        for event in events:
            done[event.what if event.did == "did" else event.did] += 1
            done["kill at a point"] += event.did == "kill" and event.what.startswith(CRASH)
            records[event.did] += event.count
        for name in COUNTED:
            findings.count(name, **{need: done[need] for need in GUARANTEES[name].needs})
        findings.count("in-sync-again", partitions=partitions, kills=done["kill"])
        findings.count("memory-flat", processes=self._memory.judged)
        if not self._memory.judged and self._settings.seconds < leftovers.OLD_S:
            old = f"no process of a soak of {self._settings.seconds:g} s was seen for long enough"
            findings.skipped["memory-flat"] = old
        if not self._settings.full_disks:
            findings.skipped["full-disk-survived"] = "without --full-disks no disk is full"
        if not self._settings.shape.heals:
            profile = self._settings.shape.profile
            findings.skipped["failures-healed"] = f"under {profile} no broker is replaced"
        named = (
            "kill", "kill at a point", "start in vain", "pause", "struck", "unanswered", "refused"
        )  # fmt: skip
        return {
            **{f"records_{did}": records[did] for did in ("sent", "acked", "failed", "read")},
            **{name.replace(" ", "_"): done[name] for name in named},
            **self._memory.tell(),
        }


def _is_answered(act: Callable[[], None]) -> bool:
    try:
        act()
    except UNANSWERED:
        return False
    return True


def _wait(condition: Callable[[], bool], for_s: float) -> bool:
    """Wait until a condition holds; return whether it does."""
    deadline = time.monotonic() + for_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_S)
    return True
