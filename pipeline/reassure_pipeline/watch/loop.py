"""Logs that grow, judged as they do: transactions in, alerts out, until somebody says stop.

The loop looks at every archive in turn. While there is something new it looks again at once; while
there is nothing, less and less often (`LONGEST_PAUSE_S`), which costs next to nothing and needs no
help of the file system.

What was found is written into the journal first, told then, and in the state of the checkpoint
last.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from pathlib import Path
from threading import Event
from typing import Any, Final, NamedTuple

from reassure_judge.rules import Rules
from reassure_pipeline.archives.archive import find_archives
from reassure_pipeline.audit.archive_report import ArchiveReport, report_archive
from reassure_pipeline.audit.passes import Options
from reassure_pipeline.fleet.totals import Present
from reassure_pipeline.watch.alerts import Alert, tell_damage, tell_hole
from reassure_pipeline.watch.appending import Appending
from reassure_pipeline.watch.follower import LogFollower, TakenBack
from reassure_pipeline.watch.same_history import SameHistories
from reassure_pipeline.watch.watch_checkpoint import Journal
from reassure_pipeline.watch.watched_archive import NOTHING, FirstOfEach, Sum, WatchedArchive
from reassure_zookeeper.transactions import Transaction

SHORTEST_PAUSE_S: Final = 0.02
LONGEST_PAUSE_S: Final = 0.5
_SHOW_S: Final = 0.5
"""How often it is shown how things stand."""
_SAVE_S: Final = 2.0
_SAVE_SHARE: Final = 20
"""Saving may take one part of so many of the time."""
_RATE_S: Final = 5.0
"""Over how long transactions are counted to say how many come in a second."""

Note = Callable[[Sequence[Transaction]], None]


class ArchiveStatus(NamedTuple):
    """How an archive is doing."""

    name: str
    state: str
    transactions: int
    partitions: int
    last_zxid: int
    behind_s: float
    """How old the last transaction was when it was judged; 0 where nothing waits."""
    missing: int
    """Holes, and files that could not be read."""
    present: Present | None
    """How partitions and controllers stand, where facts are taken."""


class Status(NamedTuple):
    """How a watch is doing."""

    seconds: float
    """Since it began or went on."""
    rate: float
    """Transactions in a second, lately."""
    archives: tuple[ArchiveStatus, ...]
    found: Counter[tuple[str, str]]
    """By kind and clause: how many findings."""
    exercised: int
    """How many clauses were put to the test."""


class ArchiveWatch:
    """One archive as it grows."""

    def __init__(self, path: Path, rules: Rules[Any, Any], options: Options) -> None:
        self.name = str(path)
        self.follower = LogFollower(path)
        self.watched: WatchedArchive | None = None
        """None until there is a transaction."""
        self.lost: TakenBack | None = None
        """Why this archive is not followed any more."""
        self._damages: set[tuple[Path, int]] = set()
        """What was told of that cannot be read."""
        self.extent = NOTHING
        self._rules = rules
        self._options = options
        self._after = -1
        """Transactions up to this one are in what the history begins from."""

    @property
    def is_caught_up(self) -> bool:
        """Whether the last look came to the end of what there is."""
        return self.follower.is_caught_up or self.lost is not None

    @property
    def findings(self) -> FirstOfEach:
        """What was found so far."""
        return FirstOfEach() if self.watched is None else self.watched.findings

    @property
    def state(self) -> str:
        """`waiting` for a first transaction, `behind`, `caught up`, or `lost`."""
        if self.watched is None:
            return "waiting"
        return "lost" if self.lost is not None else "caught up" if self.is_caught_up else "behind"

    def judge(self, note: Note | None = None) -> Iterator[list[Alert]]:
        """Judge what was added since; yield what there is to tell after every part of it.

        `note` is given every part before it is judged. Whoever stops between two parts goes on
        behind the first of them. Raises what `LogFollower.begin` and `note` raise.
        """
        watched = self._begin()
        if watched is None or self.lost is not None:
            return
        try:
            for batch in self.follower.read():
                if note is not None:
                    note(batch)
                told = self._tell_missing(watched)
                after = max(self._after, self.extent.last_zxid)
                restart = self.follower.look_for_restart(after, batch[0].zxid)
                if restart is not None:
                    watched.begin_anew(restart)
                fresh = self._take(batch, watched)
                yield told + watched.judge(fresh)
        except TakenBack as lost:
            self.lost = lost
            yield [tell_damage(self.name, self.extent.last_zxid, lost)]
        told = self._tell_missing(watched)
        if told:
            yield told

    def _begin(self) -> WatchedArchive | None:
        if self.watched is None:
            base = self.follower.begin()
            archive = self.follower.archive
            if archive is None:
                return None
            self._after = -1 if base is None else base.zxid
            self.watched = WatchedArchive(archive, base, self._rules, self._options)
        return self.watched

    def _take(self, batch: list[Transaction], watched: WatchedArchive) -> list[Transaction]:
        if batch[0].zxid <= self._after:
            batch = [each for each in batch if each.zxid > self._after]
        if batch:
            self.extent = self.extent.reach(batch)
            watched.times_ms = self.extent.times_ms
        return batch

    def _tell_missing(self, watched: WatchedArchive) -> list[Alert]:
        """Answer what could not be read since this was asked last."""
        archive, holes = self.follower.archive, self.follower.holes
        assert archive is not None, "it has begun"
        fresh = [d for d in archive.damages if (d.file, d.offset) not in self._damages]
        self._damages.update((damage.file, damage.offset) for damage in fresh)
        missing = [hole for hole in holes if hole.before >= 0 and hole not in watched.holes]
        watched.holes = holes
        return [
            *(tell_damage(self.name, self.extent.last_zxid, damage) for damage in fresh),
            *(tell_hole(self.name, hole) for hole in missing),
        ]

    def find_status(self) -> ArchiveStatus:
        """Return how it is doing."""
        watched, state = self.watched, self.state
        last_ms = 0 if self.extent.times_ms is None else self.extent.times_ms[1]
        behind_s = time.time() - last_ms / 1000 if state == "behind" else 0.0
        return ArchiveStatus(
            self.name,
            state,
            self.extent.transactions,
            0 if watched is None else watched.count_partitions(),
            self.extent.last_zxid,
            max(0.0, behind_s),
            len(self._damages) + (0 if watched is None else len(watched.holes)),
            None if watched is None else watched.look(),
        )

    def report(self) -> tuple[ArchiveReport, Sum] | None:
        """Return what it has come to; None where there was no transaction."""
        archive = self.follower.archive
        if self.watched is None or archive is None:
            return None
        total, holes = self.watched.sum_up(), self.watched.holes
        found = total.known, total.settle(), total.beginnings, holes
        return report_archive(archive, self.extent, *found), total


class Rate:
    """How many transactions come in a second, lately."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque()

    def measure(self, now: float, transactions: int) -> float:
        """Take note of how many there are by now."""
        marks = self._marks
        marks.append((now, transactions))
        while len(marks) > 1 and marks[0][0] < now - _RATE_S:
            marks.popleft()
        (start, before), (end, after) = marks[0], marks[-1]
        return (after - before) / (end - start) if end > start else 0.0


