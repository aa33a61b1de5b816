"""Families of histories: sound ones are never red, and a planted mistake is never missed.

A sound history is what the reference controller of the model writes, and the leaders, while brokers
come and go, settings change and controllers are replaced at any moment. The controller acts on what
it has *noticed*, which may be as old as the grace allows. It takes silent steps too: it looks at a
drop when nothing is to be dropped, or decides a request, and writes later or never.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from history_steps import make_transaction, to_op, win
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from reassure_judge.doubt import GRACE_MS
from reassure_judge.judge import Judge
from reassure_judge.verdicts import NOT_FOLLOWED, UNKNOWN, VIOLATED
from reassure_model.outcome import Accepted
from reassure_model.partition import Environment, LeaderAndIsr, Partition, Reassignment, Request
from reassure_model.protocols.kip_236 import (
    NothingToDo,
    Refusal,
    apply_failover,
    decide_request,
    find_drop,
    must_drop_wait,
    next_write,
)
from reassure_model.protocols.kip_236.rules import accept_write
from reassure_model.writes import (
    ChangeIsr,
    CreateReassignment,
    DeleteReassignment,
    DeleteRequest,
    UpdateReassignment,
    Write,
    WriteAssigned,
    WriteState,
    adopt,
)
from reassure_spec import znodes
from reassure_spec.readings import get_profile
from reassure_zookeeper.transactions import CloseSession, Create, Delete, Op, SetData, Transaction

CLIENT: Final = 5
PROFILES: Final = ("kip-236", "kip-236-amended")


@dataclass
class Mind:
    """What the acting controller has in mind."""

    partition: Partition
    live: frozenset[int]
    known: frozenset[int]
    minimum: int
    decided: bool = False
    """Whether it has decided the lowest request without a write."""
    stale: Request | None = None
    """The request that it has read, and that was withdrawn since."""


class World:
    """One partition, its brokers and its controllers, each with its own view; a judge follows."""

    def __init__(self, profile: str, brokers: int, *, shared: bool, configured: bool) -> None:
        self.judge = Judge(profile, get_profile(profile))
        self.readings = get_profile(profile)
        self.shared = shared
        """Whether the controllers are brokers, as in Kafka, and write in the same session."""
        self.configured = configured
        """Whether brokers leave a configuration behind."""
        self.zxid = 0
        self.time_ms = 10**6
        self.epoch = 0
        self.brokers = tuple(range(1, brokers + 1))
        self.sessions: dict[int, int] = {}
        self.starts = 0
        self.live: frozenset[int] = frozenset()
        self.ever: frozenset[int] = frozenset()
        self.minimum = 1
        self.truth = Partition()
        self.sequence = 0
        self.news: dict[int, int] = {}
        """Brokers of which the controller may not know, by the time since when."""
        self.minimum_ms = 0
        self.controller = 0
        self.earlier: list[int] = []
        """Sessions that won earlier terms."""
        self.log: list[Transaction] = []
        self.planted = False
        """Whether something wrong was written, so that there may be nothing right to do."""
        for root in ("/brokers", znodes.BROKER_IDS):
            self.append(Create(root))
        self.append(Create(znodes.CONTROLLER_EPOCH, b"0"))
        for broker in self.brokers[: max(2, brokers - 2)]:
            self.register(broker)
        self.mind = Mind(Partition(), self.live, self.ever, 1)
        self.elect(1)
        assigned = self.brokers[:3]
        self.append(Create(znodes.topic_path("t"), znodes.encode_topic({0: assigned})))
        self.truth = replace(self.truth, assigned=assigned)
        self.mind.partition = self.truth
        self.control()

    # -- writing

    def append(self, *ops: Op, session: int = CLIENT, fence: int | None = None) -> int:
        """Commit one transaction and have it judged; return its zxid."""
        self.zxid += 1
        where: Any = {"session": session, "time_ms": self.time_ms, "fence": fence}
        made = make_transaction(*ops, zxid=self.zxid, **where)
        self.log.append(made)
        self.judge.feed(made)
        return self.zxid

    def write(self, write: Write, *, session: int | None = None, fence: int | None = -9) -> int:
        """Write what a controller writes: by the acting one, under its fence, unless told not."""
        session = self.controller if session is None else session
        fence = self.epoch + 1 if fence == -9 else fence
        return self.append(to_op(write, "t"), session=session, fence=fence)

    def follow(self, write: Write) -> None:
        """Change the truth by a write, whatever the rules say of it."""
        self.truth = adopt(self.truth, write)

    # -- what the others do

    def register(self, broker: int) -> None:
        """Let a broker come up in a session of its own."""
        if broker in self.live:
            return
        self.starts += 1
        session = self.sessions[broker] = 1000 * self.starts + broker
        if self.configured:
            config = znodes.broker_config_path(broker)
            if broker not in self.ever:
                self.append(Create(config, znodes.encode_config({})), session=session)
        data = znodes.encode_broker("h", 9092, 0)
        self.append(Create(znodes.broker_path(broker), data, ephemeral=True), session=session)
        self.live |= {broker}
        self.ever |= {broker}
        self.news.setdefault(broker, self.time_ms)

    def die(self, broker: int) -> None:
        """End a broker's session, and with it its office if it holds one."""
        if broker not in self.live:
            return
        session = self.sessions[broker]
        self.append(CloseSession((znodes.broker_path(broker),)), session=session)
        self.live -= {broker}
        self.news.setdefault(broker, self.time_ms)
        if session == self.controller:
            self.elect(broker % len(self.brokers) + 1)

    def elect(self, broker: int) -> None:
        """Have another controller elected, which reads everything anew."""
        if self.controller:
            self.append(Delete(znodes.CONTROLLER), session=CLIENT)
            self.earlier.append(self.controller)
        alive = [b for b in self.brokers if b in self.live]
        self.epoch += 1
        self.controller = 900_000 + self.epoch
        if self.shared and alive:
            self.controller = self.sessions[broker if broker in self.live else alive[0]]
        self.append(*win(broker, self.epoch), session=self.controller)
        known = self.ever if self.configured else self.live
        before = replace(self.truth, **_memory(self.mind.partition))
        partition = apply_failover(before, self.readings)
        self.mind = Mind(partition, self.live, known, self.minimum)
        self.news.clear()

    def request(self, *target: int) -> None:
        """Ask for a reassignment."""
        if len(self.truth.requests) > 2:
            return
        made = Request(self.sequence, target)
        self.sequence += 1
        data = znodes.encode_request(znodes.RequestZnode({("t", 0): target}))
        self.append(Create(znodes.request_path(made.sequence), data))
        self.truth = replace(self.truth, requests=(*self.truth.requests, made))

    def withdraw(self) -> None:
        """Take the lowest request back; the controller may have read it."""
        if not self.truth.requests or self.mind.stale:
            return
        head = self.truth.requests[0]
        self.append(Delete(znodes.request_path(head.sequence)))
        self.truth = replace(self.truth, requests=self.truth.requests[1:])
        self.mind.stale = None if self.mind.decided else head
        self.mind.decided = False

    def configure(self, minimum: int) -> None:
        """Set `min.insync.replicas`."""
        if minimum == self.minimum or self.is_minimum_news():
            return
        data = znodes.encode_config({"min.insync.replicas": str(minimum)})
        self.append(Create(znodes.topic_config_path("t"), data))
        self.minimum, self.minimum_ms = minimum, self.time_ms

    def is_minimum_news(self) -> bool:
        """Whether the controller still acts by the settings of before."""
        return self.mind.minimum != self.minimum

    def change_isr(self, replica: int) -> None:
        """Let the leader take a replica in or out, by what it has heard of it."""
        state, assigned = self.truth.state, self.truth.assigned or ()
        if state is None or state.leader not in self.live or replica == state.leader:
            return
        if replica in state.isr:
            isr = tuple(r for r in state.isr if r != replica)
        elif replica in assigned and replica in self.live:
            isr = (*state.isr, replica)
        else:
            return
        change = ChangeIsr(replace(state, isr=isr), state.leader)
        self.append(to_op(change, "t"), session=self.sessions[state.leader])
        self.follow(change)

    # -- what the controller does

    def pass_time(self, by_ms: int) -> None:
        """Let time pass; what is older than the grace has been noticed."""
        self.time_ms += by_ms
        for broker, since in list(self.news.items()):
            if self.time_ms - since > GRACE_MS:
                self.notice(broker)
        if self.time_ms - self.minimum_ms > GRACE_MS:
            self.mind.minimum = self.minimum

    def notice(self, broker: int) -> None:
        """Let the controller learn whether a broker is there."""
        self.news.pop(broker, None)
        mind = self.mind
        if broker in self.live:
            mind.live, mind.known = mind.live | {broker}, mind.known | {broker}
        else:
            mind.live -= {broker}
            if self.configured and broker in self.ever:
                mind.known |= {broker}

    def notice_all(self) -> None:
        """Let the controller learn everything."""
        for broker in self.brokers:
            self.notice(broker)
        self.mind.minimum = self.minimum

    def look(self) -> tuple[Partition, Environment]:
        """Return the partition and the environment as the controller has them in mind."""
        mind = self.mind
        requests = self.truth.requests
        if mind.stale is not None:
            requests = (mind.stale, *requests)
        mind.partition = replace(self.truth, **_memory(mind.partition), requests=requests)
        around = Environment(mind.live, mind.known, mind.minimum, self.epoch)
        return mind.partition, around

    def take_silent_step(self) -> None:
        """Look at a drop that comes to nothing; decide a request that does."""
        partition, around = self.look()
        held = must_drop_wait(partition, self.readings)
        if partition.drop_due and not held and find_drop(partition, self.readings) == ():
            state = partition.state
            if state is not None and state.leader in state.isr:
                self.mind.partition = replace(partition, drop_due=False)
        elif partition.requests and not self.mind.stale:
            decision = decide_request(partition.requests[0], partition, around, self.readings)
            self.mind.decided = isinstance(decision, Refusal | NothingToDo)

    def control(self) -> bool:
        """Carry out the next write that the controller owes; answer whether there was one."""
        partition, around = self.look()
        mind = self.mind
        owed = next_write(partition, around, self.readings)
        if mind.decided and partition.requests:
            write: Write = DeleteRequest(partition.requests[0].sequence)
        elif owed is None:
            return False
        else:
            write = owed.write
        if not (mind.decided and isinstance(write, DeleteRequest)):
            outcome = accept_write(partition, write, around, self.readings)
            if self.planted and not isinstance(outcome, Accepted):
                return False
            assert isinstance(outcome, Accepted), (partition, write, around, outcome)
            mind.partition = outcome.state
        else:
            mind.partition = replace(partition, requests=partition.requests[1:])
            mind.decided = False
        if mind.stale and isinstance(write, DeleteRequest):
            # There is nothing to delete any more.
            mind.stale = None
            return True
        self.write(write)
        self.follow(write)
        if mind.stale and isinstance(write, CreateReassignment | UpdateReassignment):
            mind.stale = None
            mind.partition = replace(mind.partition, requests=mind.partition.requests[1:])
        return True

    def finish(self) -> None:
        """Let the controller notice everything and do all that it owes."""
        self.notice_all()
        for _ in range(60):
            if not self.control():
                return
        raise AssertionError("the controller never comes to rest")


