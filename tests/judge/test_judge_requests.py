"""A request that its maker changes in its place counts as it stands, and keeps its place."""

from itertools import product
from typing import Any

import pytest

from reassure_model.partition import Reassignment
from reassure_model.writes import CreateReassignment, DeleteRequest
from reassure_spec import znodes
from reassure_zookeeper.transactions import Create, Delete, SetData

CLIENT, CONTROLLER = 50, 900
CONTENTS = {
    "move": znodes.encode_request(znodes.RequestZnode({("orders", 0): (1, 3)})),
    "other": znodes.encode_request(znodes.RequestZnode({("orders", 0): (2, 4)})),
    "elsewhere": znodes.encode_request(znodes.RequestZnode({("nowhere", 0): (2, 4)})),
    "refused": znodes.encode_request(znodes.RequestZnode({("orders", 0): ()})),
    "nothing": znodes.encode_request(znodes.RequestZnode({})),
    "unreadable": b"not JSON",
}
CHANGES = [pair for pair in product(CONTENTS, repeat=2) if pair[0] != pair[1]]


def rewrite(sim: Any, name: str, sequence: int = 0, session: int = CLIENT) -> int:
    """Change a request in its place."""
    change = SetData(znodes.request_path(sequence), CONTENTS[name], 1)
    return sim.write(change, session=session)  # type: ignore[no-any-return]


def take_away(sim: Any, name: str) -> None:
    """Carry the request out as it stands, if there is anything to do, and delete it."""
    if name in ("move", "other"):
        sim.run()
        return
    sim.write(Delete(znodes.request_path(0)), session=CONTROLLER, fenced=True)
    sim.judge.quiesce("")


@pytest.mark.parametrize(("first", "then"), CHANGES)
@pytest.mark.parametrize("lies", [True, False])
def test_changed_request_is_done_with_as_it_stands(
    simulation: Any, first: str, then: str, lies: bool
) -> None:
    """Whatever a request was, once it is dealt with as it is by now nothing is left to do.

    A controller that rests has taken it from the queue.
    """
    simulation.write(Create(znodes.request_path(0), CONTENTS[first]), session=CLIENT)
    rewrite(simulation, then)
    simulation.judge.quiesce("") if lies else take_away(simulation, then)
    assert {clause for clause, _ in simulation.broken()} == (
        {"request.consumed"} if lies else set()
    )


@pytest.mark.clause("request.delete.child-first")
@pytest.mark.parametrize("recorded", [True, False])
def test_change_must_not_be_lost(simulation: Any, recorded: bool) -> None:
    """Who deletes a request as he read it, recorded or not, loses what it asks for by now."""
    simulation.write(Create(znodes.request_path(0), CONTENTS["move"]), session=CLIENT)
    rewrite(simulation, "other")
    if recorded:
        simulation.perform(CreateReassignment(Reassignment((1, 3), 2)))
    zxid = simulation.perform(DeleteRequest(0))
    assert simulation.broken() == [("request.delete.child-first", zxid)]


@pytest.mark.parametrize("twice", [True, False])
def test_old_content_may_be_recorded_on_the_way(simulation: Any, twice: bool) -> None:
    """What was read before the change may be recorded, as long as the change follows."""
    simulation.write(Create(znodes.request_path(0), CONTENTS["move"]), session=CLIENT)
    if twice:
        rewrite(simulation, "refused")
    rewrite(simulation, "other")
    simulation.perform(CreateReassignment(Reassignment((1, 3), 2)))
    simulation.run()
    assert simulation.broken() == []
    assert simulation.partition.reassignment.target == (2, 4)


@pytest.mark.clause("request.order.sequence")
@pytest.mark.parametrize("changed", [0, 1])
def test_changed_request_keeps_its_place(simulation: Any, changed: int) -> None:
    """A change does not send a request to the end of the queue."""
    simulation.submit(1, 3)
    simulation.submit(1, 4)
    rewrite(simulation, "other", changed)
    simulation.run()
    targets = [(2, 4), (1, 4)] if changed == 0 else [(1, 3), (2, 4)]
    written = [op for t in simulation.history for op in t.ops if _is_record(op)]
    assert [znodes.decode_reassignment("", op.data).target for op in written] == targets
    assert simulation.broken() == []


def _is_record(op: Any) -> bool:
    path = znodes.reassignment_path("orders", 0)
    return isinstance(op, Create | SetData) and op.path == path


def test_controller_must_not_change_a_request(simulation: Any) -> None:
    """A controller that rewrites a request to what suits it has removed the one that was."""
    simulation.submit(1, 3)
    change = SetData(znodes.request_path(0), CONTENTS["refused"], 1)
    zxid = simulation.write(change, session=CONTROLLER, fenced=True)
    assert simulation.broken() == [("request.delete.child-first", zxid)]
