"""What a cluster looks like from ZooKeeper when all is healed, and what is still amiss."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from reassure_controller.session import Indefinite, gather
from reassure_lab.soak import leftovers
from reassure_lab.soak.guarantees import Breach
from reassure_lab.soak.operator import Wanted
from reassure_spec.znodes import (
    CONFIGS,
    CONTROLLER,
    CONTROLLER_EPOCH,
    DELETED_TOPICS,
    FAILED_BROKERS,
    NO_LEADER,
    REASSIGNMENT_REQUESTS,
    REASSIGNMENT_TASKS,
    REASSIGNMENTS,
    PartitionKey,
    ReplicaList,
    decode_controller_epoch,
    decode_state,
    decode_topic,
    state_path,
    topic_path,
)

STAY: Final = (CONFIGS, "/latest_producer_id_block")
"""Beginnings of znodes that stay for good: settings, and which ids producers have got."""
UNFINISHED: Final = (
    REASSIGNMENT_REQUESTS, REASSIGNMENTS, DELETED_TOPICS, REASSIGNMENT_TASKS, FAILED_BROKERS
)  # fmt: skip
"""Where there is nothing any more once everything has ended."""
FIND_S: Final = 0.5
"""How long it may take to look who leads."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Quiescence:
    """A cluster that is to come to rest, as an administrator sees it."""

    client: KazooClient
    topics: Sequence[str]
    """Those that stay; the first one keeps its partitions."""
    keys: Sequence[PartitionKey]
    """The partitions of the first topic."""
    brokers: dict[int, Path]
    """By broker: where it keeps its logs."""
    roots: set[str] = field(default_factory=set)
    """The znodes of the cluster before it had a topic, members registered and a controller."""

    def remember_roots(self) -> None:
        """Take what there is now for what there is without topics."""
        self.roots.update(leftovers.list_tree(self.client))

    def get_epoch(self) -> int:
        """Return how many controllers were elected."""
        return decode_controller_epoch(CONTROLLER_EPOCH, self.client.get(CONTROLLER_EPOCH)[0])

    def find_unfinished(self) -> Iterator[Breach]:
        """Yield requests and reassignments that have not ended."""
        if self._get(CONTROLLER) is None:
            yield Breach("reassignments-end", f"there is no {CONTROLLER}")
        for root in UNFINISHED:
            for child in leftovers.list_children(self.client, root):
                yield Breach("reassignments-end", f"{root}/{child} has not ended")

    def find_out_of_sync(self) -> Iterator[Breach]:
        """Yield partitions whose replicas are not all in sync."""
        for (topic, number), replicas in self.read_assigned().items():
            path, name = state_path(topic, number), f"{topic}-{number}"
            found = self._get(path)
            if found is None:
                yield Breach("in-sync-again", f"{name} has no state")
                continue
            state = decode_state(path, found[0])
            if set(state.isr) != set(replicas) or state.leader not in state.isr:
                yield Breach(
                    "in-sync-again",
                    f"{name} is assigned to {list(replicas)}, in sync are {list(state.isr)} under "
                    f"leader {state.leader}",
                )

    def find_leader(self, behind: str) -> str | None:
        """Return who leads a partition in which a broker is out of sync, if ZooKeeper says so.

        One where it is assigned before all others that are in sync, so that they have to be
        preferred for no other reason than that.
        """
        lagging = int(behind.rpartition("-")[2])
        path, states = topic_path(self.topics[0]), [state_path(*key) for key in self.keys]
        try:
            # No longer: whoever asks has to bring servers back that were killed.
            found = gather([self.client.get_async(one) for one in (path, *states)], FIND_S)
        except Indefinite as indefinite:
            log.info("who leads is not known just now: %s", indefinite)
            return None
        assigned = decode_topic(path, found[0][0])
        for key, content in zip(self.keys, found[1:], strict=True):
            state, replicas = decode_state(state_path(*key), content[0]), assigned[key[1]]
            if state.leader == NO_LEADER:
                continue
            others = [one for one in replicas if one != state.leader]
            if lagging not in state.isr and others[0] == lagging and len(state.isr) > 1:
                return f"broker-{state.leader}"
        return None

    def find_left(self) -> Iterator[Breach]:
        """Yield znodes and files that nobody needs any more."""
        assigned = self.read_assigned()
        expected = self.roots | leftovers.expect_znodes(assigned)
        found = {one for one in leftovers.list_tree(self.client) if not one.startswith(STAY)}
        yield from leftovers.check_znodes(found, {one for one in expected if CONFIGS not in one})
        yield from leftovers.check_files(self.brokers, assigned)

    def _get(self, path: str) -> Any:
        try:
            return self.client.get(path)
        except NoNodeError:
            return None

    def read_assigned(self) -> dict[PartitionKey, ReplicaList]:
        """Return the replicas of every partition that stays."""
        found: dict[PartitionKey, ReplicaList] = {}
        for topic in self.topics:
            path = topic_path(topic)
            for number, replicas in decode_topic(path, self.client.get(path)[0]).items():
                found[topic, number] = replicas
        return found


def find_misplaced(
    assigned: Mapping[PartitionKey, ReplicaList], wanted: Wanted, healed: Wanted
) -> Iterator[Breach]:
    """Yield partitions that are not where they were asked to be last, or put by healing."""
    for key, targets in wanted.items():
        if assigned[key] not in targets | healed.get(key, set()):
            asked = " or ".join(str(list(target)) for target in sorted(targets))
            yield Breach(
                "reassignments-end",
                f"{key[0]}-{key[1]} is on {list(assigned[key])}, asked for was {asked}",
            )
