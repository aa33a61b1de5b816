"""One run: saved failures, then the shipped stories, then generated examples, all judged.

A run has a directory, made before anything is judged:

    run.json            what was asked for: seed, implementation, profile, readings, settings
    result.json         what came of it, its schema is `reassure spec schema result`
    zookeeper/          the server's own files, its transaction log among them, for `audit`
    failure.txt       the shortest story of the violation
    failure.json        its evidence: violations, steps and what became of them, quiet points
    transactions.jsonl  the transactions of that story, one a line, for people
    implementation.log  what the implementation and its ZooKeeper client warned of
    died.txt          the story in which the implementation died, its last step included
    unsettled-N.txt   what had been done when the cluster did not come to rest in time
    missing.json      with `until` COVERED, what is not put to the test yet, while it goes on
    log/log.N           the same as a valid transaction log, for `replay` and `audit`
"""

import json
import logging
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from reassure_conformance.adapter import (
    BROKERS,
    CAPABILITIES,
    DELETION,
    EXPIRE,
    ISR,
    KILL,
    LOG,
    MESSAGES,
    OLD_ZNODE,
    PREFERRED,
    REQUESTS,
    ROUTES,
    SHUTDOWN,
    Adapter,
    AdapterDied,
    open_adapter,
)
from reassure_conformance.adapter.driver import ServerGone
from reassure_conformance.adapter.remote import Place
from reassure_conformance.gate import kafka_42
from reassure_conformance.gate import steps as s
from reassure_conformance.gate.events import Situation
from reassure_conformance.gate.harness import Example, Harness
from reassure_conformance.gate.known import FAILING, Known
from reassure_conformance.gate.shortening import carried_out, minimise
from reassure_conformance.gate.situations import SITUATIONS, find_unreached, possible_with
from reassure_conformance.gate.story import Story, format_story, read_folder, shipped_stories
from reassure_conformance.report.document import (
    DIED,
    HOLDS,
    UNKNOWN,
    VACUOUS,
    VIOLATED,
    Document,
    get_version,
    write_text,
)
from reassure_conformance.script import SUFFIX
from reassure_conformance.supervise import HANG_S, note_alive, note_limit, note_story
from reassure_judge.verdicts import ClauseVerdict, Violation, count_broken, summarise
from reassure_spec.clauses import clauses_of_profile, load_clauses
from reassure_spec.errors import Unavailable
from reassure_spec.profiles import DEFAULT_PROFILE
from reassure_zookeeper.server import Server

BUNDLED: Final = "direct:reassure_conformance.adapter.bundled:Bundled"
REPLICATION: Final = "kafka-4485"
"""The profile of what brokers with logs do."""
MINIMISE_S: Final = 15.0
COVERED: Final = "covered"
"""Until everything that can be put to the test was."""
FAILED: Final = "failed"
"""Until something is violated."""
MISSING: Final = "missing.json"
"""The file in which a run until COVERED tells whoever waits for it what is missing still."""
ASIDES_KEPT: Final = 10
"""Of how many clauses that were broken and count for no verdict it is kept what happened."""
UNSETTLED_KEPT: Final = 5
"""How many stories are kept of clusters that did not come to rest."""

UNSEEN: Final = frozenset(
    {
        "isr.pseudo.by-lag",
        "hw.minimum-of-pseudo-isr",
        "hw.never-decreases",
        "hw.at-most-leader-end",
        "isr.member.at-or-above-hw",
    }
)
"""Clauses about offsets and lags, which ZooKeeper never sees: brokers with logs observe them."""

