"""What each kind of write may do, told without the rules: as formulas over before and after.

The invariant (`kip_236.invariant`) says what no write may lead to. Here stands what a write
that the rules accept has to be: who may leave, who may join, who may lead, which request comes
first and when one may go. A rule that is left out, or that looks at a part of the lists only,
refutes one of these.
"""

# ruff: noqa: D205, D401  # the docstring of a claim is what it claims

from typing import Any, Final

from reassure_proofs.engine.formula import (
    Truth,
    absent,
    alike,
    all_of,
    any_of,
    comes_first,
    count,
    distinct,
    implies,
    inside,
    member,
    negate,
    same,
    subset,
)
from reassure_proofs.engine.statement import Claims, Values, given
from reassure_proofs.protocols.kip_236.invariant import INVARIANT
from reassure_proofs.protocols.kip_236.protocol import STEP, on
from reassure_spec.znodes import NO_LEADER


def _is_led(values: Values) -> Truth:
    return (values["leader"] != NO_LEADER) & inside(values["leader"], values["live"])


def _may_complete(values: Values) -> Truth:
    return subset(values["target"], values["isr"]) if "target" in values else False


def _first_live_in_sync(replica: Any, among: Any, values: Values) -> Truth:
    isr, live = values["isr"], values["live"]
    return comes_first(replica, among, lambda each: member(each, isr) & inside(each, live))


def _is_refused(values: Values) -> Truth:
    """Say whether a request has to be refused, in the words of the documents."""
    asked, least = values["requested"], values["minimum"]
    senseless = negate(distinct(asked)) | any_of(replica < 0 for replica in asked)
    unknown = any_of(negate(inside(replica, values["known"])) for replica in asked)
    # `target.size` as the amended profile has it.
    short = len(asked) < least
    few = False if "target" in values else len(values["assigned"]) < least
    return senseless | unknown | short | few


THEOREMS: Final = Claims(largest=2, thorough=3, tier="full", shape=(INVARIANT,))
"""Every theorem about single steps that is no part of the invariant: the rules see to it in
whatever state, so that the invariant only spares paths."""
about = THEOREMS.about


@about(STEP, "step-isr-change-by-leader", "isr.change.by-leader")
@on("change-isr")
def _by_leader(values: Values, after: Any) -> Truth:
    """A leader's change of the in-sync set is its own, and leaves leader and epochs alone."""
    state = after.state
    kept = (state.leader == values["leader"]) & (state.leader_epoch == values["leader_epoch"])
    stamped = state.controller_epoch == values["controller_epoch"]
    return (values["writer"] == values["leader"]) & kept & stamped


@about(STEP, "step-joins-live-assigned", "isr.change.live-only")
@on("change-isr")
def _joins_live_assigned(values: Values, after: Any) -> Truth:
    """Everybody that a leader takes into the in-sync set is alive and assigned."""
    return all_of(
        member(replica, values["isr"])
        | (inside(replica, values["live"]) & member(replica, values["assigned"]))
        for replica in after.state.isr
    )


@about(STEP, "step-new-begins-at-zero", "partition.new.epoch-zero")
@on("create-state")
def _new_begins_at_zero(values: Values, after: Any) -> Truth:
    """A new partition begins with leader epoch 0."""
    return after.state.leader_epoch == 0


@about(STEP, "step-nobody-joins-by-controller", "state.write-conditional")
@on("write-state")
def _nobody_joins(values: Values, after: Any) -> Truth:
    """A controller's write of the state takes nobody into the in-sync set."""
    return subset(after.state.isr, values["isr"])


@about(STEP, "step-leaves-with-reason", "isr.remove.only-when-due")
@on("write-state")
def _leaves_with_reason(values: Values, after: Any) -> Truth:
    """Whoever leaves the in-sync set alive is old and the whole target in sync with one of it
    leading, or a drop is due and it does not lead.
    """
    target, due = values.get("target", ()), values.get("drop_due", False)
    may_stop = member(after.state.leader, target) & _may_complete(values)
    return all_of(
        member(replica, after.state.isr)
        | negate(inside(replica, values["live"]))
        | (absent(replica, target) & may_stop)
        | ((replica != values["leader"]) & due)
        for replica in values["isr"]
    )


@about(STEP, "step-moves-leader-to-first-target", "complete.leader-first-in-sync-target")
@on("write-state")
def _leader_moves_to_first_target(values: Values, after: Any) -> Truth:
    """A live leader gives way only from outside a target that is in sync, to the first live replica
    of it.
    """
    new = after.state.leader
    moved = _is_led(values) & (new != values["leader"])
    if "target" not in values:
        return negate(moved)
    target = values["target"]
    outside = _may_complete(values) & absent(values["leader"], target)
    return implies(moved, outside & _first_live_in_sync(new, target, values))


