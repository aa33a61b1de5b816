"""The alphabet: everything that can be done to stepped brokers, one frozen record a step.

    produce 2 with acks -1 to 1
    produce 1 with acks 1 to 3 of u-0
    move to 2,3,4 of t-1
    2 fetches
    deliver 0
    2 crashes
    the controller does 3 effects
    the controller works

`parse_step` reads a step from its text. A step that is about one partition names it, but for
the first one of the trial. A message is named by its place among those that are on their way,
counted from the oldest: so a story that lost a step is still a story.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from reassure_conformance.gate.step_fields import BadStep
from reassure_conformance.gate.steps import ClusterStep


@dataclass(frozen=True, slots=True)
class BrokerStep(ClusterStep):
    """One step: a verb of `FORMS`, and its numbers in the order of the form.

    >>> str(BrokerStep("produce", (2, -1, 1)))
    'produce 2 with acks -1 to 1'
    """

    verb: str
    numbers: tuple[int, ...] = ()
    of: str = ""
    """The partition that it is about, as in `u-0`; "" for the first one, or for none."""

    def __str__(self) -> str:
        form = FORMS[self.verb]
        text = form.replace("{...}", ",".join(map(str, self.numbers))).format(*self.numbers)
        return f"{text} of {self.of}" if self.of else text


FORMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        # Clients
        "produce": "produce {} with acks {} to {}",
        "consume": "consume from {}",
        "move": "move to {...}",
        # Messages
        "fetch": "{} fetches",
        "replicate": "{} fetches and is answered",
        "deliver": "deliver {}",
        "repeat": "deliver {} and keep it",
        "lose": "lose {}",
        "deliver-all": "deliver all",
        # Brokers
        "crash": "{} crashes",
        "tear": "{} crashes while it writes",
        "power": "{} loses power, and {} batches",
        "stop": "{} stops",
        "start": "{} starts",
        "expire": "the session of {} ends",
        "register": "{} registers again",
        "lose-write": "the next write of {} is lost",
        "lose-answer": "the next write of {} is not answered",
        "wait": "wait {} ms",
        "set-back": "the clock of {} goes back {} ms",
        # Controllers
        "work": "the controller works",
        "work-some": "the controller does {} effects",
        "supersede": "another controller is elected",
        "wake": "the controller before goes on",
    }
)
"""By verb: the text of a step, with a gap for each number, and one for a list of them."""
OF_ONE_PARTITION: Final = frozenset({"produce", "consume", "move"})
"""The verbs of steps that are about one partition."""


def _make_pattern(verb: str, form: str) -> re.Pattern[str]:
    text = re.escape(form).replace(r"\{\}", r"(-?\d+)").replace(r"\{\.\.\.\}", r"([\d,]+)")
    return re.compile(text + (r"(?: of (\S+-\d+))?" if verb in OF_ONE_PARTITION else "()"))


_PATTERNS: Final = {verb: _make_pattern(verb, form) for verb, form in FORMS.items()}


def parse_step(text: str) -> BrokerStep:
    """Return the step of a line. Raises BadStep.

    >>> parse_step("2 loses power, and 1 batches")
    BrokerStep(verb='power', numbers=(2, 1), of='')
    """
    line = " ".join(text.split())
    for verb, pattern in _PATTERNS.items():
        found = pattern.fullmatch(line)
        if found:
            *numbers, of = found.groups()
            return BrokerStep(
                verb, tuple(int(n) for each in numbers for n in each.split(",")), of or ""
            )
    raise BadStep(f"{line!r} is no step; the steps are: {'; '.join(FORMS.values())}")
