"""The life of a reassignment under KAFKA-42: the stages of its seven steps.

What step the controller has reached is in its memory, and the next one begins again from the path.
Where it looks again before it stops old replicas, deaths take it back from there.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from reassure_explorer.lifecycle import Lifecycle, Moves, lead_to
from reassure_model.copies import is_in_sync
from reassure_model.environment import Join
from reassure_model.protocols import kafka_42 as rules
from reassure_model.protocols.kafka_42 import (
    Command,
    Interrupt,
    Listen,
    MarkOnline,
    Move,
    Refuse,
    RemovePath,
    StartReplica,
    WriteAssigned,
    WriteLeader,
)
from reassure_model.protocols.kip_236.rules import check_change_isr
from reassure_spec.readings import Readings


class MoveStage(Enum):
    """Where a partition stands; the value says what there is to do."""

    AT_REST = "nothing is asked for"
    ASKED = "the path is there: it is to be taken up, or refused"
    STARTING = "the new replicas are to be started"
    WAITING = "the target is to get in sync"
    IN_SYNC = "the target is in sync: its replicas are to be marked online"
    ELECTING = "one of the target is to lead"
    STOPPING = "the old replicas are to stop, then the target is to be written"
    DONE = "the target alone is assigned: the path is to go"


S = MoveStage


def find_stage(move: Move, readings: Readings) -> MoveStage:
    """Return where a partition stands."""
    if move.task is None:
        return S.AT_REST if move.path is None else S.ASKED
    target = move.task.target
    at = rules.find_step(move, move.task, readings)
    if at == 7:
        return S.DONE
    if at > 2:
        led = at == 5 or rules.is_led_by(move, target)
        return S.STOPPING if led else S.ELECTING
    if rules.start_new_replicas(move, target, readings) is not None:
        return S.STARTING
    return S.IN_SYNC if is_in_sync(move, target) else S.WAITING


_START: Final = (rules.start_new_replicas, rules.wait_until_in_sync)
_ELECT: Final = (rules.move_leader, rules.elect)
_STOP: Final = (rules.stop_old_replicas, rules.write_assignment)
_DEATHS: Final = (rules.next_for_deaths,)

MOVES: Final[Moves] = {
    (S.AT_REST, Command): lead_to(S.ASKED),
    (S.ASKED, Interrupt): lead_to(S.AT_REST),
    (S.ASKED, Refuse): lead_to(S.AT_REST, by=(rules.find_refusal,)),
    (S.ASKED, Listen): lead_to(
        S.STARTING, S.WAITING, S.IN_SYNC, by=(rules.listen, rules.next_effect)
    ),
    (S.STARTING, StartReplica): lead_to(S.WAITING, by=_START),
    (S.STARTING, WriteAssigned): lead_to(S.WAITING, by=_START),
    (S.WAITING, Join): lead_to(S.IN_SYNC, S.ELECTING, S.STOPPING, by=(check_change_isr,)),
    (S.IN_SYNC, MarkOnline): lead_to(S.ELECTING, S.STOPPING, by=_START),
    (S.IN_SYNC, WriteLeader): lead_to(S.WAITING, by=_DEATHS),
    (S.ELECTING, WriteLeader): lead_to(S.STOPPING, S.WAITING, by=(*_ELECT, *_DEATHS)),
    (S.STOPPING, WriteLeader): lead_to(S.WAITING, by=_DEATHS),
    (S.STOPPING, WriteAssigned): lead_to(S.DONE, by=_STOP),
    (S.DONE, RemovePath): lead_to(S.AT_REST, by=(rules.remove_path, rules.apply_effect)),
}
"""Where a step leads from a stage that it ends, under any of the readings."""

_AGAIN: Final = frozenset({S.ASKED, S.AT_REST})
FORGETS: Final[Mapping[Enum, frozenset[Enum]]] = {s: _AGAIN for s in MoveStage if s not in _AGAIN}
"""The next controller begins again with the path, which may be gone by then."""


LIFECYCLE: Final[Lifecycle[Move]] = Lifecycle(
    "a reassignment",
    MoveStage,
    lambda move, readings: {"": find_stage(move, readings)},
    MOVES,
    FORGETS,
)
