"""The states that a controller says it takes replicas and partitions through.

They are in its memory; one that says where it takes them is held to the tables of the model
(`reassure_model.state_machines`), to what it tells brokers, and to what is stored when it rests.
"""

from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from typing import Final

from reassure_judge.live_events import ClusterView
from reassure_judge.messages import StoredStates, Told, ToldStates
from reassure_judge.monitors import Verdict, decide
from reassure_model.messages import list_kept
from reassure_model.outcome import Rejected
from reassure_model.state_machines import (
    PartitionState,
    ReplicaState,
    move_partition,
    move_replica,
)
from reassure_spec.clauses import clause
from reassure_spec.profiles import FIRST_STATES
from reassure_spec.znodes import PartitionKey, ReplicaList

_GONE: Final = ReplicaState.NON_EXISTENT


@dataclass(slots=True)
class StateJudge:
    """Follows the states that the controllers of one cluster say, each in its term."""

    profile: str
    stored: StoredStates
    _replicas: dict[tuple[int, PartitionKey], dict[int, ReplicaState]] = field(default_factory=dict)
    """By controller epoch and partition, the state of each replica that was said."""
    _partitions: dict[tuple[int, PartitionKey], PartitionState] = field(default_factory=dict)
    _started: set[tuple[int, PartitionKey, int]] = field(default_factory=set)
    """Replicas that were new in a term."""
    _raised: set[tuple[int, PartitionKey, int]] = field(default_factory=set)
    """Those of them that went online from there."""
    _settled: dict[PartitionKey, ReplicaList] = field(default_factory=dict)
    """Who was assigned when the cluster rested without a move last: no move has started these."""
    _stopped: set[tuple[int, PartitionKey, int]] = field(default_factory=set)
    """Replicas whose brokers were told in a term to delete them, and not to run them since."""

    @clause("replica.transition.valid-previous", "partition.transition.valid-previous")
    def take(self, said: ToldStates) -> Iterator[Verdict]:
        """Yield whether transitions lead from where the controller was, as the tables allow."""
        key, epoch = (said.topic, said.partition), said.controller_epoch
        replicas = self._replicas.setdefault((epoch, key), {})
        for who, before, after in said.moves:
            outcome: object
            if who is None:
                clause_id, name = "partition.transition.valid-previous", "the partition"
                known = self._partitions.get((epoch, key), PartitionState[before]).name
                self._partitions[epoch, key] = now = PartitionState[after]
                outcome = move_partition(PartitionState[known], now, self.profile)
                if now is PartitionState.NON_EXISTENT:
                    replicas.clear()
            else:
                clause_id, name = "replica.transition.valid-previous", f"replica {who}"
                known = replicas.get(who, ReplicaState[before]).name
                replicas[who] = state = ReplicaState[after]
                outcome = move_replica(ReplicaState[known], state, self.profile)
                at = (epoch, key, who)
                if state is ReplicaState.NEW:
                    self._started.add(at)
                if before == ReplicaState.NEW.name and state is ReplicaState.ONLINE:
                    self._raised.add(at)
            reason = f"{name} went from {before} to {after}, and was {known}"
            kept = known == before and not isinstance(outcome, Rejected)
            yield decide(key, clause_id, kept or reason)

    @clause("move.replica.new-follows", "move.replica.states")
    def judge(self, told: Told) -> Iterator[Verdict]:
        """Yield whether what a broker is told fits the state that its replica is said to be in."""
        key = (told.topic, told.partition)
        at = (told.controller_epoch, key, told.broker)
        if told.state is None and told.delete:
            self._stopped.add(at)
        elif told.state is not None:
            self._stopped.discard(at)
        states = self._replicas.get(at[:2])
        if told.state is None or states is None or self.profile not in FIRST_STATES:
            return
        now = states.get(told.broker)
        if told.is_new:
            reason = f"broker {told.broker} starts a replica that is said to be {now}"
            runs = now in (ReplicaState.NEW, ReplicaState.ONLINE)
            yield decide(key, "move.replica.states", runs or reason)
        if now is ReplicaState.NEW:
            follows = told.state.leader != told.broker
            reason = f"broker {told.broker} was told to lead, and its replica is new"
            yield decide(key, "move.replica.new-follows", follows or reason)

    @clause("drop.replica.states", "move.replica.states", "move.replica.online")
    def rest(self, view: ClusterView, deleting: Set[str]) -> Iterator[Verdict]:
        """Yield whether replicas are where they have to be, now that the cluster rests."""
        first, epoch = self.profile in FIRST_STATES, view.controller_epoch
        for key, partition in sorted(view.partitions.items()):
            states = self._replicas.get((epoch, key), {})
            if partition.assigned is None or key[0] in deleting:
                continue
            wanted = {*partition.assigned, *list_kept(partition)}
            in_sync = set(self.stored.list_in_sync(key))
            moves = partition.reassignment is not None
            if not moves:
                self._settled[key] = partition.assigned
            settled = self._settled.get(key, partition.assigned)
            for replica, state in sorted(states.items()):
                who = f"replica {replica} is said to be {state.name}"
                at = (epoch, key, replica)
                if replica not in wanted:
                    if at not in self._stopped:
                        continue
                    clause_id = "move.replica.states" if first else "drop.replica.states"
                    reason = f"{who}, and is not assigned any more"
                    yield decide(key, clause_id, state is _GONE or reason)
                elif first and replica in view.live and at in self._started:
                    online = state is ReplicaState.ONLINE
                    if moves and at in self._raised and replica not in in_sync.union(settled):
                        reason = f"{who}, and was never in sync"
                        yield decide(key, "move.replica.states", not online or reason)
                    elif not moves and in_sync.issuperset(partition.assigned):
                        # A move that nothing records any more may go on in memory.
                        reason = f"{who}, and its target is in sync"
                        yield decide(key, "move.replica.online", online or reason)
