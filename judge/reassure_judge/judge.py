"""The judge: feed it transactions in order, ask it for verdicts at any time.

It can be told that a cluster rests (`quiesce`); only then does it judge what a controller owes. A
history of which nobody says when it rests is judged by its writes alone.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from reassure_judge.cluster_tracker import ClusterTracker
from reassure_judge.doubt import GRACE_MS
from reassure_judge.history import SeenWrite
from reassure_judge.live_events import ClusterView
from reassure_judge.memo import Memo
from reassure_judge.moments import Witness
from reassure_judge.protocols import make_rules
from reassure_judge.rules import Rules
from reassure_judge.tracker import PartitionTracker
from reassure_judge.transaction_reader import TransactionLike
from reassure_judge.verdicts import (
    ClauseVerdict,
    Location,
    Tally,
    Violation,
    count_broken,
    summarise,
)
from reassure_spec.readings import Readings
from reassure_spec.rooms import judge_of, refuse_readings
from reassure_spec.znodes import PartitionKey


@dataclass(frozen=True, slots=True)
class Report:
    """What the judge found."""

    verdicts: tuple[ClauseVerdict, ...]
    violations: tuple[Violation, ...]
    transactions: int
    partitions: int
    follow_ups: int
    """Rejected writes that only follow from a reported violation."""


class Tracking:
    """The trackers of many partitions; what a worker that judges some of them needs, no more."""

    def __init__(
        self,
        rules: Rules[Any, Any],
        *,
        remembers: bool = True,
        witness: Witness | None = None,
    ) -> None:
        self.rules = rules
        self.tally = Tally()
        self._witness = witness
        remembers = remembers and witness is None
        self._memo = Memo(rules.names, self.tally) if rules.names and remembers else None
        self.partitions: dict[tuple[str, str, int], PartitionTracker] = {}
        self.clusters: dict[str, ClusterTracker] = {}

    @property
    def violations(self) -> list[Violation]:
        """The violations found so far, in the order in which they were found."""
        return self.tally.violations

    def observe(self, seen: SeenWrite) -> None:
        """Judge one observation; those of one partition must come in order."""
        tracker = self.partitions.get(seen[:3])
        if tracker is not None:
            tracker.feed(seen)
        elif seen.partition >= 0:
            tracker = PartitionTracker(self.rules, self.tally, self._memo, self._witness)
            self.partitions[seen[:3]] = tracker
            tracker.feed(seen)
        else:
            cluster = self.clusters.get(seen.chroot)
            if cluster is None:
                cluster = ClusterTracker(self.rules, self.tally, self._witness)
                self.clusters[seen.chroot] = cluster
            cluster.feed(seen)

    def sum_up(self) -> Tally:
        """Return what judging comes to if nothing more comes."""
        tally = Tally()
        tally.add(self.tally)
        for tracker in self.partitions.values():
            tracker.suspicions.leave_open(tally)
        return tally

    def count_follow_ups(self) -> int:
        """Return how many rejected writes only follow from a reported violation."""
        return sum(tracker.follow_ups for tracker in self.partitions.values())


class Judge:
    """Holds a history against the model of one profile; raises NoRules for one without rules.

    `min_insync_replicas` is what the brokers' own files say, which are not in ZooKeeper. A
    `witness` is told of each state of a partition in which a controller acted, rested or took over.
    """

    def __init__(
        self,
        profile: str,
        readings: Readings,
        grace_ms: int = GRACE_MS,
        *,
        min_insync_replicas: int = 1,
        witness: Witness | None = None,
    ) -> None:
        self.rules = make_rules(profile, readings)
        refuse_readings(judge_of(profile), readings)
        self.profile = profile
        self.readings = readings
        self.transactions = 0
        self.router = self.rules.make_router(grace_ms, min_insync_replicas=min_insync_replicas)
        self.tracking = Tracking(self.rules, witness=witness)
        self._zxid = 0
        self._time_ms = 0

    @property
    def violations(self) -> list[Violation]:
        """The violations found so far, in the order in which they were found.

        A finding counts only where all that led to it is known (`Router.is_known`).
        """
        found, is_known = self.tracking.violations, self.router.is_known
        return found if self.router.whole else [v for v in found if is_known(v.chroot, v.zxid)]

    @property
    def exercised(self) -> Counter[str]:
        """How often each clause was put to the test."""
        return self.tracking.tally.exercised

    @property
    def undecided(self) -> Counter[str]:
        """How often nobody can say whether a clause was kept or broken."""
        is_known = self.router.is_known
        found = self.tracking.violations
        unsettled = Counter(v.clause for v in found if not is_known(v.chroot, v.zxid))
        return self.tracking.sum_up().undecided + unsettled

    def feed(self, transaction: TransactionLike) -> None:
        """Judge one transaction; they must come in zxid order."""
        self.transactions += 1
        self._zxid, self._time_ms = transaction.zxid, transaction.time_ms
        for seen in self.router.feed(transaction):
            self.tracking.observe(seen)

    def load(self, nodes: Iterable[tuple[str, bytes, int]]) -> None:
        """Take (path, data, ephemeral owner) of a snapshot as the state to begin with."""
        for seen in self.router.load(nodes):
            self.tracking.observe(seen)

    def quiesce(self, chroot: str = "") -> None:
        """Note that the cluster with this chroot rests, and judge what must hold then."""
        self.router.settle(chroot)
        history = self.router.get_cluster(chroot)
        untouched = history.find_untouched()
        for key, tracker in self.tracking.partitions.items():
            if key[0] == chroot:
                around = history.get_surroundings(key[1], key[2])
                place = Location(self._zxid, *key, "")
                tracker.rest(place, around, untouched, self._time_ms)
        if chroot in self.tracking.clusters:
            cluster = self.tracking.clusters[chroot]
            around = history.get_surroundings("")
            cluster.rest(chroot, self._zxid, around, untouched, self._time_ms)

    def miss_controller(self, chroot: str = "") -> None:
        """Note that a cluster did not come to rest in time: by then somebody had to be elected."""
        if chroot in self.tracking.clusters:
            self.tracking.clusters[chroot].miss_controller(chroot, self._zxid, self._time_ms)

    def is_owed(self, chroot: str = "") -> bool:
        """Whether anything has to happen yet, so that a cluster at rest would break a clause."""
        history = self.router.get_cluster(chroot)
        if history.requests or self.list_due(chroot):
            return True
        own = (each for key, each in self.tracking.partitions.items() if key[0] == chroot)
        if any(tracker.suspicions.open for tracker in own):
            return True
        cluster = self.tracking.clusters.get(chroot)
        return cluster is not None and cluster.is_owed(history.get_surroundings(""))

    def forget(self, chroot: str) -> None:
        """Drop what is remembered of a cluster; verdicts so far are kept."""
        self.router.forget(chroot)
        self.tracking.clusters.pop(chroot, None)
        partitions = self.tracking.partitions
        for key in [key for key in partitions if key[0] == chroot]:
            del partitions[key]

    def view(self, chroot: str = "") -> ClusterView:
        """Return the cluster as the history leaves it."""
        history = self.router.get_cluster(chroot)
        partitions = {
            (topic, number): shown
            for (root, topic, number), tracker in self.tracking.partitions.items()
            if root == chroot and (shown := self.rules.show(tracker.partition)) is not None
        }
        return ClusterView(
            partitions,
            history.live,
            history.known,
            history.controller,
            history.epoch,
            tuple(sorted(history.requests)),
            dict(history.min_isr),
            history.min_isr_default,
            dict(history.unclean),
            history.unclean_default,
        )

    def list_owed(self, chroot: str = "") -> dict[PartitionKey, Any]:
        """Return by partition what the model has a controller write next, if anything."""
        history = self.router.get_cluster(chroot)
        due = {
            (topic, number): self.rules.find_owed(
                tracker.partition, history.get_surroundings(topic, number)
            )
            for (root, topic, number), tracker in self.tracking.partitions.items()
            if root == chroot and self.rules.exists(tracker.partition)
        }
        return {key: each.write for key, each in due.items() if each is not None}

    def list_due(self, chroot: str = "") -> dict[PartitionKey, str]:
        """Return by partition what the model has a controller write next, in words, if anything."""
        history = self.router.get_cluster(chroot)
        due = {
            (topic, number): tracker.describe_due(history.get_surroundings(topic, number))
            for (root, topic, number), tracker in self.tracking.partitions.items()
            if root == chroot
        }
        return {key: words for key, words in due.items() if words}

    def report(self) -> Report:
        """Return the verdict on every clause of the profile, and all violations by zxid."""
        violations = tuple(sorted(self.violations))
        return Report(
            verdicts=summarise(
                self.profile, self.exercised, count_broken(violations), undecided=self.undecided
            ),
            violations=violations,
            transactions=self.transactions,
            partitions=len(self.tracking.partitions),
            follow_ups=self.tracking.count_follow_ups(),
        )
