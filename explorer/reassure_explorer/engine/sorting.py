"""Compiled loops that sort, unite and subtract states, as words and as rows."""

import numpy as np

from reassure_explorer.engine.kernels import BYTE, Array, compiled, inlined

# Sorted runs of one-word states --------------------------------------------------------------


@compiled
def unique_word(run: Array) -> int:
    """Drop repetitions from a sorted run in place; answer how many are left."""
    if len(run) == 0:
        return 0
    kept = 1
    last = run[0]
    for i in range(1, len(run)):
        here = run[i]
        run[kept] = here
        kept += here != last
        last = here
    return kept


@compiled
def merge_word(left: Array, right: Array, out: Array) -> int:
    """Merge two sorted runs without repetitions into one; answer its length. No branch on data."""
    i = 0
    j = 0
    made = 0
    while i < len(left) and j < len(right):
        a = left[i]
        b = right[j]
        out[made] = min(a, b)
        i += a <= b
        j += b <= a
        made += 1
    while i < len(left):
        out[made] = left[i]
        i += 1
        made += 1
    while j < len(right):
        out[made] = right[j]
        j += 1
        made += 1
    return made


@compiled
def subtract_word(run: Array, known: Array) -> int:
    """Keep what of a sorted run is not in another, in place; answer how many are left.

    Side by side where the runs are of like length; by leaps of 64 and a search within where `known`
    is much longer.
    """
    kept = 0
    i = 0
    j = 0
    if len(known) < 8 * len(run):
        while i < len(run) and j < len(known):
            a = run[i]
            b = known[j]
            run[kept] = a
            kept += a < b
            i += a <= b
            j += b <= a
    else:
        while i < len(run) and j < len(known):
            a = run[i]
            while j + 64 <= len(known) and known[j + 63] < a:
                j += 64
            if j + 64 <= len(known):
                step = 32
                while step > 0:
                    j += step * (known[j + step - 1] < a)
                    step >>= 1
            else:
                while j < len(known) and known[j] < a:
                    j += 1
            run[kept] = a
            kept += j == len(known) or known[j] != a
            i += 1
    while i < len(run):
        run[kept] = run[i]
        kept += 1
        i += 1
    return kept


@compiled
def squeeze_word(run: Array, out: Array) -> int:
    """Write a sorted run as differences of seven bits a byte; answer the number of bytes."""
    made = 0
    last = np.uint64(0)
    for i in range(len(run)):
        rest = run[i] - last
        last = run[i]
        while rest > np.uint64(127):
            out[made] = np.uint8((rest & np.uint64(127)) | np.uint64(128))
            rest >>= np.uint64(7)
            made += 1
        out[made] = np.uint8(rest)
        made += 1
    return made


@compiled
def unsqueeze_word(data: Array, run: Array) -> None:
    """Read the differences back into `run`, which has the right length."""
    at = 0
    last = np.uint64(0)
    for i in range(len(run)):
        shift = np.uint64(0)
        rest = np.uint64(0)
        while data[at] > 127:
            rest |= (np.uint64(data[at]) & np.uint64(127)) << shift
            shift += np.uint64(7)
            at += 1
        rest |= np.uint64(data[at]) << shift
        at += 1
        last += rest
        run[i] = last


# Sorted runs of states of several words ------------------------------------------------------


@inlined
def compare_rows(left: Array, i: int, right: Array, j: int) -> int:
    """Return -1, 0 or 1 as one row is less than, equal to or greater than another."""
    order = 0
    for k in range(left.shape[1]):
        if order == 0 and left[i, k] != right[j, k]:
            order = -1 if left[i, k] < right[j, k] else 1
    return order


@compiled
def find_place(run: Array, row: Array) -> int:
    """Return how many rows of a sorted run are less than a row."""
    low = 0
    high = len(run)
    while low < high:
        middle = (low + high) >> 1
        if compare_rows(run, middle, row.reshape(1, -1), 0) < 0:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def sort_rows(rows: Array, spare: Array) -> None:
    """Sort rows in place, one byte after another, the last word's lowest byte first.

    `spare` is as large as `rows`. Bytes that are alike in all rows cost one look.
    """
    count = len(rows)
    words = rows.shape[1]
    here = rows
    there = spare
    swapped = False
    starts = np.zeros(257, dtype=np.int64)
    for back in range(words):
        k = words - 1 - back
        for shift in range(0, 64, 8):
            starts[:] = 0
            for i in range(count):
                starts[np.int64((here[i, k] >> np.uint64(shift)) & BYTE) + 1] += 1
            if count == 0 or starts.max() == count:
                continue
            for byte in range(256):
                starts[byte + 1] += starts[byte]
            for i in range(count):
                place = np.int64((here[i, k] >> np.uint64(shift)) & BYTE)
                to = starts[place]
                starts[place] += 1
                for w in range(words):
                    there[to, w] = here[i, w]
            here, there = there, here
            swapped = not swapped
    if swapped:
        rows[:] = here


@compiled
def unique_row(run: Array) -> int:
    """Do what `unique_word` does."""
    kept = min(1, len(run))
    for i in range(1, len(run)):
        if compare_rows(run, i, run, kept - 1) != 0:
            for k in range(run.shape[1]):
                run[kept, k] = run[i, k]
            kept += 1
    return kept


@compiled
def merge_row(left: Array, right: Array, out: Array) -> int:
    """Do what `merge_word` does."""
    i = 0
    j = 0
    made = 0
    while i < len(left) or j < len(right):
        if i == len(left):
            order = 1
        elif j == len(right):
            order = -1
        else:
            order = compare_rows(left, i, right, j)
        for k in range(out.shape[1]):
            out[made, k] = left[i, k] if order <= 0 else right[j, k]
        i += order <= 0
        j += order >= 0
        made += 1
    return made


@compiled
def subtract_row(run: Array, known: Array) -> int:
    """Do what `subtract_word` does."""
    kept = 0
    j = 0
    for i in range(len(run)):
        while j + 64 <= len(known) and compare_rows(known, j + 63, run, i) < 0:
            j += 64
        while j < len(known) and compare_rows(known, j, run, i) < 0:
            j += 1
        if j == len(known) or compare_rows(known, j, run, i) != 0:
            for k in range(run.shape[1]):
                run[kept, k] = run[i, k]
            kept += 1
    return kept
