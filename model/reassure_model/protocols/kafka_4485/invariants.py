"""What is true of a replicated partition at every moment, and what must be reachable.

As in `invariants`: a predicate answers why it is broken, or None, and goals stand beside them. As
written KAFKA-4485 breaks the first three across elections; they hold with all four amendments
(`hw.over-stored-isr`, `hw.served-from`, `isr.entry`, `follower.truncation`).
"""

from collections.abc import Callable, Mapping
from typing import Final

from reassure_model.protocols.kafka_4485.replication import Replication
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings


@clause("hw.consumer.monotone")
def find_watermark_gone_back(state: Replication) -> str | None:
    """Say so when consumers are shown less than they were shown before."""
    before = len(state.committed)
    if state.shown is None or state.shown >= before:
        return None
    return f"high watermark {state.shown} after {before}"


@clause("isr.stored.holds-committed")
def find_member_without_committed(state: Replication) -> str | None:
    """Say so when a member of the stored ISR lacks a record that was shown to consumers."""
    for broker, replica in enumerate(state.replicas):
        log = replica.log
        if broker in state.isr and log[: len(state.committed)] != state.committed:
            return f"in sync {broker} holds {list(log)}, shown {list(state.committed)}"
    return None


@clause("log.committed-kept")
def find_committed_lost(state: Replication) -> str | None:
    """Say so when the leader lacks a record that was shown to consumers."""
    log = state.replicas[state.leader].log
    if log[: len(state.committed)] == state.committed:
        return None
    return f"leader {state.leader} holds {list(log)}, shown {list(state.committed)}"


@clause("hw.at-most-leader-end", "hw.follower.from-leader")
def find_watermark_beyond_end(state: Replication) -> str | None:
    """Say so when a high watermark is beyond the log end offset of its own replica."""
    beyond = [b for b, r in enumerate(state.replicas) if r.high_watermark > len(r.log)]
    return f"high watermark beyond the end of {beyond[0]}" if beyond else None


@clause("isr.change.leader-kept")
def find_leader_not_stored(state: Replication) -> str | None:
    """Say so when the leader is not in the stored ISR."""
    return None if state.leader in state.isr else f"leader {state.leader} is not in sync"


INVARIANTS: Final[Mapping[str, Callable[[Replication], str | None]]] = {
    "hw.consumer.monotone": find_watermark_gone_back,
    "isr.stored.holds-committed": find_member_without_committed,
    "log.committed-kept": find_committed_lost,
    "hw.at-most-leader-end": find_watermark_beyond_end,
    "isr.change.leader-kept": find_leader_not_stored,
}
"""By clause."""


@clause("hw.never-decreases", "hw.consumer.monotone")
def is_promised(clause_id: str, readings: Readings) -> bool:
    """Whether the readings promise the invariant: guarantee 3 may speak of one leader's term only.

    Within a term the mark never goes back by the way it is computed
    (`compute_high_watermark`); across elections consumers would have to look.
    """
    return clause_id != "hw.consumer.monotone" or readings.hw_scope == "across-clean-elections"


GOALS: Final[Mapping[str, Callable[[Replication], bool]]] = {
    "consumers are shown a record": lambda s: len(s.committed) > 0,
    "a second leader shows a record": lambda s: s.leader_epoch > 0 and (s.shown or 0) > 0,
    "a new leader shows nothing yet": lambda s: s.shown is None,
    "the leader's copy of the stored ISR is stale": lambda s: s.term.version != s.version,
    "a request of an earlier leader epoch is on its way": lambda s: any(
        r.request is not None and r.request.leader_epoch < s.leader_epoch for r in s.replicas
    ),
    "two logs differ at the same offset": lambda s: any(
        a != b for r in s.replicas for a, b in zip(r.log, s.replicas[s.leader].log, strict=False)
    ),
}
