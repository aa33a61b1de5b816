"""What comes of a run against brokers with logs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from reassure_conformance.gate.events import CoverageGoal
from reassure_conformance.gate.replication.setting import TrialOutcome
from reassure_conformance.gate.replication.situations import SITUATIONS
from reassure_conformance.gate.run_outcome import Failure, RunOutcome
from reassure_judge.protocols import get_observing
from reassure_judge.verdicts import ClauseVerdict

LOOKED_AT: Final = frozenset({"replica.order-obeyed"})
"""Clauses that no line shows kept or broken, and a trial does that comes to rest."""


@dataclass(slots=True)
class BrokersResult(RunOutcome):
    """What came of a run against brokers with logs."""

    failure: Failure[TrialOutcome] | None = None
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
    def goals(self) -> Sequence[CoverageGoal]:
        """Every coverage goal that there is to what was driven."""
        return SITUATIONS

    def as_body(self) -> dict[str, Any]:
        """Return what the report says beyond the common head."""
        unjudged = {
            name: why for name, why in get_observing().unjudged.items() if name not in LOOKED_AT
        }
        return {**RunOutcome.as_body(self), "unjudged": unjudged}
