"""Scenes: a few steps in a row that bring a partition somewhere, each told from where it stands.

Steps drawn one by one rarely commit a record, show it, and then take the leader away. A scene says
what comes next by looking at the trial each time it is asked; whatever it cannot do is skipped, and
single steps may come in between. So the ways in are short, and what happens on them is free.
"""

from collections.abc import Callable, Iterator
from typing import Final

from reassure_conformance.gate.replication.alphabet import Step
from reassure_conformance.gate.replication.trial import Trial
from reassure_conformance.gate.step_fields import format_partition

Draw = Callable[[int], int]
"""Draws a number from 0 to before its argument."""
Scene = Callable[[Trial, Draw], Iterator[Step]]

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


def commit(trial: Trial, draw: Draw, of: str | None = None) -> Iterator[Step]:
    """Have records written, copied by all, promised and read."""
    of = pick(trial, draw) if of is None else of
    yield Step("produce", (1 + draw(2), ALL, find_leader(trial, draw, of)), of)
    yield Step("deliver-all")
    for _ in range(2):
        for follower in find_followers(trial, of):
            yield Step("replicate", (follower,))
    yield Step("consume", (find_leader(trial, draw, of),), of)
    yield Step("deliver-all")


def fail_over(trial: Trial, draw: Draw) -> Iterator[Step]:
    """Have the leader die, with or without what it wrote last, and another one take over."""
    of = pick(trial, draw)
    if draw(3):
        yield from commit(trial, draw, of)
    leader = find_leader(trial, draw, of)
    if draw(2):
        yield Step("produce", (1, 1, leader), of)
        yield Step("deliver-all")
    yield Step("power", (leader, 1)) if draw(3) == 0 else Step("crash", (leader,))
    yield Step("work")
    yield Step("deliver-all")
    if draw(2):
        yield Step("produce", (1, ALL, find_leader(trial, draw, of)), of)
        yield Step("deliver-all")
    yield Step("start", (leader,))
    yield Step("work")
    yield Step("deliver-all")
    for follower in find_followers(trial, of):
        yield Step("replicate", (follower,))
        yield Step("replicate", (follower,))


def diverge(trial: Trial, draw: Draw) -> Iterator[Step]:
    """Have leader after leader die with records that nobody else has, so that logs part twice."""
    of = pick(trial, draw)
    for _ in range(2):
        leader = find_leader(trial, draw, of)
        yield Step("produce", (1, 1, leader), of)
        yield Step("deliver-all")
        followers = find_followers(trial, of)
        if followers and draw(2):
            yield Step("replicate", (followers[draw(len(followers))],))
        yield Step("crash", (leader,))
        yield Step("work")
        yield Step("deliver-all")
        yield Step("start", (leader,))
    yield Step("work")
    yield Step("deliver-all")


def fall_behind(trial: Trial, draw: Draw, of: str | None = None) -> Iterator[Step]:
    """Have a follower fall out of the in-sync set, and come back."""
    of = pick(trial, draw) if of is None else of
    followers = find_followers(trial, of)
    if not followers:
        return
    late = followers[draw(len(followers))]
    for _ in range(3):
        yield Step("produce", (1, 1, find_leader(trial, draw, of)), of)
        yield Step("deliver-all")
        for follower in followers:
            if follower != late:
                yield Step("replicate", (follower,))
                yield Step("replicate", (follower,))
        yield Step("wait", (500,))
    yield Step("consume", (find_leader(trial, draw, of),), of)
    yield Step("deliver-all")
    for _ in range(1 + draw(4)):
        yield Step("replicate", (late,))


def leave_unanswered(trial: Trial, draw: Draw) -> Iterator[Step]:
    """Have a leader not know whether a late follower left, or came back into, the in-sync set."""
    of = pick(trial, draw)
    for step in fall_behind(trial, draw, of):
        if draw(4) == 0:
            yield Step(("lose-write", "lose-answer")[draw(2)], (find_leader(trial, draw, of),))
        yield step


def keep_up(trial: Trial, draw: Draw) -> Iterator[Step]:
    """Have followers take all there is each time, while more is written before they ask again."""
    of = pick(trial, draw)
    for _ in range(4):
        yield Step("produce", (1, 1, find_leader(trial, draw, of)), of)
        yield Step("deliver-all")
        for follower in find_followers(trial, of):
            yield Step("replicate", (follower,))
        yield Step("wait", (100 * (1 + draw(5)),))


