"""What becomes of each theorem under each other reading.

Every theorem whose code takes readings is asked once more for each reading that the code looks at,
with each of its other values, one at a time; a reading that the code never looks at within the
bound changes nothing there. What is refuted and not in the register of findings is news. What
becomes of whole stories the explorer says (`reassure_explorer.scopes.sweep`).
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Final

from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.runner import Progress, make_tasks, run_tasks, summarise_records
from reassure_proofs.engine.statement import Theorem
from reassure_proofs.engine.tasks import ProofTask, group_theorems
from reassure_spec.findings import findings_of_reading
from reassure_spec.readings import READINGS, Readings, field_name, get_profile

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
        return {**asdict(self), "findings": list(self.findings), "news": self.is_news}


_Asked = tuple[Sequence[Theorem], tuple[str, ...]]
"""Theorems, and the readings that are changed for them."""
_Row = tuple[SweepResult, frozenset[str]]
"""What became of one, and the readings that its code looked at."""


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
        prove = partial(
            _prove_under,
            factor=factor,
            timeout_s=timeout_s,
            run=partial(run_tasks, processes=processes, progress=progress),
        )
        rows += _sweep_groups(groups, prove)
    return rows


def _sweep_groups(
    groups: Sequence[Sequence[Theorem]], prove: Callable[[Sequence[_Asked]], list[_Row]]
) -> list[SweepResult]:
    bases = prove([(group, ()) for group in groups])
    verdicts = {result.name: result.verdict for result, _ in bases}
    read = {result.name: looked_at for result, looked_at in bases}
    asked: list[_Asked] = []
    for group in groups:
        readings = get_profile(group[0].profile)
        for name in sorted(read[group[0].name]):
            asked += [(group, (change,)) for change in other_values(name, readings)]
    found = (row for row, _ in prove(asked) if _NOT_THERE not in row.reason)
    return [replace(row, as_before=verdicts[row.name] == row.verdict) for row in found]


def _prove_under(
    asked: Sequence[_Asked],
    factor: int,
    timeout_s: float,
    run: Callable[[Sequence[ProofTask]], list[list[dict[str, Any]]]],
) -> list[_Row]:
    """Return each theorem of each group under the changes, with the readings that were read."""
    tasks: list[ProofTask] = []
    for group, changes in asked:
        made = make_tasks(group, factor, timeout_s)
        # One task for all shapes: under a reading that refutes everything it ends early.
        shapes = tuple(sorted(shape for task in made for shape in task.shapes))
        tasks.append(replace(made[0], shapes=shapes, readings=changes))
    rows: list[_Row] = []
    for (group, changes), records in zip(asked, run(tasks), strict=True):
        read = frozenset(name for record in records for name in record.get("read", ()))
        change = changes[0] if changes else ""
        findings = tuple(f.id for f in findings_of_reading(change.partition("=")[0]))
        for theorem in group:
            result = summarise_records(theorem, records, factor)
            row = SweepResult(
                theorem.name,
                theorem.clause,
                theorem.profile,
                change,
                HOLDS if result.verdict == "proved" else result.verdict,
                as_before=True,
                counterexample=result.counterexample["sentence"] if result.counterexample else "",
                findings=findings,
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
            **{name: verdicts.count(name) for name in (HOLDS, REFUTED, UNKNOWN)},
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
