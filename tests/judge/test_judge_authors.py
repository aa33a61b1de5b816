"""Every write has an author, and what only a controller may write is a controller's."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from history_steps import Act, elect, read_log, tell, win, write

from reassure_judge.authors import Terms, judge_authority, make_author
from reassure_judge.judge import Judge
from reassure_judge.protocols import make_rules
from reassure_judge.verdicts import UNKNOWN
from reassure_model.controllers import ACTING, DEPOSED, NONE
from reassure_model.controllers import UNKNOWN as UNKNOWN_OFFICE
from reassure_model.writes import DeleteRequest, WriteAssigned, WriteState
from reassure_spec import znodes
from reassure_spec.readings import get_profile
from reassure_zookeeper.transactions import (
    Check,
    CloseSession,
    Create,
    Delete,
    SetData,
    committed,
    multi,
)

CONTROLLER = 900
OTHER = 901
PROFILE = "kip-236"


def write_as(simulation: Any, session: int, version: int | None = None) -> int:
    """Announce a new leader epoch in a session, under a check by a recorded version."""
    simulation.submit(2, 3)
    for owed in simulation.steps():
        fence = simulation.epoch + 1 if version is None else version
        check = Check(simulation.path(znodes.CONTROLLER_EPOCH), fence)
        ops = (check, simulation.find_op(owed))
        return int(simulation.write(*ops, session=session))
    raise AssertionError("nothing was owed")


@pytest.mark.clause("controller.write.by-controller")
@pytest.mark.parametrize("version", [None, -1])
def test_deposed_controller_is_named_whatever_it_checks(
    simulation: Any, version: int | None
) -> None:
    """One whose term is over may not write, under the fence of the next term neither.

    Who checks nothing breaks two rules in one violation.
    """
    simulation.elect(OTHER)
    zxid = write_as(simulation, CONTROLLER, version)
    (found,) = simulation.judge.violations
    assert (found.clause, found.zxid) == ("controller.write.by-controller", zxid)
    assert found.author == "deposed controller"
    unfenced = ("controller.write.epoch-checked",) if version else ()
    assert found.besides == unfenced
    verdicts = {simulation.verdict(clause).verdict for clause in (found.clause, *unfenced)}
    assert verdicts == {"violated"}
    assert found.time_ms == zxid * 100_000


def act(session: int, version: int | None = None) -> Act:
    """Return the same as an act."""
    return lambda sim: write_as(sim, session, version)


BY, CHECKED = "controller.write.by-controller", "controller.write.epoch-checked"
STORIES = {
    "a check of any version": tell(act(CONTROLLER, -1), broken=CHECKED),
    "a check of a stale version": tell(act(CONTROLLER, 1), broken=CHECKED),
    "another broker": tell(act(1), broken=BY),
    "a plain client": tell(act(50), broken=BY),
    # While nobody is elected the fence of the last controller holds, and so does its right.
    "the last winner": tell(write(Delete(znodes.CONTROLLER)), act(CONTROLLER)),
    "a winner of two terms": tell(elect(OTHER), elect(), act(CONTROLLER)),
}


@pytest.mark.clause(CHECKED, BY)
@pytest.mark.parametrize("name", STORIES)
def test_author_is_judged_by_session_and_fence(simulation: Any, name: str) -> None:
    """A check that always passes is no fence, and a check alone makes nobody a controller."""
    STORIES[name].check(simulation)


def test_controller_elected_in_two_transactions_still_acts(simulation: Any) -> None:
    """Who owns `/controller` when the epoch is raised has won, though he did it in two steps."""
    simulation.write(Delete(znodes.CONTROLLER), session=50)
    simulation.epoch += 1
    steps = win(2, simulation.epoch, 2)
    created, raised = (simulation.write(op, session=OTHER) for op in steps)
    write_as(simulation, OTHER)
    clause = "controller.election.atomic"
    assert simulation.broken() == [(clause, created), (clause, raised)]


def test_broker_that_is_controller_writes_as_either(make_simulation: Any) -> None:
    """A session that is both changes the in-sync set as leader, and raises epochs as controller."""
    simulation = make_simulation()
    simulation.start()
    simulation.elect(1)
    simulation.change_isr(1)
    simulation.change_isr(1, 2)
    assert simulation.broken() == []
    state = replace(simulation.state, leader_epoch=1, controller_epoch=2)
    zxid = simulation.write(simulation.find_op(WriteState(state)), session=1)
    (found,) = simulation.judge.violations
    assert (found.clause, found.zxid) == ("controller.write.epoch-checked", zxid)
    assert found.author == "broker 1, controller"


@pytest.mark.parametrize("again", [False, True])
def test_author_is_unknown_in_the_middle_of_a_history(simulation: Any, again: bool) -> None:
    """Where the election was not seen nobody can say who wrote: neither red nor green.

    Nor where the parent of the brokers was deleted and made again: that is no cluster's birth.
    """
    first = next(i for i, t in enumerate(simulation.history) if znodes.CONTROLLER in str(t.ops[0]))
    simulation.submit(2, 3)
    simulation.run()
    judge = Judge(PROFILE, get_profile(PROFILE))
    judge.router = judge.rules.make_router(whole=False)
    rest = simulation.history[first + 2 :]
    for transaction in rest[:1]:
        judge.feed(transaction)
    if again:
        zxid, made = rest[0].zxid, Create(znodes.BROKER_IDS, b"")
        judge.feed(committed(Delete(znodes.BROKER_IDS), zxid=zxid))
        judge.feed(committed(made, zxid=zxid))
    for transaction in rest[1:]:
        judge.feed(transaction)
    clause = "controller.write.by-controller"
    assert judge.undecided[clause] > 0
    assert judge.exercised[clause] == 0
    assert next(v.verdict for v in judge.report().verdicts if v.id == clause) == UNKNOWN
    assert clause not in {violation.clause for violation in judge.tracking.violations}


def test_snapshot_says_who_acts(simulation: Any) -> None:
    """The owner of `/controller` in a snapshot is the controller, and another session is not."""
    judge = Judge(PROFILE, get_profile(PROFILE))
    judge.router = judge.rules.make_router(whole=False)
    state = simulation.state_op(simulation.state)
    judge.load(
        [
            (znodes.CONTROLLER, znodes.encode_controller(1, 0), CONTROLLER),
            (znodes.CONTROLLER_EPOCH, b"1", 0),
            (znodes.broker_path(1), znodes.encode_broker("h", 1, 0), 1),
            (znodes.topic_path("orders"), znodes.encode_topic({0: (1, 2)}), 0),
            (state.path, state.data, 0),
        ]
    )
    write = simulation.find_op(WriteAssigned((1, 2, 3)))
    for zxid, session in ((100, CONTROLLER), (101, 1)):
        check = Check(znodes.CONTROLLER_EPOCH, 7)
        judge.feed(multi(check, write, zxid=zxid, session_id=session, time_ms=10**7))
        write = simulation.find_op(WriteAssigned((1, 2)))
    assert [v.zxid for v in judge.violations if "by-controller" in v.clause] == [101]


def test_request_withdrawn_by_its_maker_is_no_act_of_a_controller(simulation: Any) -> None:
    """A client may take its request back; a broker may not."""
    sequence = simulation.submit(2, 3)
    simulation.write(simulation.find_op(DeleteRequest(sequence)), session=50)
    simulation.judge.quiesce("")
    assert simulation.broken() == []
    sequence = simulation.submit(2, 3)
    zxid = simulation.write(simulation.find_op(DeleteRequest(sequence)), session=1)
    assert ("controller.write.by-controller", zxid) in simulation.broken()


def test_record_for_a_request_withdrawn_meanwhile_is_undecided(simulation: Any) -> None:
    """A controller that has read a request may record it after it was withdrawn."""
    sequence = simulation.submit(2, 3)
    record = next(simulation.steps())
    simulation.write(simulation.find_op(DeleteRequest(sequence)), session=50)
    simulation.perform(record)
    assert simulation.broken() == []
    assert simulation.judge.undecided["child.from-request"] == 1


@pytest.mark.parametrize("recorded", [True, False])
def test_session_that_ends_takes_broker_and_controller_along(
    simulation: Any, recorded: bool
) -> None:
    """What a session owned is gone with it, whether or not the server recorded what that was."""
    clusters = simulation.judge.router.clusters[""]
    for session, path in ((3, znodes.broker_path(3)), (CONTROLLER, znodes.CONTROLLER)):
        simulation.write(CloseSession((path,) if recorded else None), session=session)
    assert clusters.live == {1, 2, 4}
    assert clusters.controller is None
    assert clusters.terms.owner is None


def test_session_of_an_earlier_registration_takes_nothing_along(simulation: Any) -> None:
    """A broker that came back in a new session stays when the old one ends late.

    The end of a client's session changes neither brokers nor controller.
    """
    cluster = simulation.judge.router.clusters[""]
    simulation.write(CloseSession(None), session=50)
    assert (cluster.live, cluster.controller) == ({1, 2, 3, 4}, 1)
    path = znodes.broker_path(3)
    registration = znodes.encode_broker("h", 1, 0)
    simulation.write(Delete(path), session=3)
    simulation.write(Create(path, registration, ephemeral=True), session=33)
    simulation.write(CloseSession(None), session=3)
    assert cluster.live == {1, 2, 3, 4}


def test_plain_transaction_is_fenced_by_nothing(simulation: Any) -> None:
    """A check in one transaction does not fence the next one."""
    check = Check(znodes.CONTROLLER_EPOCH, simulation.epoch + 1)
    router = make_rules("kip-236", get_profile("kip-236")).make_router()
    for transaction in simulation.history:
        router.feed(transaction)
    fenced = simulation.find_op(WriteAssigned((1, 2, 3)))
    plain = simulation.find_op(WriteAssigned((1, 2)))
    (seen,) = router.feed(multi(check, fenced, zxid=90, session_id=CONTROLLER))
    assert seen.author.fenced
    (seen,) = router.feed(committed(plain, zxid=91, session_id=CONTROLLER))
    assert not seen.author.fenced


def test_stray_raise_of_the_epoch_deposes_nobody(simulation: Any) -> None:
    """Whoever owns `/controller` acts in the new term, though another session raised the epoch."""
    simulation.epoch += 1
    raised = simulation.write(SetData(znodes.CONTROLLER_EPOCH, b"2", 2), session=50)
    write_as(simulation, CONTROLLER)
    assert simulation.broken() == [("controller.election.atomic", raised)]


def test_check_of_any_version_is_no_fence_of_an_unknown_one() -> None:
    """Where the version of the epoch is not known any number fences, and -1 does not."""
    terms = Terms(whole=False)
    assert terms.is_fence(7)
    assert not terms.is_fence(-1)
    terms.epoch_version = 6
    assert terms.is_fence(7)
    assert not terms.is_fence(6)
    assert not terms.is_fence(-1)


@pytest.mark.parametrize("fenced", [True, False])
@pytest.mark.parametrize("office", [ACTING, DEPOSED, NONE, UNKNOWN_OFFICE])
def test_clause_is_kept_or_broken_or_unknown(office: str, fenced: bool) -> None:
    """What an author's write breaks it does not keep, and who is no controller keeps nothing."""
    author = make_author(7, frozenset(), office, judge_authority, fenced=fenced)
    by, check = "controller.write.by-controller", "controller.write.epoch-checked"
    broken = [rejected.clause for rejected in author.broken]
    assert (by in broken) == (office in (NONE, DEPOSED))
    assert (by in author.tested) == (office == ACTING)
    assert (by in author.undecided) == (office == UNKNOWN_OFFICE)
    assert (check in broken) == (not fenced and office != NONE)
    assert (check in author.tested) == (fenced and office != NONE)
    assert check not in author.undecided


