"""Judge transaction logs, whatever clusters left them, and wherever it is done.

An audit is a list of tasks (`audit.archive_tasks`): one for each archive, so that archives share
nothing, and nothing has to be brought together. Only an archive that is large beside all there is
to do is cut, by topic, into a task for each share. Where tasks are done is the whole difference
between this process, several, and Spark (`audit.jobs.Placement`): all come to the same report, byte
for byte.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from time import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from reassure_judge.doubt import GRACE_MS
from reassure_judge.protocols import NoRules, find_protocols, get_observing, get_rules, make_rules
from reassure_judge.recognise import Recognised
from reassure_judge.rules import OBSERVATIONS
from reassure_judge.verdicts import Tally
from reassure_pipeline.archives.archive import APART, ONE, RECOGNISED, Since
from reassure_pipeline.archives.remote_logs import find_uri, list_logs
from reassure_pipeline.archives.servers import find_families, find_servers, group_by_server
from reassure_pipeline.audit.archive_report import ArchiveReport
from reassure_pipeline.audit.archive_tasks import (
    UNFIT,
    ArchiveOutcome,
    ArchiveTask,
    Asked,
    Chosen,
    NotJudged,
    TaskResult,
    choose_protocols,
    judge_task,
)
from reassure_pipeline.audit.audit_report import AuditReport, join_reports, report_audit
from reassure_pipeline.audit.jobs import (
    NO_BUDGET,
    AuditBudget,
    Limits,
    Placement,
    Processes,
    Progress,
    choose_jobs,
    rare_collections,
)
from reassure_pipeline.audit.observed import Paths, judge_observations, list_unjudged, sort_paths
from reassure_pipeline.audit.passes import Options
from reassure_pipeline.checkpoints.audits import Say, read_plan, say_nothing
from reassure_pipeline.checkpoints.kept_files import own_directory
from reassure_spec.readings import Readings
from reassure_spec.rooms import choose_readings, judge_of

if TYPE_CHECKING:
    from reassure_pipeline.tables.fleet_tables import FleetTables

T = TypeVar("T")
R = TypeVar("R")

CHECKPOINTS: Final = "checkpoints"
"""The folder beside tables in which judging is put aside: the next audit judges what is new."""

Take = Callable[[ArchiveOutcome, ArchiveReport], None]
"""Given what each archive came to, as soon as that is known."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """What an audit came to, of all that was named."""

    report: AuditReport | None
    """None where nothing could be judged."""
    not_judged: tuple[NotJudged, ...] = ()
    chosen: tuple[Chosen, ...] = ()
    """By what each archive was judged."""

    @property
    def profile(self) -> str | None:
        """The profile by which all were judged; None for several."""
        profiles = {each.profile for each in self.chosen}
        return next(iter(profiles)) if len(profiles) == 1 else None

    @property
    def readings(self) -> dict[str, str]:
        """The readings by which all were judged."""
        first, *others = (each.readings.as_dict().items() for each in self.chosen)
        return {name: value for name, value in first if all((name, value) in o for o in others)}

    @property
    def recognised(self) -> Recognised | None:
        """What the logs told of the profile that all are of, with what all settle alike."""
        found = [each.recognised for each in self.chosen if each.recognised is not None]
        if self.profile is None or not found:
            return None
        first, *others = (each.readings.items() for each in found)
        common = {name: value for name, value in first if all((name, value) in o for o in others)}
        return Recognised(found[0].profile, found[0].why, common)

    def get_report(self) -> AuditReport:
        """Return the report. Raises what the first path ended with that was not judged."""
        for each in self.not_judged:
            raise each.error
        assert self.report is not None, "something is judged, or there is a reason"
        return self.report


def audit_named(
    paths: Sequence[Path],
    profile: str,
    readings: Readings,
    *,
    master: str | None = None,
    jobs: int | None = 1,
    progress: Progress | None = None,
    resume: Path | None = None,
    **options: Any,
) -> AuditReport:
    """Judge logs by a profile that is named, on Spark where a `master` is given.

    A path is a data directory, its `version-2`, or a log file (`archives.archive`). The options are
    those of `judge_logs`. Raises NoRules, and what any of the logs ends with: `LogsMissing` where
    there is no transaction, `DamagedLog` where nothing of an archive can be read,
    `DamagedSnapshot`, `ReplayError` for a snapshot that the logs do not fit, `KeptElsewhere`, and
    with Spark `SparkUnavailable` and `JavaError`.
    """
    make_rules(profile, readings)
    options |= {"chosen": (Chosen(profile, readings),), "resume": resume, "recut": jobs is not None}
    with place_work(paths, master, jobs, progress, resume) as place:
        return judge_logs(paths, place, profile, **options).get_report()


@contextmanager
def place_work(
    paths: Sequence[Path],
    master: str | None,
    jobs: int | None,
    progress: Progress | None,
    resume: Path | None = None,
) -> Iterator[Placement]:
    """Say where work on these logs is done: on Spark, or in `jobs` processes, None for all.

    The folder `resume` is nobody else's meanwhile. Raises KeptElsewhere, and what `open_spark`
    raises.
    """
    with nullcontext() if resume is None else own_directory(resume):
        if master is None:
            yield Processes(jobs or choose_jobs(sum(map(_measure, paths))), progress)
            return
        from reassure_pipeline.spark.placement import open_placement

        with open_placement(master, progress) as place:
            yield place


def audit_paths(
    paths: Sequence[Path],
    profile: str,
    readings: Mapping[str, str],
    master: str | None = None,
    *,
    jobs: int | None = None,
    recognise: bool = False,
    members: str = RECOGNISED,
    progress: Progress | None = None,
    resume: Path | None = None,
    tables: "FleetTables | None" = None,
    **options: Any,
) -> Fleet:
    """Judge transaction logs, on Spark where a `master` is given, and observations among them.

    Whatever some paths lead to, the others are judged. With `recognise` each log says by which
    profile and readings, and `profile` is for those that tell of none. Without Spark it takes
    `jobs` processes, or as many as are worth it. What archives came to is appended to the `tables`,
    whose errors are raised. The other options are those of `judge_logs`, and
    so are the errors; bad observations are an error of the whole.

    A profile that is judged by observations alone takes of the logs what was stored.
    """
    fit, unfit = _try_each(paths, lambda path: sort_paths([path]))
    found = sort_paths([path for path, _ in fit])
    recognised = None
    if recognise and found.files and not found.logs:
        (profile, *_) = get_observing().profiles
        recognised = Recognised(profile, "there are observations, and no transaction logs", {})
    rules, settled = get_rules(profile), choose_readings(judge_of(profile), profile, readings)
    named = Chosen(profile, settled, recognised, options.get("chroots"))
    fleet = Fleet(None, tuple(NotJudged(*each) for each in unfit))
    if resume is None and tables is not None:
        resume = tables.folder / CHECKPOINTS
    if found.logs and rules.reads != OBSERVATIONS:
        given = {**options, "members": members, "resume": resume, "recut": jobs is not None}
        given |= {"changes": readings} if recognise else {"chosen": (named,)}
        given |= {"take": None if tables is None else tables.take}
        with place_work(found.logs, master, jobs, progress, resume) as place:
            judged = judge_logs(found.logs, place, profile, **given)
        fleet = replace(judged, not_judged=(*fleet.not_judged, *judged.not_judged))
    if tables is not None:
        for each in fleet.not_judged:
            tables.leave_out(each)
        tables.flush()
    gone = {each.path.absolute() for each in fleet.not_judged}
    logs = tuple(path for path in found.logs if path.absolute() not in gone)
    if fleet.report is None:
        if gone and not found.files and not logs:
            return fleet
        fleet = replace(fleet, report=report_audit(profile, Tally(), ()), chosen=(named,))
    is_over = bool(options.get("at_rest"))
    return _observe(fleet, replace(found, logs=logs), is_over=is_over, members=members)


def _observe(fleet: Fleet, found: Paths, *, is_over: bool, members: str) -> Fleet:
    """Return what an audit came to with what observations did beside the logs."""
    assert fleet.report is not None
    (first, *_), observed, tally = fleet.chosen, None, Tally()
    if found.files:
        with rare_collections():
            observed, tally = judge_observations(
                found, first.readings, is_over=is_over, members=members
            )
    is_given = observed is not None
    unjudged = list_unjudged(first.profile, first.readings, tally.exercised, given=is_given)
    return replace(fleet, report=fleet.report.observing(observed, tally, unjudged))


def judge_logs(
    paths: Sequence[Path],
    place: Placement,
    profile: str,
    *,
    chosen: tuple[Chosen, ...] = (),
    changes: Mapping[str, str] = MappingProxyType({}),
    at_rest: bool = False,
    min_insync_replicas: int = 1,
    grace_ms: int = GRACE_MS,
    facts: bool = False,
    members: str = RECOGNISED,
    since: Since | None = None,
    chroots: tuple[str, ...] | None = None,
    budget: AuditBudget = NO_BUDGET,
    resume: Path | None = None,
    recut: bool = False,
    say: Say = say_nothing,
    take: Take | None = None,
) -> Fleet:
    """Judge all that these logs hold, each archive by itself, and put together what that comes to.

    Archives are judged by what is `chosen`; where that is nothing each says what it is of, with the
    readings in `changes` settled as they are there, and `profile` is for those that do not. With
    `at_rest` the end of each history counts as a rest: what a controller owes by then is judged
    too. `grace_ms` is how long a change may be news (`reassure_judge.doubt`).
    `min_insync_replicas` is what the brokers' own files say, which are not in ZooKeeper. `members`
    says which paths are members of one ensemble (`archive.MEMBERSHIPS`), `since` from when on is
    judged, `chroots` which clusters are (None: all). The audit ends in good order when its `budget`
    is spent, and goes on from what is kept in the folder `resume` (`checkpoints.audits`), or anew,
    and `say` is told why; with `recut` anew where shares are others as well. `take` is given each
    archive with all its findings.

    Raises KeptElsewhere, and what is wrong with readings.
    """
    options = Options(at_rest, min_insync_replicas, grace_ms, facts)
    rows = take is not None
    asked = Asked(profile, dict(changes), options, members, since, chroots, resume, rows=rows)
    if place.is_elsewhere:
        paths = [path if find_uri(path) else path.absolute() for path in paths]
    groups, unfit = _group(paths, members)
    tasks = []
    for task in _cut(groups, asked, place, budget, recut=recut, say=say):
        found = _try_each([task], lambda task: _choose(task, chosen, place))
        tasks += [task for _, (task, _) in found[0]]
        unfit += [each for _, (_, more) in found[0] for each in more]
        unfit += [NotJudged(path, error) for task, error in found[1] for path in task.paths]
    judged: dict[int, list[tuple[ArchiveOutcome, ArchiveReport]]] = {}
    for number, results in _run_within(budget, tasks, place):
        for line in (line for result in results for line in result.said):
            say(line)
        told, more = _add_up(results, tasks[number].paths, named=bool(chosen))
        unfit += more
        for outcome, report in told if take is not None else ():
            take(outcome, report)  # type: ignore[misc]
        judged[number] = [(each._replace(found=(), moves=()), report) for each, report in told]
    order = {path: number for number, path in enumerate(paths)}
    unfit.sort(key=lambda each: order[each.path])
    return _put_together([each for n in sorted(judged) for each in judged[n]], unfit)


def _choose(
    task: ArchiveTask, chosen: tuple[Chosen, ...], place: Placement
) -> tuple[ArchiveTask, list[NotJudged]]:
    """Return a task with what it is judged by, where somebody said so or it is cut."""
    if chosen or task.of == 1:
        return task._replace(chosen=chosen), []
    found, unfit = choose_protocols(task.paths, task.asked, place.workers, place.progress)
    return task._replace(chosen=found), unfit


def _try_each(
    paths: Iterable[T], work: Callable[[T], R]
) -> tuple[list[tuple[T, R]], list[tuple[T, Exception]]]:
    """Return what came of each path, and of the others why nothing did."""
    done, failed = list[tuple[T, R]](), list[tuple[T, Exception]]()
    for path in paths:
        try:
            done.append((path, work(path)))
        except UNFIT as error:
            failed.append((path, error))
    return done, failed


def _group(paths: Sequence[Path], members: str) -> tuple[list[tuple[Path, ...]], list[NotJudged]]:
    """Return the paths by the archive that they lead to, and those that lead to none."""
    by_server = [tuple(named) for named in group_by_server(paths).values()]
    if members == ONE:
        return [tuple(paths)], []
    if members == APART or len(by_server) == 1:
        return by_server, []
    done, failed = _try_each(by_server, lambda named: find_servers(named)[0])
    named_by = {server: named for named, server in done}
    families, more = find_families([*named_by])
    unfit = [NotJudged(path, error) for named, error in failed for path in named]
    unfit += [NotJudged(path, error) for server, error in more for path in named_by[server]]
    return [tuple(path for server in each for path in named_by[server]) for each in families], unfit


def _measure(path: Path) -> int:
    """Return how many bytes of logs a path leads to; 0 where that cannot be seen."""
    try:
        return sum(file.stat().st_size for file in list_logs(path))
    except UNFIT:
        return 0


def _cut(
    groups: Sequence[tuple[Path, ...]],
    asked: Asked,
    place: Placement,
    budget: AuditBudget,
    *,
    recut: bool,
    say: Say,
) -> Iterator[ArchiveTask]:
    """Yield the first task of each archive, with into how many it is cut.

    That is as many as the archive is of all there is to do, or as were kept; one where a budget may
    end each of them somewhere else.
    """
    sizes = [sum(map(_measure, group)) for group in groups]
    for group, size in zip(groups, sizes, strict=True):
        of = max(1, round(size * place.workers / max(1, sum(sizes))))
        of = of if budget == NO_BUDGET else 1
        plan = None if asked.resume is None else read_plan(asked.resume, group)
        if plan is not None and plan.shares != of:
            if recut or budget != NO_BUDGET:
                say(
                    f"all is judged again: the checkpoint is of {plan.shares} processes, "
                    f"not of {of}"
                )
            else:
                of = plan.shares
        yield ArchiveTask(group, asked, of=of)


def _run_within(
    budget: AuditBudget, tasks: Sequence[ArchiveTask], place: Placement
) -> Iterator[tuple[int, list[TaskResult]]]:
    """Yield number and results of each archive; where transactions count, one after another."""
    if budget.transactions is None:
        until = None if budget.seconds is None else time() + budget.seconds
        yield from _run([task._replace(limits=Limits(until=until)) for task in tasks], place)
        return
    left = budget.transactions
    for number, task in enumerate(tasks):
        for _, results in _run([task._replace(limits=Limits(left))], place):
            left -= max((each.total.fresh for each in results[0].outcomes), default=0)
            yield number, results


def _run(tasks: Sequence[ArchiveTask], place: Placement) -> Iterator[tuple[int, list[TaskResult]]]:
    """Yield number and results of each archive, share by share, as soon as the last has come.

    Where a share has met damage all of that archive are judged once more, around it.
    """
    left = sorted(enumerate(tasks), key=lambda each: -each[1].of)
    while left:
        shares = [(n, task._replace(share=share)) for n, task in left for share in range(task.of)]
        came: dict[int, dict[int, TaskResult]] = {number: {} for number, _ in left}
        again = []
        for at, result in place.run(judge_task, [task for _, task in shares]):
            number, task = shares[at]
            came[number][task.share] = result
            if len(came[number]) == task.of:
                results = came.pop(number)
                if any(each.damaged for each in results.values()):
                    again.append((number, task._replace(damaged=True)))
                else:
                    yield number, [results[share] for share in range(task.of)]
        left = again


def _add_up(
    results: Sequence[TaskResult], paths: Sequence[Path], *, named: bool
) -> tuple[list[tuple[ArchiveOutcome, ArchiveReport]], list[NotJudged]]:
    """Return what all shares of an archive came to together, and what of it is not judged.

    Where nobody named a profile, and it told of none, it may be one without rules.
    """
    for result in results:
        if result.not_judged and not result.outcomes:
            return [], result.not_judged
    by_archive = zip(*(result.outcomes for result in results), strict=True)
    outcomes = [reduce(ArchiveOutcome.add, each) for each in by_archive]
    told = [(outcome, outcome.report()) for outcome in outcomes]
    try:
        for outcome, report in told:
            if not named and outcome.chosen.recognised is None:
                refuse_foreign(report, outcome.chosen.profile)
    except NoRules as error:
        return [], [NotJudged(path, error) for path in paths]
    return told, results[0].not_judged


def refuse_foreign(report: ArchiveReport, profile: str) -> None:
    """Raise NoRules for logs of which nobody named a profile, and that are of none with rules."""
    for foreign in report.find_foreign():
        raise NoRules(
            f"{foreign}. The judge has rules for {' and '.join(find_protocols())} only; to judge "
            f"the logs by {profile} anyway, add --profile {profile}"
        )


def _put_together(
    judged: Sequence[tuple[ArchiveOutcome, ArchiveReport]], unfit: Iterable[NotJudged]
) -> Fleet:
    by_profile: dict[str, tuple[Tally, list[ArchiveReport]]] = {}
    for outcome, report in judged:
        tally, reports = by_profile.setdefault(outcome.chosen.profile, (Tally(), []))
        tally.add(outcome.total.judged.tally)
        reports.append(report)
    if not judged:
        return Fleet(None, tuple(unfit))
    each = [report_audit(profile, *told) for profile, told in by_profile.items()]
    joined = join_reports(each, [report for _, report in judged])
    return Fleet(joined, tuple(unfit), tuple(outcome.chosen for outcome, _ in judged))
