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
    Environment,
    LeaderAndIsr,
    Partition,
    Reassignment,
    Request,
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
from reassure_proofs.engine.formula import (
    Truth,
    all_of,
    any_of,
    distinct,
    implies,
    inside,
    member,
    negate,
    remaining,
    subset,
)
from reassure_proofs.engine.statement import (
    ID,
    SET,
    Claims,
    Hypothesis,
    Parameter,
    Shape,
    Telling,
    Values,
    given,
    ids,
    make_subject,
)
from reassure_spec.readings import Readings
from reassure_spec.words import spell_replicas

_subject: Final = partial(make_subject, profile="kip-236")


# A partition and what the controller makes of it ------------------------------------------------


def _partition(values: Values) -> Partition:
    """Return the partition that the values describe, with nothing due but what they name."""
    flight = None
    if "target" in values:
        flight = Reassignment(values["target"], values["top"])
    asked = (name for name in ("requested", "requested_next") if name in values)
    requests = tuple(Request(number, values[name]) for number, name in enumerate(asked))
    state = LeaderAndIsr(values["leader"], 0, 1, values["isr"])
    return Partition(values["assigned"], state, flight, requests)


def _around(values: Values) -> Environment:
    return Environment(values["live"], values["live"], values.get("minimum", 1), 1)


def _named(values: Values) -> tuple[Any, ...]:
    lists = ("assigned", "isr", "target", "requested", "requested_next")
    return tuple(replica for name in lists for replica in values.get(name, ()))


SOUND: Final = Hypothesis(
    "sound",
    "the partition is as the rules leave it: no list names a replica twice, the in-sync set is "
    "assigned, the leader is in it, top is at least 1",
    lambda v: (
        all_of(
            distinct(v[name])
            for name in ("assigned", "isr", "target", "requested", "requested_next")
            if name in v
        )
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
        all_of(negate(member(r, v["assigned"])) for r in v["requested"])
        & all_of(
            negate(member(r, v["assigned"])) & negate(member(r, v["requested"]))
            for r in v.get("requested_next", ())
        )
    ),
)
EXPANDED: Final = Hypothesis(
    "expanded",
    "the whole target is assigned, and not in sync yet",
    lambda v: subset(v["target"], v["assigned"]) & negate(subset(v["target"], v["isr"])),
)


def _shapes(
    _: int,
    lists: tuple[tuple[int, ...], ...],
    names: tuple[str, ...],
    numbers: tuple[str, ...] = (),
) -> Iterator[Shape]:
    """Yield the shapes with the lists `names` of these lengths, smallest first."""
    for lengths in lists:
        shape = {name: ids(length) for name, length in zip(names, lengths, strict=True)}
        more = dict.fromkeys(numbers, ID)
        yield {**shape, "leader": ID, **more, "live": SET}


_IN_FLIGHT: Final = ("assigned", "isr", "target")


def _world(values: Values, **more: Any) -> tuple[str, ...]:
    """Return the commands that make the partition."""
    brokers = sorted(set(_named(values)))
    minimum = values.get("minimum", 1)
    least = f" min.insync.replicas={minimum}" if minimum != 1 else ""
    flight = (
        f" target={spell_replicas(values['target'])} top={values['top']}"
        if "target" in values
        else ""
    )
    lists = f"assigned={spell_replicas(values['assigned'])} isr={spell_replicas(values['isr'])}"
    return (
        f"world kip-236 brokers={spell_replicas(brokers)}{least}",
        f"topic {lists} leader={values['leader']}{flight}",
    )


_TWO: Final = ("assigned", "isr", "requested", "requested_next")


def take_in_either_order(values: Values, readings: Readings) -> tuple[Any, Any]:
    """Return what is in flight after two requests, in their order and in the opposite one."""
    partition, around = _partition(values), _around(values)
    turned = replace(partition, requests=partition.requests[::-1])
    plans = (compute_plan(each, around, readings)[1] for each in (partition, turned))
    first, second = (after.reassignment for after in plans)
    return (
        None if first is None else first.target,
        None if second is None else second.target,
    )


EITHER_ORDER: Final = _subject(
    "either-order",
    take_in_either_order,
    "two requests in either order",
    partial(_shapes, lists=((1, 1, 1, 1),), names=_TWO),
    bounded="one replica in each list",
    hashable=True,
)


def take_up_request_at_failover(values: Values, readings: Readings) -> Any:
    """Return the target in flight once a new controller has dealt with a request it found."""
    found = apply_failover(_partition(values), readings)
    flight = compute_plan(found, _around(values), readings)[1].reassignment
    return None if flight is None else (flight.target, flight.top)


