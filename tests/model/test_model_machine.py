"""A protocol is one machine: a toy that is declared here alone goes through every room."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

import pytest

from reassure_conformance.cli import run_command
from reassure_conformance.scenarios.scenario import compare, parse_scenario, run_scenario
from reassure_conformance.scenarios.telling import get_text, tell_source
from reassure_conformance.scenarios.worlds import get_world
from reassure_explorer.engine.derived import explore_derived
from reassure_explorer.engine.plain import explore_plain
from reassure_explorer.protocols.kip_236.scopes import bound
from reassure_explorer.scopes.catalogue import SCOPES
from reassure_explorer.scopes.machine import Bounds, MachineScope
from reassure_judge.authors import Author
from reassure_judge.doubt import CERTAIN
from reassure_judge.history import SeenWrite
from reassure_judge.rules import Possible, Rules
from reassure_judge.tracker import PartitionTracker
from reassure_judge.verdicts import Tally
from reassure_model.environment import Controller, Die, Failover, Leave, NotPossible
from reassure_model.fields import Flag, Int
from reassure_model.machine import (
    CONTROLLER,
    Act,
    Goal,
    Judgement,
    Machine,
    Property,
    always,
    find_machines,
    reached,
    register,
)
from reassure_model.narration import Vocabulary
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Environment, LeaderAndIsr, Partition, Request
from reassure_model.protocols.kip_236.machine import MACHINE as REQUESTS
from reassure_model.protocols.kip_236.system import Submit, System, make_system
from reassure_model.protocols.topics import make_topic
from reassure_spec.readings import Readings, get_profile
from reassure_spec.words import Arguments, ScenarioError, check_arguments

# The toy: a lamp that a client turns up, and that a controller puts out once it has broken -------

CLAUSE: Final = "isr.never-empty"
"""A clause that there is; what it says is nothing to the lamp."""


@dataclass(frozen=True, slots=True)
class Lamp:
    """How bright it is, and whether it is whole."""

    bright: int = 0
    whole: bool = True


@dataclass(frozen=True, slots=True)
class TurnUp:
    """A client turns it up."""


@dataclass(frozen=True, slots=True)
class Break:
    """It breaks."""


@dataclass(frozen=True, slots=True)
class PutOut:
    """The controller puts it out."""


def next_effect(lamp: Lamp, _: Readings) -> PutOut | None:
    """Return what the controller owes: a broken lamp is to be out."""
    return PutOut() if lamp.bright > 0 and not lamp.whole else None


def step(lamp: Lamp, action: Any, readings: Readings) -> Accepted[Lamp] | Rejected:
    """Take an action; nobody turns up what is broken."""
    match action:
        case TurnUp() if lamp.bright < 2:
            if not lamp.whole:
                return Rejected(CLAUSE, "it is broken")
            return Accepted(replace(lamp, bright=lamp.bright + 1), (CLAUSE,))
        case Break() if lamp.whole:
            return Accepted(replace(lamp, whole=False))
        case Controller() if next_effect(lamp, readings) is not None:
            return Accepted(replace(lamp, bright=0), effects=(PutOut(),))
    raise NotPossible(f"{action} is not possible in {lamp}")


def list_enabled(lamp: Lamp, readings: Readings, _: object) -> Iterable[Any]:
    """Yield what is possible."""
    if next_effect(lamp, readings) is not None:
        yield Controller()
    if lamp.whole:
        yield from (TurnUp(), Break()) if lamp.bright < 2 else (Break(),)


def open_lamp(arguments: Arguments) -> Lamp:
    """Return a lamp that is out."""
    check_arguments(arguments)
    return Lamp()


def accept_write(lamp: Lamp, bright: int, *_: Any) -> Accepted[Lamp] | Rejected:
    """Judge how bright somebody made it: one step up while it is whole, or out."""
    if bright in (0, lamp.bright + 1 if lamp.whole else 0):
        return Accepted(replace(lamp, bright=bright), (CLAUSE,))
    return Rejected(CLAUSE, f"from {lamp.bright} to {bright}")


LAMP: Final = Machine(
    name="lamp",
    summary="a lamp that is put out once it has broken",
    state=Lamp,
    fields={"bright": Int(0, 2), "whole": Flag()},
    acts=(
        Act("turn-up", TurnUp, words="it is turned up"),
        Act("break", Break, words="it breaks", counted="breaks", fault=True),
        CONTROLLER,
    ),
    step=step,
    next_effect=next_effect,
    enabled=list_enabled,
    is_at_rest=lambda lamp, readings: next_effect(lamp, readings) is None,
    properties=(
        Property(
            CLAUSE,
            always(lambda lamp: "it shines" if lamp.bright and not lamp.whole else None),
            "shines-though-broken",
        ),
    ),
    goals=(Goal("it is as bright as can be", reached(lambda lamp: lamp.bright == 2)),),
    vocabulary=Vocabulary(
        opening=open_lamp,
        say_opening=lambda _: ("world lamp",),
        show=lambda lamp: f"bright {lamp.bright} {'whole' if lamp.whole else 'broken'}",
        say_effect=lambda *_: "it is put out",
    ),
    judgement=Judgement(
        begin=Lamp(), accept=accept_write, fail_over=lambda lamp, _: lamp, owed=lambda *_: None
    ),
)
BOUNDS: Final = Bounds(Lamp(), {}, {"breaks": 1})


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the lamp among the machines for a while."""
    monkeypatch.setattr("reassure_model.machine._FOUND", dict(find_machines()))
    register(LAMP)


