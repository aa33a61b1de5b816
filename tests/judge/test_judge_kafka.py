"""The judge on logs that Apache Kafka itself left, sound, faulty, and altered write by write."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from history_steps import garble, judge_alike, read_log

from reassure_judge.authors import judge_authority, make_author
from reassure_judge.history import ElectionSeen, SeenWrite, StateWritten
from reassure_judge.judge import Judge, Tracking
from reassure_judge.protocols import make_rules
from reassure_judge.protocols.kafka_zk import accept
from reassure_judge.protocols.kafka_zk.leaders import find_firsts
from reassure_judge.protocols.kafka_zk.partition import (
    AlterIsr,
    Logged,
    RestoreEntry,
    WriteLists,
    Written,
)
from reassure_judge.protocols.kafka_zk.router import ListsWritten
from reassure_judge.rules import Possible
from reassure_judge.tracker import PartitionTracker
from reassure_judge.verdicts import HOLDS, NOT_EXERCISED, Tally
from reassure_model.controllers import NONE, Controllership
from reassure_model.outcome import Rejected
from reassure_model.partition import Environment, LeaderAndIsr
from reassure_model.protocols.kafka_zk import Assignment
from reassure_model.writes import ChangeIsr, WriteState
from reassure_pipeline.audit.run_audit import audit_named
from reassure_spec.readings import READINGS, Readings, get_profile, override_readings
from reassure_spec.rooms import find_judged_only
from reassure_zookeeper.transactions import SetData, Transaction

LISTED = ("runA", "runC2", "runH", "alpha", "bravo", "sierra", "india", "hotel_f", "golf")
LISTED += ("lima", "oscar", "romeo", "v241", "v282")
"""Logs of Kafka 2.4 and later, by the names of their runs."""
OLDER = ("old_01022", "old_080", "charlie_s", "delta", "tango", "quebec", "juliett_f")
OLDER += ("mike", "november", "kilo", "papa", "echo", "n102")
PROFILE = dict.fromkeys(LISTED, "kafka-zk") | dict.fromkeys(OLDER, "kafka-42")
BY = "controller.write.by-controller"


def by_zxid(named: dict[str, tuple[int, ...]]) -> dict[int, str]:
    """Return the clause by zxid of what is listed by clause."""
    return {zxid: clause for clause, zxids in named.items() for zxid in zxids}


PLANTED = by_zxid(
    {
        "leader.assigned": (0xAC, 0xAD),
        "leader-epoch.raised-by-one": (0xAE, 0xB0),
        BY: (0xAF,),
        "shipped.complete.leader-first": (0xB1,),
        "isr.never-empty": (0xB2,),
        "state.write-conditional": (0xB3,),
        "isr.remove.only-when-due": (0xB4,),
        "election.only-when-due": (0xB5,),
        "shipped.leader.none-when-stopped": (0xB6,),
        "state.controller-epoch-stamped": (0xB7,),
        "topic.content-kept": (0xB8,),
        "shipped.assignment.lists-within": (0xB9,),
        "shipped.complete.target-in-sync": (0xBA,),
    }
)
"""What was planted in runC2, by the clause that it breaks; all of it by a client (`BY`), and of
0xAF nothing but that is wrong."""
SOUND = ("golf", "papa", "runA", "romeo", "old_01022", "alpha", "bravo", "charlie_s", "sierra")
# 1.0.2: three controlled shutdowns, kills and moves. In the first shutdown broker 1 is let in
# again by a leader that has not heard of it, and ends 1.1 s after it was taken out.
SOUND += ("n102",)
# 2.4.1: unclean elections by a call and by a setting, kills, four shutdowns, moves.
SOUND += ("v241",)
# 2.8.2: a log directory of broker 1 fails, and 2 s later another controller is elected.
SOUND += ("v282",)
_NAMED: dict[str, dict[str, tuple[int, ...]]] = {
    # The last in-sync replica dies (KAFKA-5083); that a deletion stops it as well loses nothing.
    "echo": {"isr.never-empty": (0x81,)},
    "runH": {"isr.change.assigned-only": (0x81,), "shipped.isr.within-assigned": (0xAF,)},
    "lima": {"shipped.change.keeps-in-sync": (0x86, 0xC3), "shipped.isr.within-assigned": (0x87,)},
    "oscar": {"shipped.isr.within-assigned": (0x80,)},
    "old_080": {"isr.change.assigned-only": (0x22, 0x23)},
    "delta": {"leader-epoch.raised-with-reason": (0xCA, 0xCB, 0xCC)},
    "tango": {"leader-epoch.raised-with-reason": (0xCF,)},
    "kilo": {"move.path.others-kept": (0x71,), "leader-epoch.raised-with-reason": (0x8A,)},
    "quebec": {BY: (0x81, 0x87), "move.path.others-kept": (0x82,)},
    "hotel_f": {
        "isr.change.assigned-only": (0xDF,),
        "leader.assigned": (0xE0,),
        "leader.in-isr": (0xE1,),
        "isr.never-empty": (0xE2,),
        "leader-epoch.raised-by-one": (0xE3, 0xE4),
        "state.controller-epoch-stamped": (0xE5, 0xE6),
        "shipped.assignment.original-derivable": (0xE7, 0xEA),
        "shipped.assignment.lists-within": (0xE8, 0xEB),
        "assigned.no-duplicates": (0xE9,),
        "shipped.complete.assignment-after-stop": (0xEC,),
        "shipped.complete.target-in-sync": (0x100,),
        "partition.state-kept": (0x101, 0x102),
        "isr.change.keeps-leader": (0x103, 0x10C),
        "topic.partitions-kept": (0x104,),
        "isr.no-duplicates": (0x105,),
        "znode.well-formed": (0x107, 0x108, 0x109),
        "election.only-when-due": (0x10B,),
    },
    "juliett_f": {
        "isr.change.assigned-only": (0xAF,),
        "leader.assigned": (0xB0,),
        "leader-epoch.raised-by-one": (0xB1, 0xB2),
        "assigned.change.only-as-due": (0xB3, 0xB9, 0xBB, 0xD7),
        "isr.never-empty": (0xB4,),
        "shipped.leader.none-when-stopped": (0xB5,),
        "partition.state-kept": (0xB6,),
        "state.controller-epoch-stamped": (0xB7,),
        "leader.in-isr": (0xB8,),
        "assigned.no-duplicates": (0xBA,),
        "move.step.wait-in-sync": (0xD6,),
        "znode.well-formed": (0xDE,),
        "isr.change.keeps-leader": (0xDF,),
        "shipped.entry.client-removes": (0xEE,),
    },
    "india": {
        BY: (0x8F, 0x95, 0xB0, 0xB9),
        "shipped.assignment.lists-within": (0x93,),
        "leader.in-isr": (0x94,),
        "topic.settings-kept": (0x9A,),
        "znode.well-formed": (0x9B,),
        "election.only-when-due": (0xA9,),
        "election.live": (0xAF,),
        "controller.epoch.raised-by-one": (0xB8,),
        "topic.partitions-kept": (0xBF,),
        "controller.election.atomic": (0xC0, 0xDA),
        "shipped.complete.leader-first": (0xCB,),
    },
    "mike": {"isr.never-empty": (0x3D, 0x3F, 0x40)},
    "november": {"isr.change.assigned-only": (0x32, 0x33, 0x34, 0x37, 0x45)},
}
FOUND = {name: by_zxid(named) for name, named in _NAMED.items()} | {"runC2": PLANTED}
FOUND |= {name: {} for name in SOUND}
"""By log and transaction: the clause that is named. Of what is sound in these logs nothing is."""
OPEN: dict[str, dict[str, int]] = {
    # A leader that was not in sync, by a call that asks for one.
    "golf": {"election.clean": 1},
    "v241": {"election.clean": 1},
    # Two brokers registered a moment before the first state.
    "november": {"partition.new.isr-all-live": 1},
    # Taken out where nobody says yet whether it is about to stop.
    "hotel_f": {"isr.remove.only-when-due": 1},
}
"""By log: how often a clause is left open, where nobody can say."""
MISSED: dict[str, set[int]] = {
    # Elected from an in-sync set that is empty: what was wrong is that it is.
    "mike": {0x43, 0x44, 0x48},
    "echo": {0x8B},
    # The leader is a stranger that joined before, which was named.
    "november": {0x38, 0x39, 0x3A, 0x4A, 0x4B},
    # Entries that nobody looked at: nothing shows that the controller was at work meanwhile.
    "romeo": {0x6F, 0x71},
    # An epoch that another controller had, as somebody had set it back.
    "india": {0xC4},
}
"""By log: what goes on from a fault that is named, or may be wrong, and is not named itself."""


def get_readings(profile: str) -> Readings:
    """Return the readings for logs of Kafka, which adds a target before it starts it."""
    return override_readings(get_profile(profile), {"move.expand-first": "yes"})


def judge_log(name: str, scratch: Path) -> Judge:
    """Hold a log against its protocol."""
    judge = Judge(PROFILE[name], get_readings(PROFILE[name]))
    for transaction in read_log(name, scratch):
        judge.feed(transaction)
    return judge


@pytest.mark.clause("shipped.assignment.lists-within")
@pytest.mark.clause("shipped.leader.none-when-stopped")
@pytest.mark.parametrize("name", FOUND)
def test_logs_of_kafka_are_judged_as_they_are(name: str, tmp_path: Path) -> None:
    """A sound log holds with nothing left open; what is wrong is named where it was written."""
    judge = judge_log(name, tmp_path)
    found = {violation.zxid: violation.clause for violation in judge.violations}
    assert found == FOUND[name]
    assert len(judge.violations) == len(found)
    assert judge.undecided == OPEN.get(name, {})
    assert MISSED.get(name, set()).isdisjoint(found)
    verdicts = {verdict.verdict for verdict in judge.report().verdicts}
    assert bool(found) or name in OPEN or verdicts == {HOLDS, NOT_EXERCISED}


@pytest.mark.clause("act.controlled-shutdown")
@pytest.mark.parametrize("name", sorted(PROFILE))
def test_steps_that_are_known_come_to_the_same(name: str, tmp_path: Path) -> None:
    """With and without writes that come out of nowhere."""
    rules = make_rules(PROFILE[name], get_readings(PROFILE[name]))
    history = read_log(name, tmp_path)
    judge_alike(rules, history)
    judge_alike(rules, garble(history, 1))


@pytest.mark.parametrize("late", [True, False])
def test_stopping_leader_writes_until_its_session_closes(late: bool, tmp_path: Path) -> None:
    """What joins after a shutdown began is not the shutdown's; what was there is cut out by it."""
    log = read_log("sierra", tmp_path)
    join = next(each for each in log if each.zxid == 0xDD)
    log.remove(join)
    # Broker 2 is taken out of in-sync sets from 0xD8 on, and lets 3 join where it leads itself.
    number = next(n for n, each in enumerate(log) if each.zxid == (0xDE if late else 0xD8))
    log.insert(number, replace(join, zxid=log[number - 1].zxid))
    judge = Judge("kafka-zk", get_profile("kafka-zk"))
    for each in log:
        judge.feed(each)
    assert {v.zxid for v in judge.violations} == (set() if late else {0xD8, 0xD9, 0xDB})


