"""Each rule on writes: one write that it accepts and one that it rejects, clause by clause."""

import ast
import inspect
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product

import pytest
from _pytest.mark import ParameterSet
from machine_steps import every_partition

from reassure_model.controllers import Controllership, accept_election
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Environment, LeaderAndIsr, Partition, Reassignment, Request
from reassure_model.protocols.kip_236 import (
    apply_failover,
    assignment_rules,
    is_change_unfinished,
    record_rules,
    rules,
)
from reassure_model.protocols.kip_236.rules import accept_write
from reassure_model.writes import (
    ChangeIsr,
    CreateReassignment,
    CreateState,
    DeleteReassignment,
    DeleteRequest,
    UpdateReassignment,
    Write,
    WriteAssigned,
    WriteState,
)
from reassure_spec.clauses import load_clauses
from reassure_spec.readings import Readings, get_profile

ALL = frozenset({1, 2, 3, 4})
AROUND = Environment(ALL, ALL, controller_epoch=2)
WRITTEN = get_profile("kip-236")
AMENDED = get_profile("kip-236-amended")


def state(leader: int, *isr: int, epoch: int = 5, controller: int = 2) -> LeaderAndIsr:
    """Return a leader and its in-sync set."""
    return LeaderAndIsr(leader, epoch, controller, isr)


def flight(*target: int, top: int = 2, legacy: bool = False) -> Reassignment:
    """Return a reassignment in flight."""
    return Reassignment(target, top, legacy)


def around(*live: int, least: int = 1) -> Environment:
    """Return environment with these brokers alive."""
    return replace(AROUND, live=frozenset(live), min_insync_replicas=least)


def write(leader: int, *isr: int) -> WriteState:
    """Return a controller's next write of leader and in-sync set."""
    return WriteState(state(leader, *isr, epoch=6))


def by_leader(leader: int, *isr: int) -> ChangeIsr:
    """Return a change of the in-sync set by broker 1."""
    return ChangeIsr(state(leader, *isr), 1)


def born(leader: int, *isr: int) -> CreateState:
    """Return the first state of a partition."""
    return CreateState(state(leader, *isr, epoch=0))


def assign(*replicas: int) -> WriteAssigned:
    """Return a write of the assigned replicas."""
    return WriteAssigned(replicas)


def record(*target: int, top: int = 2, legacy: bool = False) -> CreateReassignment:
    """Return the record of a first reassignment."""
    return CreateReassignment(flight(*target, top=top, legacy=legacy))


def change(*target: int, top: int = 2) -> UpdateReassignment:
    """Return the change of a reassignment in flight."""
    return UpdateReassignment(flight(*target, top=top))


NEW = Partition((2, 1))
CALM = Partition((1, 2), state(1, 1, 2))
LEADERLESS = Partition((1, 2), state(-1, 1))
ASKED = replace(CALM, requests=(Request(7, (1, 3)),))
TWICE = replace(CALM, requests=(Request(7, (1, 3)), Request(8, (1, 4))))
RECORDED = replace(ASKED, reassignment=flight(1, 3))
WAITING = Partition((1, 2, 3), state(1, 1, 2), flight(1, 3))
SYNCED = Partition((1, 2, 3), state(1, 1, 2, 3), flight(3, 1))
LEAVING = Partition((1, 2, 3), state(2, 1, 2, 3), flight(3, 1))
SHRUNK = Partition((1, 2, 3), state(1, 1, 3), flight(3, 1), completing=True)
DONE = Partition((3, 1), state(1, 1, 3), flight(3, 1))
CHANGED = Partition((1, 2, 3), state(1, 1, 2), flight(1, 4), drop_due=True)
FULL = Partition((1, 2, 3), state(1, 1, 2, 3), flight(1, 4), drop_due=True)
SHARED = Partition((1, 2, 3), state(1, 1, 2, 3), flight(4, 3), drop_due=True)
OFFLINE = Partition((1, 2, 3), state(-1, 2), flight(1, 4), drop_due=True)
CHANGING = replace(WAITING, requests=(Request(7, (1, 4)),))


def asking(*target: int) -> Partition:
    """Return a partition at rest with a request for a target."""
    return replace(CALM, requests=(Request(7, target),))


@dataclass(frozen=True, slots=True)
class Case:
    """A clause, a partition, a write that keeps the clause and one that breaks it."""

    clause: str
    before: Partition
    good: Write | None
    bad: Write
    around: Environment = AROUND
    readings: Readings = WRITTEN
    good_before: Partition | None = None
    """The partition for the good write where it is another one."""
    good_around: Environment | None = None
    """The environment of the good write where they are others."""


