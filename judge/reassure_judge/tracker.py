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

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from reassure_judge.doubt import CERTAIN, Views
from reassure_judge.hidden import UNHEARD, find_never_shown, find_shown
from reassure_judge.history import BrokerGone, Forbidden, Handled, SeenWrite, Unreadable
from reassure_judge.incidents import Wound
from reassure_judge.memo import Memo, Stand, Tried
from reassure_judge.moments import ACTS, DISTURBED, RESTS, SUCCEEDS, Place, Witness
from reassure_judge.rules import Rules, find_fresh
from reassure_judge.suspicion import ACT, Suspicion, Suspicions
from reassure_judge.verdicts import Location, Tally, Violation
from reassure_model.controllers import ACTING
from reassure_model.machine import Due
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Environment
from reassure_spec.clauses import clause

MOST_STATES: Final = 64
"""How many states are kept. Where a history leaves more possible, whatever the partition is judged
by from then on is unknown."""
_BAD: Final = (Unreadable, Forbidden)
_Asked = tuple[Any, Accepted[Any] | Rejected]
"""A possible state, and what comes of a write there."""


class PartitionTracker:
    """Follows one partition through its history."""

    def __init__(
        self,
        rules: Rules[Any, Any],
        tally: Tally,
        memo: Memo | None = None,
        witness: Witness | None = None,
    ) -> None:
        self.rules = rules
        self._witness = witness
        """Where there is one there is no memo, which passes over states that it knows."""
        self._memo = memo
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
        self.wound = Wound(tally)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is put aside: the states with their true numbers, for forms stay behind."""
        kept = self.__dict__.copy()
        if self._stand is not None:
            assert self._memo is not None
            kept |= {"_states": self._memo.restore(self._stand), "_stand": None}
        return kept

    @property
    def states(self) -> tuple[Any, ...]:
        """What the history leaves possible, the likeliest first.

        All states hold the same znodes, requests excepted that were withdrawn.
        """
        if self._stand is not None:
            assert self._memo is not None
            self._states, self._stand = self._memo.restore(self._stand), None
        return self._states

    @states.setter
    def states(self, states: tuple[Any, ...]) -> None:
        self._states, self._stand = states, None

    @property
    def partition(self) -> Any:
        """The likeliest state of the model."""
        return self.states[0].partition

    def feed(self, seen: SeenWrite) -> None:
        """Judge one observation and take it over."""
        # Most events lead to a step that is known; first comes whatever rules that out.
        memo, term = self._memo, seen.around.controller_epoch
        if (
            memo is None
            or self.wound.is_open
            or self.suspicions.open
            or self.overflowed
            or seen.given
            or self._is_view_kept(seen)
        ):
            self._feed(seen)
            return
        if term != self._epoch:
            self._begin_term(term)
        stand = self._stand or memo.recognise(self._states, term)
        step = None if stand is None else memo.take(stand, seen, self._memory, self._try)
        if step is None:
            self._feed(seen)
            return
        self._stand = stand
        if step.by_controller:
            self._owed_reported = ""

    def _try(
        self, states: tuple[Any, ...], seen: SeenWrite, memory: dict[str, int]
    ) -> Tried | None:
        """Judge an observation in other states; None where it comes to more than a step."""
        tally = Tally()
        other = PartitionTracker(self.rules, tally)
        other.states, other._epoch, other._memory = states, seen.around.controller_epoch, memory
        other._owed_reported = owed = "anything"
        other._feed(seen)
        found = tally.violations or tally.undecided or other.suspicions.open
        if found or other.overflowed or other.follow_ups or other.wound.is_open:
            return None
        after = other.states
        silent = len(after) > 1 or self.rules.is_silent(after[0])
        return Tried(after, tally.exercised, memory, other._owed_reported != owed, silent)

    def _feed(self, seen: SeenWrite) -> None:
        if seen.around.controller_epoch != self._epoch:
            self._note(SUCCEEDS, seen[:3], seen.around)
            self._begin_term(seen.around.controller_epoch)
        event = seen.event
        if isinstance(event, _BAD):
            said = "znode.well-formed" if isinstance(event, Unreadable) else event.clause
            if isinstance(event, Forbidden) and event.unless:
                self.tally.leave_open((said,), seen.place, event.unless)
            else:
                self._violate(seen, Rejected(said, event.reason), "")
            return
        if isinstance(event, Handled):
            broken = self._find_broken_at_rest()
            if broken is not None:
                place = seen.place._replace(zxid=event.since.zxid)
                found = self._describe_rest(place, seen.around, event.since.time_ms, broken, None)
                self.wound.report(replace(found, seen_zxid=seen.zxid))
            return
        if self.suspicions.open:
            if isinstance(event, BrokerGone):
                self.suspicions.clear(event.broker, seen.zxid, orderly=event.orderly)
                return
            self.suspicions.look(seen.zxid, seen.time_ms)
        rules = self.rules
        write = None if seen.given else rules.find_write(self.states[0], seen)
        acts = write is not None and not isinstance(write, rules.leaders)
        self._note(ACTS if acts else DISTURBED, seen[:3], seen.around)
        if write is None:
            self._keep(after for state in self.states for after in rules.take_over(state, seen))
        else:
            self._judge(seen, write)
        states = self.states
        if len(states) > 1 or rules.is_silent(states[0]):
            after = self._take_silent_steps(seen)
            if after is not states:
                self._keep(after)

    def _note(self, kind: str, place: Place, around: Environment) -> None:
        """Tell the witness, if there is one; nobody takes over where nobody was."""
        if self._witness is not None and (kind != SUCCEEDS or self._epoch is not None):
            self._witness.note(kind, place, self.states, around)

    def _begin_term(self, epoch: int) -> None:
        """Note that another controller acts, who remembers nothing."""
        stand, memo, fail_over = self._stand, self._memo, self.rules.fail_over
        if self._epoch is not None and memo is not None and stand is not None:
            memo.begin_term(stand, epoch, fail_over)
        elif self._epoch is not None:
            self.states = tuple(dict.fromkeys(map(fail_over, self.states)))
        self._epoch = epoch

    @clause("controller.write.by-controller", "controller.write.epoch-checked")
    def _judge(self, seen: SeenWrite, write: Any) -> None:
        blamed: tuple[Rejected, ...] = ()
        if not isinstance(write, self.rules.leaders):
            author, tally = seen.author, self.tally
            blamed = author.broken
            tally.passed[author.tested] += 1
            if author.undecided:
                tally.leave_open(author.undecided, seen.place)
            self._owed_reported = ""
        states = self.states
        if len(states) == 1 and not self.overflowed and not blamed:
            state = states[0]
            outcome = self.rules.accept(state, write, seen.around)
            if isinstance(outcome, Accepted) and not self._is_view_kept(seen):
                self._notice(write)
                self.states = (self.rules.follow(state, outcome.state, write),)
                self._count(seen, write, state.partition, outcome.clauses)
                return
        self._judge_all(seen, write, blamed)

    def _is_view_kept(self, seen: SeenWrite) -> bool:
        """Whether what becomes of the partition depends on what the author saw of the environment.

        So it does only where effects come before the record of what asks for them.
        """
        return self._keeps_views and seen.doubt is not CERTAIN

    def _judge_all(self, seen: SeenWrite, write: Any, blamed: tuple[Rejected, ...]) -> None:
        """Map every state, in every view where that matters.

        `blamed` is what the write breaks by its author, whatever it says.
        """
        before = self.partition
        if seen.doubt.disks or seen.doubt.returned:
            seen = self._take_shown(seen, write)
        outcomes = self._ask(write, seen.around)
        rejected = [outcome for _, outcome in outcomes if isinstance(outcome, Rejected)]
        accepted = [outcome for _, outcome in outcomes if isinstance(outcome, Accepted)]
        found = self._settle(write, outcomes)
        complete, facts = True, list[str]()
        if not accepted or self._is_view_kept(seen):
            views = self._list_views(seen, write)
            complete = views.complete
            for state in self.states:
                found += self._look(seen, state, write, views)
            facts += [UNHEARD] if found and not accepted else []
        for fact in () if accepted else find_never_shown(seen.around, seen.doubt):
            more = self._settle(write, self._ask(write, fact.around))
            facts += [fact.name] if more else []
            found += more
        sure = not found and complete and not self.overflowed
        settled = complete and not accepted and not self.overflowed and not blamed
        suspected = settled and (sure or self.rules.suspects_first)
        if suspected and self._suspect(seen, write, rejected[0], facts, doubtful=not sure):
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
        is_bound = self.rules.is_bound
        unsure = {o.clause for s, o in outcomes if isinstance(o, Rejected) and is_bound(s)}
        if self.overflowed:
            unsure.update(c for outcome in accepted for c in outcome.clauses)
        self.tally.leave_open(unsure, seen.place, facts)
        if not found:
            self._adopt(write)
            return
        self._notice(write)
        self._keep(found)
        tested = [c for c in accepted[0].clauses if c not in unsure] if accepted else []
        for outcome in accepted[1:]:
            tested = [c for c in tested if c in outcome.clauses]
        self._count(seen, write, before, tuple(tested))

    def _suspect(
        self, seen: SeenWrite, write: Any, broken: Rejected, facts: Sequence[str], *, doubtful: bool
    ) -> bool:
        """Whether a write that is allowed by no state may be part of a controlled shutdown."""
        before, rules = self.states[0].partition, self.rules
        for stopping in rules.list_stopping(self.states[0], write, seen.around):
            around = replace(seen.around, stopping=stopping)
            for each in (around, *self._list_shown(seen, write, around)):
                outcomes = self._ask(write, each)
                found = self._settle(write, outcomes)
                if not found:
                    continue
                violation = self._make_violation(seen, broken, rules.describe(write))
                suspicion = Suspicion(stopping, seen.time_ms, violation, doubtful, tuple(facts))
                self.suspicions.add(suspicion)
                self._keep(found)
                tested = next(o.clauses for _, o in outcomes if isinstance(o, Accepted))
                self._count(seen, write, before, tuple(c for c in tested if c != ACT))
                return True
        return False

    def _take_shown(self, seen: SeenWrite, write: Any) -> SeenWrite:
        """Return what was seen with what the log shows elsewhere, where only that allows it."""
        outcomes = self._ask(write, seen.around)
        rejected = [outcome for _, outcome in outcomes if isinstance(outcome, Rejected)]
        if len(rejected) == len(outcomes):
            for fact in find_shown(seen.around, seen.doubt, self._list_named(write)):
                if self._settle(write, self._ask(write, fact.around)):
                    self.tally.explained[rejected[0].clause, fact.name] += 1
                    return seen._replace(around=fact.around)
        return seen

    def _list_shown(self, seen: SeenWrite, write: Any, view: Environment) -> list[Environment]:
        """Return a view with what the log shows elsewhere."""
        named = self._list_named(write)
        return [fact.around for fact in find_shown(view, seen.doubt, named)]

    def _look(self, seen: SeenWrite, state: Any, write: Any, views: Views) -> list[Any]:
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

    def _ask(self, write: Any, around: Environment) -> list[_Asked]:
        """Return what the rules say of a write, by possible state."""
        return [(state, self.rules.accept(state, write, around)) for state in self.states]

    def _settle(self, write: Any, outcomes: Iterable[_Asked]) -> list[Any]:
        """Return the states after the write, where it was accepted."""
        return [
            self.rules.follow(state, outcome.state, write)
            for state, outcome in outcomes
            if isinstance(outcome, Accepted)
        ]

    def _list_views(self, seen: SeenWrite, write: Any) -> Views:
        by_leader = isinstance(write, self.rules.leaders)
        return Views(seen.around, seen.doubt, self._list_named(write), by_leader=by_leader)

    def _list_named(self, write: Any) -> frozenset[int]:
        return frozenset[int]().union(*(self.rules.list_named(s, write) for s in self.states))

    def _take_silent_steps(self, seen: SeenWrite) -> tuple[Any, ...]:
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

    def _count(self, seen: SeenWrite, write: Any, before: Any, clauses: tuple[str, ...]) -> None:
        """Count what an accepted write put to the test, and look at what is always true."""
        passed = self.tally.passed
        passed[clauses] += 1
        passed[self.rules.count_besides(write)] += 1
        after = self.states[0].partition
        for _, find in self.rules.always:
            if find(after) is not None:
                fresh = find_fresh(self.rules.always, before, after)
                if fresh:
                    self._violate(seen, fresh[0], self.rules.describe(write), fresh[1:])
                    self.wound.standing |= self.rules.list_faults(after)
                break
        if self.wound.is_open:
            self.wound.look(self.rules.list_faults(after))

    def _reject(self, seen: SeenWrite, write: Any, broken: list[Rejected]) -> None:
        """Report a write for what it breaks, the worst first, and take over what was written."""
        before, after = self.partition, self.rules.adopt(self.partition, write)
        faults = self.rules.list_faults(after)
        old = {clause_id for clause_id, _ in faults & self.rules.list_faults(before)}
        told = [rejected for rejected in broken if rejected.clause not in old]
        if len(told) < len(broken):
            told += self._look_past(seen, write, old)
        clauses = {rejected.clause for rejected in broken}
        told += [r for r in find_fresh(self.rules.always, before, after) if r.clause not in clauses]
        if told:
            self._violate(seen, told[0], self.rules.describe(write), told[1:])
        else:
            self.follow_ups += 1
        self.wound.standing = faults
        self._adopt(write)

    def _look_past(self, seen: SeenWrite, write: Any, old: set[str]) -> list[Rejected]:
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
        if isinstance(write, self.rules.noticed):
            self.tally.count(self.rules.notice(self.states[0], write, self._memory))

    @clause("znode.well-formed")
    def _violate(
        self, seen: SeenWrite, rejected: Rejected, after: str, besides: Sequence[Rejected] = ()
    ) -> None:
        self.wound.report(self._make_violation(seen, rejected, after, besides))

    def _make_violation(
        self, seen: SeenWrite, rejected: Rejected, after: str, besides: Sequence[Rejected] = ()
    ) -> Violation:
        before = self.rules.describe_before(self.partition, seen.event)
        expected = self._describe_owed(seen.around)
        return seen.violate(rejected, before, after, expected, (each.clause for each in besides))

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
        self, place: Location, around: Environment, untouched: frozenset[str], time_ms: int = 0
    ) -> None:
        """Judge what must be true when the controller has nothing left to do.

        The place is the last transaction before that, at no znode. Nobody rests who owes.
        """
        if around.controller_epoch != self._epoch:
            self._note(SUCCEEDS, place[1:4], around)
            self._begin_term(around.controller_epoch)
        self._note(RESTS, place[1:4], around)
        self.suspicions.rest(place.zxid)
        rules = self.rules
        due = [rules.find_owed(state.partition, around) for state in self.states]
        owed = [each for each in due if each is not None]
        broken = self._find_broken_at_rest()
        if len(owed) < len(due) or self.overflowed:
            each = tuple(zip(self.states, due, strict=True))
            unsure = {d.clause for state, d in each if d is not None and rules.is_bound(state)}
            self.tally.leave_open(unsure, place)
            self.states = tuple(state for state, d in each if d is None) or self.states
            owed = []
        if owed and owed[0].clause != self._owed_reported:
            broken = rules.find_debt(self.partition, owed[0], untouched)
        self._owed_reported = owed[0].clause if owed else ""
        for clause_id in rules.list_kept(self.partition):
            self.tally.count((clause_id,))
        if broken is not None:
            due_now = owed[0] if owed else None
            self.wound.report(self._describe_rest(place, around, time_ms, broken, due_now))

    def _describe_rest(
        self, place: Location, around: Environment, time: int, found: Rejected, due: Due[Any] | None
    ) -> Violation:
        """Return what is wrong, or owed, when the controller has nothing left to do."""
        path, before = self.rules.describe_resting(self.partition, *place[2:4], due)
        place, expected = place._replace(path=path), self._describe_owed(around)
        return Violation.unwritten(place, found, expected, before, time)

    def _find_broken_at_rest(self) -> Rejected | None:
        """Find what is wrong at rest and was not reported; count what is not."""
        broken: Rejected | None = None
        for invariant in self.rules.judgement.invariants:
            reason = invariant.find(self.partition)
            if reason is None:
                self.tally.count((invariant.clause,))
            elif (invariant.clause, reason) not in self.wound.standing:
                broken = broken or Rejected(invariant.clause, reason)
                self.wound.standing |= {(invariant.clause, reason)}
        return broken
