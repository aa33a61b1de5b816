"""Reads logs for the signs of the protocol that they are of, before they are judged.

Of logs that grow, what is there so far: once it tells, that is the protocol.
"""

from collections.abc import Sequence
from pathlib import Path

from reassure_judge.protocols import get_observing
from reassure_judge.recognise import Gatherer, Recognised, recognise
from reassure_pipeline.archive import RECOGNISED, Archive, contain, load_base, read_archive
from reassure_pipeline.growing import Follower
from reassure_pipeline.observed import sort_paths


def recognise_logs(paths: Sequence[Path], members: str = RECOGNISED) -> Recognised | str | None:
    """Return what the logs among these paths are of (`reassure_judge.recognise.recognise`).

    `members` says which are of one ensemble (`archive.MEMBERSHIPS`). Observations alone are of the
    one profile that needs nothing else. Raises what reading logs raises.
    """
    found = sort_paths(paths)
    if found.files and not found.logs:
        (profile, *_) = get_observing().profiles
        return Recognised(profile, "there are observations, and no transaction logs", {})
    return recognise(contain(found.logs, _gather, members))


def _gather(archives: Sequence[Archive]) -> list[tuple[str, Gatherer]]:
    gathered: list[tuple[str, Gatherer]] = []
    for archive in archives:
        gatherer = Gatherer()
        base = load_base(archive)
        for path, data, _ in () if base is None else base.nodes:
            gatherer.note(path, data)
        for transaction in read_archive(archive):
            gatherer.feed(transaction)
        gathered.append((archive.name, gatherer))
    return gathered


class Recogniser:
    """Reads logs that grow, as far as they are there."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._read = [(Follower(path), Gatherer()) for path in paths]

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
        return recognise((str(follower.path), gatherer) for follower, gatherer in self._read)
