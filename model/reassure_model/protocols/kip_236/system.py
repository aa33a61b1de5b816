"""One partition and everything that can happen around it, as named actions.

The rules say what a single write may be, and `owed` says which write is due. Here both stand in
the middle of a world that goes on meanwhile: clients ask for new targets, replicas fall behind and
catch up, brokers die and return, controllers follow one another. Each action is a deterministic
function of the system's fields and of its own parameters. Between any two writes of the controller
every other action may come, so that a crash, a death or a change at the worst moment is not a
special case.

An interleaving is a sequence of actions. `enabled` lists those that are possible, `step` takes one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from reassure_model.environment import Controller, Die, Failover, Join, Leave, NotPossible, Return
from reassure_model.messages import Stored
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import (
    Environment,
    LeaderAndIsr,
    Partition,
    Request,
    is_leader_live,
    is_target_in_sync,
)
from reassure_model.protocols.kip_236 import apply_failover, find_drop, has_begun, next_write
from reassure_model.protocols.kip_236.rules import accept_write
from reassure_model.writes import ChangeIsr, Obligation, Write
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import ReplicaList


@dataclass(frozen=True, slots=True)
class System:
    """One partition and its environment."""

    partition: Partition
    live: frozenset[int]
    """Registered brokers."""
    known: frozenset[int]
    """Brokers that are registered or have a configuration."""
    min_insync_replicas: int = 1
    controller_epoch: int = 1
    next_sequence: int = 0
    """Sequence number of the next request."""

    @property
    def around(self) -> Environment:
        """What the rules read of the environment."""
        return Environment(self.live, self.known, self.min_insync_replicas, self.controller_epoch)


@dataclass(frozen=True, slots=True)
class Submit:
    """A client asks for a target."""

    target: ReplicaList
    legacy: bool = False


STAYS_OUT: Final = "isr.change.stopped-stays-out"
Action = Submit | Join | Leave | Die | Return | Failover | Controller
Outcome = Accepted[System] | Rejected


def make_system(
    assigned: ReplicaList, brokers: Sequence[int], *, min_insync_replicas: int = 1
) -> System:
    """Return a system with all brokers alive and a partition that is not yet online."""
    members = frozenset(brokers)
    return System(Partition(assigned), members, members, min_insync_replicas)


def enabled(system: System, readings: Readings, asked: Sequence[Submit] = ()) -> tuple[Action, ...]:
    """Return every action that is possible, the requests that clients may make included.

    Possible does not mean allowed: whether the rules accept what an action writes is for `step`
    to say.
    """
    partition = system.partition
    actions: list[Action] = []
    if next_write(partition, system.around, readings) is not None:
        actions.append(Controller())
    actions += asked
    state, assigned = partition.state, partition.assigned
    if state is not None and assigned is not None and is_leader_live(state, system.around):
        waiting = (r for r in assigned if r not in state.isr and r in system.live)
        actions += [Join(r) for r in waiting if not is_stopped(partition, r, readings)]
        actions += [Leave(replica) for replica in state.isr if replica != state.leader]
    actions += [Die(broker) for broker in sorted(system.live)]
    actions += [Return(broker) for broker in sorted(system.known - system.live)]
    return (*actions, Failover())


@clause(STAYS_OUT)
def is_stopped(partition: Partition, replica: int, readings: Readings) -> bool:
    """Whether the controller has told an assigned replica to stop, so that it cannot catch up.

    A drop and a completion cut the in-sync set before they write the assignment. In between the
    replica is assigned still, and the rules have nothing against its joining again; the controller
    would owe the same cut again, and so for ever. But it is not running any more, and the leader
    knows by the new epoch who is to stay. So nobody joins who would be taken out again at once:
    whom the drop that is due would drop, whom a completion that has begun does not keep. A new
    controller tells replicas anew and begins the completion anew.
    """
    if has_begun(partition, readings):
        partition = replace(partition, reassignment=partition.taken)
    state, flight = partition.state, partition.reassignment
    if state is None or flight is None:
        return False
    if partition.completing and replica not in flight.target and is_target_in_sync(partition):
        return True
    if not partition.drop_due:
        return False
    joined = replace(partition, state=replace(state, isr=(*state.isr, replica)))
    return replica in find_drop(joined, readings)


def step(system: System, action: Action, readings: Readings) -> Outcome:
    """Take one action.

    Rejected is the answer to a write that the rules do not allow. Raises NotPossible for an action
    that has nothing to act upon: no leader to change the in-sync set, a replica to leave that is
    not in it, a dead broker to die, nothing owed.
    """
    match action:
        case Submit(target, legacy):
            return Accepted(_submit(system, target, legacy))
        case Join(replica):
            outcome = _change_isr(system, (*_state(system, action).isr, replica), readings)
            if isinstance(outcome, Accepted) and is_stopped(system.partition, replica, readings):
                return Rejected(STAYS_OUT, "it was told to stop")
            return outcome
        case Leave(replica) if replica in _state(system, action).isr:
            members = _state(system, action).isr
            return _change_isr(system, tuple(r for r in members if r != replica), readings)
        case Die(broker) if broker in system.live:
            return Accepted(replace(system, live=system.live - {broker}))
        case Return(broker) if broker not in system.live:
            live, known = system.live | {broker}, system.known | {broker}
            return Accepted(replace(system, live=live, known=known))
        case Failover():
            partition = apply_failover(system.partition, readings)
            epoch = system.controller_epoch + 1
            return Accepted(replace(system, partition=partition, controller_epoch=epoch))
        case Controller():
            return _write_owed(system, readings)
    raise NotPossible(f"{action} is not possible in {system}")


def _submit(system: System, target: ReplicaList, legacy: bool) -> System:
    sequence = system.next_sequence
    requests = (*system.partition.requests, Request(sequence, target, legacy))
    partition = replace(system.partition, requests=requests)
    return replace(system, partition=partition, next_sequence=sequence + 1)


def _state(system: System, action: Action) -> LeaderAndIsr:
    state = system.partition.state
    if state is None or not is_leader_live(state, system.around):
        raise NotPossible(f"{action}: there is no live leader in {system}")
    return state


def _change_isr(system: System, isr: ReplicaList, readings: Readings) -> Outcome:
    state = system.partition.state
    assert state is not None
    return _write(system, ChangeIsr(replace(state, isr=isr), state.leader), readings)


def _write_owed(system: System, readings: Readings) -> Outcome:
    owed = next_write(system.partition, system.around, readings)
    if owed is None:
        raise NotPossible(f"the controller owes nothing in {system}")
    return _write(system, owed.write, readings, owed.clause)


def _write(system: System, write: Write, readings: Readings, *clauses: str) -> Outcome:
    """Put a write to the rules; `clauses` are those that ask for it."""
    outcome = accept_write(system.partition, write, system.around, readings)
    if isinstance(outcome, Rejected):
        return outcome
    after = replace(system, partition=outcome.state)
    stored = Stored(system.partition, write, outcome.state)
    return Accepted(after, outcome.clauses + clauses, (stored,))


def compute_plan(
    partition: Partition, around: Environment, readings: Readings, limit: int = 100
) -> tuple[tuple[Obligation, ...], Partition]:
    """Return every write that the controller owes in order, and the partition after the last.

    Each write is put to the rules. Raises RuntimeError when the rules reject one or more than
    `limit` are owed: then the model contradicts itself.
    """
    plan: tuple[Obligation, ...] = ()
    while (owed := next_write(partition, around, readings)) is not None:
        outcome = accept_write(partition, owed.write, around, readings)
        if isinstance(outcome, Rejected) or len(plan) == limit:  # uncovered: it is consistent
            raise RuntimeError(f"the model contradicts itself: {owed} of {partition}: {outcome}")
        partition = outcome.state
        plan = (*plan, owed)
    return plan, partition
