"""One leader with a clock, and the true logs of all replicas beside what it has noted of them.

Lag is measured here, in milliseconds: the leader learns of its followers from their fetch requests
only, and the definitions are asked of the logs as nobody can see them (`compute_views`), so that
both can stand side by side. Nothing here is stored and nobody else is elected.
"""

from dataclasses import dataclass, replace

from reassure_model.environment import NotPossible
from reassure_model.outcome import Accepted
from reassure_model.protocols.kafka_4485 import (
    EndHistory,
    Follower,
    Leader,
    compute_views,
    end_at,
    enter_before,
    evaluate,
    evaluate_before,
    fetch,
    start_leader,
)
from reassure_model.protocols.kafka_4485 import View as Defined
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import ReplicaList


@dataclass(frozen=True, slots=True)
class Settings:
    """What an operator sets, and the rule that the leader goes by."""

    lag_ms_max: int
    rule: str = "lag"
    """`lag` for the rule of the document, `before` for the one that it replaces."""


@dataclass(frozen=True, slots=True)
class Passed:
    """What was seen while time passed, evaluated at every millisecond."""

    ms: int = 0
    in_sync: int = 0
    """For how many of them the first follower was in the ISR."""
    entries: int = 0
    """How often it entered the pseudo-ISR."""
    behind: int = 0
    """For how many of them the high watermark was behind the leader's end."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A leader, and what nobody sees as a whole."""

    leader: Leader
    logs: tuple[EndHistory, ...]
    """How the end of each log moved, aligned with the leader's `replicas`."""
    start_ms: int
    now_ms: int
    passed: Passed = Passed()
    """What was seen when time passed last."""

    def get_noted(self, follower: int) -> Follower:
        """Return what the leader has noted of a follower."""
        return self.leader.followers[self.followers.index(follower)]

    @property
    def followers(self) -> ReplicaList:
        """The replicas that follow."""
        return self.leader.replicas[1:]

    def get_end(self, follower: int) -> int:
        """Return where a follower's log ends. Raises NotPossible for what does not follow."""
        if follower not in self.followers:
            raise NotPossible(f"{follower} is no follower; they are: {self.followers}")
        return self.logs[self.leader.replicas.index(follower)][-1][1]


# What happens -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passes."""

    ms: int = 1


@dataclass(frozen=True, slots=True)
class Write:
    """The leader writes records."""

    records: int = 1


@dataclass(frozen=True, slots=True)
class Fetch:
    """A follower fetches, and takes some of the response."""

    replica: int
    take: int | None = None
    """How many records; without it all."""
    read_ms: tuple[int, int] | None = None
    """When the leader reads its clock and its end, or the other way round; without it now."""


@dataclass(frozen=True, slots=True)
class Truncate:
    """A follower's log is cut."""

    replica: int
    end: int


@dataclass(frozen=True, slots=True)
class Evaluate:
    """The leader evaluates pseudo-ISR, high watermark and ISR."""


@dataclass(frozen=True, slots=True)
class Pass:
    """Time passes, and every millisecond the leader writes and evaluates."""

    ms: int
    gap_ms: int
    """How long it is from one fetch of the first follower to the next."""
    records: int = 1
    behind_ms: int | None = None
    """How long before a fetch the leader ended where it begins; without it the gap."""


Action = Tick | Write | Fetch | Truncate | Evaluate | Pass


@clause("lag.clock-before-end")
def read_clock_and_end(
    leader: EndHistory, first_ms: int, second_ms: int, readings: Readings
) -> tuple[int, int]:
    """Return the time and the leader's end that a leader notes when it reads them one by one.

    The clock first is sound: the end is then never older than its time says (finding watermark-6).

    >>> read_clock_and_end(((0, 1),), -1, 0, Readings())
    (-1, 1)
    """
    if readings.lag_clock_read == "after-end":
        return second_ms, end_at(leader, first_ms)
    return first_ms, end_at(leader, second_ms)


