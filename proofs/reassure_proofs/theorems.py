"""The theorems: what is claimed of the model's functions, under which hypotheses, up to where.

A theorem is a claim about a *subject*, a function of the model together with the shapes of its
arguments. Only lengths are bounded; replica ids, `top`, the minimum, offsets, lags and times are
any integers at all. What is expected of each theorem is recorded: some are expected to be
refuted, because they state a promise under a reading that cannot keep it. Such a refutation is a
finding about the document, and it would be news if it went away.

Nothing here needs the solver, so that the matrix of clauses can list the theorems for nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, Final

from reassure_model.kafka_4485.insync import compute_high_watermark, compute_isr, compute_pseudo_isr
from reassure_model.kip_236.drop import compute_drop
from reassure_proofs.act_theorems import ACT_THEOREMS
from reassure_proofs.contracts import (
    CONTRACT_THEOREMS,
    claim_amended_contract,
    claim_contract,
)
from reassure_proofs.elections import ELECTION_THEOREMS
from reassure_proofs.formula import (
    Truth,
    all_of,
    any_of,
    count,
    distinct,
    implies,
    member,
    negate,
    remaining,
    subset,
)
from reassure_proofs.lag import LAG_THEOREMS
from reassure_proofs.offices import OFFICE_THEOREMS
from reassure_proofs.protocol import PROTOCOL_THEOREMS
from reassure_proofs.refutations import REFUTATIONS, tell_drop
from reassure_proofs.replicas import REPLICA_THEOREMS
from reassure_proofs.selfhealing import HEALING_THEOREMS
from reassure_proofs.statement import (
    Function,
    Hypothesis,
    Parameter,
    Shape,
    Subject,
    Telling,
    Theorem,
    Unread,
    Values,
    make_subject,
)
from reassure_proofs.step_theorems import STEP_THEOREMS
from reassure_spec.errors import BadUsage
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER

# Subjects: the drop rule.


def _drop_shapes(replication_factor: int) -> Iterator[Shape]:
    # The in-sync set may be empty or larger than the assignment: only hypotheses exclude that, so
    # that leaving one out shows whether it is needed.
    for assigned in range(1, replication_factor + 1):
        for isr in range(replication_factor + 1):
            yield {
                "assigned": Parameter(assigned, floor=1),
                "isr": Parameter(isr, floor=1),
                "leader": Parameter(floor=1),
                "top": Parameter(),
                "minimum": Parameter(floor=1),
            }


def _drop_and_target_shapes(replication_factor: int) -> Iterator[Shape]:
    for shape in _drop_shapes(replication_factor):
        for target in range(1, replication_factor + 1):
            yield {**shape, "target": Parameter(target, floor=1)}


def _drop_any_order_shapes(replication_factor: int) -> Iterator[Shape]:
    for shape in _drop_shapes(replication_factor):
        out_of_sync = (shape["assigned"].length or 0) - (shape["isr"].length or 0)
        if out_of_sync >= 0:
            yield {**shape, "others": Parameter(out_of_sync, floor=1)}


def drop_function(readings: Readings, rule: Callable[..., Any] = compute_drop) -> Function:
    """Return the drop rule under these readings as a function of named values.

    Where the values have no target the rule must not look at it. `rule` is there for tests, which
    put a rule with a planted fault in its place.
    """

    def function(values: Values) -> object:
        target = values.get("target", Unread("target"))
        arguments = (values["assigned"], values["leader"], values["isr"], values["top"])
        if "others" in values:
            return rule(*arguments, target, readings, values["others"])
        return rule(*arguments, target, readings)

    return function


DROP: Final = make_subject(
    "drop", drop_function, "the drop rule", _drop_shapes, "kip-236", tell=tell_drop
)
"""The drop rule as written, in the reading that keeps what the document promises."""
DROP_EXCLUSIVE: Final = make_subject(
    "drop-exclusive",
    drop_function,
    "the drop rule with the exclusive slice",
    _drop_shapes,
    "kip-236",
    ("drop.slice=exclusive",),
    tell=lambda v: tell_drop(v, "drop.slice=exclusive"),
)
"""The drop rule with the slice taken to the letter."""
DROP_AMENDED: Final = make_subject(
    "drop-amended",
    drop_function,
    "the amended drop rule",
    _drop_and_target_shapes,
    "kip-236-amended",
)
"""The drop rule with every amendment."""

DROP_ANY_ORDER: Final = make_subject(
    "drop-any-order", drop_function, "the drop rule", _drop_any_order_shapes, "kip-236"
)
"""The drop rule with the replicas that are out of sync in an order that is given."""
DROP_AND_TARGET: Final = make_subject(
    "drop-target",
    drop_function,
    "the drop rule",
    _drop_and_target_shapes,
    "kip-236",
    tell=tell_drop,
)
"""The drop rule as written, and the target that it does not look at."""


def drop_twice(readings: Readings) -> Function:
    """Return the drop rule asked of an in-sync set as stored, and of the same set reversed."""
    function = drop_function(readings)
    return lambda v: (function(v), function({**v, "isr": v["isr"][::-1]}))


DROP_TWICE: Final = make_subject(
    "drop-twice",
    drop_twice,
    "the drop rule, with the in-sync set as stored and reversed,",
    _drop_shapes,
    "kip-236",
    tell=lambda v: Telling(
        (*tell_drop(v).commands, tell_drop({**v, "isr": v["isr"][::-1]}).commands[1])
    ),
)
"""The drop rule as written on two orders of the same in-sync set."""

ASSIGNED_DISTINCT: Final = Hypothesis(
    "assigned-distinct",
    "no replica is assigned twice",
    lambda v: distinct(v["assigned"]),
)
ISR_DISTINCT: Final = Hypothesis(
    "isr-distinct",
    "no replica is in the in-sync set twice",
    lambda v: distinct(v["isr"]),
)
ISR_ASSIGNED: Final = Hypothesis(
    "isr-assigned",
    "every in-sync replica is assigned",
    lambda v: subset(v["isr"], v["assigned"]),
)
LEADER_IN_SYNC: Final = Hypothesis(
    "leader-in-sync",
    "the leader is in the in-sync set",
    lambda v: member(v["leader"], v["isr"]),
)
LEADER_IS_BROKER: Final = Hypothesis(
    "leader-is-broker",
    "the leader is a broker",
    lambda v: v["leader"] != NO_LEADER,
)
TARGET_DISTINCT: Final = Hypothesis(
    "target-distinct",
    "no replica is in the target twice",
    lambda v: distinct(v["target"]),
)
TOP_POSITIVE: Final = Hypothesis(
    "top-positive",
    "top is at least 1",
    lambda v: v["top"] >= 1,
)
TOP_AT_LEAST_MIN: Final = Hypothesis(
    "top-at-least-min",
    "top is at least min.insync.replicas when the drop is computed",
    lambda v: v["top"] >= v["minimum"],
)
ISR_AT_LEAST_MIN: Final = Hypothesis(
    "isr-at-least-min",
    "the in-sync set has min.insync.replicas members before the drop",
    lambda v: v["minimum"] <= len(v["isr"]),
)
FIRST_REQUEST: Final = Hypothesis(
    "first-request",
    "no more replicas are assigned than top, as at the first request of a chain",
    lambda v: v["top"] >= len(v["assigned"]),
)

OTHERS_OUT_OF_SYNC: Final = Hypothesis(
    "others-out-of-sync",
    "the order given names every replica that is assigned and out of sync, once",
    lambda v: (
        distinct(v["others"])
        & subset(v["others"], v["assigned"])
        & all_of(negate(member(replica, v["isr"])) for replica in v["others"])
    ),
)
NO_LEADER_AT_HAND: Final = Hypothesis(
    "no-leader",
    "the partition has no leader",
    lambda v: v["leader"] == NO_LEADER,
)
NO_LEADER_IN_SYNC: Final = Hypothesis(
    "no-leader-in-sync",
    "the partition has no leader, or the leader is not in the in-sync set",
    lambda v: (v["leader"] == NO_LEADER) | negate(member(v["leader"], v["isr"])),
)
ISR_NOT_EMPTY: Final = Hypothesis(
    "isr-not-empty",
    "a replica is in sync",
    lambda v: len(v["isr"]) > 0,
)

_WELL_FORMED: Final = (ASSIGNED_DISTINCT, ISR_DISTINCT, ISR_ASSIGNED, LEADER_IN_SYNC, TOP_POSITIVE)
_WITHOUT_LEADER: Final = (
    ASSIGNED_DISTINCT,
    ISR_DISTINCT,
    ISR_ASSIGNED,
    ISR_NOT_EMPTY,
    NO_LEADER_AT_HAND,
    TOP_POSITIVE,
)
_SUFFICIENT: Final = (*_WELL_FORMED, TOP_AT_LEAST_MIN, ISR_AT_LEAST_MIN)


def _leader_kept(values: Values, drop: Any) -> Truth:
    return negate(member(values["leader"], drop))


def _leader_stays_in_sync(values: Values, drop: Any) -> Truth:
    return member(values["leader"], values["isr"]) & _leader_kept(values, drop)


def _isr_sufficient(values: Values, drop: Any) -> Truth:
    return remaining(values["isr"], drop) >= values["minimum"]


def _assigned_isr_sufficient(values: Values, drop: Any) -> Truth:
    isr = values["isr"]
    kept = count(
        member(replica, values["assigned"])
        & negate(member(replica, drop))
        & negate(member(replica, isr[:place]))
        for place, replica in enumerate(isr)
    )
    return kept >= values["minimum"]


def _size_is_top(values: Values, drop: Any) -> Truth:
    before, top = len(values["assigned"]), values["top"]
    after = before - len(drop)
    return implies(top >= before, after == before) & implies(top <= before, top == after)


def _in_sync_copy_kept(values: Values, drop: Any) -> Truth:
    return remaining(values["isr"], drop) > 0


def _target_in_sync_kept(values: Values, drop: Any) -> Truth:
    return all_of(
        negate(member(replica, values["target"]) & member(replica, values["isr"]))
        for replica in drop
    )


def _in_sync_before_others(values: Values, drop: Any) -> Truth:
    isr, assigned = values["isr"], values["assigned"]
    in_sync_dropped = any_of(member(replica, isr) for replica in drop)
    others_dropped = all_of(member(replica, isr) | member(replica, drop) for replica in assigned)
    return implies(in_sync_dropped, others_dropped)


def _nothing_dropped(_: Values, drop: Any) -> Truth:
    return len(drop) == 0


def _target_kept(values: Values, drop: Any) -> Truth:
    return all_of(negate(member(replica, values["target"])) for replica in drop)


def _originals_kept(values: Values, drop: Any) -> Truth:
    is_cancel = (values["top"] == len(values["target"])) & subset(
        values["target"], values["assigned"]
    )
    return implies(is_cancel, _target_kept(values, drop))


def _copies_kept(values: Values, drop: Any) -> Truth:
    """Say that a drop after the expansion takes no target replica that is still copying."""
    expanded = subset(values["target"], values["assigned"])
    return implies(
        expanded,
        all_of(
            member(replica, values["isr"]) | negate(member(replica, values["target"]))
            for replica in drop
        ),
    )


def _redundancy_kept(values: Values, drop: Any) -> Truth:
    before, wanted = len(values["isr"]), len(values["target"])
    after = remaining(values["isr"], drop)
    return (before <= after) | (wanted <= after)


def _same_in_any_order(values: Values, drops: Any) -> Truth:
    return subset(drops[0], drops[1])


_DROP_THEOREMS: Final = (
    Theorem(
        "drop-meets-contract",
        "drop.keep-top",
        "The numbers that a drop leaves, in sync and otherwise, are those of the contract.",
        DROP,
        (ASSIGNED_DISTINCT, ISR_ASSIGNED, LEADER_IN_SYNC, TOP_POSITIVE, ISR_DISTINCT),
        claim_contract,
        "kip-236",
    ),
    Theorem(
        "drop-amended-meets-contract",
        "drop.protect-target",
        "The numbers that the amended drop leaves are those of its contract.",
        DROP_AMENDED,
        (
            LEADER_IS_BROKER,
            LEADER_IN_SYNC,
            ISR_ASSIGNED,
            ISR_DISTINCT,
            ASSIGNED_DISTINCT,
            TOP_POSITIVE,
        ),
        claim_amended_contract,
        "kip-236-amended",
        largest=3,
    ),
    Theorem(
        "drop-exclusive-nothing-at-first-request",
        "drop.slice.inclusive",
        "With the exclusive slice, nothing is dropped at a first request.",
        DROP_EXCLUSIVE,
        (*_SUFFICIENT, FIRST_REQUEST),
        _nothing_dropped,
        "kip-236",
        expected="refuted",
        finding="drop-2",
    ),
    Theorem(
        "drop-after-expansion-keeps-copies",
        "drop.before-expansion",
        "Evaluated after the expansion, a drop takes no replica of the target that is copying.",
        DROP_AND_TARGET,
        _SUFFICIENT,
        _copies_kept,
        "kip-236",
        expected="refuted",
        finding="drop-3",
    ),
    Theorem(
        "drop-cancel-keeps-originals",
        "drop.protect-target",
        "As written, a change back to an original assignment drops none of its replicas.",
        DROP_AND_TARGET,
        _SUFFICIENT,
        _originals_kept,
        "kip-236",
        expected="refuted",
        finding="drop-6",
    ),
    Theorem(
        "drop-keeps-redundancy",
        "drop.protect-target",
        "As written, a drop leaves as many replicas in sync as there were or the target asks for.",
        DROP_AND_TARGET,
        (*_SUFFICIENT, TARGET_DISTINCT),
        _redundancy_kept,
        "kip-236",
        expected="refuted",
        finding="drop-8",
    ),
    Theorem(
        "drop-same-in-any-order",
        "drop.rank.leader-isr-rest",
        "The order in which the in-sync set is stored makes no difference to the drop.",
        DROP_TWICE,
        _SUFFICIENT,
        _same_in_any_order,
        "kip-236",
        expected="refuted",
        finding="drop-15",
    ),
    Theorem(
        "drop-leader-kept",
        "drop.leader-kept",
        "A drop never removes the leader from the assigned replicas.",
        DROP,
        (TOP_POSITIVE,),
        _leader_kept,
        "kip-236",
        shape=(ASSIGNED_DISTINCT, ISR_DISTINCT, ISR_ASSIGNED, LEADER_IN_SYNC),
    ),
    Theorem(
        "drop-leader-stays-in-sync",
        "drop.leader-kept",
        "After a drop the leader is still in the in-sync set.",
        DROP,
        (LEADER_IN_SYNC, TOP_POSITIVE),
        _leader_stays_in_sync,
        "kip-236",
        shape=(ASSIGNED_DISTINCT, ISR_DISTINCT, ISR_ASSIGNED),
    ),
    Theorem(
        "drop-isr-at-least-min",
        "drop.isr-at-least-min",
        "A drop leaves at least min.insync.replicas replicas in sync.",
        DROP,
        (ISR_DISTINCT, LEADER_IN_SYNC, TOP_AT_LEAST_MIN, ISR_AT_LEAST_MIN),
        _isr_sufficient,
        "kip-236",
        shape=(ASSIGNED_DISTINCT, ISR_ASSIGNED, TOP_POSITIVE),
    ),
    Theorem(
        "drop-assigned-isr-at-least-min",
        "drop.isr-at-least-min",
        "A drop leaves at least min.insync.replicas replicas both assigned and in sync.",
        DROP,
        (ISR_DISTINCT, ISR_ASSIGNED, LEADER_IN_SYNC, TOP_AT_LEAST_MIN, ISR_AT_LEAST_MIN),
        _assigned_isr_sufficient,
        "kip-236",
        shape=(ASSIGNED_DISTINCT, TOP_POSITIVE),
    ),
    Theorem(
        "drop-nothing-at-first-request",
        "drop.keep-top",
        "While no more replicas are assigned than top, a drop removes nothing.",
        DROP,
        (ISR_ASSIGNED, LEADER_IN_SYNC, FIRST_REQUEST),
        _nothing_dropped,
        "kip-236",
        shape=(ASSIGNED_DISTINCT, ISR_DISTINCT, TOP_POSITIVE),
    ),
    Theorem(
        "drop-leaves-top",
        "drop.keep-top",
        "A drop leaves exactly top replicas assigned, or all of them if there are fewer.",
        DROP,
        (ASSIGNED_DISTINCT, ISR_ASSIGNED, LEADER_IN_SYNC, TOP_POSITIVE),
        _size_is_top,
        "kip-236",
        shape=(ISR_DISTINCT,),
    ),
    Theorem(
        "drop-in-sync-before-others",
        "drop.rank.leader-isr-rest",
        "A drop removes a replica that is in sync only if it removes all that are not.",
        DROP,
        (LEADER_IN_SYNC,),
        _in_sync_before_others,
        "kip-236",
        shape=(ASSIGNED_DISTINCT, ISR_DISTINCT, ISR_ASSIGNED, TOP_POSITIVE),
    ),
    Theorem(
        "drop-any-order-leader-kept",
        "drop.leader-kept",
        "A drop keeps the leader in whatever order the replicas out of sync are ranked.",
        DROP_ANY_ORDER,
        (TOP_POSITIVE,),
        _leader_kept,
        "kip-236",
        shape=(ASSIGNED_DISTINCT, ISR_DISTINCT, ISR_ASSIGNED, LEADER_IN_SYNC, OTHERS_OUT_OF_SYNC),
    ),
    Theorem(
        "drop-any-order-isr-at-least-min",
        "drop.isr-at-least-min",
        "A drop leaves min.insync.replicas replicas in sync in whatever order the others are.",
        DROP_ANY_ORDER,
        (ISR_DISTINCT, LEADER_IN_SYNC, TOP_AT_LEAST_MIN, ISR_AT_LEAST_MIN),
        _isr_sufficient,
        "kip-236",
        shape=(ASSIGNED_DISTINCT, ISR_ASSIGNED, TOP_POSITIVE, OTHERS_OUT_OF_SYNC),
    ),
    Theorem(
        "drop-any-order-leaves-top",
        "drop.keep-top",
        "A drop leaves top replicas assigned in whatever order the replicas out of sync are.",
        DROP_ANY_ORDER,
        (ISR_DISTINCT, ISR_ASSIGNED, LEADER_IN_SYNC, TOP_POSITIVE, OTHERS_OUT_OF_SYNC),
        _size_is_top,
        "kip-236",
        shape=(ASSIGNED_DISTINCT,),
    ),
    Theorem(
        "drop-exclusive-leader-kept",
        "drop.slice.inclusive",
        "With the exclusive slice, a drop never removes the leader.",
        DROP_EXCLUSIVE,
        _SUFFICIENT,
        _leader_kept,
        "kip-236",
        expected="refuted",
        finding="drop-1",
    ),
    Theorem(
        "drop-exclusive-isr-at-least-min",
        "drop.slice.inclusive",
        "With the exclusive slice, a drop leaves at least min.insync.replicas replicas in sync.",
        DROP_EXCLUSIVE,
        _SUFFICIENT,
        _isr_sufficient,
        "kip-236",
        expected="refuted",
        finding="drop-1",
    ),
    Theorem(
        "drop-target-in-sync-kept",
        "drop.protect-target",
        "As written, a drop never removes a replica of the new target that is in sync.",
        DROP_AND_TARGET,
        _SUFFICIENT,
        _target_in_sync_kept,
        "kip-236",
        expected="refuted",
        finding="drop-4",
    ),
    Theorem(
        "drop-offline-in-sync-copy-kept",
        "drop.offline.skip",
        "As written, a drop on a partition without a leader leaves a replica in sync.",
        DROP,
        _WITHOUT_LEADER,
        _in_sync_copy_kept,
        "kip-236",
        expected="refuted",
        finding="drop-11",
    ),
    Theorem(
        "drop-amended-target-kept",
        "drop.protect-target",
        "With every amendment, a drop never removes a replica of the new target.",
        DROP_AMENDED,
        (),
        _target_kept,
        "kip-236-amended",
        largest=3,
        shape=(ASSIGNED_DISTINCT, ISR_DISTINCT, ISR_ASSIGNED, LEADER_IN_SYNC, TOP_POSITIVE),
    ),
    Theorem(
        "drop-amended-leader-kept",
        "drop.leader-kept",
        "With every amendment, a drop never removes the leader.",
        DROP_AMENDED,
        (TOP_POSITIVE,),
        _leader_kept,
        "kip-236-amended",
        largest=3,
        shape=(ASSIGNED_DISTINCT, ISR_DISTINCT, ISR_ASSIGNED, LEADER_IN_SYNC),
    ),
    Theorem(
        "drop-amended-isr-at-least-min",
        "drop.isr-at-least-min",
        "With every amendment, a drop leaves at least min.insync.replicas replicas in sync.",
        DROP_AMENDED,
        (ISR_DISTINCT, TOP_AT_LEAST_MIN, ISR_AT_LEAST_MIN),
        _isr_sufficient,
        "kip-236-amended",
        largest=3,
        shape=(ASSIGNED_DISTINCT, ISR_ASSIGNED, LEADER_IN_SYNC, TOP_POSITIVE),
    ),
    Theorem(
        "drop-amended-offline-skipped",
        "drop.offline.skip",
        "With every amendment, nothing is dropped while no leader is in sync.",
        DROP_AMENDED,
        (NO_LEADER_IN_SYNC,),
        _nothing_dropped,
        "kip-236-amended",
    ),
)

# Subjects: one evaluation of the in-sync set by a leader.


def _evaluation_shapes(replication_factor: int) -> Iterator[Shape]:
    for length in range(1, replication_factor + 1):
        yield {
            "replicas": Parameter(length, floor=1),
            "offsets": Parameter(length),
            "lags_ms": Parameter(length),
            "lag_ms_max": Parameter(),
            "high_watermark": Parameter(),
            "leader": Parameter(floor=1),
            "leader_end": Parameter(),
        }


def evaluate_with(values: Values, define: Callable[..., Any]) -> tuple[Any, Any, Any]:
    """Run the three definitions in their order, with `define` for the in-sync set."""
    replicas, offsets = values["replicas"], values["offsets"]
    pseudo_isr = compute_pseudo_isr(replicas, values["lags_ms"], values["lag_ms_max"])
    high_watermark = compute_high_watermark(values["high_watermark"], replicas, offsets, pseudo_isr)
    return pseudo_isr, high_watermark, define(replicas, offsets, pseudo_isr, high_watermark)


def evaluate(values: Values) -> tuple[Any, Any, Any]:
    """Run the model's three definitions in their order: pseudo-ISR, high watermark, ISR."""
    return evaluate_with(values, compute_isr)


