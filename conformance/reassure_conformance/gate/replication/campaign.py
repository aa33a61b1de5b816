"""One run of the gate of KAFKA-4485: saved failures, shipped tales, then drawn trials.

The directory of the run is that of any run (`gate.running`). Of the trial that failed it holds
`failure.txt`, its steps, and `failure/`, the logs of each broker and what it observed: `reassure
audit --profile PROFILE RUN RUN/failure/*/observations` judges these once more.
"""

import json
import logging
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from reassure_conformance.adapter import AdapterDied
from reassure_conformance.adapter.driver import Driver, ServerGone
from reassure_conformance.adapter.replicating import ReplicatingCluster
from reassure_conformance.gate.laps import Laps
from reassure_conformance.gate.replication.alphabet import Step, format_step
from reassure_conformance.gate.replication.drawing import Batch, draw_trials
from reassure_conformance.gate.replication.situations import SITUATIONS, Situation
from reassure_conformance.gate.replication.tale import (
    Tale,
    format_tale,
    read_tales,
    shipped_tales,
)
from reassure_conformance.gate.replication.trial import (
    AMENDED,
    AS_WRITTEN,
    BROKERS,
    Event,
    Setting,
    Told,
    Trial,
)
from reassure_conformance.gate.running import (
    COVERED,
    Outcome,
    Progress,
    Settings,
    make_prefix,
    open_server,
    tell_missing,
)
from reassure_conformance.gate.situations import find_unreached
from reassure_conformance.mutants import check_faults, planted
from reassure_conformance.report.document import (
    Document,
    get_version,
    write_text,
)
from reassure_conformance.script import SUFFIX
from reassure_conformance.supervise import note_alive
from reassure_controller.replication.rules import ReplicationRules
from reassure_judge.protocols import get_observing
from reassure_judge.verdicts import ClauseVerdict, Tally, Violation, count_broken, summarise
from reassure_spec.errors import Unavailable
from reassure_spec.readings import Readings, get_profile, override_readings
from reassure_zookeeper.server import Server

log = logging.getLogger(__name__)

PROFILE: Final = get_observing().profiles[0]
UNJUDGED: Final = get_observing().unjudged
LAG_MS_MAX: Final = 1_000
BATCH: Final = 40
"""Trials that are drawn in a row."""
SHORTEN_S: Final = 20.0
"""How long a failing tale may be made shorter."""
LOOKED_AT: Final = frozenset({"replica.order-obeyed"})
"""Clauses that no line shows kept or broken, and a trial does that comes to rest."""
NOT_PROMISED: Final = frozenset({"isr.pseudo.close-follower"})
"""Advice that the document's own implementation does not follow (findings watermark-1 to 5): it
binds nobody, not even where all advice binds."""
SHIPPED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "hw.scope": "across-clean-elections",
        "hw.over-stored-isr": "yes",
        "hw.served-from": "end-at-election",
        "isr.entry": "end-at-election",
        "follower.truncation": "common-prefix",
        "lag.initial": "now-if-in-sync",
        "lag.initial-leader-end": "leader-end",
    }
)
"""The readings of the bundled brokers where nobody says otherwise: with all amendments, since as
written an election can lose what was shown (finding watermark-12)."""


EARLY: Final[Mapping[str, str]] = MappingProxyType(
    {"lag_initial": "now", "lag_initial_leader_end": "zero"}
)
"""Fields of the readings that differ in trials of early credit."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The first violation of a run, with its shortest tale."""

    tale: Tale
    told: Told
    violation: Violation
    repeats: bool

    def lines(self) -> tuple[str, ...]:
        """Return the steps, as text."""
        return tuple(map(format_step, self.tale.steps))


