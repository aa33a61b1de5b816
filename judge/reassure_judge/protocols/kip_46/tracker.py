"""The records of failed brokers and the tasks of one cluster, and how their writers are judged.

The model is asked of each write whether it may be made (`HEALING.accept`), in each view of brokers
and of earlier writes that its author may have had, and at rest what is owed (`HEALING.owed`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Final

from reassure_judge.cross_partition import NO_KEY, CrossPartitionTracker, Earlier, QueueWritten
from reassure_judge.history import Event
from reassure_judge.moments import ACTS, DISTURBED, Kept
from reassure_judge.protocols.kip_46.router import (
    FailureWritten,
    MinimumSeen,
    Misshapen,
    MisshapenGone,
    RackSeen,
    TaskWritten,
)
from reassure_judge.rules import Possible
from reassure_judge.verdicts import Tally
from reassure_model.controllers import ACTING
from reassure_model.outcome import Rejected
from reassure_model.partition import Environment, Partition
from reassure_model.protocols.kip_46 import (
    Cluster,
    CreateTask,
    DeleteRecord,
    Effect,
    HealingConfig,
    Hosted,
    RecordFailure,
    RemoveTask,
    StartTask,
    Task,
    compute_plan,
)
from reassure_model.protocols.kip_46.healing import Healing, follow
from reassure_model.protocols.kip_46.writes import HEALING, find_owed, host
from reassure_spec import znodes
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import PartitionKey, ReplicaList

_TO_RECORDS: Final = (RecordFailure, DeleteRecord)


class HealingTracker(CrossPartitionTracker):
    """Follows the records of failures and the tasks of one cluster."""

    def __init__(self, readings: Readings, tally: Tally) -> None:
        super().__init__(readings, tally)
        self.racks: dict[int, str | None] = {}
        self.misshapen: dict[str, Misshapen] = {}
        self._hosted: dict[PartitionKey, Hosted] = {}
        self._minimums: dict[str, int | None] = {}
        self._state: Healing = HEALING.begin
        """What follows from the writes so far; brokers and partitions are `_see`n anew."""
        self._foreign: set[int] = set()
        """Requests that somebody else than a controller made."""
        self._clock_ms = 0
        """What the clock of whoever writes says at least; time passes in no history."""
        self._planned: Earlier[PartitionKey, ReplicaList] = Earlier()
        """What partitions were assigned, or were to be, until lately; () before they were made."""
        self._unrecorded: Earlier[int, int] = Earlier()
        """Records that there were until lately."""
        self._withdrawn: Earlier[int, Task] = Earlier()
        """Tasks that there were until lately."""

    def begin_term(self) -> None:
        """Note that another controller acts, who generates anew."""
        self._state = HEALING.fail_over(self._state, self.readings)

    def list_states(self) -> tuple[Possible, ...]:
        """Return by what a controller decides about records and tasks."""
        state = self._see()
        cluster = replace(state.cluster, now_ms=self._clock_ms)
        kept = replace(state, partitions=Kept(self.partitions), minimums=Kept(self._minimums))
        return (Possible(replace(kept, cluster=cluster)),)

    def _note_write(self, task: Task | None = None, *, by_controller: bool) -> None:
        """Tell the witness of a write to records, tasks or partitions before it is taken over.

        Whoever generates a `task` takes those whom it replaces to be away for long enough.
        """
        acts = by_controller and not self.seen.given
        if acts and task is not None and task.automatic:
            state = self._see()
            after = follow(state, CreateTask(task.assignments), self.readings)
            replaced = {broker for broker, _ in after.placed - state.placed}
            since = [time for broker, time in state.cluster.failed if broker in replaced]
            self._clock_ms = max(since, default=0) + HealingConfig().failure_interval_ms
        self.note(ACTS if acts else DISTURBED, self.seen.chroot, self.seen.around)
        self._clock_ms = 0

    # What there is --------------------------------------------------------------------------------

    def _see(self) -> Healing:
        """Return things as they are."""
        cluster = replace(
            self._state.cluster,
            racks=tuple(sorted(self.racks.items())),
            partitions=tuple(hosted for _, hosted in sorted(self._hosted.items())),
            tasks=tuple(sorted(self._state.cluster.tasks, key=attrgetter("number"))),
        )
        return replace(
            self._state, cluster=cluster, partitions=self.partitions, minimums=self._minimums
        )

    def _ask(self, key: PartitionKey, effect: Effect, *states: Healing) -> bool:
        """Judge a write by how things are, then by how whoever writes may have seen them."""
        around, doubtful = self.seen.around, self.seen.doubt.brokers
        lives = (around.live | doubtful, around.live - doubtful) if doubtful else ()
        arounds = (around, *(replace(around, live=live) for live in lives))
        outcomes = (
            HEALING.accept(state, effect, each, self.readings)
            for state in states
            for each in arounds
        )
        return self.settle(key, (o if isinstance(o, Rejected) else o.clauses for o in outcomes))

    def _follow(self, effect: Effect) -> None:
        """Take over what was written."""
        self._state = follow(self._see(), effect, self.readings)
        if self.seen.given:
            self.begin_term()  # nobody knows who has written it

    def follow(self, key: PartitionKey, before: Partition, after: Partition) -> None:
        """Keep what healing looks at of a partition."""
        self._keep(key, after)

    def take_queue(self, event: QueueWritten) -> None:
        """Take over what became of the queue, and what healing looks at of its partitions."""
        before = self.requests.get(event.sequence, ())
        super().take_queue(event)
        for key in {*before, *self.requests.get(event.sequence, ())}:
            self._keep(key, self.get(key))

    def _keep(self, key: PartitionKey, partition: Partition) -> None:
        before, after = self._hosted.get(key), host(key, partition)
        if before != after and self.seen.author.office != ACTING:
            self._note_write(by_controller=False)
        was, now = (() if each is None else each.assigned for each in (before, after))
        if was != now:
            self._planned.note(key, was, self.seen.time_ms)
        if after is None:
            self._hosted.pop(key, None)
        else:
            self._hosted[key] = after

    def judge(self, event: Event) -> None:
        """Judge a write to records, to tasks or to the queue."""
        match event:
            case RackSeen(broker, rack):
                self.racks[broker] = rack
            case MinimumSeen(topic, least):
                self._minimums[topic] = least
            case FailureWritten():
                self._on_record(event)
            case TaskWritten():
                self._on_task(event)
            case Misshapen():
                self._on_misshapen(event)
            case MisshapenGone():
                self.misshapen.pop(self.seen.path, None)
            case QueueWritten(sequence, request, noticed_ms):
                if request is None:
                    self._foreign.discard(sequence)
                elif self.seen.given or self.seen.author.is_client:
                    self._foreign.add(sequence)
                else:
                    self._on_start(request.assignments, noticed_ms)

    # Records --------------------------------------------------------------------------------------

    def _on_record(self, event: FailureWritten) -> None:
        broker, since = event.broker, event.since
        self._note_write(by_controller=True)
        state = self._see()
        before = dict(state.cluster.failed).get(broker)
        self.shown = (_show_record(before), _show_record(since))
        effect = DeleteRecord(broker) if since is None else RecordFailure(broker, since)
        if not self.seen.given:
            self.blame(NO_KEY)
            # Whoever removes it may not have noticed what came to the broker lately.
            fresh = {k for k in self._planned.names() if self._planned.get(k, event.noticed_ms)}
            placed = state.placed | {(broker, key) for key in fresh}
            self._ask(NO_KEY, effect, state, *([replace(state, placed=placed)] if fresh else ()))
        if since is None and before is not None:
            self._unrecorded.note(broker, before, self.seen.time_ms)
        self._follow(effect)

    @clause("heal.record.format", "heal.generate.persisted")
    def _on_misshapen(self, event: Misshapen) -> None:
        by_client = self.seen.given or self.seen.author.is_client
        if event.clause == "heal.record.format" or not by_client:
            self.violate(NO_KEY, Rejected(event.clause, event.reason))
        else:
            self.misshapen[self.seen.path] = event

    # Tasks ----------------------------------------------------------------------------------------

    def _on_task(self, event: TaskWritten) -> None:
        tasks = self._state.cluster.tasks
        before = next((each for each in tasks if each.number == event.number), None)
        task, by_client = event.task, self.seen.author.is_client
        self._note_write(task, by_controller=not by_client)
        self.shown = (_show_task(before), _show_task(task))
        if not self.seen.given:
            theirs = [each for each in (before, task) if each is not None and each.automatic]
            if theirs or not by_client:
                self.blame(NO_KEY)
            if not by_client:
                if before is not None:
                    self._judge_removal(before)
                if task is not None:
                    self._judge_creation(task, event.noticed_ms)
        if before is not None:
            self._withdrawn.note(event.number, before, self.seen.time_ms)
            self._follow(RemoveTask(event.number))
        if task is not None:
            if by_client:
                self._note_plan(task)
            numbered = replace(self._state.cluster, next_number=event.number)
            self._state = replace(self._state, cluster=numbered)
            self._follow(CreateTask(task.assignments, task.automatic))

    def _note_plan(self, task: Task) -> None:
        """Note what was planned before an operator's task, which a controller may not know yet."""
        plan = compute_plan(self._see().cluster)
        for key, _ in task.assignments:
            if key in plan:
                self._planned.note(key, plan[key], self.seen.time_ms)

    def _judge_removal(self, task: Task) -> None:
        state = self._see()
        views = self._forget_requests([state], self.requests)
        self._ask(NO_KEY, RemoveTask(task.number), state, *views)

    def _forget_requests(
        self, states: Iterable[Healing], unnoticed: Collection[int]
    ) -> list[Healing]:
        """Return states as who writes may see them that has not noticed these requests."""
        unasked = {
            key: host(key, replace(partition, requests=known))
            for key, partition in self.partitions.items()
            if (known := tuple(r for r in partition.requests if r.sequence not in unnoticed))
            != partition.requests
        }
        found = []
        for state in states if unasked else ():
            others = tuple(unasked.get(h.key) or h for h in state.cluster.partitions)
            found.append(replace(state, cluster=replace(state.cluster, partitions=others)))
        return found

    @clause("heal.generate.persisted", "heal.failover.generated-again")
    def _judge_creation(self, task: Task, noticed_ms: float) -> None:
        """Judge a task partition by partition, so that each is told where it is."""
        names = self._unrecorded.names()
        lately = frozenset(b for b in names if self._unrecorded.get(b, noticed_ms))
        doubt = lately or self.seen.doubt.brokers or self._planned.has_any(noticed_ms)
        state = replace(self._see(), certain=not doubt)
        if not task.automatic:
            self._ask(NO_KEY, CreateTask(task.assignments, automatic=False), state)
        for key, target in task.assignments:
            part = CreateTask(((key, target),))
            earlier = tuple((key, replicas) for replicas in self._list_earlier(key, noticed_ms))
            self._ask(key, part, state, replace(state, earlier=earlier, unrecorded=lately))
            state = follow(state, part, self.readings)

    def _list_earlier(self, key: PartitionKey, noticed_ms: float) -> Iterator[ReplicaList]:
        """Yield what a partition was assigned lately, and what tasks asked for that are gone."""
        for number in self._withdrawn.names() if key in self._hosted else ():
            for task in self._withdrawn.get(number, noticed_ms):
                yield from (target for each, target in task.assignments if each == key)
        yield from self._planned.get(key, noticed_ms)

    @clause("heal.task.as-reassignment")
    def _on_start(self, asked: Mapping[PartitionKey, ReplicaList], noticed_ms: float) -> None:
        self.shown = ("", ", ".join(f"{t}-{n} to {list(to)}" for (t, n), to in asked.items()))
        self._note_write(by_controller=True)
        self.blame(NO_KEY)
        state, start = self._see(), StartTask(tuple(asked.items()))
        older = {
            number: task
            for number in self._withdrawn.names()
            for task in self._withdrawn.get(number, noticed_ms)
        }
        queues: list[tuple[Task, ...]] = [(task,) for task in older.values()]
        if older:
            every = {**older, **{task.number: task for task in state.cluster.tasks}}
            queues.append(tuple(task for _, task in sorted(every.items())))
        views = [replace(state, cluster=replace(state.cluster, tasks=queue)) for queue in queues]
        # What it asked for itself a controller knows of, though no answer says so.
        views += self._forget_requests((state, *views), self._foreign)
        if self._ask(NO_KEY, start, state, *views):
            self._follow(start)

    # At rest --------------------------------------------------------------------------------------

    @clause("heal.task.refuse-duplicate", "heal.task.as-reassignment")
    def find_debts(self, around: Environment) -> list[tuple[PartitionKey, str, Rejected]]:
        """Return what is owed to records and tasks, of tasks the first only."""
        for kept in (self._planned, self._unrecorded, self._withdrawn):
            kept.settle()
        debts = {
            path: Rejected("heal.task.refuse-duplicate", found.reason)
            for path, found in self.misshapen.items()
        }
        state = self._see()
        while (due := find_owed(state, around, self.readings)) is not None:
            path = _find_path(state.cluster, due.write)
            debts.setdefault(path, Rejected(due.clause, due.reason))
            if not isinstance(due.write, _TO_RECORDS):
                break
            state = follow(state, due.write, self.readings)
        return [(NO_KEY, path, owed) for path, owed in debts.items()]


def _find_path(cluster: Cluster, effect: Effect) -> str:
    """Return the znode that an effect is about."""
    if isinstance(effect, _TO_RECORDS):
        return znodes.failed_broker_path(effect.broker)
    number = effect.number if isinstance(effect, RemoveTask) else cluster.tasks[0].number
    return znodes.task_path(number)


def _show_record(since: int | None) -> str:
    return "" if since is None else znodes.encode_failed_broker(since).decode()


def _show_task(task: Task | None) -> str:
    if task is None:
        return ""
    return znodes.encode_task(znodes.TaskZnode(dict(task.assignments), task.automatic)).decode()
