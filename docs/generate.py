"""Build the pages that come from the same records and tables as the code.

`make docs` writes them to `docs/generated`, which is not tracked: tests build them as well and
follow their links. The findings and the readings are tracked and stand in `docs`, and so do the
sums of what is said of each theorem's hypotheses; tests compare these.
"""

import hashlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import cache, partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Final, TypeVar

from bugs_page import render_bugs
from clause_checks import collect_checks, format_checks
from mutation_scores import render_mutation
from pieces import make_anchor, make_page, make_table
from reference import REFERENCE

from reassure_conformance.answers.clause_matrix import describe_finding, find_shown
from reassure_conformance.report.lifecycle import name_write
from reassure_conformance.scenarios.scenario import (
    Scenario,
    find_scenario,
    find_scenarios,
    read_scenario,
)
from reassure_explorer.lifecycle import find_lives
from reassure_explorer.scopes.catalogue import COUNTS, SCOPES
from reassure_explorer.scopes.sweep import INSTANCES, Instance
from reassure_model.environment import Controller, Join
from reassure_model.machine import find_machines
from reassure_model.outcome import Accepted
from reassure_model.partition import LeaderAndIsr
from reassure_model.protocols import kafka_42, kafka_zk
from reassure_model.protocols.kafka_zk.machine import step as step_shipped
from reassure_model.protocols.kip_236 import next_write, system
from reassure_model.protocols.kip_236.narration import format_write
from reassure_model.state_machines import (
    DROP_PATH,
    PARTITION_TABLES,
    REPLICA_TABLES,
)
from reassure_proofs.engine.wording import format_sums
from reassure_spec.clauses import get_places, load_clauses
from reassure_spec.findings import FINDINGS, WITHDRAWN
from reassure_spec.matrix import Row, make_matrix
from reassure_spec.profiles import AMENDED_PROFILE, DEFAULT_PROFILE, list_profiles
from reassure_spec.readings import PROFILES, READINGS, get_profile
from reassure_spec.systems import SYSTEMS, System
from reassure_spec.znodes import ReplicaList

HERE: Final = Path(__file__).parent


