"""Scenes: a few steps in a row that bring a partition somewhere, each told from where it stands.

Steps drawn one by one rarely commit a record, show it, and then take the leader away. A scene says
what comes next by looking at the trial each time it is asked; whatever it cannot do is skipped, and
single steps may come in between. So the ways in are short, and what happens on them is free.
"""

from collections.abc import Callable, Iterator
from typing import Final

from reassure_conformance.gate.replication.alphabet import Step
from reassure_conformance.gate.replication.trial import BROKERS, Trial

Draw = Callable[[int], int]
"""Draws a number from 0 to before its argument."""
Scene = Callable[[Trial, Draw], Iterator[Step]]

ALL: Final = -1
"""What producers that wait for all in-sync replicas ask for."""


def find_leader(trial: Trial, draw: Draw) -> int:
    """Return the leader as brokers know it, or else any broker."""
    leader = trial.leader()
    return BROKERS[draw(len(BROKERS))] if leader is None else leader


def find_followers(trial: Trial) -> list[int]:
    """Return the live brokers but the leader."""
    return [one for one in trial.stepped.live if one != trial.leader()]


def commit(trial: Trial, draw: Draw) -> Iterator[Step]:
    """Have records written, copied by all, promised and read."""
    yield Step("produce", (1 + draw(2), ALL, find_leader(trial, draw)))
    yield Step("deliver-all")
    for _ in range(2):
        for follower in find_followers(trial):
            yield Step("replicate", (follower,))
    yield Step("consume", (find_leader(trial, draw),))
    yield Step("deliver-all")


def fail_over(trial: Trial, draw: Draw) -> Iterator[Step]:
    """Have the leader die, with or without what it wrote last, and another one take over."""
    if draw(3):
        yield from commit(trial, draw)
    leader = find_leader(trial, draw)
    if draw(2):
        yield Step("produce", (1, 1, leader))
        yield Step("deliver-all")
    yield Step("power", (leader, 1)) if draw(3) == 0 else Step("crash", (leader,))
    yield Step("work")
    yield Step("deliver-all")
    if draw(2):
        yield Step("produce", (1, ALL, find_leader(trial, draw)))
        yield Step("deliver-all")
    yield Step("start", (leader,))
    yield Step("work")
    yield Step("deliver-all")
    for follower in find_followers(trial):
        yield Step("replicate", (follower,))
        yield Step("replicate", (follower,))


def diverge(trial: Trial, draw: Draw) -> Iterator[Step]:
    """Have leader after leader die with records that nobody else has, so that logs part twice."""
    for _ in range(2):
        leader = find_leader(trial, draw)
        yield Step("produce", (1, 1, leader))
        yield Step("deliver-all")
        followers = find_followers(trial)
        if followers and draw(2):
            yield Step("replicate", (followers[draw(len(followers))],))
        yield Step("crash", (leader,))
        yield Step("work")
        yield Step("deliver-all")
        yield Step("start", (leader,))
    yield Step("work")
    yield Step("deliver-all")


def fall_behind(trial: Trial, draw: Draw) -> Iterator[Step]:
    """Have a follower fall out of the in-sync set, and come back."""
    followers = find_followers(trial)
    if not followers:
        return
    late = followers[draw(len(followers))]
    for _ in range(3):
        yield Step("produce", (1, 1, find_leader(trial, draw)))
        yield Step("deliver-all")
        for follower in followers:
            if follower != late:
                yield Step("replicate", (follower,))
                yield Step("replicate", (follower,))
        yield Step("wait", (500,))
    yield Step("consume", (find_leader(trial, draw),))
    yield Step("deliver-all")
    for _ in range(1 + draw(4)):
        yield Step("replicate", (late,))


def keep_up(trial: Trial, draw: Draw) -> Iterator[Step]:
    """Have followers take all there is each time, while more is written before they ask again."""
    for _ in range(4):
        yield Step("produce", (1, 1, find_leader(trial, draw)))
        yield Step("deliver-all")
        for follower in find_followers(trial):
            yield Step("replicate", (follower,))
        yield Step("wait", (100 * (1 + draw(5)),))


def linger(trial: Trial, draw: Draw) -> Iterator[Step]:
    """Have a request of a follower arrive after its broker has died and come back."""
    followers = find_followers(trial)
    if not followers:
        return
    late = followers[draw(len(followers))]
    yield Step("replicate", (late,))
    yield Step("fetch", (late,))
    place = max(0, len(trial.stepped.network.waiting) - 1)
    yield Step("power", (late, 1 + draw(2)))
    if draw(2):
        yield Step("start", (late,))
    if draw(2):
        yield Step("work")
    yield Step("deliver-all") if draw(2) else Step("repeat", (place,))


def bounce(trial: Trial, draw: Draw) -> Iterator[Step]:
    """Have the leader die and be back before the controller looks."""
    leader = find_leader(trial, draw)
    yield Step("stop" if draw(2) else "crash", (leader,))
    yield Step("start", (leader,))
    yield Step("work")
    place = draw(4)
    yield Step("repeat", (place,))
    yield Step("deliver-all")


def race(trial: Trial, draw: Draw) -> Iterator[Step]:
    """Have the controller change the in-sync set, and the leader want to before it is told."""
    followers = find_followers(trial)
    if not followers:
        return
    gone = followers[draw(len(followers))]
    yield Step("crash", (gone,))
    yield Step("work")
    yield Step("produce", (1, 1, find_leader(trial, draw)))
    yield Step("deliver", (max(0, len(trial.stepped.network.waiting) - 1),))
    yield Step("wait", (1100,))
    yield Step("deliver-all")
    yield Step("start", (gone,))


def delay_orders(trial: Trial, draw: Draw) -> Iterator[Step]:
    """Have orders arrive after later ones, or after the broker that they were for has died."""
    leader = find_leader(trial, draw)
    for broker in find_followers(trial):
        yield Step("crash", (broker,))
        yield Step("work")
        yield Step("start", (broker,))
        yield Step("work")
    last = max(0, len(trial.stepped.network.waiting) - 1)
    yield Step("repeat", (last,))
    yield Step("repeat", (draw(last + 1),))
    if draw(2):
        yield Step("crash", (leader,))
        yield Step("start", (leader,))
        yield Step("work")
    yield Step("repeat", (max(0, len(trial.stepped.network.waiting) - 1),))
    yield Step("deliver-all")


SCENES: Final[tuple[Scene, ...]] = (
    commit,
    commit,
    fail_over,
    fail_over,
    diverge,
    fall_behind,
    keep_up,
    linger,
    bounce,
    race,
    delay_orders,
)
"""Every scene, the more often the more it is drawn."""
ONE_TERM: Final[tuple[Scene, ...]] = (commit, fall_behind, keep_up)
"""Those in which nobody dies."""


def draw_step(trial: Trial, draw: Draw, *, one_term: bool) -> Step:
    """Return a step by itself."""
    broker, leader = BROKERS[draw(len(BROKERS))], find_leader(trial, draw)
    quiet = (
        Step("produce", (1 + draw(2), (ALL, ALL, 1, 0)[draw(4)], leader if draw(4) else broker)),
        Step("consume", (leader if draw(3) else broker,)),
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
        Step("power", (broker, 1 + draw(2))),
        Step("start", (broker,)),
        Step("start", (broker,)),
        Step("work"),
        Step("work"),
    )
    steps = quiet if one_term else (*quiet, *rough)
    return steps[draw(len(steps))]
