"""The symbolic executor: what it proves, what it refuses, and that its own faults are caught."""

from collections.abc import Callable
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import pytest
import z3
from claim_proofs import Proof, prove

from reassure_proofs.engine import shape_exploration, smallest
from reassure_proofs.engine.prover import ProofFaultError
from reassure_proofs.engine.statement import Hypothesis, Parameter, Unread, Values
from reassure_proofs.engine.symbols import SSet
from reassure_proofs.engine.symex import PathExplorer, PathLimits, _Decision


def _prove(
    function: Callable[[Values], object],
    claim: Callable[[Values, Any], Any],
    length: int = 3,
    hypotheses: tuple[Hypothesis, ...] = (),
    limits: PathLimits | None = None,
    hashable: bool = False,
) -> Proof:
    """Prove a claim about a function of a sequence `xs` and a number `n`."""
    shape = {"xs": Parameter(length), "n": Parameter()}
    return prove(function, [shape], hypotheses, claim, limits, hashable)


def _ordered(values: Values, result: Any) -> Any:
    return all(first <= second for first, second in pairwise(result))


def test_sorted_result_is_proved_ordered() -> None:
    """`sorted` on symbolic numbers gives an ordered result on every path."""
    result = _prove(lambda v: sorted(v["xs"]), _ordered)
    assert (result.verdict, result.paths) == ("proved", 6)


def test_proof_carries_a_complete_certificate() -> None:
    """A proof names its shape, has no gap, every path was replayed, and plain inputs were tried."""
    (certificate,) = _prove(lambda v: max(v["xs"]), lambda v, r: r >= v["xs"][0]).certificate
    assert asdict(certificate) == {
        "shape": {"xs": 3, "n": None},
        "paths": 4,
        "gap": "unsat",
        "replayed": 4,
        "tried": 12,
    }


def test_unordered_result_is_refuted_by_the_smallest_input() -> None:
    """A false claim gives the smallest input in the order of the arguments."""
    result = _prove(lambda v: list(v["xs"]), _ordered, length=2)
    assert result.verdict == "refuted"
    assert result.counterexample is not None
    assert result.counterexample.arguments == {"xs": (1, 0), "n": 0}
    assert result.counterexample.sentence() == "xs=[1, 0] n=0 -> [1, 0]"


@pytest.mark.parametrize("found", [{1}, {2}, {3}, {1, 2}, {1, 2, 3}])
def test_counterexample_does_not_turn_on_what_the_solver_finds_first(found: set[int]) -> None:
    """Of several sets that violate a claim the same is told, whichever the solver finds first."""
    live = SSet(PathExplorer(), z3.Function("live", z3.IntSort(), z3.BoolSort()))
    is_in = live.function
    solver = z3.Solver()
    solver.add(z3.Or(is_in(1), is_in(2), is_in(3)))
    assert (
        solver.check(*(is_in(n) if n in found else z3.Not(is_in(n)) for n in (1, 2, 3))) == z3.sat
    )
    model = smallest._thin_out(solver, {"xs": (1, 2, 3), "live": live}, solver.model())
    assert [n for n in (1, 2, 3) if z3.is_true(model.eval(is_in(n)))] == [3]


def test_sets_and_dicts_of_symbols_are_followed() -> None:
    """Sets and dicts of symbolic numbers have as many members as there are different numbers."""
    result = _prove(
        lambda v: (len(set(v["xs"])), len(dict.fromkeys(v["xs"]))),
        lambda v, r: r[0] == r[1] and 1 <= r[0] <= 3,
        hashable=True,
    )
    assert (result.verdict, result.paths) == ("proved", 5)


def test_slice_by_a_symbol_has_one_path_for_each_result() -> None:
    """A slice of three elements up to a symbolic bound can give four different results."""
    result = _prove(
        lambda v: _head(v["xs"], v["n"]),
        lambda v, r: (v["n"] >= 0) & (v["n"] <= 2) & (v["n"] == len(r)) | (len(r) == 3),
        hypotheses=(Hypothesis("n-natural", "n is not negative", lambda v: v["n"] >= 0),),
    )
    assert (result.verdict, result.paths) == ("proved", 4)


def _head(xs: Any, n: Any) -> Any:
    return xs[:n]


def _element(xs: Any, n: Any) -> Any:
    return xs[n]


def test_slice_by_a_negative_symbol_is_followed() -> None:
    """A negative bound counts from the end, as it does for plain numbers."""
    result = _prove(
        lambda v: _head(v["xs"], v["n"]),
        lambda v, r: (v["n"] > -3) & (v["n"] == len(r) - 3) | (len(r) == 0) & (v["n"] <= -3),
        hypotheses=(Hypothesis("n-negative", "n is negative", lambda v: v["n"] < 0),),
    )
    assert (result.verdict, result.paths) == ("proved", 3)


def test_slice_of_an_unnamed_sequence_is_unknown() -> None:
    """Where the length of what is sliced cannot be told, no bound is taken for large enough."""
    result = _prove(lambda v: (v["xs"] + v["xs"])[: v["n"]], lambda v, r: len(r) <= 6)
    assert (result.verdict, "outside of a slice" in result.reason) == ("unknown", True)


def test_subscript_out_of_range_is_refuted_by_its_exception() -> None:
    """An exception that the code raises for some input is a counterexample to any claim."""
    result = _prove(lambda v: _element(v["xs"], v["n"]), lambda v, r: True)
    assert result.verdict == "refuted"
    assert result.counterexample is not None
    assert result.counterexample.arguments == {"xs": (0, 0, 0), "n": 3}
    assert "raises IndexError" in result.counterexample.outcome


