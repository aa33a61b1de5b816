"""A piece of work: planned when it begins, and again where its plan does not hold."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from reassure_controller.effects import Step
from reassure_spec.errors import ReassureError

MAX_ATTEMPTS: Final = 100
"""How often a piece of work is planned, and nothing got through, before that is a defect."""


class StuckError(ReassureError):
    """A piece of work was planned again and again without getting anywhere."""


@dataclass(slots=True)
class Job:
    """A piece of work."""

    name: str
    make: Callable[[], tuple[Step, ...]]
    done: Callable[[], None] = lambda: None
    """What follows once it is carried out, in memory alone."""
    attempts: int = 0
    """How often it was planned without there being less to do than ever before."""
    least: int | None = None
    """The length of its shortest plan."""

    def count_attempt(self, steps: tuple[Step, ...]) -> None:
        """Note that it was planned. Raises StuckError where it gets nowhere."""
        if self.least is None or len(steps) < self.least:
            self.attempts, self.least = 0, len(steps)
        self.attempts += 1
        if self.attempts > MAX_ATTEMPTS:
            raise StuckError(f"{self.name} was planned {MAX_ATTEMPTS} times and never got through")
