"""Faults of a document itself: what is broken under a reading that a finding says leads there."""

from collections.abc import Iterable, Mapping
from typing import Any

from reassure_spec.findings import findings_that_break
from reassure_spec.readings import get_profile


def list_own_faults(
    broken: Iterable[str], profile: str, readings: Mapping[str, str], chosen: Iterable[str]
) -> list[dict[str, Any]]:
    """Return a record for each finding by which the readings of a run break a broken clause.

    `chosen` are the readings that somebody asked for; what differs from the profile is, too.
    """
    usual = get_profile(profile).as_dict()
    other = {name for name, value in readings.items() if value != usual[name]}.union(chosen)
    return [
        {
            "id": each.id,
            "title": each.title,
            "clause": clause,
            "readings": [values for values in each.readings if "=" in values],
        }
        for clause in dict.fromkeys(broken)
        for each in findings_that_break(clause, readings, other)
    ]


def say_own_fault(record: Mapping[str, Any]) -> str:
    """Return a record in words, with the page that tells more."""
    name, readings = record["id"], " and ".join(record["readings"])
    return (
        f"Known as finding {name}: {record['title']}. Under {readings} the document itself breaks "
        f"{record['clause']}, so this need be no fault of the implementation; under another "
        f"reading it is one. See `reassure explain {name}` and docs/findings.md."
    )
