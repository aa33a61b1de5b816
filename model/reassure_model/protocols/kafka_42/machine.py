"""KAFKA-42 as a machine: what may happen to a partition and what must never be."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from reassure_model.copies import (
    Append,
    can_join,
    find_deleted_in_sync,
    find_empty_leader,
    find_nothing_held,
    find_outside,
    find_running_unassigned,
    happen,
    is_led,
    list_happenings,
)
from reassure_model.environment import Controller, Die, Failover, Join, NotPossible, Return
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
from reassure_model.outcome import Accepted
from reassure_model.protocols.kafka_42 import (
    Command,
    Interrupt,
    Move,
    Observe,
    Outcome,
    Stall,
    StopReplica,
    Task,
    apply_effect,
    create_path,
    fail_over,
    interrupt,
    is_path_there,
    next_effect,
    report,
)
from reassure_model.protocols.kafka_42.narration import VOCABULARY
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER


@dataclass(frozen=True, slots=True)
class OthersEnd:
    """The moves of the other partitions under the path end, and they leave it."""


Action = (
    Command
    | Interrupt
    | OthersEnd
    | Stall
    | Observe
    | Append
    | Join
    | Die
    | Return
    | Failover
    | Controller
)


def enabled(move: Move, readings: Readings) -> tuple[Action, ...]:
    """Return every action that is possible except further commands."""
    actions: list[Action] = [Controller()] if next_effect(move, readings) is not None else []
    joining = (r for r in sorted(move.running) if can_join(move, r))
    actions += list_happenings(move, joining, move.live | move.running | move.holding)
    if move.wanted is not None:
        actions.append(Interrupt() if is_path_there(move) else Observe())
    return (*actions, Failover())


def step(move: Move, action: Action, readings: Readings) -> Outcome:
    """Take one action.

    Rejected is the answer to a command while another is under way. Raises NotPossible for an
    action that has nothing to act upon.
    """
    match action:
        case Command(target):
            return create_path(move, target)
        case Interrupt() if move.wanted is not None:
            return interrupt(move, readings)
        case Observe() if move.wanted is not None and not is_path_there(move):
            return report(move)
        case OthersEnd() if move.beside:
            return Accepted(replace(move, beside=False))
        case Stall() if is_led(move) and move.leader in move.running:
            return Accepted(replace(move, running=move.running - {move.leader}))
        case Controller():
            effect = next_effect(move, readings)
            if effect is not None:
                return Accepted(apply_effect(move, effect), effects=(effect,))
        case Failover():
            return Accepted(fail_over(move, readings))
        case _:
            after = happen(move, action)
            if after is not move:
                return Accepted(after)
    raise NotPossible(f"{action} is not possible in {move}")


def is_at_rest(move: Move) -> bool:
    """Whether no reassignment is asked for or being carried out."""
    return move.path is None and move.task is None


@clause("move.leader.not-stopped")
def find_stopped_leader(move: Move) -> str | None:
    """Say so when the recorded leader is alive and was stopped (finding move-3)."""
    if not is_led(move) or move.leader in move.running:
        return None
    return f"leader {move.leader} was stopped"


@clause("move.step.stop-old", "move.stop.recheck")
def find_stop_too_early(move: Move, readings: Readings) -> str | None:
    """Say so when an old replica is to be stopped and the target is not in sync.

    Finding move-10: step 5 looks at nothing, so that who died since step 3 is not missed.
    """
    due = next_effect(move, readings)
    if not isinstance(due, StopReplica) or move.task is None:
        return None
    lacking = [replica for replica in move.task.target if replica not in move.isr]
    return f"{due.replica} is to be stopped, not in sync: {lacking}" if lacking else None


@clause("move.start.expand-first")
def find_started_unassigned(move: Move) -> str | None:
    """Say so when a replica was started for a reassignment and is not assigned (finding move-14).

    A leader that counts its assigned replicas only never lets it in.
    """
    if move.task is None:
        return None
    strays = [r for r in move.task.target if r in move.running and r not in move.assigned]
    return f"started and not assigned: {strays}" if strays else None


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
        "interrupt", Interrupt, words="the command is interrupted", counted="interrupts", fault=True
    ),
    Act("observe", Observe, fair=True),
    Act("others-end", OthersEnd),
    Act("stall", Stall),
)

PROPERTIES: Final[tuple[Property[Move], ...]] = (
    Property("move.isr.without-deleted", always(find_deleted_in_sync), "deleted-in-sync"),
    Property("move.leader.holds-committed", always(find_empty_leader), "empty-leader"),
    Property("move.leader.not-stopped", always(find_stopped_leader), "stopped-leader"),
    Property("move.isr.within-assigned", always(find_outside), "outside-assigned"),
    Property(
        "move.assigned.holds-committed",
        always(find_nothing_held),
        "emptied-assignment",
        at_rest=True,
    ),
    Property("move.cancel.no-strays", always(find_running_unassigned), "stray", at_rest=True),
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
