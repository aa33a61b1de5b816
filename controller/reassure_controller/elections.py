"""Elections that somebody asks for: preferred leaders, and the handover of a broker that stops.

A client asks for preferred leaders by `/admin/preferred_replica_election`. Of each partition that
it names the first assigned replica is elected, where it is alive and in sync; then the znode goes,
whatever came of it.

A broker that is about to stop tells the controller so (Kafka's ControlledShutdown). What it leads
is handed over to the first assigned replica that is alive, in sync and does not stop itself; where
there is none it keeps leading. Its other replicas are stopped and leave the in-sync sets. The
answer names what it still leads. Nothing of it is written down: a broker whose controller has died
asks the next one.

Source: Kafka's preferred replica election and controlled shutdown.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from reassure_controller.context import Context
from reassure_controller.effects import EndPreferred, Step, Warn
from reassure_controller.plan import Plan, shrink
from reassure_controller.rules import Rules
from reassure_spec.znodes import PREFERRED_ELECTION, PartitionKey, ReplicaList

NOT_CONTROLLER: Final = "NOT_CONTROLLER"
"""The answer of one that is not in office: another one is to be asked."""


def plan_preferred(context: Context, rules: Rules) -> tuple[Step, ...]:
    """Return the steps that answer whoever asks for preferred leaders."""
    asked = context.preferred
    if asked is None:
        return ()
    plan = Plan(context, rules)
    if asked.bad:
        plan.add(Warn(PREFERRED_ELECTION, f"{asked.bad}; deleted"))
    for key in sorted(asked.partitions & context.partitions.keys()):
        if not context.is_ending(key[0]):
            _elect_preferred(plan, key)
    return (*plan.steps, EndPreferred(point="preferred.ended", version=asked.version))


def plan_rebalancing(context: Context, rules: Rules) -> tuple[Step, ...]:
    """Return the steps that give preferred leaders back though nobody asks, where that is read so.

    A partition that is being reassigned, or whose topic is to be deleted, is left alone. Kafka does
    it every few minutes for brokers that lead much less than they should; here it is done when
    there is nothing else to do.
    """
    if not rules.rebalances:
        return ()
    plan = Plan(context, rules)
    for key in sorted(context.partitions):
        if context.partitions[key].child is None and key[0] not in context.deletions:
            _elect_preferred(plan, key)
    return tuple(plan.steps)


def _elect_preferred(plan: Plan, key: PartitionKey) -> None:
    content = plan.partition(key)
    state = content.state
    if state is None:
        return
    preferred = content.assigned[0]
    in_sync = preferred in state.isr
    stays = plan.context.is_live(preferred) and preferred not in plan.context.stopping
    if preferred == state.leader or not in_sync or not stays:
        return
    plan.write_state(key, "preferred.leader-elected", leader=preferred, isr=state.isr)
    plan.send(key, "preferred.state-sent", content.assigned)


# Brokers that stop --------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Question:
    """What a broker asks of the controller, and the answer once there is one."""

    broker: int
    broker_epoch: int
    """Which life of the broker asks."""
    error: str = ""
    """Why it was refused as a whole, "" where it was not."""
    answered: threading.Event = field(default_factory=threading.Event)

    def answer(self, error: str = "") -> None:
        """Give the answer, once."""
        self.error = error
        self.answered.set()


QuestionOf = TypeVar("QuestionOf", bound=Question)


@dataclass(slots=True, eq=False)
class Shutdown(Question):
    """What a broker asks that is about to stop."""

    remaining: tuple[PartitionKey, ...] = ()
    """What it still leads."""


def find_unheard(context: Context, asked: Question) -> str:
    """Return why a broker is not heard: it is not there, or an earlier life of it asks; else ""."""
    broker = context.brokers.get(asked.broker)
    if broker is None:
        return "BROKER_NOT_AVAILABLE" if isinstance(asked, Shutdown) else "STALE_BROKER_EPOCH"
    return "" if broker.epoch == asked.broker_epoch else "STALE_BROKER_EPOCH"


def plan_shutdown(
    context: Context, broker: int, keys: Iterable[PartitionKey], rules: Rules
) -> tuple[Step, ...]:
    """Return the steps that let a broker stop; `keys` are the partitions with replicas there."""
    plan = Plan(context, rules)
    for key in _list_shared(context, keys):
        state = plan.partition(key).state
        assert state is not None
        if state.leader == broker:
            _hand_over(plan, key)
        else:
            _stop_follower(plan, key, broker)
    return tuple(plan.steps)


def list_remaining(
    context: Context, broker: int, keys: Iterable[PartitionKey]
) -> tuple[PartitionKey, ...]:
    """Return the partitions that a broker still leads though they have other replicas."""
    contents = ((key, context.partitions[key].state) for key in _list_shared(context, keys))
    return tuple(key for key, state in contents if state is not None and state.leader == broker)


def _list_shared(context: Context, keys: Iterable[PartitionKey]) -> list[PartitionKey]:
    """Return those that were online, have several replicas and are not about to be deleted."""
    contents = ((key, context.partitions[key]) for key in sorted(keys))
    return [
        key
        for key, content in contents
        if content.state is not None and len(content.assigned) > 1 and not context.is_ending(key[0])
    ]


def _hand_over(plan: Plan, key: PartitionKey) -> None:
    content = plan.partition(key)
    state, stopping = content.state, plan.context.stopping
    if state is None:
        return
    left: ReplicaList = tuple(one for one in state.isr if one not in stopping)
    chosen = next((one for one in plan.live(content.assigned) if one in left), None)
    if chosen is None:
        return
    plan.write_state(key, "shutdown.leader-moved", leader=chosen, isr=left)
    plan.send(key, "shutdown.state-sent", content.assigned)


def _stop_follower(plan: Plan, key: PartitionKey, broker: int) -> None:
    plan.stop(key, "shutdown.replica-stopped", (broker,), delete=False)
    content = plan.partition(key)
    state = content.state
    if state is None or broker not in state.isr or state.isr == (broker,):
        return
    shrink(plan, key, broker, "shutdown.isr-shrunk")
    rest = tuple(one for one in content.assigned if one != broker)
    plan.send(key, "shutdown.state-sent", rest, replicas=content.assigned)
