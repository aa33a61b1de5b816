"""From transactions to observations: what each write means, and to which partition.

The `Router` reads transactions in zxid order and keeps the little that concerns a cluster as a
whole: who is registered, who is controller, which requests are pending. Everything else it hands on
as an `Observation` addressed to one partition (or to the cluster), together with a snapshot of the
environment at that moment, so that partitions can be judged apart from each other.

Several clusters may share one log. The chroot of each is found from the paths themselves, and a
path alone proves nothing: a consumer group, a topic or a user may be called `controller`. A chroot
is taken for a cluster's once there is a sign of brokers or topics under it, and never inside the
trees of a cluster that is known. What was seen before the sign is kept back until then.

Each observation says who wrote (`reassure_judge.authors`) and what whoever wrote may not have
noticed yet (`reassure_judge.doubt`).
"""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar, cast

from reassure_judge.authors import Author, Authority, Terms, Verdicts, judge_authority, make_author
from reassure_judge.doubt import GRACE_MS, Change, Changes, Doubt, Setting
from reassure_judge.trees import name_tree
from reassure_model.lives import (
    find_broken_deletion_end,
    find_broken_settings_removal,
    find_broken_state_removal,
    find_broken_topic,
)
from reassure_model.outcome import Rejected
from reassure_model.partition import Environment, LeaderAndIsr, from_znode
from reassure_spec import znodes
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import BadZnode, PartitionKey, ReplicaList

CREATE: Final = 1
DELETE: Final = 2
SET_DATA: Final = 5
CHECK: Final = 13
CLOSE_SESSION: Final = -11

_KINDS: Final = (
    r"(?P<controller>/controller)",
    r"(?P<epoch>/controller_epoch)",
    r"/brokers/(?P<root>ids|topics)",
    r"/brokers/ids/(?P<broker>[^/]+)",
    r"/brokers/topics/(?P<topic>[^/]+)(?:/partitions/(?P<partition>[^/]+)/state)?",
    r"/config/topics/(?P<topic_config>[^/]+)",
    r"(?P<default_config>/config/brokers/<default>)",
    r"/config/brokers/(?P<broker_config>[^/]+)",
    r"(?P<parents>/config/topics|/config/brokers)",
    r"(?P<preferred>/admin/preferred_replica_election)",
    r"/admin/delete_topics/(?P<deletion>[^/]+)",
)
"""How each kind of path that every protocol knows is written, below the chroot: the kind is the
name of the first group."""
_NUMBERED: Final = {"broker": 0, "broker_config": 0, "state": 1}
"""Kinds of path of which one part is a number, and which one; other names are no such znodes."""
_ELSEWHERE: Final = "elsewhere"
"""What is put before the kind of a path that is about a topic which is judged elsewhere."""
SIGNS: Final = frozenset({"root", "broker", "topic", "state"})
"""Kinds of path that show that a cluster is there."""
_SIGNS: Final = SIGNS | {f"{_ELSEWHERE} {kind}" for kind in SIGNS}
OWN_TREES: Final = frozenset({"brokers", "config", "admin", "consumers"})
"""Trees of a cluster in which names are chosen by its users."""
_KEPT_BACK: Final = 1000
"""How many observations are kept back of a chroot that may be a cluster's."""
_EPOCH: Final = znodes.CONTROLLER_EPOCH
_TOUCHES: Final = (SET_DATA, CREATE, DELETE)
"""What is done to the znode that an operation names."""
_CACHE_LIMIT: Final = 200_000
_NONE: Final[frozenset[str]] = frozenset()
_make: Final = tuple.__new__
"""Makes a named tuple of all its fields, several times faster than its own name does."""


class TransactionLike(Protocol):
    """What the router reads of a transaction (see `reassure_zookeeper.transactions`)."""

    @property
    def session_id(self) -> int:
        """The session that wrote."""

    @property
    def zxid(self) -> int:
        """Place in the total order."""

    @property
    def time_ms(self) -> int:
        """The server's clock in milliseconds."""

    @property
    def ops(self) -> tuple[object, ...]:
        """The operations, in order."""

    @property
    def error(self) -> int | None:
        """None for what took effect."""


class AssignedWritten(NamedTuple):
    """The topic znode holds these replicas for the partition; None: it holds the partition not."""

    assigned: ReplicaList | None


class StateWritten(NamedTuple):
    """Leader and in-sync replicas were written, or deleted (None)."""

    state: LeaderAndIsr | None
    writer: int
    """The broker whose session wrote, -1 for another session."""


class Unreadable(NamedTuple):
    """A znode of this partition was written with content of another format."""

    reason: str


class ElectionSeen(NamedTuple):
    """`/controller` was created (for this broker), or the epoch changed, or both at once."""

    broker: int | None
    epoch: int
    ephemeral: bool = True
    """Whether `/controller` goes with the session that created it."""


class ControllerGone(NamedTuple):
    """`/controller` was deleted, or went with its session."""