EVALUATION: Final = Subject(
    "in-sync-evaluation",
    evaluate,
    "the evaluation (pseudo-ISR, high watermark, ISR)",
    _evaluation_shapes,
)
"""One evaluation by one leader."""

REPLICAS_DISTINCT: Final = Hypothesis(
    "replicas-distinct",
    "no replica is listed twice",
    lambda v: distinct(v["replicas"]),
)
LEADER_COUNTED: Final = Hypothesis(
    "leader-counted",
    "the leader is one of the replicas, with its own end and within the lag limit",
    lambda v: any_of(
        (replica == v["leader"]) & (end == v["leader_end"]) & (lag <= v["lag_ms_max"])
        for replica, end, lag in zip(v["replicas"], v["offsets"], v["lags_ms"], strict=True)
    ),
)
HW_WITHIN_LEADER: Final = Hypothesis(
    "hw-within-leader",
    "the high watermark is not beyond the leader's end before the evaluation",
    lambda v: v["high_watermark"] <= v["leader_end"],
)


def _pseudo_isr_is_by_lag(values: Values, result: Any) -> Truth:
    return all_of(
        member(replica, result[0]) == (lag <= values["lag_ms_max"])
        for replica, lag in zip(values["replicas"], values["lags_ms"], strict=True)
    )


