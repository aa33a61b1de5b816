"""Promises about a leader and its follower that the model's functions break.

All arguments are symbolic; only lengths are bounded. Each tells its counterexample as a scenario.
"""

# ruff: noqa: D205, D401  # the docstring of a claim is what it claims

from functools import partial
from typing import Any, Final

from reassure_model.protocols.kafka_4485 import (
    NEVER_MS,
    Follower,
    Leader,
    compute_replica_lag,
    end_at,
    estimate_lag,
    evaluate,
    matching_lags,
    record_fetch,
    start_leader,
)
from reassure_model.protocols.kafka_4485.leader_clock import read_clock_and_end
from reassure_proofs.engine.formula import Truth, absent, all_of, any_of, implies, member
from reassure_proofs.engine.statement import (
    ID,
    Claims,
    Hypothesis,
    Parameter,
    Values,
    given,
    subject,
)
from reassure_proofs.protocols.kafka_4485.lag import HISTORY, history_of, history_shapes, numbers
from reassure_spec.readings import Readings

_about_one: Final = partial(subject, profile="kafka-4485", numbered=True)


def _tell_flapping(values: Values) -> tuple[str, ...]:
    commands, now = [f"world kafka-4485 replicas=1,2 limit={values['lag_ms_max']}"], 0
    for at_ms in values["fetches_ms"]:
        for _ in range(at_ms - now):
            commands += ["tick", "append"]
        commands += ["evaluate", "fetch replica=2", "evaluate"]
        now = at_ms
    return tuple(commands)


@_about_one(
    "flapping",
    "the number of times that the follower enters the pseudo-ISR",
    lambda _: iter([{"fetches_ms": Parameter(n), "lag_ms_max": Parameter()} for n in (2, 3)]),
    bounded="up to 3 fetches",
    tell=_tell_flapping,
)
def flapping(values: Values, readings: Readings) -> Any:
    """Return how often a follower has to enter the pseudo-ISR, with a record every millisecond.

    It fetches at the given times and gets all there is; the leader evaluates before each fetch
    and after. The leader's end is the time, as it writes a record in each millisecond from 0.
    """
    follower = Follower(0, 0, 0, 0)
    limit, entries, inside_now, offset = values["lag_ms_max"], 0, True, 0
    for at_ms in values["fetches_ms"]:
        for fetched in (False, True):
            if fetched:
                follower = record_fetch(follower, offset, at_ms, at_ms, readings, "lag")
                offset = at_ms
            leader = evaluate(Leader((1, 2), at_ms, (follower,)), at_ms, limit)
            found = 2 in leader.pseudo_isr
            entries += int(found and not inside_now)
            inside_now = found
    return entries


WITHIN_LIMIT: Final = Hypothesis(
    "within-limit",
    "the follower fetches in the order of time, with no gap above the limit",
    lambda v: all_of(
        (before < at_ms) & (at_ms <= before + v["lag_ms_max"])
        for before, at_ms in zip((0, *v["fetches_ms"]), v["fetches_ms"], strict=False)
    ),
)


@_about_one(
    "read-end-first",
    "the noted end and the leader's end at the noted time",
    lambda longest: history_shapes(min(longest, 2), "first_ms", "second_ms"),
    bounded="up to 2 changes of the leader's end",
    tell=lambda v: (
        f"world kafka-4485 replicas=1,2 limit=10 start={v['first_ms']}",
        f"tick ms={v['times_ms'][0] - v['first_ms']}",
        f"append records={v['ends'][0]}",
        f"tick ms={v['second_ms'] - v['times_ms'][0]}",
        f"fetch replica=2 take=0 read={v['first_ms']},{v['second_ms']}",
    ),
    changes=("lag.clock-read=after-end",),
)
def read_end_first(values: Values, readings: Readings) -> tuple[Any, Any]:
    """Return the end that a leader notes when it reads that first, and its end at that time."""
    history = history_of(values)
    at_ms, end = read_clock_and_end(history, values["first_ms"], values["second_ms"], readings)
    return end, end_at(history, at_ms)


READ_IN_ORDER: Final = Hypothesis(
    "read-in-order",
    "the second reading is not before the first",
    lambda v: v["first_ms"] <= v["second_ms"],
)

_AGO: Final = 2


