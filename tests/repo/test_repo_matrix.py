"""Every clause is checked somewhere, and nothing checks a clause that there is not."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from reassure_conformance.answers import places as where
from reassure_conformance.answers.mentions import find_tests_of
from reassure_spec.clauses import Clause, load_clauses
from reassure_spec.matrix import Places, Row, find_unchecked, find_unknown, make_matrix

ROOT = Path(__file__).parents[2]


@cache
def collect_sources() -> Mapping[str, Places]:
    """Return everything that names clauses, by column, tests included."""
    return where.collect_sources(ROOT / "tests")


CHECKS = ("proof", "exploration", "scenario", "fault", "test")
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


TESTS = """
import pytest

CASES = [("a.b", 1)]
TABLE = {"x": CASES}
KEPT: str = "a.c"

@pytest.mark.parametrize("case", TABLE["x"])
def test_table(case): ...

@pytest.mark.clause(KEPT)
def test_constant(): ...

@pytest.mark.clause("a.typo")
def test_typo(): ...

def test_body():
    assert explain("a.b")
"""


def test_tests_are_found_by_their_decorators(tmp_path: Path) -> None:
    """Marks and tables of cases say what a test is about, unknown ids included; a body does not."""
    path = tmp_path / "test_x.py"
    path.write_text(TESTS, encoding="utf-8")
    assert list(find_tests_of(path, {"a.b", "a.c"})) == [
        ("a.b", "test_x::test_table"),
        ("a.c", "test_x::test_constant"),
        ("a.typo", "test_x::test_typo"),
    ]


@pytest.mark.parametrize(
    ("places", "line"),
    [
        ({"model": (), "test": ()}, "none"),
        (
            {"model": ("a.f", "a.g"), "judge": (), "fault": ("x",)},
            "model `a.f`, `a.g`; planted faults `x`",
        ),
        ({"scenario": ("d/a", "d/b", "d/c", "d/e")}, "scenarios 4, among them `d/a`"),
    ],
)
def test_checks_fit_on_one_line(places: dict[str, tuple[str, ...]], line: str) -> None:
    """Places are listed column by column, counted where they are many, and absent ones left out."""
    assert where.format_checks(places) == line