def _hw_never_decreases(values: Values, result: Any) -> Truth:
    return values["high_watermark"] <= result[1]


def _members_reach_hw(values: Values, result: Any) -> Truth:
    _, high_watermark, isr = result
    return all_of(
        implies(member(replica, isr), high_watermark <= end)
        for replica, end in zip(values["replicas"], values["offsets"], strict=True)
    )


def _hw_within_leader(values: Values, result: Any) -> Truth:
    return result[1] <= values["leader_end"]


def _advance_is_replicated(values: Values, result: Any) -> Truth:
    high_watermark = result[1]
    reached = all_of(
        implies(lag <= values["lag_ms_max"], high_watermark <= end)
        for end, lag in zip(values["offsets"], values["lags_ms"], strict=True)
    )
    return implies(values["high_watermark"] < high_watermark, reached)


def _is_minimum(values: Values, moved: Any) -> Truth:
    """Say that a mark is the smallest of the ends that count, or where it was if that is more."""
    close = [
        (lag <= values["lag_ms_max"], end)
        for end, lag in zip(values["offsets"], values["lags_ms"], strict=True)
    ]
    before = values["high_watermark"]
    lowest = all_of(implies(counts, moved <= end) for counts, end in close)
    reached = any_of(counts & (end <= moved) for counts, end in close)
    stays = (moved == before) & any_of(counts & (end <= before) for counts, end in close)
    return stays | ((before <= moved) & lowest & reached)


