"""The worlds of KAFKA-4485: a leader and two followers, as the tales of the gate bring them about.

Everything arrives at once and in order: what is looked for is what brokers say, not what a network
does. Broker 1 leads; where it crashes, who comes first of the in-sync set does.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import permutations
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from reassure_judge.observed import judge as observed_judge
from reassure_judge.protocols.kafka_4485 import contents, lags, leading, partition, terms
from reassure_model.protocols.kafka_4485 import replication as logs
from reassure_mutation.protocols.kafka_4485 import (
    first_words,
    follower_words,
    leader_words,
    replica_moments,
)
from reassure_mutation.protocols.kafka_4485.first_words import RestoredMoment
from reassure_mutation.protocols.kafka_4485.follower_words import FollowerMoment
from reassure_mutation.protocols.kafka_4485.leader_words import Known, LeaderMoment, begin
from reassure_mutation.protocols.kafka_4485.replica_moments import (
    Moment,
    WordRules,
    list_elected,
)
from reassure_spec.observations import (
    Evaluate,
    Fetch,
    Follow,
    IsrRead,
    IsrWrite,
    Lead,
    Observation,
    Produce,
    Replica,
    Serve,
    What,
)
from reassure_spec.readings import Readings, get_profile, override_readings
from reassure_spec.znodes import ReplicaList

PROFILE: Final = "kafka-4485"
LIMIT_MS: Final = 1_000
BEGINS_MS: Final = 10**6
SHIPPED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "hw.scope": "across-clean-elections",
        "hw.over-stored-isr": "yes",
        "hw.served-from": "end-at-election",
        "isr.entry": "end-at-election",
        "follower.truncation": "common-prefix",
        "lag.initial": "now-if-in-sync",
        "lag.initial-leader-end": "leader-end",
    }
)
"""The readings of the bundled brokers where nobody says otherwise: with all amendments, since as
written an election can lose what was shown (finding watermark-12)."""
ASKED: Final = IsrRead((), 0)
"""In place of what a write has stored: the next one is to have no answer."""
READINGS: Final = override_readings(get_profile(PROFILE), SHIPPED)
MADE_FROM: Final = (
    first_words,
    leader_words,
    follower_words,
    replica_moments,
    lags,
    leading,
    partition,
    terms,
    contents,
    observed_judge,
)
"""What decides besides the rules what can be killed."""


def make_reference(_profile: str) -> WordRules:
    """Return the rules of leaders and followers."""
    return WordRules()


@dataclass(frozen=True, slots=True)
class LeaderWorld:
    """Where a tale begins, and how often each step may be taken."""

    name: str
    heading: str
    """The first line of a tale."""
    limits: Mapping[str, int]
    readings: Readings = READINGS
    followers: ReplicaList = (2, 3)
    calm: bool = True
    """Nothing is held up in these worlds."""


WORLDS: Final = (
    LeaderWorld(
        "one follower",
        "world brokers on=1,2 t-0=1,2",
        {"produce": 2, "fetch": 3, "wait": 4},
        followers=(2,),
    ),
    LeaderWorld(
        "an election",
        "world brokers",
        {"produce": 2, "fetch": 2, "wait": 1, "crash": 1, "outrun": 1},
    ),
    LeaderWorld(
        "as written",
        "world brokers rules=as-written",
        {"produce": 1, "fetch": 2, "wait": 3},
        get_profile(PROFILE),
    ),
    LeaderWorld(
        "early credit",
        "world brokers rules=early-credit",
        {"produce": 1, "fetch": 2, "wait": 2, "crash": 1},
        override_readings(READINGS, {"lag.initial": "now", "lag.initial-leader-end": "zero"}),
    ),
    LeaderWorld(
        "a restart in order",
        "world brokers on=1,2 t-0=1,2",
        {"produce": 2, "fetch": 2, "stop": 1},
        followers=(2,),
    ),
    LeaderWorld(
        "writes that fail",
        "world brokers on=1,2 t-0=1,2",
        {"produce": 1, "fetch": 1, "wait": 4, "hide": 1, "lose": 1},
        followers=(2,),
    ),
)


@dataclass(frozen=True, slots=True)
class FoundMoment:
    """A moment, and the tale that leads there."""

    situation: Moment
    steps: tuple[str, ...]
    interrupts: bool = False

    def list_steps(self) -> tuple[str, ...]:
        """Return the tale, its heading first."""
        return self.steps


class _Copy(NamedTuple):
    """What a follower has."""

    held: logs.Replica = logs.Replica()
    asks: bool = False
    """Whether it has to ask first where its log parts from the leader's."""


