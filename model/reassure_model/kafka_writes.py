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

from dataclasses import dataclass, replace
from typing import Final

from reassure_model.kafka_zk import (
    Assignment,
    CutIsr,
    Shipped,
    apply_effect,
    plan_for_deaths,
    reassign_to,
)
from reassure_model.kip_236.rules import (
    find_broken_epoch,
    has_duplicates,
    judge_first_state,
    reject_controller_epoch,
)
from reassure_model.kip_236.state import Environment, LeaderAndIsr, is_leader_live
from reassure_model.kip_236.writes import ChangeIsr, CreateState, WriteState
from reassure_model.outcome import Accepted, Rejected
from reassure_model.selectors import select_new, select_offline, select_reassigned
from reassure_spec.clauses import clause
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


# The first state --------------------------------------------------------------------------------


def accept_create_state(hosted: Hosted, write: CreateState, around: Environment) -> Outcome:
    """Judge the first state of a partition."""
    assigned = hosted.assigned or ()
    judged = judge_first_state(assigned, write.state, around)
    if isinstance(judged, Rejected):
        return judged
    return Accepted(replace(hosted, state=write.state, told=assigned), judged)


# The in-sync set, by the leader's word ------------------------------------------------------------


@clause("isr.change.keeps-leader", "isr.change.by-leader", "isr.change.leader-kept")
@clause("isr.change.assigned-only", "isr.change.live-only", "state.controller-epoch-stamped")
@clause("move.isr.within-assigned")
def accept_isr(
    hosted: Hosted, write: ChangeIsr | AlterIsr, around: Environment, readings: Readings
) -> Outcome:
    """Judge a change of the in-sync set that keeps the leader epoch."""
    old, new = hosted.state, write.state
    assert old is not None
    if (new.leader, new.leader_epoch) != (old.leader, old.leader_epoch):
        return Rejected("isr.change.keeps-leader", "only the in-sync set may change so")
    direct = isinstance(write, ChangeIsr)
    wanted = "leader" if direct else "controller"
    if readings.insync_writer not in ("either", wanted):
        return Rejected("isr.change.by-leader", f"the {wanted} wrote the in-sync set")
    writer = write.writer if isinstance(write, ChangeIsr) else old.leader
    if old.leader == NO_LEADER or writer != old.leader:
        reason = f"broker {writer} wrote, broker {old.leader} leads"
        return Rejected("isr.change.by-leader", reason)
    # A leader writes the epoch of the controller that made it one; a controller writes its own.
    least = old.controller_epoch if direct else around.controller_epoch
    if not least <= new.controller_epoch <= around.controller_epoch:
        return reject_controller_epoch(new, around)
    if len(new.isr) == 0:
        return Rejected("isr.never-empty", "no in-sync replica is left")
    if has_duplicates(new.isr):
        return Rejected("isr.no-duplicates", f"in-sync replicas {list(new.isr)}")
    if old.leader not in new.isr:
        return Rejected("isr.change.leader-kept", f"leader {old.leader} left the in-sync set")
    joined = tuple(r for r in new.isr if r not in old.isr)
    # A leader that writes by itself may not have been told yet of what has just changed.
    known = (*(hosted.assigned or ()), *(hosted.told if direct else ()))
    strangers = [r for r in joined if r not in known]
    if strangers:
        # Who is asked for and was started before it was assigned (KAFKA-1097) is no stranger.
        asked = any(strangers[0] in target for target in hosted.asked)
        broken = "move.isr.within-assigned" if asked else "isr.change.assigned-only"
        return Rejected(broken, f"{strangers[0]} joined and is not assigned")
    dead = [r for r in joined if r not in around.live]
    if dead and not direct:
        return Rejected("isr.change.live-only", f"{dead[0]} joined and is not alive")
    clauses: tuple[str, ...] = ("isr.change.keeps-leader", "isr.change.by-leader")
    clauses += ("isr.change.leader-kept",)
    clauses += ("isr.change.assigned-only",) if joined else ()
    # A leader that writes by itself reads no registration: who fetches and keeps up joins.
    clauses += ("isr.change.live-only",) if joined and not dead else ()
    return Accepted(replace(hosted, state=new), clauses)


# The controller's writes of leader and in-sync set ------------------------------------------------


