"""A zxid that is left out inside a file is a gap, as one between two files is."""

from collections.abc import Callable
from pathlib import Path

from pipeline_steps import Audit, Server, plant, watch

from reassure_judge.verdicts import BY_CONTENT
from reassure_lab.archives.planted import plant_all
from reassure_lab.archives.sample import SampleCluster, write_sample
from reassure_zookeeper.ensemble import Hole
from reassure_zookeeper.transactions import Create, Transaction, committed
from reassure_zookeeper.txnlog import LogFile, log_files


def _leave_out(history: list[Transaction], *zxids: int) -> list[Transaction]:
    return [each for each in history if each.zxid not in zxids]


def test_record_left_out_is_never_held_against_anybody(server: Server, audit: Audit) -> None:
    """Without any one record a sound history is unknown, and what is missing is named."""
    history = write_sample(topics=1, partitions=2)
    assert audit(server("whole", history)).verdict == "holds"
    for gone in range(2, len(history)):
        report = audit(server(f"without-{gone}", _leave_out(history, gone)))
        assert (report.verdict, report.violations) == ("unknown", ()), gone
        assert report.archives[0].holes == (Hole(gone - 1, gone + 1),)
        assert any(f"from 0x{gone:x} up to 0x{gone + 1:x} are missing" in n for n in report.needs)


def test_watch_meets_the_same_gaps(server: Server) -> None:
    """A watch tells each gap inside a file as it comes, and finds nothing certain behind it."""
    history = write_sample(topics=1, partitions=2)
    for gone in range(2, len(history), 7):
        told, document = watch(server(f"without-{gone}", _leave_out(history, gone)))
        kinds = [alert.kind for alert in told.alerts]
        assert (document["verdict"], kinds.count("hole"), kinds.count("violation")) == (
            "unknown",
            1,
            0,
        ), gone


def test_violation_before_a_gap_stays_certain(server: Server, audit: Audit) -> None:
    """What was found before a gap inside a file is as certain as in the whole history."""
    cluster = SampleCluster()
    planted = plant_all(cluster)
    gone = planted[len(planted) // 2].zxid + 1
    whole = audit(server("whole", cluster.transactions)).violations
    report = audit(server("one", _leave_out(cluster.transactions, gone)))
    settled = [
        each for each in whole if each.clause in BY_CONTENT or max(each.zxid, each.seen_zxid) < gone
    ]
    assert list(report.violations) == settled
    assert 0 < len(settled) < len(whole)
    assert report.archives[0].unsettled


def test_gaps_inside_files_and_between_them_are_alike(server: Server, audit: Audit) -> None:
    """Every process of an audit judges one file with gaps as it judges a file for each stretch."""
    history = plant()
    cuts = [history[:30], history[31:60], history[62:]]
    one = audit(server("one", [each for cut in cuts for each in cut])).as_json_dict()
    assert one["archives"][0]["holes"]
    several = audit(server("several", *cuts)).as_json_dict()
    jobs = audit(server("jobs", [each for cut in cuts for each in cut]), jobs=2).as_json_dict()
    for body in (one, several, jobs):
        text = str(body)
        for name in ("one", "several", "jobs"):
            text = text.replace(f"/{name}'", "/it'").replace(f"/{name}:", "/it:")
        body["text"] = text
    assert one["text"] == several["text"] == jobs["text"]


def test_judging_begins_anew_behind_a_gap_inside_a_file(
    server: Server, audit: Audit, snapshot: Callable[[Path, list[Transaction], int], Path]
) -> None:
    """A snapshot behind the gap shows what was there: what follows is certain again."""
    history = write_sample(topics=1, partitions=2)
    folder = server("one", _leave_out(history, 40))
    snapshot(folder, history[:60], 60)
    archive = audit(folder).archives[0]
    assert [each.zxid for each in archive.beginnings] == [-1, 60]
    assert archive.find_certain(Hole(39, 41)) == archive.beginnings[1]


def test_new_epoch_is_no_gap(server: Server, audit: Audit) -> None:
    """The first zxid of a new leader leaves nothing out; its second alone does."""
    first = (1 << 32) + 1
    old = [committed(Create(f"/{n}"), zxid=first + n) for n in range(3)]
    new = [committed(Create(f"/new-{n}"), zxid=(2 << 32) + n) for n in (1, 2)]
    assert audit(server("whole", old + new)).archives[0].holes == ()
    holes = audit(server("without", old + new[1:])).archives[0].holes
    assert holes == (Hole(old[-1].zxid, new[1].zxid),)


def test_batches_end_before_gaps(server: Server) -> None:
    """No batch of a log file has a gap within it, and together they are all there is."""
    history = _leave_out(write_sample(topics=1, partitions=2), 7, 8, 20)
    (log,) = log_files(server("one", history))
    file = LogFile(log)
    batches = [(batch[0].zxid, batch[-1].zxid, file.offset) for batch in file.batches()]
    assert [batch[:2] for batch in batches] == [(1, 6), (9, 19), (21, history[-1].zxid)]
    again = LogFile(log, after_zxid=6)
    again.offset = batches[0][2]
    assert next(again.batches())[0].zxid == 9
