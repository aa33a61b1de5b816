"""Counterexamples to left-out hypotheses as states that a controller can be put in.

The prover has replayed each counterexample on the function that it is about. Here it is replayed on
a whole controller: the model's (`run_model`), and by `reassure_conformance.answers.proving` the
real one on a ZooKeeper in which the state was written beforehand. Where no controller comes to do
what the function was asked, `find_planting` says why.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from reassure_model.kip_236.obligations import compute_plan
from reassure_model.kip_236.rules import apply_failover
from reassure_model.kip_236.state import (
    Environment,
    LeaderAndIsr,
    Partition,
    Reassignment,
    Request,
)
from reassure_proofs.counterexamples import restore_arguments
from reassure_proofs.statement import Theorem
from reassure_spec.readings import get_profile
from reassure_spec.znodes import ReplicaList


@dataclass(frozen=True, slots=True)
class Planting:
    """A partition as it is written into ZooKeeper before a controller takes office."""

    profile: str
    brokers: ReplicaList
    """Those that are alive."""
    minimum: int
    assigned: ReplicaList
    leader: int
    isr: ReplicaList
    target: ReplicaList
    """Of the reassignment in flight."""
    top: int
    requested: ReplicaList = ()
    """What a client asks for once the controller rests, () for nothing."""


@dataclass(frozen=True, slots=True)
class End:
    """A partition once the controller rests."""

    assigned: ReplicaList
    leader: int
    isr: ReplicaList
    target: ReplicaList | None
    """What is still in flight."""

    def __str__(self) -> str:
        """Return it in one line."""
        lists = f"assigned={list(self.assigned)} leader={self.leader} isr={list(self.isr)}"
        return lists if self.target is None else f"{lists} target={list(self.target)}"


class NotShown(Exception):
    """Why a counterexample cannot be shown on a controller."""


def run_model(planting: Planting) -> End:
    """Return where the model's controller comes to rest. Raises NotShown where it does not."""
    readings = get_profile(planting.profile)
    live = frozenset(planting.brokers)
    around = Environment(live, live, planting.minimum, 1)
    partition = Partition(
        planting.assigned,
        LeaderAndIsr(planting.leader, 0, 0, planting.isr),
        Reassignment(planting.target, planting.top),
    )
    try:
        after = compute_plan(apply_failover(partition, readings), around, readings)[1]
        if planting.requested:
            asked = replace(after, requests=(Request(0, planting.requested),))
            after = compute_plan(asked, around, readings)[1]
    except RuntimeError:
        raise NotShown("the model's own controller halts there: its write is refused") from None
    assert after.state is not None
    flight = after.reassignment
    target = None if flight is None else flight.target
    return End(after.assigned or (), after.state.leader, after.state.isr, target)


def dropped(planting: Planting, end: End) -> ReplicaList:
    """Return the replicas that were assigned and are no more, in their order."""
    return tuple(replica for replica in planting.assigned if replica not in end.assigned)


def find_planting(theorem: Theorem, arguments: Mapping[str, Any]) -> Planting:
    """Return the state in which a controller shows a counterexample, as the model's one does.

    Raises NotShown where there is none, with the reason.
    """
    values = restore_arguments(theorem, arguments)
    subject = theorem.subject.name
    if subject in _DROPS:
        return _find_drop(theorem, values)
    if subject == "caught-up":
        return _find_in_flight(theorem, values)
    raise NotShown(_REASONS.get(subject, "it is about a leader's followers, not a controller"))


_DROPS: Final = ("drop", "drop-amended", "drop-any-order")


def can_be_shown(theorem: Theorem) -> bool:
    """Whether it is of a kind that a controller can show the counterexamples to."""
    return theorem.expected == "proved" and theorem.subject.name in (*_DROPS, "caught-up")


_REASONS: Final = {
    "counts": "it is about numbers; the code behind them is asked by other theorems",
    "deletion-step": "this controller deletes no topics",
    "heal-choice": "the healing service is not part of this controller",
    "heal-failover": "the healing service is not part of this controller",
    "heal-generated": "the healing service is not part of this controller",
    "office": "it is about who is controller, not about what one makes of a partition",
    "step": "it is a write that the rules judge; no controller makes it of its own accord",
    "initial": "it is about a partition before any controller has looked at it",
    "owed": "the model's own controller halts there: its write is refused",
    "plan": "the state names a controller epoch that is still to come, or makes the model halt",
    "resumed": "what is in memory there, a controller that takes office works out anew",
}