@clause("leader-epoch.raised-by-one", "state.controller-epoch-stamped")
def accept_write_state(
    hosted: Hosted, write: WriteState, around: Environment, readings: Readings, names: Names
) -> Outcome:
    """Judge a controller's write of leader and in-sync set, for whatever reason."""
    old, new = hosted.state, write.state
    assert old is not None and hosted.assigned is not None
    broken = find_broken_epoch(old, new, around) or find_broken_set(hosted, new)
    if broken is not None:
        return broken
    if new.leader == old.leader:
        judged = judge_kept_leader(hosted, new, around, names)
    elif new.leader == NO_LEADER:
        judged = judge_lost_leader(hosted, new, around, names)
    else:
        judged = judge_election(hosted, new, around, readings, names)
    if isinstance(judged, Rejected):
        return judged
    done = [t for t in list_targets(hosted) if new.leader in t and is_within(t, new.isr)]
    completing = hosted.completing or bool(done)
    told = done[0] if done else hosted.assigned
    clauses = ("leader-epoch.raised-by-one", "state.controller-epoch-stamped", "isr.never-empty")
    after = replace(hosted, state=new, completing=completing, told=told, dropped=None)
    return Accepted(after, (*clauses, "isr.no-duplicates", "leader.in-isr", *judged))


@clause("isr.never-empty", "isr.no-duplicates", "leader.in-isr", "leader.assigned")
def find_broken_set(hosted: Hosted, new: LeaderAndIsr) -> Rejected | None:
    """Find a leader and in-sync set that no controller may write, whatever the reason."""
    old = hosted.state
    assert old is not None
    candidates = (*(hosted.assigned or ()), *(r for t in list_targets(hosted) for r in t))
    if new.leader not in (NO_LEADER, old.leader, *candidates):
        return Rejected("leader.assigned", f"leader {new.leader}, assigned {hosted.assigned}")
    if len(new.isr) == 0:
        return Rejected("isr.never-empty", "no in-sync replica is left")
    if has_duplicates(new.isr):
        return Rejected("isr.no-duplicates", f"in-sync replicas {list(new.isr)}")
    if new.leader not in (NO_LEADER, *new.isr):
        return Rejected("leader.in-isr", f"leader {new.leader}, in sync {list(new.isr)}")
    return None


@clause("state.write-conditional", "isr.remove.only-when-due", "shipped.complete.target-in-sync")
@clause("shipped.complete.leader-first", "move.step.wait-in-sync", "move.step.elect")
def find_wrong_removal(
    hosted: Hosted, new: LeaderAndIsr, around: Environment, names: Names
) -> Rejected | None:
    """Find who joined, or left the in-sync set without being dead, stopped or unneeded."""
    old = hosted.state
    assert old is not None
    joined = [r for r in new.isr if r not in old.isr]
    if joined:
        reason = f"{joined[0]} joined, which is for the leader to say"
        return Rejected("state.write-conditional", reason)
    if around.deleting:
        return None
    serving = get_serving(around)
    for replica in (r for r in old.isr if r not in new.isr):
        if replica not in serving or replica not in (hosted.assigned or ()):
            continue
        leaving = [t for t in list_targets(hosted) if replica not in t]
        if len(leaving) == 0:
            reason = f"{replica} is alive and stays assigned"
            return Rejected("isr.remove.only-when-due", reason)
        if not any(is_reached(hosted, t) for t in leaving):
            missing = [r for r in leaving[0] if r not in old.isr]
            return Rejected(names.target_in_sync, f"target replicas not in sync: {missing}")
        if not any(new.leader in t for t in leaving if is_reached(hosted, t)):
            reason = f"{replica} is stopped, and {new.leader} leads"
            return Rejected(names.leader_first, reason)
    return None


@clause("leader-epoch.raised-with-reason")
def judge_kept_leader(
    hosted: Hosted, new: LeaderAndIsr, around: Environment, names: Names
) -> tuple[str, ...] | Rejected:
    """Judge a write that leaves the leader: a removal, or a new epoch alone."""
    old = hosted.state
    assert old is not None
    broken = find_wrong_removal(hosted, new, around, names)
    if broken is not None:
        return broken
    if len(new.isr) < len(old.isr):
        return ("isr.remove.only-when-due", "state.write-conditional")
    # The last member stays when its broker dies, and the epoch is raised all the same.
    last = len(old.isr) == 1 and old.isr[0] not in get_serving(around)
    # From 2.4 any call of the interface raises the epoch, and no znode shows calls.
    called = names == LISTS or len(hosted.asked) > 0
    if called or last or around.deleting:
        return ("leader-epoch.raised-with-reason",)
    return Rejected("leader-epoch.raised-with-reason", "nothing else changed, nothing is asked for")


