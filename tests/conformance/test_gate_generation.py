"""Generation: what is drawn is possible, seeds repeat, and stories get short."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from reassure_conformance.adapter import Adapter
from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.gate import steps as s
from reassure_conformance.gate.example import Done, Example
from reassure_conformance.gate.generation import GenerationBudget, generate
from reassure_conformance.gate.guide import TOUCHES, list_choices, next_step
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.moment import ClusterMoment, why_not
from reassure_conformance.gate.run_outcome import Failure
from reassure_conformance.gate.shortening import minimise
from reassure_conformance.gate.story import Story, make_story, shipped_stories
from reassure_judge.judge import Judge
from reassure_judge.live import LiveCluster
from reassure_judge.transaction_reader import written_paths
from reassure_judge.verdicts import Violation
from reassure_model.partition import LeaderAndIsr, Partition, Reassignment
from reassure_spec.clauses import load_clauses
from reassure_spec.profiles import DEFAULT_PROFILE
from reassure_spec.readings import get_profile
from reassure_spec.znodes import PartitionKey
from reassure_zookeeper.transactions import Transaction


@dataclass
class FakeView:
    """A cluster as a judge would show it."""

    partitions: Mapping[PartitionKey, Partition] = field(default_factory=dict)
    live: frozenset[int] = frozenset({1, 2, 3, 4})
    requests: tuple[int, ...] = (7,)


MOVING = Partition(
    assigned=(1, 2, 3),
    state=LeaderAndIsr(1, 0, 1, (1, 2)),
    reassignment=Reassignment((2, 3), 2),
)
RESTING = Partition(assigned=(2, 1), state=LeaderAndIsr(2, 0, 1, (2, 1)))


def _moment(**changes: object) -> ClusterMoment:
    view = FakeView({("orders", 0): MOVING, ("events", 0): RESTING})
    moment = ClusterMoment((1, 2, 3, 4), view, up={1, 2, 3})
    for name, value in changes.items():
        setattr(moment, name, value)
    return moment


MOMENTS = {
    "empty": _moment(view=FakeView()),
    "moving": _moment(),
    "held": _moment(held=True),
    "without a controller": _moment(acting=False),
    "beside a sleeper": _moment(sleeper=True, acting=False),
    "one broker left": _moment(up={1}),
    "without capabilities": _moment(capabilities=frozenset()),
    "with the old znode": _moment(profile="kip-236-legacy"),
    "healing": _moment(profile="kip-46", failure_interval_ms=1000),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_drawn_steps_are_possible(name: str) -> None:
    """Whatever is drawn, the guide makes a step that the harness would carry out."""
    now, numbers = MOMENTS[name], random.Random(4)
    drawn = [next_step(now, frozenset(), numbers.randrange) for _ in range(400)]
    impossible = {str(step) for step in drawn if why_not(step, now)}
    assert impossible == set()


def test_every_kind_of_step_is_drawn() -> None:
    """Over the moments every kind of step that there is gets drawn."""
    numbers = random.Random(5)
    drawn = {
        type(next_step(now, frozenset(), numbers.randrange))
        for now in MOMENTS.values()
        for _ in range(1500)
    }
    kinds = {k for k in vars(s).values() if isinstance(k, type) and s.ClusterStep in k.__bases__}
    assert kinds - drawn == {s.SetMinIsr}, "which is set only while nothing moves"


def test_wanted_clauses_raise_the_weight() -> None:
    """A kind of step that touches a clause nobody has tested yet is drawn more often."""

    def weight(wanted: frozenset[str]) -> int:
        choices = list_choices(_moment(), wanted)
        return next(choice.weight for choice in choices if choice.name == "die")

    assert weight(frozenset({"election.clean"})) > weight(frozenset())


def test_boosts_name_real_clauses() -> None:
    """Every beginning by which a kind of step is boosted is that of some clause."""
    clauses = tuple(load_clauses())
    starts = {start for starts in TOUCHES.values() for start in starts}
    assert {start for start in starts if not any(c.startswith(start) for c in clauses)} == set()


def _generate(harness: Harness, seed: int) -> list[str]:
    """Return what was done in a few generated examples, as text."""
    told: list[str] = []
    begin, perform = harness.begin, harness.perform

    def noted_begin(*args: object, **kwargs: object) -> Example:
        told.append("--")
        return begin(*args, **kwargs)  # type: ignore[arg-type]

    def noted_perform(example: Example, step: s.ClusterStep) -> Done:
        told.append(str(step))
        return perform(example, step)

    harness.begin, harness.perform = noted_begin, noted_perform  # type: ignore[method-assign]
    budget = GenerationBudget(examples=8, steps_per_example=6)
    assert generate(harness, seed, budget, get_wanted=frozenset) is None
    del harness.begin, harness.perform
    return told


def test_seeds_repeat(make_harness: Callable[[Adapter], Harness]) -> None:
    """The same seed makes the same stories, another seed makes others."""
    first, second, other = (_generate(make_harness(Bundled()), seed) for seed in (7, 7, 8))
    assert first == second
    assert first != other


def test_generation_catches_and_shrinks_a_planted_fault(
    make_harness: Callable[[Adapter], Harness],
) -> None:
    """Generated examples alone catch a controller that leaves the record, with a short story."""
    harness = make_harness(Bundled(faults=("completion-keeps-child",)))
    budget = GenerationBudget(examples=60, steps_per_example=8, shrink_s=4)
    failure = generate(harness, 3, budget, get_wanted=frozenset)
    assert failure is not None
    assert failure.violation.clause == "complete.carried-out"
    assert len(failure.story.steps) <= 8


def _violation(clause: str) -> Violation:
    return Violation(1, "", "", -1, clause, "", 0, "", "", "", "")


CLAUSE = "drop.leader-kept"


def _tell_when(
    breaks: Callable[[list[str]], bool],
) -> Callable[[Story], Failure[Example] | None]:
    """Make a teller whose stories break a clause when the predicate says so."""
    live = LiveCluster(Judge(DEFAULT_PROFILE, get_profile(DEFAULT_PROFILE)), "")

    def tell(story: Story) -> Failure[Example] | None:
        example = Example(story, "", _moment(), live)
        for step in story.steps:
            example.done.append(Done(step, "ok", "", 0, 0))
            if breaks([str(done.step) for done in example.done]):
                told = story.with_steps(example.carried_out)
                return Failure(told, example, _violation(CLAUSE), repeats=True)
        return None

    return tell


def test_step_that_is_cut_short_is_not_judged(
    make_harness: Callable[[Adapter], Harness], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever stops a run while the log is read is told of no violation."""
    harness = make_harness(Bundled())
    feed = harness.judge.feed

    def interrupt(transaction: Transaction) -> None:
        if any("/admin/reassignments/" in path for path in written_paths(transaction)):
            raise KeyboardInterrupt
        feed(transaction)

    monkeypatch.setattr(harness.judge, "feed", interrupt)
    with pytest.raises(KeyboardInterrupt):
        generate(
            harness, 3, GenerationBudget(examples=60, steps_per_example=8), get_wanted=frozenset
        )


