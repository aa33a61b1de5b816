"""One partition's judge: asks the model of every write whether it could have happened.

The tracker keeps every state that the history leaves possible (`reassure_judge.possible`), nearly
always one. A write maps the set. Where a broker or a setting is in doubt (`reassure_judge.doubt`)
its author may have acted on another view of the environment.

* A write that is allowed from every state, as things are, puts its clauses to the test.
* One that is allowed from some states or in some view only leaves *undecided* the clauses that
  reject it otherwise.
* One that is rejected from every state in every view is a violation.

After a violation the tracker takes over what was really written, with everything that its author
may take to be the case, and judges on from there: what is rejected then is a violation of its own.
A *follow-up* is only what was wrong already and still is: the same clause, for the same culprit.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from reassure_judge.alike import Recall, Stand, Tried
from reassure_judge.doubt import CERTAIN, Views
from reassure_judge.hidden import UNHEARD, find_never_shown, find_shown
from reassure_judge.history import (
    BadMended,
    BadRequestRemoved,
    BadRequestSeen,
    BrokerGone,
    BrokerRegistered,
    ControllerGone,
    ElectionSeen,
    Forbidden,
    Handled,
    Observation,
    Unreadable,
)
from reassure_judge.rules import Fault, Find, Rules
from reassure_judge.suspicion import ACT, Suspicion, Suspicions
from reassure_judge.verdicts import Place, Tally, Violation
from reassure_model.controllers import ACTING, Controllership, find_vacancy
from reassure_model.lives import find_broken_registration
from reassure_model.machine import Due
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Environment
from reassure_spec.clauses import clause
from reassure_spec.znodes import CONTROLLER

MOST_STATES: Final = 64
"""How many states are kept. Where a history leaves more possible, whatever the partition is judged
by from then on is unknown."""
_BAD: Final = (Unreadable, Forbidden)


def _locate(seen: Observation) -> Place:
    return Place(seen.zxid, seen.chroot, seen.topic, seen.partition, seen.path)


def _find_fresh(always: Iterable[tuple[str, Find]], before: Any, after: Any) -> list[Rejected]:
    """Find what is always true, and is not any more, or for another reason than before."""
    found = []
    for clause_id, find in always:
        reason = find(after)
        if reason is not None and find(before) != reason:
            found.append(Rejected(clause_id, reason))
    return found


class PartitionTracker:
    """Follows one partition through its history."""

    def __init__(self, rules: Rules[Any, Any], tally: Tally, recall: Recall | None = None) -> None:
        self.rules = rules
        self._recall = recall
        """The steps that are known; None where each event is judged for itself."""
        self._states: tuple[Any, ...] = (rules.begin(),)
        self._stand: Stand | None = None
        """The states as a form; where there is one, it counts."""
        self.tally = tally
        self.suspicions = Suspicions(tally)
        self.follow_ups = 0
        """Rejected writes that are wrong only in what was wrong already."""
        self.overflowed = False
        """Whether there were more possible states than are kept: all that follows is unknown."""
        self._epoch: int | None = None
        self._owed_reported = ""
        """The clause of what was owed at the last rest, and was reported."""
        self._memory: dict[str, int] = {}
        """What the rules noticed (`Rules.notice`)."""
        self._keeps_views = rules.is_view_kept
        self._always = rules.always
        self._leaders = rules.leaders
        self._noticed = rules.noticed
        self._standing: frozenset[Fault] = frozenset()
        """What is wrong since a violation that was reported."""

    def __getstate__(self) -> dict[str, Any]:
        """Return what is put aside: the states with their true numbers, for forms stay behind."""
        kept = self.__dict__.copy()
        if self._stand is not None:
            assert self._recall is not None
            kept |= {"_states": self._recall.restore(self._stand), "_stand": None}
        return kept

    @property
    def states(self) -> tuple[Any, ...]:
        """What the history leaves possible, the likeliest first.

        All states hold the same znodes, requests excepted that were withdrawn.
        """
        if self._stand is not None:
            assert self._recall is not None
            self._states, self._stand = self._recall.restore(self._stand), None
        return self._states

    @states.setter
    def states(self, states: tuple[Any, ...]) -> None:
        self._states, self._stand = states, None

    @property
    def partition(self) -> Any:
        """The likeliest state of the model."""
        return self.states[0].partition

    def feed(self, seen: Observation) -> None:
        """Judge one observation and take it over."""
        # Most events lead to a step that is known; first comes whatever rules that out.
        recall, term = self._recall, seen.around.controller_epoch
        if (
            recall is None
            or self._standing
            or self.suspicions.open
            or self.overflowed
            or seen.given
            or (self._keeps_views and seen.doubt is not CERTAIN)
        ):
            self._feed(seen)
            return
        if term != self._epoch:
            self._begin_term(term)
        stand = self._stand or recall.recognise(self._states, term)
        step = None if stand is None else recall.take(stand, seen, self._memory, self._try)
        if step is None:
            self._feed(seen)
            return
        self._stand = stand
        if step.by_controller:
            self._owed_reported = ""

    def _try(
        self, states: tuple[Any, ...], seen: Observation, memory: dict[str, int]
    ) -> Tried | None:
        """Judge an observation in other states; None where it comes to more than a step."""
        tally = Tally()
        other = PartitionTracker(self.rules, tally)
        other.states, other._epoch, other._memory = states, seen.around.controller_epoch, memory
        other._owed_reported = owed = "anything"
        other._feed(seen)
        found = tally.violations or tally.undecided or other.suspicions.open
        if found or other.overflowed or other.follow_ups or other._standing:
            return None
        after = other.states
        silent = len(after) > 1 or self.rules.is_silent(after[0])
        return Tried(after, tally.exercised, memory, other._owed_reported != owed, silent)

    def _feed(self, seen: Observation) -> None:
        if seen.around.controller_epoch != self._epoch:
            self._begin_term(seen.around.controller_epoch)
        event = seen.event
        if isinstance(event, _BAD):
            said = "znode.well-formed" if isinstance(event, Unreadable) else event.clause
            self._violate(seen, Rejected(said, event.reason), "")
            return
        if isinstance(event, Handled):
            broken = self._find_broken_at_rest()
            if broken is not None:
                place = _locate(seen)._replace(zxid=event.since.zxid)
                found = self._describe_rest(place, seen.around, event.since.time_ms, broken, None)
                self.tally.violations.append(replace(found, seen_zxid=seen.zxid))
            return
        if self.suspicions.open:
            if isinstance(event, BrokerGone):
                self.suspicions.clear(event.broker, seen.zxid, orderly=event.orderly)
                return
            self.suspicions.look(seen.zxid, seen.time_ms)
        rules = self.rules
        write = None if seen.given else rules.find_write(self.states[0], seen)
        if write is None:
            self._keep(after for state in self.states for after in rules.take_over(state, seen))
        else:
            self._judge(seen, write)
        states = self.states
        if len(states) > 1 or rules.is_silent(states[0]):
            after = self._take_silent_steps(seen)
            if after is not states:
                self._keep(after)

    def _begin_term(self, epoch: int) -> None:
        """Note that another controller acts, who remembers nothing."""
        stand, recall, fail_over = self._stand, self._recall, self.rules.fail_over
        if self._epoch is not None and (
            recall is None or stand is None or not recall.begin_term(stand, epoch, fail_over)
        ):
            self.states = tuple(dict.fromkeys(map(fail_over, self.states)))
        self._epoch = epoch

    @clause("controller.write.by-controller", "controller.write.epoch-checked")
    def _judge(self, seen: Observation, write: Any) -> None:
        blamed: tuple[Rejected, ...] = ()
        if not isinstance(write, self._leaders):
            author, tally = seen.author, self.tally
            blamed = author.broken
            tally.passed[author.tested] += 1
            if author.undecided:
                tally.leave_open(author.undecided, _locate(seen))
            self._owed_reported = ""
        states = self.states
        if len(states) == 1 and not self.overflowed and not blamed:
            state = states[0]
            outcome = self.rules.accept(state, write, seen.around)
            sure = seen.doubt is CERTAIN or not self._is_view_kept(seen)
            if sure and isinstance(outcome, Accepted):
                if isinstance(write, self._noticed):
                    self._notice(write)
                self.states = (self.rules.follow(state, outcome.state, write),)
                self._count(seen, write, state.partition, outcome.clauses)
                return
        self._judge_all(seen, write, blamed)

    def _is_view_kept(self, seen: Observation) -> bool:
        """Whether what becomes of the partition depends on what the author saw of the environment.

        So it does only where effects come before the record of what asks for them.
        """
        return seen.doubt is not CERTAIN and self.rules.is_view_kept

    def _judge_all(self, seen: Observation, write: Any, blamed: tuple[Rejected, ...]) -> None:
        """Map every state, in every view where that matters.

        `blamed` is what the write breaks by its author, whatever it says.
        """
        before, states = self.states[0].partition, self.states
        if seen.doubt.disks or seen.doubt.returned:
            seen = self._take_shown(seen, write)
        outcomes = [self.rules.accept(state, write, seen.around) for state in states]
        rejected = [outcome for outcome in outcomes if isinstance(outcome, Rejected)]
        accepted = [outcome for outcome in outcomes if isinstance(outcome, Accepted)]
        found = self._settle(write, zip(states, outcomes, strict=True))
        complete, facts = True, list[str]()
        if not accepted or self._is_view_kept(seen):
            views = self._list_views(seen, write)
            complete = views.complete
            for state in states:
                found += self._look(seen, state, write, views)
            facts += [UNHEARD] if found and not accepted else []
        for fact in () if accepted else find_never_shown(seen.around, seen.doubt):
            more = self._settle_in(write, fact.around)
            facts += [fact.name] if more else []
            found += more
        sure = not found and complete and not self.overflowed
        settled = complete and not accepted and not self.overflowed and not blamed
        suspected = settled and (sure or self.rules.suspects_first)
        if suspected and self._suspect(seen, write, rejected[0], tuple(facts), doubtful=not sure):
            return
        if sure or blamed:
            shape = rejected[:1] if sure else []
            first = self.rules.shape_first
            self._reject(seen, write, [*shape, *blamed] if first else [*blamed, *shape])
            # What somebody else wrote changes nothing in the controller's mind.
            if found:
                others = () if seen.author.office == ACTING else self.states
                self._keep((*found, *others))
            return
        # A request that was withdrawn can be forgotten at any time, so nobody is bound by it.
        bound = zip(states, outcomes, strict=True)
        unsure = {o.clause for s, o in bound if isinstance(o, Rejected) and self.rules.is_bound(s)}
        if self.overflowed:
            unsure.update(c for outcome in accepted for c in outcome.clauses)
        self.tally.leave_open(unsure, _locate(seen), facts)
        if not found:
            self._adopt(write)
            return
        if isinstance(write, self._noticed):
            self._notice(write)
        self._keep(found)
        tested = [c for c in accepted[0].clauses if c not in unsure] if accepted else []
        for outcome in accepted[1:]:
            tested = [c for c in tested if c in outcome.clauses]
        self._count(seen, write, before, tuple(tested))

    def _suspect(
        self,
        seen: Observation,
        write: Any,
        rejected: Rejected,
        facts: tuple[str, ...],
        *,
        doubtful: bool,
    ) -> bool:
        """Whether a write that is allowed by no state may be part of a controlled shutdown."""
        before, rules = self.states[0].partition, self.rules
        for stopping in rules.list_stopping(self.states[0], write, seen.around):
            around = replace(seen.around, stopping=stopping)
            for each in (around, *self._list_shown(seen, write, around)):
                outcomes = [rules.accept(state, write, each) for state in self.states]
                found = self._settle(write, zip(self.states, outcomes, strict=True))
                if not found:
                    continue
                violation = self._make_violation(seen, rejected, rules.describe(write))
                suspicion = Suspicion(stopping, seen.time_ms, violation, doubtful, facts)
                self.suspicions.add(suspicion)
                self._keep(found)
                tested = next(o.clauses for o in outcomes if isinstance(o, Accepted))
                self._count(seen, write, before, tuple(c for c in tested if c != ACT))
                return True
        return False

    def _take_shown(self, seen: Observation, write: Any) -> Observation:
        """Return what was seen with what the log shows elsewhere, where only that allows it."""
        outcomes = [self.rules.accept(state, write, seen.around) for state in self.states]
        rejected = [outcome for outcome in outcomes if isinstance(outcome, Rejected)]
        named = self._list_named(write)
        for fact in find_shown(seen.around, seen.doubt, named) if rejected == outcomes else ():
            if self._settle_in(write, fact.around):
                self.tally.explained[rejected[0].clause, fact.name] += 1
                return seen._replace(around=fact.around)
        return seen

    def _list_shown(
        self, seen: Observation, write: Any, around: Environment
    ) -> Iterator[Environment]:
        """Yield a view with what the log shows elsewhere."""
        for fact in find_shown(around, seen.doubt, self._list_named(write)):
            yield fact.around

    def _look(self, seen: Observation, state: Any, write: Any, views: Views) -> list[Any]:
        """Return what a write leads to from one state, in the first view that allows it or all."""
        found: list[Any] = []
        every = self._is_view_kept(seen)
        for view in views:
            for around in (view, *self._list_shown(seen, write, view)):
                outcome = self.rules.accept(state, write, around)
                found += self._settle(write, [(state, outcome)])
                if found and not every:
                    return found
        return found

    def _settle_in(self, write: Any, around: Environment) -> list[Any]:
        """Return the states after the write, where it is accepted in this environment."""
        outcomes = [(state, self.rules.accept(state, write, around)) for state in self.states]
        return self._settle(write, outcomes)

    def _settle(
        self, write: Any, outcomes: Iterable[tuple[Any, Accepted[Any] | Rejected]]
    ) -> list[Any]:
        """Return the states after the write, where it was accepted."""
        return [
            self.rules.follow(state, outcome.state, write)
            for state, outcome in outcomes
            if isinstance(outcome, Accepted)
        ]

    def _list_views(self, seen: Observation, write: Any) -> Views:
        by_leader = isinstance(write, self._leaders)
        return Views(seen.around, seen.doubt, self._list_named(write), by_leader=by_leader)

    def _list_named(self, write: Any) -> frozenset[int]:
        return frozenset[int]().union(*(self.rules.list_named(s, write) for s in self.states))

    def _take_silent_steps(self, seen: Observation) -> tuple[Any, ...]:
        """Return the states with all that steps without a write lead to, under any view."""
        views: tuple[Environment, ...] = (seen.around,)
        if seen.doubt is not CERTAIN:
            named = self.rules.list_wanted(self.states)
            if named is not None:
                views += tuple(Views(seen.around, seen.doubt, named, by_leader=False))
        found = self.states
        waiting = list(found)
        while waiting:
            for after in self.rules.take_silent_steps(waiting.pop(), views):
                if after not in found:
                    found = (*found, after)
                    waiting.append(after)
        return found

    def _keep(self, states: Iterable[Any]) -> None:
        """Take these states for the possible ones, each once, and no more than are kept."""
        found = tuple(states)
        if len(found) > 1:
            found = tuple(dict.fromkeys(found))
        if len(found) > MOST_STATES:
            self.overflowed = True
        self.states = found[:MOST_STATES]

    def _count(self, seen: Observation, write: Any, before: Any, clauses: tuple[str, ...]) -> None:
        """Count what an accepted write put to the test, and look at what is always true."""
        passed = self.tally.passed
        passed[clauses] += 1
        passed[self.rules.count_besides(write)] += 1
        after = self.states[0].partition
        for _, find in self._always:
            if find(after) is not None:
                fresh = _find_fresh(self._always, before, after)
                if fresh:
                    self._violate(seen, fresh[0], self.rules.describe(write), fresh[1:])
                    self._standing |= self.rules.list_faults(after)
                break
        if self._standing:
            self._standing &= self.rules.list_faults(after)

    def _reject(self, seen: Observation, write: Any, broken: list[Rejected]) -> None:
        """Report a write for what it breaks, the worst first, and take over what was written."""
        before, after = self.partition, self.rules.adopt(self.partition, write)
        faults = self.rules.list_faults(after)
        old = {clause_id for clause_id, _ in faults & self.rules.list_faults(before)}
        told = [rejected for rejected in broken if rejected.clause not in old]
        if len(told) < len(broken):
            told += self._look_past(seen, write, old)
        clauses = {rejected.clause for rejected in broken}
        told += [r for r in _find_fresh(self._always, before, after) if r.clause not in clauses]
        if told:
            self._violate(seen, told[0], self.rules.describe(write), told[1:])
        else:
            self.follow_ups += 1
        self._standing = faults
        self._adopt(write)

    def _look_past(self, seen: Observation, write: Any, old: set[str]) -> list[Rejected]:
        """Return what a write breaks besides what was broken already."""
        views = (seen.around, *self._list_views(seen, write))
        first: list[Rejected] = []
        for state in self.states:
            partition, mended = self.rules.look_past(state.partition, write)
            for around in views:
                outcome = self.rules.accept(state._replace(partition=partition), mended, around)
                if isinstance(outcome, Accepted) or outcome.clause in old:
                    return []
                first = first or [outcome]
        return first

    def _adopt(self, write: Any) -> None:
        """Take over a write that is not allowed, with all that its author may have in mind."""
        self._keep(p for state in self.states for p in self.rules.believe(state, write))

    def _notice(self, write: Any) -> None:
        """Count what a write puts to the test by what came before it."""
        for clause_id in self.rules.notice(self.states[0], write, self._memory):
            self.tally.count((clause_id,))

    @clause("znode.well-formed")
    def _violate(
        self, seen: Observation, rejected: Rejected, after: str, besides: Sequence[Rejected] = ()
    ) -> None:
        self.tally.violations.append(self._make_violation(seen, rejected, after, besides))

    def _make_violation(
        self, seen: Observation, rejected: Rejected, after: str, besides: Sequence[Rejected] = ()
    ) -> Violation:
        return Violation(
            zxid=seen.zxid,
            chroot=seen.chroot,
            topic=seen.topic,
            partition=seen.partition,
            clause=rejected.clause,
            path=seen.path,
            session=seen.session,
            before=self.rules.describe_before(self.partition, seen.event),
            after=after,
            reason=rejected.reason,
            expected=self._describe_owed(seen.around),
            author=seen.author.describe(),
            time_ms=seen.time_ms,
            besides=tuple(each.clause for each in besides),
        )

    def describe_due(self, around: Environment) -> str:
        """Return what a controller has to write next, in words; "" where nothing is owed."""
        if not self.rules.exists(self.partition):
            return ""
        owed = self.rules.find_owed(self.partition, around)
        return "" if owed is None else f"{self.rules.describe(owed.write)} ({owed.clause})"

    def _describe_owed(self, around: Environment) -> str:
        if not self.rules.exists(self.partition):
            return "nothing: the partition does not exist"
        return self.describe_due(around) or "no write at all: nothing was owed"

    def rest(
        self,
        chroot: str,
        topic: str,
        number: int,
        zxid: int,
        around: Environment,
        untouched: frozenset[str],
        time_ms: int = 0,
    ) -> None:
        """Judge what must be true when the controller has nothing left to do.

        A state from which something is owed is none that a controller rests in.
        """
        if around.controller_epoch != self._epoch:
            self._begin_term(around.controller_epoch)
        self.suspicions.rest(zxid)
        rules = self.rules
        due = [rules.find_owed(state.partition, around) for state in self.states]
        owed = [each for each in due if each is not None]
        broken = self._find_broken_at_rest()
        if len(owed) < len(due) or self.overflowed:
            bound = zip(self.states, due, strict=True)
            unsure = {each.clause for s, each in bound if each is not None and rules.is_bound(s)}
            self.tally.leave_open(unsure, Place(zxid, chroot, topic, number, ""))
            if len(owed) < len(due):
                resting = zip(self.states, due, strict=True)
                self.states = tuple(state for state, each in resting if each is None)
            owed = []
        if owed and owed[0].clause != self._owed_reported:
            broken = rules.find_debt(self.partition, owed[0], untouched)
        self._owed_reported = owed[0].clause if owed else ""
        for clause_id in rules.list_kept(self.partition):
            self.tally.count((clause_id,))
        if broken is not None:
            place = Place(zxid, chroot, topic, number, "")
            due_now = owed[0] if owed else None
            found = self._describe_rest(place, around, time_ms, broken, due_now)
            self.tally.violations.append(found)

    def _describe_rest(
        self,
        place: Place,
        around: Environment,
        time_ms: int,
        broken: Rejected,
        owed: Due[Any] | None,
    ) -> Violation:
        """Return what is wrong, or owed, when the controller has nothing left to do."""
        where = place.topic, place.partition
        path, before = self.rules.describe_resting(self.partition, *where, owed)
        place, expected = place._replace(path=path), self._describe_owed(around)
        return Violation.unwritten(place, broken, expected, before, time_ms)

    def _find_broken_at_rest(self) -> Rejected | None:
        """Find what is wrong at rest and was not reported; count what is not."""
        broken: Rejected | None = None
        for invariant in self.rules.judgement.invariants:
            reason = invariant.find(self.partition)
            if reason is None:
                self.tally.count((invariant.clause,))
            elif (invariant.clause, reason) not in self._standing:
                broken = broken or Rejected(invariant.clause, reason)
                self._standing |= {(invariant.clause, reason)}
        return broken


class ClusterTracker:
    """Follows what concerns a cluster as a whole: elections, and what is none of ours."""

    def __init__(self, rules: Rules[Any, Any], tally: Tally) -> None:
        self.rules = rules
        self.controllership = Controllership()
        self.tally = tally
        self.bad: dict[str, BadRequestSeen] = {}
        self.book = rules.make_book(tally)
        self._met = False
        """Whether a controller or a broker was seen: not where only some topics are judged."""
        self._reported: set[str] = set()
        self._vacancy: Rejected | None = None
        """What was owed by those who could be elected when it was looked at last, and reported."""

    def feed(self, seen: Observation) -> None:
        """Judge one observation and take it over."""
        match seen.event:
            case ControllerGone():
                self.controllership = replace(self.controllership, broker=None)
            case ElectionSeen():
                self._met = True
                self._on_election(seen, seen.event)
            case BrokerRegistered(ephemeral):
                self._met = True
                broken = find_broken_registration(ephemeral=ephemeral)
                if broken is None:
                    self.tally.count(("broker.registered-ephemeral",))
                else:
                    self._violate(seen, broken.clause, broken.reason)
            case BadRequestSeen():
                self.bad[seen.path] = seen.event
            case BadRequestRemoved():
                found = self.bad.pop(seen.path)
                self._on_removal(seen, found)
            case BadMended():
                self.bad.pop(seen.path, None)
            case Forbidden(clause_id, reason):
                self._violate(seen, clause_id, reason)
            case Unreadable(reason):
                self._violate(seen, "znode.well-formed", reason)
        if self.book is not None:
            self.book.feed(seen)

    def _on_election(self, seen: Observation, election: ElectionSeen) -> None:
        before = self.controllership
        self.controllership = Controllership(election.broker, election.epoch)
        if find_vacancy(before) and not find_vacancy(self.controllership):
            self.tally.count(("controller.election.held",))
        # A history that begins in the middle does not say which epoch came before.
        if seen.given or (before.epoch == 0 and seen.doubt.strangers):
            return
        outcome = self.rules.accept_election(before, election)
        if isinstance(outcome, Rejected):
            self._violate(seen, outcome.clause, outcome.reason)
            return
        for clause_id in outcome.clauses:
            self.tally.count((clause_id,))

    @clause("controller.write.by-controller", "controller.write.epoch-checked")
    def _on_removal(self, seen: Observation, found: BadRequestSeen) -> None:
        """Judge who removed what cannot be used; its maker may do so as well."""
        author = seen.author
        if author.is_client and not author.fenced:
            return
        self.tally.count((found.clause, *author.tested))
        self.tally.leave_open(author.undecided, _locate(seen))
        for rejected in author.broken:
            self._violate(seen, rejected.clause, rejected.reason)

    def is_owed(self, around: Environment) -> bool:
        """Whether what must be gone is there still, or what must be there is not."""
        if self.bad or find_vacancy(self.controllership) is not None:
            return True
        return self.book is not None and bool(self.book.find_debts(around))

    def rest(
        self,
        chroot: str,
        zxid: int,
        around: Environment,
        untouched: frozenset[str],
        time_ms: int = 0,
    ) -> None:
        """Judge what must be gone, and what must be there, when nothing is left to do."""
        self.miss_controller(chroot, zxid, time_ms)
        if self.book is not None:
            self.book.rest(chroot, zxid, around, time_ms)
        for kept in self.rules.kept_at_rest if self._met else ():
            self.tally.count((kept,))
        for path, found in self.bad.items():
            if path in self._reported:
                continue
            self._reported.add(path)
            unseen = path in untouched
            broken = self.rules.find_leftover(found.clause, path, found.reason, untouched=unseen)
            expected = "the znode is removed with a warning, nothing else changes"
            self.tally.violations.append(
                Violation.unwritten(
                    Place(zxid, chroot, "", -1, path), broken, expected, time_ms=time_ms
                )
            )

    @clause("controller.election.held")
    def miss_controller(self, chroot: str, zxid: int, time_ms: int = 0) -> None:
        """Judge that somebody is elected, as whoever could be has had the time."""
        before, self._vacancy = self._vacancy, find_vacancy(self.controllership)
        if self._vacancy is not None and before is None:
            place = Place(zxid, chroot, "", -1, CONTROLLER)
            expected = "a controller is elected"
            self.tally.violations.append(
                Violation.unwritten(place, self._vacancy, expected, time_ms=time_ms)
            )

    def _violate(self, seen: Observation, clause_id: str, reason: str) -> None:
        self.tally.violations.append(
            Violation(
                zxid=seen.zxid,
                chroot=seen.chroot,
                topic="",
                partition=-1,
                clause=clause_id,
                path=seen.path,
                session=seen.session,
                before=f"epoch {seen.around.controller_epoch}",
                after=str(seen.event),
                reason=reason,
                expected="see the clause",
                author=seen.author.describe(),
                time_ms=seen.time_ms,
            )
        )
