"""The worlds of KAFKA-42: one partition, what the old znode names, and what its rules look at."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from reassure_judge.protocols.kafka_42 import EntriesRules
from reassure_judge.protocols.kafka_zk.partition import Logged
from reassure_model.outcome import Accepted
from reassure_model.partition import Environment, is_leader_live
from reassure_model.writes import ChangeIsr
from reassure_mutation.worlds import FAILOVER, NAME, TOPIC, Move, World, load_worlds, spell_target
from reassure_spec.readings import Readings

WORLDS: Final = load_worlds(__package__, lambda assigned, _: Logged(assigned, told=assigned or ()))


def list_moves(
    hosted: Logged, around: Environment, world: World, readings: Readings
) -> Iterator[Move]:
    """Yield what may happen in a state."""
    rules = EntriesRules("kafka-42", readings)
    if hosted.assigned is None:
        return
    for target in world.targets:
        if target != hosted.entry:
            after = rules.follow_entry(hosted, target)
            line = f"old znode {NAME} to {spell_target(target)}"
            yield Move((line,), after, around, "entries")
    if hosted.entry is not None:
        gone = rules.follow_entry(hosted, None)
        yield Move(("delete old znode",), gone, around, "withdrawals")
    if not around.deleting:
        asked = replace(around, deleting=True)
        yield Move((f"delete topic {TOPIC}",), hosted, asked, "deletions")
    yield from _list_changes(hosted, around, readings)
    for broker in sorted(around.known):
        word, counted = ("dies", "deaths") if broker in around.live else ("returns", "")
        live = around.live ^ {broker}
        yield Move((f"broker {broker} {word}",), hosted, replace(around, live=live), counted)
    after = rules.judgement.fail_over(hosted, readings)
    yield Move(FAILOVER, after, around, "failovers")


def _list_changes(hosted: Logged, around: Environment, readings: Readings) -> Iterator[Move]:
    """Yield what the leader may write of the in-sync set."""
    state, accept = hosted.state, EntriesRules.judgement.accept
    if state is None or not is_leader_live(state, around):
        return
    others = sorted(around.live - {state.leader})
    changes = [(f"{r} joins {NAME}", (*state.isr, r), "") for r in others if r not in state.isr]
    changes += [
        (f"{r} leaves {NAME}", tuple(each for each in state.isr if each != r), "lags")
        for r in state.isr
        if r != state.leader
    ]
    for line, isr, counted in changes:
        write = ChangeIsr(replace(state, isr=isr), state.leader)
        outcome = accept(hosted, write, around, readings)
        if isinstance(outcome, Accepted):
            yield Move((line,), outcome.state, around, counted)
