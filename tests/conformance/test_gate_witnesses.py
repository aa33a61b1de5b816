"""Each value of a reading that controller and brokers carry out makes them act otherwise."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reassure_conformance.adapter import Description
from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.adapter.world import VIRTUAL_WORLD, VirtualWorld
from reassure_conformance.gate.example import Example
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.replication.brokers import SHIPPED, BrokersRunner
from reassure_conformance.gate.run_settings import Settings
from reassure_conformance.gate.story import BROKERS, Story, parse_story, shipped_stories
from reassure_controller.replication.rules import ReplicationRules
from reassure_controller.replication.serving import Leading
from reassure_spec.readings import READINGS, field_name, get_profile, override_readings
from reassure_spec.rooms import BROKER, ROOMS, Room, controller_of, gate_of, get_room, judge_of

MakeHarness = Callable[..., AbstractContextManager[Harness]]
Cell = tuple[str, str]
"""A reading and a value of it."""
PROFILES = ("kafka-42", "kip-46", "kip-236-legacy", "kip-236-amended")
OWN = {"kip-46": "heal.", "kip-236-legacy": "legacy."}
"""How the readings begin that only this profile turns on; the others are tried under the last."""
UNDER = {("target.unknown-broker", "refuse"): {"target.dead-replica": "wait"}}
"""Readings that have to be settled otherwise before a value comes to anything: whoever refuses the
dead refuses whom nobody knows."""
KEPT = {("offline.drop", "wait")}
"""Values that are kept by doing what the usual one asks for: it waits for a leader in sync, which
one value demands and the other allows. The judge alone tells them apart."""
FALLS_BEHIND = """create orders with 1,2
hold after {}
old znode orders-0 to 1,3
3 joins orders-0
3 leaves orders-0
resume"""
BACK = """create orders with 1,2 and 1,2 and 1,2
broker 1 dies
1000 ms pass
broker 1 returns
3 joins orders-0
4 joins orders-0
3 joins orders-1
4 joins orders-1"""
MORE = {"kip-46": (BACK,), "kafka-42": tuple(FALLS_BEHIND.format(at) for at in range(1, 9))}
"""Stories beside those that are shipped: a broker that is back catches up while a task waits; a
replica falls behind after each of the first effects of a move."""


class Saying(Bundled):
    """The bundled controller in a virtual world, which may not say by which readings it goes."""

    def __init__(self, world: VirtualWorld, said: dict[str, str], **options: Any) -> None:
        super().__init__(world=world, **options)
        self._said = said

    def describe(self) -> Description:
        """Return what it can, by the readings that it says."""
        return replace(super().describe(), readings=self._said)


@pytest.fixture
def make_harness(tmp_path: Path) -> MakeHarness:
    """What opens a harness on a controller that says what is given."""
    numbers = count()

    @contextmanager
    def make(said: dict[str, str], **options: Any) -> Iterator[Harness]:
        world = VirtualWorld(tmp_path / str(next(numbers)))
        adapter = Saying(world, said, **options)
        with closing(Harness(world.hosts, world.log_dir, adapter, world=world)) as harness:
            yield harness

    return make


def list_stories(profile: str) -> list[Story]:
    """Return the stories of a profile, only its own where values are tried that are its own."""
    # Many partitions take long, and come to what few come to.
    few = [story for story in shipped_stories() if not story.name.endswith("many-partitions")]
    shipped = [story for story in few if story.is_for(profile)]
    if profile != PROFILES[-1]:
        shipped = [story for story in shipped if story.profiles]
    more = (f"world cluster brokers=1,2,3,4\n\n{steps}" for steps in MORE.get(profile, ()))
    return [*shipped, *(parse_story(text, "more") for text in more)]


def tell(harness: Harness, story: Story) -> Any:
    """Return what a story comes to: what was done, what is broken, and how it looks in between."""
    before, seen = harness.judge.exercised.copy(), []

    def look(example: Example) -> None:
        seen.append(str(harness.judge.view(example.chroot).partitions))

    example = harness.tell(story, look)
    results = [done.result for done in example.done]
    return results, example.violations, seen, harness.judge.exercised - before


def list_cells(profile: str, room: Room) -> Iterator[Cell]:
    """Yield the values that are tried under a profile."""
    usual, begins = get_profile(profile), OWN.get(profile, "")
    for reading in READINGS:
        here = reading.name.startswith(begins)
        elsewhere = not begins and reading.name.startswith(tuple(OWN.values()))
        for value in reading.values if here and not elsewhere else ():
            carried = reading.name in room.asks and room.find_refusal(reading.name, value) is None
            if carried and value != getattr(usual, field_name(reading.name)):
                yield reading.name, value


def differs(stories: list[Story], usual: list[Any], made: AbstractContextManager[Harness]) -> bool:
    """Whether some story comes to something else."""
    with made as harness:
        told = zip(stories, usual, strict=True)
        return any(tell(harness, story) != before for story, before in told)


def tell_all(
    profile: str, stories: list[Story], readings: dict[str, str], make: MakeHarness
) -> list[Any]:
    """Return what each story comes to."""
    with make({}, profile=profile, readings=readings) as harness:
        return [tell(harness, story) for story in stories]


@pytest.mark.parametrize(
    "profile", [*PROFILES[:-1], pytest.param(PROFILES[-1], marks=pytest.mark.slow)]
)
def test_value_makes_the_controller_act_otherwise(profile: str, make_harness: MakeHarness) -> None:
    """A story comes to something else, but where a value is kept in any case or is the usual one.

    Those show that a value that nobody carries out would be noticed.
    """
    stories = list_stories(profile)
    usual = tell_all(profile, stories, {}, make_harness)
    same = {("drop.slice", get_profile(profile).drop_slice)}
    cells = [*list_cells(profile, get_room(controller_of(profile))), *same]
    alike = set()
    for cell in cells:
        under = UNDER.get(cell, {})
        before = tell_all(profile, stories, under, make_harness) if under else usual
        acting = make_harness({}, profile=profile, readings={**under, cell[0]: cell[1]})
        if not differs(stories, before, acting):
            alike.add(cell)
    assert alike == KEPT.intersection(cells) | same


@pytest.mark.slow
def test_value_makes_the_gate_judge_otherwise(make_harness: MakeHarness) -> None:
    """What one and the same controller does is judged otherwise, by what the gate hands over."""
    profile = "kafka-42"
    stories, gate, log = list_stories(profile), gate_of(profile), judge_of(profile)
    cells = [each for each in list_cells(profile, get_room(gate)) if each[0] not in ROOMS[log].asks]
    same = {("drop.slice", get_profile(profile).drop_slice)}
    alike = set()
    for cell in (*cells, *same):
        for acting in ({}, dict([cell])):
            usual = tell_all(profile, stories, acting, make_harness)
            judged = make_harness(dict([cell]), profile=profile, readings=acting)
            if differs(stories, usual, judged):
                break
        else:
            alike.add(cell)
    assert alike == same


# Brokers ------------------------------------------------------------------------------------------

REPLICATION = "kafka-4485"


def observe(runner: BrokersRunner, tale: Story) -> dict[str, str]:
    """Return what the brokers of a tale said of themselves, by file."""
    told = runner.carry_out(tale)
    files = sorted(told.directory.rglob("observations.ndjson"))
    return {
        str(file.relative_to(told.directory)): file.read_text().replace(told.chroot, "")
        for file in files
    }


def iterate_observed(place: Path, readings: dict[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each shipped tale by name, and what the brokers say in it."""
    settings = Settings(
        seed=1,
        profile=REPLICATION,
        examples=0,
        with_stories=False,
        readings=readings,
        world=VIRTUAL_WORLD,
    )
    runner = BrokersRunner(settings, place)
    with runner.open():
        for tale in shipped_stories(BROKERS):
            yield tale.name, observe(runner, tale)


