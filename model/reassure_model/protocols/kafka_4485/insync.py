"""The in-sync set and the high watermark, as KAFKA-4485 defines them.

Definitions over one instant of one leader. The leader itself is one of the replicas, with its own
log end offset and no lag: it ends where it ended 0 ms ago.

Sequences are aligned: element i of `offsets` (log end offsets) and of `lags_ms` (replica lag in
milliseconds) belongs to element i of `replicas`.
"""

from reassure_spec.clauses import clause
from reassure_spec.znodes import ReplicaList

Offsets = tuple[int, ...]
Lags = tuple[int, ...]


@clause("isr.pseudo.by-lag")
def compute_pseudo_isr(replicas: ReplicaList, lags_ms: Lags, lag_ms_max: int) -> ReplicaList:
    """Return the replicas whose lag is at most `lag_ms_max`.

    >>> compute_pseudo_isr((1, 2, 3), (0, 10, 11), 10)
    (1, 2)
    """
    return tuple(r for r, lag in zip(replicas, lags_ms, strict=True) if lag <= lag_ms_max)


@clause("hw.never-decreases", "hw.minimum-of-pseudo-isr")
def compute_high_watermark(
    high_watermark: int, replicas: ReplicaList, offsets: Offsets, pseudo_isr: ReplicaList
) -> int:
    """Return the high watermark after an evaluation: the smallest pseudo-in-sync end, never less.

    The pseudo-ISR is never empty, as the leader is always in it.

    >>> compute_high_watermark(4, (1, 2), (9, 7), (1, 2))
    7
    >>> compute_high_watermark(8, (1, 2), (9, 7), (1, 2))
    8
    """
    ends = [end for r, end in zip(replicas, offsets, strict=True) if r in pseudo_isr]
    return max(high_watermark, min(ends))


@clause("isr.member.at-or-above-hw", "isr.entry.at-high-watermark")
def compute_isr(
    replicas: ReplicaList, offsets: Offsets, pseudo_isr: ReplicaList, high_watermark: int
) -> ReplicaList:
    """Return the in-sync replicas: those of the pseudo-ISR that hold all up to the high watermark.

    >>> compute_isr((1, 2), (9, 7), (1, 2), 8)
    (1,)
    """
    return tuple(
        r
        for r, end in zip(replicas, offsets, strict=True)
        if r in pseudo_isr and end >= high_watermark
    )
