"""Which write may come next: for each kind of write to a partition the checks it is put to.

A check is one line: a clause, what has to be true for it to be kept, and why it is broken where
that is not so. The checks of a write stand in the order in which they apply, under the conditions
under which they do; a clause that several checks have goes by a name. `accept_write` answers
`Accepted` with the partition after the write and the clauses that the write put to the test, or
`Rejected` by the first clause that it would break. The rules say nothing of how a controller goes
about it: any implementation whose writes are all accepted, and which owes nothing when it rests
(`kip_236.next_write`), keeps the clauses.

Here are the rules on leader and in-sync set; those on the assignment are in `assignment_rules`,
those on requests and records in `record_rules`.
"""

from dataclasses import replace

from reassure_model.acts import find_act
from reassure_model.outcome import Accepted, Check, Checks, Rejected, accept, judge
from reassure_model.partition import (
    Environment,
    LeaderAndIsr,
    Partition,
    is_leader_live,
    is_target_in_sync,
)
from reassure_model.protocols.kip_236 import (
    PROTECT_TARGET,
    SKIP_OFFLINE,
    Change,
    New,
    decide_request,
    forget,
    is_target_protected,
    make_record,
    take_up,
)
from reassure_model.protocols.kip_236.assignment_rules import (
    LEADER_IN_TARGET,
    RECORDED_FIRST,
    Outcome,
    accept_drop,
    accept_expansion,
    check_assigned_distinct,
    check_completion,
    check_leader_kept,
    check_target_in_sync,
    check_top_kept,
    check_unrecorded,
    has_duplicates,
    is_drop_forbidden,
    may_complete,
)
from reassure_model.protocols.kip_236.record_rules import (
    check_create_reassignment,
    check_delete_reassignment,
    check_delete_request,
    check_update_reassignment,
)
from reassure_model.selectors import select_new, select_offline, select_reassigned
from reassure_model.writes import (
    ChangeIsr,
    CreateReassignment,
    CreateState,
    DeleteReassignment,
    DeleteRequest,
    UpdateReassignment,
    Write,
    WriteAssigned,
    WriteState,
)
from reassure_spec.clauses import checks
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER, ReplicaList

# Checks that several kinds of write are put to ----------------------------------------------------


@checks
def check_distinct(isr: ReplicaList) -> Check:
    """Check that no replica is in sync twice."""
    return "isr.no-duplicates", not has_duplicates(isr) or f"in-sync replicas {list(isr)}"


@checks
def check_not_empty(isr: ReplicaList) -> Check:
    """Check that somebody is in sync."""
    return "isr.never-empty", len(isr) > 0 or "no in-sync replica is left"


@checks
def check_leader_in_sync(new: LeaderAndIsr) -> Check:
    """Check that who leads is in sync."""
    in_sync = new.leader == NO_LEADER or new.leader in new.isr
    return "leader.in-isr", in_sync or f"leader {new.leader}, in sync {list(new.isr)}"


@checks
def check_leader_epoch(old: LeaderAndIsr, new: LeaderAndIsr) -> Check:
    """Check that the leader epoch is raised by one."""
    raised = new.leader_epoch == old.leader_epoch + 1
    return (
        "leader-epoch.raised-by-one",
        raised or f"from {old.leader_epoch} to {new.leader_epoch}",
    )


@checks
def check_controller_epoch(
    new: LeaderAndIsr, around: Environment, *, least: int | None = None
) -> Check:
    """Check that a state is stamped with the acting controller's epoch, or one from `least` on."""
    epoch, now = new.controller_epoch, around.controller_epoch
    right = epoch == now if least is None else least <= epoch <= now
    return (
        "state.controller-epoch-stamped",
        right or f"controller epoch {epoch}, the current one is {now}",
    )


# The leader's write -------------------------------------------------------------------------------


