"""The reassignment protocol by induction: no accepted write leads out of the invariant.

The state is one partition with everything that the rules read of its environment: assigned
replicas, leader and in-sync set with their epochs, the reassignment in flight, the pending request,
and what the controller has in memory. All of it is symbolic, and so is the write; who is alive and
who is known are any sets of brokers at all. The model's own rules (`accept_write`,
`apply_failover`) are run on that, and its own controller (`next_write`, `compute_plan`).

The induction: a partition that nothing has happened to satisfies the invariant, and whatever write
the rules accept in a state that satisfies it, they accept into a state that does. A crash is a
failover between any two writes, so it is a step like the others. Nothing is said of how a state was
reached: the theorems hold for partitions that no run would ever make, as long as the invariant
holds of them.
"""

# ruff: noqa: D401  # the docstring of a claim is what it claims

from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from itertools import product
from typing import Any, Final

from reassure_model.outcome import Accepted
from reassure_model.partition import (
    Environment,
    LeaderAndIsr,
    Partition,
    Reassignment,
    Request,
)
from reassure_model.protocols.kip_236 import apply_failover, next_write
from reassure_model.protocols.kip_236.rules import accept_write
from reassure_model.protocols.kip_236.system import compute_plan, make_system
from reassure_model.state_machines import PARTITION_TABLES, PartitionState
from reassure_model.writes import (
    ChangeIsr,
    CreateReassignment,
    CreateState,
    DeleteReassignment,
    DeleteRequest,
    UpdateReassignment,
    WriteAssigned,
    WriteState,
)
from reassure_proofs.engine.formula import (
    Truth,
    all_of,
    any_of,
    count,
    distinct,
    implies,
    inside,
    member,
    negate,
    same,
    subset,
)
from reassure_proofs.engine.statement import (
    ID,
    LEMMA,
    SET,
    TRUTH,
    Claim,
    Claims,
    Hypothesis,
    Parameter,
    Shape,
    Subject,
    Values,
    given,
    ids,
    make_subject,
    says,
    shaped,
    word,
)
from reassure_proofs.protocols.kip_236.plantings import IN_MEMORY, show_in_flight
from reassure_spec.readings import Readings, get_profile
from reassure_spec.znodes import NO_LEADER

_PROFILE: Final = "kip-236-amended"
_READINGS: Final = get_profile(_PROFILE)
_BOUNDED: Final = "1 to {} replicas assigned, in sync, in a target and in a write"
_CUT: Final = _BOUNDED + ", not all of them at their largest at once"
_LENGTHS_MAX: Final = 6
"""How long all lists together may be where a write has many paths."""
_LENGTHS_MAX_THOROUGH: Final = 8
"""The same in a thorough proof; all there are of length 2."""
_ONE_STEP: Final = (
    _BOUNDED + ", and single shapes of up to 3; in a controller's write of the state or of the "
    f"assignment {_LENGTHS_MAX} in all lists together (thorough: {_LENGTHS_MAX_THOROUGH}); no "
    "ordinary act is asked for"
)
_CUT_FROM_THREE: Final = _BOUNDED + " (of 3, not all of them at their largest at once)"
_WRITTEN_MAX: Final = 5
"""The same for the rules as written."""

# States and writes out of named values ----------------------------------------------------------


def make_partition(values: Values) -> Partition:
    """Return the partition that the values describe.

    What they do not name is not there: no state, nothing in flight, no request pending.
    """
    state = flight = None
    requests: tuple[Request, ...] = ()
    if "isr" in values:
        epochs = (values["leader_epoch"], values["controller_epoch"])
        state = LeaderAndIsr(values["leader"], *epochs, values["isr"])
    if "target" in values:
        flight = Reassignment(values["target"], values["top"])
    if "requested" in values:
        requests = (Request(values["sequence"], values["requested"]),)
    if "requested_next" in values:
        requests = (*requests, Request(values["sequence_next"], values["requested_next"]))
    memory = [values.get(name, False) for name in ("drop_due", "announce_due", "completing")]
    return Partition(values["assigned"], state, flight, requests, *memory)


def make_surroundings(values: Values) -> Environment:
    """Return what the rules read of the cluster."""
    return Environment(values["live"], values["known"], values["minimum"], values["acting_epoch"])


def _new_state(values: Values) -> LeaderAndIsr:
    epochs = (values["new_leader_epoch"], values["new_controller_epoch"])
    return LeaderAndIsr(values["new_leader"], *epochs, values["new_isr"])