def linger(trial: Trial, draw: Draw) -> Iterator[Step]:
    """Have a request of a follower arrive after its broker has died and come back."""
    of = pick(trial, draw)
    followers = find_followers(trial, of)
    if not followers:
        return
    late = followers[draw(len(followers))]
    yield Step("replicate", (late,))
    yield Step("fetch", (late,))
    place = find_last(trial)
    yield Step("power", (late, 1 + draw(2)))
    if draw(2):
        yield Step("start", (late,))
    if draw(2):
        yield Step("work")
    yield Step("deliver-all") if draw(2) else Step("repeat", (place,))


def bounce(trial: Trial, draw: Draw) -> Iterator[Step]:
    """Have the leader die and be back before the controller looks."""
    of = pick(trial, draw)
    leader = find_leader(trial, draw, of)
    yield Step("stop" if draw(2) else "crash", (leader,))
    yield Step("start", (leader,))
    yield Step("work")
    place = draw(4)
    yield Step("repeat", (place,))
    yield Step("deliver-all")


def race(trial: Trial, draw: Draw) -> Iterator[Step]:
    """Have the controller change the in-sync set, and the leader want to before it is told."""
    of = pick(trial, draw)
    followers = find_followers(trial, of)
    if not followers:
        return
    gone = followers[draw(len(followers))]
    yield Step("crash", (gone,))
    yield Step("work")
    yield Step("produce", (1, 1, find_leader(trial, draw, of)), of)
    yield Step("deliver", (find_last(trial),))
    yield Step("wait", (1100,))
    yield Step("deliver-all")
    yield Step("start", (gone,))


def delay_orders(trial: Trial, draw: Draw) -> Iterator[Step]:
    """Have orders arrive after later ones, or after the broker that they were for has died."""
    of = pick(trial, draw)
    leader = find_leader(trial, draw, of)
    for broker in find_followers(trial, of):
        yield Step("crash", (broker,))
        yield Step("work")
        yield Step("start", (broker,))
        yield Step("work")
    last = find_last(trial)
    yield Step("repeat", (last,))
    yield Step("repeat", (draw(last + 1),))
    if draw(2):
        yield Step("crash", (leader,))
        yield Step("start", (leader,))
        yield Step("work")
    yield Step("repeat", (find_last(trial),))
    yield Step("deliver-all")


def settle(trial: Trial, of: str) -> Iterator[Step]:
    """Have everybody hear everything, and followers take what there is."""
    yield Step("work")
    yield Step("deliver-all")
    for _ in range(2):
        for follower in find_followers(trial, of):
            yield Step("replicate", (follower,))
    yield Step("work")
    yield Step("deliver-all")


def draw_target(trial: Trial, draw: Draw, of: str) -> tuple[int, ...]:
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


def move(trial: Trial, draw: Draw) -> Iterator[Step]:
    """Have a partition move while records are written, and the one that goes be deleted."""
    of = pick(trial, draw)
    if draw(2):
        yield from commit(trial, draw, of)
    yield Step("move", draw_target(trial, draw, of), of)
    yield Step("work")
    if draw(2):
        yield Step("produce", (1, ALL, find_leader(trial, draw, of)), of)
    yield Step("deliver-all")
    yield from settle(trial, of)
    yield Step("consume", (find_leader(trial, draw, of),), of)
    yield Step("deliver-all")


def move_back(trial: Trial, draw: Draw) -> Iterator[Step]:
    """Have a replica be deleted and made anew, and orders of before arrive once more."""
    of = pick(trial, draw)
    hosts, others = trial.hosts(of), find_others(trial, of)
    leader = trial.leader(of)
    followers = [one for one in hosts if one != leader]
    if leader is None or not followers:
        return
    gone = followers[draw(len(followers))]
    yield Step("produce", (1 + draw(2), ALL, leader), of)
    yield Step("deliver-all")
    for follower in followers:
        yield Step("replicate", (follower,))
    if draw(4) == 0:
        yield Step("crash", (gone,))
        yield Step("start", (gone,))
        yield Step("work")
    kept = draw(1 + find_last(trial))
    yield Step("repeat", (kept,))
    yield Step("deliver-all") if draw(2) else Step("work")
    stay = tuple(one for one in hosts if one != gone)
    yield Step("move", (*stay, *others[:1]) if draw(2) else stay, of)
    yield Step("work")
    for _ in range(find_last(trial) + 1):
        yield Step("deliver", (0,))
    for other in others[:1]:
        yield Step("replicate", (other,))
        yield Step("replicate", (other,))
    yield Step("work")
    late = find_last(trial)
    yield Step("repeat", (late,))
    yield Step("repeat", (draw(late + 1),))
    yield Step("move", (*stay, gone), of)
    yield Step("work")
    if draw(2):
        yield Step("produce", (1, ALL, find_leader(trial, draw, of)), of)
    for place in range(find_last(trial) + 1):
        yield Step("repeat", (place,))
    yield Step("replicate", (gone,))
    yield Step("replicate", (gone,))
    yield Step("repeat", (draw(find_last(trial) + 1),))
    yield Step("deliver-all")