def _find_drop(theorem: Theorem, values: Mapping[str, Any]) -> Planting:
    """Find a way by which the controller comes to evaluate the drop rule on these arguments."""
    wanted = theorem.subject.function(values)
    _check_drop(values)
    seen = ""
    for planting in _drop_plantings(theorem, values):
        try:
            end = run_model(planting)
        except NotShown as reason:
            seen = str(reason)
            continue
        if dropped(planting, end) == wanted and not theorem.claim(values, dropped(planting, end)):
            return planting
        seen = seen or "no change that a controller sees has the rule evaluated there"
    raise NotShown(seen)


def _check_drop(values: Mapping[str, Any]) -> None:
    assigned, isr, leader = values["assigned"], values["isr"], values["leader"]
    if min((*assigned, *isr), default=0) < 0:
        raise NotShown("a broker's number is not negative")
    if leader not in isr:
        raise NotShown("a controller evaluates the rule only while a leader is in sync")
    if len(set(assigned)) < len(assigned):
        raise NotShown("an assignment that names a replica twice is refused before it is written")
    out_of_sync = tuple(replica for replica in assigned if replica not in isr)
    if values.get("others", out_of_sync) != out_of_sync:
        raise NotShown("a controller ranks in the order in which replicas are stored")


def _drop_plantings(theorem: Theorem, values: Mapping[str, Any]) -> Iterator[Planting]:
    """Yield the ways to a drop: one that a new controller finds undone, and a change."""
    assigned, isr = values["assigned"], values["isr"]
    named = sorted({*assigned, *isr, values["leader"], *values.get("target", ())})
    fresh = max(named) + 1
    target: ReplicaList = tuple(values["target"]) if "target" in values else (fresh,)
    found = Planting(
        theorem.profile,
        (*named, fresh),
        values["minimum"],
        assigned,
        values["leader"],
        isr,
        target,
        values["top"],
    )
    yield found
    # The reassignment in flight has its target assigned already, and waits for it.
    yield replace(found, target=assigned, requested=target)


def _find_in_flight(theorem: Theorem, values: Mapping[str, Any]) -> Planting:
    if values.get("drop_due") or values.get("completing") or values.get("announce_due"):
        raise NotShown("what is in memory there, a controller that takes office works out anew")
    if not values["live"] and theorem.name != "reassignment-completes":
        raise NotShown("no broker is alive")
    planting = Planting(
        theorem.profile,
        tuple(sorted(values["live"])),
        values["minimum"],
        values["assigned"],
        values["leader"],
        values["isr"],
        values["target"],
        values["top"],
    )
    run_model(planting)
    return planting


def violates(theorem: Theorem, arguments: Mapping[str, Any], planting: Planting, end: End) -> bool:
    """Return whether what a controller came to breaks the claim of the theorem."""
    values = restore_arguments(theorem, arguments)
    if theorem.subject.name == "caught-up":
        return end.target is not None or end.assigned != planting.target
    return not theorem.claim(values, dropped(planting, end))


@dataclass(frozen=True, slots=True)
class Replay:
    """What became of one counterexample on the controllers."""

    theorem: str
    hypothesis: str
    sentence: str
    """The counterexample."""
    planting: Planting | None
    """None where no controller can show it."""
    expected: End | None
    """Where the model's controller came to rest."""
    reason: str
    """Why no controller can show it."""


def prepare(theorem: Theorem, hypothesis: str, counterexample: Mapping[str, Any]) -> Replay:
    """Return a counterexample with the state that shows it, and replay it on the model.

    Raises AssertionError where the model's function does not break the claim after all.
    """
    arguments = counterexample["arguments"]
    values = restore_arguments(theorem, arguments)
    assert _breaks(theorem, values), f"{theorem.name}: {counterexample['sentence']}"
    sentence = counterexample["sentence"]
    try:
        planting = find_planting(theorem, arguments)
    except NotShown as reason:
        return Replay(theorem.name, hypothesis, sentence, None, None, str(reason))
    return Replay(theorem.name, hypothesis, sentence, planting, run_model(planting), "")


def _breaks(theorem: Theorem, values: Mapping[str, Any]) -> bool:
    try:
        return not theorem.claim(values, theorem.subject.function(values))
    except Exception:
        # Code that raises keeps no promise.
        return True
