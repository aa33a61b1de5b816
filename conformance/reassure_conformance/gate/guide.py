"""The guide: which step to take next, weighted towards what has not been seen yet.

The guide lists the kinds of step that are possible, each with a weight, and makes a step of
the kind that is drawn. It knows nothing of where numbers come from: `draw(n)` gives one from 0 to
n - 1, by Hypothesis in a run and by anything else in a test. Zero is always the plainest choice,
so that what shrinks towards zero shrinks towards a plain story.

Everything here is a function of the moment and of `wanted` (the clauses that nothing has put
to the test yet), which stays the same within one batch of examples: the same draws make the same
story.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import permutations
from typing import Final

from reassure_conformance.adapter import ADMIN, ISR, REQUESTS
from reassure_conformance.gate import steps as s
from reassure_conformance.gate.aims import Draw
from reassure_conformance.gate.malformed_znodes import (
    FOREIGN_KINDS,
    OLD_KINDS,
    RAW_KINDS,
    TOO_LARGE,
)
from reassure_conformance.gate.moment import ClusterMoment, why_not
from reassure_spec.znodes import LegacyEntry, PartitionKey, ReplicaList

TOPICS: Final = ("orders", "events", "audit")
NO_BROKER: Final = 99
NO_TOPIC: Final = "nowhere"
MOST_PARTITIONS: Final = 4
BOOST: Final = 6
"""How much more often a kind is drawn that touches a clause which is still wanted."""


@dataclass(frozen=True, slots=True)
class StepChoice:
    """One kind of step that is possible now."""

    name: str
    weight: int
    make: Callable[[Draw], s.ClusterStep]


@cache
def _lists_of(brokers: ReplicaList, longest: int) -> tuple[ReplicaList, ...]:
    """Return the replica lists over these brokers, short ones first."""
    return tuple(
        replicas
        for length in range(1, min(longest, len(brokers)) + 1)
        for replicas in permutations(brokers, length)
    )


def _pick_target(now: ClusterMoment, draw: Draw) -> ReplicaList:
    lists = _lists_of(now.brokers, 3)
    return lists[draw(len(lists))]


def _make_topic(now: ClusterMoment, draw: Draw) -> s.ClusterStep:
    used = {topic for topic, _ in now.existing()}
    name = next(topic for topic in TOPICS if topic not in used)
    # Two replicas are the plainest topic on which anything can go wrong.
    lists = sorted(_lists_of(now.brokers, 3), key=lambda r: (len(r) != 2, len(r)))
    first = lists[draw(len(lists))]
    second = draw(3) == 2
    assignments = (first, lists[draw(len(lists))]) if second else (first,)
    smallest = 1 + draw(3) if draw(3) == 2 else 1
    return s.CreateTopic(name, assignments, smallest)


def _make_request(now: ClusterMoment, draw: Draw, keys: tuple[PartitionKey, ...]) -> s.Request:
    """Ask for one partition, or now and then for several at once."""
    first = draw(len(keys))
    chosen = [keys[first]]
    if len(keys) > 1 and draw(3) == 2:
        chosen.append(keys[(first + 1) % len(keys)])
    targets = tuple((key, _pick_target(now, draw)) for key in chosen)
    # Where the old znode is translated, only the controller may say that a request is legacy.
    return s.Request(
        targets, legacy=draw(20) == 19 and not (now.old_znode or now.lacks_route(REQUESTS))
    )


def _make_change(now: ClusterMoment, draw: Draw, keys: tuple[PartitionKey, ...]) -> s.ClusterStep:
    return s.Change(keys[draw(len(keys))], _pick_target(now, draw))


def _make_burst(now: ClusterMoment, draw: Draw) -> s.ClusterStep:
    keys = now.existing()
    key = keys[draw(len(keys))]
    count = 2 + draw(2)
    return s.Burst(tuple(s.Request(((key, _pick_target(now, draw)),)) for _ in range(count)))


def _make_many(now: ClusterMoment, draw: Draw) -> s.ClusterStep:
    """Make so many requests that the order of names and of numbers could part ways."""
    keys = now.existing()
    key = keys[draw(len(keys))]
    pair = (_pick_target(now, draw), _pick_target(now, draw))
    return s.Burst(tuple(s.Request(((key, pair[i % 2]),)) for i in range(6)))


def _make_growth(now: ClusterMoment, draw: Draw) -> s.ClusterStep:
    topics = sorted({topic for topic, _ in now.existing()})
    return s.Grow(topics[draw(len(topics))], (_pick_target(now, draw),))


def _make_minimum(now: ClusterMoment, draw: Draw) -> s.ClusterStep:
    topics = ("", *sorted({topic for topic, _ in now.existing()}))
    return s.SetMinIsr(topics[draw(len(topics))], 1 + draw(3))


def _make_unclean(now: ClusterMoment, draw: Draw) -> s.ClusterStep:
    topics = ("", *sorted({topic for topic, _ in now.existing()}))
    return s.SetUnclean(topics[draw(len(topics))], bool(draw(2)))


def _make_bad_target(now: ClusterMoment, draw: Draw, keys: tuple[PartitionKey, ...]) -> s.Request:
    key = keys[draw(len(keys))]
    good = _pick_target(now, draw)
    bad: tuple[tuple[PartitionKey, ReplicaList], ...] = (
        (key, ()),
        (key, (good[0], good[0])),
        (key, (good[0], -1)),
        (key, (good[0], NO_BROKER)),
        (("nowhere", 0), good),
        ((key[0], 77), good),
        (key, now.view.partitions[key].assigned or ()),
    )
    targets = [bad[draw(len(bad))]]
    others = [other for other in keys if other != targets[0][0]]
    if others and draw(2):
        targets.append((others[0], _pick_target(now, draw)))
    return s.Request(tuple(targets))


def _make_old_znode(
    now: ClusterMoment, draw: Draw, keys: tuple[PartitionKey, ...]
) -> s.ClusterStep:
    """Ask by the old znode for one partition or more, or now and then for what is refused."""
    if draw(8) == 7:
        kinds = tuple(OLD_KINDS)
        return s.RawOld(kinds[draw(len(kinds))])
    make = _make_bad_target if draw(8) == 7 else _make_request
    entries = []
    for key, target in make(now, draw, keys).targets:
        partition = now.view.partitions.get(key)
        original = partition.assigned if partition is not None and draw(4) == 3 else None
        entries.append(LegacyEntry(key, target, original))
    return s.WriteOld(tuple(entries))


def _make_raw(draw: Draw) -> s.ClusterStep:
    kinds = tuple(RAW_KINDS)
    return s.RawRequest(kinds[draw(len(kinds))])


def _make_of(steps: tuple[s.ClusterStep, ...]) -> Callable[[Draw], s.ClusterStep]:
    return lambda draw: steps[draw(len(steps))]


def _in_flight_joins(now: ClusterMoment) -> tuple[s.ClusterStep, ...]:
    """Return the joins that bring a reassignment nearer to its end."""
    found = []
    for broker, key in now.joinable():
        reassignment = now.view.partitions[key].reassignment
        if reassignment is not None and broker in reassignment.target:
            found.append(s.Join(broker, key))
    return tuple(found)


def _possible(now: ClusterMoment, steps: Iterator[s.ClusterStep]) -> tuple[s.ClusterStep, ...]:
    return tuple(step for step in steps if not why_not(step, now))


def _client_choices(now: ClusterMoment) -> Iterator[StepChoice]:
    keys = now.existing()
    topics = {topic for topic, _ in keys}
    if len(topics) < 2:
        yield StepChoice("create", 100 if not topics else 2, lambda d: _make_topic(now, d))
    if keys:
        flying = now.in_flight()
        asks = not now.lacks_route(REQUESTS, ADMIN)
        if now.requests and asks:
            yield StepChoice("request", 6 if flying else 20, lambda d: _make_request(now, d, keys))
        if flying and now.requests:
            changeable = tuple(key for key in flying if not why_not(s.Cancel(key), now))
            if changeable:
                yield StepChoice("change", 16, lambda d: _make_change(now, d, changeable))
                yield StepChoice("cancel", 6, _make_of(tuple(map(s.Cancel, changeable))))
        if now.requests and asks:
            yield StepChoice("burst", 2, lambda d: _make_burst(now, d))
            yield StepChoice("many", 1, lambda d: _make_many(now, d))
        if len(keys) < MOST_PARTITIONS:
            yield StepChoice("grow", 2, lambda d: _make_growth(now, d))
        if not why_not(s.SetMinIsr("", 1), now):
            yield StepChoice("minimum", 2, lambda d: _make_minimum(now, d))
        yield StepChoice("unclean", 1, lambda d: _make_unclean(now, d))
        if now.requests and asks:
            yield StepChoice("bad-target", 3, lambda d: _make_bad_target(now, d, keys))
        if not why_not(s.DeleteOld(), now):
            yield StepChoice("old-znode", 12, lambda d: _make_old_znode(now, d, keys))
            yield StepChoice("old-znode-gone", 2, _make_of((s.DeleteOld(),)))
        if now.healing:
            yield StepChoice("task", 3, lambda d: s.SubmitTask(_make_request(now, d, keys).targets))
    yield from _served_choices(now)
    if not why_not(s.Withdraw(), now):
        yield StepChoice("withdraw", 3, _make_of((s.Withdraw(),)))
        if keys:
            yield StepChoice("rewrite", 3, lambda d: s.Rewrite(_make_request(now, d, keys).targets))
    if now.requests and not now.lacks_route(REQUESTS):
        yield StepChoice("raw", 1, _make_raw)
        yield StepChoice("too-large", 1, _make_of((s.RawRequest(TOO_LARGE),)))
    foreign = _possible(now, (s.Foreign(kind) for kind in FOREIGN_KINDS))
    if foreign:
        yield StepChoice("foreign", 1, _make_of(foreign))


def _served_choices(now: ClusterMoment) -> Iterator[StepChoice]:
    """Yield what clients ask that not every implementation serves."""
    topics = sorted({topic for topic, _ in now.existing()})
    deletions = _possible(now, (s.DeleteTopic(topic) for topic in topics))
    if deletions:
        yield StepChoice("delete", 2, _make_of(deletions))
    if not why_not(s.DeleteTopic(NO_TOPIC), now):
        yield StepChoice("delete-unknown", 1, _make_of((s.DeleteTopic(NO_TOPIC),)))
    if topics and not why_not(s.Prefer(), now):
        yield StepChoice("prefer", 2, _make_of((s.Prefer(),)))


def _broker_choices(now: ClusterMoment) -> Iterator[StepChoice]:
    # What can join and leave is what the rules would allow; asking them one by one is slow.
    able = ISR in now.capabilities
    wanted_joins = _in_flight_joins(now) if able else ()
    joins = tuple(s.Join(*pair) for pair in now.joinable()) if able else ()
    leaves = tuple(s.Leave(*pair) for pair in now.leavable()) if able else ()
    deaths = _possible(now, (s.Die(broker) for broker in now.brokers))
    returns = _possible(now, (s.Return(broker) for broker in now.brokers))
    if wanted_joins:
        yield StepChoice("join-target", 20, _make_of(wanted_joins))
    if joins:
        yield StepChoice("join", 2, _make_of(joins))
    strangers = tuple(s.Intrude(*pair) for pair in now.intrudable()) if able else ()
    if strangers:
        yield StepChoice("stranger", 2, _make_of(strangers))
    if leaves:
        yield StepChoice("leave", 4, _make_of(leaves))
    if deaths and now.existing():
        yield StepChoice("die", 4, _make_of(deaths))
    shutdowns = _possible(now, (s.ShutDown(broker) for broker in now.brokers))
    if shutdowns and now.existing():
        yield StepChoice("shut-down", 2, _make_of(shutdowns))
    if returns:
        yield StepChoice("return", 5, _make_of(returns))


def _controller_choices(now: ClusterMoment) -> Iterator[StepChoice]:
    busy = 8 if now.existing() else 1
    weights: tuple[tuple[s.ClusterStep, int], ...] = (
        (s.Resume(), 8 if now.held else 4),
        (s.Kill(), 8 if now.held else 2),
        (s.Elect(), 20),
        (s.Depose(), 3 if now.held else 1),
        (s.Expire(), 5 if now.held else 1),
        (s.Cut(), 1),
    )
    if not why_not(s.Hold(0), now):
        yield StepChoice("hold", busy, lambda d: s.Hold(d(12)))
    interval = now.failure_interval_ms
    if not why_not(s.Tick(interval), now):
        passes = _make_of((s.Tick(interval), s.Tick(interval // 2)))
        yield StepChoice("clock", 12 if len(now.up) < len(now.brokers) else 2, passes)
    if now.existing() and not why_not(s.Lose(0, done=True), now):
        yield StepChoice("lose", 2, lambda d: s.Lose(d(6), done=not d(2)))
    for step, weight in weights:
        if not why_not(step, now):
            yield StepChoice(str(step).split()[0], weight, _make_of((step,)))


TOUCHES: Final[dict[str, tuple[str, ...]]] = {
    "create": ("partition.new.",),
    "request": ("expand.", "child.", "top.", "target."),
    "change": ("drop.", "child.update", "top.once", "request.same-target"),
    "cancel": ("drop.", "child.update"),
    "burst": ("request.order", "request.consumed"),
    "many": ("request.order",),
    "bad-target": ("request.refuse.", "request.no-op", "target.at-least"),
    "minimum": ("top.at-least", "target.at-least"),
    "rewrite": ("request.delete", "request.order"),
    "raw": ("request.refuse.malformed",),
    "too-large": ("request.refuse.too-large",),
    "old-znode": ("legacy.",),
    "foreign": ("request.foreign", "child.foreign"),
    "join-target": ("complete.", "isr.change."),
    "leave": ("isr.change.",),
    "die": ("election.", "isr.remove.dead", "leader.", "isr.never-empty"),
    "return": ("election.", "partition.", "leader."),
    "task": ("heal.task.", "heal.cancel."),
    "clock": ("heal.",),
    "kill": ("controller.", "top.once"),
    "expire": ("controller.",),
    "hold": ("controller.", "child."),
    "delete": ("topic.delete.", "act.deletion", "shipped.delete."),
    "delete-unknown": ("topic.delete.unknown",),
    "prefer": ("act.preferred",),
    "shut-down": ("act.shutdown", "act.controlled"),
}
"""The beginnings of the clause ids that a kind of step is likely to put to the test."""


def list_choices(now: ClusterMoment, wanted: frozenset[str]) -> tuple[StepChoice, ...]:
    """Return the kinds of step that are possible now, boosted where a wanted clause is near."""
    choices = (*_client_choices(now), *_broker_choices(now), *_controller_choices(now))
    boosted = _list_boosted(wanted)
    return tuple(
        StepChoice(choice.name, choice.weight * BOOST, choice.make)
        if choice.name in boosted
        else choice
        for choice in choices
    )


@lru_cache(maxsize=1)  # the clauses that are wanted stay the same within a batch
def _list_boosted(wanted: frozenset[str]) -> frozenset[str]:
    """Return the kinds of step that touch a clause which is wanted."""
    return frozenset(
        name for name, starts in TOUCHES.items() if any(c.startswith(starts) for c in wanted)
    )


def next_step(now: ClusterMoment, wanted: frozenset[str], draw: Draw) -> s.ClusterStep:
    """Draw one possible step."""
    choices = list_choices(now, wanted)
    place = draw(sum(choice.weight for choice in choices))
    for choice in choices:
        if place < choice.weight:
            return choice.make(draw)
        place -= choice.weight
    raise AssertionError("the draw lies beyond the sum of the weights")
