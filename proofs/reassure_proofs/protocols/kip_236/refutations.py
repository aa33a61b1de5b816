"""Promises of the documents that the model's functions break, and the smallest arguments that do.

Beside the refutations among `reassure_proofs.protocols`, these are about more than one function:
what the controller's whole plan makes of a partition (`kip_236.system.compute_plan`), what a
leader concludes from several fetches. All arguments are symbolic; only lengths are bounded. Each
tells its counterexample as a scenario where a world has the commands for it.
"""

# ruff: noqa: D401  # the docstring of a claim is what it claims

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from reassure_model.outcome import Accepted
from reassure_model.partition import (
    Partition,
)
from reassure_model.protocols.kip_236 import (
    New,
    Refusal,
    apply_failover,
    compute_drop,
    decide_request,
    settle_conflicts,
)
from reassure_model.protocols.kip_236.rules import accept_write
from reassure_model.protocols.kip_236.system import compute_plan
from reassure_model.writes import ChangeIsr
from reassure_proofs.engine import formula
from reassure_proofs.engine.formula import Truth, absent, all_of, distinct, inside, member, subset
from reassure_proofs.engine.statement import (
    ID,
    SET,
    Claims,
    Hypothesis,
    Parameter,
    Shape,
    Values,
    given,
    ids,
    subject,
)
from reassure_proofs.protocols.kip_236.partition_steps import make_partition, make_surroundings
from reassure_spec.readings import Readings
from reassure_spec.words import spell_replicas as spell

# A partition and what the controller makes of it ------------------------------------------------

_LISTS: Final = ("assigned", "isr", "target", "requested", "requested_next")
_about_partition: Final = partial(subject, profile="kip-236", hashable=True)


def _named(values: Values) -> tuple[Any, ...]:
    return tuple(replica for name in _LISTS for replica in values.get(name, ()))


SOUND: Final = Hypothesis(
    "sound",
    "the partition is as the rules leave it: no list names a replica twice, the in-sync set is "
    "assigned, the leader is in it, top is at least 1",
    lambda v: (
        all_of(distinct(v[name]) for name in _LISTS if name in v)
        & subset(v["isr"], v["assigned"])
        & member(v["leader"], v["isr"])
        & (v.get("top", 1) >= 1)
    ),
)
ALL_LIVE: Final = Hypothesis(
    "all-live",
    "every broker that is named is alive",
    lambda v: all_of((r >= 0) & inside(r, v["live"]) for r in _named(v)),
)
ASKS_NEW: Final = Hypothesis(
    "asks-for-new",
    "each request asks for brokers that no other list names",
    lambda v: (
        all_of(absent(r, v["assigned"]) for r in v["requested"])
        & all_of(
            absent(r, v["assigned"]) & absent(r, v["requested"])
            for r in v.get("requested_next", ())
        )
    ),
)
EXPANDED: Final = Hypothesis(
    "expanded",
    "the whole target is assigned, and not in sync yet",
    lambda v: subset(v["target"], v["assigned"]) & formula.negate(subset(v["target"], v["isr"])),
)


def _shape(*numbers: str, **lengths: int) -> Callable[[int], Iterator[Shape]]:
    """Return the one shape that has lists of these lengths, a leader and these numbers."""
    lists = {name: ids(length) for name, length in lengths.items()}
    shape = {**lists, "leader": ID, **dict.fromkeys(numbers, ID), "live": SET}
    return lambda _: iter((shape,))


def _world(values: Values) -> tuple[str, ...]:
    """Return the commands that make the partition."""
    brokers, minimum = spell(sorted(set(_named(values)))), values.get("minimum", 1)
    least = f" min.insync.replicas={minimum}" if minimum != 1 else ""
    lists = f"assigned={spell(values['assigned'])} isr={spell(values['isr'])}"
    topic = f"topic {lists} leader={values['leader']}"
    flight = f" target={spell(values['target'])} top={values['top']}" if "target" in values else ""
    return f"world kip-236 brokers={brokers}{least}", f"{topic}{flight}"


@_about_partition(
    "either-order",
    "two requests in either order",
    _shape(assigned=1, isr=1, requested=1, requested_next=1),
    bounded="one replica in each list",
)
def either_order(values: Values, readings: Readings) -> tuple[Any, Any]:
    """Return what is in flight after two requests, in their order and in the opposite one."""
    partition, around = make_partition(values), make_surroundings(values)
    turned = replace(partition, requests=partition.requests[::-1])
    plans = (compute_plan(each, around, readings)[1] for each in (partition, turned))
    first, second = (after.reassignment for after in plans)
    return (None if first is None else first.target, None if second is None else second.target)