def _members_as_defined(values: Values, result: Any) -> Truth:
    _, high_watermark, isr = result
    return all_of(
        member(replica, isr) == ((lag <= values["lag_ms_max"]) & (high_watermark <= end))
        for replica, end, lag in zip(
            values["replicas"], values["offsets"], values["lags_ms"], strict=True
        )
    )


def _mark_shapes(_: int) -> Iterator[Shape]:
    for length in range(1, _ENDS_MAX + 1):
        yield {"offsets": Parameter(length), "high_watermark": Parameter()}


def move_mark(values: Values) -> Any:
    """Return the high watermark after an evaluation in which every replica counts."""
    replicas = tuple(range(len(values["offsets"])))
    return compute_high_watermark(values["high_watermark"], replicas, values["offsets"], replicas)


_ENDS_MAX: Final = 7
MARK: Final = Subject(
    "high-watermark",
    move_mark,
    "the high watermark",
    _mark_shapes,
    bounded=f"1 to {_ENDS_MAX} replicas, all within the lag limit",
)
"""The mark over more ends than the evaluation as a whole is looked at with."""


def _is_smallest_end(values: Values, moved: Any) -> Truth:
    ends, before = values["offsets"], values["high_watermark"]
    smallest = all_of(moved <= end for end in ends) & member(moved, ends)
    stays = (moved == before) & any_of(end <= before for end in ends)
    return stays | ((before <= moved) & smallest)