@checks
def check_change_isr(partition: Partition, write: ChangeIsr, around: Environment) -> Checks:
    """Check a leader's change of the in-sync set."""
    old, new = partition.state, write.state
    assert old is not None and partition.assigned is not None
    kept = (new.leader, new.leader_epoch, new.controller_epoch) == (
        old.leader,
        old.leader_epoch,
        old.controller_epoch,
    )
    yield "isr.change.keeps-leader", kept or "a broker may change the in-sync set only"
    by_leader = write.writer == old.leader
    yield (
        "isr.change.by-leader",
        by_leader or f"broker {write.writer} wrote, broker {old.leader} leads",
    )
    if has_duplicates(new.isr):
        yield check_distinct(new.isr)
    stays = old.leader in new.isr
    yield "isr.change.leader-kept", stays or f"leader {old.leader} left the in-sync set"
    joined = [r for r in new.isr if r not in old.isr]
    if joined:
        strangers = [r for r in joined if r not in partition.assigned]
        yield (
            "isr.change.assigned-only",
            not strangers or f"{strangers[0]} joined and is not assigned",
        )
        dead = [r for r in joined if r not in around.live]
        yield "isr.change.live-only", not dead or f"{dead[0]} joined and is not alive"


# The controller's writes of leader and in-sync set ------------------------------------------------


@checks
def check_first_state(assigned: ReplicaList, new: LeaderAndIsr, around: Environment) -> Checks:
    """Check who leads a new partition, and who is in sync."""
    elected = select_new(assigned, around.live)
    leader, isr = (None, ()) if elected is None else (elected.leader, elected.isr)
    wanted = "nobody, as none is alive" if leader is None else leader
    first = leader is not None and new.leader == leader
    yield "partition.new.leader-first-live", first or f"{new.leader} leads; expected {wanted}"
    yield (
        "partition.new.isr-all-live",
        (not has_duplicates(new.isr) and set(new.isr) == set(isr))
        or f"in-sync replicas {list(new.isr)}; alive and assigned are {list(isr)}",
    )
    yield "partition.new.epoch-zero", new.leader_epoch == 0 or f"leader epoch {new.leader_epoch}"
    yield check_controller_epoch(new, around)


@checks
def check_create_state(partition: Partition, write: CreateState, around: Environment) -> Checks:
    """Check the first state of a partition."""
    assert partition.assigned is not None
    yield from check_first_state(partition.assigned, write.state, around)
    yield "partition.new.brought-online", True


@checks
def check_epochs(partition: Partition, new: LeaderAndIsr, around: Environment) -> Checks:
    """Check the epochs, whatever the reason of the write."""
    assert partition.state is not None
    yield check_leader_epoch(partition.state, new)
    yield check_controller_epoch(new, around)
    if partition.announce_due:
        yield "expand.announced", True


@checks
def check_state(
    partition: Partition, new: LeaderAndIsr, around: Environment, readings: Readings
) -> Checks:
    """Check leader and in-sync set of a write that is no ordinary act (`kip_236.acts`)."""
    old = partition.state
    assert old is not None
    yield from check_leader(partition, new, around)
    yield check_not_empty(new.isr)
    yield check_distinct(new.isr)
    added = [r for r in new.isr if r not in old.isr]
    yield (
        "state.write-conditional",
        not added
        or f"{added[0]} is back in the in-sync set, which only the leader may extend: "
        "the write was not based on the state it replaced",
    )
    yield check_leader_in_sync(new)
    yield from check_removals(partition, new, around, readings)
    if new.leader == old.leader and len(new.isr) == len(old.isr):
        # While a reassignment is in flight a controller may announce anew what it took over, and
        # the leader may have to learn the assignment that a reassignment left.
        yield (
            "leader-epoch.raised-with-reason",
            partition.reassignment is not None
            or partition.announce_due
            or "neither leader, in-sync set nor assignment changed",
        )