SHIPPED_WITH = {**get_profile(REPLICATION).as_dict(), **SHIPPED}
IN_BETWEEN = ("lag.clock-read", "after-end")
"""Where a broker is stepped, nothing comes between two reads of one step."""


def list_broker_cells() -> Iterator[Cell]:
    """Yield the values that brokers carry out, and are not shipped with."""
    room = get_room(BROKER)
    for reading in READINGS:
        for value in reading.values if reading.name in room.asks else ():
            is_carried = room.find_refusal(reading.name, value) is None
            if is_carried and value != SHIPPED_WITH[reading.name]:
                yield reading.name, value


def test_value_makes_brokers_act_otherwise(tmp_path: Path) -> None:
    """They say something else in some tale, but where a value is the usual one."""
    observed, alike = dict(iterate_observed(tmp_path / "usual", {})), set()
    usual = ("lag.credit", SHIPPED_WITH["lag.credit"])
    for number, (reading, value) in enumerate((usual, *list_broker_cells())):
        told = iterate_observed(tmp_path / str(number), {reading: value})
        if all(observed[name] == said for name, said in told):
            alike.add((reading, value))
    assert alike == {usual, IN_BETWEEN}


def test_brokers_read_clock_and_end_in_the_order_that_is_asked() -> None:
    """Whichever comes first, what happens between the two reads shows in the other."""
    found = {}
    for value in ("before-end", "after-end"):
        readings = override_readings(get_profile(REPLICATION), {"lag.clock-read": value})
        ticks = iter(range(9))
        log = type("", (), {"end_offset": property(lambda _, ticks=ticks: next(ticks))})()
        host = SimpleNamespace(clock=SimpleNamespace(now_ms=lambda ticks=ticks: next(ticks)))
        rules = ReplicationRules(readings)
        leader = SimpleNamespace(_host=host, _replica=SimpleNamespace(log=log), _rules=rules)
        found[value] = Leading._read_clock_and_end(leader)  # type: ignore[arg-type]
    assert found == {"before-end": (0, 1), "after-end": (1, 0)}
