"""A controller that ends itself at a named point, as if it were killed there.

The points are those of effects (`effects`): the process is killed before the effect is carried out,
and a crash after one is a crash before the next.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable

from reassure_spec.errors import BadUsage

OnPoint = Callable[[str], None]
"""Called with the point of each effect before it is carried out."""


class BadCrashPoint(BadUsage):
    """A place to crash at that makes no sense."""


def _end_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def crash_at(text: str, end: Callable[[], None] = _end_process) -> OnPoint:
    """Return what ends the process when a point is passed for the n-th time: `POINT:N`.

    Raises BadCrashPoint.
    """
    point, _, number = text.rpartition(":")
    if not point or not number.isdecimal() or int(number) < 1:
        raise BadCrashPoint(f"{text!r} is no POINT:N with N from 1, as in request.child-written:2")
    passed: Counter[str] = Counter()

    def on_point(name: str) -> None:
        passed[name] += 1
        if name == point and passed[name] == int(number):
            end()

    return on_point
