"""The old znode in the gate: what has to come up around it, how it is told, and how to get there.

What stands in the znode is not part of what the judge shows of a cluster, so a recogniser goes by
the steps of the client that writes it, and by whether what is in flight came by it.
"""

from collections.abc import Callable, Iterator
from typing import Final

from reassure_conformance.adapter import HOLD, ISR, KILL
from reassure_conformance.gate import approaches as by
from reassure_conformance.gate import steps as s
from reassure_conformance.gate.events import CoverageGoal, History, iterate_failovers, iterate_steps
from reassure_conformance.gate.moment import ClusterMoment
from reassure_judge.live_events import ClusterView, Wrote
from reassure_spec.znodes import REASSIGN_PARTITIONS, LegacyEntry, PartitionKey, ReplicaList
from reassure_zookeeper.transactions import Create, Delete

# -- how each is recognised


def _find_flights(view: ClusterView, *, legacy: bool) -> dict[PartitionKey, ReplicaList]:
    """Return the targets in flight that came by one of the routes."""
    flights = ((key, p.reassignment) for key, p in view.partitions.items())
    return {key: f.target for key, f in flights if f is not None and f.legacy is legacy}


def _count_steps(
    history: History,
    counts: Callable[[s.ClusterStep, dict[PartitionKey, ReplicaList]], bool],
    *,
    legacy: bool = True,
) -> int:
    """Count the steps that count, given what was in flight by one of the routes before them."""
    return sum(
        counts(step, _find_flights(view, legacy=legacy)) for step, view in iterate_steps(history)
    )


def _is_deleted(step: s.ClusterStep, flights: dict[PartitionKey, ReplicaList]) -> bool:
    return isinstance(step, s.DeleteOld) and bool(flights)


def _is_overwritten(step: s.ClusterStep, flights: dict[PartitionKey, ReplicaList]) -> bool:
    """Whether a client asks for another target where one is in flight."""
    asked = step.entries if isinstance(step, s.WriteOld) else ()
    return any(flights.get(entry.key, entry.target) != entry.target for entry in asked)


def _is_rolled_back(step: s.ClusterStep, flights: dict[PartitionKey, ReplicaList]) -> bool:
    """Whether a client asks for the original replicas of what is in flight."""
    asked = step.entries if isinstance(step, s.WriteOld) else ()
    return any(entry.key in flights and entry.target == entry.original for entry in asked)


def _is_requested(step: s.ClusterStep, flights: dict[PartitionKey, ReplicaList]) -> bool:
    """Whether a client asks by a request for what moves by the old znode."""
    return isinstance(step, s.Request) and any(key in flights for key, _ in step.targets)


def _is_entered(step: s.ClusterStep, flights: dict[PartitionKey, ReplicaList]) -> bool:
    """Whether a client asks by the old znode for what moves by a request."""
    return isinstance(step, s.WriteOld) and any(entry.key in flights for entry in step.entries)


def _find_heirs(history: History) -> Iterator[Wrote]:
    """Yield the elections, but the first, at which the old znode is there."""
    made = [
        (place, isinstance(op, Create))
        for place, event in enumerate(history)
        if isinstance(event, Wrote)
        for op in event.transaction.ops
        if isinstance(op, Create | Delete) and op.path.endswith(REASSIGN_PARTITIONS)
    ]
    for place, wrote in iterate_failovers(history):
        if next((there for at, there in reversed(made) if at < place), False):
            yield wrote


def _count_queues_found(history: History) -> int:
    return sum(bool(wrote.before.requests) for wrote in _find_heirs(history))


def _count_translated_before(history: History) -> int:
    return sum(bool(_find_flights(w.before, legacy=True)) for w in _find_heirs(history))


# -- how to get there


def _ask(
    now: ClusterMoment, draw: by.Draw, *, original: bool = False, other: ReplicaList = ()
) -> s.WriteOld:
    """Ask by the old znode for a target with a replica that is not assigned."""
    assigned = by.get_assigned(now)
    new = by.pick_others(now, draw, (*assigned, *other))
    target = (*new, *assigned[:1]) if draw(2) or not new else new
    return s.WriteOld((LegacyEntry(by.KEY, target, assigned if original else None),))


