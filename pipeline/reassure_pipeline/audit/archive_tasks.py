"""One task of an audit: the archive that some paths lead to, or a share of its topics.

A task finds the archive, tells which protocol each cluster in it is of, judges it, and answers what
that came to. It needs nothing but the files and what stands in it, shares nothing with others, and
never ends them: what cannot be judged is told with its reason. Clusters of one archive that are of
several protocols are judged one protocol after the other.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from reassure_judge.protocols import NoRules, make_rules
from reassure_judge.recognise import Recognised
from reassure_judge.verdicts import Violation
from reassure_pipeline.archives.archive import (
    Archive,
    Since,
    contain,
    find_archives,
    measure_piece,
)
from reassure_pipeline.archives.remote_logs import find_uri
from reassure_pipeline.audit.archive_audit import ArchiveAudit, ShareSum
from reassure_pipeline.audit.archive_report import ArchiveReport
from reassure_pipeline.audit.jobs import Limits, Progress, rare_collections
from reassure_pipeline.audit.passes import Options, Share
from reassure_pipeline.audit.recogniser import recognise_clusters
from reassure_pipeline.checkpoints.audits import Keeper, KeptPlan, name_kept, read_plan, write_plan
from reassure_pipeline.checkpoints.kept_files import NotKept, keep, take_up
from reassure_pipeline.fleet.totals import MoveRecord
from reassure_spec.errors import BadData
from reassure_spec.readings import Readings
from reassure_spec.rooms import choose_readings, judge_of
from reassure_zookeeper.ensemble import Piece
from reassure_zookeeper.errors import DamagedLog

UNFIT = (BadData, NoRules, OSError)
"""What says of an archive that it cannot be judged, and of the others nothing."""


class Chosen(NamedTuple):
    """By what some clusters are judged."""

    profile: str
    readings: Readings
    recognised: Recognised | None = None
    """What the logs tell of that."""
    chroots: tuple[str, ...] | None = None
    """The clusters; None for all of an archive."""


class Asked(NamedTuple):
    """How archives are judged, all of them alike."""

    profile: str
    """By what those are judged that do not say what they are of."""
    readings: Mapping[str, str]
    """Those that somebody settled."""
    options: Options
    members: str
    since: Since | None = None
    chroots: tuple[str, ...] | None = None
    """The clusters that were named; None for all."""
    resume: Path | None = None
    """Where judging is put aside."""
    rows: bool = False
    """Whether every finding and every reassignment is answered, for the tables."""

    def choose(self, found: Recognised | None, chroots: tuple[str, ...] | None = None) -> Chosen:
        """Return by what clusters are judged that were recognised so."""
        profile = self.profile if found is None else found.profile
        changes = {**({} if found is None else found.readings), **self.readings}
        return Chosen(profile, choose_readings(judge_of(profile), profile, changes), found, chroots)


class ArchiveTask(NamedTuple):
    """What one task has to know."""

    paths: tuple[Path, ...]
    """They lead to one archive."""
    asked: Asked
    limits: Limits = Limits()
    share: int = 0
    of: int = 1
    """Into how many shares its topics are cut: a task for each."""
    chosen: tuple[Chosen, ...] = ()
    """By what it is judged; nothing where the task finds out."""
    damaged: bool = False
    """Whether something is known to be damaged."""


class NotJudged(NamedTuple):
    """A path that was given, and why nothing of it, or not all of it, is judged."""

    path: Path
    error: Exception
    """What it would end with by itself."""

    def as_dict(self) -> dict[str, str]:
        """Return the record that reports print."""
        error, path = self.error, find_uri(self.path) or str(self.path)
        return {"path": path, "error": type(error).__name__, "reason": str(error)}


class ArchiveOutcome(NamedTuple):
    """What judging one archive, or a share of it, by one profile came to."""

    chosen: Chosen
    total: ShareSum
    found: tuple[tuple[Violation, bool], ...] = ()
    """All findings, and whether each is settled, where these are asked for."""
    moves: tuple[MoveRecord, ...] = ()

    def add(self, other: "ArchiveOutcome") -> "ArchiveOutcome":
        """Return the outcome with that of another share; this is the first one's."""
        self.total.add(other.total)
        return self._replace(found=self.found + other.found, moves=self.moves + other.moves)

    def report(self) -> ArchiveReport:
        """Report what it came to, all shares together."""
        profile, readings, recognised, _ = self.chosen
        report = replace(self.total.report(), profile=profile, recognised=recognised)
        return replace(report, readings=readings.as_dict())


class TaskResult(NamedTuple):
    """What a task came to."""

    outcomes: list[ArchiveOutcome]
    not_judged: list[NotJudged]
    said: list[str]
    """What is worth a line to whoever asked."""
    damaged: bool = False
    """Whether all shares have to be judged anew, around what this one found to be damaged."""


def judge_task(task: ArchiveTask, progress: Progress | None = None) -> TaskResult:
    """Do a task. Raises what is wrong with the readings that were asked for."""
    result = TaskResult([], [], [])
    try:
        with rare_collections():
            chosen = task.chosen
            if not chosen:
                chosen, unfit = choose_protocols(task.paths, task.asked, progress=progress)
                result.not_judged.extend(unfit)
            for each in chosen:
                result.outcomes.extend(_judge(task, each, result.said, progress))
    except DamagedLog as error:
        if task.of > 1 and not task.damaged:
            return TaskResult([], [], [], damaged=True)
        return TaskResult([], [NotJudged(path, error) for path in task.paths], result.said)
    except UNFIT as error:
        return TaskResult([], [NotJudged(path, error) for path in task.paths], result.said)
    return result


