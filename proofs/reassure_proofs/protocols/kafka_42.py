"""The original reassignment: what the listener takes, and how its effects move replicas."""

# ruff: noqa: D205, D401  # the docstring of a claim is what it claims

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from reassure_model.environment import Die
from reassure_model.protocols import kafka_42
from reassure_model.protocols.kafka_42 import Move, find_refusal
from reassure_model.state_machines import ReplicaState
from reassure_proofs.engine.formula import Truth, all_of, any_of, distinct, inside
from reassure_proofs.engine.statement import (
    ID,
    SET,
    Claims,
    Hypothesis,
    Shape,
    Subject,
    Values,
    given,
    ids,
    make_subject,
    word,
)
from reassure_proofs.protocols.topics import GONE, is_legal, read_state
from reassure_spec.readings import Readings
from reassure_spec.words import spell_replicas as spell

_subject: Final = partial(make_subject, profile="kafka-42")


def _refusal(values: Values, readings: Readings) -> Any:
    move = Move(values["assigned"], values["assigned"][0], (), values["live"], (), ())  # type: ignore[arg-type]
    return find_refusal(move, values["target"], readings) is None


def _listener_shapes(longest: int) -> Iterator[Shape]:
    for length in range(1, longest + 1):
        yield {"assigned": ids(length), "target": ids(length), "live": SET}


def _tell_listener(values: Values) -> tuple[str, ...]:
    assigned, target = values["assigned"], values["target"]
    named = spell(sorted({*assigned, *target}))
    world = f"world kafka-42 assigned={spell(assigned)} brokers={named}"
    return world, f"command target={spell(target)}", "step"


def _listener(name: str, reading: str) -> Subject:
    return _subject(
        *(name, _refusal, "whether the listener takes the target", _listener_shapes),
        hashable=True,
        tell=_tell_listener,
        changes=(reading,),
    )


LITERAL: Final = _listener("listener-literal", "move.refuses-partition=existing")
AS_SET: Final = _listener("listener-as-set", "move.same-replicas=as-set")
GOOD_TARGET: Final = Hypothesis(
    "good-target",
    "assignment and target name live brokers, none of them twice, and are not the same",
    lambda v: (
        distinct(v["assigned"])
        & distinct(v["target"])
        & all_of(inside(r, v["live"]) for r in (*v["assigned"], *v["target"]))
        & any_of(a != b for a, b in zip(v["assigned"], v["target"], strict=True))
    ),
)


def move_42(
    values: Values, readings: Readings
) -> tuple[ReplicaState, ReplicaState, tuple[str, ...]]:
    """Return the state of a replica before and after an effect, and what the table refused."""
    before = read_state(values["code"])
    effects: Mapping[str, Any] = {
        "start": kafka_42.StartReplica(1),
        "online": kafka_42.MarkOnline((1,)),
        "stop": kafka_42.StopReplica(1),
        "die": Die(1),
    }
    known = ((1, before),) if before is not GONE else ()
    after, refused = kafka_42.move_replica_states(known, effects[values["effect"]], readings)
    return before, dict(after).get(1, GONE), refused


def _move_shapes(_: int) -> Iterator[Shape]:
    for effect in ("start", "online", "stop", "die"):
        yield {"effect": word(effect), "code": ID}


MOVED_42: Final = _subject(
    *("move-replica-states", move_42, "the effect on the replica's state", _move_shapes),
    bounded="one replica in every state",
)
"""An effect of the original reassignment, or a death."""


THEOREMS: Final = Claims(largest=2, tier="full")
"""Every theorem about the original reassignment."""
about = THEOREMS.about


@about(MOVED_42, "move-moves-or-refuses", "move.replica.states")
def _moves_or_refuses(_: Values, result: Any) -> Truth:
    """The effects of the original reassignment move a replica by the table, or the table's
    refusal is told.

    A replica that stops moves through Offline.
    """
    before, after, refused = result
    offline = ReplicaState.OFFLINE
    by_offline = is_legal("kafka-42", before, offline) and is_legal("kafka-42", offline, after)
    return is_legal("kafka-42", before, after) or by_offline or len(refused) > 0


@about(
    LITERAL, "listener-takes-existing-partition", "move.listener.refuse-missing", finding="move-11"
)
@given(GOOD_TARGET)
def _listener_takes_existing_partition(_: Values, taken: Any) -> Truth:
    """Taken to the letter, the listener takes a good target for a partition that exists."""
    return taken


@about(AS_SET, "listener-takes-new-order", "move.listener.refuse-same", finding="move-13")
@given(GOOD_TARGET)
def _listener_takes_new_order(_: Values, taken: Any) -> Truth:
    """Compared as sets, the listener takes a good target in a new order."""
    return taken