@pytest.mark.clause("election.clean")
def test_unclean_election_is_left_open_only_where_kafka_marks_it(tmp_path: Path) -> None:
    """Without the mark of a leader that recovers there was no call for one out of sync."""
    judge = Judge("kafka-zk", get_profile("kafka-zk"))
    for each in read_log("golf", tmp_path):
        ops = each.ops
        if each.zxid == 0x13D:
            check, state = ops
            assert isinstance(state, SetData)
            bare = state.data.replace(b'"leader_recovery_state":1', b'"leader_recovery_state":0')
            ops = (check, replace(state, data=bare))
        judge.feed(replace(each, ops=ops))
    assert [(v.zxid, v.clause) for v in judge.violations] == [(0x13D, "election.clean")]


def test_who_planted_a_write_is_named_as_well(tmp_path: Path) -> None:
    """A client that checks the controller epoch is no controller, whatever it writes."""
    judge = judge_log("runC2", tmp_path)
    by = {v.zxid for v in judge.violations if BY in (v.clause, *v.besides)}
    assert by == set(PLANTED) - {0xB8, 0xB9}


def test_whatever_there_are_rules_for_is_judged(tmp_path: Path) -> None:
    """What is left of a log are trees that no controller reads to decide anything."""
    trees = {"/consumers", "/config/changes", "/config/clients", "/config/users", "/config/ips"}
    trees |= {"/brokers/seqid", "/latest_producer_id_block", "/cluster", "/feature"}
    for name in PROFILE:
        unjudged = judge_log(name, tmp_path).router.count_unjudged()
        below = {path.removeprefix("/kfk").removeprefix("/a/b") for path in unjudged}
        assert below <= {*trees, "", "/a", "/a/…"}


