"""From transactions to observations: where each write belongs, and who may have made it.

The reader takes transactions in zxid order and keeps the little that concerns a cluster as a whole.
What a write means is for its handlers to say (`reassure_judge.router`).

Several clusters may share one log. The chroot of each is found from the paths themselves, and a
path alone proves nothing: a consumer group, a topic or a user may be called `controller`. A chroot
is taken for a cluster's once there is a sign of brokers or topics under it, and never inside the
trees of a cluster that is known. What was seen before the sign is kept back until then.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar, cast

from reassure_judge.authors import Author, Verdicts, judge_authority
from reassure_judge.doubt import GRACE_MS, Doubt
from reassure_judge.history import ClusterHistory, Event, SeenWrite
from reassure_judge.paths import ALL_SIGNS, ELSEWHERE, OWN_TREES, PathKinds
from reassure_judge.trees import name_tree
from reassure_spec import znodes
from reassure_spec.readings import Readings

CREATE: Final = 1
DELETE: Final = 2
SET_DATA: Final = 5
CHECK: Final = 13
CLOSE_SESSION: Final = -11
_SESSIONS: Final = (-10, CLOSE_SESSION)

REFUSED: Final = "refused by the server"
SESSION: Final = "of a session"
OTHER_CLUSTER: Final = "of another cluster"
NO_RULE: Final = "without a rule"
BEFORE: Final = "before judging begins"
"""Why a transaction is passed over."""

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
    def type(self) -> int:
        """The server's code of what was asked for."""

    @property
    def ops(self) -> tuple[object, ...]:
        """The operations, in order."""

    @property
    def error(self) -> int | None:
        """None for what took effect."""


class ZnodePath(NamedTuple):
    """A path of a cluster that some rule is about."""

    path: str
    """Below the chroot."""
    first: str
    second: str
    """The parts of it that matter; "" where there is none."""


History = TypeVar("History", bound=ClusterHistory)
Handler = Callable[[History, ZnodePath, bytes | None], None]
"""Takes the cluster, the path below its chroot, and the content (None: it is gone)."""

_Place = tuple[Handler[History], History, ZnodePath, str]
"""A handler, all that it takes but the content, and the topic that the path concerns alone."""


def _pass_over(cluster: Any, at: ZnodePath, data: bytes | None) -> None:
    """Leave what is written about a topic to whoever judges that."""


