"""Traces from elsewhere: whether a model allows what a running system has logged.

A history is a file of JSON lines, one object for each thing that was logged:

    {"action": "prepare", "parameter": "r1", "state": {"managers": {"r1": "prepared"}}}

`action` names an action of the model, which happens there once; without it nothing happens, and the
line says only how things stand. `parameter` and `state` may be left out, and so may any field, and
any key of a map: what a line does not say may be anything. Values are written as reports write
them: a set or a tuple as a list, a map or a record as an object.

Every state that the lines before allow is kept, so a history is refused only where no run of the
model fits it. Actions that are not logged may happen between any two lines, any number of times.
Invariants are not looked at: explore the model for these.
"""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Final

from reassure_explorer.engine.interface import Model
from reassure_explorer.engine.renderings import format_value, make_plain, tell_trace
from reassure_explorer.engine.result import Budget, Trace, TraceStep, Verdict
from reassure_spec.errors import BadData, BadUsage

ANY: Final = object()
"""What a line says of a parameter that it leaves out."""
KEYS: Final = ("action", "parameter", "state")


class BadHistory(BadData):
    """A history that cannot be read, or that speaks of what the model does not have."""


class UnknownAction(BadUsage):
    """An action was called unlogged that the model does not have, or that the history logs."""


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """One line of a history."""

    number: int
    text: str
    action: str | None
    parameter: Any
    state: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Validation:
    """What came of holding a history against a model."""

    model: str
    verdict: Verdict
    lines: int
    fitted: int
    """How many lines fit, from the first on."""
    candidates: int
    """How many states the model may be in after these."""
    trace: Trace
    """A run that fits these lines; the unlogged steps that it takes are in it."""
    refused: HistoryLine | None
    """The first line that no run fits."""
    reasons: tuple[str, ...]
    """Why it does not fit: of the state that comes closest, what is otherwise."""
    unlogged: tuple[str, ...]
    unfinished: str | None
    seconds: float

    def render(self) -> str:
        """Return the report in words."""
        states = f"{self.candidates:,} state{'s' * (self.candidates != 1)}"
        lines = [
            f"explore {self.model}: {self.verdict.value}",
            f"  {self.fitted:,} of {self.lines:,} lines fit; then the model may be in {states}",
        ]
        if self.unlogged:
            lines.append(f"  may happen without a line: {', '.join(self.unlogged)}")
        if self.unfinished is not None:
            lines.append(
                f"  not complete: {self.unfinished}; the lines after it were not looked at"
            )
        if self.refused is not None:
            lines.append(f"\nline {self.refused.number} fits no run of the model:")
            lines.append(f"  {self.refused.text}")
            lines += [f"  {reason}" for reason in self.reasons]
            lines.append("A run that fits the lines before it:")
            lines.append(tell_trace(self.trace))
        return "\n".join(lines)


def read_history(path: Path, model: Model) -> tuple[HistoryLine, ...]:
    """Return the lines of a history; empty ones are passed over.

    Raises BadHistory, with the line, for what is no JSON object or names no action, parameter or
    field of the model.
    """
    try:
        texts = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadHistory(f"{path}: {error}; name a file of JSON lines") from error
    read = []
    for number, text in enumerate(texts, 1):
        if text.strip():
            try:
                read.append(_read_line(number, text.strip(), model))
            except ValueError as error:
                raise BadHistory(f"{path}: line {number}: {error}") from None
    return tuple(read)


def _read_line(number: int, text: str, model: Model) -> HistoryLine:
    """Return a line. Raises ValueError for what makes no sense."""
    try:
        said = json.loads(text)
    except ValueError as error:
        raise ValueError(f"no JSON: {error}; write one object in each line") from None
    if not isinstance(said, dict) or not said or set(said) - set(KEYS):
        raise ValueError(f"expected an object with some of {', '.join(KEYS)}, found {text:.80}")
    action, state = said.get("action"), said.get("state", {})
    parameter = said.get("parameter", ANY)
    _check_known("field", state if isinstance(state, dict) else [state], model.fields)
    if action is None:
        if parameter is not ANY:
            raise ValueError("a parameter without an action; name the action")
        if not state:
            raise ValueError("it says nothing; name an action, or fields of the state")
    else:
        known = {one.name: one.parameters for one in model.actions}
        _check_known("action", [action], known)
        if parameter is not ANY and not any(fits(parameter, one) for one in known[action]):
            words = ", ".join(map(format_value, known[action][:12]))
            raise ValueError(
                f"action {action} has no parameter {json.dumps(parameter)}; it has {words}"
            )
    return HistoryLine(number, text, action, parameter, state)


