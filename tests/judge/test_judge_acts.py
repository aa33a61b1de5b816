"""Ordinary acts of a controller are green at any time, and red without what shows them."""

from typing import Any

import pytest

from reassure_judge.judge import Judge
from reassure_judge.suspicion import SHUTDOWN_MS
from reassure_judge.verdicts import UNKNOWN, VIOLATED
from reassure_model.writes import DeleteRequest
from reassure_spec import znodes
from reassure_spec.readings import Readings, override_readings
from reassure_zookeeper.transactions import Create, Delete, SetData

CLIENT = 50
PREFERRED = b'{"version":1,"partitions":[{"topic":"orders","partition":0}]}'
SETTINGS = znodes.topic_config_path("orders")
EVERYBODY = znodes.DEFAULT_BROKER_CONFIG


def set_up(sim: Any, path: str, name: str, value: str) -> None:
    """Write one setting as an operator does, and let everybody notice."""
    sim.write(Create(path, znodes.encode_config({name: value})), session=CLIENT)
    sim.judge.quiesce()


def let_second_lead(sim: Any) -> None:
    """Have broker 1 fail and come back in sync, so that broker 2 leads."""
    sim.die(1)
    sim.run()
    sim.register(1)
    sim.run()
    sim.change_isr(2, 1)


# Preferred elections ------------------------------------------------------------------------------


@pytest.mark.clause("act.preferred-election")
def test_preferred_election_that_was_asked_for_is_sound(simulation: Any) -> None:
    """A client asks, the first replica is elected, the controller removes what was asked."""
    let_second_lead(simulation)
    simulation.write(Create(znodes.PREFERRED_ELECTION, PREFERRED), session=CLIENT)
    simulation.perform_raised(leader=1)
    simulation.write(Delete(znodes.PREFERRED_ELECTION), session=900, fenced=True)
    simulation.run()
    assert simulation.broken() == []
    assert simulation.judge.exercised["act.preferred-election"] == 1


@pytest.mark.clause("act.preferred-election")
def test_preferred_election_that_nobody_asked_for_is_red(simulation: Any) -> None:
    """Of another partition, or once the answer was given, the same election breaks a rule."""
    let_second_lead(simulation)
    other = PREFERRED.replace(b'"partition":0', b'"partition":1')
    simulation.write(Create(znodes.PREFERRED_ELECTION, other), session=CLIENT)
    zxid = simulation.perform_raised(leader=1)
    assert simulation.broken() == [("election.only-when-due", zxid)]


@pytest.mark.clause("act.preferred-election")
def test_unasked_preferred_election_is_sound_under_its_reading(simulation: Any) -> None:
    """Who declares that brokers rebalance leaders by themselves is judged so."""
    let_second_lead(simulation)
    simulation.perform_raised(leader=1)
    automatic = override_readings(Readings(), {"election.preferred": "automatic"})
    judge = Judge("kip-236", automatic)
    for transaction in simulation.history:
        judge.feed(transaction)
    assert judge.violations == []


# Controlled shutdown ------------------------------------------------------------------------------


@pytest.mark.clause("act.controlled-shutdown")
@pytest.mark.parametrize("broker", [1, 2])
def test_controlled_shutdown_is_cleared_by_the_end_of_the_registration(
    simulation: Any, broker: int
) -> None:
    """Leader or follower: what was written before the broker went is sound once it is gone."""
    other = 3 - broker
    simulation.perform_raised(leader=other, isr=(other,))
    simulation.die(broker)
    simulation.run()
    assert simulation.broken() == []
    assert simulation.judge.exercised["act.controlled-shutdown"] == 1
    assert not simulation.judge.undecided


@pytest.mark.clause("act.controlled-shutdown")
def test_broker_that_stays_was_not_about_to_stop(simulation: Any) -> None:
    """At rest with the broker still there the write is a violation, at its own zxid."""
    zxid = simulation.perform_raised(isr=(1,))
    simulation.submit(1, 2)
    assert simulation.judge.violations == []
    simulation.judge.quiesce()
    found = [(v.clause, v.zxid) for v in simulation.judge.violations]
    assert found[0] == ("isr.remove.only-when-due", zxid)


