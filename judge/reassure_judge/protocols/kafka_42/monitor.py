"""The first reassignment as it is told to brokers: what ZooKeeper's log does not show of a move.

How far a move has come is in the controller's memory, and who was started or stopped is said to
brokers. Whoever knows when the cluster rests can judge most of the steps that the log leaves out,
and who hears what brokers are told the rest of them. Where a client has put one target in the place
of another before the cluster rested, nobody knows which of them was taken up; such a move is not
judged at rest.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from reassure_judge.cross_partition import NO_KEY
from reassure_judge.live_events import ClusterView, Event, Received, Rested, Wrote
from reassure_judge.messages import Told
from reassure_judge.monitors import Driven, Monitor, Verdict, decide
from reassure_model.partition import LeaderAndIsr, Partition, from_znode
from reassure_spec.clauses import clause
from reassure_spec.znodes import NO_LEADER, REASSIGN_PARTITIONS, PartitionKey, ReplicaList
from reassure_zookeeper.transactions import SetData

_NOTHING: Final = Partition()


class MoveMonitor(Monitor):
    """Follows the moves of one cluster by what is written and what brokers are told."""

    def __init__(self, driven: Driven) -> None:
        super().__init__(driven)
        self._readings = driven.readings
        self._heard = driven.heard
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
        self._past: defaultdict[PartitionKey, list[tuple[int, frozenset[ReplicaList]]]]
        """By partition, each transaction that changed it, and what was asked for behind that."""
        self._past = defaultdict(list)
        self._unheard: set[int] = set()
        """Brokers that died or came since the last rest: a controller may not have heard of it, or
        takes who is back for dead as it learns of both at once."""
        self._ended: list[tuple[PartitionKey, int, frozenset[int]]] = []
        """Moves whose target was written since the last rest: partition, zxid, old replicas."""
        self._elected_within: dict[PartitionKey, LeaderAndIsr] = {}
        """By partition, the state by which the leadership went to the target last."""

    @property
    def admitted(self) -> Mapping[PartitionKey, ReplicaList]:
        """The targets that were taken up, and of which leaders were told.

        Whose move began under another controller may go by what that one told it (finding zk-11).
        """
        return {key: target for key, target in self._taken.items() if key not in self._inherited}

    def take(self, event: Event) -> Iterator[Verdict]:
        """Yield the clauses that an event keeps, or how it breaks them."""
        match event:
            case Wrote() if event.transaction.error is None:
                yield from self._take_write(event)
            case Received(told):
                yield from self._judge_stop((told.topic, told.partition), told)
            case Rested(view):
                self._unheard.clear()
                yield from self._judge_ends()
                for key, partition in sorted(view.partitions.items()):
                    yield from self._judge_entry(key, partition, view)

    # What is written

    def _take_write(self, wrote: Wrote) -> Iterator[Verdict]:
        if wrote.elects:
            self._take_office(wrote.after)
        self._unheard |= wrote.before.live ^ wrote.after.live
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
                yield from self._judge_state(key, before, after, wrote.before)
            yield from self._follow_entry(key, before, after, fenced=fenced, live=wrote.before.live)
            asked = frozenset(self._asked.get(key, ()))
            self._past[key].append((wrote.transaction.zxid, asked))
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
        self._elected_within.clear()
        self._inherited = set(entries) if self._elected else set()
        self._found = {
            key: target
            for key, target in entries.items()
            if self._elected and is_found(view.partitions[key], target, view.live)
        }
        self._elected = True

    @clause("move.failover.re-elects")
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
            if key not in self._asked:  # else it may be in flight, whoever died since
                self._dead[key] = frozenset(new) - live
            self._asked.setdefault(key, []).append(new)
        if old is None or new is not None or not fenced:
            return
        if found is not None and self._readings.move_dead_at_failover == "re-elect":
            reason = f"the target {list(found)} was in sync, and the move was given up"
            yield decide(key, "move.failover.re-elects", after.assigned == found or reason)
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
        asked, taken, written = self._asked.get(key, []), self._taken.get(key), after.assigned
        isr = () if before.state is None else before.state.isr
        if written not in asked or not (before.completing or set(written) <= set(isr)):
            return
        known = wrote.before.live - self._unheard
        old = frozenset(before.assigned).difference(written) & known
        self._ended.append((key, wrote.transaction.zxid, old))
        if taken is not None:
            yield Verdict(key, "move.step.listen")
        if key in self._inherited:
            yield Verdict(key, "move.failover.resumes")
        if taken is not None and len(set(asked)) > 1:
            reason = f"{list(written)} was begun with while {list(taken)} was in flight"
            yield decide(key, "move.listener.ignore-in-flight", written == taken or reason)
        if after.reassignment is None:
            self._forget(key)

    @clause("move.selector.reassigned", "move.partition.self-transition", "move.selector.offline")
    @clause("move.failover.no-needless-election")
    def _judge_state(
        self, key: PartitionKey, before: Partition, after: Partition, view: ClusterView
    ) -> Iterator[Verdict]:
        """Judge a controller's write of leader and in-sync set."""
        live = view.live
        old, new = before.state, after.state
        if old is None or new is None:
            return
        targets = self._asked.get(key, [])
        led = old.leader in live and old.leader not in self._unheard
        kept = led and any(old.leader in t and set(t) <= set(old.isr) for t in targets)
        if new.leader == old.leader:
            if kept and key in self._inherited and set(new.isr) == set(old.isr):
                yield Verdict(key, "move.failover.no-needless-election")
            return
        if new.leader == NO_LEADER:
            return
        if not led:
            # Who is alive the log tells better.
            unclean = self._readings.election_unclean == "last-resort"
            last = unclean or view.allows_unclean(key[0])
            candidates = (*old.isr, *(before.assigned or ())) if last else old.isr
            reason = f"{new.leader} was elected, of {list(candidates)}"
            yield decide(key, "move.selector.offline", new.leader in candidates or reason)
            return
        if kept and key in self._inherited and all(old.leader in target for target in targets):
            reason = f"{old.leader} is alive and of the target, and {new.leader} was elected"
            yield decide(key, "move.failover.no-needless-election", reason)
        if any(new.leader in target for target in targets):
            reason = f"{new.leader} was elected; in sync {list(old.isr)}"
            yield decide(key, "move.selector.reassigned", new.leader in old.isr or reason)
            yield Verdict(key, "move.partition.self-transition")
            self._elected_within[key] = new

    # What brokers are told

    @clause("move.stop.recheck")
    def _judge_stop(self, key: PartitionKey, told: Told) -> Iterator[Verdict]:
        """Judge whether the controller has seen to it that an old replica may go."""
        seen = told.zxid
        if told.state is not None or seen is None:
            return
        past = [asked for zxid, asked in self._past[key] if zxid <= seen]
        looks = self._readings.move_recheck_before_stop == "yes"
        if not looks or not past or len(past[-1]) != 1:
            return
        state, (target,) = self.driven.stored.find_state(key, seen), past[-1]
        if state is None or told.broker in target:
            return
        lacking = [replica for replica in target if replica not in state.isr]
        reason = f"{told.broker} was stopped; {state.leader} led, not in sync were {lacking}"
        kept = not lacking and state.leader in target
        yield decide(key, "move.stop.recheck", kept or reason)

    # What has come about at rest

    @clause("move.step.stop-old", "move.step.write-assigned")
    @clause("move.failure.leader-change-unanswered")
    def _judge_ends(self) -> Iterator[Verdict]:
        """Judge whether the old replicas were stopped before the target was written."""
        for key, zxid, old in self._ended:
            for broker in sorted(old) if self.driven.hears else ():
                told = self._heard.list_told(key, broker)
                before = [each for each in told if each.zxid is not None and each.zxid < zxid]
                stopped = any(each.state is None and each.delete for each in told)
                if stopped and not (before and before[-1].state is None):
                    reason = f"broker {broker} was stopped after the target was assigned"
                    yield decide(key, "move.step.write-assigned", reason)
                else:
                    reason = f"broker {broker} is assigned no more and was not told to stop"
                    kept = bool(before) and before[-1].state is None
                    yield decide(key, "move.step.stop-old", kept or reason)
            if self._is_unanswered(key):
                yield Verdict(key, "move.failure.leader-change-unanswered")
            self._elected_within.pop(key, None)
        self._ended.clear()

    def _is_unanswered(self, key: PartitionKey) -> bool:
        """Whether the leader of a move was told that it leads, and has not answered."""
        state = self._elected_within.get(key)
        told = () if state is None else self._heard.list_told(key, state.leader)
        return any(
            each.answered is False and each.state is not None and from_znode(each.state) == state
            for each in told
        )

    @clause("move.listener.refuse-missing", "move.listener.refuse-same", "move.step.listen")
    @clause("move.step.remove-path", "move.failover.resumes", "move.listener.refuse-dead")
    @clause("move.failure.leader-change-unanswered")
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
            yield decide(key, "move.listener.refuse-missing", "there is no such partition")
        if partition.assigned is None or state is None or len(asked) > 1:
            return
        same = partition.assigned == target or (
            self._readings.move_same_replicas == "as-set" and set(partition.assigned) == set(target)
        )
        in_sync = set(target) <= set(state.isr)
        if in_sync and not live.isdisjoint(target):
            late = "move.failover.resumes" if key in self._inherited else "move.step.listen"
            if self._is_unanswered(key):
                late = "move.failure.leader-change-unanswered"
            reason = f"the target {list(target)} is in sync, assigned {list(partition.assigned)}"
            yield decide(key, "move.step.remove-path" if same else late, reason)
        elif same and self._readings.move_expand_first == "no":
            yield decide(key, "move.listener.refuse-same", f"{list(target)} is assigned")
        elif self._dead.get(key) and self._readings.target_dead_replica == "refuse":
            reason = f"{sorted(self._dead[key])} are dead since it was asked for"
            yield decide(key, "move.listener.refuse-dead", reason)
        elif not partition.completing:
            yield from self._judge_waiting(key, partition, state, live)

    @clause("move.step.start-new", "move.failure.never-in-sync")
    def _judge_waiting(
        self, key: PartitionKey, partition: Partition, state: LeaderAndIsr, live: frozenset[int]
    ) -> Iterator[Verdict]:
        """Judge that the target was started, and that the old replicas go on."""
        assert partition.reassignment is not None
        target = partition.reassignment.target
        waited = [replica for replica in target if replica in live and replica not in state.isr]
        if waited and key in self._inherited:
            yield Verdict(key, "move.failover.resumes")
        if not self.driven.hears:
            return
        for replica in waited:
            known = self._heard.find(replica, key)
            started = known is not None and known.leader_epoch == state.leader_epoch
            reason = f"{replica} was not told that it follows {state.leader}"
            yield decide(key, "move.step.start-new", started or reason)
        old = [one for one in partition.assigned or () if one not in target and one in live]
        stopped = [one for one in old if self._heard.find(one, key) is None]
        if state.leader in live and stopped:
            reason = f"the target is not in sync, and {stopped} were stopped"
            yield decide(key, "move.failure.never-in-sync", reason)
        elif waited:
            yield Verdict(key, "move.failure.never-in-sync")


def is_found(partition: Partition, target: ReplicaList, live: frozenset[int]) -> bool:
    """Whether a controller that takes office is to end the move though somebody has died."""
    state = partition.state
    if state is None or partition.assigned in (None, target) or not set(target) <= set(state.isr):
        return False
    lost = state.leader not in live or not set(target) <= live
    return lost and not live.isdisjoint(target)


def _count_rewrites(op: object) -> Iterator[Verdict]:
    """Yield what a controller keeps by leaving the rest of a znode as it is."""
    if isinstance(op, SetData) and op.path.endswith(REASSIGN_PARTITIONS):
        yield Verdict(NO_KEY, "shipped.entry.client-asks")


MONITOR: Final = MoveMonitor
