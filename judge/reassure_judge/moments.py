"""Moments: in which states somebody acted, for whoever asks what others would have done there."""

from typing import Any, Final, Protocol

from reassure_model.partition import Environment

ACTS: Final = "acts"
"""A controller writes."""
RESTS: Final = "rests"
"""It has nothing left to do."""
SUCCEEDS: Final = "takes over"
"""Another controller acts from here on; what the one before had in mind is still in the states."""
DISTURBED: Final = "disturbed"
"""Anything else happens to the partition."""
Place = tuple[str, str, int]
"""Chroot, topic and partition."""


class Witness(Protocol):
    """Who wants to know of such moments."""

    def note(self, kind: str, place: Place, states: tuple[Any, ...], around: Environment) -> None:
        """Take note of a moment, and of all states that the history leaves possible by then."""
