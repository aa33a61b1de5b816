"""What a client of the old znode takes for granted while the new route is there as well."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from reassure_model.legacy import Legacy, RewriteZnode, next_effect
from reassure_model.requests import Refusal, decide_request
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings


@clause("legacy.entry.refused-removed")
def find_refused_entry(legacy: Legacy, readings: Readings) -> str | None:
    """Say so when an entry was refused, so that only cleaning up removes it (finding legacy-1)."""
    due = next_effect(legacy, readings)
    if not isinstance(due, RewriteZnode) or due.why != "nothing to wait for":
        return None
    for entry in legacy.entries or ():
        flight = legacy.get(entry.key).reassignment
        if entry not in due.entries and flight is not None and not flight.legacy:
            return f"the entry for {list(entry.target)} was refused and is there still"
    return None


@clause("legacy.conflict.both-ways")
def find_refused_route(legacy: Legacy, readings: Readings) -> str | None:
    """Say so when a request is refused for the route of the move in flight (finding legacy-2)."""
    for key, partition in legacy.partitions:
        if partition.reassignment is None or not partition.requests:
            continue
        around = legacy.as_system(key).around
        decision = decide_request(partition.requests[0], partition, around, readings)
        if isinstance(decision, Refusal) and decision.clause == "request.conflict.legacy-flag":
            return f"{list(partition.requests[0].target)} is refused: {decision.reason}"
    return None


@clause("legacy.rewrite.taken-up")
def find_unseen_entry(legacy: Legacy, readings: Readings) -> str | None:
    """Say so when the controller waits and has never looked at an entry (finding legacy-3)."""
    if legacy.entries is None or next_effect(legacy, readings) is not None:
        return None
    seen = [(entry.key, entry.target) for entry in legacy.seen or ()]
    for entry in legacy.entries:
        if (entry.key, entry.target) not in seen:
            return f"the controller waits and has not seen the entry for {list(entry.target)}"
    return None


PROMISES: Final[Mapping[str, Callable[[Legacy, Readings], str | None]]] = MappingProxyType(
    {
        "legacy.entry.refused-removed": find_refused_entry,
        "legacy.conflict.both-ways": find_refused_route,
        "legacy.rewrite.taken-up": find_unseen_entry,
    }
)
"""By clause. As written each is broken."""
