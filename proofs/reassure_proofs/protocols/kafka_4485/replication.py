"""Replication across clean elections by induction: nothing that consumers were shown is lost.

The state is the whole of the model's `Replication`: logs, high watermarks, requests on their way,
what is stored and what the leader has in memory. All numbers are symbolic and without bounds, logs
have any length and any records (`kafka_4485.logs`), sets any members. The model's own
`step` is run on that, once for each kind of action, each broker that it may concern and each way in
which requests may be missing.

The induction: what `make_replication` makes satisfies the invariant, and whatever action is taken
in a state that satisfies it leads to one that does. Dying and coming back are no actions of their
own: a broker that is down takes none, and all that a leader had in memory goes with an election.

The invariant is a formula about every position in every log. It is assumed at the two positions
that a step can depend on, one of them any position at all, and shown at that one.
"""

# ruff: noqa: D205, D401  # the docstring of a claim is what it claims

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Final

from reassure_model.outcome import Accepted
from reassure_model.protocols.kafka_4485.replication import (
    STEPS,
    Join,
    Replica,
    Replication,
    Term,
    count_common,
)
from reassure_proofs.engine.formula import (
    Truth,
    absent,
    all_of,
    any_of,
    distinct,
    implies,
    member,
    negate,
    subset,
)
from reassure_proofs.engine.statement import (
    BROKER,
    ID,
    LIST,
    Claims,
    Hypothesis,
    Parameter,
    Shape,
    Values,
    given,
    ids,
    make_subject,
    says,
)
from reassure_proofs.protocols.kafka_4485 import replication_state as states
from reassure_proofs.protocols.kafka_4485.insync import FOLLOWERS
from reassure_proofs.protocols.kafka_4485.logs import is_prefix
from reassure_proofs.protocols.kafka_4485.replication_state import (
    AMENDMENTS,
    PROFILE,
    UNSEEN,
    get_positions,
    make_state,
    observe,
)
from reassure_spec.readings import Readings

_BOUNDED: Final = "2 to {} brokers; logs of any length"
_of_replication: Final = partial(make_subject, shown=FOLLOWERS, numbered=True)

# The invariant ----------------------------------------------------------------------------------


def _leader_in_office(state: Any) -> Truth:
    """Say whether the leader counts itself in everywhere, asks nobody, and has the latest epoch."""
    leader = state.leader
    sets = (state.isr, state.term.isr, state.term.pseudo_isr)
    return (
        all_of(truths[leader] for truths in sets)
        & (state.replicas[leader].leader_epoch == state.leader_epoch)
        & (state.replicas[leader].request is None)
    )


def _stored_is_known(state: Any) -> Truth:
    """Say whether the leader knows of every stored member, and of no other if it is up to date."""
    term, pairs = state.term, list(zip(state.isr, state.term.isr, strict=True))
    known = all_of(implies(stored, known) for stored, known in pairs)
    fresh = all_of(implies(known, stored) for stored, known in pairs)
    return (term.version <= state.version) & known & implies(term.version == state.version, fresh)


def _marks_within(state: Any) -> Truth:
    return all_of(
        (replica.high_watermark >= 0)
        & (replica.high_watermark <= replica.log[0])
        & (replica.leader_epoch <= state.leader_epoch)
        for replica in state.replicas
    )


def _followers_follow(state: Any, positions: Sequence[Any]) -> Truth:
    """Say whether followers of this term have a beginning of the leader's log."""
    leader = state.replicas[state.leader]
    return all_of(
        implies(
            replica.leader_epoch == state.leader_epoch,
            is_prefix(replica.log, replica.log[0], leader.log, positions),
        )
        for broker, replica in enumerate(state.replicas)
        if broker != state.leader
    )


def _offsets_are_held(state: Any) -> Truth:
    """Say whether followers have what they said they have, in this term."""
    return all_of(
        choose_truth(
            replica.leader_epoch == state.leader_epoch, offset <= replica.log[0], offset == 0
        )
        & _request_is_held(state, replica)
        for broker, (replica, offset) in enumerate(
            zip(state.replicas, state.term.offsets, strict=True)
        )
        if broker != state.leader
    )


