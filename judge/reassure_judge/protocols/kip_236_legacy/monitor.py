"""Judges how many watches reassignments take, which no log of ZooKeeper shows."""

from collections.abc import Iterator
from typing import Final

from reassure_judge.cross_partition import NO_KEY
from reassure_judge.live_events import Event, Rested
from reassure_judge.monitors import Monitor, Verdict, decide
from reassure_spec.clauses import clause
from reassure_spec.znodes import REASSIGNMENTS


class WatchMonitor(Monitor):
    """Looks for watches on what is in flight whenever several reassignments are, and rest.

    What was watched before the protocol, topics and the states of their partitions, may be still.
    """

    @clause("legacy.watch.one-more")
    def take(self, event: Event) -> Iterator[Verdict]:
        """Yield whether records are watched one by one."""
        if not isinstance(event, Rested) or event.watched is None:
            return
        found = sorted(path for path in event.watched if path.startswith(f"{REASSIGNMENTS}/"))
        count = len(event.view.list_moving())
        reason = f"{count} reassignments are in flight, and watched are {', '.join(found)}"
        yield decide(NO_KEY, "legacy.watch.one-more", len(found) < 2 or reason)


MONITOR: Final = WatchMonitor
