"""What clauses of KAFKA-4485 need of whom the gate drives."""

from typing import Final

from reassure_conformance.gate.requirements import Needs

NEEDS: Final = Needs(
    unseen=frozenset(
        {
            "isr.pseudo.by-lag",
            "hw.minimum-of-pseudo-isr",
            "hw.never-decreases",
            "hw.at-most-leader-end",
            "isr.member.at-or-above-hw",
        }
    )
)
