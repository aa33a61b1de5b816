"""A Python adapter as a program: what `exec:` drives, served by a `direct:` one.

    python -m reassure_conformance.adapter.answering direct:package.module:Class

Reads questions from standard input and answers on standard output until either ends
(`reassure_conformance.adapter.wire`). An adapter that raises is answered for with an error.
"""

import json
import sys
import traceback
from collections.abc import Mapping
from typing import IO, Any

import jsonschema

from reassure_conformance.adapter import Adapter, Description, Reply, open_adapter
from reassure_conformance.adapter.wire import request_schema
from reassure_judge.messages import Told, ToldStates
from reassure_spec.errors import BadUsage, ReassureError
from reassure_spec.znodes import StateZnode


def serve(connectable: str, questions: IO[str], answers: IO[str]) -> None:
    """Answer every question with what the adapter says, until there are no more."""
    adapter: Adapter | None = None
    fits = jsonschema.Draft202012Validator(request_schema())
    for line in questions:
        question = json.loads(line)
        call, arguments = question["call"], question["arguments"]
        try:
            fits.validate(question)
            if adapter is None:
                adapter = open_adapter(connectable, **arguments)
                arguments = {}
            said = {"answer": _encode(getattr(adapter, call)(**_decode(arguments)))}
        except Exception as error:
            traceback.print_exc()
            said = {"error": str(error) or type(error).__name__}
        answers.write(json.dumps({"id": question["id"], **said}) + "\n")
        answers.flush()


def _decode(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in arguments.items()
    }


def _encode(answer: Any) -> Any:
    match answer:
        case Reply():
            return answer.value
        case Description():
            about = {name: getattr(answer, name) for name in Description.__slots__}
            words = {name: sorted(about[name]) for name in ("capabilities", "routes")}
            return {**about, **words}
        case ToldStates():
            return {name: getattr(answer, name) for name in ToldStates.__slots__}
        case Told(state=None):
            return {**_tell(answer), "delete": answer.delete}
        case Told(state=StateZnode() as state, replicas=replicas):
            told = {name: getattr(state, name) for name in ("leader", "leader_epoch", "isr")}
            told["controller_epoch"] = state.controller_epoch
            return {**_tell(answer), "state": told, "replicas": replicas}
        case list() | tuple():
            return [_encode(each) for each in answer]
    return answer


def _tell(told: Told) -> dict[str, Any]:
    return {
        "broker": told.broker,
        "topic": told.topic,
        "partition": told.partition,
        "controller_epoch": told.controller_epoch,
        **told.given,
    }


def main() -> int:
    """Serve the connectable that the command line names."""
    answers, sys.stdout = sys.stdout, sys.stderr
    if len(sys.argv) != 2:
        sys.stderr.write("name one adapter: direct:package.module:Class\n")
        return BadUsage.exit_code
    try:
        serve(sys.argv[1], sys.stdin, answers)
    except ReassureError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
