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

# ruff: noqa: D205, D401  # the docstring of a claim is what it claims

from collections.abc import Callable
from functools import partial, wraps
from itertools import product
from typing import Any, Final

from reassure_model.partition import (
    Partition,
)
from reassure_model.protocols.kip_236.system import make_system
from reassure_model.state_machines import PARTITION_TABLES, PartitionState
from reassure_proofs.engine.formula import (
    Truth,
    absent,
    alike,
    all_of,
    any_of,
    implies,
    inside,
    member,
    negate,
    same,
    subset,
)
from reassure_proofs.engine.statement import (
    LEMMA,
    Claim,
    Claims,
    Parameter,
    Values,
    given,
    ids,
    make_subject,
    says,
    shaped,
    word,
)
from reassure_proofs.protocols.kip_236 import invariant
from reassure_proofs.protocols.kip_236 import partition_steps as steps
from reassure_proofs.protocols.kip_236.invariant import (
    ASSIGNED_WELL_FORMED,
    BEGUN,
    DROP_FOLLOWED,
    EVERYBODY_LIVE,
    INVARIANT,
    NO_DROP_DUE,
    READY,
    holds_invariant,
)
from reassure_proofs.protocols.kip_236.partition_steps import PROFILE, make_partition
from reassure_proofs.protocols.kip_236.plantings import IN_MEMORY, show_in_flight
from reassure_spec.znodes import NO_LEADER

_BOUNDED: Final = "1 to {} replicas assigned, in sync, in a target and in a write"
_CUT: Final = _BOUNDED + ", not all of them at their largest at once"
_ONE_STEP: Final = (
    f"{steps.ANY_SIZE}{_BOUNDED}, {steps.LENGTHS_MAX} in all lists together (thorough: "
    f"{steps.LENGTHS_MAX_THOROUGH}); no ordinary act is asked for"
)
_WRITTEN_MAX: Final = 5
"""How long all lists together may be for the rules as written."""
_A_WRITE: Final = "it is a write that the rules judge; no controller makes it of its own accord"
_amended: Final = partial(make_subject, profile=PROFILE, hashable=True)
_as_written: Final = partial(make_subject, profile="kip-236", hashable=True)

# What the theorems are about --------------------------------------------------------------------

STEP: Final = _amended(
    *("step", steps.take, "the rules on one step", steps.shape_steps),
    bounded=_ONE_STEP,
    shown=_A_WRITE,
    needs=1,
)
"""One step of any kind: a write that the rules judge, or a failover."""
STEP_AS_WRITTEN: Final = _as_written(
    "step-as-written",
    steps.take,
    "the rules as written on one step",
    lambda n: (shape for shape in steps.shape_steps(n) if _length(shape) <= _WRITTEN_MAX),
    bounded=f"{steps.ANY_SIZE}{_BOUNDED}, {_WRITTEN_MAX} in all lists together; no ordinary act is "
    "asked for",
    shown=_A_WRITE,
)
"""The same without the amendments, with shorter lists."""
OWED: Final = _amended(
    *("owed", steps.take_owed, "the rules on what is owed", steps.shape_owed),
    bounded=_CUT,
    weight=2,
    shown="the model's own controller halts there: its write is refused",
)
"""The next write that the controller owes, put to the rules."""
PLAN: Final = _amended(
    *("plan", steps.carry_out, "the controller's plan", steps.shape_plan),
    bounded=_CUT,
    weight=4,
    shown="the state names a controller epoch that is still to come, or makes the model halt",
)
"""All that the controller owes, carried out."""
RESUMED: Final = _amended(
    *("resumed", steps.crash_and_resume, "the plan cut and resumed", steps.shape_cut),
    bounded=_CUT,
    weight=10,
    shown=IN_MEMORY,
)
"""The plan cut at each point and resumed by another controller."""
RESUMED_AS_WRITTEN: Final = _as_written(
    "resumed-as-written",
    steps.crash_and_resume,
    "the plan cut and resumed under the rules as written",
    lambda _: iter([steps.shape_partition(2, 2, 1)]),
    bounded="2 replicas assigned and in sync, one in a target",
)
"""The same without the amendments, where a target replica is in sync and can be dropped."""
CAUGHT_UP: Final = _amended(
    "caught-up",
    steps.catch_up,
    "the plan before and after the target caught up",
    steps.shape_in_flight,
    bounded=_BOUNDED + " (of 3, not all of them at their largest at once)",
    weight=3,
    shown=show_in_flight,
)
"""What becomes of a reassignment once its whole target is in sync."""
COMPLETION: Final = _amended(
    "completion",
    steps.take,
    "the rules on the last write of the assignment",
    lambda _: iter(
        [
            {
                "write": word("write-assigned"),
                **steps.shape_partition(3, 2, 2),
                "new_assigned": ids(2),
            }
        ]
    ),
    bounded="3 replicas assigned, 2 of them the target and in sync",
    shown=_A_WRITE,
)
"""A completion that has something to put in order."""
STOP_AS_WRITTEN: Final = _as_written(
    "stop-as-written",
    steps.take,
    "the rules as written on the stop of old replicas",
    lambda _: iter(
        [{"write": word("write-state"), **steps.shape_partition(2, 2, 2), **steps.shape_state(1)}]
    ),
    bounded="2 replicas assigned, in sync and in a target, one of them left in sync",
)
"""The write that takes old replicas out of the in-sync set, without a second look at it."""
INITIAL: Final = make_subject(
    "initial",
    lambda v: make_system(v["assigned"], ()).partition,
    "a partition that nothing has happened to",
    lambda n: ({"assigned": ids(k), "acting_epoch": Parameter()} for k in range(1, n + 1)),
    shown="it is about a partition before any controller has looked at it",
)
"""Where every history begins."""


