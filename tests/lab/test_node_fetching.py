"""In which order a follower asks its leader."""

from types import SimpleNamespace
from typing import Any, cast

from kio.schema.errors import ErrorCode

from reassure_controller.replication.messages import Fetch
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
        fetchers._exchange(cast("Any", leader), asked, served)
    assert leader.served == ["a", "b", "c", "a", "b", "c"]
