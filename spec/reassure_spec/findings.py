"""The findings: where a document contradicts itself, is silent or loses data.

A finding is about a document, not about a program. Each names the smallest instance that shows it,
the clauses it concerns and the reading that settles it, if there is one. Here stands what it says;
what shows it (a theorem that is refuted, an exploration, a scenario) names its id. Where nothing
can, because the finding is about words alone, `words_only` says why.

Ids are never reused. `WITHDRAWN` says of every number that is missing why it was taken back.

Words in instances: A assigned replicas, I in-sync replicas in stored order, L leader, T target,
m min.insync.replicas, X the limit of the lag. `[1,2] -> [1,3]` asks to move from one list to the
other.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final

from reassure_spec.errors import ReassureError

KAFKA_42: Final = "KAFKA-42"
KAFKA_4485: Final = "KAFKA-4485"
KIP_236: Final = "KIP-236"
KIP_46: Final = "KIP-46"
KIP_455: Final = "KIP-455"

_KAFKA_42: Final = ("kafka-42",)
_KAFKA_4485: Final = ("kafka-4485",)
_KIP_236: Final = ("kip-236",)
_BOTH: Final = ("kip-236", "kip-236-amended")
_KAFKA_ZK: Final = ("kafka-zk",)
_KIP_46: Final = ("kip-46",)
_LEGACY: Final = ("kip-236-legacy",)


@dataclass(frozen=True, slots=True)
class Finding:
    """One place where a document does not hold."""

    id: str
    """Area and number, as in drop-4."""
    title: str
    """What is wrong, in a few words."""
    document: str
    """The document it is about."""
    clauses: tuple[str, ...]
    """The clauses concerned."""
    readings: tuple[str, ...]
    """The readings that settle it or depend on it."""
    profiles: tuple[str, ...]
    """The profiles in which it can be met."""
    instance: str
    """The smallest instance."""
    statement: str
    """What the finding says, in full."""
    observed: str = ""
    """What was seen of it on a real cluster, with the version, "" where nobody has looked."""
    words_only: str = ""
    """Why nothing can be run that would show it, "" where something has to show it."""


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A finding that was taken back: its number is never given to another."""

    id: str
    title: str
    """What it said."""
    reason: str
    """Why it does not hold."""


class UnknownFinding(ReassureError):
    """An id that no finding has."""


