"""One soak, from the first process to the verdict."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from reassure_conformance.gate.replication.brokers import SHIPPED
from reassure_conformance.report.document import HOLDS, UNKNOWN, VACUOUS, VIOLATED, write_text
from reassure_controller.session import connect, stop
from reassure_lab.cluster.supervisor import ProcessCluster
from reassure_lab.soak import leftovers
from reassure_lab.soak.checker import (
    Breach,
    Logs,
    check_logs,
    check_marks,
    shorten,
)
from reassure_lab.soak.faulting import Faults
from reassure_lab.soak.judging import judge_histories
from reassure_lab.soak.load import REPLICAS, Consumer, LoadThread, Mover, Producer
from reassure_lab.soak.members import (
    MIN_INSYNC,
    Shape,
    addresses_of,
    end_cluster,
    start_cluster,
)
from reassure_lab.soak.operations import History, open_history
from reassure_lab.soak.proxies import ProxyNetwork
from reassure_lab.soak.quiescence import Quiescence
from reassure_lab.soak.schedule import draw
from reassure_lab.soak.traffic import NoLeader, RecordClient
from reassure_spec.errors import Unavailable
from reassure_spec.znodes import PartitionKey, ReplicaList, encode_topic, topic_path

TOPICS: Final = ("orders", "payments")
PARTITIONS: Final = 3
"""Of each topic."""
PRODUCERS: Final = 2
CONSUMERS: Final = 2
START_S: Final = 90.0
"""How long the cluster may take until all replicas are in sync for the first time."""
SETTLE_S: Final = 90.0
"""How long it may take to come to rest when all is healed."""
LOOK_S: Final = 0.1
SAMPLE_S: Final = 2.0
"""How often memory is looked at."""

KINDS: Final = ("broker", "controller", "zookeeper", "crash_point")
"""Of kills: whom they met, or that a controller was told before where to end."""
Progress = Callable[[str, int, int], None]


class NotStarted(Unavailable):
    """The cluster did not come to work before anything was done to it."""


@dataclass(frozen=True, slots=True)
class SoakSettings:
    """What is asked for."""

    seed: int
    seconds: float
    kills: int
    shape: Shape = field(default_factory=Shape)


@dataclass(slots=True)
class SoakOutcome:
    """What came of a soak."""

    settings: SoakSettings
    seconds: float
    counts: dict[str, int]
    breaches: list[Breach]
    unknown: list[str]
    """Why something could not be judged."""
    left_open: list[str]
    """What the judge leaves open, as it depends on what the writer had noticed."""

    @property
    def verdict(self) -> str:
        """Violated, unknown, vacuous or holds, in this order."""
        if self.breaches:
            return VIOLATED
        if self.unknown:
            return UNKNOWN
        needed = ("kills", "acknowledged", "consumed", "moves_ended", "judged_observations")
        return HOLDS if all(self.counts[name] for name in needed) else VACUOUS


class Soak:
    """One soak, in a directory of its own."""

    def __init__(self, settings: SoakSettings, directory: Path, progress: Progress) -> None:
        """Draw the schedule and write it down. Raises NoRoom."""
        self.directory = directory
        self.schedule = draw(
            settings.seed, settings.seconds, settings.kills, settings.shape.list_targets()
        )
        write_text(directory / "plan.txt", "\n".join(map(str, self.schedule.faults)) + "\n")
        self._settings = settings
        self._progress = progress
        self._place = directory / "cluster"
        self._keys = [(topic, number) for topic in TOPICS for number in range(PARTITIONS)]
        self._brokers = list(range(1, settings.shape.brokers + 1))
        self._memory = leftovers.MemorySamples()
        self._breaches: list[Breach] = []

    def run(self) -> SoakOutcome:
        """Carry it out. Raises NotStarted, or as `Cluster.start` does, where it could not begin."""
        begun = time.monotonic()
        with ExitStack() as stack:
            history = stack.enter_context(open_history(self.directory / "history.ndjson"))
            network = stack.enter_context(ProxyNetwork())
            self._progress("starting the cluster", 0, 0)
            cluster = start_cluster(self._place, self._settings.shape, network)
            stack.callback(end_cluster, cluster)
            client = connect(cluster.zookeeper, timeout_s=20)
            stack.callback(stop, client)
            logs_of = {one: cluster.get_data(f"broker-{one}") / "logs" for one in self._brokers}
            rest = Quiescence(client, self._keys, logs_of)
            _wait(lambda: not any(rest.find_unfinished()), START_S)
            rest.remember_roots()
            self._create_topics(rest)
            faults = Faults(cluster, network, history, self.schedule, rest.find_leader)
            mover = self._trouble(faults, rest, history)
            logs = self._come_to_rest(faults, rest, mover)
            epoch = rest.get_epoch()
        self._breaches += [*faults.breaches, *self._memory.check(), *self._find_processes()]
        self._breaches += check_logs(history.acknowledged, history.consumed, logs)
        self._breaches += check_marks(history.marks, logs)
        self._progress("judging the histories", 0, 0)
        judged = judge_histories(
            [self._place / name for name in self._settings.shape.list_members("zookeeper")],
            self.directory / "zookeeper",
            [self._place / f"broker-{one}" / "observations" for one in self._brokers],
            self._settings.shape.profile,
            SHIPPED,
            MIN_INSYNC,
        )
        counts = {**self._count(history, mover), "controller_elections": epoch, **judged.counts}
        breaches = shorten([*self._breaches, *judged.breaches])
        seconds = time.monotonic() - begun
        return SoakOutcome(
            self._settings, seconds, counts, breaches, judged.unknown, judged.left_open
        )

    # The beginning

    def _create_topics(self, rest: Quiescence) -> None:
        for topic in TOPICS:
            assigned: dict[int, ReplicaList] = {}
            for number in range(PARTITIONS):
                turned = self._brokers[number:] + self._brokers[:number]
                assigned[number] = tuple(turned[:REPLICAS])
            rest.client.create(topic_path(topic), encode_topic(assigned), makepath=True)
        if not _wait(lambda: not any(rest.find_out_of_sync()), START_S):
            raise NotStarted(
                f"the partitions had no full in-sync sets within {START_S:g} s; see the logs of "
                f"the members in {self._place / 'log'}"
            )

    # The load and the faults

    def _trouble(self, faults: Faults, rest: Quiescence, history: History) -> Mover:
        """Let the load run and the faults happen, then heal everything."""
        ending, begun = threading.Event(), time.monotonic()
        draws = random.Random(self._settings.seed)
        mover = Mover(
            rest.client,
            self._keys,
            self._brokers,
            draws,
            history,
            ending,
        )
        works = [
            LoadThread("mover", ending, mover.take_turn),
            *self._list_clients(faults, history, ending),
        ]
        for work in works:
            work.start()
        sampled_s = -SAMPLE_S
        while (now_s := time.monotonic() - begun) < self.schedule.seconds:
            faults.go_on(now_s)
            if now_s - sampled_s >= SAMPLE_S:
                sampled_s = now_s
                self._take_samples(faults.cluster, now_s)
                self._progress("seconds", int(now_s), int(self.schedule.seconds))
            time.sleep(LOOK_S)
        faults.end()
        ending.set()
        for work in works:
            work.join()
            if work.error is not None:
                raise work.error
        return mover

    def _list_clients(
        self, faults: Faults, history: History, ending: threading.Event
    ) -> Iterator[LoadThread]:
        bootstrap = addresses_of(faults.cluster)
        for kind, count in ((Producer, PRODUCERS), (Consumer, CONSUMERS)):
            for number in range(1, count + 1):
                name = f"{kind.__name__.lower()}-{number}"
                one = kind(name, RecordClient(bootstrap), self._keys, history, ending)
                yield LoadThread(name, ending, one.take_turn, one.client.close)

    def _take_samples(self, cluster: ProcessCluster, now_s: float) -> None:
        for member in cluster.members():
            if member.pid is not None:
                self._memory.take(member.name, member.pid, now_s)

    # The end

    def _come_to_rest(self, faults: Faults, rest: Quiescence, mover: Mover) -> Logs:
        """Wait until there is nothing to do any more; read all logs; look what is left."""
        begun = time.monotonic()

        def wait(find: Callable[[], Iterable[Breach]], for_s: float) -> Iterator[Breach]:
            """Wait until nothing is found. A controller may still end where it was told to."""

            def look() -> bool:
                faults.go_on(time.monotonic() - begun)
                return not any(True for _ in find())

            return iter(()) if _wait(look, for_s) else iter(list(find()))

        self._progress("waiting for rest", 0, 0)
        self._breaches += wait(rest.find_unfinished, SETTLE_S)
        self._breaches += wait(rest.find_out_of_sync, SETTLE_S / 3)
        self._breaches += rest.find_misplaced(mover.wanted)
        self._progress("reading the logs again", 0, 0)
        client = RecordClient(addresses_of(faults.cluster))
        logs = {key: self._read_log(client, key) for key in self._keys}
        client.close()
        self._breaches += wait(rest.find_left, SETTLE_S / 3)
        self._take_samples(faults.cluster, self.schedule.seconds + time.monotonic() - begun)
        return logs

    def _read_log(self, client: RecordClient, key: PartitionKey) -> list[bytes]:
        """Return all values of a partition, as its leader hands them out."""
        values: list[bytes] = []

        def read() -> bool:
            try:
                seen = client.fetch(key, len(values))
            except NoLeader:
                return False
            values.extend(value for _, value in seen.records)
            return len(values) >= seen.high_watermark

        if not _wait(read, SETTLE_S / 10):
            what = f"{key[0]}-{key[1]} could be read up to {len(values)} only"
            self._breaches.append(Breach("acknowledged-kept", what))
        return values

    def _find_processes(self) -> Iterator[Breach]:
        for pid, line in leftovers.find_processes([str(self._place.absolute())]).items():
            yield Breach("nothing-left", f"process {pid} has stayed: {line[:200]}")

    def _count(self, history: History, mover: Mover) -> dict[str, int]:
        counts: Counter[str] = history.counts
        asked = counts["moves_asked"] + counts["moves_unknown"]
        unfinished = {one.what for one in self._breaches if one.promise == "reassignments-end"}
        return {
            "kills": counts["kills"],
            **{f"kills_{kind}": counts[f"kills_{kind}"] for kind in KINDS},
            "starts_in_vain": counts["starts_in_vain"],
            "pauses": counts["pauses"],
            "cuts": counts["cuts"],
            "produced": counts["produced"],
            "acknowledged": len(history.acknowledged),
            "refused": counts["produced_refused"],
            "unanswered": counts["produced_unknown"],
            "consumed": len(history.consumed),
            "marks_seen": len(history.marks),
            "moves_asked": asked,
            "moves_ended": max(0, asked - len(unfinished)),
            **{f"rss_max_mib_{role}": most for role, most in self._memory.max_mib.items()},
        }


def _wait(condition: Callable[[], bool], for_s: float) -> bool:
    """Wait until a condition holds; return whether it does."""
    deadline = time.monotonic() + for_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_S)
    return True
