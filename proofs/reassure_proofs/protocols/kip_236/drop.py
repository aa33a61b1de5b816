"""The drop rule: who goes when a target changes while a reassignment is in flight.

What is proved is proved for any number of brokers; refutations, and what shows that a hypothesis is
needed, are of few. `top` and the minimum are any integers at all. Some theorems state a promise
under a reading that cannot keep it. Such a refutation is a finding about the document, and it would
be news if it went away.
"""

# ruff: noqa: D401  # the docstring of a claim is what it claims

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from reassure_model.protocols.kip_236 import assignment_rules, compute_drop
from reassure_proofs.engine.formula import (
    Truth,
    absent,
    alike,
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
from reassure_proofs.engine.statement import (
    BROKER,
    ID,
    LEMMA,
    LIST,
    REORDERINGS,
    Claims,
    Hypothesis,
    Parameter,
    Rule,
    Shape,
    Terming,
    Theorem,
    Unread,
    Values,
    given,
    ids,
    make_subject,
    says,
    shaped,
)
from reassure_proofs.protocols.kip_236.plantings import show_drop
from reassure_proofs.protocols.kip_236.refutations import tell_drops
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER


def _drop_shapes(replication_factor: int) -> Iterator[Shape]:
    # The in-sync set may be empty or larger than the assignment: only hypotheses exclude that, so
    # that leaving one out shows whether it is needed.
    for assigned in range(1, replication_factor + 1):
        for isr in range(replication_factor + 1):
            yield {
                "assigned": ids(assigned),
                "isr": ids(isr),
                "leader": ID,
                "top": Parameter(),
                "minimum": ID,
            }


def _drop_and_target_shapes(replication_factor: int) -> Iterator[Shape]:
    for shape in _drop_shapes(replication_factor):
        for target in range(1, replication_factor + 1):
            yield {**shape, "target": ids(target)}


def _drop_any_order_shapes(replication_factor: int) -> Iterator[Shape]:
    for shape in _drop_shapes(replication_factor):
        for out_of_sync in range(shape["assigned"].length or 0):
            yield {**shape, "others": ids(out_of_sync)}


def _any_size(*more: str) -> Shape:
    lists = dict.fromkeys(("assigned", "isr", *more), LIST)
    return {**lists, "leader": BROKER, "top": Parameter(), "minimum": ID}


def ask_drop(values: Values, readings: Readings, rule: Callable[..., Any] = compute_drop) -> Any:
    """Return what the drop rule drops under these readings.

    Where the values have no target the rule must not look at it. `rule` is there for tests, which
    put a rule with a planted fault in its place.
    """
    arguments = (values["assigned"], values["leader"], values["isr"], values["top"])
    others = (values["others"],) if "others" in values else ()
    return rule(*arguments, values.get("target", Unread("target")), readings, *others)


_subject: Final = partial(make_subject, profile="kip-236")
DROP: Final = _subject(
    *("drop", ask_drop, "the drop rule", _drop_shapes),
    any_size=_any_size,
    tell=tell_drops,
    shown=show_drop,
)
"""The drop rule as written, in the reading that keeps what the document promises."""
DROP_EXCLUSIVE: Final = _subject(
    *("drop-exclusive", ask_drop, "the drop rule with the exclusive slice", _drop_shapes),
    changes=("drop.slice=exclusive",),
    tell=tell_drops,
)
"""The drop rule with the slice taken to the letter."""
DROP_AMENDED: Final = make_subject(
    *("drop-amended", ask_drop, "the amended drop rule", _drop_and_target_shapes),
    profile="kip-236-amended",
    any_size=partial(_any_size, "target"),
    shown=show_drop,
)
"""The drop rule with every amendment."""
DROP_ANY_ORDER: Final = _subject(
    *("drop-any-order", ask_drop, "the drop rule", _drop_any_order_shapes),
    any_size=partial(_any_size, "others"),
    shown=show_drop,
)
"""The drop rule with the replicas that are out of sync in an order that is given."""
DROP_AND_TARGET: Final = _subject(
    "drop-target", ask_drop, "the drop rule", _drop_and_target_shapes, tell=tell_drops
)
"""The drop rule as written, and the target that it does not look at."""

_choices: Final = assignment_rules._choices  # noqa: SLF001 - the one function that enumerates
CHOICES: Final = make_subject(
    "choices",
    lambda v: _choices(v["replicas"], v["places"]),
    "the choice of who comes first",
    lambda longest: (
        {"replicas": ids(length), "places": Parameter()} for length in range(longest + 1)
    ),
    bounded="lists of up to {} replicas",
)
"""The orders among which the rules let a drop choose."""
REORDERINGS[_choices] = "choices-reorder"


def _turn(values: Values) -> Values:
    return {**values, "isr": values["isr"][::-1]}


def drop_twice(values: Values, readings: Readings) -> tuple[Any, Any]:
    """Return what is dropped of an in-sync set as stored, and of the same set reversed."""
    return ask_drop(values, readings), ask_drop(_turn(values), readings)


DROP_TWICE: Final = _subject(
    "drop-twice",
    drop_twice,
    "the drop rule, with the in-sync set as stored and reversed,",
    _drop_shapes,
    tell=lambda v: tell_drops(v, _turn(v)),
)
"""The drop rule as written on two orders of the same in-sync set."""

ASSIGNED_DISTINCT: Final = Hypothesis(
    "assigned-distinct", "no replica is assigned twice", lambda v: distinct(v["assigned"])
)
ISR_DISTINCT: Final = Hypothesis(
    "isr-distinct", "no replica is in the in-sync set twice", lambda v: distinct(v["isr"])
)
ISR_ASSIGNED: Final = Hypothesis(
    "isr-assigned", "every in-sync replica is assigned", lambda v: subset(v["isr"], v["assigned"])
)
LEADER_IN_SYNC: Final = Hypothesis(
    "leader-in-sync", "the leader is in the in-sync set", lambda v: member(v["leader"], v["isr"])
)
LEADER_IS_BROKER: Final = Hypothesis(
    "leader-is-broker", "the leader is a broker", lambda v: v["leader"] != NO_LEADER
)
TARGET_DISTINCT: Final = Hypothesis(
    "target-distinct", "no replica is in the target twice", lambda v: distinct(v["target"])
)
TOP_POSITIVE: Final = Hypothesis("top-positive", "top is at least 1", lambda v: v["top"] >= 1)
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
        & all_of(absent(replica, v["isr"]) for replica in v["others"])
        & all_of(
            member(replica, v["isr"]) | member(replica, v["others"]) for replica in v["assigned"]
        )
    ),
)
NO_LEADER_AT_HAND: Final = Hypothesis(
    "no-leader", "the partition has no leader", lambda v: v["leader"] == NO_LEADER
)
NO_LEADER_IN_SYNC: Final = Hypothesis(
    "no-leader-in-sync",
    "the partition has no leader, or the leader is not in the in-sync set",
    lambda v: (v["leader"] == NO_LEADER) | absent(v["leader"], v["isr"]),
)
ISR_NOT_EMPTY: Final = Hypothesis(
    "isr-not-empty", "a replica is in sync", lambda v: len(v["isr"]) > 0
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


THEOREMS: Final = Claims("kip-236")
"""Every theorem about the drop rule."""
about = THEOREMS.about
about_target: Final = partial(THEOREMS.about, DROP_AND_TARGET, cure="kip-236-amended")


def needs(*hypotheses: Hypothesis, shape: tuple[Hypothesis, ...] = ()) -> Terming:
    """Say what a claim needs; what else a well-formed partition has only bounds the paths."""
    rest = (each for each in _WELL_FORMED if each not in hypotheses)
    only_bounds = shaped(*rest, *shape)
    return lambda claim: given(*hypotheses)(only_bounds(claim))


@about(DROP_AMENDED, "drop-amended-offline-skipped", "drop.offline.skip")
@says("With every amendment, nothing is dropped while no leader is in sync.")
@given(NO_LEADER_IN_SYNC)
@about(DROP, "drop-nothing-at-first-request", "drop.keep-top")
@says("While no more replicas are assigned than top, a drop removes nothing.")
@needs(ISR_ASSIGNED, LEADER_IN_SYNC, FIRST_REQUEST)
@about(
    DROP_EXCLUSIVE,
    "drop-exclusive-nothing-at-first-request",
    "drop.slice.inclusive",
    finding="drop-2",
)
@given(*_SUFFICIENT, FIRST_REQUEST)
def _nothing_dropped(_: Values, drop: Any) -> Truth:
    """With the exclusive slice, nothing is dropped at a first request."""
    return len(drop) == 0


@about_target("drop-after-expansion-keeps-copies", "drop.before-expansion", finding="drop-3")
@given(*_SUFFICIENT)
def _copies_kept(values: Values, drop: Any) -> Truth:
    """Evaluated after the expansion, a drop takes no replica of the target that is copying."""
    target, isr = values["target"], values["isr"]
    kept = all_of(member(replica, isr) | absent(replica, target) for replica in drop)
    return implies(subset(target, values["assigned"]), kept)


@about_target("drop-cancel-keeps-originals", "drop.protect-target", finding="drop-6")
@given(*_SUFFICIENT)
def _originals_kept(values: Values, drop: Any) -> Truth:
    """As written, a change back to an original assignment drops none of its replicas."""
    target = values["target"]
    is_cancel = (values["top"] == len(target)) & subset(target, values["assigned"])
    return implies(is_cancel, _target_kept(values, drop))


@about_target("drop-keeps-redundancy", "drop.protect-target", finding="drop-8")
@given(*_SUFFICIENT, TARGET_DISTINCT)
def _redundancy_kept(values: Values, drop: Any) -> Truth:
    """As written, a drop leaves as many replicas in sync as there were or the target asks for."""
    before, wanted = len(values["isr"]), len(values["target"])
    after = remaining(values["isr"], drop)
    return (before <= after) | (wanted <= after)


@about(DROP_TWICE, "drop-same-in-any-order", "drop.rank.leader-isr-rest", finding="drop-15")
@given(*_SUFFICIENT)
def _same_in_any_order(values: Values, drops: Any) -> Truth:
    """The order in which the in-sync set is stored makes no difference to the drop."""
    return subset(drops[0], drops[1])


@about(DROP_AMENDED, "drop-amended-leader-kept", "drop.leader-kept", largest=3)
@says("With every amendment, a drop never removes the leader.")
@needs(TOP_POSITIVE)
@about(DROP_EXCLUSIVE, "drop-exclusive-leader-kept", "drop.slice.inclusive", finding="drop-1")
@says("With the exclusive slice, a drop never removes the leader.")
@given(*_SUFFICIENT)
@about(DROP_ANY_ORDER, "drop-any-order-leader-kept", "drop.leader-kept")
@says("A drop keeps the leader in whatever order the replicas out of sync are ranked.")
@needs(TOP_POSITIVE, shape=(OTHERS_OUT_OF_SYNC,))
@about(DROP, "drop-leader-kept", "drop.leader-kept")
@needs(TOP_POSITIVE)
def _leader_kept(values: Values, drop: Any) -> Truth:
    """A drop never removes the leader from the assigned replicas."""
    return absent(values["leader"], drop)


@about(DROP, "drop-leader-stays-in-sync", "drop.leader-kept")
@needs(LEADER_IN_SYNC, TOP_POSITIVE)
def _leader_stays_in_sync(values: Values, drop: Any) -> Truth:
    """After a drop the leader is still in the in-sync set."""
    return member(values["leader"], values["isr"]) & _leader_kept(values, drop)


@about(DROP_AMENDED, "drop-amended-isr-at-least-min", "drop.isr-at-least-min", largest=3)
@says("With every amendment, a drop leaves at least min.insync.replicas replicas in sync.")
@needs(ISR_DISTINCT, TOP_AT_LEAST_MIN, ISR_AT_LEAST_MIN)
@about(DROP_EXCLUSIVE, "drop-exclusive-isr-at-least-min", "drop.slice.inclusive", finding="drop-1")
@says("With the exclusive slice, a drop leaves at least min.insync.replicas replicas in sync.")
@given(*_SUFFICIENT)
@about(DROP_ANY_ORDER, "drop-any-order-isr-at-least-min", "drop.isr-at-least-min")
@says("A drop leaves min.insync.replicas replicas in sync in whatever order the others are.")
@needs(
    *(ISR_DISTINCT, LEADER_IN_SYNC, TOP_AT_LEAST_MIN, ISR_AT_LEAST_MIN), shape=(OTHERS_OUT_OF_SYNC,)
)
@about(DROP, "drop-isr-at-least-min", "drop.isr-at-least-min")
@needs(ISR_DISTINCT, LEADER_IN_SYNC, TOP_AT_LEAST_MIN, ISR_AT_LEAST_MIN)
def _isr_sufficient(values: Values, drop: Any) -> Truth:
    """A drop leaves at least min.insync.replicas replicas in sync."""
    return remaining(values["isr"], drop) >= values["minimum"]


@about(DROP, "drop-assigned-isr-at-least-min", "drop.isr-at-least-min")
@needs(ISR_DISTINCT, ISR_ASSIGNED, LEADER_IN_SYNC, TOP_AT_LEAST_MIN, ISR_AT_LEAST_MIN)
def _assigned_isr_sufficient(values: Values, drop: Any) -> Truth:
    """A drop leaves at least min.insync.replicas replicas both assigned and in sync."""
    kept = count(
        member(replica, values["isr"]) & absent(replica, drop) for replica in values["assigned"]
    )
    return kept >= values["minimum"]


@about(DROP_ANY_ORDER, "drop-any-order-leaves-top", "drop.keep-top")
@says("A drop leaves top replicas assigned in whatever order the replicas out of sync are.")
@needs(ASSIGNED_DISTINCT, ISR_ASSIGNED, LEADER_IN_SYNC, TOP_POSITIVE, OTHERS_OUT_OF_SYNC)
@about(DROP, "drop-leaves-top", "drop.keep-top")
@needs(ASSIGNED_DISTINCT, ISR_ASSIGNED, LEADER_IN_SYNC, TOP_POSITIVE)
def _size_is_top(values: Values, drop: Any) -> Truth:
    """A drop leaves exactly top replicas assigned, or all of them if there are fewer."""
    before, top = len(values["assigned"]), values["top"]
    after = count(absent(replica, drop) for replica in values["assigned"])
    return implies(top >= before, after == before) & implies(top <= before, top == after)


@about(DROP_AMENDED, "drop-amended-bounds-assigned", "top.bounds-assigned", largest=3)
@needs(ASSIGNED_DISTINCT, LEADER_IN_SYNC, LEADER_IS_BROKER, TOP_POSITIVE)
def _few_beside_target(values: Values, drop: Any) -> Truth:
    """With every amendment, a drop leaves at most top replicas assigned beside the target."""
    beside = count(
        absent(replica, drop) & absent(replica, values["target"]) for replica in values["assigned"]
    )
    return beside <= values["top"]


@about(DROP_AMENDED, "drop-amended-names-assigned", "drop.keep-top", largest=3)
@says("With every amendment, a drop names assigned replicas only.")
@shaped(ASSIGNED_DISTINCT, ISR_DISTINCT, TOP_POSITIVE)
@about(DROP, "drop-names-assigned", "drop.keep-top", largest=3)
@shaped(ASSIGNED_DISTINCT, ISR_DISTINCT, TOP_POSITIVE)
def _names_assigned(values: Values, drop: Any) -> Truth:
    """A drop names assigned replicas only, whatever it is given."""
    return subset(drop, values["assigned"])


@about(DROP, "drop-in-sync-before-others", "drop.rank.leader-isr-rest")
@needs(LEADER_IN_SYNC)
def _in_sync_before_others(values: Values, drop: Any) -> Truth:
    """A drop removes a replica that is in sync only if it removes all that are not."""
    isr, assigned = values["isr"], values["assigned"]
    in_sync_dropped = any_of(member(replica, isr) for replica in drop)
    others_dropped = all_of(member(replica, isr) | member(replica, drop) for replica in assigned)
    return implies(in_sync_dropped, others_dropped)


@about_target("drop-target-in-sync-kept", "drop.protect-target", finding="drop-4")
@given(*_SUFFICIENT)
def _target_in_sync_kept(values: Values, drop: Any) -> Truth:
    """As written, a drop never removes a replica of the new target that is in sync."""
    return all_of(
        negate(member(replica, values["target"]) & member(replica, values["isr"]))
        for replica in drop
    )


@about(
    DROP,
    "drop-offline-in-sync-copy-kept",
    "drop.offline.skip",
    finding="drop-11",
    cure="kip-236-amended",
)
@given(*_WITHOUT_LEADER)
def _in_sync_copy_kept(values: Values, drop: Any) -> Truth:
    """As written, a drop on a partition without a leader leaves a replica in sync."""
    return remaining(values["isr"], drop) > 0


@about(DROP_AMENDED, "drop-amended-target-kept", "drop.protect-target", largest=3)
@needs()
def _target_kept(values: Values, drop: Any) -> Truth:
    """With every amendment, a drop never removes a replica of the new target."""
    return all_of(absent(replica, values["target"]) for replica in drop)


@about(CHOICES, "choices-reorder", LEMMA)
def _reorder(values: Values, choices: Any) -> Truth:
    """Every order that a drop may choose has the members of the list it is of, and is no longer."""
    replicas = values["replicas"]
    return all_of(alike(each, replicas) & (len(each) <= len(replicas)) for each in choices)


def _without(theorem: Theorem, hypothesis: str, finding: str) -> Theorem:
    """Return the refutation of a theorem that lacks one of its hypotheses."""
    left = tuple(item for item in theorem.hypotheses if item.name != hypothesis)
    (gone,) = (item for item in theorem.hypotheses if item.name == hypothesis)
    return replace(
        theorem,
        name=f"{theorem.name}-without-{hypothesis}",
        statement=f"{theorem.statement} Not assumed: {gone.sentence}.",
        hypotheses=left,
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

WITHOUT: Final = tuple(
    _without(theorem, hypothesis, finding)
    for name, hypothesis, finding in _SILENT
    for theorem in THEOREMS
    if theorem.name == name
)
"""The theorems about which a document is silent, without what it is silent on."""

RULE: Final = Rule(
    "drop",
    ("assigned", "leader", "isr", "top"),
    {"kip-236": DROP.name, "kip-236-amended": DROP_AMENDED.name},
    more="target",
    shapes_with_more=_drop_and_target_shapes,
    preconditions=(TOP_POSITIVE, ASSIGNED_DISTINCT, ISR_DISTINCT, ISR_ASSIGNED, LEADER_IN_SYNC),
)
"""A drop rule answers the replicas to drop."""