_DROP: Final = (
    Finding(
        "drop-1",
        "The exclusive slice contradicts the notes",
        KIP_236,
        ("drop.slice.inclusive", "drop.leader-kept", "drop.isr-at-least-min"),
        ("drop.slice",),
        _KIP_236,
        "A=[1] I=[1] L=1 top=1 m=1: drop {1}; A=[1,2] I=[1,2] L=1 top=2 m=2: one in sync is left",
        "Read as excluding element top, the slice drops the leader of a single replica and takes "
        "the in-sync set below the minimum. The text's two notes say that neither can happen.",
    ),
    Finding(
        "drop-2",
        "The exclusive slice drops a replica at every new request",
        KIP_236,
        ("drop.slice.inclusive",),
        ("drop.slice",),
        _KIP_236,
        "A=[1,2] I=[1,2] L=1 T=[2,3]: drop {2}, which is in the old and in the new assignment",
        "The text evaluates the rule initially as well, where nothing is left over yet. Without "
        "element top one replica of the assignment goes at every new request, a copy that is in "
        "sync where all are. With it nothing goes while the leader is in sync and the in-sync set "
        "is assigned (drop-19 is about where they are not).",
    ),
    Finding(
        "drop-3",
        "After the target was added the rule drops the target",
        KIP_236,
        ("drop.before-expansion",),
        ("drop.evaluated",),
        _KIP_236,
        "A=[1,2] I=[1,2] top=2 T=[1,3]; A becomes [1,2,3]: drop {3}, and so for ever",
        "The text does not say whether the assigned replicas are taken before or after the target "
        "joins them. Taken after, every target replica that still copies is dropped.",
    ),
    Finding(
        "drop-4",
        "A change drops in-sync replicas of its own target",
        KIP_236,
        ("drop.protect-target",),
        ("drop.protects",),
        _KIP_236,
        "[1,2] -> [1,3], 3 joins the in-sync set, change to [4,3]: drop {3}",
        "The rule looks at the leader and the in-sync set, not at what is asked for. A finished "
        "copy that the new target wants is deleted and made again. A failover before the drop "
        "forgets it, and then the reassignment completes with that copy.",
    ),
    Finding(
        "drop-5",
        "Evaluated again, the rule throws finished copies away without end",
        KIP_236,
        ("drop.carried-out",),
        ("drop.reevaluated-on-failover", "request.same-target"),
        _KIP_236,
        "[1,2] -> [1,3], 3 joins, the controller restarts the reassignment: 3 is deleted",
        "With more than top replicas assigned each evaluation drops some. If a failover or a "
        "repeated request counts as a change, the state repeats exactly and nothing completes.",
    ),
    Finding(
        "drop-6",
        "A cancel can delete an original replica",
        KIP_236,
        ("drop.keep-top",),
        ("drop.protects",),
        _KIP_236,
        "[1,2] -> [1,3]; 2 leaves the in-sync set and 3 joins; cancel to [1,2]: drop {2}, keep {3}",
        "The rule does not know which replicas are original. While the in-sync set does not shrink "
        "and nobody is elected, an original in-sync replica is safe; otherwise it is not.",
    ),
    Finding(
        "drop-7",
        "An intermediate leader stays",
        KIP_236,
        ("drop.leader-kept",),
        (),
        _BOTH,
        "[1,2] -> [1,3]; 3 joins and is elected; cancel to [1,2]: 3 leads on",
        "The stated motive is to be rid of intermediate replicas that become the leader, but the "
        "first note keeps whoever leads.",
    ),
    Finding(
        "drop-8",
        "Redundancy collapses when the number of replicas was to grow",
        KIP_236,
        ("drop.keep-top",),
        ("drop.protects",),
        _KIP_236,
        "[1] -> [1,2,3,4]; 2 and 3 join; any change: the in-sync set goes from [1,2,3] to [1]",
        "Top is the length of the old assignment. Where the target is longer, a change falls back "
        "to the old number of copies, which the notes allow when m=1.",
    ),
    Finding(
        "drop-10",
        "The length of the target is never checked",
        KIP_236,
        ("target.at-least-min-isr",),
        ("target.size",),
        _KIP_236,
        "A=[1,2] m=2 T=[1]: once complete one replica is in sync and nobody can write",
        "Only the original length is compared with min.insync.replicas, though it is the target "
        "that is left in the end.",
    ),
    Finding(
        "drop-11",
        "Without a leader the rule deletes the last in-sync copy",
        KIP_236,
        ("drop.offline.skip", "isr.never-empty"),
        ("offline.drop",),
        _KIP_236,
        "A=[1,2] I=[2] L=-1 top=1: drop {1,2}",
        "The notes hold because the leader is in sync and ranked first. Where nobody leads, the "
        "number that says so takes the leader's place in the ranking.",
    ),
    Finding(
        "drop-12",
        "The original assignment means two things after a change",
        KIP_236,
        ("top.once-per-chain", "top.bounds-assigned"),
        ("top.recorded",),
        _KIP_236,
        "[1,2] -> [1,3] -> [4,5] with top taken anew: A=[1,2,3,4,5]",
        "Computed from what is assigned at each change, top is never smaller than the assignment, "
        "nothing is ever dropped and replicas pile up. Stored once, they are bounded by top and "
        "the length of the target.",
    ),
    Finding(
        "drop-13",
        "The controller both remembers and forgets the original replicas",
        KIP_236,
        ("top.original-length",),
        ("legacy.original-replicas",),
        _BOTH,
        "a field original_replicas is added for rolling back; the rollback section says that the "
        "controller does not remember the old replicas",
        "The later draft takes a field over from another proposal, puts off who fills it in, and "
        "keeps the sentence that it makes untrue.",
    ),
    Finding(
        "drop-15",
        "The result depends on the order of the in-sync set",
        KIP_236,
        ("drop.rank.leader-isr-rest", "drop.keep-top"),
        ("drop.order",),
        _BOTH,
        "A=[1,2,3] L=1 top=2: I=[1,3,2] keeps 3, I=[1,2,3] keeps 2",
        "The in-sync set is stored in no particular order, and the rule ranks by it. Any choice "
        "inside a rank has to be accepted.",
    ),
    Finding(
        "drop-16",
        "A failover between the record of a change and its drop loses the drop",
        KIP_236,
        ("drop.carried-out", "top.bounds-assigned"),
        ("drop.reevaluated-on-failover",),
        _BOTH,
        "[1,2] -> [1,3], A=[1,2,3] I=[1]; change to [2] is recorded, the controller dies: 3 stays, "
        "which the drop would have taken",
        "The rule is evaluated when the reassignment changes, which the next controller does not "
        "see. It can tell from the record where the target is not assigned yet or more replicas "
        "are than any drop leaves; otherwise they stay until completion.",
    ),
    Finding(
        "drop-17",
        "Sorting by lag can drop a replica that is wanted",
        KIP_236,
        ("drop.keep-top",),
        ("drop.order",),
        _KIP_236,
        "A=[1,2,3] I=[1], cancel to [1,2], lag of 2 is 50, of 3 is 10: sorted drops 2, unsorted 3",
        "The first draft ranks the replicas out of sync by their lag, the later one does not. It "
        "matters exactly where fewer than top replicas are in sync and more than top are assigned, "
        "and neither draft looks at the target.",
    ),
    Finding(
        "drop-18",
        "After a drop and an election a failover drops one replica more",
        KIP_236,
        ("drop.carried-out", "drop.protect-target"),
        ("drop.protects",),
        ("kip-236-amended",),
        "[2] -> [1,4], 1 joins; change to [1,3]: drop {4}, A=[2,1]; 2 dies, 1 leads, 2 is in sync "
        "again; failover before 3 is added: A=[2,1] I=[1,2] L=1 T=[1,3] top=1, drop {2}",
        "A drop that protects the target may leave more than top replicas. Until the target is "
        "added this looks like a change whose drop is still due, and the next controller evaluates "
        "it anew. Where the leader is the same it comes to the same replicas. After an election "
        "the ranking is another: a replica that the drop kept, here the original and in sync, "
        "goes. Nothing that is promised breaks, but the copy is lost.",
    ),
    Finding(
        "drop-19",
        "Evaluated initially, the rule is idle or throws a healthy copy away",
        KIP_236,
        ("drop.carried-out", "drop.keep-top", "drop.offline.skip"),
        ("offline.drop", "drop.slice", "drop.evaluated"),
        _KIP_236,
        "A=[1] I=[1] L=-1 top=1, the first request: drop {1}",
        "The text evaluates the drop initially, and each time the reassignment changes. At a first "
        "request top is the number assigned. Where the leader is in sync and the in-sync set is "
        "assigned nothing is dropped then; where nobody leads, or a stranger, the place that it "
        "takes in the ranking costs an assigned replica its own, in the smallest case the only "
        "copy. So the rules here evaluate at changes only, which is the same wherever the rule is "
        "sound; read as evaluated after the expansion they do so at a first request as well, since "
        "it drops something there.",
    ),
    Finding(
        "drop-20",
        "A check forbids to repair a partition with too few replicas",
        KIP_236,
        ("top.at-least-min-isr",),
        (),
        _BOTH,
        "A=[1] I=[1] m=2: the request for [1,2] is refused, and so is every other",
        "The length of the original assignment must reach min.insync.replicas. Where the minimum "
        "was raised, or a topic was made with too few replicas, nobody can write, and the "
        "reassignment that would add the missing replica is ignored with a warning.",
    ),
)

_HYPOTHESES: Final = (
    Finding(
        "hypothesis-1",
        "The leader has to be in sync",
        KIP_236,
        ("drop.isr-at-least-min", "leader.in-isr"),
        (),
        _KIP_236,
        "A=[1,2] I=[2] L=1 top=1 m=1: drop {2}, nobody is left in sync",
        "Silent in the text. Without it the leader takes a place among the kept that no in-sync "
        "replica has. A leader that is not even assigned takes one as well: A=[1] I=[] L=2 top=1 "
        "drops {1}, and nothing is left.",
    ),
    Finding(
        "hypothesis-2",
        "The in-sync set has to be within the assignment",
        KIP_236,
        ("isr.within-assigned",),
        ("move.expand-first",),
        _KIP_236,
        "A=[1,2,3] I=[1,5,2] L=1 top=2: drop {2,3}, one assigned replica is left in sync",
        "Silent in the text. An in-sync replica that is not assigned takes a place among the kept, "
        "and the first reassignment (KAFKA-42) makes such replicas.",
    ),
    Finding(
        "hypothesis-3",
        "The in-sync set has to be free of duplicates",
        KIP_236,
        ("isr.no-duplicates",),
        (),
        _KIP_236,
        "I=[1,1] m=2: two entries, one copy",
        "Silent in the text. The minimum counts entries.",
    ),
    Finding(
        "hypothesis-4",
        "Top has to reach the minimum at the drop, not only at creation",
        KIP_236,
        ("top.at-least-min-isr", "drop.isr-at-least-min"),
        (),
        _BOTH,
        "I=[1,2,3] top=2, the minimum is raised from 2 to 3 after the check: two are left in sync",
        "Silent in the text, which compares once. A topic's minimum can be raised at any time.",
    ),
    Finding(
        "hypothesis-5",
        "The in-sync set has to be the same when the drop is written",
        KIP_236,
        ("state.write-conditional",),
        (),
        _BOTH,
        "drop {3} is computed from I=[1,2,3]; 2 leaves meanwhile: one is left in sync, m=2",
        "Silent in the text. The write has to be conditional on the version that was read.",
    ),
)

