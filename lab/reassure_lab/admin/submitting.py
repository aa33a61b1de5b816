"""How a reassignment is asked for, by either protocol, and what can be asked for at all.

KIP-236: a request names partitions and targets; more can be made at any time, and one that names a
partition in flight changes its target. The old znode is looked at when it is created: to add to it,
it is replaced by another one in one transaction. Controllers of KIP-236 notice that; Kafka does not
look at the path before all is done, so that nothing can be added, or taken back, by the old znode.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from reassure_controller.session import Operation
from reassure_lab.admin.errors import NotNow
from reassure_lab.admin.survey import Active, Protocol, State
from reassure_spec.znodes import (
    REASSIGN_PARTITIONS,
    REASSIGNMENT_REQUESTS,
    REQUEST_PREFIX,
    LegacyEntry,
    PartitionKey,
    ReplicaList,
    RequestZnode,
    encode_reassign_partitions,
    encode_request,
)

EXISTING: Final = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to "
    "override this and create a new partition assignment in addition to the existing one. The "
    "--additional flag can also be used to change the throttle by resubmitting the current "
    "reassignment."
)
"""Kafka's own words."""

Targets = Mapping[PartitionKey, ReplicaList]


def check_protocol(state: State, protocol: Protocol) -> None:
    """Raise NotNow where nobody would look at what is asked for."""
    if protocol == "kip-236" and not state.takes_requests:
        raise NotNow(
            f"this cluster does not know the protocol of KIP-236: {REASSIGNMENT_REQUESTS} does not "
            "exist; use --protocol legacy, or start a controller that makes the path"
        )


def check_routes(active: Iterable[Active], protocol: Protocol) -> None:
    """Raise NotNow where a partition is being reassigned by another way.

    A controller ignores a request by one way while the partition is in flight by the other.
    """
    for one in active:
        if one.route != protocol:
            topic, partition = one.key
            other = "--protocol " + one.route if one.route != "broker" else "--bootstrap-server"
            raise NotNow(
                f"{topic}-{partition} is being reassigned by another way ({other}); change it that "
                "way, or wait until it is done (--list)"
            )


def plan_targets(state: State, protocol: Protocol, targets: Targets) -> list[Operation]:
    """Return the operations that ask for these targets; none where there are no targets."""
    if not targets:
        return []
    if protocol == "kip-236":
        path = f"{REASSIGNMENT_REQUESTS}/{REQUEST_PREFIX}"
        data = encode_request(RequestZnode(targets))
        return [("create", (path, data, None, False, True))]
    entries = [LegacyEntry(key, target) for key, target in targets.items()]
    old = state.old_znode
    if old is None:
        return [("create", (REASSIGN_PARTITIONS, encode_reassign_partitions(entries)))]
    if not state.takes_requests:
        raise NotNow(
            f"{REASSIGN_PARTITIONS} exists, and this cluster does not know KIP-236: Kafka does not "
            "look at what is written there before it is done; wait until it is (--list)"
        )
    kept = [entry for entry in old.entries if entry.key not in targets]
    data = encode_reassign_partitions([*kept, *entries])
    gone: Operation = ("delete", (REASSIGN_PARTITIONS, old.version))
    return [gone, ("create", (REASSIGN_PARTITIONS, data))]


def find_originals(active: Iterable[Active]) -> Targets:
    """Return the replicas that each partition had before. Raises NotNow where nobody knows."""
    originals: dict[PartitionKey, ReplicaList] = {}
    for one in active:
        topic, partition = one.key
        if one.route == "legacy" and one.top is None:
            raise NotNow(
                f"{topic}-{partition} is carried out from {REASSIGN_PARTITIONS} alone, and what is "
                "asked for there cannot be taken back; Kafka from 2.4 on cancels it by its own "
                "tool and --bootstrap-server"
            )
        if one.original is None:
            raise NotNow(
                f"{topic}-{partition}: ZooKeeper does not tell which replicas it had before, as "
                "its target was changed on the way; nothing was cancelled. Ask for what --execute "
                "printed at the beginning: --execute --additional --reassignment-json-file SAVED"
            )
        originals[one.key] = one.original
    return originals
