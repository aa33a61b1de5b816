"""How soon `reassure audit --follow` tells: from a write to the line that names it.

    python benchmarks/watch.py [--rate 2000] [--seconds 30] [--partitions 1000]
    python benchmarks/watch.py --zookeeper [--rate 2000] [--seconds 30] [--partitions 1000]

A history of a cluster at work, with faults planted in it, is written into a growing log, with zeros
in advance and file after file as ZooKeeper does, at a rate that is kept by the clock. The time of a
fault's write is taken once it is in the file; that of its line as it is read. The clock starts when
the first fault was told, so that starting is no part of it.

With `--zookeeper` a real server writes the log, which it synchronises before it answers. Brokers
and the controller are sessions of kazoo, which write without waiting for the answer before. The
time of a fault's write is then that of the server's answer, as this process hears of it; `sent` is
from when it was asked.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from statistics import quantiles
from typing import IO, Any, Final, NamedTuple

from kazoo.client import KazooClient

from reassure_lab.archives.sample import SampleCluster
from reassure_lab.protocols.kip_236.synthetic import Size, SyntheticHistory
from reassure_zookeeper.launch import ServerSettings
from reassure_zookeeper.server import Server
from reassure_zookeeper.transactions import Check, Create, SetData, Transaction
from reassure_zookeeper.txnlog_writer import GrowingLog

FAULTS_PER_S: Final = 10
TICK_S: Final = 0.01
BLOCK: Final = 1 << 26
PER_FILE: Final = 20_000
LIMIT_S: Final = 180.0
LONGEST_S: Final = 60
BROKERS: Final = 3


class Written(NamedTuple):
    """What was written, at which pace, and when each fault was, by its zxid."""

    transactions: int
    rate: float
    asked: dict[int, float]
    """When somebody else was asked for each; empty where nobody is."""
    answered: dict[int, float]


class OwnLog:
    """Writes a synthetic history into a log."""

    def __init__(self, folder: Path, rate: int, seconds: int, partitions: int) -> None:
        size = Size(rate * seconds + 12 * partitions, partitions, FAULTS_PER_S * seconds, 1)
        made = SyntheticHistory(size)
        self._history = [each for some in made.steps() for each in some]
        self._planted = {fault.zxid for fault in made.planted}
        self._rate = rate
        self._log = GrowingLog(folder, block=BLOCK)
        self._begun = 0

    def begin(self) -> int:
        """Write up to the first fault; return its zxid."""
        first = min(self._planted)
        self._begun = next(n for n, each in enumerate(self._history) if each.zxid == first) + 1
        self._log.append(*self._history[: self._begun])
        return first

    def write(self) -> Written:
        """Write what is left."""
        written: dict[int, float] = {}
        start, at, history = time.monotonic(), self._begun, self._history
        while at < len(history):
            due = self._begun + round((time.monotonic() - start) * self._rate)
            part = history[at : min(due, at + PER_FILE)]
            if part:
                self._log.append(*part)
                now = time.monotonic()
                written |= {each.zxid: now for each in part if each.zxid in self._planted}
                if at // PER_FILE != (at + len(part)) // PER_FILE:
                    self._log.rotate()
                at += len(part)
            time.sleep(TICK_S)
        count = at - self._begun
        return Written(count, count / (time.monotonic() - start), {}, written)


class RealLog:
    """Lets a server write the log: sessions of brokers and of the controller ask it to."""

    def __init__(self, hosts: str, rate: int, seconds: int, partitions: int) -> None:
        self._hosts = hosts
        self._rate = rate
        self._seconds = seconds
        self._partitions = partitions
        self._cluster = SampleCluster(BROKERS)
        self._clients: dict[int, KazooClient] = {}
        self._answers: list[tuple[bool, float, float, int]] = []
        """Of each write: whether it was a fault, when it was asked and answered, and its zxid."""
        self._failed: list[BaseException] = []

    def close(self) -> None:
        """End the sessions."""
        for client in self._clients.values():
            client.stop()
            client.close()

    def begin(self) -> int:
        """Start brokers, make topics, and plant the first fault; return its zxid."""
        assigned = [tuple((n + k) % BROKERS + 1 for k in range(BROKERS)) for n in range(BROKERS)]
        for topic in ("orders", "faulty"):
            numbers = range(self._partitions if topic == "orders" else self._count_faults() + 1)
            self._cluster.create_topic(topic, {n: assigned[n % BROKERS] for n in numbers})
        for transaction in self._cluster.transactions:
            self._ask(transaction)
        self._cluster.transactions.clear()
        self._fail(self._count_faults())
        self._send(self._cluster.transactions.pop(), is_fault=True)
        self._await(1)
        return self._answers.pop()[-1]

    def write(self) -> Written:
        """Ask for writes at the rate that is wanted, and wait for all answers."""
        count = self._rate * self._seconds
        writes = self._list_writes(count)
        start, at = time.monotonic(), 0
        while at < count:
            due = min(count, round((time.monotonic() - start) * self._rate))
            for _ in range(at, due):
                is_fault, transaction = next(writes)
                self._send(transaction, is_fault=is_fault)
            at = due
            time.sleep(TICK_S)
        self._await(count)
        rate = count / (max(answered for _, _, answered, _ in self._answers) - start)
        asked = {zxid: asked for is_fault, asked, _, zxid in self._answers if is_fault}
        answered = {zxid: answered for is_fault, _, answered, zxid in self._answers if is_fault}
        return Written(count, rate, asked, answered)

    def _count_faults(self) -> int:
        return FAULTS_PER_S * self._seconds

    def _list_writes(self, count: int) -> Iterator[tuple[bool, Transaction]]:
        """Yield changes of in-sync sets by leaders, and faults among them."""
        cluster, every = self._cluster, count // self._count_faults()
        for number in range(count):
            is_fault = number % every == every - 1
            if is_fault:
                self._fail(number // every)
            else:
                place = number % self._partitions
                partition = cluster.partitions["orders", place]
                whole = partition.state.isr == partition.assigned
                isr = partition.assigned[:-1] if whole else partition.assigned
                cluster.write_isr("orders", place, isr)
            yield is_fault, cluster.transactions.pop()

    def _fail(self, number: int) -> None:
        """Let the controller write a state without looking whether it still is the controller."""
        self._cluster.write_state("faulty", number, fenced=False)

    def _get_client(self, session: int) -> KazooClient:
        client = self._clients.get(session)
        if client is None:
            client = self._clients[session] = KazooClient(self._hosts, timeout=LONGEST_S)
            client.start()
        return client

    def _ask(self, transaction: Transaction) -> None:
        """Let a session write a transaction, and wait until it is done."""
        request = self._get_client(transaction.session_id).transaction()
        for op in transaction.ops:
            match op:
                case Create():
                    request.create(op.path, op.data, ephemeral=op.ephemeral)
                case SetData():
                    request.set_data(op.path, op.data, op.version - 1)
                case Check():
                    request.check(op.path, op.version - 1)
        for result in request.commit() if request.operations else ():
            if isinstance(result, Exception):
                raise result

    def _send(self, transaction: Transaction, *, is_fault: bool) -> None:
        """Let a session write the one znode of a transaction."""
        (op,) = transaction.ops
        assert isinstance(op, SetData)
        client = self._get_client(transaction.session_id)
        result = client.set_async(op.path, op.data, op.version - 1)
        result.rawlink(partial(self._take, is_fault, time.monotonic()))

    def _take(self, is_fault: bool, asked: float, result: Any) -> None:
        answered = time.monotonic()
        if result.exception is None:
            self._answers.append((is_fault, asked, answered, result.value.mzxid))
        else:
            self._failed.append(result.exception)

    def _await(self, count: int) -> None:
        """Wait for the answers to so many writes."""
        until = time.monotonic() + LIMIT_S
        while len(self._answers) < count:
            if self._failed:
                raise self._failed[0]
            if time.monotonic() > until:
                sys.exit(f"{count - len(self._answers)} of {count} writes were not answered")
            time.sleep(TICK_S)


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Return the time that each fault took to be told, and what the watch took of the processor."""
    pace = given.rate, given.seconds, given.partitions
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        log: OwnLog | RealLog
        if given.zookeeper:
            settings = ServerSettings(force_sync=True, pre_alloc_kib=BLOCK >> 10)
            folder = scratch / "data"
            folder.mkdir()
            server = stack.enter_context(Server.start(folder, settings=settings))
            log = stack.enter_context(closing(RealLog(server.hosts, *pace)))
        else:
            folder = scratch / "log"
            folder.mkdir()
            log = OwnLog(folder, *pace)
        command = [
            str(Path(sys.executable).with_name("reassure")),
            "audit",
            "--follow",
            str(folder),
        ]
        command += ["--profile", "kip-236", "--checkpoint", f"{scratch}/kept", "--format", "json"]
        return run(command, log.begin, log.write) | {"partitions": given.partitions}


