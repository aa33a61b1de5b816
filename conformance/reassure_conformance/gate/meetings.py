"""Meetings: what happens between a controller's decision to write and the write.

A decision may be right and the write wrong: a version that is not looked at, a session that is
gone, an answer that never came. So for each kind of write it is counted which kinds of step came in
between. What can meet is found by exploring small clusters, with the shortest test case for each.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from reassure_conformance.gate import steps as s
from reassure_judge.live_events import Wrote
from reassure_mutation.worlds import Meeting
from reassure_spec.znodes import PartitionKey

Kind = tuple[str, str]
"""The kind of write, and of step; an answer that is lost and a write that is are two."""
Owed = Mapping[PartitionKey, Any]
"""By partition the write that a controller has to make next."""
_ENDS_LOSS: Final = (s.Resume, s.Kill, s.Expire, s.Depose)
_NO_EVENT: Final = (s.Hold, s.Resume, s.Elect, s.Lose)


def name_event(step: s.ClusterStep) -> str:
    """Return the kind of a step.

    >>> name_event(s.Lose(2, done=True)), name_event(s.Die(1))
    ('Lose answer', 'Die')
    """
    if isinstance(step, s.Lose):
        return "Lose answer" if step.done else "Lose write"
    return type(step).__name__


def list_kinds(meetings: Iterable[Meeting]) -> dict[Kind, Meeting]:
    """Return the meetings by kind, the first of each."""
    found: dict[Kind, Meeting] = {}
    for each in meetings:
        found.setdefault((each.effect, name_event(s.parse_step(each.event))), each)
    return found


class Meetings:
    """Counts what met in a run."""

    def __init__(self) -> None:
        self.met: Final = Counter[Kind]()
        self._loss: s.Lose | None = None
        """What is to go wrong with one of the next writes."""
        self._made = 0
        """How many transactions the controller made since then."""

    def take(self, step: s.ClusterStep, *, held: bool, list_owed: Callable[[], Owed]) -> None:
        """Note a step that is about to be taken."""
        if isinstance(step, s.Lose):
            self._loss, self._made = step, 0
        elif isinstance(step, _ENDS_LOSS):
            self._loss = None
        if held and not isinstance(step, _NO_EVENT):
            for write in list_owed().values():
                self.met[type(write).__name__, name_event(step)] += 1

    def is_losing(self) -> bool:
        """Whether one of the controller's next writes, or its answer, is to be lost."""
        return self._loss is not None

    def write(self, wrote: Wrote, before: Owed, after: Owed) -> None:
        """Note a transaction, with what was owed before it and after it.

        Where the write itself was lost it is the one that was tried again.
        """
        loss = self._loss
        if loss is None or wrote.elects:
            self._loss = None
        elif wrote.is_fenced:
            if self._made == loss.writes:
                for key in (key for key in before if before[key] != after.get(key)):
                    self.met[type(before[key]).__name__, name_event(loss)] += 1
                self._loss = None
            self._made += 1
