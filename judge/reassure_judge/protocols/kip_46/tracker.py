"""The records of failed brokers and the tasks of one cluster, and how their writers are judged."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from reassure_judge.cross_partition import NO_KEY, CrossPartitionTracker, Earlier, QueueWritten
from reassure_judge.history import Event
from reassure_judge.protocols.kip_46.router import (
    FailureWritten,
    MinimumSeen,
    Misshapen,
    MisshapenGone,
    RackSeen,
    TaskWritten,
)
from reassure_judge.verdicts import Tally
from reassure_model.outcome import Rejected
from reassure_model.partition import Environment, Partition
from reassure_model.protocols.kip_46 import Cluster, Hosted, Task, compute_plan, find_running
from reassure_model.protocols.kip_46.writes import (
    Judged,
    find_left,
    find_record_debts,
    find_replaced,
    find_senseless,
    find_task_debt,
    host,
    is_refused,
    judge_choice,
    judge_generated,
    judge_record,
    judge_record_removal,
    judge_start,
    judge_task_removal,
)
from reassure_spec import znodes
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import PartitionKey, ReplicaList


class HealingTracker(CrossPartitionTracker):
    """Follows the records of failures and the tasks of one cluster."""

    def __init__(self, readings: Readings, tally: Tally) -> None:
        super().__init__(readings, tally)
        self.racks: dict[int, str | None] = {}
        self.failed: dict[int, int] = {}
        """By broker: the time in the record of its failure, in ms."""
        self.tasks: dict[int, Task] = {}
        self.misshapen: dict[str, Misshapen] = {}
        self._hosted: dict[PartitionKey, Hosted] = {}
        self._placed: dict[int, set[PartitionKey]] = {}
        """By broker with a record: the partitions for which a task was made since."""
        self._minimums: dict[str, int | None] = {}
        """By topic: `min.insync.replicas`, "" for the default; None where the topic says none."""
        self._started: set[int] = set()
        """Tasks that were started."""
        self._foreign: set[int] = set()
        """Requests that somebody else than a controller made."""
        self._recorded_epoch: dict[int, int | None] = {}
        """By broker with a record: the term in which it was written."""
        self._planned: Earlier[PartitionKey, ReplicaList] = Earlier()
        """What partitions were assigned, or were to be, until lately; () before they were made."""
        self._unrecorded: Earlier[int, int] = Earlier()
        """Records that there were until lately."""
        self._withdrawn: Earlier[int, Task] = Earlier()
        """Tasks that there were until lately."""
        self._generated: Counter[int] = Counter()
        """By broker: how often it was chosen since the last record was removed."""

    def begin_term(self) -> None:
        """Note that another controller acts, who generates anew."""
        self._generated.clear()

    # What there is --------------------------------------------------------------------------------

    def make_cluster(self, around: Environment) -> Cluster:
        """Return the cluster as ZooKeeper holds it."""
        return Cluster(
            tuple(sorted(self.racks.items())),
            around.live,
            tuple(hosted for _, hosted in sorted(self._hosted.items())),
            failed=tuple(sorted(self.failed.items())),
            tasks=tuple(task for _, task in sorted(self.tasks.items())),
        )

    def _iterate_views(self) -> Iterator[Cluster]:
        """Yield the cluster as it is, then as whoever writes may have seen its brokers."""
        cluster, doubtful = self.make_cluster(self.seen.around), self.seen.doubt.brokers
        yield cluster
        if doubtful:
            live = cluster.live
            yield from (replace(cluster, live=each) for each in (live | doubtful, live - doubtful))

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
        before = self.failed.get(broker)
        self.shown = (_show_record(before), _show_record(since))
        if not self.seen.given:
            self.blame(NO_KEY)
            views: list[Judged]
            if since is not None:
                live, doubtful = self.seen.around.live, self.seen.doubt.brokers
                lives = (live, live - doubtful) if broker in doubtful else (live,)
                views = [judge_record(broker, before, since, each) for each in lives]
            else:
                placed, readings = self._placed.get(broker, set()), self.readings
                # Whoever removes it may not have noticed what came to the broker lately.
                fresh = {k for k in self._planned.names() if self._planned.get(k, event.noticed_ms)}
                views = [
                    judge_record_removal(cluster, broker, keys, readings)
                    for keys in (placed, *([placed | fresh] if fresh else ()))
                    for cluster in self._iterate_views()
                ]
            self.settle(NO_KEY, views)
        if since is None:
            if before is not None:
                self._unrecorded.note(broker, before, self.seen.time_ms)
            for kept in (self.failed, self._placed, self._recorded_epoch):
                kept.pop(broker, None)
            self._generated.clear()
        elif before is None:
            self.failed[broker] = since
            self._recorded_epoch[broker] = None if self.seen.given else self.epoch
            self._placed[broker] = set()
        else:
            self.failed[broker] = since

    @clause("heal.record.format", "heal.generate.persisted")
    def _on_misshapen(self, event: Misshapen) -> None:
        by_client = self.seen.given or self.seen.author.is_client
        if event.clause == "heal.record.format" or not by_client:
            self.violate(NO_KEY, Rejected(event.clause, event.reason))
        else:
            self.misshapen[self.seen.path] = event

    # Tasks ----------------------------------------------------------------------------------------

    def _on_task(self, event: TaskWritten) -> None:
        before, task = self.tasks.get(event.number), event.task
        self.shown = (_show_task(before), _show_task(task))
        if not self.seen.given:
            theirs = [each for each in (before, task) if each is not None and each.automatic]
            if theirs or not self.seen.author.is_client:
                self.blame(NO_KEY)
            if not self.seen.author.is_client:
                if before is not None:
                    self._judge_removal(before)
                if task is not None:
                    self._judge_creation(task, event.noticed_ms)
        if before is not None:
            self._withdrawn.note(event.number, before, self.seen.time_ms)
            self._started.discard(event.number)
            del self.tasks[event.number]
        if task is not None:
            cluster = self.make_cluster(self.seen.around)
            if task.automatic:
                self._note_placed(cluster, task)
            if self.seen.author.is_client:
                self._note_plan(cluster, task, self.seen.time_ms)
            self.tasks[event.number] = task

    def _note_plan(self, cluster: Cluster, task: Task, time_ms: int) -> None:
        """Note what was planned before an operator's task, which a controller may not know yet."""
        plan = compute_plan(cluster)
        for key, _ in task.assignments:
            if key in plan:
                self._planned.note(key, plan[key], time_ms)

    def _note_placed(self, cluster: Cluster, task: Task) -> None:
        """Note whom a generated task replaces in which partitions."""
        plan = compute_plan(cluster)
        for key, target in task.assignments:
            hosted = self._hosted.get(key)
            before = {*plan.get(key, ()), *(() if hosted is None else hosted.assigned)}
            for broker in (before - set(target)) & self._placed.keys():
                self._placed[broker].add(key)

    def _judge_removal(self, task: Task) -> None:
        clusters = list(self._iterate_views())
        clusters += self._forget_requests(clusters, self.requests)
        started = task.number in self._started
        views = [
            judge_task_removal(
                cluster,
                task,
                self.readings,
                refused=self._is_refused(cluster, task, self.seen.around),
                started=started,
            )
            for cluster in clusters
        ]
        self.settle(NO_KEY, views)

    def _forget_requests(
        self, clusters: Iterable[Cluster], unnoticed: Collection[int]
    ) -> list[Cluster]:
        """Return the clusters as who writes may see them that has not noticed these requests."""
        unasked = {
            key: host(key, replace(partition, requests=known))
            for key, partition in self.partitions.items()
            if (known := tuple(r for r in partition.requests if r.sequence not in unnoticed))
            != partition.requests
        }
        return [
            replace(each, partitions=tuple(unasked.get(h.key) or h for h in each.partitions))
            for each in (clusters if unasked else ())
        ]

    def _is_refused(self, cluster: Cluster, task: Task, around: Environment) -> bool:
        if find_running(cluster) == task:
            return False

        def get_around(key: PartitionKey) -> Environment:
            default = self._minimums.get("") or around.min_insync_replicas
            least = self._minimums.get(key[0]) or default
            return replace(around, min_insync_replicas=least)

        return is_refused(find_left(cluster, task), self.partitions, get_around, self.readings)

    @clause("heal.generate.persisted", "heal.failover.generated-again")
    def _judge_creation(self, task: Task, noticed_ms: float) -> None:
        broken = Rejected("heal.generate.persisted", "it does not say that it was generated")
        self.settle(NO_KEY, (("heal.generate.persisted",) if task.automatic else broken,))
        for key, target in task.assignments:
            self._judge_target(key, target, noticed_ms)

    def _list_bases(
        self, cluster: Cluster, key: PartitionKey, noticed_ms: float
    ) -> tuple[list[ReplicaList], list[ReplicaList]]:
        """Return what a task may be made from, as things are and as they were lately."""
        hosted = self._hosted.get(key)
        if hosted is None:
            return [], self._planned.get(key, noticed_ms)
        plan = compute_plan(cluster)[key]
        from_plan = self.readings.heal_regenerate == "from-plan"
        now = [plan] if from_plan else [hosted.assigned, plan]
        older = [replicas for _, replicas in self._list_older(key, noticed_ms)]
        return now, [*now, *older, *self._planned.get(key, noticed_ms)]

    def _list_older(
        self, key: PartitionKey, noticed_ms: float
    ) -> Iterator[tuple[PartitionKey, ReplicaList]]:
        """Yield what tasks that were there lately asked for a partition."""
        for number in self._withdrawn.names():
            for task in self._withdrawn.get(number, noticed_ms):
                yield from (each for each in task.assignments if each[0] == key)

    @clause("heal.failover.generated-again")
    def _judge_target(self, key: PartitionKey, target: ReplicaList, noticed_ms: float) -> None:
        clusters, recorded = list(self._iterate_views()), self.failed.keys()
        lately = {b for b in self._unrecorded.names() if self._unrecorded.get(b, noticed_ms)}
        bases, older = self._list_bases(clusters[0], key, noticed_ms)
        views = [judge_generated(clusters[0], key, target, bases, recorded, self.readings)]
        views += [
            judge_generated(each, key, target, older, recorded | lately, self.readings)
            for each in clusters
        ]
        sure = self.settle(key, views)
        found = find_replaced(target, bases, recorded)
        if found is None:
            return
        base, places = found
        for place in places:
            epoch = self._recorded_epoch.get(base[place], self.epoch)
            if epoch != self.epoch:
                self.count(("heal.failover.generated-again",))
            certain = sure and len(clusters) == 1 and not lately and len(places) == 1
            if certain and not self._planned.has_any(noticed_ms):
                self._judge_choice(key, base, place, target, clusters[0])
            self._generated[target[place]] += 1

    def _judge_choice(
        self,
        key: PartitionKey,
        base: ReplicaList,
        place: int,
        target: ReplicaList,
        cluster: Cluster,
    ) -> None:
        """Judge who was chosen, however replicas were counted."""
        planned = _count(compute_plan(cluster).values())
        assigned = _count(hosted.assigned for hosted in self._hosted.values())
        loads = (assigned + self._generated, planned)
        verdict = judge_choice(cluster, base, base[place], target[place], loads)
        self.settle(key, (verdict,))

    @clause("heal.task.as-reassignment")
    def _on_start(self, asked: Mapping[PartitionKey, ReplicaList], noticed_ms: float) -> None:
        self.shown = ("", ", ".join(f"{t}-{n} to {list(to)}" for (t, n), to in asked.items()))
        self.blame(NO_KEY)
        clusters = list(self._iterate_views())
        older = {
            number: task
            for number in self._withdrawn.names()
            for task in self._withdrawn.get(number, noticed_ms)
        }
        if older:
            tasks = tuple(task for _, task in sorted({**older, **self.tasks}.items()))
            clusters += [replace(cluster, tasks=tasks) for cluster in clusters]
            clusters += [replace(clusters[0], tasks=(task,)) for task in older.values()]
        # What it asked for itself a controller knows of, though no answer says so.
        clusters += self._forget_requests(clusters, self._foreign)
        views = [judge_start(cluster, asked, self.readings) for cluster in clusters]
        if self.settle(NO_KEY, views):
            self._started |= set(sorted(self.tasks)[:1])

    # At rest --------------------------------------------------------------------------------------

    @clause("heal.task.refuse-duplicate", "heal.task.as-reassignment")
    def find_debts(self, around: Environment) -> list[tuple[PartitionKey, str, Rejected]]:
        """Return what is owed to records and tasks."""
        for kept in (self._planned, self._unrecorded, self._withdrawn):
            kept.settle()
        cluster = self.make_cluster(around)
        debts = [
            (NO_KEY, znodes.failed_broker_path(broker), owed)
            for broker, owed in find_record_debts(cluster, self._placed, self.readings)
        ]
        for path, found in self.misshapen.items():
            debts.append((NO_KEY, path, Rejected("heal.task.refuse-duplicate", found.reason)))
        due = find_task_debt(cluster, self.readings)
        if due is not None:
            task, owed = due
            if find_senseless(task) is None and self._is_refused(cluster, task, around):
                owed = Rejected("heal.task.as-reassignment", "its reassignments are refused")
            debts.append((NO_KEY, znodes.task_path(task.number), owed))
        return debts


def _count(lists: Iterable[ReplicaList]) -> Counter[int]:
    """Return how many replicas each broker has."""
    return Counter(replica for replicas in lists for replica in replicas)


def _show_record(since: int | None) -> str:
    return "" if since is None else znodes.encode_failed_broker(since).decode()


def _show_task(task: Task | None) -> str:
    if task is None:
        return ""
    return znodes.encode_task(znodes.TaskZnode(dict(task.assignments), task.automatic)).decode()
