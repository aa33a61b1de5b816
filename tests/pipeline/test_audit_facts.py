"""What an audit tells beyond violations: the facts, and the sums that hold them."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pipeline_steps import Server, Snapshot

from reassure_lab.archives.sample import SampleCluster
from reassure_lab.protocols.kip_236.synthetic import Size, write_archive
from reassure_pipeline.audit.run_audit import audit_named
from reassure_pipeline.fleet.aggregates import EDGES_MS, MOST_BINS, Durations, First, TimeBins
from reassure_pipeline.fleet.totals import LISTED
from reassure_spec import znodes
from reassure_spec.readings import get_profile
from reassure_zookeeper.transactions import Create, Delete, SetData
from reassure_zookeeper.txnlog import log_files, read_logs


def tell(*paths: Path, profile: str = "kip-236", **options: Any) -> dict[str, Any]:
    """Return the facts that an audit tells."""
    report = audit_named(paths, profile, get_profile(profile), facts=True, **options)
    facts: dict[str, Any] = report.as_json_dict()["facts"]
    return facts


# The sums -----------------------------------------------------------------------------------------

Stretch = tuple[str, int, int]
stretches = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 10**13), st.integers(0, 10**11)), max_size=30
)


@given(stretches, st.integers(0, 2**32))
def test_bins_are_the_same_however_they_were_filled(said: list[Stretch], seed: int) -> None:
    """Split and shuffled, the bins come to the same; nothing is lost, and they are few."""
    drawn = random.Random(seed)

    def fill(part: list[Stretch]) -> TimeBins:
        bins = TimeBins()
        for name, since, lasted in part:
            bins.add(f"count.{name}", since)
            bins.spread(f"time.{name}", since, since + lasted)
        return bins

    whole, parts = fill(said), [fill(said[n::3]) for n in drawn.sample(range(3), 3)]
    together = TimeBins()
    for part in parts:
        together.take_in(part)
    assert (together.as_dict(), together.width_ms) == (whole.as_dict(), whole.width_ms)
    told = whole.as_dict()
    for name in "ab":
        counted = sum(told.get("count", {}).get(name, {}).values())
        assert counted == sum(each == name for each, _, _ in said)
        lasted = sum(told.get("time", {}).get(name, {}).values())
        assert lasted == sum(ms for each, _, ms in said if each == name)
    if whole.range_ms is not None:
        first, last = (time // whole.width_ms for time in whole.range_ms)
        assert last - first < MOST_BINS


@given(st.lists(st.integers(0, 10**11), max_size=40), st.integers(0, 40))
def test_durations_and_firsts_are_the_same_however_they_were_filled(
    said: list[int], cut: int
) -> None:
    """A histogram adds up; the first of all are the first of the firsts."""
    parts = said[:cut], said[cut:]
    together, least = Durations(), First[int](5, lambda each: each)
    for part in parts:
        durations, first = Durations(), First[int](5, lambda each: each)
        for number in part:
            durations.add(number)
            first.add(number)
        together.take_in(durations)
        least.take_in(first)
    told = together.as_dict()
    assert (told["count"], told["total_ms"]) == (len(said), sum(said))
    for each in told["classes"]:
        low = -1 if each["over_ms"] is None else each["over_ms"]
        high = EDGES_MS[-1] ** 2 if each["up_to_ms"] is None else each["up_to_ms"]
        assert each["count"] == sum(low < number <= high for number in said)
    assert (list(least), least.count) == (sorted(said)[:5], len(said))


# A history that is told ---------------------------------------------------------------------------


def test_every_fact_of_a_told_history(server: Server) -> None:
    """Moves, drops, lag, in-sync changes, elections and terms are those that were written."""
    cluster = SampleCluster()
    times: dict[str, int] = {}

    def note(name: str) -> None:
        times[name] = cluster.time_ms

    cluster.create_topic("orders", {0: (1, 2, 3), 1: (4, 5)})
    cluster.write_isr("orders", 0, (1, 2, 8))  # as many as are assigned, and not the same ones
    note("behind")
    cluster.time_ms += 60_000
    cluster.write_isr("orders", 0, (1, 2, 3))
    note("caught up")
    sequence = cluster.submit("orders", {1: (6, 5)})
    cluster.record("orders", 1, (6, 5))
    note("begun")
    cluster.remove_request(sequence)
    cluster.expand("orders", 1, (6, 5))
    cluster.change_target("orders", 1, (7, 5), dropped=(6,))
    cluster.join("orders", 1, (7,))
    cluster.complete("orders", 1, (7, 5))
    note("ended")
    cluster.kill(1)
    note("gone")
    cluster.time_ms += 5_000
    cluster.elect(2)
    note("elected")
    cluster.write_state("orders", 0, leader=-1, isr=(1,))
    note("offline")
    cluster.time_ms += 700
    unclean = cluster.write_state("orders", 0, leader=3, isr=(3,))
    note("unclean")
    cluster.submit("orders", {1: (8, 5)})
    cluster.record("orders", 1, (8, 5))
    facts = tell(server("one", cluster.transactions))

    moves = facts["reassignments"]
    counts = {"started": 2, "completed": 1, "taken_back": 0, "given_up": 0, "under_way": 1}
    assert {name: moves[name] for name in counts} == counts
    assert (moves["changes"], moves["drops"], moves["dropped"], moves["moved"]) == (1, 1, 1, 1)
    (move,) = moves["longest"]
    assert (move["started_ms"], move["ended_ms"]) == (times["begun"], times["ended"])
    lasted = times["ended"] - times["begun"]
    assert move["duration_ms"] == moves["durations"]["longest_ms"] == lasted
    assert (move["before"], move["first_target"]) == ([4, 5], [6, 5])
    assert (move["last_target"], move["after"], move["dropped"]) == ([7, 5], [7, 5], [[6]])
    assert (move["leaders"], move["outcome"], move["route"]) == ([4, 7], "completed", "record")
    (waits,) = moves["oldest_under_way"]
    assert (waits["last_target"], waits["duration_ms"], waits["first_epoch"]) == ([8, 5], None, 2)

    lag, end = facts["replication"], cluster.time_ms
    behind = times["caught up"] - times["behind"] + end - times["unclean"]
    assert lag["offline_ms"] == times["unclean"] - times["offline"]
    assert lag["under_ms"] == behind
    assert 0 < lag["moving_ms"] < times["ended"] - times["begun"]
    assert [each["partition"] for each in lag["partitions"]] == [0, 1]
    assert [each["under_ms"] for each in lag["topics"]] == [behind]
    series = facts["series"]["replication"]
    assert {k: sum(v.values()) for k, v in series.items()} == {
        kind: lag[f"{kind}_ms"] for kind in ("under", "moving", "offline")
    }

    stands = facts["at_end"]
    assert (stands["under"], stands["moving"], stands["offline"]) == (1, 0, 0)
    (late,) = stands["partitions"]
    assert (late["kind"], late["partition"], late["since_ms"]) == ("under", 0, times["unclean"])
    assert (late["leader"], late["assigned"], late["isr"]) == (3, [1, 2, 3], [3])
    (acting,) = stands["in_office"]
    assert (acting["broker"], acting["epoch"], acting["from_ms"]) == (2, 2, times["elected"])

    terms = facts["controllers"]
    assert [(each["broker"], each["epoch"]) for each in terms["latest"]] == [(2, 2), (1, 1)]
    assert terms["latest"][0]["from_ms"] == times["elected"]
    assert terms["latest"][1]["to_ms"] == times["gone"]
    (gap,) = terms["longest_gaps"]
    assert (gap["from_ms"], gap["to_ms"]) == (times["gone"], times["elected"])
    assert (gap["before"], gap["after"]) == (1, 2)
    assert terms["without_ms"] == gap["to_ms"] - gap["from_ms"]

    elections = facts["elections"]
    assert (elections["clean"], elections["unclean"], elections["lost"]) == (1, 1, 1)
    (first,) = elections["first_unclean"]
    assert (first["zxid"], first["leader"], first["isr"]) == (unclean, 3, [1])
    left = {each["broker"]: (each["joined"], each["left"]) for each in facts["in_sync"]["brokers"]}
    # Broker 3 left, came back, went with the set of one, and was elected.
    assert (left[3], left[4], left[7]) == ((2, 2), (0, 1), (1, 0))
    assert sum(facts["series"]["violations"]["election.clean"].values()) == 1


@pytest.mark.parametrize("profile", ["kafka-zk", "kafka-42"])
def test_moves_are_known_by_every_route(server: Server, profile: str) -> None:
    """Kafka's lists say what is under way, and before there were any its old znode does."""
    cluster = SampleCluster()
    cluster.create_topic("orders", {0: (1, 2), 1: (3, 4)})
    lists = profile == "kafka-zk"

    def say(adding: list[int], removing: list[int], replicas: list[int]) -> None:
        content = {
            "version": 3,
            "partitions": {"0": replicas, "1": [3, 4]},
            "adding_replicas": {"0": adding} if adding else {},
            "removing_replicas": {"0": removing} if removing else {},
        }
        cluster.control(SetData("/brokers/topics/orders", json.dumps(content).encode(), 9))

    def enter(kind: type, target: list[int] | None) -> None:
        entry = {"topic": "orders", "partition": 0, "replicas": target}
        data = json.dumps({"version": 1, "partitions": [entry]}).encode()
        path = znodes.REASSIGN_PARTITIONS
        cluster.append(Delete(path) if target is None else kind(path, data))

    if lists:
        say([5], [1], [5, 2, 1])
        began = cluster.time_ms
        say([6], [1], [6, 2, 1])
        cluster.time_ms += 9_000
        say([], [], [6, 2])
    else:
        enter(Create, [5, 2])
        began = cluster.time_ms
        enter(lambda path, data: SetData(path, data, 1), [6, 2])  # type: ignore[arg-type]
        cluster.write_assigned("orders", 0, (5, 2, 1))
        cluster.write_assigned("orders", 0, (6, 2, 1))
        cluster.time_ms += 9_000
        cluster.write_assigned("orders", 0, (6, 2))
        enter(Delete, None)
    (move,) = tell(server("one", cluster.transactions), profile=profile)["reassignments"]["longest"]
    assert move["route"] == ("lists" if lists else "entry")
    assert (move["started_ms"], move["changes"], move["outcome"]) == (began, 1, "completed")
    assert (move["before"], move["after"], move["dropped"]) == ([1, 2], [6, 2], [[5]])
    assert move["duration_ms"] == cluster.time_ms - began


