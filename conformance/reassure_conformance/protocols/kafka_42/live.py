"""World `kafka-42`, live: the same commands, to a real controller and to brokers with real logs.

The model's world keeps its vocabulary, and takes no step of its own: what is shown is what
ZooKeeper and the disks hold, and each line of the controller is an effect that it has carried out.
What it only remembers (steps 1 and 3) is read from its memory. The states of replicas, of which it
keeps none, are those of the table, followed over what it did.

An order counts when it arrives, one broker after another; what a controller has sent is lost with
it. One to a replica that was stopped stays on its way: the model's stopped replica does not run
again because it is told of a leader.

`shortest` finds a story in the model and tells it, on a cluster of its own.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from reassure_conformance.scenarios.live.stage import (
    ANOTHER_WAY,
    REFUSED,
    MakeStage,
    NotLive,
    Stage,
)
from reassure_conformance.scenarios.live.stepped import Stepped
from reassure_conformance.scenarios.scenario import Scenario
from reassure_conformance.scenarios.worlds import Handler
from reassure_conformance.scenarios.worlds.machine import LIMIT, MachineWorld
from reassure_controller import effects as real
from reassure_controller.replication.following import Following
from reassure_controller.replication.rules import ReplicationRules
from reassure_controller.replication.serving import Leading
from reassure_explorer.scopes.machine import search
from reassure_model.copies import Append
from reassure_model.environment import Controller, Die, Failover, Join, Return
from reassure_model.machine import ONLY
from reassure_model.outcome import Rejected
from reassure_model.partition import LeaderAndIsr
from reassure_model.protocols.kafka_42 import (
    Command,
    Effect,
    Interrupt,
    Listen,
    MarkOnline,
    Move,
    Observe,
    Refuse,
    RemovePath,
    Stall,
    StartReplica,
    StopReplica,
    WriteAssigned,
    WriteLeader,
    apply_effect,
    find_refusal,
    next_effect,
)
from reassure_model.protocols.kafka_42.machine import MACHINE, OthersEnd, step
from reassure_spec.readings import Readings, get_profile
from reassure_spec.rooms import RefusedReading, choose_readings, controller_of
from reassure_spec.words import (
    Arguments,
    ScenarioError,
    check_arguments,
    format_replicas,
    parse_replicas,
)
from reassure_spec.znodes import (
    NO_LEADER,
    REASSIGN_PARTITIONS,
    LegacyEntry,
    PartitionKey,
    decode_reassign_partitions,
    decode_state,
    decode_topic,
    encode_reassign_partitions,
    state_path,
    topic_path,
)

KEY: Final[PartitionKey] = ("p", 0)
BESIDE: Final[PartitionKey] = ("q", 0)
"""The partition that stands beside on the path."""
TOLD_BESIDE: Final = frozenset({"move.interrupt", "move.online-from"})
"""Readings that are not the controller's: of the command, and of states that it does not keep."""

PLAN_FIRST: Final = "the controller finishes what it has planned before it looks at a death"
ASKED_AHEAD: Final = ("shortest", "shut-down")
"""Commands that ask what would be; the story goes on from before them."""
NOTHING_FOUND: Final = "a search that finds no story, so that there is none to tell"


