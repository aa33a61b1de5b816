"""Profiles and readings.

A *reading* is one of the named ways to understand a sentence that the documents leave open, or an
amendment to a sentence that does not keep what it promises. A *profile* is a version of the rules:
a complete choice of readings. Both are values that are passed in; no rule asks for a version.

The names of the readings, their values and why each default was chosen are data (`READINGS`), so
that reports and documentation can list them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Final

from reassure_spec.errors import BadUsage


@dataclass(frozen=True, slots=True)
class Reading:
    """One disputed point: its dotted name, the values it can take and why the default is chosen."""

    name: str
    """Stable dotted name, as printed in reports and accepted on the command line."""
    values: tuple[str, ...]
    """The admissible values; the first is the default of profile `kip-236`."""
    why: str
    """Why the first value is the default."""
    source: str
    """The document and section that leave the point open."""


@dataclass(frozen=True, slots=True)
class Readings:
    """A choice of one value for every reading.

    A field is named like its reading, with `_` for `.` and `-`.
    """

    drop_slice: str = "inclusive"
    drop_evaluated: str = "before-expansion"
    drop_protects: str = "nothing"
    drop_order: str = "unordered"
    drop_reevaluated_on_failover: str = "no"
    top_recorded: str = "once-per-chain"
    request_persist: str = "child-first"
    request_conflict: str = "per-partition"
    request_same_target: str = "no-change"
    target_dead_replica: str = "wait"
    target_unknown_broker: str = "refuse"
    target_size: str = "unchecked"
    offline_drop: str = "wait"
    move_expand_first: str = "yes"
    move_recheck_before_stop: str = "no"
    move_cut_isr: str = "yes"
    move_refuses_partition: str = "missing"
    move_same_replicas: str = "as-list"
    move_dead_at_failover: str = "re-elect"
    move_interrupt: str = "remove-path"
    move_online_from: str = "in-sync"
    election_unclean: str = "no"
    election_preferred: str = "asked"
    election_order: str = "assignment"
    controller_fenced: str = "yes"
    insync_writer: str = "either"
    heal_redundancy: str = "assigned-live"
    heal_stale_task: str = "execute"
    heal_regenerate: str = "from-assignment"
    heal_replaces: str = "one-broker"
    legacy_rewrite: str = "ignored"
    legacy_original_replicas: str = "client"
    isr_members: str = "stored"
    hw_scope: str = "per-leader-term"
    hw_over_stored_isr: str = "no"
    hw_served_from: str = "at-once"
    isr_entry: str = "high-watermark"
    follower_truncation: str = "own-high-watermark"
    lag_credit: str = "two-cases"
    lag_initial: str = "now"
    lag_initial_leader_end: str = "zero"
    lag_clock_read: str = "before-end"

    def as_dict(self) -> dict[str, str]:
        """Return the choice keyed by dotted reading name, in the register's order."""
        return {reading.name: getattr(self, field_name(reading.name)) for reading in READINGS}


