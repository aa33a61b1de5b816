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

# ruff: noqa: D205, D401  # the docstring of a claim is what it claims

from collections.abc import Iterator
from functools import partial
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
from reassure_proofs.engine.formula import Truth, absent, all_of, implies, member
from reassure_proofs.engine.statement import (
    THOROUGH,
    Claims,
    Hypothesis,
    Parameter,
    Shape,
    Values,
    given,
    says,
    shaped,
    subject,
)
from reassure_proofs.protocols.kafka_4485.insync import FOLLOWERS
from reassure_spec.readings import Readings

_PROFILE: Final = "kafka-4485"
_BOUNDED: Final = "1 to {} changes of the leader's end"
_about_lag: Final = partial(subject, shown=FOLLOWERS, numbered=True)


def numbers(*names: str) -> dict[str, Parameter]:
    """Return so many integers."""
    return {name: Parameter() for name in names}


def history_shapes(longest: int, *names: str) -> Iterator[Shape]:
    """Yield a history of each length, and these integers."""
    for length in range(1, longest + 1):
        yield {"times_ms": Parameter(length), "ends": Parameter(length), **numbers(*names)}


def history_of(values: Values) -> tuple[tuple[Any, Any], ...]:
    """Return when the leader's end moved, and where to."""
    return tuple(zip(values["times_ms"], values["ends"], strict=True))


# One fetch, by induction ------------------------------------------------------------------------


def _fetch_shapes(_: int) -> Iterator[Shape]:
    yield numbers(
        *("offset", "last_fetch_ms", "last_fetch_leader_end", "last_caught_up_ms", "now_ms"),
        *("new_offset", "leader_end", "end_when_caught_up", "end_at_last_fetch", "end_now"),
    )


@_about_lag(
    "fetch",
    "the leader's note of a fetch",
    _fetch_shapes,
    profile=_PROFILE,
    bounded="any history, any number of fetches",
)
def fetch_once(values: Values, readings: Readings) -> Follower:
    """Return what the leader notes after one fetch.

    Its history shows only in where it ended at three moments.
    """
    noted = ("offset", "last_fetch_ms", "last_fetch_leader_end", "last_caught_up_ms")
    before = Follower(*(values[name] for name in noted))
    offset, end, now_ms = values["new_offset"], values["leader_end"], values["now_ms"]
    return record_fetch(before, offset, end, now_ms, readings, "lag")


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


@_about_lag(
    "estimate",
    "the comparison",
    lambda longest: history_shapes(longest, "offset", "caught_up_ms", "now_ms", "lag_ms_max"),
    bounded=_BOUNDED,
)
def compare(values: Values) -> tuple[Any, Any, Any, Any, Any]:
    """Return end at the credit, estimate, lag at start and at end of the ms, and pseudo-ISR.

    They are of a follower that was credited some time ago.
    """
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


