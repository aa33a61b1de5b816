"""What the documents promise of whole stories, refuted by the shortest that breaks it.

Each is a claim about the model's own steps, gone through within the scope of one tale
(`reassure_proofs.stories`): no story leads to what must never be. Every one is expected to be
refuted; the story that does it is the smallest instance of a finding, and a scenario.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from reassure_model.state_machines import ReplicaState, move_replica
from reassure_proofs.formula import Truth
from reassure_proofs.statement import Parameter, Shape, Subject, Telling, Theorem, Values
from reassure_proofs.stories import TALES, find_stop_of_a_live_replica, find_tale, tell_tale


def _shapes(_: int, tale: str) -> Iterator[Shape]:
    yield {"tale": Parameter(kind="word", word=tale)}


def _tell(values: Values) -> Telling:
    return tell_tale(values["tale"])


def _is_empty(_: Values, story: Any) -> Truth:
    return len(story) == 0


def _subject(tale: str, profile: str) -> Subject:
    return Subject(
        f"tale-{tale}",
        lambda values: find_tale(values["tale"]),
        "the shortest story",
        partial(_shapes, tale=tale),
        bounded="every story within the scope of the tale",
        tell=_tell,
        profile=profile,
        changes=TALES[tale]().readings,
    )


_TOLD: Final[tuple[tuple[str, str, str, str, str, str], ...]] = (
    (
        "story-no-stopped-replica-in-sync",
        "move.stop.cut-isr",
        "As written, no replica whose log was deleted is in sync.",
        "stopped-replica-in-sync",
        "kafka-42",
        "move-1",
    ),
    (
        "story-no-stopped-replica-elected",
        "move.stop.cut-isr",
        "As written, with clean elections and one death, a live leader has the committed records.",
        "stopped-replica-elected",
        "kafka-42",
        "move-2",
    ),
    (
        "story-no-leader-stopped",
        "move.stop.recheck",
        "With the in-sync set cut, one death does not lead to a leader that was stopped.",
        "leader-stopped",
        "kafka-42",
        "move-3",
    ),
    (
        "story-isr-within-assigned",
        "move.start.expand-first",
        "As written, whoever is in sync is assigned.",
        "outside-assigned",
        "kafka-42",
        "move-5",
    ),
    (
        "story-not-given-up-half-way",
        "move.listener.refuse-dead",
        "As written, with one death and one failover, an assigned replica has the records.",
        "given-up-half-way",
        "kafka-42",
        "move-6",
    ),
    (
        "story-no-stray-after-failover",
        "move.cancel.no-strays",
        "As written, with one death and one failover, nothing runs that is not assigned.",
        "stray",
        "kafka-42",
        "move-7",
    ),
    (
        "story-interrupt-keeps-records",
        "move.tool.interrupt",
        "As written, with one interruption and one failover, an assigned replica has the records.",
        "killed-command",
        "kafka-42",
        "move-8",
    ),
    (
        "story-target-in-sync-after-stop",
        "move.step.stop-old",
        "With the in-sync set cut and one death, as many are in sync after the stop as asked for.",
        "few-in-sync",
        "kafka-42",
        "move-10",
    ),
    (
        "story-started-only-if-assigned",
        "move.start.expand-first",
        "As written, a replica is assigned before it is started.",
        "started-unassigned",
        "kafka-42",
        "move-14",
    ),
    (
        "story-legal-transitions",
        "move.replica.states",
        "As written, with one failover, every transition of a replica is a legal one.",
        "replica-states",
        "kafka-42",
        "move-18",
    ),
    (
        "story-found-in-sync-is-finished",
        "move.failover.re-elects",
        "By the listener's conditions, what a new controller finds in sync is not given up.",
        "given-up",
        "kafka-42",
        "move-20",
    ),
    (
        "story-path-goes-with-its-command",
        "move.tool.interrupt",
        "By the shutdown hook, a path is there only while its command waits.",
        "path-left",
        "kafka-42",
        "move-21",
    ),
    (
        "story-online-replica-is-elected",
        "move.replica.online",
        "Where replicas are online once they are assigned, every transition is a legal one.",
        "not-online",
        "kafka-42",
        "move-22",
    ),
    (
        "story-new-replica-follows",
        "move.replica.new-follows",
        "As written, with one death, a replica that is new is not told to lead.",
        "new-led",
        "kafka-42",
        "move-23",
    ),
    (
        "story-cut-once",
        "move.stop.cut-isr",
        "With the in-sync set cut, no replica has to be taken out of it twice.",
        "cut-again",
        "kafka-42",
        "move-19",
    ),
    (
        "story-cancel-keeps-last-copy",
        "shipped.isr.without-deleted",
        "With one death, a cancel deletes no log of a replica in sync.",
        "cancel-deletes-last-copy",
        "kafka-zk",
        "zk-1",
    ),
    (
        "story-change-keeps-last-copy",
        "shipped.isr.without-deleted",
        "With one death, a change of the target deletes no log of a replica in sync.",
        "change-deletes-last-copy",
        "kafka-zk",
        "zk-9",
    ),
    (
        "story-leader-keeps-records",
        "shipped.leader.holds-committed",
        "With one death, a cancel and one more call, a live leader has the committed records.",
        "deleted-elected",
        "kafka-zk",
        "zk-10",
    ),
    (
        "story-cancelled-leaves-isr",
        "shipped.isr.within-assigned",
        "With one failover, whoever is in sync after a cancel is assigned.",
        "cancelled-in-sync",
        "kafka-zk",
        "zk-2",
    ),
    (
        "story-cancelled-is-stopped",
        "shipped.cancel.no-strays",
        "With one failover, whoever runs after a cancel is assigned.",
        "cancelled-runs",
        "kafka-zk",
        "zk-3",
    ),
    (
        "story-entry-not-for-ever",
        "shipped.entry.not-for-ever",
        "An entry of the old znode does not outlive its reassignment.",
        "entry-for-ever",
        "kafka-zk",
        "zk-4",
    ),
    (
        "story-empty-entry-keeps-records",
        "shipped.assigned.holds-committed",
        "An entry of the old znode leaves an assigned replica with the records.",
        "empty-entry",
        "kafka-zk",
        "zk-5",
    ),
    (
        "story-change-is-led",
        "shipped.change.led",
        "With one death, a partition whose target changes has a leader if somebody can lead.",
        "nobody-leads",
        "kafka-zk",
        "zk-6",
    ),
    (
        "story-configuration-goes-with-topic",
        "topic.delete.config-not-left",
        "Who deletes a name deletes its configuration, whether there is a topic or not.",
        "orphan-configuration",
        "kafka-zk",
        "zk-8",
    ),
    (
        "story-committed-kept",
        "log.committed-kept",
        "As written, a clean election loses no record that consumers were shown.",
        "committed-lost",
        "kafka-4485",
        "election-1",
    ),
    (
        "story-mark-never-back",
        "hw.served-from-end-at-election",
        "Without serving from the end at the election, consumers never see the mark go back.",
        "mark-gone-back",
        "kafka-4485",
        "election-2",
    ),
    (
        "story-entry-holds-committed",
        "isr.entry.end-at-election",
        "With entry at the mark, whoever is stored in sync holds what was shown.",
        "stale-entry",
        "kafka-4485",
        "election-3",
    ),
    (
        "story-truncation-keeps-committed",
        "follower.truncation.common-prefix",
        "With truncation to the own mark, whoever is stored in sync holds what was shown.",
        "member-emptied",
        "kafka-4485",
        "election-4",
    ),
    (
        "story-calm-keeps-committed",
        "isr.stored.holds-committed",
        "As written, where nobody lags or is removed, whoever is in sync holds what was shown.",
        "member-emptied-in-calm",
        "kafka-4485",
        "election-5",
    ),
    (
        "story-one-drop-for-a-change",
        "drop.carried-out",
        "With one death and one failover, what was dropped for a change is dropped once.",
        "one-more-dropped",
        "kip-236-amended",
        "drop-18",
    ),
    (
        "story-mark-survives-election",
        "hw.consumer.monotone",
        "As written, the mark that consumers see never goes back, whoever leads.",
        "mark-as-written",
        "kafka-4485",
        "watermark-12",
    ),
    (
        "story-truncation-to-end-keeps-committed",
        "follower.truncation.common-prefix",
        "With truncation to the leader's end, whoever is stored in sync holds what was shown.",
        "foreign-records",
        "kafka-4485",
        "watermark-13",
    ),
    (
        "story-stored-set-as-defined",
        "isr.write.conditional",
        "Whoever is stored in sync is within the lag limit, as the definition has it.",
        "stored-has-memory",
        "kafka-4485",
        "watermark-14",
    ),
    (
        "story-refused-entry-goes",
        "legacy.entry.refused-removed",
        "An entry that is refused goes without being cleaned up.",
        "refused-entry",
        "kip-236-legacy",
        "legacy-1",
    ),
    (
        "story-cancelled-by-either-route",
        "legacy.conflict.both-ways",
        "What the old znode has begun can be taken back by a request.",
        "other-route",
        "kip-236-legacy",
        "legacy-2",
    ),
    (
        "story-rewrite-is-seen",
        "legacy.rewrite.taken-up",
        "Whatever a client writes to the old znode is looked at.",
        "rewrite-unseen",
        "kip-236-legacy",
        "legacy-3",
    ),
    (
        "story-task-removes-no-live-replica",
        "heal.task.no-live-replica-removed",
        "As written, where stale tasks are executed, an automatic task removes no live replica.",
        "live-removed",
        "kip-46",
        "heal-1",
    ),
    (
        "story-queue-goes-on",
        "heal.cancel.never-running",
        "A task does not wait for a broker that another task copies to.",
        "queue-stopped",
        "kip-46",
        "heal-2",
    ),
    (
        "story-targets-are-live",
        "heal.target.live",
        "A task that is made names live brokers only.",
        "dead-in-task",
        "kip-46",
        "heal-3",
    ),
    (
        "story-one-meaning-of-redundancy",
        "heal.cancel.enough-replicas",
        "Whether a task is cancelled does not depend on what the desired number of replicas is.",
        "two-meanings",
        "kip-46",
        "heal-5",
    ),
    (
        "story-tasks-made-once",
        "heal.failover.generated-again",
        "With one failover, no task is made twice.",
        "made-twice",
        "kip-46",
        "heal-6",
    ),
    (
        "story-queue-names-each-once",
        "heal.generate.from-plan",
        "With two deaths and no failover, no task is made twice.",
        "made-again",
        "kip-46",
        "heal-7",
    ),
)
"""Name, clause, statement, tale, profile and finding."""

# Tables of states: no world around them, but all ways through them.


def _tell_stop(_: Values) -> Telling:
    return Telling(("world tables", "replica from=online to=non-existent,offline"))


def _tell_offline(_: Values) -> Telling:
    return Telling(("world tables", "replica from=offline to=offline"))


_PROFILE_WORD: Final = {"profile": Parameter(kind="word", word="kafka-42")}

STOP: Final = Subject(
    "stop-of-a-live-replica",
    lambda values: find_stop_of_a_live_replica(values["profile"]),
    "the way of states that needs no death",
    lambda _: iter((_PROFILE_WORD,)),
    bounded="every way through the states",
    tell=_tell_stop,
)
"""How the replica of a live broker can cease to exist."""
OFFLINE_AGAIN: Final = Subject(
    "offline-again",
    lambda values: (
        type(move_replica(ReplicaState.OFFLINE, ReplicaState.OFFLINE, values["profile"])).__name__
    ),
    "the death of a broker whose replica was stopped",
    lambda _: iter((_PROFILE_WORD,)),
    bounded="one transition",
    tell=_tell_offline,
)
"""What becomes of a replica that is offline when its broker dies."""

STORY_THEOREMS: Final[tuple[Theorem, ...]] = (
    *(
        Theorem(
            name,
            clause,
            statement,
            _subject(tale, profile),
            (),
            _is_empty,
            profile,
            expected="refuted",
            layer="steps",
            finding=finding,
            tier="full",
        )
        for name, clause, statement, tale, profile, finding in _TOLD
    ),
    Theorem(
        "table-stops-live-replica",
        "move.replica.states",
        "A replica whose broker is alive can be stopped by legal transitions.",
        STOP,
        (),
        lambda _, way: len(way) > 0,
        "kafka-42",
        expected="refuted",
        layer="steps",
        finding="move-12",
        tier="full",
    ),
    Theorem(
        "table-offline-again",
        "replica.transition.valid-previous",
        "A replica that is offline can go offline again.",
        OFFLINE_AGAIN,
        (),
        lambda _, answer: answer == "Accepted",
        "kafka-42",
        expected="refuted",
        layer="steps",
        finding="move-15",
        tier="full",
    ),
)
"""Every theorem about stories."""

assert {tale for _, _, _, tale, _, _ in _TOLD} == set(TALES)