def test_minimise_leaves_only_what_matters() -> None:
    """Steps that the violation does not need are left out, and what comes after it as well."""
    lines = ["elect", "cut connection", "hold after 9", "resume", "kill controller", "elect"]
    story = Story("long", tuple(map(s.parse_step, lines)))

    def breaks(told: list[str]) -> bool:
        return any(line.startswith("hold") for line in told) and "kill controller" in told

    *_, found = minimise(story, _tell_when(breaks))
    assert found.story.lines() == ("hold after 0", "kill controller")


def test_minimise_simplifies_steps() -> None:
    """A request for several partitions becomes one for the partition that matters."""
    story = Story("wide", (s.parse_step("request orders-0 to 1 and orders-1 to 2"),))
    *_, found = minimise(story, _tell_when(lambda told: any("orders-1" in t for t in told)))
    assert found.story.lines() == ("request orders-1 to 2",)


def test_minimise_replaces_as_well_as_removes(make_harness: Callable[[Adapter], Harness]) -> None:
    """A shipped story of six steps whose violation needs two of the plainest ends at two."""
    harness = make_harness(Bundled(faults=("stop-not-sent",)))
    told = next(story for story in shipped_stories() if story.name == "failover-after-expansion")
    assert len(told.steps) == 6

    def retell(story: Story) -> Failure[Example] | None:
        example = harness.tell(story)
        same = [v for v in example.violations if v.clause == "message.stranger-stopped"]
        return Failure(story.with_steps(example.carried_out), example, same[0]) if same else None

    *_, found = minimise(told, retell)
    assert found.story.lines() == ("create orders with 1", "request orders-0 to 2")
    assert found.story.brokers == (1, 2)


@pytest.mark.parametrize(
    ("line", "plainest"),
    [
        ("change orders-0 to 3,4", "request orders-0 to 4"),
        ("create orders with 1,2,3 and 2,3", "create orders with 3"),
        ("grow orders with 1,2 and 3", "grow orders with 2"),
        ("lose answer after 4", "lose answer after 0"),
        ("burst orders-0 to 1 then orders-0 to 2,3", "request orders-0 to 3"),
    ],
)
def test_minimise_finds_the_plainest_step(line: str, plainest: str) -> None:
    """Every step becomes the plainest of its kind where any of the kind breaks the clause."""
    story = Story("long", (s.parse_step(line),))
    verb = plainest.split(maxsplit=1)[0]
    verbs = (verb, line.split(maxsplit=1)[0])
    tell = _tell_when(lambda told: any(one.startswith(verbs) for one in told))
    *_, found = minimise(story, tell)
    assert [line.split()[0] for line in found.story.lines()] == [verb]
    assert len(found.story.brokers) == 1


def test_minimise_gives_up_on_what_does_not_repeat() -> None:
    """A story that does not break the clause again is not called shorter."""
    story = Story("once", (s.Elect(),))
    assert list(minimise(story, _tell_when(lambda _: False))) == []


def test_minimise_leaves_nothing_to_take_out_of_a_long_story() -> None:
    """Of many steps, of brokers with logs too, exactly those are left that it takes."""
    lines = [f"wait {n} ms" for n in range(40)]
    story = make_story(["world brokers", *lines])
    needed = {lines[3], lines[17], lines[38]}
    *_, found = minimise(story, _tell_when(lambda told: needed <= set(told)))
    assert set(found.story.lines()) == needed and len(found.story.steps) == 3


@pytest.mark.parametrize(
    "changes", [{"held": True}, {"held": True, "sleeper": True}, {"acting": False}]
)
def test_nobody_intrudes_on_a_leader_that_may_not_know(changes: dict[str, bool]) -> None:
    """A leader is asked in vain only once its controller had the time to tell it who is not."""
    assert _moment().intrudable()
    assert _moment(**changes).intrudable() == ()
