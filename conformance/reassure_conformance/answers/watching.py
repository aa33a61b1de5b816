"""What `audit --follow` answers: logs that grow, judged as they do, and told as they are found.

At its end stands a document like an audit's; where that has findings, it has the first of each
clause, and counts all.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reassure_conformance.answers.auditing import find_place, refuse_foreign, refuse_several
from reassure_conformance.report.document import HOLDS, UNKNOWN, Document
from reassure_judge.protocols import make_rules
from reassure_judge.recognise import Recognised
from reassure_judge.rules import Rules
from reassure_pipeline.alerts import NOT_FOLLOWED, UNSETTLED, VIOLATION, Alert
from reassure_pipeline.archive import find_archives
from reassure_pipeline.observed import sort_paths
from reassure_pipeline.recognising import Recogniser
from reassure_pipeline.watch_loop import (
    LONGEST_PAUSE_S,
    ArchiveWatch,
    Ending,
    Status,
    Teller,
    Watch,
)
from reassure_pipeline.watch_state import JOURNAL, Checkpoint, Journal
from reassure_pipeline.watched import FirstOfEach, Options, Outcome, report_watch
from reassure_spec.errors import BadUsage
from reassure_spec.readings import Readings
from reassure_spec.rooms import choose_readings, judge_of

if TYPE_CHECKING:
    from reassure_pipeline.archive_report import ArchiveReport
    from reassure_pipeline.watched import Sum

STREAM: Final = "spark"
"""Where in a checkpoint Spark keeps its own."""


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
    spark: str | None = None
    """The master of the Spark that judges; None for this process."""


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

    Raises BadUsage for files that are judged by an audit only, NoRules, CheckpointRefused, and what
    reading logs raises.
    """
    start = time.monotonic()
    places = [find_place(path) for path in asked.paths]
    _refuse_observations(places)
    with ExitStack() as stack:
        folder = asked.checkpoint
        if folder is None:
            # What is told stands in a journal, whether anybody keeps that or not.
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reassure-")))
        checkpoint = stack.enter_context(Checkpoint(folder))
        profile, chosen, found = _choose_rules(asked, places, checkpoint, outlet)
        identity = {
            "profile": profile,
            "readings": chosen.as_dict(),
            "paths": [str(place.absolute()) for place in places],
            "engine": "plain" if asked.spark is None else "spark",
            **asked.options._asdict(),
        }

        def save(state: Any, journal: int) -> None:
            if asked.checkpoint is not None:
                checkpoint.save(identity, state, journal)

        given = asked, places, make_rules(profile, chosen), checkpoint.load(identity), save
        engine = _Plain(*given) if asked.spark is None else _Streamed(*given, folder / STREAM)
        journal = stack.enter_context(closing(Journal(folder / JOURNAL)))
        engine.run(Teller(journal, outlet.tell, start=engine.told), outlet)
    body = _make_body(asked, profile, engine, found)
    counts = body.pop("counts")
    verdict, seconds = body.pop("verdict"), time.monotonic() - start
    readings = chosen.as_dict()
    return Document("watch", verdict, seconds, counts, None, profile, readings, body=body)


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
    asked: WatchRequest, places: Sequence[Path], checkpoint: Checkpoint, outlet: Outlet
) -> tuple[str, Readings, Recognised | None]:
    """Return profile and readings: those named, those gone on with, or those that the logs tell."""
    profile, readings, found = asked.profile, asked.readings, None
    if not asked.named:
        before = checkpoint.read_identity()
        if before is not None:
            profile = str(before["profile"])
            readings = {**before["readings"], **readings}
        else:
            found = _recognise(places, asked.ending, outlet)
            if found is not None:
                profile, readings = found.profile, {**found.readings, **readings}
    return profile, choose_readings(judge_of(profile), profile, readings), found


def _recognise(places: Sequence[Path], ending: Ending, outlet: Outlet) -> Recognised | None:
    """Wait until the logs tell of a profile; None where it is to end before."""
    recogniser = Recogniser(places)
    has_said = False
    while True:
        found = refuse_several(recogniser.look())
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


Save = Callable[[Any, int], None]
"""Keeps a state, and how large the journal is by then."""
Before = tuple[Any, int] | None
"""The state to go on from, and how large the journal was then; None where judging begins."""


