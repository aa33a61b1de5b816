"""What is kept of a run, to ask it of every mutant: the states in which somebody decided something.

A mutant that would come to rest where a controller acted is found only if nothing else happens
before the cluster is looked at again. So it is kept of each state how many writes came between it
and whatever disturbed the controller, or that nothing did.
"""

from dataclasses import replace
from typing import Any

from reassure_judge.moments import ACTS, DISTURBED, RESTS, SUCCEEDS, Place
from reassure_model.partition import Environment
from reassure_mutation.kills import Situation, normalise


class Recorder:
    """Takes note of the moments of partitions, each state once. A witness of the judge."""

    def __init__(self) -> None:
        self._found: dict[Situation, int | None] = {}
        """By situation, without its writes: the most that came before anything else did."""
        self._fresh: dict[Situation, None] = {}
        """Those of them of which that has changed since somebody asked."""
        self._open: dict[Place, list[Situation]] = {}
        """Since something happened to a partition that was no write of its controller."""

    def note(self, kind: str, place: Place, states: tuple[Any, ...], around: Environment) -> None:
        """Take note of a moment."""
        around = replace(around, controller_epoch=1)
        waiting = self._open.setdefault(place, [])
        changed = bool(waiting) and waiting[0].around != around
        if changed or kind in (DISTURBED, SUCCEEDS):
            self._close(waiting, rested=False)
        if kind == DISTURBED:
            return
        waiting.append(Situation(kind, tuple(map(normalise, states)), around))
        if kind == RESTS:
            self._close(waiting, rested=True)

    def _close(self, waiting: list[Situation], *, rested: bool) -> None:
        left = sum(each.kind == ACTS for each in waiting)
        for situation in waiting:
            writes = None if rested else left
            before = self._found.get(situation, -1)
            if before is not None and (writes is None or writes > before):
                self._found[situation] = writes
                self._fresh[situation] = None
            left -= situation.kind == ACTS
        waiting.clear()

    def take_situations(self) -> tuple[Situation, ...]:
        """Return what is new since this was asked last, in the order in which it was seen."""
        for waiting in self._open.values():
            self._close(waiting, rested=False)
        fresh = tuple(replace(each, writes=self._found[each]) for each in self._fresh)
        self._fresh.clear()
        return fresh
