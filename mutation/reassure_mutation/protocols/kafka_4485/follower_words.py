"""What a follower would have said, as it begins to follow and as its leader answers it.

It says where its log ends and what its mark is; the leader notes from where it asks next; what is
in the log shows where it is elected. So a moment is both logs and marks, however they came about:
the history that the judge is given is the shortest that leads there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from reassure_model.protocols.kafka_4485 import replication as logs
from reassure_mutation.protocols.kafka_4485.leader_words import Get, History, get_true
from reassure_spec.observations import (
    Evaluate,
    Fetch,
    Follow,
    Lead,
    Observation,
    Replica,
    Restored,
    Serve,
    Spans,
    What,
)
from reassure_spec.readings import Readings


def spell_log(log: logs.Log) -> Spans:
    """Return the leader epochs of a log, each with its first offset.

    >>> spell_log((0, 0, 2))
    ((0, 0), (2, 2))
    """
    return tuple((to, at) for at, (one, to) in enumerate(pairwise((-1, *log))) if one != to)


def read_log(end: int, epochs: Spans | None) -> logs.Log | None:
    """Return a log whose leader epochs are told, None where they are not, or not of all of it.

    >>> read_log(3, ((0, 0), (2, 2))), read_log(3, ())
    ((0, 0, 2), None)
    """
    if epochs is None or (end and (not epochs or epochs[0][1])):
        return None
    stops = (*(first for _, first in epochs[1:]), end)
    spans = zip(epochs, stops, strict=False)
    return tuple(epoch for (epoch, first), stop in spans for _ in range(first, stop))


@dataclass(frozen=True)
class FollowerMoment:
    """A broker that begins to follow, or that its leader answers."""

    readings: Readings
    broker: int
    leader: int
    epoch: int
    """In which the leader leads."""
    held: logs.Replica
    """What the broker has, and the epoch that it acted upon before."""
    led: logs.Log
    """The leader's log."""
    start: int
    """Where it ended at the election."""
    sent: Replica | None = None
    """Where what the answer brings ends, and the leader's mark in it; None: it begins to follow."""

    @cached_property
    def right(self) -> tuple[What, ...]:
        """What a right follower says, how it asks next, and what it says where it is elected."""
        return self.say(get_true)

    def say(self, get: Get) -> tuple[What, ...]:
        """Return that by these functions. Raises whatever a changed one raises."""
        ids = tuple(sorted((self.broker, self.leader)))
        end, mark = (len(self.led), 0) if self.sent is None else self.sent[:2]
        leads, nobody = logs.Replica(self.led[:end], mark, self.epoch), frozenset[int]()
        replicas = tuple(self.held if one == self.broker else leads for one in ids)
        term = logs.Term(self.start, 0, nobody, nobody, (0, 0))
        at = ids.index(self.broker)
        state = logs.Replication(replicas, 1 - at, self.epoch, nobody, 0, term)
        step = get(logs.STEPS[logs.Follow if self.sent is None else logs.Answer])
        after: logs.Replica = step(state, at, self.readings).state.replicas[at]
        assert after.request is not None  # it asks for more
        end, mark = len(after.log), after.high_watermark
        return (
            Follow(end, mark) if self.sent is None else Replica(end, mark),
            Fetch(self.broker, after.request.offset, after.request.leader_epoch),
            Lead(end, mark, ids, ids, epochs=spell_log(after.log)),
        )

    def tell(self, said: tuple[What, ...]) -> Iterator[History]:
        """Yield a history that leads here, and these words with what the leader says to them.

        First only until the leader hears of them, as its mark may go on by that.
        """
        mark = 0 if self.sent is None else self.sent.high_watermark
        end, held = len(self.held.log), self.held
        begun = min(mark, self.start)
        alone, both = (self.leader,), (self.leader, self.broker)
        first = Lead(self.start, begun, both, alone, epochs=spell_log(self.led[: self.start]))
        before = [
            self._head(self.leader, self.epoch, first),
            self._head(self.leader, self.epoch, Replica(len(self.led), begun)),
            self._head(self.leader, self.epoch, Evaluate(alone, mark)),
            self._head(
                self.broker,
                held.leader_epoch,
                Restored(end, held.high_watermark, spell_log(held.log)),
            ),
        ]
        if self.sent is not None:
            follows = Follow(end, held.high_watermark)
            before.append(self._head(self.broker, self.epoch, follows))
        after: list[Observation] = []
        for what in said:
            broker, epoch, words = self.broker, self.epoch + isinstance(what, Lead), [what]
            if isinstance(what, Fetch):
                broker, reached = self.leader, min(len(self.led), what.offset)
                if reached >= max(mark, self.start):  # then it may be elected
                    words += [Evaluate(both, reached), Serve(reached)]
                words = words if what.follower_epoch == epoch else []  # refused
            after += [self._head(broker, epoch, each) for each in words]
        yield before, after[:1]
        yield before, after

    def _head(self, broker: int, epoch: int, what: What) -> Observation:
        return Observation(f"broker-{broker}", 0, 0, "", "t", 0, broker, 1, epoch, what)
