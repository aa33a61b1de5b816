"""KIP-236 as a machine: what may happen to a partition and what must never be."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from reassure_model.environment import Controller, Failover
from reassure_model.fields import (
    AsBegun,
    Domain,
    Flag,
    Held,
    Int,
    ListOf,
    OneOf,
    Place,
    RecordOf,
    SetOf,
    Under,
)
from reassure_model.invariants import GOALS, INVARIANTS
from reassure_model.machine import (
    CONTROLLER,
    DIE,
    FAILOVER,
    JOIN,
    LEAVE,
    RETURN,
    Act,
    Goal,
    Judgement,
    Machine,
    Property,
    Sets,
    Watch,
)
from reassure_model.outcome import Rejected
from reassure_model.partition import LeaderAndIsr, Partition, Reassignment, Request
from reassure_model.protocols.kip_236 import apply_failover, find_drop, is_remembered, next_write
from reassure_model.protocols.kip_236.narration import VOCABULARY
from reassure_model.protocols.kip_236.promises import PROMISES, Memory, Moment
from reassure_model.protocols.kip_236.rules import accept_write
from reassure_model.protocols.kip_236.system import Submit, System, enabled, step
from reassure_model.writes import Obligation, Write
from reassure_spec.readings import Readings
from reassure_spec.words import spell_replicas
from reassure_spec.znodes import NO_LEADER, ReplicaList

SELF_CONSISTENCY: Final = "model.owed-is-allowed"
"""Name of the property that the rules accept every write that is owed."""

# What a state is ----------------------------------------------------------------------------------

_ASKED: Final = ("target", "legacy")
"""What a request asks for, and whether it comes by the legacy route: the set `targets` has both."""
_REASSIGNMENT: Final[Mapping[Any, Domain]] = {_ASKED: OneOf(of="targets"), "top": Int(0, "brokers")}

PARTITION: Final[Mapping[Any, Domain]] = {
    "reassignment": RecordOf(Reassignment, _REASSIGNMENT, {"target": "flight", "top": "top"}),
    "requests": ListOf(
        RecordOf(Request, {"sequence": Place(), _ASKED: OneOf(of="targets")}), "queue"
    ),
    "drop_due": Flag(),
    "announce_due": Flag(),
    "completing": Flag(),
    "state": RecordOf(
        LeaderAndIsr,
        {
            "leader": OneOf((NO_LEADER,), "brokers"),
            "isr": ListOf("brokers", "brokers"),
            "leader_epoch": Held(0),
            "controller_epoch": Held(0),
        },
        {"leader": "leader", "isr": "isr"},
    ),
    "assigned": ListOf("brokers", "places"),
    "taken": Under(
        is_remembered,
        RecordOf(Reassignment, _REASSIGNMENT, {"target": "taken", "top": "taken_top"}),
    ),
}
"""`places` has as many members as replicas can be assigned, `queue` as requests can wait.

