"""What readers of KAFKA-42 take for granted, and the stories that break it."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from reassure_explorer.promises import Beside, Find, SmallWorld, Tale, make_world
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


def _tale(
    name: str,
    clause: str,
    statement: str,
    finding: str,
    steps: int,
    assigned: ReplicaList,
    target: ReplicaList,
    problem: str | Find,
    readings: Mapping[str, str] | None = None,
    beside: Beside | None = None,
    closing: tuple[str, ...] = ("problems", "show"),
    **times: int,
) -> Tale:
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

    return Tale(name, clause, statement, finding, steps, "kafka-42", make, readings or {})


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


_CLEAN: Final = {"election.unclean": "no"}
_CUT: Final = {**_CLEAN, "move.cut-isr": "yes"}


TALES: Final = (
    _tale(
        "story-no-stopped-replica-in-sync",
        "move.stop.cut-isr",
        "As written, no replica whose log was deleted is in sync.",
        "move-1",
        6,
        (1,),
        (2,),
        "deleted-in-sync",
    ),
    _tale(
        "story-no-stopped-replica-elected",
        "move.stop.cut-isr",
        "As written, with clean elections and one death, a live leader has the committed records.",
        "move-2",
        8,
        (1, 2),
        (2, 3),
        "empty-leader",
        _CLEAN,
        deaths=1,
    ),
    _tale(
        "story-no-leader-stopped",
        "move.stop.recheck",
        "With the in-sync set cut, one death does not lead to a leader that was stopped.",
        "move-3",
        11,
        (1, 2),
        (3, 4),
        "stopped-leader",
        _CUT,
        deaths=1,
    ),
    _tale(
        "story-isr-within-assigned",
        "move.start.expand-first",
        "As written, whoever is in sync is assigned.",
        "move-5",
        3,
        (1,),
        (2,),
        "outside-assigned",
    ),
    _tale(
        "story-not-given-up-half-way",
        "move.listener.refuse-dead",
        "As written, with one death and one failover, an assigned replica has the records.",
        "move-6",
        13,
        (1, 2),
        (3, 4),
        "emptied-assignment",
        deaths=1,
        failovers=1,
    ),
    _tale(
        "story-no-stray-after-failover",
        "move.cancel.no-strays",
        "As written, with one death and one failover, nothing runs that is not assigned.",
        "move-7",
        5,
        (1, 2),
        (3, 4),
        "stray",
        deaths=1,
        failovers=1,
    ),
    _tale(
        "story-interrupt-keeps-records",
        "move.tool.interrupt",
        "As written, with one interruption and one failover, an assigned replica has the records.",
        "move-8",
        8,
        (1,),
        (2,),
        "emptied-assignment",
        failovers=1,
        interrupts=1,
    ),
    _tale(
        "story-target-in-sync-after-stop",
        "move.step.stop-old",
        "With the in-sync set cut and one death, as many are in sync after the stop as asked for.",
        "move-10",
        14,
        (1, 2),
        (3, 4),
        _find_few_in_sync,
        _CUT,
        deaths=1,
    ),
    _tale(
        "story-started-only-if-assigned",
        "move.start.expand-first",
        "As written, a replica is assigned before it is started.",
        "move-14",
        2,
        (1,),
        (2,),
        lambda move, _: find_started_unassigned(move),
    ),
    _tale(
        "story-legal-transitions",
        "move.replica.states",
        "As written, with one failover, every transition of a replica is a legal one.",
        "move-18",
        6,
        (1,),
        (2,),
        _find_refused_state,
        beside=_remember_states,
        closing=("replicas",),
        failovers=1,
    ),
    _tale(
        "story-found-in-sync-is-finished",
        "move.failover.re-elects",
        "By the listener's conditions, what a new controller finds in sync is not given up.",
        "move-20",
        9,
        (1, 2),
        (3, 4),
        _find_given_up,
        {"move.dead-at-failover": "refuse"},
        _remember_found,
        deaths=1,
        failovers=1,
    ),
    _tale(
        "story-path-goes-with-its-command",
        "move.tool.interrupt",
        "By the shutdown hook, a path is there only while its command waits.",
        "move-21",
        1,
        (1,),
        (2,),
        _find_unwaited,
        {"move.interrupt": "log-only"},
        interrupts=1,
    ),
    _tale(
        "story-online-replica-is-elected",
        "move.replica.online",
        "Where replicas are online once they are assigned, every transition is a legal one.",
        "move-22",
        5,
        (1,),
        (2,),
        _find_refused_state,
        {"move.online-from": "assigned"},
        _remember_states,
        ("replicas",),
    ),
    _tale(
        "story-new-replica-follows",
        "move.replica.new-follows",
        "As written, with one death, a replica that is new is not told to lead.",
        "move-23",
        5,
        (1,),
        (2,),
        _find_refused_state,
        beside=_remember_states,
        closing=("replicas",),
        deaths=1,
    ),
    _tale(
        "story-cut-once",
        "move.stop.cut-isr",
        "With the in-sync set cut, no replica has to be taken out of it twice.",
        "move-19",
        7,
        (1,),
        (2,),
        _find_second_cut,
        {"move.cut-isr": "yes"},
        _remember_cuts,
    ),
)
