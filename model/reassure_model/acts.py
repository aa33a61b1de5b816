"""Ordinary acts of a controller that have nothing to do with a reassignment.

A client asks for preferred leaders, a broker asks to stop, a topic is to be deleted, a topic allows
a leader that was not in sync. Each of them is a write of leader and in-sync set that no rule on
reassignments asks for, and each is told by its own evidence, which stands in `Environment`. None of
them is owed: a controller that does not serve such requests breaks nothing.
"""

from reassure_model.partition import Environment, LeaderAndIsr, Partition, is_leader_live
from reassure_model.selectors import select_controlled_shutdown, select_offline, select_preferred
from reassure_spec.clauses import checks
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER


@checks
def find_act(
    partition: Partition, new: LeaderAndIsr, around: Environment, readings: Readings
) -> tuple[str, ...] | None:
    """Return the clauses of the ordinary act that this write of a controller is; None if none."""
    assert partition.state is not None and partition.assigned is not None
    if is_unclean(partition, new, around, readings):
        return ("act.unclean-election",)
    if is_preferred(partition, new, around, readings):
        return ("act.preferred-election",)
    if is_shutdown(partition, new, around):
        return ("act.controlled-shutdown",)
    if is_deletion(partition, new, around):
        return ("act.deletion-stops-replicas",)
    return None


def is_isr_without_more(old: LeaderAndIsr, new: LeaderAndIsr) -> bool:
    """Whether some of those in sync are left so, each once; nobody joins by an act of these."""
    joins = any(r not in old.isr for r in new.isr)
    return not joins and len(new.isr) > 0 and len(set(new.isr)) == len(new.isr)


def is_preferred(
    partition: Partition, new: LeaderAndIsr, around: Environment, readings: Readings
) -> bool:
    """Whether the first assigned replica takes over, where somebody has asked for it.

    The in-sync set stays as it is. A completion that has begun elects in the target alone.
    """
    old = partition.state
    assert old is not None and partition.assigned is not None
    if not around.preferred_asked and readings.election_preferred == "asked":
        return False
    if partition.completing or not is_isr_without_more(old, new):
        return False
    elected = select_preferred(partition.assigned, old.isr, around.live)
    kept = len(new.isr) == len(old.isr)
    return kept and elected is not None and new.leader == elected.leader != old.leader


def is_shutdown(partition: Partition, new: LeaderAndIsr, around: Environment) -> bool:
    """Whether brokers that are about to stop leave the in-sync set, one that leads after handover.

    Where nobody can take over the leader stays, and with it the in-sync set.
    """
    old = partition.state
    assert old is not None and partition.assigned is not None
    if not is_isr_without_more(old, new):
        return False
    removed = [r for r in old.isr if r not in new.isr]
    stays = any(r in around.live and r not in around.stopping for r in removed)
    if stays or not any(r in around.stopping for r in removed):
        return False
    if old.leader not in around.stopping:
        return new.leader == old.leader and new.leader in new.isr
    elected = select_controlled_shutdown(partition.assigned, old.isr, around.live, around.stopping)
    return elected is not None and new.leader == elected.leader


def is_deletion(partition: Partition, new: LeaderAndIsr, around: Environment) -> bool:
    """Whether replicas of a topic that is to be deleted are stopped, a leader without a successor.

    The last in-sync replica stays in the set (KAFKA-5083).
    """
    old = partition.state
    assert old is not None
    if not around.deleting or not is_isr_without_more(old, new):
        return False
    if new.leader == NO_LEADER:
        return True
    return new.leader == old.leader and new.leader in new.isr


def is_unclean(
    partition: Partition, new: LeaderAndIsr, around: Environment, readings: Readings
) -> bool:
    """Whether the first live assigned replica takes over alone, where no in-sync one is alive.

    The topic has to allow it, or the default of all brokers, or the reading `election.unclean`.
    """
    old = partition.state
    assert old is not None and partition.assigned is not None
    if not around.unclean_allowed and readings.election_unclean == "no":
        return False
    if is_leader_live(old, around):
        return False
    if select_offline(partition.assigned, old.isr, around.live) is not None:
        return False
    elected = select_offline(partition.assigned, old.isr, around.live, unclean=True)
    return elected is not None and (new.leader, new.isr) == (elected.leader, elected.isr)
