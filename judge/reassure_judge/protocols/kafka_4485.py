"""KAFKA-4485: lag, in-sync sets and high watermarks, of which brokers say what logs do not show."""

from typing import Final

from reassure_judge.observed.judge import ObservationJudge
from reassure_judge.rules import ObservationRules
from reassure_spec.readings import Readings


class LagRules(ObservationRules):
    """What leaders and followers say of their logs."""

    profiles = ("kafka-4485",)

    @classmethod
    def make_judge(cls, readings: Readings) -> ObservationJudge:
        """Return a judge of lines."""
        return ObservationJudge(readings)


RULES: Final = LagRules