NEEDED_FOR: Final[Mapping[str, tuple[str, ...]]] = {
    "child.foreign-removed": (KILL,),
    "complete.leader-first-in-sync-target": (ISR,),
    "controller.election.held": (EXPIRE, KILL),
    "drop.isr-at-least-min": (ISR,),
    "election.assignment-order": (BROKERS,),
    "election.clean": (BROKERS, ISR),
    "election.held": (BROKERS,),
    "election.live": (BROKERS, ISR),
    "election.only-when-due": (BROKERS,),
    "isr.change.assigned-only": (ISR,),
    "isr.change.by-leader": (ISR,),
    "isr.change.keeps-leader": (ISR,),
    "isr.change.leader-kept": (ISR,),
    "isr.change.live-only": (ISR,),
    "isr.remove.dead": (BROKERS,),
    "leader.none-only-without-candidate": (BROKERS,),
    "message.leader-able": (ISR,),
    "message.leader-knows-assigned": (MESSAGES,),
    "message.deleted-after-cut": (MESSAGES,),
    "message.replica-told": (MESSAGES,),
    "message.stored-first": (MESSAGES,),
    "message.stranger-stopped": (MESSAGES,),
    **kafka_42.NEEDED_FOR,
}
"""Clauses that the gate cannot put to the test by itself, and the capabilities that let it.

Any one of them is enough. Of an implementation that declares none of them the clause is not asked,
unless every one is asked for."""

UNCLAIMED: Final[Mapping[str, Mapping[str, str]]] = {"kafka-42": kafka_42.UNCLAIMED}
"""By profile, the clauses that are for nobody who is driven by the gate, each with the reason."""

ALL_ABILITIES: Final = frozenset((*CAPABILITIES, *ROUTES, LOG))

EACH_NEEDED_FOR: Final[Mapping[str, tuple[str, ...]]] = {
    **{c.id: (OLD_ZNODE,) for c in load_clauses().values() if c.id.startswith("legacy.")},
    "request.foreign-removed": (REQUESTS,),
    "request.refuse.malformed": (REQUESTS,),
    "request.refuse.too-large": (REQUESTS,),
    "act.deletion-carried-out": (DELETION,),
    "act.preferred-election-held": (PREFERRED,),
    "act.shutdown-handed-over": (SHUTDOWN,),
    "shipped.delete.blocks-reassignment": (DELETION,),
    "topic.delete.all-successful-first": (DELETION, MESSAGES),
    "topic.delete.asked-last": (DELETION,),
    "topic.delete.failed-retried-later": (DELETION, MESSAGES, BROKERS),
    "topic.delete.failover-begins-again": (DELETION, MESSAGES, KILL),
    "topic.delete.unknown-removed": (DELETION,),
    "topic.delete.waits-for-brokers": (DELETION, BROKERS),
}
"""The same of clauses for which each of these capabilities and routes is needed."""

Progress = Callable[[str, int, int], None]
"""Told what is going on, how much of it is done, and how much there is."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What one run is asked to do."""

    seed: int
    connectable: str = BUNDLED
    profile: str = DEFAULT_PROFILE
    readings: Mapping[str, str] = field(default_factory=dict)
    """Readings that differ from the profile's."""
    faults: tuple[str, ...] = ()
    """Planted faults to switch on in the bundled implementation."""
    examples: int = 200
    steps_min: int = 3000
    steps_per_example: int = 14
    shrink_s: float = 8.0
    require_all: bool = False
    """Whether clauses are required also for which the implementation lacks a capability."""
    hang_s: float = HANG_S
    """How long one step may take before the implementation counts as dead."""
    seconds_max: float = 600.0
    """When generation ends whatever else was asked for."""
    until: str = ""
    """What generation goes on to, whatever examples that takes: COVERED, FAILED, or ""."""
    stop_at: str = ""
    """A file: once it is there nothing more is generated. "" for none."""
    with_stories: bool = True
    failures: str = ""
    """Folder of saved failures, told before anything else and added to; "" for none."""
    strict: bool = False
    """Whether a SHOULD binds like a MUST."""
    known: tuple[Known, ...] = ()
    """Failures that do not count."""

    def open(self) -> Adapter:
        """Return the implementation of these settings. Raises BadConnectable."""
        return open_adapter(
            self.connectable,
            profile=self.profile,
            readings=self.readings,
            faults=self.faults,
            answer_s=self.hang_s,
        )

    def is_stopped(self) -> bool:
        """Whether somebody wants nothing more to be generated."""
        return bool(self.stop_at) and Path(self.stop_at).exists()

    def as_dict(self) -> dict[str, Any]:
        """Return the record that run.json holds."""
        return {**asdict(self), "faults": list(self.faults)}


