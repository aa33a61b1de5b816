"""One partition on several brokers: logs, fetching, high watermarks, the stored ISR and elections.

A log is the tuple of the leader epochs under which its records were written, so that two logs can
be told apart by their content. Lag is not measured here: that a follower falls behind the limit or
comes back within it is an action (`Lag`, `CatchUp`) which may come at any time. A follower has one
fetch request on its way or waiting at the leader (`Serve`: it arrives and the leader notes its
offset; `Answer`: the response arrives with records and high watermark, and the next request
leaves). A broker that is down is one that takes no action; with which mark it comes back no action
says, but `restore_mark` does. Elections are clean; what a leader had in memory goes with it. The
stored ISR is changed by conditional write: the controller may change it too (`Remove`), and then
the leader's write fails until it has read again (`Refresh`). Under the other value of reading
`isr.members` nothing is stored: the set is what its definition says at any moment (`define_isr`).

Not here: unclean elections, lost disks, min.insync.replicas, changes of the assignment.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from reassure_model.environment import NotPossible
from reassure_model.outcome import Accepted, Rejected
from reassure_model.protocols.kafka_4485 import compute_high_watermark, compute_isr
from reassure_spec.clauses import checks, clause
from reassure_spec.readings import Readings

Log = tuple[int, ...]
"""Leader epoch of each record; the log end offset is the length."""


@dataclass(frozen=True, slots=True)
class Request:
    """A fetch request."""

    leader_epoch: int
    offset: int
    served: bool = False
    """Whether it has arrived and waits for its response."""


@dataclass(frozen=True, slots=True)
class Replica:
    """What one broker holds of the partition."""

    log: Log = ()
    high_watermark: int = 0
    leader_epoch: int = 0
    """The latest leader epoch that it follows or leads."""
    request: Request | None = None


@dataclass(frozen=True, slots=True)
class Term:
    """What the leader has in memory."""

    end_at_election: int
    version: int
    """Version of the stored state as the leader read or wrote it last."""
    isr: frozenset[int]
    """In-sync set at that version."""
    pseudo_isr: frozenset[int]
    offsets: tuple[int, ...]
    """Begin offset of each broker's last fetch request, 0 before the first."""


@dataclass(frozen=True, slots=True)
class Replication:
    """The partition; brokers are numbered from 0, as elements of `replicas`."""

    replicas: tuple[Replica, ...]
    leader: int
    leader_epoch: int
    isr: frozenset[int]
    """The stored in-sync set."""
    version: int
    term: Term
    shown: int | None = 0
    """High watermark that consumers are shown now; None while they are shown none."""
    committed: Log = ()
    """The longest log that consumers were ever shown."""


@dataclass(frozen=True, slots=True)
class Action:
    """What can happen. Its broker is the follower or new leader that it concerns."""

    broker: int


class Append(Action):
    """The leader writes a record."""


class Serve(Action):
    """A follower's request arrives."""


class Answer(Action):
    """A follower takes what the leader has, and its high watermark, and asks for more."""


class Lag(Action):
    """A follower's lag passes the limit."""


class CatchUp(Action):
    """A follower's lag is within the limit again."""


class Advance(Action):
    """The leader evaluates the high watermark."""


class Join(Action):
    """The leader writes a follower into the stored ISR."""


class Leave(Action):
    """The leader writes a follower out of it."""


class Remove(Action):
    """The controller writes a follower out of it."""


class Refresh(Action):
    """The leader reads the stored ISR."""


class Elect(Action):
    """The controller elects a member of the stored ISR."""


class Follow(Action):
    """A broker learns of the leader, truncates its log and sends its first request."""


LEADER_ALONE: Final = (Append, Advance, Refresh)
"""What concerns no follower; the broker of such an action is the leader."""
Outcome = Accepted[Replication] | Rejected


def make_replication(brokers: int, *, members: frozenset[int] | None = None) -> Replication:
    """Return an empty partition led by broker 0; without `members` all are in sync and fetch."""
    everyone = frozenset(range(brokers))
    waiting = Replica(request=Request(0, 0, served=True))
    replicas = (Replica(), *(waiting for _ in range(brokers - 1)))
    isr = everyone if members is None else members
    term = Term(0, 0, isr, isr, (0,) * brokers)
    return Replication(replicas, 0, 0, isr, 0, term)