_MAKE: Final[Mapping[str, Callable[[Values], Any]]] = {
    "change-isr": lambda v: ChangeIsr(_new_state(v), v["writer"]),
    "create-state": lambda v: CreateState(_new_state(v)),
    "write-state": lambda v: WriteState(_new_state(v)),
    "write-assigned": lambda v: WriteAssigned(v["new_assigned"]),
    "create-reassignment": lambda v: CreateReassignment(
        Reassignment(v["new_target"], v["new_top"])
    ),
    "update-reassignment": lambda v: UpdateReassignment(
        Reassignment(v["new_target"], v["new_top"])
    ),
    "delete-reassignment": lambda _: DeleteReassignment(),
    "delete-request": lambda v: DeleteRequest(v["removed"]),
}
"""Every kind of write by name."""

WRITES: Final = (*_MAKE, "failover")
"""Every kind of step; a failover is none that the rules could refuse."""


def take(values: Values, readings: Readings = _READINGS) -> Partition | None:
    """Return the partition after the step that the values describe, None if the rules refuse it."""
    partition = make_partition(values)
    if values["write"] == "failover":
        return apply_failover(partition, readings)
    write = _MAKE[values["write"]](values)
    outcome = accept_write(partition, write, make_surroundings(values), readings)
    return outcome.state if isinstance(outcome, Accepted) else None


def take_owed(values: Values, readings: Readings = _READINGS) -> tuple[bool, Partition]:
    """Return whether the rules accept what the controller owes, and the partition after it."""
    partition, around = make_partition(values), make_surroundings(values)
    owed = next_write(partition, around, readings)
    if owed is None:
        return True, partition
    outcome = accept_write(partition, owed.write, around, readings)
    accepted = isinstance(outcome, Accepted)
    return accepted, outcome.state if isinstance(outcome, Accepted) else partition


def carry_out(values: Values, readings: Readings = _READINGS) -> tuple[int, Partition, bool]:
    """Return how many writes the controller owes, the partition after them, whether it rests."""
    partition, around = make_partition(values), make_surroundings(values)
    plan, after = compute_plan(partition, around, readings)
    return len(plan), after, next_write(after, around, readings) is None


def crash_and_resume(
    values: Values, readings: Readings = _READINGS
) -> tuple[Partition, tuple[Partition, ...]]:
    """Return the partition at rest, and at rest after a failover at each point of the plan."""
    partition, around = make_partition(values), make_surroundings(values)
    plan, final = compute_plan(partition, around, readings)
    resumed: tuple[Partition, ...] = ()
    for owed in (None, *plan):
        if owed is not None:
            outcome = accept_write(partition, owed.write, around, readings)
            assert isinstance(outcome, Accepted)
            partition = outcome.state
        found = apply_failover(partition, readings)
        resumed = (*resumed, compute_plan(found, around, readings)[1])
    return final, resumed


def catch_up(values: Values, readings: Readings = _READINGS) -> Partition:
    """Return the partition after the controller rested, the target caught up, and it went on."""
    partition, around = make_partition(values), make_surroundings(values)
    partition = compute_plan(partition, around, readings)[1]
    state, flight = partition.state, partition.reassignment
    assert state is not None
    for replica in flight.target if flight is not None else ():
        assert partition.state is not None
        state = partition.state
        if replica not in state.isr:
            joined = LeaderAndIsr(
                state.leader, state.leader_epoch, state.controller_epoch, (*state.isr, replica)
            )
            write = ChangeIsr(joined, state.leader)
            outcome = accept_write(partition, write, around, readings)
            assert isinstance(outcome, Accepted)
            partition = outcome.state
    return compute_plan(partition, around, readings)[1]


# Shapes -----------------------------------------------------------------------------------------


def _partition(assigned: int, isr: int = 0, target: int = 0, requested: int = 0) -> dict[str, Any]:
    shape: dict[str, Any] = {"assigned": ids(assigned)}
    if isr:
        epochs = {"leader_epoch": Parameter(), "controller_epoch": Parameter()}
        shape |= {"isr": ids(isr), "leader": ID, **epochs}
    if target:
        shape |= {"target": ids(target), "top": ID}
        shape |= {"drop_due": TRUTH, "completing": TRUTH}
    if requested:
        shape |= {"requested": ids(requested), "sequence": Parameter()}
    shape |= {"announce_due": TRUTH, "live": SET, "known": SET}
    return {**shape, "minimum": ID, "acting_epoch": Parameter()}


