"""Ordinary acts of a controller are green at any time, and red without what shows them."""

from typing import Any

import pytest
from history_steps import (
    Act,
    change_isr,
    control,
    die,
    move,
    perform,
    raise_state,
    rest,
    run,
    tell,
    write,
)

from reassure_judge import suspicion
from reassure_judge.judge import Judge
from reassure_judge.suspicion import SHUTDOWN_MS
from reassure_judge.verdicts import UNKNOWN, VIOLATED
from reassure_model.writes import DeleteReassignment, DeleteRequest
from reassure_spec import znodes
from reassure_spec.readings import Readings, override_readings
from reassure_zookeeper.transactions import Create, Delete, SetData

PREFERRED = b'{"version":1,"partitions":[{"topic":"orders","partition":0}]}'
OTHER = PREFERRED.replace(b'"partition":0', b'"partition":1')
SETTINGS = znodes.topic_config_path("orders")
EVERYBODY = znodes.DEFAULT_BROKER_CONFIG
REMOVED = "isr.remove.only-when-due"
CHILD_FIRST = "request.delete.child-first"
SHUTDOWN, UNCLEAN = "act.controlled-shutdown", "act.unclean-election"


def set_up(name: str, everybody: str | None = None, topic: str | None = None) -> tuple[Act, ...]:
    """Return what writes a setting as an operator does, and lets everybody notice."""
    given = [(path, value) for path, value in ((EVERYBODY, everybody), (SETTINGS, topic)) if value]
    return tuple(
        act
        for path, value in given
        for act in (write(Create(path, znodes.encode_config({name: value}))), rest)
    )


SECOND_LEADS = (die(1), run, lambda sim: sim.register(1), run, change_isr(2, 1))
"""Broker 1 fails and comes back in sync, so that broker 2 leads."""
LEADERLESS = (change_isr(1), die(1), run)
"""Broker 1 is alone in sync and dies."""
UNCLEANLY = raise_state(leader=2, isr=(2,))
STORIES = {
    # A client asks, the first replica is elected, the controller removes what was asked.
    "preferred election that was asked for": tell(
        *(*SECOND_LEADS, write(Create(znodes.PREFERRED_ELECTION, PREFERRED))),
        *(raise_state(leader=1), control(Delete(znodes.PREFERRED_ELECTION)), run),
        exercised="act.preferred-election",
    ),
    "preferred election of another partition": tell(
        *(*SECOND_LEADS, write(Create(znodes.PREFERRED_ELECTION, OTHER)), raise_state(leader=1)),
        broken="election.only-when-due",
    ),
    # What was written before a broker went, leader or follower, is sound once it is gone.
    "shutdown of a leader": tell(raise_state(leader=2, isr=(2,)), die(1), run, exercised=SHUTDOWN),
    "shutdown of a follower": tell(
        raise_state(leader=1, isr=(1,)), die(2), run, exercised=SHUTDOWN
    ),
    "unclean election that the topic allows": tell(
        *(*set_up(znodes.UNCLEAN, topic="true"), *LEADERLESS, UNCLEANLY, run), exercised=UNCLEAN
    ),
    "unclean election that the default allows": tell(
        *(*set_up(znodes.UNCLEAN, "true"), *LEADERLESS, UNCLEANLY, run), exercised=UNCLEAN
    ),
    "unclean election that the default does not allow": tell(
        *(*set_up(znodes.UNCLEAN, "false"), *LEADERLESS, UNCLEANLY), broken="election.clean"
    ),
    "unclean election that the topic does not allow": tell(
        *(*set_up(znodes.UNCLEAN, "true", "false"), *LEADERLESS, UNCLEANLY), broken="election.clean"
    ),
    "unclean election that nobody allows": tell(*LEADERLESS, UNCLEANLY, broken="election.clean"),
}
"""By act: the topic's own settings count before the default of all brokers."""


@pytest.mark.clause("act.preferred-election", SHUTDOWN, UNCLEAN)
@pytest.mark.parametrize("name", STORIES)
def test_act_is_sound_where_it_is_shown(simulation: Any, name: str) -> None:
    """Elections and shutdowns that somebody asks for or allows are sound, and others are red."""
    STORIES[name].check(simulation)
    assert not simulation.judge.undecided


