"""An audit by several processes: the same report as by one."""

import time
from multiprocessing import active_children
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from pipeline_steps import Audit, flip

from reassure_judge.protocols import make_rules
from reassure_lab.archives.sample import write_sample
from reassure_lab.protocols.kip_236.synthetic import Size, write_archive
from reassure_pipeline.archives.archive import BEGINNING
from reassure_pipeline.audit.jobs import start_processes
from reassure_pipeline.audit.passes import Judging, Routing, Share
from reassure_spec.readings import get_profile
from reassure_zookeeper.errors import DamagedLog, LogsMissing
from reassure_zookeeper.txnlog import log_files


def test_each_topic_is_judged_in_one_share() -> None:
    """Shares have no partition in common, none is left out, and each has a part of the work."""
    history = write_sample(topics=8)
    rules = make_rules("kip-236", get_profile("kip-236"))
    seen, judged = [], []
    for index in range(3):
        share = Share(index, 3)
        routing = Routing(BEGINNING, None, rules, share=share)
        judging = Judging(rules)
        observations = [each for one in history for each in routing.feed(one)]
        for each in observations:
            judging.observe(each)
        seen.append(len(observations))
        judged.append(judging.sum_up().partitions.total())
    assert sum(judged) == 80
    assert min(judged) > 0
    routing = Routing(BEGINNING, None, rules)
    assert max(seen) < sum(len(routing.feed(one)) for one in history)


def test_damage_is_told_as_by_one_process(tmp_path: Path, audit: Audit) -> None:
    """Around damage shares come to the same report, and to the same error where nothing is left."""
    write_archive(tmp_path / "made", Size(1_500, 10, 10))
    (log,) = log_files(tmp_path / "made")
    flip(log)
    alone = audit(tmp_path / "made").as_json_dict()
    assert alone["counts"]["damaged"] == 1
    assert alone["unsettled"]
    assert audit(tmp_path / "made", jobs=2).as_json_dict() == alone
    log.write_bytes(log.read_bytes()[:20])
    with pytest.raises((DamagedLog, LogsMissing)) as one:
        audit(tmp_path / "made")
    with pytest.raises((DamagedLog, LogsMissing)) as two:
        audit(tmp_path / "made", jobs=2)
    assert str(two.value) == str(one.value)


FOR_EVER_S = 3600.0


def begin_and_end(end: type[BaseException], begun: set[BaseProcess]) -> None:
    """Begin processes that have much to do, note them, and end the work before they do."""
    before = set(active_children())
    with start_processes(2) as pool:
        waiting = [pool.submit(time.sleep, FOR_EVER_S) for _ in range(2)]
        while not all(each.running() for each in waiting):
            time.sleep(0.01)
        begun |= set(active_children()) - before
        raise end


@pytest.mark.parametrize("end", [KeyboardInterrupt, OSError])
def test_nobody_waits_for_what_an_interrupted_audit_began(end: type[BaseException]) -> None:
    """Whatever ends the work here ends those processes, and none that others began before."""
    with start_processes(1) as others:
        assert others.submit(abs, -1).result() == 1
        begun = set[BaseProcess]()
        with pytest.raises(end):
            begin_and_end(end, begun)
        assert len(begun) == 2
        assert not begun & set(active_children())
        assert others.submit(abs, -2).result() == 2
