"""The bundled controller with the bundled brokers and their logs: one system, in the virtual world.

A broker's followers fetch where a replica is to join the in-sync set, and fall silent where one is
to leave it, until the lag is too much: the leader decides by itself, as it does in life.
"""

import shutil
from typing import Any, Final

from reassure_conformance.adapter import Reply
from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.adapter.replicating import OBSERVED, name_directory
from reassure_conformance.adapter.stepping import FIRST_MS, VirtualClock
from reassure_conformance.adapter.world import VirtualWorld
from reassure_controller.broker import Broker
from reassure_controller.replication.hosting import Replicas
from reassure_controller.replication.messages import EpochEndTold, Fetched, Response
from reassure_controller.replication.observing import Observer
from reassure_controller.replication.quota import Quotas
from reassure_controller.replication.rules import ReplicationRules
from reassure_controller.storage.directory import LogDirectory
from reassure_judge.protocols import get_observing
from reassure_mutation.table import find_worlds
from reassure_spec.readings import get_profile, override_readings
from reassure_spec.znodes import PartitionKey

PROFILE: Final = get_observing().profiles[0]
"""The profile of what the brokers do with their logs."""
LAG_MS_MAX: Final = 1_000
ROUNDS: Final = 20
"""So many fetches, or parts of the lag, until a leader is taken to refuse."""


class BundledWithLogs(Bundled):
    """Adapter of the bundled controller and of brokers that keep logs; the options are Bundled's.

    The logs stand beside the files of the virtual server while their example goes on.
    """

    def __init__(self, *, world: VirtualWorld, **options: Any) -> None:
        super().__init__(world=world, **options)
        (worlds,) = find_worlds(PROFILE)
        readings = override_readings(get_profile(PROFILE), worlds.SHIPPED)
        self._rules: Final = ReplicationRules(readings, lag_ms_max=LAG_MS_MAX)
        self._place: Final = world.log_dir.parent / "brokers"
        self._clock = VirtualClock(FIRST_MS)

    def stop(self) -> None:
        """Leave the logs, and delete them."""
        for agent in self._brokers.values():
            if agent.replicas is not None:
                agent.replicas.abandon()
        super().stop()
        shutil.rmtree(self._place, ignore_errors=True)

    def _replicate(self, broker: Broker, epoch: int) -> Replicas:
        number, chroot = broker.broker_id, self._chroot
        own = self._place / name_directory(number)
        disk = LogDirectory(own / "logs", number, chroot, sync=lambda _: None)
        observer = Observer(own / OBSERVED, number, epoch, chroot=chroot)
        return Replicas(number, epoch, broker, disk, self._clock, observer, self._rules, Quotas())

    def change_isr(self, broker: int, topic: str, partition: int, *, joins: bool) -> Reply:
        """Let a follower fetch until its leader takes it in, or not until it is left out."""
        key = (topic, partition)
        leader = next((a for a in self._brokers.values() if a.leads(*key)), None)
        if leader is None or (joins and broker not in self._brokers):
            return Reply.REFUSED
        for _ in range(ROUNDS):
            hosted = leader.hosted(*key)
            isr = () if hosted is None else hosted.state.isr
            if (broker in isr) == joins:
                return Reply.OK
            for one in sorted(self._brokers):
                if one == broker if joins else (one in isr and one != broker):
                    self._fetch(one, key)
            if not joins:
                self._clock.advance(5 * LAG_MS_MAX // ROUNDS)
                self._get_replicas(leader.broker_id).tick()
        return Reply.REFUSED

    def _fetch(self, broker: int, key: PartitionKey) -> None:
        """Have a broker ask the partition's leader for what it lacks, and hear the answer."""
        replicas = self._get_replicas(broker)

        def hear(answer: Response) -> None:
            assert isinstance(answer, Fetched | EpochEndTold)
            replicas.take(answer)

        for leader, request in tuple(replicas.next_requests()):
            if request.key == key and leader in self._brokers:
                self._get_replicas(leader).serve(request, hear)

    def _get_replicas(self, broker: int) -> Replicas:
        replicas = self._brokers[broker].replicas
        assert replicas is not None, f"broker {broker} has registered, and keeps logs"
        return replicas
