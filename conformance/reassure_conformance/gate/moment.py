"""What the gate knows of an example's cluster, and which steps that makes possible.

What ZooKeeper holds comes from the judge's view; what only the driver can know (which brokers it
stopped, whether it holds the controller) is counted here. `why_not` is the one place that decides
whether a step can be taken: the guide asks it for what to draw, the harness for what to skip.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from reassure_conformance.adapter import ADMIN, CAPABILITIES, OLD_ZNODE, REQUESTS
from reassure_conformance.gate import steps as s
from reassure_model.partition import LeaderAndIsr, Partition
from reassure_spec.profiles import DEFAULT_PROFILE, has_protocol, reads
from reassure_spec.readings import Readings
from reassure_spec.znodes import (
    REASSIGN_PARTITIONS,
    REASSIGNMENT_REQUESTS,
    REASSIGNMENT_TASKS,
    PartitionKey,
    ReplicaList,
)


class ClusterHeld(Protocol):
    """What ZooKeeper holds of one cluster, as the judge rebuilt it from the log."""

    @property
    def partitions(self) -> Mapping[PartitionKey, Partition]:
        """The partitions that exist or that a pending request names."""

    @property
    def live(self) -> frozenset[int]:
        """Registered brokers."""

    @property
    def controller_epoch(self) -> int:
        """The epoch of the latest election."""

    @property
    def requests(self) -> tuple[int, ...]:
        """Sequence numbers of the requests that wait, lowest first."""


USUAL_PARTITIONS: Final = 20
"""Up to so many partitions a cluster has the usual time to come to rest."""


@dataclass(slots=True)
class ClusterMoment:
    """One cluster under test, between two steps."""

    brokers: ReplicaList
    """Every broker of the cluster, up or down."""
    view: ClusterHeld
    capabilities: frozenset[str] = frozenset(CAPABILITIES)
    routes: frozenset[str] = frozenset({REQUESTS, OLD_ZNODE})
    """Ways in which the implementation takes requests."""
    up: set[int] = field(default_factory=set)
    acting: bool = True
    """Whether a controller process that can act is there (held or not)."""
    held: bool = False
    """Whether a hold was asked for and not yet ended."""
    owes: bool = False
    """Whether a controller that is held has a write to make next."""
    sleeper: bool = False
    """Whether a process whose session is gone is held and will wake up."""
    losing: bool = False
    """Whether a write is to be lost that has not been made yet."""
    readings: Readings = field(default_factory=Readings)
    planted: set[str] = field(default_factory=set)
    """Kinds of foreign znodes that were planted."""
    admitted: Mapping[PartitionKey, ReplicaList] = field(default_factory=dict)
    """By partition: whom its leader was told to take for a replica, where that is known."""
    stopping: set[int] = field(default_factory=set)
    """Brokers that have asked to stop and are registered still."""
    deleting: set[str] = field(default_factory=set)
    """Topics that clients ask to be deleted."""
    profile: str = DEFAULT_PROFILE
    failure_interval_ms: int = 0
    """How long a broker has to be away before it is replaced."""

    @property
    def old_znode(self) -> bool:
        """Whether the profile has the old znode, so that clients may write it."""
        return reads(self.profile, REASSIGN_PARTITIONS)

    @property
    def requests(self) -> bool:
        """Whether the profile has requests, and records of what is in flight."""
        return reads(self.profile, REASSIGNMENT_REQUESTS)

    def lacks_route(self, *routes: str) -> str:
        """Return that the implementation takes requests by none of these, "" where it does."""
        if not self.routes.isdisjoint(routes):
            return ""
        return f"the implementation does not declare route {' or '.join(routes)}"

    @property
    def healing(self) -> bool:
        """Whether the profile has healing, so that operators may write tasks."""
        return reads(self.profile, REASSIGNMENT_TASKS)

    @property
    def topics(self) -> bool:
        """Whether topics are deleted under the profile, and leaders moved as somebody asks."""
        return has_protocol(self.profile, "topics")

    def in_flight(self) -> tuple[PartitionKey, ...]:
        """Return the partitions with a reassignment in flight, in order."""
        return tuple(
            key for key, p in sorted(self.view.partitions.items()) if p.reassignment is not None
        )

    def existing(self) -> tuple[PartitionKey, ...]:
        """Return the partitions that exist, in order."""
        return tuple(
            key for key, p in sorted(self.view.partitions.items()) if p.assigned is not None
        )

    def joinable(self) -> tuple[tuple[int, PartitionKey], ...]:
        """Return who could join which in-sync set."""
        able = self.up - self.stopping
        return tuple(
            (broker, key)
            for key, state in self._list_led()
            for broker in self.list_started(key)
            if broker in able and broker not in state.isr
        )

    def _list_led(self) -> Iterator[tuple[PartitionKey, LeaderAndIsr]]:
        """Yield the partitions whose leader is up, in order, each with its state."""
        for key in self.existing():
            state = self.view.partitions[key].state
            if state is not None and state.leader in self.up:
                yield key, state

    def list_started(self, key: PartitionKey) -> ReplicaList:
        """Return who has a replica: the assigned ones, and a target that is not added first.

        Whose move a controller has taken up is in its memory; whom the leader lets in tells it.
        """
        assigned = self.view.partitions[key].assigned or ()
        if self.readings.move_expand_first == "yes":
            return assigned
        return tuple(dict.fromkeys((*assigned, *self.admitted.get(key, ()))))

    def is_to_stay(self, broker: int, key: PartitionKey) -> bool:
        """Whether a replica is in the target, or assigned where no reassignment is in flight."""
        partition = self.view.partitions[key]
        flight = partition.reassignment
        stays = (partition.assigned or ()) if flight is None else flight.target
        return broker in stays and broker in self.list_started(key)

    @property
    def scale(self) -> float:
        """How many times as long as usual a cluster of so many partitions may take to rest."""
        return max(1.0, len(self.view.partitions) / USUAL_PARTITIONS)

    def intrudable(self) -> tuple[tuple[int, PartitionKey], ...]:
        """Return who could ask a leader in vain, not being assigned or not being alive.

        While a controller is stopped between two effects nobody can: a leader that has not been
        told yet takes in whom it still takes for assigned, and is right to.
        """
        if not self.acting or self.held or self.sleeper:
            return ()
        found: list[tuple[int, PartitionKey]] = []
        for key, state in self._list_led():
            able = self.up.intersection(self.list_started(key)).union(state.isr)
            found += [(broker, key) for broker in self.brokers if broker not in able]
        return tuple(found)

    def leavable(self) -> tuple[tuple[int, PartitionKey], ...]:
        """Return who could leave which in-sync set."""
        return tuple(
            (broker, key)
            for key, state in self._list_led()
            for broker in sorted(set(state.isr))
            if broker != state.leader
        )

    def follow(self, view: ClusterHeld) -> None:
        """Take over what the log shows; an election nobody asked for is of who was deposed."""
        if not self.acting and view.controller_epoch > self.view.controller_epoch:
            # It was to be held, had not come to its stop yet, noticed, and was elected again.
            self.acting, self.held, self.sleeper = True, self.sleeper, False
        self.view = view

    def original_of(self, key: PartitionKey) -> ReplicaList:
        """Return the replica list that a cancel asks for: the first `top` of the assigned ones."""
        partition = self.view.partitions[key]
        if partition.reassignment is None:
            return partition.assigned or ()
        return (partition.assigned or ())[: partition.reassignment.top]


def _why_not_topic(step: s.ClusterStep, now: ClusterMoment) -> str:
    match step:
        case s.CreateTopic(topic, assignments, _):
            if any(name == topic for name, _ in now.existing()):
                return "the topic exists"
            return _why_not_on(assignments, now)
        case s.Grow(topic, assignments):
            if not any(name == topic for name, _ in now.existing()):
                return "there is no such topic"
            return _why_not_on(assignments, now)
        case s.SetMinIsr(topic, _) | s.SetUnclean(topic, _):
            if topic and not any(name == topic for name, _ in now.existing()):
                return "there is no such topic"
            if topic in now.deleting:
                return "the topic is to be deleted"
            if isinstance(step, s.SetUnclean):
                return ""
            if now.in_flight() or now.view.requests or now.held or now.sleeper:
                # The drop keeps a minimum that held when its chain began (finding hypothesis-4).
                return "a reassignment is in flight, or about to be"
    return ""


def _why_not_on(assignments: tuple[ReplicaList, ...], now: ClusterMoment) -> str:
    is_there = set().union(*assignments) <= set(now.brokers)
    return "" if is_there else "it names a broker that the cluster does not have"


def _why_not_client(step: s.ClusterStep, now: ClusterMoment) -> str:
    match step:
        case s.Change(key, _) | s.Cancel(key):
            partition = now.view.partitions.get(key)
            if partition is None or (partition.reassignment is None and not partition.requests):
                return "no reassignment is in flight"
            return now.lacks_route(REQUESTS, ADMIN)
        case s.Withdraw() | s.Rewrite():
            if not now.view.requests:
                return "no request waits"
            return now.lacks_route(REQUESTS)
        case s.WriteOld() | s.RawOld() | s.DeleteOld():
            if not now.old_znode:
                return "the profile knows nothing of the old znode"
            return now.lacks_route(OLD_ZNODE)
        case s.DeleteTopic() | s.Prefer():
            if not now.topics:
                return "the profile knows nothing of it"
            if isinstance(step, s.DeleteTopic) and step.topic in now.deleting:
                return "somebody asks for that already"
        case s.SubmitTask():
            if not now.healing:
                return "the profile knows nothing of tasks"
        case s.RawRequest() | s.Burst() | s.Request(_, legacy=False):
            if not now.requests and (isinstance(step, s.RawRequest) or now.lacks_route(ADMIN)):
                return "the profile knows nothing of requests"
            others = () if isinstance(step, s.RawRequest) else (ADMIN,)
            return now.lacks_route(REQUESTS, *others)
        case s.Request(_, legacy=True):
            if now.old_znode:
                return "a request that says it came by the old znode is the controller's to make"
            return now.lacks_route(REQUESTS)
        case s.Foreign(kind):
            if not now.requests:
                return "the profile knows nothing of requests"
            if kind.startswith("queue-") and now.lacks_route(REQUESTS):
                return now.lacks_route(REQUESTS)
            if kind in now.planted:
                return "it was planted already"
            if kind.startswith("child-") and now.acting:
                # Only a controller that takes over looks through the records; one that acts has
                # written them all and watches none of them.
                return "a controller acts, and reads the records only when it takes over"
    return ""


def _why_not_broker(step: s.ClusterStep, now: ClusterMoment) -> str:
    match step:
        case s.Join(broker, key):
            if (broker, key) not in now.joinable():
                return "it is in sync already, not assigned, down, or there is no leader"
        case s.Intrude(broker, key):
            if (broker, key) not in now.intrudable():
                return "it may join or is in sync, there is no leader, or that may not know yet"
        case s.Leave(broker, key):
            if (broker, key) not in now.leavable():
                return "it is not in sync, it leads, or there is no leader"
        case s.Die(broker):
            if broker not in now.up:
                return "the broker is down or not of this cluster"
            if not now.up - now.stopping - {broker}:
                return "it is the last broker that is up"
        case s.ShutDown(broker):
            if not now.topics:
                return "the profile knows nothing of it"
            if broker not in now.up or broker in now.stopping:
                return "the broker is down or stops already, or is not of this cluster"
            if len(now.up - now.stopping) == 1:
                return "it is the last broker that stays up"
        case s.Return(broker):
            if broker not in now.brokers or broker in now.up:
                return "the broker is up or not of this cluster"
    return ""


def _why_not_controller(step: s.ClusterStep, now: ClusterMoment) -> str:
    match step:
        case s.Tick():
            if not now.healing:
                return "nothing in the profile goes by the clock"
        case s.Lose():
            if not now.acting:
                return "no controller acts"
        case s.Resume():
            if not now.held and not now.sleeper:
                return "nothing is held"
        case s.Kill() | s.Depose() | s.Expire() | s.Cut():
            if not now.acting:
                return "no controller acts"
        case s.Elect():
            if now.acting:
                return "a controller acts"
    return ""


def why_not(step: s.ClusterStep, now: ClusterMoment) -> str:
    """Return why this step cannot be taken now, "" where it can."""
    need = s.NEEDS.get(type(step))
    if need is not None and need not in now.capabilities:
        return f"the implementation does not declare capability {need}"
    reasons = (rule(step, now) for rule in _RULES)
    return next(filter(None, reasons), "")


_RULES: Final = (_why_not_topic, _why_not_client, _why_not_broker, _why_not_controller)
