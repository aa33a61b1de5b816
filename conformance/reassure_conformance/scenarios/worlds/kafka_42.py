"""World `kafka-42`: the first reassignment, effect by effect.

`world kafka-42 assigned=1,2 brokers=1,2,3` is a healthy partition. `command` starts an admin
command that waits, and `others` has it name more partitions, which leave the path by `others-end`.
`step` lets the controller carry out effects one by one and `run` all it can. Everything else
(`join`, `append`, `die`, `return`, `stall`, `fail-over`, `interrupt`, `observe`) can come between
any two effects. `problems` names what must never be and is, and `shortest` searches for the
shortest story to such a problem within a number of deaths, failovers and interruptions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from reassure_conformance.scenarios.worlds import (
    Arguments,
    ScenarioError,
    check_arguments,
    dispatch,
    format_replicas,
    parse_number,
    parse_replicas,
    run_to_rest,
)
from reassure_explorer.engine.walk import find_shortest
from reassure_model.copies import Append
from reassure_model.kafka_42 import (
    PROBLEMS,
    Action,
    Command,
    Effect,
    Interrupt,
    Listen,
    MarkOnline,
    Move,
    Observe,
    OthersEnd,
    Refuse,
    RemovePath,
    Stall,
    StartReplica,
    StopReplica,
    WriteAssigned,
    WriteLeader,
    enabled,
    is_complete,
    make_move,
    move_replica_states,
    next_effect,
    start_replica_states,
    step,
)
from reassure_model.kip_236.system import Controller, Die, Failover, Join, NotPossible, Return
from reassure_model.outcome import Rejected
from reassure_model.selectors import select_controlled_shutdown
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER

LIMIT: Final = 50
"""Effects after which `run` gives up: no plan is that long."""


@dataclass(frozen=True, slots=True)
class Node:
    """A system and the faults that may still come."""

    move: Move
    deaths: int = 0
    failovers: int = 0
    interrupts: int = 0

    def without(self, action: Action) -> "Node | None":
        """Return the node with one fault fewer, None where the action is one fault too many."""
        left = replace(
            self,
            deaths=self.deaths - isinstance(action, Die),
            failovers=self.failovers - isinstance(action, Failover),
            interrupts=self.interrupts - isinstance(action, Interrupt),
        )
        return None if min(left.deaths, left.failovers, left.interrupts) < 0 else left


def iterate_successors(node: Node, readings: Readings) -> Iterator[tuple[Action, Node]]:
    """Yield every action that the budget allows, with the node after it; nobody returns."""
    for action in enabled(node.move, readings):
        left = node.without(action)
        if left is None or isinstance(action, Return | Observe):
            continue
        outcome = step(node.move, action, readings)
        if not isinstance(outcome, Rejected):
            # The epoch only counts; without it the search has far fewer states to tell apart.
            yield action, replace(left, move=replace(outcome.state, leader_epoch=0))


def find_problem(
    start: Node, readings: Readings, problem: Callable[[Move], str | None]
) -> tuple[Action, ...] | None:
    """Return a shortest story that leads to the problem, None where none does."""
    return find_shortest(
        start,
        lambda node: iterate_successors(node, readings),
        lambda node: problem(node.move) is not None,
    )


def format_effect(effect: Effect) -> str:
    """Return an effect as scenarios show it."""
    match effect:
        case WriteLeader(leader, isr, at):
            who = "nobody" if leader == NO_LEADER else f"{leader}"
            place = f"step {at}" if at else "between steps"
            return f"{place}: leader {who} isr {format_replicas(isr)}"
        case Refuse(clause, reason):
            return f"refused by {clause}: {reason}; path removed"
        case Listen(target):
            return f"step 1: listen for {format_replicas(target)}"
        case StartReplica(replica):
            return f"step 2: start {replica}"
        case MarkOnline(target):
            return f"step 3: {format_replicas(target)} in sync"
        case StopReplica(replica):
            return f"step 5: stop {replica}"
        case WriteAssigned(assigned, at):
            return f"step {at}: assigned {format_replicas(assigned)}"
        case RemovePath():
            return "step 7: path removed"


def format_action(action: Action, effect: Effect | None) -> str:
    """Return an action of a story; `effect` is what the controller does."""
    match action:
        case Controller():
            return "nothing" if effect is None else format_effect(effect)
        case Join(replica):
            return f"{replica} joins the in-sync set"
        case Die(broker):
            return f"broker {broker} dies"
        case Failover():
            return "the controller fails over"
        case Interrupt():
            return "the command is interrupted"
        case _:
            return type(action).__name__.lower()


class Kafka42World:
    """One partition under KAFKA-42."""

    name: ClassVar[str] = "kafka-42"

    def __init__(self, profile: str, readings: Readings, arguments: Arguments) -> None:
        check_arguments(arguments, ("assigned", "brokers"))
        assigned = parse_replicas("assigned", arguments["assigned"])
        self._move = make_move(assigned, frozenset(parse_replicas("", arguments["brokers"])))
        self._readings: Final = readings
        self._states = start_replica_states(self._move)

    def run(self, command: str, arguments: Arguments) -> str:
        """Carry out one command. Raises ScenarioError."""
        handlers = {
            "command": self._command,
            "others": self._begin_others,
            "others-end": lambda a: self._take(a, OthersEnd()),
            "stall": lambda a: self._take(a, Stall()),
            "step": self._step,
            "run": self._run,
            "join": lambda a: self._each(a, "replica", Join),
            "die": lambda a: self._each(a, "broker", Die),
            "return": lambda a: self._each(a, "broker", Return),
            "append": lambda a: self._take(a, Append()),
            "fail-over": lambda a: self._take(a, Failover()),
            "interrupt": lambda a: self._report(a, Interrupt()),
            "observe": lambda a: self._report(a, Observe()),
            "show": self._show,
            "replicas": self._show_states,
            "problems": self._show_problems,
            "shortest": self._search,
            "shut-down": self._shut_down,
        }
        try:
            return dispatch(handlers, command, arguments)
        except NotPossible as error:
            raise ScenarioError(str(error)) from error

    def _take(self, arguments: Arguments, action: Action) -> str:
        check_arguments(arguments)
        return self._go(action)

    def _go(self, action: Action) -> str:
        outcome = step(self._move, action, self._readings)
        if isinstance(outcome, Rejected):
            return f"rejected by {outcome.clause}: {outcome.reason}"
        self._move = outcome.state
        if isinstance(action, Failover):
            self._states = start_replica_states(self._move)
        if isinstance(action, Die):
            self._states, _ = move_replica_states(self._states, action, self._readings)
        return ""

    def _each(self, arguments: Arguments, what: str, make: Callable[[int], Action]) -> str:
        check_arguments(arguments, (what,))
        for number in parse_replicas(what, arguments[what]):
            self._go(make(number))
        return self._show({})

    def _command(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("target",))
        return self._go(Command(parse_replicas("target", arguments["target"])))

    def _begin_others(self, arguments: Arguments) -> str:
        """Let the path name other partitions as well, by the same command."""
        check_arguments(arguments)
        self._move = replace(self._move, beside=True)
        return ""

    def _effect(self) -> str | None:
        effect = next_effect(self._move, self._readings)
        if effect is None:
            return None
        self._go(Controller())
        self._states, refused = move_replica_states(self._states, effect, self._readings)
        return "\n".join([format_effect(effect), *(f"  {reason}" for reason in refused)])

    def _step(self, arguments: Arguments) -> str:
        check_arguments(arguments, (), ("times",))
        lines = [self._effect() for _ in range(parse_number("", arguments.get("times", "1")))]
        return "\n".join(line or "the controller waits" for line in lines)

    def _run(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        lines = run_to_rest(self._effect, LIMIT)
        return "\n".join([*lines, *self._show({}).splitlines()])

    def _report(self, arguments: Arguments, action: Interrupt | Observe) -> str:
        check_arguments(arguments)
        complete = is_complete(self._move)
        self._go(action)
        kept = "" if self._move.path is None else ", path left to the controller"
        return f"the command reports {'success' if complete else 'failure'}{kept}"

    def _show(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        move = self._move
        who = "nobody" if move.leader == NO_LEADER else f"{move.leader}"
        path = "" if move.path is None else f" path {format_replicas(move.path)}"
        path += " and others" if move.beside and path else " path others" if move.beside else ""
        assigned, isr = format_replicas(move.assigned), format_replicas(move.isr)
        sets = (move.running, move.holding, move.live)
        running, holding, live = (format_replicas(tuple(sorted(members))) for members in sets)
        return (
            f"assigned {assigned} leader {who} epoch {move.leader_epoch} isr {isr}{path}\n"
            f"running {running} with all records {holding} alive {live}"
        )

    def _show_states(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        return "\n".join(f"{r} {s.name.lower().replace('_', '-')}" for r, s in self._states)

    def _show_problems(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        found = ((name, find(self._move)) for name, find in PROBLEMS.items())
        return "\n".join(f"{name}: {why}" for name, why in found if why) or "none"

    def _search(self, arguments: Arguments) -> str:
        """Search for the shortest story to a problem; its lines are numbered."""
        check_arguments(arguments, ("problem",), ("deaths", "failovers", "interrupts"))
        problem = arguments["problem"]
        if problem not in PROBLEMS:
            raise ScenarioError(f"no problem {problem!r}; there are: {', '.join(PROBLEMS)}")
        budget = {n: parse_number(n, arguments[n]) for n in arguments if n != "problem"}
        story = find_problem(Node(self._move, **budget), self._readings, PROBLEMS[problem])
        if story is None:
            return "not reachable"
        lines, move = [], self._move
        for number, action in enumerate(story, start=1):
            effect = next_effect(move, self._readings)
            lines.append(f"{number}. {format_action(action, effect)}")
            outcome = step(move, action, self._readings)
            assert not isinstance(outcome, Rejected)  # the search has taken the same step
            move = outcome.state
        return "\n".join([*lines, f"=> {PROBLEMS[problem](move)}"])

    def _shut_down(self, arguments: Arguments) -> str:
        """Say who would take over from brokers that are about to stop."""
        check_arguments(arguments, ("brokers",))
        stopping = frozenset(parse_replicas("brokers", arguments["brokers"]))
        move = self._move
        elected = select_controlled_shutdown(move.assigned, move.isr, move.live, stopping)
        if elected is None:
            return "nobody can take over; the broker keeps leading"
        return f"leader {elected.leader} isr {format_replicas(elected.isr)}"
