"""Whether a state kills a mutant: what it would have done there, and what the judge says of that.

An implementation that has the mistake acts in such a state as the mutant does. The mutant is killed
where the true rules reject one of its writes, or where it comes to rest and something is owed. A
different write is not enough: the rules allow more than one way.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from types import FrameType, FunctionType
from typing import Any, Final, cast

from reassure_judge.moments import SUCCEEDS
from reassure_model.machine import Judgement
from reassure_model.outcome import Rejected
from reassure_model.partition import Environment
from reassure_mutation.linked import Linked, list_reached, parse, spell
from reassure_mutation.operators import Mutation, iterate_mutations
from reassure_spec.readings import Readings

MOST_WRITES: Final = 25
"""How many writes a mutant makes in a row before it is taken never to rest."""
NEVER_RESTS: Final = "never rests"
"""In place of a clause: the mutant writes on and on, and the judge allows each of its writes."""


@dataclass(frozen=True, slots=True)
class Situation:
    """A state in which a controller acted, came to rest or took over."""

    kind: str
    """`ACTS`, `RESTS` or `SUCCEEDS`; in the last the partition is as the one before it had it."""
    partition: Any
    around: Environment
    writes: int | None = None
    """How many writes it made before something else happened; None: it came to rest undisturbed."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A reference controller with one mistake."""

    function: FunctionType
    mutation: Mutation

    @property
    def name(self) -> str:
        """Its stable name: function, operator and text."""
        return f"{spell(self.function)}: {self.mutation.name}"

    @property
    def sentence(self) -> str:
        """What is different, for people."""
        return f"in {spell(self.function)} {self.mutation.sentence}"


def normalise(partition: Any) -> Any:
    """Return a state with epochs and the numbers of requests as if it all began here.

    Nobody asks more of them than which of two is later.
    """
    state, requests = getattr(partition, "state", None), getattr(partition, "requests", ())
    if state is not None and (state.leader_epoch or state.controller_epoch):
        state = replace(state, leader_epoch=0, controller_epoch=0)
        partition = replace(partition, state=state)
    if requests and any(each.sequence != at for at, each in enumerate(requests)):
        numbered = tuple(replace(each, sequence=at) for at, each in enumerate(requests))
        partition = replace(partition, requests=numbered)
    return partition


class Reference:
    """A protocol's reference controller under some readings, and mutants of it."""

    def __init__(self, judgement: Judgement[Any, Any], readings: Readings) -> None:
        self.judgement = judgement
        self.readings = readings
        owed, fail_over, accept = (
            cast("FunctionType", each)
            for each in (judgement.owed, judgement.fail_over, judgement.accept)
        )
        self.linked: Final = Linked(owed, fail_over, accept)
        self.functions: Final = list_reached(owed, fail_over)
        """Those that are changed."""
        self.mutated: Final = replace(
            judgement,
            owed=self.linked.get(owed),
            fail_over=self.linked.get(fail_over),
            accept=self.linked.get(accept),
        )
        """The same, asked of the copy: by the mutant that is planted."""

    def list_mutants(self) -> tuple[Mutant, ...]:
        """Return every mutant, in a stable order."""
        return tuple(
            Mutant(function, mutation)
            for function in self.functions
            for mutation in iterate_mutations(parse(function))
        )

    def compile(self, mutant: Mutant) -> FunctionType:
        """Return the changed function."""
        return self.linked.compile(mutant.function, mutant.mutation.tree)

    def _ask(self, find: Callable[..., Any], *arguments: Any) -> Any:
        """Return what the mutant answers; one that fails comes to nothing, as its process would."""
        try:
            return find(*arguments, self.readings)
        except Exception:  # whatever a changed function raises
            return None

    def find_kill(self, situation: Situation) -> str | None:
        """Return the clause by which the planted mutant is killed in a state, None where it is not.

        What it has in mind may be another thing than a right controller has, from a takeover on or
        by what it made of its own writes; the znodes are the same for both.
        """
        judgement, around, readings = self.judgement, situation.around, self.readings
        true = mind = situation.partition
        if situation.kind == SUCCEEDS:
            true = judgement.fail_over(true, readings)
            mind = self._ask(self.mutated.fail_over, mind)
            if mind == true or type(mind) is not type(true):
                return None
        most = MOST_WRITES if situation.writes is None else situation.writes
        for _ in range(most):
            due, owed = self._ask_owed(mind, around), judgement.owed(true, around, readings)
            outcome = None if due is None else self._judge(true, due.write, around)
            if due is None or outcome is None:
                return owed.clause if owed is not None and situation.writes is None else None
            if isinstance(outcome, Rejected):
                return outcome.clause
            seen = self._ask(self.mutated.accept, mind, due.write, around)
            same = owed is not None and owed.write == due.write
            true, mind = outcome.state, self._carry_on(outcome.state, seen)
            if same and true == mind:
                return None  # the state after this write is looked at by itself
        return NEVER_RESTS if situation.writes is None else None

    def _ask_owed(self, partition: Any, around: Environment) -> Any:
        due = self._ask(self.mutated.owed, partition, around)
        return due if hasattr(due, "write") else None

    def _judge(self, true: Any, write: Any, around: Environment) -> Any:
        """Return what the true rules say; None of what is no write that anybody could make."""
        try:
            return self.judgement.accept(true, write, around, self.readings)
        except (AssertionError, AttributeError, IndexError, TypeError):
            return None

    def _carry_on(self, true: Any, seen: Any) -> Any:
        """Return a partition as it is, with what the mutant has in mind of it."""
        after: Any = getattr(seen, "state", None)
        if type(after) is not type(true) or after is None:
            return true
        kept = {name: getattr(after, name) for name in self.judgement.mind}
        return replace(true, **kept) if kept else true

    def find_called(self, situation: Situation) -> frozenset[str]:
        """Return the names of the functions that decide what a right controller does next.

        A mutant of any other function does the same in this state.
        """
        called: set[str] = set()

        def note(frame: FrameType, event: str, _: object) -> None:
            if event == "call":
                called.add(frame.f_code.co_filename)

        partition, around = situation.partition, situation.around
        sys.setprofile(note)
        try:
            if situation.kind == SUCCEEDS:
                self.mutated.fail_over(partition, self.readings)
            else:
                due = self.mutated.owed(partition, around, self.readings)
                if due is not None and self.judgement.mind:
                    self.mutated.accept(partition, due.write, around, self.readings)
        finally:
            sys.setprofile(None)
        return frozenset(called)


def find_kills(
    reference: Reference, mutants: Iterable[Mutant], situations: Sequence[Situation]
) -> dict[str, tuple[str, int]]:
    """Return by the name of each mutant that is killed the clause, and the first state that does.

    Mutants are looked at one by one, in states in which the changed function is called.
    """
    where: dict[str, list[int]] = {}
    for number, situation in enumerate(situations):
        for name in reference.find_called(situation):
            where.setdefault(name, []).append(number)
    found: dict[str, tuple[str, int]] = {}
    for mutant in mutants:
        numbers = where.get(f"<{spell(mutant.function)}>", ())
        if not numbers:
            continue
        with reference.linked.planted(mutant.function, reference.compile(mutant)):
            for number in numbers:
                clause = reference.find_kill(situations[number])
                if clause is not None:
                    found[mutant.name] = clause, number
                    break
    return found
