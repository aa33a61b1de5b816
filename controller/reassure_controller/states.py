"""The states that a controller takes replicas and partitions through, by Kafka's tables.

A replica that nobody was told of in this term, and that no earlier controller assigned, does not
exist. It is new before its broker is told, online once its reassignment has its target in sync, and
offline when it is stopped or its broker dies. A deletion is started before the order, and has
succeeded by the answer; a dropped replica is not waited for, and does not exist once it is not
assigned. A move that the tables do not allow is refused: that is a defect of the controller.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from reassure_controller.messages import StatesMoved
from reassure_spec.profiles import DEFAULT_PROFILE
from reassure_spec.state_tables import (
    DROP_PATH,
    PARTITION_TABLES,
    REPLICA_TABLES,
    PartitionState,
    ReplicaState,
)
from reassure_spec.znodes import PartitionKey

if TYPE_CHECKING:
    from reassure_controller.context import Context

log = logging.getLogger("reassure_controller")

P, R = PartitionState, ReplicaState
State = PartitionState | ReplicaState

_TOLD: Final[dict[State, tuple[State, ...]]] = {
    R.NON_EXISTENT: (R.NEW,),
    R.OFFLINE: (R.ONLINE,),
    R.DELETION_STARTED: (R.DELETION_INELIGIBLE, R.ONLINE),
    R.DELETION_SUCCESSFUL: (R.NON_EXISTENT, R.NEW),
    R.DELETION_INELIGIBLE: (R.ONLINE,),
}
"""Where an order to run it takes a replica to."""
_RUNNING: Final = (R.NEW, R.ONLINE)
_DELETED: Final = (R.DELETION_STARTED, R.DELETION_SUCCESSFUL)


@dataclass(slots=True)
class States:
    """The states of one term; the partition's own stands under None."""

    profile: str = DEFAULT_PROFILE
    _known: dict[PartitionKey, dict[int | None, State]] = field(default_factory=dict)
    _news: dict[PartitionKey, list[tuple[int | None, str, str]]] = field(default_factory=dict)

    def list_previous(self, state: State) -> frozenset[State]:
        """Return from where one may go to a state, nothing where the profile does not have it."""
        if isinstance(state, PartitionState):
            return PARTITION_TABLES[self.profile][state]
        return REPLICA_TABLES[self.profile].get(state, frozenset())

    def find(self, key: PartitionKey, replica: int | None) -> State:
        """Return a state."""
        gone = P.NON_EXISTENT if replica is None else R.NON_EXISTENT
        return self._known.get(key, {}).get(replica, gone)

    def move(self, key: PartitionKey, replica: int | None, *path: State) -> None:
        """Go from state to state; what the profile does not have is passed over."""
        for state in path:
            before = self.find(key, replica)
            previous = self.list_previous(state)
            if state is before or not previous:
                continue
            if before not in previous:
                who = "the partition" if replica is None else f"replica {replica}"
                refused = "%s-%d: %s may not go from %s to %s, and stays"
                log.error(refused, *key, who, before.name, state.name)
                return
            self._known.setdefault(key, {})[replica] = state
            self._news.setdefault(key, []).append((replica, before.name, state.name))

    def take_news(self, epoch: int) -> list[StatesMoved]:
        """Return where partitions and their replicas went since the last call, a line for each."""
        news, self._news = self._news, {}
        return [StatesMoved(epoch, *key, tuple(moves)) for key, moves in news.items()]

    def begin(self, context: "Context") -> None:
        """Assume what a controller that takes office finds."""
        for key, content in context.partitions.items():
            if content.state is not None and key not in self._known:
                leads = context.is_live(content.state.leader)
                self._known[key] = {None: P.ONLINE if leads else P.OFFLINE}
                live = {one: context.is_live(one) for one in content.assigned}
                self._known[key] |= {r: R.ONLINE if here else R.OFFLINE for r, here in live.items()}

    def settle(self, context: "Context", key: PartitionKey) -> None:
        """Go where what is remembered of a partition says that it, and its replicas, are."""
        content = context.partitions.get(key)
        if content is None:
            return
        state, child = content.state, content.child
        before = self.find(key, None)
        if before is P.NON_EXISTENT:
            self.move(key, None, P.NEW)
        if state is not None:
            if before in (P.NON_EXISTENT, P.NEW):
                for one in state.isr:
                    self.move(key, one, R.NEW, R.ONLINE)
            self.move(key, None, P.ONLINE if context.is_live(state.leader) else P.OFFLINE)
        # A death can make one that is new the leader.
        leader, isr = (None, ()) if state is None else (state.leader, state.isr)
        moved = child is None or set(child.target) <= set(isr)
        for replica, now in list(self._known[key].items()):
            if now is R.NEW and (moved or replica == leader):
                self.move(key, replica, R.ONLINE)
            elif replica not in content.hosts and (
                now in _DELETED or now in self.list_previous(R.NON_EXISTENT)
            ):
                self.move(key, replica, *DROP_PATH[DROP_PATH.index(now) + 1 :])

    def tell(self, key: PartitionKey, brokers: Iterable[int]) -> None:
        """Move replicas whose brokers are told to run them."""
        for replica in brokers:
            self.move(key, replica, *_TOLD.get(self.find(key, replica), ()))

    def stop(self, key: PartitionKey, brokers: Iterable[int], *, delete: bool) -> None:
        """Move replicas whose brokers are told to stop them, or then to delete them."""
        for replica in brokers:
            now = self.find(key, replica)
            if now in (*_RUNNING, R.DELETION_INELIGIBLE) and not delete:
                self.move(key, replica, R.OFFLINE)
            elif delete and now not in (*_DELETED, R.NON_EXISTENT):
                self.move(key, replica, R.DELETION_STARTED)

    def end(self, key: PartitionKey, replica: int, state: ReplicaState) -> None:
        """Move a replica whose deletion has begun."""
        if self.find(key, replica) is R.DELETION_STARTED:
            self.move(key, replica, state)

    def lose(self, context: "Context", dead: set[int]) -> None:
        """Move replicas whose brokers died, and partitions that were led there."""
        for key, states in self._known.items():
            lost = dead & states.keys()
            for replica in lost:
                if states[replica] in _RUNNING:
                    self.move(key, replica, R.OFFLINE)
                elif key[0] in context.deletions:
                    self.end(key, replica, R.DELETION_INELIGIBLE)
            if lost:
                self.settle(context, key)

    def drop(self, key: PartitionKey) -> None:
        """Forget a partition that is gone, and whose replicas are."""
        for replica, now in list(self._known.get(key, {}).items()):
            if now is R.DELETION_SUCCESSFUL:
                self.move(key, replica, R.NON_EXISTENT)
        if key in self._known:
            self.move(key, None, P.OFFLINE, P.NON_EXISTENT)
            del self._known[key]
