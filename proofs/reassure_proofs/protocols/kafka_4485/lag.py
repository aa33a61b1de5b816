"""What a leader assumes of its followers, against what is true of them.

The leader's end moves by a *history*: symbolic times and offsets, of bounded length and otherwise
arbitrary. The follower fetches at symbolic times. The model's own `record_fetch`, `estimate_lag`
and `evaluate` say what the leader concludes; its definition `compute_replica_lag` says what is so,
at the start or at the end of a millisecond.

One step of `record_fetch` is proved by induction, so that the first bound holds after any number of
fetches: the leader ended no further than the follower when it counted the follower as caught up.
The bound in the other direction looks back two fetches only, so that nothing need be assumed of
those before. Each constant is tight: beside the theorem stands the same claim with the constant
less by one, which is refuted.
"""

# ruff: noqa: D401  # the docstring of a claim is what it claims

from collections.abc import Iterator
from typing import Any, Final

from reassure_model.protocols.kafka_4485 import (
    Follower,
    Leader,
    compute_replica_lag,
    compute_views,
    end_at,
    estimate_lag,
    evaluate,
    record_fetch,
)
from reassure_proofs.engine.formula import Truth, all_of, implies, member, negate
from reassure_proofs.engine.statement import (
    THOROUGH,
    Claims,
    Hypothesis,
    Parameter,
    Shape,
    Subject,
    Values,
    given,
    make_subject,
    says,
    shaped,
)
from reassure_proofs.protocols.kafka_4485.insync import FOLLOWERS
from reassure_spec.readings import Readings, get_profile

_PROFILE: Final = "kafka-4485"
_READINGS: Final = get_profile(_PROFILE)
_BOUNDED: Final = "1 to {} changes of the leader's end"
_TIME: Final = Parameter()

# One fetch, by induction ------------------------------------------------------------------------


def _fetch_shapes(_: int) -> Iterator[Shape]:
    names = ("offset", "last_fetch_ms", "last_fetch_leader_end", "last_caught_up_ms", "now_ms")
    ends = ("end_when_caught_up", "end_at_last_fetch", "end_now")
    yield {name: Parameter() for name in (*names, "new_offset", "leader_end", *ends)}


def fetch_once(values: Values, readings: Readings = _READINGS) -> Follower:
    """Return what the leader notes after one fetch."""
    before = Follower(
        values["offset"],
        values["last_fetch_ms"],
        values["last_fetch_leader_end"],
        values["last_caught_up_ms"],
    )
    return record_fetch(
        before, values["new_offset"], values["leader_end"], values["now_ms"], readings, "lag"
    )


FETCH: Final = make_subject(
    "fetch",
    fetch_once,
    "the leader's note of a fetch",
    _fetch_shapes,
    _PROFILE,
    bounded="any history, any number of fetches",
    shown=FOLLOWERS,
    numbered=True,
)
"""One fetch; the leader's history shows only in where it ended at three moments."""

NOTED_SOUNDLY: Final = Hypothesis(
    "noted-soundly",
    "when the follower counts as caught up, and at its last fetch, the leader ended no further "
    "than is noted of them",
    lambda v: (
        (v["end_when_caught_up"] <= v["offset"])
        & (v["end_at_last_fetch"] <= v["last_fetch_leader_end"])
    ),
)
CLOCK_FIRST: Final = Hypothesis(
    "clock-first",
    "the leader reads the clock before its end",
    lambda v: v["end_now"] <= v["leader_end"],
)
NEVER_BACK: Final = Hypothesis(
    "never-back",
    "the follower never fetches from before where it was",
    lambda v: v["offset"] <= v["new_offset"],
)


# Estimate and definition ------------------------------------------------------------------------


def history_of(values: Values) -> tuple[tuple[Any, Any], ...]:
    """Return when the leader's end moved, and where to."""
    return tuple(zip(values["times_ms"], values["ends"], strict=True))


def _estimate_shapes(changes: int) -> Iterator[Shape]:
    names = ("offset", "caught_up_ms", "now_ms", "lag_ms_max")
    for length in range(1, changes + 1):
        numbers = {name: Parameter() for name in names}
        yield {"times_ms": Parameter(length), "ends": Parameter(length), **numbers}


