"""Ordinary acts of a controller: who may leave, who may lead, and what each act is told by.

The steps of the protocol (`kip_236.protocol`) ask for no act. Here the acts themselves are
looked at, with all of their evidence symbolic at once. What they claim they claim of any partition;
that it is well formed, and that no two kinds of act are asked for at once, only spares paths.
"""

# ruff: noqa: D205, D401  # the docstring of a claim is what it claims

from collections.abc import Callable, Iterator
from functools import wraps
from itertools import product
from typing import Any, Final

from reassure_model.acts import find_act
from reassure_model.partition import Environment, LeaderAndIsr, Partition
from reassure_proofs.engine.formula import (
    Truth,
    absent,
    alike,
    all_of,
    any_of,
    comes_first,
    distinct,
    implies,
    inside,
    member,
    negate,
    subset,
)
from reassure_proofs.engine.statement import (
    ID,
    SET,
    TRUTH,
    Claim,
    Claims,
    Hypothesis,
    Parameter,
    Shape,
    Unread,
    Values,
    ids,
    subject,
)
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER

_UNCLEAN: Final = "act.unclean-election"
_PREFERRED: Final = "act.preferred-election"
_SHUTDOWN: Final = "act.controlled-shutdown"
_DELETION: Final = "act.deletion-stops-replicas"


def _shape(assigned: int, isr: int, new: int) -> dict[str, Parameter]:
    return {
        "assigned": ids(assigned),
        "isr": ids(isr),
        "leader": ID,
        "live": SET,
        "stopping": SET,
        "new_leader": ID,
        "new_isr": ids(new),
    }


def _shapes(replication_factor: int) -> Iterator[Shape]:
    lengths = range(1, replication_factor + 1)
    truths = ("completing", "asked", "allowed", "deleting")
    for assigned, isr in product(lengths, lengths):
        for new in range(isr + 1 if isr <= assigned else 0):
            yield {**_shape(assigned, isr, new), **dict.fromkeys(truths, TRUTH)}
    if replication_factor > 1:
        # With fewer a set that two of them leave would be empty.
        yield _shape(3, 3, 1)


@subject(
    "act",
    "the rules on an ordinary act",
    _shapes,
    profile="kip-236",
    bounded="1 to {} replicas assigned and in sync, and 3 of which two leave by a shutdown",
    hashable=True,
    needs=1,
)
def find(values: Values, readings: Readings) -> tuple[str, ...] | None:
    """Return which ordinary act a controller's write of leader and in-sync set is, None if none.

    The values have the write, and what evidence there is of an act.
    """
    epoch, unread = Unread("epoch"), Unread("known")
    old = LeaderAndIsr(values["leader"], epoch, epoch, values["isr"])  # type: ignore[arg-type]
    new = LeaderAndIsr(values["new_leader"], epoch, epoch, values["new_isr"])  # type: ignore[arg-type]
    partition = Partition(values["assigned"], old, completing=values.get("completing", False))
    around = Environment(
        values["live"],
        unread,  # type: ignore[arg-type]
        stopping=values["stopping"],
        preferred_asked=values.get("asked", False),
        unclean_allowed=values.get("allowed", False),
        deleting=values.get("deleting", False),
    )
    return find_act(partition, new, around, readings)


def _some(*besides: str) -> Callable[[Claim], Claim]:
    """Return a claim about every act but those named."""
    return lambda claim: wraps(claim)(
        lambda v, act: act is None or act[0] in besides or claim(v, act)
    )


def _only(clause: str) -> Callable[[Callable[[Values], Truth]], Claim]:
    """Return a claim about one kind of act."""

    def state(claim: Callable[[Values], Truth]) -> Claim:
        @wraps(claim)
        def stated(values: Values, act: Any) -> Truth:
            return act is None or act[0] != clause or claim(values)

        return stated

    return state


def _is_elected(values: Values) -> Truth:
    return (values["new_leader"] != values["leader"]) & (values["new_leader"] != NO_LEADER)


def _is_first(values: Values, among: Callable[[Any], Truth]) -> Truth:
    """Say that the new leader is the first assigned replica of which something holds."""
    new = values["new_leader"]
    return among(new) & comes_first(new, values["assigned"], among)


WELL_FORMED: Final = Hypothesis(
    "well-formed",
    "the leader, if any, is in sync, the in-sync set is assigned, and no list names a replica "
    "twice or anything but brokers",
    lambda v: (
        ((v["leader"] == NO_LEADER) | member(v["leader"], v["isr"]))
        & subset(v["isr"], v["assigned"])
        & distinct(v["isr"])
        & distinct(v["assigned"])
        & all_of(replica >= 0 for replica in v["assigned"])
    ),
)
ONE_ASKED: Final = Hypothesis(
    "one-asked",
    "of a preferred election, an unclean election and a deletion at most one is asked for",
    lambda v: (
        "asked" not in v
        or (
            negate(v["asked"] & v["allowed"])
            & negate(v["asked"] & v["deleting"])
            & negate(v["allowed"] & v["deleting"])
        )
    ),
)