# Every write of a sound log, altered -----------------------------------------------------------

Wrong = tuple[Any, set[str]]
"""Another event, and the clauses of which it breaks one."""
STRANGER = 99


def alter_state(old: LeaderAndIsr, new: LeaderAndIsr) -> Iterator[Wrong]:
    """Yield states that nobody may write in the place of this one, whatever else is the case."""
    yield replace(new, isr=()), {"isr.never-empty"}
    yield replace(new, isr=(*new.isr, new.isr[0])), {"isr.no-duplicates"}
    joined = {"state.write-conditional", "isr.change.assigned-only", "election.clean"}
    yield replace(new, isr=(*new.isr, STRANGER)), joined
    raised = {"leader-epoch.raised-by-one"}
    yield replace(new, leader_epoch=old.leader_epoch + 2), raised
    yield replace(new, leader_epoch=old.leader_epoch - 1), raised
    stamped = {"state.controller-epoch-stamped"}
    yield replace(new, controller_epoch=new.controller_epoch + 1), stamped
    leads = {"leader.assigned", "isr.change.keeps-leader", "election.live"}
    yield replace(new, leader=STRANGER, isr=(STRANGER,)), leads
    if new.leader >= 0 and len(new.isr) > 1:
        others = tuple(replica for replica in new.isr if replica != new.leader)
        yield replace(new, isr=others), {"leader.in-isr", "isr.change.leader-kept"}
    if old.leader >= 0 and len(old.isr) > 1:
        lost = replace(new, leader=-1, leader_epoch=old.leader_epoch + 1, isr=old.isr)
        yield lost, {"shipped.leader.none-when-stopped"}
    if new.leader_epoch == old.leader_epoch + 1:
        yield replace(new, controller_epoch=new.controller_epoch - 1), stamped


