"""Where verdicts on lines are written down: what was put to the test, broken, or left open."""

from collections.abc import Iterable
from typing import NamedTuple

from reassure_judge.verdicts import Place, Tally, Violation, binds
from reassure_spec.observations import Observation


class Line(NamedTuple):
    """One observation and where it stands."""

    file: str
    number: int
    """Line of the file, counted from 1."""
    said: Observation

    @property
    def place(self) -> Place:
        """Where it stands."""
        said = self.said
        return Place(0, said.chroot, said.topic, said.partition, f"{self.file}:{self.number}")


class Broken(NamedTuple):
    """A clause that a line breaks."""

    clause: str
    reason: str
    expected: str
    before: str = ""
    after: str = ""


class Ledger:
    """What judging the lines of one history comes to."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self._open: list[Broken] = []

    def keep(self, clause: str) -> None:
        """Note that a clause was put to the test and kept, where no evidence is at hand."""
        self.tally.passed[(clause,)] += 1

    def check(
        self,
        line: Line,
        clause: str,
        reason: str | None,
        *,
        certain: bool = True,
        before: object = "",
        after: object = "",
        expected: str = "",
    ) -> bool:
        """Note that a line puts a clause to the test; `reason` says why it breaks it, if it does.

        What is broken is held back until `close`, so that one line has one violation. Where it is
        not `certain` it is left open instead. Answers whether the clause may be kept.
        """
        if reason is None:
            self.tally.passed[(clause,)] += 1
        elif certain:
            self._open.append(Broken(clause, reason, expected, str(before), str(after)))
        else:
            self.tally.leave_open((clause,), line.place)
        return reason is None or not certain

    def close(self, line: Line) -> None:
        """End a line: the first clause that it broke is its violation, the others are besides.

        Advice that it did not follow stands for itself, and hides nothing.
        """
        if not self._open:
            return
        binding = [found for found in self._open if binds(found.clause)]
        if binding:
            self._note(line, binding[0], [found.clause for found in binding[1:]])
        for found in self._open:
            if found not in binding:
                self._note(line, found, ())
        self._open.clear()

    def _note(self, line: Line, broken: Broken, besides: Iterable[str]) -> None:
        said = line.said
        self.tally.violations.append(
            Violation(
                zxid=0,
                chroot=said.chroot,
                topic=said.topic,
                partition=said.partition,
                clause=broken.clause,
                path="",
                session=0,
                before=broken.before,
                after=broken.after,
                reason=broken.reason,
                expected=broken.expected,
                author=f"{said.writer}, run {said.run}, its line {said.sequence}",
                time_ms=getattr(said.what, "time_ms", None) or 0,
                besides=tuple(clause for clause in besides if clause != broken.clause),
                file=line.file,
                line=line.number,
            )
        )