@dataclass(slots=True)
class Failure:
    """The first violation of a run, with its shortest story."""

    story: Story
    example: Example
    violation: Violation
    repeats: bool
    """Whether the story broke the clause again when it was told again."""

    def lines(self) -> tuple[str, ...]:
        """Return the steps, as text."""
        return tuple(s.format_step(step) for step in self.story.steps)

    def as_dict(self) -> dict[str, Any]:
        """Return the record that failure.json holds."""
        return {
            "clause": self.violation.clause,
            "repeats": self.repeats,
            "chroot": self.example.chroot,
            "violations": [v.as_dict() for v in self.example.violations],
            "brokers": list(self.story.brokers),
            "steps": [
                {
                    "step": s.format_step(done.step),
                    "result": done.result,
                    "why": done.why,
                    "transactions": done.transactions,
                    "after_zxid": done.after_zxid,
                }
                for done in self.example.done
            ],
            "quiet": self.example.quiet,
            "messages": [told.as_dict() for told in self.example.messages],
        }


class Outcome(ABC):
    """What came of a run, whatever was driven in it."""

    __slots__ = ()
    failure: Any
    """The first violation with its story, None where there was none."""
    died: str
    """Why the run could not go on, "" where it could."""
    unsettled: int
    """How often the cluster did not come to rest."""
    stale: tuple[str, ...]
    """Saved failures that did not fail."""
    examples: int
    """How many examples were generated."""
    clauses: tuple[ClauseVerdict, ...]
    """The verdict on every clause of the profile."""

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """Return the numbers that the report begins with."""

    @abstractmethod
    def as_body(self) -> dict[str, Any]:
        """Return what the report says beyond the common head."""

    @abstractmethod
    def required(self) -> tuple[ClauseVerdict, ...]:
        """Return the verdicts on the clauses that a run has to put to the test."""

    @abstractmethod
    def as_document(self) -> Document:
        """Return the document."""

    def missing(self) -> tuple[str, ...]:
        """Return the clauses that should have been put to the test and were not."""
        return tuple(c.id for c in self.required() if not c.exercised)

    def verdict(self) -> str:
        """Return the verdict on the whole run."""
        if self.failure is not None:
            return VIOLATED
        if self.died or self.unsettled:
            return UNKNOWN
        idle = not any(clause.exercised for clause in self.clauses)
        return VACUOUS if idle or self.missing() or self.stale else HOLDS


