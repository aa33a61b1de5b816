"""World `kip-236-legacy`: the old znode in front of the request protocol, and failover.

`world kip-236-legacy brokers=1,2,3` is a cluster; `partition name=t-0 assigned=1,2` adds a
partition, which the controller brings online. `write entries="t-0:2,3 t-1:1,3"` writes the old
znode (`t-0:2,3<1,2` with original replicas), or `write content=...` what stands in it; `ask`
creates a request of the new protocol. `run` lets the controller carry out all it owes and `step` so
many effects.
"""

from collections.abc import Iterator
from typing import ClassVar, Final

from reassure_conformance.scenarios.worlds import dispatch, run_to_rest
from reassure_conformance.scenarios.worlds.kip_236 import format_partition, format_write
from reassure_model.environment import Controller, Die, Failover, Join, Leave, NotPossible, Return
from reassure_model.kip_236.batch import On, WriteOwed
from reassure_model.kip_236.state import Partition
from reassure_model.kip_236_legacy import (
    Action,
    Ask,
    DeleteLegacy,
    Effect,
    Entries,
    Legacy,
    Translate,
    WriteLegacy,
    compute_rollback,
    make_legacy,
    next_effect,
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
from reassure_spec.znodes import (
    REASSIGN_PARTITIONS,
    BadZnode,
    LegacyEntry,
    PartitionKey,
    decode_reassign_partitions,
    encode_reassign_partitions,
)

LIMIT: Final = 80
"""Effects after which `run` gives up."""


def parse_key(text: str) -> PartitionKey:
    """Return the partition in `topic-number`. Raises ScenarioError."""
    topic, dash, number = text.rpartition("-")
    if not dash:
        raise ScenarioError(f"{text!r} is no partition; write topic-number")
    return topic, parse_number("partition", number)


def parse_entries(text: str) -> Entries:
    """Return the entries in `t-0:2,3 t-1:1,3<1,2`. Raises ScenarioError.

    >>> parse_entries("t-0:2,3<1,2")
    (LegacyEntry(key=('t', 0), target=(2, 3), original=(1, 2)),)
    """
    entries = []
    for word in text.split():
        name, colon, lists = word.partition(":")
        if not colon:
            raise ScenarioError(f"{word!r}: write partition:target or partition:target<original")
        target, less, original = lists.partition("<")
        before = parse_replicas("original", original) if less else None
        entries.append(LegacyEntry(parse_key(name), parse_replicas("target", target), before))
    return tuple(entries)


def format_entries(entries: Entries) -> str:
    """Return entries as scenarios show them."""
    words = []
    for entry in entries:
        original = "" if entry.original is None else f" from {format_replicas(entry.original)}"
        words.append(f"{entry.key[0]}-{entry.key[1]} to {format_replicas(entry.target)}{original}")
    return ", ".join(words) or "no entry"


def format_effect(effect: Effect, legacy: Legacy) -> str:
    """Return an effect as scenarios show it; `legacy` is the state before it."""
    match effect:
        case WriteOwed((topic, number), owed):
            text = format_write(owed.write, legacy.get((topic, number)))
            return f"{topic}-{number}: {text} ({owed.clause})"
        case Translate(entries):
            return f"request {legacy.next_sequence} made, legacy: {format_entries(entries)}"
    if effect.entries:
        return f"old znode: {format_entries(effect.entries)} ({effect.why})"
    return f"old znode deleted ({effect.why})"


class LegacyWorld:
    """Several partitions and the old znode."""

    name: ClassVar[str] = "kip-236-legacy"

    def __init__(self, profile: str, readings: Readings, arguments: Arguments) -> None:
        check_arguments(arguments, ("brokers",), ("min.insync.replicas",))
        brokers = frozenset(parse_replicas("brokers", arguments["brokers"]))
        minimum = parse_number("min", arguments.get("min.insync.replicas", "1"))
        self._legacy = make_legacy({}, brokers, min_insync_replicas=minimum)
        self._readings: Final = readings

    def run(self, command: str, arguments: Arguments) -> str:
        """Carry out one command. Raises ScenarioError."""
        handlers = {
            "partition": self._add_partition,
            "write": self._write,
            "delete": lambda a: self._take(a, DeleteLegacy()),
            "ask": self._ask,
            "join": lambda a: self._change_isr(a, Join),
            "leave": lambda a: self._change_isr(a, Leave),
            "die": lambda a: self._each(a, Die),
            "return": lambda a: self._each(a, Return),
            "fail-over": lambda a: self._take(a, Failover()),
            "run": self._run,
            "step": self._step,
            "show": self._show,
            "rollback": self._rollback,
        }
        try:
            return dispatch(handlers, command, arguments)
        except NotPossible as error:
            raise ScenarioError(str(error)) from error

    def _take(self, arguments: Arguments, action: Action) -> str:
        check_arguments(arguments)
        return self._go(action)

    def _go(self, action: Action) -> str:
        outcome = step(self._legacy, action, self._readings)
        if isinstance(outcome, Rejected):
            return f"rejected by {outcome.clause}: {outcome.reason}"
        self._legacy = outcome.state
        return ""

    def _add_partition(self, arguments: Arguments) -> str:
        """Add a partition and let the controller bring it online."""
        check_arguments(arguments, ("name", "assigned"))
        assigned = parse_replicas("assigned", arguments["assigned"])
        self._legacy = self._legacy.having(parse_key(arguments["name"]), Partition(assigned))
        return self._effect() or ""

    def _write(self, arguments: Arguments) -> str:
        check_arguments(arguments, (), ("entries", "content"))
        if "content" not in arguments:
            return self._go(WriteLegacy(parse_entries(arguments.get("entries", ""))))
        try:
            content = arguments["content"].encode()
            return self._go(WriteLegacy(decode_reassign_partitions(REASSIGN_PARTITIONS, content)))
        except BadZnode as error:
            self._go(WriteLegacy(()))
            return f"warning by legacy.znode.malformed: {error.reason}"

    def _ask(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("entries",), ("legacy",))
        wanted = tuple((e.key, e.target) for e in parse_entries(arguments["entries"]))
        sequence = self._legacy.next_sequence
        return self._go(Ask(wanted, "legacy" in arguments)) or f"request {sequence} is pending"

    def _change_isr(self, arguments: Arguments, make: type[Join | Leave]) -> str:
        check_arguments(arguments, ("partition", "replica"))
        key = parse_key(arguments["partition"])
        lines = [
            self._go(On(key, make(replica)))
            for replica in parse_replicas("replica", arguments["replica"])
        ]
        return "\n".join(line for line in lines if line)

    def _each(self, arguments: Arguments, make: type[Die | Return]) -> str:
        check_arguments(arguments, ("broker",))
        for broker in parse_replicas("broker", arguments["broker"]):
            self._go(make(broker))
        return ""

    def _effect(self) -> str | None:
        effect = next_effect(self._legacy, self._readings)
        if effect is None:
            return None
        line = format_effect(effect, self._legacy)
        rejected = self._go(Controller())
        return f"{line}\n{rejected}" if rejected else line

    def _step(self, arguments: Arguments) -> str:
        check_arguments(arguments, (), ("times",))
        times = parse_number("times", arguments.get("times", "1"))
        return "\n".join(self._effect() or "the controller waits" for _ in range(times))

    def _run(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        return "\n".join(run_to_rest(self._effect, LIMIT)) or "the controller waits"

    def _show(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        return "\n".join(self._describe())

    def _describe(self) -> Iterator[str]:
        for (topic, number), partition in self._legacy.partitions:
            for line in format_partition(partition):
                yield f"{topic}-{number}: {line}"
        entries = self._legacy.entries
        yield "no old znode" if entries is None else f"old znode: {format_entries(entries)}"

    def _rollback(self, arguments: Arguments) -> str:
        """Say what a client has to write to go back, from what stands in the old znode."""
        check_arguments(arguments)
        back, without = compute_rollback(self._legacy.entries or ())
        lines = [encode_reassign_partitions(back).decode()] if back else []
        lines += [f"{topic}-{number} has no original replicas" for topic, number in without]
        return "\n".join(lines) or "the old znode has no entry"