def _tell_matching(values: Values) -> tuple[str, ...]:
    # The world begins two milliseconds ago, with what was written by then.
    start = values["now_ms"] - _AGO
    commands = [f"world kafka-4485 replicas=1,2 limit=10 start={start}"]
    now, before = start, 0
    for at_ms, end in history_of(values):
        if at_ms > values["now_ms"]:
            break
        commands += [f"tick ms={at_ms - now}"] if at_ms > now else []
        commands.append(f"append records={end - before}")
        now, before = max(at_ms, now), end
    commands += [f"tick ms={values['now_ms'] - now}"] if values["now_ms"] > now else []
    return (*commands, f"fetch replica=2 take={values['end']}", "matches replica=2")


@subject(
    "literal-lag",
    "the lags that the sentence allows",
    lambda longest: history_shapes(min(longest, 2), "end", "now_ms"),
    bounded="up to 2 changes of the leader's end, lags of up to 2 ms",
    tell=_tell_matching,
)
def literal_lag(values: Values) -> Any:
    """Return every lag of at most two milliseconds of which the sentence of the text is true."""
    return matching_lags(history_of(values), values["end"], values["now_ms"], _AGO)


NOT_AHEAD: Final = Hypothesis(
    "not-ahead",
    "the follower holds no more than the leader, and the leader has ended there or further within "
    "the time looked at",
    lambda v: (
        (v["end"] >= 0)
        & any_of(
            (at_ms <= v["now_ms"]) & (at_ms >= v["now_ms"] - _AGO + 1) & (v["end"] <= end)
            for at_ms, end in zip(v["times_ms"], v["ends"], strict=True)
        )
    ),
)


_NEW_LEADER: Final = "world kafka-4485 replicas=1,2 isr=1"


@_about_one(
    "first-evaluation",
    "the pseudo-ISR of a new leader",
    lambda _: iter([{"leader_end": ID, **numbers("now_ms", "lag_ms_max")}]),
    bounded="one follower that never fetched",
    tell=lambda v: (
        f"{_NEW_LEADER} limit={v['lag_ms_max']} end={v['leader_end']} start={v['now_ms']}",
        "evaluate",
    ),
)
def started(values: Values, readings: Readings) -> Any:
    """Return the pseudo-ISR that a new leader concludes at once, one replica being in sync."""
    leader = start_leader((1, 2), values["leader_end"], values["now_ms"], (1,), readings)
    return evaluate(leader, values["now_ms"], values["lag_ms_max"]).pseudo_isr


BEHIND: Final = Hypothesis(
    "behind",
    "the leader holds a record, the limit is not negative",
    lambda v: (v["leader_end"] >= 1) & (v["lag_ms_max"] >= 0),
)


@_about_one(
    "fetch-from-further-back",
    "in-sync set, high watermark and known offset before the next evaluation",
    lambda _: iter([numbers("offset", "new_offset", "leader_end", "now_ms")]),
    bounded="one fetch between two evaluations",
    tell=lambda v: (
        "world kafka-4485 replicas=1,2 limit=5",
        f"append records={v['leader_end']}",
        f"fetch replica=2 take={v['offset']}",
        "fetch replica=2 take=0",
        "evaluate",
        f"truncate replica=2 end={v['new_offset']}",
        "fetch replica=2 take=0",
        "show",
    ),
)
def further_back(values: Values, readings: Readings) -> tuple[Any, Any, Any]:
    """Return ISR, mark and known offset where a follower fetches from before where it was."""
    caught_up = Follower(values["offset"], values["now_ms"], values["offset"], values["now_ms"])
    leader = Leader((1, 2), values["leader_end"], (caught_up,))
    leader = evaluate(leader, values["now_ms"], 0)
    follower = record_fetch(
        caught_up, values["new_offset"], values["leader_end"], values["now_ms"], readings, "lag"
    )
    return leader.isr, leader.high_watermark, follower.offset


OFFSETS: Final = Hypothesis(
    "offsets",
    "offsets are not negative and not beyond the leader's end",
    lambda v: (
        (v["new_offset"] >= 0) & (v["offset"] >= v["new_offset"]) & (v["offset"] <= v["leader_end"])
    ),
)


def _tell_silent(values: Values) -> tuple[str, ...]:
    written, after = values["written_ms"], values["now_ms"] - values["written_ms"]
    return (
        f"world kafka-4485 replicas=1,2 limit={values['lag_ms_max']}",
        "evaluate",
        *([f"tick ms={written}"] if written else []),
        "append",
        *([f"tick ms={after}"] if after > 0 else []),
        *("show", "evaluate"),
    )