class LiveMoveWorld(MachineWorld):
    """One partition on real brokers, and the old znode."""

    def __init__(
        self, make_stage: MakeStage, profile: str, readings: Readings, arguments: Arguments
    ) -> None:
        super().__init__(MACHINE, profile, readings, arguments)
        self._make_stage: Final = make_stage
        self._profile: Final = profile
        self._told: list[tuple[str, Arguments]] = []
        """The commands of the story so far."""
        self._is_stale = False
        """Whether the cluster was led on by a search."""
        self._begin()

    def _begin(self) -> None:
        """Make a cluster in which the partition has a record, and its controller waits."""
        opening: Move = self._blank
        self._states[ONLY] = opening
        self._memory = MACHINE.vocabulary.remember(opening) if MACHINE.vocabulary.remember else None
        self._running = opening.running
        """The replicas that run by what the model says of what was done."""
        self._committed: set[bytes] = set()
        self._held: dict[int, set[bytes]] = {}
        """By broker that is down: the records on its disk."""
        self._stalled: set[int] = set()
        """Brokers that no order reaches."""
        self._back: set[int] = set()
        """Brokers that are back and were told nothing yet."""
        self._ahead: deque[tuple[Effect, Callable[[], None]]] = deque()
        """What the controller has sent, and what has it arrive."""
        self._listened: tuple[int, ...] | None = None
        self._is_online = False
        self._died_in_plan = False
        self._raises = 0
        make = self._make_stage
        rules = ReplicationRules(get_profile("kip-236-amended"))
        self._adapter = Stepped(make.find_cluster(), self._profile, self._readings, rules)
        self._stage: Stage = make(self._adapter)
        self._stage.begin(tuple(sorted(opening.live)), ())
        if opening.assigned:
            state = LeaderAndIsr(opening.leader, 0, 1, opening.isr)
            self._stage.create_partition(KEY, opening.assigned, state, given=True)
        self._adapter.settle(0)
        if opening.assigned:
            self._append()
        self._take_over()

    def run(self, command: str, arguments: Arguments) -> str:
        """Carry out one command; what cannot be done is said in the output."""
        if self._is_stale:
            self._is_stale = False
            self._tell_again()
        if command not in ASKED_AHEAD:
            self._told.append((command, arguments))
        try:
            return super().run(command, arguments)
        except ScenarioError as error:
            return f"cannot: {error}"

    def _list_handlers(self) -> Mapping[str, Handler]:
        return {**super()._list_handlers(), "shut-down": self._shut_down}

    def _shut_down(self, arguments: Arguments) -> str:
        """Have brokers ask to stop, one after the other; say who has taken over.

        The story goes on with another cluster. That they asked is in nobody's log, and none of them
        ends, so the judge is not shown what follows from it.
        """
        check_arguments(arguments, ("brokers",))
        leads_on = False
        for broker in parse_replicas("brokers", arguments["brokers"]):
            leads_on = self._adapter.shut_down(broker)
        _, state = self._read_partition()
        self._tell_again()
        if leads_on:
            return "nobody can take over; the broker keeps leading"
        return f"leader {state.leader} isr {format_replicas(state.isr)}"

    def _tell_again(self) -> None:
        """Tell the story so far to another cluster."""
        told, self._told = self._told, []
        self._begin()
        for command, arguments in told:
            self.run(command, arguments)

    # -- from ZooKeeper and the disks to what is shown

    def _take_over(self) -> None:
        """Take over what ZooKeeper and the brokers hold."""
        self._stage.read()
        live, _ = self._stage.read_brokers()
        before: Move = self._states[ONLY]
        entries = self._read_entries()
        assigned, state = self._read_partition()
        self._states[ONLY] = replace(
            before,
            assigned=assigned,
            leader=NO_LEADER if state is None else state.leader,
            isr=() if state is None else state.isr,
            leader_epoch=0 if state is None else state.leader_epoch - self._raises,
            live=live,
            running=frozenset(self._find_running(live)),
            holding=frozenset(one for one in self._list_hosts() if self._holds(one)),
            path=next((entry.target for entry in entries if entry.key == KEY), None),
            beside=any(entry.key != KEY for entry in entries),
        )

    def _read_partition(self) -> tuple[tuple[int, ...], Any]:
        paths = (topic_path(KEY[0]), state_path(*KEY))
        topic, state = (self._stage.fetch(path) for path in paths)
        if topic is None or state is None:
            return (), None
        return decode_topic(paths[0], topic)[KEY[1]], decode_state(paths[1], state)

    def _read_entries(self) -> tuple[LegacyEntry, ...]:
        data = self._stage.fetch(REASSIGN_PARTITIONS)
        return () if data is None else decode_reassign_partitions(REASSIGN_PARTITIONS, data)

    def _list_hosts(self) -> Iterable[int]:
        return self._adapter.brokers.machines

    def _find_running(self, live: frozenset[int]) -> Iterable[int]:
        """Yield the brokers that run a replica; where one is down, those that ran it."""
        for broker in self._list_hosts():
            replica = self._adapter.find_replica(broker, KEY)
            if broker not in live:
                if broker in self._running:
                    yield broker
            elif replica is not None:
                waits = broker in self._back and broker in self._running
                if waits or isinstance(replica.role, Leading | Following) or self._is_orphan():
                    yield broker

    def _is_orphan(self) -> bool:
        """Whether nobody leads, so that whoever runs has nobody to follow."""
        state = self._read_partition()[1]
        return state is not None and state.leader == NO_LEADER

    def _holds(self, broker: int) -> bool:
        if not self._committed:
            return False
        if broker in self._adapter.brokers.live:
            return self._committed <= self._adapter.read_values(broker, KEY)
        return self._committed <= self._held.get(broker, set())

    def _start_again(self) -> None:
        """Have the orders of the next controller arrive by which a stopped replica runs again."""
        move: Move = self._states[ONLY]
        if not (self._running - move.running) & set(move.assigned) & move.live:
            return
        while isinstance(order := self._adapter.find_next(), real.SendLeaderAndIsr):
            self._adapter.take_next()
            self._arrive(order)
        self._take_over()

    def _show(self, arguments: Arguments) -> str:
        self._start_again()
        return super()._show(arguments)

    def _show_problems(self, arguments: Arguments) -> str:
        self._start_again()
        return super()._show_problems(arguments)

    # -- what clients and brokers do

    def _follow_model(self, move: Move) -> None:
        """Take over what is in nobody's znode: the command, the task, what was started."""
        self._running = move.running
        self._states[ONLY] = replace(
            self._states[ONLY], task=move.task, wanted=move.wanted, found=move.found
        )

    def _followed(self) -> Move:
        """Return the system as the model has it, of all that was really done."""
        move: Move = self._states[ONLY]
        return replace(move, running=self._running)

    def _go(self, name: str, action: Any) -> str:
        before = self._followed()
        outcome = step(before, action, self._readings)
        if isinstance(action, Command):
            refused = self._stage.exists(REASSIGN_PARTITIONS)
            if isinstance(outcome, Rejected) and refused:
                return f"rejected by {outcome.clause}: {outcome.reason}"
            assert not refused, "the path is taken"
        if isinstance(outcome, Rejected):
            return f"rejected by {outcome.clause}: {outcome.reason}"
        self._do(action, before, outcome.state)
        self._follow_model(outcome.state)
        self._take_over()
        if isinstance(action, Failover) and MACHINE.vocabulary.remember is not None:
            self._memory = MACHINE.vocabulary.remember(outcome.state)
        if isinstance(action, Die):
            self._follow(action)
        return ""

    def _do(self, action: Any, before: Move, after: Move) -> None:
        match action:
            case Command(target):
                self._write_entries([LegacyEntry(KEY, target)])
            case Interrupt() if after.path != before.path:
                entries = [entry for entry in self._read_entries() if entry.key != KEY]
                self._write_entries(entries)
            case Append():
                self._append()
            case Join(replica):
                self._join(replica)
            case Die(broker):
                self._die(broker)
            case Return(broker):
                self._stage.start_broker(broker)
                self._back.add(broker)
            case Failover():
                self._stage.fail_over()
                self._ahead.clear()
                self._listened, self._is_online, self._died_in_plan = None, False, False
            case Stall():
                leading = self._adapter.find_replica(before.leader, KEY)
                assert leading is not None
                leading.rest()
                self._stalled.add(before.leader)
            case OthersEnd():
                self._end_others()
            case Interrupt() | Observe():
                pass
            case _:
                raise AssertionError(action)

    def _write_entries(self, entries: list[LegacyEntry]) -> None:
        """Have a client write the path, or remove it where no entry is left."""
        if entries:
            self._stage.put(
                [(REASSIGN_PARTITIONS, encode_reassign_partitions(entries))], given=False
            )
        else:
            self._stage.keep(REASSIGN_PARTITIONS, None)

    def _append(self) -> None:
        value = str(len(self._committed)).encode()
        leader: int = self._states[ONLY].leader
        self._adapter.append(leader, KEY, value)
        self._committed.add(value)

    def _join(self, replica: int) -> None:
        self._adapter.change_isr(replica, *KEY, joins=True)
        state = self._read_partition()[1]
        if state is None or replica not in state.isr:
            raise NotLive(REFUSED, str(Join(replica)))

    def _die(self, broker: int) -> None:
        if broker in self._adapter.brokers.live:
            self._held[broker] = self._adapter.read_values(broker, KEY)
        # An effect that is held belongs to a plan that was made before.
        self._died_in_plan = self._died_in_plan or self._adapter.has_plan
        self._stage.stop_broker(broker)
        self._back.discard(broker)
        self._ahead = deque(
            (effect, arrive) for effect, arrive in self._ahead if effect != StartReplica(broker)
        )

    def _change(
        self, command: str, make: Callable[[Any, Arguments], Any], arguments: Arguments
    ) -> str:
        """Put another partition on the path, whose move waits for a replica that lags."""
        check_arguments(arguments)
        assigned, target = (1,), (2,)
        self._stage.create_partition(BESIDE, assigned, None, given=False)
        self._write_entries([*self._read_entries(), LegacyEntry(BESIDE, target)])
        self._take_over()
        return ""

    def _end_others(self) -> None:
        """Let the replica that the other partition waits for catch up, and the controller work."""
        entry = next(entry for entry in self._read_entries() if entry.key == BESIDE)
        self._adapter.settle(0)
        self._adapter.change_isr(entry.target[0], *BESIDE, joins=True)
        self._adapter.settle(0)

    # -- what the controller does

    def _effect(self, name: str) -> str | None:
        planned = self._plan_ahead()
        done = self._take_effect()
        if done is None:
            return None
        breaks = any(each.binds() for each in self._stage.violations)
        if done in planned[1:] and done != planned[0] and not (self._died_in_plan or breaks):
            raise NotLive(ANOTHER_WAY, str(done))
        return self._tell_done(done, planned[:1])

    def _run(self, arguments: Arguments) -> str:
        """Let the controller go on until it waits.

        In which order it does what is owed in a row is its own business: two replicas may be taken
        out of the in-sync set before one is stopped. It is told in the order of the model.
        """
        check_arguments(arguments)
        planned = self._plan_ahead()
        found: list[tuple[Effect, list[Effect]]] = []
        while len(found) <= LIMIT:
            owed = self._plan_ahead()[:1]
            done = self._take_effect()
            if done is None:
                break
            found.append((done, owed))
        if sorted(repr(done) for done, _ in found) == sorted(map(repr, planned)):
            found = [(effect, [effect]) for effect in planned]
        lines = [self._tell_done(done, owed) for done, owed in found]
        return "\n".join([*(lines or ["the controller waits"]), self._show({})])

    def _plan_ahead(self) -> list[Effect]:
        """Return what is owed in a row if nothing else happens."""
        move, planned = self._followed(), list[Effect]()
        while len(planned) <= LIMIT:
            effect = next_effect(move, self._readings)
            if effect is None:
                break
            planned.append(effect)
            move = apply_effect(move, effect)
        return planned

    def _tell_done(self, done: Effect, owed: list[Effect]) -> str:
        """Return the lines about an effect.

        Raises NotLive where another one was owed because somebody had died.
        """
        move = self._states[ONLY]
        line = "\n".join([MACHINE.vocabulary.say_effect(done, move, move), *self._follow(done)])
        if owed == [done]:
            return line
        if self._died_in_plan:
            raise NotLive(PLAN_FIRST, line)
        return f"{line} (not owed)"

    def _take_effect(self) -> Effect | None:
        """Have the controller carry out what is an effect in the model; None where it waits."""
        before = self._followed()
        owed = next_effect(before, self._readings)
        done = owed if self._is_so_already(owed) else self._take_real(before)
        if done is not None:
            self._follow_model(apply_effect(before, done))
        self._take_over()
        return done

    def _is_so_already(self, owed: Effect | None) -> bool:
        """Whether there is nothing to write, so that a controller writes nothing."""
        move: Move = self._states[ONLY]
        if isinstance(owed, WriteAssigned):
            return owed.assigned == move.assigned
        return isinstance(owed, RemovePath) and move.path is None and self._listened is not None

    def _take_real(self, before: Move) -> Effect | None:
        """Have the controller go on until it has done something that the model knows."""
        for _ in range(LIMIT):
            if self._ahead:
                effect, arrive = self._ahead.popleft()
                arrive()
                return effect
            waits = self._adapter.find_next()
            remembered = self._find_remembered(waits)
            if remembered is not None:
                return remembered
            if waits is None:
                return None
            done = self._translate(self._adapter.take_next(), before)
            self._stage.read()
            if done is not None:
                return done
        raise ScenarioError(f"the controller does nothing of note in {LIMIT} effects")

    def _find_remembered(self, waits: real.Effect | None) -> Effect | None:
        """Return what it has taken into memory since the last look."""
        target = self._adapter.find_target(KEY)
        if target != self._listened:
            self._listened, self._is_online = target, False
            if target is not None:
                return Listen(target)
        completing = waits is not None and waits.point.startswith("completion.")
        if target is not None and completing and not self._is_online:
            self._is_online = True
            return MarkOnline(target)
        return None

    def _translate(self, effect: real.Effect | None, before: Move) -> Effect | None:
        """Return what an effect is in the model, None where it is nothing there."""
        match effect:
            case real.SendLeaderAndIsr():
                self._arrive(effect)
            case real.SendStopReplica(delete=True) if effect.key == KEY:
                self._ahead += ((StopReplica(one), self._make_arrival(one)) for one in effect.to)
            case real.WriteState() if effect.key == KEY:
                return self._translate_state(effect, before)
            case real.WriteAssigned(assigned=assigned) if effect.key == KEY:
                expands = effect.point == "request.assigned-expanded"
                return WriteAssigned(assigned, step=2 if expands else 6)
            case real.WriteOldZnode(entries=entries):
                if before.path is None or KEY in {entry.key for entry in entries}:
                    return None
                if effect.point == "old-znode.entry-removed":
                    return RemovePath()
                why = find_refusal(before, before.path, self._readings)
                return why or Refuse("nothing", "nobody knows why")
        return None

    def _translate_state(self, effect: real.WriteState, before: Move) -> Effect | None:
        leader, isr = effect.state.leader, effect.state.isr
        if (leader, isr) == (before.leader, before.isr):
            self._raises += 1
            self._stage.raises[f"{KEY[0]}-{KEY[1]}"] += 1
            return None
        at = {"completion.leader-moved": 4, "completion.isr-shrunk": 5}.get(effect.point, 0)
        return WriteLeader(leader, isr, at)

    def _arrive(self, effect: real.SendLeaderAndIsr) -> None:
        """Have an order arrive at those who run a replica; who is to start one is told in turn."""
        target = self._listened or ()
        reached = [broker for broker in effect.to if broker not in self._stalled]
        ordered = sorted(reached, key=lambda one: target.index(one) if one in target else -1)
        for broker in ordered:
            if effect.key != KEY:
                self._adapter.deliver_orders(broker, effect.key)
            elif broker in self._running:
                self._make_arrival(broker)()
            elif broker in target:
                self._ahead.append((StartReplica(broker), self._make_arrival(broker)))

    def _make_arrival(self, broker: int) -> Callable[[], None]:
        def arrive() -> None:
            self._adapter.deliver_orders(broker, KEY)
            self._back.discard(broker)

        return arrive

    # -- searches

    def _search(self, arguments: Arguments) -> str:
        """Tell the story that a search finds, and what is found at its end."""
        counted = tuple(act.counted for act in MACHINE.acts if act.counted)
        check_arguments(arguments, (), ("problem", "goal", "targets", *counted))
        find = self._parse_found(arguments)
        times = {name: int(arguments[name]) for name in counted if name in arguments}
        story = search(
            MACHINE,
            self._followed(),
            self._readings,
            lambda m: bool(find(m)),
            times,
            {"targets": ()},
        )
        if story is None:
            raise NotLive(NOTHING_FOUND, str(dict(arguments)))
        self._is_stale = True
        lines = []
        for number, action in enumerate(story, start=1):
            lines.append(f"{number}. {self._tell_action(action)}")
        return "\n".join([*lines, f"=> {find(self._states[ONLY])}"])

    def _tell_action(self, action: Any) -> str:
        if isinstance(action, Controller):
            return self._effect(ONLY) or "the controller waits"
        before = self._states[ONLY]
        said = self._go(ONLY, action)
        return said or MACHINE.tell(action, before, self._states[ONLY], self._readings)


make_world = LiveMoveWorld


def find_reason(scenario: Scenario) -> str:
    """Return why a scenario of the world cannot be told live, "" where it can."""
    overrides = {n: v for n, v in scenario.overrides.items() if n not in TOLD_BESIDE}
    try:
        choose_readings(controller_of(scenario.profile), scenario.profile, overrides)
    except RefusedReading as refused:
        return str(refused)
    return ""