@dataclass(slots=True)
class Result(Outcome):
    """What came of a run."""

    settings: Settings
    implementation: Mapping[str, object]
    profile: str
    readings: Mapping[str, str]
    capabilities: frozenset[str]
    """What the implementation declares that it can do."""
    clauses: tuple[ClauseVerdict, ...] = ()
    failure: Failure | None = None
    not_followed: tuple[Violation, ...] = ()
    """Advice that was not followed."""
    asides: tuple[Failure, ...] = ()
    """The first of each known failure, and of advice that was not followed."""
    died: str = ""
    """Why the adapter or the server could not go on, "" where they could."""
    trace: str = ""
    """The traceback of an adapter that died."""
    died_after: tuple[str, ...] = ()
    """The steps of the example in which it died, the last one included."""
    stale: tuple[str, ...] = ()
    """Saved failures that did not fail, and known ones."""
    known: Mapping[str, int] = field(default_factory=dict)
    """How often each known failure came up."""
    examples: int = 0
    stories: int = 0
    steps: int = 0
    refused: int = 0
    skipped: int = 0
    unsettled: int = 0
    transactions: int = 0
    reached: Mapping[str, int] = field(default_factory=dict)
    """How often each situation came up that the implementation can be brought into."""
    undeclared: Mapping[str, int] = field(default_factory=dict)
    """Shipped story steps left out for want of a capability, by capability."""
    seconds: float = 0.0
    clause_seconds: Mapping[str, float] = field(default_factory=dict)
    """Seconds by clause: those of the steps that put it to the test."""
    clock: Mapping[str, float] = field(default_factory=dict)
    """Seconds by section: controller, zookeeper, log, judge, and the rest under generation."""
    directory: Path | None = None

    def required(self) -> tuple[ClauseVerdict, ...]:
        """Return the verdicts on the clauses that a run has to put to the test."""
        left_out = UNSEEN | self.not_asked().keys() | self.not_claimed().keys() | self.known.keys()
        return tuple(c for c in self.clauses if c.level == "MUST" and c.id not in left_out)

    def not_asked(self) -> dict[str, tuple[str, ...]]:
        """Return the clauses that nothing put to the test for want of a capability, and which."""
        if self.settings.require_all:
            return {}
        asked = {clause.id for clause in self.clauses if not clause.exercised}
        able = self.capabilities
        lacking = {c: needs for c, needs in NEEDED_FOR.items() if able.isdisjoint(needs)}
        for clause, needs in EACH_NEEDED_FOR.items():
            lacking[clause] = tuple(need for need in needs if need not in able)
        if LOG not in able:
            lacking |= {clause: (*lacking.get(clause, ()), LOG) for clause in asked}
        return {c: needs for c, needs in lacking.items() if c in asked and needs}

    def lacking(self) -> dict[str, list[str]]:
        """Return by what the implementation would have to declare the clauses not asked for it."""
        found: dict[str, list[str]] = {}
        for clause, needs in self.not_asked().items():
            found.setdefault(_join_needs(clause, needs), []).append(clause)
        return dict(sorted(found.items()))

    def not_claimed(self) -> Mapping[str, str]:
        """Return the clauses that are for nobody who is driven here, each with the reason."""
        return UNCLAIMED.get(self.profile, {})

    def counts(self) -> dict[str, int]:
        """Return the numbers that every report of a run begins with."""
        required = self.required()
        return {
            "clauses_required": len(required),
            "clauses_exercised": sum(1 for c in required if c.exercised),
            "examples": self.examples,
            "steps": self.steps,
            "transactions": self.transactions,
            "stories": self.stories,
            "refused": self.refused,
            "skipped": self.skipped,
            "unsettled": self.unsettled,
            "situations": len(self.reached),
            "situations_reached": sum(1 for count in self.reached.values() if count),
            "not_followed": len(self.not_followed),
        }

    def as_document(self) -> Document:
        """Return the document; an adapter or server that died has an exit code of its own."""
        return Document(
            "run",
            self.verdict(),
            self.seconds,
            self.counts(),
            seed=self.settings.seed,
            profile=self.profile,
            readings=self.readings,
            exit_code=Unavailable.exit_code if self.died and self.failure is None else None,
            body=self.as_body(),
        )

    def as_body(self) -> dict[str, Any]:
        """Return what a report of a run says beyond the common head."""
        failure = self.failure
        return {
            "implementation": dict(self.implementation),
            "steps": self.steps,
            "clauses": [clause.as_dict() for clause in self.clauses],
            "clause_seconds": dict(self.clause_seconds),
            "violations": [v.as_dict() for v in failure.example.violations] if failure else [],
            "not_followed": [violation.as_dict() for violation in self.not_followed],
            "story": list(failure.lines()) if failure else [],
            "repeats": failure.repeats if failure else None,
            "clause": failure.violation.clause if failure else None,
            "timeline": self._make_timeline(),
            "asides": [self._describe_aside(each) for each in self.asides],
            "not_exercised": list(self.missing()),
            "not_asked": {clause: list(needs) for clause, needs in self.not_asked().items()},
            "lacking": self.lacking(),
            "not_claimed": dict(self.not_claimed()),
            "unsettled": self.unsettled,
            "died": self.died,
            "died_after": list(self.died_after),
            "traceback": self.trace,
            "stale": list(self.stale),
            "known": [
                {**asdict(each), "seen": self.known.get(each.name, 0)}
                for each in self.settings.known
            ],
            "situations": [
                {
                    "name": situation.name,
                    "sentence": situation.sentence,
                    "clauses": list(situation.clauses),
                    "needs": sorted(situation.needs),
                    "reached": self.reached.get(situation.name),
                }
                for situation in SITUATIONS
            ],
            "undeclared": dict(self.undeclared),
            "clock": {name: round(value, 3) for name, value in self.clock.items()},
            "directory": str(self.directory) if self.directory else None,
        }

    def _make_timeline(self) -> dict[str, Any] | None:
        """Return what happened in the failing story, None where nothing failed."""
        from reassure_conformance.gate.evidence import make_timeline

        if self.failure is None:
            return None
        told = self.failure.example.transactions
        return make_timeline(self.profile, self.readings, self.failure.as_dict(), told)

    def _describe_aside(self, aside: Failure) -> dict[str, Any]:
        """Return a violation that counts for no verdict, with what happened."""
        from reassure_conformance.gate.evidence import make_timeline

        record = aside.violation.as_dict()
        failure = {**aside.as_dict(), "violations": [record]}
        told = aside.example.transactions
        return {
            "known": aside.violation in aside.example.excused,
            "violation": record,
            "story": list(aside.lines()),
            "timeline": make_timeline(self.profile, self.readings, failure, told),
        }


