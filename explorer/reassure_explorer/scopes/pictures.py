"""Traces of the scopes as pictures: a line for the client, the controller and each broker."""

from typing import Final

from reassure_explorer.engine.renderings import draw_trace
from reassure_explorer.engine.result import Trace, TraceStep
from reassure_model.machine import find_machines

_OF_BROKERS: Final = frozenset(
    act.name for each in find_machines().values() for act in each.acts if act.over == "brokers"
)
"""Actions whose parameter is the broker that acts."""
_COLOURS: Final = {"die": "#c33", "leave": "#c83", "failover": "#93c", "controller": "#36c"}


def name_actor(step: TraceStep) -> str:
    """Return who acts in a step."""
    match step.action:
        case "submit" | "command" | "interrupt" | "observe" | "alter" | "write" | "delete" | "ask":
            return "client"
        case "controller" | "failover":
            return "controller"
        case "join" | "leave":
            who = step.parameter[1] if isinstance(step.parameter, tuple) else step.parameter
            return f"broker {who}"
    # Of another protocol an act of this name may be about a partition, or about nothing.
    is_broker = step.action in _OF_BROKERS and isinstance(step.parameter, int)
    return f"broker {step.parameter}" if is_broker else step.action


def draw_scope_trace(trace: Trace, title: str = "") -> str:
    """Return a trace of a scope as a space-time diagram in SVG."""
    return draw_trace(trace, title, name_actor, _COLOURS)
