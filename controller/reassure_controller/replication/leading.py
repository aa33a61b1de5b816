"""What a leader concludes: pseudo-ISR, high watermark and in-sync set, in this order.

A `Leadership` is one leader in one leader epoch; the functions return the next one. There is no
timer: `evaluate` is called after each fetch, and twice in each limit whether anybody fetches or
not (`replica`).

The document defines the in-sync set afresh at every moment. Brokers store it, since elections go by
what is stored: so here it is *proposed* (`propose_isr`), and is what it was until a conditional
write has succeeded. Between a proposal and its success the high watermark has to satisfy both sets
(reading `hw.over-stored-isr`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from reassure_controller.replication.followers import Follower, begin_follower, note_fetch
from reassure_controller.replication.rules import ReplicationRules
from reassure_spec.clauses import clause
from reassure_spec.znodes import ReplicaList


@dataclass(frozen=True, slots=True)
class Leadership:
    """One leader of one partition, in one leader epoch."""

    broker: int
    replicas: ReplicaList
    """The assigned replicas, the leader among them."""
    isr: ReplicaList
    """The stored in-sync set, as read or written last."""
    start: int
    """Where the leader's log ended when it was elected."""
    followers: Mapping[int, Follower]
    high_watermark: int
    pseudo_isr: ReplicaList
    attempted: ReplicaList = ()
    """A stored in-sync set that was written and not answered: it may be the stored one."""
    heard: frozenset[int] = frozenset()
    """Followers that have fetched in this leader epoch."""

    @property
    def is_settled(self) -> bool:
        """Whether those that keep up are the ones in sync, by a write that was answered."""
        return not self.attempted and {*self.pseudo_isr} == {*self.isr}


def begin(
    broker: int,
    replicas: ReplicaList,
    isr: ReplicaList,
    end: int,
    high_watermark: int,
    now_ms: int,
    rules: ReplicationRules,
) -> Leadership:
    """Return the leader as it begins, with the high watermark that it had as a follower."""
    followers = {
        one: begin_follower(one, isr, end, now_ms, rules) for one in replicas if one != broker
    }
    # By the rule before, the leader waits for the in-sync set itself.
    everybody = rules.readings.lag_initial == "now" and rules.rule == "lag"
    pseudo = replicas if everybody else isr
    pseudo = tuple(one for one in replicas if one in pseudo)
    return Leadership(
        broker, replicas, isr, end, MappingProxyType(followers), high_watermark, pseudo
    )


def note(
    leader: Leadership, follower: int, offset: int, end: int, now_ms: int, rules: ReplicationRules
) -> Leadership:
    """Note a follower's fetch from `offset`, while the leader's log ends at `end`."""
    noted = note_fetch(leader.followers[follower], offset, end, now_ms, rules)
    followers = MappingProxyType({**leader.followers, follower: noted})
    heard = leader.heard | {follower}
    if rules.rule == "before" and offset >= leader.high_watermark:
        # The rule that the document replaces lets a follower in by another test than the one that
        # puts it out, and what the leader waits for is the in-sync set itself.
        pseudo = (*leader.pseudo_isr, *{follower}.difference(leader.pseudo_isr))
        return replace(leader, followers=followers, heard=heard, pseudo_isr=pseudo)
    return replace(leader, followers=followers, heard=heard)


def evaluate(leader: Leadership, end: int, now_ms: int, rules: ReplicationRules) -> Leadership:
    """Return the leader after it has looked who keeps up and how far everybody has come."""
    close = _close_before if rules.rule == "before" else _close
    leader = replace(leader, pseudo_isr=close(leader, end, now_ms, rules))
    return replace(leader, high_watermark=_advance(leader, end, rules))


@clause("isr.pseudo.by-lag", "lag.leader-none", "lag.estimate-never-short")
def _close(leader: Leadership, end: int, now_ms: int, rules: ReplicationRules) -> ReplicaList:
    """Return the pseudo-ISR: whoever lags no more than the limit, and the leader itself."""
    limit = rules.lag_ms_max
    return tuple(
        one
        for one in leader.replicas
        if one == leader.broker or leader.followers[one].lag_ms(now_ms) <= limit
    )


def _close_before(
    leader: Leadership, end: int, now_ms: int, rules: ReplicationRules
) -> ReplicaList:
    """Return whom the leader waits for by the rule before: who was not behind for one limit."""

    def is_close(follower: Follower) -> bool:
        return follower.offset >= end or follower.lag_ms(now_ms) <= rules.lag_ms_max

    return tuple(
        one
        for one in leader.replicas
        if one == leader.broker or (one in leader.pseudo_isr and is_close(leader.followers[one]))
    )


@clause("hw.minimum-of-pseudo-isr", "hw.over-stored-isr", "hw.never-decreases")
@clause("hw.at-most-leader-end")
def _advance(leader: Leadership, end: int, rules: ReplicationRules) -> int:
    """Return the high watermark: as far as everybody has come who is waited for, never back."""
    waited = {*leader.pseudo_isr, leader.broker}
    if rules.readings.hw_over_stored_isr == "yes":
        waited |= {*leader.isr, *leader.attempted}
    ends = [leader.followers[one].offset for one in waited if one in leader.followers]
    reached = min([end, *ends])
    return max(leader.high_watermark, reached)


@clause("isr.entry.at-high-watermark", "isr.entry.end-at-election", "isr.lagging-leaves")
@clause("isr.member.at-or-above-hw", "isr.change.leader-kept")
def propose_isr(leader: Leadership, rules: ReplicationRules) -> ReplicaList:
    """Return the in-sync set that should be stored; the stored one where it should stay.

    Members of the pseudo-ISR stay; others leave. Who comes in has reached the high watermark, and
    what the leader had at its election: its high watermark may be older than what was shown before.
    """
    least = leader.high_watermark
    if rules.readings.isr_entry == "end-at-election":
        least = max(least, leader.start)
    stay = tuple(one for one in leader.isr if one == leader.broker or one in leader.pseudo_isr)
    come = tuple(
        one
        for one in leader.replicas
        if one not in stay
        and one in leader.pseudo_isr
        and one in leader.heard
        and leader.followers[one].offset >= least
    )
    return (*stay, *come)


def may_enter(leader: Leadership, follower: int, offset: int, rules: ReplicationRules) -> bool:
    """Whether a fetch from `offset` could bring a follower into the stored in-sync set."""
    return follower not in leader.isr and offset >= leader.high_watermark


@clause("hw.served-below", "hw.served-from-end-at-election")
def find_shown(leader: Leadership, end: int, rules: ReplicationRules) -> int | None:
    """Return up to where consumers may read, or None while a new leader cannot say.

    Reading `hw.served-from`: leaders before may have shown more than this one's high watermark, but
    never more than it had at its election.
    """
    from_start = rules.readings.hw_served_from == "end-at-election"
    return None if from_start and leader.high_watermark < leader.start else leader.high_watermark
