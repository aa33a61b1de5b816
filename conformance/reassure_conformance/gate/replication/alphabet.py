"""The alphabet: everything that can be done to stepped brokers, one frozen record a step.

    produce 2 with acks -1 to 1
    2 fetches
    deliver 0
    2 crashes
    the controller works

`parse_step` reads what `format_step` writes. A message is named by its place among those that are
on their way, counted from the oldest: so a story that lost a step is still a story.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from reassure_spec.errors import BadData


class BadStep(BadData):
    """A line that is no step."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step: a verb of `FORMS`, and its numbers in the order of the form."""

    verb: str
    numbers: tuple[int, ...] = ()


FORMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "produce": "produce {} with acks {} to {}",
        "consume": "consume from {}",
        "fetch": "{} fetches",
        "replicate": "{} fetches and is answered",
        "deliver": "deliver {}",
        "repeat": "deliver {} and keep it",
        "lose": "lose {}",
        "deliver-all": "deliver all",
        "crash": "{} crashes",
        "power": "{} loses power, and {} batches",
        "stop": "{} stops",
        "start": "{} starts",
        "wait": "wait {} ms",
        "set-back": "the clock of {} goes back {} ms",
        "work": "the controller works",
    }
)
"""By verb: the text of a step, with a gap for each number."""

_PATTERNS: Final = {
    verb: re.compile(re.escape(form).replace(r"\{\}", r"(-?\d+)")) for verb, form in FORMS.items()
}


def format_step(step: Step) -> str:
    """Return the one-line text of a step.

    >>> format_step(Step("produce", (2, -1, 1)))
    'produce 2 with acks -1 to 1'
    """
    return FORMS[step.verb].format(*step.numbers)


def parse_step(text: str) -> Step:
    """Return the step of a line. Raises BadStep.

    >>> parse_step("2 loses power, and 1 batches")
    Step(verb='power', numbers=(2, 1))
    """
    line = " ".join(text.split())
    for verb, pattern in _PATTERNS.items():
        found = pattern.fullmatch(line)
        if found:
            return Step(verb, tuple(map(int, found.groups())))
    raise BadStep(f"{line!r} is no step; the steps are: {'; '.join(FORMS.values())}")
