"""The verb `audit`: whatever logs there are, judged by the pipeline, in the common document.

The document says nothing of time, so that it is the same, byte for byte, whichever engine made it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reassure_conformance.report.display import show_duration, show_text, show_zxid
from reassure_conformance.report.document import UNKNOWN, VIOLATED, Document, get_version
from reassure_conformance.report.incident_lines import describe_incident, list_incidents
from reassure_conformance.report.present import describe_present

if TYPE_CHECKING:
    from reassure_conformance.gate.rests import Rests
    from reassure_pipeline.audit.archive_tasks import NotJudged
    from reassure_pipeline.audit.run_audit import Fleet
    from reassure_pipeline.tables.fleet_tables import FleetTables

SHOWN: Final = 20
"""How many findings of a kind are shown to people."""


def find_place(path: Path) -> Path:
    """Return where the logs are: in the directory of a run, its server's own files."""
    server = path / "zookeeper"
    return server if (path / "run.json").is_file() and server.is_dir() else path


def audit_document(
    paths: Sequence[Path],
    profile: str,
    readings: Mapping[str, str],
    spark: str | None,
    *,
    strict: bool = False,
    recognise: bool = False,
    tables: Path | None = None,
    **options: Any,
) -> Document:
    """Judge the logs, on Spark where a master is given, and return the document.

    Each archive is judged by itself, whatever becomes of the others; the document says which were
    not, and its verdict is at best unknown then. Where nothing is judged, what the first one ended
    with is raised. With `strict` a SHOULD binds like a MUST. With `recognise` nobody named a
    profile: the one that each log tells of is taken, with the readings that it settles, and
    `profile` where it tells of none. What archives came to is appended to the tables in a folder,
    where one is given. The other options are those of `run_audit.audit_paths`, and so
    are the errors.
    """
    from reassure_pipeline.audit.run_audit import audit_paths

    places = [find_place(path) for path in paths]
    rests = _find_rests(paths, options)
    if rests is not None and recognise:
        profile, readings, recognise = rests.profile, {**rests.readings, **readings}, False
    written = None if tables is None else open_tables(tables, options)
    if written is not None:
        options["tables"] = written
    fleet = audit_paths(places, profile, readings, spark, recognise=recognise, **options)
    if fleet.report is None:
        fleet.get_report()  # raises
    document = _describe_fleet(fleet, strict=strict)
    if rests is not None and _reads_logs(document):
        from reassure_conformance.answers.rejudging import judge_again

        names = "min_insync_replicas", "grace_ms"
        given = {name: options[name] for name in names if name in options}
        document = judge_again(document, rests, places[0], strict=strict, **given)
    document = _leave_out(document, fleet.not_judged)
    if written is not None and written.problem is not None:
        what = f"{tables}: not all is written, audit again: {written.problem}"
        document = add_needs(document, what)
    return document


def open_tables(folder: Path, options: Mapping[str, Any]) -> "FleetTables":
    """Return the tables in a folder, for an audit that begins now, with such options.

    Raises what `FleetTables` raises.
    """
    from reassure_pipeline.tables.fleet_tables import FleetTables

    how = {name: options.get(name) for name in ("at_rest", "min_insync_replicas", "grace_ms")}
    return FleetTables(folder, get_version(), how, datetime.now(UTC))


def _describe_fleet(fleet: "Fleet", *, strict: bool) -> Document:
    assert fleet.report is not None
    report = fleet.report.strictly() if strict else fleet.report
    body = dict(report.as_json_dict())
    verdict, counts = str(body.pop("verdict")), body.pop("counts")
    found = fleet.recognised
    body["recognised"] = None if found is None else found.as_dict()
    return Document(
        "audit",
        verdict,
        None,
        counts,
        profile=fleet.profile,
        readings=fleet.readings,
        body=body,
    )


def _find_rests(paths: Sequence[Path], options: Mapping[str, Any]) -> "Rests | None":
    """Return when the run in the only path was quiescent, where it kept that and all is judged."""
    from reassure_conformance.gate.rests import read_rests
    from reassure_pipeline.audit.jobs import NO_BUDGET

    is_cut = any(options.get(name) is not None for name in ("since", "chroots"))
    is_cut = is_cut or options.get("budget", NO_BUDGET) != NO_BUDGET
    if len(paths) > 1 or is_cut or find_place(paths[0]) == paths[0]:
        return None
    return read_rests(paths[0])


def _reads_logs(document: Document) -> bool:
    """Whether there is a history that was judged from its beginning to its end."""
    archives = document.body["archives"]
    return len(archives) == 1 and not archives[0]["damages"]


def _leave_out(document: Document, left_out: "Sequence[NotJudged]") -> Document:
    """Return the document with what was not judged: that is a part of the whole, and unknown."""
    told = [each.as_dict() for each in left_out]
    body = {**document.body, "not_judged": told}
    counts = {**document.counts, "not_judged": len(left_out)}
    apart = (f"{each['path']}: not judged: {each['reason']}" for each in told)
    return add_needs(replace(document, counts=counts, body=body), *apart)


