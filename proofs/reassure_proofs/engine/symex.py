"""Symbolic execution of ordinary Python, by running it again and again.

The code under test is called with symbolic integers (`SInt`). Arithmetic and comparison only build
terms; the moment Python needs a plain answer, it asks a symbolic truth value (`SBool`) for its
`bool`, and the `Engine` decides. Which answers are possible is asked of the solver. Where both are,
one is taken and the other remembered; when the run ends, the last remembered one is flipped and the
code runs again from the start, until nothing is left to flip. Each run is one *path*: the
conjunction of its decisions, and what the code returned or raised.

Two rules keep this sound:

* *Every* decision is recorded, the forced ones too. A run is repeated by replaying the record; if
  forced decisions were left out, the replay would hand a later decision to an earlier question.
  While replaying, each question is compared with the recorded one.
* The engine is not believed. The prover asks a fresh solver whether the path conditions together
  cover the hypotheses, and runs the plain code on one input of every path.

A symbolic integer answers every operator of a plain one, or refuses it by name; it never leaves
Python to answer for it. Lengths of sequences are plain numbers. What no operator sees (`is`,
`type`, a hash among plain numbers) is left out by the model's own code; code of others is run in
the form that `engine.dialect` gives it, where all of that is seen or refused.
Sets and dicts of symbolic values have to be asked for (`Engine.hashable`), because they mislead
where plain numbers are in them as well.
"""

import dis
import linecache
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import islice
from math import ceil, floor, isinf, isnan
from types import CodeType, FrameType
from typing import Any, ClassVar, Final, Generic, NoReturn, TypeVar

import z3

from reassure_proofs.engine.facts import Facts, Relation, relate

Term = Any
"""A z3 expression; z3 ships no types."""
Result = TypeVar("Result")


def conjunction(*terms: Term) -> Term:
    """Return the term that holds if all of these do.

    The solver's own `And` converts and checks every operand, which costs more than all questions.
    """
    return _connected(z3.Z3_mk_and, terms)


def disjunction(*terms: Term) -> Term:
    """Return the term that holds if at least one of these does."""
    return _connected(z3.Z3_mk_or, terms)


def negation(term: Term) -> Term:
    """Return the term that holds if this one does not."""
    return z3.BoolRef(z3.Z3_mk_not(term.ctx_ref(), term.as_ast()), term.ctx)


def _connected(make: Callable[..., Any], terms: Sequence[Term]) -> Term:
    if not terms:
        # An operator of no operands is printed as a word that other solvers take for a name.
        return z3.BoolVal(make is z3.Z3_mk_and)
    context = z3.main_ctx()
    operands = (z3.Ast * len(terms))(*(term.as_ast() for term in terms))
    return z3.BoolRef(make(context.ref(), len(terms), operands), context)


class Signal(BaseException):
    """What ends a run whatever the code under test does about it.

    Not an Exception, so that an ordinary handler does not catch it. Code that catches everything
    does; hence the last one is remembered, and a run during which there was one has no result.
    """

    latest: ClassVar["Signal | None"] = None

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        Signal.latest = self


class GaveUp(Signal):
    """The question cannot be settled: a limit was reached, or the code does the unsupported."""


class TimeIsUp(GaveUp):
    """The code under test did not come to an end."""


class EngineFault(Signal):
    """The executor contradicts itself: a fault here or in the solver, not in the code it runs."""


class Unrepeatable(EngineFault):
    """The code under test asked other questions when it was run again on the same decisions."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much an exploration may cost before it gives up."""

    seconds: float = 60.0
    """Processor time of one exploration; how busy the machine is decides nothing."""
    query_milliseconds: int = 10_000
    """Time of one question to the solver."""
    decisions: int = 10_000
    """Decisions on one path; a loop that never ends stops here. A plan outside of the invariant
    goes on until the model itself ends it, which takes some thousands."""
    paths: int = 200_000
    """Paths of one exploration."""


@dataclass(frozen=True, slots=True)
class Path(Generic[Result]):
    """One way through the code under test."""

    condition: Term
    """All that was decided; an input takes this path if and only if it satisfies that."""
    result: Result | None
    """What the code returned, None if it raised."""
    error: Exception | None
    """What the code raised, None if it returned."""
    witness: Term
    """A model of the hypotheses and the condition: one input that takes this path."""


