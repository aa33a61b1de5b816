"""What the judge's engine asks of a protocol: a subclass of `Rules` for each, one file each.

A protocol whose history is what brokers and controllers say brings `ObservationRules` instead.

The model says which write may come next (`reassure_model.machine.Judgement`). What is the judge's
own stands here: how observations become writes, what a history may leave open, and what is taken
over after a write that no rule allows. The engine (`reassure_judge.tracker`) knows no protocol.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NamedTuple, TypeVar

from reassure_judge.cross_partition import CrossPartitionTracker
from reassure_judge.doubt import GRACE_MS
from reassure_judge.history import AssignedWritten, ElectionSeen, SeenWrite
from reassure_judge.memo import Names
from reassure_judge.router import Router
from reassure_judge.verdicts import Tally
from reassure_model.controllers import Controllership, accept_election
from reassure_model.machine import Due, Judgement
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Environment, LeaderAndIsr, Partition, to_znode
from reassure_model.writes import ChangeIsr
from reassure_spec.readings import Readings
from reassure_spec.znodes import ReplicaList, encode_state

if TYPE_CHECKING:
    from reassure_judge.observed.judge import ObservationJudge

LOGS: Final = "transaction logs"
OBSERVATIONS: Final = "observations"

_REST_KEPT: Final = ("topic.partitions-kept", "topic.content-kept")
Fault = tuple[str, str]
"""A clause, and what breaks it."""
Find = Callable[[Any], str | None]


class Possible(NamedTuple):
    """One state that the history leaves possible, where all that matters is the model's own state.

    A protocol that has more in mind brings a record of its own, with a field `partition` as well.
    """

    partition: Any


Kept = TypeVar("Kept", bound=Any)
"""What the engine keeps of one possible state: a named tuple with a field `partition`."""
Written = TypeVar("Written")


@dataclass(slots=True)
class Signs:
    """What a log holds of one cluster, as far as it tells which protocol it speaks."""

    shown: bool = False
    """Whether there are brokers or topics at all."""
    trees: set[str] = field(default_factory=set)
    """Those written that not every protocol has."""
    filled: set[str] = field(default_factory=set)
    """Those of them in which something stands."""
    with_lists: int = 0
    """Topics' znodes written with lists of what is being added and removed."""
    without_lists: bool = False
    """Whether there was a topic's znode without them."""
    brokers: set[int] = field(default_factory=set)
    """The versions of brokers' registrations."""
    topics: set[int] = field(default_factory=set)
    """The versions of topics' znodes."""
    fenced: bool = False
    """Whether a transaction checked the controller epoch."""

    def add(self, other: "Signs") -> None:
        """Take in what another part of the log holds of the cluster."""
        self.shown |= other.shown
        self.trees |= other.trees
        self.filled |= other.filled
        self.with_lists += other.with_lists
        self.without_lists |= other.without_lists
        self.brokers |= other.brokers
        self.topics |= other.topics
        self.fenced |= other.fenced


def show_state(state: LeaderAndIsr | None) -> str:
    """Return the content of a partition's state as text, "" where there is none."""
    return "" if state is None else encode_state(to_znode(state)).decode()


def find_fresh(always: Iterable[tuple[str, Find]], before: Any, after: Any) -> list[Rejected]:
    """Find what is always true, and is not any more, or for another reason than before."""
    found = []
    for clause_id, find in always:
        reason = find(after)
        if reason is not None and find(before) != reason:
            found.append(Rejected(clause_id, reason))
    return found


class Sign(NamedTuple):
    """What tells that a cluster speaks a protocol."""

    rank: int
    """How particular it is: where several protocols see a sign, the highest one counts."""
    words: str
    readings: dict[str, str]
    """The readings that the log itself settles."""


class AnyRules(ABC):
    """One protocol, whatever kind of history is held against it."""

    profiles: ClassVar[tuple[str, ...]]
    """The profiles that it judges."""
    earlier: ClassVar[str] = ""
    """The profile of what a cluster spoke before it was upgraded to this one, "" for none."""
    driven: ClassVar[tuple[str, ...]] = ()
    """Those of them under which the gate knows what to ask of an implementation."""
    reads: ClassVar[str]
    """The kind of history: `LOGS` or `OBSERVATIONS`."""

    @classmethod
    def find_sign(cls, signs: Signs) -> Sign | None:
        """Return what tells that a cluster speaks this protocol, None where nothing does."""
        return None

    @classmethod
    def find_version(cls, signs: Signs) -> str | None:
        """Return which releases write as a cluster of this protocol does, None where all may."""
        return None


class ObservationRules(AnyRules):
    """One protocol, as the judge holds lines of observations against it."""

    reads = OBSERVATIONS
    needs: ClassVar[Mapping[str, str]]
    """By clause: the kinds of lines that put it to the test."""
    logged: ClassVar[frozenset[str]]
    """Those of them that ZooKeeper's log puts to the test as well."""
    unjudged: ClassVar[Mapping[str, str]]
    """By clause: why no line can show it kept or broken."""
    asked: ClassVar[Mapping[str, tuple[str, str]]]
    """By clause: the reading, and its value, under which alone it is asked for."""

    @classmethod
    @abstractmethod
    def make_judge(cls, readings: Readings) -> "ObservationJudge":
        """Return what is fed the lines."""


