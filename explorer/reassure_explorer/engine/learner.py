"""What the derived engine knows of a model's functions: what it learned from their own runs.

Nothing of the model is written twice. An action is run in Python, on a state that notes what is
read, only for a combination of values that has not been met before; the path it took goes into a
decision diagram (`diagrams`).

What is checked while it learns: paths must not contradict each other (`NotDeterministic`), each
must come to what the plain function comes to in the same state, and some paths in other states with
the same values where they read.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

from reassure_explorer.engine.diagrams import LEAF, MISSING, YES, Diagrams
from reassure_explorer.engine.interface import Model
from reassure_explorer.engine.memory import LearnedPaths, compute_key
from reassure_explorer.engine.origins import NotTraceable, read_code, take_stock
from reassure_explorer.engine.packing import EngineError, Layout, Words
from reassure_explorer.engine.result import Trace, TraceStep
from reassure_explorer.engine.tracing import (
    Recording,
    order_fields,
    trace_action,
    trace_check,
    watch_errors,
)

PROBED: Final = 512
"""For so many paths, and then for one in so many, the plain function has to come to the same in
another state, reachable or not, that differs in what the path did not read."""
PROBED_LATER: Final = 32
ASKED_AGAIN: Final = 32
"""Of the paths that an earlier run learned the first so many, and one in so many of all, are held
against the plain function again."""

Outcome = bool | list[tuple[Words, tuple[str, ...]]]
"""What comes of a function in a state: the packed states after an action, each with the notes of
the step, in order; or the truth of a check."""


class Learner:
    """Diagrams of one model, and what the plain functions say to them."""

    def __init__(self, model: Model, memory: Path | None = None) -> None:
        self.model = model
        # Before anything runs that could change what the model looks at.
        self._stock = take_stock(model)
        self.layout = Layout(model, order_fields(model))
        self.instances = model.instances
        refusals, self._swallows = read_code(self._stock)
        if refusals:
            raise NotTraceable(f"model {model.name}: {'; '.join(refusals)}")
        self._chance = Random(len(self.instances))
        self.key = compute_key(model, f"{self.layout.order} {self._stock.compute_digest()}")
        """What tells this model, with its code and data, from any other."""
        self._memory = None if memory is None else LearnedPaths(memory, self.key)
        self.origins: list[tuple[int, Words]] = []
        """The root of each path, and the state that it was learned from."""
        self.checks: tuple[Callable[[Any], bool], ...] = (
            *(_broken(invariant.explain) for invariant in model.invariants),
            *(goal.reached for goal in model.goals),
        )
        others = (model.terminal, model.constraint)
        self.functions = (*self.checks, *(each for each in others if each is not None))
        """The checks, and `terminal` and the constraint where there are such."""
        self.diagrams = Diagrams(self.layout, _name_roots(model), len(self.instances))
        self._plain: tuple[Words, Any] = ((), None)
        """The packed state that was unpacked last."""

    def _trace(self, root: int, words: Words) -> Recording:
        if root < len(self.instances):
            return trace_action(self.layout, *self.instances[root], words)
        return trace_check(self.layout, self.functions[root - len(self.instances)], words)

    def find_leaf(self, root: int, words: Words) -> int:
        """Return the leaf that a state comes to, asking the plain function where it is not known.

        Raises NotDeterministic.
        """
        leaf = self.diagrams.walk(root, words)
        if leaf != MISSING:
            return leaf
        self.origins.append((root, words))
        path = self._trace_or_fail(root, words)
        leaf = self.diagrams.learn(root, path)
        self.hold_against_plain(root, words, leaf)
        if self._swallows:
            self._compare_errors(root, words)
        if self.diagrams.paths <= PROBED or self.diagrams.paths % PROBED_LATER == 0:
            read = self.diagrams.list_cells(root, words)
            other = self.layout.draw_unread(words, read, self._chance)
            self.hold_against_plain(root, other, leaf)
        return leaf

    def recall(self) -> None:
        """Take over the paths that earlier runs learned. Raises EngineError where one is wrong."""
        if self._memory is not None:
            self.origins = self._memory.load(self.diagrams)
            for root, words in self.origins[:ASKED_AGAIN] + self.origins[::ASKED_AGAIN]:
                self.hold_against_plain(root, words, self.diagrams.walk(root, words))

    def keep(self) -> None:
        """Keep what was learned for later runs, where there is a memory."""
        if self._memory is not None and self.diagrams.paths:
            self._memory.save(self.diagrams, self.origins)

    def forget(self) -> None:
        """Keep nothing of what was learned: it contradicts the model."""
        if self._memory is not None:
            self._memory.forget()

    def _compare_errors(self, root: int, words: Words) -> None:
        """Run both once more, and look at the errors. Raises NotTraceable where they differ."""
        with watch_errors() as ours:
            self._trace(root, words)
        with watch_errors() as plain:
            self._ask_plain(root, words)
        if ours != plain:
            raise NotTraceable(
                f"model {self.model.name}: {self.diagrams.names[root]} in {self._unpack(words)} "
                f"caught {ours or 'nothing'} when it was traced, and {plain or 'nothing'} when it "
                "was not: something takes a real tuple or set only. Copy the field first: "
                "`tuple(state.field)`, `frozenset(state.field)`"
            )

    def _trace_or_fail(self, root: int, words: Words) -> Recording:
        """Return the path of a state. Where the plain function fails as well its failure counts."""
        try:
            return self._trace(root, words)
        except Exception as problem:
            self._ask_plain(root, words)
            told = self._describe_difference(root, words, repr(problem), "nothing wrong")
            raise EngineError(told) from problem

    def _unpack(self, words: Words) -> Any:
        """Return the plain state; most are asked for several times in a row."""
        if words != self._plain[0]:
            self._plain = words, self.layout.unpack(words)
        return self._plain[1]

    def _ask_plain(self, root: int, words: Words) -> Outcome:
        """Return what the plain function comes to.

        Raises whatever it raises, and EngineError for a value that is another once it was packed.
        """
        state = self._unpack(words)
        if root >= len(self.instances):
            return bool(self.functions[root - len(self.instances)](state))
        whence = partial(self.diagrams.names.__getitem__, root)
        answers = self.model.ask(state, *self.instances[root])
        if not answers:
            return []
        if len(answers) == 1:
            ((after, notes),) = answers
            return [(self.layout.repack(words, state, after, whence), notes)]
        return sorted((self.layout.repack(words, state, a, whence), notes) for a, notes in answers)

    def _read_leaf(self, root: int, words: Words, leaf: int) -> Outcome:
        """Return what a leaf says of a state, as `_ask_plain` does."""
        if root >= len(self.instances):
            return leaf == LEAF - YES
        d, chain = self.diagrams, self.diagrams.list_chain(leaf)
        return sorted((d.apply(number, words), d.leaves[number][1]) for number in chain)

    def hold_against_plain(self, root: int, words: Words, leaf: int) -> None:
        """Run the plain function on a state as well. Raises EngineError where it differs."""
        ours = self._read_leaf(root, words, leaf)
        try:
            expected = self._ask_plain(root, words)
        except EngineError:
            raise
        except Exception as problem:
            told = self._describe_difference(root, words, self._tell_outcome(ours), repr(problem))
            raise EngineError(told) from problem
        if ours != expected:
            outcomes = self._tell_outcome(ours), self._tell_outcome(expected)
            raise EngineError(self._describe_difference(root, words, *outcomes))

    def _tell_outcome(self, outcome: Outcome) -> str:
        if isinstance(outcome, bool):
            return str(outcome)
        ways = []
        for words, notes in outcome:
            after = str(self.layout.unpack(words))
            ways.append(f"{after}, noting {', '.join(notes)}" if notes else after)
        return " or ".join(ways) or "not possible"

    def _describe_difference(self, root: int, words: Words, ours: str, plain: str) -> str:
        return (
            f"model {self.model.name}: {self.diagrams.names[root]} in {self._unpack(words)}: plain "
            f"says {plain}, derived says {ours}. Either the function depends on more than what it "
            "is given (a global, the order of a set, the identity of a value), or it uses a field "
            "in a way that a traced state answers differently from a plain one"
        )

    def retell(self, first: Words, way: list[tuple[int, Words]]) -> Trace:
        """Return a trace as the plain model tells it. Raises EngineError where that differs."""
        initial, before = self.layout.unpack(first), first
        steps: list[TraceStep] = []
        for root, words in way:
            action, parameter = self.instances[root]
            expected = self._ask_plain(root, before)
            if isinstance(expected, bool) or words not in (after for after, _ in expected):
                outcomes = self._tell_outcome([(words, ())]), self._tell_outcome(expected)
                raise EngineError(self._describe_difference(root, before, *outcomes))
            before, state = words, self.layout.unpack(words)
            steps.append(TraceStep(action.name, parameter, action.describe(parameter), state))
        return Trace(initial, tuple(steps))

    def check_unchanged(self) -> None:
        """Raise NotTraceable where the model's functions changed what they look at."""
        changed = self._stock.find_difference(take_stock(self.model))
        if changed is not None:
            raise NotTraceable(
                f"model {self.model.name}: {changed}, is not what it was before the model ran. An "
                "action depends on nothing but its state and parameter, and changes nothing else: "
                "keep it in a field"
            )


def _name_roots(model: Model) -> list[str]:
    """Return the names of a model's action instances, checks and constraint, for messages."""
    names = [action.describe(parameter) for action, parameter in model.instances]
    names += [f"check {check.name}" for check in model.checks]
    others = (("`terminal`", model.terminal), ("the constraint", model.constraint))
    return names + [name for name, function in others if function is not None]


def _broken(find: Callable[[Any], str | None]) -> Callable[[Any], bool]:
    return lambda state: find(state) is not None
