"""Reads `/admin/reassign_partitions`, the znode of Kafka's own tool, for whoever looks after it."""

from collections.abc import Sequence
from dataclasses import replace

from reassure_controller.context import OldZnode
from reassure_controller.effects import Planned, RecheckOldZnode, Step, WriteOldZnode
from reassure_controller.reader import ClusterReader
from reassure_controller.rules import Planner
from reassure_spec.znodes import (
    REASSIGN_PARTITIONS,
    BadZnode,
    LegacyEntry,
    decode_reassign_partitions,
)


class OldZnodePlanner(Planner):
    """Reads the old znode, and keeps a watch on it."""

    def read_missed(self, reader: ClusterReader) -> None:
        """Read it."""
        read_old_znode(reader)

    def read_again(self, reader: ClusterReader, effects: Sequence[Planned]) -> None:
        """Read it, whatever was planned: a plan may end a reassignment that it asks for."""
        read_old_znode(reader, arm=False)

    def take_event(self, reader: ClusterReader, path: str) -> None:
        """Read it when it has changed."""
        if path == REASSIGN_PARTITIONS:
            read_old_znode(reader)


def read_old_znode(reader: ClusterReader, *, arm: bool = True) -> None:
    """Read the old znode; `arm` watches it, there or not."""
    context = reader.context
    found = reader.read_perhaps(REASSIGN_PARTITIONS, arm=arm)
    if found is None:
        context.old = None
        return
    (data, stat), bad = found, ""
    try:
        entries = decode_reassign_partitions(REASSIGN_PARTITIONS, data)
    except BadZnode as error:
        entries, bad = (), error.reason
    known = context.old
    if known is None or known.created != stat.czxid:
        known = OldZnode(entries, stat.version, stat.czxid)
    context.old = replace(known.holding(entries, stat.version), bad=bad)


def plan_write(point: str, old: OldZnode, entries: tuple[LegacyEntry, ...]) -> tuple[Step, ...]:
    """Return the write that leaves these entries, none of them where it goes.

    One that a client has deleted and made anew may have the version that was read.
    """
    write = WriteOldZnode(point=f"old-znode.{point}", entries=entries, version=old.version)
    return (RecheckOldZnode(), write)