class Ending(NamedTuple):
    """When a watch ends."""

    stop: Event
    """Set by whoever wants it to end."""
    until: float = inf
    """The time (`time.monotonic`) at which it ends."""
    when_caught_up: bool = False

    def is_over(self) -> bool:
        """Whether somebody wants it to end, or it is time."""
        return self.stop.is_set() or time.monotonic() >= self.until

    def wait(self, pause_s: float) -> None:
        """Wait a while, unless it is to end before."""
        self.stop.wait(max(0.0, min(pause_s, self.until - time.monotonic())))


class LogWatch:
    """Judges archives as they grow."""

    def __init__(
        self,
        archives: Sequence[ArchiveWatch],
        journal: Journal,
        *,
        ending: Ending,
        save: Callable[[], None] | None = None,
        show: Callable[[Status], None] | None = None,
        tables: Appending | None = None,
    ) -> None:
        self.archives = archives
        self._journal = journal
        self._ending = ending
        self._save = save
        self._show = show
        self._tables = tables
        self._told = 0
        """How many alerts were told."""
        self._same = SameHistories([archive.follower.path for archive in archives])
        self._rate = Rate()
        self._begun = time.monotonic()
        self._save_at = self._begun + _SAVE_S
        self._show_at = self._begun
        self._saved = sum(archive.extent.transactions for archive in archives)

    def run(self, *, is_new: bool = False) -> None:
        """Judge until it is to end; one that `is_new` is kept before anything is told.

        Where something cannot be kept, all there is is told first, and then the error is raised.
        Raises `LogsMissing` where it is to end when it has caught up, and there is nothing;
        `TakenBack` where no archive is left to follow, `SameHistory` for two that log the same, and
        what reading a snapshot raises.
        """
        pause = SHORTEST_PAUSE_S
        if is_new:
            self._put_aside()
        while not self._ending.is_over():
            moved = self._look()
            if self._journal.problem is not None:
                raise self._journal.problem
            if self._ending.when_caught_up and self._has_caught_up():
                break
            pause = SHORTEST_PAUSE_S if moved else min(1.5 * pause, LONGEST_PAUSE_S)
            self._ending.wait(pause)
        # Not where it was broken off: what was judged by then may not have been told.
        self._keep(now=True)
        if self._journal.problem is not None:
            raise self._journal.problem
        lost = [archive.lost for archive in self.archives if archive.lost is not None]
        if len(lost) == len(self.archives):
            raise lost[0]

    def _has_caught_up(self) -> bool:
        for archive in self.archives:
            if archive.watched is None:
                find_archives([archive.follower.path])  # says what is missing
        return all(archive.is_caught_up for archive in self.archives)

    def _look(self) -> bool:
        """Judge what was added to each archive; answer whether there was anything."""
        moved = False
        for number, archive in enumerate(self.archives):
            for told in archive.judge(partial(self._same.note, number)):
                moved = True
                if told:
                    self._journal.tell(told)
                    self._told += len(told)
                self._keep()
                if self._ending.is_over():
                    return True
        self._keep()
        return moved

    def _keep(self, *, now: bool = False) -> None:
        """Show how things stand, and save them, where it is time."""
        clock = time.monotonic()
        if self._show is not None and (now or clock >= self._show_at):
            self._show(self.find_status())
            self._show_at = clock + _SHOW_S
        judged = sum(archive.extent.transactions for archive in self.archives)
        if now or (clock >= self._save_at and judged != self._saved):
            self._put_aside()
            took = time.monotonic() - clock
            self._saved = judged
            self._save_at = clock + max(_SAVE_S, _SAVE_SHARE * took)
        if self._tables is not None:
            (self._tables.finish if now else self._tables.look)(judged, self._told)

    def _put_aside(self) -> None:
        """Save how things stand, where that is wanted and nothing has failed."""
        if self._save is not None and self._journal.problem is None:
            try:
                self._save()
            except OSError as problem:
                self._journal.problem = problem

    def find_status(self) -> Status:
        """Return how things stand."""
        now = time.monotonic()
        transactions = sum(archive.extent.transactions for archive in self.archives)
        found: Counter[tuple[str, str]] = Counter()
        exercised: set[str] = set()
        for archive in self.archives:
            for (kind, clause, _), times in archive.findings.times.items():
                found[kind, clause] += times
            if archive.watched is not None:
                exercised |= archive.watched.list_exercised()
        rate = self._rate.measure(now, transactions)
        archives = tuple(archive.find_status() for archive in self.archives)
        return Status(now - self._begun, rate, archives, found, len(exercised))