def is_possible(state: Replication, action: Action) -> bool:
    """Whether the action has something to act upon; whether it is allowed is for `step` to say."""
    broker, term = action.broker, state.term
    if isinstance(action, Elect):
        return True
    if isinstance(action, LEADER_ALONE) or broker == state.leader:
        stale = term.version != state.version
        alone = isinstance(action, LEADER_ALONE) and broker == state.leader
        return alone and (stale or not isinstance(action, Refresh))
    current, request = _is_current(state, broker), state.replicas[broker].request
    match action:
        case Serve():
            return request is not None and not request.served
        case Answer():
            return request is not None and request.served and current
        case Lag():
            return broker in term.pseudo_isr
        case Join():
            return broker in term.pseudo_isr and broker not in term.isr
        case CatchUp():
            return broker not in term.pseudo_isr and current
        case Leave():
            return broker not in term.pseudo_isr and broker in term.isr
        case Remove():
            return broker in state.isr
        case _:
            return not current


def _is_current(state: Replication, broker: int) -> bool:
    return state.replicas[broker].leader_epoch == state.leader_epoch


def enabled(state: Replication) -> tuple[Action, ...]:
    """Return every action that is possible."""
    actions = (kind(broker) for kind in ACTIONS.values() for broker in range(len(state.replicas)))
    return tuple(action for action in actions if is_possible(state, action))


def step(state: Replication, action: Action, readings: Readings) -> Outcome:
    """Take one action. Raises NotPossible where it has nothing to act upon."""
    if not is_possible(state, action):
        raise NotPossible(f"{action} is not possible in {state}")
    outcome = STEPS[action.__class__](state, action.broker, readings)
    if readings.isr_members == "stored" or isinstance(outcome, Rejected):
        return outcome
    return replace(outcome, state=define_isr(outcome.state))


@clause("isr.member.at-or-above-hw", "isr.lagging-leaves")
def define_isr(state: Replication) -> Replication:
    """Return the state with the ISR as it is defined, which nobody writes and nobody reads late."""
    term, ids = state.term, tuple(range(len(state.replicas)))
    close = tuple(broker for broker in ids if broker in term.pseudo_isr)
    mark = state.replicas[state.leader].high_watermark
    isr = frozenset(compute_isr(ids, _count_offsets(state), close, mark))
    return replace(state, isr=isr, version=0, term=replace(term, isr=isr, version=0))


def _count_offsets(state: Replication) -> tuple[int, ...]:
    """Return the log end offsets that the leader knows, its own among them."""
    known, leader = state.term.offsets, state.leader
    return (*known[:leader], len(state.replicas[leader].log), *known[leader + 1 :])


def _set(state: Replication, broker: int, replica: Replica) -> Replication:
    return replace(
        state, replicas=(*state.replicas[:broker], replica, *state.replicas[broker + 1 :])
    )


def _append(state: Replication, leader: int, readings: Readings) -> Outcome:
    replica = state.replicas[leader]
    return Accepted(_set(state, leader, replace(replica, log=(*replica.log, state.leader_epoch))))


@checks
def _serve(state: Replication, broker: int, readings: Readings) -> Outcome:
    replica, term = state.replicas[broker], state.term
    assert replica.request is not None
    sent, offset = replica.request.leader_epoch, replica.request.offset
    if sent != state.leader_epoch:
        return Rejected(
            "fetch.epoch-fenced", f"sent in leader epoch {sent}, it is {state.leader_epoch}"
        )
    offsets = (*term.offsets[:broker], offset, *term.offsets[broker + 1 :])
    served = replace(replica, request=replace(replica.request, served=True))
    return Accepted(
        replace(_set(state, broker, served), term=replace(term, offsets=offsets)),
        ("fetch.epoch-fenced",),
    )


@checks
def _answer(state: Replication, broker: int, readings: Readings) -> Outcome:
    leader, replica = state.replicas[state.leader], state.replicas[broker]
    log = (*replica.log, *leader.log[len(replica.log) :])
    mark = max(replica.high_watermark, min(leader.high_watermark, len(log)))
    request = Request(state.leader_epoch, len(log))
    taken = Replica(log, mark, state.leader_epoch, request)
    return Accepted(_set(state, broker, taken), ("hw.follower.from-leader",))


def _lag(state: Replication, broker: int, readings: Readings) -> Outcome:
    pseudo = state.term.pseudo_isr - {broker}
    return Accepted(replace(state, term=replace(state.term, pseudo_isr=pseudo)))


def _catch_up(state: Replication, broker: int, readings: Readings) -> Outcome:
    pseudo = state.term.pseudo_isr | {broker}
    return Accepted(replace(state, term=replace(state.term, pseudo_isr=pseudo)))


@clause("hw.over-stored-isr", "hw.served-from-end-at-election")
def _advance(state: Replication, leader: int, readings: Readings) -> Outcome:
    replica, term = state.replicas[leader], state.term
    ids = tuple(range(len(state.replicas)))
    waited = term.pseudo_isr | (term.isr if readings.hw_over_stored_isr == "yes" else frozenset())
    members = tuple(r for r in ids if r in waited)  # the leader is always among them
    mark = compute_high_watermark(replica.high_watermark, ids, _count_offsets(state), members)
    return Accepted(_show(_set(state, leader, replace(replica, high_watermark=mark)), readings))


