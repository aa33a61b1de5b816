"""What happens in a trial: what situations are recognised in."""

from dataclasses import dataclass

from reassure_controller.messages import ChangeIsr, LeaderAndIsr, Reply, StopReplica
from reassure_controller.replication.messages import Consume, Fetch
from reassure_controller.replication.replica import Replica, Role
from reassure_controller.replication.stepping import Anything, StepCluster
from reassure_controller.storage.directory import LogDirectory
from reassure_spec.observations import Fetch as FetchLine
from reassure_spec.observations import Observation, Serve, What
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
        """What a leader may refuse without a word, as a line of sequence -1; None for the rest."""
        what: What
        match self.message:
            case Consume():
                what = Serve(0)
            case Fetch(replica=follower, offset=offset, leader_epoch=epoch):
                now_ms = self.cluster.machines[self.broker].clock.now_ms()
                what = FetchLine(follower, offset, epoch, time_ms=now_ms)
            case _:
                return None
        return Observation("", 0, -1, "", *self._key, self.broker, 0, 0, what)

    @property
    def _key(self) -> PartitionKey:
        match self.message:
            case LeaderAndIsr() | StopReplica() | ChangeIsr():
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
