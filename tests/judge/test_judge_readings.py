"""Each value of a reading that a judge carries out makes it judge some history otherwise."""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from history_steps import (
    Act,
    ask,
    change_isr,
    die,
    elect,
    perform,
    put,
    raise_state,
    read_log,
    rest,
    run,
    write,
)
from observed_walks import tell_term, tell_walk
from walks import HealingWalk, LegacyWalk, Walk

from reassure_judge.judge import Judge
from reassure_judge.protocols import find_protocols, get_observing
from reassure_judge.rules import LOGS
from reassure_model.environment import Die, Failover, Join, NotPossible, On, Return
from reassure_model.protocols.kip_46 import Submit, Tick
from reassure_model.protocols.kip_236_legacy import Ask, DeleteLegacy, WriteLegacy
from reassure_model.writes import WriteAssigned
from reassure_spec import znodes
from reassure_spec.observations import Fetch
from reassure_spec.profiles import PROTOCOLS, has_protocol, list_profiles
from reassure_spec.readings import (
    READINGS,
    Readings,
    field_name,
    get_profile,
    override_readings,
)
from reassure_spec.rooms import ROOMS
from reassure_spec.znodes import BadZnode, LegacyEntry
from reassure_zookeeper.transactions import Create, SetData

JUDGED = {
    room.name.removeprefix("judge of "): room
    for room in ROOMS.values()
    if room.name.startswith("judge of ")
}
"""The rooms by the profile that they judge."""
CARRIED = [
    pytest.param(profile, reading.name, value, id=f"{profile}-{reading.name}={value}")
    for profile, room in JUDGED.items()
    for reading in READINGS
    for value in reading.values
    if room.find_refusal(reading.name, value) is None
    and value != getattr(get_profile(profile), field_name(reading.name))
]
History = list[Any]
"""Transactions, or lines of observations; None where the cluster rests."""


def work(*target: int) -> tuple[Act, ...]:
    """Return a request that the controller carries out as far as it can."""
    return ask(*target), run


def _join_if_assigned(sim: Any) -> None:
    if 3 in sim.partition.assigned:
        sim.change_isr(1, 2, 3)


def _go_on_until_assigned(sim: Any) -> None:
    for step in sim.steps():
        if isinstance(step, WriteAssigned):
            return
        sim.perform(step)


LEAST = znodes.encode_config({znodes.MIN_ISR: "2"})
STORIES: dict[str, tuple[Act, ...]] = {
    "a target is changed in flight, and again once a replica is in sync": (
        *(*work(3, 4), _join_if_assigned, *work(2, 4), _join_if_assigned),
        *(*work(4, 3), _join_if_assigned, elect(), run),
    ),
    "a target that nobody has reached is changed, then there is a failover": (
        *(*work(2, 3), *work(2, 4), elect(), run),
    ),
    "a target shares a replica with the first, in sync or not": (*work(3, 4), *work(4, 2)),
    "the target in flight is asked for once more": (*work(2, 3), *work(2, 3)),
    "a dead broker, one that never was, and fewer replicas than the minimum": (
        *(write(Create(znodes.topic_config_path("orders"), LEAST)), die(4), rest),
        *(*work(1, 4), *work(1, 9), *work(3)),
    ),
    "a target is changed while nobody leads": (
        *(*work(2, 3), change_isr(1), die(1), run, *work(2, 4)),
    ),
    "a target replica falls behind after the announcement": (
        *(
            *work(1, 3),
            change_isr(1, 2, 3),
            _go_on_until_assigned,
            change_isr(1),
            put(WriteAssigned((1, 3))),
        ),
    ),
    "the first is elected unasked, and then one out of sync where no other lives": (
        *(die(1), run, lambda sim: sim.register(1), run, change_isr(2, 1)),
        *(raise_state(leader=1, isr=(2, 1)), change_isr(1), die(1), run),
        raise_state(leader=2, isr=(2,)),
    ),
}
"""By what happens: what clients, brokers and controllers do."""


def tell(make: Any, profile: str, story: tuple[Act, ...], readings: Readings) -> History:
    """Tell a story to the reference controller under these readings; return the history."""
    sim = make(profile)
    sim.judge = Judge(profile, readings)
    sim.start()
    perform(sim, story)
    return [*sim.history, None]


KEYS = tuple(("orders", number) for number in range(4))


def wander(profile: str, readings: Readings, seed: int) -> History:
    """Return what a random walk of the machine of a profile leaves, healing or the old znode."""
    draw = random.Random(seed)
    make: type[Walk[Any]] = HealingWalk if has_protocol(profile, "kip-46") else LegacyWalk
    walk: Any = make(dict.fromkeys(KEYS, (1, 2)), 4, readings)
    history, told = [], 0
    for _ in range(120):
        if draw.random() < 0.5:
            rests = not walk.control()
        else:
            rests = False
            try:
                walk.take(draw.choice(ACTS[make])(draw))
            except NotPossible:
                continue
        history += [*walk.transactions[told:], *([None] if rests else [])]
        told = len(walk.transactions)
    return history


def _draw_target(draw: random.Random) -> tuple[int, ...]:
    return tuple(draw.sample((1, 2, 3, 4), draw.choice((1, 2))))


