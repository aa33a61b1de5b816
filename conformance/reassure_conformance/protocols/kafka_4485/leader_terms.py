"""World `kafka-4485` without a clock, live: one partition on real brokers, across elections.

The words are the model's, and what they show is read back: logs and marks from the replicas, what
is stored from ZooKeeper, what a leader concludes from itself, what is shown from a consumer. What a
leader does in one go is told apart: it looks, and writes, when the story says so (`Held`). A fetch
that has arrived waits at the leader, as it does in a broker.

That somebody lags is a matter of time: so much passes that the follower is beyond the limit, and
those that wait at the leader's end ask again meanwhile.

Whom a story elects becomes the preferred leader, and the controller is asked for that. An epoch
that the same leader gets, and a follower taken out, which no client can ask for, are written in the
controller's name.
"""

from dataclasses import replace
from typing import Any, Final

from reassure_conformance.scenarios.live.stage import REFUSED, MakeStage, NotLive
from reassure_conformance.scenarios.live.stepped import Held, Stepped
from reassure_conformance.scenarios.worlds.machine import MachineWorld
from reassure_controller.messages import LeaderAndIsr as Order
from reassure_controller.replication.errors import FENCED_LEADER_EPOCH, NONE
from reassure_controller.replication.leading import evaluate, propose_isr
from reassure_controller.replication.messages import Fetch, Fetched, Response
from reassure_controller.replication.rules import ReplicationRules
from reassure_controller.replication.stepping import CONTROLLER, name_broker
from reassure_controller.storage.records import scan
from reassure_model.machine import ONLY
from reassure_model.outcome import Rejected
from reassure_model.partition import LeaderAndIsr
from reassure_model.protocols.kafka_4485.machine import MACHINE
from reassure_model.protocols.kafka_4485.replication import (
    Action,
    Advance,
    Answer,
    Append,
    CatchUp,
    Elect,
    Follow,
    Join,
    Lag,
    Leave,
    Refresh,
    Remove,
    Replica,
    Replication,
    Request,
    Serve,
    Term,
    step,
)
from reassure_spec.profiles import DEFAULT_PROFILE
from reassure_spec.readings import Readings
from reassure_spec.words import Arguments
from reassure_spec.znodes import (
    PREFERRED_ELECTION,
    PartitionKey,
    StateZnode,
    decode_state,
    encode_preferred_election,
    encode_state,
    encode_topic,
    state_path,
    topic_path,
)

KEY: Final[PartitionKey] = ("p", 0)
LIMIT_MS: Final = 10_000
PASSING_MS: Final = 10
"""What passes with each command."""

NOT_WRITTEN: Final = "the leader does not write it"
NOT_ELECTED: Final = "the controller does not elect it"
REFUSALS: Final = (FENCED_LEADER_EPOCH, NOT_WRITTEN, NOT_ELECTED)
"""What is refused for the reason that the model gives."""

ALONE: Final = "that one follower lags alone, or keeps up again, as no leader can find"
AT_ONCE: Final = "a follower that fetches from the leader's end keeps up at once"


