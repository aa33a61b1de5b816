"""The first reassignment in the gate: what only messages show of it, and what has to come up.

How far a move has come is in the controller's memory, and who was started or stopped is said to
brokers. ZooKeeper's log shows neither. The gate hears what brokers are told and knows when the
cluster rests, so it can judge the steps that the log leaves out. Where a client has put one target
in the place of another before the cluster rested, nobody knows which of them was taken up; such a
move is not judged at rest.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from reassure_conformance.adapter import BROKERS, HOLD, ISR, KILL, MESSAGES
from reassure_conformance.gate import steps as s
from reassure_conformance.gate.approaches import (
    KEY,
    TOPIC,
    Draw,
    create,
    fail_over,
    get_assigned,
    pick,
    pick_others,
)
from reassure_conformance.gate.events import (
    Event,
    History,
    Received,
    Rested,
    Situation,
    Took,
    Wrote,
    iterate_failovers,
    iterate_writes,
)
from reassure_conformance.gate.moment import Moment
from reassure_judge.judge import ClusterView
from reassure_judge.messages import Heard, Told
from reassure_model.outcome import Rejected
from reassure_model.partition import LeaderAndIsr, Partition
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import (
    NO_LEADER,
    REASSIGN_PARTITIONS,
    TOPICS,
    LegacyEntry,
    PartitionKey,
    ReplicaList,
)
from reassure_zookeeper.transactions import SetData

_COMMAND: Final = "it is the command's, and the gate writes the path itself"
UNCLAIMED: Final[Mapping[str, str]] = {
    "move.tool.creates-path": _COMMAND,
    "move.tool.one-at-a-time": _COMMAND,
    "move.tool.reports": _COMMAND,
    "move.tool.interrupt": _COMMAND,
    "move.failure.leader-does-not-serve": "brokers of the gate do what they are told",
    "election.preferred": "the text elects a preferred leader for no request that it names",
    "election.controlled-shutdown": "brokers of the gate stop without notice",
}
"""The clauses of the profile that nothing driven here claims, each with the reason."""
NEEDED_FOR: Final = dict.fromkeys(
    (
        "move.failover.no-needless-election",
        "move.failover.re-elects",
        "move.failover.resumes",
        "move.failure.never-in-sync",
        "move.listener.ignore-in-flight",
        "move.partition.self-transition",
        "move.selector.offline",
        "move.selector.reassigned",
        "move.step.listen",
        "move.step.start-new",
        "move.step.stop-old",
        "request.refuse.dead-replica",
        "shipped.entry.client-asks",
    ),
    (MESSAGES,),
)
"""What only who hears the messages can judge."""

Verdict = tuple[PartitionKey, str | Rejected]
_NOTHING: Final = Partition()


class _Past(NamedTuple):
    """What a transaction left of a partition."""

    zxid: int
    partition: Partition
    asked: frozenset[ReplicaList]
    """The targets that the acting controller may have taken up."""


class MoveWatch:
    """Follows the moves of one example by what is written and what brokers are told."""

    def __init__(self, readings: Readings, heard: Heard) -> None:
        self._readings = readings
        self._heard = heard
        """What brokers believe, kept by whoever hears for the gate."""
        self._view: ClusterView | None = None
        self._elected = False
        self._asked: dict[PartitionKey, list[ReplicaList]] = {}
        """The targets that the acting controller may have found in the old znode, in order."""
        self._dead: dict[PartitionKey, frozenset[int]] = {}
        """Of these, who was dead when it stood there first, and has not been back."""
        self._taken: dict[PartitionKey, ReplicaList] = {}
        """The target that it had taken up when the cluster rested last."""
        self._inherited: set[PartitionKey] = set()
        """What it found in the old znode when it took office."""
        self._found: dict[PartitionKey, ReplicaList] = {}
        """Of these, targets in sync of whom somebody had died, and not everybody."""
        self._told: defaultdict[tuple[PartitionKey, int], list[Told]] = defaultdict(list)
        self._past: defaultdict[PartitionKey, list[_Past]] = defaultdict(list)
        """Each partition as transactions have left it, in order."""
        self._ended: list[tuple[PartitionKey, int, frozenset[int]]] = []
        """Moves whose target was written since the last rest: partition, zxid, old replicas."""

    def take(self, event: Event) -> Iterator[Verdict]:
        """Yield the clauses that an event keeps, or how it breaks them."""
        match event:
            case Wrote() if event.transaction.error is None:
                self._view = event.after
                yield from self._take_write(event)
            case Received(told):
                key = (told.topic, told.partition)
                self._told[key, told.broker].append(told)
                for verdict in self._judge_stop(key, told):
                    yield key, verdict
            case Rested() if self._view is not None:
                yield from self._judge_ends()
                for key, partition in sorted(self._view.partitions.items()):
                    yield from self._judge_entry(key, partition, self._view)

    # What is written

    def _take_write(self, wrote: Wrote) -> Iterator[Verdict]:
        if wrote.elects:
            self._take_office(wrote.after)
        self._dead = {key: dead - wrote.after.live for key, dead in self._dead.items()}
        fenced = wrote.is_fenced
        partitions = {**wrote.before.partitions, **wrote.after.partitions}
        changed = {
            key: (before, after)
            for key in partitions
            if (before := wrote.before.partitions.get(key, _NOTHING))
            != (after := wrote.after.partitions.get(key, _NOTHING))
        }
        for key, (before, after) in changed.items():
            if fenced:
                yield from self._judge_assigned(key, before, after, wrote)
                for verdict in self._judge_state(key, before, after, wrote.before):
                    yield key, verdict
            yield from self._follow_entry(key, before, after, fenced=fenced, live=wrote.before.live)
            asked = frozenset(self._asked.get(key, ()))
            self._past[key].append(_Past(wrote.transaction.zxid, after, asked))
        if fenced:
            for op in wrote.transaction.ops:
                yield from _count_rewrites(op)

    def _take_office(self, view: ClusterView) -> None:
        entries = {
            key: p.reassignment.target
            for key, p in view.partitions.items()
            if p.reassignment is not None
        }
        self._asked = {key: [target] for key, target in entries.items()}
        # A target in sync is taken up whoever has died since.
        self._dead = {
            key: frozenset(target) - view.live
            for key, target in entries.items()
            if not set(target) <= set(getattr(view.partitions[key].state, "isr", ()))
        }
        self._taken.clear()
        self._inherited = set(entries) if self._elected else set()
        self._found = {
            key: target
            for key, target in entries.items()
            if self._elected and _is_found(view.partitions[key], target, view.live)
        }
        self._elected = True

    @clause("move.failover.re-elects", "request.refuse.dead-replica")
    def _follow_entry(
        self,
        key: PartitionKey,
        before: Partition,
        after: Partition,
        *,
        fenced: bool,
        live: frozenset[int],
    ) -> Iterator[Verdict]:
        old = None if before.reassignment is None else before.reassignment.target
        new = None if after.reassignment is None else after.reassignment.target
        found = self._found.get(key)
        isr = () if after.state is None else after.state.isr
        if found is not None and not fenced and (old != new or not set(found) <= set(isr)):
            del self._found[key]
        if new is not None and new != old:
            self._asked.setdefault(key, []).append(new)
            self._dead[key] = frozenset(new) - live
        if old is None or new is not None or not fenced:
            return
        if found is not None and self._readings.move_dead_at_failover == "re-elect":
            reason = f"the target {list(found)} was in sync, and the move was given up"
            broken = Rejected("move.failover.re-elects", reason)
            yield key, "move.failover.re-elects" if after.assigned == found else broken
        if after.assigned != old and not set(old) <= live:
            yield key, "request.refuse.dead-replica"
        self._forget(key)

    def _forget(self, key: PartitionKey) -> None:
        self._asked.pop(key, None)
        self._dead.pop(key, None)
        self._taken.pop(key, None)
        self._found.pop(key, None)
        self._inherited.discard(key)

    @clause("move.listener.ignore-in-flight", "move.step.listen", "move.failover.resumes")
    def _judge_assigned(
        self, key: PartitionKey, before: Partition, after: Partition, wrote: Wrote
    ) -> Iterator[Verdict]:
        """Judge a write of the assigned replicas, and what it is the end of."""
        if before.assigned is None or after.assigned in (None, before.assigned):
            return
        yield key, "assigned.change.only-as-due"
        yield key, "assigned.no-duplicates"
        asked, taken, written = self._asked.get(key, []), self._taken.get(key), after.assigned
        isr = () if before.state is None else before.state.isr
        if written not in asked or not (before.completing or set(written) <= set(isr)):
            return
        old = frozenset(before.assigned).difference(written) & wrote.before.live
        self._ended.append((key, wrote.transaction.zxid, old))
        if taken is not None:
            yield key, "move.step.listen"
        if key in self._inherited:
            yield key, "move.failover.resumes"
        if taken is not None and len(set(asked)) > 1:
            reason = f"{list(written)} was begun with while {list(taken)} was in flight"
            broken = Rejected("move.listener.ignore-in-flight", reason)
            yield key, broken if written != taken else "move.listener.ignore-in-flight"
        if after.reassignment is None:
            self._forget(key)

    @clause("move.selector.reassigned", "move.partition.self-transition", "move.selector.offline")
    @clause("move.failover.no-needless-election")
    def _judge_state(
        self, key: PartitionKey, before: Partition, after: Partition, view: ClusterView
    ) -> Iterator[str | Rejected]:
        """Judge a controller's write of leader and in-sync set."""
        live = view.live
        old, new = before.state, after.state
        if old is None or new is None:
            yield from () if new is None else ("partition.new.brought-online",)
            return
        if any(replica not in live for replica in {*old.isr} - {*new.isr}):
            yield "isr.remove.dead"
        targets = self._asked.get(key, [])
        led = old.leader in live
        kept = led and any(old.leader in t and set(t) <= set(old.isr) for t in targets)
        if new.leader == old.leader:
            if kept and key in self._inherited and set(new.isr) == set(old.isr):
                yield "move.failover.no-needless-election"
            return
        if new.leader == NO_LEADER:
            return
        yield "leader.assigned"
        if not led:
            yield "election.held"
            yield self._judge_offline(before, old, new, allowed=view.allows_unclean(key[0]))
            return
        if kept and key in self._inherited and all(old.leader in target for target in targets):
            reason = f"{old.leader} is alive and of the target, and {new.leader} was elected"
            yield Rejected("move.failover.no-needless-election", reason)
        if any(new.leader in target for target in targets):
            right = new.leader in old.isr
            reason = f"{new.leader} was elected; in sync {list(old.isr)}"
            yield (
                "move.selector.reassigned"
                if right
                else Rejected("move.selector.reassigned", reason)
            )
            yield "move.partition.self-transition"

    def _judge_offline(
        self, before: Partition, old: LeaderAndIsr, new: LeaderAndIsr, *, allowed: bool
    ) -> str | Rejected:
        """Judge who leads where nobody did; who is alive the log tells better.

        `allowed` says whether the topic's settings allow one that is not in sync.
        """
        last = allowed or self._readings.election_unclean == "last-resort"
        candidates = (*old.isr, *(before.assigned or ())) if last else old.isr
        if new.leader in candidates:
            return "move.selector.offline"
        reason = f"{new.leader} was elected, of {list(candidates)}"
        return Rejected("move.selector.offline", reason)

    # What brokers are told

    @clause("move.stop.recheck")
    def _judge_stop(self, key: PartitionKey, told: Told) -> Iterator[str | Rejected]:
        """Judge whether the controller has seen to it that an old replica may go."""
        seen = told.zxid
        if told.state is not None or seen is None:
            return
        past = [each for each in self._past[key] if each.zxid <= seen]
        looks = self._readings.move_recheck_before_stop == "yes"
        if not looks or not past or len(past[-1].asked) != 1:
            return
        state, (target,) = past[-1].partition.state, past[-1].asked
        if state is None or told.broker in target:
            return
        lacking = [replica for replica in target if replica not in state.isr]
        if lacking or state.leader not in target:
            reason = f"{told.broker} was stopped; {state.leader} led, not in sync were {lacking}"
            yield Rejected("move.stop.recheck", reason)
        else:
            yield "move.stop.recheck"

    # What has come about at rest

    @clause("move.step.stop-old", "move.step.write-assigned")
    def _judge_ends(self) -> Iterator[Verdict]:
        """Judge whether the old replicas were stopped before the target was written."""
        for key, zxid, old in self._ended:
            for broker in sorted(old):
                told = self._told[key, broker]
                before = [each for each in told if each.zxid is not None and each.zxid < zxid]
                stopped = any(each.state is None and each.delete for each in told)
                if before and before[-1].state is None:
                    yield key, "move.step.stop-old"
                elif stopped:
                    reason = f"broker {broker} was stopped after the target was assigned"
                    yield key, Rejected("move.step.write-assigned", reason)
                else:
                    reason = f"broker {broker} is assigned no more and was not told to stop"
                    yield key, Rejected("move.step.stop-old", reason)
        self._ended.clear()

    @clause("move.listener.refuse-missing", "move.listener.refuse-same", "move.step.listen")
    @clause("move.step.remove-path", "move.failover.resumes", "move.listener.refuse-dead")
    def _judge_entry(
        self, key: PartitionKey, partition: Partition, view: ClusterView
    ) -> Iterator[Verdict]:
        """Judge what the old znode still names though the controller rests."""
        flight, state = partition.reassignment, partition.state
        if flight is None:
            return
        target, live = flight.target, view.live
        asked = set(self._asked.get(key, [target]))
        if len(asked) == 1:
            self._taken.setdefault(key, target)
        if partition.assigned is None:
            yield key, Rejected("move.listener.refuse-missing", "there is no such partition")
        if partition.assigned is None or state is None or len(asked) > 1:
            return
        same = partition.assigned == target or (
            self._readings.move_same_replicas == "as-set" and set(partition.assigned) == set(target)
        )
        in_sync = set(target) <= set(state.isr)
        if in_sync and not live.isdisjoint(target):
            late = "move.failover.resumes" if key in self._inherited else "move.step.listen"
            reason = f"the target {list(target)} is in sync, assigned {list(partition.assigned)}"
            yield key, Rejected("move.step.remove-path" if same else late, reason)
        elif same and self._readings.move_expand_first == "no":
            yield key, Rejected("move.listener.refuse-same", f"{list(target)} is assigned")
        elif self._dead.get(key) and self._readings.target_dead_replica == "refuse":
            reason = f"{sorted(self._dead[key])} are dead since it was asked for"
            yield key, Rejected("move.listener.refuse-dead", reason)
        elif not partition.completing:
            for verdict in self._judge_waiting(key, partition, state, live):
                yield key, verdict

    @clause("move.step.start-new", "move.failure.never-in-sync")
    def _judge_waiting(
        self, key: PartitionKey, partition: Partition, state: LeaderAndIsr, live: frozenset[int]
    ) -> Iterator[str | Rejected]:
        """Judge that the target was started, and that the old replicas go on."""
        assert partition.reassignment is not None
        target = partition.reassignment.target
        waited = [replica for replica in target if replica in live and replica not in state.isr]
        for replica in waited:
            known = self._heard.find(replica, key)
            started = known is not None and known.leader_epoch == state.leader_epoch
            reason = f"{replica} was not told that it follows {state.leader}"
            yield "move.step.start-new" if started else Rejected("move.step.start-new", reason)
        old = [one for one in partition.assigned or () if one not in target and one in live]
        stopped = [one for one in old if self._heard.find(one, key) is None]
        if state.leader in live and stopped:
            reason = f"the target is not in sync, and {stopped} were stopped"
            yield Rejected("move.failure.never-in-sync", reason)
        elif waited:
            yield "move.failure.never-in-sync"
            if key in self._inherited:
                yield "move.failover.resumes"


