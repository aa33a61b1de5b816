"""The front door: explore a model and say what was found, in words or as data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from reassure_explorer.engine.interface import Model
from reassure_explorer.engine.plain import explore_plain
from reassure_explorer.engine.renderings import make_plain, tell_trace
from reassure_explorer.engine.result import (
    Budget,
    ExploreResult,
    Trace,
    Verdict,
    Violation,
    find_worst,
)
from reassure_spec.errors import BadUsage

if TYPE_CHECKING:
    from reassure_explorer.engine.liveness import LivenessResult, TemporalResult

ENGINES: Final = ("derived", "plain")


class UnknownEngine(BadUsage):
    """An engine name that there is not."""


@dataclass(frozen=True, slots=True)
class Exploration:
    """A model explored."""

    scope: str
    """The name of the model."""
    result: ExploreResult
    liveness: "LivenessResult | None" = None
    """None where it was not asked for."""
    profile: str | None = None
    """The version of the rules that the model was made under, where it was made under one."""
    readings: Mapping[str, str] = field(default_factory=dict)
    """How those rules were read, by name."""
    pinned: tuple[int, int, int] | None = None
    """Distinct states, steps and depth that this exploration has to come to, if they are known."""

    @property
    def differs(self) -> bool:
        """Whether it came to other counts than those that are pinned."""
        result = self.result
        counts = (result.distinct, result.generated, result.depth)
        return self.pinned is not None and self.pinned != counts

    @property
    def verdict(self) -> Verdict:
        """The worse of the two verdicts, on the states and on the fair runs.

        Violated as well where the counts differ from those that are pinned.
        """
        if self.differs:
            return Verdict.VIOLATED
        verdicts = [self.result.judge(asked=self.liveness is not None)]
        verdicts += [self.liveness.verdict] if self.liveness is not None else []
        return find_worst(verdicts)

    @property
    def exit_code(self) -> int:
        """0 holds, 1 violated, 2 unknown (a budget ended), 3 vacuous (there are gaps)."""
        return self.verdict.exit_code

    @property
    def gaps(self) -> list[str]:
        """Why nothing can be said to hold, in words."""
        return self.result.list_gaps(asked=self.liveness is not None)

    @property
    def counts(self) -> dict[str, int]:
        """The counts with the names that all reports use."""
        result = self.result
        return {
            "distinct": result.distinct,
            "generated": result.generated,
            "depth": result.depth,
            "invariants": len(result.invariants),
            "goals_reached": sum(depth is not None for depth in result.goals.values()),
            "goals": len(result.goals),
            "actions_never_happened": len(result.never_happened),
        }

    def make_body(self) -> dict[str, Any]:
        """Return what is the verb's own in the document."""
        result = self.result
        return {
            "scope": self.scope,
            "engine": result.engine,
            "as_tlc": result.as_tlc,
            "unfinished": result.unfinished,
            "pinned": None
            if self.pinned is None
            else dict(zip(("distinct", "generated", "depth"), self.pinned, strict=True)),
            "differs_from_pinned": self.differs,
            "violations": [describe_violation(violation) for violation in result.violations],
            "goals": dict(result.goals),
            "coverage": {"actions": dict(result.actions), "clauses": dict(result.notes)},
            "never_happened": list(result.never_happened),
            "gaps": self.gaps,
            "levels": list(result.levels),
            "seconds_compiling": round(result.seconds_compiling, 3),
            "plain_runs": result.plain_runs,
            "bytes_per_state": round(result.bytes_per_state, 1),
            **result.details,
            "liveness": None if self.liveness is None else _describe_liveness(self.liveness),
        }

    def render(self) -> str:
        """Return the report in words."""
        result, counts = self.result, self.counts
        steps = f"{counts['generated']:,} steps, depth {counts['depth']}"
        times = f"{result.seconds:.1f} s and {result.seconds_compiling:.1f} s to load the engine"
        rules = "" if self.profile is None else f" ({self.profile})"
        goals = f"{counts['goals_reached']} of {counts['goals']} goals reached"
        tlc = result.as_tlc
        generated = f"{tlc['generated']:,} states generated, {tlc['distinct']:,} distinct"
        lines = [
            f"explore {self.scope}{rules}: {self.verdict.value}",
            f"  {counts['distinct']:,} states, {steps}, {times} ({result.engine})",
            f"  as TLC counts: {generated}, depth {tlc['depth']}",
            f"  {counts['invariants']} invariants, {goals}, {len(result.notes)} clauses exercised",
        ]
        if "symmetry" in result.details:
            lines.append(f"  {_describe_symmetry(result.details['symmetry'])}")
        if result.unfinished is not None:
            lines.append(f"  not complete: {result.unfinished}; no more than this was looked at")
        else:
            lines += [f"  {gap}" for gap in self.gaps]
            lines += [
                f"  warning: action {name} was never possible" for name in result.never_happened
            ]
        if self.pinned is not None and self.differs:
            distinct, often, depth = self.pinned
            lines.append(
                f"  counted otherwise: {distinct:,} states, {often:,} steps, depth {depth} are "
                "pinned (counts.toml), so that the model is another one; where the change is "
                "meant, benchmarks/explorer_counts.py prints the new numbers"
            )
        for violation in result.violations:
            lines += [f"\n{violation.title}"]
            lines += [tell_trace(violation.trace)]
        if self.liveness is not None:
            lines.append(render_liveness(self.liveness))
        return "\n".join(lines)


