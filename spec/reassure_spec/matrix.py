"""The matrix: every clause against everything that carries it out or checks it.

The spec cannot know who uses it, so whoever makes the matrix brings the sources: for each column,
which places name which clause.
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
