"""KIP-46: brokers that are replaced when they stay away, on top of KIP-236.

What a task moves is moved by requests and judged as under KIP-236. Beside that a tracker follows
the records of failed brokers and the tasks, and judges what is written there by the model's
functions (`reassure_model.protocols.kip_46.writes`).

The failure interval, the size of a task and the share of the bandwidth stand nowhere in ZooKeeper,
so nothing is said of them.
"""

from typing import Final

from reassure_judge.protocols.kip_46.router import HealingRouter
from reassure_judge.protocols.kip_46.tracker import HealingTracker
from reassure_judge.protocols.kip_236 import RequestRules
from reassure_judge.rules import Sign, Signs
from reassure_judge.verdicts import Tally

_TREES: Final = ("/admin/reassignment_tasks", "/admin/failed_brokers")


class HealingRules(RequestRules):
    """KIP-236 with self-healing."""

    profiles = driven = ("kip-46",)
    router = HealingRouter

    @classmethod
    def find_sign(cls, signs: Signs) -> Sign | None:
        """Return the records of failures, or the tasks, that stand among those of KIP-236."""
        found = [tree for tree in _TREES if tree in signs.filled]
        return Sign(4, f"something stands in {found[0]}", {}) if found else None

    def make_tracker(self, tally: Tally) -> HealingTracker:
        """Return a tracker of records and tasks."""
        return HealingTracker(self.readings, tally)


RULES: Final = HealingRules