def _memory(partition: Partition) -> dict[str, Any]:
    return {
        name: getattr(partition, name)
        for name in ("drop_due", "announce_due", "completing", "taken")
    }


# -- moves: (what, which, another) as small numbers, so that they shrink

Move = tuple[int, int, int]
MOVES: Final = st.tuples(st.integers(0, 15), st.integers(0, 11), st.integers(0, 219))


def pick(world: World, number: int, count: int) -> tuple[int, ...]:
    """Return `count` brokers, all different, chosen by a number."""
    left = list(world.brokers)
    chosen = []
    for _ in range(min(count, len(left))):
        number, place = divmod(number, len(left))
        chosen.append(left.pop(place))
    return tuple(chosen)


def play(world: World, moves: Iterable[Move], *, rests: bool) -> None:
    """Carry out moves."""
    for what, which, other in moves:
        broker = world.brokers[which % len(world.brokers)]
        world.pass_time(other * 31)
        if what <= 3:
            for _ in range(1 + which % 5):
                world.control()
        elif what == 4:
            world.request(*pick(world, other, 1 + which % 3))
        elif what == 5:
            world.request(*(world.truth.assigned or ())[::-1])
        elif what in (6, 7):
            in_question = world.truth.reassignment
            joining = [] if in_question is None else list(in_question.target)
            for replica in [*joining, broker][: 1 + other % 4]:
                world.change_isr(replica)
        elif what == 8:
            world.die(broker)
        elif what == 9:
            world.register(broker)
        elif what == 10:
            world.notice(broker)
        elif what == 11:
            world.elect(broker)
        elif what == 12:
            world.take_silent_step()
        elif what == 13:
            world.configure(1 + which % 2)
        elif what == 14:
            world.withdraw()
        elif rests:
            world.finish()
            world.judge.quiesce()


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    profile=st.sampled_from(PROFILES),
    brokers=st.integers(3, 12),
    shared=st.booleans(),
    configured=st.booleans(),
    rests=st.booleans(),
    moves=st.lists(MOVES, min_size=20, max_size=70),
)
def test_sound_histories_are_never_red(
    profile: str, brokers: int, shared: bool, configured: bool, rests: bool, moves: list[Move]
) -> None:
    """Whatever comes and goes, and whatever the controller has not noticed, nothing is violated."""
    world = World(profile, brokers, shared=shared, configured=configured)
    play(world, moves, rests=rests)
    assert world.judge.violations == []
    for verdict in world.judge.report().verdicts:
        if verdict.verdict == UNKNOWN:
            event(f"unknown: {verdict.id}")