def _length(shape: Any) -> int:
    return sum(parameter.length or 0 for parameter in shape.values())


# Claims -----------------------------------------------------------------------------------------


def on(*kinds: str) -> Callable[[Claim], Claim]:
    """Return a claim about accepted steps of some kinds, which says nothing of others."""

    def state(claim: Claim) -> Claim:
        @wraps(claim)
        def stated(values: Values, after: Any) -> Truth:
            return after is None or values["write"] not in kinds or claim(values, after)

        return stated

    return state


def _keeps(part: Callable[[Partition, Values], Truth]) -> Claim:
    return lambda values, after: after is None or part(after, values)


def _partition_states(partition: Partition) -> dict[PartitionState, Truth]:
    """Return in which state of its machine a partition is, each with whether it is."""
    if partition.state is None:
        return {PartitionState.NEW: True}
    offline = partition.state.leader == NO_LEADER
    return {PartitionState.ONLINE: negate(offline), PartitionState.OFFLINE: offline}


def _is_led(values: Values, state: Any) -> Truth:
    return (state.leader != NO_LEADER) & inside(state.leader, values["live"])


def plan_length_max(values: Values) -> int:
    """Return how many writes a partition can owe at most at one time.

    One each for an election, the dead, the drop from the in-sync set, the drop, the expansion, the
    announcement, the move, the announced completion, the target and the record; one for each
    in-sync replica that leaves; and for a request its record, what follows from it, and its
    removal.
    """
    return 10 + len(values["isr"]) + (8 + len(values["isr"]) if "requested" in values else 0)


_KEPT: Final[dict[Callable[[Partition, Values], Truth], tuple[str, str]]] = {
    invariant.leader_in_isr: ("leader.in-isr", "leaves a leader, if any, that is in sync"),
    invariant.isr_not_empty: ("isr.never-empty", "leaves a replica in sync"),
    invariant.isr_distinct: ("isr.no-duplicates", "puts a replica in sync once only"),
    invariant.isr_assigned: ("isr.within-assigned", "leaves every in-sync replica assigned"),
    invariant.leader_assigned: ("leader.assigned", "leaves the leader assigned"),
    invariant.assigned_well_formed: (
        "assigned.no-duplicates",
        "assigns a replica once only, and at least one",
    ),
    invariant.bounds_assigned: (
        "top.bounds-assigned",
        "leaves at most top and the target assigned, or a drop due",
    ),
    invariant.epochs_in_order: (
        "state.controller-epoch-stamped",
        "carries no epoch of a controller that is still to come",
    ),
    holds_invariant: (LEMMA, "leads out of the invariant by no way at all"),
}
"""What a step keeps, by the clause that asks for it and in words."""