def _join_needs(clause: str, needs: tuple[str, ...]) -> str:
    """Return in words what a clause needs: each of these, or any one; a log besides.

    >>> _join_needs("election.live", ("brokers", "isr", "log"))
    '(brokers or isr) and log'
    """
    if clause in EACH_NEEDED_FOR:
        return " and ".join(needs)
    *any_of, last = needs if LOG in needs else (*needs, "")
    said = " or ".join(any_of)
    if not (said and last):
        return said or last
    return f"({said}) and {last}" if len(any_of) > 1 else f"{said} and {last}"


@contextmanager
def open_server(
    connectable: str, data_dir: Path, server: Server | None = None
) -> Iterator[tuple[str, Path | None, str | None]]:
    """Yield a server's address and log directory, and the chroot in which a controller runs.

    The server of a `zk:` connectable is somebody else's; others get the one that is given, or one
    of their own. Raises BadConnectable and the server's errors.
    """
    if server is not None:
        yield server.hosts, server.log_dir, None
        return
    if connectable.startswith("zk:"):
        place = Place(connectable)
        yield place.hosts, place.log_dir, place.chroot
        return
    with Server.start(data_dir) as server:
        yield server.hosts, server.log_dir, None


class _Stop(Exception):
    """A violation was found; nothing more is tried."""


def tell_missing(directory: Path, missing: Sequence[str]) -> None:
    """Write down what is not put to the test yet; whoever reads meanwhile reads all of it."""
    fresh = directory / f"{MISSING}.new"
    write_text(fresh, json.dumps(list(missing)) + "\n")
    fresh.replace(directory / MISSING)


def make_directory(out: Path | None, seed: int) -> Path:
    """Return the directory of this run, made. Raises OSError, FileExistsError when it is taken."""
    if out is None:
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        out = Path("runs") / f"{stamp}-{seed}"
    out.mkdir(parents=True, exist_ok=True)
    if (out / "run.json").exists():
        raise FileExistsError(f"{out} holds a run already; choose another directory with --out")
    return out


