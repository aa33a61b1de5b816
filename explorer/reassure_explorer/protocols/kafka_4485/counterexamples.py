"""What readers of KAFKA-4485 take for granted across elections, and the traces that break it."""

from collections.abc import Callable, Mapping
from typing import Final

from reassure_explorer.counterexamples import Make, SmallWorld, make_world
from reassure_model.machine import Within, always
from reassure_model.protocols.kafka_4485.invariants import INVARIANTS
from reassure_model.protocols.kafka_4485.machine import MACHINE
from reassure_model.protocols.kafka_4485.replication import Replication, make_replication
from reassure_spec.readings import Readings

_SLOW: Final = ("remove", "refresh", "catch-up")
"""What no counterexample needs."""


def bound(elections: int = 2, *, again: bool = False) -> Within[Replication]:
    """Return what may happen with one record and so many elections.

    The leader is elected once more only where `again` is given.
    """

    def elects(before: Replication, after: Replication) -> bool:
        return after.leader_epoch <= elections and (again or after.leader != before.leader)

    return {"append": lambda _, after: len(after.replicas[after.leader].log) <= 1, "elect": elects}


def _make_world(
    problem: str | Callable[[Replication], str | None],
    *,
    brokers: int = 2,
    elections: int = 2,
    calm: bool = False,
) -> Make:
    """Return the world of one record; where it is `calm` nobody lags, the leader may be elected."""

    def make(chosen: Readings, called: str) -> SmallWorld:
        find = INVARIANTS[problem] if isinstance(problem, str) else problem
        return make_world(
            MACHINE,
            chosen,
            {called: always(find)},
            (),
            make_replication(brokers),
            times=dict.fromkeys(("lags", "removals")),
            without=(*_SLOW, "lag") if calm else _SLOW,
            within=bound(elections, again=calm),
            closing=("show",),
        )

    return make


def _find_lagging_member(state: Replication) -> str | None:
    left = sorted(state.isr - state.term.pseudo_isr)
    return f"{left[0]} lags and is stored in sync" if left else None


WORLDS: Final[Mapping[str, Make]] = {
    "story-committed-kept": _make_world("log.committed-kept"),
    "story-mark-never-back": _make_world("hw.consumer.monotone"),
    "story-entry-holds-committed": _make_world(
        "isr.stored.holds-committed", brokers=3, elections=1
    ),
    "story-truncation-keeps-committed": _make_world(
        "isr.stored.holds-committed", brokers=3, elections=1
    ),
    "story-calm-keeps-committed": _make_world("isr.stored.holds-committed", elections=1, calm=True),
    "story-mark-survives-election": _make_world("hw.consumer.monotone"),
    "story-truncation-to-end-keeps-committed": _make_world("isr.stored.holds-committed"),
    "story-stored-set-as-defined": _make_world(_find_lagging_member),
}