class BrokerRegistered(NamedTuple):
    """The registration of a broker was created."""

    ephemeral: bool
    """Whether it goes with the session that created it."""


class BadRequestSeen(NamedTuple):
    """Something in the request queue, or among the records, is none of ours (see the clause)."""

    clause: str
    reason: str


class BadRequestRemoved(NamedTuple):
    """What a `BadRequestSeen` with this path named is gone."""


class BadMended(NamedTuple):
    """Nothing is wrong any more with what a `BadRequestSeen` with this path named.

    The znode above a topic's records has one again, or a request has other content.
    """


class BrokerGone(NamedTuple):
    """The registration of a broker ended that was assigned, and not in sync by a controller's word.

    Told only to partitions whose state a controller wrote so while the broker was registered.
    """

    broker: int
    orderly: bool = True
    """Whether it had been taken out of every in-sync set that has somebody else alive."""


class Handled(NamedTuple):
    """The acting controller answered an event that is younger than all that was written here.

    It handles one event at a time, in order, so that it has nothing left to do of earlier ones.
    """

    since: Change
    """The last transaction that this partition has to do with."""


class Forbidden(NamedTuple):
    """Something was taken away that has to stay; it is judged on as if it were still there."""

    clause: str
    reason: str


Event = object
"""What happened; each protocol has events of its own beside those here."""


class Observation(NamedTuple):
    """One write, addressed to one partition, or to the cluster (topic "", partition -1)."""

    chroot: str
    topic: str
    partition: int
    zxid: int
    time_ms: int
    step: int
    """Order among the observations of one transaction."""
    session: int
    path: str
    event: Event
    around: Environment
    doubt: Doubt
    """What whoever wrote may have seen otherwise than `around` says."""
    author: Author
    given: bool
    """Whether this was found in a snapshot rather than seen happening: it is not judged."""


class ClusterHistory:
    """What the router remembers of one cluster."""

    def __init__(
        self, chroot: str, authority: Authority, *, whole: bool, known_since: int | None
    ) -> None:
        self.chroot = chroot
        self.authority = authority
        self.itself = frozenset({chroot})
        self.known_since = known_since
        """The first transaction before which everything is known: 0 where the history begins at the
        beginning or from a snapshot, else the birth of the cluster; None where neither was seen."""
        self.live: frozenset[int] = frozenset()
        self.registered: frozenset[int] = frozenset()
        """Brokers that are or were registered, or that a snapshot's assignments name."""
        self.configured: frozenset[int] = frozenset()
        self.controller: int | None = None
        self.terms = Terms(whole=whole)
        self.epoch = 0
        self.brokers_of_session: dict[int, set[int]] = {}
        self.min_isr: dict[str, int] = {}
        """By topic, where its own settings say."""
        self.min_isr_default = 1
        self.unclean: dict[str, bool] = {}
        """By topic, where its own settings say."""
        self.unclean_default = False
        self.settings: set[str] = set()
        """Topics that have settings."""
        self.extras: dict[str, dict[str, Any]] = {}
        """By topic: what its znode holds beside assignments."""
        self.decided: dict[PartitionKey, frozenset[int]] = {}
        """By partition: the assigned brokers that a controller left out of the in-sync set though
        they were there, and are still."""
        self.asked: frozenset[PartitionKey] = frozenset()
        """Partitions of which a client asks for the preferred leader."""
        self.deleting: set[str] = set()
        """Topics that a client asks to be deleted."""
        self.begun: set[str] = set()
        """Those of them of which the znode is gone."""
        self.roots: set[str] = set()
        """Parents that are there."""
        self.earlier = 0
        """The last transaction in which it spoke as it did before the profile's version."""
        self.topics: dict[str, dict[int, ReplicaList]] = {}
        self.requests: dict[int, tuple[PartitionKey, ...]] = {}
        """Pending requests, and the partitions that each names."""
        self.changes = Changes()
        self.before_sign = 0
        """Writes before there was a sign of brokers or topics."""
        self.shown = False
        """Whether there was a sign of brokers or topics, so that this is a cluster at all."""
        self.had_topics = False
        self.kept_back: deque[Observation] = deque(maxlen=_KEPT_BACK)
        """What was seen before that sign."""
        self._around: dict[int, Environment] = {}
        self.everywhere: Environment | None = None
        """The surroundings of whatever partition, None where these differ or were not asked for.

        Whoever changes what they consist of sets it to None."""
        self.authors: dict[tuple[int, bool], Author] = {}
        """By session, and whether it fences: who it was found to be since somebody changed."""

    @property
    def known(self) -> frozenset[int]:
        """Brokers that exist, alive or not."""
        return self.registered | self.configured

    def is_met(self) -> bool:
        """Whether there was something of it: what is made then is not its beginning."""
        return bool(self.had_topics or self.registered or self.epoch)

    def get_author(self, session: int, *, fenced: bool) -> Author:
        """Return who a session is now."""
        known = self.authors.get((session, fenced))
        if known is not None:
            return known
        brokers = frozenset(self.brokers_of_session.get(session, ()))
        office = self.terms.find_office(session)
        author = make_author(session, brokers, office, self.authority, fenced=fenced)
        self.authors[session, fenced] = author
        return author

    def forget_authors(self) -> None:
        """Note that somebody is not what he was."""
        self.authors.clear()

    def get_surroundings(self, topic: str, partition: int = -1) -> Environment:
        """Return what the rules may read of the cluster now."""
        minimum = self.min_isr.get(topic, self.min_isr_default)
        around = self._around.get(minimum)
        if around is None:
            around = Environment(self.live, self.known, minimum, self.epoch)
            self._around[minimum] = around
        if not (self.asked or self.deleting or self.unclean or self.unclean_default):
            self.everywhere = None if self.min_isr else around
            return around
        return replace(
            around,
            preferred_asked=(topic, partition) in self.asked,
            unclean_allowed=self.unclean.get(topic, self.unclean_default),
            deleting=topic in self.deleting,
        )

    def find_untouched(self) -> frozenset[str]:
        """Return what waits for the controller and that it gave no sign to have looked at."""
        return frozenset()

    def speaks_requests(self) -> bool:
        """Whether there is a sign of KIP-236: its parents, a request or a record."""
        return False

    def forget_surroundings(self) -> None:
        """Note that the environment has changed."""
        self._around.clear()
        self.everywhere = None


