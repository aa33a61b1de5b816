"""The verb `watch`: logs that grow, judged as they do, and told as they are found.

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
from urllib.parse import SplitResult

from reassure_conformance.answers.auditing import find_place
from reassure_conformance.report.document import HOLDS, UNKNOWN, Document
from reassure_judge.protocols import NoRules, find_protocols, make_rules
from reassure_judge.recognise import Recognised
from reassure_pipeline.alerts import NOT_FOLLOWED, UNSETTLED, VIOLATION, Alert
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
from reassure_pipeline.watch_state import JOURNAL, POSITION, Checkpoint, Journal
from reassure_pipeline.watched import Options, report_watch
from reassure_pipeline.webhook import Webhook
from reassure_spec.errors import BadUsage
from reassure_spec.readings import Readings
from reassure_spec.rooms import choose_readings, judge_of

if TYPE_CHECKING:
    from reassure_pipeline.audit_report import AuditReport

_LAST_WORDS_S: Final = 5.0
"""How long a receiver is waited for at the end."""


@dataclass(frozen=True, slots=True)
class Asked:
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
    webhook: SplitResult | None = None


@dataclass(frozen=True, slots=True)
class Outlet:
    """Who is told what."""

    tell: Callable[[Alert, bool], None]
    """Given an alert, and whether it was told before."""
    say: Callable[[str], None]
    """Given what is worth a line besides."""
    show: Callable[[Status], None] | None = None


def watch_document(asked: Asked, outlet: Outlet) -> Document:
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
            # What a receiver is sent stands in a journal, whether anybody keeps that or not.
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reassure-")))
        checkpoint = stack.enter_context(Checkpoint(folder))
        profile, chosen, found = _choose_rules(asked, places, checkpoint, outlet)
        watched = _Watched(asked, places, profile, chosen, checkpoint)
        journal = stack.enter_context(closing(Journal(folder / JOURNAL)))
        webhook = None
        if asked.webhook is not None:
            url, position = asked.webhook, folder / POSITION
            webhook = Webhook(url, journal.path, position, outlet.say, begin=journal.size)
        teller = Teller(
            journal,
            outlet.tell,
            start=watched.told,
            wake=None if webhook is None else webhook.wake,
        )
        waiting = 0
        try:
            watched.run(teller, outlet)
        finally:
            if webhook is not None:
                waiting = webhook.close(_LAST_WORDS_S)
                if waiting:
                    outlet.say(f"webhook: {waiting} alerts were not received: {webhook.trouble}")
    report = watched.report(found)
    body = _make_body(report, watched.archives, found)
    counts = body.pop("counts")
    if webhook is not None:
        counts |= {"sent": webhook.sent, "refused": webhook.refused, "not_received": waiting}
    verdict, seconds = body.pop("verdict"), time.monotonic() - start
    readings = chosen.as_dict()
    return Document("watch", verdict, seconds, counts, None, profile, readings, body=body)


def _refuse_observations(places: Sequence[Path]) -> None:
    """Raise BadUsage for observations, which are judged from their end."""
    files = sort_paths([place for place in places if place.exists()]).files
    named = [str(file) for file in files if file in places]
    if named:
        raise BadUsage(
            f"{', '.join(named)}: observations are not watched, for what they come to is known at "
            "their end: judge them with reassure audit"
        )


def _choose_rules(
    asked: Asked, places: Sequence[Path], checkpoint: Checkpoint, outlet: Outlet
) -> tuple[str, Readings, Recognised | None]:
    """Return profile and readings: those named, those gone on with, or those that the logs tell."""
    profile, readings, found = asked.profile, asked.readings, None
    if not asked.named:
        before = checkpoint.read_identity()
        if before is not None:
            profile = str(before["identity"]["profile"])
            readings = {**before["identity"]["readings"], **readings}
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
        found = recogniser.look()
        if isinstance(found, str):
            raise NoRules(f"{found}; name one with --profile, or the logs one by one")
        if found is not None:
            outlet.say(f"profile {found.profile}: {found.why}")
            return found
        if ending.when_caught_up or ending.is_over():
            return None
        if not has_said:
            missing = [str(place) for place in places if not place.exists()]
            what = f"{', '.join(missing)} to be there" if missing else "a sign of the protocol"
            outlet.say(f"waiting for {what}; --profile begins without")
            has_said = True
        ending.wait(LONGEST_PAUSE_S)


class _Watched:
    """The archives on their way, from their beginning or from a checkpoint."""

    def __init__(
        self,
        asked: Asked,
        places: Sequence[Path],
        profile: str,
        readings: Readings,
        checkpoint: Checkpoint,
    ) -> None:
        self._asked = asked
        self._profile = profile
        self._checkpoint = checkpoint
        self._identity = {
            "profile": profile,
            "readings": readings.as_dict(),
            "paths": [str(place.absolute()) for place in places],
            **asked.options._asdict(),
        }
        before = checkpoint.load(self._identity)
        self.archives: list[ArchiveWatch]
        if before is None:
            rules = make_rules(profile, readings)
            self.archives = [ArchiveWatch(place, rules, asked.options) for place in places]
            self.told = 0
            self._save(0)
        else:
            self.archives, self.told = before
            for archive, place in zip(self.archives, places, strict=True):
                archive.follower.path = place

    def _save(self, journal: int) -> None:
        if self._asked.checkpoint is not None:
            self._checkpoint.save(self._identity, self.archives, journal)

    def run(self, teller: Teller, outlet: Outlet) -> None:
        """Judge until it is to end."""
        save = None if self._asked.checkpoint is None else lambda _: self._save(teller.size)
        Watch(self.archives, teller, ending=self._asked.ending, save=save, show=outlet.show).run()

    def report(self, found: Recognised | None) -> "AuditReport":
        """Return what it has come to, as an audit's report with the first of each finding."""
        every = [archive.report() for archive in self.archives]
        filled = [each for each in every if each is not None]
        report = report_watch(self._profile, filled, strict=self._asked.options.strict)
        foreign = next((words for each in report.archives for words in each.find_foreign()), None)
        if not self._asked.named and found is None and foreign is not None:
            raise NoRules(
                f"{foreign}. The judge has rules for {' and '.join(find_protocols())} only; "
                f"--profile {self._profile} holds the logs against that all the same"
            )
        return report


