"""What the documents ask of each system, in a line each, and the scenarios that tell it.

A reader who wonders where something is shown looks here first. Scenarios are named by area and
name; a test holds them against the files and the systems.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

Asked = tuple[tuple[str, tuple[str, ...]], ...]
"""What is asked for, and the scenarios that tell it."""

ASKS: Final[Mapping[str, Asked]] = MappingProxyType(
    {
        "kafka-42": (
            (
                "the command waits, compares and reports",
                ("kafka-42/case-2-leader-not-in-target", "kafka-42/new-command-during-old-move"),
            ),
            ("one command at a time", ("kafka-42/second-command-fails",)),
            (
                "partitions leave the path one by one",
                ("kafka-42/other-partitions-stay-under-the-path",),
            ),
            (
                "the command cancels when it is interrupted",
                ("kafka-42/interrupt-before-sync", "kafka-42/interrupt-after-step-6"),
            ),
            ("the seven steps", ("kafka-42/case-3-disjoint",)),
            ("test 1: the leader is in the target", ("kafka-42/case-1-leader-in-target",)),
            ("test 2: the leader is not", ("kafka-42/case-2-leader-not-in-target",)),
            ("test 3: nothing in common", ("kafka-42/case-3-disjoint",)),
            ("test 4: no such partition", ("kafka-42/case-4-missing-partition",)),
            ("test 5: done up to step 6", ("kafka-42/case-5-done-up-to-step-6",)),
            ("test 6: done up to step 3", ("kafka-42/case-6-done-up-to-step-3",)),
            ("failure case 1: before step 2", ("kafka-42/failover-before-start",)),
            (
                "failure case 2: while a replica catches up, or it never does",
                ("kafka-42/failover-while-waiting", "kafka-42/never-in-sync"),
            ),
            (
                "failure case 3: behind the election, the new leader alive or dead",
                (
                    "kafka-42/failover-after-election",
                    "kafka-42/failover-after-election-leader-dead",
                    "kafka-42/failover-follower-of-target-dead",
                ),
            ),
            (
                "failure case 4: behind the stop, an answer or a leader that never comes",
                (
                    "kafka-42/failover-after-stop",
                    "kafka-42/leader-change-unanswered",
                    "kafka-42/leader-does-not-complete-its-change",
                ),
            ),
            ("failure case 5: before the path is removed", ("kafka-42/case-5-done-up-to-step-6",)),
            ("failover at every point", ("kafka-42/failover-between-every-two-effects",)),
            (
                "four refusals: no such partition, the same list, a dead broker, one in flight",
                (
                    "kafka-42/case-4-missing-partition",
                    "kafka-42/same-list-is-refused",
                    "kafka-42/dead-target-is-refused",
                    "kafka-42/new-command-during-old-move",
                ),
            ),
            (
                "selectors: reassigned, offline, and for a controlled shutdown",
                (
                    "leaders/reassigned",
                    "kafka-42/any-assigned-replica-leads",
                    "kafka-42/controlled-shutdown",
                ),
            ),
            (
                "four states of a replica, and an online partition that goes online",
                (
                    "tables/replica-machine-of-four-states",
                    "tables/partition-machine-of-four-states",
                ),
            ),
            ("the later fixes", ("kafka-42/repaired-move", "kafka-42/dead-target-waits")),
        ),
        "requests": (
            ("a move from request to completion", ("reassignment/a-move",)),
            ("many partitions in one request", ("requests/many-partitions",)),
            (
                "many requests for one partition, in the order of their numbers",
                ("batches/sequence-for-each-partition", "requests/out-of-order"),
            ),
            ("taken up at once", ("requests/taken-up-at-once",)),
            (
                "going on, changed or ended, told by the zxids of the record",
                (
                    "batches/identity-unchanged",
                    "batches/identity-changed",
                    "batches/identity-ended",
                ),
            ),
            (
                "completion in its order",
                ("reassignment/a-move", "reassignment/three-to-three-others"),
            ),
            ("what makes no sense is refused", ("requests/bad-before-good",)),
        ),
        "kip-236-legacy": (
            ("an entry becomes a request with the flag", ("kip-236-legacy/one-move",)),
            (
                "the two routes exclude each other, both ways",
                (
                    "kip-236-legacy/legacy-during-new-move",
                    "kip-236-legacy/request-during-legacy-move",
                ),
            ),
            ("entries leave one by one", ("kip-236-legacy/entries-leave-one-by-one",)),
            (
                "the original replicas for a rollback",
                ("kip-236-legacy/original-replicas-by-client", "kip-236-legacy/rollback-of-a-move"),
            ),
            (
                "clients that delete or rewrite the znode",
                ("kip-236-legacy/client-deletes-the-znode", "kip-236-legacy/rewrite-is-ignored"),
            ),
            ("failover at every point", ("kip-236-legacy/failover-between-every-two-writes",)),
        ),
        "failover": (
            ("three sources, in order", ("kip-236-legacy/failover-all-three-sources",)),
            ("flags of both routes", ("failover/flags-of-both-routes",)),
            (
                "top from the record",
                ("kip-236-legacy/failover-after-expansion", "failover/after-the-record"),
            ),
            (
                "half-finished effects",
                (
                    "failover/between-every-two-writes",
                    "failover/in-a-change-between-the-two-writes-of-a-drop",
                ),
            ),
            ("a cancel found by the next controller", ("failover/cancel-found-at-failover",)),
            ("an old controller that writes on", ("failover/an-old-controller-writes-on",)),
        ),
        "drop": (
            ("the example of the text", ("drop/the-example-of-the-text",)),
            (
                "both drafts: by lag, and in no order",
                ("drop/by-lag-and-unordered", "drop/unordered-either-may-go"),
            ),
            (
                "the states on the way out, and what does not lead there",
                ("tables/drop-path-from-online", "tables/drop-path-cannot-skip"),
            ),
            ("the in-sync set first, then the assignment", ("drop/out-of-the-in-sync-set-first",)),
            ("the leader is kept", ("drop/the-leader-is-never-dropped",)),
            (
                "the check of top: refused, and only once",
                ("requests/too-few-replicas-for-the-minimum", "requests/minimum-is-checked-once"),
            ),
        ),
        "batches": (
            ("cancel one", ("batches/cancel-of-one", "reassignment/cancel-at-once")),
            ("roll all back", ("batches/rollback-of-all", "batches/cancel-of-what-is-left")),
            (
                "independent of each other",
                ("batches/changed-while-another-completes", "batches/broker-of-one-target-is-down"),
            ),
            ("not held up by the slowest", ("reassignment/not-held-up-by-the-slowest",)),
            ("more while others are in flight", ("batches/one-more-while-others-are-in-flight",)),
            ("more than one znode's worth", ("batches/more-than-one-znode",)),
        ),
        "kafka-4485": (
            ("lag as a definition", ("kafka-4485/watermark-8-no-match",)),
            ("when a follower enters", ("kafka-4485/entry-below-the-mark",)),
            ("the answer to a producer", ("kafka-4485/answer-waits-for-the-mark",)),
            (
                "the leader's notes, in both versions",
                ("kafka-4485/later-item-2-idle", "kafka-4485/older-item-2-idle"),
            ),
            (
                "the rule before, with its two problems",
                ("kafka-4485/before-removed-though-keeping-up", "kafka-4485/before-flapping"),
            ),
            (
                "the same without them",
                ("kafka-4485/after-kept-while-keeping-up", "kafka-4485/after-no-flapping"),
            ),
            ("guarantee 1, which is false", ("kafka-4485/watermark-1", "kafka-4485/watermark-2")),
            ("guarantee 2", ("kafka-4485/guarantee-2",)),
            ("guarantee 3", ("kafka-4485/guarantee-3",)),
            ("guarantee 4", ("kafka-4485/guarantee-4",)),
            (
                "elections and truncation, as written",
                ("kafka-4485/election-1", "kafka-4485/same-leader-elected-again"),
            ),
            ("the log end offset at the election", ("kafka-4485/entry-in-second-term",)),
            (
                "the four amendments",
                (
                    "kafka-4485/election-1-amended",
                    "kafka-4485/election-2-amended",
                    "kafka-4485/election-3-amended",
                    "kafka-4485/election-4-amended",
                ),
            ),
        ),
        "kip-46": (
            (
                "records with the first time of failure",
                ("kip-46/flapping-keeps-first-timestamp", "kip-46/died-without-controller"),
            ),
            ("the interval", ("kip-46/not-before-the-interval",)),
            ("tasks are generated", ("kip-46/a-broker-stays-away",)),
            ("started and carried out as a reassignment", ("kip-46/a-broker-stays-away",)),
            ("one after another", ("kip-46/one-task-at-a-time",)),
            ("skipped when satisfied", ("kip-46/operators-task-satisfied",)),
            (
                "only automatic ones are cancelled, and none that runs",
                (
                    "kip-46/cancelled-when-back",
                    "kip-46/operators-task-is-never-cancelled",
                    "kip-46/running-task-is-never-cancelled",
                ),
            ),
            (
                "records go when the broker is back, and when its tasks are made",
                ("kip-46/back-in-time", "kip-46/a-broker-stays-away"),
            ),
            (
                "a failure between making tasks and removing the record (option 2)",
                ("kip-46/failover-between-tasks-and-record", "kip-46/failover-between-two-tasks"),
            ),
            ("a hard share of the traffic", ("kip-46/quota-is-a-share",)),
            (
                "where to: live, not twice, on another rack, spread evenly",
                (
                    "kip-46/nobody-can-take-over",
                    "kip-46/racks-are-kept-apart",
                    "kip-46/spread-evenly",
                ),
            ),
        ),
        "topics": (
            ("a deletion in its order", ("topics/deletion",)),
            (
                "it waits for reassignments and brokers",
                ("topics/deletion-waits-for-a-reassignment", "topics/deletion-waits-for-a-broker"),
            ),
            ("growth", ("topics/growth", "topics/growth-with-a-broker-down")),
            (
                "preferred elections",
                ("topics/preferred-while-reassigning", "topics/preferred-others-go-on"),
            ),
            (
                "controlled shutdown",
                (
                    "topics/shutdown-of-the-leader-while-reassigning",
                    "topics/shutdown-one-after-the-other",
                ),
            ),
        ),
    }
)
"""By the id of the system."""
