"""Scenes: a few steps in a row that bring a partition somewhere, each told from where it stands.

Steps drawn one by one rarely commit a record, show it, and then take the leader away. A scene says
what comes next by looking at the trial each time it is asked; whatever it cannot do is skipped, and
single steps may come in between. So the ways in are short, and what happens on them is free.
"""

from collections.abc import Callable, Iterator
from typing import Final

from reassure_conformance.gate.aims import Draw
from reassure_conformance.gate.replication.alphabet import FORMS, BrokerStep
from reassure_conformance.gate.replication.trial import Trial
from reassure_conformance.gate.step_fields import format_partition
from reassure_spec.znodes import ReplicaList

Scene = Callable[[Trial, Draw], Iterator[BrokerStep]]

ALL: Final = -1
"""What producers that wait for all in-sync replicas ask for."""


def pick(trial: Trial, draw: Draw) -> str:
    """Draw a partition by its name."""
    keys = trial.setting.keys
    place = draw(len(keys))
    return format_partition(keys[place]) if place else ""


def find_leader(trial: Trial, draw: Draw, of: str = "") -> int:
    """Return the leader as brokers know it, or else any broker."""
    leader = trial.leader(of)
    brokers = trial.setting.brokers
    return brokers[draw(len(brokers))] if leader is None else leader


def find_followers(trial: Trial, of: str = "") -> list[int]:
    """Return the live brokers that have a replica, but the leader."""
    return [one for one in trial.hosts(of) if one != trial.leader(of)]


def find_others(trial: Trial, of: str) -> list[int]:
    """Return the live brokers that have no replica."""
    return [one for one in trial.stepped.live if one not in trial.hosts(of)]


def find_last(trial: Trial) -> int:
    """Return the place of the newest message on its way."""
    return max(0, len(trial.stepped.network.waiting) - 1)


def perform(*verbs: str, by: int = 0) -> Iterator[BrokerStep]:
    """Take these steps in a row, those of brokers by this one."""
    for verb in verbs:
        yield BrokerStep(verb, (by,) if "{" in FORMS[verb] else ())


def take(*brokers: int) -> Iterator[BrokerStep]:
    """Have each of these take what there is; once more, and its leader notes that."""
    for broker in brokers:
        yield BrokerStep("replicate", (broker,))


def deliver_after(verb: str, numbers: ReplicaList, of: str) -> Iterator[BrokerStep]:
    """Take a step about a partition, and have everything arrive."""
    yield BrokerStep(verb, numbers, of)
    yield BrokerStep("deliver-all")


def begin_move(target: ReplicaList, of: str) -> Iterator[BrokerStep]:
    """Ask for a move, and have the controller begin with it; what it says is on its way."""
    yield BrokerStep("move", target, of)
    yield BrokerStep("work")


def replicate(trial: Trial, of: str) -> Iterator[BrokerStep]:
    """Have each follower take what there is, and its leader note that."""
    for follower in find_followers(trial, of):
        yield from take(follower, follower)


def commit(trial: Trial, draw: Draw, of: str | None = None) -> Iterator[BrokerStep]:
    """Have records written, copied by all, promised and read."""
    of = pick(trial, draw) if of is None else of
    yield from deliver_after("produce", (1 + draw(2), ALL, find_leader(trial, draw, of)), of)
    for _ in range(2):
        yield from take(*find_followers(trial, of))
    yield from deliver_after("consume", (find_leader(trial, draw, of),), of)


def fail_over(trial: Trial, draw: Draw) -> Iterator[BrokerStep]:
    """Have the leader die, with or without what it wrote last, and another one take over."""
    of = pick(trial, draw)
    if draw(3):
        yield from commit(trial, draw, of)
    leader = find_leader(trial, draw, of)
    if draw(2):
        yield from deliver_after("produce", (1, 1, leader), of)
    yield BrokerStep("power", (leader, 1)) if draw(3) == 0 else BrokerStep("crash", (leader,))
    yield from perform("work", "deliver-all")
    if draw(2):
        yield from deliver_after("produce", (1, ALL, find_leader(trial, draw, of)), of)
    yield from perform("start", "work", "deliver-all", by=leader)
    yield from replicate(trial, of)


def diverge(trial: Trial, draw: Draw) -> Iterator[BrokerStep]:
    """Have leader after leader die with records that nobody else has, so that logs part twice."""
    of = pick(trial, draw)
    for _ in range(2):
        leader = find_leader(trial, draw, of)
        yield from deliver_after("produce", (1, 1, leader), of)
        followers = find_followers(trial, of)
        if followers and draw(2):
            yield BrokerStep("replicate", (followers[draw(len(followers))],))
        yield from perform("crash", "work", "deliver-all", "start", by=leader)
    yield from perform("work", "deliver-all")


