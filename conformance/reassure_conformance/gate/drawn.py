"""One example as a Hypothesis state machine, and batches of them.

Hypothesis brings the draws, their shrinking and its seeds. What went wrong is recorded in the
batch, so that a failure that does not repeat draw by draw is still a failure with a test case.
"""

import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Final, Generic, TypeVar

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky, FlakyFailure, StopTest
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test
from hypothesis.strategies._internal.featureflags import FeatureFlags

DIGIT: Final = 100
"""How many numbers are drawn from at once: among larger ones Hypothesis prefers those that stand in
the modules that happen to be loaded, and then a seed would not be a run."""
Value = TypeVar("Value")
Found = TypeVar("Found")


class Broken(AssertionError):
    """An example in which a clause was violated."""


class OutOfTime(Exception):
    """The time for this run is over; ends Hypothesis from inside."""


@dataclass(slots=True, kw_only=True)
class ExampleBatch(Generic[Found]):
    """What the machines of one batch share."""

    failures: list[Found] = field(default_factory=list)
    died: Exception | None = None


class ExampleMachine(RuleBasedStateMachine):
    """One example. Its only rule takes one step. Subclasses say which batch it belongs to."""

    batch: ClassVar[Any]
    deaths: ClassVar[tuple[type[Exception], ...]] = (Exception,)
    """What is raised where the cluster cannot go on."""

    def __init__(self) -> None:
        super().__init__()
        # Hypothesis draws which rules to do without, from more than DIGIT numbers; here is one.
        self._rules_strategy.enabled_rules_strategy = st.just(FeatureFlags())
        self.over = False
        """Whether nothing more is done or judged."""
        self._data: st.DataObject | None = None

    def draw_by(self, data: st.DataObject) -> None:
        """Draw by what a rule was given, from now on."""
        self._data = data

    def draw(self, n: int) -> int:
        """Draw a number from 0 to n - 1, by the step that is taken; 0 before the first."""
        if self._data is None or n <= 1:
            return 0
        if n <= DIGIT:
            return self._data.draw(_numbers_below(n))
        first = self.draw(-(-n // DIGIT)) * DIGIT
        return first + self.draw(min(DIGIT, n - first))

    def guard(self, act: Callable[[], Value]) -> Value | None:
        """Keep the death of what is driven from looking like a failing example."""
        if self.batch.died is not None:
            return None
        try:
            return act()
        except self.deaths as error:
            self.batch.died = error
            self.over = True
            return None
        except KeyboardInterrupt:
            self.over = True  # of a step that was cut short nothing is judged
            raise


@cache
def _numbers_below(n: int) -> st.SearchStrategy[int]:
    """Return the strategy of these numbers; what Hypothesis finds out about one it does once."""
    return st.integers(0, n - 1)


def run_batch(
    machine: type[ExampleMachine],
    batch: ExampleBatch[Any],
    seed_value: int,
    *,
    examples: int,
    steps: int,
    phases: Collection[Phase] = (Phase.generate,),
) -> None:
    """Run so many examples of so many steps, until one fails. Raises what the batch died of."""
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        database=None,
        deadline=None,
        derandomize=False,
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
        phases=phases,
    )
    try:
        with warnings.catch_warnings():
            # The ZooKeeper client's threads jitter their delays with the `random` module; no draw
            # depends on that.
            warnings.filterwarnings("ignore", "Do not use the `random` module")
            seeded = seed(seed_value)(type("Machine", (machine,), {"batch": batch}))
            run_state_machine_as_test(seeded, settings=chosen)
    except (Broken, Flaky, FlakyFailure, OutOfTime, StopTest):
        # A failure is recorded in the batch. Flaky says only that Hypothesis could not repeat an
        # example in its own terms, which real processes do not promise; whether a failing story
        # repeats is tried by the minimiser, and without a failure the next batch goes on.
        pass
    if batch.died is not None:
        raise batch.died
