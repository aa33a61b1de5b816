"""What a leader would have said: mutants of the rules that it goes by, at the moments of its term.

A leader writes nothing that shows what it knows, but it says what it concludes: lag, pseudo-ISR,
high watermark, in-sync set, what consumers are shown and producers are answered. So a moment is
what it knew, and what came: a fetch request, a look at who keeps up, a consumer, a read of what is
stored. A mutant says something else there, and is killed where the judge refuses that, or the look
that a right leader takes next. All is read from the observations of one leader, in its own order.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from reassure_model.outcome import Accepted, Rejected
from reassure_model.protocols.kafka_4485 import (
    Follower,
    Leader,
    evaluate,
    fetch,
    is_answered,
    start_leader,
)
from reassure_model.protocols.kafka_4485 import replication as logs
from reassure_spec.observations import (
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
)
from reassure_spec.readings import Readings
from reassure_spec.znodes import ReplicaList

BEGIN: Final[tuple[Any, ...]] = (
    start_leader,
    fetch,
    evaluate,
    is_answered,
    *(
        logs.STEPS[kind]
        for kind in (
            logs.Serve,
            logs.Advance,
            logs.Join,
            logs.Leave,
            logs.Refresh,
            logs.Follow,
            logs.Answer,
            logs.Elect,
        )
    ),
    logs.restore_mark,
)
"""The functions of the model by which leaders and followers decide what to say."""
Get = Callable[[Any], Callable[..., Any]]
"""From a function of the model to the one that is asked in its place."""
History = tuple[Sequence[Observation], Sequence[Observation]]
"""What was observed before somebody says something, and from then on."""


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
    stored: IsrRead | None = None
    """What somebody else has stored meanwhile, None where nobody has."""
    is_unsure: bool = False
    """Whether a write was not answered, and nothing has been read since."""

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

    def name(self, numbers: Iterable[int]) -> ReplicaList:
        """Return the replicas that the model numbers so."""
        return tuple(self.ids[number] for number in sorted(numbers))

    def as_logs(self, notes: Sequence[Follower], pseudo: Iterable[int]) -> logs.Replication:
        """Return the partition as the leader knows it, with `ids` numbered from 0."""
        noted = dict(zip(self.replicas[1:], notes, strict=True))
        ids, me = self.ids, self.replicas[0]
        offsets = tuple(noted[r].offset if r in noted else 0 for r in ids)
        isr, close = (
            frozenset(at for at, r in enumerate(ids) if r in some) for some in (self.isr, pseudo)
        )
        term = logs.Term(self.lead.log_end_offset, self.version, isr, close, offsets)
        stored = self.stored or IsrRead(self.isr, self.version)
        leader = logs.Replica((self.epoch,) * self.end, self.mark, self.epoch)
        replicas = tuple(leader if r == me else logs.Replica() for r in ids)
        return logs.Replication(
            replicas,
            ids.index(me),
            self.epoch,
            frozenset(at for at, r in enumerate(ids) if r in stored.isr),
            stored.isr_version,
            term,
            shown=None,
        )

    def take(self, what: What) -> "Known":
        """Return what the leader knows once it has said this."""
        match what:
            case Replica():
                return replace(self, end=what.log_end_offset)
            case Fetch() if what.follower in self.replicas[1:]:
                at = self.replicas.index(what.follower) - 1
                before = self.noted[at] and self.list_notes(get_true)[at]
                noted = (*self.noted[:at], (before, what), *self.noted[at + 1 :])
                return replace(self, noted=noted)
            case Evaluate():
                return replace(self, mark=what.high_watermark, pseudo=what.pseudo_isr)
            case IsrWrite() if what.isr_version is None:
                return replace(self, is_unsure=True)
            case IsrWrite() | IsrRead() if what.isr_version is not None:
                return replace(self, isr=what.isr, version=what.isr_version, is_unsure=False)
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


def get_true(function: Any) -> Callable[..., Any]:
    """Return the function itself."""
    called: Callable[..., Any] = function
    return called


def say(known: Known, event: What, get: Get = get_true) -> tuple[What, ...]:
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
        case IsrRead():
            state = replace(known, stored=event).as_logs(known.list_notes(get), known.pseudo)
            term = get(logs.STEPS[logs.Refresh])(state, state.leader, known.readings).state.term
            return (IsrRead(known.name(term.isr), term.version),)
        case Evaluate():
            return tuple(_look(known, event, get))
        case _:
            return ()


def _is_noted(known: Known, event: Fetch, get: Get) -> bool:
    """Whether a leader notes a request; it may be from another leader epoch."""
    state = known.as_logs(known.list_notes(get_true), known.pseudo)
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
        outcome, before = None, state.term.version
        if at in state.term.pseudo_isr - state.term.isr and replica in heard:
            outcome = join(state, at, readings)
        elif at in state.term.isr - state.term.pseudo_isr:
            outcome = leave(state, at, readings)
        if isinstance(outcome, Accepted):
            state = outcome.state
            yield IsrWrite(known.name(state.isr), before, state.version)
        elif isinstance(outcome, Rejected) and outcome.clause == "isr.write.conditional":
            yield IsrWrite(known.name(state.term.isr ^ {at}), before, None)


# Moments ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LeaderMoment:
    """A leader that something happens to."""

    known: Known
    event: What
    before: tuple[Observation, ...] = field(compare=False)
    """All that it has said in its term."""

    @property
    def readings(self) -> Readings:
        """What it goes by."""
        return self.known.readings

    @cached_property
    def right(self) -> tuple[What, ...]:
        """What a right leader says."""
        return self.say(get_true)

    def say(self, get: Get) -> tuple[What, ...]:
        """Return what it says by these functions. Raises whatever a changed one raises."""
        return say(self.known, self.event, get)

    def tell(self, said: tuple[What, ...]) -> Iterator[History]:
        """Yield what was observed before, and these words with what follows on them."""
        head, words = self.before[0], (*said, *self._go_on(said))
        yield self.before, tuple(head._replace(what=what) for what in words)

    def _go_on(self, said: tuple[What, ...]) -> tuple[What, ...]:
        """Return what a right leader says next: it looks after a fetch, and in time."""
        known, now_ms = self.known, getattr(self.event, "time_ms", None)
        if now_ms is None:
            return ()
        for what in said:
            known = known.take(what)
        gap_ms = (known.lead.lag_ms_max or 0) // 2 if isinstance(self.event, Evaluate) else 0
        return say(known, Evaluate((), 0, None, now_ms + gap_ms))
