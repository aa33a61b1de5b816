"""One archive, or one share of its topics, on its way through both passes.

Every file is read in order, and judged as it is read: memory is needed for the partitions, not for
the transactions. A share of several reads all the files as well, skips what is written about topics
that are another's, and judges its own (`Share`), so that what shares come to adds up. An
`ArchiveAudit` can be put aside between two batches (pickled) and goes on elsewhere.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from reassure_judge.rules import Rules
from reassure_judge.transaction_reader import BEFORE
from reassure_judge.verdicts import Violation
from reassure_pipeline.archives.archive import (
    Archive,
    Beginning,
    FileFacts,
    check_joint,
    find_times,
    open_piece,
)
from reassure_pipeline.archives.beginnings import find_open, find_restart, load_base
from reassure_pipeline.audit.archive_report import (
    ArchiveReport,
    find_gaps_amid,
    join_facts,
    report_files,
)
from reassure_pipeline.audit.jobs import Limits
from reassure_pipeline.audit.passes import (
    Judged,
    KnownHistory,
    Options,
    Passes,
    Share,
    list_settled,
    settle_chapters,
)
from reassure_pipeline.checkpoints.audits import Keeper, Mark, Planned, mark_piece
from reassure_pipeline.fleet.totals import MoveRecord
from reassure_zookeeper.ensemble import Hole, Piece
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.txnlog import is_next

Pause = Callable[[Piece, int], None]
"""Called between two batches, with a piece and how many bytes of it were read."""


class ShareSum(NamedTuple):
    """What judging an archive, or a share of its topics, came to."""

    known: KnownHistory
    judged: Judged
    archive: Archive
    files: list[FileFacts]
    beginnings: tuple[Beginning, ...]
    holes: tuple[Hole, ...]
    """Those before what is judged."""
    judged_to: int | None
    """The last transaction that was judged, where a budget ended it."""
    fresh: int
    """How many transactions were judged that had not been before."""

    def add(self, other: "ShareSum") -> None:
        """Take in what another share of the archive came to; this is the first one's."""
        self.known.add(other.known)
        self.judged.add(other.judged)

    def report(self) -> ArchiveReport:
        """Report what judging the archive came to, all shares together."""
        found = self.archive, self.files, self.known, self.judged, self.beginnings
        return report_files(*found, self.holes, self.judged_to)


