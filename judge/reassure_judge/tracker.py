"""One partition's judge: asks the model of every write whether it could have happened.

Where a broker is in doubt the controller may have acted on another view of who is alive. The judge
then tries every view, and calls a write a violation only if it breaks a clause in all of them.

After a violation the tracker takes over what was really written and goes on. What follows directly
from the broken step, up to the next write that the model accepts, is counted under it.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Final

from reassure_judge.history import (
    AssignedWritten,
    BadRequestRemoved,
    BadRequestSeen,
    ElectionSeen,
    Event,
    Observation,
    ReassignmentWritten,
    RequestRemoved,
    RequestSubmitted,
    StateWritten,
    Unreadable,
)
from reassure_judge.verdicts import Violation
from reassure_model.controllers import Controllership, accept_election
from reassure_model.invariants import INVARIANTS
from reassure_model.outcome import Accepted, Rejected
from reassure_model.owed import Owed, next_write
from reassure_model.requests import NothingToDo, Refusal, decide_request
from reassure_model.rules import accept_write, apply_failover, compute_drops, is_drop_held
from reassure_model.state import LeaderAndIsr, Partition, Reassignment, Surroundings
from reassure_model.writes import (
    ChangeIsr,
    CreateReassignment,
    CreateState,
    DeleteReassignment,
    DeleteRequest,
    UpdateReassignment,
    Write,
    WriteAssigned,
    WriteState,
)
from reassure_spec import znodes
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings

_MOST_DOUBT: Final = 6
_ALWAYS: Final = tuple(invariant for invariant in INVARIANTS if not invariant.at_rest)


def find_write(before: Partition, event: Event) -> Write | None:
    """Return the write of a controller that an event is; None for what is a client's."""
    match event:
        # The most frequent first: each case costs a little.
        case StateWritten(state, _) if state is not None:
            return CreateState(state) if before.state is None else WriteState(state)
        case AssignedWritten(assigned) if assigned is not None and before.assigned is not None:
            return WriteAssigned(assigned)
        case ReassignmentWritten(None) if before.reassignment is not None:
            return DeleteReassignment()
        case ReassignmentWritten(record) if record is not None:
            if before.reassignment is None:
                return CreateReassignment(record)
            return UpdateReassignment(record)
        case RequestRemoved(sequence):
            return DeleteRequest(sequence)
    return None