class _Plain:
    """Judges the archives in this process."""

    def __init__(
        self,
        asked: WatchRequest,
        places: Sequence[Path],
        rules: Rules[Any, Any],
        before: Before,
        save: Save,
    ) -> None:
        self._asked = asked
        self._save = save
        self.told = 0
        """How large the journal was when the state was kept that it goes on from."""
        self._archives: list[ArchiveWatch]
        if before is None:
            self._archives = [ArchiveWatch(place, rules, asked.options) for place in places]
            save(self._archives, 0)
        else:
            self._archives, self.told = before
            for archive, place in zip(self._archives, places, strict=True):
                archive.follower.path = place

    def run(self, teller: Teller, outlet: Outlet) -> None:
        """Judge until it is to end."""
        Watch(
            self._archives,
            teller,
            ending=self._asked.ending,
            save=lambda archives: self._save(archives, teller.size),
            show=outlet.show,
        ).run()

    def report(self) -> "list[tuple[ArchiveReport, Sum]]":
        """Return what each archive has come to, of which there was something."""
        every = [archive.report() for archive in self._archives]
        return [each for each in every if each is not None]

    def stand(self) -> list[Outcome]:
        """Return what is told of the archives beside."""
        return [archive.stand() for archive in self._archives]


class _Streamed:
    """Judges the archives in Spark's workers, and answers as `_Plain` does."""

    def __init__(
        self,
        asked: WatchRequest,
        places: Sequence[Path],
        rules: Rules[Any, Any],
        before: Before,
        save: Save,
        folder: Path,
    ) -> None:
        from reassure_pipeline.watch_spark import begin_standing

        self._asked = asked
        self._places = places
        self._keep = save
        self._folder = folder
        self.told = 0
        if before is not None:
            (self._plan, self._standing), self.told = before
            return
        self._plan = self._await_plan(rules)
        self._standing = None if self._plan is None else begin_standing(self._plan)
        if self._plan is not None:
            self._save(self._standing)

    def _await_plan(self, rules: Rules[Any, Any]) -> Any:
        from reassure_pipeline.watch_spark import begin_plan

        asked, ending = self._asked, self._asked.ending
        while True:
            plan = begin_plan(self._places, rules, asked.options, str(asked.spark))
            if plan is not None or ending.is_over():
                return plan
            if ending.when_caught_up:
                find_archives(self._places)  # says what is missing
            ending.wait(LONGEST_PAUSE_S)

    def _save(self, standing: Any) -> None:
        self._keep((self._plan, standing), standing.journal)

    def run(self, teller: Teller, outlet: Outlet) -> None:
        from reassure_pipeline.watch_spark import run_stream

        if self._plan is not None:
            ending, master = self._asked.ending, str(self._asked.spark)
            given = self._plan, self._folder, master, self._standing
            self._standing = run_stream(*given, teller, ending, self._save, outlet.show)

    def report(self) -> "list[tuple[ArchiveReport, Sum]]":
        from reassure_pipeline.watch_spark import report_stream

        return [] if self._plan is None else report_stream(self._plan, self._standing)

    def stand(self) -> list[Outcome]:
        from reassure_pipeline.watch_spark import list_outcomes

        if self._plan is not None:
            return list_outcomes(self._plan, self._standing)
        return [Outcome(str(p), "waiting", FirstOfEach(), 0, 0, "") for p in self._places]


def _make_body(
    asked: WatchRequest, profile: str, engine: _Plain | _Streamed, found: Recognised | None
) -> dict[str, Any]:
    """Return the body of the document, with its verdict and its counts."""
    report = report_watch(profile, engine.report(), strict=asked.options.strict)
    if not asked.named and found is None:
        refuse_foreign(report, profile)
    outcomes = engine.stand()
    body = dict(report.as_json_dict())
    del body["not_listed"]  # the report has not seen what a watch counts
    needs = [*_list_needs(outcomes), *body["needs"]]
    kinds = {"violations": VIOLATION, "not_followed": NOT_FOLLOWED, "unsettled": UNSETTLED}
    counts = {
        "transactions": body["counts"]["transactions"],
        "partitions": body["counts"]["partitions"],
        **{name: sum(o.findings.count(kind) for o in outcomes) for name, kind in kinds.items()},
        "holes": sum(each.holes for each in outcomes),
        "damaged": sum(each.damaged for each in outcomes),
    }
    told = {each.name: each for each in outcomes}
    for record in body["archives"]:
        outcome = told[record["path"]]
        record["state"] = outcome.state
        record |= {name: outcome.findings.count(kind) for name, kind in kinds.items()}
        if record["verdict"] == HOLDS and (outcome.lost or outcome.damaged):
            record["verdict"] = UNKNOWN
    verdict = body["verdict"]
    body["verdict"] = UNKNOWN if verdict == HOLDS and needs else verdict
    return body | {
        "counts": counts,
        "needs": needs,
        "recognised": None if found is None else found.as_dict(),
    }


def _list_needs(outcomes: Sequence[Outcome]) -> Iterator[str]:
    for each in outcomes:
        if each.state == "waiting":
            yield f"{each.name}: no transaction yet"
        if each.lost:
            yield f"{each.lost}; what follows is another history: follow it with a new checkpoint"
        elif each.damaged:
            yield f"{each.name}: {each.damaged} files cannot be read to the end"


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
