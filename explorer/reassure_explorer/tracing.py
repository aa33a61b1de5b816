"""Running a model's function on one packed state while noting what it reads and writes.

The result is a *path*: the cells read, in order and with their values, and what came of it. The
path holds for every state that has the same values in those cells, provided that the function
depends on nothing else. That proviso is checked, not trusted: see `diagrams`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reassure_explorer.domains import OutOfRange
from reassure_explorer.interface import Action, Model, ModelError, Noted, make_range_error
from reassure_explorer.packing import Layout, Words


@dataclass(frozen=True, slots=True)
class Trace:
    """What one run of a function read, and what came of it."""

    reads: tuple[tuple[int, int], ...]
    """Cell numbers with the values read, in order, each cell once."""
    writes: Mapping[int, int] | None
    """Cell values written by cell; None where the action is not possible or a check is false."""
    notes: tuple[str, ...] = ()


class Recorder:
    """Reads cells of one packed state, and remembers which in what order."""

    __slots__ = ("_places", "_words", "reads")

    def __init__(self, layout: Layout, words: Words) -> None:
        self._places, self._words = layout.places, words
        self.reads: dict[int, int] = {}

    def read(self, cell: int) -> int:
        """Return the value of the cell."""
        value = self.reads.get(cell)
        if value is None:
            word, shift, mask = self._places[cell]
            value = self.reads[cell] = self._words[word] >> shift & mask
        return value


class TracedState:
    """A state that a model's function can use like any other; its fields are read when needed."""

    def __init__(self, layout: Layout, recorder: Recorder, changes: Mapping[str, Any]) -> None:
        self._layout, self._recorder, self._changes = layout, recorder, changes
        # What stands here is found without `__getattr__`, which costs a call each time.
        self.__dict__.update(changes)

    def __getattr__(self, name: str) -> Any:
        try:
            read, first = self._layout.readers[name]
        except KeyError:
            model = self._layout.model.name
            raise AttributeError(f"model {model} has no field {name!r}") from None
        value = self.__dict__[name] = read(self._recorder, first)
        return value

    def __eq__(self, other: object) -> bool:
        raise ModelError(
            f"model {self._layout.model.name} compares whole states; compare the fields that matter"
        )

    def __hash__(self) -> int:
        raise ModelError(f"model {self._layout.model.name} hashes whole states; use fields")

    def replace(self, **changes: Any) -> "TracedState":
        """Return this state with some fields changed; nothing is read for it."""
        strangers = sorted(set(changes) - set(self._layout.model.fields))
        if strangers:
            raise ModelError(f"model {self._layout.model.name} has no field {strangers[0]!r}")
        return TracedState(self._layout, self._recorder, {**self._changes, **changes})

    def compute_writes(self, whence: str, words: Words) -> dict[int, int]:
        """Return the cells written, by number. Raises RangeError."""
        layout = self._layout
        writes: dict[int, int] = {}
        for name, value in self._changes.items():
            try:
                writes |= layout.model.fields[name].write(layout.first[name], value)
            except OutOfRange as problem:
                state = layout.unpack(words)
                raise make_range_error(layout.model.name, name, problem, whence, state) from None
        return writes


def trace_action(layout: Layout, action: Action, parameter: Any, words: Words) -> Trace:
    """Run an action on a packed state. Raises RangeError, and ModelError for a strange answer."""
    recorder = Recorder(layout, words)
    after = action.step(TracedState(layout, recorder, {}), parameter)
    notes: tuple[str, ...] = ()
    if isinstance(after, Noted):
        after, notes = after.state, after.notes
    if after is None:
        return Trace(tuple(recorder.reads.items()), None)
    if not isinstance(after, TracedState):
        raise ModelError(
            f"model {layout.model.name}: action {action.name} answered {after!r}; it must answer "
            "None, or a state made with `replace` from the state it was given"
        )
    writes = after.compute_writes(action.describe(parameter), words)
    return Trace(tuple(recorder.reads.items()), writes, notes)


def trace_check(layout: Layout, check: Any, words: Words) -> Trace:
    """Run a check, a function from state to truth, on a packed state."""
    recorder = Recorder(layout, words)
    answer = bool(check(TracedState(layout, recorder, {})))
    return Trace(tuple(recorder.reads.items()), {} if answer else None)


def order_fields(model: Model, steps: int = 24) -> tuple[str, ...]:
    """Return the fields, those first that actions look at most often on a walk of so many steps.

    What is read most belongs into the bits in which neighbouring states agree (`packing`).
    """
    layout = Layout(model)
    owners = [name for name, domain in model.fields.items() for _ in domain.widths]
    reads: Counter[str] = Counter()
    words = first = layout.pack(model.initial_states[0])
    for step in range(steps):
        after = []
        for action, parameter in model.instances:
            path = trace_action(layout, action, parameter, words)
            reads.update({owners[cell] for cell, _ in path.reads})
            if path.writes is not None:
                after.append(layout.write(words, path.writes))
        words = after[step * 7 % len(after)] if after else first
    return tuple(sorted(model.fields, key=lambda name: -reads[name]))