def alter_lists(partition: Logged, new: Assignment) -> Iterator[Wrong]:
    """Yield assignments that nobody may write in the place of this one."""
    old = Assignment(partition.assigned or (), partition.adding, partition.removing)
    twice = {"assigned.no-duplicates"}
    yield replace(new, replicas=(*new.replicas, new.replicas[0])), twice
    yield replace(new, adding=(*new.adding, STRANGER)), {"shipped.assignment.lists-within"}
    yield replace(new, removing=new.replicas), {"shipped.assignment.lists-within"}
    unlisted = {"shipped.assignment.original-derivable", "shipped.complete.target-in-sync"}
    unlisted |= {"shipped.change.recorded-first"}
    yield replace(new, replicas=(*new.replicas, STRANGER)), unlisted
    if new.is_reassigning:
        turned = replace(new, replicas=(*new.replicas[1:], new.replicas[0]))
        if new.removing and len(new.target) + 1 == len(new.replicas):
            yield turned, {"shipped.assignment.target-first"}
    isr = () if partition.state is None else partition.state.isr
    if new.adding and not set(new.target) <= set(isr):
        early = {"shipped.complete.target-in-sync"}
        yield Assignment(new.target), early | {"shipped.complete.leader-first"}
    if old.is_reassigning and not new.is_reassigning and set(old.target) == set(new.replicas):
        kept = replace(old, adding=())
        yield kept, {"shipped.assignment.original-derivable", "shipped.assignment.target-first"}