@pytest.mark.clause("act.preferred-election")
def test_unasked_preferred_election_is_sound_under_its_reading(simulation: Any) -> None:
    """Who declares that brokers rebalance leaders by themselves is judged so."""
    perform(simulation, (*SECOND_LEADS, raise_state(leader=1)))
    automatic = override_readings(Readings(), {"election.preferred": "automatic"})
    judge = Judge("kip-236", automatic)
    for transaction in simulation.history:
        judge.feed(transaction)
    assert judge.violations == []


# A broker that stays ------------------------------------------------------------------------------


@pytest.mark.clause(SHUTDOWN)
def test_broker_that_stays_was_not_about_to_stop(simulation: Any) -> None:
    """At rest with the broker still there the write is a violation, at its own zxid.

    Where the history ends before, nobody can say.
    """
    zxid = simulation.perform_raised(isr=(1,))
    simulation.submit(1, 2)
    assert simulation.judge.violations == []
    assert simulation.verdict(REMOVED).verdict == UNKNOWN
    simulation.judge.quiesce()
    found = [(v.clause, v.zxid) for v in simulation.judge.violations]
    assert found[0] == (REMOVED, zxid)
    assert simulation.verdict(REMOVED).verdict == VIOLATED


@pytest.mark.clause(SHUTDOWN)
def test_broker_that_stays_for_too_long_was_not_about_to_stop(simulation: Any) -> None:
    """Nobody says when it rests: longer than any shutdown takes is a violation as well."""
    zxid = simulation.perform_raised(isr=(1,))
    for _ in range(SHUTDOWN_MS // 100_000 + 1):
        simulation.change_isr(1)
    found = [(v.clause, v.zxid) for v in simulation.judge.violations]
    assert found == [(REMOVED, zxid)]


@pytest.mark.clause(SHUTDOWN)
def test_broker_that_stops_may_be_moved_away_meanwhile(
    simulation: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a registration clears a partition that the broker is no longer assigned to."""
    monkeypatch.setattr(suspicion, "SHUTDOWN_MS", 10 * SHUTDOWN_MS)
    tell(
        *(raise_state(leader=1, isr=(1,)), move(1), move(1, 3, until=DeleteReassignment)),
        *(die(2), run),
        exercised=SHUTDOWN,
    ).check(simulation)


@pytest.mark.clause(SHUTDOWN)
def test_end_of_another_broker_clears_nothing(simulation: Any) -> None:
    """Only the broker that was taken out can show that it was about to stop."""
    zxid = simulation.perform_raised(isr=(1,))
    perform(simulation, (die(3), run))
    assert (REMOVED, zxid) in simulation.broken()


# The effective minimum ----------------------------------------------------------------------------


@pytest.mark.clause("top.at-least-min-isr")
@pytest.mark.parametrize(
    ("everybody", "topic", "refused"),
    [("3", None, True), ("3", "1", False), ("1", "3", True), (None, None, False)],
)
def test_refusal_goes_by_the_effective_minimum(
    simulation: Any, everybody: str | None, topic: str | None, refused: bool
) -> None:
    """Topic before default of all brokers; a refusal by another minimum breaks a rule."""
    perform(simulation, set_up(znodes.MIN_ISR, everybody, topic))
    zxid = simulation.perform(DeleteRequest(simulation.submit(2, 3)))
    assert simulation.broken() == ([] if refused else [(CHILD_FIRST, zxid)])


def test_minimum_of_brokers_own_files_can_be_told(make_simulation: Any) -> None:
    """What no znode says is told to the judge, and any znode counts before it."""
    cluster = make_simulation()
    cluster.judge = Judge("kip-236", Readings(), min_insync_replicas=3)
    cluster.start()
    cluster.perform(DeleteRequest(cluster.submit(2, 3)))
    assert cluster.broken() == []
    perform(cluster, set_up(znodes.MIN_ISR, "1"))
    zxid = cluster.perform(DeleteRequest(cluster.submit(2, 3)))
    assert cluster.broken() == [(CHILD_FIRST, zxid)]
    perform(cluster, (write(SetData(EVERYBODY, znodes.encode_config({}), 1)), rest))
    cluster.perform(DeleteRequest(cluster.submit(2, 3)))
    assert len(cluster.broken()) == 1
