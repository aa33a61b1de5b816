"""World `kip-46`, live: brokers that stay away, and a real controller that heals.

What healing does is told: records, tasks and their starts as the log shows them, and what the
controller means to generate as its plan in hand says. What it does to partitions meanwhile goes on
by itself, and is judged: the story has a partition reach its target, or catch up, in one step.

Once its last task is persisted the controller removes a record before it looks for who is missed by
then. The model looks first, so such a removal is told after the records that are written next.

Clocks begin at 0, and tasks are numbered without those that a client wrote and nobody carries out.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

from reassure_conformance.adapter.bundled import find_unsupported
from reassure_conformance.protocols.kip_236.staged_requests import (
    change_isr,
    read_partition,
    refuse_to_go_on,
)
from reassure_conformance.scenarios.live.machine import LiveMachineWorld, judge_line
from reassure_conformance.scenarios.live.stage import ANOTHER_WAY, Done, MakeStage, NotLive, Stage
from reassure_conformance.scenarios.scenario import Scenario
from reassure_conformance.scenarios.worlds.machine import LIMIT
from reassure_controller import effects
from reassure_controller.protocols.kip_46 import HealingSettings
from reassure_judge.cross_partition import QueueWritten
from reassure_judge.history import SeenWrite
from reassure_judge.protocols.kip_46.router import FailureWritten, TaskWritten
from reassure_model.environment import Die, Failover, Join, NotPossible
from reassure_model.machine import Machine
from reassure_model.outcome import Rejected
from reassure_model.partition import Partition
from reassure_model.protocols.kip_46 import (
    Assignments,
    CatchUp,
    Cluster,
    CreateTask,
    DeleteRecord,
    Effect,
    Finish,
    Generate,
    Generation,
    Hosted,
    RecordFailure,
    RemoveTask,
    StartTask,
    Submit,
    Task,
    Tick,
    apply_effect,
    get_hosted,
)
from reassure_model.protocols.kip_46.machine import MACHINE, submit
from reassure_model.protocols.kip_46.narration import say_effect
from reassure_spec import znodes
from reassure_spec.readings import Readings
from reassure_spec.words import Arguments, parse_number
from reassure_spec.znodes import PartitionKey, ReplicaList, TaskZnode

_HEALING: Final = (
    effects.RecordFailure,
    effects.DeleteRecord,
    effects.CreateTask,
    effects.StartTask,
    effects.RemoveTask,
)


MOVED: Final = "a partition that is moved, taken for where it was and not for where it goes"


class _Line(NamedTuple):
    """What a controller did."""

    text: str
    why: str
    """Why nobody owed it, "" where it was owed."""
    broken: str = ""
    """The clause that it breaks, "" where it breaks none."""


class LiveHealingWorld(LiveMachineWorld):
    """Partitions on a few real brokers, some of which stay away."""

    def __init__(
        self,
        stage: Stage,
        settings: HealingSettings,
        profile: str,
        readings: Readings,
        arguments: Arguments,
    ) -> None:
        self._content = b""
        """What the command at hand writes as a task."""
        self._heard: list[_Line] = []
        self._died = False
        """Whether a broker died since the controller looked."""
        super().__init__(stage, MACHINE, profile, readings, arguments)
        self._begun_ms: Final = stage.now_ms
        self._log: Final = _Healing(
            stage, self._machine, settings, readings, self._blank, self._begun_ms
        )

    def run(self, command: str, arguments: Arguments) -> str:
        """Carry out one command."""
        self._content = arguments.get("content", "").encode()
        return super().run(command, arguments)

    # -- what clients, brokers and time do

    def _add_partitions(self, before: Cluster, after: Cluster) -> None:
        for hosted in after.partitions:
            if get_hosted(before, hosted.key) is None:
                self.stage.create_partition(hosted.key, hosted.assigned, None, given=False)
                self._log.keys.add(hosted.key)
        self.stage.go_on_to(_HEALING)

    def _go(self, name: str, action: Any) -> str:
        if not isinstance(action, Rejected):
            return super()._go(name, action)
        self._have_removed(self._content)
        return super()._go(name, action)

    def _do(self, action: Any) -> str:
        match action:
            case Tick(milliseconds):
                self.stage.advance(milliseconds)
                self._log.now_ms += milliseconds
            case Submit(assignments):
                return self._submit(assignments)
            case Finish(key):
                self._finish(key)
            case CatchUp(key):
                self.stage.go_on_to(_HEALING)
                hosted = self._get_hosted(key)
                self._join(key, (one for one in hosted.assigned if one in self._state.live))
            case Die():
                if self._died:
                    self.stage.go_on_to(_HEALING)  # one death after the other
                self._died = True
                return super()._do(action)
            case Failover():
                self._log.forget()
                return super()._do(action)
            case _:
                return super()._do(action)
        return ""

    @property
    def _state(self) -> Cluster:
        (state,) = self._states.values()
        found: Cluster = state
        return found

    def _get_hosted(self, key: PartitionKey) -> Hosted:
        self._read_back()
        hosted = get_hosted(self._state, key)
        if hosted is None:
            raise NotPossible(f"there is no partition {key}")
        return hosted

    def _finish(self, key: PartitionKey) -> None:
        """Have a partition reach its target."""
        self.stage.go_on_to(_HEALING)
        target = self._get_hosted(key).target
        if target is None or not set(target) <= self._state.live:
            raise NotLive("a move that is over, or waits for a dead broker", str(key))
        self._join(key, target)

    def _join(self, key: PartitionKey, replicas: Iterable[int]) -> None:
        """Have replicas catch up, and the controller do what follows from that."""
        in_sync = self._get_hosted(key).isr
        for replica in replicas:
            if replica not in in_sync and not change_isr(self.stage, key, Join(replica)):
                refuse_to_go_on(Join(replica))
        self.stage.go_on_to(_HEALING)

    def _submit(self, assignments: Assignments) -> str:
        """Have an operator persist a task; one that makes no sense has to go again."""
        content = znodes.encode_task(TaskZnode(dict(assignments), automatic=False))
        outcome = submit(self._state, assignments)
        if isinstance(outcome, Rejected):
            self._have_removed(content)
            return f"rejected by {outcome.clause}: {outcome.reason}"
        self.stage.create(lambda driver: driver.submit_task(self.stage.chroot, content))
        return ""

    def _have_removed(self, content: bytes) -> None:
        """Have an operator persist what is no task, which the controller has to remove."""
        stage = self.stage
        before = self._list_tasks()
        self._log.refuse()
        stage.create(lambda driver: driver.submit_task(stage.chroot, content))
        plan = stage.go_on_to(_HEALING)
        if isinstance(plan[0] if plan else None, effects.RemoveTask):
            stage.work(1)
        self._heard.clear()
        if self._list_tasks() != before:
            raise NotLive("a task that makes no sense, and other work before it", content.decode())

    # -- what there is

    def _list_tasks(self) -> list[str]:
        root = self.stage.chroot + znodes.REASSIGNMENT_TASKS
        return sorted(self.stage.driver.client.get_children(root))

    def _look_at(self, state: Cluster) -> Cluster:
        live, _ = self.stage.read_brokers()
        keys = sorted(self._log.keys)
        hosted = (host(key, read_partition(self.stage, key)[0]) for key in keys)
        return replace(
            state,
            live=live,
            partitions=tuple(each for each in hosted if each is not None),
            now_ms=self._log.now_ms,
            failed=tuple(self._read_failed()),
            tasks=tuple(self._read_tasks()),
            next_number=self._log.cluster.next_number,
            generation=self._log.cluster.generation,
        )

    def _read_failed(self) -> Iterator[tuple[int, int]]:
        client, root = self.stage.driver.client, self.stage.chroot + znodes.FAILED_BROKERS
        for broker in sorted(map(int, client.get_children(root))):
            path = znodes.failed_broker_path(broker)
            content = self.stage.fetch(path) or b""
            yield broker, znodes.decode_failed_broker(path, content) - self._begun_ms

    def _read_tasks(self) -> Iterator[Task]:
        for name in self._list_tasks():
            path = f"{znodes.REASSIGNMENT_TASKS}/{name}"
            task = znodes.decode_task(path, self.stage.fetch(path) or b"")
            number = znodes.parse_task_name(name) or 0
            yield Task(
                self._log.count(number), tuple(sorted(task.assignments.items())), task.automatic
            )

    # -- what the controller does

    def _hear(self, seen: SeenWrite, done: Done | None, broken: str) -> None:
        if done is None:
            lines = self._log.follow(seen)
            self._heard += [line._replace(broken=line.broken or broken) for line in lines]

    def _take_lines(self) -> list[str]:
        heard, self._heard = self._heard, []
        return [
            judge_line(self.stage, one.text, one.broken, owed=not one.why, why=one.why)
            for one in heard
        ]

    def _effect(self, name: str) -> str | None:
        """Have the controller carry out the next effect of healing, or mean to generate tasks."""
        self._died = False
        while not self._told and (plan := self.stage.go_on_to(_HEALING)):
            if self._log.cluster.generation is None:
                self._hear_plan(plan)
            if not self._heard:
                self.stage.work(1)
            self._told += self._take_lines()
        if not self._told:
            self.stage.work(None)  # which says that there is nothing to do, and has it judged
            self._log.check_rest()
        self._read_back()
        return self._told.pop(0) if self._told else None

    def _hear_plan(self, plan: tuple[effects.Step, ...]) -> None:
        """Note which tasks the controller is about to persist, and for whom."""
        tasks = [step.targets for step in plan if isinstance(step, effects.CreateTask)]
        after = [step.broker for step in plan if isinstance(step, effects.DeleteRecord)]
        if tasks:
            broker = after[0] if after else -1
            self._heard += self._log.generate(broker, tuple(tasks))
            if any(line.why for line in self._heard):
                self.stage.work(1)  # the judge says of the first one whether it is allowed

    def _list_effects(self) -> list[str]:
        lines = []
        while (line := self._effect("")) is not None:
            lines.append(line)
            if len(lines) > LIMIT:
                return [*lines, "not at rest when the time was up"]
        return lines


def host(key: PartitionKey, partition: Partition) -> Hosted | None:
    """Return a partition as healing tells of it, None where it does not exist.

    While it is moved it counts as assigned what it was before; the list that is stored holds what
    it is moved to as well.
    """
    assigned, flight = partition.assigned, partition.reassignment
    if assigned is None:
        return None
    isr: ReplicaList = () if partition.state is None else partition.state.isr
    target = flight.target if flight is not None else None
    if partition.requests:
        target = partition.requests[-1].target
    if flight is not None:
        assigned = assigned[: flight.top]
    order = [*assigned, *(target or ())]
    return Hosted(key, assigned, tuple(sorted(isr, key=order.index)), target)


class _Healing:
    """What healing keeps, as the log has it, and what the acting controller means to persist."""

    def __init__(
        self,
        stage: Stage,
        machine: Machine[Cluster],
        settings: HealingSettings,
        readings: Readings,
        blank: Cluster,
        begun_ms: int,
    ) -> None:
        self._stage = stage
        self._machine = machine
        self._settings = settings
        self._readings = readings
        self._begun_ms = begun_ms
        self.cluster = blank
        self._early: DeleteRecord | None = None
        """A record that was removed before who is missed was recorded, which is not told yet."""
        self.keys: set[PartitionKey] = set()
        self.now_ms = 0
        self.refused: list[int] = []
        """The numbers of those that were written and are no tasks, which no story counts."""

    def forget(self) -> None:
        """Note that another controller acts, who does not know what this one meant to persist."""
        self.cluster = replace(self.cluster, generation=None)

    def refuse(self) -> None:
        """Note that what is written next is no task."""
        self.refused.append(self.cluster.next_number + len(self.refused))

    def count(self, number: int) -> int:
        """Return the number that a task has in the story."""
        return number - sum(refused < number for refused in self.refused)

    def generate(self, broker: int, pending: tuple[Assignments, ...]) -> list[_Line]:
        """Take over what a controller means to persist."""
        self._look(self._stage.environment("").live)
        return self._judge(Generate(broker, pending))

    def follow(self, seen: SeenWrite) -> list[_Line]:
        """Take over an observation; return what healing did."""
        self._look(seen.around.live)
        theirs = seen.given or seen.author.is_client
        match seen.event:
            case TaskWritten(number, _) if number in self.refused:
                return []
            case FailureWritten(broker, None):
                return self._judge(DeleteRecord(broker, ""))
            case FailureWritten(broker, since) if since is not None:
                return self._judge(RecordFailure(broker, since - self._begun_ms))
            case TaskWritten(number, None):
                return self._judge(RemoveTask(self.count(number), "", ""))
            case TaskWritten(number, task) if task is not None:
                if theirs:
                    made = replace(task, number=self.count(number))
                    tasks, after = (*self.cluster.tasks, made), made.number + 1
                    self.cluster = replace(self.cluster, tasks=tasks, next_number=after)
                    return []
                return self._judge(CreateTask(task.assignments))
            case QueueWritten(_, request) if request is not None and not theirs:
                asked = request.assignments.items()
                for task in self.cluster.tasks:
                    if asked <= dict(task.assignments).items():
                        return self._judge(StartTask(task.number))
        return []

    def _look(self, live: frozenset[int]) -> None:
        hosted = (host(key, self._stage.partition(key)) for key in sorted(self.keys))
        partitions = tuple(each for each in hosted if each is not None)
        self.cluster = replace(self.cluster, live=live, partitions=partitions, now_ms=self.now_ms)

    def _judge(self, effect: Effect) -> list[_Line]:
        """Take over what a controller did, and what it did too early before that."""
        if isinstance(effect, DeleteRecord) and self._comes_early(effect):
            self._early = effect
            return []
        lines = [self._take(effect)]
        if self._early is not None and not self._lacks_record():
            lines.append(self._take(self._early))
            self._early = None
        return lines

    def _comes_early(self, effect: DeleteRecord) -> bool:
        """Whether all tasks for a broker are persisted, and another one is to be recorded next."""
        ended = self.cluster.generation == Generation(effect.broker, ())
        return ended and self._lacks_record()

    def _see_moved(self) -> Cluster:
        """Return the cluster with partitions that are moved where they go."""
        moved = (replace(h, assigned=h.target or h.assigned) for h in self.cluster.partitions)
        return replace(self.cluster, partitions=tuple(moved))

    def check_rest(self) -> None:
        """Raise NotLive where a controller rightly rests, and by the story would not."""
        self._look(self._stage.environment("").live)
        views = (self.cluster, self._see_moved())
        owed, moved = (self._machine.next_effect(each, self._readings) for each in views)
        if owed is not None and moved is None:
            raise NotLive(MOVED, say_effect(owed, self.cluster, self.cluster))

    def _lacks_record(self) -> bool:
        """Whether a broker that is missed is to be recorded next."""
        return isinstance(self._machine.next_effect(self.cluster, self._readings), RecordFailure)

    def _take(self, effect: Effect) -> _Line:
        """Take over what a controller did; say whether it was owed."""
        if isinstance(effect, CreateTask) and self.cluster.generation is None:
            # Nobody asked what the controller means to persist: the story is over.
            self.cluster = replace(self.cluster, generation=Generation(-1, (effect.assignments,)))
        before, why = self.cluster, ANOTHER_WAY
        for reason, cluster in (("", before), (MOVED, self._see_moved())):
            owed: Effect | None = self._machine.next_effect(cluster, self._readings)
            if owed is not None and _is_same(owed, effect):
                effect, why = owed, reason
                break
        self.cluster = apply_effect(before, effect)
        return _Line(say_effect(effect, before, self.cluster), why, self._find_broken(effect))

    def _find_broken(self, effect: Effect) -> str:
        """Return the clause on an operator's settings that an effect breaks, "" where it does not.

        The settings stand in no znode, so that the judge of the log does not know them.
        """
        settings = self._settings
        if not isinstance(effect, Generate):
            return ""
        since = dict(self.cluster.failed).get(effect.broker)
        if since is not None and self.now_ms - since < settings.failure_interval_ms:
            return "heal.interval"
        large = any(len(each) > settings.partitions_per_task for each in effect.pending)
        return "heal.generate.small-tasks" if large else ""


def _is_same(owed: Effect, effect: Effect) -> bool:
    """Whether an effect is the one that is owed, whatever the reason for it."""
    match owed, effect:
        case DeleteRecord(one, _), DeleteRecord(other, _):
            return one == other
        case RemoveTask(one, _, _), RemoveTask(other, _, _):
            return one == other
    return owed == effect


def make_world(
    make_stage: MakeStage, profile: str, readings: Readings, arguments: Arguments
) -> LiveHealingWorld:
    """Return the world on a cluster of its own, with the settings that the story begins with."""
    settings = HealingSettings(
        failure_interval_ms=parse_number("interval", arguments.get("interval", "1000")),
        partitions_per_task=parse_number("size", arguments.get("size", "1")),
    )
    brokers = (entry.split(":") for entry in arguments["racks"].split(","))
    racks = {int(broker[0]): broker[1] for broker in brokers if len(broker) > 1}
    stage = make_stage(healing=settings, racks=racks)
    return LiveHealingWorld(stage, settings, profile, readings, arguments)


def find_reason(scenario: Scenario) -> str:
    """Return why a scenario of the world cannot be told live, "" where it can."""
    for block in scenario.blocks:
        if block.command == "quota":
            return "world kip-46: a share of the bandwidth, which no controller is asked for"
        if block.command == "shortest" and block.expected == ("not reachable",):
            return "world kip-46: that nothing leads to a state, which only a search can say"
    return find_unsupported(scenario.readings)
