"""Each field of what brokers were told, held against what its sender knew by then.

The rule for a field stands in the model (`reassure_model.messages`). Here is kept what the rules
ask for: who was elected, which lives brokers have had, how states were numbered, who was assigned
by whom, and what each broker was told before. A field that is not given is not judged.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from reassure_judge.live_events import Wrote
from reassure_judge.messages import Told
from reassure_model.messages import (
    ToldReplica,
    are_assigned,
    is_life,
    is_rightly_new,
    is_sender,
    is_stop_epoch,
    is_version,
    list_kept,
)
from reassure_model.outcome import Rejected
from reassure_model.partition import LeaderAndIsr, Partition, from_znode
from reassure_spec.znodes import BROKER_IDS, PartitionKey, parse_number, state_path
from reassure_zookeeper.transactions import Create, SetData

_Replica = tuple[PartitionKey, int]


@dataclass(slots=True)
class FieldJudge:
    """Follows one cluster, and judges the fields of each message that a broker of it received."""

    chroot: str
    _terms: list[tuple[int, int, int | None]] = field(default_factory=list)
    """Each controller epoch: the transaction that wrote it, the epoch, and who was elected."""
    _lives: dict[int, list[int]] = field(default_factory=dict)
    """By broker the transactions that registered it, which are its broker epochs."""
    _versions: dict[PartitionKey, list[tuple[int, LeaderAndIsr, int]]] = field(default_factory=dict)
    """By partition each state: the transaction that wrote it, and the version that it got."""
    _past: dict[PartitionKey, list[tuple[int, Partition]]] = field(default_factory=dict)
    """By partition how it stood after each transaction that changed it."""
    _added: dict[_Replica, tuple[int, int]] = field(default_factory=dict)
    """By replica the transaction that assigned it, or made the state, and the epoch it is of."""
    _rests: list[int] = field(default_factory=list)
    """The last transactions before the cluster came to rest."""
    _zxid: int = 0
    _told: dict[_Replica, int] = field(default_factory=dict)
    """By replica that was told of and not to be deleted: the controller epoch that did so last, 0
    where it is assigned no more since."""

    def note(self, wrote: Wrote) -> None:
        """Note what a transaction left."""
        transaction, after = wrote.transaction, wrote.after
        if transaction.error is not None:
            return
        self._zxid = zxid = transaction.zxid
        epoch = after.controller_epoch
        if epoch and (not self._terms or self._terms[-1][1] != epoch):
            self._terms.append((zxid, epoch, after.controller))
        versions: dict[str, int] = {}
        for op in transaction.ops:
            if not isinstance(op, Create | SetData):
                continue
            path = op.path.removeprefix(self.chroot)
            versions[path] = op.version if isinstance(op, SetData) else 0
            above, _, name = path.rpartition("/")
            broker = parse_number(name) if above == BROKER_IDS else None
            if broker is not None and isinstance(op, Create):
                self._lives.setdefault(broker, []).append(zxid)
        for key, partition in after.partitions.items():
            before = wrote.before.partitions.get(key)
            version = versions.get(state_path(*key))
            if partition.state is not None and version is not None:
                self._versions.setdefault(key, []).append((zxid, partition.state, version))
            if before == partition:
                continue
            self._past.setdefault(key, []).append((zxid, partition))
            self._forget_removed(key, before, partition)
            started: Iterable[int] = partition.assigned or ()
            if before is not None and before.state is not None:
                started = set(started).difference(before.assigned or (), before.state.isr)
            elif partition.state is not None:
                started = partition.state.isr
            self._added |= {(key, broker): (zxid, epoch) for broker in started}

    def _forget_removed(
        self, key: PartitionKey, before: Partition | None, after: Partition
    ) -> None:
        """Forget who is taken away: it may have its replica still, but not for its controller.

        One of the target that is dropped, while its broker is down, is assigned once more.
        """
        if before is None:
            return
        for broker in _list_replicas(before) - _list_replicas(after):
            self._told.pop((key, broker), None)
            self._added.pop((key, broker), None)
        for broker in set(before.assigned or ()).difference(after.assigned or ()):
            if (key, broker) in self._told:
                self._told[key, broker] = 0

    def note_rest(self) -> None:
        """Note that the cluster rests, so that the controller has seen all that is there."""
        if self._zxid not in self._rests[-1:]:
            self._rests.append(self._zxid)

    def judge(self, told: Told, *, deleting: bool) -> Iterator[str | Rejected]:
        """Yield which clauses a message keeps, and which it breaks; `deleting`: its topic goes.

        Messages are handed over in the order in which they were received.
        """
        seen, key = told.zxid, (told.topic, told.partition)
        if seen is None:
            return
        terms = [(epoch, who) for zxid, epoch, who in self._terms if zxid <= seen]
        kept = is_sender(told.controller, told.controller_epoch, terms)
        sender = "a controller" if told.controller is None else f"controller {told.controller}"
        yield _decide(
            told,
            "message.sender",
            kept,
            f"it says {sender} sends it in epoch {told.controller_epoch}",
        )
        if not kept or terms[-1][0] > told.controller_epoch:
            return  # nobody obeys it
        if told.broker_epoch is not None:
            lives = [zxid for zxid in self._lives.get(told.broker, ()) if zxid <= seen]
            reason = f"it is for broker epoch {told.broker_epoch}, of {lives}"
            yield _decide(told, "message.broker-epoch", is_life(told.broker_epoch, lives), reason)
            if told.broker_epoch not in lives[-1:]:
                return  # who has registered anew refuses it
        past = [each for zxid, each in self._past.get(key, ()) if zxid <= seen]
        if told.state is not None:
            yield from self._judge_told(told, from_znode(told.state), past, seen)
        elif told.leader_epoch is not None:
            state = past[-1].state if past else None
            reason = f"it says leader epoch {told.leader_epoch}, and {state} is stored"
            kept = is_stop_epoch(told.leader_epoch, state, deleting=deleting)
            yield _decide(told, "message.stop-epoch", kept, reason)
        self._note_told(told)

    def _judge_told(
        self, told: Told, state: LeaderAndIsr, past: list[Partition], seen: int
    ) -> Iterator[str | Rejected]:
        key = (told.topic, told.partition)
        stored = [
            (each, version) for zxid, each, version in self._versions.get(key, ()) if zxid <= seen
        ]
        # Of a state that was not stored by then there is no version to tell.
        if told.state_version is not None and any(each == state for each, _ in stored):
            kept = is_version(told.state_version, state, stored)
            reason = f"it says version {told.state_version} of {state}"
            yield _decide(told, "message.state-version", kept, reason)
        if past:
            # Its sender may not know yet which reassignment is in flight.
            same = (each for each in past if each.assigned == past[-1].assigned)
            kept = any(are_assigned(told.replicas, each, state.leader) for each in same)
            reason = f"it says {list(told.replicas)}, assigned are {list(past[-1].assigned or ())}"
            yield _decide(told, "message.replicas-assigned", kept, reason)
        if told.is_new is not None:
            replica = self._find_replica(told, state, seen)
            reason = f"it says that the replica is {'' if told.is_new else 'not '}new: {replica}"
            kept = is_rightly_new(replica, is_new=told.is_new)
            yield _decide(told, "message.is-new", kept, reason)

    def _find_replica(self, told: Told, state: LeaderAndIsr, seen: int) -> ToldReplica:
        at = ((told.topic, told.partition), told.broker)
        before = self._told.get(at)
        zxid, epoch = self._added.get(at, (seen + 1, 0))
        life = max(
            (life for life in self._lives.get(told.broker, ()) if life <= seen), default=seen
        )
        return ToldReplica(
            told=before is not None,
            told_in_term=before == told.controller_epoch,
            added_in_term=zxid <= seen
            and epoch == told.controller_epoch
            and any(life <= rest < zxid for rest in self._rests),
            in_sync=told.broker in state.isr,
        )

    def _note_told(self, told: Told) -> None:
        at = ((told.topic, told.partition), told.broker)
        if told.state is not None:
            self._told[at] = told.controller_epoch
        elif told.delete:
            self._told.pop(at, None)


def _list_replicas(partition: Partition) -> set[int]:
    """Return who has a replica, or gets one by the reassignment in flight."""
    return {*(partition.assigned or ()), *list_kept(partition)}


def _decide(told: Told, clause_id: str, kept: bool, reason: str) -> str | Rejected:
    return clause_id if kept else Rejected(clause_id, f"broker {told.broker} was told: {reason}")
