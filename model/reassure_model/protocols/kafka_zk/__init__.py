"""KIP-455: what controllers on ZooKeeper did with a reassignment from Kafka 2.4 to 3.9.

A partition's assignment is three lists in the topic's znode: all replicas, those being added, those
being removed. What the partition began with and where it is going follow from them
(`Assignment.original`, `Assignment.target`), so that there is no other record, no `top` and no drop
rule: another target keeps the original replicas and sheds the added ones it does not name.

A controller handles one event at a time, as a plan of effects: take up the old znode, a call of the
programming interface, a change of the in-sync set, a broker's death or start. Kafka numbers the
effects U1 and U3 (record the target, stop what it does not need), A1 and A2 (tell the leader, start
the added replicas), B3 to B7 (move the leader, stop the removed replicas, record the target, clean
up the old znode). A crash can fall between any two of them; the plan is in the controller's memory
(`Shipped.plan`). Effects on memory alone (U2, B1, B2, B8) are not modelled, and to read the old
znode and to write it is one effect.

A controller that takes office takes the dead offline one by one before it elects, so that the death
of a leader costs two epochs; one that sees a broker die elects first, which costs one.

A leader hears of its partition with each new leader epoch (`Shipped.told`) and takes whomever it
was told of into the in-sync set: until 2.6 it wrote the set itself, from 2.7 the controller writes
what the leader asks for and looks at no assignment (from 3.3 it looks at who is registered).

Which target counts when several are asked for: the last one, by whatever route. After a failover
that is the old znode's, if it still names the partition.
"""

from dataclasses import dataclass, replace

from reassure_model.copies import Append, Copies, delete_log, is_in_sync, is_led, make_copies
from reassure_model.environment import Controller, Die, Failover, Join, Return
from reassure_model.outcome import Accepted, Rejected
from reassure_model.selectors import select_offline, select_reassigned
from reassure_spec.clauses import checks, clause
from reassure_spec.znodes import NO_LEADER, AssignmentZnode, ReplicaList


def without(replicas: ReplicaList, others: ReplicaList) -> ReplicaList:
    """Return the replicas that are not among the others, in order."""
    return tuple(replica for replica in replicas if replica not in others)


@dataclass(frozen=True, slots=True)
class Assignment(AssignmentZnode):
    """A partition's entry in the topic's znode, and what follows from it."""

    @property
    def original(self) -> ReplicaList:
        """What was assigned when the first reassignment in the chain began, order aside."""
        return without(self.replicas, self.adding)

    @property
    def target(self) -> ReplicaList:
        """Where it is going; all replicas where nothing is in flight."""
        return without(self.replicas, self.removing)

    @property
    def is_reassigning(self) -> bool:
        """Whether replicas are being added or removed; a new order alone is no reassignment."""
        return bool(self.adding or self.removing)


@clause("shipped.assignment.target-first", "shipped.assignment.original-derivable")
def reassign_to(assignment: Assignment, target: ReplicaList) -> Assignment:
    """Return the assignment once it is to go to another target.

    >>> reassign_to(Assignment((1, 2, 3)), (3, 4, 2))
    Assignment(replicas=(3, 4, 2, 1), adding=(4,), removing=(1,))
    """
    original = assignment.original
    replicas = tuple(dict.fromkeys(target + original))
    return Assignment(replicas, without(replicas, original), without(replicas, target))


# Effects of the controller ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Record:
    """Write an assignment into the topic's znode (U1, B6)."""

    assignment: Assignment
    step: str


@dataclass(frozen=True, slots=True)
class CutIsr:
    """Take a replica out of the in-sync set and tell it to stop (U3, B4, or its broker died)."""

    replica: int
    step: str


@dataclass(frozen=True, slots=True)
class DeleteLog:
    """Tell a stopped replica to delete its log (U3, B5)."""

    replica: int
    step: str


@dataclass(frozen=True, slots=True)
class Look:
    """Read the in-sync set and go on with phase A or phase B."""