FOUND_REQUEST: Final = _subject(
    "found-request",
    take_up_request_at_failover,
    "a request that a new controller finds",
    partial(
        _shapes,
        lists=((2, 1, 1, 1),),
        names=("assigned", "isr", "target", "requested"),
        numbers=("top",),
    ),
    bounded="2 replicas assigned, one in each other list",
    hashable=True,
    tell=lambda v: Telling(
        (
            *_world(v),
            f"submit target={spell_replicas(v['requested'])}",
            "fail-over",
            "controller",
            "show",
        )
    ),
)


def decide_for_two(values: Values, readings: Readings) -> tuple[Any, Any]:
    """Return what a request comes to for two partitions, one unknown: one by one, and whole."""
    request, around = Request(0, values["requested"]), _around(values)
    known = replace(_partition(values), requests=(request,))
    unknown = Partition(requests=(request,))
    alone = tuple(decide_request(request, each, around, readings) for each in (known, unknown))
    settled = settle_conflicts(alone, readings)
    return tuple(isinstance(each, Refusal) for each in alone), tuple(
        isinstance(each, Refusal) for each in settled
    )


WHOLE: Final = _subject(
    "whole-request",
    decide_for_two,
    "a request for two partitions, one of them unknown: whether each refuses it",
    partial(_shapes, lists=((1, 1, 1),), names=("assigned", "isr", "requested")),
    bounded="one replica in each list",
    hashable=True,
    tell=lambda v: Telling(
        (
            f"world kip-236 brokers={spell_replicas(sorted(set(_named(v))))}",
            f"topic partition=p assigned={spell_replicas(v['assigned'])} leader={v['leader']}",
            f"submit p={spell_replicas(v['requested'])} q={spell_replicas(v['requested'])}",
            "decide-all",
        ),
        ("request.conflict=whole-request",),
    ),
    changes=("request.conflict=whole-request",),
)


def take_growth(values: Values, readings: Readings) -> Any:
    """Return whether the controller takes a request for more replicas than are assigned."""
    partition = _partition(values)
    decision = decide_request(partition.requests[0], partition, _around(values), readings)
    return isinstance(decision, New)


GROWTH: Final = _subject(
    "growth",
    take_growth,
    "whether a request for more replicas is taken",
    partial(
        _shapes,
        lists=((1, 1, 2),),
        names=("assigned", "isr", "requested"),
        numbers=("minimum",),
    ),
    bounded="one replica assigned, two in the target",
    hashable=True,
    tell=lambda v: Telling(
        (*_world(v), f"submit target={spell_replicas(v['requested'])}", "controller")
    ),
)
ENOUGH_ASKED: Final = Hypothesis(
    "enough-asked",
    "the request names as many replicas as min.insync.replicas asks for",
    lambda v: (v["minimum"] >= 1) & (v["minimum"] <= len(v["requested"])),
)


def join_while_completing(values: Values, readings: Readings) -> Any:
    """Return whether the rules let a replica join that a completion has cut."""
    partition = replace(_partition(values), completing=True)
    state = partition.state
    assert state is not None
    joined = replace(state, isr=(*state.isr, values["replica"]))
    outcome = accept_write(partition, ChangeIsr(joined, state.leader), _around(values), readings)
    return isinstance(outcome, Accepted)


JOINED: Final = _subject(
    "joined-while-completing",
    join_while_completing,
    "whether a replica that was cut can join again",
    partial(_shapes, lists=((2, 1, 1),), names=_IN_FLIGHT, numbers=("top", "replica")),
    bounded="2 replicas assigned, one in the target",
    hashable=True,
    tell=lambda v: Telling(
        (
            *_world(v),
            "step",
            f"write-isr writer={v['leader']} isr={spell_replicas((*v['isr'], v['replica']))}",
            "owed",
        )
    ),
)
WAS_CUT: Final = Hypothesis(
    "was-cut",
    "the target is in sync, and the replica is assigned, not in the target and cut",
    lambda v: (
        subset(v["target"], v["isr"])
        & subset(v["isr"], v["target"])
        & member(v["replica"], v["assigned"])
        & negate(member(v["replica"], v["isr"]))
    ),
)

# The drop rule once more ------------------------------------------------------------------------


def _drop_shapes(_: int, more: Callable[[int, int], dict[str, Parameter]]) -> Iterator[Shape]:
    for assigned in (1, 2, 3):
        for isr in range(1, assigned + 1):
            shape = {"assigned": ids(assigned), "isr": ids(isr), "leader": ID}
            yield {**shape, "top": ID, **more(assigned, isr)}


def tell_drop(values: Values, *readings: str) -> Telling:
    """Return a question about the drop rule as a scenario."""
    lists = f"assigned={spell_replicas(values['assigned'])} leader={values['leader']}"
    rest = f"isr={spell_replicas(values['isr'])} top={values['top']}"
    drop = f"drop {lists} {rest} target={spell_replicas(values.get('target', ()))}"
    return Telling(("world tables", drop), readings)