@subject(
    "silent-follower",
    "in-sync set and lag with no evaluation in between",
    lambda _: iter([numbers("written_ms", "now_ms", "lag_ms_max")]),
    bounded="one record, no fetch",
    tell=_tell_silent,
    numbered=True,
)
def silent_follower(values: Values) -> tuple[Any, Any]:
    """Return who is in sync, and the lag, some time after the last request and evaluation."""
    history = ((values["written_ms"], 1),)
    start = Follower(0, 0, 0, 0)
    leader = evaluate(Leader((1, 2), 0, (start,)), 0, values["lag_ms_max"])
    return leader.isr, compute_replica_lag(history, 0, values["now_ms"], of_ms="start")


AFTERWARDS: Final = Hypothesis(
    "afterwards",
    "the record is written after the evaluation, and the limit is not negative",
    lambda v: (v["written_ms"] >= 0) & (v["written_ms"] <= v["now_ms"]) & (v["lag_ms_max"] >= 0),
)


@_about_one(
    "older-item",
    "the lag assumed of an idle, caught-up follower at its fetch",
    lambda _: iter([{"fetches_ms": Parameter(2)}]),
    bounded="two fetches of nothing",
    tell=lambda v: (
        f"world kafka-4485 replicas=1,2 limit=5 start={v['fetches_ms'][0]}",
        "fetch replica=2",
        f"tick ms={v['fetches_ms'][1] - v['fetches_ms'][0]}",
        "fetch replica=2",
    ),
    changes=("lag.credit=last-fetch",),
)
def idle(values: Values, readings: Readings) -> Any:
    """Return the lag that the older of the two texts assumes of a caught-up follower."""
    follower = Follower(0, NEVER_MS, 0, 0)
    for at_ms in values["fetches_ms"]:
        follower = record_fetch(follower, 0, 0, at_ms, readings, "lag")
    return estimate_lag(follower, values["fetches_ms"][-1])


IN_TIME: Final = Hypothesis(
    "in-time",
    "the fetches are in the order of time",
    lambda v: v["fetches_ms"][0] <= v["fetches_ms"][1],
)


THEOREMS: Final = Claims("kafka-4485", largest=2, tier="full")
"""Every promise about a leader and its follower that is refuted."""
about = THEOREMS.about


@about(
    flapping, "frequent-follower-enters-once", "isr.pseudo.close-follower", finding="watermark-4"
)
@given(WITHIN_LIMIT)
def _frequent_follower_enters_once(_: Values, entries: Any) -> Truth:
    """A follower that fetches all there is, within the limit, enters the pseudo-ISR no second
    time.
    """
    return entries <= 1


@about(read_end_first, "end-read-first-is-sound", "lag.clock-before-end", finding="watermark-6")
@given(HISTORY, READ_IN_ORDER)
def _end_read_first_is_sound(_: Values, result: Any) -> Truth:
    """A leader that reads its end before the clock notes no less than it had at that time."""
    return result[1] <= result[0]


@about(literal_lag, "lag-is-total", "lag.definition", finding="watermark-8")
@given(HISTORY, NOT_AHEAD)
def _lag_is_total(_: Values, lags: Any) -> Truth:
    """Taken to the letter, every follower has a lag."""
    return len(lags) > 0


@about(literal_lag, "lag-is-unique", "lag.definition", finding="watermark-8")
@given(HISTORY, NOT_AHEAD)
def _lag_is_unique(_: Values, lags: Any) -> Truth:
    """Taken to the letter, no follower has two lags."""
    return len(lags) <= 1


@about(started, "empty-follower-is-not-waited-for", "lag.credit.caught-up", finding="watermark-9")
@given(BEHIND)
def _empty_follower_is_not_waited_for(_: Values, pseudo: Any) -> Truth:
    """A leader that begins does not count an empty follower as close."""
    return absent(2, pseudo)


@about(
    further_back, "isr-members-reach-hw-always", "isr.member.at-or-above-hw", finding="watermark-10"
)
@given(OFFSETS)
def _member_reaches_mark(_: Values, result: Any) -> Truth:
    """Guarantee 4 holds between evaluations as well."""
    isr, mark, offset = result
    return implies(member(2, isr), mark <= offset)


@about(silent_follower, "silent-follower-leaves", "lag.evaluated-in-time", finding="watermark-11")
@given(AFTERWARDS)
def _lagging_is_out(values: Values, result: Any) -> Truth:
    """Guarantee 2 holds with no request and no timer."""
    isr, lag = result
    return implies(values["lag_ms_max"] < lag, absent(2, isr))


@about(idle, "older-item-credits-idle-follower", "lag.noted-after-serving", finding="watermark-16")
@given(IN_TIME)
def _older_item_credits_idle_follower(_: Values, lag: Any) -> Truth:
    """By the older of the two texts a follower that has everything is not behind at its fetch."""
    return lag == 0
