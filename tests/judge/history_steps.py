"""Steps of a simulated cluster, from which histories are put together."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from reassure_model.partition import LeaderAndIsr, Reassignment, to_znode
from reassure_model.writes import (
    ChangeIsr,
    CreateReassignment,
    CreateState,
    DeleteReassignment,
    DeleteRequest,
    UpdateReassignment,
    Write,
    WriteAssigned,
    WriteState,
)
from reassure_spec import znodes
from reassure_zookeeper.transactions import Create, Delete, Op, SetData


def encode_state(state: LeaderAndIsr) -> bytes:
    """Return the content of a state."""
    return znodes.encode_state(to_znode(state))


def _encode(record: Reassignment) -> bytes:
    found = znodes.ReassignmentZnode(record.top, record.target, record.legacy)
    return znodes.encode_reassignment(found)


def to_op(write: Write, topic: str, chroot: str = "") -> Op:
    """Return the operation that a write to the first partition of a topic is."""
    state_path = chroot + znodes.state_path(topic, 0)
    child = chroot + znodes.reassignment_path(topic, 0)
    match write:
        case CreateState(state):
            return Create(state_path, encode_state(state))
        case WriteState(state) | ChangeIsr(state, _):
            return SetData(state_path, encode_state(state), 1)
        case WriteAssigned(assigned):
            return SetData(chroot + znodes.topic_path(topic), znodes.encode_topic({0: assigned}), 1)
        case CreateReassignment(record):
            return Create(child, _encode(record))
        case UpdateReassignment(record):
            return SetData(child, _encode(record), 1)
        case DeleteReassignment():
            return Delete(child)
        case DeleteRequest(sequence):
            return Delete(chroot + znodes.request_path(sequence))


Act = Callable[[Any], Any]
"""Something that is done in a simulation; what is done last answers its zxid."""


def ask(*target: int) -> Act:
    """Return the submission of a request."""
    return lambda sim: sim.submit(*target)


def move(*target: int, until: type = DeleteRequest) -> Act:
    """Return a request that the controller takes up, until it would write such a thing."""
    return lambda sim: sim.in_flight(*target, until=until)


def change_isr(*isr: int, session: int | None = None) -> Act:
    """Return a leader's change of the in-sync set."""
    return lambda sim: sim.change_isr(*isr, session=session)


def put(write: Write) -> Act:
    """Return a controller's write."""
    return lambda sim: sim.perform(write)


def put_state(*, by: int = 1, fenced: bool = True, **changes: Any) -> Act:
    """Return a controller's write of the state, with an epoch that is higher `by` so much."""

    def act(sim: Any) -> Any:
        state = replace(sim.state, leader_epoch=sim.state.leader_epoch + by, **changes)
        return sim.perform(WriteState(state), fenced=fenced)

    return act


def write(*ops: Op, session: int = 50, fenced: bool = False) -> Act:
    """Return a transaction, of a client unless said otherwise."""
    return lambda sim: sim.write(*ops, session=session, fenced=fenced)


def control(*ops: Op) -> Act:
    """Return a transaction of the controller, under its fence."""
    return write(*ops, session=900, fenced=True)


def die(broker: int) -> Act:
    """Return the death of a broker."""
    return lambda sim: sim.die(broker)


def run(sim: Any) -> None:
    """Let the controller do all that it owes, and rest."""
    sim.run()


def settle(sim: Any) -> None:
    """Let everybody have noticed everything."""
    sim.judge.router.settle("")


def perform(sim: Any, acts: Iterable[Act]) -> int:
    """Do one thing after another; return the zxid of the last."""
    zxid = 0
    for act in acts:
        zxid = act(sim)
    return zxid