@about(STEP, "step-follows-dead-leader-in-order", "election.assignment-order")
@on("write-state")
def _dead_leader_is_followed_in_order(values: Values, after: Any) -> Truth:
    """A leader that is gone is followed by the first live in-sync replica of the assignment, or of
    a target that is in sync.
    """
    new = after.state.leader
    elected = negate(_is_led(values)) & (new != values["leader"]) & (new != NO_LEADER)
    orders = _first_live_in_sync(new, values["assigned"], values)
    if "target" in values:
        orders = orders | (
            _may_complete(values) & _first_live_in_sync(new, values["target"], values)
        )
    return implies(elected, orders)


@about(STEP, "step-completes-in-order", "complete.target-order")
@on("write-assigned")
def _completes_in_order(values: Values, after: Any) -> Truth:
    """With no drop due replicas leave the assignment only for the target in its order, once exactly
    it is in sync, one of it leads and the epoch was raised.
    """
    target, isr = values["target"], values["isr"]
    ready = alike(target, isr) & member(values["leader"], target)
    done = ready & values["completing"] & same(after.assigned, target)
    left = any_of(absent(replica, after.assigned) for replica in values["assigned"])
    return implies(left & negate(values["drop_due"]), done)


@about(STEP, "step-leaves-isr-first", "complete.isr-before-assigned")
@on("write-assigned")
def _leaves_isr_first(values: Values, after: Any) -> Truth:
    """Nobody leaves the assignment that is in sync."""
    return all_of(
        member(replica, after.assigned) | absent(replica, values["isr"])
        for replica in values["assigned"]
    )


@about(STEP, "step-joins-whole-target", "expand.whole-target")
@on("write-assigned")
def _joins_whole_target(values: Values, after: Any) -> Truth:
    """Only replicas of the target join the assignment, and the whole of it at once."""
    target, assigned = values["target"], values["assigned"]
    only = all_of(member(r, assigned) | member(r, target) for r in after.assigned)
    return only & (subset(after.assigned, assigned) | subset(target, after.assigned))


@about(STEP, "step-drops-all-or-nothing", "drop.before-expansion", shape=())
@given(INVARIANT)
@on("write-assigned")
def _drops_all_or_nothing(values: Values, after: Any) -> Truth:
    """After a drop or an expansion at most top replicas are assigned beside the target, or the drop
    is due still.
    """
    beside = count(absent(r, values["target"]) for r in after.assigned)
    return after.drop_due | (beside <= values["top"])


@about(STEP, "step-records-first-request", "request.order.sequence")
@on("create-reassignment")
def _records_first_request(values: Values, after: Any) -> Truth:
    """The first record of a chain is what the lowest request asks for."""
    return same(after.reassignment.target, values["requested"])


@about(STEP, "step-changes-to-first-request", "request.order.sequence")
@on("update-reassignment")
def _changes_to_first_request(values: Values, after: Any) -> Truth:
    """A record in flight changes to what the lowest request asks for."""
    return same(after.reassignment.target, values["requested"])


@about(STEP, "step-change-makes-drop-due", "drop.carried-out")
@on("update-reassignment")
def _change_makes_drop_due(values: Values, after: Any) -> Truth:
    """Every change of a record makes a drop due and ends a completion that had begun."""
    return after.drop_due & negate(after.completing)


@about(STEP, "step-first-record-drops-nothing", "drop.keep-top")
@on("create-reassignment")
def _first_record_makes_no_drop_due(values: Values, after: Any) -> Truth:
    """The first record of a chain makes no drop due."""
    return negate(after.drop_due) & negate(after.completing)


@about(STEP, "step-removes-request-dealt-with", "request.delete.child-first")
@on("delete-request")
def _removes_first_dealt_with(values: Values, after: Any) -> Truth:
    """Only the lowest request goes, and only where what it asks for is recorded or there already,
    or it has to be refused.
    """
    there = values["target"] if "target" in values else values["assigned"]
    rest = 1 if "requested_next" in values else 0
    first = (values["removed"] == values["sequence"]) & (len(after.requests) == rest)
    return first & (same(there, values["requested"]) | _is_refused(values))


@about(STEP, "step-removal-changes-nothing-else", "request.consumed")
@on("delete-request")
def _removal_changes_nothing_else(values: Values, after: Any) -> Truth:
    """The removal of a request changes nothing but the list of requests."""
    flight = after.reassignment
    alike = same(after.assigned, values["assigned"]) & same(after.state.isr, values["isr"])
    if "target" not in values:
        return alike & (flight is None)
    return alike & same(flight.target, values["target"]) & (after.drop_due == values["drop_due"])


@about(STEP, "step-failover-forgets", "drop.carried-out")
@on("failover")
def _failover_forgets(values: Values, after: Any) -> Truth:
    """A failover leaves what is stored, begins a completion anew, and finds a drop due where more
    than top are assigned and the target is not.
    """
    flight = after.reassignment
    kept = (
        same(after.assigned, values["assigned"])
        & same(after.state.isr, values["isr"])
        & same(flight.target, values["target"])
        & (after.state.leader == values["leader"])
        & (flight.top == values["top"])
    )
    many = values["top"] + 1 <= len(values["assigned"])
    visible = many & negate(subset(values["target"], values["assigned"]))
    return kept & negate(after.completing) & implies(visible, after.drop_due)