@dataclass(slots=True)
class _Decision:
    question: int
    """Identity of the term that was asked."""
    literal: Term
    """The term as answered: itself or its negation."""
    answer: bool
    path: Term
    """This literal and all before it; paths share the beginning that they have in common."""
    opposite: Term | None = None
    """The literal of the other answer while that is still to be visited, else None."""
    model: Term | None = None
    """A model of the other answer."""
    branching: bool = False
    """Whether both answers are possible, so that the solver has a scope for this decision."""
    relation: Relation | None = None
    """What the question relates, where it is as simple as that."""


@dataclass(slots=True)
class Engine:
    """Explores the paths of a function under hypotheses. Serves one exploration only."""

    limits: Limits = field(default_factory=Limits)
    hashable: bool = False
    """Whether symbolic values may be put in sets and dicts; right only where no plain number can
    stand in the same one."""
    strict: bool = False
    """Whether text made of symbolic values is refused; right where anything may depend on it."""
    queries: int = 0
    """Questions put to the solver so far."""
    made: dict[object, Any] = field(default_factory=dict)
    """Symbolic values by how they were made; making terms is most of the cost of a repeated run."""
    _solver: Any = field(default_factory=z3.SimpleSolver)
    _trail: list[_Decision] = field(default_factory=list)
    _known: dict[int, _Decision] = field(default_factory=dict)
    _literals: dict[int, bool] = field(default_factory=dict)
    """The terms that are true or false whatever the input; asking them is no decision."""
    _assumed: Facts = field(default_factory=Facts)
    """What the hypotheses say outright."""
    _facts: Facts = field(default_factory=Facts)
    """What the hypotheses and the decisions of this path say."""
    _cursor: int = 0
    _model: Any = None
    _running: bool = False
    _deadline: float = 0.0

    def symbol(self, name: str) -> "SInt":
        """Return a symbolic integer without bounds, called `name` in counterexamples."""
        return SInt(self, z3.Int(name))

    def truth(self, name: str) -> "SBool":
        """Return a symbolic truth value, called `name` in counterexamples."""
        return SBool(self, z3.Bool(name))

    def members(self, name: str) -> "SSet":
        """Return a symbolic set of integers: any set, of any size."""
        return SSet(self, z3.Function(name, z3.IntSort(), z3.BoolSort()))

    def note_literal(self, truth: "SBool", value: bool) -> None:
        """Note that a symbolic truth value is no question at all."""
        self._literals[truth.id] = value

    def plain(self, number: object) -> "SInt":
        """Return a plain integer as a symbolic one. Raises GaveUp for anything else."""
        if not isinstance(number, int):
            raise GaveUp(f"{type(number).__name__} stands where a number is expected")
        key = (int, int(number))
        found: SInt | None = self.made.get(key)
        if found is None:
            found = self.made[key] = SInt(self, z3.IntVal(int(number)))
            self.note_number(found, int(number))
        return found

    def note_number(self, number: "SInt", value: int) -> None:
        """Note the plain value of a symbolic number that has one."""
        self._assumed.numbers[number.id] = value

    def check(self, *assumptions: Term) -> Any:
        """Return a model of the current path and the assumptions, or None when there is none.

        Raises GaveUp when the solver does not know.
        """
        if time.process_time() > self._deadline:
            raise GaveUp(f"no result in the {self.limits.seconds:.1f} s that were left")
        self.queries += 1
        answer = self._solver.check(*assumptions)
        if answer == z3.unknown:
            raise GaveUp(f"the solver does not know: {self._solver.reason_unknown()}")
        return self._solver.model() if answer == z3.sat else None

    def explore(
        self, hypotheses: Sequence[Term], body: Callable[[], Result]
    ) -> Iterator[Path[Result]]:
        """Yield every path of `body` that the hypotheses allow; `check` may be used at each.

        Yields nothing when no input satisfies the hypotheses. Raises GaveUp at a limit and
        EngineFault when `body` does not ask the same questions again when it is run again.
        """
        self._deadline = time.process_time() + self.limits.seconds
        self._solver.set("timeout", self.limits.query_milliseconds)
        self._solver.add(*hypotheses)
        for hypothesis in hypotheses:
            self._assumed.assume(hypothesis)
        self._model = self.check()
        if self._model is None:
            return
        for _ in range(self.limits.paths):
            yield self._run(body)
            if not self._backtrack():
                return
        raise GaveUp(f"more than {self.limits.paths} paths")

    def decide(self, question: "SBool") -> bool:
        """Return the answer to `question` on this path, and record it."""
        cursor, trail = self._cursor, self._trail
        # Nearly every question is one of a path that is run again.
        if cursor < len(trail) and trail[cursor].question == question.id:
            self._cursor = cursor + 1
            return trail[cursor].answer
        if question.id in self._literals:
            return self._literals[question.id]
        if not self._running:
            raise GaveUp("a formula asked for a decision; use reassure_proofs.engine.formula")
        if cursor < len(trail):
            raise Unrepeatable(
                f"run again, the code under test asked {question.term} where it had decided "
                f"{trail[cursor].literal}; it must depend on nothing but its arguments"
            )
        if cursor >= self.limits.decisions:
            raise GaveUp(f"more than {self.limits.decisions} decisions on one path")
        # A question that was answered on this path is recorded again, but not asked again.
        decision = self._known.get(question.id)
        if decision is not None:
            decision = _Decision(question.id, decision.literal, decision.answer, self._path())
        else:
            decision = self._open(question)
            if decision.relation is not None:
                self._facts.learn(decision.relation, decision.answer)
        self._known[question.id] = decision
        self._trail.append(decision)
        self._cursor += 1
        return decision.answer

    def _run(self, body: Callable[[], Result]) -> Path[Result]:
        self._cursor = 0
        self._known = {decision.question: decision for decision in self._trail}
        self._facts = self._assumed.copy()
        for decision in self._trail:
            if decision.relation is not None:
                self._facts.learn(decision.relation, decision.answer)
        result: Result | None = None
        error: Exception | None = None
        self._running, Signal.latest = True, None
        try:
            result = body()
        except Exception as raised:
            # Whatever the code raises is a finding, not a fault of the executor.
            error = raised
        finally:
            self._running = False
        if Signal.latest is not None:
            # The code caught it; what it made of that is no answer.
            raise Signal.latest
        if isinstance(error, RecursionError):
            raise GaveUp("the code under test calls itself without end") from error
        if self._cursor < len(self._trail):
            raise Unrepeatable("the code under test asked fewer questions when it was run again")
        return Path(self._path(), result, error, self._model)

    def _path(self, *literals: Term) -> Term:
        """Return the condition of the path up to here, and the literals."""
        before = (self._trail[-1].path,) if self._trail else ()
        terms = (*before, *literals)
        return terms[0] if len(terms) == 1 else conjunction(*terms)

    def _open(self, question: "SBool") -> _Decision:
        """Answer a question for the first time, as the model at hand does."""
        answer = z3.is_true(self._model.eval(question.term, model_completion=True))
        literal, opposite = question.term, negation(question.term)
        if not answer:
            literal, opposite = opposite, literal
        relation, model = question.relation, None
        if relation is None or self._facts.follows(relation) is None:
            model = self.check(opposite)
        decision = _Decision(question.id, literal, answer, self._path(literal), relation=relation)
        if model is not None:
            decision.opposite, decision.model, decision.branching = opposite, model, True
            self._solver.push()
            self._solver.add(literal)
        return decision

    def _backtrack(self) -> bool:
        """Flip the last decision that has another side; return whether there was one."""
        while self._trail:
            last = self._trail.pop()
            if last.branching:
                self._solver.pop()
            if last.opposite is not None:
                self._model = last.model
                path = self._path(last.opposite)
                self._trail.append(
                    _Decision(
                        last.question,
                        last.opposite,
                        not last.answer,
                        path,
                        branching=True,
                        relation=last.relation,
                    )
                )
                self._solver.push()
                self._solver.add(last.opposite)
                return True
        return False


