"""World `testimony`: what brokers say of their replicas, and what the judge says of that.

    world testimony
    lead broker=1 log_end_offset=0 high_watermark=0 replicas=[1,2] isr=[1,2] isr_version=0
    fetch broker=1 follower=2 offset=0
    verdict

Each kind of line is a command, with its fields as `docs/observations.md` names them; values are
JSON, texts and the kinds of `tells` as they are. A writer is `broker-N` unless it is named, begins
run 1 and tells all kinds; a line is of leader epoch 0, controller epoch 1 and partition 0 of topic
`t`. A `stored` that names no writer is what ZooKeeper's log shows. `lost` leaves out a line of a
writer. `verdict` judges all lines so far, numbered from 1; with `goes-on` more may follow.
"""

import json
from functools import partial
from typing import Any, ClassVar, Final

from reassure_conformance.scenarios.worlds import dispatch
from reassure_spec.observations import (
    KINDS,
    VERSION,
    BadObservation,
    Observation,
    decode_observation,
)
from reassure_spec.protocols import import_parts
from reassure_spec.readings import Readings
from reassure_spec.words import Arguments, ScenarioError, check_arguments

(_TOLD,) = import_parts("reassure_mutation", "histories").values()
ALL: Final = ",".join(KINDS)


def _read(name: str, text: str) -> Any:
    if name in ("writer", "error", "topic", "chroot"):
        return text
    if name == "tells":
        return text.split(",")
    try:
        return json.loads(text)
    except ValueError as error:
        raise ScenarioError(f"{name}={text}: {error}") from error


class TestimonyWorld:
    """The lines so far."""

    name: ClassVar[str] = "testimony"

    def __init__(self, profile: str, readings: Readings, arguments: Arguments) -> None:
        check_arguments(arguments)
        self._readings: Final = readings
        self._lines: list[Observation] = []
        self._following: dict[tuple[str, int], int] = {}
        """By writer and run: the number of the line that comes next."""

    def run(self, command: str, arguments: Arguments) -> str:
        """Carry out one command. Raises ScenarioError."""
        kinds = dict.fromkeys(KINDS, partial(self._say, command))
        return dispatch({**kinds, "lost": self._lose, "verdict": self._judge}, command, arguments)

    def _say(self, kind: str, arguments: Arguments) -> str:
        given = {name: _read(name, text) for name, text in arguments.items()}
        stored = kind == "stored" and "writer" not in given
        writer = given.get("writer", "zookeeper" if stored else f"broker-{given.get('broker')}")
        place, about = (writer, given.get("run", 1)), {}
        if kind != "writer":
            about = {"topic": "t", "partition": 0, "controller_epoch": 1, "leader_epoch": 0}
            if not stored and place not in self._following:
                self._say("writer", {"writer": writer, "run": str(place[1]), "tells": ALL})
        number = self._following.get(place, 0)
        head = {"version": VERSION, "kind": kind, "writer": writer, "run": 1, "sequence": number}
        try:
            said = decode_observation(json.dumps({**head, **about, **given}))
        except BadObservation as error:
            raise ScenarioError(error.reason) from error
        self._following[place] = number + 1
        self._lines.append(said._replace(sequence=_TOLD.JOINED) if stored else said)
        return ""

    def _lose(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("writer",), ("run",))
        place = arguments["writer"], int(arguments.get("run", "1"))
        self._following[place] = self._following.get(place, 0) + 1
        return ""

    def _judge(self, arguments: Arguments) -> str:
        check_arguments(arguments, (), ("goes-on",))
        tally = _TOLD.judge_lines(self._lines, self._readings, is_over="goes-on" not in arguments)
        broken, left = _TOLD.tell_verdict(tally)
        kept = ", ".join(f"{clause} {n}" for clause, n in sorted(tally.exercised.items()))
        return "\n".join((*broken, *left, f"kept {kept or 'nothing'}"))
