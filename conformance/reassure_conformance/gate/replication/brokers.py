"""A run of the gate against brokers with logs.

The directory of the run is that of any run (`gate.running`). Of the trial that failed it holds
`failure.txt`, its steps, and `failure/`, the logs of each broker and what it observed: `reassure
audit --profile PROFILE RUN RUN/failure/*/observations` judges these once more.
"""

import logging
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from reassure_conformance.adapter import AdapterDied
from reassure_conformance.adapter.driver import Driver, ServerGone
from reassure_conformance.adapter.replicating import ReplicatingCluster
from reassure_conformance.gate.base_runner import Runner, open_server
from reassure_conformance.gate.drawn import run_batch
from reassure_conformance.gate.goals import find_unreached
from reassure_conformance.gate.laps import Laps
from reassure_conformance.gate.replication.alphabet import BrokerStep
from reassure_conformance.gate.replication.arrivals import Event
from reassure_conformance.gate.replication.brokers_outcome import (
    BrokersResult,
    BrokersScore,
    TaleFailure,
)
from reassure_conformance.gate.replication.drawing import STEPS, TrialBatch, TrialMachine
from reassure_conformance.gate.replication.setting import (
    AMENDED,
    AS_WRITTEN,
    TrialOutcome,
    TrialSetting,
)
from reassure_conformance.gate.replication.situations import SITUATIONS, BrokerGoal
from reassure_conformance.gate.replication.tale import (
    BrokersCase,
    format_tale,
    make_tale,
    read_tales,
    shipped_tales,
)
from reassure_conformance.gate.replication.trial import BROKERS, Trial
from reassure_conformance.gate.run_settings import REPLICATION, Progress, Settings
from reassure_conformance.mutants import check_faults, planted
from reassure_conformance.report.document import get_version, write_text
from reassure_conformance.script import SUFFIX
from reassure_conformance.supervise import note_alive
from reassure_controller.replication.rules import ReplicationRules
from reassure_judge.verdicts import Tally, Violation, count_broken, summarise
from reassure_mutation.score import Scorer
from reassure_mutation.table import find_worlds
from reassure_spec.readings import Readings, get_profile, override_readings
from reassure_zookeeper.server import Server

log = logging.getLogger(__name__)

LAG_MS_MAX: Final = 1_000
BATCH: Final = 40
"""Trials that are drawn in a row."""
SHORTEN_S: Final = 20.0
"""How long a failing tale may be made shorter."""
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