class _Symbolic:
    """What symbolic integers and truth values share: a term, and that equal terms are one."""

    __slots__ = ("engine", "id", "term")

    def __init__(self, engine: Engine, term: Term) -> None:
        self.engine = engine
        self.term = term
        # The solver keeps one copy of equal terms, so this tells terms apart. It is unique only
        # while the term lives, hence the engine keeps one value of each.
        self.id: int = term.get_id()
        engine.made.setdefault(self.id, self)

    def __hash__(self) -> int:
        """All alike, as whether two are equal is for the solver; refused unless asked for.

        A plain number that is equal on some inputs hashes differently, so a set that holds both
        kinds would find them different on all inputs, and no certificate would tell.
        """
        if not self.engine.hashable:
            raise GaveUp("the code under test puts symbolic values in a set or a dict")
        return 0

    def __repr__(self) -> str:
        # Messages of the model's code name values; printing terms would take most of the time.
        if self.engine.strict:
            raise GaveUp("text is made of a symbolic value")
        return f"<{type(self).__name__} {self.id}>"

    def __format__(self, _: str) -> str:
        return repr(self)


def _operator(
    build: Callable[[Term, Term], Term],
    *,
    result: str,
    commutes: bool = False,
    reflexive: bool | None = None,
    relation: str = "",
) -> Callable[[Any, object], Any]:
    """Return the method of a binary operator; `result` names the class that it returns.

    `reflexive` is the answer for a value and itself, where that is always the same. `relation` is
    how `engine.facts` calls it, where it is one of those.
    """

    def method(self: _Symbolic, other: object) -> Any:
        right: Any = other if type(other) is type(self) else _constant(self, other)
        if right is None:
            return _beside_another_kind(self, other, relation)
        # One order for both ways of asking, so that the second question is known to be the first.
        left, right = (right, self) if commutes and right.id < self.id else (self, right)
        made = self.engine.made
        if left is right and reflexive is not None:
            return _constant_truth(self.engine, reflexive)
        key = (build, left.id, right.id)
        found: Any = made.get(key)
        if found is None:
            kind = SInt if result == "SInt" else SBool
            found = made[key] = kind(self.engine, build(left.term, right.term))
            if relation:
                found.relation = relate(relation, left.id, right.id)
        return found

    return method


