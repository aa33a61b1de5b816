"""What has to come up where reassignments are requested, and how it is recognised."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from reassure_conformance.adapter import BROKERS, HOLD, ISR, KILL, MESSAGES
from reassure_conformance.gate import steps as s
from reassure_conformance.gate.events import (
    CoverageGoal,
    History,
    Took,
    iterate_failovers,
    iterate_steps,
    iterate_writes,
)
from reassure_judge.live_events import ClusterView, Received, Rested, Wrote
from reassure_model.partition import Partition
from reassure_spec.znodes import NO_LEADER, PartitionKey


def _changes(
    history: History,
) -> Iterator[tuple[int, PartitionKey, Partition, Partition, frozenset[int]]]:
    """Yield the controllers' changes of leader and in-sync set: place, partition, and who lives."""
    for place, wrote in iterate_writes(history):
        if not wrote.is_fenced:
            continue
        for key, after in wrote.after.partitions.items():
            before = wrote.before.partitions.get(key)
            changed = before is not None and before.state is not None and after.state is not None
            if before is not None and changed and before.state != after.state:
                yield place, key, before, after, wrote.before.live


def _count_dead_intruders(history: History) -> int:
    """Count joins of brokers that had died, which were refused."""
    found, live = 0, frozenset[int]()
    for event in history:
        if isinstance(event, Wrote):
            live = event.after.live
        elif isinstance(event, Took) and isinstance(event.step, s.Intrude):
            found += event.result == "refused" and event.step.broker not in live
    return found


def _count_minimums(history: History, *, own: bool) -> int:
    """Count requests of which another minimum than the one that counts would make something else.

    The one that counts is the topic's own, or else the default; the other is the default, or none.
    """
    found = 0
    for _, wrote in iterate_writes(history):
        view = wrote.after
        for (topic, number), after in view.partitions.items():
            before = wrote.before.partitions.get((topic, number))
            if before is None or len(after.requests) <= len(before.requests):
                continue
            if after.assigned is None or after.reassignment is not None:
                continue
            if (topic in view.min_isr) is not own:
                continue
            other = view.min_isr_default if own else 1
            size, least = len(after.assigned), view.min_insync_replicas(topic)
            found += (size < least) is not (size < other)
    return found


def _count_steps(history: History, kind: type) -> int:
    return sum(
        isinstance(e, Took) and isinstance(e.step, kind) and e.result == "ok" for e in history
    )


# -- how each is recognised


def _count_unordered_elections(history: History) -> int:
    """Count elections at which the first candidate in sync is not the first that is assigned."""
    found = 0
    for _, _, before, after, live in _changes(history):
        old, new = before.state, after.state
        if old is None or new is None or new.leader == NO_LEADER or old.leader in live:
            continue
        found += _first(old.isr, live) != _first(before.assigned or (), live, old.isr)
    return found


def _first(
    replicas: Sequence[int], live: frozenset[int], among: Sequence[int] | None = None
) -> int | None:
    return next((r for r in replicas if r in live and (among is None or r in among)), None)


def _count_flying(view: ClusterView) -> int:
    return sum(p.reassignment is not None for p in view.partitions.values())


def _count_failovers_with_moves(history: History) -> int:
    return sum(_count_flying(wrote.before) > 1 for _, wrote in iterate_failovers(history))


def _count_foreign_beside_moves(history: History) -> int:
    found, planted = 0, False
    for event in history:
        if isinstance(event, Took) and isinstance(event.step, s.Foreign):
            planted = planted or event.step.kind.startswith("child-")
        elif isinstance(event, Wrote) and planted and event.elects:
            found += _count_flying(event.before) > 0
            planted = False
    return found


def _count_failovers_in_a_row(history: History) -> int:
    places = [place for place, wrote in iterate_failovers(history) if _count_flying(wrote.before)]
    return sum(
        not any(isinstance(event, Rested) for event in history[first:second])
        for first, second in pairwise(places)
    )


def _count_leaders_not_told(history: History) -> int:
    """Count leaders whose controller ended before it had told them."""
    found = 0
    ends = [place for place, _ in iterate_failovers(history)]
    for place, key, before, after, _ in _changes(history):
        if before.state is None or after.state is None or after.state.leader == NO_LEADER:
            continue
        end = next((e for e in ends if e > place), None)
        known = [e.told for e in history[place:end] if isinstance(e, Received)]
        found += end is not None and not any(
            (told.broker, told.topic, told.partition) == (after.state.leader, *key)
            and told.state is not None
            and told.state.leader_epoch >= after.state.leader_epoch
            for told in known
        )
    return found


