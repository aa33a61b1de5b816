"""What the judge takes in of a cluster that somebody drives, beside ZooKeeper's log.

Whoever drives a cluster hears what brokers receive, lets time pass, asks brokers to stop, and knows
when the cluster rests. None of that is in the log. It is handed over as these events, in the order
in which it happened.
"""

from dataclasses import dataclass, field
from functools import cached_property

from reassure_judge.messages import Told, ToldStates
from reassure_model.partition import Partition
from reassure_spec.znodes import CONTROLLER, CONTROLLER_EPOCH, PartitionKey
from reassure_zookeeper.transactions import Check, Create, Transaction


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster as the history leaves it."""

    partitions: dict[PartitionKey, Partition]
    """Partitions that exist, and those that a pending request names."""
    live: frozenset[int]
    known: frozenset[int]
    controller: int | None
    controller_epoch: int
    requests: tuple[int, ...]
    """Sequence numbers of the pending requests, lowest first."""
    min_isr: dict[str, int]
    """By topic, where its own settings say."""
    min_isr_default: int = 1
    unclean: dict[str, bool] = field(default_factory=dict)
    """By topic, where its own settings say."""
    unclean_default: bool = False

    def list_moving(self) -> list[PartitionKey]:
        """Return the partitions with a reassignment in flight, in order."""
        return sorted(k for k, each in self.partitions.items() if each.reassignment is not None)

    def allows_unclean(self, topic: str) -> bool:
        """Return `unclean.leader.election.enable` of the topic."""
        return self.unclean.get(topic, self.unclean_default)

    def min_insync_replicas(self, topic: str) -> int:
        """Return `min.insync.replicas` of the topic."""
        return self.min_isr.get(topic, self.min_isr_default)


@dataclass(frozen=True)
class Wrote:
    """A transaction, and what ZooKeeper held before and after."""

    transaction: Transaction
    before: ClusterView
    after: ClusterView

    @cached_property
    def elects(self) -> bool:
        """Whether a controller was elected."""
        return any(
            isinstance(op, Create) and op.ephemeral and op.path.endswith(CONTROLLER)
            for op in self.transaction.ops
        )

    @cached_property
    def is_fenced(self) -> bool:
        """Whether this took effect under a check of the controller epoch."""
        return self.transaction.error is None and any(
            isinstance(op, Check) and op.path.endswith(CONTROLLER_EPOCH)
            for op in self.transaction.ops
        )


@dataclass(frozen=True, slots=True)
class Received:
    """A broker received a controller's request."""

    told: Told


@dataclass(frozen=True, slots=True)
class StatesSaid:
    """A controller said where it has taken a partition and its replicas."""

    said: ToldStates


def make_event(record: Told | ToldStates) -> Received | StatesSaid:
    """Return the event that a record of an adapter stands for."""
    return StatesSaid(record) if isinstance(record, ToldStates) else Received(record)


@dataclass(frozen=True, slots=True)
class Rested:
    """The cluster came to rest."""

    view: ClusterView
    watched: frozenset[str] | None = None
    """The znodes that somebody watches then, None where the server was not asked."""


@dataclass(frozen=True, slots=True)
class Looked:
    """All that was written and received so far has been handed over."""

    view: ClusterView
    up: frozenset[int]
    """The brokers that run."""
    rests: bool


@dataclass(frozen=True, slots=True)
class ShutdownAsked:
    """A broker told the controller that it wants to stop."""

    broker: int
    view: ClusterView


@dataclass(frozen=True, slots=True)
class Ended:
    """A broker's process ended, and its memory with it."""

    broker: int


@dataclass(frozen=True, slots=True)
class TimePassed:
    """Whoever holds the clock let time pass."""

    milliseconds: int


@dataclass(frozen=True, slots=True)
class ChangeAsked:
    """A leader was asked to let a replica join the in-sync set, or leave it, and answered."""

    key: PartitionKey
    partition: Partition
    broker: int
    joins: bool
    obeyed: bool


Event = (
    Wrote
    | Received
    | StatesSaid
    | Rested
    | Looked
    | ShutdownAsked
    | Ended
    | TimePassed
    | ChangeAsked
)