def _state_parameters(isr: int) -> dict[str, Any]:
    epochs = {"new_leader_epoch": Parameter(), "new_controller_epoch": Parameter()}
    return {"new_leader": ID, **epochs, "new_isr": ids(isr)}


def _step_shapes(replication_factor: int) -> Iterator[Shape]:
    lengths = range(1, replication_factor + 1)
    for assigned, isr in product(lengths, lengths):
        if isr > assigned:
            continue
        for new in (0, isr):
            yield {"write": word("create-state"), **_partition(assigned), **_state_parameters(new)}
        for requested in lengths:
            before = _partition(assigned, isr, 0, requested)
            yield {"write": word("create-reassignment"), **before, **_record(requested)}
            yield {"write": word("delete-request"), **before, "removed": Parameter()}
        for target in lengths:
            yield from _flight_shapes(assigned, isr, target, replication_factor)
        yield from _still_shapes(assigned, isr)
    if replication_factor > 1:
        yield from _odd_shapes()


def _length(shape: Shape) -> int:
    return sum(parameter.length or 0 for parameter in shape.values())


def _record(length: int) -> dict[str, Any]:
    return {"new_target": ids(length), "new_top": ID}


def _still_shapes(assigned: int, isr: int) -> Iterator[Shape]:
    """Yield the writes of the state while nothing is in flight."""
    before = _partition(assigned, isr)
    for new in range(isr + 1):
        yield {"write": word("write-state"), **before, **_state_parameters(new)}
    yield {"write": word("change-isr"), **before, **_state_parameters(isr), "writer": ID}


def _odd_shapes() -> Iterator[Shape]:
    """Yield single shapes beyond the others in which a rule shows that looks at a part only.

    Two replicas that join at once, a drop of two, a drop and an expansion in one write, and two
    requests of which the second is not to come first.
    """
    two_join = {**_partition(3, 1), **_state_parameters(3), "writer": ID}
    yield {"write": word("change-isr"), **two_join}
    yield {"write": word("write-assigned"), **_partition(2, 1, 1), "new_assigned": ids(3)}
    yield {"write": word("write-assigned"), **_partition(3, 1, 1), "new_assigned": ids(2)}
    for target in (0, 1):
        before = {**_partition(1, 1, target, 1), "requested_next": ids(1)}
        before |= {"sequence_next": Parameter()}
        kind = "update-reassignment" if target else "create-reassignment"
        yield {"write": word(kind), **before, **_record(1)}
        yield {"write": word("delete-request"), **before, "removed": Parameter()}


def _flight_shapes(assigned: int, isr: int, target: int, longest: int) -> Iterator[Shape]:
    before = _partition(assigned, isr, target)
    bound = _LENGTHS_MAX if longest <= 2 else _LENGTHS_MAX_THOROUGH
    yield {"write": word("failover"), **before}
    yield {"write": word("delete-reassignment"), **before}
    yield {"write": word("write-state"), **before, **_state_parameters(0)}
    for length in range(1, longest + 1):
        bearable = assigned + isr + target + length <= bound
        if bearable:
            yield {"write": word("write-assigned"), **before, "new_assigned": ids(length)}
        if bearable and length <= isr:
            yield {"write": word("write-state"), **before, **_state_parameters(length)}
        if length <= isr + 1:
            writer = {"writer": ID}
            yield {"write": word("change-isr"), **before, **_state_parameters(length), **writer}
        pending = _partition(assigned, isr, target, length)
        yield {"write": word("update-reassignment"), **pending, **_record(length)}
        yield {"write": word("delete-request"), **pending, "removed": Parameter()}


def _owed_shapes(replication_factor: int) -> Iterator[Shape]:
    lengths = range(1, replication_factor + 1)
    longest = min(3 * replication_factor, replication_factor + 4)
    for assigned in lengths:
        yield _partition(assigned)
        for isr, target, requested in product(lengths, (0, *lengths), (0, *lengths)):
            if isr <= assigned and assigned + isr + target + requested <= longest:
                yield _partition(assigned, isr, target, requested)


def _plan_shapes(replication_factor: int) -> Iterator[Shape]:
    yield from _cut_shapes(replication_factor)
    for assigned, requested in product(range(1, replication_factor + 1), repeat=2):
        yield _partition(assigned, 1, 0, requested)


