"""Elections of a replica that is not in sync: where settings allow them, and when they are read."""

from typing import Any

import pytest

from reassure_controller.controller import Controller
from reassure_spec.znodes import (
    DEFAULT_BROKER_CONFIG,
    UNCLEAN,
    encode_config,
    topic_config_path,
    topic_path,
)

CASES = {
    "nobody says": (None, None, False),
    "the topic allows it": (None, "true", True),
    "the default allows it": ("true", None, True),
    "the topic forbids what the default allows": ("true", "false", False),
    "the topic allows what the default forbids": ("false", "true", True),
    "the topic's settings make no sense": ("true", "perhaps", True),
}


def _set(cluster: Any, path: str, value: str | None) -> None:
    if value is not None:
        content = encode_config({UNCLEAN: value})
        if cluster.admin.exists(path):
            cluster.admin.set(path, content)
        else:
            cluster.admin.create(path, content, makepath=True)


def _lose_leader(cluster: Any, controller: Controller) -> None:
    """Let the last in-sync replica of orders-0 die beside one that is not in sync."""
    cluster.create_topic("orders", {0: (1, 2)}, then=controller)
    cluster.leave("orders", 0, 2, then=controller)
    cluster.die(1)


def _led(cluster: Any) -> tuple[int, tuple[int, ...]]:
    state = cluster.state("orders", 0)
    return state.leader, state.isr


def _count_written(cluster: Any) -> int:
    """Return how often the replicas that are assigned were written."""
    return int(cluster.admin.get(topic_path("orders"))[1].version)


@pytest.mark.clause("act.unclean-election", "election.clean")
@pytest.mark.parametrize("name", CASES)
def test_settings_say_who_may_lead(name: str, cluster: Any) -> None:
    """The topic's setting decides, else the brokers' default, else nobody is elected."""
    default, own, allowed = CASES[name]
    controller = cluster.controller()
    _set(cluster, DEFAULT_BROKER_CONFIG, default)
    _set(cluster, topic_config_path("orders"), own)
    _lose_leader(cluster, controller)
    controller.drain()
    assert _led(cluster) == ((2, (2,)) if allowed else (-1, (1,)))


@pytest.mark.clause("act.unclean-election")
@pytest.mark.parametrize("path", [DEFAULT_BROKER_CONFIG, topic_config_path("orders")])
def test_offline_partition_is_led_once_it_is_allowed(path: str, cluster: Any) -> None:
    """Who allows it afterwards is heard: the partition gets its leader without another death."""
    controller = cluster.controller()
    _lose_leader(cluster, controller)
    controller.drain()
    assert _led(cluster) == (-1, (1,))
    _set(cluster, path, "true")
    controller.drain()
    assert _led(cluster) == (2, (2,))


@pytest.mark.clause("act.unclean-election")
def test_next_controller_reads_the_setting(cluster: Any) -> None:
    """A controller that takes over finds the partition offline, and what its topic allows."""
    first = cluster.controller()
    _lose_leader(cluster, first)
    first.kill()
    _set(cluster, topic_config_path("orders"), "true")
    second = cluster.controller()
    second.drain()
    assert _led(cluster) == (2, (2,))


@pytest.mark.clause("election.clean")
def test_forbidding_it_undoes_nothing(cluster: Any) -> None:
    """A setting that is read at one election does not count at the next."""
    controller = cluster.controller()
    _set(cluster, topic_config_path("orders"), "true")
    _lose_leader(cluster, controller)
    controller.drain()
    cluster.come(1, then=controller)
    _set(cluster, topic_config_path("orders"), "false")
    cluster.die(2, then=controller)
    assert _led(cluster) == (-1, (2,))


@pytest.mark.clause("act.unclean-election", "drop.carried-out")
@pytest.mark.parametrize("path", [DEFAULT_BROKER_CONFIG, topic_config_path("orders")])
def test_drop_that_waited_is_carried_out_once_somebody_may_lead(path: str, cluster: Any) -> None:
    """A change that came while nobody in sync was alive goes on with the leader by the settings."""
    controller = cluster.begin({0: (1,)}, topic="orders")
    cluster.request({("orders", 0): (3,)}, then=controller)
    cluster.die(1, then=controller)
    cluster.request({("orders", 0): (1,)}, then=controller)
    assert (_led(cluster), cluster.assigned("orders", 0)) == ((-1, (1,)), (1, 3))
    version = _count_written(cluster)
    _set(cluster, path, "true")
    controller.drain()
    assert (_led(cluster), cluster.assigned("orders", 0)) == ((3, (3,)), (3, 1))
    # 1 was dropped, for it ranks below the leader, and added, as it is the target.
    assert _count_written(cluster) == version + 2


@pytest.mark.clause("act.unclean-election", "complete.carried-out")
def test_move_is_complete_once_its_target_is_led_uncleanly(cluster: Any) -> None:
    """Who is elected when the last one in sync dies is in sync: nobody else has to say so."""
    controller = cluster.controller()
    _set(cluster, topic_config_path("orders"), "true")
    cluster.create_topic("orders", {0: (1,)}, then=controller)
    cluster.request({("orders", 0): (3,)}, then=controller)
    cluster.die(1, then=controller)
    assert (_led(cluster), cluster.assigned("orders", 0)) == ((3, (3,)), (3,))
    assert cluster.child("orders", 0) is None
