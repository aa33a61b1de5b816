"""What the active controller remembers.

The context is a copy of ZooKeeper with the version of every znode copied, so that every write can
be conditional on what was decided from. It is changed in two ways only: by reading ZooKeeper, and
by `apply_step` after a step has been carried out. Planning uses the same `apply_step` on a fork,
so that a plan of many writes is made of the values and versions each write will find.
"""

from collections import ChainMap, Counter
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass, field, replace

from reassure_controller.effects import (
    LOGS_DELETED,
    CreatePartitionState,
    CreateReassignment,
    CreateTask,
    DeleteReassignment,
    DeleteRecord,
    DeleteRequest,
    EndDeletion,
    EndPreferred,
    EnterPhase,
    OpenRequest,
    Order,
    PartitionEffect,
    Phase,
    RecordFailure,
    RememberMove,
    RemoveSettings,
    RemoveTask,
    RemoveTopic,
    RequestRead,
    SendLeaderAndIsr,
    SendStopReplica,
    StartTask,
    Step,
    TranslateEntries,
    UpdateReassignment,
    WriteAssigned,
    WriteOldZnode,
    WriteState,
)
from reassure_controller.states import States
from reassure_spec.znodes import (
    Endpoint,
    LegacyEntry,
    PartitionKey,
    ReassignmentZnode,
    ReplicaList,
    StateZnode,
    TaskZnode,
    TopicContent,
    partition_path,
    topic_path,
)


@dataclass(frozen=True, slots=True)
class LiveBroker:
    """A registered broker."""

    id: int
    epoch: int
    """The czxid of its registration: a larger one means that the broker was away in between."""
    host: str
    port: int
    endpoints: tuple[Endpoint, ...] = ()
    """All places where it listens."""


@dataclass(frozen=True, slots=True)
class PartitionContext:
    """What is remembered of one partition."""

    assigned: ReplicaList
    state: StateZnode | None = None
    """None while the partition has never been online."""
    state_version: int = -1
    child: ReassignmentZnode | None = None
    """The reassignment in flight."""
    child_version: int = -1
    """Version of its znode, -1 where it has none."""
    phase: Phase | None = None
    """How far the reassignment in flight has come; None when there is nothing to carry on."""
    unstarted: frozenset[int] = frozenset()
    """The replicas that were assigned in this term while their brokers lived, or that these were
    told to delete, and of which they were told nothing since."""

    @property
    def hosts(self) -> ReplicaList:
        """The replicas that have been started: those assigned, and those of a target that waits."""
        if self.child is None or self.phase is not Phase.WAIT:
            return self.assigned
        return tuple(dict.fromkeys((*self.assigned, *self.child.target)))


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """What holds for a topic by its settings, by those of all brokers, or by Kafka's default."""

    min_insync: int = 1
    """`min.insync.replicas`."""
    unclean: bool = False
    """`unclean.leader.election.enable`."""


@dataclass(frozen=True, slots=True)
class OldZnode:
    """The old znode as it was read, and what was made of it in this term."""

    entries: tuple[LegacyEntry, ...]
    version: int
    created: int
    """The czxid: a larger one means that it was deleted and made again in between."""
    bad: str = ""
    """Why the content is not of the format, "" where it is; then there are no entries."""
    translated: frozenset[tuple[PartitionKey, ReplicaList]] | None = None
    """The entries, as (partition, target), that requests were made of; None before the first."""

    def holding(self, entries: tuple[LegacyEntry, ...], version: int) -> "OldZnode":
        """Return it with other entries; what has left it counts as never translated."""
        there = {(entry.key, entry.target) for entry in entries}
        translated = None if self.translated is None else self.translated & there
        return replace(self, entries=entries, version=version, bad="", translated=translated)


