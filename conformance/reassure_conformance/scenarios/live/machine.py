"""The world of a machine, live: its commands and words, and a real controller under them.

Whoever derives from it says what happens on the stage when an action is taken (`_do`), what of the
log is an effect (`_hear`), and reads back what there is (`_look_at`).
"""

from typing import Any

from reassure_conformance.adapter import Reply
from reassure_conformance.scenarios.live.stage import ANOTHER_WAY, NotLive, Stage
from reassure_conformance.scenarios.worlds.machine import LIMIT, MachineWorld
from reassure_model.environment import Controller, NotPossible
from reassure_model.machine import Machine
from reassure_model.outcome import Rejected
from reassure_spec.readings import Readings
from reassure_spec.words import Arguments


class LiveMachineWorld(MachineWorld):
    """What a machine is about, on a stage of its own."""

    def __init__(
        self,
        stage: Stage,
        machine: Machine[Any],
        profile: str,
        readings: Readings,
        arguments: Arguments,
    ) -> None:
        super().__init__(machine, profile, readings, arguments)
        self.stage = stage
        self._told: list[str] = []
        """Lines of what was done, which the story has not come to yet."""
        stage.begin(tuple(sorted(self._blank.live)), ())
        stage.hear = self._hear

    # -- what a protocol says of itself

    def _do(self, action: Any) -> str:
        """Have an action happen on the stage; return why it is rejected, "" where it is not."""
        reply = self.stage.act(action)
        if reply is not Reply.OK:
            raise NotPossible(f"{action}: the implementation answers {reply.value}")
        return ""

    def _look_at(self, state: Any) -> Any:
        """Return a state as ZooKeeper holds it."""
        raise NotImplementedError

    def _add_partitions(self, before: Any, after: Any) -> None:
        """Have the partitions that a state has more than before."""
        raise NotImplementedError

    def _hear(self, seen: Any, done: Any, broken: str) -> None:
        """Note an observation that the judge has judged."""
        raise NotImplementedError

    def _take_lines(self) -> list[str]:
        """Return the lines of what was heard since the last call. Raises NotLive."""
        raise NotImplementedError

    # -- the words of the machine

    def _go(self, name: str, action: Any) -> str:
        if isinstance(action, str | Rejected):
            return super()._go(name, action)
        said = self._do(action)
        self._read_back()
        return said

    def _change(self, command: str, make: Any, arguments: Arguments) -> str:
        name = self._get({})
        after = make(self._states[name], arguments)
        self._add_partitions(self._states[name], after)
        self._states[name] = after
        self._read_back()
        return (self._effect(name) or "") if command in self._words.wakes else ""

    def _read_back(self) -> None:
        """Take over what ZooKeeper holds."""
        for name, state in self._states.items():
            self._states[name] = self._look_at(state)

    def _act(self, action: Any) -> str:
        """Have an action of a story that was found happen; return it in words."""
        name = self._get({})
        if isinstance(action, Controller):
            return self._effect(name) or "the controller waits"
        before = self._states[name]
        self._go(name, action)
        return self._machine.tell(action, before, self._states[name], self._readings)

    # -- the controller

    def _effect(self, name: str) -> str | None:
        for _ in range(LIMIT):
            if self._told:
                break
            _, quiet = self.stage.work(1)
            self._told += self._take_lines()
            if quiet:
                break
        self._read_back()
        return self._told.pop(0) if self._told else None

    def _list_effects(self) -> list[str]:
        _, quiet = self.stage.work(None)
        lines = [*self._told, *self._take_lines()]
        self._told = []
        self._read_back()
        return lines if quiet else [*lines, "not at rest when the time was up"]


def judge_line(stage: Stage, text: str, broken: str, *, owed: bool, why: str = ANOTHER_WAY) -> str:
    """Return a line with the clause that is broken. Raises NotLive for what nobody owed."""
    if broken:
        return f"{text} (breaks {broken})"
    if owed:
        return text
    if stage.violations:
        return f"{text} (not owed)"
    raise NotLive(why, text)
