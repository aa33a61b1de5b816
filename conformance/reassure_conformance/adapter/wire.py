"""The adapter interface as messages: every call of it, and the JSON Schemas of both directions.

The interface is written once, as the classes of `reassure_conformance.adapter`. Which calls there
are, what they are given and what they answer is read off these; so are the schemas. A message is a
line of JSON: `{"id": 7, "call": "hold", "arguments": {"effects": 2}}` asks, and
`{"id": 7, "answer": "ok"}` answers, or `{"id": 7, "error": "why it cannot go on"}`.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, get_args, get_origin, get_type_hints

from reassure_conformance.adapter import (
    CAPABILITIES,
    LIFETIMES,
    OPTIONAL,
    ROUTES,
    SPOKEN,
    Adapter,
    Description,
    Reply,
)
from reassure_judge.messages import OPTIONAL_FIELDS, Told, ToldStates
from reassure_spec.state_tables import PartitionState, ReplicaState
from reassure_spec.znodes import NO_LEADER, StateZnode

Schema = dict[str, Any]
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the interface."""

    name: str
    about: str
    """What it asks for: the first sentence of its documentation."""
    capability: str
    """The capability that it takes, where only some adapters have it, else ""."""
    parameters: Mapping[str, Schema]
    answer: Schema


def list_calls() -> Iterator[Call]:
    """Yield every call of the interface, those that take a capability of their own last."""
    for capability, interface in {"": Adapter, **OPTIONAL}.items():
        for name, method in vars(interface).items():
            if not name.startswith("_"):
                yield _read_call(name, method, capability)


def request_schema() -> Schema:
    """Return the schema of what the gate sends."""
    return {
        "$schema": DIALECT,
        "title": "What the gate asks of an adapter: one line of JSON on standard input",
        "oneOf": [_describe_request(call) for call in list_calls()],
    }


def answer_schema() -> Schema:
    """Return the schema of what an adapter answers, by the name of the call."""
    failed = _record({"id": _INTEGER, "error": {"type": "string"}})
    return {
        "$schema": DIALECT,
        "title": "What an adapter answers to each call: one line of JSON on standard output",
        "$defs": {
            call.name: {
                "description": call.about,
                "oneOf": [_record({"id": _INTEGER, "answer": call.answer}), failed],
            }
            for call in list_calls()
        },
    }


def read_answer(call: str, answer: Any) -> Any:
    """Return the answer to a call as the interface has it, from what fits the call's schema."""
    kind = get_type_hints(find_method(call))["return"]
    if kind is Description:
        words = {
            name: frozenset(answer[name]) for name in ("capabilities", "routes") if name in answer
        }
        return Description(**{**answer, **words})
    if kind is Reply:
        return Reply(answer)
    if get_origin(kind) is Sequence:
        return [_read_told(each) for each in answer]
    return answer


def _read_call(name: str, method: Any, capability: str) -> Call:
    hints = get_type_hints(method)
    given = {
        parameter: _of_type(hints[parameter])
        for parameter in inspect.signature(method).parameters
        if parameter != "self"
    }
    if name == "describe":
        # A program has no constructor to be told by which rules it will be judged.
        given = {"profile": {"type": "string"}, "readings": _TEXTS}
    about = (inspect.getdoc(method) or "").partition("\n")[0]
    return Call(name, about, capability, given, _of_type(hints["return"]))


def find_method(call: str) -> Any:
    """Return the method of the interface that a call is."""
    return next(
        vars(interface)[call]
        for interface in (Adapter, *OPTIONAL.values())
        if call in vars(interface)
    )


