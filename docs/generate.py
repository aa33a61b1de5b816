"""Write the generated parts of the documentation: clauses, findings, readings, state machines.

They come from the same records and tables as the code. `make docs` writes them; a test compares.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Final, TypeVar

from reassure_conformance.matrix import collect_sources, format_checks
from reassure_conformance.worlds.kafka42 import format_effect as format_move_effect
from reassure_conformance.worlds.kip455 import format_effect as format_shipped_effect
from reassure_conformance.worlds.reassignment import format_write
from reassure_model import kafka42, kip455, system
from reassure_model.outcome import Accepted
from reassure_model.owed import next_write
from reassure_model.state import LeaderAndIsr
from reassure_model.tables import (
    DROP_PATH,
    PARTITION_TABLES,
    REPLICA_TABLES,
)
from reassure_spec.clauses import load_clauses
from reassure_spec.findings import FINDINGS
from reassure_spec.matrix import make_matrix
from reassure_spec.readings import PROFILES, READINGS, get_profile
from reassure_spec.znodes import ReplicaList

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
    """Return the list of clauses, by chapter, with what carries out and checks each."""
    lines: list[str] = []
    chapter = ""
    sources = collect_sources(HERE.parent / "tests")
    for row in make_matrix(tuple(load_clauses().values()), sources):
        clause = row.clause
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
            f"- Checks: {format_checks(row.places)}",
            *([f"- Told by no scenario: {clause.untold}"] if clause.untold else []),
            "",
        ]
    return _page(
        "Clauses",
        "*Checks* says what in the model carries a clause out, and what judges, proves, tells,",
        "plants against or tests it. The judge puts writes to the rules of the model; only what it",
        "looks at besides is listed as its own. A theorem marked as refuted is expected to be.",
        "",
        *lines[:-1],
    )


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
            "Shown by": finding.shown_by or f"nothing that runs: {finding.words_only}",
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


_FROM: Final = (1, 2, 3)
_TO: Final = (4, 5, 6)
_STEP: Final = ("what is done", "assigned", "leader", "in sync", "leader epoch")
Row = tuple[str, str, str, str, str]


def _row(what: str, assigned: ReplicaList, leader: int, isr: ReplicaList, epoch: int) -> Row:
    return (what, str(list(assigned)), str(leader), str(list(isr)), str(epoch))


def _walk_first() -> Iterator[Row]:
    """Yield the seven steps of the first reassignment, with all four repairs of its readings."""
    readings, joined = get_profile("kip-236-amended"), False
    move = kafka42.make_move(_FROM, frozenset(_FROM + _TO))
    move = replace(move, path=_TO, wanted=_TO)
    while True:
        effect = kafka42.next_effect(move, readings)
        if effect is not None:
            move, what = kafka42.apply_effect(move, effect), format_move_effect(effect)
        elif not joined:
            move, what, joined = replace(move, isr=_FROM + _TO), "the target catches up", True
        else:
            return
        yield _row(what, move.assigned, move.leader, move.isr, move.leader_epoch)


def _walk_requests() -> Iterator[Row]:
    """Yield the writes of KIP-236 from request to completion."""
    readings, targets = get_profile("kip-236"), list(_TO)
    state: system.System = system.make_system(_FROM, _FROM + _TO)
    actions: list[system.Action] = [system.Controller(), system.Submit(_TO)]
    while True:
        owed = next_write(state.partition, state.around, readings)
        action = actions.pop(0) if actions else system.Controller()
        what = f"{type(action).__name__.lower()} {list(_TO)}"
        if isinstance(action, system.Controller) and owed is None:
            if not targets:
                return
            action = system.Join(targets.pop(0))
            what = f"{action.replica} catches up"
        elif isinstance(action, system.Controller) and owed is not None:
            what = format_write(owed.write, state.partition)
        outcome = system.step(state, action, readings)
        assert isinstance(outcome, Accepted)
        state = outcome.state
        here = state.partition.state or LeaderAndIsr(-1, 0, 0, ())
        assigned = state.partition.assigned or ()
        yield _row(what, assigned, here.leader, here.isr, here.leader_epoch)


def _walk_shipped() -> Iterator[Row]:
    """Yield the phases of a shipped controller, with the target in the old znode."""
    shipped, joined = kip455.make_shipped(_FROM, frozenset(_FROM + _TO)), False
    shipped = replace(shipped, entry=_TO, unread=True)
    while True:
        effect, before = kip455.next_effect(shipped), shipped
        if effect is not None:
            outcome = kip455.step(shipped, system.Controller())
            assert isinstance(outcome, Accepted)
            shipped = outcome.state
            what = format_shipped_effect(effect, before, shipped).partition(": leader")[0]
        elif not joined:
            shipped, what, joined = replace(shipped, isr=_FROM + _TO), "the target catches up", True
        else:
            return
        yield _row(what, shipped.assigned, shipped.leader, shipped.isr, shipped.leader_epoch)


def render_worked_moves() -> str:
    """Return the same move under three protocols, effect by effect."""
    return _page(
        "One move under three protocols",
        f"From {list(_FROM)} to {list(_TO)}, led by {_FROM[0]}, with nothing going wrong. A crash",
        "can fall between any two lines.",
        "",
        "## KAFKA-42 with its four repairs",
        "",
        *_table(_STEP, _walk_first()),
        "",
        "## KIP-236",
        "",
        *_table(_STEP, _walk_requests()),
        "",
        "## Shipped controllers (KIP-455), by the old znode",
        "",
        *_table(_STEP, _walk_shipped()),
    )


PAGES: Final = {
    "clauses.md": render_clauses,
    "findings.md": render_findings,
    "readings.md": render_readings,
    "figures/state-machines.md": render_state_machines,
    "figures/worked-moves.md": render_worked_moves,
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
