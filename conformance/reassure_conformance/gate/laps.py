"""How long it takes to put clauses to the test, which reports tell beside each."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from reassure_judge.verdicts import ClauseVerdict


class Laps:
    """Seconds by clause: those of the steps that put it to the test, alone or with others."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self.seconds: Counter[str] = Counter()
        self._before: Mapping[str, int] = {}
        self._since = monotonic()

    def lap(self, exercised: Mapping[str, int]) -> None:
        """Count the time since the last call for the clauses that were exercised since."""
        now = self._monotonic()
        took, self._since = now - self._since, now
        for clause, count in exercised.items():
            if count != self._before.get(clause, 0):
                self.seconds[clause] += took  # type: ignore[assignment]
        self._before = dict(exercised)

    def as_dict(self, clauses: Iterable[ClauseVerdict]) -> dict[str, float]:
        """Return the record that a result holds: of those clauses that count as exercised."""
        exercised = [clause.id for clause in clauses if clause.exercised]
        return {each: round(self.seconds[each], 3) for each in exercised if each in self.seconds}
