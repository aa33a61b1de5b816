"""What the explorer's models of whole controllers share.

`Adapter` takes steps of a model of `reassure_model` on views of the explorer's states. `Copies` is
for the two models that look at where the records of one partition are (`reassure_model.copies`):
KAFKA-42 (`kafka_42`) and the shipped controllers (`kafka_zk`). The leader epoch grows
without end and is never looked at, so it is 0 in every state here.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

from reassure_explorer.engine.interface import (
    Action,
    Choice,
    Domain,
    Int,
    Invariant,
    Model,
    Noted,
    SequenceOf,
    SetOf,
)
from reassure_model.environment import NotPossible
from reassure_model.outcome import Rejected
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER, ReplicaList

Make = Callable[[Any], Any]
"""From a parameter to an action of the model."""


class Steps(ABC):
    """Takes the steps of a model of `reassure_model` on states of the explorer."""

    counted: ClassVar[Mapping[type, str]]
    """Which field counts down how often an action of the model may still happen."""

    @abstractmethod
    def view(self, state: Any) -> Any:
        """Return the explorer's state as the model sees it."""

    @abstractmethod
    def store(self, state: Any, after: Any) -> Any:
        """Return the explorer's state after a step of the model on a view."""

    @abstractmethod
    def step(self, view: Any, action: Any) -> Any:
        """Take a step of the model. Raises NotPossible."""

    def _is_spent(self, state: Any, action: Any) -> bool:
        name = self.counted.get(action.__class__)
        return name is not None and getattr(state, name) == 0

    def take(self, make: Make, state: Any, parameter: Any) -> Any:
        """Take an action; None where it cannot be, is rejected, or is used up."""
        action = make(parameter)
        if self._is_spent(state, action):
            return None
        try:
            outcome = self.step(self.view(state), action)
        except NotPossible:
            return None
        if isinstance(outcome, Rejected):
            return None
        after = self.store(state, outcome.state)
        name = self.counted.get(action.__class__)
        if name is not None:
            after = after.replace(**{name: getattr(state, name) - 1})
        return Noted(after, outcome.clauses) if outcome.clauses else after

    def explain(self, make: Make, state: Any, parameter: Any) -> str:
        """Say why an action is not possible: the clause that forbids it, or what is lacking."""
        action = make(parameter)
        if self._is_spent(state, action):
            return "no more of these within this scope"
        try:
            outcome = self.step(self.view(state), action)
        except NotPossible:
            return "there is nothing to act upon"
        if isinstance(outcome, Rejected):
            return f"{outcome.clause}: {outcome.reason}"
        return "it changes nothing"

    def ask(self, predicate: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return a predicate of the model as one about states of the explorer."""
        return partial(self._ask, predicate)

    def _ask(self, predicate: Callable[[Any], Any], state: Any) -> Any:
        return predicate(self.view(state))


class Adapter(Steps):
    """A model of `reassure_model` within a world, under a choice of readings."""

    readings: Readings
    fair: ClassVar[tuple[str, ...]] = ()
    """Actions that are bound to happen where they stay possible: what heals."""

    @property
    @abstractmethod
    def limits(self) -> Mapping[str, int]:
        """How often each may happen, by the field that counts it."""

    @abstractmethod
    def make_model(self, name: str) -> Model:
        """Return the explorer model."""

    def make_action(
        self,
        name: str,
        make: Make,
        parameters: tuple[Any, ...] = (None,),
        words: Callable[[Any], str] | None = None,
    ) -> Action:
        """Return an action of the explorer's model; `words` say it with a parameter."""
        why = partial(self.explain, make)
        return Action(name, partial(self.take, make), parameters, name in self.fair, why, words)

    def make_invariants(
        self, found: Mapping[str, Callable[[Any], str | None]]
    ) -> tuple[Invariant, ...]:
        """Return the model's predicates, by clause, as invariants."""
        return tuple(Invariant(clause, self.ask(find)) for clause, find in found.items())

    def make_counters(self) -> dict[str, Domain]:
        """Return the fields that count down."""
        return {name: Int(0, limit) for name, limit in self.limits.items()}


NAMES: Final = ("assigned", "leader", "isr", "live", "running", "holding")


@dataclass(frozen=True, slots=True)
class CopiesWorld:
    """What a scope holds, and how often what is not healing may happen."""

    assigned: ReplicaList
    targets: tuple[ReplicaList, ...]
    """What clients may ask for."""
    brokers: int
    """Brokers are numbered from 1; all are alive at the start."""
    requests: int = 1
    """How often clients ask."""
    deaths: int = 0
    failovers: int = 0
    interrupts: int = 0
    """How often an admin command is interrupted."""
    entries: tuple[ReplicaList, ...] = ()
    """What clients may write into the old znode, where requests come by another route."""
    writes: int = 0
    """How often clients write the old znode."""
    cancels: bool = True
    """Whether clients may cancel, where there is a call for it."""

    @property
    def members(self) -> tuple[int, ...]:
        """The brokers."""
        return tuple(range(1, self.brokers + 1))


def make_copies_fields(world: CopiesWorld, longest: int) -> dict[str, Domain]:
    """Return the fields that are the same for every controller."""
    members, broker = world.members, Int(1, world.brokers)
    return {
        "leader": Choice((NO_LEADER, *members)),
        "live": SetOf(members),
        "isr": SequenceOf(broker, world.brokers),
        "assigned": SequenceOf(broker, longest),
        "running": SetOf(members),
        "holding": SetOf(members),
    }


def make_copies(record: Any) -> dict[str, Any]:
    """Return the values of these fields in a record of the model."""
    return {name: getattr(record, name) for name in NAMES}