THEOREMS: Final = Claims(largest=2, shape=(WELL_FORMED, ONE_ASKED), tier="full")
"""Every theorem about ordinary acts."""
about = THEOREMS.about


@about(find, "act-leader-in-isr", "leader.in-isr")
@_some()
def _act_leader_in_isr(v: Values, _: Any) -> Truth:
    """After an ordinary act the leader, if any, is in sync."""
    return (v["new_leader"] == NO_LEADER) | member(v["new_leader"], v["new_isr"])


@about(find, "act-isr-well-formed", "isr.never-empty")
@_some()
def _act_isr_well_formed(v: Values, _: Any) -> Truth:
    """An ordinary act leaves somebody in sync, and nobody twice."""
    return len(v["new_isr"]) > 0 and distinct(v["new_isr"])


@about(find, "act-nobody-joins", "state.write-conditional")
@_some(_UNCLEAN)
def _act_nobody_joins(v: Values, _: Any) -> Truth:
    """No ordinary act but an unclean election takes anybody into the in-sync set."""
    return subset(v["new_isr"], v["isr"])


@about(find, "act-elects-live", "election.live")
@_some()
def _act_elects_live(v: Values, _: Any) -> Truth:
    """Whoever an ordinary act elects is alive."""
    return implies(_is_elected(v), inside(v["new_leader"], v["live"]))


@about(find, "act-elects-in-sync", "election.clean")
@_some(_UNCLEAN)
def _act_elects_in_sync(v: Values, _: Any) -> Truth:
    """Whoever an ordinary act elects was in sync, but for an unclean election."""
    return implies(_is_elected(v), member(v["new_leader"], v["isr"]))


@about(find, "act-unclean-is-last-resort", _UNCLEAN)
@_only(_UNCLEAN)
def _is_last_resort(values: Values) -> Truth:
    """An unclean election is allowed, happens while no assigned replica in sync is alive, and
    leaves the first live one alone in sync.
    """
    live, isr, new = values["live"], values["isr"], values["new_isr"]
    nobody = all_of(negate(member(r, isr) & inside(r, live)) for r in values["assigned"])
    alone = all_of(replica == values["new_leader"] for replica in new)
    first = _is_first(values, lambda replica: inside(replica, live))
    return values["allowed"] & nobody & alone & first


@about(find, "act-preferred-keeps-isr", _PREFERRED)
@_only(_PREFERRED)
def _is_preferred(values: Values) -> Truth:
    """A preferred election is asked for, elects the first assigned replica, leaves the in-sync
    set as it is, and happens in no completion.
    """
    same = alike(values["isr"], values["new_isr"])
    first = values["new_leader"] == values["assigned"][0]
    return values["asked"] & negate(values["completing"]) & same & first


@about(find, "act-shutdown-takes-stopping", _SHUTDOWN)
@_only(_SHUTDOWN)
def _only_stopping_leave(values: Values) -> Truth:
    """By a controlled shutdown only brokers leave the in-sync set that stop or are dead, and
    one that stops.
    """
    left = [(replica, absent(replica, values["new_isr"])) for replica in values["isr"]]
    stopping, live = values["stopping"], values["live"]
    reason = all_of(
        implies(gone, inside(replica, stopping) | negate(inside(replica, live)))
        for replica, gone in left
    )
    return reason & any_of(gone & inside(replica, stopping) for replica, gone in left)


@about(find, "act-shutdown-hands-over", _SHUTDOWN)
@_only(_SHUTDOWN)
def _hands_over(values: Values) -> Truth:
    """After a controlled shutdown nobody leads who stops: the first live in-sync replica that
    stays takes over.
    """

    def stays(replica: Any) -> Truth:
        return negate(inside(replica, values["stopping"]))

    def can_lead(replica: Any) -> Truth:
        return inside(replica, values["live"]) & member(replica, values["isr"]) & stays(replica)

    first = _is_first(values, can_lead)
    return stays(values["new_leader"]) & ((values["new_leader"] == values["leader"]) | first)


@about(find, "act-deletion-elects-nobody", _DELETION)
@_only(_DELETION)
def _elects_nobody(values: Values) -> Truth:
    """While a topic is to be deleted its leader stays, or nobody leads."""
    same = values["new_leader"] == values["leader"]
    return values["deleting"] & (same | (values["new_leader"] == NO_LEADER))
