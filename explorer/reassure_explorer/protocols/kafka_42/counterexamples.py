"""What readers of KAFKA-42 take for granted, and the traces that break it."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from reassure_explorer.counterexamples import Beside, Find, Make, SmallWorld, make_world
from reassure_model.copies import is_in_sync
from reassure_model.environment import Controller, Die, Failover
from reassure_model.protocols import kafka_42
from reassure_model.protocols.kafka_42 import (
    Command,
    Move,
    make_move,
    move_replica_states,
    start_replica_states,
)
from reassure_model.protocols.kafka_42.machine import MACHINE, find_started_unassigned
from reassure_spec.readings import Readings
from reassure_spec.znodes import ReplicaList


def _make_world(
    assigned: ReplicaList,
    target: ReplicaList,
    problem: str | Find,
    beside: Beside | None = None,
    closing: tuple[str, ...] = ("problems", "show"),
    **times: int,
) -> Make:
    find: Find = (
        partial(MACHINE.find_broken, MACHINE.by_name[problem])
        if isinstance(problem, str)
        else problem
    )

    def make(chosen: Readings, called: str) -> SmallWorld:
        return make_world(
            MACHINE,
            chosen,
            {called: find},
            (Command(target),),
            make_move(assigned, frozenset(assigned + target)),
            times=times,
            without=("return", "observe"),
            beside=beside,
            closing=closing,
        )

    return make


def _find_few_in_sync(move: Move, _: Readings) -> str | None:
    """Say so when step 5 has ended and fewer are in sync than the target has."""
    stopped = move.task is not None and move.task.step >= 6
    few = move.task is not None and len(move.isr) < len(move.task.target)
    return f"in sync {list(move.isr)}" if stopped and few else None


def _find_unwaited(move: Move, _: Readings) -> str | None:
    """Say so when no command waits for the path, and it is there."""
    return "nobody waits for the path" if move.path is not None and move.wanted is None else None


# Memories beside a move -------------------------------------------------------------------------


def _find_next_cut(move: Move, readings: Readings) -> frozenset[int]:
    """Return who is taken out of the in-sync set next, for step 5."""
    effect = kafka_42.next_effect(move, readings)
    if not isinstance(effect, kafka_42.WriteLeader) or effect.step != 5:
        return frozenset()
    return frozenset(move.isr) - frozenset(effect.isr)


def _remember_cuts(_: Move, readings: Readings) -> tuple[Callable[..., Any], Any]:
    """Remember who was taken out of the in-sync set in step 5."""

    def update(move: Move, cut: frozenset[int], action: Any, _: Move) -> frozenset[int]:
        return cut | _find_next_cut(move, readings) if isinstance(action, Controller) else cut

    return update, frozenset()


def _find_second_cut(cutting: tuple[Move, frozenset[int]], readings: Readings) -> str | None:
    """Say so when a replica that was cut is to be cut once more."""
    move, cut = cutting
    again = sorted(cut & _find_next_cut(move, readings))
    return f"in sync {list(move.isr)}, {again[0]} is to be cut again" if again else None


def _remember_states(start: Move, readings: Readings) -> tuple[Callable[..., Any], Any]:
    """Remember the replica states of the controller, and whether one was refused at last."""

    def update(move: Move, memory: Any, action: Any, after: Move) -> Any:
        match action:
            case Failover():
                return start_replica_states(after), False
            case Die():
                return move_replica_states(memory[0], action, readings)[0], False
            case Controller():
                effect = kafka_42.next_effect(move, readings)
                assert effect is not None
                states, refused = move_replica_states(memory[0], effect, readings)
                return states, bool(refused)
        return memory[0], False

    return update, (start_replica_states(start), False)


def _find_refused_state(pair: tuple[Move, Any], _: Readings) -> str | None:
    return "a transition is refused" if pair[1][1] else None


def _remember_found(_: Move, readings: Readings) -> tuple[Callable[..., Any], Any]:
    """Remember whether a new controller has found the target in sync."""

    def update(move: Move, found: bool, action: Any, _: Move) -> bool:
        ready = move.path is not None and is_in_sync(move, move.path)
        return found or (isinstance(action, Failover) and ready)

    return update, False


def _find_given_up(pair: tuple[Move, bool], _: Readings) -> str | None:
    move, found = pair
    given_up = found and move.path is None and not kafka_42.is_complete(move)
    return f"given up with {list(move.isr)} in sync" if given_up else None


WORLDS: Final[Mapping[str, Make]] = {
    "story-no-stopped-replica-in-sync": _make_world((1,), (2,), "deleted-in-sync"),
    "story-no-stopped-replica-elected": _make_world((1, 2), (2, 3), "empty-leader", deaths=1),
    "story-no-leader-stopped": _make_world((1, 2), (3, 4), "stopped-leader", deaths=1),
    "story-isr-within-assigned": _make_world((1,), (2,), "outside-assigned"),
    "story-not-given-up-half-way": _make_world(
        (1, 2), (3, 4), "emptied-assignment", deaths=1, failovers=1
    ),
    "story-no-stray-after-failover": _make_world((1, 2), (3, 4), "stray", deaths=1, failovers=1),
    "story-interrupt-keeps-records": _make_world(
        (1,), (2,), "emptied-assignment", failovers=1, interrupts=1
    ),
    "story-target-in-sync-after-stop": _make_world((1, 2), (3, 4), _find_few_in_sync, deaths=1),
    "story-started-only-if-assigned": _make_world(
        (1,), (2,), lambda move, _: find_started_unassigned(move)
    ),
    "story-legal-transitions": _make_world(
        (1,), (2,), _find_refused_state, beside=_remember_states, closing=("replicas",), failovers=1
    ),
    "story-found-in-sync-is-finished": _make_world(
        (1, 2), (3, 4), _find_given_up, _remember_found, deaths=1, failovers=1
    ),
    "story-path-goes-with-its-command": _make_world((1,), (2,), _find_unwaited, interrupts=1),
    "story-online-replica-is-elected": _make_world(
        (1,), (2,), _find_refused_state, _remember_states, ("replicas",)
    ),
    "story-new-replica-follows": _make_world(
        (1,), (2,), _find_refused_state, beside=_remember_states, closing=("replicas",), deaths=1
    ),
    "story-cut-once": _make_world((1,), (2,), _find_second_cut, _remember_cuts),
}
