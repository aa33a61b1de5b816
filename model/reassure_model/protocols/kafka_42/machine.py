"""KAFKA-42 as a machine: what may happen, what must never be, and how it is told."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from reassure_model.copies import Append, find_deleted_in_sync, find_empty_leader, is_led
from reassure_model.environment import Die
from reassure_model.machine import (
    CONTROLLER,
    DIE,
    FAILOVER,
    JOIN,
    RETURN,
    Act,
    Domain,
    Flag,
    Goal,
    Held,
    Int,
    ListOf,
    Machine,
    OneOf,
    Property,
    RecordOf,
    SetOf,
    Vocabulary,
    always,
    ask_for,
    reached,
)
from reassure_model.protocols.kafka_42 import (
    Command,
    Effect,
    Interrupt,
    Listen,
    MarkOnline,
    Move,
    Observe,
    Refuse,
    RemovePath,
    Stall,
    StartReplica,
    StopReplica,
    Task,
    WriteAssigned,
    WriteLeader,
    is_complete,
    make_move,
    move_replica_states,
    next_effect,
    start_replica_states,
)
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
from reassure_model.selectors import select_controlled_shutdown
from reassure_spec.readings import Readings
from reassure_spec.words import (
    Arguments,
    check_arguments,
    format_replicas,
    parse_replicas,
    spell_replicas,
)
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


# Words ------------------------------------------------------------------------------------------


def _open(arguments: Arguments) -> Move:
    check_arguments(arguments, ("assigned", "brokers"))
    brokers = frozenset(parse_replicas("brokers", arguments["brokers"]))
    return make_move(parse_replicas("assigned", arguments["assigned"]), brokers)


def _say_opening(move: Move) -> tuple[str, ...]:
    assigned, brokers = spell_replicas(move.assigned), spell_replicas(sorted(move.live))
    return (f"world kafka-42 assigned={assigned} brokers={brokers}",)


def say_effect(effect: Effect, _: Move, __: Move) -> str:
    """Return an effect as scenarios show it."""
    match effect:
        case WriteLeader(leader, isr, at):
            who = "nobody" if leader == NO_LEADER else f"{leader}"
            place = f"step {at}" if at else "between steps"
            return f"{place}: leader {who} isr {format_replicas(isr)}"
        case Refuse(clause, reason):
            return f"refused by {clause}: {reason}; path removed"
        case Listen(target):
            return f"step 1: listen for {format_replicas(target)}"
        case StartReplica(replica):
            return f"step 2: start {replica}"
        case MarkOnline(target):
            return f"step 3: {format_replicas(target)} in sync"
        case StopReplica(replica):
            return f"step 5: stop {replica}"
        case WriteAssigned(assigned, at):
            return f"step {at}: assigned {format_replicas(assigned)}"
        case RemovePath():
            return "step 7: path removed"


def show(move: Move) -> str:
    """Return where the partition and its copies are, in two lines."""
    who = "nobody" if move.leader == NO_LEADER else f"{move.leader}"
    path = "" if move.path is None else f" path {format_replicas(move.path)}"
    path += " and others" if move.beside and path else " path others" if move.beside else ""
    assigned, isr = format_replicas(move.assigned), format_replicas(move.isr)
    sets = (move.running, move.holding, move.live)
    running, holding, live = (format_replicas(sorted(members)) for members in sets)
    return (
        f"assigned {assigned} leader {who} epoch {move.leader_epoch} isr {isr}{path}\n"
        f"running {running} with all records {holding} alive {live}"
    )


def _report(before: Move, after: Move) -> str:
    """Say what an admin command that ends tells its user."""
    kept = "" if after.path is None else ", path left to the controller"
    return f"the command reports {'success' if is_complete(before) else 'failure'}{kept}"


def _shut_down(move: Move, arguments: Arguments) -> str:
    """Say who would take over from brokers that are about to stop."""
    check_arguments(arguments, ("brokers",))
    stopping = frozenset(parse_replicas("brokers", arguments["brokers"]))
    elected = select_controlled_shutdown(move.assigned, move.isr, move.live, stopping)
    if elected is None:
        return "nobody can take over; the broker keeps leading"
    return f"leader {elected.leader} isr {format_replicas(elected.isr)}"


def _add_others(move: Move, arguments: Arguments) -> Move:
    """Let the path name other partitions as well, by the same command."""
    check_arguments(arguments)
    return replace(move, beside=True)


def _follow(states: Any, done: Any, readings: Readings) -> tuple[Any, tuple[str, ...]]:
    """Return the replica states in memory after an effect or a death, and what is refused."""
    after, refused = move_replica_states(states, done, readings)
    return after, () if isinstance(done, Die) else tuple(f"  {reason}" for reason in refused)


def _recall(states: Any) -> str:
    return "\n".join(f"{r} {s.name.lower().replace('_', '-')}" for r, s in states)


VOCABULARY: Final = Vocabulary(
    opening=_open,
    say_opening=_say_opening,
    show=show,
    say_effect=say_effect,
    answers={"interrupt": _report, "observe": _report},
    shows=("join", "die", "return", "run"),
    questions={"shut-down": _shut_down},
    changes={"others": _add_others},
    overlooked=("observe",),
    remember=start_replica_states,
    follow=_follow,
    recall=_recall,
)

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
