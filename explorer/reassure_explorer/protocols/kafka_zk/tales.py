"""What readers take for granted of shipped controllers, and the stories that break it."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from reassure_explorer.promises import Meeting, SmallWorld, Tale, make_world
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


def _tale(
    name: str,
    clause: str,
    statement: str,
    finding: str,
    steps: int,
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
) -> Tale:
    """Return a tale that begins with a call for `target`, or an `entry` that names it.

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

    return Tale(name, clause, statement, finding, steps, "kafka-zk", make)


TALES: Final = (
    _tale(
        "story-cancel-keeps-last-copy",
        "shipped.isr.without-deleted",
        "With one death, a cancel deletes no log of a replica in sync.",
        "zk-1",
        13,
        (1,),
        (2, 3),
        "deleted-in-sync",
        (None,),
        deaths=1,
    ),
    _tale(
        "story-change-keeps-last-copy",
        "shipped.isr.without-deleted",
        "With one death, a change of the target deletes no log of a replica in sync.",
        "zk-9",
        11,
        (1,),
        (3,),
        "deleted-in-sync",
        ((2,),),
        deaths=1,
    ),
    _tale(
        "story-leader-keeps-records",
        "shipped.leader.holds-committed",
        "With one death, a cancel and one more call, a live leader has the committed records.",
        "zk-10",
        22,
        (1,),
        (2, 3),
        "empty-leader",
        (None, (2,)),
        calls=2,
        deaths=1,
    ),
    _tale(
        "story-cancelled-leaves-isr",
        "shipped.isr.within-assigned",
        "With one failover, whoever is in sync after a cancel is assigned.",
        "zk-2",
        9,
        (1,),
        (2, 3),
        "outside-assigned",
        (None,),
        failovers=1,
    ),
    _tale(
        "story-cancelled-is-stopped",
        "shipped.cancel.no-strays",
        "With one failover, whoever runs after a cancel is assigned.",
        "zk-3",
        7,
        (1,),
        (2,),
        "stray",
        (None,),
        failovers=1,
    ),
    _tale(
        "story-entry-not-for-ever",
        "shipped.entry.not-for-ever",
        "An entry of the old znode does not outlive its reassignment.",
        "zk-4",
        11,
        (1,),
        (2, 2),
        "entry-for-ever",
        entry=True,
    ),
    _tale(
        "story-empty-entry-keeps-records",
        "shipped.assigned.holds-committed",
        "An entry of the old znode leaves an assigned replica with the records.",
        "zk-5",
        7,
        (1,),
        (),
        "emptied-assignment",
        entry=True,
    ),
    _tale(
        "story-change-is-led",
        "shipped.change.led",
        "With one death, a partition whose target changes has a leader if somebody can lead.",
        "zk-6",
        15,
        (1, 2),
        (3, 4),
        "leaderless",
        ((2, 4),),
        deaths=1,
    ),
    _tale(
        "story-somebody-can-lead-again",
        "shipped.isr.electable",
        "With one failover and one death, somebody can lead once all brokers are back.",
        "zk-11",
        3,
        (1,),
        (2,),
        "offline-for-good",
        calls=0,
        deaths=1,
        then=(*(Controller(),) * 4, Alter(None), Controller(), Failover()),
    ),
    _tale(
        "story-new-znode-is-heard-of",
        "shipped.entry.created-only",
        "An entry of a znode that is created is carried out, whoever deleted the one before.",
        "zk-12",
        8,
        (1,),
        (2,),
        "entry-for-ever",
        entry=True,
        then=(*(Controller(),) * 4, DeleteZnode()),
        others=lambda shipped: () if shipped.adding else (WriteEntry((1,)),),
    ),
)


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


MEETINGS: Final = (
    Meeting(
        "meeting-of-calls",
        "calls, the old znode and a deletion: one replica, three brokers; each once, one death, "
        "one failover",
        "kafka-zk",
        _meet,
    ),
)
