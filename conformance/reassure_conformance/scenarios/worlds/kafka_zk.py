"""World `kafka-zk`: what shipped controllers did, effect by effect.

`world kafka-zk brokers=1,2,3 live=1,2` starts brokers, `topic p=1,2 q=2,3` makes healthy partitions
(one that is called `p` need not be named later). `znode p=2,3` writes the old znode, which is
noticed only where it was not there; `alter` calls the programming interface, `cancel` with no
target. `step` lets the controller carry out effects one by one and `run` all it can. `problems`
names what must never be and is; `shortest` searches for the shortest story to such a problem or to
a goal within a number of calls, deaths and failovers. `assign` shows the algebra alone.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import ClassVar, Final

from reassure_conformance.scenarios.worlds import dispatch
from reassure_explorer.engine.walk import find_shortest
from reassure_model.copies import Append
from reassure_model.environment import Controller, Die, Failover, Join, NotPossible, Return
from reassure_model.kafka_zk import (
    GOALS,
    PROBLEMS,
    Action,
    Alter,
    Announce,
    AskDeletion,
    Assignment,
    CutIsr,
    DeleteLog,
    Effect,
    Elect,
    Look,
    Prefer,
    Record,
    RemoveEntry,
    Shipped,
    ShutDown,
    StartReplica,
    WriteEntry,
    enabled,
    make_shipped,
    next_effect,
    reassign_to,
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
from reassure_spec.znodes import NO_LEADER, ReplicaList

ONLY: Final = "p"
"""Name of the partition where a scenario names none."""
LIMIT: Final = 60
"""Effects after which `run` gives up: no plan is that long."""


def format_assignment(assignment: Assignment) -> str:
    """Return the three lists, the last two only where they are not empty."""
    text = f"assigned {format_replicas(assignment.replicas)}"
    if assignment.adding:
        text += f" adding {format_replicas(assignment.adding)}"
    if assignment.removing:
        text += f" removing {format_replicas(assignment.removing)}"
    return text


def _format_leader(shipped: Shipped) -> str:
    who = "nobody" if shipped.leader == NO_LEADER else f"{shipped.leader}"
    return f"leader {who} isr {format_replicas(shipped.isr)} epoch {shipped.leader_epoch}"


def format_effect(effect: Effect, before: Shipped, after: Shipped) -> str:
    """Return an effect as scenarios show it."""
    changed = before.leader_epoch != after.leader_epoch
    outcome = _format_leader(after) if changed else "nothing to write"
    match effect:
        case Record(assignment, at):
            return f"{at}: {format_assignment(assignment)}"
        case CutIsr(replica, at):
            return f"{at}: {replica} out of the in-sync set: {outcome}"
        case DeleteLog(replica, at):
            return f"{at}: {replica} deletes its log"
        case Look():
            return "the in-sync set is read"
        case Announce(at):
            return f"{at}: {outcome}"
        case StartReplica(replica):
            there = "" if replica in before.live else ", which is down"
            return f"A2: start {replica}{there}"
        case Elect(target):
            at = "death" if target is None else "B3"
            return f"{at}: {outcome if changed else 'nobody can be elected'}"
        case RemoveEntry(reached, why):
            gone = before.entry is not None and after.entry is None
            if gone or before.entry is None:
                return f"{why}: entry {'removed' if gone else 'is not there'}"
            kept, done = format_replicas(before.entry), format_replicas(reached or ())
            return f"{why}: entry {kept} stays, {done} was reached"


def format_action(action: Action, before: Shipped, after: Shipped) -> str:
    """Return an action of a story."""
    match action:
        case Controller():
            effect = next_effect(before)
            assert effect is not None  # the controller has just carried it out
            return format_effect(effect, before, after)
        case Join(replica):
            return f"{replica} joins the in-sync set"
        case Die(broker):
            return f"broker {broker} dies"
        case Alter(target):
            return "call: cancel" if target is None else f"call: {format_replicas(target)}"
        case Failover():
            return "the controller fails over"
        case _:
            return type(action).__name__.lower()


def iterate_successors(
    shipped: Shipped, targets: tuple[ReplicaList | None, ...]
) -> Iterator[tuple[Action, Shipped]]:
    """Yield every action and what it leads to, epochs aside; nobody returns."""
    for action in enabled(shipped, targets):
        if isinstance(action, Return):
            continue
        outcome = step(shipped, action)
        if not isinstance(outcome, Rejected):
            yield action, replace(outcome.state, leader_epoch=0)


class Kip455World:
    """Partitions under a shipped controller."""

    name: ClassVar[str] = "kafka-zk"

    def __init__(self, profile: str, readings: Readings, arguments: Arguments) -> None:
        check_arguments(arguments, ("brokers",), ("dead",))
        brokers = frozenset(parse_replicas("brokers", arguments["brokers"]))
        self._live = brokers - frozenset(parse_replicas("dead", arguments.get("dead", "none")))
        self._partitions: dict[str, Shipped] = {}

    def run(self, command: str, arguments: Arguments) -> str:
        """Carry out one command. Raises ScenarioError."""
        handlers = {
            "assign": self._assign,
            "topic": self._create,
            "znode": self._write_znode,
            "alter": self._alter,
            "cancel": self._cancel,
            "delete-topic": lambda a: self._each(a, AskDeletion()),
            "prefer": self._prefer,
            "shut-down": self._shut_down,
            "step": self._step,
            "run": self._run,
            "join": self._join,
            "append": lambda a: self._each(a, Append()),
            "die": lambda a: self._broker(a, Die),
            "return": lambda a: self._broker(a, Return),
            "fail-over": lambda a: self._each(a, Failover()),
            "show": self._show,
            "problems": self._show_problems,
            "shortest": self._search,
        }
        try:
            return dispatch(handlers, command, arguments)
        except NotPossible as error:
            raise ScenarioError(str(error)) from error

    # -- partitions and clients

    def _assign(self, arguments: Arguments) -> str:
        """Show what becomes of a list that is sent to one target after another, with no copying."""
        check_arguments(arguments, ("start", "targets"))
        assignment = Assignment(parse_replicas("start", arguments["start"]))
        lines = []
        for text in arguments["targets"].split("/"):
            assignment = reassign_to(assignment, parse_replicas("targets", text))
            lines.append(format_assignment(assignment))
        original = format_replicas(assignment.original)
        return "\n".join([*lines, f"original {original}"])

    def _create(self, arguments: Arguments) -> str:
        for name, text in arguments.items():
            if text == "missing":
                nothing: frozenset[int] = frozenset()
                self._partitions[name] = Shipped((), NO_LEADER, (), self._live, nothing, nothing)
            else:
                self._partitions[name] = make_shipped(parse_replicas(name, text), self._live)
        return self._show({})

    def _get(self, arguments: Arguments) -> str:
        name = arguments.get("partition", ONLY)
        if name not in self._partitions:
            raise ScenarioError(f"no partition {name!r}; there are: {', '.join(self._partitions)}")
        return name

    def _take(self, name: str, action: Action) -> str:
        outcome = step(self._partitions[name], action)
        if isinstance(outcome, Rejected):
            return f"rejected by {outcome.clause}: {outcome.reason}"
        self._partitions[name] = outcome.state
        return ""

    def _write_znode(self, arguments: Arguments) -> str:
        """Write the whole znode: partitions that are not named are not in it any more."""
        created = all(each.entry is None for each in self._partitions.values())
        for name in self._partitions:
            text = arguments.get(name)
            target = None if text is None else parse_replicas(name, text)
            self._take(name, WriteEntry(target, created and target is not None))
        return ""

    def _alter(self, arguments: Arguments) -> str:
        answers = [
            (name, self._take(name, Alter(parse_replicas(name, text))))
            for name, text in arguments.items()
        ]
        return "\n".join(self._mark(name, answer) for name, answer in answers if answer)

    def _cancel(self, arguments: Arguments) -> str:
        check_arguments(arguments, (), ("partition",))
        return self._take(self._get(arguments), Alter(None))

    def _each(self, arguments: Arguments, action: Action) -> str:
        check_arguments(arguments)
        for name in self._partitions:
            self._take(name, action)
        return ""

    def _broker(self, arguments: Arguments, make: Callable[[int], Action]) -> str:
        check_arguments(arguments, ("broker",))
        for broker in parse_replicas("broker", arguments["broker"]):
            for name in self._partitions:
                self._take(name, make(broker))
        return self._show({})

    def _join(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("replica",), ("partition",))
        name = self._get(arguments)
        for replica in parse_replicas("replica", arguments["replica"]):
            self._take(name, Join(replica))
        return self._mark(name, _format_leader(self._partitions[name]))

    def _prefer(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        answers = [(name, self._take(name, Prefer())) for name in self._partitions]
        return "\n".join([*(self._mark(n, a) for n, a in answers if a), self._show({})])

    def _shut_down(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("broker",), ("others",))
        others = frozenset(parse_replicas("others", arguments.get("others", "none")))
        action = ShutDown(parse_number("broker", arguments["broker"]), others)
        answers = [(name, self._take(name, action)) for name in self._partitions]
        return "\n".join([*(self._mark(n, a) for n, a in answers if a), self._show({})])

    # -- the controller

    def _mark(self, name: str, line: str) -> str:
        return f"{name}: {line}" if len(self._partitions) > 1 else line

    def _effect(self, name: str) -> str | None:
        before = self._partitions[name]
        effect = next_effect(before)
        if effect is None:
            return None
        self._take(name, Controller())
        return self._mark(name, format_effect(effect, before, self._partitions[name]))

    def _step(self, arguments: Arguments) -> str:
        check_arguments(arguments, (), ("times", "partition"))
        name, times = self._get(arguments), parse_number("", arguments.get("times", "1"))
        lines = [self._effect(name) for _ in range(times)]
        return "\n".join(line or "the controller waits" for line in lines)

    def _run(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        lines: list[str] = []
        for name in self._partitions:
            while (line := self._effect(name)) is not None:
                lines.append(line)
                if len(lines) > LIMIT:
                    raise ScenarioError(f"the controller does not come to rest in {LIMIT} effects")
        return "\n".join([*lines, self._show({})] if lines else ["the controller waits"])

    # -- what is to be seen

    def _show(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        lines = []
        for name, shipped in self._partitions.items():
            if not shipped.assigned:
                lines.append(self._mark(name, "assigned []"))
                continue
            entry = "" if shipped.entry is None else f" entry {format_replicas(shipped.entry)}"
            text = f"{format_assignment(shipped.assignment)}; {_format_leader(shipped)}{entry}"
            lines.append(self._mark(name, text))
        return "\n".join(lines)

    def _show_problems(self, arguments: Arguments) -> str:
        check_arguments(arguments, (), ("partition",))
        shipped = self._partitions[self._get(arguments)]
        found = ((name, find(shipped)) for name, find in PROBLEMS.items())
        return "\n".join(f"{name}: {why}" for name, why in found if why) or "none"

    def _search(self, arguments: Arguments) -> str:
        """Search for the shortest story to a problem or a goal; its lines are numbered."""
        check_arguments(
            arguments, (), ("problem", "goal", "calls", "targets", "deaths", "failovers")
        )
        found = _parse_found(arguments)
        counts = {
            n: parse_number(n, arguments.get(n, "0")) for n in ("calls", "deaths", "failovers")
        }
        budget = {Alter: counts["calls"], Die: counts["deaths"], Failover: counts["failovers"]}
        texts = [text for text in arguments.get("targets", "").split("/") if text]
        targets = tuple(None if t == "cancel" else parse_replicas("targets", t) for t in texts)
        state = self._partitions[self._get({})]
        story = find_shortest(
            state, lambda s: iterate_successors(s, targets), lambda s: bool(found(s)), budget
        )
        if story is None:
            return "not reachable"
        lines = []
        for number, action in enumerate(story, start=1):
            outcome = step(state, action)
            assert not isinstance(outcome, Rejected)  # the search has taken the same step
            lines.append(f"{number}. {format_action(action, state, outcome.state)}")
            state = outcome.state
        return "\n".join([*lines, f"=> {found(state)}"])


def _parse_found(arguments: Arguments) -> Callable[[Shipped], str | None]:
    """Return what a search looks for. Raises ScenarioError."""
    if "problem" in arguments and arguments["problem"] in PROBLEMS:
        return PROBLEMS[arguments["problem"]]
    if "goal" in arguments and arguments["goal"] in GOALS:
        reached, name = GOALS[arguments["goal"]], arguments["goal"]
        return lambda shipped: name if reached(shipped) else None
    raise ScenarioError(f"problems: {', '.join(PROBLEMS)}; goals: {', '.join(GOALS)}")
