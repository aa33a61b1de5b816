"""Compiled kernels over the whole state graph: links, ways from the start, components."""

import numpy as np

from reassure_explorer.engine.kernels import Array, compiled, walk
from reassure_explorer.engine.sorting import compare_rows


@compiled
def link(
    states: Array,
    roots: Array,
    children: Array,
    clear: Array,
    put: Array,
    more: Array,
    columns: Array,
) -> Array:
    """Return the successors of each state (row) by each root, as row numbers, -1 where none.

    `states` are sorted rows; the steps of a root stand in `columns` from its number on to that of
    the next. -2 stands for a path that was never learned, -3 for a successor that is not among the
    states.
    """
    targets = np.full((len(states), columns[-1]), -1, dtype=np.int32)
    target = np.empty((1, states.shape[1]), dtype=np.uint64)
    for i in range(len(states)):
        for root in range(len(roots)):
            column = columns[root]
            leaf = -2 - walk(states, i, roots[root], children)
            if leaf == -1:
                targets[i, column] = -2
            while leaf > 0:
                for k in range(states.shape[1]):
                    target[0, k] = (states[i, k] & ~clear[leaf, k]) | put[leaf, k]
                low = 0
                high = len(states)
                while low < high:
                    middle = (low + high) >> 1
                    if compare_rows(states, middle, target, 0) < 0:
                        low = middle + 1
                    else:
                        high = middle
                found = low < len(states) and compare_rows(states, low, target, 0) == 0
                targets[i, column] = low if found else -3
                column += 1
                leaf = more[leaf]
    return targets


@compiled
def find_ways(targets: Array, starts: Array, allowed: Array) -> tuple[Array, Array, Array]:
    """Search breadth first through allowed rows, from those to which `starts` has so many steps.

    `starts` has -1 for rows that nothing starts from. Answers for each row the row before it, the
    column that leads from there, and the number of steps; -1 for what is not reached.
    """
    before = np.full(len(targets), -1, dtype=np.int32)
    steps = np.full(len(targets), -1, dtype=np.int32)
    by = np.full(len(targets), -1, dtype=np.int32)
    queue = np.empty(len(targets), dtype=np.int32)
    order = np.argsort(starts)
    at = filled = turn = level = 0
    while at < filled or turn < len(order):
        if at == filled:
            level = starts[order[turn]]
        while turn < len(order) and starts[order[turn]] <= level:
            i = order[turn]
            turn += 1
            if starts[i] >= 0 and steps[i] < 0:
                steps[i] = level
                queue[filled] = i
                filled += 1
        end = filled
        while at < end:
            i = queue[at]
            at += 1
            for column in range(targets.shape[1]):
                j = targets[i, column]
                if j >= 0 and allowed[j] and steps[j] < 0:
                    before[j] = i
                    steps[j] = level + 1
                    by[j] = column
                    queue[filled] = j
                    filled += 1
        level += 1
    return before, by, steps


@compiled
def find_components(targets: Array, allowed: Array) -> Array:
    """Return the number of the strongly connected component of each allowed row, -1 for others.

    Components are numbered so that successors have lower numbers (Tarjan's order).
    """
    count = len(targets)
    component = np.full(count, -1, dtype=np.int32)
    order = np.full(count, -1, dtype=np.int32)
    low = np.zeros(count, dtype=np.int32)
    edge = np.zeros(count, dtype=np.int32)
    open_rows = np.empty(count, dtype=np.int32)
    path = np.empty(count, dtype=np.int32)
    opened = 0
    numbered = 0
    made = 0
    for first in range(count):
        if not allowed[first] or order[first] >= 0:
            continue
        path[0] = first
        length = 1
        order[first] = low[first] = numbered
        numbered += 1
        open_rows[opened] = first
        opened += 1
        while length > 0:
            i = path[length - 1]
            if edge[i] < targets.shape[1]:
                j = targets[i, edge[i]]
                edge[i] += 1
                if j < 0 or not allowed[j]:
                    continue
                if order[j] < 0:
                    order[j] = low[j] = numbered
                    numbered += 1
                    open_rows[opened] = j
                    opened += 1
                    path[length] = j
                    length += 1
                elif component[j] < 0:
                    low[i] = min(low[i], order[j])
                continue
            length -= 1
            if length > 0:
                low[path[length - 1]] = min(low[path[length - 1]], low[i])
            if low[i] == order[i]:
                while True:
                    opened -= 1
                    j = open_rows[opened]
                    component[j] = made
                    if j == i:
                        break
                made += 1
    return component


@compiled
def judge_components(
    targets: Array, component: Array, fair: Array, columns: Array, count: int
) -> tuple[Array, Array, Array]:
    """Return for each component and fair root whether it is taken, idle, and possible in there.

    Taken: it leads from one of the component's states to another one or to itself. Idle: it is not
    possible in one of them.
    """
    taken = np.zeros((count, len(fair)), dtype=np.bool_)
    idle = np.zeros((count, len(fair)), dtype=np.bool_)
    possible = np.zeros((count, len(fair)), dtype=np.bool_)
    for i in range(len(targets)):
        c = component[i]
        if c < 0:
            continue
        for f in range(len(fair)):
            here = False
            for column in range(columns[fair[f]], columns[fair[f] + 1]):
                j = targets[i, column]
                if j >= 0:
                    here = True
                    if component[j] == c:
                        taken[c, f] = True
            if here:
                possible[c, f] = True
            else:
                idle[c, f] = True
    return taken, idle, possible