@clause("shipped.leader.none-when-stopped")
def judge_lost_leader(
    hosted: Hosted, new: LeaderAndIsr, around: Environment, names: Names
) -> tuple[str, ...] | Rejected:
    """Judge a write that leaves no leader: the old one died or is stopped, and leaves the set."""
    old = hosted.state
    assert old is not None
    alone = len(old.isr) == 1
    if old.leader in new.isr and not alone:
        reason = f"leader {old.leader} is taken away and stays in sync"
        return Rejected("shipped.leader.none-when-stopped", reason)
    broken = find_wrong_removal(hosted, new, around, names)
    if broken is not None:
        return broken
    stays = old.leader in get_serving(around) and old.leader in (hosted.assigned or ())
    if stays and alone and not around.deleting and not list_targets(hosted):
        reason = f"leader {old.leader} is alive and assigned"
        return Rejected("shipped.leader.none-when-stopped", reason)
    return ("shipped.leader.none-when-stopped",)


@clause("election.live", "election.clean", "election.only-when-due", "election.assignment-order")
@clause("act.unclean-election")
def judge_election(
    hosted: Hosted, new: LeaderAndIsr, around: Environment, readings: Readings, names: Names
) -> tuple[str, ...] | Rejected:
    """Judge a write by which somebody else leads."""
    old, assigned = hosted.state, hosted.assigned
    assert old is not None and assigned is not None
    serving = get_serving(around)
    if new.leader not in serving:
        return Rejected("election.live", f"{new.leader} is not alive")
    led = is_leader_live(old, around) and old.leader in serving
    if new.leader not in old.isr:
        unclean = around.unclean_allowed or readings.election_unclean != "no"
        last = select_offline(assigned, old.isr, serving, unclean=True)
        alone = last is not None and (new.leader, new.isr) == (last.leader, last.isr)
        if unclean and alone and not led:
            return ("act.unclean-election",)
        return Rejected("election.clean", f"{new.leader} was not in sync: {list(old.isr)}")
    broken = find_wrong_removal(hosted, new, around, names)
    if broken is not None:
        return broken
    same = len(new.isr) == len(old.isr)
    if same and is_moved(hosted, new, serving, led=led):
        return (names.leader_first, "election.live", "election.clean")
    preferred = readings.election_preferred != "asked" or around.preferred_asked
    if same and preferred and new.leader == assigned[0]:
        return ("election.live", "election.clean")
    if led:
        return Rejected("election.only-when-due", f"leader {old.leader} is alive and may stay")
    if old.leader in new.isr:
        # A leader that is dead, or stops, leaves the set in the very write that replaces it.
        return Rejected("election.only-when-due", f"leader {old.leader} stays in sync")
    firsts = find_firsts(assigned, old.isr, serving, readings)
    if new.leader not in firsts:
        return Rejected("election.assignment-order", f"{new.leader} leads; expected {firsts[:1]}")
    return (
        "election.only-when-due",
        "election.live",
        "election.clean",
        "election.assignment-order",
    )


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


