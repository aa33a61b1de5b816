"""World `tables`: the model's pure functions, asked one question at a time.

State machine moves, leader selectors, the drop rule, what becomes of a request, and elections of
controllers. Nothing is kept from one command to the next.
"""

from collections.abc import Iterator
from enum import Enum
from itertools import permutations
from typing import ClassVar, Final, TypeVar

from reassure_conformance.scenarios.worlds import dispatch
from reassure_model.controllers import Controllership, accept_election, find_broken_authority
from reassure_model.outcome import Rejected
from reassure_model.partition import Environment, Partition, Reassignment, Request
from reassure_model.protocols.kip_236.drop import compute_drop, compute_existing, compute_kept
from reassure_model.protocols.kip_236.requests import New, NothingToDo, Refusal, decide_request
from reassure_model.selectors import (
    Elected,
    select_new,
    select_offline,
    select_preferred,
    select_reassigned,
)
from reassure_model.state_machines import (
    DROP_PATH,
    PARTITION_TABLES,
    REPLICA_TABLES,
    PartitionState,
    ReplicaState,
    move_partition,
    move_replica,
)
from reassure_spec.readings import Readings
from reassure_spec.words import (
    Arguments,
    ScenarioError,
    check_arguments,
    format_replicas,
    parse_number,
    parse_replicas,
)
from reassure_spec.znodes import ReplicaList

State = TypeVar("State", bound=Enum)


def _parse_state(kind: type[State], text: str) -> State:
    try:
        return kind[text.upper().replace("-", "_")]
    except KeyError:
        known = ", ".join(_spell(state) for state in kind)
        raise ScenarioError(f"no state {text!r}; there are: {known}") from None


def _spell(state: Enum) -> str:
    return state.name.lower().replace("_", "-")


def _format_elected(elected: Elected | None) -> str:
    if elected is None:
        return "nobody"
    return f"leader {elected.leader} isr {format_replicas(elected.isr)}"


