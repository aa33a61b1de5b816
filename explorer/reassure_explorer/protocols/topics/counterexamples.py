"""What readers take for granted of the deletion of topics, and the traces that break it."""

from collections.abc import Mapping
from typing import Final

from reassure_explorer.counterexamples import Make, Meetings, SmallWorld, make_world
from reassure_model.protocols.topics import Ask, Reassign, make_topic
from reassure_model.protocols.topics.machine import MACHINE
from reassure_spec.readings import Readings


def _make(readings: Readings, called: str) -> SmallWorld:
    return make_world(
        MACHINE,
        readings,
        {called: MACHINE.by_name["orphan-config"].find},
        (Ask(),),
        make_topic((), frozenset({1})),
        times={"deletions": 1, "failovers": 1},
        closing=("show",),
    )


def _make_moved(readings: Readings, called: str) -> SmallWorld:
    return make_world(
        MACHINE,
        readings,
        {called: MACHINE.by_name["deleted-while-moved"].find},
        (Reassign(0), Ask()),
        make_topic(((1,),), frozenset({1})),
    )


WORLDS: Final[Mapping[str, Make]] = {
    "story-configuration-goes-with-topic": _make,
    "story-deletion-waits": _make_moved,
}


# A deletion while partitions are moved ----------------------------------------------------------


def _meet(readings: Readings) -> SmallWorld:
    return make_world(
        MACHINE,
        readings,
        {each.clause: each.find for each in MACHINE.properties},
        (),
        make_topic(((1,),), frozenset({1, 2})),
        sets={"partitions": (0,), "lists": ((2,),), "brokers": (1, 2)},
        times={"deletions": 1, "reassignments": 1, "growths": 1, "deaths": 1, "failovers": 1},
        closing=("show",),
    )


MEETINGS: Final[Meetings] = {"meeting-of-deletion": _meet}
