"""The life of what a protocol is about: its stages, and what leads from one to the next.

A stage is read off a state; nobody stores it. It says what comes next where nothing gets in the
way. A life is a table: by stage and by what happens (the type of a write, of another effect of the
controller, or of what a client or a replica does) the stages that it may lead to, and what of the
model it is put to. What may come at any time, deaths and returns, stands in no such table, unless a
life begins or ends by it, and failovers stand in one of their own. That the moves of a table are
the ones that there are is shown by exploration. A protocol tells its life as `LIFECYCLE` in the
module `stages` of its folder here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar

from reassure_model.environment import Die, Return
from reassure_spec.clauses import list_carried
from reassure_spec.protocols import import_parts
from reassure_spec.readings import Readings

S_contra = TypeVar("S_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class StageMove:
    """What ends a stage."""

    to: frozenset[Enum]
    """Where it leads."""
    checks: tuple[Callable[..., object], ...] = ()
    """What it is put to; several where it may be one thing or another, or several at once."""

    @property
    def clauses(self) -> tuple[str, ...]:
        """The clauses of the checks, in order."""
        return tuple(dict.fromkeys(each for check in self.checks for each in list_carried(check)))


def lead_to(*stages: Enum, by: tuple[Callable[..., object], ...] = ()) -> StageMove:
    """Return a move to one of these stages, put to these checks."""
    return StageMove(frozenset(stages), by)


Moves = Mapping[tuple[Enum, type], StageMove]
"""By stage and what happens."""


@dataclass(frozen=True, slots=True)
class Lifecycle(Generic[S_contra]):
    """The life of one kind of thing."""

    of: str
    """What goes through it, with its article."""
    stages: type[Enum]
    """The stages, in the order in which they are gone through where nothing gets in the way; the
    value of each says what there is to do."""
    find: Callable[[S_contra, Readings], Mapping[Any, Enum]]
    """Where each such thing of a state stands, by whatever tells them apart."""
    moves: Moves
    forgets: Mapping[Enum, frozenset[Enum]] = field(default_factory=dict)
    """Where the next controller finds what the last one had in memory; what is left out stays."""
    apart: tuple[type, ...] = (Die, Return)
    """What may come at any time and stands in no move."""


def find_lives() -> Mapping[str, Lifecycle[Any]]:
    """Return the life that each protocol tells, by the protocol's name and in the usual order."""
    parts = import_parts("reassure_explorer", "stages")
    return {name: module.LIFECYCLE for name, module in parts.items()}
