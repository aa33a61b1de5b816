"""The matrix: every clause against everything that carries it out or checks it.

The spec cannot know who uses it, so whoever makes the matrix brings the sources: for each column,
which places name which clause. From them follow the rows, the ids that no clause has, and the
clauses that must be checked and are not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reassure_spec.clauses import Clause

Places = Mapping[str, Sequence[str]]
"""Where each clause is named, by clause id."""


@dataclass(frozen=True, slots=True)
class Row:
    """One clause and where it is named, by column."""

    clause: Clause
    places: Mapping[str, tuple[str, ...]]


def make_matrix(clauses: Sequence[Clause], sources: Mapping[str, Places]) -> tuple[Row, ...]:
    """Return one row for each clause, in the order given, with a cell for each source."""
    return tuple(
        Row(clause, {name: tuple(found.get(clause.id, ())) for name, found in sources.items()})
        for clause in clauses
    )


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