def test_what_lasts_since_before_the_history_counts_from_its_beginning(
    server: Server, snapshot: Snapshot
) -> None:
    """From a snapshot on a lag counts from the first transaction, and a move has no duration."""
    cluster = SampleCluster()
    cluster.create_topic("orders", {0: (1, 2, 3)})
    cluster.write_isr("orders", 0, (1, 2))
    cluster.record("orders", 0, (1, 2, 4), top=3)
    cut = cluster.zxid
    cluster.time_ms += 100_000
    cluster.write_isr("orders", 0, (1,))
    first = cluster.time_ms
    cluster.time_ms += 30_000
    cluster.write_isr("orders", 0, (1, 2, 3))
    lasted = cluster.time_ms - first
    cluster.remove_record("orders", 0)
    history = cluster.transactions
    folder = server("late", history[cut:])
    snapshot(folder, history[:cut], cut)
    facts = tell(folder)
    assert facts["from_ms"] == first
    lag = facts["replication"]
    assert (lag["under_ms"], lag["moving_ms"], lag["offline_ms"]) == (0, lasted, 0)
    moves = facts["reassignments"]
    assert (moves["started"], moves["taken_back"], moves["durations"]["count"]) == (0, 1, 0)
    (term,) = facts["controllers"]["latest"]
    assert (term["broker"], term["from_ms"], term["is_over"]) == (1, None, False)


