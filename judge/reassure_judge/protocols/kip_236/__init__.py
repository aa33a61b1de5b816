"""KIP-236, as written and amended: requests in a queue, a record of each reassignment in flight.

The rules are the model's (`reassure_model.protocols.kip_236`). What a controller has in mind and
did not write is kept as several possible states (`reassure_judge.protocols.kip_236.possible`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import ClassVar, Final

from reassure_judge.history import AssignedWritten, SeenWrite, StateWritten
from reassure_judge.memo import NAMES, RECORD, SEQUENCE, Names
from reassure_judge.protocols.kip_236.possible import (
    RECORDS,
    PossibleMind,
    believe,
    drop_head,
    fail_over,
    is_silent,
    list_named,
    look_past,
    remove_request,
    settle_request,
    submit_request,
    take_silent_steps,
)
from reassure_judge.protocols.kip_236.router import (
    OWN_PARENTS,
    ReassignmentWritten,
    RequestRemoved,
    RequestRouter,
    RequestSubmitted,
)
from reassure_judge.rules import ReplicaRules, Sign, Signs, show_state
from reassure_model.controllers import ACTING, DEPOSED
from reassure_model.machine import Due
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Environment, Partition, Reassignment
from reassure_model.protocols.kip_236 import is_remembered
from reassure_model.protocols.kip_236.machine import JUDGEMENT
from reassure_model.protocols.kip_236.rules import accept_write
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
    adopt,
)
from reassure_spec import znodes
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import ReplicaList

_ON_REQUESTS: Final = (*RECORDS, DeleteRequest)
_FOR: Final = "recorded for"
"""Under this the request is kept for which the record in flight was written last."""


def find_write(before: Partition, event: object) -> Write | None:
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


class RequestRules(ReplicaRules[PossibleMind, Write]):
    """KIP-236."""

    profiles: ClassVar[tuple[str, ...]] = ("kip-236", "kip-236-amended")
    driven: ClassVar[tuple[str, ...]] = ("kip-236", "kip-236-amended")
    router: ClassVar[type[RequestRouter]] = RequestRouter
    judgement = JUDGEMENT
    names: ClassVar[Names] = {
        **NAMES,
        ReassignmentWritten: {"reassignment": RECORD},
        RequestSubmitted: {"request": RECORD},
        RequestRemoved: {"sequence": SEQUENCE},
    }
    of_topics = (WriteAssigned,)
    flights = (ReassignmentWritten,)
    noticed = _ON_REQUESTS

    def __init__(self, profile: str, readings: Readings) -> None:
        super().__init__(profile, readings)
        self.is_view_kept = is_remembered(readings)

    @classmethod
    def find_sign(cls, signs: Signs) -> Sign | None:
        """Return the tree of requests or records that was written."""
        tree = next(
            (tree for tree in sorted(OWN_PARENTS, reverse=True) if tree in signs.trees), None
        )
        return None if tree is None else Sign(2, f"there is {tree}", {})

    def begin(self) -> PossibleMind:
        """Return a partition that does not exist."""
        return PossibleMind(self.judgement.begin)

    def find_write(self, state: PossibleMind, seen: SeenWrite) -> Write | None:
        """Say which write this is; a session that is broker and controller may write as either."""
        event, before, author = seen.event, state.partition, seen.author
        if isinstance(event, StateWritten) and event.state is not None:
            if before.assigned is None:
                return None
            if before.state is not None:
                kept = event.state.leader_epoch == before.state.leader_epoch
                # Only a controller raises the epoch; one may write what a leader asks for.
                asked = event.writer >= 0 and event.writer not in author.brokers
                alone = not author.fenced and author.office not in (ACTING, DEPOSED)
                if (kept and (asked or not author.fenced)) or (event.writer >= 0 and alone):
                    return ChangeIsr(event.state, event.writer)
        if isinstance(event, RequestRemoved) and author.is_client:
            # Whoever made a request may withdraw it.
            return None
        return find_write(before, event)

    def take_over(self, state: PossibleMind, seen: SeenWrite) -> Iterable[PossibleMind]:
        """Take over what clients write, what is given, and what nobody may be asked about."""
        partition = state.partition
        match seen.event:
            case RequestSubmitted(request):
                return (submit_request(state, request),)
            case AssignedWritten(None):
                return (state._replace(partition=Partition(requests=partition.requests)),)
            case AssignedWritten(assigned):
                return (state._replace(partition=replace(partition, assigned=assigned)),)
            case StateWritten(written, _):
                return (state._replace(partition=replace(partition, state=written)),)
            case ReassignmentWritten(record):
                taken = replace(partition, reassignment=record, drop_due=False)
                return (state._replace(partition=taken),)
            case RequestRemoved(sequence):
                return remove_request(state, sequence)
        return (state,)

    def fail_over(self, state: PossibleMind) -> PossibleMind:
        """Return the state as the next controller finds it, who remembers nothing."""
        return fail_over(state, self.readings)

    def accept(
        self, state: PossibleMind, write: Write, around: Environment
    ) -> Accepted[Partition] | Rejected:
        """Ask the model, with what the controller has in mind about the lowest request."""
        if state.decided and isinstance(write, DeleteRequest) and not state.withdrawn:
            partition = state.partition
            if partition.requests[0].sequence == write.sequence:
                return Accepted(drop_head(partition), (state.decided, "request.consumed"))
        # A request that is removed was there: it is not the one that was withdrawn.
        gone = state.withdrawn and isinstance(write, DeleteRequest)
        partition = drop_head(state.partition) if gone else state.partition
        return accept_write(partition, write, around, self.readings)

    def follow(self, state: PossibleMind, after: Partition, write: Write) -> PossibleMind:
        """Return the state after a write; what was in mind about the lowest request is settled."""
        if state.decided or state.withdrawn:
            return settle_request(PossibleMind(after, state.decided, state.withdrawn), write)
        return PossibleMind(after)

    @clause("request.same-target.no-change")
    def notice(self, state: PossibleMind, write: Write, memory: dict[str, int]) -> tuple[str, ...]:
        """Notice a request that goes though its target was recorded for another one."""
        requests, flight = state.partition.requests, state.partition.reassignment
        if not requests:
            return ()
        if not isinstance(write, DeleteRequest):
            memory[_FOR] = requests[0].sequence
            return ()
        same = flight is not None and flight.target == requests[0].target
        if same and memory.get(_FOR) != requests[0].sequence:
            return ("request.same-target.no-change",)
        return ()

    def is_bound(self, state: PossibleMind) -> bool:
        """Whether the lowest request is still there: one that is gone binds nobody."""
        return not state.withdrawn

    def list_named(self, state: PossibleMind, write: Write | None) -> frozenset[int]:
        """Return the brokers that matter to a partition, or to a write to it."""
        return list_named(state.partition, write)

    def list_wanted(self, states: Iterable[PossibleMind]) -> frozenset[int] | None:
        """Return the replicas that the lowest requests ask for."""
        heads = [request for state in states for request in state.partition.requests[:1]]
        if not heads:
            return None
        return frozenset(replica for request in heads for replica in request.target)

    def is_silent(self, state: PossibleMind) -> bool:
        """Whether there is a silent step to think of at all."""
        return is_silent(state.partition)

    def take_silent_steps(
        self, state: PossibleMind, views: Iterable[Environment]
    ) -> Iterator[PossibleMind]:
        """Yield the states that one silent step leads to."""
        return take_silent_steps(state, views, self.readings)

    def list_stopping(
        self, state: PossibleMind, write: Write, around: Environment
    ) -> Iterator[frozenset[int]]:
        """Yield the live brokers that a controller's write takes out of the in-sync set."""
        before = state.partition.state
        if isinstance(write, WriteState) and before is not None:
            out = frozenset(before.isr).difference(write.state.isr) & around.live
            if out:
                yield out

    def adopt(self, partition: Partition, write: Write) -> Partition:
        """Return the partition with what was written."""
        return adopt(partition, write)

    def believe(self, state: PossibleMind, write: Write) -> tuple[PossibleMind, ...]:
        """Return all that the author of a write that no rule allows may have in mind."""
        return believe(state, write, self.readings)

    def look_past(self, partition: Partition, write: Write) -> tuple[Partition, Write]:
        """Return both with every replica once, and the leader in sync."""
        return look_past(partition, write)

    @clause("request.consumed")
    def find_debt(
        self, partition: Partition, owed: Due[Write], untouched: frozenset[str]
    ) -> Rejected:
        """Say which rule is broken, or that the queue was not looked at."""
        if isinstance(owed.write, _ON_REQUESTS) and partition.requests:
            path = znodes.request_path(partition.requests[0].sequence)
            if path in untouched:
                return _find_unseen(path, f"{owed.clause} says what becomes of it")
        return super().find_debt(partition, owed, untouched)

    def find_leftover(self, clause_id: str, path: str, reason: str, *, untouched: bool) -> Rejected:
        """Say that something is still there, or that the queue was not looked at."""
        if untouched:
            return _find_unseen(path, reason)
        return super().find_leftover(clause_id, path, reason, untouched=untouched)

    def find_target(self, event: object) -> ReplicaList | None:
        """Return the target that a record holds."""
        record = event[0] if isinstance(event, ReassignmentWritten) else None
        return None if record is None else record.target

    def find_route(self, event: object) -> str:
        """Return whether the record is of a request, or of an entry of the old znode."""
        record = event[0] if isinstance(event, ReassignmentWritten) else None
        return "legacy record" if record is not None and record.legacy else "record"

    def exists(self, partition: Partition) -> bool:
        """Whether there is a partition, or a request that names it."""
        return partition.assigned is not None or bool(partition.requests)

    def describe(self, write: Write) -> str:
        """Return the content that a write leaves."""
        match write:
            case CreateState(state) | WriteState(state) | ChangeIsr(state, _):
                return show_state(state)
            case WriteAssigned(assigned):
                return f"assigned {list(assigned)}"
            case CreateReassignment(record) | UpdateReassignment(record):
                return _show_reassignment(record)
            case DeleteReassignment():
                return "the record of the reassignment removed"
            case DeleteRequest(sequence):  # one way: nothing else is written
                return f"request {sequence} removed"

    def describe_before(self, partition: Partition, event: object) -> str:
        """Return what an event changed."""
        match event:
            case StateWritten():
                return show_state(partition.state)
            case AssignedWritten():
                return "" if partition.assigned is None else f"assigned {list(partition.assigned)}"
            case ReassignmentWritten():
                return _show_reassignment(partition.reassignment)
            case RequestRemoved(sequence):
                targets = [r.target for r in partition.requests if r.sequence == sequence]
                return f"request {sequence} for {list(targets[0])}" if targets else ""
        return ""

    def describe_resting(
        self, partition: Partition, topic: str, number: int, owed: Due[Write] | None
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
                return znodes.state_path(topic, number), show_state(partition.state)


RULES: Final = RequestRules


def _find_unseen(path: str, why: str) -> Rejected:
    """Say what is broken where nothing was taken from the request queue since this came.

    What the request asks for has no part in it yet: whoever does not look leaves a good one too.
    """
    return Rejected(
        "request.consumed",
        f"nothing was taken from the queue since {path} came: it was not looked at, or is kept "
        f"({why})",
    )


# In words -----------------------------------------------------------------------------------------


def _show_reassignment(record: Reassignment | None) -> str:
    if record is None:
        return ""
    return znodes.encode_reassignment(
        znodes.ReassignmentZnode(record.top, record.target, record.legacy)
    ).decode()
