"""Replicas whose disk does not take what they are sent."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from reassure_conformance.adapter.stepping import VirtualClock
from reassure_controller.replication import errors
from reassure_controller.replication.backoff import FIRST_MS, MOST_MS
from reassure_controller.replication.following import Following
from reassure_controller.replication.hosting import Replicas
from reassure_controller.replication.messages import Fetched, Produce, Response
from reassure_controller.replication.observing import Observer
from reassure_controller.replication.replica import Replica
from reassure_controller.replication.rules import ReplicationRules
from reassure_controller.storage.directory import LogDirectory
from reassure_controller.storage.records import Record, check_produced, encode

from .conftest import Told

KEY = ("t", 0)


@pytest.fixture(params=[1, 2], ids=["leader", "follower"])
def replicas(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Replicas]:
    """Broker 1, told that 1 or 2 leads."""
    disk, observer = LogDirectory(tmp_path / "logs", 1, "c"), Observer(tmp_path / "said", 1, 1)
    clock = VirtualClock(10**6)
    hosted = Replicas(1, 9, Told(request.param), disk, clock, observer, ReplicationRules())
    hosted.pass_ms = clock.advance  # type: ignore[attr-defined]
    hosted.become(KEY)
    yield hosted
    hosted.close()


def offer(replicas: Replicas, value: bytes) -> list[Response]:
    """Send a record to the replica, as a producer or as its leader; return the answers."""
    replica = replicas.find(KEY)
    assert isinstance(replica, Replica)
    answers: list[Response] = []
    raw = encode([Record(None, value)], replica.log.end_offset, 3, 0)
    if isinstance(replica.role, Following):
        [(_, asked)] = replicas.next_requests()
        replicas.take(Fetched(KEY, asked.correlation, records=raw, high_watermark=9))
    else:
        replicas.serve(Produce(KEY, (0, 1), 1, check_produced(raw)), answers.append)
    return answers


def test_replica_outlives_a_full_disk(replicas: Replicas, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept or claimed of what did not fit; a producer is told, a follower asks again."""
    offer(replicas, b"a")
    replica = replicas.find(KEY)
    assert replica is not None
    before = replica.log.end_offset, replica.high_watermark

    def full(descriptor: int, content: bytes, position: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        answers = offer(replicas, b"b")
    assert (replica.log.end_offset, replica.high_watermark) == before == (1, before[1])
    assert [one.error for one in answers] in ([], [errors.KAFKA_STORAGE_ERROR])
    replicas.pass_ms(FIRST_MS)  # type: ignore[attr-defined]
    offer(replicas, b"c")
    assert replica.log.end_offset == 2


def test_full_disk_is_tried_and_named_less_and_less_often(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In a minute a full disk has a dozen lines, and a follower asks as often; then all goes on."""

    def full(descriptor: int, content: bytes, position: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    replica = replicas.find(KEY)
    assert replica is not None
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        for _ in range(60_000 // 50):
            if not isinstance(replica.role, Following) or list(replicas.next_requests()):
                offer(replicas, b"b")
            replicas.pass_ms(50)  # type: ignore[attr-defined]
    assert 8 <= caplog.text.count("No space left") <= 14
    replicas.pass_ms(MOST_MS)  # type: ignore[attr-defined]
    offer(replicas, b"c")
    offer(replicas, b"d")
    assert replica.log.end_offset == 2


@pytest.mark.parametrize("replicas", [2], indirect=True, ids=["follower"])
def test_follower_goes_on_where_the_leader_begins(replicas: Replicas) -> None:
    """What a leader has deleted is let go of, and only where it says that it has."""
    offer(replicas, b"a")
    replica = replicas.find(KEY)
    assert replica is not None
    for error, begins in ((errors.FENCED_LEADER_EPOCH, 1), (errors.OFFSET_OUT_OF_RANGE, 20)):
        [(_, asked)] = replicas.next_requests()
        replicas.take(Fetched(KEY, asked.correlation, error, start=20))
        assert (replica.log.end_offset, replica.high_watermark) == (begins, begins)
    assert replica.log.start_offset == 20
    [(_, asked)] = replicas.next_requests()
    raw = encode([Record(None, b"b")], 20, 3, 0)
    replicas.take(Fetched(KEY, asked.correlation, records=raw, high_watermark=21))
    assert (replica.log.end_offset, replica.high_watermark) == (21, 21)
