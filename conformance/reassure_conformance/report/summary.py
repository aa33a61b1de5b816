"""A result as Markdown for the summary of a job: verdict, what failed, and what was counted."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from reassure_conformance.report.cases import (
    ADVISED,
    FAILED,
    OPEN,
    PASSED,
    Case,
    Result,
    describe_clause,
    list_cases,
)
from reassure_conformance.report.display import fence, render_table, say_counts
from reassure_conformance.report.timeline import draw_timeline

_SHOWN: Final = 20
"""How many cases of a kind are shown in full."""


def render_summary(result: Result) -> str:
    """Return the Markdown."""
    return "\n".join(_iterate(result)).rstrip() + "\n"


def _iterate(result: Result) -> Iterator[str]:
    cases = list_cases(result)
    yield f"## reassure {result['verb']}: {result['verdict']}"
    yield ""
    about = [
        f"profile `{result['profile']}`" if result["profile"] else "",
        f"seed {result['seed']}" if result["seed"] is not None else "",
        "" if result["seconds"] is None else f"{result['seconds']:.1f} s",
        say_counts(result["counts"]),
    ]
    yield "; ".join(filter(None, about))
    yield ""
    for outcome, title in ((FAILED, "Failed"), (OPEN, "Not settled"), (ADVISED, "Not followed")):
        yield from _list(title, [case for case in cases if case.outcome == outcome])
    if result.get("timeline"):
        yield from fence(draw_timeline(result["timeline"]), "markdown")
    if repeat := name_repeat(result):
        yield f"Repeat it with: `{repeat}`"
        yield ""
    groups = dict.fromkeys(case.group for case in cases)
    outcomes = (PASSED, FAILED, OPEN, ADVISED)
    counts = {group: Counter(c.outcome for c in cases if c.group == group) for group in groups}
    rows = [
        [group, *(found[o] for o in outcomes), found.total()] for group, found in counts.items()
    ]
    if rows:
        yield render_table("What was asked", ["kind", *outcomes, "all"], rows, "markdown")


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


def name_repeat(result: Result) -> str:
    """Return the command that repeats what a result tells, "" where there is none."""
    if "repeat" in result:
        return str(result["repeat"])
    directory = result.get("directory")
    return f"reassure replay {directory}" if directory and result.get("story") else ""