def _make_body(
    report: "AuditReport", archives: Sequence[ArchiveWatch], found: Recognised | None
) -> dict[str, Any]:
    """Return the body of the document, with its verdict and its counts."""
    body = dict(report.as_json_dict())
    del body["not_listed"]  # the report has not seen what a watch counts
    needs = [*_list_needs(archives), *body["needs"]]
    counts = {
        "transactions": body["counts"]["transactions"],
        "partitions": body["counts"]["partitions"],
        "violations": _count(archives, VIOLATION),
        "not_followed": _count(archives, NOT_FOLLOWED),
        "unsettled": _count(archives, UNSETTLED),
        "holes": sum(len(archive.follower.holes) for archive in archives),
        "damaged": sum(archive.damaged for archive in archives),
    }
    told = {archive.name: archive for archive in archives}
    for record in body["archives"]:
        archive = told[record["path"]]
        record["violations"] = _count([archive], VIOLATION)
        record["not_followed"] = _count([archive], NOT_FOLLOWED)
        record["unsettled"] = _count([archive], UNSETTLED)
        record["state"] = archive.find_status().state
    verdict = body["verdict"]
    body["verdict"] = UNKNOWN if verdict == HOLDS and needs else verdict
    return body | {
        "counts": counts,
        "needs": needs,
        "recognised": None if found is None else found.as_dict(),
    }


def _count(archives: Sequence[ArchiveWatch], kind: str) -> int:
    watched = [archive.watched for archive in archives if archive.watched is not None]
    return sum(each.findings.count(kind) for each in watched)


def _list_needs(archives: Sequence[ArchiveWatch]) -> Iterator[str]:
    for archive in archives:
        if archive.watched is None:
            yield f"{archive.name}: no transaction so far"
        if archive.lost is not None:
            yield f"{archive.lost}; what follows is another history: watch it with a new checkpoint"
        elif archive.damaged:
            yield f"{archive.name}: {archive.damaged} files could not be read to their end"


def alert_line(alert: Alert, *, repeated: bool) -> str:
    """Return an alert as one line of JSON, which says whether it was told before."""
    return json.dumps({**alert.as_dict(), "repeated": repeated})


def describe_alert(alert: Alert, *, repeated: bool) -> Iterator[str]:
    """Yield an alert for people: what, where and when, and what is wrong."""
    from reassure_conformance.report.display import describe_record

    again = ", told before" if repeated else ""
    if "clause" not in alert.body:
        body, place = alert.body, ""
        if "file" in body:
            place = f"{body['file']}, byte {body['offset']}: "
        yield f"{alert.kind.upper()} {alert.archive}: {place}{body['reason']}{again}"
        return
    word = {VIOLATION: "VIOLATED", NOT_FOLLOWED: "NOT FOLLOWED", UNSETTLED: "UNKNOWN"}[alert.kind]
    yield f"{word} {alert.body['clause']}{again}"
    yield from describe_record({**alert.body, "archive": alert.archive})


def render_watch(document: Document) -> str:
    """Return what a watch came to, for people."""
    from reassure_conformance.answers.auditing import render_audit

    return render_audit(document, "pretty")
