"""The rules that hold of every version of Apache Kafka, however its targets are kept."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

from reassure_judge.history import AssignedWritten, SeenWrite, StateWritten
from reassure_judge.memo import BROKERS, LISTS, NAMES, RECORD, Names
from reassure_judge.protocols.kafka_zk.partition import (
    AlterIsr,
    DropEntry,
    Logged,
    RestoreEntry,
    WriteLists,
    Written,
    get_assignment,
    list_targets,
)
from reassure_judge.protocols.kafka_zk.router import EntryWritten, KafkaRouter, ListsWritten
from reassure_judge.protocols.kafka_zk.versions import find_releases
from reassure_judge.rules import Possible, ReplicaRules, Signs, show_state
from reassure_model.invariants import Invariant, find_empty_isr, find_leader_out_of_sync
from reassure_model.machine import Due
from reassure_model.partition import Environment, Partition, Reassignment
from reassure_model.protocols.kafka_zk import Assignment
from reassure_model.protocols.kafka_zk.machine import find_unelectable
from reassure_model.writes import ChangeIsr, CreateState, WriteState
from reassure_spec import znodes
from reassure_spec.clauses import clause
from reassure_spec.znodes import NO_LEADER, ReplicaList


@clause("isr.never-empty")
def find_emptied(hosted: Logged) -> str | None:
    """Say so when nobody is in sync, and not because the topic is deleted."""
    return None if hosted.emptied else find_empty_isr(hosted)


@clause("shipped.isr.within-assigned", "move.isr.within-assigned")
def find_outside(hosted: Logged) -> str | None:
    """Say so when leader or in-sync set lie outside the assignment."""
    state, assigned = hosted.state, hosted.assigned
    if state is None or assigned is None:
        return None
    outside = [r for r in (*state.isr, state.leader) if r not in (*assigned, NO_LEADER)]
    return f"in sync or leading, and not assigned: {outside}" if outside else None


@clause("shipped.entry.not-for-ever")
def find_entry_left(hosted: Logged) -> str | None:
    """Say so when the old znode names a partition with which nothing is under way."""
    moving = hosted.adding or hosted.removing
    return f"target {list(hosted.entry)}" if hosted.entry is not None and not moving else None


@clause("shipped.complete.entry-last")
def find_dropped(hosted: Logged) -> str | None:
    """Say so when an entry was removed, and nothing was done for it or for a call in its place."""
    if hosted.dropped is None:
        return None
    return f"the entry {list(hosted.dropped)} was removed, and nothing was done instead"


@clause("shipped.isr.electable")
def find_nobody_electable(hosted: Logged) -> str | None:
    """Say so when nobody leads and, of those in sync, nobody is assigned."""
    state = hosted.state
    if state is None:
        return None
    return find_unelectable(state.leader, state.isr, hosted.assigned or ())


def make_invariants(within: str) -> tuple[Invariant[Logged], ...]:
    """Return what is always true, and what is true at rest by the clause named."""
    return (
        Invariant("leader.in-isr", find_leader_out_of_sync),
        Invariant("isr.never-empty", find_emptied),
        Invariant(within, find_outside, at_rest=True),
    )


class KafkaRules(ReplicaRules[Possible, Written]):
    """What holds of every version."""

    router = KafkaRouter
    names: ClassVar[Names] = {
        **NAMES,
        Assignment: {"replicas": BROKERS, "adding": BROKERS, "removing": BROKERS},
        Logged: {
            "assigned": BROKERS,
            "adding": BROKERS,
            "removing": BROKERS,
            "entry": BROKERS,
            "asked": LISTS,
            "earlier": BROKERS,
            "dropped": BROKERS,
            "halfway": BROKERS,
            "told": BROKERS,
            "state": RECORD,
        },
        ListsWritten: {"assignment": RECORD},
        EntryWritten: {"target": BROKERS},
    }
    assigns = ListsWritten
    of_topics = (WriteLists,)
    flights: ClassVar[tuple[type, ...]] = (ListsWritten,)
    shape_first = True
    suspects_first = True

    @classmethod
    def find_version(cls, signs: Signs) -> str:
        """Return the releases of Apache Kafka that write so."""
        return find_releases(signs)

    def begin(self) -> Possible:
        """Return a partition that does not exist."""
        return Possible(Logged())

    def find_write(self, state: Possible, seen: SeenWrite) -> Written | None:
        """Say which write this is: only a controller raises the leader epoch."""
        before: Logged = state.partition
        match seen.event:
            case StateWritten(new, writer) if new is not None and before.assigned is not None:
                if before.state is None:
                    return CreateState(new)
                if new.leader_epoch != before.state.leader_epoch:
                    return WriteState(new)
                return AlterIsr(new) if seen.author.fenced else ChangeIsr(new, writer)
            case ListsWritten(assignment) if assignment is not None and before.assigned is not None:
                return WriteLists(assignment)
            case EntryWritten(target) if not seen.author.is_client:
                if target is not None:
                    return RestoreEntry(target)
                return DropEntry() if before.entry is not None else None
        return None

    def take_over(self, state: Possible, seen: SeenWrite) -> Iterable[Possible]:
        """Take over what clients write, and what is given."""
        before: Logged = state.partition
        match seen.event:
            case StateWritten(new, _):
                told = before.assigned or ()
                return (Possible(replace(before, state=new, told=told)),)
            case ListsWritten(None) | AssignedWritten(None):
                gone = Logged(entry=before.entry, asked=before.asked, earlier=before.earlier)
                return (Possible(gone),)
            case ListsWritten(assignment) if assignment is not None:
                return (Possible(_take_lists(before, assignment)),)
            case EntryWritten(target):
                return (Possible(self.follow_entry(before, target)),)
        return (state,)

    def follow_entry(self, before: Logged, target: ReplicaList | None) -> Logged:
        """Return the partition once a client has written the old znode, or deleted it (None)."""
        if target is None:
            return replace(before, entry=None, earlier=before.entry)
        # What another target takes the place of may be written back as well.
        earlier = before.earlier if before.entry is None else before.entry
        after = replace(before, earlier=earlier, done=before.done and bool(before.entry))
        return self.take_entry(after, target)

    def take_entry(self, before: Logged, target: ReplicaList) -> Logged:
        """Return the partition once the old znode names a target."""
        return replace(before, entry=target)

    def list_named(self, state: Possible, write: Written | None) -> frozenset[int]:
        """Return the brokers that matter to a partition, or to a write to it."""
        hosted: Logged = state.partition
        named = [*(hosted.assigned or ()), *(r for t in list_targets(hosted) for r in t)]
        states = [hosted.state, getattr(write, "state", None)]
        for each in states:
            named += [] if each is None else [each.leader, *each.isr]
        return frozenset(named) - {NO_LEADER}

    def list_stopping(
        self, state: Possible, write: Written, around: Environment
    ) -> Iterator[frozenset[int]]:
        """Yield the live brokers that leave the in-sync set or lead no more; then any passed over.

        A controller that completes a move elects past a leader that stops, which stays in sync.
        """
        old = state.partition.state
        if not isinstance(write, WriteState) or old is None:
            return
        new, members = write.state, around.live.intersection(old.isr)
        elected = new.leader not in (old.leader, NO_LEADER)
        out = members.difference(new.isr) | (members & {old.leader} if elected else frozenset())
        if out:
            yield out
        passed = members - {new.leader} if elected else out
        if passed > out:
            yield passed

    def adopt(self, partition: Logged, write: Written) -> Logged:
        """Return the partition with what was written."""
        match write:
            case CreateState(state) | WriteState(state) | ChangeIsr(state, _) | AlterIsr(state):
                return replace(partition, state=state)
            case WriteLists(assignment):
                return replace(_take_lists(partition, assignment), done=True)
            case DropEntry():
                return replace(partition, entry=None)
            case RestoreEntry(target):  # one way: nothing else is written
                return self.take_entry(partition, target)

    def believe(self, state: Possible, write: Written) -> tuple[Possible, ...]:
        """Return what the author may have in mind: that it completes, or not."""
        after = self.adopt(state.partition, write)
        return tuple(dict.fromkeys((Possible(after), Possible(replace(after, completing=True)))))

    def find_assigned(self, event: Any) -> ReplicaList | None:
        """Return all replicas of the lists, those being added and removed included."""
        return None if event.assignment is None else event.assignment.replicas

    def find_target(self, event: object) -> ReplicaList | None:
        """Return the target that the lists tell of, where something is added or removed."""
        lists = event.assignment if isinstance(event, ListsWritten) else None
        return lists.target if lists is not None and lists.is_reassigning else None

    def find_route(self, event: object) -> str:
        """Return that it is the lists in the topic's znode."""
        return "lists"

    def show(self, partition: Logged) -> Partition | None:
        """Return the partition, in flight where the old znode names it or its lists say so.

        Who cancels a call does not say what was assigned before: none of it is kept in mind.
        """
        if partition.assigned is None and partition.entry is None:
            return None
        flight = None
        if partition.adding or partition.removing:
            flight = Reassignment(get_assignment(partition).target, 0)
        elif partition.entry is not None:
            flight = Reassignment(partition.entry, len(partition.assigned or ()), legacy=True)
        shown = Partition(partition.assigned, partition.state, flight)
        return replace(shown, completing=partition.completing)

    def describe(self, write: Written) -> str:
        """Return the content that a write leaves."""
        match write:
            case CreateState(state) | WriteState(state) | ChangeIsr(state, _) | AlterIsr(state):
                return show_state(state)
            case WriteLists(assignment):
                return _show_lists(assignment)
            case DropEntry():
                return "the entry of the old znode removed"
            case RestoreEntry(target):  # one way: nothing else is written
                return f"target {list(target)}"

    def describe_before(self, partition: Logged, event: object) -> str:
        """Return what an event changed."""
        match event:
            case StateWritten():
                return show_state(partition.state)
            case ListsWritten():
                return _show_lists(get_assignment(partition)) if partition.assigned else ""
            case EntryWritten():
                return "" if partition.entry is None else f"target {list(partition.entry)}"
        return ""

    def describe_resting(
        self, partition: Logged, topic: str, number: int, owed: Due[Written] | None
    ) -> tuple[str, str]:
        """Return the partition's state, which is what is owed."""
        return znodes.state_path(topic, number), show_state(partition.state)


def _take_lists(before: Logged, lists: Assignment) -> Logged:
    after = replace(before, assigned=lists.replicas, adding=lists.adding, removing=lists.removing)
    return replace(after, told=before.told or lists.replicas)


def _show_lists(lists: Assignment) -> str:
    text = f"assigned {list(lists.replicas)}"
    if lists.is_reassigning:
        text += f", adding {list(lists.adding)}, removing {list(lists.removing)}"
    return text