def add_needs(document: Document, *needs: str) -> Document:
    """Return the document with what else a whole verdict lacks: it is at best unknown then."""
    body = {**document.body, "needs": [*needs, *document.body["needs"]]}
    verdict = document.verdict if document.verdict == VIOLATED or not needs else UNKNOWN
    return replace(document, verdict=verdict, body=body)


def render_audit(document: Document, form: str, *, verbose: bool = False) -> str:
    """Return the text for people: verdict and violations first, then the clauses to look at.

    With `verbose` every clause has its row.
    """
    from reassure_conformance.report import display, terminal
    from reassure_conformance.report.qualified import read_report

    report = document.as_dict()
    told = read_report(report)
    sums = display.say_counts(report["counts"]) or "no transactions"
    parts = [display.paint(f"{told.headline}: {sums}"), "", *_describe_profile(report)]
    parts += display.fence(_describe_findings(report), form)
    left_out = report.get("not_judged", ())  # a watch has none
    parts += [f"NOT JUDGED {each['path']}: {each['reason']}" for each in left_out]
    apart = {f"Needed: {each['path']}: not judged: {each['reason']}" for each in left_out}
    parts += [note for note in told.notes if note not in apart]
    parts += _describe_undecided(report)
    parts += _describe_explained(report) if verbose else ()
    several = len(report["archives"]) + len(left_out) > 1
    for archive in report["archives"]:
        parts += _describe(archive, several=several)
    parts += _describe_observed(report)
    parts += _describe_facts(report)
    parts += terminal.render_clauses(report, form, verbose=verbose)
    parts += display.fence(terminal.describe_warnings(told.warnings), form)
    return "\n".join(parts)


