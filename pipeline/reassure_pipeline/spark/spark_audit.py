"""The same audit on Spark: parts of files read side by side, topics judged side by side.

**What is whose.** Of all that the judge remembers, registrations, terms, defaults, requests and
signs of a cluster are the cluster's; everything else is a topic's: its assignment and settings, the
states of its partitions, their records (`Router.apart`). So a history is cut by topic:

1. **Address.** Each part of a log file (`spark.log_parts`) is read and checked, what
   concerns no rule is left out, and of each other record it is found whom it is addressed to: one
   share of the topics, a few, or everybody (`spark.addressing`). Some hundred records
   that go to one share are one *block*. What the part was worth comes last.
2. **Route.** Spark brings the blocks of each share together, and they are sorted, on disk where
   there are many, so that memory does not grow with a history, nor with one busy partition. A block
   is bytes to Spark: neither Java nor Arrow sees a record.
3. **Judge.** Each share runs through its records once, and does what the local engine's processes
   do for theirs (`audit.passes`).

The order inside a topic is all that matters to a verdict, and shares add up, so the report is the
local engine's, byte for byte. Of the history sums, findings, and what each part was worth come to
the driver. Where a protocol keeps a book over all partitions every share routes everything.

**Why blocks.** With a row for each record, in Arrow and sorted by Java, more was spent on rows than
on judging; and Spark's SQL takes longer to start than plain tasks over bytes take to run.
"""

import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain, groupby
from math import inf
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from reassure_judge.doubt import GRACE_MS
from reassure_judge.protocols import make_rules
from reassure_judge.rules import Rules
from reassure_judge.verdicts import Tally
from reassure_pipeline.archives.archive import (
    RECOGNISED,
    Archive,
    Since,
    contain,
    find_archives,
    measure_piece,
)
from reassure_pipeline.archives.beginnings import Base, Restart, load_base
from reassure_pipeline.audit.archive_report import find_known_gaps, report_files
from reassure_pipeline.audit.audit_report import AuditReport, report_audit
from reassure_pipeline.audit.jobs import NO_BUDGET, AuditBudget, Progress
from reassure_pipeline.audit.passes import Judged, KnownHistory, Options
from reassure_pipeline.checkpoints.audits import Say, say_nothing
from reassure_pipeline.checkpoints.kept_files import own_directory
from reassure_pipeline.checkpoints.shares import Kept, KeptShares
from reassure_pipeline.spark.addressing import Asked, is_growing, list_asked
from reassure_pipeline.spark.gateway import open_spark
from reassure_pipeline.spark.spark_tasks import (
    Block,
    Outcome,
    PartResult,
    PartTask,
    Place,
    SparkPlan,
    Told,
    UnreadPart,
    by_piece,
    collect_facts,
    judge_share,
    read_part,
)
from reassure_pipeline.spark.tables import write_tables
from reassure_spec.readings import Readings
from reassure_zookeeper.errors import DamagedLog
from reassure_zookeeper.jute import Malformed

_PART_SIZES: Final = (4 << 20, 32 << 20)
"""Bytes of the smallest and the largest part: a task takes some hundredths of a second by itself,
and a part has to fit into memory."""
_PARTS_PER_SHARE: Final = 4


class Misfits(Exception):
    """What was taken for granted when the work was cut, and is not so: it has to be cut anew."""

    def __init__(self, places: Set[Place] = frozenset(), *, requests: bool = False) -> None:
        super().__init__(f"{len(places)} pieces have to be read as a whole")
        self.places = places
        """Pieces whose parts do not fit together: read as a whole they tell why."""
        self.requests = requests
        """Whether a request came under a number that was used before."""


