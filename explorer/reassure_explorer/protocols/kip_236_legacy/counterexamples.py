"""What clients of the old znode take for granted beside the new route, and what breaks it."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from reassure_explorer.counterexamples import Find, Make, Meetings, SmallWorld, make_world
from reassure_model.environment import Controller
from reassure_model.invariants import INVARIANTS
from reassure_model.outcome import Accepted
from reassure_model.protocols.kip_236_legacy import PROMISES, Legacy, make_legacy, next_effect
from reassure_model.protocols.kip_236_legacy.machine import MACHINE
from reassure_spec.readings import Readings
from reassure_spec.znodes import LegacyEntry, PartitionKey, ReplicaList

KEY: Final[PartitionKey] = ("t", 0)


def _make(
    readings: Readings,
    problems: Mapping[str, Find],
    asked: tuple[ReplicaList, ...],
    written: tuple[ReplicaList, ...],
    writes: int,
    failovers: int = 0,
) -> SmallWorld:
    """Return the world of one partition on broker 1 of three, where nobody dies or lags."""
    born = make_legacy({KEY: (1,)}, frozenset({1, 2, 3}))
    online = MACHINE.step(born, Controller(), readings)
    assert isinstance(online, Accepted)  # nothing is asked for yet
    return make_world(
        MACHINE,
        readings,
        problems,
        (),
        MACHINE.normalise(online.state),
        sets={
            "asked": tuple(((KEY, target),) for target in asked),
            "contents": tuple((LegacyEntry(KEY, target, None),) for target in written),
        },
        times={"writes": writes, "requests": 1, "failovers": failovers},
        without=("delete", "leave", "die", "return"),
    )


def _make_world(clause: str, asked: tuple[ReplicaList, ...], *written: ReplicaList) -> Make:
    def make(readings: Readings, called: str) -> SmallWorld:
        return _make(readings, {called: PROMISES[clause]}, asked, written, len(written))

    return make


WORLDS: Final[Mapping[str, Make]] = {
    "story-refused-entry-goes": _make_world("legacy.entry.refused-removed", ((2,),), (3,)),
    "story-cancelled-by-either-route": _make_world("legacy.conflict.both-ways", ((1,),), (2,)),
    "story-rewrite-is-seen": _make_world("legacy.rewrite.taken-up", (), (2,), (3,)),
}


# Both routes at once ----------------------------------------------------------------------------


def _find_rejected(state: Legacy, readings: Readings) -> str | None:
    """Say so when the rules reject what the controller owes."""
    if next_effect(state, readings) is None:
        return None
    outcome = MACHINE.step(state, Controller(), readings)
    return None if isinstance(outcome, Accepted) else f"rejected by {outcome.clause}"


def _find_waiting_client(state: Legacy, readings: Readings) -> str | None:
    """Say so when the controller waits while an entry has nothing in flight for it."""
    if state.entries is None or next_effect(state, readings) is not None:
        return None
    if state.get(KEY).reassignment is not None:
        return None
    return f"nothing is in flight for the entry {list(state.entries[0].target)}"


def _meet(readings: Readings) -> SmallWorld:
    always = {each.clause for each in INVARIANTS}
    problems: dict[str, Find] = {
        each.clause: partial(MACHINE.find_broken, each)
        for each in MACHINE.properties
        if each.clause in always
    }
    problems["legacy.entry.removed-when-done"] = _find_waiting_client
    problems["complete.carried-out"] = _find_rejected
    return _make(readings, problems, ((2,), (1,)), ((2,), (3,)), writes=2, failovers=1)


MEETINGS: Final[Meetings] = {"meeting-of-routes": _meet}
