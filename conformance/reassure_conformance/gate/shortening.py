"""Making a failing story short: fewer steps, and plainer ones, with the same clause broken.

Hypothesis shrinks the draws; this goes on with the story itself, which is what a person reads. The
plainest stories that there are come first: where one of them breaks the clause, nothing of the
failing story was needed. Otherwise steps are left out, or replaced by plainer ones, or a broker is
taken away, and the story told again; what still breaks the same clause is kept. As stories are
carried out leniently, a story that lost a step is still a story. Both kinds of clusters are told
their stories in this way; steps of brokers with logs are as plain as they can be.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final, Generic

from reassure_conformance.gate import steps as s
from reassure_conformance.gate.run_outcome import Failure, OneTold
from reassure_conformance.gate.story import CLUSTER, Story
from reassure_spec.znodes import PartitionKey, ReplicaList

Retell = Callable[[Story], Failure[OneTold] | None]
"""Tells a story, and returns the failure where it breaks the clause, with what was carried out."""

SMALL: Final = 4
"""Up to so many steps in a row are left out at every place, more only one piece after another."""


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


KEY: Final[PartitionKey] = ("orders", 0)


def list_plainest(story: Story) -> Iterator[Story]:
    """Yield the plainest stories: smallest clusters, shortest lists, and one thing happening."""
    story = story.on((1, 2))
    for assigned in ((1,), (1, 2)):
        create = s.CreateTopic(KEY[0], (assigned,))
        yield story.with_steps((create,))
        for target in ((2,), (2, 1), (1, 2), (1,)):
            steps = (create, s.Request(((KEY, target),)))
            joins = tuple(s.Join(one, KEY) for one in target if one not in assigned)
            yield story.with_steps(steps)
            if joins:
                yield story.with_steps((*steps, *joins))
        for broker in assigned:
            yield story.with_steps((create, s.Die(broker)))
        yield story.with_steps((create, s.Kill(), s.Elect()))


class _Shortening(Generic[OneTold]):
    """The shortest failure that is known, and what is tried to find a shorter one."""

    def __init__(self, best: Failure[OneTold], retell: Retell[OneTold]) -> None:
        self.best = best
        self._retell = retell

    @property
    def steps(self) -> tuple[s.ClusterStep, ...]:
        """The steps of the shortest story that is known."""
        return self.best.story.steps

    def attempt(self, story: Story) -> bool:
        """Tell a story; take it for the best where it breaks the clause."""
        found = self._retell(story)
        if found is not None:
            self.best = found
        return found is not None

    def leave_out(self) -> Iterator[bool]:
        """Try without steps: half of them, a quarter, one; yield after each try what came of it."""
        size = max(1, len(self.steps) // 2)
        while size:
            end = len(self.steps)
            while end >= size and len(self.steps) > size:
                shorter = (*self.steps[: end - size], *self.steps[end:])
                kept = self.attempt(self.best.story.with_steps(shorter))
                yield kept
                end = min(end - size if kept or size > SMALL else end - 1, len(self.steps))
            size //= 2

    def simplify(self) -> Iterator[bool]:
        """Try plainer steps, each in its place, and smaller clusters."""
        place = 0
        while place < len(self.steps):
            for step in _plainer(self.steps[place]):
                others = (*self.steps[:place], step, *self.steps[place + 1 :])
                kept = self.attempt(self.best.story.with_steps(others))
                yield kept
                if kept:
                    break
            else:
                place += 1
        if self.best.story.world == CLUSTER:
            for broker in reversed(self.best.story.brokers):
                others_up = tuple(b for b in self.best.story.brokers if b != broker)
                if others_up:
                    yield self.attempt(self.best.story.on(others_up))


def minimise(
    story: Story, retell: Retell[OneTold], *, is_over: Callable[[], bool] = lambda: False
) -> Iterator[Failure[OneTold]]:
    """Yield failures with shorter and shorter stories, until nothing can be taken from the last.

    The search ends once `is_over`. There is none where the story does not break the clause when it
    is told again.
    """
    first = retell(story)
    if first is None:
        return
    yield first
    search = _Shortening(first, retell)
    plainest = list_plainest(story) if story.world == CLUSTER else ()
    for plain in sorted(plainest, key=lambda plain: len(plain.steps)):
        if len(plain.steps) > len(search.steps) or is_over():
            break
        if search.attempt(plain):
            yield search.best
            break
    improved = True
    while improved:
        improved = False
        for kept in chain(search.leave_out(), search.simplify()):
            if kept:
                improved = True
                yield search.best
            if is_over():
                return
