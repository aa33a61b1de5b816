"""Which write may come next: one function for each kind of write to a partition.

Each function takes the partition as ZooKeeper holds it, the write, the environment and the
readings, and answers `Accepted` with the partition after the write and the clauses that the write
put to the test, or `Rejected` by the first clause that it would break. The rules say nothing of how
a controller goes about it: any implementation whose writes are all accepted, and which owes nothing
when it rests (`reassure_model.kip_236.obligations`), keeps the clauses.
"""

from dataclasses import replace
from itertools import combinations

from reassure_model.kip_236.acts import find_act
from reassure_model.kip_236.drop import compute_drop
from reassure_model.kip_236.requests import (
    Change,
    New,
    Refusal,
    compute_top,
    decide_request,
    forget,
    make_record,
    take_up,
)
from reassure_model.kip_236.state import (
    Environment,
    LeaderAndIsr,
    Partition,
    Reassignment,
    is_leader_live,
    is_target_in_sync,
)
from reassure_model.kip_236.writes import (
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
from reassure_model.outcome import Accepted, Rejected
from reassure_model.selectors import select_new, select_offline, select_reassigned
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER, ReplicaList

Outcome = Accepted[Partition] | Rejected


def compute_drops(partition: Partition, readings: Readings) -> frozenset[frozenset[int]]:
    """Return every drop set that the rule allows for the change that is due.

    The documents rank in-sync before out-of-sync replicas and leave the order inside each group
    open (reading `drop.order`), so all choices of who comes first in a group are allowed. Where no
    leader takes the first place and no more than top replicas are assigned, nothing need go.
    """
    flight, state = partition.reassignment, partition.state
    if flight is None or partition.assigned is None:
        return frozenset({frozenset()})
    assigned, top = partition.assigned, flight.top
    leader, isr = (NO_LEADER, ()) if state is None else (state.leader, state.isr)
    first = (leader,) if leader in isr else ()
    followers = tuple(r for r in isr if r != leader)
    others = tuple(r for r in assigned if r not in isr and r != leader)
    spare = leader not in isr and len(assigned) <= top
    drops: set[frozenset[int]] = {frozenset()} if spare else set()
    for ranked in _choices(followers, top - 1):
        for rest in _choices(others, top - 1 - len(followers)):
            in_sync = (*first, *ranked)
            drop = compute_drop(assigned, leader, in_sync, top, flight.target, readings, rest)
            drops.add(frozenset(drop))
    return frozenset(drops)


@clause("drop.offline.skip")
def is_drop_held(partition: Partition) -> bool:
    """Whether a drop that is due has to wait until there is a leader in sync.

    The rule keeps enough in-sync replicas only because the leader is one of them and comes first.
    Without such a leader it can name the last in-sync copy (finding drop-11). So the drop waits,
    and with it the expansion, which comes after.
    """
    assigned, state, flight = partition.assigned, partition.state, partition.reassignment
    if not partition.drop_due or assigned is None or flight is None:
        return False
    return len(assigned) > flight.top and (state is None or state.leader not in state.isr)


def must_drop_wait(partition: Partition, readings: Readings) -> bool:
    """Whether a drop that is due waits for a leader in sync, and the expansion with it.

    The text has no such precondition: as written the drop is carried out at once.
    """
    return readings.offline_drop != "as-written" and is_drop_held(partition)


def _choices(replicas: ReplicaList, places: int) -> list[ReplicaList]:
    """Return the orders that differ in who comes among the first `places`, or one fewer.

    One fewer is what the exclusive reading of the slice leaves.
    """
    return [
        replicas,
        *(
            (*chosen, *(r for r in replicas if r not in chosen))
            for size in (places - 1, places)
            if 0 < size < len(replicas)
            for chosen in combinations(replicas, size)
        ),
    ]


def has_duplicates(replicas: ReplicaList) -> bool:
    """Whether a replica stands twice."""
    return len(set(replicas)) != len(replicas)


# The leader's write ---------------------------------------------------------------------------


@clause("isr.change.keeps-leader", "isr.change.by-leader", "isr.change.leader-kept")
@clause("isr.change.assigned-only", "isr.change.live-only")
def accept_change_isr(
    partition: Partition, write: ChangeIsr, around: Environment, readings: Readings
) -> Outcome:
    """Judge a leader's change of the in-sync set."""
    old, new = partition.state, write.state
    assert old is not None and partition.assigned is not None
    if (new.leader, new.leader_epoch, new.controller_epoch) != (
        old.leader,
        old.leader_epoch,
        old.controller_epoch,
    ):
        return Rejected("isr.change.keeps-leader", "a broker may change the in-sync set only")
    if write.writer != old.leader:
        return Rejected(
            "isr.change.by-leader", f"broker {write.writer} wrote, broker {old.leader} leads"
        )
    if has_duplicates(new.isr):
        return Rejected("isr.no-duplicates", f"in-sync replicas {list(new.isr)}")
    if old.leader not in new.isr:
        return Rejected("isr.change.leader-kept", f"leader {old.leader} left the in-sync set")
    joined = [r for r in new.isr if r not in old.isr]
    strangers = [r for r in joined if r not in partition.assigned]
    if strangers:
        return Rejected("isr.change.assigned-only", f"{strangers[0]} joined and is not assigned")
    dead = [r for r in joined if r not in around.live]
    if dead:
        return Rejected("isr.change.live-only", f"{dead[0]} joined and is not alive")
    clauses = ["isr.change.keeps-leader", "isr.change.by-leader", "isr.change.leader-kept"]
    if joined:
        clauses += ["isr.change.assigned-only", "isr.change.live-only"]
    return Accepted(replace(partition, state=new), tuple(clauses))


# The controller's writes of leader and in-sync set ------------------------------------------------


def accept_create_state(
    partition: Partition, write: CreateState, around: Environment, readings: Readings
) -> Outcome:
    """Judge the first state of a new partition."""
    assert partition.assigned is not None
    judged = judge_first_state(partition.assigned, write.state, around)
    if isinstance(judged, Rejected):
        return judged
    # Whoever is told of a new partition is told all of its replicas: no epoch is owed for them.
    after = replace(partition, state=write.state, announce_due=False)
    return Accepted(after, (*judged, "partition.new.brought-online"))


@clause("partition.new.epoch-zero", "partition.new.leader-first-live", "partition.new.isr-all-live")
def judge_first_state(
    assigned: ReplicaList, new: LeaderAndIsr, around: Environment
) -> tuple[str, ...] | Rejected:
    """Judge who leads first and is in sync; answer the clauses that this puts to the test."""
    elected = select_new(assigned, around.live)
    if elected is None or new.leader != elected.leader:
        wanted = "nobody, as none is alive" if elected is None else elected.leader
        return Rejected("partition.new.leader-first-live", f"{new.leader} leads; expected {wanted}")
    if has_duplicates(new.isr) or set(new.isr) != set(elected.isr):
        return Rejected(
            "partition.new.isr-all-live",
            f"in-sync replicas {list(new.isr)}; alive and assigned are {list(elected.isr)}",
        )
    if new.leader_epoch != 0:
        return Rejected("partition.new.epoch-zero", f"leader epoch {new.leader_epoch}")
    if new.controller_epoch != around.controller_epoch:
        return reject_controller_epoch(new, around)
    return (
        "partition.new.leader-first-live",
        "partition.new.isr-all-live",
        "partition.new.epoch-zero",
        "state.controller-epoch-stamped",
    )


def reject_controller_epoch(new: LeaderAndIsr, around: Environment) -> Rejected:
    """Say that a state is stamped with an epoch that is not the acting controller's."""
    return Rejected(
        "state.controller-epoch-stamped",
        f"controller epoch {new.controller_epoch}, the current one is {around.controller_epoch}",
    )


@clause("state.controller-epoch-stamped", "leader-epoch.raised-by-one")
def find_broken_epoch(old: LeaderAndIsr, new: LeaderAndIsr, around: Environment) -> Rejected | None:
    """Find an epoch that no controller may write."""
    if new.leader_epoch != old.leader_epoch + 1:
        return Rejected(
            "leader-epoch.raised-by-one", f"from {old.leader_epoch} to {new.leader_epoch}"
        )
    if new.controller_epoch != around.controller_epoch:
        return reject_controller_epoch(new, around)
    return None


@clause("isr.never-empty", "isr.no-duplicates", "leader.in-isr", "state.write-conditional")
def find_broken_isr(old: LeaderAndIsr, new: LeaderAndIsr) -> Rejected | None:
    """Find an in-sync set that no controller may write, whatever the reason."""
    if len(new.isr) == 0:
        return Rejected("isr.never-empty", "no in-sync replica is left")
    if has_duplicates(new.isr):
        return Rejected("isr.no-duplicates", f"in-sync replicas {list(new.isr)}")
    added = [r for r in new.isr if r not in old.isr]
    if added:
        return Rejected(
            "state.write-conditional",
            f"{added[0]} is back in the in-sync set, which only the leader may extend: "
            "the write was not based on the state it replaced",
        )
    if new.leader != NO_LEADER and new.leader not in new.isr:
        return Rejected("leader.in-isr", f"leader {new.leader}, in sync {list(new.isr)}")
    return None


@clause("leader.none-only-without-candidate", "election.clean", "election.live")
@clause("election.only-when-due", "election.assignment-order")
@clause("complete.leader-first-in-sync-target", "complete.target-in-sync")
def judge_leader(
    partition: Partition, new: LeaderAndIsr, around: Environment
) -> tuple[str, ...] | Rejected:
    """Judge who leads after the write; answer the clauses that an election was put to."""
    old, flight = partition.state, partition.reassignment
    assert old is not None and partition.assigned is not None
    leader_live = is_leader_live(old, around)
    removed = old.leader in old.isr and old.leader not in new.isr
    if leader_live and removed and new.leader in (old.leader, NO_LEADER):
        stopped = _find_stopped_leader(partition)
        if stopped is not None:
            return stopped
    if new.leader == old.leader:
        return ()
    offline = select_offline(partition.assigned, old.isr, around.live)
    if new.leader == NO_LEADER:
        if leader_live or offline is not None:
            return Rejected(
                "leader.none-only-without-candidate", "a live in-sync replica could lead"
            )
        return ("leader.none-only-without-candidate", "election.held")
    if new.leader not in old.isr:
        return Rejected("election.clean", f"{new.leader} was not in sync: {list(old.isr)}")
    if new.leader not in around.live:
        return Rejected("election.live", f"{new.leader} is not alive")
    moving = flight is not None and is_target_in_sync(partition)
    if moving and flight is not None and not (leader_live and old.leader in flight.target):
        moved = select_reassigned(flight.target, old.isr, around.live)
        if moved is not None and new.leader == moved.leader:
            return ("complete.leader-first-in-sync-target", "election.clean", "election.live")
        if leader_live:
            return Rejected(
                "complete.leader-first-in-sync-target",
                f"{new.leader} was elected; expected {moved.leader if moved else 'nobody'}",
            )
    if leader_live:
        if flight is not None and not moving and new.leader in flight.target:
            return Rejected("complete.target-in-sync", _missing(partition, flight))
        return Rejected("election.only-when-due", f"leader {old.leader} is alive and may stay")
    if offline is None or new.leader != offline.leader:
        wanted = "nobody" if offline is None else offline.leader
        return Rejected("election.assignment-order", f"{new.leader} leads; expected {wanted}")
    return (
        "election.held",
        "election.only-when-due",
        "election.clean",
        "election.live",
        "election.assignment-order",
    )


def _find_stopped_leader(partition: Partition) -> Rejected | None:
    """Say why a live leader of a reassignment in flight may not be stopped as an old replica."""
    old, flight = partition.state, partition.reassignment
    if old is None or flight is None:
        return None
    if partition.drop_due:
        return Rejected("drop.leader-kept", f"leader {old.leader} was dropped")
    if old.leader in flight.target:
        return None
    if is_target_in_sync(partition):
        return Rejected("complete.leader-in-target", f"leader {old.leader} was stopped")
    return Rejected("complete.target-in-sync", _missing(partition, flight))


def _missing(partition: Partition, flight: Reassignment) -> str:
    isr = partition.state.isr if partition.state is not None else ()
    missing = [r for r in flight.target if r not in isr]
    return f"target replicas not in sync: {missing}"


@clause("complete.target-in-sync", "complete.leader-in-target", "isr.remove.only-when-due")
@clause("drop.leader-kept", "drop.protect-target", "drop.keep-top", "drop.isr-at-least-min")
@clause("isr.kept-without-leader")
def judge_removals(
    partition: Partition, new: LeaderAndIsr, around: Environment, readings: Readings
) -> tuple[str, ...] | Rejected:
    """Judge who left the in-sync set: the dead, the old at completion, the dropped at a change."""
    old, flight = partition.state, partition.reassignment
    assert old is not None
    removed = [r for r in old.isr if r not in new.isr]
    alive = [r for r in removed if r in around.live]
    if new.leader == NO_LEADER and not partition.drop_due:
        if removed:
            return Rejected("isr.kept-without-leader", f"{removed[0]} could lead when it returns")
        return ("isr.kept-without-leader",)
    clauses = ["isr.remove.only-when-due"] if removed else []
    clauses += ["isr.remove.dead"] if len(alive) < len(removed) else []
    if len(alive) == 0:
        return tuple(clauses)
    if flight is None:
        return Rejected("isr.remove.only-when-due", f"{alive[0]} is alive and assigned")
    if all(r not in flight.target for r in alive) and _may_complete(partition, readings):
        if new.leader in flight.target:
            return (*clauses, "complete.target-in-sync", "complete.leader-in-target")
        # A change whose target is in sync already drops first, and the old leader may do so.
        if not partition.drop_due:
            return Rejected("complete.leader-in-target", f"leader {new.leader} is to be stopped")
    if partition.drop_due:
        rejected = _judge_drop_from_isr(partition, new, frozenset(alive), around, readings)
        if rejected is not None:
            return rejected
        return (*clauses, "drop.leader-kept", "drop.keep-top", "drop.isr-at-least-min")
    if any(r in flight.target for r in alive):
        return Rejected("isr.remove.only-when-due", f"{alive[0]} is alive and in the target")
    return Rejected("complete.target-in-sync", _missing(partition, flight))


def _may_complete(partition: Partition, readings: Readings) -> bool:
    """Whether old replicas may be stopped; `move.recheck-before-stop` asks for another look."""
    if is_target_in_sync(partition):
        return True
    return partition.completing and readings.move_recheck_before_stop == "no"


def _judge_drop_from_isr(
    partition: Partition,
    new: LeaderAndIsr,
    dropped: frozenset[int],
    around: Environment,
    readings: Readings,
) -> Rejected | None:
    old, flight = partition.state, partition.reassignment
    assert old is not None and flight is not None
    if readings.offline_drop == "skip" and is_drop_held(partition):
        return Rejected("drop.offline.skip", f"dropped {sorted(dropped)} without a leader in sync")
    if old.leader in dropped:
        return Rejected("drop.leader-kept", f"leader {old.leader} was dropped")
    if readings.drop_protects == "target" and any(r in flight.target for r in dropped):
        return Rejected("drop.protect-target", f"dropped {sorted(dropped)}")
    # The promise holds for top at or above the minimum, which is checked at the first request only.
    least = around.min_insync_replicas
    if len(new.isr) < least <= len(old.isr) and least <= flight.top:
        return Rejected(
            "drop.isr-at-least-min",
            f"{len(new.isr)} in sync, min.insync.replicas is {least}",
        )
    if not any(dropped <= drop for drop in compute_drops(partition, readings)):
        return Rejected("drop.keep-top", _describe_drops(partition, dropped, readings))
    return None


def _describe_drops(partition: Partition, dropped: frozenset[int], readings: Readings) -> str:
    if is_drop_held(partition):
        return f"dropped {sorted(dropped)}; the drop waits until a leader is in sync"
    allowed = sorted(sorted(drop) for drop in compute_drops(partition, readings))
    if allowed == [[]]:
        return f"dropped {sorted(dropped)}; the rule drops nothing"
    return f"dropped {sorted(dropped)}; the rule drops one of {allowed}"


def accept_write_state(
    partition: Partition, write: WriteState, around: Environment, readings: Readings
) -> Outcome:
    """Judge a controller's write of leader and in-sync set."""
    old, new, flight = partition.state, write.state, partition.reassignment
    assert old is not None
    broken = find_broken_epoch(old, new, around)
    if broken is not None:
        return broken
    judged = judge_state(partition, new, around, readings)
    if isinstance(judged, Rejected):
        act = find_act(partition, new, around, readings)
        if act is None:
            return judged
        judged = act
    clauses = (
        "leader-epoch.raised-by-one",
        "state.controller-epoch-stamped",
        *(("expand.announced",) if partition.announce_due else ()),
        *judged,
    )
    after = replace(partition, state=new, announce_due=False)
    if flight is None:
        after = replace(after, completing=False)
    elif new.leader in flight.target and all(r in new.isr for r in flight.target):
        after = replace(after, completing=True)
    return Accepted(after, clauses)


def judge_state(
    partition: Partition, new: LeaderAndIsr, around: Environment, readings: Readings
) -> tuple[str, ...] | Rejected:
    """Judge leader and in-sync set of a write that is no ordinary act (`kip_236.acts`)."""
    old = partition.state
    assert old is not None
    elected = judge_leader(partition, new, around)
    if isinstance(elected, Rejected):
        return elected
    broken = find_broken_isr(old, new)
    if broken is not None:
        return broken
    removals = judge_removals(partition, new, around, readings)
    if isinstance(removals, Rejected):
        return removals
    raised = judge_raise(partition, new)
    if isinstance(raised, Rejected):
        return raised
    return (
        "isr.never-empty",
        "isr.no-duplicates",
        "state.write-conditional",
        "leader.in-isr",
        *elected,
        *removals,
        *raised,
    )


@clause("leader-epoch.raised-with-reason")
def judge_raise(partition: Partition, new: LeaderAndIsr) -> tuple[str, ...] | Rejected:
    """Judge a write that raises the epoch and changes nothing else.

    While a reassignment is in flight a controller may announce anew what it took over, and the
    leader may have to learn the assignment that a reassignment left.
    """
    old = partition.state
    assert old is not None
    if new.leader != old.leader or len(new.isr) != len(old.isr):
        return ()
    if partition.reassignment is None and not partition.announce_due:
        return Rejected(
            "leader-epoch.raised-with-reason", "neither leader, in-sync set nor assignment changed"
        )
    return ("leader-epoch.raised-with-reason",)


# The controller's writes of the assignment --------------------------------------------------------


@clause("assigned.no-duplicates", "child.before-effects", "assigned.change.only-as-due")
def accept_write_assigned(
    partition: Partition, write: WriteAssigned, around: Environment, readings: Readings
) -> Outcome:
    """Judge a change of the assigned replicas: an expansion, a drop or a completion."""
    old, new, flight = partition.assigned, write.assigned, partition.reassignment
    assert old is not None
    if has_duplicates(new):
        return Rejected("assigned.no-duplicates", f"assigned {list(new)}")
    if new == old:
        return Accepted(partition)
    if flight is None:
        if any(r in request.target for request in partition.requests for r in set(new) - set(old)):
            return Rejected("child.before-effects", "no reassignment is recorded yet")
        return Rejected("assigned.change.only-as-due", "no reassignment is in flight")
    removed = frozenset(old) - frozenset(new)
    if set(new) == set(flight.target) and (removed or new == flight.target):
        outcome = accept_completion(partition, new, readings)
        growth = set(new) == set(old) | set(flight.target)
        if isinstance(outcome, Accepted) or not (partition.drop_due or growth):
            return outcome
    if removed:
        return accept_drop(partition, new, removed, readings)
    return accept_expansion(partition, new, readings)


@clause("complete.target-in-sync", "complete.leader-in-target", "complete.isr-before-assigned")
@clause("complete.target-order", "complete.announced")
def accept_completion(partition: Partition, new: ReplicaList, readings: Readings) -> Outcome:
    """Judge the write of the target as the assigned replicas."""
    state, flight = partition.state, partition.reassignment
    assert flight is not None
    # What a drop that is due takes out may go, whether or not the target is still in sync.
    begun = partition.completing and partition.drop_due
    if state is None or not (begun or _may_complete(partition, readings)):
        return Rejected("complete.target-in-sync", _missing(partition, flight))
    if state.leader not in flight.target:
        return Rejected("complete.leader-in-target", f"{state.leader} leads")
    left = [r for r in state.isr if r not in flight.target]
    if left:
        return Rejected("complete.isr-before-assigned", f"still in sync: {left}")
    if new != flight.target:
        return Rejected(
            "complete.target-order", f"assigned {list(new)}, the target is {list(flight.target)}"
        )
    if not partition.completing:
        return Rejected(
            "complete.announced", "the leader epoch was not raised since the target is in sync"
        )
    return Accepted(
        replace(partition, assigned=new, drop_due=False),
        (
            "assigned.no-duplicates",
            "assigned.change.only-as-due",
            "complete.target-in-sync",
            "complete.leader-in-target",
            "complete.isr-before-assigned",
            "complete.target-order",
            "complete.announced",
            "complete.carried-out",
        ),
    )


@clause("drop.leader-kept", "drop.keep-top", "drop.isr-first", "drop.protect-target")
def accept_drop(
    partition: Partition, new: ReplicaList, removed: frozenset[int], readings: Readings
) -> Outcome:
    """Judge a write by which assigned replicas leave before the target is complete."""
    state, flight = partition.state, partition.reassignment
    assert flight is not None and partition.assigned is not None
    if state is not None and state.leader in removed:
        return Rejected("drop.leader-kept", f"leader {state.leader} was dropped")
    if not partition.drop_due:
        if not is_target_in_sync(partition) and not removed & set(flight.target):
            return Rejected("complete.target-in-sync", _missing(partition, flight))
        return Rejected("assigned.change.only-as-due", f"{sorted(removed)} left; no drop is due")
    if readings.offline_drop == "skip" and is_drop_held(partition):
        return Rejected("drop.offline.skip", f"{sorted(removed)} left without a leader in sync")
    if readings.drop_protects == "target" and removed & set(flight.target):
        return Rejected("drop.protect-target", f"dropped {sorted(removed & set(flight.target))}")
    if removed not in compute_drops(partition, readings):
        return Rejected("drop.keep-top", _describe_drops(partition, removed, readings))
    if state is not None and removed & set(state.isr):
        return Rejected("drop.isr-first", f"still in sync: {sorted(removed & set(state.isr))}")
    kept = tuple(r for r in partition.assigned if r not in removed)
    dropped = replace(partition, assigned=kept, drop_due=False, announce_due=True)
    clauses: tuple[str, ...] = (
        "assigned.no-duplicates",
        "assigned.change.only-as-due",
        "drop.leader-kept",
        "drop.keep-top",
        "drop.isr-first",
        *(("drop.slice.inclusive",) if readings.drop_slice == "inclusive" else ()),
        "drop.rank.leader-isr-rest",
        "drop.before-expansion",
        "drop.carried-out",
    )
    if readings.drop_protects == "target":
        clauses = (*clauses, "drop.protect-target")
    if set(new) == set(kept):
        return Accepted(replace(dropped, assigned=new), clauses)
    expanded = accept_expansion(dropped, new, readings)
    if isinstance(expanded, Rejected):
        return expanded
    return Accepted(expanded.state, clauses + expanded.clauses)


@clause("expand.target-only", "expand.whole-target", "drop.before-expansion")
def accept_expansion(partition: Partition, new: ReplicaList, readings: Readings) -> Outcome:
    """Judge a write by which the target joins the assigned replicas."""
    flight = partition.reassignment
    assert flight is not None and partition.assigned is not None
    added = frozenset(new) - frozenset(partition.assigned)
    if not added:
        return Rejected("assigned.change.only-as-due", "only the order of the replicas changed")
    strangers = added - set(flight.target)
    if strangers:
        return Rejected("expand.target-only", f"{sorted(strangers)} are not in the target")
    missing = set(flight.target) - set(new)
    if missing:
        return Rejected("expand.whole-target", f"target replicas left out: {sorted(missing)}")
    if must_drop_wait(partition, readings):
        return Rejected("drop.before-expansion", "the drop waits for a leader in sync")
    late = readings.drop_evaluated == "after-expansion"
    if partition.drop_due and not late and frozenset() not in compute_drops(partition, readings):
        return Rejected("drop.before-expansion", _describe_drops(partition, frozenset(), readings))
    after = replace(
        partition, assigned=new, announce_due=True, drop_due=partition.drop_due and late
    )
    return Accepted(
        after,
        (
            "assigned.no-duplicates",
            "assigned.change.only-as-due",
            "expand.target-only",
            "expand.whole-target",
            "expand.carried-out",
            "child.before-effects",
        ),
    )


# The controller's writes of requests and reassignments --------------------------------------------


@clause("child.from-request", "child.route-from-request", "request.order.sequence")
def judge_request(
    partition: Partition, wanted: Reassignment, around: Environment, readings: Readings
) -> tuple[str, ...] | Rejected:
    """Judge whether the lowest pending request asks for this reassignment and is acceptable."""
    requests = partition.requests
    if not any(request.target == wanted.target for request in requests):
        return Rejected("child.from-request", f"no request asks for {list(wanted.target)}")
    head = requests[0]
    if head.target == wanted.target and head.legacy != wanted.legacy:
        reason = f"legacy {wanted.legacy}, request {head.sequence} says {head.legacy}"
        return Rejected("child.route-from-request", reason)
    if head.target != wanted.target:
        return Rejected(
            "request.order.sequence", f"request {head.sequence} is pending and comes first"
        )
    decision = decide_request(head, partition, around, readings)
    if isinstance(decision, Refusal):
        return Rejected(decision.clause, decision.reason)
    if not isinstance(decision, New | Change):
        return Rejected(decision.clause, "the request asks for nothing new")
    clauses: tuple[str, ...] = ("child.from-request", "child.route-from-request")
    if len({request.target for request in requests}) > 1:
        clauses = (*clauses, "request.order.sequence")
    if readings.target_size != "unchecked":
        clauses = (*clauses, "target.at-least-min-isr")
    return clauses


@clause("top.original-length", "top.at-least-min-isr")
def accept_create_reassignment(
    partition: Partition, write: CreateReassignment, around: Environment, readings: Readings
) -> Outcome:
    """Judge the record of the first reassignment of a chain."""
    wanted = write.reassignment
    clauses = judge_request(partition, wanted, around, readings)
    if isinstance(clauses, Rejected):
        return clauses
    assert partition.assigned is not None  # the request would have been refused
    if wanted.top != compute_top(partition, readings):
        return Rejected(
            "top.original-length",
            f"top {wanted.top}, the assignment has {len(partition.assigned)} replicas",
        )
    after = take_up(partition, wanted, readings)
    return Accepted(after, (*clauses, "top.original-length", "top.at-least-min-isr"))


@clause("top.once-per-chain", "child.update-in-place")
def accept_update_reassignment(
    partition: Partition, write: UpdateReassignment, around: Environment, readings: Readings
) -> Outcome:
    """Judge a change of the reassignment in flight."""
    flight, wanted = partition.reassignment, write.reassignment
    assert flight is not None
    top = compute_top(partition, readings)
    if wanted.top != top:
        return Rejected("top.once-per-chain", f"top {wanted.top}, expected {top}")
    same = (wanted.target, wanted.legacy) == (flight.target, flight.legacy)
    if same and readings.request_same_target == "no-change":
        return Rejected("request.same-target.no-change", "the target is the one in flight")
    clauses = judge_request(partition, wanted, around, readings)
    if isinstance(clauses, Rejected):
        return clauses
    after = take_up(partition, wanted, readings)
    clauses = (*clauses, "top.once-per-chain", "child.update-in-place")
    if readings.offline_drop == "skip" and is_drop_held(after):
        clauses = (*clauses, "drop.offline.skip")
    return Accepted(after, clauses)


@clause("complete.child-last", "child.update-in-place")
def accept_delete_reassignment(
    partition: Partition, write: DeleteReassignment, around: Environment, readings: Readings
) -> Outcome:
    """Judge the removal of the record of a reassignment."""
    state, flight = partition.state, partition.reassignment
    assert flight is not None
    done = (
        state is not None
        and partition.assigned == flight.target
        and (partition.completing or is_target_in_sync(partition))
        and all(r in flight.target for r in state.isr)
    )
    if not done:
        waiting = partition.requests[:1]
        if waiting and isinstance(decide_request(waiting[0], partition, around, readings), Change):
            return Rejected("child.update-in-place", "the record was removed to be made anew")
        return Rejected("complete.child-last", "the reassignment is not complete")
    after = replace(
        partition, reassignment=None, drop_due=False, announce_due=False, completing=False
    )
    return Accepted(forget(after, readings), ("complete.child-last", "complete.carried-out"))


@clause("request.delete.child-first", "request.order.sequence")
def accept_delete_request(
    partition: Partition, write: DeleteRequest, around: Environment, readings: Readings
) -> Outcome:
    """Judge the removal of a request, as far as it concerns this partition."""
    head = partition.requests[0]
    if head.sequence != write.sequence:
        return Rejected(
            "request.order.sequence", f"request {head.sequence} is pending and comes first"
        )
    after = forget(replace(partition, requests=partition.requests[1:]), readings)
    flight = partition.reassignment
    recorded = flight is not None and (flight.target, flight.legacy) == (head.target, head.legacy)
    if recorded and (readings.request_same_target == "no-change" or partition.taken == flight):
        return Accepted(after, ("request.delete.child-first", "request.consumed"))
    decision = decide_request(head, partition, around, readings)
    if isinstance(decision, New | Change):
        return Rejected(
            "request.delete.child-first", f"the target {list(head.target)} is not recorded"
        )
    return Accepted(after, (decision.clause, "request.consumed"))


@clause("child.before-effects")
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
    return Accepted(before, tuple(c for c in ahead.clauses if c != "child.before-effects"))


def _accept_recorded(
    partition: Partition, write: Write, around: Environment, readings: Readings
) -> Outcome:
    match write:
        case ChangeIsr():
            return accept_change_isr(partition, write, around, readings)
        case CreateState():
            return accept_create_state(partition, write, around, readings)
        case WriteState():
            return accept_write_state(partition, write, around, readings)
        case WriteAssigned():
            return accept_write_assigned(partition, write, around, readings)
        case CreateReassignment():
            return accept_create_reassignment(partition, write, around, readings)
        case UpdateReassignment():
            return accept_update_reassignment(partition, write, around, readings)
        case DeleteReassignment():
            return accept_delete_reassignment(partition, write, around, readings)
        case DeleteRequest():
            return accept_delete_request(partition, write, around, readings)


def apply_failover(partition: Partition, readings: Readings) -> Partition:
    """Return the partition as the next controller finds it: what was only in memory is gone."""
    again = readings.drop_reevaluated_on_failover == "yes" and partition.reassignment is not None
    due = again or is_change_unfinished(partition)
    return forget(replace(partition, drop_due=due, completing=False), readings)


@clause("drop.carried-out", "top.bounds-assigned")
def is_change_unfinished(partition: Partition) -> bool:
    """Whether a change of the target was recorded and its drop, as far as can be seen, was not.

    The drop comes before the expansion, so it is still due where more than top replicas are
    assigned and the target is not among them yet. It is due as well where more replicas are
    assigned than top and the target allow: no carried out drop leaves so many.
    """
    assigned, flight = partition.assigned, partition.reassignment
    if flight is None or assigned is None or len(assigned) <= flight.top:
        return False
    missing = any(replica not in assigned for replica in flight.target)
    return missing or len(assigned) > flight.top + len(flight.target)
