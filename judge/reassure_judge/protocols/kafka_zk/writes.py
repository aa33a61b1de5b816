"""What Apache Kafka's own controllers and leaders write to a partition, from 0.8.0 to 3.9.

`kafka_zk` and `kafka_42` are models of a reassignment, action by action. Here is what each write
may look like, whoever made it and for whatever reason: reassignments, elections, deaths, shutdowns,
deletions. Two things tell the versions apart. From 2.4 a topic's znode has lists of what is being
added and removed (`LISTS`), so that it says where a partition is going; before, only the old znode
says so (`ENTRIES`). And from 2.7 the controller writes what the leader asks for (`AlterIsr`), where
the leader wrote it by itself before (`ChangeIsr`).
"""

from collections.abc import Iterable
from dataclasses import astuple, replace
from itertools import chain

from reassure_judge.protocols.kafka_zk.leaders import accept_write_state, check_isr
from reassure_judge.protocols.kafka_zk.partition import (
    ENTRIES,
    LISTS,
    OTHERS_KEPT,
    RECORDED_FIRST,
    REFUSED_DEAD,
    TARGET_FIRST,
    AlterIsr,
    ClauseNames,
    Common,
    Logged,
    Outcome,
    Owes,
    RestoreEntry,
    WriteLists,
    get_assignment,
    is_reached,
)
from reassure_model.outcome import Accepted, Check, Checks, Rejected, accept, judge
from reassure_model.partition import Environment, LeaderAndIsr, is_leader_live
from reassure_model.protocols.kafka_zk import (
    Assignment,
    CutIsr,
    Shipped,
    apply_effect,
    plan_for_deaths,
    reassign_to,
)
from reassure_model.protocols.kip_236.assignment_rules import (
    check_assigned_distinct,
    has_duplicates,
)
from reassure_model.protocols.kip_236.rules import check_first_state
from reassure_model.selectors import select_new
from reassure_model.writes import ChangeIsr, CreateState, WriteState
from reassure_spec.clauses import checks, clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER, ReplicaList

# The assignment -----------------------------------------------------------------------------------


def accept_lists(hosted: Logged, write: WriteLists, around: Environment) -> Outcome:
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
def check_recorded(hosted: Logged, new: Assignment) -> Checks:
    """Check lists that say where the partition is going."""
    isr = () if hosted.state is None else hosted.state.isr
    if isr and not any(r in new.replicas for r in isr):
        reason = f"in sync are {list(isr)}, assigned {list(new.replicas)}"
        yield "shipped.change.keeps-in-sync", reason
    yield TARGET_FIRST, True
    yield RECORDED_FIRST, True


@checks
def check_unrecorded(hosted: Logged, new: Assignment, wanted: Assignment) -> Checks:
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


def _write_lists(hosted: Logged, new: Assignment) -> Logged:
    after = replace(hosted, assigned=new.replicas, dropped=None)
    return replace(after, adding=new.adding, removing=new.removing)


def accept_completion(
    hosted: Logged,
    new: ReplicaList,
    names: ClauseNames,
    target: ReplicaList,
    *,
    cut: bool = True,
    asked: Iterable[Check] = (),
) -> Outcome:
    """Judge a write of the target as the assignment; with `cut` the others have left the set.

    What is `asked` of it besides comes first.
    """
    kept = (hosted.entry,) if names == ENTRIES and hosted.entry is not None else ()
    after = replace(hosted, asked=kept, begun=False, completing=False, done=True, halfway=None)
    after = _write_lists(after, Assignment(new))
    return accept(chain(asked, check_completion(hosted, new, names, target, cut=cut)), after)