@dataclass(frozen=True, slots=True)
class Deletion:
    """A topic that a client asks to be deleted, and how far that has come in this term."""

    has_settings: bool = False
    """Whether the topic has settings, as they were read last."""
    answered: frozenset[tuple[int, int]] = frozenset()
    """Partition and replica of the logs that are deleted."""
    told: frozenset[tuple[int, int, int]] = frozenset()
    """Partition, broker and broker epoch of those told since, whether they answered or not."""
    told_ms: int = 0
    """When that was, by the controller's clock."""


@dataclass(frozen=True, slots=True)
class Preferred:
    """What a client wrote to ask for preferred leaders."""

    partitions: frozenset[PartitionKey]
    version: int
    bad: str = ""
    """Why the content is not of the format, "" where it is; then nothing is asked for."""


@dataclass(slots=True)
class Context:
    """What the controller remembers of the cluster."""

    epoch: int = 0
    """The controller epoch written at the election."""
    epoch_version: int = -1
    """Version of the epoch znode after the election: the fence of every write."""
    session: int | None = None
    """The session that was elected."""
    brokers: dict[int, LiveBroker] = field(default_factory=dict)
    """The live brokers by id."""
    known_brokers: set[int] = field(default_factory=set)
    """Brokers that are or ever were registered."""
    topic_versions: MutableMapping[str, int] = field(default_factory=dict)
    topic_contents: MutableMapping[str, TopicContent] = field(default_factory=dict)
    """The znodes of the topics as they stand: a write keeps what it does not change."""
    partitions: MutableMapping[PartitionKey, PartitionContext] = field(default_factory=dict)
    """Changed by `put` and `drop` only, which keep the three indexes that follow."""
    numbers: dict[str, set[int]] = field(default_factory=dict)
    """The partition numbers of each topic."""
    renewed: set[PartitionKey] = field(default_factory=set)
    """Partitions that changed, or went, since this was emptied last."""
    flying: set[PartitionKey] = field(default_factory=set)
    """Partitions whose reassignment is to be carried on."""
    children: Counter[str] = field(default_factory=Counter)
    """How many partitions of each topic have a reassignment in flight."""
    settings: dict[str, TopicSettings] = field(default_factory=dict)
    """The topics whose settings were read and stand."""
    echoes: Counter[str] = field(default_factory=Counter)
    """By path, how many events of our own writes below the topics have yet to be counted off."""
    parents: set[str] = field(default_factory=set)
    """Topics that have a znode under /admin/reassignments."""
    crowded: set[str] = field(default_factory=set)
    """Topics whose znode there has children that are not ours, so that it cannot be deleted."""
    directories: set[str] = field(default_factory=set)
    """Paths above partition states that exist."""
    requests: list[str] = field(default_factory=list)
    """Names of the znodes under /admin/reassignment_requests, in the order to carry them out."""
    unreached: set[Order] = field(default_factory=set)
    """What was not answered, or refused where it was to stop: it has to be given once more. Who is
    down is told to delete a replica when it is back."""
    untold: set[PartitionKey] = field(default_factory=set)
    """Partitions whose state was written without an answer: nobody was told, if it was written."""
    taken: dict[PartitionKey, RequestRead] = field(default_factory=dict)
    """By partition, the request that was recorded last, while that waits to be removed: a plan that
    is made again carries on with it, and takes it for no second request."""
    recording: OpenRequest | None = None
    """The request that is being recorded; None where it may have changed."""
    queue_unread: bool = False
    """Whether a request of our own was put into the queue since it was read."""
    old: OldZnode | None = None
    """The old znode; None where there is none, or where nobody is to look after it."""
    racks: dict[int, str | None] = field(default_factory=dict)
    """By broker, its rack as it registered last."""
    failed: dict[int, int] = field(default_factory=dict)
    """By broker that is missed, since when, in ms by the clock of whoever recorded it."""
    tasks: dict[int, TaskZnode] = field(default_factory=dict)
    """The persisted tasks by number."""
    tasks_unread: bool = False
    """Whether a task of our own was persisted since they were read."""
    deletions: dict[str, Deletion] = field(default_factory=dict)
    """By topic that a client asks to be deleted."""
    unreadable: set[str] = field(default_factory=set)
    """Topics whose znode is not of the format, so that they are left alone."""
    preferred: Preferred | None = None
    """What asks for preferred leaders; None where nothing does."""
    stopping: set[int] = field(default_factory=set)
    """Brokers that have asked to stop and are still registered."""
    states: States = field(default_factory=States)
    """Of replicas and partitions; a plan changes none."""

    def fork(self) -> "Context":
        """Return a copy to plan on: changing it leaves this one alone.

        It has no contents of topics, from which nothing is planned.
        """
        return replace(
            self,
            topic_versions=ChainMap({}, self.topic_versions),
            topic_contents={},
            partitions=ChainMap({}, self.partitions),
            renewed=set(),
            flying=set(self.flying),
            children=self.children.copy(),
            parents=set(self.parents),
            directories=set(self.directories),
            requests=list(self.requests),
            taken=dict(self.taken),
            deletions=dict(self.deletions),
            states=States(),
        )

    def note_taken(self, record: CreateReassignment | UpdateReassignment) -> None:
        """Remember for which request a reassignment was recorded."""
        if record.request is not None:
            self.taken[record.key] = record.request

    def take_echo(self, path: str) -> bool:
        """Return whether an event at a path is one of our own write, and count it off."""
        if path not in self.echoes:
            return False
        self.echoes[path] -= 1
        if not self.echoes[path]:
            del self.echoes[path]
        return True

    def get_settings(self, topic: str) -> TopicSettings:
        """Return a topic's settings, Kafka's defaults where they were not read."""
        return self.settings.get(topic, TopicSettings())

    def find_topic_id(self, topic: str) -> str:
        """Return Kafka's id of a topic as the znode has it, "" where there is none."""
        content = self.topic_contents.get(topic)
        return "" if content is None else str(content.beside.get("topic_id", ""))

    def is_offline(self, key: PartitionKey) -> bool:
        """Whether a partition that was online has nobody left who is alive and in sync."""
        state = self.partitions[key].state
        return state is not None and not any(map(self.is_live, state.isr))

    def is_live(self, broker: int) -> bool:
        """Whether the broker is registered."""
        return broker in self.brokers

    def is_ending(self, topic: str) -> bool:
        """Whether a topic is to be deleted and none of its reassignments is left to end before.

        Nobody looks after such a topic any more but to delete it.
        """
        return topic in self.deletions and not self.find_moving(topic)

    def find_moving(self, topic: str) -> list[PartitionKey]:
        """Return the partitions of a topic that are being reassigned, in order."""
        keys = self.keys_of([topic])
        return [key for key in keys if self.partitions[key].child is not None]

    def note_told(self, effect: SendStopReplica, broker: LiveBroker) -> None:
        """Remember who is told to delete its log for a deletion of the topic.

        Whoever deletes it because a reassignment drops it may be added, and start it, once more.
        """
        deletion = self.deletions.get(effect.topic)
        if deletion is not None and effect.point == LOGS_DELETED:
            told = deletion.told | {(effect.partition, broker.id, broker.epoch)}
            self.deletions[effect.topic] = replace(deletion, told=told)

    def note_deleted(self, effect: SendStopReplica, broker: int) -> None:
        """Remember who has deleted its log for a deletion of the topic."""
        deletion = self.deletions.get(effect.topic)
        if deletion is not None and effect.point == LOGS_DELETED:
            answered = deletion.answered | {(effect.partition, broker)}
            self.deletions[effect.topic] = replace(deletion, answered=answered)

    def take_unreached(self) -> set[Order]:
        """Return the orders to live brokers that are to be given again."""
        left = {order for order in self.unreached if order[1] in self.partitions}
        orders = {order for order in left if self.is_live(order[0])}
        self.unreached = left - orders
        for topic, deletion in self.deletions.items():
            lost = {(key[1], broker) for broker, key in orders if key[0] == topic}
            told = frozenset(one for one in deletion.told if one[:2] not in lost)
            self.deletions[topic] = replace(deletion, told=told)
        return orders

    def put(self, key: PartitionKey, content: PartitionContext) -> None:
        """Remember this of a partition."""
        before = self.partitions.get(key)
        had_child = before is not None and before.child is not None
        self.children[key[0]] += (content.child is not None) - had_child
        self.partitions[key] = content
        self.renewed.add(key)
        self.numbers.setdefault(key[0], set()).add(key[1])
        if content.phase is None:
            self.flying.discard(key)
        else:
            self.flying.add(key)

    def note_begun(self, step: object) -> None:
        """Remember which replicas a write starts, or may have started where nobody answered.

        Who is down may have the replica still that was taken from it meanwhile.
        """
        if not isinstance(step, WriteAssigned | CreatePartitionState):
            return
        content = self.partitions[step.key]
        isr = step.state.isr if isinstance(step, CreatePartitionState) else ()
        added = set(step.assigned if isinstance(step, WriteAssigned) else ()) - {*content.hosts}
        self.note_unstarted(step.key, self.brokers.keys() & {*isr, *added})

    def note_unstarted(self, key: PartitionKey, brokers: set[int]) -> None:
        """Remember that these brokers are to be told of the partition as of one that is new."""
        content = self.partitions.get(key)
        if content is not None:
            self.put(key, replace(content, unstarted=content.unstarted | brokers))

    def forget_unstarted(self, brokers: set[int]) -> None:
        """Remember of nobody that these are to be told of a replica as of one that is new.

        Whoever comes back may have it: it was told by a message of which no answer came, or before
        the replica was taken from it and given again.
        """
        for key, content in list(self.partitions.items()):
            if not content.unstarted.isdisjoint(brokers):
                self.note_started(key, brokers)

    def note_started(self, key: PartitionKey, brokers: Iterable[int]) -> None:
        """Remember that these brokers were told of the partition."""
        content = self.partitions[key]
        self.put(key, replace(content, unstarted=content.unstarted.difference(brokers)))

    def drop(self, key: PartitionKey) -> PartitionContext:
        """Forget a partition and return what was remembered of it."""
        self.flying.discard(key)
        self.renewed.add(key)
        self.taken.pop(key, None)
        self.states.drop(key)
        self.numbers[key[0]].discard(key[1])
        dropped = self.partitions.pop(key)
        self.children[key[0]] -= dropped.child is not None
        if not self.numbers[key[0]]:
            del self.numbers[key[0]], self.children[key[0]]
        return dropped

    def keys_of(self, topics: Iterable[str]) -> list[PartitionKey]:
        """Return the partitions of these topics, in order."""
        return sorted(
            (topic, number) for topic in set(topics) for number in self.numbers.get(topic, ())
        )

    def in_flight(self) -> list[PartitionKey]:
        """Return the partitions whose reassignment is to be carried on, in order."""
        return sorted(self.flying)

    def missing_directories(self, key: PartitionKey) -> tuple[str, ...]:
        """Return the paths above the partition's state that do not exist, topmost first."""
        paths = (f"{topic_path(key[0])}/partitions", partition_path(*key))
        return tuple(path for path in paths if path not in self.directories)

    def note_crowded(self, key: PartitionKey) -> None:
        """Remember to leave the znode above a record, which somebody else's lies below as well."""
        if not self.has_other_children(key):
            self.crowded.add(key[0])

    def has_other_children(self, key: PartitionKey) -> bool:
        """Whether another partition of the topic has a reassignment znode."""
        own = self.partitions[key].child is not None
        return key[0] in self.crowded or self.children[key[0]] > own


