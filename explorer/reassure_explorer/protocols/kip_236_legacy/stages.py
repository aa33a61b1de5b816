"""The life of an entry of the old znode beside KIP-236: from the client's write until it leaves."""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from reassure_explorer.lifecycle import Lifecycle, Moves, lead_to
from reassure_model.protocols import kip_236_legacy as rules
from reassure_model.protocols.kip_236.record_rules import (
    check_create_reassignment,
    check_delete_reassignment,
    check_delete_request,
)
from reassure_model.protocols.kip_236_legacy import (
    DeleteLegacy,
    Legacy,
    RewriteZnode,
    Translate,
    WriteLegacy,
)
from reassure_model.writes import CreateReassignment, DeleteReassignment, DeleteRequest
from reassure_spec.readings import Readings
from reassure_spec.znodes import PartitionKey


class EntryStage(Enum):
    """Where the entry of a partition stands; the value says what there is to do."""

    NONE = "the old znode has no entry for the partition"
    WRITTEN = "a request is to be made of it"
    REQUESTED = "a request was made of it: it is to be recorded, or refused"
    IN_FLIGHT = "its target is recorded: the partition is reassigned"
    LEFT = "nothing is in flight for it: it is to leave the znode"
    GONE = "it has left the znode: the record is to go"


S = EntryStage


def find_stage(legacy: Legacy, key: PartitionKey) -> EntryStage:
    """Return where the entry of a partition stands, the first where there are several."""
    partition = legacy.get(key)
    flight = partition.reassignment
    entry = next((each for each in legacy.entries or () if each.key == key), None)
    if entry is None:
        return S.GONE if flight is not None and flight.legacy else S.NONE
    if all((each.key, each.target) != (key, entry.target) for each in legacy.seen or ()):
        return S.WRITTEN
    if any(request.legacy for request in partition.requests):
        return S.REQUESTED
    if flight is not None and flight.legacy and flight.target == entry.target:
        return S.IN_FLIGHT
    return S.LEFT


_ZNODE: Final = (rules.next_for_znode, rules.apply_effect)
_WRITTEN: Final = lead_to(S.WRITTEN)
_DELETED: Final = lead_to(S.NONE, S.GONE)

MOVES: Final[Moves] = {
    (S.NONE, WriteLegacy): _WRITTEN,
    (S.NONE, CreateReassignment): lead_to(S.GONE, by=(check_create_reassignment,)),
    (S.WRITTEN, Translate): lead_to(S.REQUESTED, by=_ZNODE),
    (S.WRITTEN, RewriteZnode): lead_to(S.GONE, by=_ZNODE),
    (S.WRITTEN, DeleteLegacy): _DELETED,
    (S.REQUESTED, DeleteRequest): lead_to(S.IN_FLIGHT, S.LEFT, by=(check_delete_request,)),
    (S.REQUESTED, RewriteZnode): lead_to(S.GONE, by=_ZNODE),
    (S.REQUESTED, WriteLegacy): _WRITTEN,
    (S.REQUESTED, DeleteLegacy): _DELETED,
    (S.IN_FLIGHT, RewriteZnode): lead_to(S.GONE, by=(rules.remove_completed,)),
    (S.IN_FLIGHT, WriteLegacy): _WRITTEN,
    (S.IN_FLIGHT, DeleteLegacy): lead_to(S.GONE),
    (S.LEFT, RewriteZnode): lead_to(S.NONE, by=_ZNODE),
    (S.LEFT, WriteLegacy): _WRITTEN,
    (S.LEFT, DeleteLegacy): lead_to(S.NONE),
    (S.GONE, DeleteReassignment): lead_to(S.NONE, by=(check_delete_reassignment,)),
    (S.GONE, WriteLegacy): _WRITTEN,
}
"""Where a step leads from a stage that it ends. A request may outlive its entry, where a client
deletes the znode or writes it anew."""

_AGAIN: Final = frozenset({S.WRITTEN})
FORGETS: Final[Mapping[Enum, frozenset[Enum]]] = {
    S.REQUESTED: _AGAIN,
    S.IN_FLIGHT: _AGAIN,
    S.LEFT: _AGAIN,
}
"""What was made a request is made one again."""


def _find(legacy: Legacy, _: Readings) -> Mapping[PartitionKey, EntryStage]:
    there = {key for key, _ in legacy.partitions} | {each.key for each in legacy.entries or ()}
    return {key: find_stage(legacy, key) for key in there}


LIFECYCLE: Final[Lifecycle[Legacy]] = Lifecycle(
    "an entry of the old znode", EntryStage, _find, MOVES, FORGETS
)