_PROTOCOL: Final = (
    Finding(
        "protocol-1",
        "The order of the text loses top in a crash",
        KIP_236,
        ("child.before-effects", "top.original-length"),
        ("request.persist",),
        _BOTH,
        "[1,2] -> [1,3]: A is written as [1,2,3], the controller dies before the record is made; "
        "the next one computes top=3",
        "The text starts the reassignment, then records it, then removes the request. Started "
        "first, it changes what top is computed from. The record has to come first.",
    ),
    Finding(
        "protocol-2",
        "The format of a request is a fragment",
        KIP_236,
        ("request.refuse.malformed",),
        (),
        _BOTH,
        "the example has no braces and no version, and its legacy flag is only mentioned",
        "No content that could be written is shown. The formats here are those of the prototype "
        "that was published with the proposal.",
    ),
    Finding(
        "protocol-3",
        "What a new controller does with requests is left out",
        KIP_236,
        ("request.consumed", "top.once-per-chain"),
        (),
        _BOTH,
        "a request for the target in flight, found at failover: is it removed, is top kept?",
        "The list for failover says which reassignments go on. That requests are to be removed, "
        "records written and top kept has to be inferred.",
    ),
    Finding(
        "protocol-4",
        "Whether one bad partition spoils a request is open",
        KIP_236,
        ("request.consumed",),
        ("request.conflict",),
        _BOTH,
        "a request for two partitions, one of them unknown",
        "Conflicting requests are ignored, says the text; it does not say whether that means the "
        "whole request or the partition. Partitions are taken one by one.",
    ),
    Finding(
        "protocol-5",
        "Children of a znode have no order",
        KIP_236,
        ("request.order.sequence",),
        (),
        _BOTH,
        "request_7 asks for [2,3] and request_8 for [2,4]: carried out in the order of the list "
        "that ZooKeeper gives, either can win",
        "The text relies on the sequence numbers without saying that they are to be sorted.",
    ),
    Finding(
        "protocol-7",
        "The same target again: a change or not",
        KIP_236,
        ("request.same-target.no-change",),
        ("request.same-target",),
        _BOTH,
        "[1,2] -> [1,3], then [1,3] again",
        "The text does not say whether it counts as a change, and with it whether something is "
        "dropped. Asking again changes nothing here.",
    ),
    Finding(
        "protocol-9",
        "A replica that was cut may join again before the assignment is written",
        KIP_236,
        ("isr.change.stopped-stays-out", "complete.isr-before-assigned"),
        (),
        _BOTH,
        "[1] -> [2]: 2 leads, 1 is cut, 1 joins, 1 is cut, without end",
        "Replicas leave the in-sync set before they leave the assignment. The text does not say "
        "that a stopped replica stays out in between; by the definition of the in-sync set it may "
        "join as soon as it has caught up.",
    ),
)

