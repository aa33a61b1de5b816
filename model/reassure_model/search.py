"""Breadth-first search: the shortest story that leads from one state to another.

States must be hashable and compare by value. Only as much of the world is looked at as the caller's
`successors` allow; what is not found is not reachable within them.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

from reassure_spec.errors import ReassureError

S = TypeVar("S", bound=Hashable)
A = TypeVar("A")


class SearchLimit(ReassureError):
    """More states are reachable than the search may look at."""


def find_shortest(
    start: S,
    successors: Callable[[S], Iterable[tuple[A, S]]],
    found: Callable[[S], bool],
    limit: int = 200_000,
) -> tuple[A, ...] | None:
    """Return the actions of a shortest way from `start` to a state that is `found`, or None.

    Ties go to the successor listed first. Raises SearchLimit when more than `limit` states are
    reachable and none of those looked at is found.
    """
    if found(start):
        return ()
    parents: dict[S, tuple[S, A] | None] = {start: None}
    frontier = [start]
    while frontier:
        reached: list[S] = []
        for state in frontier:
            for action, after in successors(state):
                if after in parents:
                    continue
                parents[after] = (state, action)
                if found(after):
                    return _trace(parents, after)
                reached.append(after)
        if len(parents) > limit:
            raise SearchLimit(f"more than {limit} states are reachable")
        frontier = reached
    return None


def _trace(parents: dict[S, tuple[S, A] | None], state: S) -> tuple[A, ...]:
    actions: list[A] = []
    while (entry := parents[state]) is not None:
        state, action = entry
        actions.append(action)
    return tuple(reversed(actions))


def find_story(
    start: S,
    successors: Callable[[S], Iterable[tuple[A, S]]],
    found: Callable[[S], bool],
    budget: Mapping[type, int],
    limit: int = 200_000,
) -> tuple[A, ...] | None:
    """Return a shortest story in which actions of some kinds happen a limited number of times.

    `budget` says how often each kind may happen; kinds that it does not name are not limited.
    Raises SearchLimit like `find_shortest`.
    """
    kinds = tuple(budget)

    def spend(node: tuple[S, tuple[int, ...]]) -> Iterator[tuple[A, tuple[S, tuple[int, ...]]]]:
        state, left = node
        for action, after in successors(state):
            rest = tuple(n - isinstance(action, k) for n, k in zip(left, kinds, strict=True))
            if min(rest, default=0) >= 0:
                yield action, (after, rest)

    return find_shortest((start, tuple(budget.values())), spend, lambda n: found(n[0]), limit)
