"""The worlds of KAFKA-4485: a leader and two followers, as the tales of the gate bring them about.

Everything arrives at once and in order: what is looked for is what a leader says, not what a
network does. Broker 1 leads; where it crashes, who comes first of the in-sync set does.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import permutations
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from reassure_judge.observed import judge as observed_judge
from reassure_judge.protocols.kafka_4485 import contents, lags, leading, partition, terms
from reassure_mutation.protocols.kafka_4485 import leader_words
from reassure_mutation.protocols.kafka_4485.leader_words import (
    Known,
    LeaderMoment,
    Leaders,
    begin,
)
from reassure_spec.observations import (
    Evaluate,
    Fetch,
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
READINGS: Final = override_readings(get_profile(PROFILE), SHIPPED)
MADE_FROM: Final = (leader_words, lags, leading, partition, terms, contents, observed_judge)
"""What decides besides the rules what can be killed."""


def make_reference(_profile: str) -> Leaders:
    """Return the rules of a leader."""
    return Leaders()


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
)


@dataclass(frozen=True, slots=True)
class FoundMoment:
    """A moment, and the tale that leads there."""

    situation: LeaderMoment
    steps: tuple[str, ...]
    interrupts: bool = False

    def list_steps(self) -> tuple[str, ...]:
        """Return the tale, its heading first."""
        return self.steps


class _Copy(NamedTuple):
    """What a follower has."""

    end: int = 0
    mark: int = 0
    asks: bool = False
    """Whether it has to ask first where its log parts from the leader's."""


@dataclass(slots=True)
class _Play:
    """A tale, as it is told."""

    world: LeaderWorld
    known: Known
    lines: tuple[Observation, ...]
    copies: Mapping[int, _Copy]
    left: Mapping[str, int]
    steps: tuple[str, ...]
    now_ms: int = BEGINS_MS
    found: list[LeaderMoment] = field(default_factory=list)
    """The moments of the last step."""

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells it from others: not how it came about."""
        copies, left = tuple(self.copies.items()), tuple(self.left.values())
        return self.known, copies, self.now_ms, left

    def list_moves(self) -> Iterator[tuple[str, Callable[["_Play"], None], tuple[str, ...]]]:
        """Yield what can be done: what it is counted as, what it does, and its steps."""
        leader, settled = self.known.replicas[0], "deliver all"
        produce = (f"produce 1 with acks -1 to {leader}", settled)
        yield "produce", _Play.produce, produce
        for one, copy in self.copies.items():
            step = f"{one} fetches and is answered"
            yield "fetch", partial(_Play.fetch, follower=one), (step,) * (1 + copy.asks)
        yield "wait", _Play.wait, (f"wait {LIMIT_MS // 2} ms",)
        if "crash" in self.left:
            yield "", _Play.consume, (f"consume from {leader}", settled)
        if any(one in self.known.isr for one in self.copies):
            comes = (f"{leader} starts", "the controller works", settled)
            crash = (f"{leader} crashes", "the controller works", settled)
            yield "crash", partial(_Play.crash, left=None), crash
            power = (f"{leader} loses power, and 1 batches", settled, *comes)
            yield "crash", partial(_Play.crash, left=max(0, self.known.end - 1)), power
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
        moment = LeaderMoment.make(self.known, event, self.lines)
        self.found.append(moment)
        for what in moment.right:
            self.say(what)
        return moment.right

    def look(self) -> None:
        """Let the leader look who keeps up, again after each write."""
        while any(isinstance(x, IsrWrite) for x in self.happen(Evaluate((), 0, None, self.now_ms))):
            pass

    def produce(self) -> None:
        """Write a record."""
        end = self.known.end + 1
        self.say(Replica(end, self.known.mark, self.now_ms))
        self.say(Produce(end))
        self.look()

    def fetch(self, follower: int) -> None:
        """Let a follower fetch, and take what it is answered."""
        copy, end = self.copies[follower], self.known.end
        self.happen(Fetch(follower, copy.end, self.known.epoch, end, self.now_ms))
        self.look()
        mark = max(copy.mark, min(self.known.mark, end))
        self.copies = {**self.copies, follower: _Copy(end, mark)}

    def wait(self) -> None:
        """Let as much time pass as the leader lets between two looks."""
        self.now_ms += LIMIT_MS // 2
        self.look()

    def consume(self) -> None:
        """Let a consumer come."""
        self.happen(Serve(0))

    def outrun(self, follower: int, gone: int) -> None:
        """Let a follower die, and a request of another arrive after the leader has heard of it."""
        old, copy = self.known, self.copies[follower]
        self.copies = {follower: copy._replace(asks=copy.end > 0)}
        isr = tuple(one for one in old.isr if one != gone)
        lead = Lead(old.end, old.mark, tuple(sorted(old.replicas)), isr, old.version + 1)
        leader, epoch = old.replicas[0], old.epoch
        self.known, self.lines = _begin(self.world, lead, leader, epoch + 1, self.now_ms)
        self.look()
        self.happen(Fetch(follower, copy.end, epoch, time_ms=self.now_ms))

    def crash(self, left: int | None) -> None:
        """Let the leader die, and who is in sync lead; it may come back with so much of its log."""
        old, gone = self.known, self.known.replicas[0]
        new = next(one for one in sorted(self.copies) if one in old.isr)
        copy, isr = self.copies[new], tuple(one for one in old.isr if one != gone)
        others = {gone: _Copy(left or 0)} if left is not None else {}
        others |= {one: each for one, each in self.copies.items() if one != new}
        self.copies = {
            one: _Copy(end := min(each.end, copy.end), min(each.mark, end), end > 0)
            for one, each in others.items()
        }
        replicas = tuple(sorted(old.replicas))
        lead = Lead(copy.end, copy.mark, replicas, isr, old.version + 1)
        self.known, self.lines = _begin(self.world, lead, new, old.epoch + 1, self.now_ms)
        self.look()


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
    world: LeaderWorld, _reference: Leaders, _moves: object, *, calm: bool
) -> Iterator[FoundMoment]:
    """Yield every moment that a right leader comes to in a world, the nearest first."""
    copies = dict.fromkeys(world.followers, _Copy())
    heading, replicas = (world.heading,), (1, *world.followers)
    lead = Lead(0, 0, replicas, replicas, 0)
    play = _Play(world, *_begin(world, lead, 1, 0, BEGINS_MS), copies, world.limits, heading)
    play.look()
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
