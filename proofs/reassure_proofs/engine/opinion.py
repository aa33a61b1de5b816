"""A second opinion: another solver is asked every question that was exported.

The scripts are those of `engine.smt`; what is compared is each answer. The other solver
is cvc5, which is a dependency of development only: where it is not installed, that is said and
nothing is claimed.
"""

import importlib
import importlib.util
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from reassure_spec.errors import Unavailable

SOLVER: Final = "cvc5"


class NoSecondSolverError(Unavailable):
    """The other solver is not installed."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """One script and both answers to it."""

    script: str
    """Name of the script."""
    first: str
    """Answer of the solver that proved: `unsat`, `sat` or `unknown`."""
    second: str
    """Answer of the other one."""
    seconds: float
    """Time that the other one took."""

    @property
    def verdict(self) -> str:
        """Return `agrees`, `differs`, or `unknown` where either solver does not know."""
        if "unknown" in (self.first, self.second):
            return "unknown"
        return "agrees" if self.first == self.second else "differs"

    def to_json(self) -> dict[str, Any]:
        """Return the opinion as plain JSON values."""
        return {**asdict(self), "verdict": self.verdict, "seconds": round(self.seconds, 3)}


def has_second_solver() -> bool:
    """Whether the other solver is installed."""
    return importlib.util.find_spec(SOLVER) is not None


def ask_again(text: str, timeout_s: float = 60.0) -> str:
    """Return what the other solver answers to a script: `unsat`, `sat` or `unknown`.

    Raises NoSecondSolverError where it is not installed.
    """
    if not has_second_solver():
        raise NoSecondSolverError(
            f"{SOLVER} is not installed, so there is no second opinion; install the extra `dev`"
        )
    cvc5: Any = importlib.import_module(SOLVER)
    solver = cvc5.Solver()
    solver.setOption("tlimit-per", str(max(1, int(timeout_s * 1000))))
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "script")
    symbols, answer = parser.getSymbolManager(), ""
    while not (command := parser.nextCommand()).isNull():
        # Only the question itself answers anything.
        answer = str(command.invoke(solver, symbols)).strip() or answer
    return answer if answer in ("sat", "unsat") else "unknown"


def ask_all(
    scripts: Iterable[Any], timeout_s: float = 60.0, progress: Callable[[int], None] | None = None
) -> list[Opinion]:
    """Return the opinions on all scripts (`engine.smt.Script`), in their order.

    `progress` is called with the number of scripts done.
    """
    opinions: list[Opinion] = []
    for script in scripts:
        started = time.monotonic()
        answer = ask_again(script.text, timeout_s)
        opinions.append(Opinion(script.name, script.status, answer, time.monotonic() - started))
        if progress is not None:
            progress(len(opinions))
    return opinions


def to_json(opinions: Sequence[Opinion]) -> dict[str, Any]:
    """Return the body of the report: `second_opinion` with counts and what does not agree."""
    verdicts = [opinion.verdict for opinion in opinions]
    return {
        "second_opinion": {
            "solver": SOLVER,
            "scripts": len(opinions),
            **{name: verdicts.count(name) for name in ("agrees", "differs", "unknown")},
            "seconds": round(sum(opinion.seconds for opinion in opinions), 3),
            "not_agreed": [o.to_json() for o in opinions if o.verdict != "agrees"],
        }
    }
