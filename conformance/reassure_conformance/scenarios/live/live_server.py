"""Runs live scenarios one after another on one ZooKeeper server."""

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType, ModuleType
from typing import Any, Final, Self

from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.adapter.driver import Driver
from reassure_conformance.adapter.replicating import ReplicatingCluster
from reassure_conformance.mutants import check_faults, planted
from reassure_conformance.scenarios.live.stage import LiveAdapter, MakeStage, NotLive, Stage
from reassure_conformance.scenarios.scenario import Scenario, compare, run_scenario
from reassure_conformance.scenarios.told_scenario import Outcome
from reassure_conformance.scenarios.worlds import World, list_worlds
from reassure_spec.protocols import import_parts
from reassure_spec.readings import Readings
from reassure_spec.words import Arguments
from reassure_zookeeper.server import Server

BROKERS: Final = tuple(range(6))
"""The brokers that may have logs."""
Make = Callable[[MakeStage, str, Readings, Arguments], World]


@cache
def find_live_worlds() -> Mapping[str, ModuleType]:
    """Return the modules that tell a world live, by the name of the world.

    A protocol's own world is told by `protocols/NAME/live.py`, any other by the `live_WORLD.py` of
    the protocol whose controller is asked. Each has `make_world`, which makes it of what makes a
    stage, the profile, the readings and the world's arguments; and `find_reason`, which says why a
    scenario of it is not told.
    """
    found = dict(import_parts("reassure_conformance", "live"))
    for world in list_worlds():
        for module in import_parts("reassure_conformance", f"live_{world}").values():
            found[world] = module
    return MappingProxyType(found)


def find_reason_to_skip(scenario: Scenario) -> str:
    """Return why a scenario cannot be told to what is bundled, "" where it can."""
    world = find_live_worlds().get(scenario.world)
    if world is None:
        return f"world {scenario.world}: it is told to the model alone"
    reason: str = world.find_reason(scenario)
    return reason


class LiveServer:
    """A ZooKeeper server on which scenarios are told, each in a chroot. A context manager.

    Clients, and the adapter of each set of readings, are kept from one scenario to the next. Calls
    come from one thread.
    """

    def __init__(
        self, server: Server, faults: tuple[str, ...] = (), *, chroot_prefix: str = "/live"
    ) -> None:
        """Use a server that somebody else ends. Raises ServerGone, UnknownFault; see `start`."""
        self._faults = check_faults(faults)
        self._adapters: dict[tuple[str, tuple[tuple[str, str], ...], str], LiveAdapter] = {}
        self._cluster: ReplicatingCluster | None = None
        self._owned: Server | None = None
        self._driver = Driver(server.hosts, server.log_dir, chroot_prefix)

    @classmethod
    def start(cls, faults: tuple[str, ...] = ()) -> Self:
        """Start an embedded server, which ends with this object.

        Raises ServerError, JavaError, UnknownFault.
        """
        server = Server.start()
        try:
            live = cls(server, faults)
        except BaseException:
            server.stop()
            raise
        live._owned = server
        return live

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the adapters, the client, and the server where it was started here."""
        with planted(self._faults):
            for adapter in self._adapters.values():
                with contextlib.suppress(Exception):  # an adapter that died has said so before
                    adapter.close()
            if self._cluster is not None:
                self._cluster.close()
        self._driver.close()
        if self._owned is not None:
            self._owned.stop()

    def find_cluster(self) -> ReplicatingCluster:
        """Return what makes brokers with logs, whose clients are kept as well."""
        if self._cluster is None:
            self._cluster = ReplicatingCluster(self._driver.hosts, BROKERS)
        return self._cluster

    def open_stage(
        self,
        profile: str,
        overrides: Mapping[str, str],
        readings: Readings,
        settings: Mapping[str, Any] = MappingProxyType({}),
    ) -> Stage:
        """Return a stage on which the bundled controller acts; `overrides` lead to `readings`.

        `settings` are what an operator sets, as the adapter takes them.
        """
        key = (profile, tuple(sorted(overrides.items())), str(sorted(settings.items())))
        if key not in self._adapters:
            self._adapters[key] = Bundled(profile=profile, readings=overrides, **settings)
        return Stage(self._driver, self._adapters[key], profile, readings)

    def tell(self, scenario: Scenario) -> Outcome:
        """Tell a scenario to the controller; skip it, with the reason, where that cannot be.

        Raises AdapterDied, ServerGone.
        """
        with planted(self._faults):
            return self._tell(scenario)

    def _tell(self, scenario: Scenario) -> Outcome:
        reason = find_reason_to_skip(scenario)
        if reason:
            return Outcome(scenario, reason)
        stages: list[Stage] = []
        skipped = detail = ""
        found: tuple[tuple[str, ...], ...] = ()
        try:
            try:
                found = run_scenario(scenario, lambda told: self._make_world(told, stages))
            except NotLive as stop:
                skipped, detail = stop.reason, stop.detail
            if stages and not stages[-1].forged:
                stages[-1].work(None)  # wherever the story leaves it, it has to come to rest
        finally:
            for stage in stages[-1:]:
                stage.end()
        return Outcome(
            scenario,
            skipped,
            detail,
            found=found,
            difference="" if skipped else compare(scenario, found),
            violations=tuple(violation for stage in stages for violation in stage.violations),
            transactions=sum(stage.transactions for stage in stages),
            raises=dict(sum((stage.raises for stage in stages), Counter())),
        )

    def _make_world(self, scenario: Scenario, stages: list[Stage]) -> World:
        """Return the live world; the stages that it asks for are kept, one going on at a time."""
        profile, overrides, readings = scenario.profile, scenario.overrides, scenario.readings

        def make_stage(
            adapter: LiveAdapter | None, judged_by: str, settings: Mapping[str, Any]
        ) -> Stage:
            for stage in stages[-1:]:
                stage.end()
            if adapter is None:
                stages.append(self.open_stage(profile, overrides, readings, settings))
            else:
                stages.append(Stage(self._driver, adapter, judged_by or profile, readings))
            return stages[-1]

        arguments = dict(scenario.blocks[0].arguments)
        arguments.pop(scenario.world, None)
        begin = MakeStage(make_stage, self.find_cluster)
        make: Make = find_live_worlds()[scenario.world].make_world
        return make(begin, scenario.profile, scenario.readings, arguments)


def run_live(
    scenario: Scenario, server: LiveServer | None = None, *, faults: tuple[str, ...] = ()
) -> Outcome:
    """Tell one scenario to the bundled controller on ZooKeeper.

    Without a `server` one is started for this scenario, its controller with these `faults` planted.
    Raises AdapterDied, ServerGone, ServerError, JavaError, UnknownFault.
    """
    if server is not None:
        return server.tell(scenario)
    with LiveServer.start(faults) as own:
        return own.tell(scenario)
