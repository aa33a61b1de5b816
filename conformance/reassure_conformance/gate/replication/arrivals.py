"""What happens in a trial: what situations are recognised in."""

from dataclasses import dataclass

from reassure_conformance.adapter.stepping import Anything, StepCluster
from reassure_controller.messages import LeaderAndIsr, Reply, StopReplica
from reassure_controller.replication import errors
from reassure_controller.replication.following import Following
from reassure_controller.replication.messages import Consume, Fetch, Fetched
from reassure_controller.replication.replica import Replica, Role
from reassure_controller.storage.directory import LogDirectory
from reassure_controller.storage.records import scan
from reassure_spec.observations import Fetch as FetchLine
from reassure_spec.observations import Observation, Serve, What
from reassure_spec.observations import Replica as ReplicaLine
from reassure_spec.znodes import PartitionKey


@dataclass(frozen=True, slots=True)
class Arrived:
    """A message is about to reach a broker that is up."""

    cluster: StepCluster
    broker: int
    message: Anything

    @property
    def replica(self) -> Replica | None:
        """The replica that it is about."""
        return self.cluster.replicas(self.broker).find(self._key)

    @property
    def role(self) -> Role | None:
        """What the replica does."""
        return None if self.replica is None else self.replica.role

    @property
    def obeyed(self) -> int:
        """The latest leader epoch of the partition that the broker has obeyed in this life."""
        running = self.cluster.machines[self.broker].running
        assert running is not None
        return running.find_obeyed(self._key)

    @property
    def is_of_this_life(self) -> bool:
        """Whether it is an order for the life that the broker is in."""
        message, epoch = self.message, self.cluster.replicas(self.broker).broker_epoch
        return isinstance(message, LeaderAndIsr | StopReplica) and message.broker_epoch == epoch

    @property
    def asked(self) -> Observation | None:
        """What a leader may refuse without a word, and what it sends; None for the rest.

        It is a line of sequence -1. Of what is sent it says where that ends, and the leader's mark.
        """
        what: What
        epoch = 0
        match self.message:
            case Consume():
                what = Serve(0)
            case Fetch(replica=follower, offset=offset, leader_epoch=sent):
                now_ms = self.cluster.machines[self.broker].clock.now_ms()
                what = FetchLine(follower, offset, sent, time_ms=now_ms)
            case Fetched(error=errors.NONE) if (
                (replica := self.replica) is not None
                and isinstance(role := replica.role, Following)
                and role.awaits(self.message)
            ):
                ends = (batch.last_offset + 1 for batch in scan(self.message.records))
                end = max(ends, default=replica.log.end_offset)
                epoch, what = role.leader_epoch, ReplicaLine(end, self.message.high_watermark)
            case _:
                return None
        return Observation("", 0, -1, "", *self._key, self.broker, 0, epoch, what)

    @property
    def _key(self) -> PartitionKey:
        match self.message:
            case LeaderAndIsr() | StopReplica():
                return self.message.topic, self.message.partition
            case Reply():
                raise TypeError("a broker is sent no Reply")
            case _:
                return self.message.key


@dataclass(frozen=True, slots=True)
class Died:
    """A broker has died; this is its disk, with what it has lost by that."""

    disk: LogDirectory


Event = Arrived | Died
"""What situations are recognised in."""
