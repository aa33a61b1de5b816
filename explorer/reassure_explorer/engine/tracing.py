"""Running a model's function on one packed state while noting what it reads and writes.

The result is a *path*: the cells read, in order and with their values, and what came of it. The
path holds for every state that has the same values in those cells, provided that the function
depends on nothing else. That proviso is checked, not trusted: see `diagrams`.
"""

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any, Final

from reassure_explorer.engine.domains import Lazy, OutOfRange, answer_plainly, unlazy
from reassure_explorer.engine.interface import Action, Model, ModelError, make_range_error
from reassure_explorer.engine.packing import Layout, Words

_ENGINE: Final = frozenset(
    f"{__package__}.{name}"
    for name in (
        *("diagrams", "domains", "interface", "learner", "map_domain", "packing"),
        *("sequence_domain", "set_domain", "tracing"),
    )
)
"""Modules whose errors are not the model's."""


Step = tuple[Mapping[int, int], tuple[str, ...]]
"""Cell values written by cell, and the notes."""
TRUE: Final[tuple[Step, ...]] = (({}, ()),)
"""What stands for a check that is true."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What one run of a function read, and what came of it."""

    reads: tuple[tuple[int, int], ...]
    """Cell numbers with the values read, in order, each cell once."""
    steps: tuple[Step, ...]
    """What an action may do; nothing where it is not possible or a check is false."""


class Recorder:
    """Reads cells of one packed state, and remembers which in what order."""

    __slots__ = ("_places", "_words", "fields", "finished", "reads")

    def __init__(self, layout: Layout, words: Words) -> None:
        self._places, self._words = layout.places, words
        self.reads: dict[int, int] = {}
        self.fields: dict[str, Any] = {}
        """Values of fields that were asked for: the same one each time."""
        self.finished = False

    def read(self, cell: int) -> int:
        """Return the value of the cell. Raises ModelError once the function has returned."""
        value = self.reads.get(cell)
        if value is None:
            if self.finished:
                raise ModelError(
                    "a value of an earlier state is looked at; an action must not keep what it "
                    "was given between calls. Take all from the state it is given now"
                )
            word, shift, mask = self._places[cell]
            value = self.reads[cell] = self._words[word] >> shift & mask
        return value


_PLAIN: Final = (
    *("__iter__", "__getitem__", "__contains__", "__hash__", "__repr__", "__str__", "__format__"),
    *("__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__add__", "__radd__", "__mul__"),
    *("__rmul__", "__reduce_ex__"),
)


@answer_plainly(*_PLAIN)
class TracedState(Lazy):
    """A state that a model's function can use like any other; its fields are read when needed.

    What is asked of it as a whole (its text, its length, whether it equals another) the plain state
    answers, for which all fields are read.
    """

    def __init__(self, layout: Layout, recorder: Recorder, changes: Mapping[str, Any]) -> None:
        # Fields stand among the attributes, where they are found without a call.
        own = self.__dict__
        own.update(recorder.fields)
        own.update(changes)
        own["_layout"], own["_recorder"], own["_changes"] = layout, recorder, changes

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return self._layout.model.state_type

    def __len__(self) -> int:
        return len(self._layout.model.fields)

    def __getattr__(self, name: str) -> Any:
        fields = self._recorder.fields
        if name not in fields:
            place = self._layout.readers.get(name)
            if place is None:
                return getattr(self.settle(), name)
            read, first = place
            fields[name] = read(self._recorder, first)
        value = self.__dict__[name] = fields[name]
        return value

    def settle(self) -> Any:
        """Return the plain state, for which all fields are read."""
        model = self._layout.model
        return model.state_type(*(unlazy(getattr(self, name)) for name in model.fields))

    def replace(self, **changes: Any) -> "TracedState":
        """Return this state with some fields changed; nothing is read for it."""
        if not changes.keys() <= self._layout.readers.keys():
            strangers = [name for name in changes if name not in self._layout.readers]
            raise ValueError(f"Got unexpected field names: {strangers!r}")
        return TracedState(self._layout, self._recorder, {**self._changes, **changes})

    _replace = replace

    def compute_writes(self, whence: Callable[[], str], words: Words) -> dict[int, int]:
        """Return the cells written, by number. Raises RangeError."""
        layout = self._layout
        writes: dict[int, int] = {}
        for name, value in self._changes.items():
            try:
                if isinstance(value, Lazy):
                    first = layout.first[name]
                    writes |= layout.model.fields[name].write(self._recorder, first, value)
                else:
                    writes |= layout.encode(name, value)
            except OutOfRange as problem:
                state = layout.unpack(words)
                raise make_range_error(layout.model.name, name, problem, whence(), state) from None
        return writes


Sequence.register(TracedState)


def trace_action(layout: Layout, action: Action, parameter: Any, words: Words) -> Recording:
    """Run an action on a packed state. Raises RangeError, and ModelError for a strange answer."""
    recorder, whence = Recorder(layout, words), partial(action.describe, parameter)
    try:
        answer = action.step(TracedState(layout, recorder, {}), parameter)
        steps: list[Step] = []
        for after, notes in layout.model.list_answers(answer, action):
            if type(after) is not TracedState:
                # A plain state was made afresh: all of its fields are written.
                after = TracedState(layout, recorder, after._asdict())
            steps.append((after.compute_writes(whence, words), notes))
        return Recording(tuple(recorder.reads.items()), tuple(steps))
    finally:
        recorder.finished = True


def trace_check(layout: Layout, check: Any, words: Words) -> Recording:
    """Run a check, a function from state to truth, on a packed state."""
    recorder = Recorder(layout, words)
    try:
        answer = bool(check(TracedState(layout, recorder, {})))
        return Recording(tuple(recorder.reads.items()), TRUE if answer else ())
    finally:
        recorder.finished = True


Errors = list[tuple[str, int, str]]
"""Where errors were raised, file and line, and of which kind."""


@contextlib.contextmanager
def watch_errors() -> Iterator[Errors]:
    """Note the errors that come up in the functions of a model, caught there or not."""
    errors: Errors = []

    def look(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "call" and frame.f_globals.get("__name__") in _ENGINE:
            return None
        frame.f_trace_lines = False
        if event == "exception" and not issubclass(argument[0], StopIteration | GeneratorExit):
            errors.append((frame.f_code.co_filename, frame.f_lineno, argument[0].__name__))
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        yield errors
    finally:
        sys.settrace(before)


def order_fields(model: Model, steps: int = 24) -> tuple[str, ...]:
    """Return the fields, those first that actions look at most often on a walk of so many steps.

    What goes wrong on the way counts for nothing, as the exploration may end before it gets there.
    What is read most belongs into the bits in which neighbouring states agree (`packing`).
    """
    layout = Layout(model)
    owners = [name for name, domain in model.fields.items() for _ in domain.widths]
    reads: Counter[str] = Counter()
    words = first = layout.pack(model.initial_states[0])
    for step in range(steps):
        after = []
        for action, parameter in model.instances:
            try:
                path = trace_action(layout, action, parameter, words)
            except Exception:  # The exploration raises it should it come here.
                continue
            reads.update({owners[cell] for cell, _ in path.reads})
            after += [layout.write(words, writes) for writes, _ in path.steps]
        words = after[step * 7 % len(after)] if after else first
    return tuple(sorted(model.fields, key=lambda name: -reads[name]))