def fall_behind(trial: Trial, draw: Draw, of: str | None = None) -> Iterator[BrokerStep]:
    """Have a follower fall out of the in-sync set, and come back."""
    of = pick(trial, draw) if of is None else of
    followers = find_followers(trial, of)
    if not followers:
        return
    late = followers[draw(len(followers))]
    for _ in range(3):
        yield from deliver_after("produce", (1, 1, find_leader(trial, draw, of)), of)
        for follower in followers:
            if follower != late:
                yield from take(follower, follower)
        yield BrokerStep("wait", (500,))
    yield from deliver_after("consume", (find_leader(trial, draw, of),), of)
    for _ in range(1 + draw(4)):
        yield BrokerStep("replicate", (late,))


def leave_unanswered(trial: Trial, draw: Draw) -> Iterator[BrokerStep]:
    """Have a leader not know whether a late follower left, or came back into, the in-sync set."""
    of = pick(trial, draw)
    for step in fall_behind(trial, draw, of):
        if draw(4) == 0:
            yield BrokerStep(
                ("lose-write", "lose-answer")[draw(2)], (find_leader(trial, draw, of),)
            )
        yield step


def linger(trial: Trial, draw: Draw) -> Iterator[BrokerStep]:
    """Have a request of a follower arrive after its broker has died and come back."""
    of = pick(trial, draw)
    followers = find_followers(trial, of)
    if not followers:
        return
    late = followers[draw(len(followers))]
    yield from perform("replicate", "fetch", by=late)
    place = find_last(trial)
    yield BrokerStep("power", (late, 1 + draw(2)))
    if draw(2):
        yield BrokerStep("start", (late,))
    if draw(2):
        yield BrokerStep("work")
    yield BrokerStep("deliver-all") if draw(2) else BrokerStep("repeat", (place,))


def bounce(trial: Trial, draw: Draw) -> Iterator[BrokerStep]:
    """Have the leader die and be back before the controller looks."""
    of = pick(trial, draw)
    leader = find_leader(trial, draw, of)
    yield BrokerStep("stop" if draw(2) else "crash", (leader,))
    yield from perform("start", "work", by=leader)
    place = draw(4)
    yield BrokerStep("repeat", (place,))
    yield BrokerStep("deliver-all")


def race(trial: Trial, draw: Draw) -> Iterator[BrokerStep]:
    """Have the controller change the in-sync set, and the leader want to before it is told."""
    of = pick(trial, draw)
    followers = find_followers(trial, of)
    if not followers:
        return
    gone = followers[draw(len(followers))]
    yield from perform("crash", "work", by=gone)
    yield BrokerStep("produce", (1, 1, find_leader(trial, draw, of)), of)
    yield BrokerStep("deliver", (find_last(trial),))
    yield BrokerStep("wait", (1100,))
    yield from perform("deliver-all", "start", by=gone)


def delay_orders(trial: Trial, draw: Draw) -> Iterator[BrokerStep]:
    """Have orders arrive after later ones, or after the broker that they were for has died."""
    of = pick(trial, draw)
    leader = find_leader(trial, draw, of)
    for broker in find_followers(trial, of):
        yield from perform("crash", "work", "start", "work", by=broker)
    last = find_last(trial)
    yield BrokerStep("repeat", (last,))
    yield BrokerStep("repeat", (draw(last + 1),))
    if draw(2):
        yield from perform("crash", "start", "work", by=leader)
    yield BrokerStep("repeat", (find_last(trial),))
    yield BrokerStep("deliver-all")


def settle(trial: Trial, of: str) -> Iterator[BrokerStep]:
    """Have everybody hear everything, and followers take what there is."""
    yield from perform("work", "deliver-all")
    for _ in range(2):
        yield from take(*find_followers(trial, of))
    yield from perform("work", "deliver-all")


def draw_target(trial: Trial, draw: Draw, of: str) -> ReplicaList:
    """Draw where a partition could move: in with a broker that has no replica, out with another."""
    hosts, others = trial.hosts(of), find_others(trial, of)
    if not hosts or (not others and len(hosts) < 2):
        return ()
    if not others:
        gone = hosts[draw(len(hosts))]
        return tuple(one for one in hosts if one != gone)
    gone = hosts[draw(len(hosts))]
    kept = [one for one in hosts if one != gone or draw(3) == 0]
    new = others[draw(len(others))]
    return (new, *kept) if draw(2) else (*kept, new)


def move(trial: Trial, draw: Draw) -> Iterator[BrokerStep]:
    """Have a partition move while records are written, and the one that goes be deleted."""
    of = pick(trial, draw)
    if draw(2):
        yield from commit(trial, draw, of)
    yield from begin_move(draw_target(trial, draw, of), of)
    if draw(2):
        yield BrokerStep("produce", (1, ALL, find_leader(trial, draw, of)), of)
    yield BrokerStep("deliver-all")
    yield from settle(trial, of)
    yield from deliver_after("consume", (find_leader(trial, draw, of),), of)


