"""How a reassignment is asked for, by either protocol, and what can be asked for at all.

KIP-236: a request names partitions and targets; more can be made at any time, and one that names a
partition in flight changes its target. The old znode is looked at when it is created: to add to it,
it is replaced by another one in one transaction. Controllers of KIP-236 notice that; Kafka does not
look at the path before all is done, so that nothing can be added, or taken back, by the old znode.
"""

from collections.abc import Iterable, Mapping, Set
from typing import Final

from reassure_controller.session import Operation
from reassure_lab.admin import LEGACY, PLACES, REQUESTS
from reassure_lab.admin.errors import NotNow
from reassure_lab.admin.survey import Active, ClusterReading, Route
from reassure_spec.znodes import (
    CONTROLLER,
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


def check_protocol(state: ClusterReading, protocol: Route) -> None:
    """Raise NotNow where nobody would look at what is asked for."""
    if protocol == REQUESTS and not state.takes_requests:
        raise NotNow(
            f"this cluster does not know the protocol of KIP-236: {REASSIGNMENT_REQUESTS} does not "
            "exist; use --protocol legacy, or start a controller that makes the path"
        )
    if state.is_unread(protocol):
        other = LEGACY if protocol == REQUESTS else REQUESTS
        advice = "start a controller that does"
        if not state.is_unread(other):
            advice = f"use --protocol {other}, or {advice}"
        raise NotNow(
            f"{_describe_controller(state)} does not look at {PLACES[protocol]}, so that nobody "
            f"would do it; nothing was written; {advice}"
        )


def _describe_controller(state: ClusterReading) -> str:
    if state.served is None:
        return (
            f"the active controller is broker {state.controller} and does not say in {CONTROLLER} "
            "what it serves, as Apache Kafka's, which"
        )
    serves = ", ".join(sorted(state.served))
    return f"the active controller ({state.controller}) serves {serves} and"


def describe_doubt(state: ClusterReading, protocol: Route) -> str:
    """Return what is not known of whether anybody will do it, "" where that is known."""
    if state.controller is None:
        return f"There is no controller: {PLACES[protocol]} waits for one that reads it."
    if state.served is None and not state.is_like_kafka:
        return (
            f"Controller {state.controller} does not say in {CONTROLLER} what it serves: see by "
            f"--verify whether it looks at {PLACES[protocol]}."
        )
    return ""


def check_stranded(state: ClusterReading, keys: Iterable[PartitionKey]) -> None:
    """Raise NotNow where one of these was asked for and nobody will ever do it."""
    for key in keys:
        one = state.active[key]
        if state.is_stranded(one):
            raise NotNow(
                f"{key[0]}-{key[1]} was asked for in {PLACES[one.route]}, and "
                f"{_describe_controller(state)} does not look there; --cancel takes it back"
            )


def plan_withdrawal(state: ClusterReading, keys: Set[PartitionKey]) -> list[Operation]:
    """Return the operations that take out of ZooKeeper what nobody has looked at."""
    operations: list[Operation] = []
    for path, version, request in state.requests:
        rest = {key: target for key, target in request.assignments.items() if key not in keys}
        if not rest:
            operations.append(("delete", (path, version)))
        elif len(rest) < len(request.assignments):
            data = encode_request(RequestZnode(rest, request.legacy))
            operations.append(("set_data", (path, data, version)))
    old = state.old_znode
    if old is not None and any(entry.key in keys for entry in old.entries):
        kept = [entry for entry in old.entries if entry.key not in keys]
        operations.append(("delete", (REASSIGN_PARTITIONS, old.version)))
        if kept:
            data = encode_reassign_partitions(kept)
            operations.append(("create", (REASSIGN_PARTITIONS, data)))
    return operations


def check_routes(active: Iterable[Active], protocol: Route) -> None:
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


def plan_targets(state: ClusterReading, protocol: Route, targets: Targets) -> list[Operation]:
    """Return the operations that ask for these targets; none where there are no targets."""
    if not targets:
        return []
    if protocol == REQUESTS:
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
        if one.route == LEGACY and one.top is None:
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
