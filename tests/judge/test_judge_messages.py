"""What brokers were told is held against what ZooKeeper says at rest."""

from dataclasses import replace

import pytest

from reassure_judge.messages import Heard, StoredStates, Told
from reassure_model.outcome import Rejected
from reassure_model.partition import LeaderAndIsr, Partition, Reassignment
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


STATES = (LeaderAndIsr(1, 3, 1, (1, 2)), LeaderAndIsr(1, 4, 1, (1,)))


def make_stored() -> StoredStates:
    """Return what was stored: a state at 10, another one at 20, another controller at 30."""
    stored = StoredStates()
    for zxid, state, epoch in ((10, STATES[0], 1), (20, STATES[1], 1), (30, STATES[1], 2)):
        stored.note(zxid, {KEY: replace(RESTING, state=state)}, epoch)
    return stored


FIRST, CUT = "message.stored-first", "message.deleted-after-cut"


@pytest.mark.clause(FIRST)
@pytest.mark.clause(CUT)
@pytest.mark.parametrize(
    ("zxid", "state", "delete", "found"),
    [
        (9, 0, False, "broken " + FIRST),
        (10, 0, False, FIRST),
        (19, 1, False, "broken " + FIRST),
        (20, 1, False, FIRST),
        (29, 0, False, FIRST),
        (30, 0, False, None),
        (None, 1, False, None),
        (9, None, True, None),
        (10, None, False, None),
        (10, None, True, "broken " + CUT),
        (19, None, True, "broken " + CUT),
        (20, None, True, CUT),
        (30, None, True, None),
        (None, None, True, None),
    ],
)
def test_messages_come_after_what_they_tell(
    zxid: int | None, state: int | None, delete: bool, found: str | None
) -> None:
    """Brokers are told what stood there by then; what nobody obeys or dates tells nothing."""
    said = None
    if state is not None:
        each = STATES[state]
        said = StateZnode(each.leader, each.leader_epoch, each.controller_epoch, each.isr)
    judged = make_stored().judge(Told(2, *KEY, 1, said, (1, 2), delete, zxid))
    assert (f"broken {judged.clause}" if isinstance(judged, Rejected) else judged) == found


def test_leader_is_not_deleted() -> None:
    """A leader that is in no in-sync set is not to delete its replica either."""
    stored = StoredStates()
    stored.note(10, {KEY: replace(RESTING, state=LeaderAndIsr(2, 3, 1, (1,)))}, 1)
    judged = stored.judge(Told(2, *KEY, 1, None, delete=True, zxid=10))
    assert isinstance(judged, Rejected)
    assert judged.clause == CUT


def test_state_that_was_never_stored_is_not_told() -> None:
    """What is told must have been stored as a whole: leader, epochs and in-sync set."""
    for change in ({"leader": 2}, {"leader_epoch": 2}, {"controller_epoch": 0}, {"isr": (1,)}):
        said = replace(StateZnode(1, 3, 1, (1, 2)), **change)  # type: ignore[arg-type]
        judged = make_stored().judge(Told(2, *KEY, 1, said, (1, 2), zxid=25))
        assert isinstance(judged, Rejected)
