"""What an exploration found: counts, verdicts, traces and coverage; and how far it may go."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from reassure_explorer.engine.interface import DEADLOCK

STOPPED: Final = "stopped at the first level with a violation"
"""Why an exploration ended that does not go on after a violation."""


class Verdict(Enum):
    """The four verdicts, with their exit codes."""

    HOLDS = "holds"
    VIOLATED = "violated"
    UNKNOWN = "unknown"
    VACUOUS = "vacuous"

    @property
    def exit_code(self) -> int:
        """Exit code of a command with this verdict."""
        return {"holds": 0, "violated": 1, "unknown": 2, "vacuous": 3}[self.value]


def find_worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of some verdicts; holds for none."""
    order = (Verdict.VIOLATED, Verdict.UNKNOWN, Verdict.VACUOUS, Verdict.HOLDS)
    return min(verdicts, key=order.index, default=Verdict.HOLDS)


@dataclass(frozen=True, slots=True)
class Budget:
    """How far an exploration may go; None is without limit."""

    states: int | None = None
    """Distinct states."""
    seconds: float | None = None
    mebibytes: int | None = None
    """Memory for states, in MiB."""
    depth: int | None = None
    """Steps; states farther away are not looked at."""

    def find_limit(self, levels: int, states: int, seconds: float, size: int = 0) -> str | None:
        """Return in words which limit so many levels, states, seconds or bytes come to, if any."""
        limits = (
            (self.depth, levels - 1, "steps"),
            (self.states, states, "states"),
            (self.mebibytes, size / (1 << 20), "MiB"),
            (self.seconds, seconds, "s"),
        )
        for most, used, unit in limits:
            if most is not None and used >= most:
                return f"the budget of {most} {unit} is used up"
        return None


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One step of a trace: the action in words and the plain state after it."""

    action: str
    parameter: Any
    words: str
    state: Any


@dataclass(frozen=True, slots=True)
class Trace:
    """A way from an initial state; the shortest where an engine tells it."""

    initial: Any
    steps: tuple[TraceStep, ...]

    @property
    def last(self) -> Any:
        """The state in which the trace ends."""
        return self.steps[-1].state if self.steps else self.initial


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that is broken in a reachable state."""

    invariant: str
    reason: str
    trace: Trace

    @property
    def title(self) -> str:
        """What is wrong, in words."""
        wrong = "" if self.invariant == DEADLOCK else " is broken"
        return f"{self.invariant}{wrong}: {self.reason}"


@dataclass(frozen=True, slots=True)
class ExploreResult:
    """What one engine found out about one model."""

    model: str
    engine: str
    distinct: int
    """Different states reached within the constraint, the initial ones included."""
    generated: int
    """Steps taken: one for each way of each action that is possible in each state expanded."""
    initial: int
    """Initial states that the model was given."""
    levels: tuple[int, ...]
    """Distinct states by depth."""
    violations: tuple[Violation, ...]
    goals: Mapping[str, int | None]
    """Depth at which each goal is first reached, None where it never was."""
    invariants: tuple[str, ...]
    actions: Mapping[str, int]
    """Steps taken by action."""
    notes: Mapping[str, int]
    """Steps by what was noted of them (clause ids)."""
    unfinished: str | None = None
    """Why the exploration ended early, None where every reachable state was seen."""
    seconds: float = 0.0
    """Wall time without compiling."""
    seconds_compiling: float = 0.0
    """Time to compile or load the kernels."""
    plain_runs: int = 0
    """How often the model's own functions were called by a derived engine."""
    bytes_per_state: float = 0.0
    """Memory that the stored states take, per distinct state."""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        """Steps to the farthest state seen."""
        return len(self.levels) - 1

    @property
    def as_tlc(self) -> dict[str, int]:
        """The counts as TLC says them: initial states are generated too, and depth counts states.

        So a single state is at depth 1. States outside the constraint are generated, not distinct.
        """
        generated = self.initial + self.generated
        return {"generated": generated, "distinct": self.distinct, "depth": len(self.levels)}

    @property
    def never_happened(self) -> tuple[str, ...]:
        """Actions that no state made possible; nothing where not every state was looked at."""
        if self.unfinished is not None:
            return ()
        return tuple(name for name, times in self.actions.items() if times == 0)

    def list_gaps(self, *, asked: bool = False) -> list[str]:
        """Return in words why nothing can be said to hold, though nothing is broken.

        `asked` says that something besides invariants and goals was asked of the model.
        """
        gaps = [f"never reached: {goal}" for goal, depth in self.goals.items() if depth is None]
        if self.generated == 0:
            gaps.append("no action was ever possible, so that nothing happened")
        elif not (asked or self.invariants or self.goals):
            gaps.append(
                "only deadlock was looked for: the model asks nothing; give it an invariant or a "
                "goal"
            )
        return gaps

    @property
    def verdict(self) -> Verdict:
        """Violated, unknown, vacuous or holds, the first that is true."""
        return self.judge()

    def judge(self, *, asked: bool = False) -> Verdict:
        """Return the verdict; `asked` as for `list_gaps`."""
        if self.violations:
            return Verdict.VIOLATED
        if self.unfinished is not None:
            return Verdict.UNKNOWN
        return Verdict.VACUOUS if self.list_gaps(asked=asked) else Verdict.HOLDS