@dataclass(slots=True)
class _Play:
    """A tale, as it is told."""

    world: LeaderWorld
    known: Known
    lines: tuple[Observation, ...]
    log: logs.Log
    """The leader's."""
    copies: Mapping[int, _Copy]
    left: Mapping[str, int]
    steps: tuple[str, ...]
    now_ms: int = BEGINS_MS
    unanswered: IsrRead | None = None
    """What a write has stored of which the leader has no answer yet."""
    found: list[Moment] = field(default_factory=list)
    """The moments of the last step."""

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells it from others: not how it came about."""
        copies, left = tuple(self.copies.items()), tuple(self.left.values())
        return self.known, self.log, copies, self.now_ms, left, self.unanswered

    def list_moves(self) -> Iterator[tuple[str, Callable[["_Play"], None], tuple[str, ...]]]:
        """Yield what can be done: what it is counted as, what it does, and its steps."""
        leader, settled = self.known.replicas[0], "deliver all"
        produce = (f"produce 1 with acks -1 to {leader}", settled)
        yield "produce", _Play.produce, produce
        for one, copy in self.copies.items():
            step = f"{one} fetches and is answered"
            yield "fetch", partial(_Play.fetch, follower=one), (step,) * (1 + copy.asks)
        yield "wait", _Play.wait, (f"wait {LIMIT_MS // 2} ms",)
        if "crash" in self.left and self.known.stored is None:
            yield "", _Play.consume, (f"consume from {leader}", settled)
        if any(one in self.known.isr for one in self.copies):
            comes = (f"{leader} starts", "the controller works", settled)
            crash = (f"{leader} crashes", "the controller works", settled)
            yield "crash", partial(_Play.crash, left=None), crash
            power = (f"{leader} loses power, and 1 batches", settled, *comes)
            yield "crash", partial(_Play.crash, left=max(0, len(self.log) - 1)), power
            yield "crash", partial(_Play.crash, left=len(self.log)), (*crash, *comes)
            stop = (f"{leader} stops", "the controller works", settled)
            yield "stop", partial(_Play.crash, left=len(self.log), saved=True), (*stop, *comes)
            for one in self.copies:
                hide = (f"{one} crashes", "the controller works")
                yield "hide", partial(_Play.hide, gone=one), hide
        yield "lose", _Play.lose, (f"the next write of {leader} is not answered",)
        for one, other in permutations(self.copies, 2):
            steps = (f"{other} crashes", "the controller works", f"{one} fetches", settled)
            yield "outrun", partial(_Play.outrun, follower=one, gone=other), steps

    def go_on(
        self, counted: str, act: Callable[["_Play"], None], steps: tuple[str, ...]
    ) -> "_Play":
        """Return the tale with one more move."""
        left = {name: n - (name == counted) for name, n in self.left.items()}
        after = replace(self, left=left, steps=(*self.steps, *steps), found=[])
        act(after)
        return after

    def say(self, what: What) -> None:
        """Let the leader say something."""
        self.lines += (self.lines[0]._replace(what=what),)
        self.known = self.known.take(what)

    def happen(self, event: What) -> tuple[What, ...]:
        """Let something happen to the leader; return what it says."""
        moment = LeaderMoment(self.known, event, self.lines)
        self.found.append(moment)
        for what in moment.right:
            if isinstance(what, IsrWrite) and self.unanswered == ASKED:
                self.unanswered = IsrRead(what.isr, what.expected_version + 1)
                self.say(IsrWrite(what.isr, what.expected_version, None))
                return ()
            self.say(what)
        return moment.right

    def look(self) -> None:
        """Let the leader look who keeps up, again after each write."""
        if self.known.is_unsure and self.unanswered is not None:
            self.happen(self.unanswered)
            self.unanswered = None
        look = Evaluate((), 0, None, self.now_ms)
        while any(isinstance(x, IsrWrite) and x.isr_version is not None for x in self.happen(look)):
            pass

    def hear(self, follower: int, mark: int | None = None) -> None:
        """Let a follower begin to follow, or hear that the leader has this mark."""
        known, held = self.known, self.copies[follower].held
        told = known.readings, follower, known.replicas[0], known.epoch, held, self.log
        sent = None if mark is None else Replica(known.end, mark)
        moment = FollowerMoment(*told, known.lead.log_end_offset, sent)
        self.found.append(moment)
        said = moment.right[0]
        assert isinstance(said, Follow | Replica)
        log = (*held.log, *self.log[len(held.log) :])[: said.log_end_offset]
        after = logs.Replica(log, said.high_watermark, known.epoch)
        self.copies = {**self.copies, follower: _Copy(after)}

    def begin(
        self, lead: Lead, leader: int, epoch: int, copies: Mapping[int, logs.Replica]
    ) -> None:
        """Let a broker lead; of the others follows at once who has nothing, the rest ask first."""
        self.known, self.lines = _begin(self.world, lead, leader, epoch, self.now_ms)
        self.found += list_elected(self.known)
        self.copies = {one: _Copy(held, asks=bool(held.log)) for one, held in copies.items()}
        for one, copy in self.copies.items():
            if not copy.asks:
                self.hear(one)
        self.look()

    def produce(self) -> None:
        """Write a record."""
        end = self.known.end + 1
        self.log += (self.known.epoch,)
        self.say(Replica(end, self.known.mark, self.now_ms))
        self.say(Produce(end))
        self.look()

    def fetch(self, follower: int) -> None:
        """Let a follower fetch, and take what it is answered."""
        if self.copies[follower].asks:
            self.hear(follower)
        offset, end = len(self.copies[follower].held.log), self.known.end
        self.happen(Fetch(follower, offset, self.known.epoch, end, self.now_ms))
        self.look()
        self.hear(follower, self.known.mark)

    def wait(self) -> None:
        """Let as much time pass as the leader lets between two looks."""
        self.now_ms += LIMIT_MS // 2
        self.look()

    def consume(self) -> None:
        """Let a consumer come."""
        self.happen(Serve(0))

    def lose(self) -> None:
        """Let the leader have no answer to its next write, which is stored."""
        self.unanswered = ASKED

    def hide(self, gone: int) -> None:
        """Let a follower die, and the leader not hear what the controller has made of that."""
        isr = tuple(one for one in self.known.isr if one != gone)
        self.known = replace(self.known, stored=IsrRead(isr, self.known.version + 1))
        self.copies = {one: copy for one, copy in self.copies.items() if one != gone}
        self.left = {name: n * (name == "wait") for name, n in self.left.items()}

    def outrun(self, follower: int, gone: int) -> None:
        """Let a follower die, and a request of another arrive after the leader has heard of it."""
        old, held = self.known, self.copies[follower].held
        isr = tuple(one for one in old.isr if one != gone)
        lead = Lead(old.end, old.mark, tuple(sorted(old.replicas)), isr, old.version + 1)
        self.begin(lead, old.replicas[0], old.epoch + 1, {follower: held})
        self.happen(Fetch(follower, len(held.log), old.epoch, time_ms=self.now_ms))

    def crash(self, left: int | None, *, saved: bool = False) -> None:
        """Let the leader die, and who is in sync lead; it may come back with so much of its log.

        Its mark is `saved` where it ends in order.
        """
        old, gone = self.known, self.known.replicas[0]
        new = next(one for one in sorted(self.copies) if one in old.isr)
        isr = tuple(one for one in old.isr if one != gone)
        copies = {one: each.held for one, each in self.copies.items()}
        leads = copies.pop(new)
        if left is not None:
            kept, mark = self.log[:left], (old.mark or None) if saved else None
            self.found.append(RestoredMoment(old.readings, gone, old.mark, mark, left))
            restored = logs.restore_mark(mark, left)
            copies[gone] = logs.Replica(kept, restored, kept[-1] if kept else 0)
        end, mark, self.log = len(leads.log), leads.high_watermark, leads.log
        lead = Lead(end, mark, tuple(sorted(old.replicas)), isr, old.version + 1)
        self.begin(lead, new, old.epoch + 1, copies)


def _begin(
    world: LeaderWorld, said: Lead, broker: int, epoch: int, now_ms: int
) -> tuple[Known, tuple[Observation, ...]]:
    """Return what a broker knows that begins to lead, and its first line."""
    said = said._replace(lag_ms_max=LIMIT_MS, time_ms=now_ms)
    line = Observation(f"broker-{broker}", 0, 0, "", "t", 0, broker, 1, epoch, said)
    known = begin(line, said, world.readings)
    assert known is not None  # it says all
    return known, (line,)


def explore(
    world: LeaderWorld, _reference: WordRules, _moves: object, *, calm: bool
) -> Iterator[FoundMoment]:
    """Yield every moment that right brokers come to in a world, the nearest first."""
    heading, replicas = (world.heading,), (1, *world.followers)
    lead = Lead(0, 0, replicas, replicas, 0)
    play = _Play(world, *_begin(world, lead, 1, 0, BEGINS_MS), (), {}, world.limits, heading)
    play.begin(lead, 1, 0, dict.fromkeys(world.followers, logs.Replica()))
    yield from (FoundMoment(moment, play.steps) for moment in play.found)
    queue, seen = [play], {play.key}
    for play in queue:  # it grows
        for counted, act, steps in play.list_moves():
            if play.left.get(counted, not counted):
                after = play.go_on(counted, act, steps)
                yield from (FoundMoment(moment, after.steps) for moment in after.found)
                if after.key not in seen:
                    seen.add(after.key)
                    queue.append(after)