def test_toy_is_explored() -> None:
    """Both engines go through its states, break its property and reach its goal."""
    model = MachineScope(LAMP, BOUNDS, Readings()).make_model("lamp")
    plain, derived = (
        explore(model, keep_going=True) for explore in (explore_plain, explore_derived)
    )
    assert plain.distinct == derived.distinct == 6
    for result in (plain, derived):
        assert [(v.invariant, len(v.trace.steps)) for v in result.violations] == [(CLAUSE, 2)]
        assert set(result.goals) == {"it is as bright as can be"}


def test_toy_is_told() -> None:
    """The story found becomes a scenario in its own words, which runs as it stands."""
    source = MachineScope(LAMP, BOUNDS, Readings())
    (violation,) = explore_plain(source.make_model("lamp")).violations
    profile = "kip-236"
    scenario = tell_source(source, "lamp", profile, get_profile(profile), violation)
    text = get_text(scenario)
    assert "turn-up\n----\nok\n\nbreak\n----\nok\n" in text
    assert "shines-though-broken: it shines" in text
    again = parse_scenario(text, "counterexamples/lamp.txt")
    assert compare(again, run_scenario(again)) == ""
    world = get_world("lamp")(profile, Readings(), {})
    assert [world.run(verb, {}) for verb in ("turn-up", "break", "step", "turn-up")] == [
        "",
        "",
        "it is put out",
        f"rejected by {CLAUSE}: it is broken",
    ]
    assert (
        world.run("shortest", {"problem": "shines-though-broken", "breaks": "1"}) == "not reachable"
    )


class LampRules(Rules[Possible, int]):
    """The lamp for the judge: how bright it is stands in a znode."""

    profiles = ("lamp",)
    assert LAMP.judgement is not None
    judgement = LAMP.judgement

    def make_router(self, *_: Any, **__: Any) -> Any:
        """Nothing is routed here."""
        raise NotImplementedError

    def begin(self) -> Possible:
        """Return a lamp that is out."""
        return Possible(self.judgement.begin)

    def find_write(self, state: Possible, seen: SeenWrite) -> int | None:
        """Every event is how bright it was made."""
        bright: Any = seen.event
        return int(bright)

    def take_over(self, state: Possible, seen: SeenWrite) -> Iterable[Possible]:
        """Nothing else is seen."""
        return (state,)

    def list_named(self, state: Possible, write: int | None) -> frozenset[int]:
        """No broker matters."""
        return frozenset()

    def adopt(self, partition: Any, write: int) -> Any:
        """Return the lamp as bright as it was made."""
        return replace(partition, bright=write)

    def describe(self, write: int) -> str:
        """Return how bright it was made."""
        return str(write)

    def describe_before(self, partition: Any, event: object) -> str:
        """Return how bright it was."""
        return str(partition.bright)

    def describe_resting(self, *_: Any) -> tuple[str, str]:
        """Nothing is owed."""
        return "", ""

    def exists(self, partition: Any) -> bool:
        """There is a lamp from the beginning."""
        return True


def test_toy_is_judged() -> None:
    """A step that its judgement does not allow is named by its clause and its zxid."""
    around = Environment(frozenset(), frozenset(), 1, 1)
    author = Author(1, frozenset(), "acting", fenced=True, broken=(), tested=(), undecided=())
    tally = Tally()
    tracker = PartitionTracker(LampRules("lamp", Readings()), tally)
    for zxid, bright in enumerate((1, 2, 0, 2), start=1):
        event: Any = bright
        tracker.feed(
            SeenWrite("", "t", 0, zxid, 0, 0, 1, "/lamp", event, around, CERTAIN, author, False)
        )
    assert [(each.clause, each.zxid) for each in tally.violations] == [(CLAUSE, 4)]


