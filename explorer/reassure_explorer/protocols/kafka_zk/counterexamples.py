"""What readers take for granted of shipped controllers, and the traces that break it."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from reassure_explorer.counterexamples import Make, Meetings, SmallWorld, make_world
from reassure_model.environment import Controller, Failover
from reassure_model.protocols.kafka_zk import (
    Alter,
    AskDeletion,
    DeleteZnode,
    Shipped,
    WriteEntry,
    make_shipped,
)
from reassure_model.protocols.kafka_zk.machine import MACHINE
from reassure_spec.readings import Readings
from reassure_spec.znodes import ReplicaList


def _make_world(
    assigned: ReplicaList,
    target: ReplicaList,
    problem: str,
    targets: tuple[ReplicaList | None, ...] = (),
    *,
    entry: bool = False,
    calls: int = 1,
    deaths: int = 0,
    failovers: int = 0,
    then: tuple[Any, ...] = (),
    others: Callable[[Shipped], tuple[Any, ...]] = lambda _: (),
) -> Make:
    """Return the world that begins with a call for `target`, or an `entry` that names it.

    What is done `then` was done as well when it begins; `others` is what clients may do besides.
    """
    asked = (replica for other in targets for replica in other or ())
    brokers = frozenset({*assigned, *target, *asked})

    def make(readings: Readings, called: str) -> SmallWorld:
        return make_world(
            MACHINE,
            readings,
            {called: partial(MACHINE.find_broken, MACHINE.by_name[problem])},
            (WriteEntry(target) if entry else Alter(target), *then),
            make_shipped(assigned, brokers),
            sets={"targets": targets},
            times={"calls": calls, "writes": 1, "deaths": deaths, "failovers": failovers},
            without=("append", "return"),
            others=others,
        )

    return make


WORLDS: Final[Mapping[str, Make]] = {
    "story-cancel-keeps-last-copy": _make_world((1,), (2, 3), "deleted-in-sync", (None,), deaths=1),
    "story-change-keeps-last-copy": _make_world((1,), (3,), "deleted-in-sync", ((2,),), deaths=1),
    "story-leader-keeps-records": _make_world(
        (1,), (2, 3), "empty-leader", (None, (2,)), calls=2, deaths=1
    ),
    "story-cancelled-leaves-isr": _make_world(
        (1,), (2, 3), "outside-assigned", (None,), failovers=1
    ),
    "story-cancelled-is-stopped": _make_world((1,), (2,), "stray", (None,), failovers=1),
    "story-entry-not-for-ever": _make_world((1,), (2, 2), "entry-for-ever", entry=True),
    "story-empty-entry-keeps-records": _make_world((1,), (), "emptied-assignment", entry=True),
    "story-change-is-led": _make_world((1, 2), (3, 4), "leaderless", ((2, 4),), deaths=1),
    "story-somebody-can-lead-again": _make_world(
        (1,),
        (2,),
        "offline-for-good",
        calls=0,
        deaths=1,
        then=(*(Controller(),) * 4, Alter(None), Controller(), Failover()),
    ),
    "story-new-znode-is-heard-of": _make_world(
        (1,),
        (2,),
        "entry-for-ever",
        entry=True,
        then=(*(Controller(),) * 4, DeleteZnode()),
        others=lambda shipped: () if shipped.adding else (WriteEntry((1,)),),
    ),
}


# Calls, the old znode and deletion --------------------------------------------------------------


def _list_others(shipped: Shipped) -> tuple[Any, ...]:
    written = (WriteEntry(target, shipped.entry is None) for target in ((2,), (3,)))
    return (*written, AskDeletion())


def _meet(readings: Readings) -> SmallWorld:
    return make_world(
        MACHINE,
        readings,
        {each.clause: partial(MACHINE.find_broken, each) for each in MACHINE.properties},
        (),
        make_shipped((1,), frozenset({1, 2, 3})),
        sets={"targets": (None, (3,))},
        times={"calls": 1, "writes": 1, "deletions": 1, "deaths": 1, "failovers": 1},
        without=("append", "return"),
        others=_list_others,
    )


MEETINGS: Final[Meetings] = {"meeting-of-calls": _meet}
