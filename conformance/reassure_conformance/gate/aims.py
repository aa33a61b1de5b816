"""Aims: test cases by which generation gets where it has not been.

A mutant of the rules that survives has one that kills it, what never met between a decision and its
write one that brings it together, and a coverage goal one that reaches it. An aim is no script: a
step that is not possible is left out, what depends on the implementation is drawn, and the guide
goes on where the test case ends.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from reassure_conformance.gate import steps as s
from reassure_conformance.gate.moment import ClusterMoment

Draw = Callable[[int], int]
"""Gives a number from 0 to n - 1."""

MORE_EFFECTS: Final = 4
"""How many effects beyond those of the reference controller are drawn at least."""
MOST_EFFECTS: Final = 8
"""How many effects are waited for until the next write, or the one that is to be met."""
MORE_WRITES: Final = 2
"""How many writes beyond those of the reference controller are drawn, and one less."""


@dataclass(frozen=True, slots=True)
class Aim:
    """A test case that leads somewhere."""

    steps: tuple[s.ClusterStep, ...]
    effect: str = ""
    """The kind of write before which the controller is to be held, "" where that is drawn."""

    @classmethod
    def parse(cls, lines: Iterable[str], effect: str = "") -> "Aim":
        """Return the aim of these lines. Raises BadStep."""
        return cls(tuple(map(s.parse_step, lines)), effect)

    def follow(self, now: ClusterMoment, draw: Draw) -> Iterator[s.ClusterStep]:
        """Yield the steps, possible or not, as things stand by then.

        An implementation may have more effects between two writes than the reference controller,
        its messages for one, and never has fewer. So a controller is held after as many writes as
        in the test case, going on effect by effect, or after a drawn number of effects.
        """
        by_writes = bool(self.effect) or not draw(2)
        holds = [at for at, step in enumerate(self.steps) if isinstance(step, s.Hold)]
        left = 0
        for at, step in enumerate(self.steps):
            if isinstance(step, s.Hold):
                left = step.effects if by_writes else 0
                more = 0 if by_writes else step.effects + draw(step.effects + MORE_EFFECTS)
                step = s.Hold(more)
            elif isinstance(step, s.Lose):
                step = replace(step, writes=step.writes + draw(MORE_WRITES))
            yield step
            for _ in range(MOST_EFFECTS * left):
                if not (left and now.held and now.owed):
                    break
                before = now.view
                yield s.Hold(1)
                left -= now.view != before
            if self.effect and holds and at == holds[-1] + 1:
                for _ in range(MOST_EFFECTS):
                    if not now.held or self.effect in now.owed:
                        break
                    yield s.Hold(1)
