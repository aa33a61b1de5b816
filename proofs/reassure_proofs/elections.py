"""The leader selectors: who is elected, for any assignment, in-sync set and set of live brokers."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from reassure_model.selectors import (
    select_new,
    select_offline,
    select_preferred,
    select_reassigned,
)
from reassure_proofs.formula import Truth, all_of, any_of, inside, member, negate
from reassure_proofs.statement import (
    Function,
    Parameter,
    Shape,
    Subject,
    Telling,
    Theorem,
    Values,
    spell_replicas,
)

_PROFILE: Final = "kip-236"


def _shapes(replication_factor: int) -> Iterator[Shape]:
    for assigned in range(1, replication_factor + 1):
        for isr in range(replication_factor + 1):
            yield {
                "assigned": Parameter(assigned, floor=1),
                "isr": Parameter(isr, floor=1),
                "live": Parameter(kind="set"),
            }


def selector_function(select: Callable[..., Any]) -> Function:
    """Return a selector as a function of named values; it answers a leader, or None."""

    def function(values: Values) -> Any:
        elected = select(values["assigned"], values["isr"], values["live"])
        return getattr(elected, "leader", elected)

    return function


def _subject(name: str, select: Callable[..., Any], words: str) -> Subject:
    return Subject(name, selector_function(select), words, _shapes, hashable=True)


def _tell_unclean(values: Values) -> Telling:
    lists = {name: spell_replicas(values[name]) for name in ("assigned", "isr")}
    live = spell_replicas(sorted(values["live"]))
    question = f"assigned={lists['assigned']} isr={lists['isr']} live={live} unclean"
    return Telling(("world tables", f"elect-offline {question}"))


OFFLINE: Final = _subject("select-offline", select_offline, "the offline selector")
REASSIGNED: Final = _subject("select-reassigned", select_reassigned, "the reassignment selector")
PREFERRED: Final = _subject("select-preferred", select_preferred, "the preferred selector")
UNCLEAN: Final = Subject(
    "select-unclean",
    selector_function(
        lambda assigned, isr, live: select_offline(assigned, isr, live, unclean=True)
    ),
    "the offline selector with unclean elections",
    _shapes,
    hashable=True,
    tell=_tell_unclean,
)
NEW: Final = Subject(
    "select-new",
    lambda v: select_new(v["assigned"], v["live"]),
    "the selector for a new partition",
    _shapes,
    hashable=True,
)


def _is_candidate(replica: Any, values: Values) -> Truth:
    return member(replica, values["isr"]) & inside(replica, values["live"])


def _live_in_sync(values: Values, leader: Any) -> Truth:
    if leader is None:
        return True
    return member(leader, values["assigned"]) & _is_candidate(leader, values)


def _someone_if_possible(values: Values, leader: Any) -> Truth:
    if leader is not None:
        return True
    return all_of(negate(_is_candidate(replica, values)) for replica in values["assigned"])


def _first_in_order(values: Values, leader: Any) -> Truth:
    if leader is None:
        return True
    assigned = values["assigned"]
    return any_of(
        (replica == leader) & all_of(negate(_is_candidate(r, values)) for r in assigned[:place])
        for place, replica in enumerate(assigned)
    )


def _preferred_only(values: Values, leader: Any) -> Truth:
    return leader is None or leader == values["assigned"][0]


def _all_live_in_sync(values: Values, elected: Any) -> Truth:
    if elected is None:
        return all_of(negate(inside(replica, values["live"])) for replica in values["assigned"])
    return member(elected.leader, elected.isr) & all_of(
        member(replica, elected.isr) == inside(replica, values["live"])
        for replica in values["assigned"]
    )


def _theorem(
    name: str, clause: str, statement: str, subject: Subject, claim: Any, **more: Any
) -> Theorem:
    profile = more.pop("profile", _PROFILE)
    return Theorem(name, clause, statement, subject, (), claim, profile, **more)


ELECTION_THEOREMS: Final[tuple[Theorem, ...]] = (
    _theorem(
        "election-offline-live-in-sync",
        "election.clean",
        "The offline selector elects only a replica that is assigned, alive and in sync.",
        OFFLINE,
        _live_in_sync,
        largest=3,
    ),
    _theorem(
        "election-offline-someone-if-possible",
        "election.held",
        "The offline selector elects nobody only where no assigned in-sync replica is alive.",
        OFFLINE,
        _someone_if_possible,
        largest=3,
    ),
    _theorem(
        "election-offline-first-in-order",
        "election.assignment-order",
        "The offline selector elects the first candidate in the order of the assignment.",
        OFFLINE,
        _first_in_order,
        largest=3,
    ),
    _theorem(
        "election-reassigned-first-in-sync-target",
        "complete.leader-first-in-sync-target",
        "The reassignment selector elects the first replica of the target that is alive and in "
        "sync.",
        REASSIGNED,
        lambda v, leader: (
            _live_in_sync(v, leader) & _first_in_order(v, leader) & _someone_if_possible(v, leader)
        ),
        largest=3,
    ),
    _theorem(
        "election-preferred-is-first",
        "election.preferred",
        "The preferred selector elects the first assigned replica, alive and in sync, or nobody.",
        PREFERRED,
        lambda v, leader: _live_in_sync(v, leader) & _preferred_only(v, leader),
        profile="kafka-42",
        largest=3,
    ),
    _theorem(
        "election-new-all-live-in-sync",
        "partition.new.isr-all-live",
        "A new partition begins with exactly its live replicas in sync, one of them leading, or "
        "not at all where none is alive.",
        NEW,
        _all_live_in_sync,
        largest=3,
    ),
    _theorem(
        "election-unclean-live-in-sync",
        "election.clean",
        "With unclean elections the offline selector elects only a replica in sync.",
        UNCLEAN,
        _live_in_sync,
        expected="refuted",
        finding="move-4",
        largest=3,
    ),
)
"""Every theorem about elections."""