def _check_known(what: str, names: Iterable[Any], known: Iterable[str]) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"the model has no {what} {name!r}; it has {', '.join(known)}")


def fits(said: Any, value: Any) -> bool:
    """Whether a value of a model is what a line says, as far as it says it.

    >>> fits([2, 1], frozenset({1, 2})), fits([2, 1], (1, 2)), fits({}, {"a": 1})
    (True, False, True)
    >>> fits(1, True), fits(None, None)
    (False, True)
    """
    if isinstance(value, frozenset):
        if not isinstance(said, list) or len(said) != len(value):
            return False
        left = list(value)
        for one in said:
            found = [member for member in left if fits(one, member)]
            if not found:
                return False
            left.remove(found[0])
        return True
    if isinstance(value, tuple):
        return isinstance(said, list) and len(said) == len(value) and all(map(fits, said, value))
    parts = _get_parts(value)
    if parts is not None:
        return isinstance(said, dict) and all(
            k in parts and fits(v, parts[k]) for k, v in said.items()
        )
    plain = make_plain(value)
    return type(said) is type(plain) and bool(said == plain)


def _get_parts(value: Any) -> dict[str, Any] | None:
    """Return what an object says of a map or a record; None for any other value."""
    if isinstance(value, Mapping):
        return {str(key): entry for key, entry in value.items()}
    if is_dataclass(value):
        return {part.name: getattr(value, part.name) for part in fields(value)}
    return None


def find_differences(said: Any, value: Any, name: str) -> list[str]:
    """Return in words where a value is not what a line says.

    >>> find_differences({"a": 1, "b": 2}, {"a": 1, "b": 3}, "log")
    ['log[b]: logged 2, the model has 3']
    """
    if fits(said, value):
        return []
    parts = _get_parts(value)
    if parts is None or not isinstance(said, dict):
        return [f"{name}: logged {json.dumps(said)}, the model has {json.dumps(make_plain(value))}"]
    found = [f"{name}: the model has no {key!r} in it" for key in said if key not in parts]
    for key in said.keys() & parts.keys():
        found += find_differences(said[key], parts[key], f"{name}[{key}]")
    return sorted(found)


Node = tuple[int, Any]
"""A state that the model may be in after so many lines."""


def validate(
    model: Model,
    history: tuple[HistoryLine, ...],
    unlogged: Iterable[str] = (),
    budget: Budget | None = None,
) -> Validation:
    """Hold a history against a model; `unlogged` actions may happen without a line.

    Where no line names an action, all are unlogged: the history says only how things stood. A
    history without lines is vacuous; one that outruns the budget is unknown. Raises UnknownAction.
    """
    logged = {line.action for line in history} - {None}
    names = tuple(dict.fromkeys(unlogged)) if logged else tuple(a.name for a in model.actions)
    for name in names:
        if name in logged:
            raise UnknownAction(
                f"--unlogged {name}: the history logs {name}; leave one of them out"
            )
        if name not in [action.name for action in model.actions]:
            known = ", ".join(action.name for action in model.actions)
            raise UnknownAction(f"--unlogged {name}: no such action; the model has {known}")
    return _HistorySearch(model, history, names, budget or Budget()).run()


