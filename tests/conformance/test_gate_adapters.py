"""Adapters: what they must be, and what becomes of a run whose adapter does not behave."""

# ruff: noqa: D102 - the methods of an adapter are described where the interface is

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from reassure_conformance.adapter import (
    MESSAGES,
    Adapter,
    AdapterDied,
    BadConnectable,
    Description,
    Reply,
    check_description,
    open_adapter,
)
from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.adapter.driver import SETTLE_TIMEOUT_S
from reassure_conformance.answers.case_run import find_story
from reassure_conformance.gate import steps as s
from reassure_conformance.gate.controllers import ControllersResult
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.run_settings import Settings
from reassure_conformance.gate.running import run
from reassure_conformance.gate.story import parse_story


class Idle:
    """An implementation that does nothing at all, in a module of its own for connectables."""

    def __init__(self, *, profile: str, readings: Mapping[str, str], dies_in: str = "") -> None:
        self._profile = profile
        self._readings = readings
        self._dies_in = dies_in

    def __getattr__(self, name: str) -> Callable[..., object]:
        if name not in vars(Adapter):
            raise AttributeError(name)
        return lambda *_, **__: self._do(name, False if name == "settle" else Reply.OK)

    def _do(self, verb: str, answer: object) -> object:
        if verb == self._dies_in:
            raise RuntimeError("out of order")
        return answer

    def describe(self) -> Description:
        about = Description("idle", "1", "Python", self._profile, self._readings)
        self._do("describe", about)
        return about


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of an importable module that holds the adapters of this file."""
    made = ModuleType("adapters_for_tests")
    vars(made).update(Idle=Idle, Nothing=int)
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made.__name__


def _open(connectable: str) -> Adapter:
    return open_adapter(connectable, profile="kip-236", readings={})


def test_query_becomes_arguments(module: str) -> None:
    """What stands in a connectable after the question mark is given to the class."""
    adapter = _open(f"direct:{module}:Idle?dies_in=describe")
    with pytest.raises(RuntimeError):
        adapter.describe()


@pytest.mark.parametrize(
    ("connectable", "complaint"),
    [
        ("kafka", "is not an implementation"),
        ("direct:module-only", "is not an implementation"),
        ("direct:no.such.module:Thing", "cannot be loaded"),
        ("direct:{module}:Absent", "cannot be loaded"),
        ("direct:{module}:Idle?colour=red", "does not accept its settings"),
        ("direct:{module}:Nothing", "does not accept its settings"),
    ],
)
def test_bad_connectable_is_refused(module: str, connectable: str, complaint: str) -> None:
    """A connectable that names no adapter is refused with the reason."""
    with pytest.raises(BadConnectable, match=complaint):
        _open(connectable.format(module=module))


@pytest.mark.parametrize("verb", ["describe", "start", "settle", "stop"])
def test_adapter_that_dies_is_no_violation(module: str, verb: str, tmp_path: Path) -> None:
    """An adapter that raises ends the run as its own class of result, whatever the verb."""
    settings = Settings(1, connectable=f"direct:{module}:Idle?dies_in={verb}", examples=2)
    if verb == "describe":
        with pytest.raises(AdapterDied, match="out of order"):
            run(settings, tmp_path)
        return
    result = run(settings, tmp_path)
    assert f"died in {verb}" in result.died
    assert (result.verdict(), result.failure) == ("unknown", None)


def test_undeclared_capabilities_are_counted(module: str, tmp_path: Path) -> None:
    """Steps that an implementation does not declare are skipped, counted and reported."""
    settings = Settings(1, connectable=f"direct:{module}:Idle", examples=0)
    monkey = run(settings, tmp_path)
    assert monkey.undeclared["kill"] > 5
    assert monkey.undeclared["isr"] > 20
    assert monkey.skipped >= sum(monkey.undeclared.values())


def test_implementation_that_never_rests_is_unknown(module: str, tmp_path: Path) -> None:
    """A cluster that does not come to rest proves nothing: the verdict is unknown."""
    settings = Settings(1, connectable=f"direct:{module}:Idle", examples=9, with_stories=False)
    result = run(settings, tmp_path)
    assert result.unsettled > 0
    assert result.verdict() == "unknown"
    assert (tmp_path / "unsettled-1.txt").exists()


# -- the bundled adapter


def _perform(harness: Harness, *lines: str) -> list[tuple[str, ...]]:
    """Carry out the lines, and after each return what ZooKeeper held of orders-0."""
    example = harness.begin((1, 2, 3))
    seen = []
    for line in lines:
        done = harness.perform(example, s.parse_step(line))
        partition = example.now.view.partitions.get(("orders", 0))
        flight = partition.reassignment if partition else None
        seen.append((done.result, str(partition and partition.assigned), str(flight is not None)))
    harness.heal(example)
    harness.end(example)
    assert example.violations == []
    return seen


@pytest.mark.parametrize(
    ("before", "after", "flies"),
    [
        ("hold after 1", "resume", True),
        ("hold after 0", "resume", False),
        ("kill controller", "elect", False),
    ],
)
def test_controller_goes_on_where_it_stood(
    harness: Harness, before: str, after: str, flies: bool
) -> None:
    """Held after one effect it has written the record alone; after none, or dead, nothing."""
    seen = _perform(harness, "create orders with 1,2", before, "request orders-0 to 2,3", after)
    assert seen[2:] == [("ok", "(1, 2)", str(flies)), ("ok", "(1, 2, 3)", "True")]


def test_controller_without_a_connection_can_be_killed(harness: Harness) -> None:
    """A controller that dies while its connection is cut leaves no session behind."""
    lines = ("create orders with 1,2", "hold after 0", "request orders-0 to 2,3")
    before = len(harness.unsettled)
    seen = _perform(harness, *lines, "cut connection", "kill controller", "elect")
    assert seen[-1] == ("ok", "(1, 2, 3)", "True")
    assert len(harness.unsettled) == before


def test_zombie_writes_nothing(harness: Harness) -> None:
    """A controller that slept through the end of its term is fenced when it wakes up."""
    example = harness.begin((1, 2, 3))
    for line in (
        "create orders with 1,2",
        "hold after 1",
        "request orders-0 to 2,3",
        "depose controller",
        "elect",
        "resume",
    ):
        assert harness.perform(example, s.parse_step(line)).result == "ok"
    refused = [t for t in example.transactions if t.error is not None and t.attempted]
    harness.end(example)
    assert refused, "the zombie's write was expected in the log, refused"
    assert example.violations == []


def test_steps_that_are_not_possible_are_skipped_with_a_reason(harness: Harness) -> None:
    """A step that makes no sense now is skipped, and the reason is kept."""
    example = harness.begin((1, 2))
    reasons = [
        harness.perform(example, s.parse_step(line)).why
        for line in ("elect", "resume", "cancel orders-0", "3 joins orders-0", "broker 9 dies")
    ]
    harness.end(example)
    assert "" not in reasons
    assert example.effective_steps() == 0


MOVE = ("create orders with 1,2", "request orders-0 to 1,3")
UNTOLD = (
    "create orders with 1,2,3",
    "hold after 1",
    "broker 1 dies",
    "kill controller",
    "elect",
)


class Mute(Bundled):
    """The bundled controller, whose brokers keep nothing of what they receive."""

    def describe(self) -> Description:
        said = super().describe()
        return replace(said, capabilities=said.capabilities - {MESSAGES})


@pytest.mark.parametrize(
    ("fault", "lines", "clause"),
    [
        ("start-not-sent", MOVE, "message.leader-able"),
        ("start-with-old-assignment", MOVE, "message.leader-able"),
        ("failover-tells-nobody", UNTOLD, "message.leader-able"),
        ("stranger-taken-in", MOVE, "isr.change.assigned-only"),
    ],
)
def test_brokers_are_asked_what_they_can_do(
    fault: str, lines: tuple[str, ...], clause: str, make_harness: Callable[[Adapter], Harness]
) -> None:
    """Requests that were not sent show in what leaders are asked to do at the end."""
    harness = make_harness(Mute(faults=(fault,)))
    example = harness.tell(parse_story("\n".join(("world cluster", *lines)), "asked.txt"))
    assert [violation.clause for violation in example.violations] == [clause]


@pytest.mark.parametrize("capability", ["lose", "messages"])
def test_declared_capability_needs_its_method(capability: str) -> None:
    """An adapter that declares what it has no method for is refused, with the method's name."""
    idle = Idle(profile="kip-236", readings={})
    said = Description("idle", "1", "?", "kip-236", {}, frozenset({capability}))
    with pytest.raises(BadConnectable, match=r"lose_write|take_messages"):
        check_description(idle, said)


