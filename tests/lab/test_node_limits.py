"""What producers are held to by a broker, as znodes say and as they change."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from reassure_controller.replication.rules import ReplicationRules
from reassure_controller.session import ensure_roots
from reassure_lab.node.limits import TopicLimits
from reassure_spec.znodes import (
    DEFAULT_BROKER_CONFIG,
    broker_config_path,
    encode_config,
    topic_config_path,
)

TOPIC, OWN = topic_config_path("t"), broker_config_path(1)


@pytest.fixture
def admin(make_cluster: Any) -> Any:
    """A client of an empty cluster."""
    client = make_cluster(()).admin
    ensure_roots(client)
    return client


def write(admin: Any, path: str, content: bytes) -> None:
    """Write a znode, whether it is there or not."""
    admin.ensure_path(path)
    admin.set(path, content)


def minimum(count: int) -> bytes:
    """Return a configuration that sets the minimum."""
    return encode_config({"min.insync.replicas": str(count)})


def wait_for(limits: TopicLimits, count: int) -> None:
    """Look again and again until the minimum of t is this one."""
    found: Callable[[], int] = lambda: limits.find_minimum("t")  # noqa: E731
    for _ in range(1000):
        limits.learn()
        if found() == count:
            return
        time.sleep(0.01)
    raise AssertionError(f"expected {count}, found {found()}")


def test_nearest_setting_counts_and_changes_are_seen(admin: Any) -> None:
    """The topic's own comes before the broker's, that before everybody's, that before the start's.

    Each counts as soon as it is written, and no longer when it is gone.
    """
    limits = TopicLimits(admin, 1, ReplicationRules(min_insync_replicas=7))
    limits.learn("t")
    assert limits.find_minimum("t") == 7
    for path, count in ((DEFAULT_BROKER_CONFIG, 6), (OWN, 5), (TOPIC, 4), (TOPIC, 3)):
        write(admin, path, minimum(count))
        wait_for(limits, count)
    admin.delete(TOPIC)
    wait_for(limits, 5)
    write(admin, OWN, encode_config({}))
    wait_for(limits, 6)


def test_size_of_a_batch_has_another_name_on_a_topic(admin: Any) -> None:
    """It is message.max.bytes of a broker and max.message.bytes of a topic, which comes first."""
    write(admin, OWN, encode_config({"message.max.bytes": "50", "max.message.bytes": "9"}))
    limits = TopicLimits(admin, 1, ReplicationRules())
    limits.learn("t")
    assert limits.find_batch_bytes("t") == 50
    write(admin, TOPIC, encode_config({"message.max.bytes": "9", "max.message.bytes": "40"}))
    other = TopicLimits(admin, 1, ReplicationRules(batch_bytes_max=30))
    other.learn("t")
    assert (other.find_batch_bytes("t"), other.find_batch_bytes("u")) == (40, 50)
    assert other.find_minimum("t") == 1


def test_what_is_there_counts_from_the_first_order_on(admin: Any) -> None:
    """A topic is read before the broker leads it for the first time."""
    write(admin, TOPIC, minimum(2))
    limits = TopicLimits(admin, 1, ReplicationRules())
    assert limits.find_minimum("t") == 1
    limits.learn("t")
    assert limits.find_minimum("t") == 2


@pytest.mark.parametrize(
    "content",
    [b'{"version":2,"config":{}}', b"?", encode_config({"min.insync.replicas": "many"})],
)
def test_setting_that_cannot_be_read_changes_nothing(
    admin: Any, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """What was read before stays, and the znode is named."""
    write(admin, TOPIC, minimum(3))
    limits = TopicLimits(admin, 1, ReplicationRules())
    limits.learn("t")
    write(admin, TOPIC, content)
    for _ in range(1000):
        limits.learn()
        if TOPIC in caplog.text:
            break
        time.sleep(0.01)
    assert f"{TOPIC}: " in caplog.text
    assert limits.find_minimum("t") == 3


def test_changes_are_seen_after_the_watches_were_lost(admin: Any) -> None:
    """What changed while the connection was away is read when it is back."""
    write(admin, TOPIC, minimum(2))
    limits = TopicLimits(admin, 1, ReplicationRules())
    limits.learn("t")
    limits._on_watch(type("Lost", (), {"type": "NONE", "path": None}))
    assert limits._stale == {TOPIC, OWN, DEFAULT_BROKER_CONFIG}
    wait_for(limits, 2)
