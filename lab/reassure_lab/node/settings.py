"""How a broker with logs is set up on the command line."""

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from reassure_controller.replication.quota import Quota, Quotas
from reassure_controller.replication.rules import (
    BATCH_BYTES_MAX,
    LAG_MS_MAX,
    ReplicationRules,
)
from reassure_controller.replication.upkeep import (
    CHECKPOINT_MS,
    RECOVERY_CHECKPOINT_MS,
    RETENTION_CHECK_MS,
    UpkeepSettings,
)
from reassure_controller.storage.log import SEGMENT_BYTES
from reassure_lab.wire.frames import MAX_BYTES
from reassure_spec.errors import BadConfiguration
from reassure_spec.profiles import AMENDED_PROFILE
from reassure_spec.rooms import BROKER, choose_readings

BROKER_PROFILE: Final = AMENDED_PROFILE
"""What brokers go by unless they are told: as KAFKA-4485 is written any new leader epoch may cost
an acknowledged record (docs/replication.md)."""
_NUMBERS: Final = (
    ("--lag-ms", "replica.lag.time.max.ms", LAG_MS_MAX),
    ("--min-insync", "min.insync.replicas, where no znode says otherwise", 1),
    ("--message-max-bytes", "message.max.bytes, where no znode says otherwise", BATCH_BYTES_MAX),
    ("--request-max-bytes", "socket.request.max.bytes", MAX_BYTES),
    ("--quota", "bytes a second that replicas out of sync may fetch, and be sent", None),
    ("--segment-bytes", "log.segment.bytes", SEGMENT_BYTES),
    ("--flush-messages", "log.flush.interval.messages (default: never)", None),
    ("--flush-ms", "log.flush.interval.ms (default: never)", None),
    ("--checkpoint-ms", "replica.high.watermark.checkpoint.interval.ms", CHECKPOINT_MS),
    (
        "--recovery-checkpoint-ms",
        "log.flush.offset.checkpoint.interval.ms",
        RECOVERY_CHECKPOINT_MS,
    ),
    ("--retention-ms", "log.retention.ms (default: for ever)", None),
    ("--retention-bytes", "log.retention.bytes (default: everything)", None),
    ("--retention-check-ms", "log.retention.check.interval.ms", RETENTION_CHECK_MS),
)
"""Options that take a number, what Kafka calls it, and what it is without."""


class NotOnTheWire(BadConfiguration):
    """A reading that brokers cannot carry out with Kafka's requests."""


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """What one broker goes by."""

    data: Path
    rules: ReplicationRules
    upkeep: UpkeepSettings = field(default_factory=UpkeepSettings)
    flush_records: int | None = None
    """How many records may not be safe: log.flush.interval.messages."""
    segment_bytes: int = SEGMENT_BYTES
    request_bytes_max: int = MAX_BYTES
    """The largest request that is read: socket.request.max.bytes."""
    port: int = 0
    """Where it listens; 0: on one that is free."""
    advertised: tuple[str, int] | None = None
    """What it registers in place of where it listens."""
    quota: int | None = None
    """Bytes a second, each for what it sends to and fetches for replicas that are out of sync."""

    def make_quotas(self) -> Quotas:
        """Return the limits, with nothing used of them yet."""
        return Quotas(Quota(self.quota), Quota(self.quota))


def add_node_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `read_node_settings` reads."""
    add = parser.add_argument
    add("--data", type=Path, required=True, metavar="DIRECTORY", help="where logs are kept")
    add("--port", type=_AtLeast(0), default=0, metavar="PORT",
        help="where it listens (default: one that is free)")  # fmt: skip
    add(
        "--advertise",
        type=_parse_address,
        metavar="HOST:PORT",
        help="what others are told of where it listens (advertised.listeners)",
    )
    add("--profile", default=BROKER_PROFILE, help=f"the rules (default: {BROKER_PROFILE})")
    add(
        "--reading",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="settle one disputed point differently; may be repeated",
    )
    add(
        "--rule",
        choices=("lag", "before"),
        default="lag",
        help="who is in sync: by lag (KAFKA-4485), or by the rule before it (default: lag)",
    )
    for name, what, usual in _NUMBERS:
        add(name, type=_AtLeast(1), default=usual, metavar="N", help=what)


def read_node_settings(arguments: argparse.Namespace) -> NodeSettings:
    """Return what was asked for.

    Raises UnknownReading, RefusedReading, NotOnTheWire.
    """
    changes = dict(pair.split("=", 1) if "=" in pair else (pair, "") for pair in arguments.reading)
    readings = choose_readings(BROKER, arguments.profile, changes)
    if readings.follower_truncation == "leader-end":
        raise NotOnTheWire(
            "reading follower.truncation=leader-end is not carried out by brokers as processes: "
            "Kafka's answer to OffsetForLeaderEpoch does not say where the leader's log ended; "
            "take own-high-watermark or common-prefix"
        )
    rules = ReplicationRules(
        readings,
        arguments.rule,
        lag_ms_max=arguments.lag_ms,
        min_insync_replicas=arguments.min_insync,
        batch_bytes_max=arguments.message_max_bytes,
    )
    upkeep = UpkeepSettings(
        checkpoint_ms=arguments.checkpoint_ms,
        recovery_checkpoint_ms=arguments.recovery_checkpoint_ms,
        flush_ms=arguments.flush_ms,
        retention_ms=arguments.retention_ms,
        retention_bytes=arguments.retention_bytes,
        retention_check_ms=arguments.retention_check_ms,
    )
    return NodeSettings(
        arguments.data,
        rules,
        upkeep,
        flush_records=arguments.flush_messages,
        segment_bytes=arguments.segment_bytes,
        request_bytes_max=arguments.request_max_bytes,
        port=arguments.port,
        advertised=arguments.advertise,
        quota=arguments.quota,
    )


def _parse_address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no HOST:PORT")
    return host, int(port)


class _AtLeast:
    """Reads a number that is not below this one; argparse says what is wrong with others."""

    def __init__(self, least: int) -> None:
        self._least = least

    def __call__(self, text: str) -> int:
        number = int(text)
        if number < self._least:
            raise argparse.ArgumentTypeError(f"expected at least {self._least}, found {number}")
        return number

    def __repr__(self) -> str:
        return "number"