def _in_flight_shapes(replication_factor: int) -> Iterator[Shape]:
    lengths = range(1, replication_factor + 1)
    for assigned, isr, target in product(lengths, lengths, lengths):
        if isr <= assigned and assigned + isr + target <= replication_factor + 4:
            yield _partition(assigned, isr, target)


def _cut_shapes(replication_factor: int) -> Iterator[Shape]:
    """Yield the shapes in which the lists are not all of the largest length.

    A plan that is cut at every point has many times the paths of one that is not.
    """
    for shape in _in_flight_shapes(replication_factor):
        length = sum(parameter.length or 0 for parameter in shape.values())
        if length <= replication_factor + 3:
            yield shape


# The invariant ----------------------------------------------------------------------------------


def _leader_in_isr(partition: Partition, _: Values) -> Truth:
    state = partition.state
    if state is None:
        return True
    return (state.leader == NO_LEADER) | member(state.leader, state.isr)


def _isr_not_empty(partition: Partition, _: Values) -> Truth:
    return partition.state is None or len(partition.state.isr) > 0


def _isr_distinct(partition: Partition, _: Values) -> Truth:
    return partition.state is None or distinct(partition.state.isr)


def _isr_assigned(partition: Partition, _: Values) -> Truth:
    return partition.state is None or subset(partition.state.isr, partition.assigned or ())


def _assigned_well_formed(partition: Partition, _: Values) -> Truth:
    assigned = partition.assigned or ()
    return (len(assigned) > 0) & distinct(assigned) & all_of(r >= 0 for r in assigned)


def _target_well_formed(partition: Partition, _: Values) -> Truth:
    flight = partition.reassignment
    if flight is None:
        return negate(partition.drop_due) & negate(partition.completing)
    numbers = all_of(replica >= 0 for replica in flight.target)
    return (len(flight.target) > 0) & distinct(flight.target) & numbers & (flight.top >= 1)


def _few_beside_target(partition: Partition, _: Values) -> Truth:
    """Say whether at most top replicas are assigned beside the target, or a drop is due.

    This is what the bound on the number of replicas rests on: the drop leaves it so, and no
    expansion can break it.
    """
    flight = partition.reassignment
    if flight is None:
        return True
    beside = count(negate(member(r, flight.target)) for r in partition.assigned or ())
    return partition.drop_due | (beside <= flight.top)


def _epochs_in_order(partition: Partition, values: Values) -> Truth:
    state = partition.state
    if state is None:
        return True
    return (state.leader_epoch >= 0) & (state.controller_epoch <= values["acting_epoch"])


_PARTS: Final = (
    _leader_in_isr,
    _isr_not_empty,
    _isr_distinct,
    _isr_assigned,
    _assigned_well_formed,
    _target_well_formed,
    _few_beside_target,
    _epochs_in_order,
)


def holds_invariant(partition: Partition, values: Values) -> Truth:
    """Return whether the whole invariant holds of a partition."""
    return all_of(part(partition, values) for part in _PARTS)


INVARIANT: Final = Hypothesis(
    "invariant",
    "the partition satisfies the invariant: the leader, if any, is in sync, the in-sync set is "
    "assigned, no list names a replica twice or is empty, at most top replicas are assigned beside "
    "the target unless a drop is due, and no epoch is of the future",
    lambda v: holds_invariant(make_partition(v), v),
)
EVERYBODY_LIVE: Final = Hypothesis(
    "everybody-live",
    "every broker that is named is alive, and the partition has a leader",
    lambda v: (
        all_of(inside(r, v["live"]) for r in (*v["assigned"], *v["target"]))
        & (v["leader"] != NO_LEADER)
    ),
)
DROP_FOLLOWED: Final = Hypothesis(
    "drop-followed",
    "the expansion has followed the last drop: a drop is due, or the whole target is assigned, or "
    "no more than top replicas are",
    lambda v: v["drop_due"] | subset(v["target"], v["assigned"]) | (v["top"] >= len(v["assigned"])),
)
ASSIGNED_WELL_FORMED: Final = Hypothesis(
    "assigned-well-formed",
    "the assignment names brokers, none of them twice",
    lambda v: distinct(v["assigned"]) & all_of(replica >= 0 for replica in v["assigned"]),
)


# Claims -----------------------------------------------------------------------------------------


def on(*kinds: str) -> Callable[[Claim], Claim]:
    """Return a claim about accepted steps of some kinds, which says nothing of others."""

    def state(claim: Claim) -> Claim:
        @wraps(claim)
        def stated(values: Values, after: Any) -> Truth:
            return after is None or values["write"] not in kinds or claim(values, after)

        return stated

    return state


