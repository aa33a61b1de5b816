"""One cluster that somebody drives, judged by what is handed over beside ZooKeeper's log.

`LiveCluster` is fed events (`reassure_judge.live_events`). The judge itself is fed the transaction
log, by whoever reads it. Each monitor of the profile's protocols takes every event, then what
brokers were told is held against what is stored.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from reassure_judge import messages
from reassure_judge.cross_partition import NO_KEY
from reassure_judge.judge import Judge
from reassure_judge.live_events import (
    ChangeAsked,
    Ended,
    Event,
    Looked,
    Received,
    Rested,
    StatesSaid,
    Wrote,
)
from reassure_judge.message_fields import FieldJudge
from reassure_judge.messages import Heard, StoredStates, Told, ToldStates
from reassure_judge.moments import Witness
from reassure_judge.monitors import Driven, Verdict
from reassure_judge.protocols import find_monitors
from reassure_judge.state_moves import StateJudge
from reassure_judge.verdicts import Violation
from reassure_model.outcome import Rejected
from reassure_model.partition import Partition
from reassure_spec.clauses import clauses_of_profile
from reassure_spec.znodes import PartitionKey, ReplicaList


class LiveCluster:
    """Judges one driven cluster, and counts for its judge what is put to the test.

    `whole` says that all of the cluster's history is handed over, from its beginning: without that
    no monitor of a protocol judges. The other arguments are those of `Driven`.
    """

    def __init__(
        self,
        judge: Judge,
        chroot: str,
        *,
        whole: bool = True,
        hears: bool = False,
        has_clock: bool = False,
        failure_interval_ms: int = 0,
        partitions_per_task: int = 0,
        witness: Witness | None = None,
    ) -> None:
        self._judge = judge
        self._clauses = frozenset(each.id for each in clauses_of_profile(judge.profile))
        self.heard: Final = Heard()
        self._driven: Final = Driven(
            chroot,
            judge.readings,
            self.heard,
            StoredStates(),
            hears,
            has_clock,
            failure_interval_ms,
            partitions_per_task,
            witness,
        )
        made = (make(self._driven) for make in (find_monitors(judge.profile) if whole else ()))
        self._fields: Final = FieldJudge(chroot)
        self._states: Final = StateJudge(judge.profile, self._driven.stored)
        self._monitors: Final = [monitor for monitor in made if monitor.is_able()]
        self._fresh: list[Told | ToldStates] = []
        """What brokers received, and controllers said of states, since the last look."""
        self._zxid = 0
        """The last transaction that was handed over."""
        self._epoch = 0
        """Of the controller that acts."""

    @property
    def deleting(self) -> set[str]:
        """Topics that somebody asks to be deleted, as far as their deletion is judged."""
        return {topic for each in self._monitors for topic in each.deleting}

    def list_admitted(
        self, partitions: Mapping[PartitionKey, Partition]
    ) -> Mapping[PartitionKey, ReplicaList]:
        """Return whom leaders take for replicas: by what they received, or by what is due."""
        if self._driven.hears:
            return self.heard.list_admitted(partitions)
        return {key: known for each in self._monitors for key, known in each.admitted.items()}

    def take(self, event: Event) -> Iterator[tuple[Violation, ...]]:
        """Take an event; yield what each who judges finds wrong, before the next one is asked."""
        self._note(event)
        for monitor in self._monitors:
            yield self._count(monitor.take(event))
        if isinstance(event, Looked):
            yield self._count(self._judge_order())
            yield self._count(self._judge_beliefs(event))
            if event.rests:
                yield self._count(self._states.rest(event.view, self.deleting))
        elif isinstance(event, ChangeAsked):
            yield self._count(self._judge_change(event))

    def _note(self, event: Event) -> None:
        match event:
            case Wrote(transaction, _, after):
                self._fields.note(event)
                self._zxid = transaction.zxid
                self._epoch = after.controller_epoch
                self._driven.stored.note(transaction.zxid, after.partitions, self._epoch)
            case Received(told):
                self.heard.take(told)
                self._fresh.append(told)
            case StatesSaid(said):
                self._fresh.append(said)
            case Rested():
                self._fields.note_rest()
            case Ended(broker):
                self.heard.forget(broker)

    def _count(self, verdicts: Iterator[Verdict]) -> tuple[Violation, ...]:
        """Count what was kept; return what was broken of what the profile asks for."""
        found = []
        for key, outcome in verdicts:
            if not isinstance(outcome, Rejected):
                self._judge.exercised[outcome] += 1
            elif outcome.clause in self._clauses:
                found.append(messages.describe(self._driven.chroot, key, self._zxid, outcome))
        return tuple(found)

    def _judge_order(self) -> Iterator[Verdict]:
        """Judge whether what brokers were told was true when it was said."""
        fresh, self._fresh = self._fresh, []
        for told in fresh:
            if isinstance(told, ToldStates):
                yield from self._states.take(told)
                continue
            yield from self._states.judge(told)
            key = (told.topic, told.partition)
            deleting = told.zxid is not None and self._is_deleting(told.topic, told.zxid)
            # Whose topic is to be deleted is told to delete its replica, whatever is stored.
            found = None if told.delete and deleting else self._driven.stored.judge(told)
            if found is not None:
                yield Verdict(key, found)
            for each in self._fields.judge(told, deleting=deleting):
                yield Verdict(key, each)

    def _is_deleting(self, topic: str, zxid: int) -> bool:
        return any(monitor.is_deleting(topic, zxid) for monitor in self._monitors)

    def _judge_beliefs(self, looked: Looked) -> Iterator[Verdict]:
        """Judge what the brokers believe at rest."""
        if not (looked.rests and self._driven.hears):
            return
        # Nobody starts a replica of a topic that is to be deleted.
        deleting, there = self.deleting, looked.view.partitions
        kept = {key: partition for key, partition in there.items() if key[0] not in deleting}
        broken = list(self.heard.find_broken(kept, looked.up))
        yield from (Verdict(*each) for each in broken)
        if kept and not broken:
            yield from (Verdict(NO_KEY, clause_id) for clause_id in messages.CLAUSES)

    def _judge_change(self, asked: ChangeAsked) -> Iterator[Verdict]:
        """Judge whether a leader could take a replica in, or let it go.

        A leader passes over orders of the leader epoch that it has. Where nobody has to make it
        listen it may go by what a controller before has told it.
        """
        unable = messages.find_unable(asked.partition, asked.broker, joins=asked.joins)
        if asked.obeyed:
            yield Verdict(asked.key, unable.clause)
        elif messages.KNOWS_ASSIGNED in self._clauses or not self._may_pass_over(asked):
            yield Verdict(asked.key, unable)

    def _may_pass_over(self, asked: ChangeAsked) -> bool:
        """Whether a leader may go by what another controller told it in the same leader epoch."""
        if self._driven.hears:
            return self.heard.is_passed_over(asked.key, asked.partition, asked.broker)
        return getattr(asked.partition.state, "controller_epoch", self._epoch) != self._epoch
