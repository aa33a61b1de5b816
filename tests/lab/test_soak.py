"""A cluster of processes under random faults: the plan, the checker, and one minute of it."""

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast, get_args

import pytest
from kazoo.handlers.threading import KazooTimeoutError

from reassure_conformance.cli import run_command
from reassure_conformance.mutants.exchange import prepare
from reassure_controller import plan
from reassure_controller.storage.records import Record, encode
from reassure_lab.cluster.state_file import MemberState, Role
from reassure_lab.soak import one_soak, workload
from reassure_lab.soak.checker import LATE_MS, LEARN_MS, REFUSALS, check_history
from reassure_lab.soak.guarantees import GUARANTEES, Breach, SoakFindings, shorten
from reassure_lab.soak.judging import merge_logs
from reassure_lab.soak.leftovers import (
    MIB,
    MemorySamples,
    Sample,
    check_files,
    check_znodes,
    expect_znodes,
)
from reassure_lab.soak.members import LAG_MS, SESSION_S, Shape, plant
from reassure_lab.soak.operator import Wanted
from reassure_lab.soak.own_mistakes import find_patches, load_faults
from reassure_lab.soak.quiescence import FIND_S, Quiescence, find_misplaced
from reassure_lab.soak.replicas import compare_replicas
from reassure_lab.soak.schedule import (
    ALL,
    BROKERS,
    LEAST_STRIKES,
    MOST_DOWN,
    OPERATION_S,
    OPERATIONS,
    POINTS,
    STARVED_S,
    Kind,
    NoRoom,
    draw,
    role_of,
)
from reassure_lab.soak.seen_events import (
    READER,
    Event,
    HistoryWriter,
    make_value,
    parse_value,
    read_history,
)
from reassure_spec.znodes import (
    NO_LEADER,
    StateZnode,
    encode_state,
    encode_topic,
    state_path,
    topic_path,
)
from reassure_zookeeper.transactions import SetData, committed
from reassure_zookeeper.txnlog import log_files, read_log, read_logs
from reassure_zookeeper.txnlog_writer import write_log

ALONE = pytest.mark.skipif(
    "PYTEST_XDIST_WORKER" in os.environ,
    reason="memory and lags are judged by the clock, so other tests make it red: "
    "pytest tests/lab/test_soak.py",
)
MEMBERS = [
    *(f"broker-{number}" for number in range(1, 6)),
    *("controller-101", "controller-102"),
    *(f"zookeeper-{number}" for number in range(1, 4)),
]
KEY = ("t", 0)


def test_seed_repeats_the_plan() -> None:
    """The same seed gives the same faults, another one others, and all the kills asked for."""
    first, again, other = (draw(seed, 600, 200, MEMBERS, full_disks=True) for seed in (1, 1, 2))
    assert first == again != other
    assert sum(fault.kind == "kill" for fault in first.faults) == 200
    assert {fault.kind for fault in first.faults} == {*get_args(Kind)}
    wide = {fault.member for fault in first.faults if fault.member.startswith(ALL)}
    assert wide == {"all brokers", "all zookeepers"}
    asked = Counter((one.kind, one.size) for one in first.operations)
    assert min(asked[one] for one in OPERATIONS) == 600 // OPERATION_S


def test_plan_leaves_enough_members() -> None:
    """Never are more members of a role away than the cluster can do without."""
    faults = draw(3, 600, 200, MEMBERS).faults
    for fault in faults:
        away = [
            role_of(one.member)
            for one in faults
            if one.kind in ("kill", "pause")
            and not one.member.startswith(ALL)
            and one.at_s <= fault.at_s < one.at_s + one.for_s
        ]
        assert all(away.count(role) <= most for role, most in MOST_DOWN.items())


def test_brokers_are_replaced_under_a_profile_with_healing() -> None:
    """What is asked of healing is asked where the profile has it."""
    assert (Shape().heals, Shape(profile="kip-46").heals) == (False, True)


