"""Two-phase commit, after Lamport's TLA+ specification TwoPhase: a model for `reassure explore`.

    reassure explore --model examples/two_phase.py:two_phase

A transaction manager asks resource managers whether they can commit. Each may give up by itself
until it has said that it is prepared; when all have said so the manager commits. Messages are never
lost and never removed. With three resource managers TLC counts 1,146 states generated, 288 of them
distinct, at depth 11; so does this.
"""

from reassure_explorer.engine.interface import (
    Action,
    Choice,
    Goal,
    Invariant,
    MapOf,
    Model,
    SetOf,
    State,
)

STATES = ("working", "prepared", "committed", "aborted")


def receive_prepared(s: State, rm: str) -> State | None:
    """Let the manager take note that a resource manager is prepared."""
    possible = s.manager == "init" and ("prepared", rm) in s.messages
    return s.replace(prepared=s.prepared | {rm}) if possible else None


def abort(s: State, _: None) -> State | None:
    """Let the manager give up, which it may do whenever nothing is settled."""
    if s.manager != "init":
        return None
    return s.replace(manager="aborted", messages=s.messages | {"abort"})


def prepare(s: State, rm: str) -> State | None:
    """Let a resource manager say that it is prepared."""
    if s.managers[rm] != "working":
        return None
    said = s.messages | {("prepared", rm)}
    return s.replace(managers=s.managers | {rm: "prepared"}, messages=said)


def choose_to_abort(s: State, rm: str) -> State | None:
    """Let a resource manager give up by itself."""
    working = s.managers[rm] == "working"
    return s.replace(managers=s.managers | {rm: "aborted"}) if working else None


def obey(s: State, rm: str) -> list[State]:
    """Let a resource manager do what the manager has said: one way for each message."""
    ends = {"commit": "committed", "abort": "aborted"}
    said = [end for message, end in ends.items() if message in s.messages]
    return [s.replace(managers=s.managers | {rm: end}) for end in said]


def find_disagreement(s: State) -> str | None:
    """Say why the resource managers do not agree, None where they do."""
    both = {"committed", "aborted"} <= set(s.managers.values())
    return "one has committed and another has aborted" if both else None


def two_phase(count: int = 3) -> Model:
    """Return the model with so many resource managers."""
    rms = tuple(f"r{number}" for number in range(1, count + 1))

    def commit(s: State, _: None) -> State | None:
        ready = s.manager == "init" and all(rm in s.prepared for rm in rms)
        return s.replace(manager="committed", messages=s.messages | {"commit"}) if ready else None

    steps = (receive_prepared, prepare, choose_to_abort, obey)
    everyone = dict.fromkeys(rms, "working")
    start = {"managers": everyone, "manager": "init", "prepared": (), "messages": ()}
    messages = (*(("prepared", rm) for rm in rms), "commit", "abort")
    return Model(
        "two-phase",
        fields={
            "managers": MapOf(rms, Choice(STATES)),
            "manager": Choice(("init", "committed", "aborted")),
            "prepared": SetOf(rms),
            "messages": SetOf(messages),
        },
        initial=(start,),
        actions=(
            Action("commit", commit),
            Action("abort", abort),
            *(Action(step.__name__.replace("_", " "), step, rms) for step in steps),
        ),
        invariants=(Invariant("agreement", find_disagreement),),
        goals=(Goal("all commit", lambda s: all(s.managers[rm] == "committed" for rm in rms)),),
    )
