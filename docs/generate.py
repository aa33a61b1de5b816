"""Write the generated parts of the documentation: clauses, findings, readings, state machines.

They come from the same records and tables as the code. `make docs` writes them; a test compares.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Final, TypeVar

from reassure_model.tables import (
    DROP_PATH,
    PARTITION_TABLES,
    REPLICA_TABLES,
)
from reassure_spec.clauses import load_clauses
from reassure_spec.findings import FINDINGS
from reassure_spec.readings import PROFILES, READINGS

HERE: Final = Path(__file__).parent
_NOTE: Final = "<!-- Written by `make docs`. Do not edit. -->"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def _page(title: str, *lines: str) -> str:
    return "\n".join((f"# {title}", "", _NOTE, "", *lines)) + "\n"


def render_clauses() -> str:
    """Return the list of clauses, by chapter."""
    lines: list[str] = []
    chapter = ""
    for clause in load_clauses().values():
        if clause.chapter != chapter:
            chapter = clause.chapter
            lines += [f"## {chapter}", ""]
        lines += [
            f"### `{clause.id}`",
            "",
            clause.sentence,
            "",
            f"- Level: {clause.level}",
            f"- Source: {clause.source}",
            f"- Profiles: {', '.join(clause.profiles)}",
            f"- Why: {clause.why}",
            "",
        ]
    return _page("Clauses", *lines[:-1])


def render_findings() -> str:
    """Return the register of findings, by area."""
    lines: list[str] = []
    area = ""
    for finding in FINDINGS:
        if finding.id.partition("-")[0] != area:
            area = finding.id.partition("-")[0]
            lines += [f"## {area}", ""]
        facts = {
            "Document": finding.document,
            "Smallest instance": finding.instance,
            "Clauses": ", ".join(f"`{name}`" for name in finding.clauses),
            "Readings": ", ".join(f"`{name}`" for name in finding.readings),
            "Profiles": ", ".join(finding.profiles),
            "Shown by": finding.shown_by or "nothing yet",
        }
        lines += [f"### {finding.id}: {finding.title}", "", finding.statement, ""]
        lines += [f"- {name}: {value}" for name, value in facts.items() if value]
        lines += [""]
    return _page("Findings", *lines[:-1])


def render_readings() -> str:
    """Return the readings with their values, and what each profile takes."""
    reasons = [
        (f"`{reading.name}`", ", ".join(reading.values), reading.why, reading.source)
        for reading in READINGS
    ]
    choices = {name: readings.as_dict() for name, readings in PROFILES.items()}
    taken = [
        (f"`{reading.name}`", *(choices[name][reading.name] for name in PROFILES))
        for reading in READINGS
    ]
    return _page(
        "Readings",
        "A reading is one of the named ways to understand a disputed sentence. The first value is",
        "the default.",
        "",
        *_table(("reading", "values", "why the first", "source"), reasons),
        "",
        "## What each profile takes",
        "",
        *_table(("reading", *PROFILES), taken),
    )


State = TypeVar("State", bound=Enum)


def _name(state: Enum) -> str:
    return "".join(word.capitalize() for word in state.name.split("_"))


def _diagram(table: Mapping[State, frozenset[State]]) -> list[str]:
    arrows = [
        f"    {_name(previous)} --> {_name(state)}"
        for state, before in table.items()
        for previous in sorted(before, key=lambda each: each.value)
    ]
    return ["```mermaid", "stateDiagram-v2", "    [*] --> NonExistent", *arrows, "```"]


def _machines(title: str, tables: Mapping[str, Mapping[State, frozenset[State]]]) -> Iterator[str]:
    groups: dict[tuple[str, ...], list[str]] = {}
    for profile, table in tables.items():
        groups.setdefault(tuple(_diagram(table)), []).append(profile)
    for diagram, profiles in groups.items():
        yield from (f"## {title}: {', '.join(profiles)}", "", *diagram, "")


def render_state_machines() -> str:
    """Return the state machines as diagrams, each table once with the profiles that use it."""
    path = " → ".join(_name(state) for state in DROP_PATH)
    return _page(
        "State machines",
        *_machines("Replica", REPLICA_TABLES),
        *_machines("Partition", PARTITION_TABLES),
        "## A dropped replica",
        "",
        path,
    )


PAGES: Final = {
    "clauses.md": render_clauses,
    "findings.md": render_findings,
    "readings.md": render_readings,
    "figures/state-machines.md": render_state_machines,
}
"""The generated pages, by path below docs/."""


def main() -> None:
    """Write every page."""
    for name, render in PAGES.items():
        path = HERE / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
