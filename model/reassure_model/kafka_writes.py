"""What Apache Kafka's own controllers and leaders write to a partition, from 0.8.0 to 3.9.

`kafka_zk` and `kafka_42` are models of a reassignment, action by action. Here is what each write
may look like, whoever made it and for whatever reason: reassignments, elections, deaths, shutdowns,
deletions. Two things tell the versions apart. From 2.4 a topic's znode has lists of what is being
added and removed (`LISTS`), so that it says where a partition is going; before, only the old znode
says so (`ENTRIES`). And from 2.7 the controller writes what the leader asks for (`AlterIsr`), where
the leader wrote it by itself before (`ChangeIsr`).

A controller takes one replica after the other offline, and writes no leader where it stops or loses
the one that leads: a partition may be without a leader for one epoch though a successor is there.
"""

from dataclasses import astuple, dataclass, replace
from typing import Final

from reassure_model.outcome import Accepted, Checks, Rejected, accept, judge
from reassure_model.partition import Environment, LeaderAndIsr, is_leader_live
from reassure_model.protocols.kafka_zk import (
    Assignment,
    CutIsr,
    Shipped,
    apply_effect,
    plan_for_deaths,
    reassign_to,
)
from reassure_model.protocols.kip_236.rules import (
    check_assigned_distinct,
    check_controller_epoch,
    check_distinct,
    check_first_state,
    check_leader_epoch,
    check_leader_in_sync,
    check_not_empty,
    has_duplicates,
)
from reassure_model.selectors import select_new, select_offline, select_reassigned
from reassure_model.writes import ChangeIsr, CreateState, WriteState
from reassure_spec.clauses import checks, clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER, ReplicaList


@dataclass(frozen=True, slots=True)
class Hosted:
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
class RemoveEntry:
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
Written = Common | WriteLists | RemoveEntry
Outcome = Accepted[Hosted] | Rejected


@dataclass(frozen=True, slots=True)
class Names:
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


LISTS: Final = Names(
    "shipped.complete.target-in-sync",
    "shipped.complete.leader-first",
    "shipped.complete.assignment-after-stop",
)
ENTRIES: Final = Names("move.step.wait-in-sync", "move.step.elect", "move.step.write-assigned")


def list_targets(hosted: Hosted) -> tuple[ReplicaList, ...]:
    """Return where the partition may be going: by its lists, else by the old znode."""
    if hosted.adding or hosted.removing:
        return (get_assignment(hosted).target,)
    return hosted.asked


def get_assignment(hosted: Hosted) -> Assignment:
    """Return the three lists."""
    return Assignment(hosted.assigned or (), hosted.adding, hosted.removing)


def is_within(replicas: ReplicaList, others: ReplicaList) -> bool:
    """Whether all of these are among the others."""
    return all(replica in others for replica in replicas)


def is_reached(hosted: Hosted, target: ReplicaList) -> bool:
    """Whether the old replicas may be stopped: the target is in sync, or was when that began."""
    state = hosted.state
    return hosted.completing or (state is not None and is_within(target, state.isr))


def get_serving(around: Environment) -> frozenset[int]:
    """Return the brokers that may lead: alive, and not about to stop."""
    return around.live - around.stopping


# The in-sync set, by the leader's word ------------------------------------------------------------


