"""Each value of a reading that a judge carries out makes it judge some history otherwise."""

import random
from collections.abc import Callable, Iterator
from functools import cache
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
from reassure_judge.protocols import find_protocols, get_observing, get_rules
from reassure_judge.rules import LOGS
from reassure_model.environment import Die, Failover, Join, NotPossible, On, Return
from reassure_model.protocols.kip_46 import Submit, Tick
from reassure_model.protocols.kip_236_legacy import Ask, DeleteLegacy, WriteLegacy
from reassure_model.writes import WriteAssigned
from reassure_spec import znodes
from reassure_spec.profiles import has_protocol
from reassure_spec.readings import (
    READINGS,
    Readings,
    field_name,
    get_profile,
    override_readings,
)
from reassure_spec.rooms import ROOMS
from reassure_spec.znodes import LegacyEntry
from reassure_zookeeper.transactions import Create

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


FIRST, SECOND = ("orders", 0), ("orders", 1)


def wander(profile: str, readings: Readings, seed: int) -> History:
    """Return what a random walk of the machine of a profile leaves, healing or the old znode."""
    draw = random.Random(seed)
    make: type[Walk[Any]] = HealingWalk if has_protocol(profile, "kip-46") else LegacyWalk
    walk: Any = make({FIRST: (1, 2), SECOND: (2, 3)}, 4, readings)
    history, told = [], 0
    for _ in range(120):
        if draw.random() < 0.7:
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
    lambda draw: On(draw.choice((FIRST, SECOND)), Join(draw.randint(1, 4))),
    lambda draw: Die(draw.randint(1, 4)),
    lambda draw: Return(draw.randint(1, 4)),
    lambda draw: Failover(),
)
ACTS: dict[Any, tuple[Callable[[random.Random], Any], ...]] = {
    LegacyWalk: (
        *_ANYWHERE,
        lambda draw: WriteLegacy((LegacyEntry(FIRST, _draw_target(draw)),)),
        lambda draw: DeleteLegacy(),
        lambda draw: Ask(((FIRST, _draw_target(draw)),)),
    ),
    HealingWalk: (
        *_ANYWHERE,
        lambda draw: Tick(600_000),
        lambda draw: Submit(((FIRST, _draw_target(draw)),)),
    ),
}
"""What may happen in a walk."""


def observe(readings: Readings, seed: int) -> Iterator[History]:
    """Yield what brokers with logs say, of an election and of times."""
    draw = random.Random(seed)
    yield tell_walk(draw, readings, 3, 80).telling.shuffle(draw)
    yield tell_term(draw, readings, 3, 80).shuffle(draw)


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
        for seed in range(0 if profile == "kip-236" else 40):
            for each in acting:
                yield wander(profile, each, seed)
    else:
        for path in sorted((Path(__file__).parent / "kafka_logs").iterdir()):
            yield read_log(path.name.removesuffix(".log.gz"), scratch)


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
    usual = get_profile(profile)
    readings = override_readings(usual, {reading: value})
    values = next(each.values for each in READINGS if each.name == reading)
    acting = [override_readings(usual, {reading: each}) for each in values]
    assert any(
        judge(profile, history, readings) != judge(profile, history, usual)
        for history in list_histories(profile, acting, make_simulation, tmp_path)
    )
