"""Carries out a schedule on a cluster, and looks after members that end themselves."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from reassure_lab.cluster.supervisor import ProcessCluster
from reassure_lab.soak.checker import Breach
from reassure_lab.soak.operations import History
from reassure_lab.soak.proxies import ProxyNetwork, Trouble
from reassure_lab.soak.schedule import BROKERS, Fault, Schedule, role_of

REVIVE_S: Final = 1.0
"""How long a member that has ended itself stays away."""


IN_VAIN: Final = "no ZooKeeper at"
"""What a member says that was started while no server answered: it ends as it should, with 69."""


@dataclass(slots=True)
class Faults:
    """The faults of one soak. Times are seconds since the load began."""

    cluster: ProcessCluster
    network: ProxyNetwork
    history: History
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
        self._due.clear()
        self._look_for_the_dead(0.0)
        self._due.clear()
        for member in self.cluster.members():
            if not member.alive:
                self._revive(member.name)
            elif member.stopped:
                self._resume(member.name)

    def _begin(self, fault: Fault) -> None:
        name = fault.member
        if fault.kind != "kill" and fault.kind != "pause":
            self._spoil(self._list_pairs(name, fault.peer), fault.kind, fault.ends_s)
            self.history.note("cuts", trouble=fault.kind, fault=str(fault))
            return
        leader = self.find_leader(fault.behind) if fault.behind else None
        if leader is not None and leader not in self._away:
            name = leader
            self.history.note("struck", leader=leader, behind=fault.behind)
        if name in self._away:
            self.history.note("skipped", fault=str(fault))  # it has ended itself just now
            return
        if fault.kind == "pause":
            self._away.add(name)
            self.cluster.pause(name)
            self.history.note("pauses", fault=str(fault))
            self._due.append((fault.ends_s, partial(self._resume, name)))
            return
        dies_s = fault.at_s + fault.alone_s
        if fault.alone_s:
            fetching = [(source, target) for target, source in self._list_pairs(name, BROKERS)]
            self._spoil(fetching, "cut", fault.ends_s)
        self._due.append((dies_s, partial(self._kill, name, fault)))

    def _kill(self, name: str, fault: Fault) -> None:
        if name in self._away:
            self.history.note("skipped", fault=str(fault))
            return
        self._away.add(name)
        self.cluster.kill(name)
        self._note_kill(role_of(name), str(fault))
        self._due.append((fault.ends_s, partial(self._revive, name, fault.crash_at)))

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

    def _note_kill(self, kind: str, fault: str) -> None:
        self.history.note("kills", fault=fault)
        self.history.count(f"kills_{kind}")

    def _revive(self, name: str, crash_at: str = "") -> None:
        options = ("--crash-at", crash_at) if crash_at else ()
        self.cluster.restart(name, wait_s=0, options=options)
        self._armed[name] = crash_at
        self._away.discard(name)
        self.history.note("revivals", member=name, crash_at=crash_at)

    def _resume(self, name: str) -> None:
        self.cluster.resume(name)
        self._away.discard(name)
        self.history.note("resumptions", member=name)

    def _look_for_the_dead(self, now_s: float) -> None:
        """Have members started again that have ended themselves, as they were told to or not."""
        for member in self.cluster.members():
            if member.alive or member.name in self._away:
                continue
            crash_at = self._armed.pop(member.name, "")
            if crash_at:
                self._note_kill("crash_point", f"{member.name} before {crash_at}")
            else:
                self._note_end(member.name)
            self._away.add(member.name)
            self._due.append((now_s + REVIVE_S, partial(self._revive, member.name)))

    def _note_end(self, name: str) -> None:
        """Write down that a member has ended by itself, with the last that it said."""
        log = self.cluster.get_log(name).read_text(encoding="utf-8", errors="replace")
        last = log.rstrip().rpartition("\n")[2]
        if IN_VAIN in last:
            self.history.note("starts_in_vain", member=name, last=last)
            return
        self.breaches.append(Breach("ended-as-asked", f"{name} has ended by itself: {last}"))
        self.history.note("ended_by_themselves", member=name, last=last)
