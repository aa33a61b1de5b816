"""What transactions are turned into: observations, and what is remembered of each cluster.

An `SeenWrite` is one write, addressed to one partition or to the cluster as a whole. It says who
wrote (`reassure_judge.authors`), and what whoever wrote may not have noticed yet
(`reassure_judge.doubt`), so that partitions can be judged apart from each other.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final, NamedTuple

from reassure_judge.authors import Author, Authority, Terms, make_author
from reassure_judge.doubt import Changes, ChangeTime, Doubt
from reassure_judge.verdicts import Location, Violation
from reassure_model.outcome import Rejected
from reassure_model.partition import Environment, LeaderAndIsr
from reassure_spec.znodes import PartitionKey, ReplicaList

_KEPT_BACK: Final = 1000
"""How many observations are kept back of a chroot that may be a cluster's."""


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
    """The registration of a broker ended that a controller's word had left out of the in-sync set.

    Told only to partitions whose state a controller wrote so while the broker was registered.
    """

    broker: int
    orderly: bool = True
    """Whether it had been taken out of every in-sync set that has somebody else alive."""


class Handled(NamedTuple):
    """The acting controller answered an event that is younger than all that was written here.

    It handles one event at a time, in order, so that it has nothing left to do of earlier ones.
    """

    since: ChangeTime
    """The last transaction that this partition has to do with."""


class Forbidden(NamedTuple):
    """Something was taken away that has to stay; it is judged on as if it were still there."""

    clause: str
    reason: str
    unless: tuple[str, ...] = ()
    """Hidden facts of which each would make it right: then nobody can say."""


Event = object
"""What happened; each protocol has events of its own beside those here."""


class SeenWrite(NamedTuple):
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

    @property
    def place(self) -> Location:
        """Where it happened."""
        return Location(self.zxid, self.chroot, self.topic, self.partition, self.path)

    def violate(
        self,
        broken: Rejected,
        before: str,
        after: str,
        expected: str = "see the clause",
        besides: Iterable[str] = (),
    ) -> Violation:
        """Return what a write breaks; `besides` are the clauses that it broke as well."""
        found = Violation.unwritten(self.place, broken, expected, before, self.time_ms)
        author, others = self.author.describe(), tuple(besides)
        return replace(found, session=self.session, after=after, author=author, besides=others)


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
        self.asking: frozenset[int] = frozenset()
        """Brokers that have controllers change in-sync sets for them, as they registered last."""
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
        self.kept_back: deque[SeenWrite] = deque(maxlen=_KEPT_BACK)
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