# -- mistakes


def raised(world: World, **changes: Any) -> WriteState:
    """Return a controller's write of the state with the next epoch and these changes."""
    state = world.truth.state
    assert state is not None
    stamp = {"leader_epoch": state.leader_epoch + 1, "controller_epoch": world.epoch}
    return WriteState(replace(state, **{**stamp, **changes}))


def commit(world: World, write: Write, **how: Any) -> int:
    """Make a wrong write, which stands all the same."""
    zxid = world.write(write, **how)
    world.follow(write)
    return zxid


def led(world: World) -> LeaderAndIsr | None:
    """Return the state where somebody alive and in sync leads."""
    state = world.truth.state
    able = state is not None and state.leader in world.live and state.leader in state.isr
    return state if able else None


def jump_epoch(world: World) -> int:
    """Raise the leader epoch by two."""
    assert world.truth.state is not None
    return commit(world, raised(world, leader_epoch=world.truth.state.leader_epoch + 2))


def write_deposed(world: World) -> int | None:
    """Write as a controller whose term is over, under the fence of the next."""
    others = [session for session in world.earlier if session != world.controller]
    return commit(world, raised(world), session=others[-1]) if others else None


def write_as_client(world: World) -> int | None:
    """Write as a controller what only one may write, as a plain client."""
    back = (world.truth.assigned or ())[::-1]
    is_same = world.truth.assigned == back
    return None if is_same else commit(world, WriteAssigned(back), session=CLIENT)


