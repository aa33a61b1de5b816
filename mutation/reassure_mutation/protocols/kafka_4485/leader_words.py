"""What a leader would have said: mutants of the rules that it goes by, at the moments of its term.

A leader writes nothing that shows what it knows, but it says what it concludes: lag, pseudo-ISR,
high watermark, in-sync set, what consumers are shown and producers are answered. So a moment is
what it knew, and what came: a fetch request, a look at who keeps up, a consumer. A mutant says
something else there, and is killed where the judge refuses that, or the look that a right leader
takes next. All is read from the observations of one leader, in its own order.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from reassure_judge.protocols.kafka_4485 import LagRules
from reassure_model.outcome import Accepted
from reassure_model.protocols.kafka_4485 import (
    Follower,
    Leader,
    evaluate,
    fetch,
    is_answered,
    start_leader,
)
from reassure_model.protocols.kafka_4485 import replication as logs
from reassure_mutation.kills import ALLOWED, SAME
from reassure_mutation.linked import Linked, Mutant, find_called, list_mutants
from reassure_spec.observations import (
    KINDS,
    NOBODY,
    Answer,
    Evaluate,
    Fetch,
    IsrRead,
    IsrWrite,
    Lead,
    Observation,
    Produce,
    Replica,
    Serve,
    What,
    Writer,
)
from reassure_spec.readings import Readings
from reassure_spec.znodes import ReplicaList

BEGIN: Final[tuple[Any, ...]] = (
    start_leader,
    fetch,
    evaluate,
    is_answered,
    *(logs.STEPS[kind] for kind in (logs.Serve, logs.Advance, logs.Join, logs.Leave)),
)
"""The functions of the model by which a leader decides what to say."""
Get = Callable[[Any], Callable[..., Any]]
"""From a function of the model to the one that is asked in its place."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a leader knows, by what it has said."""

    readings: Readings
    replicas: ReplicaList
    """The leader first."""
    epoch: int
    lead: Lead
    """What it began with."""
    end: int
    mark: int
    pseudo: ReplicaList
    isr: ReplicaList
    version: int
    noted: tuple[tuple[Follower | None, Fetch] | None, ...]
    """The last fetch of each follower, and what was noted of it before: None as the term began."""
    waiting: tuple[int, ...] = ()
    """Where the records end of producers that wait."""

    def list_notes(self, get: Get) -> tuple[Follower, ...]:
        """Return what the leader has noted, the last fetch of each by the function that is asked.

        What it noted shows in what it says next only, so that is when a mutant notes it.
        """
        lead, readings = self.lead, self.readings
        begun = get(start_leader)(
            self.replicas, lead.log_end_offset, lead.time_ms, lead.isr, readings
        )
        notes = list(begun.followers)
        for at, noted in enumerate(self.noted):
            if noted is not None:
                before, what = noted
                notes[at] = before or notes[at]
                leader = Leader(self.replicas, what.log_end_offset or 0, tuple(notes))
                told = leader, what.follower, what.offset, what.time_ms, readings
                notes[at] = get(fetch)(*told).followers[at]
        return tuple(notes)

    @property
    def ids(self) -> ReplicaList:
        """The replicas in the order in which the model numbers them."""
        return tuple(sorted(self.replicas))

    def as_logs(self, notes: Sequence[Follower], pseudo: Iterable[int]) -> logs.Replication:
        """Return the partition as the leader knows it, with `ids` numbered from 0."""
        noted = dict(zip(self.replicas[1:], notes, strict=True))
        ids, me = self.ids, self.replicas[0]
        offsets = tuple(noted[r].offset if r in noted else 0 for r in ids)
        isr, close = (
            frozenset(at for at, r in enumerate(ids) if r in some) for some in (self.isr, pseudo)
        )
        term = logs.Term(self.lead.log_end_offset, self.version, isr, close, offsets)
        leader = logs.Replica((self.epoch,) * self.end, self.mark, self.epoch)
        replicas = tuple(leader if r == me else logs.Replica() for r in ids)
        return logs.Replication(
            replicas, ids.index(me), self.epoch, isr, self.version, term, shown=None
        )

    def take(self, what: What) -> "Known":
        """Return what the leader knows once it has said this."""
        match what:
            case Replica():
                return replace(self, end=what.log_end_offset)
            case Fetch() if what.follower in self.replicas[1:]:
                at = self.replicas.index(what.follower) - 1
                before = self.noted[at] and self.list_notes(_get_true)[at]
                noted = (*self.noted[:at], (before, what), *self.noted[at + 1 :])
                return replace(self, noted=noted)
            case Evaluate():
                return replace(self, mark=what.high_watermark, pseudo=what.pseudo_isr)
            case IsrWrite() if what.isr_version is not None:
                return replace(self, isr=what.isr, version=what.isr_version)
            case IsrRead():
                return replace(self, isr=what.isr, version=what.isr_version)
            case Produce():
                return replace(self, waiting=(*self.waiting, what.offset))
            case Answer() if what.offset in self.waiting:
                at = self.waiting.index(what.offset)
                return replace(self, waiting=(*self.waiting[:at], *self.waiting[at + 1 :]))
            case _:
                return self


