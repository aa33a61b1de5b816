"""Leaders and in-sync sets: what a controller owes before it looks at any reassignment."""

from reassure_model.partition import Environment, LeaderAndIsr, Partition, is_leader_live
from reassure_model.selectors import select_new, select_offline
from reassure_model.writes import CreateState, Obligation, raise_epoch
from reassure_spec.clauses import checks
from reassure_spec.znodes import NO_LEADER


@checks
def next_for_new_partition(partition: Partition, around: Environment) -> Obligation | None:
    """Bring a partition online for the first time once a replica of it is alive."""
    if partition.assigned is None or partition.state is not None:
        return None
    elected = select_new(partition.assigned, around.live)
    if elected is None:
        return None
    state = LeaderAndIsr(elected.leader, 0, around.controller_epoch, elected.isr)
    return Obligation(CreateState(state), "partition.new.brought-online")


@checks
def next_for_dead_brokers(partition: Partition, around: Environment) -> Obligation | None:
    """Elect a leader where there is none alive, then take the dead out of the in-sync set."""
    state = partition.state
    if state is None or partition.assigned is None:
        return None
    if not is_leader_live(state, around):
        elected = select_offline(partition.assigned, state.isr, around.live)
        if elected is None and state.leader == NO_LEADER:
            return None
        leader, isr = (NO_LEADER, state.isr) if elected is None else (elected.leader, elected.isr)
        return Obligation(raise_epoch(state, around, leader, isr), "election.held")
    if any(replica not in around.live for replica in state.isr):
        isr = tuple(replica for replica in state.isr if replica in around.live)
        return Obligation(raise_epoch(state, around, state.leader, isr), "isr.remove.dead")
    return None