def alter(tracker: PartitionTracker, seen: SeenWrite) -> Iterator[tuple[SeenWrite, set[str]]]:
    """Yield an observation of a write with something wrong in it, in every way that there is."""
    partition: Logged = tracker.partition
    match seen.event:
        case StateWritten(new, writer) if new is not None and partition.state is not None:
            for state, clauses in alter_state(partition.state, new):
                yield seen._replace(event=StateWritten(state, writer)), clauses
        case ListsWritten(new) if new is not None and partition.assigned is not None:
            for lists, clauses in alter_lists(partition, new):
                yield seen._replace(event=ListsWritten(lists)), clauses


def copy(tracker: PartitionTracker) -> PartitionTracker:
    """Return a tracker that knows the same and has found nothing yet."""
    other = PartitionTracker(tracker.rules, Tally())
    other.states = tracker.states
    other.feed = tracker.__class__.feed.__get__(other)  # type: ignore[method-assign]
    other._epoch = tracker._epoch
    return other


def follow(name: str, scratch: Path, look: Callable[[PartitionTracker, SeenWrite], None]) -> None:
    """Judge a log, and have a look at every observation of a partition before it is judged."""
    judge = Judge(PROFILE[name], get_readings(PROFILE[name]))
    tracking: Tracking = judge.tracking
    for transaction in read_log(name, scratch):
        for seen in judge.router.feed(transaction):
            tracker = tracking.partitions.get((seen.chroot, seen.topic, seen.partition))
            if tracker is not None:
                look(tracker, seen)
            tracking.observe(seen)


@pytest.mark.clause("isr.change.assigned-only")
@pytest.mark.clause("leader-epoch.raised-by-one")
@pytest.mark.clause("shipped.assignment.original-derivable")
@pytest.mark.parametrize("name", ["runA", "old_01022"])
def test_whatever_is_wrong_in_one_write_is_named_there(name: str, tmp_path: Path) -> None:
    """Each write of a sound log, altered in each of these ways, is named at that very write."""
    tried, missed = 0, []

    def look(tracker: PartitionTracker, seen: SeenWrite) -> None:
        nonlocal tried
        for wrong, clauses in alter(tracker, seen):
            if name == "old_01022" and isinstance(wrong.event, ListsWritten):
                continue  # before 2.4 there are no lists to get wrong
            tried += 1
            other = copy(tracker)
            other.feed(wrong)
            found = {c for v in other.tally.violations for c in (v.clause, *v.besides)}
            if not clauses & found:
                missed.append((hex(seen.zxid), tracker.partition, wrong.event, clauses, found))

    follow(name, tmp_path, look)
    assert missed == []
    assert tried > 100


# The old znode ---------------------------------------------------------------------------------

PATH = "/admin/reassign_partitions"
DROPPED = {"move.path.others-kept", "move.step.remove-path"}
ASKED = {"shipped.entry.client-asks"}


def alter_entries(entries: list[dict[str, Any]]) -> Iterator[tuple[list[Any], set[str]]]:
    """Yield what a controller may not leave in the old znode, and the clauses that name it."""
    for number, entry in enumerate(entries):
        others = entries[:number] + entries[number + 1 :]
        yield others, DROPPED
        yield [*others, {**entry, "replicas": [*entry["replicas"], STRANGER]}], ASKED
    yield [*entries, {"topic": "made-up", "partition": 0, "replicas": [STRANGER]}], ASKED


def list_entry_changes(
    log: list[Transaction], *, dropped: bool
) -> Iterator[tuple[int, Transaction, set[str]]]:
    """Yield each write of the old znode by a controller with something wrong in it, by number."""
    for number, each in enumerate(log):
        brokers = {t.session_id for t in log for op in t.ops if "/brokers/ids/" in _get_path(op)}
        for place, op in enumerate(each.ops):
            if not isinstance(op, SetData) or op.path != PATH or each.session_id not in brokers:
                continue
            for entries, clauses in alter_entries(json.loads(op.data)["partitions"]):
                data = json.dumps({"version": 1, "partitions": entries}).encode()
                ops = [*each.ops[:place], replace(op, data=data), *each.ops[place + 1 :]]
                if dropped or clauses != DROPPED:
                    yield number, replace(each, ops=tuple(ops)), clauses


def _get_path(op: object) -> str:
    return getattr(op, "path", "")


