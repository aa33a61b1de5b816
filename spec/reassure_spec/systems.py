"""The systems: what the documents describe, each with what belongs to it.

A system is a part of the documents that can be understood by itself. Clauses, readings and findings
belong to it by the beginnings of their ids, scenarios by the folder they lie in or by the clauses
they are about, and parts of the model by their modules. What belongs to several systems stands in
each of them. The pages in `docs/generated/systems` are made from this.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class System:
    """One part of the documents."""

    id: str
    """Short name, as in the name of its page."""
    title: str
    words: str
    """What it is, in a paragraph."""
    profiles: tuple[str, ...]
    clauses: tuple[str, ...]
    """Beginnings of the ids of its clauses."""
    areas: tuple[str, ...]
    """Folders of its scenarios."""
    modules: tuple[str, ...]
    """Modules of the model that carry it out, without the package."""
    findings: tuple[str, ...] = ()
    """Beginnings of the ids of its findings."""
    readings: tuple[str, ...] = ()
    """Beginnings of the names of its readings."""
    machines: tuple[str, ...] = ()
    """Profiles whose state machines it goes by."""

    def has_clause(self, clause_id: str) -> bool:
        """Whether a clause belongs to it."""
        return clause_id.startswith(self.clauses)

    def has_finding(self, finding_id: str) -> bool:
        """Whether a finding belongs to it."""
        return any(
            finding_id == each or (each.endswith("-") and finding_id.startswith(each))
            for each in self.findings
        )

    def has_reading(self, name: str) -> bool:
        """Whether a reading belongs to it."""
        return bool(self.readings) and name.startswith(self.readings)

    def has_scenario(self, area: str, clauses: tuple[str, ...]) -> bool:
        """Whether a scenario belongs to it."""
        return area in self.areas or any(map(self.has_clause, clauses))


SYSTEMS: Final = (
    System(
        "kafka-42",
        "The first reassignment (KAFKA-42)",
        "An operator's command writes which replicas a partition is to have into "
        "`/admin/reassign_partitions`. The controller, which listens there, starts the new "
        "replicas, waits until all of them are in sync, elects a leader among them where the old "
        "one is not, stops the old replicas, writes the assignment and removes the path. The "
        "command waits for that, compares what came out with what it asked for, and takes the "
        "path away when it is interrupted. Replicas have four states here, partitions four, and "
        "three selectors and a controlled shutdown choose leaders. As written it loses data in "
        "several ways; four readings mend it.",
        ("kafka-42",),
        ("move.", "election.controlled-shutdown", "partition.transition", "replica.transition"),
        ("kafka-42",),
        ("kafka_42", "kafka_42.stages", "copies", "selectors", "state_machines"),
        ("move-",),
        ("move.", "election.unclean", "target.dead-replica"),
        ("kafka-42",),
    ),
    System(
        "requests",
        "The request protocol (KIP-236)",
        "Clients ask by sequential znodes, each naming as many partitions as it likes. The "
        "controller takes them in the order of their numbers. For every partition it records what "
        "is in flight in a znode of its own, adds the target to the assignment, waits until the "
        "target is in sync, moves the leader, takes the old replicas out and removes the record. "
        "A later request changes what is in flight. Whoever keeps the transaction ids of a record "
        "can tell whether the same reassignment still goes on and whether it was changed.",
        ("kip-236", "kip-236-amended"),
        ("request.", "child.", "client.", "top.", "target.", "expand.", "complete.", "assigned."),
        ("requests", "reassignment"),
        (
            "kip_236.requests",
            "kip_236.obligations",
            "kip_236.rules",
            "kip_236.stages",
            "kip_236.writes",
            "kip_236.state",
            "kip_236.system",
            "kip_236.identity",
            "kip_236.invariants",
        ),
        ("protocol-", "drop-10", "drop-13"),
        ("request.", "target.", "top."),
    ),
    System(
        "kip-236-legacy",
        "The old znode beside it (KIP-236)",
        "Clients that know only `/admin/reassign_partitions` go on working. What they write there "
        "becomes a request with a mark that says where it came from, and its entries leave the "
        "znode one by one as their partitions are finished, the znode with the last. A partition "
        "that is in flight by one route is not touched by the other. Clients may delete the znode "
        "or write it anew meanwhile.",
        ("kip-236-legacy",),
        ("legacy.", "request.conflict"),
        ("kip-236-legacy",),
        ("kip_236_legacy", "kip_236_legacy.stages", "kip_236.requests"),
        ("legacy-", "drop-13"),
        ("legacy.", "request.conflict"),
    ),
    System(
        "failover",
        "Failover (KIP-236)",
        "Everything that a controller has begun has to be found again by the next one, from what "
        "is stored: first the records of what is in flight, then the requests that wait, then the "
        "old znode. Routes are not mixed, the number of original replicas comes from the record, "
        "and whatever was half done is finished. A crash can fall between any two writes.",
        ("kip-236", "kip-236-amended", "kip-236-legacy"),
        (
            "legacy.failover",
            "legacy.entry.before-child",
            "child.before-effects",
            "request.delete.child-first",
            "request.consumed",
            "top.once-per-chain",
            "complete.child-last",
            "controller.",
        ),
        ("failover",),
        ("kip_236.obligations", "kip_236.system", "controllers", "kip_236_legacy"),
        ("protocol-1", "protocol-3", "protocol-9", "drop-5", "drop-16", "drop-18"),
        ("request.persist", "drop.reevaluated-on-failover", "top."),
    ),
    System(
        "drop",
        "The drop rule (KIP-236)",
        "A reassignment that is changed in flight would gather replicas that neither the original "
        "assignment nor the new target names. So the assigned replicas are ranked, the leader "
        "first, then those in sync, then the others, and only as many are kept as were assigned "
        "when the chain began. A dropped replica leaves the in-sync set, then the assignment; it "
        "goes offline, its deletion is started and carried out, and then it is gone. The sentence "
        "that says which are kept can be read in several ways, and as written the rule can throw "
        "away what is wanted.",
        ("kip-236", "kip-236-amended"),
        ("drop.", "top.", "isr.within-assigned", "isr.no-duplicates"),
        ("drop",),
        ("kip_236.drop", "kip_236.obligations", "kip_236.rules", "state_machines"),
        ("drop-", "hypothesis-"),
        ("drop.", "top.", "offline.drop", "target.size"),
        ("kip-236",),
    ),
    System(
        "batches",
        "Many reassignments at once (KIP-236)",
        "Any number of partitions can be in flight, each by itself, so that the slowest holds "
        "nobody up. One of them, or all, can be cancelled or rolled back by asking for the old "
        "list, which clients have to remember. Since each has its own record, more can be in "
        "flight than fits into one znode.",
        ("kip-236", "kip-236-amended"),
        (
            "reassignment.",
            "client.",
            "child.in-flight-exactly",
            "child.update-in-place",
            "request.order",
            "request.refuse.too-large",
            "legacy.original",
        ),
        ("batches",),
        ("kip_236.system", "kip_236.requests", "kip_236.identity", "kip_236.obligations"),
        ("drop-6", "drop-7", "drop-13", "protocol-4", "protocol-5", "legacy-2"),
        ("request.conflict", "request.same-target"),
    ),
    System(
        "kafka-4485",
        "Lag, in-sync set and high watermark (KAFKA-4485)",
        "How far a replica is behind is a time here, not a number of records. Who is close enough "
        "is in the pseudo-ISR, who has reached the high watermark besides is in the in-sync set, "
        "and the high watermark waits for those that are close. Beside these definitions stands "
        "what a leader notes at each fetch request, in two versions, and the rule before the "
        "change with its two problems. Four guarantees are promised; across elections they need "
        "four amendments.",
        ("kafka-4485", "kip-236-amended"),
        (
            "isr.pseudo",
            "isr.lagging",
            "isr.write",
            "isr.entry",
            "isr.stored",
            "isr.member",
            "hw.",
            "lag.",
            "follower.",
            "fetch.",
            "log.",
            "epoch.",
        ),
        ("kafka-4485",),
        (
            "kafka_4485.insync",
            "kafka_4485.leader",
            "kafka_4485.lag",
            "kafka_4485.replication",
            "kafka_4485.stages",
            "kafka_4485.invariants",
        ),
        ("watermark-", "election-"),
        ("isr.", "hw.", "follower.", "lag."),
    ),
    System(
        "kip-46",
        "Replacing failed brokers (KIP-46)",
        "The controller records when a broker failed. Where it stays away for longer than an "
        "interval, tasks are generated that place its replicas elsewhere: on live brokers that do "
        "not hold one already, on other racks where racks are known, spread evenly. Tasks are "
        "stored and carried out one after another, with a hard share of the bandwidth. What has "
        "become pointless is skipped or cancelled, never a running task and never an operator's.",
        ("kip-46",),
        ("heal.",),
        ("kip-46",),
        ("kip_46", "kip_46.stages"),
        ("heal-",),
        ("heal.",),
    ),
    System(
        "topics",
        "Deletion, growth, preferred leaders, shutdown",
        "What else happens to topics, as far as it meets reassignments. A deletion waits for "
        "reassignments and for brokers that are down, and reassignments of a topic that is to be "
        "deleted are given up. Partitions are not added meanwhile. Preferred elections go by the "
        "order of the target, and a broker that shuts down hands its leaders over first.",
        ("kafka-zk",),
        (
            "act.",
            "topic.",
            "shipped.delete",
            "shipped.preferred",
            "shipped.shutdown",
            "election.preferred",
            "election.controlled-shutdown",
        ),
        ("topics",),
        ("kip_236.acts", "topics", "kafka_zk", "selectors"),
        ("zk-8", "zk-13"),
        ("election.preferred",),
    ),
    System(
        "kafka-zk",
        "Shipped controllers (KIP-455, ZooKeeper mode)",
        "What Kafka 2.4 to 3.9 do, whether a reassignment comes by the old znode or by a call: "
        "three lists in the topic's znode say what is assigned, being added and being removed, so "
        "that the original replicas follow from them. None of the five documents asks for it. It "
        "is what became of them, and what clusters can be held against.",
        ("kafka-zk",),
        ("shipped.",),
        ("kafka-zk",),
        ("kafka_zk", "kafka_writes", "copies"),
        ("zk-",),
        ("target.unknown-broker", "election.order", "controller.fenced", "insync.writer"),
        ("kafka-zk",),
    ),
    System(
        "common",
        "Leaders, in-sync sets and controllers",
        "What all the others rest upon: how a partition comes online, who may be elected and when, "
        "what a leader and what a controller may write of a partition's state, how controllers "
        "come into office and how their writes are fenced, and through which states replicas and "
        "partitions go.",
        ("kip-236", "kip-236-amended"),
        (
            "partition.",
            "replica.",
            "election.",
            "leader",
            "state.",
            "isr.change",
            "isr.kept-without-leader",
            "isr.never-empty",
            "isr.no-duplicates",
            "isr.remove",
            "isr.within-assigned",
            "broker.",
            "controller.",
            "message.",
            "znode.",
        ),
        ("leaders", "tables"),
        (
            "selectors",
            "kip_236.rules",
            "controllers",
            "state_machines",
            "kip_236.obligations",
            "kip_236.invariants",
        ),
        ("hypothesis-", "move-12", "move-15", "move-16", "move-18"),
        ("election.unclean",),
        ("kip-236",),
    ),
)
"""Every system: the rows of the documents, then what became of them and what all rest upon."""
