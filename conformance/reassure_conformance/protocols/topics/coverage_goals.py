"""What has to come up around deletions, preferred elections and shutdowns, and how to get there."""

from collections.abc import Iterator
from typing import Final

from reassure_conformance.adapter import (
    BROKERS,
    DELETION,
    HOLD,
    ISR,
    KILL,
    MESSAGES,
    PREFERRED,
    SHUTDOWN,
)
from reassure_conformance.gate import approaches as by
from reassure_conformance.gate import steps as s
from reassure_conformance.gate.events import CoverageGoal, History, Took
from reassure_conformance.gate.moment import ClusterMoment
from reassure_judge.live_events import ClusterView, Wrote
from reassure_model.partition import Partition
from reassure_spec.znodes import DELETED_TOPICS, PartitionKey
from reassure_zookeeper.transactions import Create, Delete

# -- how each is recognised


def _iterate_asked(
    history: History,
) -> Iterator[tuple[ClusterView, s.ClusterStep | Wrote, set[str]]]:
    """Yield each step that was taken and each transaction, with what is to be deleted by then.

    The view is that before a transaction, and that in which a step was taken.
    """
    view: ClusterView | None = None
    asked: set[str] = set()
    for event in history:
        if isinstance(event, Wrote):
            view = event.after
            yield event.before, event, asked
            for op in event.transaction.ops:
                root, _, topic = getattr(op, "path", "").rpartition("/")
                if root.endswith(DELETED_TOPICS) and isinstance(op, Create | Delete):
                    (asked.add if isinstance(op, Create) else asked.discard)(topic)
        elif isinstance(event, Took) and event.result == "ok" and view is not None:
            yield view, event.step, asked


def _list_of(view: ClusterView, topics: set[str]) -> list[Partition]:
    return [p for (topic, _), p in view.partitions.items() if topic in topics]


def _count_deleted_in_flight(history: History) -> int:
    return sum(
        isinstance(step, s.DeleteTopic)
        and any(p.reassignment is not None for p in _list_of(view, {step.topic}))
        for view, step, _ in _iterate_asked(history)
    )


def _count_asked_for_deleted(history: History) -> int:
    """Count requests that wait or come for a topic that is to be deleted and is not being moved."""
    found = 0
    for _, event, asked in _iterate_asked(history):
        if isinstance(event, Wrote):
            gone = set(event.before.requests) - set(event.after.requests)
            found += any(
                p.reassignment is None and any(r.sequence in gone for r in p.requests)
                for p in _list_of(event.before, asked)
            )
    return found


def _count_deleted_without(history: History) -> int:
    found = 0
    for view, step, _ in _iterate_asked(history):
        if isinstance(step, s.DeleteTopic):
            replicas = {r for p in _list_of(view, {step.topic}) for r in p.assigned or ()}
            found += not replicas <= view.live
    return found


def _count_stopped(view: ClusterView, asked: set[str]) -> int:
    """Count the partitions of which a deletion has stopped the leader."""
    states = [p.state for p in _list_of(view, asked) if p.reassignment is None]
    return sum(state is not None and state.leader == -1 for state in states)


def _count_failovers(history: History) -> int:
    return sum(
        isinstance(event, Wrote) and event.elects and _count_stopped(view, asked) > 0
        for view, event, asked in _iterate_asked(history)
    )


def _count_deaths(history: History) -> int:
    return sum(
        isinstance(event, s.Die) and _count_stopped(view, asked) > 0
        for view, event, asked in _iterate_asked(history)
    )


def _count_preferred(history: History, *, in_sync: bool) -> int:
    found = 0
    for view, step, _ in _iterate_asked(history):
        if not isinstance(step, s.Prefer):
            continue
        for partition in view.partitions.values():
            state, assigned = partition.state, partition.assigned
            if state is None or not assigned or assigned[0] == state.leader:
                continue
            able = assigned[0] in state.isr and assigned[0] in view.live
            found += able is in_sync and state.leader in view.live
    return found