_MOVE: Final = (
    Finding(
        "move-1",
        "Stopped replicas stay in the in-sync set",
        KAFKA_42,
        ("move.stop.cut-isr", "complete.isr-before-assigned"),
        ("move.cut-isr",),
        _KAFKA_42,
        "[1] -> [2]: after step 5 I=[1,2] and 1 is stopped",
        "Step 5 stops the old replicas without taking them out of the in-sync set, so that they "
        "can still be elected.",
    ),
    Finding(
        "move-2",
        "A death then elects a stopped replica",
        KAFKA_42,
        ("move.stop.cut-isr", "election.live"),
        ("move.cut-isr",),
        _KAFKA_42,
        "[1,2] -> [2,3], 2 leads: it dies after step 5, and 1 is elected without its records",
        "In the window of move-1 the selector takes a replica whose records are deleted, while a "
        "live one has them.",
    ),
    Finding(
        "move-3",
        "The new leader can die between its election and the stop",
        KAFKA_42,
        ("move.stop.recheck", "complete.leader-in-target"),
        ("move.recheck-before-stop",),
        ("kafka-42", "kip-236"),
        "[1,2] -> [3,4]: 3 is elected and dies, 1 is elected, step 5 stops 1",
        "Step 5 looks neither at the leader nor at the in-sync set again, even where the stopped "
        "are taken out of it.",
    ),
    Finding(
        "move-4",
        "An unclean election after the stop finds an empty replica",
        KAFKA_42,
        ("move.selector.offline", "election.clean"),
        ("election.unclean", "move.cut-isr"),
        _KAFKA_42,
        "[1] -> [2], move.cut-isr=yes: after step 5 broker 2 dies, 1 is assigned and alive and "
        "leads empty",
        "The last resort is any live assigned replica, and the assignment still names those that "
        "were stopped. Where they stay in the in-sync set nobody needs a last resort (move-2).",
    ),
    Finding(
        "move-5",
        "Leader and in-sync set lie outside the assignment meanwhile",
        KAFKA_42,
        ("move.start.expand-first", "leader.assigned", "isr.within-assigned"),
        ("move.expand-first",),
        _KAFKA_42,
        "[1] -> [2] after step 4: 2 leads and A=[1]",
        "The assignment is written only at the end. The drop rule of KIP-236 needs the in-sync set "
        "within the assignment (hypothesis-2).",
    ),
    Finding(
        "move-6",
        "Refusing a dead replica gives a half-done reassignment up",
        KAFKA_42,
        ("move.listener.refuse-dead", "move.isr.within-assigned"),
        ("target.dead-replica",),
        _KAFKA_42,
        "[1,2] -> [3,4]: step 5, 3 dies, failover: the path is removed, A=[1,2] are stopped",
        "After a failover the listener's third condition also meets reassignments that have begun. "
        "What was done is neither finished nor taken back.",
    ),
    Finding(
        "move-7",
        "New replicas of a reassignment that is given up run on",
        KAFKA_42,
        ("move.cancel.no-strays",),
        ("move.expand-first",),
        _KAFKA_42,
        "[1,2] -> [3,4]: step 2, 3 dies, failover: 4 goes on copying, and is assigned nowhere",
        "Nothing stops what was started.",
    ),
    Finding(
        "move-8",
        "Killing the command after the stop loses the records",
        KAFKA_42,
        ("move.tool.interrupt", "move.assigned.holds-committed"),
        (),
        _KAFKA_42,
        "[1] -> [2]: step 5, the command is killed and removes the path, failover: A=[1], empty",
        "The command may take the path away while the controller is between stop and assignment. "
        "Without the failover it reports failure of what then completes.",
    ),
    Finding(
        "move-10",
        "One replica may be left in sync where two were asked for",
        KAFKA_42,
        ("move.step.stop-old", "move.stop.recheck"),
        ("move.cut-isr", "move.recheck-before-stop"),
        _KAFKA_42,
        "[1,2] -> [3,4], move.cut-isr=yes: step 4, 4 dies, step 5: I=[3]",
        "Who of the target has died since step 3 is not missed when the old replicas are taken out "
        "of the in-sync set and stopped, and no minimum is looked at. Where they stay in the set "
        "it only looks larger (move-1).",
    ),
    Finding(
        "move-11",
        "A condition of the listener is the wrong way round",
        KAFKA_42,
        ("move.listener.refuse-missing", "request.refuse.unknown-partition"),
        ("move.refuses-partition",),
        _KAFKA_42,
        "unless the partition existed before: taken to the letter nothing ever starts",
        "Its own fourth test case refuses partitions that do not exist.",
    ),
    Finding(
        "move-12",
        "No transition stops a live replica",
        KAFKA_42,
        ("move.replica.states", "replica.transition.valid-previous"),
        (),
        _KAFKA_42,
        "a replica is gone only from offline, and offline only when its broker is down",
        "Step 5 stops replicas of brokers that are up. The states of the text have no way for it.",
    ),
    Finding(
        "move-13",
        "Equal as lists or as sets",
        KAFKA_42,
        ("move.listener.refuse-same", "request.no-op.nothing-started"),
        ("move.same-replicas",),
        _KAFKA_42,
        "[1,2] -> [2,1]",
        "A request for the same replicas is refused. Compared as sets, the preferred leader can "
        "never be changed.",
    ),
    Finding(
        "move-14",
        "The steps do not add the target to the assignment before it is copied",
        KAFKA_42,
        ("expand.carried-out", "move.start.expand-first"),
        ("move.expand-first",),
        _KAFKA_42,
        "[1] -> [2]: 2 is started while A=[1]; a leader that counts assigned replicas only never "
        "lets it in",
        "The later code writes the union first (KAFKA-1097).",
    ),
    Finding(
        "move-15",
        "Offline again from offline is forbidden",
        KAFKA_42,
        ("replica.transition.valid-previous",),
        (),
        _KAFKA_42,
        "a replica that was stopped and whose broker dies afterwards",
        "The valid previous states of an offline replica are new and online. So the death of a "
        "broker after a failed attempt is illegal. Later tables allow it.",
    ),
    Finding(
        "move-16",
        "Two new states are four",
        KAFKA_42,
        ("move.replica.states",),
        (),
        _KAFKA_42,
        "section 6 announces two states and lists four",
        "A slip of the text that leaves open which states are meant to be new.",
    ),
    Finding(
        "move-18",
        "After a failover a target replica is online without a legal transition",
        KAFKA_42,
        ("move.replica.states", "replica.transition.valid-previous"),
        ("move.expand-first",),
        _KAFKA_42,
        "A=[1,2] T=[2,3]: 3 is started and joins, failover; in step 3 it is non-existent",
        "A new controller knows the assigned replicas only. A replica of the target that was "
        "started before it took office has no state there, from which none leads online.",
    ),
    Finding(
        "move-19",
        "A replica that was cut may join again before it is stopped",
        KAFKA_42,
        ("move.stop.cut-isr", "move.step.stop-old"),
        ("move.cut-isr",),
        _KAFKA_42,
        "[1] -> [2]: 2 leads, 1 is cut, 1 joins, 1 is cut, without end",
        "As protocol-9, in the repair of move-1. A replica runs on between the cut and its stop, "
        "and may join as soon as it has caught up; then it is cut again, and the state is the one "
        "before. The move never ends though nothing fails, and looking again before the stop does "
        "not help.",
    ),
    Finding(
        "move-20",
        "A failure case carries on what a condition of the listener gives up",
        KAFKA_42,
        ("move.failover.re-elects", "move.listener.refuse-dead"),
        ("move.dead-at-failover",),
        _KAFKA_42,
        "[1,2] -> [3,4]: step 4 elects 3, 3 dies, failover: 4 is elected, or 3 is dead and refused",
        "The third failure case elects among the live replicas of the target where the new leader "
        "has died. The listener starts no reassignment with a dead replica in the target, and by "
        "the first case a new controller starts from scratch. The failure case is the more "
        "particular of the two and is followed.",
    ),
    Finding(
        "move-21",
        "An interrupted command only logs, and removes the path",
        KAFKA_42,
        ("move.tool.interrupt", "move.tool.one-at-a-time"),
        ("move.interrupt",),
        _KAFKA_42,
        "[1] -> [2], 2 never comes in sync, the command is interrupted, a second one is started",
        "The shutdown hook of the first section looks whether the reassignment is complete and "
        "logs that. Failure case 2b has the killed command delete the admin path, so that it can "
        "be retried. Without that no further command can start.",
    ),
    Finding(
        "move-22",
        "Between steps 3 and 6 a replica of the target is neither new nor online",
        KAFKA_42,
        ("move.replica.online", "move.replica.new-follows", "move.step.elect"),
        ("move.online-from", "move.expand-first"),
        _KAFKA_42,
        "[1] -> [2]: step 4 makes 2 the leader, A=[1] until step 6",
        "A replica is online once it is started and part of the assigned replicas, and only then "
        "may it lead. The target is assigned in step 6 and leads from step 4 on. To the letter a "
        "new replica is told to lead, which its own state forbids.",
    ),
    Finding(
        "move-23",
        "A new replica may only follow, and is elected",
        KAFKA_42,
        ("move.replica.new-follows", "move.selector.offline"),
        (),
        _KAFKA_42,
        "[1] -> [2]: 2 is started and joins the in-sync set, 1 dies before step 3",
        "In its state a new replica gets become-follower requests only. The selector for "
        "partitions without a leader takes whoever is alive and in sync, and asks for no state.",
    ),
)