def reach_deletion(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Delete the old znode while what came by it is in flight."""
    yield by.create(now, draw, 2)
    yield _ask(now, draw)
    yield s.DeleteOld()
    if KILL in now.capabilities and draw(2):
        yield from by.fail_over(draw)
        yield s.Resume()
    yield from by.catch_up(now)


def reach_overwriting(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Write another target into the old znode before the first one is reached."""
    yield by.create(now, draw, 2)
    first = _ask(now, draw)
    yield first
    if HOLD in now.capabilities and draw(2):
        yield s.Hold(draw(10))
        yield from by.catch_up(now)
    yield _ask(now, draw, other=first.entries[0].target)
    yield s.Resume()
    yield from by.catch_up(now)


def reach_rollback(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Ask for the original replicas by a znode that is made anew."""
    yield by.create(now, draw, 2)
    first = by.get_assigned(now)
    yield _ask(now, draw, original=True)
    if draw(2):
        yield s.DeleteOld()
    elif KILL in now.capabilities:
        yield s.Kill()
    yield s.WriteOld((LegacyEntry(by.KEY, first, first),))
    yield s.Elect()
    yield from by.catch_up(now)


def reach_request(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Ask by a request for what moves by the old znode."""
    yield by.create(now, draw, 2)
    yield _ask(now, draw)
    if KILL in now.capabilities and draw(2):
        yield s.Kill()
    yield s.Request(((by.KEY, by.pick(now, draw, 2)),))
    yield s.Elect()
    yield from by.catch_up(now)


def reach_entry(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Ask by the old znode for what moves by a request, and perhaps for another partition."""
    yield by.create(now, draw, 2, partitions=2)
    yield s.Request(((by.KEY, by.pick_others(now, draw, by.get_assigned(now))),))
    if KILL in now.capabilities and draw(2):
        yield s.Kill()
    other = (by.TOPIC, 1)
    beside = (LegacyEntry(other, by.pick(now, draw, 2)),) if draw(2) else ()
    yield s.WriteOld((*_ask(now, draw).entries, *beside))
    yield s.Elect()
    yield from by.catch_up(now, by.KEY, other)


def reach_queue_found(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Leave a request and the old znode for a new controller."""
    yield by.create(now, draw, 2, partitions=2)
    yield s.Kill()
    other = (by.TOPIC, 1)
    yield _ask(now, draw)
    key = by.KEY if draw(2) else other
    yield s.Request(((key, by.pick(now, draw, 2)),))
    yield s.Elect()
    yield from by.catch_up(now, by.KEY, other)


def reach_translation_again(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Let the controller die between the translation of an entry and its removal."""
    yield by.create(now, draw, 2)
    held = HOLD in now.capabilities and bool(draw(2))
    if held:
        yield s.Hold(1 + draw(6))
    yield _ask(now, draw)
    if draw(2):
        yield from by.catch_up(now)
    yield from by.fail_over(draw)
    yield s.Resume()
    yield from by.catch_up(now)


# -- the list


SITUATIONS: Final = (
    CoverageGoal(
        "old-znode-gone",
        "A client deletes the old znode while what it asked for is in flight.",
        ("legacy.znode.delete-does-not-cancel",),
        lambda history: _count_steps(history, _is_deleted),
        reach_deletion,
    ),
    CoverageGoal(
        "old-znode-overwritten",
        "A client asks by the old znode for another target while the first is in flight.",
        ("legacy.entry.matching-target", "legacy.entry.removed-when-done"),
        lambda history: _count_steps(history, _is_overwritten),
        reach_overwriting,
        frozenset({ISR}),
    ),
    CoverageGoal(
        "old-znode-rolled-back",
        "A client asks by the old znode for the original replicas of what is in flight.",
        ("legacy.original.rollback",),
        lambda history: _count_steps(history, _is_rolled_back),
        reach_rollback,
    ),
    CoverageGoal(
        "requested-under-an-entry",
        "A client asks by a request for what moves by the old znode.",
        ("legacy.conflict.both-ways",),
        lambda history: _count_steps(history, _is_requested),
        reach_request,
    ),
    CoverageGoal(
        "entered-under-a-request",
        "A client asks by the old znode for what moves by a request.",
        ("legacy.conflict.both-ways", "legacy.entry.refused-removed"),
        lambda history: _count_steps(history, _is_entered, legacy=False),
        reach_entry,
    ),
    CoverageGoal(
        "queue-and-old-znode-found",
        "A new controller finds requests and an old znode.",
        ("legacy.failover.sources-in-order",),
        _count_queues_found,
        reach_queue_found,
        frozenset({KILL}),
    ),
    CoverageGoal(
        "translated-before",
        "A controller dies when an entry of the old znode was translated and is there still.",
        ("legacy.failover.translated-again", "legacy.failover.half-done"),
        _count_translated_before,
        reach_translation_again,
        frozenset({KILL}),
    ),
)
"""What has to come up where the old znode is translated."""
