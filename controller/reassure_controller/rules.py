"""How a controller carries its profile out: by readings, by settings, and by planners.

A planner is what a controller does about one protocol. It stands in `protocols/NAME` as `PLANNER`,
and is loaded where the profile has the protocol; whoever has several asks them in the order of the
protocols' manifests. What a planner does not override is nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import ClassVar, TypeVar

from reassure_controller.context import Context, PartitionContext
from reassure_controller.effects import Planned, RememberMove, Step
from reassure_controller.planned_job import Job
from reassure_controller.reader import ClusterReader
from reassure_spec.errors import BadConfiguration
from reassure_spec.profiles import DEFAULT_PROFILE, PROTOCOLS
from reassure_spec.protocols import import_parts
from reassure_spec.readings import Readings
from reassure_spec.rooms import controller_of, refuse_readings
from reassure_spec.znodes import PartitionKey, ReplicaList

Settings = TypeVar("Settings")


class Planner:
    """What a controller does about one protocol."""

    reassigns: ClassVar = False
    """Whether it says how a reassignment is carried out, rather than where one comes from."""
    rebalances: ClassVar = False
    """Whether preferred leaders may be given back unasked."""
    cuts_lost_leader: ClassVar = False
    """Whether a leader that is lost leaves the in-sync set when there is nobody to elect."""
    comes_last: ClassVar = False
    """Whether its jobs wait until there is nothing else to do."""
    paths: ClassVar[tuple[str, ...]] = ()
    """Persistent paths that a controller makes where they are not there."""
    watched_below: ClassVar[tuple[str, ...]] = ()
    """Paths of which every change at and below them is heard."""

    # What is remembered

    def read_all(self, reader: ClusterReader) -> None:
        """Read all that it looks after, with its watches, at the beginning of a term."""
        self.read_missed(reader)

    def read_missed(self, reader: ClusterReader) -> None:
        """Read what may have changed while the watches were lost, and arm them."""

    def read_again(self, reader: ClusterReader, effects: Sequence[Planned]) -> None:
        """Read again what effects were planned from that did not get through."""

    def note(self, reader: ClusterReader, kind: str, path: str) -> bool:
        """Note a change at once; return whether it is one of what it looks after."""
        return False

    def take_event(self, reader: ClusterReader, path: str) -> None:
        """Read what a watch was about, if it was one of its own."""

    # What is to be done

    def find_job(
        self, reader: ClusterReader, rules: "Rules", clock_ms: Callable[[], int]
    ) -> Job | None:
        """Return what is to be done when no reassignment in flight can be carried on."""
        return None

    # How a reassignment is carried out

    def take_up(self, context: Context, rules: "Rules") -> tuple[RememberMove, ...]:
        """Return what a new controller takes up before it looks at deaths, as nearly complete."""
        return ()

    def resume(self, context: Context, rules: "Rules") -> tuple[Step, ...]:
        """Return the marks that say how far reassignments have come that a failover found."""
        return ()

    def plan_drop(
        self, context: Context, key: PartitionKey, rules: "Rules"
    ) -> tuple[Step, ...] | None:
        """Return what a change of the target takes out again; None while that has to wait."""
        return ()

    def list_dropped(self, content: PartitionContext, readings: Readings) -> ReplicaList:
        """Return the replicas that a change of the target has yet to take out."""
        return ()

    def list_started(self, context: Context, key: PartitionKey) -> ReplicaList:
        """Return the replicas that may be in sync though no assignment names them."""
        return ()

    def is_over(self, context: Context, key: PartitionKey, target: ReplicaList) -> bool:
        """Whether a reassignment is complete but for what is remembered of it."""
        return False

    def plan_end(self, context: Context, key: PartitionKey) -> tuple[Step, ...]:
        """Return what ends a reassignment whose target is assigned."""
        return ()


@cache
def load_planners(profile: str) -> tuple[Planner, ...]:
    """Return the planners of a profile's protocols, in the order of the manifests."""
    modules = import_parts("reassure_controller", only=PROTOCOLS[profile]).values()
    return tuple(module.PLANNER for module in modules)


def list_settable() -> list[ModuleType]:
    """Return the modules of protocols for which an operator may set something."""
    modules = import_parts("reassure_controller").values()
    return [module for module in modules if hasattr(module, "add_options")]


@dataclass(frozen=True, slots=True)
class Rules:
    """How the protocols of a profile are to be carried out; raises RefusedReading where not."""

    readings: Readings = field(default_factory=Readings)
    profile: str = DEFAULT_PROFILE
    settings: tuple[object, ...] = ()
    """What an operator sets for a protocol, by a class that the protocol has."""

    def __post_init__(self) -> None:
        """Refuse readings that would silently be carried out as something else."""
        if not any(planner.reassigns for planner in self.planners):
            raise BadConfiguration(
                f"no controller carries out profile {self.profile}: it has no reassignments of "
                "its own; choose another with --profile"
            )
        refuse_readings(controller_of(self.profile), self.readings)

    @property
    def planners(self) -> tuple[Planner, ...]:
        """What is done about each of the profile's protocols."""
        return load_planners(self.profile)

    @property
    def rebalances(self) -> bool:
        """Whether it gives preferred leaders back unasked."""
        asked = self.readings.election_preferred == "automatic"
        return asked and any(planner.rebalances for planner in self.planners)

    def find_settings(self, kind: type[Settings]) -> Settings:
        """Return the settings of a class, the usual ones where none were given."""
        return next((one for one in self.settings if isinstance(one, kind)), kind())
