"""Leaders and in-sync sets as Apache Kafka's controllers and leaders write them.

A controller takes one replica after the other offline, and writes no leader where it stops or loses
the one that leads: a partition may be without a leader for one epoch though a successor is there.
"""

from dataclasses import replace

from reassure_judge.protocols.kafka_zk.partition import (
    BY_LEADER,
    CONDITIONAL,
    ENTRIES,
    LEADERLESS,
    LISTS,
    REMOVED_WHEN_DUE,
    AlterIsr,
    ClauseNames,
    Logged,
    Outcome,
    get_serving,
    is_reached,
    is_within,
    list_targets,
)
from reassure_model.outcome import Checks, accept
from reassure_model.partition import Environment, LeaderAndIsr, is_leader_live
from reassure_model.protocols.kip_236.assignment_rules import has_duplicates
from reassure_model.protocols.kip_236.rules import (
    check_controller_epoch,
    check_distinct,
    check_leader_epoch,
    check_leader_in_sync,
    check_not_empty,
)
from reassure_model.selectors import select_offline, select_reassigned
from reassure_model.writes import ChangeIsr, WriteState
from reassure_spec.clauses import checks, clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER, ReplicaList

# The in-sync set, by the leader's word ------------------------------------------------------------


@checks
def check_isr(
    hosted: Logged, write: ChangeIsr | AlterIsr, around: Environment, readings: Readings
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
    hosted: Logged, write: WriteState, around: Environment, readings: Readings, names: ClauseNames
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
    hosted: Logged, new: LeaderAndIsr, around: Environment, readings: Readings, names: ClauseNames
) -> Checks:
    """Check leader and in-sync set, and who is in neither any more."""
    old = hosted.state
    assert old is not None and hosted.assigned is not None
    yield check_leader_epoch(old, new)
    yield check_controller_epoch(new, around)
    candidates = (*hosted.assigned, *(r for t in list_targets(hosted) for r in t))
    if new.leader not in (NO_LEADER, old.leader):
        able = new.leader in candidates
        yield "leader.assigned", able or f"leader {new.leader}, assigned {hosted.assigned}"
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
def check_removal(
    hosted: Logged, new: LeaderAndIsr, around: Environment, names: ClauseNames
) -> Checks:
    """Check who joined, and who left the in-sync set without being dead, stopped or unneeded."""
    old = hosted.state
    assert old is not None
    joined = [r for r in new.isr if r not in old.isr]
    if joined:
        yield CONDITIONAL, f"{joined[0]} joined, which is for the leader to say"
    if around.deleting:
        return
    serving = get_serving(around)
    removed = [r for r in old.isr if r not in new.isr]
    if not around.live.issuperset(removed):
        yield "isr.remove.dead", True
    for replica in removed:
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
    hosted: Logged, new: LeaderAndIsr, around: Environment, names: ClauseNames
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
    hosted: Logged, new: LeaderAndIsr, around: Environment, names: ClauseNames
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
    hosted: Logged, new: LeaderAndIsr, around: Environment, readings: Readings, names: ClauseNames
) -> Checks:
    """Check a write by which somebody else leads."""
    old, assigned = hosted.state, hosted.assigned
    assert old is not None and assigned is not None
    serving = get_serving(around)
    led = is_leader_live(old, around) and old.leader in serving
    if not led:
        yield "election.held", True
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
    # Behind all that are assigned comes whoever a target has that was taken up.
    orders = (assigned, *((*assigned, *target) for target in list_targets(hosted)))
    firsts = [r for each in orders for r in find_firsts(each, old.isr, serving, readings)]
    first = new.leader in firsts
    yield "election.assignment-order", first or f"{new.leader} leads; expected {firsts[:1]}"


def is_moved(hosted: Logged, new: LeaderAndIsr, serving: frozenset[int], *, led: bool) -> bool:
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
