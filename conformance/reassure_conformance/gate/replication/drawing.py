"""Drawing trials: a Hypothesis state machine whose one rule takes a scene's next step, or any step.

The machine's own record of the steps is what is kept of a failure, so that one that does not repeat
draw by draw still has a story; the story is then made short by leaving steps out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from reassure_conformance.gate.drawn import Broken, ExampleBatch, ExampleMachine, OutOfTime
from reassure_conformance.gate.replication.scenes import ONE_TERM, SCENES, draw_step
from reassure_conformance.gate.replication.setting import (
    AMENDED,
    AS_WRITTEN,
    EARLY_CREDIT,
    Assignment,
    TrialOutcome,
    TrialSetting,
)
from reassure_conformance.gate.replication.trial import Trial
from reassure_conformance.gate.run_outcome import Failure
from reassure_conformance.gate.steps import ClusterStep
from reassure_conformance.gate.story import Story
from reassure_spec.znodes import ReplicaList

Begin = Callable[[TrialSetting], Trial]
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


@dataclass(slots=True)
class TrialBatch(ExampleBatch[Failure[TrialOutcome]]):
    """What the machines of one batch share."""

    begin: Begin
    done: Callable[[TrialOutcome], Failure[TrialOutcome] | None]
    """Takes what came of a trial, and answers what it violates."""
    is_late: Callable[[], bool]
    """Whether the time for all of them is up."""
    aims: Iterator[Story | None]
    """The test case that each trial follows, None where it goes where it will."""


class TrialMachine(ExampleMachine):
    """One trial."""

    batch: ClassVar[TrialBatch]

    def __init__(self) -> None:
        super().__init__()
        self.trial: Trial | None = None
        self.scene: Iterator[ClusterStep] = iter(())
        self.is_undisturbed = False
        """Whether nothing comes between the steps of the scene."""

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
        """Start brokers, and the steps of a test case, maybe with others between them.

        A trial that goes where it will may be one under the document as written, in one term.
        """
        if self.batch.is_late() or self.batch.died or self.batch.failures:
            raise OutOfTime
        aim = next(self.batch.aims)
        rules = AS_WRITTEN if one_term and aim is None else rules
        setting = TrialSetting(rules, minimum, size, *layout)
        if aim is not None:
            assert isinstance(aim.setting, TrialSetting)
            setting, self.scene = aim.setting, iter(aim.steps)
            self.is_undisturbed = not is_disturbed
        self.trial = self.guard(lambda: self.batch.begin(setting))

    @rule(data=st.data())
    def take_step(self, data: st.DataObject) -> None:
        """Take the next step of a scene, or one that is drawn by itself."""
        trial = self.trial
        if trial is None or self.over:
            return
        self.draw_by(data)
        one_term = trial.setting.rules == AS_WRITTEN
        disturbs = not self.is_undisturbed and self.draw(6) == 0
        step = None if disturbs else next(self.scene, None)
        self.is_undisturbed &= step is not None
        if step is None and self.draw(2):
            scenes = ONE_TERM if one_term else SCENES
            self.scene = scenes[self.draw(len(scenes))](trial, self.draw)
            step = next(self.scene, None)
        if step is None:
            step = draw_step(trial, self.draw, one_term=one_term)
        self.guard(lambda: trial.perform(step))

    def teardown(self) -> None:
        """Heal the cluster, judge it, and end it."""
        trial = self.trial
        if trial is None or self.over:
            return
        told = self.guard(trial.finish)
        failure = None if told is None else self.batch.done(told)
        if failure is not None:
            self.batch.failures.append(failure)
            raise Broken
