"""The judge of observations: sound histories hold, each planted fault is named at its line."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from observed_walks import Telling, Walk, tell_term, tell_walk

from reassure_judge.protocols import get_observing
from reassure_judge.protocols.kafka_4485.contents import Log, count_common
from reassure_judge.protocols.kafka_4485.lags import Past
from reassure_judge.protocols.kafka_4485.needs import NEEDS, UNJUDGED
from reassure_judge.verdicts import Tally, binds
from reassure_model.protocols import kafka_4485 as lag
from reassure_model.protocols.kafka_4485 import invariants, replication
from reassure_spec.clauses import clauses_of_profile
from reassure_spec.observations import (
    KINDS,
    NOBODY,
    Answer,
    Evaluate,
    Fetch,
    Follow,
    IsrWrite,
    Lead,
    Observation,
    Replica,
    Restored,
    Serve,
    Stopped,
    Stored,
    Writer,
    name_kind,
)
from reassure_spec.readings import Readings, get_profile, override_readings

AMENDED = get_profile("kip-236-amended")
TIMED = override_readings(AMENDED, {"hw.over-stored-isr": "no"})
Lines = list[Any]
"""Observations; what each says is of the kind that it was looked up by."""


def renumber(lines: Lines) -> Lines:
    """Return the lines of one writer with nothing missing."""
    return [line._replace(sequence=number) for number, line in enumerate(lines)]


def judge(
    lines: Lines, readings: Readings, torn: tuple[str, ...] = (), *, is_over: bool = True
) -> Tally:
    """Return what the judge finds in lines of one file."""
    judging = get_observing().make_judge(readings)
    for number, line in enumerate(lines, 1):
        judging.feed(line, "told", number)
    for writer in torn:
        judging.tear(writer)
    return judging.finish(is_over=is_over)


def find_broken(tally: Tally) -> list[tuple[str, int]]:
    """Return the clauses that bind and are broken, with the lines, what follows from them too."""
    return [
        (clause, violation.line)
        for violation in tally.violations
        if violation.binds()
        for clause in (violation.clause, *violation.besides)
    ]


def walk(seed: int, readings: Readings = AMENDED, steps: int = 60) -> Walk:
    """Return a walk through the machine."""
    random = Random(seed)
    return tell_walk(random, readings, random.choice((2, 3, 4)), random.randint(steps // 2, steps))


# Sound histories --------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32), order=st.integers(0, 2**32))
@settings(max_examples=80, deadline=None)
def test_walks_of_the_machine_hold(seed: int, order: int) -> None:
    """Whatever the machine does with all amendments is sound, in any order of the writers."""
    tally = judge(walk(seed).telling.shuffle(Random(order)), AMENDED)
    assert find_broken(tally) == []
    assert not tally.undecided


TERMS = [
    TIMED,
    Readings(),
    Readings(lag_credit="last-fetch"),
    Readings(lag_initial="now-if-in-sync", lag_initial_leader_end="leader-end"),
    Readings(isr_members="memoryless"),
]


@pytest.mark.parametrize("readings", TERMS)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_terms_by_the_clock_hold(readings: Readings, seed: int) -> None:
    """What the model's leader concludes from times is sound under each reading of lag."""
    random = Random(seed)
    told = tell_term(random, readings, random.choice((2, 3, 4)), 80)
    tally = judge(told.shuffle(random), readings)
    assert find_broken(tally) == []
    assert not tally.undecided


@pytest.mark.clause("log.committed-kept")
def test_as_written_the_judge_finds_what_the_model_finds() -> None:
    """Of walks without amendments a lost record is found exactly where the model's invariant is."""
    lost = 0
    for seed in range(300):
        readings = Readings()
        told = Loss(seed, readings)
        found = [line for line in find_broken(judge(told.lines, readings)) if line[0] == LOST]
        assert bool(found) == told.is_lost, seed
        lost += told.is_lost
    assert 5 <= lost < 290


LOST = "log.committed-kept"


class Loss:
    """A walk, and whether the model says at an election that a record was lost."""

    def __init__(self, seed: int, readings: Readings) -> None:
        random = Random(seed)
        self.is_lost = False
        step = replication.step

        def watch(
            state: replication.Replication, action: replication.Action, chosen: Readings
        ) -> replication.Outcome:
            outcome = step(state, action, chosen)
            if isinstance(action, replication.Elect) and hasattr(outcome, "state"):
                self.is_lost |= invariants.find_committed_lost(outcome.state) is not None
            return outcome

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("observed_walks.step", watch)
            told = tell_walk(random, readings, 3, 80, is_prompt=False)
        self.lines = told.telling.shuffle(random)


@given(seed=st.integers(0, 2**32), order=st.integers(0, 2**32))
@settings(max_examples=80, deadline=None)
def test_what_is_missing_blames_nobody(seed: int, order: int) -> None:
    """Of a sound history any lines may be missing: nothing is called broken for that."""
    random = Random(order)
    told = walk(seed) if random.random() < 0.7 else None
    readings = AMENDED if told else TIMED
    telling = told.telling if told else tell_term(random, TIMED, 3, 60)
    share = random.choice((0.02, 0.2, 0.6))
    kept = [line for line in telling.shuffle(random) if random.random() > share]
    assert find_broken(judge(kept, readings, is_over=False)) == []


