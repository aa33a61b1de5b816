"""World `kip-236`, live: the same commands, carried out on a real controller.

The model's world keeps its vocabulary and its words. Here it takes no step of its own: what it
shows is what ZooKeeper holds, and what it is asked to do is done by clients, brokers and the
controller of a `Stage`.
"""

from dataclasses import replace
from typing import ClassVar, Final

from reassure_conformance.adapter import Reply
from reassure_conformance.adapter.bundled import find_unsupported
from reassure_conformance.gate.steps import BadStep, parse_partition
from reassure_conformance.protocols.kip_236.staged_requests import (
    Writes,
    change_isr,
    create_partition,
    forge,
    read_partition,
    refuse_to_go_on,
    submit,
)
from reassure_conformance.protocols.kip_236.world import (
    EVIDENCE,
    ONLY,
    WRITES_MAX,
    ReassignmentWorld,
)
from reassure_conformance.scenarios.live.stage import Done, MakeStage, NotLive, Stage
from reassure_conformance.scenarios.scenario import Scenario
from reassure_model.environment import Join, Leave
from reassure_model.partition import Partition
from reassure_model.protocols.kip_236 import apply_failover
from reassure_model.protocols.kip_236.system import Action, System
from reassure_model.writes import ChangeIsr, CreateState, Write, WriteState
from reassure_spec import znodes
from reassure_spec.readings import Readings
from reassure_spec.words import (
    Arguments,
    ScenarioError,
    check_arguments,
    parse_number,
    parse_replicas,
)
from reassure_spec.znodes import PartitionKey

_WORK: Final = ("controller", "step")
_TOLD: Final = frozenset({"preferred-asked", "deleting"})
"""What is said of the environment of a write and a client can say by a znode."""


def parse_key(name: str) -> PartitionKey:
    """Return the partition of this name; one that names no number is number 0.

    >>> parse_key("orders-1"), parse_key("p")
    (('orders', 1), ('p', 0))
    """
    try:
        return parse_partition(name)
    except BadStep:
        return name, 0


def list_evidence(key: PartitionKey) -> tuple[tuple[str, str, bytes], ...]:
    """Return what is said of the environment of a write with the znode that a client says it by."""
    return (
        ("preferred-asked", znodes.PREFERRED_ELECTION, znodes.encode_preferred_election([key])),
        ("deleting", znodes.deleted_topic_path(key[0]), b""),
    )


