"""World `tables`: the model's pure functions, asked one question at a time.

State machine moves, leader selectors and elections of controllers; `QUESTIONS` of a module
`protocols/NAME/tables.py` are asked here as well. Nothing is kept from one command to the next.
"""

from enum import Enum
from functools import partial
from typing import ClassVar, Final, TypeVar

from reassure_conformance.scenarios.worlds import Handler, dispatch
from reassure_model.controllers import Controllership, accept_election, find_broken_authority
from reassure_model.outcome import Rejected
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
from reassure_spec.protocols import import_parts
from reassure_spec.readings import Readings
from reassure_spec.words import (
    Arguments,
    ScenarioError,
    check_arguments,
    format_replicas,
    parse_number,
    parse_replicas,
)

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
        return dispatch(self.list_handlers(), command, arguments)

    def list_handlers(self) -> dict[str, Handler]:
        """Return what answers each question, those of the protocols among them."""
        modules = import_parts("reassure_conformance", "tables").values()
        asked = {name: ask for module in modules for name, ask in module.QUESTIONS.items()}
        return {
            **{name: partial(ask, self._readings) for name, ask in asked.items()},
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
        }

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
        return _format_elected(select_new(assigned, parse_set("live", arguments)))

    def _elect_offline(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("assigned", "isr", "live"), ("unclean",))
        elected = select_offline(
            parse_replicas("assigned", arguments["assigned"]),
            parse_replicas("isr", arguments["isr"]),
            parse_set("live", arguments),
            unclean="unclean" in arguments,
        )
        return _format_elected(elected)

    def _elect_reassigned(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("target", "isr", "live"))
        elected = select_reassigned(
            parse_replicas("target", arguments["target"]),
            parse_replicas("isr", arguments["isr"]),
            parse_set("live", arguments),
        )
        return _format_elected(elected)

    def _elect_preferred(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("assigned", "isr", "live"))
        elected = select_preferred(
            parse_replicas("assigned", arguments["assigned"]),
            parse_replicas("isr", arguments["isr"]),
            parse_set("live", arguments),
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


def parse_set(name: str, arguments: Arguments) -> frozenset[int]:
    """Return the brokers that an argument lists. Raises ScenarioError."""
    return frozenset(parse_replicas(name, arguments[name]))


def _format_move(previous: Enum, text: str, outcome: object) -> str:
    if isinstance(outcome, Rejected):
        return f"{_spell(previous)} -> {text}: rejected by {outcome.clause}"
    return f"{_spell(previous)} -> {text}"


def _format_row(state: State, valid: frozenset[State], kind: type[State]) -> str:
    return f"{_spell(state)} from {', '.join(_spell(s) for s in kind if s in valid)}"
