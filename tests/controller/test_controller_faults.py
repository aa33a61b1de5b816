"""Every planted fault does something, and nothing does without one."""

from typing import Any

import pytest

from reassure_controller import engine
from reassure_controller.faults import FAULTS
from reassure_controller.session import commit
from reassure_spec.znodes import NO_LEADER

Trace = list[object]


def nudge(cluster: Any, topic: str, *, add: int | None = None, remove: int | None = None) -> None:
    """Let the leader change the in-sync set, if it can: a fault may have left none that can."""
    leader = cluster.state(topic, 0).leader
    if leader != NO_LEADER and leader in cluster.brokers:
        cluster.brokers[leader].change_isr(topic, 0, add=add, remove=remove)


def act_out(cluster: Any, faults: set[str]) -> None:
    """Act out a story in which every fault has its occasion."""
    cluster.create_topic("t", {0: (1, 2)})
    cluster.create_topic("twice", {0: (1,)})
    cluster.create_topic("u", {0: (1, 2)})
    cluster.create_topic("small", {0: (1,)}, min_insync_replicas="2")
    first = cluster.controller(faults)
    first.drain()
    cluster.request({("small", 0): (2, 3)})
    cluster.request({("twice", 0): (2, 2)})
    cluster.request({("nowhere", 0): (1,)})
    cluster.request_raw(b"{")
    first.drain()
    cluster.request({("t", 0): (3, 1)})
    cluster.request({("t", 0): (4, 3)})
    first.drain()
    nudge(cluster, "t", add=3)
    nudge(cluster, "t", remove=2)
    first.drain()
    first.kill()
    second = cluster.controller(faults)
    second.drain()
    cluster.die(1)
    second.drain()
    cluster.come(1)
    second.drain()
    cluster.request({("u", 0): (4, 3)})
    second.drain()
    for topic in ("t", "u"):
        nudge(cluster, topic, add=3)
        nudge(cluster, topic, add=4)
        second.drain()


@pytest.fixture
def trace_of(make_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what controllers wrote while the story was acted out, operation by operation."""

    def trace(*faults: str) -> Trace:
        written: Trace = []

        def record(client: Any, operations: Any) -> Any:
            written.append(list(operations))
            return commit(client, operations)

        with monkeypatch.context() as patch:
            patch.setattr(engine, "commit", record)
            act_out(make_cluster(), set(faults))
        return written

    return trace


@pytest.fixture(scope="module")
def honest() -> Trace:
    """What a controller without a fault wrote; filled by the first test that needs it."""
    return []


def test_story_without_a_fault_is_always_the_same(trace_of: Any) -> None:
    """Acted out twice, the story makes the same writes: a difference is a fault's doing."""
    assert trace_of() == trace_of()


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_changes_what_is_written(fault: str, trace_of: Any, honest: Trace) -> None:
    """A controller with the fault writes something else than one without it."""
    if not honest:
        honest += trace_of()
    assert trace_of(fault) != honest