def _is_found(partition: Partition, target: ReplicaList, live: frozenset[int]) -> bool:
    """Whether a controller that takes office is to end the move though somebody has died."""
    state = partition.state
    if state is None or partition.assigned in (None, target) or not set(target) <= set(state.isr):
        return False
    lost = state.leader not in live or not set(target) <= live
    return lost and not live.isdisjoint(target)


def _count_rewrites(op: object) -> Iterator[Verdict]:
    """Yield what a controller keeps by leaving the rest of a znode as it is."""
    if not isinstance(op, SetData):
        return
    if op.path.endswith(REASSIGN_PARTITIONS):
        yield ("", -1), "shipped.entry.client-asks"
    if op.path.rpartition("/")[0].endswith(TOPICS):
        yield ("", -1), "topic.content-kept"
        yield ("", -1), "topic.partitions-kept"


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


def _count_heirs(history: History) -> int:
    """Count elections at which a target is in flight that is not in sync."""
    return sum(
        p.state is not None and not set(p.reassignment.target) <= set(p.state.isr)
        for _, wrote in iterate_failovers(history)
        for p in wrote.after.partitions.values()
        if p.reassignment is not None
    )


def _count_found(history: History) -> int:
    """Count elections that find a target in sync of whom somebody has died."""
    return sum(
        _is_found(p, p.reassignment.target, wrote.after.live)
        for _, wrote in iterate_failovers(history)
        for p in wrote.after.partitions.values()
        if p.reassignment is not None
    )


