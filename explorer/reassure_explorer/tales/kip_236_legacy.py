"""What clients of the old znode take for granted beside the new route, and what breaks it."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from reassure_explorer.tales import Meeting, SmallWorld, Tale, say
from reassure_model import kip_236_legacy
from reassure_model.environment import Controller, Failover, Join
from reassure_model.kip_236 import system
from reassure_model.kip_236.batch import On
from reassure_model.kip_236.invariants import INVARIANTS, Invariant
from reassure_model.kip_236.obligations import next_write
from reassure_model.kip_236.state import Partition
from reassure_model.kip_236_legacy import PROMISES, Ask, Legacy, WriteLegacy
from reassure_model.outcome import Accepted
from reassure_spec.readings import Readings
from reassure_spec.words import spell_replicas
from reassure_spec.znodes import LegacyEntry, PartitionKey, ReplicaList

KEY: Final[PartitionKey] = ("t", 0)
OPENING: Final = ("world kip-236-legacy brokers=1,2,3", "partition name=t-0 assigned=1")


def write(target: ReplicaList) -> WriteLegacy:
    """Return the write of the old znode that names the one partition."""
    return WriteLegacy((LegacyEntry(KEY, target, None),))


def ask(target: ReplicaList) -> Ask:
    """Return the request for the one partition by the new route."""
    return Ask(((KEY, target),))


def begin(readings: Readings) -> Legacy:
    """Return one partition on broker 1 of three, online."""
    born = kip_236_legacy.make_legacy({KEY: (1,)}, frozenset({1, 2, 3}))
    online = kip_236_legacy.step(born, Controller(), readings)
    assert isinstance(online, Accepted)  # nothing is asked for yet
    return online.state


def follow(
    state: Legacy, others: tuple[Any, ...], readings: Readings
) -> Iterator[tuple[Any, Legacy]]:
    """Yield what clients may do, failovers, the controller's next effect and who may join."""
    due = [Controller()] if kip_236_legacy.next_effect(state, readings) is not None else []
    inner = system.enabled(state.as_system(KEY), readings)
    joins = [On(KEY, action) for action in inner if isinstance(action, Join)]
    for action in (*others, Failover(), *due, *joins):
        outcome = kip_236_legacy.step(state, action, readings)
        if isinstance(outcome, Accepted):
            # The epoch only counts; without it there are far fewer states to tell apart.
            yield action, replace(outcome.state, controller_epoch=1)


def _say(action: Any) -> str:
    match action:
        case WriteLegacy(entries):
            return f'write entries="t-0:{spell_replicas(entries[0].target)}"'
        case Ask(assignments):
            return f'ask entries="t-0:{spell_replicas(assignments[0][1])}"'
        case On(_, Join(replica)):
            return f"join partition=t-0 replica={replica}"
    return say(action)


def _tale(
    name: str,
    clause: str,
    statement: str,
    finding: str,
    steps: int,
    others: tuple[Any, ...],
    writes: int = 1,
) -> Tale:
    def make(readings: Readings, called: str) -> SmallWorld:
        return SmallWorld(
            begin(readings),
            partial(follow, others=others, readings=readings),
            {called: lambda state: PROMISES[clause](state, readings)},
            {WriteLegacy: writes, Ask: 1, Failover: 0},
            _say,
            OPENING,
        )

    return Tale(name, clause, statement, finding, steps, "kip-236-legacy", make)


TALES: Final = (
    _tale(
        "story-refused-entry-goes",
        "legacy.entry.refused-removed",
        "An entry that is refused goes without being cleaned up.",
        "legacy-1",
        8,
        (ask((2,)), write((3,))),
    ),
    _tale(
        "story-cancelled-by-either-route",
        "legacy.conflict.both-ways",
        "What the old znode has begun can be taken back by a request.",
        "legacy-2",
        7,
        (ask((1,)), write((2,))),
    ),
    _tale(
        "story-rewrite-is-seen",
        "legacy.rewrite.taken-up",
        "Whatever a client writes to the old znode is looked at.",
        "legacy-3",
        7,
        (write((2,)), write((3,))),
        writes=2,
    ),
)


# Both routes at once ----------------------------------------------------------------------------


def _find_rejected(state: Legacy, readings: Readings) -> str | None:
    """Say so when the rules reject what the controller owes."""
    if kip_236_legacy.next_effect(state, readings) is None:
        return None
    outcome = kip_236_legacy.step(state, Controller(), readings)
    return None if isinstance(outcome, Accepted) else f"rejected by {outcome.clause}"


def _find_broken(state: Legacy, invariant: Invariant[Partition], readings: Readings) -> str | None:
    partition = state.get(KEY)
    rests = next_write(partition, state.as_system(KEY).around, readings) is None
    return None if invariant.at_rest and not rests else invariant.find(partition)


def _find_waiting_client(state: Legacy, readings: Readings) -> str | None:
    """Say so when the controller waits while an entry has nothing in flight for it."""
    if state.entries is None or kip_236_legacy.next_effect(state, readings) is not None:
        return None
    if state.get(KEY).reassignment is not None:
        return None
    return f"nothing is in flight for the entry {list(state.entries[0].target)}"


def _meet(readings: Readings) -> SmallWorld:
    clients = (write((2,)), write((3,)), ask((2,)), ask((1,)))
    return SmallWorld(
        begin(readings),
        partial(follow, others=clients, readings=readings),
        {
            **{
                each.clause: partial(_find_broken, invariant=each, readings=readings)
                for each in INVARIANTS
            },
            "legacy.entry.removed-when-done": partial(_find_waiting_client, readings=readings),
            "complete.carried-out": partial(_find_rejected, readings=readings),
        },
        {WriteLegacy: 2, Ask: 1, Failover: 1},
        _say,
        OPENING,
    )


MEETINGS: Final = (
    Meeting(
        "meeting-of-routes",
        "the old znode and requests by the new route: one replica, three brokers, nobody dies; two "
        "writes of the znode, one request, one failover",
        "kip-236-legacy",
        _meet,
    ),
)
