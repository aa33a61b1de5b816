"""Audits on Spark that go on where they were: what each share of the topics came to.

An audit that is kept has several shares for each core. What one came to, sums and findings, is
written by the driver as soon as that is known, each into a file of its own
(`checkpoints.kept_files`), so an audit that was interrupted addresses and judges anew only what
is about the topics of the others. That is only right where all is as it was: the files of the logs
by path, size and time, how they are cut, profile, readings and options. A digest of these is in the
name of the file.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from reassure_pipeline.checkpoints.audits import KeptPlan, Say, read_plan, write_plan
from reassure_pipeline.checkpoints.kept_files import NotKept, keep, take_up

SHARES_PER_CORE: Final = 4
"""Of what is judged side by side at most that part is lost: more shares take more that each has to
do by itself."""
_SUFFIX: Final = ".share"
_PLAN: Final = "shares.json"

Kept = list[tuple[int, bytes]]
"""What a share came to: numbers of archives, and pickled outcomes."""


class KeptShares:
    """What the shares of one audit came to, in a directory that is the caller's own."""

    def __init__(self, directory: Path, identity: Mapping[str, Any], say: Say) -> None:
        self._directory = directory
        self._identity = dict(identity)
        self._say = say
        self._now: dict[str, Any] = {}
        """What is being judged."""
        self._used: set[Path] = set()
        self._plan = read_plan(directory, _PLAN) or KeptPlan(0, False)

    @property
    def is_damaged(self) -> bool:
        """Whether the logs have to be surveyed, as they are damaged."""
        return self._plan.damaged

    def choose_shares(self, cores: int) -> int:
        """Return into how many shares the topics are cut: as many as before."""
        if self._plan.shares < 1:
            self._note(self._plan._replace(shares=cores * SHARES_PER_CORE))
        return self._plan.shares

    def note_damage(self) -> None:
        """Note that the logs are damaged, so that they are surveyed at once the next time."""
        self._note(self._plan._replace(damaged=True))

    def _note(self, plan: KeptPlan) -> None:
        self._plan = plan
        write_plan(self._directory, plan, _PLAN)

    def load(self, what: object, shares: int) -> dict[int, Kept]:
        """Return what is there of the shares of what is to be judged, by their numbers."""
        told = json.dumps([self._identity, what, shares], sort_keys=True)
        self._now = {"audit": sha256(told.encode()).hexdigest()}
        there: dict[int, Kept] = {}
        refused: list[NotKept] = []
        for share in range(shares):
            path = self._locate(share)
            self._used.add(path)
            try:
                kept = take_up(path, self._now)
            except NotKept as other:
                refused.append(other)
            else:
                if kept is not None:
                    there[share] = kept[0]
        if refused:
            self._say(f"{len(refused)} of {shares} shares are judged again: {refused[0]}")
        elif not there and self._list_others():
            self._say(
                "all is judged again: the checkpoint is of other logs, of logs that have changed "
                "since, or of another profile or other options"
            )
        return there

    def keep(self, share: int, kept: Kept) -> None:
        """Write what a share came to. Raises OSError."""
        keep(self._locate(share), self._now, kept)

    def clear_others(self) -> None:
        """Remove what is of other audits than those that were looked for."""
        for path in self._list_others():
            path.unlink()

    def _list_others(self) -> set[Path]:
        return set(self._directory.glob(f"*{_SUFFIX}")) - self._used

    def _locate(self, share: int) -> Path:
        return self._directory / f"{self._now['audit'][:16]}-{share}{_SUFFIX}"
