"""What the world `tables` asks of KIP-236: the drop rule, and what becomes of a request."""

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Final

from reassure_conformance.scenarios.worlds.tables import parse_set
from reassure_model.partition import Environment, Partition, Reassignment, Request
from reassure_model.protocols.kip_236 import (
    New,
    NothingToDo,
    Refusal,
    compute_drop,
    compute_existing,
    compute_kept,
    decide_request,
)
from reassure_spec.readings import Readings
from reassure_spec.words import (
    Arguments,
    check_arguments,
    format_replicas,
    parse_number,
    parse_replicas,
)
from reassure_spec.znodes import ReplicaList

Drop = Callable[[Readings, Arguments, ReplicaList | None], str]


def drop_once(readings: Readings, arguments: Arguments, others: ReplicaList | None) -> str:
    """Return who exists, who is kept and who is dropped, in one order of those out of sync."""
    assigned = parse_replicas("assigned", arguments["assigned"])
    isr = parse_replicas("isr", arguments["isr"])
    target = parse_replicas("target", arguments["target"])
    leader = parse_number("leader", arguments["leader"])
    top = parse_number("top", arguments["top"])
    existing = compute_existing(assigned, leader, isr, others)
    kept = compute_kept(existing, top, readings)
    drop = compute_drop(assigned, leader, isr, top, target, readings, others)
    left = tuple(replica for replica in assigned if replica not in drop)
    in_sync = tuple(replica for replica in isr if replica not in drop)
    return "\n".join(
        (
            f"existing {format_replicas(existing)}, the first {len(kept)} are kept",
            f"drop {format_replicas(drop)}",
            f"assigned {format_replicas(left)} isr {format_replicas(in_sync)}",
        )
    )


def ask_drop(readings: Readings, arguments: Arguments, drop: Drop = drop_once) -> str:
    """Drop once; `others` is an order of those out of sync, `lag` (as `2:50,3:10`) gives one.

    Where the reading is that they stand in no order, with `lag` every outcome is listed.
    """
    required = ("assigned", "leader", "isr", "top", "target")
    check_arguments(arguments, required, ("others", "lag"))
    orders: list[ReplicaList | None] = [None]
    if "others" in arguments:
        orders = [parse_replicas("others", arguments["others"])]
    elif "lag" in arguments:
        orders = list(_order_by_lag(arguments, readings))
    return "\n".join(dict.fromkeys(drop(readings, arguments, each) for each in orders))


def _decide(readings: Readings, arguments: Arguments) -> str:
    """Say what becomes of a request; `flight` and `top` describe what is in flight."""
    optional = ("flight", "top", "flight-legacy", "legacy", "live", "known", "min")
    check_arguments(arguments, ("assigned", "target"), optional)
    assigned = arguments["assigned"]
    flight = None
    if "flight" in arguments:
        target = parse_replicas("flight", arguments["flight"])
        top = parse_number("top", arguments.get("top", "1"))
        flight = Reassignment(target, top, "flight-legacy" in arguments)
    partition = Partition(
        None if assigned == "none" else parse_replicas("assigned", assigned),
        reassignment=flight,
    )
    live = parse_set("live", {"live": arguments.get("live", "1,2,3,4")})
    known = live | parse_set("known", {"known": arguments.get("known", "none")})
    around = Environment(live, known, parse_number("min", arguments.get("min", "1")))
    wanted = parse_replicas("target", arguments["target"])
    request = Request(0, wanted, "legacy" in arguments)
    return _format_decision(request, partition, around, readings)


def _order_by_lag(arguments: Arguments, readings: Readings) -> Iterator[ReplicaList]:
    """Yield the orders in which the replicas out of sync may stand, given how far each lags."""
    lags: dict[int, int] = {}
    for item in arguments["lag"].split(","):
        replica, _, lag = item.partition(":")
        lags[parse_number("lag", replica)] = parse_number("lag", lag)
    if readings.drop_order == "by-lag":
        yield tuple(sorted(lags, key=lambda replica: lags[replica]))
    else:
        yield from permutations(sorted(lags))


def _format_decision(
    request: Request, partition: Partition, around: Environment, readings: Readings
) -> str:
    decision = decide_request(request, partition, around, readings)
    if isinstance(decision, Refusal):
        return f"refused by {decision.clause}: {decision.reason}"
    if isinstance(decision, NothingToDo):
        return f"nothing to do by {decision.clause}"
    if isinstance(decision, New):
        return f"new reassignment, top {len(partition.assigned or ())}"
    return "change of the reassignment in flight"


QUESTIONS: Final = {"drop": ask_drop, "decide": _decide}
