"""What to do, as pure functions from the controller's memory to a tuple of steps.

Nothing here touches ZooKeeper. Every function works on a fork of the context: each step is added
and applied to the fork, so that a later write is made from what the earlier ones will have left.
All of them look at the state they find rather than at what happened before. So the answer to a
version conflict, to an indefinite outcome and to a failover is always the same: read again, plan
again, and the plan that comes out carries on where the old one stopped.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from reassure_controller.context import Context, PartitionContext, apply_step
from reassure_controller.effects import (
    DeleteZnode,
    EnterPhase,
    Phase,
    Recheck,
    SendLeaderAndIsr,
    SendStopReplica,
    Step,
    Warn,
    WriteAssigned,
    WriteState,
)
from reassure_controller.rules import Rules
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER, PartitionKey, ReplicaList, StateZnode

REASONS_SHOWN: Final = 3
"""Of how many partitions a line says why they are refused."""


class Plan:
    """Steps so far and the context as it will be after them."""

    def __init__(self, context: Context, rules: Rules) -> None:
        self.context = context.fork()
        self.readings = rules.readings
        self.rules = rules
        self.steps: list[Step] = []

    def add(self, *steps: Step) -> None:
        """Add steps, each on top of what the ones before will have left."""
        for step in steps:
            self.steps.append(step)
            apply_step(self.context, step)

    def partition(self, key: PartitionKey) -> PartitionContext:
        """Return what there is of a partition after the steps so far."""
        return self.context.partitions[key]

    def live(self, replicas: Iterable[int]) -> ReplicaList:
        """Return those that are registered, in their order."""
        return tuple(replica for replica in replicas if self.context.is_live(replica))

    def enter(self, key: PartitionKey, phase: Phase | None) -> None:
        """Note how far the partition has come, where that is news."""
        if self.partition(key).phase is not phase:
            self.add(EnterPhase(key, phase))

    def write_state(
        self,
        key: PartitionKey,
        point: str,
        *,
        leader: int,
        isr: ReplicaList,
    ) -> None:
        """Add a state write; the leader epoch goes up with every one of them."""
        content = self.partition(key)
        assert content.state is not None
        leader_epoch = content.state.leader_epoch + 1
        state = StateZnode(
            leader=leader,
            leader_epoch=leader_epoch,
            controller_epoch=self.context.epoch,
            isr=isr,
        )
        version = content.state_version
        self.add(WriteState(point=point, key=key, state=state, version=version))

    def write_assigned(
        self, key: PartitionKey, point: str, assigned: ReplicaList, *, guard_state: bool = False
    ) -> None:
        """Add a write of the assignment; `guard_state` makes it conditional on the state too."""
        content = self.partition(key)
        guarded = guard_state and content.state is not None
        self.add(
            WriteAssigned(
                point=point,
                key=key,
                assigned=assigned,
                version=self.context.topic_versions[key[0]],
                state_version=content.state_version if guarded else None,
            )
        )

    def recheck(self, key: PartitionKey) -> None:
        """Where the reading asks for it, look at leader and in-sync set again before a stop."""
        asked = self.readings.move_recheck_before_stop == "yes"
        state = self.partition(key).state
        if asked and state is not None:
            self.recheck_state(key, state.leader)

    def recheck_state(self, key: PartitionKey, leader: int | None = None) -> None:
        """Look at the in-sync set again, and at whether the leader is alive where one is named."""
        self.add(Recheck(key, self.partition(key).state_version, leader))

    def send(
        self,
        key: PartitionKey,
        point: str,
        to: ReplicaList,
        *,
        replicas: ReplicaList | None = None,
        new: Iterable[int] = (),
    ) -> None:
        """Add LeaderAndIsr to the live ones of `to`, when the partition has a state to tell.

        `new` are those that are started without being assigned.
        """
        content = self.partition(key)
        to = self.live(to)
        if content.state is None or not to:
            return
        told = content.hosts if replicas is None else replicas
        self.add(
            SendLeaderAndIsr(
                point=point,
                key=key,
                to=to,
                replicas=told,
                new=content.unstarted.union(new).intersection(to),
            )
        )

    def stop(self, key: PartitionKey, point: str, to: ReplicaList, *, delete: bool) -> None:
        """Add StopReplica to `to`; whom it does not reach is told again (`plan_telling`)."""
        self.add(SendStopReplica(point=point, key=key, to=to, delete=delete))


def shrink(plan: Plan, key: PartitionKey, replica: int, point: str) -> None:
    """Add the write that takes one replica out of the ISR; the last one stays (KAFKA-5083)."""
    state = plan.partition(key).state
    assert state is not None
    isr = tuple(other for other in state.isr if other != replica) or state.isr
    leader = NO_LEADER if state.leader == replica else state.leader
    plan.write_state(key, point, leader=leader, isr=isr)


def find_bad_target(context: Context, target: ReplicaList, readings: Readings) -> str | None:
    """Return what is wrong with the target by itself, or None."""
    if not target:
        return "the target is empty"
    if len(set(target)) < len(target):
        return f"the target {list(target)} names a broker twice"
    if target and min(target) < 0:
        return f"the target {list(target)} has a negative broker id"
    unknown = [broker for broker in target if broker not in context.known_brokers]
    if unknown and readings.target_unknown_broker == "refuse":
        return f"broker {unknown[0]} was never registered"
    dead = [broker for broker in target if not context.is_live(broker)]
    refuses = readings.target_dead_replica == "refuse"
    if dead and refuses:
        return f"broker {dead[0]} is down"
    return None


def warn_refused(path: str, reasons: Mapping[PartitionKey, str], what: str) -> list[Warn]:
    """Return one line about the partitions of a znode that are refused, however many they are.

    >>> [warning] = warn_refused("/r", dict.fromkeys((("t", n) for n in range(9)), "no"), "ignored")
    >>> warning.reason
    'ignored: t-0: no; t-1: no; t-2: no; and 6 partitions more'
    """
    if not reasons:
        return []
    shown = [f"{key[0]}-{key[1]}: {reasons[key]}" for key in sorted(reasons)[:REASONS_SHOWN]]
    more = len(reasons) - len(shown)
    shown += [f"and {more} partitions more"] if more else []
    return [Warn(path, f"{what}: {'; '.join(shown)}")]


def plan_rubbish(rubbish: Iterable[tuple[str, str]]) -> tuple[Step, ...]:
    """Return the steps that remove znodes which are not ours: (path, reason) each."""
    steps: list[Step] = []
    for path, reason in rubbish:
        steps.append(Warn(path, f"{reason}; deleted"))
        steps.append(DeleteZnode(point="admin.foreign-deleted", path=path))
    return tuple(steps)
