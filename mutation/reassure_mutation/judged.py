"""What a reference controller is asked of, where no rules of the judge's engine stand behind it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from reassure_judge.rules import Possible
from reassure_model.machine import Due, Judgement
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Environment
from reassure_spec.readings import Readings


@dataclass(frozen=True)
class Judged:
    """A judgement of the model as the rules of the engine would be asked, without any doubt."""

    judgement: Judgement[Any, Any]
    readings: Readings
    find_debt: Callable[[Any, Environment, Readings], Due[Any] | None]
    """What is held against a controller that rests, which may be less than what it does next."""

    def begin(self) -> Possible:
        """Return the state before anything was written."""
        return Possible(self.judgement.begin)

    def accept(self, state: Possible, write: Any, around: Environment) -> Accepted[Any] | Rejected:
        """Ask the model about a write."""
        return self.judgement.accept(state.partition, write, around, self.readings)

    def follow(self, state: Possible, after: Any, write: Any) -> Possible:
        """Return the state after a write was accepted."""
        return Possible(after)

    def find_owed(self, partition: Any, around: Environment) -> Due[Any] | None:
        """Return what a controller has to write, by what shows."""
        return self.find_debt(partition, around, self.readings)

    def fail_over(self, state: Possible) -> Possible:
        """Return the state as the next controller finds it."""
        return Possible(self.judgement.fail_over(state.partition, self.readings))

    def take_silent_steps(
        self, state: Possible, views: Iterable[Environment]
    ) -> tuple[Possible, ...]:
        """Return none: whatever is decided shows."""
        return ()
