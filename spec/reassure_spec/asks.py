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
        "legacy": (
            ("an entry becomes a request with the flag", ("legacy/one-move",)),
            (
                "the two routes exclude each other, both ways",
                ("legacy/legacy-during-new-move", "legacy/request-during-legacy-move"),
            ),
            ("entries leave one by one", ("legacy/entries-leave-one-by-one",)),
            (
                "the original replicas for a rollback",
                ("legacy/original-replicas-by-client", "legacy/rollback-of-a-move"),
            ),
            (
                "clients that delete or rewrite the znode",
                ("legacy/client-deletes-the-znode", "legacy/rewrite-is-ignored"),
            ),
            ("failover at every point", ("legacy/failover-between-every-two-writes",)),
        ),
        "failover": (
            ("three sources, in order", ("legacy/failover-all-three-sources",)),
            ("flags of both routes", ("failover/flags-of-both-routes",)),
            (
                "top from the record",
                ("legacy/failover-after-expansion", "failover/after-the-record"),
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
        "watermark": (
            ("lag as a definition", ("replication/watermark-8-no-match",)),
            ("when a follower enters", ("replication/entry-below-the-mark",)),
            ("the answer to a producer", ("replication/answer-waits-for-the-mark",)),
            (
                "the leader's notes, in both versions",
                ("replication/later-item-2-idle", "replication/older-item-2-idle"),
            ),
            (
                "the rule before, with its two problems",
                ("replication/before-removed-though-keeping-up", "replication/before-flapping"),
            ),
            (
                "the same without them",
                ("replication/after-kept-while-keeping-up", "replication/after-no-flapping"),
            ),
            ("guarantee 1, which is false", ("replication/watermark-1", "replication/watermark-2")),
            ("guarantee 2", ("replication/guarantee-2",)),
            ("guarantee 3", ("replication/guarantee-3",)),
            ("guarantee 4", ("replication/guarantee-4",)),
            (
                "elections and truncation, as written",
                ("replication/election-1", "replication/same-leader-elected-again"),
            ),
            ("the log end offset at the election", ("replication/entry-in-second-term",)),
            (
                "the four amendments",
                (
                    "replication/election-1-amended",
                    "replication/election-2-amended",
                    "replication/election-3-amended",
                    "replication/election-4-amended",
                ),
            ),
        ),
        "healing": (
            (
                "records with the first time of failure",
                ("healing/flapping-keeps-first-timestamp", "healing/died-without-controller"),
            ),
            ("the interval", ("healing/not-before-the-interval",)),
            ("tasks are generated", ("healing/a-broker-stays-away",)),
            ("started and carried out as a reassignment", ("healing/a-broker-stays-away",)),
            ("one after another", ("healing/one-task-at-a-time",)),
            ("skipped when satisfied", ("healing/operators-task-satisfied",)),
            (
                "only automatic ones are cancelled, and none that runs",
                (
                    "healing/cancelled-when-back",
                    "healing/operators-task-is-never-cancelled",
                    "healing/running-task-is-never-cancelled",
                ),
            ),
            (
                "records go when the broker is back, and when its tasks are made",
                ("healing/back-in-time", "healing/a-broker-stays-away"),
            ),
            (
                "a failure between making tasks and removing the record (option 2)",
                ("healing/failover-between-tasks-and-record", "healing/failover-between-two-tasks"),
            ),
            ("a hard share of the traffic", ("healing/quota-is-a-share",)),
            (
                "where to: live, not twice, on another rack, spread evenly",
                (
                    "healing/nobody-can-take-over",
                    "healing/racks-are-kept-apart",
                    "healing/spread-evenly",
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
