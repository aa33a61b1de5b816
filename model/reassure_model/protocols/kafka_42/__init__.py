"""KAFKA-42: one reassignment at a time, in seven steps, from a single znode.

An admin command writes the target under `/admin/reassign_partitions`, waits until the controller
has removed it and then compares. The controller goes through seven steps: listen for changes of the
in-sync set (1), start the new replicas (2), wait until the target is in sync (3), move the leader
(4), stop the old replicas (5), write the assignment (6), remove the path (7). What step it has
reached is in the controller's memory only; the next controller begins again from what ZooKeeper
holds.

`next_effect` is the whole controller: the one effect that is due, for a system as it stands. A
crash can fall between any two effects. Where the records are is in `reassure_model.copies`.

As written the text loses data in several ways (the properties of its `machine`). Four readings
repair it:
`move.expand-first`, `move.cut-isr`, `move.recheck-before-stop` and `election.unclean`.
"""

from dataclasses import dataclass, replace

from reassure_model.copies import (
    Append,
    Copies,
    can_join,
    delete_log,
    find_nothing_held,
    find_outside,
    find_running_unassigned,
    happen,
    is_in_sync,
    is_led,
    list_happenings,
    make_copies,
)
from reassure_model.environment import Controller, Die, Failover, Join, NotPossible, Return
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


# Effects of the controller ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WriteLeader:
    """Write leader and in-sync set with the next leader epoch, and tell the replicas."""

    leader: int
    isr: ReplicaList
    step: int = 0
    """The step that this completes, 0 where a broker's death asks for it."""


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


# Actions that are not the controller's ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Command:
    """An admin command creates the path and waits."""

    target: ReplicaList


@dataclass(frozen=True, slots=True)
class Interrupt:
    """The admin command is interrupted: it compares, and removes the path where not complete."""


@dataclass(frozen=True, slots=True)
class OthersEnd:
    """The moves of the other partitions under the path end, and they leave it."""


@dataclass(frozen=True, slots=True)
class Stall:
    """The leader does not complete its change: its broker lives and it does not serve."""


@dataclass(frozen=True, slots=True)
class Observe:
    """The admin command sees that the path is gone, compares and reports."""


Action = (
    Command
    | Interrupt
    | OthersEnd
    | Stall
    | Observe
    | Append
    | Join
    | Die
    | Return
    | Failover
    | Controller
)
Outcome = Accepted[Move] | Rejected


def make_move(assigned: ReplicaList, brokers: frozenset[int]) -> Move:
    """Return a healthy partition led by its first replica, on these brokers."""
    return make_copies(Move, assigned, brokers)


# The controller ---------------------------------------------------------------------------------


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


@clause("move.step.listen", "move.failover.resumes")
@clause("move.listener.ignore-in-flight")
def next_effect(move: Move, readings: Readings) -> Effect | None:
    """Return the effect that the controller owes next, None while it waits or has nothing to do.

    A path that appears while a reassignment is in memory is not looked at.
    """
    due = next_at_failover(move, readings) or next_for_deaths(move, readings)
    if due is not None:
        return due
    if move.task is not None:
        return next_for_task(move, move.task, readings)
    if move.path is None:
        return None
    return find_refusal(move, move.path, readings) or Listen(move.path)


