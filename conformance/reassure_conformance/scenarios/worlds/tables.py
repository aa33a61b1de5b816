"""World `tables`: the model's pure functions, asked one question at a time.

State machine moves, leader selectors and elections of controllers; `QUESTIONS` of a module
`protocols/NAME/tables.py` are asked here as well. Nothing is kept from one command to the next.
"""

from collections.abc import Callable, Mapping
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
            "replica": partial(self._move, ReplicaState, move_replica),
            "partition": partial(self._move, PartitionState, move_partition),
            "replica-table": partial(self._show_table, ReplicaState, REPLICA_TABLES),
            "partition-table": partial(self._show_table, PartitionState, PARTITION_TABLES),
            "drop-path": self._walk_drop_path,
            "elect-new": partial(self._elect, select_new, ("assigned",)),
            "elect-offline": partial(self._elect, select_offline, ("assigned", "isr")),
            "elect-reassigned": partial(self._elect, select_reassigned, ("target", "isr")),
            "elect-preferred": partial(self._elect, select_preferred, ("assigned", "isr")),
            "elect-controller": self._elect_controller,
            "judge-authority": self._judge_authority,
        }

    def _move(
        self, kind: type[State], move: Callable[[State, State, str], object], arguments: Arguments
    ) -> str:
        check_arguments(arguments, ("from", "to"))
        previous = _parse_state(kind, arguments["from"])
        lines = []
        for text in arguments["to"].split(","):
            outcome = move(previous, _parse_state(kind, text), self._profile)
            lines.append(_format_move(previous, text, outcome))
        return "\n".join(lines)

    def _show_table(
        self,
        kind: type[State],
        tables: Mapping[str, Mapping[State, frozenset[State]]],
        arguments: Arguments,
    ) -> str:
        check_arguments(arguments)
        return "\n".join(
            f"{_spell(to)} from {', '.join(_spell(s) for s in kind if s in valid)}"
            for to, valid in tables[self._profile].items()
        )

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

    def _elect(
        self, select: Callable[..., Elected | None], lists: tuple[str, ...], arguments: Arguments
    ) -> str:
        """Have a selector choose from these replica lists among those that live."""
        may_be_unclean = select is select_offline
        check_arguments(arguments, (*lists, "live"), ("unclean",) if may_be_unclean else ())
        given = [parse_replicas(name, arguments[name]) for name in lists]
        options = {"unclean": "unclean" in arguments} if may_be_unclean else {}
        elected = select(*given, parse_set("live", arguments), **options)
        if elected is None:
            return "nobody"
        return f"leader {elected.leader} isr {format_replicas(elected.isr)}"

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
