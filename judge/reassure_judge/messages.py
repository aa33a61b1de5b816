"""What brokers were told, held against what ZooKeeper says when a controller rests.

A controller's requests to brokers are not in ZooKeeper's log, so a request that was never sent, or
sent to somebody else, leaves no trace there. Where brokers keep what they receive, what each of
them must believe by now can be told from it: it obeys a request unless a later controller has
spoken, and takes over a leader epoch that is newer than the one it has.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Final, TypeVar

from reassure_judge.verdicts import Location, Violation
from reassure_model.messages import is_needed, list_kept, list_running
from reassure_model.outcome import Rejected
from reassure_model.partition import LeaderAndIsr, Partition, from_znode
from reassure_spec.clauses import clause
from reassure_spec.znodes import (
    NO_LEADER,
    PartitionKey,
    ReplicaList,
    StateZnode,
    encode_state,
    state_path,
)

_Value = TypeVar("_Value")
NO_EPOCH: Final = -1
"""The leader epoch of who knows none."""


@dataclass(frozen=True, slots=True)
class Told:
    """A controller's request as a broker received it."""

    broker: int
    """Who received it."""
    topic: str
    partition: int
    controller_epoch: int
    state: StateZnode | None
    """What LeaderAndIsr says of leader, epochs and in-sync replicas; None in a StopReplica."""
    replicas: ReplicaList = ()
    """What LeaderAndIsr says are the assigned replicas."""
    delete: bool = False
    """Whether StopReplica asks to delete the replica as well."""
    zxid: int | None = None
    """The last transaction that its sender had seen when it was sent; None: nobody knows."""
    controller: int | None = None
    """Who says that it sends this; None here and below: whoever shows the request does not say."""
    broker_epoch: int | None = None
    """For which life of the broker it is."""
    state_version: int | None = None
    """What LeaderAndIsr says is the version of the state's znode."""
    is_new: bool | None = None
    """Whether LeaderAndIsr says that the broker never had this replica."""
    leader_epoch: int | None = None
    """In which leader epoch StopReplica says that the replica is wanted no more."""
    answered: bool | None = None
    """Whether its sender has ever had an answer to LeaderAndIsr."""

    @property
    def given(self) -> Mapping[str, int]:
        """What is said of what may be left out, by name."""
        values = {name: getattr(self, name) for name in OPTIONAL_FIELDS}
        return {name: value for name, value in values.items() if value is not None}

    def as_dict(self) -> dict[str, object]:
        """Return the record that is kept of it."""
        about = {"broker": self.broker, "topic": self.topic, "partition": self.partition}
        epoch = {"controller_epoch": self.controller_epoch, **self.given}
        if self.state is None:
            return {"stop_replica": about, **epoch, "delete": self.delete}
        state = encode_state(self.state).decode()
        return {"leader_and_isr": about, **epoch, "state": state, "replicas": list(self.replicas)}


@dataclass(frozen=True, slots=True)
class ToldStates:
    """Where a controller has taken one partition and its replicas."""

    controller_epoch: int
    topic: str
    partition: int
    moves: tuple[tuple[int | None, str, str], ...]
    """In order: the replica, None for the partition itself, and its state before and after."""

    @property
    def given(self) -> Mapping[str, int]:
        """What is said, by name: an implementation may leave all such records out."""
        return {"states": len(self.moves)}

    def as_dict(self) -> dict[str, object]:
        """Return the record that is kept of it."""
        about = {"topic": self.topic, "partition": self.partition}
        moves = [list(move) for move in self.moves]
        return {"states": about, "controller_epoch": self.controller_epoch, "moves": moves}


OPTIONAL_FIELDS: Final = tuple(each.name for each in fields(Told) if each.default is None)
"""What a record of a request may leave out."""