def _find_handovers(history: History) -> Iterator[Partition]:
    """Yield the partitions that brokers lead which stop, others being in sync."""
    for view, step, _ in _iterate_asked(history):
        if not isinstance(step, s.ShutDown):
            continue
        for partition in view.partitions.values():
            state = partition.state
            if state is not None and state.leader == step.broker and len(state.isr) > 1:
                yield partition


def _count_unordered_handovers(history: History) -> int:
    found = 0
    for partition in _find_handovers(history):
        assert partition.state is not None
        left = [r for r in partition.state.isr if r != partition.state.leader]
        found += left[:1] != [r for r in partition.assigned or () if r in left][:1]
    return found


def _count_cut_handovers(history: History) -> int:
    """Count controllers that end while a broker waits for its answer."""
    found, stopping = 0, set[int]()
    for view, event, _ in _iterate_asked(history):
        if isinstance(event, s.ShutDown):
            stopping.add(event.broker)
        elif isinstance(event, s.Kill):
            found += not stopping.isdisjoint(view.live)
        stopping &= view.live
    return found


# -- how to get there


def _ask(now: ClusterMoment, draw: by.Draw, key: PartitionKey = by.KEY) -> s.Request:
    assigned = by.get_assigned(now, key)
    return s.Request(((key, (*assigned[:1], *by.pick_others(now, draw, assigned))),))