@checks
def check_isr(
    hosted: Hosted, write: ChangeIsr | AlterIsr, around: Environment, readings: Readings
) -> Checks:
    """Check a change of the in-sync set that keeps the leader epoch."""
    old, new = hosted.state, write.state
    assert old is not None
    kept = (new.leader, new.leader_epoch) == (old.leader, old.leader_epoch)
    yield "isr.change.keeps-leader", kept or "only the in-sync set may change so"
    direct = isinstance(write, ChangeIsr)
    wanted = "leader" if direct else "controller"
    if readings.insync_writer not in ("either", wanted):
        yield BY_LEADER, f"the {wanted} wrote the in-sync set"
    writer = write.writer if isinstance(write, ChangeIsr) else old.leader
    right = old.leader != NO_LEADER and writer == old.leader
    yield BY_LEADER, right or f"broker {writer} wrote, broker {old.leader} leads"
    # A leader writes the epoch of the controller that made it one; a controller writes its own.
    least = old.controller_epoch if direct else around.controller_epoch
    if not least <= new.controller_epoch <= around.controller_epoch:
        yield check_controller_epoch(new, around, least=least)
    if len(new.isr) == 0:
        yield check_not_empty(new.isr)
    if has_duplicates(new.isr):
        yield check_distinct(new.isr)
    stays = old.leader in new.isr
    yield "isr.change.leader-kept", stays or f"leader {old.leader} left the in-sync set"
    joined = tuple(r for r in new.isr if r not in old.isr)
    if not joined:
        return
    # A leader that writes by itself may not have been told yet of what has just changed.
    known = (*(hosted.assigned or ()), *(hosted.told if direct else ()))
    strangers = [r for r in joined if r not in known]
    yield "isr.change.assigned-only", not strangers or f"{strangers[0]} joined and is not assigned"
    dead = [r for r in joined if r not in around.live]
    # A leader that writes by itself reads no registration: who fetches and keeps up joins.
    if not (dead and direct):
        yield "isr.change.live-only", not dead or f"{dead[0]} joined and is not alive"


# The controller's writes of leader and in-sync set ------------------------------------------------


def accept_write_state(
    hosted: Hosted, write: WriteState, around: Environment, readings: Readings, names: Names
) -> Outcome:
    """Judge a controller's write of leader and in-sync set, for whatever reason."""
    new = write.state
    done = [t for t in list_targets(hosted) if new.leader in t and is_within(t, new.isr)]
    completing = hosted.completing or bool(done)
    told = done[0] if done else hosted.assigned or ()
    after = replace(hosted, state=new, completing=completing, told=told, dropped=None)
    after = replace(after, emptied=len(new.isr) == 0)
    return accept(check_state(hosted, new, around, readings, names), after)


@checks
def check_state(
    hosted: Hosted, new: LeaderAndIsr, around: Environment, readings: Readings, names: Names
) -> Checks:
    """Check leader and in-sync set, and who is in neither any more."""
    old = hosted.state
    assert old is not None and hosted.assigned is not None
    yield check_leader_epoch(old, new)
    yield check_controller_epoch(new, around)
    candidates = (*hosted.assigned, *(r for t in list_targets(hosted) for r in t))
    if new.leader not in (NO_LEADER, old.leader, *candidates):
        yield "leader.assigned", f"leader {new.leader}, assigned {hosted.assigned}"
    # Before 1.1 (KAFKA-5083) the last one is taken out as well, which loses nothing at a deletion.
    last = around.deleting and names == ENTRIES and len(old.isr) <= 1
    if not last:
        yield check_not_empty(new.isr)
    yield check_distinct(new.isr)
    yield check_leader_in_sync(new)
    if new.leader == old.leader:
        yield from check_kept_leader(hosted, new, around, names)
    elif new.leader == NO_LEADER:
        yield from check_lost_leader(hosted, new, around, names)
    else:
        yield from check_election(hosted, new, around, readings, names)


@clause(LISTS.target_in_sync, LISTS.leader_first, ENTRIES.target_in_sync, ENTRIES.leader_first)
@checks
def check_removal(hosted: Hosted, new: LeaderAndIsr, around: Environment, names: Names) -> Checks:
    """Check who joined, and who left the in-sync set without being dead, stopped or unneeded."""
    old = hosted.state
    assert old is not None
    joined = [r for r in new.isr if r not in old.isr]
    if joined:
        yield CONDITIONAL, f"{joined[0]} joined, which is for the leader to say"
    if around.deleting:
        return
    serving = get_serving(around)
    for replica in (r for r in old.isr if r not in new.isr):
        if replica not in serving or replica not in (hosted.assigned or ()):
            continue
        leaving = [t for t in list_targets(hosted) if replica not in t]
        if len(leaving) == 0:
            yield REMOVED_WHEN_DUE, f"{replica} is alive and stays assigned"
        reached = [t for t in leaving if is_reached(hosted, t)]
        if not reached:
            missing = [r for r in leaving[0] if r not in old.isr]
            yield names.target_in_sync, f"target replicas not in sync: {missing}"
        if not any(new.leader in t for t in reached):
            yield names.leader_first, f"{replica} is stopped, and {new.leader} leads"


