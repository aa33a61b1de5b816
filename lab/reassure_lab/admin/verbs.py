"""The verbs: what each does, and what came of it as values.

Each reads the cluster, checks what is asked for, and makes one transaction: a throttle and the
reassignment that it is for, or neither. Where something else has changed what was read, it is read
again.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from kazoo.client import KazooClient

from reassure_controller.session import Indefinite, Operation, Refused, commit
from reassure_lab.admin import REQUESTS
from reassure_lab.admin.errors import NotNow, NotThere, Unsettled
from reassure_lab.admin.limiting import find_ways, plan_limit, plan_no_limit
from reassure_lab.admin.move_files import FilePlace, NamedTopic, PartitionMove
from reassure_lab.admin.submitting import (
    EXISTING,
    Targets,
    check_protocol,
    check_routes,
    check_stranded,
    describe_doubt,
    find_originals,
    plan_targets,
    plan_withdrawal,
)
from reassure_lab.admin.survey import Active, ClusterReading, Route, read_state
from reassure_lab.node.proposing import Racks, propose
from reassure_spec.clauses import clause
from reassure_spec.znodes import PartitionKey, ReplicaList

Result = TypeVar("Result")
Status = Literal["complete", "in progress", "other replicas"]

TRIES: Final = 10
"""How often a transaction is made anew because something else was faster."""
LARGEST_BYTES: Final = 1_000_000
"""How much is sent at once: ZooKeeper takes a little more (jute.maxbuffer)."""
_OVERHEAD_BYTES: Final = 64
"""What an operation takes beside its path and its data, at most."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What `generate` makes."""

    current: Targets
    proposed: Targets


@dataclass(frozen=True, slots=True)
class Started:
    """What `execute` did."""

    current: Targets
    """The replicas before, of the partitions that were asked for."""
    targets: Targets
    asked: int
    """How many were not on their way already."""
    bytes_per_s: int | None
    doubt: str = ""
    """What is not known of whether anybody will do it."""


@dataclass(frozen=True, slots=True)
class Cleared:
    """Where throttles were taken away, if there were any."""

    brokers: tuple[int, ...]
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verified:
    """How far one partition of a file is."""

    key: PartitionKey
    target: ReplicaList
    assigned: ReplicaList
    """Empty where the partition does not exist."""
    status: Status
    in_sync: int
    """How many of the target's replicas are in sync."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify` found and did."""

    partitions: tuple[Verified, ...]
    is_any_active: bool
    """Whether anything is being reassigned, also what the file does not name."""
    cleared: Cleared | None


@dataclass(frozen=True, slots=True)
class Cancellation:
    """What `cancel` did."""

    cancelled: Targets
    """By partition: the replicas that it goes back to."""
    cleared: Cleared | None


def generate(
    client: KazooClient,
    topics: Sequence[NamedTopic],
    brokers: Sequence[int],
    seed: int,
    *,
    with_racks: bool = True,
) -> Proposal:
    """Propose to spread these topics over these brokers. Raises NotThere, NotNow, Unsettled."""
    state = read_state(client, [topic.name for topic in topics])
    known = {topic for topic, _ in state.assigned}
    for topic in topics:
        if topic.name not in known or topic.name in state.deleted:
            _refuse(topic.source, f"Topic {topic.name} does not exist")
    names = {topic.name for topic in topics}
    current = {key: replicas for key, replicas in state.assigned.items() if key[0] in names}
    racks = _choose_brokers(state, brokers, with_racks=with_racks)
    most = max(len(replicas) for replicas in current.values())
    if most > len(racks):
        raise NotNow(
            f"Replication factor: {most} larger than available brokers: {len(racks)}; name more "
            "in --broker-list"
        )
    return Proposal(current, propose(current, racks, seed))


def _choose_brokers(state: ClusterReading, brokers: Sequence[int], *, with_racks: bool) -> Racks:
    dead = sorted(set(brokers) - state.racks.keys())
    if dead:
        raise NotNow(f"--broker-list: {_join(dead)}: not alive; {_tell_live(state)}")
    racks = {one: state.racks[one] if with_racks else None for one in brokers}
    nameless = sorted(broker for broker, rack in racks.items() if rack is None)
    if 0 < len(nameless) < len(racks):
        raise NotNow(
            f"Not all brokers have rack information ({_join(nameless)} have none). Add "
            "--disable-rack-aware in command line to make replica assignment without rack "
            "information."
        )
    return racks