def _keeps(part: Callable[[Partition, Values], Truth]) -> Callable[[Values, Any], Truth]:
    return lambda values, after: after is None or part(after, values)


def _leader_assigned(partition: Partition, _: Values) -> Truth:
    state = partition.state
    if state is None:
        return True
    return (state.leader == NO_LEADER) | member(state.leader, partition.assigned or ())


def _bounded(partition: Partition, _: Values) -> Truth:
    flight = partition.reassignment
    if flight is None:
        return True
    return partition.drop_due | (len(partition.assigned or ()) <= flight.top + len(flight.target))


def _partition_states(partition: Partition) -> dict[PartitionState, Truth]:
    """Return in which state of its machine a partition is, each with whether it is."""
    if partition.state is None:
        return {PartitionState.NEW: True}
    offline = partition.state.leader == NO_LEADER
    return {PartitionState.ONLINE: negate(offline), PartitionState.OFFLINE: offline}


def plan_length_max(values: Values) -> int:
    """Return how many writes a partition can owe at most at one time.

    One each for an election, the dead, the drop from the in-sync set, the drop, the expansion, the
    announcement, the move, the announced completion, the target and the record; one for each
    in-sync replica that leaves; and for a request its record, what follows from it, and its
    removal.
    """
    return 10 + len(values["isr"]) + (8 + len(values["isr"]) if "requested" in values else 0)


# Theorems ---------------------------------------------------------------------------------------

_A_WRITE: Final = "it is a write that the rules judge; no controller makes it of its own accord"

STEP: Final = make_subject(
    "step",
    take,
    "the rules on one step",
    _step_shapes,
    _PROFILE,
    bounded=_ONE_STEP,
    hashable=True,
    shown=_A_WRITE,
    needs=1,
)
"""One step of any kind: a write that the rules judge, or a failover."""
STEP_AS_WRITTEN: Final = make_subject(
    "step-as-written",
    take,
    "the rules as written on one step",
    lambda n: (shape for shape in _step_shapes(n) if _length(shape) <= _WRITTEN_MAX),
    "kip-236",
    bounded="1 to {} replicas assigned, in sync, in a target and in a write, "
    f"{_WRITTEN_MAX} in all lists together; no ordinary act is asked for",
    hashable=True,
    shown=_A_WRITE,
)
"""The same without the amendments, with shorter lists."""
OWED: Final = make_subject(
    "owed",
    take_owed,
    "the rules on what is owed",
    _owed_shapes,
    _PROFILE,
    bounded=_CUT,
    hashable=True,
    weight=2,
    shown="the model's own controller halts there: its write is refused",
)
"""The next write that the controller owes, put to the rules."""
PLAN: Final = make_subject(
    "plan",
    carry_out,
    "the controller's plan",
    _plan_shapes,
    _PROFILE,
    bounded=_CUT,
    hashable=True,
    weight=4,
    shown="the state names a controller epoch that is still to come, or makes the model halt",
)
"""All that the controller owes, carried out."""
RESUMED: Final = make_subject(
    "resumed",
    crash_and_resume,
    "the plan cut and resumed",
    _cut_shapes,
    _PROFILE,
    bounded=_CUT,
    hashable=True,
    weight=10,
    shown=IN_MEMORY,
)
"""The plan cut at each point and resumed by another controller."""
RESUMED_AS_WRITTEN: Final = make_subject(
    "resumed-as-written",
    crash_and_resume,
    "the plan cut and resumed under the rules as written",
    lambda _: iter([_partition(2, 2, 1)]),
    "kip-236",
    bounded="2 replicas assigned and in sync, one in a target",
    hashable=True,
)
"""The same without the amendments, where a target replica is in sync and can be dropped."""
CAUGHT_UP: Final = make_subject(
    "caught-up",
    catch_up,
    "the plan before and after the target caught up",
    _in_flight_shapes,
    _PROFILE,
    bounded=_CUT_FROM_THREE,
    hashable=True,
    weight=3,
    shown=show_in_flight,
)
"""What becomes of a reassignment once its whole target is in sync."""
COMPLETION: Final = make_subject(
    "completion",
    take,
    "the rules on the last write of the assignment",
    lambda _: iter(
        [{"write": word("write-assigned"), **_partition(3, 2, 2), "new_assigned": ids(2)}]
    ),
    _PROFILE,
    bounded="3 replicas assigned, 2 of them the target and in sync",
    hashable=True,
    shown=_A_WRITE,
)
"""A completion that has something to put in order."""
NO_DROP_DUE: Final = Hypothesis("no-drop-due", "no drop is due", lambda v: negate(v["drop_due"]))
READY: Final = Hypothesis(
    "ready",
    "exactly the target is in sync, and the completion has begun",
    lambda v: subset(v["target"], v["isr"]) & subset(v["isr"], v["target"]) & v["completing"],
)
STOP_AS_WRITTEN: Final = make_subject(
    "stop-as-written",
    take,
    "the rules as written on the stop of old replicas",
    lambda _: iter([{"write": word("write-state"), **_partition(2, 2, 2), **_state_parameters(1)}]),
    "kip-236",
    bounded="2 replicas assigned, in sync and in a target, one of them left in sync",
    hashable=True,
)
"""The write that takes old replicas out of the in-sync set, without a second look at it."""
BEGUN: Final = Hypothesis(
    "begun",
    "the completion has begun, no drop is due and nobody else leads",
    lambda v: v["completing"] & negate(v["drop_due"]) & (v["new_leader"] == v["leader"]),
)
INITIAL: Final = Subject(
    "initial",
    lambda v: make_system(v["assigned"], ()).partition,
    "a partition that nothing has happened to",
    lambda n: ({"assigned": ids(k), "acting_epoch": Parameter()} for k in range(1, n + 1)),
    shown="it is about a partition before any controller has looked at it",
)
"""Where every history begins."""

