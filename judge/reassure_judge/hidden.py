"""What no znode shows, and would make a write right: the one layer that is asked about it.

A broker that stops says so to the controller, and so does one that loses a disk; a client calls;
news takes a moment to be heard. None of this is written to ZooKeeper. A write that no rule allows
as things are is asked about again with each of these facts assumed (`Fact.around`), and it is a
violation only if none of them explains it:

* That a disk died, or that a broker is back that was gone, shows elsewhere in the log
  (`find_shown`): the write is right.
* That a broker stops shows afterwards (`reassure_judge.suspicion`): the end of its registration
  makes the write right, its staying makes it a violation.
* Whose a session is shows when its broker registers: a leader that lost its session goes on in the
  next one before that (`Returning`, of Kafka's router).
* What a client asked for by a call, and what an author had not heard of yet
  (`reassure_judge.doubt`), never shows: nobody can say, and the facts are named.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Final, NamedTuple

from reassure_judge.doubt import Doubt
from reassure_model.partition import Environment

STOPPING: Final = "a broker is stopping"
DISK: Final = "its disk is dead"
CALLED: Final = "asked by a call"
UNHEARD: Final = "its author had not heard of a change"
MOST_AT_ONCE: Final = 4
"""Up to how many brokers every choice of those is tried that a controller may take for gone."""


class Fact(NamedTuple):
    """What may be so beside what is written."""

    name: str
    around: Environment
    """The environment of whoever knows it."""


def find_shown(around: Environment, doubt: Doubt, named: frozenset[int]) -> Iterator[Fact]:
    """Yield what the log shows elsewhere, of the brokers `named`: the fewest of them first.

    Whoever came back may be treated as gone still, and who lost a disk as gone from here.
    """
    gone = sorted((doubt.disks | doubt.returned) & named & around.live)
    sizes = range(1, len(gone) + 1) if len(gone) <= MOST_AT_ONCE else (len(gone),)
    for brokers in (frozenset(each) for size in sizes for each in combinations(gone, size)):
        name = UNHEARD if brokers.isdisjoint(doubt.disks) else DISK
        yield Fact(name, replace(around, stopping=around.stopping | brokers))


def find_never_shown(around: Environment, doubt: Doubt) -> Iterator[Fact]:
    """Yield what may be so and never shows, beside news that its author had not heard."""
    if doubt.called and not around.unclean_allowed:
        yield Fact(CALLED, replace(around, unclean_allowed=True))