@checks
def check_leader(partition: Partition, new: LeaderAndIsr, around: Environment) -> Checks:
    """Check who leads after the write."""
    old, flight = partition.state, partition.reassignment
    assert old is not None and partition.assigned is not None
    led = is_leader_live(old, around)
    removed = old.leader in old.isr and old.leader not in new.isr
    if led and removed and new.leader in (old.leader, NO_LEADER) and flight is not None:
        yield from check_stopped_leader(partition, old.leader, flight.target)
    if new.leader == old.leader:
        return
    offline = select_offline(partition.assigned, old.isr, around.live)
    if new.leader == NO_LEADER:
        nobody = not led and offline is None
        yield "leader.none-only-without-candidate", nobody or "a live in-sync replica could lead"
    else:
        clean = new.leader in old.isr
        yield "election.clean", clean or f"{new.leader} was not in sync: {list(old.isr)}"
        yield "election.live", new.leader in around.live or f"{new.leader} is not alive"
        moving = flight is not None and is_target_in_sync(partition)
        if moving and flight is not None and not (led and old.leader in flight.target):
            moved = select_reassigned(flight.target, old.isr, around.live)
            first = moved is not None and new.leader == moved.leader
            if first or led:
                wanted = moved.leader if moved else "nobody"
                yield (
                    "complete.leader-first-in-sync-target",
                    first or f"{new.leader} was elected; expected {wanted}",
                )
                return
        if led and flight is not None and not moving and new.leader in flight.target:
            yield check_target_in_sync(partition)
        yield "election.only-when-due", not led or f"leader {old.leader} is alive and may stay"
        best = offline is not None and new.leader == offline.leader
        wanted = offline.leader if offline else "nobody"
        yield "election.assignment-order", best or f"{new.leader} leads; expected {wanted}"
    yield "election.held", True


@checks
def check_stopped_leader(partition: Partition, leader: int, target: ReplicaList) -> Checks:
    """Check that a live leader may be stopped as an old replica, where nobody takes over."""
    if partition.drop_due:
        yield check_leader_kept(leader, dropped=True)
    elif leader not in target:
        yield check_target_in_sync(partition)
        yield LEADER_IN_TARGET, f"leader {leader} was stopped"


@checks
def check_removals(
    partition: Partition, new: LeaderAndIsr, around: Environment, readings: Readings
) -> Checks:
    """Check who leaves the in-sync set: the dead, old replicas, those that a change drops."""
    old, flight, due = partition.state, partition.reassignment, partition.drop_due
    assert old is not None
    removed = [r for r in old.isr if r not in new.isr]
    if new.leader == NO_LEADER and not due:
        yield ("isr.kept-without-leader", not removed or f"{removed[0]} could lead when it returns")
        return
    alive = [r for r in removed if r in around.live]
    if removed:
        staying = alive if flight is None else [r for r in alive if not due and r in flight.target]
        where = "assigned" if flight is None else "in the target"
        yield "isr.remove.only-when-due", not staying or f"{alive[0]} is alive and {where}"
    if len(alive) < len(removed):
        yield "isr.remove.dead", True
    if len(alive) == 0 or flight is None:
        return
    seen = all(r not in flight.target for r in alive) and may_complete(partition, readings)
    # A change whose target is in sync already drops first, and the old leader may do so.
    if due and not (seen and new.leader in flight.target):
        yield from check_drop_from_isr(partition, new, frozenset(alive), around, readings)
    else:
        yield check_target_in_sync(partition, seen=seen)
        leads = new.leader in flight.target
        yield LEADER_IN_TARGET, leads or f"leader {new.leader} is to be stopped"


@checks
def check_drop_from_isr(
    partition: Partition,
    new: LeaderAndIsr,
    dropped: frozenset[int],
    around: Environment,
    readings: Readings,
) -> Checks:
    """Check what a drop that is due takes out of the in-sync set."""
    old, flight = partition.state, partition.reassignment
    assert old is not None and flight is not None
    if is_drop_forbidden(partition, readings):
        yield SKIP_OFFLINE, f"dropped {sorted(dropped)} without a leader in sync"
    yield check_leader_kept(old.leader, dropped=old.leader in dropped)
    if is_target_protected(readings) and any(r in flight.target for r in dropped):
        yield PROTECT_TARGET, f"dropped {sorted(dropped)}"
    # The promise holds for top at or above the minimum, which is checked at the first request only.
    least = around.min_insync_replicas
    few = len(new.isr) < least <= len(old.isr) and least <= flight.top
    yield (
        "drop.isr-at-least-min",
        not few or f"{len(new.isr)} in sync, min.insync.replicas is {least}",
    )
    yield check_top_kept(partition, dropped, readings, all_at_once=False)