@pytest.mark.clause("shipped.entry.client-asks", "move.path.others-kept")
@pytest.mark.parametrize("name", ["charlie_s", "delta", "tango", "alpha", "sierra"])
def test_controller_takes_out_what_is_done_and_adds_nothing(name: str, tmp_path: Path) -> None:
    """An entry dropped, changed or made up is named at that very write, or left open there."""
    log = read_log(name, tmp_path)
    wrong = list(list_entry_changes(log, dropped=PROFILE[name] == "kafka-42"))
    blamed, missed = 0, []
    for number, altered, clauses in wrong:
        judge = Judge(PROFILE[name], get_readings(PROFILE[name]))
        for each in [*log[:number], altered, *log[number + 1 :]]:
            judge.feed(each)
        named = [v for v in judge.violations if v.clause in clauses]
        blamed += bool(named)
        rightful = [v for v in judge.violations if v.clause == "assigned.change.only-as-due"]
        missed += (
            [(hex(altered.zxid), clauses, rightful)] if rightful and clauses == DROPPED else []
        )
        # Of an entry that is refused rightly, or by who may be dead, nothing is said later either.
        late = bool(named) and named[0].zxid != altered.zxid
        if late or (clauses == ASKED and not named):
            missed.append((hex(altered.zxid), clauses, named))
    assert missed == []
    assert 2 * blamed > len(wrong)


# What is wrong while a controller has nothing left to do ----------------------------------------


@pytest.mark.clause("shipped.isr.within-assigned")
@pytest.mark.parametrize(
    ("name", "wrong", "answer"), [("oscar", 0x80, 0x93), ("lima", 0x87, 0xAD), ("runH", 0xAF, 0xB1)]
)
def test_fault_that_passes_is_named_once_the_controller_was_at_another_event(
    name: str, wrong: int, answer: int, tmp_path: Path
) -> None:
    """A replica that is not assigned is left in sync: named there once an answer shows it.

    The answers are to the death of a broker, the birth of a partition, and what a leader asks for.
    """
    judge = Judge(PROFILE[name], get_readings(PROFILE[name]))
    log = read_log(name, tmp_path)
    for each in log:
        judge.feed(each)
        found = {v.zxid: v for v in judge.violations if v.clause == "shipped.isr.within-assigned"}
        assert (wrong in found) == (each.zxid >= answer)
    assert found[wrong].time_ms == next(each.time_ms for each in log if each.zxid == wrong)


@pytest.mark.clause("shipped.isr.within-assigned")
def test_what_a_leader_writes_itself_answers_nothing(tmp_path: Path) -> None:
    """Broker 4 is controller and leader: what it writes as a leader says nothing of its events."""
    judge = Judge("kafka-zk", get_profile("kafka-zk"))
    for each in read_log("oscar", tmp_path):
        ops = each.ops
        if each.zxid == 0x95:
            (state,) = ops
            assert isinstance(state, SetData)
            by_itself = (
                b'{"version":1,"leader":2,"leader_epoch":1,"controller_epoch":1,"isr":[4,3]}'
            )
            ops = (replace(state, data=by_itself),)
        if each.zxid <= 0x95 and each.zxid not in (0x93, 0x94):
            judge.feed(replace(each, ops=ops))
    assert "shipped.isr.within-assigned" not in {v.clause for v in judge.violations}


@pytest.mark.clause("shipped.complete.entry-last", "shipped.call.supplants-entry")
@pytest.mark.parametrize(
    ("name", "named"), [("alpha", {0x82, 0xB1}), ("runA", {0xB8, 0xBE}), ("sierra", set())]
)
def test_entry_dropped_for_no_call_is_named(name: str, named: set[int], tmp_path: Path) -> None:
    """A call that takes the place of an entry is written at once; where nothing is none was made.

    Until 2.6 (`sierra`) leaders write in-sync sets themselves, which says nothing of controllers.
    """
    log, found = read_log(name, tmp_path), set()
    for number, altered, clauses in list_entry_changes(log, dropped=True):
        judge = Judge(PROFILE[name], get_readings(PROFILE[name]))
        for each in [*log[:number], altered, *log[number + 1 :]] if clauses == DROPPED else []:
            judge.feed(each)
        found |= {v.zxid for v in judge.violations if v.clause == "shipped.complete.entry-last"}
    assert found == named