def empty_isr(world: World) -> int | None:
    """Leave nobody in sync."""
    state = world.truth.state
    return commit(world, raised(world, isr=())) if state is not None and state.isr else None


def lead_out_of_sync(world: World) -> int | None:
    """Have a replica lead that is not in sync."""
    state = world.truth.state
    if state is None or state.leader not in world.live:
        return None
    others = [b for b in world.brokers if b not in (*state.isr, state.leader)]
    return commit(world, raised(world, leader=others[0])) if others else None


def give_up_leader(world: World) -> int | None:
    """Leave a partition without a leader whose leader is alive."""
    return commit(world, raised(world, leader=-1)) if led(world) else None


def change_isr_as_follower(world: World) -> int | None:
    """Let a broker that does not lead write the in-sync set."""
    state = world.truth.state
    others = [b for b in world.brokers if b in world.live and state and b != state.leader]
    others = [b for b in others if world.sessions[b] != world.controller]
    if state is None or not others:
        return None
    return commit(world, ChangeIsr(state, others[0]), session=world.sessions[others[0]], fence=None)


def admit_stranger(world: World) -> int | None:
    """Let the leader admit a broker that is not assigned."""
    state = led(world)
    if state is None:
        return None
    known = {*(world.truth.assigned or ()), *state.isr}
    others = [b for b in world.brokers if b not in known]
    if not others:
        return None
    change = ChangeIsr(replace(state, isr=(*state.isr, others[0])), state.leader)
    return commit(world, change, session=world.sessions[state.leader], fence=None)


def assign_twice(world: World) -> int | None:
    """Assign a replica twice."""
    assigned = world.truth.assigned or ()
    return commit(world, WriteAssigned((*assigned, assigned[0])))


def assign_stranger(world: World) -> int | None:
    """Assign a broker that nobody asked for."""
    truth = world.truth
    asked = {r for request in truth.requests for r in request.target}
    asked |= set(truth.reassignment.target) if truth.reassignment else set()
    others = [b for b in world.brokers if b not in asked | set(truth.assigned or ())]
    return commit(world, WriteAssigned((*(truth.assigned or ()), others[0]))) if others else None


def record_unasked(world: World) -> int | None:
    """Record a target that nobody asked for."""
    flight = world.truth.reassignment
    wanted = Reassignment((*world.brokers, 99), 3 if flight is None else flight.top)
    make = CreateReassignment if flight is None else UpdateReassignment
    return commit(world, make(wanted))


