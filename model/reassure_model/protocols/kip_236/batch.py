"""Several partitions at once, each followed by the ordinary rules, and the brokers around them.

What stands on top of the request protocol (the old znode, healing) holds its partitions like this
and reassigns them by requests like anybody else.
"""

from dataclasses import dataclass, replace
from typing import Self, TypeVar

from reassure_model.environment import NotPossible, On
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Partition, Request
from reassure_model.protocols.kip_236 import apply_failover, next_write
from reassure_model.protocols.kip_236.rules import accept_write
from reassure_model.protocols.kip_236.system import System
from reassure_model.protocols.kip_236.system import step as step_partition
from reassure_model.writes import Obligation
from reassure_spec.readings import Readings
from reassure_spec.znodes import PartitionKey, ReplicaList


@dataclass(frozen=True, slots=True)
class Batch:
    """Several partitions and their environment."""

    partitions: tuple[tuple[PartitionKey, Partition], ...]
    """In order of partition; one that somebody asked for may not exist."""
    live: frozenset[int]
    known: frozenset[int]
    min_insync_replicas: int = 1
    controller_epoch: int = 1
    next_sequence: int = 0

    def get(self, key: PartitionKey) -> Partition:
        """Return the partition with this key, one that does not exist where there is none."""
        return dict(self.partitions).get(key, Partition())

    def having(self, key: PartitionKey, partition: Partition) -> Self:
        """Return the same with this partition changed or added."""
        partitions = {**dict(self.partitions), key: partition}
        return replace(self, partitions=tuple(sorted(partitions.items(), key=lambda p: p[0])))

    def as_system(self, key: PartitionKey) -> System:
        """Return one partition with its environment."""
        return System(
            self.get(key),
            self.live,
            self.known,
            self.min_insync_replicas,
            self.controller_epoch,
            self.next_sequence,
        )


Some = TypeVar("Some", bound=Batch)


@dataclass(frozen=True, slots=True)
class WriteOwed:
    """Make the write that is owed to a partition."""

    key: PartitionKey
    owed: Obligation


def next_owed(batch: Batch, readings: Readings) -> WriteOwed | None:
    """Return the write that is owed to the first partition that anything is owed to."""
    for key, partition in batch.partitions:
        owed = next_write(partition, batch.as_system(key).around, readings)
        if owed is not None:
            return WriteOwed(key, owed)
    return None


def make_write(batch: Some, write: WriteOwed, readings: Readings) -> Accepted[Some] | Rejected:
    """Return the batch after a write, which is put to the rules."""
    around = batch.as_system(write.key).around
    outcome = accept_write(batch.get(write.key), write.owed.write, around, readings)
    if isinstance(outcome, Rejected):
        return outcome
    after = batch.having(write.key, outcome.state)
    return Accepted(after, (*outcome.clauses, write.owed.clause))


def add_request(
    batch: Some, asked: tuple[tuple[PartitionKey, ReplicaList], ...], *, legacy: bool
) -> Some:
    """Return the batch with one more request, which names these partitions."""
    after = replace(batch, next_sequence=batch.next_sequence + 1)
    for key, target in asked:
        partition = after.get(key)
        request = Request(batch.next_sequence, target, legacy)
        after = after.having(key, replace(partition, requests=(*partition.requests, request)))
    return after


def act_on(batch: Some, on: On, readings: Readings) -> Accepted[Some] | Rejected:
    """Return the batch after something happened to one partition."""
    outcome = step_partition(batch.as_system(on.key), on.action, readings)
    if isinstance(outcome, Rejected):
        return outcome
    after = batch.having(on.key, outcome.state.partition)
    return Accepted(replace(after, next_sequence=outcome.state.next_sequence))


def lose_broker(batch: Some, broker: int) -> Some:
    """Return the batch without the registration of a broker."""
    if broker not in batch.live:
        raise NotPossible(f"broker {broker} is not alive in {batch}")
    return replace(batch, live=batch.live - {broker})


def regain_broker(batch: Some, broker: int) -> Some:
    """Return the batch with a broker registered (again)."""
    if broker in batch.live:
        raise NotPossible(f"broker {broker} is alive in {batch}")
    return replace(batch, live=batch.live | {broker}, known=batch.known | {broker})


def forget_controller(batch: Some, readings: Readings) -> Some:
    """Return the batch as the next controller finds it."""
    partitions = tuple((key, apply_failover(each, readings)) for key, each in batch.partitions)
    return replace(batch, partitions=partitions, controller_epoch=batch.controller_epoch + 1)