@clause("assigned.no-duplicates", "shipped.assignment.lists-within")
@clause("shipped.assignment.original-derivable", "shipped.assignment.target-first")
@clause("shipped.change.recorded-first", "shipped.change.keeps-in-sync")
@clause("shipped.complete.target-in-sync", "shipped.complete.leader-first")
def accept_lists(hosted: Hosted, write: WriteLists, around: Environment) -> Outcome:
    """Judge a write of the three lists: another target, or the end of the way to one."""
    old, new = get_assignment(hosted), write.assignment
    if has_duplicates(new.replicas):
        return Rejected("assigned.no-duplicates", f"assigned {list(new.replicas)}")
    strangers = [r for r in (*new.adding, *new.removing) if r not in new.replicas]
    both = [r for r in new.adding if r in new.removing]
    if strangers or both or len(new.target) == 0:
        reason = f"adding {list(new.adding)}, removing {list(new.removing)} of {list(new.replicas)}"
        return Rejected("shipped.assignment.lists-within", reason)
    if old.is_reassigning and not new.is_reassigning and set(new.replicas) == set(old.target):
        return accept_completion(hosted, new.replicas, LISTS, old.target)
    wanted = reassign_to(old, new.target)
    if new.replicas == wanted.replicas and _is_same(new, wanted):
        isr = () if hosted.state is None else hosted.state.isr
        if isr and not any(r in new.replicas for r in isr):
            reason = f"in sync are {list(isr)}, assigned {list(new.replicas)}"
            return Rejected("shipped.change.keeps-in-sync", reason)
        after = _write_lists(replace(hosted, completing=False), new)
        return Accepted(after, ("shipped.assignment.target-first", "shipped.change.recorded-first"))
    changed = set(new.replicas) != set(wanted.replicas)
    if not new.is_reassigning and changed:
        # Written as if it were complete, and nothing said before where it was going.
        judged = accept_completion(hosted, new.replicas, LISTS, new.replicas)
        if isinstance(judged, Rejected):
            return judged
        reason = f"{list(old.replicas)} became {list(new.replicas)} at once"
        return Rejected("shipped.change.recorded-first", reason)
    if set(new.original) != set(old.original):
        reason = f"original {list(new.original)}, it was {list(old.original)}"
        return Rejected("shipped.assignment.original-derivable", reason)
    reason = f"assigned {list(new.replicas)}, expected {list(wanted.replicas)}"
    return Rejected("shipped.assignment.target-first", reason)


def _is_same(one: Assignment, other: Assignment) -> bool:
    adding = set(one.adding) == set(other.adding)
    return adding and set(one.removing) == set(other.removing)


def _write_lists(hosted: Hosted, new: Assignment) -> Hosted:
    after = replace(hosted, assigned=new.replicas, dropped=None)
    return replace(after, adding=new.adding, removing=new.removing)


@clause("shipped.complete.target-in-sync", "shipped.complete.leader-first")
@clause("shipped.complete.assignment-after-stop", "move.step.write-assigned")
@clause("move.step.wait-in-sync", "move.step.elect")
def accept_completion(
    hosted: Hosted, new: ReplicaList, names: Names, target: ReplicaList, *, cut: bool = True
) -> Outcome:
    """Judge a write of the target as the assignment; with `cut` the others have left the set."""
    state = hosted.state
    if state is None or not is_reached(hosted, target):
        missing = [r for r in target if state is None or r not in state.isr]
        return Rejected(names.target_in_sync, f"target replicas not in sync: {missing}")
    alone = state.leader == NO_LEADER and len(state.isr) == 1
    if state.leader not in (*target, NO_LEADER):
        return Rejected(names.leader_first, f"{state.leader} leads")
    left = [r for r in state.isr if r in (hosted.assigned or ()) and r not in target]
    if left and cut and not alone:
        return Rejected(names.after_stop, f"still in sync: {left}")
    if not hosted.completing:
        reason = "the leader epoch was not raised since the target is in sync"
        return Rejected(names.leader_first, reason)
    if new != target:
        return Rejected(names.after_stop, f"assigned {list(new)}, the target is {list(target)}")
    kept = (hosted.entry,) if names == ENTRIES and hosted.entry is not None else ()
    after = replace(hosted, asked=kept, begun=False, completing=False, done=True)
    clauses = (names.target_in_sync, names.leader_first, names.after_stop)
    return Accepted(_write_lists(after, Assignment(new)), clauses)


@clause("assigned.no-duplicates", "assigned.change.only-as-due", "move.start.expand-first")
def accept_replicas(hosted: Hosted, write: WriteLists, *, cut: bool) -> Outcome:
    """Judge a write of the assigned replicas where only the old znode says what is asked for.

    With `cut` the old replicas have left the in-sync set before the target is written.
    """
    old, new = hosted.assigned or (), write.assignment.replicas
    if has_duplicates(new):
        return Rejected("assigned.no-duplicates", f"assigned {list(new)}")
    for target in hosted.asked:
        if set(new) == {*old, *target}:
            after = replace(hosted, assigned=new, begun=True)
            return Accepted(after, ("assigned.no-duplicates", "move.start.expand-first"))
    if new not in hosted.asked:
        reason = f"nobody asks for {list(new)}"
        return Rejected("assigned.change.only-as-due", reason)
    return accept_completion(hosted, new, ENTRIES, new, cut=cut)