_IN_SYNC_THEOREMS: Final = (
    Theorem(
        "hw-is-smallest-end",
        "hw.minimum-of-pseudo-isr",
        "An evaluation in which all count moves the mark to the smallest end of all, or not back.",
        MARK,
        (),
        _is_smallest_end,
        "kip-236",
    ),
    Theorem(
        "hw-is-minimum-of-pseudo-isr",
        "hw.minimum-of-pseudo-isr",
        "After an evaluation the mark is the smallest end within the lag limit, or where it was.",
        EVALUATION,
        (LEADER_COUNTED, REPLICAS_DISTINCT),
        lambda values, result: _is_minimum(values, result[1]),
        "kip-236",
    ),
    Theorem(
        "isr-is-as-defined",
        "isr.member.at-or-above-hw",
        "In sync is exactly who is within the lag limit and has reached the high watermark.",
        EVALUATION,
        (REPLICAS_DISTINCT, LEADER_COUNTED),
        _members_as_defined,
        "kip-236",
    ),
    Theorem(
        "hw-never-decreases",
        "hw.never-decreases",
        "On one leader an evaluation never lowers the high watermark.",
        EVALUATION,
        (LEADER_COUNTED,),
        _hw_never_decreases,
        "kip-236",
        shape=(REPLICAS_DISTINCT,),
    ),
    Theorem(
        "hw-within-leader",
        "hw.at-most-leader-end",
        "An evaluation never moves the high watermark beyond the leader's end.",
        EVALUATION,
        (LEADER_COUNTED, HW_WITHIN_LEADER),
        _hw_within_leader,
        "kip-236",
        shape=(REPLICAS_DISTINCT,),
    ),
    Theorem(
        "hw-advance-is-replicated",
        "hw.minimum-of-pseudo-isr",
        "When the high watermark advances, every replica within the lag limit has reached it.",
        EVALUATION,
        (LEADER_COUNTED,),
        _advance_is_replicated,
        "kip-236",
        shape=(REPLICAS_DISTINCT,),
    ),
    Theorem(
        "pseudo-isr-is-by-lag",
        "isr.pseudo.by-lag",
        "A replica is in the pseudo-ISR if and only if its lag is within the limit.",
        EVALUATION,
        (REPLICAS_DISTINCT, LEADER_COUNTED),
        _pseudo_isr_is_by_lag,
        "kip-236",
    ),
    Theorem(
        "isr-members-reach-hw",
        "isr.member.at-or-above-hw",
        "Every member of the in-sync set has reached the high watermark.",
        EVALUATION,
        (REPLICAS_DISTINCT, LEADER_COUNTED),
        _members_reach_hw,
        "kip-236",
    ),
)