@dataclass(frozen=True, slots=True)
class Announce:
    """Write a new leader epoch and send the assignment to the replicas (A1, B3)."""

    step: str


@dataclass(frozen=True, slots=True)
class StartReplica:
    """Start an added replica as a follower (A2)."""

    replica: int


@dataclass(frozen=True, slots=True)
class Elect:
    """Elect from the target (B3), or, after deaths, from all that are assigned."""

    target: ReplicaList | None = None


@dataclass(frozen=True, slots=True)
class RemoveEntry:
    """Remove the partition from the old znode, in B7 only where it names what was reached."""

    reached: ReplicaList | None
    """None removes any entry."""
    why: str


Effect = Record | CutIsr | DeleteLog | Look | Announce | StartReplica | Elect | RemoveEntry
Plan = tuple[Effect, ...]


@dataclass(frozen=True, slots=True)
class Shipped(Copies):
    """One partition, the old znode's entry for it, and what the acting controller remembers."""

    adding: ReplicaList = ()
    removing: ReplicaList = ()
    told: frozenset[int] = frozenset()
    """The replicas that the leader knows of, since it was last told; none without a leader."""
    entry: ReplicaList | None = None
    """Target under `/admin/reassign_partitions`, None where the partition is not named there."""
    unread: bool = False
    """The old znode was created, or the controller took office, and it has not looked yet."""
    unwatched: bool = False
    """A client deleted the old znode, so that the controller does not hear of the next one."""
    resume: bool = False
    """The controller took office, or a broker of the target came back: phase A or B again."""
    overlooked: bool = False
    """A change has stopped the leader, and the controller takes the partition for led."""
    deleting: bool = False
    """The topic is to be deleted."""
    plan: Plan = ()
    """What is left to do of the event at hand."""

    @property
    def assignment(self) -> Assignment:
        """The three lists of the topic's znode."""
        return Assignment(self.assigned, self.adding, self.removing)


# Actions that are not the controller's ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WriteEntry:
    """A client writes the old znode; one that changes it while it is there is not noticed."""

    target: ReplicaList | None
    created: bool = True


@dataclass(frozen=True, slots=True)
class DeleteZnode:
    """A client deletes the old znode, which names this partition or others."""

    others: bool = False


@dataclass(frozen=True, slots=True)
class Alter:
    """A client calls AlterPartitionReassignments; None cancels."""

    target: ReplicaList | None


@dataclass(frozen=True, slots=True)
class AskDeletion:
    """A client asks for the topic to be deleted."""


@dataclass(frozen=True, slots=True)
class Prefer:
    """Somebody asks for the preferred leader."""


@dataclass(frozen=True, slots=True)
class ShutDown:
    """A broker asks to shut down; others may be shutting down already."""

    broker: int
    others: frozenset[int] = frozenset()


Action = (
    WriteEntry
    | DeleteZnode
    | Alter
    | AskDeletion
    | Prefer
    | ShutDown
    | Append
    | Join
    | Die
    | Return
    | Failover
    | Controller
)
Outcome = Accepted[Shipped] | Rejected


def make_shipped(assigned: ReplicaList, brokers: frozenset[int]) -> Shipped:
    """Return a healthy partition led by its first replica, on these brokers."""
    return replace(make_copies(Shipped, assigned, brokers), told=frozenset(assigned))


# Plans ------------------------------------------------------------------------------------------


@clause("shipped.change.recorded-first", "shipped.change.unneeded-stopped")
def plan_change(now: Assignment, wanted: Assignment) -> Plan:
    """Return phase U and what follows: record, stop what is not needed any more, look."""
    if now == wanted:
        return (Look(),)
    unneeded = without(now.replicas, wanted.replicas)
    return (Record(wanted, "U1"), *_plan_stop(unneeded, "U3", "U3"), Look())