class PartitionTracker:
    """Follows one partition through its history."""

    def __init__(
        self, readings: Readings, exercised: Counter[str], violations: list[Violation]
    ) -> None:
        self.partition = Partition()
        self.readings = readings
        self.exercised = exercised
        self.violations = violations
        self.follow_ups = 0
        """Rejected writes that only follow from an earlier violation."""
        self.tainted = False
        self._epoch: int | None = None
        self._seen: dict[int, str] = {}
        self._owed_reported: Owed | None = None
        self._recorded_for: int | None = None
        """The request for which the record in flight was written last."""
        self._spared = False
        """Whether, at some moment since the change, there was nothing to drop: the controller may
        have looked then, and have dealt with the change without a write."""

    def feed(self, seen: Observation) -> None:
        """Judge one observation and take it over."""
        epoch = seen.around.controller_epoch
        if epoch != self._epoch:
            if self._epoch is not None:
                self.partition = apply_failover(self.partition, self.readings)
            self._epoch = epoch
        event = seen.event
        if isinstance(event, Unreadable):
            self._violate(seen, Rejected("znode.well-formed", event.reason), "")
            return
        if isinstance(event, RequestSubmitted):
            requests = (*self.partition.requests, event.request)
            self.partition = replace(self.partition, requests=requests)
        else:
            write = self._find_write(seen)
            if write is None or seen.given:
                self._adopt(seen)
            else:
                self._judge(seen, write)
        if self.partition.requests:
            self._note_decision(seen)
        if not self.partition.drop_due or isinstance(event, ReassignmentWritten):
            self._spared = False
        if self.partition.drop_due and not self._spared and not is_drop_held(self.partition):
            self._spared = frozenset() in compute_drops(self.partition, self.readings)

    def _find_write(self, seen: Observation) -> Write | None:
        """Say which write of the model this is; None for what is not a controller's or leader's."""
        event, before = seen.event, self.partition
        if isinstance(event, StateWritten) and event.state is not None:
            if before.assigned is None:
                return None
            if before.state is not None and not seen.fenced:
                kept = event.state.leader_epoch == before.state.leader_epoch
                if event.writer >= 0 or kept:
                    return ChangeIsr(event.state, event.writer)
        return find_write(before, event)

    @clause("controller.write.epoch-checked", "znode.well-formed")
    def _judge(self, seen: Observation, write: Write) -> None:
        outcome: Accepted[Partition] | Rejected
        if not isinstance(write, ChangeIsr) and not seen.fenced:
            # Who may write comes before what: one that was superseded gets the content wrong too.
            reason = "the transaction does not check /controller_epoch"
            outcome = Rejected("controller.write.epoch-checked", reason)
        else:
            outcome = self._accept(seen, write)
        if isinstance(outcome, Accepted) and not isinstance(write, ChangeIsr):
            self.exercised["controller.write.epoch-checked"] += 1
        if isinstance(outcome, Rejected):
            self._violate(seen, outcome, _describe(write))
            self._adopt(seen)
            return
        self._note_same_target(write)
        self.partition = outcome.state
        self.tainted = False
        self._owed_reported = None
        exercised = self.exercised
        exercised["znode.well-formed"] += 1
        for clause_id in outcome.clauses:
            exercised[clause_id] += 1
        for invariant in _ALWAYS:
            broken = invariant.find(self.partition)
            if broken is not None:
                self._violate(seen, Rejected(invariant.clause, broken), _describe(write))

    @clause("request.same-target.no-change")
    def _note_same_target(self, write: Write) -> None:
        """Count a request that goes though the target it asks for was recorded for another one."""
        requests, flight = self.partition.requests, self.partition.reassignment
        if not requests:
            return
        if isinstance(write, CreateReassignment | UpdateReassignment):
            self._recorded_for = requests[0].sequence
        elif isinstance(write, DeleteRequest) and flight is not None:
            same = flight.target == requests[0].target
            if same and self._recorded_for != requests[0].sequence:
                self.exercised["request.same-target.no-change"] += 1

    def _accept(self, seen: Observation, write: Write) -> Accepted[Partition] | Rejected:
        outcome = accept_write(self.partition, write, seen.around, self.readings)
        if isinstance(outcome, Accepted):
            return outcome
        for around in _other_views(seen):
            other = accept_write(self.partition, write, around, self.readings)
            if isinstance(other, Accepted):
                return other
        if self._spared:
            dealt_with = replace(self.partition, drop_due=False)
            other = accept_write(dealt_with, write, seen.around, self.readings)
            if isinstance(other, Accepted):
                return other
        if isinstance(write, DeleteRequest) and self._seen.get(write.sequence):
            head = self.partition.requests[0]
            if head.sequence == write.sequence:
                # The controller decided while the request asked for nothing or was refused.
                after = replace(self.partition, requests=self.partition.requests[1:])
                return Accepted(after, (self._seen[write.sequence],))
        return outcome

    def _note_decision(self, seen: Observation) -> None:
        head = self.partition.requests[0]
        if head.sequence not in self._seen:
            self._seen = {}
        decision = decide_request(head, self.partition, seen.around, self.readings)
        if isinstance(decision, Refusal | NothingToDo):
            self._seen[head.sequence] = decision.clause

    def _adopt(self, seen: Observation) -> None:
        """Take over what was written without asking."""
        before = self.partition
        match seen.event:
            case AssignedWritten(assigned):
                if assigned is None:
                    self.partition = Partition(requests=before.requests)
                else:
                    self.partition = replace(before, assigned=assigned)
            case StateWritten(state, _):
                self.partition = replace(before, state=state)
            case ReassignmentWritten(record):
                changed = before.reassignment is not None and record is not None
                self.partition = replace(
                    before, reassignment=record, drop_due=changed and not seen.given
                )
            case RequestRemoved(sequence):
                left = tuple(r for r in before.requests if r.sequence != sequence)
                self.partition = replace(before, requests=left)

    def _violate(self, seen: Observation, rejected: Rejected, after: str) -> None:
        if self.tainted:
            self.follow_ups += 1
            return
        self.tainted = True
        self.violations.append(
            Violation(
                zxid=seen.zxid,
                chroot=seen.chroot,
                topic=seen.topic,
                partition=seen.partition,
                clause=rejected.clause,
                path=seen.path,
                session=seen.session,
                before=_describe_before(self.partition, seen),
                after=after,
                reason=rejected.reason,
                expected=self._describe_owed(seen.around),
                time_ms=seen.time_ms,
            )
        )

    def _describe_owed(self, around: Surroundings) -> str:
        if self.partition.assigned is None and not self.partition.requests:
            return "nothing: the partition does not exist"
        owed = next_write(self.partition, around, self.readings)
        if owed is None:
            return "no write at all: nothing was owed"
        return f"{_describe(owed.write)} ({owed.clause})"

    def rest(
        self,
        chroot: str,
        topic: str,
        number: int,
        zxid: int,
        around: Surroundings,
        untouched: frozenset[str],
    ) -> None:
        """Judge what must be true when the controller has nothing left to do."""
        if self.tainted:
            return
        if self._spared:
            # What the in-sync set became after the controller had looked makes nothing due.
            self.partition = replace(self.partition, drop_due=False)
        owed = next_write(self.partition, around, self.readings)
        broken = None if owed is None else _find_debt(self.partition, owed, untouched)
        for invariant in INVARIANTS:
            reason = invariant.find(self.partition)
            if reason is None:
                self.exercised[invariant.clause] += 1
            elif broken is None:
                broken = Rejected(invariant.clause, reason)
        if broken is None or (owed is not None and owed == self._owed_reported):
            return
        self._owed_reported = owed
        self.tainted = True
        path, before = _describe_resting(self.partition, topic, number, owed)
        expected = self._describe_owed(around)
        self.violations.append(
            Violation(
                zxid=zxid,
                chroot=chroot,
                topic=topic,
                partition=number,
                clause=broken.clause,
                path=path,
                session=0,
                before=before,
                after="",
                reason=broken.reason,
                expected=expected,
            )
        )