def cut(trial: Trial, draw: Draw) -> Iterator[Step]:
    """Stop the controller between two effects of a move, and have another one take over."""
    of = pick(trial, draw)
    yield Step("move", draw_target(trial, draw, of), of)
    yield Step("work-some", (1 + draw(6),))
    if draw(2):
        yield Step("deliver-all")
    if draw(2):
        for follower in find_followers(trial, of):
            yield Step("replicate", (follower,))
    if draw(3):
        yield Step("supersede")
        yield Step("work") if draw(2) else Step("work-some", (1 + draw(4),))
        if draw(2):
            yield Step("wake")
    place = draw(1 + find_last(trial))
    yield Step("repeat", (place,))
    yield from settle(trial, of)


def expire(trial: Trial, draw: Draw) -> Iterator[Step]:
    """End the session of a broker that goes on for a while as if nothing had been."""
    of = pick(trial, draw)
    leader = find_leader(trial, draw, of)
    followers = find_followers(trial, of)
    one = followers[draw(len(followers))] if followers and draw(2) else leader
    yield Step("expire", (one,))
    yield Step("produce", (1, (ALL, 1)[draw(2)], leader), of)
    yield Step("deliver", (find_last(trial),))
    if draw(2):
        yield Step("work")
        yield Step("deliver-all")
    else:
        yield Step("fetch", (one,))
    yield Step("register", (one,))
    yield Step("work")
    yield Step("deliver-all")
    for follower in find_followers(trial, of):
        yield Step("replicate", (follower,))
        yield Step("replicate", (follower,))


SCENES: Final[tuple[Scene, ...]] = (
    commit,
    commit,
    fail_over,
    fail_over,
    diverge,
    fall_behind,
    leave_unanswered,
    keep_up,
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
ONE_TERM: Final[tuple[Scene, ...]] = (commit, fall_behind, leave_unanswered, keep_up)
"""Those in which nobody dies."""


def draw_step(trial: Trial, draw: Draw, *, one_term: bool) -> Step:
    """Return a step by itself."""
    brokers, of = trial.setting.brokers, pick(trial, draw)
    broker, leader = brokers[draw(len(brokers))], find_leader(trial, draw, of)
    acks = (ALL, ALL, 1, 0)[draw(4)]
    quiet = (
        Step("produce", (1 + draw(2), acks, leader if draw(4) else broker), of),
        Step("consume", (leader if draw(3) else broker,), of),
        Step("fetch", (broker,)),
        Step("replicate", (broker,)),
        Step("replicate", (broker,)),
        Step("deliver", ((0, 0, 1, 2)[draw(4)],)),
        Step("repeat", (draw(3),)),
        Step("lose", (draw(3),)),
        Step("deliver-all"),
        Step("wait", ((100, 200, 500, 900, 1000, 1100)[draw(6)],)),
    )
    rough = (
        Step("set-back", (broker, 300)),
        Step("crash", (broker,)),
        Step("tear", (broker,)),
        Step("power", (broker, 1 + draw(2))),
        Step("start", (broker,)),
        Step("start", (broker,)),
        Step("expire", (broker,)),
        Step("register", (broker,)),
        Step("lose-write", (leader,)),
        Step("lose-answer", (leader,)),
        Step("move", draw_target(trial, draw, of), of),
        Step("work"),
        Step("work"),
        Step("work-some", (1 + draw(4),)),
        Step("supersede"),
        Step("wake"),
    )
    steps = quiet if one_term else (*quiet, *rough)
    return steps[draw(len(steps))]
