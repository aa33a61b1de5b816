"""The old znode beside KIP-236 as a machine: what may happen and what must never be."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from reassure_model.environment import Controller, Die, Failover, Join, Leave, On, Return
from reassure_model.fields import AsBegun, Domain, EachOf, Held, ListOf, OrNone, RecordOf, SetOf
from reassure_model.invariants import INVARIANTS
from reassure_model.machine import (
    CONTROLLER,
    DIE,
    FAILOVER,
    JOIN,
    LEAVE,
    RETURN,
    Act,
    Goal,
    Machine,
    Property,
    Sets,
)
from reassure_model.partition import Partition, spell_key
from reassure_model.protocols.kip_236.machine import PARTITION
from reassure_model.protocols.kip_236.machine import is_settled as is_partition_settled
from reassure_model.protocols.kip_236.system import enabled
from reassure_model.protocols.kip_236_legacy import (
    PROMISES,
    Ask,
    DeleteLegacy,
    Entries,
    Legacy,
    WriteLegacy,
    next_effect,
    step,
)
from reassure_model.protocols.kip_236_legacy.narration import VOCABULARY
from reassure_spec.readings import Readings
from reassure_spec.words import spell_replicas
from reassure_spec.znodes import PartitionKey, ReplicaList

_ENTRIES: Final = OrNone(ListOf("entries", "entries"))

FIELDS: Final[Mapping[str, Domain]] = {
    "live": SetOf("brokers"),
    "partitions": EachOf("keys", RecordOf(Partition, PARTITION, always=True), paired=True),
    "entries": _ENTRIES,
    "seen": _ENTRIES,
    "known": AsBegun(),
    "min_insync_replicas": AsBegun(),
    "controller_epoch": Held(0),
    "next_sequence": Held(0),
}

Asked = tuple[tuple[PartitionKey, ReplicaList], ...]


def _say_entries(entries: Entries) -> str:
    words = (f"{spell_key(e.key)}:{spell_replicas(e.target)}" for e in entries)
    return f'write entries="{" ".join(words)}"'


def _say_asked(asked: Asked) -> str:
    words = (f"{spell_key(key)}:{spell_replicas(target)}" for key, target in asked)
    return f'ask entries="{" ".join(words)}"'


def _describe_entries(entries: Entries) -> str:
    words = (f"{spell_key(e.key)} to {list(e.target)}" for e in entries)
    return f"write {', '.join(words)}"


def _describe_asked(asked: Asked) -> str:
    words = (f"{list(target)}, {spell_key(key)}" for key, target in asked)
    return f"ask {', '.join(words)}"


def _on_one(act: Act) -> Act:
    """Return the act as one that happens to one of the partitions."""

    def say(parameter: tuple[PartitionKey, int]) -> str:
        key, replica = parameter
        return f"{act.name} partition={spell_key(key)} replica={replica}"

    def describe(parameter: tuple[PartitionKey, int]) -> str:
        key, replica = parameter
        return f"{act.name} {replica}, {spell_key(key)}"

    return replace(act, over="replicas", of_several=True, saying=say, brief=describe)


ACTS: Final = (
    Act(
        "write",
        WriteLegacy,
        "contents",
        saying=_say_entries,
        brief=_describe_entries,
        counted="writes",
    ),
    Act("delete", DeleteLegacy, counted="writes"),
    Act("ask", Ask, "asked", saying=_say_asked, brief=_describe_asked, counted="requests"),
    _on_one(JOIN),
    _on_one(LEAVE),
    DIE,
    RETURN,
    FAILOVER,
    CONTROLLER,
)
"""`replicas` are pairs, of a partition and a broker."""


def list_enabled(legacy: Legacy, readings: Readings, sets: Sets) -> Iterator[Any]:
    """Yield every action that is possible."""
    yield from (Ask(asked) for asked in sets.get("asked", ()))
    yield from (WriteLegacy(entries) for entries in sets.get("contents", ()))
    if legacy.entries is not None:
        yield DeleteLegacy()
    yield Failover()
    if next_effect(legacy, readings) is not None:
        yield Controller()
    for key, _ in legacy.partitions:
        inner = enabled(legacy.as_system(key), readings)
        yield from (On(key, action) for action in inner if isinstance(action, Join | Leave))
    yield from (Die(broker) for broker in sorted(legacy.live))
    yield from (Return(broker) for broker in sorted(legacy.known - legacy.live))


# What must never be, and what must be reachable ---------------------------------------------------


def _find_in_any(find: Callable[[Partition], str | None]) -> Callable[[Legacy, Readings], Any]:
    def found(legacy: Legacy, readings: Readings) -> str | None:
        for at, (_, partition) in enumerate(legacy.partitions):
            reason = find(partition)
            if reason is not None:
                return reason if len(legacy.partitions) == 1 else f"partition {at}: {reason}"
        return None

    return found


def _is_any(test: Callable[[Partition], bool]) -> Callable[[Legacy, Readings], bool]:
    return lambda legacy, _: any(test(partition) for _, partition in legacy.partitions)


def _is_found(legacy: Legacy, readings: Readings) -> bool:
    there = legacy.entries is not None and legacy.seen is None
    return there and _is_any(lambda p: p.reassignment is not None)(legacy, readings)


PROPERTIES: Final[tuple[Property[Legacy], ...]] = (
    *(Property(e.clause, _find_in_any(e.find), at_rest=e.at_rest) for e in INVARIANTS),
    *(Property(clause, find) for clause, find in PROMISES.items()),
)

GOALS: Final[tuple[Goal[Legacy], ...]] = (
    Goal("the old znode is there", lambda s, _: s.entries is not None),
    Goal("a request was made of an entry", lambda s, _: s.seen is not None and len(s.seen) > 0),
    Goal(
        "a reassignment by the old route is in flight",
        _is_any(lambda p: p.reassignment is not None and p.reassignment.legacy),
    ),
    Goal(
        "a reassignment by the new route is in flight",
        _is_any(lambda p: p.reassignment is not None and not p.reassignment.legacy),
    ),
    Goal(
        "requests by both routes are pending",
        _is_any(lambda p: len({r.legacy for r in p.requests}) == 2),
    ),
    Goal("a new controller finds the old znode", _is_found),
)


def is_settled(legacy: Legacy) -> bool:
    """Whether no reassignment is in flight but those that wait for a dead broker."""
    return all(is_partition_settled(legacy.as_system(key)) for key, _ in legacy.partitions)


MACHINE: Final = Machine(
    name="kip-236-legacy",
    summary="the old znode, translated into requests of KIP-236",
    state=Legacy,
    fields=FIELDS,
    acts=ACTS,
    step=step,
    next_effect=next_effect,
    enabled=list_enabled,
    is_at_rest=lambda legacy, readings: next_effect(legacy, readings) is None,
    properties=PROPERTIES,
    goals=GOALS,
    vocabulary=VOCABULARY,
    is_settled=is_settled,
)