HISTORY: Final = Hypothesis(
    "history",
    "the leader's end moves forward with time, from 0",
    lambda v: (
        all_of(a <= b for a, b in zip(v["times_ms"], v["times_ms"][1:], strict=False))
        & all_of(a < b for a, b in zip((0, *v["ends"]), v["ends"], strict=False))
    ),
)
NOT_NEGATIVE: Final = Hypothesis(
    "not-negative", "the limit of the lag is not negative", lambda v: v["lag_ms_max"] >= 0
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


_OF_A_RUN: Final = (
    *("first_offset", "second_offset", "first_ms", "second_ms", "now_ms", "gap_ms"),
    *("lag_ms_max", "caught_up_ms"),
)


@_about_lag(
    "two-fetches",
    "the run of two fetches",
    lambda longest: history_shapes(longest, *_OF_A_RUN),
    profile=_PROFILE,
    bounded=_BOUNDED,
)
def fetch_twice(values: Values, readings: Readings) -> tuple[Any, Any, Any]:
    """Return estimate, lag by the known offset, and pseudo-ISR after two fetches.

    They are the last two of a follower, after which the leader evaluates.
    """
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
        for history in history_shapes(longest):
            ends = {"follower_ends": Parameter(followers)}
            yield {**history, **ends, **numbers("now_ms", "lag_ms_max", "slack")}


@_about_lag("stall", "the evaluation", _stall_shapes, bounded=_BOUNDED + ", up to two followers")
def view_once(values: Values) -> tuple[Any, Any]:
    """Return the high watermark by the definitions, and the leader's end one limit ago."""
    history, now_ms = history_of(values), values["now_ms"]
    followers = tuple(((now_ms, end),) for end in values["follower_ends"])
    replicas = tuple(range(1, len(followers) + 2))
    limit = values["lag_ms_max"]
    (view,) = compute_views(replicas, (history, *followers), (now_ms,), limit)
    return view.high_watermark, end_at(history, now_ms - limit + values["slack"])


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


@about(fetch_once, "lag-note-stays-sound", "lag.credit.last-fetch")
@given(NOTED_SOUNDLY, CLOCK_FIRST, NEVER_BACK)
def _still_sound(values: Values, after: Any) -> Truth:
    """After any fetch the leader's notes are sound: when the follower counts as caught up, the
    leader ended no further than the follower.
    """
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


@about(compare, "lag-estimate-never-short", "lag.estimate-never-short", needs=THOROUGH)
@given(HISTORY, CREDITED_BEFORE, NOT_NEGATIVE)
def _never_short_at_start(values: Values, result: Any) -> Truth:
    """The lag that a leader assumes is never shorter than the lag at the start of the ms."""
    return implies(_sound(values, result), result[2] <= result[1])


@about(compare, "lag-estimate-one-ms-short", "lag.definition", needs=THOROUGH)
@given(HISTORY, CREDITED_BEFORE, NOT_NEGATIVE)
def _one_short_at_end(values: Values, result: Any) -> Truth:
    """By the end of the millisecond the assumed lag is short by one ms at most."""
    return implies(_sound(values, result), result[3] <= result[1] + 1)


@about(compare, "lag-estimate-never-short-at-end", "lag.definition", finding="watermark-7")
@given(HISTORY, CREDITED_BEFORE, NOT_NEGATIVE)
def _never_short_at_end(values: Values, result: Any) -> Truth:
    """The lag that a leader assumes is never shorter than the lag at the end of the ms."""
    return implies(_sound(values, result), result[3] <= result[1])


@about(compare, "lagging-follower-is-out", "isr.lagging-leaves")
@given(HISTORY, NOT_NEGATIVE)
def _lagging_is_out(values: Values, result: Any) -> Truth:
    """Guarantee 2: a follower that lags more than the limit, at the start of the millisecond, is
    not in the pseudo-ISR.
    """
    lags = _sound(values, result) & (values["lag_ms_max"] < result[2])
    return implies(lags, absent(2, result[4]))


@about(compare, "lagging-follower-is-out-at-end", "isr.lagging-leaves", finding="watermark-7")
@given(HISTORY, CREDITED_BEFORE, NOT_NEGATIVE)
def _lagging_at_end_is_out(values: Values, result: Any) -> Truth:
    """Guarantee 2 by the end of the millisecond."""
    lags = _sound(values, result) & (values["lag_ms_max"] < result[3])
    return implies(lags, absent(2, result[4]))


@about(fetch_twice, "lag-estimate-within-gap", "lag.credit.caught-up")
@given(*_RUN, FULL_RESPONSES)
def _within_gap(values: Values, result: Any) -> Truth:
    """With full responses the assumed lag exceeds the lag by the gap between fetches at most."""
    return result[0] <= result[1] + values["gap_ms"]


@about(
    fetch_twice, "lag-estimate-within-less-than-gap", "lag.credit.caught-up", finding="watermark-1"
)
@given(*_RUN, FULL_RESPONSES, GAP_POSITIVE)
def _within_less_than_gap(values: Values, result: Any) -> Truth:
    """With full responses the assumed lag exceeds the lag by less than the gap."""
    return result[0] <= result[1] + values["gap_ms"] - 1


@about(
    fetch_twice,
    "lag-estimate-bounded-without-full-responses",
    "lag.credit.last-fetch",
    finding="watermark-3",
)
@given(*_RUN)
def _within_gap_and_more(values: Values, result: Any) -> Truth:
    """Whatever the responses carry, the assumed lag exceeds the lag by no more than the gap and ten
    seconds.
    """
    return result[0] <= result[1] + values["gap_ms"] + 10_000


@about(fetch_twice, "close-follower-is-in", "isr.pseudo.close-follower")
@given(*_RUN, FULL_RESPONSES)
def _closer_is_in(values: Values, result: Any) -> Truth:
    """Guarantee 1 as far as it is true: with full responses a follower within the limit less the
    gap between fetches is in the pseudo-ISR.
    """
    return implies(result[1] + values["gap_ms"] <= values["lag_ms_max"], member(2, result[2]))


@about(
    fetch_twice,
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
    fetch_twice,
    "close-follower-is-in-as-written",
    "isr.pseudo.close-follower",
    finding="watermark-2",
)
@given(*_RUN)
def _close_is_in(values: Values, result: Any) -> Truth:
    """Guarantee 1 as written: a follower within the limit is in the pseudo-ISR."""
    return implies(result[1] <= values["lag_ms_max"], member(2, result[2]))


@about(view_once, "hw-stall-within-less-than-limit", "hw.stall-bounded", finding="watermark-5")
@says("The high watermark has reached where the leader ended a millisecond less than that ago.")
@given(HISTORY, NOT_NEGATIVE, BEGAN_LONG_AGO, ONE_LESS)
@about(view_once, "hw-stall-within-limit", "hw.stall-bounded")
@given(HISTORY, NOT_NEGATIVE, ONE_LIMIT)
@shaped(BEGAN_LONG_AGO)
def _stall_bounded(_: Values, result: Any) -> Truth:
    """By the definitions the high watermark has reached where the leader ended one limit ago."""
    return result[1] <= result[0]
