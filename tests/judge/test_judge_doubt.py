"""What cannot be known is unknown: neither red, nor green, and no longer than it has to be."""

from dataclasses import replace
from typing import Any

import pytest

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
from reassure_model.writes import CreateReassignment, DeleteRequest, WriteState
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
    for broker in range(2, 13):
        simulation.die(broker)
    simulation.judge.router.settle("")
    for broker in range(2, 13):
        simulation.come_back(broker)
    # Broker by broker the controller has noticed the others, and one it has not.
    isr = tuple(broker for broker in range(1, 13) if broker != returned)
    simulation.perform_raised(isr=isr)
    assert simulation.broken() == []
    assert simulation.judge.undecided[REMOVED] == 1
    assert simulation.judge.exercised[REMOVED] == 0


def test_what_doubt_allows_is_unknown(simulation: Any) -> None:
    """A write that only another view allows leaves the clause that rejects it unknown."""
    simulation.die(2)
    simulation.judge.router.settle("")
    simulation.come_back(2)
    before = dict(simulation.judge.exercised)
    simulation.perform_raised(isr=(1,))
    assert simulation.broken() == []
    found = simulation.verdict(REMOVED)
    assert (found.verdict, found.exercised, found.undecided) == (UNKNOWN, 0, 1)
    after = simulation.judge.exercised
    own = {"controller.write.by-controller", "controller.write.epoch-checked", "znode.well-formed"}
    assert {c for c in after if after[c] != before.get(c, 0)} == own


def test_doubt_excuses_nothing_that_no_view_allows(simulation: Any) -> None:
    """A broker in doubt does not excuse the removal of another one."""
    simulation.die(3)
    simulation.judge.router.settle("")
    simulation.come_back(3)
    zxid = simulation.perform_raised(isr=(1,))
    assert simulation.broken() == [(REMOVED, zxid)]


def returned_before_the_term(simulation: Any) -> int:
    """Have a broker return, then a controller elected, which takes it out of the in-sync set."""
    simulation.die(2)
    simulation.judge.router.settle("")
    simulation.come_back(2)
    simulation.elect()
    state = replace(simulation.state, leader_epoch=simulation.state.leader_epoch + 1)
    return int(simulation.perform(WriteState(replace(state, isr=(1,), controller_epoch=2))))


def test_what_is_older_than_the_term_is_not_in_doubt(simulation: Any) -> None:
    """A controller reads who is registered after it was elected, so it knew."""
    zxid = returned_before_the_term(simulation)
    assert simulation.broken() == [(REMOVED, zxid)]


def test_leaders_do_not_begin_anew_with_a_term(simulation: Any) -> None:
    """What a leader has not noticed it may not have noticed, whoever was elected since."""
    simulation.change_isr(1)
    simulation.judge.router.settle("")
    simulation.die(2)
    simulation.elect()
    simulation.change_isr(1, 2)
    assert simulation.broken() == []
    assert simulation.judge.undecided["isr.change.live-only"] == 1


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


def test_grace_counts_from_the_newest_change() -> None:
    """Each broker has a grace of its own, and a later change of it begins another."""
    changes = Changes()
    changes.note_registration(1, ChangeTime(10, 1000))
    changes.note_registration(2, ChangeTime(11, 2000))
    how: dict[str, Any] = {"whole": True, "fleeting": frozenset(), "live": frozenset({1, 2})}
    assert changes.get_doubt("t", 2000, 1000, 0, **how).brokers == {1, 2}
    assert changes.get_doubt("t", 2001, 1000, 0, **how).brokers == {2}
    changes.note_registration(1, ChangeTime(12, 2500))
    assert changes.get_doubt("t", 3001, 1000, 0, **how).brokers == {1}
    assert changes.get_doubt("t", 3500, 1000, 0, **how).peers == {1}
    assert changes.get_doubt("t", 3501, 1000, 0, **how) is CERTAIN


def test_doubt_begins_with_the_term_and_ends_at_rest() -> None:
    """Only what came after the election is news to a controller, and after a rest nothing is."""
    changes = Changes()
    changes.note_registration(1, ChangeTime(10, 1000))
    changes.note_registration(2, ChangeTime(12, 1000))
    how: dict[str, Any] = {"whole": True, "fleeting": frozenset(), "live": frozenset({1, 2})}
    found = changes.get_doubt("t", 1000, 1000, 11, **how)
    assert (found.brokers, found.peers) == ({2}, {1, 2})
    changes.settle(12)
    assert changes.get_doubt("t", 1000, 1000, 0, **how) is CERTAIN
    changes.note_registration(3, ChangeTime(13, 1000))
    assert changes.get_doubt("t", 10**9, 1000, 0, **how).brokers == {3}


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
    how: dict[str, Any] = {"whole": True, "fleeting": frozenset(), "live": frozenset()}
    assert changes.get_doubt("t", 2000, 1000, 9, **how).earlier == (before,)
    assert changes.get_doubt("u", 2000, 1000, 9, **how) is CERTAIN
    assert changes.get_doubt("t", 2000, 1000, 10, **how) is CERTAIN
    assert changes.get_doubt("t", 2001, 1000, 9, **how) is CERTAIN


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
    state = replace(simulation.state, leader_epoch=simulation.state.leader_epoch + 2)
    simulation.perform(WriteState(state))
    assert simulation.broken() == [(REMOVED, first)]
    assert simulation.judge.undecided["leader-epoch.raised-by-one"] == 1
    assert simulation.verdict("leader-epoch.raised-by-one").verdict == UNKNOWN


def refuse(simulation: Any, *target: int) -> None:
    """Have a request removed as if it named a broker that never was."""
    sequence = simulation.submit(*target)
    simulation.perform(DeleteRequest(sequence))