@checks
def check_kept_leader(
    hosted: Hosted, new: LeaderAndIsr, around: Environment, names: Names
) -> Checks:
    """Check a write that leaves the leader: a removal, or a new epoch alone."""
    old = hosted.state
    assert old is not None
    yield from check_removal(hosted, new, around, names)
    if len(new.isr) < len(old.isr):
        yield REMOVED_WHEN_DUE, True
        yield CONDITIONAL, True
        return
    # The last member stays when its broker dies, and the epoch is raised all the same.
    last = len(old.isr) == 1 and old.isr[0] not in get_serving(around)
    # From 2.4 any call of the interface raises the epoch, and no znode shows calls.
    called = names == LISTS or len(hosted.asked) > 0
    reason = called or last or around.deleting
    yield (
        "leader-epoch.raised-with-reason",
        reason or "nothing else changed, nothing is asked for",
    )


@checks
def check_lost_leader(
    hosted: Hosted, new: LeaderAndIsr, around: Environment, names: Names
) -> Checks:
    """Check a write that leaves no leader: the old one died or is stopped, and leaves the set."""
    old = hosted.state
    assert old is not None
    alone = len(old.isr) == 1
    if old.leader in new.isr and not alone:
        yield LEADERLESS, f"leader {old.leader} is taken away and stays in sync"
    yield from check_removal(hosted, new, around, names)
    stays = old.leader in get_serving(around) and old.leader in (hosted.assigned or ())
    lost = not (stays and alone) or around.deleting or len(list_targets(hosted)) > 0
    yield LEADERLESS, lost or f"leader {old.leader} is alive and assigned"


@checks
def check_election(
    hosted: Hosted, new: LeaderAndIsr, around: Environment, readings: Readings, names: Names
) -> Checks:
    """Check a write by which somebody else leads."""
    old, assigned = hosted.state, hosted.assigned
    assert old is not None and assigned is not None
    serving = get_serving(around)
    led = is_leader_live(old, around) and old.leader in serving
    live, clean = new.leader in serving, new.leader in old.isr
    if clean or not live:
        yield "election.live", live or f"{new.leader} is not alive"
    else:
        unclean = around.unclean_allowed or readings.election_unclean != "no"
        last = select_offline(assigned, old.isr, serving, unclean=True)
        if unclean and not led and last and (new.leader, new.isr) == (last.leader, last.isr):
            yield "act.unclean-election", True
            return
    yield "election.clean", clean or f"{new.leader} was not in sync: {list(old.isr)}"
    yield from check_removal(hosted, new, around, names)
    same = len(new.isr) == len(old.isr)
    if same and is_moved(hosted, new, serving, led=led):
        yield names.leader_first, True
        return
    preferred = readings.election_preferred != "asked" or around.preferred_asked
    if same and preferred and new.leader == assigned[0]:
        return
    # A leader that is dead, or stops, leaves the set in the very write that replaces it.
    stays = "is alive and may stay" if led else "stays in sync"
    gone = not led and old.leader not in new.isr
    yield "election.only-when-due", gone or f"leader {old.leader} {stays}"
    firsts = find_firsts(assigned, old.isr, serving, readings)
    first = new.leader in firsts
    yield "election.assignment-order", first or f"{new.leader} leads; expected {firsts[:1]}"


def is_moved(hosted: Hosted, new: LeaderAndIsr, serving: frozenset[int], *, led: bool) -> bool:
    """Whether the first live in-sync replica of a target that is in sync takes over."""
    old = hosted.state
    assert old is not None
    for target in list_targets(hosted):
        elected = select_reassigned(target, old.isr, serving)
        due = not led or old.leader not in target
        able = elected is not None and elected.leader == new.leader
        if due and able and is_reached(hosted, target):
            return True
    return False


