"""Partitions, writes and clusters out of named values, what is run on them, and their shapes."""

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any, Final

from reassure_model.outcome import Accepted
from reassure_model.partition import Environment, LeaderAndIsr, Partition, Reassignment, Request
from reassure_model.protocols.kip_236 import apply_failover, next_write
from reassure_model.protocols.kip_236.rules import accept_write
from reassure_model.protocols.kip_236.system import compute_plan
from reassure_model.writes import (
    ChangeIsr,
    CreateReassignment,
    CreateState,
    DeleteReassignment,
    DeleteRequest,
    UpdateReassignment,
    WriteAssigned,
    WriteState,
)
from reassure_proofs.engine.statement import (
    BROKER,
    ID,
    LIST,
    SET,
    TRUTH,
    Parameter,
    Shape,
    Values,
    ids,
    word,
)
from reassure_spec.readings import Readings, get_profile

PROFILE: Final = "kip-236-amended"
_READINGS: Final = get_profile(PROFILE)
LENGTHS_MAX: Final = 6
"""How long all lists together may be where a write has many paths."""
LENGTHS_MAX_THOROUGH: Final = 8
"""The same in a thorough proof; all there are of length 2."""
ANY_SIZE: Final = (
    "any number of brokers, with up to two requests and the orders that choices-reorder knows, but "
    "in a controller's write of the state while a reassignment is in flight; there "
)
"""What `_any_size_shapes` yields, as a bound begins."""

# States and writes out of named values ----------------------------------------------------------


def make_partition(values: Values) -> Partition:
    """Return the partition that the values describe.

    What they do not name is not there: no state, nothing in flight, no request pending.
    """
    state = flight = None
    requests: tuple[Request, ...] = ()
    if "isr" in values:
        epochs = (values.get("leader_epoch", 0), values.get("controller_epoch", 1))
        state = LeaderAndIsr(values["leader"], *epochs, values["isr"])
    if "target" in values:
        flight = Reassignment(values["target"], values["top"])
    if "requested" in values:
        requests = (Request(values.get("sequence", 0), values["requested"]),)
    if "requested_next" in values:
        requests = (*requests, Request(values.get("sequence_next", 1), values["requested_next"]))
    memory = [values.get(name, False) for name in ("drop_due", "announce_due", "completing")]
    return Partition(values["assigned"], state, flight, requests, *memory)


def make_surroundings(values: Values) -> Environment:
    """Return what the rules read of the cluster."""
    known, acting = values.get("known", values["live"]), values.get("acting_epoch", 1)
    return Environment(values["live"], known, values.get("minimum", 1), acting)


def _new_state(values: Values) -> LeaderAndIsr:
    epochs = (values["new_leader_epoch"], values["new_controller_epoch"])
    return LeaderAndIsr(values["new_leader"], *epochs, values["new_isr"])


def _new_record(values: Values) -> Reassignment:
    return Reassignment(values["new_target"], values["new_top"])


_MAKE: Final[Mapping[str, Callable[[Values], Any]]] = {
    "change-isr": lambda v: ChangeIsr(_new_state(v), v["writer"]),
    "create-state": lambda v: CreateState(_new_state(v)),
    "write-state": lambda v: WriteState(_new_state(v)),
    "write-assigned": lambda v: WriteAssigned(v["new_assigned"]),
    "create-reassignment": lambda v: CreateReassignment(_new_record(v)),
    "update-reassignment": lambda v: UpdateReassignment(_new_record(v)),
    "delete-reassignment": lambda _: DeleteReassignment(),
    "delete-request": lambda v: DeleteRequest(v["removed"]),
}
"""Every kind of write by name."""

WRITES: Final = (*_MAKE, "failover")
"""Every kind of step; a failover is none that the rules could refuse."""


def take(values: Values, readings: Readings = _READINGS) -> Partition | None:
    """Return the partition after the step that the values describe, None if the rules refuse it."""
    partition = make_partition(values)
    if values["write"] == "failover":
        return apply_failover(partition, readings)
    write = _MAKE[values["write"]](values)
    outcome = accept_write(partition, write, make_surroundings(values), readings)
    return outcome.state if isinstance(outcome, Accepted) else None


def take_owed(values: Values, readings: Readings = _READINGS) -> tuple[bool, Partition]:
    """Return whether the rules accept what the controller owes, and the partition after it."""
    partition, around = make_partition(values), make_surroundings(values)
    owed = next_write(partition, around, readings)
    if owed is None:
        return True, partition
    outcome = accept_write(partition, owed.write, around, readings)
    accepted = isinstance(outcome, Accepted)
    return accepted, outcome.state if isinstance(outcome, Accepted) else partition


def carry_out(values: Values, readings: Readings = _READINGS) -> tuple[int, Partition, bool]:
    """Return how many writes the controller owes, the partition after them, whether it rests."""
    partition, around = make_partition(values), make_surroundings(values)
    plan, after = compute_plan(partition, around, readings)
    return len(plan), after, next_write(after, around, readings) is None


def _accept(partition: Partition, write: Any, around: Environment, readings: Readings) -> Partition:
    outcome = accept_write(partition, write, around, readings)
    assert isinstance(outcome, Accepted)
    return outcome.state


def crash_and_resume(
    values: Values, readings: Readings = _READINGS
) -> tuple[Partition, tuple[Partition, ...]]:
    """Return the partition at rest, and at rest after a failover at each point of the plan."""
    partition, around = make_partition(values), make_surroundings(values)
    plan, final = compute_plan(partition, around, readings)
    resumed: tuple[Partition, ...] = ()
    for owed in (None, *plan):
        if owed is not None:
            partition = _accept(partition, owed.write, around, readings)
        found = apply_failover(partition, readings)
        resumed = (*resumed, compute_plan(found, around, readings)[1])
    return final, resumed