def remove_record(world: World) -> int | None:
    """Remove the record of a reassignment whose target is not assigned."""
    flight = world.truth.reassignment
    is_open = flight is not None and world.truth.assigned != flight.target
    return commit(world, DeleteReassignment()) if is_open else None


def remove_request_first(world: World) -> int | None:
    """Remove a request for something new before it is recorded."""
    alive = tuple(b for b in world.brokers if b in world.live)
    flight = world.truth.reassignment
    taken = world.truth.assigned if flight is None else flight.target
    if world.truth.requests or len(alive) < 2 or alive == taken or world.minimum > 1:
        return None
    world.request(*alive)
    return commit(world, DeleteRequest(world.sequence - 1))


def write_garbage(world: World) -> int:
    """Write a state that is none."""
    op = SetData(znodes.state_path("t", 0), b"{", 1)
    return world.append(op, session=world.controller, fence=world.epoch + 1)


def raise_controller_epoch(world: World) -> int:
    """Raise the controller epoch without an election."""
    world.epoch += 1
    data = str(world.epoch).encode()
    zxid = world.append(SetData(znodes.CONTROLLER_EPOCH, data, world.epoch), session=CLIENT)
    world.elect(1)
    return zxid


ANY: Final = ""
Mistake = Callable[[World], int | None]
MISTAKES: Final[dict[str, tuple[Mistake, str]]] = {
    "an epoch is left out": (jump_epoch, "leader-epoch.raised-by-one"),
    "the number of an earlier term": (
        lambda world: commit(world, raised(world, controller_epoch=world.epoch - 1)),
        "state.controller-epoch-stamped",
    ),
    "no check of the epoch": (
        lambda world: commit(world, raised(world), fence=None),
        "controller.write.epoch-checked",
    ),
    "a check that always passes": (
        lambda world: commit(world, raised(world), fence=-1),
        "controller.write.epoch-checked",
    ),
    "a deposed controller": (write_deposed, "controller.write.by-controller"),
    "a client": (write_as_client, "controller.write.by-controller"),
    "nobody in sync": (empty_isr, "isr.never-empty"),
    "a leader out of sync": (lead_out_of_sync, ANY),
    "a leader given up": (give_up_leader, ANY),
    "a follower's set": (change_isr_as_follower, "isr.change.by-leader"),
    "a stranger in sync": (admit_stranger, "isr.change.assigned-only"),
    "a replica twice": (assign_twice, "assigned.no-duplicates"),
    "a stranger assigned": (assign_stranger, ANY),
    "a record unasked": (record_unasked, "child.from-request"),
    "a record removed": (remove_record, ANY),
    "a request removed first": (remove_request_first, "request.delete.child-first"),
    "garbage": (write_garbage, "znode.well-formed"),
    "a term without an election": (raise_controller_epoch, "controller.election.atomic"),
}


def plant(world: World, name: str) -> None:
    """Make a mistake when nothing is in doubt, where that is possible; see that it is named."""
    world.pass_time(2 * GRACE_MS)
    world.notice_all()
    world.planted = True
    mistake, clause_id = MISTAKES[name]
    zxid = mistake(world)
    if zxid is None:
        event(f"not possible: {name}")
        return
    found = [v for v in world.judge.violations if v.zxid == zxid]
    assert found, (name, zxid, world.judge.tracking.partitions)
    named = {clause for v in found for clause in (v.clause, *v.besides)}
    assert clause_id in (ANY, *named), (name, found)
    verdicts = {verdict.id: verdict.verdict for verdict in world.judge.report().verdicts}
    assert {verdicts[clause] for clause in named} <= {VIOLATED, NOT_FOLLOWED}


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    profile=st.sampled_from(PROFILES),
    brokers=st.integers(3, 12),
    shared=st.booleans(),
    mistakes=st.lists(st.sampled_from(list(MISTAKES)), unique=True, min_size=1, max_size=3),
    moves=st.lists(st.lists(MOVES, max_size=15), min_size=3, max_size=3),
)
def test_planted_mistakes_are_named_behind_one_another(
    profile: str, brokers: int, shared: bool, mistakes: list[str], moves: list[list[Move]]
) -> None:
    """Each mistake outside doubt is named where it was made, whatever was wrong before it."""
    world = World(profile, brokers, shared=shared, configured=True)
    for mistake, before in zip(mistakes, moves, strict=False):
        play(world, before, rests=False)
        plant(world, mistake)