def compare(values: Values) -> tuple[Any, Any, Any, Any, Any]:
    """Return end at the credit, estimate, lag at start and at end of the ms, and pseudo-ISR."""
    history, now_ms = history_of(values), values["now_ms"]
    follower = Follower(values["offset"], values["caught_up_ms"], 0, values["caught_up_ms"])
    leader = Leader((1, 2), end_at(history, now_ms), (follower,))
    return (
        end_at(history, values["caught_up_ms"], of_ms="start"),
        estimate_lag(follower, now_ms),
        compute_replica_lag(history, values["offset"], now_ms, of_ms="start"),
        compute_replica_lag(history, values["offset"], now_ms, of_ms="end"),
        evaluate(leader, now_ms, values["lag_ms_max"]).pseudo_isr,
    )


ESTIMATE: Final = Subject(
    "estimate",
    compare,
    "the comparison",
    _estimate_shapes,
    bounded=_BOUNDED,
    shown=FOLLOWERS,
    numbered=True,
)
"""A follower that was credited some time ago, and what is true of it now."""

HISTORY: Final = Hypothesis(
    "history",
    "the leader's end moves forward with time, from 0",
    lambda v: (
        all_of(a <= b for a, b in zip(v["times_ms"], v["times_ms"][1:], strict=False))
        & all_of(a < b for a, b in zip((0, *v["ends"]), v["ends"], strict=False))
    ),
)
NOT_NEGATIVE: Final = Hypothesis(
    "not-negative",
    "the limit of the lag is not negative",
    lambda v: v["lag_ms_max"] >= 0,
)
CREDITED_BEFORE: Final = Hypothesis(
    "credited-before",
    "the follower was credited before now, and holds nothing negative",
    lambda v: (v["caught_up_ms"] <= v["now_ms"]) & (v["offset"] >= 0),
)


def _sound(values: Values, result: Any) -> Truth:
    """Say whether the note is sound, which is what the induction proves."""
    return result[0] <= values["offset"]


# The other direction: two fetches ---------------------------------------------------------------


def _run_shapes(changes: int) -> Iterator[Shape]:
    names = ("first_offset", "second_offset", "first_ms", "second_ms", "now_ms", "gap_ms")
    for length in range(1, changes + 1):
        numbers = {name: Parameter() for name in (*names, "lag_ms_max", "caught_up_ms")}
        yield {"times_ms": Parameter(length), "ends": Parameter(length), **numbers}


def fetch_twice(values: Values, readings: Readings = _READINGS) -> tuple[Any, Any, Any]:
    """Return estimate, lag by the known offset, and pseudo-ISR after two fetches."""
    history, now_ms = history_of(values), values["now_ms"]
    follower = Follower(0, values["caught_up_ms"], 0, values["caught_up_ms"])
    for place in ("first", "second"):
        at_ms = values[f"{place}_ms"]
        follower = record_fetch(
            follower, values[f"{place}_offset"], end_at(history, at_ms), at_ms, readings, "lag"
        )
    leader = Leader((1, 2), end_at(history, now_ms), (follower,))
    return (
        estimate_lag(follower, now_ms),
        compute_replica_lag(history, follower.offset, now_ms),
        evaluate(leader, now_ms, values["lag_ms_max"]).pseudo_isr,
    )


TWO_FETCHES: Final = make_subject(
    "two-fetches",
    fetch_twice,
    "the run of two fetches",
    _run_shapes,
    _PROFILE,
    bounded=_BOUNDED,
    shown=FOLLOWERS,
    numbered=True,
)
"""The last two fetches of a follower, after which the leader evaluates."""

FETCHES_OFTEN: Final = Hypothesis(
    "fetches-often",
    "neither between the two fetches nor since the last has more than the gap passed",
    lambda v: (
        (v["first_ms"] <= v["second_ms"])
        & (v["second_ms"] <= v["now_ms"])
        & (v["second_ms"] <= v["first_ms"] + v["gap_ms"])
        & (v["now_ms"] <= v["second_ms"] + v["gap_ms"])
    ),
)
FULL_RESPONSES: Final = Hypothesis(
    "full-responses",
    "each response carries all that the leader has: the next fetch begins where it ended",
    lambda v: all_of(
        implies(at_ms <= v["first_ms"], end <= v["second_offset"])
        for at_ms, end in zip(v["times_ms"], v["ends"], strict=True)
    ),
)
GAP_POSITIVE: Final = Hypothesis(
    "gap-positive", "the gap is a millisecond at least", lambda v: v["gap_ms"] >= 1
)
OFFSETS: Final = Hypothesis(
    "offsets-forward",
    "the follower fetches forward, from 0 on",
    lambda v: (v["first_offset"] >= 0) & (v["first_offset"] <= v["second_offset"]),
)


