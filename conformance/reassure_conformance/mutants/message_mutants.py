"""Mutants of messages, derived: each field of each request to a broker, wrong in each simple way.

The fields are those of the bundled controller's own records, and the type of a field says which
values it can have instead. They are wrong where the controller hands its requests over to whatever
carries them, so that brokers, and whoever listens there, receive them so.
"""

import ast
from collections.abc import Iterator, Mapping
from typing import Final

from reassure_conformance.mutants.exchange import Patch, read_source

KINDS: Final = ("LeaderAndIsr", "StopReplica")
OPERATORS: Final[Mapping[str, Mapping[str, str]]] = {
    "int": {"one-more": "{} + 1", "one-less": "{} - 1", "unknown": "-1"},
    "bool": {"flipped": "not {}", "always": "True", "never": "False"},
    "str": {"other": '{} + "x"'},
    "ReplicaList": {"empty": "()", "without-first": "{}[1:]", "reversed": "{}[::-1]"},
}
"""By type of a field, each way of having it wrong, and how that follows from the right value."""

_STATE: Final = ("message.stored-first",)
_STOP: Final = ("message.stop-epoch", "message.stranger-stopped")
CLAUSES: Final[Mapping[str, tuple[str, ...]]] = {
    "controller": ("message.sender",),
    "controller_epoch": ("message.sender",),
    "leader": _STATE,
    "LeaderAndIsr.topic": _STATE,
    "LeaderAndIsr.partition": _STATE,
    "LeaderAndIsr.leader_epoch": (*_STATE, "message.replica-told"),
    "isr": _STATE,
    "state_controller_epoch": _STATE,
    "state_version": ("message.state-version",),
    "replicas": ("message.replicas-assigned",),
    "is_new": ("message.is-new",),
    "broker_epoch": ("message.broker-epoch",),
    "delete": ("message.deleted-after-cut", "message.stranger-stopped"),
    "StopReplica.topic": _STOP,
    "StopReplica.partition": _STOP,
    "StopReplica.leader_epoch": _STOP,
}
"""By field, of any request or of one, the clauses that say what it holds."""
UNTOLD: Final[Mapping[str, str]] = {
    "LeaderAndIsr.replicas.reversed": "brokers take the assigned replicas for a set",
}
"""Those that nobody can tell from what is right, each with the reason."""

_SEAM: Final = "        reply = self._transport.send(broker, message)\n"
_WRONG: Final = """
        from dataclasses import replace
        if isinstance(message, {kind}):
            message = replace(message, {field}={value})
"""


def list_fields() -> Iterator[tuple[str, str, str]]:
    """Yield kind, name and type of every field of a request, as the controller's text has them.

    Whoever asks for the catalogue does not load the controller by that.
    """
    for kind in ast.parse(read_source("messages")).body:
        if isinstance(kind, ast.ClassDef) and kind.name in KINDS:
            for each in kind.body:
                if isinstance(each, ast.AnnAssign):
                    yield kind.name, ast.unparse(each.target), ast.unparse(each.annotation)


def derive() -> Iterator[tuple[str, str, str, tuple[str, ...], tuple[Patch, ...]]]:
    """Yield name, sentence, profile, clauses and patches of every mutant that can be told."""
    for kind, field, of in list_fields():
        place = f"{kind}.{field}"
        clauses = CLAUSES[place if place in CLAUSES else field]
        for operator, value in OPERATORS[of].items():
            name = f"{place}.{operator}"
            if name not in UNTOLD:
                said = f"{kind} has a wrong {field}: {operator.replace('-', ' ')}."
                yield name, said, "", clauses, (make_patch(kind, field, value),)


def make_patch(kind: str, field: str, value: str) -> Patch:
    """Return the patch by which requests of a kind have a field wrong."""
    wrong = value.format(f"message.{field}")
    return Patch("engine", _SEAM, _WRONG.format(kind=kind, field=field, value=wrong) + _SEAM)