READINGS: Final[tuple[Reading, ...]] = (
    Reading(
        "drop.slice",
        ("inclusive", "exclusive"),
        "only a slice that includes element top keeps the document's own two notes",
        "KIP-236, drop rule, step 2",
    ),
    Reading(
        "drop.evaluated",
        ("before-expansion", "after-expansion"),
        "after the target is added every fresh target replica would be dropped",
        "KIP-236, drop rule, step 2",
    ),
    Reading(
        "drop.protects",
        ("nothing", "target"),
        "the text protects nothing; the amended profile protects the replicas of the new target",
        "KIP-236, drop rule, step 2",
    ),
    Reading(
        "drop.order",
        ("unordered", "by-lag"),
        "the later draft no longer sorts; a controller does not know replica lag",
        "KIP-236, drop rule, both drafts",
    ),
    Reading(
        "drop.reevaluated-on-failover",
        ("no", "yes"),
        "a failover is neither the start nor a change of a reassignment",
        "KIP-236, drop rule, step 2",
    ),
    Reading(
        "top.recorded",
        ("once-per-chain", "each-change"),
        "recomputed at each change the drop set is empty for ever and the assignment grows",
        "KIP-236, drop rule, step 1",
    ),
    Reading(
        "request.persist",
        ("child-first", "effects-first"),
        "a crash between the first effect and the child znode loses top",
        "KIP-236, new znode protocol, step 3",
    ),
    Reading(
        "request.conflict",
        ("per-partition", "whole-request"),
        "partitions of one request are independent of each other",
        "KIP-236, new znode protocol, step 3.2",
    ),
    Reading(
        "request.same-target",
        ("no-change", "restart"),
        "asking again for the target in flight asks for nothing new",
        "KIP-236, new znode protocol, step 3.2 (silent)",
    ),
    Reading(
        "target.dead-replica",
        ("wait", "refuse"),
        "a broker that is down comes back; KAFKA-4214 removed the refusal",
        "KAFKA-42, section 4",
    ),
    Reading(
        "target.unknown-broker",
        ("refuse", "wait"),
        "a broker that was never registered will not come back; a typing error must not wait",
        "silent in all documents",
    ),
    Reading(
        "target.size",
        ("unchecked", "at-least-min-isr"),
        "the text checks only the original length; the amended profile checks the target as well",
        "KIP-236, drop rule, step 1 (silent)",
    ),
    Reading(
        "offline.drop",
        ("wait", "as-written", "skip"),
        "the text has no precondition and can drop the last copy in sync, so the drop waits for "
        "a leader in sync; the amended profile forbids it until then",
        "KIP-236, drop rule, step 2 (silent)",
    ),
    Reading(
        "move.expand-first",
        ("yes", "no"),
        "replicas outside the assignment cannot join the in-sync set (KAFKA-1097)",
        "KAFKA-42, section 2",
    ),
    Reading(
        "move.recheck-before-stop",
        ("no", "yes"),
        "the text does not look again; the amended profile re-reads the in-sync set before a stop",
        "KAFKA-42, section 2, step 5",
    ),
    Reading(
        "move.cut-isr",
        ("yes", "no"),
        "a stopped replica that stays in the in-sync set can be elected; the first text is silent",
        "KAFKA-42, section 2, step 5 (silent)",
    ),
    Reading(
        "move.refuses-partition",
        ("missing", "existing"),
        "the text refuses partitions that exist; its own fourth test case those that do not",
        "KAFKA-42, section 4, condition 1",
    ),
    Reading(
        "move.same-replicas",
        ("as-list", "as-set"),
        "a new order of the same replicas changes the preferred leader and is worth a reassignment",
        "KAFKA-42, section 4, condition 2",
    ),
    Reading(
        "move.dead-at-failover",
        ("re-elect", "refuse"),
        "the failure case speaks of this very moment, the listener's condition of targets at large",
        "KAFKA-42, failure case 3; KAFKA-42, section 4, condition 3",
    ),
    Reading(
        "move.interrupt",
        ("remove-path", "log-only"),
        "a path that stays keeps every further command from starting",
        "KAFKA-42, failure case 2b; KAFKA-42, section 1.3",
    ),
    Reading(
        "move.online-from",
        ("in-sync", "assigned"),
        "a replica that is elected in step 4 has to be online, and is assigned only in step 6",
        "KAFKA-42, section 6, state 2; KAFKA-42, section 2, steps 3 to 6",
    ),
    Reading(
        "election.unclean",
        ("no", "last-resort"),
        "a replica out of sync lacks committed records; the first text takes one where no other is",
        "KAFKA-42, section 5, offline leader selector",
    ),
    Reading(
        "election.preferred",
        ("asked", "automatic"),
        "an election interrupts clients; that brokers rebalance leaders by themselves is a setting "
        "of theirs that no znode shows",
        "KAFKA-42, section 5, preferred leader selector (silent)",
    ),
    Reading(
        "election.order",
        ("assignment", "in-sync-set"),
        "the order of the in-sync set means nothing; Kafka took it before 0.8.2 (KAFKA-1503), and "
        "for a shutdown before 0.10.1 (KAFKA-3670)",
        "KAFKA-42, section 5 (silent)",
    ),
    Reading(
        "controller.fenced",
        ("yes", "no"),
        "from Kafka 2.1 a controller's write fails once the controller epoch is another one",
        "silent in KAFKA-42; KAFKA-6082",
    ),
    Reading(
        "insync.writer",
        ("either", "leader", "controller"),
        "until Kafka 2.6 the leader writes the in-sync set, from 2.7 the controller for it; "
        "brokers of both may run together",
        "KAFKA-4485, implementation, item 3; KIP-497",
    ),
    Reading(
        "heal.redundancy",
        ("assigned-live", "isr-full"),
        "a broker that is back and catching up already makes a task pointless, says the text",
        "KIP-46, cancelling tasks (desired number of replicas)",
    ),
    Reading(
        "heal.stale-task",
        ("execute", "skip"),
        "the text looks at the number of replicas only, not at which of them the task would remove",
        "KIP-46, cancelling tasks (silent)",
    ),
    Reading(
        "heal.regenerate",
        ("from-assignment", "from-plan"),
        "the second option of the text schedules the same tasks again and skips what is satisfied",
        "KIP-46, controller failure, options 1 and 2",
    ),
    Reading(
        "heal.replaces",
        ("one-broker", "all-due"),
        "tasks are generated for the broker whose interval has passed; others are not looked at",
        "KIP-46 beyond the extract (generating tasks; silent)",
    ),
    Reading(
        "legacy.rewrite",
        ("ignored", "taken-up"),
        "the protocol begins with the creation of the znode; later controllers react to no more",
        "KIP-236, legacy znode protocol, steps 1 and 2",
    ),
    Reading(
        "legacy.original-replicas",
        ("client", "controller"),
        "the text adds the field, puts off who fills it, and says the controller remembers nothing",
        "KIP-236, public interfaces (deferred)",
    ),
    Reading(
        "isr.members",
        ("stored", "memoryless"),
        "brokers store the set and change it by conditional write; the text defines it afresh",
        "KAFKA-4485, definitions (the ISR set)",
    ),
    Reading(
        "hw.scope",
        ("per-leader-term", "across-clean-elections"),
        "as written the high watermark can go back when the leader changes",
        "KAFKA-4485, guarantee 3",
    ),
    Reading(
        "hw.over-stored-isr",
        ("no", "yes"),
        "the text takes the smallest end of the pseudo-ISR alone; stored members stay electable",
        "KAFKA-4485, definitions (the high watermark)",
    ),
    Reading(
        "hw.served-from",
        ("at-once", "end-at-election"),
        "the text is silent; a new leader's mark may be older than what was shown before it",
        "KAFKA-4485, guarantee 3 (silent)",
    ),
    Reading(
        "isr.entry",
        ("high-watermark", "end-at-election"),
        "the text compares with the high watermark, and a new leader's may be too old",
        "KAFKA-4485, definitions (the ISR set)",
    ),
    Reading(
        "follower.truncation",
        ("own-high-watermark", "leader-end", "common-prefix"),
        "the text is silent; brokers of its time cut their logs at their own high watermark",
        "KAFKA-4485 (silent)",
    ),
    Reading(
        "lag.credit",
        ("two-cases", "last-fetch"),
        "the mail has two versions; the later one tells the two cases apart",
        "KAFKA-4485, implementation, item 2",
    ),
    Reading(
        "lag.initial",
        ("now", "now-if-in-sync"),
        "the text names no first value; now is the simplest",
        "KAFKA-4485, implementation, item 1 (silent)",
    ),
    Reading(
        "lag.initial-leader-end",
        ("zero", "leader-end"),
        "the text names no first value; zero is the simplest",
        "KAFKA-4485, implementation, item 1 (silent)",
    ),
    Reading(
        "lag.clock-read",
        ("before-end", "after-end"),
        "the text names no order; only the clock before the log end is sound",
        "KAFKA-4485, implementation, item 1 (silent)",
    ),
)
"""Every reading, in the order in which reports list them."""