@pytest.mark.parametrize("whole", [True, False])
def test_before_the_first_election_nobody_may_write(simulation: Any, whole: bool) -> None:
    """In a whole history without an election nobody is controller; else nobody can say."""
    judge = Judge(PROFILE, get_profile(PROFILE))
    judge.router = judge.rules.make_router(whole=whole)
    paths = (znodes.CONTROLLER, znodes.CONTROLLER_EPOCH)
    for transaction in simulation.history:
        if not any(getattr(op, "path", "") in paths for op in transaction.ops):
            judge.feed(transaction)
    check = Check(znodes.CONTROLLER_EPOCH, 1)
    state = simulation.state
    write = WriteState(replace(state, leader_epoch=state.leader_epoch + 1))
    judge.feed(multi(check, simulation.find_op(write), zxid=500, session_id=7))
    seen = judge.tracking.tally
    clause = "controller.write.by-controller"
    assert [v.zxid for v in judge.violations if v.clause == clause][-1:] == [500] * whole
    assert (seen.undecided[clause] > 0) == (not whole)


@pytest.mark.clause("controller.epoch.raised-by-one")
@pytest.mark.parametrize("first", [1, 2, 7])
@pytest.mark.parametrize("whole", [True, False])
def test_first_epoch_is_one_unless_there_was_a_before(first: int, whole: bool) -> None:
    """A history that may begin in the middle may begin at any epoch, and a whole one at one."""
    judge = Judge(PROFILE, get_profile(PROFILE))
    judge.router = judge.rules.make_router(whole=whole)
    judge.feed(committed(Create(znodes.topic_path("t"), znodes.encode_topic({})), zxid=1))
    judge.feed(multi(*win(1, first), zxid=2, session_id=CONTROLLER))
    clause = "controller.epoch.raised-by-one"
    red = whole and first > 1
    assert [v.clause for v in judge.violations] == [clause] * red
    assert judge.undecided[clause] == 0
    judge.feed(multi(*win(1, first + 2, first + 1), zxid=3, session_id=OTHER))
    assert (judge.undecided[clause] if not whole else len(judge.violations)) == 1 + red


