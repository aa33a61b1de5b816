"""The judge of what concerns a cluster as a whole: elections, and what is none of ours."""

from dataclasses import replace
from typing import Any

from reassure_judge.history import (
    BadMended,
    BadRequestRemoved,
    BadRequestSeen,
    BrokerRegistered,
    ControllerGone,
    ElectionSeen,
    Forbidden,
    SeenWrite,
    Unreadable,
)
from reassure_judge.moments import Witness
from reassure_judge.rules import Rules
from reassure_judge.verdicts import Location, Tally, Violation
from reassure_model.controllers import Controllership, find_vacancy
from reassure_model.lives import find_broken_registration
from reassure_model.outcome import Rejected
from reassure_model.partition import Environment
from reassure_spec.clauses import clause
from reassure_spec.znodes import CONTROLLER


class ClusterTracker:
    """Follows what concerns a cluster as a whole: elections, and what is none of ours."""

    def __init__(
        self, rules: Rules[Any, Any], tally: Tally, witness: Witness | None = None
    ) -> None:
        self.rules = rules
        self.controllership = Controllership()
        """By the last write of an election; of those that take two the second names nobody."""
        self._office: int | None = None
        """Who is in `/controller`."""
        self.tally = tally
        self.bad: dict[str, BadRequestSeen] = {}
        self.across = rules.make_tracker(tally)
        if self.across is not None:
            self.across.witness = witness
        self._met = False
        """Whether a controller or a broker was seen: not where only some topics are judged."""
        self._reported: set[str] = set()
        self._vacancy: Rejected | None = None
        """What was owed by those who could be elected when it was looked at last, and reported."""

    def feed(self, seen: SeenWrite) -> None:
        """Judge one observation and take it over."""
        match seen.event:
            case ControllerGone():
                self._office = None
                self.controllership = replace(self.controllership, broker=None)
            case ElectionSeen():
                self._met = True
                self._on_election(seen, seen.event)
            case BrokerRegistered(ephemeral):
                self._met = True
                broken = find_broken_registration(ephemeral=ephemeral)
                if broken is None:
                    self.tally.count(("broker.registered-ephemeral",))
                else:
                    self._violate(seen, broken.clause, broken.reason)
            case BadRequestSeen():
                self.bad[seen.path] = seen.event
            case BadRequestRemoved():
                found = self.bad.pop(seen.path)
                self._on_removal(seen, found)
            case BadMended():
                self.bad.pop(seen.path, None)
            case Forbidden(clause_id, reason):
                self._violate(seen, clause_id, reason)
            case Unreadable(reason):
                self._violate(seen, "znode.well-formed", reason)
        if self.across is not None:
            self.across.feed(seen)

    def _on_election(self, seen: SeenWrite, election: ElectionSeen) -> None:
        before, vacant = self.controllership, self._find_vacancy()
        self.controllership = Controllership(election.broker, election.epoch)
        self._office = self._office if election.broker is None else election.broker
        if vacant and not self._find_vacancy():
            self.tally.count(("controller.election.held",))
        # A history that begins in the middle does not say which epoch came before.
        if seen.given or (before.epoch == 0 and seen.doubt.strangers):
            return
        outcome = self.rules.accept_election(before, election)
        if isinstance(outcome, Rejected):
            self._violate(seen, outcome.clause, outcome.reason)
            return
        for clause_id in outcome.clauses:
            self.tally.count((clause_id,))

    def _find_vacancy(self) -> Rejected | None:
        return find_vacancy(replace(self.controllership, broker=self._office))

    @clause("controller.write.by-controller", "controller.write.epoch-checked")
    def _on_removal(self, seen: SeenWrite, found: BadRequestSeen) -> None:
        """Judge who removed what cannot be used; its maker may do so as well."""
        author = seen.author
        if author.is_client:
            return
        self.tally.count((found.clause, *author.tested))
        self.tally.leave_open(author.undecided, seen.place)
        for rejected in author.broken:
            self._violate(seen, rejected.clause, rejected.reason)

    def is_owed(self, around: Environment) -> bool:
        """Whether what must be gone is there still, or what must be there is not."""
        if self.bad or self._find_vacancy() is not None:
            return True
        return self.across is not None and bool(self.across.find_debts(around))

    def rest(
        self,
        chroot: str,
        zxid: int,
        around: Environment,
        untouched: frozenset[str],
        time_ms: int = 0,
    ) -> None:
        """Judge what must be gone, and what must be there, when nothing is left to do."""
        self.miss_controller(chroot, zxid, time_ms)
        if self.across is not None:
            self.across.rest(chroot, zxid, around, time_ms)
        for kept in self.rules.kept_at_rest if self._met else ():
            self.tally.count((kept,))
        for path, found in self.bad.items():
            if path in self._reported:
                continue
            self._reported.add(path)
            unseen = path in untouched
            broken = self.rules.find_leftover(found.clause, path, found.reason, untouched=unseen)
            expected = "the znode is removed with a warning, nothing else changes"
            self.tally.violations.append(
                Violation.unwritten(
                    Location(zxid, chroot, "", -1, path), broken, expected, time_ms=time_ms
                )
            )

    @clause("controller.election.held")
    def miss_controller(self, chroot: str, zxid: int, time_ms: int = 0) -> None:
        """Judge that somebody is elected, as whoever could be has had the time."""
        before, self._vacancy = self._vacancy, self._find_vacancy()
        if self._vacancy is not None and before is None:
            place = Location(zxid, chroot, "", -1, CONTROLLER)
            expected = "a controller is elected"
            self.tally.violations.append(
                Violation.unwritten(place, self._vacancy, expected, time_ms=time_ms)
            )

    def _violate(self, seen: SeenWrite, clause_id: str, reason: str) -> None:
        broken, before = Rejected(clause_id, reason), f"epoch {seen.around.controller_epoch}"
        self.tally.violations.append(seen.violate(broken, before, str(seen.event)))
