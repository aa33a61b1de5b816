"""What tests of the explorer share."""

from typing import Any

from reassure_explorer.engine.result import ExploreResult


def summarise(result: ExploreResult) -> dict[str, Any]:
    """Return all that two explorations of one model must agree on, whoever carried them out."""
    return {
        "levels": result.levels,
        "generated": result.generated,
        "verdict": result.verdict,
        "broken": {v.invariant: len(v.trace.steps) for v in result.violations},
        "goals": result.goals,
        "actions": result.actions,
        "notes": {name: times for name, times in result.notes.items() if times},
        "symmetry": result.details.get("symmetry"),
    }
