"""The standard scopes: how much of the world is looked at, by name.

A scope is small enough to be explored to its end. What it leaves out was not looked at: a scope
that holds is no proof for a larger one. The counts of each scope under each profile stand in
`counts.py` and are pinned by tests where they take seconds only.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from reassure_explorer.engine.explore import Exploration, explore
from reassure_explorer.engine.interface import Model
from reassure_explorer.scopes.copies import CopiesWorld
from reassure_explorer.scopes.kafka_42 import bound_moves
from reassure_explorer.scopes.kafka_4485 import bound_logs
from reassure_explorer.scopes.kafka_zk import bound_shipped
from reassure_explorer.scopes.kip_46 import bound_healing
from reassure_explorer.scopes.kip_236 import Limits, Target, bound_requests
from reassure_explorer.scopes.kip_236_legacy import bound_routes
from reassure_explorer.scopes.machine import Bounds, MachineScope
from reassure_explorer.tales import Meeting, SmallWorld, Tale, list_meetings, list_tales
from reassure_model.machine import find_machines
from reassure_spec.errors import BadUsage
from reassure_spec.readings import Readings
from reassure_spec.rooms import choose_readings, explorer_of

Source = MachineScope | SmallWorld
"""What a scope's model is made from: a model of `reassure_model` within a world."""


class UnknownScope(BadUsage):
    """A scope name that there is not."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A named scope."""

    name: str
    summary: str
    """What it holds, in one sentence."""
    make_source: Callable[[Readings], Source]
    profile: str = "kip-236"
    """The version of the rules that it is about; any other can be asked for."""
    is_whole: bool = False
    """Whether it takes the model as it stands, so that no reading is refused."""

    @property
    def room(self) -> str:
        """The room that says which readings are carried out here."""
        return "model" if self.is_whole else explorer_of(self.profile)

    def make_model(self, readings: Readings) -> Model:
        """Return the model within this scope, under these readings."""
        return self.make_source(readings).make_model(self.name)


def _ask(*targets: tuple[int, ...]) -> tuple[Target, ...]:
    return tuple((target, False) for target in targets)


def _reference(name: str, summary: str, bounds: Bounds) -> Scope:
    return Scope(name, summary, _within("kip-236", bounds))


def _logs(name: str, summary: str, bounds: Bounds) -> Scope:
    return Scope(name, summary, _within("kafka-4485", bounds), "kafka-4485")


def _within(machine: str, bounds: Bounds) -> Callable[[Readings], Source]:
    return partial(MachineScope, find_machines()[machine], bounds)


def _moves(name: str, summary: str, world: CopiesWorld) -> Scope:
    return Scope(name, summary, _within("kafka-42", bound_moves(world)), "kafka-42")


def _shipped(name: str, summary: str, world: CopiesWorld) -> Scope:
    return Scope(name, summary, _within("kafka-zk", bound_shipped(world)), "kafka-zk")


def _healing(name: str, summary: str, bounds: Bounds) -> Scope:
    return Scope(name, summary, _within("kip-46", bounds), "kip-46")


def _old_znode(name: str, summary: str, bounds: Bounds) -> Scope:
    return Scope(name, summary, _within("kip-236-legacy", bounds), "kip-236-legacy")