def audit_spark(
    paths: Sequence[Path],
    profile: str,
    readings: Readings,
    master: str = "local[2]",
    *,
    at_rest: bool = False,
    min_insync_replicas: int = 1,
    grace_ms: int = GRACE_MS,
    facts: bool = False,
    members: str = RECOGNISED,
    since: Since | None = None,
    progress: Progress | None = None,
    parquet: Path | None = None,
    budget: AuditBudget = NO_BUDGET,
    resume: Path | None = None,
    say: Say = say_nothing,
) -> AuditReport:
    """Judge the logs that `paths` name on Spark; answers and raises what `audit_local` does.

    With `parquet` what each stage came to is written into that folder, to be queried
    (`spark.tables`). With `resume` what each share came to is kept in that folder, and
    those that are there are not judged again (`checkpoints.shares`): there are several
    for each core then, which are judged some at a time: when the seconds of a `budget` are over no
    more are begun, and the report is of those that were. A budget counts no transactions here.
    It is the tables or one of these two, for they take all shares.
    Besides raises `SparkUnavailable` and `JavaError`. Where `master` is not local, the paths must
    be readable on the workers.
    """
    rules = make_rules(profile, readings)
    options = Options(at_rest, min_insync_replicas, grace_ms, facts)
    in_turn = resume is not None or budget != NO_BUDGET
    assert parquet is None or not in_turn, "tables take all shares"
    assert budget.transactions is None, "topics are judged side by side"
    report = progress or _show_nothing
    ends = inf if budget.seconds is None else time.monotonic() + budget.seconds
    with ExitStack() as stack:
        kept: KeptShares | None = None
        if in_turn:
            place = resume or Path(stack.enter_context(TemporaryDirectory(prefix="reassure-")))
            identity = {"profile": profile, "readings": readings.as_dict(), "options": options}
            kept = KeptShares(stack.enter_context(own_directory(place)), identity, say)
        is_damaged = kept is not None and kept.is_damaged
        loaded = contain(paths, _load, members, since, damaged=is_damaged)
        report("starting Spark", 0, 2)
        context = stack.enter_context(open_spark(master))
        cores = max(1, context.defaultParallelism)
        shares = cores if kept is None else kept.choose_shares(cores)

        def judge(loaded: _Loaded) -> AuditReport:
            report("addressing and judging", 1, 2)
            plan = SparkPlan(rules, *loaded, shares, options)
            if kept is not None:
                return _judge_and_keep(context, plan, profile, kept, cores, ends, report)
            plan = plan._replace(tables=parquet is not None)
            result, outcomes = _judge_on(context, plan, profile, keep=parquet is not None)
            if parquet is not None:
                report("writing tables", 1, 2)
                write_tables(context, parquet, plan.archives, outcomes)
            return result

        try:
            return judge(loaded)
        except DamagedLog:
            if kept is not None:
                kept.note_damage()
            return judge(_load(find_archives(paths, members, since, damaged=True)))


_Loaded = tuple[tuple[Archive, ...], list[Base | None]]


def _load(archives: tuple[Archive, ...]) -> _Loaded:
    return archives, [load_base(archive) for archive in archives]


def _show_nothing(what: str, done: int, total: int) -> None:
    pass


def _judge_and_keep(
    context: Any,
    plan: SparkPlan,
    profile: str,
    kept: KeptShares,
    cores: int,
    ends: float,
    report: Progress,
) -> AuditReport:
    """Judge on Spark what was not judged before, some shares at a time, and keep each.

    No more are begun when it `ends`, by the clock that never goes back, but for the first ones:
    without these there is nothing to report.
    """
    judged = 0

    def judge(plan: SparkPlan, whole: Set[Place]) -> list[tuple[int, Outcome]]:
        nonlocal judged
        there = kept.load(plan.describe(whole), plan.shares)
        plan = plan._replace(done=frozenset(there))
        told = [*there.values()]
        left = [share for share in range(plan.shares) if share not in there]
        # What was addressed serves all of these jobs: Spark keeps what it has shuffled.
        outcomes = judge_all(context, plan, list_tasks(plan, whole)) if left else None
        sound = True
        for at in range(0, len(left), cores):
            if at and time.monotonic() >= ends:
                break
            report("judging, shares", len(told), plan.shares)
            some = left[at : at + cores]
            came = context.runJob(outcomes, _join, some)
            # What one of them could not be given in whole the others may not have been given.
            sound = sound and all(map(is_for_good, came))
            for share, outcome in zip(some, came, strict=True):
                if sound:
                    kept.keep(share, outcome)
            told += came
        judged = len(told)
        return [(index, pickle.loads(packed)) for each in told for index, packed in each]

    result = judge_until_it_fits(plan, profile, judge)
    kept.clear_others()
    return result if judged == plan.shares else replace(result, judged=(judged, plan.shares))


def _join(told: Iterable["Told"]) -> list[Kept]:
    """Return as one what a share has for the driver."""
    return [[(index, packed) for index, is_taken, packed in told if is_taken]]


