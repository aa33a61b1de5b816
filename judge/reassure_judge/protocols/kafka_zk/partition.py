"""A partition of Apache Kafka as its logs show it, and the writes to it, from 0.8.0 to 3.9."""

from dataclasses import dataclass
from typing import Final

from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Environment, LeaderAndIsr
from reassure_model.protocols.kafka_zk import Assignment
from reassure_model.writes import ChangeIsr, CreateState, WriteState
from reassure_spec.znodes import ReplicaList


@dataclass(frozen=True, slots=True)
class Logged:
    """One partition of a Kafka cluster."""

    assigned: ReplicaList | None = None
    """All replicas, those being added and removed included; None where there is no partition."""
    adding: ReplicaList = ()
    removing: ReplicaList = ()
    state: LeaderAndIsr | None = None
    entry: ReplicaList | None = None
    """Target that the old znode names now."""
    asked: tuple[ReplicaList, ...] = ()
    """Targets that it named since the last one was reached: a controller may have read any."""
    begun: bool = False
    """Whether the acting controller wrote the replicas of one of these: it refuses it no more."""
    halfway: ReplicaList | None = None
    """The target whose replicas an earlier controller wrote, and nobody has reached."""
    done: bool = False
    """Whether one was written as the assignment, and what is left is to remove the entry."""
    earlier: ReplicaList | None = None
    """Target that the old znode named until a client took it back."""
    dropped: ReplicaList | None = None
    """What the old znode named when the controller took the partition out of there before it was
    reached: a call counts instead, for which nothing is written yet."""
    told: ReplicaList = ()
    """The replicas as the leader knows them, who learns of others with the next leader epoch."""
    completing: bool = False
    """The acting controller raised the epoch, or elected, with a whole target in sync."""
    emptied: bool = False
    """The last in-sync replica was stopped as the topic is deleted, and left the set."""


@dataclass(frozen=True, slots=True)
class AlterIsr:
    """The controller writes the in-sync set that the leader asks for."""

    state: LeaderAndIsr


@dataclass(frozen=True, slots=True)
class WriteLists:
    """A topic's znode gets another assignment for a partition; before 2.4 its lists are empty."""

    assignment: Assignment


@dataclass(frozen=True, slots=True)
class DropEntry:
    """The controller removes the partition from the old znode."""


@dataclass(frozen=True, slots=True)
class RestoreEntry:
    """The controller writes an entry into the old znode that was not there, or another one."""

    target: ReplicaList


@dataclass(frozen=True, slots=True)
class Owes:
    """A write that is due, and the clause that asks for it."""

    write: "Written"
    clause: str


Common = CreateState | WriteState | ChangeIsr | AlterIsr | RestoreEntry
"""The writes of which both protocols say the same."""
Written = Common | WriteLists | DropEntry
Outcome = Accepted[Logged] | Rejected


@dataclass(frozen=True, slots=True)
class ClauseNames:
    """The clauses by which the two protocols say the same of a reassignment."""

    target_in_sync: str
    leader_first: str
    after_stop: str


# Clauses that are broken in more than one way, or kept in another than they are broken
BY_LEADER: Final = "isr.change.by-leader"
CONDITIONAL: Final = "state.write-conditional"
REMOVED_WHEN_DUE: Final = "isr.remove.only-when-due"
LEADERLESS: Final = "shipped.leader.none-when-stopped"
TARGET_FIRST: Final = "shipped.assignment.target-first"
RECORDED_FIRST: Final = "shipped.change.recorded-first"
OTHERS_KEPT: Final = "move.path.others-kept"
REFUSED_DEAD: Final = "move.listener.refuse-dead"


LISTS: Final = ClauseNames(
    "shipped.complete.target-in-sync",
    "shipped.complete.leader-first",
    "shipped.complete.assignment-after-stop",
)
ENTRIES: Final = ClauseNames(
    "move.step.wait-in-sync", "move.step.elect", "move.step.write-assigned"
)


def list_targets(hosted: Logged) -> tuple[ReplicaList, ...]:
    """Return where the partition may be going: by its lists, else by the old znode."""
    if hosted.adding or hosted.removing:
        return (get_assignment(hosted).target,)
    return hosted.asked


def get_assignment(hosted: Logged) -> Assignment:
    """Return the three lists."""
    return Assignment(hosted.assigned or (), hosted.adding, hosted.removing)


def is_within(replicas: ReplicaList, others: ReplicaList) -> bool:
    """Whether all of these are among the others."""
    return all(replica in others for replica in replicas)


def is_reached(hosted: Logged, target: ReplicaList) -> bool:
    """Whether the old replicas may be stopped: the target is in sync, or was when that began."""
    state = hosted.state
    return hosted.completing or (state is not None and is_within(target, state.isr))


def get_serving(around: Environment) -> frozenset[int]:
    """Return the brokers that may lead: alive, and not about to stop."""
    return around.live - around.stopping