class BrokersRunner(Runner[BrokersCase, TaleFailure]):
    """Carries out a run against stepped brokers with logs."""

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
        self._laps = Laps(self.world.monotonic)
        self._reached = Counter[str]()
        """How often each situation came up, by name."""
        self._aims = self._choose_aims()
        self._not_followed: list[Violation] = []
        self._moments = _WORLDS.replica_moments.Moments()
        self._scorer = Scorer(REPLICATION, self._readings)
        implementation = {
            "name": ", with ".join(("reassure-brokers", *settings.faults)),
            "version": get_version(),
            "language": "Python",
        }
        readings = self._readings.as_dict()
        self.result = BrokersResult(
            settings, implementation, REPLICATION, readings, directory=directory
        )

    @contextmanager
    def open(self) -> Iterator[None]:
        """Start a server, and the clients of brokers and controllers on it."""
        settings, data_dir = self.settings, self.directory / "zookeeper"
        with (
            open_server(settings.connectable, data_dir, self.server) as (hosts, log_dir, _),
            Driver(hosts, log_dir, self.make_prefix("/brokers")) as self.driver,
            planted(settings.faults),
            ReplicatingCluster(hosts, BROKERS) as self._cluster,
        ):
            yield

    def replay(self, tale: BrokersCase) -> BrokersResult:
        """Tell one tale alone, as it is; what it breaks first is the failure of the result."""
        start = time.monotonic()
        with self.open():
            try:
                told = self.carry_out(tale.setting, tale.steps)
                if self._note(told):
                    broken = self._find_broken(told)
                    same = [one for one in broken if one.clause == tale.violates]
                    self.result.failure = TaleFailure(tale, told, (same or broken)[0], bool(same))
            except (AdapterDied, ServerGone) as error:
                self.bury(error)
        self.result.seconds = time.monotonic() - start
        return self.result

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
        self._reached.update(one.name for one in SITUATIONS if one.is_in(event))

    def _choose_readings(self, setting: TrialSetting) -> Readings:
        if setting.rules == AS_WRITTEN:
            return get_profile(REPLICATION)
        return self._readings if setting.rules == AMENDED else replace(self._readings, **EARLY)

    def carry_out(self, setting: TrialSetting, steps: tuple[BrokerStep, ...]) -> TrialOutcome:
        """Carry out steps, those that are possible."""
        trial = self.begin(setting)
        for step in steps:
            trial.perform(step)
        return trial.finish()

    def judge(self, told: TrialOutcome) -> TaleFailure | None:
        """Add up what came of a trial; return what it violates."""
        if not self._note(told):
            return None
        violation = self._find_broken(told)[0]
        tale = BrokersCase("failure", told.setting, told.steps, violation.clause)
        return TaleFailure(tale, told, violation)

    def _note(self, told: TrialOutcome) -> bool:
        """Add up what came of a trial; answer whether it failed."""
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
            text = format_tale(BrokersCase(name, told.setting, told.steps, why=(told.unrest,)))
            write_text(self.directory / f"{name}{SUFFIX}", text)
        is_answered = UNANSWERED.isdisjoint(step.verb for step in told.steps)
        readings = self._choose_readings(told.setting)
        self._moments.read(told.observed, readings, is_answered=is_answered)
        broken = self._find_broken(told)
        self._not_followed += [v for v in told.violations if v not in broken]
        self._tally.add(replace(told.tally, violations=[]))
        self._laps.lap(self._tally.exercised)
        if not broken:
            shutil.rmtree(told.directory)
        return bool(broken)

    def _find_broken(self, told: TrialOutcome) -> list[Violation]:
        strict = self.settings.strict
        return [
            violation
            for violation in told.violations
            if violation.binds() or (strict and violation.clause not in NOT_PROMISED)
        ]

    def read_saved(self, folder: Path) -> Iterator[BrokersCase]:
        """Yield the saved failures of a folder."""
        return read_tales(folder)

    def list_shipped(self) -> Sequence[BrokersCase]:
        """Return the tales that come with the package."""
        return list(shipped_tales())

    def tell(self, case: BrokersCase) -> TaleFailure | None:
        """Carry out a tale; return what it violates."""
        return self.judge(self.carry_out(case.setting, case.steps))

    def generate(self, most: int, deadline: float) -> TaleFailure | None:
        """Draw so many trials, until then; return what one of them violates."""
        result = self.result
        while result.examples < most and time.monotonic() < deadline and not self.is_over():
            batch = TrialBatch(self.begin, self._take_drawn, deadline, self._aims)
            left, before = min(BATCH, most - result.examples), result.examples
            seed = self.settings.seed + before * 7919
            run_batch(TrialMachine, batch, seed, examples=left, steps=STEPS)
            if batch.failures:
                return batch.failures[0]
            if result.examples == before:
                return None
        return None

    def _take_drawn(self, told: TrialOutcome) -> TaleFailure | None:
        self.result.examples += 1
        self.progress("examples", self.result.examples, self.settings.examples)
        return self.judge(told)

    def _choose_aims(self) -> Iterator[BrokerGoal | BrokersCase | None]:
        """Yield what trials are to get into, one in four nothing, for ever.

        First what never came up, and the tales that kill mutants which survive so far; then, once
        everything has, one after the other. A counter decides, since draws are not even.
        """
        while True:
            unreached = [one for one in SITUATIONS if not self._reached[one.name]]
            self._scorer.update(self._moments.take_fresh())
            tales = {one.kill.steps: None for one in self._scorer.list_survivors()}
            aims: list[BrokerGoal | BrokersCase] = [*unreached, *map(make_tale, tales)]
            for place, situation in enumerate(aims or SITUATIONS):
                if place % 3 == 0:
                    yield None
                yield situation

    # Failing

    def shorten(self, found: TaleFailure) -> Iterator[TaleFailure]:
        """Yield shorter and shorter tales that still fail, each as it was told."""
        clause = found.violation.clause
        until = time.monotonic() + min(SHORTEN_S, self.settings.shrink_s * 2)

        def breaks(steps: tuple[BrokerStep, ...]) -> TaleFailure | None:
            again = self.carry_out(found.tale.setting, steps)
            broken = [v for v in self._find_broken(again) if v.clause == clause]
            if not broken:
                shutil.rmtree(again.directory)
                return None
            short = replace(found.tale, steps=again.steps)
            return TaleFailure(short, again, broken[0], repeats=True)

        return shorten(found.tale.steps, breaks, until)

    def keep(self, found: TaleFailure) -> TaleFailure:
        """Put the failure where a person finds it, in place of the one before."""
        place = self.directory / "failure"
        shutil.rmtree(place, ignore_errors=True)
        shutil.move(found.told.directory, place)
        kept = found.moved_to(place)
        write_text(self.directory / f"failure{SUFFIX}", kept.format())
        self.write("failure.json", kept.as_dict())
        return kept

    def sum_up(self) -> None:
        """Put into the result what is known by now of every clause and situation."""
        result = self.result
        violations = result.failure.told.violations if result.failure else ()
        result.not_followed, result.stale = tuple(self._not_followed), self.passed
        result.reached = {one.name: self._reached[one.name] for one in SITUATIONS}
        unreached = find_unreached(SITUATIONS, result.reached)
        result.clauses = summarise(
            REPLICATION,
            {clause: n for clause, n in self._tally.exercised.items() if clause not in unreached},
            count_broken((*violations, *self._not_followed)),
            undecided=self._tally.undecided,
            settled=True,
            strict=self.settings.strict,
        )
        if result.failure is None:
            moments = self._moments.take_fresh()
            result.score = BrokersScore.of(self._scorer, moments, frozenset())
            result.clauses = result.score.mark(result.clauses)
        result.clause_seconds = self._laps.as_dict(result.clauses)


def shorten(
    steps: tuple[BrokerStep, ...],
    breaks: Callable[[tuple[BrokerStep, ...]], TaleFailure | None],
    until: float,
) -> Iterator[TaleFailure]:
    """Yield shorter and shorter tales that still fail: without half of them, a quarter, one."""
    first = breaks(steps)
    if first is None:
        return
    yield first
    steps = first.tale.steps
    width = max(1, len(steps) // 2)
    while width and time.monotonic() < until:
        at = 0
        while at < len(steps) and time.monotonic() < until:
            found = breaks((*steps[:at], *steps[at + width :]))
            if found is None:
                at += width
            else:
                steps = found.tale.steps
                yield found
        width //= 2