@clause(*astuple(LISTS), *astuple(ENTRIES))
def check_completion(
    hosted: Logged, new: ReplicaList, names: ClauseNames, target: ReplicaList, *, cut: bool = True
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


def accept_replicas(hosted: Logged, write: WriteLists, *, cut: bool) -> Outcome:
    """Judge a write of the assigned replicas where only the old znode says what is asked for.

    With `cut` the old replicas have left the in-sync set before the target is written.
    """
    old, new = hosted.assigned or (), write.assignment.replicas
    # A growth is complete with the same replicas, once its target is in sync.
    complete = hosted.completing and new in hosted.asked
    grown = not complete and any(set(new) == {*old, *target} for target in hosted.asked)
    asked = check_asked(hosted, new, grown=grown)
    if grown:
        return accept(asked, replace(hosted, assigned=new, begun=True))
    return accept_completion(hosted, new, ENTRIES, new, cut=cut, asked=asked)


@checks
def check_asked(hosted: Logged, new: ReplicaList, *, grown: bool) -> Checks:
    """Check that replicas are what the old znode asks for: the target, or both where `grown`."""
    yield check_assigned_distinct(new)
    asked = grown or new in hosted.asked
    yield "assigned.change.only-as-due", asked or f"nobody asks for {list(new)}"
    if grown:
        yield "move.start.expand-first", True


# The old znode ------------------------------------------------------------------------------------


@checks
def check_entry_back(hosted: Logged, write: RestoreEntry) -> Checks:
    """Say what is wrong with an entry that a controller writes: clients ask, and withdraw."""
    if write.target == hosted.earlier:
        reason = f"the controller wrote back what was withdrawn: {list(write.target)}"
        yield "shipped.entry.client-removes", reason
    yield "shipped.entry.client-asks", f"no client asked for {list(write.target)}"


@clause("shipped.call.supplants-entry")
def accept_entry_gone(hosted: Logged, around: Environment) -> Outcome:
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
def check_entry_gone(hosted: Logged) -> Checks:
    """Check that an entry that is being carried out is kept until the lists are written."""
    stopping = hosted.completing and len(hosted.removing) > 0
    early = stopping and hosted.entry == get_assignment(hosted).target
    reason = "the old replicas are being stopped, and the lists are not written"
    yield "shipped.complete.entry-last", not early or reason


def accept_path_gone(hosted: Logged, around: Environment, readings: Readings) -> Outcome:
    """Judge the removal of an entry before 2.4: the target is reached, or was refused.

    A controller that takes office may refuse what another one has begun. Those that fence their
    writes, from 2.1 on, refuse no target for who is alive.
    """
    judged = judge(check_path_gone(hosted, around, readings))
    if isinstance(judged, Rejected):
        return judged
    # Whoever does not see it as dead may have begun it before it was lost.
    asked = hosted.asked if REFUSED_DEAD in judged else ()
    # The epoch may have been raised once more since the target was assigned: an answer was lost.
    completing = hosted.completing and bool(asked)
    after = replace(hosted, entry=None, asked=asked, completing=completing)
    return Accepted(replace(after, begun=False, done=False, halfway=None), judged)


@checks
def check_path_gone(hosted: Logged, around: Environment, readings: Readings) -> Checks:
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
        # Up to 0.10.0 Kafka gives it up, with the replicas of both assignments (KAFKA-4214).
        reason = f"{list(entry)} was under way, assigned is {list(hosted.assigned)}"
        if hosted.halfway == entry:
            yield "move.failover.resumes", reason
    if refused:
        yield refused, True
    if refused == REFUSED_DEAD:
        yield "request.refuse.dead-replica", True
    yield "move.listener.removes-path", True
    yield OTHERS_KEPT, True


# What happens without a write, and what is owed ---------------------------------------------------


def fail_over(hosted: Logged, readings: Readings) -> Logged:
    """Return the partition as the next controller finds it.

    It tells every leader what is assigned, and has to tell it so that it is heard (finding zk-11).
    """
    after = replace(hosted, completing=False, begun=False, done=False, dropped=None)
    return replace(after, told=hosted.assigned or ())


@checks
def next_obligation(hosted: Logged, around: Environment, readings: Readings) -> Owes | None:
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
    hosted: Logged, write: Common, around: Environment, readings: Readings, names: ClauseNames
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
            first = check_first_state(assigned, write.state, around)
            return accept(chain(first, [("partition.new.brought-online", True)]), after)
        case RestoreEntry():  # one way: nothing else is written
            return accept(check_entry_back(hosted, write), hosted)