def _count_kept_leaders(history: History) -> int:
    """Count elections of a controller that find a live replica of a target in sync in the lead."""
    return sum(
        p.state is not None
        and p.state.leader in {*p.reassignment.target} & wrote.after.live
        and {*p.reassignment.target} <= {*p.state.isr}
        for _, wrote in iterate_failovers(history)
        for p in wrote.after.partitions.values()
        if p.reassignment is not None
    )


def _count_asked(history: History, counts: Callable[[s.Step, ClusterView], bool]) -> int:
    """Count the steps of clients that count, given what ZooKeeper held before them."""
    found, view = 0, None
    for event in history:
        if isinstance(event, Wrote):
            view = event.after
        elif isinstance(event, Took) and event.result == "ok" and view is not None:
            found += counts(event.step, view)
    return found


def _is_overwritten(step: s.Step, view: ClusterView) -> bool:
    """Whether a client asks for another target where one is in flight."""
    flights = {key: p.reassignment for key, p in view.partitions.items()}
    asked = step.entries if isinstance(step, s.WriteOld) else ()
    return any(
        (flight := flights.get(entry.key)) is not None and flight.target != entry.target
        for entry in asked
    )


def _is_interrupted(step: s.Step, view: ClusterView) -> bool:
    flights = [p for p in view.partitions.values() if p.reassignment is not None]
    return isinstance(step, s.DeleteOld) and bool(flights)


