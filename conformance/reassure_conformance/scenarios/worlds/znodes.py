"""World `znodes`: what is read from the content of a znode, and what is refused as malformed.

Contents stand between single quotes. Nothing is kept from one command to the next.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar, Final, TypeVar

from reassure_conformance.scenarios.worlds import Handler, dispatch
from reassure_spec.readings import Readings
from reassure_spec.words import Arguments, check_arguments, format_replicas, parse_number
from reassure_spec.znodes import (
    MAX_ZNODE_BYTES,
    REASSIGNMENT_REQUESTS,
    AssignmentZnode,
    BadZnode,
    ReassignmentZnode,
    ReplicaList,
    RequestZnode,
    StateZnode,
    decode_reassignment,
    decode_request,
    decode_state,
    decode_topic,
    decode_topic_lists,
    encode_reassignment,
    encode_request,
    parse_request_name,
    reassignment_path,
    request_path,
    state_path,
    topic_path,
)

Value = TypeVar("Value")
_WELL_FORMED: Final = "znode.well-formed"


def format_refusal(clause: str, reason: str) -> str:
    """Say that content is refused, by which clause and why."""
    if reason.startswith("not JSON") and not reason.endswith("stands twice"):
        reason = "not JSON"  # what the reader says besides differs between versions of Python
    return f"refused by {clause}: {reason}"


class ZnodesWorld:
    """Reads contents; has no state."""

    name: ClassVar[str] = "znodes"

    def __init__(self, profile: str, readings: Readings, arguments: Arguments) -> None:
        check_arguments(arguments)

    def run(self, command: str, arguments: Arguments) -> str:
        """Read one znode. Raises ScenarioError."""
        own: dict[str, Handler] = {
            "queue": self._name,
            "request": self._request,
            "batch": self._batch,
        }
        return dispatch({**own, **_CONTENTS}, command, arguments)

    def _name(self, arguments: Arguments) -> str:
        """Say which request a znode of the queue is, by its name."""
        check_arguments(arguments, ("name",))
        sequence = parse_request_name(arguments["name"])
        if sequence is None:
            path = f"{REASSIGNMENT_REQUESTS}/{arguments['name']}"
            return f"removed by request.foreign-removed: {path} is not named like a request"
        return f"request {sequence}"

    def _request(self, arguments: Arguments) -> str:
        """Read a request; `size` fills it up with spaces to so many bytes."""
        check_arguments(arguments, ("content",), ("size",))
        data = arguments["content"].encode()
        data = data.ljust(parse_number("size", arguments.get("size", "0")))
        clause = "request.refuse.malformed"
        if len(data) > MAX_ZNODE_BYTES:
            clause = "request.refuse.too-large"
        try:
            request = decode_request(request_path(0), data)
        except BadZnode as error:
            return format_refusal(clause, error.reason)
        legacy = " (legacy)" if request.legacy else ""
        return "\n".join(
            f"{topic}-{partition} to {format_replicas(target)}{legacy}"
            for (topic, partition), target in request.assignments.items()
        )

    def _batch(self, arguments: Arguments) -> str:
        """Say how many bytes it takes to ask for this many partitions in this many requests."""
        check_arguments(arguments, ("partitions", "requests"))
        count = parse_number("partitions", arguments["partitions"])
        parts = parse_number("requests", arguments["requests"])
        keys = [("orders", number) for number in range(count)]
        sizes = [
            len(encode_request(RequestZnode(dict.fromkeys(keys[part::parts], (1, 2, 3)))))
            for part in range(parts)
        ]
        allowed = "fits" if max(sizes) <= MAX_ZNODE_BYTES else "refused by request.refuse.too-large"
        record = len(encode_reassignment(ReassignmentZnode(3, (1, 2, 3))))
        return (
            f"the largest request has {max(sizes)} bytes: {allowed}\n"
            f"{count} records of {record} bytes each, {sum(sizes)} bytes asked for in all"
        )


def _read(
    decode: Callable[[bytes], Value],
    clause: str,
    tell: Callable[[Value], str],
    arguments: Arguments,
) -> str:
    """Read a znode's content; what cannot be read is refused by this clause."""
    check_arguments(arguments, ("content",))
    try:
        return tell(decode(arguments["content"].encode()))
    except BadZnode as error:
        return format_refusal(clause, error.reason)


def _tell_record(record: ReassignmentZnode) -> str:
    legacy = ", legacy" if record.legacy else ""
    return f"in flight to {format_replicas(record.target)}, top {record.top}{legacy}"


def _tell_state(state: StateZnode) -> str:
    isr = format_replicas(state.isr)
    return (
        f"leader {state.leader} isr {isr} leader epoch {state.leader_epoch} "
        f"controller epoch {state.controller_epoch}"
    )


def _tell_topic(assigned: Mapping[int, ReplicaList]) -> str:
    return "\n".join(f"orders-{n} {format_replicas(each)}" for n, each in assigned.items())


def _tell_lists(lists: Mapping[int, AssignmentZnode]) -> str:
    """Tell a topic's znode with what is being added and removed."""
    return "\n".join(
        f"orders-{number} {format_replicas(each.replicas)} adding "
        f"{format_replicas(each.adding)} removing {format_replicas(each.removing)}"
        for number, each in lists.items()
    )


_CONTENTS: Final[Mapping[str, Handler]] = {
    "record": partial(
        _read,
        partial(decode_reassignment, reassignment_path("orders", 0)),
        "child.foreign-removed",
        _tell_record,
    ),
    "state": partial(
        _read, partial(decode_state, state_path("orders", 0)), _WELL_FORMED, _tell_state
    ),
    "topic": partial(_read, partial(decode_topic, topic_path("orders")), _WELL_FORMED, _tell_topic),
    "lists": partial(
        _read, partial(decode_topic_lists, topic_path("orders")), _WELL_FORMED, _tell_lists
    ),
}
"""What is said of the content of each kind of znode but requests."""