def _drop(values: Values, readings: Readings, others: Any = None) -> Any:
    arguments = (values["assigned"], values["leader"], values["isr"], values["top"])
    return compute_drop(*arguments, values.get("target", ()), readings, others)


def drop_by_lag_and_not(values: Values, readings: Readings) -> tuple[Any, Any]:
    """Return what is dropped with the replicas out of sync in assigned order, and by lag."""
    assigned, isr = values["assigned"], values["isr"]
    lags = [(r, lag) for r, lag in zip(assigned, values["lags_ms"], strict=True) if r not in isr]
    by_lag = tuple(replica for replica, _ in sorted(lags, key=lambda pair: pair[1]))
    return _drop(values, readings), _drop(values, readings, by_lag)


def _tell_by_lag(values: Values) -> Telling:
    lags = dict(zip(values["assigned"], values["lags_ms"], strict=True))
    others = sorted((r for r in values["assigned"] if r not in values["isr"]), key=lags.__getitem__)
    world, drop = tell_drop(values).commands
    return Telling((world, drop, f"{drop} others={spell_replicas(others)}"), ("drop.order=by-lag",))


BY_LAG: Final = _subject(
    "drop-by-lag",
    drop_by_lag_and_not,
    "the drop rule, unordered and by lag,",
    partial(
        _drop_shapes,
        more=lambda assigned, _: {
            "target": ids(max(assigned - 1, 1)),
            "lags_ms": Parameter(assigned),
        },
    ),
    bounded="up to 3 replicas assigned",
    tell=_tell_by_lag,
)


CHANGED: Final = _subject(
    "changed-in-between",
    _drop,
    "the drop rule",
    partial(_drop_shapes, more=lambda _, isr: {"minimum": ID, "isr_by_then": ids(max(isr - 1, 1))}),
    bounded="up to 3 replicas assigned",
    tell=lambda v: Telling(
        (
            *tell_drop(v).commands,
            tell_drop({**v, "isr": v["isr_by_then"]}).commands[1],
        )
    ),
)
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


@about(BY_LAG, "by-lag-keeps-wanted", "drop.keep-top", finding="drop-17")
@given(SOUND)
def _by_lag_keeps_wanted(values: Values, drops: Any) -> Truth:
    """Ranked by lag, a drop takes a wanted replica only where it would unranked."""
    unordered, by_lag = (
        any_of(member(replica, values["target"]) for replica in drop) for drop in drops
    )
    return implies(by_lag, unordered)


@about(CHANGED, "drop-of-older-isr-keeps-min", "state.write-conditional", finding="hypothesis-5")
@given(SOUND, SUFFICIENT, STILL_SUFFICIENT)
def _sufficient_by_then(values: Values, drop: Any) -> Truth:
    """A drop that was computed from an older in-sync set leaves the minimum in sync."""
    return remaining(values["isr_by_then"], drop) >= values["minimum"]


@about(FOUND_REQUEST, "failover-leaves-target", "request.consumed", finding="protocol-3")
@given(*_PLANNED, EXPANDED, ASKS_NEW)
def _failover_leaves_target(v: Values, flight: Any) -> Truth:
    """A new controller carries on what is in flight, whatever requests it finds."""
    return False if flight is None else subset(flight[0], v["target"]) & (flight[1] == v["top"])


@about(WHOLE, "partitions-decided-alone", "request.consumed", finding="protocol-4")
@given(*_PLANNED)
def _partitions_decided_alone(_: Values, refused: Any) -> Truth:
    """Where a request is taken as a whole, one partition is decided as it would be alone."""
    return refused[0] == refused[1]


@about(EITHER_ORDER, "order-of-requests-is-free", "request.order.sequence", finding="protocol-5")
@given(*_PLANNED, ASKS_NEW)
def _order_of_requests_is_free(_: Values, targets: Any) -> Truth:
    """In whatever order two requests are dealt with, the same is in flight in the end."""
    return targets[0] is not None and targets[1] is not None and targets[0] == targets[1]


@about(GROWTH, "growth-to-the-minimum-is-taken", "top.at-least-min-isr", finding="drop-20")
@given(SOUND, ALL_LIVE, ENOUGH_ASKED)
def _growth_to_the_minimum_is_taken(_: Values, taken: Any) -> Truth:
    """A request for as many replicas as min.insync.replicas asks for is taken."""
    return taken


@about(JOINED, "cut-replica-stays-out", "isr.change.stopped-stays-out", finding="protocol-9")
@given(*_PLANNED, WAS_CUT)
def _cut_replica_stays_out(_: Values, joined: Any) -> Truth:
    """The rules keep out a replica that a completion has taken out of the in-sync set."""
    return negate(joined)