def is_for_good(told: Kept) -> bool:
    """Whether a share came to what it would come to again: what failed may work the next time."""
    outcomes = [pickle.loads(packed)[1] for _, packed in told]
    errors = [
        each.error if isinstance(each, PartResult | UnreadPart) else each for each in outcomes
    ]
    return not any(isinstance(error, Exception) for error in errors)


def _judge_on(
    context: Any, plan: SparkPlan, profile: str, *, keep: bool
) -> tuple[AuditReport, Any]:
    """Judge all on Spark; return the report, and what all shares came to."""
    outcomes: Any = None

    def judge(plan: SparkPlan, whole: Set[Place]) -> list[tuple[int, Outcome]]:
        nonlocal outcomes
        if keep and outcomes is not None:
            outcomes.unpersist()
        outcomes = judge_all(context, plan, list_tasks(plan, whole))
        if keep:
            outcomes.persist()
        taken = outcomes.filter(itemgetter(1)).collect()
        return [(index, pickle.loads(packed)) for index, _, packed in taken]

    return judge_until_it_fits(plan, profile, judge), outcomes


def judge_until_it_fits(
    plan: SparkPlan,
    profile: str,
    judge: Callable[[SparkPlan, Set[Place]], Iterable[tuple[int, Outcome]]],
) -> AuditReport:
    """Judge all, and again with those pieces read as a whole that could not be cut.

    And again where holes were met that nobody knew of and behind which judging begins anew, and
    where numbers of requests come again. `judge` does it, given the pieces that are not cut.
    """
    whole: frozenset[Place] = frozenset()
    plan = plan.knowing(find_known_gaps(archive) for archive in plan.archives)
    while True:
        try:
            report = sum_up(profile, plan, judge(plan, whole))
            better = find_better_plan(plan, report)
            if better is None:
                return report
            plan = better
        except Misfits as misfits:
            whole |= misfits.places
            plan = plan._replace(requests_to_all=plan.requests_to_all or misfits.requests)


def find_better_plan(plan: SparkPlan, report: AuditReport) -> SparkPlan | None:
    """Return what to do instead, now that all holes are known; None where that is the same."""
    last = [archive.last_zxid for archive in report.archives]
    found = tuple(tuple(h for h in archive.holes if h.before >= 0) for archive in report.archives)
    better = plan if found == plan.holes else plan.knowing(found)
    # Where nothing comes behind a snapshot nothing begins there.
    restarts = tuple(
        tuple(each for each in restarts if each.base.zxid < zxid)
        for restarts, zxid in zip(better.restarts, last, strict=True)
    )
    if _list_names(restarts) == _list_names(plan.restarts):
        return None
    return better._replace(restarts=restarts)


def _list_names(restarts: Iterable[Iterable[Restart]]) -> list[list[Path]]:
    return [[each.snapshot for each in those] for those in restarts]


