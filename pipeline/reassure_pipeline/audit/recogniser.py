"""Reads logs for the signs of the protocol that they are of, before they are judged.

All of a log is read for that: which cluster it may be of last, nobody knows before its end. Most
records are passed over as soon as it is seen where they write (`Gatherer.told`), and large logs are
read in several processes, each some files that follow each other.

Of logs that grow, what is there so far: once it tells, that is the protocol.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from reassure_judge.recognise import Gatherer, Recognised, find_sign, recognise
from reassure_pipeline.archives.archive import (
    RECOGNISED,
    Archive,
    contain,
    measure_piece,
    open_piece,
)
from reassure_pipeline.archives.beginnings import load_base
from reassure_pipeline.audit.jobs import Progress, start_processes
from reassure_pipeline.watch.follower import LogFollower
from reassure_zookeeper.codec import decode_unless
from reassure_zookeeper.ensemble import Piece
from reassure_zookeeper.transactions import Transaction

Work = Sequence[tuple[int, Piece]]
"""Pieces to be read, each with the number of its archive."""


def recognise_clusters(
    paths: Sequence[Path],
    members: str = RECOGNISED,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
) -> list[tuple[Recognised | None, tuple[str, ...]]]:
    """Return what the clusters in these logs are of, each with its chroots; None is for the others.

    Clusters of one profile for which the log settles other readings are told apart as well.

    They are read by this process and `jobs` - 1 more. Raises what reading logs raises, as far as
    that is met: what is passed over is not looked at whole.
    """
    clusters: dict[str | None, dict[str, list[tuple[str, Gatherer]]]] = {}
    work = partial(_gather, jobs=jobs, progress=progress)
    for name, gatherer in contain(paths, work, members):
        for chroot, signs in gatherer.find_clusters():
            told = find_sign(signs)
            group = clusters.setdefault(None if told is None else told[0], {})
            group.setdefault(chroot, []).append((name, Gatherer({chroot: signs})))
    groups: dict[tuple[object, ...], dict[str, list[tuple[str, Gatherer]]]] = {}
    for profile, by_chroot in clusters.items():
        for chroot, several in by_chroot.items():
            one = recognise(several)
            settled = sorted(one.readings.items()) if isinstance(one, Recognised) else ()
            groups.setdefault((profile, *settled), {})[chroot] = several
    found: list[tuple[Recognised | None, tuple[str, ...]]] = []
    for group in groups.values():
        recognised = recognise(each for several in group.values() for each in several)
        assert not isinstance(recognised, str), "each group is of one profile"
        found.append((recognised, tuple(sorted(group))))
    return found


def _gather(
    archives: Sequence[Archive], jobs: int, progress: Progress | None
) -> list[tuple[str, Gatherer]]:
    gathered = {number: Gatherer() for number in range(len(archives))}
    for number, archive in enumerate(archives):
        base = load_base(archive)
        for path, data, _ in () if base is None else base.nodes:
            gathered[number].note(path, data)
    work = [(number, piece) for number, each in enumerate(archives) for piece in each.pieces]
    first, *others = _cut(work, jobs)
    if not others:
        _read(first, gathered, progress)
    else:
        with start_processes(len(others)) as pool:
            waiting = [pool.submit(_read, other, {}) for other in others]
            _read(first, gathered, progress)
            for each in waiting:
                for number, found in each.result().items():
                    gathered[number].add(found)
    return [(archive.name, gathered[number]) for number, archive in enumerate(archives)]


def _cut(work: Work, jobs: int) -> list[Work]:
    """Cut into at most so many parts, in order, of about as many bytes each."""
    sizes = [measure_piece(piece) for _, piece in work]
    parts: list[list[tuple[int, Piece]]] = [[] for _ in range(jobs)]
    before, total = 0, max(1, sum(sizes))
    for each, size in zip(work, sizes, strict=True):
        parts[min(jobs - 1, (before + size // 2) * jobs // total)].append(each)
        before += size
    return list(filter(None, parts))


def _read(
    work: Work, gathered: dict[int, Gatherer], progress: Progress | None = None
) -> dict[int, Gatherer]:
    """Gather what is in these pieces, by the number of the archive, and return it."""
    done, total = 0, sum(measure_piece(piece) for _, piece in work)
    for number, piece in work:
        gatherer = gathered.setdefault(number, Gatherer())
        file = open_piece(piece)
        file.decode = _make_decoder(gatherer)
        for batch in file.batches():
            for transaction in batch:
                gatherer.feed(transaction)
            if progress is not None:
                read = done + file.offset - piece.start
                progress(f"recognising {piece.path.name}, MiB", read >> 20, total >> 20)
        done += measure_piece(piece)
    return gathered


def _make_decoder(gatherer: Gatherer) -> Callable[[bytes], Transaction]:
    """Return what makes of a record what is to be fed: no more than may tell something."""
    return partial(decode_unless, elsewhere=gatherer.told)


class Recogniser:
    """Reads logs that grow, as far as they are there."""

    def __init__(self, paths: Sequence[Path], chroots: tuple[str, ...] | None = None) -> None:
        """Read for the clusters at these chroots, None for all."""
        self._chroots = chroots
        self._read: list[tuple[LogFollower, Gatherer]] = []
        for path in paths:
            gatherer = Gatherer()
            self._read.append((LogFollower(path, _make_decoder(gatherer)), gatherer))

    def look(self) -> Recognised | str | None:
        """Return what the logs tell by now; raises what reading logs raises."""
        for follower, gatherer in self._read:
            if follower.archive is None:
                base = follower.begin()
                for path, data, _ in () if base is None else base.nodes:
                    gatherer.note(path, data)
            if follower.archive is not None:
                for batch in follower.read():
                    for transaction in batch:
                        gatherer.feed(transaction)
        return recognise((str(f.path), self._choose(gathered)) for f, gathered in self._read)

    def _choose(self, gathered: Gatherer) -> Gatherer:
        if self._chroots is None:
            return gathered
        return Gatherer({c: gathered.clusters[c] for c in self._chroots if c in gathered.clusters})
