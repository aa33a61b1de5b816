"""Paths of znodes, relative to a cluster's chroot, and the names of those with a number in it."""

import re
from typing import Final

CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
BROKER_IDS: Final = "/brokers/ids"
TOPICS: Final = "/brokers/topics"
CONFIGS: Final = "/config"
TOPIC_CONFIGS: Final = "/config/topics"
BROKER_CONFIGS: Final = "/config/brokers"
REASSIGNMENT_REQUESTS: Final = "/admin/reassignment_requests"
REASSIGNMENTS: Final = "/admin/reassignments"
REASSIGN_PARTITIONS: Final = "/admin/reassign_partitions"
FAILED_BROKERS: Final = "/admin/failed_brokers"
REASSIGNMENT_TASKS: Final = "/admin/reassignment_tasks"
PREFERRED_ELECTION: Final = "/admin/preferred_replica_election"
DELETED_TOPICS: Final = "/admin/delete_topics"
ISR_CHANGES: Final = "/isr_change_notification"
"""Where brokers before inter-broker protocol 2.7 say whose in-sync sets they changed."""
DEFAULT_BROKER_CONFIG: Final = "/config/brokers/<default>"
REQUEST_PREFIX: Final = "request_"
TASK_PREFIX: Final = "task_"
PERSISTENT_ROOTS: Final = (
    BROKER_IDS,
    TOPICS,
    TOPIC_CONFIGS,
    BROKER_CONFIGS,
    REASSIGNMENT_REQUESTS,
    REASSIGNMENTS,
)
"""Paths that exist, without data, before a controller is elected."""


def topic_path(topic: str) -> str:
    """Return the path of the znode that holds a topic's assignment."""
    return f"{TOPICS}/{topic}"


def partition_path(topic: str, partition: int) -> str:
    """Return the path of a partition's own znode, the parent of its state."""
    return f"{TOPICS}/{topic}/partitions/{partition}"


def state_path(topic: str, partition: int) -> str:
    """Return the path of a partition's leader and in-sync replicas."""
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def reassignment_path(topic: str, partition: int) -> str:
    """Return the path of a partition's reassignment in flight."""
    return f"{REASSIGNMENTS}/{topic}/{partition}"


def request_path(sequence: int) -> str:
    """Return the path of the request with this sequence number.

    >>> request_path(7)
    '/admin/reassignment_requests/request_0000000007'
    """
    return f"{REASSIGNMENT_REQUESTS}/{REQUEST_PREFIX}{sequence:010d}"


def failed_broker_path(broker: int) -> str:
    """Return the path of the record of a broker's failure."""
    return f"{FAILED_BROKERS}/{broker}"


def task_path(number: int) -> str:
    """Return the path of the task with this number.

    >>> task_path(7)
    '/admin/reassignment_tasks/task_0000000007'
    """
    return f"{REASSIGNMENT_TASKS}/{TASK_PREFIX}{number:010d}"


def broker_path(broker: int) -> str:
    """Return the path of a broker's registration."""
    return f"{BROKER_IDS}/{broker}"


def broker_config_path(broker: int) -> str:
    """Return the path of a broker's configuration, which outlives its registration."""
    return f"{BROKER_CONFIGS}/{broker}"


def topic_config_path(topic: str) -> str:
    """Return the path of a topic's configuration."""
    return f"{TOPIC_CONFIGS}/{topic}"


def deleted_topic_path(topic: str) -> str:
    """Return the path by which a client asks for a topic to be deleted.

    >>> deleted_topic_path("orders")
    '/admin/delete_topics/orders'
    """
    return f"{DELETED_TOPICS}/{topic}"


def parse_request_name(name: str) -> int | None:
    """Return the sequence number in the name of a request znode, or None when it is not one.

    >>> parse_request_name("request_0000000012"), parse_request_name("request_12")
    (12, None)
    """
    return _parse_name(REQUEST_PREFIX, name)


def parse_task_name(name: str) -> int | None:
    """Return the number in the name of a task, or None when it is not one."""
    return _parse_name(TASK_PREFIX, name)


def _parse_name(prefix: str, name: str) -> int | None:
    match = re.fullmatch(f"{prefix}([0-9]{{10}})", name)
    return int(match[1]) if match else None
