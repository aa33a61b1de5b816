"""What the explored machine of shipped controllers writes, held against the rules of the judge."""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from reassure_judge.protocols.kafka_zk import accept
from reassure_judge.protocols.kafka_zk import partition as kafka_partition
from reassure_judge.protocols.kafka_zk.partition import AlterIsr, Logged, WriteLists, Written
from reassure_judge.protocols.kafka_zk.rules import find_nobody_electable, find_outside
from reassure_judge.protocols.kafka_zk.writes import fail_over, next_obligation
from reassure_model import copies
from reassure_model.copies import Append, can_join
from reassure_model.environment import Controller, Die, Failover, Join, NotPossible, Return
from reassure_model.outcome import Rejected
from reassure_model.partition import Environment, LeaderAndIsr
from reassure_model.protocols import kafka_zk
from reassure_model.protocols.kafka_zk import (
    Alter,
    Announce,
    Assignment,
    CutIsr,
    DeleteZnode,
    Elect,
    Plan,
    Prefer,
    RemoveEntry,
    Shipped,
    ShutDown,
    WriteEntry,
    make_shipped,
    next_effect,
    plan_phase,
    reassign_to,
)
from reassure_model.protocols.kafka_zk import machine as happenings
from reassure_model.protocols.kafka_zk.machine import (
    MACHINE,
    find_leaderless,
    find_offline_for_good,
)
from reassure_model.selectors import select_reassigned
from reassure_model.writes import ChangeIsr, WriteState
from reassure_spec.readings import get_profile
from reassure_spec.znodes import NO_LEADER, ReplicaList

READINGS = get_profile("kafka-zk")
BROKERS = frozenset({1, 2, 3})
WORLDS: tuple[tuple[ReplicaList, tuple[ReplicaList | None, ...], dict[type, int]], ...] = (
    ((1,), (None, (2, 3), (2,)), {Alter: 2, Die: 1, Failover: 1}),
    ((1, 2), (None, (3, 2), (2, 1)), {Alter: 2, Die: 1, ShutDown: 1, Prefer: 1}),
    ((1, 2), ((2, 3),), {Alter: 1, Die: 2, Failover: 1}),
    ((1, 2), ((2,),), {Alter: 1, WriteEntry: 2, DeleteZnode: 1, Failover: 1}),
)
"""What is assigned, what calls may ask for, and how often what does not heal may happen."""


def list_actions(shipped: Shipped, targets: tuple[ReplicaList | None, ...]) -> Iterator[Any]:
    """Yield whatever may be possible, and in the middle of an event what the controller meets then.

    That a broker died it hears of with another event, and from 2.7 on it lets replicas join itself.
    """
    if shipped.plan:
        yield from (Controller(), Failover())
        return
    yield from (a for a in happenings.enabled(shipped, targets) if not isinstance(a, Append))
    yield from (Prefer(), DeleteZnode(), *(ShutDown(broker) for broker in sorted(BROKERS)))
    yield from (WriteEntry((3,)), WriteEntry((1, 3)))


def list_writes(before: Shipped, action: Any, after: Shipped) -> Iterator[Written]:
    """Yield what a step leaves in ZooKeeper, clients' entries excepted."""
    if after.assignment != before.assignment:
        yield WriteLists(after.assignment)
    state = LeaderAndIsr(after.leader, after.leader_epoch, 1, after.isr)
    if after.leader_epoch != before.leader_epoch:
        yield WriteState(state)
    elif after.isr != before.isr:
        yield AlterIsr(state)
    if isinstance(action, Controller) and before.entry is not None and after.entry is None:
        yield kafka_partition.DropEntry()


def see(shipped: Shipped, action: Any) -> Environment:
    """Return what the rules may read: who stops, or was seen to be dead, is about to go."""
    gone = {e.replica for e in shipped.plan if isinstance(e, CutIsr) and e.step == "death"}
    if isinstance(action, ShutDown):
        gone |= {action.broker, *action.others}
    return Environment(shipped.live, BROKERS, 1, 1, stopping=frozenset(gone))


def judge(hosted: Logged, before: Shipped, action: Any, after: Shipped) -> Logged | Rejected:
    """Return the partition after a step as the judge sees it, or the first rejection."""
    around = see(before, action)
    for write in list_writes(before, action, after):
        if isinstance(write, AlterIsr):
            by_itself = accept(hosted, ChangeIsr(write.state, before.leader), around, READINGS)
            if isinstance(by_itself, Rejected):
                return by_itself
        outcome = accept(hosted, write, around, READINGS)
        if isinstance(outcome, Rejected):
            return outcome
        hosted = outcome.state
    if isinstance(action, WriteEntry | DeleteZnode):
        hosted = replace(hosted, entry=after.entry)
    return fail_over(hosted, READINGS) if isinstance(action, Failover) else hosted


