"""Sketches: records of any kind as states, for questions that a few thousand states answer.

A model bounds each of its fields, so that the derived engine can take millions of its states. A
`Sketch` bounds nothing: it is a start, what may follow, how often some of that may happen, and what
must never be. The plain engine goes through it, and no other can.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeVar

from reassure_explorer.engine.domains import Domain
from reassure_explorer.engine.interface import (
    Action,
    Int,
    Invariant,
    Model,
    ModelError,
    end_anywhere,
)
from reassure_explorer.engine.plain import explore_plain
from reassure_explorer.engine.result import Budget
from reassure_spec.errors import ReassureError

S = TypeVar("S", bound=Hashable)
A = TypeVar("A", bound=Hashable)
M = TypeVar("M", bound=Hashable)
Successors = Callable[[S], Iterable[tuple[A, S]]]
"""What may happen in a state, each with the state after it; of equal actions the last counts."""

MOST: Final = 200_000
"""States after which a search gives up."""

UNBOUNDED: Final = "a sketch has no bounds: only the plain engine can take it"


class SearchLimit(ReassureError):
    """More states are reachable than a search may look at."""


class Whole(Domain):
    """Any value that can be hashed, taken as it is: it has no bits that an engine could store."""

    def normalise(self, value: Any) -> Any:
        """Return the value."""
        return value

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise ModelError(UNBOUNDED)

    widths = property(_refuse)
    encode = draw = read = _refuse


@dataclass(frozen=True)
class _SketchModel(Model):
    """A model whose one action has another parameter for each thing that may happen."""

    follow: Callable[[Any], Mapping[Any, Any]] = dict
    is_bounded: ClassVar[bool] = False

    @property
    def instances(self) -> tuple[tuple[Action, Any], ...]:
        """Refuse: what may happen cannot be listed beforehand."""
        raise ModelError(UNBOUNDED)

    def list_instances(self, state: Any) -> list[tuple[Action, Any]]:
        """Return what may happen in a state."""
        (act,) = self.actions
        return [(act, action) for action in self.follow(state.record)]


@dataclass(frozen=True)
class Sketch:
    """Where traces begin, how they go on, and what none of them may reach."""

    start: Any
    successors: Successors[Any, Any]
    problems: Mapping[str, Callable[[Any], str | None]]
    """Says of each thing that must never be why a state is one, or None."""
    limits: Mapping[type, int] = field(default_factory=dict)
    """How often each kind of action may happen; others as often as you like."""
    say: Callable[[Any], str] = str
    """An action in words."""

    def make_model(self, name: str) -> Model:
        """Return it as a model: the record, and what is left of the limits."""
        counters = {kind: f"{kind.__name__.lower()}_left" for kind in self.limits}
        follow = _Last(self.successors)

        def take(state: Any, action: Any) -> Any:
            after = follow(state.record)[action]
            counter = counters.get(type(action))
            if counter is None:
                return state.replace(record=after)
            left = getattr(state, counter)
            return state.replace(record=after, **{counter: left - 1}) if left else None

        limits = {counters[kind]: often for kind, often in self.limits.items()}
        return _SketchModel(
            name=name,
            fields={"record": Whole(), **{n: Int(0, often) for n, often in limits.items()}},
            initial=({"record": self.start, **limits},),
            actions=(Action("act", take, words=self.say),),
            invariants=tuple(
                Invariant(problem, lambda state, find=find: find(state.record))  # type: ignore[misc]
                for problem, find in self.problems.items()
            ),
            # It is asked what may be reached, within limits that end every trace.
            terminal=end_anywhere,
            follow=follow,
        )


class _Last:
    """What follows a record, kept for the last one: the engine asks once for each action."""

    def __init__(self, successors: Successors[Any, Any]) -> None:
        self._successors = successors
        self._record: Any = self
        self._after: Mapping[Any, Any] = {}

    def __call__(self, record: Any) -> Mapping[Any, Any]:
        if record is not self._record:
            self._record, self._after = record, dict(self._successors(record))
        return self._after


def find_shortest(
    start: S,
    successors: Successors[S, A],
    found: Callable[[S], bool],
    limits: Mapping[type, int] | None = None,
    most: int = MOST,
) -> tuple[A, ...] | None:
    """Return the actions of a shortest way from `start` to a state that is `found`, or None.

    Ties go to the successor listed first. Raises SearchLimit where `most` states are reachable and
    none of those looked at is found.
    """
    sketch = Sketch(start, successors, {"": lambda s: "found" if found(s) else None}, limits or {})
    result = explore_plain(sketch.make_model("search"), budget=Budget(states=most))
    if result.violations:
        return tuple(step.parameter for step in result.violations[0].trace.steps)
    if result.unfinished is not None:
        raise SearchLimit(f"{most} states are reachable, and there are more")
    return None


def remember(
    successors: Successors[S, A], update: Callable[[S, M, A, S], M]
) -> Successors[tuple[S, M], A]:
    """Return the successors of a state and of what is remembered beside it.

    `update` says what is remembered after an action: from the state before, what was remembered
    then, the action and the state after it.
    """

    def follow(pair: tuple[S, M]) -> Iterator[tuple[A, tuple[S, M]]]:
        state, memory = pair
        for action, after in successors(state):
            yield action, (after, update(state, memory, action, after))

    return follow
