"""How a cluster is doing.

Members are looked up in the system, partitions in ZooKeeper, and the ends of logs in the metrics of
the brokers. Whoever does not answer is left out and no reason to fail: looking at a cluster is most
wanted when part of it is down.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, Self
from urllib.error import URLError
from urllib.request import urlopen

from kazoo.handlers.threading import KazooTimeoutError
from prometheus_client.parser import text_string_to_metric_families

from reassure_controller.client import Client
from reassure_controller.session import Indefinite, connect, fetch, list_children, stop
from reassure_lab.cluster.supervisor import ClusterMember, ProcessCluster
from reassure_spec.znodes import (
    BROKER_IDS,
    CONTROLLER,
    CONTROLLER_EPOCH,
    NO_LEADER,
    REASSIGN_PARTITIONS,
    REASSIGNMENT_REQUESTS,
    TOPICS,
    BadZnode,
    PartitionKey,
    ReplicaList,
    broker_path,
    decode_controller,
    decode_controller_epoch,
    decode_reassign_partitions,
    decode_reassignment,
    decode_state,
    decode_topic,
    parse_number,
    reassignment_path,
    state_path,
    topic_path,
)

SCRAPE_S: Final = 1.0
"""How long a broker may take to answer."""
SESSION_S: Final = 4.0

Ends = Mapping[int, tuple[int, int]]
"""By broker: where its log of a partition ends, and its high watermark."""


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member, and what it is in the cluster."""

    member: ClusterMember
    epoch: int | None = None
    """The controller epoch of the elected controller, the broker epoch of a registered broker."""

    @property
    def status(self) -> str:
        """What became of its process."""
        if self.member.stopped:
            return "paused"
        return "alive" if self.member.alive else "dead"


@dataclass(frozen=True, slots=True)
class PartitionView:
    """A partition."""

    topic: str
    partition: int
    assigned: ReplicaList
    leader: int = NO_LEADER
    isr: ReplicaList = ()
    target: ReplicaList | None = None
    """Where it is moved to, None where it stays."""
    ends: Ends = field(default_factory=dict)

    @property
    def is_under_replicated(self) -> bool:
        """Whether fewer replicas are in sync than are assigned."""
        return len(self.isr) < len(self.assigned)

    @property
    def arrived(self) -> ReplicaList:
        """The replicas of the target that are in sync."""
        return tuple(one for one in self.target or () if one in self.isr)

    @property
    def leaving(self) -> ReplicaList:
        """The assigned replicas that are to be dropped."""
        if self.target is None:
            return ()
        return tuple(one for one in self.assigned if one not in self.target)


@dataclass(frozen=True, slots=True)
class Overview:
    """A cluster at a moment."""

    members: tuple[MemberView, ...]
    partitions: tuple[PartitionView, ...] = ()
    requests: int = 0
    """How many wait to be carried out."""
    trouble: str = ""
    """Why ZooKeeper could not be asked, "" where it was."""

    @property
    def under_replicated(self) -> int:
        """How many partitions are."""
        return sum(one.is_under_replicated for one in self.partitions)

    @property
    def moving(self) -> int:
        """How many partitions are reassigned."""
        return sum(one.target is not None for one in self.partitions)


