"""What a controller has to do in one term: what it reads, and what follows from it, in order.

An event says where to look, never what happened: what is there is read, and planned from. Work is
taken in this order: what follows from deaths and other events (`jobs`), then partitions in flight
whose state has changed, one by one, then what the planners of the profile's protocols find, and
last what clients ask of leaders and topics.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from heapq import nsmallest

from reassure_controller.context import LiveBroker
from reassure_controller.effects import (
    DeleteZnode,
    DeletionWrite,
    EndPreferred,
    Order,
    Planned,
    Recheck,
    Step,
    list_partitions,
)
from reassure_controller.elections import (
    Question,
    Shutdown,
    list_remaining,
    plan_preferred,
    plan_rebalancing,
    plan_shutdown,
)
from reassure_controller.isr_changes import AskedIsr, list_answers, plan_isr_changes
from reassure_controller.planned_job import Job
from reassure_controller.reader import ClusterReader
from reassure_controller.reassignment_steps import plan_changes, plan_failover
from reassure_controller.repairs import plan_repair, plan_telling
from reassure_controller.rules import Rules
from reassure_controller.topics import find_due_deletion, plan_deletion
from reassure_spec.znodes import (
    BROKER_IDS,
    DELETED_TOPICS,
    PREFERRED_ELECTION,
    PartitionKey,
)


class Agenda:
    """What one controller reads, and has to do, in one term."""

    def __init__(
        self,
        reader: ClusterReader,
        rules: Rules,
        clock_ms: Callable[[], int],
        at_once: int = 1,
    ) -> None:
        """Plan for a controller that carries on with so many partitions in one piece of work."""
        self._at_once = at_once
        self.reader = reader
        self.context = reader.context
        self._rules = rules
        self._clock_ms = clock_ms
        self.jobs: deque[Job] = deque()
        """What follows from events, oldest first."""

    # What is read

    def read_all(self) -> None:
        """Read everything, with every watch, at the beginning of the term."""
        self.reader.read_all()
        for planner in self._rules.planners:
            planner.read_all(self.reader)

    def read_missed(self) -> None:
        """Read everything again: what happened while the watches were gone gave no event."""
        self.take_brokers(self.reader.read_brokers())
        self.reader.make_stale()
        self._take_deletions()
        self.reader.read_preferred()
        for planner in self._rules.planners:
            planner.read_missed(self.reader)

    def read_again(self, effects: Sequence[Planned]) -> None:
        """Read everything that effects were planned from which did not get through."""
        for effect in effects:
            if isinstance(effect, DeletionWrite):
                self._take_deletions(arm=False)
                self.reader.read_topics([effect.topic])
            elif isinstance(effect, EndPreferred):
                self.reader.read_preferred(arm=False)
        self.reader.refresh(list_partitions(effects))
        for planner in self._rules.planners:
            planner.read_again(self.reader, effects)
        if any(isinstance(effect, Recheck) for effect in effects):
            self.take_brokers(self.reader.read_brokers())

    # Events

    def note(self, kind: str, path: str) -> bool:
        """Note at once that something is stale; return whether that is all about a change."""
        return self.reader.note(path) or any(
            planner.note(self.reader, kind, path) for planner in self._rules.planners
        )

    def take_event(self, path: str) -> None:
        """Read what a watch was about, and queue what follows."""
        if path == BROKER_IDS:
            self.take_brokers(self.reader.read_brokers())
        elif path == DELETED_TOPICS:
            self._take_deletions()
        elif path == PREFERRED_ELECTION:
            self.reader.read_preferred()
        for planner in self._rules.planners:
            planner.take_event(self.reader, path)

    def take_stale(self) -> bool:
        """Read the topics and settings that have changed; return whether there were any."""
        if self.reader.stale_topics:
            self._take_stale_topics()
        elif self.reader.reset_topics:
            self._take_settings()
        else:
            return False
        return True

    def take_brokers(self, now: dict[int, LiveBroker]) -> None:
        """Queue what follows from brokers that died, came, or did both between two looks."""
        before = self.context.brokers
        dead = {one for one in before if one not in now or now[one].epoch != before[one].epoch}
        new = {one for one in now if one not in before or now[one].epoch != before[one].epoch}
        self.context.known_brokers |= now.keys()
        self.context.brokers = {one: it for one, it in before.items() if one not in dead}
        self.context.stopping -= dead
        if dead:
            self.context.forget_unstarted(dead)
            self.context.states.lose(self.context, dead)
            self._queue("broker failure", lambda: self._plan_repair(self._touched(dead)))
        if new:
            self._queue("broker start", lambda: self._plan_start(new, now))

    def tell_again(self) -> None:
        """Have live brokers told of the partitions that an order did not reach them about.

        Nobody else would: a broker that only the controller cannot reach keeps its registration.
        """
        orders = self.context.take_unreached()
        if orders:
            self._queue("brokers not reached", lambda: self._plan_telling(orders))

    def take_asked(self, asked: Question, done: Callable[[], None]) -> None:
        """Queue what a broker asks; then `done`, and what it is told stands in `asked`."""
        if isinstance(asked, Shutdown):
            self._hand_over(asked, done)
        elif isinstance(asked, AskedIsr):
            self._change_isr(asked, done)

    def _hand_over(self, asked: Shutdown, done: Callable[[], None]) -> None:
        """Queue the handover of what a broker has that wants to stop."""
        broker = asked.broker
        self.context.stopping.add(broker)

        def make() -> tuple[Step, ...]:
            return plan_shutdown(self.context, broker, self._touched({broker}), self._rules)

        def end() -> None:
            asked.remaining = list_remaining(self.context, broker, self.context.partitions)
            done()

        self.jobs.append(Job(f"handover of broker {broker}", make, end))

    def _change_isr(self, asked: AskedIsr, done: Callable[[], None]) -> None:
        """Queue the in-sync sets that a broker asks for."""
        keys = [change.key for change in asked.changes]

        def make() -> tuple[Step, ...]:
            self.reader.catch_up(keys)
            return plan_isr_changes(self.context, asked, self._rules)

        def end() -> None:
            self.reader.changed.update(keys)
            asked.answers = tuple(list_answers(self.context, asked))
            done()

        self.jobs.append(Job(f"in-sync sets of broker {asked.broker}", make, end))

    def _take_deletions(self, *, arm: bool = True) -> None:
        """Read what is to be deleted; look after those again that are to stay after all."""
        stay = self.reader.read_deletions(arm=arm)
        keys = self.context.keys_of(stay)
        orders = {(one, key) for key in keys for one in self.context.partitions[key].assigned}
        if orders:
            self._queue("topics that stay", lambda: self._plan_telling(orders))

    def _take_stale_topics(self) -> None:
        """Read the topics that have changed; queue what follows from those that have grown."""
        topics, self.reader.stale_topics = self.reader.stale_topics, set()
        self.reader.read_topics(topics)
        self._bring_online(topics)

    def _bring_online(self, topics: Iterable[str]) -> None:
        """Queue the first election of partitions that never had one."""
        keys = [
            key
            for key in self.context.keys_of(topics)
            if self.context.partitions[key].state is None
        ]
        self.reader.changed.update(keys)
        if keys:
            self._queue("new partitions", lambda: self._plan_repair(self._present(keys)))

    def _take_settings(self) -> None:
        """Queue another look at what is offline in topics whose settings have changed."""
        topics, self.reader.reset_topics = self.reader.reset_topics, set()
        keys = [key for key in self.context.keys_of(topics) if self.context.is_offline(key)]
        if keys:
            self._queue("offline partitions", lambda: self._plan_repair(self._catch_up(keys)))

    def _queue(self, name: str, make: Callable[[], tuple[Step, ...]]) -> None:
        self.jobs.append(Job(name, make))

    # What is planned

    def plan_failover(self) -> tuple[Step, ...]:
        """Return the steps of a term that begins."""
        self.context.states.begin(self.context)
        self.reader.look_for_unclean(self.context.partitions)
        self.reader.changed.update(self.context.partitions)
        return plan_failover(self.context, self._rules)

    def find_job(self) -> Job | None:
        """Return what is to be done now that no event waits, None where nothing is."""
        return (
            self._find_advance()
            or self._find_rubbish()
            or self._find_notices()
            or self._find_of_planners(last=False)
            or self._find_of_topics()
            or self._find_of_planners(last=True)
        )

    def _find_advance(self) -> Job | None:
        """Carry on with the first reassignments in flight for which that may be due."""
        changed = self.reader.changed
        changed &= self.context.flying
        if not changed:
            return None
        self.reader.refresh_stale_states(changed)
        keys = nsmallest(self._at_once, changed)
        changed.difference_update(keys)
        names = ", ".join(f"{topic}-{number}" for topic, number in keys)
        return Job(f"advance of {names}", lambda: self._plan_advance(keys))

    def _find_rubbish(self) -> Job | None:
        return Job("foreign znodes", lambda: ()) if self.reader.rubbish else None

    def _find_notices(self) -> Job | None:
        """Delete what brokers before inter-broker protocol 2.7 say of in-sync sets they changed."""
        paths, self.reader.notices = sorted(self.reader.notices), set()
        paths = self.reader.list_existing(paths)
        steps = tuple(DeleteZnode(point="notification.deleted", path=path) for path in paths)
        return Job("notifications", lambda: steps) if steps else None

    def _find_of_planners(self, *, last: bool) -> Job | None:
        for planner in self._rules.planners:
            if planner.comes_last is last:
                job = planner.find_job(self.reader, self._rules, self._clock_ms)
                if job is not None:
                    return job
        return None

    def _find_of_topics(self) -> Job | None:
        """Return what clients ask of leaders and topics."""
        if plan_preferred(self.context, self._rules):
            return Job("preferred leaders", self._plan_preferred)
        if self._plan_rebalancing():
            return Job("rebalancing", self._plan_rebalancing)
        topic = find_due_deletion(self.context, self._clock_ms())
        if topic is None:
            return None
        return Job(f"deletion of {topic}", lambda: self._plan_deletion(topic))

    def _plan_advance(self, keys: list[PartitionKey]) -> tuple[Step, ...]:
        return plan_changes(self.context, self._present(keys), self._rules)

    def _plan_preferred(self) -> tuple[Step, ...]:
        asked = self.context.preferred
        if asked is not None:
            self.reader.refresh_states(asked.partitions)
        return plan_preferred(self.context, self._rules)

    def _plan_rebalancing(self) -> tuple[Step, ...]:
        if self._rules.rebalances:
            self.reader.refresh_stale_states(self.context.partitions)
        return plan_rebalancing(self.context, self._rules)

    def _plan_deletion(self, topic: str) -> tuple[Step, ...]:
        self.reader.refresh_states(self.context.keys_of([topic]))
        steps = plan_deletion(self.context, topic, self._clock_ms(), self._rules)
        if steps:
            deletion = self.context.deletions[topic]
            self.context.deletions[topic] = replace(deletion, told_ms=self._clock_ms())
        return steps

    def _plan_repair(self, keys: Iterable[PartitionKey]) -> tuple[Step, ...]:
        return plan_repair(self.context, keys, self._rules)

    def _plan_start(self, new: set[int], now: dict[int, LiveBroker]) -> tuple[Step, ...]:
        self.context.brokers |= {one: now[one] for one in new & now.keys()}
        contents = ((key, self.context.partitions[key]) for key in self._touched(new))
        orders = {(one, key) for key, content in contents for one in new & {*content.hosts}}
        return self._plan_telling(orders)

    def _plan_telling(self, orders: Collection[Order]) -> tuple[Step, ...]:
        present = {*self._catch_up({key for _, key in orders})}
        orders = [order for order in orders if order[1] in present]
        return plan_telling(self.context, orders, self._rules)

    def _present(self, keys: Iterable[PartitionKey]) -> list[PartitionKey]:
        return [key for key in keys if key in self.context.partitions]

    def _touched(self, brokers: Iterable[int]) -> list[PartitionKey]:
        """Return the partitions with a replica on one of these brokers, their states fresh."""
        wanted = set(brokers)
        keys = [
            key
            for key, content in self.context.partitions.items()
            if wanted & {*content.hosts, *(content.state.isr if content.state else ())}
        ]
        return self._catch_up(keys)

    def _catch_up(self, keys: Iterable[PartitionKey]) -> list[PartitionKey]:
        """Return those partitions that are still there, ready to have leaders elected.

        Reassignments may have waited for these: they are carried on with afterwards.
        """
        self.reader.changed.update(keys)
        self.reader.refresh_stale_states(keys)
        self.reader.look_for_unclean(keys)
        return self._present(keys)
