"""World `kip-236-legacy`, live: the old znode before a real controller.

Clients write the old znode and the queue, brokers change in-sync sets, and what a controller did is
read in the log: its writes to partitions as in `kip_236`, and what it makes of the old znode.
"""

from dataclasses import replace
from typing import Any, Final, NamedTuple

from reassure_conformance.adapter.bundled import find_unsupported
from reassure_conformance.protocols.kip_236.staged_requests import (
    Writes,
    change_isr,
    create_partition,
    read_partition,
    refuse_to_go_on,
    submit,
)
from reassure_conformance.scenarios.live.machine import LiveMachineWorld, judge_line
from reassure_conformance.scenarios.live.stage import Done, MakeStage, Stage
from reassure_conformance.scenarios.scenario import Scenario
from reassure_judge.cross_partition import QueueWritten
from reassure_judge.history import SeenWrite
from reassure_judge.protocols.kip_236_legacy import OldZnodeWritten
from reassure_model.environment import Failover, Join, Leave, On
from reassure_model.outcome import Accepted
from reassure_model.partition import spell_key
from reassure_model.protocols.kip_236 import next_write
from reassure_model.protocols.kip_236_legacy import (
    Action,
    Ask,
    DeleteLegacy,
    Effect,
    Entries,
    Legacy,
    RewriteZnode,
    Translate,
    WriteLegacy,
    apply_effect,
    next_for_znode,
    remove_completed,
    step,
)
from reassure_model.protocols.kip_236_legacy.machine import MACHINE
from reassure_model.protocols.kip_236_legacy.narration import say_effect
from reassure_spec.readings import Readings
from reassure_spec.words import Arguments
from reassure_spec.znodes import (
    REASSIGN_PARTITIONS,
    BadZnode,
    PartitionKey,
    decode_reassign_partitions,
    encode_reassign_partitions,
)


class _AtZnode(NamedTuple):
    """What a controller did to the old znode."""

    text: str
    broken: str
    """The clause that it breaks, "" where it breaks none."""
    owed: bool


class LiveLegacyWorld(LiveMachineWorld):
    """Partitions on a few real brokers, and the old znode."""

    def __init__(
        self, stage: Stage, profile: str, readings: Readings, arguments: Arguments
    ) -> None:
        self._writes: Final = Writes(stage)
        self._content: bytes | None = None
        """What the command at hand writes to the old znode as it stands, None for entries."""
        self._heard: list[Done | _AtZnode] = []
        super().__init__(stage, MACHINE, profile, readings, arguments)
        self._old: Final = _OldZnode(stage, readings, self._blank)

    def run(self, command: str, arguments: Arguments) -> str:
        """Carry out one command."""
        content = arguments.get("content")
        self._content = None if content is None else content.encode()
        return super().run(command, arguments)

    # -- what clients and brokers do

    def _add_partitions(self, before: Legacy, after: Legacy) -> None:
        for key, partition in after.partitions:
            if key not in dict(before.partitions):
                minimum = after.min_insync_replicas
                create_partition(self.stage, key, partition, minimum, given=False)
                self._old.legacy = self._old.legacy.having(key, partition)

    def _do(self, action: Any) -> str:
        match action:
            case WriteLegacy(entries):
                content = self._content
                if content is None:
                    content = encode_reassign_partitions(entries)
                self.stage.put([(REASSIGN_PARTITIONS, content)], given=False)
            case DeleteLegacy():
                self.stage.keep(REASSIGN_PARTITIONS, None)
            case Ask(assignments, legacy):
                # A client that says so breaks a rule; the story is about what becomes of it.
                submit(self.stage, dict(assignments), legacy=legacy, given=legacy)
            case On(key, (Join() | Leave()) as change):
                return self._change_isr(key, change)
            case Failover():
                self._old.forget()
                return super()._do(action)
            case _:
                return super()._do(action)
        return ""

    def _change_isr(self, key: PartitionKey, change: Join | Leave) -> str:
        """Have the leader change the in-sync set; where it refuses, say by which rule."""
        (before,) = self._states.values()
        if change_isr(self.stage, key, change):
            return ""
        outcome = step(before, On(key, change), self._readings)
        if isinstance(outcome, Accepted):
            refuse_to_go_on(change)
        return f"rejected by {outcome.clause}: {outcome.reason}"

    # -- what there is

    def _look_at(self, state: Legacy) -> Legacy:
        live, known = self.stage.read_brokers()
        followed, content = self._old.legacy, self.stage.fetch(REASSIGN_PARTITIONS)
        keys = {*dict(state.partitions), *dict(followed.partitions)}
        partitions = (
            (key, self._writes.recall(key, read_partition(self.stage, key)[0]))
            for key in sorted(keys)
        )
        entries = None
        if content is not None:
            try:
                entries = decode_reassign_partitions(REASSIGN_PARTITIONS, content)
            except BadZnode:
                entries = ()
        return replace(
            state,
            partitions=tuple(partitions),
            live=live,
            known=known,
            controller_epoch=self.stage.controller_epoch,
            next_sequence=followed.next_sequence,
            entries=entries,
            seen=followed.seen,
        )

    # -- what the controller does

    def _hear(self, seen: SeenWrite, done: Done | None, broken: str) -> None:
        if done is not None:
            self._heard.append(done)
            return
        found = self._old.follow(seen)
        if found is not None:
            text, owed = found
            self._heard.append(_AtZnode(text, broken, owed))

    def _take_lines(self) -> list[str]:
        """Return lines: between two of the old znode, those of one partition after another."""
        heard, self._heard = self._heard, []
        lines: list[str] = []
        done: list[Done] = []
        for one in (*heard, None):
            if isinstance(one, Done):
                done.append(one)
                continue
            told = sorted(self._writes.tell(done), key=lambda each: each[0])
            lines += [f"{spell_key(key)}: {text}" for key, text in told]
            done = []
            if one is not None:
                lines.append(judge_line(self.stage, one.text, one.broken, owed=one.owed))
        return lines