def begin(line: Observation, said: Lead, readings: Readings) -> Known | None:
    """Return what a leader knows as it begins, None where it has not said all of that."""
    replicas = (line.broker, *(r for r in said.replicas if r != line.broker))
    end, mark, isr, version = said.log_end_offset, said.high_watermark, said.isr, said.isr_version
    if version is None or said.time_ms is None or said.lag_ms_max is None:
        return None
    noted = (None,) * (len(replicas) - 1)
    return Known(readings, replicas, line.leader_epoch, said, end, mark, isr, isr, version, noted)


def _get_true(function: Any) -> Callable[..., Any]:
    called: Callable[..., Any] = function
    return called


def say(known: Known, event: What, get: Get = _get_true) -> tuple[What, ...]:
    """Return what a leader says when this happens; of the event only what came is looked at.

    Raises whatever a changed function raises.
    """
    match event:
        case Fetch():
            if not _is_noted(known, event, get):
                return ()
            after = known.take(event)
            at = known.replicas.index(event.follower) - 1
            caught_up_ms = max(0, after.list_notes(get)[at].last_caught_up_ms)
            return (event._replace(caught_up_ms=caught_up_ms),)
        case Serve():
            state = known.as_logs(known.list_notes(get), known.pseudo)
            shown = get(logs.STEPS[logs.Advance])(state, state.leader, known.readings).state.shown
            return () if shown is None else (Serve(shown),)
        case Evaluate():
            return tuple(_look(known, event, get))
        case _:
            return ()


def _is_noted(known: Known, event: Fetch, get: Get) -> bool:
    """Whether a leader notes a request; it may be from another leader epoch."""
    state = known.as_logs(known.list_notes(_get_true), known.pseudo)
    at = known.ids.index(event.follower)
    epoch = known.epoch if event.follower_epoch is None else event.follower_epoch
    sender = logs.Replica(request=logs.Request(epoch, event.offset))
    state = replace(state, replicas=(*state.replicas[:at], sender, *state.replicas[at + 1 :]))
    return isinstance(get(logs.STEPS[logs.Serve])(state, at, known.readings), Accepted)


def _look(known: Known, event: Evaluate, get: Get) -> Iterator[What]:
    """Yield what a leader says when it looks who keeps up: that, answers, the in-sync set."""
    notes, readings, replicas = known.list_notes(get), known.readings, known.replicas
    leader = Leader(replicas, known.end, notes, known.mark, known.pseudo, known.isr)
    found = get(evaluate)(leader, event.time_ms, known.lead.lag_ms_max)
    advance, join, leave = (get(logs.STEPS[x]) for x in (logs.Advance, logs.Join, logs.Leave))
    state = known.as_logs(notes, found.pseudo_isr)
    state = advance(state, state.leader, readings).state
    mark = state.replicas[state.leader].high_watermark
    defined = None if readings.isr_members == "stored" else found.isr
    yield Evaluate(found.pseudo_isr, mark, defined, event.time_ms)
    marked = replace(found, high_watermark=mark)
    yield from (Answer(each) for each in known.waiting if get(is_answered)(marked, each))
    heard = {r for r, noted in zip(replicas[1:], known.noted, strict=True) if noted is not None}
    for at, replica in enumerate(known.ids if defined is None else ()):
        outcome, before = None, state.version
        if at in state.term.pseudo_isr - state.isr and replica in heard:
            outcome = join(state, at, readings)
        elif at in state.isr - state.term.pseudo_isr:
            outcome = leave(state, at, readings)
        if isinstance(outcome, Accepted):
            state = outcome.state
            yield IsrWrite(tuple(known.ids[r] for r in sorted(state.isr)), before, state.version)


# Moments ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LeaderMoment:
    """A leader that something happens to."""

    known: Known
    event: What
    before: tuple[Observation, ...] = field(compare=False)
    """All that it has said in its term."""
    right: tuple[What, ...] = field(compare=False)
    """What a right leader says."""

    @classmethod
    def make(cls, known: Known, event: What, before: Iterable[Observation]) -> "LeaderMoment":
        """Return the moment at which this happens."""
        return cls(known, event, tuple(before), say(known, event))


