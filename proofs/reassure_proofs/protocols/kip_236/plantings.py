"""States in which a controller shows the counterexamples to left-out hypotheses.

A counterexample to a theorem about the drop rule, or about a reassignment in flight, is made a
partition that a controller finds when it takes office. The model's controller is run on it here
(`run_model`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from reassure_model.partition import (
    Environment,
    LeaderAndIsr,
    Partition,
    Reassignment,
    Request,
)
from reassure_model.protocols.kip_236 import apply_failover
from reassure_model.protocols.kip_236.system import compute_plan
from reassure_proofs.engine.replays import NotShown
from reassure_proofs.engine.statement import Theorem, Values
from reassure_spec.readings import get_profile
from reassure_spec.znodes import ReplicaList

IN_MEMORY: Final = "what is in memory there, a controller that takes office works out anew"


@dataclass(frozen=True, slots=True)
class Planting:
    """A partition as it is written into ZooKeeper before a controller takes office."""

    profile: str
    brokers: ReplicaList
    """Those that are alive."""
    minimum: int
    assigned: ReplicaList
    leader: int
    isr: ReplicaList
    target: ReplicaList
    """Of the reassignment in flight."""
    top: int
    requested: ReplicaList = ()
    """What a client asks for once the controller rests, () for nothing."""


@dataclass(frozen=True, slots=True)
class End:
    """A partition once the controller rests."""

    assigned: ReplicaList
    leader: int
    isr: ReplicaList
    target: ReplicaList | None
    """What is still in flight."""

    def __str__(self) -> str:
        """Return it in one line."""
        lists = f"assigned={list(self.assigned)} leader={self.leader} isr={list(self.isr)}"
        return lists if self.target is None else f"{lists} target={list(self.target)}"


def run_model(planting: Planting) -> End:
    """Return where the model's controller comes to rest. Raises NotShown where it does not."""
    readings = get_profile(planting.profile)
    live = frozenset(planting.brokers)
    around = Environment(live, live, planting.minimum, 1)
    partition = Partition(
        planting.assigned,
        LeaderAndIsr(planting.leader, 0, 0, planting.isr),
        Reassignment(planting.target, planting.top),
    )
    try:
        after = compute_plan(apply_failover(partition, readings), around, readings)[1]
        if planting.requested:
            asked = replace(after, requests=(Request(0, planting.requested),))
            after = compute_plan(asked, around, readings)[1]
    except RuntimeError:
        raise NotShown("the model's own controller halts there: its write is refused") from None
    assert after.state is not None
    flight = after.reassignment
    target = None if flight is None else flight.target
    return End(after.assigned or (), after.state.leader, after.state.isr, target)


def _plant(theorem: Theorem, values: Values, brokers: Iterable[int], target: Any) -> Planting:
    assigned, leader, isr = values["assigned"], values["leader"], values["isr"]
    named = tuple(sorted(brokers))
    minimum, top = values["minimum"], values["top"]
    return Planting(theorem.profile, named, minimum, assigned, leader, isr, tuple(target), top)


def dropped(planting: Planting, end: End) -> ReplicaList:
    """Return the replicas that were assigned and are no more, in their order."""
    return tuple(replica for replica in planting.assigned if replica not in end.assigned)


def show_drop(theorem: Theorem, values: Values) -> tuple[Planting, End]:
    """Find a way by which the controller comes to evaluate the drop rule on these arguments.

    Return the state that it finds, and where it comes to rest. Raises NotShown where there is none.
    """
    wanted = theorem.subject.function(values)
    _check_drop(values)
    seen = ""
    for planting in _drop_plantings(theorem, values):
        try:
            end = run_model(planting)
        except NotShown as reason:
            seen = str(reason)
            continue
        if dropped(planting, end) == wanted and not theorem.claim(values, dropped(planting, end)):
            return planting, end
        seen = seen or "no change that a controller sees has the rule evaluated there"
    raise NotShown(seen)


def _check_drop(values: Values) -> None:
    assigned, isr, leader = values["assigned"], values["isr"], values["leader"]
    if min((*assigned, *isr), default=0) < 0:
        raise NotShown("a broker's number is not negative")
    if leader not in isr:
        raise NotShown("a controller evaluates the rule only while a leader is in sync")
    if len(set(assigned)) < len(assigned):
        raise NotShown("an assignment that names a replica twice is refused before it is written")
    out_of_sync = tuple(replica for replica in assigned if replica not in isr)
    if values.get("others", out_of_sync) != out_of_sync:
        raise NotShown("a controller ranks in the order in which replicas are stored")


def _drop_plantings(theorem: Theorem, values: Values) -> Iterator[Planting]:
    """Yield the ways to a drop: one that a new controller finds undone, and a change."""
    assigned, asked = values["assigned"], values.get("target", ())
    named = {*assigned, *values["isr"], values["leader"], *asked}
    fresh = max(named) + 1
    found = _plant(theorem, values, {*named, fresh}, asked if "target" in values else (fresh,))
    yield found
    # The reassignment in flight has its target assigned already, and waits for it.
    yield replace(found, target=assigned, requested=found.target)


def show_in_flight(theorem: Theorem, values: Values) -> tuple[Planting, End]:
    """Return the reassignment in flight as the controller finds it, and where that comes to rest.

    Raises NotShown where a controller that takes office does not find it so.
    """
    if values.get("drop_due") or values.get("completing") or values.get("announce_due"):
        raise NotShown(IN_MEMORY)
    if not values["live"] and theorem.name != "reassignment-completes":
        raise NotShown("no broker is alive")
    planting = _plant(theorem, values, values["live"], values["target"])
    return planting, run_model(planting)
