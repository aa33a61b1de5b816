"""Every clause is checked somewhere, and nothing checks a clause that there is not."""

import ast
import importlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from reassure_conformance.answers.clause_matrix import find_judged
from reassure_spec.clauses import Clause, load_clauses
from reassure_spec.matrix import Places, Row, make_matrix

ROOT = Path(__file__).parents[2]


@cache
def load_checks() -> ModuleType:
    """Return the script by which pages say what checks a clause."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        return importlib.import_module("clause_checks")


@cache
def collect_sources() -> Mapping[str, Places]:
    """Return everything that names clauses, by column, tests included."""
    found: Mapping[str, Places] = load_checks().collect_checks(ROOT / "tests")
    return found


CHECKS = ("proof", "exploration", "scenario", "fault", "test")
CARRIED_OUT = ("model", "judge")


@cache
def rows() -> tuple[Row, ...]:
    """Return the matrix."""
    return make_matrix(tuple(load_clauses().values()), collect_sources())


def find_unknown(clauses: Sequence[Clause], sources: Mapping[str, Places]) -> tuple[str, ...]:
    """Return a line for each id that a source names and no clause has."""
    known = {clause.id for clause in clauses}
    return tuple(
        f"{clause_id} in {name}: {', '.join(places)}"
        for name, found in sources.items()
        for clause_id, places in found.items()
        if clause_id not in known
    )


def find_unchecked(rows: Sequence[Row], columns: Sequence[str]) -> tuple[str, ...]:
    """Return the ids of the MUST clauses that none of these columns names."""
    return tuple(
        row.clause.id
        for row in rows
        if row.clause.level == "MUST" and not any(row.places[name] for name in columns)
    )


def test_no_unknown_clause_is_named() -> None:
    """Every id that code, theorems, scenarios, faults and tests name is the id of a clause."""
    assert find_unknown(tuple(load_clauses().values()), collect_sources()) == ()


def test_every_must_clause_is_checked() -> None:
    """Each MUST clause has a proof, a scenario, a planted fault or a test."""
    assert find_unchecked(rows(), CHECKS) == ()


def test_every_must_clause_is_carried_out() -> None:
    """Each MUST clause is carried out in the model or looked at by the judge."""
    assert find_unchecked(rows(), CARRIED_OUT) == ()


_TWO_SIDES = "functions of several protocols' actions break and keep it in branches of their own"
_TABLE = "its functions are listed by clause, each beside what carries the clause out"
WRITTEN_TWICE: Mapping[str, str] = {
    "controllers": _TWO_SIDES,
    "protocols.kafka_42.__init__": _TWO_SIDES,
    "protocols.kafka_42.machine": _TABLE,
    "protocols.kafka_4485.__init__": "the lag is defined in one place and estimated in another",
    "protocols.kafka_4485.invariants": _TABLE,
    "protocols.kafka_4485.replication": _TWO_SIDES,
    "protocols.kafka_zk.__init__": _TWO_SIDES,
    "protocols.kafka_zk.machine": _TABLE,
    "protocols.kip_236.__init__": "several functions carry out what the document says in one place",
    "invariants": _TABLE,
    "lives": _TABLE,
    "protocols.kip_236.promises": _TABLE,
    "protocols.kip_236_legacy.__init__": _TWO_SIDES,
    "protocols.kip_236_legacy.entries": _TWO_SIDES,
    "protocols.kip_46.__init__": _TWO_SIDES,
    "protocols.kip_46.machine": _TABLE,
    "protocols.kip_46.writes": _TWO_SIDES,
    "protocols.topics.__init__": _TWO_SIDES,
}
"""Modules of the model in which a clause id is written more than once, each with the reason."""


def find_twice(text: str) -> list[str]:
    """Return the clause ids that are written more than once in a module."""
    words = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
    known = [word for word in words if isinstance(word, str) and word in load_clauses()]
    return sorted({word for word in known if known.count(word) > 1})


def test_rules_write_each_clause_once() -> None:
    """In the model a clause id is written once a module, in its checks; exceptions have reasons."""
    model = ROOT / "model/reassure_model"
    twice = {
        ".".join(path.relative_to(model).with_suffix("").parts): found
        for path in model.rglob("*.py")
        if (found := find_twice(path.read_text(encoding="utf-8")))
    }
    assert {name: found for name, found in twice.items() if name not in WRITTEN_TWICE} == {}
    assert set(WRITTEN_TWICE) - set(twice) == set()
    again = 'yield "leader.in-isr", True\nyield "leader.in-isr", "broken"\n'
    assert find_twice(f"def check():\n    {again.splitlines()[0]}\n") == []
    assert find_twice(again) == ["leader.in-isr"]


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
    assert list(load_checks().find_tests_of(path, {"a.b", "a.c"})) == [
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
            "model `a.f`, `a.g`; mutants `x`",
        ),
        ({"scenario": ("d/a", "d/b", "d/c", "d/e")}, "scenarios 4, among them `d/a`"),
    ],
)
def test_checks_fit_on_one_line(places: dict[str, tuple[str, ...]], line: str) -> None:
    """Places are listed column by column, counted where they are many, and absent ones left out."""
    assert load_checks().format_checks(places) == line


def test_package_is_called_by_its_folder() -> None:
    """No place of a clause is called by the file name that every package has."""
    places = {place for found in find_judged().values() for place in found}
    assert not [place for place in places if place.startswith("__init__")]