def test_toy_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """It stands among the protocols with what may happen and what must never be."""
    assert run_command(["spec", "machines", "--format", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)["machines"]
    rows: Mapping[str, Any] = {row["name"]: row for row in listed}
    assert {"lamp", "kafka-42", "kafka-zk"} <= set(rows)
    assert rows["lamp"]["actions"] == "turn-up, break, step"
    assert rows["lamp"]["properties"] == CLAUSE


# All machines ------------------------------------------------------------------------------------

ALL: Final = tuple(find_machines().values())
EACH: Final = pytest.mark.parametrize("machine", ALL, ids=lambda machine: machine.name)


SOURCES: Final = {
    name: source
    for name, scope in SCOPES.items()
    if isinstance(source := scope.make_source(get_profile(scope.profile)), MachineScope)
}
_TOPIC: Final = Bounds(
    make_topic(((1, 2), (2, 3)), frozenset({1, 2, 3})),
    {"brokers": (1, 2, 3), "partitions": (0, 1), "lists": ((3,),), "replicas": ((0, 1), (1, 2))},
)
SOURCES["topics"] = MachineScope(find_machines()["topics"], _TOPIC, Readings())
BOUNDED: Final = {
    n: s for n, s in SOURCES.items() if CONTROLLER in s.machine.acts[1:] and n in SCOPES
}
"""The standard scopes whose machine has a client ask and a controller carry it out."""


def iterate_cuts(machine: Machine[Any], state: Any, readings: Readings) -> Iterator[Any]:
    """Yield the state after each prefix of what the controller does until it waits."""
    yield state
    for _ in range(100):
        if machine.next_effect(state, readings) is None:
            return
        outcome = machine.step(state, Controller(), readings)
        if isinstance(outcome, Rejected):
            return
        state = outcome.state
        yield state
    pytest.fail(f"{machine.name}: the controller does not come to rest")


@pytest.mark.parametrize("source", BOUNDED.values(), ids=BOUNDED)
def test_controller_cut_between_any_two_effects_comes_to_rest(source: MachineScope) -> None:
    """After each prefix of what a controller does the next one comes to rest as well."""
    machine, readings = source.machine, source.readings
    cuts = 0
    for target in source.bounds.sets[machine.acts[0].over]:
        asked = machine.acts[0].make(target)
        outcome = machine.step(source.bounds.start, asked, readings)
        if isinstance(outcome, Rejected):
            continue
        for found in iterate_cuts(machine, outcome.state, readings):
            taken = machine.step(found, Failover(), readings)
            assert isinstance(taken, Accepted)
            *_, last = iterate_cuts(machine, taken.state, readings)
            assert machine.next_effect(last, readings) is None
            cuts += 1
    assert cuts >= 3


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_whatever_happens_has_words_and_can_be_looked_at(source: MachineScope) -> None:
    """On random ways each step of a machine is told, and what is asked of a state is answered."""
    machine, readings, bounds = source.machine, source.readings, source.bounds
    _, _, *words = machine.vocabulary.say_opening(bounds.start)[0].split()
    opened = machine.vocabulary.opening(dict(word.split("=", 1) for word in words))
    assert isinstance(opened, machine.state)
    chance, watch = Random(0), machine.watch
    for _ in range(20):
        state, mind = bounds.start, None if watch is None else watch.begin
        for _ in range(30):
            steps = [*machine.iterate_successors(state, readings, bounds.sets, bounds.without)]
            owed = [each for each in steps if isinstance(each[0], Controller)]
            action, after = chance.choice([*steps, *owed * len(steps), (None, None)])
            if action is None:
                break
            act = machine.find_act(action)
            parameter = act.get_parameter(action)
            said = [machine.say(action), machine.tell(action, state, after, readings)]
            said += [machine.vocabulary.show(after), act.brief(parameter) if act.brief else "-"]
            assert all(said)
            broken = [machine.find_broken(each, after, readings) for each in machine.properties]
            if watch is not None:
                mind = watch.follow(state, mind, action, after, readings)
                broken += [find(after, mind, readings) for find in watch.properties.values()]
            assert all(reason is None or reason for reason in broken)
            assert {goal.reached(after, readings) for goal in machine.goals} <= {True, False}
            assert machine.is_settled is None or machine.is_settled(after) in {True, False}
            state = after
            for tried in machine.acts:
                for made in bounds.sets.get(tried.over, ())[:3] if tried.over else (None,):
                    assert tried.say(made)
                    with suppress(NotPossible):
                        outcome = machine.step(state, tried.make(made), readings)
                        assert outcome.clause if isinstance(outcome, Rejected) else outcome.state


def test_steps_that_are_not_looked_at_are_left_out() -> None:
    """Acts that are named are left out, and of others the steps that nobody wants to see."""
    state = make_system((1,), (1, 2))
    sets = {"targets": (((2,), False),)}
    within = {"die": lambda before, after: 1 in after.live}
    found = REQUESTS.iterate_successors(state, Readings(), sets, ("failover",), within)
    assert {action for action, _ in found} == {Controller(), Submit((2,)), Die(2)}


@EACH
def test_names_of_a_machine_are_unique(machine: Machine[Any]) -> None:
    """No two acts are called alike, no two properties and no two goals."""
    for names in (
        [act.name for act in machine.acts],
        [act.verb for act in machine.acts],
        [each.clause for each in machine.properties],
        [each.name for each in machine.properties if each.name],
        [goal.name for goal in machine.goals],
    ):
        assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("world", "opening", "verb", "arguments"),
    [
        ("kip-236-legacy", {"brokers": "1,2"}, "write", {"entries": "t-0"}),
        ("kip-236-legacy", {"brokers": "1,2"}, "partition", {"name": "t", "assigned": "1"}),
        ("kip-46", {"racks": "1,2"}, "partition", {"name": "t-0", "replicas": "9"}),
        ("kafka-zk", {"brokers": "1,2"}, "znode", {}),
        ("kafka-4485", {"replicas": "1,2", "limit": "5", "rule": "none"}, "evaluate", {}),
    ],
)
def test_commands_that_make_no_sense_are_refused(
    world: str, opening: dict[str, str], verb: str, arguments: dict[str, str]
) -> None:
    """What a scenario cannot mean is an error, not a step."""
    with pytest.raises(ScenarioError):
        get_world(world)("kip-236", Readings(), opening).run(verb, arguments)