_WATERMARK: Final = (
    Finding(
        "watermark-1",
        "A caught-up follower that does not fetch leaves the pseudo-ISR",
        KAFKA_4485,
        ("isr.pseudo.close-follower",),
        ("lag.credit",),
        _KAFKA_4485,
        "X=1: append and fetch at ms 1, no fetch at ms 2: true lag 0, estimated lag 2",
        "The first guarantee is false: the estimate grows with the time since the last fetch, even "
        "where there is nothing to fetch.",
    ),
    Finding(
        "watermark-2",
        "Partial responses make a close follower look distant",
        KAFKA_4485,
        ("isr.pseudo.close-follower",),
        ("lag.credit",),
        _KAFKA_4485,
        "X=2: appends of 2, 2, 0 records, 1, 1, 0 taken: true lag 2, estimated lag 3",
        "The first guarantee is false with a fetch in every millisecond as well.",
    ),
    Finding(
        "watermark-3",
        "A follower at a constant small distance is never credited",
        KAFKA_4485,
        ("isr.pseudo.close-follower",),
        ("lag.credit",),
        _KAFKA_4485,
        "1 record and 1 fetch per ms, constant lag of 2 ms: estimated lag 10000 ms after 10 s",
        "Where the lag is larger than the gap between fetches the error has no bound.",
    ),
    Finding(
        "watermark-4",
        "Flapping moves from the ISR to the pseudo-ISR",
        KAFKA_4485,
        ("isr.pseudo.close-follower", "hw.stall-bounded"),
        ("lag.credit",),
        _KAFKA_4485,
        "X=2, 1 record per ms, fetches at ms 1, 3, 5: twice in the pseudo-ISR, never in the ISR",
        "With a gap between fetches of more than half the limit a follower enters the pseudo-ISR "
        "again and again, and each time the high watermark waits for it.",
    ),
    Finding(
        "watermark-5",
        "One stall is enough",
        KAFKA_4485,
        ("hw.stall-bounded",),
        (),
        _KAFKA_4485,
        "X=2, 1 record at each of three ms, fetches at ms 1 and 3",
        "The smallest case in which the high watermark stands still for a follower that keeps up.",
    ),
    Finding(
        "watermark-6",
        "The order of reading clock and log end is open",
        KAFKA_4485,
        ("lag.clock-before-end", "lag.estimate-never-short"),
        ("lag.clock-read",),
        _KAFKA_4485,
        "log end read at ms -1, clock at ms 0, an append in between",
        "Reading the clock first is sound. Reading the log end first counts a record as held that "
        "is not.",
    ),
    Finding(
        "watermark-7",
        "Equal timestamps make a lag short by a millisecond",
        KAFKA_4485,
        ("lag.estimate-never-short",),
        (),
        _KAFKA_4485,
        "a fetch at the log end in ms t, an append later in ms t",
        "A lag that is just above the limit is then estimated as just within.",
    ),
    Finding(
        "watermark-8",
        "The definition of lag is neither total nor unique",
        KAFKA_4485,
        ("lag.definition",),
        (),
        _KAFKA_4485,
        "log ends 0, 2: a replica at 1 matches no time; an idle partition matches every time",
        "Ending where the leader ended X ms ago can be true of no X and of many.",
    ),
    Finding(
        "watermark-9",
        "First values are not given",
        KAFKA_4485,
        ("lag.credit.caught-up", "lag.credit.last-fetch"),
        ("lag.initial", "lag.initial-leader-end"),
        _KAFKA_4485,
        "a new follower at 0, high watermark 10, log end 11",
        "Starting as caught up now stops the high watermark for an empty follower. Starting from a "
        "log end of 0 counts every first fetch as caught up.",
    ),
    Finding(
        "watermark-10",
        "A follower may go back",
        KAFKA_4485,
        ("isr.member.at-or-above-hw",),
        (),
        _KAFKA_4485,
        "a member of the ISR at 1 with high watermark 1 is wiped and fetches from 0",
        "The fourth guarantee holds when lags are evaluated, not between evaluations.",
    ),
    Finding(
        "watermark-11",
        "Nothing happens when a follower stops fetching",
        KAFKA_4485,
        ("lag.evaluated-in-time", "isr.lagging-leaves"),
        (),
        _KAFKA_4485,
        "a follower falls silent, no request arrives",
        "Lags are evaluated at requests. Without a timer the second guarantee holds only up to the "
        "limit and the time between evaluations.",
    ),
    Finding(
        "watermark-12",
        "Guarantee 3 does not survive a change of leader",
        KAFKA_4485,
        ("hw.consumer.monotone", "log.committed-kept"),
        ("hw.scope", "hw.over-stored-isr", "hw.served-from", "isr.entry", "follower.truncation"),
        _KAFKA_4485,
        "see election-1",
        "The high watermark of a partition never decreases, says the text. It does when the leader "
        "changes, and records that consumers have read are lost. Four amendments mend it, and each "
        "of them is needed.",
    ),
    Finding(
        "watermark-13",
        "Truncating to the leader's end keeps foreign records",
        KAFKA_4485,
        ("follower.truncation.common-prefix",),
        ("follower.truncation",),
        _KAFKA_4485,
        "two replicas wrote different records at one offset in different epochs",
        "Offsets alone do not tell whether two logs agree. What a follower shares with the new "
        "leader has to be kept, and nothing else.",
    ),
    Finding(
        "watermark-14",
        "The defined in-sync set has no memory, the stored one has",
        KAFKA_4485,
        ("isr.write.conditional",),
        ("isr.members",),
        _KAFKA_4485,
        "a member lags: by the definition it is out at once, as stored when the write succeeds",
        "Definition and implementation speak of different sets. The stored one has to refine the "
        "other.",
    ),
    Finding(
        "watermark-16",
        "Two versions of one step",
        KAFKA_4485,
        ("lag.noted-after-serving",),
        (),
        _KAFKA_4485,
        "the second item of the implementation stands twice; one of them sets a lag to a time",
        "The mail shows an edit with both texts. By the older one a caught-up follower of an idle "
        "partition is always one fetch behind.",
    ),
)

