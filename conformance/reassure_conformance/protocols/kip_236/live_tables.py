"""World `tables`, live: the questions that a controller answers by what it does.

Each command has a cluster of its own. The drop rule is put to a controller that takes over in the
middle of a change, so that the drop is due; an election to one that finds no live leader.
"""

from functools import partial
from typing import Final

from reassure_conformance.adapter.bundled import find_unsupported
from reassure_conformance.protocols.kip_236.staged_requests import create_partition
from reassure_conformance.protocols.kip_236.tables import ask_drop, drop_once
from reassure_conformance.scenarios.live.stage import Done, MakeStage
from reassure_conformance.scenarios.scenario import Scenario
from reassure_conformance.scenarios.worlds import Handler
from reassure_conformance.scenarios.worlds.tables import TablesWorld
from reassure_model.partition import LeaderAndIsr, Partition, Reassignment
from reassure_model.protocols.kip_236 import is_change_unfinished
from reassure_model.writes import WriteAssigned, WriteState
from reassure_spec.readings import Readings
from reassure_spec.words import (
    Arguments,
    check_arguments,
    format_replicas,
    parse_number,
    parse_replicas,
)
from reassure_spec.znodes import NO_LEADER, PartitionKey, ReplicaList

KEY: Final[PartitionKey] = ("p", 0)
LIVE_COMMANDS: Final = ("drop", "elect-offline")


class LiveTablesWorld(TablesWorld):
    """Asks real controllers, a fresh one each time."""

    def __init__(
        self,
        make_stage: MakeStage,
        profile: str,
        readings: Readings,
        arguments: Arguments,
    ) -> None:
        super().__init__(profile, readings, arguments)
        self._make_stage: Final = make_stage

    def list_handlers(self) -> dict[str, Handler]:
        """Return what answers each question; a drop is put to a controller."""
        drop = partial(ask_drop, self._readings, drop=self._drop_once)
        return {**super().list_handlers(), "drop": drop}

    def _drop_once(
        self, readings: Readings, arguments: Arguments, others: ReplicaList | None
    ) -> str:
        """Have a controller drop; who exists and how many are kept is said by the rule itself."""
        partition = _parse_change(arguments)
        assert partition.assigned is not None
        assert partition.reassignment is not None
        brokers = tuple(sorted({*partition.assigned, *partition.reassignment.target}))
        left, in_sync = _follow_drop(self._play(brokers, partition, fail_over=True), partition)
        drop = tuple(replica for replica in partition.assigned if replica not in left)
        first = drop_once(readings, arguments, others).splitlines()[0]
        lines = f"drop {format_replicas(drop)}\nassigned {format_replicas(left)}"
        return f"{first}\n{lines} isr {format_replicas(in_sync)}"

    def _elect_offline(self, arguments: Arguments) -> str:
        check_arguments(arguments, ("assigned", "isr", "live"), ("unclean",))
        live, isr = (parse_replicas(name, arguments[name]) for name in ("live", "isr"))
        assigned = parse_replicas("assigned", arguments["assigned"])
        dead = [replica for replica in isr if replica not in live]
        state = LeaderAndIsr(dead[0] if dead else NO_LEADER, 0, 1, isr)
        done = self._play(live, Partition(assigned, state), fail_over=False)
        elected = [one.write.state for one in done if isinstance(one.write, WriteState)]
        if not elected or elected[0].leader == NO_LEADER:
            return "nobody"
        return f"leader {elected[0].leader} isr {format_replicas(elected[0].isr)}"

    def _play(self, brokers: ReplicaList, partition: Partition, *, fail_over: bool) -> list[Done]:
        """Put a partition before a controller; return what that does until it rests."""
        stage = self._make_stage()
        stage.begin(brokers, ())
        create_partition(stage, KEY, partition, given=True)
        if fail_over:
            stage.fail_over()
        done, _ = stage.work(None)
        return done


def _parse_change(arguments: Arguments) -> Partition:
    """Return the partition of a `drop` command, the change that asks for the drop recorded."""
    assigned, isr, target = (
        parse_replicas(name, arguments[name]) for name in ("assigned", "isr", "target")
    )
    state = LeaderAndIsr(parse_number("leader", arguments["leader"]), 0, 1, isr)
    return Partition(assigned, state, Reassignment(target, parse_number("top", arguments["top"])))


def _is_come_to(arguments: Arguments) -> bool:
    """Whether a controller that takes over comes to this drop."""
    partition = _parse_change(arguments)
    assigned, state, flight = partition.assigned, partition.state, partition.reassignment
    assert assigned is not None
    assert state is not None
    assert flight is not None
    led = state.leader in state.isr and set(state.isr) <= set(assigned)
    return led and flight.top > 0 and is_change_unfinished(partition)


def _follow_drop(done: list[Done], partition: Partition) -> tuple[ReplicaList, ReplicaList]:
    """Return assigned and in-sync replicas after a drop, which comes before anything is added."""
    assert partition.assigned is not None
    assert partition.state is not None
    left, in_sync = partition.assigned, partition.state.isr
    for one in done:
        if isinstance(one.write, WriteState) and set(one.write.state.isr) < set(in_sync):
            in_sync = one.write.state.isr
        if isinstance(one.write, WriteAssigned):
            return (one.write.assigned if set(one.write.assigned) < set(left) else left), in_sync
    return left, in_sync


make_world = LiveTablesWorld


def find_reason(scenario: Scenario) -> str:
    """Return why a scenario of the world cannot be told live, "" where it can."""
    unsupported = find_unsupported(scenario.readings)
    if unsupported:
        return unsupported
    if scenario.readings.drop_evaluated == "after-expansion":
        return "world tables: a drop after the expansion, which a failover does not come to"
    for block in scenario.blocks[1:]:
        if block.command not in LIVE_COMMANDS:
            return "world tables: a table or a function that no controller is asked for by itself"
        if "unclean" in block.arguments:
            return "world tables: an unclean election, which this controller never holds"
        if {"others", "lag"} & block.arguments.keys():
            return "world tables: an order of those out of sync, which no controller knows"
        if block.command == "drop" and not _is_come_to(block.arguments):
            return "world tables: a drop that no controller comes to by taking over"
    return ""
