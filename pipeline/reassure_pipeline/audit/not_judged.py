"""Which of several archives cannot be judged, and why: the others are judged all the same."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from reassure_judge.protocols import NoRules
from reassure_judge.recognise import Recognised
from reassure_pipeline.archives.archive import find_archives
from reassure_pipeline.archives.beginnings import load_base
from reassure_pipeline.archives.servers import group_by_server
from reassure_pipeline.audit.observed import sort_paths
from reassure_pipeline.audit.recogniser import recognise_logs
from reassure_spec.errors import BadData


class NotJudged(NamedTuple):
    """A path that was given, and why nothing of it is judged."""

    path: Path
    error: str
    """The class of the error that it would end with by itself."""
    reason: str

    def as_dict(self) -> dict[str, str]:
        """Return the record that reports print."""
        return {"path": str(self.path), "error": self.error, "reason": self.reason}


def set_apart(paths: Sequence[Path], problem: Exception) -> list[NotJudged]:
    """Return which of several paths are why all of them together met with a problem.

    These are the ones that cannot be read, or, where the problem is that the logs are of several
    protocols, those that are not of the first one.
    """
    servers = list(group_by_server(paths).values())
    found = list(_try_each(servers, _load))
    if found or not isinstance(problem, NoRules):
        return found
    first: list[Recognised] = []
    return list(_try_each(servers, partial(_compare, first=first)))


def _try_each(
    servers: Iterable[Sequence[Path]], work: Callable[[Sequence[Path]], None]
) -> Iterator[NotJudged]:
    for server in servers:
        try:
            work(server)
        except (BadData, NoRules, OSError) as error:
            yield from (NotJudged(path, type(error).__name__, str(error)) for path in server)


def _load(server: Sequence[Path]) -> None:
    """See that what leads to a server can be read, as far as a survey and a beginning tell."""
    logs = sort_paths(server).logs
    for archive in find_archives(logs, damaged=True) if logs else ():
        load_base(archive)


def _compare(server: Sequence[Path], first: list[Recognised]) -> None:
    """See that a server is of the profile of the first one that tells of any, and note that."""
    found = recognise_logs(server)
    if isinstance(found, str):
        raise NoRules(f"{found}; judge it with --profile")
    if found is not None and first and found.profile != first[0].profile:
        raise NoRules(
            f"it is of profile {found.profile} ({found.why}), but the logs named before it are of "
            f"{first[0].profile}: judge it by itself, or all with --profile"
        )
    first += [] if found is None else [found]