def accept_write_state(
    partition: Partition, write: WriteState, around: Environment, readings: Readings
) -> Outcome:
    """Judge a controller's write of leader and in-sync set, ordinary acts included."""
    new, flight = write.state, partition.reassignment
    epochs = judge(check_epochs(partition, new, around))
    if isinstance(epochs, Rejected):
        return epochs
    judged = judge(check_state(partition, new, around, readings))
    if isinstance(judged, Rejected):
        act = find_act(partition, new, around, readings)
        if act is None:
            return judged
        judged = act
    after = replace(partition, state=new, announce_due=False)
    if flight is None:
        after = replace(after, completing=False)
    elif new.leader in flight.target and all(r in new.isr for r in flight.target):
        after = replace(after, completing=True)
    return Accepted(after, epochs + judged)


# The controller's writes of the assignment --------------------------------------------------------


def accept_write_assigned(
    partition: Partition, write: WriteAssigned, readings: Readings
) -> Outcome:
    """Judge a change of the assigned replicas: an expansion, a drop or a completion."""
    old, new, flight = partition.assigned, write.assigned, partition.reassignment
    assert old is not None
    distinct = judge((check_assigned_distinct(new),))
    if isinstance(distinct, Rejected):
        return distinct
    if new == old:
        return Accepted(partition)
    if flight is None:
        return accept(check_unrecorded(partition, new), partition)
    removed = frozenset(old) - frozenset(new)
    if set(new) == set(flight.target) and (removed or new == flight.target):
        after = replace(partition, assigned=new, drop_due=False)
        outcome = accept(check_completion(partition, new, readings), after)
        growth = set(new) == set(old) | set(flight.target)
        if isinstance(outcome, Accepted) or not (partition.drop_due or growth):
            return outcome
    if removed:
        return accept_drop(partition, new, removed, readings)
    return accept_expansion(partition, new, readings)


# The controller's writes of requests and reassignments --------------------------------------------


def accept_write(
    partition: Partition, write: Write, around: Environment, readings: Readings
) -> Outcome:
    """Judge any write to the partition.

    Where effects come before the record (reading request.persist), one that the lowest request asks
    for is judged as if that were recorded already.
    """
    outcome = _accept_recorded(partition, write, around, readings)
    if isinstance(outcome, Accepted) or readings.request_persist == "child-first":
        return outcome
    if not isinstance(write, WriteState | WriteAssigned) or not partition.requests:
        return outcome
    head = partition.requests[0]
    if not isinstance(decide_request(head, partition, around, readings), New | Change):
        return outcome
    record = make_record(partition, readings)
    ahead = _accept_recorded(take_up(partition, record, readings), write, around, readings)
    if isinstance(ahead, Rejected):
        return outcome
    before = replace(ahead.state, reassignment=partition.reassignment, completing=False)
    return Accepted(before, tuple(c for c in ahead.clauses if c != RECORDED_FIRST))


def _accept_recorded(
    partition: Partition, write: Write, around: Environment, readings: Readings
) -> Outcome:
    match write:
        case ChangeIsr(state):
            after = replace(partition, state=state)
            return accept(check_change_isr(partition, write, around), after)
        case CreateState(state):
            # Whoever is told of a new partition is told all replicas: no epoch is owed for them.
            after = replace(partition, state=state, announce_due=False)
            return accept(check_create_state(partition, write, around), after)
        case WriteState():
            return accept_write_state(partition, write, around, readings)
        case WriteAssigned():
            return accept_write_assigned(partition, write, readings)
        case CreateReassignment(wanted):
            after = take_up(partition, wanted, readings)
            return accept(check_create_reassignment(partition, wanted, around, readings), after)
        case UpdateReassignment(wanted):
            after = take_up(partition, wanted, readings)
            return accept(check_update_reassignment(partition, wanted, around, readings), after)
        case DeleteReassignment():
            after = replace(partition, reassignment=None, drop_due=False, announce_due=False)
            after = forget(replace(after, completing=False), readings)
            return accept(check_delete_reassignment(partition, around, readings), after)
        case DeleteRequest():  # one way: there is no other write
            after = forget(replace(partition, requests=partition.requests[1:]), readings)
            return accept(check_delete_request(partition, write, around, readings), after)
