"""What may happen to a partition under KAFKA-42, the controller's effects among it."""

from dataclasses import dataclass, replace

from reassure_model.copies import Append, can_join, happen, is_led, list_happenings
from reassure_model.environment import Controller, Die, Failover, Join, NotPossible, Return
from reassure_model.outcome import Accepted
from reassure_model.protocols.kafka_42 import (
    Command,
    Interrupt,
    Move,
    Observe,
    Outcome,
    Stall,
    apply_effect,
    create_path,
    fail_over,
    interrupt,
    is_path_there,
    next_effect,
    report,
)
from reassure_spec.readings import Readings


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
