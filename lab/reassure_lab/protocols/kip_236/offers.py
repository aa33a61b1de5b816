"""What may happen next to a partition: the writes that the model offers whoever is in the turn.

Each is a function of what it is asked of and of nothing else, so that its answer may be kept
(`reassure_lab.protocols.kip_236.canonical`).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from reassure_model.partition import Environment, LeaderAndIsr, Partition, is_leader_live
from reassure_model.protocols.kip_236 import next_write
from reassure_model.protocols.kip_236.system import is_stopped
from reassure_model.writes import ChangeIsr, Write
from reassure_spec.readings import Readings

Offer = Callable[[Partition, Environment, Readings], Iterable[Write]]


def offer_owed(partition: Partition, around: Environment, readings: Readings) -> Iterator[Write]:
    """Offer what the controller owes."""
    owed = next_write(partition, around, readings)
    if owed is not None:
        yield owed.write


def offer_return(partition: Partition, around: Environment, readings: Readings) -> Iterator[Write]:
    """Offer that the leader takes back a replica, the first of those that may catch up."""
    state = _find_led(partition, around)
    if state is None:
        return
    waiting = (r for r in partition.assigned or () if r in around.live and r not in state.isr)
    for replica in waiting:
        if not is_stopped(partition, replica, readings):
            yield ChangeIsr(replace(state, isr=(*state.isr, replica)), state.leader)
            return


def offer_lag(partition: Partition, around: Environment, readings: Readings) -> Iterator[Write]:
    """Offer that the leader takes out a follower, each of those in sync."""
    state = _find_led(partition, around)
    if state is None:
        return
    for gone in state.isr:
        if gone != state.leader:
            isr = tuple(replica for replica in state.isr if replica != gone)
            yield ChangeIsr(replace(state, isr=isr), state.leader)


def _find_led(partition: Partition, around: Environment) -> LeaderAndIsr | None:
    """Return the state of a partition whose leader is there to change it."""
    state = partition.state
    return state if state is not None and is_leader_live(state, around) else None