_ELECTION: Final = (
    Finding(
        "election-1",
        "Records that were shown are lost",
        KAFKA_4485,
        ("hw.over-stored-isr", "log.committed-kept"),
        ("hw.over-stored-isr",),
        _KAFKA_4485,
        "n=2: a follower leaves the pseudo-ISR in memory, append, the high watermark is shown as "
        "1, the leader dies before the write, the follower leads with end 0",
        "The high watermark is taken over those that are close, while the stored members remain "
        "electable.",
    ),
    Finding(
        "election-2",
        "A new leader shows an older high watermark",
        KAFKA_4485,
        ("hw.served-from-end-at-election",),
        ("hw.served-from",),
        _KAFKA_4485,
        "append, fetch, the high watermark is shown as 1, its response is on the way, election: 0",
        "Nothing is lost, but consumers see the high watermark go back.",
    ),
    Finding(
        "election-3",
        "A replica is let in at a stale high watermark",
        KAFKA_4485,
        ("isr.entry.end-at-election",),
        ("isr.entry",),
        _KAFKA_4485,
        "n=3: a replica with end 0 is let in where the new leader's high watermark is 0",
        "A new leader does not know how much was shown before it. Its own end at the election is "
        "the only safe mark.",
    ),
    Finding(
        "election-4",
        "Truncation to the own high watermark empties a member",
        KAFKA_4485,
        ("follower.truncation.common-prefix", "isr.stored.holds-committed"),
        ("follower.truncation",),
        _KAFKA_4485,
        "n=3: a member of the ISR that has heard of an older mark cuts a committed record off",
        "A follower that cuts its log at its own, older high watermark drops committed records "
        "while it is in the in-sync set.",
    ),
    Finding(
        "election-5",
        "A new epoch of the same leader empties a member",
        KAFKA_4485,
        ("isr.stored.holds-committed", "follower.truncation.common-prefix"),
        ("follower.truncation",),
        _KAFKA_4485,
        "n=2: append; the follower has the record and asks for more; the high watermark is shown "
        "as 1; the same leader is elected again; the follower cuts its log at 0 (6 steps)",
        "As election-4, and nothing has to go wrong for it: no replica lags, none is removed, no "
        "broker fails. A follower learns of the high watermark one fetch late, so that any new "
        "leader epoch makes it drop a record that consumers have seen, and it stays electable. "
        "This truncation alone, with or without the other three amendments, is to blame.",
    ),
)

_LEGACY_ZNODE: Final = (
    Finding(
        "legacy-1",
        "A refused entry of the old znode is never cleaned up",
        KIP_236,
        ("legacy.entry.refused-removed", "legacy.conflict.both-ways"),
        (),
        _LEGACY,
        "a request is in flight, /admin/reassign_partitions names the same partition",
        "The conflict makes the controller ignore the entry, and nothing says who removes it. Its "
        "client waits for ever.",
    ),
    Finding(
        "legacy-2",
        "A move of one route cannot be cancelled by the other",
        KIP_236,
        ("legacy.conflict.both-ways",),
        (),
        _LEGACY,
        "[1,2] -> [3,4] by the old znode, then a request for [1,2]: refused",
        "The routes must not mix. So the new protocol, which can cancel, cannot cancel what an old "
        "client has started.",
    ),
    Finding(
        "legacy-3",
        "What a client adds to the old znode waits unseen",
        KIP_236,
        ("legacy.rewrite.taken-up",),
        ("legacy.rewrite",),
        _LEGACY,
        "an entry is added to /admin/reassign_partitions while others are in flight",
        "The protocol begins with the creation of the znode. A client that writes to one that is "
        "there is not noticed before the next creation or the next controller, though the text "
        "promises no more than a little latency.",
    ),
    Finding(
        "legacy-4",
        "What can break is said to be a little latency",
        KIP_236,
        ("legacy.rewrite.taken-up", "legacy.translate.request"),
        ("legacy.rewrite",),
        _LEGACY,
        "an entry is added to /admin/reassign_partitions while another is in flight: waited for in "
        "vain by one section, a few round trips later by another",
        "Among the interfaces the text warns that clients which use the old znode can break. "
        "Among the compatibilities it says that they go on working and see nothing but a slight "
        "increase in latency. For the client of the instance the warning is right.",
    ),
)

_HEALING: Final = (
    Finding(
        "heal-1",
        "A task that has become stale removes a live replica",
        KIP_46,
        ("heal.task.no-live-replica-removed", "heal.task.stale"),
        ("heal.stale-task",),
        _KIP_46,
        "a task replaces a failed broker, which returns while another one dies",
        "The text looks at the number of replicas, not at which of them a task takes away.",
    ),
    Finding(
        "heal-2",
        "A running task whose target dies stops the queue",
        KIP_46,
        ("heal.cancel.never-running", "heal.task.one-at-a-time"),
        (),
        _KIP_46,
        "the broker that a task copies to dies, other tasks wait behind it",
        "Only waiting tasks are cancelled and one runs at a time, so all wait for that broker.",
    ),
    Finding(
        "heal-3",
        "Two brokers away keep each other in the targets",
        KIP_46,
        ("heal.target.live", "heal.generate.replaces-failed"),
        ("heal.regenerate", "heal.replaces"),
        _KIP_46,
        "A=[1,2,3], 1 and 2 fail: the task for 1 keeps 2, the one for 2 keeps 1",
        "A task is made for one failed broker at a time. Its target names the other, which is "
        "dead, and is never reached.",
    ),
    Finding(
        "heal-4",
        "One path has three names",
        KIP_46,
        ("heal.record.format",),
        (),
        _KIP_46,
        "failed_nodes, failed_brokers and /failed_brokers",
        "The record of a failed broker is named differently in each part of the text.",
        words_only="it is about a name; any of the three would do, and the model has no paths",
    ),
    Finding(
        "heal-5",
        "The desired number of replicas is not defined",
        KIP_46,
        ("heal.cancel.enough-replicas",),
        ("heal.redundancy",),
        _KIP_46,
        "three assigned and alive, one of them still copying",
        "It decides whether a task is cancelled. It may count assigned, live or in-sync replicas.",
    ),
    Finding(
        "heal-6",
        "A failover between making tasks and removing the record makes them twice",
        KIP_46,
        ("heal.failover.generated-again", "heal.task.satisfied-skipped"),
        ("heal.regenerate",),
        _KIP_46,
        "tasks are made, the controller dies before the record is removed",
        "Of the two options of the text the second schedules again and skips what is satisfied.",
    ),
    Finding(
        "heal-7",
        "While two brokers of a partition are away, tasks are made without end",
        KIP_46,
        (
            "heal.record.deleted-when-scheduled",
            "heal.record.complete",
            "heal.generate.from-plan",
            "heal.generate.replaces-failed",
        ),
        ("heal.regenerate", "heal.replaces", "heal.stale-task"),
        _KIP_46,
        "A=[1,2], 1 and 2 stay away: tasks [3,2], [1,3], an interval later [3,2] again, and so on",
        "The last task made decides who is to have a replica, and each names a broker that has "
        "failed: it is missed anew, its record is made anew, and after one more interval its task "
        "is made anew, from the assignment that no task has changed yet. The first waits for a "
        "dead broker, so the queue grows by a task an interval. Made from the plan it ends, unless "
        "stale tasks are skipped: then those just skipped can be made again. A task for all who "
        "are due ends it where there are brokers enough.",
    ),
)