def record(simulation: Any, *target: int) -> int:
    """Have a request recorded."""
    simulation.submit(*target)
    (write,) = [next(simulation.steps())]
    assert isinstance(write, CreateReassignment)
    return int(simulation.perform(write))


def test_broker_that_died_long_ago_was_there(simulation: Any) -> None:
    """A broker that was registered once may be asked for, and may not be refused as unknown."""
    simulation.die(4)
    simulation.judge.router.settle("")
    record(simulation, 2, 4)
    assert simulation.broken() == []


def test_broker_that_has_a_configuration_may_not_be_refused(simulation: Any) -> None:
    """`/config/brokers/ID` tells every controller that the broker exists."""
    simulation.die(4)
    simulation.judge.router.settle("")
    refuse(simulation, 2, 4)
    assert [clause for clause, _ in simulation.broken()] == ["request.delete.child-first"]


def test_broker_that_left_nothing_behind_may_be_refused(simulation: Any) -> None:
    """Without a configuration a controller may not have heard of a broker that is gone."""
    simulation.write(Delete(znodes.broker_config_path(4)), session=50)
    simulation.die(4)
    simulation.judge.router.settle("")
    refuse(simulation, 2, 4)
    assert simulation.broken() == []
    assert simulation.judge.undecided["request.delete.child-first"] == 1
    record(simulation, 2, 4)
    assert simulation.broken() == []


def test_first_registration_may_not_have_been_noticed(simulation: Any) -> None:
    """A controller that has not heard of a new broker refuses it, and one that has records it."""
    simulation.judge.router.settle("")
    registration = znodes.encode_broker("127.0.0.1", 9092, 0)
    path = znodes.broker_path(9)
    simulation.write(Create(path, registration, ephemeral=True), session=9)
    refuse(simulation, 2, 9)
    assert simulation.broken() == []
    simulation.judge.router.settle("")
    record(simulation, 2, 9)
    assert simulation.broken() == []


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
    for broker in range(2, brokers + 1):
        simulation.die(broker)
    simulation.judge.router.settle("")
    for broker in range(2, brokers + 1):
        simulation.come_back(broker)
    state = replace(simulation.state, leader_epoch=simulation.state.leader_epoch + 2)
    zxid = simulation.perform(WriteState(state))
    clause = "leader-epoch.raised-by-one"
    assert simulation.broken() == ([(clause, zxid)] if red else [])
    assert simulation.judge.undecided[clause] == (0 if red else 1)


def test_doubt_lasts_until_somebody_says_that_the_cluster_rests(simulation: Any) -> None:
    """Where moments of rest are told a change is news until the next one, however long after."""
    simulation.die(2)
    simulation.come_back(2)
    simulation.perform_raised(isr=(1,))
    assert simulation.broken() == []
    simulation.change_isr(1, 2)
    simulation.judge.quiesce("")
    zxid = simulation.perform_raised(isr=(1,))
    assert simulation.broken() == [(REMOVED, zxid)]


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
    how: dict[str, Any] = {"whole": True, "fleeting": frozenset(), "live": frozenset()}
    changes.get_doubt("t", 5000, 1000, 0, **how)
    assert changes.answer_until_ms >= 5000
    note(changes)
    assert changes.answer_until_ms < 5000


def test_broker_with_a_configuration_is_known_before_it_ever_registers(simulation: Any) -> None:
    """`/config/brokers/ID` makes a broker known from then on, and its removal ends that."""
    path = znodes.broker_config_path(9)
    simulation.write(Create(path, znodes.encode_config({})), session=50)
    simulation.judge.router.settle("")
    record(simulation, 2, 9)
    simulation.run()
    assert simulation.broken() == []
    simulation.write(Delete(path), session=50)
    simulation.judge.router.settle("")
    simulation.submit(3, 9)
    (write,) = [next(simulation.steps())]
    assert isinstance(write, DeleteRequest)


def test_first_configuration_may_not_have_been_noticed(simulation: Any) -> None:
    """A controller that has not heard of a broker by its configuration yet may refuse it."""
    simulation.judge.router.settle("")
    path = znodes.broker_config_path(9)
    simulation.write(Create(path, znodes.encode_config({})), session=50)
    refuse(simulation, 2, 9)
    assert simulation.broken() == []
    assert simulation.judge.undecided["request.delete.child-first"] == 1


@pytest.mark.parametrize("op", [Create, SetData])
def test_settings_of_a_known_broker_are_no_news_of_it(simulation: Any, op: Any) -> None:
    """Writing the settings of a broker that is known gives no excuse for not having heard of it."""
    if op is Create:
        simulation.write(Delete(znodes.broker_config_path(4)), session=50)
    simulation.judge.router.settle("")
    path, data = znodes.broker_config_path(4), znodes.encode_config({"note": "x"})
    simulation.write(Create(path, data) if op is Create else SetData(path, data, 7), session=50)
    refuse(simulation, 2, 4)
    assert [clause for clause, _ in simulation.broken()] == ["request.delete.child-first"]


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


def test_record_that_nobody_asked_for_is_red_whoever_is_in_doubt(make_simulation: Any) -> None:
    """However many brokers a record names that are in doubt, no view makes it one asked for."""
    simulation = make_simulation()
    simulation.start(brokers=15)
    for broker in range(2, 16):
        simulation.die(broker)
    simulation.run()
    for broker in range(2, 16):
        simulation.come_back(broker)
    zxid = simulation.perform(CreateReassignment(Reassignment(tuple(range(2, 16)), 2)))
    assert simulation.broken() == [("child.from-request", zxid)]
