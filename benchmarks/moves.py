"""What one request for many partitions costs, with three live brokers that have logs.

Brokers and ZooKeeper are processes; the controller runs in this one, as its process would run it,
so that what it writes, sends and plans can be counted. Each partition's leader goes elsewhere and
its follower stays; they hold no records. Every run has a cluster of its own.

    python benchmarks/moves.py moves 1 10 100 1000 5000 --rounds 5
    python benchmarks/moves.py failover 1000 2000 4000
    python benchmarks/moves.py conflicts 100 1000
    python benchmarks/moves.py hanging 1000

`moves`: transactions of ZooKeeper and orders to brokers for each partition, by whomever, and the
time from the request until the last partition is where it is wanted.
`failover`: the controller ends when half of the partitions have their new replicas assigned; how
long the next one takes until it has read all and told every broker of it, and until it is all done.
`conflicts`: every leader writes its state a moment before the controller does, once for each
write of the controller's that depends on it; how often a partition is planned for one conflict.
`hanging`: a broker stands still, and all moves go to it; how long a topic that has nothing to do
with it waits for its leader, and how long where nothing else happens.

With --profile a run prints where the controller's thread spends its time.
"""

import argparse
import cProfile
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from reassure_controller import daemons
from reassure_controller.controller import Controller
from reassure_controller.effects import PartitionEffect, Step
from reassure_controller.pipelining import PipelinedEngine
from reassure_controller.session import connect, fetch, stop
from reassure_controller.transport import QueuedTransport
from reassure_lab.cluster.supervisor import ProcessCluster
from reassure_lab.node.orders import WireTransport
from reassure_spec.znodes import (
    REASSIGNMENT_REQUESTS,
    REASSIGNMENTS,
    PartitionKey,
    RequestZnode,
    decode_state,
    decode_topic,
    encode_request,
    encode_state,
    encode_topic,
    state_path,
    topic_path,
)

TOPIC: Final = "many"
BEFORE, AFTER = (1, 2), (3, 2)
HANGING: Final = 3
WAIT_S: Final = 900.0
POLL_S: Final = 0.02
RUNS: Final = 5
"""How often a time is taken of which the median is printed."""


def wait_for(done: Callable[[], bool], poll_s: float = POLL_S) -> float:
    """Return how long it took until `done` answered yes."""
    began = time.monotonic()
    while not done():
        if time.monotonic() - began > WAIT_S:
            raise SystemExit(f"not done within {WAIT_S:.0f} s")
        time.sleep(poll_s)
    return time.monotonic() - began


class Counts:
    """What controllers of one run have planned, sent and met."""

    def __init__(self) -> None:
        self.orders: Counter[str] = Counter()
        self.plans: Counter[PartitionKey] = Counter()
        self.again = 0
        """Orders that were given before, as they were not answered in time."""
        self._given: set[tuple[int, Any]] = set()
        self.on_effect: Callable[[PartitionEffect], None] = lambda _: None
        """Told of each effect of a partition before it is carried out."""

    def clear(self) -> None:
        """Count from here on."""
        self.again = 0
        self.orders.clear()
        self.plans.clear()
        self._given.clear()

    def note_order(self, broker: int, message: Any) -> None:
        """Count an order, and whether the same was given to that broker before."""
        self.orders[type(message).__name__] += 1
        order = (broker, message)
        self.again += order in self._given
        self._given.add(order)

    def note_plan(self, plan: tuple[Step, ...]) -> None:
        """Count the partitions that something is planned for."""
        self.plans.update({step.key for step in plan if isinstance(step, PartitionEffect)})


class CountedTransport(QueuedTransport):
    """Delivers orders, and counts them."""

    def __init__(self, number: int, counts: Counts) -> None:
        super().__init__(partial(WireTransport, number))
        self._counts = counts

    def send(self, broker: Any, message: Any) -> Any:
        """Queue an order."""
        self._counts.note_order(broker.id, message)
        return super().send(broker, message)