def test_declared_time_to_settle_is_given(make_harness: Callable[..., Harness]) -> None:
    """An implementation that says how long it needs to settle is given that, others the default."""
    given: list[float] = []

    class Timed(Idle):
        def __init__(self, settle_ms: int) -> None:
            super().__init__(profile="kip-236", readings={})
            self._settle_ms = settle_ms

        def describe(self) -> Description:
            return replace(super().describe(), settle_ms=self._settle_ms)

        def settle(self, timeout_s: float) -> bool:
            given.append(timeout_s)
            return True

    for settle_ms in (25_000, 0):
        make_harness(Timed(settle_ms)).begin((1,))
    assert given == [25.0, SETTLE_TIMEOUT_S]
    with pytest.raises(BadConnectable, match="settle_ms -1; expected milliseconds"):
        make_harness(Timed(-1))


LIVING = """
from dataclasses import replace
from reassure_conformance.adapter import ADMIN, OF_EXAMPLES, RUN, Reply
from reassure_conformance.adapter.bundled import Bundled
from reassure_spec.znodes import RequestZnode, encode_request
from kazoo.client import KazooClient


class Living(Bundled):
    starts = stops = 0

    def describe(self):
        about = super().describe()
        return replace(about, lifetime=RUN, capabilities=about.capabilities - OF_EXAMPLES)

    def start(self, hosts, chroot, brokers):
        Living.starts += 1
        super().start(hosts, chroot, brokers)

    def stop(self):
        Living.stops += 1
        super().stop()


class Asked(Bundled):
    def describe(self):
        return replace(super().describe(), routes=frozenset({ADMIN}))

    def start(self, hosts, chroot, brokers):
        self.client = KazooClient(hosts + chroot)
        self.client.start()
        super().start(hosts, chroot, brokers)

    def reassign(self, topic, partition, target):
        content = encode_request(RequestZnode({(topic, partition): target}))
        self.client.create("/admin/reassignment_requests/request_", content, sequence=True)
        return Reply.OK

    def stop(self):
        self.client.stop()
        self.client.close()
        super().stop()


class Early(Bundled):
    def describe(self):
        return replace(super().describe(), lifetime=RUN)


class Mute(Bundled):
    def describe(self):
        return replace(super().describe(), routes=frozenset({ADMIN}))
"""