def _describe_findings(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the first violations with their evidence, then what is not certain."""
    from reassure_conformance.report import display

    # A watch has told of each as it came, and does not say how many it does not list.
    left_out = report.get("not_listed", {})
    incidents = {_find_key(each): each for each in list_incidents(report)}
    for word, name in (("VIOLATED", "violations"), ("UNKNOWN", "unsettled")):
        told = report[name]
        if name == "violations" and incidents:
            # What follows from another violation is told with that.
            told = [each for each in told if "file" in each or _find_key(each) in incidents]
        for violation in told[:SHOWN]:
            yield f"{word} {violation['clause']}"
            yield from display.describe_record(violation)
            if word == "VIOLATED" and _find_key(violation) in incidents:
                yield from describe_incident(incidents[_find_key(violation)])
        beyond = left_out.get(name, {})
        more = len(told) - SHOWN
        if more > 0 or beyond:
            counted = f"; {sum(beyond.values()):,} more are only counted" if beyond else ""
            yield f"... and {max(0, more)} more; --format json lists them{counted}"


def _find_key(found: Mapping[str, Any]) -> tuple[object, ...]:
    """Return what a violation and the incident that it began have in common."""
    first = found["partition"] if "partition" in found else found["partitions"][0]
    zxid = found.get("zxid", found.get("first_zxid"))
    names = ("archive", "path", "topic", "clause")  # an observation is of no znode
    return *map(found.get, names), first, zxid


def _describe_profile(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield which profile the logs were recognised to be of, and by what."""
    found = report["recognised"]
    if found is not None:
        settled = ", ".join(f"{name}={value}" for name, value in found["readings"].items())
        also = f"; readings from the log: {settled}" if settled else ""
        yield f"Profile {found['profile']}: {found['why']}{also}. Choose another with --profile."
        yield ""
    elif report["profile"] is None:
        for archive in report["archives"]:
            why = archive["recognised"]["why"] if archive["recognised"] else "by default"
            yield f"{archive['path']}: profile {archive['profile']}: {why}"
        yield ""


def _describe_undecided(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the clauses that the history leaves open, and where each came up first."""
    for clause in report["clauses"]:
        if clause["verdict"] == UNKNOWN and clause["undecided"]:
            yield (
                f"UNKNOWN {clause['id']}: {clause['undecided']} times violated in some of the "
                "states that the history allows, and not in others"
            )
            for first in report["observed"]["undecided"] if report["observed"] else ():
                if first["clause"] == clause["id"]:
                    place = f"{first['topic']}-{first['partition']}"
                    yield f"  first at {show_text(first['at'])}, partition {show_text(place)}"
            for archive in report["archives"]:
                for first in archive["undecided"]:
                    if first["clause"] == clause["id"]:
                        yield (
                            f"  first at {show_zxid(first['zxid'])} in {archive['path']}: "
                            f"{show_text(first['path'] or _name(first))}"
                        )
                        if first["unless"]:
                            yield f"  holds if one of these is true: {'; '.join(first['unless'])}"


def _describe_explained(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield what no znode announces, and makes writes right that would break a clause without."""
    for archive in report["archives"]:
        for each in archive["explained"]:
            yield f"{archive['path']}: {each['clause']} holds {each['times']} times: {each['by']}"


def _name(place: Mapping[str, Any]) -> str:
    """Return the partition, or the cluster, where nothing was written."""
    if place["partition"] < 0:
        return "pending writes of the controller"
    return f"pending writes for {place['topic']}-{place['partition']}"


def _describe(archive: Mapping[str, Any], *, several: bool) -> Iterator[str]:
    """Yield the verdict on one of several archives, and what to know before it is relied on."""
    name = archive["path"]
    if several:
        yield f"{name}: {archive['verdict']}"
    if archive["since"] is not None:
        yield f"{name}: judged from {show_zxid(archive['since'])}"
    yield f"{name}: {_account(archive['accounted'])}"
    apart = archive["by_cluster"] if several or len(archive["by_cluster"]) > 1 else ()
    for each in apart:
        version = f", {each['version']}" if each["version"] else ""
        yield (
            f"{name}: cluster at {show_text(each['chroot'] or '/')}: {each['verdict']} "
            f"({each['profile']}{version}; {each['partitions']} partitions, "
            f"{each['violations']} violations)"
        )
    if archive["members"]:
        yield f"{name}: one history with {', '.join(archive['members'][1:])}"
    for damage in archive["damages"]:
        upto = "its end" if damage["stop"] is None else f"byte {damage['stop']}"
        yield (
            f"DAMAGED {damage['file']} from byte {damage['offset']} to {upto}: {damage['reason']}"
        )
    for each in archive["divergences"]:
        what = "was never committed" if each["certain"] else "may have been committed, or not"
        yield (
            f"DIVERGED {each['file']}, byte {each['offset']}: {each['transactions']} transactions "
            f"from {show_zxid(each['first_zxid'])} to {show_zxid(each['last_zxid'])}, which "
            f"{each['member']} has logged: {what}; not judged"
        )
    if archive["torn_tail"]:
        tail = archive["torn_tail"]
        yield (
            f"{name}: the last record is incomplete ({tail['reason']}): {tail['file']}, "
            f"offset {tail['offset']}"
        )
    for seen in archive["seen_not_judged"]:
        what = f" ({seen['what']})" if seen["what"] else ""
        yield f"{name}: not judged: {show_text(seen['tree'])}{what}, {seen['writes']} writes"


def _account(accounted: Mapping[str, Any]) -> str:
    """Say in a line what became of every transaction."""
    said = f"{accounted['read']:,} transactions read: {accounted['judged']:,} judged"
    reasons = (f"{n:,} {why}" for why, n in accounted["passed_over"].items())
    passed_over = sum(accounted["passed_over"].values())
    said += f", {passed_over:,} passed over ({', '.join(reasons)})" if passed_over else ""
    uncounted = accounted["gaps_uncounted"]
    more = f" and {uncounted} gaps of unknown length" if uncounted else ""
    return f"{said}, {accounted['missing']:,} missing{more}"


def _describe_facts(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield what was under way in short, where that was asked for."""
    facts = report.get("facts")
    if facts is None:
        return
    moves, lag, terms = facts["reassignments"], facts["replication"], facts["controllers"]
    ended = ", ".join(f"{moves[name]:,} {name.replace('_', ' ')}" for name in _ENDS if moves[name])
    longest = moves["durations"]["longest_ms"]
    yield ""
    yield f"Reassignments    {moves['started']:,} started: {ended or 'none ended'}" + (
        f"; longest {show_duration(longest)}" if longest else ""
    )
    behind = (f"{words} {show_duration(lag[name])}" for name, words in _LAGS.items())
    yield f"Partitions       {', '.join(behind)}, all together"
    churn, elections = facts["in_sync"], facts["elections"]
    yield f"In-sync sets     {churn['joined']:,} joined, {churn['left']:,} left"
    kinds = ", ".join(f"{elections[name]:,} {name}" for name in ("clean", "unclean", "lost"))
    yield f"Elections        {kinds}"
    without = show_duration(terms["without_ms"])
    yield f"Controllers      {terms['terms']:,} terms, {without} without one"
    yield from describe_present(facts["at_end"], moves["under_way"], moves["oldest_under_way"])
    yield "The document (--format json) has more; `reassure report` makes a page of it."
    yield ""


_ENDS: Final = ("completed", "taken_back", "given_up", "under_way")
_LAGS: Final = {
    "under_ms": "under-replicated",
    "moving_ms": "behind in moves",
    "offline_ms": "without a leader",
}


def _describe_observed(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield what should be known of observations, and which clauses would take some."""
    observed = report["observed"]
    for torn in observed["torn"] if observed else ():
        yield (
            f"{torn['file']}: line {torn['line']} is incomplete ({show_text(torn['writer'])} was "
            "killed): it counts as missing"
        )
    if observed and observed["twice"]:
        yield f"{observed['twice']} lines are duplicates, and count once"
    reasons: dict[str, list[str]] = {}
    for unjudged in report["unjudged"]:
        reasons.setdefault(unjudged["reason"], []).append(unjudged["clause"])
    for reason, clauses in reasons.items():
        yield f"NOT JUDGED {', '.join(clauses)}: {reason}"