_KEPT: Final[tuple[tuple[str, str, str, Callable[[Partition, Values], Truth]], ...]] = (
    ("leader-in-isr", "leader.in-isr", "leaves a leader, if any, that is in sync", _leader_in_isr),
    ("isr-not-empty", "isr.never-empty", "leaves a replica in sync", _isr_not_empty),
    ("isr-distinct", "isr.no-duplicates", "puts a replica in sync once only", _isr_distinct),
    ("isr-assigned", "isr.within-assigned", "leaves every in-sync replica assigned", _isr_assigned),
    ("leader-assigned", "leader.assigned", "leaves the leader assigned", _leader_assigned),
    (
        "assigned-well-formed",
        "assigned.no-duplicates",
        "assigns a replica once only, and at least one",
        _assigned_well_formed,
    ),
    (
        "bounds-assigned",
        "top.bounds-assigned",
        "leaves at most top and the target assigned, or a drop due",
        _bounded,
    ),
    (
        "epochs-in-order",
        "state.controller-epoch-stamped",
        "carries no epoch of a controller that is still to come",
        _epochs_in_order,
    ),
    (
        "invariant",
        LEMMA,
        "leads out of the invariant by no way at all",
        holds_invariant,
    ),
)


THEOREMS: Final = Claims(_PROFILE, largest=2, thorough=3, tier="full")
"""Every theorem about the protocol."""
about = THEOREMS.about


@about(INITIAL, "protocol-starts-in-invariant", LEMMA)
@given(ASSIGNED_WELL_FORMED)
def _protocol_starts_in_invariant(values: Values, partition: Any) -> Truth:
    """A partition that nothing has happened to satisfies the invariant."""
    return holds_invariant(partition, values)


for _name, _clause, _words, _part in _KEPT:
    _needs = shaped if _name == "isr-not-empty" else given
    _kept = _needs(INVARIANT)(_keeps(_part))
    # Of single replicas it would say nothing that lists name one once only.
    _factor = 2 if _name == "isr-distinct" else None
    about(STEP, f"step-keeps-{_name}", _clause, needs=_factor)(says(f"A step {_words}.")(_kept))
    about(STEP_AS_WRITTEN, f"as-written-step-keeps-{_name}", _clause)(
        says(f"Without the amendments a step {_words}.")(_kept)
    )


@about(STEP, "step-raises-leader-epoch", "leader-epoch.raised-by-one")
@shaped(INVARIANT)
def _epoch_step(values: Values, after: Any) -> Truth:
    """A controller's write of the state raises the leader epoch by one; no other step does."""
    if after is None or after.state is None or "leader_epoch" not in values:
        return True
    raised = 1 if values["write"] == "write-state" else 0
    return after.state.leader_epoch == values["leader_epoch"] + raised


@about(STEP, "step-stamps-acting-epoch", "state.controller-epoch-stamped")
@shaped(INVARIANT)
@on("create-state", "write-state")
def _epoch_stamped(values: Values, after: Any) -> Truth:
    """A controller writes the state in the epoch that is acting: one that was replaced cannot."""
    return after.state.controller_epoch == values["acting_epoch"]