@pytest.fixture
def living(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module of adapters that declare a lifetime or routes."""
    (tmp_path / "living.py").write_text(LIVING, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("living")
    sys.modules.pop("living")


def test_cluster_lives_for_the_run_where_that_is_declared(
    living: Any, make_harness: Callable[[Adapter], Harness]
) -> None:
    """It is started once; each story has fresh topics in it and is judged like any other."""
    harness = make_harness(living.Living(profile="kip-236", readings={}))
    told = ("a-move", "failover-with-two-moves", "earlier-controller-again", "leader-dies")
    for name in told:
        example = harness.tell(find_story(name, "kip-236"))
        assert example.violations == []
        assert {done.result for done in example.done} == {"ok"}
    assert (living.Living.starts, living.Living.stops) == (1, 0)
    assert harness.reached["moves-at-failover"]
    assert harness.reached["earlier-controller"]


def test_fault_is_found_in_a_cluster_that_lives_on(living: Any, tmp_path: Path) -> None:
    """A planted fault is found, and its story told again in fresh topics breaks it again."""
    fault = ("delete-request-before-child",)
    settings = Settings(1, connectable="direct:living:Living", faults=fault, examples=0)
    result = run(settings, tmp_path)
    assert isinstance(result, ControllersResult)
    assert result.failure is not None
    assert result.failure.violation.clause == "request.delete.child-first"
    assert result.failure.repeats


def test_requests_go_by_the_route_that_is_declared(living: Any, tmp_path: Path) -> None:
    """Who takes requests by a call of its own is asked by it, and not for what only znodes show."""
    settings = Settings(1, connectable="direct:living:Asked", examples=0)
    result = run(settings, tmp_path)
    assert isinstance(result, ControllersResult)
    assert (result.died, result.failure) == ("", None)
    assert next(c for c in result.clauses if c.id == "complete.carried-out").exercised
    assert sorted(result.lacking()["requests"]) == [
        "request.foreign-removed",
        "request.refuse.malformed",
        "request.refuse.too-large",
    ]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [("Early", "a lifetime of one example"), ("Mute", "declares admin and lacks the method")],
)
def test_declarations_that_do_not_fit_are_refused(living: Any, name: str, complaint: str) -> None:
    """What cannot be judged or asked as declared is refused at the handshake, with what to do."""
    adapter = getattr(living, name)(profile="kip-236", readings={})
    with pytest.raises(BadConnectable, match=complaint):
        check_description(adapter, adapter.describe())
    adapter.close()