def make_watched(
    replicas: ReplicaList, end: int, mark: int, isr: ReplicaList, now_ms: int, readings: Readings
) -> Watched:
    """Return a leader that begins now with a log and a high watermark; others have empty logs."""
    leader = start_leader(replicas, end, now_ms, isr, readings)
    logs = tuple(((now_ms, end if r == replicas[0] else 0),) for r in replicas)
    return Watched(replace(leader, high_watermark=mark), logs, now_ms, now_ms)


def step(
    watched: Watched, action: Action, settings: Settings, readings: Readings
) -> Accepted[Watched]:
    """Take one action. Raises NotPossible where it names a replica that does not follow."""
    match action:
        case Tick(ms):
            return Accepted(replace(watched, now_ms=watched.now_ms + ms))
        case Write(records):
            return Accepted(_write(watched, records))
        case Fetch(replica, take, read_ms):
            now_ms, end = watched.now_ms, watched.leader.end
            if read_ms is not None:
                now_ms, end = read_clock_and_end(watched.logs[0], *read_ms, readings)
            taken = end - watched.get_end(replica) if take is None else take
            return Accepted(_fetch(watched, replica, now_ms, end, taken, settings, readings))
        case Truncate(replica, end):
            watched.get_end(replica)  # it has to follow
            return Accepted(_move_end(watched, replica, end))
        case Evaluate():
            return Accepted(_evaluate(watched, settings))
        case Pass():  # one way: there is no other action
            return Accepted(_pass(watched, action, settings, readings))


def _move_end(watched: Watched, replica: int, end: int) -> Watched:
    at = watched.leader.replicas.index(replica)
    log = (*watched.logs[at], (watched.now_ms, end))
    return replace(watched, logs=(*watched.logs[:at], log, *watched.logs[at + 1 :]))


def _write(watched: Watched, records: int) -> Watched:
    leader = replace(watched.leader, end=watched.leader.end + records)
    return _move_end(replace(watched, leader=leader), leader.replicas[0], leader.end)


def _fetch(
    watched: Watched,
    replica: int,
    now_ms: int,
    end: int,
    taken: int,
    settings: Settings,
    readings: Readings,
) -> Watched:
    """Note a fetch at the time and with the leader's end as they were read."""
    offset, leader = watched.get_end(replica), watched.leader
    noted = fetch(replace(leader, end=end), replica, offset, now_ms, readings, settings.rule)
    noted = replace(noted, end=leader.end)
    if settings.rule == "before":
        noted = enter_before(noted, replica)
    return _move_end(replace(watched, leader=noted), replica, offset + taken)


def _evaluate(watched: Watched, settings: Settings) -> Watched:
    conclude = evaluate if settings.rule == "lag" else evaluate_before
    return replace(watched, leader=conclude(watched.leader, watched.now_ms, settings.lag_ms_max))


def _pass(watched: Watched, action: Pass, settings: Settings, readings: Readings) -> Watched:
    replica, gap_ms = watched.followers[0], action.gap_ms
    behind_ms = gap_ms if action.behind_ms is None else action.behind_ms
    in_sync = entries = behind = 0
    for passed_ms in range(1, action.ms + 1):
        before, now_ms = watched.leader.pseudo_isr, watched.now_ms + 1
        watched = _write(replace(watched, now_ms=now_ms), action.records)
        if passed_ms % gap_ms == 0:
            recent = watched.logs[0][-behind_ms - 2 :]
            taken = max(end_at(recent, now_ms + gap_ms - behind_ms) - watched.get_end(replica), 0)
            end = watched.leader.end
            watched = _fetch(watched, replica, now_ms, end, taken, settings, readings)
        watched = _evaluate(watched, settings)
        leader = watched.leader
        in_sync += replica in leader.isr
        entries += replica in leader.pseudo_isr and replica not in before
        behind += leader.high_watermark < leader.end
    return replace(watched, passed=Passed(action.ms, in_sync, entries, behind))


def define(watched: Watched, settings: Settings) -> Defined:
    """Return what the definitions say now, evaluated at every millisecond so far."""
    times_ms = range(watched.start_ms, watched.now_ms + 1)
    return compute_views(watched.leader.replicas, watched.logs, times_ms, settings.lag_ms_max)[-1]
