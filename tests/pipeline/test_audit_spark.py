"""The audit on Spark: its stages by themselves, and the whole in one session."""

import io
import json
import os
import pickle
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from contextlib import redirect_stdout
from itertools import chain, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any
from zlib import adler32

import pyarrow.parquet
import pytest
from pipeline_steps import Server, Snapshot, flip, plant, show

from reassure_judge.history import SeenWrite
from reassure_judge.protocols import make_rules
from reassure_lab.archives.planted import plant_all
from reassure_lab.archives.sample import SampleCluster, write_sample
from reassure_lab.protocols.kip_236.synthetic import Size, write_archive
from reassure_pipeline.archives.archive import (
    APART,
    RECOGNISED,
    Archive,
    Since,
    find_archives,
    read_archive,
)
from reassure_pipeline.archives.beginnings import load_base
from reassure_pipeline.audit.audit_report import AuditReport
from reassure_pipeline.audit.listed_findings import LISTED_FINDINGS
from reassure_pipeline.audit.local import audit_local
from reassure_pipeline.audit.passes import Judged, Options, Routing, Share
from reassure_pipeline.spark.columns import TABLES
from reassure_pipeline.spark.gateway import SparkUnavailable, open_spark
from reassure_pipeline.spark.spark_audit import (
    Misfits,
    are_requests_new,
    audit_spark,
    find_better_plan,
    judge_until_it_fits,
    list_tasks,
    sum_up,
)
from reassure_pipeline.spark.spark_tasks import (
    Block,
    Outcome,
    PartResult,
    Place,
    SparkPlan,
    judge_share,
    read_part,
)
from reassure_spec import znodes
from reassure_spec.readings import get_profile
from reassure_zookeeper.codec import decode, encode
from reassure_zookeeper.errors import DamagedLog, JavaError
from reassure_zookeeper.transactions import Create, SetData, Transaction
from reassure_zookeeper.txnlog import FILE_HEADER, FRAME

PROFILE = "kip-236"
ROOT = Path(__file__).parents[2]
READINGS = get_profile(PROFILE)


def _make_plan(
    folders: Sequence[Path],
    profile: str,
    shares: int,
    *,
    at_rest: bool,
    members: str = RECOGNISED,
    since: Since | None = None,
    damaged: bool = False,
) -> SparkPlan:
    rules = make_rules(profile, get_profile(profile))
    archives = find_archives(folders, members, since, damaged=damaged)
    bases = [load_base(archive) for archive in archives]
    return SparkPlan(rules, archives, bases, shares, Options(at_rest=at_rest, facts=True))


def _route(plan: SparkPlan, whole: Set[Place] = frozenset()) -> list[list[Block]]:
    """Do what Spark does with the blocks of all parts: those of each share, in order."""
    routed: list[list[Block]] = [[] for _ in range(plan.shares)]
    for task in reversed(list_tasks(plan, whole)):
        for key, block in read_part(pickle.loads(pickle.dumps(task)), plan):
            routed[key[0]].append(pickle.loads(pickle.dumps((key, block))))
    for blocks in routed:
        blocks.sort(key=itemgetter(0))
    return routed


def _judge(routed: Sequence[Sequence[Block]], plan: SparkPlan) -> list[tuple[int, Outcome]]:
    told = (each for blocks in routed for each in judge_share(blocks, plan))
    return [(archive, pickle.loads(packed)) for archive, is_taken, packed in told if is_taken]


def _audit_apart(plan: SparkPlan, profile: str) -> AuditReport:
    """Do what Spark does, without it."""
    return judge_until_it_fits(plan, profile, lambda plan, whole: _judge(_route(plan, whole), plan))


def _check_same(
    folders: Sequence[Path], shares: int, profile: str = PROFILE, **options: Any
) -> AuditReport:
    """Hold what Spark would do, and several processes, against one; return what that reports."""
    given = {"at_rest": False, **options}
    local = audit_local(folders, profile, get_profile(profile), facts=True, **given)
    apart = _audit_apart(_make_plan(folders, profile, shares, **given), profile)
    jobs = audit_local(folders, profile, get_profile(profile), facts=True, jobs=2, **given)
    for other in (apart, jobs):
        assert show(other) == show(local)
    return local


