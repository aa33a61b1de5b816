"""Situations of brokers: what must come up in trials before a clause counts as put to the test.

A broker that obeys whatever it is told looks right as long as messages come in the order in which
they were sent. Each situation is a coverage goal that is counted event by event.
"""

from typing import Final

from reassure_conformance.gate.events import CoverageGoal
from reassure_conformance.gate.replication.arrivals import Arrived, Died, Event
from reassure_controller.messages import LeaderAndIsr, StopReplica
from reassure_controller.replication.following import Following
from reassure_controller.replication.hosting import Replicas
from reassure_controller.replication.messages import Fetch, Fetched
from reassure_controller.replication.serving import Leading

# -- how each is recognised


def _find_fetch(event: Event) -> tuple[Fetch, Leading, Replicas] | None:
    """Return a request that reaches a leader which could note it, and who has sent it, as he is."""
    if not isinstance(event, Arrived) or not isinstance(event.message, Fetch):
        return None
    fetch, replica, role = event.message, event.replica, event.role
    if replica is None or not isinstance(role, Leading) or fetch.replica not in event.cluster.live:
        return None
    there = replica.log.start_offset <= fetch.offset <= replica.log.end_offset
    if fetch.replica not in role.view.followers or not there:
        return None
    return fetch, role, event.cluster.replicas(fetch.replica)


def _is_fetch_of_earlier_life(event: Event) -> bool:
    """Whether a leader would let a follower in by what an earlier life of it had."""
    found = _find_fetch(event)
    if found is None:
        return False
    fetch, role, sender = found
    replica = sender.find(fetch.key)
    left = 0 if replica is None else replica.log.end_offset
    is_close = (
        fetch.replica not in role.view.isr and fetch.offset >= role.view.high_watermark > left
    )
    is_dead = fetch.broker_epoch != sender.broker_epoch
    return is_dead and is_close and fetch.leader_epoch == role.leader_epoch


def _is_order_of_earlier_epoch(event: Event) -> bool:
    if not isinstance(event, Arrived) or not isinstance(event.message, LeaderAndIsr):
        return False
    return (
        event.is_of_this_life
        and event.role is not None
        and event.message.leader_epoch < event.obeyed
    )


def _is_order_for_earlier_life(event: Event) -> bool:
    """Whether an order for an earlier life is older than what the log on disk speaks of."""
    if not isinstance(event, Arrived) or not isinstance(event.message, LeaderAndIsr):
        return False
    replica, epoch = event.replica, event.message.leader_epoch
    if event.is_of_this_life or replica is None:
        return False
    return event.obeyed < epoch < replica.log.epochs.latest


def _is_late_stop(event: Event) -> bool:
    if not isinstance(event, Arrived) or not isinstance(event.message, StopReplica):
        return False
    is_older = 0 <= event.message.leader_epoch < event.obeyed
    return event.is_of_this_life and event.role is not None and is_older


def _is_order_after_stop(event: Event) -> bool:
    if not isinstance(event, Arrived) or not isinstance(event.message, LeaderAndIsr):
        return False
    is_older = event.message.leader_epoch < event.obeyed
    return event.is_of_this_life and event.role is None and is_older


def _is_leader_stopped(event: Event) -> bool:
    if not isinstance(event, Arrived) or not isinstance(event.message, StopReplica):
        return False
    is_due = event.message.leader_epoch >= event.obeyed and not event.message.delete
    return event.is_of_this_life and isinstance(event.role, Leading) and is_due


def _are_marks_apart(event: Event) -> bool:
    """Whether a follower has records beyond the mark it is told, and has been told of a larger."""
    if not isinstance(event, Arrived) or not isinstance(event.message, Fetched):
        return False
    answer, replica = event.message, event.replica
    if replica is None or not isinstance(replica.role, Following) or not answer.records:
        return False
    others = [
        one.high_watermark
        for one in event.cluster.replicas(event.broker)
        if one.key != answer.key and isinstance(one.role, Following)
    ]
    return max(others, default=0) > answer.high_watermark


def _is_mark_beyond_log(event: Event) -> bool:
    if not isinstance(event, Died):
        return False
    marks = event.disk.high_watermarks
    return any(marks.get(key, 0) > log.end_offset for key, log in event.disk.logs.items())


SITUATIONS: Final[tuple[CoverageGoal, ...]] = (
    CoverageGoal(
        "fetch-of-an-earlier-life",
        "A request that could let a follower into the in-sync set speaks of records that its "
        "broker has lost since.",
        ("log.committed-kept",),
        _is_fetch_of_earlier_life,
        "request-of-an-earlier-life",
    ),
    CoverageGoal(
        "order-of-an-earlier-epoch",
        "An order arrives after one of a later leader epoch.",
        ("epoch.replica.never-back",),
        _is_order_of_earlier_epoch,
        "order-of-an-earlier-epoch",
    ),
    CoverageGoal(
        "order-for-an-earlier-life",
        "An order arrives after its broker has died and come back, and is older than its log.",
        ("epoch.replica.never-back",),
        _is_order_for_earlier_life,
        "order-outlived-by-the-log",
    ),
    CoverageGoal(
        "stop-of-an-earlier-epoch",
        "An order to stop a replica arrives after it was told of a later leader epoch.",
        ("epoch.replica.never-back",),
        _is_late_stop,
        "orders-from-before-a-deletion",
    ),
    CoverageGoal(
        "order-after-a-stop",
        "An order arrives after its replica was stopped in a later leader epoch.",
        ("epoch.replica.never-back",),
        _is_order_after_stop,
        "orders-from-before-a-deletion",
    ),
    CoverageGoal(
        "stopped-while-it-leads",
        "A replica that leads is told to stop, and not yet to delete its log.",
        ("replica.stopped.silent",),
        _is_leader_stopped,
        "stopped-while-it-leads",
    ),
    CoverageGoal(
        "marks-apart",
        "A follower takes records beyond their mark while another partition's mark is larger.",
        ("hw.follower.from-leader",),
        _are_marks_apart,
        "marks-of-two-partitions",
    ),
    CoverageGoal(
        "mark-beyond-the-log",
        "A disk loses records from before the high watermark that it has a checkpoint of.",
        ("hw.restored-not-raised",),
        _is_mark_beyond_log,
        "mark-restored-from-before-the-loss",
    ),
)
"""Every situation of brokers, each with a counter in the report of a run."""