def choose_truth(condition: Truth, yes: Truth, no: Truth) -> Truth:
    """Return the one truth where the condition holds, the other where it does not.

    >>> choose_truth(False, True, False)
    False
    """
    return implies(condition, yes) & (condition | no)


def _request_is_held(state: Any, replica: Any) -> Truth:
    request = replica.request
    if request is None:
        return True
    return (request.leader_epoch <= replica.leader_epoch) & implies(
        request.leader_epoch == state.leader_epoch, request.offset <= replica.log[0]
    )


def _members_hold(state: Any, positions: Sequence[Any]) -> Truth:
    """Say whether every member that the leader knows holds all that is below any mark."""
    marks = [(replica.log, replica.high_watermark) for replica in state.replicas]
    return all_of(
        implies(known, is_prefix(log, mark, state.replicas[broker].log, positions))
        for broker, known in enumerate(state.term.isr)
        for log, mark in (*marks, (state.committed, state.committed[0]))
    )


def _marks_are_covered(state: Any) -> Truth:
    """Say whether no mark is beyond both the leader's and its end at the election."""
    leader = state.replicas[state.leader]
    marks = [state.committed[0], *(replica.high_watermark for replica in state.replicas)]
    return (state.term.end_at_election <= leader.log[0]) & all_of(
        (mark <= state.term.end_at_election) | (mark <= leader.high_watermark) for mark in marks
    )


def _shown_is_enough(state: Any) -> Truth:
    unread = state.shown is None or isinstance(state.shown, type(UNSEEN))
    return unread or state.committed[0] <= state.shown


def holds_invariant(state: Any, positions: Sequence[Any]) -> Truth:
    """Return whether the invariant holds of a state, as `observe` tells it, at the positions."""
    return (
        _leader_in_office(state)
        & _stored_is_known(state)
        & _marks_within(state)
        & _followers_follow(state, positions)
        & _offsets_are_held(state)
        & _members_hold(state, positions)
        & _marks_are_covered(state)
        & _shown_is_enough(state)
    )


def _before(values: Values) -> Any:
    return observe(make_state(values), get_positions(values))


INVARIANT: Final = Hypothesis(
    "invariant",
    "the partition satisfies the invariant: the leader is a member of every in-sync set and knows "
    "of every stored member; all that it knows of hold what is below any high watermark or was "
    "ever shown; followers of this term have a beginning of the leader's log, and what they said "
    "they have; no mark is beyond the leader's or its end at the election",
    lambda v: holds_invariant(_before(v), get_positions(v)),
)


# Claims -----------------------------------------------------------------------------------------


def _holders(values: Values, after: Any, members: Sequence[Truth]) -> Truth:
    shown, places = after.committed, (values["position"],)
    return all_of(
        implies(here, is_prefix(shown, shown[0], after.replicas[broker].log, places))
        for broker, here in enumerate(members)
    )


# Theorems ---------------------------------------------------------------------------------------


_step: Final = partial(
    _of_replication, function=states.take, shapes=states.shape_steps, profile=PROFILE
)
STEP: Final = _step(
    "replication-step",
    words="the step with the four amendments",
    changes=AMENDMENTS,
    bounded=_BOUNDED,
)
"""One action of any kind."""
START: Final = _of_replication(
    *("replication-start", states.start, "a partition that nothing has happened to"),
    states.shape_start,
    bounded="2 to {} brokers",
)
"""Where every history begins."""
STILL: Final = _of_replication(
    *("replication-still", states.find_problems, "the model's search for problems"),
    states.shape_still,
    bounded=_BOUNDED,
)
"""The model's own predicates on a state of the invariant."""
SHARED: Final = make_subject(
    "common-prefix",
    lambda v: count_common(v["log"], v["other"]),
    "the count of shared records",
    lambda longest: (
        {"log": Parameter(first), "other": Parameter(second)}
        for first, second in product(range(longest + 1), repeat=2)
    ),
    bounded="logs of up to {} records",
)
"""The one function that looks at whole logs; of it the induction uses the contract alone."""
FOLLOWED: Final = _of_replication(
    "replication-follow",
    states.take,
    "the follower that learns of its leader",
    lambda _: (shape for shape in states.shape_steps(2) if shape["verb"].word == "follow"),
    PROFILE,
    (*(each for each in AMENDMENTS if "truncation" not in each), "follower.truncation=leader-end"),
    bounded="2 brokers; logs of any length",
)
"""A follower that may have to cut its log below its mark."""


