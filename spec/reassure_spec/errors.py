"""The base class of errors, with the exit code that a command ends with where nobody mends them.

An error derives from the class that says whose matter it is. One that says nothing of the sort is a
mistake of ours. Errors that are always caught where they can arise need no code and no base here.
This module knows nothing of Kafka: every room may import it.
"""

from typing import ClassVar


class ReassureError(Exception):
    """Something is wrong that nobody could mend: a mistake of ours, unless a subclass says other.

    What else it knows of the place may stand in `file`, `path`, `line`, `offset` or `zxid`.
    """

    exit_code: ClassVar[int] = 70


class BadUsage(ReassureError):
    """What was asked for cannot be asked for, or is not there."""

    exit_code = 64


class BadData(ReassureError):
    """What was given to be read cannot be read, or is damaged."""

    exit_code = 65


class Unavailable(ReassureError):
    """An implementation, a server or a library is not there or does not answer."""

    exit_code = 69


class BadConfiguration(ReassureError):
    """How something is set up does not allow what was asked for."""

    exit_code = 78
