"""What comes of telling a scenario, to the model or to a real controller."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reassure_conformance.scenarios.scenario import Scenario
from reassure_judge.verdicts import Violation


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one scenario."""

    scenario: Scenario
    skipped: str = ""
    """Why it could not be told, or not to its end; "" where it was. What was done is judged."""
    detail: str = ""
    """At what it had to end, "" where it never began."""
    found: tuple[tuple[str, ...], ...] = ()
    """The lines that were found, block by block."""
    difference: str = ""
    """A diff of the file against what was found, "" where nothing differs."""
    violations: tuple[Violation, ...] = ()
    """What the judge says of the transaction log."""
    transactions: int = 0
    """How many transactions of the cluster the log shows."""
    raises: Mapping[str, int] = field(default_factory=dict)
    """How often the leader epoch was raised though nobody owed that, by partition."""

    @property
    def failed(self) -> bool:
        """Whether something differs, or the log breaks a clause that binds."""
        return bool(self.difference) or any(each.binds() for each in self.violations)

    @property
    def passed(self) -> bool:
        """Whether it was told to its end as expected, and judged."""
        return not self.skipped and not self.failed
