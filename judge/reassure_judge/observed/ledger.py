"""Where verdicts on lines are written down: what was put to the test, broken, or left open."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from reassure_judge.verdicts import Location, Tally, Violation, binds
from reassure_model.outcome import Rejected
from reassure_spec.observations import Observation


class Line(NamedTuple):
    """One observation and where it stands."""

    file: str
    number: int
    """Line of the file, counted from 1."""
    said: Observation

    @property
    def place(self) -> Location:
        """Where it stands."""
        said = self.said
        return Location(0, said.chroot, said.topic, said.partition, f"{self.file}:{self.number}")


class Evidence(NamedTuple):
    """What shows that a line breaks a clause."""

    expected: str = ""
    """What would have been allowed, in words."""
    before: str = ""
    after: str = ""


NOTHING_SHOWN: Final = Evidence()


class Ledger:
    """What judging the lines of one history comes to."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self._open: list[tuple[Rejected, Evidence]] = []

    def keep(self, clause: str) -> None:
        """Note that a clause was put to the test and kept, where no evidence is at hand."""
        self.tally.passed[(clause,)] += 1

    def check(
        self,
        line: Line,
        clause: str,
        kept: bool | str,
        evidence: Evidence = NOTHING_SHOWN,
        *,
        certain: bool = True,
    ) -> bool:
        """Note that a line puts a clause to the test: true, or in words why it breaks it.

        What is broken is held back until `close`, so that one line has one violation. Where it is
        not `certain` it is left open instead. Answers whether the clause may be kept.
        """
        if not isinstance(kept, str):
            self.tally.passed[(clause,)] += 1
        elif certain:
            self._open.append((Rejected(clause, kept), evidence))
        else:
            self.tally.leave_open((clause,), line.place)
        return not (isinstance(kept, str) and certain)

    def close(self, line: Line) -> None:
        """End a line: the first clause that it broke is its violation, the others are besides.

        Advice that it did not follow stands for itself, and hides nothing.
        """
        if not self._open:
            return
        binding = [found for found in self._open if binds(found[0].clause)]
        if binding:
            self._note(line, *binding[0], [broken.clause for broken, _ in binding[1:]])
        for found in self._open:
            if found not in binding:
                self._note(line, *found, ())
        self._open.clear()

    def _note(
        self, line: Line, broken: Rejected, evidence: Evidence, besides: Iterable[str]
    ) -> None:
        said, (expected, before, after) = line.said, evidence
        time_ms = getattr(said.what, "time_ms", None) or 0
        place = line.place._replace(path="")
        found = replace(
            Violation.unwritten(place, broken, expected, before, time_ms),
            after=after,
            author=f"{said.writer}, run {said.run}, its line {said.sequence}",
            besides=tuple(clause for clause in besides if clause != broken.clause),
            file=line.file,
            line=line.number,
        )
        self.tally.violations.append(found)
