"""KAFKA-42: one reassignment at a time, in seven steps, from a single znode.

An admin command writes the target under `/admin/reassign_partitions`, waits until the controller
has removed it and then compares. What step the controller has reached is in its memory only; the
next controller begins again from what ZooKeeper holds. `next_effect` is the whole controller: the
one effect that is due, for a system as it stands. A crash can fall between any two effects. Where
the records are is in `reassure_model.copies`.

As written the text loses data in several ways (`properties`). Four readings repair it:
`move.expand-first`, `move.cut-isr`, `move.recheck-before-stop` and `election.unclean`.

The file has the document's numbers. Of its three leader selectors the third, the preferred replica,
has no part in a reassignment (`selectors.select_preferred`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from reassure_model.copies import Copies, delete_log, happen, is_in_sync, is_led, make_copies
from reassure_model.environment import Die, Failover
from reassure_model.outcome import Accepted, Rejected
from reassure_model.selectors import select_offline, select_reassigned
from reassure_model.state_machines import ReplicaState, move_replica
from reassure_spec.clauses import checks, clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER, ReplicaList


@dataclass(frozen=True, slots=True)
class Task:
    """What the acting controller remembers of the reassignment it is carrying out."""

    target: ReplicaList
    step: int = 2
    """Number of the step it is at, 2 to 7; step 1 is what makes the task."""


@dataclass(frozen=True, slots=True)
class Move(Copies):
    """One partition, its brokers, the admin path and who waits for it."""

    path: ReplicaList | None = None
    """The target under the admin path, None where the path does not exist."""
    task: Task | None = None
    wanted: ReplicaList | None = None
    """The target whose end an admin command waits for."""
    found: bool = False
    """Whether the acting controller found the path as it took office, the target in sync by then,
    and has not seen to a leader yet."""
    beside: bool = False
    """Whether the admin path names other partitions, whose moves are not followed here."""


def make_move(assigned: ReplicaList, brokers: frozenset[int]) -> Move:
    """Return a healthy partition led by its first replica, on these brokers."""
    return make_copies(Move, assigned, brokers)


# Effects of the controller ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Refuse:
    """Remove the path without a reassignment, and say why."""

    clause: str
    reason: str


@dataclass(frozen=True, slots=True)
class Listen:
    """Step 1: take the target into memory and listen for changes of the in-sync set."""

    target: ReplicaList


@dataclass(frozen=True, slots=True)
class StartReplica:
    """Step 2: start one replica as a follower."""

    replica: int


@dataclass(frozen=True, slots=True)
class MarkOnline:
    """Step 3 has ended: the target is in sync and its replicas are online."""

    target: ReplicaList


@dataclass(frozen=True, slots=True)
class WriteLeader:
    """Write leader and in-sync set with the next leader epoch, and tell the replicas."""

    leader: int
    isr: ReplicaList
    step: int = 0
    """The step that this completes, 0 where a broker's death asks for it."""


@dataclass(frozen=True, slots=True)
class StopReplica:
    """Step 5: stop one old replica and delete its log."""

    replica: int


@dataclass(frozen=True, slots=True)
class WriteAssigned:
    """Write the assigned replicas: the target in step 6, the union where it comes first."""

    assigned: ReplicaList
    step: int = 6


@dataclass(frozen=True, slots=True)
class RemovePath:
    """Step 7: remove the partition from the path, whatever it holds by now, the last with it."""


Effect = (
    WriteLeader
    | Refuse
    | Listen
    | StartReplica
    | MarkOnline
    | StopReplica
    | WriteAssigned
    | RemovePath
)

Outcome = Accepted[Move] | Rejected


# 1. The admin command ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Command:
    """An admin command creates the path and waits."""

    target: ReplicaList


@dataclass(frozen=True, slots=True)
class Observe:
    """The admin command sees that the path is gone, compares and reports."""


@dataclass(frozen=True, slots=True)
class Interrupt:
    """The admin command is interrupted: it compares, and removes the path where not complete."""


