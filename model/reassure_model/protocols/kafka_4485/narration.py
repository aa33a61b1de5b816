"""How KAFKA-4485 is told: logs across elections, and the leader with a clock."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from reassure_model.narration import Vocabulary, to_each
from reassure_model.protocols.kafka_4485 import (
    NEVER_MS,
    compute_replica_lag,
    estimate_lag,
    is_answered,
    matching_lags,
)
from reassure_model.protocols.kafka_4485 import leader_clock as clock
from reassure_model.protocols.kafka_4485.leader_clock import Watched
from reassure_model.protocols.kafka_4485.replication import (
    ACTIONS,
    LEADER_ALONE,
    Action,
    Replication,
    make_replication,
)
from reassure_spec.readings import Readings
from reassure_spec.words import (
    Arguments,
    check_arguments,
    format_replicas,
    parse_number,
    parse_replicas,
    spell_replicas,
)


def _open(arguments: Arguments) -> Replication:
    check_arguments(arguments, ("brokers",), ("isr",))
    members = frozenset(parse_replicas("isr", arguments["isr"])) if "isr" in arguments else None
    return make_replication(parse_number("brokers", arguments["brokers"]), members=members)


def _say_opening(state: Replication) -> tuple[str, ...]:
    brokers = len(state.replicas)
    isr = "" if len(state.isr) == brokers else f" isr={spell_replicas(sorted(state.isr))}"
    return (f"world kafka-4485 brokers={brokers}{isr}",)


def _take_alone(
    kind: type[Action], states: Mapping[str, Replication], arguments: Arguments
) -> Iterator[tuple[str, Action]]:
    check_arguments(arguments)
    for name, state in states.items():
        yield name, kind(state.leader)


def _format_replica(state: Replication, broker: int) -> str:
    replica, request = state.replicas[broker], state.replicas[broker].request
    text = f"{broker}: log {format_replicas(replica.log)} hw {replica.high_watermark}"
    if broker == state.leader:
        return f"{text} leads epoch {state.leader_epoch}"
    text = f"{text} follows epoch {replica.leader_epoch}"
    if request is None:
        return text
    return f"{text}, {'waits at' if request.served else 'asks for'} {request.offset}"


def show(state: Replication) -> str:
    """Return each broker's log, then what is stored and what consumers are shown, a line each."""
    shown = "nothing" if state.shown is None else state.shown
    stored, pseudo = (format_replicas(sorted(s)) for s in (state.isr, state.term.pseudo_isr))
    stale = state.term.version != state.version
    known = f" (leader knows {state.term.version})" if stale else ""
    stored = f"isr {stored} version {state.version}{known} pseudo {pseudo} shown {shown}"
    brokers = range(len(state.replicas))
    return "\n".join([*(_format_replica(state, broker) for broker in brokers), stored])


# The leader with a clock --------------------------------------------------------------------------


def _number(arguments: Arguments, name: str, default: int) -> int:
    return parse_number(name, arguments[name]) if name in arguments else default


def _read_fetch(arguments: Arguments) -> clock.Fetch:
    """Read who fetches; it takes `take` records of the response, all without it."""
    check_arguments(arguments, ("replica",), ("take", "read"))
    take = parse_number("take", arguments["take"]) if "take" in arguments else None
    read_ms = None
    if "read" in arguments:
        first, second = parse_replicas("read", arguments["read"])
        read_ms = first, second
    return clock.Fetch(parse_number("replica", arguments["replica"]), take, read_ms)


def _read_pass(arguments: Arguments) -> clock.Pass:
    """Read how long the leader writes `append` records each ms, and is fetched every `gap` ms.

    With `behind` each fetch begins where the leader ended that many ms before it.
    """
    check_arguments(arguments, ("ms", "gap"), ("append", "behind"))
    ms, gap_ms = (parse_number(name, arguments[name]) for name in ("ms", "gap"))
    behind_ms = _number(arguments, "behind", gap_ms)
    return clock.Pass(ms, gap_ms, _number(arguments, "append", 1), behind_ms)


def _read_truncate(arguments: Arguments) -> clock.Truncate:
    check_arguments(arguments, ("replica", "end"))
    return clock.Truncate(*(parse_number(name, arguments[name]) for name in ("replica", "end")))


def _read_one(kind: Callable[[int], clock.Action], name: str, arguments: Arguments) -> clock.Action:
    check_arguments(arguments, (), (name,))
    return kind(_number(arguments, name, 1))


def _read_evaluate(arguments: Arguments) -> clock.Evaluate:
    check_arguments(arguments)
    return clock.Evaluate()


