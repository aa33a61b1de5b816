"""What was judged before of a partition that differs in numbers only.

The model compares the numbers of brokers and adds one to epochs, and nothing else: partitions in
which the same brokers stand in the same places are judged alike, whoever they are, and so are
those whose epochs have risen equally. So the states that a history leaves possible are brought
into a *form*: brokers are numbered in the order in which they are met, epochs and requests counted
from where the partition is now. A form and an event together lead to the same step always, and
logs are full of them: the engine judges each once (`reassure_judge.tracker`) and takes the step
from then on.

A protocol says which of its numbers are names (`NAMES`, `Rules.names`). Only steps that come to
nothing but clauses put to the test are kept. What is rejected, suspected or undecided is judged for
what it is each time, with the true numbers.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from operator import attrgetter
from typing import Any, ClassVar, Final, NamedTuple

from reassure_judge.authors import Author
from reassure_judge.doubt import CERTAIN, Doubt
from reassure_judge.history import AssignedWritten, SeenWrite, StateWritten
from reassure_judge.verdicts import Tally
from reassure_model.partition import Environment, LeaderAndIsr, Partition, Reassignment, Request

BROKER: Final = "broker"
BROKERS: Final = "brokers"
WRITER: Final = "writer"
LISTS: Final = "lists"
EPOCH: Final = "epoch"
TERM: Final = "term"
SEQUENCE: Final = "sequence"
RECORD: Final = "record"
RECORDS: Final = "records"

Names = Mapping[type, Mapping[str, str]]
"""By type of record: which fields are names, or hold some, and of what kind. Others stay."""
NAMES: Final[Names] = {
    LeaderAndIsr: {
        "leader": BROKER,
        "leader_epoch": EPOCH,
        "controller_epoch": TERM,
        "isr": BROKERS,
    },
    Reassignment: {"target": BROKERS},
    Request: {"sequence": SEQUENCE, "target": BROKERS},
    Partition: {
        "assigned": BROKERS,
        "reassignment": RECORD,
        "taken": RECORD,
        "requests": RECORDS,
        "state": RECORD,
    },
    StateWritten: {"state": RECORD, "writer": WRITER},
    AssignedWritten: {"assigned": BROKERS},
}
"""What every protocol has."""

_NOW: Final = 1 << 20
"""What the epochs of a form are counted from."""
_STRANGER: Final = 1 << 20
"""Number of one who writes and has no part in a partition."""
_MOST_BROKERS: Final = 24
"""Partitions in which there are more are judged as they are."""
_MOST_STEPS: Final = 50_000


class Form:
    """Possible states in which every number is counted from where the partition is."""

    __slots__ = ("brokers", "sequences", "states", "steps", "terms")

    def __init__(self, states: tuple[Any, ...], brokers: int, sequences: frozenset[int]) -> None:
        self.states = states
        self.brokers = brokers
        """How many there are."""
        self.sequences = sequences
        """The requests that wait."""
        self.steps: dict[tuple[Any, ...], Step | None] = {}
        """By event, author and surroundings; None where it comes to more than a step."""
        self.terms: dict[int, Step] = {}
        """Where the beginning of a term leads, by how much higher it is than the one before."""


class Stand:
    """Where one partition is: the form of its states, and what the numbers in that stand for."""

    __slots__ = ("brokers", "epoch", "form", "sequence", "term")

    def __init__(
        self, form: Form, brokers: dict[int, int], epoch: int, term: int, sequence: int | None
    ) -> None:
        self.form = form
        self.brokers = brokers
        """The number of each in the form, in order. Shared, and never changed."""
        self.epoch = epoch
        """What leader epochs are counted from."""
        self.term = term
        """What controller epochs are counted from."""
        self.sequence = sequence
        """What requests are counted from; None where none waits."""


class _Shape:
    """How a type of record is taken apart and made."""

    __slots__ = ("kinds", "names", "read")

    def __init__(self, kind: Any, names: Mapping[str, str]) -> None:
        self.names = [each.name for each in fields(kind)] if is_dataclass(kind) else kind._fields
        self.kinds = tuple(names.get(name, "") for name in self.names)
        """Of each field in order what kind of name it is, "" for what stays."""
        first = self.names[0]
        several = attrgetter(*self.names)
        self.read = several if len(self.names) > 1 else lambda record: (getattr(record, first),)
        """Returns the values of a record."""


class _Counting:
    """Counts the numbers in records from where a partition is."""

    __slots__ = ("_epoch", "_shapes", "brokers", "sequence", "sequences", "term")

    def __init__(
        self,
        shapes: Mapping[type, _Shape],
        brokers: dict[int, int],
        epoch: int,
        term: int,
        sequence: int | None,
    ) -> None:
        self._shapes = shapes
        self.brokers = brokers
        """Whoever is met is added, with the next number."""
        self._epoch = epoch
        self.term = term
        self.sequence = sequence
        self.sequences: set[int] = set()
        """All that was met, as counted."""

    def _move_broker(self, broker: int) -> int:
        # What is negative is nobody, and the model tells it from the others.
        return broker if broker < 0 else self.brokers.setdefault(broker, len(self.brokers))

    def _move_brokers(self, brokers: tuple[int, ...] | None) -> tuple[int, ...] | None:
        return None if brokers is None else tuple(map(self._move_broker, brokers))

    def _move_writer(self, broker: int) -> int:
        return _move_writer(broker, self.brokers)

    def _move_lists(self, lists: Iterable[tuple[int, ...]]) -> tuple[Any, ...]:
        return tuple(map(self._move_brokers, lists))

    def _move_epoch(self, number: int) -> int:
        return number - self._epoch

    def _move_term(self, number: int) -> int:
        return number - self.term

    def _move_sequence(self, number: int) -> int:
        if self.sequence is None:
            self.sequence = number
        self.sequences.add(number - self.sequence)
        return number - self.sequence

    def _move_records(self, records: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(map(self.move, records))

    def move(self, record: Any) -> Any:
        """Return a record with its numbers counted."""
        shape = self._shapes.get(type(record))
        if shape is None:
            return record
        parts = zip(shape.kinds, shape.read(record), strict=True)
        moves = self._moves
        return type(record)(*[moves[kind](self, value) if kind else value for kind, value in parts])

    def move_states(self, states: Iterable[Any]) -> tuple[Any, ...]:
        """Return possible states with their numbers counted."""
        return tuple(s._replace(partition=self.move(s.partition)) for s in states)

    _moves: ClassVar[Mapping[str, Callable[["_Counting", Any], Any]]] = {
        BROKER: _move_broker,
        BROKERS: _move_brokers,
        WRITER: _move_writer,
        LISTS: _move_lists,
        EPOCH: _move_epoch,
        TERM: _move_term,
        SEQUENCE: _move_sequence,
        RECORD: move,
        RECORDS: _move_records,
    }
    """By kind of name: how it is counted."""


def _move_writer(broker: int, brokers: Mapping[int, int]) -> int:
    return broker if broker < 0 else brokers.get(broker, _STRANGER)


def _is_touched(brokers: Iterable[int], doubt: Doubt) -> bool:
    """Whether what is in doubt may have to do with one of these."""
    if doubt is CERTAIN:
        return False
    if doubt.strangers or doubt.earlier:
        return True
    some = (doubt.brokers, doubt.peers, doubt.fresh, doubt.forgotten)
    return any(not each.isdisjoint(brokers) for each in some)


def _spell_state(event: Any, stand: Stand, brokers: Mapping[int, int]) -> tuple[Any, ...] | None:
    """Return the numbers of the most frequent event as counted; None where somebody is new."""
    state, writer = event
    leader = state.leader
    try:
        return (
            leader if leader < 0 else brokers[leader],
            state.leader_epoch - stand.epoch,
            state.controller_epoch - stand.term,
            *map(brokers.__getitem__, state.isr),
            writer if writer < 0 else brokers.get(writer, _STRANGER),
        )
    except KeyError:
        return None


class Tried(NamedTuple):
    """What an event led to that came to nothing but clauses put to the test."""

    states: tuple[Any, ...]
    passed: Counter[str]
    memory: dict[str, int]
    by_controller: bool
    silent: bool


Judge = Callable[[tuple[Any, ...], SeenWrite, dict[str, int]], Tried | None]
"""Judges an event in some states, with what was noticed; None where it comes to more."""


class Step:
    """Where an event leads from a form, and what it puts to the test."""

    __slots__ = (
        "by_controller",
        "form",
        "memory",
        "passed",
        "places",
        "rise",
        "silent",
        "since",
        "times",
    )

    def __init__(self, tried: Tried, after: Stand, brokers: int, memory: dict[str, int]) -> None:
        self.form = after.form
        places = tuple(after.brokers)
        self.places = None if places == tuple(range(brokers)) else places
        """Who the brokers of the form are, by their numbers before; None where they stay."""
        there = tried.states[0].partition.state is not None
        self.rise = after.epoch if there else None
        """By how much the leader epoch is higher; None where there is none."""
        self.since = after.sequence
        """How much later the lowest request came; None where none waits."""
        self.passed = tried.passed
        """By clause: how often it is put to the test."""
        self.memory = memory
        """What is noticed, counted from the lowest request before."""
        self.by_controller = tried.by_controller
        self.silent = tried.silent
        """Whether steps without a write may follow, which depend on what is in doubt."""
        self.times = 0
        """How often it was taken since that was counted last."""


class Memo:
    """The steps that were judged, for all partitions that one tally is of."""

    def __init__(self, names: Names, tally: Tally) -> None:
        self._names = names
        self._tally = tally
        self._shapes = {kind: _Shape(kind, fields) for kind, fields in names.items()}
        self._forms: dict[tuple[Any, ...], Form] = {}
        self._taught: list[Form] = []
        """The forms that steps lead from."""
        self._brokers: dict[tuple[int, ...], dict[int, int]] = {}
        self._numbers: dict[tuple[Any, ...], int] = {}
        """By what an author is to the rules, or the surroundings without their brokers."""
        self._authors: dict[int, tuple[Author, int]] = {}
        self._around: Environment | None = None
        """The surroundings of the last event, with the brokers in them and their number."""
        self._live: frozenset[int] = frozenset()
        self._around_number = 0

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave out what is known when judging is put aside: it is soon learned again."""
        return Memo, (dict(self._names), self._tally)

    # Forms ----------------------------------------------------------------------------------------

    def recognise(self, states: tuple[Any, ...], term: int) -> Stand | None:
        """Return where a partition is that may be in these states; None: too much is named."""
        state = states[0].partition.state
        epoch = 0 if state is None else state.leader_epoch - _NOW
        return self._place(states, _Counting(self._shapes, {}, epoch, term - _NOW, None), epoch)

    def _place(self, states: tuple[Any, ...], by: _Counting, epoch: int) -> Stand | None:
        moved = by.move_states(states)
        if len(by.brokers) > _MOST_BROKERS:
            return None
        form = self._forms.get(moved)
        if form is None:
            form = Form(moved, len(by.brokers), frozenset(by.sequences))
            self._forms[moved] = form
        brokers = self._share(tuple(by.brokers))
        return Stand(form, brokers, epoch, by.term, by.sequence)

    def _share(self, brokers: tuple[int, ...]) -> dict[int, int]:
        """Return the numbers of these brokers, the same ones for all who have them."""
        found = self._brokers.get(brokers)
        if found is None:
            if len(self._brokers) >= _MOST_STEPS:
                self._brokers.clear()
            found = {broker: number for number, broker in enumerate(brokers)}
            self._brokers[brokers] = found
        return found

    def restore(self, stand: Stand) -> tuple[Any, ...]:
        """Return the states with the numbers that they stand for."""
        brokers = dict(enumerate(stand.brokers))
        sequence = None if stand.sequence is None else -stand.sequence
        by = _Counting(self._shapes, brokers, -stand.epoch, -stand.term, sequence)
        return by.move_states(stand.form.states)

    # Steps ----------------------------------------------------------------------------------------

    def take(
        self, stand: Stand, seen: SeenWrite, memory: dict[str, int], judge: Judge
    ) -> Step | None:
        """Take the step that an event leads to, and answer it; None where it has to be judged."""
        around, form, brokers = seen.around, stand.form, stand.brokers
        if around is not self._around:
            self._look_around(around)
        event: Any = seen.event
        if type(event) not in self._shapes:
            return None
        known = self._authors.get(id(seen.author)) or self._look_at(seen.author)
        author = known[1]
        sequence = stand.sequence
        spelled: tuple[Any, ...] | None = None
        if type(event) is StateWritten and event.state is not None:
            spelled = _spell_state(event, stand, brokers)
        if spelled is None:
            by = self._count_from(stand)
            spelled = type(event), by.move(event)
            brokers, sequence = by.brokers, by.sequence
        there = None if self._live.issuperset(brokers) else self._tell_there(brokers)
        noticed: tuple[tuple[str, int], ...] = ()
        if memory and form.sequences and sequence is not None:
            counted = ((name, number - sequence) for name, number in memory.items())
            noticed = tuple(each for each in counted if each[1] in form.sequences)
        key = (author, self._around_number, there, noticed, spelled)
        try:
            step = form.steps[key]
        except KeyError:
            step = self._learn(stand, key, seen, judge)
        if step is None or (step.silent and _is_touched(brokers, seen.doubt)):
            return None
        step.times += 1
        if step.memory and sequence is not None:
            memory.update((name, number + sequence) for name, number in step.memory.items())
        self._go(stand, step, brokers, sequence)
        return step

    def _go(
        self, stand: Stand, step: Step, brokers: Mapping[int, int], sequence: int | None
    ) -> None:
        """Let a stand be where a step leads, with the brokers and the first request by then."""
        stand.form = step.form
        if step.places is not None:
            met = tuple(brokers)
            stand.brokers = self._share(tuple([met[place] for place in step.places]))
        stand.epoch = 0 if step.rise is None else stand.epoch + step.rise
        if sequence is not None:
            stand.sequence = None if step.since is None else sequence + step.since

    def begin_term(self, stand: Stand, term: int, fail_over: Callable[[Any], Any]) -> None:
        """Let another controller act, who remembers nothing."""
        rise = term - _NOW - stand.term
        form = stand.form
        step = form.terms.get(rise)
        if step is None:
            states = tuple(dict.fromkeys(map(fail_over, form.states)))
            after = self.recognise(states, _NOW + rise)
            assert after is not None  # nobody is met who was not there before
            tried = Tried(states, Counter(), {}, by_controller=False, silent=False)
            step = form.terms[rise] = Step(tried, after, form.brokers, {})
        self._go(stand, step, stand.brokers, stand.sequence)
        stand.term += rise

    def _count_from(self, stand: Stand) -> _Counting:
        brokers = dict(stand.brokers)
        return _Counting(self._shapes, brokers, stand.epoch, stand.term, stand.sequence)

    def _look_at(self, author: Author) -> tuple[Author, int]:
        """Return an author with a number for what he is to the rules, whoever that is."""
        if len(self._authors) >= _MOST_STEPS:
            self._authors.clear()
        known = (author.office, author.fenced, author.is_client, *author[4:])
        number = self._numbers.setdefault(known, len(self._numbers))
        found = self._authors[id(author)] = (author, number)
        return found

    def _look_around(self, around: Environment) -> None:
        """Note the surroundings, and a number for what is in them beside brokers."""
        self._around, self._live = around, around.live
        nobody = frozenset[int]()
        known = (replace(around, live=nobody, known=nobody, controller_epoch=_NOW),)
        self._around_number = self._numbers.setdefault(known, len(self._numbers))

    def _tell_there(self, brokers: Iterable[int]) -> tuple[tuple[bool, bool], ...]:
        """Say of each broker whether it is registered, and known."""
        assert self._around is not None
        known = self._around.known
        return tuple([(broker in self._live, broker in known) for broker in brokers])

    def _learn(
        self, stand: Stand, key: tuple[Any, ...], seen: SeenWrite, judge: Judge
    ) -> Step | None:
        """Judge an event in the states of a form, and remember what comes of it."""
        if len(self._tally.steps) >= _MOST_STEPS:
            self._forget()
        form, by = stand.form, self._count_from(stand)
        event, around, brokers = by.move(seen.event), seen.around, by.brokers
        live = frozenset(n for broker, n in brokers.items() if broker in around.live)
        known = frozenset(n for broker, n in brokers.items() if broker in around.known)
        around = replace(around, live=live, known=known, controller_epoch=_NOW)
        noticed = dict(key[3])
        alike = seen._replace(event=event, around=around, doubt=CERTAIN)
        tried = judge(form.states, alike, dict(noticed))
        step = None
        if tried is not None:
            after = self.recognise(tried.states, _NOW)
            if after is not None:
                changed = {k: v for k, v in tried.memory.items() if noticed.get(k) != v}
                step = Step(tried, after, form.brokers, changed)
                self._tally.steps.append(step)
        if not form.steps:
            self._taught.append(form)
        form.steps[key] = step
        return step

    def _forget(self) -> None:
        """Begin anew, so that no history however long needs more memory."""
        self._tally.count_steps()
        self._tally.steps.clear()
        for form in self._taught:
            form.steps.clear()
        for form in self._forms.values():
            form.terms.clear()
        self._taught.clear()
        self._forms.clear()