def _asks_nothing(step: s.Step, view: ClusterView) -> bool:
    asked = step.entries if isinstance(step, s.WriteOld) else ()
    found = ((view.partitions.get(entry.key, _NOTHING), entry.target) for entry in asked)
    return any(p.reassignment is None and p.assigned == target for p, target in found)


def _asks_for_the_dead(step: s.Step, view: ClusterView) -> bool:
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


def ask(now: Moment, draw: Draw, *, than: ReplicaList = (), keep: bool = True) -> s.WriteOld:
    """Ask for a target with a replica that is not assigned, and none of these."""
    assigned = get_assigned(now)
    new = pick_others(now, draw, (*assigned, *than), 1 + draw(2))
    kept = assigned[draw(len(assigned))] if keep and draw(2) else None
    return s.WriteOld((LegacyEntry(KEY, new if kept is None else (*new, kept)),))


def _join(now: Moment, target: ReplicaList) -> Iterator[s.Step]:
    for replica in target:
        if (replica, KEY) in now.joinable():
            yield s.Join(replica, KEY)


def reach_move(now: Moment, draw: Draw) -> Iterator[s.Step]:
    """Move a partition, perhaps with others beside it or a topic that grows."""
    yield create(now, draw, 2, partitions=1 + draw(2))
    first = ask(now, draw)
    beside = (LegacyEntry((TOPIC, 1), pick(now, draw, 2)),) if draw(2) else ()
    yield s.WriteOld((*first.entries, *beside))
    if draw(2):
        yield s.Grow(TOPIC, (pick(now, draw, 2),))
    yield from _join(now, first.entries[0].target)