class TablesWorld:
    """Answers questions about the rules; has no state."""

    name: ClassVar[str] = "tables"

    def __init__(self, profile: str, readings: Readings, arguments: Arguments) -> None:
        check_arguments(arguments)
        self._profile: Final = profile
        self._readings: Final = readings

    def run(self, command: str, arguments: Arguments) -> str:
        """Answer one question. Raises ScenarioError."""
        handlers = {
            "replica": self._move_replica,
            "partition": self._move_partition,
            "replica-table": self._show_replica_table,
            "partition-table": self._show_partition_table,
            "drop-path": self._walk_drop_path,
            "elect-new": self._elect_new,
            "elect-offline": self._elect_offline,
            "elect-reassigned": self._elect_reassigned,
            "elect-preferred": self._elect_preferred,
            "elect-controller": self._elect_controller,
            "judge-authority": self._judge_authority,
            "drop": self._drop,
            "decide": self._decide,
        }
        return dispatch(handlers, command, arguments)

    def _move_replica(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("from", "to"))
        previous = _parse_state(ReplicaState, arguments["from"])
        lines = []
        for text in arguments["to"].split(","):
            outcome = move_replica(previous, _parse_state(ReplicaState, text), self._profile)
            lines.append(_format_move(previous, text, outcome))
        return "\n".join(lines)

    def _move_partition(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("from", "to"))
        previous = _parse_state(PartitionState, arguments["from"])
        lines = []
        for text in arguments["to"].split(","):
            outcome = move_partition(previous, _parse_state(PartitionState, text), self._profile)
            lines.append(_format_move(previous, text, outcome))
        return "\n".join(lines)

    def _show_replica_table(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        table = REPLICA_TABLES[self._profile]
        return "\n".join(_format_row(to, table[to], ReplicaState) for to in table)

    def _show_partition_table(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        table = PARTITION_TABLES[self._profile]
        return "\n".join(_format_row(to, table[to], PartitionState) for to in table)

    def _walk_drop_path(self, arguments: Arguments) -> str:
        """Walk a replica along the states of a drop as far as the table lets it."""
        check_arguments(arguments, ("from",))
        previous = _parse_state(ReplicaState, arguments["from"])
        lines = []
        for state in DROP_PATH:
            outcome = move_replica(previous, state, self._profile)
            lines.append(_format_move(previous, _spell(state), outcome))
            if isinstance(outcome, Rejected):
                break
            previous = state
        return "\n".join(lines)

    def _elect_new(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("assigned", "live"))
        assigned = parse_replicas("assigned", arguments["assigned"])
        return _format_elected(select_new(assigned, _parse_set("live", arguments)))

    def _elect_offline(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("assigned", "isr", "live"), ("unclean",))
        elected = select_offline(
            parse_replicas("assigned", arguments["assigned"]),
            parse_replicas("isr", arguments["isr"]),
            _parse_set("live", arguments),
            unclean="unclean" in arguments,
        )
        return _format_elected(elected)

    def _elect_reassigned(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("target", "isr", "live"))
        elected = select_reassigned(
            parse_replicas("target", arguments["target"]),
            parse_replicas("isr", arguments["isr"]),
            _parse_set("live", arguments),
        )
        return _format_elected(elected)

    def _elect_preferred(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("assigned", "isr", "live"))
        elected = select_preferred(
            parse_replicas("assigned", arguments["assigned"]),
            parse_replicas("isr", arguments["isr"]),
            _parse_set("live", arguments),
        )
        return _format_elected(elected)

    def _elect_controller(self, arguments: Arguments) -> str:
        """Judge one transaction: who is in `/controller` after it, the epoch before and after."""
        check_arguments(arguments, ("from-epoch", "to-epoch"), ("broker", "persistent"))
        broker = parse_number("broker", arguments["broker"]) if "broker" in arguments else None
        before = Controllership(None, parse_number("from-epoch", arguments["from-epoch"]))
        epoch = parse_number("to-epoch", arguments["to-epoch"])
        outcome = accept_election(before, broker, epoch, ephemeral="persistent" not in arguments)
        if isinstance(outcome, Rejected):
            return f"rejected by {outcome.clause}: {outcome.reason}"
        return f"controller {outcome.state.broker} epoch {outcome.state.epoch}"

    def _judge_authority(self, arguments: Arguments) -> str:
        """Judge a controller's write by what its session is to the term, and by its fence."""
        check_arguments(arguments, ("office",), ("unfenced",))
        broken = find_broken_authority(arguments["office"], fenced="unfenced" not in arguments)
        lines = [f"rejected by {rejected.clause}: {rejected.reason}" for rejected in broken]
        return "\n".join(lines) or "accepted"

    def _drop(self, arguments: Arguments) -> str:
        """Drop once; `others` is an order of those out of sync, `lag` (as `2:50,3:10`) gives one.

        Where the reading is that they stand in no order, with `lag` every outcome is listed.
        """
        required = ("assigned", "leader", "isr", "top", "target")
        check_arguments(arguments, required, ("others", "lag"))
        orders: list[ReplicaList | None] = [None]
        if "others" in arguments:
            orders = [parse_replicas("others", arguments["others"])]
        elif "lag" in arguments:
            orders = list(_order_by_lag(arguments, self._readings))
        return "\n".join(dict.fromkeys(self._drop_once(arguments, each) for each in orders))

    def _drop_once(self, arguments: Arguments, others: ReplicaList | None) -> str:
        assigned = parse_replicas("assigned", arguments["assigned"])
        isr = parse_replicas("isr", arguments["isr"])
        target = parse_replicas("target", arguments["target"])
        leader = parse_number("leader", arguments["leader"])
        top = parse_number("top", arguments["top"])
        existing = compute_existing(assigned, leader, isr, others)
        kept = compute_kept(existing, top, self._readings)
        drop = compute_drop(assigned, leader, isr, top, target, self._readings, others)
        left = tuple(replica for replica in assigned if replica not in drop)
        in_sync = tuple(replica for replica in isr if replica not in drop)
        return "\n".join(
            (
                f"existing {format_replicas(existing)}, the first {len(kept)} are kept",
                f"drop {format_replicas(drop)}",
                f"assigned {format_replicas(left)} isr {format_replicas(in_sync)}",
            )
        )

    def _decide(self, arguments: Arguments) -> str:
        """Say what becomes of a request; `flight` and `top` describe what is in flight."""
        optional = ("flight", "top", "flight-legacy", "legacy", "live", "known", "min")
        check_arguments(arguments, ("assigned", "target"), optional)
        assigned = arguments["assigned"]
        flight = None
        if "flight" in arguments:
            target = parse_replicas("flight", arguments["flight"])
            top = parse_number("top", arguments.get("top", "1"))
            flight = Reassignment(target, top, "flight-legacy" in arguments)
        partition = Partition(
            None if assigned == "none" else parse_replicas("assigned", assigned),
            reassignment=flight,
        )
        live = _parse_set("live", {"live": arguments.get("live", "1,2,3,4")})
        known = live | _parse_set("known", {"known": arguments.get("known", "none")})
        around = Environment(live, known, parse_number("min", arguments.get("min", "1")))
        wanted = parse_replicas("target", arguments["target"])
        request = Request(0, wanted, "legacy" in arguments)
        return _format_decision(request, partition, around, self._readings)


def _order_by_lag(arguments: Arguments, readings: Readings) -> Iterator[ReplicaList]:
    """Yield the orders in which the replicas out of sync may stand, given how far each lags."""
    lags: dict[int, int] = {}
    for item in arguments["lag"].split(","):
        replica, _, lag = item.partition(":")
        lags[parse_number("lag", replica)] = parse_number("lag", lag)
    if readings.drop_order == "by-lag":
        yield tuple(sorted(lags, key=lambda replica: lags[replica]))
    else:
        yield from permutations(sorted(lags))


def _parse_set(name: str, arguments: Arguments) -> frozenset[int]:
    return frozenset(parse_replicas(name, arguments[name]))


def _format_move(previous: Enum, text: str, outcome: object) -> str:
    if isinstance(outcome, Rejected):
        return f"{_spell(previous)} -> {text}: rejected by {outcome.clause}"
    return f"{_spell(previous)} -> {text}"


def _format_row(state: State, valid: frozenset[State], kind: type[State]) -> str:
    return f"{_spell(state)} from {', '.join(_spell(s) for s in kind if s in valid)}"


def _format_decision(
    request: Request, partition: Partition, around: Environment, readings: Readings
) -> str:
    decision = decide_request(request, partition, around, readings)
    if isinstance(decision, Refusal):
        return f"refused by {decision.clause}: {decision.reason}"
    if isinstance(decision, NothingToDo):
        return f"nothing to do by {decision.clause}"
    if isinstance(decision, New):
        return f"new reassignment, top {len(partition.assigned or ())}"
    return "change of the reassignment in flight"
