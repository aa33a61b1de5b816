"""The compiled kernels. They know nothing of any model: only diagrams, words and sorted runs.

States are rows of unsigned 64-bit words; where a state is one word the arrays may be flat. Kernels
ending in `_word` take flat arrays only, those ending in `_row` rows only. All of them run without
Python's lock. Machine code is kept on disk in the user's cache directory (`NUMBA_CACHE_DIR` moves
it), so that only the first start ever compiles.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

from reassure_explorer.engine.machine_code import kept_by_text

Array = Any
"""An array whose type numba finds."""
Number = Any
"""A whole number: Python's, or of a type of numpy's that stays what it is in machine code."""

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a function when it is first called, or load what was compiled before."""
    with kept_by_text():
        return cast("F", numba.njit(cache=True, nogil=True)(function))


def inlined(function: F) -> F:
    """Do what `compiled` does, for a function that becomes a part of others."""
    with kept_by_text():
        return cast("F", numba.njit(cache=True, nogil=True, inline="always")(function))


_ONE = np.uint64(1)
BYTE = np.uint64(255)
_WORD = np.uint64(65535)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
RECENT_BITS = 16
_RECENT_SHIFT = np.uint64(64 - RECENT_BITS)


@compiled
def count_words(states: Array) -> int:
    """Return the number of words of a state; known when the kernel is compiled for flat arrays."""
    return 1 if states.ndim == 1 else states.shape[1]


@compiled
def get_word(states: Array, i: Number, k: Number) -> Any:
    """Return word `k` of state `i`."""
    if states.ndim == 1:
        return states[i]
    return states[i, k]


@compiled
def put_word(states: Array, i: Number, k: Number, word: Any) -> None:
    """Write word `k` of state `i`."""
    if states.ndim == 1:
        states[i] = word
    else:
        states[i, k] = word


@inlined
def walk(states: Array, i: int, at: Any, children: Array) -> Any:
    """Return the leaf, or -1 for a miss, that state `i` comes to from node or leaf `at`."""
    while at >= 0:
        node = np.uint64(at)
        word = get_word(states, i, np.int64((node >> np.uint64(16)) & _WORD))
        value = (word >> ((node >> np.uint64(8)) & BYTE)) & ((_ONE << (node & BYTE)) - _ONE)
        at = children[np.int64(node >> np.uint64(32)) + np.int64(value)]
    return at


@compiled
def find_shared(states: Array, start: Number, end: Number, shared: Array) -> None:
    """Write to `shared` the bits, by word, in which all states from `start` to `end` agree."""
    for k in range(count_words(states)):
        first = get_word(states, start, k)
        differ = np.uint64(0)
        for i in range(start + 1, end):
            differ |= get_word(states, i, k) ^ first
        shared[k] = ~differ


@compiled
def walk_together(states: Array, i: Number, root: Number, children: Array, shared: Array) -> Number:
    """Return how far all states go that agree with `i` in the bits `shared`: a node, or a leaf."""
    at: Any = np.int64(root)
    while at >= 0:
        node = np.uint64(at)
        which = 0 if states.ndim == 1 else np.int64((node >> np.uint64(16)) & _WORD)
        shift = (node >> np.uint64(8)) & BYTE
        mask = (_ONE << (node & BYTE)) - _ONE
        if (shared[which] >> shift) & mask != mask:
            break
        value = (get_word(states, i, which) >> shift) & mask
        at = children[np.int64(node >> np.uint64(32)) + np.int64(value)]
    return at


@compiled
def walk_again(
    states: Array,
    i: Number,
    start: Number,
    children: Array,
    before: Number,
    last: Number,
    read: Array,
) -> tuple[Number, Number]:
    """Do what `walk` does, from one node, unless all that state `last` read from there is the same.

    Neighbours in a sorted run mostly differ in bits that a rule does not look at. `before` is the
    leaf that `last` came to, and `read` the bits it read, which are replaced where `i` is walked.
    Answers the leaf, and the state that `read` is about from now on.
    """
    words = count_words(states)
    if last >= 0:
        differ = np.uint64(0)
        for k in range(words):
            differ |= (get_word(states, i, k) ^ get_word(states, last, k)) & read[k]
        if differ == 0:
            return before, last
    for k in range(words):
        read[k] = 0
    at: Any = np.int64(start)
    while at >= 0:
        node = np.uint64(at)
        which = 0 if states.ndim == 1 else np.int64((node >> np.uint64(16)) & _WORD)
        shift = (node >> np.uint64(8)) & BYTE
        mask = (_ONE << (node & BYTE)) - _ONE
        read[which] |= mask << shift
        value = (get_word(states, i, which) >> shift) & mask
        at = children[np.int64(node >> np.uint64(32)) + np.int64(value)]
    return at, i