class Bench:
    """Three brokers, and the controllers started so far."""

    def __init__(self, cluster: ProcessCluster) -> None:
        self.cluster, self.counts = cluster, Counts()
        self.admin = connect(cluster.zookeeper)
        self._numbers = iter(range(1001, 2000))

    @contextmanager
    def running(self, *, profiled: bool = False) -> Iterator[Controller]:
        """Run a controller in a thread, as its process does."""
        number, until, counts = next(self._numbers), threading.Event(), self.counts
        client = connect(self.cluster.zookeeper, timeout_s=30.0)
        with closing(CountedTransport(number, counts)) as transport:
            controller = Controller(client, number, transport, at_once=daemons.AT_ONCE)
            watch_engine(controller, counts)
            profile = cProfile.Profile()
            run = partial(controller.run_forever, until)
            work = partial(profile.runcall, run) if profiled else run
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            try:
                wait_for(lambda: controller.terms.failovers > 0)
                yield controller
            finally:
                until.set()
                thread.join()
                controller.kill()
                if profiled:
                    profile.print_stats("cumulative")

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic; return once every follower is in sync."""
        numbers = range(partitions)
        self.admin.create(topic_path(topic), encode_topic(dict.fromkeys(numbers, BEFORE)))
        paths = [state_path(topic, number) for number in numbers]
        wait_for(lambda: all(found is not None for found in fetch(self.admin, paths)), 0.2)

    def ask(self, partitions: int) -> None:
        """Ask for all of them in one request."""
        targets = {(TOPIC, number): AFTER for number in range(partitions)}
        path = f"{REASSIGNMENT_REQUESTS}/request_"
        self.admin.create(path, encode_request(RequestZnode(targets)), sequence=True)

    def is_done(self) -> bool:
        """Whether all is where it is wanted, and nothing is left to be done."""
        assigned = decode_topic("", self.admin.get(topic_path(TOPIC))[0]).values()
        return set(assigned) == {AFTER} and not self.admin.get_children(REASSIGNMENTS)

    def count_transactions(self) -> int:
        """Return how many transactions ZooKeeper has carried out or refused."""
        return int(self.admin.set("/bench", b"").mzxid & 0xFFFFFFFF)


def count_writes(controller: Controller) -> int:
    """Return how many transactions a controller has asked for."""
    return dict(controller._client.operations.list())["Transaction",]  # noqa: SLF001


def watch_engine(controller: Controller, counts: Counts) -> None:
    """Have the engines of a controller count what is planned, and tell of effects."""

    class Watched(PipelinedEngine):
        def load(self, plan: tuple[Step, ...]) -> None:
            counts.note_plan(plan)
            super().load(plan)

        def _move(self, step: Step) -> None:
            if isinstance(step, PartitionEffect):
                counts.on_effect(step)
            super()._move(step)

    made = controller._make_engine  # noqa: SLF001 - what is measured is the controller as it is

    def make(context: Any) -> Any:
        engine = made(context)
        engine.__class__ = Watched
        return engine

    controller._make_engine = make  # type: ignore[method-assign]  # noqa: SLF001
    controller._engine = make(controller.context)  # noqa: SLF001


@contextmanager
def open_bench(**options: Any) -> Iterator[Bench]:
    """Give a cluster without a controller."""
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessCluster.start(Path(folder) / "cluster", 3, 1, 1, **options) as cluster,
    ):
        cluster.kill("controller-101")
        bench = Bench(cluster)
        bench.admin.create("/bench")
        try:
            yield bench
        finally:
            stop(bench.admin)


def move(partitions: int, *, profiled: bool, rounds: int = 1) -> None:
    """Print what moving so many partitions costs, in the median of some rounds."""
    found = [measure_move(partitions, profiled=profiled) for _ in range(rounds)]
    seconds, own, every, given, first, plans = map(statistics.median, zip(*found, strict=True))
    print(
        f"{partitions:>6} partitions: {seconds:8.2f} s; a partition: {own:5.2f} writes"
        f" of the controller, {every:5.2f} of all, {given:5.2f} orders, "
        f"of them {first:5.2f} for the first time, {plans:5.2f} plans"
        + f" (median of {rounds})"
        * (rounds > 1),
        flush=True,
    )


def measure_move(partitions: int, *, profiled: bool) -> tuple[float, ...]:
    """Return the seconds, and of each partition: writes, orders and plans."""
    with open_bench() as bench, bench.running(profiled=profiled) as controller:
        bench.create(TOPIC, partitions)
        counts = bench.counts
        counts.clear()
        all_before, own_before = bench.count_transactions(), count_writes(controller)
        bench.ask(partitions)
        seconds = wait_for(bench.is_done)
        every = bench.count_transactions() - all_before
        own = count_writes(controller) - own_before
    given, plans = counts.orders.total(), counts.plans.total()
    sums = own, every, given, given - counts.again, plans
    return (seconds, *(each / partitions for each in sums))


def fail_over(partitions: int, *, profiled: bool) -> None:
    """Print how long a controller takes to resume what is in flight."""
    with open_bench() as bench:
        with bench.running():
            bench.create(TOPIC, partitions)
            bench.cluster.pause(f"broker-{HANGING}")  # so that nothing completes meanwhile
            bench.ask(partitions)
            wait_for(lambda: is_expanded(bench, partitions))
        flying = len(fetch_children(bench))
        before = bench.count_transactions()
        began = time.monotonic()
        with bench.running(profiled=profiled) as controller:
            told_s = time.monotonic() - began
            wait_for(lambda: has_resumed(controller), 0.005)
            seconds = time.monotonic() - began
            writes = bench.count_transactions() - before
            bench.cluster.resume(f"broker-{HANGING}")
            done_s = wait_for(bench.is_done)
    print(
        f"{flying:>6} in flight: brokers are told after {told_s:5.2f} s, all is resumed after "
        f"{seconds:5.2f} s: {1000 * seconds / flying:.2f} ms and {writes / flying:.2f} "
        f"transactions each; all done {done_s:.2f} s later",
        flush=True,
    )


def has_resumed(controller: Controller) -> bool:
    """Whether nothing is left to be carried on until somebody else has done something."""
    changed = controller._agenda.reader.changed & controller.context.flying  # noqa: SLF001
    return not changed and controller._job is None  # noqa: SLF001


def is_expanded(bench: Bench, partitions: int) -> bool:
    """Whether half of the partitions have their new replicas assigned."""
    assigned = decode_topic("", bench.admin.get(topic_path(TOPIC))[0]).values()
    return 2 * sum(HANGING in each for each in assigned) >= partitions


def fetch_children(bench: Bench) -> list[str]:
    """Return the partitions that are in flight."""
    return list(bench.admin.get_children(f"{REASSIGNMENTS}/{TOPIC}"))


def conflict(partitions: int, *, profiled: bool) -> None:
    """Print how often a partition is planned for one conflict."""
    usual: Counter[PartitionKey] = Counter()
    for every_leader in (False, True):
        met: Counter[PartitionKey] = Counter()
        with open_bench() as bench, bench.running(profiled=profiled):
            bench.create(TOPIC, partitions)
            done: set[tuple[str, PartitionKey]] = set()

            def be_faster(effect: Any, bench: Bench = bench, done: Any = done) -> None:
                if not hasattr(effect, "state") or (effect.point, effect.key) in done:
                    return
                done.add((effect.point, effect.key))
                path = state_path(*effect.key)
                data, stat = bench.admin.get(path)
                bench.admin.set(path, encode_state(decode_state(path, data)), stat.version)
                met[effect.key] += 1  # noqa: B023 - called within this turn of the loop

            bench.counts.plans.clear()
            if every_leader:
                bench.counts.on_effect = be_faster
            bench.ask(partitions)
            seconds = wait_for(bench.is_done)
        if not every_leader:
            usual = bench.counts.plans
            continue
        more = [(bench.counts.plans[key] - usual[key]) / met[key] for key in usual]
        print(
            f"{partitions:>6} partitions: {met.total()} conflicts in {seconds:.2f} s; planned for "
            f"one conflict {statistics.mean(more):.2f} times, at most {max(more):.2f} times",
            flush=True,
        )


def hang(partitions: int, *, profiled: bool) -> None:
    """Print how long an unrelated topic waits for its leader."""
    with open_bench(session_timeout_s=60.0) as bench, bench.running(profiled=profiled):
        bench.create(TOPIC, partitions)
        names = iter(f"other-{number}" for number in range(100))

        def take_time() -> float:
            topic = next(names)
            began = time.monotonic()
            bench.admin.create(topic_path(topic), encode_topic({0: (1, 2)}))
            wait_for(lambda: bench.admin.exists(state_path(topic, 0)) is not None, 0.002)
            return time.monotonic() - began

        quiet = [take_time() for _ in range(RUNS)]
        bench.cluster.pause(f"broker-{HANGING}")
        bench.ask(partitions)
        while_taken = []
        while not is_expanded(bench, 2 * partitions):
            while_taken.append(take_time())
        flying = [take_time() for _ in range(RUNS)]
        count = len(fetch_children(bench))
        bench.cluster.resume(f"broker-{HANGING}")
        wait_for(bench.is_done)
    took = statistics.median(while_taken), max(while_taken)
    print(
        f"{count} in flight: an unrelated topic has a leader after "
        f"{1000 * statistics.median(flying):.0f} ms, {1000 * statistics.median(quiet):.0f} ms "
        f"where nothing else happens; {1000 * took[0]:.0f} ms, at most {1000 * took[1]:.0f} ms "
        f"while the request is carried out",
        flush=True,
    )


KINDS: Final[Mapping[str, Callable[..., None]]] = {
    "moves": move,
    "failover": fail_over,
    "conflicts": conflict,
    "hanging": hang,
}


def main() -> None:
    """Run one kind for each number of partitions."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("sizes", nargs="*", type=int, default=[120])
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--rounds", type=int, default=1)
    asked = parser.parse_args()
    more = {"rounds": asked.rounds} if asked.kind == "moves" else {}
    for partitions in asked.sizes:
        KINDS[asked.kind](partitions, profiled=asked.profile, **more)


if __name__ == "__main__":
    main()