def _count_growth_under_move(history: History) -> int:
    steps = iterate_steps(history)
    return sum(isinstance(step, s.Grow) and _count_flying(view) > 0 for step, view in steps)


def _count_earlier_again(history: History) -> int:
    """Count elections of a controller that had acted before another one did."""
    acted: list[int | None] = []
    found = 0
    for _, wrote in iterate_writes(history):
        acted = acted or [wrote.before.controller]
        if wrote.elects:
            who = wrote.after.controller
            found += who in acted[:-1] and who != acted[-1]
            acted.append(who)
    return found


def _count_own_unclean(history: History) -> int:
    """Count deaths of the last one in sync where the topic's own settings decide who may lead."""
    found = 0
    for place, (topic, _), before, after, live in _changes(history):
        wrote, old, new = history[place], before.state, after.state
        if not isinstance(wrote, Wrote) or old is None or new is None:
            continue
        view, late = wrote.before, old.leader in live or any(r in live for r in old.isr)
        own = topic in view.unclean and view.unclean[topic] is not view.unclean_default
        others = any(r in live for r in before.assigned or ())
        found += own and others and not late and new.leader != old.leader
    return found


COVERAGE_GOALS: Final = (
    CoverageGoal(
        "in-sync-order",
        "A leader is elected while the in-sync replicas stand in another order than the assigned.",
        ("election.assignment-order",),
        _count_unordered_elections,
        "elected-in-assigned-order",
        frozenset({ISR, BROKERS}),
    ),
    CoverageGoal(
        "moves-at-failover",
        "A controller is elected while several reassignments are in flight.",
        ("complete.carried-out",),
        _count_failovers_with_moves,
        "failover-with-two-moves",
        frozenset({KILL}),
    ),
    CoverageGoal(
        "foreign-beside-a-move",
        "A controller takes over a topic with a record in flight and one that is none of ours.",
        ("child.foreign-removed",),
        _count_foreign_beside_moves,
        "foreign-record-beside-a-move",
        frozenset({KILL}),
    ),
    CoverageGoal(
        "failovers-in-a-row",
        "A controller dies before it has dealt with what it found at its election.",
        ("expand.carried-out",),
        _count_failovers_in_a_row,
        "failovers-in-a-row",
        frozenset({HOLD, KILL}),
    ),
    CoverageGoal(
        "leader-not-told",
        "A controller dies after it wrote who leads and before it said so.",
        ("expand.announced", "complete.announced"),
        _count_leaders_not_told,
        "leader-not-told",
        frozenset({HOLD, KILL, MESSAGES}),
    ),
    CoverageGoal(
        "dead-refused",
        "A replica that has died is still taken for one that has caught up.",
        ("isr.change.live-only",),
        _count_dead_intruders,
        "strangers-stay-out",
        frozenset({ISR, BROKERS}),
    ),
    CoverageGoal(
        "request-withdrawn",
        "A client takes a request back before the controller has dealt with it.",
        ("request.consumed",),
        lambda history: _count_steps(history, s.Withdraw),
        "request-withdrawn",
        frozenset({HOLD}),
    ),
    CoverageGoal(
        "request-changed",
        "A client changes a request that the controller has in hand.",
        ("request.delete.child-first",),
        lambda history: _count_steps(history, s.Rewrite),
        "request-changed",
        frozenset({HOLD}),
    ),
    CoverageGoal(
        "default-minimum",
        "A move is asked for where the brokers' default of min.insync.replicas decides.",
        ("top.at-least-min-isr",),
        lambda history: _count_minimums(history, own=False),
        "minimum-of-the-default",
    ),
    CoverageGoal(
        "own-minimum",
        "A move is asked for where the topic's own min.insync.replicas decides otherwise.",
        ("top.at-least-min-isr",),
        lambda history: _count_minimums(history, own=True),
        "minimum-of-the-topic",
    ),
    CoverageGoal(
        "growth-under-move",
        "A client adds partitions to a topic while a reassignment is in flight.",
        ("assigned.change.only-as-due",),
        _count_growth_under_move,
        "topic-grows-under-a-move",
    ),
    CoverageGoal(
        "earlier-controller",
        "A controller that acted before another one is elected again.",
        ("controller.epoch.raised-by-one",),
        _count_earlier_again,
        "earlier-controller-again",
        frozenset({HOLD, KILL}),
    ),
    CoverageGoal(
        "own-unclean",
        "The last in-sync replica dies, and the topic's own settings say whether another may lead.",
        ("election.clean",),
        _count_own_unclean,
        "unclean-of-the-topic",
        frozenset({ISR, BROKERS}),
    ),
)
"""What has to come up where reassignments are requested."""
