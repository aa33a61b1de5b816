"""How KAFKA-42 is told."""

from dataclasses import replace
from typing import Any, Final

from reassure_model.environment import Die
from reassure_model.narration import Vocabulary, parse_set, spell_leader
from reassure_model.protocols import kafka_42
from reassure_model.selectors import select_controlled_shutdown
from reassure_spec.readings import Readings
from reassure_spec.words import (
    Arguments,
    check_arguments,
    format_replicas,
    parse_replicas,
    spell_replicas,
)


def _open(arguments: Arguments) -> kafka_42.Move:
    check_arguments(arguments, ("assigned", "brokers"))
    assigned = parse_replicas("assigned", arguments["assigned"])
    return kafka_42.make_move(assigned, parse_set(arguments, "brokers"))


def _say_opening(move: kafka_42.Move) -> tuple[str, ...]:
    assigned, brokers = spell_replicas(move.assigned), spell_replicas(sorted(move.live))
    return (f"world kafka-42 assigned={assigned} brokers={brokers}",)


def say_effect(effect: kafka_42.Effect, _: kafka_42.Move, __: kafka_42.Move) -> str:
    """Return an effect as scenarios show it."""
    match effect:
        case kafka_42.WriteLeader(leader, isr, at):
            place = f"step {at}" if at else "between steps"
            return f"{place}: leader {spell_leader(leader)} isr {format_replicas(isr)}"
        case kafka_42.Refuse(clause, reason):
            return f"refused by {clause}: {reason}; path removed"
        case kafka_42.Listen(target):
            return f"step 1: listen for {format_replicas(target)}"
        case kafka_42.StartReplica(replica):
            return f"step 2: start {replica}"
        case kafka_42.MarkOnline(target):
            return f"step 3: {format_replicas(target)} in sync"
        case kafka_42.StopReplica(replica):
            return f"step 5: stop {replica}"
        case kafka_42.WriteAssigned(assigned, at):
            return f"step {at}: assigned {format_replicas(assigned)}"
        case kafka_42.RemovePath():  # one way: there is no other effect
            return "step 7: path removed"


def show(move: kafka_42.Move) -> str:
    """Return where the partition and its copies are, in two lines."""
    who = spell_leader(move.leader)
    path = "" if move.path is None else f" path {format_replicas(move.path)}"
    path += " and others" if move.beside and path else " path others" if move.beside else ""
    assigned, isr = format_replicas(move.assigned), format_replicas(move.isr)
    sets = (move.running, move.holding, move.live)
    running, holding, live = (format_replicas(sorted(members)) for members in sets)
    return (
        f"assigned {assigned} leader {who} epoch {move.leader_epoch} isr {isr}{path}\n"
        f"running {running} with all records {holding} alive {live}"
    )


def _report(before: kafka_42.Move, after: kafka_42.Move) -> str:
    """Say what an admin command that ends tells its user."""
    kept = "" if after.path is None else ", path left to the controller"
    return f"the command reports {'success' if kafka_42.is_complete(before) else 'failure'}{kept}"


def _shut_down(move: kafka_42.Move, arguments: Arguments) -> str:
    """Say who would take over from brokers that are about to stop."""
    check_arguments(arguments, ("brokers",))
    stopping = parse_set(arguments, "brokers")
    elected = select_controlled_shutdown(move.assigned, move.isr, move.live, stopping)
    if elected is None:
        return "nobody can take over; the broker keeps leading"
    return f"leader {elected.leader} isr {format_replicas(elected.isr)}"


def _add_others(move: kafka_42.Move, arguments: Arguments) -> kafka_42.Move:
    """Let the path name other partitions as well, by the same command."""
    check_arguments(arguments)
    return replace(move, beside=True)


def _follow(states: Any, done: Any, readings: Readings) -> tuple[Any, tuple[str, ...]]:
    """Return the replica states in memory after an effect or a death, and what is refused."""
    after, refused = kafka_42.move_replica_states(states, done, readings)
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
    remember=kafka_42.start_replica_states,
    follow=_follow,
    recall=_recall,
)
