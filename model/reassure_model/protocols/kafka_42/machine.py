"""KAFKA-42 as a machine: what may happen and what must never be."""

from collections.abc import Mapping
from typing import Final

from reassure_model.copies import Append, find_deleted_in_sync, find_empty_leader, is_led
from reassure_model.fields import Domain, Flag, Held, Int, ListOf, OneOf, RecordOf, SetOf
from reassure_model.machine import (
    CONTROLLER,
    DIE,
    FAILOVER,
    JOIN,
    RETURN,
    Act,
    Goal,
    Machine,
    Property,
    always,
    ask_for,
    reached,
)
from reassure_model.protocols.kafka_42 import (
    Command,
    Interrupt,
    Move,
    Observe,
    Stall,
    Task,
    next_effect,
)
from reassure_model.protocols.kafka_42.narration import VOCABULARY
from reassure_model.protocols.kafka_42.properties import (
    find_emptied_assignment,
    find_outside_assigned,
    find_started_unassigned,
    find_stop_too_early,
    find_stopped_leader,
    find_stray,
    is_at_rest,
)
from reassure_model.protocols.kafka_42.world import OthersEnd, enabled, step
from reassure_spec.znodes import NO_LEADER

_ASKED: Final = OneOf((None,), "targets")
FIELDS: Final[Mapping[str, Domain]] = {
    "leader": OneOf((NO_LEADER,), "brokers"),
    "live": SetOf("brokers"),
    "isr": ListOf("brokers", "brokers"),
    "assigned": ListOf("brokers", "brokers"),
    "running": SetOf("brokers"),
    "holding": SetOf("brokers"),
    "leader_epoch": Held(0),
    "path": _ASKED,
    "wanted": _ASKED,
    "task": RecordOf(Task, {"target": OneOf(of="targets"), "step": Int(2, 7)}),
    "found": Flag(),
    "beside": Held(False),
}

ACTS: Final = (
    ask_for("command", Command, "commands"),
    CONTROLLER,
    JOIN,
    Act("append", Append),
    DIE,
    RETURN,
    FAILOVER,
    Act(
        "interrupt",
        Interrupt,
        words="the command is interrupted",
        counted="interrupts",
        fault=True,
    ),
    Act("observe", Observe, fair=True),
    Act("others-end", OthersEnd),
    Act("stall", Stall),
)

PROPERTIES: Final[tuple[Property[Move], ...]] = (
    Property("move.isr.without-deleted", always(find_deleted_in_sync), "deleted-in-sync"),
    Property("move.leader.holds-committed", always(find_empty_leader), "empty-leader"),
    Property("move.leader.not-stopped", always(find_stopped_leader), "stopped-leader"),
    Property("move.isr.within-assigned", always(find_outside_assigned), "outside-assigned"),
    Property(
        "move.assigned.holds-committed",
        always(find_emptied_assignment),
        "emptied-assignment",
        at_rest=True,
    ),
    Property("move.cancel.no-strays", always(find_stray), "stray", at_rest=True),
    Property("move.start.expand-first", always(find_started_unassigned)),
    Property("move.step.stop-old", find_stop_too_early),
)

GOALS: Final[tuple[Goal[Move], ...]] = (
    Goal(
        "a replica of the target leads",
        reached(lambda m: m.task is not None and m.leader in m.task.target),
    ),
    Goal("nobody leads", reached(lambda m: not is_led(m))),
    Goal(
        "the assignment is written, the path is there",
        reached(lambda m: m.task is not None and m.task.step == 7),
    ),
    Goal(
        "a new controller begins again",
        reached(lambda m: m.task is None and m.path is not None and m.leader in m.path),
    ),
)


def is_settled(move: Move) -> bool:
    """Whether nothing is asked for, or what is asked for waits for a dead broker."""
    asked = move.path if move.task is None else move.task.target
    return asked is None or any(replica not in move.live for replica in asked)


MACHINE: Final = Machine(
    name="kafka-42",
    summary="one reassignment at a time, in seven steps, from a single znode",
    state=Move,
    fields=FIELDS,
    acts=ACTS,
    step=step,
    next_effect=next_effect,
    enabled=lambda move, readings, _: enabled(move, readings),
    is_at_rest=lambda move, _: is_at_rest(move),
    properties=PROPERTIES,
    goals=GOALS,
    vocabulary=VOCABULARY,
    is_settled=is_settled,
)