def judge_all(context: Any, plan: SparkPlan, tasks: Sequence[PartTask]) -> Any:
    """Return what each share came to, as an RDD of archives' numbers and pickled outcomes."""
    sent = context.broadcast(plan)

    def read(tasks: Iterable[PartTask]) -> Iterator[Block]:
        return chain.from_iterable(read_part(task, sent.value) for task in tasks)

    def judge(blocks: Iterable[Block]) -> Iterator[Told]:
        return judge_share(blocks, sent.value)

    # A survey leaves small pieces, of which a task reads several.
    size = sum(measure_piece(piece) for archive in plan.archives for piece in archive.pieces)
    slices = max(plan.shares * _PARTS_PER_SHARE, size // _PART_SIZES[0])
    blocks = context.parallelize(tasks, min(len(tasks), slices)).mapPartitions(read)
    routed = blocks.repartitionAndSortWithinPartitions(plan.shares, itemgetter(0))
    return routed.mapPartitions(judge)


# Address ------------------------------------------------------------------------------------------


def list_tasks(plan: SparkPlan, whole: Set[Place] = frozenset()) -> list[PartTask]:
    """Return what there is to read, in order; the pieces in `whole` are not cut."""
    pieces = {
        (index, number): (piece, measure_piece(piece))
        for index, archive in enumerate(plan.archives)
        for number, piece in enumerate(archive.pieces)
    }
    smallest, largest = _PART_SIZES
    part = sum(size for _, size in pieces.values()) // (plan.shares * _PARTS_PER_SHARE)
    part = min(max(part, smallest), largest)
    tasks = []
    for place, (piece, size) in pieces.items():
        base, since = plan.bases[place[0]], plan.archives[place[0]].since
        bases = plan.list_bases(place[0])
        is_whole = place in whole or piece.path.suffix in (".gz", ".zip")
        starts = range(piece.start, piece.start + (1 if is_whole else max(size, 1)), part)
        tasks += [
            PartTask(
                *place,
                number,
                piece.path.absolute(),
                at,
                piece.stop if at == starts[-1] else at + part,
                at == starts[0],
                at == starts[-1],
                is_whole,
                (since or 0) - 1 if base is None else base.zxid,
                tuple((each.zxid, each.news_ms + plan.options.grace_ms) for each in bases),
            )
            for number, at in enumerate(starts)
        ]
    return tasks


# Sum up -------------------------------------------------------------------------------------------


def sum_up(profile: str, plan: SparkPlan, outcomes: Iterable[tuple[int, Outcome]]) -> AuditReport:
    """Put together what all shares came to.

    Raises `Misfits` where parts do not fit together; what ended the reading of a file, the first in
    order; and then what ended the judging.
    """
    found = [(index, *outcome) for index, outcome in outcomes]
    results = [what for _, _, what in found if isinstance(what, PartResult)]
    malformed = any(isinstance(what, Malformed) for _, _, what in found)
    misfits = find_misfits(results, malformed=malformed)
    if misfits:
        raise Misfits(misfits)
    files = collect_facts(results, plan.archives)
    for _, _, what in found:
        if isinstance(what, Exception):
            raise what
        if isinstance(what, UnreadPart):
            raise what.error
    if not plan.requests_to_all and not are_requests_new(results, plan):
        raise Misfits(requests=True)
    tally, reports = Tally(), []
    for index, archive in enumerate(plan.archives):
        mine = sorted((each for each in found if each[0] == index), key=itemgetter(1))
        known, *others = [what for _, _, what in mine if isinstance(what, KnownHistory)]
        for other in others:
            known.add(other)
        judged = Judged()
        for _, _, what in mine:
            if isinstance(what, Judged):
                judged.add(what)
        tally.add(judged.tally)
        base = plan.bases[index]
        before = () if base is None else base.holes
        told = known, judged, plan.list_beginnings(index)
        reports.append(report_files(archive, files[index], *told, before))
    return report_audit(profile, tally, reports)


def find_misfits(results: Iterable[PartResult], *, malformed: bool) -> frozenset[Place]:
    """Return the pieces whose parts are not all there is of them, each record once.

    With `malformed` something makes no sense in a record of one that was not read as a whole:
    nobody knows of which.
    """
    misfits = set()
    for place, parts in by_piece(results).items():
        if parts[0].task.whole:
            continue
        expected, last_zxid = parts[0].begins, -1
        for part in parts:
            if not part.fits or malformed:
                misfits.add(place)
            if part.begins is not None:
                first_zxid = part.facts.first_zxid
                if part.begins != expected or -1 < first_zxid <= last_zxid:
                    misfits.add(place)
                expected, last_zxid = part.ends, max(last_zxid, part.facts.last_zxid)
            if part.error is not None:  # which is what reading in order would have come to
                break
        if expected is not None:
            misfits.add(place)
    return frozenset(misfits)


def are_requests_new(results: Iterable[PartResult], plan: SparkPlan) -> bool:
    """Whether no request came under a number that was used before, as their addressing takes it."""
    parts = groupby(sorted(results, key=itemgetter(0)), key=lambda part: part.task.archive)
    return all(
        is_growing(_list_asked_in_order(archived, plan.list_bases(archive), plan.rules))
        for archive, archived in parts
    )


def _list_asked_in_order(
    parts: Iterable[PartResult], bases: Iterable[Base], rules: Rules[Any, Any]
) -> Iterator[dict[str, Asked]]:
    """Yield which requests were there in each base, before what comes behind it, and in parts."""
    left = sorted(bases, key=lambda base: base.zxid)
    for part in parts:
        while left and left[0].zxid < part.facts.first_zxid:
            yield list_asked(rules, (path for path, *_ in left.pop(0).nodes))
        yield part.asked