def choose_protocols(
    paths: Sequence[Path], asked: Asked, jobs: int = 1, progress: Progress | None = None
) -> tuple[tuple[Chosen, ...], list[NotJudged]]:
    """Return by what the clusters of an archive are judged, and which are not.

    Where an audit goes on the logs are not asked again: it takes all of them to say. Raises what
    `recognise_clusters` raises.
    """
    known = None if asked.resume is None else asked.resume / name_kept(paths, "recognised")
    try:
        kept = None if known is None else take_up(known, {})
    except NotKept:
        kept = None
    found = kept and kept[0]
    if found is None:
        found = recognise_clusters(paths, asked.members, jobs=jobs, progress=progress)
        if known is not None and found:
            with suppress(OSError):  # it is found again
                keep(known, {}, found)
    if asked.chroots is not None:
        found = _choose_clusters(found, asked.chroots)
    apart = [each for each in found if each[0] is not None]
    if len(apart) < 2:
        return (asked.choose(apart[0][0] if apart else None, asked.chroots),), []
    untold = [
        chroot or "/" for recognised, chroots in found if recognised is None for chroot in chroots
    ]
    said = "nothing shows which protocol the clusters at {} are of, beside others: add --profile"
    unfit = [NotJudged(paths[0], NoRules(said.format(", ".join(untold))))] if untold else []
    return tuple(asked.choose(*each) for each in apart), unfit


def _choose_clusters(
    found: Sequence[tuple[Recognised | None, tuple[str, ...]]], chroots: tuple[str, ...]
) -> list[tuple[Recognised | None, tuple[str, ...]]]:
    """Return of what was found in an archive the clusters that were named; raises NoRules."""
    there = sorted(chroot for _, each in found for chroot in each)
    for chroot in chroots:
        if chroot not in there:
            at = ", ".join(each or "/" for each in there) or "none"
            raise NoRules(f"no cluster at {chroot or '/'}: the clusters in the log are at {at}")
    kept = [(told, tuple(c for c in each if c in chroots)) for told, each in found]
    return [each for each in kept if each[1]]


def _judge(
    task: ArchiveTask, chosen: Chosen, said: list[str], progress: Progress | None
) -> Iterator[ArchiveOutcome]:
    """Judge what the paths lead to by one profile; around what is damaged, where that is whole."""
    asked, paths = task.asked, task.paths

    def work(archives: tuple[Archive, ...]) -> list[ArchiveOutcome]:
        keeper = _make_keeper(task, chosen, archives, said)
        before, outcomes = 0, list[ArchiveOutcome]()
        total = sum(measure_piece(piece) for archive in archives for piece in archive.pieces)
        for archive in archives:
            audit = _begin(archive, task, chosen, keeper)

            def pause(piece: Piece, read: int, audit=audit, before=before) -> None:  # type: ignore[no-untyped-def]
                if progress is not None:
                    progress(f"judging {piece.path.name}, MiB", before + read >> 20, total >> 20)
                if keeper is not None and keeper.is_due():
                    audit.keep(keeper)

            audit.read(task.limits, pause)
            before += sum(map(measure_piece, archive.pieces))
            if keeper is not None and audit.has_moved():
                audit.keep(keeper)
            audit.finish()
            rows = (tuple(audit.list_findings()), tuple(audit.moves)) if asked.rows else ()
            outcomes.append(ArchiveOutcome(chosen, audit.sum_up(), *rows))
        return outcomes

    plan = None if asked.resume is None else read_plan(asked.resume, paths)
    damaged = task.damaged or (plan is not None and plan.damaged)
    if task.of > 1:
        # What one share cannot read another one may never look at: all begin anew together.
        yield from work(find_archives(paths, asked.members, asked.since, damaged=damaged))
    else:
        yield from contain(paths, work, asked.members, asked.since, damaged=damaged)


def _make_keeper(
    task: ArchiveTask, chosen: Chosen, archives: Sequence[Archive], said: list[str]
) -> Keeper | None:
    asked = task.asked
    if asked.resume is None:
        return None
    surveyed = any(a.damages or (a.surveyed and not a.members) for a in archives)
    if task.share == 0:
        with suppress(OSError):  # said where judging cannot be kept
            write_plan(asked.resume, task.paths, KeptPlan(task.of, surveyed))
    identity = {
        "profile": chosen.profile,
        "readings": chosen.readings.as_dict(),
        "rows": asked.rows,
        **asked.options._asdict(),
    }
    share = Share(task.share, task.of, chosen.chroots)
    return Keeper(asked.resume, identity, share, said.append)


def _begin(
    archive: Archive, task: ArchiveTask, chosen: Chosen, keeper: Keeper | None
) -> ArchiveAudit:
    kept = None if keeper is None else keeper.load(archive)
    if kept is not None:
        assert isinstance(kept, ArchiveAudit)
        kept.take_up(archive)
        return kept
    rules = make_rules(chosen.profile, chosen.readings)
    share = Share(task.share, task.of, chosen.chroots)
    return ArchiveAudit(archive, rules, task.asked.options, share, rows=task.asked.rows)
