"""The first reassignment in the gate: what nobody can be asked, what has to come up, and how."""

from collections.abc import Callable, Iterator
from typing import Final

from reassure_conformance.adapter import BROKERS, HOLD, ISR, KILL
from reassure_conformance.gate import approaches as by
from reassure_conformance.gate import steps as s
from reassure_conformance.gate.events import (
    CoverageGoal,
    History,
    iterate_failovers,
    iterate_steps,
    iterate_writes,
)
from reassure_conformance.gate.moment import ClusterMoment
from reassure_judge.live_events import ClusterView
from reassure_judge.protocols.kafka_42.monitor import is_found
from reassure_model.partition import Partition
from reassure_spec.znodes import LegacyEntry, ReplicaList

_NOTHING: Final = Partition()

# -- how each situation is recognised


def _count_completions(history: History) -> int:
    """Count moves that ended with somebody new in the place of somebody old."""
    found = 0
    for _, wrote in iterate_writes(history):
        for key, before in wrote.before.partitions.items():
            after = wrote.after.partitions.get(key)
            if after is None or before.reassignment is None or not wrote.is_fenced:
                continue
            old, new = set(before.assigned or ()), set(after.assigned or ())
            found += after.assigned == before.reassignment.target and bool(old - new)
    return found


def _iterate_flights(history: History) -> Iterator[tuple[Partition, ReplicaList, frozenset[int]]]:
    """Yield what elections find in flight: a partition, its target, and who lives."""
    for _, wrote in iterate_failovers(history):
        for partition in wrote.after.partitions.values():
            if partition.reassignment is not None:
                yield partition, partition.reassignment.target, wrote.after.live


def _count_heirs(history: History) -> int:
    """Count elections at which a target is in flight that is not in sync."""
    return sum(
        p.state is not None and not set(target) <= set(p.state.isr)
        for p, target, _ in _iterate_flights(history)
    )


def _count_found(history: History) -> int:
    """Count elections that find a target in sync of whom somebody has died."""
    return sum(is_found(*each) for each in _iterate_flights(history))


def _count_kept_leaders(history: History) -> int:
    """Count elections of a controller that find a live replica of a target in sync in the lead."""
    return sum(
        p.state is not None and p.state.leader in {*target} & live and {*target} <= {*p.state.isr}
        for p, target, live in _iterate_flights(history)
    )


def _count_asked(history: History, counts: Callable[[s.ClusterStep, ClusterView], bool]) -> int:
    """Count the steps of clients that count, given what ZooKeeper held before them."""
    return sum(counts(step, view) for step, view in iterate_steps(history))


def _is_overwritten(step: s.ClusterStep, view: ClusterView) -> bool:
    """Whether a client asks for another target where one is in flight."""
    flights = {key: p.reassignment for key, p in view.partitions.items()}
    asked = step.entries if isinstance(step, s.WriteOld) else ()
    return any(
        (flight := flights.get(entry.key)) is not None and flight.target != entry.target
        for entry in asked
    )


def _is_interrupted(step: s.ClusterStep, view: ClusterView) -> bool:
    flights = [p for p in view.partitions.values() if p.reassignment is not None]
    return isinstance(step, s.DeleteOld) and bool(flights)


def _asks_nothing(step: s.ClusterStep, view: ClusterView) -> bool:
    asked = step.entries if isinstance(step, s.WriteOld) else ()
    found = ((view.partitions.get(entry.key, _NOTHING), entry.target) for entry in asked)
    return any(p.reassignment is None and p.assigned == target for p, target in found)


def _asks_for_the_dead(step: s.ClusterStep, view: ClusterView) -> bool:
    asked = step.entries if isinstance(step, s.WriteOld) else ()
    return any(
        entry.key in view.partitions and not view.live.issuperset(entry.target) for entry in asked
    )


def _count_last_resorts(history: History) -> int:
    """Count leaders' deaths at which nobody who is in sync and assigned is left alive."""
    found = 0
    for _, wrote in iterate_writes(history):
        live = wrote.before.live
        for key, before in wrote.before.partitions.items():
            after = wrote.after.partitions.get(key)
            old, new = before.state, None if after is None else after.state
            if old is None or new is None or not wrote.is_fenced:
                continue
            lost = old.leader not in live and old.leader != new.leader
            assigned = set(before.assigned or ())
            found += lost and bool(assigned & live) and not assigned & live & set(old.isr)
    return found


# -- how to get there


def ask(
    now: ClusterMoment, draw: by.Draw, *, than: ReplicaList = (), keep: bool = True
) -> s.WriteOld:
    """Ask for a target with a replica that is not assigned, and none of these."""
    assigned = by.get_assigned(now)
    new = by.pick_others(now, draw, (*assigned, *than), 1 + draw(2))
    kept = assigned[draw(len(assigned))] if keep and draw(2) else None
    return s.WriteOld((LegacyEntry(by.KEY, new if kept is None else (*new, kept)),))


def _join(now: ClusterMoment, target: ReplicaList) -> Iterator[s.ClusterStep]:
    for replica in target:
        if (replica, by.KEY) in now.joinable():
            yield s.Join(replica, by.KEY)


