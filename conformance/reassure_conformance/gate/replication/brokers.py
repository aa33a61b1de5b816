"""A run of the gate against brokers with logs.

The directory of the run is that of any run (`gate.running`). Of the trial that failed it holds
`failure.txt`, its steps, and `failure/`, the logs of each broker and what it observed: `reassure
audit --profile PROFILE RUN RUN/failure/*/observations` judges these once more.
"""

import logging
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from reassure_conformance.adapter.driver import Driver
from reassure_conformance.adapter.replicating import ReplicatingCluster
from reassure_conformance.gate.base_runner import Runner, open_server
from reassure_conformance.gate.discrimination import Score
from reassure_conformance.gate.drawn import run_batch
from reassure_conformance.gate.laps import Laps
from reassure_conformance.gate.replication.arrivals import Event
from reassure_conformance.gate.replication.brokers_outcome import BrokersResult
from reassure_conformance.gate.replication.drawing import STEPS, TrialBatch, TrialMachine
from reassure_conformance.gate.replication.setting import (
    AMENDED,
    AS_WRITTEN,
    TrialOutcome,
    TrialSetting,
)
from reassure_conformance.gate.replication.situations import SITUATIONS
from reassure_conformance.gate.replication.trial import BROKERS as MOST_BROKERS
from reassure_conformance.gate.replication.trial import Trial
from reassure_conformance.gate.requirements import ALL_ABILITIES
from reassure_conformance.gate.run_outcome import Failure
from reassure_conformance.gate.run_settings import REPLICATION, Progress, Settings
from reassure_conformance.gate.story import BROKERS, Story, format_story, make_story
from reassure_conformance.mutants import check_faults, planted
from reassure_conformance.report.document import get_version, write_text
from reassure_conformance.script import SUFFIX
from reassure_conformance.supervise import note_alive
from reassure_controller.replication.rules import ReplicationRules
from reassure_judge.verdicts import Tally, Violation
from reassure_mutation.score import Scorer
from reassure_mutation.table import find_worlds
from reassure_spec.readings import Readings, get_profile, override_readings
from reassure_zookeeper.server import Server

log = logging.getLogger(__name__)

LAG_MS_MAX: Final = 1_000
BATCH: Final = 40
"""Trials that are drawn in a row."""
(_WORLDS,) = find_worlds(REPLICATION)
"""What is known of mutants of the rules that brokers with logs go by."""
SHIPPED: Final[Mapping[str, str]] = _WORLDS.SHIPPED
"""The readings of the bundled brokers where nobody says otherwise."""
NOT_PROMISED: Final = frozenset({"isr.pseudo.close-follower"})
"""Advice that the document's own implementation does not follow (findings watermark-1 to 5): it
binds nobody, not even where all advice binds."""


UNANSWERED: Final = frozenset({"lose-write", "lose-answer", "expire"})
"""The verbs of steps by which a broker may not know what came of a write."""
EARLY: Final[Mapping[str, str]] = MappingProxyType(
    {"lag_initial": "now", "lag_initial_leader_end": "zero"}
)
"""Fields of the readings that differ in trials of early credit."""


