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

from reassure_model.copies import (
    Append,
    Copies,
    can_join,
    delete_log,
    find_nothing_held,
    find_outside,
    find_running_unassigned,
    happen,
    is_in_sync,
    is_led,
    list_happenings,
    make_copies,
)
from reassure_model.environment import Controller, Die, Failover, Join, NotPossible, Return
from reassure_model.outcome import Accepted, Rejected
from reassure_model.selectors import (
    select_controlled_shutdown,
    select_offline,
    select_preferred,
    select_reassigned,
)
from reassure_spec.clauses import checks, clause
from reassure_spec.znodes import NO_LEADER, AssignmentZnode, ReplicaList


def _without(replicas: ReplicaList, others: ReplicaList) -> ReplicaList:
    return tuple(replica for replica in replicas if replica not in others)


@dataclass(frozen=True, slots=True)
class Assignment(AssignmentZnode):
    """A partition's entry in the topic's znode, and what follows from it."""

    @property
    def original(self) -> ReplicaList:
        """What was assigned when the first reassignment in the chain began, order aside."""
        return _without(self.replicas, self.adding)

    @property
    def target(self) -> ReplicaList:
        """Where it is going; all replicas where nothing is in flight."""
        return _without(self.replicas, self.removing)

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
    return Assignment(replicas, _without(replicas, original), _without(replicas, target))


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
    unneeded = _without(now.replicas, wanted.replicas)
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