def _plan_stop(replicas: ReplicaList, cut: str, delete: str) -> Plan:
    stops = tuple(CutIsr(replica, cut) for replica in replicas)
    return (*stops, *(DeleteLog(replica, delete) for replica in replicas))


@clause("shipped.start.announced-first", "shipped.complete.target-in-sync")
@clause("shipped.complete.leader-first", "shipped.complete.assignment-after-stop")
@clause("shipped.complete.entry-last")
def plan_phase(shipped: Shipped) -> Plan:
    """Return phase B where the whole target is in sync, and phase A where it is not."""
    target, now = shipped.assignment.target, shipped.assignment
    if now.is_reassigning and not is_in_sync(shipped, target):
        return (Announce("A1"), *(StartReplica(replica) for replica in now.adding))
    stays = shipped.leader in target and is_led(shipped)
    return (
        Announce("B3") if stays else Elect(target),
        *_plan_stop(now.removing, "B4", "B5"),
        Record(Assignment(target), "B6"),
        RemoveEntry(target, "B7"),
    )


@clause("shipped.entry.unknown-removed", "shipped.entry.supplants")
@clause("shipped.delete.blocks-reassignment")
def plan_entry(shipped: Shipped) -> Plan:
    """Return what the controller does about the entry of the old znode; nothing is checked."""
    assert shipped.entry is not None
    if shipped.deleting:
        return (RemoveEntry(None, "topic is being deleted"),)
    if not shipped.assigned:
        return (RemoveEntry(None, "no such partition"),)
    return plan_change(shipped.assignment, reassign_to(shipped.assignment, shipped.entry))


def plan_for_deaths(shipped: Shipped) -> Plan:
    """Return an election where the leader is dead, else a cut for each dead in-sync replica."""
    if not is_led(shipped) and not shipped.overlooked:
        elected = select_offline(shipped.assigned, shipped.isr, shipped.live)
        if elected is not None:
            return (Elect(),)
    cuts = plan_offline(shipped)
    # The last in-sync replica stays, dead or not: it is where the records are.
    lost = shipped.leader != NO_LEADER and not is_led(shipped)
    return cuts if lost else cuts[: len(shipped.isr) - 1]


def plan_offline(shipped: Shipped) -> Plan:
    """Return a cut for each in-sync replica that is dead; of who is not assigned nobody hears."""
    dead = (r for r in shipped.isr if r in shipped.assigned and r not in shipped.live)
    return tuple(CutIsr(replica, "death") for replica in dead)


@clause("shipped.failover.offline-first")
def plan_office(shipped: Shipped) -> Plan:
    """Return what a controller that takes office does first: the dead offline, then an election."""
    cuts = plan_offline(shipped)
    led = is_led(shipped)
    return cuts if led else (*cuts, Elect())


@clause("shipped.failover.entry-first", "shipped.target-start.again", "shipped.entry.created-only")
def next_plan(shipped: Shipped) -> Plan:
    """Return the plan of the event that the controller handles next, () where there is none."""
    deaths = plan_for_deaths(shipped)
    if deaths:
        return deaths
    if shipped.unread and shipped.entry is not None:
        return plan_entry(shipped)
    now = shipped.assignment
    complete = is_in_sync(shipped, now.target)
    return (Look(),) if now.is_reassigning and (shipped.resume or complete) else ()


@clause("shipped.cancel.to-original", "shipped.call.supplants-entry")
@checks
def plan_call(shipped: Shipped, asked: ReplicaList | None) -> Plan | Rejected:
    """Return what a call of the interface leads to, or why it is refused."""
    now = shipped.assignment
    if shipped.deleting or not now.replicas:
        return Rejected("shipped.call.validated", "UNKNOWN_TOPIC_OR_PARTITION")
    if asked is None and not now.is_reassigning:
        return Rejected("shipped.call.nothing-to-cancel", "NO_REASSIGNMENT_IN_PROGRESS")
    target = now.original if asked is None else asked
    wanted = reassign_to(now, target)
    bad = not target or len(set(target)) < len(target) or min(target) < 0
    if bad or not shipped.live.issuperset(wanted.adding):
        return Rejected("shipped.call.validated", "INVALID_REPLICA_ASSIGNMENT")
    plan = plan_change(now, wanted)
    return plan if shipped.entry is None else (RemoveEntry(None, "a call counts"), *plan)


