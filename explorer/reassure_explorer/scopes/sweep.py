"""Findings about steps, each with the shortest story that shows it in a standard scope.

`INSTANCES` says for each finding (`reassure_spec.findings`) in which scope, profile and readings
it comes out, which invariant it breaks there and in how many steps; `derive` finds the story anew.

`sweep` goes the other way: it settles every reading of a scope otherwise, one at a time, and says
what is broken then and is not broken otherwise.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from reassure_explorer.engine.derived import explore_derived
from reassure_explorer.engine.interface import Model
from reassure_explorer.engine.liveness import check_liveness
from reassure_explorer.engine.result import Story
from reassure_explorer.scopes.catalogue import get_model, get_scope
from reassure_spec.readings import READINGS, get_profile
from reassure_spec.rooms import explorer_of, get_room

LIVENESS: Final = "liveness"
"""Stands for an invariant where the story is a lasso; its steps are those of stem and cycle."""


@dataclass(frozen=True, slots=True)
class Instance:
    """Where a finding comes out as a shortest story."""

    finding: str
    scope: str
    invariant: str
    """The clause that is broken, or `LIVENESS`."""
    steps: int
    readings: Mapping[str, str] = field(default_factory=dict)
    """Readings that differ from those of the profile."""
    profile: str = ""
    """The scope's own where it is not given."""

    @property
    def chosen_profile(self) -> str:
        """The profile that is looked at."""
        return self.profile or get_scope(self.scope).profile


_CLEAN: Final = {"election.unclean": "no"}
_CUT: Final = {"move.cut-isr": "yes"}
_AMENDED: Final = "kip-236-amended"

INSTANCES: Final = (
    Instance("drop-1", "min-two", "model.owed-is-allowed", 8, {"drop.slice": "exclusive"}),
    Instance("drop-2", "promises", "drop.slice.inclusive", 11, {"drop.slice": "exclusive"}),
    Instance(
        "drop-3", "promises-four", "drop.before-expansion", 3, {"drop.evaluated": "after-expansion"}
    ),
    Instance("drop-4", "promises-four", "drop.protect-target", 8),
    Instance("drop-5", "restless", LIVENESS, 9, {"drop.reevaluated-on-failover": "yes"}),
    Instance("drop-5", "restless-requests", LIVENESS, 9, {"request.same-target": "restart"}),
    Instance("drop-6", "promises", "drop.keep-top", 9),
    Instance("drop-7", "promises", "drop.leader-kept", 12),
    Instance("drop-7", "promises", "drop.leader-kept", 11, profile=_AMENDED),
    Instance("drop-8", "promises-growth", "top.original-length", 8),
    Instance("drop-10", "promises-calm", "target.at-least-min-isr", 2),
    Instance(
        "drop-12", "promises-chain", "top.once-per-chain", 10, {"top.recorded": "each-change"}
    ),
    Instance("drop-16", "promises", "drop.carried-out", 8),
    Instance("drop-16", "promises", "drop.carried-out", 8, profile=_AMENDED),
    Instance("drop-18", "promises-one", "drop.rank.leader-isr-rest", 12, profile=_AMENDED),
    Instance(
        "protocol-1", "promises", "child.before-effects", 5, {"request.persist": "effects-first"}
    ),
    Instance("protocol-7", "restless-requests", LIVENESS, 9, {"request.same-target": "restart"}),
    Instance("move-1", "moves", "move.isr.without-deleted", 7),
    Instance("move-2", "moves", "move.leader.holds-committed", 9, _CLEAN),
    Instance("move-3", "moves", "move.leader.not-stopped", 10, {**_CLEAN, **_CUT}),
    Instance("move-4", "moves-growth", "move.leader.holds-committed", 9, _CUT),
    Instance("move-5", "moves", "move.isr.within-assigned", 4),
    Instance("move-6", "moves-failover", "move.assigned.holds-committed", 14),
    Instance("move-7", "moves-failover", "move.cancel.no-strays", 6),
    Instance(
        "move-8",
        "moves-growth",
        "move.assigned.holds-committed",
        9,
        {"target.dead-replica": "wait"},
    ),
    Instance("move-10", "moves", "move.step.stop-old", 9, _CUT),
    Instance("move-14", "moves", "move.start.expand-first", 3),
    Instance("move-19", "moves-growth", LIVENESS, 10, profile=_AMENDED),
    Instance("watermark-12", "logs", "hw.consumer.monotone", 4),
    Instance(
        "watermark-13",
        "logs-again",
        "isr.stored.holds-committed",
        7,
        {"follower.truncation": "leader-end"},
        _AMENDED,
    ),
    Instance("election-1", "logs", "log.committed-kept", 4),
    Instance(
        "election-2", "logs", "hw.consumer.monotone", 5, {"hw.served-from": "at-once"}, _AMENDED
    ),
    Instance(
        "election-3",
        "logs-three",
        "isr.stored.holds-committed",
        10,
        {"isr.entry": "high-watermark"},
        _AMENDED,
    ),
    Instance(
        "election-4",
        "logs-three",
        "isr.stored.holds-committed",
        8,
        {"follower.truncation": "own-high-watermark"},
        _AMENDED,
    ),
    Instance(
        "election-5",
        "logs",
        "isr.stored.holds-committed",
        6,
        {"follower.truncation": "own-high-watermark"},
        _AMENDED,
    ),
    Instance("legacy-1", "old-znode-promises", "legacy.entry.refused-removed", 8),
    Instance("legacy-2", "old-znode-promises", "legacy.conflict.both-ways", 7),
    Instance("legacy-3", "old-znode-promises", "legacy.rewrite.taken-up", 7),
    Instance("heal-1", "healing-promises", "heal.task.no-live-replica-removed", 9),
    Instance("heal-2", "healing-promises", "heal.cancel.never-running", 12),
    Instance("heal-3", "healing-promises", "heal.target.live", 5),
    Instance("heal-5", "healing-promises", "heal.cancel.enough-replicas", 6),
    Instance("heal-6", "healing-promises", "heal.failover.generated-again", 8),
    Instance("zk-1", "shipped-medium", "shipped.isr.without-deleted", 11),
    Instance("zk-2", "shipped-medium", "shipped.isr.within-assigned", 9),
    Instance("zk-3", "shipped-medium", "shipped.cancel.no-strays", 8),
    Instance("zk-4", "shipped", "shipped.entry.not-for-ever", 10),
    Instance("zk-5", "shipped", "shipped.assigned.holds-committed", 8),
    Instance("zk-9", "shipped-change", "shipped.isr.without-deleted", 12),
    Instance("zk-6", "shipped-medium", "shipped.change.led", 13),
    Instance("zk-10", "shipped-medium", "shipped.leader.holds-committed", 20),
)
"""Every finding that a story of the scopes shows, with the length of the shortest."""