@clause("move.tool.one-at-a-time")
def execute(
    client: KazooClient,
    moves: Sequence[PartitionMove],
    protocol: Route,
    *,
    bytes_per_s: int | None = None,
    additional: bool = False,
) -> Started:
    """Ask for these moves, and limit their rate. Raises NotThere, NotNow, Unsettled."""

    def plan() -> tuple[Started, list[Operation]]:
        state = read_state(client, {move.key[0] for move in moves})
        check_protocol(state, protocol)
        _check_moves(state, moves)
        named = [move.key for move in moves if move.key in state.active]
        check_stranded(state, named if additional else state.active)
        if state.active and not additional:
            raise NotNow(EXISTING)
        targets = {move.key: move.target for move in moves}
        new = {key: target for key, target in targets.items() if not _has(state, key, target)}
        check_routes((state.active[key] for key in new if key in state.active), protocol)
        limit: list[Operation] = []
        if bytes_per_s is not None:
            ways = find_ways(state.active.values(), targets, state.assigned)
            limit = plan_limit(client, ways, bytes_per_s)
        current = {key: _find_before(state, key) for key in targets}
        doubt = describe_doubt(state, protocol)
        started = Started(current, targets, len(new), bytes_per_s, doubt)
        return started, [*limit, *plan_targets(state, protocol, new)]

    return _carry_out(client, plan)


def _find_before(state: ClusterReading, key: PartitionKey) -> ReplicaList:
    """Return what to go back to: the replicas before a reassignment, if they are known."""
    active = state.active.get(key)
    original = None if active is None else active.original
    return state.assigned[key] if original is None else original


def _has(state: ClusterReading, key: PartitionKey, target: ReplicaList) -> bool:
    """Whether a partition is on its way to this target."""
    return key in state.active and state.active[key].target == target


def _check_moves(state: ClusterReading, moves: Iterable[PartitionMove]) -> None:
    for move in moves:
        topic, partition = move.key
        if move.key not in state.assigned or topic in state.deleted:
            gone = " (it is to be deleted)" if topic in state.deleted else ""
            reason = "The proposed assignment contains non-existent partitions"
            _refuse(move.source, f"{reason}: {topic}-{partition}{gone}")
        dead = sorted(set(move.target) - state.racks.keys())
        if dead:
            reason = "The proposed assignment contains non-existent brokerIDs"
            _refuse(move.source, f"{reason}: {_join(dead)}; {_tell_live(state)}")


def verify(
    client: KazooClient, moves: Sequence[PartitionMove], *, clear: bool = True
) -> Verification:
    """Say how far these moves are; with `clear`, take throttles away when nothing moves.

    Raises NotNow, Unsettled.
    """

    def plan() -> tuple[Verification, list[Operation]]:
        state = read_state(client, {move.key[0] for move in moves})
        cleared, operations = None, list[Operation]()
        if clear and not state.active:
            cleared, operations = _plan_clearing(client, state, moves)
        found = tuple(_verify_one(state, move) for move in moves)
        return Verification(found, bool(state.active), cleared), operations

    return _carry_out(client, plan)


def withdraw(client: KazooClient, moves: Sequence[PartitionMove]) -> tuple[PartitionKey, ...]:
    """Take back what is left of these moves where the controller takes nothing but the old znode.

    That is what an interrupted command does by KAFKA-42, so that it can be asked again. Return the
    partitions that were there. Raises NotNow, Unsettled.
    """

    def plan() -> tuple[tuple[PartitionKey, ...], list[Operation]]:
        state = read_state(client, {move.key[0] for move in moves})
        old = state.old_znode
        if old is None or state.served is None or not state.is_unread(REQUESTS):
            return (), []
        there = {entry.key for entry in old.entries} & {move.key for move in moves}
        return tuple(sorted(there)), plan_withdrawal(state, there)

    return _carry_out(client, plan)


