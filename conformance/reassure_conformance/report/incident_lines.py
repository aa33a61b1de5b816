"""Incidents in words: where and when, what followed, which bug it may be, and what to do."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from reassure_conformance.report.display import show_duration, show_text, show_time, show_zxid

Incident = Mapping[str, Any]
_FOLLOWED: Final = 5
"""How many consequences of an incident are shown."""


def list_incidents(result: Mapping[str, Any]) -> Sequence[Incident]:
    """Return the incidents of a document; none where its verb tells of none."""
    found: Sequence[Incident] = result.get("incidents", ())
    return found


def name_incident(incident: Incident) -> str:
    """Return the partition, or those of one topic, or the cluster.

    >>> name_incident({"topic": "a", "partitions": [0, 1], "chroot": "/k"})
    'a-0, a-1 of the cluster at /k'
    """
    at = f"the cluster at {incident['chroot'] or '/'}"
    names = ", ".join(f"{incident['topic']}-{number}" for number in incident["partitions"])
    return show_text(f"{names} of {at}" if incident["topic"] else at)


def say_when(incident: Incident) -> str:
    """Return the first and the last transaction, with the server's clock and how long that is."""
    first, last = incident["first_zxid"], incident["last_zxid"]
    at = f", {show_time(incident['first_ms'])}" if incident["first_ms"] else ""
    if first == last:
        return f"{show_zxid(first)}{at}"
    long = max(0, incident["last_ms"] - incident["first_ms"])
    return f"{show_zxid(first)} to {show_zxid(last)}{at}, for {show_duration(long)}"


def list_facts(incident: Incident) -> Iterator[tuple[str, str]]:
    """Yield what there is to know of an incident beside its first violation, each under a word."""
    several = len(incident["partitions"]) > 1
    if several or incident["consequences"]:
        yield "of", name_incident(incident)
        yield "when", say_when(incident)
    for each in incident["consequences"][:_FOLLOWED]:
        yield "then", f"{show_zxid(each['zxid'])} {each['clause']}: {show_text(each['reason'])}"
    more = len(incident["consequences"]) - _FOLLOWED
    if more > 0:
        yield "then", f"and {more} more"
    for bug in incident["bugs"]:
        upto = f"mended in {bug['mended']}" if bug["mended"] else "not mended in any release"
        yield "bug", f"{bug['id']}: {bug['title']} (Kafka {bug['since']} and later, {upto})"
    yield "at risk", incident["risk"]
    yield "do", incident["remedy"]


def describe_incident(incident: Incident) -> Iterator[str]:
    """Yield these facts as lines."""
    for word, text in list_facts(incident):
        yield f"  {word:<8} {text}"