def field_name(reading_name: str) -> str:
    """Return the field of `Readings` that holds the reading with this dotted name.

    >>> field_name("drop.reevaluated-on-failover")
    'drop_reevaluated_on_failover'
    """
    return reading_name.replace(".", "_").replace("-", "_")


_AMENDED: Final = Readings(
    drop_protects="target",
    target_size="at-least-min-isr",
    offline_drop="skip",
    move_recheck_before_stop="yes",
    hw_scope="across-clean-elections",
    hw_over_stored_isr="yes",
    hw_served_from="end-at-election",
    isr_entry="end-at-election",
    follower_truncation="common-prefix",
    lag_initial="now-if-in-sync",
    lag_initial_leader_end="leader-end",
)

PROFILES: Final[Mapping[str, Readings]] = MappingProxyType(
    {
        "kafka-42": Readings(
            target_dead_replica="refuse",
            target_unknown_broker="wait",
            move_expand_first="no",
            move_cut_isr="no",
            election_unclean="last-resort",
            election_preferred="automatic",
            election_order="in-sync-set",
            controller_fenced="no",
        ),
        "kip-46": Readings(),
        "kip-236-legacy": Readings(),
        "kip-236": Readings(),
        "kip-236-amended": _AMENDED,
        "kafka-4485": Readings(),
        "kafka-zk": Readings(target_unknown_broker="wait", election_preferred="automatic"),
    }
)
"""The profiles by name. A profile is nothing but its readings and the clauses that list it."""


BUILT_ON: Final[Mapping[str, str]] = MappingProxyType(
    {"kip-236-legacy": "kip-236", "kip-46": "kip-236"}
)
"""The profiles that stand on top of another one, all of whose clauses hold under them as well."""


class UnknownReading(BadUsage):
    """A reading or profile name, or the value of a reading, that the register does not have."""


def get_profile(name: str) -> Readings:
    """Return the readings of the named profile.

    Raises UnknownReading when there is no such profile; the message lists those there are.
    """
    try:
        return PROFILES[name]
    except KeyError:
        known = ", ".join(PROFILES)
        raise UnknownReading(f"there is no profile {name!r}; the profiles are: {known}") from None


def override_readings(readings: Readings, changes: Mapping[str, str]) -> Readings:
    """Return the readings with some points settled differently.

    `changes` maps dotted reading names to values. Raises UnknownReading for a name or a value that
    the register does not have.

    >>> override_readings(Readings(), {"drop.slice": "exclusive"}).drop_slice
    'exclusive'
    """
    register = {reading.name: reading for reading in READINGS}
    for name, value in changes.items():
        if name not in register:
            raise UnknownReading(
                f"there is no reading {name!r}; the readings are: {', '.join(register)}"
            )
        if value not in register[name].values:
            raise UnknownReading(
                f"reading {name} has no value {value!r}; it is one of: "
                f"{', '.join(register[name].values)}"
            )
    return replace(readings, **{field_name(name): value for name, value in changes.items()})


assert {field_name(reading.name) for reading in READINGS} == {f.name for f in fields(Readings)}