def find_firsts(
    assigned: ReplicaList, isr: ReplicaList, serving: frozenset[int], readings: Readings
) -> ReplicaList:
    """Return who may take over from a leader that is gone.

    The first in assignment order; before 0.8.2 (KAFKA-1503), and at a shutdown before 0.10.1
    (KAFKA-3670), the first in the order of the in-sync set.
    """
    orders = (assigned,) if readings.election_order == "assignment" else (assigned, isr)
    elected = (select_offline(order, isr, serving) for order in orders)
    return tuple(each.leader for each in elected if each is not None)


# The assignment -----------------------------------------------------------------------------------


def accept_lists(hosted: Hosted, write: WriteLists, around: Environment) -> Outcome:
    """Judge a write of the three lists: another target, or the end of the way to one."""
    old, new = get_assignment(hosted), write.assignment
    sound = judge(check_lists(new))
    if isinstance(sound, Rejected):
        return sound
    if old.is_reassigning and not new.is_reassigning and set(new.replicas) == set(old.target):
        return accept_completion(hosted, new.replicas, LISTS, old.target)
    wanted = reassign_to(old, new.target)
    if new.replicas == wanted.replicas and _is_same(new, wanted):
        after = _write_lists(replace(hosted, completing=False), new)
        return accept(check_recorded(hosted, new), after)
    broken = judge(check_unrecorded(hosted, new, wanted))
    assert isinstance(broken, Rejected)  # the last of these checks is
    return broken


@checks
def check_lists(new: Assignment) -> Checks:
    """Check the lists by themselves; that they are sound puts no clause to the test."""
    if has_duplicates(new.replicas):
        yield check_assigned_distinct(new.replicas)
    strangers = [r for r in (*new.adding, *new.removing) if r not in new.replicas]
    both = [r for r in new.adding if r in new.removing]
    if strangers or both or len(new.target) == 0:
        yield (
            "shipped.assignment.lists-within",
            f"adding {list(new.adding)}, removing {list(new.removing)} of {list(new.replicas)}",
        )


@checks
def check_recorded(hosted: Hosted, new: Assignment) -> Checks:
    """Check lists that say where the partition is going."""
    isr = () if hosted.state is None else hosted.state.isr
    if isr and not any(r in new.replicas for r in isr):
        reason = f"in sync are {list(isr)}, assigned {list(new.replicas)}"
        yield "shipped.change.keeps-in-sync", reason
    yield TARGET_FIRST, True
    yield RECORDED_FIRST, True


@checks
def check_unrecorded(hosted: Hosted, new: Assignment, wanted: Assignment) -> Checks:
    """Say what is wrong with an assignment that is not on the way to its target."""
    old = get_assignment(hosted)
    if not new.is_reassigning and set(new.replicas) != set(wanted.replicas):
        # Written as if it were complete, and nothing said before where it was going.
        yield from check_completion(hosted, new.replicas, LISTS, new.replicas)
        yield RECORDED_FIRST, f"{list(old.replicas)} became {list(new.replicas)} at once"
    same = set(new.original) == set(old.original)
    yield (
        "shipped.assignment.original-derivable",
        same or f"original {list(new.original)}, it was {list(old.original)}",
    )
    yield TARGET_FIRST, f"assigned {list(new.replicas)}, expected {list(wanted.replicas)}"


def _is_same(one: Assignment, other: Assignment) -> bool:
    adding = set(one.adding) == set(other.adding)
    return adding and set(one.removing) == set(other.removing)


def _write_lists(hosted: Hosted, new: Assignment) -> Hosted:
    after = replace(hosted, assigned=new.replicas, dropped=None)
    return replace(after, adding=new.adding, removing=new.removing)


def accept_completion(
    hosted: Hosted, new: ReplicaList, names: Names, target: ReplicaList, *, cut: bool = True
) -> Outcome:
    """Judge a write of the target as the assignment; with `cut` the others have left the set."""
    kept = (hosted.entry,) if names == ENTRIES and hosted.entry is not None else ()
    after = replace(hosted, asked=kept, begun=False, completing=False, done=True)
    after = _write_lists(after, Assignment(new))
    return accept(check_completion(hosted, new, names, target, cut=cut), after)