class Watcher:
    """Looks at a cluster again and again. A context manager."""

    def __init__(self, cluster: ProcessCluster) -> None:
        self.cluster = cluster
        self._client: Client | None = None
        self._pool = ThreadPoolExecutor(max_workers=8, thread_name_prefix="scrape")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()
        if self._client is not None:
            stop(self._client)

    def look(self) -> Overview:
        """Return how the cluster is doing. Raises NoCluster, BadState."""
        members = self.cluster.members()
        try:
            if self._client is None:
                self._client = connect(self.cluster.zookeeper, timeout_s=SESSION_S)
            return self._read(self._client, members)
        except (Indefinite, KazooTimeoutError, BadZnode) as trouble:
            text = str(trouble) or type(trouble).__name__
            return Overview(tuple(map(MemberView, members)), trouble=text)

    def _read(self, client: Client, members: Iterable[ClusterMember]) -> Overview:
        epochs = _read_epochs(client)
        ends = self._scrape(members)
        targets = _read_targets(client)
        partitions = tuple(_read_partitions(client, targets, ends))
        requests = list_children(client, [REASSIGNMENT_REQUESTS])[0]
        views = tuple(MemberView(one, epochs.get((one.role, one.number))) for one in members)
        return Overview(views, partitions, len(requests or ()))

    def _scrape(self, members: Iterable[ClusterMember]) -> dict[PartitionKey, Ends]:
        """Return the ends of logs by partition, of the brokers that answer."""
        asked = [one for one in members if one.role == "broker" and one.alive and not one.stopped]
        found: dict[PartitionKey, dict[int, tuple[int, int]]] = {}
        for member, told in zip(asked, self._pool.map(scrape_ends, asked), strict=True):
            for key, ends in told.items():
                found.setdefault(key, {})[member.number] = ends
        return dict(found)


def scrape_ends(member: ClusterMember) -> dict[PartitionKey, tuple[int, int]]:
    """Return where a broker's logs end, and their high watermarks; nothing if it is silent."""
    assert member.metrics is not None
    host, port = member.metrics
    try:
        with urlopen(f"http://{host}:{port}/metrics", timeout=SCRAPE_S) as answer:
            text = answer.read().decode()
    except (URLError, OSError):
        return {}
    values: dict[str, dict[PartitionKey, int]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if {"topic", "partition"} == sample.labels.keys():
                key = (sample.labels["topic"], int(sample.labels["partition"]))
                values.setdefault(sample.name, {})[key] = int(sample.value)
    ends = values.get("reassure_broker_log_end_offset", {})
    marks = values.get("reassure_broker_high_watermark", {})
    return {key: (end, marks[key]) for key, end in ends.items()}


def _read_epochs(client: Client) -> dict[tuple[str, int], int]:
    """Return the epochs of whoever is elected, and of who is registered, by role and id."""
    controller, epoch = fetch(client, [CONTROLLER, CONTROLLER_EPOCH])
    found: dict[tuple[str, int], int] = {}
    if controller is not None and epoch is not None:
        elected = decode_controller(CONTROLLER, controller[0])
        found["controller", elected] = decode_controller_epoch(CONTROLLER_EPOCH, epoch[0])
    names = list_children(client, [BROKER_IDS])[0] or ()
    ids = [number for name in names if (number := parse_number(name)) is not None]
    for number, content in zip(ids, fetch(client, map(broker_path, ids)), strict=True):
        if content is not None:
            found["broker", number] = content[1].czxid
    return found


def _read_targets(client: Client) -> dict[PartitionKey, ReplicaList]:
    """Return where the old znode moves partitions; a reassignment of its own says so itself."""
    [content] = fetch(client, [REASSIGN_PARTITIONS])
    if content is None:
        return {}
    entries = decode_reassign_partitions(REASSIGN_PARTITIONS, content[0])
    return {entry.key: entry.target for entry in entries}


def _read_partitions(
    client: Client,
    targets: Mapping[PartitionKey, ReplicaList],
    ends: Mapping[PartitionKey, Ends],
) -> Iterable[PartitionView]:
    names = sorted(list_children(client, [TOPICS])[0] or ())
    assigned = {
        (name, number): replicas
        for name, content in zip(names, fetch(client, map(topic_path, names)), strict=True)
        if content is not None
        for number, replicas in sorted(decode_topic(topic_path(name), content[0]).items())
    }
    states = fetch(client, [state_path(*key) for key in assigned])
    children = fetch(client, [reassignment_path(*key) for key in assigned])
    for key, state, child in zip(assigned, states, children, strict=True):
        target = targets.get(key)
        if child is not None:
            target = decode_reassignment(reassignment_path(*key), child[0]).target
        view = PartitionView(*key, assigned[key], target=target, ends=ends.get(key, {}))
        if state is not None:
            stored = decode_state(state_path(*key), state[0])
            view = PartitionView(
                *key, assigned[key], stored.leader, stored.isr, target, ends.get(key, {})
            )
        yield view
