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
"""How many effects are waited for until the next write."""
MORE_WRITES: Final = 2
"""How many writes beyond those of the reference controller are drawn, and one less."""


@dataclass(frozen=True, slots=True)
class Aim:
    """A test case that leads somewhere."""

    steps: tuple[s.ClusterStep, ...]

    @classmethod
    def parse(cls, lines: Iterable[str]) -> "Aim":
        """Return the aim of these lines. Raises BadStep."""
        return cls(tuple(map(s.parse_step, lines)))

    def follow(self, now: ClusterMoment, draw: Draw) -> Iterator[s.ClusterStep]:
        """Yield the steps, possible or not, as things stand by then.

        An implementation may have more effects between two writes than the reference controller,
        its messages for one, and never has fewer. So a controller is held after as many writes as
        in the test case, going on effect by effect, or after a drawn number of effects.
        """
        by_writes, left = not draw(2), 0
        for step in self.steps:
            if isinstance(step, s.Hold):
                left = step.effects if by_writes else 0
                more = 0 if by_writes else step.effects + draw(step.effects + MORE_EFFECTS)
                step = s.Hold(more)
            elif isinstance(step, s.Lose):
                step = replace(step, writes=step.writes + draw(MORE_WRITES))
            yield step
            for _ in range(MOST_EFFECTS * left):
                if not (left and now.held and now.owes):
                    break
                before = now.view
                yield s.Hold(1)
                left -= now.view != before