@clause(*astuple(LISTS), *astuple(ENTRIES))
def check_completion(
    hosted: Hosted, new: ReplicaList, names: Names, target: ReplicaList, *, cut: bool = True
) -> Checks:
    """Check a write of the target as the assignment."""
    state = hosted.state
    isr = () if state is None else state.isr
    yield (
        names.target_in_sync,
        (state is not None and is_reached(hosted, target))
        or f"target replicas not in sync: {[r for r in target if r not in isr]}",
    )
    assert state is not None
    if state.leader not in (*target, NO_LEADER):
        yield names.leader_first, f"{state.leader} leads"
    left = [r for r in isr if r in (hosted.assigned or ()) and r not in target]
    if left and cut and not (state.leader == NO_LEADER and len(isr) == 1):
        yield names.after_stop, f"still in sync: {left}"
    yield (
        names.leader_first,
        hosted.completing or "the leader epoch was not raised since the target is in sync",
    )
    right = new == target
    yield names.after_stop, right or f"assigned {list(new)}, the target is {list(target)}"


def accept_replicas(hosted: Hosted, write: WriteLists, *, cut: bool) -> Outcome:
    """Judge a write of the assigned replicas where only the old znode says what is asked for.

    With `cut` the old replicas have left the in-sync set before the target is written.
    """
    old, new = hosted.assigned or (), write.assignment.replicas
    # A growth is complete with the same replicas, once its target is in sync.
    complete = hosted.completing and new in hosted.asked
    grown = not complete and any(set(new) == {*old, *target} for target in hosted.asked)
    judged = judge(check_asked(hosted, new, grown=grown))
    if isinstance(judged, Rejected):
        return judged
    if grown:
        return Accepted(replace(hosted, assigned=new, begun=True), judged)
    return accept_completion(hosted, new, ENTRIES, new, cut=cut)


@checks
def check_asked(hosted: Hosted, new: ReplicaList, *, grown: bool) -> Checks:
    """Check that replicas are what the old znode asks for: the target, or both where `grown`."""
    yield check_assigned_distinct(new)
    if grown:
        yield "move.start.expand-first", True
    elif new not in hosted.asked:
        yield "assigned.change.only-as-due", f"nobody asks for {list(new)}"


# The old znode ------------------------------------------------------------------------------------


@checks
def check_entry_back(hosted: Hosted, write: RestoreEntry) -> Checks:
    """Say what is wrong with an entry that a controller writes: clients ask, and withdraw."""
    if write.target == hosted.earlier:
        reason = f"the controller wrote back what was withdrawn: {list(write.target)}"
        yield "shipped.entry.client-removes", reason
    yield "shipped.entry.client-asks", f"no client asked for {list(write.target)}"


@clause("shipped.call.supplants-entry")
def accept_entry_gone(hosted: Hosted, around: Environment) -> Outcome:
    """Judge the removal of an entry from 2.4 on: calls remove it as well, but none in between.

    Where it was neither reached nor one that nobody can carry out, a write for a call is due.
    """
    entry, now = hosted.entry, get_assignment(hosted)
    assert entry is not None
    nothing = not now.replicas or hosted.state is None or around.deleting or len(entry) == 0
    reached = entry == now.replicas and not now.is_reassigning
    after = replace(hosted, entry=None, dropped=None if nothing or reached else entry)
    return accept(check_entry_gone(hosted), after)


@checks
def check_entry_gone(hosted: Hosted) -> Checks:
    """Check that an entry that is being carried out is kept until the lists are written."""
    stopping = hosted.completing and len(hosted.removing) > 0
    early = stopping and hosted.entry == get_assignment(hosted).target
    reason = "the old replicas are being stopped, and the lists are not written"
    yield "shipped.complete.entry-last", not early or reason