def _without(theorem: Theorem, hypothesis: str, finding: str) -> Theorem:
    """Return the refutation of a theorem that lacks one of its hypotheses."""
    left = tuple(item for item in theorem.hypotheses if item.name != hypothesis)
    (gone,) = (item for item in theorem.hypotheses if item.name == hypothesis)
    return replace(
        theorem,
        name=f"{theorem.name}-without-{hypothesis}",
        statement=f"{theorem.statement} Not assumed: {gone.sentence}.",
        hypotheses=left,
        expected="refuted",
        finding=finding,
        tier="full",
        largest=3,
    )


_SILENT: Final = (
    ("drop-isr-at-least-min", "leader-in-sync", "hypothesis-1"),
    ("drop-assigned-isr-at-least-min", "isr-assigned", "hypothesis-2"),
    ("drop-isr-at-least-min", "isr-distinct", "hypothesis-3"),
    ("drop-isr-at-least-min", "top-at-least-min", "hypothesis-4"),
    ("drop-nothing-at-first-request", "leader-in-sync", "drop-19"),
)
"""Theorem, hypothesis on which a document is silent, and the finding that says so."""

_WITHOUT: Final = tuple(
    _without(theorem, hypothesis, finding)
    for name, hypothesis, finding in _SILENT
    for theorem in _DROP_THEOREMS
    if theorem.name == name
)