@compiled
def write_successor(
    states: Array,
    i: Number,
    leaf: Number,
    clear: Array,
    put: Array,
    recent: Array,
    out: Array,
    at: Number,
) -> int:
    """Write the successor of a state to place `at`; answer 0 where it was written lately, else 1.

    What was written lately is kept by hash in `recent`, whole.
    """
    mixed = np.uint64(0)
    for k in range(count_words(states)):
        word = (get_word(states, i, k) & ~clear[leaf, k]) | put[leaf, k]
        put_word(out, at, k, word)
        mixed = (mixed ^ word) * _SPREAD
    place = np.int64(mixed >> _RECENT_SHIFT)
    fresh = 0
    for k in range(count_words(states)):
        word = get_word(out, at, k)
        fresh |= get_word(recent, place, k) != word
        put_word(recent, place, k, word)
    return fresh


@compiled
def expand(
    states: Array,
    start: int,
    chunk: int,
    roots: Array,
    children: Array,
    clear: Array,
    put: Array,
    more: Array,
    widest: int,
    recent: Array,
    out: Array,
    misses: Array,
    hits: Array,
    stuck: Array,
) -> tuple[int, int, int, int]:
    """Write the successors of states to `out` until the states end or room runs out.

    So many states are taken at a time, root by root, from where their ways part; `misses` has room
    for each root of each of them, `out` for `widest` steps of each. Answers the first state not
    expanded, the number of states written, of steps taken and of misses. A miss is a (state, root)
    whose path is not learned yet. States found in `recent` are steps and are not written again.
    `stuck` is by state: it becomes False where there is a step.
    """
    written = 0
    taken = 0
    missed = 0
    read = np.zeros(count_words(states), dtype=np.uint64)
    shared = np.zeros(count_words(states), dtype=np.uint64)
    while start < len(states):
        end = min(start + chunk, len(states))
        room = (end - start) * len(roots)
        if written + room * widest > len(out) or missed + room > len(misses):
            break
        find_shared(states, start, end, shared)
        for root in range(len(roots)):
            parting = walk_together(states, start, roots[root], children, shared)
            if parting == -2:
                continue
            at: Number = np.int64(-1)
            last: Number = np.int64(-1)
            for i in range(start, end):
                at, last = walk_again(states, i, parting, children, at, last, read)
                if at < -2:
                    leaf = -2 - at
                    stuck[i] = False
                    while leaf > 0:
                        hits[leaf] += 1
                        taken += 1
                        written += write_successor(
                            states, i, leaf, clear, put, recent, out, written
                        )
                        leaf = more[leaf]
                elif at == -1:
                    misses[missed, 0] = i
                    misses[missed, 1] = root
                    missed += 1
        start = end
    return start, written, taken, missed


@compiled
def follow(
    states: Array,
    misses: Array,
    roots: Array,
    children: Array,
    clear: Array,
    put: Array,
    more: Array,
    recent: Array,
    out: Array,
    hits: Array,
    stuck: Array,
) -> tuple[int, int, int]:
    """Write the successors of misses (see `expand`) whose paths have been learned by now.

    The others are moved to the front of `misses`. Answers the number of states written, of steps
    taken and of misses that are left. `out` has room for the longest chain of each miss.
    """
    written = 0
    taken = 0
    left = 0
    for j in range(len(misses)):
        i = misses[j, 0]
        root = misses[j, 1]
        at = walk(states, i, roots[root], children)
        if at == -1:
            misses[left, 0] = i
            misses[left, 1] = root
            left += 1
        leaf = -2 - at
        if leaf > 0:
            stuck[i] = False
        while leaf > 0:
            hits[leaf] += 1
            taken += 1
            written += write_successor(states, i, leaf, clear, put, recent, out, written)
            leaf = more[leaf]
    return written, taken, left


