"""Reads logs for the signs of the protocol that they are of, before they are judged."""

from collections.abc import Sequence
from pathlib import Path

from reassure_judge.protocols import get_observing
from reassure_judge.recognise import Gatherer, Recognised, recognise
from reassure_pipeline.archive import find_archives, load_base
from reassure_pipeline.observed import sort_paths
from reassure_zookeeper.txnlog import LogFile


def recognise_logs(paths: Sequence[Path]) -> Recognised | str | None:
    """Return what the logs among these paths are of (`reassure_judge.recognise.recognise`).

    Observations alone are of the one profile that needs nothing else. Raises what reading logs
    raises.
    """
    found = sort_paths(paths)
    if found.files and not found.logs:
        (profile, *_) = get_observing().profiles
        return Recognised(profile, "there are observations, and no transaction logs", {})
    gathered: list[tuple[str, Gatherer]] = []
    for archive in find_archives(found.logs):
        gatherer = Gatherer()
        base = load_base(archive)
        for path, data, _ in () if base is None else base.nodes:
            gatherer.note(path, data)
        for file in archive.files:
            for batch in LogFile(file).batches():
                for transaction in batch:
                    gatherer.feed(transaction)
        gathered.append((archive.name, gatherer))
    return recognise(gathered)