@checks
def create_path(move: Move, target: ReplicaList) -> Outcome:
    """Create the path and wait, unless a reassignment is under way."""
    if is_path_there(move) or move.wanted is not None:
        return Rejected("move.tool.one-at-a-time", "a reassignment is under way")
    after = replace(move, path=target, wanted=target, found=False)
    return Accepted(after, ("move.tool.creates-path",))


@clause("move.path.others-kept")
def is_path_there(move: Move) -> bool:
    """Whether the admin path exists: for this partition or for others."""
    return move.path is not None or move.beside


def is_complete(move: Move) -> bool:
    """Whether what the admin command waits for is the assignment, order included."""
    return move.wanted is not None and move.assigned == move.wanted


@checks
def report(move: Move) -> Outcome:
    """End the command once the path is gone: it reports whether the move `is_complete`."""
    return Accepted(replace(move, wanted=None), ("move.tool.reports",))


@checks
def interrupt(move: Move, readings: Readings) -> Outcome:
    """End the command before: it removes the path, unless the move is complete."""
    kept = is_complete(move) or readings.move_interrupt == "log-only"
    after = replace(move, wanted=None, path=move.path if kept else None)
    return Accepted(after, ("move.tool.interrupt",))


# 2. The controller's seven steps ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wait:
    """What a step answers that is not done, and can do nothing until something happens."""


Due = Effect | Wait | None
"""What is due at a step; None where it is done, and the next one is looked at."""


@clause("move.step.listen")
def listen(move: Move, target: ReplicaList, readings: Readings) -> Due:
    """Step 1: take the target from the path and listen, unless the listener refuses it."""
    return find_refusal(move, target, readings) or Listen(target)


@clause("move.step.start-new", "move.start.expand-first")
def start_new_replicas(move: Move, target: ReplicaList, readings: Readings) -> Due:
    """Step 2: start the replicas of the target that do not run, assigned first where so read."""
    if readings.move_expand_first == "yes":
        added = tuple(replica for replica in target if replica not in move.assigned)
        if added:
            return WriteAssigned(move.assigned + added, step=2)
    for replica in target:
        if replica not in move.running and replica in move.live:
            return StartReplica(replica)
    return None


@clause("move.step.wait-in-sync", "move.failure.never-in-sync")
def wait_until_in_sync(move: Move, target: ReplicaList, readings: Readings) -> Due:
    """Step 3: wait until the whole target is in sync."""
    return MarkOnline(target) if is_in_sync(move, target) else Wait()


@clause("move.step.elect", "move.partition.self-transition")
def move_leader(move: Move, target: ReplicaList, readings: Readings) -> Due:
    """Step 4: elect from the target where its leader is another or dead, or wait until it can."""
    if is_led_by(move, target):
        return None
    return elect(move, target) or Wait()


@clause("move.step.stop-old", "move.stop.cut-isr")
def stop_old_replicas(move: Move, target: ReplicaList, readings: Readings) -> Due:
    """Step 5: stop the replicas that are not in the target, out of the in-sync set first."""
    for replica in move.assigned:
        if replica in target:
            continue
        if readings.move_cut_isr == "yes" and replica in move.isr and len(move.isr) > 1:
            left = tuple(member for member in move.isr if member != replica)
            return WriteLeader(move.leader, left, step=5)
        if replica in move.running:
            return StopReplica(replica)
    return None


@clause("move.step.write-assigned")
def write_assignment(move: Move, target: ReplicaList, readings: Readings) -> Due:
    """Step 6: write the target as the assignment."""
    return WriteAssigned(target)


@clause("move.step.remove-path")
def remove_path(move: Move, target: ReplicaList, readings: Readings) -> Due:
    """Step 7: remove the partition from the path."""
    return RemovePath()


STEPS: Final[Mapping[int, Callable[[Move, ReplicaList, Readings], Due]]] = {
    1: listen,
    2: start_new_replicas,
    3: wait_until_in_sync,
    4: move_leader,
    5: stop_old_replicas,
    6: write_assignment,
    7: remove_path,
}
"""The seven steps, by number. An effect notes in memory which of them comes next."""


@clause("move.failover.no-needless-election", "move.failure.leader-change-unanswered")
@clause("move.failure.leader-does-not-serve")
def next_for_steps(move: Move, first: int, target: ReplicaList, readings: Readings) -> Due:
    """Return what is due at the first step that is not done, from step `first` on."""
    for number in range(first, 8):
        due = STEPS[number](move, target, readings)
        if due is not None:
            return due
    return None  # uncovered: the last step is always due


