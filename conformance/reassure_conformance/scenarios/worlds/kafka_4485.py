"""World `kafka-4485`: KAFKA-4485 on one leader with a clock, or on several brokers with elections.

    world kafka-4485 replicas=1,2 limit=2        one leader (the first), times in milliseconds
    world kafka-4485 brokers=3                   brokers 0 to 2, led by broker 0; lag is an action

Of one leader the true log of every replica is known beside what the leader has noted, so that both
stand next to each other: `2: end 1 known 0 lag 0 estimated 2`. On several brokers an answer is the
lines of the state that changed, and the invariants that do not hold now, `broken` or, where the
readings do not promise them, `not promised`; `show` gives all lines.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Final

from reassure_conformance.scenarios.worlds import Handler, dispatch
from reassure_model.kafka_4485.invariants import INVARIANTS, is_promised
from reassure_model.kafka_4485.lag import (
    compute_replica_lag,
    compute_views,
    end_at,
    matching_lags,
    read_clock_and_end,
)
from reassure_model.kafka_4485.leader import (
    NEVER_MS,
    enter_before,
    estimate_lag,
    evaluate,
    evaluate_before,
    fetch,
    is_answered,
    start_leader,
)
from reassure_model.kafka_4485.replication import (
    LEADER_ALONE,
    Action,
    NotPossible,
    Replica,
    Replication,
    Verb,
    make_replication,
    step,
)
from reassure_model.outcome import Rejected
from reassure_spec.readings import Readings
from reassure_spec.words import (
    Arguments,
    ScenarioError,
    check_arguments,
    format_replicas,
    parse_number,
    parse_replicas,
)


class ReplicationWorld:
    """One partition, seen from its leader's clock or from all its brokers."""

    name: ClassVar[str] = "kafka-4485"

    def __init__(self, profile: str, readings: Readings, arguments: Arguments) -> None:
        """Make the partition. Raises ScenarioError unless `limit` or `brokers` is given."""
        if "limit" in arguments:
            self._handlers = _OneLeader(readings, arguments).handlers()
        else:
            self._handlers = _Brokers(readings, arguments).handlers()

    def run(self, command: str, arguments: Arguments) -> str:
        """Carry out one command. Raises ScenarioError."""
        return dispatch(self._handlers, command, arguments)


def _number(arguments: Arguments, name: str, default: int) -> int:
    return parse_number(name, arguments[name]) if name in arguments else default