class TransactionReader(Generic[History]):
    """Turns transactions into observations, in order.

    `whole` says whether the history begins with the first transaction that a server ever wrote, so
    that whatever is not seen in it never was. A cluster whose birth is seen is whole in any case.

    `min_insync_replicas` counts where neither a topic nor the default of all brokers says: the
    brokers' own files are not in ZooKeeper.

    Between two transactions all its state is in `clusters` (a `ClusterHistory` each, which grows
    with topics and partitions), in `unjudged`, and in what a protocol keeps besides. Where paths
    lead (`_places`, `elsewhere`) is remembered only to be found faster, and is not pickled.
    """

    history: ClassVar[type[ClusterHistory]]
    """What is remembered of a cluster."""
    kinds: ClassVar[tuple[str, ...]] = ()
    """How the protocol's own kinds of path are written (see `reassure_judge.paths`)."""
    apart: ClassVar[frozenset[str]] = frozenset()
    """Kinds of path that name a topic, and that concern nothing but the partitions of it."""
    _paths: ClassVar[PathKinds]

    def __init_subclass__(cls) -> None:
        """Put together all paths that matter."""
        super().__init_subclass__()
        cls._paths = PathKinds(cls.kinds)

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
        self.passed_over: Counter[str] = Counter()
        """By reason: how many transactions no rule was asked about."""
        self.chosen: frozenset[str] | None = None
        """The chroots of the clusters that are judged; None for all."""
        self._places: dict[str, _Place[History]] = {}
        """What takes what is written to a path of a cluster that is known."""
        self.elsewhere: set[bytes] = set()
        """Those of these paths, as they stand in a record, of which nothing written matters here:
        others judge their topics."""
        self._fence: tuple[object, frozenset[str]] = (None, _NONE)
        """The check that was seen last, and what it fences for as long as the epochs stay."""
        self._handlers: dict[str, Handler[History]] = {}
        """By kind of path: what takes a write to it."""
        self._about = ""
        """The topic that the write at hand concerns alone."""
        self._unfinished = False
        """Whether this transaction wrote what is to be looked at once all of it is known."""
        self._now = (0, 0, 0)
        self._op: Any = None
        self._fenced: frozenset[str] = frozenset()
        self._given = False
        self._out: list[SeenWrite] = []

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

    def feed(self, transaction: TransactionLike) -> list[SeenWrite]:
        """Return the observations of one transaction; none where it was refused."""
        if transaction.error is not None:
            self.passed_over[REFUSED] += 1
            return []
        self._now = (transaction.zxid, transaction.time_ms, transaction.session_id)
        ops: tuple[Any, ...] = transaction.ops
        if not ops:
            # Without operations there is also what concerns a topic that is judged elsewhere.
            self.passed_over[SESSION] += transaction.type in _SESSIONS
            return []
        judged = other = False
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
                    handler, cluster, at, self._about = place
                    handler(cluster, at, None if kind == DELETE else op.data)
                    if self.chosen is None or cluster.chroot in self.chosen:
                        judged = True
                    else:
                        other = True
            elif kind == CLOSE_SESSION:
                judged |= self._on_close(transaction.session_id, op.paths)
        if not judged:
            self._note_passed_over(transaction.type, other=other)
        if self._unfinished:
            self._finish()
        out, self._out = self._out, []
        return out

    def _note_passed_over(self, kind: int, *, other: bool) -> None:
        """Count a transaction that no rule was asked about; `other`: another cluster's."""
        reason = SESSION if kind in _SESSIONS else OTHER_CLUSTER if other else NO_RULE
        self.passed_over[reason] += 1

    def load(self, nodes: Iterable[tuple[str, bytes, int]]) -> list[SeenWrite]:
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
            self._forget_fence()
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
        self._forget_fence()

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

    def _forget_fence(self) -> None:
        """Note that what a check fences may be another cluster, or none."""
        self._fence = (None, _NONE)

    def _finish(self) -> None:
        """Look at what a transaction comes to as a whole, once all that it wrote is known."""
        self._unfinished = False
        self._about = ""
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
        """Return (kind, chroot, first part, second part) of a path that matters, as here judged."""
        kind, chroot, first, second = self._paths.split(path)
        if kind in self.apart and self.owns is not None and not self.owns(chroot, first):
            kind = f"{ELSEWHERE} {kind}"
        return kind, chroot, first, second

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
        out.append(_make(SeenWrite, seen))

    def _get_author(self, cluster: History) -> Author:
        """Return who made the write at hand."""
        return cluster.get_author(self._now[2], fenced=cluster.chroot in self._fenced)

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

    def _on_write(self, path: str, data: bytes | None) -> bool:
        """Take a write; return whether it concerns a cluster that is judged."""
        place = self._places.get(path) or self._find_place(path)
        if place is None:
            return False
        handler, cluster, at, self._about = place
        handler(cluster, at, data)
        return self.chosen is None or cluster.chroot in self.chosen

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
        cluster.had_topics |= kind == f"{ELSEWHERE} topic"
        about = first if kind in self.apart else ""
        place = handler, cluster, ZnodePath(path[len(chroot) :], first, second), about
        if cluster.shown:
            if len(self._places) >= _CACHE_LIMIT:
                self._forget_places()
            self._places[path] = place
            if kind.startswith(ELSEWHERE) and (self.chosen is None or chroot in self.chosen):
                self.elsewhere.add(path.encode("utf-8", "surrogatepass"))
        return place

    def _look_for_sign(self, cluster: History, kind: str) -> None:
        cluster.before_sign += 1
        if kind in ALL_SIGNS and not self._is_inside_another(cluster.chroot):
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

    def _on_close(self, session: int, paths: Iterable[str] | None) -> bool:
        """Delete what goes with a session; not every server records what that is.

        Return whether that is anything of a cluster that is judged.
        """
        gone = set(paths or ())
        for cluster in self.clusters.values() if paths is None else ():
            for broker in cluster.brokers_of_session.get(session, ()):
                gone.add(cluster.chroot + znodes.broker_path(broker))
            if cluster.terms.owner == session and cluster.terms.ephemeral:
                gone.add(cluster.chroot + znodes.CONTROLLER)
        taken = [self._on_write(path, None) for path in sorted(gone)]
        return any(taken)


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
    router: TransactionReader[Any], transactions: Iterable[TransactionLike]
) -> Iterator[SeenWrite]:
    """Yield the observations of transactions in order."""
    for transaction in transactions:
        yield from router.feed(transaction)