@compiled
def judge(
    states: Array,
    start: int,
    end: int,
    checks: Array,
    roots: Array,
    children: Array,
    found: Array,
    misses: Array,
) -> int:
    """Look for the first of these states in which each check is true; answer the misses.

    `checks` are numbers of roots, `found` the state by check, -1 before. `misses` has room for each
    check of each state.
    """
    missed = 0
    read = np.zeros(count_words(states), dtype=np.uint64)
    shared = np.zeros(count_words(states), dtype=np.uint64)
    find_shared(states, start, end, shared)
    for c in range(len(checks)):
        parting = walk_together(states, start, roots[checks[c]], children, shared)
        if parting == -2 or found[c] >= 0:
            continue
        at: Number = np.int64(-1)
        last: Number = np.int64(-1)
        for i in range(start, end):
            at, last = walk_again(states, i, parting, children, at, last, read)
            if at == -3:
                found[c] = i
                break
            if at == -1:
                misses[missed, 0] = i
                misses[missed, 1] = c
                missed += 1
    return missed


# Orbits ---------------------------------------------------------------------------------------


@inlined
def rename(states: Array, i: int, tables: Any, made: Array) -> None:
    """Write what row `i` becomes under each permutation to `made`, by word and permutation."""
    starts, slices, firsts, images = tables
    made[:] = 0
    for chunk in range(len(firsts)):
        value = np.uint64(0)
        for at in range(starts[chunk], starts[chunk + 1]):
            word = states[i, slices[at, 0]] >> np.uint64(slices[at, 1])
            mask = (_ONE << np.uint64(slices[at, 2])) - _ONE
            value |= (word & mask) << np.uint64(slices[at, 3])
        row = firsts[chunk] + np.int64(value)
        for k in range(images.shape[1]):
            for g in range(images.shape[2]):
                made[k, g] |= images[row, k, g]


@compiled
def represent(states: Array, tables: Any) -> None:
    """Replace each state (row) by the least of what it becomes; nothing without permutations."""
    size = tables[3].shape[2]
    if size == 0:
        return
    words = states.shape[1]
    made = np.empty((words, size), dtype=np.uint64)
    for i in range(len(states)):
        rename(states, i, tables, made)
        if words == 1:
            least = made[0, 0]
            for g in range(1, size):
                least = min(least, made[0, g])
            states[i, 0] = least
            continue
        best = 0
        for g in range(1, size):
            order = 0
            for k in range(words):
                if order == 0 and made[k, g] != made[k, best]:
                    order = -1 if made[k, g] < made[k, best] else 1
            if order < 0:
                best = g
        for k in range(words):
            states[i, k] = made[k, best]


@compiled
def permute(states: Array, tables: Any, which: int) -> Array:
    """Return what the states (rows) become under one permutation."""
    images = np.empty_like(states)
    made = np.empty((states.shape[1], tables[3].shape[2]), dtype=np.uint64)
    for i in range(len(states)):
        rename(states, i, tables, made)
        for k in range(states.shape[1]):
            images[i, k] = made[k, which]
    return images


@compiled
def find_source(
    states: Array,
    target: Array,
    roots: Array,
    children: Array,
    clear: Array,
    put: Array,
    more: Array,
    tables: Any,
) -> tuple[int, int]:
    """Return the first (state, root) whose successor is `target`, or (-1, -1).

    Successors stand for their orbits: they are replaced by representatives before comparing.
    """
    after = np.empty((1, states.shape[1]), dtype=np.uint64)
    for i in range(len(states)):
        for root in range(len(roots)):
            leaf = -2 - walk(states, i, roots[root], children)
            while leaf > 0:
                for k in range(states.shape[1]):
                    after[0, k] = (states[i, k] & ~clear[leaf, k]) | put[leaf, k]
                represent(after, tables)
                same = True
                for k in range(states.shape[1]):
                    same = same and after[0, k] == target[k]
                if same:
                    return i, root
                leaf = more[leaf]
    return -1, -1


@compiled
def find_leaves(states: Array, roots: Array, children: Array) -> Array:
    """Return for each state (row) and root the leaf it comes to, -1 for a miss."""
    leaves = np.empty((len(states), len(roots)), dtype=np.int32)
    for i in range(len(states)):
        for root in range(len(roots)):
            leaves[i, root] = walk(states, i, roots[root], children)
    return leaves
