"""Controllers that die, pause, lose their session or their connection."""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.retry import KazooRetry

from reassure_conformance.mutants import planted
from reassure_controller.client import Client
from reassure_controller.controller import Controller
from reassure_controller.planned_job import StuckError
from reassure_spec.readings import Readings
from reassure_spec.znodes import CONTROLLER, ReassignmentZnode
from reassure_zookeeper.interruptions import cut_connection, expire_session

from .conftest import wait_for

Act = Callable[[Any], object]

STORY: tuple[Act, ...] = (
    lambda cluster: cluster.create_topic("t", {0: (1, 2), 1: (2, 1)}),
    lambda cluster: cluster.request({("t", 0): (2, 3), ("t", 1): (3, 4)}),
    lambda cluster: cluster.join("t", 0, 3),
    lambda cluster: cluster.request({("t", 0): (3, 4), ("nowhere", 0): (1,)}),
    lambda cluster: cluster.request({("t", 0): (1, 3), ("t", 1): (1, 2)}),
    lambda cluster: cluster.die(2),
    lambda cluster: cluster.join("t", 0, 1, 3),
    lambda cluster: cluster.come(2),
    lambda cluster: cluster.join("t", 1, 2),
)
"""New topic, move, completion, change in flight, cancel, death and return of a broker."""


def run_story(
    cluster: Any, die_after: int | None, kill: Callable[[Any, Controller], Controller]
) -> int:
    """Run the story, ending the controller after that many effects; return how many there were."""
    controller = cluster.controller()
    done = 0
    for act in STORY:
        act(cluster)
        left = None if die_after is None else max(die_after - done, 0)
        result = controller.drain(max_effects=left)
        done += result.effects_done
        if result.held:
            die_after = None
            controller = kill(cluster, controller)
            controller.drain()
    return done


def outcome(cluster: Any) -> object:
    """Return what the story must have come to, whoever carried it out."""
    partitions = [
        (cluster.assigned("t", p), set(cluster.state("t", p).isr), cluster.child("t", p))
        for p in (0, 1)
    ]
    return partitions, cluster.requests(), cluster.reassigning()


def replace_dead(cluster: Any, controller: Controller) -> Controller:
    """Kill the controller and start another one."""
    controller.kill()
    successor: Controller = cluster.controller()
    assert successor.is_active
    return successor


def test_death_between_any_two_effects_changes_nothing(make_cluster: Any) -> None:
    """Wherever a controller dies, its successor brings the story to the same end."""
    whole = make_cluster()
    effects = run_story(whole, None, replace_dead)
    expected = outcome(whole)
    assert expected == ([((1, 3), {1, 3}, None), ((1, 2), {1, 2}, None)], [], [])
    assert effects > 50
    for count in range(effects):
        cluster = make_cluster()
        run_story(cluster, count, replace_dead)
        assert outcome(cluster) == expected, f"died after {count} effects"


def test_top_survives_a_failover(cluster: Any) -> None:
    """A successor takes top from the child znode and never from the grown assignment."""
    first = cluster.controller()
    cluster.create_topic("t", {0: (1, 2)})
    cluster.request({("t", 0): (3, 4)}, then=first)
    first.kill()
    second = cluster.controller()
    second.drain()
    assert cluster.child("t", 0) == ReassignmentZnode(top=2, target=(3, 4))
    assert cluster.assigned("t", 0) == (1, 2, 3, 4)


@pytest.mark.parametrize("looks", [True, False])
def test_new_leader_that_dies_keeps_the_old_replicas_where_they_are_looked_after(
    cluster: Any, looks: bool
) -> None:
    """With another look before each stop, a target that died meanwhile does not replace anybody."""
    readings = replace(Readings(), move_recheck_before_stop="yes" if looks else "no")
    controller = cluster.controller(readings=readings)
    cluster.create_topic("t", {0: (1, 2)})
    cluster.request({("t", 0): (3,)}, then=controller)
    cluster.join("t", 0, 3)
    while cluster.state("t", 0).leader != 3:
        controller.drain(max_effects=1)
    cluster.die(3, then=controller)
    state = cluster.state("t", 0)
    if looks:
        assert (state.leader, state.isr, cluster.assigned("t", 0)) == (1, (1, 2), (1, 2, 3))
        assert cluster.child("t", 0) is not None
    else:
        assert (state.leader, state.isr, cluster.assigned("t", 0)) == (-1, (3,), (3,))


def test_target_that_a_late_drop_took_out_is_added_again(cluster: Any) -> None:
    """A drop after the expansion takes a new target out, which is then expanded to once more."""
    controller = cluster.controller(readings=replace(Readings(), drop_evaluated="after-expansion"))
    cluster.create_topic("t", {0: (1, 2)})
    cluster.request({("t", 0): (1, 3)}, then=controller)
    cluster.request({("t", 0): (1, 4)}, then=controller)
    assert cluster.assigned("t", 0) == (1, 2, 4)
    cluster.join("t", 0, 4, then=controller)
    assert (cluster.assigned("t", 0), cluster.child("t", 0)) == ((1, 4), None)


@pytest.mark.parametrize("reckless", [False, True])
def test_zombie_is_stopped_by_the_epoch_check(make_cluster: Any, reckless: bool) -> None:
    """A controller that wakes up after another was elected writes nothing, anywhere in a plan."""
    faults = ["no-epoch-check"] if reckless else []
    changed = 0
    for count in range(8):
        cluster = make_cluster()
        cluster.create_topic("t", {0: (1, 2)})
        with planted(faults):
            zombie = cluster.controller()
            zombie.drain()
            cluster.request({("t", 0): (1, 3)})
            held = zombie.drain(max_effects=count).held
        if not held:
            break
        expire_session(cluster.server.hosts, zombie._client.client_id)
        successor = cluster.controller()
        successor.drain()
        before = cluster.dump()
        try:
            with planted(faults):
                while not zombie.pump().idle:
                    pass
        except StuckError:  # nothing tells it that it is deposed, and its successor did the rest
            assert reckless
        changed += cluster.dump() != before
        assert zombie.is_active == reckless
        assert successor.is_active
    assert count > 4
    assert (changed > 0) == reckless