_ALL: Final = (
    _reference(
        "small",
        "three brokers, one partition on two of them; two requests, and one death, one lagging "
        "replica and one failover at any moment",
        bound_requests(3, ((1, 2),), _ask((2, 3), (1, 3), (1, 2)), Limits(2, 1, 1, 1)),
    ),
    _reference(
        "new",
        "a partition that is not yet online, with two requests, two deaths and one failover",
        bound_requests(3, ((1, 2),), _ask((2, 3), (1, 3)), Limits(2, 2, 0, 1), online=False),
    ),
    _reference(
        "routes",
        "requests by the new and by the legacy route, good ones and ones to refuse: an empty "
        "target, a replica twice, a broker that does not exist",
        bound_requests(
            3,
            ((1, 2),),
            (
                ((2, 3), False),
                ((1, 3), False),
                ((1, 3), True),
                ((), False),
                ((3, 3), False),
                ((2, 4), True),
            ),
            Limits(2, 2, 0, 1),
        ),
    ),
    _reference(
        "min-two",
        "as small, where two replicas have to be in sync and one target has one replica only",
        bound_requests(
            3,
            ((1, 2),),
            _ask((2, 3), (1, 3), (3,)),
            Limits(2, 1, 1, 1),
            min_insync_replicas=2,
        ),
    ),
    _reference(
        "two-partitions",
        "two partitions that share brokers and controller: two requests, two deaths, one failover",
        bound_requests(3, ((1, 2), (2, 3)), _ask((2, 3), (1, 2)), Limits(2, 2, 0, 1)),
    ),
    _reference(
        "medium",
        "four brokers, a partition on two; three requests, two deaths, one lag, one failover",
        bound_requests(4, ((1, 2),), _ask((2, 3), (3, 4), (1, 2)), Limits(3, 2, 1, 1)),
    ),
    _reference(
        "large",
        "four brokers, a partition on two; five requests, four deaths, three lags, three failovers",
        bound_requests(4, ((1, 2),), _ask((2, 3), (3, 4), (1, 2)), Limits(5, 4, 3, 3)),
    ),
    _reference(
        "restless",
        "three brokers, one partition; two requests, and failovers without end: for liveness",
        bound_requests(3, ((1, 2),), _ask((1, 3), (2, 3)), Limits(2, 1, 1, None), term=2),
    ),
    _reference(
        "restless-requests",
        "three brokers, one partition; the same request again and again, two deaths: for liveness "
        "where asking again is a restart; otherwise nothing changes, and a goal is out of reach",
        bound_requests(3, ((1, 2),), _ask((1, 3)), Limits(None, 2)),
    ),
    _logs(
        "logs",
        "two brokers that keep logs of at most two records; one election, one lag, one removal",
        bound_logs(2, records=2, elections=1, lags=1, removals=1),
    ),
    _logs(
        "logs-again",
        "two brokers that keep logs of at most two records; two elections, one lag, one removal",
        bound_logs(2, records=2, elections=2, lags=1, removals=1),
    ),
    _logs(
        "logs-three",
        "three brokers that keep logs of at most two records; one election, three lags, three "
        "removals",
        bound_logs(3, records=2, elections=1, lags=3, removals=3),
    ),
    _logs(
        "logs-elections",
        "three brokers that keep logs of at most two records; two elections, one lag, one removal",
        bound_logs(3, records=2, elections=2, lags=1, removals=1),
    ),
    _reference(
        "promises",
        "what readers take for granted of a change: three brokers, two requests, one death, one "
        "lag, one failover",
        bound_requests(
            3, ((1, 2),), _ask((1, 3), (3, 1), (1, 2)), Limits(2, 1, 1, 1), promises=True
        ),
    ),
    _reference(
        "promises-four",
        "the same with four brokers and a change from one new replica to two",
        bound_requests(
            4, ((1, 2),), _ask((1, 3), (4, 3), (1, 2)), Limits(2, 1, 1, 1), promises=True
        ),
    ),
    _reference(
        "promises-calm",
        "as promises-four, with everything else waiting while the controller has something to do: "
        "traces that any controller can follow",
        bound_requests(
            4,
            ((1, 2),),
            _ask((1, 3), (4, 3), (1, 2), (1,)),
            Limits(2, 1, 1, 1),
            min_insync_replicas=2,
            promises=True,
            calm=True,
        ),
    ),
    _reference(
        "promises-growth",
        "the same where one replica is to become four",
        bound_requests(
            4, ((1,),), _ask((1, 2, 3, 4), (2,), (2, 3)), Limits(2, 1, 0, 1), promises=True
        ),
    ),
    _reference(
        "promises-one",
        "the same where one replica is to become two: four brokers, two requests, one death, one "
        "lag, one failover",
        bound_requests(4, ((2,),), _ask((1, 4), (1, 3)), Limits(2, 1, 1, 1), promises=True),
    ),
    _reference(
        "promises-min-two",
        "the same where two replicas have to be in sync and one target has one replica only",
        bound_requests(
            3,
            ((1, 2),),
            _ask((2, 3), (1, 3), (3,)),
            Limits(2, 1, 1, 1),
            min_insync_replicas=2,
            promises=True,
        ),
    ),
    _reference(
        "promises-chain",
        "the same with five brokers, a chain of two targets and two deaths",
        bound_requests(5, ((1, 2),), _ask((1, 3), (4, 5)), Limits(2, 2), promises=True),
    ),
    _moves(
        "moves",
        "KAFKA-42: a partition on two of three brokers; one command, one death, one failover, one "
        "interruption",
        CopiesWorld((1, 2), ((2, 3),), 3, deaths=1, failovers=1, interrupts=1),
    ),
    _moves(
        "moves-growth",
        "KAFKA-42: one replica that is to move or to become two; two commands, one death, one "
        "failover, one interruption",
        CopiesWorld((1,), ((2,), (1, 2)), 2, requests=2, deaths=1, failovers=1, interrupts=1),
    ),
    _moves(
        "moves-failover",
        "KAFKA-42: a partition on two of four brokers that moves to the others; one command, one "
        "death, one failover, no interruption",
        CopiesWorld((1, 2), ((3, 4),), 4, deaths=1, failovers=1),
    ),
    _moves(
        "moves-medium",
        "KAFKA-42: four brokers, two commands, two deaths, one failover, one interruption",
        CopiesWorld((1, 2), ((2, 3), (3, 4)), 4, requests=2, deaths=2, failovers=1, interrupts=1),
    ),
    _shipped(
        "shipped",
        "KIP-455: one replica, three brokers; two calls, one write of the old znode, one death "
        "and one failover",
        CopiesWorld(
            (1,),
            ((2, 3), (2,)),
            3,
            requests=2,
            deaths=1,
            failovers=1,
            entries=((), (2, 2)),
            writes=1,
        ),
    ),
    _shipped(
        "shipped-change",
        "KIP-455: one replica, three brokers; two calls, none of them a cancel, and one death",
        CopiesWorld((1,), ((3,), (2,)), 3, requests=2, deaths=1, cancels=False),
    ),
    _shipped(
        "shipped-medium",
        "KIP-455: a partition on two of four brokers; three calls, two deaths, one failover",
        CopiesWorld((1, 2), ((3, 4), (2, 4)), 4, requests=3, deaths=2, failovers=1),
    ),
    _healing(
        "healing",
        "KIP-46: a partition on two of three brokers; two deaths, one failover, at most four tasks",
        bound_healing(3, ((1, 2),), deaths=2, failovers=1, promises=False),
    ),
    _healing(
        "healing-promises",
        "the same, and what readers take for granted of tasks",
        bound_healing(3, ((1, 2),), deaths=2, failovers=1),
    ),
    _healing(
        "healing-medium",
        "KIP-46: two partitions on three of four brokers; two deaths, one failover",
        bound_healing(4, ((1, 2), (2, 3)), deaths=2, failovers=1, promises=False),
    ),
    _old_znode(
        "old-znode",
        "the old znode and requests by the new route: one replica, three brokers; two writes of "
        "the znode, one request, one failover",
        bound_routes(
            ((1,),), 3, (((2,),), ((3,),)), ((1,), (2,)), 2, 1, failovers=1, promises=False
        ),
    ),
    _old_znode(
        "old-znode-promises",
        "the same, and what readers take for granted of entries",
        bound_routes(((1,),), 3, (((2,),), ((3,),)), ((1,), (2,)), 2, 1, failovers=1),
    ),
    _old_znode(
        "old-znode-two",
        "both routes with two partitions, one of which the znode may leave out",
        bound_routes(
            ((1,), (2,)), 3, (((2,), (3,)), ((3,),)), ((1,),), 2, 1, failovers=1, promises=False
        ),
    ),
    _old_znode(
        "old-znode-medium",
        "both routes with two replicas; two writes of the znode, one request, one death, one "
        "failover",
        bound_routes(
            ((1, 2),),
            3,
            (((2, 3),), ((1, 3),)),
            ((1, 3), (1, 2)),
            2,
            1,
            deaths=1,
            failovers=1,
            promises=False,
        ),
    ),
)