class ArchiveAudit:
    """One archive on its way through both passes; it can be put aside between two batches."""

    def __init__(
        self,
        archive: Archive,
        rules: Rules[Any, Any],
        options: Options,
        share: Share,
        *,
        rows: bool = False,
    ) -> None:
        """Begin; with `rows` every reassignment is told, for the tables. Raises as `load_base`."""
        base = load_base(archive)
        self.archive = archive
        self.moves: list[MoveRecord] = []
        """Those that have ended, where they are told."""
        tell = self.moves.append if rows else None
        self._passes = Passes(archive, base, rules, options, share, tell)
        self._base_holes = () if base is None else base.holes
        self._after = (archive.since or 0) - 1 if base is None else base.zxid
        """The last zxid that is in the base, or was judged."""
        self._met: frozenset[Hole] = frozenset()
        """The holes that were come to so far."""
        self._plans: list[Planned] = []
        self._before, self._base = 0, self._after
        """How many transactions were read that are in the base, and its last zxid."""
        self._seen = -1
        """The last zxid of these."""
        self.done = self._begun = 0
        """How many transactions were judged, and how many of them before this run."""
        self._files: list[FileFacts] = []
        """Of the pieces that were begun."""
        self._marks: list[Mark] = []
        """Of those that were read, the last one not included."""
        self._offset = 0
        """The byte of the last piece behind the last batch that was judged whole; 0 for none."""
        self._stopped = False
        self._taken_up = 0, 0, 0

    def take_up(self, archive: Archive) -> None:
        """Go on with what was put aside, in the archive as it is found now."""
        self.archive, self._begun = archive, self.done
        self._taken_up = self.done, len(self._files), self._offset

    def __getstate__(self) -> dict[str, Any]:
        """Return what is put aside: the archive is looked for anew."""
        return {name: value for name, value in self.__dict__.items() if name != "archive"}

    def read(self, limits: Limits, pause: Pause) -> None:
        """Judge on from where it was, as far as the limits allow.

        Raises what reading logs raises.
        """
        pieces, self._stopped = self.archive.pieces, False
        for number in range(max(0, len(self._files) - 1), len(pieces)):
            if number == len(self._files):
                if number:
                    self._marks.append(mark_piece(pieces[number - 1], self._offset))
                self._files.append(FileFacts(pieces[number].path))
                self._offset = 0
            self._read_piece(pieces[number], limits, pause)
            if self._stopped:
                return

    def _read_piece(self, piece: Piece, limits: Limits, pause: Pause) -> None:
        facts = self._files[-1]
        file = open_piece(piece)
        file.decode = self._passes.make_decoder()
        if self._offset:
            file.offset, file.last_zxid = self._offset, facts.last_zxid
        for batch in file.batches():
            if self._begins_anew(piece, batch[0].zxid):
                self._read_piece(piece, limits, pause)
                return
            if batch[0].zxid <= self._after:
                self._count_before(batch)
                batch = [each for each in batch if each.zxid > self._after]
            granted = limits.grant(self.done - self._begun, len(batch))
            if batch[:granted]:
                self._judge(batch[:granted])
            if granted < len(batch):
                self._stopped = True
                return
            self._offset, facts.last_zxid = file.offset, file.last_zxid
            pause(piece, file.offset - piece.start)
        self._offset, facts.tail = file.offset, file.tail

    def _count_before(self, batch: Sequence[Transaction]) -> None:
        """Count what is in the base, each once however often it is read."""
        for each in batch:
            if self._seen < each.zxid <= self._base:
                self._before += 1
                self._seen = each.zxid

    def _begins_anew(self, piece: Piece, zxid: int) -> bool:
        """See how a batch goes on from the last; answer whether judging begins anew behind it."""
        facts = self._files[-1]
        if not self._offset:
            facts.first_zxid = zxid
            return self._meet_holes(zxid, check_joint(self._find_before(), piece.path, zxid))
        if is_next(facts.last_zxid, zxid):
            return False
        hole = Hole(facts.last_zxid, zxid)
        if hole not in facts.holes:  # judging may have begun anew behind it
            facts.holes += (hole,)
        return self._meet_holes(zxid, hole)

    def _meet_holes(self, first: int, joint: Hole | None) -> bool:
        """Take note of the holes up to here; answer whether judging begins anew behind them."""
        met = {*self._met, *self._base_holes, *(() if joint is None else (joint,))}
        met |= {hole for hole in self.archive.holes if 0 <= hole.before <= first}
        if met == self._met:
            return False
        self._met = frozenset(met)
        missing = find_open(sorted(met), self._passes.snapshot)
        if not missing:
            return False
        restart = find_restart(self.archive, missing, self._after)
        self._plans.append(Planned(missing, None if restart is None else restart.snapshot))
        if restart is not None:
            self._passes.coming.append(restart)
        return restart is not None

    def _find_before(self) -> FileFacts | None:
        before: FileFacts | None = None
        for facts in self._files[:-1]:
            before = join_facts(before, facts)
        return before

    def _judge(self, batch: list[Transaction]) -> None:
        for part in self._passes.cut(batch, attrgetter("zxid")):
            feed, observe = self._passes.routing.get_feed(), self._passes.judging.observe
            for transaction in part:
                for seen in feed(transaction):
                    observe(seen)
        facts, self._after = self._files[-1], batch[-1].zxid
        self.done += len(batch)
        facts.judged += len(batch)
        first_ms = batch[0].time_ms if facts.times_ms is None else facts.times_ms[0]
        facts.times_ms = first_ms, batch[-1].time_ms

    def has_moved(self) -> bool:
        """Whether it stands elsewhere than where it was taken up."""
        return not self._begun or self._taken_up != (self.done, len(self._files), self._offset)

    def keep(self, keeper: Keeper) -> None:
        """Put aside what was judged so far."""
        piece = self.archive.pieces[len(self._files) - 1]
        marks = [*self._marks, mark_piece(piece, self._offset)]
        keeper.save(self.archive, marks, self._plans, self)

    def finish(self) -> None:
        """Judge what must be true at the end, if it was come to."""
        times_ms = find_times(self._files)
        if self._stopped:
            self._passes.judging.end(times_ms)
        else:
            self._passes.finish(times_ms)

    def list_findings(self) -> list[tuple[Violation, bool]]:
        """Return all that was found, and of each whether it is settled; before it is summed up."""
        holes = find_gaps_amid(self.archive, self._files, self._base_holes)
        return list_settled(self._passes.list_chapters(), holes)

    def sum_up(self) -> ShareSum:
        """Return what it came to, with its findings told apart by whether they are settled."""
        chapters = self._passes.list_chapters()
        known = KnownHistory.join([known for _, known, _ in chapters])
        known.passed_over[BEFORE] += self._before
        holes = find_gaps_amid(self.archive, self._files, self._base_holes)
        return ShareSum(
            known,
            settle_chapters(chapters, holes, self._passes.count_partitions()),
            self.archive,
            self._files,
            tuple(self._passes.beginnings),
            self._base_holes,
            self._after if self._stopped else None,
            self.done - self._begun,
        )
