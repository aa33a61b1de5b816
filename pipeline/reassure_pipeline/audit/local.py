"""Judge transaction logs, whatever cluster left them: the local engine, and the way to Spark.

The local engine reads every file in order, and judges as it reads; memory is needed for the
partitions, not for the transactions. With several jobs every process reads all the files, skips
what is written about topics that are another's, and judges its own (`Share`). Both
engines answer the same report.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from operator import attrgetter
from pathlib import Path
from typing import Any

from reassure_judge.doubt import GRACE_MS
from reassure_judge.protocols import get_rules, make_rules
from reassure_judge.rules import OBSERVATIONS, Rules
from reassure_judge.verdicts import Tally
from reassure_pipeline.archives.archive import (
    RECOGNISED,
    Archive,
    FileFacts,
    Since,
    check_joint,
    contain,
    find_times,
    measure_piece,
    open_piece,
)
from reassure_pipeline.archives.beginnings import Base, find_open, find_restart, load_base
from reassure_pipeline.audit.archive_report import (
    ArchiveReport,
    find_gaps_amid,
    join_facts,
    report_files,
)
from reassure_pipeline.audit.audit_report import AuditReport, report_audit
from reassure_pipeline.audit.jobs import (
    NO_BUDGET,
    AuditBudget,
    Progress,
    SharedLimits,
    choose_jobs,
    rare_collections,
    start_processes,
)
from reassure_pipeline.audit.observed import judge_observations, list_unjudged, sort_paths
from reassure_pipeline.audit.passes import (
    Judged,
    KnownHistory,
    Options,
    Passes,
    Share,
    settle_chapters,
)
from reassure_pipeline.checkpoints.audits import (
    Keeper,
    KeptPlan,
    Mark,
    Planned,
    Say,
    mark_piece,
    read_plan,
    say_nothing,
    write_plan,
)
from reassure_pipeline.checkpoints.kept_files import own_directory
from reassure_spec.readings import Readings
from reassure_zookeeper.ensemble import Hole, Piece
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.txnlog import is_next


def audit_local(
    paths: Sequence[Path],
    profile: str,
    readings: Readings,
    *,
    at_rest: bool = False,
    min_insync_replicas: int = 1,
    grace_ms: int = GRACE_MS,
    jobs: int | None = 1,
    facts: bool = False,
    members: str = RECOGNISED,
    since: Since | None = None,
    budget: AuditBudget = NO_BUDGET,
    resume: Path | None = None,
    say: Say = say_nothing,
    progress: Progress | None = None,
) -> AuditReport:
    """Judge the logs that `paths` name, in this process and in `jobs` - 1 more.

    Where `jobs` is None these are as many as are worth it (`choose_jobs`), or as were taken before.

    A path is a data directory, its `version-2`, or a log file (`archives.archive`). With
    `at_rest` the end of each history counts as a rest: what a controller owes by then is judged
    too. `grace_ms` is how long a change may be news (`reassure_judge.doubt`).
    `min_insync_replicas` is what the brokers' own files say, which are not in ZooKeeper.
    `members` says which paths are members of one ensemble (`archive.MEMBERSHIPS`), `since` from
    when on is judged. The audit ends in good order when its `budget` is spent, and goes on from
    what is kept in the folder `resume` (`checkpoints.audits`), or anew, and `say` is told
    why.
    Raises `LogsMissing` where there is no transaction, `DamagedLog` where nothing of an archive can
    be read, `DamagedSnapshot`, `ReplayError` for a snapshot that the logs do not fit, and
    `KeptElsewhere`.
    """
    rules = make_rules(profile, readings)
    options = Options(at_rest, min_insync_replicas, grace_ms, facts)
    with ExitStack() as stack:
        if resume is not None:
            stack.enter_context(own_directory(resume))
        plan = read_plan(resume) if resume is not None else None
        if plan is not None and jobs not in (None, plan.shares):
            say(f"all is judged again: the checkpoint is of {plan.shares} processes, not of {jobs}")
        jobs = jobs or (plan.shares if plan is not None else choose_jobs(paths))

        def work(archives: Sequence[Archive]) -> AuditReport:
            keepers: list[Keeper | None] = [None] * jobs
            if resume is not None:
                surveyed = any(a.damages or (a.surveyed and not a.members) for a in archives)
                write_plan(resume, KeptPlan(jobs, surveyed))
                identity = {"profile": profile, "readings": readings.as_dict(), **options._asdict()}
                keepers = [Keeper(resume, identity, Share(n, jobs), say) for n in range(jobs)]
            shares = [
                _ShareAudit(archives, rules, Share(number, jobs), keeper, options)
                for number, keeper in enumerate(keepers)
            ]
            if budget != NO_BUDGET:
                limits = SharedLimits(budget, [share.count_done() for share in shares])
                for share in shares:
                    share.limits = limits
            return _judge_in_shares(shares, profile, progress)

        is_damaged = plan is not None and plan.damaged
        return contain(paths, work, members, since, damaged=is_damaged)


def _judge_in_shares(
    shares: "Sequence[_ShareAudit]", profile: str, progress: Progress | None
) -> AuditReport:
    """Judge the first share here and each of the others in a process; report the sums of all.

    Every process reads all there is, so what cannot be read is met, and raised, here as well.
    """
    first, *others = shares
    beside = start_processes(len(others), _take_share, others) if others else nullcontext()
    with rare_collections(), beside as pool:
        numbers = range(len(others))
        waiting = [] if pool is None else [pool.submit(_sum_up_share, each) for each in numbers]
        audits = first.judge(progress)
        sums = [audit.sum_up() for audit in audits]
        for each in waiting:
            for (known, judged), (other, part) in zip(sums, each.result(), strict=True):
                known.add(other)
                judged.add(part)
    tally = Tally()
    for _, judged in sums:
        tally.add(judged.tally)
    reports = [audit.report(*total) for audit, total in zip(audits, sums, strict=True)]
    return report_audit(profile, tally, reports)


_shares: "list[_ShareAudit]" = []
"""Those that the processes of this audit judge."""


def _take_share(shares: "Sequence[_ShareAudit]") -> None:
    _shares[:] = shares


def _sum_up_share(number: int) -> list[tuple[KnownHistory, Judged]]:
    return [audit.sum_up() for audit in _shares[number].judge()]


class _ShareAudit:
    """All archives on their way, as far as one share goes."""

    def __init__(
        self,
        archives: Sequence[Archive],
        rules: Rules[Any, Any],
        share: Share,
        keeper: Keeper | None,
        options: Options,
    ) -> None:
        self._archives = archives
        self._rules = rules
        self._share = share
        self._keeper = keeper
        self._options = options
        self.limits: SharedLimits | None = None

    def count_done(self) -> int:
        """Return how many transactions were judged before."""
        keeper = self._keeper
        return 0 if keeper is None else sum(map(keeper.count_done, self._archives))

    def judge(self, progress: Progress | None = None) -> "list[_LocalAudit]":
        """Judge every archive to its end, or as far as the limits allow."""
        total = sum(measure_piece(piece) for archive in self._archives for piece in archive.pieces)
        audits = [self._begin(archive) for archive in self._archives]
        done = [audit.done for audit in audits]
        before = 0
        for number, (archive, audit) in enumerate(zip(self._archives, audits, strict=True)):

            def grant(wanted: int, number: int = number) -> int:
                if self.limits is None:
                    return wanted
                granted = self.limits.grant(self._share.number, sum(done), wanted)
                done[number] += granted
                return granted

            def pause(
                piece: Piece, read: int, audit: "_LocalAudit" = audit, before: int = before
            ) -> None:
                if progress is not None:
                    progress(f"judging {piece.path.name}, MiB", before + read >> 20, total >> 20)
                if self._keeper is not None and self._keeper.is_due():
                    audit.keep(self._keeper)

            audit.read(grant, pause)
            before += sum(map(measure_piece, archive.pieces))
            if self._keeper is not None:
                audit.keep(self._keeper)
            audit.finish()
        return audits

    def _begin(self, archive: Archive) -> "_LocalAudit":
        kept = None if self._keeper is None else self._keeper.load(archive)
        if kept is None:
            base = load_base(archive)
            passes = Passes(archive, base, self._rules, self._options, self._share)
            return _LocalAudit(archive, base, passes)
        assert isinstance(kept, _LocalAudit)
        kept.archive = archive
        return kept


def audit_paths(
    paths: Sequence[Path],
    profile: str,
    readings: Readings,
    master: str | None = None,
    *,
    jobs: int | None = None,
    parquet: Path | None = None,
    **options: Any,
) -> AuditReport:
    """Judge transaction logs, on Spark where a `master` is given, and observations among them.

    Spark leaves what its stages came to in the folder `parquet`, where one is given. Without Spark
    it takes `jobs` processes, or as many as are worth it (`choose_jobs`). The other options are
    those that both engines have, as `audit_local` tells them; on Spark a budget is of seconds.

    A profile that is judged by observations alone takes of the logs what was stored.
    """
    sorted_paths = sort_paths(paths)
    observed, tally = None, Tally()
    if sorted_paths.files:
        is_over = options.get("at_rest", False)
        members = options.get("members", RECOGNISED)
        with rare_collections():
            observed, tally = judge_observations(
                sorted_paths, readings, is_over=is_over, members=members
            )
    if get_rules(profile).reads == OBSERVATIONS:
        report = report_audit(profile, Tally(), ())
    elif master is None:
        report = audit_local(sorted_paths.logs, profile, readings, jobs=jobs, **options)
    else:
        from reassure_pipeline.spark.spark_audit import audit_spark

        logs = sorted_paths.logs
        report = audit_spark(logs, profile, readings, master, parquet=parquet, **options)
    given = observed is not None
    unjudged = list_unjudged(profile, readings, tally.exercised, given=given)
    return report.observing(observed, tally, unjudged)


class _LocalAudit:
    """One archive on its way through both passes; it can be put aside between two batches."""

    def __init__(self, archive: Archive, base: Base | None, passes: Passes) -> None:
        self.archive = archive
        self._base_holes = () if base is None else base.holes
        self._after = (archive.since or 0) - 1 if base is None else base.zxid
        """The last zxid that is in the base, or was judged."""
        self._passes = passes
        self._met: frozenset[Hole] = frozenset()
        """The holes that were come to so far."""
        self._plans: list[Planned] = []
        self.done = 0
        """How many transactions were judged."""
        self._files: list[FileFacts] = []
        """Of the pieces that were begun."""
        self._marks: list[Mark] = []
        """Of those that were read, the last one not included."""
        self._offset = 0
        """The byte of the last piece behind the last batch that was judged whole; 0 for none."""
        self._stopped = False

    def __getstate__(self) -> dict[str, Any]:
        """Return what is put aside: the archive is looked for anew."""
        return {name: value for name, value in self.__dict__.items() if name != "archive"}

    def read(self, grant: Callable[[int], int], pause: Callable[[Piece, int], None]) -> None:
        """Judge on from where it was, for as many transactions as are granted.

        `pause` is called between two batches, with the piece and how much of it was read.
        """
        pieces, self._stopped = self.archive.pieces, False
        for number in range(max(0, len(self._files) - 1), len(pieces)):
            if number == len(self._files):
                if number:
                    self._marks.append(mark_piece(pieces[number - 1], self._offset))
                self._files.append(FileFacts(pieces[number].path))
                self._offset = 0
            self._read_piece(pieces[number], grant, pause)
            if self._stopped:
                return

    def _read_piece(
        self, piece: Piece, grant: Callable[[int], int], pause: Callable[[Piece, int], None]
    ) -> None:
        facts = self._files[-1]
        file = open_piece(piece)
        file.decode = self._passes.make_decoder()
        if self._offset:
            file.offset, file.last_zxid = self._offset, facts.last_zxid
        for batch in file.batches():
            if self._begins_anew(piece, batch[0].zxid):
                self._read_piece(piece, grant, pause)
                return
            if batch[0].zxid <= self._after:
                batch = [each for each in batch if each.zxid > self._after]
            granted = grant(len(batch))
            if batch[:granted]:
                self._judge(batch[:granted])
            if granted < len(batch):
                self._stopped = True
                return
            self._offset, facts.last_zxid = file.offset, file.last_zxid
            pause(piece, file.offset - piece.start)
        self._offset, facts.tail = file.offset, file.tail

    def _begins_anew(self, piece: Piece, zxid: int) -> bool:
        """See how a batch goes on from the last; answer whether judging begins anew behind it."""
        facts = self._files[-1]
        if not self._offset:
            facts.first_zxid = zxid
            return self._meet_holes(zxid, check_joint(self._find_before(), piece.path, zxid))
        if is_next(facts.last_zxid, zxid):
            return False
        hole = Hole(facts.last_zxid, zxid)
        if hole not in facts.holes:  # judging may have begun anew behind it
            facts.holes += (hole,)
        return self._meet_holes(zxid, hole)

    def _meet_holes(self, first: int, joint: Hole | None) -> bool:
        """Take note of the holes up to here; answer whether judging begins anew behind them."""
        met = {*self._met, *self._base_holes, *(() if joint is None else (joint,))}
        met |= {hole for hole in self.archive.holes if 0 <= hole.before <= first}
        if met == self._met:
            return False
        self._met = frozenset(met)
        missing = find_open(sorted(met), self._passes.snapshot)
        if not missing:
            return False
        restart = find_restart(self.archive, missing, self._after)
        self._plans.append(Planned(missing, None if restart is None else restart.snapshot))
        if restart is not None:
            self._passes.coming.append(restart)
        return restart is not None

    def _find_before(self) -> FileFacts | None:
        before: FileFacts | None = None
        for facts in self._files[:-1]:
            before = join_facts(before, facts)
        return before

    def _judge(self, batch: list[Transaction]) -> None:
        for part in self._passes.cut(batch, attrgetter("zxid")):
            feed, observe = self._passes.routing.get_feed(), self._passes.judging.observe
            for transaction in part:
                for seen in feed(transaction):
                    observe(seen)
        facts, self._after = self._files[-1], batch[-1].zxid
        self.done += len(batch)
        facts.judged += len(batch)
        first_ms = batch[0].time_ms if facts.times_ms is None else facts.times_ms[0]
        facts.times_ms = first_ms, batch[-1].time_ms

    def keep(self, keeper: Keeper) -> None:
        """Put aside what was judged so far."""
        piece = self.archive.pieces[len(self._files) - 1]
        marks = [*self._marks, mark_piece(piece, self._offset)]
        keeper.save(self.archive, marks, self._plans, self.done, self)

    def finish(self) -> None:
        """Judge what must be true at the end, if it was come to."""
        times_ms = find_times(self._files)
        if self._stopped:
            self._passes.judging.end(times_ms)
        else:
            self._passes.finish(times_ms)

    def sum_up(self) -> tuple[KnownHistory, Judged]:
        """Return what is known, and what judging this share came to, its findings told apart."""
        chapters = self._passes.list_chapters()
        known = KnownHistory.join([known for _, known, _ in chapters])
        holes = find_gaps_amid(self.archive, self._files, self._base_holes)
        return known, settle_chapters(chapters, holes, self._passes.count_partitions())

    def report(self, known: KnownHistory, judged: Judged) -> ArchiveReport:
        """Report what judging the archive came to, all shares together."""
        judged_to, beginnings = self._after if self._stopped else None, self._passes.beginnings
        found = self.archive, self._files, known, judged, beginnings
        return report_files(*found, self._base_holes, judged_to)