@pytest.mark.parametrize("replicas", [(1, 2), (1, 3)])
def test_broker_that_is_not_replaced_is_a_breach(
    replicas: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that stays away has to be replaced everywhere, before it is brought back."""
    monkeypatch.setattr(one_soak, "SETTLE_S", 0.0)
    settings = one_soak.SoakSettings(1, 60, 14, shape=Shape(brokers=2))
    soak = one_soak.Soak(settings, tmp_path, lambda *_: None)
    done: list[str] = []
    faults = SimpleNamespace(keep_away=done.append, bring_back=done.append)
    soak._let_heal(
        cast("Any", faults), cast("Any", SimpleNamespace(read_assigned=lambda: {KEY: replicas}))
    )
    assert done == ["broker-2", "broker-2"]
    assert [one.guarantee for one in soak._breaches] == ["failures-healed"] * (2 in replicas)


def test_partition_may_be_where_healing_put_it() -> None:
    """A partition is where it was asked to be last, or where a task of healing has put it."""
    wanted: Wanted = {KEY: {(1, 2), (1, 3)}}
    places = ((1, 3), (4, 2), (4, 3))
    found = [[*find_misplaced({KEY: one}, wanted, {KEY: {(4, 2)}})] for one in places]
    assert [len(one) for one in found] == [0, 0, 1]
    assert found[2][0].what == "t-0 is on [4, 3], asked for was [1, 2] or [1, 3]"


def test_plan_has_leaders_die_when_logs_differ() -> None:
    """Leaders die when a broker has long fetched nothing, for longer than a session.

    The broker is cut off until then, and for a moment nobody fetches from the leader either.
    """
    faults = draw(3, 60, 14, MEMBERS).faults
    cuts = [fault for fault in faults if fault.peer == BROKERS and fault.for_s != STARVED_S]
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
    ("leader", "isr", "found"),
    [
        (3, (3, 1), "broker-3"),
        (3, (1, 2, 3), None),
        (3, (3,), None),
        (3, (3, 2), None),
        (NO_LEADER, (3, 1), None),
    ],
)
def test_leader_over_one_that_is_behind_is_found(
    leader: int, isr: tuple[int, ...], found: str | None
) -> None:
    """It is one that somebody in sync can follow, who is assigned behind the one out of sync."""
    stored = {
        topic_path("t"): encode_topic({0: (2, 3, 1)}),
        state_path("t", 0): encode_state(StateZnode(leader, 0, 1, isr)),
    }
    assert (
        Quiescence(cast("Any", Stored(stored)), ["t"], [KEY], {}).find_leader("broker-2") == found
    )


def test_nobody_waits_long_to_find_a_leader() -> None:
    """While no server answers nobody is found at once: who asks has to bring servers back."""
    client = Stored({})
    assert Quiescence(cast("Any", client), ["t"], [KEY], {}).find_leader("broker-2") is None
    assert client.waited == [FIND_S]


def test_too_many_kills_are_refused() -> None:
    """A plan that does not fit into its time says so."""
    with pytest.raises(NoRoom, match="give more --seconds"):
        draw(1, 10, 200, MEMBERS)


def test_plan_of_one_kill_has_it() -> None:
    """Where all faults are those of a time of their own, nothing else is drawn."""
    kills = [fault for fault in draw(13, 170, 1, MEMBERS).faults if fault.kind == "kill"]
    assert kills


def test_members_are_started_with_faults() -> None:
    """The process of a broker or a controller has the mistakes asked for, ZooKeeper none."""
    shape = Shape(faults=["batch-doubled", "drop-skipped"])
    program = ("python", "-P", "-m", "module", "--id", "1")
    found = {
        role: plant(MemberState("m", role, 1, None, program), shape).command[3:-2]
        for role in get_args(Role)
    }
    planted = ("reassure_lab.soak.own_mistakes", "batch-doubled", "drop-skipped", "--", "module")
    assert found == {"broker": planted, "controller": planted, "zookeeper": ("module",)}


def test_points_are_those_of_effects() -> None:
    """Every point at which a controller may be told to end itself is one that plans have."""
    folder = Path(plan.__file__).parent
    text = "".join(path.read_text("utf-8") for path in folder.rglob("*.py"))
    assert [point for point in POINTS if f'"{point}"' not in text] == []


def tell(*rows: tuple[Any, ...]) -> list[Event]:
    """Return events of the partition from rows: time, who, did, and what else by name."""
    return [Event(at, who, did, *KEY, **(more[0] if more else {})) for at, who, did, *more in rows]


def make_clean(who: str = "all-1", count: int = 4) -> list[Event]:
    """Return a history in which nothing is wrong: sent, acknowledged, shown, and there."""
    run = {"n": 0, "count": count}
    return tell(
        (0, "zookeeper", "state", {"count": 3, "of": "1"}),
        (1, who, "sent", run),
        (2, who, "acked", {**run, "offset": 0}),
        (2, "consumer-1", "read", {**run, "offset": 0, "of": who}),
        (90_000, READER, "read", {**run, "offset": 0, "of": who}),
        (90_001, READER, "end", {"offset": count}),
    )


def change(events: list[Event], did: str, who: str | None = None, **more: Any) -> list[Event]:
    """Return a history in which one kind of line says something else."""
    return [
        replace(one, **more) if one.did == did and who in (None, one.who) else one for one in events
    ]


def swap(events: list[Event]) -> list[Event]:
    """Return a history in which the first two records stand the other way round."""
    kept = [one for one in events if one.did not in ("read", "acked")]
    runs = ((1, 0, 1), (0, 1, 1), (2, 2, 2))
    return kept + tell(
        *(
            (at, who, did, {"n": n, "count": count, "offset": offset, "of": of})
            for n, offset, count in runs
            for at, who, did, of in ((2, "all-1", "acked", ""), (90_000, READER, "read", "all-1"))
        )
    )


CLEAN = make_clean()
LATE = 5 * LATE_MS
BELOW = [
    replace(CLEAN[0], count=1),
    *(replace(one, at_ms=one.at_ms + LEARN_MS) for one in CLEAN[1:]),
]
ANOMALIES: Mapping[str, tuple[str, list[Event]]] = {
    "lost": ("acknowledged-kept", change(CLEAN, "read", count=3)),
    "at another offset": ("acknowledged-kept", change(CLEAN, "acked", offset=1)),
    "not to be read": ("acknowledged-kept", change(CLEAN, "end", what="up to 3 only")),
    "doubled": (
        "sent-once",
        [*CLEAN, *tell((9, READER, "read", {"count": 1, "offset": 4, "of": "all-1"}))],
    ),
    "doubled by an idempotent one": (
        "idempotent-once",
        [
            *make_clean("once-1"),
            *tell((9, READER, "read", {"count": 1, "offset": 4, "of": "once-1"})),
        ],
    ),
    "reordered": ("in-order", swap(CLEAN)),
    "altered": ("unaltered", [*CLEAN, *tell((9, "consumer-1", "altered", {"offset": 2}))]),
    "never sent": ("unaltered", change(CLEAN, "sent", count=3)),
    "seen and vanished": ("seen-stays", change(CLEAN, "read", READER, count=3)),
    "seen and another": ("seen-stays", change(CLEAN, "read", "consumer-1", n=1, count=1)),
    "shown past the mark": (
        "shown-when-committed",
        change(make_clean("lone-1"), "acked", at_ms=LATE),
    ),
    "acknowledged by too few": ("minimum-kept", BELOW),
}


@pytest.mark.parametrize("name", ANOMALIES)
def test_anomaly_of_a_history_is_named(name: str) -> None:
    """A history with one thing wrong breaks the guarantee that is about it."""
    guarantee, events = ANOMALIES[name]
    assert guarantee in {one.guarantee for one in check_history(events, 2).breaches}


@pytest.mark.parametrize("who", workload.PRODUCERS)
def test_clean_history_breaks_nothing(who: str) -> None:
    """A history of any producer in which nothing is wrong is told to be so."""
    assert check_history(make_clean(who), 2).breaches == []


def test_what_may_be_so_breaks_nothing() -> None:
    """Lost with acks=1, twice when sent twice, late where somebody stood still: all allowed."""
    lost = change(make_clean("one-1"), "read", READER, count=3)
    lost = change(lost, "read", "consumer-1", count=3)
    again = tell(
        (3, "all-1", "failed", {"n": 3, "count": 1, "what": REFUSALS[0]}),
        (4, "all-1", "sent", {"n": 3, "count": 1}),
        (9, READER, "read", {"n": 3, "count": 1, "offset": 4, "of": "all-1"}),
    )
    stood = [Event(1, "broker-1", "pause"), Event(LATE, "broker-1", "resume")]
    late = [*change(make_clean("lone-1"), "acked", at_ms=LATE), *stood]
    for events in (lost, sorted([*CLEAN, *again], key=lambda one: one.at_ms), late):
        assert check_history(events, 2).breaches == []
    assert check_history(lost, 2).tests["acknowledged-kept"]["lost of acks=1"] == 1


def test_order_is_that_of_one_client() -> None:
    """What a client had on its way that was given up may come behind what the next one sends."""
    events = [replace(one, at_ms=6) if one.did == "sent" else one for one in swap(CLEAN)]
    late = next(one for one in events if one.did == "sent")
    first, rest = replace(late, at_ms=3, count=1), replace(late, n=1, count=late.count - 1)
    events = [one for one in events if one is not late] + [first, rest]
    began = [Event(2, "all-1", "began"), Event(5, "all-1", "began")]
    assert check_history([*events, *began], 2).breaches == []
    found = check_history([*events, began[0]], 2).breaches
    assert {one.guarantee for one in found} == {"in-order"}


def test_each_guarantee_says_how_often_it_was_tested() -> None:
    """What puts guarantees to the test is counted: changes and kills of leaders, and refusals."""
    more = tell(
        (1, "zookeeper", "state", {"count": 1, "of": "2"}),
        (5, "all-1", "sent", {"n": 4, "count": 1}),
        (6, "all-1", "failed", {"n": 4, "count": 1, "what": REFUSALS[0]}),
        (LEARN_MS + 9, "all-1", "sent", {"n": 5, "count": 1}),
    )
    kills = [Event(2, "broker-2", "kill"), Event(3, "broker-1", "kill")]
    found = check_history(sorted([*CLEAN, *more, *kills], key=lambda one: one.at_ms), 2)
    assert found.breaches == []
    told = found.tests["acknowledged-kept"]
    names = ("acknowledged by acks=all", "leader changes", "kills of a leader")
    assert [told[name] for name in names] == [4, 1, 1]
    assert found.tests["minimum-kept"] == {"times below it": 1, "refused then": 1}


def test_untested_guarantee_is_not_kept() -> None:
    """Without a kill nothing is said of what was acknowledged; what was not asked for is told."""
    found = check_history([*CLEAN, Event(5, "once", "skipped", what="no such request")], 2)
    assert found.judge("acknowledged-kept") == "not put to the test"
    assert found.find_untested("acknowledged-kept") == ["leader changes", "kills of a leader"]
    assert (found.judge("unaltered"), found.judge("idempotent-once")) == ("kept", "not asked")
    assert found.describe("idempotent-once") == "no such request"
    found.break_it("unaltered", "it was")
    assert found.judge("unaltered") == "violated"


def test_client_that_breaks_leaves_no_verdict() -> None:
    """A client that ended by itself is told, as what it would have seen is not known."""
    assert check_history([Event(1, "consumer-1", "broke", what="x")], 2).unknown != []


def test_history_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Records one behind the other are one line; a line that was not finished is left out."""
    path = tmp_path / "h.ndjson"
    with HistoryWriter.open(path) as history:
        history.write(Event(5, "all-1", "acked", *KEY, n, 1, n + 7) for n in range(3))
        history.note("broker-1", "kill", "9 s")
    with path.open("a") as more:
        more.write('{"at_ms": 3, "wh')
    acked, killed = read_history([path])
    assert acked == Event(5, "all-1", "acked", *KEY, 0, 3, 7)
    assert (killed.who, killed.did, killed.what) == ("broker-1", "kill", "9 s")


def test_altered_content_is_no_record() -> None:
    """Any other byte, or a record of another partition, is noticed."""
    value = make_value("all-1", KEY, 12)
    assert parse_value(KEY, value) == ("all-1", 12)
    assert parse_value(("t", 1), value) is None
    changed = (value[:at] + b"!" + value[at + 1 :] for at in range(len(value)))
    assert {parse_value(KEY, one) for one in changed} == {None}


def test_replicas_are_compared_byte_by_byte(tmp_path: Path) -> None:
    """Where segments begin makes no difference; a byte, or a missing batch, below the mark does."""
    batches = [encode([Record(None, b"%d" % n)], n, 0, 0) for n in range(3)]
    files = {1: [b"".join(batches)], 2: [batches[0], b"".join(batches[1:])], 3: batches[:2]}
    for broker, parts in files.items():
        (tmp_path / str(broker) / "t-0").mkdir(parents=True)
        for number, part in enumerate(parts):
            (tmp_path / str(broker) / "t-0" / f"{number:020d}.log").write_bytes(part)
    places = {broker: tmp_path / str(broker) for broker in files}

    def compare(*replicas: int, mark: int) -> int:
        findings = SoakFindings()
        compare_replicas(places, {KEY: replicas}, {KEY: mark}, findings)
        return len(findings.breaches)

    assert (compare(1, 2, mark=3), compare(1, 3, mark=2), compare(1, 3, mark=3)) == (0, 0, 1)
    (places[2] / "t-0" / f"{0:020d}.log").write_bytes(batches[0][:-1] + b"!")
    assert compare(1, 2, mark=3) == 1


def test_faults_name_what_they_break() -> None:
    """Each mistake made for a soak fits the brokers' text, and names a guarantee."""
    for name, fault in load_faults().items():
        assert fault["guarantee"] in GUARANTEES, name
        assert prepare(find_patches([name])), name


def test_many_breaches_are_counted() -> None:
    """Of one guarantee the first are spelt out, and the others counted."""
    found = shorten([Breach("unaltered", str(number)) for number in range(15)])
    assert [one.what for one in found] == [*map(str, range(10)), "and 5 more"]


def test_what_is_left_is_named(tmp_path: Path) -> None:
    """A znode or a log that nobody needs is a breach, and so is one that is missing."""
    expected = expect_znodes([KEY])
    assert list(check_znodes(expected, expected)) == []
    assert len(list(check_znodes({"/left"}, expected))) == len(expected) + 1
    for name in ("t-0", "t-1"):
        (tmp_path / name).mkdir()
    (breach,) = check_files({1: tmp_path}, {KEY: (1, 2)})
    assert "t-1 has stayed" in breach.what


@pytest.mark.parametrize(
    ("member", "mib", "is_told"),
    [
        pytest.param("broker-1", [80, 90, 96, 97], False, id="flat"),
        pytest.param("broker-1", [80, 90, 101, 118], True, id="leak"),
        pytest.param("broker-1", [60, 70, 96], False, id="filled late"),
        pytest.param("zookeeper-1", [300, 410], True, id="java"),
    ],
)
def test_process_that_grows_is_told(member: str, mib: list[int], *, is_told: bool) -> None:
    """By how much it has grown after its first minute, where it was seen for another one."""
    samples = [Sample(50.0 * number, size * MIB) for number, size in enumerate(mib)]
    memory = MemorySamples({(member, 7): samples})
    assert [breach.guarantee for breach in memory.check()] == ["memory-flat"] * is_told
    assert memory.judged == (len(mib) > 3)


def test_majority_makes_the_merged_log(tmp_path: Path) -> None:
    """What one server alone has logged never came about; what one lacks it was sent otherwise."""
    made = {zxid: committed(SetData("/a", b"%d" % zxid, zxid), zxid=zxid) for zxid in range(1, 6)}
    for name, zxids in (("a", (1, 2, 3)), ("b", (1, 2, 4)), ("c", (2, 4))):
        (tmp_path / name).mkdir()
        write_log(tmp_path / name, [made[zxid] for zxid in zxids])
    merge_logs([tmp_path / name for name in "abc"], tmp_path / "merged")
    assert [one.zxid for one in read_logs(tmp_path / "merged")] == [1, 2, 4]


def test_server_that_was_killed_amid_a_record_and_sent_a_snapshot(tmp_path: Path) -> None:
    """What it never logged, since a snapshot held it, the two others have."""
    zxids = (1, 2, 3, (2 << 32) + 1)
    made = {zxid: committed(SetData("/a", b"%d" % zxid, 1), zxid=zxid) for zxid in zxids}
    for name, known in (("a", zxids), ("b", zxids), ("c", zxids[:2])):
        (tmp_path / name).mkdir()
        write_log(tmp_path / name, [made[zxid] for zxid in known])
    (torn,) = log_files(tmp_path / "c")
    torn.write_bytes(
        torn.read_bytes().rstrip(b"\0") + bytes(4) + b"\1\2\3\4\0\0\20\xbd" + bytes(5000)
    )
    write_log(tmp_path / "c", [made[zxids[3]]])
    assert [one.zxid for one in read_log(torn)] == [1, 2]
    merge_logs([tmp_path / name for name in "abc"], tmp_path / "merged")
    assert [one.zxid for one in read_log(*log_files(tmp_path / "merged"))] == [*zxids]


def run_soak(tmp_path: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """Run the verb; return its exit code and its report."""
    said: list[str] = []
    out = str(tmp_path / "run")
    code = run_command(["lab", "soak", *words, "--format", "json", "--out", out], said.append)
    return code, json.loads(said[-1])


@ALONE
@pytest.mark.slow
def test_a_minute_of_faults(tmp_path: Path) -> None:
    """Under a minute of kills, pauses, cuts and full disks nothing that was promised is broken.

    Whether any process lives for more than that minute is a matter of how fast the machine is.
    """
    code, report = run_soak(tmp_path, "--seconds", "60", "--seed", "2")
    assert (report["breaches"], report["unknown"]) == ([], [])
    assert report["untested"] in ({}, {"memory-flat": ["processes"]})
    assert code == (3 if report["untested"] else 0)