class Rules(AnyRules, Generic[Kept, Written]):
    """One protocol, as the judge holds transaction logs against it under some readings."""

    reads = LOGS
    judgement: ClassVar[Judgement[Any, Any]]
    router: ClassVar[type[Router[Any]]]
    """Knows which znodes the protocol has (`reassure_judge.router`)."""
    leaders: ClassVar[tuple[type, ...]] = ()
    """The writes that are no controller's, so that nobody asks for a controller's authority."""
    names: ClassVar[Names] = MappingProxyType({})
    """Which numbers in its records are names (`reassure_judge.memo`); without any, each event is
    judged for itself."""
    noticed: ClassVar[tuple[type, ...]] = ()
    """The writes that `notice` looks at."""
    shape_first: ClassVar[bool] = False
    """Whether what a write says is named before who made it, where both are wrong."""
    suspects_first: ClassVar[bool] = False
    """Whether a write is taken for part of a controlled shutdown rather than for one whose author
    does not know who is there, where it may be either."""
    any_write: ClassVar[tuple[str, ...]] = ("znode.well-formed",)
    """What every write that a rule accepts puts to the test besides."""
    of_topics: ClassVar[tuple[type, ...]] = ()
    """The writes of a topic's znode, where more stands than the partition."""
    assigns: ClassVar[type] = AssignedWritten
    """The event that says which replicas are assigned (`find_assigned`)."""
    flights: ClassVar[tuple[type, ...]] = ()
    """The events that say whether a reassignment is under way, and to where (`find_target`)."""
    kept_at_rest: ClassVar[tuple[str, ...]] = ()
    """The clauses on a cluster as a whole that a rest puts to the test."""

    def __init__(self, profile: str, readings: Readings) -> None:
        self.profile = profile
        self.is_view_kept = False
        """Whether what becomes of a partition depends on what an author saw of the cluster."""
        self.readings = readings
        invariants = self.judgement.invariants
        self.always: Final = tuple(
            (each.clause, each.find) for each in invariants if not each.at_rest
        )
        """What is true of a partition after every write."""

    def make_router(
        self, grace_ms: int = GRACE_MS, *, whole: bool = True, min_insync_replicas: int = 1
    ) -> Router[Any]:
        """Return what turns transactions into observations."""
        least = min_insync_replicas
        return self.router(self.readings, grace_ms, whole=whole, min_insync_replicas=least)

    def make_tracker(self, tally: Tally) -> CrossPartitionTracker | None:
        """Return what follows all partitions at once (`reassure_judge.cross_partition`), if any."""
        return None

    # What happens ---------------------------------------------------------------------------------

    @abstractmethod
    def begin(self) -> Kept:
        """Return the state of a partition before anything was written."""

    @abstractmethod
    def find_write(self, state: Kept, seen: SeenWrite) -> Written | None:
        """Say which write of the model was seen; None for what is none of a controller or leader.

        `state` is the likeliest one.
        """

    @abstractmethod
    def take_over(self, state: Kept, seen: SeenWrite) -> Iterable[Kept]:
        """Return what a state becomes by what was seen, which no rule is asked about."""

    def fail_over(self, state: Kept) -> Kept:
        """Return the state as the next controller finds it."""
        return self._keep(state, self.judgement.fail_over(state.partition, self.readings))

    def _keep(self, state: Kept, partition: Any) -> Kept:
        kept: Kept = state._replace(partition=partition)
        return kept

    def accept(self, state: Kept, write: Written, around: Environment) -> Accepted[Any] | Rejected:
        """Ask the model about a write."""
        return self.judgement.accept(state.partition, write, around, self.readings)

    def follow(self, state: Kept, after: Any, write: Written) -> Kept:
        """Return the state after a write was accepted; `after` is the partition by then."""
        return self._keep(state, after)

    def count_besides(self, write: Written) -> tuple[str, ...]:
        """Return what an accepted write puts to the test by what it is, whatever allowed it."""
        besides = _REST_KEPT if isinstance(write, self.of_topics) else ()
        return (*self.any_write, *besides)

    def notice(self, state: Kept, write: Written, memory: dict[str, int]) -> tuple[str, ...]:
        """Return the clauses that an accepted write put to the test by what came before it.

        `memory` belongs to the partition. Asked for `noticed` writes only, before they are taken
        over.
        """
        return ()

    # What is not certain --------------------------------------------------------------------------

    def is_bound(self, state: Kept) -> bool:
        """Whether a controller must act in this state; else it may forget it at any time."""
        return True

    @abstractmethod
    def list_named(self, state: Kept, write: Written | None) -> frozenset[int]:
        """Return the brokers that matter to a partition, or to a write to it."""

    def list_wanted(self, states: Iterable[Kept]) -> frozenset[int] | None:
        """Return the brokers on which silent steps depend; None where none does."""
        return None

    def is_silent(self, state: Kept) -> bool:
        """Whether there is a silent step to think of at all."""
        return False

    def take_silent_steps(self, state: Kept, views: Iterable[Environment]) -> Iterable[Kept]:
        """Return the states that one step without a write leads to, under any of the views."""
        return ()

    def list_stopping(
        self, state: Kept, write: Written, around: Environment
    ) -> Iterator[frozenset[int]]:
        """Yield live brokers that a write may be right about if all of them are about to stop."""
        yield from ()

    # After a write that no rule allows ------------------------------------------------------------

    @abstractmethod
    def adopt(self, partition: Any, write: Written) -> Any:
        """Return the partition with what was written, and nothing else changed."""

    def believe(self, state: Kept, write: Written) -> Iterable[Kept]:
        """Return all that the author of such a write may take to be the case."""
        return (self._keep(state, self.adopt(state.partition, write)),)

    def list_faults(self, partition: Any) -> frozenset[Fault]:
        """Return what is wrong with a partition as it stands, whoever made it so."""
        found = ((each.clause, each.find(partition)) for each in self.judgement.invariants)
        return frozenset((clause_id, reason) for clause_id, reason in found if reason is not None)

    def look_past(self, partition: Any, write: Written) -> tuple[Any, Written]:
        """Return partition and write with what may stay wrong for long put right, in both."""
        return partition, write

    # At rest --------------------------------------------------------------------------------------

    def find_owed(self, partition: Any, around: Environment) -> Due[Written] | None:
        """Return what a controller has to write next."""
        return self.judgement.owed(partition, around, self.readings)

    def find_debt(self, partition: Any, owed: Due[Written], untouched: frozenset[str]) -> Rejected:
        """Say which rule a controller breaks that rests while this write is owed."""
        return Rejected(owed.clause, f"the controller rests and owes: {self.describe(owed.write)}")

    def find_leftover(self, clause_id: str, path: str, reason: str, *, untouched: bool) -> Rejected:
        """Say what is broken where something that is none of ours is there at rest."""
        return Rejected(clause_id, f"still there: {reason}")

    def list_kept(self, partition: Any) -> Iterable[str]:
        """Return the clauses that a partition puts to the test by being there at rest."""
        return ()

    def find_assigned(self, event: Any) -> ReplicaList | None:
        """Return whom such an event says to be assigned, None where the partition is gone."""
        assigned: ReplicaList | None = event.assigned
        return assigned

    def tells_flight(self, event: object) -> bool | None:
        """Whether a reassignment is under way from here on; None where an event does not say."""
        return self.find_target(event) is not None if isinstance(event, self.flights) else None

    def find_target(self, event: object) -> ReplicaList | None:
        """Return where one of the `flights` says that a partition goes, None where it rests."""
        return None

    def find_route(self, event: object) -> str:
        """Return what such an event was read from, in a word or two."""
        return ""

    # Elections ------------------------------------------------------------------------------------

    def accept_election(
        self, before: Controllership, election: ElectionSeen
    ) -> Accepted[Controllership] | Rejected:
        """Judge one transaction that elected a controller, raised the epoch, or both."""
        broker, epoch, ephemeral = election
        return accept_election(before, broker, epoch, ephemeral=ephemeral)

    # In words -------------------------------------------------------------------------------------

    @abstractmethod
    def describe(self, write: Written) -> str:
        """Return the content that a write leaves, as text."""

    @abstractmethod
    def describe_before(self, partition: Any, event: object) -> str:
        """Return what an event changed, as text."""

    @abstractmethod
    def describe_resting(
        self, partition: Any, topic: str, number: int, owed: Due[Written] | None
    ) -> tuple[str, str]:
        """Return the znode that should have been written, and its content."""

    def exists(self, partition: Any) -> bool:
        """Whether there is anything of a partition."""
        return partition.assigned is not None

    def show(self, partition: Any) -> Partition | None:
        """Return a partition as whoever drives the cluster looks at it; None: there is nothing.

        What a client waits for counts as a reassignment in flight, however it is kept.
        """
        there = partition.assigned is not None or partition.requests
        return partition if there else None


class ReplicaRules(Rules[Kept, Written]):
    """One protocol whose partitions have assigned replicas, an in-sync set and a leader."""

    leaders = (ChangeIsr,)
    kept_at_rest = ("controller.epoch.kept", "znode.roots-kept", "topic.settings-kept")

    def list_faults(self, partition: Any) -> frozenset[Fault]:
        """Return what is wrong with a partition as it stands, replicas standing twice included."""
        isr = () if partition.state is None else partition.state.isr
        lists = (
            ("assigned.no-duplicates", partition.assigned or ()),
            ("isr.no-duplicates", isr),
        )
        twice = {(c, str(r)) for c, each in lists for r in each if each.count(r) > 1}
        return super().list_faults(partition) | twice

    def list_kept(self, partition: Any) -> Iterator[str]:
        """Yield the clauses that a partition puts to the test by being there."""
        if partition.assigned is not None:
            yield "topic.removed-when-asked"
        if partition.state is not None:
            yield "partition.state-kept"