class _OldZnode:
    """The old znode, and what the acting controller has made of it, as the log has it."""

    def __init__(self, stage: Stage, readings: Readings, blank: Legacy) -> None:
        self._stage = stage
        self._readings = readings
        self.legacy = blank

    def forget(self) -> None:
        """Note that another controller acts."""
        self.legacy = replace(self.legacy, seen=None)

    def follow(self, seen: SeenWrite) -> tuple[str, bool] | None:
        """Take over an observation; return what a controller did, and whether that was owed."""
        keys = dict(self.legacy.partitions)
        self.legacy = replace(
            self.legacy,
            partitions=tuple((key, self._stage.partition(key)) for key in keys),
            live=seen.around.live,
            known=seen.around.known,
        )
        by_client = seen.given or seen.author.is_client
        match seen.event:
            case OldZnodeWritten(None) if by_client:
                self._take(DeleteLegacy())
            case OldZnodeWritten(entries) if by_client and entries is not None:
                self._take(WriteLegacy(entries))
            case OldZnodeWritten(entries):
                return self._judge(self._find_rewrite(entries or ()))
            case QueueWritten(sequence, request) if request is not None:
                self.legacy = replace(self.legacy, next_sequence=sequence)
                asked = request.assignments
                if by_client:
                    self._take(Ask(tuple(asked.items())))
                else:
                    entries = self.legacy.entries or ()
                    return self._judge(
                        Translate(tuple(e for e in entries if asked.get(e.key) == e.target))
                    )
        return None

    def _take(self, action: Action) -> None:
        outcome = step(self.legacy, action, self._readings)
        assert isinstance(outcome, Accepted)  # clients may write what they like
        self.legacy = outcome.state

    def _judge(self, effect: Effect) -> tuple[str, bool]:
        """Take over what a controller did; return it in words, and whether it was owed."""
        before, owed = self.legacy, effect in self._list_owed()
        outcome = apply_effect(before, effect, self._readings)
        assert isinstance(outcome, Accepted)  # only writes to partitions are put to the rules
        self.legacy = outcome.state
        return say_effect(effect, before, self.legacy), owed

    def _list_owed(self) -> list[Effect]:
        """Return what the old znode is owed, whichever partition a controller turns to first."""
        legacy, readings = self.legacy, self._readings
        owed = [next_for_znode(legacy, readings)]
        for key, partition in legacy.partitions:
            due = next_write(partition, legacy.as_system(key).around, readings)
            if due is not None:
                owed.append(remove_completed(legacy, key, due))
        return [effect for effect in owed if effect is not None]

    def _find_rewrite(self, left: Entries) -> RewriteZnode:
        """Return the rewriting that leaves these entries, with its reason where it is owed."""
        for owed in self._list_owed():
            if isinstance(owed, RewriteZnode) and owed.entries == left:
                return owed
        return RewriteZnode(left, "")


def make_world(
    make_stage: MakeStage, profile: str, readings: Readings, arguments: Arguments
) -> LiveLegacyWorld:
    """Return the world on a cluster of its own."""
    return LiveLegacyWorld(make_stage(), profile, readings, arguments)


def find_reason(scenario: Scenario) -> str:
    """Return why a scenario of the world cannot be told live, "" where it can."""
    return find_unsupported(scenario.readings)