@dataclass(slots=True)
class Result(Outcome):
    """What came of a run."""

    settings: Settings
    readings: Mapping[str, str]
    clauses: tuple[ClauseVerdict, ...] = ()
    failure: Failure | None = None
    not_followed: tuple[Violation, ...] = ()
    died: str = ""
    trace: str = ""
    stale: tuple[str, ...] = ()
    reached: Mapping[str, int] = field(default_factory=dict)
    """How often each situation came up."""
    tales: int = 0
    examples: int = 0
    steps: int = 0
    lines: int = 0
    records: int = 0
    promised: int = 0
    unsettled: int = 0
    seconds: float = 0.0
    clause_seconds: Mapping[str, float] = field(default_factory=dict)
    clock: Mapping[str, float] = field(default_factory=dict)
    directory: Path | None = None

    def required(self) -> tuple[ClauseVerdict, ...]:
        """Return the verdicts on the clauses that a run has to put to the test."""
        return tuple(
            c for c in self.clauses if c.level == "MUST" and c.id not in UNJUDGED.keys() - LOOKED_AT
        )

    def counts(self) -> dict[str, int]:
        """Return the numbers that the report begins with."""
        required = self.required()
        return {
            "clauses_required": len(required),
            "clauses_exercised": sum(1 for c in required if c.exercised),
            "examples": self.examples,
            "steps": self.steps,
            "transactions": 0,
            "stories": self.tales,
            "observations": self.lines,
            "records": self.records,
            "acknowledged": self.promised,
            "not_followed": len(self.not_followed),
            "situations": len(self.reached),
            "situations_reached": sum(1 for count in self.reached.values() if count),
        }

    def as_document(self) -> Document:
        """Return the document."""
        return Document(
            "run",
            self.verdict(),
            self.seconds,
            self.counts(),
            seed=self.settings.seed,
            profile=PROFILE,
            readings=self.readings,
            exit_code=Unavailable.exit_code if self.died and self.failure is None else None,
            body=self.as_body(),
        )

    def as_body(self) -> dict[str, Any]:
        """Return what the report says beyond the common head."""
        failure = self.failure
        return {
            "implementation": {
                "name": ", with ".join(("reassure-brokers", *self.settings.faults)),
                "version": get_version(),
                "language": "Python",
            },
            "steps": self.steps,
            "clauses": [clause.as_dict() for clause in self.clauses],
            "clause_seconds": dict(self.clause_seconds),
            "violations": [v.as_dict() for v in failure.told.violations] if failure else [],
            "not_followed": [violation.as_dict() for violation in self.not_followed],
            "story": list(failure.lines()) if failure else [],
            "repeats": failure.repeats if failure else None,
            "clause": failure.violation.clause if failure else None,
            "timeline": None,
            "not_exercised": list(self.missing()),
            "not_asked": {},
            "lacking": {},
            "unjudged": {k: why for k, why in UNJUDGED.items() if k not in LOOKED_AT},
            "unsettled": self.unsettled,
            "died": self.died,
            "died_after": [],
            "traceback": self.trace,
            "stale": list(self.stale),
            "situations": [
                {
                    "name": situation.name,
                    "sentence": situation.sentence,
                    "clauses": list(situation.clauses),
                    "needs": [],
                    "reached": self.reached.get(situation.name),
                }
                for situation in SITUATIONS
            ],
            "undeclared": {},
            "clock": {name: round(value, 3) for name, value in self.clock.items()},
            "directory": str(self.directory) if self.directory else None,
        }


class _Stop(Exception):
    """A violation was found; nothing more is tried."""


