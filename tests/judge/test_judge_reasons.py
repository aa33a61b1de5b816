"""Reasons name the rule that was broken, not what follows from it."""

from typing import Any

import pytest
from history_steps import Act, ask, die, perform, run, write

from reassure_model.partition import Reassignment
from reassure_model.writes import (
    CreateReassignment,
    DeleteRequest,
    UpdateReassignment,
    WriteAssigned,
)
from reassure_spec import znodes
from reassure_zookeeper.transactions import Create

EVERYBODY = (1, 2, 3, 4, 5)


def only(simulation: Any) -> Any:
    """Return the one violation."""
    (violation,) = simulation.judge.violations
    return violation


TARGETS = ((), (2, 2), (2, -1), (2, 9), (2, 3), (1, 2))
NO_REQUESTS = [
    Create(f"{znodes.REASSIGNMENT_REQUESTS}/{name}", data)
    for name, data in (("request_0000000009", b"{"), ("notes", b""))
]


@pytest.mark.parametrize("put", [*(ask(*target) for target in TARGETS), *map(write, NO_REQUESTS)])
def test_queue_that_nobody_looks_at_is_no_matter_of_content(simulation: Any, put: Act) -> None:
    """Where nothing was taken since a request came, it is not its content that is to blame."""
    put(simulation)
    simulation.judge.quiesce("")
    assert only(simulation).clause == "request.consumed"
    assert "nothing was taken from the queue since" in only(simulation).reason


def test_write_of_a_superseded_controller_is_not_blamed_on_its_stamp(simulation: Any) -> None:
    """A write of an earlier term is out of fence, whatever else is wrong with it."""
    stale = simulation.raised()
    simulation.elect()
    simulation.perform(stale, fenced=False)
    assert only(simulation).clause == "controller.write.epoch-checked"


@pytest.mark.parametrize("profile", ["kip-236", "kip-236-amended"])
@pytest.mark.parametrize("leader", [1, -1])
def test_leader_that_is_dropped_is_a_drop_of_the_leader(
    make_simulation: Any, profile: str, leader: int
) -> None:
    """A drop that takes the leader out of the in-sync set breaks the rule of the drop."""
    simulation = make_simulation(profile)
    simulation.start()
    first = simulation.submit(3, 4)
    simulation.perform(CreateReassignment(Reassignment((3, 4), 2)))
    simulation.perform(DeleteRequest(first))
    simulation.run()
    simulation.submit(3, 2)
    simulation.perform(UpdateReassignment(Reassignment((3, 2), 2)))
    simulation.perform_raised(leader=leader, isr=(2,))
    assert only(simulation).clause == "drop.leader-kept"


def test_debt_is_named(simulation: Any) -> None:
    """A controller that rests is told what it owes."""
    simulation.die(2)
    simulation.judge.quiesce("")
    assert only(simulation).clause == "isr.remove.dead"
    assert only(simulation).reason.startswith("the controller rests and owes: {")
    assert '"isr":[1]' in only(simulation).reason


@pytest.mark.parametrize(
    ("profile", "target", "assigned", "reason"),
    [
        ("kip-236", (3, 2), (2, 3, 4), "dropped [1]; the drop waits until a leader is in sync"),
        ("kip-236", EVERYBODY, EVERYBODY, "the drop waits for a leader in sync"),
        ("kip-236-amended", EVERYBODY, EVERYBODY, "the drop waits for a leader in sync"),
    ],
)
def test_drop_that_has_to_wait_is_told_to_wait(
    make_simulation: Any,
    profile: str,
    target: tuple[int, ...],
    assigned: tuple[int, ...],
    reason: str,
) -> None:
    """Without a leader in sync nobody may look at a drop, so nothing is added and no list given."""
    simulation = make_simulation(profile)
    simulation.start(brokers=5)
    perform(simulation, (ask(3, 4), run, die(1), die(2), run))
    sequence = simulation.submit(*target)
    simulation.perform(UpdateReassignment(Reassignment(target, 2)))
    simulation.perform(DeleteRequest(sequence))
    simulation.perform(WriteAssigned(assigned))
    assert only(simulation).reason == reason
