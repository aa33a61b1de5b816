"""In which order a follower asks its leader."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from kio.schema.errors import ErrorCode

from reassure_controller.replication.messages import Fetch
from reassure_lab.node import fetching
from reassure_lab.node.fetching import Fetchers
from reassure_lab.wire.messages import (
    FetchedPartition,
    FetchedTopic,
    FetchRequest,
    FetchResponse,
)
from reassure_spec.znodes import PartitionKey


class FullAnswer:
    """A leader whose every answer is full with the records of the first partition asked about."""

    def __init__(self) -> None:
        self.served: list[str] = []

    def ask(self, request: FetchRequest) -> FetchResponse:
        """Answer."""
        self.served.append(request.topics[0].topic)
        records = [b"x", *[b""] * (len(request.topics) - 1)]
        return FetchResponse(
            tuple(
                FetchedTopic(topic.topic, (FetchedPartition(0, ErrorCode.none, 0, found),))
                for topic, found in zip(request.topics, records, strict=True)
            )
        )


def test_every_partition_has_its_turn() -> None:
    """Who got records comes last the next time, so that nobody waits for ever behind the others."""
    broker: Any = SimpleNamespace(replicas=None)
    fetchers = Fetchers(broker, cast("Any", None))
    leader = FullAnswer()
    served: dict[PartitionKey, int] = {}
    for number in range(6):
        asked = [
            Fetch((topic, 0), (1, 3 * number + place), 2, 1, 0, 0, 1)
            for place, topic in enumerate("abc", 1)
        ]
        fetchers._exchange(cast("Any", leader), asked, served, {})
    assert leader.served == ["a", "b", "c", "a", "b", "c"]


class Refusal:
    """A leader that refuses one topic; it notes which it was asked about."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def ask(self, request: FetchRequest) -> FetchResponse:
        """Answer."""
        self.asked.append([topic.topic for topic in request.topics])
        errors = {"b": ErrorCode.not_leader_or_follower}
        return FetchResponse(
            tuple(
                FetchedTopic(
                    one.topic,
                    (FetchedPartition(0, errors.get(one.topic, ErrorCode.none), 0, b""),),
                )
                for one in request.topics
            )
        )


def test_a_partition_that_is_refused_rests_and_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Others are asked about at once, and it again when its rest is over, which grows."""
    now = 100.0
    monkeypatch.setattr(fetching.time, "monotonic", lambda: now)
    broker: Any = SimpleNamespace(replicas=None)
    fetchers, leader = Fetchers(broker, cast("Any", None)), Refusal()
    asked = [Fetch((topic, 0), (1, 1), 2, 1, 0, 0, 1) for topic in "ab"]
    rests: fetching.Rests = {}
    for _ in range(2):
        assert fetchers._exchange(cast("Any", leader), asked, {}, rests)
    now += fetching.BACKOFF_S
    assert fetchers._exchange(cast("Any", leader), asked, {}, rests)
    assert leader.asked == [["a", "b"], ["a"], ["a", "b"]]
    assert not fetchers._exchange(cast("Any", leader), asked[1:], {}, rests)
    for _ in range(20):
        now += fetching.BACKOFF_S
        fetchers._exchange(cast("Any", leader), asked[1:], {}, rests)
    assert len(leader.asked[3:]) < 6
    assert rests["b", 0][1] == fetching.BACKOFF_MAX_S