def test_expired_controller_contends_again(cluster: Any) -> None:
    """A controller whose session expired forgets everything and is elected anew."""
    controller = cluster.begin({0: (1, 2)})
    expire_session(cluster.server.hosts, controller._client.client_id)
    cluster.request({("t", 0): (2, 1)}, then=controller)
    assert (controller.is_active, controller.epoch) == (True, 2)
    assert cluster.assigned("t", 0) == (2, 1)


def test_expired_controller_yields_to_its_successor(cluster: Any) -> None:
    """A controller whose session expired follows whoever was elected meanwhile."""
    first = cluster.controller()
    second = cluster.controller()
    assert (first.is_active, second.is_active) == (True, False)
    expire_session(cluster.server.hosts, first._client.client_id)
    second.drain()
    first.drain()
    assert (first.is_active, second.is_active, second.epoch) == (False, True, 2)
    second.kill()
    first.drain()
    assert (first.is_active, first.epoch) == (True, 3)


def test_resignation_lets_another_one_in(cluster: Any) -> None:
    """A controller that resigns deletes its znode; a waiting one takes over, it does not."""
    first = cluster.controller()
    second = cluster.controller()
    first.resign()
    second.drain()
    first.drain()
    assert (first.is_active, second.is_active) == (False, True)


def test_deleted_controller_znode_ends_the_term(cluster: Any) -> None:
    """A controller whose znode an operator deleted resigns and stands for election again."""
    controller = cluster.controller()
    controller.drain()
    cluster.admin.delete(CONTROLLER)
    controller.drain()
    assert (controller.is_active, controller.epoch) == (True, 2)


def test_what_happened_during_a_cut_is_seen(cluster: Any) -> None:
    """Requests, topics, brokers and ISR changes made while the connection was down are noticed."""
    may_return = threading.Event()
    handler = SequentialThreadingHandler()
    handler.sleep_func = lambda _: may_return.wait(20)
    held = KazooRetry(max_tries=-1, sleep_func=handler.sleep_func)
    client = Client(hosts=cluster.hosts, handler=handler, connection_retry=held)
    client.start()
    controller = cluster.controller(client=client)
    cluster.create_topic("t", {0: (1, 2), 1: (1,)})
    cluster.request({("t", 0): (1, 3)}, then=controller)
    cut_connection(client)
    wait_for(lambda: not client.connected)
    cluster.join("t", 0, 3)
    cluster.create_topic("u", {0: (4, 3)})
    cluster.request({("t", 1): (2,)})
    cluster.die(4)
    assert not client.connected
    may_return.set()
    controller.drain()
    assert controller.epoch == 1
    assert cluster.assigned("t", 0) == (1, 3)
    assert cluster.assigned("t", 1) == (1, 2)
    assert cluster.state("u", 0).isr == (3,)
    cluster.request({("t", 0): (3, 1)}, then=controller)
    assert cluster.assigned("t", 0) == (3, 1)


def cut_and_go_on(cluster: Any, controller: Controller) -> Controller:
    """Cut the connection just before the next effect, so that its outcome is unknown."""
    cut_connection(controller._client)
    return controller


def test_cut_before_any_effect_changes_nothing(make_cluster: Any) -> None:
    """A connection lost at any effect ends in the same state, with the same controller."""
    whole = make_cluster()
    effects = run_story(whole, None, cut_and_go_on)
    expected = outcome(whole)
    for count in range(1, effects, 4):
        cluster = make_cluster()
        run_story(cluster, count, cut_and_go_on)
        assert outcome(cluster) == expected, f"cut after {count} effects"
        assert cluster.controllers[0].epoch == 1


def test_unknown_outcome_is_read_before_it_is_decided(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that was carried out though its answer was lost is neither repeated nor forgotten."""
    from reassure_controller import engine
    from reassure_controller.session import Indefinite, settle

    controller = cluster.begin({0: (1, 2)})
    cluster.request({("t", 0): (3, 4)}, then=controller)
    lost = []

    def lose_answers(answer: Any) -> Any:
        lost.append(len(settle(answer)))
        raise Indefinite("the answer was lost")

    cluster.request({("t", 0): (1, 4)})
    assert controller.drain(max_effects=0).next_point == "change.child-written"
    monkeypatch.setattr(engine, "settle", lose_answers)
    assert not controller.pump(max_effects=1).idle
    monkeypatch.undo()
    assert lost == [3]  # the epoch, the request, the record
    controller.drain()
    # The drop that the change asks for was carried out, although the answer to it was lost.
    assert cluster.assigned("t", 0) == (1, 2, 4)
    assert cluster.admin.exists("/admin/reassignments/t/0").version == 1


def test_superseded_controller_says_so(cluster: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A controller that is stopped by the epoch check logs which znode told it."""
    controller = cluster.controller()
    cluster.create_topic("t", {0: (1,)})
    controller.drain(max_effects=0)
    cluster.admin.set("/controller_epoch", b"7")
    with caplog.at_level(logging.WARNING, "reassure_controller"):
        controller.drain()
    assert any("/controller_epoch" in record.getMessage() for record in caplog.records)
    assert (controller.is_active, controller.epoch) == (True, 8)