class ClusterTracker:
    """Follows what concerns a cluster as a whole: elections, and what is none of ours."""

    def __init__(self, exercised: Counter[str], violations: list[Violation]) -> None:
        self.controllership = Controllership()
        self.exercised = exercised
        self.violations = violations
        self.bad: dict[str, BadRequestSeen] = {}
        self._reported: set[str] = set()

    def feed(self, seen: Observation) -> None:
        """Judge one observation and take it over."""
        match seen.event:
            case ElectionSeen(broker, epoch):
                self._on_election(seen, broker, epoch)
            case BadRequestSeen():
                self.bad[seen.path] = seen.event
            case BadRequestRemoved():
                found = self.bad.pop(seen.path)
                self.exercised[found.clause] += 1
                if not seen.fenced:
                    self._violate(
                        seen,
                        "controller.write.epoch-checked",
                        "the transaction does not check /controller_epoch",
                    )
            case Unreadable(reason):
                self._violate(seen, "znode.well-formed", reason)

    def _on_election(self, seen: Observation, broker: int | None, epoch: int) -> None:
        before = self.controllership
        self.controllership = Controllership(broker, epoch)
        # A history that begins in the middle does not say which epoch came before.
        if seen.given or (before.epoch == 0 and epoch > 1):
            return
        outcome = accept_election(before, broker, epoch)
        if isinstance(outcome, Rejected):
            self._violate(seen, outcome.clause, outcome.reason)
            return
        for clause_id in outcome.clauses:
            self.exercised[clause_id] += 1

    def rest(self, chroot: str, zxid: int, untouched: frozenset[str]) -> None:
        """Judge what must be gone when the controller has nothing left to do."""
        for path, found in self.bad.items():
            if path in self._reported:
                continue
            self._reported.add(path)
            broken = Rejected(found.clause, f"still there: {found.reason}")
            if path in untouched:
                broken = _find_unseen(path, found.reason)
            self.violations.append(
                Violation(
                    zxid=zxid,
                    chroot=chroot,
                    topic="",
                    partition=-1,
                    clause=broken.clause,
                    path=path,
                    session=0,
                    before="",
                    after="",
                    reason=broken.reason,
                    expected="the znode is removed with a warning, nothing else changes",
                )
            )

    def _violate(self, seen: Observation, clause_id: str, reason: str) -> None:
        self.violations.append(
            Violation(
                zxid=seen.zxid,
                chroot=seen.chroot,
                topic="",
                partition=-1,
                clause=clause_id,
                path=seen.path,
                session=seen.session,
                before=f"epoch {seen.around.controller_epoch}",
                after=str(seen.event),
                reason=reason,
                expected="see the clause",
                time_ms=seen.time_ms,
            )
        )


