"""Generation: a Hypothesis state machine whose one rule takes the step that the guide draws.

What is possible, what it means and what went wrong are the guide's, the harness's and the judge's.
Examples come in batches. Within a batch the set of wanted clauses does not change, so the same
draws always make the same story; between batches it shrinks as clauses are put to the test.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from random import Random
from typing import ClassVar, Final

from hypothesis import Phase
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from reassure_conformance.adapter import AdapterDied
from reassure_conformance.adapter.driver import ServerGone
from reassure_conformance.gate import steps as s
from reassure_conformance.gate.aims import Aim
from reassure_conformance.gate.drawn import (
    Broken,
    ExampleBatch,
    ExampleMachine,
    OutOfTime,
    run_batch,
)
from reassure_conformance.gate.example import Example
from reassure_conformance.gate.guide import next_step
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.moment import why_not
from reassure_conformance.gate.run_outcome import Failure
from reassure_conformance.gate.story import DEFAULT_BROKERS

CLUSTERS: Final = (DEFAULT_BROKERS, (1, 2, 3), (1, 2, 3, 4, 5))
UNSETTLED_MAX: Final = 5
"""After so many times that a cluster did not come to rest nothing more is generated."""
BATCH: Final = 6
"""Examples in a batch. The first draws nothing but zeros, and so follows an aim to the letter."""
AIMS: Final = 3
"""How many aims a batch has; draws are not even, so that a longer list would starve some."""


@dataclass(slots=True)
class GenerationBudget:
    """How much to generate and to shrink."""

    examples: int = 300
    steps_per_example: int = 10
    steps_min: int = 0
    """Generation goes on beyond `examples` until so many effective steps have been made."""
    shrink_s: float = 10.0
    """How long Hypothesis may look for a shorter story."""
    deadline: float = float("inf")
    """When generation must end, by the driver's clock."""
    is_done: Callable[[], bool] = lambda: False
    """Asked before each batch: whether there is nothing more to look for."""


@dataclass(slots=True)
class _Batch(ExampleBatch[Failure[Example]]):
    """What the machines of one batch share."""

    harness: Harness
    wanted: frozenset[str]
    aims: tuple[Aim, ...]
    """What three in four examples begin with."""
    budget: GenerationBudget
    progress: Callable[[], None]
    clause: str = ""
    """The clause of the first violation; shrinking stays with it."""
    shrink_until: float = 0.0

    def exhausted(self) -> bool:
        """Whether shrinking has had its time."""
        return bool(self.failures) and self.harness.driver.monotonic() > self.shrink_until

    def note(self, example: Example) -> None:
        """Record the example where it is violated; raise Broken where it counts as a failure."""
        for violation in example.violations:
            if self.clause and violation.clause != self.clause:
                continue
            if not self.failures:
                self.clause = violation.clause
                self.shrink_until = self.harness.driver.monotonic() + self.budget.shrink_s
            story = example.story.with_steps(example.carried_out)
            self.failures.append(Failure(story, example, violation))
            raise Broken(f"{violation.clause}: {violation.reason}")


def _is_over(harness: Harness, budget: GenerationBudget) -> bool:
    """Whether going on is pointless: the time is up, or the cluster never comes to rest."""
    return harness.driver.monotonic() > budget.deadline or len(harness.unsettled) >= UNSETTLED_MAX


class GateMachine(ExampleMachine):
    """One example on controllers."""

    batch: ClassVar[_Batch]
    deaths = (AdapterDied, ServerGone)

    def __init__(self) -> None:
        super().__init__()
        self.example: Example | None = None
        self.over = self.batch.died is not None or self.batch.exhausted()
        self.ahead: Iterator[s.ClusterStep] = iter(())

    @initialize(
        size=st.integers(0, len(CLUSTERS) - 1),
        wander=st.integers(0, 3),
        place=st.integers(0, AIMS - 1),
    )
    def begin(self, size: int, wander: int, place: int) -> None:
        """Start a cluster of one of three sizes; three times in four it is to get somewhere."""
        if self.over:
            return
        if not self.batch.failures and _is_over(self.batch.harness, self.batch.budget):
            raise OutOfTime
        self.example = self.guard(lambda: self.batch.harness.begin(CLUSTERS[size]))
        if self.example is not None:
            aims = self.batch.aims
            if wander < 3 and aims:
                aimed = aims[place % len(aims)]
                self.ahead = aimed.follow(self.example.now, self.draw)
            self._check()

    @rule(data=st.data())
    def take_step(self, data: st.DataObject) -> None:
        """Take the next step of the aim, or that which the guide draws.

        Of a controller that is held and goes on a little, so is the next.
        """
        example = self.example
        if example is None or self.over:
            return
        self.draw_by(data)
        now = example.now
        possible = (step for step in self.ahead if not why_not(step, now))
        free = (next_step(now, self.batch.wanted, self.draw) for _ in range(1))
        for step in chain(possible, free):
            goes_on = now.held and isinstance(step, s.Hold)
            self.guard(partial(self.batch.harness.perform, example, step))
            self._check()
            if self.over or not goes_on:
                break

    def teardown(self) -> None:
        """Heal the cluster, judge what is left undone, and end it."""
        example = self.example
        if example is None:
            return
        try:
            if not self.over:
                self.guard(lambda: self.batch.harness.heal(example))
                self._check()
        finally:
            self.guard(lambda: self.batch.harness.end(example))
            if not self.batch.failures:
                self.batch.progress()

    def _check(self) -> None:
        if self.example is not None and not self.over and self.example.violations:
            self.over = True
            self.batch.note(self.example)


def choose_aims(aims: tuple[Aim, ...], others: tuple[Aim, ...], numbers: Random) -> tuple[Aim, ...]:
    """Return a few aims, drawn: which of them meet in an example differs by seed.

    One at least is of the others, where there are any: some aims an implementation never reaches.
    """
    first = numbers.sample(aims, min(AIMS - bool(others), len(aims)))
    return (*first, *numbers.sample(others, min(AIMS - len(first), len(others))))


def generate(
    harness: Harness,
    seed_value: int,
    budget: GenerationBudget,
    *,
    get_wanted: Callable[[], frozenset[str]],
    get_aims: Callable[[], tuple[Aim, ...]] = lambda: (),
    others: tuple[Aim, ...] = (),
    progress: Callable[[], None] = lambda: None,
) -> Failure[Example] | None:
    """Generate examples until the budget ends or one violates a clause; return that, shrunk.

    `get_wanted` gives the clauses not yet put to the test, `get_aims` how to get where nothing was
    yet; both are asked once a batch. `others` lead where something was. Raises AdapterDied and
    ServerGone.
    """
    number = 0
    begin, begin_steps = harness.driver.made, harness.steps
    # Hypothesis makes more examples than it is asked for, so what was really made is counted.
    while (left := budget.examples - (harness.driver.made - begin)) > 0 or (
        harness.steps - begin_steps < budget.steps_min
    ):
        if _is_over(harness, budget) or budget.is_done():
            return None
        aims = choose_aims(get_aims(), others, Random(f"{seed_value} {number}"))
        batch = _Batch(harness, get_wanted(), aims, budget, progress)
        run_batch(
            GateMachine,
            batch,
            seed_value + number * 7919,
            examples=min(BATCH, left) if left > 0 else BATCH // 2,
            steps=budget.steps_per_example,
            phases=(Phase.generate, Phase.shrink),
        )
        if batch.failures:
            return min(batch.failures, key=lambda failure: len(failure.story.steps))
        number += 1
    return None