@pytest.mark.clause("act.controlled-shutdown")
def test_broker_that_stays_for_too_long_was_not_about_to_stop(simulation: Any) -> None:
    """Nobody says when it rests: longer than any shutdown takes is a violation as well."""
    zxid = simulation.perform_raised(isr=(1,))
    for _ in range(SHUTDOWN_MS // 100_000 + 1):
        simulation.change_isr(1)
    found = [(v.clause, v.zxid) for v in simulation.judge.violations]
    assert found == [("isr.remove.only-when-due", zxid)]


@pytest.mark.clause("act.controlled-shutdown")
def test_history_that_ends_before_leaves_it_unknown(simulation: Any) -> None:
    """Where the history ends with the broker still there, nobody can say."""
    simulation.perform_raised(isr=(1,))
    assert simulation.verdict("isr.remove.only-when-due").verdict == UNKNOWN
    simulation.judge.quiesce()
    assert simulation.verdict("isr.remove.only-when-due").verdict == VIOLATED


@pytest.mark.clause("act.controlled-shutdown")
def test_end_of_another_broker_clears_nothing(simulation: Any) -> None:
    """Only the broker that was taken out can show that it was about to stop."""
    zxid = simulation.perform_raised(isr=(1,))
    simulation.die(3)
    simulation.run()
    assert ("isr.remove.only-when-due", zxid) in simulation.broken()


# Unclean elections --------------------------------------------------------------------------------


def lose_leader(sim: Any) -> None:
    """Leave broker 1 alone in sync and let it die."""
    sim.change_isr(1)
    sim.die(1)
    sim.run()


@pytest.mark.clause("act.unclean-election")
@pytest.mark.parametrize("path", [SETTINGS, EVERYBODY])
def test_unclean_election_is_sound_where_it_is_allowed(simulation: Any, path: str) -> None:
    """The topic's own settings allow it, or the default of all brokers."""
    set_up(simulation, path, znodes.UNCLEAN, "true")
    lose_leader(simulation)
    simulation.perform_raised(leader=2, isr=(2,))
    simulation.run()
    assert simulation.broken() == []
    assert simulation.judge.exercised["act.unclean-election"] == 1


@pytest.mark.clause("act.unclean-election")
@pytest.mark.parametrize(("everybody", "topic"), [("false", None), ("true", "false"), (None, None)])
def test_unclean_election_is_red_elsewhere(
    simulation: Any, everybody: str | None, topic: str | None
) -> None:
    """The topic's settings count before the default of all brokers."""
    for path, value in ((EVERYBODY, everybody), (SETTINGS, topic)):
        if value is not None:
            set_up(simulation, path, znodes.UNCLEAN, value)
    lose_leader(simulation)
    zxid = simulation.perform_raised(leader=2, isr=(2,))
    assert simulation.broken() == [("election.clean", zxid)]


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
    for path, value in ((EVERYBODY, everybody), (SETTINGS, topic)):
        if value is not None:
            set_up(simulation, path, znodes.MIN_ISR, value)
    zxid = simulation.perform(DeleteRequest(simulation.submit(2, 3)))
    assert simulation.broken() == ([] if refused else [("request.delete.child-first", zxid)])


def test_minimum_of_brokers_own_files_can_be_told(make_simulation: Any) -> None:
    """What no znode says is told to the judge, and any znode counts before it."""
    cluster = make_simulation()
    cluster.judge = Judge("kip-236", Readings(), min_insync_replicas=3)
    cluster.start()
    cluster.perform(DeleteRequest(cluster.submit(2, 3)))
    assert cluster.broken() == []
    set_up(cluster, EVERYBODY, znodes.MIN_ISR, "1")
    zxid = cluster.perform(DeleteRequest(cluster.submit(2, 3)))
    assert cluster.broken() == [("request.delete.child-first", zxid)]
    cluster.write(SetData(EVERYBODY, znodes.encode_config({}), 1), session=CLIENT)
    cluster.judge.quiesce()
    cluster.perform(DeleteRequest(cluster.submit(2, 3)))
    assert len(cluster.broken()) == 1
