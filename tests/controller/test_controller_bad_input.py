"""Requests and znodes that are wrong: warned of, removed, and without any other effect."""

import json
import logging
from typing import Any

import pytest

from reassure_spec.readings import Readings, get_profile
from reassure_spec.znodes import (
    DEFAULT_BROKER_CONFIG,
    REASSIGNMENT_REQUESTS,
    REASSIGNMENTS,
    RequestZnode,
    encode_config,
    encode_reassignment,
    encode_request,
)
from reassure_spec.znodes import ReassignmentZnode as Child


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what the controller warned of."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "reassure_controller" and record.levelno == logging.WARNING
    ]


def ask(*targets: Any) -> bytes:
    """Return a request for partition t-0."""
    return encode_request(RequestZnode({("t", 0): targets}))


WRONG: dict[str, tuple[Any, ...]] = {
    "not-json": (b"{", "not JSON"),
    "not-an-object": (b"[]", "expected a JSON object"),
    "empty": (b"", "not JSON"),
    "other-version": (b'{"version":2,"assignments":{}}', "expected version 1"),
    "no-assignments": (b'{"version":1}', "assignments"),
    "unknown-key": (b'{"version":1,"assignments":{},"x":1}', "unknown keys: x"),
    "twice": (b'{"version":1,"assignments":{"t":{"0":[1],"0":[2]}}}', "stands twice"),
    "text-replica": (b'{"version":1,"assignments":{"t":{"0":["1"]}}}', "integer"),
    "bad-partition": (b'{"version":1,"assignments":{"t":{"00":[1]}}}', "partition number"),
    "not-utf-8": (b"\xff\xfe", "not JSON"),
    "too-large": (b" " * 1_048_577, "1048577 bytes"),
    "unknown-topic": (encode_request(RequestZnode({("no", 0): (1,)})), "no-0", "no such topic"),
    "unknown-partition": (encode_request(RequestZnode({("t", 9): (1,)})), "t-9", "no such topic"),
    "empty-target": (ask(), "t-0", "empty"),
    "duplicate": (ask(3, 3), "t-0", "twice"),
    "negative": (ask(3, -1), "t-0", "negative"),
    "never-registered": (ask(3, 77), "t-0", "broker 77 was never registered"),
}


@pytest.fixture
def quiet(cluster: Any) -> tuple[Any, Any, dict[str, Any]]:
    """A cluster at rest with topic t, its controller, and all its znodes."""
    controller = cluster.begin({0: (1, 2), 1: (1, 2)})
    return cluster, controller, cluster.dump()