def reach_heir(now: Moment, draw: Draw) -> Iterator[s.Step]:
    """Let the controller die while it waits, or before it has started anybody."""
    yield create(now, draw, 2)
    if HOLD in now.capabilities and draw(2):
        yield s.Hold(draw(4))
    asked = ask(now, draw)
    yield asked
    yield from fail_over(draw)
    yield s.Resume()
    yield from _join(now, asked.entries[0].target)


def reach_found(now: Moment, draw: Draw) -> Iterator[s.Step]:
    """Let somebody of a target in sync die together with the controller."""
    yield create(now, draw, 2)
    new = pick_others(now, draw, get_assigned(now), 2)
    yield s.WriteOld((LegacyEntry(KEY, (*new, get_assigned(now)[0])),))
    yield from _join(now, new[1:])
    yield s.Hold(draw(5))
    yield from _join(now, new)
    yield s.Die((new[0], get_assigned(now)[0])[draw(2)])
    yield s.Kill()
    yield s.Elect()
    yield s.Resume()


def reach_kept_leader(now: Moment, draw: Draw) -> Iterator[s.Step]:
    """Let the controller die behind step 4, or where the leader is of the target."""
    yield create(now, draw, 2)
    new = pick_others(now, draw, get_assigned(now))
    target = new if draw(2) else (get_assigned(now)[0], *new)
    yield s.WriteOld((LegacyEntry(KEY, target),))
    yield s.Hold(1 + draw(4))
    yield from _join(now, target)
    yield s.Kill()
    yield s.Elect()
    yield s.Resume()