def _other_views(seen: Observation) -> Iterator[Surroundings]:
    """Yield the surroundings as the controller may have seen them instead."""
    doubt = sorted(seen.doubt)[:_MOST_DOUBT]
    around = seen.around
    for few in range(1, len(doubt) + 1):
        for chosen in combinations(doubt, few):
            yield replace(
                around, live=around.live ^ frozenset(chosen), known=around.known | frozenset(doubt)
            )


def _find_debt(partition: Partition, owed: Owed, untouched: frozenset[str]) -> Rejected:
    """Say which rule a controller breaks that rests while this write is owed."""
    asked = isinstance(owed.write, CreateReassignment | UpdateReassignment | DeleteRequest)
    if asked and partition.requests:
        path = znodes.request_path(partition.requests[0].sequence)
        if path in untouched:
            return _find_unseen(path, f"{owed.clause} says what becomes of it")
    return Rejected(owed.clause, f"the controller rests and owes: {_describe(owed.write)}")


def _find_unseen(path: str, why: str) -> Rejected:
    """Say what is broken where nothing was taken from the request queue since this came.

    What the request asks for has no part in it yet: whoever does not look leaves a good one too.
    """
    return Rejected(
        "request.consumed",
        f"nothing was taken from the queue since {path} came: it was not looked at, or is kept "
        f"({why})",
    )


def _show_state(state: LeaderAndIsr | None) -> str:
    if state is None:
        return ""
    return znodes.encode_state(
        znodes.StateZnode(state.leader, state.leader_epoch, state.controller_epoch, state.isr)
    ).decode()


def _show_reassignment(record: Reassignment | None) -> str:
    if record is None:
        return ""
    return znodes.encode_reassignment(
        znodes.ReassignmentZnode(record.top, record.target, record.legacy)
    ).decode()


def _describe(write: Write) -> str:
    """Return the content that a write leaves, as text."""
    match write:
        case CreateState(state) | WriteState(state) | ChangeIsr(state, _):
            return _show_state(state)
        case WriteAssigned(assigned):
            return f"assigned {list(assigned)}"
        case CreateReassignment(record) | UpdateReassignment(record):
            return _show_reassignment(record)
        case DeleteReassignment():
            return "the record of the reassignment removed"
        case DeleteRequest(sequence):
            return f"request {sequence} removed"


def _describe_before(partition: Partition, seen: Observation) -> str:
    match seen.event:
        case StateWritten():
            return _show_state(partition.state)
        case AssignedWritten():
            return "" if partition.assigned is None else f"assigned {list(partition.assigned)}"
        case ReassignmentWritten():
            return _show_reassignment(partition.reassignment)
        case RequestRemoved(sequence):
            targets = [r.target for r in partition.requests if r.sequence == sequence]
            return f"request {sequence} for {list(targets[0])}" if targets else ""
    return ""


def _describe_resting(
    partition: Partition, topic: str, number: int, owed: Owed | None
) -> tuple[str, str]:
    """Return the znode that should have been written, and its content."""
    match owed.write if owed is not None else None:
        case WriteAssigned():
            return znodes.topic_path(topic), f"assigned {list(partition.assigned or ())}"
        case CreateReassignment() | UpdateReassignment() | DeleteReassignment():
            path = znodes.reassignment_path(topic, number)
            return path, _show_reassignment(partition.reassignment)
        case DeleteRequest(sequence):
            target = partition.requests[0].target
            return znodes.request_path(sequence), f"request {sequence} for {list(target)}"
        case _:
            return znodes.state_path(topic, number), _show_state(partition.state)