def _show(state: Replication, readings: Readings) -> Replication:
    """Show consumers what they may see of the leader."""
    replica = state.replicas[state.leader]
    mark = replica.high_watermark
    if readings.hw_served_from == "end-at-election" and mark < state.term.end_at_election:
        return replace(state, shown=None)
    longer = mark > len(state.committed)
    return replace(state, shown=mark, committed=replica.log[:mark] if longer else state.committed)


@checks
def _join(state: Replication, broker: int, readings: Readings) -> Outcome:
    offset, mark = state.term.offsets[broker], state.replicas[state.leader].high_watermark
    if offset < mark:
        return Rejected("isr.member.at-or-above-hw", f"offset {offset}, high watermark {mark}")
    start = state.term.end_at_election
    if readings.isr_entry == "end-at-election" and offset < start:
        return Rejected(
            "isr.entry.end-at-election", f"offset {offset}, the leader began with {start}"
        )
    return _write_isr(state, state.term.isr | {broker})


def _leave(state: Replication, broker: int, readings: Readings) -> Outcome:
    return _write_isr(state, state.term.isr - {broker})


@checks
def _write_isr(state: Replication, isr: frozenset[int]) -> Outcome:
    """Write the stored ISR where it still has the version that the leader knows."""
    if state.term.version != state.version:
        return Rejected(
            "isr.write.conditional", f"version {state.term.version}, it is {state.version}"
        )
    version = state.version + 1
    term = replace(state.term, isr=isr, version=version)
    return Accepted(replace(state, isr=isr, version=version, term=term), ("isr.write.conditional",))


def _remove(state: Replication, broker: int, readings: Readings) -> Outcome:
    return Accepted(replace(state, isr=state.isr - {broker}, version=state.version + 1))


def _refresh(state: Replication, leader: int, readings: Readings) -> Outcome:
    term = replace(state.term, isr=state.isr, version=state.version)
    return Accepted(replace(state, term=term))


@checks
def _elect(state: Replication, broker: int, readings: Readings) -> Outcome:
    if broker not in state.isr:
        return Rejected("election.clean", f"{broker} is not in sync, {sorted(state.isr)} are")
    epoch, version, ids = state.leader_epoch + 1, state.version + 1, range(len(state.replicas))
    replica = replace(state.replicas[broker], leader_epoch=epoch, request=None)
    pseudo = frozenset(ids) if readings.lag_initial == "now" else state.isr
    term = Term(len(replica.log), version, state.isr, pseudo, (0,) * len(ids))
    after = replace(state, leader=broker, leader_epoch=epoch, version=version, term=term)
    return Accepted(_show(_set(after, broker, replica), readings), ("election.clean",))


@clause("follower.truncates-first", "follower.truncation.common-prefix")
def _follow(state: Replication, broker: int, readings: Readings) -> Outcome:
    replica, leader = state.replicas[broker], state.replicas[state.leader]
    end = {
        "own-high-watermark": replica.high_watermark,
        "leader-end": state.term.end_at_election,
        "common-prefix": count_common(replica.log, leader.log),
    }[readings.follower_truncation]
    log = replica.log[:end]
    mark = min(replica.high_watermark, len(log))
    request = Request(state.leader_epoch, len(log))
    return Accepted(_set(state, broker, Replica(log, mark, state.leader_epoch, request)))


@clause("hw.restored-not-raised")
def restore_mark(saved: int | None, end: int) -> int:
    """Return the high watermark with which a replica is taken up again, its log ending at `end`.

    What was saved last is a mark that it had, of which its disk may have lost records; None where
    nothing was saved.

    >>> restore_mark(4, 6), restore_mark(9, 6), restore_mark(None, 6)
    (4, 6, 0)
    """
    return 0 if saved is None else min(saved, end)


def count_common(log: Log, other: Log) -> int:
    """Return how many records two logs share from their start.

    >>> count_common((0, 0, 1), (0, 2))
    1
    """
    pairs = enumerate(zip(log, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(log), len(other)))


STEPS: Final[Mapping[type[Action], Callable[[Replication, int, Readings], Outcome]]] = {
    Append: _append,
    Serve: _serve,
    Answer: _answer,
    Lag: _lag,
    CatchUp: _catch_up,
    Advance: _advance,
    Join: _join,
    Leave: _leave,
    Remove: _remove,
    Refresh: _refresh,
    Elect: _elect,
    Follow: _follow,
}
ACTIONS: Final[Mapping[str, type[Action]]] = {
    "catch-up" if kind is CatchUp else kind.__name__.lower(): kind for kind in STEPS
}
"""By name, in the order in which they are looked at."""
