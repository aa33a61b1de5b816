"""Promises of the documents that the model's functions break, and the smallest arguments that do.

Beside the refutations among `reassure_proofs.theorems`, these are about more than one function:
what the controller's whole plan makes of a partition (`kip_236.obligations.compute_plan`), what a
leader concludes from several fetches. All arguments are symbolic; only lengths are bounded. Each
tells its counterexample as a scenario where a world has the commands for it.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from reassure_model.kip_236.drop import compute_drop
from reassure_model.kip_236.obligations import compute_plan, next_write
from reassure_model.kip_236.requests import Change, New, Refusal, decide_request, settle_conflicts
from reassure_model.kip_236.rules import accept_write, apply_failover
from reassure_model.kip_236.state import (
    Environment,
    LeaderAndIsr,
    Partition,
    Reassignment,
    Request,
)
from reassure_model.kip_236.writes import ChangeIsr
from reassure_model.outcome import Accepted
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
    Hypothesis,
    Parameter,
    Shape,
    Subject,
    Telling,
    Theorem,
    Values,
    make_subject,
)
from reassure_spec.readings import Readings
from reassure_spec.words import spell_replicas

_ID: Final = Parameter(floor=1)
_SET: Final = Parameter(kind="set")


def _subject(
    name: str,
    function: Callable[..., Any],
    words: str,
    shapes: Callable[[int], Iterator[Shape]],
    profile: str = "kip-236",
    **more: Any,
) -> Subject:
    """Return a subject whose function takes values and readings."""
    return make_subject(
        name, lambda readings: partial(function, readings=readings), words, shapes, profile, **more
    )


def _ids(length: int) -> Parameter:
    return Parameter(length, floor=1)


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
MINIMUM_MET: Final = Hypothesis(
    "minimum-met",
    "the in-sync set and top reach the minimum, which is at least 1",
    lambda v: (v["minimum"] >= 1) & (v["minimum"] <= len(v["isr"])) & (v["minimum"] <= v["top"]),
)


def _shapes(
    _: int,
    lists: tuple[tuple[int, ...], ...],
    names: tuple[str, ...],
    numbers: tuple[str, ...] = (),
) -> Iterator[Shape]:
    """Yield the shapes with the lists `names` of these lengths, smallest first."""
    for lengths in lists:
        shape = {name: _ids(length) for name, length in zip(names, lengths, strict=True)}
        more = dict.fromkeys(numbers, _ID)
        yield {**shape, "leader": _ID, **more, "live": _SET}


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


def restart(values: Values, readings: Readings) -> Any:
    """Return the partition after a failover that evaluates the drop rule again."""
    found = apply_failover(_partition(values), readings)
    return compute_plan(found, _around(values), readings)[1]


RESTARTED: Final = _subject(
    "restarted",
    restart,
    "a failover that counts as a change",
    partial(
        _shapes,
        lists=((2, 1, 1), (2, 2, 1), (3, 2, 2), (3, 3, 3)),
        names=_IN_FLIGHT,
        numbers=("top",),
    ),
    bounded="up to 3 replicas assigned",
    hashable=True,
    tell=lambda v: Telling(
        (*_world(v), "fail-over", "controller", "show"), ("drop.reevaluated-on-failover=yes",)
    ),
    changes=("drop.reevaluated-on-failover=yes",),
)


def _finished_copies_kept(values: Values, after: Any) -> Truth:
    return all_of(
        implies(member(replica, values["isr"]), member(replica, after.state.isr))
        for replica in values["target"]
    )


def catch_up_and_complete(values: Values, readings: Readings) -> Any:
    """Return the partition after the whole target has caught up and the controller rests."""
    around = _around(values)
    partition = compute_plan(_partition(values), around, readings)[1]
    flight, state = partition.reassignment, partition.state
    for replica in flight.target if flight is not None else ():
        assert state is not None
        if replica not in state.isr:
            joined = replace(state, isr=(*state.isr, replica))
            outcome = accept_write(partition, ChangeIsr(joined, state.leader), around, readings)
            assert isinstance(outcome, Accepted)
            partition = outcome.state
            state = partition.state
    return compute_plan(partition, around, readings)[1]


def _tell_completion(values: Values) -> Telling:
    missing = [r for r in values["target"] if r not in values["isr"]]
    joins = (f"join replica={spell_replicas(missing)}",) if missing else ()
    return Telling((*_world(values), *joins, "controller", "show"))


COMPLETED: Final = _subject(
    "completed",
    catch_up_and_complete,
    "the completion of the reassignment",
    partial(_shapes, lists=((2, 1, 1), (2, 2, 1)), names=_IN_FLIGHT, numbers=("top", "minimum")),
    bounded="up to 2 replicas assigned, one in the target",
    hashable=True,
    tell=_tell_completion,
)


def _isr_still_sufficient(values: Values, after: Any) -> Truth:
    return len(after.state.isr) >= values["minimum"]


def take_two_requests(values: Values, readings: Readings) -> Any:
    """Return the partition after the controller has dealt with two requests."""
    return compute_plan(_partition(values), _around(values), readings)[1]


_TWO: Final = ("assigned", "isr", "requested", "requested_next")
TOP_ANEW: Final = _subject(
    "top-anew",
    take_two_requests,
    "a change that takes top anew",
    partial(_shapes, lists=((1, 1, 1, 1),), names=_TWO),
    bounded="one replica in each list",
    hashable=True,
    tell=lambda v: Telling(
        (
            *_world(v),
            f"submit target={spell_replicas(v['requested'])}",
            f"submit target={spell_replicas(v['requested_next'])}",
            "controller",
            "show",
        ),
        ("top.recorded=each-change",),
    ),
    changes=("top.recorded=each-change",),
)


def _assigned_bounded(values: Values, after: Any) -> Truth:
    return len(after.assigned) <= len(values["assigned"]) + len(values["requested_next"])


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


def cut_after_record(values: Values, readings: Readings) -> tuple[Any, Any]:
    """Return the partition after a change, and after one with a failover behind its record."""
    partition, around = _partition(values), _around(values)
    plan, final = compute_plan(partition, around, readings)
    recorded = accept_write(partition, plan[0].write, around, readings)
    assert isinstance(recorded, Accepted)
    found = apply_failover(recorded.state, readings)
    return final, compute_plan(found, around, readings)[1]


CUT: Final = _subject(
    "cut-after-record",
    cut_after_record,
    "a change, and the same with a failover behind its record,",
    partial(
        _shapes,
        lists=((2, 1, 1, 1), (3, 1, 2, 1)),
        names=("assigned", "isr", "target", "requested"),
        numbers=("top",),
    ),
    bounded="up to 3 replicas assigned, one in sync, one asked for",
    hashable=True,
    tell=lambda v: Telling(
        (
            *_world(v),
            f"submit target={spell_replicas(v['requested'])}",
            "step",
            "fail-over",
            "controller",
            "show",
        )
    ),
)


def _nothing_more_assigned(_: Values, after: Any) -> Truth:
    return subset(after[1].assigned, after[0].assigned)


def record_after_effects(values: Values, readings: Readings) -> Any:
    """Return the top that is recorded where the target joined the assignment first."""
    added = tuple(r for r in values["requested"] if r not in values["assigned"])
    begun = replace(_partition(values), assigned=values["assigned"] + added)
    owed = next_write(apply_failover(begun, readings), _around(values), readings)
    assert owed is not None
    return getattr(owed.write, "reassignment", None)


def _tell_effects_first(values: Values) -> Telling:
    added = tuple(r for r in values["requested"] if r not in values["assigned"])
    begun = {**values, "assigned": values["assigned"] + added}
    return Telling(
        (
            *_world(begun),
            f"submit target={spell_replicas(values['requested'])}",
            "fail-over",
            "step",
        )
    )


EFFECTS_FIRST: Final = _subject(
    "effects-first",
    record_after_effects,
    "the record that is made after a crash",
    partial(_shapes, lists=((1, 1, 1),), names=("assigned", "isr", "requested")),
    bounded="one replica in each list",
    hashable=True,
    tell=_tell_effects_first,
)


def ask_again(values: Values, readings: Readings) -> Any:
    """Return whether a request for the target in flight is a change."""
    partition = replace(_partition(values), requests=(Request(0, values["target"]),))
    decision = decide_request(partition.requests[0], partition, _around(values), readings)
    return isinstance(decision, Change)


ASKED_AGAIN: Final = _subject(
    "asked-again",
    ask_again,
    "whether a request for the target in flight is a change",
    partial(_shapes, lists=((1, 1, 1), (2, 1, 1)), names=_IN_FLIGHT, numbers=("top",)),
    bounded="up to 2 replicas assigned",
    hashable=True,
    tell=lambda v: Telling(
        (*_world(v), f"submit target={spell_replicas(v['target'])}", "decide"),
        ("request.same-target=restart",),
    ),
    changes=("request.same-target=restart",),
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
            shape = {"assigned": _ids(assigned), "isr": _ids(isr), "leader": _ID}
            yield {**shape, "top": _ID, **more(assigned, isr)}


def tell_drop(values: Values, *readings: str) -> Telling:
    """Return a question about the drop rule as a scenario."""
    lists = f"assigned={spell_replicas(values['assigned'])} leader={values['leader']}"
    rest = f"isr={spell_replicas(values['isr'])} top={values['top']}"
    drop = f"drop {lists} {rest} target={spell_replicas(values.get('target', ()))}"
    return Telling(("world tables", drop), readings)


def _drop(values: Values, readings: Readings, others: Any = None) -> Any:
    arguments = (values["assigned"], values["leader"], values["isr"], values["top"])
    return compute_drop(*arguments, values.get("target", ()), readings, others)


CANCELLED: Final = _subject(
    "cancelled",
    _drop,
    "the drop rule",
    partial(_drop_shapes, more=lambda assigned, _: {"target": _ids(max(assigned - 1, 1))}),
    bounded="up to 3 replicas assigned",
    tell=tell_drop,
)
ORIGINALS_IN_SYNC: Final = Hypothesis(
    "originals-in-sync",
    "the change goes back to the original replicas, all of which are in sync",
    lambda v: (v["top"] == len(v["target"])) & subset(v["target"], v["isr"]),
)


def _only_originals_left(values: Values, drop: Any) -> Truth:
    return all_of(
        member(replica, values["target"]) | member(replica, drop) for replica in values["assigned"]
    )


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
            "target": _ids(max(assigned - 1, 1)),
            "lags_ms": Parameter(assigned),
        },
    ),
    bounded="up to 3 replicas assigned",
    tell=_tell_by_lag,
)


def _by_lag_keeps_wanted(values: Values, drops: Any) -> Truth:
    unordered, by_lag = (
        any_of(member(replica, values["target"]) for replica in drop) for drop in drops
    )
    return implies(by_lag, unordered)


CHANGED: Final = _subject(
    "changed-in-between",
    _drop,
    "the drop rule",
    partial(
        _drop_shapes, more=lambda _, isr: {"minimum": _ID, "isr_by_then": _ids(max(isr - 1, 1))}
    ),
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


def _sufficient_by_then(values: Values, drop: Any) -> Truth:
    return remaining(values["isr_by_then"], drop) >= values["minimum"]


# Theorems ---------------------------------------------------------------------------------------


def _refuted(
    name: str,
    clause: str,
    statement: str,
    subject: Subject,
    hypotheses: tuple[Hypothesis, ...],
    claim: Any,
    finding: str,
    profile: str = "kip-236",
) -> Theorem:
    return Theorem(
        name,
        clause,
        statement,
        subject,
        hypotheses,
        claim,
        profile,
        expected="refuted",
        finding=finding,
        tier="full",
        largest=2,
    )


_PLANNED: Final = (SOUND, ALL_LIVE)

REFUTATIONS: Final[tuple[Theorem, ...]] = (
    _refuted(
        "restart-keeps-finished-copies",
        "drop.carried-out",
        "Where a failover evaluates the drop rule again, no finished copy of the target is lost.",
        RESTARTED,
        (*_PLANNED, EXPANDED),
        _finished_copies_kept,
        "drop-5",
    ),
    _refuted(
        "cancel-leaves-originals-only",
        "drop.leader-kept",
        "A change back to the original replicas, all in sync, leaves no other replica.",
        CANCELLED,
        (SOUND, ORIGINALS_IN_SYNC),
        _only_originals_left,
        "drop-7",
    ),
    _refuted(
        "completion-keeps-min-isr",
        "target.at-least-min-isr",
        "As written, a completed reassignment leaves min.insync.replicas replicas in sync.",
        COMPLETED,
        (*_PLANNED, MINIMUM_MET),
        _isr_still_sufficient,
        "drop-10",
    ),
    _refuted(
        "top-anew-bounds-assigned",
        "top.once-per-chain",
        "Where each change takes top anew, no more are assigned than at first and in the target.",
        TOP_ANEW,
        _PLANNED,
        _assigned_bounded,
        "drop-12",
    ),
    _refuted(
        "failover-keeps-drop",
        "drop.carried-out",
        "A failover between the record of a change and its drop leaves no replica more.",
        CUT,
        (*_PLANNED, EXPANDED),
        _nothing_more_assigned,
        "drop-16",
    ),
    _refuted(
        "by-lag-keeps-wanted",
        "drop.keep-top",
        "Ranked by lag, a drop takes a wanted replica only where it would unranked.",
        BY_LAG,
        (SOUND,),
        _by_lag_keeps_wanted,
        "drop-17",
    ),
    _refuted(
        "drop-of-older-isr-keeps-min",
        "state.write-conditional",
        "A drop that was computed from an older in-sync set leaves the minimum in sync.",
        CHANGED,
        (SOUND, SUFFICIENT, STILL_SUFFICIENT),
        _sufficient_by_then,
        "hypothesis-5",
    ),
    _refuted(
        "effects-first-keep-top",
        "child.before-effects",
        "Where the target is added before the record is made, a crash leaves top as it was.",
        EFFECTS_FIRST,
        (*_PLANNED, ASKS_NEW),
        lambda v, record: record is not None and record.top == len(v["assigned"]),
        "protocol-1",
    ),
    _refuted(
        "failover-leaves-target",
        "request.consumed",
        "A new controller carries on what is in flight, whatever requests it finds.",
        FOUND_REQUEST,
        (*_PLANNED, EXPANDED, ASKS_NEW),
        lambda v, flight: (
            False if flight is None else subset(flight[0], v["target"]) & (flight[1] == v["top"])
        ),
        "protocol-3",
    ),
    _refuted(
        "partitions-decided-alone",
        "request.consumed",
        "Where a request is taken as a whole, one partition is decided as it would be alone.",
        WHOLE,
        _PLANNED,
        lambda _, refused: refused[0] == refused[1],
        "protocol-4",
    ),
    _refuted(
        "order-of-requests-is-free",
        "request.order.sequence",
        "In whatever order two requests are dealt with, the same is in flight in the end.",
        EITHER_ORDER,
        (*_PLANNED, ASKS_NEW),
        lambda _, targets: (
            targets[0] is not None and targets[1] is not None and targets[0] == targets[1]
        ),
        "protocol-5",
    ),
    _refuted(
        "same-target-is-no-change",
        "request.same-target.no-change",
        "Where nothing is said of it, asking for the target in flight is no change.",
        ASKED_AGAIN,
        (*_PLANNED, EXPANDED),
        lambda _, changed: negate(changed),
        "protocol-7",
    ),
    _refuted(
        "growth-to-the-minimum-is-taken",
        "top.at-least-min-isr",
        "A request for as many replicas as min.insync.replicas asks for is taken.",
        GROWTH,
        (SOUND, ALL_LIVE, ENOUGH_ASKED),
        lambda _, taken: taken,
        "drop-20",
    ),
    _refuted(
        "cut-replica-stays-out",
        "isr.change.stopped-stays-out",
        "The rules keep out a replica that a completion has taken out of the in-sync set.",
        JOINED,
        (*_PLANNED, WAS_CUT),
        lambda _, joined: negate(joined),
        "protocol-9",
    ),
)
"""Every promise that is refuted here."""
