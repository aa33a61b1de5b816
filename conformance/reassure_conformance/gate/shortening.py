"""Making a failing story short: fewer steps, and plainer ones, with the same clause broken.

Hypothesis shrinks the draws; this goes on with the story itself, which is what a person reads. The
plainest stories that there are come first: where one of them breaks the clause, nothing of the
failing story was needed. Otherwise a step is left out, or replaced by a plainer one, or a broker is
taken away, and the story told again; what still breaks the same clause is kept. As stories are
carried out leniently, a story that lost a step is still a story.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from reassure_conformance.gate import steps as s
from reassure_conformance.gate.example import Example
from reassure_conformance.gate.story import Story
from reassure_spec.znodes import PartitionKey, ReplicaList

Tell = Callable[[Story], Example]


def breaks(example: Example, clause: str) -> bool:
    """Whether the clause was violated in this example."""
    return any(violation.clause == clause for violation in example.violations)


def carried_out(example: Example) -> tuple[s.ClusterStep, ...]:
    """Return the steps that were really carried out, in order."""
    return tuple(done.step for done in example.done if done.result != "skipped")


def _shorter(replicas: ReplicaList) -> Iterator[ReplicaList]:
    """Yield a list without one of its members each, as long as one is left."""
    if len(replicas) > 1:
        for place in range(len(replicas)):
            yield replicas[:place] + replicas[place + 1 :]


def _plainer_lists(lists: tuple[ReplicaList, ...]) -> Iterator[tuple[ReplicaList, ...]]:
    """Yield the lists with one less, or with one of them shorter."""
    if len(lists) > 1:
        yield lists[:1]
    for place, replicas in enumerate(lists):
        for shorter in _shorter(replicas):
            yield (*lists[:place], shorter, *lists[place + 1 :])


def _plainer_request(request: s.Request) -> Iterator[s.ClusterStep]:
    targets = request.targets
    if len(targets) > 1 or request.legacy:
        for one in targets:
            yield s.Request((one,))
    for place, (key, target) in enumerate(targets):
        for shorter in _shorter(target):
            changed = (*targets[:place], (key, shorter), *targets[place + 1 :])
            yield s.Request(changed, request.legacy)


def _plainer(step: s.ClusterStep) -> Iterator[s.ClusterStep]:
    """Yield plainer steps that could stand for this one, the plainest first."""
    match step:
        case s.Burst(requests):
            yield requests[-1]
            for i in range(len(requests)):
                if len(requests) > 2:
                    yield s.Burst(requests[:i] + requests[i + 1 :])
        case s.Request():
            yield from _plainer_request(step)
        case s.Change(key, target):
            yield s.Request(((key, target),))
            for shorter in _shorter(target):
                yield s.Change(key, shorter)
        case s.CreateTopic(topic, assignments, min_isr):
            if min_isr > 1:
                yield s.CreateTopic(topic, assignments, 1)
            for lists in _plainer_lists(assignments):
                yield s.CreateTopic(topic, lists, min_isr)
        case s.Grow(topic, assignments):
            for lists in _plainer_lists(assignments):
                yield s.Grow(topic, lists)
        case s.Hold(effects) if effects > 0:
            yield s.Hold(0)
            yield s.Hold(effects - 1)
        case s.Lose(writes, done) if writes > 0:
            yield s.Lose(0, done)
            yield s.Lose(writes - 1, done)
        case s.Expire() | s.Depose():
            yield s.Kill()
        case _:
            return


def _variants(story: Story) -> Iterator[Story]:
    """Yield stories that are shorter or plainer, the most promising first."""
    steps = story.steps
    for size in (4, 2, 1):
        if size >= len(steps) or (size > 1 and len(steps) < 3 * size):
            continue
        for end in range(len(steps), size - 1, -1):
            yield story.with_steps(steps[: end - size] + steps[end:])
    for place, step in enumerate(steps):
        for plainer in _plainer(step):
            yield story.with_steps((*steps[:place], plainer, *steps[place + 1 :]))
    if len(story.brokers) > 1:
        for broker in reversed(story.brokers):
            yield replace(story, brokers=tuple(b for b in story.brokers if b != broker))


KEY: Final[PartitionKey] = ("orders", 0)


def list_plainest(story: Story) -> Iterator[Story]:
    """Yield the plainest stories: smallest clusters, shortest lists, and one thing happening."""
    for assigned in ((1,), (1, 2)):
        create = s.CreateTopic(KEY[0], (assigned,))
        yield replace(story, brokers=(1, 2), steps=(create,))
        for target in ((2,), (2, 1), (1, 2), (1,)):
            steps = (create, s.Request(((KEY, target),)))
            joins = tuple(s.Join(one, KEY) for one in target if one not in assigned)
            yield replace(story, brokers=(1, 2), steps=steps)
            if joins:
                yield replace(story, brokers=(1, 2), steps=(*steps, *joins))
        for broker in assigned:
            yield replace(story, brokers=(1, 2), steps=(create, s.Die(broker)))
        yield replace(story, brokers=(1, 2), steps=(create, s.Kill(), s.Elect()))


def minimise(
    story: Story, clause: str, tell: Tell, *, is_over: Callable[[], bool] = lambda: False
) -> tuple[Story, Example] | None:
    """Return the shortest story found that breaks the clause, and its last telling.

    The search ends once `is_over`. Returns None when the story itself does not break the clause
    when it is told again.
    """
    best = tell(story)
    if not breaks(best, clause):
        return None
    story = story.with_steps(carried_out(best))
    for plain in sorted(list_plainest(story), key=lambda plain: len(plain.steps)):
        if len(plain.steps) > len(story.steps) or is_over():
            break
        told = tell(plain)
        if breaks(told, clause):
            story, best = plain.with_steps(carried_out(told)), told
            break
    improved = True
    while improved:
        improved = False
        for variant in _variants(story):
            if is_over():
                return story, best
            if not variant.steps:
                continue
            told = tell(variant)
            if breaks(told, clause):
                story, best, improved = variant.with_steps(carried_out(told)), told, True
                break
    return story, best