@dataclass(slots=True)
class Heard:
    """What the brokers of one cluster believe, from what they received."""

    _epochs: dict[int, int] = field(default_factory=dict)
    """By broker, the latest controller that spoke to it."""
    _known: dict[int, dict[PartitionKey, Told]] = field(default_factory=dict)
    _received: dict[tuple[PartitionKey, int], list[Told]] = field(default_factory=dict)
    """By partition and broker: all that was received, in order."""

    def take(self, told: Told) -> None:
        """Take over what a broker received, as it does."""
        key = (told.topic, told.partition)
        self._received.setdefault((key, told.broker), []).append(told)
        if told.controller_epoch < self._epochs.get(told.broker, 0):
            return
        self._epochs[told.broker] = told.controller_epoch
        known = self._known.setdefault(told.broker, {})
        before = known.get(key)
        epoch = NO_EPOCH if before is None or before.state is None else before.state.leader_epoch
        if told.state is None:
            if told.leader_epoch is not None and NO_EPOCH < told.leader_epoch < epoch:
                return
            if told.delete:
                known.pop(key, None)
            elif before is not None:
                known[key] = told
        elif told.state.leader_epoch > epoch:
            known[key] = told

    def forget(self, broker: int) -> None:
        """Note that a broker ended, and its memory with it."""
        self._epochs.pop(broker, None)
        self._known.pop(broker, None)

    def list_told(self, key: PartitionKey, broker: int) -> Sequence[Told]:
        """Return what a broker received of a partition, in order, whether it runs still or not."""
        return self._received.get((key, broker), ())

    def list_admitted(
        self, partitions: Mapping[PartitionKey, Partition]
    ) -> Mapping[PartitionKey, ReplicaList]:
        """Return whom the leader of each partition takes for a replica."""
        leaders = {key: p.state.leader for key, p in partitions.items() if p.state is not None}
        found = {key: self._known.get(one, {}).get(key) for key, one in leaders.items()}
        return {key: told.replicas for key, told in found.items() if told is not None}

    def find(self, broker: int, key: PartitionKey) -> StateZnode | None:
        """Return what a broker takes for a partition's state, None where it runs no replica."""
        told = self._known.get(broker, {}).get(key)
        return None if told is None else told.state

    def is_passed_over(self, key: PartitionKey, partition: Partition, broker: int) -> bool:
        """Whether a leader goes by an order from before the one that let a replica in last."""
        leader = NO_LEADER if partition.state is None else partition.state.leader
        known, received = self._known.get(leader, {}).get(key), self.list_told(key, leader)
        return (
            known is not None
            and received[-1].state is not None
            and known.controller_epoch < received[-1].controller_epoch
            and broker in received[-1].replicas
        )

    def find_broken(
        self, partitions: Mapping[PartitionKey, Partition], live: frozenset[int]
    ) -> Iterator[tuple[PartitionKey, Rejected]]:
        """Yield what brokers believe otherwise than it is, now that the cluster rests."""
        for key, partition in sorted(partitions.items()):
            if partition.assigned is None or partition.state is None:
                continue
            for broker in sorted(live):
                told = self._known.get(broker, {}).get(key)
                broken = find_misled(partition, broker, told)
                if broken is not None:
                    yield key, broken