@pytest.mark.clause("controller.election.held")
@pytest.mark.parametrize("late", [True, False])
def test_cluster_without_a_controller_owes_an_election(simulation: Any, late: bool) -> None:
    """Once `/controller` is gone a rest breaks the clause, once, until somebody is elected.

    Who took too long to rest is held to have a controller as well, and to nothing else.
    """
    simulation.judge.miss_controller()
    assert simulation.broken() == []
    zxid = simulation.write(Delete(znodes.CONTROLLER), session=50)
    assert simulation.judge.is_owed()
    if late:
        simulation.judge.miss_controller()
        assert simulation.broken() == [("controller.election.held", zxid)]
    simulation.judge.quiesce()
    simulation.judge.quiesce()
    assert simulation.broken() == [("controller.election.held", zxid)]
    simulation.epoch += 1
    simulation.write(*win(2, simulation.epoch), session=OTHER)
    assert simulation.judge.exercised["controller.election.held"] == 1
    assert not simulation.judge.is_owed()
    simulation.judge.quiesce()
    assert simulation.broken() == [("controller.election.held", zxid)]


@pytest.mark.clause("leader-epoch.raised-by-one", "isr.change.assigned-only")
@pytest.mark.parametrize(
    ("version", "isr", "broken"),
    [
        (5, (1,), []),
        (5, (1, 4), ["isr.change.assigned-only"]),
        (4, (1,), ["leader-epoch.raised-by-one"]),
    ],
)
def test_controller_may_write_what_a_leader_asks_for(
    simulation: Any, version: int, isr: tuple[int, ...], broken: list[str]
) -> None:
    """KIP-497: it does for brokers that register as of 2.7, by the rules for the leader's write."""
    path = simulation.path(znodes.broker_path(1))
    data = f'{{"version":{version},"host":"h","port":9,"features":{{}}}}'.encode()
    simulation.write(SetData(path, data, 1), session=1)
    zxid = simulation.perform(WriteState(replace(simulation.state, isr=isr)))
    found = [(one.clause, one.zxid) for one in simulation.judge.violations]
    assert found == [(clause, zxid) for clause in broken]


@pytest.mark.clause("controller.election.held")
def test_election_in_two_transactions_leaves_somebody_in_office(tmp_path: Path) -> None:
    """Before 2.1 the epoch is written behind `/controller`: who is there is missed once it goes."""
    clause, missed, held = "controller.election.held", 0, 0
    judge = Judge("kafka-42", get_profile("kafka-42"))
    for transaction in read_log("old_01022", tmp_path):
        judge.feed(transaction)
        view, before = judge.view(), len(judge.violations)
        judge.miss_controller()
        found = [each.clause for each in judge.violations[before:]]
        assert clause not in found or view.controller is None
        missed += clause in found
        held += view.controller is not None and view.controller_epoch > 0
    assert missed and held
