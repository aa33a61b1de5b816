"""Is an implementation ready to be put to the test: a handshake and three stories.

It ends at the first thing amiss, and says of it in one line what was seen, what was expected, and
what to do. What an adapter does wrong is of its own class, as everywhere: no violation. The stories
are those of `PREFERRED` that need nothing which is not declared, then those of the profile.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from reassure_conformance.adapter import AdapterDied, BadConnectable
from reassure_conformance.adapter.driver import ServerGone
from reassure_conformance.answers.case_run import CaseRun, list_possible, open_bench
from reassure_conformance.gate import steps as s
from reassure_conformance.gate.example import Example
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.run_settings import Settings
from reassure_conformance.gate.story import Story, shipped_stories
from reassure_conformance.report import display
from reassure_conformance.report.document import HOLDS, UNKNOWN, VACUOUS, VIOLATED, Document
from reassure_spec.profiles import reads
from reassure_spec.znodes import CONTROLLER, REASSIGNMENT_REQUESTS, broker_path
from reassure_zookeeper.transactions import Create, Delete, SetData, Transaction

STORIES: Final = 3
PREFERRED: Final = ("a-move", "leader-dies", "failover-keeps-top", "failover-after-child", "cancel")
"""A move, the death of a broker, a failover: the first that are tried."""
SETTLE_S: Final = 3.0
"""How long a cluster of three brokers and one partition may take to come to rest."""
_BROKERS: Final = (1, 2, 3)
_PATIENCE: Final = (
    "answer settle with true as soon as a controller is active and has handled everything that was "
    "written before the call (docs/protocol.md, Rest)"
)


class Amiss(Exception):
    """The first thing that is amiss; nothing more is tried."""

    def __init__(
        self, verdict: str, seen: str, expected: str, advice: str, exit_code: int | None = None
    ) -> None:
        super().__init__(f"{seen}; expected {expected}; {advice}")
        self.verdict = verdict
        self.exit_code = exit_code
        """None: the one that goes with the verdict."""


@dataclass(slots=True)
class Smoke:
    """How far it went."""

    stages: list[dict[str, Any]] = field(default_factory=list)
    """Name, what came of it, and seconds of each stage that went well."""
    about: Mapping[str, Any] = field(default_factory=dict)
    profile: str = ""
    readings: Mapping[str, str] = field(default_factory=dict)
    steps: int = 0
    exercised: set[str] = field(default_factory=set)
    lacking: str = ""
    """What is to be declared for more stories to be told, "" where there are enough."""
    amiss: str = ""
    verdict: str = HOLDS
    exit_code: int | None = None
    trace: str = ""
    _since: float = field(default_factory=time.monotonic)

    def pass_stage(self, name: str, said: str) -> None:
        """Note that a stage went well."""
        now = time.monotonic()
        self.stages.append({"stage": name, "said": said, "seconds": round(now - self._since, 3)})
        self._since = now


def smoke_document(settings: Settings, directory: Path) -> Document:
    """Shake hands with an implementation and tell it three stories, until something is amiss."""
    start = time.monotonic()
    smoke = Smoke(profile=settings.profile, readings=settings.readings)
    try:
        with open_bench(settings, directory, settle_s=SETTLE_S) as harness:
            _shake_hands(smoke, harness)
            _start(smoke, harness)
            for story in choose_stories(harness):
                _tell(smoke, harness, story)
            smoke.lacking = find_lacking(harness)
        if not smoke.exercised:
            smoke.verdict, smoke.amiss = VACUOUS, f"no clause was exercised; {smoke.lacking}"
    except Amiss as amiss:
        smoke.verdict, smoke.exit_code, smoke.amiss = amiss.verdict, amiss.exit_code, str(amiss)
    except (AdapterDied, ServerGone, BadConnectable) as error:
        smoke.verdict, smoke.exit_code, smoke.amiss = UNKNOWN, error.exit_code, str(error)
        smoke.trace = getattr(error, "trace", "")
    return Document(
        "smoke",
        smoke.verdict,
        time.monotonic() - start,
        {
            "stages": len(smoke.stages),
            "steps": smoke.steps,
            "clauses_exercised": len(smoke.exercised),
        },
        profile=smoke.profile,
        readings=smoke.readings,
        exit_code=smoke.exit_code,
        body={
            "implementation": dict(smoke.about),
            "stages": smoke.stages,
            "exercised": sorted(smoke.exercised),
            "lacking": smoke.lacking,
            "amiss": smoke.amiss,
            "traceback": smoke.trace,
        },
    )


def _shake_hands(smoke: Smoke, harness: Harness) -> None:
    about = harness.description
    smoke.about, smoke.profile = about.as_dict(), about.profile
    smoke.readings = harness.readings.as_dict()
    able = ", ".join(sorted(about.capabilities)) or "no capabilities"
    said = f"{about.name} {about.version} ({about.language}), profile {about.profile}: {able}"
    if advice := about.advise():
        said += f"; {advice}"
    smoke.pass_stage("handshake", said)


def _start(smoke: Smoke, harness: Harness) -> None:
    """See that brokers and a controller come up, and come to rest."""
    example = harness.begin(_BROKERS, "start")
    try:
        _check_places(harness, example)
        view = harness.judge.view(example.chroot)
        absent = [broker_path(broker) for broker in _BROKERS if broker not in view.live]
        if not view.controller_epoch:
            absent.append(CONTROLLER)
        if absent:
            raise Amiss(
                UNKNOWN,
                f"start({harness.driver.hosts}, {example.chroot}, {_BROKERS}) was answered, "
                f"and there is no {', '.join(example.chroot + path for path in absent)}",
                "every broker registered and a controller elected before start is answered",
                "start them in that chroot, wait until they are ready, and then answer "
                "(docs/protocol.md, The election)",
                AdapterDied.exit_code,
            )
        if example.unsettled:
            raise _restless(harness, "start", example.story.name)
    finally:
        harness.end(example)
    smoke.pass_stage("start", f"{len(_BROKERS)} brokers and a controller, quiescent")


def choose_stories(harness: Harness) -> list[Story]:
    """Return the stories that are told: those that can be, the preferred ones first."""
    profile = harness.description.profile

    # The preferred ones make requests: where there are none, those of the profile come first.
    preferred = PREFERRED if reads(profile, REASSIGNMENT_REQUESTS) else ()

    def rank(story: Story) -> tuple[int, bool, int, str]:
        liked = preferred.index(story.name) if story.name in preferred else len(preferred)
        return (liked, profile not in story.profiles, len(story.steps), story.name)

    return sorted(list_possible(harness), key=rank)[:STORIES]


def find_lacking(harness: Harness) -> str:
    """Say what would have to be declared for as many stories as there should be, "" if nothing.

    That is the capability which alone makes most of them possible.
    """
    count = len(list_possible(harness))
    if count >= STORIES:
        return ""
    about = harness.description
    needs = [
        story.needs - about.capabilities
        for story in shipped_stories()
        if story.is_for(about.profile)
    ]
    alone = Counter(need for each in needs if len(each) == 1 for need in each)
    (best, more), *_ = alone.most_common(1) or [("more", len(needs))]
    told = "1 test case can" if count == 1 else f"{count} test cases can"
    return (
        f"{told} run with the declared capabilities; declare {best} for {more} more "
        "(docs/adapter.md, What an adapter does)"
    )


def _tell(smoke: Smoke, harness: Harness, story: Story) -> None:
    telling = CaseRun(harness, story)
    example = telling.tell()
    smoke.steps += example.effective_steps()
    smoke.exercised |= telling.exercised()
    _check_places(harness, example)
    last = telling.passages[-1]
    for violation in example.violations[:1]:
        place = f" ({violation.path})" if violation.path else ""
        raise Amiss(
            VIOLATED,
            f"{violation.clause} is violated in {story.name} after "
            f"`{last.step}`{place}: {violation.reason}",
            violation.expected,
            f"`reassure test --case {story.name} -i ...` shows each step, and "
            f"`reassure explain {violation.clause}` the clause",
        )
    for each in telling.passages:
        if each.result == "refused":
            need = s.NEEDS.get(type(s.parse_step(each.step)))
            by = f"declares {need} and " if need else ""
            raise Amiss(
                UNKNOWN,
                f"the adapter {by}refused `{each.step}` in {story.name}",
                "it to be done: every step of that test case is possible",
                f"carry it out, or do not declare {need}" if need else "accept it",
                AdapterDied.exit_code,
            )
        if not each.rested:
            raise _restless(harness, each.step, story.name)
    smoke.pass_stage(story.name, f"holds: {len(telling.exercised())} clauses covered")


def _restless(harness: Harness, step: str, story: str) -> Amiss:
    return Amiss(
        UNKNOWN,
        f"settle answered false after `{step}` in {story}, though no process is held",
        f"a quiescent cluster within the {harness.settle_s:g} s that settle was given",
        f"{_PATIENCE}; if it needs longer, declare settle_ms",
    )


def _check_places(harness: Harness, example: Example) -> None:
    """See that nothing was written but in the chroots that were given."""
    outside = find_outside(example.transactions, harness.driver.owns)
    if outside:
        raise Amiss(
            UNKNOWN,
            f"{outside} was written, which is outside the chroot {example.chroot}",
            f"every path below {example.chroot}, which start names",
            f"connect to HOSTS/CHROOT ({harness.driver.hosts}{example.chroot}), or put the "
            "chroot before every path",
            AdapterDied.exit_code,
        )


def find_outside(transactions: Iterable[Transaction], owns: Callable[[str], bool]) -> str:
    """Return the first path that was written and that `owns` denies, "" where there is none."""
    writes = (
        op.path
        for transaction in transactions
        for op in transaction.ops
        if isinstance(op, Create | SetData | Delete)
    )
    return next((path for path in writes if not owns(path)), "")


def render_smoke(report: Mapping[str, Any], width: int | None = None) -> str:
    """Return the result for people: the verdict, what is amiss, then a line for each stage."""
    name_width = max((len(stage["stage"]) for stage in report["stages"]), default=0)
    tested = report["counts"]["clauses_exercised"]
    said = f"{report['verdict'].upper()} in {report['seconds']:.1f} s"
    lines = [display.paint(f"{said}: {tested} clauses covered")]
    if report["amiss"]:
        lines += ["", *report["traceback"].splitlines()]
        lines += display.hang("PROBLEM ", report["amiss"], width, "  ")
    elif report["lacking"]:
        lines += display.hang("NOTE ", report["lacking"], width, "  ")
    lines += [""] if report["stages"] else []
    for stage in report["stages"]:
        start = f"{stage['stage']:<{name_width}}  {stage['seconds']:5.1f} s  "
        lines += display.hang(start, stage["said"], width)
    return "\n".join(lines)