class LiveReassignmentWorld(ReassignmentWorld):
    """Partitions on a few real brokers."""

    name: ClassVar[str] = "reassignment (live)"

    def __init__(
        self, stage: Stage, profile: str, readings: Readings, arguments: Arguments
    ) -> None:
        super().__init__(profile, readings, arguments)
        self.stage: Final = stage
        self._minimum = self._empty.min_insync_replicas
        self._keys: dict[str, PartitionKey] = {}
        self._writes: Final = Writes(stage)
        self._ahead: list[tuple[str, str]] = []
        """Lines of what was done already, of which nothing has been told yet."""
        dead = sorted(self._empty.known - self._empty.live)
        stage.begin(tuple(sorted(self._empty.live)), dead)
        self._look()

    def run(self, command: str, arguments: Arguments) -> str:
        """Carry out one command; what cannot be done is said in the output."""
        try:
            return super().run(command, arguments)
        except ScenarioError as error:
            return f"cannot: {error}"

    # -- from ZooKeeper to what is shown

    def _look(self) -> None:
        """Take over what ZooKeeper holds."""
        live, known = self.stage.read_brokers()
        self._empty = System(
            Partition(), live, known, self._minimum, self.stage.controller_epoch, next_sequence=0
        )
        for name, key in self._keys.items():
            stored, self._identities[name] = read_partition(self.stage, key)
            partition = self._writes.recall(key, stored)
            self._systems[name] = replace(self._empty, partition=partition)

    # -- what clients and brokers do

    def _create(self, arguments: Arguments) -> str:
        check_arguments(
            arguments, ("assigned",), ("online", "isr", "leader", "target", "top", "partition")
        )
        name, system = self._get(arguments)
        if system.partition.assigned is not None:
            raise ScenarioError(f"partition {name} exists already")
        partition = self._parse_partition(system, arguments)
        if apply_failover(partition, self._readings).drop_due:
            reason = "a start that every controller takes for the middle of a change"
            raise NotLive(reason, str(partition.reassignment))
        key = self._keys[name] = parse_key(name)
        given = partition.state is not None or partition.reassignment is not None
        create_partition(self.stage, key, partition, self._minimum, given=given)
        self._look()
        return "\n".join(self._describe(name))

    def _submit(self, arguments: Arguments) -> str:
        targets = {k: v for k, v in arguments.items() if k not in ("legacy", "partition")}
        if "target" in targets:
            targets = {self._get(arguments)[0]: targets["target"]}
        if not targets:
            raise ScenarioError("no target; write target=2,3 or PARTITION=2,3")
        self._keys |= {name: parse_key(name) for name in targets}
        asked = {parse_key(name): parse_replicas(name, text) for name, text in targets.items()}
        submit(self.stage, asked, legacy="legacy" in arguments)
        self._look()
        return "\n".join(line for name in targets for line in self._describe(name))

    def _take(self, name: str, action: Action) -> str:
        """Have the leader change the in-sync set; where it refuses, say by which rule."""
        assert isinstance(action, Join | Leave)
        if change_isr(self.stage, parse_key(name), action):
            self._look()
            return ""
        before = self._systems[name]
        rejected = super()._take(name, action)
        self._systems[name] = before
        return rejected or refuse_to_go_on(action)

    def _for_all(self, action: Action) -> str:
        reply = self.stage.act(action)
        if reply is not Reply.OK:
            raise ScenarioError(f"{action}: the implementation answers {reply.value}")
        self._look()
        return "\n".join(self._describe_all())

    def _set_minimum(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("min.insync.replicas",))
        text = arguments["min.insync.replicas"]
        self._minimum = parse_number("min.insync.replicas", text)
        self.stage.set_min_insync({topic for topic, _ in self._keys.values()}, self._minimum)
        self._look()
        return f"min.insync.replicas {self._minimum}"

    def _put(self, arguments: Arguments, write: Write) -> str:
        """Make a write that nobody asked for and say what the judge says of it."""
        name, _ = self._get(arguments)
        key = parse_key(name)
        for said, path, content in list_evidence(key):
            self.stage.keep(path, content if said in arguments else None)
        if isinstance(write, WriteState | CreateState | ChangeIsr):
            epoch = write.state.leader_epoch + self._writes.count_raises(key)
            write = replace(write, state=replace(write.state, leader_epoch=epoch))
        broken = forge(self.stage, key, write)
        self._look()
        if broken is not None:
            return f"rejected by {broken.clause}: {broken.reason}"
        return "\n".join(["accepted", *self._describe(name)])

    # -- what the controller does

    def _take_done(self, done: list[Done]) -> list[tuple[str, str]]:
        """Return the lines of what was done, each with its partition."""
        lines = [self._make_line(key, text) for key, text in self._writes.tell(done)]
        lines, self._ahead = [*self._ahead, *lines], []
        return lines

    def _make_line(self, key: PartitionKey, text: str) -> tuple[str, str]:
        name = next((name for name, of in self._keys.items() if of == key), "?")
        return name, f"{name}: {text}" if len(self._systems) > 1 else text

    def _write_all(self, arguments: Arguments) -> str:
        check_arguments(arguments, (), ("partition",))
        done, quiet = self.stage.work(None)
        found = self._take_done(done)
        self._look()
        lines = [text for name in self._keys for of, text in found if of == name]
        if not quiet:
            return "\n".join([*lines, "not at rest when the time was up"])
        return "\n".join([*lines, "at rest"] if lines else ["nothing is owed"])

    def _write_some(self, arguments: Arguments) -> str:
        check_arguments(arguments, (), ("partition", "times"))
        times = parse_number("times", arguments.get("times", "1"))
        lines = self._take_done([])
        for _ in range(WRITES_MAX * times):
            if len(lines) >= times:
                break
            done, quiet = self.stage.work(1)
            lines += self._take_done(done)
            if quiet:
                break
        lines, self._ahead = lines[:times], lines[times:]
        self._look()
        return "\n".join([text for _, text in lines] or ["nothing is owed"])


def make_world(
    make_stage: MakeStage, profile: str, readings: Readings, arguments: Arguments
) -> LiveReassignmentWorld:
    """Return the world on a cluster of its own."""
    return LiveReassignmentWorld(make_stage(), profile, readings, arguments)


def find_reason(scenario: Scenario) -> str:
    """Return why a scenario of the world cannot be told live, "" where it can."""
    unsupported = find_unsupported(scenario.readings)
    if unsupported:
        return unsupported
    names = {b.arguments.get("partition", ONLY) for b in scenario.blocks if b.command == "topic"}
    foreign = False
    for block in scenario.blocks:
        alone = block.command == "step" or "partition" in block.arguments
        if len(names) > 1 and block.command in _WORK and alone:
            return "the controller is to work on one partition of several"
        if set(block.arguments) & set(EVIDENCE) - _TOLD:
            return "what is said of the environment stands in no znode"
        if foreign and block.command in _WORK:
            return "the controller is to go on from a record that it did not write"
        if block.command == "fail-over":
            foreign = False
        elif block.command == "write-record":
            foreign = foreign or (block.expected or ())[:1] == ("accepted",)
    return ""
