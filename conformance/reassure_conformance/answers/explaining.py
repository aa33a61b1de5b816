"""What the verb `explain` answers: everything that a report names, by its kind.

A kind has names and something to say of each; `KINDS` is the one list of them, from which the shell
completes names as well. A name of several kinds is explained as each of them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from textwrap import wrap
from types import MappingProxyType
from typing import Any, Final

from reassure_conformance.report import display
from reassure_conformance.report.cases import ADVISED, FAILED, OPEN
from reassure_conformance.report.document import HOLDS, RESULT, Document, read_result
from reassure_conformance.report.qualified import read_report
from reassure_conformance.report.spelling import spell_verb
from reassure_conformance.report.terminal import describe_violation
from reassure_spec.clauses import clauses_of_profile, load_clauses
from reassure_spec.errors import BadUsage
from reassure_spec.profiles import DEFAULT_PROFILE, PROTOCOLS
from reassure_spec.readings import READINGS, get_profile
from reassure_spec.rooms import ROOMS

_INDENT: Final = 14
_WIDTH: Final = 110


class UnknownName(BadUsage):
    """A name that nothing has."""


@dataclass(frozen=True, slots=True)
class NamedKind:
    """A kind of things that reports name."""

    get_names: Callable[[], Iterable[str]]
    describe: Callable[[str], Iterator[str]]
    """Yields the lines that explain a name."""


def find_kinds(name: str) -> tuple[str, ...]:
    """Return the kinds that have something of this name."""
    return tuple(kind for kind in KINDS if name in KINDS[kind].get_names())


def complete_name(beginning: str, *kinds: str) -> Iterator[tuple[str, str]]:
    """Yield the names that begin so, each with its kind; of all kinds where none is given."""
    for kind in kinds or KINDS:
        for name in KINDS[kind].get_names():
            if name.startswith(beginning):
                yield name, kind


def explain_document(what: str, width: int | None = None) -> Document:
    """Explain a name, or the directory of a run; `width` is a terminal's.

    Raises UnknownName, with the names that are nearest, and BadResult.
    """
    kinds = find_kinds(what)
    if kinds:
        parts = [[f"{kind} {what}", *KINDS[kind].describe(what)] for kind in kinds]
        lines = [line for part in parts for line in (*part, "")][:-1]
    elif (Path(what) / RESULT).exists():
        kinds, lines = ("run",), list(_describe_run(Path(what), width))
    else:
        raise UnknownName(
            f"{what!r} is neither a known name nor the directory of a run.{_hint(what)}"
        )
    body = {"text": lines, "kinds": list(kinds)}
    return Document("explain", HOLDS, None, {"lines": len(lines)}, body=body)


def _hint(what: str) -> str:
    names = dict(complete_name(""))
    near = get_close_matches(what, names, n=3)
    if near:
        return f" Did you mean {' or '.join(f'{name} ({names[name]})' for name in near)}?"
    return f" Names are those of {', '.join(KINDS)}; `reassure spec list` lists the clauses."


def _tell(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield what there is to say under each title, wrapped."""
    for title, value in facts.items():
        text = ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
        if text:
            start = f"  {f'{title}  ':<{_INDENT - 2}}"
            below = " " * len(start)
            yield from wrap(
                text, _WIDTH, initial_indent=start, subsequent_indent=below, break_on_hyphens=False
            )


def _tell_paragraph(text: str) -> Iterator[str]:
    yield from wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")
    yield ""


# Of the spec ------------------------------------------------------------------------------------


def _describe_clause(name: str) -> Iterator[str]:
    from reassure_conformance.answers.clause_matrix import find_places

    clause = load_clauses()[name]
    yield f"  {clause.sentence}"
    yield ""
    yield from _tell(
        {
            "Level": clause.level,
            "Chapter": clause.chapter,
            "Source": clause.source,
            "Profiles": clause.profiles,
            "Why": clause.why,
            "Unseen": clause.unseen or "",
            "In code": find_places(name) or "(none)",
        }
    )


def _list_findings() -> Iterable[str]:
    from reassure_spec.findings import FINDINGS

    return [finding.id for finding in FINDINGS]


def _describe_finding(name: str) -> Iterator[str]:
    from reassure_conformance.answers.clause_matrix import describe_finding, find_shown
    from reassure_spec.findings import FINDINGS

    (finding,) = (each for each in FINDINGS if each.id == name)
    yield f"  {finding.title}"
    yield from _tell_paragraph(finding.statement)
    yield from _tell(describe_finding(finding, find_shown().get(name, ())))


