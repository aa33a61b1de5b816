"""Whole states of replication out of named values, what is run on them, and their shapes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

from reassure_model.outcome import Accepted
from reassure_model.protocols.kafka_4485.replication import (
    ACTIONS,
    LEADER_ALONE,
    Elect,
    Follow,
    make_replication,
)
from reassure_proofs.engine.formula import Truth, choose, negate
from reassure_proofs.engine.statement import Parameter, Shape, Values, choose_readings, word
from reassure_proofs.protocols.kafka_4485.logs import load, look_at, make_log
from reassure_spec.readings import Readings

PROFILE: Final = "kafka-4485"
AMENDMENTS: Final = (
    "hw.over-stored-isr=yes",
    "hw.served-from=end-at-election",
    "isr.entry=end-at-election",
    "follower.truncation=common-prefix",
)
"""The four amendments under which clean elections keep what they should."""
_AMENDED: Final = choose_readings(PROFILE, AMENDMENTS)
_NATURAL: Final = Parameter(kind="natural")

# States out of named values ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """A set of brokers, each of which may or may not be in it."""

    truths: tuple[Truth, ...]

    def __contains__(self, broker: int) -> bool:
        return bool(self.truths[broker])

    def __iter__(self) -> Iterator[int]:
        return (broker for broker in range(len(self.truths)) if broker in self)

    def __or__(self, other: Any) -> "Members":
        pairs = zip(self.truths, list_members(other, len(self.truths)), strict=True)
        return Members(tuple(mine | theirs for mine, theirs in pairs))

    def __sub__(self, other: Any) -> "Members":
        pairs = zip(self.truths, list_members(other, len(self.truths)), strict=True)
        return Members(tuple(mine & negate(theirs) for mine, theirs in pairs))


def list_members(members: Any, brokers: int) -> tuple[Truth, ...]:
    """Return for each broker whether it is in the set.

    >>> list_members(frozenset({1}), 2)
    (False, True)
    """
    if isinstance(members, Members):
        return members.truths
    return tuple(broker in members for broker in range(brokers))


def _make_set(truths: Sequence[Truth]) -> Any:
    if all(isinstance(truth, bool) for truth in truths):
        return frozenset(broker for broker, truth in enumerate(truths) if truth)
    return Members(tuple(truths))


@dataclass(frozen=True, slots=True)
class _Unseen:
    """Stands for what consumers are shown before a step: no step may depend on it."""


UNSEEN: Final = _Unseen()


def get_positions(values: Values) -> tuple[Any, ...]:
    """Return the positions at which logs are seen; the claims are about the first."""
    return tuple(values[name] for name in ("position", "difference") if name in values)


def _make_log(values: Values, end: Any, name: str, broker: int | None = None) -> Any:
    """Return a log; where the positions are the same one, so is what stands there."""
    places = get_positions(values)
    seen = [values[f"{name}_{at}"] for at in range(len(places))]
    records = [each if broker is None else each[broker] for each in seen]
    if len(places) > 1:
        records[1] = choose(places[0] == places[1], records[0], records[1])
    return make_log(end, places, records)


def make_state(values: Values) -> Any:
    """Return the partition that the values describe, in the words of the model."""
    model = load("reassure_model.protocols.kafka_4485.replication")
    replicas = []
    for broker, end in enumerate(values["ends"]):
        request = None
        if values["asking"][broker] == "1":
            request = model.Request(
                *(values[name][broker] for name in ("asked_epochs", "asked_offsets", "waiting"))
            )
        log = _make_log(values, end, "records", broker)
        mark, epoch = values["high_watermarks"][broker], values["leader_epochs"][broker]
        replicas.append(model.Replica(log, mark, epoch, request))
    term = model.Term(
        values["end_at_election"],
        values["known_version"],
        _make_set(values["known_isr"]),
        _make_set(values["pseudo_isr"]),
        values["offsets"],
    )
    return model.Replication(
        tuple(replicas),
        int(values["leader"]),
        values["leader_epoch"],
        _make_set(values["isr"]),
        values["version"],
        term,
        values.get("shown", UNSEEN),
        _make_log(values, values["shown_end"], "shown_records"),
    )


def observe(state: Any, positions: Sequence[Any]) -> Any:
    """Return the state with each log as `look_at` tells it and each set as truths."""
    brokers = len(state.replicas)
    replicas = tuple(
        replace(replica, log=look_at(replica.log, positions)) for replica in state.replicas
    )
    sets = {
        name: list_members(getattr(state.term, name), brokers) for name in ("isr", "pseudo_isr")
    }
    return replace(
        state,
        replicas=replicas,
        isr=list_members(state.isr, brokers),
        term=replace(state.term, **sets),
        committed=look_at(state.committed, positions),
    )


def take(values: Values, readings: Readings = _AMENDED) -> Any:
    """Return what can be seen after the action that the values describe, None without one."""
    model = load("reassure_model.protocols.kafka_4485.replication")
    state, action = make_state(values), model.ACTIONS[values["verb"]](int(values["on"]))
    if not model.is_possible(state, action):
        return None
    outcome = model.step(state, action, readings)
    if not isinstance(outcome, Accepted):
        return None
    return observe(outcome.state, get_positions(values))


def start(values: Values) -> Any:
    """Return what can be seen of a partition that nothing has happened to."""
    brokers = len(values["members"])
    members = frozenset(broker for broker in range(brokers) if values["members"][broker])
    return observe(make_replication(brokers, members=members), get_positions(values))


def find_problems(values: Values) -> tuple[str, ...]:
    """Return the clauses that the model's own predicates find broken in a state."""
    state = make_state(values)
    predicates = load("reassure_model.protocols.kafka_4485.invariants").INVARIANTS
    return tuple(name for name, find in predicates.items() if find(state) is not None)


