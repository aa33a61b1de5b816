"""What is wrong with a partition as it stands, and how to look past it.

After a violation a partition may stay wrong for long, and every write that leaves it so would be
rejected for it again. Such a write is a *follow-up*, unless it is wrong in something else as well:
that shows when it is judged as if what was wrong already were right (`look_past`).
"""

from dataclasses import replace

from reassure_model.partition import LeaderAndIsr, Partition
from reassure_model.writes import ChangeIsr, CreateState, Write, WriteAssigned, WriteState
from reassure_spec.znodes import NO_LEADER, ReplicaList


def look_past(partition: Partition, write: Write) -> tuple[Partition, Write]:
    """Return partition and write with every replica once, and the leader in sync, in both."""
    state = None if partition.state is None else _mend(partition.state)
    assigned = None if partition.assigned is None else _once(partition.assigned)
    mended = replace(partition, assigned=assigned, state=state)
    match write:
        case WriteAssigned(new):
            return mended, WriteAssigned(_once(new))
        case WriteState(new_state):
            return mended, WriteState(_mend(new_state))
        case CreateState(new_state):
            return mended, CreateState(_mend(new_state))
        case ChangeIsr(new_state, writer):
            return mended, ChangeIsr(_mend(new_state), writer)
        case _:
            return mended, write


def _once(replicas: ReplicaList) -> ReplicaList:
    return tuple(dict.fromkeys(replicas))


def _mend(state: LeaderAndIsr) -> LeaderAndIsr:
    leader = () if state.leader in (NO_LEADER, *state.isr) else (state.leader,)
    return replace(state, isr=_once((*state.isr, *leader)))