def _write_leader(
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
    isr = _without(shipped.isr, (cut.replica,)) or shipped.isr
    if cut.replica != shipped.leader:
        told = shipped.assignment.target if cut.step == "B4" else None
        return _write_leader(after, shipped.leader, isr, told)
    return _write_leader(replace(after, overlooked=not died), NO_LEADER, isr)


def _elect(shipped: Shipped, target: ReplicaList | None) -> Shipped:
    """Elect; where nobody qualifies nothing is written, and a completion goes on all the same."""
    if target is None:
        elected = select_offline(shipped.assigned, shipped.isr, shipped.live)
    else:
        elected = select_reassigned(target, shipped.isr, shipped.live)
    if elected is None:
        return shipped
    return _write_leader(replace(shipped, overlooked=False), elected.leader, elected.isr, target)


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
            return _write_leader(shipped, shipped.leader, shipped.isr, told)
        case StartReplica(replica):
            return replace(shipped, running=shipped.running | ({replica} & shipped.live))
        case Elect(target):
            return _elect(shipped, target)
        case RemoveEntry(reached):
            matches = shipped.entry is not None and reached in (None, shipped.entry)
            return replace(shipped, entry=None, unwatched=False) if matches else shipped


def next_effect(shipped: Shipped) -> Effect | None:
    """Return the effect that comes next, None while the controller waits."""
    plan = shipped.plan or next_plan(shipped)
    return plan[0] if plan else None


def _act(shipped: Shipped) -> tuple[Effect, Shipped] | None:
    if shipped.plan:
        effect, *left = shipped.plan
        return effect, apply_effect(replace(shipped, plan=tuple(left)), effect)
    plan = next_plan(shipped)
    if not plan:
        return None
    looked = replace(shipped, plan=plan)
    if not plan_for_deaths(shipped):
        looked = replace(looked, unread=False)
    return _act(looked)


# The world around it ----------------------------------------------------------------------------


@clause("shipped.isr.told-may-join")
def can_join_told(shipped: Shipped, replica: int) -> bool:
    """Whether the leader was told of a replica that can be taken into the in-sync set."""
    return replica in shipped.told and can_join(shipped, replica)


def enabled(shipped: Shipped, targets: tuple[ReplicaList | None, ...] = ()) -> tuple[Action, ...]:
    """Return every action that is possible; `targets` are those that calls may ask for."""
    actions: list[Action] = [Controller()] if next_effect(shipped) is not None else []
    if not is_busy(shipped):
        calls = (Alter(target) for target in targets)
        actions += [c for c in calls if not isinstance(plan_call(shipped, c.target), Rejected)]
    joining = (r for r in sorted(shipped.running) if can_join_told(shipped, r))
    known = shipped.live | shipped.running | shipped.holding | frozenset(shipped.assigned)
    return (*actions, *list_happenings(shipped, joining, known), Failover())


@clause("shipped.call.one-event-at-a-time")
def is_busy(shipped: Shipped) -> bool:
    """Whether the controller is at an event, or one comes first, so that it takes no call.

    Before it takes a call it has heard of deaths, and has come to an end of taking office.
    """
    held = shipped.assignment.is_reassigning or shipped.entry is not None
    return bool(shipped.plan or plan_for_deaths(shipped)) or (shipped.resume and held)


@checks
def elect_preferred(shipped: Shipped) -> Outcome:
    """Elect the first of the list, which is the target's while one is in flight."""
    elected = select_preferred(shipped.assigned, shipped.isr, shipped.live)
    if elected is None:
        return Rejected("shipped.preferred.target-first", "it is not live and in sync")
    if elected.leader == shipped.leader:
        return Accepted(shipped)
    after = replace(shipped, overlooked=False)
    return Accepted(_write_leader(after, elected.leader, elected.isr))


@checks
def shut_down(shipped: Shipped, broker: int, stopping: frozenset[int]) -> Outcome:
    """Take a broker out of the in-sync set, after another has taken over where it leads."""
    if broker not in shipped.isr:
        return Accepted(shipped)
    if broker != shipped.leader:
        return Accepted(_write_leader(shipped, shipped.leader, _without(shipped.isr, (broker,))))
    elected = select_controlled_shutdown(shipped.assigned, shipped.isr, shipped.live, stopping)
    if elected is None:
        return Rejected("shipped.shutdown.leader-moved", "nobody can take over; it keeps leading")
    return Accepted(_write_leader(shipped, elected.leader, elected.isr))


def step(shipped: Shipped, action: Action) -> Outcome:
    """Take one action.

    Rejected is the answer to a call that is refused. Raises NotPossible for an action that has
    nothing to act upon, and for a call while the controller is at another event.
    """
    match action:
        case WriteEntry(target, created):
            heard = created and shipped.entry is None and not shipped.unwatched
            return Accepted(replace(shipped, entry=target, unread=shipped.unread or heard))
        case DeleteZnode(others) if others or shipped.entry is not None:
            deaf = shipped.unwatched or not shipped.unread
            return Accepted(replace(shipped, entry=None, unread=False, unwatched=deaf))
        case Alter(target) if not is_busy(shipped):
            plan = plan_call(shipped, target)
            if isinstance(plan, Rejected):
                return plan
            return Accepted(replace(shipped, plan=plan))
        case Prefer() if not is_busy(shipped):
            return elect_preferred(shipped)
        case ShutDown(broker, others) if not is_busy(shipped):
            return shut_down(shipped, broker, others | {broker})
        case AskDeletion():
            return Accepted(replace(shipped, deleting=True))
        case Controller():
            acted = _act(shipped)
            if acted is not None:
                return Accepted(acted[1], effects=(acted[0],))
        case _:
            after = _happen(shipped, action)
            if after is not shipped:
                return Accepted(after)
    raise NotPossible(f"{action} is not possible in {shipped}")


def _happen(shipped: Shipped, action: Action) -> Shipped:
    """Return the partition after something that nobody decides, itself where it cannot be."""
    if isinstance(action, Join) and not can_join_told(shipped, action.replica):
        return shipped
    after = happen(shipped, action)
    match action:
        case Die(broker) if after is not shipped:
            # Who was down is told anew what to run when it is back. Whoever dies, the controller
            # looks for partitions without a leader.
            return replace(after, running=after.running - {broker}, overlooked=False)
        case Return(broker) if after is not shipped:
            again = shipped.assignment.is_reassigning and broker in shipped.assignment.target
            return replace(after, resume=shipped.resume or again)
        case Failover():
            unread = shipped.entry is not None
            after = replace(after, plan=(), unread=unread, unwatched=False, overlooked=False)
            return replace(after, plan=plan_office(after), resume=True)
    return after


# What must never be -------------------------------------------------


def is_at_rest(shipped: Shipped) -> bool:
    """Whether the controller waits and nothing is in flight."""
    return next_effect(shipped) is None and not shipped.assignment.is_reassigning


@clause("shipped.isr.within-assigned")
def find_outside_assigned(shipped: Shipped) -> str | None:
    """Say so when the in-sync set lies outside the assignment; at rest (finding zk-2)."""
    return find_outside(shipped)


@clause("shipped.assigned.holds-committed")
def find_emptied_assignment(shipped: Shipped) -> str | None:
    """Say so when no assigned replica has the records; at rest (findings zk-1, zk-5)."""
    return find_nothing_held(shipped)


@clause("shipped.change.led")
def find_leaderless(shipped: Shipped) -> str | None:
    """Say so when nobody leads, somebody could, and the controller waits (finding zk-6)."""
    if shipped.leader != NO_LEADER or next_effect(shipped) is not None:
        return None
    elected = select_offline(shipped.assigned, shipped.isr, shipped.live)
    return None if elected is None else f"nobody leads, {elected.leader} could"


@clause("shipped.isr.electable")
def find_offline_for_good(shipped: Shipped) -> str | None:
    """Say so when nobody leads and nobody ever can, and the controller waits (finding zk-11).

    Whoever comes back is elected only where it is both assigned and in sync.
    """
    if next_effect(shipped) is not None:
        return None
    return find_unelectable(shipped.leader, shipped.isr, shipped.assigned)


def find_unelectable(leader: int, isr: ReplicaList, assigned: ReplicaList) -> str | None:
    """Say so when nobody leads a partition and, of those in sync, nobody is assigned."""
    if leader != NO_LEADER or not assigned or any(replica in assigned for replica in isr):
        return None
    return f"nobody leads, and of those in sync nobody is assigned: {list(isr)}"


@clause("shipped.cancel.no-strays")
def find_stray(shipped: Shipped) -> str | None:
    """Say so when a replica runs that is not assigned; at rest (finding zk-3)."""
    return find_running_unassigned(shipped)


@clause("shipped.entry.not-for-ever")
def find_entry_for_ever(shipped: Shipped) -> str | None:
    """Say so when an entry is left that nobody will look at; at rest (finding zk-4)."""
    if shipped.entry is None:
        return None
    return f"the old znode asks for {list(shipped.entry)} and nothing is in flight"


@clause("shipped.assignment.original-derivable")
def find_bad_lists(shipped: Shipped) -> str | None:
    """Say so when the three lists contradict each other."""
    now = shipped.assignment
    if len(set(now.replicas)) < len(now.replicas):
        return f"a replica stands twice in {list(now.replicas)}"
    if not set(now.adding) | set(now.removing) <= set(now.replicas):
        return "a replica is added or removed that is not assigned"
    both = sorted(set(now.adding) & set(now.removing))
    return f"added and removed at once: {both}" if both else None