# Theorems ---------------------------------------------------------------------------------------

THEOREMS: Final = Claims(PROFILE, largest=2, thorough=3, tier="full")
"""Every theorem about the protocol."""
about = THEOREMS.about


@about(INITIAL, "protocol-starts-in-invariant", LEMMA)
@given(ASSIGNED_WELL_FORMED)
def _protocol_starts_in_invariant(values: Values, partition: Any) -> Truth:
    """A partition that nothing has happened to satisfies the invariant."""
    return holds_invariant(partition, values)


for _part, (_clause, _words) in _KEPT.items():
    _name = _part.__name__.removeprefix("holds_").replace("_", "-")
    _kept = given(INVARIANT)(_keeps(_part))
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
    table, before = PARTITION_TABLES[PROFILE], _partition_states(make_partition(values))
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
    cure=PROFILE,
)
@says("Without the amendments no write of the assignment takes a replica of the target out.")
@given(INVARIANT)
@about(STEP, "step-keeps-target", "drop.protect-target")
@shaped(INVARIANT)
@on("write-assigned")
def _target_kept(values: Values, after: Any) -> Truth:
    """No write of the assignment takes a replica of the target out of it."""
    return all_of(
        negate(absent(replica, after.assigned) & member(replica, values["target"]))
        for replica in values["assigned"]
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
    nobody_died = all_of(
        member(replica, left) | inside(replica, values["live"]) for replica in values["isr"]
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
    assigned, isr, target = values["assigned"], values["isr"], values["target"]
    return (len(assigned) == len(target)) & subset(assigned, target) & subset(isr, target)


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
    cure=PROFILE,
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
    left = any_of(absent(r, after.assigned) for r in values["assigned"])
    return implies(left, same(after.assigned, values["target"]))


@about(OWED, "owed-is-accepted", LEMMA)
@given(INVARIANT)
def _owed_accepted(_: Values, result: Any) -> Truth:
    """Whatever the controller owes, the rules accept."""
    return result[0]


@about(PLAN, "plan-comes-to-rest", LEMMA)
@given(INVARIANT)
def _plan_rests(values: Values, result: Any) -> Truth:
    """From any state the controller comes to rest, still in the invariant, and no write on the
    way is refused.
    """
    _, after, rests = result
    return rests & holds_invariant(after, values)


@about(PLAN, "plan-leaves-no-dead", "isr.remove.dead")
@given(INVARIANT)
def _no_dead_in_sync(values: Values, result: Any) -> Truth:
    """Where a controller rests and a live replica leads, nobody dead is in sync."""
    state, live = result[1].state, values["live"]
    return implies(_is_led(values, state), all_of(inside(r, live) for r in state.isr))


@about(PLAN, "plan-elects-if-possible", "election.held")
@given(INVARIANT)
def _led_if_possible(values: Values, result: Any) -> Truth:
    """Where a controller rests, a live replica leads or no in-sync replica is alive."""
    state, live = result[1].state, values["live"]
    return _is_led(values, state) | all_of(negate(inside(r, live)) for r in state.isr)


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
    cure=PROFILE,
)
@says(
    "Without the amendments, with every broker alive, a plan cut anywhere and resumed by "
    "another controller ends with the same reassignments and requests, and with no replica "
    "fewer."
)
@given(INVARIANT, DROP_FOLLOWED, EVERYBODY_LIVE)
@about(RESUMED, "failover-ends-alike", "drop.carried-out")
@given(INVARIANT, DROP_FOLLOWED)
def _ends_alike(_: Values, result: Any) -> Truth:
    """A plan cut anywhere and resumed by another controller ends with the same reassignments
    and requests, and with no replica fewer.

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
@given(INVARIANT, EVERYBODY_LIVE)
def _completed(values: Values, after: Any) -> Truth:
    """Once every broker is alive and the target has caught up, a reassignment in flight
    completes: the target, in its order, is assigned and in sync.
    """
    target = values["target"]
    if after.reassignment is not None or len(after.assigned) != len(target):
        return False
    return same(after.assigned, target) & alike(after.state.isr, target)