_READ: Final[Mapping[str, Callable[[Arguments], clock.Action]]] = {
    "tick": partial(_read_one, clock.Tick, "ms"),
    "append": partial(_read_one, clock.Write, "records"),
    "fetch": _read_fetch,
    "truncate": _read_truncate,
    "evaluate": _read_evaluate,
    "run": _read_pass,
}


def _say_headline(watched: Watched) -> str:
    leader = watched.leader
    return (
        f"ms {watched.now_ms} end {leader.end} hw {leader.high_watermark} "
        f"pseudo {format_replicas(leader.pseudo_isr)} isr {format_replicas(leader.isr)}"
    )


def _say_follower(watched: Watched, follower: int) -> str:
    """Return where it is, what the leader knows of it, and its lag in truth and as estimated."""
    end, noted = watched.get_end(follower), watched.get_noted(follower)
    lag = compute_replica_lag(watched.logs[0], end, watched.now_ms)
    never = noted.last_caught_up_ms == NEVER_MS
    estimated = "for ever" if never else estimate_lag(noted, watched.now_ms)
    return f"{follower}: end {end} known {noted.offset} lag {lag} estimated {estimated}"


def _say_moved(before: Watched, after: Watched) -> str:
    """Return the line of the follower whose log was moved."""
    pairs = zip(after.followers, before.logs[1:], after.logs[1:], strict=True)
    return "\n".join(_say_follower(after, follower) for follower, old, new in pairs if old != new)


def _say_passed(_: Watched, after: Watched) -> str:
    passed = after.passed
    return (
        f"of {passed.ms} ms in the isr {passed.in_sync}, hw behind the end {passed.behind}; "
        f"entered the pseudo-isr {passed.entries} times\n{_show_watched(after)}"
    )


def _show_watched(watched: Watched) -> str:
    return "\n".join(
        [_say_headline(watched), *(_say_follower(watched, f) for f in watched.followers)]
    )


def _say_answered(watched: Watched, arguments: Arguments) -> str:
    """Say whether a producer that waits for all has its answer for the records below `end`."""
    check_arguments(arguments, ("end",))
    return "yes" if is_answered(watched.leader, _number(arguments, "end", 0)) else "no"


def _say_matches(watched: Watched, arguments: Arguments) -> str:
    """Say for which lags the sentence of the text is true of a follower, taken literally."""
    check_arguments(arguments, ("replica",))
    end = watched.get_end(parse_number("replica", arguments["replica"]))
    age_ms = watched.now_ms - watched.start_ms
    found = matching_lags(watched.logs[0], end, watched.now_ms, age_ms)
    return "literally true of " + (", ".join(map(str, found)) or "no lag at all")


def _say_defined(settings: clock.Settings, watched: Watched, arguments: Arguments) -> str:
    check_arguments(arguments)
    found = clock.define(watched, settings)
    return (
        f"by definition hw {found.high_watermark} "
        f"pseudo {format_replicas(found.pseudo_isr)} isr {format_replicas(found.isr)}"
    )


def _open_watched(readings: Readings, arguments: Arguments) -> Watched:
    check_arguments(arguments, ("replicas", "limit"), ("start", "end", "hw", "isr", "rule"))
    replicas = parse_replicas("replicas", arguments["replicas"])
    isr = parse_replicas("isr", arguments["isr"]) if "isr" in arguments else replicas
    end, mark, now_ms = (_number(arguments, name, 0) for name in ("end", "hw", "start"))
    return clock.make_watched(replicas, end, mark, isr, now_ms, readings)


def make_watched_vocabulary(settings: clock.Settings, readings: Readings) -> Vocabulary[Watched]:
    """Return the words of the leader with a clock."""
    return Vocabulary(
        opening=partial(_open_watched, readings),
        say_opening=lambda _: (),
        show=_show_watched,
        say_effect=lambda *_: "",
        commands={name: to_each(read) for name, read in _READ.items()},
        answers={
            "tick": lambda _, after: f"ms {after.now_ms}",
            "append": lambda _, after: f"end {after.leader.end}",
            "fetch": _say_moved,
            "truncate": _say_moved,
            "evaluate": lambda _, after: _say_headline(after),
            "run": _say_passed,
        },
        questions={
            "answered": _say_answered,
            "define": partial(_say_defined, settings),
            "matches": _say_matches,
        },
    )


VOCABULARY: Final = Vocabulary(
    opening=_open,
    say_opening=_say_opening,
    show=show,
    say_effect=lambda *_: "",
    commands={
        name: partial(_take_alone, kind) for name, kind in ACTIONS.items() if kind in LEADER_ALONE
    },
    tells_changes=True,
)