def _describe_symmetry(symmetry: Mapping[str, Any]) -> str:
    """Say how many permutations were used, and what may change places."""
    parts = [
        f"{kind}s {' and '.join(map(str, part))}"
        for kind, parts in symmetry.items()
        if kind != "permutations"
        for part in parts
        if len(part) > 1
    ]
    if not parts:
        return "symmetry: none; within this scope no two brokers or partitions play the same part"
    alike = ", ".join(parts)
    return f"symmetry: {symmetry['permutations']} permutations; {alike} play the same part"


def render_liveness(result: "LivenessResult") -> str:
    """Return in words what fair runs come to, and lassos for what they need not come to."""
    if result.unfinished is not None:
        return f"  fair runs: {result.verdict.value}, {result.unfinished}"
    return "\n".join(map(_render_temporal, result.properties))


def _render_temporal(found: "TemporalResult") -> str:
    title = f"{found.name}, {found.form}"
    if found.lasso is None:
        return f"  fair runs: {found.verdict.value} {title}; {found.pending:,} states await it"
    cycle = Trace(found.lasso.stem.last, found.lasso.cycle)
    return "\n".join(
        [
            f"\n{title}: a fair run never comes to it. It begins:",
            tell_trace(found.lasso.stem),
            "and then does this for ever:" if cycle.steps else "and then stays as it is.",
            *([tell_trace(cycle)] if cycle.steps else []),
        ]
    )


def explore(
    model: Model,
    *,
    engine: str = "derived",
    profile: str | None = None,
    readings: Mapping[str, str] | None = None,
    budget: Budget | None = None,
    keep_going: bool = False,
    minimise: bool = False,
    liveness: bool = False,
    threads: int = 1,
    progress: Callable[[Any], None] | None = None,
    symmetry: bool = False,
    remember: bool = False,
) -> Exploration:
    """Explore a model; what has no bounds is always left to the plain engine.

    `profile` and `readings` say under which rules it was made; they are reported. With `minimise`
    traces use as few faults as will do, even where that makes them longer. With `liveness` fair
    runs are looked at as well, among all states; the whole graph must fit into memory. The derived
    engine calls `progress` after each level. With `symmetry` one state stands for all that differ
    only in which of the things that are alike is which. With `remember` paths that earlier runs
    learned are taken from the user's cache.

    Raises UnknownEngine, NotSymmetric.
    """
    if engine == "plain" or not model.is_bounded:
        result = explore_plain(model, keep_going=keep_going, budget=budget, symmetry=symmetry)
    elif engine == "derived":
        from reassure_explorer.engine.derived import explore_derived
        from reassure_explorer.engine.memory import find_cache

        result = explore_derived(
            model,
            keep_going=keep_going,
            budget=budget,
            threads=threads,
            progress=progress,
            symmetry=symmetry,
            memory=find_cache("paths") if remember else None,
        )
    else:
        raise UnknownEngine(f"there is no engine {engine!r}; the engines are: {', '.join(ENGINES)}")
    if minimise and result.violations:
        from reassure_explorer.engine.minimise import minimise_faults

        fewer = tuple(minimise_faults(model, violation) for violation in result.violations)
        result = replace(result, violations=fewer)
    live = None
    if liveness:
        from reassure_explorer.engine.liveness import MOST_STATES, check_liveness

        most = None if budget is None else budget.states
        live = check_liveness(model, states=MOST_STATES if most is None else most)
    return Exploration(model.name, result, live, profile, dict(readings or {}))


def _describe_liveness(result: "LivenessResult") -> dict[str, Any]:
    return {
        "verdict": result.verdict.value,
        "unfinished": result.unfinished,
        "properties": [
            {
                "name": found.name,
                "form": found.form,
                "verdict": found.verdict.value,
                "pending": found.pending,
                "stem": None if found.lasso is None else describe_trace(found.lasso.stem),
                "cycle": None
                if found.lasso is None
                else [step.words for step in found.lasso.cycle],
            }
            for found in result.properties
        ],
    }


def describe_violation(violation: Violation) -> dict[str, Any]:
    """Return a violation as data: the clause, the reason and the trace."""
    return {
        "clause": violation.invariant,
        "reason": violation.reason,
        "steps": len(violation.trace.steps),
        "story": describe_trace(violation.trace),
    }


def describe_trace(trace: Trace) -> list[dict[str, Any]]:
    """Return a trace as data: one record for the start and for each step."""
    records = [{"action": None, "state": _describe_state(trace.initial)}]
    return records + [
        {"action": step.words, "state": _describe_state(step.state)} for step in trace.steps
    ]


def _describe_state(state: Any) -> dict[str, Any]:
    return {name: make_plain(getattr(state, name)) for name in state._fields}