_SHIPPED: Final = (
    Finding(
        "zk-1",
        "A cancel deletes the last copy",
        KIP_455,
        (
            "shipped.assigned.holds-committed",
            "shipped.isr.without-deleted",
            "shipped.cancel.to-original",
            "shipped.isr.last-kept",
        ),
        (),
        _KAFKA_ZK,
        "[1] -> [2,3], 2 joins, 1 dies and 2 leads; cancel to [1]: 2 is stopped and deleted",
        "A cancel does not ask for an original replica that is alive and in sync. The last in- "
        "sync replica stays in the in-sync set and its log is deleted (KAFKA-14424).",
        observed="Apache Kafka 3.9.1, [1] -> [2,4] with 4 held back: after the cancel the topic's "
        "znode says [1], the state has leader -1 and in-sync set [2], and the log of 2 is deleted. "
        "Broker 1 came back with every record; nobody led 15 s later.",
    ),
    Finding(
        "zk-2",
        "A crash after the record of a cancel leaves a stranger in sync",
        KIP_455,
        ("shipped.isr.within-assigned",),
        (),
        _KAFKA_ZK,
        "[1,2] -> [3,4], 3 joins; cancel, crash between U1 and U3: 3 in sync, not assigned",
        "The lists that name the replicas to be stopped are overwritten before they are "
        "stopped. The next controller does not know of them.",
        observed="Apache Kafka 3.4.1, [2,4] -> [3,1], 3 in sync, the controller killed behind the "
        "record of the cancel: the topic's znode says [2,4], the in-sync set stayed [2,4,3] for "
        "23 s under the next controller, and an election in between kept 3 in it.",
    ),
    Finding(
        "zk-3",
        "A crash after the record of a cancel leaves a replica running",
        KIP_455,
        ("shipped.cancel.no-strays", "shipped.change.unneeded-stopped"),
        (),
        _KAFKA_ZK,
        "[1] -> [2]; cancel, crash between U1 and U3: 2 runs",
        "As zk-2, with a replica that is not in sync yet. What becomes of it is finding zk-11.",
    ),
    Finding(
        "zk-4",
        "An entry of the old znode that is not what was reached stays",
        KIP_455,
        (
            "shipped.entry.not-for-ever",
            "shipped.entry.matching-target",
            "shipped.entry.created-only",
        ),
        (),
        _KAFKA_ZK,
        "[1] -> [2,2] by the znode: carried out as [2], the entry stays",
        "An entry is removed only where it equals the target reached, and a znode that is there "
        "is not read again. An entry with a replica twice, or one that a client changed "
        "meanwhile, waits for a failover; the former stays even then.",
        observed="Apache Kafka 3.9.1, [2] -> [3,3]: the topic's znode says [3] and nothing is in "
        "flight; the entry was still there 15 s later and after another controller was elected.",
    ),
    Finding(
        "zk-5",
        "An empty list in the old znode is taken for a target",
        KIP_455,
        ("shipped.assigned.holds-committed", "shipped.call.validated"),
        (),
        _KAFKA_ZK,
        "[1,2] -> [] by the znode: by the plan in sync at once, 1 and 2 are stopped and deleted",
        "What the old znode names is not validated, and every member of an empty list is in "
        "sync, so that by the plan every copy is deleted. A call with an empty list is refused. "
        "The shipped controller does not get so far: it records the target and then fails on it.",
        observed="Apache Kafka 3.9.1, three brokers: the topic's znode names [1,2] as being "
        "removed and nothing as being added, the entry is removed, no log is deleted and the "
        "leader leads on; the controller has failed on the head of an empty list. With the next "
        "election every controller fails on the same record as it takes office and resigns: the "
        "controller epoch rose from 1 to 774 in 30 s, and a request to delete a topic waited. It "
        "ended when the record in the topic's znode was cleared by hand.",
    ),
    Finding(
        "zk-6",
        "A change that sheds the leader leaves nobody leading",
        KIP_455,
        ("shipped.change.led",),
        (),
        _KAFKA_ZK,
        "[1,2] -> [3,4], 3 joins, 1 dies and 3 leads; change to [2,4]: nobody leads, 2 could",
        "Elections are held in step B3, for dead leaders, for preferred ones and by a new "
        "controller. A leader that is stopped in step U3 is none of them, and without a leader the "
        "target never gets in sync.",
        observed="Apache Kafka 3.9.1, five brokers, 4 held back by a stop signal: after the call "
        "the state has leader -1, in-sync set [2] and leader epoch 4, as in the scenario, and the "
        "log of 3 is deleted. So it stayed for 27 s, the last 12 of them with 4 running again. "
        "Once `/controller` was deleted the next controller elected 2 and the move completed.",
    ),
    Finding(
        "zk-7",
        "A cancel does not bring back the order",
        KIP_455,
        ("shipped.assignment.original-derivable", "shipped.cancel.to-original"),
        (),
        _KAFKA_ZK,
        "[1,2,3] -> [3,4,2], cancel: [3,2,1]",
        "The lists put the target first. Which replicas were original follows from them, their "
        "order and so the preferred leader do not.",
        observed="Apache Kafka 3.9.1, [1,2,3] -> [3,4,2] with 4 held back: after the cancel the "
        "topic's znode says [3,2,1].",
    ),
    Finding(
        "zk-8",
        "A deletion can leave a configuration without a topic",
        KIP_455,
        ("topic.delete.config-not-left", "topic.delete.unknown-removed"),
        (),
        _KAFKA_ZK,
        "there is a configuration and no topic; the name is deleted: the request goes, the "
        "configuration stays",
        "A request to delete a topic that does not exist is removed and nothing else, so that "
        "the next topic of that name takes over a configuration that was to be gone. A controller "
        "that finds the request as it takes office ends the deletion instead, so that a crash "
        "between the topic's znode and its configuration leaves nothing.",
        observed="Apache Kafka 3.9.1: the request was removed, the configuration stayed, and a "
        "topic created afterwards had it. A deletion removes the topic's znode, its configuration "
        "and the request in three transactions; with the first made by hand and nobody in office, "
        "the next controller made the other two.",
    ),
    Finding(
        "zk-9",
        "A change of the target deletes the last copy",
        KIP_455,
        (
            "shipped.isr.without-deleted",
            "shipped.assigned.holds-committed",
            "shipped.change.unneeded-stopped",
        ),
        (),
        _KAFKA_ZK,
        "[1] -> [3], 3 joins, 1 dies and 3 leads; change to [2]: 3 is stopped and deleted",
        "As zk-1, with no cancel: whatever asks for another target, a call or the old znode, "
        "stops the added replicas that it does not name, the only one in sync among them.",
        observed="Apache Kafka 3.9.1, [1] -> [3,4] with 4 held back, changed to [2]: the state has "
        "leader -1 and in-sync set [3], which is not assigned, and the log of 3 is deleted. Broker "
        "1, assigned still, came back; nobody led 15 s later.",
    ),
    Finding(
        "zk-10",
        "A replica whose log was deleted is elected",
        KIP_455,
        (
            "shipped.leader.holds-committed",
            "shipped.isr.last-kept",
            "shipped.complete.target-in-sync",
        ),
        (),
        _KAFKA_ZK,
        "[1] -> [2,3], 2 joins, 1 dies and 2 leads; cancel; [1] -> [2]: 2 leads with an empty log",
        "What zk-1 leaves behind passes for a copy: the whole in-sync set is a replica whose log "
        "is deleted. A call that names it alone has a target in sync, so that it is elected and "
        "the others are stopped; one that names it among others has it elected by the next "
        "controller. Either needs one death; the records that the original would have come back "
        "with are lost.",
        observed="Apache Kafka 3.9.1: of 50 records acknowledged by the whole in-sync set none was "
        "left after a move was cancelled so, and the high watermark went from 50 to 0.",
    ),
    Finding(
        "zk-11",
        "A replica that a cancel has dropped joins the in-sync set",
        KIP_455,
        (
            "isr.change.assigned-only",
            "shipped.isr.electable",
            "shipped.isr.told-may-join",
            "shipped.change.unneeded-stopped",
        ),
        (),
        _KAFKA_ZK,
        "[1] -> [2]; cancel, crash between U1 and U3: 2 joins; 1 dies and is back: nobody can lead",
        "After zk-3 the leader knows the dropped replica still: the next controller tells it the "
        "assignment with the leader epoch that it has, which it passes over. It takes the replica "
        "in, and the controller that writes the set looks at no assignment. If the leader dies "
        "then, only the dropped replica is left in sync, which is not assigned and never elected, "
        "and those assigned are not in sync: offline for good with unclean elections off.",
        observed="Apache Kafka 3.9.1, [2] -> [3] held back, the controller killed behind the "
        "record of the cancel: under the next one 3 caught up and was taken into the in-sync set "
        "[2,3] of [2], in the same leader epoch. The leader's broker was lost, and nobody led any "
        "more.",
    ),
    Finding(
        "zk-12",
        "A controller does not hear of a znode that follows one that a client deleted",
        KIP_455,
        ("shipped.entry.created-only", "shipped.entry.not-for-ever"),
        (),
        _KAFKA_ZK,
        "[1] -> [2] by the znode, which a client deletes; once that is done [2] -> [3] by another",
        "ZooKeeper tells of a znode once for each time that it is asked to. The controller asks "
        "again after it was told of a creation and after it has deleted the znode itself, not "
        "after a client has, so that the next creation waits for another controller.",
        observed="Apache Kafka 2.8.2: a client deleted the znode with an entry that was left by "
        "zk-4 and created it anew. Nothing was done about it for 38 s, until a client deleted "
        "`/controller`; the next controller carried it out.",
    ),
    Finding(
        "zk-13",
        "A deletion does not wait for a reassignment in flight",
        KIP_455,
        ("topic.delete.waits-for-reassignment",),
        (),
        _KAFKA_ZK,
        "a topic on [1], its partition is being reassigned: asked to delete it, 1 deletes its log",
        "The controller marks the topic as one that has to wait before it puts it on the list of "
        "topics to be deleted, and only what is on the list can be marked. The deletion goes its "
        "way and the move is lost; what the old znode asks of the topic is left there.",
        observed="Apache Kafka 3.9.1: the topic was gone 0.4 s after the request, with a move held "
        "back by a throttle. 2.3.1: the same, and the entry of the topic stayed in the old znode "
        "for the 30 s to the end, during which no topic could be given another partition.",
    ),
)