SCOPES: Final[Mapping[str, Scope]] = MappingProxyType({scope.name: scope for scope in _ALL})
"""The standard scopes by name."""


def _make_tale(tale: Tale) -> Scope:
    return Scope(
        tale.name, tale.statement, lambda r: tale.make(r, tale.clause), tale.profile, is_whole=True
    )


def _make_meeting(meeting: Meeting) -> Scope:
    return Scope(meeting.name, meeting.summary, meeting.make, meeting.profile)


MEETINGS: Final[Mapping[str, Scope]] = MappingProxyType(
    {meeting.name: _make_meeting(meeting) for meeting in list_meetings()}
)
"""Small worlds in which protocols meet, by name."""
TALES: Final[Mapping[str, Scope]] = MappingProxyType(
    {tale.name: _make_tale(tale) for tale in list_tales()}
)
"""Small worlds in which one promise is broken, by name."""


def get_scope(name: str) -> Scope:
    """Return a scope, a standard one or a small world.

    Raises UnknownScope; the message lists those there are.
    """
    found = SCOPES.get(name) or MEETINGS.get(name) or TALES.get(name)
    if found is None:
        known = ", ".join((*SCOPES, *MEETINGS))
        raise UnknownScope(
            f"there is no scope {name!r}; the scopes are: {known}, and a small one for each of "
            "the findings (`reassure spec findings`)"
        )
    return found


def get_model(
    scope: str, profile: str, readings: Mapping[str, str] | None = None
) -> tuple[Readings, Model]:
    """Return the readings chosen and the model of a standard scope under them.

    `readings` overrides readings of the profile, by dotted name. Raises UnknownScope,
    UnknownReading and RefusedReading.
    """
    found = get_scope(scope)
    chosen = choose_readings(found.room, profile, readings or {})
    return chosen, found.make_model(chosen)


def explore_scope(
    scope: str = "small",
    profile: str = "kip-236",
    readings: Mapping[str, str] | None = None,
    **options: Any,
) -> Exploration:
    """Explore a standard scope; the options are those of `explore`.

    Raises what `get_model` and `explore` do.
    """
    chosen, model = get_model(scope, profile, readings)
    return explore(model, profile=profile, readings=chosen.as_dict(), **options)