@clause("move.failover.resumes", "move.listener.ignore-in-flight")
def next_effect(move: Move, readings: Readings) -> Effect | None:
    """Return the effect that the controller owes next, None while it waits or has nothing to do.

    A path that appears while a reassignment is in memory is not looked at.
    """
    effect = next_at_failover(move, readings) or next_for_deaths(move, readings)
    if effect is not None:
        return effect
    due: Due = None
    if move.task is not None:
        first = find_step(move, move.task, readings)
        due = next_for_steps(move, first, move.task.target, readings)
    elif move.path is not None:
        due = listen(move, move.path, readings)
    return None if isinstance(due, Wait) else due


@clause("move.stop.recheck")
def find_step(move: Move, task: Task, readings: Readings) -> int:
    """Return the step the controller is at; where it looks again, deaths take it back."""
    if readings.move_recheck_before_stop == "no" or task.step not in (4, 5):
        return task.step
    if not is_in_sync(move, task.target):
        return 2
    return 5 if is_led_by(move, task.target) else 4


def is_led_by(move: Move, target: ReplicaList) -> bool:
    """Whether a live replica of the target leads."""
    return is_led(move) and move.leader in target


@clause("move.listener.removes-path")
def apply_effect(move: Move, effect: Effect) -> Move:
    """Return the system after an effect of the controller, with the step that comes next."""
    match effect:
        case Refuse():
            return replace(move, path=None, found=False)
        case Listen(target):
            found = move.found and is_in_sync(move, target)
            return replace(move, task=Task(target), found=found)
        case StartReplica(replica):
            return replace(move, running=move.running | {replica})
        case MarkOnline():
            return _remember(move, 4)
        case WriteLeader(leader, isr, step):
            after = replace(move, leader=leader, isr=isr, leader_epoch=move.leader_epoch + 1)
            return _remember(after, 5 if step else 0)
        case StopReplica(replica):
            return _remember(delete_log(move, replica), 5)
        case WriteAssigned(assigned, step):
            return _remember(replace(move, assigned=assigned), 7 if step == 6 else 0)
        case RemovePath():  # one way: there is no other effect
            return replace(move, path=None, task=None)


def _remember(move: Move, step: int) -> Move:
    if step == 0 or move.task is None:
        return move
    return replace(move, task=replace(move.task, step=step), found=move.found and step < 5)


# 3. Failure cases -------------------------------------------------------------------------------


def fail_over(move: Move, readings: Readings) -> Move:
    """Return the system with the next controller, who has only what ZooKeeper holds (all cases)."""
    carries_on = readings.move_dead_at_failover == "re-elect"
    found = carries_on and move.path is not None
    return replace(happen(move, Failover()), task=None, found=found)


@clause("move.failover.re-elects")
def next_at_failover(move: Move, readings: Readings) -> Effect | None:
    """Carry on where a new controller finds the target in sync, before it looks at deaths (case 3).

    The listener's condition on dead replicas does not count then, and where nobody leads a live
    replica of the target is elected.
    """
    target = move.path if move.task is None else move.task.target
    if not move.found or target is None or not is_in_sync(move, target):
        return None
    if move.task is None:
        refusal = find_refusal(move, target, readings)
        begun = refusal is None or refusal.clause == "move.listener.refuse-dead"
        return Listen(target) if begun else None
    if move.task.step == 2:
        return MarkOnline(target)
    return None if is_led(move) else elect(move, target)


@dataclass(frozen=True, slots=True)
class Stall:
    """The leader does not complete its change: its broker lives and it does not serve (case 4b)."""


# 4. The listener --------------------------------------------------------------------------------


