"""Which paths the judge takes for a cluster's, and which names for ids."""

from itertools import product
from typing import Any

import pytest
from history_steps import win

from reassure_judge import history
from reassure_judge.judge import Judge
from reassure_judge.protocols import make_rules
from reassure_judge.trees import gather
from reassure_spec import znodes
from reassure_spec.readings import get_profile
from reassure_zookeeper.transactions import Create, Delete, SetData, committed

NAMES = ("controller", "controller_epoch", "brokers", "config", "admin", "ids", "topics")
"""Names of a cluster's own znodes, given by users to things of theirs."""
PLACES = (
    "/consumers/{}",
    "/consumers/{}/ids",
    "/consumers/{}/ids/{}",
    "/consumers/{}/owners/{}",
    "/consumers/{}/offsets/{}/0",
    "/config/users/{}",
    "/config/users/{}/clients/{}",
    "/config/clients/{}",
    "/brokers/topics/{}/partitions",
    "/admin/delete_topics/{}",
    "/admin/reassignments/{}",
    "/kafka-acl/Topic/{}",
    "/kafka-acl/Group/{}",
    "/kafka-acl-extended/prefixed/Topic/{}",
    "/isr_change_notification/{}",
    "/schema_registry/{}",
    "/elsewhere/{}/{}",
)
STRANGE = (
    *("²", "٣", "-1", "+1", " 1", "1 ", "01", "1\n", "1_0", "0x1", "1e3", "2147483648", "9" * 5000),
    *("x", "\x00", "\x85", "\ud800", "None"),
)
"""Names that are no id and no partition, though Python would read some of them as a number."""
NUMBERED = (
    "/brokers/ids/{}",
    "/config/brokers/{}",
    "/brokers/topics/orders/partitions/{}/state",
    "/admin/reassignments/orders/{}",
)


@pytest.mark.parametrize("chroot", ["", "/kafka"])
@pytest.mark.parametrize("data", [b"", b"\x00", b'{"version":1}', b"null"])
def test_users_names_make_no_cluster(make_simulation: Any, chroot: str, data: bytes) -> None:
    """Whatever users call their groups, topics and users, no other cluster is seen, and no fault.

    The names are written beside a cluster that works, changed and deleted again.
    """
    simulation = make_simulation(chroot=chroot)
    simulation.start()
    for place, name in product(PLACES, NAMES):
        path = chroot + place.replace("{}", name)
        simulation.write(Create(path, data), session=70)
        simulation.write(SetData(path, data, 1), session=70)
        simulation.write(Delete(path), session=70)
    simulation.judge.quiesce(chroot)
    assert simulation.broken() == []
    assert simulation.judge.router.shown() == {chroot}
    assert simulation.judge.report().partitions == 1


@pytest.mark.parametrize("name", NAMES)
def test_topic_may_have_any_name(make_simulation: Any, name: str) -> None:
    """A topic that is called like a cluster's own znode is judged like any other."""
    simulation = make_simulation()
    simulation.start()
    assigned = znodes.encode_topic({0: (1, 2)})
    simulation.write(Create(znodes.topic_path(name), assigned), session=1)
    assert set(simulation.judge.view().partitions) == {("orders", 0), (name, 0)}
    assert simulation.broken() == []


@pytest.mark.parametrize("tail", ["controller", "controller_epoch"])
def test_foreign_tree_is_no_cluster(tail: str) -> None:
    """A tree that has nothing but a znode of a controller's name is not held to any rule."""
    judge = Judge("kip-236", get_profile("kip-236"))
    for zxid in range(1, 20):
        judge.feed(committed(Create(f"/foreign/{tail}", b"{}"), zxid=zxid))
    assert judge.report().violations == ()
    assert judge.router.shown() == set()


ELECTIONS = (
    Create(znodes.CONTROLLER_EPOCH, b"0"),
    *win(1, 1, 0),
    SetData(znodes.CONTROLLER_EPOCH, b"3", 1),
)


