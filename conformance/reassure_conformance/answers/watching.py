"""What `audit --follow` answers: logs that grow, judged as they do, and told as they are found.

At its end stands a document like an audit's; where that has findings, it has the first of each
clause, and counts all.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from reassure_conformance.answers.auditing import add_needs, find_place, open_tables
from reassure_conformance.report.document import HOLDS, UNKNOWN, Document
from reassure_judge.protocols import NoRules, make_rules
from reassure_judge.recognise import Recognised
from reassure_judge.rules import Rules
from reassure_pipeline.audit.observed import sort_paths
from reassure_pipeline.audit.passes import Options
from reassure_pipeline.audit.recogniser import Recogniser
from reassure_pipeline.audit.run_audit import audit_paths, refuse_foreign
from reassure_pipeline.checkpoints.kept_files import own_directory
from reassure_pipeline.watch.alerts import NOT_FOLLOWED, UNSETTLED, VIOLATION, Alert
from reassure_pipeline.watch.appending import Appending
from reassure_pipeline.watch.loop import (
    LONGEST_PAUSE_S,
    ArchiveWatch,
    Ending,
    LogWatch,
    Status,
)
from reassure_pipeline.watch.watch_checkpoint import JOURNAL, Journal, WatchCheckpoint
from reassure_pipeline.watch.watched_archive import report_watch
from reassure_spec.errors import BadUsage
from reassure_spec.readings import Readings
from reassure_spec.rooms import choose_readings, judge_of


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """What is to be watched, and how."""

    paths: tuple[Path, ...]
    ending: Ending
    profile: str
    readings: Mapping[str, str] = field(default_factory=dict)
    named: bool = True
    """Whether somebody named the profile; otherwise the logs tell, and `profile` is for those that
    do not."""
    options: Options = field(default_factory=Options)
    checkpoint: Path | None = None
    tables: Path | None = None


@dataclass(frozen=True, slots=True)
class Outlet:
    """Who is told what."""

    tell: Callable[[Alert, bool], None]
    """Given an alert, and whether it was told before."""
    say: Callable[[str], None]
    """Given what is worth a line besides."""
    show: Callable[[Status], None] | None = None


def watch_document(asked: WatchRequest, outlet: Outlet) -> Document:
    """Watch until it is to end, and return the document of what it came to.

    Raises BadUsage for files that are judged by an audit only, NoRules, KeptElsewhere,
    CheckpointRefused, and what reading logs raises.
    """
    start = time.monotonic()
    places = [find_place(path) for path in asked.paths]
    _refuse_observations(places)
    with ExitStack() as stack:
        checkpoint, problem = None, None
        if asked.checkpoint is not None:
            try:
                checkpoint = WatchCheckpoint(stack.enter_context(own_directory(asked.checkpoint)))
            except OSError as full:
                problem = full
        profile, chosen, found = _choose_rules(asked, places, checkpoint, outlet)
        identity = {
            "profile": profile,
            "readings": chosen.as_dict(),
            "paths": [str(place.absolute()) for place in places],
            **asked.options._asdict(),
            "chroots": asked.options.chroots and [*asked.options.chroots],
        }
        rules = make_rules(profile, chosen)
        engine = _Engine(asked, places, rules, checkpoint, identity)
        path = None if checkpoint is None else checkpoint.directory / JOURNAL
        journal = Journal(path, outlet.tell, engine.told)
        journal.problem = journal.problem or problem
        stack.callback(journal.close)
        tables = None
        if asked.tables is not None:
            options = asked.options._asdict() | {"recognise": not asked.named}
            open_tables(asked.tables, options)  # what is wrong with the path is said at once
            del options["strict"]
            given = asked.tables, places, asked.profile, dict(asked.readings), options
            tables = Appending(partial(_append, *given), outlet.say)
        engine.run(journal, outlet, tables)
    body = _make_body(asked, profile, engine, found)
    counts = body.pop("counts")
    verdict, seconds = body.pop("verdict"), time.monotonic() - start
    readings = chosen.as_dict()
    document = Document("watch", verdict, seconds, counts, None, profile, readings, body=body)
    return document if tables is None else add_needs(document, *tables.problems)


def _refuse_observations(places: Sequence[Path]) -> None:
    """Raise BadUsage for observations, which are judged from their end."""
    files = sort_paths([place for place in places if place.exists()]).files
    named = [str(file) for file in files if file in places]
    if named:
        raise BadUsage(
            f"{', '.join(named)}: --follow cannot judge observations, whose verdict is known only "
            "at their end: judge them with `reassure audit` without --follow"
        )


def _choose_rules(
    asked: WatchRequest, places: Sequence[Path], checkpoint: WatchCheckpoint | None, outlet: Outlet
) -> tuple[str, Readings, Recognised | None]:
    """Return profile and readings: those named, those gone on with, or those that the logs tell."""
    profile, readings, found = asked.profile, asked.readings, None
    if not asked.named:
        before = None if checkpoint is None else checkpoint.read_identity()
        if before is not None:
            profile = str(before["profile"])
            readings = {**before["readings"], **readings}
        else:
            found = _recognise(places, asked, outlet)
            if found is not None:
                profile, readings = found.profile, {**found.readings, **readings}
    return profile, choose_readings(judge_of(profile), profile, readings), found


def _recognise(places: Sequence[Path], asked: WatchRequest, outlet: Outlet) -> Recognised | None:
    """Wait until the logs tell of a profile; None where it is to end before."""
    recogniser, ending = Recogniser(places, asked.options.chroots), asked.ending
    has_said = False
    while True:
        found = recogniser.look()
        if isinstance(found, str):
            raise NoRules(f"{found}; choose with --profile or --chroot, or watch logs one by one")
        if found is not None:
            outlet.say(f"profile {found.profile}: {found.why}")
            return found
        if ending.when_caught_up or ending.is_over():
            return None
        if not has_said:
            missing = ", ".join(str(place) for place in places if not place.exists())
            what = f"{missing} to appear" if missing else "a write that shows the protocol"
            outlet.say(f"waiting for {what}; with --profile judging starts at once")
            has_said = True
        ending.wait(LONGEST_PAUSE_S)


class _Engine:
    """What judges the archives, from their beginning or from a checkpoint."""

    def __init__(
        self,
        asked: WatchRequest,
        places: Sequence[Path],
        rules: Rules[Any, Any],
        checkpoint: WatchCheckpoint | None,
        identity: Mapping[str, Any],
    ) -> None:
        self._asked = asked
        self._checkpoint = checkpoint
        self._identity = identity
        before = None if checkpoint is None else checkpoint.load(identity)
        self._is_new = before is None
        if before is not None:
            self.archives: list[ArchiveWatch]
            self.archives, self.told = before
            for archive, place in zip(self.archives, places, strict=True):
                archive.follower.path = place
            return
        self.told = 0
        """How large the journal was when the state was kept that it goes on from."""
        self.archives = [ArchiveWatch(place, rules, asked.options) for place in places]

    def _save(self, journal: int) -> None:
        """Keep the state, where anything is kept."""
        if self._checkpoint is not None:
            self._checkpoint.save(self._identity, self.archives, journal)

    def run(self, journal: Journal, outlet: Outlet, tables: Appending | None) -> None:
        """Judge until it is to end."""
        LogWatch(
            self.archives,
            journal,
            ending=self._asked.ending,
            save=lambda: self._save(journal.size),
            show=outlet.show,
            tables=tables,
        ).run(is_new=self._is_new)


def _append(
    folder: Path,
    places: Sequence[Path],
    profile: str,
    readings: Mapping[str, str],
    options: Mapping[str, Any],
) -> Exception | None:
    """Append to tables what an audit of the same logs makes of them; answer what failed."""
    tables = open_tables(folder, options)
    audit_paths(places, profile, readings, tables=tables, jobs=1, **options)
    return tables.problem


def _make_body(
    asked: WatchRequest, profile: str, engine: _Engine, found: Recognised | None
) -> dict[str, Any]:
    """Return the body of the document, with its verdict and its counts."""
    found_there = [each for each in (a.report() for a in engine.archives) if each is not None]
    report = report_watch(profile, found_there, strict=asked.options.strict)
    # A watch that goes on has the profile that was recognised when it began.
    if not asked.named and found is None and profile == asked.profile:
        for each in report.archives:
            refuse_foreign(each, profile)
    body = dict(report.as_json_dict())
    del body["not_listed"]  # the report has not seen what a watch counts
    needs = [*_list_needs(engine.archives), *body["needs"]]
    kinds = {"violations": VIOLATION, "not_followed": NOT_FOLLOWED, "unsettled": UNSETTLED}
    findings = {archive.name: archive.findings for archive in engine.archives}
    counts = {
        "transactions": body["counts"]["transactions"],
        "partitions": body["counts"]["partitions"],
        **{n: sum(each.count(kind) for each in findings.values()) for n, kind in kinds.items()},
        "holes": sum(len(record["holes"]) for record in body["archives"]),
        "damaged": body["counts"]["damaged"],
    }
    told = {each.name: each for each in engine.archives}
    for record in body["archives"]:
        archive = told[record["path"]]
        record["state"] = archive.state
        record |= {name: findings[archive.name].count(kind) for name, kind in kinds.items()}
        if record["verdict"] == HOLDS and archive.lost:
            record["verdict"] = UNKNOWN
    verdict = body["verdict"]
    body["verdict"] = UNKNOWN if verdict == HOLDS and needs else verdict
    return body | {
        "counts": counts,
        "needs": needs,
        "recognised": None if found is None else found.as_dict(),
    }


def _list_needs(archives: Sequence[ArchiveWatch]) -> Iterator[str]:
    for each in archives:
        if each.state == "waiting":
            yield f"{each.name}: no transaction yet"
        if each.lost:
            yield f"{each.lost}; what follows is another history: follow it with a new checkpoint"


def alert_line(alert: Alert, *, repeated: bool) -> str:
    """Return an alert as one line of JSON, which says whether it was told before."""
    return json.dumps({**alert.as_dict(), "repeated": repeated})


def describe_alert(alert: Alert, *, repeated: bool) -> Iterator[str]:
    """Yield an alert for people: what, where and when, and what is wrong."""
    from reassure_conformance.report.display import describe_record

    again = ", reported before" if repeated else ""
    if "clause" not in alert.body:
        body, place = alert.body, ""
        if "file" in body:
            place = f"{body['file']}, byte {body['offset']}: "
        yield f"{alert.kind.upper()} {alert.archive}: {place}{body['reason']}{again}"
        return
    word = {VIOLATION: "VIOLATED", NOT_FOLLOWED: "WARNING", UNSETTLED: "UNKNOWN"}[alert.kind]
    yield f"{word} {alert.body['clause']}{again}"
    yield from describe_record({**alert.body, "archive": alert.archive})
