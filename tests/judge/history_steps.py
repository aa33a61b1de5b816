"""Steps of a simulated cluster, from which histories are put together."""

import gzip
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from reassure_judge.judge import Tracking
from reassure_judge.rules import Rules
from reassure_judge.transaction_reader import iterate_observations
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
from reassure_zookeeper.transactions import (
    Check,
    Create,
    Delete,
    Op,
    SetData,
    Transaction,
    committed,
    multi,
)
from reassure_zookeeper.txnlog import read_logs


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


def make_transaction(
    *ops: Op, zxid: int, session: int, time_ms: int = 0, fence: int | None = None, chroot: str = ""
) -> Transaction:
    """Return operations as one transaction, under a check of the controller epoch's version."""
    if fence is not None:
        ops = (Check(chroot + znodes.CONTROLLER_EPOCH, fence), *ops)
    make = committed if len(ops) == 1 else multi
    return make(*ops, zxid=zxid, session_id=session, time_ms=time_ms)


def win(broker: int, epoch: int, version: int | None = None, chroot: str = "") -> tuple[Op, Op]:
    """Return the operations by which a broker is elected."""
    path, data = chroot + znodes.CONTROLLER_EPOCH, str(epoch).encode()
    elected = znodes.encode_controller(broker, 0)
    return (
        Create(chroot + znodes.CONTROLLER, elected, ephemeral=True),
        SetData(path, data, epoch if version is None else version),
    )


Act = Callable[[Any], Any]
"""Something that is done in a simulation; what is done last answers its zxid."""


def _act(method: str, **usual: Any) -> Callable[..., Act]:
    """Return what returns acts: calls of a simulation's method, with what is given to both."""
    return lambda *given, **how: lambda sim: getattr(sim, method)(*given, **usual | how)


ask = _act("submit")
"""The submission of a request."""
move = _act("in_flight")
"""A request that the controller takes up, `until` it would write such a thing."""
change_isr = _act("change_isr")
"""A leader's change of the in-sync set."""
put = _act("perform")
"""A controller's write."""
raise_state = _act("perform_raised")
"""A controller's write of the state with the next epoch, and its changes."""
write = _act("write", session=50)
"""A transaction, of a client unless said otherwise."""
die = _act("die")
"""The death of a broker."""
come_back = _act("come_back")
"""A broker that registers in a new session."""
elect = _act("elect")
"""The election of another controller."""


def put_state(*, by: int = 1, fenced: bool = True, **changes: Any) -> Act:
    """Return a controller's write of the state, with an epoch that is higher `by` so much."""

    def act(sim: Any) -> Any:
        state = replace(sim.state, leader_epoch=sim.state.leader_epoch + by, **changes)
        return sim.perform(WriteState(state), fenced=fenced)

    return act


def control(*ops: Op) -> Act:
    """Return a transaction of the controller, under its fence."""
    return write(*ops, session=900, fenced=True)


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


def rest(sim: Any) -> None:
    """Let the cluster rest."""
    sim.judge.quiesce()


def record(*target: int) -> Act:
    """Return a request that the controller records."""

    def act(sim: Any) -> Any:
        sim.submit(*target)
        owed = next(sim.steps())
        assert isinstance(owed, CreateReassignment)
        return sim.perform(owed)

    return act


def refuse(*target: int) -> Act:
    """Return a request that the controller removes and does not record."""
    return lambda sim: sim.perform(DeleteRequest(sim.submit(*target)))


class Story(NamedTuple):
    """What is done in a simulation, and what the judge says of it."""

    acts: tuple[Act, ...]
    broken: str = ""
    """The clause that the last act breaks, and nothing else is broken; "" for none."""
    exercised: str = ""
    """A clause that was put to the test once."""
    undecided: str = ""
    """A clause that is left open once."""

    def check(self, sim: Any) -> None:
        """Do it all, and hold what is found against what is said."""
        zxid = perform(sim, self.acts)
        found = sim.broken()
        assert found == ([(self.broken, zxid)] if self.broken else []), found
        for clause, counted in (
            (self.exercised, sim.judge.exercised),
            (self.undecided, sim.judge.undecided),
        ):
            assert not clause or counted[clause] == 1


def tell(*acts: Act, **found: str) -> Story:
    """Return a story."""
    return Story(acts, **found)


def read_log(name: str, scratch: Path) -> list[Transaction]:
    """Return the transactions of a log that Kafka left."""
    log, packed = scratch / "log.1", Path(__file__).parent / "kafka_logs" / f"{name}.log.gz"
    log.write_bytes(gzip.decompress(packed.read_bytes()))
    return list(read_logs([log]))


def judge_alike(rules: Rules[Any, Any], history: Iterable[Transaction]) -> Tracking:
    """Judge a history with steps that are known and without, and compare all that is found."""
    observations = list(iterate_observations(rules.make_router(), history))
    each, recalling = Tracking(rules, remembers=False), Tracking(rules)
    for number, seen in enumerate(observations):
        each.observe(seen)
        recalling.observe(seen)
        if number % max(1, len(observations) // 10) == 0:
            assert _sum_up(recalling) == _sum_up(each)
    assert _sum_up(recalling) == _sum_up(each)
    for key, tracker in each.partitions.items():
        other = recalling.partitions[key]
        assert (other.states, other._memory) == (tracker.states, tracker._memory)
        assert other._owed_reported == tracker._owed_reported
    return recalling


def _sum_up(tracking: Tracking) -> tuple[object, ...]:
    tally = tracking.sum_up()
    follow_ups = tracking.count_follow_ups()
    return tally.exercised, tally.undecided, tally.first_undecided, tally.violations, follow_ups


def garble(history: list[Transaction], seed: int) -> list[Transaction]:
    """Garble a history: now and then a write is that of some moment before."""
    chance = random.Random(seed)
    written: dict[str, list[bytes]] = {}
    for transaction in history:
        for op in transaction.ops:
            if isinstance(op, SetData) and len(transaction.ops) <= 2:
                earlier = written.setdefault(op.path, [])
                earlier.append(op.data)
                if chance.random() < 0.05:
                    op.data = chance.choice(earlier)  # type: ignore[misc]
    return history
