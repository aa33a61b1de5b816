"""World `znodes`, live: contents that a controller finds where requests and records stand.

What is malformed or foreign has to go, and nothing else may happen; what a controller can read is
read. Contents that no controller is asked to judge are not told.
"""

from typing import Final

from reassure_conformance.adapter.bundled import find_unsupported
from reassure_conformance.protocols.kip_236.staged_requests import create_request, read_partition
from reassure_conformance.scenarios.live.stage import MakeStage, Stage
from reassure_conformance.scenarios.scenario import Scenario
from reassure_conformance.scenarios.worlds.znodes import ZnodesWorld, format_refusal
from reassure_judge.history import BadRequestSeen
from reassure_judge.protocols.kip_236.router import RequestSubmitted
from reassure_model.protocols.kip_236.narration import format_flight
from reassure_spec.readings import Readings
from reassure_spec.words import Arguments, check_arguments, format_replicas, parse_number
from reassure_spec.znodes import (
    REASSIGNMENT_REQUESTS,
    BadZnode,
    PartitionKey,
    RequestZnode,
    decode_reassignment,
    encode_request,
    reassignment_path,
)

KEY: Final[PartitionKey] = ("orders", 0)
LIVE_COMMANDS: Final = ("queue", "request", "record")


class LiveZnodesWorld(ZnodesWorld):
    """Lays contents before a controller, each in a cluster of its own."""

    def __init__(
        self,
        make_stage: MakeStage,
        profile: str,
        readings: Readings,
        arguments: Arguments,
    ) -> None:
        super().__init__(profile, readings, arguments)
        self._make_stage: Final = make_stage

    def _begin(self) -> Stage:
        """Return a cluster with a partition, which the controller knows of."""
        stage = self._make_stage()
        stage.begin((1, 2, 3), ())
        stage.create_partition(KEY, (1, 2, 3), None, given=False)
        stage.work(None)
        stage.observed.clear()
        return stage

    def _name(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("name",))
        stage = self._begin()
        path = f"{REASSIGNMENT_REQUESTS}/{arguments['name']}"
        stage.put([(path, encode_request(RequestZnode({KEY: (1, 2, 3)})))], given=False)
        stage.work(None)
        refused = _find_refused(stage)
        if refused is not None:
            return f"removed by {refused.clause}: {path} {refused.reason}"
        return "\n".join(
            f"request {seen.event.request.sequence}"
            for seen in stage.observed
            if isinstance(seen.event, RequestSubmitted)
        )

    def _request(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("content",), ("size",))
        data = arguments["content"].encode()
        stage = self._begin()
        create_request(stage, data.ljust(parse_number("size", arguments.get("size", "0"))))
        stage.work(None)
        refused = _find_refused(stage)
        if refused is not None:
            return format_refusal(refused.clause, refused.reason)
        lines = []
        for seen in stage.observed:
            if isinstance(seen.event, RequestSubmitted):
                legacy = " (legacy)" if seen.event.request.legacy else ""
                target = format_replicas(seen.event.request.target)
                lines.append(f"{seen.topic}-{seen.partition} to {target}{legacy}")
        return "\n".join(lines)

    def _record(self, arguments: Arguments) -> str:
        """Have a controller find a record when it takes over, which is when it looks for them."""
        check_arguments(arguments, ("content",))
        content = arguments["content"].encode()
        stage = self._begin()
        path = reassignment_path(*KEY)
        stage.put(
            [(path.rpartition("/")[0], b""), (path, content)], given=_is_record(path, content)
        )
        stage.fail_over()
        stage.work(None)
        refused = _find_refused(stage)
        if refused is not None:
            return format_refusal(refused.clause, refused.reason)
        flight = read_partition(stage, KEY)[0].reassignment
        return "nothing is in flight" if flight is None else format_flight(flight)


def _is_record(path: str, content: bytes) -> bool:
    """Whether the content is a record, which then is taken for one of an earlier controller."""
    try:
        decode_reassignment(path, content)
    except BadZnode:
        return False
    return True


def _find_refused(stage: Stage) -> BadRequestSeen | None:
    """Return what was malformed or foreign and is gone now; what still lies there is no match."""
    for seen in stage.observed:
        if isinstance(seen.event, BadRequestSeen) and not stage.exists(seen.path):
            return seen.event
    return None


make_world = LiveZnodesWorld


def find_reason(scenario: Scenario) -> str:
    """Return why a scenario of the world cannot be told live, "" where it can."""
    unsupported = find_unsupported(scenario.readings)
    if unsupported:
        return unsupported
    if any(block.command not in LIVE_COMMANDS for block in scenario.blocks[1:]):
        return "world znodes: contents that no controller is asked to judge"
    return ""
