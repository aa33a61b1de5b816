"""Drawing trials: a Hypothesis state machine whose one rule takes a scene's next step, or any step.

The machine's own record of the steps is what is kept of a failure, so that one that does not repeat
draw by draw still has a story; the story is then made short by leaving steps out.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Final, TypeVar

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky, FlakyFailure, StopTest
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from reassure_conformance.gate.replication.alphabet import Step
from reassure_conformance.gate.replication.scenes import ONE_TERM, SCENES, draw_step
from reassure_conformance.gate.replication.situations import Situation
from reassure_conformance.gate.replication.trial import (
    AMENDED,
    AS_WRITTEN,
    EARLY_CREDIT,
    Assignment,
    Setting,
    Told,
    Trial,
)
from reassure_spec.znodes import ReplicaList

Value = TypeVar("Value")
Begin = Callable[[Setting], Trial]
"""Starts a trial."""

STEPS: Final = 50
"""Steps of a trial, at most."""
FETCH_SIZES: Final = (1 << 20, 1)
"""All there is, or one batch at a time: a fetch carries one batch in any case."""


LAYOUTS: Final[tuple[tuple[ReplicaList, tuple[Assignment, ...]], ...]] = (
    ((1, 2, 3), ((("t", 0), (1, 2, 3)),)),
    ((1, 2, 3), ((("t", 0), (1, 2, 3)), (("t", 1), (3, 1, 2)))),
    ((1, 2, 3), ((("t", 0), (1, 2)), (("u", 0), (1, 2, 3)))),
    ((1, 2, 3, 4), ((("t", 0), (1, 2, 3)), (("u", 0), (4, 1)))),
    ((1, 2, 3, 4), ((("t", 0), (1, 2)), (("t", 1), (2, 3, 4)), (("u", 0), (3, 4)))),
)
"""Brokers, and partitions with their replicas: one, several, of one topic, of two, with followers
of their own and with followers that they share."""


class Broken(AssertionError):
    """A trial in which a clause was violated."""


class OutOfTime(Exception):
    """The time for this run is over."""


@dataclass(slots=True)
class Batch:
    """What the machines of one batch share."""

    begin: Begin
    done: Callable[[Told], bool]
    """Takes what came of a trial, and answers whether it failed."""
    deadline: float
    aims: Iterator[Situation | None]
    """The situation that each trial is to get into, None where it goes where it will, for ever."""
    failed: list[tuple[Setting, Told]] = field(default_factory=list)
    died: Exception | None = None


class TrialMachine(RuleBasedStateMachine):
    """One trial. Its only rule takes one step. Subclasses say which batch it belongs to."""

    batch: ClassVar[Batch]

    def __init__(self) -> None:
        super().__init__()
        self.trial: Trial | None = None
        self.scene: Iterator[Step] = iter(())
        self.is_undisturbed = False
        """Whether nothing comes between the steps of the scene."""
        self.draw: Callable[[int], int] = lambda _: 0

    @initialize(
        rules=st.sampled_from((AMENDED, AMENDED, EARLY_CREDIT)),
        one_term=st.booleans(),
        minimum=st.integers(1, 2),
        size=st.sampled_from(FETCH_SIZES),
        layout=st.sampled_from(LAYOUTS),
        is_disturbed=st.booleans(),
    )
    def start(
        self,
        rules: str,
        one_term: bool,
        minimum: int,
        size: int,
        layout: tuple[ReplicaList, tuple[Assignment, ...]],
        is_disturbed: bool,
    ) -> None:
        """Start brokers, and the approach of a situation, with steps of others between its own.

        A trial that goes where it will may be one under the document as written, in one term.
        """
        if time.monotonic() > self.batch.deadline or self.batch.died or self.batch.failed:
            raise OutOfTime
        aim = next(self.batch.aims)
        rules = AS_WRITTEN if one_term and aim is None else rules
        setting = Setting(rules, minimum, size, *layout)
        self.trial = trial = self._guard(lambda: self.batch.begin(setting), None)
        if trial is not None and aim is not None:
            self.scene = aim.approach(trial, lambda n: self.draw(n))
            self.is_undisturbed = not is_disturbed

    @rule(data=st.data())
    def take_step(self, data: st.DataObject) -> None:
        """Take the next step of a scene, or one that is drawn by itself."""
        trial = self.trial
        if trial is None:
            return

        def draw(n: int) -> int:
            return data.draw(st.integers(0, n - 1)) if n > 1 else 0

        self.draw = draw
        one_term = trial.setting.rules == AS_WRITTEN
        disturbs = not self.is_undisturbed and draw(6) == 0
        step = None if disturbs else next(self.scene, None)
        self.is_undisturbed &= step is not None
        if step is None and draw(2):
            scenes = ONE_TERM if one_term else SCENES
            self.scene = scenes[draw(len(scenes))](trial, lambda n: self.draw(n))
            step = next(self.scene, None)
        if step is None:
            step = draw_step(trial, draw, one_term=one_term)
        self._guard(lambda: trial.perform(step), False)

    def teardown(self) -> None:
        """Heal the cluster, judge it, and end it."""
        trial = self.trial
        if trial is None or self.batch.died is not None:
            return
        told = self._guard(trial.finish, None)
        if told is not None and self.batch.done(told):
            self.batch.failed.append((trial.setting, told))
            raise Broken

    def _guard(self, act: Callable[[], Value], otherwise: Value) -> Value:
        """Keep a broker's death from looking like a failing trial."""
        try:
            return act()
        except Exception as error:  # whatever it is, `Campaign` says so and stops
            self.batch.died = error
            return otherwise
        except KeyboardInterrupt:
            self.trial = None  # of a step that was cut short nothing is judged
            raise


def draw_trials(batch: Batch, trials: int, seed_value: int) -> None:
    """Draw so many trials, until one fails or the time is up. Raises what a cluster died of."""
    machine = seed(seed_value)(type("Machine", (TrialMachine,), {"batch": batch}))
    chosen = settings(
        max_examples=trials,
        stateful_step_count=STEPS,
        database=None,
        deadline=None,
        print_blob=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),
    )
    try:
        with warnings.catch_warnings():
            # The ZooKeeper client's threads jitter their delays with the `random` module; no draw
            # depends on that.
            warnings.filterwarnings("ignore", "Do not use the `random` module")
            run_state_machine_as_test(machine, settings=chosen)
    except (Broken, Flaky, FlakyFailure, OutOfTime, StopTest):
        pass  # a failure is recorded in the batch
    if batch.died is not None:
        raise batch.died