# Stall ------------------------------------------------------------------------------------------


def _stall_shapes(longest: int) -> Iterator[Shape]:
    for followers in range(min(longest, 2) + 1):
        for length in range(1, longest + 1):
            history = {"times_ms": Parameter(length), "ends": Parameter(length)}
            yield {
                **history,
                "follower_ends": Parameter(followers),
                "now_ms": _TIME,
                "lag_ms_max": _TIME,
                "slack": _TIME,
            }


def view_once(values: Values) -> tuple[Any, Any]:
    """Return the high watermark by the definitions, and the leader's end one limit ago."""
    history, now_ms = history_of(values), values["now_ms"]
    followers = tuple(((now_ms, end),) for end in values["follower_ends"])
    replicas = tuple(range(1, len(followers) + 2))
    limit = values["lag_ms_max"]
    (view,) = compute_views(replicas, (history, *followers), (now_ms,), limit)
    return view.high_watermark, end_at(history, now_ms - limit + values["slack"])


STALL: Final = Subject(
    "stall",
    view_once,
    "the evaluation",
    _stall_shapes,
    bounded=_BOUNDED + ", up to two followers",
    shown=FOLLOWERS,
    numbered=True,
)
"""One evaluation by the definitions."""

ONE_LIMIT: Final = Hypothesis("one-limit", "exactly one limit ago", lambda v: v["slack"] == 0)
ONE_LESS: Final = Hypothesis(
    "one-less",
    "a millisecond less than one limit ago, the limit being at least that",
    lambda v: (v["slack"] == 1) & (v["lag_ms_max"] >= 1),
)
BEGAN_LONG_AGO: Final = Hypothesis(
    "follower-ends", "no end is negative", lambda v: all_of(end >= 0 for end in v["follower_ends"])
)


_RUN: Final = (HISTORY, OFFSETS, FETCHES_OFTEN, NOT_NEGATIVE)

THEOREMS: Final = Claims(_PROFILE, largest=2, thorough=3)
"""Every theorem about lags."""
about = THEOREMS.about


@about(FETCH, "lag-note-stays-sound", "lag.credit.last-fetch")
@says(
    "After any fetch the leader's notes are sound: when the follower counts as caught up, the "
    "leader ended no further than the follower."
)
@given(NOTED_SOUNDLY, CLOCK_FIRST, NEVER_BACK)
def _still_sound(values: Values, after: Any) -> Truth:
    caught_up, offset = after.last_caught_up_ms, after.offset
    credited = (
        (caught_up == values["now_ms"]) & (values["end_now"] <= offset)
        | (caught_up == values["last_fetch_ms"]) & (values["end_at_last_fetch"] <= offset)
        | (caught_up == values["last_caught_up_ms"]) & (values["end_when_caught_up"] <= offset)
    )
    noted = (after.last_fetch_ms == values["now_ms"]) & (
        values["end_now"] <= after.last_fetch_leader_end
    )
    return credited & noted


@about(ESTIMATE, "lag-estimate-never-short", "lag.estimate-never-short", needs=THOROUGH)
@given(HISTORY, CREDITED_BEFORE, NOT_NEGATIVE)
def _never_short_at_start(values: Values, result: Any) -> Truth:
    """The lag that a leader assumes is never shorter than the lag at the start of the ms."""
    return implies(_sound(values, result), result[2] <= result[1])


@about(ESTIMATE, "lag-estimate-one-ms-short", "lag.definition", needs=THOROUGH)
@given(HISTORY, CREDITED_BEFORE, NOT_NEGATIVE)
def _one_short_at_end(values: Values, result: Any) -> Truth:
    """By the end of the millisecond the assumed lag is short by one ms at most."""
    return implies(_sound(values, result), result[3] <= result[1] + 1)


@about(ESTIMATE, "lag-estimate-never-short-at-end", "lag.definition", finding="watermark-7")
@given(HISTORY, CREDITED_BEFORE, NOT_NEGATIVE)
def _never_short_at_end(values: Values, result: Any) -> Truth:
    """The lag that a leader assumes is never shorter than the lag at the end of the ms."""
    return implies(_sound(values, result), result[3] <= result[1])