@given(seed=st.integers(0, 2**32), order=st.integers(0, 2**32))
@settings(max_examples=80, deadline=None)
def test_what_is_not_told_blames_nobody(seed: int, order: int) -> None:
    """A writer may leave out any kinds, where it does not claim to tell them all."""
    random = Random(order)
    timed = random.random() < 0.4
    telling = tell_term(random, TIMED, 3, 60) if timed else walk(seed).telling
    left_out = frozenset(kind for kind in KINDS if kind != "writer" and random.random() < 0.3)
    share = random.choice((0.5, 1.0))
    for writer, lines in telling.lines.items():
        tells = tuple(kind for kind in KINDS if kind not in left_out)
        kept = [
            line._replace(what=Writer(tells)) if isinstance(line.what, Writer) else line
            for line in lines
            if name_kind(line.what) not in left_out or random.random() > share
        ]
        telling.lines[writer] = renumber(kept)
    found = judge(telling.shuffle(random), TIMED if timed else AMENDED)
    assert find_broken(found) == []


@given(seed=st.integers(0, 2**32), order=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_killed_writers_blame_nobody(seed: int, order: int) -> None:
    """Writers may end anywhere, with a line that was not finished."""
    random, told = Random(order), walk(seed).telling
    torn = [writer for writer in told.lines if random.random() < 0.5]
    for writer in torn:
        lines = told.lines[writer]
        told.lines[writer] = lines[: random.randint(1, len(lines))]
    assert find_broken(judge(told.shuffle(random), AMENDED, tuple(torn))) == []


def test_every_clause_of_the_profile_is_judged_or_says_why_not() -> None:
    """Each clause has lines that put it to the test, or a reason why there can be none."""
    ids = [clause.id for clause in clauses_of_profile("kafka-4485")]
    assert sorted([*NEEDS, *UNJUDGED]) == sorted(ids)


def test_sound_histories_put_every_judged_clause_to_the_test() -> None:
    """No clause that is said to be judged is never judged."""
    exercised = set()
    for seed in range(25):
        exercised |= set(judge(walk(seed).telling.shuffle(Random(seed)), AMENDED).exercised)
        told = tell_term(Random(seed), TIMED, 3, 120)
        exercised |= set(judge(told.shuffle(Random(seed)), TIMED).exercised)
    exercised |= set(judge(stopped(*RETURNS), AMENDED).exercised)
    exercised |= set(judge(begun_again(1), AMENDED).exercised)
    assert exercised == set(NEEDS)


# Planted faults ---------------------------------------------------------------------------------


class Planted(NamedTuple):
    """A fault in a history."""

    clause: str
    writer: str
    at: int
    """Index of the line that breaks the clause, among the writer's."""


Plant = Callable[[dict[str, Lines], Random], Planted | None]


def places(told: Mapping[str, Lines], kind: type) -> list[tuple[str, int]]:
    """Return where lines of a kind stand."""
    return [
        (writer, at)
        for writer, lines in told.items()
        for at, line in enumerate(lines)
        if isinstance(line.what, kind)
    ]


def before(lines: Lines, at: int, kind: type) -> Any:
    """Return the last line of a kind before one, in the same term."""
    epoch = lines[at].leader_epoch
    found = [x for x in lines[:at] if isinstance(x.what, kind) and x.leader_epoch == epoch]
    return found[-1] if found else None


def after(lines: Lines, at: int, kind: type) -> int | None:
    """Return where the next line of a kind stands, in the same term."""
    epoch = lines[at].leader_epoch
    rest = range(at + 1, len(lines))
    found = (n for n in rest if isinstance(lines[n].what, kind) and lines[n].leader_epoch == epoch)
    return next(found, None)


def plant_at(kind: type, clause: str, edit: Callable[[Lines, int], int | None]) -> Plant:
    """Return a fault in a line of a kind; the edit answers which line shows it, None for none."""

    def plant(told: dict[str, Lines], random: Random) -> Planted | None:
        found = places(told, kind)
        random.shuffle(found)
        for writer, at in found:
            shown = edit(told[writer], at)
            if shown is not None:
                return Planted(clause, writer, shown)
        return None

    return plant


def change(kind: type, clause: str, make: Callable[..., object], **how: Any) -> Plant:
    """Return a fault that edits what one line says, or the line; None where it cannot."""

    def edit(lines: Lines, at: int) -> int | None:
        made = make(lines, at, **how)
        if made is not None:
            is_line = isinstance(made, Observation)
            lines[at] = made if is_line else lines[at]._replace(what=made)
        return None if made is None else at

    return plant_at(kind, clause, edit)


def insert(kind: type, clause: str, make: Callable[..., object], **how: Any) -> Plant:
    """Return a fault that puts a line behind one of a kind."""

    def edit(lines: Lines, at: int) -> int | None:
        made = make(lines, at, **how)
        if made is not None:
            lines.insert(at + 1, lines[at]._replace(what=made))
        return None if made is None else at + 1

    return plant_at(kind, clause, edit)


def drop(kind: type, clause: str, blames: Callable[..., int | None], /, **how: Any) -> Plant:
    """Return a fault that leaves a line out; `blames` says which line shows it."""

    def edit(lines: Lines, at: int) -> int | None:
        shown = blames(lines, at, **how)
        if shown is not None:
            del lines[at]
        return None if shown is None else shown - 1

    return plant_at(kind, clause, edit)


def shows_end(lines: Lines, at: int) -> int | None:
    """Return where it follows who turned a producer away, if it does not lead again before."""
    rest = range(at + 1, len(lines))
    next_role = next((n for n in rest if isinstance(lines[n].what, Lead | Follow)), None)
    if next_role is None or lines[at].what.error is None:
        return None
    return next_role if isinstance(lines[next_role].what, Follow) else None


def lower_mark(lines: Lines, at: int) -> object:
    """Let a leader's mark go back."""
    last, said = before(lines, at, Evaluate), lines[at].what
    if last is None or last.what.high_watermark == 0:
        return None
    return said._replace(high_watermark=last.what.high_watermark - 1)


def list_known(lines: Lines, at: int) -> dict[int, int] | None:
    """Return the log ends that a leader knows at a line."""
    lead = before(lines, at, Lead)
    if lead is None:
        return None
    begun = max(n for n in range(at) if lines[n] is lead)
    known = dict.fromkeys(lead.what.replicas, 0)
    known[lead.broker] = lead.what.log_end_offset
    for line in lines[begun:at]:
        if isinstance(line.what, Fetch):
            known[line.what.follower] = line.what.offset
        elif isinstance(line.what, Replica):
            known[lead.broker] = line.what.log_end_offset
    return known


def raise_mark(lines: Lines, at: int, *, past_end: bool, close: bool) -> object:
    """Let a mark pass the leader's end, or somebody in the pseudo-ISR, or in the stored set."""
    said, known = lines[at].what, list_known(lines, at)
    if known is None:
        return None
    mark = said.high_watermark + 1
    behind = [r for r in said.pseudo_isr if known[r] < mark]
    if past_end:
        return said._replace(high_watermark=known[lines[at].broker] + 1)
    if known[lines[at].broker] < mark or bool(behind) != close:
        return None
    return said._replace(high_watermark=mark)


def enter_early(lines: Lines, at: int, *, start: bool) -> object:
    """Let a follower in below the mark, or below where the leader began."""
    known, lead, said = list_known(lines, at), before(lines, at, Lead), lines[at].what
    assert isinstance(said, Evaluate)
    if known is None or lead is None:
        return None
    isr, version = lead.what.isr, lead.what.isr_version
    for line in lines[:at]:
        if isinstance(line.what, IsrWrite) and line.what.isr_version is not None:
            isr, version = line.what.isr, line.what.isr_version
    mark, begun = said.high_watermark, lead.what.log_end_offset
    early = [
        r
        for r in lead.what.replicas
        if r not in isr and (mark <= known[r] < begun if start else known[r] < mark)
    ]
    if not early or version is None:
        return None
    return IsrWrite((*isr, early[0]), version, version + 1)


def serve_more(lines: Lines, at: int, *, records: bool) -> object:
    """Show consumers more than the mark, or hand out records beyond it."""
    said: Any = lines[at].what
    if records:
        return said._replace(offset=said.high_watermark + 1)
    return Serve(said.high_watermark + 1, said.offset)


def serve_before_start(lines: Lines, at: int) -> object:
    """Show consumers something below where a leader began."""
    said: Any = lines[at].what
    return Serve(0, 0) if said.log_end_offset and said.high_watermark == 0 else None


def cut_deeper(lines: Lines, at: int) -> object:
    """Truncate one record more."""
    said: Any = lines[at].what
    end = said.log_end_offset - 1
    return Follow(end, min(end, said.high_watermark)) if end >= 0 else None


def cut_less(lines: Lines, at: int) -> object:
    """Keep one record that the leader does not have."""
    said: Any = lines[at].what
    ends = [x.what[0] for x in lines[:at] if isinstance(x.what, Follow | Replica | Lead)]
    held = bool(ends) and isinstance(ends[-1], int) and ends[-1] > said.log_end_offset
    return Follow(said.log_end_offset + 1, said.high_watermark) if held else None


def list_shown(told: dict[str, Lines], epoch: int) -> list[int]:
    """Return what was shown by leaders before a term."""
    every = (x for lines in told.values() for x in lines if isinstance(x.what, Serve))
    return [x.what.high_watermark for x in every if x.leader_epoch < epoch]


def lose_shown(told: dict[str, Lines], random: Random) -> Planted | None:
    """Let a leader begin without the last record that was shown."""
    for writer, at in places(told, Lead):
        line = told[writer][at]
        shown = list_shown(told, line.leader_epoch)
        if shown and max(shown):
            end = max(shown) - 1
            mark = min(end, line.what.high_watermark)
            what = line.what._replace(log_end_offset=end, high_watermark=mark)
            told[writer][at] = line._replace(what=what)
            return Planted("log.committed-kept", writer, at)
    return None


def go_back(lines: Lines, at: int) -> object:
    """Act by an earlier leader epoch."""
    epoch = max((line.leader_epoch for line in lines[:at]), default=0)
    return lines[at]._replace(leader_epoch=epoch - 1) if epoch else None


def go_back_to_controller(lines: Lines, at: int) -> object:
    """Act by an order of an earlier controller."""
    return lines[at]._replace(controller_epoch=0) if at > 2 else None


def lead_too(told: dict[str, Lines], random: Random) -> Planted | None:
    """Let a second broker lead in the same epoch."""
    (writer, at), *_ = random.sample(places(told, Lead), 1)
    line = told[writer][at]
    other = next(r for r in line.what.replicas if r != line.broker)
    name = f"broker-{other}"
    behind = [n for n, x in enumerate(told[name]) if x.leader_epoch <= line.leader_epoch]
    also = line._replace(writer=name, broker=other)
    told[name].insert(max(behind) + 1, also)
    return Planted("epoch.one-leader", name, max(behind) + 1)


def fetch_from_nowhere(told: dict[str, Lines], random: Random) -> Planted | None:
    """Note an offset that the follower never had in the term."""
    found = places(told, Fetch)
    writer, at = random.choice(found) if found else ("", 0)
    if not found:
        return None
    line = told[writer][at]
    follower = told[f"broker-{line.what.follower}"]
    ends = [
        x.what.log_end_offset
        for x in follower
        if isinstance(x.what, Follow | Replica) and x.leader_epoch == line.leader_epoch
    ]
    if not ends:
        return None
    told[writer][at] = line._replace(what=line.what._replace(offset=max(ends) + 1))
    return Planted("fetch.epoch-fenced", writer, at)


def take_mark(lines: Lines, at: int, *, beyond_end: bool) -> object:
    """Let a follower take a mark beyond its end, or beyond any that a leader ever had."""
    said: Any = lines[at].what
    if before(lines, at, Lead) is not None:
        return None
    if beyond_end:
        return said._replace(high_watermark=said.log_end_offset + 1)
    marks = said.high_watermark < said.log_end_offset
    return Replica(10**6 + 1, 10**6) if marks else None


def leave_out_leader(lines: Lines, at: int, *, of: str) -> object:
    """Leave the leader out of one of its sets."""
    said: Any = lines[at].what
    return said._replace(**{of: tuple(r for r in getattr(said, of) if r != lines[at].broker)})


def write_stale(lines: Lines, at: int) -> object:
    """Write on top of a version that the leader does not know."""
    said: Any = lines[at].what
    version = None if said.isr_version is None else said.isr_version + 1
    return IsrWrite(said.isr, said.expected_version + 1, version)


def elect_unclean(told: dict[str, Lines], random: Random) -> Planted | None:
    """Elect a broker that was written out of the stored set just before."""
    for writer, at in places(told, Lead):
        line = told[writer][at]
        version = (line.what.isr_version or 0) - 1
        changed = False
        for lines in told.values():
            for number, other in enumerate(lines):
                said = other.what
                if isinstance(said, Stored | IsrWrite | Lead) and said.isr_version == version:
                    isr = tuple(r for r in said.isr if r != line.broker)
                    lines[number] = other._replace(what=said._replace(isr=isr))
                    changed = True
        if changed and line.leader_epoch:
            return Planted("election.clean", writer, at)
    return None


def is_entry(lines: Lines, at: int, *, out: bool) -> int | None:
    """Return the evaluation that shows that this write of the in-sync set was left out."""
    said, last = lines[at].what, before(lines, at, Evaluate)
    shown = after(lines, at, Evaluate)
    lead, again = before(lines, at, Lead), after(lines, at, IsrWrite)
    if last is None or shown is None or lead is None or (again and again < shown):
        return None
    first = lines[at - 1].what
    if isinstance(first, IsrWrite) or said.isr_version is None:
        return None
    known = isr_before(lines, at)
    gone, come = known - set(said.isr), set(said.isr) - known
    if any(isinstance(line.what, IsrWrite) for line in lines[lines.index(last) : at]):
        return None
    heard = {x.what.follower for x in lines[: lines.index(last)] if isinstance(x.what, Fetch)}
    heard &= set(list_known(lines, at) or ())
    due = gone - set(last.what.pseudo_isr) if out else come & heard
    return shown if due else None


def isr_before(lines: Lines, at: int) -> set[int]:
    """Return the in-sync set that a leader knows at a line."""
    said = [x.what for x in lines[:at] if isinstance(x.what, Lead | IsrWrite | IsrReadLike)]
    known = [x for x in said if not (isinstance(x, IsrWrite) and x.isr_version is None)]
    return set(known[-1].isr)


IsrReadLike = type(KINDS["isr_read"].make((), 0))


def shows_growth(lines: Lines, at: int) -> int | None:
    """Return the line that shows that a replica took records without truncating first."""
    end = lines[at].what[0]
    rest = range(at + 1, len(lines))
    for number in rest:
        line = lines[number]
        if line.leader_epoch != lines[at].leader_epoch or isinstance(line.what, Follow | Lead):
            return None
        held = [x.what[0] for x in lines[:at] if isinstance(x.what, Follow | Replica | Lead)]
        if isinstance(line.what, Replica) and held and line.what[0] > max(end, held[-1]):
            return number
    return None


def show_less(lines: Lines, at: int) -> object:
    """Show consumers less than the same leader has shown before."""
    last = before(lines, at, Serve)
    if last is None or not last.what.high_watermark:
        return None
    mark = last.what.high_watermark - 1
    return Serve(mark, mark)


def cut_what_was_shown(told: dict[str, Lines], random: Random) -> Planted | None:
    """Let a member of the stored set truncate a record that was shown."""
    leads = {told[w][at].leader_epoch: told[w][at].what for w, at in places(told, Lead)}
    for writer, at in places(told, Follow):
        line = told[writer][at]
        shown = list_shown(told, line.leader_epoch)
        lead = leads[line.leader_epoch]
        assert isinstance(lead, Lead)
        # Who is written out in the term may have been so before.
        stays = all(
            line.broker in x.what.isr
            for lines in told.values()
            for x in lines
            if isinstance(x.what, IsrWrite | Stored) and x.leader_epoch == line.leader_epoch
        )
        if shown and max(shown) and line.broker in lead.isr and stays:
            end = max(shown) - 1
            told[writer][at] = line._replace(what=Follow(end, end))
            return Planted("isr.stored.holds-committed", writer, at)
    return None


FAULTS: Mapping[str, Plant] = {
    "shown less than before": change(Serve, "hw.consumer.monotone", show_less),
    "a member cuts what was shown": cut_what_was_shown,
    "mark lowered": change(Evaluate, "hw.never-decreases", lower_mark),
    "mark above the leader's end": change(
        Evaluate, "hw.at-most-leader-end", raise_mark, past_end=True, close=False
    ),
    "mark above the minimum": change(
        Evaluate, "hw.minimum-of-pseudo-isr", raise_mark, past_end=False, close=True
    ),
    "mark above a stored member": change(
        Evaluate, "hw.over-stored-isr", raise_mark, past_end=False, close=False
    ),
    "in sync below the mark": insert(
        Evaluate, "isr.member.at-or-above-hw", enter_early, start=False
    ),
    "in sync below the start": insert(
        Evaluate, "isr.entry.end-at-election", enter_early, start=True
    ),
    "shown beyond the mark": change(Serve, "hw.served-below", serve_more, records=False),
    "handed out beyond the mark": change(Serve, "hw.served-below", serve_more, records=True),
    "shown before the start": insert(Lead, "hw.served-from-end-at-election", serve_before_start),
    "answered too early": insert(Evaluate, "hw.acks-all.answered", lambda *_: Answer(10**6)),
    "not answered": drop(Answer, "hw.acks-all.answered", after, kind=Evaluate),
    "left waiting": drop(Answer, "hw.acks-all.answered-at-end", shows_end),
    "truncated too far": change(Follow, "follower.truncation.common-prefix", cut_deeper),
    "truncated too little": change(Follow, "follower.truncation.common-prefix", cut_less),
    "not truncated": drop(Follow, "follower.truncates-first", shows_growth),
    "shown records lost": lose_shown,
    "epoch goes back": change(Replica, "epoch.replica.never-back", go_back),
    "controller epoch goes back": change(
        Replica, "epoch.replica.never-back", go_back_to_controller
    ),
    "two leaders": lead_too,
    "fetch of another epoch": change(
        Fetch,
        "fetch.epoch-fenced",
        lambda lines, at: lines[at].what._replace(follower_epoch=lines[at].leader_epoch + 1),
    ),
    "offset from nowhere": fetch_from_nowhere,
    "pseudo-ISR without leader": change(
        Evaluate, "lag.leader-none", leave_out_leader, of="pseudo_isr"
    ),
    "in-sync set without leader": change(
        IsrWrite, "isr.change.leader-kept", leave_out_leader, of="isr"
    ),
    "written on a stale version": change(IsrWrite, "isr.write.conditional", write_stale),
    "follower's mark beyond its end": change(
        Replica, "hw.follower.from-leader", take_mark, beyond_end=True
    ),
    "follower's mark from nowhere": change(
        Replica, "hw.follower.from-leader", take_mark, beyond_end=False
    ),
    "unclean election": elect_unclean,
    "not written into the in-sync set": drop(
        IsrWrite, "isr.entry.at-high-watermark", is_entry, out=False
    ),
    "not written out of the in-sync set": drop(IsrWrite, "isr.lagging-leaves", is_entry, out=True),
}

ENOUGH = 8


def copy_lines(telling: Telling) -> dict[str, Lines]:
    """Return the lines by writer, to be changed."""
    return {writer: list(lines) for writer, lines in telling.lines.items()}


def find_line(lines: list[Observation], writer: str, sequence: int) -> int:
    """Return the number of a writer's line."""
    places = [(line.writer, line.sequence) for line in lines]
    return 1 + places.index((writer, sequence))


def check_fault(plant: Plant, histories: Callable[[int], Telling], readings: Readings) -> None:
    """Plant a fault in histories until there are enough, and see each named at its line."""
    found = 0
    for seed in range(400):
        random = Random(seed)
        told = copy_lines(histories(seed))
        planted = plant(told, random)
        if planted is None:
            continue
        lines = Telling(lines={w: renumber(x) for w, x in told.items()}).shuffle(random)
        broken = find_broken(judge(lines, readings))
        number = find_line(lines, planted.writer, planted.at)
        assert (planted.clause, number) in broken, (seed, lines[number - 1], broken)
        found += 1
        if found == ENOUGH:
            return
    pytest.fail(f"planted {found} times only")


@pytest.mark.clause("epoch.one-leader")
@pytest.mark.clause("epoch.replica.never-back")
@pytest.mark.clause("hw.served-below")
@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_named_at_its_line(name: str) -> None:
    """A fault planted in a walk of the machine is named at its line by the clause meant for it."""
    check_fault(FAULTS[name], lambda seed: walk(seed).telling, AMENDED)


# Replicas that are stopped ----------------------------------------------------------------------

EMPTY = Restored(0, 0)
RETURNS = ((1, 4, EMPTY), (2, 5, Follow(0, 0)))
"""A replica that is made anew follows by a later order than the one that it was deleted by."""


def stopped(*then: tuple[int, int, Any], deleted: bool = True, run: int = 7) -> Lines:
    """Return what a follower says that is stopped in leader epoch 4, and then said this."""
    before = [(1, 0, EMPTY), (1, 3, Follow(0, 0)), (1, 3, Replica(2, 1))]
    lines = [(7, *each) for each in (*before, (1, 4, Stopped(deleted)))]
    lines += [(run, *each) for each in then]
    first = [line[0] for line in lines].index(run) if run != 7 else 0
    head = Writer(tuple(kind for kind in KINDS if kind not in ("writer", "stored")))
    said = []
    for place, (life, controller, epoch, what) in enumerate(lines):
        if place in (0, first):
            said.append(Observation("b", life, 0, "", "", -1, NOBODY, 0, 0, head))
        number = len([line for line in said if line.run == life])
        said.append(Observation("b", life, number, "", "t", 0, 2, controller, epoch, what))
    return said


@pytest.mark.clause("replica.stopped.silent")
@pytest.mark.clause("replica.deleted.empty")
@pytest.mark.parametrize("deleted", [True, False])
def test_replica_that_is_stopped_and_told_anew_is_sound(deleted: bool) -> None:
    """It may begin again, empty where it was deleted, and by a later order."""
    again = RETURNS if deleted else ((2, 5, Follow(1, 1)),)
    tally = judge(stopped(*again, deleted=deleted), AMENDED)
    assert find_broken(tally) == []
    assert tally.exercised["replica.stopped.silent"] == 1
    assert tally.exercised["replica.deleted.empty"] == deleted


SILENT, DELETED = "replica.stopped.silent", "replica.deleted.empty"
GOES_ON = (Replica(3, 1), Fetch(1, 0), Evaluate((2,), 1), Serve(1), IsrWrite((2,), 1, 2))


@pytest.mark.clause(SILENT, DELETED)
@pytest.mark.parametrize(
    ("clause", "lines"),
    [
        # Whatever a stopped replica does.
        *((SILENT, stopped((1, 4, what), deleted=False)) for what in GOES_ON),
        # Records of a deleted log, in the same life and after a start.
        (DELETED, stopped((2, 5, Restored(2, 1)), run=8)),
        (DELETED, stopped((2, 5, Follow(2, 1)))),
    ],
)
def test_replica_that_goes_on_or_has_records_is_named(clause: str, lines: Lines) -> None:
    """What a replica may not do that was stopped or deleted breaks its clause, at that line."""
    assert (clause, len(lines)) in find_broken(judge(lines, AMENDED))


RESTORED = "hw.restored-not-raised"


def begun_again(mark: int, *, deleted: bool = False) -> Lines:
    """Return what a follower says that had a mark of 1, ended, and begins with this one."""
    return stopped((1, 4, Restored(mark if deleted else 2, mark)), deleted=deleted, run=8)


@pytest.mark.clause(RESTORED)
@pytest.mark.parametrize(
    ("lines", "broken"),
    [
        (begun_again(0), []),
        (begun_again(1), []),
        (begun_again(2), [RESTORED]),
        (begun_again(1, deleted=True), [RESTORED]),
    ],
)
def test_mark_is_not_raised_between_two_lives(lines: Lines, broken: list[str]) -> None:
    """A replica begins with a mark that it had before, or a lower one: 0 where it was empty."""
    tally = judge(lines, AMENDED)
    found = [clause for each in tally.violations for clause in (each.clause, *each.besides)]
    assert [clause for clause in found if clause == RESTORED] == broken
    assert bool(tally.exercised[RESTORED]) is not bool(broken)


@pytest.mark.clause(RESTORED)
def test_mark_is_not_judged_where_lines_are_missing() -> None:
    """Who may have had a higher mark, or does not tell all marks, is not blamed for one."""
    lines = begun_again(2)
    assert RESTORED not in judge([*lines[:2], *lines[3:]], AMENDED).exercised
    assert find_broken(judge([*lines[:2], *lines[3:]], AMENDED)) == []
    head = lines[0]._replace(what=Writer(("restored", "follow", "stopped")))
    assert find_broken(judge([head, *lines[1:]], AMENDED)) == []


@pytest.mark.clause("epoch.replica.never-back")
def test_replica_that_is_made_anew_knows_what_it_has_obeyed() -> None:
    """An order from before the deletion is one from before, though nothing is left of the log."""
    lines = stopped((1, 0, EMPTY), (1, 3, Follow(0, 0)))
    assert ("epoch.replica.never-back", len(lines)) in find_broken(judge(lines, AMENDED))
    late = [*stopped(*RETURNS), *stopped(*RETURNS)[-1:]]
    late = [*late[:-1], late[-1]._replace(sequence=late[-2].sequence + 1, what=Stopped(True))]
    late[-1] = late[-1]._replace(leader_epoch=4)
    assert ("epoch.replica.never-back", len(late)) in find_broken(judge(late, AMENDED))


# A leader by the clock --------------------------------------------------------------------------


def list_notes(lines: Lines, at: int) -> list[Any]:
    """Return the earlier fetches of the follower of a fetch."""
    fetched = [x.what for x in lines[:at] if isinstance(x.what, Fetch)]
    return [each for each in fetched if each.follower == lines[at].what.follower]


def credit_wrongly(lines: Lines, at: int, *, late: bool) -> object:
    """Count a follower as caught up at a time that no rule gives."""
    said, earlier = lines[at].what, before(lines, at, Fetch)
    notes = list_notes(lines, at)
    if not notes or earlier is None or said.caught_up_ms == 0:
        return None
    full, ends = said.offset >= said.log_end_offset, notes[-1].log_end_offset
    if late:  # caught up with the leader, and counted before that
        return said._replace(caught_up_ms=said.caught_up_ms - 1) if full else None
    behind = said.offset < ends and not full
    return said._replace(caught_up_ms=said.time_ms) if behind else None


def credit_last(lines: Lines, at: int, *, noted_first: bool) -> object:
    """Give a follower that has all of the last fetch no credit, or that of this fetch."""
    said: Any = lines[at].what
    notes = list_notes(lines, at)
    ends = notes[-1].log_end_offset if notes else None
    if ends is None or not ends <= said.offset < said.log_end_offset:
        return None
    last, now = notes[-1].time_ms, said.time_ms
    if noted_first:
        return said._replace(caught_up_ms=now) if now > last else None
    return said._replace(caught_up_ms=last - 1)


def note_end_before_clock(lines: Lines, at: int) -> object:
    """Note an end of the leader that is older than the time beside it."""
    said: Any = lines[at].what
    moves = [x.what for x in lines[:at] if isinstance(x.what, Replica)]
    if not moves or moves[-1].time_ms is None or said.time_ms is None:
        return None
    old = moves[-1].time_ms < said.time_ms
    return said._replace(log_end_offset=moves[-1].log_end_offset - 1) if old else None


def confuse_pseudo(lines: Lines, at: int) -> object:
    """Leave a follower in, or out, against its lag."""
    said: Any = lines[at].what
    return said._replace(pseudo_isr=tuple({1, 0} ^ {1} if 1 in said.pseudo_isr else {0, 1}))


def stall(lines: Lines, at: int) -> object:
    """Let the mark stay where it was at first."""
    said, moves = lines[at].what, [x.what for x in lines[:at] if isinstance(x.what, Replica)]
    passed = [m for m in moves if m.time_ms is not None and m.time_ms < said.time_ms - 100]
    first = before(lines, at, Evaluate)
    if not passed or first is None or said.time_ms <= 1_100:
        return None
    return said._replace(high_watermark=0)


CLOCK: Mapping[str, Plant] = {
    "caught up, and counted earlier": change(
        Fetch, "lag.credit.caught-up", credit_wrongly, late=True
    ),
    "counted without a reason": change(
        Fetch, "lag.estimate-never-short", credit_wrongly, late=False
    ),
    "no credit for the last fetch": change(
        Fetch, "lag.credit.last-fetch", credit_last, noted_first=False
    ),
    "noted before it is compared": change(
        Fetch, "lag.noted-after-serving", credit_last, noted_first=True
    ),
    "end read before the clock": change(Fetch, "lag.clock-before-end", note_end_before_clock),
    "close or not against the lag": change(Evaluate, "isr.pseudo.by-lag", confuse_pseudo),
    "mark stands still": change(Evaluate, "hw.stall-bounded", stall),
}


@pytest.mark.clause("lag.estimate-never-short")
@pytest.mark.clause("lag.noted-after-serving")
@pytest.mark.parametrize("name", CLOCK)
def test_fault_of_the_clock_is_named_at_its_line(name: str) -> None:
    """A fault planted in a term by the clock is named at its line by the clause meant for it."""
    check_fault(CLOCK[name], tell_clock, TIMED)


@pytest.mark.clause("lag.evaluated-in-time")
def test_evaluation_that_comes_late_is_advice_not_followed() -> None:
    """An evaluation left out is seen at the next one, and binds nobody; none is due in between."""
    told = copy_lines(tell_term(Random(3), TIMED, 3, 80))
    lines = told["broker-0"]
    times = {n: x.what.time_ms for n, x in enumerate(lines) if isinstance(x.what, Evaluate)}
    for from_ms, to_ms, count in ((1_050, 1_150, 0), (1_150, 1_250, 1)):  # until 1,137 all is quiet
        gone = [n for n, at in times.items() if at is not None and from_ms < at <= to_ms]
        told["broker-0"] = renumber([x for n, x in enumerate(lines) if n not in gone])
        found = judge(Telling(lines=told).shuffle(Random(1)), TIMED).violations
        late = [v for v in found if "lag.evaluated-in-time" in (v.clause, *v.besides)]
        assert len(late) == count
        assert not any(each.binds() for each in late)


@pytest.mark.clause("isr.pseudo.close-follower")
def test_close_follower_left_out_is_advice_not_followed() -> None:
    """Where a leader's own estimate is longer than the lag, it is told, and binds nobody."""
    found = []
    for seed in range(20):
        random = Random(seed)
        found += judge(tell_term(random, TIMED, 3, 80).shuffle(random), TIMED).violations
    assert {(v.clause, v.binds()) for v in found} == {("isr.pseudo.close-follower", False)}


def is_waited_for(line: Observation) -> bool:
    """Whether somebody is close and not at the mark yet."""
    said = line.what
    return isinstance(said, Evaluate) and set(said.pseudo_isr) != set(said.isr or ())


def test_defined_set_is_held_against_its_definition() -> None:
    """Where no set is stored, each way to be wrong about it has its clause."""
    readings = Readings(isr_members="memoryless")
    told = {0: set[str](), 1: set[str]()}
    for seed in range(60):
        lines = copy_lines(tell_term(Random(seed), readings, 2, 80))
        evaluations = [n for n, x in enumerate(lines["broker-0"]) if isinstance(x.what, Evaluate)]
        waiting = [n for n in evaluations if is_waited_for(lines["broker-0"][n])]
        at = Random(seed).choice(waiting or evaluations)
        line = lines["broker-0"][at]
        isr = tuple({*line.what.isr} ^ {1})
        lines["broker-0"][at] = line._replace(what=line.what._replace(isr=isr))
        mixed = Telling(lines=lines).shuffle(Random(seed))
        broken = find_broken(judge(mixed, readings))
        number = find_line(mixed, line.writer, line.sequence)
        clauses = {clause for clause, where in broken if where == number}
        assert clauses
        told[len(isr) - 1] |= clauses
    assert told[0] == {"isr.entry.at-high-watermark"}
    assert told[1] == {"isr.member.at-or-above-hw", "isr.lagging-leaves"}


def test_every_clause_that_binds_has_a_planted_fault() -> None:
    """No clause that is judged is judged without a fault that it names; some have tests above."""
    named = {"replica.stopped.silent", "replica.deleted.empty", RESTORED}
    for plants, tell in ((FAULTS, lambda seed: walk(seed).telling), (CLOCK, tell_clock)):
        for plant in plants.values():
            seeds = (plant(copy_lines(tell(seed)), Random(seed)) for seed in range(100))
            named |= {next(planted.clause for planted in seeds if planted is not None)}
    assert named == {name for name in NEEDS if binds(name)}


def tell_clock(seed: int) -> Telling:
    """Return a term by the clock."""
    return tell_term(Random(seed), TIMED, 3, 80)


# Orders and parts -------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32), order=st.integers(0, 2**32))
@settings(max_examples=80, deadline=None)
@example(seed=182, order=1550)
def test_verdict_is_the_same_in_any_order_of_writers(seed: int, order: int) -> None:
    """However the lines of writers are mixed, what is found is the same, sound or not."""
    random = Random(order)
    told = tell_walk(random, Readings(), 3, 60, is_prompt=False).telling
    plant = random.choice(list(FAULTS.values()))
    lines = copy_lines(told)
    plant(lines, random)
    told = Telling(lines={writer: renumber(x) for writer, x in lines.items()})
    found = []
    for mix in (seed, seed + 1):
        mixed = told.shuffle(Random(mix))
        tally = judge(mixed, AMENDED)
        broken = {
            (clause, mixed[n - 1].writer, mixed[n - 1].sequence) for clause, n in find_broken(tally)
        }
        found.append((broken, dict(tally.exercised), dict(tally.undecided)))
    assert found[0] == found[1]


epochs = st.lists(st.integers(0, 3), max_size=6).map(lambda log: tuple(sorted(log)))


def spans(log: tuple[int, ...]) -> Log:
    """Return a log of the model by its leader epochs."""
    firsts = [n for n, epoch in enumerate(log) if n == 0 or log[n - 1] != epoch]
    return Log(len(log), tuple((log[n], n) for n in firsts))


@given(epochs, epochs)
def test_common_prefix_is_the_models(log: tuple[int, ...], other: tuple[int, ...]) -> None:
    """By leader epochs two logs share as many records as the model counts one by one."""
    assert count_common(spans(log), spans(other)) == replication.count_common(log, other)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=8),
    st.integers(0, 10),
    st.integers(0, 20),
)
def test_past_is_the_models(moves: list[tuple[int, int]], limit: int, wait: int) -> None:
    """How far the leader's log had come a limit ago is what the model's definition says."""
    now, end = 100, 5
    past, history = Past(now, end, limit), [(now, end)]
    for gap, grown in moves:
        now, end = now + gap, end + grown
        past.move(now, end)
        history.append((now, end))
        assert past.end_before(now) == lag.end_at(tuple(history), now, of_ms="start")
    now += wait
    for of_ms in ("end", "start"):
        then = past.end_a_limit_ago(now, of_ms=of_ms)
        assert then == lag.end_at(tuple(history), now - limit, of_ms=of_ms)
        for offset in range(end + 1):
            lags = lag.compute_replica_lag(tuple(history), offset, now, of_ms=of_ms)
            assert (lags <= limit) == (offset >= then)