def move_back(trial: Trial, draw: Draw) -> Iterator[BrokerStep]:
    """Have a replica be deleted and made anew, and orders of before arrive once more."""
    of = pick(trial, draw)
    hosts, others = trial.hosts(of), find_others(trial, of)
    leader = trial.leader(of)
    followers = [one for one in hosts if one != leader]
    if leader is None or not followers:
        return
    gone = followers[draw(len(followers))]
    yield from deliver_after("produce", (1 + draw(2), ALL, leader), of)
    yield from take(*followers)
    if draw(4) == 0:
        yield from perform("crash", "start", "work", by=gone)
    kept = draw(1 + find_last(trial))
    yield BrokerStep("repeat", (kept,))
    yield BrokerStep("deliver-all") if draw(2) else BrokerStep("work")
    stay = tuple(one for one in hosts if one != gone)
    yield from begin_move((*stay, *others[:1]) if draw(2) else stay, of)
    for _ in range(find_last(trial) + 1):
        yield BrokerStep("deliver", (0,))
    for other in others[:1]:
        yield from take(other, other)
    yield BrokerStep("work")
    late = find_last(trial)
    yield BrokerStep("repeat", (late,))
    yield BrokerStep("repeat", (draw(late + 1),))
    yield from begin_move((*stay, gone), of)
    if draw(2):
        yield BrokerStep("produce", (1, ALL, find_leader(trial, draw, of)), of)
    for place in range(find_last(trial) + 1):
        yield BrokerStep("repeat", (place,))
    yield from take(gone, gone)
    yield BrokerStep("repeat", (draw(find_last(trial) + 1),))
    yield BrokerStep("deliver-all")


def cut(trial: Trial, draw: Draw) -> Iterator[BrokerStep]:
    """Stop the controller between two effects of a move, and have another one take over."""
    of = pick(trial, draw)
    yield BrokerStep("move", draw_target(trial, draw, of), of)
    yield BrokerStep("work-some", (1 + draw(6),))
    if draw(2):
        yield BrokerStep("deliver-all")
    if draw(2):
        yield from take(*find_followers(trial, of))
    if draw(3):
        yield BrokerStep("supersede")
        yield BrokerStep("work") if draw(2) else BrokerStep("work-some", (1 + draw(4),))
        if draw(2):
            yield BrokerStep("wake")
    place = draw(1 + find_last(trial))
    yield BrokerStep("repeat", (place,))
    yield from settle(trial, of)


def expire(trial: Trial, draw: Draw) -> Iterator[BrokerStep]:
    """End the session of a broker that goes on for a while as if nothing had been."""
    of = pick(trial, draw)
    leader = find_leader(trial, draw, of)
    followers = find_followers(trial, of)
    one = followers[draw(len(followers))] if followers and draw(2) else leader
    yield BrokerStep("expire", (one,))
    yield BrokerStep("produce", (1, (ALL, 1)[draw(2)], leader), of)
    yield BrokerStep("deliver", (find_last(trial),))
    if draw(2):
        yield from perform("work", "deliver-all")
    else:
        yield BrokerStep("fetch", (one,))
    yield from perform("register", "work", "deliver-all", by=one)
    yield from replicate(trial, of)


SCENES: Final[tuple[Scene, ...]] = (
    commit,
    commit,
    fail_over,
    fail_over,
    diverge,
    fall_behind,
    leave_unanswered,
    linger,
    bounce,
    race,
    delay_orders,
    move,
    move,
    move_back,
    move_back,
    cut,
    cut,
    expire,
)
"""Every scene, the more often the more it is drawn."""
ONE_TERM: Final[tuple[Scene, ...]] = (commit, fall_behind, leave_unanswered)
"""Those in which nobody dies."""


def draw_step(trial: Trial, draw: Draw, *, one_term: bool) -> BrokerStep:
    """Return a step by itself."""
    brokers, of = trial.setting.brokers, pick(trial, draw)
    broker, leader = brokers[draw(len(brokers))], find_leader(trial, draw, of)
    acks = (ALL, ALL, 1, 0)[draw(4)]
    quiet = (
        BrokerStep("produce", (1 + draw(2), acks, leader if draw(4) else broker), of),
        BrokerStep("consume", (leader if draw(3) else broker,), of),
        BrokerStep("fetch", (broker,)),
        BrokerStep("replicate", (broker,)),
        BrokerStep("replicate", (broker,)),
        BrokerStep("deliver", ((0, 0, 1, 2)[draw(4)],)),
        BrokerStep("repeat", (draw(3),)),
        BrokerStep("lose", (draw(3),)),
        BrokerStep("deliver-all"),
        BrokerStep("wait", ((100, 200, 500, 900, 1000, 1100)[draw(6)],)),
    )
    rough = (
        BrokerStep("set-back", (broker, 300)),
        BrokerStep("crash", (broker,)),
        BrokerStep("tear", (broker,)),
        BrokerStep("power", (broker, 1 + draw(2))),
        BrokerStep("start", (broker,)),
        BrokerStep("start", (broker,)),
        BrokerStep("expire", (broker,)),
        BrokerStep("register", (broker,)),
        BrokerStep("lose-write", (leader,)),
        BrokerStep("lose-answer", (leader,)),
        BrokerStep("move", draw_target(trial, draw, of), of),
        BrokerStep("work"),
        BrokerStep("work"),
        BrokerStep("work-some", (1 + draw(4),)),
        BrokerStep("supersede"),
        BrokerStep("wake"),
    )
    steps = quiet if one_term else (*quiet, *rough)
    return steps[draw(len(steps))]