def _constant_truth(engine: Engine, value: bool) -> "SBool":
    key = (bool, int(value))
    found: SBool | None = engine.made.get(key)
    if found is None:
        found = engine.made[key] = SBool(engine, z3.BoolVal(value))
        engine.note_literal(found, value)
    return found


def _constant(beside: _Symbolic, value: object) -> _Symbolic | None:
    """Return a plain operand as a symbolic one, None if it is not of the kind it stands beside."""
    plain = int if isinstance(beside, SInt) else bool
    if plain is int and isinstance(value, SBool):
        return value.number()
    if not isinstance(value, plain):
        return None
    made = beside.engine.made
    key = (plain, int(value))
    found: _Symbolic | None = made.get(key)
    if found is None:
        if plain is int:
            found = SInt(beside.engine, z3.IntVal(int(value)))
            beside.engine.note_number(found, int(value))
        else:
            found = _constant_truth(beside.engine, bool(value))
        made[key] = found
    return found


def _beside_another_kind(left: _Symbolic, other: object, relation: str) -> Any:
    """Return what an operator answers beside a value that is no integer, as a plain integer would.

    Refuses where that is not known: what a value of a foreign type says of an integer is up to it.
    """
    if isinstance(other, float | Fraction) and relation and isinstance(left, SInt):
        return _beside_fraction(left, other, relation)
    if isinstance(other, float | Fraction):
        raise GaveUp("arithmetic on a symbolic number and a fraction is not followed")
    if _has_own_comparison(other):
        raise GaveUp(f"an operator stands between a symbolic value and a {type(other).__name__}")
    return NotImplemented


def _beside_fraction(left: "SInt", other: float | Fraction, relation: str) -> Any:
    """Return how an integer compares with a fraction: as with the integers next to it."""
    if isinstance(other, float) and (isnan(other) or isinf(other)):
        above = not isnan(other) and other > 0
        below = not isnan(other) and other < 0
        answers = {"=": False, "!=": True, "<": above, "<=": above, ">": below, ">=": below}
        return _constant_truth(left.engine, answers[relation])
    whole = other == floor(other)
    if relation in ("=", "!=") and not whole:
        return _constant_truth(left.engine, relation == "!=")
    if relation in ("=", "!="):
        return left == floor(other) if relation == "=" else left != floor(other)
    if relation in ("<", ">="):
        return left < ceil(other) if relation == "<" else left >= ceil(other)
    return left <= floor(other) if relation == "<=" else left > floor(other)


def _has_own_comparison(value: object) -> bool:
    """Return whether a value that is no number may think itself equal to an integer."""
    kind = type(value)
    return kind not in _NEVER_NUMBERS and kind.__eq__ is not object.__eq__


_NEVER_NUMBERS: Final = (type(None), str, bytes, tuple, list, set, frozenset, dict, range)
"""Types whose values are never equal to an integer, nor before or after one."""


