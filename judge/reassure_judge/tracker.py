"""One partition's judge: asks the model of every write whether it could have happened.

The tracker keeps every state that the history leaves possible (`reassure_judge.possible`), nearly
always one. A write maps the set. Where a broker or a setting is in doubt (`reassure_judge.doubt`)
its author may have acted on another view of the surroundings.

* A write that is allowed from every state, as things are, puts its clauses to the test.
* One that is allowed from some states or in some view only leaves *undecided* the clauses that
  reject it otherwise.
* One that is rejected from every state in every view is a violation.

After a violation the tracker takes over what was really written, with everything that its author
may take to be the case, and judges on from there: what is rejected then is a violation of its own.
A *follow-up* is only what was wrong already and still is: the same clause, for the same culprit.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from reassure_judge.doubt import CERTAIN, Views
from reassure_judge.history import (
    AssignedWritten,
    BadMended,
    BadRequestRemoved,
    BadRequestSeen,
    BrokerGone,
    BrokerRegistered,
    ElectionSeen,
    Event,
    Forbidden,
    Observation,
    ReassignmentWritten,
    RequestRemoved,
    RequestSubmitted,
    StateWritten,
    Unreadable,
)
from reassure_judge.possible import (
    MOST_STATES,
    RECORDS,
    Possible,
    adopt,
    believe,
    drop_head,
    fail_over,
    is_silent,
    list_named,
    remove_request,
    settle_request,
    submit_request,
    take_silent_steps,
)
from reassure_judge.standing import Fault, list_faults, look_past
from reassure_judge.suspicion import ACT, Suspicion, Suspicions
from reassure_judge.verdicts import Place, Tally, Violation
from reassure_model.controllers import ACTING, DEPOSED, Controllership, accept_election
from reassure_model.kip_236.invariants import INVARIANTS
from reassure_model.kip_236.lives import find_broken_registration
from reassure_model.kip_236.owed import Owed, next_write
from reassure_model.kip_236.requests import is_remembered
from reassure_model.kip_236.rules import accept_write
from reassure_model.kip_236.state import LeaderAndIsr, Partition, Reassignment, Surroundings
from reassure_model.kip_236.writes import (
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
from reassure_model.outcome import Accepted, Rejected
from reassure_spec import znodes
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings

_ANY: Final = ("znode.well-formed",)
"""What every write that a rule accepts puts to the test besides."""
_ASSIGNED: Final = (*_ANY, "topic.partitions-kept", "topic.content-kept")
_BAD: Final = (Unreadable, Forbidden)
_ON_REQUESTS: Final = (*RECORDS, DeleteRequest)
_ALWAYS: Final = tuple((each.clause, each.find) for each in INVARIANTS if not each.at_rest)


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


def _locate(seen: Observation) -> Place:
    return Place(seen.zxid, seen.chroot, seen.topic, seen.partition, seen.path)


def _find_fresh(before: Partition, after: Partition) -> list[Rejected]:
    """Find what is always true, and is not any more, or for another reason than before."""
    found = []
    for clause_id, find in _ALWAYS:
        reason = find(after)
        if reason is not None and find(before) != reason:
            found.append(Rejected(clause_id, reason))
    return found


class PartitionTracker:
    """Follows one partition through its history."""

    def __init__(self, readings: Readings, tally: Tally) -> None:
        self.states: tuple[Possible, ...] = (Possible(Partition()),)
        """What the history leaves possible, the likeliest first. All states hold the same znodes,
        requests excepted that were withdrawn."""
        self.readings = readings
        self.tally = tally
        self.suspicions = Suspicions(tally)
        self.follow_ups = 0
        """Rejected writes that are wrong only in what was wrong already."""
        self.overflowed = False
        """Whether there were more possible states than are kept: all that follows is unknown."""
        self._epoch: int | None = None
        self._owed_reported = ""
        """The clause of what was owed at the last rest, and was reported."""
        self._recorded_for: int | None = None
        """The request for which the record in flight was written last."""
        self._standing: frozenset[Fault] = frozenset()
        """What is wrong since a violation that was reported."""

    @property
    def partition(self) -> Partition:
        """The likeliest state."""
        return self.states[0].partition

    def feed(self, seen: Observation) -> None:
        """Judge one observation and take it over."""
        if seen.around.controller_epoch != self._epoch:
            self._begin_term(seen.around.controller_epoch)
        event = seen.event
        if isinstance(event, _BAD):
            said = "znode.well-formed" if isinstance(event, Unreadable) else event.clause
            self._violate(seen, Rejected(said, event.reason), "")
            return
        if self.suspicions.open:
            if isinstance(event, BrokerGone):
                self.suspicions.clear(event.broker)
                return
            self.suspicions.look(seen.time_ms)
        write = None
        if isinstance(event, RequestSubmitted):
            self._keep(submit_request(state, event.request) for state in self.states)
        elif seen.given or (write := self._find_write(seen)) is None:
            self._take_over(seen)
        else:
            self._judge(seen, write)
        states = self.states
        if len(states) > 1 or is_silent(states[0].partition):
            after = self._take_silent_steps(seen)
            if after is not states:
                self._keep(after)

    def _begin_term(self, epoch: int) -> None:
        """Note that another controller acts, who remembers nothing."""
        if self._epoch is not None:
            self.states = fail_over(self.states, self.readings)
        self._epoch = epoch

    def _find_write(self, seen: Observation) -> Write | None:
        """Say which write of the model this is; None for what is not a controller's or leader's."""
        event, before, author = seen.event, self.states[0].partition, seen.author
        if isinstance(event, StateWritten) and event.state is not None:
            if before.assigned is None:
                return None
            if before.state is not None and not author.fenced:
                kept = event.state.leader_epoch == before.state.leader_epoch
                # A session that is a broker's and a controller's may write as either; only a
                # controller raises the epoch.
                if kept or (event.writer >= 0 and author.office not in (ACTING, DEPOSED)):
                    return ChangeIsr(event.state, event.writer)
        if isinstance(event, RequestRemoved) and author.is_client and not author.fenced:
            # Whoever made a request may withdraw it.
            return None
        return find_write(before, event)

    @clause("controller.write.by-controller", "controller.write.epoch-checked")
    def _judge(self, seen: Observation, write: Write) -> None:
        blamed: tuple[Rejected, ...] = ()
        if not isinstance(write, ChangeIsr):
            author, tally = seen.author, self.tally
            blamed = author.broken
            tally.passed[author.tested] += 1
            if author.undecided:
                tally.leave_open(author.undecided, _locate(seen))
            self._owed_reported = ""
        states = self.states
        if len(states) == 1 and not self.overflowed and not blamed:
            state = states[0]
            outcome = self._accept(state, write, seen.around)
            sure = seen.doubt is CERTAIN or not self._is_view_kept(seen)
            if sure and isinstance(outcome, Accepted):
                if isinstance(write, _ON_REQUESTS):
                    self._note_same_target(write)
                after = Possible(outcome.state, state.decided, state.withdrawn)
                if state.decided or state.withdrawn:
                    after = settle_request(after, write)
                self.states = (after,)
                self._count(seen, write, state.partition, outcome.clauses)
                return
        self._judge_all(seen, write, blamed)

    def _is_view_kept(self, seen: Observation) -> bool:
        """Whether what becomes of the partition depends on what the author saw of the surroundings.

        So it does only where effects come before the record of what asks for them.
        """
        return seen.doubt is not CERTAIN and is_remembered(self.readings)

    def _accept(
        self, state: Possible, write: Write, around: Surroundings
    ) -> Accepted[Partition] | Rejected:
        if state.decided and isinstance(write, DeleteRequest) and not state.withdrawn:
            partition = state.partition
            if partition.requests[0].sequence == write.sequence:
                return Accepted(drop_head(partition), (state.decided, "request.consumed"))
        # A request that is removed was there: it is not the one that was withdrawn.
        gone = state.withdrawn and isinstance(write, DeleteRequest)
        partition = drop_head(state.partition) if gone else state.partition
        return accept_write(partition, write, around, self.readings)

    def _judge_all(self, seen: Observation, write: Write, blamed: tuple[Rejected, ...]) -> None:
        """Map every state, in every view where that matters.

        `blamed` is what the write breaks by its author, whatever it says.
        """
        before, states = self.states[0].partition, self.states
        outcomes = [self._accept(state, write, seen.around) for state in states]
        rejected = [outcome for outcome in outcomes if isinstance(outcome, Rejected)]
        accepted = [outcome for outcome in outcomes if isinstance(outcome, Accepted)]
        found = self._settle(write, zip(states, outcomes, strict=True))
        complete = True
        if not accepted or self._is_view_kept(seen):
            views = self._list_views(seen, write)
            complete = views.complete
            for state in states:
                found += self._look(state, write, views, every=self._is_view_kept(seen))
        sure = not found and complete and not self.overflowed
        if sure and not blamed and self._suspect(seen, write, rejected[0]):
            return
        if sure or blamed:
            self._reject(seen, write, [*blamed, *(rejected[:1] if sure else ())])
            # What somebody else wrote changes nothing in the controller's mind.
            if found:
                others = () if seen.author.office == ACTING else self.states
                self._keep((*found, *others))
            return
        # A request that was withdrawn can be forgotten at any time, so nobody is bound by it.
        bound = zip(states, outcomes, strict=True)
        unsure = {o.clause for s, o in bound if isinstance(o, Rejected) and not s.withdrawn}
        if self.overflowed:
            unsure.update(c for outcome in accepted for c in outcome.clauses)
        self.tally.leave_open(unsure, _locate(seen))
        if not found:
            self._adopt(write)
            return
        self._note_same_target(write)
        self._keep(found)
        tested = [c for c in accepted[0].clauses if c not in unsure] if accepted else []
        for outcome in accepted[1:]:
            tested = [c for c in tested if c in outcome.clauses]
        self._count(seen, write, before, tuple(tested))

    def _suspect(self, seen: Observation, write: Write, rejected: Rejected) -> bool:
        """Whether a write that is allowed by no state may be part of a controlled shutdown."""
        before = self.states[0].partition
        if not isinstance(write, WriteState) or before.state is None:
            return False
        stopping = frozenset(before.state.isr).difference(write.state.isr) & seen.around.live
        if not stopping:
            return False
        around = replace(seen.around, stopping=stopping)
        outcomes = [self._accept(state, write, around) for state in self.states]
        found = self._settle(write, zip(self.states, outcomes, strict=True))
        if not found:
            return False
        violation = self._make_violation(seen, rejected, _describe(write))
        self.suspicions.add(Suspicion(stopping, seen.time_ms, violation))
        self._keep(found)
        tested = next(o.clauses for o in outcomes if isinstance(o, Accepted))
        self._count(seen, write, before, tuple(c for c in tested if c != ACT))
        return True

    def _look(self, state: Possible, write: Write, views: Views, *, every: bool) -> list[Possible]:
        """Return what a write leads to from one state, in the first view that allows it or all."""
        found: list[Possible] = []
        for around in views:
            outcome = self._accept(state, write, around)
            found += self._settle(write, [(state, outcome)])
            if found and not every:
                break
        return found

    def _settle(
        self, write: Write, outcomes: Iterable[tuple[Possible, Accepted[Partition] | Rejected]]
    ) -> list[Possible]:
        """Return the states after the write, where it was accepted."""
        return [
            settle_request(Possible(outcome.state, state.decided, state.withdrawn), write)
            for state, outcome in outcomes
            if isinstance(outcome, Accepted)
        ]

    def _list_views(self, seen: Observation, write: Write | None) -> Views:
        named = frozenset[int]().union(*(list_named(s.partition, write) for s in self.states))
        by_leader = isinstance(write, ChangeIsr)
        return Views(seen.around, seen.doubt, named, by_leader=by_leader)

    def _take_silent_steps(self, seen: Observation) -> tuple[Possible, ...]:
        views: tuple[Surroundings, ...] = (seen.around,)
        heads = [r for s in self.states for r in s.partition.requests[:1]]
        if heads and seen.doubt is not CERTAIN:
            named = frozenset(replica for request in heads for replica in request.target)
            views += tuple(Views(seen.around, seen.doubt, named, by_leader=False))
        return take_silent_steps(self.states, views, self.readings)

    def _keep(self, states: Iterable[Possible]) -> None:
        """Take these states for the possible ones, each once, and no more than are kept."""
        found = tuple(states)
        if len(found) > 1:
            found = tuple(dict.fromkeys(found))
        if len(found) > MOST_STATES:
            self.overflowed = True
        self.states = found[:MOST_STATES]

    def _map(self, change: Callable[[Partition], Partition]) -> None:
        self._keep(state._replace(partition=change(state.partition)) for state in self.states)

    def _count(
        self, seen: Observation, write: Write, before: Partition, clauses: tuple[str, ...]
    ) -> None:
        """Count what an accepted write put to the test, and look at what is always true."""
        passed = self.tally.passed
        passed[clauses] += 1
        passed[_ASSIGNED if isinstance(write, WriteAssigned) else _ANY] += 1
        after = self.states[0].partition
        for _, find in _ALWAYS:
            if find(after) is not None:
                fresh = _find_fresh(before, after)
                if fresh:
                    self._violate(seen, fresh[0], _describe(write), fresh[1:])
                    self._standing |= list_faults(after)
                break
        if self._standing:
            self._standing &= list_faults(after)

    def _reject(self, seen: Observation, write: Write, broken: list[Rejected]) -> None:
        """Report a write for what it breaks, the worst first, and take over what was written."""
        before, after = self.partition, adopt(self.partition, write)
        faults = list_faults(after)
        old = {clause_id for clause_id, _ in faults & list_faults(before)}
        told = [rejected for rejected in broken if rejected.clause not in old]
        if len(told) < len(broken):
            told += self._look_past(seen, write, old)
        clauses = {rejected.clause for rejected in broken}
        told += [r for r in _find_fresh(before, after) if r.clause not in clauses]
        if told:
            self._violate(seen, told[0], _describe(write), told[1:])
        else:
            self.follow_ups += 1
        self._standing = faults
        self._adopt(write)

    def _look_past(self, seen: Observation, write: Write, old: set[str]) -> list[Rejected]:
        """Return what a write breaks besides what was broken already."""
        views = (seen.around, *self._list_views(seen, write))
        first: list[Rejected] = []
        for state in self.states:
            partition, mended = look_past(state.partition, write)
            for around in views:
                outcome = self._accept(state._replace(partition=partition), mended, around)
                if isinstance(outcome, Accepted) or outcome.clause in old:
                    return []
                first = first or [outcome]
        return first

    def _adopt(self, write: Write) -> None:
        """Take over a write that is not allowed, with all that its author may have in mind."""
        self._keep(p for state in self.states for p in believe(state, write, self.readings))

    @clause("request.same-target.no-change")
    def _note_same_target(self, write: Write) -> None:
        """Count a request that goes though the target it asks for was recorded for another one."""
        if not isinstance(write, _ON_REQUESTS):
            return
        partition = self.states[0].partition
        requests, flight = partition.requests, partition.reassignment
        if not requests:
            return
        if not isinstance(write, DeleteRequest):
            self._recorded_for = requests[0].sequence
        elif flight is not None:
            same = flight.target == requests[0].target
            if same and self._recorded_for != requests[0].sequence:
                self.tally.exercised["request.same-target.no-change"] += 1

    def _take_over(self, seen: Observation) -> None:
        """Take over what was written without asking."""
        match seen.event:
            case AssignedWritten(assigned):
                if assigned is None:
                    self._map(lambda p: Partition(requests=p.requests))
                else:
                    self._map(lambda p: replace(p, assigned=assigned))
            case StateWritten(state, _):
                self._map(lambda p: replace(p, state=state))
            case ReassignmentWritten(record):
                self._map(lambda p: replace(p, reassignment=record, drop_due=False))
            case RequestRemoved(sequence):
                self._keep(s for state in self.states for s in remove_request(state, sequence))

    @clause("znode.well-formed")
    def _violate(
        self, seen: Observation, rejected: Rejected, after: str, besides: Sequence[Rejected] = ()
    ) -> None:
        self.tally.violations.append(self._make_violation(seen, rejected, after, besides))

    def _make_violation(
        self, seen: Observation, rejected: Rejected, after: str, besides: Sequence[Rejected] = ()
    ) -> Violation:
        return Violation(
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
            author=seen.author.describe(),
            time_ms=seen.time_ms,
            besides=tuple(each.clause for each in besides),
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
        time_ms: int = 0,
    ) -> None:
        """Judge what must be true when the controller has nothing left to do.

        A state from which something is owed is none that a controller rests in.
        """
        if around.controller_epoch != self._epoch:
            self._begin_term(around.controller_epoch)
        self.suspicions.rest()
        due = [next_write(state.partition, around, self.readings) for state in self.states]
        owed = [each for each in due if each is not None]
        broken = self._find_broken_at_rest()
        if len(owed) < len(due) or self.overflowed:
            bound = zip(self.states, due, strict=True)
            unsure = {each.clause for s, each in bound if each is not None and not s.withdrawn}
            self.tally.leave_open(unsure, Place(zxid, chroot, topic, number, ""))
            if len(owed) < len(due):
                resting = zip(self.states, due, strict=True)
                self.states = tuple(state for state, each in resting if each is None)
            owed = []
        if owed and owed[0].clause != self._owed_reported:
            broken = _find_debt(self.partition, owed[0], untouched)
        self._owed_reported = owed[0].clause if owed else ""
        if broken is None:
            return
        path, before = _describe_resting(self.partition, topic, number, owed[0] if owed else None)
        self.tally.violations.append(
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
                expected=self._describe_owed(around),
                time_ms=time_ms,
            )
        )

    def _find_broken_at_rest(self) -> Rejected | None:
        """Find what is wrong at rest and was not reported; count what is not."""
        broken: Rejected | None = None
        if self.partition.assigned is not None:
            self.tally.exercised["topic.removed-when-asked"] += 1
        if self.partition.state is not None:
            self.tally.exercised["partition.state-kept"] += 1
        for invariant in INVARIANTS:
            reason = invariant.find(self.partition)
            if reason is None:
                self.tally.exercised[invariant.clause] += 1
            elif (invariant.clause, reason) not in self._standing:
                broken = broken or Rejected(invariant.clause, reason)
                self._standing |= {(invariant.clause, reason)}
        return broken


class ClusterTracker:
    """Follows what concerns a cluster as a whole: elections, and what is none of ours."""

    def __init__(self, tally: Tally) -> None:
        self.controllership = Controllership()
        self.tally = tally
        self.bad: dict[str, BadRequestSeen] = {}
        self._reported: set[str] = set()

    def feed(self, seen: Observation) -> None:
        """Judge one observation and take it over."""
        match seen.event:
            case ElectionSeen():
                self._on_election(seen, seen.event)
            case BrokerRegistered(ephemeral):
                broken = find_broken_registration(ephemeral=ephemeral)
                if broken is None:
                    self.tally.exercised["broker.registered-ephemeral"] += 1
                else:
                    self._violate(seen, broken.clause, broken.reason)
            case BadRequestSeen():
                self.bad[seen.path] = seen.event
            case BadRequestRemoved():
                found = self.bad.pop(seen.path)
                self._on_removal(seen, found)
            case BadMended():
                self.bad.pop(seen.path, None)
            case Forbidden(clause_id, reason):
                self._violate(seen, clause_id, reason)
            case Unreadable(reason):
                self._violate(seen, "znode.well-formed", reason)

    def _on_election(self, seen: Observation, election: ElectionSeen) -> None:
        broker, epoch, ephemeral = election
        before = self.controllership
        self.controllership = Controllership(broker, epoch)
        # A history that begins in the middle does not say which epoch came before.
        if seen.given or (before.epoch == 0 and seen.doubt.strangers):
            return
        outcome = accept_election(before, broker, epoch, ephemeral=ephemeral)
        if isinstance(outcome, Rejected):
            self._violate(seen, outcome.clause, outcome.reason)
            return
        for clause_id in outcome.clauses:
            self.tally.exercised[clause_id] += 1

    @clause("controller.write.by-controller", "controller.write.epoch-checked")
    def _on_removal(self, seen: Observation, found: BadRequestSeen) -> None:
        """Judge who removed what cannot be used; its maker may do so as well."""
        author = seen.author
        if author.is_client and not author.fenced:
            return
        self.tally.exercised.update((found.clause, *author.tested))
        self.tally.leave_open(author.undecided, _locate(seen))
        for rejected in author.broken:
            self._violate(seen, rejected.clause, rejected.reason)

    def rest(self, chroot: str, zxid: int, untouched: frozenset[str], time_ms: int = 0) -> None:
        """Judge what must be gone, and what must be there, when nothing is left to do."""
        for kept in ("controller.epoch.kept", "znode.roots-kept", "topic.settings-kept"):
            self.tally.exercised[kept] += 1
        for path, found in self.bad.items():
            if path in self._reported:
                continue
            self._reported.add(path)
            broken = Rejected(found.clause, f"still there: {found.reason}")
            if path in untouched:
                broken = _find_unseen(path, found.reason)
            self.tally.violations.append(
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
                    time_ms=time_ms,
                )
            )

    def _violate(self, seen: Observation, clause_id: str, reason: str) -> None:
        self.tally.violations.append(
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
                author=seen.author.describe(),
                time_ms=seen.time_ms,
            )
        )


def _find_debt(partition: Partition, owed: Owed, untouched: frozenset[str]) -> Rejected:
    """Say which rule a controller breaks that rests while this write is owed."""
    if isinstance(owed.write, _ON_REQUESTS) and partition.requests:
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
