"""Two models of one thing, step by step, and where they go on otherwise.

The states are those that the first model reaches, nearest first, so that the first difference has
the shortest story. Both have the same fields and actions: the same model under other rules.
"""

from dataclasses import dataclass
from typing import Any

from reassure_explorer.engine.interface import Model, ModelError
from reassure_explorer.engine.renderings import find_changes


@dataclass(frozen=True, slots=True)
class Parting:
    """A state in which one step ends otherwise in the other model."""

    story: tuple[str, ...]
    """What led there, in words."""
    action: str
    """The step, in words."""
    old: tuple[str, ...]
    """What the step changes in the first model, a line for each way in which it may end."""
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of comparing two models."""

    states: int
    steps: int
    partings: tuple[Parting, ...]
    """The nearest for each action."""
    whole: bool
    """Whether every state that the first model reaches was looked at."""


def compare_models(old: Model, new: Model, most: int) -> Comparison:
    """Take every step of both models from each state that the first reaches, `most` at most.

    Raises ModelError where they are not models of the same thing.
    """
    if old.fields != new.fields or [a.name for a in old.actions] != [a.name for a in new.actions]:
        raise ModelError(
            f"{old.name} and {new.name} have other fields or actions: nothing to compare"
        )
    others = {action.name: action for action in new.actions}
    parents: dict[Any, tuple[Any, str] | None] = dict.fromkeys(old.initial_states)
    found: dict[str, Parting] = {}
    states = steps = 0
    fresh = list(parents)
    while fresh and states < most:
        reached = []
        for state in fresh[: most - states]:
            states += 1
            if not old.is_within(state):
                continue
            for action, parameter in old.list_instances(state):
                after = [each for each, _ in old.take(state, action, parameter)]
                other = [each for each, _ in new.take(state, others[action.name], parameter)]
                steps += len(after)
                words = action.describe(parameter)
                if after != other and action.name not in found:
                    ends = (tuple(_show(state, each) for each in ends) for ends in (after, other))
                    found[action.name] = Parting(_tell(parents, state), words, *ends)
                for each in after:
                    if each not in parents:
                        parents[each] = (state, words)
                        reached.append(each)
        fresh = reached
    return Comparison(states, steps, tuple(found.values()), states < most)


def _tell(parents: dict[Any, tuple[Any, str] | None], state: Any) -> tuple[str, ...]:
    """Return the steps that led to a state, in order."""
    story: list[str] = []
    while (before := parents[state]) is not None:
        state, words = before
        story.insert(0, words)
    return tuple(story)


def _show(before: Any, after: Any) -> str:
    """Return what a step changes, as text."""
    changes = find_changes(before, after).items()
    return (
        ", ".join(f"{n} {_spell(o)} -> {_spell(v)}" for n, (o, v) in changes) or "nothing changes"
    )


def _spell(value: Any) -> str:
    return "none" if value is None else str(list(value) if isinstance(value, tuple) else value)
