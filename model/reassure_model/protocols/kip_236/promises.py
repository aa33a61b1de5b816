"""What a reader of KIP-236 takes for granted of a reassignment that changes on its way.

None of it is a rule of the document, and as written most of it is broken: each predicate is the
question behind a finding (`reassure_spec.findings`). Some look back, at what was assigned when the
chain of reassignments began and when its last change was recorded. A controller does not know that;
whoever asks keeps it in a `Memory`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from reassure_model.partition import Environment, Partition
from reassure_model.protocols.kip_236 import find_drop, next_write
from reassure_model.writes import Obligation, WriteState
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER, ReplicaList


@dataclass(frozen=True, slots=True)
class Memory:
    """What was, as far as the promises speak of it."""

    original: ReplicaList = ()
    """Assigned replicas when the first reassignment of the chain was recorded."""
    before: ReplicaList = ()
    """Assigned replicas when the last change of the target was recorded."""
    lost: bool = False
    """A failover came before a drop that was due, and nobody knows of it any more."""
    again: bool = False
    """A failover made a drop due that was carried out before."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A partition, its environment, what is remembered of it, and the readings."""

    partition: Partition
    around: Environment
    memory: Memory
    readings: Readings

    @property
    def owed(self) -> Obligation | None:
        """The write that is due."""
        return next_write(self.partition, self.around, self.readings)

    @property
    def dropped(self) -> ReplicaList:
        """The replicas that are to be dropped now, none where something else is due."""
        owed = self.owed
        if owed is None or owed.clause != "drop.carried-out":
            return ()
        return find_drop(self.partition, self.readings)


@clause("drop.slice.inclusive")
def find_healthy_dropped(moment: Moment) -> str | None:
    """Say so when something is to be dropped and no more than top are assigned (finding drop-2)."""
    flight, assigned = moment.partition.reassignment, moment.partition.assigned
    if flight is None or assigned is None or len(assigned) > flight.top or not moment.dropped:
        return None
    return f"{moment.dropped[0]} is to be dropped, {len(assigned)} of {flight.top} are assigned"


@clause("drop.before-expansion")
def find_fresh_dropped(moment: Moment) -> str | None:
    """Say so when a change drops what it has just added itself (finding drop-3)."""
    flight = moment.partition.reassignment
    if flight is None:
        return None
    fresh = [r for r in moment.dropped if r in flight.target and r not in moment.memory.before]
    return f"{fresh[0]} was just added and is to be dropped" if fresh else None


@clause("drop.protect-target")
def find_target_dropped(moment: Moment) -> str | None:
    """Say so when an in-sync replica of the target is to be dropped (finding drop-4)."""
    flight, state = moment.partition.reassignment, moment.partition.state
    if flight is None or state is None:
        return None
    lost = [r for r in moment.dropped if r in flight.target and r in state.isr]
    return f"{lost[0]} is in sync and in the target, and is to be dropped" if lost else None


@clause("drop.keep-top")
def find_original_dropped(moment: Moment) -> str | None:
    """Say so when going back to the original replicas is to drop one of them (finding drop-6)."""
    flight, original = moment.partition.reassignment, moment.memory.original
    if flight is None or set(flight.target) != set(original):
        return None
    lost = [replica for replica in moment.dropped if replica in original]
    return f"{lost[0]} is an original replica, and is to be dropped" if lost else None


@clause("drop.leader-kept")
def find_intermediate_leader(moment: Moment) -> str | None:
    """Say so when, at rest, a replica leads that nobody wanted to begin with or wants (drop-7)."""
    flight, state = moment.partition.reassignment, moment.partition.state
    if flight is None or state is None or state.leader == NO_LEADER or moment.owed is not None:
        return None
    if state.leader in flight.target or state.leader in moment.memory.original:
        return None
    return f"{state.leader} leads, and is neither an original replica nor in the target"


@clause("top.original-length")
def find_redundancy_dropped(moment: Moment) -> str | None:
    """Say so when a drop leaves fewer in sync than the target has, of more (finding drop-8)."""
    flight, state = moment.partition.reassignment, moment.partition.state
    if flight is None or state is None:
        return None
    left = [replica for replica in state.isr if replica not in moment.dropped]
    if len(left) == len(state.isr) or len(left) >= len(flight.target):
        return None
    return f"{len(state.isr)} are in sync, {len(left)} are left for a target of the length " + str(
        len(flight.target)
    )


@clause("child.before-effects")
def find_top_lost(moment: Moment) -> str | None:
    """Say so when top is not the length of the original assignment (finding protocol-1)."""
    flight, original = moment.partition.reassignment, moment.memory.original
    if flight is None or not original or flight.top == len(original):
        return None
    return f"top is {flight.top}, {len(original)} replicas were assigned to begin with"


@clause("target.at-least-min-isr")
def find_short_completion(moment: Moment) -> str | None:
    """Say so when completing takes the in-sync set below the minimum (finding drop-10)."""
    owed, state = moment.owed, moment.partition.state
    if owed is None or state is None or owed.clause != "complete.carried-out":
        return None
    least = moment.around.min_insync_replicas
    if not isinstance(owed.write, WriteState) or len(owed.write.state.isr) >= least:
        return None
    if len(state.isr) < least:
        return None
    return f"{len(owed.write.state.isr)} would be in sync, min.insync.replicas is {least}"


@clause("top.once-per-chain")
def find_assignment_grown(moment: Moment) -> str | None:
    """Say so when, at rest, more are assigned than original and target replicas (drop-12)."""
    partition, state = moment.partition, moment.partition.state
    flight, assigned = partition.reassignment, partition.assigned
    if flight is None or assigned is None or moment.owed is not None:
        return None
    if state is None or state.leader not in state.isr:
        return None
    most = len(moment.memory.original) + len(flight.target)
    return (
        f"{len(assigned)} are assigned, at most {most} expected" if len(assigned) > most else None
    )


@clause("drop.carried-out")
def find_drop_lost(moment: Moment) -> str | None:
    """Say so when a failover made a drop that was due unknown (finding drop-16)."""
    return "a drop was due, and the next controller does not see it" if moment.memory.lost else None


@clause("drop.rank.leader-isr-rest")
def find_dropped_again(moment: Moment) -> str | None:
    """Say so when a failover has a drop evaluated anew that was carried out (finding drop-18).

    Where somebody else leads by now, the ranking is another and so is the drop.
    """
    if not moment.memory.again or not moment.dropped:
        return None
    return f"a drop was carried out, and {list(moment.dropped)} is to be dropped after a failover"


PROMISES: Final[Mapping[str, Callable[[Moment], str | None]]] = {
    "drop.slice.inclusive": find_healthy_dropped,
    "drop.before-expansion": find_fresh_dropped,
    "drop.protect-target": find_target_dropped,
    "drop.keep-top": find_original_dropped,
    "drop.leader-kept": find_intermediate_leader,
    "top.original-length": find_redundancy_dropped,
    "child.before-effects": find_top_lost,
    "target.at-least-min-isr": find_short_completion,
    "top.once-per-chain": find_assignment_grown,
    "drop.carried-out": find_drop_lost,
    "drop.rank.leader-isr-rest": find_dropped_again,
}
"""By clause."""
