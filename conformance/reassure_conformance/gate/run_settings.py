"""What one run of the gate is asked to do."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from reassure_conformance.adapter import Adapter, open_adapter
from reassure_conformance.adapter.world import REAL_WORLD, VIRTUAL_WORLD, World, make_world
from reassure_conformance.gate.known import KnownFailure
from reassure_conformance.mutants import OF_BROKERS
from reassure_conformance.supervise import HANG_S
from reassure_spec.profiles import DEFAULT_PROFILE

BUNDLED: Final = "direct:reassure_conformance.adapter.bundled:Bundled"
REPLICATION: Final = OF_BROKERS
"""The profile of what brokers with logs do."""
COVERED: Final = "covered"
"""Until everything that can be put to the test was."""
FAILED: Final = "failed"
"""Until something is violated."""
MISSING: Final = "missing.json"
"""The file in which a run until COVERED tells whoever waits for it what is missing still."""

Progress = Callable[[str, int, int], None]
"""Told what is going on, how much of it is done, and how much there is."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What one run is asked to do."""

    seed: int
    connectable: str = BUNDLED
    profile: str = DEFAULT_PROFILE
    readings: Mapping[str, str] = field(default_factory=dict)
    """Readings that differ from the profile's."""
    faults: tuple[str, ...] = ()
    """Planted faults to switch on in the bundled implementation."""
    examples: int = 200
    steps_min: int = 3000
    steps_per_example: int = 14
    shrink_s: float = 8.0
    require_all: bool = False
    """Whether clauses are required also for which the implementation lacks a capability."""
    hang_s: float = HANG_S
    """How long one step may take before the implementation counts as dead."""
    seconds_max: float = 600.0
    """When generation ends whatever else was asked for."""
    until: str = ""
    """What generation goes on to, whatever examples that takes: COVERED, FAILED, or ""."""
    stop_at: str = ""
    """A file: once it is there nothing more is generated. "" for none."""
    with_stories: bool = True
    stories_max: int = 0
    """How many shipped stories are told at most, of those that can be told whole; 0: all."""
    failures: str = ""
    """Folder of saved failures, told before anything else and added to; "" for none."""
    strict: bool = False
    """Whether a SHOULD binds like a MUST."""
    known: tuple[KnownFailure, ...] = ()
    """Failures that do not count."""
    world: str = REAL_WORLD
    """What it is driven in."""

    def make_world(self, data_dir: Path) -> World:
        """Return what it is driven in; the files of a virtual server are in a directory."""
        return make_world(self.world, data_dir)

    def open(self, world: World) -> Adapter:
        """Return the implementation of these settings. Raises BadConnectable."""
        virtual = {"world": world} if self.world == VIRTUAL_WORLD else {}
        return open_adapter(
            self.connectable,
            **virtual,
            profile=self.profile,
            readings=self.readings,
            faults=self.faults,
            answer_s=self.hang_s,
        )

    def is_stopped(self) -> bool:
        """Whether somebody wants nothing more to be generated."""
        return bool(self.stop_at) and Path(self.stop_at).exists()

    def as_dict(self) -> dict[str, Any]:
        """Return the record that run.json holds."""
        return {**asdict(self), "faults": list(self.faults)}
