"""Ordinary acts: allowed with their evidence, each a violation of the other rules without it."""

from dataclasses import dataclass, replace

import pytest

from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Environment, LeaderAndIsr, Partition, Reassignment
from reassure_model.protocols.kip_236 import next_write
from reassure_model.protocols.kip_236.rules import accept_write
from reassure_model.writes import WriteState
from reassure_spec.readings import Readings

FOUR = frozenset({1, 2, 3, 4})
AROUND = Environment(FOUR, FOUR, controller_epoch=2)
BEFORE = Partition((1, 2, 3), LeaderAndIsr(2, 5, 2, (1, 2, 3)))
LOST = Partition((1, 2, 3), LeaderAndIsr(-1, 5, 2, (1,)))
ASKED = replace(AROUND, preferred_asked=True)
DELETING = replace(AROUND, deleting=True)
UNCLEAN = replace(AROUND, live=frozenset({2, 3}), unclean_allowed=True)


def stopping(*brokers: int) -> Environment:
    """Return the environment while these brokers are about to stop."""
    return replace(AROUND, stopping=frozenset(brokers))


def write(leader: int, *isr: int) -> WriteState:
    """Return a controller's next write."""
    return WriteState(LeaderAndIsr(leader, 6, 2, isr))


@dataclass(frozen=True, slots=True)
class Act:
    """An act: what it is judged by, and what becomes of nearly the same write."""

    clause: str
    before: Partition
    around: Environment
    good: WriteState
    bad: tuple[WriteState, ...]
    without: str
    """The clause that the good write breaks where the evidence is not there."""


ACTS = (
    Act(
        "act.preferred-election",
        BEFORE,
        ASKED,
        write(1, 1, 2, 3),
        (write(3, 1, 2, 3), write(1, 1, 2), write(1, 1, 2, 3, 4), write(-1, 1, 2, 3)),
        "election.only-when-due",
    ),
    Act(
        "act.controlled-shutdown",
        BEFORE,
        stopping(2),
        write(1, 1, 3),
        (write(3, 1, 3), write(1, 1), write(2, 2), write(-1, 1, 3), write(2, 1, 3)),
        "election.only-when-due",
    ),
    Act(
        "act.controlled-shutdown",
        BEFORE,
        stopping(3),
        write(2, 1, 2),
        (write(1, 1, 2), write(2, 2, 3), write(2, 2)),
        "isr.remove.only-when-due",
    ),
    Act(
        "act.controlled-shutdown",
        BEFORE,
        stopping(1, 2),
        write(3, 3),
        (write(1, 3), write(3, 2)),
        "election.only-when-due",
    ),
    Act(
        "act.deletion-stops-replicas",
        BEFORE,
        DELETING,
        write(-1, 1, 3),
        (write(1, 1, 3), write(-1), write(2, 1, 3), write(-1, 1, 3, 4)),
        "leader.none-only-without-candidate",
    ),
    Act(
        "act.unclean-election",
        LOST,
        UNCLEAN,
        write(2, 2),
        (write(3, 3), write(2, 1, 2), write(1, 1), write(2, 2, 3)),
        "election.clean",
    ),
)
NAMED = pytest.mark.parametrize(
    "act", [pytest.param(act, marks=pytest.mark.clause(act.clause)) for act in ACTS]
)


@NAMED
def test_act_is_accepted_with_its_evidence(act: Act) -> None:
    """The act is accepted and counted under its own clause."""
    outcome = accept_write(act.before, act.good, act.around, Readings())
    assert isinstance(outcome, Accepted), outcome
    assert act.clause in outcome.clauses
    assert outcome.state.state == act.good.state


@NAMED
def test_nearly_the_act_is_rejected(act: Act) -> None:
    """The evidence allows this one write and none that differs in leader or in-sync set."""
    for bad in act.bad:
        assert isinstance(accept_write(act.before, bad, act.around, Readings()), Rejected), bad


@NAMED
def test_act_without_evidence_is_rejected(act: Act) -> None:
    """Without the evidence the same write breaks the rule that it is an exception from."""
    bare = replace(AROUND, live=act.around.live)
    outcome = accept_write(act.before, act.good, bare, Readings())
    assert isinstance(outcome, Rejected)
    assert outcome.clause == act.without


@pytest.mark.clause("act.controlled-shutdown")
def test_last_leader_keeps_its_office() -> None:
    """Where nobody can take over, a broker that is about to stop leads and stays in sync."""
    alone = Partition((1, 2), LeaderAndIsr(2, 5, 2, (2,)))
    for bad in (write(1, 2), write(-1, 2), write(1, 1), write(2)):
        assert isinstance(accept_write(alone, bad, stopping(2), Readings()), Rejected)


@pytest.mark.clause("act.preferred-election")
def test_completion_elects_in_the_target_alone() -> None:
    """Once a completion has begun the first assigned replica is not preferred any more."""
    flight = Reassignment((2, 3), 2)
    before = replace(BEFORE, reassignment=flight)
    act = write(1, 1, 2, 3)
    assert isinstance(accept_write(before, act, ASKED, Readings()), Accepted)
    begun = replace(before, completing=True)
    assert isinstance(accept_write(begun, act, ASKED, Readings()), Rejected)


@pytest.mark.clause("act.preferred-election")
def test_unasked_election_is_a_reading() -> None:
    """Whether the first replica may take over unasked is settled by election.preferred."""
    automatic = Readings(election_preferred="automatic")
    assert isinstance(accept_write(BEFORE, write(1, 1, 2, 3), AROUND, Readings()), Rejected)
    assert isinstance(accept_write(BEFORE, write(1, 1, 2, 3), AROUND, automatic), Accepted)
    assert isinstance(accept_write(BEFORE, write(3, 1, 2, 3), AROUND, automatic), Rejected)


@pytest.mark.clause("act.unclean-election")
def test_unclean_election_by_reading() -> None:
    """The reading election.unclean allows for every topic what a setting allows for one."""
    bare = replace(UNCLEAN, unclean_allowed=False)
    last_resort = Readings(election_unclean="last-resort")
    assert isinstance(accept_write(LOST, write(2, 2), bare, last_resort), Accepted)


@pytest.mark.clause("act.unclean-election")
@pytest.mark.parametrize("before", [BEFORE, replace(LOST, state=LeaderAndIsr(-1, 5, 2, (2,)))])
def test_unclean_election_is_for_whom_nobody_can_lead(before: Partition) -> None:
    """Where a leader or an in-sync replica is alive nobody out of sync takes over."""
    assert isinstance(accept_write(before, write(3, 3), UNCLEAN, Readings()), Rejected)


def test_nothing_is_owed_while_deleting() -> None:
    """A topic that is to be deleted is owed neither elections nor reassignments."""
    due = replace(BEFORE, reassignment=Reassignment((2, 3), 3))
    assert next_write(due, AROUND, Readings()) is not None
    assert next_write(due, DELETING, Readings()) is None
    assert next_write(BEFORE, replace(AROUND, live=frozenset({1})), Readings()) is not None
    assert next_write(BEFORE, replace(DELETING, live=frozenset({1})), Readings()) is None
