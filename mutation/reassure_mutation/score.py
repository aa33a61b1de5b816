"""The score of a run: of the mutants that can be killed, which ones its states kill."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from reassure_mutation.kills import Reference, find_kills
from reassure_mutation.linked import Mutant
from reassure_mutation.table import Killable, find_worlds, load_table, make_reference
from reassure_mutation.worlds import Meeting
from reassure_spec.readings import Readings, get_profile


@dataclass(frozen=True, slots=True)
class Survivor:
    """A mutant that can be killed and was not."""

    name: str
    sentence: str
    kill: Killable
    """What would kill it."""


def select(reference: Reference, situations: Iterable[Any]) -> list[Any]:
    """Return the situations of the kind of state that a reference controller decides by.

    What only says something decides by all that there is.
    """
    if not hasattr(reference, "judgement"):
        return list(situations)
    kind = type(reference.judgement.begin)
    return [each for each in situations if type(each.states[0].partition) is kind]


class Scorer:
    """Asks the states of a run of every mutant that can be killed, until it is.

    Under readings that are not the profile's, or where there is no table, nothing is asked. Of
    states that no log shows there are none but in a `live` run. Where two reference controllers
    share a function, what kills a mutant of it in one of them kills it.
    """

    def __init__(self, profile: str, readings: Readings, *, live: bool = True) -> None:
        self.profile: Final = profile
        self.killable: Final[dict[str, Killable]] = {}
        """By the name of the mutant: what kills it."""
        self.meetings: tuple[Meeting, ...] = ()
        """What can happen between a controller's decision and its write."""
        self._left: list[tuple[Reference, dict[str, Mutant]]] = []
        modules = find_worlds(profile)
        usual = all(readings == getattr(m, "READINGS", get_profile(profile)) for m in modules)
        for module in modules if usual else ():
            table = load_table(module, profile)
            if table is not None and (live or not getattr(module, "LIVE", False)):
                reference = make_reference(module, profile)
                mutants = {each.name: each for each in reference.list_mutants()}
                self._left.append((reference, {name: mutants[name] for name in table.killable}))
                self.killable.update({**table.killable, **self.killable})
                self.meetings += table.meetings
        why = f"no table for {profile}" if usual else "readings differ from the profile's"
        self.not_scored: Final = "" if self._left else why
        """Why nothing is asked, "" where it is."""

    def update(self, situations: Iterable[Any]) -> None:
        """Ask the situations of the mutants that survive so far."""
        situations = tuple(situations)
        for reference, left in self._left:
            own = select(reference, situations)
            for name, (_, number) in find_kills(reference, list(left.values()), own).items():
                if number is not None:
                    for _, others in self._left:
                        others.pop(name, None)

    def list_survivors(self) -> tuple[Survivor, ...]:
        """Return the mutants that are not killed, those that one clause kills together."""
        found = {
            name: Survivor(name, mutant.sentence, self.killable[name])
            for _, left in self._left
            for name, mutant in left.items()
        }
        return tuple(sorted(found.values(), key=lambda each: (each.kill.clause, each.name)))

    def count_killable(self) -> Counter[str]:
        """Return by clause how many mutants it kills."""
        return Counter(each.clause for each in self.killable.values())
