"""What readers of KAFKA-4485 take for granted across elections, and the stories that break it."""

from collections.abc import Callable, Mapping
from typing import Final

from reassure_explorer.promises import SmallWorld, Tale, make_world
from reassure_model.machine import Within, always
from reassure_model.protocols.kafka_4485.invariants import INVARIANTS
from reassure_model.protocols.kafka_4485.machine import MACHINE
from reassure_model.protocols.kafka_4485.replication import Replication, make_replication
from reassure_spec.readings import Readings

_SLOW: Final = ("remove", "refresh", "catch-up")
"""What no tale needs."""


def bound(elections: int = 2, *, again: bool = False) -> Within[Replication]:
    """Return what may happen with one record and so many elections.

    The leader is elected once more only where `again` is given.
    """

    def elects(before: Replication, after: Replication) -> bool:
        return after.leader_epoch <= elections and (again or after.leader != before.leader)

    return {"append": lambda _, after: len(after.replicas[after.leader].log) <= 1, "elect": elects}


def _tale(
    name: str,
    clause: str,
    statement: str,
    finding: str,
    steps: int,
    problem: str | Callable[[Replication], str | None],
    readings: Mapping[str, str] | None = None,
    *,
    brokers: int = 2,
    elections: int = 2,
    calm: bool = False,
) -> Tale:
    """Return a tale of one record; where it is `calm` nobody lags, the leader may be elected."""

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

    return Tale(name, clause, statement, finding, steps, "kafka-4485", make, readings or {})


def _find_lagging_member(state: Replication) -> str | None:
    left = sorted(state.isr - state.term.pseudo_isr)
    return f"{left[0]} lags and is stored in sync" if left else None


_AMENDED: Final = {
    "hw.over-stored-isr": "yes",
    "hw.served-from": "end-at-election",
    "isr.entry": "end-at-election",
    "follower.truncation": "common-prefix",
}
"""The four amendments."""


def _without(name: str) -> dict[str, str]:
    """Return three of the four amendments."""
    return {reading: value for reading, value in _AMENDED.items() if reading != name}


TALES: Final = (
    _tale(
        "story-committed-kept",
        "log.committed-kept",
        "As written, a clean election loses no record that consumers were shown.",
        "election-1",
        4,
        "log.committed-kept",
    ),
    _tale(
        "story-mark-never-back",
        "hw.served-from-end-at-election",
        "Without serving from the end at the election, consumers never see the mark go back.",
        "election-2",
        5,
        "hw.consumer.monotone",
        _without("hw.served-from"),
    ),
    _tale(
        "story-entry-holds-committed",
        "isr.entry.end-at-election",
        "With entry at the mark, whoever is stored in sync holds what was shown.",
        "election-3",
        8,
        "isr.stored.holds-committed",
        _without("isr.entry"),
        brokers=3,
        elections=1,
    ),
    _tale(
        "story-truncation-keeps-committed",
        "follower.truncation.common-prefix",
        "With truncation to the own mark, whoever is stored in sync holds what was shown.",
        "election-4",
        8,
        "isr.stored.holds-committed",
        _without("follower.truncation"),
        brokers=3,
        elections=1,
    ),
    _tale(
        "story-calm-keeps-committed",
        "isr.stored.holds-committed",
        "As written, where nobody lags or is removed, whoever is in sync holds what was shown.",
        "election-5",
        6,
        "isr.stored.holds-committed",
        elections=1,
        calm=True,
    ),
    _tale(
        "story-mark-survives-election",
        "hw.consumer.monotone",
        "As written, the mark that consumers see never goes back, whoever leads.",
        "watermark-12",
        4,
        "hw.consumer.monotone",
    ),
    _tale(
        "story-truncation-to-end-keeps-committed",
        "follower.truncation.common-prefix",
        "With truncation to the leader's end, whoever is stored in sync holds what was shown.",
        "watermark-13",
        7,
        "isr.stored.holds-committed",
        {**_AMENDED, "follower.truncation": "leader-end"},
    ),
    _tale(
        "story-stored-set-as-defined",
        "isr.write.conditional",
        "Whoever is stored in sync is within the lag limit, as the definition has it.",
        "watermark-14",
        1,
        _find_lagging_member,
    ),
)