# Defects of Kafka that no log here shows ------------------------------------------------------


def judge_written(hosted: Logged, write: Written, **around: Any) -> str:
    """Return the clause by which a write is rejected under kafka-zk, "" where it is accepted."""
    live = frozenset({1, 2, 3, 4})
    seen = Environment(live=around.pop("live", live), known=live, controller_epoch=1, **around)
    outcome = accept(hosted, write, seen, get_profile("kafka-zk"))
    return outcome.clause if isinstance(outcome, Rejected) else ""


ONE = LeaderAndIsr(1, 4, 1, (1, 2))


@pytest.mark.clause("shipped.change.keeps-in-sync")
@pytest.mark.parametrize("isr", [(2,), (2, 1)])
def test_cancel_that_loses_the_last_copy_is_named(isr: tuple[int, ...]) -> None:
    """A cancel that leaves no in-sync replica assigned is named; one that leaves one is sound."""
    state = LeaderAndIsr(2, 3, 1, isr)
    moved = Logged((2, 3, 1), (2, 3), (1,), state)
    cancel = WriteLists(Assignment((1,)))
    assert judge_written(moved, cancel) == ("" if 1 in isr else "shipped.change.keeps-in-sync")


@pytest.mark.clause("shipped.entry.client-removes")
@pytest.mark.parametrize("profile", ["kafka-zk", "kafka-42"])
def test_entry_that_a_controller_writes_back_is_named(profile: str) -> None:
    """What a client has withdrawn is not for the controller to ask for again."""
    rules = make_rules(profile, get_profile(profile))
    hosted = Logged((1, 2), state=ONE, earlier=(3,))
    live = frozenset({1, 2})
    outcome = rules.accept(Possible(hosted), RestoreEntry((3,)), Environment(live, live))
    assert isinstance(outcome, Rejected)
    assert outcome.clause == "shipped.entry.client-removes"


@pytest.mark.clause("isr.change.live-only")
def test_leader_that_writes_by_itself_reads_no_registration() -> None:
    """Who is not registered may join by the leader's own write, not by the controller's."""
    hosted = Logged((1, 2, 3), state=ONE)
    joined = replace(ONE, isr=(1, 2, 3))
    dead = frozenset({1, 2, 4})
    assert judge_written(hosted, ChangeIsr(joined, 1), live=dead) == ""
    assert judge_written(hosted, AlterIsr(joined), live=dead) == "isr.change.live-only"
    assert judge_written(hosted, AlterIsr(joined)) == ""


@pytest.mark.clause("shipped.leader.none-when-stopped")
def test_death_of_a_leader_may_take_two_epochs() -> None:
    """A dead leader leaves the set and nobody leads, then a successor is elected."""
    hosted = Logged((1, 2, 3), state=LeaderAndIsr(1, 4, 1, (1, 2, 3)))
    dead = frozenset({2, 3, 4})
    lost = WriteState(LeaderAndIsr(-1, 5, 1, (2, 3)))
    assert judge_written(hosted, lost, live=dead) == ""
    assert judge_written(hosted, lost) == "isr.remove.only-when-due"
    kept = WriteState(LeaderAndIsr(2, 5, 1, (1, 2, 3)))
    assert judge_written(hosted, kept, live=dead) == "election.only-when-due"
    stopped = WriteState(LeaderAndIsr(2, 5, 1, (2, 3)))
    assert judge_written(hosted, stopped, stopping=frozenset({1})) == ""
    assert judge_written(hosted, kept, stopping=frozenset({1})) == "election.only-when-due"
    nobody = replace(hosted, state=lost.state)
    assert judge_written(nobody, WriteState(LeaderAndIsr(2, 6, 1, (2, 3))), live=dead) == ""
    late = WriteState(LeaderAndIsr(3, 6, 1, (2, 3)))
    assert judge_written(nobody, late, live=dead) == "election.assignment-order"


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", ["runC2"])
def test_spark_says_the_same(name: str, tmp_path: Path) -> None:
    """Both engines answer the same report of a log of Kafka, byte for byte."""
    read_log(name, tmp_path)
    profile, readings = PROFILE[name], get_readings(PROFILE[name])
    local = audit_named([tmp_path], profile, readings)
    spark = audit_named([tmp_path], profile, readings, master="local[2]")
    assert spark.as_json_dict() == local.as_json_dict()