def reach_deletion_in_flight(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Ask for the deletion of a topic of which a partition moves."""
    yield by.create(now, draw, 2, partitions=1 + draw(2))
    if HOLD in now.capabilities and draw(2):
        yield s.Hold(1 + draw(4))
    yield _ask(now, draw)
    yield s.DeleteTopic(by.TOPIC)
    if KILL in now.capabilities and draw(2):
        yield from by.fail_over(draw)
    yield s.Resume()
    yield from by.catch_up(now)


def reach_request_for_deleted(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Ask for a move of a topic that is to be deleted and cannot be yet."""
    yield by.create(now, draw, 2)
    if BROKERS in now.capabilities and draw(2):
        yield s.Die(by.get_assigned(now)[draw(2)])
        yield s.DeleteTopic(by.TOPIC)
        yield _ask(now, draw)
    else:
        yield s.Hold(0)
        yield _ask(now, draw)
        yield s.Withdraw()
        yield s.DeleteTopic(by.TOPIC)
        yield _ask(now, draw)
        yield s.Resume()


def reach_deletion_without(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Ask for the deletion of a topic with a replica on a broker that is down."""
    yield by.create(now, draw, 2)
    dead = by.get_assigned(now)[draw(2)]
    yield s.Die(dead)
    yield s.DeleteTopic(by.TOPIC)
    if KILL in now.capabilities and draw(2):
        yield from by.fail_over(draw)
    yield s.Return(dead)
    yield s.Resume()


def reach_deletion_cut(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Let the controller die in the middle of a deletion."""
    yield by.create(now, draw, 2)
    # After two the leader is stopped, after four both replicas have deleted their logs.
    yield s.Hold(2 + draw(4))
    yield s.DeleteTopic(by.TOPIC)
    yield from by.fail_over(draw)
    yield s.Resume()


def reach_death_in_deletion(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Let a broker die in the middle of a deletion."""
    yield by.create(now, draw, 2)
    dead = by.get_assigned(now)[draw(2)]
    yield s.Hold(2 + draw(2))
    yield s.DeleteTopic(by.TOPIC)
    yield s.Die(dead)
    yield s.Resume()
    yield s.Return(dead)


def reach_preferred(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Let a leader die and return in sync, then ask for preferred leaders."""
    yield by.create(now, draw, 2)
    first = by.get_assigned(now)[0]
    yield s.Die(first)
    yield s.Return(first)
    yield s.Join(first, by.KEY)
    if KILL in now.capabilities and draw(2):
        yield s.Kill()
    yield s.Prefer()
    yield s.Elect()


def reach_preferred_out_of_sync(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Let a leader die, and ask for preferred leaders before it is in sync again."""
    yield by.create(now, draw, 2)
    first = by.get_assigned(now)[0]
    yield s.Die(first)
    if draw(2):
        yield s.Return(first)
    yield s.Prefer()


def reach_handover(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Let a leader stop in good order, and a follower after it."""
    yield by.create(now, draw, 2 + draw(2))
    first = by.get_assigned(now)
    yield s.ShutDown(first[0])
    yield s.ShutDown(first[-1])
    if draw(2):
        yield s.Return(first[0])


def reach_unordered_handover(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Let a leader stop while the in-sync set stands in another order than the assigned."""
    yield by.create(now, draw, 3)
    leader, early, _ = by.get_assigned(now)
    yield s.Leave(early, by.KEY)
    yield s.Join(early, by.KEY)
    yield s.ShutDown(leader)


def reach_handover_cut(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Let the controller die before a broker that stops has an answer."""
    yield s.CreateTopic(by.TOPIC, tuple(by.pick(now, draw, 2) for _ in range(1 + draw(2))))
    yield s.Hold(draw(3))
    yield s.ShutDown(by.get_assigned(now)[0])
    yield from by.fail_over(draw)
    yield s.Resume()


# -- the list


SITUATIONS: Final = (
    CoverageGoal(
        "deleted-while-moving",
        "A client asks for the deletion of a topic while a reassignment of it is in flight.",
        ("topic.delete.waits-for-reassignment", "topic.delete.asked-last"),
        _count_deleted_in_flight,
        reach_deletion_in_flight,
        frozenset({DELETION}),
    ),
    CoverageGoal(
        "asked-while-deleted",
        "A client asks for a reassignment of a topic that is to be deleted.",
        ("shipped.delete.blocks-reassignment",),
        _count_asked_for_deleted,
        reach_request_for_deleted,
        frozenset({DELETION, HOLD}),
    ),
    CoverageGoal(
        "deleted-with-a-broker-down",
        "A client asks for the deletion of a topic with a replica on a broker that is down.",
        ("topic.delete.waits-for-brokers",),
        _count_deleted_without,
        reach_deletion_without,
        frozenset({DELETION, BROKERS}),
    ),
    CoverageGoal(
        "failover-in-a-deletion",
        "A controller dies when it has stopped replicas of a topic that is to be deleted.",
        ("topic.delete.failover-begins-again",),
        _count_failovers,
        reach_deletion_cut,
        frozenset({DELETION, HOLD, KILL, MESSAGES}),
    ),
    CoverageGoal(
        "death-in-a-deletion",
        "A broker dies when replicas of a topic that is to be deleted are stopped.",
        ("topic.delete.failed-retried-later", "topic.delete.all-successful-first"),
        _count_deaths,
        reach_death_in_deletion,
        frozenset({DELETION, HOLD, BROKERS, MESSAGES}),
    ),
    CoverageGoal(
        "preferred-in-sync",
        "A client asks for preferred leaders where one is in sync and does not lead.",
        ("act.preferred-election-held",),
        lambda history: _count_preferred(history, in_sync=True),
        reach_preferred,
        frozenset({PREFERRED, BROKERS, ISR}),
    ),
    CoverageGoal(
        "preferred-out-of-sync",
        "A client asks for preferred leaders where one is not in sync.",
        ("act.preferred-election-held",),
        lambda history: _count_preferred(history, in_sync=False),
        reach_preferred_out_of_sync,
        frozenset({PREFERRED, BROKERS}),
    ),
    CoverageGoal(
        "leader-stops",
        "A broker stops in good order that leads where others are in sync.",
        ("act.shutdown-handed-over",),
        lambda history: sum(1 for _ in _find_handovers(history)),
        reach_handover,
        frozenset({SHUTDOWN}),
    ),
    CoverageGoal(
        "leader-stops-out-of-order",
        "A leader stops while those in sync stand in another order than the assigned.",
        ("act.controlled-shutdown",),
        _count_unordered_handovers,
        reach_unordered_handover,
        frozenset({SHUTDOWN, ISR}),
    ),
    CoverageGoal(
        "handover-cut",
        "A controller dies before a broker that stops has an answer.",
        ("act.shutdown-handed-over",),
        _count_cut_handovers,
        reach_handover_cut,
        frozenset({SHUTDOWN, HOLD, KILL}),
    ),
)
"""What has to come up where topics are deleted and leaders moved as somebody asks."""
