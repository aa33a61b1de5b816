"""What a broker says first: of a replica that it takes up, and of a term that it leads.

How a log ended and which mark was saved show in what is restored; what an election makes of a
replica shows in what it says to lead with, concludes at once and shows to consumers. A broker that
was not in sync says nothing of that kind: nobody elects it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from reassure_model.outcome import Rejected
from reassure_model.protocols.kafka_4485 import replication as logs
from reassure_mutation.protocols.kafka_4485.leader_words import Get, History, Known, get_true
from reassure_spec.observations import (
    NOBODY,
    Evaluate,
    Lead,
    Observation,
    Restored,
    Serve,
    Stored,
    What,
)
from reassure_spec.readings import Readings


def _head(broker: int, epoch: int, what: What, run: int = 0) -> Observation:
    return Observation(f"broker-{broker}", run, 0, "", "t", 0, broker, 1, epoch, what)


@dataclass(frozen=True)
class RestoredMoment:
    """A broker that takes a replica up again."""

    readings: Readings
    broker: int
    highest: int
    """The highest mark that it had before."""
    saved: int | None
    """The mark that was saved last, None where none was, or 0, which nobody tells from none."""
    end: int
    """Where the log ends that it finds."""

    @cached_property
    def right(self) -> tuple[Observation, ...]:
        """What a right broker says."""
        return self.say(get_true)

    def say(self, get: Get) -> tuple[Observation, ...]:
        """Return that by these functions. Raises whatever a changed one raises."""
        what = Restored(self.end, get(logs.restore_mark)(self.saved, self.end))
        return (_head(self.broker, 0, what, run=1),)

    def tell(self, said: tuple[Observation, ...]) -> Iterator[History]:
        """Yield a life in which it had that mark, and these words."""
        before = Restored(max(self.end, self.highest), self.highest)
        yield (_head(self.broker, 0, before),), said


@dataclass(frozen=True)
class ElectedMoment:
    """A broker that is elected, or that is not, as it is not in sync."""

    known: Known
    """What the leader knows that is elected."""
    broker: int

    @property
    def readings(self) -> Readings:
        """What it goes by."""
        return self.known.readings

    @cached_property
    def right(self) -> tuple[Observation, ...]:
        """What a right broker says."""
        return self.say(get_true)

    @property
    def _leader_before(self) -> int:
        """Somebody else, of the replicas if there is one."""
        return next((r for r in self.known.replicas if r != self.broker), self.broker + 1)

    def say(self, get: Get) -> tuple[Observation, ...]:
        """Return what it says, what it concludes at once, and what consumers see of it then.

        Raises whatever a changed function raises.
        """
        known, ids = self.known, self.known.ids
        isr = frozenset(at for at, each in enumerate(ids) if each in known.isr)
        term = logs.Term(0, known.version - 1, isr, isr, (0,) * len(ids))
        at, other = ids.index(self.broker), self._leader_before
        state = replace(
            known.as_logs(known.list_notes(get_true), known.pseudo),
            leader=ids.index(other) if other in ids else at,
            leader_epoch=known.epoch - 1,
            isr=isr,
            version=known.version - 1,
            term=term,
        )
        outcome = get(logs.STEPS[logs.Elect])(state, at, known.readings)
        if isinstance(outcome, Rejected):
            return ()
        state = outcome.state
        elected, term = state.replicas[state.leader], state.term
        start, mark, time_ms = term.end_at_election, elected.high_watermark, known.lead.time_ms
        close, isr_now = known.name(term.pseudo_isr), known.name(term.isr)
        state = get(logs.STEPS[logs.Advance])(state, state.leader, known.readings).state
        after = state.replicas[state.leader].high_watermark
        lead = Lead(start, mark, ids, isr_now, term.version, known.lead.lag_ms_max, time_ms)
        shown = () if state.shown is None else (Serve(state.shown),)
        words = lead, Evaluate(close, after, None, time_ms), *shown
        return tuple(_head(ids[state.leader], state.leader_epoch, what) for what in words)

    def tell(self, said: tuple[Observation, ...]) -> Iterator[History]:
        """Yield a term of somebody else that ends with this election, and these words."""
        known, epoch, other = self.known, self.known.epoch - 1, self._leader_before
        end, mark = known.end, known.mark
        stored = _head(NOBODY, epoch, Stored(other, known.isr, known.version - 1))
        led = _head(other, epoch, Lead(mark, mark, known.ids, (other, *known.isr)))
        before = (
            stored._replace(writer="controller"),
            led,
            *((led._replace(what=Serve(mark)),) if mark else ()),
            _head(self.broker, epoch, Restored(end, mark)),
        )
        yield before, said
