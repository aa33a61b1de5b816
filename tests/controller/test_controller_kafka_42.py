"""The first reassignment (KAFKA-42) on ZooKeeper: its seven steps, its refusals and its crashes."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import pytest

from reassure_controller.crashing import OnPoint, crash_at
from reassure_spec.errors import BadConfiguration
from reassure_spec.readings import get_profile, override_readings
from reassure_spec.znodes import (
    REASSIGN_PARTITIONS,
    LegacyEntry,
    decode_reassign_partitions,
    encode_reassign_partitions,
    topic_path,
)

from .conftest import settling

KEY: Final = ("t", 0)
OTHER: Final = ("t", 1)
REPAIRS: Final = {
    "move.expand-first": "yes",
    "move.cut-isr": "yes",
    "move.recheck-before-stop": "yes",
    "election.unclean": "no",
}
READINGS: Final = {"as written": {}, "repaired": REPAIRS}

Targets = dict[tuple[str, int], tuple[int, ...]]


class Crashed(Exception):
    """A controller died at a named point."""


def crash() -> None:
    """End a controller where it stands."""
    raise Crashed


def elect(cluster: Any, changes: Mapping[str, str], on_point: OnPoint = lambda _: None) -> Any:
    """Return a controller of the profile, elected, with some readings settled otherwise."""
    readings = override_readings(get_profile("kafka-42"), changes)
    return cluster.controller(readings=readings, profile="kafka-42", on_point=on_point)


@settling
def ask(cluster: Any, targets: Targets) -> None:
    """Write the targets into the old znode."""
    content = encode_reassign_partitions([LegacyEntry(key, to) for key, to in targets.items()])
    if cluster.admin.exists(REASSIGN_PARTITIONS):
        cluster.admin.set(REASSIGN_PARTITIONS, content)
    else:
        cluster.admin.create(REASSIGN_PARTITIONS, content)


def read(cluster: Any) -> Targets | None:
    """Return what the old znode asks for, None where it is gone."""
    if not cluster.admin.exists(REASSIGN_PARTITIONS):
        return None
    found = decode_reassign_partitions("", cluster.admin.get(REASSIGN_PARTITIONS)[0])
    return {entry.key: entry.target for entry in found}


def run_story(cluster: Any, changes: Mapping[str, str], on_point: OnPoint) -> None:
    """Move two partitions, one of them to brokers that it shares none with.

    A controller that crashes has a successor, which goes on.
    """
    controller = elect(cluster, changes, on_point)
    steps = (
        lambda: cluster.create_topic("t", {0: (1, 2), 1: (2, 1)}),
        lambda: ask(cluster, {KEY: (3, 4), OTHER: (2, 3)}),
        lambda: cluster.join(*KEY, 3),
        lambda: cluster.join(*KEY, 4),
        lambda: cluster.join(*OTHER, 3),
    )
    for step in steps:
        step()
        try:
            controller.drain()
        except Crashed:
            controller.kill()
            controller = elect(cluster, changes)
            controller.drain()


def outcome(cluster: Any) -> object:
    """Return what the story must have come to, whoever carried it out."""
    hosting = {
        broker: [key for key in (KEY, OTHER) if agent.hosted(*key) is not None]
        for broker, agent in cluster.brokers.items()
    }
    states = [cluster.state(*key) for key in (KEY, OTHER)]
    leaders = [(state.leader, set(state.isr)) for state in states]
    return [cluster.assigned(*key) for key in (KEY, OTHER)], leaders, read(cluster), hosting


ENDS: Final = {
    "as written": [(3, {1, 2, 3, 4}), (2, {1, 2, 3})],
    "repaired": [(3, {3, 4}), (2, {2, 3})],
}
"""Leaders and in-sync sets of the story in the end: as written, nobody who is stopped leaves."""


@pytest.mark.parametrize("name", READINGS)
@pytest.mark.clause("move.failover.resumes")
def test_death_at_any_point_ends_in_the_same_place(name: str, make_cluster: Any) -> None:
    """Whatever named point a controller dies at, its successor brings the moves to one end."""
    whole, points = make_cluster(), list[str]()
    run_story(whole, READINGS[name], points.append)
    expected = outcome(whole)
    hosting = {1: [], 2: [OTHER], 3: [KEY, OTHER], 4: [KEY]}
    assert expected == ([(3, 4), (2, 3)], ENDS[name], None, hosting)
    passed: Counter[str] = Counter()
    for point in points:
        passed[point] += 1
        cluster = make_cluster()
        where = f"{point}:{passed[point]}"
        run_story(cluster, READINGS[name], crash_at(where, crash))
        assert outcome(cluster) == expected, f"died at {where}"
    assert {"completion.leader-moved", "old-znode.entry-removed"} <= passed.keys()


@pytest.mark.parametrize(
    ("target", "left"),
    [((1, 2), None), ((2, 1), (2, 1)), ((2, 9), None), ((), None), ((2, 2), None), ((2, -1), None)],
    ids=["same", "reorder", "never registered", "empty", "twice", "negative"],
)
@pytest.mark.clause("move.listener.refuse-same", "move.listener.refuse-dead")
def test_listener_refuses_what_makes_no_sense(
    target: tuple[int, ...], left: tuple[int, ...] | None, cluster: Any
) -> None:
    """An entry that asks for nothing, or for what cannot be, goes; another order is a move."""
    controller = elect(cluster, {})
    cluster.create_topic("t", {0: (1, 2)}, then=controller)
    before = cluster.state(*KEY)
    ask(cluster, {KEY: target}, then=controller)
    assert read(cluster) is None
    assert cluster.assigned(*KEY) == (left or (1, 2))
    if left is None:
        assert cluster.state(*KEY) == before


@pytest.mark.clause("move.listener.refuse-missing", "move.path.others-kept")
def test_entries_of_a_deleted_topic_go_and_the_others_stay(cluster: Any) -> None:
    """A topic that is deleted in the middle of its move takes its entry along, and no other."""
    controller = elect(cluster, REPAIRS)
    cluster.create_topic("t", {0: (1, 2)})
    cluster.create_topic("u", {0: (1, 2)}, then=controller)
    ask(cluster, {KEY: (1, 3), ("u", 0): (1, 3), ("nowhere", 0): (1, 3)}, then=controller)
    assert read(cluster) == {KEY: (1, 3), ("u", 0): (1, 3)}
    cluster.admin.delete(topic_path("t"), recursive=True)
    controller.drain()
    assert read(cluster) == {("u", 0): (1, 3)}
    cluster.join("u", 0, 3, then=controller)
    assert (read(cluster), cluster.assigned("u", 0)) == (None, (1, 3))


@pytest.mark.parametrize("dead", [3, 4])
@pytest.mark.clause("move.failover.re-elects")
def test_successor_goes_on_whoever_of_a_target_in_sync_has_died(dead: int, cluster: Any) -> None:
    """A new controller that finds the target in sync ends the move, and elects a live one of it."""
    controller = elect(cluster, {})
    cluster.create_topic("t", {0: (1, 2)})
    ask(cluster, {KEY: (3, 4)}, then=controller)
    cluster.join(*KEY, 3, 4)
    controller.drain(max_effects=1)
    assert cluster.state(*KEY).leader == 3
    cluster.die(dead)
    controller.kill()
    elect(cluster, {}).drain()
    assert (read(cluster), cluster.assigned(*KEY)) == (None, (3, 4))
    assert cluster.state(*KEY).leader == 7 - dead


@pytest.mark.parametrize(("who", "target"), [("wait", (1, 3)), ("refuse", None)])
def test_target_with_a_dead_broker_waits_where_the_reading_says_so(
    who: str, target: tuple[int, ...] | None, cluster: Any
) -> None:
    """Under `target.dead-replica=wait` the replica is started when its broker comes."""
    controller = elect(cluster, {"target.dead-replica": who})
    cluster.create_topic("t", {0: (1, 2)})
    cluster.die(3, then=controller)
    ask(cluster, {KEY: (1, 3)}, then=controller)
    assert read(cluster) == (None if target is None else {KEY: target})
    cluster.come(3, then=controller)
    assert (cluster.brokers[3].hosted(*KEY) is not None) is (who == "wait")
    if who == "wait":
        cluster.join(*KEY, 3, then=controller)
        assert (read(cluster), cluster.assigned(*KEY)) == (None, (1, 3))


@pytest.mark.clause("move.selector.offline")
def test_any_live_assigned_replica_leads_where_no_other_is_left(cluster: Any) -> None:
    """As written, a replica out of sync is elected where nobody in sync is alive."""
    controller = elect(cluster, {})
    cluster.create_topic("t", {0: (1, 2)}, then=controller)
    cluster.leave(*KEY, 2)
    cluster.die(1, then=controller)
    assert (cluster.state(*KEY).leader, cluster.state(*KEY).isr) == (2, (2,))


@pytest.mark.clause("move.listener.ignore-in-flight")
def test_another_target_in_flight_is_looked_at_by_nobody(cluster: Any) -> None:
    """What overwrites the entry of a move in flight goes with it."""
    controller = elect(cluster, REPAIRS)
    cluster.create_topic("t", {0: (1, 2)})
    ask(cluster, {KEY: (1, 3)}, then=controller)
    ask(cluster, {KEY: (1, 4)}, then=controller)
    assert cluster.assigned(*KEY) == (1, 2, 3)
    cluster.join(*KEY, 3, then=controller)
    assert (read(cluster), cluster.assigned(*KEY)) == (None, (1, 3))


def test_profile_without_moves_is_refused(cluster: Any) -> None:
    """A controller of a profile that asks for no reassignments is not made."""
    with pytest.raises(BadConfiguration, match="no controller carries out profile kafka-zk"):
        cluster.controller(profile="kafka-zk")


@pytest.mark.parametrize("name", READINGS)
def test_move_of_a_partition_without_a_leader_begins_when_it_has_one(
    name: str, cluster: Any
) -> None:
    """A partition that was born without brokers is moved once one of them has come."""
    cluster.die(1)
    controller = elect(cluster, READINGS[name])
    cluster.create_topic("t", {0: (1,)}, then=controller)
    ask(cluster, {KEY: (2, 1)} if name == "repaired" else {KEY: (2, 3)}, then=controller)
    cluster.come(1, then=controller)
    if name == "repaired":  # its target names the dead broker, so that it was refused
        assert read(cluster) is None
        return
    cluster.join(*KEY, 2, 3, then=controller)
    assert (read(cluster), cluster.assigned(*KEY)) == (None, (2, 3))
