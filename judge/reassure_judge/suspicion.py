"""Acts that no znode announces, and that only what follows can show to be right.

A broker that stops in good order tells the controller so, not ZooKeeper: the controller takes it
out of in-sync sets while it is still registered, and soon after its registration ends. Until then
the write is *suspected*: it may be a controlled shutdown, or break a rule. The end of the
registration clears it. A moment of rest at which the broker is still there, or `SHUTDOWN_MS` of its
staying, makes it a violation, at the write itself. Where the history ends before, nobody can say.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from reassure_judge.hidden import STOPPING
from reassure_judge.verdicts import Tally, Violation
from reassure_spec.clauses import clause

SHUTDOWN_MS: Final = 300_000
"""How long after it was taken out of the in-sync sets a broker may go on being registered: Kafka's
own retries take seconds, closing large logs takes minutes."""
ACT: Final = "act.controlled-shutdown"


class Suspicion(NamedTuple):
    """A write that is right only if these brokers are about to stop."""

    brokers: frozenset[int]
    time_ms: int
    violation: Violation
    """What it is where they are not."""
    doubtful: bool = False
    """Whether it may be right all the same, by one of the `facts`."""
    facts: tuple[str, ...] = ()
    """Hidden facts of which each alone would make it right as well."""


@clause("act.controlled-shutdown")
class Suspicions:
    """The writes to one partition that are suspected still."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self.open: tuple[Suspicion, ...] = ()
        """What is suspected still."""

    def add(self, suspicion: Suspicion) -> None:
        """Suspect a write."""
        self.open = (*self.open, suspicion)

    def clear(self, broker: int, zxid: int, *, orderly: bool = True) -> None:
        """Note that a broker's registration has ended in this transaction.

        One that was not taken out of the other in-sync sets did not stop in good order.
        """
        if not orderly:
            self._report((each for each in self.open if broker in each.brokers), zxid)
            return
        left = [each._replace(brokers=each.brokers - {broker}) for each in self.open]
        self.open = tuple(each for each in left if each.brokers)
        self._tally.count((ACT,), len(left) - len(self.open))
        cleared = (each.violation.clause for each in left if not each.brokers)
        self._tally.explained.update((clause_id, STOPPING) for clause_id in cleared)

    def look(self, zxid: int, time_ms: int) -> None:
        """Take what is suspected for too long by this transaction for a violation."""
        late = [each for each in self.open if time_ms - each.time_ms > SHUTDOWN_MS]
        if late:
            self._report(late, zxid)

    def rest(self, zxid: int = 0) -> None:
        """Take whatever is suspected for a violation, as the cluster rests by then."""
        self._report(self.open, zxid)

    def leave_open(self, tally: Tally) -> None:
        """Add what nobody can say the state of, if nothing more comes."""
        for each in self.open:
            facts = (STOPPING, *each.facts)
            tally.leave_open((each.violation.clause,), each.violation.place, facts)

    def _report(self, found: Iterable[Suspicion], zxid: int) -> None:
        found = tuple(found)
        self._tally.violations.extend(
            replace(each.violation, seen_zxid=zxid) for each in found if not each.doubtful
        )
        for each in found:
            if each.doubtful:
                clauses = (each.violation.clause,)
                self._tally.leave_open(clauses, each.violation.place, each.facts)
        self.open = tuple(each for each in self.open if each not in found)