def test_leaders_that_write_by_themselves_are_sound_as_well(tmp_path: Path) -> None:
    """The same history as it was written until Kafka 2.6 holds: leaders change their sets."""
    rules = make_rules("kafka-zk", get_profile("kafka-zk"))
    router, tracking, changed = rules.make_router(), Tracking(rules), 0
    for transaction in read_log("runA", tmp_path):
        for seen in router.feed(transaction):
            tracker = tracking.partitions.get((seen.chroot, seen.topic, seen.partition))
            old = None if tracker is None else tracker.partition.state
            new = seen.event.state if isinstance(seen.event, StateWritten) else None
            if old is not None and new is not None and new.leader_epoch == old.leader_epoch:
                changed += 1
                author = make_author(
                    7, frozenset({old.leader}), NONE, judge_authority, fenced=False
                )
                state = replace(new, controller_epoch=old.controller_epoch)
                event = StateWritten(state, old.leader)
                tracking.observe(seen._replace(event=event, author=author, session=7))
            else:
                tracking.observe(seen)
    assert changed > 50
    assert tracking.violations == []
    assert tracking.sum_up().undecided == {}


@pytest.mark.clause("controller.epoch.raised-by-one")
@pytest.mark.parametrize(
    ("events", "broken"),
    [
        ([(1, 1)], ""),
        ([(1, 0), (None, 1)], ""),
        ([(1, 0), (None, 1), (2, 1), (None, 2)], ""),
        ([(1, 0), (2, 0), (None, 1)], ""),
        ([(1, 0), (None, 2)], "controller.epoch.raised-by-one"),
        ([(1, 0), (None, 1), (None, 2)], "controller.epoch.raised-by-one"),
        ([(1, 0, False), (None, 1)], "controller.registered-ephemeral"),
    ],
)
def test_elections_took_two_transactions(events: list[Any], broken: str) -> None:
    """Before 2.1 the office and the epoch are two writes; neither may come without the other."""
    rules = make_rules("kafka-42", get_profile("kafka-42"))
    before, found = Controllership(), ""
    for broker, epoch, *ephemeral in events:
        outcome = rules.accept_election(before, ElectionSeen(broker, epoch, *ephemeral))
        found = found or (outcome.clause if isinstance(outcome, Rejected) else "")
        before = Controllership(broker, epoch)
    assert found == broken


# What changed between versions of Kafka -----------------------------------------------------------

DECIDES = {"controller.fenced": "old_01022", "insync.writer": "runA old_01022"}
"""By reading: logs whose verdict turns on it."""
VALUES = {reading.name: reading.values for reading in READINGS}


def test_readings_that_only_logs_turn_on_are_tried() -> None:
    """Each reading that no story can turn on is one that a test here tries."""
    assert find_judged_only() == {*DECIDES, "election.order"}


@pytest.mark.parametrize("name", DECIDES)
def test_value_decides_about_a_log(name: str, tmp_path: Path) -> None:
    """Under each value what is found in real logs is otherwise than under another."""
    found = {}
    for value in VALUES[name]:
        seen = []
        for log in DECIDES[name].split():
            profile = get_readings(PROFILE[log])
            judge = Judge(PROFILE[log], override_readings(profile, {name: value}))
            for transaction in read_log(log, tmp_path):
                judge.feed(transaction)
            seen.append(len(judge.violations))
        found[value] = tuple(seen)
    assert len(set(found.values())) == len(VALUES[name])


def test_first_to_lead_is_by_the_order_that_is_read() -> None:
    """Before 0.8.2 who stood first in the in-sync set may take over as well."""
    readings = get_profile("kafka-42")
    firsts = {
        value: find_firsts(
            (1, 2, 3),
            (3, 2),
            frozenset({2, 3}),
            override_readings(readings, {"election.order": value}),
        )
        for value in VALUES["election.order"]
    }
    assert firsts == {"assignment": (2,), "in-sync-set": (2, 3)}