def accept_path_gone(hosted: Hosted, around: Environment, readings: Readings) -> Outcome:
    """Judge the removal of an entry before 2.4: the target is reached, or was refused.

    A controller that takes office may refuse what another one has begun. Those that fence their
    writes, from 2.1 on, refuse no target for who is alive.
    """
    judged = judge(check_path_gone(hosted, around, readings))
    if isinstance(judged, Rejected):
        return judged
    # Whoever does not see it as dead may have begun it before it was lost.
    asked = hosted.asked if REFUSED_DEAD in judged else ()
    return Accepted(replace(hosted, entry=None, asked=asked, begun=False, done=False), judged)


@checks
def check_path_gone(hosted: Hosted, around: Environment, readings: Readings) -> Checks:
    """Check why an entry goes, and name what it is refused for."""
    entry, refused = hosted.entry, ""
    assert entry is not None
    same = hosted.assigned == entry
    # Where old and new replicas together are the target nothing is written at the end.
    whole = hosted.assigned if hosted.begun and hosted.assigned in hosted.asked else None
    reached = hosted.done or (whole is not None and is_reached(hosted, whole))
    if hosted.assigned is None or hosted.state is None or around.deleting:
        refused = "move.listener.refuse-missing"
    elif reached or hosted.begun:
        reason = f"assigned {list(hosted.assigned)}, asked for {list(entry)}"
        yield "move.step.remove-path", reached or reason
        yield OTHERS_KEPT, True
        return
    elif same:
        refused = "move.listener.refuse-same"
    elif not (has_duplicates(entry) or len(entry) == 0):
        dead = any(r not in around.live for r in entry)
        if readings.controller_fenced == "yes" or not dead:
            reason = "is asked for, alive, and was neither begun nor refused"
            yield OTHERS_KEPT, f"{list(entry)} {reason}"
        refused = REFUSED_DEAD
    if refused:
        yield refused, True
    yield "move.listener.removes-path", True
    yield OTHERS_KEPT, True


# What happens without a write, and what is owed ---------------------------------------------------


def fail_over(hosted: Hosted, readings: Readings) -> Hosted:
    """Return the partition as the next controller finds it.

    It tells every leader what is assigned, and has to tell it so that it is heard (finding zk-11).
    """
    after = replace(hosted, completing=False, begun=False, done=False, dropped=None)
    return replace(after, told=hosted.assigned or ())


@checks
def next_obligation(hosted: Hosted, around: Environment, readings: Readings) -> Owes | None:
    """Return what the controller has to write next: a first state, a leader, a dead one's end."""
    state, assigned = hosted.state, hosted.assigned
    if assigned is None or around.deleting:
        return None
    if state is None:
        first = select_new(assigned, around.live)
        if first is None:
            return None
        new = LeaderAndIsr(first.leader, 0, around.controller_epoch, first.isr)
        return Owes(CreateState(new), "partition.new.brought-online")
    nobody = frozenset[int]()
    now = Shipped(assigned, state.leader, state.isr, around.live, nobody, nobody)
    plan = plan_for_deaths(now)
    # Where nobody leads, who dies is taken out by the controller that sees it, or not at all.
    if not plan or (state.leader == NO_LEADER and isinstance(plan[0], CutIsr)):
        return None
    due = apply_effect(now, plan[0])
    epoch = state.leader_epoch + 1
    new = LeaderAndIsr(due.leader, epoch, around.controller_epoch, due.isr)
    led = is_leader_live(state, around)
    return Owes(WriteState(new), "isr.remove.dead" if led else "election.held")


# All writes ---------------------------------------------------------------------------------------


def accept_common(
    hosted: Hosted, write: Common, around: Environment, readings: Readings, names: Names
) -> Outcome:
    """Judge a write of which the two protocols say the same."""
    match write:
        case ChangeIsr() | AlterIsr():
            after = replace(hosted, state=write.state)
            return accept(check_isr(hosted, write, around, readings), after)
        case WriteState():
            return accept_write_state(hosted, write, around, readings, names)
        case CreateState():
            assigned = hosted.assigned or ()
            after = replace(hosted, state=write.state, told=assigned)
            return accept(check_first_state(assigned, write.state, around), after)
        case RestoreEntry():
            return accept(check_entry_back(hosted, write), hosted)
