"""The exploration of one shape: all paths, what breaks a claim, and what plain Python says."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from types import FrameType
from typing import Any, Final

import z3

from reassure_proofs.engine.inputs import TooLargeError, draw, find_constants, find_numbers, rename
from reassure_proofs.engine.results import (
    Certificate,
    ProofGoal,
    Refutation,
)
from reassure_proofs.engine.smallest import find_smallest, make_plain
from reassure_proofs.engine.statement import (
    Function,
    Hypothesis,
    Parameter,
    Shape,
    Values,
    describe,
    describe_values,
)
from reassure_proofs.engine.symbols import SBool, SInt, SSet, concretise
from reassure_proofs.engine.symex import (
    EngineFault,
    Path,
    PathExplorer,
    PathLimits,
    Signal,
    Term,
    conjunction,
    disjunction,
    negation,
)


class UnsteadyError(RuntimeError):
    """The code under test has two answers to one question, so nothing can be proved of it."""


_TRIED: Final = 12
"""So many plain inputs are tried for each shape of the model's own code, which is plain itself."""
_TRIED_OF_OTHERS: Final = 240
"""So many of code that is proved by its twin."""
_WITNESSES: Final = 64
"""So many witnesses are kept, to make inputs of."""


@dataclass(slots=True)
class ShapeExploration:
    """The working state of `explore_shape`."""

    function: Function
    shape: Shape
    hypotheses: Sequence[Hypothesis]
    goals: Sequence[ProofGoal]
    limits: PathLimits
    hashable: bool
    plain: Function | None = None
    """The plain code, where the function is its twin."""
    engine: PathExplorer = field(init=False)
    values: Values = field(init=False)
    assumed: list[Term] = field(init=False)
    extra: dict[str, list[Term]] = field(init=False)
    paths: list[Term] = field(default_factory=list)
    violations: dict[str, list[Term]] = field(default_factory=dict)
    suspects: set[str] = field(default_factory=set)
    """Goals that a path violates. (`violations` has all negated claims that may hold.)"""
    witnesses: list[dict[str, Any]] = field(default_factory=list)
    """Plain arguments of the first paths."""

    def __post_init__(self) -> None:
        strict = self.plain is not None
        self.engine = PathExplorer(limits=self.limits, hashable=self.hashable, strict=strict)
        self.values = {
            name: self.make_symbols(name, parameter) for name, parameter in self.shape.items()
        }
        self.assumed = [
            *_domain(self.shape, self.values),
            *(formula_of(item.holds(self.values)) for item in self.hypotheses),
        ]
        self.extra = {
            goal.name: [formula_of(item.holds(self.values)) for item in goal.hypotheses]
            for goal in self.goals
        }

    def run(self) -> None:
        """Take every path."""
        for path in self.engine.explore(self.assumed, self.body):
            self.take(path)

    def take(self, path: Path[tuple[object, dict[str, Term]]]) -> None:
        """Note a path, replay its witness on the plain code, and judge each goal on it."""
        self.paths.append(path.condition)
        self._replay_witness(path)
        self._judge(path)

    def make_symbols(self, name: str, parameter: Parameter) -> Any:
        """Return what stands for an argument."""
        if parameter.kind == "word":
            return parameter.word
        if parameter.kind == "set":
            return SSet.named(self.engine, name)
        kind = SBool if parameter.kind == "truth" else SInt
        if parameter.length is None:
            return kind.named(self.engine, name)
        return tuple(kind.named(self.engine, f"{name}[{i}]") for i in range(parameter.length))

    def body(self) -> tuple[object, dict[str, Term]]:
        """Run the code on the symbolic values, and return its result and the claims about it."""
        result = self.function(self.values)
        return result, {
            goal.name: formula_of(goal.claim(self.values, result)) for goal in self.goals
        }

    def _judge(self, path: Path[tuple[object, dict[str, Term]]]) -> None:
        """Note what would violate each goal on this path, and which goals it does violate."""
        broken: dict[str, Term] = {}
        for goal in self.goals:
            # Code that raises keeps no promise.
            claim = path.result[1][goal.name] if path.result is not None else z3.BoolVal(False)
            violations = self.violations.setdefault(goal.name, [])
            # Most paths end with a step refused, of which nearly every claim says nothing.
            if not z3.is_true(claim):
                broken[goal.name] = conjunction(*self.extra[goal.name], negation(claim))
                violations.append(conjunction(path.condition, negation(claim)))
        unsuspected = {name: term for name, term in broken.items() if name not in self.suspects}
        # One question for all goals: nearly always the answer is that none is violated.
        if not unsuspected or self.engine.check(disjunction(*unsuspected.values())) is None:
            return
        for name, term in unsuspected.items():
            if self.engine.check(term) is not None:
                self.suspects.add(name)

    def _replay_witness(self, path: Path[tuple[object, dict[str, Term]]]) -> None:
        arguments = make_plain(self.values, path.witness)
        if len(self.witnesses) < _WITNESSES:
            self.witnesses.append(arguments)
        result, error = self.call(arguments)
        if path.result is None:
            # What the code returned may be nothing that a claim can speak of.
            faults = (_claim_error(goal, arguments, result) for goal in self.goals)
            error = error or next((fault for fault in faults if fault is not None), None)
            same = type(error) is type(path.error)
            expected = f"{type(path.error).__name__}: {path.error}"
        else:
            symbolic = concretise(path.result[0], path.witness)
            same = error is None and result == symbolic
            expected = describe(symbolic)
        if not same:
            raise EngineFault(
                f"for {describe_values(arguments)} the symbolic run gave {expected}, "
                f"the plain code {tell_outcome(result, error)}"
            )

    def call(self, arguments: Values) -> tuple[object, Exception | None]:
        """Return what the plain code makes of plain arguments."""
        return _call(self.plain or self.function, arguments)

    def certify(self, tried: int) -> tuple[Certificate, Term]:
        """Ask whether an input that satisfies the hypotheses takes none of the paths."""
        covered = disjunction(*self.paths) if self.paths else z3.BoolVal(False)
        gap = conjunction(*self.assumed, *self.engine.laws, negation(covered))
        solver = z3.Solver()
        solver.set("timeout", int(self.limits.seconds * 1000))
        solver.add(gap)
        lengths = {
            name: parameter.word or parameter.length or parameter.any_length
            for name, parameter in self.shape.items()
        }
        count = len(self.paths)
        answer = str(solver.check())
        certificate = Certificate(lengths, count, answer, replayed=count, tried=tried)
        if certificate.gap == "sat":
            left = describe_values(make_plain(self.values, solver.model()))
            raise EngineFault(f"inputs are left that take none of the explored paths: {left}")
        return certificate, gap

    def minimise(self, goal: ProofGoal) -> Refutation:
        """Return the smallest violation of the goal, after replaying it on the plain code."""
        solver = z3.Solver()
        solver.set("timeout", self.limits.query_milliseconds)
        solver.add(*self.assumed, *self.extra[goal.name], disjunction(*self.violations[goal.name]))
        model = find_smallest(solver, self.shape, self.values)
        arguments = make_plain(self.values, model)
        result, error = self.call(arguments)
        broken = is_broken(goal, arguments, result, error)
        assumed = all(item.holds(arguments) for item in (*self.hypotheses, *goal.hypotheses))
        if not (broken and assumed):
            raise EngineFault(
                f"{goal.name}: the counterexample {describe_values(arguments)} does not violate "
                f"the claim in the plain code, which gives {tell_outcome(result, error)}"
            )
        return Refutation(arguments, tell_outcome(result, error))

    def try_out(self) -> tuple[int, dict[str, Refutation]]:
        """Try the claims on plain inputs; return how many, and what breaks goals that no path does.

        Raises UnsteadyError for an input that has two answers.
        """
        many = _TRIED if self.plain is None else _TRIED_OF_OTHERS
        asked = ((arguments, self.call(arguments)) for arguments in self._inputs(many))
        # A step may need more room than the state that it is taken from.
        fitting = (pair for pair in asked if not isinstance(pair[1][1], TooLargeError))
        pairs = list(islice(fitting, many))
        # The second time backwards, so that what counts its calls does not count alike.
        for arguments, answer in reversed(pairs):
            again = self.call(arguments)
            if tell_outcome(*again) != tell_outcome(*answer):
                raise UnsteadyError(
                    f"for {describe_values(arguments)} it gives {tell_outcome(*answer)} and, asked "
                    f"again, {tell_outcome(*again)}"
                )
        broken: dict[str, Refutation] = {}
        clear = [goal for goal in self.goals if goal.name not in self.suspects]
        for arguments, (result, error) in sorted(pairs, key=_size):
            for goal in clear:
                assumed = all(item.holds(arguments) for item in goal.hypotheses)
                if goal.name in broken or not assumed:
                    continue
                if is_broken(goal, arguments, result, error):
                    broken[goal.name] = Refutation(arguments, tell_outcome(result, error))
        if broken and self.plain is None:
            raise EngineFault(f"no path violates what plain inputs do: {broken}")
        return len(pairs), broken

    def _inputs(self, many: int) -> Iterator[dict[str, Any]]:
        """Yield plain inputs that satisfy the shared hypotheses, alike in every run."""
        chance = Random(0)
        constants = find_constants(self.plain or self.function)
        yield from self.witnesses[:: max(1, 2 * len(self.witnesses) // many)]
        for _ in range(4 * many):
            if self.witnesses and chance.random() < 0.5:
                arguments = rename(chance.choice(self.witnesses), constants, chance)
            else:
                arguments = draw(self.shape, constants, chance)
            if self._is_assumed(arguments):
                yield arguments

    def _is_assumed(self, arguments: Values) -> bool:
        natural = (arguments[n] for n, p in self.shape.items() if p.kind == "natural")
        if not all(number >= 0 for value in natural for number in find_numbers(value)):
            return False
        try:
            return all(item.holds(arguments) for item in self.hypotheses)
        except TooLargeError:
            return False


def is_broken(goal: ProofGoal, arguments: Values, result: object, error: Exception | None) -> bool:
    """Return whether a claim fails; of a result that cannot be spoken of, it does."""
    return (error or _claim_error(goal, arguments, result)) is not None or not goal.claim(
        arguments, result
    )


def _claim_error(goal: ProofGoal, arguments: Values, result: object) -> Exception | None:
    try:
        goal.claim(arguments, result)
    except Exception as error:
        return error
    return None


def is_in_code_under_test(frame: FrameType | None) -> bool:
    """Return whether a frame is of code under test, or of what that calls."""
    while frame is not None:
        if frame.f_code in (_call.__code__, ShapeExploration.body.__code__):
            return True
        frame = frame.f_back
    return False


def _size(tried: tuple[Values, object]) -> int:
    """Return how large an input is, to tell the smallest of those that break a claim."""
    return sum(abs(number) for value in tried[0].values() for number in find_numbers(value))


def _domain(shape: Shape, values: Values) -> list[Term]:
    """Return what is true of the values by their kind."""
    return [
        number.term >= 0
        for name, parameter in shape.items()
        if parameter.kind == "natural"
        for number in (values[name] if parameter.length is not None else (values[name],))
    ]


def formula_of(truth: Any) -> Term:
    """Return a truth value as a term."""
    return truth.term if isinstance(truth, SBool) else z3.BoolVal(bool(truth))


def _call(function: Function, arguments: Values) -> tuple[object, Exception | None]:
    result: object = None
    fault: Exception | None = None
    Signal.latest = None
    try:
        result = function(arguments)
    except Exception as error:
        fault = error
    if Signal.latest is not None:
        # The code caught what was to end it; what it made of that is no answer.
        raise Signal.latest
    return result, fault


def tell_outcome(result: object, error: Exception | None) -> str:
    """Return in words what code returned or raised."""
    return describe(result) if error is None else f"raises {type(error).__name__}: {error}"