_INTEGER: Final[Schema] = {"type": "integer"}
_TEXTS: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string"}}
_PLAIN: Final[Mapping[Any, Schema]] = {
    int: _INTEGER,
    float: {"type": "number"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Reply: {"enum": [reply.value for reply in Reply]},
}


def _of_type(kind: Any) -> Schema:
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    if kind is Description:
        return _of_description()
    if kind == Told | ToldStates:
        return {"oneOf": [*_of_told(), _of_states()]}
    (item, *_) = get_args(kind)
    return {"type": "array", "items": _of_type(item)}


def _record(parts: Mapping[str, Schema], *, optional: Sequence[str] = ()) -> Schema:
    required = [name for name in parts if name not in optional]
    return {
        "type": "object",
        "properties": dict(parts),
        "required": required,
        "additionalProperties": False,
    }


def _describe_request(call: Call) -> Schema:
    takes = f"{call.about} (capability `{call.capability}`)" if call.capability else call.about
    parts = {"id": _INTEGER, "call": {"const": call.name}, "arguments": _record(call.parameters)}
    return {"description": takes, **_record(parts)}


def _of_description() -> Schema:
    hints = get_type_hints(Description)
    needed = ("name", "version", "language", "profile", "adapter_version")
    parts = {
        each.name: {"type": "string"} if hints[each.name] is str else dict(_INTEGER)
        for each in fields(Description)
    }
    parts["readings"] = dict(_TEXTS)
    for name, words in (("capabilities", CAPABILITIES), ("routes", ROUTES)):
        parts[name] = {"type": "array", "items": {"enum": list(words)}, "uniqueItems": True}
    parts["lifetime"] = {"enum": list(LIFETIMES)}
    parts["adapter_version"] = {"enum": list(SPOKEN)}
    return _record(parts, optional=[name for name in parts if name not in needed])


def _of_states() -> Schema:
    """Return what is said of states: replica, before and after, and of the partition's own."""
    integers = {"type": "integer"}, {"type": "null"}
    moves = [
        {"prefixItems": [who, *[{"enum": [each.name for each in kind]}] * 2]}
        for who, kind in zip(integers, (ReplicaState, PartitionState), strict=True)
    ]
    step = {"type": "array", "minItems": 3, "maxItems": 3, "oneOf": moves}
    return _record(
        {
            "controller_epoch": _INTEGER,
            "topic": {"type": "string"},
            "partition": _INTEGER,
            "moves": {"type": "array", "items": step},
        }
    )


def _of_told() -> list[Schema]:
    """Return what a broker was told: by LeaderAndIsr the state, by StopReplica if it deletes.

    What a record may leave out is optional, and may be null.
    """
    numbers = {"type": "array", "items": _INTEGER}
    state = dict.fromkeys(("leader", "leader_epoch", "controller_epoch"), _INTEGER)
    about = {
        "broker": _INTEGER,
        "topic": {"type": "string"},
        "partition": _INTEGER,
        "controller_epoch": _INTEGER,
    }
    told = {"state": _record({**state, "isr": numbers}), "replicas": numbers}
    left_out = {name: {"type": ["integer", "null"]} for name in OPTIONAL_FIELDS}
    left_out |= {name: {"type": ["boolean", "null"]} for name in ("is_new", "answered")}
    of_state, of_stop = ("state_version", "is_new", "answered"), ("leader_epoch",)
    return [
        _record({**about, **parts, **_leave_out(left_out, other)}, optional=OPTIONAL_FIELDS)
        for parts, other in ((told, of_stop), ({"delete": {"type": "boolean"}}, of_state))
    ]


def _leave_out(parts: Mapping[str, Schema], names: Sequence[str]) -> dict[str, Schema]:
    return {name: part for name, part in parts.items() if name not in names}


def _read_told(told: Mapping[str, Any]) -> Told | ToldStates:
    known = dict(told)
    if "moves" in known:
        moves = tuple((who, before, after) for who, before, after in known.pop("moves"))
        return ToldStates(**known, moves=moves)
    state = known.pop("state", None)
    if state is not None:
        leader = NO_LEADER if state["leader"] < 0 else state["leader"]
        state = StateZnode(**{**state, "leader": leader, "isr": tuple(state["isr"])})
        known["replicas"] = tuple(known["replicas"])
    return Told(state=state, **known)