@_about_partition(
    "found-request",
    "a request that a new controller finds",
    _shape("top", assigned=2, isr=1, target=1, requested=1),
    bounded="2 replicas assigned, one in each other list",
    tell=lambda v: (
        *_world(v),
        f"submit target={spell(v['requested'])}",
        *("fail-over", "controller", "show"),
    ),
)
def found_request(values: Values, readings: Readings) -> Any:
    """Return the target in flight once a new controller has dealt with a request it found."""
    found = apply_failover(make_partition(values), readings)
    flight = compute_plan(found, make_surroundings(values), readings)[1].reassignment
    return None if flight is None else (flight.target, flight.top)


@_about_partition(
    "whole-request",
    "a request for two partitions, one of them unknown: whether each refuses it",
    _shape(assigned=1, isr=1, requested=1),
    bounded="one replica in each list",
    tell=lambda v: (
        f"world kip-236 brokers={spell(sorted(set(_named(v))))}",
        f"topic partition=p assigned={spell(v['assigned'])} leader={v['leader']}",
        f"submit p={spell(v['requested'])} q={spell(v['requested'])}",
        "decide-all",
    ),
    changes=("request.conflict=whole-request",),
)
def whole_request(values: Values, readings: Readings) -> tuple[Any, Any]:
    """Return what a request comes to for two partitions, one unknown: one by one, and whole."""
    known, around = make_partition(values), make_surroundings(values)
    (request,) = known.requests
    unknown = Partition(requests=(request,))
    alone = tuple(decide_request(request, each, around, readings) for each in (known, unknown))
    settled = settle_conflicts(alone, readings)
    return tuple(isinstance(each, Refusal) for each in alone), tuple(
        isinstance(each, Refusal) for each in settled
    )


@_about_partition(
    "growth",
    "whether a request for more replicas is taken",
    _shape("minimum", assigned=1, isr=1, requested=2),
    bounded="one replica assigned, two in the target",
    tell=lambda v: (*_world(v), f"submit target={spell(v['requested'])}", "controller"),
)
def growth(values: Values, readings: Readings) -> Any:
    """Return whether the controller takes a request for more replicas than are assigned."""
    partition = make_partition(values)
    around = make_surroundings(values)
    return isinstance(decide_request(partition.requests[0], partition, around, readings), New)


ENOUGH_ASKED: Final = Hypothesis(
    "enough-asked",
    "the request names as many replicas as min.insync.replicas asks for",
    lambda v: (v["minimum"] >= 1) & (v["minimum"] <= len(v["requested"])),
)


@_about_partition(
    "joined-while-completing",
    "whether a replica that was cut can join again",
    _shape("top", "replica", assigned=2, isr=1, target=1),
    bounded="2 replicas assigned, one in the target",
    tell=lambda v: (
        *_world(v),
        "step",
        f"write-isr writer={v['leader']} isr={spell((*v['isr'], v['replica']))}",
        "owed",
    ),
)
def joined_while_completing(values: Values, readings: Readings) -> Any:
    """Return whether the rules let a replica join that a completion has cut."""
    partition = replace(make_partition(values), completing=True)
    state = partition.state
    assert state is not None
    write = ChangeIsr(replace(state, isr=(*state.isr, values["replica"])), state.leader)
    outcome = accept_write(partition, write, make_surroundings(values), readings)
    return isinstance(outcome, Accepted)


WAS_CUT: Final = Hypothesis(
    "was-cut",
    "the target is in sync, and the replica is assigned, not in the target and cut",
    lambda v: (
        formula.alike(v["target"], v["isr"])
        & member(v["replica"], v["assigned"])
        & absent(v["replica"], v["isr"])
    ),
)

# The drop rule once more ------------------------------------------------------------------------

_about_drop: Final = partial(subject, profile="kip-236", bounded="up to 3 replicas assigned")


def _drop_shapes(_: int, more: Callable[[int, int], dict[str, Parameter]]) -> Iterator[Shape]:
    for assigned in (1, 2, 3):
        for isr in range(1, assigned + 1):
            shape = {"assigned": ids(assigned), "isr": ids(isr), "leader": ID}
            yield {**shape, "top": ID, **more(assigned, isr)}


def tell_drops(*asked: Values) -> tuple[str, ...]:
    """Return questions about the drop rule as a scenario."""
    drops = (
        f"drop assigned={spell(v['assigned'])} leader={v['leader']} isr={spell(v['isr'])} "
        f"top={v['top']} target={spell(v.get('target', ()))}"
        for v in asked
    )
    return ("world tables", *drops)


def _drop(values: Values, readings: Readings, others: Any = None) -> Any:
    arguments = (values["assigned"], values["leader"], values["isr"], values["top"])
    return compute_drop(*arguments, values.get("target", ()), readings, others)


def _tell_by_lag(values: Values) -> tuple[str, ...]:
    lags = dict(zip(values["assigned"], values["lags_ms"], strict=True))
    others = sorted((r for r in values["assigned"] if r not in values["isr"]), key=lags.__getitem__)
    world, drop = tell_drops(values)
    return world, drop, f"{drop} others={spell(others)}"


