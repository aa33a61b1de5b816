"""Where each clause is carried out, judged, proved, explored, told and planted against.

The sources are what is there: the `clause` decorator (model and judge), the ids that the judge's
source names, the theorems, the invariants of the explorer's scopes, the heads of
scenarios, and the clauses expected of the planted faults. Nothing loads a solver.
"""

import ast
import importlib
import pkgutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from reassure_conformance.mutants import load_mutants
from reassure_conformance.scenarios.scenario import find_scenarios as find_files
from reassure_conformance.scenarios.scenario import read_scenario
from reassure_explorer.counterexamples import list_counterexamples
from reassure_explorer.scopes.catalogue import SCOPES
from reassure_explorer.scopes.sweep import INSTANCES
from reassure_spec.clauses import get_places, load_clauses
from reassure_spec.findings import Finding
from reassure_spec.matrix import Places
from reassure_spec.matrix import make_matrix as make_rows
from reassure_spec.readings import get_profile

SHOWN: Final = ("model", "judge", "proof", "exploration", "scenario", "fault")
COLUMNS: Final = ("clause", "level", *SHOWN)
MANY: Final = 2
"""Where more places than this name a clause, they are counted rather than listed."""


def group(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the places by clause id, each place once, in the order found."""
    found: dict[str, dict[str, None]] = {}
    for clause_id, place in pairs:
        found.setdefault(clause_id, {})[place] = None
    return {clause_id: list(places) for clause_id, places in found.items()}


def _import_room(room: str) -> Path:
    """Import every module of a room, so that its clauses are registered; return its folder."""
    package = importlib.import_module(room)
    for module in pkgutil.walk_packages(package.__path__, f"{room}."):
        importlib.import_module(module.name)
    return Path(package.__path__[0])


def find_registered(room: str) -> Places:
    """Return where the decorator names clauses in a room, by dotted names inside the room."""
    _import_room(room)
    return group(
        (clause_id, place.removeprefix(f"{room}."))
        for clause_id, places in get_places().items()
        for place in sorted(places)
        if place.startswith(f"{room}.")
    )


def find_mentions(path: Path, known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield known clause id and place for each text of a file that is such an id.

    The place is the module, a package by its folder, and, where the text stands inside one, the
    class and function.
    """

    def walk(node: ast.AST, place: str) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            place = f"{place}.{node.name}"
        if isinstance(node, ast.Constant) and node.value in known:
            yield str(node.value), place
        for child in ast.iter_child_nodes(node):
            yield from walk(child, place)

    tree = ast.parse(path.read_text(encoding="utf-8"))
    return walk(tree, path.parent.name if path.stem == "__init__" else path.stem)


def find_judged() -> Places:
    """Return where the judge names each clause, in a decorator or in a violation."""
    registered = find_registered("reassure_judge")
    known = load_clauses()
    pairs = [(clause_id, place) for clause_id, places in registered.items() for place in places]
    for path in sorted(_import_room("reassure_judge").rglob("*.py")):
        pairs += find_mentions(path, known)
    return group(pairs)


def find_theorems() -> Places:
    """Return the theorems of each clause: those proved, then those refuted, as expected."""
    from reassure_proofs.engine.register import get_theorems

    theorems = sorted(get_theorems(None), key=lambda theorem: theorem.expected != "proved")
    return group(
        (theorem.clause, theorem.name + ("" if theorem.expected == "proved" else " (refuted)"))
        for theorem in theorems
        if theorem.clause
    )


def find_explorations() -> Places:
    """Return the scopes in which each clause is looked at in every state, those that break it last.

    A standard scope may break a clause as well; the small ones are there because they do.
    """
    scopes = ((scope, scope.make_model(get_profile(scope.profile))) for scope in SCOPES.values())
    known = load_clauses()
    pairs = [
        (check.name, scope.name)
        for scope, model in scopes
        for check in model.invariants
        if check.name in known
    ]
    pairs += [(tale.clause, f"{tale.name} (broken)") for tale in list_counterexamples()]
    return group(pairs)


def find_scenarios() -> Places:
    """Return the scenarios of each clause."""
    return group(
        (clause_id, f"{path.parent.name}/{path.stem}")
        for path in find_files()
        for clause_id in read_scenario(path).clauses
    )


def find_faults() -> Places:
    """Return the planted faults that each clause is made for."""
    mutants = load_mutants().values()
    return group((clause_id, one.name) for one in mutants for clause_id in one.clauses)


def collect_sources() -> dict[str, Places]:
    """Return everything that names clauses, by column."""
    return {
        "model": find_registered("reassure_model"),
        "judge": find_judged(),
        "proof": find_theorems(),
        "exploration": find_explorations(),
        "scenario": find_scenarios(),
        "fault": find_faults(),
    }


def find_places(clause_id: str) -> list[str]:
    """Return where a clause is carried out, judged and proved, by dotted names."""
    found = {"reassure_model": find_registered("reassure_model"), "reassure_judge": find_judged()}
    places = [f"{room}.{name}" for room in found for name in found[room].get(clause_id, ())]
    places += [f"theorem {name}" for name in find_theorems().get(clause_id, ())]
    return places + [f"exploration {name}" for name in find_explorations().get(clause_id, ())]


def make_matrix(most: int | None = None) -> list[list[Any]]:
    """Return one row of `COLUMNS` for each clause of the spec, in its order.

    Of more than `most` places in a cell, only that many are named and the rest are counted.
    """
    return [
        [row.clause.id, row.clause.level, *(_cell(row.places[name], most) for name in SHOWN)]
        for row in make_rows(tuple(load_clauses().values()), collect_sources())
    ]


def _cell(places: Sequence[str], most: int | None) -> str:
    shown = list(places[:most])
    rest = len(places) - len(shown)
    return ", ".join([*shown, f"and {rest} more"] if rest else shown)


# Findings ---------------------------------------------------------------------------------------


@cache
def find_shown() -> Mapping[str, Sequence[str]]:
    """Return what shows each finding, by its id: scenarios, refuted theorems, explorations.

    Each of them names the findings that it shows; nothing is said twice.
    """
    from reassure_proofs.engine.register import get_theorems

    pairs = [
        (finding, f"scenario {scenario.area}/{scenario.name}")
        for scenario in map(read_scenario, find_files())
        for finding in scenario.findings
    ]
    pairs += [(each.finding, f"theorem {each.name}") for each in get_theorems() if each.finding]
    pairs += [(each.finding, f"exploration {each.scope}") for each in INSTANCES]
    return group(pairs)


def describe_finding(finding: Finding, shown: Sequence[str]) -> Mapping[str, str]:
    """Return what there is to say of a finding beside its statement, by title; `shown` shows it."""
    facts = {
        "Document": finding.document,
        "Smallest instance": finding.instance,
        "Clauses": ", ".join(f"`{name}`" for name in finding.clauses),
        "Readings": ", ".join(f"`{name}`" for name in finding.readings),
        "Profiles": ", ".join(finding.profiles),
        "Shown by": ", ".join(shown) or f"nothing that runs: {finding.words_only}",
        "Of our own making": finding.own,
        "Observed": finding.observed,
    }
    return {title: text for title, text in facts.items() if text}