def _power_of_two(name: str, exponent: object) -> int:
    if not isinstance(exponent, int) or not 0 <= exponent <= _LARGEST_SHIFT:
        raise GaveUp(f"{name} is followed with a small plain number on its right only")
    return 1 << int(exponent)


_LARGEST_SHIFT: Final = 64


def _refuse_operator(name: str) -> Callable[..., NoReturn]:
    """Return the method of an operator that is refused by its name."""

    def refuse(*_: object) -> NoReturn:
        raise GaveUp(f"{name} is not supported on symbolic values")

    return refuse


class SInt(_Symbolic):
    """A symbolic integer without bounds."""

    __slots__ = ()

    __eq__ = _operator(
        lambda a, b: a == b, result="SBool", commutes=True, reflexive=True, relation="="
    )
    __ne__ = _operator(
        lambda a, b: a != b, result="SBool", commutes=True, reflexive=False, relation="!="
    )
    __lt__ = _operator(lambda a, b: a < b, result="SBool", reflexive=False, relation="<")
    __le__ = _operator(lambda a, b: a <= b, result="SBool", reflexive=True, relation="<=")
    __gt__ = _operator(lambda a, b: a > b, result="SBool", reflexive=False, relation=">")
    __ge__ = _operator(lambda a, b: a >= b, result="SBool", reflexive=True, relation=">=")
    __add__ = __radd__ = _operator(lambda a, b: a + b, result="SInt", commutes=True)
    __sub__ = _operator(lambda a, b: a - b, result="SInt")
    __rsub__ = _operator(lambda a, b: b - a, result="SInt")
    __hash__ = _Symbolic.__hash__

    def __neg__(self) -> "SInt":
        return self._made("-", lambda: -self.term)

    def __pos__(self) -> "SInt":
        return self

    __trunc__ = __floor__ = __ceil__ = __pos__

    def __invert__(self) -> "SInt":
        return self._made("~", lambda: -self.term - 1)

    def __abs__(self) -> "SInt":
        return self._made("abs", lambda: z3.If(self.term >= 0, self.term, -self.term))

    def __mul__(self, other: object) -> Any:
        if isinstance(other, tuple | list | str):
            return NotImplemented
        if not isinstance(other, int):
            raise GaveUp("* of two symbolic numbers, or of one and a fraction, is not followed")
        return self._made(("*", int(other)), lambda: self.term * z3.IntVal(int(other)))

    __rmul__ = __mul__

    def __floordiv__(self, other: object) -> "SInt":
        return self._divided("//", other)

    def __mod__(self, other: object) -> "SInt":
        return self._divided("%", other)

    def _divided(self, name: str, other: object) -> "SInt":
        # The solver rounds as Python does where the divisor is positive.
        if not isinstance(other, int) or other <= 0:
            raise GaveUp(f"{name} is followed with a plain positive number on its right only")
        divisor = z3.IntVal(int(other))
        return self._made(
            (name, int(other)), lambda: self.term / divisor if name == "//" else self.term % divisor
        )

    def __lshift__(self, other: object) -> Any:
        return self * _power_of_two("<<", other)

    def __rshift__(self, other: object) -> Any:
        return self // _power_of_two(">>", other)

    def _made(self, how: object, build: Callable[[], Term]) -> "SInt":
        made = self.engine.made
        found: SInt | None = made.get((how, self.id))
        if found is None:
            found = made[how, self.id] = SInt(self.engine, build())
        return found

    def __getattr__(self, name: str) -> NoReturn:
        if hasattr(int, name):
            raise GaveUp(f"the attribute {name!r} of a symbolic number is not followed")
        raise AttributeError(f"'int' object has no attribute {name!r}")

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __index__(self) -> int:
        """Return a plain bound for a slice, one path for each that makes a difference.

        All bounds beyond the end of the sequence are one case, so the sequence has to be known:
        anything but `name[:number]` and `name[number]` is refused.
        """
        if self.engine.strict:
            return self.enumerate()
        bound = _subscript_bound(sys._getframe(1))  # noqa: SLF001 - there is no public way
        return self.enumerate() if bound is None else self.choose_bound(bound)

    def enumerate(self) -> int:
        """Return the value of a number that has few: one path for each."""
        few = () if self < 0 else range(_FEW)
        for value in few:
            if self == value:
                return value
        raise GaveUp("a symbolic number is used as a plain one outside of a slice of a variable")

    def choose_bound(self, bound: int) -> int:
        """Return the value of this number, or `bound` or `-bound` for all at least as far out."""
        if self >= bound:
            return bound
        if self < 0:
            negative = (value for value in range(-1, -bound, -1) if self == value)
            return next(negative, -bound)
        # What is left is known without asking.
        return next((value for value in range(bound - 1) if self == value), bound - 1)