class _HistorySearch:
    def __init__(
        self,
        model: Model,
        history: tuple[HistoryLine, ...],
        unlogged: tuple[str, ...],
        budget: Budget,
    ) -> None:
        self.model, self.history, self.unlogged, self.budget = model, history, unlogged, budget
        self.parents: dict[Node, tuple[Node | None, TraceStep | None]] = {}
        self.started = time.perf_counter()

    def run(self) -> Validation:
        layer = self._close([self._reach((0, s), None, None) for s in self.model.initial_states])
        fitted = 0
        for line in self.history:
            limit = self._find_limit()
            if limit is not None:
                return self._report(Verdict.UNKNOWN, fitted, layer, unfinished=limit)
            after = self._step(layer, line, fitted + 1)
            if not after:
                return self._report(Verdict.VIOLATED, fitted, layer, refused=line)
            layer, fitted = self._close(after), fitted + 1
        verdict = Verdict.HOLDS if self.history else Verdict.VACUOUS
        return self._report(verdict, fitted, layer)

    def _find_limit(self) -> str | None:
        seconds = time.perf_counter() - self.started
        return self.budget.find_limit(0, len(self.parents), seconds)

    def _reach(self, node: Node, before: Node | None, step: TraceStep | None) -> Node:
        self.parents.setdefault(node, (before, step))
        return node

    def _take(self, state: Any, names: Iterable[str], parameter: Any = ANY) -> Iterable[TraceStep]:
        for action, given in self.model.list_instances(state):
            if action.name in names and (parameter is ANY or fits(parameter, given)):
                for after, _ in self.model.take(state, action, given):
                    yield TraceStep(action.name, given, action.describe(given), after)

    def _close(self, layer: list[Node]) -> list[Node]:
        """Return the nodes, and those that unlogged actions lead to from them."""
        found = list(dict.fromkeys(layer))
        for node in found:  # which grows meanwhile
            if self._find_limit() is not None:
                break
            for step in self._take(node[1], self.unlogged):
                after = (node[0], step.state)
                if after not in self.parents:
                    found.append(self._reach(after, node, step))
        return found

    def _step(self, layer: list[Node], line: HistoryLine, number: int) -> list[Node]:
        """Return what of the line's action and state is possible after these nodes."""
        return [
            self._reach((number, after), node, step)
            for node in layer
            for after, step in self._try(node[1], line)
            if all(fits(said, getattr(after, name)) for name, said in line.state.items())
        ]

    def _try(self, state: Any, line: HistoryLine) -> Iterable[tuple[Any, TraceStep | None]]:
        if line.action is None:
            return [(state, None)]
        return [(step.state, step) for step in self._take(state, (line.action,), line.parameter)]

    def _explain(self, layer: list[Node], line: HistoryLine) -> tuple[tuple[str, ...], Node]:
        """Return why a line does not fit, and after which node it comes closest to fitting."""
        closest: tuple[list[str], Node] | None = None
        for node in layer:
            for after, _ in self._try(node[1], line):
                wrong = [
                    words
                    for name, said in line.state.items()
                    for words in find_differences(said, getattr(after, name), name)
                ]
                if closest is None or len(wrong) < len(closest[0]):
                    closest = (wrong, node)
        if closest is not None:
            return tuple(closest[0]), closest[1]
        given = "" if line.parameter is ANY else f" {json.dumps(line.parameter)}"
        return (
            f"{line.action}{given} is possible in no state that the lines before allow",
        ), layer[0]

    def _tell(self, node: Node) -> Trace:
        steps: list[TraceStep] = []
        while True:
            before, step = self.parents[node]
            if step is not None:
                steps.append(step)
            if before is None:
                return Trace(node[1], tuple(reversed(steps)))
            node = before

    def _report(
        self,
        verdict: Verdict,
        fitted: int,
        layer: list[Node],
        refused: HistoryLine | None = None,
        unfinished: str | None = None,
    ) -> Validation:
        reasons, node = ((), layer[0]) if refused is None else self._explain(layer, refused)
        return Validation(
            model=self.model.name,
            verdict=verdict,
            lines=len(self.history),
            fitted=fitted,
            candidates=len(layer),
            trace=self._tell(node),
            refused=refused,
            reasons=reasons,
            unlogged=self.unlogged,
            unfinished=unfinished,
            seconds=time.perf_counter() - self.started,
        )
