"""Symbolic execution of ordinary Python, by running it again and again.

The code under test is called with symbolic integers (`SInt`). Arithmetic and comparison only build
terms; the moment Python needs a plain answer, it asks a symbolic truth value (`SBool`) for its
`bool`, and the `PathExplorer` decides. Which answers are possible is asked of the solver. Where
both are, one is taken and the other remembered; when the run ends, the last remembered one is
flipped and the code runs again from the start, until nothing is left to flip. Each run is one
*path*: the conjunction of its decisions, and what the code returned or raised.

Two rules keep this sound:

* *Every* decision is recorded, the forced ones too. A run is repeated by replaying the record; if
  forced decisions were left out, the replay would hand a later decision to an earlier question.
  While replaying, each question is compared with the recorded one.
* The engine is not believed. The prover asks a fresh solver whether the path conditions together
  cover the hypotheses, and runs the plain code on one input of every path.

The values themselves are those of `engine.symbols`.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import z3

if TYPE_CHECKING:
    from reassure_proofs.engine.symbols import SBool

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
class PathLimits:
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


@dataclass(slots=True)
class PathExplorer:
    """Explores the paths of a function under hypotheses. Serves one exploration only."""

    limits: PathLimits = field(default_factory=PathLimits)
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
    _cursor: int = 0
    _model: Any = None
    _running: bool = False
    _deadline: float = 0.0
    laws: list[Term] = field(default_factory=list)
    """What paths took as given of the names that they made, each under the path up to there."""
    _stale: bool = False
    """Whether something was taken as given since the model was made."""

    def note_literal(self, truth: "SBool", value: bool) -> None:
        """Note that a symbolic truth value is no question at all."""
        self._literals[truth.id] = value

    def make(self, key: object, build: Callable[[], Any]) -> Any:
        """Return the value that is made so, which is built once."""
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = build()
        return found

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
        self._model = self.check()
        if self._model is None:
            return
        for _ in range(self.limits.paths):
            yield self._run(body)
            if not self._backtrack():
                return
        raise GaveUp(f"more than {self.limits.paths} paths")

    def assume(self, law: Term) -> None:
        """Take as given what is true of new names by their making.

        Whatever the input, there have to be such values for them.
        """
        cursor, trail = self._cursor, self._trail
        self._cursor = cursor + 1
        if cursor < len(trail):
            if trail[cursor].question != law.get_id():
                raise Unrepeatable(f"run again, {law} is given where {trail[cursor].literal} was")
            return
        before = self._path() if trail else z3.BoolVal(True)
        self.laws.append(disjunction(negation(before), law))
        self._solver.add(law)
        trail.append(_Decision(law.get_id(), law, True, self._path(law)))
        self._stale = True

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
        self._known[question.id] = decision
        self._trail.append(decision)
        self._cursor += 1
        return decision.answer

    def _run(self, body: Callable[[], Result]) -> Path[Result]:
        self._cursor = 0
        self._known = {decision.question: decision for decision in self._trail}
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
        self._refresh()
        return Path(self._path(), result, error, self._model)

    def _path(self, *literals: Term) -> Term:
        """Return the condition of the path up to here, and the literals."""
        before = (self._trail[-1].path,) if self._trail else ()
        terms = (*before, *literals)
        return terms[0] if len(terms) == 1 else conjunction(*terms)

    def _open(self, question: "SBool") -> _Decision:
        """Answer a question for the first time, as the model at hand does."""
        self._refresh()
        answer = z3.is_true(self._model.eval(question.term, model_completion=True))
        literal, opposite = question.term, negation(question.term)
        if not answer:
            literal, opposite = opposite, literal
        model = self.check(opposite)
        decision = _Decision(question.id, literal, answer, self._path(literal))
        if model is not None:
            decision.opposite, decision.model, decision.branching = opposite, model, True
            self._solver.push()
            self._solver.add(literal)
        return decision

    def _refresh(self) -> None:
        """Make a model of what was taken as given since the last one."""
        if self._stale:
            self._model = self.check()
            if self._model is None:
                raise EngineFault("what is given of new names cannot be")
            self._stale = False

    def _backtrack(self) -> bool:
        """Flip the last decision that has another side; return whether there was one."""
        while self._trail:
            last = self._trail.pop()
            if last.branching:
                self._solver.pop()
            if last.opposite is not None:
                self._model = last.model
                literal, answer = last.opposite, not last.answer
                path = self._path(literal)
                self._trail.append(_Decision(last.question, literal, answer, path, branching=True))
                self._solver.push()
                self._solver.add(literal)
                return True
        return False