@clause("move.failover.re-elects")
def next_at_failover(move: Move, readings: Readings) -> Effect | None:
    """Carry on where a new controller finds the target in sync, before it looks at deaths.

    The listener's condition on dead replicas does not count then, and where nobody leads a live
    replica of the target is elected (failure case 3).
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
    return None if is_led(move) else next_to_elect(move, target)


@clause("move.failover.no-needless-election", "move.failure.leader-change-unanswered")
@clause("move.failure.leader-does-not-serve")
def next_for_task(move: Move, task: Task, readings: Readings) -> Effect | None:
    """Return the effect that is due at the step which the controller has reached."""
    step = find_step(move, task, readings)
    if step == 2:
        return next_to_start(move, task.target, readings)
    if step == 4 and not (is_led(move) and move.leader in task.target):
        return next_to_elect(move, task.target)
    if step in (4, 5):
        return next_to_stop(move, task.target, readings)
    return RemovePath()


@clause("move.stop.recheck")
def find_step(move: Move, task: Task, readings: Readings) -> int:
    """Return the step the controller is at; where it looks again, deaths take it back."""
    if readings.move_recheck_before_stop == "no" or task.step not in (4, 5):
        return task.step
    if not is_in_sync(move, task.target):
        return 2
    return 5 if is_led(move) and move.leader in task.target else 4


@clause("move.step.start-new", "move.step.wait-in-sync", "move.start.expand-first")
@clause("move.failure.never-in-sync")
def next_to_start(move: Move, target: ReplicaList, readings: Readings) -> Effect | None:
    """Start the new replicas and wait until the whole target is in sync (steps 2 and 3)."""
    if readings.move_expand_first == "yes":
        added = tuple(replica for replica in target if replica not in move.assigned)
        if added:
            return WriteAssigned(move.assigned + added, step=2)
    for replica in target:
        if replica not in move.running and replica in move.live:
            return StartReplica(replica)
    return MarkOnline(target) if is_in_sync(move, target) else None


@clause("move.step.elect", "move.selector.reassigned", "move.partition.self-transition")
def next_to_elect(move: Move, target: ReplicaList) -> Effect | None:
    """Elect from the target, or wait until one of it is alive and in sync (step 4)."""
    elected = select_reassigned(target, move.isr, move.live)
    return None if elected is None else WriteLeader(elected.leader, elected.isr, step=4)


@clause("move.step.stop-old", "move.stop.cut-isr", "move.step.write-assigned")
def next_to_stop(move: Move, target: ReplicaList, readings: Readings) -> Effect | None:
    """Stop the old replicas, then write the target as the assignment (steps 5 and 6)."""
    for replica in move.assigned:
        if replica in target:
            continue
        if readings.move_cut_isr == "yes" and replica in move.isr and len(move.isr) > 1:
            left = tuple(member for member in move.isr if member != replica)
            return WriteLeader(move.leader, left, step=5)
        if replica in move.running:
            return StopReplica(replica)
    return WriteAssigned(target)


@clause("move.step.remove-path", "move.listener.removes-path")
def apply_effect(move: Move, effect: Effect) -> Move:
    """Return the system after an effect of the controller."""
    match effect:
        case WriteLeader(leader, isr, step):
            after = replace(move, leader=leader, isr=isr, leader_epoch=move.leader_epoch + 1)
            return _remember(after, 5 if step else 0)
        case Refuse():
            return replace(move, path=None, found=False)
        case Listen(target):
            found = move.found and is_in_sync(move, target)
            return replace(move, task=Task(target), found=found)
        case StartReplica(replica):
            return replace(move, running=move.running | {replica})
        case MarkOnline():
            return _remember(move, 4)
        case StopReplica(replica):
            return _remember(delete_log(move, replica), 5)
        case WriteAssigned(assigned, step):
            return _remember(replace(move, assigned=assigned), 7 if step == 6 else 0)
        case RemovePath():
            return replace(move, path=None, task=None)


def _remember(move: Move, step: int) -> Move:
    if step == 0 or move.task is None:
        return move
    return replace(move, task=replace(move.task, step=step), found=move.found and step < 5)


# The world around it ----------------------------------------------------------------------------


def enabled(move: Move, readings: Readings) -> tuple[Action, ...]:
    """Return every action that is possible except further commands."""
    actions: list[Action] = [Controller()] if next_effect(move, readings) is not None else []
    joining = (r for r in sorted(move.running) if can_join(move, r))
    actions += list_happenings(move, joining, move.live | move.running | move.holding)
    if move.wanted is not None:
        actions.append(Interrupt() if is_path_there(move) else Observe())
    return (*actions, Failover())


@clause("move.path.others-kept")
def is_path_there(move: Move) -> bool:
    """Whether the admin path exists: for this partition or for others."""
    return move.path is not None or move.beside


def is_complete(move: Move) -> bool:
    """Whether what the admin command waits for is the assignment, order included."""
    return move.wanted is not None and move.assigned == move.wanted


@checks
def step(move: Move, action: Action, readings: Readings) -> Outcome:
    """Take one action.

    Rejected is the answer to a command while another is under way. Raises NotPossible for an
    action that has nothing to act upon.
    """
    match action:
        case Command(target):
            if is_path_there(move) or move.wanted is not None:
                return Rejected("move.tool.one-at-a-time", "a reassignment is under way")
            after = replace(move, path=target, wanted=target, found=False)
            return Accepted(after, ("move.tool.creates-path",))
        case Interrupt() if move.wanted is not None:
            kept = is_complete(move) or readings.move_interrupt == "log-only"
            after = replace(move, wanted=None, path=move.path if kept else None)
            return Accepted(after, ("move.tool.interrupt",))
        case OthersEnd() if move.beside:
            return Accepted(replace(move, beside=False))
        case Stall() if is_led(move) and move.leader in move.running:
            return Accepted(replace(move, running=move.running - {move.leader}))
        case Observe() if move.wanted is not None and not is_path_there(move):
            return Accepted(replace(move, wanted=None), ("move.tool.reports",))
        case Controller():
            effect = next_effect(move, readings)
            if effect is not None:
                return Accepted(apply_effect(move, effect), effects=(effect,))
        case _:
            after = happen(move, action)
            if isinstance(action, Failover):
                carries_on = readings.move_dead_at_failover == "re-elect"
                found = carries_on and move.path is not None
                after = replace(after, task=None, found=found)
            if after is not move:
                return Accepted(after)
    raise NotPossible(f"{action} is not possible in {move}")


# What goes wrong --------------------------------------------------------------------------------


def is_at_rest(move: Move) -> bool:
    """Whether no reassignment is asked for or being carried out."""
    return move.path is None and move.task is None


@clause("move.leader.not-stopped")
def find_stopped_leader(move: Move) -> str | None:
    """Say so when the recorded leader is alive and was stopped (finding move-3)."""
    if not is_led(move) or move.leader in move.running:
        return None
    return f"leader {move.leader} was stopped"


@clause("move.isr.within-assigned")
def find_outside_assigned(move: Move) -> str | None:
    """Say so when leader or in-sync set lie outside the assignment (findings move-5, move-6)."""
    return find_outside(move)


@clause("move.assigned.holds-committed")
def find_emptied_assignment(move: Move) -> str | None:
    """Say so when no assigned replica has the records; at rest (findings move-6, move-8)."""
    return find_nothing_held(move)


@clause("move.cancel.no-strays")
def find_stray(move: Move) -> str | None:
    """Say so when a replica runs that is not assigned; at rest (finding move-7)."""
    return find_running_unassigned(move)


# Replica states in the controller's memory ------------------------------------------------------

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


# What a reader takes for granted on the way -------------------------------------------------------


@clause("move.step.stop-old", "move.stop.recheck")
def find_stop_too_early(move: Move, readings: Readings) -> str | None:
    """Say so when an old replica is to be stopped and the target is not in sync.

    Finding move-10: step 5 looks at nothing, so that who died since step 3 is not missed.
    """
    due = next_effect(move, readings)
    if not isinstance(due, StopReplica) or move.task is None:
        return None
    lacking = [replica for replica in move.task.target if replica not in move.isr]
    return f"{due.replica} is to be stopped, not in sync: {lacking}" if lacking else None


@clause("move.start.expand-first")
def find_started_unassigned(move: Move) -> str | None:
    """Say so when a replica was started for a reassignment and is not assigned (finding move-14).

    A leader that counts its assigned replicas only never lets it in.
    """
    if move.task is None:
        return None
    strays = [r for r in move.task.target if r in move.running and r not in move.assigned]
    return f"started and not assigned: {strays}" if strays else None
