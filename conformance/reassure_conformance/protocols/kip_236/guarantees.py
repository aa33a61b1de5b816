"""KIP-236: the drop rule by enumeration of its arguments, and a partition sent to and fro."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from typing import Final

from reassure_conformance.answers.guarantees import Find, Guarantee, judge_machine, vary
from reassure_model.environment import Controller, Failover, Join
from reassure_model.outcome import Accepted
from reassure_model.protocols.kip_236 import compute_drop, system
from reassure_model.protocols.kip_236.machine import MACHINE
from reassure_model.protocols.kip_236.system import compute_plan
from reassure_spec.readings import Readings
from reassure_spec.znodes import ReplicaList

# The drop rule ----------------------------------------------------------------------------------

_DROP_CLAUSES: Final = (
    "drop.leader-kept",
    "drop.isr-at-least-min",
    "drop.slice.inclusive",
    "drop.before-expansion",
    "drop.protect-target",
    "drop.offline.skip",
)


@dataclass(frozen=True, slots=True)
class _Case:
    assigned: ReplicaList
    isr: ReplicaList
    leader: int
    top: int
    minimum: int
    target: ReplicaList

    def __str__(self) -> str:
        lists = [f"{n}={list(v)}" for n, v in (("A", self.assigned), ("I", self.isr))]
        numbers = f"L={self.leader} top={self.top} m={self.minimum} T={list(self.target)}"
        return f"{' '.join(lists)} {numbers}"


def _iterate_cases() -> Iterator[_Case]:
    """Yield what the rule is about: a leader in sync, top and in-sync set at least the minimum."""
    for size in (1, 2, 3):
        assigned = tuple(range(1, size + 1))
        for count in range(1, size + 1):
            for isr in permutations(assigned, count):
                for leader in (*sorted(isr), -1):
                    for top in range(1, size + 1):
                        for minimum in range(1, min(top, count) + 1):
                            for target in ((1,), (1, 2), (2, 3), (1, 3)):
                                yield _Case(assigned, isr, leader, top, minimum, target)


def _broken_by_drop(case: _Case, drop: ReplicaList) -> Iterator[str]:
    left = [replica for replica in case.isr if replica not in drop]
    if case.leader == -1:
        if not left:
            yield "drop.offline.skip"
        return
    if case.leader in drop:
        yield "drop.leader-kept"
    if len(left) < case.minimum:
        yield "drop.isr-at-least-min"
    if any(replica not in case.assigned for replica in drop):
        yield "drop.before-expansion"
    elif len(case.assigned) == case.top and drop:
        yield "drop.slice.inclusive"
    if any(replica in case.target and replica in case.isr for replica in drop):
        yield "drop.protect-target"


def judge_drop() -> Iterator[Guarantee]:
    """Yield the guarantees of the drop rule, by enumeration of up to three replicas."""
    names = ("drop.slice", "drop.evaluated", "drop.protects", "offline.drop")
    for under, readings in vary(names, "kip-236"):
        found: dict[str, str] = {}
        for case in _iterate_cases():
            numbers = (case.leader, case.isr, case.top, case.target)
            assigned = case.assigned
            if readings.drop_evaluated == "after-expansion":
                assigned = (*assigned, *(r for r in case.target if r not in assigned))
            drop = compute_drop(assigned, *numbers, readings)
            for clause_id in _broken_by_drop(case, drop):
                found.setdefault(clause_id, f"{case}: drop {list(drop)}")
        for clause_id in _DROP_CLAUSES:
            yield Guarantee(clause_id, under, "3 replicas", found.get(clause_id, ""))


# One partition ----------------------------------------------------------------------------------

_PROTOCOL: Final = (
    "drop.slice",
    "drop.protects",
    "drop.reevaluated-on-failover",
    "top.recorded",
    "offline.drop",
)
"""The readings that the rules for one partition tell apart and that are no matter of arguments."""
_ASSIGNED: Final = (1, 2)
_TARGETS: Final = (((1, 3), False), ((4,), False))


def _find_endless(state: system.System, readings: Readings) -> str | None:
    """Say so when replicas that catch up one by one, a failover after each, do not end it."""
    for _ in range(12):
        partition = compute_plan(state.partition, state.around, readings)[1]
        state = replace(state, partition=partition)
        if partition.reassignment is None:
            return None
        joins = [a for a in system.enabled(state, readings) if isinstance(a, Join)]
        actions: tuple[system.Action, ...] = (*joins[:1], Failover())
        for action in actions:
            outcome = system.step(state, action, readings)
            assert isinstance(outcome, Accepted)  # a leader may take in who has caught up
            state = outcome.state
    flight = state.partition.reassignment
    return None if flight is None else f"never completes: target {list(flight.target)}"


def _find_grown(state: system.System, readings: Readings) -> str | None:
    """Say so when more are assigned at rest than the first assignment and the target have."""
    partition = state.partition
    flight, assigned = partition.reassignment, partition.assigned or ()
    if flight is None or not MACHINE.is_at_rest(state, readings):
        return None
    grown = len(assigned) > len(_ASSIGNED) + len(flight.target)
    return f"assigned {list(assigned)}" if grown else None


def judge_protocol(depth: int) -> Iterator[Guarantee]:
    """Yield invariants and progress of one partition, where nobody dies and one request waits."""
    checks: dict[str, Find] = {
        "complete.carried-out": _find_endless,
        "top.bounds-assigned": _find_grown,
    }
    for each in MACHINE.properties:
        if not each.when_refused:
            checks.setdefault(each.clause, partial(MACHINE.find_broken, each))
    choices = dict(vary(_PROTOCOL, "kip-236"))
    born = system.make_system(_ASSIGNED, (1, 2, 3, 4))
    online = MACHINE.step(born, Controller(), choices["kip-236"])
    assert isinstance(online, Accepted)
    return judge_machine(
        MACHINE,
        choices,
        [
            (
                MACHINE.normalise(online.state),
                {"targets": _TARGETS},
                dict.fromkeys(("requests", "lags", "failovers")),
            )
        ],
        f"4 brokers, 2 targets, {depth} steps",
        depth,
        within={"submit": lambda _, after: len(after.partition.requests) <= 1},
        without=("die", "return"),
        checks=checks,
    )


def judge() -> Iterator[Guarantee]:
    """Yield what is guaranteed."""
    yield from judge_drop()
    yield from judge_protocol(12)
