"""A violation's states as an ITF trace, the format that Apalache and its viewers read and write.

Of a run the states are those that its transactions left, as the judge takes them to be: all
partitions, with who acted and what the model had written next. Of an exploration they are the
model's own.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reassure_conformance.report.cases import Result
from reassure_spec.errors import BadData


class NoTrace(BadData):
    """A result that has no states to tell of."""


def render_itf(result: Result) -> str:
    """Return the trace of the first violation as JSON. Raises NoTrace."""
    states = list(_iterate(result))
    if not states:
        raise NoTrace(
            f"this {result['verb']} is {result['verdict']} and has no states of a violation; "
            "a trace is made of a run, check or explore that is violated"
        )
    return make_itf(states, f"reassure {result['version']} {result['verb']}")


def make_itf(states: Sequence[Mapping[str, Any]], source: str) -> str:
    """Return states as a trace that comes from a source."""
    document = {
        "#meta": {"format": "ITF", "source": source},
        "vars": list(states[0]),
        "states": [{"#meta": {"index": at}, **_convert(state)} for at, state in enumerate(states)],
    }
    return json.dumps(document, indent=2) + "\n"


def list_states(story: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the states of an exploration's story, each with the action that led there."""
    return [{**each["state"], "action": each["action"] or "start"} for each in story]


def _iterate(result: Result) -> Iterator[Mapping[str, Any]]:
    explored = next((v for v in result.get("violations", ()) if "story" in v), None)
    if explored is not None:
        yield from list_states(explored["story"])
    elif result.get("timeline"):
        yield from _iterate_rows(result["timeline"]["rows"])


def _iterate_rows(rows: list[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the state after each transaction, with the step that was asked for before it."""
    partitions: dict[str, Any] = {}
    asked = "start"
    for row in rows:
        if "step" in row:
            asked = row["step"]
            continue
        partitions = {**partitions, **row.get("state", {})}
        partitions = {name: each for name, each in partitions.items() if each is not None}
        yield {
            "action": row.get("gist", "rest"),
            "actor": row.get("lane", "controller"),
            "asked": asked,
            "broken": row["broken"],
            "due": {"#map": sorted(map(list, row["due"].items()))},
            "partitions": {"#map": [[name, each] for name, each in sorted(partitions.items())]},
            "zxid": row["zxid"] if "zxid" in row else row["rest"],
        }


def _convert(value: Any) -> Any:
    """Return a value as the format spells it; what is absent is the string "none"."""
    if isinstance(value, Mapping):
        return {name: _convert(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_convert(each) for each in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return {"#bigint": str(value)}
    return "none" if value is None else value