def apply_step(context: Context, step: Step, version: int | None = None) -> None:
    """Change the context as the step, once carried out, has changed ZooKeeper.

    `version` is the version that ZooKeeper gave the written znode; None predicts it.
    """
    match step:
        case DeleteRequest(path=path):
            name = path.rpartition("/")[2]
            context.requests = [other for other in context.requests if other != name]
            context.taken = {k: read for k, read in context.taken.items() if read.path != path}
        case SendLeaderAndIsr(to=to):
            context.note_started(step.key, to)
        case SendStopReplica(to=to, delete=delete):
            if delete:
                context.note_unstarted(step.key, context.brokers.keys() & {*to})
        case PartitionEffect() | EnterPhase() | RememberMove():
            _apply_to_partition(context, step, version)
        case TranslateEntries(entries=entries) if context.old is not None:
            done = context.old.translated or frozenset()
            done |= {(entry.key, entry.target) for entry in entries}
            context.old = replace(context.old, translated=done)
            context.queue_unread = True
        case WriteOldZnode(entries=entries) if context.old is not None:
            known = context.old.version + 1 if version is None else version
            stays = bool(entries)
            context.old = context.old.holding(entries, known) if stays else None
        case RecordFailure(broker=broker, since_ms=since_ms):
            context.failed[broker] = since_ms
        case DeleteRecord(broker=broker):
            context.failed.pop(broker, None)
        case CreateTask():
            context.tasks_unread = True
        case StartTask():
            context.queue_unread = True
        case RemoveTask(number=number):
            context.tasks.pop(number, None)
        case RemoveTopic(topic=topic):
            for key in context.keys_of([topic]):
                context.drop(key)
            context.topic_versions.pop(topic, None)
            context.topic_contents.pop(topic, None)
        case RemoveSettings(topic=topic):
            context.deletions[topic] = replace(context.deletions[topic], has_settings=False)
        case EndDeletion(topic=topic):
            context.deletions.pop(topic, None)
        case EndPreferred():
            context.preferred = None
        case _:
            pass  # warnings and foreign znodes are not remembered


