"""Counterexamples about KIP-236, replayed on the real controller (`answers.shown_live`)."""

from typing import Final

from reassure_conformance.adapter.driver import SETTLE_TIMEOUT_S
from reassure_conformance.protocols.kip_236.staged_requests import (
    create_partition,
    read_partition,
    submit,
)
from reassure_conformance.scenarios.live.live_server import LiveServer
from reassure_conformance.scenarios.live.stage import Stage
from reassure_model.partition import LeaderAndIsr, Partition, Reassignment
from reassure_proofs.engine.replays import NotShown
from reassure_proofs.protocols.kip_236.plantings import End, Planting, violates
from reassure_spec.readings import get_profile
from reassure_spec.znodes import PartitionKey

__all__ = ["Planting", "replay_live", "violates"]
KEY: Final[PartitionKey] = ("orders", 0)


def replay_live(live: LiveServer, planting: Planting) -> End:
    """Return where the real controller comes to rest. Raises NotShown where it does not."""
    partition = Partition(
        planting.assigned,
        LeaderAndIsr(planting.leader, 0, 0, planting.isr),
        Reassignment(planting.target, planting.top),
    )
    with live.open_stage(planting.profile, {}, get_profile(planting.profile)) as stage:
        stage.begin(planting.brokers, ())
        create_partition(stage, KEY, partition, planting.minimum, given=True)
        stage.fail_over()
        _settle(stage)
        if planting.requested:
            submit(stage, {KEY: planting.requested}, legacy=False)
            _settle(stage)
        found, _ = read_partition(stage, KEY)
    assert found.assigned is not None and found.state is not None
    target = None if found.reassignment is None else found.reassignment.target
    return End(found.assigned, found.state.leader, found.state.isr, target)


def _settle(stage: Stage) -> None:
    if not stage.work(None)[1]:
        raise NotShown(f"the controller does not come to rest in {SETTLE_TIMEOUT_S:g} s")
