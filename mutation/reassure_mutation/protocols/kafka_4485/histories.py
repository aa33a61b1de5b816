"""The judge of KAFKA-4485, as mutants of it are asked: about histories of observations.

What it is asked is a whole history: what one line is worth shows when all writers were heard. Its
functions are methods of what is made anew for each history, so they are changed in place.
"""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from types import FunctionType
from typing import Any, ClassVar, Final, cast

from reassure_judge.observed.judge import ObservationJudge
from reassure_judge.protocols.kafka_4485 import LagRules, contents, lags, leading, partition, terms
from reassure_judge.verdicts import Tally
from reassure_model.outcome import Accepted, Rejected
from reassure_mutation.accepting import Accepting, Question
from reassure_mutation.linked import InPlace, list_defined, list_reached
from reassure_spec.observations import Observation, decode_observation, encode_observation
from reassure_spec.readings import Readings

JUDGING: Final = (contents, lags, leading, partition, terms)
PATIENCE_S: Final = 2.0
"""Processor time after which a changed function is taken never to answer."""
JOINED: Final = -1
"""The sequence number of what ZooKeeper's log says, which no writer of lines does."""

Lines = tuple[Observation, ...]


def judge_lines(lines: Sequence[Observation], readings: Readings, *, is_over: bool) -> Tally:
    """Return what the judge finds in lines, numbered from 1."""
    judge = LagRules.make_judge(readings)
    for number, line in enumerate(lines, 1):
        if line.sequence == JOINED:
            judge.join(line, "", number)
        else:
            judge.feed(line, "", number)
    return judge.finish(is_over=is_over)


def tell_verdict(tally: Tally) -> tuple[list[str], list[str]]:
    """Return a line for each violation, and one for each clause that is left open."""
    broken = []
    for each in tally.violations:
        besides = f", besides {', '.join(each.besides)}" if each.besides else ""
        shown = "; ".join(text for text in (each.before, each.after) if text)
        evidence = f" (expected: {each.expected}; found: {shown})" if each.expected else ""
        broken.append(f"line {each.line} breaks {each.clause}{besides}: {each.reason}{evidence}")
    return broken, [f"open {clause}: {n}" for clause, n in sorted(tally.undecided.items())]


@cache
def _is_line(line: Observation) -> bool:
    """Whether a writer could say so; raises what decoding raises."""
    shown = line._replace(sequence=max(0, line.sequence), chroot="")
    return decode_observation(encode_observation(shown)).what == line.what


def judge_history(lines: Lines, readings: Readings, is_over: bool) -> Accepted[Any] | Rejected:
    """Return what the judge says of a history: what is left open is what it leads to.

    Raises BadObservation or ValueError where it is none, TimeoutError where there is no answer.
    """
    if not all(map(_is_line, lines)):
        raise ValueError("no lines of observations")
    with _patience():
        tally = judge_lines(lines, readings, is_over=is_over)
    broken, left = tell_verdict(tally)
    if not broken:
        return Accepted(tuple(left), tuple(tally.exercised.elements()))
    clauses = (f"{c} at {v.line}" for v in tally.violations for c in (v.clause, *v.besides))
    kept = map(str, sorted(tally.exercised.items()))
    return Rejected(", ".join((*clauses, *left)), "\n".join((*broken, *kept)))


_JUDGED: Final = cast("FunctionType", judge_history)


@contextmanager
def _patience() -> Iterator[None]:
    def give_up(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class Histories(Accepting):
    """The judge of histories of observations, and mutants of it."""

    strange: ClassVar[int] = 100
    """A history comes to most functions."""

    def __init__(self) -> None:
        """Take every function of the judge, and those of the model that it asks."""
        own = (each for module in JUDGING for each in list_defined(module))
        super().__init__(_JUDGED, linked=InPlace(list_reached(*own)))

    @contextmanager
    def recorded(self, found: dict[Question, None]) -> Iterator[None]:
        """Take note of the histories that are judged meanwhile, whoever has them judged."""
        make, kept = LagRules.make_judge, vars(LagRules)["make_judge"]

        def make_noting(readings: Readings) -> ObservationJudge:
            judge, lines = make(readings), list[Observation]()
            feed, join, finish = judge.feed, judge.join, judge.finish

            def note(said: Observation, file: str, number: int) -> None:
                lines.append(said)
                feed(said, file, number)

            def note_joined(said: Observation, file: str, zxid: int) -> None:
                lines.append(said._replace(sequence=JOINED))
                join(said, file, zxid)

            def note_end(*, is_over: bool = False) -> Tally:
                question = Question(_JUDGED, (tuple(lines), readings, is_over))
                found.setdefault(question)
                return finish(is_over=is_over)

            for name, each in (("feed", note), ("join", note_joined), ("finish", note_end)):
                setattr(judge, name, each)
            return judge

        name = "make_judge"
        setattr(LagRules, name, make_noting)
        try:
            yield
        finally:
            setattr(LagRules, name, kept)


make_rules: Final = Histories
