"""What a run would have caught: of the mutants of the rules that can be killed, those it kills."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from reassure_conformance.gate import steps as s
from reassure_conformance.gate.requirements import find_undeclared
from reassure_conformance.gate.story import Story, format_story
from reassure_conformance.report.document import write_text
from reassure_conformance.script import SUFFIX, WORLD
from reassure_judge.verdicts import HOLDS, NOT_DISCRIMINATED, ClauseVerdict
from reassure_mutation.score import Scorer, Survivor
from reassure_spec.profiles import DEFAULT_PROFILE

SURVIVORS: Final = "survivors"
"""The folder of a run's directory with a test case for each mutant that survives."""


@dataclass(frozen=True, slots=True)
class Score:
    """Which mutants of the rules the states of a run kill."""

    killable: Mapping[str, int] = field(default_factory=dict)
    """By clause: how many of them are killed by it, in some state."""
    survivors: tuple[Survivor, ...] = ()
    """Those of them that no state of the run kills."""
    capabilities: frozenset[str] = frozenset()
    """What the implementation declares."""
    not_scored: str = ""
    """Why the states were asked of no mutant, "" where they were or a failure ended the run."""
    profile: str = DEFAULT_PROFILE

    @classmethod
    def of(cls, scorer: Scorer, situations: Iterable[Any], capabilities: frozenset[str]) -> "Score":
        """Return the score once these states, or moments of leaders, were asked as well."""
        scorer.update(situations)
        survivors = scorer.list_survivors()
        killable, profile = scorer.count_killable(), scorer.profile
        return cls(killable, survivors, capabilities, scorer.not_scored, profile)

    def counts(self) -> dict[str, int]:
        """Return how many mutants are killed, of how many."""
        mutants = sum(self.killable.values())
        return {"mutants_killed": mutants - len(self.survivors), "mutants": mutants}

    def not_discriminated(self) -> frozenset[str]:
        """Return the clauses of which every mutant survives, though it could have been killed."""
        alive = Counter(each.kill.clause for each in self.survivors)
        able = {each.kill.clause for each in self.survivors if self.is_able(each)}
        return frozenset(clause for clause in able if alive[clause] == self.killable[clause])

    def mark(self, clauses: Iterable[ClauseVerdict]) -> tuple[ClauseVerdict, ...]:
        """Return the verdicts, where of those that held some were not discriminated."""
        alike = self.not_discriminated()
        return tuple(
            replace(c, verdict=NOT_DISCRIMINATED) if c.id in alike and c.verdict == HOLDS else c
            for c in clauses
        )

    def find_lacking(self, steps: Iterable[str]) -> tuple[str, ...]:
        """Return what the implementation does not declare and a test case takes.

        One that makes its own world is for brokers with logs, which can do all that it takes.
        """
        steps = () if _makes_world(tuple(steps)) else steps
        needs = {s.NEEDS.get(type(s.parse_step(step))) for step in steps} - self.capabilities
        return tuple(sorted(need for need in needs if need is not None))

    def find_needed(self, survivor: Survivor) -> tuple[str, ...]:
        """Return what killing a mutant takes, by test case and clause, and is not declared."""
        needs = find_undeclared(survivor.kill.clause, self.capabilities, self.profile)
        return tuple(sorted({*needs, *self.find_lacking(survivor.kill.steps)}))

    def is_able(self, survivor: Survivor) -> bool:
        """Whether the implementation declares all that it takes to kill a mutant."""
        return not self.find_needed(survivor)

    def as_body(self, directory: Path | None) -> dict[str, Any]:
        """Return what the document of a run in this directory says of it."""
        return {
            "mutants": dict(self.killable),
            "survivors": [
                {
                    "name": survivor.name,
                    "sentence": survivor.sentence,
                    "clause": survivor.kill.clause,
                    "needs": list(self.find_needed(survivor)),
                    "steps": list(survivor.kill.steps),
                    "case": None
                    if directory is None or _makes_world(survivor.kill.steps)
                    else str(_find_case(directory, number)),
                }
                for number, survivor in enumerate(self.survivors, start=1)
            ],
            "not_scored": self.not_scored,
        }

    def write_cases(self, directory: Path) -> None:
        """Write for each mutant that survives the test case that would kill it."""
        for number, survivor in enumerate(self.survivors, start=1):
            why = (survivor.name, f"{survivor.kill.clause} kills it.")
            steps = tuple(map(s.parse_step, survivor.kill.steps))
            path = _find_case(directory, number)
            path.parent.mkdir(exist_ok=True)
            write_text(path, format_story(Story(path.stem, steps, why=why)))


def _makes_world(steps: Sequence[str]) -> bool:
    return bool(steps) and steps[0].startswith(f"{WORLD} ")


def _find_case(directory: Path, number: int) -> Path:
    return directory / SURVIVORS / f"{number}{SUFFIX}"