def reach_move(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Move a partition, perhaps with others beside it or a topic that grows."""
    yield by.create(now, draw, 2, partitions=1 + draw(2))
    first = ask(now, draw)
    beside = (LegacyEntry((by.TOPIC, 1), by.pick(now, draw, 2)),) if draw(2) else ()
    yield s.WriteOld((*first.entries, *beside))
    if draw(2):
        yield s.Grow(by.TOPIC, (by.pick(now, draw, 2),))
    yield from _join(now, first.entries[0].target)


def reach_heir(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Let the controller die while it waits, or before it has started anybody."""
    yield by.create(now, draw, 2)
    if HOLD in now.capabilities and draw(2):
        yield s.Hold(draw(4))
    asked = ask(now, draw)
    yield asked
    yield from by.fail_over(draw)
    yield s.Resume()
    yield from _join(now, asked.entries[0].target)


def reach_found(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Let somebody of a target in sync die together with the controller."""
    yield by.create(now, draw, 2)
    new = by.pick_others(now, draw, by.get_assigned(now), 2)
    yield s.WriteOld((LegacyEntry(by.KEY, (*new, by.get_assigned(now)[0])),))
    yield from _join(now, new[1:])
    yield s.Hold(draw(5))
    yield from _join(now, new)
    yield s.Die((new[0], by.get_assigned(now)[0])[draw(2)])
    yield s.Kill()
    yield s.Elect()
    yield s.Resume()


def reach_kept_leader(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Let the controller die behind step 4, or where the leader is of the target."""
    yield by.create(now, draw, 2)
    new = by.pick_others(now, draw, by.get_assigned(now))
    target = new if draw(2) else (by.get_assigned(now)[0], *new)
    yield s.WriteOld((LegacyEntry(by.KEY, target),))
    yield s.Hold(1 + draw(4))
    yield from _join(now, target)
    yield s.Kill()
    yield s.Elect()
    yield s.Resume()


def reach_overwriting(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Write another target over the one that is in flight."""
    yield by.create(now, draw, 1)
    first = ask(now, draw)
    target = first.entries[0].target
    yield first
    yield ask(now, draw, than=target[:1])
    yield from _join(now, target)


def reach_interruption(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Interrupt the command that waits, and perhaps ask again."""
    yield by.create(now, draw, 2)
    first = ask(now, draw)
    yield first
    yield s.DeleteOld()
    if KILL in now.capabilities and draw(2):
        yield from by.fail_over(draw)
        yield s.Resume()
    if draw(2):
        yield ask(now, draw)
    yield from _join(now, first.entries[0].target)


def reach_refusal(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Ask for what is assigned, or for who is dead."""
    yield by.create(now, draw, 2)
    assigned = by.get_assigned(now)
    other = by.pick_others(now, draw, assigned)
    yield s.WriteOld((LegacyEntry(by.KEY, assigned),))
    yield s.Die(other[0])
    yield s.WriteOld((LegacyEntry(by.KEY, (assigned[draw(2)], *other)),))


def reach_last_resort(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Let the last in-sync replica die beside one that is assigned and alive."""
    yield by.create(now, draw, 2)
    first, second = by.get_assigned(now)
    yield s.Leave(second, by.KEY)
    if draw(2):
        yield ask(now, draw)
    yield s.Die(first)


# -- the list

_DIES: Final = frozenset({BROKERS, HOLD, ISR, KILL})

SITUATIONS: Final = (
    CoverageGoal(
        "move-ended",
        "A move from the path ends, and somebody new is there for somebody old.",
        ("move.step.listen", "move.step.start-new", "move.step.stop-old"),
        _count_completions,
        reach_move,
        frozenset({ISR}),
    ),
    CoverageGoal(
        "move-inherited",
        "A new controller finds a target on the path that is not in sync.",
        ("move.failover.resumes", "move.failure.never-in-sync"),
        _count_heirs,
        reach_heir,
        frozenset({KILL}),
    ),
    CoverageGoal(
        "target-found-in-sync",
        "A new controller finds a target in sync of whom somebody has died.",
        ("move.failover.re-elects",),
        _count_found,
        reach_found,
        _DIES,
    ),
    CoverageGoal(
        "leader-found-in-target",
        "A new controller finds a target in sync, and a live replica of it in the lead.",
        ("move.failover.no-needless-election",),
        _count_kept_leaders,
        reach_kept_leader,
        frozenset({HOLD, ISR, KILL}),
    ),
    CoverageGoal(
        "path-overwritten",
        "A client writes another target over the one that is in flight.",
        ("move.listener.ignore-in-flight",),
        lambda history: _count_asked(history, _is_overwritten),
        reach_overwriting,
        frozenset({ISR}),
    ),
    CoverageGoal(
        "command-interrupted",
        "A client removes the path while a move is in flight.",
        ("assigned.change.only-as-due",),
        lambda history: _count_asked(history, _is_interrupted),
        reach_interruption,
    ),
    CoverageGoal(
        "nothing-asked",
        "A client asks for what is assigned already.",
        ("move.listener.refuse-same",),
        lambda history: _count_asked(history, _asks_nothing),
        reach_refusal,
        frozenset({BROKERS}),
    ),
    CoverageGoal(
        "dead-asked",
        "A client asks for a replica on a broker that is not alive.",
        ("move.listener.refuse-dead", "request.refuse.dead-replica"),
        lambda history: _count_asked(history, _asks_for_the_dead),
        reach_refusal,
        frozenset({BROKERS}),
    ),
    CoverageGoal(
        "last-resort",
        "A leader dies, and nobody who is assigned and alive is in sync.",
        ("move.selector.offline",),
        _count_last_resorts,
        reach_last_resort,
        frozenset({BROKERS, ISR}),
    ),
)
"""What has to come up where moves are asked for by the first text."""