FINDINGS: Final = (
    *_DROP,
    *_HYPOTHESES,
    *_PROTOCOL,
    *_MOVE,
    *_WATERMARK,
    *_ELECTION,
    *_LEGACY_ZNODE,
    *_HEALING,
    *_SHIPPED,
)
"""Every finding, by area and number."""

_SKIPPED: Final = "No finding ever had this number."

WITHDRAWN: Final = (
    Withdrawn("drop-9", "(none)", _SKIPPED),
    Withdrawn(
        "drop-14",
        "A top of zero is excluded only indirectly",
        "Top is the number of replicas of a partition that exists, and none has less than one.",
    ),
    Withdrawn(
        "hypothesis-6",
        "The minimum has to be met before",
        "The text says so itself: its second note assumes that the in-sync set was sufficient.",
    ),
    Withdrawn(
        "protocol-6",
        "Two znodes are not removed at the same time",
        "The words name the moment in the controller's work at which the record goes, the one at "
        "which the old znode is written today. That both go at once is not said, and the section "
        "on catching up gives their order.",
    ),
    Withdrawn(
        "protocol-8",
        "An ignored request is not said to be removed",
        "Step 3.3 removes the request whatever step 3.2 came to; being ignored is one of its "
        "branches.",
    ),
    Withdrawn("move-9", "(none)", _SKIPPED),
    Withdrawn(
        "move-17",
        "The failure cases count other steps than the list",
        "They count the seven steps of the list. That later texts count twelve is nothing about "
        "this one.",
    ),
    Withdrawn(
        "watermark-15",
        "The leader is not said to be in its own pseudo-ISR",
        "It follows from the definitions: its log ends where it ended 0 ms ago, so that it has no "
        "lag.",
    ),
)
"""Every number that is missing, by area and number."""


@cache
def _taken_back() -> Mapping[str, Withdrawn]:
    return MappingProxyType({withdrawn.id: withdrawn for withdrawn in WITHDRAWN})


@cache
def _by_id() -> Mapping[str, Finding]:
    return MappingProxyType({finding.id: finding for finding in FINDINGS})


def get_finding(finding_id: str) -> Finding:
    """Return the finding with this id. Raises UnknownFinding when there is none any more."""
    try:
        return _by_id()[finding_id]
    except KeyError:
        if finding_id in _taken_back():
            reason = _taken_back()[finding_id].reason
            raise UnknownFinding(f"finding {finding_id} was taken back: {reason}") from None
        raise UnknownFinding(
            f"there is no finding {finding_id!r}; `reassure spec findings` lists them"
        ) from None


def findings_of_clause(clause_id: str) -> tuple[Finding, ...]:
    """Return the findings that concern this clause."""
    return tuple(finding for finding in FINDINGS if clause_id in finding.clauses)


def findings_of_reading(name: str) -> tuple[Finding, ...]:
    """Return the findings that depend on this reading."""
    return tuple(finding for finding in FINDINGS if name in finding.readings)
