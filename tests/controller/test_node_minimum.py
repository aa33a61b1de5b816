"""How many replicas a broker wants in sync, as znodes say and as they change."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from reassure_controller.node.minimum import Minimums
from reassure_controller.session import ensure_roots
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


def wait_for(minimums: Minimums, count: int) -> None:
    """Look again and again until the minimum of t is this one."""
    found: Callable[[], int] = lambda: minimums.find("t")  # noqa: E731
    for _ in range(1000):
        minimums.learn()
        if found() == count:
            return
        time.sleep(0.01)
    raise AssertionError(f"expected {count}, found {found()}")


def test_nearest_setting_counts_and_changes_are_seen(admin: Any) -> None:
    """The topic's own comes before the broker's, that before everybody's, that before the start's.

    Each counts as soon as it is written, and no longer when it is gone.
    """
    minimums = Minimums(admin, 1, 7)
    minimums.learn("t")
    assert minimums.find("t") == 7
    for path, count in ((DEFAULT_BROKER_CONFIG, 6), (OWN, 5), (TOPIC, 4), (TOPIC, 3)):
        write(admin, path, minimum(count))
        wait_for(minimums, count)
    admin.delete(TOPIC)
    wait_for(minimums, 5)
    write(admin, OWN, encode_config({}))
    wait_for(minimums, 6)


def test_what_is_there_counts_from_the_first_order_on(admin: Any) -> None:
    """A topic is read before the broker leads it for the first time."""
    write(admin, TOPIC, minimum(2))
    minimums = Minimums(admin, 1, 1)
    assert minimums.find("t") == 1
    minimums.learn("t")
    assert minimums.find("t") == 2


@pytest.mark.parametrize(
    "content",
    [b'{"version":2,"config":{}}', b"?", encode_config({"min.insync.replicas": "many"})],
)
def test_setting_that_cannot_be_read_changes_nothing(
    admin: Any, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """What was read before stays, and the znode is named."""
    write(admin, TOPIC, minimum(3))
    minimums = Minimums(admin, 1, 1)
    minimums.learn("t")
    write(admin, TOPIC, content)
    for _ in range(1000):
        minimums.learn()
        if TOPIC in caplog.text:
            break
        time.sleep(0.01)
    assert f"{TOPIC}: " in caplog.text
    assert minimums.find("t") == 3


def test_changes_are_seen_after_the_watches_were_lost(admin: Any) -> None:
    """What changed while the connection was away is read when it is back."""
    write(admin, TOPIC, minimum(2))
    minimums = Minimums(admin, 1, 1)
    minimums.learn("t")
    minimums._on_watch(type("Lost", (), {"type": "NONE", "path": None}))
    assert minimums._stale == {TOPIC, OWN, DEFAULT_BROKER_CONFIG}
    wait_for(minimums, 2)