@dataclass(frozen=True, slots=True)
class _Leader:
    """The brokers of a partition, of which only the leader is looked at."""

    replica: Replica

    def __getitem__(self, _: Any) -> Replica:
        return self.replica


def _join(values: Values, readings: Readings) -> Any:
    """Return the in-sync set once the leader took a follower into it, None where it must not."""
    known = frozenset(values["known"])
    offsets = dict(zip(values["brokers"], values["offsets"], strict=True))
    term = Term(values["end_at_election"], values["version"], known, known, offsets)  # type: ignore[arg-type]
    leader = _Leader(Replica((), values["mark"]))
    state = Replication(leader, values["leader"], 0, known, values["version"], term)  # type: ignore[arg-type]
    outcome = _JOIN(state, values["broker"], readings)
    return outcome.state.isr if isinstance(outcome, Accepted) else None


_JOIN: Final = STEPS[Join]
_NUMBERS: Final = ("mark", "end_at_election", "version")


def _join_shapes(replication_factor: int) -> Iterator[Shape]:
    for brokers in range(1, replication_factor + 1):
        lists = {"brokers": ids(brokers), "offsets": Parameter(brokers), "known": ids(1)}
        yield {**lists, "leader": ID, "broker": ID, **dict.fromkeys(_NUMBERS, Parameter())}


def _any_size() -> Shape:
    offsets = Parameter(kind="column", word="brokers")
    brokers = {"brokers": LIST, "offsets": offsets, "known": LIST, "leader": BROKER}
    return {**brokers, "broker": BROKER, **dict.fromkeys(_NUMBERS, Parameter())}


JOIN: Final = make_subject(
    *("replication-join", _join, "the leader's write of a follower into the set"),
    *(_join_shapes, PROFILE, AMENDMENTS),
    any_size=_any_size,
    hashable=True,
)
"""A follower that joins, of any number."""
MARKS_WITHIN: Final = Hypothesis(
    "marks-within",
    "no high watermark is negative or beyond its replica's end, nor a leader epoch of the future",
    lambda v: _marks_within(_before(v)),
)
BROKERS_DISTINCT: Final = Hypothesis(
    "brokers-distinct", "no broker is listed twice", lambda v: distinct(v["brokers"])
)
FOLLOWER_LISTED: Final = Hypothesis(
    "follower-listed",
    "the follower is one of the brokers",
    lambda v: member(v["broker"], v["brokers"]),
)
LEADER_MEMBER: Final = Hypothesis(
    "leader-member", "broker 0, which leads, is in sync", lambda v: v["members"][0]
)


THEOREMS: Final = Claims(PROFILE, largest=3, thorough=4, tier="full")
"""Every theorem about replication across elections."""
about = THEOREMS.about


@about(START, "replication-starts-in-invariant", "hw.consumer.monotone")
@given(LEADER_MEMBER)
def _replication_starts_in_invariant(v: Values, state: Any) -> Truth:
    """A partition that nothing has happened to satisfies the invariant of replication."""
    return holds_invariant(state, get_positions(v))


@about(SHARED, "replication-shared-records", "follower.truncation.common-prefix")
def _is_first_difference(values: Values, shared: Any) -> Truth:
    """The records that two logs share end at their first difference, or with one of them."""
    first, second = values["log"], values["other"]
    shorter = min(len(first), len(second))
    agree = [a == b for a, b in zip(first, second, strict=False)]
    return any_of(
        (shared == place) & all_of(agree[:place]) & (place == shorter or negate(agree[place]))
        for place in range(shorter + 1)
    )


@about(STEP, "replication-step-keeps-invariant", "isr.stored.holds-committed")
@given(INVARIANT)
def _keeps_invariant(values: Values, after: Any) -> Truth:
    """With the four amendments no action leads out of the invariant, elections included."""
    # The second position serves the step alone.
    return after is None or holds_invariant(after, (values["position"],))


