"""What there is to tell of a cluster, as rows of tables and as lines."""

from collections.abc import Iterable, Iterator
from typing import Final

from reassure_lab.cluster.overview import MemberView, Overview, PartitionView
from reassure_spec.znodes import NO_LEADER

MEMBER_COLUMNS: Final = ("member", "pid", "address", "status", "epoch")
PARTITION_COLUMNS: Final = (
    *("partition", "leader", "in sync", "assigned"),
    *("moves to", "arrived", "to drop", "end/mark"),
)
TOO_FEW: Final = "!"
"""Stands behind the replicas in sync where they are fewer than are assigned."""
_NOTHING: Final = "-"


def tell_member(view: MemberView) -> tuple[str, ...]:
    """Return a row of the members' table."""
    member = view.member
    address = member.address or member.metrics
    return (
        member.name,
        str(member.pid or _NOTHING),
        _NOTHING if member.address is None or address is None else f"{address[0]}:{address[1]}",
        view.status,
        _NOTHING if view.epoch is None else str(view.epoch),
    )


def tell_partition(view: PartitionView) -> tuple[str, ...]:
    """Return a row of the partitions' table."""
    moves = view.target is not None
    return (
        f"{view.topic}-{view.partition}",
        _NOTHING if view.leader == NO_LEADER else str(view.leader),
        _join(view.isr) + (f" {TOO_FEW}" if view.is_under_replicated else ""),
        _join(view.assigned),
        _join(view.target or ()),
        f"{len(view.arrived)}/{len(view.target)}" if view.target else _NOTHING,
        _join(view.leaving) if moves else _NOTHING,
        " ".join(f"{one}:{end}/{mark}" for one, (end, mark) in sorted(view.ends.items()))
        or _NOTHING,
    )


def tell_summary(overview: Overview) -> str:
    """Return the cluster in one line."""
    if overview.trouble:
        return f"ZooKeeper does not answer: {overview.trouble}"
    return (
        f"{len(overview.partitions)} partitions, {overview.under_replicated} under-replicated, "
        f"{overview.moving} moving, {overview.requests} requests waiting"
    )


def list_lines(overview: Overview) -> Iterator[str]:
    """Yield the cluster line by line: each stays the same as long as what it is about does."""
    for member in overview.members:
        name, pid, _, status, epoch = tell_member(member)
        yield f"{name}: {status}, pid {pid}, epoch {epoch}"
    if overview.trouble:
        yield tell_summary(overview)
    for partition in overview.partitions:
        name, *rest = tell_partition(partition)
        told = zip(PARTITION_COLUMNS[1:], rest, strict=True)
        yield f"{name}: " + ", ".join(f"{what} {value}" for what, value in told if value != "-")


def _join(replicas: Iterable[int]) -> str:
    return ",".join(map(str, replicas)) or _NOTHING