Epochs and the numbers of requests grow without end and are only compared with their like."""

FIELDS: Final[Mapping[str, Domain]] = {
    "live": SetOf("brokers"),
    "partition": RecordOf(Partition, PARTITION, always=True),
    "known": AsBegun(),
    "min_insync_replicas": AsBegun(),
    "controller_epoch": Held(0),
    "next_sequence": Held(0),
}
SHARED: Final = ("live", "known", "min_insync_replicas", "controller_epoch", "next_sequence")


def _describe_request(asked: tuple[ReplicaList, bool]) -> str:
    target, legacy = asked
    return f"submit {list(target)}" + (" by the legacy route" if legacy else "")


def _say_request(asked: tuple[ReplicaList, bool]) -> str:
    target, legacy = asked
    return f"submit target={spell_replicas(target)}" + (" legacy" if legacy else "")


ACTS: Final = (
    Act(
        "submit",
        Submit,
        "targets",
        in_parts=True,
        saying=_say_request,
        brief=_describe_request,
        counted="requests",
    ),
    JOIN,
    LEAVE,
    DIE,
    RETURN,
    FAILOVER,
    CONTROLLER,
)


def list_enabled(system: System, readings: Readings, sets: Sets) -> tuple[Any, ...]:
    """Return every action that is possible."""
    return enabled(system, readings, tuple(Submit(*each) for each in sets.get("targets", ())))


def next_effect(system: System, readings: Readings) -> Obligation | None:
    """Return the write that is owed to the partition, None where it is at rest."""
    return next_write(system.partition, system.around, readings)


# What must never be -------------------------------------------------------------------------------


def find_contradiction(system: System, readings: Readings) -> str | None:
    """Say so when the rules reject a write that is owed."""
    owed = next_effect(system, readings)
    outcome = None if owed is None else step(system, Controller(), readings)
    if owed is None or not isinstance(outcome, Rejected):
        return None
    return f"{owed.clause} asks for what {outcome.clause} forbids: {outcome.reason}"


def _of_partition(find: Callable[[Partition], Any]) -> Callable[[System, Readings], Any]:
    return lambda system, _: find(system.partition)


PROPERTIES: Final[tuple[Property[System], ...]] = (
    Property(SELF_CONSISTENCY, find_contradiction, when_refused=True),
    *(Property(each.clause, _of_partition(each.find), at_rest=each.at_rest) for each in INVARIANTS),
)


def _remember(
    before: System, memory: Memory, action: Any, after: System, readings: Readings
) -> Memory:
    """Return what is kept in mind after an action (`promises.Memory`)."""
    if isinstance(action, Failover):
        return _note_drop(before, memory, after, readings)
    if not isinstance(action, Controller):
        return memory
    was, now = before.partition, after.partition
    begun = now.reassignment
    if begun is None and was.reassignment is not None:
        return Memory()
    if begun is None:
        begun = now.taken
    if begun is None:
        return memory
    assigned = was.assigned or ()
    if not memory.original:
        return replace(memory, original=assigned, before=assigned)
    if _ask(now.reassignment) != _ask(was.reassignment) or (now.drop_due and not was.drop_due):
        return replace(memory, before=assigned, lost=False, again=False)
    return memory


def _ask(flight: Reassignment | None) -> tuple[ReplicaList, bool] | None:
    return None if flight is None else (flight.target, flight.legacy)


def _note_drop(before: System, memory: Memory, after: System, readings: Readings) -> Memory:
    """Note where a failover hides a drop that was due, or asks for one that was not."""
    was, now = before.partition.drop_due, after.partition.drop_due
    # Whoever knows of the drop says whether there is anything to drop.
    if was == now or not find_drop((before if was else after).partition, readings):
        return memory
    return replace(memory, lost=True) if was else replace(memory, again=True)


def _at_moment(
    find: Callable[[Moment], str | None],
) -> Callable[[System, Memory, Readings], str | None]:
    return lambda system, memory, readings: find(
        Moment(system.partition, system.around, memory, readings)
    )


WATCH: Final[Watch[System, Memory]] = Watch(
    Memory(),
    {
        "original": ListOf("brokers", "places"),
        "before": ListOf("brokers", "places"),
        "lost": Flag(),
        "again": Flag(),
    },
    _remember,
    {clause: _at_moment(find) for clause, find in PROMISES.items()},
)


def is_settled(system: System) -> bool:
    """Whether no reassignment is in flight, or it waits for a dead broker."""
    flight = system.partition.reassignment
    return flight is None or any(replica not in system.live for replica in flight.target)


JUDGEMENT: Final[Judgement[Partition, Write]] = Judgement(
    Partition(),
    accept_write,
    apply_failover,
    next_write,
    INVARIANTS,
    mind=("drop_due", "announce_due", "completing", "taken"),
)


MACHINE: Final = Machine(
    name="kip-236",
    summary="requests in a queue, and a record for each reassignment in flight",
    state=System,
    fields=FIELDS,
    acts=ACTS,
    step=step,
    next_effect=next_effect,
    enabled=list_enabled,
    is_at_rest=lambda system, readings: next_effect(system, readings) is None,
    properties=PROPERTIES,
    goals=tuple(Goal(name, _of_partition(reached)) for name, reached in GOALS.items()),
    vocabulary=VOCABULARY,
    is_settled=is_settled,
    judgement=JUDGEMENT,
    shared=SHARED,
    watch=WATCH,
    alike={
        "brokers": lambda rename, broker: rename(broker),
        "targets": lambda rename, asked: (tuple(map(rename, asked[0])), asked[1]),
    },
)
