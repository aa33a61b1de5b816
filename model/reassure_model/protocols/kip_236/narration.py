"""How KIP-236 is told."""

from collections.abc import Iterator
from typing import Final

from reassure_model.narration import Vocabulary, parse_set, spell_leader
from reassure_model.partition import LeaderAndIsr, Partition, Reassignment
from reassure_model.protocols.kip_236.system import System
from reassure_model.writes import (
    ChangeIsr,
    CreateReassignment,
    CreateState,
    DeleteReassignment,
    DeleteRequest,
    Obligation,
    UpdateReassignment,
    Write,
    WriteAssigned,
    WriteState,
)
from reassure_spec.words import (
    Arguments,
    check_arguments,
    format_replicas,
    parse_number,
    spell_replicas,
)


def _format_state(state: LeaderAndIsr) -> str:
    leader = spell_leader(state.leader, "none")
    return f"leader {leader} isr {format_replicas(state.isr)} epoch {state.leader_epoch}"


def format_flight(flight: Reassignment) -> str:
    """Say what a record asks for."""
    legacy = ", legacy" if flight.legacy else ""
    return f"in flight to {format_replicas(flight.target)}, top {flight.top}{legacy}"


def iterate_lines(partition: Partition) -> Iterator[str]:
    """Yield what is to be seen of a partition, a line for each znode of it."""
    state = partition.state
    if partition.assigned is None:
        yield "does not exist"
    elif state is None:
        yield f"assigned {format_replicas(partition.assigned)}, not yet online"
    else:
        yield f"assigned {format_replicas(partition.assigned)} {_format_state(state)}"
    if partition.reassignment is not None:
        yield format_flight(partition.reassignment)
    for request in partition.requests:
        legacy = " (legacy)" if request.legacy else ""
        yield f"request {request.sequence} waits: {format_replicas(request.target)}{legacy}"


def format_write(write: Write, partition: Partition) -> str:
    """Say what a write changes of the partition that it is made to."""
    match write:
        case CreateState(state):
            return f"online: leader {state.leader} isr {format_replicas(state.isr)}"
        case WriteState(state) | ChangeIsr(state, _):
            old = partition.state
            if old is not None and (old.leader, old.isr) == (state.leader, state.isr):
                return f"leader epoch {state.leader_epoch}"
            return _format_state(state)
        case WriteAssigned(assigned):
            return f"assigned {format_replicas(assigned)}"
        case CreateReassignment(flight):
            return f"record made: {format_flight(flight)}"
        case UpdateReassignment(flight):
            return f"record changed: {format_flight(flight)}"
        case DeleteReassignment():
            return "record removed"
        case DeleteRequest(sequence):  # one way: there is no other write
            return f"request {sequence} removed"


def say_effect(owed: Obligation, before: System, _: System) -> str:
    """Return a write with the clause that asks for it."""
    return f"{format_write(owed.write, before.partition)} ({owed.clause})"


def _open(arguments: Arguments) -> System:
    check_arguments(arguments, ("brokers",), ("min.insync.replicas", "known"))
    brokers, known = parse_set(arguments, "brokers"), parse_set(arguments, "known")
    minimum = parse_number("min.insync.replicas", arguments.get("min.insync.replicas", "1"))
    return System(Partition(), brokers, brokers | known, minimum)


def _say_opening(system: System) -> tuple[str, ...]:
    least = system.min_insync_replicas
    minimum = "" if least == 1 else f" min.insync.replicas={least}"
    online = "" if system.partition.state is None else " online"
    return (
        f"world kip-236 brokers={spell_replicas(sorted(system.live))}{minimum}",
        f"topic assigned={spell_replicas(system.partition.assigned or ())}{online}",
    )


def show(system: System) -> str:
    """Return the partition, a line for each znode of it."""
    return "\n".join(iterate_lines(system.partition))


VOCABULARY: Final = Vocabulary(
    opening=_open,
    say_opening=_say_opening,
    show=show,
    say_effect=say_effect,
    runs="controller",
    closing=("owed", "show"),
)