def test_range_over_a_symbol_is_unknown() -> None:
    """A symbolic number as a plain one outside of a slice is refused, not guessed."""
    result = _prove(lambda v: list(range(v["n"])), lambda v, r: True)
    assert (result.verdict, result.counterexample) == ("unknown", None)
    assert "outside of a slice" in result.reason


def test_loop_without_end_is_unknown() -> None:
    """A loop whose end depends on an unbounded number ends at the limit of decisions."""

    def function(values: Values) -> object:
        steps = 0
        while steps < values["n"]:
            steps += 1
        return steps

    result = _prove(function, lambda v, r: r >= 0, limits=PathLimits(decisions=50))
    assert (result.verdict, result.certificate) == ("unknown", ())
    assert "50 decisions" in result.reason


def test_limit_cannot_be_swallowed_by_the_code() -> None:
    """Code that catches every Exception does not turn a limit into a result."""

    def function(values: Values) -> object:
        try:
            return values["n"] ** 2
        except Exception:
            return 0

    result = _prove(function, lambda v, r: True)
    assert (result.verdict, "not supported" in result.reason) == ("unknown", True)


def test_solver_that_does_not_know_gives_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver without an answer makes the theorem unknown, never proved."""

    class Undecided(z3.Solver):  # type: ignore[misc]
        def check(self, *assumptions: Any) -> Any:
            return z3.unknown

    engine = PathExplorer
    monkeypatch.setattr(
        shape_exploration, "PathExplorer", lambda **options: engine(_solver=Undecided(), **options)
    )
    result = _prove(lambda v: sorted(v["xs"]), _ordered)
    assert (result.verdict, "does not know" in result.reason) == ("unknown", True)


def test_time_limit_gives_unknown() -> None:
    """An exploration that is out of time makes the theorem unknown."""
    result = _prove(lambda v: sorted(v["xs"]), _ordered, limits=PathLimits(seconds=-1.0))
    assert (result.verdict, "no result in" in result.reason) == ("unknown", True)


def test_contradictory_hypotheses_are_unknown() -> None:
    """A claim about no input at all is not called proved."""
    never = Hypothesis("never", "n is less than itself", lambda v: v["n"] < v["n"])
    result = _prove(lambda v: 0, lambda v, r: False, hypotheses=(never,))
    assert (result.verdict, result.reason) == ("unknown", "no input satisfies the hypotheses")


def test_unread_argument_that_is_read_gives_unknown() -> None:
    """Code that looks at an argument of which nothing was assumed proves nothing."""
    result = _prove(lambda v: v["n"] in Unread("target"), lambda v, r: True)
    assert (result.verdict, "'target'" in result.reason) == ("unknown", True)


def test_code_that_is_not_a_function_is_a_fault() -> None:
    """Code that asks other questions when it is run again is found out."""
    calls: list[int] = []

    def function(values: Values) -> object:
        calls.append(1)
        return values["n"] > len(calls) and values["xs"][0] > 0

    with pytest.raises(ProofFaultError):
        _prove(function, lambda v, r: True)


def test_set_of_symbols_that_was_not_asked_for_is_unknown() -> None:
    """A set that could mix plain and symbolic numbers, and mislead the hash, proves nothing."""
    result = _prove(lambda v: v["n"] in {5, 6}, lambda v, r: not r)
    assert (result.verdict, "set or a dict" in result.reason) == ("unknown", True)


class _ForgetsForced(PathExplorer):
    """Does not record decisions that have only one answer."""

    def decide(self, question: Any) -> bool:
        answer = super().decide(question)
        last = self._trail[-1]
        if self._cursor == len(self._trail) and last.opposite is None and not last.branching:
            self._trail.pop()
            self._cursor -= 1
        return answer


class _DropsPath(PathExplorer):
    """Never visits the other side of a path's last decision."""

    def _backtrack(self) -> bool:
        return super()._backtrack() and super()._backtrack()


class _NegatesWrongly(PathExplorer):
    """Puts the question itself into the path's condition where the answer was no."""

    def _open(self, question: Any) -> _Decision:
        decision = super()._open(question)
        if not decision.answer:
            decision.path = self._path(question.term)
        return decision


class _FlipsWrongly(PathExplorer):
    """Visits the other side with the answer of the first side."""

    def _backtrack(self) -> bool:
        more = super()._backtrack()
        if more:
            self._trail[-1].answer = not self._trail[-1].answer
        return more


@pytest.mark.parametrize("faulty", [_ForgetsForced, _DropsPath, _NegatesWrongly, _FlipsWrongly])
def test_fault_in_the_executor_is_caught(
    faulty: type[PathExplorer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An executor with a planted fault proves nothing: it is reported as being at fault."""
    monkeypatch.setattr(shape_exploration, "PathExplorer", faulty)
    with pytest.raises(ProofFaultError, match="cannot be trusted"):
        _prove(lambda v: (v["n"] in v["xs"], sorted(v["xs"])), lambda v, r: True)


def test_wrong_counterexample_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A counterexample that the plain code does not confirm is a fault, not a refutation."""
    exact = shape_exploration.make_plain
    replayed: list[Any] = []

    def plain(values: Values, model: Any) -> dict[str, Any]:
        arguments = exact(values, model)
        replayed.append(arguments)
        # The first two are the witnesses of the two paths, the third is the counterexample.
        return {**arguments, "n": 7} if len(replayed) == 3 else arguments

    monkeypatch.setattr(shape_exploration, "make_plain", plain)
    with pytest.raises(ProofFaultError, match="does not violate"):
        _prove(lambda v: 1 if v["n"] > 5 else 0, lambda v, r: r == 1, length=0)
