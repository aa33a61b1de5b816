"""What a stock client asks of Kafka's controller."""

from typing import Final

from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from reassure_conformance.adapter import Reply

_CALL_MS: Final = 8_000


def reassign_by_call(bootstrap: str, topic: str, partition: int, target: tuple[int, ...]) -> Reply:
    """Ask for a reassignment (AlterPartitionReassignments); no target cancels the one under way."""
    key = TopicPartition(topic, partition)
    try:
        client = KafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=_CALL_MS)
        try:
            answers = client.alter_partition_reassignments({key: list(target) or None})
        finally:
            client.close()
    except KafkaError:
        return Reply.UNKNOWN
    if key not in answers:
        return Reply.UNKNOWN
    return Reply.OK if answers[key] is None else Reply.REFUSED
