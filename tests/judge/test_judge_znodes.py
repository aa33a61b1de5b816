"""Every znode of the protocol by creation, change and removal: a rule names what breaks it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from history_steps import Act, ask, change_isr, control, die, perform, put, put_state, run, write

from reassure_judge.judge import Judge, Tracking
from reassure_model.lives import LIVES
from reassure_model.partition import Reassignment
from reassure_model.writes import (
    CreateReassignment,
    DeleteReassignment,
    DeleteRequest,
    UpdateReassignment,
    WriteAssigned,
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
ELECTED = Create(znodes.CONTROLLER, znodes.encode_controller(1, 0), ephemeral=True)
REGISTRATION = znodes.encode_broker("127.0.0.1", 9092, 0)
ONE = znodes.encode_topic({0: (1, 2)})
GROWN = znodes.encode_topic({0: (1, 2), 1: (2, 3)})
WITH_ID = b'{"version":3,"topic_id":"abc","partitions":{"0":[1,2]}}'
MIN_ISR = znodes.encode_config({"min.insync.replicas": "2"})
PREFERRED = b'{"version":1,"partitions":[{"topic":"orders","partition":0}]}'
OTHER_REQUEST = znodes.encode_request(znodes.RequestZnode({("orders", 0): (1, 3)}))
DEPOSE = write(Delete(znodes.CONTROLLER), session=CONTROLLER)
FLIGHT = (ask(2, 3), run)
SETTINGS_MADE = (write(Create(SETTINGS, MIN_ISR)), write(SetData(SETTINGS, MIN_ISR, 1)))


def _found_ill(sim: Any) -> int:
    zxid: int = sim.write(Create(znodes.reassignment_path("orders", 7), b"{}"), session=CLIENT)
    sim.judge.quiesce()
    return zxid


def _forget_violations(sim: Any) -> None:
    sim.judge.violations.clear()


def _bring_online(leader: int, *isr: int) -> tuple[Act, ...]:
    def create(sim: Any) -> Any:
        state = znodes.encode_state(znodes.StateZnode(leader, 0, sim.epoch, isr))
        return control(Create(znodes.state_path("orders", 1), state))(sim)

    return (write(SetData(TOPIC, znodes.encode_topic({0: (1, 2), 1: (1, 2)}), 1)), create)


def _complete(*, with_parent: bool) -> Act:
    """Return a completion that removes what stands above the record, or not."""

    def act(sim: Any) -> int:
        sim.write(Create(PARENT, b""), session=CONTROLLER, fenced=True)
        perform(sim, (*FLIGHT, change_isr(1, 2, 3)))
        zxid = 0
        for step in sim.steps():
            ops = [sim.find_op(step)]
            if isinstance(step, DeleteReassignment) and with_parent:
                ops.append(Delete(PARENT))
            zxid = sim.write(*ops, session=CONTROLLER, fenced=True)
        sim.judge.quiesce()
        return zxid

    return act


def _change_leader(sim: Any) -> Any:
    return sim.write(sim.state_op(replace(sim.state, leader=2)), session=1)


def _take_office_for_ever(sim: Any) -> Any:
    return sim.elect(ephemeral=False)


Plants = Mapping[tuple[str, str], Mapping[str, tuple[Act, ...]]]
PLANTS: Plants = {
    ("controller", "create"): {
        "controller.election.atomic": (DEPOSE, write(ELECTED, session=CONTROLLER)),
        "controller.registered-ephemeral": (_take_office_for_ever,),
    },
    ("controller", "change"): {
        "controller.election.atomic": (
            write(SetData(znodes.CONTROLLER, znodes.encode_controller(2, 0), 1)),
        )
    },
    ("epoch", "create"): {
        "controller.election.atomic": (
            write(Delete(znodes.CONTROLLER_EPOCH)),
            _forget_violations,
            write(Create(znodes.CONTROLLER_EPOCH, b"2")),
        )
    },
    ("epoch", "change"): {
        "controller.election.atomic": (write(SetData(znodes.CONTROLLER_EPOCH, b"0", 2)),),
        "controller.epoch.raised-by-one": (
            DEPOSE,
            write(ELECTED, SetData(znodes.CONTROLLER_EPOCH, b"5", 2), session=CONTROLLER),
        ),
    },
    ("epoch", "remove"): {"controller.epoch.kept": (write(Delete(znodes.CONTROLLER_EPOCH)),)},
    ("root", "remove"): {
        "znode.roots-kept": (
            write(Create(znodes.REASSIGNMENT_REQUESTS, b"")),
            write(Delete(znodes.REASSIGNMENT_REQUESTS), session=CONTROLLER),
        )
    },
    ("broker", "create"): {
        "broker.registered-ephemeral": (
            write(Create(znodes.broker_path(9), REGISTRATION), session=9),
        )
    },
    ("topic", "change"): {
        "assigned.change.only-as-due": (put(WriteAssigned((1, 2, 3))),),
        "topic.partitions-kept": (write(SetData(TOPIC, GROWN, 1)), control(SetData(TOPIC, ONE, 1))),
        "topic.content-kept": (write(SetData(TOPIC, WITH_ID, 1)), control(SetData(TOPIC, ONE, 1))),
    },
    ("topic", "remove"): {"topic.removed-when-asked": (control(Delete(TOPIC)),)},
    ("topic_config", "remove"): {
        "topic.settings-kept": (*SETTINGS_MADE, control(Delete(SETTINGS)))
    },
    ("deletion", "remove"): {
        "topic.deletion-ended": (
            write(Create(SETTINGS, znodes.encode_config({}))),
            write(Create(ASKED, b"")),
            *(control(Delete(path)) for path in (STATE, TOPIC, ASKED)),
        )
    },
    ("state", "create"): {
        "partition.new.leader-first-live": _bring_online(2, 1, 2),
        "partition.new.isr-all-live": _bring_online(1, 1),
    },
    ("state", "change"): {
        "leader-epoch.raised-by-one": (put_state(by=7),),
        "election.only-when-due": (put_state(leader=2),),
        "isr.change.keeps-leader": (_change_leader,),
    },
    ("state", "remove"): {"partition.state-kept": (control(Delete(STATE)),)},
    ("request", "remove"): {"request.delete.child-first": (ask(2, 3), put(DeleteRequest(0)))},
    ("flight", "create"): {
        "child.from-request": (put(CreateReassignment(Reassignment((2, 3), 2))),),
        "child.foreign-removed": (_found_ill,),
    },
    ("flight", "change"): {
        "top.once-per-chain": (
            *FLIGHT,
            ask(2, 4),
            put(UpdateReassignment(Reassignment((2, 4), 3))),
        ),
        "child.from-request": (*FLIGHT, put(UpdateReassignment(Reassignment((2, 4), 2)))),
    },
    ("flight", "remove"): {
        "complete.child-last": (*FLIGHT, put(DeleteReassignment())),
        "child.update-in-place": (*FLIGHT, ask(2, 4), put(DeleteReassignment())),
    },
    ("parent", "remove"): {"child.parent-gone": (_complete(with_parent=False),)},
}
"""By kind and act: histories that break a rule at their end, by the clause they break."""


def _delete_topic() -> tuple[Act, ...]:
    asked = (write(Create(SETTINGS, znodes.encode_config({}))), write(Create(ASKED, b"")))
    stops = (put_state(leader=-1, isr=(2,)), put_state(leader=-1, isr=(2,)))
    return (*asked, *stops, *(control(Delete(path)) for path in (STATE, TOPIC, SETTINGS, ASKED)))


def _settings_of(path: str) -> tuple[Act, ...]:
    data = [znodes.encode_config({"min.insync.replicas": least}) for least in ("2", "1")]
    told = (write(make) for each in data for make in (Create(path, each), SetData(path, each, 1)))
    return (*told, write(Delete(path)))


def _cells(kind: str, *acts: str) -> tuple[tuple[str, str], ...]:
    return tuple((kind, act) for act in acts)


_SOUND: dict[tuple[tuple[str, str], ...], tuple[Act, ...]] = {
    _cells("controller", "remove"): (write(Delete(znodes.CONTROLLER)),),
    _cells("root", "create", "change"): tuple(
        write(make)
        for path in znodes.PERSISTENT_ROOTS
        for make in (Create(path, b""), SetData(path, b"", 1))
    ),
    _cells("broker", "remove"): (lambda sim: sim.register(9), die(9)),
    _cells("broker", "change"): (
        write(SetData(znodes.broker_path(3), znodes.encode_broker("127.0.0.1", 9093, 0), 1)),
    ),
    _cells("broker_config", *ACTS): _settings_of(znodes.broker_config_path(9)),
    _cells("default_config", *ACTS): _settings_of(znodes.DEFAULT_BROKER_CONFIG),
    _cells("topic", "create"): (
        write(Create(znodes.topic_path("other"), znodes.encode_topic({}))),
    ),
    _cells("topic", "change"): (write(SetData(TOPIC, GROWN, 1)),),
    (
        *(*_cells("deletion", *ACTS), ("topic", "remove")),
        *(("topic_config", "remove"), ("state", "remove")),
    ): _delete_topic(),
    _cells("topic_config", "create", "change"): SETTINGS_MADE,
    _cells("request", "create", "change"): (
        ask(2, 3),
        write(SetData(znodes.request_path(0), OTHER_REQUEST, 1)),
    ),
    _cells("parent", "create", "change"): (_complete(with_parent=True),),
    _cells("preferred", *ACTS): (
        *(change_isr(1), change_isr(1, 2)),
        write(Create(znodes.PREFERRED_ELECTION, PREFERRED)),
        write(SetData(znodes.PREFERRED_ELECTION, PREFERRED, 1)),
        control(Delete(znodes.PREFERRED_ELECTION)),
    ),
}
SOUND = {cell: acts for cells, acts in _SOUND.items() for cell in cells}
"""By kind and act: a history in which anybody may do it, or in which it is done as it should be."""


# Parents and topics -------------------------------------------------------------------------------


@pytest.mark.clause("znode.roots-kept")
@pytest.mark.parametrize("path", znodes.PERSISTENT_ROOTS)
@pytest.mark.parametrize("seen", [True, False])
def test_removed_root_is_named(simulation: Any, path: str, seen: bool) -> None:
    """Each znode that the others stand under is missed, whether its creation was seen or not."""
    if seen:
        simulation.write(Create(path, b""), session=CLIENT)
    zxid = simulation.write(Delete(path), session=CONTROLLER)
    assert simulation.broken() == [("znode.roots-kept", zxid)]


def test_brokers_are_gone_where_their_parent_is(simulation: Any) -> None:
    """ZooKeeper removes no parent with children: no broker is left, named or not."""
    simulation.write(Delete(znodes.BROKER_IDS), session=CLIENT)
    assert simulation.judge.view("").live == frozenset()
    simulation.judge.quiesce("")
    assert [clause for clause, _ in simulation.broken()] == ["znode.roots-kept", "election.held"]


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
    simulation: Any, clause: str, history: tuple[Act, ...]
) -> None:
    """Each planted history breaks its clause and no other, at the transaction that broke it."""
    zxid = perform(simulation, history)
    assert simulation.broken() == [(clause, zxid)]


@pytest.mark.parametrize(("clause", "history"), BROKEN)
def test_broken_rule_is_unknown_in_the_middle_of_a_history(
    simulation: Any, clause: str, history: tuple[Act, ...]
) -> None:
    """Where neither a beginning nor a snapshot was seen nothing is a violation, or holds."""
    simulation.judge.router = simulation.judge.rules.make_router(whole=False)
    simulation.judge.tracking = Tracking(simulation.judge.rules)
    for transaction in simulation.history:
        simulation.judge.feed(transaction)
    perform(simulation, history)
    assert simulation.broken() == []
    assert clause not in {v.clause for v in simulation.judge.report().violations}
    verdicts = {v.id: v.verdict for v in simulation.judge.report().verdicts}
    assert verdicts[clause] != "violated"


def test_topic_that_is_made_anew_while_its_deletion_ends_has_settings_of_its_own(
    simulation: Any,
) -> None:
    """They are none that the deletion has left."""
    gone = tuple(control(Delete(path)) for path in (STATE, TOPIC, SETTINGS))
    made = (*SETTINGS_MADE, write(Create(TOPIC, ONE)))
    asked = write(Create(ASKED, b""))
    perform(simulation, (*SETTINGS_MADE, asked, *gone, *made, control(Delete(ASKED))))
    assert simulation.broken() == []


@pytest.mark.parametrize("cell", SOUND, ids="-".join)
def test_sound_history_stays_green(simulation: Any, cell: tuple[str, str]) -> None:
    """What is done as it should be, or may be done by anybody, breaks nothing.

    Wherever the history is cut, what was asked or written before breaks nothing after.
    """
    perform(simulation, SOUND[cell])
    assert simulation.broken() == []
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


@pytest.mark.parametrize("taken", [True, False])
def test_request_for_nothing_is_to_leave_the_queue(simulation: Any, taken: bool) -> None:
    """A request that names no partition is owed its removal like any other, and then done."""
    path = simulation.path(znodes.request_path(0))
    empty = znodes.encode_request(znodes.RequestZnode({}))
    simulation.write(Create(path, empty), session=50)
    if taken:
        simulation.write(Delete(path), session=900, fenced=True)
    simulation.judge.quiesce(simulation.chroot)
    assert [clause for clause, _ in simulation.broken()] == ["request.consumed"] * (not taken)