@_about_drop(
    "drop-by-lag",
    "the drop rule, unordered and by lag,",
    partial(
        _drop_shapes,
        more=lambda many, _: {"target": ids(max(many - 1, 1)), "lags_ms": Parameter(many)},
    ),
    tell=_tell_by_lag,
    told_under=("drop.order=by-lag",),
)
def by_lag(values: Values, readings: Readings) -> tuple[Any, Any]:
    """Return what is dropped with the replicas out of sync in assigned order, and by lag."""
    assigned, isr = values["assigned"], values["isr"]
    lags = [(r, lag) for r, lag in zip(assigned, values["lags_ms"], strict=True) if r not in isr]
    ranked = tuple(replica for replica, _ in sorted(lags, key=lambda pair: pair[1]))
    return _drop(values, readings), _drop(values, readings, ranked)


CHANGED: Final = _about_drop(
    "changed-in-between",
    "the drop rule",
    partial(_drop_shapes, more=lambda _, isr: {"minimum": ID, "isr_by_then": ids(max(isr - 1, 1))}),
    tell=lambda v: tell_drops(v, {**v, "isr": v["isr_by_then"]}),
)(_drop)
SUFFICIENT: Final = Hypothesis(
    "sufficient",
    "the in-sync set and top reach the minimum",
    lambda v: (v["minimum"] <= len(v["isr"])) & (v["minimum"] <= v["top"]),
)
STILL_SUFFICIENT: Final = Hypothesis(
    "still-sufficient",
    "what is in sync by the time of the write is a part of what was read, and reaches the minimum",
    lambda v: (
        distinct(v["isr_by_then"])
        & subset(v["isr_by_then"], v["isr"])
        & member(v["leader"], v["isr_by_then"])
        & (v["minimum"] <= len(v["isr_by_then"]))
    ),
)


# Theorems ---------------------------------------------------------------------------------------


_PLANNED: Final = (SOUND, ALL_LIVE)

THEOREMS: Final = Claims("kip-236", largest=2, tier="full")
"""Every promise that is refuted here."""
about = THEOREMS.about


@about(by_lag, "by-lag-keeps-wanted", "drop.keep-top", finding="drop-17")
@given(SOUND)
def _by_lag_keeps_wanted(values: Values, drops: Any) -> Truth:
    """Ranked by lag, a drop takes a wanted replica only where it would unranked."""
    unordered, ranked = (
        formula.any_of(member(replica, values["target"]) for replica in drop) for drop in drops
    )
    return formula.implies(ranked, unordered)


@about(CHANGED, "drop-of-older-isr-keeps-min", "state.write-conditional", finding="hypothesis-5")
@given(SOUND, SUFFICIENT, STILL_SUFFICIENT)
def _sufficient_by_then(values: Values, drop: Any) -> Truth:
    """A drop that was computed from an older in-sync set leaves the minimum in sync."""
    return formula.remaining(values["isr_by_then"], drop) >= values["minimum"]


@about(found_request, "failover-leaves-target", "request.consumed", finding="protocol-3")
@given(*_PLANNED, EXPANDED, ASKS_NEW)
def _failover_leaves_target(v: Values, flight: Any) -> Truth:
    """A new controller carries on what is in flight, whatever requests it finds."""
    return False if flight is None else subset(flight[0], v["target"]) & (flight[1] == v["top"])


@about(whole_request, "partitions-decided-alone", "request.consumed", finding="protocol-4")
@given(*_PLANNED)
def _partitions_decided_alone(_: Values, refused: Any) -> Truth:
    """Where a request is taken as a whole, one partition is decided as it would be alone."""
    return refused[0] == refused[1]


@about(either_order, "order-of-requests-is-free", "request.order.sequence", finding="protocol-5")
@given(*_PLANNED, ASKS_NEW)
def _order_of_requests_is_free(_: Values, targets: Any) -> Truth:
    """In whatever order two requests are dealt with, the same is in flight in the end."""
    return targets[0] is not None and targets[1] is not None and targets[0] == targets[1]


@about(growth, "growth-to-the-minimum-is-taken", "top.at-least-min-isr", finding="drop-20")
@given(*_PLANNED, ENOUGH_ASKED)
def _growth_to_the_minimum_is_taken(_: Values, taken: Any) -> Truth:
    """A request for as many replicas as min.insync.replicas asks for is taken."""
    return taken


@about(
    joined_while_completing,
    "cut-replica-stays-out",
    "isr.change.stopped-stays-out",
    finding="protocol-9",
)
@given(*_PLANNED, WAS_CUT)
def _cut_replica_stays_out(_: Values, joined: Any) -> Truth:
    """The rules keep out a replica that a completion has taken out of the in-sync set."""
    return formula.negate(joined)
