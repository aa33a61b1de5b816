"""World `kip-236`: partitions, their brokers, clients and a controller, step by step.

Each partition is a `reassure_model.protocols.kip_236.system.System`; brokers, the controller epoch
and the sequence of requests are shared by all. `controller` makes every write that is owed, `step`
only the next one, so that anything can be put in between; `fail-over` replaces the controller.
`remember` and `recall` are a client that tells reassignments apart by the zxids of their records.
The `write-` and `delete-` commands put an arbitrary write to the rules, to see what they say;
`write-state` takes what ZooKeeper says besides of an ordinary act, the writes on requests whether
the topic is to be deleted.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Final

from reassure_conformance.scenarios.worlds import dispatch
from reassure_model.environment import Controller, Die, Failover, Join, Leave, NotPossible, Return
from reassure_model.invariants import INVARIANTS
from reassure_model.outcome import Rejected
from reassure_model.partition import Environment, LeaderAndIsr, Partition, Reassignment
from reassure_model.protocols.kip_236 import (
    Decision,
    Identity,
    NothingToDo,
    Refusal,
    compare_identity,
    decide_request,
    follow_record,
    next_write,
    settle_conflicts,
)
from reassure_model.protocols.kip_236.assignment_rules import compute_drops
from reassure_model.protocols.kip_236.narration import format_write, iterate_lines
from reassure_model.protocols.kip_236.rules import accept_write
from reassure_model.protocols.kip_236.system import Action, Submit, System, step
from reassure_model.writes import (
    ChangeIsr,
    CreateReassignment,
    CreateState,
    DeleteReassignment,
    DeleteRequest,
    UpdateReassignment,
    Write,
    WriteAssigned,
    WriteState,
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
from reassure_spec.znodes import NO_LEADER

ONLY: Final = "p"
"""Name of the partition where a scenario names none."""
WRITES_MAX: Final = 60
"""More writes in one go than this are a loop."""


EVIDENCE: Final = ("preferred-asked", "unclean-allowed", "deleting", "stopping")
"""What may be said of the environment of a write, for ordinary acts."""


def _add_evidence(around: Environment, arguments: Arguments) -> Environment:
    return replace(
        around,
        preferred_asked="preferred-asked" in arguments,
        unclean_allowed="unclean-allowed" in arguments,
        deleting="deleting" in arguments,
        stopping=frozenset(parse_replicas("stopping", arguments.get("stopping", "none"))),
    )


def _format_decision(decision: Decision) -> str:
    if isinstance(decision, Refusal):
        return f"refused by {decision.clause}: {decision.reason}"
    if isinstance(decision, NothingToDo):
        return f"nothing to do by {decision.clause}"
    return type(decision).__name__.lower()


class ReassignmentWorld:
    """Partitions on a few brokers."""

    name: ClassVar[str] = "kip-236"

    def __init__(self, profile: str, readings: Readings, arguments: Arguments) -> None:
        check_arguments(arguments, ("brokers",), ("min.insync.replicas", "known"))
        brokers = frozenset(parse_replicas("brokers", arguments["brokers"]))
        known = brokers | frozenset(parse_replicas("known", arguments.get("known", "none")))
        minimum = parse_number("min.insync.replicas", arguments.get("min.insync.replicas", "1"))
        self._readings: Final = readings
        self._empty = System(Partition(), brokers, known, minimum)
        """Environment of every partition, and a partition that does not exist."""
        self._systems: dict[str, System] = {}
        self._zxid = 0
        self._identities: dict[str, Identity | None] = {}
        self._remembered: dict[str, Identity] = {}

    def run(self, command: str, arguments: Arguments) -> str:
        """Carry out one command. Raises ScenarioError."""
        return dispatch(self._handlers(), command, arguments)

    def _handlers(self) -> dict[str, Callable[[Arguments], str]]:
        return {
            "topic": self._create,
            "submit": self._submit,
            "join": lambda a: self._change_isr(a, Join),
            "leave": lambda a: self._change_isr(a, Leave),
            "die": lambda a: self._for_all(Die(self._broker(a))),
            "return": lambda a: self._for_all(Return(self._broker(a))),
            "fail-over": self._fail_over,
            "set": self._set_minimum,
            "controller": self._write_all,
            "step": self._write_some,
            "owed": self._show_owed,
            "drops": self._show_drops,
            "decide": self._show_decision,
            "decide-all": self._show_decisions,
            "invariants": self._show_invariants,
            "remember": self._remember,
            "recall": self._recall,
            "show": self._show,
            "write-state": self._write_state,
            "write-isr": self._write_isr,
            "write-assigned": self._write_assigned,
            "write-record": self._write_record,
            "delete-record": self._delete_record,
            "delete-request": self._delete_request,
        }

    # -- the partitions

    def _get(self, arguments: Arguments) -> tuple[str, System]:
        name = arguments.get("partition", ONLY)
        return name, self._systems.get(name, self._empty)

    def _describe(self, name: str) -> list[str]:
        system = self._systems.get(name, self._empty)
        many = len(self._systems) > 1
        return [f"{name}: {line}" if many else line for line in iterate_lines(system.partition)]

    def _describe_all(self) -> list[str]:
        lines = [line for name in self._systems for line in self._describe(name)]
        dead = tuple(sorted(self._empty.known - self._empty.live))
        return [*lines, f"dead: {format_replicas(dead)}"] if dead else lines

    def _show(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        return "\n".join(self._describe_all())

    def _create(self, arguments: Arguments) -> str:
        """Make a partition: new, `online`, or with the leader, in-sync set and record given."""
        optional = ("online", "isr", "leader", "target", "top", "partition")
        check_arguments(arguments, ("assigned",), optional)
        name, system = self._get(arguments)
        if system.partition.assigned is not None:
            raise ScenarioError(f"partition {name} exists already")
        partition = self._parse_partition(system, arguments)
        self._systems[name] = replace(system, partition=partition)
        return "\n".join(self._describe(name))

    def _parse_partition(self, system: System, arguments: Arguments) -> Partition:
        assigned = parse_replicas("assigned", arguments["assigned"])
        state = flight = None
        if {"online", "isr", "leader"} & arguments.keys():
            isr = parse_replicas("isr", arguments.get("isr", arguments["assigned"]))
            first = str(isr[0]) if isr else str(NO_LEADER)
            leader = parse_number("leader", arguments.get("leader", first))
            state = LeaderAndIsr(leader, 0, system.controller_epoch, isr)
        if "target" in arguments:
            top = parse_number("top", arguments.get("top", str(len(assigned))))
            flight = Reassignment(parse_replicas("target", arguments["target"]), top)
        return replace(system.partition, assigned=assigned, state=state, reassignment=flight)

    # -- what clients and brokers do

    def _submit(self, arguments: Arguments) -> str:
        """Take `submit target=2,3 [legacy]`, or `submit NAME=2,3 NAME=4` for several partitions."""
        targets = {k: v for k, v in arguments.items() if k not in ("legacy", "partition")}
        if "target" in targets:
            targets = {self._get(arguments)[0]: targets["target"]}
        if not targets:
            raise ScenarioError("no target; write target=2,3 or PARTITION=2,3")
        sequence = self._empty.next_sequence
        for name, text in targets.items():
            action = Submit(parse_replicas(name, text), "legacy" in arguments)
            self._take(name, action)
        self._for_each(lambda system: replace(system, next_sequence=sequence + 1))
        return "\n".join(line for name in targets for line in self._describe(name))

    def _change_isr(self, arguments: Arguments, make: Callable[[int], Action]) -> str:
        check_arguments(arguments, ("replica",), ("partition",))
        name, _ = self._get(arguments)
        lines = []
        for replica in parse_replicas("replica", arguments["replica"]):
            rejected = self._take(name, make(replica))
            lines += [rejected] if rejected else []
        return "\n".join([*lines, *self._describe(name)])

    def _broker(self, arguments: Arguments) -> int:
        check_arguments(arguments, ("broker",))
        return parse_number("broker", arguments["broker"])

    def _for_each(self, change: Callable[[System], System]) -> None:
        self._empty = change(self._empty)
        self._systems = {name: change(system) for name, system in self._systems.items()}

    def _for_all(self, action: Action) -> str:
        def take(system: System) -> System:
            try:
                outcome = step(system, action, self._readings)
            except NotPossible as error:
                raise ScenarioError(str(error)) from error
            assert not isinstance(outcome, Rejected), outcome
            return outcome.state

        self._for_each(take)
        return "\n".join(self._describe_all())

    def _fail_over(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        self._for_all(Failover())
        return f"controller epoch {self._empty.controller_epoch}"

    def _set_minimum(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("min.insync.replicas",))
        minimum = parse_number("min.insync.replicas", arguments["min.insync.replicas"])
        self._for_each(lambda system: replace(system, min_insync_replicas=minimum))
        return f"min.insync.replicas {minimum}"

    def _take(self, name: str, action: Action) -> str:
        """Take an action of one partition; answer why it was rejected, or nothing."""
        system = self._systems.get(name, self._empty)
        try:
            outcome = step(system, action, self._readings)
        except NotPossible as error:
            raise ScenarioError(str(error)) from error
        if isinstance(outcome, Rejected):
            return f"rejected by {outcome.clause}: {outcome.reason}"
        self._store(name, outcome.state)
        return ""

    def _store(self, name: str, after: System) -> None:
        """Keep the new state of a partition; every change is one transaction more."""
        before = self._systems.get(name, self._empty).partition
        self._zxid += 1
        known = self._identities.get(name)
        self._identities[name] = follow_record(known, before, after.partition, self._zxid)
        self._systems[name] = after

    # -- what a client can tell of its reassignment

    def _remember(self, arguments: Arguments) -> str:
        """Let a client read the record in flight and keep its zxids."""
        check_arguments(arguments, (), ("partition",))
        name, _ = self._get(arguments)
        identity = self._identities.get(name)
        if identity is None:
            raise ScenarioError(f"no reassignment of partition {name} is in flight")
        self._remembered[name] = identity
        return ""

    def _recall(self, arguments: Arguments) -> str:
        """Say what has become of the reassignment that the client remembers."""
        check_arguments(arguments, (), ("partition",))
        name, _ = self._get(arguments)
        if name not in self._remembered:
            raise ScenarioError(f"nothing of partition {name} is remembered")
        fate = compare_identity(self._remembered[name], self._identities.get(name))
        return f"it {fate.value}"

    # -- what the controller owes

    def _write_next(self, name: str) -> str | None:
        """Make the next write that is owed to the partition; None when it is at rest."""
        system = self._systems[name]
        owed = next_write(system.partition, system.around, self._readings)
        if owed is None:
            return None
        text = f"{format_write(owed.write, system.partition)} ({owed.clause})"
        if rejected := self._take(name, Controller()):
            text = f"{text}\n{rejected}"
        return f"{name}: {text}" if len(self._systems) > 1 else text

    def _write_all(self, arguments: Arguments) -> str:
        check_arguments(arguments, (), ("partition",))
        names = [arguments["partition"]] if "partition" in arguments else list(self._systems)
        lines = [line for name in names for line in self._write_many(name, WRITES_MAX)]
        return "\n".join([*lines, "at rest"] if lines else ["nothing is owed"])

    def _write_some(self, arguments: Arguments) -> str:
        check_arguments(arguments, (), ("partition", "times"))
        name, _ = self._get(arguments)
        times = parse_number("times", arguments.get("times", "1"))
        return "\n".join(self._write_many(name, times) or ["nothing is owed"])

    def _write_many(self, name: str, most: int) -> list[str]:
        lines: list[str] = []
        while len(lines) < most and (line := self._write_next(name)) is not None:
            lines.append(line)
            if len(lines) == WRITES_MAX:
                raise ScenarioError(f"partition {name} does not come to rest: {lines[-3:]}")
        return lines

    def _show_owed(self, arguments: Arguments) -> str:
        check_arguments(arguments, (), ("partition",))
        _, system = self._get(arguments)
        owed = next_write(system.partition, system.around, self._readings)
        if owed is None:
            return "nothing is owed"
        return f"{format_write(owed.write, system.partition)} ({owed.clause})"

    def _show_drops(self, arguments: Arguments) -> str:
        """List every drop set that the rule allows for the reassignment in flight."""
        check_arguments(arguments, (), ("partition",))
        _, system = self._get(arguments)
        drops = sorted(sorted(d) for d in compute_drops(system.partition, self._readings))
        return "\n".join(format_replicas(tuple(drop)) for drop in drops)

    def _show_decision(self, arguments: Arguments) -> str:
        """Say what the oldest waiting request would come to now."""
        check_arguments(arguments, (), ("partition",))
        _, system = self._get(arguments)
        if not system.partition.requests:
            return "no request waits"
        request = system.partition.requests[0]
        decision = decide_request(request, system.partition, system.around, self._readings)
        return _format_decision(decision)

    def _show_decisions(self, arguments: Arguments) -> str:
        """Say what the oldest waiting request would come to for each partition that it names."""
        check_arguments(arguments)
        heads = {
            n: s.partition.requests[0] for n, s in self._systems.items() if s.partition.requests
        }
        oldest = min((request.sequence for request in heads.values()), default=None)
        names = [name for name, request in heads.items() if request.sequence == oldest]
        alone = []
        for name in names:
            system = self._systems[name]
            alone.append(
                decide_request(heads[name], system.partition, system.around, self._readings)
            )
        settled = settle_conflicts(tuple(alone), self._readings)
        lines = [f"{n}: {_format_decision(d)}" for n, d in zip(names, settled, strict=True)]
        return "\n".join(lines) or "no request waits"

    def _show_invariants(self, arguments: Arguments) -> str:
        check_arguments(arguments, (), ("partition",))
        _, system = self._get(arguments)
        resting = next_write(system.partition, system.around, self._readings) is None
        broken = []
        for invariant in INVARIANTS:
            asked = resting or not invariant.at_rest
            reason = invariant.find(system.partition) if asked else None
            if reason is not None:
                broken.append(f"{invariant.clause} is broken: {reason}")
        return "\n".join(broken) or "all hold"

    # -- writes that nobody asked for

    def _put(self, arguments: Arguments, write: Write) -> str:
        name, system = self._get(arguments)
        around = _add_evidence(system.around, arguments)
        outcome = accept_write(system.partition, write, around, self._readings)
        if isinstance(outcome, Rejected):
            return f"rejected by {outcome.clause}: {outcome.reason}"
        self._store(name, replace(system, partition=outcome.state))
        return "\n".join(["accepted", *self._describe(name)])

    def _online(self, arguments: Arguments) -> LeaderAndIsr:
        name, system = self._get(arguments)
        if system.partition.state is None:
            raise ScenarioError(f"partition {name} is not online")
        return system.partition.state

    def _write_state(self, arguments: Arguments) -> str:
        """Put a controller's write; epochs are those that are due unless they are given."""
        optional = ("leader-epoch", "controller-epoch", "partition")
        check_arguments(arguments, ("leader", "isr"), (*optional, *EVIDENCE))
        _, system = self._get(arguments)
        old = system.partition.state
        due = 0 if old is None else old.leader_epoch + 1
        office = str(system.controller_epoch)
        state = LeaderAndIsr(
            parse_number("leader", arguments["leader"]),
            parse_number("leader-epoch", arguments.get("leader-epoch", str(due))),
            parse_number("controller-epoch", arguments.get("controller-epoch", office)),
            parse_replicas("isr", arguments["isr"]),
        )
        return self._put(arguments, CreateState(state) if old is None else WriteState(state))

    def _write_isr(self, arguments: Arguments) -> str:
        """Put a broker's write of the in-sync set; other arguments are what it writes besides."""
        optional = ("leader", "leader-epoch", "partition")
        check_arguments(arguments, ("writer", "isr"), optional)
        old = self._online(arguments)
        state = replace(
            old,
            isr=parse_replicas("isr", arguments["isr"]),
            leader=parse_number("leader", arguments.get("leader", str(old.leader))),
            leader_epoch=parse_number(
                "leader-epoch", arguments.get("leader-epoch", str(old.leader_epoch))
            ),
        )
        return self._put(arguments, ChangeIsr(state, parse_number("writer", arguments["writer"])))

    def _write_assigned(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("assigned",), ("partition",))
        return self._put(
            arguments, WriteAssigned(parse_replicas("assigned", arguments["assigned"]))
        )

    def _write_record(self, arguments: Arguments) -> str:
        """Make the record of a reassignment, or change the one in flight."""
        check_arguments(arguments, ("target", "top"), ("legacy", "partition", "deleting"))
        flight = Reassignment(
            parse_replicas("target", arguments["target"]),
            parse_number("top", arguments["top"]),
            "legacy" in arguments,
        )
        _, system = self._get(arguments)
        made = system.partition.reassignment is None
        return self._put(
            arguments, CreateReassignment(flight) if made else UpdateReassignment(flight)
        )

    def _delete_record(self, arguments: Arguments) -> str:
        check_arguments(arguments, (), ("partition",))
        name, system = self._get(arguments)
        if system.partition.reassignment is None:
            raise ScenarioError(f"no reassignment of partition {name} is in flight")
        return self._put(arguments, DeleteReassignment())

    def _delete_request(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("sequence",), ("partition", "deleting"))
        name, system = self._get(arguments)
        if not system.partition.requests:
            raise ScenarioError(f"no request for partition {name} waits")
        sequence = parse_number("sequence", arguments["sequence"])
        return self._put(arguments, DeleteRequest(sequence))
