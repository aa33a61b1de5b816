"""Making a failing story short: fewer steps, and simpler ones, with the same clause broken.

Hypothesis shrinks the draws; this goes on with the story itself, which is what a person reads. A
step is left out, or replaced by a simpler one, and the story told again; what still breaks the same
clause is kept. As stories are carried out leniently, a story that lost a step is still a story.
"""

import time
from collections.abc import Callable, Iterator

from reassure_conformance import steps as s
from reassure_conformance.harness import Example
from reassure_conformance.story import Story

Tell = Callable[[Story], Example]


def breaks(example: Example, clause: str) -> bool:
    """Whether the clause was violated in this example."""
    return any(violation.clause == clause for violation in example.violations)


def carried_out(example: Example) -> tuple[s.Step, ...]:
    """Return the steps that were really carried out, in order."""
    return tuple(done.step for done in example.done if done.result != "skipped")


def _simpler(step: s.Step) -> Iterator[s.Step]:
    """Yield simpler steps that could stand for this one, the simplest first."""
    match step:
        case s.Burst(requests):
            yield requests[-1]
            for i in range(len(requests)):
                if len(requests) > 2:
                    yield s.Burst(requests[:i] + requests[i + 1 :])
        case s.Request(targets, legacy) if len(targets) > 1 or legacy:
            for target in targets:
                yield s.Request((target,))
        case s.CreateTopic(topic, assignments, min_isr):
            if len(assignments) > 1:
                yield s.CreateTopic(topic, assignments[:1], min_isr)
            if min_isr > 1:
                yield s.CreateTopic(topic, assignments, 1)
        case s.Hold(effects) if effects > 0:
            yield s.Hold(0)
            yield s.Hold(effects - 1)
        case _:
            return


def _variants(story: Story) -> Iterator[Story]:
    """Yield stories that are shorter or simpler, the most promising first."""
    steps = story.steps
    for size in (4, 2, 1):
        if size >= len(steps) or (size > 1 and len(steps) < 3 * size):
            continue
        for end in range(len(steps), size - 1, -1):
            yield story.with_steps(steps[: end - size] + steps[end:])
    for place, step in enumerate(steps):
        for simpler in _simpler(step):
            yield story.with_steps((*steps[:place], simpler, *steps[place + 1 :]))


def minimise(
    story: Story, clause: str, tell: Tell, *, until: float = float("inf")
) -> tuple[Story, Example] | None:
    """Return the shortest story found that breaks the clause, and its last telling.

    `until` ends the search, by `time.monotonic`. Returns None when the story itself does not break
    the clause when it is told again.
    """
    best = tell(story)
    if not breaks(best, clause):
        return None
    story = story.with_steps(carried_out(best))
    improved = True
    while improved:
        improved = False
        for variant in _variants(story):
            if time.monotonic() > until:
                return story, best
            if not variant.steps:
                continue
            told = tell(variant)
            if breaks(told, clause):
                story, best, improved = variant.with_steps(carried_out(told)), told, True
                break
    return story, best