def _verify_one(state: ClusterReading, move: PartitionMove) -> Verified:
    assigned = state.assigned.get(move.key, ())
    active = state.active.get(move.key)
    status: Status = "complete" if assigned == move.target else "other replicas"
    if active is None:
        done = len(move.target) if status == "complete" else 0
        return Verified(move.key, move.target, assigned, status, done)
    in_sync = len(set(move.target) & set(active.in_sync))
    return Verified(move.key, move.target, assigned, "in progress", in_sync)


def _plan_clearing(
    client: KazooClient, state: ClusterReading, moves: Iterable[PartitionMove]
) -> tuple[Cleared, list[Operation]]:
    """Plan to take throttles from all who may have been set one.

    Which brokers were sources is known to nobody any more, so these are all that are alive.
    """
    brokers = {replica for move in moves for replica in move.target} | state.racks.keys()
    topics = {move.key[0] for move in moves}
    cleared = Cleared(tuple(sorted(brokers)), tuple(sorted(topics)))
    return cleared, plan_no_limit(client, brokers, topics)


def list_active(client: KazooClient) -> tuple[Active, ...]:
    """Return what is being reassigned, in order. Raises Unsettled."""
    active = read_state(client).active
    return tuple(active[key] for key in sorted(active))


def cancel(
    client: KazooClient, moves: Sequence[PartitionMove], protocol: Route, *, clear: bool = True
) -> Cancellation:
    """Ask for the replicas that these partitions had before. Raises NotNow, Unsettled."""

    def plan() -> tuple[Cancellation, list[Operation]]:
        state = read_state(client, {move.key[0] for move in moves})
        active = [state.active[move.key] for move in moves if move.key in state.active]
        cleared, operations = None, list[Operation]()
        if clear:
            cleared, operations = _plan_clearing(client, state, moves)
        if not active:
            return Cancellation({}, cleared), operations
        stranded = {one.key: one.assigned for one in active if state.is_stranded(one)}
        operations += plan_withdrawal(state, stranded.keys())
        active = [one for one in active if one.key not in stranded]
        if not active:
            return Cancellation(stranded, cleared), operations
        check_routes(active, protocol)
        check_protocol(state, protocol)
        originals = find_originals(active)
        new = {key: before for key, before in originals.items() if not _has(state, key, before)}
        guards = {guard for one in active if one.key in new for guard in one.guards}
        asked = plan_targets(state, protocol, new)
        changed = {path for name, (path, *_) in asked if name == "delete"}
        checks: list[Operation] = [
            ("check", guard) for guard in sorted(guards) if guard[0] not in changed
        ]
        cancelled = {**stranded, **originals}
        return Cancellation(cancelled, cleared), [*operations, *checks, *asked]

    return _carry_out(client, plan)


def _carry_out(client: KazooClient, plan: Callable[[], tuple[Result, list[Operation]]]) -> Result:
    """Plan, and carry the operations out as one transaction; anew where something was faster."""
    reason = ""
    for _ in range(TRIES):
        result, operations = plan()
        if not operations:
            return result
        _check_size(operations)
        try:
            commit(client, operations)
        except Refused as refused:
            name, (path, *_rest) = operations[refused.index]
            reason = f"{name} of {path}: {type(refused.error).__name__}"
            continue
        except Indefinite as indefinite:
            raise Unsettled(
                f"it is not known whether this was done ({indefinite}): see what is going on "
                "(--list) before asking again"
            ) from indefinite
        return result
    raise NotNow(f"{TRIES} times ZooKeeper refused what it was asked for ({reason}); ask again")


def _check_size(operations: Iterable[Operation]) -> None:
    size = sum(_OVERHEAD_BYTES + len(path) + _measure(more) for _, (path, *more) in operations)
    if size > LARGEST_BYTES:
        raise NotNow(
            f"this makes {size} bytes, and ZooKeeper takes {LARGEST_BYTES} at once; ask for fewer "
            "partitions in one file"
        )


def _measure(arguments: Iterable[object]) -> int:
    return sum(len(one) for one in arguments if isinstance(one, bytes))


def _refuse(source: FilePlace, reason: str) -> None:
    raise NotThere(source.file, source.line, reason)


def _tell_live(state: ClusterReading) -> str:
    return f"alive are {_join(sorted(state.racks)) or 'none'}"


def _join(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))