class Runner:
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
        self._passed: tuple[str, ...] = ()
        """Saved failures that did not fail."""

    def run(self) -> Result:
        """Carry out the run and write its directory.

        Raises BadConnectable and the server's own errors where nothing could be started; an
        adapter that dies later is a result.
        """
        start = time.monotonic()
        settings = self._settings
        self._write("run.json", {"version": get_version(), **settings.as_dict()})
        adapter = settings.open()
        data_dir = self._directory / "zookeeper"
        with (
            open_server(settings.connectable, data_dir, self._server) as (hosts, log_dir, home),
            Harness(
                hosts,
                log_dir,
                adapter,
                home=home,
                chroot_prefix=make_prefix("/example", settings, self._server),
                alive=note_alive,
                note=self._note_story,
                strict=settings.strict,
                known=[each.name for each in settings.known],
            ) as h,
        ):
            result = Result(
                settings,
                h.description.as_dict(),
                h.description.profile,
                h.readings.as_dict(),
                h.abilities,
                directory=self._directory,
            )
            try:
                self._tell_saved(h, result)
                self._tell_shipped(h, result)
                self._generate(h, result, start)
            except _Stop:
                pass
            except (AdapterDied, ServerGone) as error:
                self._bury(h, result, error)
            self._sum_up(h, result, time.monotonic() - start)
        if h.died is not None and not result.died:
            self._bury(h, result, h.died)
        return result

    def _bury(self, h: Harness, result: Result, error: AdapterDied | ServerGone) -> None:
        """Note why the run cannot go on, and what had been done by then."""
        result.died = str(error)
        result.trace = getattr(error, "trace", "")
        if h.current is None:
            return
        story = replace(h.current.story, name="died")
        result.died_after = tuple(s.format_step(step) for step in story.steps)
        write_text(self._directory / DIED, format_story(story))

    def _note_story(self, story: Story) -> None:
        """Tell whoever supervises what is carried out, should nobody be left to say it."""
        note_story(
            str(self._directory),
            format_story(replace(story, name="died")),
            tuple(map(s.format_step, story.steps)),
        )

    def _tell_saved(self, h: Harness, result: Result) -> None:
        if not self._settings.failures:
            return
        saved = read_folder(Path(self._settings.failures))
        self._passed = tuple(story.name for story in saved if not self._tell(h, result, story))

    def _tell_shipped(self, h: Harness, result: Result) -> None:
        if not self._settings.with_stories:
            return
        profile = h.description.profile
        # Those that were written for the profile come first.
        told = (story for story in shipped_stories() if story.is_for(profile))
        stories = sorted(told, key=lambda story: profile not in story.profiles)
        undeclared: dict[str, int] = {}
        for number, story in enumerate(stories):
            self._progress("stories", number, len(stories))
            for step in story.steps:
                need = s.NEEDS.get(type(step))
                if need is not None and need not in h.description.abilities:
                    undeclared[need] = undeclared.get(need, 0) + 1
            self._tell(h, result, story)
        result.undeclared = undeclared

    def _tell(self, h: Harness, result: Result, story: Story) -> bool:
        """Tell one story; on a violation record it, shortened, and stop."""
        result.stories += 1
        example = h.tell(story)
        if not example.violations:
            return False
        told = story.with_steps(carried_out(example))
        self._fail(h, result, told, example, example.violations[0])
        raise _Stop

    def _generate(self, h: Harness, result: Result, start: float) -> None:
        from reassure_conformance.gate.generation import Budget, generate

        settings = self._settings
        if not (settings.examples or settings.until):
            return
        most = sys.maxsize if settings.until else settings.examples
        budget = Budget(
            examples=most,
            steps_per_example=settings.steps_per_example,
            steps_min=max(0, settings.steps_min - h.steps),
            shrink_s=settings.shrink_s,
            deadline=start + settings.seconds_max,
            is_done=lambda: settings.is_stopped() or self._is_covered(h, result),
        )
        begin = h.driver.made

        def tick() -> None:
            told = 0 if settings.until else settings.examples
            self._progress("examples", h.driver.made - begin, told)

        clauses = clauses_of_profile(h.description.profile)

        def get_wanted() -> frozenset[str]:
            return frozenset(c.id for c in clauses if not h.judge.exercised.get(c.id))

        possible = possible_with(h.description.capabilities, h.description.profile)

        def get_aims() -> tuple[Situation, ...]:
            """Return the situations that never came up, then those of clauses still wanted."""
            unreached = tuple(one for one in possible if not h.reached[one.name])
            wanted = get_wanted()
            return (
                unreached or tuple(one for one in possible if wanted & set(one.clauses)) or possible
            )

        failure = generate(
            h, settings.seed, budget, get_wanted=get_wanted, get_aims=get_aims, progress=tick
        )
        if failure is not None:
            self._fail(h, result, failure.story, failure.example, failure.violation)
            raise _Stop

    def _is_covered(self, h: Harness, result: Result) -> bool:
        """Whether coverage is looked for and there; tell what is missing where it is wanted."""
        if self._settings.until != COVERED:
            return False
        self._sum_up(h, result, 0.0)
        missing = result.missing()
        tell_missing(self._directory, missing)
        return not missing

    def _fail(
        self, h: Harness, result: Result, story: Story, example: Example, violation: Violation
    ) -> None:
        """Keep the failure, then make its story short and keep that."""
        clause = violation.clause
        story = replace(story, name="failure", violates=clause)
        failure = Failure(story, example, violation, repeats=False)
        self._keep(failure)
        self._progress("shrinking", 0, 0)
        shortest = minimise(story, clause, h.tell, until=time.monotonic() + MINIMISE_S)
        if shortest is not None:
            story, example = shortest
            violation = next(v for v in example.violations if v.clause == clause)
            failure = Failure(story, example, violation, repeats=True)
            self._keep(failure)
        result.failure = failure
        self._save(failure)

    def _save(self, failure: Failure) -> None:
        """Put the story beside the saved failures, unless it is one of them."""
        if not self._settings.failures:
            return
        folder = Path(self._settings.failures)
        if any(story.steps == failure.story.steps for story in read_folder(folder)):
            return
        name = f"{failure.violation.clause}-{self._settings.seed}{SUFFIX}"
        write_text(folder / name, format_story(failure.story))

    def _keep(self, failure: Failure) -> None:
        """Write what a person and `replay` need, replacing a longer telling of the same failure."""
        from reassure_conformance.gate.evidence import write_evidence

        folder = self._directory
        write_text(folder / f"failure{SUFFIX}", format_story(failure.story))
        self._write("failure.json", failure.as_dict())
        write_evidence(folder, failure.example.chroot, failure.example.transactions)

    def _sum_up(self, h: Harness, result: Result, seconds: float) -> None:
        violations = result.failure.example.violations if result.failure else []
        result.not_followed = tuple(h.not_followed)
        result.asides = tuple(
            Failure(example.story, example, violation, repeats=False)
            for violation, example in list(h.asides.values())[:ASIDES_KEPT]
            if example.transactions
        )
        seen = Counter(name for name, _ in h.excused)
        result.known = {each.name: seen[each.name] for each in self._settings.known}
        passed = [e.name for e in self._settings.known if e.kind == FAILING and not seen[e.name]]
        result.stale = (*self._passed, *(f"{name} (known to fail)" for name in passed))
        able = ALL_ABILITIES if self._settings.require_all else result.capabilities
        possible = possible_with(able, h.description.profile)
        result.reached = {one.name: h.reached[one.name] for one in possible}
        unreached = find_unreached(possible, result.reached)
        result.clauses = summarise(
            h.description.profile,
            {clause: n for clause, n in h.judge.exercised.items() if clause not in unreached},
            count_broken((*violations, *(found for _, found in h.excused), *h.not_followed)),
            undecided=h.judge.undecided,
            settled=True,
            strict=self._settings.strict,
        )
        result.clause_seconds = h.laps.as_dict(result.clauses)
        result.examples = h.driver.made
        result.steps = h.steps
        result.refused = h.results["refused"]
        result.skipped = h.results["skipped"]
        result.unsettled = len(h.unsettled)
        for number, story in enumerate(h.unsettled[:UNSETTLED_KEPT], start=1):
            path = self._directory / f"unsettled-{number}{SUFFIX}"
            write_text(path, format_story(story))
        result.transactions = h.judge.transactions
        result.seconds = seconds
        clock = {name: float(value) for name, value in sorted(h.driver.clock.items())}
        clock["generation"] = max(0.0, seconds - sum(clock.values()))
        result.clock = clock

    def _write(self, name: str, value: Mapping[str, Any]) -> None:
        text = json.dumps(value, indent=2) + "\n"
        write_text(self._directory / name, text)