class Moments:
    """The moments of leaders, each once, from what was observed."""

    def __init__(self) -> None:
        self._found: dict[LeaderMoment, LeaderMoment] = {}
        self._fresh: list[LeaderMoment] = []

    def read(self, lines: Iterable[Observation], readings: Readings) -> None:
        """Take note of what one broker observed, in its order.

        Between its lines may stand what it was asked, with a sequence below 0, as it would be told.
        """
        terms: dict[tuple[str, str, int], tuple[Known, list[Observation]]] = {}
        for line in lines:
            place, what = (line.chroot, line.topic, line.partition), line.what
            if isinstance(what, Lead):
                known = begin(line, what, readings)
                terms.pop(place, None)
                if known is not None:
                    terms[place] = known, [line]
            elif isinstance(what, Writer):
                terms.clear()
            elif place in terms:
                known, before = terms[place]
                if line.sequence < 0:
                    if not isinstance(what, Fetch) or what.follower_epoch != known.epoch:
                        self.note(known, what, before)
                elif line.leader_epoch != before[0].leader_epoch or _is_unsure(what):
                    del terms[place]
                else:
                    self.note(known, what, before)
                    before.append(line)
                    terms[place] = known.take(what), before

    def note(self, known: Known, event: What, before: Iterable[Observation]) -> None:
        """Take note of a moment, if a leader has something to say then."""
        is_known = not isinstance(event, Fetch) or event.follower in known.replicas[1:]
        if isinstance(event, Fetch | Evaluate | Serve) and is_known:
            moment = LeaderMoment.make(known, event, before)
            if self._found.setdefault(moment, moment) is moment:
                self._fresh.append(moment)

    def take_fresh(self) -> tuple[LeaderMoment, ...]:
        """Return those that are new since this was asked last."""
        fresh = tuple(self._fresh)
        self._fresh.clear()
        return fresh


def _is_unsure(what: What) -> bool:
    """Whether a leader does not know from here on what is stored."""
    return isinstance(what, IsrWrite) and what.isr_version is None


# Mutants ------------------------------------------------------------------------------------------


class Leaders:
    """The rules of a leader, and mutants of them: asked as a `kills.Reference` is."""

    def __init__(self) -> None:
        self.linked: Final = Linked(*BEGIN)
        self.functions: Final = self.linked.functions
        self._judged: dict[tuple[LeaderMoment, tuple[What, ...]], str] = {}

    def list_mutants(self) -> tuple[Mutant, ...]:
        """Return every mutant, in a stable order."""
        return list_mutants(self.functions)

    def find_called(self, moment: LeaderMoment) -> frozenset[str]:
        """Return the names of the functions that decide what a right leader says."""
        return find_called(lambda: self._say(moment, self.linked.get))

    def find_kill(self, moment: LeaderMoment) -> str:
        """Return the clause by which the planted mutant is killed at a moment, else why not."""
        said = self._say(moment, self.linked.get)
        if said == moment.right:
            return SAME
        key = moment, said
        if key not in self._judged:
            self._judged[key] = find_refused(moment, said) or ALLOWED
        return self._judged[key]

    def _say(self, moment: LeaderMoment, get: Get) -> tuple[What, ...]:
        """Return what a leader says; one that fails says nothing, as its process would."""
        try:
            return say(moment.known, moment.event, get)
        except Exception:  # whatever a changed function raises
            return ()


def find_refused(moment: LeaderMoment, said: tuple[What, ...]) -> str:
    """Return the clause by which words are refused, or what a right leader says next, else ""."""
    head, told = moment.before[0], len(moment.before)
    writer = head._replace(topic="", partition=-1, broker=NOBODY, what=Writer(tuple(KINDS)))
    judge = LagRules.make_judge(moment.known.readings)
    try:
        words = (*said, *_go_on(moment, said))
        lines = (writer, *moment.before, *(head._replace(what=what) for what in words))
        for number, line in enumerate(lines):
            judge.feed(line._replace(run=0, sequence=number), "", number)
    except (AttributeError, TypeError, ValueError):  # nobody could say so
        return ""
    found = judge.finish().violations
    return next((each.clause for each in found if each.line > told and each.binds()), "")


def _go_on(moment: LeaderMoment, said: tuple[What, ...]) -> tuple[What, ...]:
    """Return what a right leader says after these words: it looks after a fetch, and in time."""
    known, now_ms = moment.known, getattr(moment.event, "time_ms", None)
    if now_ms is None:
        return ()
    for what in said:
        known = known.take(what)
    gap_ms = (known.lead.lag_ms_max or 0) // 2 if isinstance(moment.event, Evaluate) else 0
    return say(known, Evaluate((), 0, None, now_ms + gap_ms))