@about(STEP, "step-moves-partition-by-table", "partition.transition.valid-previous")
@shaped(INVARIANT)
def _partition_moves_by_table(values: Values, after: Any) -> Truth:
    """Every step moves the partition by the table: new, online or offline."""
    if after is None:
        return True
    table, before = PARTITION_TABLES[_PROFILE], _partition_states(make_partition(values))
    return all_of(
        negate(was & now)
        for (old, was), (new, now) in product(before.items(), _partition_states(after).items())
        if old != new and old not in table[new]
    )


@about(
    STEP_AS_WRITTEN,
    "as-written-step-keeps-target",
    "drop.protect-target",
    finding="drop-4",
    cure=_PROFILE,
)
@says("Without the amendments no write of the assignment takes a replica of the target out.")
@given(INVARIANT)
@about(STEP, "step-keeps-target", "drop.protect-target")
@shaped(INVARIANT)
@on("write-assigned")
def _target_kept(values: Values, after: Any) -> Truth:
    """No write of the assignment takes a replica of the target out of it."""
    left = (negate(member(r, after.assigned)) for r in values["assigned"])
    return all_of(
        negate(gone & member(replica, values["target"]))
        for gone, replica in zip(left, values["assigned"], strict=True)
    )


@about(STOP_AS_WRITTEN, "as-written-stop-keeps-min-isr", "move.stop.recheck", finding="move-3")
@says(
    "Without a second look at the in-sync set the stop of old replicas leaves the minimum in sync."
)
@given(INVARIANT)
@shaped(BEGUN)
@about(STEP, "step-keeps-min-isr", "drop.isr-at-least-min")
@shaped(INVARIANT)
@on("write-state")
def _isr_sufficient(values: Values, after: Any) -> Truth:
    """Where in-sync set, top and target reach the minimum, taking out live replicas keeps it."""
    least, left = values["minimum"], after.state.isr
    removed = (negate(member(replica, left)) for replica in values["isr"])
    nobody_died = all_of(
        negate(gone) | inside(replica, values["live"])
        for gone, replica in zip(removed, values["isr"], strict=True)
    )
    enough = least <= len(values["isr"])
    if "target" in values:
        enough = enough & (least <= values["top"]) & (least <= len(values["target"]))
    return implies(nobody_died & enough, least <= len(left))


@about(STEP, "step-elects-live-in-sync", "election.clean")
@shaped(INVARIANT)
@on("write-state")
def _election_clean(values: Values, after: Any) -> Truth:
    """Whoever is elected was in sync and is alive."""
    new = after.state.leader
    changed = (new != values["leader"]) & (new != NO_LEADER)
    return implies(changed, member(new, values["isr"]) & inside(new, values["live"]))


@about(STEP, "step-gives-up-only-without-candidate", "leader.none-only-without-candidate")
@given(INVARIANT)
@on("write-state")
def _none_only_without_candidate(values: Values, after: Any) -> Truth:
    """A partition is left without a leader only when no in-sync replica is alive."""
    given_up = (after.state.leader == NO_LEADER) & (values["leader"] != NO_LEADER)
    return implies(given_up, all_of(negate(inside(r, values["live"])) for r in values["isr"]))


@about(STEP, "step-removes-complete-record", "complete.child-last")
@shaped(INVARIANT)
@on("delete-reassignment")
def _removal_is_complete(values: Values, after: Any) -> Truth:
    """The record of a reassignment goes only when the target is assigned, nobody else in sync."""
    same = len(values["assigned"]) == len(values["target"])
    return (
        same
        & subset(values["assigned"], values["target"])
        & subset(values["isr"], values["target"])
    )


@about(STEP, "step-records-top", "top.original-length")
@shaped(INVARIANT)
@on("create-reassignment")
def _record_is_right(values: Values, after: Any) -> Truth:
    """The first record holds the length of the assignment, and that reaches the minimum."""
    flight, least = after.reassignment, values["minimum"]
    return (flight.top == len(values["assigned"])) & (flight.top >= least)


@about(
    STEP_AS_WRITTEN,
    "as-written-step-records-sufficient-target",
    "target.at-least-min-isr",
    finding="drop-10",
    cure=_PROFILE,
)
@says("Without the amendments a target that is recorded reaches the minimum.")
@given(INVARIANT)
@about(STEP, "step-records-sufficient-target", "target.at-least-min-isr")
@shaped(INVARIANT)
def _target_sufficient(values: Values, after: Any) -> Truth:
    """A target that is recorded reaches the minimum."""
    if after is None or "new_target" not in values:
        return True
    return len(after.reassignment.target) >= values["minimum"]