def _describe_reading(name: str) -> Iterator[str]:
    from reassure_spec.findings import FINDINGS

    (reading,) = (each for each in READINGS if each.name == name)
    chosen: dict[str, list[str]] = {value: [] for value in reading.values}
    for profile in PROTOCOLS:
        chosen[get_profile(profile).as_dict()[name]].append(profile)
    refused = {
        f"{value} by {room.name}": room.refuses[name, value]
        for room in ROOMS.values()
        for value in reading.values
        if (name, value) in room.refuses
    }
    for room in ROOMS.values():
        if name in room.alike:
            refused[f"any other by {room.name}"] = room.alike[name]
    yield from _tell(
        {
            "Why": reading.why,
            "Source": reading.source,
            **{value: profiles or "in no profile" for value, profiles in chosen.items()},
            "Clauses": [c.id for c in load_clauses().values() if name in c.source.split()],
            "Findings": [each.id for each in FINDINGS if name in " ".join(each.readings)],
            "Refused": "; ".join(f"{what}: {why}" for what, why in refused.items()),
            "Try it": f"--reading {name}={reading.values[-1]}",
        }
    )


def _describe_profile(name: str) -> Iterator[str]:
    from reassure_model.machine import find_machines

    machines, usual = find_machines(), get_profile(DEFAULT_PROFILE).as_dict()
    readings = get_profile(name).as_dict().items()
    protocols = [
        f"{each}: {machines[each].summary}" for each in PROTOCOLS[name] if each in machines
    ]
    yield from _tell(
        {
            "Protocols": "; ".join(protocols) or PROTOCOLS[name],
            "Clauses": f"{len(clauses_of_profile(name))}; `reassure spec list --profile {name}`",
            "Readings": [f"{reading}={v}" for reading, v in readings if v != usual[reading]]
            or f"those of {DEFAULT_PROFILE}",
            "Compare": f"reassure spec diff {DEFAULT_PROFILE} {name}",
        }
    )


# What is asked ----------------------------------------------------------------------------------


def _list_theorems() -> Iterable[str]:
    from reassure_proofs.engine.register import get_theorems

    return [theorem.name for theorem in get_theorems()]


def _describe_theorem(name: str) -> Iterator[str]:
    from reassure_proofs.engine.register import get_theorems

    (theorem,) = get_theorems([name])
    yield from _tell_paragraph(theorem.statement)
    expected = f"{theorem.expected}, which shows finding {theorem.finding}"
    yield from _tell(
        {
            "Expected": expected if theorem.finding else theorem.expected,
            "Clause": theorem.clause or "none: a lemma",
            "About": f"{theorem.subject.words} ({theorem.subject.name})",
            "Profile": theorem.profile,
            "Readings": theorem.subject.changes,
            "Assumes": [each.name for each in theorem.hypotheses],
            "Scenario": theorem.scenario,
            "Prove it": f"reassure prove {name}; add --explain for its assumptions",
        }
    )


def _list_faults() -> Iterable[str]:
    from reassure_conformance.mutants import load_mutants

    return load_mutants()


def _describe_fault(name: str) -> Iterator[str]:
    from reassure_conformance.mutants import load_mutants

    mutant = load_mutants()[name]
    yield f"  {mutant.sentence}"
    yield ""
    yield from _tell(
        {
            "Changes": "brokers" if mutant.of_brokers else "the controller",
            "Caught by": sorted(mutant.clauses),
            "Profile": mutant.profile,
            "Readings": [f"{reading}={value}" for reading, value in mutant.readings.items()],
            "Run it": f"reassure mutants {name}",
        }
    )


@cache
def _load_mutants() -> Mapping[str, Mapping[str, Any]]:
    """Return the mutants of the rules by name, and by profile what kills each, or why nothing."""
    from reassure_mutation.table import find_worlds, load_table

    found: dict[str, dict[str, Any]] = {}
    for profile in PROTOCOLS:
        for module in find_worlds(profile):
            table = load_table(module, profile)
            for name, told in {**table.killable, **table.survivors}.items() if table else ():
                found.setdefault(name, {})[profile] = told
    return found


@cache
def _load_sentences(profile: str) -> Mapping[str, str]:
    from reassure_mutation.table import find_worlds, make_reference

    references = [make_reference(module, profile) for module in find_worlds(profile)]
    return {each.name: each.sentence for one in references for each in one.list_mutants()}


def _describe_mutant(name: str) -> Iterator[str]:
    told = _load_mutants()[name]
    sentences = (_load_sentences(profile).get(name) for profile in told)
    yield from _tell_paragraph(next(filter(None, sentences), "of rules that have changed since"))
    for profile, said in told.items():
        if isinstance(said, str):
            yield from _tell({"Profile": profile, "Survives": said})
        else:
            steps = "; ".join(said.steps)
            yield from _tell({"Profile": profile, "Killed by": said.clause, "Test case": steps})


def _list_scopes() -> Iterable[str]:
    from reassure_explorer.scopes.catalogue import COUNTEREXAMPLES, MEETINGS, SCOPES

    return [*SCOPES, *MEETINGS, *COUNTEREXAMPLES]


