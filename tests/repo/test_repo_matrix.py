"""Every clause is checked somewhere, and nothing checks a clause that there is not."""

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from reassure_spec.clauses import Clause, get_places, load_clauses
from reassure_spec.matrix import Places, Row, find_unchecked, find_unknown, make_matrix

ROOT = Path(__file__).parents[2]


def find_registered(room: str) -> Places:
    """Return where the decorator names clauses in a room."""
    package = importlib.import_module(room)
    for module in pkgutil.walk_packages(package.__path__, f"{room}."):
        importlib.import_module(module.name)
    return {
        clause_id: sorted(place for place in places if place.startswith(room))
        for clause_id, places in get_places().items()
        if any(place.startswith(room) for place in places)
    }


def find_theorems() -> Places:
    """Return the theorems of each clause."""
    from reassure_proofs.theorems import get_theorems

    found: dict[str, list[str]] = {}
    for theorem in get_theorems(None):
        found.setdefault(theorem.clause, []).append(theorem.name)
    return found


def find_scenarios() -> Places:
    """Return the scenarios of each clause."""
    from reassure_conformance.scenarios import find_scenarios as paths
    from reassure_conformance.scenarios import read_scenario

    found: dict[str, list[str]] = {}
    for path in paths():
        for clause_id in read_scenario(path).clauses:
            found.setdefault(clause_id, []).append(f"{path.parent.name}/{path.stem}")
    return found


def find_faults() -> Places:
    """Return the planted faults that each clause is made for."""
    from reassure_conformance.faultmatrix import EXPECTED

    found: dict[str, list[str]] = {}
    for fault, clauses in EXPECTED.items():
        for clause_id in clauses:
            found.setdefault(clause_id, []).append(fault)
    return found


def read_marks(path: Path) -> Iterator[tuple[str, str]]:
    """Yield clause id and place of each `pytest.mark.clause` with a literal id in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.clause":
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value, f"{path.name}:{node.lineno}"


def read_literals(path: Path) -> Iterator[tuple[str, str]]:
    """Yield clause id and place of each text in a file that is the id of a clause."""
    known = set(load_clauses())
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and node.value in known:
            yield str(node.value), f"{path.name}:{node.lineno}"


def find_tests() -> Places:
    """Return the tests that are marked with each clause, or that name it in a table of cases."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for clause_id, place in (*read_marks(path), *read_literals(path)):
            found.setdefault(clause_id, []).append(place)
    return found


def find_judged() -> Places:
    """Return where the judge names each clause, in a decorator or in a violation."""
    found = {
        clause_id: list(places) for clause_id, places in find_registered("reassure_judge").items()
    }
    for path in sorted((ROOT / "judge").rglob("*.py")):
        for clause_id, place in read_literals(path):
            found.setdefault(clause_id, []).append(place)
    return found


@cache
def collect_sources() -> dict[str, Places]:
    """Return everything that names clauses, by column."""
    return {
        "model": find_registered("reassure_model"),
        "judge": find_judged(),
        "proof": find_theorems(),
        "scenario": find_scenarios(),
        "fault": find_faults(),
        "test": find_tests(),
    }


CHECKS = ("proof", "scenario", "fault", "test")
CARRIED_OUT = ("model", "judge")


@cache
def rows() -> tuple[Row, ...]:
    """Return the matrix."""
    return make_matrix(tuple(load_clauses().values()), collect_sources())


def test_no_unknown_clause_is_named() -> None:
    """Every id that code, theorems, scenarios, faults and tests name is the id of a clause."""
    assert find_unknown(tuple(load_clauses().values()), collect_sources()) == ()


def test_every_must_clause_is_checked() -> None:
    """Each MUST clause has a proof, a scenario, a planted fault or a test."""
    assert find_unchecked(rows(), CHECKS) == ()


def test_every_must_clause_is_carried_out() -> None:
    """Each MUST clause is carried out in the model or looked at by the judge."""
    assert find_unchecked(rows(), CARRIED_OUT) == ()


def make_clause(clause_id: str, level: str = "MUST") -> Clause:
    """Return a clause of which only id and level matter."""
    return Clause(clause_id, "A MUST b.", level, "x", ("kip-236",), "y.", "z")


@pytest.mark.parametrize(("level", "unchecked"), [("MUST", ("a.c",)), ("SHOULD", ())])
def test_matrix_notices_gaps(level: str, unchecked: tuple[str, ...]) -> None:
    """An id that no clause has and a MUST clause that nothing checks are both found."""
    clauses = (make_clause("a.b"), make_clause("a.c", level))
    sources = {"proof": {"a.b": ["theorem-1"]}, "test": {"a.d": ["test_x.py:3"]}}
    assert find_unknown(clauses, sources) == ("a.d in test: test_x.py:3",)
    found = make_matrix(clauses, sources)
    assert [dict(row.places) for row in found] == [
        {"proof": ("theorem-1",), "test": ()},
        {"proof": (), "test": ()},
    ]
    assert find_unchecked(found, ("proof", "test")) == unchecked
