"""Where each clause is carried out, proved, judged and planted against.

The rows come from what is registered: the `clause` decorator (model and judge), the theorems of the
proofs and the expected clauses of the planted faults. Importing the proofs does not load a solver.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any, Final

from reassure_conformance.expected import EXPECTED
from reassure_spec.clauses import get_places, load_clauses

COLUMNS: Final = ("clause", "level", "model", "judge", "proof", "fault")
_ROOMS: Final = ("reassure_model", "reassure_judge")


def _import_rooms() -> None:
    """Import every module that registers clauses."""
    for room in _ROOMS:
        package = importlib.import_module(room)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{room}.{module.name}")


def find_places(clause_id: str) -> list[str]:
    """Return where a clause is carried out or checked, by dotted names."""
    _import_rooms()
    places = sorted(get_places().get(clause_id, ()))
    places += [f"theorem {name}" for name in _theorems().get(clause_id, [])]
    return places


def _theorems() -> Mapping[str, list[str]]:
    from reassure_proofs.theorems import get_theorems

    found: dict[str, list[str]] = {}
    for theorem in get_theorems(None):
        found.setdefault(theorem.clause, []).append(theorem.name)
    return found


def make_matrix() -> list[list[Any]]:
    """Return one row of `COLUMNS` for each clause of the spec, in its order."""
    _import_rooms()
    places, theorems = get_places(), _theorems()
    faults: dict[str, list[str]] = {}
    for fault, clauses in EXPECTED.items():
        for clause_id in clauses:
            faults.setdefault(clause_id, []).append(fault)
    rows: list[list[Any]] = []
    for clause in load_clauses().values():
        found = sorted(places.get(clause.id, ()))
        model = [place.removeprefix("reassure_model.") for place in found if "_model" in place]
        judge = [place.removeprefix("reassure_judge.") for place in found if "_judge" in place]
        cells = (model, judge, theorems.get(clause.id, []), faults.get(clause.id, []))
        rows.append([clause.id, clause.level, *(", ".join(cell) for cell in cells)])
    return rows


def list_findings() -> tuple[list[str], list[list[Any]]]:
    """Return the columns and rows of the register of findings; no rows where there is none yet."""
    try:
        module = importlib.import_module("reassure_spec.findings")
    except ModuleNotFoundError:
        return ["id", "finding", "instance", "source"], []
    from dataclasses import astuple, fields

    findings = tuple(module.FINDINGS)
    if not findings:
        return ["id", "finding", "instance", "source"], []
    columns = [field.name for field in fields(findings[0])]
    return columns, [[_flat(value) for value in astuple(finding)] for finding in findings]


def _flat(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else value