@about(STEP, "replication-mark-never-back", "hw.consumer.monotone")
@given(INVARIANT)
def _mark_monotone(values: Values, after: Any) -> Truth:
    """Across clean elections consumers are shown all that they were shown before, or nothing for
    now.
    """
    if after is None:
        return True
    before = _before(values).committed
    kept = is_prefix(before, before[0], after.committed, (values["position"],))
    if isinstance(after.shown, type(UNSEEN)):
        # What was shown is shown on, so there must be nothing new that it would lack.
        return kept & (after.committed[0] == before[0])
    return kept & (after.shown is None or before[0] <= after.shown)


@about(STEP, "replication-members-hold-shown", "isr.stored.holds-committed")
@given(INVARIANT)
def _members_hold_shown(values: Values, after: Any) -> Truth:
    """Across clean elections every stored in-sync replica holds every record that was shown."""
    return after is None or _holders(values, after, after.isr)


@about(STEP, "replication-leader-holds-shown", "log.committed-kept")
@given(INVARIANT)
def _leader_holds_shown(values: Values, after: Any) -> Truth:
    """Across clean elections the leader holds every record that was shown: none is lost."""
    if after is None:
        return True
    leads = [broker == after.leader for broker in range(len(after.replicas))]
    return _holders(values, after, leads)


@about(FOLLOWED, "replication-mark-is-cut-with-log", "hw.follower.from-leader")
@says("A follower that cuts its log, at the leader's end, cuts its high watermark with it.")
@given(MARKS_WITHIN)
@about(STEP, "replication-mark-within-end", "hw.follower.from-leader")
@given(INVARIANT)
def _marks_held(_: Values, after: Any) -> Truth:
    """Across clean elections no replica's high watermark is beyond its own end."""
    if after is None:
        return True
    return all_of(replica.high_watermark <= replica.log[0] for replica in after.replicas)


@about(STILL, "replication-invariant-is-enough", "log.committed-kept")
@given(INVARIANT)
def _replication_invariant_is_enough(_: Values, broken: Any) -> Truth:
    """In the invariant none of the model's own predicates about replication is broken."""
    return len(broken) == 0


@about(JOIN, "replication-join-holds-all", "isr.entry.end-at-election")
@given(BROKERS_DISTINCT, FOLLOWER_LISTED)
def _join_holds_all(values: Values, after: Any) -> Truth:
    """Whoever a leader takes into the in-sync set holds all that is below its mark and that it had
    at its election; nobody else joins, and nobody leaves.
    """
    if after is None:
        return True
    known, mark, start = values["known"], values["mark"], values["end_at_election"]
    return subset(known, after) & all_of(
        absent(broker, after)
        | member(broker, known)
        | ((broker == values["broker"]) & (mark <= offset) & (start <= offset))
        for broker, offset in zip(values["brokers"], values["offsets"], strict=True)
    )


def _deny(reading: str, value: str, clause: str, finding: str) -> None:
    """Claim the induction with one amendment missing, which has to fail."""
    rest = tuple(each for each in AMENDMENTS if not each.startswith(f"{reading}="))
    name = f"{reading.replace('.', '-')}-{value}"
    subject = _step(
        f"replication-{name}",
        words=f"the step with {reading} {value}",
        changes=(*rest, f"{reading}={value}"),
        bounded=_BOUNDED,
    )
    words = f"A step leads out of the invariant by no way where only {reading} is {value}."
    more: dict[str, Any] = {"finding": finding, "largest": 2, "thorough": 2}
    stated = says(words)(given(INVARIANT)(_keeps_invariant))
    about(subject, f"replication-without-{name}", clause, **more)(stated)


for _reading, _value, _clause, _finding in (
    ("hw.over-stored-isr", "no", "hw.over-stored-isr", "election-1"),
    ("hw.served-from", "at-once", "hw.served-from-end-at-election", "election-2"),
    ("isr.entry", "high-watermark", "isr.entry.end-at-election", "election-3"),
    (
        "follower.truncation",
        "own-high-watermark",
        "follower.truncation.common-prefix",
        "election-4",
    ),
    ("follower.truncation", "leader-end", "follower.truncation.common-prefix", "watermark-13"),
):
    _deny(_reading, _value, _clause, _finding)
