"""Random walks through a model that is too large to be explored.

Walks find what is broken often, and say what they covered. That they found nothing proves nothing.
"""

import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reassure_explorer.engine.interface import DEADLOCK, DEADLOCKED, Model, ModelError
from reassure_explorer.engine.result import Trace, TraceStep, Verdict, Violation

NO_PROOF = "no violation found; not a proof"


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """What seeded random walks came across."""

    model: str
    seed: int
    walks: int
    steps: int
    distinct: int
    """Different states among those met."""
    violations: tuple[Violation, ...]
    """One for each broken invariant: the shortest of these walks to it, perhaps no shortest way."""
    goals: Mapping[str, bool]
    actions: Mapping[str, int]
    notes: Mapping[str, int]
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """Violated, or unknown: walks never show that something holds."""
        return Verdict.VIOLATED if self.violations else Verdict.UNKNOWN

    def render(self) -> str:
        """Return the result in words."""
        reached = sum(self.goals.values())
        words = "; ".join(v.title for v in self.violations) or NO_PROOF
        extent = f"{self.walks:,} walks, {self.steps:,} steps"
        return (
            f"{self.model}: {words}\n  seed {self.seed}, {extent}, "
            f"{self.distinct:,} states, {reached} of {len(self.goals)} goals reached, "
            f"{len(self.notes)} clauses exercised, {self.seconds:.1f} s"
        )


class _Walker:
    def __init__(self, model: Model, seed: int) -> None:
        self.model, self.chance = model, random.Random(seed)
        self.seen: set[Any] = set()
        self.violations: dict[str, Violation] = {}
        self.goals = dict.fromkeys((goal.name for goal in model.goals), False)
        self.actions: Counter[str] = Counter()
        self.notes: Counter[str] = Counter()

    def walk(self, most: int) -> int:
        """Take at most so many steps, none from outside the constraint; answer how many."""
        state = initial = self.chance.choice(self.model.initial_states)
        taken: list[TraceStep] = []
        self._look(Trace(initial, ()))
        for _ in range(most):
            if not self.model.is_within(state):
                break
            step = self._choose(state)
            if step is None:
                if not self.model.is_terminal(state):
                    self._find(DEADLOCK, DEADLOCKED, Trace(initial, tuple(taken)))
                break
            taken.append(step)
            state = step.state
            if state not in self.seen:
                self._look(Trace(initial, tuple(taken)))
        return len(taken)

    def _choose(self, state: Any) -> TraceStep | None:
        """Take one of the possible steps: first which action, so that few-handed ones come up."""
        actions = list(self.model.actions)
        self.chance.shuffle(actions)
        for action in actions:
            for parameter in self.chance.sample(action.parameters, len(action.parameters)):
                answers = self.model.take(state, action, parameter)
                if not answers:
                    continue
                after, notes = answers[0] if len(answers) == 1 else self.chance.choice(answers)
                self.notes.update(notes)
                self.actions[action.name] += 1
                return TraceStep(action.name, parameter, action.describe(parameter), after)
        return None

    def _look(self, trace: Trace) -> None:
        state = trace.last
        self.seen.add(state)
        within = self.model.is_within(state)
        for goal in self.model.goals:
            self.goals[goal.name] = self.goals[goal.name] or (within and goal.reached(state))
        for invariant in self.model.invariants:
            reason = invariant.explain(state)
            if reason is not None:
                self._find(invariant.name, reason, trace)

    def _find(self, name: str, reason: str, trace: Trace) -> None:
        known = self.violations.get(name)
        if known is None or len(known.trace.steps) > len(trace.steps):
            self.violations[name] = Violation(name, reason, trace)


def simulate(
    model: Model, seed: int, *, walks: int = 100, steps: int = 100, seconds: float | None = None
) -> SimulationResult:
    """Take random walks of at most so many steps each; the same seed takes the same walks.

    With `seconds` no walk begins after that time, and the number of walks depends on the machine.
    Raises ModelError for a model without bounds, whose actions cannot be drawn from.
    """
    if not model.is_bounded:
        raise ModelError(f"model {model.name} has no bounds: only the plain engine can take it")
    walker, started = _Walker(model, seed), time.perf_counter()
    done = total = 0
    while done < walks and (seconds is None or time.perf_counter() - started < seconds):
        total += walker.walk(steps)
        done += 1
    return SimulationResult(
        model.name,
        seed,
        done,
        total,
        len(walker.seen),
        tuple(walker.violations.values()),
        walker.goals,
        dict(walker.actions),
        dict(walker.notes),
        time.perf_counter() - started,
    )
