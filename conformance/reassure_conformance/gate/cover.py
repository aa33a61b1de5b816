"""Make the stories that kill what no other does: `python -m reassure_conformance.gate.cover`.

The shipped stories are told to the bundled implementation, and then the test case of each mutant of
the rules that survives them, the longest first, which come by most states. A test case was found on
the model, whose controller has fewer effects, so it is looked for after how many an implementation
has to be held. What kills something is kept, under a name with `PREFIX`; those are made anew.
"""

import logging
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.resources import files
from itertools import islice, product
from pathlib import Path
from typing import Final

from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.gate import steps as s
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.story import Story, format_story, shipped_stories
from reassure_conformance.report.document import write_text
from reassure_conformance.script import SUFFIX
from reassure_mutation.score import Scorer, Survivor
from reassure_spec.readings import PROFILES, get_profile
from reassure_zookeeper.server import Server

PREFIX: Final = "kills-"
"""What the names of the stories begin with that are made here."""
MOST_MORE: Final = 8
"""How many effects between two writes an implementation may have beyond those of the model."""
MOST_TRIES: Final = 250
"""How often one test case is told."""


def list_variants(steps: Sequence[s.ClusterStep]) -> Iterator[tuple[s.ClusterStep, ...]]:
    """Yield a test case with other numbers after `hold after`, those of the model first."""
    count = sum(isinstance(step, s.Hold) for step in steps)
    every = sorted(product(range(MOST_MORE + 1), repeat=count), key=lambda more: (sum(more), more))
    for each in islice(every, MOST_TRIES):
        more = iter(each)
        yield tuple(
            s.Hold(step.effects + next(more)) if isinstance(step, s.Hold) else step
            for step in steps
        )


def find_stories(profile: str, told: Sequence[Story], hosts: str, logs: Path) -> Iterator[Story]:
    """Yield the stories that kill what none of those that were told does under a profile."""
    scorer = Scorer(profile, get_profile(profile))
    if not scorer.killable:
        return
    adapter = Bundled(profile=profile)
    with Harness(hosts, logs, adapter, chroot_prefix=f"/{profile}") as harness:

        def kill(story: Story) -> list[Survivor]:
            before = scorer.list_survivors()
            example = harness.tell(story)
            situations = harness.recorder.take_situations()
            if example.violations or example.unsettled:
                return []
            scorer.update(situations)
            after = scorer.list_survivors()
            return [each for each in before if each not in after]

        for story in told:
            if story.is_for(profile):
                kill(story)
        cases = {each.kill.steps for each in scorer.list_survivors()}
        for case in sorted(cases, key=lambda case: (-len(case), case)):
            for steps in list_variants(tuple(map(s.parse_step, case))):
                if case not in {each.kill.steps for each in scorer.list_survivors()}:
                    break
                killed = kill(Story("", steps))
                if killed:
                    yield Story(_name(killed[0]), steps, why=_explain(killed))
        for each in scorer.list_survivors():
            sys.stdout.write(f"{profile}: {each.name}: survives {'; '.join(each.kill.steps)}\n")


def _name(survivor: Survivor) -> str:
    return PREFIX + survivor.kill.clause.replace(".", "-").replace(" ", "-")


def _explain(killed: Sequence[Survivor]) -> tuple[str, ...]:
    """Return why a story is told: the mutants that it kills, and the clauses that do."""
    clauses = ", ".join(dict.fromkeys(each.kill.clause for each in killed))
    more = f", and {len(killed) - 1} more" if len(killed) > 1 else ""
    return (f"Kills the mutant where {killed[0].sentence}{more} ({clauses}).",)


def main(folder: Path, profiles: Iterable[str]) -> int:
    """Write the stories into a folder in place of those of before."""
    logging.disable(logging.CRITICAL)
    told = [story for story in shipped_stories() if not story.name.startswith(PREFIX)]
    for old in folder.glob(f"{PREFIX}*{SUFFIX}"):
        old.unlink()
    with tempfile.TemporaryDirectory() as data, Server.start(Path(data)) as server:
        for profile in profiles:
            for story in find_stories(profile, tuple(told), server.hosts, server.log_dir):
                same = sum(each.name.startswith(story.name) for each in told)
                named = replace(story, name=f"{story.name}-{same + 1}" if same else story.name)
                told.append(named)
                write_text(folder / f"{named.name}{SUFFIX}", format_story(named))
    return 0


if __name__ == "__main__":
    STORIES = Path(str(files("reassure_conformance.gate") / "stories"))
    sys.exit(main(STORIES, sys.argv[1:] or PROFILES))