def render_clauses() -> str:
    """Return the list of clauses, by chapter, with what carries out and checks each."""
    lines: list[str] = []
    chapter = ""
    for row in _rows():
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
            *([f"- Seen in no log: {clause.unseen}"] if clause.unseen else []),
            f"- Checks: {format_checks(row.places)}",
            *([f"- Told by no scenario: {clause.untold}"] if clause.untold else []),
            "",
        ]
    return make_page(
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
    shown = find_shown()
    for finding in FINDINGS:
        if finding.id.partition("-")[0] != area:
            area = finding.id.partition("-")[0]
            lines += [f"## {area}", ""]
        lines += [f"### {finding.id}: {finding.title}", "", finding.statement, ""]
        facts = describe_finding(finding, shown.get(finding.id, ()))
        lines += [f"- {name}: {value}" for name, value in facts.items()]
        lines += [""]
    lines += ["## Taken back", ""]
    lines += [f"- {each.id}, {each.title}: {each.reason}" for each in WITHDRAWN]
    return make_page("Findings", *lines)


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
    return make_page(
        "Readings",
        "A reading is one of the named ways to understand a disputed sentence. The first value is",
        "the default.",
        "",
        *make_table(("reading", "values", "why the first", "source"), reasons),
        "",
        "## What each profile takes",
        "",
        *make_table(("reading", *PROFILES), taken),
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


def _list_previous(table: Mapping[State, frozenset[State]]) -> Iterator[tuple[str, str]]:
    for state, before in table.items():
        previous = sorted(before, key=lambda each: each.value)
        yield _name(state), ", ".join(map(_name, previous))


def _machines(title: str, tables: Mapping[str, Mapping[State, frozenset[State]]]) -> Iterator[str]:
    groups: dict[tuple[str, ...], list[str]] = {}
    for profile, table in tables.items():
        groups.setdefault(tuple(_diagram(table)), []).append(profile)
    for diagram, profiles in groups.items():
        yield from (f"## {title}: {', '.join(profiles)}", "", *diagram, "")
        yield from make_table(("state", "from"), _list_previous(tables[profiles[0]]))
        yield ""


def _dropped_replica() -> Iterator[str]:
    yield from ("## A dropped replica", "", " → ".join(_name(state) for state in DROP_PATH), "")


def _lifecycle(protocol: str) -> Iterator[str]:
    """Yield the life that a protocol tells: its stages, and what leads on; nothing without one."""
    life = find_lives().get(protocol)
    if life is None:
        return
    order = list(life.stages)
    title = f"{life.of[0].upper()}{life.of[1:]}: {', '.join(list_profiles(protocol))}"
    yield from (f"## {title}", "")
    yield from ("```mermaid", "stateDiagram-v2", f"    [*] --> {_name(order[0])}")
    for (before, by), move in life.moves.items():
        for after in sorted(move.to, key=order.index):
            yield f"    {_name(before)} --> {_name(after)}: {name_write(by)}"
    yield from ("```", "")
    checked = (
        (_name(before), name_write(by), ", ".join(f"`{each}`" for each in move.clauses))
        for (before, by), move in life.moves.items()
    )
    yield from make_table(("stage", "what ends it", "what that is put to, in order"), checked)
    yield ""
    rows = (
        (
            _name(stage),
            stage.value,
            ", ".join(_name(each) for each in order if each in life.forgets.get(stage, ())),
        )
        for stage in order
    )
    yield from make_table(("stage", "what comes next", "after a failover"), rows)
    yield ""


def render_state_machines() -> str:
    """Return the state machines as diagrams, each table once with the profiles that use it."""
    lines = [
        *(line for protocol in find_machines() for line in _lifecycle(protocol)),
        *_machines("Replica", REPLICA_TABLES),
        *_machines("Partition", PARTITION_TABLES),
        *_dropped_replica(),
    ]
    return make_page("State machines", *lines[:-1])


# A page for each system --------------------------------------------------------------------------

_PREDICATE: Final = "Say so when "
"""How the docstring of a function begins that answers why something that must never be is."""
_COLUMNS: Final = ("model", "judge", "proof", "scenario", "fault", "test")
_UP: Final = ".."
_SHORT: Final = 40
"""A sentence of fewer characters says little by itself."""
_MOVES: Final = ("kafka-42", "requests", "shipped")
_STEPS: Final = " One move [step by step](../worked-moves.md)."


def _link(text: str, page: str, heading: str) -> str:
    return f"[{text}]({_UP}/{page}#{make_anchor(heading)})"


def _link_clause(clause_id: str) -> str:
    return _link(f"`{clause_id}`", "clauses.md", clause_id)


def _shorten(lines: Sequence[str]) -> str:
    """Return the first sentence, with the next where it is short, without the last dot."""
    first, *others = re.split(r"(?<=[a-z0-9\])])\.(?:\s|$)", " ".join(lines))
    return f"{first}. {others[0]}" if len(first) < _SHORT and any(others) else first


@cache
def _rows() -> tuple[Row, ...]:
    return make_matrix(tuple(load_clauses().values()), collect_checks(HERE.parent / "tests"))


@cache
def _scenarios() -> tuple[Scenario, ...]:
    return tuple(map(read_scenario, find_scenarios()))


def _list_checks(row: Row) -> str:
    """Return by what a clause is checked, with how many of each."""
    found = {name: len(row.places[name]) for name in _COLUMNS[1:] if row.places[name]}
    return ", ".join(f"{name} {count}" for name, count in found.items()) or "none"


def _clause_table(system: System) -> Iterator[str]:
    rows = [row for row in _rows() if system.has_clause(row.clause.id)]
    yield from make_table(
        ("clause", "level", "what it says", "carried out by", "checked by"),
        (
            (
                _link_clause(row.clause.id),
                row.clause.level,
                row.clause.sentence,
                ", ".join(f"`{place}`" for place in row.places["model"]),
                _list_checks(row),
            )
            for row in rows
        ),
    )
    counts = {name: sum(1 for row in rows if row.places[name]) for name in _COLUMNS}
    yield ""
    yield f"Of {len(rows)} clauses, so many have at least one of each:"
    yield ""
    yield from make_table(_COLUMNS, [[str(count) for count in counts.values()]])


def _module_table(system: System) -> Iterator[str]:
    modules = [(name, import_module(f"reassure_model.{name}")) for name in system.modules]
    yield from make_table(
        ("module", "what it is"),
        ((f"`{name}`", (module.__doc__ or "").splitlines()[0]) for name, module in modules),
    )


def _predicates(system: System) -> Iterator[tuple[str, str, str]]:
    """Yield clause, words and place of each function that answers why something is wrong."""
    for clause_id, places in get_places().items():
        for place in sorted(places):
            room, _, name = place.rpartition(".")
            module = room.removeprefix("reassure_model.")
            if module not in system.modules or not system.has_clause(clause_id):
                continue
            words = getattr(getattr(import_module(room), name, None), "__doc__", None) or ""
            if words.startswith(_PREDICATE):
                said = words.splitlines()[0].removeprefix(_PREDICATE).rstrip(".")
                yield _link_clause(clause_id), said, f"`{module}.{name}`"


def _goals(modules: Iterable[str]) -> Iterator[str]:
    for name in modules:
        for goal in getattr(import_module(f"reassure_model.{name}"), "GOALS", ()):
            yield f"- {goal if isinstance(goal, str) else goal.name}"


def _properties(system: System) -> Iterator[str]:
    wrong = sorted(set(_predicates(system)))
    refused = [row for row in wrong if row[2].endswith(".find_refusal`")]
    never = [row for row in wrong if row not in refused]
    goals = list(_goals(sorted({place.strip("`").rpartition(".")[0] for _, _, place in never})))
    if refused:
        columns = ("clause", "a request is refused when", "looked for by")
        yield from ("## What is refused", "", *make_table(columns, refused), "")
    if never:
        columns = ("clause", "broken when", "looked for by")
        yield from ("## What must never be", "", *make_table(columns, never), "")
    if goals:
        yield from ("## What must be reachable", "", *goals, "")


def _scopes(system: System) -> Iterator[str]:
    """Yield the scopes of the explorer that look at a clause of the system."""
    readings = get_profile(system.profiles[0])
    found = []
    for scope in SCOPES.values():
        names = [invariant.name for invariant in scope.make_model(readings).invariants]
        looked_at = [f"`{name}`" for name in names if system.has_clause(name)]
        if looked_at:
            found.append((f"`{scope.name}`", scope.summary, ", ".join(looked_at)))
    if found:
        yield from (
            "## Explored",
            "",
            *make_table(("scope", "what it holds", "clauses"), found),
            "",
        )


def _reading_table(system: System) -> Iterator[str]:
    """Yield the readings, each with the scenarios whose heads name its values."""
    rows = []
    for reading in READINGS:
        if system.has_reading(reading.name):
            told = [
                f"{value}: "
                + ", ".join(
                    f"`{each.area}/{each.name}`"
                    for each in _scenarios()
                    if each.overrides.get(reading.name) == value and each.area != "counterexamples"
                )
                for value in reading.values
            ]
            rows.append((f"`{reading.name}`", reading.why, "; ".join(told)))
    if rows:
        yield from (
            "## Readings",
            "",
            *make_table(("reading", "why its first value", "told"), rows),
        )
        yield ""


def _finding_table(system: System) -> Iterator[str]:
    shown = find_shown()
    rows = [
        (
            _link(finding.id, "../findings.md", f"{finding.id}: {finding.title}"),
            finding.title,
            finding.instance,
            ", ".join(shown.get(finding.id, ())) or finding.words_only,
        )
        for finding in FINDINGS
        if system.has_finding(finding.id)
    ]
    if rows:
        columns = ("finding", "title", "smallest instance", "shown by")
        yield from ("## Findings", "", *make_table(columns, rows), "")


def _scenario_table(system: System) -> Iterator[str]:
    own = [each for each in _scenarios() if each.area in system.areas]
    others = [
        f"`{each.area}/{each.name}`"
        for each in _scenarios()
        if each.area not in system.areas and system.has_scenario(each.area, each.clauses)
    ]
    yield from ("## Scenarios", "")
    yield from make_table(
        ("scenario", "what it shows"),
        ((_link_story(f"{each.area}/{each.name}"), _shorten(each.why)) for each in own),
    )
    if others:
        yield from ("", f"About its clauses as well: {', '.join(others)}.")


def _state_machines(system: System) -> Iterator[str]:
    for profile in system.machines:
        replicas, partitions = REPLICA_TABLES[profile], PARTITION_TABLES[profile]
        yield from _machines("Replica", {profile: replicas})
        yield from _machines("Partition", {profile: partitions})
    if "drop" in system.areas:
        yield from _dropped_replica()
    for protocol in system.lives:
        yield from _lifecycle(protocol)


def _link_story(name: str) -> str:
    path = find_scenario(name).relative_to(HERE.parent)
    return f"[`{name}`](../../../{path})"


def _asks(system: System) -> Iterator[str]:
    if system.asks:
        rows = [(words, ", ".join(map(_link_story, names))) for words, names in system.asks]
        yield from ("## What is asked for", "", *make_table(("what", "told by"), rows), "")


def render_system(system: System) -> str:
    """Return the page of one system: what it is, and everything that belongs to it."""
    return make_page(
        system.title,
        system.words,
        "",
        f"Profiles: {', '.join(system.profiles)}.{_STEPS if system.id in _MOVES else ''}",
        "",
        *_asks(system),
        "## Clauses",
        "",
        *_clause_table(system),
        "",
        "## In the model",
        "",
        *_module_table(system),
        "",
        *_state_machines(system),
        *_properties(system),
        *_scopes(system),
        *_reading_table(system),
        *_finding_table(system),
        *_scenario_table(system),
    )


def render_systems() -> str:
    """Return the list of the systems, with how much belongs to each."""
    rows = []
    for part in SYSTEMS:
        counts = (
            sum(map(part.has_clause, load_clauses())),
            sum(part.has_finding(finding.id) for finding in FINDINGS),
            sum(part.has_scenario(each.area, each.clauses) for each in _scenarios()),
        )
        rows.append((f"[{part.title}]({part.id}.md)", *map(str, counts)))
    return make_page(
        "Systems",
        "What the documents describe, a page each: in words, its clauses with what carries them",
        "out and checks them, state machines, what must never be, readings, findings, scenarios.",
        "",
        *make_table(("system", "clauses", "findings", "scenarios"), rows),
    )


# One move step by step ---------------------------------------------------------------------------

_FROM: Final = (1, 2, 3)
_TO: Final = (4, 5, 6)
_STEP: Final = ("what is done", "assigned", "leader", "in sync", "leader epoch")
Step = tuple[str, str, str, str, str]


def _row(what: str, assigned: ReplicaList, leader: int, isr: ReplicaList, epoch: int) -> Step:
    return (what, str(list(assigned)), str(leader), str(list(isr)), str(epoch))


def _walk_first() -> Iterator[Step]:
    """Yield the seven steps of the first reassignment, with all four repairs of its readings."""
    readings, joined = get_profile(AMENDED_PROFILE), False
    words = find_machines()["kafka-42"].vocabulary
    move = kafka_42.make_move(_FROM, frozenset(_FROM + _TO))
    move = replace(move, path=_TO, wanted=_TO)
    while True:
        effect = kafka_42.next_effect(move, readings)
        if effect is not None:
            after = kafka_42.apply_effect(move, effect)
            move, what = after, words.say_effect(effect, move, after)
        elif not joined:
            move, what, joined = replace(move, isr=_FROM + _TO), "the target catches up", True
        else:
            return
        yield _row(what, move.assigned, move.leader, move.isr, move.leader_epoch)


def _walk_requests() -> Iterator[Step]:
    """Yield the writes of KIP-236 from request to completion."""
    readings, targets = get_profile(DEFAULT_PROFILE), list(_TO)
    state: system.System = system.make_system(_FROM, _FROM + _TO)
    actions: list[system.Action] = [Controller(), system.Submit(_TO)]
    while True:
        owed = next_write(state.partition, state.around, readings)
        action = actions.pop(0) if actions else Controller()
        what = f"{type(action).__name__.lower()} {list(_TO)}"
        if isinstance(action, Controller) and owed is None:
            if not targets:
                return
            action = Join(targets.pop(0))
            what = f"{action.replica} catches up"
        elif isinstance(action, Controller) and owed is not None:
            what = format_write(owed.write, state.partition)
        outcome = system.step(state, action, readings)
        assert isinstance(outcome, Accepted)
        state = outcome.state
        here = state.partition.state or LeaderAndIsr(-1, 0, 0, ())
        assigned = state.partition.assigned or ()
        yield _row(what, assigned, here.leader, here.isr, here.leader_epoch)


def _walk_shipped() -> Iterator[Step]:
    """Yield the phases of a shipped controller, with the target in the old znode."""
    say_effect = find_machines()["kafka-zk"].vocabulary.say_effect
    shipped, joined = kafka_zk.make_shipped(_FROM, frozenset(_FROM + _TO)), False
    shipped = replace(shipped, entry=_TO, unread=True)
    while True:
        effect, before = kafka_zk.next_effect(shipped), shipped
        if effect is not None:
            outcome = step_shipped(shipped, Controller())
            assert isinstance(outcome, Accepted)
            shipped = outcome.state
            what = say_effect(effect, before, shipped).partition(": leader")[0]
        elif not joined:
            shipped, what, joined = replace(shipped, isr=_FROM + _TO), "the target catches up", True
        else:
            return
        yield _row(what, shipped.assigned, shipped.leader, shipped.isr, shipped.leader_epoch)


def render_worked_moves() -> str:
    """Return the same move under three protocols, effect by effect."""
    return make_page(
        "One move under three protocols",
        f"From {list(_FROM)} to {list(_TO)}, led by {_FROM[0]}, with nothing going wrong. A crash",
        "can fall between any two lines.",
        "",
        "## KAFKA-42 with its four repairs",
        "",
        *make_table(_STEP, _walk_first()),
        "",
        "## KIP-236",
        "",
        *make_table(_STEP, _walk_requests()),
        "",
        "## Shipped controllers (KIP-455), by the old znode",
        "",
        *make_table(_STEP, _walk_shipped()),
    )


# The explorer's scopes ---------------------------------------------------------------------------


def _format_counts(scope: str, profile: str) -> str:
    counts = COUNTS.get((scope, profile))
    return "not run to its end" if counts is None else " · ".join(f"{n:,}" for n in counts)


def _scope_table() -> Iterator[str]:
    yield from make_table(
        ("scope", "what it holds", "profile", "counts", "counts as amended"),
        (
            (
                f"`{scope.name}`",
                scope.summary,
                scope.profile,
                _format_counts(scope.name, scope.profile),
                _format_counts(scope.name, AMENDED_PROFILE),
            )
            for scope in SCOPES.values()
        ),
    )


def _format_rules(instance: Instance) -> str:
    readings = [f"{name}={value}" for name, value in instance.readings.items()]
    return ", ".join([instance.profile, *readings])


def _instance_table() -> Iterator[str]:
    yield from make_table(
        ("finding", "scope", "profile and readings", "breaks", "steps"),
        (
            (
                each.finding,
                f"`{each.scope}`",
                _format_rules(each),
                f"`{each.invariant}`",
                str(each.steps),
            )
            for each in INSTANCES
        ),
    )


def render_scopes() -> str:
    """Return the scopes of the explorer with their counts, and the findings that they show."""
    return make_page(
        "Scopes",
        "Counts are distinct states, steps and depth; [explorer](../explorer.md) says what of.",
        "",
        *_scope_table(),
        "",
        "## Findings as shortest traces",
        "",
        "The steps of a lasso are those of the way to its cycle and of the cycle.",
        "",
        *_instance_table(),
    )


# All pages ---------------------------------------------------------------------------------------


_PROVED: Final = ("spec", "model", "proofs")
"""The rooms on which what a theorem needs depends."""


def _sum_sources() -> str:
    """Return a checksum of all that the page of hypotheses depends on, the solver included."""
    found = hashlib.sha256(version("z3-solver").encode())
    for room in _PROVED:
        for path in sorted((HERE.parent / room).rglob("*.py")):
            found.update(f"{path.relative_to(HERE.parent)}\n".encode() + path.read_bytes())
    return found.hexdigest()[:16]


@cache
def render_hypotheses() -> str:
    """Return what each theorem needs; takes minutes, in a process of its own.

    Which of several smallest counterexamples a solver finds depends on what it was asked before.
    Each theorem is asked again without each of its hypotheses, on every path; so it is done once
    for the same sources, and kept in `build`.
    """
    kept = HERE.parent / "build" / f"hypotheses-{_sum_sources()}.md"
    if not kept.exists():
        command = [sys.executable, "-m", "reassure_proofs.engine.wording"]
        page = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(page, encoding="utf-8")
    return kept.read_text(encoding="utf-8")


TRACKED: Final[Mapping[str, Callable[[], str]]] = {
    "docs/findings.md": render_findings,
    "docs/readings.md": render_readings,
    "tests/proofs/hypotheses.sums": lambda: format_sums(render_hypotheses()),
}
"""What is tracked, by path below the root."""
PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "docs/generated/bugs.md": render_bugs,
    "docs/generated/clauses.md": render_clauses,
    "docs/generated/hypotheses.md": render_hypotheses,
    "docs/generated/mutation.md": render_mutation,
    "docs/generated/scopes.md": render_scopes,
    "docs/generated/state-machines.md": render_state_machines,
    "docs/generated/worked-moves.md": render_worked_moves,
    "docs/generated/systems/README.md": render_systems,
    **{f"docs/generated/{name}.md": render for name, render in REFERENCE.items()},
    **{f"docs/generated/systems/{part.id}.md": partial(render_system, part) for part in SYSTEMS},
}
"""What is built and not tracked."""


def main() -> None:
    """Write every page."""
    for name, render in (*TRACKED.items(), *PAGES.items()):
        path = HERE.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