@pytest.mark.parametrize("name", WRONG)
def test_wrong_request_is_warned_of_and_deleted(
    name: str, quiet: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A request that cannot be read, or carried out, is deleted with a warning; nothing changes."""
    cluster, controller, before = quiet
    data, *reasons = WRONG[name]
    path = cluster.request_raw(data)
    assert controller.drain().effects_done == 1
    assert cluster.dump() == before
    (warning,) = warnings_of(caplog)
    assert all(reason in warning for reason in (path, *reasons)), warning


def test_other_partitions_of_a_refused_request_go_on(
    quiet: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A refusal concerns its own partition only."""
    cluster, controller, _ = quiet
    cluster.request({("t", 0): (), ("t", 1): (2, 1), ("no", 0): (1,)}, then=controller)
    assert (cluster.assigned("t", 0), cluster.assigned("t", 1)) == ((1, 2), (2, 1))
    (warning,) = warnings_of(caplog)
    assert "no-0: there is no such topic" in warning and "t-0: the target is empty" in warning


def test_many_refused_partitions_are_one_line(quiet: Any, caplog: pytest.LogCaptureFixture) -> None:
    """However many partitions a request names that are not there, one line says so."""
    cluster, controller, before = quiet
    cluster.request(dict.fromkeys((("no", n) for n in range(40_000)), (1,)), then=controller)
    assert cluster.dump() == before
    (warning,) = warnings_of(caplog)
    assert "and 39997 partitions more" in warning and len(warning) < 300


def test_moves_and_deletions_have_a_line_each(
    cluster: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """An operator reads when a reassignment begins, changes and ends, and when a topic goes."""
    caplog.set_level(logging.INFO, "reassure_controller")
    controller = cluster.begin({0: (1, 2)})
    cluster.request({("t", 0): (1, 3)}, then=controller)
    cluster.request({("t", 0): (2, 1)}, then=controller)
    cluster.admin.create("/admin/delete_topics/t")
    controller.drain()
    lines = [record.getMessage() for record in caplog.records if "t" in record.getMessage()[:2]]
    assert lines == [
        "t-0: the reassignment to [1, 3] begins",
        "t-0: the reassignment to [2, 1] replaces another",
        "t-0: the reassignment has ended",
        "t: the topic is deleted",
    ]


def test_legacy_conflict_is_refused(quiet: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A request whose legacy flag is not that of the reassignment in flight is ignored."""
    cluster, controller, _ = quiet
    cluster.request({("t", 0): (1, 3)}, legacy=True, then=controller)
    cluster.request({("t", 0): (1, 4), ("t", 1): (2, 1)}, then=controller)
    assert cluster.child("t", 0) == Child(top=2, target=(1, 3), legacy=True)
    assert cluster.assigned("t", 1) == (2, 1)
    assert "legacy" in warnings_of(caplog)[0]


def test_legacy_conflict_refuses_the_whole_request_when_read_so(cluster: Any) -> None:
    """Under reading request.conflict=whole-request one conflict refuses every partition."""
    controller = cluster.controller(readings=Readings(request_conflict="whole-request"))
    cluster.create_topic("t", {0: (1, 2), 1: (1, 2)})
    cluster.request({("t", 0): (1, 3)}, legacy=True, then=controller)
    cluster.request({("t", 0): (1, 4), ("t", 1): (2, 1)}, then=controller)
    assert cluster.assigned("t", 1) == (1, 2)


def test_top_below_the_minimum_is_refused(cluster: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A new reassignment of a partition smaller than min.insync.replicas is ignored."""
    controller = cluster.controller()
    cluster.create_topic("t", {0: (1,)}, min_insync_replicas="2")
    cluster.request({("t", 0): (2, 3)}, then=controller)
    assert cluster.child("t", 0) is None
    assert "min.insync.replicas is 2" in warnings_of(caplog)[0]


@pytest.mark.clause("top.at-least-min-isr")
@pytest.mark.parametrize(("own", "refused"), [(None, True), ("1", False)])
def test_minimum_of_all_brokers_counts_where_the_topic_says_nothing(
    own: str | None, refused: bool, cluster: Any
) -> None:
    """The default of all brokers is the minimum of a topic without a setting of its own."""
    controller = cluster.controller()
    everybody = encode_config({"min.insync.replicas": "2"})
    cluster.admin.create(DEFAULT_BROKER_CONFIG, everybody, makepath=True)
    settings = {} if own is None else {"min_insync_replicas": own}
    cluster.create_topic("t", {0: (1,)}, **settings)
    cluster.request({("t", 0): (2, 3)}, then=controller)
    assert (cluster.child("t", 0) is None) == refused


def test_target_below_the_minimum_is_refused_when_amended(
    cluster: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The amended profile checks the length of the target as well."""
    controller = cluster.controller(readings=get_profile("kip-236-amended"))
    cluster.create_topic("t", {0: (1, 2)}, min_insync_replicas="2")
    cluster.request({("t", 0): (2,)}, then=controller)
    assert cluster.assigned("t", 0) == (1, 2)
    assert "min.insync.replicas is 2" in warnings_of(caplog)[0]


def test_dead_target_is_refused_when_read_so(
    cluster: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Under reading target.dead-replica=refuse a broker that is down cannot be a target."""
    controller = cluster.controller(readings=Readings(target_dead_replica="refuse"))
    cluster.create_topic("t", {0: (1, 2)})
    cluster.die(3)
    cluster.request({("t", 0): (1, 3)}, then=controller)
    assert cluster.assigned("t", 0) == (1, 2)
    assert "broker 3 is down" in warnings_of(caplog)[0]


def test_asking_for_what_is_done_or_in_hand_changes_nothing(
    quiet: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A request for the assignment as it is, or for the target in flight, is only deleted."""
    cluster, controller, _ = quiet
    cluster.request({("t", 0): (3, 4)}, then=controller)
    before = cluster.dump()
    cluster.request({("t", 0): (3, 4), ("t", 1): (1, 2)})
    assert controller.drain().effects_done == 1
    assert cluster.dump() == before
    assert warnings_of(caplog) == []


@pytest.mark.parametrize(
    "name", ["junk", "request_1", "request_00000000010", "xrequest_0000000001"]
)
def test_foreign_request_znode_is_deleted(
    name: str, quiet: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A znode among the requests that is not named like one is deleted, with what is below it."""
    cluster, controller, before = quiet
    path = f"{REASSIGNMENT_REQUESTS}/{name}"
    cluster.admin.create(f"{path}/deep/er", ask(3, 4), makepath=True)
    cluster.request({("t", 1): (1, 2)}, then=controller)
    assert cluster.dump() == before
    (warning,) = warnings_of(caplog)
    assert path in warning


@pytest.mark.parametrize(
    ("below", "data"),
    [
        ("ghost/0", encode_reassignment(Child(1, (1,)))),
        ("t/7", encode_reassignment(Child(1, (1,)))),
        ("t/x", b""),
        ("t/01", b""),
        ("t/1", b"{"),
        ("t/1", json.dumps({"version": 1, "top": "2", "assignment": [1]}).encode()),
        ("ghost", b""),
    ],
)
def test_foreign_reassignment_is_deleted_on_failover(
    below: str, data: bytes, quiet: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A child of /admin/reassignments that is not ours is deleted, the others are resumed."""
    cluster, controller, _ = quiet
    cluster.request({("t", 0): (1, 3)}, then=controller)
    controller.kill()
    before = cluster.dump(REASSIGNMENTS)
    cluster.admin.create(f"{REASSIGNMENTS}/{below}", data, makepath=True)
    successor = cluster.controller()
    successor.drain()
    assert cluster.dump(REASSIGNMENTS) == before
    assert f"{REASSIGNMENTS}/{below}".startswith(warnings_of(caplog)[0].split(": ")[0])
    cluster.join("t", 0, 3, then=successor)
    assert cluster.assigned("t", 0) == (1, 3)


def test_foreign_child_in_the_way_is_removed_when_met(
    quiet: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A child znode that is not ours, met when a reassignment begins, is replaced by ours."""
    cluster, controller, _ = quiet
    cluster.admin.create(f"{REASSIGNMENTS}/t/0", b"junk", makepath=True)
    cluster.request({("t", 0): (1, 3)}, then=controller)
    assert cluster.child("t", 0) == Child(top=2, target=(1, 3))
    assert f"{REASSIGNMENTS}/t/0" in warnings_of(caplog)[0]


def test_foreign_neighbour_does_not_stop_a_completion(quiet: Any) -> None:
    """A foreign znode beside the child keeps the parent in place and nothing else."""
    cluster, controller, _ = quiet
    cluster.request({("t", 0): (1, 3)}, then=controller)
    cluster.admin.create(f"{REASSIGNMENTS}/t/junk", b"")
    cluster.join("t", 0, 3, then=controller)
    assert cluster.assigned("t", 0) == (1, 3)
    assert cluster.admin.get_children(f"{REASSIGNMENTS}/t") == ["junk"]


def test_unreadable_topic_is_left_alone(quiet: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A topic of another format is named in a warning and touched no further."""
    cluster, controller, _ = quiet
    cluster.admin.create("/brokers/topics/odd", b"?")
    controller.drain()
    assert cluster.admin.get("/brokers/topics/odd")[0] == b"?"
    assert cluster.admin.get_children("/brokers/topics/odd") == []
    assert "/brokers/topics/odd" in warnings_of(caplog)[0]


def test_deleted_topic_is_forgotten(quiet: Any) -> None:
    """When a topic goes away while it is reassigned its reassignment is removed."""
    cluster, controller, _ = quiet
    cluster.request({("t", 0): (1, 3)}, then=controller)
    cluster.admin.delete("/brokers/topics/t", recursive=True)
    controller.drain()
    assert cluster.admin.exists(f"{REASSIGNMENTS}/t/0") is None
