"""In-sync sets that leaders ask for: Kafka's AlterIsr, later AlterPartition (KIP-497).

From inter-broker protocol 2.7 on a leader does not write its in-sync set, the controller does for
it, as the leader itself would: both epochs stay. The answer tells the version of the state, which
is the partition epoch.

Source: KIP-497, and `KafkaController.doAlterPartition` of Kafka 3.9, whose errors these are.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from reassure_controller.context import Context
from reassure_controller.effects import Step, WriteState
from reassure_controller.elections import Question
from reassure_controller.plan import Plan
from reassure_controller.rules import Rules
from reassure_spec.znodes import PartitionKey, ReplicaList, StateZnode


class IsrChange(NamedTuple):
    """What the leader of one partition asks for, and from what it decided."""

    key: PartitionKey
    leader_epoch: int
    version: int
    """The version of the state that it knows."""
    isr: ReplicaList


class IsrAnswer(NamedTuple):
    """What the leader is told: why not, "" where it was done, or how the partition stands."""

    error: str
    state: StateZnode | None = None
    version: int = -1


@dataclass(slots=True, eq=False)
class AskedIsr(Question):
    """What one broker asks for of several partitions at once."""

    changes: tuple[IsrChange, ...] = ()
    refused: dict[PartitionKey, str] = field(default_factory=dict)
    answers: tuple[IsrAnswer, ...] = ()
    """One for each change, unless the whole was refused."""


def plan_isr_changes(context: Context, asked: AskedIsr, rules: Rules) -> tuple[Step, ...]:
    """Return the writes that a broker asks for; note in `asked` what is refused."""
    plan = Plan(context, rules)
    asked.refused.clear()
    for change in asked.changes:
        error = find_refusal(context, asked.broker, change)
        if error:
            asked.refused[change.key] = error
            continue
        content = plan.partition(change.key)
        assert content.state is not None
        if {*content.state.isr} != {*change.isr}:
            state = replace(content.state, isr=change.isr)
            version = content.state_version
            plan.add(WriteState(point="isr.altered", key=change.key, state=state, version=version))
    return tuple(plan.steps)


def find_refusal(context: Context, broker: int, change: IsrChange) -> str:
    """Return why a leader does not get the in-sync set that it asks for, "" where it does.

    One that has it already is told so whatever version it knows: its last answer was lost.
    """
    content = context.partitions.get(change.key)
    state = None if content is None else content.state
    if content is None or state is None:
        return "UNKNOWN_TOPIC_OR_PARTITION"
    if change.leader_epoch != state.leader_epoch:
        older = change.leader_epoch < state.leader_epoch
        return "FENCED_LEADER_EPOCH" if older else "NOT_CONTROLLER"
    if state.leader != broker or broker not in change.isr:
        return "INVALID_REQUEST"
    if change.version <= content.state_version and {*change.isr} == {*state.isr}:
        return ""
    if change.version != content.state_version:
        older = change.version < content.state_version
        return "INVALID_UPDATE_VERSION" if older else "NOT_CONTROLLER"
    known = {*content.hosts, *state.isr}  # a leader that was not told yet may name others
    eligible = known & context.brokers.keys() - context.stopping
    return "" if eligible.issuperset(set(change.isr) - {broker}) else "INELIGIBLE_REPLICA"


def list_answers(context: Context, asked: AskedIsr) -> Iterable[IsrAnswer]:
    """Yield the answers to what was asked, once all that is not refused is written."""
    for change in asked.changes:
        content = context.partitions.get(change.key)
        error = asked.refused.get(change.key, "")
        if error or content is None:
            yield IsrAnswer(error or "UNKNOWN_TOPIC_OR_PARTITION")
        else:
            yield IsrAnswer("", content.state, content.state_version)
