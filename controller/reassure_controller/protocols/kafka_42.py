"""The first reassignment, in seven steps from the old znode, kept in memory alone (KAFKA-42).

A command writes the targets under `/admin/reassign_partitions`. The listener takes each of them
into memory or refuses it; what follows is what a record would set going under KIP-236 as well, but
that nothing records it. So the entry goes last, and the next controller begins again with whatever
the znode still names.

    1  take the target into memory, then watch the in-sync set: `RememberMove`
    2  start the replicas that are not assigned
    3  wait until the target is in sync
    4  where no live replica of the target leads, elect one
    5  stop the replicas that the target does not name
    6  write the target as the assignment
    7  remove the entry, the znode with the last one

Beyond the text, the leader epoch is raised in steps 2 and 4 whoever leads, because a leader takes
in nobody of whom it was not told, and leaves out nobody whom it takes for assigned.

Source: KAFKA-42, sections 2 to 5.
"""

from collections.abc import Callable

from reassure_controller.context import Context, PartitionContext
from reassure_controller.effects import RememberMove, Step, Warn
from reassure_controller.old_znode import OldZnodePlanner, plan_write
from reassure_controller.plan import find_bad_target, warn_refused
from reassure_controller.planned_job import Job
from reassure_controller.reader import ClusterReader
from reassure_controller.reassignment_steps import is_in_sync
from reassure_controller.rules import Rules
from reassure_spec.readings import Readings
from reassure_spec.znodes import REASSIGN_PARTITIONS, LegacyEntry, PartitionKey, ReplicaList


class ListenerPlanner(OldZnodePlanner):
    """Takes entries of the old znode into memory, and removes them at the end."""

    reassigns = True
    cuts_lost_leader = True

    def find_job(
        self, reader: ClusterReader, rules: Rules, clock_ms: Callable[[], int]
    ) -> Job | None:
        """Return what is to be done about new entries."""

        def make() -> tuple[Step, ...]:
            if reader.context.old is not None:
                keys = [entry.key for entry in reader.context.old.entries]
                reader.catch_up(keys)
                reader.changed.update(keys)  # what begins now is carried on with after this
            return plan_listener(reader.context, rules)

        return Job("the old znode", make) if plan_listener(reader.context, rules) else None

    def take_up(self, context: Context, rules: Rules) -> tuple[RememberMove, ...]:
        """Return the moves to take up before anybody looks at deaths (failure case 3).

        A controller that takes office finds their targets in sync as they are stored: whoever died
        since does not give the move up. One that names a broker twice never was begun.
        """
        readings = rules.readings
        if context.old is None or readings.move_dead_at_failover != "re-elect":
            return ()
        return tuple(
            RememberMove(entry.key, entry.target)
            for entry in context.old.entries
            if (content := context.partitions.get(entry.key)) is not None
            and entry.target
            and len(set(entry.target)) == len(entry.target)
            and is_in_sync(content, entry.target)
            and not is_same(content.assigned, entry.target, readings)
        )

    def list_started(self, context: Context, key: PartitionKey) -> ReplicaList:
        """Return the replicas of targets that are not assigned."""
        content = context.partitions[key]
        asked = () if context.old is None else context.old.entries
        targets = [entry.target for entry in asked if entry.key == key]
        targets += [] if content.child is None else [content.child.target]
        return tuple(
            dict.fromkeys(one for to in targets for one in to if one not in content.assigned)
        )

    def is_over(self, context: Context, key: PartitionKey, target: ReplicaList) -> bool:
        """Whether all was written, the end included, though its answer may have been lost."""
        asked = () if context.old is None else context.old.entries
        return context.partitions[key].assigned == target and all(e.key != key for e in asked)

    def plan_end(self, context: Context, key: PartitionKey) -> tuple[Step, ...]:
        """Return step 7: whatever the entry holds by now goes, and the memory of the move."""
        forget = RememberMove(key, None)
        old = context.old
        left = () if old is None else tuple(entry for entry in old.entries if entry.key != key)
        if old is None or left == old.entries:
            return (forget,)
        return (*plan_write("entry-removed", old, left), forget)


PLANNER = ListenerPlanner()


def plan_listener(context: Context, rules: Rules) -> tuple[Step, ...]:
    """Return the steps that begin with each new entry or refuse it (section 4).

    What is in flight is not begun again, whatever its entry asks for by now.
    """
    old = context.old
    if old is None:
        return ()
    if old.bad:
        return (
            Warn(REASSIGN_PARTITIONS, f"{old.bad}; deleted"),
            *plan_write("entries-refused", old, ()),
        )
    steps: list[Step] = []
    left: list[LegacyEntry] = []
    refused: dict[PartitionKey, str] = {}
    for entry in old.entries:
        content = context.partitions.get(entry.key)
        reason = None
        if not is_passed_over(entry, content):
            reason = find_refusal(context, content, entry.target, rules.readings)
            if reason is None:
                steps.append(RememberMove(entry.key, entry.target))
        if reason is None:
            left.append(entry)
        else:
            refused[entry.key] = reason
    steps += warn_refused(REASSIGN_PARTITIONS, refused, "removed")
    if len(left) < len(old.entries) or not left:
        steps += plan_write("entries-refused", old, tuple(left))
    return tuple(steps)


def is_passed_over(entry: LegacyEntry, content: PartitionContext | None) -> bool:
    """Whether an entry is left alone because its partition is in flight."""
    return content is not None and content.child is not None


def find_refusal(
    context: Context, content: PartitionContext | None, target: ReplicaList, readings: Readings
) -> str | None:
    """Return why the listener refuses a target, None where it begins with it."""
    if content is None:
        return "there is no such topic or partition"
    # Where the target is added first, a growth looks complete before anything was copied.
    began = readings.move_expand_first == "yes" and not is_in_sync(content, target)
    if is_same(content.assigned, target, readings) and not began:
        return "it is assigned already"
    return find_bad_target(context, target, readings)


def is_same(assigned: ReplicaList, target: ReplicaList, readings: Readings) -> bool:
    """Whether a target asks for nothing new."""
    if readings.move_same_replicas == "as-set":
        return set(assigned) == set(target)
    return assigned == target