class SBool(_Symbolic):
    """A symbolic truth value. In sums and beside numbers it counts as 0 or 1, as a bool does."""

    __slots__ = ("relation",)

    def __init__(self, engine: Engine, term: Term) -> None:
        super().__init__(engine, term)
        self.relation: Relation | None = None
        """What it says, where it is a simple comparison or membership."""

    __and__ = __rand__ = _operator(conjunction, result="SBool")
    __or__ = __ror__ = _operator(disjunction, result="SBool")
    __xor__ = __rxor__ = _operator(z3.Xor, result="SBool")
    _same = _operator(lambda a, b: a == b, result="SBool")
    __hash__ = _Symbolic.__hash__

    def __eq__(self, other: object) -> Any:
        return self._same(other) if isinstance(other, SBool | bool) else self.number() == other

    def __ne__(self, other: object) -> Any:
        return self ^ other if isinstance(other, SBool | bool) else self.number() != other

    def __lt__(self, other: object) -> Any:
        return self.number() < other

    def __le__(self, other: object) -> Any:
        return self.number() <= other

    def __gt__(self, other: object) -> Any:
        return self.number() > other

    def __ge__(self, other: object) -> Any:
        return self.number() >= other

    def __add__(self, other: object) -> Any:
        return self.number() + other

    __radd__ = __add__

    def __sub__(self, other: object) -> Any:
        return self.number() - other

    def __rsub__(self, other: object) -> Any:
        return -self.number() + other

    def __mul__(self, other: object) -> Any:
        return self.number() * other

    __rmul__ = __mul__

    def __neg__(self) -> SInt:
        return -self.number()

    def __pos__(self) -> SInt:
        return self.number()

    def __index__(self) -> int:
        return int(bool(self))

    def __bool__(self) -> bool:
        return self.engine.decide(self)

    def choose(self, yes: object, no: object) -> SInt:
        """Return `yes` where this holds and `no` where it does not, without a decision."""
        first, second = (v if isinstance(v, SInt) else self.engine.plain(v) for v in (yes, no))
        key = ("choose", self.id, first.id, second.id)
        found: SInt | None = self.engine.made.get(key)
        if found is None:
            found = SInt(self.engine, z3.If(self.term, first.term, second.term))
            self.engine.made[key] = found
        return found

    def number(self) -> SInt:
        """Return 1 where this holds and 0 where it does not."""
        made = self.engine.made
        found: SInt | None = made.get(("number", self.id))
        if found is None:
            found = SInt(self.engine, z3.If(self.term, z3.IntVal(1), z3.IntVal(0)))
            made["number", self.id] = found
        return found


_OBJECT_WIDE: Final = frozenset(
    [
        "__class__",
        "__new__",
        "__init__",
        "__getattribute__",
        "__setattr__",
        "__delattr__",
        "__dir__",
        "__doc__",
        "__init_subclass__",
        "__subclasshook__",
        "__reduce__",
        "__reduce_ex__",
        "__getstate__",
        "__sizeof__",
    ]
)
"""What every object has and no operator asks for."""


def refuse_the_rest(kind: type, plain: type) -> None:
    """Refuse by name every operator of the plain type that what stands for it does not define."""
    for name in sorted(set(dir(plain)) - _OBJECT_WIDE):
        own = getattr(kind, name, None)
        if name.startswith("__") and own in (None, getattr(object, name, None)):
            setattr(kind, name, _refuse_operator(f"{name} of {plain.__name__}"))


refuse_the_rest(SInt, int)
refuse_the_rest(SBool, bool)


