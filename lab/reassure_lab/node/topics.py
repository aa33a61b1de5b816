"""Creates and deletes topics as Kafka's tools do: by what they write for the controller to find."""

import logging
import random
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError, NoNodeError
from kio.schema.errors import ErrorCode

from reassure_controller.session import Operation, Refused, commit, gather
from reassure_lab.node.metadata import is_topic
from reassure_lab.node.proposing import choose_replicas, order_brokers
from reassure_spec.errors import BadUsage
from reassure_spec.znodes import (
    BROKER_IDS,
    MIN_ISR,
    TOPIC_MESSAGE_BYTES,
    UNCLEAN,
    BadZnode,
    ReplicaList,
    broker_path,
    decode_rack,
    deleted_topic_path,
    encode_config,
    encode_topic,
    parse_limit,
    parse_number,
    parse_unclean,
    topic_config_path,
    topic_path,
)

log = logging.getLogger(__name__)

SETTINGS: Final = (MIN_ISR, TOPIC_MESSAGE_BYTES, UNCLEAN)
"""The settings of a topic that brokers and controllers go by."""
PARTITIONS_MAX: Final = 10_000
"""Where the assignment of a topic no longer fits into a znode."""


class TopicRefused(BadUsage):
    """A topic that cannot be made or deleted as asked for; `error` is Kafka's."""

    def __init__(self, error: ErrorCode, topic: str, reason: str) -> None:
        super().__init__(f"topic {topic!r}: {reason}")
        self.error = error


def create_topic(
    client: KazooClient,
    name: str,
    *,
    assigned: Mapping[int, ReplicaList] | None = None,
    partitions: int = 1,
    factor: int = 1,
    config: Mapping[str, str] | None = None,
    is_tried: bool = False,
    any_setting: bool = False,
) -> dict[int, ReplicaList]:
    """Create a topic, with this assignment or one that is drawn; return the assignment.

    Where it `is_tried` nothing is written; settings that nobody here knows are refused unless
    `any_setting` goes. Raises TopicRefused, Indefinite.
    """
    if not is_topic(name):
        what = "a name has 1 to 249 letters, digits, dots, underscores and hyphens"
        raise TopicRefused(ErrorCode.invalid_topic_exception, name, what)
    racks = _read_racks(client)
    if assigned is None:
        assigned = _draw(name, racks, partitions, factor)
    _check_assignment(name, assigned, racks)
    _check_config(name, config or {}, any_setting=any_setting)
    paths = topic_path(name), topic_config_path(name)
    there, configured = gather([client.exists_async(path) for path in paths])
    if there is not None:
        raise TopicRefused(ErrorCode.topic_already_exists, name, "there is one of that name")
    content = encode_config(config or {})
    operations: list[Operation] = [
        ("set_data" if configured else "create", (paths[1], content)),
        ("create", (paths[0], encode_topic(assigned))),
    ]
    if not is_tried:
        try:
            commit(client, operations)
        except Refused as refused:
            what = f"somebody else makes one of that name: {refused}"
            raise TopicRefused(ErrorCode.topic_already_exists, name, what) from refused
    return dict(assigned)


def _read_racks(client: KazooClient) -> dict[int, str | None]:
    """Return the racks of live brokers, of none where some do not say theirs."""
    names = gather([client.get_children_async(BROKER_IDS)])[0] or ()
    numbers = sorted(number for name in names if (number := parse_number(name)) is not None)
    found = gather([client.get_async(broker_path(number)) for number in numbers])
    racks = take_racks(zip(numbers, found, strict=True))
    return racks if None not in racks.values() else dict.fromkeys(racks)


def take_racks(found: Iterable[tuple[int, Any]]) -> dict[int, str | None]:
    """Return the racks of brokers by their registrations as read; one that makes no sense is none.

    No controller uses such a broker either.
    """
    racks: dict[int, str | None] = {}
    for broker, content in found:
        try:
            if content is not None:
                racks[broker] = decode_rack(broker_path(broker), content[0])
        except BadZnode as bad:
            log.warning("%s; the broker is not used", bad)
    return racks


def _draw(
    name: str, racks: Mapping[int, str | None], partitions: int, factor: int
) -> dict[int, ReplicaList]:
    if not 0 < partitions <= PARTITIONS_MAX:
        what = f"{partitions} partitions; it has 1 to {PARTITIONS_MAX}"
        raise TopicRefused(ErrorCode.invalid_partitions, name, what)
    if not 0 < factor <= len(racks):
        what = f"{factor} replicas of a partition, and {len(racks)} live brokers"
        raise TopicRefused(ErrorCode.invalid_replication_factor, name, what)
    brokers, start = order_brokers(racks), random.randrange(len(racks))
    shift = random.randrange(len(racks))
    return {
        number: choose_replicas(brokers, racks, start + number, shift, number, factor)
        for number in range(partitions)
    }


def _check_assignment(
    name: str, assigned: Mapping[int, ReplicaList], racks: Mapping[int, str | None]
) -> None:
    counts = {len(replicas) for replicas in assigned.values()}
    strange = {one for replicas in assigned.values() for one in replicas} - racks.keys()
    twice = any(len({*replicas}) < len(replicas) for replicas in assigned.values())
    if sorted(assigned) != [*range(len(assigned))] or len(counts) != 1 or 0 in counts or twice:
        what = "partitions are numbered from 0 on, with as many different replicas each"
    elif strange:
        what = f"no live broker {min(strange)}"
    else:
        return
    raise TopicRefused(ErrorCode.invalid_replica_assignment, name, what)


def _check_config(name: str, config: Mapping[str, str], *, any_setting: bool) -> None:
    unknown, path = config.keys() - {*SETTINGS}, topic_config_path(name)
    if unknown and not any_setting:
        what = f"nobody goes by {min(unknown)}; known are {', '.join(SETTINGS)}"
        raise TopicRefused(ErrorCode.invalid_config, name, what)
    try:
        parse_unclean(path, config)
        for setting in (MIN_ISR, TOPIC_MESSAGE_BYTES):
            parse_limit(path, config, setting)
    except BadZnode as bad:
        raise TopicRefused(ErrorCode.invalid_config, name, bad.reason) from bad


def delete_topic(client: KazooClient, name: str) -> None:
    """Ask for a topic to be deleted; nothing is done where that is asked for already.

    Raises TopicRefused, Indefinite.
    """
    path = topic_path(name) if is_topic(name) else topic_path("-")
    try:
        commit(client, [("check", (path, -1)), ("create", (deleted_topic_path(name), b""))])
    except Refused as refused:
        if isinstance(refused.error, NoNodeError):
            error = ErrorCode.unknown_topic_or_partition
            raise TopicRefused(error, name, "there is none of that name") from refused
        if not isinstance(refused.error, NodeExistsError):
            raise
