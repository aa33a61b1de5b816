"""KAFKA-4485: lag, in-sync sets and high watermarks, of which brokers say what logs do not show."""

from functools import partial
from typing import Final

from reassure_judge.observed.judge import ObservationJudge
from reassure_judge.protocols.kafka_4485.needs import ASKED, LOGGED, NEEDS, UNJUDGED
from reassure_judge.protocols.kafka_4485.partition import PartitionHistory
from reassure_judge.rules import ObservationRules
from reassure_spec.readings import Readings


class LagRules(ObservationRules):
    """What leaders and followers say of their logs."""

    profiles = ("kafka-4485",)
    needs = NEEDS
    logged = LOGGED
    unjudged = UNJUDGED
    asked = ASKED

    @classmethod
    def make_judge(cls, readings: Readings) -> ObservationJudge:
        """Return a judge of lines."""
        return ObservationJudge(partial(PartitionHistory, readings))


RULES: Final = LagRules