def _describe_scope(name: str) -> Iterator[str]:
    from reassure_conformance.answers.exploring import format_counts
    from reassure_explorer.counterexamples import list_counterexamples
    from reassure_explorer.scopes.catalogue import get_scope

    scope = get_scope(name)
    model = scope.make_model(get_profile(scope.profile))
    tale = next((each for each in list_counterexamples() if each.name == name), None)
    states, steps, depth = format_counts(name, scope.profile)
    counted = f"{states} states, {steps} steps, depth {depth}"
    yield from _tell_paragraph(scope.summary)
    yield from _tell(
        {
            "Profile": scope.profile,
            "Size": "" if states == "-" else counted,
            "Invariants": [check.name for check in model.invariants],
            "Finding": "" if tale is None else f"{tale.finding}, in {tale.steps} steps",
            "Explore it": f"reassure explore --scope {name}",
        }
    )


def _list_stories() -> Iterable[str]:
    from reassure_conformance.gate.story import shipped_stories

    return [story.name for story in shipped_stories()]


def _describe_story(name: str) -> Iterator[str]:
    from reassure_conformance.gate.story import shipped_stories

    (story,) = (each for each in shipped_stories() if each.name == name)
    yield from _tell_paragraph(" ".join(story.why))
    yield from (f"  {n}. {step!s}" for n, step in enumerate(story.steps, start=1))
    yield ""
    yield from _tell(
        {
            "Brokers": story.brokers,
            "Profiles": story.profiles or "all",
            "Needs": sorted(story.needs),
            "Violates": story.violates,
            "Run it": f"reassure test --case {name}",
        }
    )


def _list_scenarios() -> Iterable[str]:
    from reassure_conformance.scenarios.scenario import find_scenarios

    return [f"{path.parent.name}/{path.stem}" for path in find_scenarios()]


def _describe_scenario(name: str) -> Iterator[str]:
    from reassure_conformance.scenarios.scenario import find_scenario, read_scenario

    path = find_scenario(name)
    scenario = read_scenario(path)
    yield from (f"  {line}".rstrip() for line in path.read_text("utf-8").splitlines())
    yield ""
    facts = {"Clauses": scenario.clauses, "Findings": scenario.findings}
    yield from _tell({**facts, "Run it": f"reassure scenarios {name}"})


def _list_capabilities() -> Iterable[str]:
    from reassure_conformance.adapter import CAPABILITIES

    return CAPABILITIES


def _describe_capability(name: str) -> Iterator[str]:
    from reassure_conformance.adapter import OPTIONAL, Adapter
    from reassure_conformance.gate.requirements import list_needing
    from reassure_conformance.gate.steps import NEEDS

    mark = f" (capability `{name}`)"
    told = {method: made.__doc__ or "" for method, made in vars(Adapter).items() if callable(made)}
    asked = {method: text.replace(mark, "") for method, text in told.items() if mark in text}
    besides = OPTIONAL.get(name)
    for method, made in vars(besides).items() if besides else ():
        if callable(made) and not method.startswith("_"):
            asked[method] = made.__doc__ or ""
    steps = [_spell(step.__name__) for step, need in NEEDS.items() if need == name]
    yield "  A capability that an implementation may declare."
    yield ""
    yield from _tell(
        {
            "Asked": "; ".join(
                f"{method}: {' '.join(text.split()).rstrip('.')}" for method, text in asked.items()
            ),
            "Steps": steps,
            "Clauses": list_needing(name),
            "More": "docs/adapter.md",
        }
    )


def _spell(name: str) -> str:
    """Return the name of a class as words.

    >>> _spell("ShutDown")
    'shut down'
    """
    return " ".join(re.findall("[A-Z][a-z]*", name)).lower()


def _describe_run(directory: Path, width: int | None) -> Iterator[str]:
    """Yield what went wrong in a run, or what it was about."""
    result = read_result(directory)
    report = read_report(result)
    if result.get("story"):
        yield from describe_violation(report, width)
        return
    yield f"{directory}: reassure {spell_verb(result['verb'])}, {report.headline}"
    cases = [case for case in report.cases if case.outcome in (FAILED, OPEN, ADVISED)]
    yield from (f"  {case.name}: {case.message}" for case in cases)
    if not cases:
        yield "  no violation, and nothing is unknown"
    yield f"  {display.say_counts(result['counts'])}"


KINDS: Final[Mapping[str, NamedKind]] = MappingProxyType(
    {
        "clause": NamedKind(load_clauses, _describe_clause),
        "finding": NamedKind(_list_findings, _describe_finding),
        "theorem": NamedKind(_list_theorems, _describe_theorem),
        "reading": NamedKind(lambda: [each.name for each in READINGS], _describe_reading),
        "fault": NamedKind(_list_faults, _describe_fault),
        "mutant of the rules": NamedKind(_load_mutants, _describe_mutant),
        "profile": NamedKind(lambda: PROTOCOLS, _describe_profile),
        "scope": NamedKind(_list_scopes, _describe_scope),
        "story": NamedKind(_list_stories, _describe_story),
        "scenario": NamedKind(_list_scenarios, _describe_scenario),
        "capability": NamedKind(_list_capabilities, _describe_capability),
    }
)
"""By kind, what has a name; the directory of a run is explained as well."""
