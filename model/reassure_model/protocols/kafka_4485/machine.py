"""KAFKA-4485 as a machine: logs across elections; and, beside it, one leader with a clock.

The document speaks of two systems. What brokers hold, what is stored and who leads is one whose
states can be gone through: that a follower lags is an action there, which may come at any time. How
a leader measures lag is the other: it has a clock, true logs that nobody sees, no elections and no
end. They have no state in common, so this is one machine and a part: a world that names a `limit`
is about the leader with a clock (`leader_clock`), of which scenarios and theorems speak and no
scope.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from reassure_model.fields import Domain, EachOf, Held, Int, ListOf, OneOf, RecordOf, SetOf
from reassure_model.machine import Act, Goal, Machine, Property, always, reached
from reassure_model.protocols.kafka_4485 import leader_clock as clock
from reassure_model.protocols.kafka_4485.invariants import GOALS, INVARIANTS, is_promised
from reassure_model.protocols.kafka_4485.leader_clock import Watched
from reassure_model.protocols.kafka_4485.narration import VOCABULARY, make_watched_vocabulary
from reassure_model.protocols.kafka_4485.replication import (
    ACTIONS,
    LEADER_ALONE,
    Action,
    Append,
    Elect,
    Lag,
    Remove,
    Replica,
    Replication,
    Term,
    enabled,
    step,
)
from reassure_spec.readings import Readings
from reassure_spec.words import Arguments, ScenarioError, parse_number

_END: Final = OneOf(of="ends")
_LOG: Final = ListOf("epochs", "records")
_TERM: Final = RecordOf(
    Term,
    {
        "isr": SetOf("brokers"),
        "version": Held(0),
        "pseudo_isr": SetOf("brokers"),
        "end_at_election": _END,
        "offsets": EachOf("brokers", _END),
    },
    {"isr": "term_isr"},
    always=True,
)
_REPLICA: Final = RecordOf(
    Replica,
    {
        "log": _LOG,
        "high_watermark": _END,
        "leader_epoch": OneOf(of="epochs"),
        "request": OneOf((None,), "requests"),
    },
    always=True,
)
FIELDS: Final[Mapping[str, Domain]] = {
    "leader": OneOf(of="brokers"),
    "leader_epoch": OneOf(of="epochs"),
    "isr": SetOf("brokers"),
    "version": Int(0, 1),
    "term": _TERM,
    "shown": OneOf((None,), "ends"),
    "committed": _LOG,
    "replicas": EachOf("brokers", _REPLICA),
}


def forget_versions(state: Replication) -> Replication:
    """Return the state whose versions say no more than whether the leader's copy is stale."""
    stale = int(state.version != state.term.version)
    return replace(state, version=stale, term=replace(state.term, version=0))


_UNFAIR: Final = (Append, Lag, Remove, Elect)
_COUNTED: Final[Mapping[type[Action], str]] = {Lag: "lags", Remove: "removals"}


def _make_act(name: str, kind: type[Action]) -> Act:
    """Return an act; what the leader does alone names no broker in a scenario."""
    return Act(
        name,
        kind,
        "brokers",
        "broker",
        words=f"{name} {{}}",
        saying=(lambda _: name) if kind in LEADER_ALONE else None,
        counted=_COUNTED.get(kind, ""),
        fault=kind in _COUNTED,
        fair=kind not in _UNFAIR,
    )


def _settle(arguments: Arguments, readings: Readings) -> Machine[Any]:
    """Return the machine that a world is about: one with a `limit` is about a clock."""
    if "limit" not in arguments:
        return MACHINE
    rule = arguments.get("rule", "lag")
    if rule not in ("lag", "before"):
        raise ScenarioError(f"rule={rule}: expected lag or before")
    settings = clock.Settings(parse_number("limit", arguments["limit"]), rule)
    return Machine(
        name="kafka-4485",
        summary="what a leader with a clock notes of its followers, beside what is true of them",
        state=Watched,
        fields={},
        acts=(),
        step=lambda watched, action, readings: clock.step(watched, action, settings, readings),
        next_effect=lambda *_: None,
        enabled=lambda *_: (),
        is_at_rest=lambda *_: True,
        properties=(),
        goals=(),
        vocabulary=make_watched_vocabulary(settings, readings),
    )


_NAMES: Final[Mapping[str, str]] = {
    "hw.consumer.monotone": "mark-gone-back",
    "isr.stored.holds-committed": "member-without-committed",
    "log.committed-kept": "committed-lost",
    "hw.at-most-leader-end": "mark-beyond-end",
    "isr.change.leader-kept": "leader-not-stored",
}

MACHINE: Final = Machine(
    name="kafka-4485",
    summary="the in-sync set by lag in time, the high watermark, and what elections break of it",
    state=Replication,
    fields=FIELDS,
    acts=tuple(_make_act(name, kind) for name, kind in ACTIONS.items()),
    step=step,
    next_effect=lambda *_: None,
    enabled=lambda state, *_: enabled(state),
    is_at_rest=lambda *_: True,
    properties=tuple(
        Property(clause, always(find), _NAMES[clause], promised=partial(is_promised, clause))
        for clause, find in INVARIANTS.items()
    ),
    goals=tuple(Goal(name, reached(find)) for name, find in GOALS.items()),
    vocabulary=VOCABULARY,
    settle=_settle,
    forget=forget_versions,
    counting=("join", "leave", "remove", "refresh", "elect"),
    alike={"brokers": lambda rename, broker: rename(broker)},
)
