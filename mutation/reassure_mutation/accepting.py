"""Mutants of the accepting rules: a judge that is too lenient or too strict, and what notices it.

The reference controller is held against the rules (`kills`); here it is the rules that have the
mistake. A mutant is killed where one of its answers is not what it should be. Questions with an
answer that is known are those that recorded test cases put, those of a right controller on its way
through the worlds, and those of every mutant of the controller at the moment at which it is killed.
"""

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from inspect import CO_GENERATOR
from types import FrameType, FunctionType
from typing import Any, ClassVar, Final

from reassure_judge.moments import Kept
from reassure_model.machine import Judgement
from reassure_model.outcome import Accepted, Rejected
from reassure_mutation.linked import ROOMS, InPlace, Linked, Mutant, spell

UNASKED: Final = "no question comes to it"
SAME: Final = "every question gets the same answer"
WORDS: Final = "only the reason that it gives is another"
COUNTS: Final = "counts other clauses"
OPEN: Final = "open"
"""Nothing that is recorded kills it, and a question that nobody puts does."""


@dataclass(frozen=True, slots=True)
class Question:
    """A call of a function of the rules: whether a write may come next, or what is broken."""

    function: FunctionType
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """A question, and what pins its answer."""

    question: Question
    by: str
    """Of what kind that is."""
    where: str
    worded: bool = False
    """Whether the reason of a rejection is pinned too, and what is counted as put to the test."""


@dataclass(frozen=True, slots=True)
class Kill:
    """What kills a mutant of the rules."""

    by: str
    where: str
    how: str


class _Failure:
    """In place of an answer: the function raised something."""


