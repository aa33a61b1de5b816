"""Mistakes that can be planted in controller and brokers, each by name and all of them off.

A fault is one small branch at the place where the mistake would be made. A suite that cannot tell
a controller with a fault from one without it does not check the rule that the fault breaks.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final

from reassure_spec.errors import BadUsage

REPLICATION_FAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        # What a leader keeps of its followers
        "credit-without-last-fetch": "Only a fetch from the leader's end counts as caught up.",
        "credit-compares-itself": "A fetch is compared with what was noted of itself.",
        "credit-any-fetch": "Whoever fetches counts as caught up.",
        "end-read-early": "A fetch is noted with an end that the log had before.",
        "dead-life-noted": "A request that was sent before its broker died is noted.",
        "stale-fetch-noted": "A request of an earlier leader epoch is noted.",
        # Pseudo-ISR and high watermark
        "limit-doubled": "Who lags twice the limit is still waited for.",
        "leader-not-counted": "The leader is not among those that keep up.",
        "evaluates-only-fetches": "Lags are looked at when somebody fetches, and by no timer.",
        "mark-of-in-sync-only": "The mark does not wait for who keeps up and is not in sync yet.",
        "mark-not-of-stored": "The mark does not wait for stored members that lag.",
        "mark-of-all-assigned": "The mark waits for every assigned replica.",
        "mark-of-any-follower": "The mark goes as far as the follower that is furthest.",
        "mark-goes-back": "The mark falls when somebody who is behind is waited for again.",
        # The in-sync set
        "entry-below-mark": "A follower enters the in-sync set wherever its log ends.",
        "entry-before-start": "A new leader takes in who is at its mark, however old that is.",
        "entry-refused": "A follower that left the in-sync set never enters it again.",
        "laggard-kept": "A follower that lags stays in the in-sync set.",
        "isr-unconditional": "The in-sync set is written whatever stands there.",
        "unanswered-taken-for-made": "An in-sync set that may not be stored is taken for stored.",
        # Clients
        "served-beyond-mark": "Consumers are shown the leader's end.",
        "served-at-once": "A new leader shows a mark that may be older than what was shown.",
        "acks-all-early": "A producer that waits for all is answered at once.",
        "answers-forgotten": "A producer that waits for all is never answered.",
        # Followers
        "truncation-skipped": "A follower cuts nothing off.",
        "truncates-to-mark": "A follower cuts at its own mark, whatever the reading.",
        "truncates-to-end": "A follower cuts where the leader ended at its election.",
        "follow-untold": "A follower fetches without having cut its log.",
        "follower-mark-uncapped": "A follower takes a mark beyond its own end.",
        "checkpoint-uncapped": "A mark is restored beyond what is left of the log.",
        # Orders
        "stale-order-obeyed": "An order of an earlier controller or leader epoch is obeyed.",
        "dead-order-obeyed": "An order for an earlier life of the broker is obeyed.",
        "late-stop-obeyed": "An order to stop is obeyed after one of a later leader epoch.",
        "stop-forgotten": "A broker that has stopped a replica forgets what it was told of it.",
        "stopped-leads-on": "A replica that is stopped and not deleted leads on.",
        "answered-when-deleted": "A replica that is deleted answers on, from what it has.",
        "deleted-kept": "A replica that is deleted keeps its log.",
        "expiry-unnoticed": "A broker that registers again goes by the broker epoch before.",
        # One partition and another
        "epochs-shared": "A new log takes the leader epochs of another one for its own.",
        "mark-of-another": "A follower takes the mark of another partition of the same leader.",
    }
)
"""Those of brokers with logs."""
STOPPED_IN_VAIN: Final = frozenset({"stopped-leads-on", "answered-when-deleted"})
"""Those under which a replica goes on that was stopped."""
FAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "drop-slice-exclusive": "The drop rule keeps one replica fewer than top.",
        "drop-after-expansion": "The drop set is computed after the target was added.",
        "drop-skipped": "A change of the target drops nothing.",
        "stop-before-in-sync": "A reassignment completes before its target is in sync.",
        "leader-outside-target": "Completion leaves a leader that is not in the target.",
        "delete-request-before-child": "The request is deleted before the child is written.",
        "requests-unsorted": "Requests are carried out in the reverse of their sequence.",
        "top-recomputed-on-failover": "A failover replaces top by the length of the assignment.",
        "no-epoch-check": "Writes do not check the controller epoch and nobody resigns.",
        "unconditional-state-write": "State is written unconditionally, from memory.",
        "child-recreated": "A change deletes and creates the child instead of setting its data.",
        "unknown-partition-kept": "A request for an unknown partition is never deleted.",
        "isr-keeps-removed": "Completion leaves the removed replicas in the in-sync set.",
        "top-below-min-accepted": "A reassignment with top below min.insync.replicas is accepted.",
        "default-minimum-ignored": "The brokers' default of min.insync.replicas does not count.",
        "own-minimum-ignored": "What a topic says of min.insync.replicas does not count.",
        "own-unclean-ignored": "What a topic says of unclean elections does not count.",
        "minimum-read-once": "A change of min.insync.replicas is never noticed.",
        "duplicate-target-accepted": "A target that names a broker twice is accepted.",
        "expand-skipped-order": "Completion writes the assignment before it shrinks the ISR.",
        "completion-keeps-child": "A completed reassignment leaves its child znode.",
        "completion-unannounced": "Completion leaves the epoch alone where the leader stays.",
        "election-any-assigned": "An election takes any live assigned replica, in sync or not.",
        "no-epoch-bump-on-election": "An election leaves the leader epoch as it was.",
        "resume-skipped": "A failover does not resume the reassignments in flight.",
        "malformed-request-kept": "A malformed request is never deleted.",
        "dead-replica-kept": "Dead replicas are never removed from the in-sync set.",
        "target-reordered": "Completion writes the target sorted instead of as asked.",
        "update-resets-top": "A change of the target replaces top by the assignment's length.",
        # Leaders and in-sync sets
        "election-by-isr-order": "An election goes by the order of the in-sync set.",
        "move-by-isr-order": "Completion takes the first of the in-sync set, not of the target.",
        "dead-leader-left": "A partition whose last in-sync replica died keeps its dead leader.",
        "isr-emptied": "A partition whose last in-sync replica died gets an empty in-sync set.",
        "leaderless-isr-cut": "A partition without a leader keeps one member of its in-sync set.",
        "isr-keeps-only-removed": "A removal leaves the removed replica alone in the in-sync set.",
        "removal-takes-all": "A removal of one replica leaves the leader alone in the in-sync set.",
        "no-epoch-bump-on-removal": "A removal from the in-sync set keeps the leader epoch.",
        "epoch-raised-by-two": "Every write of a state raises the leader epoch by two.",
        "needless-epochs-at-failover": "A failover raises the leader epoch of every partition.",
        "old-epoch-stamped": "States carry the controller epoch before the current one.",
        "dead-at-failover-kept": "A failover leaves those who died before it as they are.",
        "new-led-by-last": "A new partition is led by its last live replica.",
        "new-isr-leader-only": "A new partition begins with its leader alone in sync.",
        "new-epoch-one": "A new partition begins with leader epoch 1.",
        "state-made-anew": "An offline partition gets a new state, to elect anybody.",
        # Conflicts and unknown outcomes
        "conflict-forced-at-election": "An election is written whatever version it meets.",
        "conflict-forced-at-removal": "A removal is written whatever version it meets.",
        "conflict-forced-at-drop": "A drop is written whatever version it meets.",
        "unknown-taken-for-done": "A write without an answer is taken for carried out.",
        "unknown-untold": "Nobody is told of a state that was written without an answer.",
        "unknown-repeated-blindly": "A write without an answer is repeated unconditionally.",
        # Requests and records
        "queue-watch-lost": "The watch on the request queue is armed once and never again.",
        "withdrawn-stops-queue": "A request that was withdrawn ends the work on the queue.",
        "changed-request-dropped": "A request is carried out as it was read, and dropped as it is.",
        "dead-target-refused": "A request that names a dead broker is dropped.",
        "empty-target-accepted": "A request for no replicas is accepted.",
        "negative-target-accepted": "A target with a negative broker id is accepted.",
        "unknown-broker-accepted": "A target with a broker that never was is accepted.",
        "no-op-started": "A request for what is assigned starts a reassignment.",
        "same-target-written": "A request for the target in flight is recorded anew.",
        "route-conflict-ignored": "A request changes a reassignment that came by the other route.",
        "legacy-mark-lost": "A record never says that its request came by the legacy route.",
        "top-of-target": "A new reassignment records the length of its target as top.",
        "foreign-kept": "Znodes that are not of the protocol are never deleted.",
        "foreign-takes-all": "With a foreign record every record of its topic is deleted.",
        "unreadable-kept": "A record that cannot be read is left where it is.",
        "unreadable-ends-reading": "Records behind one that cannot be read are not looked at.",
        "rest-of-queue-dropped": "After a request is done the others that wait are deleted unread.",
        # The old znode
        "old-znode-ignored": "What clients write to the old znode is never translated.",
        "first-entry-translated": "Of the entries that are new only the first is translated.",
        "added-entries-ignored": "Entries that a client adds to the old znode are not looked at.",
        "old-znode-read-once": "The watch on the old znode is armed once and never again.",
        "translated-unmarked": "A request made of the old znode does not say that it is legacy.",
        "old-znode-before-queue": "The old znode is translated before the requests that wait.",
        "entry-removed-early": "An entry is removed as soon as it is translated.",
        "entry-kept-when-done": "A completed reassignment leaves its entry in the old znode.",
        "entry-removed-after-record": "An entry is removed after the record of its reassignment.",
        "newer-entry-removed": "A completed reassignment takes whatever entry its partition has.",
        "refused-entry-kept": "An entry that was refused, or asks for nothing, is never removed.",
        "old-znode-left-empty": "The old znode stays when its last entry has gone.",
        "old-znode-gone-cancels": "A client that deletes the old znode ends what is in flight.",
        "malformed-old-znode-kept": "An old znode that makes no sense is left where it is.",
        # The first reassignment
        "dead-target-taken": "The listener begins with a target that names a dead broker.",
        "missing-entry-kept": "The entry of a partition that does not exist is never removed.",
        "entry-in-flight-begun": "Another target on the path is begun with over one in flight.",
        "entries-not-resumed": "A new controller leaves alone what it finds on the path.",
        "found-move-given-up": "A new controller refuses a target in sync for who has died.",
        "in-sync-set-unwatched": "Nobody looks again at an in-sync set that has changed.",
        "entry-removed-before-target": "The entry is removed before the target is assigned.",
        "path-removed-whole": "The first move that ends takes the path away from the others.",
        # Healing
        "failure-not-recorded": "Nobody writes down that a broker is missed.",
        "record-refreshed": "A new controller writes its own time into the records that it finds.",
        "record-kept-on-return": "The record of a broker that is back stays.",
        "record-kept-when-scheduled": "The record of a broker stays when its tasks are persisted.",
        "record-deleted-first": "The record of a broker is removed before its tasks are persisted.",
        "interval-not-awaited": "Tasks are generated after a quarter of the failure interval.",
        "task-unmarked": "A generated task does not say that it was generated.",
        "task-of-any-size": "All partitions of a failed broker are put into one task.",
        "replacement-dead": "A broker that is dead takes the place of the failed one.",
        "replacement-twice": "A broker that has a replica gets a second one of the partition.",
        "replacement-not-spread": "The lowest id takes every place, whatever it has already.",
        "newest-task-first": "Tasks are carried out in the reverse of their numbers.",
        "tasks-together": "A task is started while another one runs.",
        "running-task-cancelled": "A task that runs is removed.",
        "needless-task-started": "A generated task is started though the broker is back.",
        "operator-task-cancelled": "What an operator asks for is cancelled like a generated task.",
        "senseless-task-kept": "A task that nobody can carry out is left where it is.",
        # Expansion, completion, drop
        "expansion-skipped": "The target is never added to the assignment.",
        "expansion-partial": "Only the first missing replica of the target is added.",
        "expansion-unannounced": "The leader epoch is not raised after the assignment has grown.",
        "completion-needs-equality": "A reassignment completes only where nobody else is in sync.",
        "child-deleted-first": "The child is deleted before the target is assigned.",
        "parent-left-empty": "The last child of a topic leaves the znode above it behind.",
        "drop-assigned-first": "A drop leaves the assignment before it leaves the in-sync set.",
        "drop-not-looked-at": "Dropped replicas are deleted, though one got in sync meanwhile.",
        "drop-takes-leader": "A drop takes the leader as well.",
        "drop-ranks-by-isr": "The drop ranks the leader where the in-sync set has it, not first.",
        "drop-takes-target": "A drop takes replicas of the target, where that is forbidden.",
        "recheck-skipped": "Old replicas are stopped without a look at what has changed.",
        # Topics
        "growth-ignored": "Partitions that are added to a topic are never brought online.",
        "growth-overwritten": "Assignments are written from memory, whatever was added.",
        "topic-id-lost": "A write of the assignment keeps nothing else of the topic's znode.",
        "topic-id-changed": "A write of the assignment gives the topic another id.",
        "settings-removed": "A completed reassignment takes the settings of its topic away.",
        "deletion-ignored": "What clients ask to be deleted is never deleted.",
        "deletion-not-sent": "A topic is removed and no replica told to delete its log.",
        "deletion-without-a-broker": "A topic is removed though a broker with a replica is down.",
        "deletion-resumed": "A new controller takes replicas that are stopped for deleted.",
        "deletion-ended-first": "What asks for a deletion is removed before the topic.",
        "deletion-leaves-settings": "The settings of a deleted topic stay.",
        "deletion-under-a-move": "A topic is deleted while one of its partitions is being moved.",
        "unknown-deletion-kept": "What asks for the deletion of no topic is never removed.",
        "deleted-topic-moved": "A topic that is to be deleted is reassigned all the same.",
        "deleted-topic-led": "Leaders are elected in a topic that is to be deleted.",
        # Preferred leaders, and brokers that stop
        "preferred-ignored": "Whoever asks for preferred leaders is answered, and none is elected.",
        "preferred-kept": "What asks for preferred leaders is never removed.",
        "preferred-out-of-sync": "A preferred leader is elected though it is not in sync.",
        "shutdown-keeps-leading": "A broker that stops hands nothing over.",
        "shutdown-stays-in-sync": "A broker that stops stays in the in-sync sets.",
        "shutdown-by-isr-order": "A handover goes by the order of the in-sync set.",
        # Office
        "elected-in-two-steps": "The epoch is raised in a transaction of its own.",
        "elected-without-znode": "The epoch is raised and no /controller made.",
        "elected-epoch-skips": "An election raises the controller epoch by two.",
        "controller-znode-stays": "The /controller znode is not ephemeral.",
        "fence-of-any-version": "Writes check the epoch znode for any version, and nobody resigns.",
        "writes-as-a-client": "Writes are made in another session, of nobody known.",
        "writes-as-a-broker": "Writes are made in the session of a broker.",
        "one-move-resumed": "A failover resumes only the first of the reassignments in flight.",
        "older-moves-not-resumed": "A failover resumes only what the last controller wrote.",
        "memory-kept-over-terms": "A controller that is elected again does not read again.",
        # Requests to brokers
        "start-not-sent": "The replicas of a new target are not told to start.",
        "start-sent-elsewhere": "The first replica of a new target is told nothing; a stranger is.",
        "start-sent-stale": "Brokers are told the leader epoch before the current one.",
        "start-with-old-assignment": "Brokers are told the assignment as it was before.",
        "completion-not-sent": "The leader of a completed reassignment is not told the target.",
        "election-not-sent": "A leader is elected and nobody is told.",
        "failover-tells-nobody": "A failover tells brokers nothing.",
        "told-before-written": "Brokers are told of a state before it is written.",
        "deleted-before-cut": "Old replicas are deleted before they leave the in-sync set.",
        "stop-not-sent": "Old replicas are not told to stop.",
        "stop-sent-to-all": "The replicas of the target are told to stop as well.",
        "dropped-not-stopped": "Dropped replicas are not told to stop.",
        "returned-not-told": "A broker that returns is not told what it has.",
        "bounce-unseen": "A broker that dies and returns between two looks is taken for alive.",
        # Brokers
        "deaf-to-stop": "A broker goes on with a replica that it was told to stop.",
        "follower-leads": "A follower changes the in-sync set as if it led.",
        "dead-taken-in": "A leader takes in a replica that has died.",
        "untold-epoch-taken": "A leader writes in a leader epoch that it was not told of.",
        "registration-stays": "The registration of a broker is not ephemeral.",
        "stranger-taken-in": "A leader takes in whoever asks.",
        # Logs
        **REPLICATION_FAULTS,
    }
)
"""Every fault by name, with one sentence that says what goes wrong."""


class UnknownFault(BadUsage):
    """A fault name that `FAULTS` does not have."""


class Planted(frozenset[str]):
    """The faults that are switched on. Whoever watches learns which of them are asked about.

    Ask `name in planted`, or `planted & names`: nothing else is noticed.
    """

    __slots__ = ()

    def __contains__(self, name: object) -> bool:
        there = super().__contains__(name)
        if there:
            _asked.add(str(name))
        return there

    def __and__(self, names: Set[object]) -> frozenset[str]:
        both = super().__and__(names)
        _asked.update(both)
        return both


_asked: set[str] = set()
"""Of the faults that were switched on, those that somebody asked about since one last watched."""


@contextmanager
def watch_faults() -> Iterator[set[str]]:
    """Yield a set in which the faults are that were asked about while they were switched on.

    A fault that is switched on and never asked about changes nothing. It is about this process, and
    nobody else may watch meanwhile.
    """
    _asked.clear()
    yield _asked


def _describe_unknown(name: str) -> str:
    near = get_close_matches(name, FAULTS, n=3) or [each for each in FAULTS if name in each]
    there = f"there are: {', '.join(FAULTS)}"
    advice = f"did you mean {' or '.join(near)}?" if near else there
    return f"no such fault: {name}; {advice}"


def check_faults(names: Iterable[str]) -> frozenset[str]:
    """Return the names as a set. Raises UnknownFault for a name that is not in `FAULTS`."""
    chosen = Planted(names)
    unknown = sorted(chosen - FAULTS.keys())
    if unknown:
        raise UnknownFault("; ".join(map(_describe_unknown, unknown)))
    return chosen
