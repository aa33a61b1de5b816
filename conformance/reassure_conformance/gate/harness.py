"""The harness: carries out steps against an implementation and has the log judged.

One `Harness` serves one run. It owns a ZooKeeper client (it plays the Kafka client), a follower of
the server's transaction log, the adapter and the judge. Each example or story gets a fresh chroot:

    begin -> perform, perform, ... -> heal -> end

After each step everything that is not held settles, the new transactions are read and judged, and
where the cluster is quiescent the judge's obligations (what must have happened by now) fall due.
Limits apply to faults, never to healing: `heal` lets go of what is held, elects a controller where
none acts and brings brokers back, and then nothing may be left undone.

Where the time goes is counted in `clock`, by section.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from reassure_conformance.adapter import (
    CLOCK,
    ISR,
    LOG,
    MESSAGES,
    RUN,
    Adapter,
    AdapterDied,
    Description,
    KeepsMessages,
    Listens,
    Reply,
    calling,
    check_description,
    expect,
    expect_record,
)
from reassure_conformance.adapter.driver import SETTLE_TIMEOUT_S, Driver
from reassure_conformance.adapter.world import REAL, World
from reassure_conformance.gate import steps as s
from reassure_conformance.gate.actions import Actions, note_effect
from reassure_conformance.gate.events import Took
from reassure_conformance.gate.example import Done, Example
from reassure_conformance.gate.goals import count_goals, possible_with
from reassure_conformance.gate.laps import Laps
from reassure_conformance.gate.meetings import Meetings
from reassure_conformance.gate.moment import ClusterMoment, why_not
from reassure_conformance.gate.rests import NotingJudge
from reassure_conformance.gate.story import ClusterSetting, Story
from reassure_judge import live_events
from reassure_judge.live import LiveCluster
from reassure_judge.live_events import ClusterView, Looked, Received, Rested, StatesSaid, Wrote
from reassure_judge.protocols import check_driven
from reassure_judge.verdicts import Violation
from reassure_mutation.recorder import Recorder
from reassure_spec.rooms import choose_readings, gate_of
from reassure_spec.znodes import (
    DEFAULT_BROKER_CONFIG,
    REASSIGN_PARTITIONS,
    PartitionKey,
    ReplicaList,
)

SKIPPED: Final = "skipped"
PATIENCE: Final = 8
"""How often to wait for who owes something and does nothing, before that is held against it."""
MOST_BROKERS: Final = 5
"""How many brokers there are where a cluster lives for the whole run."""


class Harness:
    """One run's connection of server, implementation and judge. A context manager.

    `hosts` is "host:port", `log_dir` the directory of the server's transaction logs: without one
    only what stands in ZooKeeper at rest is judged. `home` is the chroot of an implementation that
    runs already. `alive` is called before each look at what happened, `note` before each step is
    carried out, with the story so far. With `strict` a SHOULD binds like a MUST; `known` are
    clauses and stories whose failures do not count; a cluster may take `settle_s` to come to rest,
    unless it is declared. Raises AdapterDied whenever the adapter raises, ServerGone when ZooKeeper
    does not answer.
    """

    def __init__(
        self,
        hosts: str,
        log_dir: Path | None,
        adapter: Adapter,
        *,
        home: str | None = None,
        chroot_prefix: str = "/example",
        alive: Callable[[], None] = lambda: None,
        note: Callable[[Story], None] = lambda _: None,
        strict: bool = False,
        settle_s: float = SETTLE_TIMEOUT_S,
        known: Iterable[str] = (),
        world: World = REAL,
    ) -> None:
        self.adapter = adapter
        self._home = ""
        """The chroot of the cluster that lives for the whole run, "" before it is begun."""
        self.died: AdapterDied | None = None
        """What became of the adapter when it was closed, None where it went well."""
        try:
            self.description = _shake_hands(adapter)
            profile = self.description.profile
            self.readings = choose_readings(gate_of(profile), profile, self.description.readings)
        except BaseException:
            self._close_adapter()
            raise
        self.settle_s: Final = self.description.settle_ms / 1000 or settle_s
        """How long a cluster may take to come to rest."""
        self.recorder: Final = Recorder()
        """Keeps in which states the implementation acted, rested and took over."""
        self.meetings: Final = Meetings()
        self.judge = NotingJudge(profile, self.readings, witness=self.recorder)
        self.current: Example | None = None
        """The example that was begun last."""
        self.steps = 0
        self.results: Counter[str] = Counter()
        self.reached: Counter[str] = Counter()
        """How often each coverage goal was reached that can be, by name."""
        self._goals = possible_with(self.description.capabilities, profile)
        self.unsettled: list[Story] = []
        """What had been done whenever a cluster did not come to rest though nothing was held."""
        self.not_followed: list[Violation] = []
        """Advice that was not followed, which counts against no verdict."""
        self._strict, self._alive, self._note_story = strict, alive, note
        self.laps: Final = Laps(world.monotonic)
        """How long clauses take to be put to the test."""
        self._known = frozenset(known)
        self.excused: list[tuple[str, Violation]] = []
        """The known failures that came up: clause or story, and the violation."""
        self.asides: dict[str, tuple[Violation, Example]] = {}
        """By clause the first violation that counts against no verdict, and where it came up."""
        self.driver = Driver(hosts, log_dir, chroot_prefix, home, world)
        self.actions: Final = Actions(self.driver, adapter)
        self.abilities = {*self.description.abilities, *self.driver.abilities}
        """What clauses may need of implementation and server, as far as that is known by now."""
        for transaction in self.driver.past:
            self.judge.feed(transaction)
        self._seen_violations = len(self.judge.violations)

    def __enter__(self) -> "Harness":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the adapter and the client; the server stays.

        An adapter that dies now is kept in `died`, as it must not hide what came before.
        """
        with self.driver.section("controller"):
            self._close_adapter()
        self.driver.close()

    def _close_adapter(self) -> None:
        try:
            if self._home:
                with calling("stop"):
                    self.adapter.stop()
            with calling("close"):
                self.adapter.close()
        except AdapterDied as error:
            self.died = error

    # -- an example, from begin to end

    def begin(self, brokers: ReplicaList, name: str = "example") -> Example:
        """Make a fresh chroot with the persistent paths, start brokers and a controller, settle.

        Where the cluster lives for the whole run that is done once, and topics are fresh instead.
        """
        self.current = None
        lives_on = self.description.lifetime == RUN
        chroot = self._start(tuple(range(1, MOST_BROKERS + 1)) if lives_on else brokers)
        view = self.judge.view(chroot)
        now = ClusterMoment(
            brokers=brokers,
            view=view,
            capabilities=self.description.capabilities,
            routes=self.description.routes,
            up=set(brokers),
            readings=self.readings,
            profile=self.description.profile,
            failure_interval_ms=self.description.failure_interval_ms,
        )
        live = LiveCluster(
            self.judge,
            chroot,
            whole=not lives_on and LOG in self.abilities,
            hears=MESSAGES in now.capabilities,
            has_clock=CLOCK in now.capabilities,
            failure_interval_ms=self.description.failure_interval_ms,
            partitions_per_task=self.description.partitions_per_task,
            witness=self.recorder,
        )
        story = Story(name, (), ClusterSetting(brokers))
        example = self.current = Example(story, chroot, now, live)
        if lives_on:
            example.suffix = f"-{self.driver.made:05d}"
            now.view = example.show(view)
        self._settle_and_judge(example)
        return example

    def _start(self, brokers: ReplicaList) -> str:
        """Return the chroot of a cluster that has been started with these brokers."""
        if self._home:
            self.driver.made += 1
            return self._home
        chroot = self.driver.make_cluster(profile=self.description.profile)
        if self.description.lifetime == RUN:
            self._home = chroot
        with self.driver.calling("start"):
            self.adapter.start(self.driver.hosts, chroot, brokers)
        return chroot

    def perform(self, example: Example, step: s.ClusterStep) -> Done:
        """Carry out a step, settle, and judge what happened; skip it where it is not possible."""
        example.story = example.story.with_steps((*example.story.steps, step))
        reason = "a known failure has come up" if example.excused else why_not(step, example.now)
        before = len(example.transactions)
        last = example.transactions[-1].zxid if example.transactions else 0
        if reason:
            result = SKIPPED
        else:
            self._note_story(example.story)
            chroot, held = example.chroot, example.now.held
            self.meetings.take(step, held=held, list_owed=lambda: self.judge.list_owed(chroot))
            result = self._carry_out(example, step).value
            example.history.append(Took(step, result))
            self._settle_and_judge(example, wakes=isinstance(step, s.Resume))
        count = len(example.transactions) - before
        done = Done(step, result, reason, count, last)
        example.done.append(done)
        self.results[result] += 1
        self.steps += result in ("ok", "unknown")
        return done

    def heal(self, example: Example) -> None:
        """Undo every fault that still lasts, settle, and judge that nothing is left undone.

        Behind a known failure nothing more is judged.
        """
        if example.excused:
            return
        now = example.now
        self.actions.let_go(now)
        self._settle_and_judge(example)
        if self.actions.bring_back(now):
            self._settle_and_judge(example)
        if ISR in now.capabilities and not example.violations:
            self._ask_leaders(example)
        if ISR in now.capabilities and not example.violations:
            self._ask_again(example)

    def _ask_leaders(self, example: Example) -> None:
        """Have each leader take in whom it should be able to: every live assigned replica."""
        joinable = [pair for pair in example.now.joinable() if example.now.is_to_stay(*pair)]
        for broker, key in joinable:
            self._ask(example, broker, key)
        if joinable:
            self._settle_and_judge(example)

    def _ask_again(self, example: Example) -> None:
        """Have each leader let a follower go and take it back, and refuse one not assigned.

        After a reassignment that is complete a leader who still believes in the old assignment
        takes a removed replica back, and one with an old version of the state cannot write.
        """
        leaving = {key: broker for broker, key in example.now.leavable()}
        strangers = {key: broker for broker, key in example.now.intrudable()}
        for key, broker in leaving.items():
            self._ask(example, broker, key, joins=False)
        for key, broker in strangers.items():
            with self.driver.calling("change_isr"):
                self.adapter.change_isr(broker, *example.find(key), joins=True)
        for key, broker in leaving.items():
            if example.now.is_to_stay(broker, key) and not example.violations:
                self._ask(example, broker, key)
        self._settle_and_judge(example)

    def _ask(self, example: Example, broker: int, key: PartitionKey, *, joins: bool = True) -> None:
        with self.driver.calling("change_isr"):
            reply = expect(Reply, self.adapter.change_isr(broker, *example.find(key), joins=joins))
        if reply is not Reply.UNKNOWN:
            found, partition = example.find(key), example.now.view.partitions[key]
            obeyed = reply is Reply.OK
            self._hand_over(
                example,
                live_events.ChangeAsked(found, partition, broker, joins=joins, obeyed=obeyed),
            )

    def end(self, example: Example) -> None:
        """Stop the example's brokers and controllers and forget its chroot.

        Where they live on what the example has left of faults and settings is undone instead.
        """
        with self.driver.section("judge"):
            self.reached.update(count_goals(example.history, self._goals))
        if self._home:
            if self.died is None:
                self.actions.let_go(example.now)
                self.actions.bring_back(example.now)
            self.driver.remove(self._home, [DEFAULT_BROKER_CONFIG, REASSIGN_PARTITIONS])
            return
        with self.driver.calling("stop"):
            self.adapter.stop()
        self.judge.forget(example.chroot)

    def tell(self, story: Story, look: Callable[[Example], None] = lambda _: None) -> Example:
        """Carry out a whole story, healing at its end; stop early at the first violation.

        `look` is called after the beginning, after each step, and after the healing.
        """
        example = self.begin(story.brokers, story.name)
        try:
            look(example)
            for step in story.steps:
                if example.violations:
                    break
                self.perform(example, step)
                look(example)
            if not example.violations:
                self.heal(example)
                look(example)
        finally:
            self.end(example)
        return example

    # -- the parts of a step

    def _carry_out(self, example: Example, step: s.ClusterStep) -> Reply:
        if isinstance(step, s.Cancel):
            step = s.Change(step.partition, example.now.original_of(step.partition))
        step = s.rename_topics(step, example.rename)
        if type(step) not in s.NEEDS or type(step) in s.SERVED:
            return self.actions.play_client(example, step)
        with self.driver.calling(str(step)):
            reply = self.actions.ask_adapter(step)
            expect(Reply, reply)
        if reply is not Reply.REFUSED:
            note_effect(example.now, step)
            if isinstance(step, s.ShutDown):
                view = self.judge.view(example.chroot)
                self._hand_over(example, live_events.ShutdownAsked(step.broker, view))
            elif isinstance(step, s.Die):
                self._hand_over(example, live_events.Ended(step.broker))
            elif isinstance(step, s.Tick):
                self._hand_over(example, live_events.TimePassed(step.milliseconds))
        return reply

    def _settle_and_judge(self, example: Example, *, wakes: bool = False) -> None:
        self._alive()
        now = example.now
        asked = now.acting or now.sleeper or wakes  # who wakes finds out that its term is over
        quiescent = self._settle(example) if asked else False
        if quiescent:
            now.acting = True
        late = not quiescent and now.acting and not now.held and not now.sleeper
        if late:
            example.unsettled += 1
            self.unsettled.append(example.story)
        self.read_log(example)
        if late:
            self.judge.miss_controller(example.chroot)
        if isinstance(self.adapter, KeepsMessages) and MESSAGES in now.capabilities:
            with self.driver.calling("take_messages"):
                received = [expect_record(one) for one in self.adapter.take_messages()]
            example.messages += received
            given = {name for one in received for name in one.given}
            self.abilities |= {f"{MESSAGES} with {name}" for name in given}
            for told in received:
                self._note(example, live_events.make_event(told))
        self._note_stopped(example)
        with self.driver.section("judge"):
            if quiescent:
                self._note(example, self.driver.make_rest(example.chroot, self._view(example)))
                self.judge.quiesce(example.chroot)
                if example.transactions:
                    example.quiet.append(example.transactions[-1].zxid)
            now.follow(self._view(example))
            now.owes = now.held and bool(self.judge.list_owed(example.chroot))
            now.admitted = example.live.list_admitted(now.view.partitions)
        self._collect(example)
        self._hand_over(example, Looked(self._view(example), frozenset(now.up), quiescent))
        self.laps.lap(self.judge.exercised)

    def _settle(self, example: Example) -> bool:
        """Let the cluster come to rest; answer whether it did.

        Who can only wait does so for a moment where the log says that nothing is owed, and where
        something is, again and again: on a busy machine a controller may take long to begin.
        """
        adapter, settle_s = self.adapter, self.settle_s * example.now.scale
        with self.driver.calling("settle"):
            if not isinstance(adapter, Listens) or LOG not in self.abilities:
                return expect(bool, adapter.settle(settle_s))
            rests = expect(bool, adapter.settle_soon(settle_s))
        self.read_log(example)
        if rests and not self._is_owed(example):
            return True
        for _ in range(PATIENCE):
            with self.driver.calling("settle"):
                rests = expect(bool, adapter.settle(settle_s))
            self.read_log(example)
            if not rests or not self.judge.is_owed(example.chroot):
                break
        return rests

    def _is_owed(self, example: Example) -> bool:
        """Whether a controller has anything to do by what stands there, of whatever kind."""
        chroot = example.chroot
        return (
            self.judge.is_owed(chroot) or self.driver.read(chroot, REASSIGN_PARTITIONS) is not None
        )

    def read_log(self, example: Example) -> None:
        """Feed the judge what the log shows since the last look; keep it with the example."""
        if LOG not in self.abilities:
            # Nobody saw how it came about: what stands there is all that is known.
            self.judge.forget(example.chroot)
            self.judge.load(self.driver.read_tree(example.chroot))
            return
        fresh = self.driver.read_log()
        example.transactions += fresh
        with self.driver.section("judge"):
            before = self._view(example)
            for transaction in fresh:
                losing = self.meetings.is_losing()
                owed = self.judge.list_owed(example.chroot) if losing else {}
                self.judge.feed(transaction)
                after = self._view(example)
                wrote = Wrote(transaction, before, after)
                self._note(example, wrote)
                if losing:
                    self.meetings.write(wrote, owed, self.judge.list_owed(example.chroot))
                before = after

    def _view(self, example: Example) -> ClusterView:
        """Return what ZooKeeper holds of an example."""
        return example.show(self.judge.view(example.chroot))

    def _note(self, example: Example, event: Wrote | Received | StatesSaid | Rested) -> None:
        """Add an event to the history, and hand it over to the judge."""
        example.history.append(event)
        self._hand_over(example, event)

    def _hand_over(self, example: Example, event: live_events.Event) -> None:
        """Hand an event over to the judge, and take what is found wrong.

        Once all is handed over it is judged until something counts.
        """
        if isinstance(event, Looked) and example.violations:
            return
        for found in example.live.take(event):
            for violation in found:
                self._add(example, violation)
            if isinstance(event, Looked) and example.violations:
                return

    def _note_stopped(self, example: Example) -> None:
        """Note which brokers that were to stop have done so, and what is to be deleted."""
        now = example.now
        now.deleting = example.live.deleting
        for broker in sorted(now.stopping - self.judge.view(example.chroot).live):
            now.stopping.discard(broker)
            now.up.discard(broker)
            self._hand_over(example, live_events.Ended(broker))

    def _collect(self, example: Example) -> None:
        found = self.judge.violations[self._seen_violations :]
        self._seen_violations = len(self.judge.violations)
        for violation in found:
            if violation.chroot == example.chroot:
                self._add(example, violation)

    def _add(self, example: Example, violation: Violation) -> None:
        if example.excused:
            return  # it follows from what is known, or nobody can tell
        for name in {violation.clause, example.story.name} & self._known:
            self.excused.append((name, violation))
            example.excused.append(violation)
            self.asides.setdefault(violation.clause, (violation, example))
            return
        if self._strict or violation.binds():
            example.violations.append(violation)
            return
        self.not_followed.append(violation)
        self.asides.setdefault(violation.clause, (violation, example))


def _shake_hands(adapter: Adapter) -> Description:
    """Return what an adapter says of itself. Raises AdapterDied, BadConnectable."""
    with calling("describe"):
        description = expect(Description, adapter.describe())
    check_description(adapter, description)
    check_driven(description.profile)
    return description