@pytest.mark.parametrize("profile", ["kip-236", "kip-236-legacy", "kip-46", "kafka-zk"])
@pytest.mark.parametrize(
    ("shares", "members", "part"), [(1, APART, None), (3, APART, 5_000), (3, RECOGNISED, 9_000)]
)
def test_shares_judged_apart_come_to_the_report_of_the_local_engine(
    tmp_path: Path,
    server: Server,
    snapshot: Snapshot,
    monkeypatch: pytest.MonkeyPatch,
    profile: str,
    shares: int,
    members: str,
    part: int | None,
) -> None:
    """However topics and bytes are spread, wherever a history begins, the reports are equal."""
    if part is not None:
        monkeypatch.setattr("reassure_pipeline.spark.spark_audit._PART_SIZES", (part, part))
    write_archive(tmp_path / "made", Size(3_000, 40, 10, 1), per_file=700)
    cluster = SampleCluster(chroot="/kafka")
    for path in ("/hbase", "/hbase/rs", "/kafka/admin/delete_topics", "/consumers"):
        cluster.append(Create(path))
    cut = cluster.zxid
    plant_all(cluster)
    cluster.kill(3)
    cluster.append(Create("/locks"))
    history = cluster.transactions
    folders = [
        tmp_path / "made",
        server("whole", history[:200], history[200:]),
        server("late", history[cut:]),
        server("middle", history[300:]),
    ]
    snapshot(folders[2], history[:cut], cut)
    local = _check_same(folders, shares, profile, at_rest=True, members=members)
    assert len(local.violations) > 20
    assert len(local.archives) == (4 if members == APART else 2)


def _observe(plan: SparkPlan, share: int, records: Iterable[bytes]) -> list[SeenWrite]:
    """Return what a share makes of what it is sent of the only archive."""
    ((archive,), (base,)) = plan.archives, plan.bases
    mine = Share(share, plan.shares)
    routing = Routing(archive.begins, base, plan.rules, share=mine)
    return [*routing.begin(), *(seen for each in records for seen in routing.feed(decode(each)))]


def _is_as_if_sent_all(plan: SparkPlan) -> tuple[bool, bool]:
    """Whether all shares learn what they would if sent everything, and whether numbers grow."""
    routed = _route(plan)
    results = [what for _, what in routed[0] if isinstance(what, PartResult)]
    after = -1 if plan.bases[0] is None else plan.bases[0].zxid
    transactions = [each for each in read_archive(plan.archives[0]) if each.zxid > after]
    same = True
    for share, blocks in enumerate(routed):
        sent = chain.from_iterable(block for _, block in blocks if isinstance(block, list))
        same &= _observe(plan, share, sent) == _observe(plan, share, map(encode, transactions))
    return same, are_requests_new(results, plan)


@pytest.mark.parametrize("numbers_grow", [True, False])
@pytest.mark.parametrize("kind", ["whole", "late", "holes", "snapshot"])
def test_requests_go_to_whom_they_concern(
    server: Server,
    snapshot: Snapshot,
    draw_requests: Callable[..., list[Transaction]],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    numbers_grow: bool,
) -> None:
    """However requests are written, changed, cut off or lost, all whom they name learn of it.

    Where a number comes again some may not, and it is known that this may be so.
    """
    monkeypatch.setattr("reassure_pipeline.spark.spark_audit._PART_SIZES", (4_000, 4_000))
    for seed in range(6):
        history = draw_requests(seed, numbers_grow=numbers_grow)
        cut = len(history) // 3 + seed
        files = {"holes": [history[:cut], history[2 * cut :]], "whole": [history]}
        folder = server(str(seed), *files.get(kind, [history[cut:]]))
        if kind == "snapshot":
            snapshot(folder, history[:cut], cut)
        plan = _make_plan([folder], PROFILE, 5, at_rest=False)
        same, growing = _is_as_if_sent_all(plan)
        assert same or not growing
        assert growing or not numbers_grow