class _OneLeader:
    """A leader with a clock, and the true logs of all replicas."""

    def __init__(self, readings: Readings, arguments: Arguments) -> None:
        optional = ("start", "end", "hw", "isr", "rule")
        check_arguments(arguments, ("replicas", "limit"), optional)
        replicas = parse_replicas("replicas", arguments["replicas"])
        isr = parse_replicas("isr", arguments["isr"]) if "isr" in arguments else replicas
        self._readings: Final = readings
        self._limit: Final = parse_number("limit", arguments["limit"])
        self._rule: Final = arguments.get("rule", "lag")
        if self._rule not in ("lag", "before"):
            raise ScenarioError(f"rule={self._rule}: expected lag or before")
        self._now = self._start = _number(arguments, "start", 0)
        end = _number(arguments, "end", 0)
        leader = start_leader(replicas, end, self._now, isr, readings)
        self._leader = replace(leader, high_watermark=_number(arguments, "hw", 0))
        self._logs: Final = {replica: [(self._now, 0)] for replica in replicas}
        self._logs[replicas[0]] = [(self._now, end)]

    def handlers(self) -> Mapping[str, Handler]:
        """Return what takes each command."""
        return {
            "tick": self._tick,
            "append": self._append,
            "fetch": self._fetch,
            "truncate": self._truncate,
            "evaluate": self._evaluate,
            "show": self._show,
            "answered": self._answered,
            "define": self._define,
            "matches": self._matches,
            "run": self._run,
        }

    def _end(self, replica: int) -> int:
        return self._logs[replica][-1][1]

    def _followers(self) -> tuple[int, ...]:
        return self._leader.replicas[1:]

    def _pick(self, arguments: Arguments) -> int:
        replica = parse_number("replica", arguments["replica"])
        if replica not in self._followers():
            raise ScenarioError(f"{replica} is no follower; they are: {self._followers()}")
        return replica

    def _tick(self, arguments: Arguments) -> str:
        check_arguments(arguments, (), ("ms",))
        self._now += _number(arguments, "ms", 1)
        return f"ms {self._now}"

    def _append(self, arguments: Arguments) -> str:
        check_arguments(arguments, (), ("records",))
        self._write(_number(arguments, "records", 1))
        return f"end {self._leader.end}"

    def _write(self, records: int) -> None:
        leader = self._leader
        self._leader = replace(leader, end=leader.end + records)
        self._logs[leader.replicas[0]].append((self._now, self._leader.end))

    def _fetch(self, arguments: Arguments) -> str:
        """Let a follower fetch; it takes `take` records of the response, all without it."""
        check_arguments(arguments, ("replica",), ("take", "read"))
        replica, now, end = self._pick(arguments), self._now, self._leader.end
        if "read" in arguments:
            first, second = parse_replicas("read", arguments["read"])
            history = tuple(self._logs[self._leader.replicas[0]])
            now, end = read_clock_and_end(history, first, second, self._readings)
        self._note(replica, now, end, _number(arguments, "take", end - self._end(replica)))
        return self._line(replica)

    def _note(self, replica: int, now: int, end: int, take: int) -> None:
        """Note a fetch at the time and with the leader's end as they were read."""
        offset = self._end(replica)
        noting = replace(self._leader, end=end)
        noted = fetch(noting, replica, offset, now, self._readings, self._rule)
        self._leader = replace(noted, end=self._leader.end)
        if self._rule == "before":
            self._leader = enter_before(self._leader, replica)
        self._logs[replica].append((self._now, offset + take))

    def _truncate(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("replica", "end"))
        replica = self._pick(arguments)
        self._logs[replica].append((self._now, parse_number("end", arguments["end"])))
        return self._line(replica)

    def _evaluate(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        conclude = evaluate if self._rule == "lag" else evaluate_before
        self._leader = conclude(self._leader, self._now, self._limit)
        return self._headline()

    def _headline(self) -> str:
        leader = self._leader
        return (
            f"ms {self._now} end {leader.end} hw {leader.high_watermark} "
            f"pseudo {format_replicas(leader.pseudo_isr)} isr {format_replicas(leader.isr)}"
        )

    def _line(self, replica: int) -> str:
        noted = self._leader.followers[self._followers().index(replica)]
        history = tuple(self._logs[self._leader.replicas[0]])
        end = self._end(replica)
        lag = compute_replica_lag(history, end, self._now)
        never = noted.last_caught_up_ms == NEVER_MS
        estimated = "for ever" if never else estimate_lag(noted, self._now)
        return f"{replica}: end {end} known {noted.offset} lag {lag} estimated {estimated}"

    def _show(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        return "\n".join([self._headline(), *map(self._line, self._followers())])

    def _answered(self, arguments: Arguments) -> str:
        """Say whether a producer that waits for all has its answer for the records below `end`."""
        check_arguments(arguments, ("end",))
        return "yes" if is_answered(self._leader, _number(arguments, "end", 0)) else "no"

    def _define(self, arguments: Arguments) -> str:
        """Say what the definitions say now, evaluated at every millisecond so far."""
        check_arguments(arguments)
        histories = [tuple(self._logs[replica]) for replica in self._leader.replicas]
        times = range(self._start, self._now + 1)
        view = compute_views(self._leader.replicas, histories, times, self._limit)[-1]
        return (
            f"by definition hw {view.high_watermark} "
            f"pseudo {format_replicas(view.pseudo_isr)} isr {format_replicas(view.isr)}"
        )

    def _matches(self, arguments: Arguments) -> str:
        """Say for which lags the sentence of the text is true of a follower, taken literally."""
        check_arguments(arguments, ("replica",))
        history = tuple(self._logs[self._leader.replicas[0]])
        end, age = self._end(self._pick(arguments)), self._now - self._start
        found = matching_lags(history, end, self._now, age)
        return "literally true of " + (", ".join(map(str, found)) or "no lag at all")

    def _run(self, arguments: Arguments) -> str:
        """Let time pass: write `append` each ms and fetch every `gap` ms.

        With `behind` each fetch begins where the leader ended that many ms before it.
        """
        check_arguments(arguments, ("ms", "gap"), ("append", "behind"))
        replica, gap = self._followers()[0], parse_number("gap", arguments["gap"])
        behind = _number(arguments, "behind", gap)
        inside = entries = stalled = 0
        length = parse_number("ms", arguments["ms"])
        for passed in range(1, length + 1):
            self._now += 1
            self._write(_number(arguments, "append", 1))
            if passed % gap == 0:
                recent = tuple(self._logs[self._leader.replicas[0]][-behind - 2 :])
                take = end_at(recent, self._now + gap - behind) - self._end(replica)
                self._note(replica, self._now, self._leader.end, max(take, 0))
            before = self._leader.pseudo_isr
            self._evaluate({})
            inside += replica in self._leader.isr
            entries += replica in self._leader.pseudo_isr and replica not in before
            stalled += self._leader.high_watermark < self._leader.end
        return (
            f"of {length} ms in the isr {inside}, hw behind the end {stalled}; "
            f"entered the pseudo-isr {entries} times\n{self._show({})}"
        )


class _Brokers:
    """Several brokers; every command is an action of the model."""

    def __init__(self, readings: Readings, arguments: Arguments) -> None:
        check_arguments(arguments, ("brokers",), ("isr",))
        members = frozenset(parse_replicas("isr", arguments["isr"])) if "isr" in arguments else None
        self._readings: Final = readings
        count = parse_number("brokers", arguments["brokers"])
        self._state = make_replication(count, members=members)

    def handlers(self) -> Mapping[str, Handler]:
        """Return what takes each command."""
        return {"show": self._show, **{verb.value: self._handler(verb) for verb in Verb}}

    def _handler(self, verb: Verb) -> Handler:
        def take(arguments: Arguments) -> str:
            if verb in LEADER_ALONE:
                check_arguments(arguments)
                return self._take(Action(verb, self._state.leader))
            check_arguments(arguments, ("broker",))
            broker = parse_number("broker", arguments["broker"])
            if broker not in range(len(self._state.replicas)):
                raise ScenarioError(f"there is no broker {broker}")
            return self._take(Action(verb, broker))

        return take

    def _take(self, action: Action) -> str:
        try:
            outcome = step(self._state, action, self._readings)
        except NotPossible:
            return "not possible"
        if isinstance(outcome, Rejected):
            return f"rejected by {outcome.clause}: {outcome.reason}"
        before, self._state = _format_state(self._state), outcome.state
        changed = [line for line in _format_state(self._state) if line not in before]
        return (
            "\n".join([*changed, *_format_broken(self._state, self._readings)]) or "nothing changed"
        )

    def _show(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        return "\n".join(
            [*_format_state(self._state), *_format_broken(self._state, self._readings)]
        )


def _format_state(state: Replication) -> list[str]:
    shown = "nothing" if state.shown is None else state.shown
    stored, pseudo = (format_replicas(tuple(sorted(s))) for s in (state.isr, state.term.pseudo_isr))
    lines = [_format_replica(state, broker) for broker in range(len(state.replicas))]
    stale = state.term.version != state.version
    known = f" (leader knows {state.term.version})" if stale else ""
    lines.append(f"isr {stored} version {state.version}{known} pseudo {pseudo} shown {shown}")
    return lines


def _format_broken(state: Replication, readings: Readings) -> list[str]:
    """Say which invariants do not hold, the ones that the readings do not promise among them."""
    lines = []
    for clause_id, find in INVARIANTS.items():
        if text := find(state):
            verb = "broken" if is_promised(clause_id, readings) else "not promised"
            lines.append(f"{verb} {clause_id}: {text}")
    return lines


def _format_replica(state: Replication, broker: int) -> str:
    replica = state.replicas[broker]
    text = f"{broker}: log {format_replicas(replica.log)} hw {replica.high_watermark}"
    if broker == state.leader:
        return f"{text} leads epoch {state.leader_epoch}"
    return f"{text} follows epoch {replica.leader_epoch}{_format_request(replica)}"


def _format_request(replica: Replica) -> str:
    if replica.request is None:
        return ""
    where = "waits at" if replica.request.served else "asks for"
    return f", {where} {replica.request.offset}"
