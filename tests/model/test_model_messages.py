"""What the model tells brokers after each write leaves each of them knowing what it has to know."""

import itertools
from collections.abc import Iterable
from dataclasses import replace

import pytest

from reassure_judge.messages import Heard, Told
from reassure_model.environment import Controller, Join
from reassure_model.messages import Message, StopReplica, is_needed, list_messages
from reassure_model.outcome import Accepted
from reassure_model.partition import LeaderAndIsr, Partition, to_znode
from reassure_model.protocols.kip_236 import next_write
from reassure_model.protocols.kip_236.system import Submit, System, is_stopped, make_system, step
from reassure_model.writes import DeleteRequest
from reassure_spec.readings import get_profile
from reassure_spec.znodes import ReplicaList

BROKERS = (1, 2, 3, 4)
KEY = ("orders", 0)
TARGETS = ((2, 3), (3, 4), (2, 1), (1, 2, 3), (3,))


def tell(heard: Heard, system: System, messages: Iterable[Message]) -> None:
    """Have live brokers take what they are told."""
    for message in messages:
        for broker in message.to:
            if isinstance(message, StopReplica):
                assert not (message.delete and is_needed(get_state(system), broker)), message
                said = Told(broker, *KEY, 1, None, delete=message.delete)
            else:
                said = Told(broker, *KEY, 1, to_znode(message.state), message.replicas)
            heard.take(said)


def get_state(system: System) -> LeaderAndIsr:
    """Return leader and in-sync set."""
    assert system.partition.state is not None
    return system.partition.state


def settle(system: System, heard: Heard, profile: str, *, joins: bool) -> System:
    """Let the controller work until nothing is owed, and whoever may join do so."""
    readings = get_profile(profile)
    while True:
        state, assigned = system.partition.state, system.partition.assigned or ()
        waiting = [
            Join(replica)
            for replica in assigned
            if joins and state is not None and replica not in state.isr
            if not is_stopped(system.partition, replica, readings)
        ]
        owed = next_write(system.partition, system.around, readings) is not None
        actions = [Controller()] if owed else waiting[:1]
        if not actions:
            return system
        outcome = step(system, actions[0], readings)
        assert isinstance(outcome, Accepted)
        system = outcome.state
        tell(heard, system, [each for stored in outcome.effects for each in stored.messages])


@pytest.mark.clause("message.replica-told", "message.leader-knows-assigned")
@pytest.mark.clause("message.stranger-stopped", "message.deleted-after-cut")
@pytest.mark.parametrize("profile", ["kip-236", "kip-236-amended"])
@pytest.mark.parametrize("targets", tuple(itertools.permutations(TARGETS, 2)))
def test_messages_of_every_write_leave_no_broker_misled(
    profile: str, targets: tuple[ReplicaList, ReplicaList]
) -> None:
    """Whoever hears the effects of all writes of a move, or of one that changes, knows what is."""
    for joins in (True, False):
        heard = Heard()
        system = settle(make_system((1, 2), BROKERS), heard, profile, joins=True)
        for target, last in zip(targets, (False, True), strict=True):
            outcome = step(system, Submit(target), get_profile(profile))
            assert isinstance(outcome, Accepted)
            assert outcome.effects == ()
            system = settle(outcome.state, heard, profile, joins=joins or last)
            broken = list(heard.find_broken({KEY: system.partition}, frozenset(BROKERS)))
            assert broken == []
        assert system.partition.assigned == targets[-1]


def test_removed_request_is_told_to_nobody() -> None:
    """A write that brokers have nothing to do with has no message."""
    partition = Partition((1, 2), LeaderAndIsr(1, 0, 1, (1, 2)))
    assert list_messages(partition, DeleteRequest(0), replace(partition)) == ()
