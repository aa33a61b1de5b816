"""What becomes of each theorem under each other reading.

Every theorem whose code takes readings is asked once more for each reading that the code looks at,
with each of its other values, one at a time; a reading that the code never looks at within the
bound changes nothing there. What is refuted and not in the register of findings is news. What
becomes of whole stories the explorer says (`reassure_explorer.scopes.sweep`).

    python -m reassure_proofs.engine.sweep [THEOREM...]
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.runner import Progress, make_tasks, run_tasks, summarise_records
from reassure_proofs.engine.statement import Theorem
from reassure_proofs.engine.tasks import Task, group_theorems
from reassure_spec.findings import findings_of_reading
from reassure_spec.readings import (
    READINGS,
    Readings,
    field_name,
    get_profile,
)

HOLDS: Final = "holds"
REFUTED: Final = "refuted"
UNKNOWN: Final = "unknown"
_NOT_THERE: Final = "of which nothing was assumed"
"""Part of the reason where the code looks at an argument that the shapes do not have."""


@dataclass(frozen=True, slots=True)
class SweepResult:
    """One guarantee under one choice of readings."""

    name: str
    """The theorem."""
    clause: str
    profile: str
    change: str
    """The reading that is not the profile's, as `name=value`; "" where all are."""
    verdict: str
    """`holds`, `refuted` or `unknown`."""
    as_before: bool
    """Whether the profile's own readings give the same verdict."""
    counterexample: str
    findings: tuple[str, ...]
    """Findings of the register that speak of this reading."""
    reason: str = ""
    """Why the verdict is unknown."""

    @property
    def is_news(self) -> bool:
        """Whether something is refuted that no finding speaks of."""
        return self.verdict == REFUTED and not self.as_before and not self.findings

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        return {
            "name": self.name,
            "clause": self.clause,
            "profile": self.profile,
            "change": self.change,
            "verdict": self.verdict,
            "as_before": self.as_before,
            "counterexample": self.counterexample,
            "findings": list(self.findings),
            "news": self.is_news,
            "reason": self.reason,
        }


def other_values(reading: str, readings: Readings) -> tuple[str, ...]:
    """Return the choices of a reading that are not made, as `name=value`."""
    (values,) = (each.values for each in READINGS if each.name == reading)
    chosen = getattr(readings, field_name(reading))
    return tuple(f"{reading}={value}" for value in values if value != chosen)


def sweep(
    names: Sequence[str] | None = None,
    replication_factor: int = 2,
    progress: Progress | None = None,
    timeout_s: float = 120.0,
    processes: int = 2,
    protocol_factor: int = 1,
) -> list[SweepResult]:
    """Return what becomes of the named theorems, of all without names.

    `protocol_factor` bounds the theorems of the protocol, which take minutes beyond 1. Where the
    shapes lack what a reading has the code look at, nothing is asked. Raises UnknownTheoremError
    for a name there is not, and as `prove_all` where the machinery itself is at fault.
    """
    theorems = [
        item
        for item in get_theorems(None if names is None else list(names))
        if item.subject.under is not None and not item.subject.changes
    ]
    rows: list[SweepResult] = []
    for tier, factor in (("gate", replication_factor), ("full", protocol_factor)):
        groups = group_theorems([item for item in theorems if item.tier == tier])
        rows += _sweep_groups(groups, _Means(factor, progress, timeout_s, processes))
    return rows


@dataclass(frozen=True, slots=True)
class _Means:
    """Up to where, for how long and on how many processes."""

    replication_factor: int
    progress: Progress | None
    timeout_s: float
    processes: int


def _sweep_groups(groups: Sequence[Sequence[Theorem]], means: _Means) -> list[SweepResult]:
    bases = _prove_under([(group, ()) for group in groups], means)
    verdicts = {result.name: result.verdict for result, _ in bases}
    read = {result.name: looked_at for result, looked_at in bases}
    asked: list[tuple[Sequence[Theorem], tuple[str, ...]]] = []
    for group in groups:
        readings = get_profile(group[0].profile)
        for name in sorted(read[group[0].name]):
            asked += [(group, (change,)) for change in other_values(name, readings)]
    found = (row for row, _ in _prove_under(asked, means) if _NOT_THERE not in row.reason)
    return [replace(row, as_before=verdicts[row.name] == row.verdict) for row in found]


def _prove_under(
    asked: Sequence[tuple[Sequence[Theorem], tuple[str, ...]]], means: _Means
) -> list[tuple[SweepResult, frozenset[str]]]:
    """Return each theorem of each group under the changes, with the readings that were read."""
    tasks: list[tuple[int, Task]] = []
    for place, (group, changes) in enumerate(asked):
        made = make_tasks(group, means.replication_factor, means.timeout_s)
        # One task for all shapes: under a reading that refutes everything it ends early.
        shapes = tuple(sorted(shape for task in made for shape in task.shapes))
        task = replace(made[0], shapes=shapes, readings=changes)
        tasks.append((place, task))
    answers = run_tasks([task for _, task in tasks], means.processes, means.progress)
    rows = []
    for (place, _), records in zip(tasks, answers, strict=True):
        group, changes = asked[place]
        read = frozenset(name for record in records for name in record.get("read", ()))
        for theorem in group:
            result = summarise_records(theorem, records, means.replication_factor)
            verdict = HOLDS if result.verdict == "proved" else result.verdict
            shown = result.counterexample["sentence"] if result.counterexample else ""
            change = changes[0] if changes else ""
            row = SweepResult(
                theorem.name,
                theorem.clause,
                theorem.profile,
                change,
                verdict,
                as_before=True,
                counterexample=shown,
                findings=tuple(f.id for f in findings_of_reading(change.partition("=")[0])),
                reason=result.reason,
            )
            rows.append((row, read))
    return rows


def to_json(results: Sequence[SweepResult]) -> dict[str, Any]:
    """Return the body of the report: `counts` and `sweep`."""
    verdicts = [result.verdict for result in results]
    return {
        "counts": {
            "asked": len(results),
            "holds": verdicts.count(HOLDS),
            "refuted": verdicts.count(REFUTED),
            "unknown": verdicts.count(UNKNOWN),
            "news": sum(result.is_news for result in results),
        },
        "sweep": [result.to_json() for result in results],
    }


def render(results: Sequence[SweepResult]) -> str:
    """Return what is refuted as lines, news first, and the counts."""
    lines = []
    for row in sorted(results, key=lambda each: not each.is_news):
        if row.verdict == HOLDS or row.as_before:
            continue
        under = f"{row.profile}, {row.change}" if row.change else row.profile
        known = "NEWS" if row.is_news else ", ".join(row.findings)
        lines.append(f"{row.name} under {under}: {row.verdict} ({known or row.reason})")
        lines += [f"    {row.counterexample}"] if row.counterexample else []
    counts = ", ".join(f"{value} {name}" for name, value in to_json(results)["counts"].items())
    return "\n".join([*lines, counts])


if __name__ == "__main__":
    import sys

    sys.stdout.write(render(sweep(sys.argv[1:] or None)) + "\n")