class BrokersRunner(Runner[TrialOutcome]):
    """Carries out a run against stepped brokers with logs."""

    story_world = BROKERS
    result: BrokersResult

    def __init__(
        self,
        settings: Settings,
        directory: Path,
        progress: Progress = lambda *_: None,
        server: Server | None = None,
    ) -> None:
        super().__init__(settings, directory, progress, server)
        check_faults(settings.faults)
        profile = get_profile(REPLICATION)
        self._readings = override_readings(profile, {**SHIPPED, **settings.readings})
        ReplicationRules(self._readings)  # refused at the door, or not at all
        self._made = 0
        self._tally = Tally()
        self.laps = Laps(self.world.monotonic)
        self.reached = Counter[str]()
        """How often each situation came up, by name."""
        self._aims = self._choose_aims()
        self._not_followed: list[Violation] = []
        self._moments = _WORLDS.replica_moments.Moments()
        self.scorer = Scorer(REPLICATION, self._readings)
        implementation = {
            "name": ", with ".join(("reassure-brokers", *settings.faults)),
            "version": get_version(),
            "language": "Python",
        }
        readings = self._readings.as_dict()
        self.result = BrokersResult(
            settings,
            implementation,
            REPLICATION,
            readings,
            ALL_ABILITIES,
            score=Score(capabilities=ALL_ABILITIES),
            directory=directory,
        )

    @contextmanager
    def open(self) -> Iterator[None]:
        """Start a server, and the clients of brokers and controllers on it."""
        settings, world, data_dir = self.settings, self.world, self.directory / "zookeeper"
        with (
            open_server(settings.connectable, data_dir, self.server, world) as (hosts, log_dir, _),
            Driver(hosts, log_dir, self.make_prefix("/brokers"), world=world) as self.driver,
            planted(settings.faults),
            ReplicatingCluster(hosts, MOST_BROKERS, world) as self._cluster,
        ):
            yield

    # Trials

    def begin(self, setting: TrialSetting) -> Trial:
        """Begin a trial."""
        self._made += 1
        rules = ReplicationRules(
            self._choose_readings(setting),
            lag_ms_max=LAG_MS_MAX,
            min_insync_replicas=setting.min_insync_replicas,
            fetch_bytes=setting.fetch_bytes,
        )
        directory = self.directory / "trials" / str(self._made)
        return Trial(self.driver, self._cluster, directory, setting, rules, self._note_event)

    def _note_event(self, event: Event) -> None:
        self.reached.update({one.name: one.count(event) for one in SITUATIONS})

    def _choose_readings(self, setting: TrialSetting) -> Readings:
        if setting.rules == AS_WRITTEN:
            return get_profile(REPLICATION)
        return self._readings if setting.rules == AMENDED else replace(self._readings, **EARLY)

    def carry_out(self, story: Story) -> TrialOutcome:
        """Carry out the steps of a story that are possible."""
        assert isinstance(story.setting, TrialSetting)
        trial = self.begin(story.setting)
        for step in story.steps:
            trial.perform(step)
        return trial.finish()

    def list_broken(self, told: TrialOutcome) -> Sequence[Violation]:
        """Return what counts as a failure: with all advice that binds where all advice binds."""
        strict = self.settings.strict
        return [
            violation
            for violation in told.violations
            if violation.binds() or (strict and violation.clause not in NOT_PROMISED)
        ]

    def forget(self, told: TrialOutcome) -> None:
        """Delete the logs of a trial."""
        shutil.rmtree(told.directory)

    def add_up(self, told: TrialOutcome) -> None:
        """Add up what came of a trial."""
        note_alive()
        result = self.result
        result.steps += len(told.steps)
        result.lines += sum(line.sequence >= 0 for said in told.observed for line in said)
        result.records += told.records
        result.promised += told.promised
        if told.unrest:
            result.unsettled += 1
            log.warning("%s", told.unrest)
            name = f"unsettled-{result.unsettled}"
            story = Story(name, told.steps, told.setting, why=(told.unrest,))
            write_text(self.directory / f"{name}{SUFFIX}", format_story(story))
        is_answered = UNANSWERED.isdisjoint(step.verb for step in told.carried_out)
        readings = self._choose_readings(told.setting)
        self._moments.read(told.observed, readings, is_answered=is_answered)
        broken = self.list_broken(told)
        self._not_followed += [v for v in told.violations if v not in broken]
        self._tally.add(replace(told.tally, violations=[]))
        self.laps.lap(self._tally.exercised)

    def generate(self, most: int, deadline: float) -> Failure[TrialOutcome] | None:
        """Draw so many trials, until then; return what one of them violates."""
        result, monotonic = self.result, self.world.monotonic
        while result.examples < most and monotonic() < deadline and not self.is_over():
            batch = TrialBatch(
                self.begin, self.take_drawn, lambda: monotonic() > deadline, self._aims
            )
            left, before = min(BATCH, most - result.examples), result.examples
            seed = self.settings.seed + before * 7919
            run_batch(TrialMachine, batch, seed, examples=left, steps=STEPS)
            if batch.failures:
                return batch.failures[0]
            if result.examples == before:
                return None
        return None

    def take_drawn(self, told: TrialOutcome) -> Failure[TrialOutcome] | None:
        """Add up what came of a trial that was drawn; return what it violates."""
        self.result.examples += 1
        self.progress("examples", self.result.examples, self.settings.examples)
        self.add_up(told)
        return self.find_or_forget(Story("failure", (), told.setting), told)

    def _choose_aims(self) -> Iterator[Story | None]:
        """Yield what trials are to get into, one in four nothing, for ever.

        First what never came up, and the tales that kill mutants which survive so far; then, once
        everything has, one after the other. A counter decides, since draws are not even.
        """
        while True:
            unreached = [one for one in SITUATIONS if not self.reached[one.name]]
            self.scorer.update(self._moments.take_fresh())
            tales = {one.kill.steps: None for one in self.scorer.list_survivors()}
            cases = {story.name: story for story in self.list_shipped()}
            wanted = unreached if unreached or tales else SITUATIONS
            aims = [*(cases[one.case] for one in wanted), *map(make_story, tales)]
            for place, story in enumerate(aims):
                if place % 3 == 0:
                    yield None
                yield story

    def keep_evidence(self, found: Failure[TrialOutcome]) -> Failure[TrialOutcome]:
        """Move the logs and what the brokers observed where a person finds them."""
        place = self.directory / "failure"
        shutil.rmtree(place, ignore_errors=True)
        shutil.move(found.told.directory, place)
        told = found.told.moved_to(place)
        violation = told.violations[found.told.violations.index(found.violation)]
        return replace(found, told=told, violation=violation)

    def sum_up(self) -> None:
        """Put into the result what is known by now of every clause and situation."""
        result = self.result
        result.not_followed, result.stale = tuple(self._not_followed), self.passed
        self.conclude(
            SITUATIONS, self.reached, self._tally, self._not_followed, self._moments.take_fresh
        )
