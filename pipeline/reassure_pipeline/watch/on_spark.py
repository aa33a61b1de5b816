"""The same watch with topics judged side by side on Spark.

The loop is the plain one (`watch.loop`): this process follows the logs, tells
what was found, and keeps what a checkpoint has. Some thousand transactions at a time go to one task
for each share of the topics. A task leaves out what is another's, as the processes of an audit do.
It judges the rest with what its share has in mind, and answers that again, with alerts and sums.
"""

import os
import pickle
import re
from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, NamedTuple

from reassure_judge.rules import Rules
from reassure_pipeline.archives.archive import Archive
from reassure_pipeline.archives.beginnings import Base, Restart
from reassure_pipeline.audit.jobs import rare_collections
from reassure_pipeline.audit.passes import Judged, Options, Share
from reassure_pipeline.fleet.totals import Present
from reassure_pipeline.spark.placement import run_on_open
from reassure_pipeline.watch.alerts import Alert
from reassure_pipeline.watch.watched_archive import FirstOfEach, Sum, WatchedArchive
from reassure_zookeeper.codec import encode
from reassure_zookeeper.ensemble import Hole
from reassure_zookeeper.transactions import Transaction

_SHARES_OF_A_CLUSTER: Final = 16
_MOST: Final = 50_000
"""How many transactions are judged at a time, so that what is told of many is told soon."""
_AT_ONCE: Final = 2_000
"""How many are decoded before they are judged."""


def choose_shares(master: str) -> int:
    """Return into how many shares topics are cut for good: a task at a time for each core.

    >>> choose_shares("local[3]"), choose_shares("local"), choose_shares("spark://host:7077")
    (3, 1, 16)
    """
    found = re.fullmatch(r"local(?:\[(\d+|\*).*\])?", master)
    if found is None:
        return _SHARES_OF_A_CLUSTER
    return len(os.sched_getaffinity(0)) if found[1] == "*" else int(found[1] or 1)


class ShareWork(NamedTuple):
    """What every share of an archive is given to judge."""

    records: list[bytes]
    holes: tuple[Hole, ...]
    times_ms: tuple[int, int] | None
    restarts: list[Restart]


Answer = tuple[bytes, list[Alert], Sum]
"""What a share has in mind from then on, pickled; what there is to tell; what it has come to."""


def judge_share(kept: bytes, work: ShareWork) -> Answer:
    """Judge what is of one share, which had this in mind."""
    watched: WatchedArchive = pickle.loads(kept)
    watched.holes, watched.times_ms = work.holes, work.times_ms
    watched.passes.coming += work.restarts
    told: list[Alert] = []
    with rare_collections():
        for at in range(0, len(work.records), _AT_ONCE):
            decode = watched.passes.make_decoder()
            told += watched.judge([decode(each) for each in work.records[at : at + _AT_ONCE]])
        # Where facts are taken nothing is judged once they are summed up.
        return pickle.dumps(watched, pickle.HIGHEST_PROTOCOL), told, watched.sum_up()


def judge_shares(kept: Sequence[bytes], work: ShareWork) -> list[Answer]:
    """Judge all shares, each in a task of the Spark that is open."""
    return run_on_open(partial(judge_share, work=work), kept)


class SpreadWatched:
    """One archive that is judged share by share; it is asked as a `WatchedArchive` is."""

    def __init__(
        self,
        archive: Archive,
        base: Base | None,
        rules: Rules[Any, Any],
        options: Options,
        shares: int,
    ) -> None:
        self.holes: tuple[Hole, ...] = ()
        self.times_ms: tuple[int, int] | None = None
        each = [
            WatchedArchive(archive, base, rules, options, Share(n, shares, options.chroots))
            for n in range(shares)
        ]
        self._kept = [pickle.dumps(watched) for watched in each]
        self._sums = [watched.sum_up() for watched in each]
        self._restarts: list[Restart] = []
        self._waiting: list[Transaction] = []

    def begin_anew(self, restart: Restart) -> None:
        """Judge anew from there, once it has come to that."""
        self._restarts.append(restart)

    def judge(self, batch: Sequence[Transaction]) -> list[Alert]:
        """Take the transactions that come next; judge once there are many."""
        self._waiting += batch
        return self.judge_rest() if len(self._waiting) >= _MOST else []

    def judge_rest(self) -> list[Alert]:
        """Judge what was taken, and answer what there is to tell of it."""
        if not self._waiting:
            return []
        records = [encode(each) for each in self._waiting]
        answers = judge_shares(
            self._kept, ShareWork(records, self.holes, self.times_ms, self._restarts)
        )
        self._kept = [kept for kept, _, _ in answers]
        self._sums = [total for _, _, total in answers]
        self._restarts, self._waiting = [], []
        told = [alert for _, alerts, _ in answers for alert in alerts]
        return sorted(told, key=attrgetter("seen_at", "id"))

    @property
    def findings(self) -> FirstOfEach:
        """What was found in all shares."""
        findings = FirstOfEach()
        for total in self._sums:
            findings.add(total.findings)
        return findings

    def look(self) -> Present | None:
        """Return how partitions and controllers stand so far, where facts are taken."""
        taken = [each.facts.present for each in self._judged() if each.facts is not None]
        present = Present()
        for each in taken:
            present.take_in(each)
        return present if taken and self.times_ms is not None else None

    def _judged(self) -> list[Judged]:
        return [total.judged for total in self._sums]

    def count_partitions(self) -> int:
        """Return how many partitions were met."""
        return sum(each.partitions.total() for each in self._judged())

    def list_exercised(self) -> set[str]:
        """Return the clauses that were put to the test."""
        return {clause for each in self._judged() for clause in each.tally.exercised}

    def sum_up(self) -> Sum:
        """Return what all shares have come to so far."""
        total, *others = pickle.loads(pickle.dumps(self._sums))
        for other in others:
            total.add(other)
        assert isinstance(total, Sum)
        return total