# Effects ----------------------------------------------------------------------------------------


def write_leader(
    shipped: Shipped, leader: int, isr: ReplicaList, told: ReplicaList | None = None
) -> Shipped:
    """Write a leader with the next epoch; it is told of all that are assigned, or of the target."""
    known = shipped.assigned if told is None else told
    return replace(
        shipped,
        leader=leader,
        isr=isr,
        leader_epoch=shipped.leader_epoch + 1,
        told=frozenset() if leader == NO_LEADER else frozenset(known),
    )


@clause("shipped.isr.last-kept", "shipped.leader.none-when-stopped")
def _cut(shipped: Shipped, cut: CutIsr) -> Shipped:
    """Take a replica out of the in-sync set; the last one stays, and a leader that goes is none."""
    died = cut.step == "death"
    stopped = frozenset() if died else frozenset({cut.replica})
    after = replace(shipped, running=shipped.running - stopped)
    if cut.replica not in shipped.isr:
        return after
    isr = without(shipped.isr, (cut.replica,)) or shipped.isr
    if cut.replica != shipped.leader:
        told = shipped.assignment.target if cut.step == "B4" else None
        return write_leader(after, shipped.leader, isr, told)
    return write_leader(replace(after, overlooked=not died), NO_LEADER, isr)


def _elect(shipped: Shipped, target: ReplicaList | None) -> Shipped:
    """Elect; where nobody qualifies nothing is written, and a completion goes on all the same."""
    if target is None:
        elected = select_offline(shipped.assigned, shipped.isr, shipped.live)
    else:
        elected = select_reassigned(target, shipped.isr, shipped.live)
    if elected is None:
        return shipped
    return write_leader(replace(shipped, overlooked=False), elected.leader, elected.isr, target)


@clause("shipped.entry.matching-target")
def apply_effect(shipped: Shipped, effect: Effect) -> Shipped:
    """Return the partition after an effect of the controller."""
    match effect:
        case Record(assignment):
            lists = (assignment.replicas, assignment.adding, assignment.removing)
            return replace(shipped, assigned=lists[0], adding=lists[1], removing=lists[2])
        case CutIsr():
            return _cut(shipped, effect)
        case DeleteLog(replica):
            return delete_log(shipped, replica)
        case Look():
            return replace(shipped, resume=False, plan=plan_phase(shipped))
        case Announce(at):
            told = shipped.assignment.target if at == "B3" else None
            return write_leader(shipped, shipped.leader, shipped.isr, told)
        case StartReplica(replica):
            return replace(shipped, running=shipped.running | ({replica} & shipped.live))
        case Elect(target):
            return _elect(shipped, target)
        case RemoveEntry(reached):  # one way: there is no other effect
            matches = shipped.entry is not None and reached in (None, shipped.entry)
            return replace(shipped, entry=None, unwatched=False) if matches else shipped


def next_effect(shipped: Shipped) -> Effect | None:
    """Return the effect that comes next, None while the controller waits."""
    plan = shipped.plan or next_plan(shipped)
    return plan[0] if plan else None


def act(shipped: Shipped) -> tuple[Effect, Shipped] | None:
    """Return the effect that comes next, and the system after it; None while it waits."""
    if shipped.plan:
        effect, *left = shipped.plan
        return effect, apply_effect(replace(shipped, plan=tuple(left)), effect)
    plan = next_plan(shipped)
    if not plan:
        return None
    looked = replace(shipped, plan=plan)
    if not plan_for_deaths(shipped):
        looked = replace(looked, unread=False)
    return act(looked)