CASES = (
    # The leader's write
    Case("isr.change.keeps-leader", CALM, by_leader(1, 1), ChangeIsr(state(1, 1, epoch=6), 1)),
    Case("isr.change.by-leader", CALM, by_leader(1, 1), ChangeIsr(state(1, 1), 2)),
    Case("isr.change.leader-kept", CALM, by_leader(1, 1), by_leader(1, 2)),
    Case("isr.change.assigned-only", WAITING, by_leader(1, 1, 2, 3), by_leader(1, 1, 2, 4)),
    Case(
        "isr.change.live-only",
        WAITING,
        by_leader(1, 1, 2, 3),
        by_leader(1, 1, 2, 3),
        around(1, 2),
        good_around=around(1, 2, 3),
    ),
    Case("isr.no-duplicates", CALM, None, by_leader(1, 1, 1)),
    # New partitions
    Case("partition.new.leader-first-live", NEW, born(1, 1), born(2, 1), around(1)),
    Case("partition.new.isr-all-live", NEW, born(2, 1, 2), born(2, 2)),
    Case("partition.new.epoch-zero", NEW, born(2, 2, 1), CreateState(state(2, 2, 1, epoch=1))),
    # Epochs and the in-sync set
    Case("leader-epoch.raised-by-one", WAITING, write(1, 1, 2), WriteState(state(1, 1, 2))),
    Case(
        "state.controller-epoch-stamped",
        WAITING,
        write(1, 1, 2),
        WriteState(state(1, 1, 2, epoch=6, controller=1)),
    ),
    Case("isr.never-empty", CALM, write(-1, 1, 2), write(-1), around(3)),
    Case("isr.no-duplicates", WAITING, write(1, 1, 2), write(1, 1, 2, 2)),
    Case("state.write-conditional", WAITING, write(1, 1, 2), write(1, 1, 2, 3)),
    Case("leader.in-isr", CALM, write(2, 2), write(2, 1), around(2)),
    # Elections
    Case(
        "leader.none-only-without-candidate",
        CALM,
        write(-1, 1, 2),
        write(-1, 1),
        around(2),
        good_around=around(3),
    ),
    Case(
        "election.clean",
        Partition((1, 2, 3), state(1, 1, 3)),
        write(3, 3),
        write(2, 2),
        around(2, 3),
    ),
    Case("election.live", CALM, write(2, 2), write(2, 2), around(3), good_around=around(2, 3)),
    Case("election.only-when-due", CALM, None, write(2, 1, 2), around(1, 2)),
    Case(
        "election.assignment-order",
        Partition((1, 2, 3), state(1, 3, 2, 1)),
        write(2, 3, 2),
        write(3, 3, 2),
        around(2, 3),
    ),
    Case("isr.remove.only-when-due", CALM, write(1, 1), write(1, 1), good_around=around(1)),
    Case("isr.kept-without-leader", CALM, write(-1, 1, 2), write(-1, 2), around(3)),
    Case(
        "leader-epoch.raised-with-reason", CALM, write(1, 1, 2), write(1, 1, 2), good_before=WAITING
    ),
    # Completion
    Case("complete.leader-first-in-sync-target", LEAVING, write(3, 1, 2, 3), write(1, 1, 2, 3)),
    Case("complete.target-in-sync", WAITING, write(1, 1, 3), write(1, 1), good_before=SYNCED),
    Case(
        "complete.leader-in-target",
        Partition((1, 2, 3, 4), state(2, 1, 2, 3, 4), flight(3, 1)),
        write(1, 1, 3),
        write(2, 1, 2, 3),
        good_before=SYNCED,
    ),
    Case("complete.isr-before-assigned", SYNCED, assign(3, 1), assign(3, 1), good_before=SHRUNK),
    Case("complete.target-order", SHRUNK, assign(3, 1), assign(1, 3)),
    Case(
        "complete.announced",
        replace(SHRUNK, completing=False),
        assign(3, 1),
        assign(3, 1),
        good_before=SHRUNK,
    ),
    Case(
        "complete.child-last", SHRUNK, DeleteReassignment(), DeleteReassignment(), good_before=DONE
    ),
    Case(
        "complete.child-last",
        Partition((1, 2, 3), state(1, 1, 2), flight(1, 2, 3)),
        None,
        DeleteReassignment(),
    ),
    # Assignment
    Case("assigned.no-duplicates", RECORDED, assign(1, 2, 3), assign(1, 2, 3, 3)),
    Case("assigned.change.only-as-due", CALM, assign(1, 2, 3), assign(2, 1), good_before=RECORDED),
    Case("child.before-effects", ASKED, assign(1, 2, 3), assign(1, 2, 3), good_before=RECORDED),
    Case("expand.target-only", RECORDED, assign(1, 2, 3), assign(1, 2, 3, 4)),
    Case(
        "expand.whole-target",
        replace(RECORDED, reassignment=flight(3, 4)),
        assign(1, 2, 3, 4),
        assign(1, 2, 3),
    ),
    # Drop
    Case("drop.before-expansion", CHANGED, assign(1, 2), assign(1, 2, 3, 4)),
    Case("drop.leader-kept", CHANGED, assign(1, 2), assign(2, 3)),
    Case("drop.keep-top", CHANGED, assign(1, 2), assign(1, 3)),
    Case(
        "drop.isr-first",
        FULL,
        assign(1, 2),
        assign(1, 2),
        good_before=replace(FULL, state=state(1, 1, 2)),
    ),
    Case(
        "drop.protect-target",
        SHARED,
        assign(1, 3),
        assign(1, 2),
        readings=AMENDED,
        good_before=replace(SHARED, state=state(1, 1, 3)),
    ),
    Case(
        "drop.isr-at-least-min",
        Partition((1, 2, 3), state(1, 1, 2), flight(1, 4, top=2), drop_due=True),
        write(1, 1, 2),
        write(1, 1),
        around(1, 2, 3, least=2),
        good_before=FULL,
        good_around=AROUND,
    ),
    Case(
        "drop.offline.skip",
        OFFLINE,
        change(1, 4),
        assign(1, 2),
        around(1, 3, 4),
        AMENDED,
        replace(CHANGING, state=state(-1, 2)),
    ),
    # Requests and records
    Case("child.from-request", ASKED, record(1, 3), record(3, 1)),
    Case("child.route-from-request", ASKED, record(1, 3), record(1, 3, legacy=True)),
    Case("request.order.sequence", TWICE, record(1, 3), record(1, 4)),
    Case("request.order.sequence", TWICE, None, DeleteRequest(8)),
    Case("top.original-length", ASKED, record(1, 3), record(1, 3, top=3)),
    Case(
        "top.at-least-min-isr",
        ASKED,
        record(1, 3),
        record(1, 3),
        around(1, 2, 3, least=3),
        good_around=AROUND,
    ),
    Case("top.once-per-chain", CHANGING, change(1, 4), change(1, 4, top=3)),
    Case("child.update-in-place", CHANGING, change(1, 4), DeleteReassignment()),
    Case(
        "request.same-target.no-change",
        replace(WAITING, requests=(Request(7, (1, 3)),)),
        None,
        change(1, 3),
    ),
    Case("request.no-op.nothing-started", asking(1, 2), DeleteRequest(7), record(1, 2)),
    Case(
        "request.delete.child-first",
        ASKED,
        DeleteRequest(7),
        DeleteRequest(7),
        good_before=RECORDED,
    ),
    Case("request.refuse.duplicate-replica", asking(3, 3), DeleteRequest(7), record(3, 3)),
    Case("request.refuse.unknown-broker", asking(1, 9), DeleteRequest(7), record(1, 9)),
    Case(
        "target.at-least-min-isr",
        asking(1),
        DeleteRequest(7),
        record(1),
        around(1, 2, least=2),
        AMENDED,
    ),
)


