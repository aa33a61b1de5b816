"""How generation gets into the situations of requests, one approach for each."""

from collections.abc import Iterator

from reassure_conformance.adapter import BROKERS, HOLD, KILL
from reassure_conformance.gate import approaches as by
from reassure_conformance.gate import steps as s
from reassure_conformance.gate.malformed_znodes import FOREIGN_KINDS
from reassure_conformance.gate.moment import ClusterMoment


def reach_unordered_election(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Let an early follower leave and come back behind the others, then the leader die."""
    yield by.create(now, draw, 3)
    early = by.get_assigned(now)[1]
    yield s.Leave(early, by.KEY)
    yield s.Join(early, by.KEY)
    if draw(2):
        yield s.Hold(draw(3))
    yield s.Die(by.get_leader(now))


def reach_conflict_at_election(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Change the in-sync set while the controller is about to move the leader."""
    yield by.create(now, draw, 2)
    old = by.get_assigned(now)
    stays = bool(draw(2))
    new = by.pick_others(now, draw, old, 2)
    yield s.Request(((by.KEY, (new[0], old[1]) if stays else new),))
    for replica in new[1:] if not stays else ():
        yield s.Join(replica, by.KEY)
    yield s.Hold(0)
    yield from by.catch_up(now)
    yield s.Leave(old[1], by.KEY)
    if stays:
        yield s.Join(old[1], by.KEY)
    yield s.Resume()


def reach_conflict_at_removal(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Change the in-sync set while the controller is about to take a replica out of it."""
    yield by.create(now, draw, 3)
    _, second, third = by.get_assigned(now)
    if BROKERS in now.capabilities and draw(2):
        yield s.Hold(0)
        yield s.Die(third)
    else:
        yield s.Hold(5 + draw(2))
        yield s.Request(((by.KEY, by.get_assigned(now)[:2]),))
    yield s.Leave(second, by.KEY)
    yield s.Resume()


def reach_conflict_at_drop(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Change the in-sync set while the controller is about to drop replicas."""
    yield by.create(now, draw, 2)
    old = by.get_assigned(now)
    new = by.pick_others(now, draw, old, 2)
    yield s.Request(((by.KEY, new),))
    yield s.Join(new[0], by.KEY)
    yield s.Hold(2 + draw(2))
    yield s.Change(by.KEY, (old[0], *by.pick_others(now, draw, (*old, *new))) if draw(2) else old)
    yield s.Leave(old[1], by.KEY)
    yield s.Resume()


def reach_moves_at_failover(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Begin two moves and let the controller die."""
    yield by.create(now, draw, 2, partitions=2)
    held = HOLD in now.capabilities and bool(draw(2))
    for number in range(2):
        if held and number:
            yield s.Hold(1 + draw(8))
        yield by.move(now, draw, (by.TOPIC, number))
    if not held and draw(2):
        yield from by.catch_up(now, (by.TOPIC, draw(2)))
    yield from by.fail_over(draw)
    yield from by.catch_up(now, (by.TOPIC, 1), (by.TOPIC, 0))


def reach_foreign_beside_a_move(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Let the controller die beside a move, and put a record there that is none of ours."""
    yield by.create(now, draw, 2, partitions=2)
    other = (by.TOPIC, 1)
    yield by.move(now, draw, other)
    yield s.Kill()
    kinds = [kind for kind in FOREIGN_KINDS if kind.startswith("child-")]
    for _ in range(1 + draw(2)):
        yield s.Foreign(kinds.pop(len(kinds) - 1 - draw(len(kinds))))
    yield s.Elect()
    yield from by.catch_up(now, other)


def reach_failovers_in_a_row(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Let a second controller die in the middle of what it found."""
    yield by.create(now, draw, 2)
    yield s.Hold(1 + draw(4))
    yield by.move(now, draw)
    yield s.Kill()
    yield s.Hold(draw(4))
    yield s.Elect()
    yield s.Kill()
    if draw(2):
        yield s.Hold(draw(3))
    yield s.Elect()
    yield s.Resume()
    yield from by.catch_up(now)


def reach_leader_not_told(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Let the controller die between the write of a leader and its message."""
    yield by.create(now, draw, 2)
    kind = draw(3)
    if kind == 0:
        yield s.Hold(3)
        yield by.move(now, draw)
    elif kind == 1:
        yield by.move(now, draw)
        yield s.Hold(1)
        yield from by.catch_up(now)
    else:
        yield s.Hold(1)
        yield s.Die(by.get_leader(now))
    yield s.Kill()
    yield s.Elect()
    yield from by.catch_up(now)


def _reach_lost(now: ClusterMoment, draw: by.Draw, *, done: bool) -> Iterator[s.ClusterStep]:
    yield by.create(now, draw, 2)
    if draw(2):
        yield by.move(now, draw)
    yield s.Lose(draw(5), done)
    flying = bool(now.in_flight())
    if flying and draw(2):
        yield s.Change(by.KEY, by.pick(now, draw, 2))
    elif flying:
        yield from by.catch_up(now)
    else:
        yield by.move(now, draw)
    yield from by.catch_up(now)


def reach_answer_lost(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Let a write be carried out and its answer be lost."""
    return _reach_lost(now, draw, done=True)


def reach_write_lost(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Let a write be lost on its way."""
    return _reach_lost(now, draw, done=False)


def reach_stranger(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Let a broker that is not assigned, or no more, try to join."""
    yield by.create(now, draw, 2)
    old = by.get_assigned(now)
    if draw(2):
        yield s.Request(((by.KEY, (old[0], *by.pick_others(now, draw, old))),))
        yield from by.catch_up(now)
        yield s.Intrude(old[1], by.KEY)
    else:
        yield s.Intrude(by.pick_others(now, draw, old)[0], by.KEY)


def reach_dead_intruder(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Let a replica die out of the in-sync set, or a target before it is in it, and try to join."""
    yield by.create(now, draw, 2)
    if draw(2):
        yield by.move(now, draw)
    leader = by.get_leader(now)
    dead = next((b for b in reversed(by.get_assigned(now)) if b != leader), leader)
    yield s.Die(dead)
    yield s.Intrude(dead, by.KEY)


def reach_withdrawal(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Take a request back while the controller is held, or while there is none."""
    yield by.create(now, draw, 2)
    kills = KILL in now.capabilities and bool(draw(2))
    yield s.Kill() if kills else s.Hold(draw(2))
    yield by.move(now, draw)
    yield s.Withdraw()
    if draw(2):
        yield by.move(now, draw)
    yield s.Elect() if kills else s.Resume()
    yield by.move(now, draw)
    yield from by.catch_up(now)


def reach_rewrite(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Change a request while the controller is held in the middle of it."""
    yield by.create(now, draw, 2)
    if draw(2):
        yield by.move(now, draw)
    yield s.Hold(draw(4))
    yield by.move(now, draw)
    yield s.Rewrite(by.move(now, draw).targets)
    yield s.Resume()
    yield from by.catch_up(now)


def reach_default_minimum(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Ask for a move of a topic that does not say its minimum, once another default counts."""
    yield by.create(now, draw, 2)
    if draw(2):
        yield s.SetMinIsr("", 2)
        yield by.move(now, draw)
        yield from by.catch_up(now)
    yield s.SetMinIsr("", 3)
    yield by.move(now, draw)
    yield from by.catch_up(now)


def reach_own_minimum(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Ask for a move of a topic that says another minimum than the default."""
    yield by.create(now, draw, 2)
    own, default = (2, 3) if draw(2) else (3, 1 + draw(2))
    yield s.SetMinIsr("", default)
    yield s.SetMinIsr(by.TOPIC, own)
    yield by.move(now, draw)
    yield from by.catch_up(now)


def reach_growth(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Add partitions to a topic while one of its partitions moves."""
    yield by.create(now, draw, 2)
    if HOLD in now.capabilities and draw(2):
        yield s.Hold(1 + draw(3))
    yield by.move(now, draw)
    yield s.Grow(by.TOPIC, tuple(by.pick(now, draw, 1 + draw(2)) for _ in range(1 + draw(2))))
    yield s.Resume()
    yield from by.catch_up(now)


def reach_earlier_controller(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Supersede a controller that sleeps, wake it up, and let its successor die."""
    yield from reach_superseded_write(now, draw)
    if draw(2):
        yield s.Change(by.KEY, by.pick(now, draw, 2))
    yield s.Kill()
    yield s.Elect()
    yield from by.catch_up(now)


def reach_superseded_write(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Supersede a controller that sleeps in the middle of a plan, and wake it up."""
    yield by.create(now, draw, 2)
    yield s.Hold(draw(6))
    yield by.move(now, draw)
    yield s.Depose()
    yield s.Elect()
    yield s.Resume()


def reach_own_unclean(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Let the last in-sync replica die where a topic says otherwise of that than the default."""
    yield by.create(now, draw, 2 + draw(2))
    allowed, late = bool(draw(2)), draw(2)
    settings = [s.SetUnclean("", not allowed), s.SetUnclean(by.TOPIC, allowed)]
    yield from settings[late:]
    for follower in by.get_assigned(now)[1:]:
        yield s.Leave(follower, by.KEY)
    yield from settings[:late]
    yield s.Die(by.get_leader(now))
    yield s.SetUnclean(by.TOPIC, bool(draw(2)))


def reach_change_after_failover(now: ClusterMoment, draw: by.Draw) -> Iterator[s.ClusterStep]:
    """Change the target after a failover, with more replicas assigned than at first."""
    yield by.create(now, draw, 2)
    old = by.get_assigned(now)
    new = by.pick_others(now, draw, old, 2)
    yield s.Request(((by.KEY, new),))
    if draw(2):
        yield s.Join(new[0], by.KEY)
    yield from by.fail_over(draw)
    yield s.Change(by.KEY, by.pick(now, draw, 2))
    yield s.Resume()
    yield from by.catch_up(now)