def narrow(model: Model, invariant: str) -> Model:
    """Return the model with one invariant and no goal, so that the search ends with its story."""
    wanted = tuple(check for check in model.invariants if check.name == invariant)
    if not wanted:
        raise KeyError(f"model {model.name} has no invariant {invariant!r}")
    return replace(model, invariants=wanted, goals=())


def derive(instance: Instance) -> Story | None:
    """Return the shortest story of an instance, stem and cycle of a lasso in one; None if none."""
    _, model = get_model(instance.scope, instance.chosen_profile, instance.readings)
    if instance.invariant == LIVENESS:
        lasso = check_liveness(model).lasso
        if lasso is None:
            return None
        return Story(lasso.stem.initial, (*lasso.stem.steps, *lasso.cycle))
    found = explore_derived(narrow(model, instance.invariant)).violations
    return found[0].story if found else None


@dataclass(frozen=True, slots=True)
class Difference:
    """What settling one reading otherwise breaks, or mends, in a scope."""

    scope: str
    reading: str
    value: str
    broken: Mapping[str, int]
    """Invariants that hold otherwise, with the steps of the shortest story."""
    mended: tuple[str, ...]
    """Invariants that are broken otherwise."""


def sweep(
    scope: str, profile: str = "", names: Sequence[str] | None = None
) -> Iterator[Difference]:
    """Settle each reading otherwise, one after the other, and yield what differs in a scope.

    `names` are the readings that are looked at, without it all. A value that changes nothing is
    left out, and so is one that is not carried out here. Raises UnknownScope, UnknownReading.
    """
    own = get_scope(scope).profile
    chosen, room = profile or own, get_room(explorer_of(own))
    usual = get_profile(chosen).as_dict()
    base = _find_broken(scope, chosen, {})
    for reading in READINGS:
        if names is not None and reading.name not in names:
            continue
        for value in reading.values:
            if value == usual[reading.name] or room.find_refusal(reading.name, value):
                continue
            found = _find_broken(scope, chosen, {reading.name: value})
            broken = {name: steps for name, steps in found.items() if name not in base}
            mended = tuple(name for name in base if name not in found)
            if broken or mended:
                yield Difference(scope, reading.name, value, broken, mended)


def _find_broken(scope: str, profile: str, readings: Mapping[str, str]) -> dict[str, int]:
    _, model = get_model(scope, profile, readings)
    result = explore_derived(model, keep_going=True)
    return {violation.invariant: len(violation.story.steps) for violation in result.violations}