History = TypeVar("History", bound=ClusterHistory)
Handler = Callable[[History, str, bytes | None, str, str], None]
"""Takes the cluster, the path below its chroot, the content (None: it is gone), and the parts of
the path that matter."""

_Place = tuple[Handler[History], History, str, str, str, str]
"""A handler, all that it takes but the content, and the topic that the path concerns alone."""


def _pass_over(cluster: Any, path: str, data: bytes | None, first: str, second: str) -> None:
    """Leave what is written about a topic to whoever judges that."""


class Router(Generic[History]):
    """Turns transactions into observations, in order.

    `whole` says whether the history begins with the first transaction that a server ever wrote, so
    that whatever is not seen in it never was. A cluster whose birth is seen is whole in any case.

    `min_insync_replicas` counts where neither a topic nor the default of all brokers says: the
    brokers' own files are not in ZooKeeper.

    A protocol that has znodes of its own derives from this: it adds how they are written, and what
    handles them.

    Between two transactions all its state is in `clusters` (a `ClusterHistory` each, which grows
    with topics and partitions), in `unjudged`, and in what a protocol keeps besides. Where paths
    lead (`_places`, `elsewhere`) is remembered only to be found faster, and is not pickled.
    """

    history: ClassVar[type[ClusterHistory]]
    """What is remembered of a cluster."""
    kinds: ClassVar[tuple[str, ...]] = ()
    """How the protocol's own kinds of path are written (see `_KINDS`)."""
    lets_in_again: ClassVar[bool] = False
    """Whether a leader may let a broker in again that a controller took out because it stops."""
    apart: ClassVar[frozenset[str]] = frozenset()
    """Kinds of path that name a topic, and that concern nothing but the partitions of it."""
    _path: ClassVar[re.Pattern[str]]
    _groups: ClassVar[dict[str, tuple[str, ...]]]
    """By the last group of `_path` that a path fills: all that it fills, the chroot aside."""

    def __init_subclass__(cls) -> None:
        """Put together the pattern of all paths that matter."""
        super().__init_subclass__()
        cls._path = _compile(cls.kinds)
        cls._groups = _list_groups(cls.kinds)

    def __init__(
        self,
        readings: Readings,
        grace_ms: int = GRACE_MS,
        *,
        whole: bool = True,
        min_insync_replicas: int = 1,
    ) -> None:
        self.readings = readings
        self.grace_ms = grace_ms
        self.min_insync_replicas = min_insync_replicas
        self.whole = whole
        self._known_since = 0 if whole else None
        self.owns: Callable[[str, str], bool] | None = None
        """Which topics (chroot, topic) are judged here, and whether clusters as a whole are (""):
        nothing is told of others. None for all."""
        self.clusters: dict[str, History] = {}
        self.unjudged: Counter[str] = Counter()
        """How often each tree was written that no rule is about (`reassure_judge.trees`)."""
        self._places: dict[str, _Place[History]] = {}
        """What takes what is written to a path of a cluster that is known."""
        self.elsewhere: set[bytes] = set()
        """Those of these paths, as they stand in a record, of which nothing written matters here:
        others judge their topics."""
        self._fence: tuple[object, frozenset[str]] = (None, _NONE)
        """The check that was seen last, and what it fences for as long as the epochs stay."""
        self._handlers: dict[str, Handler[History]] = {
            "root": self._on_root,
            "controller": self._on_controller,
            "epoch": self._on_epoch,
            "broker": self._on_broker,
            "broker_config": self._on_broker_config,
            "topic_config": self._on_topic_config,
            "topic": self._on_topic,
            "state": self._on_state,
            "parents": self._on_root,
            "preferred": self._on_preferred,
            "deletion": self._on_deletion,
            "default_config": self._on_default_config,
        }
        self._about = ""
        """The topic that the write at hand concerns alone."""
        self._elections: dict[str, tuple[int | None, bool]] = {}
        """By chroot: whom this transaction elected, and whether it raised the epoch."""
        self._unfinished = False
        """Whether this transaction wrote what is to be looked at once all of it is known."""
        self._now = (0, 0, 0)
        self._op: Any = None
        self._state: LeaderAndIsr | None = None
        """What the state znode that was written last holds, None where it is gone or unreadable."""
        self._recovering: bool | None = None
        """Whether it marks the leader as elected without being in sync; None: it does not say."""
        self._fenced: frozenset[str] = frozenset()
        self._given = False
        self._out: list[Observation] = []

    def __getstate__(self) -> dict[str, Any]:
        """Return what is put aside between two transactions: no answers that are found again.

        Which topics are judged here (`owns`) is said anew by whoever takes it up.
        """
        return self.__dict__ | {
            "_places": {},
            "elsewhere": set(),
            "_fence": (None, _NONE),
            "owns": None,
        }

    def feed(self, transaction: TransactionLike) -> list[Observation]:
        """Return the observations of one transaction; none where it was refused."""
        if transaction.error is not None:
            return []
        self._now = (transaction.zxid, transaction.time_ms, transaction.session_id)
        ops: tuple[Any, ...] = transaction.ops
        if not ops:
            return []
        if len(ops) == 1:
            self._fenced = _NONE
        elif len(ops) == 2 and ops[0] is self._fence[0] and ops[1].kind != CHECK:
            self._fenced = self._fence[1]
        else:
            self._fenced = self._find_fences(ops)
        # Spelled out rather than by `written_paths` and `_on_write`: this is done for every one.
        find = self._places.get
        for op in ops:
            kind = op.kind
            if kind in _TOUCHES:
                path = op.path
                place = find(path) or self._find_place(path)
                if place is not None:
                    self._op = op
                    handler, cluster, below, first, second, self._about = place
                    handler(cluster, below, None if kind == DELETE else op.data, first, second)
            elif kind == CLOSE_SESSION:
                self._on_close(transaction.session_id, op.paths)
        if self._unfinished:
            self._finish()
        out, self._out = self._out, []
        return out

    def load(self, nodes: Iterable[tuple[str, bytes, int]]) -> list[Observation]:
        """Take (path, data, ephemeral owner) of a snapshot as given; return the observations."""
        self._given = True
        self._known_since = 0
        self._fenced = frozenset()
        for path, data, owner in sorted(nodes, key=_load_order):
            self._now = (0, 0, owner)
            self._on_write(path, data)
        self._finish()
        self._given = False
        out, self._out = self._out, []
        return out

    def settle(self, chroot: str) -> None:
        """Note that the cluster rests: whatever happened so far has been noticed."""
        self.get_cluster(chroot).changes.settle(self._now[0])

    def get_cluster(self, chroot: str) -> History:
        """Return what is remembered of the cluster with this chroot."""
        cluster = self.clusters.get(chroot)
        if cluster is None:
            self._fence = (None, _NONE)
            made = self.history(
                chroot, self.judge_authority, whole=self.whole, known_since=self._known_since
            )
            cluster = cast("History", made)
            self.clusters[chroot] = cluster
            cluster.min_isr_default = self.min_insync_replicas
        return cluster

    def forget(self, chroot: str) -> None:
        """Drop what is remembered of the cluster with this chroot."""
        self.clusters.pop(chroot, None)
        self._forget_places()
        self._fence = (None, _NONE)

    def _forget_places(self) -> None:
        self._places.clear()
        self.elsewhere.clear()

    def is_known(self, chroot: str, zxid: int) -> bool:
        """Whether everything that led to this transaction is known, as far as it was recorded.

        In the middle of a history it is not: what was asked, or written, before is missing.
        """
        cluster = self.clusters.get(chroot)
        since = self._known_since if cluster is None else cluster.known_since
        return since is not None and zxid >= since

    def shown(self) -> frozenset[str]:
        """Return the chroots under which there are signs of a cluster."""
        return frozenset(c.chroot for c in self.clusters.values() if c.shown)

    def count_unjudged(self) -> Counter[str]:
        """Return how often each tree was written that was not judged."""
        counts = self.unjudged.copy()
        for cluster in self.clusters.values():
            if not cluster.shown and cluster.before_sign:
                counts[name_tree(cluster.chroot + znodes.CONTROLLER)] += cluster.before_sign
        return counts

    def _finish(self) -> None:
        """Look at what a transaction comes to as a whole, once all that it wrote is known."""
        self._unfinished = False
        self._about = ""
        if self._elections:
            zxid, _, session = self._now
            for chroot, (broker, raised) in self._elections.items():
                cluster = self.get_cluster(chroot)
                if raised:
                    cluster.terms.win(session, zxid)
                    cluster.changes.forget()
                    cluster.forget_authors()
                path = znodes.CONTROLLER if broker is not None else znodes.CONTROLLER_EPOCH
                event = ElectionSeen(broker, cluster.epoch, cluster.terms.ephemeral)
                self._emit(cluster, "", -1, path, event)
            self._elections.clear()
        self._end_transaction()

    def _end_transaction(self) -> None:
        """Look at what a transaction leaves, beside its writes one by one.

        Asked for only after a write that set `_unfinished`.
        """

    def judge_authority(self, office: str, *, fenced: bool) -> Verdicts:
        """Return what a controller's write comes to by who made it (`reassure_judge.authors`)."""
        return judge_authority(office, fenced=fenced)

    def _find_fences(self, ops: tuple[object, ...]) -> frozenset[str]:
        fences = _NONE
        op: Any
        for op in ops:
            if op.kind == CHECK:
                if op is not self._fence[0]:
                    self._fence = (op, self._find_fence(op.path, op.version))
                found = self._fence[1]
                fences = fences | found if fences else found
        return fences

    def _find_fence(self, path: str, version: int) -> frozenset[str]:
        """Return the chroot that a check fences, if it does."""
        if not path.endswith(_EPOCH):
            return _NONE
        chroot = path[: -len(_EPOCH)]
        cluster = self.clusters.get(chroot)
        if cluster is None:
            return frozenset({chroot})
        return cluster.itself if cluster.terms.is_fence(version) else _NONE

    def _split(self, path: str) -> tuple[str, str, str, str]:
        """Return (kind, chroot, first part, second part) of a path that matters.

        Of another path the kind is "", and the first part is the tree that it belongs to.
        """
        match = self._path.fullmatch(path)
        if match is None or match.lastgroup is None:
            return ("", "", name_tree(path), "")
        names = self._groups[match.lastgroup]
        chroot, *parts = match.group("chroot", *names)
        kind = "state" if match.lastgroup == "partition" else names[0]
        if kind in _NUMBERED and znodes.parse_number(parts[_NUMBERED[kind]]) is None:
            return ("", "", name_tree(path), "")
        parts.append("")
        if kind in self.apart and self.owns is not None and not self.owns(chroot, parts[0]):
            kind = f"{_ELSEWHERE} {kind}"
        return (kind, chroot, parts[0], parts[1])

    def locate(self, path: str) -> tuple[str, str, str]:
        """Return (kind, chroot, topic) of a path: the topic where that is all it concerns, else "".

        Of a path that no rule is about the kind is "", and the last part is the tree it is in.
        """
        kind, chroot, first, _ = self._split(path)
        return kind, chroot, first if not kind or kind in self.apart else ""

    def find_asked(self, name: str, data: bytes) -> frozenset[str] | None:
        """Return the topics that alone a request of this name and content concerns.

        None where it concerns the cluster as a whole.
        """
        return None

    def _emit(self, cluster: History, topic: str, partition: int, path: str, event: Event) -> None:
        if self.owns is not None and not self.owns(cluster.chroot, topic or self._about):
            return
        zxid, time_ms, session = self._now
        chroot, changes = cluster.chroot, cluster.changes
        out = self._out if cluster.shown else cluster.kept_back
        fenced = chroot in self._fenced
        # Asked for only what is not known yet: this is done very often.
        sure = time_ms <= changes.answer_until_ms
        seen = (
            chroot,
            topic,
            partition,
            zxid,
            time_ms,
            len(out),
            session,
            path,
            event,
            cluster.everywhere or cluster.get_surroundings(topic, partition),
            changes.answer if sure else self._find_doubt(cluster, topic, time_ms),
            cluster.authors.get((session, fenced)) or cluster.get_author(session, fenced=fenced),
            self._given,
        )
        out.append(_make(Observation, seen))

    def _find_doubt(self, cluster: History, topic: str, time_ms: int) -> Doubt:
        """Return what whoever writes now may see otherwise than it is."""
        return cluster.changes.get_doubt(
            topic,
            time_ms,
            self.grace_ms,
            cluster.terms.won_zxid,
            whole=cluster.terms.whole,
            fleeting=cluster.registered - cluster.configured,
            live=cluster.live,
        )

    def _on_write(self, path: str, data: bytes | None) -> None:
        place = self._places.get(path) or self._find_place(path)
        if place is not None:
            handler, cluster, below, first, second, self._about = place
            handler(cluster, below, data, first, second)

    def _find_place(self, path: str) -> _Place[History] | None:
        """Return what takes what is written to a path; None where no rule is about it."""
        kind, chroot, first, second = self._split(path)
        if not kind:
            if first and not self._given:
                self.unjudged[first] += 1
            return None
        cluster = self.clusters.get(chroot) or self.get_cluster(chroot)
        if not cluster.shown:
            self._look_for_sign(cluster, kind)
        handler = self._handlers.get(kind, _pass_over)
        cluster.had_topics |= kind == f"{_ELSEWHERE} topic"
        about = first if kind in self.apart else ""
        place = handler, cluster, path[len(chroot) :], first, second, about
        if cluster.shown:
            if len(self._places) >= _CACHE_LIMIT:
                self._forget_places()
            self._places[path] = place
            if kind.startswith(_ELSEWHERE):
                self.elsewhere.add(path.encode("utf-8", "surrogatepass"))
        return place

    def _look_for_sign(self, cluster: History, kind: str) -> None:
        cluster.before_sign += 1
        if kind in _SIGNS and not self._is_inside_another(cluster.chroot):
            cluster.shown = True
            self._out.extend(cluster.kept_back)
            cluster.kept_back.clear()

    def _is_inside_another(self, chroot: str) -> bool:
        """Whether a chroot lies in a tree of a cluster that is known."""
        return any(
            chroot.startswith(f"{other.chroot}/{tree}")
            and chroot[len(other.chroot) + 1 + len(tree) :][:1] in ("", "/")
            for other in self.clusters.values()
            if other.shown
            for tree in OWN_TREES
        )

    def _on_close(self, session: int, paths: Iterable[str] | None) -> None:
        """Delete what goes with a session; not every server records what that is."""
        gone = set(paths or ())
        for cluster in self.clusters.values() if paths is None else ():
            for broker in cluster.brokers_of_session.get(session, ()):
                gone.add(cluster.chroot + znodes.broker_path(broker))
            if cluster.terms.owner == session and cluster.terms.ephemeral:
                gone.add(cluster.chroot + znodes.CONTROLLER)
        for path in sorted(gone):
            self._on_write(path, None)

    # What a write means, by kind of znode --------------------------------------------------------

    @clause("znode.roots-kept")
    def _on_root(
        self, cluster: History, path: str, data: bytes | None, first: str, second: str
    ) -> None:
        """Note the birth of a cluster, before which nothing was; a parent has to stay."""
        if data is not None:
            cluster.roots.add(path)
        else:
            cluster.roots.discard(path)
            reason = "nothing can stand under it any more"
            self._emit(cluster, "", -1, path, Forbidden("znode.roots-kept", reason))
            # ZooKeeper removes no znode with children, so whoever stood there was gone by then.
            for broker in sorted(cluster.live) if first == "ids" else ():
                self._on_write(cluster.chroot + znodes.broker_path(broker), None)
        created = data is not None and not self._given and self._op.kind == CREATE
        if first == "ids" and created and not cluster.is_met():
            if cluster.known_since is None:
                cluster.known_since = self._now[0]
            cluster.terms.whole = True
            cluster.changes.forget()

    def _on_controller(
        self, cluster: History, path: str, data: bytes | None, first: str, second: str
    ) -> None:
        terms = cluster.terms
        if data is None:
            cluster.controller = terms.owner = None
            self._emit(cluster, "", -1, path, ControllerGone())
            return
        created = self._given or self._op.kind == CREATE
        if created:
            terms.owner = self._now[2]
            terms.ephemeral = self._now[2] != 0 if self._given else self._op.ephemeral
        try:
            cluster.controller = znodes.decode_controller(path, data)
        except BadZnode as error:
            self._emit(cluster, "", -1, path, Unreadable(error.reason))
            return
        if self._given:
            terms.winner = terms.owner
            cluster.forget_authors()
        else:
            self._elections[cluster.chroot] = (cluster.controller, False)
            self._unfinished = True

    @clause("controller.epoch.kept")
    def _on_epoch(
        self, cluster: History, path: str, data: bytes | None, first: str, second: str
    ) -> None:
        self._fence = (None, _NONE)
        if data is None:
            cluster.terms.epoch_version = None
            if cluster.epoch:
                reason = f"it held {cluster.epoch}, and epochs would begin anew"
                self._emit(cluster, "", -1, path, Forbidden("controller.epoch.kept", reason))
            return
        cluster.terms.epoch_version = None if self._given else getattr(self._op, "version", 0)
        try:
            epoch = znodes.decode_controller_epoch(path, data)
        except BadZnode as error:
            self._emit(cluster, "", -1, path, Unreadable(error.reason))
            return
        begun = cluster.epoch != 0 or epoch != 0
        cluster.epoch = epoch
        cluster.forget_surroundings()
        if self._given:
            self._emit(cluster, "", -1, path, ElectionSeen(cluster.controller, epoch))
        elif begun:
            broker, _ = self._elections.get(cluster.chroot, (None, False))
            self._elections[cluster.chroot] = (broker, True)
            self._unfinished = True

    def _on_broker(
        self, cluster: History, path: str, data: bytes | None, first: str, second: str
    ) -> None:
        broker = int(first)
        zxid, time_ms, session = self._now
        if not self._given and (data is None or broker not in cluster.live):
            if broker not in cluster.known:
                cluster.changes.note_first_name(broker, Change(zxid, time_ms))
            cluster.changes.note_registration(broker, Change(zxid, time_ms))
        if data is None:
            orderly = self._is_orderly(cluster, broker)
            for key, left_out in cluster.decided.items():
                if broker in left_out:
                    cluster.decided[key] = left_out - {broker}
                    self._emit(cluster, *key, path, BrokerGone(broker, orderly))
            cluster.live -= {broker}
            for owned in cluster.brokers_of_session.values():
                owned.discard(broker)
        else:
            cluster.live |= {broker}
            cluster.registered |= {broker}
            if self._given or self._op.kind == CREATE:
                cluster.brokers_of_session.setdefault(session, set()).add(broker)
        cluster.forget_surroundings()
        cluster.forget_authors()
        if data is not None and not self._given and self._op.kind == CREATE:
            self._emit(cluster, "", -1, path, BrokerRegistered(self._op.ephemeral))

    def _on_broker_config(
        self, cluster: History, path: str, data: bytes | None, first: str, second: str
    ) -> None:
        broker = frozenset({int(first)})
        zxid, time_ms, _ = self._now
        if not self._given and not broker <= cluster.known:
            cluster.changes.note_first_name(int(first), Change(zxid, time_ms))
        cluster.configured = (
            cluster.configured - broker if data is None else (cluster.configured | broker)
        )
        cluster.changes.forget()
        cluster.forget_surroundings()

    def _note_setting(self, cluster: History, topics: Iterable[str]) -> None:
        """Note how it was before the settings of these topics change."""
        zxid, time_ms, _ = self._now
        if not self._given:
            for topic in topics:
                before = cluster.get_surroundings(topic)
                cluster.changes.note_setting(Setting(zxid, time_ms, topic, before))

    def _read_settings(
        self, cluster: History, path: str, data: bytes | None
    ) -> tuple[int | None, bool | None] | None:
        """Return the minimum and whether unclean elections are allowed; None where unreadable."""
        try:
            config = {} if data is None else znodes.decode_config(path, data)
            least = znodes.parse_limit(path, config, znodes.MIN_ISR)
            return least, znodes.parse_unclean(path, config)
        except BadZnode as error:
            self._emit(cluster, "", -1, path, Unreadable(error.reason))
            return None

    def _on_topic_config(
        self, cluster: History, path: str, data: bytes | None, first: str, second: str
    ) -> None:
        if data is None and first in cluster.settings:
            exists, deleting = bool(cluster.topics.get(first)), first in cluster.deleting
            broken = find_broken_settings_removal(exists=exists, deleting=deleting)
            if broken is not None:
                self._forbid(cluster, first, min(cluster.topics[first]), path, broken)
        self._note_setting(cluster, (first,))
        said = self._read_settings(cluster, path, data)
        if said is None:
            return
        (cluster.settings.discard if data is None else cluster.settings.add)(first)
        least, unclean = said
        cluster.everywhere = None
        cluster.min_isr.pop(first, None)
        cluster.unclean.pop(first, None)
        if least is not None:
            cluster.min_isr[first] = least
        if unclean is not None:
            cluster.unclean[first] = unclean

    def _on_default_config(
        self, cluster: History, path: str, data: bytes | None, first: str, second: str
    ) -> None:
        self._note_setting(cluster, cluster.topics)
        said = self._read_settings(cluster, path, data)
        if said is not None:
            least, unclean = said
            cluster.everywhere = None
            cluster.min_isr_default = self.min_insync_replicas if least is None else least
            cluster.unclean_default = unclean is True

    def _on_preferred(
        self, cluster: History, path: str, data: bytes | None, first: str, second: str
    ) -> None:
        try:
            asked = () if data is None else znodes.decode_preferred_election(path, data)
        except BadZnode:
            asked = ()  # a client's mistake, which asks for nothing
        cluster.asked = frozenset(asked)
        cluster.everywhere = None

    def _on_deletion(
        self, cluster: History, path: str, data: bytes | None, first: str, second: str
    ) -> None:
        self._note_setting(cluster, (first,))
        cluster.everywhere = None
        if data is not None:
            cluster.deleting.add(first)
            return
        begun, has_settings = first in cluster.begun, first in cluster.settings
        broken = find_broken_deletion_end(begun=begun, has_settings=has_settings)
        if broken is not None:
            self._forbid(cluster, "", -1, path, broken)
        cluster.deleting.discard(first)
        cluster.begun.discard(first)

    def _forbid(
        self, cluster: History, topic: str, partition: int, path: str, broken: Rejected
    ) -> None:
        self._emit(cluster, topic, partition, path, Forbidden(broken.clause, broken.reason))

    def _on_topic(
        self, cluster: History, path: str, data: bytes | None, topic: str, second: str
    ) -> None:
        cluster.had_topics = True
        before = cluster.topics.get(topic, {})
        try:
            found = ({}, {}) if data is None else znodes.decode_topic_and_extras(path, data)
        except BadZnode as error:
            self._emit(cluster, topic, min(before, default=0), path, Unreadable(error.reason))
            return
        after, extras = found
        if before:
            after = self._judge_topic(cluster, path, topic, after, extras, removed=data is None)
        cluster.topics[topic], cluster.extras[topic] = after, extras
        if self._given:
            # Whoever is assigned existed; the snapshot does not say who else did.
            cluster.registered = cluster.registered.union(*after.values())
            cluster.forget_surroundings()
        self._emit_assigned(cluster, path, topic, before, after)

    def _emit_assigned(
        self,
        cluster: History,
        path: str,
        topic: str,
        before: dict[int, ReplicaList],
        after: dict[int, ReplicaList],
    ) -> None:
        """Tell each partition of which the topic's znode says something else now."""
        ended = len(before)
        for number, was in before.items():
            assigned = after.get(number)
            # Most are the very same lists: they were read from the same content.
            if assigned is not was and assigned != was:
                self._emit(cluster, topic, number, path, AssignedWritten(assigned))
            ended -= assigned is None
        if len(after) > ended:
            for number, assigned in after.items():
                if number not in before:
                    self._emit(cluster, topic, number, path, AssignedWritten(assigned))

    def _judge_topic(
        self,
        cluster: History,
        path: str,
        topic: str,
        after: dict[int, ReplicaList],
        extras: dict[str, Any],
        *,
        removed: bool,
    ) -> dict[int, ReplicaList]:
        """Judge what a write takes out of a topic's znode; return what it holds by rights."""
        before, deleting = cluster.topics[topic], topic in cluster.deleting
        old = cluster.extras.get(topic, {})
        changed = {name for name, value in old.items() if extras.get(name) != value}
        lost = before.keys() - after.keys()
        broken = find_broken_topic(lost, changed, removed=removed, deleting=deleting)
        if removed and deleting:
            cluster.begun.add(topic)
        if broken is None:
            return after
        if removed or not lost:
            self._forbid(cluster, topic, min(before), path, broken)
            return after
        for number in sorted(lost):
            self._forbid(cluster, topic, number, path, broken)
        return after | {number: before[number] for number in lost}

    def _on_state(
        self, cluster: History, path: str, data: bytes | None, topic: str, second: str
    ) -> None:
        number = int(second)
        self._state, self._recovering = None, None
        if data is None:
            exists = number in cluster.topics.get(topic, {})
            broken = find_broken_state_removal(exists=exists, deleting=topic in cluster.deleting)
            if broken is not None:
                self._forbid(cluster, topic, number, path, broken)
                return
            self._emit(cluster, topic, number, path, StateWritten(None, -1))
            return
        usual = znodes.read_usual_state(data)
        if usual is not None:
            self._state = state = LeaderAndIsr(*usual)
        else:
            try:
                said = znodes.decode_state(path, data)
            except BadZnode as error:
                self._emit(cluster, topic, number, path, Unreadable(error.reason))
                return
            self._state, self._recovering = from_znode(said), said.recovering
            state = self._state
        if self._decides(cluster):
            assigned = cluster.topics.get(topic, {}).get(number, ())
            left_out = cluster.live.intersection(assigned).difference(state.isr)
            if self.lets_in_again:
                left_out |= cluster.decided.get((topic, number), left_out)
            cluster.decided[topic, number] = left_out
        writer, brokers = -1, cluster.brokers_of_session.get(self._now[2])
        if brokers:
            writer = state.leader if state.leader in brokers else min(brokers)
        self._emit(cluster, topic, number, path, _make(StateWritten, (state, writer)))

    def _decides(self, cluster: History) -> bool:
        """Whether the write at hand is a controller's."""
        return cluster.chroot in self._fenced

    def _is_orderly(self, cluster: History, broker: int) -> bool:
        """Whether a broker whose registration ends had been taken out of the in-sync sets."""
        return True