def find_broken(place: int) -> list[tuple[str, int]]:
    """Return clause and step of what is wrong with the elections, the sign being seen at a place.

    Steps are counted without the sign.
    """
    judge = Judge("kip-236", get_profile("kip-236"))
    for zxid, op in enumerate(ELECTIONS):
        if zxid == place:
            judge.feed(committed(Create(znodes.BROKER_IDS, b""), zxid=zxid))
        judge.feed(committed(op, zxid=zxid))
    judge.feed(committed(Create(znodes.BROKER_IDS, b""), zxid=len(ELECTIONS)))
    return [(violation.clause, violation.zxid) for violation in judge.violations]


@pytest.mark.parametrize("place", range(1, len(ELECTIONS) + 1))
def test_what_came_before_the_sign_is_judged(place: int) -> None:
    """What is wrong with an election is found, the sign of a cluster coming before or after."""
    assert find_broken(place) == find_broken(0)
    assert ("controller.election.atomic", 1) in find_broken(place)


@pytest.mark.parametrize("place", NUMBERED)
@pytest.mark.parametrize("name", STRANGE)
def test_strange_numbers_are_nobody(simulation: Any, place: str, name: str) -> None:
    """A name that Kafka would not write is neither a broker nor a partition, and no error of ours.

    In the tree of reassignments it is foreign, and has to be removed.
    """
    before = simulation.judge.view()
    path = place.format(name)
    for data in (b"", b"{}", znodes.encode_reassignment(znodes.ReassignmentZnode(2, (1, 2)))):
        simulation.write(Create(path, data), session=70)
    assert simulation.judge.view() == before
    simulation.judge.quiesce()
    foreign = place.startswith(znodes.REASSIGNMENTS)
    assert [clause for clause, _ in simulation.broken()] == ["child.foreign-removed"] * foreign
    simulation.write(Delete(path), session=70)


@pytest.mark.parametrize("fenced", [True, False])
def test_child_that_is_no_partition_is_foreign_whoever_wrote_it(
    simulation: Any, fenced: bool
) -> None:
    """A record for no partition has to go also where the controller itself wrote it."""
    path = f"{znodes.REASSIGNMENTS}/orders/first"
    simulation.write(Create(path, b"{}"), session=900, fenced=fenced)
    simulation.judge.quiesce()
    assert [clause for clause, _ in simulation.broken()] == ["child.foreign-removed"]


@pytest.mark.parametrize("name", STRANGE)
def test_strange_numbers_in_a_snapshot(name: str) -> None:
    """Strange names that a snapshot holds are passed over just the same."""
    router = make_rules("kip-236", get_profile("kip-236")).make_router()
    nodes = [(place.format(name), b"{}", 0) for place in NUMBERED]
    seen = router.load([("/brokers/ids", b"", 0), *nodes])
    assert [type(observation.event).__name__ for observation in seen] == ["BadRequestSeen"]


def test_write_of_the_root_is_told_beside_a_chroot() -> None:
    """Only what leads to a cluster is taken out of what was not judged, and the root was there."""
    assert gather({"/": 1, "/kafka": 1, "/lock": 1}, ["/kafka", "/kafka/one"]) == {
        "/": 1,
        "/lock": 1,
    }


@pytest.mark.parametrize("kept", range(1, 5))
def test_what_is_kept_back_no_longer_leaves_no_debt(
    monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    """However little is kept back of what came before the sign, requests may come and go in it."""
    monkeypatch.setattr(history, "_KEPT_BACK", kept)
    judge = Judge("kip-236", get_profile("kip-236"))
    request = znodes.encode_request(znodes.RequestZnode({("orders", 0): (1, 2)}))
    ops = [Create(znodes.request_path(n), request) for n in range(2)]
    ops += [Delete(znodes.request_path(n)) for n in range(2)]
    for zxid, op in enumerate([*ops, Create(znodes.BROKER_IDS, b"")]):
        judge.feed(committed(op, zxid=zxid))
    judge.quiesce()
    assert judge.report().violations == ()
