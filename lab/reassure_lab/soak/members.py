"""The cluster of a soak: every connection of its members passes a proxy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from reassure_conformance.gate.replication.brokers import SHIPPED
from reassure_lab.cluster.state_file import MemberState, Role
from reassure_lab.cluster.supervisor import FIRST_CONTROLLER, ProcessCluster
from reassure_lab.soak.own_mistakes import start_with
from reassure_lab.soak.proxies import Address, ProxyNetwork
from reassure_spec.clauses import clauses_of_profile
from reassure_spec.profiles import DEFAULT_PROFILE

LAG_MS: Final = 4_000
"""replica.lag.time.max.ms: a little more than a session."""
MIN_INSYNC: Final = 2
SESSION_S: Final = 3.0
HEAL_MS: Final = 3_000
"""How long a broker is missed before it is replaced, where the profile has that."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How many members there are, and how they are started."""

    brokers: int = 5
    controllers: int = 2
    zookeepers: int = 3
    wide: int = 300
    """How many partitions the topic has of which many are moved in one request."""
    profile: str = DEFAULT_PROFILE
    faults: Sequence[str] = ()
    """Mistakes that brokers and controllers have."""
    own_faults: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By member: mistakes that it alone has."""

    @property
    def heals(self) -> bool:
        """Whether brokers that stay away are replaced."""
        return any(clause.id.startswith("heal.") for clause in clauses_of_profile(self.profile))

    def list_members(self, role: Role) -> list[str]:
        """Return the names of the members in a role."""
        first = FIRST_CONTROLLER if role == "controller" else 1
        count = {
            "broker": self.brokers, "controller": self.controllers, "zookeeper": self.zookeepers
        }  # fmt: skip
        return [f"{role}-{number}" for number in range(first, first + count[role])]

    def list_targets(self) -> list[str]:
        """Return whom faults may meet: of ZooKeeper only servers that can be done without."""
        roles: list[Role] = ["broker", "controller"]
        roles += ["zookeeper"] if self.zookeepers > 2 else []
        return [name for role in roles for name in self.list_members(role)]


def start_cluster(directory: Path, shape: Shape, network: ProxyNetwork) -> ProcessCluster:
    """Start a cluster whose members meet one another through the network.

    Raises what `Cluster.start` raises, NoProxy.
    """

    def arrange(members: Sequence[MemberState]) -> Sequence[MemberState]:
        return [plant(_arrange(member, members, network), shape) for member in members]

    readings = [f"{name}={value}" for name, value in SHIPPED.items() if name != "hw.scope"]
    broker_options = [
        *("--lag-ms", str(LAG_MS), "--min-insync", str(MIN_INSYNC)),
        *_repeat("--reading", readings),
    ]
    return ProcessCluster.start(
        directory,
        shape.brokers,
        shape.controllers,
        shape.zookeepers,
        profile=shape.profile,
        session_timeout_s=SESSION_S,
        broker_options=broker_options,
        controller_options=("--failure-interval", str(HEAL_MS)),
        arrange=arrange,
    )


def _arrange(
    member: MemberState, members: Sequence[MemberState], network: ProxyNetwork
) -> MemberState:
    """Return a member that reaches ZooKeeper, and is reached, through proxies only."""
    if member.role == "zookeeper":
        return member
    servers = [
        network.open(one.name, one.address, source=member.name)
        for one in members
        if one.role == "zookeeper" and one.address is not None
    ]
    hosts = ",".join(f"{host}:{port}" for host, port in servers)
    place = member.command.index("--zookeeper") + 1
    command = (*member.command[:place], hosts, *member.command[place + 1 :])
    if member.role == "broker" and member.address is not None:
        host, port = network.open(member.name, member.address)
        command = (*command, "--advertise", f"{host}:{port}")
    return replace(member, command=command)


def plant(member: MemberState, shape: Shape) -> MemberState:
    """Return a member whose process has the mistakes that are asked for, if it is one of ours."""
    if member.role == "zookeeper":
        return member
    faults = (*shape.faults, *shape.own_faults.get(member.name, ()))
    return replace(member, command=start_with(faults, member.command))


def _repeat(option: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def end_cluster(cluster: ProcessCluster) -> None:
    """End every member, and keep what they wrote; the servers go first.

    So their logs end while the cluster rests, and nothing of its end is in them.
    """
    for member in sorted(cluster.members(), key=lambda one: one.role != "zookeeper"):
        if member.alive:
            cluster.kill(member.name)
    cluster.stop(keep=True)


def addresses_of(cluster: ProcessCluster) -> list[Address]:
    """Return where clients begin: the brokers themselves."""
    found = (member.address for member in cluster.members() if member.role == "broker")
    return [address for address in found if address is not None]
