"""What comes of a run, whatever was driven in it."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from reassure_conformance.gate.discrimination import Score
from reassure_conformance.gate.events import CoverageGoal
from reassure_conformance.gate.run_settings import Settings
from reassure_conformance.gate.steps import ClusterStep
from reassure_conformance.gate.story import Story
from reassure_conformance.report.document import HOLDS, UNKNOWN, VACUOUS, VIOLATED, Document
from reassure_conformance.report.own_faults import list_own_faults
from reassure_judge.verdicts import ClauseVerdict, Violation
from reassure_spec.errors import Unavailable


class CaseOutcome(Protocol):
    """What came of a test case."""

    chroot: str

    @property
    def violations(self) -> Sequence[Violation]:
        """All that was violated."""

    @property
    def carried_out(self) -> Sequence[ClusterStep]:
        """The steps that were carried out, in order."""

    def list_told(self) -> Iterable[str]:
        """Return each step as text, with what became of it."""

    def as_record(self) -> dict[str, Any]:
        """Return what failure.json holds beside the violations."""


OneTold = TypeVar("OneTold", bound=CaseOutcome)


@dataclass(frozen=True, slots=True)
class Failure(Generic[OneTold]):
    """A violation with its test case, and with what came of that when it was told last."""

    story: Story
    told: OneTold
    violation: Violation
    repeats: bool = False
    """Whether the test case broke the clause again when it was told again."""

    def as_dict(self) -> dict[str, Any]:
        """Return the record that failure.json holds."""
        return {
            "clause": self.violation.clause,
            "repeats": self.repeats,
            "chroot": self.told.chroot,
            "story": list(self.story.lines()),
            "violations": [violation.as_dict() for violation in self.told.violations],
            **self.told.as_record(),
        }


@dataclass(slots=True)
class RunOutcome(ABC):
    """What came of a run."""

    settings: Settings
    implementation: Mapping[str, object]
    profile: str
    readings: Mapping[str, str]
    capabilities: frozenset[str] = frozenset()
    """What the implementation declares that it can do."""
    clauses: tuple[ClauseVerdict, ...] = ()
    """The verdict on every clause of the profile."""
    failure: Failure[Any] | None = None
    """The first violation with its test case, None where there was none."""
    not_followed: tuple[Violation, ...] = ()
    """Advice that was not followed."""
    died: str = ""
    """Why the adapter or the server could not go on, "" where they could."""
    trace: str = ""
    """The traceback of an adapter that died."""
    died_after: tuple[str, ...] = ()
    """The steps of the example in which it died, the last one included."""
    stale: tuple[str, ...] = ()
    """Saved failures that did not fail, and known ones."""
    examples: int = 0
    """How many examples were generated."""
    stories: int = 0
    """How many test cases were told."""
    steps: int = 0
    transactions: int = 0
    unsettled: int = 0
    """How often the cluster did not come to rest."""
    reached: Mapping[str, int] = field(default_factory=dict)
    """How often each coverage goal was reached that the implementation can reach."""
    undeclared: Mapping[str, int] = field(default_factory=dict)
    """Shipped story steps left out for want of a capability, by capability."""
    seconds: float = 0.0
    clause_seconds: Mapping[str, float] = field(default_factory=dict)
    """Seconds by clause: those of the steps that put it to the test."""
    clock: Mapping[str, float] = field(default_factory=dict)
    """Seconds by section: controller, zookeeper, log, judge, and the rest under generation."""
    directory: Path | None = None
    score: Score = field(default_factory=Score)
    """Which mutants of the rules the run kills."""

    @abstractmethod
    def required(self) -> tuple[ClauseVerdict, ...]:
        """Return the verdicts on the clauses that a run has to put to the test."""

    def counts(self) -> dict[str, int]:
        """Return the numbers that the report begins with."""
        required = self.required()
        return {
            "clauses_required": len(required),
            "clauses_exercised": len(required) - len(self.missing()),
            **self.score.counts(),
            "examples": self.examples,
            "steps": self.steps,
            "transactions": self.transactions,
            "stories": self.stories,
        }

    @property
    @abstractmethod
    def goals(self) -> Sequence[CoverageGoal]:
        """Every coverage goal that there is to what was driven."""

    def missing(self) -> tuple[str, ...]:
        """Return the clauses that should have been put to the test and were not.

        One that was exercised only where right and wrong look alike was not.
        """
        alike = self.score.not_discriminated()
        return tuple(c.id for c in self.required() if not c.exercised or c.id in alike)

    def not_asked(self) -> dict[str, tuple[str, ...]]:
        """Return the clauses that nothing put to the test for want of a capability, and which."""
        return {}

    def lacking(self) -> dict[str, list[str]]:
        """Return by what the implementation would have to declare the clauses not asked for it."""
        return {}

    def verdict(self) -> str:
        """Return the verdict on the whole run."""
        if self.failure is not None:
            return VIOLATED
        if self.died or self.unsettled:
            return UNKNOWN
        idle = not any(clause.exercised for clause in self.clauses)
        return VACUOUS if idle or self.missing() or self.stale else HOLDS

    def as_document(self) -> Document:
        """Return the document; an adapter or server that died has an exit code of its own."""
        return Document(
            "run",
            self.verdict(),
            self.seconds,
            self.counts(),
            seed=self.settings.seed,
            profile=self.profile,
            readings=self.readings,
            exit_code=Unavailable.exit_code if self.died and self.failure is None else None,
            body=self.as_body(),
        )

    def as_body(self) -> dict[str, Any]:
        """Return what the report says beyond the common head."""
        failure = self.failure
        broken = [failure.violation.clause] if failure else []
        chosen = self.settings.readings
        return {
            "implementation": dict(self.implementation),
            "world": self.settings.world,
            "steps": self.steps,
            "clauses": [clause.as_dict() for clause in self.clauses],
            "clause_seconds": dict(self.clause_seconds),
            "violations": [v.as_dict() for v in failure.told.violations] if failure else [],
            "not_followed": [violation.as_dict() for violation in self.not_followed],
            "story": list(failure.story.lines()) if failure else [],
            "repeats": failure.repeats if failure else None,
            "clause": failure.violation.clause if failure else None,
            "findings": list_own_faults(broken, self.profile, self.readings, chosen),
            "timeline": None,
            "not_exercised": list(self.missing()),
            "not_asked": {clause: list(needs) for clause, needs in self.not_asked().items()},
            "lacking": self.lacking(),
            "unsettled": self.unsettled,
            "died": self.died,
            "died_after": list(self.died_after),
            "traceback": self.trace,
            "stale": list(self.stale),
            "situations": [
                {
                    "name": goal.name,
                    "sentence": goal.sentence,
                    "clauses": list(goal.clauses),
                    "needs": sorted(goal.needs),
                    "reached": self.reached.get(goal.name),
                }
                for goal in self.goals
            ],
            **self.score.as_body(self.directory),
            "undeclared": dict(self.undeclared),
            "clock": {name: round(value, 3) for name, value in self.clock.items()},
            "directory": str(self.directory) if self.directory else None,
        }
