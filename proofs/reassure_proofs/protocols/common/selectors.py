"""The leader selectors: who is elected, for any assignment, in-sync set and set of live brokers."""

# ruff: noqa: D205, D401  # the docstring of a claim is what it claims

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, Final

from reassure_model.selectors import select_new, select_offline, select_preferred, select_reassigned
from reassure_proofs.engine.formula import (
    Truth,
    alike,
    all_of,
    comes_first,
    inside,
    member,
    negate,
    subset,
)
from reassure_proofs.engine.statement import (
    LIST,
    SET,
    Claims,
    Function,
    Rule,
    Shape,
    Subject,
    Values,
    ids,
    says,
)
from reassure_spec.words import spell_replicas as spell


def _shapes(replication_factor: int) -> Iterator[Shape]:
    for assigned in range(1, replication_factor + 1):
        for isr in range(replication_factor + 1):
            yield {"assigned": ids(assigned), "isr": ids(isr), "live": SET}


def selector_function(select: Callable[..., Any]) -> Function:
    """Return a selector as a function of named values.

    It answers a leader, or a record with `leader` and the `isr` to be written with it, or None.
    """
    return lambda values: select(values["assigned"], values["isr"], values["live"])


def _leads(claim: Callable[[Values, Any], Truth]) -> Callable[[Values, Any], Truth]:
    """Return a claim about the leader alone as one about what a selector answers."""
    return wraps(claim)(lambda values, elected: claim(values, getattr(elected, "leader", elected)))


def _any_size() -> Shape:
    return {"assigned": LIST, "isr": LIST, "live": SET}


def _subject(name: str, select: Callable[..., Any], words: str, tell: Any = None) -> Subject:
    function = selector_function(select)
    return Subject(name, function, words, _shapes, any_size=_any_size, hashable=True, tell=tell)


def _tell_unclean(values: Values) -> tuple[str, ...]:
    assigned, isr, live = values["assigned"], values["isr"], sorted(values["live"])
    question = f"assigned={spell(assigned)} isr={spell(isr)} live={spell(live)} unclean"
    return ("world tables", f"elect-offline {question}")


OFFLINE: Final = _subject("select-offline", select_offline, "the offline selector")
REASSIGNED: Final = _subject("select-reassigned", select_reassigned, "the reassignment selector")
PREFERRED: Final = _subject("select-preferred", select_preferred, "the preferred selector")
UNCLEAN: Final = _subject(
    "select-unclean",
    lambda assigned, isr, live: select_offline(assigned, isr, live, unclean=True),
    "the offline selector with unclean elections",
    _tell_unclean,
)
NEW: Final = _subject(
    "select-new",
    lambda assigned, _, live: select_new(assigned, live),
    "the selector for a new partition",
)


def _is_candidate(replica: Any, values: Values) -> Truth:
    return member(replica, values["isr"]) & inside(replica, values["live"])


def _preferred_only(values: Values, leader: Any) -> Truth:
    return leader is None or member(leader, values["assigned"][:1])


def _first_if_possible(values: Values, leader: Any) -> Truth:
    if leader is not None:
        return True
    return all_of(negate(_is_candidate(replica, values)) for replica in values["assigned"][:1])


THEOREMS: Final = Claims("kip-236", largest=3)
"""Every theorem about elections."""
about = THEOREMS.about


@about(UNCLEAN, "election-unclean-live-in-sync", "election.clean", finding="move-4")
@says("With unclean elections the offline selector elects only a replica in sync.")
@about(OFFLINE, "election-offline-live-in-sync", "election.clean")
@_leads
def _live_in_sync(values: Values, leader: Any) -> Truth:
    """The offline selector elects only a replica that is assigned, alive and in sync."""
    if leader is None:
        return True
    return member(leader, values["assigned"]) & _is_candidate(leader, values)


@about(OFFLINE, "election-offline-someone-if-possible", "election.held")
@_leads
def _someone_if_possible(values: Values, leader: Any) -> Truth:
    """The offline selector elects nobody only where no assigned in-sync replica is alive."""
    if leader is not None:
        return True
    return all_of(negate(_is_candidate(replica, values)) for replica in values["assigned"])


@about(OFFLINE, "election-offline-first-in-order", "election.assignment-order")
@_leads
def _first_in_order(values: Values, leader: Any) -> Truth:
    """The offline selector elects the first candidate in the order of the assignment."""
    if leader is None:
        return True
    return comes_first(leader, values["assigned"], lambda replica: _is_candidate(replica, values))


@about(OFFLINE, "election-offline-keeps-live-in-sync", "isr.remove.dead")
def _live_stay_in_sync(values: Values, elected: Any) -> Truth:
    """With the leader that it elects the offline selector answers exactly the in-sync replicas
    that are alive as the in-sync set.

    It need not answer a set at all.
    """
    if not hasattr(elected, "isr"):
        return True
    return all_of(
        member(replica, elected.isr) == inside(replica, values["live"]) for replica in values["isr"]
    ) & subset(elected.isr, values["isr"])


@about(
    REASSIGNED, "election-reassigned-first-in-sync-target", "complete.leader-first-in-sync-target"
)
@_leads
def _election_reassigned_first_in_sync_target(v: Values, leader: Any) -> Truth:
    """The reassignment selector elects the first replica of the target that is alive and in
    sync.
    """
    return _live_in_sync(v, leader) & _first_in_order(v, leader) & _someone_if_possible(v, leader)


@about(REASSIGNED, "election-reassigned-keeps-isr", "state.write-conditional")
def _set_unchanged(values: Values, elected: Any) -> Truth:
    """The reassignment selector leaves the in-sync set as it is."""
    if not hasattr(elected, "isr"):
        return True
    return alike(elected.isr, values["isr"])


@about(PREFERRED, "election-preferred-is-first", "election.preferred", profile="kafka-42")
@_leads
def _election_preferred_is_first(v: Values, leader: Any) -> Truth:
    """The preferred selector elects the first assigned replica where it is alive and in sync,
    and nobody else ever.
    """
    return _live_in_sync(v, leader) & _preferred_only(v, leader) & _first_if_possible(v, leader)


@about(NEW, "election-new-all-live-in-sync", "partition.new.isr-all-live")
def _all_live_in_sync(values: Values, elected: Any) -> Truth:
    """A new partition begins with exactly its live replicas in sync, one of them leading, or
    not at all where none is alive.
    """
    if elected is None:
        return all_of(negate(inside(replica, values["live"])) for replica in values["assigned"])
    return member(elected.leader, elected.isr) & all_of(
        member(replica, elected.isr) == inside(replica, values["live"])
        for replica in values["assigned"]
    )


RULES: Final = (
    Rule("selector", ("assigned", "isr", "live"), {"": OFFLINE.name}, answers_list=False),
)
"""A leader selector answers a leader, or None."""
