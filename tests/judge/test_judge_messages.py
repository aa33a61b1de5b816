"""What brokers were told is held against what ZooKeeper says at rest."""

from dataclasses import replace

import pytest

from reassure_judge.messages import Heard, Told
from reassure_model.state import LeaderAndIsr, Partition, Reassignment
from reassure_spec.znodes import ReplicaList, StateZnode

KEY = ("orders", 0)
RESTING = Partition(assigned=(1, 2), state=LeaderAndIsr(1, 3, 1, (1, 2)))
MOVING = replace(RESTING, assigned=(1, 2, 3), reassignment=Reassignment((1, 3), 2))


def told(broker: int, *, leader: int = 1, epoch: int = 3, replicas: ReplicaList = (1, 2)) -> Told:
    """Return a LeaderAndIsr."""
    return Told(broker, *KEY, 1, StateZnode(leader, epoch, 1, (1, 2)), replicas)


def stopped(broker: int, controller: int = 1, *, delete: bool = True) -> Told:
    """Return a StopReplica."""
    return Told(broker, *KEY, controller, None, delete=delete)


GOOD = (told(1), told(2))
MOVED = (told(1, replicas=(1, 2, 3)), told(2), told(3))
ENDING = replace(MOVING, completing=True)


@pytest.mark.parametrize(
    ("partition", "messages", "clause"),
    [
        (RESTING, GOOD, None),
        (RESTING, (*GOOD, told(1, epoch=2, leader=2)), None),
        (RESTING, (told(1),), "message.replica-told"),
        (RESTING, (told(1), told(2, epoch=2)), "message.replica-told"),
        (RESTING, (told(1), told(2, leader=2)), "message.replica-told"),
        (RESTING, (*GOOD, stopped(2)), "message.replica-told"),
        (RESTING, (*GOOD, stopped(2, controller=0)), None),
        (RESTING, (told(1, replicas=(1, 2, 3)), told(2)), "message.leader-knows-assigned"),
        (RESTING, (told(1, replicas=(1,)), told(2)), "message.leader-knows-assigned"),
        (RESTING, (*GOOD, told(4)), "message.stranger-stopped"),
        (RESTING, (*GOOD, told(4), stopped(4)), None),
        (RESTING, (*GOOD, told(4), stopped(4, delete=False)), "message.stranger-stopped"),
        (RESTING, (*GOOD, told(4), stopped(4, delete=False), stopped(4)), None),
        (RESTING, (*GOOD, stopped(4, delete=False)), None),
        (RESTING, (*GOOD, stopped(2, delete=False)), "message.replica-told"),
        (MOVING, MOVED, None),
        (MOVING, (*MOVED, stopped(2)), "message.replica-told"),
        (MOVING, (told(1, replicas=(1, 3)), told(2), told(3)), None),
        (ENDING, (told(1, replicas=(1, 3)), told(3)), None),
        (ENDING, (*MOVED, stopped(2, delete=False)), None),
        (MOVING, (told(1, replicas=(1, 2)), *MOVED[1:]), "message.leader-knows-assigned"),
        (MOVING, (told(1, replicas=(1, 2, 3)), told(2)), "message.replica-told"),
        (replace(RESTING, state=LeaderAndIsr(-1, 4, 1, (1,))), (), None),
    ],
)
def test_what_brokers_believe_is_judged(
    partition: Partition, messages: tuple[Told, ...], clause: str | None
) -> None:
    """Brokers that were told all break nothing; what was not said breaks its clause."""
    heard = Heard()
    for message in messages:
        heard.take(message)
    broken = [b.clause for _, b in heard.find_broken({KEY: partition}, frozenset({1, 2, 3, 4}))]
    assert broken == ([] if clause is None else [clause])


def test_broker_that_ended_knows_nothing() -> None:
    """A broker that was down has to be told again."""
    heard = Heard()
    for message in GOOD:
        heard.take(message)
    heard.forget(2)
    live = frozenset({1, 2})
    assert [b.clause for _, b in heard.find_broken({KEY: RESTING}, live)] == [
        "message.replica-told"
    ]
    assert list(heard.find_broken({KEY: RESTING}, live - {2})) == []
