"""A run of the gate against controllers, whose transaction log is judged."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from reassure_conformance.adapter import AdapterDied, Description
from reassure_conformance.adapter.driver import ServerGone
from reassure_conformance.gate import steps as s
from reassure_conformance.gate.aims import Aim
from reassure_conformance.gate.base_runner import Runner, open_server
from reassure_conformance.gate.discrimination import Score
from reassure_conformance.gate.events import CoverageGoal
from reassure_conformance.gate.evidence import make_timeline, write_evidence
from reassure_conformance.gate.example import Example
from reassure_conformance.gate.goals import COVERAGE_GOALS, aim_at, possible_with
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.known import FAILING
from reassure_conformance.gate.meetings import Kind, list_kinds
from reassure_conformance.gate.requirements import (
    ALL_ABILITIES,
    find_lacking,
    find_not_claimed,
    join_needs,
    list_unseen,
)
from reassure_conformance.gate.rests import RestsFile
from reassure_conformance.gate.run_outcome import Failure, RunOutcome
from reassure_conformance.gate.story import Story, format_story
from reassure_conformance.report.document import DIED, write_text
from reassure_conformance.script import SUFFIX
from reassure_conformance.supervise import note_alive, note_story
from reassure_judge.protocols import get_rules
from reassure_judge.verdicts import ClauseVerdict
from reassure_mutation.score import Scorer
from reassure_mutation.table import Killable
from reassure_mutation.worlds import Meeting
from reassure_spec.clauses import clauses_of_profile

ASIDES_KEPT: Final = 10
"""Of how many clauses that were broken and count for no verdict it is kept what happened."""
PATIENCE: Final = 5
"""After so many batches in a row that kill no mutant generation has had its time for them."""
UNSETTLED_KEPT: Final = 5
"""How many stories are kept of clusters that did not come to rest."""


StoryFailure = Failure[Example]


@dataclass(slots=True)
class ControllersResult(RunOutcome):
    """What came of a run against controllers."""

    failure: StoryFailure | None = None
    asides: tuple[StoryFailure, ...] = ()
    """The first of each known failure, and of advice that was not followed."""
    known: Mapping[str, int] = field(default_factory=dict)
    """How often each known failure came up."""
    refused: int = 0
    skipped: int = 0
    meetings: Mapping[Kind, Meeting] = field(default_factory=dict)
    """What can happen between a controller's decision to write and the write."""
    met: Mapping[Kind, int] = field(default_factory=dict)
    """How often that came up."""

    def required(self) -> tuple[ClauseVerdict, ...]:
        """Return the verdicts on the clauses that a run has to put to the test."""
        left_out = (
            list_unseen() | self.not_asked().keys() | self.not_claimed().keys() | self.known.keys()
        )
        return tuple(c for c in self.clauses if c.level == "MUST" and c.id not in left_out)

    def not_asked(self) -> dict[str, tuple[str, ...]]:
        """Return the clauses that nothing put to the test for want of a capability, and which."""
        if self.settings.require_all:
            return {}
        idle = (clause.id for clause in self.clauses if not clause.exercised)
        return find_lacking(idle, self.capabilities, self.profile)

    def lacking(self) -> dict[str, list[str]]:
        """Return by what the implementation would have to declare the clauses not asked for it."""
        found: dict[str, list[str]] = {}
        for clause, needs in self.not_asked().items():
            found.setdefault(join_needs(needs), []).append(clause)
        return dict(sorted(found.items()))

    def not_claimed(self) -> Mapping[str, str]:
        """Return the clauses that the gate cannot test, each with the reason."""
        return find_not_claimed(self.profile)

    def counts(self) -> dict[str, int]:
        """Return the numbers that every report of a run begins with."""
        return {
            **RunOutcome.counts(self),
            "meetings_reached": sum(1 for kind in self.meetings if self.met.get(kind)),
            "meetings": len(self.meetings),
            "refused": self.refused,
            "skipped": self.skipped,
            "unsettled": self.unsettled,
            "situations": len(self.reached),
            "situations_reached": sum(1 for count in self.reached.values() if count),
            "not_followed": len(self.not_followed),
        }

    @property
    def goals(self) -> Sequence[CoverageGoal]:
        """Every coverage goal that there is to what was driven."""
        return COVERAGE_GOALS

    def as_body(self) -> dict[str, Any]:
        """Return what a report of a run says beyond the common head."""
        failure = self.failure
        return {
            **RunOutcome.as_body(self),
            "timeline": self._make_timeline(failure, failure.as_dict()) if failure else None,
            "meetings": [
                {"effect": effect, "event": event, "reached": self.met.get((effect, event), 0)}
                for effect, event in sorted(self.meetings)
            ],
            "asides": [self._describe_aside(each) for each in self.asides],
            "not_claimed": dict(self.not_claimed()),
            "known": [
                {**asdict(each), "seen": self.known.get(each.name, 0)}
                for each in self.settings.known
            ],
        }

    def _make_timeline(self, failure: StoryFailure, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return what happened in a failing story."""
        return make_timeline(self.profile, self.readings, record, failure.told.transactions)

    def _describe_aside(self, aside: StoryFailure) -> dict[str, Any]:
        """Return a violation that counts for no verdict, with what happened."""
        record = aside.violation.as_dict()
        return {
            "known": aside.violation in aside.told.excused,
            "violation": record,
            "story": list(aside.story.lines()),
            "timeline": self._make_timeline(aside, {**aside.as_dict(), "violations": [record]}),
        }


def _choose(most: int, stories: Sequence[Story], described: Description) -> list[Story]:
    """Return so many stories that can be told whole: of all kinds some, the profile's own first.

    Those that are alike stand together.
    """
    whole = [story for story in stories if story.asks_nothing_but(described.abilities)]
    own = [story for story in whole if described.profile in story.profiles][:most]
    others = [story for story in whole if story not in own]
    count = min(most - len(own), len(others))
    return [*own, *(others[at * len(others) // count] for at in range(count))]


class ControllersRunner(Runner[Example]):
    """Carries out a run against a controller and its brokers, behind an adapter."""

    result: ControllersResult
    harness: Harness
    alive = 0
    """How many mutants survived the last batch that could be killed."""
    in_vain = 0
    """How many batches in a row killed none of them."""

    @contextmanager
    def open(self) -> Iterator[None]:
        """Start the implementation on a server. Raises BadConnectable and the server's errors."""
        settings, data_dir = self.settings, self.directory / "zookeeper"
        adapter = settings.open(self.world)
        with (
            open_server(settings.connectable, data_dir, self.server, self.world) as (
                hosts,
                log_dir,
                home,
            ),
            Harness(
                hosts,
                log_dir,
                adapter,
                home=home,
                chroot_prefix=self.make_prefix("/example"),
                alive=note_alive,
                note=self._note_story,
                strict=settings.strict,
                known=[each.name for each in settings.known],
                world=self.world,
            ) as h,
        ):
            self.harness, self.driver, self.laps = h, h.driver, h.laps
            profile, able = h.description.profile, frozenset(h.abilities)
            self.scorer = Scorer(profile, h.readings)
            if log_dir is not None and log_dir.is_relative_to(self.directory):
                h.judge.file = RestsFile(self.directory, profile, h.readings, able)
            self.result = ControllersResult(
                settings,
                h.description.as_dict(),
                profile,
                h.readings.as_dict(),
                able,
                score=Score(capabilities=able, profile=profile),
                directory=self.directory,
            )
            yield
        self.result.score.write_cases(self.directory)
        if h.died is not None and not self.result.died:
            self.bury(h.died)

    def bury(self, error: AdapterDied | ServerGone) -> None:
        """Note why the run cannot go on, and what had been done by then."""
        Runner.bury(self, error)
        if self.harness.current is not None:
            story = replace(self.harness.current.story, name="died")
            self.result.died_after = story.lines()
            write_text(self.directory / DIED, format_story(story))

    def _note_story(self, story: Story) -> None:
        """Tell whoever supervises what is carried out, should nobody be left to say it."""
        text = format_story(replace(story, name="died"))
        note_story(str(self.directory), text, story.lines())

    def carry_out(self, story: Story) -> Example:
        """Tell a story; return the cluster to which it was told."""
        return self.harness.tell(story)

    def list_shipped(self) -> Sequence[Story]:
        """Return the shipped stories of the profile, those that were written for it first.

        Those of the protocol that a cluster spoke before it was upgraded are its own as well.
        """
        described = self.harness.description
        own = {described.profile, get_rules(described.profile).earlier} - {""}
        told = (story for story in super().list_shipped() if any(map(story.is_for, own)))
        stories = sorted(told, key=lambda story: own.isdisjoint(story.profiles))
        if most := self.settings.stories_max:
            stories = _choose(most, stories, described)
        needs = (s.NEEDS.get(type(step)) for story in stories for step in story.steps)
        undeclared = Counter(n for n in needs if n is not None and n not in described.abilities)
        self.result.undeclared = dict(undeclared)
        return stories

    def generate(self, most: int, deadline: float) -> StoryFailure | None:
        """Generate so many examples, until then; return what one of them violates."""
        from reassure_conformance.gate.generation import GenerationBudget, generate

        settings, h = self.settings, self.harness
        budget = GenerationBudget(
            examples=most,
            steps_per_example=settings.steps_per_example,
            steps_min=max(0, settings.steps_min - h.steps),
            shrink_s=settings.shrink_s,
            deadline=deadline,
            is_done=self.is_over,
        )
        begin = h.driver.made

        def tick() -> None:
            told = 0 if settings.until else settings.examples
            self.progress("examples", h.driver.made - begin, told)

        clauses = clauses_of_profile(h.description.profile)

        def get_wanted() -> frozenset[str]:
            return frozenset(c.id for c in clauses if not h.judge.exercised.get(c.id))

        return generate(
            h,
            settings.seed,
            budget,
            get_wanted=get_wanted,
            get_aims=lambda: tuple(self._iterate_aims(self._list_survivors())),
            others=tuple(self._iterate_aims(self.scorer.killable.values(), every=True)),
            progress=tick,
        )

    def _iterate_aims(self, kills: Iterable[Killable], *, every: bool = False) -> Iterator[Aim]:
        """Yield how to get where these mutants are killed, and to what was not reached so far.

        That is what never met and the coverage goals, of which all are wanted with `every`.
        """
        h, find_lacking = self.harness, self.result.score.find_lacking
        for steps in dict.fromkeys(kill.steps for kill in kills):
            if not find_lacking(steps):
                yield Aim.parse(steps)
        for kind, meeting in list_kinds(self.scorer.meetings).items():
            if not find_lacking(meeting.steps) and (every or kind not in h.meetings.met):
                yield Aim.parse(meeting.steps)
        for goal in possible_with(h.description.capabilities, h.description.profile):
            if every or not h.reached[goal.name]:
                yield aim_at(goal)

    def _list_survivors(self) -> Iterator[Killable]:
        """Yield what would kill the mutants that survive by now, where the implementation can."""
        self.scorer.update(self.harness.recorder.take_situations())
        for each in filter(self.result.score.is_able, self.scorer.list_survivors()):
            yield each.kill

    def list_wanted(self) -> Sequence[str]:
        """Return the clauses that are missing, and the mutants that could be killed and survive.

        The mutants are given up once so many batches in a row killed none.
        """
        score = self.result.score
        alive = tuple(each.name for each in filter(score.is_able, score.survivors))
        self.in_vain = self.in_vain + 1 if len(alive) == self.alive else 0
        self.alive = len(alive)
        return (*self.result.missing(), *(alive if self.in_vain < PATIENCE else ()))

    def keep_evidence(self, found: StoryFailure) -> StoryFailure:
        """Keep the transactions of the cluster to which the story was told last."""
        write_evidence(self.directory, found.told.chroot, found.told.transactions)
        return found

    def sum_up(self) -> None:
        """Put into the result what is known by now of every clause and coverage goal."""
        h, result, settings = self.harness, self.result, self.settings
        result.capabilities = frozenset(h.abilities)
        result.not_followed = tuple(h.not_followed)
        result.asides = tuple(
            Failure(example.story, example, violation)
            for violation, example in list(h.asides.values())[:ASIDES_KEPT]
            if example.transactions
        )
        seen = Counter(name for name, _ in h.excused)
        result.known = {each.name: seen[each.name] for each in settings.known}
        passed = [e.name for e in settings.known if e.kind == FAILING and not seen[e.name]]
        result.stale = (*self.passed, *(f"{name} (known to fail)" for name in passed))
        able = ALL_ABILITIES if settings.require_all else result.capabilities
        possible = possible_with(able, result.profile)
        self.conclude(
            possible,
            h.reached,
            h.judge,
            (*(found for _, found in h.excused), *h.not_followed),
            h.recorder.take_situations,
        )
        result.meetings, result.met = list_kinds(self.scorer.meetings), h.meetings.met
        result.examples = h.driver.made
        result.steps = h.steps
        result.refused = h.results["refused"]
        result.skipped = h.results["skipped"]
        result.unsettled = len(h.unsettled)
        for number, story in enumerate(h.unsettled[:UNSETTLED_KEPT], start=1):
            path = self.directory / f"unsettled-{number}{SUFFIX}"
            write_text(path, format_story(story))
        result.transactions = h.judge.transactions