@about(STEP, "step-keeps-top", "top.once-per-chain")
@shaped(INVARIANT)
def _top_kept(values: Values, after: Any) -> Truth:
    """No step changes top while a chain lasts."""
    if after is None or values["write"] == "delete-reassignment" or "top" not in values:
        return True
    return after.reassignment.top == values["top"]


@about(COMPLETION, "completion-keeps-order", "complete.target-order")
@given(NO_DROP_DUE)
@shaped(INVARIANT, READY)
def _completion_keeps_order(values: Values, after: Any) -> Truth:
    """Where no drop is due and old replicas leave, the target is written in its order."""
    if after is None:
        return True
    left = any_of(negate(member(r, after.assigned)) for r in values["assigned"])
    return implies(left, same(after.assigned, values["target"]))


@about(OWED, "owed-is-accepted", LEMMA)
@given(INVARIANT)
def _owed_accepted(_: Values, result: Any) -> Truth:
    """Whatever the controller owes, the rules accept."""
    return result[0]


@about(PLAN, "plan-comes-to-rest", LEMMA)
@says(
    "From any state the controller comes to rest, still in the invariant, and no write on the "
    "way is refused."
)
@given(INVARIANT)
def _plan_rests(values: Values, result: Any) -> Truth:
    _, after, rests = result
    return rests & holds_invariant(after, values)


@about(PLAN, "plan-leaves-no-dead", "isr.remove.dead")
@given(INVARIANT)
def _no_dead_in_sync(values: Values, result: Any) -> Truth:
    """Where a controller rests and a live replica leads, nobody dead is in sync."""
    state = result[1].state
    led = (state.leader != NO_LEADER) & inside(state.leader, values["live"])
    return implies(led, all_of(inside(replica, values["live"]) for replica in state.isr))


@about(PLAN, "plan-elects-if-possible", "election.held")
@given(INVARIANT)
def _led_if_possible(values: Values, result: Any) -> Truth:
    """Where a controller rests, a live replica leads or no in-sync replica is alive."""
    state = result[1].state
    led = (state.leader != NO_LEADER) & inside(state.leader, values["live"])
    return led | all_of(negate(inside(replica, values["live"])) for replica in state.isr)


@about(PLAN, "plan-is-short", LEMMA)
@given(INVARIANT)
def _plan_is_short(values: Values, result: Any) -> Truth:
    """The number of writes that a partition can owe is bounded."""
    return result[0] <= plan_length_max(values)


@about(
    RESUMED_AS_WRITTEN,
    "as-written-failover-ends-alike",
    "drop.protect-target",
    finding="drop-4",
    cure=_PROFILE,
)
@says(
    "Without the amendments, with every broker alive, a plan cut anywhere and resumed by "
    "another controller ends with the same reassignments and requests, and with no replica "
    "fewer."
)
@given(INVARIANT, DROP_FOLLOWED, EVERYBODY_LIVE)
@about(RESUMED, "failover-ends-alike", "drop.carried-out")
@says(
    "A plan cut anywhere and resumed by another controller ends with the same reassignments "
    "and requests, and with no replica fewer."
)
@given(INVARIANT, DROP_FOLLOWED)
def _ends_alike(_: Values, result: Any) -> Truth:
    """Say whether each resumed run ends as the plain one, but for a drop that left no trace.

    A drop that was due and not begun, with the whole target assigned, cannot be seen by the next
    controller. It keeps more replicas then until the end, never fewer.
    """
    final, resumed = result
    return all_of(
        (each.reassignment == final.reassignment)
        and (each.requests == final.requests)
        and subset(final.assigned, each.assigned)
        for each in resumed
    )


@about(CAUGHT_UP, "reassignment-completes", "complete.carried-out")
@says(
    "Once every broker is alive and the target has caught up, a reassignment in flight "
    "completes: the target, in its order, is assigned and in sync."
)
@given(INVARIANT, EVERYBODY_LIVE)
def _completed(values: Values, after: Any) -> Truth:
    target = values["target"]
    if after.reassignment is not None or len(after.assigned) != len(target):
        return False
    return (
        same(after.assigned, target)
        & subset(after.state.isr, target)
        & subset(target, after.state.isr)
    )
