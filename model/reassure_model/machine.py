"""What the other rooms ask of one protocol; no engine of theirs knows a protocol by its name."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from reassure_model.kip_236.state import Surroundings
from reassure_model.outcome import Accepted, Rejected
from reassure_spec.readings import Readings

State = TypeVar("State")
Written = TypeVar("Written")
Written_co = TypeVar("Written_co", covariant=True)
State_contra = TypeVar("State_contra", contravariant=True)


class Due(Protocol[Written_co]):
    """A write that is due, and the clause that asks for it."""

    @property
    def write(self) -> Written_co:
        """What is due."""

    @property
    def clause(self) -> str:
        """The clause that asks for it."""


class Always(Protocol[State_contra]):
    """What is true of a partition at every moment, or at rest."""

    @property
    def clause(self) -> str:
        """The clause that says so."""

    @property
    def find(self) -> Callable[[State_contra], str | None]:
        """Answers why it is broken, None where it holds."""

    @property
    def at_rest(self) -> bool:
        """Whether it need hold only when the controller owes nothing."""


def take_no_silent_step(
    state: State, around: Surroundings, readings: Readings
) -> tuple[State, ...]:
    """Return nothing: whatever changes a controller's mind is written."""
    return ()


@dataclass(frozen=True, slots=True)
class Judgement(Generic[State, Written]):
    """What a protocol says of the writes to one partition, whoever makes them.

    All functions are pure. A state is what ZooKeeper holds of the partition, with what follows for
    the acting controller's mind from the order of earlier writes.
    """

    begin: State
    """The partition before anything was written."""
    accept: Callable[[State, Written, Surroundings, Readings], Accepted[State] | Rejected]
    """Whether a write may come next, and the state that it leads to."""
    fail_over: Callable[[State, Readings], State]
    """The state as the next controller finds it, who remembers nothing."""
    owed: Callable[[State, Surroundings, Readings], Due[Written] | None]
    """What the controller has to write next; None where it may rest."""
    invariants: tuple[Always[State], ...] = ()
    silent: Callable[[State, Surroundings, Readings], Iterable[State]] = take_no_silent_step
    """The states that a controller may come to without a write."""