def is_known(clause_id: str, before: Shipped, after: Shipped) -> bool:
    """Whether Kafka is known to break a clause by such a step."""
    match clause_id:
        case "isr.change.assigned-only":  # a replica that was dropped joins (zk-11)
            joined = set(after.isr) - set(before.isr)
            return not joined <= set(before.assigned) and joined <= before.told
        case "shipped.change.keeps-in-sync":  # the last copy is dropped (zk-1, zk-9)
            return not set(before.isr) & set(after.assigned)
        case "shipped.complete.leader-first":  # nobody can be elected, and it is completed
            return before.leader == NO_LEADER
    return False


def look(hosted: Logged, shipped: Shipped) -> Iterator[str]:
    """Yield what machine and judge say differently of how a partition stands."""
    waits = next_effect(shipped) is None
    owed = next_obligation(hosted, see(shipped, None), READINGS)
    if waits and owed is not None and find_leaderless(shipped) is None:
        yield f"owed while the controller waits: {owed}"
    if bool(find_outside(hosted)) != bool(copies.find_outside(shipped)):
        yield "outside the assignment"
    if waits and bool(find_nobody_electable(hosted)) != bool(find_offline_for_good(shipped)):
        yield "offline for good"


def walk(
    assigned: ReplicaList, targets: tuple[ReplicaList | None, ...], times: dict[type, int]
) -> tuple[Counter[str], int]:
    """Return what is rejected first, or said differently, and how many states were looked at."""
    shipped = make_shipped(assigned, BROKERS)
    state = LeaderAndIsr(shipped.leader, 0, 1, shipped.isr)
    first = (shipped, Logged(assigned, state=state, told=assigned), tuple(times.values()))
    seen, waiting, found = {first}, deque([first]), Counter[str]()
    counted = {kind: number for number, kind in enumerate(times)}
    while waiting and not found:
        shipped, hosted, left = waiting.popleft()
        for action in list_actions(shipped, targets):
            number = counted.get(type(action))
            lower = left
            if not isinstance(action, Controller | Join | Return):
                if number is None or left[number] == 0:
                    continue
                lower = (*left[:number], left[number] - 1, *left[number + 1 :])
            try:
                outcome = happenings.step(shipped, action)
            except NotPossible:
                continue
            if isinstance(outcome, Rejected):
                continue
            judged = judge(hosted, shipped, action, outcome.state)
            if isinstance(judged, Rejected):
                if not is_known(judged.clause, shipped, outcome.state):
                    found[judged.clause] += 1
                continue
            found.update(look(judged, outcome.state))
            assert judged.state is not None
            again = replace(judged, state=replace(judged.state, leader_epoch=0))
            after = (MACHINE.normalise(outcome.state), again, lower)
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    return found, len(seen)


@pytest.mark.parametrize("world", WORLDS, ids=range(len(WORLDS)))
def test_whatever_the_machine_writes_is_accepted(world: Any) -> None:
    """Each write of the explored controllers is one that the judge allows, or is a finding."""
    found, states = walk(*world)
    assert found == {}
    assert states > 500


def _put_original_first(now: Assignment, target: ReplicaList) -> Assignment:
    wanted = reassign_to(now, target)
    return replace(wanted, replicas=tuple(sorted(wanted.replicas)))


def _complete_at_once(shipped: Shipped) -> Plan:
    return tuple(e for e in plan_phase(shipped) if not isinstance(e, Elect | Announce | CutIsr))


def _remove_first(shipped: Shipped) -> Plan:
    plan = plan_phase(shipped)
    return (*plan[:2], plan[-1], *plan[2:-1]) if isinstance(plan[-1], RemoveEntry) else plan


PLANTED = (
    ("_plan_stop", lambda *_: (), 0, "shipped.complete.assignment-after-stop"),
    (
        "select_reassigned",
        lambda target, *given: select_reassigned(target[::-1], *given),
        0,
        "election.only-when-due",
    ),
    ("reassign_to", _put_original_first, 1, "shipped.assignment.target-first"),
    ("plan_phase", _complete_at_once, 0, "shipped.complete.leader-first"),
    ("plan_phase", _remove_first, 3, "shipped.complete.entry-last"),
    ("can_join_told", can_join, 0, "isr.change.assigned-only"),
)
"""By name of a function of the machine: another one in its place, a world, and what is broken."""


@pytest.mark.parametrize(("name", "other", "world", "clause_id"), PLANTED)
def test_whatever_the_machine_would_write_otherwise_is_not(
    name: str,
    other: Callable[..., Any],
    world: int,
    clause_id: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A controller that differs in one function writes what the judge does not allow."""
    for module in (kafka_zk, happenings):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, other)
    assert clause_id in walk(*WORLDS[world])[0]
