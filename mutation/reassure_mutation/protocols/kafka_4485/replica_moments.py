"""The moments of leaders and followers, and mutants of the rules that they go by."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from reassure_judge.protocols.kafka_4485 import LagRules
from reassure_model.protocols.kafka_4485 import replication as logs
from reassure_mutation.kills import ALLOWED, SAME
from reassure_mutation.linked import Linked, Mutant, find_called, list_mutants
from reassure_mutation.protocols.kafka_4485.first_words import ElectedMoment, RestoredMoment
from reassure_mutation.protocols.kafka_4485.follower_words import FollowerMoment, read_log
from reassure_mutation.protocols.kafka_4485.leader_words import BEGIN, Known, LeaderMoment, begin
from reassure_spec.observations import (
    KINDS,
    NOBODY,
    Answer,
    Evaluate,
    Fetch,
    Follow,
    IsrRead,
    IsrWrite,
    Lead,
    Observation,
    Replica,
    Restored,
    Serve,
    Stopped,
    What,
    Writer,
)
from reassure_spec.readings import Readings

Moment = LeaderMoment | FollowerMoment | ElectedMoment | RestoredMoment
Words = tuple[Any, ...]
"""What a broker says: kinds of lines, or lines where it is not clear whose and of which epoch."""
Place = tuple[str, str, int]


class Led(dict[tuple[Place, int], tuple[int, int, logs.Log]]):
    """By partition and leader epoch: who leads, where its log ended at first, and its log."""

    def grow(self, place: Place, line: Observation) -> None:
        """Take in a line of the leader."""
        term, what = (place, line.leader_epoch), line.what
        if isinstance(what, Lead):
            log = read_log(what.log_end_offset, what.epochs)
            if log is not None:
                self.setdefault(term, (line.broker, len(log), log))
        elif term in self and isinstance(what, Replica | Fetch) and line.sequence >= 0:
            leader, start, log = self[term]
            more = (what.log_end_offset or 0) - len(log)
            if leader == line.broker:
                self[term] = leader, start, (*log, *(line.leader_epoch,) * more)


class Moments:
    """The moments of brokers, each once, from what was observed."""

    def __init__(self) -> None:
        self._found: set[Moment] = set()
        self._fresh: list[Moment] = []

    def read(
        self,
        observed: Iterable[Sequence[Observation]],
        readings: Readings,
        *,
        is_answered: bool = False,
    ) -> None:
        """Take note of what brokers observed, each in its order.

        Between the lines of one may stand what it was asked or sent, with a sequence below 0, as it
        would be told. With `is_answered` no answer to a write was lost: one that came to no version
        was refused.
        """
        told: list[tuple[Place, list[Observation]]] = []
        led = Led()
        for lines in observed:
            places: dict[Place, list[Observation]] = {}
            for line in lines:
                if not isinstance(line.what, Writer):
                    place = line.chroot, line.topic, line.partition
                    places.setdefault(place, []).append(line)
                    led.grow(place, line)
            told += places.items()
        for place, lines in told:
            self._read_leader(lines, readings, is_answered=is_answered)
            followed = iterate_followed(place, lines, led, readings)
            moments: Iterator[Moment] = chain(followed, iterate_restored(lines, readings))
            for moment in moments:
                self._note(moment)

    def _read_leader(
        self, lines: list[Observation], readings: Readings, *, is_answered: bool
    ) -> None:
        known: Known | None = None
        before: list[Observation] = []
        for number, line in enumerate(lines):
            what = line.what
            if isinstance(what, Lead):
                known, before = begin(line, what, readings), [line]
                for moment in list_elected(known):
                    self._note(moment)
            elif known is None:
                continue
            elif line.sequence < 0:
                if not isinstance(what, Fetch) or what.follower_epoch != known.epoch:
                    self._note_leader(known, what, before)
            elif (line.run, line.leader_epoch) != (before[0].run, known.epoch):
                known = None
            else:
                now = known
                if is_answered and isinstance(what, Evaluate) and _is_refused(lines[number + 1 :]):
                    now = replace(now, stored=IsrRead(now.isr, now.version + 1))
                self._note_leader(now, what, before)
                before.append(line)
                known = known.take(what)

    def _note_leader(self, known: Known, event: What, before: list[Observation]) -> None:
        """Take note of a moment, if a leader has something to say then."""
        is_known = not isinstance(event, Fetch) or event.follower in known.replicas[1:]
        says = IsrRead if known.is_unsure else Fetch | Evaluate | Serve
        if isinstance(event, says) and is_known:
            self._note(LeaderMoment(known, event, tuple(before)))

    def _note(self, moment: Moment) -> None:
        if moment not in self._found:
            self._found.add(moment)
            self._fresh.append(moment)

    def take_fresh(self) -> tuple[Moment, ...]:
        """Return those that are new since this was asked last."""
        fresh = tuple(self._fresh)
        self._fresh.clear()
        return fresh


def _is_refused(following: Iterable[Observation]) -> bool:
    """Whether the write that follows a look at once came to nothing."""
    what = next((line.what for line in following if not isinstance(line.what, Answer)), None)
    return isinstance(what, IsrWrite) and what.isr_version is None


def list_elected(known: Known | None) -> tuple[ElectedMoment, ...]:
    """Return the moments of an election: of who is elected, and of one who may not be.

    The first term of a partition begins without one.
    """
    if known is None or not (known.epoch and known.version):
        return ()
    others = [each for each in known.ids if each not in known.isr]
    return tuple(ElectedMoment(known, each) for each in (known.replicas[0], *others[:1]))


def iterate_restored(lines: Iterable[Observation], readings: Readings) -> Iterator[RestoredMoment]:
    """Yield the moments at which a broker takes a replica up again, in another life."""
    run, highest = -1, 0
    for line in lines:
        what = line.what
        if isinstance(what, Restored) and -1 < run < line.run:
            saved, end = what.high_watermark or None, what.log_end_offset
            yield RestoredMoment(readings, line.broker, highest, saved, end)
        if isinstance(what, Stopped) and what.deleted:
            highest = 0
        if line.sequence >= 0:
            run, highest = line.run, max(highest, getattr(what, "high_watermark", 0))


def iterate_followed(
    place: Place, lines: Iterable[Observation], led: Led, readings: Readings
) -> Iterator[FollowerMoment]:
    """Yield the moments of one replica at which it begins to follow, or is answered."""
    log: logs.Log | None = None
    mark = epoch = 0
    follows = False
    for line in lines:
        what, term = line.what, led.get((place, line.leader_epoch))
        if isinstance(what, Follow | Replica) and log is not None and term is not None:
            leader, start, leads = term
            held = logs.Replica(log, mark, epoch)
            known = readings, line.broker, leader, line.leader_epoch, held
            if isinstance(what, Follow):
                yield FollowerMoment(*known, leads, start)
            elif line.sequence < 0 and follows and epoch == line.leader_epoch:
                least = max(what.log_end_offset, what.high_watermark)
                yield FollowerMoment(*known, leads[:least], min(start, least), what)
        if line.sequence < 0:
            continue
        epoch = line.leader_epoch
        match what:
            case Restored() | Lead():
                log, mark = read_log(what.log_end_offset, what.epochs), what.high_watermark
                follows = False
            case Follow():
                log = None if log is None else log[: what.log_end_offset]
                mark, follows = what.high_watermark, True
            case Replica():
                if log is not None:
                    more = () if term is None else term[2][len(log) : what.log_end_offset]
                    log = (*log, *more)
                mark = what.high_watermark
            case Evaluate():
                mark = what.high_watermark


class WordRules:
    """The rules of leaders and followers, and mutants of them: asked as a `kills.Reference` is."""

    def __init__(self) -> None:
        self.linked: Final = Linked(*BEGIN)
        self.functions: Final = self.linked.functions
        self._judged: dict[tuple[Moment, Words], str] = {}

    def list_mutants(self) -> tuple[Mutant, ...]:
        """Return every mutant, in a stable order."""
        return list_mutants(self.functions)

    def find_called(self, moment: Moment) -> frozenset[str]:
        """Return the names of the functions that decide what a right broker says."""
        return find_called(lambda: self._say(moment))

    def find_kill(self, moment: Moment) -> str:
        """Return the clause by which the planted mutant is killed at a moment, else why not."""
        said = self._say(moment)
        if said == moment.right:
            return SAME
        key = moment, said
        if key not in self._judged:
            self._judged[key] = find_refused(moment, said) or ALLOWED
        return self._judged[key]

    def _say(self, moment: Moment) -> Words:
        """Return what a broker says; one that fails says nothing, as its process would."""
        try:
            return moment.say(self.linked.get)
        except Exception:  # whatever a changed function raises
            return ()


def find_refused(moment: Moment, said: Words) -> str:
    """Return the clause by which words are refused, or what follows on them, else ""."""
    try:
        for before, after in moment.tell(said):
            judge, counts = LagRules.make_judge(moment.readings), Counter[tuple[str, int]]()
            for number, line in enumerate((*before, *after), start=1):
                life = line.writer, line.run
                if not counts[life]:
                    writer = Writer(tuple(KINDS))
                    head = line._replace(topic="", partition=-1, broker=NOBODY, what=writer)
                    judge.feed(head._replace(sequence=0), "", 0)
                counts[life] += 1
                judge.feed(line._replace(sequence=counts[life]), "", number)
            for each in judge.finish(is_over=True).violations:
                if each.line > len(before) and each.binds():
                    return each.clause
    except (AttributeError, TypeError, ValueError):  # nobody could say so
        pass
    return ""