def case_name(case: Case) -> str:
    """Return a readable test id."""
    return f"{case.clause}-{type(case.bad).__name__}"


def marked(cases: Iterable[Case]) -> list[ParameterSet]:
    """Return the cases as parameters, each with the mark of its clause."""
    return [
        pytest.param(case, id=case_name(case), marks=pytest.mark.clause(case.clause))
        for case in cases
    ]


def find_rejecting() -> set[str]:
    """Return the clauses of the checks in the rules that are not kept whatever is written."""
    pairs = [
        (module, *node.elts)
        for module in (rules, assignment_rules, record_rules)
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load) and len(node.elts) > 1
    ]
    named = {
        getattr(module, first.id, None) if isinstance(first, ast.Name) else first.value
        for module, first, kept, *_ in pairs
        if isinstance(first, ast.Name | ast.Constant) and ast.unparse(kept) != "True"
    }
    return named & set(load_clauses())


def test_every_rejection_of_rules_has_case() -> None:
    """No clause that a rule can reject by is without a write that it rejects."""
    named = find_rejecting()
    assert "isr.change.by-leader" in named
    assert "complete.leader-in-target" in named
    assert named - {case.clause for case in CASES} == set()


@pytest.mark.parametrize("case", marked(CASES))
def test_broken_rule_names_clause(case: Case) -> None:
    """A write that breaks one clause is rejected by that clause and no other."""
    outcome = accept_write(case.before, case.bad, case.around, case.readings)
    assert isinstance(outcome, Rejected), outcome
    assert outcome.clause == case.clause, outcome.reason
    assert outcome.reason