class Campaign:
    """Carries out one run on a server of its own, or on one that others have used before."""

    def __init__(
        self,
        settings: Settings,
        directory: Path,
        progress: Progress,
        server: Server | None = None,
    ) -> None:
        self._settings = settings
        self._directory = directory
        self._progress = progress
        self._server = server
        check_faults(settings.faults)
        self._readings = override_readings(get_profile(PROFILE), {**SHIPPED, **settings.readings})
        ReplicationRules(self._readings)  # refused at the door, or not at all
        self._made = 0
        self._tally = Tally()
        self._laps = Laps()
        self._reached = Counter[str]()
        """How often each situation came up, by name."""
        self._aims = self._choose_aims()
        self._not_followed: list[Violation] = []
        self.result = Result(settings, self._readings.as_dict(), directory=directory)

    def replay(self, tale: Tale) -> Result:
        """Tell one tale alone, as it is; what it breaks first is the failure of the result."""
        start = time.monotonic()
        with self._open():
            try:
                told = self._tell(tale.setting, tale.steps)
                if self._note(told):
                    broken = self._find_broken(told)
                    same = [one for one in broken if one.clause == tale.violates]
                    self.result.failure = Failure(tale, told, (same or broken)[0], bool(same))
            except (AdapterDied, ServerGone) as error:
                self.result.died, self.result.trace = str(error), getattr(error, "trace", "")
        self.result.seconds = time.monotonic() - start
        return self.result

    @contextmanager
    def _open(self) -> Iterator[Driver]:
        """Start a server, and the clients of brokers and controllers on it."""
        settings, data_dir = self._settings, self._directory / "zookeeper"
        with (
            open_server(settings.connectable, data_dir, self._server) as (hosts, log_dir, _),
            Driver(hosts, log_dir, make_prefix("/brokers", settings, self._server)) as driver,
            planted(settings.faults),
            ReplicatingCluster(hosts, BROKERS) as cluster,
        ):
            self._driver, self._cluster = driver, cluster
            yield driver

    def run(self) -> Result:
        """Carry out the run and write its directory."""
        start, settings, result = time.monotonic(), self._settings, self.result
        text = json.dumps({"version": get_version(), **settings.as_dict()}, indent=2)
        write_text(self._directory / "run.json", text + "\n")
        with self._open() as driver:
            try:
                self._tell_saved()
                self._tell_shipped()
                self._draw(start + settings.seconds_max)
            except _Stop:
                pass
            except (AdapterDied, ServerGone) as error:
                result.died, result.trace = str(error), getattr(error, "trace", "")
            clock = {name: float(value) for name, value in sorted(driver.clock.items())}
        result.seconds = time.monotonic() - start
        clock["generation"] = max(0.0, result.seconds - sum(clock.values()))
        result.clock = clock
        self._sum_up()
        return result

    def _sum_up(self) -> None:
        """Put into the result what is known by now of every clause and situation."""
        result = self.result
        violations = result.failure.told.violations if result.failure else ()
        result.not_followed = tuple(self._not_followed)
        result.reached = {one.name: self._reached[one.name] for one in SITUATIONS}
        unreached = find_unreached(SITUATIONS, result.reached)
        result.clauses = summarise(
            PROFILE,
            {clause: n for clause, n in self._tally.exercised.items() if clause not in unreached},
            count_broken((*violations, *self._not_followed)),
            undecided=self._tally.undecided,
            settled=True,
            strict=self._settings.strict,
        )
        result.clause_seconds = self._laps.as_dict(result.clauses)

    # Trials

    def _begin(self, setting: Setting) -> Trial:
        self._made += 1
        readings = self._choose_readings(setting)
        rules = ReplicationRules(
            readings,
            lag_ms_max=LAG_MS_MAX,
            min_insync_replicas=setting.min_insync_replicas,
            fetch_bytes=setting.fetch_bytes,
        )
        directory = self._directory / "trials" / str(self._made)
        return Trial(self._driver, self._cluster, directory, setting, rules, self._note_event)

    def _note_event(self, event: Event) -> None:
        self._reached.update(one.name for one in SITUATIONS if one.is_in(event))

    def _choose_readings(self, setting: Setting) -> Readings:
        if setting.rules == AS_WRITTEN:
            return get_profile(PROFILE)
        return self._readings if setting.rules == AMENDED else replace(self._readings, **EARLY)

    def _tell(self, setting: Setting, steps: tuple[Step, ...]) -> Told:
        """Carry out steps, those that are possible."""
        trial = self._begin(setting)
        for step in steps:
            trial.perform(step)
        return trial.finish()

    def _note(self, told: Told) -> bool:
        """Add up what came of a trial; answer whether it failed."""
        note_alive()
        result = self.result
        result.steps += len(told.steps)
        result.lines += told.lines
        result.records += told.records
        result.promised += told.promised
        if told.unrest:
            result.unsettled += 1
            log.warning("%s", told.unrest)
            name = f"unsettled-{result.unsettled}"
            text = format_tale(Tale(name, told.setting, told.steps, why=(told.unrest,)))
            write_text(self._directory / f"{name}{SUFFIX}", text)
        broken = self._find_broken(told)
        self._not_followed += [v for v in told.violations if v not in broken]
        self._tally.add(replace(told.tally, violations=[]))
        self._laps.lap(self._tally.exercised)
        if not broken:
            shutil.rmtree(told.directory)
        return bool(broken)

    def _find_broken(self, told: Told) -> list[Violation]:
        strict = self._settings.strict
        return [
            violation
            for violation in told.violations
            if violation.binds() or (strict and violation.clause not in NOT_PROMISED)
        ]

    def _tell_saved(self) -> None:
        folder = self._settings.failures
        if folder:
            tales = list(read_tales(Path(folder)))
            stale = [tale.name for tale in tales if not self._tell_tale(tale)]
            self.result.stale = tuple(stale)

    def _tell_shipped(self) -> None:
        tales = list(shipped_tales()) if self._settings.with_stories else []
        for number, tale in enumerate(tales):
            self._progress("stories", number, len(tales))
            self._tell_tale(tale)

    def _tell_tale(self, tale: Tale) -> bool:
        self.result.tales += 1
        told = self._tell(tale.setting, tale.steps)
        if self._note(told):
            self._fail(tale.setting, told)
        return False

    def _draw(self, deadline: float) -> None:
        settings, result = self._settings, self.result
        most = sys.maxsize if settings.until else settings.examples
        while result.examples < most and time.monotonic() < deadline and not settings.is_stopped():
            if settings.until == COVERED and self._is_covered():
                return
            batch = Batch(self._begin, self._take_drawn, deadline, self._aims)
            left = min(BATCH, most - result.examples)
            before = result.examples
            draw_trials(batch, left, settings.seed + result.examples * 7919)
            if batch.failed:
                self._fail(*batch.failed[0])
            if result.examples == before:
                return

    def _is_covered(self) -> bool:
        """Whether everything was put to the test that a run has to; tell what was not."""
        self._sum_up()
        missing = self.result.missing()
        tell_missing(self._directory, missing)
        return not missing

    def _choose_aims(self) -> Iterator[Situation | None]:
        """Yield what trials are to get into, one in four nothing, for ever.

        First what never came up, then, once everything has, one after the other. A counter decides,
        since draws are not even.
        """
        while True:
            unreached = [one for one in SITUATIONS if not self._reached[one.name]]
            for place, situation in enumerate(unreached or SITUATIONS):
                if place % 3 == 0:
                    yield None
                yield situation

    def _take_drawn(self, told: Told) -> bool:
        self.result.examples += 1
        self._progress("examples", self.result.examples, self._settings.examples)
        return self._note(told)

    # Failing

    def _fail(self, setting: Setting, told: Told) -> None:
        """Keep the failure, then make its tale short and keep that. Raises _Stop."""
        violation = self._find_broken(told)[0]
        tale = Tale("failure", setting, told.steps, violation.clause)
        self._progress("shrinking", 0, 0)
        kept = self._keep(Failure(tale, told, violation, repeats=False))
        until = time.monotonic() + min(SHORTEN_S, self._settings.shrink_s * 2)

        def breaks(steps: tuple[Step, ...]) -> Failure | None:
            again = self._tell(setting, steps)
            broken = [v for v in self._find_broken(again) if v.clause == violation.clause]
            if not broken:
                shutil.rmtree(again.directory)
                return None
            short = replace(tale, steps=again.steps)
            return Failure(short, again, broken[0], repeats=True)

        for shorter in shorten(tale.steps, breaks, until):
            kept = self._keep(shorter)
        self.result.failure = kept
        if self._settings.failures:
            name = f"{violation.clause}-{self._settings.seed}{SUFFIX}"
            write_text(Path(self._settings.failures) / name, format_tale(kept.tale))
        raise _Stop

    def _keep(self, failure: Failure) -> Failure:
        """Put the failure where a person finds it, in place of the one before."""
        place = self._directory / "failure"
        shutil.rmtree(place, ignore_errors=True)
        shutil.move(failure.told.directory, place)
        failure = _follow(failure, place)
        write_text(self._directory / f"failure{SUFFIX}", format_tale(failure.tale))
        content = {
            "clause": failure.violation.clause,
            "repeats": failure.repeats,
            "chroot": failure.told.chroot,
            "steps": [],
            "story": list(failure.lines()),
            "violations": [v.as_dict() for v in failure.told.violations],
        }
        write_text(self._directory / "failure.json", json.dumps(content, indent=2) + "\n")
        return failure


def _follow(failure: Failure, place: Path) -> Failure:
    """Return the failure with violations that name the files where they have been moved to."""
    was = failure.told.directory

    def move(violation: Violation) -> Violation:
        file = Path(violation.file)
        inside = violation.file and file.is_relative_to(was)
        return replace(violation, file=str(place / file.relative_to(was))) if inside else violation

    told = failure.told
    told = replace(told, directory=place, violations=tuple(map(move, told.violations)))
    return replace(failure, told=told, violation=move(failure.violation))


def shorten(
    steps: tuple[Step, ...],
    breaks: Callable[[tuple[Step, ...]], Failure | None],
    until: float,
) -> Iterator[Failure]:
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