@dataclass(slots=True)
class StoredStates:
    """What ZooKeeper has held of one cluster, as far as messages must come after it."""

    _states: dict[PartitionKey, list[tuple[int, LeaderAndIsr]]] = field(default_factory=dict)
    """By partition, each state with the transaction that wrote it, in order."""
    _epochs: list[tuple[int, int]] = field(default_factory=list)
    """Each controller epoch with the transaction that wrote it, in order."""

    def note(self, zxid: int, partitions: Mapping[PartitionKey, Partition], epoch: int) -> None:
        """Note what a transaction left."""
        if not self._epochs or self._epochs[-1][1] != epoch:
            self._epochs.append((zxid, epoch))
        for key, partition in partitions.items():
            past = self._states.setdefault(key, [])
            state = partition.state
            if state is not None and (not past or past[-1][1] != state):
                past.append((zxid, state))

    def find_state(self, key: PartitionKey, zxid: int) -> LeaderAndIsr | None:
        """Return the state of a partition behind a transaction, None where there was none yet."""
        return _find_last(self._states.get(key, ()), zxid, None)

    def list_in_sync(self, key: PartitionKey) -> set[int]:
        """Return who has ever been in sync."""
        return {one for _, state in self._states.get(key, ()) for one in state.isr}

    @clause("message.stored-first", "message.deleted-after-cut")
    def judge(self, told: Told) -> str | Rejected | None:
        """Return the clause that a message keeps, or how it breaks one; None: it tells nothing.

        Nobody obeys a controller that had been replaced by then.
        """
        if told.zxid is None or _find_last(self._epochs, told.zxid, 0) > told.controller_epoch:
            return None
        past = self._states.get((told.topic, told.partition), [])
        if told.state is not None:
            state = from_znode(told.state)
            if any(zxid <= told.zxid and each == state for zxid, each in past):
                return "message.stored-first"
            said = encode_state(told.state).decode()
            return Rejected(
                "message.stored-first", f"broker {told.broker} was told {said}, not stored by then"
            )
        state_then = self.find_state((told.topic, told.partition), told.zxid)
        if not told.delete or state_then is None:
            return None
        if is_needed(state_then, told.broker):
            return Rejected(
                "message.deleted-after-cut",
                f"broker {told.broker} was told to delete its replica, and {list(state_then.isr)} "
                f"were in sync by then, {state_then.leader} the leader",
            )
        return "message.deleted-after-cut"


def _find_last(past: Sequence[tuple[int, _Value]], zxid: int, default: _Value) -> _Value:
    """Return what stood there after this transaction."""
    return next((value for since, value in reversed(past) if since <= zxid), default)


@clause("message.replica-told", "message.leader-knows-assigned", "message.stranger-stopped")
def find_misled(partition: Partition, broker: int, told: Told | None) -> Rejected | None:
    """Say what a live broker should have been told of a partition and was not."""
    state, assigned = partition.state, partition.assigned or ()
    assert state is not None
    if broker not in assigned:
        if told is None:
            return None
        asked = "stop" if told.state is not None else "delete"
        return Rejected(
            "message.stranger-stopped",
            f"broker {broker} is not assigned and was not told to {asked} its replica",
        )
    if state.leader == NO_LEADER or broker not in {*list_running(partition), state.leader}:
        return None
    if told is None or told.state is None:
        return Rejected("message.replica-told", f"broker {broker} knows nothing of the partition")
    known = told.state
    if (known.leader, known.leader_epoch) != (state.leader, state.leader_epoch):
        return Rejected(
            "message.replica-told",
            f"broker {broker} takes {known.leader} for the leader in epoch {known.leader_epoch}; "
            f"it is {state.leader} in epoch {state.leader_epoch}",
        )
    if broker == state.leader and not set(list_kept(partition)) <= set(told.replicas) <= set(
        assigned
    ):
        return Rejected(
            "message.leader-knows-assigned",
            f"leader {broker} takes {list(told.replicas)} for the assigned replicas; "
            f"they are {list(assigned)}",
        )
    return None


KNOWS_ASSIGNED: Final = "message.leader-knows-assigned"
CLAUSES: Final = (
    "message.replica-told",
    KNOWS_ASSIGNED,
    "message.stranger-stopped",
)
"""The clauses that only messages show."""


@clause("message.leader-able")
def find_unable(partition: Partition, broker: int, *, joins: bool) -> Rejected:
    """Say that a leader could not take in a live assigned replica, or let a follower go."""
    leader = NO_LEADER if partition.state is None else partition.state.leader
    joined = "is assigned and alive, and has caught up", "take it into"
    who, what = joined if joins else ("is in sync and has fallen behind", "take it out of")
    return Rejected(
        "message.leader-able",
        f"broker {broker} {who}; leader {leader} did not {what} the in-sync set",
    )


def describe(chroot: str, key: PartitionKey, zxid: int, broken: Rejected) -> Violation:
    """Return the violation that no transaction shows; `zxid` is the last one before it."""
    expected = "brokers told the state and the assignment as they are stored, once they are"
    return Violation.unwritten(Location(zxid, chroot, *key, state_path(*key)), broken, expected)