@pytest.mark.parametrize("case", marked(case for case in CASES if case.good is not None))
def test_kept_rule_accepts_and_counts_clause(case: Case) -> None:
    """A write that keeps the clause is accepted, and the clause is counted as put to the test."""
    assert case.good is not None
    before, environment = case.good_before or case.before, case.good_around or case.around
    outcome = accept_write(before, case.good, environment, case.readings)
    assert isinstance(outcome, Accepted), outcome
    assert case.clause in outcome.clauses


def test_failover_forgets_what_was_in_memory() -> None:
    """The next controller does not know that the last one had begun to complete."""
    after = apply_failover(replace(SYNCED, completing=True), WRITTEN)
    assert after == SYNCED


@pytest.mark.clause("drop.carried-out")
def test_failover_finds_unfinished_change() -> None:
    """A change that was recorded and not carried out is due again, one carried out is not."""
    assert apply_failover(CHANGED, WRITTEN).drop_due
    assert not apply_failover(replace(WAITING, drop_due=True), WRITTEN).drop_due
    assert not apply_failover(replace(RECORDED, drop_due=True), WRITTEN).drop_due
    assert not is_change_unfinished(replace(CHANGED, reassignment=None))
    assert apply_failover(WAITING, Readings(drop_reevaluated_on_failover="yes")).drop_due


@pytest.mark.clause("top.bounds-assigned")
def test_failover_finds_more_replicas_than_any_drop_leaves() -> None:
    """A change to fewer replicas that are all assigned is due again while too many are left."""
    many = Partition((1, 2, 3), state(1, 1), flight(2, top=1))
    assert apply_failover(many, WRITTEN).drop_due


@pytest.mark.clause("controller.election.atomic", "controller.epoch.raised-by-one")
def test_election_needs_broker_and_next_epoch() -> None:
    """An election names a broker and raises the epoch by one, in one transaction."""
    before = Controllership(1, 4)
    good = accept_election(before, 2, 5)
    assert isinstance(good, Accepted)
    assert good.state == Controllership(2, 5)
    for broker, epoch, clause in (
        (None, 5, "controller.election.atomic"),
        (2, 4, "controller.election.atomic"),
        (2, 6, "controller.epoch.raised-by-one"),
    ):
        outcome = accept_election(before, broker, epoch)
        assert isinstance(outcome, Rejected)
        assert outcome.clause == clause


@pytest.mark.clause("complete.target-in-sync")
def test_amended_profile_looks_again_before_old_replicas_leave() -> None:
    """Once a target replica fell behind, the target is not assigned, whoever saw it in sync."""
    behind = replace(SHRUNK, state=state(1, 1))
    assert isinstance(accept_write(behind, assign(3, 1), AROUND, WRITTEN), Accepted)
    outcome = accept_write(behind, assign(3, 1), AROUND, AMENDED)
    assert isinstance(outcome, Rejected)
    assert outcome.clause == "complete.target-in-sync"


WRITES = (
    *(write(who, *isr) for who in (-1, 1, 3) for isr in ((1,), (2,), (1, 2), (1, 3), (1, 2, 3))),
    *(
        assign(*to)
        for to in ((1,), (1, 2), (3, 1), (1, 4), (1, 2, 3), (1, 2, 4), (1, 2, 3, 4), (1, 1))
    ),
    *(made(*to) for made in (record, change) for to in ((1, 4), (3, 1))),
    *(by_leader(1, 1), DeleteReassignment(), DeleteRequest(7)),
)


@pytest.mark.parametrize(
    "readings",
    [
        WRITTEN,
        AMENDED,
        Readings(drop_slice="exclusive", drop_evaluated="after-expansion"),
        Readings(request_persist="effects-first", request_same_target="restart"),
    ],
    ids=["written", "amended", "exclusive and late", "effects first"],
)
def test_whatever_is_written_is_answered_by_a_clause(readings: Readings) -> None:
    """Of any partition any write is accepted by clauses, or rejected by one with a reason."""
    known = load_clauses()
    for before, tried in product(every_partition(), WRITES):
        needed = {
            UpdateReassignment: before.reassignment,
            DeleteRequest: before.requests,
            WriteState: before.state,
            ChangeIsr: before.state,
        }
        if not needed.get(type(tried), True):
            continue
        for live in (around(1, 2, 3, 4), around(2, 3, least=2)):
            outcome = accept_write(before, tried, live, readings)
            if isinstance(outcome, Rejected):
                assert outcome.clause in known, outcome
                assert outcome.reason
            else:
                assert set(outcome.clauses) <= known.keys()
