"""How a controller carries its profile out: readings, settings, and what it looks after."""

from dataclasses import dataclass, field

from reassure_controller.protocols.kip_46 import HealingSettings
from reassure_spec.errors import BadConfiguration
from reassure_spec.profiles import has_protocol
from reassure_spec.readings import Readings
from reassure_spec.rooms import controller_of, refuse_readings


@dataclass(frozen=True, slots=True)
class Rules:
    """How the protocols of a profile are to be carried out; raises RefusedReading where not."""

    readings: Readings = field(default_factory=Readings)
    profile: str = "kip-236"
    healing: HealingSettings = field(default_factory=HealingSettings)
    """How brokers that stay away are healed, where the profile heals them."""

    def __post_init__(self) -> None:
        """Refuse readings that would silently be carried out as something else."""
        if not has_protocol(self.profile, "kip-236", "kafka-42"):
            raise BadConfiguration(
                f"no controller carries out profile {self.profile}: it has no reassignments of "
                "its own; choose another with --profile"
            )
        refuse_readings(controller_of(self.profile), self.readings)

    @property
    def keeps_records(self) -> bool:
        """Whether requests are taken and reassignments recorded, rather than held in memory."""
        return has_protocol(self.profile, "kip-236")

    @property
    def reads_old_znode(self) -> bool:
        """Whether it looks after what clients write to the old znode."""
        return has_protocol(self.profile, "kip-236-legacy", "kafka-42")

    @property
    def rebalances(self) -> bool:
        """Whether it gives preferred leaders back unasked; from memory alone nobody does."""
        return self.keeps_records and self.readings.election_preferred == "automatic"

    @property
    def heals(self) -> bool:
        """Whether it looks after brokers that stay away."""
        return has_protocol(self.profile, "kip-46")