class LiveElectionsWorld(MachineWorld):
    """Brokers that replicate one partition, numbered from 0."""

    def __init__(
        self, make_stage: MakeStage, profile: str, readings: Readings, arguments: Arguments
    ) -> None:
        super().__init__(MACHINE, profile, readings, arguments)
        opening: Replication = self._blank
        self._ids: Final = tuple(range(len(opening.replicas)))
        self._rules = ReplicationRules(readings, lag_ms_max=LIMIT_MS)
        self._adapter = Stepped(make_stage.find_cluster(), DEFAULT_PROFILE, Readings(), self._rules)
        self._stage = make_stage(self._adapter, DEFAULT_PROFILE)
        self._stage.begin(self._ids, ())
        isr = tuple(sorted(opening.isr))
        self._stage.create_partition(KEY, self._ids, LeaderAndIsr(0, 0, 1, isr), given=True)
        self._adapter.settle(0)
        # Nothing that is owed at the end is asked for: elections are the story's.
        self._stage.forged = True
        self._asked: dict[int, Request] = {}
        self._sent: dict[int, Fetch] = {}
        self._written = 0
        self._committed: tuple[int, ...] = ()
        for broker in self._ids[1:]:
            self._send_fetch(broker)
            self._serve(broker)
        if opening.isr != frozenset(self._ids):
            self._pass(LIMIT_MS + 1)
            for broker in isr[1:]:
                self._serve(broker)
        self._states[ONLY] = self._look_at()

    # -- from brokers to what is shown

    def _look_at(self) -> Replication:
        """Return what ZooKeeper and the brokers hold."""
        self._stage.read()
        stored, version = self._read_state()
        leading, leader = self._lead(), stored.leader
        logs = {broker: self._read_epochs(broker) for broker in self._ids}
        replicas = tuple(self._read_replica(one, logs[one], stored) for one in self._ids)
        shown = self._consume(leader)
        if shown is not None and shown > len(self._committed):
            self._committed = logs[leader][:shown]
        view = leading.view
        hosted = self._adapter.find_replica(leader, KEY)
        assert hosted is not None
        offsets = tuple(
            view.followers[one].offset if one in view.followers else 0 for one in self._ids
        )
        term = Term(
            view.start,
            hosted.hosted.state_version,
            frozenset(view.isr),
            frozenset(self._find_close()),
            offsets,
        )
        return Replication(
            replicas,
            leader,
            stored.leader_epoch,
            frozenset(stored.isr),
            version,
            term,
            shown,
            self._committed,
        )

    def _read_state(self) -> tuple[StateZnode, int]:
        path = state_path(*KEY)
        (found,) = self._stage.driver.fetch(self._stage.chroot, [path])
        assert found is not None
        return decode_state(path, found[0]), found[1].version

    def _read_epochs(self, broker: int) -> tuple[int, ...]:
        replica = self._adapter.find_replica(broker, KEY)
        if replica is None:
            return ()
        raw = replica.log.read(replica.log.start_offset, 1 << 20)
        return tuple(batch.leader_epoch for batch in scan(raw) for _ in range(batch.count))

    def _read_replica(self, broker: int, log: tuple[int, ...], stored: StateZnode) -> Replica:
        replica = self._adapter.find_replica(broker, KEY)
        assert replica is not None and replica.role is not None
        request = None if broker == stored.leader else self._asked.get(broker)
        return Replica(log, replica.high_watermark, replica.role.leader_epoch, request)

    def _lead(self) -> Held:
        leading = self._adapter.find_leader(KEY)
        assert leading is not None
        return leading

    def _find_close(self) -> tuple[int, ...]:
        """Return whom the leader would wait for if it looked now."""
        leading = self._lead()
        return evaluate(leading.view, self._end(), self._now_ms(), self._rules).pseudo_isr

    def _end(self) -> int:
        replica = self._adapter.find_replica(self._lead().view.broker, KEY)
        assert replica is not None
        return replica.log.end_offset

    def _now_ms(self) -> int:
        return self._adapter.brokers.replicas(self._lead().view.broker).clock.now_ms()

    def _consume(self, leader: int) -> int | None:
        """Return up to where a consumer is shown records now."""
        self._adapter.brokers.consume(leader, KEY, 0)
        self._adapter.deliver_from_client(leader)
        answer = self._adapter.brokers.answers.pop()
        return None if answer.error else getattr(answer, "high_watermark", None)

    # -- what happens

    def _pass(self, ms: int) -> None:
        for machine in self._adapter.brokers.machines.values():
            machine.clock.advance(ms)

    def _go(self, name: str, action: Any) -> str:
        before: Replication = self._states[name]
        outcome = step(before, action, self._readings)
        self._pass(PASSING_MS)
        refused = self._do(action, before)
        self._states[name] = self._look_at()
        if refused in REFUSALS and isinstance(outcome, Rejected):
            return f"rejected by {outcome.clause}: {outcome.reason}"
        if refused and isinstance(action, Join | Leave):
            raise NotLive(REFUSED, str(action))
        return refused

    def _do(self, action: Action, before: Replication) -> str:
        """Have something happen; answer why it does not, "" where it does."""
        broker, leading = action.broker, self._lead()
        match action:
            case Append():
                self._written += 1
                value = str(self._written).encode()
                self._adapter.brokers.produce(before.leader, KEY, [value], acks=0)
                self._adapter.deliver_from_client(before.leader)
            case Serve():
                close = self._find_close()
                refused = self._serve(broker)
                if set(self._find_close()) != set(close):
                    raise NotLive(AT_ONCE, str(action))
                return refused
            case Answer():
                self._adapter.brokers.replicas(broker).take(
                    leading.answer_again(self._sent[broker])
                )
                self._send_fetch(broker)
            case Lag():
                self._have_lag(broker)
            case CatchUp():
                self._serve_again([broker])
                if broker not in self._find_close():
                    raise NotLive(ALONE, str(action))
            case Advance():
                leading.look()
            case Join() | Leave():
                return self._store(broker, joins=isinstance(action, Join))
            case Remove():
                isr = tuple(one for one in self._read_state()[0].isr if one != broker)
                self._write(replace(self._read_state()[0], isr=isr))
            case Refresh():
                leading.refresh()
            case Elect():
                return self._elect(broker, before)
            case Follow():
                self._follow_leader(broker)
        return ""

    def _send_fetch(self, broker: int) -> None:
        """Have a follower send its next request, after what it has to ask before."""
        for _ in range(len(self._committed) + self._written + 2):
            request = next(
                each
                for _, each in self._adapter.brokers.replicas(broker).next_requests()
                if each.key == KEY
            )
            if isinstance(request, Fetch):
                self._sent[broker] = request
                self._asked[broker] = Request(request.leader_epoch, request.offset)
                return
            answers: list[Response] = []
            leader = self._lead().view.broker
            self._adapter.brokers.replicas(leader).serve(request, answers.append)
            self._adapter.brokers.replicas(broker).take(answers[0])  # type: ignore[arg-type]
        raise AssertionError(f"{broker} never fetches")

    def _serve(self, broker: int) -> str:
        """Have a request arrive at the leader, where it waits; answer why it is refused."""
        answers: list[Response] = []
        leader = self._lead().view.broker
        self._adapter.brokers.replicas(leader).serve(self._sent[broker], answers.append)
        answer = answers[0]
        assert isinstance(answer, Fetched)
        if answer.error == NONE:
            self._asked[broker] = replace(self._asked[broker], served=True)
        return answer.error

    def _serve_again(self, brokers: list[int]) -> None:
        """Have those ask again that wait at the leader's end: there was nothing for them."""
        for broker in brokers:
            request = self._asked.get(broker)
            if request is not None and request.served and request.offset == self._end():
                self._serve(broker)

    def _have_lag(self, broker: int) -> None:
        before = set(self._find_close())
        passes_ms = LIMIT_MS + 1 - self._lead().view.followers[broker].lag_ms(self._now_ms())
        self._pass(passes_ms)
        self._serve_again(sorted(before - {broker}))
        if set(self._find_close()) != before - {broker}:
            raise NotLive(ALONE, f"lag of {broker}")

    def _store(self, broker: int, *, joins: bool) -> str:
        """Have the leader write the in-sync set, where that is the change that it would make."""
        leading = self._lead()
        leading.view = replace(leading.view, pseudo_isr=self._find_close())
        wanted, isr = set(propose_isr(leading.view, self._rules)), set(leading.view.isr)
        if wanted != (isr | {broker} if joins else isr - {broker}):
            return NOT_WRITTEN
        return "" if leading.store_isr() else NOT_WRITTEN

    # -- the controller

    def _elect(self, broker: int, before: Replication) -> str:
        """Have a broker elected, and hear of it; answer why it is not."""
        if broker == before.leader:
            stored, version = self._read_state()
            raised = replace(stored, leader_epoch=stored.leader_epoch + 1)
            self._write(raised)
            for one in self._ids:
                order = self._make_order(raised, version + 1)
                self._adapter.network.send(CONTROLLER, name_broker(one), order)
        else:
            others = tuple(one for one in self._ids if one != broker)
            lists = encode_topic({KEY[1]: (broker, *others)})
            self._stage.put([(topic_path(KEY[0]), lists)], given=True)
            asked = encode_preferred_election([KEY])
            self._stage.put([(PREFERRED_ELECTION, asked)], given=False)
            self._adapter.work()
            if self._read_state()[0].leader != broker:
                return NOT_ELECTED
        self._asked.pop(broker, None)
        self._adapter.deliver_orders(broker, KEY)
        return ""

    def _make_order(self, state: StateZnode, version: int) -> Order:
        return Order(
            controller=0,
            controller_epoch=self._stage.controller_epoch,
            topic=KEY[0],
            partition=KEY[1],
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            isr=state.isr,
            state_controller_epoch=state.controller_epoch,
            state_version=version,
            replicas=self._ids,
            is_new=False,
        )

    def _write(self, state: StateZnode) -> None:
        """Write the state in the controller's name; the judge takes it as it is."""
        self._stage.put([(state_path(*KEY), encode_state(state))], given=True)

    def _follow_leader(self, broker: int) -> None:
        """Have a broker hear of the leader, and of none before it; it cuts its log and asks."""
        *missed, _ = self._adapter.find_packets(broker, CONTROLLER)
        for packet in missed:
            self._adapter.network.lose(packet.number)
        self._adapter.deliver_orders(broker, KEY)
        self._send_fetch(broker)
