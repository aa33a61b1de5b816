"""Situations of brokers: what must come up in trials before a clause counts as put to the test.

A broker that obeys whatever it is told looks right as long as messages come in the order in which
they were sent. So each situation here says in one sentence what has to come up, how it is told when
it does, which clauses need it, and by which scene drawing gets there.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from reassure_conformance.adapter.stepped_network import Packet
from reassure_conformance.adapter.stepping import Anything, name_broker
from reassure_conformance.gate.replication.alphabet import BrokerStep
from reassure_conformance.gate.replication.arrivals import Arrived, Died, Event
from reassure_conformance.gate.replication.scenes import (
    ALL,
    Draw,
    Scene,
    begin_move,
    commit,
    deliver_after,
    find_followers,
    find_last,
    find_leader,
    perform,
    pick,
    take,
)
from reassure_conformance.gate.replication.trial import Trial
from reassure_conformance.gate.step_fields import format_partition
from reassure_controller.messages import LeaderAndIsr, StopReplica
from reassure_controller.replication.following import Following
from reassure_controller.replication.hosting import Replicas
from reassure_controller.replication.messages import Fetch, Fetched, Produce
from reassure_controller.replication.serving import Leading


@dataclass(frozen=True, slots=True)
class BrokerGoal:
    """What has to come up, how it is told, and how to get there."""

    needs: ClassVar[frozenset[str]] = frozenset()
    name: str
    sentence: str
    clauses: tuple[str, ...]
    """The clauses that are put to the test only where it comes up."""
    is_in: Callable[[Event], bool]
    """Whether an event is an instance of it."""
    approach: Scene
    """The steps by which drawing gets there."""


# -- how each is told


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


# -- how to get there


def _list_places(trial: Trial, wanted: Callable[[Packet[Anything]], bool]) -> list[int]:
    """Return the places of those messages on their way that are wanted."""
    return [n for n, packet in enumerate(trial.stepped.network.waiting) if wanted(packet)]


def _deliver(trial: Trial, wanted: Callable[[Packet[Anything]], bool]) -> Iterator[BrokerStep]:
    """Deliver, in order, those messages on their way that are wanted."""
    while places := _list_places(trial, wanted):
        yield BrokerStep("deliver", (places[0],))


def _is_order(packet: Packet[Anything], broker: int) -> bool:
    is_order = isinstance(packet.message, LeaderAndIsr | StopReplica)
    return packet.target == name_broker(broker) and is_order


def _is_stop(packet: Packet[Anything], broker: int) -> bool:
    return _is_order(packet, broker) and isinstance(packet.message, StopReplica)


def _about_a_follower(tell: Callable[[Trial, str, int, int], Iterator[BrokerStep]]) -> Scene:
    """Return the scene that tells of a partition, its leader and a follower, where there are."""

    def scene(trial: Trial, draw: Draw) -> Iterator[BrokerStep]:
        of = pick(trial, draw)
        leader, followers = trial.leader(of), find_followers(trial, of)
        if leader is not None and followers:
            yield from tell(trial, of, leader, followers[draw(len(followers))])

    return scene


def _shrink(trial: Trial, of: str, gone: int) -> Iterator[BrokerStep]:
    """Have a partition move away from one broker, and keep the orders on their way."""
    yield from begin_move(tuple(one for one in trial.hosts(of) if one != gone), of)


@_about_a_follower
def outlive_fetch(trial: Trial, of: str, leader: int, late: int) -> Iterator[BrokerStep]:
    """Have a follower that is out of sync ask for more, lose what it had, and its request arrive.

    Then the leader dies.
    """
    yield from deliver_after("produce", (1, ALL, leader), of)
    yield BrokerStep("wait", (1100,))
    yield from perform("replicate", "fetch", by=late)
    yield BrokerStep("power", (late, 1))
    yield from perform("start", "work", by=late)
    yield from deliver_after("consume", (leader,), of)
    yield from perform("crash", "work", by=leader)


@_about_a_follower
def outrun_order(trial: Trial, of: str, leader: int, gone: int) -> Iterator[BrokerStep]:
    """Have the newest of several orders arrive first."""
    yield from _shrink(trial, of, gone)
    for place in _list_places(trial, lambda packet: _is_order(packet, leader))[-1:]:
        yield BrokerStep("deliver", (place,))
    yield BrokerStep("deliver-all")


@_about_a_follower
def outlive_order(trial: Trial, of: str, leader: int, gone: int) -> Iterator[BrokerStep]:
    """Have an order arrive after its broker has obeyed a later one, died, and come back.

    The broker has forgotten what it was told, and its log has not.
    """
    yield from _shrink(trial, of, gone)
    orders = [one for one in trial.stepped.network.waiting if _is_order(one, leader)]
    later = {one.number for one in orders[1:]}
    yield from _deliver(trial, lambda packet: packet.number in later)
    yield BrokerStep("produce", (1, 1, leader), of)
    yield BrokerStep("deliver", (find_last(trial),))
    yield from perform("crash", "start", "deliver-all", by=leader)


@_about_a_follower
def come_back(trial: Trial, of: str, _leader: int, gone: int) -> Iterator[BrokerStep]:
    """Have a replica moved away and back before the order to stop it arrives."""
    hosts = tuple(trial.hosts(of))
    yield from _shrink(trial, of, gone)
    yield from begin_move(hosts, of)
    is_role = lambda one: _is_order(one, gone) and not _is_stop(one, gone)  # noqa: E731
    yield from _deliver(trial, is_role)
    yield BrokerStep("deliver-all")


@_about_a_follower
def stop_first(trial: Trial, of: str, _leader: int, gone: int) -> Iterator[BrokerStep]:
    """Have a replica moved away, and the order to stop it arrive before those of earlier epochs."""
    yield from _shrink(trial, of, gone)
    yield from _deliver(trial, lambda packet: _is_stop(packet, gone))
    yield BrokerStep("deliver-all")


@_about_a_follower
def stop_leader(trial: Trial, of: str, leader: int, _follower: int) -> Iterator[BrokerStep]:
    """Have a leader moved away, and sent a record when it is stopped and not yet deleted."""
    yield from _shrink(trial, of, leader)
    for place in _list_places(trial, lambda packet: _is_stop(packet, leader))[:1]:
        yield BrokerStep("deliver", (place,))
    yield BrokerStep("produce", (1, 1, leader), of)
    yield from _deliver(trial, lambda packet: isinstance(packet.message, Produce))
    yield BrokerStep("deliver-all")


def part_marks(trial: Trial, draw: Draw) -> Iterator[BrokerStep]:
    """Have one partition's records on every broker, and another's on one follower alone.

    Its leader dies before its mark has moved.
    """
    keys = trial.setting.keys
    names = [format_partition(key) for key in keys]
    shared = [
        (first, second, broker)
        for first in names
        for second in names
        if first != second
        for broker in find_followers(trial, first)
        if broker in find_followers(trial, second)
    ]
    if not shared:
        return
    first, second, broker = shared[draw(len(shared))]
    yield from deliver_after("produce", (1, ALL, find_leader(trial, draw, first)), first)
    yield from take(*find_followers(trial, first) * 2)
    yield BrokerStep("replicate", (broker,))
    leader = find_leader(trial, draw, second)
    yield from deliver_after("produce", (1, 1, leader), second)
    yield BrokerStep("replicate", (broker,))
    yield from perform("crash", "work", "deliver-all", by=leader)


def lose_what_the_mark_says(trial: Trial, draw: Draw) -> Iterator[BrokerStep]:
    """Have a broker end in order with its mark on disk, and lose records from before it."""
    of = pick(trial, draw)
    yield from commit(trial, draw, of)
    one = find_leader(trial, draw, of)
    yield from perform("stop", "start", by=one)
    yield BrokerStep("power", (one, 1 + draw(2)))
    yield BrokerStep("start", (one,))


SITUATIONS: Final = (
    BrokerGoal(
        "fetch-of-an-earlier-life",
        "A request that could let a follower into the in-sync set speaks of records that its "
        "broker has lost since.",
        ("log.committed-kept",),
        _is_fetch_of_earlier_life,
        outlive_fetch,
    ),
    BrokerGoal(
        "order-of-an-earlier-epoch",
        "An order arrives after one of a later leader epoch.",
        ("epoch.replica.never-back",),
        _is_order_of_earlier_epoch,
        outrun_order,
    ),
    BrokerGoal(
        "order-for-an-earlier-life",
        "An order arrives after its broker has died and come back, and is older than its log.",
        ("epoch.replica.never-back",),
        _is_order_for_earlier_life,
        outlive_order,
    ),
    BrokerGoal(
        "stop-of-an-earlier-epoch",
        "An order to stop a replica arrives after it was told of a later leader epoch.",
        ("epoch.replica.never-back",),
        _is_late_stop,
        come_back,
    ),
    BrokerGoal(
        "order-after-a-stop",
        "An order arrives after its replica was stopped in a later leader epoch.",
        ("epoch.replica.never-back",),
        _is_order_after_stop,
        stop_first,
    ),
    BrokerGoal(
        "stopped-while-it-leads",
        "A replica that leads is told to stop, and not yet to delete its log.",
        ("replica.stopped.silent",),
        _is_leader_stopped,
        stop_leader,
    ),
    BrokerGoal(
        "marks-apart",
        "A follower takes records beyond their mark while another partition's mark is larger.",
        ("hw.follower.from-leader",),
        _are_marks_apart,
        part_marks,
    ),
    BrokerGoal(
        "mark-beyond-the-log",
        "A disk loses records from before the high watermark that it has a checkpoint of.",
        ("hw.restored-not-raised",),
        _is_mark_beyond_log,
        lose_what_the_mark_says,
    ),
)
"""Every situation of brokers, each with a counter in the report of a run."""