def _apply_to_partition(
    context: Context, step: PartitionEffect | EnterPhase | RememberMove, version: int | None
) -> None:
    key = step.key
    context.note_begun(step)
    before = context.partitions[key]
    if isinstance(step, CreateReassignment | UpdateReassignment):
        context.note_taken(step)
    match step:
        case CreateReassignment(reassignment=child):
            context.parents.add(step.topic)
            after = replace(before, child=child, child_version=0, phase=Phase.EXPAND)
        case UpdateReassignment(reassignment=child):
            new = before.child_version + 1
            after = replace(
                before,
                child=child,
                child_version=new if version is None else version,
                phase=Phase.DROP,
            )
        case DeleteReassignment(with_parent=with_parent):
            if with_parent:
                context.parents.discard(step.topic)
            after = replace(before, child=None, child_version=-1, phase=None)
        case WriteAssigned(assigned=assigned):
            known = context.topic_versions[step.topic] + 1
            context.topic_versions[step.topic] = known if version is None else version
            if step.topic in context.topic_contents:
                content = context.topic_contents[step.topic]
                context.topic_contents[step.topic] = content.replace(key[1], assigned)
            after = replace(before, assigned=assigned)
        case WriteState(state=state):
            new = before.state_version + 1 if version is None else version
            after = replace(before, state=state, state_version=new)
        case CreatePartitionState(state=state, missing=missing):
            context.directories.update(missing)
            after = replace(before, state=state, state_version=0)
        case RememberMove(target=None):
            after = replace(before, child=None, child_version=-1, phase=None)
        case RememberMove(target=target) if target is not None:
            child = ReassignmentZnode(len(before.assigned), target, legacy=True)
            after = replace(before, child=child, child_version=-1, phase=Phase.EXPAND)
        case EnterPhase(phase=phase):
            after = replace(before, phase=phase)
        case _:
            raise TypeError(f"it is not said what follows from {step}")
    context.put(key, after)