# Shapes -----------------------------------------------------------------------------------------


def _state_shape(brokers: int, asking: str, positions: Sequence[str]) -> dict[str, Parameter]:
    shape: dict[str, Parameter] = {"leader": word("0"), "asking": word(asking)}
    shape |= dict.fromkeys(positions, _NATURAL)
    shape["ends"] = Parameter(brokers, kind="natural")
    for at in range(len(positions)):
        shape[f"records_{at}"] = Parameter(brokers)
    shape["shown_end"] = _NATURAL
    for at in range(len(positions)):
        shape[f"shown_records_{at}"] = Parameter()
    sets = ("isr", "known_isr", "pseudo_isr", "waiting")
    numbers = ("high_watermarks", "leader_epochs", "offsets", "asked_epochs", "asked_offsets")
    shape |= {name: Parameter(brokers, kind="truth") for name in sets}
    shape |= {name: Parameter(brokers, kind="natural") for name in numbers}
    singles = ("leader_epoch", "version", "known_version", "end_at_election")
    return shape | dict.fromkeys(singles, _NATURAL)


def _masks(brokers: int) -> Iterator[str]:
    """Yield who has a request on its way: any of the followers, never the leader."""
    for asking in product("10", repeat=brokers - 1):
        yield "".join(("0", *asking))


def shape_steps(brokers_max: int) -> Iterator[Shape]:
    """Yield every kind of action; the leader has number 0, whom else it concerns number 1.

    No function of the model looks at what number a broker has (`engine.numbers` sees to that), so
    that the numbers are no loss.
    """
    for brokers in range(2, brokers_max + 1):
        for (verb, kind), asking in product(ACTIONS.items(), _masks(brokers)):
            positions = ("position", "difference") if kind is Follow else ("position",)
            state = _state_shape(brokers, asking, positions)
            concerned = {0} if kind in LEADER_ALONE else {0, 1} if kind is Elect else {1}
            for broker in sorted(concerned):
                yield {"verb": word(verb), "on": word(str(broker)), **state}


def shape_still(brokers_max: int) -> Iterator[Shape]:
    """Yield states in which nobody asks, with what consumers are shown."""
    for brokers in range(2, brokers_max + 1):
        state = _state_shape(brokers, "0" * brokers, ("position",))
        yield {**state, "shown": _NATURAL}


def shape_start(brokers_max: int) -> Iterator[Shape]:
    """Yield who may be in sync at first."""
    for brokers in range(2, brokers_max + 1):
        yield {"members": Parameter(brokers, kind="truth"), "position": _NATURAL}