class SSet:
    """A symbolic set of integers: any set, of any size. All that can be asked is who is in it."""

    __slots__ = ("asked", "engine", "function")

    def __init__(self, engine: Engine, function: Term) -> None:
        self.engine = engine
        self.function = function
        self.asked: list[SInt] = []
        """The numbers of which it was asked whether they are in it."""

    def holds(self, member: object) -> Any:
        """Return whether `member` is in the set, without asking for a decision."""
        number = member if isinstance(member, SInt) else self.engine.plain(member)
        made = self.engine.made
        key = (self.function.name(), number.id)
        found = made.get(key)
        if found is None:
            found = made[key] = SBool(self.engine, self.function(number.term))
            found.relation = ("in", self.function.name(), number.id)
            self.asked.append(number)
        return found

    def __contains__(self, member: object) -> bool:
        return bool(self.holds(member))

    def _refuse(self, *_: object) -> NoReturn:
        raise GaveUp("the code under test does more with a set of any size than ask who is in it")

    __iter__ = __len__ = __eq__ = __ne__ = __hash__ = __bool__ = _refuse
    __or__ = __ror__ = __rand__ = __sub__ = __rsub__ = __xor__ = __rxor__ = _refuse
    __lt__ = __le__ = __gt__ = __repr__ = __format__ = _refuse

    def __and__(self, other: object) -> Any:
        # A set whose members are known can answer by asking for each of them.
        return NotImplemented if hasattr(other, "members") else self._refuse()

    __ge__ = __and__

    def __getattr__(self, name: str) -> NoReturn:
        if hasattr(frozenset, name):
            self._refuse()
        raise AttributeError(f"'frozenset' object has no attribute {name!r}")


refuse_the_rest(SSet, frozenset)


_FEW: Final = 16
"""From here on a plain number is not few any more."""
_NAMED_SUBSCRIPT: Final = re.compile(r"(\w+)\[([^\[\]]*)\]")
_BINARY_OP_SUBSCRIPT: Final = 26
"""The argument of BINARY_OP that means a subscript, in the versions that have no BINARY_SUBSCR."""


def bound_beyond(length: int, *, forwards: bool) -> int:
    """Return from where on all bounds of a sequence are alike.

    The slices `xs[:-len(xs)]` and `xs[:-len(xs) - 1]` are; with a step that goes backwards they are
    not, and the subscripts are not either.
    """
    return length if forwards else length + 1


def _subscript_bound(frame: FrameType) -> int | None:
    """Return from where on all bounds are alike, None if that cannot be told from `frame`."""
    code, at = frame.f_code, frame.f_lasti
    name = dis.opname[code.co_code[at]]
    if name == "BINARY_OP" and code.co_code[at + 1] == _BINARY_OP_SUBSCRIPT:
        name = "BINARY_SUBSCR"
    match = _NAMED_SUBSCRIPT.fullmatch(_source_text(code, at))
    if match is None or name not in ("BINARY_SUBSCR", "BINARY_SLICE"):
        return None
    sequence = frame.f_locals.get(match[1])
    if not isinstance(sequence, tuple | list):
        return None
    return bound_beyond(len(sequence), forwards=match[2].count(":") == 1)


@cache
def _source_text(code: CodeType, at: int) -> str:
    """Return the source of the expression that the instruction at `at` evaluates, "" if unknown."""
    line, last_line, start, end = next(islice(code.co_positions(), at // 2, None))
    if line is None or line != last_line or start is None or end is None:
        return ""
    return linecache.getline(code.co_filename, line).encode()[start:end].decode()


def concretise(value: object, model: Term, known: dict[int, object] | None = None) -> object:
    """Return the plain value that `value` has in a model; containers are converted throughout.

    `known` are the values of terms by identity; a term that stands in many places is asked once.
    """
    known = {} if known is None else known
    if isinstance(value, SInt | SBool):
        if value.id not in known:
            plain = model.eval(value.term, model_completion=True)
            known[value.id] = plain.as_long() if isinstance(value, SInt) else z3.is_true(plain)
        return known[value.id]
    if hasattr(type(value), "concretise"):
        return value.concretise(lambda part: concretise(part, model, known))  # type: ignore[attr-defined]
    if isinstance(value, tuple | list | set | frozenset):
        return type(value)(concretise(part, model, known) for part in value)
    if isinstance(value, dict):
        pairs = value.items()
        return {concretise(k, model, known): concretise(part, model, known) for k, part in pairs}
    if is_dataclass(value) and not isinstance(value, type):
        parts = {part.name: getattr(value, part.name) for part in fields(value)}
        plain_parts = {name: concretise(part, model, known) for name, part in parts.items()}
        return replace(value, **plain_parts)
    return value