def test_requests_of_which_numbers_come_again_are_judged_as_locally(
    server: Server, draw_requests: Callable[..., list[Transaction]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it matters that a number came again all is done anew, and comes to the same report."""
    monkeypatch.setattr("reassure_pipeline.spark.spark_audit._PART_SIZES", (4_000, 4_000))
    differed = 0
    for seed in range(6):
        history = draw_requests(seed)
        folder = server(str(seed), history[:90], history[150:])
        plan = _make_plan([folder], PROFILE, 5, at_rest=False)
        differed += not _is_as_if_sent_all(plan)[0]
        _check_same([folder], 5)
        others = [server(f"whole-{seed}", history), server(f"late-{seed}", history[60:])]
        assert len(_check_same([*others, folder], 3, at_rest=True).violations) > 5
    assert differed > 0


def _list_requests(sequences: Sequence[int], topic: str, first_zxid: int) -> list[Transaction]:
    """Return a sign of a cluster, and requests about one topic that come under these numbers."""
    cluster = SampleCluster(first_zxid=first_zxid)
    cluster.create_topic(topic, {0: (1, 2)})
    for cluster.requests in sequences:
        cluster.submit(topic, {0: (1, 3)})
    return cluster.transactions


@pytest.mark.parametrize(
    ("there", "made", "is_new"),
    [((), (3, 4), True), ((2,), (3,), True), ((3,), (3,), False), ((), (4, 3), False)],
)
def test_numbers_that_come_again_are_noticed(
    server: Server, snapshot: Snapshot, there: Sequence[int], made: Sequence[int], is_new: bool
) -> None:
    """A number may have been used in a snapshot, or in the same part of a log."""
    shown = _list_requests(there, "a", 1)
    folder = server("one", _list_requests(made, "b", len(shown) + 1))
    snapshot(folder, shown, len(shown))
    plan = _make_plan([folder], PROFILE, 2, at_rest=False)
    assert plan.bases[0] is not None
    results = [what for _, what in _route(plan)[0] if isinstance(what, PartResult)]
    assert are_requests_new(results, plan) is is_new


def test_requests_before_any_sign_of_a_cluster_are_counted(server: Server) -> None:
    """Whoever counts what was not judged is told of what looks like requests and is none."""
    data = [znodes.encode_request(znodes.RequestZnode({(topic, 0): (1,)})) for topic in "abcdef"]
    paths = [f"/none{znodes.request_path(sequence)}" for sequence in range(len(data))]
    cluster = SampleCluster()
    for path, content in zip(paths, data, strict=True):
        cluster.append(Create(path, content))
    _check_same([server("one", cluster.transactions)], 3)


def test_how_long_requests_have_waited_is_known_at_rest(server: Server) -> None:
    """That something was taken from the queue later tells of a request that it was seen."""
    cluster = SampleCluster()
    for topic in "abcdef":
        cluster.create_topic(topic, {0: (1, 2)})
    for topic in "abcdef":
        cluster.submit(topic, {0: (1, 3)})
    for sequence in (1, 3, 5):
        cluster.remove_request(sequence)
    folder = server("one", cluster.transactions)
    for shares in (2, 5):
        _check_same([folder], shares, at_rest=True)


def _count(blocks: Sequence[Block]) -> int:
    return sum(len(block) for _, block in blocks if isinstance(block, list))


def test_a_topic_is_judged_where_its_share_is(server: Server) -> None:
    """Most of a history goes to one share only, and no share is left without work."""
    folder = server("one", write_sample(topics=8))
    plan = _make_plan([folder], PROFILE, 2, at_rest=False)
    whole = len(write_sample(topics=8))
    sizes = [_count(blocks) for blocks in _route(plan)]
    assert max(sizes) < 0.8 * whole
    assert sum(sizes) < 1.5 * whole


def test_records_out_of_order_are_noticed(server: Server) -> None:
    """Were the order inside a topic lost, a correct history would look broken."""
    folder = server("one", write_sample(topics=1, partitions=1))
    plan = _make_plan([folder], PROFILE, 1, at_rest=False)
    ((key, records), last) = _route(plan)[0]
    for order, is_clean in ((records, True), ([*records[:-9], *records[-9:][::-1]], False)):
        found = _judge([[(key, order), last]], plan)
        (judged,) = [what for _, (_, what) in found if isinstance(what, Judged)]
        assert (judged.settled.counts.total() == 0) is is_clean


def _read(plan: SparkPlan) -> tuple[list[int], list[PartResult]]:
    """Return the zxids of what all parts hand on, and what the parts were worth."""
    zxids, results = [], []
    for task in list_tasks(plan):
        for _, block in read_part(task, plan):
            if isinstance(block, PartResult):
                results.append(block)
            else:
                zxids += [decode(record).zxid for record in block]
    return zxids, results


def test_reading_keeps_what_matters_and_counts_all(server: Server) -> None:
    """A transaction on foreign paths is counted and not handed on."""
    cluster = SampleCluster(brokers=1)
    foreign = cluster.append(Create("/locks"))
    cluster.create_topic("events", {0: (1,)})
    plan = _make_plan([server("one", cluster.transactions)], PROFILE, 1, at_rest=False)
    zxids, (result,) = _read(plan)
    assert foreign not in zxids
    facts, times_ms = result.facts, [cluster.transactions[at].time_ms for at in (0, -1)]
    assert (facts.first_zxid, facts.last_zxid, facts.judged) == (1, cluster.zxid, cluster.zxid)
    assert (facts.unjudged, facts.tail) == (Counter({"/locks": 1}), None)
    assert facts.times_ms == tuple(times_ms)


def test_a_file_that_cannot_be_cut_is_read_as_a_whole(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a part begins inside a znode that holds records, all is judged all the same."""
    other = server("other", write_sample(topics=1)) / "version-2" / "log.1"
    cluster = SampleCluster()
    cluster.append(Create("/backup", other.read_bytes()[FILE_HEADER.size :]))
    plant_all(cluster)
    folder = server("one", cluster.transactions)
    monkeypatch.setattr("reassure_pipeline.spark.spark_audit._PART_SIZES", (2_000, 2_000))
    plan = _make_plan([folder], PROFILE, 2, at_rest=False)
    with pytest.raises(Misfits) as caught:
        sum_up(PROFILE, plan, _judge(_route(plan), plan))
    assert caught.value.places == {(0, 0)}
    _check_same([folder], 2)


def _garble(content: bytearray) -> None:
    """Give a write amid a log a length of data that it does not have, with the right checksum."""
    at, records = FILE_HEADER.size, []
    while at < len(content):
        _, length = FRAME.unpack_from(content, at)
        records.append((at, at + FRAME.size + length))
        at += FRAME.size + length + 1
    at, stop = records[len(records) // 2]
    data = content.find(b'{"', at, stop)
    assert data > 0
    content[data - 4 : data] = (1 << 20).to_bytes(4, "big")
    content[at : at + 8] = adler32(content[at + FRAME.size : stop]).to_bytes(8, "big")


@pytest.mark.parametrize("part", [None, 700])
@pytest.mark.parametrize("fault", ["flipped", "torn", "backwards", "nonsense"])
def test_damage_is_contained_as_locally(
    server: Server, monkeypatch: pytest.MonkeyPatch, fault: str, part: int | None
) -> None:
    """Damage found by tasks apart is met as in reading in order, and the rest is judged alike."""
    if part is not None:
        monkeypatch.setattr("reassure_pipeline.spark.spark_audit._PART_SIZES", (part, part))
    history = write_sample(topics=1, partitions=5)
    folder = server(
        "one", history[:50], history[50:80], history[60 if fault == "backwards" else 80 :]
    )
    log = folder / "version-2" / "log.33"
    content = bytearray(log.read_bytes())
    if fault == "flipped":
        content[len(content) // 2] ^= 0xFF
    if fault == "nonsense":
        _garble(content)
    log.write_bytes(content[:-5] if fault == "torn" else content)
    if fault == "backwards":
        (folder / "version-2" / "log.3d").rename(folder / "version-2" / "log.99")
    with pytest.raises(DamagedLog):
        _audit_apart(_make_plan([folder], PROFILE, 2, at_rest=True), PROFILE)
    apart = _audit_apart(
        _make_plan([folder], PROFILE, 2, at_rest=True, damaged=True), PROFILE
    ).as_json_dict()
    local = audit_local([folder], PROFILE, READINGS, at_rest=True, facts=True).as_json_dict()
    assert json.dumps(apart) == json.dumps(local)
    assert apart["counts"]["damaged"] == (0 if fault == "backwards" else 1)


@pytest.mark.parametrize("has_snapshot", [True, False])
@pytest.mark.parametrize("zxid", [30, 320])
def test_later_start_is_judged_as_locally(
    server: Server, snapshot: Snapshot, zxid: int, has_snapshot: bool
) -> None:
    """What stands there by then is the same, with a hole before it, amid and behind a snapshot."""
    history = plant()
    folder = server("one", history[:150], history[155:300], history[300:])
    snapshot(folder, history[:200], 200 if has_snapshot else 1)
    folders, since = [folder, server("two", history[20:])], Since(zxid=zxid)
    local = _check_same(folders, 3, at_rest=True, members=APART, since=since)
    assert {a.archive.begins for a in local.archives} == {"snapshot", "middle"}


@pytest.mark.parametrize("profile", ["kip-236", "kip-236-legacy", "kafka-zk"])
@pytest.mark.parametrize("damaged", [True, False])
def test_chapters_are_judged_as_locally(
    server: Server, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch, profile: str, damaged: bool
) -> None:
    """Behind holes, known before or met, judging begins anew from the same snapshots."""
    monkeypatch.setattr("reassure_pipeline.spark.spark_audit._PART_SIZES", (4_000, 4_000))
    history = plant()
    cuts = [0, 60, 130, 200, 300, len(history)]
    files = [history[one + 7 * (one > 0) : two] for one, two in pairwise(cuts)]
    folder = server("holed", *files)
    for zxid in (40, 90, 131, 206, 290, 400, 520):
        snapshot(folder, history[: zxid + 3], zxid)
    if damaged:
        log = folder / "version-2" / "log.8a"
        flip(log, log.stat().st_size // 3)
    local = audit_local([folder], profile, get_profile(profile), at_rest=True, facts=True)
    assert len(local.archives[0].beginnings) == 4
    plan = _make_plan([folder], profile, 3, at_rest=True, damaged=damaged)
    planned = []

    def judge(plan: SparkPlan, whole: Set[Place]) -> list[tuple[int, Outcome]]:
        planned.append(plan)
        return _judge(_route(plan, whole), plan)

    apart = judge_until_it_fits(plan, profile, judge)
    assert show(apart) == show(local)
    assert len(planned) == (1 if damaged else 2)
    assert find_better_plan(planned[-1], apart) is None


def test_java_that_spark_cannot_use_is_a_clear_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A JAVA_HOME without Java is told before anything is started."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaError, match="point JAVA_HOME at a Java 17"), open_spark("local[1]"):
        pass


def test_java_that_does_not_start_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Java that ends at once is told with its own words."""
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", "nonsense")
    with pytest.raises(SparkUnavailable, match="-Xmxnonsense"), open_spark("local[1]"):
        pass


@pytest.mark.spark
def test_spark_answers_what_the_local_engine_does(
    server: Server, snapshot: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several archives, planted faults, a snapshot and a torn tail: the reports are equal bytes."""
    cluster = SampleCluster(chroot="/a")
    for path in ("/hbase", "/hbase/rs", "/a/admin/delete_topics", "/consumers"):
        cluster.append(Create(path))
    cut = cluster.zxid
    planted = plant_all(cluster)
    often = SampleCluster()
    often.create_topic("orders", {0: (1, 2)})
    for _ in range(LISTED_FINDINGS + 5):
        often.write_state("orders", 0, fenced=False)
    state = znodes.state_path("orders", 0)
    often.append(SetData(state, b'{"leader":"nobody","isr":7}', 9))
    often.append(Create(state.replace("/0/", "/99999999999/"), b"\xff"))
    folders = [
        server("whole", cluster.transactions[:200], cluster.transactions[200:]),
        server("late", cluster.transactions[cut:]),
        server("middle", cluster.transactions[300:]),
        server("clean", write_sample(topics=2)),
        server("often", often.transactions),
        server("holed", cluster.transactions[:150], cluster.transactions[160:]),
    ]
    snapshot(folders[5], cluster.transactions[:300], 300)
    snapshot(folders[1], cluster.transactions[:cut], cut)
    torn = next((folders[3] / "version-2").iterdir())
    torn.write_bytes(torn.read_bytes()[:-5])
    monkeypatch.chdir(tmp_path)
    tables = tmp_path / "tables"
    tables.mkdir()
    before = sorted(tmp_path.iterdir()), dict(os.environ)
    options: dict[str, Any] = {"at_rest": True, "facts": True}
    local = audit_local(folders, PROFILE, READINGS, **options)
    spark = audit_spark(folders, PROFILE, READINGS, "local[2]", parquet=tables, **options)
    document = local.as_json_dict()
    assert json.dumps(spark.as_json_dict()) == json.dumps(document)
    assert document["not_listed"]["violations"]["controller.write.epoch-checked"] >= 5
    found = {(v.clause, v.topic, v.partition, v.zxid) for v in spark.archives[0].violations}
    assert found.issuperset(planted)
    assert (sorted(tmp_path.iterdir()), dict(os.environ)) == before
    _check_tables(tables, local)
    _run_queries(tables)


def find_arrow(kind: str) -> pyarrow.DataType:
    """Return Arrow's type for one of Spark's SQL."""
    if kind.startswith("array<"):
        return pyarrow.list_(find_arrow(kind[6:-1]))
    names = {"bigint": "int64", "int": "int32", "boolean": "bool"}
    return pyarrow.type_for_alias(names.get(kind, kind))


def _check_tables(folder: Path, report: AuditReport) -> None:
    """Hold what Spark left in tables against the report of the local engine."""
    read = {path.name: pyarrow.parquet.read_table(path) for path in folder.iterdir()}
    tables = {name: table.to_pylist() for name, table in read.items()}
    zxids = {(row["file"], row["zxid"]) for row in tables["transactions"] if row["zxid"]}
    assert len(zxids) == sum(len(list(read_archive(a.archive))) for a in report.archives)
    for name, table in TABLES.items():
        columns = [(each.name, each.type) for each in read[name].schema]
        assert columns == [(each.name, find_arrow(each.kind)) for each in table.columns], name
    for settled in (True, False):
        found = [row for row in tables["violations"] if row["settled"] is settled]
        told = [a.settled if settled else a.open for a in report.archives]
        assert Counter(row["clause"] for row in found) == sum((a.counts for a in told), Counter())
        rows = {(row["zxid"], row["clause"], row["reason"]) for row in found}
        assert rows >= {(v.zxid, v.clause, v.reason) for a in told for v in a.listed}
    written = {(row["archive"], row["path"], row["zxid"]): row for row in tables["changes"]}
    place = str(report.archives[0].archive.files[0].parent)
    states = [v for v in report.archives[0].violations if v.path.endswith("/state") and v.before]
    for each in states:
        change = written.get((place, each.chroot + each.path, each.zxid))
        assert change is None or change["before"] is not None
    assert states
    exercised = Counter[str]()
    for row in tables["coverage"]:
        exercised[row["clause"]] += row["exercised"]
    held = [clause for clause in report.clauses if clause.verdict == "holds"]
    assert all(exercised[clause.id] == clause.exercised for clause in held)
    facts = report.as_json_dict()["facts"]["reassignments"]
    moves = tables["reassignments"]
    outcomes = Counter(row["outcome"].replace(" ", "_") for row in moves)
    assert all(facts[name] == count for name, count in outcomes.items())
    assert outcomes["completed"] > 20
    assert outcomes["under_way"] > 0
    lasted = sorted((row["duration_ms"] for row in moves if row["duration_ms"]), reverse=True)
    assert lasted[:5] == [each["duration_ms"] for each in facts["longest"][:5]]
    assert sum(row["moved"] for row in moves) == facts["moved"]
    assert {row["partition"] for row in tables["partitions"]} >= {0, 1}


def _run_queries(folder: Path) -> None:
    """Run what the documentation shows of the tables, on these."""
    text = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    section = text[text.index("## Tables") : text.index("## Beyond violations")]
    by_pandas, by_spark = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    said = io.StringIO()
    with redirect_stdout(said):
        exec(by_pandas.replace("tables/", f"{folder}/"), {})
    assert "completed" in said.getvalue()
    assert "99%" in said.getvalue()
    with open_spark("local[1]") as context, redirect_stdout(said):
        from pyspark.sql import SparkSession

        exec(by_spark.replace("tables/", f"{folder}/"), {"spark": SparkSession(context)})
    lines = [line.split("|")[1:-1] for line in said.getvalue().splitlines() if line[:1] == "|"]
    rows = [[cell.strip() for cell in line] for line in lines]
    assert rows[0] == ["topic", "partition", "clause", "times", "first_zxid"]
    assert int(rows[1][3]) > LISTED_FINDINGS
    assert ["topic", "partition", "duration_ms", "writes"] in rows
    assert len(rows) > 15


@pytest.mark.slow
@pytest.mark.spark
def test_failure_on_spark_is_the_failure_of_the_local_engine(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that vanishes while it is looked at, and a master that is none, are clear errors."""
    history = write_sample(topics=1, partitions=5)
    folder = server("one", history[:50], history[50:])

    def vanish(archive: Archive) -> None:
        archive.files[1].unlink()

    monkeypatch.setattr("reassure_pipeline.spark.spark_audit.load_base", vanish)
    with pytest.raises(FileNotFoundError) as caught:
        audit_spark([folder], PROFILE, READINGS, "local[1]")
    assert caught.value.filename == str(folder / "version-2" / "log.33")
    with pytest.raises(SparkUnavailable, match="Master must"), open_spark("nonsense"):
        pass
