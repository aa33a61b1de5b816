"""The life of a topic that is to be deleted: from the client's request until nothing is left."""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from reassure_explorer.lifecycle import Lifecycle, Moves, lead_to
from reassure_model.protocols.topics import (
    Answer,
    Ask,
    MoveReplica,
    RemoveAsked,
    RemoveConfig,
    RemoveTopic,
    Topic,
    find_hindrance,
    next_for_gone,
    next_for_there,
)
from reassure_model.state_machines import ReplicaState, move_replica


class DeletionStage(Enum):
    """Where a topic stands; the value says what there is to do."""

    KEPT = "nobody asks for its deletion"
    ASKED = "once nothing hinders it, its replicas are to go offline and one to be told"
    DELETING = "every replica is to delete its log and to answer"
    ANSWERED = "all logs are gone: the topic's znode is to go"
    REMOVED = "the topic's znode is gone: its configuration is to go"
    FINISHED = "nothing else is left: what the client wrote is to go"
    NONE = "there is no such topic, and nobody asks for its deletion"


S = DeletionStage


def find_stage(topic: Topic) -> DeletionStage:
    """Return where a topic stands."""
    if not topic.partitions:
        if not topic.is_asked:
            return S.NONE
        return S.REMOVED if topic.is_finishing and topic.has_config else S.FINISHED
    if not topic.is_asked:
        return S.KEPT
    states = {state for _, state in topic.states}
    if states == {ReplicaState.DELETION_SUCCESSFUL}:
        return S.ANSWERED
    begun = {ReplicaState.DELETION_STARTED, ReplicaState.DELETION_SUCCESSFUL}
    return S.DELETING if states & begun else S.ASKED


_THERE: Final = (next_for_there,)
_GONE: Final = (next_for_gone,)

MOVES: Final[Moves] = {
    (S.KEPT, Ask): lead_to(S.ASKED),
    (S.ASKED, MoveReplica): lead_to(S.DELETING, by=(find_hindrance, move_replica)),
    (S.ASKED, RemoveAsked): lead_to(S.KEPT, by=_THERE),
    (S.DELETING, Answer): lead_to(S.ANSWERED, by=(move_replica,)),
    (S.ANSWERED, RemoveTopic): lead_to(S.REMOVED, by=_THERE),
    (S.REMOVED, RemoveConfig): lead_to(S.FINISHED, by=_GONE),
    (S.FINISHED, RemoveAsked): lead_to(S.NONE, by=_GONE),
    (S.NONE, Ask): lead_to(S.FINISHED),
}
"""Where a step leads from a stage that it ends."""

_AGAIN: Final = frozenset({S.ASKED})
FORGETS: Final[Mapping[Enum, frozenset[Enum]]] = {S.DELETING: _AGAIN, S.ANSWERED: _AGAIN}
"""Who has answered only memory knows; a log that is gone is deleted once more."""


LIFECYCLE: Final[Lifecycle[Topic]] = Lifecycle(
    "a topic that is to be deleted",
    DeletionStage,
    lambda topic, _: {"": find_stage(topic)},
    MOVES,
    FORGETS,
)
