"""Carries out a schedule on a cluster, and looks after members that end themselves."""

import resource
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, cast, get_args

from reassure_lab.cluster.supervisor import ProcessCluster
from reassure_lab.soak.guarantees import Breach
from reassure_lab.soak.proxies import ProxyNetwork, Trouble
from reassure_lab.soak.schedule import (
    ALL,
    BROKERS,
    Fault,
    Schedule,
    list_met,
    role_of,
)
from reassure_lab.soak.seen_events import HistoryWriter

REVIVE_S: Final = 1.0
"""How long a member that has ended itself stays away."""
FULL_BYTES: Final = 1
CRASH: Final = "before"
"""How a kill is told that a controller did to itself, where it was told to."""


IN_VAIN: Final = "no ZooKeeper at"
"""What a member says that was started while no server answered: it ends as it should, with 69."""


@dataclass(slots=True)
class Faults:
    """The faults of one soak. Times are seconds since the load began."""

    cluster: ProcessCluster
    network: ProxyNetwork
    history: HistoryWriter
    schedule: Schedule
    find_leader: Callable[[str], str | None]
    """Says who leads a partition that a broker is assigned to and out of sync in."""
    breaches: list[Breach] = field(default_factory=list)
    """Members that ended though nobody asked them to."""
    _due: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    _away: set[str] = field(default_factory=set)
    """Members that are dead or stopped, until what is due brings them back."""
    _spoilt: list[tuple[str, str]] = field(default_factory=list)
    """Between whom connections were spoilt; what is not healed yet is, at the end."""
    _armed: dict[str, str] = field(default_factory=dict)
    """By controller: where it is to end itself in the life that it has now."""

    def __post_init__(self) -> None:
        self._due = [(one.at_s, partial(self._begin, one)) for one in self.schedule.faults]

    def go_on(self, now_s: float) -> None:
        """Do what is due, and see who has ended."""
        for due in [one for one in self._due if one[0] <= now_s]:
            self._due.remove(due)
            due[1]()
        self._look_for_the_dead(now_s)

    def end(self) -> None:
        """Let nothing be wrong any more, and everybody be there who should."""
        for pair in self._spoilt:
            self.network.heal(*pair)
        for member in self.cluster.members():
            if role_of(member.name) == "broker":
                self._fill(member.name)
        self._due.clear()
        self._look_for_the_dead(0.0)
        self._due.clear()
        for member in self.cluster.members():
            if not member.alive:
                self.bring_back(member.name)
            elif member.stopped:
                self._resume(member.name)

    def _begin(self, fault: Fault) -> None:
        if fault.member.startswith(ALL):
            self.history.note(fault.member, fault.member)
            for one in list_met(fault.member, [member.name for member in self.cluster.members()]):
                self._kill(one, fault)
            return
        name = fault.member
        if fault.kind in get_args(Trouble):
            trouble = cast("Trouble", fault.kind)
            self._spoil(self._list_pairs(name, fault.peer), trouble, fault.ends_s)
            self.history.note(name, fault.kind, str(fault))
            return
        leader = self.find_leader(fault.behind) if fault.behind else None
        if leader is not None and leader not in self._away:
            name = leader
            self.history.note(leader, "struck", f"{fault.behind} is behind")
        if name in self._away:
            self.history.note(name, "passed over", str(fault))  # it has ended itself just now
            return
        if fault.kind == "full disk":
            if not self.cluster.is_ready(name):  # to start on a full disk is refused, as it should
                self.history.note(name, "passed over", str(fault))
                return
            self._fill(name, full=True)
            self.history.note(name, fault.kind, str(fault))
            self._due.append((fault.ends_s, partial(self._fill, name)))
            return
        if fault.kind == "pause":
            self._away.add(name)
            self.cluster.pause(name)
            self.history.note(name, "pause", str(fault))
            self._due.append((fault.ends_s, partial(self._resume, name)))
            return
        dies_s = fault.at_s + fault.alone_s
        if fault.alone_s:
            fetching = [(source, target) for target, source in self._list_pairs(name, BROKERS)]
            self._spoil(fetching, "cut", fault.ends_s)
        self._due.append((dies_s, partial(self._kill, name, fault)))

    def _kill(self, name: str, fault: Fault) -> None:
        if name in self._away:
            self.history.note(name, "passed over", str(fault))
            return
        self._away.add(name)
        self.cluster.kill(name)
        self.history.note(name, "kill", str(fault))
        self._due.append((fault.ends_s, partial(self.bring_back, name, fault.crash_at)))

    def _list_pairs(self, source: str, target: str) -> list[tuple[str, str]]:
        """Return between whom connections are spoilt: who connects, and to whom."""
        names = [member.name for member in self.cluster.members()]
        targets = names if target == BROKERS else [target]
        return [
            (source, one)
            for one in targets
            if one == target or (role_of(one) == "broker" and one != source)
        ]

    def _spoil(self, pairs: list[tuple[str, str]], trouble: Trouble, ends_s: float) -> None:
        for pair in pairs:
            self.network.spoil(*pair, trouble)
            self._spoilt.append(pair)
            self._due.append((ends_s, partial(self.network.heal, *pair)))

    def _fill(self, name: str, *, full: bool = False) -> None:
        """Let no file of a member become longer, which is what a full disk does; or let it."""
        pid = self.cluster.member(name).pid
        if pid is not None:
            most = FULL_BYTES if full else resource.RLIM_INFINITY
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

    def keep_away(self, name: str) -> None:
        """Kill a member, and leave it dead."""
        self._away.add(name)
        self.cluster.kill(name)
        self.history.note(name, "kill", "until it is brought back")

    def bring_back(self, name: str, crash_at: str = "") -> None:
        """Start a member again; a controller may end itself where it is told to."""
        options = ("--crash-at", crash_at) if crash_at else ()
        self.cluster.restart(name, wait_s=0, options=options)
        self._armed[name] = crash_at
        self._away.discard(name)
        self.history.note(name, "revive", crash_at)

    def _resume(self, name: str) -> None:
        self.cluster.resume(name)
        self._away.discard(name)
        self.history.note(name, "resume")

    def _look_for_the_dead(self, now_s: float) -> None:
        """Have members started again that have ended themselves, as they were told to or not."""
        for member in self.cluster.members():
            if member.alive or member.name in self._away:
                continue
            crash_at = self._armed.pop(member.name, "")
            if crash_at:
                self.history.note(member.name, "kill", f"{CRASH} {crash_at}")
            else:
                self._note_end(member.name)
            self._away.add(member.name)
            self._due.append((now_s + REVIVE_S, partial(self.bring_back, member.name)))

    def _note_end(self, name: str) -> None:
        """Write down that a member has ended by itself, with the last that it said."""
        log = self.cluster.get_log(name).read_text(encoding="utf-8", errors="replace")
        last = log.rstrip().rpartition("\n")[2]
        if IN_VAIN in last:
            self.history.note(name, "start in vain", last)
            return
        self.breaches.append(Breach("ended-as-asked", f"{name} has ended by itself: {last}"))
        self.history.note(name, "ended", last)