def catch_up(values: Values, readings: Readings = _READINGS) -> Partition:
    """Return the partition after the controller rested, the target caught up, and it went on."""
    partition, around = make_partition(values), make_surroundings(values)
    partition = compute_plan(partition, around, readings)[1]
    flight = partition.reassignment
    for replica in flight.target if flight is not None else ():
        state = partition.state
        assert state is not None
        if replica not in state.isr:
            epochs = (state.leader_epoch, state.controller_epoch)
            joined = LeaderAndIsr(state.leader, *epochs, (*state.isr, replica))
            partition = _accept(partition, ChangeIsr(joined, state.leader), around, readings)
    return compute_plan(partition, around, readings)[1]


# Shapes -----------------------------------------------------------------------------------------


def shape_partition(
    assigned: int, isr: int = 0, target: int = 0, requested: int = 0
) -> dict[str, Any]:
    """Return a partition with lists of these lengths, and its surroundings."""
    shape: dict[str, Any] = {"assigned": ids(assigned)}
    if isr:
        epochs = {"leader_epoch": Parameter(), "controller_epoch": Parameter()}
        shape |= {"isr": ids(isr), "leader": ID, **epochs}
    if target:
        shape |= {"target": ids(target), "top": ID}
        shape |= {"drop_due": TRUTH, "completing": TRUTH}
    if requested:
        shape |= {"requested": ids(requested), "sequence": Parameter()}
    shape |= {"announce_due": TRUTH, "live": SET, "known": SET}
    return {**shape, "minimum": ID, "acting_epoch": Parameter()}


def shape_state(isr: int) -> dict[str, Any]:
    """Return the leader and in-sync set of so many that are written."""
    epochs = {"new_leader_epoch": Parameter(), "new_controller_epoch": Parameter()}
    return {"new_leader": ID, **epochs, "new_isr": ids(isr)}


def shape_steps(replication_factor: int) -> Iterator[Shape]:
    """Yield every kind of step, of any number of brokers or with lists of every length."""
    yield from _any_size_shapes()
    longest = LENGTHS_MAX if replication_factor <= 2 else LENGTHS_MAX_THOROUGH
    lengths = range(1, replication_factor + 1)
    for assigned, isr, target in product(lengths, lengths, lengths):
        for new in range(isr + 1 if isr <= assigned else 0):
            if new == 0 or assigned + isr + target + new <= longest:
                before = shape_partition(assigned, isr, target)
                yield {"write": word("write-state"), **before, **shape_state(new)}


def _any_size_shapes() -> Iterator[Shape]:
    """Yield the kinds of step that are followed for any number of brokers."""
    written = {**shape_state(0), "new_leader": BROKER, "new_isr": LIST}
    record = {"new_target": LIST, "new_top": Parameter()}
    new = dict(shape_partition(0), assigned=LIST)
    held = {**shape_partition(0, 1), "assigned": LIST, "isr": LIST, "leader": BROKER}
    flight = {**shape_partition(0, 1, 1), **held, "target": LIST}
    asked = {"requested": LIST, "sequence": Parameter()}
    asked_twice = {**asked, "requested_next": LIST, "sequence_next": Parameter()}
    yield {"write": word("create-state"), **new, **written}
    yield {"write": word("failover"), **flight}
    yield {"write": word("delete-reassignment"), **flight}
    yield {"write": word("write-assigned"), **flight, "new_assigned": LIST}
    yield {"write": word("write-state"), **held, **written}
    for before, kind in ((held, "create-reassignment"), (flight, "update-reassignment")):
        yield {"write": word("change-isr"), **before, **written, "writer": BROKER}
        for requests in (asked, asked_twice):
            yield {"write": word(kind), **before, **requests, **record}
            yield {"write": word("delete-request"), **before, **requests, "removed": Parameter()}


def shape_owed(replication_factor: int) -> Iterator[Shape]:
    """Yield the partitions in which a single write is looked at."""
    lengths = range(1, replication_factor + 1)
    longest = min(3 * replication_factor, replication_factor + 4)
    for assigned in lengths:
        yield shape_partition(assigned)
        for isr, target, requested in product(lengths, (0, *lengths), (0, *lengths)):
            if isr <= assigned and assigned + isr + target + requested <= longest:
                yield shape_partition(assigned, isr, target, requested)


def shape_in_flight(replication_factor: int, beyond: int = 4) -> Iterator[Shape]:
    """Yield the partitions with a reassignment, their lists `beyond` the factor in all at most."""
    lengths = range(1, replication_factor + 1)
    for assigned, isr, target in product(lengths, lengths, lengths):
        if isr <= assigned and assigned + isr + target <= replication_factor + beyond:
            yield shape_partition(assigned, isr, target)


def shape_cut(replication_factor: int) -> Iterator[Shape]:
    """Yield the shapes in which the lists are not all of the largest length.

    A plan that is cut at every point has many times the paths of one that is not.
    """
    return shape_in_flight(replication_factor, beyond=3)


def shape_plan(replication_factor: int) -> Iterator[Shape]:
    """Yield the partitions in which a whole plan is looked at."""
    yield from shape_cut(replication_factor)
    for assigned, requested in product(range(1, replication_factor + 1), repeat=2):
        yield shape_partition(assigned, 1, 0, requested)
