"""What cannot be known is unknown: neither red, nor green, and no longer than it has to be."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from history_steps import (
    change_isr,
    come_back,
    die,
    elect,
    perform,
    put_state,
    raise_state,
    record,
    refuse,
    rest,
    run,
    settle,
    tell,
    write,
)

from reassure_judge import doubt, tracker
from reassure_judge.doubt import CERTAIN, GRACE_MS, Changes, ChangeTime, Doubt, Setting, Views
from reassure_judge.judge import Judge
from reassure_judge.verdicts import (
    HOLDS,
    NOT_EXERCISED,
    UNKNOWN,
    VIOLATED,
    Violation,
    count_broken,
    summarise,
)
from reassure_model.partition import Environment, Reassignment
from reassure_model.writes import CreateReassignment, DeleteRequest
from reassure_spec import znodes
from reassure_spec.readings import get_profile
from reassure_zookeeper.transactions import Check, Create, Delete, SetData, committed, multi

PROFILE = "kip-236"
REMOVED = "isr.remove.only-when-due"


@pytest.mark.parametrize("returned", range(2, 13))
def test_any_number_of_brokers_may_come_at_once(make_simulation: Any, returned: int) -> None:
    """However many brokers are in doubt, and whichever was not noticed, nothing is violated."""
    simulation = make_simulation()
    simulation.start(brokers=12, assigned=tuple(range(1, 13)))
    restart_all(simulation, range(2, 13))
    # Broker by broker the controller has noticed the others, and one it has not.
    isr = tuple(broker for broker in range(1, 13) if broker != returned)
    simulation.perform_raised(isr=isr)
    assert simulation.broken() == []
    assert simulation.judge.undecided[REMOVED] == 1
    assert simulation.judge.exercised[REMOVED] == 0


CHILD_FIRST = "request.delete.child-first"
LIVE_ONLY = "isr.change.live-only"
STRANGE = znodes.broker_config_path(9)
NOTES = znodes.encode_config({"note": "x"})
KNOWN = znodes.broker_config_path(4)
NEWCOMER = Create(znodes.broker_path(9), znodes.encode_broker("h", 1, 0), ephemeral=True)
BACK = (die(2), settle, come_back(2))
NO_MORE = (write(Delete(KNOWN)), die(4), settle)
STORIES = {
    "doubt excuses nothing that no view allows": tell(
        die(3), settle, come_back(3), raise_state(isr=(1,)), broken=REMOVED
    ),
    "what is older than the term is not in doubt": tell(
        *BACK, elect(), put_state(isr=(1,), controller_epoch=2), broken=REMOVED
    ),
    "leaders do not begin anew with a term": tell(
        change_isr(1), settle, die(2), elect(), change_isr(1, 2), undecided=LIVE_ONLY
    ),
    "a return may not have been noticed": tell(*BACK, raise_state(isr=(1,)), undecided=REMOVED),
    "a return was noticed in the end": tell(
        *BACK,
        raise_state(isr=(1,)),
        change_isr(1, 2),
        settle,
        raise_state(isr=(1,)),
        broken=REMOVED,
    ),
    "doubt lasts until somebody says that the cluster rests": tell(
        die(2), come_back(2), raise_state(isr=(1,)), undecided=REMOVED
    ),
    "doubt ends when somebody says that the cluster rests": tell(
        *(die(2), come_back(2), raise_state(isr=(1,)), change_isr(1, 2), rest),
        raise_state(isr=(1,)),
        broken=REMOVED,
    ),
    "a broker that died long ago was there": tell(die(4), settle, record(2, 4)),
    "a broker that has a configuration may not be refused": tell(
        die(4), settle, refuse(2, 4), broken=CHILD_FIRST
    ),
    "a broker that left nothing behind may be refused": tell(
        *NO_MORE, refuse(2, 4), undecided=CHILD_FIRST
    ),
    "a broker that left nothing behind may be recorded": tell(*NO_MORE, refuse(2, 4), record(2, 4)),
    "a first registration may not have been noticed": tell(
        settle, write(NEWCOMER, session=9), refuse(2, 9)
    ),
    "a first registration was noticed": tell(
        settle, write(NEWCOMER, session=9), refuse(2, 9), settle, record(2, 9)
    ),
    "a first configuration may not have been noticed": tell(
        settle, write(Create(STRANGE, NOTES)), refuse(2, 9), undecided=CHILD_FIRST
    ),
    "a broker with a configuration is known before it ever registers": tell(
        write(Create(STRANGE, NOTES)), settle, record(2, 9), run
    ),
    "a broker without a configuration is not known any more": tell(
        *(write(Create(STRANGE, NOTES)), write(Delete(STRANGE)), settle), *(refuse(2, 9), rest)
    ),
    "settings made anew are no news of a known broker": tell(
        *(write(Delete(KNOWN)), settle, write(Create(KNOWN, NOTES))),
        refuse(2, 4),
        broken=CHILD_FIRST,
    ),
    "settings are no news of a known broker": tell(
        settle, write(SetData(KNOWN, NOTES, 7)), refuse(2, 4), broken=CHILD_FIRST
    ),
}
"""By what is known or in doubt: what is done, and what is said of it."""


@pytest.mark.parametrize("name", STORIES)
def test_doubt_begins_and_ends(simulation: Any, name: str) -> None:
    """What may not have been noticed yet is unknown, and what must have been is red."""
    STORIES[name].check(simulation)


def restart_all(simulation: Any, brokers: Iterable[int]) -> None:
    """Let brokers die, which everybody notices, and come back, which nobody may have noticed."""
    perform(simulation, (*map(die, brokers), settle, *map(come_back, brokers)))


def test_record_that_nobody_asked_for_is_red_whoever_is_in_doubt(make_simulation: Any) -> None:
    """However many brokers a record names that are in doubt, no view makes it one asked for."""
    simulation = make_simulation()
    simulation.start(brokers=15)
    restart_all(simulation, range(2, 16))
    zxid = simulation.perform(CreateReassignment(Reassignment(tuple(range(2, 16)), 2)))
    assert simulation.broken() == [("child.from-request", zxid)]


def test_what_doubt_allows_is_unknown(simulation: Any) -> None:
    """A write that only another view allows leaves the clause that rejects it unknown."""
    perform(simulation, BACK)
    before = dict(simulation.judge.exercised)
    simulation.perform_raised(isr=(1,))
    found = simulation.verdict(REMOVED)
    assert (found.verdict, found.exercised, found.undecided) == (UNKNOWN, 0, 1)
    after = simulation.judge.exercised
    own = {"controller.write.by-controller", "controller.write.epoch-checked", "znode.well-formed"}
    assert {c for c in after if after[c] != before.get(c, 0)} == own


def join_late(simulation: Any, late_ms: int) -> Judge:
    """Judge a leader that takes a replica in so long after that has died."""
    history = list(simulation.history)
    gone = history[-1].time_ms + 10**6
    path = znodes.broker_path(2)
    history.append(committed(Delete(path), zxid=200, session_id=2, time_ms=gone))
    write = simulation.state_op(replace(simulation.state, isr=(1, 2)))
    history.append(committed(write, zxid=201, session_id=1, time_ms=gone + late_ms))
    judge = Judge(PROFILE, get_profile(PROFILE), grace_ms=5000)
    for transaction in history:
        judge.feed(transaction)
    return judge


def test_doubt_ends_with_the_grace(simulation: Any) -> None:
    """At the end of the grace a change may still be news, one millisecond later it is not."""
    simulation.change_isr(1)
    for late_ms in (0, 4999, 5000):
        assert join_late(simulation, late_ms).violations == []
    late = join_late(simulation, 5001).violations
    assert [v.clause for v in late] == ["isr.change.live-only"]


def find_doubt(changes: Changes, now_ms: int, *, since: int = 0, topic: str = "t") -> Doubt:
    """Return what is in doubt in a whole history, with a grace of a second."""
    live = frozenset({1, 2})
    return changes.get_doubt(
        topic, now_ms, 1000, since, whole=True, fleeting=frozenset(), live=live
    )


def test_grace_counts_from_the_newest_change() -> None:
    """Each broker has a grace of its own, and a later change of it begins another."""
    changes = Changes()
    changes.note_registration(1, ChangeTime(10, 1000))
    changes.note_registration(2, ChangeTime(11, 2000))
    assert find_doubt(changes, 2000).brokers == {1, 2}
    assert find_doubt(changes, 2001).brokers == {2}
    changes.note_registration(1, ChangeTime(12, 2500))
    assert find_doubt(changes, 3001).brokers == {1}
    assert find_doubt(changes, 3500).peers == {1}
    assert find_doubt(changes, 3501) is CERTAIN


def test_doubt_begins_with_the_term_and_ends_at_rest() -> None:
    """Only what came after the election is news to a controller, and after a rest nothing is."""
    changes = Changes()
    changes.note_registration(1, ChangeTime(10, 1000))
    changes.note_registration(2, ChangeTime(12, 1000))
    found = find_doubt(changes, 1000, since=11)
    assert (found.brokers, found.peers) == ({2}, {1, 2})
    changes.settle(12)
    assert find_doubt(changes, 1000) is CERTAIN
    changes.note_registration(3, ChangeTime(13, 1000))
    assert find_doubt(changes, 10**9).brokers == {3}


def test_views_are_all_there_are() -> None:
    """Every broker in doubt that matters is seen in every way, and no other one."""
    around = Environment(frozenset({1, 2, 9}), frozenset({1, 2, 3, 9}))
    doubt_of = Doubt(brokers=frozenset({2, 3, 9}), fresh=frozenset({3}))
    views = Views(around, doubt_of, frozenset({1, 2, 3}), by_leader=False)
    assert views.complete
    found = {(view.live - {9}, view.known) for view in views}
    lives = [frozenset(live) for live in ({1}, {1, 2}, {1, 3}, {1, 2, 3})]
    known = around.known
    expected = {(live, known) for live in lives} | {(live, known - {3}) for live in lives[:2]}
    assert found == expected - {(around.live - {9}, known)}
    assert all(9 in view.live for view in views)


def test_earlier_settings_are_seen_with_every_view() -> None:
    """A view may hold the settings of before, with the brokers of now or of before."""
    around = Environment(frozenset({1}), frozenset({1, 2}), 2, 5)
    earlier = Environment(frozenset(), frozenset(), 1, 4)
    doubt_of = Doubt(brokers=frozenset({2}), earlier=(earlier,))
    found = set(Views(around, doubt_of, frozenset({1, 2}), by_leader=False))
    both = frozenset({1, 2})
    assert found == {
        replace(around, min_insync_replicas=1),
        replace(around, live=both),
        replace(around, live=both, min_insync_replicas=1),
    }


def test_settings_of_another_topic_or_of_before_the_term_are_no_doubt() -> None:
    """A topic's earlier settings are in doubt for it alone, and not for a later term."""
    changes = Changes()
    before = Environment(frozenset(), frozenset(), 2)
    changes.note_setting(Setting(10, 1000, "t", before))
    assert find_doubt(changes, 2000, since=9).earlier == (before,)
    assert find_doubt(changes, 2000, since=9, topic="u") is CERTAIN
    assert find_doubt(changes, 2000, since=10) is CERTAIN
    assert find_doubt(changes, 2001, since=9) is CERTAIN


