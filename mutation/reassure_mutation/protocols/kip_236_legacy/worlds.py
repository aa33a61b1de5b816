"""The worlds of the old znode: what it names, and partitions that move by the rules of KIP-236.

Everything waits for the controller, also for what it writes to partitions.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from reassure_judge.moments import Kept
from reassure_judge.rules import Possible
from reassure_model.environment import Join, On
from reassure_model.outcome import Accepted
from reassure_model.partition import Environment, LeaderAndIsr, Partition
from reassure_model.protocols.kip_236 import apply_failover
from reassure_model.protocols.kip_236.batch import Batch, act_on, add_request, make_write, next_owed
from reassure_model.protocols.kip_236_legacy.entries import Entry, is_carried_by
from reassure_model.protocols.kip_236_legacy.translating import (
    TRANSLATING,
    Translating,
    fail_over,
    find_debt,
)
from reassure_mutation.judged import Judged
from reassure_mutation.kills import normalise
from reassure_mutation.worlds import FAILOVER, TOPIC, Move, World, load_worlds, spell_target
from reassure_spec.readings import Readings
from reassure_spec.znodes import PartitionKey, ReplicaList

Named = dict[PartitionKey, ReplicaList]


def make_rules(profile: str, readings: Readings) -> Judged:
    """Return what is asked of the old znode."""
    return Judged(TRANSLATING, readings, find_debt)


def _begin(lists: tuple[ReplicaList, ...], _: frozenset[int]) -> Translating:
    return Translating(
        Kept(
            {
                (TOPIC, number): Partition(replicas, LeaderAndIsr(replicas[0], 0, 0, replicas))
                for number, replicas in enumerate(lists)
            }
        )
    )


WORLDS: Final = load_worlds(__package__, _begin)


def list_moves(
    state: Translating, around: Environment, world: World, readings: Readings
) -> Iterator[Move]:
    """Yield what may happen in a state: what the controller writes to partitions comes first."""
    batch = Batch(tuple(state.partitions.items()), around.live, around.known)
    owed = next_owed(batch, readings)
    if owed is not None:
        yield Move((), _take(state, make_write(batch, owed, readings)), around)
        return
    for target in world.targets:
        named = {(TOPIC, number): to for number, to in target}
        text = " and ".join(f"{k[0]}-{k[1]} to {spell_target(to)}" for k, to in named.items())
        yield Move((f"old znode {text}",), _write(state, named), around, "entries")
        if len(named) == 1:
            asked = add_request(batch, tuple(named.items()), legacy=False)
            yield Move((f"request {text}",), _take(state, Accepted(asked)), around, "requests")
    if state.entries is not None:
        yield Move(("delete old znode",), replace(state, entries=None), around, "withdrawals")
    for key, partition in state.partitions.items():
        isr = () if partition.state is None else partition.state.isr
        late = [r for r in partition.assigned or () if r not in isr]
        for replica in late[:1]:
            after = _take(state, act_on(batch, On(key, Join(replica)), readings))
            yield Move((f"{replica} joins {key[0]}-{key[1]}",), after, around)
    found = {key: apply_failover(each, readings) for key, each in state.partitions.items()}
    after = fail_over(replace(state, partitions=Kept(found)), readings)
    yield Move(FAILOVER, after, around, "failovers")


def _take(state: Translating, outcome: Any) -> Translating:
    """Return the state with partitions as they are by now, and entries whose moves have begun."""
    assert isinstance(outcome, Accepted), outcome
    batch: Batch = outcome.state
    partitions = {key: normalise(Possible(each)).partition for key, each in batch.partitions}
    entries = None
    if state.entries is not None:
        entries = tuple(
            (key, replace(each, begun=each.begun or is_carried_by(each, partitions[key])))
            for key, each in state.entries
        )
    return Translating(Kept(partitions), entries)


def _write(state: Translating, named: Named) -> Translating:
    """Return the state once a client has written the znode."""
    before = dict(state.entries or ())
    after = []
    for key, target in named.items():
        entry = before.get(key)
        if entry is None or entry.target != target:
            entry = Entry(target, created=state.entries is None)
            entry = replace(entry, begun=is_carried_by(entry, state.partitions[key]))
        after.append((key, entry))
    return replace(state, entries=tuple(after))