_ANYWHERE = (
    lambda draw: On(draw.choice(KEYS), Join(draw.randint(1, 4))),
    lambda draw: Die(draw.randint(1, 4)),
    lambda draw: Return(draw.randint(1, 4)),
    lambda draw: Failover(),
)
ACTS: dict[Any, tuple[Callable[[random.Random], Any], ...]] = {
    LegacyWalk: (
        *_ANYWHERE,
        lambda draw: WriteLegacy((LegacyEntry(KEYS[0], _draw_target(draw)),)),
        lambda draw: DeleteLegacy(),
        lambda draw: Ask(((draw.choice(KEYS), _draw_target(draw)),)),
    ),
    HealingWalk: (
        *_ANYWHERE,
        lambda draw: Die(draw.choice((1, 2))),
        lambda draw: Return(draw.choice((1, 2))),
        lambda draw: Tick(draw.choice((1_000, 600_000))),
        lambda draw: Submit(((draw.choice(KEYS), _draw_target(draw)),)),
    ),
}
"""What may happen in a walk."""


def observe(readings: Readings, seed: int) -> Iterator[History]:
    """Yield what brokers with logs say: of an election, of times, and of an end read too early."""
    draw = random.Random(seed)
    yield tell_walk(draw, readings, 3, 80).telling.shuffle(draw)
    told = tell_term(draw, readings, 3, 80, behind=2).shuffle(draw)
    yield told
    at = draw.choice([n for n, line in enumerate(told) if isinstance(line.what, Fetch)])
    noted = told[at].what
    late = noted._replace(log_end_offset=noted.log_end_offset - 1)
    yield [*told[:at], told[at]._replace(what=late), *told[at + 1 :]]


def list_histories(profile: str, acting: list[Readings], make: Any, scratch: Path) -> Any:
    """Yield histories that a judge reads, of controllers or brokers under each of the readings."""
    if profile in OBSERVED:
        for seed in range(40):
            for each in acting:
                yield from observe(each, seed)
    elif has_protocol(profile, "kip-236"):
        for story in STORIES.values():
            for each in acting:
                yield tell(make, profile, story, each)
        for seed in range(0 if profile == "kip-236" else 60):
            for each in acting:
                yield wander(profile, each, seed)
    else:
        logs = sorted((Path(__file__).parent / "kafka_logs").iterdir(), key=measure)
        histories = [read_log(path.name.removesuffix(".log.gz"), scratch) for path in logs]
        yield from histories
        for history in histories:
            if judge(profile, history, acting[0])[0] == []:
                yield from alter(history)


def measure(path: Path) -> int:
    """Return how large a file is."""
    return path.stat().st_size


def alter(history: History) -> Iterator[History]:
    """Yield a log with one state changed: the first in sync leads, or who was in sync stays so."""
    before: dict[str, Any] = {}
    for at, transaction in enumerate(history):
        for number, op in enumerate(transaction.ops):
            if not (isinstance(op, SetData) and STATE.fullmatch(op.path)):
                continue
            try:
                now = znodes.decode_state(op.path, op.data)
            except BadZnode:
                continue
            was = before.get(op.path, now)
            before[op.path] = now
            led = (replace(now, leader=first) for first in now.isr[:1] if now.leader != was.leader)
            for changed in (*led, replace(now, isr=was.isr)):
                if changed != now and changed.leader in changed.isr:
                    ops = list(transaction.ops)
                    ops[number] = replace(op, data=znodes.encode_state(changed))
                    told = replace(transaction, ops=tuple(ops))
                    yield [*history[:at], told, *history[at + 1 : at + 30]]


STATE = re.compile(r".*/partitions/\d+/state")
OBSERVED = [name for name, rules in find_protocols().items() if rules.reads != LOGS]


def judge(profile: str, history: History, readings: Readings) -> Any:
    """Return what is broken in a history, and what nobody can say."""
    if profile in OBSERVED:
        lines = get_observing().make_judge(readings)
        for number, line in enumerate(history):
            lines.feed(line, "told", number)
        tally = lines.finish(is_over=True)
        return [(each.clause, each.line) for each in tally.violations], tally.undecided
    found = Judge(profile, readings)
    for transaction in history:
        if transaction is None:
            found.quiesce()
        else:
            found.feed(transaction)
    return [(each.clause, each.zxid) for each in found.violations], found.undecided


@pytest.mark.parametrize(("profile", "reading", "value"), CARRIED)
def test_carried_out_value_judges_some_history_otherwise(
    profile: str, reading: str, value: str, make_simulation: Any, tmp_path: Path
) -> None:
    """What is right under a value is not what is right under the default."""
    values = next(each.values for each in READINGS if each.name == reading)
    default = getattr(get_profile(profile), field_name(reading))
    for base in list_bases(profile):
        by = {each: override_readings(base, {reading: each}) for each in values}
        for history in list_histories(profile, [*by.values()], make_simulation, tmp_path):
            if judge(profile, history, by[value]) != judge(profile, history, by[default]):
                return
    raise AssertionError("every history is judged alike")


def list_bases(profile: str) -> list[Readings]:
    """Return the readings of a profile, and of others that a judge of it may be given.

    What one reading comes to may hang on another.
    """
    names = dict.fromkeys((profile, *list_profiles(PROTOCOLS[profile][0])))
    return [*dict.fromkeys(map(get_profile, names))]
