"""A cluster of processes under random faults: the plan, the checker, and one minute of it."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast, get_args

import pytest
from kazoo.handlers.threading import KazooTimeoutError

from reassure_conformance.cli import run_command
from reassure_controller import plan
from reassure_lab.cluster.state_file import MemberState, Role
from reassure_lab.soak.checker import check_logs, check_marks
from reassure_lab.soak.judging import merge_logs
from reassure_lab.soak.leftovers import check_files, check_znodes, expect_znodes
from reassure_lab.soak.members import LAG_MS, SESSION_S, Shape, plant
from reassure_lab.soak.operations import SeenMark, Value
from reassure_lab.soak.quiescence import FIND_S, Quiescence
from reassure_lab.soak.schedule import (
    BROKERS,
    LEAST_STRIKES,
    MOST_DOWN,
    POINTS,
    NoRoom,
    draw,
    role_of,
)
from reassure_spec.znodes import StateZnode, encode_state, encode_topic, state_path, topic_path
from reassure_zookeeper.transactions import SetData, committed
from reassure_zookeeper.txnlog import read_logs
from reassure_zookeeper.txnlog_writer import write_log

MEMBERS = [
    *(f"broker-{number}" for number in range(1, 6)),
    *("controller-101", "controller-102"),
    *(f"zookeeper-{number}" for number in range(1, 4)),
]
KEY = ("t", 0)


def test_seed_repeats_the_plan() -> None:
    """The same seed gives the same faults, another one others, and all the kills asked for."""
    first, again, other = (draw(seed, 600, 200, MEMBERS) for seed in (1, 1, 2))
    assert first == again != other
    assert sum(fault.kind == "kill" for fault in first.faults) == 200
    assert {fault.kind for fault in first.faults} == {"kill", "pause", "cut", "half-open", "slow"}


def test_plan_leaves_enough_members() -> None:
    """Never are more members of a role away than the cluster can do without."""
    faults = draw(3, 600, 200, MEMBERS).faults
    for fault in faults:
        away = [
            role_of(one.member)
            for one in faults
            if one.kind in ("kill", "pause") and one.at_s <= fault.at_s < one.at_s + one.for_s
        ]
        assert all(away.count(role) <= most for role, most in MOST_DOWN.items())


def test_plan_has_leaders_die_when_logs_differ() -> None:
    """Leaders die when a broker has long fetched nothing, for longer than a session.

    The broker is cut off until then, and for a moment nobody fetches from the leader either.
    """
    faults = draw(3, 60, 14, MEMBERS).faults
    cuts = [fault for fault in faults if fault.peer == BROKERS]
    kills = [fault for fault in faults if fault.behind]
    assert len(cuts) == len(kills) == LEAST_STRIKES
    for cut, kill in zip(cuts, kills, strict=True):
        assert (cut.kind, kill.kind, cut.member) == ("cut", "kill", kill.behind)
        assert kill.at_s > cut.at_s + 1.5 * LAG_MS / 1000
        assert 0 < kill.alone_s < LAG_MS / 1000
        assert cut.ends_s > kill.at_s + kill.alone_s
        assert kill.for_s > SESSION_S


class Stored:
    """A client of ZooKeeper that is given what is stored; without anything nobody answers."""

    def __init__(self, content: Mapping[str, bytes]) -> None:
        self._content = content
        self.waited: list[float] = []

    def get_async(self, path: str) -> SimpleNamespace:
        """Ask."""

        def get(timeout: float) -> tuple[bytes, None]:
            self.waited.append(timeout)
            if path not in self._content:
                raise KazooTimeoutError
            return self._content[path], None

        return SimpleNamespace(get=get)


@pytest.mark.parametrize(
    ("isr", "found"), [((3, 1), "broker-3"), ((1, 2, 3), None), ((3,), None), ((3, 2), None)]
)
def test_leader_over_one_that_is_behind_is_found(isr: tuple[int, ...], found: str | None) -> None:
    """It is one that somebody in sync can follow, who is assigned behind the one out of sync."""
    stored = {
        topic_path("t"): encode_topic({0: (2, 3, 1)}),
        state_path("t", 0): encode_state(StateZnode(3, 0, 1, isr)),
    }
    assert Quiescence(cast("Any", Stored(stored)), [KEY], {}).find_leader("broker-2") == found


def test_nobody_waits_long_to_find_a_leader() -> None:
    """While no server answers nobody is found at once: who asks has to bring servers back."""
    client = Stored({})
    assert Quiescence(cast("Any", client), [KEY], {}).find_leader("broker-2") is None
    assert client.waited == [FIND_S]


def test_too_many_kills_are_refused() -> None:
    """A plan that does not fit into its time says so."""
    with pytest.raises(NoRoom, match="give more --seconds"):
        draw(1, 10, 200, MEMBERS)


def test_members_are_started_with_faults_of_their_role() -> None:
    """A broker's process has the faults of brokers, a controller's its own, ZooKeeper none."""
    shape = Shape(
        broker_faults=["laggard-kept"], controller_faults=["drop-skipped", "no-epoch-check"]
    )
    program = ("python", "-P", "-m", "module", "--id", "1")
    found = {
        role: plant(MemberState("m", role, 1, None, program), shape).command[3:-2]
        for role in get_args(Role)
    }
    planting = "reassure_conformance.mutants"
    assert found["broker"] == (planting, "laggard-kept", "--", "module")
    assert found["controller"] == (planting, "drop-skipped", "no-epoch-check", "--", "module")
    assert found["zookeeper"] == ("module",)


def test_points_are_those_of_effects() -> None:
    """Every point at which a controller may be told to end itself is one that plans have."""
    folder = Path(plan.__file__).parent
    text = "".join(path.read_text("utf-8") for path in folder.rglob("*.py"))
    assert [point for point in POINTS if f'"{point}"' not in text] == []


LOGS: Mapping[tuple[str, int], list[bytes]] = {KEY: [b"a/", b"b/", b"c/"]}


@pytest.mark.parametrize(
    ("offset", "value", "told"),
    [(1, b"b/", ""), (1, b"x/", "there is b"), (3, b"d/", "there is nothing")],
)
def test_lost_and_changed_records_are_named(offset: int, value: bytes, told: str) -> None:
    """A record that is acknowledged, or was read, has to be at its offset with its value."""
    seen = [Value(KEY, offset, value, "producer-1")]
    found = [*check_logs(seen, [], LOGS), *check_logs([], seen, LOGS)]
    assert [told in breach.what for breach in found] == ([True, True] if told else [])


@pytest.mark.parametrize(
    ("marks", "count"), [((1, 3, 3), 0), ((2, 1, 3), 1), ((4,), 1)], ids=["kept", "back", "beyond"]
)
def test_mark_that_goes_back_is_named(marks: tuple[int, ...], count: int) -> None:
    """A mark may not fall, neither for one consumer nor below what was shown in the end."""
    assert len(list(check_marks([SeenMark(KEY, one, "c") for one in marks], LOGS))) == count


def test_what_is_left_is_named(tmp_path: Path) -> None:
    """A znode or a log that nobody needs is a breach, and so is one that is missing."""
    expected = expect_znodes([KEY])
    assert list(check_znodes(expected, expected)) == []
    assert len(list(check_znodes({"/left"}, expected))) == len(expected) + 1
    for name in ("t-0", "t-1"):
        (tmp_path / name).mkdir()
    (breach,) = check_files({1: tmp_path}, {KEY: (1, 2)})
    assert "t-1 has stayed" in breach.what


def test_majority_makes_the_merged_log(tmp_path: Path) -> None:
    """What one server alone has logged never came about; what one lacks it was sent otherwise."""
    made = {zxid: committed(SetData("/a", b"%d" % zxid, zxid), zxid=zxid) for zxid in range(1, 6)}
    for name, zxids in (("a", (1, 2, 3)), ("b", (1, 2, 4)), ("c", (2, 4))):
        (tmp_path / name).mkdir()
        write_log(tmp_path / name, [made[zxid] for zxid in zxids])
    merge_logs([tmp_path / name for name in "abc"], tmp_path / "merged")
    assert [one.zxid for one in read_logs(tmp_path / "merged")] == [1, 2, 4]


@pytest.mark.slow
def test_a_minute_of_faults(tmp_path: Path) -> None:
    """Under a minute of kills, pauses and cuts nothing that clients were promised is broken.

    Targets are left alone while a partition is on its way: see what docs/lab.md says of that.
    """
    said: list[str] = []
    words = ["lab", "soak", "--seconds", "60", "--seed", "2", "--format", "json"]
    code = run_command([*words, "--out", str(tmp_path / "run")], said.append)
    report = json.loads(said[-1])
    assert (code, report["breaches"], report["unknown"]) == (0, [], [])
    counts = report["counts"]
    for name in ("kills_broker", "kills_controller", "kills_zookeeper", "pauses", "cuts"):
        assert counts[name] > 0
    assert min(counts["acknowledged"], counts["moves_ended"], counts["judged_observations"]) > 0