# Whatever made it ---------------------------------------------------------------------------------


def test_counts_stay_whole_where_lists_end(server: Server) -> None:
    """Of more than are told of there is the number of all, and the first by the rule."""
    cluster = SampleCluster()
    cluster.create_topic("orders", dict.fromkeys(range(LISTED + 5), (1, 2)))
    for number in range(LISTED + 5):
        cluster.write_state("orders", number, leader=3, isr=(3,))
    cluster.write_state("orders", LISTED + 4, leader=-1, isr=(3,))
    facts = tell(server("one", cluster.transactions))
    told = facts["elections"]["first_unclean"]
    assert facts["elections"]["unclean"] == LISTED + 5
    assert [each["partition"] for each in told] == list(range(LISTED))
    assert facts["in_sync"]["partitions_changed"] == LISTED + 5
    assert len(facts["in_sync"]["partitions"]) == LISTED
    stands = facts["at_end"]
    assert (stands["under"], stands["offline"]) == (LISTED + 4, 1)
    urgent = [each["partition"] for each in stands["partitions"]]
    assert urgent == [LISTED + 4, *range(LISTED - 1)]


STATE = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")


def test_sums_are_those_of_a_plain_reading(tmp_path: Path) -> None:
    """Another reading of the same log, by nothing but its paths and JSON, finds the same sums."""
    write_archive(tmp_path / "made", Size(4_000, 30, 0, 3))
    assigned: dict[tuple[str, int], set[int]] = {}
    states: dict[tuple[str, int], dict[str, Any]] = {}
    now = wrong_ms = joined = left = clean = terms = records = 0
    for transaction in read_logs(log_files(tmp_path / "made")):
        bad = sum(
            key in assigned and (state["leader"] < 0 or not assigned[key] <= {*state["isr"]})
            for key, state in states.items()
        )
        wrong_ms += bad * (transaction.time_ms - now)
        now = transaction.time_ms
        for op in transaction.ops:
            if not isinstance(op, Create | SetData):
                continue
            if op.path == "/controller":
                terms += 1
            if op.path.startswith("/admin/reassignments/") and op.path.count("/") == 4:
                records += isinstance(op, Create)
            if op.path.startswith("/brokers/topics/") and op.path.count("/") == 3:
                topic = op.path.rpartition("/")[2]
                for number, replicas in json.loads(op.data)["partitions"].items():
                    assigned[topic, int(number)] = {*replicas}
            match = STATE.fullmatch(op.path)
            if match:
                key = match[1], int(match[2])
                after, before = json.loads(op.data), states.get(key)
                states[key] = after
                if before is not None:
                    joined += len({*after["isr"]} - {*before["isr"]})
                    left += len({*before["isr"]} - {*after["isr"]})
                    led = after["leader"] not in (-1, before["leader"])
                    clean += led and after["leader"] in before["isr"]
    facts = tell(tmp_path / "made")
    lag = facts["replication"]
    assert lag["under_ms"] + lag["moving_ms"] + lag["offline_ms"] == wrong_ms > 0
    assert (facts["in_sync"]["joined"], facts["in_sync"]["left"]) == (joined, left)
    assert (facts["elections"]["clean"], facts["controllers"]["terms"]) == (clean, terms)
    assert facts["reassignments"]["started"] == records > 50
