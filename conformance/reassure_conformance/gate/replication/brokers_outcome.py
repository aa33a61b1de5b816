"""What comes of a run against brokers with logs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from reassure_conformance.gate.discrimination import Score
from reassure_conformance.gate.replication.alphabet import format_step
from reassure_conformance.gate.replication.setting import TrialOutcome
from reassure_conformance.gate.replication.situations import SITUATIONS, BrokerGoal
from reassure_conformance.gate.replication.tale import BrokersCase, format_tale
from reassure_conformance.gate.run_outcome import Failure, RunOutcome
from reassure_judge.protocols import get_observing
from reassure_judge.verdicts import ClauseVerdict, Violation
from reassure_mutation.score import Survivor

LOOKED_AT: Final = frozenset({"replica.order-obeyed"})
"""Clauses that no line shows kept or broken, and a trial does that comes to rest."""


@dataclass(frozen=True, slots=True)
class TaleFailure(Failure):
    """A violation with its tale, and with what came of that."""

    tale: BrokersCase
    told: TrialOutcome
    violation: Violation
    repeats: bool = False

    @property
    def case(self) -> BrokersCase:
        """The tale."""
        return self.tale

    def format(self) -> str:
        """Return the text of the tale."""
        return format_tale(self.tale)

    def lines(self) -> tuple[str, ...]:
        """Return the steps, as text."""
        return tuple(map(format_step, self.tale.steps))

    def list_violations(self) -> Sequence[Violation]:
        """Return all that was violated."""
        return self.told.violations

    def as_dict(self) -> dict[str, Any]:
        """Return the record that failure.json holds."""
        return {
            "clause": self.violation.clause,
            "repeats": self.repeats,
            "chroot": self.told.chroot,
            "steps": [],
            "story": list(self.lines()),
            "violations": [v.as_dict() for v in self.told.violations],
        }

    def moved_to(self, place: Path) -> "TaleFailure":
        """Return it with violations that name the files of the trial where they are moved to."""
        was = self.told.directory

        def move(violation: Violation) -> Violation:
            file = Path(violation.file)
            inside = violation.file and file.is_relative_to(was)
            moved = str(place / file.relative_to(was)) if inside else violation.file
            return replace(violation, file=moved)

        violations = tuple(map(move, self.told.violations))
        told = replace(self.told, directory=place, violations=violations)
        return replace(self, told=told, violation=move(self.violation))


@dataclass(frozen=True, slots=True)
class BrokersScore(Score):
    """Which mutants of a leader's rules the moments of a run kill; a tale takes no capability."""

    def find_needed(self, survivor: Survivor) -> tuple[str, ...]:
        """Return nothing: brokers can do all that a tale takes."""
        return ()

    def as_body(self, directory: Path | None) -> dict[str, Any]:
        """Return what the document of a run says of it: tales stand there, and not in files."""
        return Score.as_body(self, None)


@dataclass(slots=True)
class BrokersResult(RunOutcome):
    """What came of a run against brokers with logs."""

    failure: TaleFailure | None = None
    lines: int = 0
    records: int = 0
    promised: int = 0

    def required(self) -> tuple[ClauseVerdict, ...]:
        """Return the verdicts on the clauses that a run has to put to the test."""
        return tuple(
            c
            for c in self.clauses
            if c.level == "MUST" and c.id not in get_observing().unjudged.keys() - LOOKED_AT
        )

    def counts(self) -> dict[str, int]:
        """Return the numbers that the report begins with."""
        return {
            **RunOutcome.counts(self),
            "observations": self.lines,
            "records": self.records,
            "acknowledged": self.promised,
            "not_followed": len(self.not_followed),
            "situations": len(self.reached),
            "situations_reached": sum(1 for count in self.reached.values() if count),
        }

    @property
    def goals(self) -> Sequence[BrokerGoal]:
        """Every coverage goal that there is to what was driven."""
        return SITUATIONS

    def as_body(self) -> dict[str, Any]:
        """Return what the report says beyond the common head."""
        unjudged = {
            name: why for name, why in get_observing().unjudged.items() if name not in LOOKED_AT
        }
        return {**RunOutcome.as_body(self), "unjudged": unjudged}
