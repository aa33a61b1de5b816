"""Sound histories of observations, told by the model: for tests, and to measure speed on.

`tell_walk` walks through the machine of KAFKA-4485 at random, and lets each broker, and the
controller, say what it does; lag is no matter of time there. `tell_term` lets one leader work by
the clock: who lags follows from times.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final

from reassure_model.outcome import Rejected
from reassure_model.protocols import kafka_4485 as timed
from reassure_model.protocols.kafka_4485 import compute_isr, replication
from reassure_model.protocols.kafka_4485.replication import (
    ACTIONS,
    Action,
    Replication,
    is_possible,
    make_replication,
    step,
)
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
    Produce,
    Replica,
    Restored,
    Serve,
    Stored,
    What,
    Writer,
)
from reassure_spec.readings import Readings

CONTROLLER: Final = "controller"
_TELLS: Final = tuple(KINDS)


@dataclass(slots=True)
class Telling:
    """What the writers of one partition have said so far."""

    topic: str = "t"
    partition: int = 0
    lines: dict[str, list[Observation]] = field(default_factory=dict)
    """By writer, in its order."""

    def say(self, broker: int, epoch: int, what: What) -> None:
        """Let a broker, or `NOBODY` for the controller, say something."""
        writer = CONTROLLER if broker == NOBODY else f"broker-{broker}"
        lines = self.lines.setdefault(writer, [])
        if not lines:
            head = Observation(writer, 1, 0, "", "", -1, NOBODY, 0, 0, Writer(_TELLS))
            lines.append(head)
        place = self.topic, self.partition
        lines.append(Observation(writer, 1, len(lines), "", *place, broker, 1, epoch, what))

    def shuffle(self, random: Random) -> list[Observation]:
        """Return all lines, those of each writer in their order."""
        left = [list(reversed(lines)) for lines in self.lines.values()]
        told = []
        while left:
            lines = random.choice(left)
            told.append(lines.pop())
            left = [lines for lines in left if lines]
        return told


# The machine ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Walk:
    """The machine, and what is told of it."""

    state: Replication
    readings: Readings
    telling: Telling
    is_prompt: bool = True
    """Whether the leader writes its in-sync set as soon as it has evaluated it."""
    waiting: list[int] = field(default_factory=list)
    """Where the records end of which a producer waits."""

    def begin(self) -> None:
        """Tell how it begins: all replicas are empty, and the first leads."""
        for broker, replica in enumerate(self.state.replicas):
            self._say(broker, Restored(0, 0))
            if broker != self.state.leader:
                self._say(broker, Follow(len(replica.log), replica.high_watermark))
        self._tell_stored()
        self._tell_leader()

    def _say(self, broker: int, what: What) -> None:
        self.telling.say(broker, self.state.leader_epoch, what)

    def _tell_stored(self) -> None:
        state = self.state
        if self.readings.isr_members == "stored":
            self._say(NOBODY, Stored(state.leader, tuple(sorted(state.isr)), state.version))

    def _tell_leader(self) -> None:
        state = self.state
        replica, isr = state.replicas[state.leader], tuple(sorted(state.isr))
        version = state.version if self.readings.isr_members == "stored" else None
        ids = tuple(range(len(state.replicas)))
        lead = Lead(len(replica.log), replica.high_watermark, ids, isr, version)
        self._say(state.leader, lead)
        self._tell_shown()

    def _tell_shown(self) -> None:
        if self.state.shown is not None:
            self._say(self.state.leader, Serve(self.state.shown, self.state.shown))

    def _tell_log(self, broker: int) -> None:
        replica = self.state.replicas[broker]
        self._say(broker, Replica(len(replica.log), replica.high_watermark))

    def take(self, action: Action) -> None:
        """Take one step, if it is accepted, and tell it."""
        before = self.state
        outcome = step(before, action, self.readings)
        if isinstance(outcome, Rejected):
            if outcome.clause == "isr.write.conditional":
                self._tell_write(before, action, None)
            return
        self.state = outcome.state
        self._tell(before, action)
        if isinstance(action, replication.Advance) and self.is_prompt:
            self._do_what_is_due()

    def _tell(self, before: Replication, action: Action) -> None:
        state, broker, leader = self.state, action.broker, self.state.leader
        match action:
            case replication.Append():
                self._tell_log(leader)
                self.waiting.append(len(state.replicas[leader].log))
                self._say(leader, Produce(self.waiting[-1]))
            case replication.Serve():
                request = before.replicas[broker].request
                assert request is not None
                self._say(leader, Fetch(broker, request.offset, request.leader_epoch))
            case replication.Answer():
                self._tell_log(broker)
            case replication.Advance():
                self._tell_evaluation()
            case replication.Join() | replication.Leave():
                self._tell_write(before, action, state.version)
            case replication.Remove():
                self._tell_stored()
            case replication.Refresh():
                self._say(leader, IsrRead(tuple(sorted(state.term.isr)), state.term.version))
            case replication.Elect():
                for offset in self.waiting:
                    self.telling.say(before.leader, before.leader_epoch, Answer(offset, "gone"))
                self.waiting.clear()
                self._tell_stored()
                self._tell_leader()
            case replication.Follow():
                replica = state.replicas[broker]
                self._say(broker, Follow(len(replica.log), replica.high_watermark))

    def _tell_evaluation(self) -> None:
        state, leader = self.state, self.state.leader
        mark = state.replicas[leader].high_watermark
        defined = None if self.readings.isr_members == "stored" else tuple(sorted(state.isr))
        self._say(leader, Evaluate(tuple(sorted(state.term.pseudo_isr)), mark, defined))
        self._tell_shown()
        for offset in [end for end in self.waiting if end <= mark]:
            self.waiting.remove(offset)
            self._say(leader, Answer(offset))

    def _tell_write(self, before: Replication, action: Action, version: int | None) -> None:
        term, one = before.term, {action.broker}
        isr = term.isr | one if isinstance(action, replication.Join) else term.isr - one
        self._say(before.leader, IsrWrite(tuple(sorted(isr)), term.version, version))

    def _do_what_is_due(self) -> None:
        """Let the leader write its in-sync set as the evaluation asks for."""
        if self.readings.isr_members != "stored":
            return
        state, term = self.state, self.state.term
        ids, leader = tuple(range(len(state.replicas))), state.replicas[state.leader]
        ends = tuple(len(leader.log) if b == state.leader else term.offsets[b] for b in ids)
        due = compute_isr(ids, ends, tuple(term.pseudo_isr), leader.high_watermark)
        for broker in ids:
            joins, leaves = broker in due, broker not in term.pseudo_isr
            write = replication.Join(broker) if joins else replication.Leave(broker)
            if (joins or leaves) and is_possible(self.state, write):
                self.take(write)


_STORED_ONLY: Final = (replication.Join, replication.Leave, replication.Remove, replication.Refresh)
_RARE: Final[Mapping[type[Action], float]] = {
    replication.Elect: 0.1,
    replication.Remove: 0.1,
    replication.Lag: 0.3,
    replication.CatchUp: 0.6,
}


def tell_walk(
    random: Random,
    readings: Readings,
    brokers: int,
    steps: int,
    telling: Telling | None = None,
    *,
    is_prompt: bool = True,
) -> Walk:
    """Walk through the machine at random, and tell it.

    It tells of nothing that a clause forbids where the readings have all amendments and the leader
    is prompt.
    """
    walk = Walk(make_replication(brokers), readings, telling or Telling(), is_prompt)
    walk.begin()
    stored = readings.isr_members == "stored"
    # A follower enters by an evaluation only: what it says is what the leader acts upon.
    kinds = [
        kind
        for kind in ACTIONS.values()
        if kind is not replication.Join and (stored or kind not in _STORED_ONLY)
    ]
    for _ in range(steps):
        actions = [
            kind(broker)
            for kind in kinds
            for broker in range(brokers)
            if is_possible(walk.state, kind(broker))
        ]
        weights = [_RARE.get(type(action), 1.0) for action in actions]
        walk.take(random.choices(actions, weights)[0])
    return walk


# One leader by the clock ------------------------------------------------------------------------


def tell_term(
    random: Random,
    readings: Readings,
    brokers: int,
    steps: int,
    telling: Telling | None = None,
    *,
    behind: int = 0,
) -> Telling:
    """Let broker 0 lead by the clock, with a limit of 100 ms, and tell it.

    The mark is the text's own: readings with `hw.over-stored-isr=yes` are not for this. Where the
    others are `behind` by so many records at the beginning, the last of them is not in sync.
    """
    told, limit_ms, now = telling or Telling(), 100, 1_000
    ids = tuple(range(brokers))
    isr, version = ids[:-1] if behind else ids, 0
    leader = timed.start_leader(ids, behind, now, isr, readings)
    ends = dict.fromkeys(ids[1:], 0)
    for broker in ids:
        told.say(broker, 0, Restored(0 if broker else behind, 0))
        if broker:
            told.say(broker, 0, Follow(0, 0))
    told.say(0, 0, Lead(behind, 0, ids, isr, 0, limit_ms, now))
    evaluated = now
    for _ in range(steps):
        now = min(now + random.choice((0, 1, 5, 20)), evaluated + limit_ms // 2)
        kind = "evaluate" if now == evaluated + limit_ms // 2 else random.choice("aaffffe")
        if kind == "a":
            leader = timed.Leader(ids, leader.end + random.randint(1, 3), *_rest(leader))
            told.say(0, 0, Replica(leader.end, leader.high_watermark, now))
        elif kind == "f":
            follower = random.choice(ids[1:])
            leader = timed.fetch(leader, follower, ends[follower], now, readings)
            note = leader.followers[follower - 1]
            caught = max(note.last_caught_up_ms, 0)
            said = Fetch(follower, ends[follower], 0, leader.end, now, caught)
            told.say(0, 0, said)
            ends[follower] = random.randint(ends[follower], leader.end)
            mark = min(leader.high_watermark, ends[follower])
            told.say(follower, 0, Replica(ends[follower], mark, now))
        else:
            evaluated, leader = now, timed.evaluate(leader, now, limit_ms)
            stored = readings.isr_members == "stored"
            mark, defined = leader.high_watermark, None if stored else leader.isr
            told.say(0, 0, Evaluate(leader.pseudo_isr, mark, defined, now))
            told.say(0, 0, Serve(mark, mark))
            if stored and set(leader.isr) != set(isr):
                told.say(0, 0, IsrWrite(leader.isr, version, version + 1))
                isr, version = leader.isr, version + 1
    return told


def _rest(
    leader: timed.Leader,
) -> tuple[tuple[timed.Follower, ...], int, tuple[int, ...], tuple[int, ...]]:
    return leader.followers, leader.high_watermark, leader.pseudo_isr, leader.isr