@contextmanager
def _logging_to(path: Path) -> Iterator[None]:
    """Send the warnings of this process to a file; there are hundreds, and many are wanted."""
    handler = logging.FileHandler(path, encoding="utf-8", delay=True)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()


def make_prefix(begin: str, settings: Settings, server: Server | None) -> str:
    """Return what the chroots of a run begin with: no other run on a server that is shared has it.

    Those who share one differ in faults or seeds.
    """
    return begin if server is None else "-".join((begin, *settings.faults, str(settings.seed)))


def run(
    settings: Settings,
    directory: Path,
    progress: Progress = lambda *_: None,
    *,
    server: Server | None = None,
) -> Outcome:
    """Carry out one run and write its directory; see the module's text for what stands there.

    Under the profile of replication brokers with logs are driven, else controllers. Without a
    `server` the run has one of its own, whose files are in its directory.
    """
    note_limit(settings.hang_s)
    try:
        with _logging_to(directory / "implementation.log"):
            if settings.profile == REPLICATION:
                from reassure_conformance.gate.replication.campaign import Campaign

                outcome: Outcome = Campaign(settings, directory, progress, server).run()
            else:
                outcome = Runner(settings, directory, progress, server).run()
    finally:
        note_limit(None)
    if settings.stop_at and (outcome.failure is not None or outcome.died):
        Path(settings.stop_at).touch()
    return outcome
