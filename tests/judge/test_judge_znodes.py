"""Every znode of the protocol by creation, change and removal: a rule names what breaks it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from reassure_judge.judge import Judge, Tracking
from reassure_model.lives import LIVES
from reassure_model.partition import Reassignment
from reassure_model.writes import (
    CreateReassignment,
    DeleteReassignment,
    DeleteRequest,
    UpdateReassignment,
    WriteAssigned,
    WriteState,
)
from reassure_spec import znodes
from reassure_spec.clauses import load_clauses
from reassure_spec.readings import get_profile
from reassure_zookeeper.transactions import Create, Delete, SetData

CONTROLLER, CLIENT = 900, 50
TOPIC = znodes.topic_path("orders")
STATE = znodes.state_path("orders", 0)
SETTINGS = znodes.topic_config_path("orders")
PARENT = "/admin/reassignments/orders"
ASKED = f"{znodes.DELETED_TOPICS}/orders"
ACTS = ("create", "change", "remove")
CELLS = {(kind, act): getattr(life, act) for kind, life in LIVES.items() for act in ACTS}
Plant = Callable[[Any], int]
PLANTS: dict[tuple[str, str], dict[str, Plant]] = {}
"""By kind and act: histories that break a rule, by the clause they break; each says where."""
SOUND: dict[tuple[str, str], Callable[[Any], None]] = {}
"""By kind and act: a history in which anybody may do it, or in which it is done as it should be."""


def plant(kind: str, act: str, clause: str) -> Callable[[Plant], Plant]:
    """Register a history that breaks a clause."""

    def register(function: Plant) -> Plant:
        PLANTS.setdefault((kind, act), {})[clause] = function
        return function

    return register


def sound(kind: str, act: str) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    """Register a history that breaks nothing."""

    def register(function: Callable[[Any], None]) -> Callable[[Any], None]:
        SOUND[kind, act] = function
        return function

    return register


# Controllers ------------------------------------------------------------------------------------


@plant("controller", "create", "controller.election.atomic")
def _office_without_epoch(sim: Any) -> int:
    sim.write(Delete(znodes.CONTROLLER), session=CONTROLLER)
    office = Create(znodes.CONTROLLER, znodes.encode_controller(2, 0), ephemeral=True)
    return sim.write(office, session=CONTROLLER)  # type: ignore[no-any-return]


@plant("controller", "create", "controller.registered-ephemeral")
def _office_for_ever(sim: Any) -> int:
    sim.write(Delete(znodes.CONTROLLER), session=CONTROLLER)
    sim.epoch += 1
    return sim.write(  # type: ignore[no-any-return]
        Create(znodes.CONTROLLER, znodes.encode_controller(1, 0)),
        SetData(znodes.CONTROLLER_EPOCH, str(sim.epoch).encode(), sim.epoch),
        session=CONTROLLER,
    )


@plant("controller", "change", "controller.election.atomic")
def _office_overwritten(sim: Any) -> int:
    change = SetData(znodes.CONTROLLER, znodes.encode_controller(2, 0), 1)
    return sim.write(change, session=CONTROLLER)  # type: ignore[no-any-return]


@sound("controller", "remove")
def _office_ended(sim: Any) -> None:
    sim.write(Delete(znodes.CONTROLLER), session=CLIENT)


@plant("epoch", "create", "controller.election.atomic")
def _epoch_of_nobody(sim: Any) -> int:
    sim.write(Delete(znodes.CONTROLLER_EPOCH), session=CLIENT)
    sim.judge.violations.clear()
    return sim.write(Create(znodes.CONTROLLER_EPOCH, b"2"), session=CLIENT)  # type: ignore[no-any-return]


@plant("epoch", "change", "controller.election.atomic")
def _epoch_lowered(sim: Any) -> int:
    return sim.write(SetData(znodes.CONTROLLER_EPOCH, b"0", 2), session=CLIENT)  # type: ignore[no-any-return]


@plant("epoch", "change", "controller.epoch.raised-by-one")
def _epoch_jumped(sim: Any) -> int:
    sim.write(Delete(znodes.CONTROLLER), session=CONTROLLER)
    return sim.write(  # type: ignore[no-any-return]
        Create(znodes.CONTROLLER, znodes.encode_controller(1, 0), ephemeral=True),
        SetData(znodes.CONTROLLER_EPOCH, b"5", 2),
        session=CONTROLLER,
    )


@plant("epoch", "remove", "controller.epoch.kept")
def _epoch_removed(sim: Any) -> int:
    return sim.write(Delete(znodes.CONTROLLER_EPOCH), session=CLIENT)  # type: ignore[no-any-return]


# Parents and brokers ----------------------------------------------------------------------------


@sound("root", "create")
@sound("root", "change")
def _roots_made(sim: Any) -> None:
    for path in znodes.PERSISTENT_ROOTS:
        sim.write(Create(path, b""), session=CLIENT)
        sim.write(SetData(path, b"", 1), session=CLIENT)


@pytest.mark.clause("znode.roots-kept")
@pytest.mark.parametrize("path", znodes.PERSISTENT_ROOTS)
def test_removed_root_is_named(simulation: Any, path: str) -> None:
    """Each znode that the others stand under is missed, where it was there."""
    simulation.write(Create(path, b""), session=CLIENT)
    zxid = simulation.write(Delete(path), session=CONTROLLER)
    assert simulation.broken() == [("znode.roots-kept", zxid)]


@pytest.mark.clause("znode.roots-kept")
@pytest.mark.parametrize("path", znodes.PERSISTENT_ROOTS)
def test_removed_root_was_there(simulation: Any, path: str) -> None:
    """A parent that is removed was there, whether its creation was seen or not."""
    zxid = simulation.write(Delete(path), session=CONTROLLER)
    assert simulation.broken() == [("znode.roots-kept", zxid)]


def test_brokers_are_gone_where_their_parent_is(simulation: Any) -> None:
    """ZooKeeper removes no parent with children: no broker is left, named or not."""
    simulation.write(Delete(znodes.BROKER_IDS), session=CLIENT)
    assert simulation.judge.view("").live == frozenset()
    simulation.judge.quiesce("")
    assert [clause for clause, _ in simulation.broken()] == ["znode.roots-kept", "election.held"]


@plant("root", "remove", "znode.roots-kept")
def _root_removed(sim: Any) -> int:
    sim.write(Create(znodes.REASSIGNMENT_REQUESTS, b""), session=CLIENT)
    return sim.write(Delete(znodes.REASSIGNMENT_REQUESTS), session=CONTROLLER)  # type: ignore[no-any-return]


@plant("broker", "create", "broker.registered-ephemeral")
def _broker_for_ever(sim: Any) -> int:
    registration = znodes.encode_broker("127.0.0.1", 9092, 0)
    return sim.write(Create(znodes.broker_path(9), registration), session=9)  # type: ignore[no-any-return]


@sound("broker", "remove")
def _broker_comes_and_goes(sim: Any) -> None:
    sim.register(9)
    sim.die(9)


@sound("broker", "change")
def _broker_says_otherwise(sim: Any) -> None:
    data = znodes.encode_broker("127.0.0.1", 9093, 0)
    sim.write(SetData(znodes.broker_path(3), data, 1), session=3)


def _settings_of(path: str) -> Callable[[Any], None]:
    def tell(sim: Any) -> None:
        for least in ("2", "1"):
            data = znodes.encode_config({"min.insync.replicas": least})
            sim.write(Create(path, data), session=CLIENT)
            sim.write(SetData(path, data, 1), session=CLIENT)
        sim.write(Delete(path), session=CLIENT)

    return tell


for _act in ACTS:
    SOUND["broker_config", _act] = _settings_of(znodes.broker_config_path(9))
    SOUND["default_config", _act] = _settings_of(znodes.DEFAULT_BROKER_CONFIG)


# Topics -------------------------------------------------------------------------------------------


@sound("topic", "create")
def _another_topic(sim: Any) -> None:
    sim.write(Create(znodes.topic_path("other"), znodes.encode_topic({})), session=CLIENT)


@sound("topic", "change")
def _topic_grows(sim: Any) -> None:
    grown = znodes.encode_topic({0: (1, 2), 1: (2, 3)})
    sim.write(SetData(TOPIC, grown, 1), session=CLIENT)


@plant("topic", "change", "assigned.change.only-as-due")
def _assigned_for_no_reason(sim: Any) -> int:
    return sim.perform(WriteAssigned((1, 2, 3)))  # type: ignore[no-any-return]


@plant("topic", "change", "topic.partitions-kept")
def _partition_lost(sim: Any) -> int:
    _topic_grows(sim)
    lost = znodes.encode_topic({0: (1, 2)})
    return sim.write(SetData(TOPIC, lost, 1), session=CONTROLLER, fenced=True)  # type: ignore[no-any-return]


@plant("topic", "change", "topic.content-kept")
def _topic_id_lost(sim: Any) -> int:
    content = b'{"version":3,"topic_id":"abc","partitions":{"0":[1,2]}}'
    sim.write(SetData(TOPIC, content, 1), session=CLIENT)
    lost = znodes.encode_topic({0: (1, 2)})
    return sim.write(SetData(TOPIC, lost, 1), session=CONTROLLER, fenced=True)  # type: ignore[no-any-return]


@pytest.mark.clause("topic.content-kept")
@pytest.mark.parametrize("session", [CLIENT, CONTROLLER])
def test_changed_topic_id_is_named(simulation: Any, session: int) -> None:
    """Another id is as bad as none, whoever writes it; one where there was none is no change."""
    ids = ("", "a" * 22, "b" * 22)
    contents = [znodes.encode_topic({0: (1, 2)}, topic_id) for topic_id in ids]
    for content in contents[1:]:
        write = SetData(TOPIC, content, 1)
        zxid = simulation.write(write, session=session, fenced=session == CONTROLLER)
    assert simulation.broken() == [("topic.content-kept", zxid)]


@plant("topic", "remove", "topic.removed-when-asked")
def _topic_removed(sim: Any) -> int:
    return sim.write(Delete(TOPIC), session=CONTROLLER, fenced=True)  # type: ignore[no-any-return]


@sound("topic", "remove")
@sound("topic_config", "remove")
@sound("state", "remove")
@sound("deletion", "create")
@sound("deletion", "remove")
def _topic_deleted(sim: Any) -> None:
    sim.write(Create(SETTINGS, znodes.encode_config({})), session=CLIENT)
    sim.write(Create(ASKED, b""), session=CLIENT)
    state = sim.state
    for isr in ((2,), (2,)):
        state = replace(state, leader=-1, isr=isr, leader_epoch=state.leader_epoch + 1)
        sim.perform(WriteState(state))
    for path in (STATE, TOPIC, SETTINGS, ASKED):
        sim.write(Delete(path), session=CONTROLLER, fenced=True)


SOUND["deletion", "change"] = _topic_deleted


@sound("topic_config", "create")
@sound("topic_config", "change")
def _topic_settings(sim: Any) -> None:
    for write in (Create, lambda p, d: SetData(p, d, 1)):
        data = znodes.encode_config({"min.insync.replicas": "2"})
        sim.write(write(SETTINGS, data), session=CLIENT)  # type: ignore[operator]


@plant("topic_config", "remove", "topic.settings-kept")
def _settings_removed(sim: Any) -> int:
    _topic_settings(sim)
    return sim.write(Delete(SETTINGS), session=CONTROLLER, fenced=True)  # type: ignore[no-any-return]


@plant("deletion", "remove", "topic.deletion-ended")
def _deletion_ended_early(sim: Any) -> int:
    sim.write(Create(SETTINGS, znodes.encode_config({})), session=CLIENT)
    sim.write(Create(ASKED, b""), session=CLIENT)
    for path in (STATE, TOPIC):
        sim.write(Delete(path), session=CONTROLLER, fenced=True)
    return sim.write(Delete(ASKED), session=CONTROLLER, fenced=True)  # type: ignore[no-any-return]


# States -------------------------------------------------------------------------------------------


def _bring_online(sim: Any, leader: int, *isr: int) -> int:
    other = znodes.encode_topic({0: (1, 2), 1: (1, 2)})
    sim.write(SetData(TOPIC, other, 1), session=CLIENT)
    state = znodes.encode_state(znodes.StateZnode(leader, 0, sim.epoch, isr))
    path = znodes.state_path("orders", 1)
    return sim.write(Create(path, state), session=CONTROLLER, fenced=True)  # type: ignore[no-any-return]


@plant("state", "create", "partition.new.leader-first-live")
def _wrong_first_leader(sim: Any) -> int:
    return _bring_online(sim, 2, 1, 2)


@plant("state", "create", "partition.new.isr-all-live")
def _first_set_too_small(sim: Any) -> int:
    return _bring_online(sim, 1, 1)


@plant("state", "change", "leader-epoch.raised-by-one")
def _epoch_not_raised(sim: Any) -> int:
    return sim.perform(WriteState(replace(sim.state, leader_epoch=7)))  # type: ignore[no-any-return]


@plant("state", "change", "election.only-when-due")
def _leader_replaced(sim: Any) -> int:
    state = replace(sim.state, leader=2, leader_epoch=sim.state.leader_epoch + 1)
    return sim.perform(WriteState(state))  # type: ignore[no-any-return]


@plant("state", "change", "isr.change.keeps-leader")
def _leader_by_leader(sim: Any) -> int:
    return sim.write(sim.state_op(replace(sim.state, leader=2)), session=1)  # type: ignore[no-any-return]


@plant("state", "remove", "partition.state-kept")
def _state_removed(sim: Any) -> int:
    return sim.write(Delete(STATE), session=CONTROLLER, fenced=True)  # type: ignore[no-any-return]


# Requests and records -----------------------------------------------------------------------------


@sound("request", "create")
@sound("request", "change")
def _request_changed(sim: Any) -> None:
    sequence = sim.submit(2, 3)
    other = znodes.encode_request(znodes.RequestZnode({("orders", 0): (1, 3)}))
    sim.write(SetData(znodes.request_path(sequence), other, 1), session=CLIENT)


@plant("request", "remove", "request.delete.child-first")
def _request_lost(sim: Any) -> int:
    return sim.perform(DeleteRequest(sim.submit(2, 3)))  # type: ignore[no-any-return]


@plant("flight", "create", "child.from-request")
def _record_of_nothing(sim: Any) -> int:
    return sim.perform(CreateReassignment(Reassignment((2, 3), 2)))  # type: ignore[no-any-return]


@plant("flight", "create", "child.foreign-removed")
def _foreign_record(sim: Any) -> int:
    zxid = sim.write(Create(znodes.reassignment_path("orders", 7), b"{}"), session=CLIENT)
    sim.judge.quiesce()
    return zxid  # type: ignore[no-any-return]


def _put_in_flight(sim: Any) -> None:
    sim.submit(2, 3)
    sim.run()


@plant("flight", "change", "top.once-per-chain")
def _top_changed(sim: Any) -> int:
    _put_in_flight(sim)
    sim.submit(2, 4)
    return sim.perform(UpdateReassignment(Reassignment((2, 4), 3)))  # type: ignore[no-any-return]


@plant("flight", "change", "child.from-request")
def _target_changed(sim: Any) -> int:
    _put_in_flight(sim)
    return sim.perform(UpdateReassignment(Reassignment((2, 4), 2)))  # type: ignore[no-any-return]


@plant("flight", "remove", "complete.child-last")
def _given_up(sim: Any) -> int:
    _put_in_flight(sim)
    return sim.perform(DeleteReassignment())  # type: ignore[no-any-return]


@plant("flight", "remove", "child.update-in-place")
def _made_anew(sim: Any) -> int:
    _put_in_flight(sim)
    sim.submit(2, 4)
    return sim.perform(DeleteReassignment())  # type: ignore[no-any-return]


def _complete(sim: Any, *, with_parent: bool) -> int:
    sim.write(Create(PARENT, b""), session=CONTROLLER, fenced=True)
    _put_in_flight(sim)
    sim.change_isr(1, 2, 3)
    zxid = 0
    for write in sim.steps():
        ops = [sim.find_op(write)]
        if isinstance(write, DeleteReassignment) and with_parent:
            ops.append(Delete(PARENT))
        zxid = sim.write(*ops, session=CONTROLLER, fenced=True)
    sim.judge.quiesce()
    return zxid


@sound("parent", "create")
@sound("parent", "change")
def _parent_filled(sim: Any) -> None:
    _complete(sim, with_parent=True)


@plant("parent", "remove", "child.parent-gone")
def _parent_left(sim: Any) -> int:
    return _complete(sim, with_parent=False)


@sound("preferred", "create")
@sound("preferred", "change")
@sound("preferred", "remove")
def _preferred_asked(sim: Any) -> None:
    sim.change_isr(1)
    sim.change_isr(1, 2)
    data = b'{"version":1,"partitions":[{"topic":"orders","partition":0}]}'
    sim.write(Create(znodes.PREFERRED_ELECTION, data), session=CLIENT)
    sim.write(SetData(znodes.PREFERRED_ELECTION, data, 1), session=CLIENT)
    sim.write(Delete(znodes.PREFERRED_ELECTION), session=CONTROLLER, fenced=True)


# The table ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", CELLS, ids="-".join)
def test_every_cell_has_a_rule_or_a_reason(cell: tuple[str, str]) -> None:
    """What may become of a znode is ruled by planted clauses, or free with a sound history."""
    rule = CELLS[cell]
    if isinstance(rule, str):
        assert rule
        assert cell in SOUND
        return
    assert set(rule) <= set(load_clauses())
    assert set(PLANTS[cell]) == set(rule)


BROKEN = [
    pytest.param(clause, history, id=f"{kind}-{act}-{clause}", marks=pytest.mark.clause(clause))
    for (kind, act), plants in PLANTS.items()
    for clause, history in plants.items()
]


@pytest.mark.clause("broker.registered-ephemeral")
@pytest.mark.clause("controller.epoch.kept")
@pytest.mark.clause("topic.removed-when-asked")
@pytest.mark.clause("topic.partitions-kept")
@pytest.mark.clause("topic.content-kept")
@pytest.mark.clause("topic.settings-kept")
@pytest.mark.clause("topic.deletion-ended")
@pytest.mark.clause("child.parent-gone")
@pytest.mark.parametrize(("clause", "history"), BROKEN)
def test_broken_rule_is_named_where_it_is_broken(
    simulation: Any, clause: str, history: Plant
) -> None:
    """Each planted history breaks its clause and no other, at the transaction that broke it."""
    zxid = history(simulation)
    assert simulation.broken() == [(clause, zxid)]


@pytest.mark.parametrize(("clause", "history"), BROKEN)
def test_broken_rule_is_unknown_in_the_middle_of_a_history(
    simulation: Any, clause: str, history: Plant
) -> None:
    """Where neither a beginning nor a snapshot was seen nothing is a violation, or holds."""
    simulation.judge.router = simulation.judge.rules.make_router(whole=False)
    simulation.judge.tracking = Tracking(simulation.judge.rules)
    for transaction in simulation.history:
        simulation.judge.feed(transaction)
    history(simulation)
    assert simulation.broken() == []
    assert clause not in {v.clause for v in simulation.judge.report().violations}
    verdicts = {v.id: v.verdict for v in simulation.judge.report().verdicts}
    assert verdicts[clause] != "violated"


@pytest.mark.parametrize("cell", SOUND, ids="-".join)
def test_sound_history_without_its_beginning_stays_green(
    simulation: Any, cell: tuple[str, str]
) -> None:
    """Wherever a sound history is cut, what was asked or written before breaks nothing after."""
    SOUND[cell](simulation)
    for begin in range(len(simulation.history)):
        judge = Judge("kip-236", get_profile("kip-236"))
        judge.router = judge.rules.make_router(whole=False)
        for transaction in simulation.history[begin:]:
            judge.feed(transaction)
        judge.quiesce("")
        assert judge.violations == [], f"cut before {simulation.history[begin]}"


@pytest.mark.parametrize("met", [True, False])
def test_removal_asked_before_the_history_begins_is_unknown(simulation: Any, met: bool) -> None:
    """A topic that goes is undecided, but not where the log shows the birth of the cluster."""
    judge = simulation.judge = Judge("kip-236", get_profile("kip-236"))
    judge.router = judge.rules.make_router(whole=False)
    if met:
        simulation.write(SetData(TOPIC, znodes.encode_topic({0: (1, 2)}), 1), session=CONTROLLER)
        simulation.write(SetData(znodes.BROKER_IDS, b"", 1), session=1)
    simulation.write(Create(znodes.BROKER_IDS, b""), session=1)
    simulation.write(Create(TOPIC, znodes.encode_topic({0: (1, 2)})), session=CLIENT)
    zxid = simulation.write(Delete(TOPIC), session=CONTROLLER, fenced=True)
    clause = "topic.removed-when-asked"
    assert simulation.broken() == ([] if met else [(clause, zxid)])
    assert judge.undecided[clause] == (1 if met else 0)


@pytest.mark.parametrize("cell", SOUND, ids="-".join)
def test_sound_history_stays_green(simulation: Any, cell: tuple[str, str]) -> None:
    """What is done as it should be, or may be done by anybody, breaks nothing."""
    SOUND[cell](simulation)
    assert simulation.broken() == []


@pytest.mark.clause("partition.state-kept")
def test_state_made_anew_hides_no_election(simulation: Any) -> None:
    """A state that was removed is judged on as if it were there, so the election shows."""
    simulation.change_isr(1)
    simulation.die(1)
    removed = simulation.write(Delete(STATE), session=CONTROLLER, fenced=True)
    made = _make_state(simulation)
    assert [zxid for _, zxid in simulation.broken()] == [removed, made]


def _make_state(sim: Any) -> int:
    data = znodes.encode_state(znodes.StateZnode(2, 0, sim.epoch, (2,)))
    return sim.write(Create(STATE, data), session=CONTROLLER, fenced=True)  # type: ignore[no-any-return]


def test_request_for_nothing_is_to_leave_the_queue(simulation: Any) -> None:
    """A request that names no partition is owed its removal like any other."""
    path = simulation.path(znodes.request_path(0))
    empty = znodes.encode_request(znodes.RequestZnode({}))
    simulation.write(Create(path, empty), session=50)
    simulation.judge.quiesce(simulation.chroot)
    assert [clause for clause, _ in simulation.broken()] == ["request.consumed"]


def test_request_for_nothing_may_be_taken(simulation: Any) -> None:
    """A request that names no partition is done once it is deleted."""
    path = simulation.path(znodes.request_path(0))
    empty = znodes.encode_request(znodes.RequestZnode({}))
    simulation.write(Create(path, empty), session=50)
    simulation.write(Delete(path), session=900, fenced=True)
    simulation.judge.quiesce(simulation.chroot)
    assert simulation.broken() == []
