"""The states of an exploration as an ITF trace, which Apalache and its viewers read and write."""

import json
from collections.abc import Mapping, Sequence
from typing import Any


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


def _convert(value: Any) -> Any:
    """Return a value as the format spells it; what is absent is the string "none"."""
    if isinstance(value, Mapping):
        return {name: _convert(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_convert(each) for each in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return {"#bigint": str(value)}
    return "none" if value is None else value