def reach_overwriting(now: Moment, draw: Draw) -> Iterator[s.Step]:
    """Write another target over the one that is in flight."""
    yield create(now, draw, 1)
    first = ask(now, draw)
    target = first.entries[0].target
    yield first
    yield ask(now, draw, than=target[:1])
    yield from _join(now, target)


def reach_interruption(now: Moment, draw: Draw) -> Iterator[s.Step]:
    """Interrupt the command that waits, and perhaps ask again."""
    yield create(now, draw, 2)
    first = ask(now, draw)
    yield first
    yield s.DeleteOld()
    if KILL in now.capabilities and draw(2):
        yield from fail_over(draw)
        yield s.Resume()
    if draw(2):
        yield ask(now, draw)
    yield from _join(now, first.entries[0].target)


def reach_refusal(now: Moment, draw: Draw) -> Iterator[s.Step]:
    """Ask for what is assigned, or for who is dead."""
    yield create(now, draw, 2)
    assigned = get_assigned(now)
    other = pick_others(now, draw, assigned)
    yield s.WriteOld((LegacyEntry(KEY, assigned),))
    yield s.Die(other[0])
    yield s.WriteOld((LegacyEntry(KEY, (assigned[draw(2)], *other)),))


def reach_last_resort(now: Moment, draw: Draw) -> Iterator[s.Step]:
    """Let the last in-sync replica die beside one that is assigned and alive."""
    yield create(now, draw, 2)
    first, second = get_assigned(now)
    yield s.Leave(second, KEY)
    if draw(2):
        yield ask(now, draw)
    yield s.Die(first)


# -- the list

_MOVE: Final = "kafka-42"
_DIES: Final = frozenset({BROKERS, HOLD, ISR, KILL})

SITUATIONS: Final = (
    Situation(
        "move-ended",
        "A move from the path ends, and somebody new is there for somebody old.",
        ("move.step.listen", "move.step.start-new", "move.step.stop-old"),
        _count_completions,
        reach_move,
        frozenset({ISR}),
        _MOVE,
    ),
    Situation(
        "move-inherited",
        "A new controller finds a target on the path that is not in sync.",
        ("move.failover.resumes", "move.failure.never-in-sync"),
        _count_heirs,
        reach_heir,
        frozenset({KILL}),
        _MOVE,
    ),
    Situation(
        "target-found-in-sync",
        "A new controller finds a target in sync of whom somebody has died.",
        ("move.failover.re-elects",),
        _count_found,
        reach_found,
        _DIES,
        _MOVE,
    ),
    Situation(
        "leader-found-in-target",
        "A new controller finds a target in sync, and a live replica of it in the lead.",
        ("move.failover.no-needless-election",),
        _count_kept_leaders,
        reach_kept_leader,
        frozenset({HOLD, ISR, KILL}),
        _MOVE,
    ),
    Situation(
        "path-overwritten",
        "A client writes another target over the one that is in flight.",
        ("move.listener.ignore-in-flight",),
        lambda history: _count_asked(history, _is_overwritten),
        reach_overwriting,
        frozenset({ISR}),
        _MOVE,
    ),
    Situation(
        "command-interrupted",
        "A client removes the path while a move is in flight.",
        ("assigned.change.only-as-due",),
        lambda history: _count_asked(history, _is_interrupted),
        reach_interruption,
        protocol=_MOVE,
    ),
    Situation(
        "nothing-asked",
        "A client asks for what is assigned already.",
        ("move.listener.refuse-same",),
        lambda history: _count_asked(history, _asks_nothing),
        reach_refusal,
        frozenset({BROKERS}),
        _MOVE,
    ),
    Situation(
        "dead-asked",
        "A client asks for a replica on a broker that is not alive.",
        ("move.listener.refuse-dead", "request.refuse.dead-replica"),
        lambda history: _count_asked(history, _asks_for_the_dead),
        reach_refusal,
        frozenset({BROKERS}),
        _MOVE,
    ),
    Situation(
        "last-resort",
        "A leader dies, and nobody who is assigned and alive is in sync.",
        ("move.selector.offline",),
        _count_last_resorts,
        reach_last_resort,
        frozenset({BROKERS, ISR}),
        _MOVE,
    ),
)
"""What has to come up where moves are asked for by the first text."""