@checks
def find_refusal(move: Move, target: ReplicaList, readings: Readings) -> Refuse | None:
    """Return why the listener refuses this target, None where it starts the reassignment."""
    exists = len(move.assigned) > 0
    if exists and readings.move_refuses_partition == "existing":
        return Refuse("move.listener.refuse-missing", "the partition exists")
    if not exists and readings.move_refuses_partition == "missing":
        return Refuse("move.listener.refuse-missing", "the partition does not exist")
    same = move.assigned == target
    if readings.move_same_replicas == "as-set":
        same = set(move.assigned) == set(target)
    # Where the target is added first, a growth looks complete before anything was copied.
    if same and (readings.move_expand_first == "no" or is_in_sync(move, target)):
        return Refuse("move.listener.refuse-same", "the target is assigned already")
    dead = [replica for replica in target if replica not in move.live]
    if dead and readings.target_dead_replica == "refuse":
        return Refuse("move.listener.refuse-dead", f"broker {dead[0]} is not alive")
    return None


# 5. The leader selectors (`reassure_model.selectors` has all of them) -----------------------------


@clause("move.selector.offline")
def next_for_deaths(move: Move, readings: Readings) -> Effect | None:
    """Elect where no live replica leads, then take the dead out of the in-sync set."""
    if not move.assigned:
        return None
    if not is_led(move):
        # During a move as written the in-sync set reaches beyond the assignment.
        outside = tuple(replica for replica in move.isr if replica not in move.assigned)
        unclean = readings.election_unclean == "last-resort"
        candidates = (*move.assigned, *outside)
        elected = select_offline(candidates, move.isr, move.live, unclean=unclean)
        if elected is not None:
            return WriteLeader(elected.leader, elected.isr)
        return None if move.leader == NO_LEADER else WriteLeader(NO_LEADER, move.isr)
    left = tuple(replica for replica in move.isr if replica in move.live)
    return WriteLeader(move.leader, left) if left and left != move.isr else None


@clause("move.selector.reassigned")
def elect(move: Move, target: ReplicaList) -> WriteLeader | None:
    """Elect one of the target that is alive and in sync, None where there is none."""
    elected = select_reassigned(target, move.isr, move.live)
    return None if elected is None else WriteLeader(elected.leader, elected.isr, step=4)


# 6. Replica states in the controller's memory -----------------------------------------------------

ReplicaStates = tuple[tuple[int, ReplicaState], ...]
"""State by replica, in order of replica; one that is missing does not exist."""


@clause("move.replica.states")
def start_replica_states(move: Move) -> ReplicaStates:
    """Return what a controller that takes office assumes: assigned replicas, online or offline."""
    online, offline = ReplicaState.ONLINE, ReplicaState.OFFLINE
    return tuple((r, online if r in move.live else offline) for r in sorted(move.assigned))


@clause("move.replica.states", "move.replica.new-follows", "move.replica.online")
def move_replica_states(
    states: ReplicaStates, effect: Effect | Die, readings: Readings
) -> tuple[ReplicaStates, tuple[str, ...]]:
    """Return the states after an effect or a death, and every transition the table refuses.

    A refused transition is skipped and the others proceed. That a new replica is told to lead is
    refused as well, and it leads all the same.
    """
    offline, gone = ReplicaState.OFFLINE, ReplicaState.NON_EXISTENT
    wanted: list[tuple[int, ReplicaState]] = []
    table, refused = dict(states), []
    match effect:
        case WriteLeader(leader) if table.get(leader) is ReplicaState.NEW:
            refused.append(f"replica {leader}: a new one may only follow")
        case StartReplica(replica):
            wanted = [(replica, ReplicaState.NEW)]
        case MarkOnline(target) if readings.move_online_from == "in-sync":
            wanted = [(replica, ReplicaState.ONLINE) for replica in target]
        case WriteAssigned(target, 6) if readings.move_online_from == "assigned":
            wanted = [(replica, ReplicaState.ONLINE) for replica in target]
        case StopReplica(replica):
            wanted = [(replica, offline), (replica, gone)]
        case Die(broker):
            wanted = [(broker, offline)] if broker in table else []
    for replica, state in wanted:
        outcome = move_replica(table.get(replica, gone), state, "kafka-42")
        if isinstance(outcome, Rejected):
            refused.append(f"replica {replica}: {outcome.reason}")
        else:
            table[replica] = outcome.state
    return tuple(sorted((r, s) for r, s in table.items() if s is not gone)), tuple(refused)
