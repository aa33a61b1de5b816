"""What controllers and brokers answer a scrape with."""

from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.request import urlopen

import pytest
from kio.schema.errors import ErrorCode
from prometheus_client.parser import text_string_to_metric_families

from reassure_controller.controller import Controller
from reassure_lab.metrics.endpoint import make_registry, serve
from reassure_lab.metrics.measures import measure_controller, measure_zookeeper
from reassure_lab.wire.errors import PortTaken
from reassure_lab.wire.messages import (
    FetchedPartition,
    FetchedTopic,
    FetchResponse,
    MetadataResponse,
)
from reassure_lab.wire.outcomes import find_errors


def scrape(address: tuple[str, int]) -> dict[str, float]:
    """Return what is answered there: values by name, with labels where there are any."""
    with urlopen(f"http://{address[0]}:{address[1]}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return {
        sample.name + "".join(f" {value}" for _, value in sorted(sample.labels.items())): (
            sample.value
        )
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def controllers(cluster: Any) -> Iterator[list[tuple[Controller, tuple[str, int]]]]:
    """Two controllers in this process and where they are scraped; the first is elected."""
    first, second = cluster.controller(), cluster.controller()
    with (
        serve(make_registry(partial(measure_controller, first)), 0) as one,
        serve(make_registry(partial(measure_controller, second)), 0) as other,
    ):
        yield [(first, one), (second, other)]


def test_controllers_in_one_process_are_told_apart(controllers: Any) -> None:
    """Each of several controllers answers for itself: only one is elected, in epoch 1."""
    names = ("active", "epoch", "elections_total")
    told = [
        [scrape(address)[f"reassure_controller_{name}"] for name in names]
        for _, address in controllers
    ]
    assert told == [[1, 1, 1], [0, 0, 0]]


def test_values_are_those_of_the_cluster(cluster: Any, controllers: Any) -> None:
    """Moves in flight, what they leave behind and what lags is what ZooKeeper has, at any time."""
    first, address = controllers[0]
    cluster.create_topic("t", {0: (1, 2), 1: (1, 2)}, then=first)
    at_rest = scrape(address)
    assert at_rest["reassure_controller_failover_seconds_count"] == 1
    assert (
        at_rest["reassure_controller_failover_seconds_sum"]
        == at_rest["reassure_controller_last_failover_seconds"]
        > 0
    )
    cluster.request({("t", 0): (3, 4), ("t", 1): (1, 3)}, then=first)
    moving = scrape(address)
    expected = {
        "partitions": 2,
        "reassigning_partitions": len([n for n in (0, 1) if cluster.child("t", n)]),
        "leaving_replicas": 3,  # 1 and 2 of the first, 2 of the second
        "under_replicated_partitions": 2,
        "drop_set_replicas": 0,
        "queued_requests": 0,
    }
    assert {name: moving[f"reassure_controller_{name}"] for name in expected} == expected
    cluster.join("t", 0, 3, 4)
    cluster.join("t", 1, 3, then=first)
    done = scrape(address)
    assert {name: done[f"reassure_controller_{name}"] for name in expected} == {
        **dict.fromkeys(expected, 0),
        "partitions": 2,
    }


def test_a_drop_set_is_told_while_it_is_owed(cluster: Any, controllers: Any) -> None:
    """Between the record of a changed reassignment and the drop, the replicas to drop are told."""
    first, address = controllers[0]
    cluster.create_topic("t", {0: (1, 2)}, then=first)
    cluster.request({("t", 0): (1, 3)}, then=first)
    assert cluster.assigned("t", 0) == (1, 2, 3)
    cluster.request({("t", 0): (1, 4)})
    told = []
    while not (told and first.drain(max_effects=1).idle):
        told.append(scrape(address)["reassure_controller_drop_set_replicas"])
        assert len(told) < 100
    assert set(told) == {0, 1}
    assert cluster.assigned("t", 0) == (1, 2, 4)


def test_what_is_asked_of_zookeeper_is_counted(cluster: Any) -> None:
    """Each request to ZooKeeper is counted once, by its kind, for the client that made it."""
    client = cluster.admin
    with serve(make_registry(partial(measure_zookeeper, client)), 0) as address:
        before = scrape(address)
        for _ in range(3):
            client.exists("/controller")
        after = scrape(address)
    name = "reassure_zookeeper_operations_total Exists"
    assert after[name] - before.get(name, 0) == 3


def test_a_taken_port_is_refused() -> None:
    """Where another program listens already it is said so, with 78."""
    registry = make_registry()
    with (
        serve(registry, 0) as (_, port),
        pytest.raises(PortTaken, match="another port") as taken,
        serve(registry, port),
    ):
        pass
    assert taken.value.exit_code == 78


def test_errors_are_found_at_any_depth() -> None:
    """A response's errors are those of it as a whole and of what it is about, each once."""
    bad, good = ErrorCode.not_leader_or_follower, ErrorCode.none
    parts = tuple(FetchedPartition(n, one, 0, b"") for n, one in enumerate((good, bad, bad)))
    topics = (FetchedTopic("t", parts),)
    assert find_errors(FetchResponse(topics)) == {bad}
    whole = ErrorCode.unknown_server_error
    assert find_errors(FetchResponse(topics, whole)) == {bad, whole}
    assert find_errors(MetadataResponse((), "", -1, ())) == set()