def run(
    command: list[str], begin: Callable[[], int], write: Callable[[], Written]
) -> dict[str, Any]:
    """Watch while a log is written; return how soon was told what."""
    told: dict[int, float] = {}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        reader = threading.Thread(target=note, args=(process.stdout, told))
        reader.start()
        first = begin()
        await_told(told, {first}, process)
        written = write()
        await_told(told, set(written.answered), process)
        process.terminate()
        reader.join()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    unplanted = told.keys() - written.answered.keys() - {first}
    if unplanted:
        sys.exit(f"told and not planted: {sorted(unplanted)[:5]}")
    asked = written.asked
    cpu_s = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return {
        "transactions": written.transactions,
        "rate": round(written.rate),
        "faults": len(written.answered),
        **sum_up("", [told[zxid] - at for zxid, at in written.answered.items()]),
        **(sum_up("sent_", [told[zxid] - at for zxid, at in asked.items()]) if asked else {}),
        "cpu_s": round(cpu_s, 1),
        "load": os.getloadavg()[0],
    }


def sum_up(name: str, took: list[float]) -> dict[str, float]:
    """Return what these times come to."""
    cuts = quantiles(took, n=100)
    figures = {"p50_s": cuts[49], "p99_s": cuts[98], "max_s": max(took)}
    return {name + figure: round(value, 3) for figure, value in figures.items()}


def note(lines: IO[bytes], told: dict[int, float]) -> None:
    """Note when each line came, by the zxid that it names."""
    for line in lines:
        now = time.monotonic()
        alert = json.loads(line)
        if "zxid" in alert:
            told.setdefault(alert["zxid"], now)


def await_told(told: dict[int, float], wanted: set[int], process: subprocess.Popen[bytes]) -> None:
    """Wait until all of these were told."""
    until = time.monotonic() + LIMIT_S
    while not wanted <= told.keys():
        if process.poll() is not None or time.monotonic() > until:
            sys.exit(f"{len(wanted - told.keys())} of {len(wanted)} were not told")
        time.sleep(0.01)


def main() -> None:
    """Measure, and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=2_000)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--zookeeper", action="store_true", help="Let a real server write the log.")
    given = parser.parse_args()
    if given.zookeeper and given.seconds > LONGEST_S:
        parser.error(f"--zookeeper writes for {LONGEST_S} seconds at most")
    print(json.dumps(measure(given)))


if __name__ == "__main__":
    main()