def test_more_views_than_are_tried_make_it_unknown(
    simulation: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where not every view can be tried a rejected write is neither red nor green."""
    for broker in (3, 4):
        simulation.die(broker)
    simulation.judge.router.settle("")
    simulation.submit(3, 4)
    simulation.run()
    for broker in (3, 4):
        simulation.come_back(broker)
    monkeypatch.setattr(doubt, "MOST_VIEWS", 2)
    simulation.perform_raised(isr=(1,))
    assert simulation.broken() == []
    assert simulation.judge.undecided["complete.target-in-sync"] == 1
    assert simulation.state.isr == (1,)


def test_more_states_than_are_kept_make_it_unknown(
    simulation: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where not every possible state can be kept, what is rejected from there is unknown."""
    monkeypatch.setattr(tracker, "MOST_STATES", 1)
    first = simulation.perform_raised(isr=(1,))
    sequence = simulation.submit(2, 3)
    simulation.write(simulation.find_op(DeleteRequest(sequence)), session=50)
    put_state(by=2)(simulation)
    assert simulation.broken() == [(REMOVED, first)]
    assert simulation.judge.undecided["leader-epoch.raised-by-one"] == 1
    assert simulation.verdict("leader-epoch.raised-by-one").verdict == UNKNOWN


@pytest.mark.parametrize("whole", [True, False])
def test_snapshot_does_not_say_who_never_was(simulation: Any, whole: bool) -> None:
    """A broker of which a history says nothing may have lived before it, if there is a before."""
    judge = Judge(PROFILE, get_profile(PROFILE))
    judge.router = judge.rules.make_router(whole=whole)
    state = simulation.state_op(simulation.state)
    judge.load(
        [
            (znodes.CONTROLLER, znodes.encode_controller(1, 0), 900),
            (znodes.CONTROLLER_EPOCH, b"1", 0),
            (znodes.broker_path(1), znodes.encode_broker("h", 1, 0), 1),
            (znodes.broker_path(2), znodes.encode_broker("h", 1, 0), 2),
            (znodes.topic_path("orders"), znodes.encode_topic({0: (1, 2)}), 0),
            (znodes.topic_path("other"), znodes.encode_topic({0: (1, 8)}), 0),
            (state.path, state.data, 0),
        ]
    )
    request = znodes.encode_request(znodes.RequestZnode({("orders", 0): (2, 7)}))
    judge.feed(committed(Create(znodes.request_path(0), request), zxid=100, time_ms=10**7))
    child = Create(
        znodes.reassignment_path("orders", 0),
        znodes.encode_reassignment(znodes.ReassignmentZnode(2, (2, 7))),
    )
    check = Check(znodes.CONTROLLER_EPOCH, 2)
    judge.feed(multi(check, child, zxid=101, session_id=900, time_ms=10**7))
    clause = "request.refuse.unknown-broker"
    assert [v.clause for v in judge.violations] == ([clause] if whole else [])
    assert judge.undecided[clause] == (0 if whole else 1)
    assert 8 in judge.view().known
    assert 7 not in judge.view().known


def violation(clause: str, besides: tuple[str, ...] = ()) -> Violation:
    """Return a violation of which only the clauses matter."""
    return Violation(1, "", "t", 0, clause, "", 0, "", "", "", "", besides=besides)


@pytest.mark.parametrize(
    ("exercised", "undecided", "broken", "settled", "verdict"),
    [
        (0, 0, False, False, NOT_EXERCISED),
        (3, 0, False, False, HOLDS),
        (3, 1, False, False, UNKNOWN),
        (0, 1, False, False, UNKNOWN),
        (3, 1, False, True, HOLDS),
        (0, 1, False, True, UNKNOWN),
        (3, 1, True, False, VIOLATED),
        (3, 1, True, True, VIOLATED),
    ],
)
def test_verdicts_in_order(
    exercised: int, undecided: int, broken: bool, settled: bool, verdict: str
) -> None:
    """Violated before unknown, unknown before holds; a cluster brought to rest may settle it."""
    clause = "isr.never-empty"
    found = next(
        verdict
        for verdict in summarise(
            PROFILE,
            {clause: exercised},
            {clause: 1} if broken else {},
            undecided={clause: undecided},
            settled=settled,
        )
        if verdict.id == clause
    )
    assert (found.verdict, found.exercised) == (verdict, exercised + broken)
    assert found.undecided == undecided


def test_what_a_write_breaks_besides_does_not_hold() -> None:
    """A clause that was broken as a consequence is violated, and no violation of its own."""
    broken = count_broken([violation("election.clean", ("leader.in-isr",))])
    found = summarise(PROFILE, {"leader.in-isr": 4}, broken)
    verdicts = {verdict.id: (verdict.verdict, verdict.exercised) for verdict in found}
    assert verdicts["election.clean"] == (VIOLATED, 1)
    assert verdicts["leader.in-isr"] == (VIOLATED, 4)


def test_exercises_are_counted_one_by_one(simulation: Any) -> None:
    """Each accepted write counts each clause that it put to the test once, a rejected one none."""
    before = simulation.judge.exercised.copy()
    simulation.change_isr(1)
    grown = simulation.judge.exercised - before
    assert grown == {
        "znode.well-formed": 1,
        "isr.change.keeps-leader": 1,
        "isr.change.by-leader": 1,
        "isr.change.leader-kept": 1,
    }
    before = simulation.judge.exercised.copy()
    simulation.perform_raised(leader=9, isr=(9,))
    assert simulation.judge.exercised - before == {
        "controller.write.by-controller": 1,
        "controller.write.epoch-checked": 1,
    }
    simulation.change_isr(1, session=3)
    counts = {v.id: v.exercised for v in simulation.judge.report().verdicts}
    assert counts["isr.change.by-leader"] == before["isr.change.by-leader"] + 1


def test_grace_is_half_a_minute_unless_told_otherwise() -> None:
    """A judge that is told nothing takes the grace that the pages name."""
    assert GRACE_MS == 30_000
    assert Judge(PROFILE, get_profile(PROFILE)).router.grace_ms == GRACE_MS
    assert Judge(PROFILE, get_profile(PROFILE), grace_ms=7).router.grace_ms == 7


@pytest.mark.parametrize(("brokers", "red"), [(7, True), (13, True), (14, False)])
def test_every_view_of_twelve_brokers_is_tried(
    make_simulation: Any, brokers: int, red: bool
) -> None:
    """What no view of up to twelve brokers in doubt allows is red; of more it is unknown."""
    simulation = make_simulation()
    simulation.start(brokers=brokers, assigned=tuple(range(1, brokers + 1)))
    restart_all(simulation, range(2, brokers + 1))
    zxid = put_state(by=2)(simulation)
    clause = "leader-epoch.raised-by-one"
    assert simulation.broken() == ([(clause, zxid)] if red else [])
    assert simulation.judge.undecided[clause] == (0 if red else 1)


@pytest.mark.parametrize(
    "note",
    [
        lambda changes: changes.note_registration(1, ChangeTime(20, 5000)),
        lambda changes: changes.note_first_name(1, ChangeTime(20, 5000)),
        lambda changes: changes.note_setting(
            Setting(20, 5000, "t", Environment(frozenset(), frozenset()))
        ),
        lambda changes: changes.settle(20),
    ],
    ids=["registration", "first name", "setting", "rest"],
)
def test_whatever_is_noted_ends_the_answer_of_before(note: Any) -> None:
    """An answer is good only until something more is known, of whatever kind."""
    changes = Changes()
    find_doubt(changes, 5000)
    assert changes.answer_until_ms >= 5000
    note(changes)
    assert changes.answer_until_ms < 5000


def test_what_is_accepted_after_too_many_states_is_unknown_too(
    simulation: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where states were given up a write that the others allow proves nothing of its clauses."""
    monkeypatch.setattr(tracker, "MOST_STATES", 1)
    simulation.perform_raised(isr=(1,))
    sequence = simulation.submit(2, 3)
    simulation.write(simulation.find_op(DeleteRequest(sequence)), session=50)
    clause = "isr.change.by-leader"
    before = simulation.judge.exercised[clause]
    simulation.change_isr(1, 2)
    assert simulation.judge.undecided[clause] == 1
    assert simulation.judge.exercised[clause] == before
    assert simulation.verdict(clause).verdict == UNKNOWN
