"""Whether a state kills a mutant: what it would have done there, and what the judge says of that.

An implementation that has the mistake acts in such a state as the mutant does. The mutant is killed
where the true rules reject one of its writes, or where it comes to rest and something is owed. A
different write is not enough: the rules allow more than one way.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any, Final, cast

from reassure_judge.moments import SUCCEEDS
from reassure_judge.rules import Rules
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Environment
from reassure_mutation.linked import (
    Linked,
    Mutant,
    find_called,
    list_mutants,
    list_reached,
    spell,
)

MOST_WRITES: Final = 25
"""How many writes a mutant makes in a row before it is taken never to rest."""
NEVER_RESTS: Final = "never rests"
"""In place of a clause: the mutant writes on and on, and the judge allows each of its writes."""
UNREACHED: Final = "no state decides by it"
SAME: Final = "it does the same in every state"
ALLOWED: Final = "it does something else, which the judge allows"
SURVIVES: Final = (UNREACHED, SAME, ALLOWED)
"""Why a mutant survives, the plainest reason first."""


@dataclass(frozen=True, slots=True)
class Situation:
    """A moment at which a controller acted, came to rest or took over."""

    kind: str
    """`ACTS`, `RESTS` or `SUCCEEDS`; in the last the states are as the one before it had them."""
    states: tuple[Any, ...]
    """All that the judge holds possible, the likeliest first."""
    around: Environment
    writes: int | None = None
    """How many writes it made before something else happened; None: it came to rest undisturbed."""


def normalise(state: Any) -> Any:
    """Return a state with epochs and the numbers of requests as if it all began here.

    Nobody asks more of them than which of two is later.
    """
    partition = state.partition
    znode, requests = getattr(partition, "state", None), getattr(partition, "requests", ())
    if znode is not None and (znode.leader_epoch or znode.controller_epoch):
        partition = replace(partition, state=replace(znode, leader_epoch=0, controller_epoch=0))
    if requests and any(each.sequence != at for at, each in enumerate(requests)):
        numbered = tuple(replace(each, sequence=at) for at, each in enumerate(requests))
        partition = replace(partition, requests=numbered)
    return state._replace(partition=partition)


class Reference:
    """A protocol's reference controller under some readings, and mutants of it.

    `rules` are the judge's, which nobody changes.
    """

    def __init__(self, rules: Rules[Any, Any]) -> None:
        self.rules = rules
        self.judgement: Final = rules.judgement
        owed, fail_over, accept = (
            cast("FunctionType", each)
            for each in (self.judgement.owed, self.judgement.fail_over, self.judgement.accept)
        )
        self.linked: Final = Linked(owed, fail_over, accept)
        self.functions: Final = list_reached(owed, fail_over)
        """Those that are changed."""
        self.mutated: Final = replace(
            self.judgement,
            owed=self.linked.get(owed),
            fail_over=self.linked.get(fail_over),
            accept=self.linked.get(accept),
        )
        """The same, asked of the copy: by the mutant that is planted."""

    def list_mutants(self) -> tuple[Mutant, ...]:
        """Return every mutant, in a stable order."""
        return list_mutants(self.functions)

    def expand(self, states: tuple[Any, ...], around: Environment) -> tuple[Any, ...]:
        """Return states with all that a controller may come to think without a write."""
        found = dict.fromkeys(states)
        waiting = list(states)
        while waiting:
            for after in self.rules.take_silent_steps(waiting.pop(), (around,)):
                if after not in found:
                    found[after] = None
                    waiting.append(after)
        return tuple(found)

    def find_kill(self, situation: Situation) -> str:
        """Return the clause by which the planted mutant is killed at a moment, else why it is not.

        It has to be killed whichever of the possible states is the true one.
        """
        said = SAME
        for state in situation.states:
            said = self._follow(state.partition, situation)
            if said in SURVIVES:
                return said
        return said

    def _follow(self, mind: Any, situation: Situation) -> str:
        """Let the mutant act until it is killed, rests or does what a right controller does.

        What it has in mind may be another thing than a right controller has, from a takeover on or
        by what it made of its own writes; the znodes are the same for both.
        """
        rules, around, states = self.rules, situation.around, situation.states
        if situation.kind == SUCCEEDS:
            before = mind
            mind = self._ask(self.mutated.fail_over, before)
            right = self.judgement.fail_over(before, rules.readings)
            if mind == right:
                return SAME
            states = self.expand(tuple(map(rules.fail_over, states)), around)
            if type(mind) is not type(right):
                return self._find_debt(states, around, rests=situation.writes is None)
        rests, said = situation.writes is None, SAME
        for _ in range(MOST_WRITES if situation.writes is None else situation.writes):
            due = self._ask_owed(mind, around)
            outcomes = None if due is None else self._judge(states, due.write, around)
            if due is None or outcomes is None:
                return self._find_debt(states, around, rests=rests)
            accepted = [each for each in outcomes if isinstance(each[1], Accepted)]
            if not accepted:
                rejected: Rejected = outcomes[0][1]
                return rejected.clause
            right = self.judgement.owed(mind, around, rules.readings)
            same = right is not None and right.write == due.write
            after = self._carry_on(mind, due.write, around, accepted[0][1].state)
            followed = (rules.follow(state, each.state, due.write) for state, each in accepted)
            states = self.expand(tuple(followed), around)
            if same and any(state.partition == after for state in states):
                return said  # the state after this write is looked at by itself
            mind, said = after, ALLOWED
        return NEVER_RESTS if rests else said

    def _find_debt(self, states: tuple[Any, ...], around: Environment, *, rests: bool) -> str:
        """Say what is owed in every state, if the mutant comes to rest there."""
        owed = [self.rules.find_owed(state.partition, around) for state in states]
        due = [each for each in owed if each is not None]
        if not due:
            return SAME
        return due[0].clause if rests and len(due) == len(owed) else ALLOWED

    def _ask(self, find: Callable[..., Any], *arguments: Any) -> Any:
        """Return what the mutant answers; one that fails comes to nothing, as its process would."""
        try:
            return find(*arguments, self.rules.readings)
        except Exception:  # whatever a changed function raises
            return None

    def _ask_owed(self, partition: Any, around: Environment) -> Any:
        due = self._ask(self.mutated.owed, partition, around)
        return due if hasattr(due, "write") else None

    def _judge(
        self, states: tuple[Any, ...], write: Any, around: Environment
    ) -> list[tuple[Any, Any]] | None:
        """Return what the true rules say in each state; None of what nobody could write."""
        try:
            outcomes = [(state, self.rules.accept(state, write, around)) for state in states]
        except (AssertionError, AttributeError, LookupError, StopIteration, TypeError):
            return None
        return None if any(outcome is None for _, outcome in outcomes) else outcomes

    def _carry_on(self, mind: Any, write: Any, around: Environment, true: Any) -> Any:
        """Return a partition as it is by now, with what the mutant has in mind of it."""
        after: Any = getattr(self._ask(self.mutated.accept, mind, write, around), "state", None)
        if after is None or type(after) is not type(true):
            return true
        kept = {name: getattr(after, name) for name in self.judgement.mind}
        return replace(true, **kept) if kept else true

    def find_called(self, situation: Situation) -> frozenset[str]:
        """Return the names of the functions that decide what a right controller does next.

        A mutant of any other function does the same at this moment.
        """
        around, readings = situation.around, self.rules.readings

        def decide() -> None:
            for state in situation.states:
                if situation.kind == SUCCEEDS:
                    self.mutated.fail_over(state.partition, readings)
                    continue
                due = self.mutated.owed(state.partition, around, readings)
                if due is not None and self.judgement.mind:
                    self.mutated.accept(state.partition, due.write, around, readings)

        return find_called(decide)


def find_kills(
    reference: Reference, mutants: Iterable[Mutant], situations: Sequence[Situation]
) -> dict[str, tuple[str, int | None]]:
    """Return by the name of each mutant the clause that kills it, and the first state that does.

    Of a mutant that survives the reason stands in place of the clause. Mutants are looked at one by
    one, in states in which the changed function is called.
    """
    where: dict[str, list[int]] = {}
    for number, situation in enumerate(situations):
        for name in reference.find_called(situation):
            where.setdefault(name, []).append(number)
    found: dict[str, tuple[str, int | None]] = {}
    for mutant in mutants:
        numbers = where.get(f"<{spell(mutant.function)}>", ())
        survives = UNREACHED
        with reference.linked.planted(mutant):
            for number in numbers:
                said = reference.find_kill(situations[number])
                if said not in SURVIVES:
                    found[mutant.name] = said, number
                    break
                survives = max(survives, said, key=SURVIVES.index)
            else:
                found[mutant.name] = survives, None
    return found