# The old znode ------------------------------------------------------------------------------------


@clause("shipped.entry.client-removes", "shipped.entry.client-asks")
def accept_entry_back(hosted: Hosted, write: RestoreEntry) -> Outcome:
    """Judge an entry that a controller writes: a client asks, and a client withdraws."""
    if write.target == hosted.earlier:
        reason = f"the controller wrote back what was withdrawn: {list(write.target)}"
        return Rejected("shipped.entry.client-removes", reason)
    return Rejected("shipped.entry.client-asks", f"no client asked for {list(write.target)}")


@clause("shipped.complete.entry-last", "shipped.call.supplants-entry")
def accept_entry_gone(hosted: Hosted, around: Environment) -> Outcome:
    """Judge the removal of an entry from 2.4 on: calls remove it as well, but none in between.

    Where it was neither reached nor one that nobody can carry out, a write for a call is due.
    """
    entry, now = hosted.entry, get_assignment(hosted)
    assert entry is not None
    if hosted.completing and hosted.removing and entry == now.target:
        reason = "the old replicas are being stopped, and the lists are not written"
        return Rejected("shipped.complete.entry-last", reason)
    nothing = not now.replicas or hosted.state is None or around.deleting or len(entry) == 0
    reached = entry == now.replicas and not now.is_reassigning
    after = replace(hosted, entry=None, dropped=None if nothing or reached else entry)
    return Accepted(after, ("shipped.complete.entry-last",))


@clause("move.step.remove-path", "move.path.others-kept", "move.listener.refuse-missing")
@clause("move.listener.refuse-same", "move.listener.refuse-dead", "move.listener.removes-path")
def accept_path_gone(hosted: Hosted, around: Environment, readings: Readings) -> Outcome:
    """Judge the removal of an entry before 2.4: the target is reached, or was refused.

    A controller that takes office may refuse what another one has begun. Those that fence their
    writes, from 2.1 on, refuse no target for who is alive.
    """
    entry = hosted.entry
    assert entry is not None
    after = replace(hosted, entry=None, asked=(), begun=False, done=False)
    kept = "move.path.others-kept"
    if hosted.assigned is None or hosted.state is None or around.deleting:
        return Accepted(after, ("move.listener.refuse-missing", "move.listener.removes-path", kept))
    same = hosted.assigned == entry
    # Where old and new replicas together are the target nothing is written at the end.
    if hosted.done or (same and hosted.begun and is_reached(hosted, entry)):
        return Accepted(after, ("move.step.remove-path", kept))
    if hosted.begun:
        reason = f"assigned {list(hosted.assigned)}, asked for {list(entry)}"
        return Rejected("move.step.remove-path", reason)
    if same:
        return Accepted(after, ("move.listener.refuse-same", "move.listener.removes-path", kept))
    if has_duplicates(entry) or len(entry) == 0:
        return Accepted(after, ("move.listener.removes-path", kept))
    if readings.controller_fenced != "yes" and any(r not in around.live for r in entry):
        # Whoever does not see it as dead may have begun it before it was lost.
        after = replace(after, asked=hosted.asked)
        return Accepted(after, ("move.listener.refuse-dead", "move.listener.removes-path", kept))
    return Rejected(kept, f"{list(entry)} is asked for, alive, and was neither begun nor refused")


# What happens without a write, and what is owed ---------------------------------------------------


def fail_over(hosted: Hosted, readings: Readings) -> Hosted:
    """Return the partition as the next controller finds it.

    It tells every leader what is assigned, and has to tell it so that it is heard (finding zk-11).
    """
    after = replace(hosted, completing=False, begun=False, done=False, dropped=None)
    return replace(after, told=hosted.assigned or ())


@clause("partition.new.brought-online", "election.held", "isr.remove.dead")
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
            return accept_isr(hosted, write, around, readings)
        case WriteState():
            return accept_write_state(hosted, write, around, readings, names)
        case CreateState():
            return accept_create_state(hosted, write, around)
        case RestoreEntry():
            return accept_entry_back(hosted, write)