# Records within records, and several partitions ---------------------------------------------------


def test_what_only_counts_is_forgotten_wherever_it_stands() -> None:
    """Epochs within a state and the numbers of requests in a list are as they were at the start."""
    requests = (Request(7, (2,)), Request(9, (3,), legacy=True))
    partition = Partition((1,), LeaderAndIsr(1, 5, 4, (1,)), requests=requests)
    system = System(partition, frozenset({1}), frozenset({1}), 2, 4, 10)
    after = REQUESTS.normalise(system)
    assert after.partition.state == LeaderAndIsr(1, 0, 0, (1,))
    assert [(r.sequence, r.target) for r in after.partition.requests] == [(0, (2,)), (1, (3,))]
    assert (after.controller_epoch, after.next_sequence, after.min_insync_replicas) == (0, 0, 2)


def _follow_both(
    pair: tuple[System, ...], left: tuple[int, ...], readings: Readings
) -> Iterator[Any]:
    """Yield what may happen to two partitions, each step taken by the model's own function."""
    kinds = (Submit, Die, Failover)
    targets = {"targets": (((1, 2), False),)}
    for at, system in enumerate(pair):
        for action in REQUESTS.enabled(system, readings, targets):
            shared = REQUESTS.find_act(action).shared
            spent = tuple(n - isinstance(action, k) for n, k in zip(left, kinds, strict=True))
            if min(spent) < 0 or isinstance(action, Leave) or (shared and at):
                continue
            outcomes = [
                REQUESTS.step(each, action, readings) if shared or number == at else Accepted(each)
                for number, each in enumerate(pair)
            ]
            if not any(isinstance(each, Rejected) for each in outcomes):
                yield tuple(REQUESTS.normalise(each.state) for each in outcomes), spent  # type: ignore[union-attr]


def test_partitions_share_what_the_machine_says() -> None:
    """Two partitions with brokers and controller in common have the states that the model finds."""
    readings = get_profile("kip-236")
    times = {"requests": 1, "deaths": 1, "lags": 0, "failovers": 1}
    bounds = bound(2, ((1,), (2,)), ((1, 2),), times)
    source = MachineScope(REQUESTS, bounds, readings)
    first = (tuple(map(REQUESTS.normalise, source.starts)), (1, 1, 1))
    seen, frontier, steps = {first}, [first], 0
    while frontier:
        after = [found for pair, left in frontier for found in _follow_both(pair, left, readings)]
        steps += len(after)
        frontier = list(dict.fromkeys(found for found in after if found not in seen))
        seen.update(frontier)
    model = source.make_model("two")
    assert [name for name in model.fields if name.startswith(("live", "leader"))] == [
        "live",
        "leader_0",
        "leader_1",
    ]
    result = explore_plain(model, keep_going=True)
    assert (result.distinct, result.generated) == (len(seen), steps)
    assert model.actions[0].describe((1, ((1, 2), False))) == "submit [1, 2], partition 1"