def _ask(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return function(*arguments)
    except Exception:  # whatever a changed function raises
        return _Failure


def compare(right: Any, said: Any) -> str:
    """Say how a mutant's answer differs from the right one; "" where it does not."""
    if isinstance(right, Accepted) and isinstance(said, Accepted):
        if (said.state, said.effects) != (right.state, right.effects):
            return "leads elsewhere"
        return "" if Counter(said.clauses) == Counter(right.clauses) else COUNTS
    if isinstance(right, Rejected) and isinstance(said, Rejected):
        if said.clause != right.clause:
            return f"names {said.clause} for {right.clause}"
        return "" if said == right else WORDS
    if isinstance(right, Rejected):
        return f"allows what {right.clause} forbids"
    if isinstance(right, Accepted):
        clause = f" by {said.clause}" if isinstance(said, Rejected) else ""
        return f"refuses what is right{clause}"
    return "" if said == right else "answers otherwise"


def _keep(value: Any) -> Any:
    """Return an argument as it is now, and so that one is told from another by its hash."""
    if not is_dataclass(value) or isinstance(value, type):
        return value
    held = {each.name: getattr(value, each.name) for each in fields(value)}
    kept = {name: Kept(each) for name, each in held.items() if isinstance(each, dict)}
    return replace(value, **kept) if kept else value


class Accepting:
    """The rules by which a protocol's writes are judged, and mutants of them."""

    strange: ClassVar[int] = 1_500
    """How many questions that nobody puts are drawn for the survivors in one function."""

    def __init__(self, *begin: FunctionType, linked: Linked | InPlace | None = None) -> None:
        """Take what is asked, by default to be asked of a copy."""
        self.begin: Final = tuple(dict.fromkeys(begin))
        """What is asked of a write, and of every state."""
        self.linked: Final = linked or Linked(*self.begin)
        self.functions: Final = self.linked.functions

    @classmethod
    def of(cls, judgement: Judgement[Any, Any], *, owing: bool = False) -> "Accepting":
        """Take what accepts and what finds something broken; with `owing` what is owed as well.

        Of a controller that is driven the latter has mutants of its own.
        """
        finds = (each.find for each in judgement.invariants)
        owes = (judgement.fail_over, judgement.owed) if owing else ()
        begin = (judgement.accept, *finds, *owes)
        named = (each for each in begin if isinstance(each, FunctionType))
        return cls(*(each for each in named if each.__name__ != "<lambda>"))

    @contextmanager
    def recorded(self, found: dict[Question, None]) -> Iterator[None]:
        """Take note of the questions that are put to the rules meanwhile.

        Those of the model and the judge among themselves are left out.
        """
        codes = {each.__code__: each for each in self.functions}

        def note(frame: FrameType, event: str, _: object) -> None:
            function = codes.get(frame.f_code) if event == "call" else None
            if function is None or frame.f_code.co_flags & CO_GENERATOR:
                return
            caller = frame.f_back.f_globals.get("__name__", "") if frame.f_back else ""
            if function in self.begin or not caller.startswith(ROOMS):
                code = frame.f_code
                names = code.co_varnames[: code.co_argcount]
                arguments = tuple(_keep(frame.f_locals[name]) for name in names)
                found.setdefault(Question(function, arguments))

        sys.setprofile(note)
        try:
            yield
        finally:
            sys.setprofile(None)

    def find_called(self, question: Question) -> frozenset[str]:
        """Return the files of the copies that answering a question runs."""
        copy = self.linked.get(question.function)
        return self.linked.find_called(lambda: _ask(copy, question.arguments))

    def prepare(self, asked: Sequence[Known]) -> tuple[list[Any], dict[str, list[int]]]:
        """Return the right answers, and by the file of a copy the numbers of what runs it."""
        where: dict[str, list[int]] = {}
        for number, each in enumerate(asked):
            for name in self.find_called(each.question):
                where.setdefault(name, []).append(number)
        return [_ask(each.question.function, each.question.arguments) for each in asked], where

    def find_kills(
        self,
        mutants: Iterable[Mutant],
        asked: Sequence[Known],
        prepared: tuple[list[Any], dict[str, list[int]]],
    ) -> dict[str, Kill | str]:
        """Return by the name of each mutant what kills it first, or why it survives."""
        right, where = prepared
        found: dict[str, Kill | str] = {}
        for mutant in mutants:
            name, said = mutant.name, UNASKED
            with self.linked.planted(mutant):
                for number in where.get(f"<{spell(mutant.function)}>", ()):
                    known = asked[number]
                    copy = self.linked.get(known.question.function)
                    how = compare(right[number], _ask(copy, known.question.arguments))
                    if how and (known.worded or how not in (WORDS, COUNTS)):
                        found[name] = Kill(known.by, known.where, how)
                        break
                    said = WORDS if how or said == WORDS else SAME
                else:
                    found[name] = said
        return found


# Questions that nobody puts -----------------------------------------------------------------------


def _disturb_tuple(value: tuple[Any, ...], draw: random.Random) -> tuple[Any, ...]:
    place = draw.randrange(len(value) + 1)
    taken = value[place : place + 1]
    ways = (
        value[:place] + value[place + 1 :],
        value[::-1],
        value + taken,
        (*value[:place], *(disturb(each, draw) for each in taken), *value[place + 1 :]),
    )
    return draw.choice(ways)


def disturb(value: Any, draw: random.Random) -> Any:
    """Return a value with one thing about it changed, however little sense that makes."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + draw.choice((-1, 1))
    if isinstance(value, frozenset):
        return value ^ {draw.choice((1, 2, 3, 4))}
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return _disturb_tuple(value, draw)
    if hasattr(value, "_replace"):
        name = draw.choice(value._fields)
        return value._replace(**{name: disturb(getattr(value, name), draw)})
    if is_dataclass(value) and not isinstance(value, type) and fields(value):
        name = draw.choice([each.name for each in fields(value)])
        return replace(value, **{name: disturb(getattr(value, name), draw)})
    return value


def make_strange(
    asked: Sequence[Question], values: Mapping[str, tuple[str, ...]], number: int
) -> Iterator[Question]:
    """Yield questions like those that are put, of which the rules still make something.

    One thing about each differs or a few do; `values` are those of each reading, by its field.
    """
    draw = random.Random(0)
    seen = set(asked)
    for _ in range(number if asked else 0):
        question = draw.choice(asked)
        arguments = list(question.arguments)
        for _ in range(draw.choice((1, 1, 2, 3))):
            place = draw.randrange(len(arguments))
            value = arguments[place]
            name = draw.choice(sorted(values))
            if getattr(value, name, None) in values[name]:
                arguments[place] = replace(value, **{name: draw.choice(values[name])})
            else:
                arguments[place] = disturb(value, draw)
        strange = Question(question.function, tuple(arguments))
        if strange not in seen and _ask(strange.function, strange.arguments) is not _Failure:
            seen.add(strange)
            yield strange