THEOREMS: Final[tuple[Theorem, ...]] = (
    *_DROP_THEOREMS,
    *_IN_SYNC_THEOREMS,
    *_WITHOUT,
    *LAG_THEOREMS,
    *CONTRACT_THEOREMS,
    *ELECTION_THEOREMS,
    *PROTOCOL_THEOREMS,
    *STEP_THEOREMS,
    *ACT_THEOREMS,
    *REPLICA_THEOREMS,
    *HEALING_THEOREMS,
    *OFFICE_THEOREMS,
    *REFUTATIONS,
)
"""Every theorem, in the order of reports."""


class UnknownTheoremError(BadUsage):
    """A theorem name that the register does not have."""


def get_theorems(
    names: tuple[str, ...] | list[str] | None = None, tier: str = "full"
) -> tuple[Theorem, ...]:
    """Return the named theorems in the register's order, all of the tier without names.

    Raises UnknownTheoremError for a name there is not; the message names those that are close.
    """
    if names is None:
        return tuple(item for item in THEOREMS if tier in ("full", item.tier))
    known = [theorem.name for theorem in THEOREMS]
    unknown = [name for name in names if name not in known]
    if unknown:
        close = ", ".join(get_close_matches(unknown[0], known, 5, 0.4)) or "none"
        raise UnknownTheoremError(
            f"there is no theorem {unknown[0]!r}; names that are close: {close} "
            f"(`reassure prove --list` tells all {len(known)})"
        )
    return tuple(theorem for theorem in THEOREMS if theorem.name in names)