def _compile(kinds: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern of the paths of these kinds, and of those that every protocol knows."""
    return re.compile(rf"(?P<chroot>(?:/[^/]+)*?)(?:{'|'.join((*_KINDS, *kinds))})", re.DOTALL)


def _list_groups(kinds: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return by the name of a group that a path may fill last: this and those before it."""
    each = [tuple(re.compile(kind).groupindex) for kind in (*_KINDS, *kinds)]
    return {name: names[: place + 1] for names in each for place, name in enumerate(names)}


def _load_order(node: tuple[str, bytes, int]) -> tuple[int, str]:
    """Topics, configurations and brokers first, so that what hangs on them finds them there."""
    path = node[0]
    late = "/admin/" in path or path.endswith("/state")
    return (1 if late else 0, path)


def written_paths(transaction: TransactionLike) -> Iterator[str]:
    """Yield the paths that the router takes note of, in a transaction that took effect."""
    for op in transaction.ops:
        if op.kind in _TOUCHES:  # type: ignore[attr-defined]
            yield op.path  # type: ignore[attr-defined]


def iterate_observations(
    router: Router[Any], transactions: Iterable[TransactionLike]
) -> Iterator[Observation]:
    """Yield the observations of transactions in order."""
    for transaction in transactions:
        yield from router.feed(transaction)