@about(ESTIMATE, "lagging-follower-is-out", "isr.lagging-leaves")
@says(
    "Guarantee 2: a follower that lags more than the limit, at the start of the millisecond, "
    "is not in the pseudo-ISR."
)
@given(HISTORY, NOT_NEGATIVE)
def _lagging_is_out(values: Values, result: Any) -> Truth:
    lags = _sound(values, result) & (values["lag_ms_max"] < result[2])
    return implies(lags, negate(member(2, result[4])))


@about(ESTIMATE, "lagging-follower-is-out-at-end", "isr.lagging-leaves", finding="watermark-7")
@given(HISTORY, CREDITED_BEFORE, NOT_NEGATIVE)
def _lagging_at_end_is_out(values: Values, result: Any) -> Truth:
    """Guarantee 2 by the end of the millisecond."""
    lags = _sound(values, result) & (values["lag_ms_max"] < result[3])
    return implies(lags, negate(member(2, result[4])))


@about(TWO_FETCHES, "lag-estimate-within-gap", "lag.credit.caught-up")
@given(*_RUN, FULL_RESPONSES)
def _within_gap(values: Values, result: Any) -> Truth:
    """With full responses the assumed lag exceeds the lag by the gap between fetches at most."""
    return result[0] <= result[1] + values["gap_ms"]


@about(
    TWO_FETCHES, "lag-estimate-within-less-than-gap", "lag.credit.caught-up", finding="watermark-1"
)
@given(*_RUN, FULL_RESPONSES, GAP_POSITIVE)
def _within_less_than_gap(values: Values, result: Any) -> Truth:
    """With full responses the assumed lag exceeds the lag by less than the gap."""
    return result[0] <= result[1] + values["gap_ms"] - 1


@about(
    TWO_FETCHES,
    "lag-estimate-bounded-without-full-responses",
    "lag.credit.last-fetch",
    finding="watermark-3",
)
@says(
    "Whatever the responses carry, the assumed lag exceeds the lag by no more than the gap and "
    "ten seconds."
)
@given(*_RUN)
def _within_gap_and_more(values: Values, result: Any) -> Truth:
    return result[0] <= result[1] + values["gap_ms"] + 10_000


@about(TWO_FETCHES, "close-follower-is-in", "isr.pseudo.close-follower")
@says(
    "Guarantee 1 as far as it is true: with full responses a follower within the limit less "
    "the gap between fetches is in the pseudo-ISR."
)
@given(*_RUN, FULL_RESPONSES)
def _closer_is_in(values: Values, result: Any) -> Truth:
    return implies(result[1] + values["gap_ms"] <= values["lag_ms_max"], member(2, result[2]))


@about(
    TWO_FETCHES,
    "close-follower-is-in-by-one-more",
    "isr.pseudo.close-follower",
    finding="watermark-1",
)
@given(*_RUN, FULL_RESPONSES)
def _nearly_closer_is_in(values: Values, result: Any) -> Truth:
    """Guarantee 1 with a millisecond less to spare."""
    close = result[1] + values["gap_ms"] <= values["lag_ms_max"] + 1
    return implies(close, member(2, result[2]))


@about(
    TWO_FETCHES,
    "close-follower-is-in-as-written",
    "isr.pseudo.close-follower",
    finding="watermark-2",
)
@given(*_RUN)
def _close_is_in(values: Values, result: Any) -> Truth:
    """Guarantee 1 as written: a follower within the limit is in the pseudo-ISR."""
    return implies(result[1] <= values["lag_ms_max"], member(2, result[2]))


@about(STALL, "hw-stall-within-less-than-limit", "hw.stall-bounded", finding="watermark-5")
@says("The high watermark has reached where the leader ended a millisecond less than that ago.")
@given(HISTORY, NOT_NEGATIVE, BEGAN_LONG_AGO, ONE_LESS)
@about(STALL, "hw-stall-within-limit", "hw.stall-bounded")
@given(HISTORY, NOT_NEGATIVE, ONE_LIMIT)
@shaped(BEGAN_LONG_AGO)
def _stall_bounded(_: Values, result: Any) -> Truth:
    """By the definitions the high watermark has reached where the leader ended one limit ago."""
    return result[1] <= result[0]
