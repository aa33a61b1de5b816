"""KIP-236 and KAFKA-4485 as one system: a partition is reassigned while its replicas have logs.

Neither document says what readers take from both: no record that consumers were shown is lost by a
reassignment, whatever fails in between. Here the two models run together, each by its own `step`.
The stored leader and in-sync set are one; what else there is stays its model's own:

- Who leads joins and removes by the rules of both: KAFKA-4485 says who has caught up, KIP-236 who
  may be in the set.
- A write of the controller that raises the leader epoch makes the leader, old or new, begin a term;
  with that order it is told who runs a replica (`told`, `messages.list_running`).
- A replica that the controller takes out of the assignment is deleted with its log.
- A broker that dies takes no action. Back again it has its log, and follows before it fetches.

Orders reach brokers at once, elections are clean. Not here: leaders that do not know yet that they
lead no more, orders that come late, a leader that is back before anybody was elected.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from reassure_model.environment import Controller, Die, Join, Leave, Return
from reassure_model.messages import list_running
from reassure_model.outcome import Accepted
from reassure_model.protocols.kafka_4485 import replication as logs
from reassure_model.protocols.kafka_4485.machine import forget_versions
from reassure_model.protocols.kafka_4485.replication import Replica, Replication
from reassure_model.protocols.kip_236 import next_write, system
from reassure_model.protocols.kip_236.machine import MACHINE
from reassure_model.protocols.kip_236.system import Submit, System
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER, ReplicaList

STRANGER: Final = Replica(leader_epoch=-1)
"""What a broker holds that has no replica, or that has yet to learn who leads."""


@dataclass(frozen=True, slots=True)
class Composition:
    """One partition of both models; brokers are numbered from 0."""

    system: System
    replication: Replication
    told: frozenset[int]
    """Who runs a replica, as the leader was told with the order that began its term."""


@dataclass(frozen=True, slots=True)
class Switches:
    """What is done otherwise than a broker should; without any, what should hold."""

    notes_strangers: bool = False
    """The leader notes fetches of whom it was not told."""
    loses_disks: bool = False
    """A broker that returns has lost its log."""


SOUND: Final = Switches()


def make_composition(assigned: ReplicaList, brokers: int, readings: Readings) -> Composition:
    """Return a partition that is online and empty, led by broker 0, which is assigned first."""
    state = system.make_system(assigned, range(brokers))
    while next_write(state.partition, state.around, readings) is not None:
        outcome = system.step(state, Controller(), readings)
        assert isinstance(outcome, Accepted)  # nothing is in flight yet
        state = MACHINE.normalise(outcome.state)
    members = frozenset(assigned)
    replication = logs.make_replication(brokers, members=members)
    replicas = tuple(r if b in members else STRANGER for b, r in enumerate(replication.replicas))
    return Composition(state, replace(replication, replicas=replicas), members)


def list_steps(
    state: Composition,
    readings: Readings,
    targets: tuple[ReplicaList, ...] = (),
    records: int = 1,
    switches: Switches = SOUND,
) -> Iterator[tuple[Any, Composition]]:
    """Yield what may happen, each action with the state after it.

    Clients may ask for `targets`; the leader appends while its log has fewer than so many records.
    """
    for action in system.enabled(state.system, readings, tuple(map(Submit, targets))):
        if not isinstance(action, Join | Leave):  # these are the leader's, below
            yield from _step_system(state, action, readings, switches)
    leader = state.replication.leader
    if leader in state.system.live and leader == _get_stored_leader(state.system):
        for own in logs.enabled(state.replication):
            if _is_possible(state, own, records, switches):
                yield from _step_logs(state, own, readings)


def _get_stored_leader(stored: System) -> int:
    state = stored.partition.state
    return NO_LEADER if state is None else state.leader


def _step_system(
    state: Composition, action: Any, readings: Readings, switches: Switches
) -> Iterator[tuple[Any, Composition]]:
    if isinstance(action, Return) and action.broker == _get_stored_leader(state.system):
        return
    outcome = system.step(state.system, action, readings)
    if not isinstance(outcome, Accepted):
        return
    after = replace(state, system=outcome.state)
    match action:
        case Controller():
            after = _obey(state, outcome.state, readings)
        case Die(broker):
            kept = replace(state.replication.replicas[broker], request=None, leader_epoch=-1)
            after = _hold(after, broker, kept)
        case Return(broker) if switches.loses_disks:
            after = _hold(after, broker, STRANGER)
    yield action, _forget_counts(after)


def _obey(state: Composition, stored: System, readings: Readings) -> Composition:
    """Return the state after a write of the controller, with all brokers told of it."""
    before, after, replication = state.system.partition, stored.partition, state.replication
    told = state.told
    if after.state is not None and before.state is not None:
        isr = frozenset(after.state.isr)
        if isr != replication.isr:
            replication = replace(replication, isr=isr, version=replication.version + 1)
        raised = after.state.leader_epoch != before.state.leader_epoch
        if raised and after.state.leader != NO_LEADER:
            elected = logs.step(replication, logs.Elect(after.state.leader), readings)
            assert isinstance(elected, Accepted), "KIP-236 elects members of the in-sync set"
            replication, told = elected.state, frozenset(list_running(after))
    state = Composition(stored, replication, told)
    for broker in set(before.assigned or ()) - set(after.assigned or ()):
        state = _hold(state, broker, STRANGER)
    return state


def _hold(state: Composition, broker: int, replica: Replica) -> Composition:
    replicas = state.replication.replicas
    replicas = (*replicas[:broker], replica, *replicas[broker + 1 :])
    return replace(state, replication=replace(state.replication, replicas=replicas))


def _is_possible(state: Composition, action: logs.Action, records: int, switches: Switches) -> bool:
    """Whether what the logs allow is possible for these brokers."""
    broker, partition = action.broker, state.system.partition
    match action:
        case logs.Elect() | logs.Remove():
            return False  # these are the controller's
        case logs.Append():
            return len(state.replication.replicas[broker].log) < records
        case logs.Serve() | logs.CatchUp() if not switches.notes_strangers:
            noted = broker in state.told
        case _:
            noted = True
    if broker == state.replication.leader:
        return True
    return noted and broker in state.system.live and broker in (partition.assigned or ())


def _step_logs(
    state: Composition, action: logs.Action, readings: Readings
) -> Iterator[tuple[Any, Composition]]:
    outcome = logs.step(state.replication, action, readings)
    if not isinstance(outcome, Accepted):
        return
    stored = state.system
    if isinstance(action, logs.Join | logs.Leave):
        kind = Join if isinstance(action, logs.Join) else Leave
        written = system.step(stored, kind(action.broker), readings)
        if not isinstance(written, Accepted):
            return
        stored = written.state
    yield action, _forget_counts(Composition(stored, outcome.state, state.told))


def _forget_counts(state: Composition) -> Composition:
    """Return the state that stands for all that differ from it in numbers that only count."""
    return replace(
        state,
        system=MACHINE.normalise(state.system),
        replication=forget_versions(state.replication),
    )
