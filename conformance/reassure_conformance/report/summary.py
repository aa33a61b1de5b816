"""A result as Markdown for the summary of a job: verdict, what failed, and what was counted."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from reassure_conformance.report.cases import (
    ADVISED,
    FAILED,
    OPEN,
    PASSED,
    SKIPPED,
    WORDS,
    Case,
    Result,
    describe_clause,
)
from reassure_conformance.report.display import fence, render_table, say_counts
from reassure_conformance.report.incident_lines import (
    list_facts,
    list_incidents,
    name_incident,
    say_when,
)
from reassure_conformance.report.qualified import read_report
from reassure_conformance.report.spelling import spell_verb
from reassure_conformance.report.timeline import draw_timeline

_SHOWN: Final = 20
"""How many cases of a kind are shown in full."""


def render_summary(result: Result) -> str:
    """Return the Markdown."""
    return "\n".join(_iterate(result)).rstrip() + "\n"


def _iterate(result: Result) -> Iterator[str]:
    report = read_report(result)
    cases = report.cases
    yield f"## reassure {spell_verb(result['verb'])}: {report.headline}"
    yield ""
    if report.notes:
        yield from (f"- {note}" for note in report.notes)
        yield ""
    about = [
        f"profile `{result['profile']}`" if result["profile"] else "",
        f"seed {result['seed']}" if result["seed"] is not None else "",
        say_counts(result["counts"]),
    ]
    yield "; ".join(filter(None, about))
    yield ""
    for outcome, title in ((FAILED, "Failed"), (OPEN, "Not settled")):
        yield from _list(title, [case for case in cases if case.outcome == outcome])
    yield from _list_incidents(result)
    if result.get("timeline"):
        yield from fence(draw_timeline(result["timeline"]), "markdown")
    if report.repeat:
        yield f"Repeat it with: `{report.repeat}`"
        yield ""
    groups = dict.fromkeys(case.group for case in cases)
    outcomes = (PASSED, FAILED, OPEN, ADVISED, SKIPPED)
    words = [WORDS[outcome] for outcome in outcomes]
    counts = {group: Counter(c.outcome for c in cases if c.group == group) for group in groups}
    rows = [
        [group, *(found[o] for o in outcomes), found.total()] for group, found in counts.items()
    ]
    if rows:
        yield render_table("What was checked", ["kind", *words, "all"], rows, "markdown")
    yield from _list("Warnings", [case for case in cases if case.outcome == ADVISED])


def _list_incidents(result: Result) -> Iterator[str]:
    incidents = list_incidents(result)
    if not incidents:
        return
    yield "### Incidents"
    yield ""
    for each in incidents[:_SHOWN]:
        yield f"- **{name_incident(each)}**: `{each['clause']}`, {say_when(each)}: {each['reason']}"
        yield from (
            f"  - {word}: {text}" for word, text in list_facts(each) if word not in ("of", "when")
        )
    if len(incidents) > _SHOWN:
        yield f"- and {len(incidents) - _SHOWN} more"
    yield ""


def _list(title: str, cases: list[Case]) -> Iterator[str]:
    if not cases:
        return
    yield f"### {title}"
    yield ""
    for case in cases[:_SHOWN]:
        sentence = describe_clause(case.name)
        yield f"- **`{case.name}`** {sentence}".rstrip()
        yield f"  {case.message}"
        if case.details:
            yield ""
            yield from (f"  {line}".rstrip() for line in fence(case.details, "markdown"))
    if len(cases) > _SHOWN:
        yield f"- and {len(cases) - _SHOWN} more"
    yield ""
