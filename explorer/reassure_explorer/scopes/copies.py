"""What the scopes of KAFKA-42 and of the shipped controllers hold."""

from dataclasses import dataclass

from reassure_spec.znodes import ReplicaList


@dataclass(frozen=True, slots=True)
class CopiesWorld:
    """What a scope holds, and how often what is not healing may happen."""

    assigned: ReplicaList
    targets: tuple[ReplicaList, ...]
    """What clients may ask for."""
    brokers: int
    """Brokers are numbered from 1; all are alive at the start."""
    requests: int = 1
    """How often clients ask."""
    deaths: int = 0
    failovers: int = 0
    interrupts: int = 0
    """How often an admin command is interrupted."""
    entries: tuple[ReplicaList, ...] = ()
    """What clients may write into the old znode, where requests come by another route."""
    writes: int = 0
    """How often clients write the old znode."""
    cancels: bool = True
    """Whether clients may cancel, where there is a call for it."""

    @property
    def members(self) -> tuple[int, ...]:
        """The brokers."""
        return tuple(range(1, self.brokers + 1))
